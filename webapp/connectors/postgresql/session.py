"""A connection to PostgreSQL: metadata, reading, statements, and writing rows.

Rows are written with COPY within savepoints, or through a temporary table. A chunk is one transaction, in which one
savepoint is always open. After the server accepts a piece, the savepoint is renewed; after an error, the transaction
returns to it, and `row_isolation.isolate_bad_rows` finds the bad row: by the line that COPY names, by the key in the
error's DETAIL (foreign keys are checked at the end of a statement, when line numbers are unknown), or by splitting the
piece.

Rows are sent through a temporary table if existing rows are matched by key, or if generated keys are returned.

The order of returned keys: an INSERT .. SELECT .. ORDER BY computes defaults row by row in that order, and RETURNING
produces one row for each inserted row (executor's ModifyTable; no plan that writes is parallel). If the count differs
from the rows sent, the order is unknown, and the piece counts as rejected.
"""

from __future__ import annotations

import os
import re
import select
import socket
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import pq

from webapp import limits
from webapp.connectors.base import ConnectorError, RowError, Session, Target, WriteResult, WriteSpec
from webapp.connectors.column_values import from_texts, to_plain
from webapp.connectors.postgresql.catalog import Catalog
from webapp.connectors.postgresql.copy import CopyBinary, CopyText, Lines, array_texts
from webapp.connectors.postgresql.errors import convert_error
from webapp.connectors.row_isolation import Attempt, BatchSizer, RowRejection, isolate_bad_rows
from webapp.connectors.schema import Column, ColumnType, Entity, Metadata
from webapp.connectors.sql import base as sql
from webapp.engine.formats.sql_dialects import DIALECTS

_SAVE: Final = b"SAVEPOINT rows"
_RENEW: Final = b"RELEASE rows; SAVEPOINT rows"
_ROLLBACK: Final = b"ROLLBACK TO rows"
_BEGIN_CHECKED: Final = b"BEGIN; SET CONSTRAINTS ALL IMMEDIATE; SAVEPOINT rows"
# `Key (a, b)=(1, x) is not present in table "t".`, in any language.
_KEY: Final = re.compile(r"\((?P<columns>.*?)\)=\((?P<values>.*)\)", re.S)
# `PL/pgSQL function f() line 3 at RAISE` of a function without arguments, such as that of a trigger.
_FUNCTION: Final = re.compile(r"^.*PL/pgSQL.*?([^\s(]+)\(\)", re.M)
# The identifier of the cluster, if the account can read it. Physical copies and standbys share it.
SYSTEM_IDENTIFIER: Final = (
    b"CASE WHEN has_function_privilege('pg_control_system()', 'execute')"
    b" THEN (SELECT system_identifier::text FROM pg_control_system()) END"
)
_SKIPPED: Final = RowRejection("refused", "A trigger or rule of the table silently skipped this row.")
DIALECT: Final = DIALECTS["postgresql"]
ResultT = TypeVar("ResultT")
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


class PostgresqlTarget(Target):
    """See `Target`. `driver_errors` converts errors of the driver."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        driver_errors: Callable[[], AbstractContextManager[None]],
        spec: WriteSpec,
    ) -> None:
        self.spec = spec
        self._connection, self._driver_errors = connection, driver_errors
        self._text = CopyText(spec.columns)
        self._numbered = CopyText(spec.columns, numbered=True)
        self._binary = CopyBinary(spec.columns)
        table = sql.qualified_name(DIALECT, spec.entity.parts)
        names = sql.column_list(DIALECT, (column.name for column in spec.columns))
        self._copy = f"COPY {table} ({names}) FROM STDIN".encode()
        # The context of a COPY error starts with the table's name, then the word for "line" in the server's
        # language.
        self._line = re.compile(rf"^COPY {re.escape(spec.entity.parts[-1])}, \S+ (\d+)", re.M)
        self._staging: StagingTable | None = None
        self._shortest_key = _shortest_key(spec)
        self._inserted: list[list[str]] = []
        self._batch_sizer, self._staging_sizer = (
            BatchSizer(*limits.TARGET_PIECE_ROWS, limits.TARGET_PIECE_COST_ROWS) for _ in range(2)
        )
        self._open = False
        self._begin = b"BEGIN; SAVEPOINT rows"
        self._refers_to_itself = any(
            relation.entity == spec.entity.name for relation in spec.entity.relations
        )
        self._deletes = False

    # --- transactions ---

    def begin(self) -> None:
        """See `Target.begin`."""
        if self._open:
            return
        with self._driver_errors():
            if self._staging is None and self._uses_staging:
                self._staging = StagingTable(self._connection, self.spec)
            self._connection.execute(self._begin)
        if self._staging is not None:
            self._staging.used = False
        self._open, self._inserted = True, []

    @property
    def _uses_staging(self) -> bool:
        return self.spec.mode != "insert" or bool(self.spec.capture)

    def commit_token(self) -> dict[str, Any]:
        """See `Target.commit_token`: the transaction's number, the session, and the keys of two inserted
        rows.

        A server that crashes may reuse the number, so after a restart the rows decide.
        """
        with self._driver_errors():
            row = self._connection.execute(
                # The function behind pg_stat_activity, without the tables that the view joins.
                b"SELECT txid_current(), pid, backend_start::text, pg_postmaster_start_time()::text, "
                + SYSTEM_IDENTIFIER
                + b" FROM pg_stat_get_activity(pg_backend_pid())"
            ).fetchone()
        assert row is not None
        commit_token = {"xid": row[0], "pid": row[1], "started": row[2], "server": row[3], "system": row[4]}
        rows = [values for values in self._inserted if self._exists(values)]
        return {**commit_token, "keys": list(self._shortest_key), "rows": rows} if rows else commit_token

    def _exists(self, values: list[str]) -> bool:
        """Return whether a row is found by its key: a trigger or the column's type may have changed the
        values."""
        try:
            return keys_exist(self._connection, self.spec.entity, self._shortest_key, [values])
        except psycopg.Error as error:
            if self._connection.closed:
                with self._driver_errors():
                    raise error
            self._connection.execute(_ROLLBACK)
            return False

    def _record_keys(self, batch: pa.RecordBatch, failures: list[RowError]) -> None:
        """Remember the keys of the first and the last inserted row."""
        if self.spec.mode != "insert" or not self._shortest_key:
            return
        rejected = {error.index for error in failures}
        directions = (range(batch.num_rows), range(batch.num_rows - 1, -1, -1))
        accepted = [next((row for row in rows if row not in rejected), None) for rows in directions]
        selected = pa.array(sorted({row for row in accepted if row is not None}), pa.int64())
        columns = [
            self._key(batch, name).take(selected).cast(pa.string()).to_pylist() for name in self._shortest_key
        ]
        keys = [list(values) for values in zip(*columns, strict=True) if None not in values]
        self._inserted = [*self._inserted[:1], *keys][-2:]

    def commit(self) -> None:
        """See `Target.commit`."""
        self._open = False
        try:
            with self._driver_errors():
                cursor = self._connection.execute(b"COMMIT")
        except ConnectorError as error:
            if sql.is_row_error(error.details.get("sqlstate", "")):
                raise ConnectorError(
                    f"Rejected at commit: {error.message}",
                    reason="deferred",
                    hint="These rows violate a deferred constraint of the table.",
                    details=error.details,
                ) from error
            raise
        if cursor.statusmessage != "COMMIT":
            raise ConnectorError("The server rolled the transaction back.", reason="deferred")

    def check_constraints_immediately(self) -> bool:
        """See `Target.check_constraints_immediately`. In a table that refers to itself, a row may refer to a later one:
        `_write` tries such rows again, which deleting and updating do not."""
        retries = self.spec.mode != "update" and not self._deletes
        if self._begin == _BEGIN_CHECKED or (self._refers_to_itself and not retries):
            return False
        self._begin = _BEGIN_CHECKED
        return True

    def rollback(self) -> None:
        """See `Target.rollback`."""
        self._open, self._staging = False, None  # may have been created in this transaction
        try:
            if not self._connection.closed:
                self._connection.execute(b"ROLLBACK")
        except psycopg.Error:
            pass  # the connection is lost, and the transaction with it

    # --- rows ---

    def statements(self, batch: pa.RecordBatch) -> list[str]:
        """See `Target.statements`."""
        return sql.statements(DIALECT, self.spec, batch)

    def send(self, batch: pa.RecordBatch) -> WriteResult:
        """See `Target.send`."""
        return self.prepare(batch)()

    def prepare(self, batch: pa.RecordBatch) -> Callable[[], WriteResult]:
        """See `Target.prepare`: converts the rows to COPY format."""
        if not self._uses_staging and (lines := self._binary.lines(batch)) is not None:
            return partial(self._send, batch, lines, [])
        return partial(
            self._send, batch, *(self._numbered if self._uses_staging else self._text).lines(batch)
        )

    def _send(self, batch: pa.RecordBatch, lines: Lines, failures: list[RowError]) -> WriteResult:
        if self._staging is None:
            copy = self._copy + b" (FORMAT binary)" if lines.binary else self._copy
            failures += self._write(lines.rows, lambda piece: self._copy_rows(copy, lines, piece, batch))
            self._record_keys(batch, failures)
            return WriteResult(sorted(failures, key=_index_of))
        staging = self._staging
        rows, failures = self._copy_to_staging(staging, batch, lines, failures)
        if self.spec.mode == "update":
            failures += self._match_rows(rows, batch, staging.update)
        else:
            failures += self._write(rows, lambda piece: self._insert_staged(staging, piece, batch))
        self._record_keys(batch, failures)
        return WriteResult(
            sorted(failures, key=_index_of),
            staging.captured(batch.num_rows) if self.spec.capture else None,
        )

    def _write(self, rows: np.ndarray, attempt: Attempt) -> list[RowError]:
        """Write rows, and return the errors of the rejected ones. If deferred constraints are checked with each
        statement, rows that refer to rows of this table are tried again once the others exist."""
        failures = isolate_bad_rows(rows, attempt, self._batch_sizer)
        while self._begin == _BEGIN_CHECKED and self._refers_to_itself:
            orphans = [error.index for error in failures if error.reason == "foreign_key"]
            if not orphans:
                break
            remaining = isolate_bad_rows(np.array(orphans), attempt, self._batch_sizer)
            failures = [error for error in failures if error.reason != "foreign_key"] + remaining
            if len(remaining) == len(orphans):
                break
        return failures

    def delete(self, batch: pa.RecordBatch) -> WriteResult:
        """See `Target.delete`."""
        self._deletes = True
        if self._staging is None:
            with self._driver_errors():
                self._staging = StagingTable(self._connection, self.spec)
        rows, failures = self._copy_to_staging(self._staging, batch, *self._numbered.lines(batch))
        failures += self._match_rows(rows, batch, self._staging.delete)
        return WriteResult(sorted(failures, key=_index_of))

    def _copy_to_staging(
        self, staging: StagingTable, batch: pa.RecordBatch, lines: Lines, failures: list[RowError]
    ) -> tuple[np.ndarray, list[RowError]]:
        """Copy all rows to the temporary table, which checks the columns' types. Returns the accepted rows."""
        with self._driver_errors():
            staging.clear()
            self._connection.execute(_RENEW)  # later pieces roll back to the empty table
        line = re.compile(rf"^COPY {re.escape(staging.name)}, \S+ (\d+)", re.M)
        copy = partial(self._copy_rows, staging.copy, lines, batch=batch, line=line)
        failures += isolate_bad_rows(lines.rows, lambda piece: copy(piece=piece), self._staging_sizer)
        return np.setdiff1d(lines.rows, [error.index for error in failures], assume_unique=True), failures

    def _copy_rows(
        self,
        statement: bytes,
        lines: Lines,
        piece: np.ndarray,
        batch: pa.RecordBatch,
        line: re.Pattern[str] | None = None,
    ) -> RowRejection | None:
        cursor = self._connection.cursor()
        try:
            with cursor.copy(statement) as copy:
                copy.write(lines.select(piece))
            if cursor.rowcount == piece.size:
                self._connection.execute(_RENEW)
                return None
            self._connection.execute(_ROLLBACK)
            return _SKIPPED
        except psycopg.Error as error:
            return self._rejection(error, piece, batch, line or self._line)

    def _insert_staged(
        self, staging: StagingTable, piece: np.ndarray, batch: pa.RecordBatch
    ) -> RowRejection | None:
        """Insert rows from the temporary table into the target table."""
        try:
            if staging.insert(piece):
                self._connection.execute(_RENEW)
                return None
            self._connection.execute(_ROLLBACK)
            return _SKIPPED
        except psycopg.Error as error:
            return self._rejection(error, piece, batch)

    def _match_rows(
        self, rows: np.ndarray, batch: pa.RecordBatch, action: Callable[[np.ndarray], np.ndarray]
    ) -> list[RowError]:
        """Update or delete existing rows by key. Rows that do not exist fail.

        If a key occurs more than once, each occurrence is processed by its own statement, in order.
        """
        missing_rows: list[np.ndarray] = []

        def attempt(piece: np.ndarray) -> RowRejection | None:
            try:
                matched = action(piece)
                self._connection.execute(_RENEW)
            except psycopg.Error as error:
                return self._rejection(error, piece, batch, finding=True)
            missing_rows.append(np.setdiff1d(piece, matched, assume_unique=True))
            return None

        keys = pa.table(
            {str(index): self._key(batch, name) for index, name in enumerate(self.spec.key_columns)}
        )
        keys = keys.take(pa.array(rows)).append_column("row", pa.array(rows))
        groups = keys.group_by(keys.column_names[:-1]).aggregate([("row", "list")])["row_list"]
        lengths = pc.list_value_length(groups)
        maximum = pc.max(lengths).as_py() if len(groups) else 0
        failures: list[RowError] = []
        for occurrence in range(maximum):
            unique_rows = pc.list_element(
                groups.filter(pc.greater(lengths, occurrence)), occurrence
            ).to_numpy()
            failures += isolate_bad_rows(np.sort(unique_rows), attempt, self._batch_sizer)
        missing = RowRejection("missing_row", f"No such row exists in {self.spec.entity.name}.")
        return failures + [missing.error_for(row) for part in missing_rows for row in part]

    def _key(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        position = next(index for index, column in enumerate(self.spec.columns) if column.name == name)
        column = batch.column(position)
        return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column

    # --- rejections ---

    def _rejection(
        self,
        error: psycopg.Error,
        piece: np.ndarray,
        batch: pa.RecordBatch,
        line: re.Pattern[str] | None = None,
        *,
        finding: bool = False,
    ) -> RowRejection | None:
        """Roll back a piece, and return what an error says about its rows. Raises errors that concern no row."""
        state, diagnostics = error.sqlstate or "", error.diag
        if self._connection.closed or not sql.is_row_error(state):
            with self._driver_errors():
                raise error
        with self._driver_errors():
            self._connection.execute(_ROLLBACK)
        message = diagnostics.message_primary or str(error)
        if diagnostics.message_detail and state != "23502":
            message += f" {diagnostics.message_detail}"
        if functions := _FUNCTION.findall(diagnostics.context or ""):
            message = f"The function {functions[-1]}() rejects it: {message}"
        match = line and line.search(diagnostics.context or "")
        position = int(match[1]) - 1 if match else None
        column, positions = diagnostics.column_name, None
        if position is None:
            names, positions = self._by_key(diagnostics.message_detail or "", piece, batch, state)
            if state == "23502" and column:
                positions = None
                if column in [own.name for own in self.spec.columns]:
                    positions = np.flatnonzero(self._key(batch, column).take(pa.array(piece)).is_null())
            if not finding and diagnostics.table_name != self.spec.entity.parts[-1]:
                positions = None  # a trigger wrote to another table, whose columns may have the same names
            else:
                column = column or (names[0] if len(names) == 1 else None)
        return RowRejection(
            sql.reason_of(state),
            sql.shorten_message(message),
            state,
            column or self._constraint_column(diagnostics),
            position,
            positions,
        )

    def _constraint_column(self, diagnostics: Any) -> str | None:
        """Return the column of a foreign key or unique constraint that has only one column."""
        for relation in self.spec.entity.relations:
            if relation.name == diagnostics.constraint_name and len(relation.columns) == 1:
                return relation.columns[0]
        match = _KEY.search(diagnostics.message_detail or "")
        if match is None:
            match = re.search(
                r"^COPY .*?, \S+ \d+, \S+ (?P<columns>.+?)(:|$)", diagnostics.context or "", re.M
            )
        name = match["columns"] if match else None
        return name if name and self.spec.entity.column(name) else None

    def _by_key(
        self, detail: str, piece: np.ndarray, batch: pa.RecordBatch, state: str
    ) -> tuple[list[str], np.ndarray | None]:
        """Return the columns of the key in DETAIL, and the positions in the piece with its values.

        If rows repeat a key, the last one is at fault, because the first one may be valid.
        """
        match = _KEY.search(detail)
        if match is None:
            return [], None
        names = match["columns"].split(", ")
        values = [match["values"]] if len(names) == 1 else match["values"].split(", ")
        own_names = [column.name for column in self.spec.columns]
        if len(names) != len(values) or not set(names) <= set(own_names):
            return names, None
        is_same = np.ones(piece.size, bool)
        selected = pa.array(piece)
        for name, value in zip(names, values, strict=True):
            texts = self._key(batch, name).take(selected).cast(pa.string())
            is_same &= pc.fill_null(pc.equal(texts, value), False).to_numpy(zero_copy_only=False)
        positions = np.flatnonzero(is_same)
        return names, positions[-1:] if state == "23505" else positions


def keys_exist(
    connection: psycopg.Connection[Any], entity: Entity, keys: Sequence[str], rows: Sequence[Sequence[str]]
) -> bool:
    """Return whether the table contains a row for each of these keys, whose values are texts."""
    condition = " AND ".join(f"{DIALECT.quote_name(name).replace('%', '%%')} = %s" for name in keys)
    table = sql.qualified_name(DIALECT, entity.parts).replace("%", "%%")
    statement = f"SELECT 1 FROM {table} WHERE {condition} LIMIT 1".encode()
    return all(connection.execute(statement, list(values)).fetchone() is not None for values in rows)


def _shortest_key(spec: WriteSpec) -> tuple[str, ...]:
    """Return the columns of the shortest unique key that the rows contain completely."""
    entity, written = spec.entity, {column.name for column in spec.columns}
    uniques = [(column.name,) for column in entity.fields if column.unique]
    known = [tuple(key) for key in (entity.keys, *entity.uniques, *uniques) if key and set(key) <= written]
    return min(known, key=len, default=())


def _index_of(failure: RowError) -> int:
    return failure.index


class StagingTable:
    """The temporary table of a target. It is created outside a transaction, so that it outlives all
    transactions."""

    def __init__(self, connection: psycopg.Connection[Any], spec: WriteSpec) -> None:
        self._connection, self.spec = connection, spec
        names = [column.name for column in spec.columns]
        self._row = "rowsmith_row"
        while self._row in names:
            self._row += "_"
        self.name = "rowsmith_rows"
        quoted = DIALECT.quote_name
        columns = ", ".join(f"{quoted(column.name)} {column.declared}" for column in spec.columns)
        table = f"pg_temp.{quoted(self.name)}"
        connection.execute(f"DROP TABLE IF EXISTS {table}".encode())
        connection.execute(
            f"CREATE TEMPORARY TABLE {quoted(self.name)} ({quoted(self._row)} bigint PRIMARY KEY, {columns})"
            " ON COMMIT DELETE ROWS".encode()
        )
        self._clear = f"TRUNCATE {table}".encode()
        listed = sql.column_list(DIALECT, names)
        self.copy = f"COPY {table} ({quoted(self._row)}, {listed}) FROM STDIN".encode()
        self._table = sql.qualified_name(DIALECT, spec.entity.parts)
        self._staging_name = table
        self._names = names
        self.used = False
        self._captured: list[tuple[np.ndarray, list[list[str | None]]]] = []
        override = " OVERRIDING SYSTEM VALUE" if any(c.generated == "identity" for c in spec.columns) else ""
        conflict = ""
        if spec.mode == "upsert":
            keys = spec.key_columns
            others = [name for name in names if name not in keys] or list(keys[:1])
            setting = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in others)
            conflict = f" ON CONFLICT ({sql.column_list(DIALECT, keys)}) DO UPDATE SET {setting}"
        returning = f" RETURNING {sql.column_list(DIALECT, spec.capture)}" if spec.capture else ""
        prefix = (
            f"INSERT INTO {self._table} ({listed}){override} SELECT {sql.column_list(DIALECT, names, 's.')}"
        )
        self._insert = (
            f"{prefix} FROM {self._staging_name} s WHERE ",
            f" ORDER BY s.{quoted(self._row)}{conflict}{returning}",
        )

    def clear(self) -> None:
        """Empty the table for the next batch. A commit empties it too: `used` is false in a new transaction."""
        self._captured.clear()
        if self.used:
            self._connection.execute(self._clear)
        self.used = True

    def _row_condition(self, piece: np.ndarray) -> str:
        """Return a condition for the rows of a piece, which are consecutive in most cases."""
        row = f"s.{DIALECT.quote_name(self._row)}"
        if int(piece[-1] - piece[0]) + 1 == piece.size:
            return f"{row} BETWEEN {piece[0]} AND {piece[-1]}"
        return f"{row} = ANY('{{{','.join(map(str, piece.tolist()))}}}')"

    # --- insert, upsert ---

    def insert(self, piece: np.ndarray) -> bool:
        """Insert the rows of a piece in order. Returns False if the server skipped some."""
        prefix, suffix = self._insert
        cursor = self._connection.execute(f"{prefix}{self._row_condition(piece)}{suffix}".encode())
        if cursor.rowcount != piece.size:
            return False
        if self.spec.capture:
            self._captured.append((piece, _texts(cursor)))
        return True

    def captured(self, count: int) -> pa.RecordBatch:
        """Return the captured columns for `count` rows, null for rejected rows."""
        columns: list[list[str | None]] = [[None] * count for _ in self.spec.capture]
        for piece, texts in self._captured:
            for column, values in zip(columns, texts, strict=True):
                for row, text in zip(piece.tolist(), values, strict=True):
                    column[row] = text
        fields = [self.spec.entity.column(name) for name in self.spec.capture]
        arrays = [
            from_texts(column, field.type if field else "text", field.scale if field else None)
            for column, field in zip(columns, fields, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, list(self.spec.capture))

    # --- update, delete ---

    def _key_condition(self) -> str:
        quoted = DIALECT.quote_name
        return " AND ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in self.spec.key_columns)

    def update(self, piece: np.ndarray) -> np.ndarray:
        """Update the rows of a piece, and return those that existed."""
        quoted, keys = DIALECT.quote_name, self.spec.key_columns
        others = [name for name in self._names if name not in keys] or list(keys[:1])
        setting = ", ".join(f"{quoted(name)} = s.{quoted(name)}" for name in others)
        statement = (
            f"UPDATE {self._table} t SET {setting} FROM {self._staging_name} s WHERE {self._key_condition()}"
        )
        return self._run_matching(statement, piece)

    def delete(self, piece: np.ndarray) -> np.ndarray:
        """Delete the rows of a piece, and return those that existed."""
        return self._run_matching(
            f"DELETE FROM {self._table} t USING {self._staging_name} s WHERE {self._key_condition()}",
            piece,
        )

    def _run_matching(self, statement: str, piece: np.ndarray) -> np.ndarray:
        returning = ", ".join(["", *(f"t.{DIALECT.quote_name(name)}" for name in self.spec.capture)])
        cursor = self._connection.execute(
            f"{statement} AND {self._row_condition(piece)} RETURNING "
            f"s.{DIALECT.quote_name(self._row)}{returning}".encode()
        )
        numbers, *texts = _texts(cursor)
        rows = np.array(numbers, np.int64)
        if self.spec.capture:
            self._captured.append((rows, texts))
        return np.unique(rows)


def _texts(cursor: psycopg.Cursor[Any]) -> list[list[str | None]]:
    """Return a result's columns as the server's texts."""
    result = cursor.pgresult
    assert result is not None
    rows = range(result.ntuples)
    return [
        [None if (cell := result.get_value(row, index)) is None else cell.decode() for row in rows]
        for index in range(result.nfields)
    ]


class PostgresqlSession(Session):
    """A connection in autocommit mode. Transactions are opened where needed."""

    def __init__(self, connection: psycopg.Connection[Any], schema: str, read_only: bool) -> None:
        self.connection, self.read_only = connection, read_only
        with self.converting_errors():
            connection.execute(
                "SET TimeZone = 'UTC'; SET DateStyle = 'ISO, YMD'; SET IntervalStyle = 'iso_8601'"
            )
            connection.execute("SET bytea_output = 'hex'; SET extra_float_digits = 1")
            connection.execute("SET client_min_messages = 'warning'")
            if schema:
                connection.execute(f"SET search_path = {DIALECT.quote_name(schema)}, public".encode())
            if read_only:
                connection.execute("SET default_transaction_read_only = on")
            self.schema = schema or self._fetch_value("SELECT current_schema()") or "public"
        self._search_path = {self.schema}

    # --- the connection ---

    @contextmanager
    def converting_errors(self) -> Iterator[None]:
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
            self.connection.cancel_safe(timeout=limits.PUSH_CANCEL_TIMEOUT_SECONDS / 2)
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
        with self.converting_errors():
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
            arrays.append(from_texts(texts, _RESULTS.get(result.ftype(index), "text"), scale))
            names.append((result.fname(index) or b"").decode())
        return pa.RecordBatch.from_arrays(arrays, names)

    # --- verification ---

    def describe(self) -> str:
        """Return the database and the user, for messages."""
        with self.converting_errors():
            row = self.connection.execute("SELECT current_user, current_database()").fetchone()
        assert row is not None
        return f"{row[1]} as {row[0]}"

    def check_permission(self) -> str:
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
                hint=f"The schema's owner can run: GRANT USAGE ON SCHEMA {DIALECT.quote_name(self.schema)} TO ...",
            )
        return f"{tables} tables in {self.schema}, {writable} of them writable."

    def check_sample(self) -> str:
        """Read a row of the first readable table, and return a message."""
        with self._read_only():
            name = self._fetch_value(_READABLE, [self.schema])
            if name is None:
                return "No readable tables yet."
            table = sql.qualified_name(DIALECT, (self.schema, name))
            self.connection.execute(f"SELECT * FROM {table} LIMIT 1".encode())
        return f"Read from {name}."

    # --- metadata ---

    def metadata(self) -> Metadata:
        """See `Session.metadata`."""
        version = self.connection.info.server_version
        title = f"PostgreSQL {version // 10_000}.{version % 10_000}"
        return Metadata("postgresql", title, tuple(self._with_catalog(lambda catalog: catalog.entities())))

    def _with_catalog(self, function: Callable[[Catalog], ResultT]) -> ResultT:
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
        return sql.qualified_name(DIALECT, entity.parts)

    def sample(self, entity: Entity, limit: int) -> pa.RecordBatch:
        """See `Session.sample`."""
        names = sql.column_list(DIALECT, (column.name for column in entity.fields)) or "*"
        query = f"SELECT {names} FROM {self._table(entity)} LIMIT {int(limit)}"
        with self._read_only():
            self._execute_single(f"DECLARE sample NO SCROLL CURSOR FOR {query}")
            return self._fetch_rows("sample", int(limit), limits.SAMPLE_BYTES)[0]

    def keys(
        self, entity: Entity, columns: Sequence[str], where: str = "", order: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """See `Session.keys`."""
        names = sql.column_list(DIALECT, columns)
        condition = sql.where_clause("postgresql", where)
        condition += sql.order_by_clause(DIALECT, columns, order)
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
                    self.connection.cancel_safe(timeout=limits.PUSH_CANCEL_TIMEOUT_SECONDS)
                while server.get_result() is not None:
                    pass

    def stream(self, text: str) -> Iterator[pa.RecordBatch]:
        """See `Session.stream`."""
        yield from self._stream_batches(sql.bind_parameters(text, {}, "%s")[0])

    def contains(self, entity: Entity, columns: Sequence[str], candidates: pa.RecordBatch) -> pa.BooleanArray:
        """See `Session.contains`. Combinations that do not fit the columns' types are not in the table."""
        with self._read_only():
            return pa.array(self._existing(entity, columns, candidates), pa.bool_())

    def _existing(self, entity: Entity, columns: Sequence[str], rows: pa.RecordBatch) -> list[bool]:
        if not rows.num_rows:
            return []
        fields = [entity.column(name) for name in columns]
        lists = [_literal(array) for array in rows.columns]
        types = [f"%s::{_escape_percent(column.declared) if column else 'text'}[]" for column in fields]
        names = [f"c{index}" for index in range(len(columns))]
        condition = " AND ".join(
            f"t.{_escape_percent(DIALECT.quote_name(column))} = w.{name}"
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
        statement, parameters = sql.bind_parameters(text, values, "%s", doubled_chars="%")
        with self._read_only():
            # With a cursor, the server produces only the rows that are needed.
            self._execute_single(f"DECLARE answer NO SCROLL CURSOR FOR {statement}", parameters)
            batch, is_complete = self._fetch_rows("answer", int(limit), limits.QUERY_RESULT_BYTES)
        if not is_complete:
            raise sql.result_too_large_error()
        return batch

    # --- statements ---

    def execute(self, statement: str) -> None:
        """See `Session.execute`."""
        self.check_writable()
        with self.converting_errors():
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

    def target(self, spec: WriteSpec) -> Target:
        """See `Session.target`."""
        self.check_writable()
        if spec.entity.kind == "view" and spec.mode != "insert":
            raise ConnectorError(
                f"{spec.entity.name} is a view.", reason="unsupported", hint="Select the underlying table."
            )
        schema = spec.entity.parts[0]
        if schema not in self._search_path:
            # Trigger functions often name tables of their schema without the schema: search for names there, last.
            self._search_path.add(schema)
            with self.converting_errors():
                self.connection.execute(_ADD_TO_SEARCH_PATH, (schema,))
        return PostgresqlTarget(self.connection, self.converting_errors, spec)

    def advance_sequence(self, entity: Entity, column: str, highest: Callable[[], int | None]) -> int | None:
        """See `Session.advance_sequence`. Uses the sequence that a serial or identity column owns."""
        with self.converting_errors():
            names = self.connection.execute(_SEQUENCE, (self._table(entity), column)).fetchone()
            maximum = highest() if names is not None else None
            if names is None or maximum is None:
                return None
            sequence = sql.qualified_name(DIALECT, names)
            value: int | None = self._fetch_value(
                f"SELECT setval(%s::regclass, %s) FROM {_escape_percent(sequence)}"
                " WHERE last_value < %s OR (last_value = %s AND NOT is_called)",
                [sequence, maximum, maximum, maximum],
            )
            return value

    def can_suspend_foreign_keys(self) -> bool:
        """See `Session`: the right to set `session_replication_role`, which PostgreSQL 15 can grant (GRANT SET)."""
        with self.converting_errors():
            if self._fetch_value("SELECT current_setting('is_superuser')") == "on":
                return True
            if self.connection.info.server_version < 150_000:
                return False
            return bool(
                self._fetch_value("SELECT has_parameter_privilege('session_replication_role', 'SET')")
            )

    @contextmanager
    def suspend_foreign_keys(self) -> Iterator[None]:
        """See `Session`: as replication does (PostgreSQL 15, section 20.11.1, session_replication_role)."""
        with self.converting_errors():
            self.connection.execute("SET session_replication_role = replica")
        try:
            yield
        finally:
            with suppress(psycopg.Error):  # a connection that is gone has no session either
                self.connection.execute("SET session_replication_role = DEFAULT")

    def max_value(self, entity: Entity, column: str) -> int | None:
        """See `Session.max_value`."""
        with self.converting_errors():
            value = self._fetch_value(f"SELECT max({DIALECT.quote_name(column)}) FROM {self._table(entity)}")
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
                    and self._fetch_value(f"SELECT {SYSTEM_IDENTIFIER.decode()}") == commit_token["system"]
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
    text: str = array_texts(pa.ListArray.from_arrays(offsets, to_plain(array)))[0].as_py()
    return text
