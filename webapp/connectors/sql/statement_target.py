"""Targets of the kinds that write rows with literal statements or arrays of rows: SQL Server, Oracle, Db2."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from webapp import limits
from webapp.connectors.arrow_values import of_objects
from webapp.connectors.base import ConnectorError, RowError, Target, WriteResult, WriteSpec
from webapp.connectors.row_isolation import BatchSizer, RowRejection, isolate_bad_rows
from webapp.connectors.sql import base
from webapp.engine.formats.sql_dialects import Dialect

Cells = Sequence[Sequence[str]]
"""The literals of each column, row by row."""


@dataclass
class CommitKeys:
    """Records unique keys of some inserted rows as literals. After the transaction they are either in the
    table or not.

    Reading them waits for a transaction that still locks them.
    """

    writing: WriteSpec
    rows: list[list[str]] = field(default_factory=list)
    written: int = 0

    def __post_init__(self) -> None:
        brought = {column.name for column in self.writing.columns}
        whole = [
            one
            for one in (self.writing.entity.keys, *self.writing.entity.uniques)
            if one and set(one) <= brought
        ]
        self.keys = min(whole, key=len, default=())

    def begin(self) -> None:
        """Start over for a new transaction."""
        self.rows, self.written = [], 0

    def wrote(self, names: Sequence[str], cells: Sequence[Sequence[str]], rows: Sequence[int]) -> None:
        """Record that the rows at these positions of the columns were written."""
        self.written += len(rows)
        if not rows or not self.keys or len(self.rows) >= limits.MYSQL_PROOF_ROWS:
            return
        for row in dict.fromkeys((rows[0], rows[len(rows) // 2], rows[-1])):
            key = [cells[names.index(name)][row] for name in self.keys]
            if "NULL" not in key:
                self.rows.append(key)

    def told(self) -> dict[str, Any]:
        """See `base.Target.commit_token`."""
        if self.writing.mode != "insert" or (self.written and not self.rows):
            return {}
        return {"keys": list(self.keys), "rows": self.rows}


class StatementTarget(Target):
    """A table of a `StatementSession` whose connection is `link`."""

    dialect: ClassVar[Dialect]
    title: ClassVar[str] = ""
    """Set by kinds that return generated values only for inserted rows: their name for the message."""
    _link: Any

    def __init__(self, link: Any, writing: WriteSpec) -> None:
        self.writing = writing
        self._link = link
        self._table = base.qualified(self.dialect, writing.entity.parts)
        self._names = [column.name for column in writing.columns]
        self._commit_keys = CommitKeys(writing)
        self._open = False
        self._caught: dict[int, Sequence[Any]] = {}
        """Values that the server generated, by the row's position in the batch."""
        if self.title and writing.capture and writing.mode != "insert":
            raise ConnectorError(
                f"{self.title} returns generated values only for inserted rows.",
                reason="unsupported",
                hint="Remove the columns to capture.",
            )

    # --- differences between kinds ---

    def opening(self) -> None:
        """Open a transaction."""
        self._link.begin()

    def ending(self) -> None:
        """Commit the open transaction."""
        self._link.commit()

    def undoing(self) -> None:
        """Roll back the open transaction."""
        self._link.rollback()

    @abstractmethod
    def sent(self, batch: pa.RecordBatch, mode: str) -> WriteResult:
        """Write or delete the rows of a batch."""

    # --- transactions ---

    def begin(self) -> None:
        """See `Target.begin`."""
        if not self._open:
            self.opening()
            self._commit_keys.begin()
            self._open = True

    def commit_token(self) -> dict[str, Any]:
        """See `Target.commit_token`: keys of rows that were inserted."""
        return self._commit_keys.told()

    def commit(self) -> None:
        """See `Target.commit`."""
        self._open = False
        self.ending()

    def rollback(self) -> None:
        """See `Target.rollback`."""
        self._open = False
        try:
            self.undoing()
        except ConnectorError:
            pass  # the connection is lost, and the transaction with it

    # --- rows ---

    def statements(self, batch: pa.RecordBatch) -> list[str]:
        """See `Target.statements`."""
        return base.statements(self.dialect, self.writing, batch)

    def send(self, batch: pa.RecordBatch) -> WriteResult:
        """See `Target.send`."""
        return self.sent(batch, self.writing.mode)

    def delete(self, batch: pa.RecordBatch) -> WriteResult:
        """See `Target.delete`."""
        return self.sent(batch, "delete")

    def missing(self, row: int) -> RowError:
        """Return the error of a row that does not exist in the table."""
        return RowError(row, "missing_row", f"No such row exists in {self.writing.entity.name}.")

    def captured(self, count: int) -> pa.RecordBatch:
        """Return the generated values of each row of a batch, null for rejected rows."""
        names = list(self.writing.capture)
        none = (None,) * len(names)
        rows = [self._caught.get(row, none) for row in range(count)]
        arrays = [of_objects([row[place] for row in rows]) for place in range(len(names))]
        return pa.RecordBatch.from_arrays(arrays, names)


class LiteralTarget(StatementTarget):
    """A target whose statements contain the literals of many rows. A rejected statement is rolled back and
    split."""

    most_rows: ClassVar[int]
    """Maximum number of rows in a statement."""
    most_length: ClassVar[int]
    """Maximum length of a statement's literals, as measured by `length`."""

    @abstractmethod
    def spelled(self, batch: pa.RecordBatch) -> tuple[list[list[str]], list[RowError]]:
        """Return the literals of each column, and the errors of rows with a value that does not fit."""

    @abstractmethod
    def attempt(self, cells: Cells, rows: list[int], mode: str) -> RowRejection | None:
        """Write or delete these rows with one statement, or none of them if it is rejected.

        Rows that an update or delete does not find are a rejection, or are reported by `unfound`.
        """

    def unfound(self, rows: Sequence[int], mode: str) -> list[int]:
        """Return which of the accepted rows did not exist."""
        return []

    @staticmethod
    def length(literal: str) -> int:
        """Return how much a literal counts toward `most_length`."""
        return len(literal)

    def sent(self, batch: pa.RecordBatch, mode: str) -> WriteResult:
        """See `StatementTarget.sent`."""
        cells, failures = self.spelled(batch)
        self._caught = {}
        bad = {error.index for error in failures}
        rows = [row for row in range(batch.num_rows) if row not in bad]
        keys = (
            [] if mode == "insert" else [cells[self._names.index(name)] for name in self.writing.key_columns]
        )

        def attempt(piece: np.ndarray) -> RowRejection | None:
            return self.attempt(cells, piece.tolist(), mode)

        batch_sizer = BatchSizer(self.most_rows, self.most_rows)
        for piece in pieces(rows, cells, keys, self.most_rows, self.most_length, self.length):
            failures += isolate_bad_rows(piece, attempt, batch_sizer)
        bad = {error.index for error in failures}
        stand = [row for row in rows if row not in bad]
        failures += map(self.missing, self.unfound(stand, mode))
        if mode == "insert":
            self._commit_keys.wrote(self._names, cells, stand)
        failures.sort(key=lambda one: one.index)
        wanted = self.writing.capture and mode != "delete"
        return WriteResult(failures, self.captured(batch.num_rows) if wanted else None)

    def insert(self, cells: Cells, rows: Sequence[int]) -> str:
        """Return the INSERT statement for rows."""
        values = ",".join("(" + ",".join([column[row] for column in cells]) + ")" for row in rows)
        return f"INSERT INTO {self._table} ({base.listed(self.dialect, self._names)}) VALUES {values}"


def pieces(
    rows: Sequence[int],
    cells: Cells,
    keys: Cells,
    most_rows: int,
    most_length: int,
    length: Callable[[str], int],
) -> Iterator[np.ndarray]:
    """Split rows into pieces for one statement each, within the limits and without a key twice in a piece."""
    piece: list[int] = []
    seen: set[tuple[str, ...]] = set()
    size = 0
    for row in rows:
        long = sum(length(column[row]) for column in cells)
        key = tuple(column[row] for column in keys)
        full = len(piece) == most_rows or size + long > most_length
        if piece and (full or (keys and key in seen)):
            yield np.array(piece)
            piece, size = [], 0
            seen.clear()
        piece.append(row)
        seen.add(key)
        size += long
    if piece:
        yield np.array(piece)
