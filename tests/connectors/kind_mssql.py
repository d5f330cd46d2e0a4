"""A database in a SQL Server of this process (`tests.fakes.tds`), which the real driver talks to over TCP."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any, ClassVar

from tests.connectors.kinds import GATE, SqlKind
from tests.fakes.tds import Tds
from tests.fakes.tds_sql import Database
from webapp.connectors.base import Connector, Session
from webapp.connectors.sqlserver.connector import MssqlConnector

WRITER, READER = ("writer", "for this test only"), ("reader", "for this test only")


class MssqlKind(SqlKind):
    name = "mssql"
    lacks = frozenset({"held", "arrays"})
    types: ClassVar = {
        "integer": "bigint", "decimal": "decimal({p},{s})", "float": "float", "boolean": "bit", "date": "date",
        "time": "time", "timestamp": "datetime2(6)", "timestamptz": "datetimeoffset(6)", "text": "nvarchar(max)",
        "varchar": "nvarchar({n})", "binary": "varbinary(max)", "json": "nvarchar(max)", "uuid": "uniqueidentifier",
    }  # fmt: skip
    identity = "bigint IDENTITY(1,1) NOT NULL"
    quotes = ("[", "]")

    @classmethod
    def unavailable(cls) -> str | None:
        try:
            import pymssql  # noqa: F401
        except ImportError:
            return "pymssql is not installed"
        return None

    def start(self) -> None:
        self.server = Tds(
            self.folder, {name: (password, name == "writer") for name, password in (WRITER, READER)}
        )
        self.own = Database(self.folder, True)

    def stop(self) -> None:
        self.server.stop()
        self.own.close()

    def connector(self, *, read_only: bool = False, account: tuple[str, str] = WRITER) -> Connector:
        settings = MssqlConnector.Settings(
            host="127.0.0.1",
            port=self.server.port,
            database="shop",
            username=account[0],
            password=account[1],
            tls="disable",
        )
        return MssqlConnector(settings, GATE, read_only=read_only)

    def stranger(self) -> Connector:
        return self.connector(account=READER)

    def cut(self, session: Session) -> None:
        self.server.cut()

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        for _, rows, _ in self.own.batch(statement):
            found += rows
        return found

    def kept(self, type: str, value: Any) -> Any:
        if isinstance(value, Decimal):
            return float(value)
        if type == "timestamptz" and value is not None:
            return value.astimezone(dt.UTC).isoformat(sep="T")
        if isinstance(value, dt.datetime):
            return value.isoformat(sep="T")
        return value.isoformat() if isinstance(value, dt.date) else value
