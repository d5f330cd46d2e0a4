"""Logarithms and powers in integers, so that a table of them is the same on every processor.

Python's ``math`` and numpy's transcendental functions differ in the last digit between processors and C
libraries; nothing that decides a cell goes through them. Numbers here are integers in units of 2**-40 unless a
name says otherwise.
"""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import isqrt

import numpy as np

FRACTION_BITS = 40
ONE = 1 << FRACTION_BITS
SATURATED = 1 << 62
"""The maximum result of `exp2`."""

_FINE = 80
_POWER_BITS = 14
_REST_BITS = FRACTION_BITS - _POWER_BITS
_REST = ONE >> _POWER_BITS
_SLOPE_BITS = 11  # so that slope x rest stays below 2**64
_DECIMAL = Context(prec=50)


def decimal_of(value: Fraction) -> Decimal:
    """``value`` to 50 digits."""
    return _DECIMAL.divide(Decimal(value.numerator), Decimal(value.denominator))


def ln(value: Fraction) -> Fraction:
    """The natural logarithm of a positive number to 50 digits; libmpdec rounds it correctly everywhere."""
    return Fraction(_DECIMAL.ln(decimal_of(value)))


def log2(value: Fraction) -> Fraction:
    """The logarithm to base 2 of a positive number."""
    return ln(value) / ln(Fraction(2))


def sqrt(value: Fraction) -> Fraction:
    """The square root of a number that is not negative."""
    return Fraction(_DECIMAL.sqrt(decimal_of(value)))


def to_fixed(value: Fraction) -> int:
    """``value`` in units of 2**-40, rounded."""
    return round(value * ONE)


@lru_cache(maxsize=4)
def natural_logs(n: int) -> tuple[int, ...]:
    """The natural logarithms of 1 to ``n`` in units of 2**-80; entry 0 stands for nothing.

    ln(k + 1) = ln(k) + 2 artanh(1 / (2k + 1)), summed in integers; the error stays below n * 2**-76.
    """
    found, total = [0, 0], 0
    for k in range(1, n):
        odd = 2 * k + 1
        power, square, j, step = (2 << _FINE) // odd, odd * odd, 1, 0
        while power:
            step += power // j
            power //= square
            j += 2
        total += step
        found.append(total)
    return tuple(found)


@lru_cache(maxsize=1)
def _powers() -> tuple[np.ndarray, np.ndarray]:
    # 2**(i / 16384) in units of 2**-62, and the slope to the next entry in units of 2**-51.
    coarse, fine = _geometric(128, 128), _geometric(1 << _POWER_BITS, 128)
    shift = 2 * _FINE - 62
    values = [(a * b) >> shift for a in coarse for b in fine] + [1 << 63]
    table = np.array(values, np.uint64)
    return table[:-1].copy(), (np.diff(table) >> np.uint64(_SLOPE_BITS)).copy()


def _geometric(parts: int, count: int) -> list[int]:
    """2**(i / parts) for i below ``count``, in units of 2**-80; ``parts`` is a power of two."""
    guard = _FINE + 32
    step = 2 << guard
    for _ in range(parts.bit_length() - 1):
        step = isqrt(step << guard)
    found, value = [], 1 << guard
    for _ in range(count):
        found.append(value >> 32)
        value = (value * step) >> guard
    return found


def exp2(exponents: np.ndarray) -> np.ndarray:
    """2 to each of ``exponents`` (``int64[n]``), rounded to whole numbers as ``int64[n]``; exact to 3e-10 of the
    value. Never falls as the exponent rises. Answers `SATURATED` from 2**62 on."""
    table, slope = _powers()
    integer_part = exponents >> FRACTION_BITS
    rest = exponents & (ONE - 1)
    index = rest >> _REST_BITS
    rest &= _REST - 1
    mantissa = table[index] + ((slope[index] * rest.view(np.uint64)) >> np.uint64(_REST_BITS - _SLOPE_BITS))
    shift = np.clip(62 - integer_part, 1, 63).view(np.uint64)
    result = ((mantissa + (np.uint64(1) << (shift - np.uint64(1)))) >> shift).view(np.int64)
    result[integer_part < -1] = 0
    result[integer_part >= 62] = SATURATED
    return result


def multiply_and_shift(values: np.ndarray, factor: int, shift: int) -> np.ndarray:
    """floor(values x factor / 2**shift) for ``int64[n]`` below 2**47 and factors below 2**36; 20 <= shift <= 62.

    The product may need 83 bits, so the low 20 bits of the values go apart.
    """
    high = (values >> 20) * factor
    high += ((values & ((1 << 20) - 1)) * factor) >> 20
    return high >> (shift - 20)
