"""Rows into a SQLite table: many at once, and one by one where one of them is refused."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

import pyarrow as pa

from webapp import limits
from webapp.connectors import sql
from webapp.connectors.base import ConnectorError, Failure, Sent, Target, Writing
from webapp.connectors.sql_values import read
from webapp.connectors.sqlite_session import DIALECT, ROWID, bindable, translated

# SQLite's extended result codes (sqlite.org/rescode.html) in our words.
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
_PROOF_CELLS: Final = 8  # columns of the row that a proof names
_PROOF_CHARS: Final = 200


class SqliteTarget(Target):
    """See `Target`. `talking` turns SQLite's errors into ours; `bound` bounds what a transaction may add."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        talking: Callable[[], AbstractContextManager[None]],
        writing: Writing,
        bound: Callable[[], None] = lambda: None,
    ) -> None:
        self.writing, self._bound = writing, bound
        self._connection, self._talking = connection, talking
        self._names = [column.name for column in writing.columns]
        self._proof: dict[str, Any] = {}
        self._statement, self._order = self._written()

    def _written(self) -> tuple[str, list[int]]:
        """The statement with its places, and which column goes into each."""
        writing, quoted = self.writing, DIALECT.quoted
        table, keys = sql.qualified(DIALECT, writing.entity.parts), writing.key_columns
        back = f" RETURNING {sql.listed(DIALECT, writing.capture)}" if writing.capture else ""
        others = [name for name in self._names if name not in keys]
        order = list(range(len(self._names)))
        if writing.mode == "update":
            setting = ", ".join(f"{quoted(name)} = ?" for name in others or keys[:1])
            found = " AND ".join(f"{quoted(name)} = ?" for name in keys)
            order = [self._names.index(name) for name in (*(others or keys[:1]), *keys)]
            return f"UPDATE {table} SET {setting} WHERE {found}{back}", order
        conflict = ""
        if writing.mode == "upsert":
            setting = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in others or keys[:1])
            conflict = f" ON CONFLICT ({sql.listed(DIALECT, keys)}) DO UPDATE SET {setting}"
        places = ", ".join("?" * len(self._names))
        names = sql.listed(DIALECT, self._names)
        return f"INSERT INTO {table} ({names}) VALUES ({places}){conflict}{back}", order

    # --- transactions ---

    def begin(self) -> None:
        """See `Target.begin`."""
        if not self._connection.in_transaction:
            self._proof = {}
            with self._talking():
                self._bound()
                self._connection.execute("BEGIN IMMEDIATE")

    def proof(self) -> dict[str, Any]:
        """See `Target.proof`: a row that is there once the transaction is committed, or one that is gone by then."""
        return self._proof

    def commit(self) -> None:
        """See `Target.commit`."""
        try:
            self._connection.execute("COMMIT")
        except sqlite3.IntegrityError as error:
            self.rollback()
            raise ConnectorError(
                f"Refused at the commit: {error}",
                reason="deferred",
                hint="A deferred foreign key of the table does not hold for these rows.",
            ) from error
        except sqlite3.Error as error:
            raise translated(error) from error

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
        return sql.statements(DIALECT, self.writing, batch)

    def send(self, batch: pa.RecordBatch) -> Sent:
        """See `Target.send`."""
        cells = self._cells(batch)
        rows = list(zip(*(cells[place] for place in self._order), strict=True))
        failures, captured = self._sent(self._statement, rows)
        self._note(cells, failures, len(rows))
        return Sent(failures, self._keys(captured) if self.writing.capture else None)

    def delete(self, batch: pa.RecordBatch) -> Sent:
        """See `Target.delete`."""
        keys = self.writing.key_columns
        found = " AND ".join(f"{DIALECT.quoted(name)} = ?" for name in keys)
        table = sql.qualified(DIALECT, self.writing.entity.parts)
        cells = self._cells(batch)
        rows = list(zip(*(cells[self._names.index(name)] for name in keys), strict=True))
        failures, _ = self._sent(f"DELETE FROM {table} WHERE {found}", rows)
        last = _last(failures, len(rows))
        if last is not None:
            self._proof = {"absent": dict(zip(keys, rows[last], strict=True))}
        return Sent(failures)

    def _cells(self, batch: pa.RecordBatch) -> list[list[Any]]:
        return [
            bindable(array, column) for array, column in zip(batch.columns, self.writing.columns, strict=True)
        ]

    def _sent(self, statement: str, rows: list[tuple[Any, ...]]) -> tuple[list[Failure], list[Any]]:
        """The refused rows, and what RETURNING gave for each."""
        failures: list[Failure] = []
        captured: list[Any] = []
        size = limits.TARGET_SAVEPOINT_ROWS
        with self._talking():
            for at in range(0, len(rows), size):
                piece = rows[at : at + size]
                if self.writing.capture or not self._at_once(statement, piece):
                    failures += self._one_by_one(statement, piece, at, captured)
        return failures, captured

    def _at_once(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> bool:
        """Whether every row was taken; if not, none was."""
        self._connection.execute("SAVEPOINT rows")
        try:
            taken = self._connection.executemany(statement, rows).rowcount
        except (sqlite3.Error, OverflowError) as error:
            if not _is_of_row(error):
                raise
            taken = -1
        self._still_open()
        if taken != len(rows):
            self._connection.execute("ROLLBACK TO rows")
        self._connection.execute("RELEASE rows")
        return taken == len(rows)

    def _one_by_one(
        self, statement: str, rows: Sequence[tuple[Any, ...]], start: int, captured: list[Any]
    ) -> list[Failure]:
        failures: list[Failure] = []
        for index, row in enumerate(rows, start):
            answer = None
            try:
                cursor = self._connection.execute(statement, row)
                if self.writing.capture:
                    answer = cursor.fetchone()
                    cursor.fetchall()
                taken = answer is not None if self.writing.capture else cursor.rowcount > 0
                if not taken:
                    failures.append(self._left_out(index, statement))
            except (sqlite3.Error, OverflowError) as error:
                if not _is_of_row(error):
                    raise
                self._still_open()
                failures.append(_failure(index, error))
            captured.append(answer)
        return failures

    def _still_open(self) -> None:
        if not self._connection.in_transaction:
            raise ConnectorError(
                "A trigger or constraint of the table rolled the whole chunk back.",
                reason="rolled_back",
                hint="Take RAISE(ROLLBACK) or ON CONFLICT ROLLBACK out of the table.",
            )

    def _left_out(self, index: int, statement: str) -> Failure:
        if statement.startswith("INSERT"):
            return Failure(
                index, "refused", "A trigger or constraint of the table left this row out without a word."
            )
        return Failure(index, "missing_row", f"There is no such row in {self.writing.entity.name}.")

    def _keys(self, captured: list[Any]) -> pa.RecordBatch:
        arrays = []
        for place, name in enumerate(self.writing.capture):
            values = [None if row is None or row[place] is None else str(row[place]) for row in captured]
            column = self.writing.entity.column(name)
            arrays.append(read(values, column.type if column else "text", column.scale if column else None))
        return pa.RecordBatch.from_arrays(arrays, list(self.writing.capture))

    # --- proof ---

    def _note(self, cells: list[list[Any]], failures: list[Failure], count: int) -> None:
        """Remember the last row that was inserted: by its rowid where there is one, and by what it holds."""
        last = _last(failures, count)
        if self.writing.mode != "insert" or last is None:
            return
        sent = {name: values[last] for name, values in zip(self._names, cells, strict=True)}
        names = [name for name in sent if isinstance(sent[name], int | str)][:_PROOF_CELLS]
        table = sql.qualified(DIALECT, self.writing.entity.parts)
        chosen = "".join(f", {DIALECT.quoted(name)}" for name in names)
        try:
            row = self._connection.execute(
                f"SELECT rowid{chosen} FROM {table} WHERE rowid = last_insert_rowid()"
            )
            found = dict(zip((ROWID, *names), row.fetchone() or (), strict=False))
        except sqlite3.OperationalError:
            found = {}  # WITHOUT ROWID: its keys are sent with the row
            if set(self.writing.entity.keys) <= set(names):
                found = {name: sent[name] for name in self.writing.entity.keys}
        proof = {
            name: value
            for name, value in found.items()
            if isinstance(value, int) or (isinstance(value, str) and len(value) <= _PROOF_CHARS)
        }
        self._proof = {"found": proof} if proof else self._proof


def _last(failures: list[Failure], count: int) -> int | None:
    """The last row that was taken."""
    bad = {failure.index for failure in failures}
    return next((row for row in range(count - 1, -1, -1) if row not in bad), None)


def _is_of_row(error: Exception) -> bool:
    if isinstance(error, OverflowError):
        return True
    name = getattr(error, "sqlite_errorname", None) or ""
    return name.startswith("SQLITE_CONSTRAINT") or name in _REASONS


def _failure(index: int, error: Exception) -> Failure:
    if isinstance(error, OverflowError):
        return Failure(index, "out_of_range", "The number has more than 64 bits.")
    name = getattr(error, "sqlite_errorname", None) or ""
    column = _COLUMN.search(str(error))
    return Failure(
        index, _REASONS.get(name, "refused"), sql.shortened(str(error)), name, column and column[1]
    )
