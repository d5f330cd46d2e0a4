"""Bad rows taken out of a chunk: by the place the target names, by their values, else by halving."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from webapp.connectors.base import Failure


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a target did not take some rows, all of which it has rolled back.

    `at`: the place among them of the first bad one, those before it being good so far; `bad`: places that are all bad
    for the same reason; `suspect`: the place of one that may be at fault, which is tried by itself between those
    before and after it. With none of them, the rows are halved. A fault of rows together (two of one key
    in a statement that takes each but once) goes away by halving.
    """

    reason: str
    message: str
    native: str = ""
    column: str | None = None
    at: int | None = None
    bad: np.ndarray | None = None
    suspect: int | None = None

    def of(self, index: int) -> Failure:
        """The failure of one row."""
        return Failure(int(index), self.reason, self.message, self.native, self.column)


_STREAK: Final = 5  # chosen: small beside the rows of a piece, so that few rows are sent in vain
Attempt = Callable[[np.ndarray], Refusal | None]


class Pace:
    """How many rows are tried at once. Where a bad row comes every `gap` rows, pieces of `rows` cost `gap / rows` times
    what a piece costs beside its rows (`cost`, in rows), and half a piece that is sent twice: least at the square root
    of 2 * cost * gap. The gap is that of the last bad rows, and longer once so many good ones went through.

    When `_STREAK` rows in succession were rejected one by one, rows are tried one by one until the target accepts one:
    a table that rejects every row then costs one attempt per row."""

    def __init__(self, least: int, most: int, cost: int = 0) -> None:
        self._least, self._most, self._cost = least, most, cost
        self._gap: float = 0.0
        self._good = 0
        self._rows = most
        self._streak = 0

    @property
    def rows(self) -> int:
        """How many rows to try next."""
        return self._rows if self._streak < _STREAK else 1

    def rejected(self, rows: int) -> None:
        """One attempt has found so many bad rows."""
        self._streak = self._streak + 1 if rows == 1 else 0

    def went(self, rows: int) -> None:
        """So many rows went through at once."""
        self._streak = 0
        self._good += rows
        if self._gap and self._good > 2 * self._gap:
            self._set(self._good)

    def stopped(self, rows: int) -> None:
        """So many rows were good before a bad one came. They are sent again."""
        gap = self._good + rows
        self._good = -rows
        self._set((self._gap + gap) / 2 if self._gap else gap)

    def _set(self, gap: float) -> None:
        self._gap = max(gap, 1.0)
        self._rows = round(min(max((2 * self._cost * self._gap) ** 0.5, self._least), self._most))


def sift(rows: np.ndarray, attempt: Attempt, pace: Pace | None = None) -> list[Failure]:
    """Send `rows` (places in the batch) through `attempt`, which writes all of those it is given, in order, or none and
    says why. What it refuses is taken out, and the others are sent on in their order. Returns the failures by place."""
    failures: list[Failure] = []
    waiting = [rows]
    while waiting:
        piece = waiting.pop()
        if pace is not None and piece.size > pace.rows:
            waiting.append(piece[pace.rows :])
            piece = piece[: pace.rows]
        if not piece.size:
            continue
        refusal = attempt(piece)
        if refusal is None:
            if pace is not None:
                pace.went(piece.size)
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
        if pace is not None:
            pace.stopped(good)
            if len(failures) > known:
                pace.rejected(len(failures) - known)
    return sorted(failures, key=lambda one: one.index)
