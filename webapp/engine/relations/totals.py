"""Totals of children per parent, and running totals of a column.

`Totals` has the sum of a column from row 0 to any row, and counts no row more often than necessary. The sum before row
r is a fact of the column, so it may be kept: at every `limits.TOTAL_STEP_ROWS` rows, and where streams left off. The
kept sums do not depend on the request, and losing them only costs time.

The reductions are sum, count, min, max, first, any and average. Values are ``int64`` in units of the last decimal,
never floats, so their order does not matter. Blank children are left out. Every reduction returns ``(int64[k] or
bool[k], bool[k])``: the values, and which parents have at least one child that is not blank; the others have 0
(False).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Literal

import numpy as np

from webapp import limits

Units = Callable[[int, int], np.ndarray]
"""``units(start, count)``: ``int64[count]``, the column's values in rows ``start`` to ``start + count - 1``."""

_STEP = limits.TOTAL_STEP_ROWS


class Totals:
    """The sums of one column. Thread-safe: two threads always write the same values."""

    def __init__(self) -> None:
        self._before: dict[int, int] = {0: 0}  # step number -> sum of the rows before it, without a gap
        self._sums_at_stream_ends: OrderedDict[int, int] = OrderedDict()

    def running_sums(
        self, rows: np.ndarray, row_values: Callable[[], np.ndarray], units: Units
    ) -> np.ndarray:
        """``int64[n]``: for each of ``rows`` (``uint64[n]``) the sum of the rows up to and with it.

        ``own()`` answers the values of the rows themselves.
        """
        if not rows.size:
            return np.zeros(0, np.int64)
        first, last = int(rows[0]), int(rows[-1])
        if last - first == rows.size - 1 and bool((rows[1:] > rows[:-1]).all()):
            base, sums = self.sum_before(first, units), np.cumsum(row_values())
            sums += base
            # What the rows behind these will ask for.
            number = len(self._before)
            while first <= number * _STEP <= last + 1:
                offset = number * _STEP - first
                self._before[number] = int(sums[offset - 1]) if offset else base
                number += 1
            self._sums_at_stream_ends[last + 1] = int(sums[-1])
            while len(self._sums_at_stream_ends) > limits.TOTAL_ENDS:
                self._sums_at_stream_ends.popitem(last=False)
            return sums
        sums = np.empty(rows.size, np.int64)
        step = rows // np.uint64(_STEP)
        for number in np.unique(step).tolist():
            in_step, start = step == number, number * _STEP
            offsets = (rows[in_step] - np.uint64(start)).astype(np.int64)
            sums[in_step] = np.cumsum(units(start, int(offsets.max()) + 1))[offsets] + self.sum_before(
                start, units
            )
        return sums

    def sum_before(self, row: int, units: Units) -> int:
        """The sum of the rows before ``row``."""
        found = self._sums_at_stream_ends.get(row)
        if found is not None:
            return found
        step, rest = divmod(row, _STEP)
        known_steps = min(len(self._before) - 1, step)
        total = self._before[known_steps]
        while known_steps < step:
            total += int(units(known_steps * _STEP, _STEP).sum())
            known_steps += 1
            self._before[known_steps] = total
        return total + int(units(step * _STEP, rest).sum()) if rest else total


_CACHE: OrderedDict[Hashable, tuple[Totals, Any]] = OrderedDict()


def cached_totals(key: Hashable, owner: Any) -> Totals:
    """Return the sums of the column that ``key`` identifies: plan, seed, now, overrides, field.

    ``owner`` is kept with them, so that the identity of an object in ``key`` is not reused.
    """
    found = _CACHE.get(key)
    if found is None:
        found = _CACHE[key] = (Totals(), owner)
        while len(_CACHE) > limits.CACHED_TOTALS:
            _CACHE.popitem(last=False)
    return found[0]


ReductionKind = Literal["sum", "count", "min", "max", "first", "any", "avg"]
ReductionResult = tuple[np.ndarray, np.ndarray]
Valid = np.ndarray | None
"""``bool[m]``, true for children that are not null; None if no child is null."""

_LARGEST = np.iinfo(np.int64).max
_SMALLEST = np.iinfo(np.int64).min
_LOW_32 = np.int64(0xFFFFFFFF)


class SumOverflowError(ArithmeticError):
    """Raised if a parent's sum does not fit in 64 bits."""


def counts(valid: Valid, starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """``int64[k]``: children that are not blank, of each parent with children ``starts`` .. ``starts + sizes``."""
    return sizes.astype(np.int64, copy=False) if valid is None else _ranges(valid, starts, sizes)


def sums(values: np.ndarray, valid: Valid, starts: np.ndarray, sizes: np.ndarray) -> ReductionResult:
    """Raises `SumOverflowError`."""
    having = counts(valid, starts, sizes) > 0
    if valid is not None:
        values = np.where(valid, values, 0)
    found = _ranges(values, starts, sizes)  # running totals may wrap round; their differences come out right
    if sizes.size and _may_overflow(values, int(sizes.max())):
        _check(found, *_words(values, starts, sizes))
    return found, having


def _may_overflow(values: np.ndarray, max_count: int) -> bool:
    return bool(values.size) and max(-int(values.min()), int(values.max())) * max_count > _LARGEST


def _words(values: np.ndarray, starts: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sums of the high and of the low 32 bits of the values; neither can wrap round."""
    return _ranges(values >> 32, starts, sizes), _ranges(values & _LOW_32, starts, sizes)


def _check(found: np.ndarray, high: np.ndarray, low: np.ndarray) -> None:
    if (high + (low >> 32) != found >> 32).any():
        raise SumOverflowError


def _ranges(values: np.ndarray, starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    running = np.empty(values.size + 1, np.int64)
    running[0] = 0
    np.cumsum(values, dtype=np.int64, out=running[1:])
    return running.take(starts + sizes) - running.take(starts)


def minima(values: np.ndarray, valid: Valid, starts: np.ndarray, sizes: np.ndarray) -> ReductionResult:
    """The least value of each parent's children."""
    return _extremes(np.minimum, _LARGEST, values, valid, starts, sizes)


def maxima(values: np.ndarray, valid: Valid, starts: np.ndarray, sizes: np.ndarray) -> ReductionResult:
    """The largest value of each parent's children."""
    return _extremes(np.maximum, _SMALLEST, values, valid, starts, sizes)


def _extremes(
    better: np.ufunc, worst: int, values: np.ndarray, valid: Valid, starts: np.ndarray, sizes: np.ndarray
) -> ReductionResult:
    having = counts(valid, starts, sizes) > 0
    found = np.zeros(sizes.size, np.int64)
    if not having.any():
        return found, having
    if valid is not None:
        values = np.where(valid, values, worst)
    # reduceat answers a range for every even entry; for an empty range it would answer its neighbour's first value.
    edges = np.stack([starts[having], starts[having] + sizes[having]], axis=1).ravel()
    values = np.append(values, worst)  # an edge may be the end
    found[having] = better.reduceat(values, edges)[::2]
    return found, having


def firsts(values: np.ndarray, valid: Valid, starts: np.ndarray, sizes: np.ndarray) -> ReductionResult:
    """The value of each parent's first child that is not blank."""
    having = counts(valid, starts, sizes) > 0
    found = np.zeros(sizes.size, np.int64)
    at = starts[having]
    if valid is not None:
        filled = np.flatnonzero(valid)
        at = filled[np.searchsorted(filled, at)]
    found[having] = values[at]
    return found, having


def anys(values: np.ndarray, valid: Valid, starts: np.ndarray, sizes: np.ndarray) -> ReductionResult:
    """``bool[k]``: whether a child's value is true (not 0)."""
    having = counts(valid, starts, sizes) > 0
    true = values != 0
    if valid is not None:
        true &= valid
    return _ranges(true, starts, sizes) > 0, having


def averages(values: np.ndarray, valid: Valid, starts: np.ndarray, sizes: np.ndarray) -> ReductionResult:
    """Round half to even in the units of the values. Raises `SumOverflowError` if the sum exceeds 64 bits."""
    found, having = sums(values, valid, starts, sizes)
    return half_even(found, np.maximum(counts(valid, starts, sizes), 1)), having


def half_even(numerator: np.ndarray, denominator: np.ndarray | int) -> np.ndarray:
    """``int64[n]``: the quotient rounded to the nearest whole number, halves to the even one; denominators are
    positive."""
    quotient = numerator // denominator
    rest = numerator - quotient * denominator
    against = denominator - rest
    quotient += (rest > against) | ((rest == against) & (quotient & 1 == 1))
    return quotient


_KINDS: dict[str, Callable[..., ReductionResult]] = {
    "sum": sums, "min": minima, "max": maxima, "first": firsts, "any": anys,
}  # fmt: skip


class Reduction:
    """A reduction whose children come in pieces; a parent may be spread over several of them.

    ``sizes`` are the numbers of children of the parents, whose children follow each other parent by parent.
    """

    def __init__(self, kind: ReductionKind, sizes: np.ndarray) -> None:
        self._kind = kind
        self._sizes = sizes.astype(np.int64, copy=False)
        self._ends = np.cumsum(self._sizes)
        self._received = 0
        self._counts = np.zeros(sizes.size, np.int64)
        self._found = np.zeros(sizes.size, bool if kind == "any" else np.int64)
        self._words: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def total(self) -> int:
        """Children of all parents together."""
        return int(self._ends[-1]) if self._ends.size else 0

    def add(self, values: np.ndarray, valid: Valid = None) -> None:
        """Add the next children. Raises `ValueError` if there are more than the sizes say."""
        first, self._received = self._received, self._received + values.size
        if self._received > self.total:
            raise ValueError(f"{self._received} children were given, {self.total} expected")
        if not values.size:
            return
        low = int(np.searchsorted(self._ends, first, "right"))
        high = int(np.searchsorted(self._ends, self._received, "left")) + 1
        parents = slice(low, high)
        ends = np.minimum(self._ends[parents], self._received) - first
        starts = np.maximum(self._ends[parents] - self._sizes[parents] - first, 0)
        sizes = ends - starts
        before = self._counts[parents] > 0
        self._counts[parents] += counts(valid, starts, sizes)
        if self._kind == "count":
            return
        if self._kind in ("sum", "avg"):
            values = values if valid is None else np.where(valid, values, 0)
            # A partial sum may exceed 64 bits although the total does not. Only the total is checked, so that the
            # result does not depend on where pieces end. The words are kept from the first piece on that could make
            # it happen.
            if self._words is None and _may_overflow(values, int(self._sizes.max())):
                self._words = self._found >> 32, self._found & _LOW_32
            if self._words is not None:
                for words, more in zip(self._words, _words(values, starts, sizes), strict=True):
                    words[parents] += more
            self._found[parents] += _ranges(values, starts, sizes)
            return
        found, having = _KINDS[self._kind](values, valid, starts, sizes)
        old = self._found[parents]
        if self._kind == "any":
            found = found | old
        elif self._kind == "first":
            found = np.where(before, old, found)
        else:
            better = np.minimum if self._kind == "min" else np.maximum
            found = np.where(before & having, better(old, found), np.where(before, old, found))
        self._found[parents] = found

    def result(self) -> ReductionResult:
        """Of all parents. Raises `SumOverflowError`, and `ValueError` while children are missing."""
        if self._received != self.total:
            raise ValueError(f"{self._received} children were given, {self.total} expected")
        if self._words is not None:
            _check(self._found, *self._words)
        having = self._counts > 0
        if self._kind == "count":
            return self._counts, having
        if self._kind == "avg":
            return half_even(self._found, np.maximum(self._counts, 1)), having
        return self._found, having
