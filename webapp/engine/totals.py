"""Running totals: the sum of a column from row 0 to any row, with no row counted more often than need be.

The sum before row r is a fact of the column, so it may be kept: at every `limits.TOTAL_STEP_ROWS` rows, and where
streams left off. What is kept hangs on nothing that is asked for, and losing it costs time alone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from webapp import limits

Units = Callable[[int, int], np.ndarray]
"""``units(start, count)``: ``int64[count]``, the column's values in rows ``start`` to ``start + count - 1``."""

_STEP = limits.TOTAL_STEP_ROWS


class Totals:
    """The sums of one column. Threads may share it: whatever two of them write is the same."""

    def __init__(self) -> None:
        self._before: dict[int, int] = {0: 0}  # step number -> sum of the rows before it, without a gap
        self._ends: OrderedDict[int, int] = OrderedDict()

    def through(self, rows: np.ndarray, own: Callable[[], np.ndarray], units: Units) -> np.ndarray:
        """``int64[n]``: for each of ``rows`` (``uint64[n]``) the sum of the rows up to and with it.

        ``own()`` answers the values of the rows themselves.
        """
        if not rows.size:
            return np.zeros(0, np.int64)
        first, last = int(rows[0]), int(rows[-1])
        if last - first == rows.size - 1 and bool((rows[1:] > rows[:-1]).all()):
            base, sums = self.before(first, units), np.cumsum(own())
            sums += base
            self._remember(first, last, base, sums)
            return sums
        return self._scattered(rows, units)

    def _scattered(self, rows: np.ndarray, units: Units) -> np.ndarray:
        sums = np.empty(rows.size, np.int64)
        step = rows // np.uint64(_STEP)
        for number in np.unique(step).tolist():
            here, start = step == number, number * _STEP
            place = (rows[here] - np.uint64(start)).astype(np.int64)
            sums[here] = np.cumsum(units(start, int(place.max()) + 1))[place] + self.before(start, units)
        return sums

    def before(self, row: int, units: Units) -> int:
        """The sum of the rows before ``row``."""
        found = self._ends.get(row)
        if found is not None:
            return found
        step, rest = divmod(row, _STEP)
        known = min(len(self._before) - 1, step)
        total = self._before[known]
        while known < step:
            total += int(units(known * _STEP, _STEP).sum())
            known += 1
            self._before[known] = total
        return total + int(units(step * _STEP, rest).sum()) if rest else total

    def _remember(self, first: int, last: int, base: int, sums: np.ndarray) -> None:
        step = len(self._before)
        while first <= step * _STEP <= last + 1:
            place = step * _STEP - first
            self._before[step] = int(sums[place - 1]) if place else base
            step += 1
        self._ends[last + 1] = int(sums[-1])
        while len(self._ends) > limits.TOTAL_ENDS:
            self._ends.popitem(last=False)


_KEPT: OrderedDict[Hashable, tuple[Totals, Any]] = OrderedDict()


def kept(decisive: Hashable, alive: Any) -> Totals:
    """The sums of the column that ``decisive`` tells from every other: plan, seed, now, overrides, field.

    ``alive`` is held with them, so that an identity in ``decisive`` is not given to another object.
    """
    found = _KEPT.get(decisive)
    if found is None:
        found = _KEPT[decisive] = (Totals(), alive)
        while len(_KEPT) > limits.TOTALS_KEPT:
            _KEPT.popitem(last=False)
    return found[0]
