"""How many children a parent has: a shape between a least and a largest number, laid out as a table of slots.

The shapes are weights in integers. ``weights`` states them; the others are powers of two of a *base* plus a *tilt*
times a *lean*, and the tilt is what gives them the mean that was asked for: it makes a Poisson or geometric shape,
cut at any ends, keep its mean, changes the exponent of zipf, and leans a uniform shape no more than it must when
the number of children is stated.
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
from webapp.engine import fixed_point
from webapp.engine.fixed_point import ONE, PLACES

Shape = Literal["uniform", "weights", "poisson", "geometric", "zipf"]

_WEIGHT_BITS = 40  # the heaviest number of children weighs 2**40
_STEEPEST = 62 * ONE
_MANTISSAS = 4096
_HALF = 20  # low bits of a weight that are summed apart


@dataclass(frozen=True, slots=True)
class Spread:
    """From ``min`` to ``max`` children a parent, both included, and how parents are spread over those numbers.

    ``weights`` has one whole number for each of them and is given with the distribution of that name only. ``mean``
    is needed by poisson and geometric and may be given with uniform and zipf; it is kept whatever ``min`` and
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
            raise ValueError(f"0 <= min <= max <= {limits.MAX_CARDINALITY}")
        if (self.weights is not None) != (self.distribution == "weights"):
            raise ValueError("weights belong to the distribution of that name")
        if self.weights is not None:
            if len(self.weights) != self.max - self.min + 1 or min(self.weights) < 0 or not any(self.weights):
                raise ValueError("one weight for each number from min to max, none negative, not all zero")
            if self.mean is not None:
                raise ValueError("weights have their mean already")
        if self.mean is None and self.distribution in ("poisson", "geometric"):
            raise ValueError(f"{self.distribution} needs a mean")
        if self.mean is not None and not self.min <= self.mean <= self.max:
            raise ValueError("the mean lies between min and max")
        if not 0 < self.exponent <= 100:
            raise ValueError("the exponent is above 0 and at most 100")

    @property
    def least(self) -> int:
        """The smallest number of children that has weight."""
        return self.min + (next(i for i, w in enumerate(self.weights) if w) if self.weights else 0)

    @property
    def most(self) -> int:
        """The largest number of children that has weight."""
        return self.max - (next(i for i, w in enumerate(reversed(self.weights)) if w) if self.weights else 0)

    @property
    def gapped(self) -> bool:
        """Whether numbers between `least` and `most` have no weight."""
        return 0 in (self.weights or ())[self.least - self.min : self.most - self.min]

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
        """``int64[size]``, rising: how many children each of ``size`` parents has, in the order of their number.

        Slot i holds the number at probability (i + 1/2) / size, so each number has its share of the slots, rounded
        down or up, and all below it theirs. With ``total`` the sum is made equal to it, at the slots nearest the
        mean first.
        """
        sums = list(accumulate(self.masses(mean)))
        whole = sums[-1]
        found = [bisect_right(sums, (2 * i + 1) * whole // (2 * size)) for i in range(size)]
        table = np.array(found, np.int64) + self.min
        return table if total is None else _fitted(table, total, self.least, self.most)


def _fitted(table: np.ndarray, total: int, least: int, most: int) -> np.ndarray:
    """``table`` with slots moved up or down by one until its sum is ``total``; it still rises.

    A round moves, of each run of equal slots, the last one up (or the first one down), beginning with the runs
    nearest the mean; what would pass ``least`` or ``most`` stays.
    """
    short = total - int(table.sum())
    step = 1 if short > 0 else -1
    end = most if short > 0 else least
    short = abs(short)
    while short:
        changes = np.flatnonzero(np.diff(table))
        edges = np.append(changes, table.size - 1) if step > 0 else np.append(0, changes + 1)
        edges = edges[table[edges] != end]
        if not edges.size:
            raise ValueError("no table between least and most has that sum")
        far = np.abs(table[edges] * table.size - total) * table.size
        edges = edges[np.argsort(far + edges)][:short]
        table[edges] += step
        short -= edges.size
    return table


@lru_cache(maxsize=256)
def _masses(spread: Spread, mean: Fraction | None) -> tuple[int, ...]:
    if mean is None and spread.weights is not None:
        return spread.weights
    base, lean, held = _family(spread)
    tilt = 0 if mean is None else _tilt(base, lean, mean - int(held[0]) - spread.min, held - held[0])
    out = np.zeros(spread.max - spread.min + 1, np.int64)
    out[held] = _weights(base + tilt * lean)
    return tuple(out.tolist())


def _family(spread: Spread) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The base in doublings (units of 2**-40), what the tilt leans on, and which numbers (above min) they are of."""
    held = np.arange(spread.max - spread.min + 1, dtype=np.int64)
    base = np.zeros_like(held)
    if spread.weights is not None:
        held = np.flatnonzero(np.array(spread.weights, object))
        base = np.array([fixed_point.fixed(fixed_point.log2(Fraction(spread.weights[i]))) for i in held])
    elif spread.distribution == "poisson":
        base = -np.cumsum(_log2s(spread.max + 1))[spread.min :]
    elif spread.distribution == "zipf":
        powers = _log2s(held.size + 1)[1:] >> _HALF
        return powers * -int(spread.exponent * (1 << _HALF)), powers, held
    return base.astype(np.int64), held - held[0], held


def _tilt(base: np.ndarray, lean: np.ndarray, mean: Fraction, values: np.ndarray) -> int:
    """The largest tilt at which the mean of ``values`` does not pass ``mean``; it rises with the tilt."""
    high = min(_STEEPEST, (1 << 61) // max(1, int(lean[-1])))
    low = -high
    while low < high:
        middle = (low + high + 1) >> 1
        weights = _weights(base + middle * lean)
        coarse, fine = weights >> _HALF, weights & ((1 << _HALF) - 1)
        weighed = (int((coarse * values).sum()) << _HALF) + int((fine * values).sum())
        if weighed * mean.denominator <= mean.numerator * int(weights.sum()):
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
    logs = fixed_point.logs(_MANTISSAS)
    table = np.array([0] + [(log << PLACES) // logs[2] for log in logs[1:]], np.int64)
    k = np.arange(n, dtype=np.int64)
    doublings = np.zeros_like(k)
    for bit in range(_MANTISSAS.bit_length() - 1, n.bit_length()):
        doublings += k >= 1 << bit
    mantissa = k >> doublings
    y = ((k - (mantissa << doublings)) << PLACES) // np.maximum(mantissa << doublings, 1)
    square = (y * y) >> PLACES
    small = y - (square >> 1) + ((square * y) >> PLACES) // 3
    return table[mantissa] + doublings * ONE + ((small * ((1 << 110) // logs[2])) >> 30)
