"""A connection to MySQL or MariaDB: metadata, reading, and statements."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import pyarrow as pa
import pymysql

from webapp import limits
from webapp.connectors.base import ConnectorError, Session, Target, WriteSpec
from webapp.connectors.mysql import catalog
from webapp.connectors.mysql.connection import (
    ConnectOptions,
    Link,
    batch_of,
    converting_errors,
    row_rejection,
)
from webapp.connectors.mysql.target import CommitOutcome, MysqlTarget
from webapp.connectors.mysql.values import DIALECT, fit, texts
from webapp.connectors.schema import Column, Entity, Metadata
from webapp.connectors.sql import base as sql

# Strict, so that the server truncates nothing silently; without the modes that change how literals are read.
SQL_MODE: Final = (
    "STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ZERO_DATE,NO_ZERO_IN_DATE,NO_ENGINE_SUBSTITUTION,"
    "NO_AUTO_VALUE_ON_ZERO"
)
_READS: Final = re.compile(
    r"(?:\s|\(|--[ \t][^\n]*\n|#[^\n]*\n|/\*(?![!M]).*?\*/)*(select|with|values|table|show|desc|describe|explain)\b",
    re.I | re.S,
)
# Comments may occur between the words.
_INTO_FILE: Final = re.compile(
    r"\binto\b(?:\s|/\*.*?\*/|--[^\n]*\n|#[^\n]*\n)*\b(?:outfile|dumpfile)\b", re.I | re.S
)
_PLAIN_OPTION: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?|ON|OFF|DEFAULT", re.I)


class MysqlSession(Session):
    """A connection in autocommit mode. Transactions are opened where needed. `another` opens a second
    connection."""

    def __init__(
        self, link: Link, params: ConnectOptions, another: Callable[[float], Link], read_only: bool
    ) -> None:
        self.link, self.connect_options, self.read_only = link, params, read_only
        self._another = another
        self._target: MysqlTarget | None = None
        with converting_errors():
            self._set_up(link)
            version, self.home, self.packet = self._fetch_rows(
                "SELECT VERSION(), DATABASE(), @@max_allowed_packet"
            )[0]
        self.server = catalog.server(version)

    def _set_up(self, link: Link) -> None:
        wait = int(limits.TARGET_LOCK_SECONDS)
        link.write(
            f"SET SESSION sql_mode = '{SQL_MODE}', time_zone = '+00:00', innodb_lock_wait_timeout = {wait}, "
            f"lock_wait_timeout = {wait}, net_write_timeout = {int(limits.TARGET_READER_SECONDS)}".encode()
        )
        for name, value in self.connect_options.options.items():
            literal = value if _PLAIN_OPTION.fullmatch(value) else link.escape(value)
            link.write(f"SET SESSION `{name}` = {literal}".encode())
        if self.read_only:
            link.write(b"SET SESSION TRANSACTION READ ONLY")

    # --- the connection ---

    def _fetch_rows(self, text: str, values: Sequence[Any] = ()) -> tuple[tuple[Any, ...], ...]:
        """Return the rows of a query, as the server wrote them."""
        if values:
            text = text % tuple(self.link.escape(value) for value in values)
        self.link.write(text.encode())
        return self.link.rows

    def close(self) -> None:
        """See `Session.close`."""
        try:
            self.link.close()
        except pymysql.err.Error:
            pass  # already closed

    def cancel(self) -> None:
        """See `Session.cancel`."""
        try:
            other = self._another(limits.PUSH_STUCK_SECONDS / 2)
        except ConnectorError:
            self.link.cut()
            return
        try:
            other.patience(limits.PUSH_STUCK_SECONDS / 2)
            other.write(f"KILL QUERY {self.link.number}".encode())
            other.close()
        except (pymysql.err.Error, OSError):
            self.link.cut()

    @contextmanager
    def _read_only(self, link: Link, seconds: float | None, rows: int | None = None) -> Iterator[None]:
        """Make statements read-only, and limit their time and their rows.

        Uses session variables of the server, because a CREATE would end a read-only transaction and then run.
        """
        variable = "max_statement_time" if self.server.maria else "max_execution_time"
        time_limit = 0 if seconds is None else seconds if self.server.maria else int(seconds * 1000)
        row_limit = "DEFAULT" if rows is None else rows
        with converting_errors():
            if not self.read_only:
                link.write(b"SET SESSION TRANSACTION READ ONLY")
            try:
                link.write(f"SET SESSION {variable} = {time_limit}, sql_select_limit = {row_limit}".encode())
                yield
            finally:
                if link.open:
                    link.write(f"SET SESSION {variable} = DEFAULT, sql_select_limit = DEFAULT".encode())
                    if not self.read_only:
                        link.write(b"SET SESSION TRANSACTION READ WRITE")

    # --- metadata ---

    def metadata(self) -> Metadata:
        """See `Session.metadata`."""
        with self._read_only(self.link, limits.TARGET_QUERY_SECONDS):
            entities = catalog.entities(self._fetch_rows, self.server, self.home)
        return Metadata("mysql", self.server.title, tuple(entities))

    def entity(self, name: str) -> Entity | None:
        """See `Session.entity`."""
        with converting_errors():
            tables = self._fetch_rows(
                "SELECT table_schema, table_name FROM information_schema.tables WHERE LOWER(table_name) = LOWER(%s)"
                " AND table_schema = DATABASE() OR LOWER(CONCAT(table_schema, '.', table_name)) = LOWER(%s)",
                (name, name),
            )
            names = {catalog.name_of((schema, table), self.home): (schema, table) for schema, table in tables}
            if name in names:
                tables = (names[name],)
            entities = [
                entity
                for schema, table in tables[:2]
                for entity in catalog.entities(self._fetch_rows, self.server, self.home, (schema, table))
            ]
        return sql.matched(entities, name)

    def permitted(self) -> str:
        """Return what the account can see, as a message. Raises `ConnectorError` if it sees nothing."""
        with converting_errors():
            where = "= DATABASE()" if self.home else f"NOT IN {catalog.SYSTEM}"
            count = int(
                self._fetch_rows(
                    f"SELECT COUNT(*) FROM information_schema.tables WHERE table_schema {where}"
                )[0][0]
            )
            grants = [str(row[0]) for row in self._fetch_rows("SHOW GRANTS")]
        scope = f"the database {self.home}" if self.home else "the server"
        if not count and all(grant.startswith("GRANT USAGE ON") for grant in grants):
            raise ConnectorError(
                f"The account cannot see any table in {scope}.",
                reason="no_permission",
                hint="Ask an administrator to GRANT it SELECT, INSERT, UPDATE and DELETE on the database.",
            )
        return f"{count:,} tables in {scope} are visible."

    def sampled(self) -> str:
        """Read one row of the first readable table, and return a message."""
        where = "= DATABASE()" if self.home else f"NOT IN {catalog.SYSTEM}"
        with converting_errors():
            tables = self._fetch_rows(
                f"SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema {where}"
                " AND table_type = 'BASE TABLE' ORDER BY 1, 2 LIMIT 1"
            )
        if not tables:
            return "No tables yet."
        with self._read_only(self.link, limits.TARGET_QUERY_SECONDS):
            self.link.write(f"SELECT * FROM {sql.qualified(DIALECT, tables[0])} LIMIT 1".encode())
        return f"Read from {tables[0][1]}."

    # --- reading ---

    def sample(self, entity: Entity, limit: int) -> pa.RecordBatch:
        """See `Session.sample`."""
        names = sql.listed(DIALECT, (column.name for column in entity.fields)) or "*"
        text = f"SELECT {names} FROM {sql.qualified(DIALECT, entity.parts)} LIMIT {int(limit)}"
        with self._unbuffered(text) as (fields, rows):
            return batch_of(fields, sql.first(rows))

    def keys(
        self, entity: Entity, columns: Sequence[str], where: str = "", order: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """See `Session.keys`."""
        names = sql.listed(DIALECT, columns)
        condition = sql.where_clause("mysql", where)
        condition += sql.ordered(DIALECT, columns, order)
        for batch in self._stream_batches(
            f"SELECT {names} FROM {sql.qualified(DIALECT, entity.parts)}{condition}"
        ):
            if batch.num_rows:
                yield batch

    def stream(self, text: str) -> Iterator[pa.RecordBatch]:
        """See `Session.stream`."""
        statement = sql.bound(text, {}, "%s")[0]
        _check_read_only(statement)
        yield from self._stream_batches(statement)

    def _stream_batches(self, text: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a query. The last batch is empty."""
        with self._unbuffered(text) as (fields, rows):
            for piece in sql.grouped(rows):
                yield batch_of(fields, piece)
            yield batch_of(fields, [])

    @contextmanager
    def _unbuffered(self, text: str) -> Iterator[tuple[list[Any], Iterator[tuple[Any, ...]]]]:
        """Yield the columns of a query and its rows one by one.

        This uses a separate connection, which is aborted if not all rows are read, because the driver would read
        the rest.
        """
        link = self._another(limits.TARGET_CONNECT_SECONDS)
        try:
            with converting_errors():
                self._set_up(link)
                link.write(b"SET SESSION TRANSACTION READ ONLY")
                cursor = link.cursor(pymysql.cursors.SSCursor)
                cursor.execute(text)
                yield link.fields, iter(cursor.fetchone, None)
        finally:
            if not link.discard():
                link.close()

    def contains(self, entity: Entity, columns: Sequence[str], wanted: pa.RecordBatch) -> pa.BooleanArray:
        """See `Session.contains`. Values are compared as literals, with the column's collation."""
        fields = [entity.column(name) or Column(name, "text", "text") for name in columns]
        missing = [False] * wanted.num_rows
        literals = []
        for column, values in zip(fields, wanted.columns, strict=True):
            fitted, misfits = fit(column, values)
            for where, _, _ in misfits:
                missing = [
                    item or bool(wrong) for item, wrong in zip(missing, where.to_pylist(), strict=True)
                ]
            literals.append(texts(column, fitted))
        table, names = sql.qualified(DIALECT, entity.parts), [DIALECT.quoted(name) for name in columns]
        queries = [
            f"SELECT {row} FROM DUAL WHERE EXISTS (SELECT 1 FROM {table} WHERE "
            + " AND ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))
            + ")"
            for row, values in enumerate(zip(*literals, strict=True))
            if not missing[row]
        ]
        existing: set[int] = set()
        step = limits.MYSQL_KNOWN_ROWS
        with self._read_only(self.link, limits.TARGET_QUERY_SECONDS):
            for start in range(0, len(queries), step):
                existing.update(self._existing_rows(queries[start : start + step], entity))
        return pa.array([row in existing for row in range(wanted.num_rows)], pa.bool_())

    def _existing_rows(self, queries: list[str], entity: Entity) -> list[int]:
        """Return the numbers that the queries return. A value that does not fit the column's type is not in
        the table."""
        try:
            self.link.write(" UNION ALL ".join(queries).encode())
            return [int(row[0]) for row in self.link.rows]
        except pymysql.err.Error as error:
            if row_rejection(error, entity) is None:
                raise
        half = len(queries) // 2
        return (
            self._existing_rows(queries[:half], entity) + self._existing_rows(queries[half:], entity)
            if half
            else []
        )

    def query(self, text: str, values: Mapping[str, Any], limit: int) -> pa.RecordBatch:
        """See `Session.query`. Runs read-only for at most `limits.TARGET_QUERY_SECONDS`."""
        statement, parameters = sql.bound(text, values, "%s", doubled="%")
        _check_read_only(statement)
        with self._read_only(self.link, limits.TARGET_QUERY_SECONDS, int(limit)):
            cursor = self.link.cursor(pymysql.cursors.SSCursor)
            try:
                cursor.execute(statement, parameters)
                rows = sql.answer(iter(cursor.fetchone, None), int(limit))
            except BaseException:
                self.link.discard()
                raise
            fields = self.link.fields
            cursor.close()
            return batch_of(fields, rows)

    # --- statements ---

    def execute(self, statement: str) -> None:
        """See `Session.execute`. DDL commits implicitly, so no transaction may be open."""
        self.may_write()
        if self._target is not None and self._target.is_open:
            raise ConnectorError(
                "A chunk is being written. Wait until its transaction has ended.", reason="busy"
            )
        with converting_errors():
            self.link.write(statement.strip().rstrip(";").encode())
            # The statement may have opened a transaction, or changed session variables.
            self.link.write(b"COMMIT")
            self._set_up(self.link)
            if self.home:
                self.link.write(f"USE {DIALECT.quoted(self.home)}".encode())

    def create(self, name: str, columns: Sequence[Column], keys: Sequence[str]) -> str:
        """See `Session.create`."""
        statement = self.create_statement(name, columns, keys)
        self.execute(statement)
        return statement

    def create_statement(self, name: str, columns: Sequence[Column], keys: Sequence[str]) -> str:
        """See `Session.create_statement`. A name without a dot is in the connection's own database."""
        schema, dot, table = name.partition(".")
        parts = (schema, table) if dot else (name,)
        return f"{sql.create_statement(DIALECT, parts, columns, keys)} ENGINE = InnoDB"

    def target(self, writing: WriteSpec) -> Target:
        """See `Session.target`."""
        self.may_write()
        entity = writing.entity
        if entity.kind == "view":
            raise ConnectorError(
                f"{entity.name} is a view.", reason="unsupported", hint="Select the underlying table."
            )
        table_name = entity.parts if len(entity.parts) > 1 else (self.home or "", *entity.parts)
        table = sql.qualified(DIALECT, entity.parts)
        names = [DIALECT.quoted(column.name) for column in writing.columns]
        if writing.mode == "update":
            setting = ", ".join(f"{name} = {name}" for name in names)
            statement = f"UPDATE {table} SET {setting} WHERE 1 = 0"
        else:
            statement = (
                f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(['NULL'] * len(names))})"
            )
        with converting_errors():
            rows = self._fetch_rows(
                "SELECT t.engine, e.transactions FROM information_schema.tables t JOIN information_schema.engines e "
                "ON e.engine = t.engine WHERE t.table_schema = %s AND t.table_name = %s",
                table_name,
            )
            if rows and rows[0][1] != "YES":
                raise ConnectorError(
                    f"{entity.name} uses the engine {rows[0][0]}, which does not support transactions.",
                    reason="unsupported",
                    hint=f"Run ALTER TABLE {table} ENGINE = InnoDB.",
                )
            try:  # EXPLAIN checks the privileges for a statement without running it
                self.link.write(f"EXPLAIN {statement}".encode())
            except pymysql.err.Error as error:
                if row_rejection(error, entity) is None:
                    raise
            self._target = MysqlTarget(self.link, self.server, int(self.packet), writing)
        return self._target

    def may_suspend_foreign_keys(self) -> bool:
        """See `Session`: every account may set `foreign_key_checks` for its session."""
        return True

    @contextmanager
    def suspended_foreign_keys(self) -> Iterator[None]:
        """See `Session`."""
        with converting_errors():
            self._fetch_rows("SET SESSION foreign_key_checks = 0")
        try:
            yield
        finally:
            with (
                suppress(ConnectorError),
                converting_errors(),
            ):  # a connection that is gone has no session either
                self._fetch_rows("SET SESSION foreign_key_checks = 1")

    def highest(self, entity: Entity, column: str) -> int | None:
        """See `Session.highest`."""
        with converting_errors():
            rows = self._fetch_rows(
                f"SELECT MAX({DIALECT.quoted(column)}) FROM {sql.qualified(DIALECT, entity.parts)}"
            )
        return None if rows[0][0] is None else int(rows[0][0])

    def count(self, entity: Entity) -> int:
        """See `Session.count`."""
        with converting_errors():
            rows = self._fetch_rows(f"SELECT COUNT(*) FROM {sql.qualified(DIALECT, entity.parts)}")
        return int(rows[0][0])

    def commit_outcome(self, entity: Entity, commit_token: Mapping[str, Any]) -> bool | None:
        """See `Session.commit_outcome`."""
        return CommitOutcome(self.link, self._fetch_rows).of(entity, commit_token)


def _check_read_only(statement: str) -> None:
    """Raise `ConnectorError` unless a query only reads. A read-only transaction prevents writing tables, but
    not files."""
    if (
        not _READS.match(statement)
        or sql.EXECUTABLE_COMMENT.search(statement)
        or _INTO_FILE.search(statement)
    ):
        raise ConnectorError(
            "Only queries that read data are allowed.",
            reason="bad_query",
            hint="Start the query with SELECT, WITH, VALUES or SHOW, and remove INTO OUTFILE and /*! ... */.",
        )
