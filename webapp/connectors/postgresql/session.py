"""A connection to PostgreSQL: metadata, reading, and statements."""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, Final, TypeVar

import psycopg
import pyarrow as pa
from psycopg import pq

from webapp import limits
from webapp.connectors.base import (
    ConnectorError,
    Session,
    Target,
    WriteSpec,
)
from webapp.connectors.column_values import plain, read
from webapp.connectors.postgresql.catalog import Catalog
from webapp.connectors.postgresql.copy import array_texts
from webapp.connectors.postgresql.errors import convert_error
from webapp.connectors.postgresql.target import SYSTEM, PostgresqlTarget, keys_exist
from webapp.connectors.schema import Column, ColumnType, Entity, Metadata
from webapp.connectors.sql import base as sql
from webapp.engine.formats.sql_dialects import DIALECTS

DIALECT: Final = DIALECTS["postgresql"]
Found = TypeVar("Found")

# Types of results by pg_type.oid (PostgreSQL, pg_type.dat). Types that are not listed are read as text.
_RESULTS: Final[Mapping[int, ColumnType]] = {
    16: "boolean", 17: "binary", 20: "integer", 21: "integer", 23: "integer", 26: "integer", 700: "float",
    701: "float", 1082: "date", 1083: "time", 1114: "timestamp", 1184: "timestamptz", 1700: "decimal",
}  # fmt: skip
_SCALE_BITS: Final = 0x7FF
_RIGHTS: Final = """
SELECT count(*), count(*) FILTER (WHERE has_any_column_privilege(c.oid, 'INSERT'))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %(schema)s AND c.relkind IN ('r', 'p', 'f') AND NOT c.relispartition
  AND has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE')
"""
_CATALOG_ATTEMPTS: Final = 5
_CHUNKS_SINCE: Final = 170_000  # libpq, PQsetChunkedRowsMode
_MORE: Final = (pq.ExecStatus.SINGLE_TUPLE, pq.ExecStatus.TUPLES_CHUNK)
_DROPPED: Final = (
    "XX000",
    "42P01",
    "42704",
)  # raised by the catalog's functions for an object that was just dropped
# Ascending sequences only: a descending one never collides with values that rows contain.
_SEQUENCE: Final = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_sequence s ON s.seqrelid = c.oid
WHERE c.oid = pg_get_serial_sequence(%s, %s)::regclass AND s.seqincrement > 0
"""
_READABLE: Final = """
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relkind IN ('r', 'p') AND has_table_privilege(c.oid, 'SELECT')
ORDER BY c.relname LIMIT 1
"""


_ADD_TO_SEARCH_PATH: Final = (
    b"SELECT set_config('search_path',"
    b" concat_ws(', ', nullif(current_setting('search_path'), ''), quote_ident(%s)), false)"
)


class PostgresqlSession(Session):
    """A connection in autocommit mode. Transactions are opened where needed."""

    def __init__(self, connection: psycopg.Connection[Any], schema: str, read_only: bool) -> None:
        self.connection, self.read_only = connection, read_only
        with self.talking():
            connection.execute(
                "SET TimeZone = 'UTC'; SET DateStyle = 'ISO, YMD'; SET IntervalStyle = 'iso_8601'"
            )
            connection.execute("SET bytea_output = 'hex'; SET extra_float_digits = 1")
            connection.execute("SET client_min_messages = 'warning'")
            if schema:
                connection.execute(f"SET search_path = {DIALECT.quoted(schema)}, public".encode())
            if read_only:
                connection.execute("SET default_transaction_read_only = on")
            self.schema = schema or self._fetch_value("SELECT current_schema()") or "public"
        self._search_path = {self.schema}

    # --- the connection ---

    @contextmanager
    def talking(self) -> Iterator[None]:
        """Convert errors of the driver."""
        try:
            yield
        except psycopg.Error as error:
            raise convert_error(error, self.connection) from error

    def _fetch_value(self, statement: str, values: Sequence[Any] = ()) -> Any:
        row = self.connection.execute(statement.encode(), values or None).fetchone()
        return row[0] if row else None

    def close(self) -> None:
        """See `Session.close`."""
        self.connection.close()

    def cancel(self) -> None:
        """See `Session.cancel`."""
        try:
            self.connection.cancel_safe(timeout=limits.PUSH_STUCK_SECONDS / 2)
        except psycopg.Error:
            # The connection is lost, or the server does not accept the request. A server that hangs would never
            # answer, so the socket is shut down under the waiting thread.
            with (
                suppress(OSError, psycopg.Error),
                socket.socket(fileno=os.dup(self.connection.fileno())) as duplicate,
            ):
                duplicate.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def _read_only(self, *, limited: bool = True) -> Iterator[None]:
        """Open a read-only transaction, and roll it back at the end."""
        with self.talking():
            self.connection.execute("BEGIN READ ONLY")
            try:
                wait = int(limits.TARGET_LOCK_SECONDS * 1000)
                self.connection.execute(f"SET LOCAL lock_timeout = {wait}".encode())
                if limited:
                    time_limit = int(limits.TARGET_QUERY_SECONDS * 1000)
                    self.connection.execute(f"SET LOCAL statement_timeout = {time_limit}".encode())
                yield
            finally:
                if not self.connection.closed:
                    self.connection.execute("ROLLBACK")

    def _execute_single(self, text: str, values: Sequence[Any] = ()) -> None:
        """Execute a user's statement with the extended protocol, in which the server accepts only one
        statement.

        The simple protocol would also run `...; COMMIT; BEGIN READ WRITE; ...`, which leaves the read-only
        transaction. psycopg uses the extended protocol if there are values or if results are requested in
        binary format. It ignores `prepare=True` on connections that disable prepared statements, as these do
        because they may lead through a connection pooler.
        """
        self.connection.execute(text.encode(), values or None, binary=True)

    def _batch(self, result: pq.abc.PGresult, columns: Sequence[list[bytes | None]]) -> pa.RecordBatch:
        """Convert columns of the server's texts to the types of a result."""
        arrays, names = [], []
        for index, cells in enumerate(columns):
            texts = [None if cell is None else cell.decode() for cell in cells]
            modifier = result.fmod(index)
            scale = None if modifier < 0 else (((modifier - 4) & _SCALE_BITS) ^ 1024) - 1024
            arrays.append(read(texts, _RESULTS.get(result.ftype(index), "text"), scale))
            names.append((result.fname(index) or b"").decode())
        return pa.RecordBatch.from_arrays(arrays, names)

    # --- verification ---

    def describe(self) -> str:
        """Return the database and the user, for messages."""
        with self.talking():
            row = self.connection.execute("SELECT current_user, current_database()").fetchone()
        assert row is not None
        return f"{row[1]} as {row[0]}"

    def permitted(self) -> str:
        """Return what the account may do in its schema, as a message. Raises `ConnectorError` if it may do
        nothing."""
        with self._read_only():
            exists = self._fetch_value("SELECT 1 FROM pg_namespace WHERE nspname = %s", [self.schema])
            usable = exists and self._fetch_value("SELECT has_schema_privilege(%s, 'USAGE')", [self.schema])
            tables, writable = self.connection.execute(_RIGHTS, {"schema": self.schema}).fetchone() or (0, 0)
        if not exists:
            raise ConnectorError(
                f"The schema {self.schema} does not exist.",
                reason="no_schema",
                hint="Check the name of the schema.",
            )
        if not usable:
            raise ConnectorError(
                f"The account is not allowed to use the schema {self.schema}.",
                reason="no_permission",
                hint=f"The schema's owner can run: GRANT USAGE ON SCHEMA {DIALECT.quoted(self.schema)} TO ...",
            )
        return f"{tables} tables in {self.schema}, {writable} of them writable."

    def sampled(self) -> str:
        """Read a row of the first readable table, and return a message."""
        with self._read_only():
            name = self._fetch_value(_READABLE, [self.schema])
            if name is None:
                return "No readable tables yet."
            table = sql.qualified(DIALECT, (self.schema, name))
            self.connection.execute(f"SELECT * FROM {table} LIMIT 1".encode())
        return f"Read from {name}."

    # --- metadata ---

    def metadata(self) -> Metadata:
        """See `Session.metadata`."""
        version = self.connection.info.server_version
        title = f"PostgreSQL {version // 10_000}.{version % 10_000}"
        return Metadata("postgresql", title, tuple(self._with_catalog(lambda catalog: catalog.entities())))

    def _with_catalog(self, function: Callable[[Catalog], Found]) -> Found:
        """Call `function` with the catalog, again if a table was dropped while it was being read."""
        for _ in range(_CATALOG_ATTEMPTS):
            try:
                with self._read_only():
                    return function(Catalog(self.connection, self.schema))
            except ConnectorError as error:
                if error.details.get("sqlstate") not in _DROPPED:
                    raise
                last = error
        raise last

    def entity(self, name: str) -> Entity | None:
        """See `Session.entity`."""
        return self._with_catalog(lambda catalog: catalog.entity(name))

    def _table(self, entity: Entity) -> str:
        return sql.qualified(DIALECT, entity.parts)

    def sample(self, entity: Entity, limit: int) -> pa.RecordBatch:
        """See `Session.sample`."""
        names = sql.listed(DIALECT, (column.name for column in entity.fields)) or "*"
        query = f"SELECT {names} FROM {self._table(entity)} LIMIT {int(limit)}"
        with self._read_only():
            self._execute_single(f"DECLARE sample NO SCROLL CURSOR FOR {query}")
            return self._fetch_rows("sample", int(limit), limits.SAMPLE_BYTES)[0]

    def keys(
        self, entity: Entity, columns: Sequence[str], where: str = "", order: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """See `Session.keys`."""
        names = sql.listed(DIALECT, columns)
        condition = sql.where_clause("postgresql", where)
        condition += sql.ordered(DIALECT, columns, order)
        for batch in self._stream_batches(f"SELECT {names} FROM {self._table(entity)}{condition}"):
            if batch.num_rows:
                yield batch

    def _stream_batches(self, query: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a query. The last batch is empty."""
        with self._read_only(limited=False):
            self._execute_single(f"DECLARE keys NO SCROLL CURSOR FOR {query}")
            while True:
                rows = 0
                for result, columns in self._fetch_groups("keys", limits.TARGET_READ_ROWS):
                    batch = self._batch(result, columns)
                    rows += batch.num_rows
                    yield batch
                if not rows:
                    return

    def _fetch_rows(self, cursor: str, count: int, max_bytes: int) -> tuple[pa.RecordBatch, bool]:
        """Return the next rows of a cursor, and whether they fit in `max_bytes` bytes; otherwise only the first
        rows."""
        columns: list[list[bytes | None]] = []
        results, size = [], 0
        with closing(self._fetch_groups(cursor, count)) as pieces:
            for result, more in pieces:
                results = [result]
                columns, size = _append_columns(columns, more), size + _size(more)
                if size > max_bytes:
                    break
        return self._batch(results[0], columns), size <= max_bytes

    def _fetch_groups(
        self, cursor: str, count: int
    ) -> Generator[tuple[pq.abc.PGresult, list[list[bytes | None]]]]:
        """Yield the next rows of a cursor in pieces of about `limits.QUERY_BATCH_BYTES`, one at least: a result that
        describes the columns, and their values."""
        columns: list[list[bytes | None]] = []
        size, pieces = 0, 0
        with closing(self._chunks(f"FETCH {count} FROM {cursor}".encode())) as chunks:
            for result in chunks:
                rows = range(result.ntuples)
                more = [[result.get_value(row, index) for row in rows] for index in range(result.nfields)]
                columns, size = _append_columns(columns, more), size + _size(more)
                if size >= limits.QUERY_BATCH_BYTES or (not rows and (size or not pieces)):
                    yield result, columns
                    pieces += 1
                    columns, size = [], 0

    def _chunks(self, statement: bytes) -> Generator[pq.abc.PGresult]:
        """Yield the result of a statement in chunks of a few rows; the last chunk is empty. Otherwise the driver would
        keep all rows in memory, even wide ones."""
        server = self.connection.pgconn
        server.send_query_params(statement, None)
        if pq.version() >= _CHUNKS_SINCE:
            server.set_chunked_rows_mode(limits.QUERY_CHUNK_ROWS)
        else:
            server.set_single_row_mode()
        poller = select.poll()
        poller.register(server.socket, select.POLLIN | select.POLLOUT)
        while server.flush():
            poller.poll()
        poller.modify(server.socket, select.POLLIN)
        sending = True  # the server may still send rows
        try:
            while sending:
                while server.is_busy():
                    poller.poll()
                    server.consume_input()
                result = server.get_result()
                sending = result is not None and result.status in _MORE
                if result is None or result.status == pq.ExecStatus.FATAL_ERROR:
                    raise psycopg.DatabaseError("no result") if result is None else _failure(result)
                yield result
        finally:
            with suppress(psycopg.Error):
                if sending:  # the caller does not read the rest
                    self.connection.cancel_safe(timeout=limits.PUSH_STUCK_SECONDS)
                while server.get_result() is not None:
                    pass

    def stream(self, text: str) -> Iterator[pa.RecordBatch]:
        """See `Session.stream`."""
        yield from self._stream_batches(sql.bound(text, {}, "%s")[0])

    def contains(self, entity: Entity, columns: Sequence[str], wanted: pa.RecordBatch) -> pa.BooleanArray:
        """See `Session.contains`. Combinations that do not fit the columns' types are not in the table."""
        with self._read_only():
            return pa.array(self._existing(entity, columns, wanted), pa.bool_())

    def _existing(self, entity: Entity, columns: Sequence[str], rows: pa.RecordBatch) -> list[bool]:
        if not rows.num_rows:
            return []
        fields = [entity.column(name) for name in columns]
        lists = [_literal(array) for array in rows.columns]
        types = [f"%s::{_escape_percent(column.declared) if column else 'text'}[]" for column in fields]
        names = [f"c{index}" for index in range(len(columns))]
        condition = " AND ".join(
            f"t.{_escape_percent(DIALECT.quoted(column))} = w.{name}"
            for column, name in zip(columns, names, strict=True)
        )
        query = (
            f"SELECT EXISTS (SELECT FROM {_escape_percent(self._table(entity))} t WHERE {condition}) "
            f"FROM unnest({', '.join(types)}) WITH ORDINALITY w({', '.join(names)}, place) ORDER BY place"
        )
        try:
            with self.connection.transaction():
                return [row[0] for row in self.connection.execute(query.encode(), lists).fetchall()]
        except psycopg.DataError:
            half = rows.num_rows // 2
            if not half:
                return [False]
            parts = (rows.slice(0, half), rows.slice(half))
            return [item for part in parts for item in self._existing(entity, columns, part)]

    def query(self, text: str, values: Mapping[str, Any], limit: int) -> pa.RecordBatch:
        """See `Session.query`. Runs read-only for at most `limits.TARGET_QUERY_SECONDS`."""
        statement, parameters = sql.bound(text, values, "%s", doubled="%")
        with self._read_only():
            # With a cursor, the server produces only the rows that are needed.
            self._execute_single(f"DECLARE answer NO SCROLL CURSOR FOR {statement}", parameters)
            batch, is_complete = self._fetch_rows("answer", int(limit), limits.QUERY_ANSWER_BYTES)
        if not is_complete:
            raise sql.answer_too_large()
        return batch

    # --- statements ---

    def execute(self, statement: str) -> None:
        """See `Session.execute`."""
        self.may_write()
        with self.talking():
            self._execute_single(statement)

    def create(self, name: str, columns: Sequence[Column], keys: Sequence[str]) -> str:
        """See `Session.create`."""
        statement = self.create_statement(name, columns, keys)
        self.execute(statement)
        return statement

    def create_statement(self, name: str, columns: Sequence[Column], keys: Sequence[str]) -> str:
        """See `Session.create_statement`. A name without a dot is in the connection's own schema."""
        schema, dot, table = name.partition(".")
        parts = (schema, table) if dot else (self.schema, name)
        return sql.create_statement(DIALECT, parts, columns, keys)

    def target(self, writing: WriteSpec) -> Target:
        """See `Session.target`."""
        self.may_write()
        if writing.entity.kind == "view" and writing.mode != "insert":
            raise ConnectorError(
                f"{writing.entity.name} is a view.", reason="unsupported", hint="Select the underlying table."
            )
        schema = writing.entity.parts[0]
        if schema not in self._search_path:
            # Functions of triggers often name other tables of their schema alone: names are searched there, last.
            self._search_path.add(schema)
            with self.talking():
                self.connection.execute(_ADD_TO_SEARCH_PATH, (schema,))
        return PostgresqlTarget(self.connection, self.talking, writing)

    def advance(self, entity: Entity, column: str, highest: Callable[[], int | None]) -> int | None:
        """See `Session.advance`. Uses the sequence that a serial or identity column owns."""
        with self.talking():
            names = self.connection.execute(_SEQUENCE, (self._table(entity), column)).fetchone()
            maximum = highest() if names is not None else None
            if names is None or maximum is None:
                return None
            sequence = sql.qualified(DIALECT, names)
            value: int | None = self._fetch_value(
                f"SELECT setval(%s::regclass, %s) FROM {_escape_percent(sequence)}"
                " WHERE last_value < %s OR (last_value = %s AND NOT is_called)",
                [sequence, maximum, maximum, maximum],
            )
            return value

    def may_suspend_foreign_keys(self) -> bool:
        """See `Session`: the right to set `session_replication_role`, which PostgreSQL 15 can grant (GRANT SET)."""
        with self.talking():
            if self._fetch_value("SELECT current_setting('is_superuser')") == "on":
                return True
            if self.connection.info.server_version < 150_000:
                return False
            return bool(
                self._fetch_value("SELECT has_parameter_privilege('session_replication_role', 'SET')")
            )

    @contextmanager
    def suspended_foreign_keys(self) -> Iterator[None]:
        """See `Session`: as replication does (PostgreSQL 15, section 20.11.1, session_replication_role)."""
        with self.talking():
            self.connection.execute("SET session_replication_role = replica")
        try:
            yield
        finally:
            with suppress(psycopg.Error):  # a connection that is gone has no session either
                self.connection.execute("SET session_replication_role = DEFAULT")

    def highest(self, entity: Entity, column: str) -> int | None:
        """See `Session.highest`."""
        with self.talking():
            value = self._fetch_value(f"SELECT max({DIALECT.quoted(column)}) FROM {self._table(entity)}")
        return None if value is None else int(value)

    def count(self, entity: Entity) -> int:
        """See `Session.count`."""
        with self._read_only():
            return int(self._fetch_value(f"SELECT count(*) FROM {self._table(entity)}"))

    def commit_outcome(self, entity: Entity, commit_token: Mapping[str, Any]) -> bool | None:
        """See `Session.commit_outcome`. Uses the server's transaction status, and terminates a session that
        is still open."""
        if not {"xid", "pid", "started"} <= commit_token.keys():
            return None
        deadline = time.monotonic() + limits.TARGET_SETTLE_SECONDS
        while True:
            try:
                status = self._fetch_value("SELECT txid_status(%s::bigint)", [commit_token["xid"]])
            except psycopg.errors.InvalidParameterValue:
                # A future transaction: either its number was lost in a crash, with everything that it wrote,
                # or this is another server.
                is_same_server = (
                    commit_token.get("system") is not None
                    and self._fetch_value(f"SELECT {SYSTEM.decode()}") == commit_token["system"]
                )
                return False if is_same_server else self._rows_exist(entity, commit_token)
            except psycopg.Error as error:
                raise convert_error(error, self.connection) from error
            if status != "in progress":
                # The sender may be suspended in a later operation, and hold locks on those rows.
                self._terminate(commit_token)
                if status == "aborted":
                    return False
                # After a crash, its number may have been reused unless its commit had been flushed to disk.
                started = self._fetch_value("SELECT pg_postmaster_start_time()::text")
                if status == "committed" and commit_token.get("server") in (None, started):
                    return True
                rows_exist = self._rows_exist(entity, commit_token)
                return True if rows_exist is None and status == "committed" else rows_exist
            if time.monotonic() > deadline or not self._terminate(commit_token):
                return None
            time.sleep(limits.PROBE_PAUSE_SECONDS)

    def _rows_exist(self, entity: Entity, commit_token: Mapping[str, Any]) -> bool | None:
        """Return whether the rows of a token are in the table; None if it names no rows, or only some exist."""
        rows = commit_token.get("rows")
        if not rows:
            return None
        try:
            existing = [keys_exist(self.connection, entity, commit_token["keys"], [row]) for row in rows]
        except psycopg.Error as error:
            raise convert_error(error, self.connection) from error
        return existing[0] if len(set(existing)) == 1 else None

    def _terminate(self, commit_token: Mapping[str, Any]) -> bool:
        """Terminate the old session. Returns False if the account is not allowed to."""
        try:
            with self.connection.transaction():
                self.connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE pid = %s AND backend_start::text = %s AND pid <> pg_backend_pid()",
                    (commit_token["pid"], commit_token["started"]),
                )
        except psycopg.errors.InsufficientPrivilege:
            return False
        except psycopg.Error as error:
            raise convert_error(error, self.connection) from error
        return True


def _failure(result: pq.abc.PGresult) -> psycopg.Error:
    """Return the driver's exception for an error result."""
    state = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
    message = (result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or result.error_message).decode(
        errors="replace"
    )
    try:
        return psycopg.errors.lookup(state)(message)
    except KeyError:
        return psycopg.DatabaseError(message)


def _size(columns: Sequence[list[bytes | None]]) -> int:
    """Return the size of values in bytes, with some overhead for each."""
    return sum(len(cell or b"") + 16 for cells in columns for cell in cells)


def _append_columns(
    columns: list[list[bytes | None]], more: list[list[bytes | None]]
) -> list[list[bytes | None]]:
    for cells, others in zip(columns, more, strict=False):
        cells += others
    return columns or more


def _escape_percent(text: str) -> str:
    """Escape percent signs in a statement with parameters."""
    return text.replace("%", "%%")


def _literal(array: pa.Array) -> str:
    """Return a column as the text of a PostgreSQL array."""
    offsets = pa.array([0, len(array)], pa.int32())
    text: str = array_texts(pa.ListArray.from_arrays(offsets, plain(array)))[0].as_py()
    return text
