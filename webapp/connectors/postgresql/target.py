"""Write rows to a PostgreSQL table: COPY within savepoints, or through a temporary table.

A chunk is one transaction, in which one savepoint is always open. After the server accepts a piece, the
savepoint is renewed; after an error, the transaction returns to it, and `row_isolation.isolate_bad_rows`
finds the bad row: by the line that COPY names, by the key in the error's DETAIL (foreign keys are checked at
the end of a statement, when line numbers are unknown), or by splitting the piece.

Rows are sent through a temporary table if existing rows are matched by key, or if generated keys are
returned.

The order of returned keys: an INSERT .. SELECT .. ORDER BY computes defaults row by row in that order, and
RETURNING produces one row for each inserted row (executor's ModifyTable; no plan that writes is parallel). If
the count differs from the rows sent, the order is unknown, and the piece counts as rejected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.compute as pc

from webapp import limits
from webapp.connectors.base import ConnectorError, RowError, Target, WriteResult, WriteSpec
from webapp.connectors.column_values import read
from webapp.connectors.postgresql.copy import CopyBinary, CopyText, Lines
from webapp.connectors.row_isolation import Attempt, BatchSizer, RowRejection, isolate_bad_rows
from webapp.connectors.schema import Entity
from webapp.connectors.sql import base as sql
from webapp.engine.formats.sql_dialects import DIALECTS

DIALECT: Final = DIALECTS["postgresql"]

_SAVE: Final = b"SAVEPOINT rows"
_RENEW: Final = b"RELEASE rows; SAVEPOINT rows"
_ROLLBACK: Final = b"ROLLBACK TO rows"
_BEGIN_CHECKED: Final = b"BEGIN; SET CONSTRAINTS ALL IMMEDIATE; SAVEPOINT rows"
# `Key (a, b)=(1, x) is not present in table "t".`, in any language.
_KEY: Final = re.compile(r"\((?P<columns>.*?)\)=\((?P<values>.*)\)", re.S)
# `PL/pgSQL function f() line 3 at RAISE` of a function without arguments, such as that of a trigger.
_FUNCTION: Final = re.compile(r"^.*PL/pgSQL.*?([^\s(]+)\(\)", re.M)
# The identifier of the cluster, if the account can read it. Physical copies and standbys share it.
SYSTEM: Final = (
    b"CASE WHEN has_function_privilege('pg_control_system()', 'execute')"
    b" THEN (SELECT system_identifier::text FROM pg_control_system()) END"
)
_SKIPPED: Final = RowRejection("refused", "A trigger or rule of the table silently skipped this row.")


class PostgresqlTarget(Target):
    """See `Target`. `driver_errors` converts errors of the driver."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        driver_errors: Callable[[], AbstractContextManager[None]],
        writing: WriteSpec,
    ) -> None:
        self.writing = writing
        self._connection, self._driver_errors = connection, driver_errors
        self._text = CopyText(writing.columns)
        self._numbered = CopyText(writing.columns, numbered=True)
        self._binary = CopyBinary(writing.columns)
        table = sql.qualified(DIALECT, writing.entity.parts)
        names = sql.listed(DIALECT, (column.name for column in writing.columns))
        self._copy = f"COPY {table} ({names}) FROM STDIN".encode()
        # The context of a COPY error starts with the table's name, then the word for "line" in the server's
        # language.
        self._line = re.compile(rf"^COPY {re.escape(writing.entity.parts[-1])}, \S+ (\d+)", re.M)
        self._staging: StagingTable | None = None
        self._shortest_key = _shortest_key(writing)
        self._inserted: list[list[str]] = []
        self._batch_sizer, self._staging_sizer = (
            BatchSizer(*limits.TARGET_PIECE_ROWS, limits.TARGET_PIECE_COST_ROWS) for _ in range(2)
        )
        self._open = False
        self._begin = b"BEGIN; SAVEPOINT rows"
        self._refers_to_itself = any(
            relation.entity == writing.entity.name for relation in writing.entity.relations
        )
        self._deletes = False

    # --- transactions ---

    def begin(self) -> None:
        """See `Target.begin`."""
        if self._open:
            return
        with self._driver_errors():
            if self._staging is None and self._uses_staging:
                self._staging = StagingTable(self._connection, self.writing)
            self._connection.execute(self._begin)
        if self._staging is not None:
            self._staging.used = False
        self._open, self._inserted = True, []

    @property
    def _uses_staging(self) -> bool:
        return self.writing.mode != "insert" or bool(self.writing.capture)

    def commit_token(self) -> dict[str, Any]:
        """See `Target.commit_token`: the transaction's number, the session, and the keys of two inserted
        rows.

        A server that crashes may reuse the number, so after a restart the rows decide.
        """
        with self._driver_errors():
            row = self._connection.execute(
                # The function behind pg_stat_activity, without the tables that the view joins.
                b"SELECT txid_current(), pid, backend_start::text, pg_postmaster_start_time()::text, "
                + SYSTEM
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
            return keys_exist(self._connection, self.writing.entity, self._shortest_key, [values])
        except psycopg.Error as error:
            if self._connection.closed:
                with self._driver_errors():
                    raise error
            self._connection.execute(_ROLLBACK)
            return False

    def _record_keys(self, batch: pa.RecordBatch, failures: list[RowError]) -> None:
        """Remember the keys of the first and the last inserted row."""
        if self.writing.mode != "insert" or not self._shortest_key:
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
            if sql.is_of_row(error.details.get("sqlstate", "")):
                raise ConnectorError(
                    f"Rejected at commit: {error.message}",
                    reason="deferred",
                    hint="These rows violate a deferred constraint of the table.",
                    details=error.details,
                ) from error
            raise
        if cursor.statusmessage != "COMMIT":
            raise ConnectorError("The server rolled the transaction back.", reason="deferred")

    def check_at_once(self) -> bool:
        """See `Target.check_at_once`. In a table that refers to itself, a row may refer to a later one: `_write` tries
        such rows again, which deleting and updating do not."""
        retries = self.writing.mode != "update" and not self._deletes
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
        return sql.statements(DIALECT, self.writing, batch)

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
        if self.writing.mode == "update":
            failures += self._match_rows(rows, batch, staging.update)
        else:
            failures += self._write(rows, lambda piece: self._insert_staged(staging, piece, batch))
        self._record_keys(batch, failures)
        return WriteResult(
            sorted(failures, key=_index_of),
            staging.captured(batch.num_rows) if self.writing.capture else None,
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
                self._staging = StagingTable(self._connection, self.writing)
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
                copy.write(lines.of(piece))
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
            {str(index): self._key(batch, name) for index, name in enumerate(self.writing.key_columns)}
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
        missing = RowRejection("missing_row", f"No such row exists in {self.writing.entity.name}.")
        return failures + [missing.of(row) for part in missing_rows for row in part]

    def _key(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        position = next(index for index, column in enumerate(self.writing.columns) if column.name == name)
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
        if self._connection.closed or not sql.is_of_row(state):
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
                if column in [own.name for own in self.writing.columns]:
                    positions = np.flatnonzero(self._key(batch, column).take(pa.array(piece)).is_null())
            if not finding and diagnostics.table_name != self.writing.entity.parts[-1]:
                positions = None  # a trigger wrote to another table, whose columns may have the same names
            else:
                column = column or (names[0] if len(names) == 1 else None)
        return RowRejection(
            sql.reason_of(state),
            sql.shortened(message),
            state,
            column or self._constraint_column(diagnostics),
            position,
            positions,
        )

    def _constraint_column(self, diagnostics: Any) -> str | None:
        """Return the column of a foreign key or unique constraint that has only one column."""
        for relation in self.writing.entity.relations:
            if relation.name == diagnostics.constraint_name and len(relation.columns) == 1:
                return relation.columns[0]
        match = _KEY.search(diagnostics.message_detail or "")
        if match is None:
            match = re.search(
                r"^COPY .*?, \S+ \d+, \S+ (?P<columns>.+?)(:|$)", diagnostics.context or "", re.M
            )
        name = match["columns"] if match else None
        return name if name and self.writing.entity.column(name) else None

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
        own_names = [column.name for column in self.writing.columns]
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
    condition = " AND ".join(f"{DIALECT.quoted(name).replace('%', '%%')} = %s" for name in keys)
    table = sql.qualified(DIALECT, entity.parts).replace("%", "%%")
    statement = f"SELECT 1 FROM {table} WHERE {condition} LIMIT 1".encode()
    return all(connection.execute(statement, list(values)).fetchone() is not None for values in rows)


def _shortest_key(writing: WriteSpec) -> tuple[str, ...]:
    """Return the columns of the shortest unique key that the rows contain completely."""
    entity, written = writing.entity, {column.name for column in writing.columns}
    uniques = [(column.name,) for column in entity.fields if column.unique]
    known = [tuple(key) for key in (entity.keys, *entity.uniques, *uniques) if key and set(key) <= written]
    return min(known, key=len, default=())


def _index_of(failure: RowError) -> int:
    return failure.index


class StagingTable:
    """The temporary table of a target. It is created outside a transaction, so that it outlives all
    transactions."""

    def __init__(self, connection: psycopg.Connection[Any], writing: WriteSpec) -> None:
        self._connection, self.writing = connection, writing
        names = [column.name for column in writing.columns]
        self._row = "rowsmith_row"
        while self._row in names:
            self._row += "_"
        self.name = "rowsmith_rows"
        quoted = DIALECT.quoted
        columns = ", ".join(f"{quoted(column.name)} {column.declared}" for column in writing.columns)
        table = f"pg_temp.{quoted(self.name)}"
        connection.execute(f"DROP TABLE IF EXISTS {table}".encode())
        connection.execute(
            f"CREATE TEMPORARY TABLE {quoted(self.name)} ({quoted(self._row)} bigint PRIMARY KEY, {columns})"
            " ON COMMIT DELETE ROWS".encode()
        )
        self._clear = f"TRUNCATE {table}".encode()
        listed = sql.listed(DIALECT, names)
        self.copy = f"COPY {table} ({quoted(self._row)}, {listed}) FROM STDIN".encode()
        self._table = sql.qualified(DIALECT, writing.entity.parts)
        self._staging_name = table
        self._names = names
        self.used = False
        self._captured: list[tuple[np.ndarray, list[list[str | None]]]] = []
        override = (
            " OVERRIDING SYSTEM VALUE" if any(c.generated == "identity" for c in writing.columns) else ""
        )
        conflict = ""
        if writing.mode == "upsert":
            keys = writing.key_columns
            others = [name for name in names if name not in keys] or list(keys[:1])
            setting = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in others)
            conflict = f" ON CONFLICT ({sql.listed(DIALECT, keys)}) DO UPDATE SET {setting}"
        returning = f" RETURNING {sql.listed(DIALECT, writing.capture)}" if writing.capture else ""
        prefix = f"INSERT INTO {self._table} ({listed}){override} SELECT {sql.listed(DIALECT, names, 's.')}"
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
        row = f"s.{DIALECT.quoted(self._row)}"
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
        if self.writing.capture:
            self._captured.append((piece, _texts(cursor)))
        return True

    def captured(self, count: int) -> pa.RecordBatch:
        """Return the captured columns for `count` rows, null for rejected rows."""
        columns: list[list[str | None]] = [[None] * count for _ in self.writing.capture]
        for piece, texts in self._captured:
            for column, values in zip(columns, texts, strict=True):
                for row, text in zip(piece.tolist(), values, strict=True):
                    column[row] = text
        fields = [self.writing.entity.column(name) for name in self.writing.capture]
        arrays = [
            read(column, field.type if field else "text", field.scale if field else None)
            for column, field in zip(columns, fields, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, list(self.writing.capture))

    # --- update, delete ---

    def _key_condition(self) -> str:
        quoted = DIALECT.quoted
        return " AND ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in self.writing.key_columns)

    def update(self, piece: np.ndarray) -> np.ndarray:
        """Update the rows of a piece, and return those that existed."""
        quoted, keys = DIALECT.quoted, self.writing.key_columns
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
        returning = ", ".join(["", *(f"t.{DIALECT.quoted(name)}" for name in self.writing.capture)])
        cursor = self._connection.execute(
            f"{statement} AND {self._row_condition(piece)} RETURNING s.{DIALECT.quoted(self._row)}{returning}".encode()
        )
        numbers, *texts = _texts(cursor)
        rows = np.array(numbers, np.int64)
        if self.writing.capture:
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
