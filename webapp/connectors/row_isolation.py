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

    def error_for(self, index: int) -> RowError:
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

    def __init__(self, minimum: int, maximum: int, cost: int = 0) -> None:
        self._minimum, self._maximum, self._cost = minimum, maximum, cost
        self._gap: float = 0.0
        self._accepted = 0
        self._rows = maximum
        self._streak = 0

    @property
    def rows(self) -> int:
        """The number of rows to try next."""
        return self._rows if self._streak < _STREAK else 1

    def record_rejected(self, rows: int) -> None:
        """Record that one attempt found this many bad rows."""
        self._streak = self._streak + 1 if rows == 1 else 0

    def record_accepted(self, rows: int) -> None:
        """Record that this many rows were accepted together."""
        self._streak = 0
        self._accepted += rows
        if self._gap and self._accepted > 2 * self._gap:
            self._set_gap(self._accepted)

    def record_stop(self, rows: int) -> None:
        """Record that this many good rows preceded a bad one. They are sent again."""
        gap = self._accepted + rows
        self._accepted = -rows
        self._set_gap((self._gap + gap) / 2 if self._gap else gap)

    def _set_gap(self, gap: float) -> None:
        self._gap = max(gap, 1.0)
        self._rows = round(min(max((2 * self._cost * self._gap) ** 0.5, self._minimum), self._maximum))


def isolate_bad_rows(
    rows: np.ndarray, attempt: Attempt, batch_sizer: BatchSizer | None = None
) -> list[RowError]:
    """Send rows, and return the errors of those that the target rejects, ordered by position.

    `rows` are positions in the batch. `attempt` writes all rows that it gets, in order, or none and returns
    why. Rejected rows are removed, and the others are sent again in their order.
    """
    failures: list[RowError] = []
    pending = [rows]
    while pending:
        piece = pending.pop()
        if batch_sizer is not None and piece.size > batch_sizer.rows:
            pending.append(piece[batch_sizer.rows :])
            piece = piece[: batch_sizer.rows]
        if not piece.size:
            continue
        rejection = attempt(piece)
        if rejection is None:
            if batch_sizer is not None:
                batch_sizer.record_accepted(piece.size)
            continue
        accepted, known = piece.size // 2, len(failures)
        if rejection.at is not None and 0 <= rejection.at < piece.size:
            accepted = rejection.at
            failures.append(rejection.error_for(piece[accepted]))
            pending += [piece[accepted + 1 :], piece[:accepted]]
        elif rejection.bad is not None and rejection.bad.size:
            accepted = piece.size // (rejection.bad.size + 1)
            failures += map(rejection.error_for, piece[rejection.bad])
            pending.append(np.delete(piece, rejection.bad))
        elif piece.size == 1:
            failures.append(rejection.error_for(piece[0]))
        elif rejection.suspect is not None and 0 <= rejection.suspect < piece.size:
            accepted = rejection.suspect
            pending += [piece[accepted + 1 :], piece[accepted : accepted + 1], piece[:accepted]]
        else:
            pending += [piece[accepted:], piece[:accepted]]
        if batch_sizer is not None:
            batch_sizer.record_stop(accepted)
            if len(failures) > known:
                batch_sizer.record_rejected(len(failures) - known)
    return sorted(failures, key=lambda failure: failure.index)
