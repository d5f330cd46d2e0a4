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
_BACK: Final = b"ROLLBACK TO rows"
_CHECKED: Final = b"BEGIN; SET CONSTRAINTS ALL IMMEDIATE; SAVEPOINT rows"
# `Key (a, b)=(1, x) is not present in table "t".`, in any language.
_KEY: Final = re.compile(r"\((?P<columns>.*?)\)=\((?P<values>.*)\)", re.S)
# `PL/pgSQL function f() line 3 at RAISE` of a function without arguments, such as that of a trigger.
_FUNCTION: Final = re.compile(r"^.*PL/pgSQL.*?([^\s(]+)\(\)", re.M)
# The identifier of the cluster, if the account can read it. Physical copies and standbys share it.
SYSTEM: Final = (
    b"CASE WHEN has_function_privilege('pg_control_system()', 'execute')"
    b" THEN (SELECT system_identifier::text FROM pg_control_system()) END"
)
_LEFT_OUT: Final = RowRejection("refused", "A trigger or rule of the table silently skipped this row.")


class PostgresqlTarget(Target):
    """See `Target`. `driver_errors` converts errors of the driver."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        talking: Callable[[], AbstractContextManager[None]],
        writing: WriteSpec,
    ) -> None:
        self.writing = writing
        self._connection, self._talking = connection, talking
        self._text = CopyText(writing.columns)
        self._numbered = CopyText(writing.columns, numbered=True)
        self._binary = CopyBinary(writing.columns)
        table = sql.qualified(DIALECT, writing.entity.parts)
        names = sql.listed(DIALECT, (column.name for column in writing.columns))
        self._copy = f"COPY {table} ({names}) FROM STDIN".encode()
        # The context of a COPY error starts with the table's name, then the word for "line" in the server's
        # language.
        self._line = re.compile(rf"^COPY {re.escape(writing.entity.parts[-1])}, \S+ (\d+)", re.M)
        self._staged: StagingTable | None = None
        self._unique = _unique(writing)
        self._inserted: list[list[str]] = []
        self._batch_sizer, self._stage_pace = (
            BatchSizer(*limits.TARGET_PIECE_ROWS, limits.TARGET_PIECE_COST_ROWS) for _ in range(2)
        )
        self._open = False
        self._begin = b"BEGIN; SAVEPOINT rows"
        self._refers_to_itself = any(one.entity == writing.entity.name for one in writing.entity.relations)
        self._deletes = False

    # --- transactions ---

    def begin(self) -> None:
        """See `Target.begin`."""
        if self._open:
            return
        with self._talking():
            if self._staged is None and self._stages:
                self._staged = StagingTable(self._connection, self.writing)
            self._connection.execute(self._begin)
        if self._staged is not None:
            self._staged.used = False
        self._open, self._inserted = True, []

    @property
    def _stages(self) -> bool:
        return self.writing.mode != "insert" or bool(self.writing.capture)

    def commit_token(self) -> dict[str, Any]:
        """See `Target.commit_token`: the transaction's number, the session, and the keys of two inserted
        rows.

        A server that crashes may reuse the number, so after a restart the rows decide.
        """
        with self._talking():
            row = self._connection.execute(
                # The function behind pg_stat_activity, without the tables that the view joins.
                b"SELECT txid_current(), pid, backend_start::text, pg_postmaster_start_time()::text, "
                + SYSTEM
                + b" FROM pg_stat_get_activity(pg_backend_pid())"
            ).fetchone()
        assert row is not None
        commit_token = {"xid": row[0], "pid": row[1], "started": row[2], "server": row[3], "system": row[4]}
        rows = [values for values in self._inserted if self._is_there(values)]
        return {**commit_token, "keys": list(self._unique), "rows": rows} if rows else commit_token

    def _is_there(self, values: list[str]) -> bool:
        """Return whether a row is found by its key: a trigger or the column's type may have changed the
        values."""
        try:
            return are_there(self._connection, self.writing.entity, self._unique, [values])
        except psycopg.Error as error:
            if self._connection.closed:
                with self._talking():
                    raise error
            self._connection.execute(_BACK)
            return False

    def _wrote(self, batch: pa.RecordBatch, failures: list[RowError]) -> None:
        """Remember the keys of the first and the last inserted row."""
        if self.writing.mode != "insert" or not self._unique:
            return
        bad = {error.index for error in failures}
        both = (range(batch.num_rows), range(batch.num_rows - 1, -1, -1))
        good = [next((row for row in rows if row not in bad), None) for rows in both]
        chosen = pa.array(sorted({row for row in good if row is not None}), pa.int64())
        columns = [self._key(batch, name).take(chosen).cast(pa.string()).to_pylist() for name in self._unique]
        found = [list(values) for values in zip(*columns, strict=True) if None not in values]
        self._inserted = [*self._inserted[:1], *found][-2:]

    def commit(self) -> None:
        """See `Target.commit`."""
        self._open = False
        try:
            with self._talking():
                done = self._connection.execute(b"COMMIT")
        except ConnectorError as error:
            if sql.is_of_row(error.details.get("sqlstate", "")):
                raise ConnectorError(
                    f"Rejected at commit: {error.message}",
                    reason="deferred",
                    hint="These rows violate a deferred constraint of the table.",
                    details=error.details,
                ) from error
            raise
        if done.statusmessage != "COMMIT":
            raise ConnectorError("The server rolled the transaction back.", reason="deferred")

    def check_at_once(self) -> bool:
        """See `Target.check_at_once`. In a table that refers to itself, a row may refer to a later one: `_write` tries
        such rows again, which deleting and updating do not."""
        again = self.writing.mode != "update" and not self._deletes
        if self._begin == _CHECKED or (self._refers_to_itself and not again):
            return False
        self._begin = _CHECKED
        return True

    def rollback(self) -> None:
        """See `Target.rollback`."""
        self._open, self._staged = False, None  # may have been created in this transaction
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
        if not self._stages and (lines := self._binary.lines(batch)) is not None:
            return partial(self._send, batch, lines, [])
        return partial(self._send, batch, *(self._numbered if self._stages else self._text).lines(batch))

    def _send(self, batch: pa.RecordBatch, lines: Lines, failures: list[RowError]) -> WriteResult:
        if self._staged is None:
            copy = self._copy + b" (FORMAT binary)" if lines.binary else self._copy
            failures += self._write(lines.rows, lambda piece: self._copied(copy, lines, piece, batch))
            self._wrote(batch, failures)
            return WriteResult(sorted(failures, key=_place))
        staged = self._staged
        kept, failures = self._into_stage(staged, batch, lines, failures)
        if self.writing.mode == "update":
            failures += self._found(kept, batch, staged.update)
        else:
            failures += self._write(kept, lambda piece: self._carried(staged, piece, batch))
        self._wrote(batch, failures)
        return WriteResult(
            sorted(failures, key=_place), staged.captured(batch.num_rows) if self.writing.capture else None
        )

    def _write(self, rows: np.ndarray, attempt: Attempt) -> list[RowError]:
        """Write rows, and return the errors of the rejected ones. If deferred constraints are checked with each
        statement, rows that refer to rows of this table are tried again once the others exist."""
        failures = isolate_bad_rows(rows, attempt, self._batch_sizer)
        while self._begin == _CHECKED and self._refers_to_itself:
            orphans = [error.index for error in failures if error.reason == "foreign_key"]
            if not orphans:
                break
            still = isolate_bad_rows(np.array(orphans), attempt, self._batch_sizer)
            failures = [error for error in failures if error.reason != "foreign_key"] + still
            if len(still) == len(orphans):
                break
        return failures

    def delete(self, batch: pa.RecordBatch) -> WriteResult:
        """See `Target.delete`."""
        self._deletes = True
        if self._staged is None:
            with self._talking():
                self._staged = StagingTable(self._connection, self.writing)
        kept, failures = self._into_stage(self._staged, batch, *self._numbered.lines(batch))
        failures += self._found(kept, batch, self._staged.delete)
        return WriteResult(sorted(failures, key=_place))

    def _into_stage(
        self, staged: StagingTable, batch: pa.RecordBatch, lines: Lines, failures: list[RowError]
    ) -> tuple[np.ndarray, list[RowError]]:
        """Copy all rows to the temporary table, which checks the columns' types. Returns the accepted rows."""
        with self._talking():
            staged.clear()
            self._connection.execute(_RENEW)  # later pieces roll back to the empty table
        line = re.compile(rf"^COPY {re.escape(staged.name)}, \S+ (\d+)", re.M)
        copied = partial(self._copied, staged.copy, lines, batch=batch, line=line)
        failures += isolate_bad_rows(lines.rows, lambda piece: copied(piece=piece), self._stage_pace)
        return np.setdiff1d(lines.rows, [error.index for error in failures], assume_unique=True), failures

    def _copied(
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
            self._connection.execute(_BACK)
            return _LEFT_OUT
        except psycopg.Error as error:
            return self._refusal(error, piece, batch, line or self._line)

    def _carried(self, staged: StagingTable, piece: np.ndarray, batch: pa.RecordBatch) -> RowRejection | None:
        """Insert rows from the temporary table into the target table."""
        try:
            if staged.insert(piece):
                self._connection.execute(_RENEW)
                return None
            self._connection.execute(_BACK)
            return _LEFT_OUT
        except psycopg.Error as error:
            return self._refusal(error, piece, batch)

    def _found(
        self, rows: np.ndarray, batch: pa.RecordBatch, action: Callable[[np.ndarray], np.ndarray]
    ) -> list[RowError]:
        """Update or delete existing rows by key. Rows that do not exist fail.

        If a key occurs more than once, each occurrence is processed by its own statement, in order.
        """
        missed: list[np.ndarray] = []

        def attempt(piece: np.ndarray) -> RowRejection | None:
            try:
                done = action(piece)
                self._connection.execute(_RENEW)
            except psycopg.Error as error:
                return self._refusal(error, piece, batch, finding=True)
            missed.append(np.setdiff1d(piece, done, assume_unique=True))
            return None

        keys = pa.table(
            {str(place): self._key(batch, name) for place, name in enumerate(self.writing.key_columns)}
        )
        keys = keys.take(pa.array(rows)).append_column("row", pa.array(rows))
        groups = keys.group_by(keys.column_names[:-1]).aggregate([("row", "list")])["row_list"]
        lengths = pc.list_value_length(groups)
        most = pc.max(lengths).as_py() if len(groups) else 0
        failures: list[RowError] = []
        for turn in range(most):
            once = pc.list_element(groups.filter(pc.greater(lengths, turn)), turn).to_numpy()
            failures += isolate_bad_rows(np.sort(once), attempt, self._batch_sizer)
        missing = RowRejection("missing_row", f"No such row exists in {self.writing.entity.name}.")
        return failures + [missing.of(row) for part in missed for row in part]

    def _key(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        place = next(at for at, column in enumerate(self.writing.columns) if column.name == name)
        column = batch.column(place)
        return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column

    # --- rejections ---

    def _refusal(
        self,
        error: psycopg.Error,
        piece: np.ndarray,
        batch: pa.RecordBatch,
        line: re.Pattern[str] | None = None,
        *,
        finding: bool = False,
    ) -> RowRejection | None:
        """Roll back a piece, and return what an error says about its rows. Raises errors that concern no row."""
        state, said = error.sqlstate or "", error.diag
        if self._connection.closed or not sql.is_of_row(state):
            with self._talking():
                raise error
        with self._talking():
            self._connection.execute(_BACK)
        message = said.message_primary or str(error)
        if said.message_detail and state != "23502":
            message += f" {said.message_detail}"
        if functions := _FUNCTION.findall(said.context or ""):
            message = f"The function {functions[-1]}() rejects it: {message}"
        named = line and line.search(said.context or "")
        at = int(named[1]) - 1 if named else None
        column, bad = said.column_name, None
        if at is None:
            names, bad = self._by_key(said.message_detail or "", piece, batch, state)
            if state == "23502" and column:
                bad = None
                if column in [own.name for own in self.writing.columns]:
                    bad = np.flatnonzero(self._key(batch, column).take(pa.array(piece)).is_null())
            if not finding and said.table_name != self.writing.entity.parts[-1]:
                bad = None  # a trigger wrote to another table, whose columns may have the same names
            else:
                column = column or (names[0] if len(names) == 1 else None)
        return RowRejection(
            sql.reason_of(state), sql.shortened(message), state, column or self._constrained(said), at, bad
        )

    def _constrained(self, said: Any) -> str | None:
        """Return the column of a foreign key or unique constraint that has only one column."""
        for relation in self.writing.entity.relations:
            if relation.name == said.constraint_name and len(relation.columns) == 1:
                return relation.columns[0]
        found = _KEY.search(said.message_detail or "")
        if found is None:
            found = re.search(r"^COPY .*?, \S+ \d+, \S+ (?P<columns>.+?)(:|$)", said.context or "", re.M)
        name = found["columns"] if found else None
        return name if name and self.writing.entity.column(name) else None

    def _by_key(
        self, detail: str, piece: np.ndarray, batch: pa.RecordBatch, state: str
    ) -> tuple[list[str], np.ndarray | None]:
        """Return the columns of the key in DETAIL, and the positions in the piece with its values.

        If rows repeat a key, the last one is at fault, because the first one may be valid.
        """
        found = _KEY.search(detail)
        if found is None:
            return [], None
        names = found["columns"].split(", ")
        values = [found["values"]] if len(names) == 1 else found["values"].split(", ")
        own = [column.name for column in self.writing.columns]
        if len(names) != len(values) or not set(names) <= set(own):
            return names, None
        same = np.ones(piece.size, bool)
        chosen = pa.array(piece)
        for name, value in zip(names, values, strict=True):
            texts = self._key(batch, name).take(chosen).cast(pa.string())
            same &= pc.fill_null(pc.equal(texts, value), False).to_numpy(zero_copy_only=False)
        places = np.flatnonzero(same)
        return names, places[-1:] if state == "23505" else places


def are_there(
    connection: psycopg.Connection[Any], entity: Entity, keys: Sequence[str], rows: Sequence[Sequence[str]]
) -> bool:
    """Return whether the table contains a row for each of these keys, whose values are texts."""
    found = " AND ".join(f"{DIALECT.quoted(name).replace('%', '%%')} = %s" for name in keys)
    table = sql.qualified(DIALECT, entity.parts).replace("%", "%%")
    statement = f"SELECT 1 FROM {table} WHERE {found} LIMIT 1".encode()
    return all(connection.execute(statement, list(values)).fetchone() is not None for values in rows)


def _unique(writing: WriteSpec) -> tuple[str, ...]:
    """Return the columns of the shortest unique key that the rows contain completely."""
    entity, brought = writing.entity, {column.name for column in writing.columns}
    uniques = [(column.name,) for column in entity.fields if column.unique]
    known = [tuple(key) for key in (entity.keys, *entity.uniques, *uniques) if key and set(key) <= brought]
    return min(known, key=len, default=())


def _place(failure: RowError) -> int:
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
        self._into = sql.qualified(DIALECT, writing.entity.parts)
        self._from = table
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
        back = f" RETURNING {sql.listed(DIALECT, writing.capture)}" if writing.capture else ""
        head = f"INSERT INTO {self._into} ({listed}){override} SELECT {sql.listed(DIALECT, names, 's.')}"
        self._insert = (
            f"{head} FROM {self._from} s WHERE ",
            f" ORDER BY s.{quoted(self._row)}{conflict}{back}",
        )

    def clear(self) -> None:
        """Empty the table for the next batch. A commit empties it too: `used` is false in a new transaction."""
        self._captured.clear()
        if self.used:
            self._connection.execute(self._clear)
        self.used = True

    def _chosen(self, piece: np.ndarray) -> str:
        """Return a condition for the rows of a piece, which are consecutive in most cases."""
        row = f"s.{DIALECT.quoted(self._row)}"
        if int(piece[-1] - piece[0]) + 1 == piece.size:
            return f"{row} BETWEEN {piece[0]} AND {piece[-1]}"
        return f"{row} = ANY('{{{','.join(map(str, piece.tolist()))}}}')"

    # --- insert, upsert ---

    def insert(self, piece: np.ndarray) -> bool:
        """Insert the rows of a piece in order. Returns False if the server skipped some."""
        head, tail = self._insert
        cursor = self._connection.execute(f"{head}{self._chosen(piece)}{tail}".encode())
        if cursor.rowcount != piece.size:
            return False
        if self.writing.capture:
            self._captured.append((piece, _texts(cursor)))
        return True

    def captured(self, count: int) -> pa.RecordBatch:
        """Return the captured columns for `count` rows, null for rejected rows."""
        columns: list[list[str | None]] = [[None] * count for _ in self.writing.capture]
        for piece, texts in self._captured:
            for column, found in zip(columns, texts, strict=True):
                for row, text in zip(piece.tolist(), found, strict=True):
                    column[row] = text
        fields = [self.writing.entity.column(name) for name in self.writing.capture]
        arrays = [
            read(column, field.type if field else "text", field.scale if field else None)
            for column, field in zip(columns, fields, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, list(self.writing.capture))

    # --- update, delete ---

    def _same(self) -> str:
        quoted = DIALECT.quoted
        return " AND ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in self.writing.key_columns)

    def update(self, piece: np.ndarray) -> np.ndarray:
        """Update the rows of a piece, and return those that existed."""
        quoted, keys = DIALECT.quoted, self.writing.key_columns
        others = [name for name in self._names if name not in keys] or list(keys[:1])
        setting = ", ".join(f"{quoted(name)} = s.{quoted(name)}" for name in others)
        statement = f"UPDATE {self._into} t SET {setting} FROM {self._from} s WHERE {self._same()}"
        return self._done(statement, piece)

    def delete(self, piece: np.ndarray) -> np.ndarray:
        """Delete the rows of a piece, and return those that existed."""
        return self._done(f"DELETE FROM {self._into} t USING {self._from} s WHERE {self._same()}", piece)

    def _done(self, statement: str, piece: np.ndarray) -> np.ndarray:
        back = ", ".join(["", *(f"t.{DIALECT.quoted(name)}" for name in self.writing.capture)])
        cursor = self._connection.execute(
            f"{statement} AND {self._chosen(piece)} RETURNING s.{DIALECT.quoted(self._row)}{back}".encode()
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
        [None if (cell := result.get_value(row, place)) is None else cell.decode() for row in rows]
        for place in range(result.nfields)
    ]
