"""A SQLite file in the test's folder."""

from __future__ import annotations

import datetime as dt
import sqlite3
from decimal import Decimal
from typing import Any, ClassVar

from tests.connectors.kinds import GATE, SqlKind
from webapp.connectors.base import Connector
from webapp.connectors.sqlite.connector import SqliteConnector


class SqliteKind(SqlKind):
    name = "sqlite"
    lacks = frozenset({"too_long", "types", "permission", "cut", "held", "arrays"})
    types: ClassVar = {
        "integer": "BIGINT", "decimal": "DECIMAL({p},{s})", "float": "DOUBLE", "boolean": "BOOLEAN", "date": "DATE",
        "time": "TIME", "timestamp": "TIMESTAMP", "timestamptz": "TIMESTAMP WITH TIME ZONE", "text": "TEXT",
        "varchar": "VARCHAR({n})", "binary": "BLOB", "json": "JSON_TEXT", "uuid": "UUID_TEXT",
    }  # fmt: skip
    identity = "INTEGER"

    @classmethod
    def unavailable(cls) -> str | None:
        return None

    def start(self) -> None:
        self.own = sqlite3.connect(self.folder / "shop.db", isolation_level=None)
        self.own.execute("PRAGMA synchronous = OFF")  # no test cuts the power

    def stop(self) -> None:
        self.own.close()

    def connector(self, *, read_only: bool = False) -> Connector:
        settings = SqliteConnector.Settings(file="shop.db")
        return SqliteConnector(settings, GATE, folder=str(self.folder), read_only=read_only)

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        return self.own.execute(statement).fetchall()

    def kept(self, type: str, value: Any) -> Any:
        if isinstance(value, Decimal):
            return float(value)
        if isinstance(value, dt.datetime):
            return value.isoformat(sep=" ")
        return value.isoformat() if isinstance(value, dt.date) else value
