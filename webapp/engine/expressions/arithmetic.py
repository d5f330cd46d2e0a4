"""Exact arithmetic on columns of 64-bit integers. Nothing wraps: what bounds do not prove is reckoned again in integers
without end, and a result that does not fit is a `ValueFault`."""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt

import numpy as np

from webapp.engine.expressions.errors import ValueFault
from webapp.engine.expressions.types import LEAST, MOST
from webapp.engine.expressions.vectors import Vector, all_valid

_EXACT_FLOAT = 1 << 52


def fits(low: int, high: int) -> bool:
    """Whether all numbers from ``low`` to ``high`` are 64-bit integers."""
    return low >= LEAST and high <= MOST


def add(a: Vector, b: Vector) -> Vector:
    """``a + b``."""
    return _exact(a, b, np.add, lambda x, y: x + y, lambda p, q: (p[0] + q[0], p[1] + q[1]))


def subtract(a: Vector, b: Vector) -> Vector:
    """``a - b``."""
    return _exact(a, b, np.subtract, lambda x, y: x - y, lambda p, q: (p[0] - q[1], p[1] - q[0]))


def multiply(a: Vector, b: Vector) -> Vector:
    """``a * b``; its units have the digits of both."""
    return _exact(a, b, np.multiply, lambda x, y: x * y, product_bounds)


def product_bounds(p: tuple[int, int], q: tuple[int, int]) -> tuple[int, int]:
    """Least and greatest product of two numbers within bounds."""
    ends = [x * y for x in p for y in q]
    return min(ends), max(ends)


def scale(a: Vector, digits: int) -> Vector:
    """``a`` times 10 to the power of ``digits``."""
    return multiply(a, _number(10**digits)) if digits else a


def negate(a: Vector) -> Vector:
    """``-a``."""
    low, high = a.bounds
    return Vector(-a.data, a.valid, -high, -low)


def absolute(a: Vector) -> Vector:
    """``a`` without its sign."""
    low, high = a.bounds
    return Vector(np.abs(a.data), a.valid, 0, max(abs(low), abs(high)))


def power(a: Vector, exponent: int) -> Vector:
    """``a`` to a power of 0 or more."""
    out = _number(1)
    for _ in range(exponent):
        out = multiply(out, a)
    return out


def _number(value: int) -> Vector:
    if not fits(value, value):
        raise _too_large()
    return Vector(np.array(value, np.int64), None, value, value)


Bounds = tuple[int, int]


def _exact(
    a: Vector,
    b: Vector,
    fast: np.ufunc,
    slow: Callable[[int, int], int],
    bounds: Callable[[Bounds, Bounds], Bounds],
) -> Vector:
    valid = all_valid(a.valid, b.valid)
    low, high = bounds(a.bounds, b.bounds)
    if not fits(low, high):
        low, high = bounds(a.tightened(), b.tightened())
    if fits(low, high):
        return Vector(fast(a.data, b.data), valid, low, high)
    return Vector(_slowly(slow, a, b, valid), valid)


def _slowly(slow: Callable[[int, int], int], a: Vector, b: Vector, valid: np.ndarray | None) -> np.ndarray:
    left, right = np.broadcast_arrays(a.data, b.data)
    here = np.ones(left.shape, bool) if valid is None else np.broadcast_to(valid, left.shape)
    out = np.zeros(left.shape, np.int64)
    made = [slow(x, y) for x, y in zip(left[here].tolist(), right[here].tolist(), strict=True)]
    if made and not fits(min(made), max(made)):
        raise _too_large()
    out[here] = made
    return out


def _too_large() -> ValueFault:
    text = "A number is too large: with its decimals it has more digits than fit in 64 bits."
    return ValueFault("too_large", text, "Round to fewer digits after the point, or use smaller numbers.")


def divide(a: Vector, b: Vector, digits: int) -> Vector:
    """``a / b`` times 10 to the power of ``digits`` (may be negative), half to even; no value where b is 0."""
    top, bottom = (digits, 0) if digits >= 0 else (0, -digits)
    nonzero = b.data != 0
    valid = all_valid(a.valid, b.valid, None if nonzero.all() else nonzero)
    b = Vector(np.where(nonzero, b.data, 1), b.valid)
    low, high = product_bounds(a.bounds, (1, 10**top))
    if not fits(low, high):
        low, high = product_bounds(a.tightened(), (1, 10**top))
    furthest = max(abs(end) for end in b.bounds) * 10**bottom
    # Twice the remainder is compared with the divisor, so that must fit too.
    if not fits(low, high) or 2 * furthest > MOST:
        return Vector(_slowly(lambda x, y: half_even(x * 10**top, y * 10**bottom), a, b, valid), valid)
    return Vector(_half_even(a.data * np.int64(10**top), b.data * np.int64(10**bottom)), valid)


def _half_even(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    quotient, rest = np.divmod(a, b)  # rest has the sign of b
    rest, whole = np.abs(rest) * 2, np.abs(b)
    up = (rest > whole) | ((rest == whole) & (quotient & 1 == 1))
    return quotient + up


def half_even(a: int, b: int) -> int:
    """``a / b`` to the nearest integer, half to even."""
    quotient, rest = divmod(a, b)
    rest, whole = abs(rest) * 2, abs(b)
    return quotient + (rest > whole or (rest == whole and quotient & 1 == 1))


def rounded(a: Vector, digits: int) -> Vector:
    """``a`` with ``digits`` fewer digits, half to even."""
    return divide(a, _number(1), -digits)


def floor_divide(a: Vector, b: Vector) -> Vector:
    """The quotient rounded down, as Python has it; no value where b is 0."""
    return _divmod(a, b, np.floor_divide)


def modulo(a: Vector, b: Vector) -> Vector:
    """What `floor_divide` leaves, with the sign of b; no value where b is 0."""
    return _divmod(a, b, np.mod)


def _divmod(a: Vector, b: Vector, operation: np.ufunc) -> Vector:
    nonzero = b.data != 0
    valid = all_valid(a.valid, b.valid, None if nonzero.all() else nonzero)
    return Vector(operation(a.data, np.where(nonzero, b.data, 1)), valid)


def root(a: Vector, digits: int) -> Vector:
    """The square root of ``a`` times 10 to the power of ``digits`` (may be negative), to the nearest; no value below 0.

    ``sqrt`` of a double is rounded rightly on every machine (IEEE 754); the last unit is then put right in integers.
    """
    valid = all_valid(a.valid, None if (a.data >= 0).all() else a.data >= 0)
    furthest = max(abs(end) for end in a.bounds)
    if digits < 0 or furthest * 10**digits > _EXACT_FLOAT:
        return Vector(_slowly(lambda x, _: nearest_root(x, digits), a, _number(0), valid), valid)
    squares = np.maximum(a.data, 0) * np.int64(10**digits)
    made = np.sqrt(squares.astype(np.float64)).astype(np.int64)
    made -= made * made > squares
    made += (made + 1) * (made + 1) <= squares
    return Vector(made + (squares - made * made > made), valid)


def nearest_root(value: int, digits: int) -> int:
    """`root` of one number."""
    value, part = (value * 10**digits, 1) if digits >= 0 else (value, 10**-digits)
    made = isqrt(value // part)
    return made + (4 * value > (2 * made + 1) ** 2 * part)
