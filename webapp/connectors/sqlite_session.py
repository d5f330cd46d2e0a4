"""An open SQLite file: looking around, reading, and statements."""

from __future__ import annotations

import marshal
import sqlite3
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pyarrow as pa

from webapp import limits
from webapp.connectors import sql, sqlite_catalog, sqlite_reader
from webapp.connectors.base import ConnectorError, Session, Target, Writing
from webapp.connectors.shape import Column, Entity, Metadata
from webapp.connectors.sql_values import of_objects, read
from webapp.engine.formats.sql_dialects import DIALECTS

DIALECT: Final = DIALECTS["ansi"]
_BUSY: Final = ("SQLITE_BUSY", "SQLITE_LOCKED")
_readers: Final = threading.BoundedSemaphore(limits.QUERY_PROCESSES)


def translated(error: sqlite3.Error | sqlite3.Warning) -> ConnectorError:
    """SQLite's error as ours."""
    return _error_of(getattr(error, "sqlite_errorname", None) or "", str(error))


def _error_of(name: str, message: str) -> ConnectorError:
    said = sql.shortened(message)
    reason, hint, code, transient = "bad_query", "Check the statement.", "target_failed", False
    if name.startswith(_BUSY):
        reason, hint, transient = "locked", "Another push or program is writing to the file. Try again.", True
    elif name == "TOO_LARGE":
        reason, hint = "too_large", "Read fewer rows or shorter values."
    elif name == "SQLITE_INTERRUPT":
        reason, hint, code = "timeout", "The statement took too long or was cancelled.", "target_timeout"
    elif name == "SQLITE_FULL":
        reason, hint = (
            "full",
            (
                "The file has reached its largest size, or the SQLite files of the workspace take all of their quota. "
                "Delete SQLite connections that are no longer needed."
            ),
        )
    elif name in ("SQLITE_NOTADB", "SQLITE_CORRUPT"):
        reason, hint = "not_sqlite", "The file is not a SQLite database, or is damaged."
    elif name.startswith("SQLITE_READONLY"):
        reason, hint = "read_only", "The file may not be written to."
    elif name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN")):
        reason, hint, transient = "failed", "Ask the operator to look at the disk.", True
    elif name == "SQLITE_AUTH":
        reason, hint = "no_permission", "Other files and the settings of SQLite are out of reach here."
    elif "no such table" in said:
        reason, hint = "no_table", "Check the name of the table."
    elif "no such column" in said or "has no column" in said:
        reason, hint = "no_column", "The table has changed: read its columns again."
    elif "already exists" in said:
        reason, hint = "exists", "There is something of that name already."
    return ConnectorError(
        said,
        code=code,
        reason=reason,
        hint=hint,
        transient=transient,
        details={"native": name} if name else {},
    )


class SqliteSession(Session):
    """One connection in autocommit; transactions are opened where they are needed."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        read_only: bool,
        growth: Callable[[], int] = lambda: limits.SQLITE_FILE_BYTES,
    ) -> None:
        self.connection, self.path, self.read_only, self._growth = connection, path, read_only, growth
        self._closed = self._ours = False
        self._children: set[subprocess.Popen[bytes]] = set()
        sqlite_reader.confine(connection, limits.QUERY_VALUE_BYTES)
        connection.set_authorizer(self._allowed)
        with self.talking():
            self.bound()
            self._only(read_only)

    # --- the connection ---

    def _allowed(self, action: int, first: Any, second: Any, *more: Any) -> int:
        if action == sqlite3.SQLITE_PRAGMA and self._ours:
            return sqlite3.SQLITE_OK
        return sqlite_reader.authorized(action, first, second, *more)

    @contextmanager
    def talking(self) -> Iterator[None]:
        """SQLite's errors as ours."""
        try:
            yield
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise translated(error) from error

    def close(self) -> None:
        """See `Session.close`."""
        if not self._closed:
            self._closed = True
            self.connection.close()

    def cancel(self) -> None:
        """See `Session.cancel`."""
        for child in list(self._children):
            child.kill()
        if not self._closed:
            self.connection.interrupt()

    @contextmanager
    def _reading(self, *, limited: bool = True) -> Iterator[None]:
        """Nothing is written meanwhile, and it ends in time."""
        deadline = time.monotonic() + limits.TARGET_QUERY_SECONDS
        with self.talking():
            self._only(True)
            if limited:
                self.connection.set_progress_handler(lambda: time.monotonic() > deadline, limits.SQLITE_STEPS)
            try:
                yield
            finally:
                if not self._closed:
                    self.connection.set_progress_handler(None, 0)
                    self._only(self.read_only)

    def bound(self) -> None:
        """Bound what the next transaction may add to the file."""
        self._ours = True
        try:
            page = self.connection.execute("PRAGMA page_size").fetchone()[0]
            size = page * self.connection.execute("PRAGMA page_count").fetchone()[0]
            most = min(limits.SQLITE_FILE_BYTES, size + self._growth())
            # The first pages, which make a file a database, always fit; a larger file keeps its size.
            self.connection.execute(f"PRAGMA max_page_count = {max(2, most // page)}")
        finally:
            self._ours = False

    def _only(self, reading: bool) -> None:
        self._ours = True
        try:
            self.connection.execute(f"PRAGMA query_only = {'ON' if reading else 'OFF'}")
        finally:
            self._ours = False

    # --- verification ---

    def permitted(self) -> str:
        """Whether the file may be written to."""
        if not self.read_only:
            with self.talking():
                self.connection.execute("BEGIN IMMEDIATE")
                self.connection.execute("ROLLBACK")
        return "May be read." if self.read_only else "May be written to."

    def sampled(self) -> str:
        """Read a row of the first table."""
        with self._reading():
            found = sqlite_catalog.entities(self.connection)
            if not found:
                return "There is no table to read from yet."
            self.connection.execute(f"SELECT * FROM {_table(found[0])} LIMIT 1").fetchall()
        return f"Read from {found[0].name}."

    # --- looking around ---

    def metadata(self) -> Metadata:
        """See `Session.metadata`."""
        with self._reading():
            found = sqlite_catalog.entities(self.connection)
        return Metadata("sqlite", f"SQLite {sqlite3.sqlite_version}", tuple(found))

    def entity(self, name: str) -> Entity | None:
        """See `Session.entity`."""
        return sql.matched(self.metadata().entities, name)

    def sample(self, entity: Entity, limit: int) -> pa.RecordBatch:
        """See `Session.sample`."""
        names = sql.listed(DIALECT, (column.name for column in entity.fields)) or "*"
        with self._reading():
            cursor = self.connection.execute(f"SELECT {names} FROM {_table(entity)} LIMIT ?", (int(limit),))
            return _batch([column[0] for column in cursor.description], cursor.fetchall(), entity)

    def keys(
        self, entity: Entity, columns: Sequence[str], where: str = "", order: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """See `Session.keys`."""
        names = sql.listed(DIALECT, columns)
        condition = sql.where_clause("sqlite", where) + sql.ordered(DIALECT, columns, order)
        found, batches = self._read(f"SELECT {names} FROM {_table(entity)}{condition}")
        for rows in batches:
            yield _batch(found, rows, entity)

    def stream(self, text: str) -> Iterator[pa.RecordBatch]:
        """See `Session.stream`."""
        names, batches = self._read(sql.bound(text, {}, "?")[0])
        for rows in batches:
            yield _batch(names, rows)
        yield _batch(names, [])

    def _read(
        self, statement: str, values: Sequence[Any] = (), limit: int | None = None
    ) -> tuple[list[str], Iterator[list[Any]]]:
        """The names and rows of a user's query, carried out by a process of its own (see `sqlite_reader`)."""
        frames = self._frames(statement, values, limit)
        try:
            return next(frames)[0][1], _gathered(frames)
        except BaseException:
            frames.close()
            raise

    def _frames(
        self, statement: str, values: Sequence[Any], limit: int | None
    ) -> Iterator[tuple[tuple[Any, ...], int]]:
        request = {
            "path": quote(str(self.path)),
            "statement": statement,
            "values": tuple(values),
            "rows": limit,
            "batch_rows": limits.TARGET_READ_ROWS,
            "seconds": limits.TARGET_QUERY_SECONDS,
            "busy_seconds": limits.TARGET_CONNECT_SECONDS,
            "steps": limits.SQLITE_STEPS,
            "value_bytes": limits.QUERY_VALUE_BYTES,
            "row_bytes": limits.QUERY_ROW_BYTES,
            "answer_bytes": None if limit is None else limits.QUERY_ANSWER_BYTES,
            "memory_bytes": limits.QUERY_MEMORY_BYTES,
            "file_bytes": limits.SQLITE_FILE_BYTES,
        }
        if not _readers.acquire(timeout=limits.APART_TURN_SECONDS):
            raise ConnectorError(
                "Too many queries are running at the moment.",
                reason="busy",
                hint="Try again.",
                transient=True,
            )
        try:
            command = [sys.executable, "-I", "-S", sqlite_reader.__file__]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            with subprocess.Popen(command, env={}, cwd="/", **pipes) as child:
                self._children.add(child)
                try:
                    yield from _received(child, marshal.dumps(request))
                finally:
                    self._children.discard(child)
                    child.kill()
        finally:
            _readers.release()

    def known(self, entity: Entity, columns: Sequence[str], wanted: pa.RecordBatch) -> pa.BooleanArray:
        """See `Session.known`."""
        same = " AND ".join(f"{DIALECT.quoted(name)} = ?" for name in columns)
        query = f"SELECT EXISTS (SELECT 1 FROM {_table(entity)} WHERE {same})"
        cells = [
            bindable(array, entity.column(name) or Column(name, "other", ""))
            for array, name in zip(wanted.columns, columns, strict=True)
        ]
        with self._reading():
            found = [
                self.connection.execute(query, row).fetchone()[0] == 1 for row in zip(*cells, strict=True)
            ]
        return pa.array(found, pa.bool_())

    def query(self, text: str, values: Mapping[str, Any], limit: int) -> pa.RecordBatch:
        """See `Session.query`. It may read only, and take `limits.TARGET_QUERY_SECONDS`."""
        statement, found = sql.bound(text, values, "?")
        names, batches = self._read(statement, [_parameter(value) for value in found], int(limit))
        return _batch(names, [row for rows in batches for row in rows])

    # --- statements ---

    def execute(self, statement: str) -> None:
        """See `Session.execute`. What it leaves open is undone."""
        self.may_write()
        with self.talking():
            self.bound()
            self.connection.execute(statement).close()
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")

    def create(self, name: str, columns: Sequence[Column], keys: Sequence[str]) -> str:
        """See `Session.create`."""
        statement = self.create_statement(name, columns, keys)
        self.execute(statement)
        return statement

    def create_statement(self, name: str, columns: Sequence[Column], keys: Sequence[str]) -> str:
        """See `Session.create_statement`."""
        return sql.create_statement(DIALECT, (name,), columns, keys)

    def target(self, writing: Writing) -> Target:
        """See `Session.target`."""
        from webapp.connectors.sqlite_target import SqliteTarget

        self.may_write()
        if writing.entity.kind == "view":
            raise ConnectorError(
                f"{writing.entity.name} is a view.", reason="unsupported", hint="Pick its table."
            )
        return SqliteTarget(self.connection, self.talking, writing, self.bound)

    def settled(self, entity: Entity, proof: Mapping[str, Any]) -> bool | None:
        """See `Session.settled`: looks for the row that the proof names, while nobody else can write. Where somebody
        holds the file for longer than the connection waits, nothing can be told."""
        if not {"found", "absent"} & proof.keys():
            return None
        cells = proof.get("found") or proof["absent"]
        same = " AND ".join(f"{name} IS ?" for name in map(_place, cells))
        try:
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                row = self.connection.execute(
                    f"SELECT 1 FROM {_table(entity)} WHERE {same}", list(cells.values())
                )
                there = row.fetchone() is not None
            finally:
                self.connection.execute("ROLLBACK")
        except sqlite3.OperationalError as error:
            if (error.sqlite_errorname or "").startswith(_BUSY):
                return None
            raise translated(error) from error
        return there is ("found" in proof)


ROWID: Final = ""
"""Stands for the rowid in a proof: no column has an empty name."""


def _place(name: str) -> str:
    return "rowid" if name == ROWID else DIALECT.quoted(name)


def _table(entity: Entity) -> str:
    return sql.qualified(DIALECT, entity.parts)


def bindable(array: pa.Array, column: Column) -> list[Any]:
    """A column's values as sqlite3 binds them: numbers, bytes and text as they are, whatever else as SQL writes it."""
    values = sql.fitted(array, column)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if pa.types.is_boolean(kind):
        return values.cast(pa.int64()).to_pylist()
    if pa.types.is_uint64(kind):
        return [one if one is None or one < 2**63 else str(one) for one in values.to_pylist()]
    if (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_string(kind)
    ):
        return values.to_pylist()
    if pa.types.is_decimal(kind):
        return values.cast(pa.string()).to_pylist()
    words = sql.literals(DIALECT, values, column)
    # Literals stand between apostrophes, and dates hold none.
    return [None if word == "NULL" else word[1:-1] for word in words]


def _parameter(value: Any) -> Any:
    if value is None or isinstance(value, int | float | str | bytes):
        return value
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _gathered(frames: Iterator[tuple[tuple[Any, ...], int]]) -> Iterator[list[Any]]:
    """The rows of small frames in batches of TARGET_READ_ROWS, or of fewer that are long."""
    rows: list[Any] = []
    size = 0
    for (_, more), width in frames:
        rows += more
        size += width
        if len(rows) >= limits.TARGET_READ_ROWS or size >= limits.QUERY_ROW_BYTES:
            yield rows
            rows, size = [], 0
    if rows:
        yield rows


def _received(child: subprocess.Popen[bytes], request: bytes) -> Iterator[tuple[tuple[Any, ...], int]]:
    """The frames of a reader up to its end, with their sizes. Raises `ConnectorError`."""
    assert child.stdin is not None
    assert child.stdout is not None
    with suppress(BrokenPipeError), closing(child.stdin):
        child.stdin.write(request)
    while True:
        head = child.stdout.read(4)
        data = child.stdout.read(struct.unpack(">I", head)[0]) if len(head) == 4 else b""
        if not data:
            raise ConnectorError(
                "The query was ended.",
                reason="too_large",
                hint="It was cancelled, or needed too much memory.",
            )
        frame = marshal.loads(data)  # noqa: S302 - written by our own process
        if frame[0] == "end":
            return
        if frame[0] == "error":
            raise _error_of(frame[1], frame[2])
        yield frame, len(data)


def _batch(names: Sequence[str], rows: list[Any], entity: Entity | None = None) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    fields = [entity.column(name) if entity else None for name in names]
    arrays = [_column(list(values), field) for values, field in zip(columns, fields, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, list(names))


def _column(values: list[Any], column: Column | None) -> pa.Array:
    """Values as the column's declared type says, where all of them can be that; else as what they are."""
    kind = column.type if column else "other"
    if column is not None and kind in (
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "boolean",
        "decimal",
        "integer",
    ):
        texts = [None if one is None else str(one) for one in values]
        found = read(texts, kind, column.scale)
        if not pa.types.is_string(found.type):
            return found
    if kind in ("text", "json", "uuid", "enum") and all(
        one is None or isinstance(one, str) for one in values
    ):
        return pa.array(values, pa.string())
    return of_objects(values)
