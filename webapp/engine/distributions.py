"""Sample from distributions: random bits of a cell in, integers out, the same on every processor.

A continuous distribution is a `Quantile`: a monotonic function from a probability (``uint64``, in units of 2**-64) to
integers. Its tables have one range of entries for each halving of the probability, so the far tail is as precise as the
middle, down to 2**-53. Truncating a distribution to a minimum and a maximum (`Quantile.within`) keeps its shape: the
probabilities are restricted to those of values inside, instead of accumulating values at the ends.

A discrete distribution is a `Discrete`: integer weights, sampled with the alias method. Parameters are exact fractions
in the caller's units.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from webapp import limits
from webapp.engine import fixed_point
from webapp.engine.fixed_point import FRACTION_BITS, ONE, SATURATED
from webapp.engine.random import AliasSampler, Rows, mix

_OCTAVES = 53
_STEPS = 1024
_FRACTION_MASK = np.int64(0xFFFFFFFF)
_TOP = np.uint64(63)
_ELEVEN, _THIRTY_TWO = np.uint64(11), np.uint64(32)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
# A float64 from 1.0 up to 2**53 has the octave and its 1,024th in the top bits of its pattern.
_FIRST_PATTERN = np.int64(1023 << 10)
_ZERO = Fraction(0)
_MAX_Z = 38  # no table entry is larger: ln(2**53) = 36.7


class TooNarrowError(ValueError):
    """The least and largest value leave hardly anything of the distribution."""


class TooWideError(ValueError):
    """Raised if values do not fit in 64-bit integers."""


class Sampler(ABC):
    """A distribution ready to be drawn from."""

    @abstractmethod
    def draw(self, random: Rows) -> np.ndarray:
        """``int64[n]`` of units for ``uint64[n]`` of random bits."""

    def bounds(self) -> tuple[int, int]:
        """The least and the largest value there can be."""
        low, high = self.draw(np.array([0, _ALL], np.uint64))
        return int(low), int(high)


class Quantile(Sampler):
    """A continuous distribution, rounded to whole units."""

    @abstractmethod
    def values_at(self, probability: Rows) -> np.ndarray:
        """Return ``int64[n]``: the quantiles for ``probability`` (``uint64[n]``, in units of 2**-64)."""

    def draw(self, random: Rows) -> np.ndarray:
        return self.values_at(random)

    def within(self, low: int | None, high: int | None) -> Sampler:
        """The same distribution given that the value is from ``low`` to ``high``, both included.

        Raises `TooNarrowError` where less than 2**-30 of it is left.
        """
        return _truncated(self, low, high)

    def first_probability(self, condition: Callable[[np.ndarray], np.ndarray]) -> int:
        """Return the lowest probability for whose value ``condition`` is true; it stays true above it. 2**64 if it
        never is."""
        start, step = 0, 1 << 56
        while True:
            ends = [min(start + step * i - 1, (1 << 64) - 1) for i in range(1, 257)]
            true = condition(self.values_at(np.array(ends, np.uint64)))
            if not true.any():
                return 1 << 64
            start += step * int(true.argmax())
            if step == 1:
                return start
            step >>= 8


@lru_cache(maxsize=1024)
def _truncated(quantile: Quantile, low: int | None, high: int | None) -> Sampler:
    first = 0 if low is None else quantile.first_probability(lambda values: values >= low)
    last = (1 << 64) - 1 if high is None else quantile.first_probability(lambda values: values > high) - 1
    if last - first < 1 << 34:
        raise TooNarrowError
    return (
        quantile
        if (first, last) == (0, (1 << 64) - 1)
        else _TruncatedQuantile(quantile, first, last - first + 1)
    )


class _TruncatedQuantile(Sampler):
    def __init__(self, quantile: Quantile, first: int, width: int) -> None:
        self._quantile, self._first = quantile, np.uint64(first)
        self._width = np.uint64(width >> 32)

    def draw(self, random: Rows) -> np.ndarray:
        inside = (random >> _THIRTY_TWO) * self._width
        inside += ((random & np.uint64(0xFFFFFFFF)) * self._width) >> _THIRTY_TWO
        inside += self._first
        return self._quantile.values_at(inside)


@dataclass(frozen=True, slots=True)
class _Table:
    """A falling function of v in (0, 1], in units of 2**-40, at 1,024 places of each octave of v."""

    value: np.ndarray
    slope: np.ndarray

    def at(self, v: Rows) -> np.ndarray:
        """``int64[n]`` for v in units of 2**-53, from 1 to 2**53; straight lines between the places."""
        pattern = v.astype(np.float64).view(np.int64)  # exact: v has at most 53 bits
        index = (pattern >> 42) - _FIRST_PATTERN
        result = (pattern >> 10) & _FRACTION_MASK
        result *= self.slope[index]
        result >>= 32
        result += self.value[index]
        return result


def _table(value: np.ndarray) -> _Table:
    return _Table(value, np.append(np.diff(value), 0))


@lru_cache(maxsize=1)
def _exponential_table() -> _Table:
    """-ln(v)."""
    return _table(_minus_logs())


def _minus_logs() -> np.ndarray:
    logs = fixed_point.natural_logs(2 * _STEPS)
    fine, two = np.array([(logs[_STEPS + m] - logs[_STEPS]) >> 40 for m in range(_STEPS)]), logs[2]
    octaves = np.array([(two * (_OCTAVES - e)) >> 40 for e in range(_OCTAVES)])
    return np.append((octaves[:, None] - fine).ravel(), 0).astype(np.int64)


# Wichura, "Algorithm AS 241: The percentage points of the normal distribution", 1988: PPND16, 16 digits.
_CENTRAL_RATIO = (
    (3.3871328727963666080, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
     4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3),
    (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
     2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3),
)  # fmt: skip
_TAIL_RATIO = (
    (1.42343711074968357734, 4.63033784615654529590, 5.76949722146069140550, 3.64784832476320460504,
     1.27045825245236838258, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187, 1.67638483018380384940, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9),
)  # fmt: skip
_FAR_TAIL_RATIO = (
    (6.65790464350110377720, 5.46378491116411436990, 1.78482653991729133580, 2.96560571828504891230e-1,
     2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15),
)  # fmt: skip


@lru_cache(maxsize=1)
def _normal_table() -> _Table:
    """Return the normal deviate that is exceeded with probability v / 2.

    Only additions, products, quotients and roots of float64 are used, element by element: IEEE 754 defines each
    to the last bit, so the table is the same everywhere. The logarithms in it come from integers.
    """
    v = np.append(
        ((1 + np.arange(_STEPS) / _STEPS) * np.ldexp(1.0, np.arange(-_OCTAVES, 0))[:, None]).ravel(), 1.0
    )
    q = (1 - v) / 2
    central = q * _ratio(_CENTRAL_RATIO, 0.180625 - q * q)
    r = np.sqrt((_minus_logs() + (fixed_point.natural_logs(2)[2] >> 40)) / ONE)
    tail = np.where(r <= 5, _ratio(_TAIL_RATIO, r - 1.6), _ratio(_FAR_TAIL_RATIO, r - 5))
    return _table(np.rint(np.where(q <= 0.425, central, tail) * ONE).astype(np.int64))


def _ratio(coefficients: tuple[tuple[float, ...], tuple[float, ...]], x: np.ndarray) -> np.ndarray:
    above, under = (np.full_like(x, row[-1]) for row in coefficients)
    for a, b in zip(coefficients[0][-2::-1], coefficients[1][-2::-1], strict=True):
        above, under = above * x + a, under * x + b
    return above / under


def _normal_deviate(probability: Rows) -> np.ndarray:
    """Standard normal quantiles in units of 2**-40."""
    upper = (probability >> _TOP).astype(bool)
    tail = np.where(upper, probability ^ _ALL, probability)
    tail >>= np.uint64(10)
    tail += np.uint64(1)
    deviate = _normal_table().at(tail)
    return np.negative(deviate, out=deviate, where=~upper)


def _exponential_deviate(probability: Rows) -> np.ndarray:
    """Standard exponential quantiles in units of 2**-40."""
    return _exponential_table().at(((probability ^ _ALL) >> _ELEVEN) + np.uint64(1))


_DEVIATES = {"normal": _normal_deviate, "exponential": _exponential_deviate}


class _LinearQuantile(Quantile):
    """location + scale x deviate, rounded half up."""

    def __init__(self, deviate: str, location: Fraction, scale: Fraction) -> None:
        if abs(location) + _MAX_Z * scale >= SATURATED:
            raise TooWideError
        self._deviate = _DEVIATES[deviate]
        exponent = max(scale.numerator.bit_length() - scale.denominator.bit_length() - 30, -FRACTION_BITS)
        self._factor = round(scale / Fraction(2) ** exponent)
        self._shift = 20 - exponent  # of a product in units of 2**-20 times 2**exponent
        self._whole = int(location // 1)
        half = location - self._whole + Fraction(1, 2)
        self._rest = int(half * (1 << self._shift)) if self._shift > 0 else 0

    def values_at(self, probability: Rows) -> np.ndarray:
        values = fixed_point.multiply_and_shift(self._deviate(probability), self._factor, 20)
        values += self._rest
        if self._shift > 0:
            values >>= self._shift
        else:
            values <<= -self._shift
        values += self._whole
        return values


class _ExponentialQuantile(Quantile):
    """2 to (location + scale x deviate), rounded half up; never over `SATURATED`."""

    def __init__(self, deviate: str, location: Fraction, scale: Fraction) -> None:
        if scale >= limits.MAX_LOG_SCALE or abs(location) >= limits.MAX_LOG_SCALE:
            raise TooWideError
        self._deviate = _DEVIATES[deviate]
        self._factor = round(scale * (1 << 28))
        self._location = fixed_point.to_fixed(location)

    def values_at(self, probability: Rows) -> np.ndarray:
        exponent = fixed_point.multiply_and_shift(self._deviate(probability), self._factor, 28)
        exponent += self._location
        return fixed_point.exp2(exponent)


@lru_cache(maxsize=256)
def normal(mean: Fraction, stddev: Fraction) -> Quantile:
    """Raises `TooWideError` where 38 standard deviations pass 2**62 units."""
    return _LinearQuantile("normal", mean, stddev)


@lru_cache(maxsize=256)
def exponential(mean: Fraction, start: Fraction = _ZERO) -> Quantile:
    """From ``start`` on, on average ``mean`` above it. Raises `TooWideError`."""
    return _LinearQuantile("exponential", start, mean)


@lru_cache(maxsize=256)
def geometric(probability: Fraction) -> Quantile:
    """Failures before the first success, 0, 1, 2 ...; each try succeeds with ``probability`` (below 1).

    floor(E / -ln(1 - p)) of an exponential E is exactly geometric. Raises `TooWideError`.
    """
    return _LinearQuantile("exponential", Fraction(-1, 2), -1 / fixed_point.ln(1 - probability))


@lru_cache(maxsize=256)
def lognormal(mean: Fraction, stddev: Fraction) -> Quantile:
    """``mean`` and ``stddev`` (both positive) are those of the values, not of their logarithms. Raises
    `TooWideError`."""
    variance = fixed_point.ln(1 + (stddev / mean) ** 2)
    two = fixed_point.ln(Fraction(2))
    return _ExponentialQuantile(
        "normal", fixed_point.log2(mean) - variance / 2 / two, fixed_point.sqrt(variance) / two
    )


@lru_cache(maxsize=256)
def pareto(alpha: Fraction, minimum: Fraction) -> Quantile:
    """Return a distribution of values from ``minimum`` on: the share above x is (least / x) ** alpha. Raises
    `TooWideError`."""
    return _ExponentialQuantile(
        "exponential", fixed_point.log2(minimum), 1 / alpha / fixed_point.ln(Fraction(2))
    )


class Discrete(Sampler):
    """Whole numbers with integer weights: run i starts at ``starts[i]`` and spreads its weight evenly over
    ``widths[i]`` numbers (1 where left out)."""

    def __init__(self, weights: list[int], starts: list[int], widths: list[int] | None = None) -> None:
        self._weights, self._starts, self._widths = weights, starts, widths
        self._weighted = AliasSampler(weights)
        self._start = np.array(starts, np.int64)
        self._width = None if widths is None else np.array(widths, np.uint64)

    def draw(self, random: Rows) -> np.ndarray:
        runs = self._weighted.draw(random)
        values = self._start[runs]
        if self._width is not None:
            offset = mix(random ^ _SPREAD) >> _THIRTY_TWO
            offset *= self._width[runs]
            offset >>= _THIRTY_TWO
            values += offset.view(np.int64)
        return values

    def bounds(self) -> tuple[int, int]:
        return self._starts[0], self._starts[-1] + (self._widths[-1] if self._widths else 1) - 1

    def within(self, low: int | None, high: int | None) -> Discrete:
        """For runs of one number: the same weights on the numbers from ``low`` to ``high``.

        Raises `TooNarrowError` where less than 2**-30 of them is left.
        """
        runs = [
            (weight, start)
            for weight, start in zip(self._weights, self._starts, strict=True)
            if (low is None or start >= low) and (high is None or start <= high)
        ]
        remaining = sum(weight for weight, _ in runs)
        if not remaining or remaining << 30 < sum(self._weights):
            raise TooNarrowError
        return Discrete([weight for weight, _ in runs], [start for _, start in runs])


_SPREAD = np.uint64(0xD6E8FEB86659FD93)
_EXACT_RANKS = 4096
_MANTISSA_STEP = 8


@lru_cache(maxsize=64)
def poisson(mean: Fraction) -> Discrete:
    """Numbers of events; ``mean`` is positive and at most ``limits.MAX_POISSON_MEAN``."""
    return _from_mode(int(mean), lambda k: Fraction(mean, k + 1))


@lru_cache(maxsize=64)
def binomial(trials: int, probability: Fraction) -> Discrete:
    """Successes in ``trials`` (at most ``limits.MAX_TRIALS``) tries with ``probability`` (between 0 and 1) each."""
    odds = probability / (1 - probability)
    mode = min(trials, int((trials + 1) * probability))
    return _from_mode(mode, lambda k: Fraction(trials - k, k + 1) * odds)


def _from_mode(mode: int, ratio: Callable[[int], Fraction]) -> Discrete:
    """Return weights from the mode outwards until they are negligible; ``ratio(k)`` is weight k + 1 over weight k."""
    up, down, weight, k = [], [], 1 << 80, mode
    while weight:
        up.append(weight)
        r = ratio(k)
        weight = weight * r.numerator // r.denominator
        k += 1
    weight, k = 1 << 80, mode - 1
    while k >= 0 and weight:
        r = ratio(k)
        weight = weight * r.denominator // r.numerator
        down.append(weight)
        k -= 1
    weights = down[::-1] + up
    return Discrete(weights, list(range(mode - len(down), mode + len(up))))


@lru_cache(maxsize=64)
def zipf(exponent: Fraction, ranks: int) -> Discrete:
    """Ranks 0 to ``ranks`` - 1 (at most 2**40), the k-th of them (from 1) with weight k ** -exponent.

    Exact below rank 4,096; from there on 256 runs for each doubling, even inside.
    """
    edges = list(range(1, min(ranks + 1, _EXACT_RANKS)))
    octave = 1
    while _EXACT_RANKS // 2 << octave <= ranks:
        mantissas = range(_EXACT_RANKS // 2, _EXACT_RANKS, _MANTISSA_STEP)
        edges.extend(m << octave for m in mantissas if m << octave <= ranks)
        octave += 1
    ends = [*edges[1:], ranks + 1]
    widths = [end - start for start, end in zip(edges, ends, strict=True)]
    powers = [_log2_weight(exponent, start, width) for start, width in zip(edges, widths, strict=True)]
    top = max(powers)
    weights = fixed_point.exp2(np.array([power - top + 60 * ONE for power in powers]))
    spread = widths if ranks >= _EXACT_RANKS else None
    return Discrete([int(w) for w in weights], [start - 1 for start in edges], spread)


def _log2_weight(exponent: Fraction, start: int, width: int) -> int:
    """log2 of width x middle ** -exponent, in units of 2**-40."""
    logs = fixed_point.natural_logs(2 * _EXACT_RANKS)
    middle = start + (width >> 1)
    doublings = max(0, middle.bit_length() - _EXACT_RANKS.bit_length())
    log = (logs[middle >> doublings] << FRACTION_BITS) // logs[2] + doublings * ONE
    power = width.bit_length() - 1
    size = power * ONE if width == 1 << power else fixed_point.to_fixed(fixed_point.log2(Fraction(width)))
    return size - int(exponent * log)
