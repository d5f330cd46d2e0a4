"""H2 in its Oracle mode, spoken to over its PostgreSQL wire, in the place of an Oracle connection.

This tests the statements: another server that supports Oracle's SQL runs them. Parameters are replaced by literals, the
dictionary views are queried from INFORMATION_SCHEMA, and the error numbers are Oracle's.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import shutil
import socket
import subprocess
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from tests.jobs.waiting import eventually
from webapp.connectors.base import ConnectorError
from webapp.connectors.oracle.connection import ArrayResult, convert_error

JAR = Path(os.environ.get("TEST_H2_JAR", "/usr/share/java/h2.jar"))
_NUMBERS = {
    "23505": 1, "23506": 2291, "23503": 2292, "23502": 1400, "23513": 2290, "22001": 12899, "22003": 1438,
    "22018": 1722, "22007": 1858, "42S02": 942, "42S22": 904, "42S01": 955, "42S03": 942, "42S04": 942,
    "HYT00": 54, "08006": 3113,
}  # fmt: skip
_COLUMNS = """
    SELECT LOWER(c.TABLE_SCHEMA), c.TABLE_NAME,
    CASE UPPER(t.TABLE_TYPE) WHEN 'VIEW' THEN 'VIEW' ELSE 'TABLE' END, c.COLUMN_NAME,
    CASE WHEN UPPER(c.DATA_TYPE) LIKE 'TIMESTAMP%' AND c.DATETIME_PRECISION = 0 THEN 'DATE'
    WHEN UPPER(c.DATA_TYPE) = 'TIMESTAMP'
    THEN 'TIMESTAMP(6)' WHEN UPPER(c.DATA_TYPE) LIKE 'TIMESTAMP%' THEN 'TIMESTAMP(6) WITH TIME ZONE' ELSE
    DECODE(UPPER(c.DATA_TYPE), 'NUMERIC', 'NUMBER', 'BIGINT', 'NUMBER', 'CHARACTER VARYING', 'VARCHAR2',
    'CHARACTER LARGE OBJECT', 'CLOB', 'BINARY LARGE OBJECT', 'BLOB', 'DOUBLE PRECISION', 'BINARY_DOUBLE',
    'BINARY VARYING', 'RAW', UPPER(c.DATA_TYPE)) END, c.CHARACTER_MAXIMUM_LENGTH, c.CHARACTER_MAXIMUM_LENGTH,
    c.NUMERIC_PRECISION, c.NUMERIC_SCALE, CASE c.IS_NULLABLE WHEN 'YES' THEN 'Y' ELSE 'N' END, c.COLUMN_DEFAULT,
    c.IS_IDENTITY, CASE c.IS_GENERATED WHEN 'ALWAYS' THEN 'YES' ELSE 'NO' END
    FROM INFORMATION_SCHEMA.COLUMNS c JOIN INFORMATION_SCHEMA.TABLES t ON t.TABLE_SCHEMA = c.TABLE_SCHEMA
    AND t.TABLE_NAME = c.TABLE_NAME WHERE LOWER(c.TABLE_SCHEMA) = 'public' ORDER BY 1, 2, c.ORDINAL_POSITION"""
_CONSTRAINTS = """
    SELECT LOWER(c.TABLE_SCHEMA), c.TABLE_NAME, c.CONSTRAINT_NAME,
    DECODE(UPPER(c.CONSTRAINT_TYPE), 'PRIMARY KEY', 'P', 'UNIQUE', 'U',
    'FOREIGN KEY', 'R', 'C'), k.COLUMN_NAME, LOWER(o.TABLE_SCHEMA), o.TABLE_NAME, o.COLUMN_NAME, h.CHECK_CLAUSE
    FROM INFORMATION_SCHEMA.TABLE_CONSTRAINTS c
    LEFT JOIN INFORMATION_SCHEMA.KEY_COLUMN_USAGE k ON k.CONSTRAINT_NAME = c.CONSTRAINT_NAME
    LEFT JOIN INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS r ON r.CONSTRAINT_NAME = c.CONSTRAINT_NAME
    LEFT JOIN INFORMATION_SCHEMA.KEY_COLUMN_USAGE o ON o.CONSTRAINT_NAME = r.UNIQUE_CONSTRAINT_NAME
    AND o.ORDINAL_POSITION = k.POSITION_IN_UNIQUE_CONSTRAINT
    LEFT JOIN INFORMATION_SCHEMA.CHECK_CONSTRAINTS h ON h.CONSTRAINT_NAME = c.CONSTRAINT_NAME
    WHERE LOWER(c.TABLE_SCHEMA) = 'public' ORDER BY 1, 2, 3, k.ORDINAL_POSITION"""


@cache
def unavailable() -> str | None:
    if not shutil.which("java"):
        return "no java"
    return None if JAR.exists() else f"no H2 at {JAR} (TEST_H2_JAR)"


@cache
def port() -> int:
    """Where a server of this process listens; it ends with it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        number = free.getsockname()[1]
    command = ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", str(JAR), "org.h2.tools.Server"]
    server = subprocess.Popen(
        [*command, "-pg", "-pgPort", str(number), "-ifNotExists"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    import atexit

    atexit.register(lambda: (server.kill(), server.wait()))

    def answers() -> bool:
        try:
            socket.create_connection(("127.0.0.1", number), 1).close()
        except OSError:
            return False
        return True

    eventually(answers)
    return number


class H2Link:
    """In the place of `OracleConnection`."""

    version = "in H2"

    def __init__(self, name: str) -> None:
        import psycopg

        place = f"host=127.0.0.1 port={port()} dbname=mem:{name} user=sa password=sa"
        self._connection = psycopg.connect(place, autocommit=True)
        self._closed = False
        self._quick = socket.socket(fileno=os.dup(self._connection.fileno()))
        for statement in ("SET MODE Oracle", "SET LOCK_TIMEOUT 2000", "SET AUTOCOMMIT FALSE"):
            self._connection.execute(statement)

    def _execute(self, text: str) -> Any:
        import psycopg

        try:
            self._quick.setsockopt(
                socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1
            )  # H2 writes its answers in pieces
            return self._connection.execute(text.encode())
        except psycopg.Error as error:
            message = str(error).partition("; SQL statement:")[0]
            state = error.sqlstate or "08006"
            number = _NUMBERS.get(state, 3113 if self._connection.closed else 900)
            raise convert_error(number, message) from None

    def query(self, text: str, values: Any = (), limit: int | None = None) -> tuple[list[str], list[Any]]:
        if "SYS_CONTEXT" in text:
            return [""], [("public",)]
        if "all_tab_cols" in text or "all_constraints" in text:
            rows = self._execute(_COLUMNS if "all_tab_cols" in text else _CONSTRAINTS).fetchall()
            expected = values[0] if values else None
            return [], [row for row in rows if expected is None or row[1].lower() == expected]
        if "all_ind_columns" in text:  # H2 has no indexes on expressions
            return [], []
        cursor = self._execute(filled(text, values))
        return [item.name for item in cursor.description], cursor.fetchall()[:limit]

    def run(self, text: str) -> int:
        if text.startswith(("SET TRANSACTION", "LOCK TABLE")):  # H2 has no such words
            return 0
        return max(self._execute(text).rowcount, 0)

    def run_many(self, text: str, rows: Any, types: Any, back: Any) -> ArrayResult:
        refused, counts, returned = [], [], []
        shape = re.fullmatch(r"(INSERT .*) RETURNING (.*) INTO [:\d, ]+", text, re.S)
        for place, row in enumerate(rows):
            one = f"SELECT {shape[2]} FROM FINAL TABLE ({shape[1]})" if shape else text
            try:
                cursor = self._execute(filled(one, row))
                counts.append(max(cursor.rowcount, 0))
                returned += [list(cursor.fetchone())] if shape else []
            except ConnectorError as error:
                number = error.details.get("native", "ORA-0").removeprefix("ORA-")
                if not int(number):
                    raise
                refused.append((place, int(number), error.message))
                counts.append(0)
                returned += [[None] * len(back)] if shape else []
        return ArrayResult(refused, counts, returned)

    def stream(self, text: str) -> Any:
        cursor = self._execute(text)
        while rows := cursor.fetchmany(1_000):
            yield [item.name for item in cursor.description], rows

    def set_timeout(self, seconds: float | None) -> None:
        pass

    def commit(self) -> None:
        self._execute("COMMIT")

    def rollback(self) -> None:
        self._execute("ROLLBACK")

    def close(self) -> None:
        if not self._closed and not self._connection.closed:
            self._closed = True
            self._quick.close()
            self._connection.execute("ROLLBACK")
            self._connection.close()

    abort = close


def filled(text: str, values: Any) -> str:
    """A statement with literals in its places."""
    return re.sub(r":(\d+)", lambda match: literal(values[int(match[1]) - 1]), text) if values else text


def literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, float):
        return repr(value) if "e" in repr(value) else f"{value!r}e0"
    return (
        f"{value:f}"
        if isinstance(value, Decimal)
        else str(value)
        if isinstance(value, int)
        else quoted(value)
    )


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
