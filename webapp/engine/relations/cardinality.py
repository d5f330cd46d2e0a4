"""Assign children to parents by cardinality, for any row, without looking at the rows before it.

Parents form blocks of 1,000. How many children a whole block has is a plan constant, so where a block begins is
arithmetic; inside it a table of slots (`Spread.slots`) is assigned to the parents in an order that depends on the key.
Slots number the children parent by parent. `ChildCounts` applies to every seed; `ChildCounts.bind` adds a key. All row
vectors are ``uint64``, in any order. The caller makes sure that rows are below the number of parents or children.

`ChildDistribution` is the distribution of the number of children, between a minimum and a maximum. Its weights are
integers: ``weights`` gives them directly; the others are powers of two of a *base* plus a *tilt* times a *slope*. The
tilt produces the requested mean: it lets a Poisson or geometric distribution keep its mean for any minimum and maximum,
changes the exponent of zipf, and leans a uniform distribution only as much as needed if the number of children is
given.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Literal

import numpy as np

from webapp import limits
from webapp.engine import fixed_point, random
from webapp.engine.fixed_point import FRACTION_BITS, ONE
from webapp.engine.random import Rows

__all__ = ["BoundCardinality", "ChildCountError", "ChildCounts", "ChildDistribution", "TooManyRowsError"]

_BLOCK = limits.PARENT_BLOCK
_PLACE_BITS = 10
_STRIDE = (
    1 << _PLACE_BITS
)  # entries a block in a matrix of starts; those from the last parent on hold the sum
_PLACES = np.uint32(_STRIDE - 1)
_HALF = np.uint64(32)
_BLOCK_PLACES = np.arange(_BLOCK, dtype=np.uint64)
_BLOCKS_PER_SORT = 64  # blocks sorted together: half a megabyte
_FEW_BLOCKS = 16  # blocks for which Python's own integers are faster
_RECENT_BLOCKS = 16  # blocks that the next range may begin with
_MAX_CHILDREN = 1 << 62
_STEPS = 1 << 20  # a block's mean number of children is kept in such fractions


class ChildCountError(ValueError):
    """The number of children is impossible for the number of parents: it must be from ``least`` to ``most``."""

    def __init__(self, children: int, minimum: int, maximum: int) -> None:
        self.children, self.least, self.most = children, minimum, maximum
        super().__init__(f"{children} children; {minimum} to {maximum} are possible")


class TooManyRowsError(ValueError):
    """More parents or children than row numbers can name."""


class ChildCounts:
    """How many children ``parents`` parents have, for any seed.

    Every whole block of 1,000 parents has 1,000 times the spread's mean (rounded down or up, so that the blocks
    together keep it); the last, partial one too. If ``children`` is given, there are exactly that many. Weights
    with gaps are rounded to their table, for a gap must stay one, unless ``children`` leaves no choice.

    Raises `ChildCountError` and `TooManyRowsError`.
    """

    def __init__(self, parents: int, spread: ChildDistribution, children: int | None = None) -> None:
        minimum, maximum = parents * spread.min_children, parents * spread.max_children
        if parents > limits.MAX_PARENTS or maximum > _MAX_CHILDREN:
            raise TooManyRowsError(f"{parents} parents with up to {spread.max_children} children each")
        if children is not None and not minimum <= children <= maximum:
            raise ChildCountError(children, minimum, maximum)
        self.parents, self.spread, self.requested_children = parents, spread, children
        self.whole_blocks, self.remainder = divmod(parents, _BLOCK)
        tilt = Fraction(children, parents) if children is not None and parents else None
        self.per_block, last = self._block_sizes(tilt)
        """Children of a whole block on average."""
        self.total = self.first_slot(self.whole_blocks) + last
        """Children of all parents."""
        self.tables = self._tables(tilt, last)
        """``int64[3, 1024]``: slots of a block with the smaller number, with one more, of the last block."""
        self.min, self.max = self._count_limits()
        """The least and the largest number of children that a parent has."""
        self.mean = Fraction(self.total, parents) if parents else spread.average()
        """Children of a parent on average, exactly."""

    def first_slot(self, block: int) -> int:
        """The slot at which a block begins."""
        return block * self.per_block.numerator // self.per_block.denominator

    def bind(self, key: np.uint64, is_shuffled: bool = False) -> BoundCardinality:
        """The same under a key. ``is_shuffled``: children of one parent are not next to each other."""
        return BoundCardinality(self, key, is_shuffled)

    def _block_sizes(self, tilt: Fraction | None) -> tuple[Fraction, int]:
        spread = self.spread
        if tilt is not None:
            per_block = tilt * _BLOCK
            return per_block, int(
                tilt * self.parents
            ) - self.whole_blocks * per_block.numerator // per_block.denominator
        if spread.has_gaps:
            last = int(spread.slots(self.remainder).sum()) if self.remainder else 0
            return Fraction(int(spread.slots(_BLOCK).sum())), last
        mean = spread.average()
        return Fraction(round(mean * _BLOCK * _STEPS), _STEPS), round(mean * self.remainder)

    def _tables(self, tilt: Fraction | None, last: int) -> np.ndarray:
        tables = np.zeros((3, _STRIDE), np.int64)
        lower, part = divmod(self.per_block.numerator, self.per_block.denominator)
        if self.whole_blocks:
            tables[0, :_BLOCK] = self.spread.slots(_BLOCK, tilt, lower)
        if self.whole_blocks and part:
            tables[1, :_BLOCK] = self.spread.slots(_BLOCK, tilt, lower + 1)
        if self.remainder:
            tables[2, : self.remainder] = self.spread.slots(self.remainder, tilt, last)
        return tables

    def _count_limits(self) -> tuple[int, int]:
        used = [self.tables[0, :_BLOCK]] if self.whole_blocks else []
        if self.whole_blocks and self.per_block.denominator > 1:
            used.append(self.tables[1, :_BLOCK])
        if self.remainder:
            used.append(self.tables[2, : self.remainder])
        if not used:
            return self.spread.min_children, self.spread.max_children
        return min(int(table[0]) for table in used), max(int(table[-1]) for table in used)


class BoundCardinality:
    """Children and parents under one key. Thread-safe."""

    def __init__(self, plan: ChildCounts, key: np.uint64, mixed: bool) -> None:
        self.plan, self.is_shuffled, self.total = plan, mixed, plan.total
        self._key, self._layout_key = key, random.derive(key, 1)
        self._line = _BlockStarts(plan)
        narrow = int(plan.tables.sum(axis=1).max()) < 1 << 16
        self._dtype = np.uint16 if narrow else np.uint32
        self._tables = plan.tables.astype(self._dtype).ravel()
        # Every thread writes the same numbers into a row and marks it afterwards, so no lock is needed.
        cache_blocks = limits.CARDINALITY_CACHE_BYTES // (_STRIDE * self._dtype().itemsize)
        self._block_cache = np.empty((min(cache_blocks, self._line.last + 1), _STRIDE), self._dtype)
        self._is_cached = np.zeros(self._block_cache.shape[0], bool)
        self._recent = (0, self._block_cache[:0])

    def counts(self, parents: Rows) -> np.ndarray:
        """``int64[n]``: how many children each has."""
        return self.spans(parents)[1]

    def starts(self, parents: Rows) -> np.ndarray:
        """``int64[n]``: the slot of each one's first child (without children: of the next one's)."""
        return self.spans(parents)[0]

    def spans(self, parents: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Return `starts` and `counts` together."""
        if parents.size == 0:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        if _is_contiguous(parents):
            first = int(parents[0])
            block, skip = divmod(first, _BLOCK)
            matrix, begins = self._starts_of_range(block, int(parents[-1]) // _BLOCK)
            chosen = slice(skip, skip + parents.size)
            counts = np.diff(matrix[:, : _BLOCK + 1].astype(np.int64), axis=1)
            starts = matrix[:, :_BLOCK] + begins[:, None]
            return starts.ravel()[chosen], counts.ravel()[chosen]
        blocks = parents // np.uint64(_BLOCK)
        matrix, which = self._starts_of_blocks(blocks)
        index = (which << _PLACE_BITS) + (parents - blocks * np.uint64(_BLOCK)).view(np.int64)
        flat = matrix.ravel()
        within = flat.take(index).astype(np.int64)
        return self._line.first_slots(blocks).view(np.int64) + within, flat.take(index + 1) - within

    def owners(self, children: Rows) -> tuple[Rows, np.ndarray]:
        """``uint64[n]`` of parents, and which of its children each one is, from 0, as ``int64[n]``."""
        if children.size == 0:
            return np.zeros(0, np.uint64), np.zeros(0, np.int64)
        slots = self.children_to_slots(children)
        if _is_contiguous(slots):
            first, last = int(slots[0]), int(slots[-1])
            block, end = self._line.block_of(first), self._line.block_of(last)
            matrix, begins = self._starts_of_range(block, end)
            starts = (matrix[:, :_BLOCK] + begins[:, None]).ravel()
            low = int(np.searchsorted(starts, first, "right")) - 1
            high = int(np.searchsorted(starts, last, "right"))
            starts = starts[low:high]
            edges = np.append(starts, last + 1)
            edges[0] = first
            which = np.repeat(np.arange(high - low, dtype=np.int64), np.diff(edges))
            positions = np.arange(first, last + 1, dtype=np.int64)
            positions -= starts.take(which)
            which += block * _BLOCK + low
            return which.view(np.uint64), positions
        blocks = self._line.block(slots)
        within = (slots - self._line.first_slots(blocks)).astype(self._dtype)
        matrix, which = self._starts_of_blocks(blocks)
        flat = matrix.ravel()
        place = which << _PLACE_BITS
        for bit in reversed(range(_PLACE_BITS)):  # the last place that begins at or before the slot
            candidate = place + (1 << bit)
            np.copyto(place, candidate, where=flat.take(candidate) <= within)
        positions = (within - flat.take(place)).astype(np.int64)
        place &= _STRIDE - 1
        return blocks * np.uint64(_BLOCK) + place.view(np.uint64), positions

    def children(self, parents: Rows) -> tuple[Rows, np.ndarray]:
        """The rows of all children of ``parents``, parent by parent (``uint64[m]``), and how many each one has
        (``int64[n]``, m in sum): what folding reads."""
        starts, counts = self.spans(parents)
        ends = np.cumsum(counts)
        slots = np.arange(int(ends[-1]) if ends.size else 0, dtype=np.int64)
        slots += np.repeat(starts - (ends - counts), counts)
        return self.slots_to_children(slots), counts

    def slots_to_children(self, slots: np.ndarray) -> Rows:
        """Return the child row at each slot; the slot itself if siblings are adjacent."""
        rows = slots.astype(np.uint64, copy=False)
        return random.permutation_inverse(self._layout_key, rows, self.total) if self.is_shuffled else rows

    def children_to_slots(self, children: Rows) -> Rows:
        """Return the slot of each child row; the row itself if siblings are adjacent."""
        return random.permutation(self._layout_key, children, self.total) if self.is_shuffled else children

    def _starts_of_range(self, block: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        """Starts inside the blocks from ``block`` to ``end``, and where these begin (``int64``)."""
        recent_block, recent = self._recent
        reused = (
            recent[block - recent_block :]
            if recent_block <= block < recent_block + recent.shape[0]
            else recent[:0]
        )
        matrix = reused[: end - block + 1]
        numbers = np.arange(block, end + 1, dtype=np.uint64)
        if matrix.shape[0] < numbers.size:
            computed = [self._block_starts(part) for part in _batches(numbers[matrix.shape[0] :])]
            matrix = np.concatenate([matrix, *computed])
            recent_count = min(_RECENT_BLOCKS, matrix.shape[0])
            self._recent = (end + 1 - recent_count, matrix[-recent_count:].copy())
        return matrix, self._line.first_slots(numbers).view(np.int64)

    def _starts_of_blocks(self, blocks: Rows) -> tuple[np.ndarray, np.ndarray]:
        """A matrix of starts, and which row of it each of ``blocks`` has (``int64[n]``)."""
        if int(blocks.max()) < self._is_cached.size:
            which = blocks.view(np.int64)
            missing = ~self._is_cached.take(which)
            if missing.any():
                for part in _batches(np.unique(blocks[missing])):
                    self._block_cache[part.view(np.int64)] = self._block_starts(part)
                    self._is_cached[part.view(np.int64)] = True
            return self._block_cache, which.copy()
        first, last = int(blocks.min()), int(blocks.max())
        if last - first <= blocks.size // 8:
            return self._starts_of_range(first, last)[0], (blocks - np.uint64(first)).view(np.int64)
        numbers, which = np.unique(blocks, return_inverse=True)
        return np.concatenate([self._block_starts(part) for part in _batches(numbers)]), which

    def _block_starts(self, blocks: Rows) -> np.ndarray:
        """Starts inside each block, ``[k, 1024]``; from the end of the last parent's children on: their number."""
        hashes = random.bits(self._key, blocks[:, None] * np.uint64(_BLOCK) + _BLOCK_PLACES)
        packed = (hashes >> _HALF).astype(
            np.uint32
        )  # half as long to sort, and 22 bits of a hash hardly ever tie
        packed &= ~_PLACES
        packed |= _BLOCK_PLACES.astype(np.uint32)
        kind = self._line.extra_children(blocks)
        if self.plan.remainder:
            partial = blocks == np.uint64(self.plan.whole_blocks)
            packed[partial, self.plan.remainder :] = ~np.uint32(
                0
            )  # an order that ends with positions without children
            kind[partial] = 2
        packed.sort(axis=1)
        packed &= _PLACES
        packed += (kind << _PLACE_BITS).astype(np.uint32)[:, None]
        starts = np.empty((blocks.size, _STRIDE), self._dtype)
        starts[:, 0] = 0
        counts = self._tables.take(packed)
        np.cumsum(counts, axis=1, dtype=self._dtype, out=starts[:, 1 : _BLOCK + 1])
        starts[:, _BLOCK + 1 :] = starts[:, _BLOCK, None]
        return starts


class _BlockStarts:
    """Start of the blocks: block b at floor(b x numerator / denominator)."""

    def __init__(self, plan: ChildCounts) -> None:
        step = plan.per_block
        self.last = plan.whole_blocks if plan.remainder else plan.whole_blocks - 1
        self._numerator, self._denominator = step.numerator, step.denominator
        self._lower, self._part = divmod(step.numerator, step.denominator)
        self._divisor, self._step = np.uint64(step.denominator), float(step)
        # b x part may pass 2**64: b is taken in digits, as in a long division by hand.
        self._digit = 62 - step.denominator.bit_length()
        self._shifts = range(0, max(1, self.last.bit_length()), self._digit)[::-1]

    def first_slots(self, blocks: Rows) -> Rows:
        """``uint64[n]``: the slot at which each block begins."""
        if not self._part:
            return blocks * np.uint64(self._lower)
        if blocks.size <= _FEW_BLOCKS:
            return np.array([b * self._numerator // self._denominator for b in blocks.tolist()], np.uint64)
        part, digit = np.uint64(self._part), np.uint64(self._digit)
        rest: Rows | np.uint64 = np.uint64(0)
        quotient: Rows | np.uint64 = np.uint64(0)
        for shift in self._shifts:
            value = (blocks >> np.uint64(shift)) & ((np.uint64(1) << digit) - np.uint64(1))
            value = value * part + (rest << digit)
            share = value // self._divisor
            rest = value - share * self._divisor
            quotient = (quotient << digit) + share
        return blocks * np.uint64(self._lower) + quotient

    def extra_children(self, blocks: Rows) -> np.ndarray:
        """``int64[n]``: 1 if a block has one child more than the others, else 0."""
        if not self._part:
            return np.zeros(blocks.size, np.int64)
        following = self.first_slots(blocks + np.uint64(1)) - self.first_slots(blocks)
        return (following > np.uint64(self._lower)).astype(np.int64)

    def block_of(self, slot: int) -> int:
        """The last block that begins at or before a slot: the last b with b x step < slot + 1."""
        if not self._numerator:
            return self.last
        return min(((slot + 1) * self._denominator - 1) // self._numerator, self.last)

    def block(self, slots: Rows) -> Rows:
        """``uint64[n]``: the last block that begins at or before each slot."""
        last = np.uint64(max(0, self.last))
        if not self._part:
            return (
                np.minimum(slots // np.uint64(self._lower), last)
                if self._lower
                else np.full_like(slots, last)
            )
        # The quotient of floats is off by one at most; the neighbouring integers decide.
        found = np.minimum(((slots + np.uint64(1)) / self._step).astype(np.uint64), last)
        found -= self.first_slots(found) > slots
        found += (found < last) & (self.first_slots(found + np.uint64(1)) <= slots)
        return found


def _is_contiguous(rows: Rows) -> bool:
    """Return whether ``rows`` (at least one) are consecutive."""
    if int(rows[-1]) - int(rows[0]) != rows.size - 1:
        return False
    return rows.size < 3 or bool((rows[1:] - rows[:-1] == 1).all())


def _batches(blocks: Rows) -> list[Rows]:
    return [blocks[at : at + _BLOCKS_PER_SORT] for at in range(0, blocks.size, _BLOCKS_PER_SORT)]


Shape = Literal["uniform", "weights", "poisson", "geometric", "zipf"]

_WEIGHT_BITS = 40  # the heaviest number of children weighs 2**40
_MAX_TILT = 62 * ONE
_MANTISSAS = 4096
_LOW_BITS = 20  # low bits of a weight that are summed apart


@dataclass(frozen=True, slots=True)
class ChildDistribution:
    """From ``min`` to ``max`` children a parent, both included, and how parents are spread over those numbers.

    ``weights`` has one whole number for each of them and is given with the distribution of that name only. ``mean``
    is needed by poisson and geometric and may be given with uniform and zipf; it holds for any ``min`` and
    ``max`` cut off. ``exponent`` is zipf's: ``min`` is its first rank. Raises `ValueError` on anything else.
    """

    min: int
    max: int
    distribution: Shape = "uniform"
    mean: Fraction | None = None
    weights: tuple[int, ...] | None = None
    exponent: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        if not 0 <= self.min <= self.max <= limits.MAX_CARDINALITY:
            raise ValueError(f"min and max must satisfy 0 <= min <= max <= {limits.MAX_CARDINALITY}")
        if (self.weights is not None) != (self.distribution == "weights"):
            raise ValueError("weights are required for the distribution weights, and not allowed for others")
        if self.weights is not None:
            if len(self.weights) != self.max - self.min + 1 or min(self.weights) < 0 or not any(self.weights):
                raise ValueError(
                    "weights needs one weight for each number from min to max; none can be negative, "
                    "and at least one must be positive"
                )
            if self.mean is not None:
                raise ValueError("mean is not allowed for the distribution weights")
        if self.mean is None and self.distribution in ("poisson", "geometric"):
            raise ValueError(f"mean is required for the distribution {self.distribution}")
        if self.mean is not None and not self.min <= self.mean <= self.max:
            raise ValueError("the mean must be between min and max")
        if not 0 < self.exponent <= 100:
            raise ValueError("the exponent must be above 0 and at most 100")

    @property
    def min_children(self) -> int:
        """The smallest number of children that has weight."""
        return self.min + (next(i for i, w in enumerate(self.weights) if w) if self.weights else 0)

    @property
    def max_children(self) -> int:
        """The largest number of children that has weight."""
        return self.max - (next(i for i, w in enumerate(reversed(self.weights)) if w) if self.weights else 0)

    @property
    def has_gaps(self) -> bool:
        """Whether numbers between `least` and `most` have no weight."""
        return 0 in (self.weights or ())[self.min_children - self.min : self.max_children - self.min]

    def average(self) -> Fraction:
        """Children a parent on average, as the shape has it."""
        if self.mean is not None:
            return Fraction(self.mean)
        if self.distribution == "uniform":
            return Fraction(self.min + self.max, 2)
        masses = self.masses(None)
        total = sum(value * mass for value, mass in enumerate(masses, self.min))
        return Fraction(total, sum(masses))

    def masses(self, mean: Fraction | None) -> tuple[int, ...]:
        """The weight of each number from ``min`` to ``max``, tilted so far that ``mean`` results (None: not)."""
        return _masses(self, self.mean if mean is None else mean)

    def slots(self, size: int, mean: Fraction | None = None, total: int | None = None) -> np.ndarray:
        """``int64[size]``, ascending: the number of children of each of ``size`` parents, sorted by their number.

        Slot i has the number at probability (i + 1/2) / size, so each number has its share of the slots, rounded down
        or up, and so do all smaller numbers together. With ``total``, the sum is adjusted to it, at the slots nearest
        the mean first.
        """
        sums = list(accumulate(self.masses(mean)))
        total_weight = sums[-1]
        found = [bisect_right(sums, (2 * i + 1) * total_weight // (2 * size)) for i in range(size)]
        table = np.array(found, np.int64) + self.min
        return (
            table if total is None else _adjusted_to_total(table, total, self.min_children, self.max_children)
        )


def _adjusted_to_total(table: np.ndarray, total: int, minimum: int, maximum: int) -> np.ndarray:
    """``table`` with slots moved up or down by one until its sum is ``total``; it still rises.

    A round moves, of each run of equal slots, the last one up (or the first one down), beginning with the runs
    nearest the mean; what would pass ``minimum`` or ``maximum`` stays.
    """
    missing = total - int(table.sum())
    step = 1 if missing > 0 else -1
    end = maximum if missing > 0 else minimum
    missing = abs(missing)
    while missing:
        changes = np.flatnonzero(np.diff(table))
        edges = np.append(changes, table.size - 1) if step > 0 else np.append(0, changes + 1)
        edges = edges[table[edges] != end]
        if not edges.size:
            raise ValueError("no table between the minimum and the maximum has that sum")
        distance = np.abs(table[edges] * table.size - total) * table.size
        edges = edges[np.argsort(distance + edges)][:missing]
        table[edges] += step
        missing -= edges.size
    return table


@lru_cache(maxsize=256)
def _masses(spread: ChildDistribution, mean: Fraction | None) -> tuple[int, ...]:
    if mean is None and spread.weights is not None:
        return spread.weights
    base, slope, numbers = _base_and_slope(spread)
    tilt = (
        0 if mean is None else _tilt(base, slope, mean - int(numbers[0]) - spread.min, numbers - numbers[0])
    )
    out = np.zeros(spread.max - spread.min + 1, np.int64)
    out[numbers] = _weights(base + tilt * slope)
    return tuple(out.tolist())


def _base_and_slope(spread: ChildDistribution) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the bases in doublings (units of 2**-40), the slopes that the tilt multiplies, and the numbers above min
    that both belong to."""
    numbers = np.arange(spread.max - spread.min + 1, dtype=np.int64)
    base = np.zeros_like(numbers)
    if spread.weights is not None:
        numbers = np.flatnonzero(np.array(spread.weights, object))
        base = np.array(
            [fixed_point.to_fixed(fixed_point.log2(Fraction(spread.weights[i]))) for i in numbers]
        )
    elif spread.distribution == "poisson":
        base = -np.cumsum(_log2s(spread.max + 1))[spread.min :]
    elif spread.distribution == "zipf":
        powers = _log2s(numbers.size + 1)[1:] >> _LOW_BITS
        return powers * -int(spread.exponent * (1 << _LOW_BITS)), powers, numbers
    return base.astype(np.int64), numbers - numbers[0], numbers


def _tilt(base: np.ndarray, slope: np.ndarray, mean: Fraction, values: np.ndarray) -> int:
    """The largest tilt at which the mean of ``values`` does not pass ``mean``; it rises with the tilt."""
    high = min(_MAX_TILT, (1 << 61) // max(1, int(slope[-1])))
    low = -high
    while low < high:
        middle = (low + high + 1) >> 1
        weights = _weights(base + middle * slope)
        coarse, fine = weights >> _LOW_BITS, weights & ((1 << _LOW_BITS) - 1)
        weighted_sum = (int((coarse * values).sum()) << _LOW_BITS) + int((fine * values).sum())
        if weighted_sum * mean.denominator <= mean.numerator * int(weights.sum()):
            low = middle
        else:
            high = middle - 1
    return low


def _weights(powers: np.ndarray) -> np.ndarray:
    return fixed_point.exp2(np.maximum(powers - powers.max(), -60 * ONE) + _WEIGHT_BITS * ONE)


@lru_cache(maxsize=4)
def _log2s(n: int) -> np.ndarray:
    """log2 of 0 to ``n`` - 1 in units of 2**-40, good to 2**-30; the entry of 0 is 0.

    Beyond the table of logarithms, with y = x / (m 2**d) < 2**-11:
    ln(m 2**d + x) = ln m + d ln 2 + y - y**2 / 2 + y**3 / 3.
    """
    logs = fixed_point.natural_logs(_MANTISSAS)
    table = np.array([0] + [(log << FRACTION_BITS) // logs[2] for log in logs[1:]], np.int64)
    k = np.arange(n, dtype=np.int64)
    doublings = np.zeros_like(k)
    for bit in range(_MANTISSAS.bit_length() - 1, n.bit_length()):
        doublings += k >= 1 << bit
    mantissa = k >> doublings
    y = ((k - (mantissa << doublings)) << FRACTION_BITS) // np.maximum(mantissa << doublings, 1)
    square = (y * y) >> FRACTION_BITS
    small = y - (square >> 1) + ((square * y) >> FRACTION_BITS) // 3
    return table[mantissa] + doublings * ONE + ((small * ((1 << 110) // logs[2])) >> 30)
