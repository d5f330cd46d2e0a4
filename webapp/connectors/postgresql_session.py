"""An open connection to PostgreSQL: looking around, reading, and statements."""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, Final, TypeVar

import psycopg
import pyarrow as pa
from psycopg import pq

from webapp import limits
from webapp.connectors import sql
from webapp.connectors.base import (
    ConnectorError,
    Session,
    Target,
    Writing,
)
from webapp.connectors.postgresql_catalog import Catalog
from webapp.connectors.postgresql_copy import array_texts
from webapp.connectors.postgresql_errors import translated
from webapp.connectors.postgresql_target import SYSTEM, PostgresqlTarget, are_there
from webapp.connectors.shape import Column, ColumnType, Entity, Metadata
from webapp.connectors.sql_values import plain, read
from webapp.engine.formats.sql_dialects import DIALECTS

DIALECT: Final = DIALECTS["postgresql"]
Found = TypeVar("Found")

# Types of results by pg_type.oid (PostgreSQL, pg_type.dat); whatever is not listed is read as text.
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
_LOOKS: Final = 5
_CHUNKS_SINCE: Final = 170_000  # libpq, PQsetChunkedRowsMode
_MORE: Final = (pq.ExecStatus.SINGLE_TUPLE, pq.ExecStatus.TUPLES_CHUNK)
_DROPPED: Final = (
    "XX000",
    "42P01",
    "42704",
)  # what the catalog's functions say of something that has just gone
# Counting up; one that counts down never meets what rows bring.
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


class PostgresqlSession(Session):
    """One connection in autocommit; transactions are opened where they are needed."""

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
            self.schema = schema or self._one("SELECT current_schema()") or "public"

    # --- the connection ---

    @contextmanager
    def talking(self) -> Iterator[None]:
        """The driver's errors as ours."""
        try:
            yield
        except psycopg.Error as error:
            raise translated(error, self.connection) from error

    def _one(self, statement: str, values: Sequence[Any] = ()) -> Any:
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
            self._cut()  # gone, or too busy to take it

    def _cut(self) -> None:
        """End the connection under whoever waits for it: a server that is stuck would never answer."""
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(self.connection.fileno())) as wire:
            wire.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def _reading(self, *, limited: bool = True) -> Iterator[None]:
        """A read-only transaction, which is given up at the end."""
        with self.talking():
            self.connection.execute("BEGIN READ ONLY")
            try:
                wait = int(limits.TARGET_LOCK_SECONDS * 1000)
                self.connection.execute(f"SET LOCAL lock_timeout = {wait}".encode())
                if limited:
                    most = int(limits.TARGET_QUERY_SECONDS * 1000)
                    self.connection.execute(f"SET LOCAL statement_timeout = {most}".encode())
                yield
            finally:
                if not self.connection.closed:
                    self.connection.execute("ROLLBACK")

    def _one_statement(self, text: str, values: Sequence[Any] = ()) -> None:
        """Execute a text that a user wrote by the extended protocol, in which the server accepts one statement.

        The simple protocol would carry out `...; COMMIT; BEGIN READ WRITE; ...` and so leave the read-only transaction.
        psycopg uses the extended one where there are values or results are asked for in binary form; it ignores
        `prepare=True` on connections that prepare nothing, as these, which may lead through a connection pooler.
        """
        self.connection.execute(text.encode(), values or None, binary=True)

    def _batch(self, result: pq.abc.PGresult, columns: Sequence[list[bytes | None]]) -> pa.RecordBatch:
        """The server's texts, column by column, as the types that a result names."""
        arrays, names = [], []
        for place, cells in enumerate(columns):
            texts = [None if cell is None else cell.decode() for cell in cells]
            modifier = result.fmod(place)
            scale = None if modifier < 0 else (((modifier - 4) & _SCALE_BITS) ^ 1024) - 1024
            arrays.append(read(texts, _RESULTS.get(result.ftype(place), "text"), scale))
            names.append((result.fname(place) or b"").decode())
        return pa.RecordBatch.from_arrays(arrays, names)

    # --- verification ---

    def describe(self) -> str:
        """Whom and where, for people."""
        with self.talking():
            row = self.connection.execute("SELECT current_user, current_database()").fetchone()
        assert row is not None
        return f"{row[1]} as {row[0]}"

    def permitted(self) -> str:
        """What this account may do in its schema. Raises `ConnectorError` where it may do nothing."""
        with self._reading():
            exists = self._one("SELECT 1 FROM pg_namespace WHERE nspname = %s", [self.schema])
            usable = exists and self._one("SELECT has_schema_privilege(%s, 'USAGE')", [self.schema])
            tables, writable = self.connection.execute(_RIGHTS, {"schema": self.schema}).fetchone() or (0, 0)
        if not exists:
            raise ConnectorError(
                f"There is no schema {self.schema}.", reason="no_schema", hint="Check the name of the schema."
            )
        if not usable:
            raise ConnectorError(
                f"This account may not use the schema {self.schema}.",
                reason="no_permission",
                hint=f"Its owner can say: GRANT USAGE ON SCHEMA {DIALECT.quoted(self.schema)} TO ...",
            )
        return f"{tables} tables in {self.schema}, {writable} of them to be written to."

    def sampled(self) -> str:
        """Read a row of the first table that may be read."""
        with self._reading():
            name = self._one(_READABLE, [self.schema])
            if name is None:
                return "There is no table to read from yet."
            table = sql.qualified(DIALECT, (self.schema, name))
            self.connection.execute(f"SELECT * FROM {table} LIMIT 1".encode())
        return f"Read from {name}."

    # --- looking around ---

    def metadata(self) -> Metadata:
        """See `Session.metadata`."""
        version = self.connection.info.server_version
        named = f"PostgreSQL {version // 10_000}.{version % 10_000}"
        return Metadata("postgresql", named, tuple(self._looked_up(lambda catalog: catalog.entities())))

    def _looked_up(self, look: Callable[[Catalog], Found]) -> Found:
        """What `look` finds in the catalog; once more where a table was dropped under its eyes."""
        for _ in range(_LOOKS):
            try:
                with self._reading():
                    return look(Catalog(self.connection, self.schema))
            except ConnectorError as error:
                if error.details.get("sqlstate") not in _DROPPED:
                    raise
                last = error
        raise last

    def entity(self, name: str) -> Entity | None:
        """See `Session.entity`."""
        return self._looked_up(lambda catalog: catalog.entity(name))

    def _table(self, entity: Entity) -> str:
        return sql.qualified(DIALECT, entity.parts)

    def sample(self, entity: Entity, limit: int) -> pa.RecordBatch:
        """See `Session.sample`."""
        names = sql.listed(DIALECT, (column.name for column in entity.fields)) or "*"
        query = f"SELECT {names} FROM {self._table(entity)} LIMIT {int(limit)}"
        with self._reading():
            self._one_statement(f"DECLARE sample NO SCROLL CURSOR FOR {query}")
            return self._gathered("sample", int(limit), limits.SAMPLE_BYTES)[0]

    def keys(
        self, entity: Entity, columns: Sequence[str], where: str = "", order: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """See `Session.keys`."""
        names = sql.listed(DIALECT, columns)
        condition = sql.where_clause("postgresql", where)
        condition += sql.ordered(DIALECT, columns, order)
        for batch in self._streamed(f"SELECT {names} FROM {self._table(entity)}{condition}"):
            if batch.num_rows:
                yield batch

    def _streamed(self, query: str) -> Iterator[pa.RecordBatch]:
        """The rows of a query; the last batch has none."""
        with self._reading(limited=False):
            self._one_statement(f"DECLARE keys NO SCROLL CURSOR FOR {query}")
            while True:
                rows = 0
                for result, columns in self._fetched("keys", limits.TARGET_READ_ROWS):
                    batch = self._batch(result, columns)
                    rows += batch.num_rows
                    yield batch
                if not rows:
                    return

    def _gathered(self, cursor: str, count: int, most: int) -> tuple[pa.RecordBatch, bool]:
        """The next rows of a cursor, and whether they have no more than `most` bytes; else only the first of them."""
        columns: list[list[bytes | None]] = []
        results, size = [], 0
        with closing(self._fetched(cursor, count)) as pieces:
            for result, more in pieces:
                results = [result]
                columns, size = _joined(columns, more), size + _size(more)
                if size > most:
                    break
        return self._batch(results[0], columns), size <= most

    def _fetched(self, cursor: str, count: int) -> Iterator[tuple[pq.abc.PGresult, list[list[bytes | None]]]]:
        """The next rows of a cursor in pieces of about `limits.QUERY_BATCH_BYTES`, one at least: a result that
        describes the columns, and their values."""
        columns: list[list[bytes | None]] = []
        size, pieces = 0, 0
        with closing(self._chunks(f"FETCH {count} FROM {cursor}".encode())) as chunks:
            for result in chunks:
                rows = range(result.ntuples)
                more = [[result.get_value(row, place) for row in rows] for place in range(result.nfields)]
                columns, size = _joined(columns, more), size + _size(more)
                if size >= limits.QUERY_BATCH_BYTES or (not rows and (size or not pieces)):
                    yield result, columns
                    pieces += 1
                    columns, size = [], 0

    def _chunks(self, statement: bytes) -> Iterator[pq.abc.PGresult]:
        """The result of a statement in chunks of a few rows, the last of which has none. The driver would otherwise
        hold all rows in memory, whatever their width."""
        server = self.connection.pgconn
        server.send_query_params(statement, None)
        if pq.version() >= _CHUNKS_SINCE:
            server.set_chunked_rows_mode(limits.QUERY_CHUNK_ROWS)
        else:
            server.set_single_row_mode()
        wire = select.poll()
        wire.register(server.socket, select.POLLIN | select.POLLOUT)
        while server.flush():
            wire.poll()
        wire.modify(server.socket, select.POLLIN)
        sending = True  # the server may still send rows
        try:
            while sending:
                while server.is_busy():
                    wire.poll()
                    server.consume_input()
                result = server.get_result()
                sending = result is not None and result.status in _MORE
                if result is None or result.status == pq.ExecStatus.FATAL_ERROR:
                    raise psycopg.DatabaseError("no result") if result is None else _failure(result)
                yield result
        finally:
            with suppress(psycopg.Error):
                if sending:  # nobody reads them
                    self.connection.cancel_safe(timeout=limits.PUSH_STUCK_SECONDS)
                while server.get_result() is not None:
                    pass

    def stream(self, text: str) -> Iterator[pa.RecordBatch]:
        """See `Session.stream`."""
        yield from self._streamed(sql.bound(text, {}, "%s")[0])

    def known(self, entity: Entity, columns: Sequence[str], wanted: pa.RecordBatch) -> pa.BooleanArray:
        """See `Session.known`. A combination that the columns' types cannot hold is not there."""
        with self._reading():
            return pa.array(self._known(entity, columns, wanted), pa.bool_())

    def _known(self, entity: Entity, columns: Sequence[str], wanted: pa.RecordBatch) -> list[bool]:
        if not wanted.num_rows:
            return []
        found = [entity.column(name) for name in columns]
        lists = [_literal(array) for array in wanted.columns]
        types = [f"%s::{_verbatim(column.declared) if column else 'text'}[]" for column in found]
        names = [f"c{place}" for place in range(len(columns))]
        same = " AND ".join(
            f"t.{_verbatim(DIALECT.quoted(column))} = w.{name}"
            for column, name in zip(columns, names, strict=True)
        )
        query = (
            f"SELECT EXISTS (SELECT FROM {_verbatim(self._table(entity))} t WHERE {same}) "
            f"FROM unnest({', '.join(types)}) WITH ORDINALITY w({', '.join(names)}, place) ORDER BY place"
        )
        try:
            with self.connection.transaction():
                return [row[0] for row in self.connection.execute(query.encode(), lists).fetchall()]
        except psycopg.DataError:
            half = wanted.num_rows // 2
            if not half:
                return [False]
            parts = (wanted.slice(0, half), wanted.slice(half))
            return [one for part in parts for one in self._known(entity, columns, part)]

    def query(self, text: str, values: Mapping[str, Any], limit: int) -> pa.RecordBatch:
        """See `Session.query`. It may read only, and take `limits.TARGET_QUERY_SECONDS`."""
        statement, found = sql.bound(text, values, "%s", doubled="%")
        with self._reading():
            # A cursor, so that the server produces no more rows than are wanted.
            self._one_statement(f"DECLARE answer NO SCROLL CURSOR FOR {statement}", found)
            batch, whole = self._gathered("answer", int(limit), limits.QUERY_ANSWER_BYTES)
        if not whole:
            raise sql.answer_too_large()
        return batch

    # --- statements ---

    def execute(self, statement: str) -> None:
        """See `Session.execute`."""
        self.may_write()
        with self.talking():
            self._one_statement(statement)

    def create(self, name: str, columns: Sequence[Column], keys: Sequence[str]) -> str:
        """See `Session.create`."""
        statement = self.create_statement(name, columns, keys)
        self.execute(statement)
        return statement

    def create_statement(self, name: str, columns: Sequence[Column], keys: Sequence[str]) -> str:
        """See `Session.create_statement`. A name without a dot is of the connection's own schema."""
        schema, dot, table = name.partition(".")
        parts = (schema, table) if dot else (self.schema, name)
        return sql.create_statement(DIALECT, parts, columns, keys)

    def target(self, writing: Writing) -> Target:
        """See `Session.target`."""
        self.may_write()
        if writing.entity.kind == "view" and writing.mode != "insert":
            raise ConnectorError(
                f"{writing.entity.name} is a view.", reason="unsupported", hint="Pick its table."
            )
        return PostgresqlTarget(self.connection, self.talking, writing)

    def advance(self, entity: Entity, column: str, highest: Callable[[], int | None]) -> int | None:
        """See `Session.advance`: the sequence that a serial or identity column owns."""
        with self.talking():
            found = self.connection.execute(_SEQUENCE, (self._table(entity), column)).fetchone()
            most = highest() if found is not None else None
            if found is None or most is None:
                return None
            sequence = sql.qualified(DIALECT, found)
            return self._one(
                f"SELECT setval(%s::regclass, %s) FROM {_verbatim(sequence)}"
                " WHERE last_value < %s OR (last_value = %s AND NOT is_called)",
                [sequence, most, most, most],
            )

    def settled(self, entity: Entity, proof: Mapping[str, Any]) -> bool | None:
        """See `Session.settled`: what the server knows of the transaction; one still open is ended with its session."""
        if not {"xid", "pid", "started"} <= proof.keys():
            return None
        deadline = time.monotonic() + limits.TARGET_SETTLE_SECONDS
        while True:
            try:
                status = self._one("SELECT txid_status(%s::bigint)", [proof["xid"]])
            except psycopg.errors.InvalidParameterValue:
                # Of the future: the number was lost in a crash with all that the transaction wrote, or this is another
                # server.
                same = (
                    proof.get("system") is not None
                    and self._one(f"SELECT {SYSTEM.decode()}") == proof["system"]
                )
                return False if same else self._rows_there(entity, proof)
            except psycopg.Error as error:
                raise translated(error, self.connection) from error
            if status != "in progress":
                # Its sender may sleep in the middle of what came after, and hold locks on those rows.
                self._ended(proof)
                return self._outcome(entity, proof, status)
            if time.monotonic() > deadline or not self._ended(proof):
                return None
            time.sleep(limits.PROBE_PAUSE_SECONDS)

    def _outcome(self, entity: Entity, proof: Mapping[str, Any], status: str | None) -> bool | None:
        """Whether a transaction of that status is the one of a proof, and was committed. After a crash its number may
        have been used again, unless its end had reached the disk."""
        if status == "aborted":
            return False
        started = self._one("SELECT pg_postmaster_start_time()::text")
        if status == "committed" and proof.get("server") in (None, started):
            return True
        there = self._rows_there(entity, proof)
        return True if there is None and status == "committed" else there

    def _rows_there(self, entity: Entity, proof: Mapping[str, Any]) -> bool | None:
        """Whether the rows of a proof are in the table; None where it names none, or only some are there."""
        rows = proof.get("rows")
        if not rows:
            return None
        try:
            found = [are_there(self.connection, entity, proof["keys"], [row]) for row in rows]
        except psycopg.Error as error:
            raise translated(error, self.connection) from error
        return found[0] if len(set(found)) == 1 else None

    def _ended(self, proof: Mapping[str, Any]) -> bool:
        """Ask the old session to end; False where this account may not."""
        try:
            with self.connection.transaction():
                self.connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE pid = %s AND backend_start::text = %s AND pid <> pg_backend_pid()",
                    (proof["pid"], proof["started"]),
                )
        except psycopg.errors.InsufficientPrivilege:
            return False
        except psycopg.Error as error:
            raise translated(error, self.connection) from error
        return True


def _failure(result: pq.abc.PGresult) -> psycopg.Error:
    """The driver's exception for a result that is an error."""
    state = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
    said = (result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or result.error_message).decode(
        errors="replace"
    )
    try:
        return psycopg.errors.lookup(state)(said)
    except KeyError:
        return psycopg.DatabaseError(said)


def _size(columns: Sequence[list[bytes | None]]) -> int:
    """The bytes of values, and some for each."""
    return sum(len(cell or b"") + 16 for cells in columns for cell in cells)


def _joined(columns: list[list[bytes | None]], more: list[list[bytes | None]]) -> list[list[bytes | None]]:
    for cells, others in zip(columns, more, strict=False):
        cells += others
    return columns or more


def _verbatim(text: str) -> str:
    """Text inside a statement that has parameters: the driver reads a percent sign as one."""
    return text.replace("%", "%%")


def _literal(array: pa.Array) -> str:
    """A column as the text of one PostgreSQL array."""
    offsets = pa.array([0, len(array)], pa.int32())
    return array_texts(pa.ListArray.from_arrays(offsets, plain(array)))[0].as_py()
