"""Rows into a PostgreSQL table: COPY inside savepoints; through a temporary table where rows are found or given back.

A chunk is one transaction, in which one savepoint is always open. A piece that the server takes renews it; one that
it refuses goes back to it, and `sieve.sift` takes the bad row out: by the line that COPY names, by the key of the
error's DETAIL (foreign keys are checked at a statement's end, when there are no lines any more), or by halving.
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
from webapp.connectors import sql
from webapp.connectors.base import ConnectorError, Failure, Sent, Target, Writing
from webapp.connectors.postgresql_binary import CopyBinary
from webapp.connectors.postgresql_copy import CopyText, Lines
from webapp.connectors.postgresql_staged import Staged
from webapp.connectors.shape import Entity
from webapp.connectors.sieve import Pace, Refusal, sift
from webapp.engine.formats.sql_dialects import DIALECTS

DIALECT: Final = DIALECTS["postgresql"]

_SAVE: Final = b"SAVEPOINT rows"
_RENEW: Final = b"RELEASE rows; SAVEPOINT rows"
_BACK: Final = b"ROLLBACK TO rows"
# `Key (a, b)=(1, x) is not present in table "t".`, in whatever language.
_KEY: Final = re.compile(r"\((?P<columns>.*?)\)=\((?P<values>.*)\)", re.S)
# Which cluster this is, where the account may ask: its copies and standbys have the same number.
SYSTEM: Final = (
    b"CASE WHEN has_function_privilege('pg_control_system()', 'execute')"
    b" THEN (SELECT system_identifier::text FROM pg_control_system()) END"
)
_LEFT_OUT: Final = Refusal("refused", "A trigger or a rule of the table left this row out without a word.")


class PostgresqlTarget(Target):
    """See `Target`. `talking` turns the driver's errors into ours."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        talking: Callable[[], AbstractContextManager[None]],
        writing: Writing,
    ) -> None:
        self.writing = writing
        self._connection, self._talking = connection, talking
        self._text = CopyText(writing.columns)
        self._numbered = CopyText(writing.columns, numbered=True)
        self._binary = CopyBinary(writing.columns)
        table = sql.qualified(DIALECT, writing.entity.parts)
        names = sql.listed(DIALECT, (column.name for column in writing.columns))
        self._copy = f"COPY {table} ({names}) FROM STDIN".encode()
        # A COPY's context begins with the table's name; then the word for "line" of the server's language.
        self._line = re.compile(rf"^COPY {re.escape(writing.entity.parts[-1])}, \S+ (\d+)", re.M)
        self._staged: Staged | None = None
        self._unique = _unique(writing)
        self._inserted: list[list[str]] = []
        self._pace, self._stage_pace = (
            Pace(*limits.TARGET_PIECE_ROWS, limits.TARGET_PIECE_COST_ROWS) for _ in range(2)
        )
        self._open = False

    # --- transactions ---

    def begin(self) -> None:
        """See `Target.begin`."""
        if self._open:
            return
        with self._talking():
            if self._staged is None and self._stages:
                self._staged = Staged(self._connection, self.writing)
            self._connection.execute(b"BEGIN; SAVEPOINT rows")
        if self._staged is not None:
            self._staged.used = False
        self._open, self._inserted = True, []

    @property
    def _stages(self) -> bool:
        return self.writing.mode != "insert" or bool(self.writing.capture)

    def proof(self) -> dict[str, Any]:
        """See `Target.proof`: the transaction's number, the session that holds it, and the keys of two rows that it
        inserted. A server that crashes may use the number again, so after a restart the rows decide."""
        with self._talking():
            row = self._connection.execute(
                # The function beneath pg_stat_activity, without the tables that the view joins.
                b"SELECT txid_current(), pid, backend_start::text, pg_postmaster_start_time()::text, "
                + SYSTEM
                + b" FROM pg_stat_get_activity(pg_backend_pid())"
            ).fetchone()
        assert row is not None
        proof = {"xid": row[0], "pid": row[1], "started": row[2], "server": row[3], "system": row[4]}
        rows = [values for values in self._inserted if self._is_there(values)]
        return {**proof, "keys": list(self._unique), "rows": rows} if rows else proof

    def _is_there(self, values: list[str]) -> bool:
        """Whether a row is found by its key: a trigger or the column's type may have changed the values."""
        try:
            return are_there(self._connection, self.writing.entity, self._unique, [values])
        except psycopg.Error as error:
            if self._connection.closed:
                with self._talking():
                    raise error
            self._connection.execute(_BACK)
            return False

    def _wrote(self, batch: pa.RecordBatch, failures: list[Failure]) -> None:
        """Remember the keys of the first and the last row that were inserted."""
        if self.writing.mode != "insert" or not self._unique:
            return
        bad = {one.index for one in failures}
        good = [
            next((row for row in rows if row not in bad), None) for rows in _from_both_ends(batch.num_rows)
        ]
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
                    f"Refused at the commit: {error.message}",
                    reason="deferred",
                    hint="A deferred constraint of the table does not hold for these rows.",
                    details=error.details,
                ) from error
            raise
        if done.statusmessage != "COMMIT":
            raise ConnectorError("The server rolled the transaction back.", reason="deferred")

    def rollback(self) -> None:
        """See `Target.rollback`."""
        self._open, self._staged = False, None  # it may have been made in this transaction
        try:
            if not self._connection.closed:
                self._connection.execute(b"ROLLBACK")
        except psycopg.Error:
            pass  # gone, and the transaction with it

    # --- rows ---

    def statements(self, batch: pa.RecordBatch) -> list[str]:
        """See `Target.statements`."""
        return sql.statements(DIALECT, self.writing, batch)

    def send(self, batch: pa.RecordBatch) -> Sent:
        """See `Target.send`."""
        return self.prepare(batch)()

    def prepare(self, batch: pa.RecordBatch) -> Callable[[], Sent]:
        """See `Target.prepare`: the rows are written as COPY reads them."""
        if not self._stages and (lines := self._binary.lines(batch)) is not None:
            return partial(self._send, batch, lines, [])
        return partial(self._send, batch, *(self._numbered if self._stages else self._text).lines(batch))

    def _send(self, batch: pa.RecordBatch, lines: Lines, failures: list[Failure]) -> Sent:
        if self._staged is None:
            copy = self._copy + b" (FORMAT binary)" if lines.binary else self._copy
            failures += sift(lines.rows, lambda piece: self._copied(copy, lines, piece, batch), self._pace)
            self._wrote(batch, failures)
            return Sent(sorted(failures, key=_place))
        staged = self._staged
        kept, failures = self._into_stage(staged, batch, lines, failures)
        if self.writing.mode == "update":
            failures += self._found(kept, batch, staged.update)
        else:
            failures += sift(kept, lambda piece: self._carried(staged, piece, batch), self._pace)
        self._wrote(batch, failures)
        return Sent(
            sorted(failures, key=_place), staged.captured(batch.num_rows) if self.writing.capture else None
        )

    def delete(self, batch: pa.RecordBatch) -> Sent:
        """See `Target.delete`."""
        if self._staged is None:
            with self._talking():
                self._staged = Staged(self._connection, self.writing)
        kept, failures = self._into_stage(self._staged, batch, *self._numbered.lines(batch))
        failures += self._found(kept, batch, self._staged.delete)
        return Sent(sorted(failures, key=_place))

    def _into_stage(
        self, staged: Staged, batch: pa.RecordBatch, lines: Lines, failures: list[Failure]
    ) -> tuple[np.ndarray, list[Failure]]:
        """Every row into the temporary table, where the columns' types are checked. Returns those that got there."""
        with self._talking():
            staged.clear()
            self._connection.execute(_RENEW)  # the empty table is what later pieces go back to
        line = re.compile(rf"^COPY {re.escape(staged.name)}, \S+ (\d+)", re.M)
        copied = partial(self._copied, staged.copy, lines, batch=batch, line=line)
        failures += sift(lines.rows, lambda piece: copied(piece=piece), self._stage_pace)
        return np.setdiff1d(lines.rows, [one.index for one in failures], assume_unique=True), failures

    def _copied(
        self,
        statement: bytes,
        lines: Lines,
        piece: np.ndarray,
        batch: pa.RecordBatch,
        line: re.Pattern[str] | None = None,
    ) -> Refusal | None:
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

    def _carried(self, staged: Staged, piece: np.ndarray, batch: pa.RecordBatch) -> Refusal | None:
        """From the temporary table into the real one."""
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
    ) -> list[Failure]:
        """Update or delete the rows that `rows` name; those that are not there fail. Two of one key in a statement
        would be one row's; the later one gets its turn after the earlier."""
        missed: list[np.ndarray] = []

        def attempt(piece: np.ndarray) -> Refusal | None:
            try:
                done = action(piece)
                self._connection.execute(_RENEW)
            except psycopg.Error as error:
                return self._refusal(error, piece, batch, finding=True)
            missed.append(np.setdiff1d(piece, done, assume_unique=True))
            return None

        failures: list[Failure] = []
        for turn in self._turns(rows, batch):
            failures += sift(turn, attempt, self._pace)
        missing = Refusal("missing_row", f"There is no such row in {self.writing.entity.name}.")
        return failures + [missing.of(row) for part in missed for row in part]

    def _turns(self, rows: np.ndarray, batch: pa.RecordBatch) -> list[np.ndarray]:
        """`rows` in parts, in none of which a key occurs twice."""
        keys = pa.table(
            {str(place): self._key(batch, name) for place, name in enumerate(self.writing.key_columns)}
        )
        keys = keys.take(pa.array(rows)).append_column("row", pa.array(rows))
        groups = keys.group_by(keys.column_names[:-1]).aggregate([("row", "list")])["row_list"]
        lengths = pc.list_value_length(groups)
        most = pc.max(lengths).as_py() if len(groups) else 0
        return [
            np.sort(pc.list_element(groups.filter(pc.greater(lengths, turn)), turn).to_numpy())
            for turn in range(most)
        ]

    def _key(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        place = next(at for at, column in enumerate(self.writing.columns) if column.name == name)
        column = batch.column(place)
        return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column

    # --- refusals ---

    def _refusal(
        self,
        error: psycopg.Error,
        piece: np.ndarray,
        batch: pa.RecordBatch,
        line: re.Pattern[str] | None = None,
        *,
        finding: bool = False,
    ) -> Refusal | None:
        """What an error says of the rows of a piece, which is rolled back. Raises what is of no row."""
        state, said = error.sqlstate or "", error.diag
        if self._connection.closed or not sql.is_of_row(state):
            with self._talking():
                raise error
        with self._talking():
            self._connection.execute(_BACK)
        message = said.message_primary or str(error)
        if said.message_detail and state != "23502":
            message += f" {said.message_detail}"
        named = line and line.search(said.context or "")
        at = int(named[1]) - 1 if named else None
        column, bad = said.column_name, None
        if at is None:
            names, bad = self._by_key(said.message_detail or "", piece, batch, state)
            if state == "23502" and column:
                bad = self._nulls(column, piece, batch)
            if not finding and said.table_name != self.writing.entity.parts[-1]:
                bad = None  # a trigger's work on another table, whose columns may have the same names
            else:
                column = column or (names[0] if len(names) == 1 else None)
        return Refusal(
            sql.reason_of(state), sql.shortened(message), state, column or self._constrained(said), at, bad
        )

    def _constrained(self, said: Any) -> str | None:
        """The column that a foreign key or a unique constraint is of, where it is of one."""
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
        """The columns of a DETAIL's key, and the places in the piece that hold its values. Of rows that repeat a key
        the last is at fault: the first may be in its right."""
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

    def _nulls(self, column: str, piece: np.ndarray, batch: pa.RecordBatch) -> np.ndarray | None:
        if column not in [one.name for one in self.writing.columns]:
            return None
        return np.flatnonzero(self._key(batch, column).take(pa.array(piece)).is_null())


def are_there(
    connection: psycopg.Connection[Any], entity: Entity, keys: Sequence[str], rows: Sequence[Sequence[str]]
) -> bool:
    """Whether a table has a row for each of some keys, whose values are texts."""
    found = " AND ".join(f"{DIALECT.quoted(name).replace('%', '%%')} = %s" for name in keys)
    table = sql.qualified(DIALECT, entity.parts).replace("%", "%%")
    statement = f"SELECT 1 FROM {table} WHERE {found} LIMIT 1".encode()
    return all(connection.execute(statement, list(values)).fetchone() is not None for values in rows)


def _unique(writing: Writing) -> tuple[str, ...]:
    """The columns of the shortest unique key of which the rows bring every column."""
    entity, brought = writing.entity, {column.name for column in writing.columns}
    uniques = [(column.name,) for column in entity.fields if column.unique]
    known = [tuple(key) for key in (entity.keys, *entity.uniques, *uniques) if key and set(key) <= brought]
    return min(known, key=len, default=())


def _from_both_ends(count: int) -> tuple[range, range]:
    return range(count), range(count - 1, -1, -1)


def _place(failure: Failure) -> int:
    return failure.index
