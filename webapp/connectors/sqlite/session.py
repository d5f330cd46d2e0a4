"""A connection to a SQLite file: metadata, reading, statements, and writing rows.

The tables are read from the schema table and PRAGMAs, with five queries for any number of tables.
"""

from __future__ import annotations

import marshal
import re
import signal
import sqlite3
import struct
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote

import pyarrow as pa

from webapp import limits
from webapp.connectors.base import ConnectorError, RowError, Session, Target, WriteResult, WriteSpec
from webapp.connectors.column_values import convert_to_column, from_objects, from_texts
from webapp.connectors.schema import Column, ColumnType, Entity, Metadata, Relation, UniqueIndex
from webapp.connectors.sql import base as sql
from webapp.connectors.sqlite import reader
from webapp.engine.formats.sql_dialects import DIALECTS

_TABLES: Final = (
    "SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'view')"
    " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
)
_OF_TABLES: Final = "FROM sqlite_master m JOIN {pragma} p WHERE m.type IN ('table', 'view')"
_COLUMNS: Final = (
    'SELECT m.name, p.name, p.type, p."notnull", p.dflt_value, p.pk, p.hidden '
    + _OF_TABLES.format(pragma="pragma_table_xinfo(m.name)")
    + " ORDER BY m.name, p.cid"
)
_RELATIONS: Final = (
    'SELECT m.name, p.id, p."from", p."table", p."to" '
    + _OF_TABLES.format(pragma="pragma_foreign_key_list(m.name)")
    + " ORDER BY m.name, p.id, p.seq"
)
_UNIQUES: Final = (
    "SELECT m.name, l.name, i.name FROM sqlite_master m JOIN pragma_index_list(m.name) l"
    " JOIN pragma_index_info(l.name) i"
    " WHERE m.type = 'table' AND l.\"unique\" AND NOT l.partial AND l.origin <> 'pk'"
    " ORDER BY m.name, l.seq DESC, i.seqno"
)
_CONDITIONAL: Final = (
    "SELECT m.name, l.name, i.name, s.sql FROM sqlite_master m JOIN pragma_index_list(m.name) l"
    " JOIN pragma_index_info(l.name) i JOIN sqlite_master s ON s.type = 'index' AND s.name = l.name"
    " WHERE m.type = 'table' AND l.\"unique\" AND s.sql IS NOT NULL ORDER BY m.name, l.seq DESC, i.seqno"
)

# Types by words in the declared type, in order; then by affinity (SQLite, "Datatypes", 3.1).
_WORDS: Final[tuple[tuple[str, ColumnType], ...]] = (
    ("BOOL", "boolean"), ("JSON", "json"), ("UUID", "uuid"), ("INTERVAL", "interval"),
    ("WITH TIME ZONE", "timestamptz"),
    ("TIMESTAMP", "timestamp"), ("DATETIME", "timestamp"), ("DATE", "date"), ("TIME", "time"), ("INT", "integer"),
    ("CHAR", "text"), ("CLOB", "text"), ("TEXT", "text"), ("BLOB", "binary"), ("REAL", "float"), ("FLOA", "float"),
    ("DOUB", "float"), ("DEC", "decimal"), ("NUM", "decimal"),
)  # fmt: skip
_WORD: Final = re.compile(r'"(?:[^"]|"")+"|\[[^\]]+\]|`[^`]+`|[^\W\d]\w*')
_SIZES: Final = re.compile(r"\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_QUOTED: Final = r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\[[^\]]*\]|`[^`]*`|--[^\n]*|/\*.*?\*/"""
_CHECK: Final = re.compile(_QUOTED + r"|(?P<check>\bCHECK\s*\()", re.I | re.S)
_PARTS: Final = re.compile(_QUOTED + r"|[()]", re.S)
_COMPUTED: Final = (2, 3)  # hidden: virtual and stored generated columns
_HIDDEN: Final = 1  # of virtual tables


def entities(connection: sqlite3.Connection) -> list[Entity]:
    """Return all tables and views, ordered by name."""
    columns: defaultdict[str, list[Any]] = defaultdict(list)
    relations: defaultdict[str, list[Any]] = defaultdict(list)
    uniques: defaultdict[str, list[Any]] = defaultdict(list)
    indexes: defaultdict[str, list[Any]] = defaultdict(list)
    for rows_by_table, query in (
        (columns, _COLUMNS),
        (relations, _RELATIONS),
        (uniques, _UNIQUES),
        (indexes, _CONDITIONAL),
    ):
        for name, *row in connection.execute(query):
            rows_by_table[name].append(row)
    keys = {name: _keys(rows) for name, rows in columns.items()}
    return [
        replace(
            _entity(
                name,
                table_type,
                text or "",
                columns[name],
                _relations(relations[name], keys),
                uniques[name],
            ),
            unique_indexes=_unique_indexes(indexes[name], [row[0] for row in columns[name]]),
        )
        for name, table_type, text in connection.execute(_TABLES)
    ]


def _keys(rows: list[Any]) -> tuple[str, ...]:
    return tuple(row[0] for row in sorted((row for row in rows if row[4]), key=lambda row: row[4]))


def _unique_indexes(rows: list[Any], names: list[str]) -> tuple[UniqueIndex, ...]:
    """Return the unique indexes with a condition or over expressions, from their statements."""
    parts: defaultdict[tuple[str, str], list[str | None]] = defaultdict(list)
    for index, column, text in rows:
        parts[index, text].append(column)
    result = []
    for (_, text), columns in parts.items():
        pieces = re.split(r"\bWHERE\b", text, maxsplit=1, flags=re.I)
        condition = pieces[1].strip() if len(pieces) > 1 else ""
        column_names = tuple(column for column in columns if column is not None)
        if len(column_names) < len(columns):
            words = {word.strip('"[]`').casefold() for word in _WORD.findall(pieces[0].partition("(")[2])}
            column_names += tuple(
                name for name in names if name.casefold() in words and name not in column_names
            )
        if column_names and (condition or None in columns):
            result.append(UniqueIndex(column_names, condition))
    return tuple(result)


def _relations(rows: list[Any], keys: dict[str, tuple[str, ...]]) -> list[Relation]:
    by_number: defaultdict[int, list[Any]] = defaultdict(list)
    for number, *row in rows:
        by_number[number].append(row)
    return [
        Relation(
            f"fk_{number}",
            tuple(row[0] for row in parts),
            parts[0][1],
            keys.get(parts[0][1], ()) if parts[0][2] is None else tuple(row[2] for row in parts),
        )
        for number, parts in sorted(
            by_number.items(), reverse=True
        )  # SQLite numbers foreign keys from the last
    ]


def _entity(
    name: str,
    table_type: str,
    text: str,
    rows: list[Any],
    relations: list[Relation],
    indexed: list[Any],
) -> Entity:
    keys = _keys(rows)
    indexes: defaultdict[str, list[str]] = defaultdict(list)
    for index, part in indexed:
        indexes[index].append(part)
    # A part of an index over an expression has no name.
    uniques = [tuple(parts) for parts in indexes.values() if None not in parts]
    single = {item[0] for item in (*uniques, keys) if len(item) == 1}
    has_rowid = re.search(r"\)[^)]*\bWITHOUT\s+ROWID\b[^)]*$", text, re.I) is None
    rowid_column = keys[0] if len(keys) == 1 and has_rowid and table_type == "table" else None
    fields = []
    for column, declared, not_null, default, _, hidden in rows:
        if hidden == _HIDDEN:
            continue
        upper, sizes = declared.upper(), _SIZES.search(declared)
        is_rowid = column == rowid_column and upper == "INTEGER"
        kind: ColumnType = next((item for word, item in _WORDS if word in upper), "other")
        first, second = (int(size) if size else None for size in sizes.groups()) if sizes else (None, None)
        fields.append(
            Column(
                column,
                kind,
                declared,
                nullable=not (not_null or is_rowid or (not has_rowid and column in keys)),
                max_length=first if kind in ("text", "binary") else None,
                precision=first if kind == "decimal" else None,
                scale=(second or 0) if kind == "decimal" and first is not None else None,
                bits=64 if kind == "integer" else None,
                key=column in keys,
                unique=column in single,
                generated="computed" if hidden in _COMPUTED else "identity" if is_rowid else "",
                default=default,
            )
        )
    view: Literal["view", "table"] = "view" if table_type == "view" else "table"
    return Entity(
        name, (name,), tuple(fields), view, keys, tuple(uniques), tuple(relations), tuple(_checks(text))
    )


def _checks(text: str) -> Iterator[str]:
    """Yield the condition of each CHECK in a CREATE TABLE statement."""
    for match in _CHECK.finditer(text):
        if not match["check"]:
            continue
        depth = 1
        for part in _PARTS.finditer(text, match.end()):
            depth += {"(": 1, ")": -1}.get(part[0], 0)
            if not depth:
                yield text[match.end() : part.start()].strip()
                break


# --- Session ------------------------------------------------------------------------------------------------

DIALECT: Final = DIALECTS["ansi"]
_BUSY: Final = ("SQLITE_BUSY", "SQLITE_LOCKED")
_readers: Final = threading.BoundedSemaphore(limits.QUERY_PROCESSES)


def convert_error(error: sqlite3.Error | sqlite3.Warning) -> ConnectorError:
    """Convert an error of SQLite."""
    return _convert_error(getattr(error, "sqlite_errorname", None) or "", str(error))


def _convert_error(name: str, message: str) -> ConnectorError:
    text = sql.shorten_message(message)
    reason, hint, code, transient = "bad_query", "Check the statement.", "target_failed", False
    if name.startswith(_BUSY):
        reason, hint, transient = (
            "locked",
            "Another push or program is writing to the file. Try again later.",
            True,
        )
    elif name == "TOO_LARGE":
        reason, hint = "too_large", "Read fewer rows or shorter values."
    elif name == "SQLITE_INTERRUPT":
        reason, hint, code = "timeout", "The statement took too long or was cancelled.", "target_timeout"
    elif name == "SQLITE_FULL":
        reason, hint = (
            "full",
            (
                "The file has reached its maximum size, or the workspace's SQLite files have used up their quota. "
                "Delete SQLite connections that are no longer needed."
            ),
        )
    elif name in ("SQLITE_NOTADB", "SQLITE_CORRUPT"):
        reason, hint = "not_sqlite", "The file is not a SQLite database, or is damaged."
    elif name.startswith("SQLITE_READONLY"):
        reason, hint = "read_only", "The file is read-only."
    elif name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN")):
        reason, hint, transient = "failed", "Ask your administrator to check the disk.", True
    elif name == "SQLITE_AUTH":
        reason, hint = "no_permission", "Access to other files and to settings of SQLite is not allowed."
    elif "no such table" in text:
        reason, hint = "no_table", "Check the name of the table."
    elif "no such column" in text or "has no column" in text:
        reason, hint = "no_column", "The table has changed. Refresh its columns."
    elif "already exists" in text:
        reason, hint = "exists", "Choose a name that does not exist yet."
    return ConnectorError(
        text,
        code=code,
        reason=reason,
        hint=hint,
        transient=transient,
        details={"native": name} if name else {},
    )


class SqliteSession(Session):
    """A connection in autocommit mode. Transactions are opened where needed."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        read_only: bool,
        growth: Callable[[], int] = lambda: limits.SQLITE_FILE_BYTES,
    ) -> None:
        self.connection, self.path, self.read_only, self._growth = connection, path, read_only, growth
        self._closed = self._allows_pragmas = False
        self._children: set[subprocess.Popen[bytes]] = set()
        reader.confine(connection, limits.QUERY_VALUE_BYTES)
        connection.set_authorizer(self._authorize)
        with self.converting_errors():
            self.limit_growth()
            self._set_query_only(read_only)

    # --- the connection ---

    def _authorize(self, action: int, first: Any, second: Any, *more: Any) -> int:
        if action == sqlite3.SQLITE_PRAGMA and self._allows_pragmas:
            return sqlite3.SQLITE_OK
        return reader.authorize(action, first, second, *more)

    @contextmanager
    def converting_errors(self) -> Iterator[None]:
        """Convert errors of SQLite."""
        try:
            yield
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise convert_error(error) from error

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
    def _read_only(self, *, limited: bool = True) -> Iterator[None]:
        """Prevent writing in the block, and limit its time."""
        deadline = time.monotonic() + limits.TARGET_QUERY_SECONDS
        with self.converting_errors():
            self._set_query_only(True)
            if limited:
                self.connection.set_progress_handler(lambda: time.monotonic() > deadline, limits.SQLITE_STEPS)
            try:
                yield
            finally:
                if not self._closed:
                    self.connection.set_progress_handler(None, 0)
                    self._set_query_only(self.read_only)

    def limit_growth(self) -> None:
        """Limit how much the next transaction may add to the file."""
        self._allows_pragmas = True
        try:
            page = self.connection.execute("PRAGMA page_size").fetchone()[0]
            size = page * self.connection.execute("PRAGMA page_count").fetchone()[0]
            max_bytes = min(limits.SQLITE_FILE_BYTES, size + self._growth())
            # The first two pages, which make the file a database, always fit; a larger file keeps its size.
            self.connection.execute(f"PRAGMA max_page_count = {max(2, max_bytes // page)}")
        finally:
            self._allows_pragmas = False

    def _set_query_only(self, query_only: bool) -> None:
        self._allows_pragmas = True
        try:
            self.connection.execute(f"PRAGMA query_only = {'ON' if query_only else 'OFF'}")
        finally:
            self._allows_pragmas = False

    # --- verification ---

    def check_permission(self) -> str:
        """Check that the file can be written to, and return a message."""
        if not self.read_only:
            with self.converting_errors():
                self.connection.execute("BEGIN IMMEDIATE")
                self.connection.execute("ROLLBACK")
        return "Readable." if self.read_only else "Readable and writable."

    def check_sample(self) -> str:
        """Read a row of the first table, and return a message."""
        with self._read_only():
            tables = entities(self.connection)
            if not tables:
                return "No tables yet."
            self.connection.execute(f"SELECT * FROM {_table(tables[0])} LIMIT 1").fetchall()
        return f"Read from {tables[0].name}."

    # --- metadata ---

    def metadata(self) -> Metadata:
        """See `Session.metadata`."""
        with self._read_only():
            tables = entities(self.connection)
        return Metadata("sqlite", f"SQLite {sqlite3.sqlite_version}", tuple(tables))

    def entity(self, name: str) -> Entity | None:
        """See `Session.entity`."""
        return sql.find_entity(self.metadata().entities, name)

    def sample(self, entity: Entity, limit: int) -> pa.RecordBatch:
        """See `Session.sample`."""
        names = sql.column_list(DIALECT, (column.name for column in entity.fields)) or "*"
        with self._read_only():
            cursor = self.connection.execute(f"SELECT {names} FROM {_table(entity)} LIMIT ?", (int(limit),))
            return _batch([column[0] for column in cursor.description], cursor.fetchall(), entity)

    def keys(
        self, entity: Entity, columns: Sequence[str], where: str = "", order: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """See `Session.keys`."""
        names = sql.column_list(DIALECT, columns)
        condition = sql.where_clause("sqlite", where) + sql.order_by_clause(DIALECT, columns, order)
        column_names, batches = self._read(f"SELECT {names} FROM {_table(entity)}{condition}")
        for rows in batches:
            yield _batch(column_names, rows, entity)

    def stream(self, text: str) -> Iterator[pa.RecordBatch]:
        """See `Session.stream`."""
        names, batches = self._read(sql.bind_parameters(text, {}, "?")[0])
        for rows in batches:
            yield _batch(names, rows)
        yield _batch(names, [])

    def _read(
        self, statement: str, values: Sequence[Any] = (), limit: int | None = None
    ) -> tuple[list[str], Iterator[list[Any]]]:
        """Run a user's query in a separate process (see `reader`), and return the column names and the rows."""
        frames = self._frames(statement, values, limit)
        try:
            return next(frames)[0][1], _combine_frames(frames)
        except BaseException:
            frames.close()
            raise

    def _frames(
        self, statement: str, values: Sequence[Any], limit: int | None
    ) -> Generator[tuple[tuple[Any, ...], int]]:
        request = {
            "path": quote(str(self.path)),
            "statement": statement,
            "values": tuple(values),
            "rows": limit,
            "batch_rows": limits.TARGET_READ_ROWS,
            "seconds": limits.TARGET_QUERY_SECONDS,
            "busy_seconds": limits.TARGET_CONNECT_SECONDS,
            "steps": limits.SQLITE_STEPS,
            "step_seconds": limits.SQLITE_STEP_SECONDS,
            "value_bytes": limits.QUERY_VALUE_BYTES,
            "row_bytes": limits.QUERY_ROW_BYTES,
            "answer_bytes": None if limit is None else limits.QUERY_RESULT_BYTES,
            "memory_bytes": limits.QUERY_MEMORY_BYTES,
            "file_bytes": limits.SQLITE_FILE_BYTES,
        }
        if not _readers.acquire(timeout=limits.CHILD_QUEUE_SECONDS):
            raise ConnectorError(
                "Too many queries are running at the moment.",
                reason="busy",
                hint="Try again.",
                transient=True,
            )
        try:
            command = [sys.executable, "-I", "-S", reader.__file__]
            with subprocess.Popen(
                command,
                env={},
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            ) as child:
                self._children.add(child)
                try:
                    yield from _receive_frames(child, marshal.dumps(request))
                finally:
                    self._children.discard(child)
                    child.kill()
        finally:
            _readers.release()

    def contains(self, entity: Entity, columns: Sequence[str], candidates: pa.RecordBatch) -> pa.BooleanArray:
        """See `Session.contains`."""
        condition = " AND ".join(f"{DIALECT.quote_name(name)} = ?" for name in columns)
        query = f"SELECT EXISTS (SELECT 1 FROM {_table(entity)} WHERE {condition})"
        cells = [
            to_bindable(array, entity.column(name) or Column(name, "other", ""))
            for array, name in zip(candidates.columns, columns, strict=True)
        ]
        with self._read_only():
            existing = [
                self.connection.execute(query, row).fetchone()[0] == 1 for row in zip(*cells, strict=True)
            ]
        return pa.array(existing, pa.bool_())

    def query(self, text: str, values: Mapping[str, Any], limit: int) -> pa.RecordBatch:
        """See `Session.query`. Runs read-only for at most `limits.TARGET_QUERY_SECONDS`."""
        statement, parameters = sql.bind_parameters(text, values, "?")
        names, batches = self._read(statement, [_parameter(value) for value in parameters], int(limit))
        return _batch(names, [row for rows in batches for row in rows])

    # --- statements ---

    def execute(self, statement: str) -> None:
        """See `Session.execute`. A transaction that it leaves open is rolled back."""
        self.check_writable()
        with self.converting_errors():
            self.limit_growth()
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

    def target(self, spec: WriteSpec) -> Target:
        """See `Session.target`."""

        self.check_writable()
        if spec.entity.kind == "view":
            raise ConnectorError(
                f"{spec.entity.name} is a view.", reason="unsupported", hint="Select the underlying table."
            )
        return SqliteTarget(self.connection, self.converting_errors, spec, self.limit_growth)

    def can_suspend_foreign_keys(self) -> bool:
        """See `Session`: allowed if the connection may write to the file."""
        return not self.read_only

    @contextmanager
    def suspend_foreign_keys(self) -> Iterator[None]:
        """See `Session`."""
        self._check_foreign_keys(False)
        try:
            yield
        finally:
            with suppress(ConnectorError):
                self._check_foreign_keys(True)

    def _check_foreign_keys(self, check: bool) -> None:
        self._allows_pragmas = True
        try:
            with self.converting_errors():
                self.connection.execute(f"PRAGMA foreign_keys = {'ON' if check else 'OFF'}")
        finally:
            self._allows_pragmas = False

    def max_value(self, entity: Entity, column: str) -> int | None:
        """See `Session.max_value`."""
        with self.converting_errors():
            row = self.connection.execute(
                f"SELECT max({DIALECT.quote_name(column)}) FROM {_table(entity)}"
            ).fetchone()
        return None if row[0] is None else int(row[0])

    def count(self, entity: Entity) -> int:
        """See `Session.count`."""
        with self.converting_errors():
            row = self.connection.execute(f"SELECT count(*) FROM {_table(entity)}").fetchone()
        return int(row[0])

    def commit_outcome(self, entity: Entity, commit_token: Mapping[str, Any]) -> bool | None:
        """See `Session.commit_outcome`: looks up the row in the token while no other process can write.

        Returns None if another process locks the file for longer than the timeout.
        """
        if not {"found", "absent"} & commit_token.keys():
            return None
        cells = commit_token.get("found") or commit_token["absent"]
        names = ("rowid" if name == ROWID else DIALECT.quote_name(name) for name in cells)
        condition = " AND ".join(f"{name} IS ?" for name in names)
        try:
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                row = self.connection.execute(
                    f"SELECT 1 FROM {_table(entity)} WHERE {condition}", list(cells.values())
                )
                exists = row.fetchone() is not None
            finally:
                self.connection.execute("ROLLBACK")
        except sqlite3.OperationalError as error:
            if (error.sqlite_errorname or "").startswith(_BUSY):
                return None
            raise convert_error(error) from error
        return exists is ("found" in commit_token)


ROWID: Final = ""
"""The name of the rowid in a commit token. No column has an empty name."""


def _table(entity: Entity) -> str:
    return sql.qualified_name(DIALECT, entity.parts)


def to_bindable(array: pa.Array, column: Column) -> list[Any]:
    """Return a column's values as sqlite3 binds them: numbers, bytes and text unchanged, all others as SQL literals."""
    values = convert_to_column(array, column)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if pa.types.is_boolean(kind):
        values = values.cast(pa.int64())
        kind = values.type
    if pa.types.is_uint64(kind):
        return [value if value is None or value < 2**63 else str(value) for value in values.to_pylist()]
    if (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_string(kind)
    ):
        result: list[Any] = values.to_pylist()
        return result
    if pa.types.is_decimal(kind):
        result = values.cast(pa.string()).to_pylist()
        return result
    literals = sql.literals(DIALECT, values, column)
    # Literals are enclosed in apostrophes, and dates contain none.
    return [None if literal == "NULL" else literal[1:-1] for literal in literals]


def _parameter(value: Any) -> Any:
    if value is None or isinstance(value, int | float | str | bytes):
        return value
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _combine_frames(frames: Iterator[tuple[tuple[Any, ...], int]]) -> Iterator[list[Any]]:
    """Combine the rows of small frames to batches of TARGET_READ_ROWS, or fewer if they are large."""
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


def _receive_frames(child: subprocess.Popen[bytes], request: bytes) -> Iterator[tuple[tuple[Any, ...], int]]:
    """Yield the frames of a reader process with their sizes. Raises `ConnectorError`."""
    assert child.stdin is not None
    assert child.stdout is not None
    with suppress(BrokenPipeError), closing(child.stdin):
        child.stdin.write(request)
    while True:
        head = child.stdout.read(4)
        data = child.stdout.read(struct.unpack(">I", head)[0]) if len(head) == 4 else b""
        if not data:
            if child.wait() == -signal.SIGPROF:
                raise ConnectorError(
                    "A function in the query takes too long.",
                    code="target_timeout",
                    reason="timeout",
                    hint="Apply the function to shorter values.",
                )
            raise ConnectorError(
                "The query was stopped.",
                reason="too_large",
                hint="It was cancelled, or needed too much memory.",
            )
        frame = marshal.loads(data)  # noqa: S302 - written by our own process
        if frame[0] == "end":
            return
        if frame[0] == "error":
            raise _convert_error(frame[1], frame[2])
        yield frame, len(data)


def _batch(names: Sequence[str], rows: list[Any], entity: Entity | None = None) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    fields = [entity.column(name) if entity else None for name in names]
    arrays = [_column(list(values), field) for values, field in zip(columns, fields, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, list(names))


def _column(values: list[Any], column: Column | None) -> pa.Array:
    """Convert values to the column's declared type if all of them fit, otherwise by their own types."""
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
        texts = [None if value is None else str(value) for value in values]
        converted = from_texts(texts, kind, column.scale)
        if not pa.types.is_string(converted.type):
            return converted
    if kind in ("text", "json", "uuid", "enum") and all(
        value is None or isinstance(value, str) for value in values
    ):
        return pa.array(values, pa.string())
    return from_objects(values)


# Reasons for SQLite's extended result codes (sqlite.org/rescode.html).
_REASONS: Final = {
    "SQLITE_CONSTRAINT_UNIQUE": "unique",
    "SQLITE_CONSTRAINT_PRIMARYKEY": "unique",
    "SQLITE_CONSTRAINT_ROWID": "unique",
    "SQLITE_CONSTRAINT_FOREIGNKEY": "foreign_key",
    "SQLITE_CONSTRAINT_NOTNULL": "not_null",
    "SQLITE_CONSTRAINT_CHECK": "check",
    "SQLITE_CONSTRAINT_DATATYPE": "wrong_type",
    "SQLITE_MISMATCH": "wrong_type",
    "SQLITE_TOOBIG": "too_long",
}
_COLUMN: Final = re.compile(r"constraint failed: [^.,]+\.([^.,]+)$")
_PROOF_CELLS: Final = 8  # maximum number of columns in a commit token
_PROOF_CHARS: Final = 200


class SqliteTarget(Target):
    """See `Target`. `driver_errors` converts errors of SQLite; `limit_growth` limits what a transaction may
    add."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        driver_errors: Callable[[], AbstractContextManager[None]],
        spec: WriteSpec,
        limit_growth: Callable[[], None] = lambda: None,
    ) -> None:
        self.spec, self._limit_growth = spec, limit_growth
        self._connection, self._driver_errors = connection, driver_errors
        self._names = [column.name for column in spec.columns]
        self._commit_keys: dict[str, Any] = {}
        self._checked = False  # whether foreign keys are checked before the commit
        self._statement, self._order = self._build_statement()

    def _build_statement(self) -> tuple[str, list[int]]:
        """Return the statement with placeholders, and the index of the column for each placeholder."""
        spec, quoted = self.spec, DIALECT.quote_name
        table, keys = sql.qualified_name(DIALECT, spec.entity.parts), spec.key_columns
        returning = f" RETURNING {sql.column_list(DIALECT, spec.capture)}" if spec.capture else ""
        others = [name for name in self._names if name not in keys]
        order = list(range(len(self._names)))
        if spec.mode == "update":
            setting = ", ".join(f"{quoted(name)} = ?" for name in others or keys[:1])
            condition = " AND ".join(f"{quoted(name)} = ?" for name in keys)
            order = [self._names.index(name) for name in (*(others or keys[:1]), *keys)]
            return f"UPDATE {table} SET {setting} WHERE {condition}{returning}", order
        conflict = ""
        if spec.mode == "upsert":
            setting = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in others or keys[:1])
            conflict = f" ON CONFLICT ({sql.column_list(DIALECT, keys)}) DO UPDATE SET {setting}"
        placeholders = ", ".join("?" * len(self._names))
        names = sql.column_list(DIALECT, self._names)
        return f"INSERT INTO {table} ({names}) VALUES ({placeholders}){conflict}{returning}", order

    # --- transactions ---

    def begin(self) -> None:
        """See `Target.begin`."""
        if not self._connection.in_transaction:
            self._commit_keys = {}
            with self._driver_errors():
                self._limit_growth()
                self._connection.execute("BEGIN IMMEDIATE")

    def commit_token(self) -> dict[str, Any]:
        """See `Target.commit_token`: a row that exists after the commit, or one that no longer exists."""
        return self._commit_keys

    def commit(self) -> None:
        """See `Target.commit`."""
        try:
            self._connection.execute("COMMIT")
        except sqlite3.IntegrityError as error:
            self.rollback()
            raise ConnectorError(
                f"Rejected at commit: {error}",
                reason="deferred",
                hint="These rows violate a deferred foreign key of the table.",
            ) from error
        except sqlite3.Error as error:
            raise convert_error(error) from error

    def check_constraints_immediately(self) -> bool:
        """See `Target.check_constraints_immediately`."""
        if self._checked:
            return False
        self._checked = True
        return True

    def rollback(self) -> None:
        """See `Target.rollback`."""
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            pass  # closed, and the transaction with it

    # --- rows ---

    def statements(self, batch: pa.RecordBatch) -> list[str]:
        """See `Target.statements`."""
        return sql.statements(DIALECT, self.spec, batch)

    def send(self, batch: pa.RecordBatch) -> WriteResult:
        """See `Target.send`."""
        cells = self._cells(batch)
        rows = list(zip(*(cells[index] for index in self._order), strict=True))
        failures, captured = (
            self._checked_rows(cells, rows) if self._checked else self._write_rows(self._statement, rows)
        )
        self._record_commit_key(cells, failures, len(rows))
        return WriteResult(failures, self._keys(captured) if self.spec.capture else None)

    def delete(self, batch: pa.RecordBatch) -> WriteResult:
        """See `Target.delete`."""
        keys = self.spec.key_columns
        condition = " AND ".join(f"{DIALECT.quote_name(name)} = ?" for name in keys)
        table = sql.qualified_name(DIALECT, self.spec.entity.parts)
        cells = self._cells(batch)
        rows = list(zip(*(cells[self._names.index(name)] for name in keys), strict=True))
        failures, _ = self._write_rows(f"DELETE FROM {table} WHERE {condition}", rows)
        last = _last_accepted(failures, len(rows))
        if last is not None:
            self._commit_keys = {"absent": dict(zip(keys, rows[last], strict=True))}
        return WriteResult(failures)

    def _cells(self, batch: pa.RecordBatch) -> list[list[Any]]:
        return [
            to_bindable(array, column) for array, column in zip(batch.columns, self.spec.columns, strict=True)
        ]

    def _checked_rows(
        self, cells: list[list[Any]], rows: list[tuple[Any, ...]]
    ) -> tuple[list[RowError], list[Any]]:
        """Write rows as `_write_rows` does, and reject those whose deferred foreign keys would fail at the commit.

        They are looked for before the rows are written, because a row that waits for its parent lets SQLite search
        the whole table at each later row; and afterwards, because rows may be rejected that others refer to.
        """
        with self._driver_errors():
            orphans = self._orphans(cells, range(len(rows)), written=False)
        while True:
            remaining = [index for index in range(len(rows)) if index not in orphans]
            with self._driver_errors():
                self._connection.execute("SAVEPOINT chunk")
            rejected, captured = self._write_rows(self._statement, [rows[index] for index in remaining])
            failures = [replace(error, index=remaining[error.index]) for error in rejected]
            failed = {error.index for error in failures}
            with self._driver_errors():
                new_orphans = self._orphans(
                    cells, [index for index in remaining if index not in failed], written=True
                )
                if new_orphans:
                    self._connection.execute("ROLLBACK TO chunk")
                self._connection.execute("RELEASE chunk")
            if not new_orphans:
                break
            orphans |= new_orphans
        answers = dict(zip(remaining, captured, strict=True)) if captured else {}
        errors = sorted([*failures, *orphans.values()], key=lambda error: error.index)
        return errors, [answers.get(index) for index in range(len(rows))] if captured else []

    def _orphans(self, cells: list[list[Any]], rows: Iterable[int], *, written: bool) -> dict[int, RowError]:
        """Return the errors of the rows that refer to missing rows, by position. `written`: all of them are in the
        table; otherwise, they count as parents of each other."""
        orphans: dict[int, RowError] = {}
        for relation in self.spec.entity.relations:
            if not relation.entity_columns or not set(relation.columns) <= set(self._names):
                continue
            condition = " AND ".join(f"{DIALECT.quote_name(name)} = ?" for name in relation.entity_columns)
            select = f"SELECT 1 FROM {DIALECT.quote_name(relation.entity)} WHERE {condition}"
            keys = self._values(cells, relation.columns)
            is_self_reference = relation.entity == self.spec.entity.name
            own_keys = self._values(cells, relation.entity_columns) if is_self_reference else []
            if is_self_reference and not own_keys and not written:
                continue  # SQLite assigns the keys, so they are not known yet
            siblings = set() if written else {_normalized(key) for key in own_keys}
            exists: dict[tuple[Any, ...], bool] = {}
            missing = []
            for index in rows:
                key = keys[index]
                if None not in key and key not in exists:
                    exists[key] = self._connection.execute(select, key).fetchone() is not None
                if not exists.get(key, True) and _normalized(key) not in siblings:
                    missing.append(index)
            if own_keys and self.spec.mode == "insert":
                existing = set() if written else {key for key, found in exists.items() if found}
                missing = _with_descendants(keys, own_keys, missing, existing)
            name = "SQLITE_CONSTRAINT_FOREIGNKEY"
            message = sql.shorten_message(f"FOREIGN KEY constraint failed: {', '.join(relation.columns)}")
            column = relation.columns[0] if len(relation.columns) == 1 else None
            orphans |= {index: RowError(index, _REASONS[name], message, name, column) for index in missing}
        return orphans

    def _values(self, cells: list[list[Any]], names: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return the values of columns, row by row; empty if they are not written."""
        if not set(names) <= set(self._names):
            return []
        return list(zip(*(cells[self._names.index(name)] for name in names), strict=True))

    def _write_rows(self, statement: str, rows: list[tuple[Any, ...]]) -> tuple[list[RowError], list[Any]]:
        """Return the rejected rows, and the values that RETURNING produced for each row."""
        failures: list[RowError] = []
        captured: list[Any] = []
        size = limits.TARGET_SAVEPOINT_ROWS
        with self._driver_errors():
            for start in range(0, len(rows), size):
                piece = rows[start : start + size]
                if self.spec.capture or not self._write_all(statement, piece):
                    failures += self._write_each(statement, piece, start, captured)
        return failures, captured

    def _write_all(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> bool:
        """Write all rows and return True, or none and return False."""
        self._connection.execute("SAVEPOINT rows")
        try:
            written = self._connection.executemany(statement, rows).rowcount
        except (sqlite3.Error, OverflowError) as error:
            if not _is_row_error(error):
                raise
            written = -1
        self._check_open()
        if written != len(rows):
            self._connection.execute("ROLLBACK TO rows")
        self._connection.execute("RELEASE rows")
        return written == len(rows)

    def _write_each(
        self, statement: str, rows: Sequence[tuple[Any, ...]], start: int, captured: list[Any]
    ) -> list[RowError]:
        failures: list[RowError] = []
        for index, row in enumerate(rows, start):
            answer = None
            try:
                cursor = self._connection.execute(statement, row)
                if self.spec.capture:
                    answer = cursor.fetchone()
                    cursor.fetchall()
                written = answer is not None if self.spec.capture else cursor.rowcount > 0
                if not written and statement.startswith("INSERT"):
                    message = "A trigger or constraint of the table silently skipped this row."
                    failures.append(RowError(index, "refused", message))
                elif not written:
                    message = f"No such row exists in {self.spec.entity.name}."
                    failures.append(RowError(index, "missing_row", message))
            except (sqlite3.Error, OverflowError) as error:
                if not _is_row_error(error):
                    raise
                self._check_open()
                failures.append(_failure(index, error))
            captured.append(answer)
        return failures

    def _check_open(self) -> None:
        if not self._connection.in_transaction:
            raise ConnectorError(
                "A trigger or constraint of the table rolled back the whole chunk.",
                reason="rolled_back",
                hint="Remove RAISE(ROLLBACK) or ON CONFLICT ROLLBACK from the table.",
            )

    def _keys(self, captured: list[Any]) -> pa.RecordBatch:
        arrays = []
        for index, name in enumerate(self.spec.capture):
            values = [None if row is None or row[index] is None else str(row[index]) for row in captured]
            column = self.spec.entity.column(name)
            arrays.append(
                from_texts(values, column.type if column else "text", column.scale if column else None)
            )
        return pa.RecordBatch.from_arrays(arrays, list(self.spec.capture))

    # --- commit token ---

    def _record_commit_key(self, cells: list[list[Any]], failures: list[RowError], count: int) -> None:
        """Remember the last inserted row: its rowid, if it has one, and its values."""
        last = _last_accepted(failures, count)
        if self.spec.mode != "insert" or last is None:
            return
        written = {name: values[last] for name, values in zip(self._names, cells, strict=True)}
        names = [name for name in written if isinstance(written[name], int | str)][:_PROOF_CELLS]
        table = sql.qualified_name(DIALECT, self.spec.entity.parts)
        selected = "".join(f", {DIALECT.quote_name(name)}" for name in names)
        try:
            row = self._connection.execute(
                f"SELECT rowid{selected} FROM {table} WHERE rowid = last_insert_rowid()"
            )
            identity = dict(zip((ROWID, *names), row.fetchone() or (), strict=False))
        except sqlite3.OperationalError:
            identity = {}  # WITHOUT ROWID tables: the keys are sent with the row
            if set(self.spec.entity.keys) <= set(names):
                identity = {name: written[name] for name in self.spec.entity.keys}
        commit_token = {
            name: value
            for name, value in identity.items()
            if isinstance(value, int) or (isinstance(value, str) and len(value) <= _PROOF_CHARS)
        }
        self._commit_keys = {"found": commit_token} if commit_token else self._commit_keys


def _last_accepted(failures: list[RowError], count: int) -> int | None:
    """Return the last accepted row."""
    rejected = {failure.index for failure in failures}
    return next((row for row in range(count - 1, -1, -1) if row not in rejected), None)


def _is_row_error(error: Exception) -> bool:
    if isinstance(error, OverflowError):
        return True
    name = getattr(error, "sqlite_errorname", None) or ""
    return name.startswith("SQLITE_CONSTRAINT") or name in _REASONS


def _normalized(key: tuple[Any, ...]) -> tuple[str, ...]:
    """Return a key in a form in which all keys that SQLite may consider equal are equal."""
    numbers = (int(item) if isinstance(item, float) and item.is_integer() else item for item in key)
    return tuple(str(number).strip().casefold() for number in numbers)


def _with_descendants(
    keys: list[tuple[Any, ...]],
    own: list[tuple[Any, ...]],
    missing: list[int],
    existing: set[tuple[Any, ...]],
) -> list[int]:
    """Add the rows that refer to these rows, directly or through others. `keys` are the rows' foreign keys, `own` what
    they refer to, and `existing` the foreign keys that exist without these rows."""
    children: dict[tuple[Any, ...], list[int]] = {}
    parents = Counter(own)
    for index, key in enumerate(keys):
        if None not in key and key not in existing:
            children.setdefault(key, []).append(index)
    result, pending = set(missing), list(missing)
    while pending:
        removed = own[pending.pop()]
        parents[removed] -= 1
        if parents[removed]:
            continue  # another row has the same key
        added = [index for index in children.get(removed, ()) if index not in result]
        result.update(added)
        pending += added
    return sorted(result)


def _failure(index: int, error: Exception) -> RowError:
    if isinstance(error, OverflowError):
        return RowError(index, "out_of_range", "The number has more than 64 bits.")
    name = getattr(error, "sqlite_errorname", None) or ""
    column = _COLUMN.search(str(error))
    return RowError(
        index, _REASONS.get(name, "refused"), sql.shorten_message(str(error)), name, column and column[1]
    )
