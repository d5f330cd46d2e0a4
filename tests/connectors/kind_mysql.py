"""A new database in the MariaDB or MySQL of TEST_MYSQL_URL, or in the one on 127.0.0.1:3306."""

from __future__ import annotations

import os
from typing import Any, ClassVar

from tests.connectors.kinds import GATE, SqlKind
from tests.jobs.waiting import eventually
from webapp.connectors.base import Connector, Session
from webapp.connectors.mysql.connector import MysqlConnector

URL = os.environ.get("TEST_MYSQL_URL", "mysql://root@127.0.0.1:3306")
PASSWORD = "for this test only"  # of an account that lives as long as the test


class MysqlKind(SqlKind):
    name = "mysql"
    lacks = frozenset({"arrays"})
    types: ClassVar = {
        "integer": "BIGINT", "decimal": "DECIMAL({p},{s})", "float": "DOUBLE", "boolean": "BOOLEAN", "date": "DATE",
        "time": "TIME(6)", "timestamp": "DATETIME(6)", "timestamptz": "TIMESTAMP(6)", "text": "TEXT",
        "varchar": "VARCHAR({n})", "binary": "LONGBLOB", "json": "JSON", "uuid": "CHAR(36)",
    }  # fmt: skip
    identity = "BIGINT AUTO_INCREMENT"
    quotes = ("`", "`")
    table_tail = " ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"

    @classmethod
    def unavailable(cls) -> str | None:
        import pymysql

        try:
            cls._connected().close()
        except pymysql.err.OperationalError as problem:
            return f"no MariaDB at {URL.rpartition('@')[2]} (TEST_MYSQL_URL): {problem}"
        return None

    @staticmethod
    def _connected() -> Any:
        import pymysql

        params = MysqlConnector(MysqlConnector.Settings(connection_string=URL), GATE).connect_options()
        return pymysql.connect(
            host=params.host,
            port=params.port,
            user=params.username,
            password=params.password,
            autocommit=True,
            connect_timeout=3,
            ssl_disabled=True,
        )

    def start(self) -> None:
        self.own = self._connected()
        self.run(f"CREATE DATABASE {self.place} CHARACTER SET utf8mb4")
        self.run(f"USE {self.place}")
        self.run("SET time_zone = '+00:00'")

    def stop(self) -> None:
        for (number,) in self.run(f"SELECT id FROM information_schema.processlist WHERE db = '{self.place}'"):
            if number != self.own.thread_id():
                self._kill(number)
        self.run(f"DROP DATABASE {self.place}")
        self.run(f"DROP USER IF EXISTS {self.place}")
        self.own.close()

    def connector(self, *, read_only: bool = False) -> Connector:
        settings = MysqlConnector.Settings(connection_string=URL, database=self.place)
        return MysqlConnector(settings, GATE, read_only=read_only)

    def stranger(self) -> Connector:
        self.run(f"CREATE USER {self.place} IDENTIFIED BY '{PASSWORD}'")
        self.run(f"GRANT SELECT ON {self.place}.* TO {self.place}")
        settings = MysqlConnector.Settings(
            connection_string=URL, database=self.place, username=self.place, password=PASSWORD
        )
        return MysqlConnector(settings, GATE)

    def cut(self, session: Session) -> None:
        self._kill(session.link.thread_id())
        eventually(lambda: not self._is_there(session.link.thread_id()))

    def _kill(self, number: int) -> None:
        import pymysql

        try:
            self.run(f"KILL {number}")
        except pymysql.err.OperationalError:
            assert not self._is_there(number)  # it went by itself

    def _is_there(self, number: int) -> bool:
        return bool(self.run(f"SELECT 1 FROM information_schema.processlist WHERE id = {number}"))

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        with self.own.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []

    def kept(self, type: str, value: Any) -> Any:
        if type == "timestamptz" and value is not None:
            return value.replace(tzinfo=None)  # the driver leaves the zone, which is UTC, away
        return int(value) if isinstance(value, bool) else value
