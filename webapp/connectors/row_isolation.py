"""Find the rows of a chunk that the target rejects: by position, by value, or by splitting the chunk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from webapp.connectors.base import RowError


@dataclass(frozen=True, slots=True)
class RowRejection:
    """Why a target rejected some rows. It has rolled back all of them.

    `at` is the position of the first bad row if the rows before it were accepted. `bad` are positions that
    are all bad for the same reason. `suspect` is the position of a row that may be at fault; it is tried on
    its own. Without any of them, the rows are split in half. This also resolves conflicts between rows, such
    as two rows with the same key in a statement that accepts each key only once.
    """

    reason: str
    message: str
    native: str = ""
    column: str | None = None
    at: int | None = None
    bad: np.ndarray | None = None
    suspect: int | None = None

    def of(self, index: int) -> RowError:
        """Return the error of one row."""
        return RowError(int(index), self.reason, self.message, self.native, self.column)


_STREAK: Final = 5  # chosen: small compared with the rows of a piece, so that few rows are sent in vain
Attempt = Callable[[np.ndarray], RowRejection | None]


class BatchSizer:
    """Chooses how many rows to try together.

    If a bad row comes every `gap` rows, pieces of `rows` rows cost `gap / rows` times the fixed cost of a
    piece (`cost`, in rows), plus half a piece that is sent twice. The minimum is at the square root of 2 *
    cost * gap. The gap is averaged over the last bad rows, and grows when many good rows were accepted.

    After `_STREAK` rows in succession were rejected one by one, rows are tried one by one until the target
    accepts one: a table that rejects every row then costs one attempt per row.
    """

    def __init__(self, least: int, most: int, cost: int = 0) -> None:
        self._least, self._most, self._cost = least, most, cost
        self._gap: float = 0.0
        self._good = 0
        self._rows = most
        self._streak = 0

    @property
    def rows(self) -> int:
        """The number of rows to try next."""
        return self._rows if self._streak < _STREAK else 1

    def rejected(self, rows: int) -> None:
        """Record that one attempt found this many bad rows."""
        self._streak = self._streak + 1 if rows == 1 else 0

    def went(self, rows: int) -> None:
        """Record that this many rows were accepted together."""
        self._streak = 0
        self._good += rows
        if self._gap and self._good > 2 * self._gap:
            self._set(self._good)

    def stopped(self, rows: int) -> None:
        """Record that this many good rows preceded a bad one. They are sent again."""
        gap = self._good + rows
        self._good = -rows
        self._set((self._gap + gap) / 2 if self._gap else gap)

    def _set(self, gap: float) -> None:
        self._gap = max(gap, 1.0)
        self._rows = round(min(max((2 * self._cost * self._gap) ** 0.5, self._least), self._most))


def isolate_bad_rows(
    rows: np.ndarray, attempt: Attempt, batch_sizer: BatchSizer | None = None
) -> list[RowError]:
    """Send rows, and return the errors of those that the target rejects, ordered by position.

    `rows` are positions in the batch. `attempt` writes all rows that it gets, in order, or none and returns
    why. Rejected rows are removed, and the others are sent again in their order.
    """
    failures: list[RowError] = []
    waiting = [rows]
    while waiting:
        piece = waiting.pop()
        if batch_sizer is not None and piece.size > batch_sizer.rows:
            waiting.append(piece[batch_sizer.rows :])
            piece = piece[: batch_sizer.rows]
        if not piece.size:
            continue
        refusal = attempt(piece)
        if refusal is None:
            if batch_sizer is not None:
                batch_sizer.went(piece.size)
            continue
        good, known = piece.size // 2, len(failures)
        if refusal.at is not None and 0 <= refusal.at < piece.size:
            good = refusal.at
            failures.append(refusal.of(piece[good]))
            waiting += [piece[good + 1 :], piece[:good]]
        elif refusal.bad is not None and refusal.bad.size:
            good = piece.size // (refusal.bad.size + 1)
            failures += map(refusal.of, piece[refusal.bad])
            waiting.append(np.delete(piece, refusal.bad))
        elif piece.size == 1:
            failures.append(refusal.of(piece[0]))
        elif refusal.suspect is not None and 0 <= refusal.suspect < piece.size:
            good = refusal.suspect
            waiting += [piece[good + 1 :], piece[good : good + 1], piece[:good]]
        else:
            waiting += [piece[good:], piece[:good]]
        if batch_sizer is not None:
            batch_sizer.stopped(good)
            if len(failures) > known:
                batch_sizer.rejected(len(failures) - known)
    return sorted(failures, key=lambda one: one.index)
