"""What tables share that are written to by statements of literals or by arrays of rows: SQL Server, Oracle, Db2."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from webapp import limits
from webapp.connectors import sql
from webapp.connectors.base import ConnectorError, Failure, Sent, Target, Writing
from webapp.connectors.sieve import Pace, Refusal, sift
from webapp.connectors.sql_values import of_objects
from webapp.engine.formats.sql_dialects import Dialect

Cells = Sequence[Sequence[str]]
"""Literals of each column, row by row."""


@dataclass
class Proof:
    """Notes unique keys of some rows that were inserted, as literals: afterwards they are in the table or they are
    not. Reading them waits for whoever still holds them."""

    writing: Writing
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
        """A transaction was opened."""
        self.rows, self.written = [], 0

    def wrote(self, names: Sequence[str], cells: Sequence[Sequence[str]], rows: Sequence[int]) -> None:
        """These places of the columns' literals stand in the table."""
        self.written += len(rows)
        if not rows or not self.keys or len(self.rows) >= limits.MYSQL_PROOF_ROWS:
            return
        for row in dict.fromkeys((rows[0], rows[len(rows) // 2], rows[-1])):
            key = [cells[names.index(name)][row] for name in self.keys]
            if "NULL" not in key:
                self.rows.append(key)

    def told(self) -> dict[str, Any]:
        """See `base.Target.proof`."""
        if self.writing.mode != "insert" or (self.written and not self.rows):
            return {}
        return {"keys": list(self.keys), "rows": self.rows}


class StatementTarget(Target):
    """A table of a `StatementSession`, whose connection is `link`."""

    dialect: ClassVar[Dialect]
    title: ClassVar[str] = ""
    """Of a kind that brings values back of rows that are inserted only."""
    _link: Any

    def __init__(self, link: Any, writing: Writing) -> None:
        self.writing = writing
        self._link = link
        self._table = sql.qualified(self.dialect, writing.entity.parts)
        self._names = [column.name for column in writing.columns]
        self._proof = Proof(writing)
        self._open = False
        self._caught: dict[int, Sequence[Any]] = {}
        """What the server made, by the place of the row in the batch."""
        if self.title and writing.capture and writing.mode != "insert":
            raise ConnectorError(
                f"{self.title} brings values back of rows that are inserted only.",
                reason="unsupported",
                hint="Capture nothing.",
            )

    # --- what kinds differ in ---

    def opening(self) -> None:
        """Open a transaction."""
        self._link.begin()

    def ending(self) -> None:
        """Commit the open transaction."""
        self._link.commit()

    def undoing(self) -> None:
        """Undo the open transaction."""
        self._link.rollback()

    @abstractmethod
    def sent(self, batch: pa.RecordBatch, mode: str) -> Sent:
        """Write or delete the rows of a batch."""

    # --- transactions ---

    def begin(self) -> None:
        """See `Target.begin`."""
        if not self._open:
            self.opening()
            self._proof.begin()
            self._open = True

    def proof(self) -> dict[str, Any]:
        """See `Target.proof`: keys of rows that were inserted."""
        return self._proof.told()

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
            pass  # gone, and the transaction with it

    # --- rows ---

    def statements(self, batch: pa.RecordBatch) -> list[str]:
        """See `Target.statements`."""
        return sql.statements(self.dialect, self.writing, batch)

    def send(self, batch: pa.RecordBatch) -> Sent:
        """See `Target.send`."""
        return self.sent(batch, self.writing.mode)

    def delete(self, batch: pa.RecordBatch) -> Sent:
        """See `Target.delete`."""
        return self.sent(batch, "delete")

    def missing(self, row: int) -> Failure:
        """A row that finds none of the table."""
        return Failure(row, "missing_row", f"There is no such row in {self.writing.entity.name}.")

    def captured(self, count: int) -> pa.RecordBatch:
        """What the server made for each of the rows of a batch, null for those that failed."""
        names = list(self.writing.capture)
        none = (None,) * len(names)
        rows = [self._caught.get(row, none) for row in range(count)]
        arrays = [of_objects([row[place] for row in rows]) for place in range(len(names))]
        return pa.RecordBatch.from_arrays(arrays, names)


class LiteralTarget(StatementTarget):
    """Its statements hold the literals of many rows. Each is undone as a whole where it is refused, and halved."""

    most_rows: ClassVar[int]
    """Rows of one statement."""
    most_length: ClassVar[int]
    """Of a statement's literals, as `length` counts them."""

    @abstractmethod
    def spelled(self, batch: pa.RecordBatch) -> tuple[list[list[str]], list[Failure]]:
        """Literals of each column, and the rows that have a value its column cannot hold."""

    @abstractmethod
    def attempt(self, cells: Cells, rows: list[int], mode: str) -> Refusal | None:
        """Write or delete these rows by one statement; refused, none of them is. Rows that an update or a delete does
        not find are a refusal, or they are told by `unfound`."""

    def unfound(self, rows: Sequence[int], mode: str) -> list[int]:
        """Which of the rows that nobody refused were not there."""
        return []

    @staticmethod
    def length(literal: str) -> int:
        """How much of `most_length` a literal takes."""
        return len(literal)

    def sent(self, batch: pa.RecordBatch, mode: str) -> Sent:
        """See `StatementTarget.sent`."""
        cells, failures = self.spelled(batch)
        self._caught = {}
        bad = {one.index for one in failures}
        rows = [row for row in range(batch.num_rows) if row not in bad]
        keys = (
            [] if mode == "insert" else [cells[self._names.index(name)] for name in self.writing.key_columns]
        )

        def attempt(piece: np.ndarray) -> Refusal | None:
            return self.attempt(cells, piece.tolist(), mode)

        pace = Pace(self.most_rows, self.most_rows)
        for piece in pieces(rows, cells, keys, self.most_rows, self.most_length, self.length):
            failures += sift(piece, attempt, pace)
        bad = {one.index for one in failures}
        stand = [row for row in rows if row not in bad]
        failures += map(self.missing, self.unfound(stand, mode))
        if mode == "insert":
            self._proof.wrote(self._names, cells, stand)
        failures.sort(key=lambda one: one.index)
        wanted = self.writing.capture and mode != "delete"
        return Sent(failures, self.captured(batch.num_rows) if wanted else None)

    def insert(self, cells: Cells, rows: Sequence[int]) -> str:
        """The statement that inserts rows."""
        values = ",".join("(" + ",".join([column[row] for column in cells]) + ")" for row in rows)
        return f"INSERT INTO {self._table} ({sql.listed(self.dialect, self._names)}) VALUES {values}"


def pieces(
    rows: Sequence[int],
    cells: Cells,
    keys: Cells,
    most_rows: int,
    most_length: int,
    length: Callable[[str], int],
) -> Iterator[np.ndarray]:
    """Rows for one statement each: so many, so long, and no key twice, since each stands for itself."""
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
