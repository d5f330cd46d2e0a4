"""Values of one expression for the rows of a block, their conversion from and to Arrow, and exact arithmetic.

Arithmetic on 64-bit integers never wraps: results that may exceed the bounds are calculated again with Python's
unlimited integers, and a result that does not fit is a `FormulaValueError`. A `Vector` holds numpy arrays for
everything but texts, which stay Arrow arrays. A value that is the same in every row is kept once, as an array without
dimensions (an Arrow scalar for texts).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import ROUND_HALF_EVEN, Decimal
from math import isqrt
from typing import Any, TypeAlias, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine import budget
from webapp.engine import text as texts
from webapp.engine.formulas import types
from webapp.engine.formulas.types import MAX_INTEGER, MIN_INTEGER, FormulaValueError, Kind

_EXACT_FLOAT = 1 << 52


def fits(low: int, high: int) -> bool:
    """Return whether all numbers from ``low`` to ``high`` are 64-bit integers."""
    return low >= MIN_INTEGER and high <= MAX_INTEGER


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
        low, high = bounds(a.exact_bounds(), b.exact_bounds())
    if fits(low, high):
        return Vector(fast(a.data, b.data), valid, low, high)
    return Vector(_with_python_integers(slow, a, b, valid), valid)


def _with_python_integers(
    slow: Callable[[int, int], int], a: Vector, b: Vector, valid: np.ndarray | None
) -> np.ndarray:
    left, right = np.broadcast_arrays(a.data, b.data)
    mask = np.ones(left.shape, bool) if valid is None else np.broadcast_to(valid, left.shape)
    out = np.zeros(left.shape, np.int64)
    results = [slow(x, y) for x, y in zip(left[mask].tolist(), right[mask].tolist(), strict=True)]
    if results and not fits(min(results), max(results)):
        raise _too_large()
    out[mask] = results
    return out


def _too_large() -> FormulaValueError:
    text = "A number is too large: with its decimals it has more digits than fit in 64 bits."
    return FormulaValueError("too_large", text, "Round to fewer decimal places, or use smaller numbers.")


def divide(a: Vector, b: Vector, digits: int) -> Vector:
    """``a / b`` times 10 to the power of ``digits`` (may be negative), half to even; no value where b is 0."""
    top, bottom = (digits, 0) if digits >= 0 else (0, -digits)
    nonzero = b.data != 0
    valid = all_valid(a.valid, b.valid, None if nonzero.all() else nonzero)
    b = Vector(np.where(nonzero, b.data, 1), b.valid)
    low, high = product_bounds(a.bounds, (1, 10**top))
    if not fits(low, high):
        low, high = product_bounds(a.exact_bounds(), (1, 10**top))
    furthest = max(abs(end) for end in b.bounds) * 10**bottom
    # Twice the remainder is compared with the divisor, so that must fit too.
    if not fits(low, high) or 2 * furthest > MAX_INTEGER:
        return Vector(
            _with_python_integers(lambda x, y: half_even(x * 10**top, y * 10**bottom), a, b, valid), valid
        )
    return Vector(_half_even(a.data * np.int64(10**top), b.data * np.int64(10**bottom)), valid)


def _half_even(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    quotient, rest = np.divmod(a, b)  # rest has the sign of b
    rest, divisor = np.abs(rest) * 2, np.abs(b)
    up = (rest > divisor) | ((rest == divisor) & (quotient & 1 == 1))
    return quotient + up


def half_even(a: int, b: int) -> int:
    """``a / b`` to the nearest integer, half to even."""
    quotient, rest = divmod(a, b)
    rest, divisor = abs(rest) * 2, abs(b)
    return quotient + (rest > divisor or (rest == divisor and quotient & 1 == 1))


def round_digits(a: Vector, digits: int) -> Vector:
    """``a`` with ``digits`` fewer digits, half to even."""
    return divide(a, _number(1), -digits)


def floor_divide(a: Vector, b: Vector) -> Vector:
    """The quotient rounded down, as Python has it; no value where b is 0."""
    return _divmod(a, b, np.floor_divide)


def modulo(a: Vector, b: Vector) -> Vector:
    """Return the remainder of `floor_divide`, with the sign of b; null if b is 0."""
    return _divmod(a, b, np.mod)


def _divmod(a: Vector, b: Vector, operation: np.ufunc) -> Vector:
    nonzero = b.data != 0
    valid = all_valid(a.valid, b.valid, None if nonzero.all() else nonzero)
    return Vector(operation(a.data, np.where(nonzero, b.data, 1)), valid)


def sqrt(a: Vector, digits: int) -> Vector:
    """The square root of ``a`` times 10 to the power of ``digits`` (may be negative), to the nearest; no value below 0.

    ``sqrt`` of a double is rounded rightly on every machine (IEEE 754); the last unit is then put right in integers.
    """
    valid = all_valid(a.valid, None if (a.data >= 0).all() else a.data >= 0)
    largest = max(abs(end) for end in a.bounds)
    if digits < 0 or largest * 10**digits > _EXACT_FLOAT:
        return Vector(
            _with_python_integers(lambda x, _: nearest_root(x, digits), a, _number(0), valid), valid
        )
    squares = np.maximum(a.data, 0) * np.int64(10**digits)
    result = np.sqrt(squares.astype(np.float64)).astype(np.int64)
    result -= result * result > squares
    result += (result + 1) * (result + 1) <= squares
    return Vector(result + (squares - result * result > result), valid)


def nearest_root(value: int, digits: int) -> int:
    """`sqrt` of one number."""
    value, part = (value * 10**digits, 1) if digits >= 0 else (value, 10**-digits)
    result = isqrt(value // part)
    return result + (4 * value > (2 * result + 1) ** 2 * part)


_NO_TEXT = pa.scalar(None, pa.string())
_DAY_ZERO = date(1970, 1, 1)


class Vector:
    """``data``: ``int64[n]`` for numbers (units), dates (days) and times (microseconds), ``bool[n]``, or texts.

    ``valid`` says which rows have a value; None: all. Arrow arrays of texts and objects have their own validity. The
    content of ``data`` for nulls does not matter, but numbers are inside ``bounds``.
    """

    __slots__ = ("_high", "_low", "data", "valid")

    def __init__(
        self, data: Any, valid: np.ndarray | None = None, low: int | None = None, high: int | None = None
    ) -> None:
        self.data, self.valid = data, valid
        self._low, self._high = low, high

    @property
    def bounds(self) -> tuple[int, int]:
        """Bounds of the numbers in ``data``."""
        if self._low is None or self._high is None:
            return self.exact_bounds()
        return self._low, self._high

    def exact_bounds(self) -> tuple[int, int]:
        """`bounds`, just so."""
        data = self.data
        low, high = (int(data.min()), int(data.max())) if data.size else (0, 0)
        self._low, self._high = low, high
        return low, high


class Lists:
    """A list a row: row i has ``items[offsets[i]:offsets[i + 1]]``; ``valid`` as for a `Vector`."""

    __slots__ = ("_owner", "items", "offsets", "valid")

    def __init__(self, offsets: np.ndarray, items: Value, valid: np.ndarray | None = None) -> None:
        self.offsets, self.items, self.valid = offsets, items, valid
        self._owner: np.ndarray | None = None

    @property
    def vector(self) -> Vector:
        """Return ``items`` if they are single values. Raises TypeError if they are lists."""
        if not isinstance(self.items, Vector):
            raise TypeError("these elements are lists")
        return self.items

    @property
    def counts(self) -> np.ndarray:
        """``int64[n]``: elements of each row."""
        return np.diff(self.offsets)

    @property
    def owner(self) -> np.ndarray:
        """``int64[items]``: whose element each is."""
        if self._owner is None:
            self._owner = np.repeat(np.arange(self.offsets.size - 1), self.counts)
        return self._owner


Value: TypeAlias = Vector | Lists


def all_valid(*masks: np.ndarray | None) -> np.ndarray | None:
    """Return where all of the masks are true; None: everywhere."""
    present = [mask for mask in masks if mask is not None]
    if not present:
        return None
    out = present[0]
    for mask in present[1:]:
        out = out & mask
    return out


def is_valid(kind: Kind, value: Value, n: int) -> np.ndarray:
    """``bool[n]``: which rows have a value."""
    if kind.name == "null":
        return np.zeros(n, bool)
    if isinstance(value, Vector) and kind.name in ("text", "object"):
        if isinstance(value.data, pa.Scalar):
            return np.full(n, value.data.is_valid)
        return value.data.is_valid().to_numpy(zero_copy_only=False)
    return np.ones(n, bool) if value.valid is None else np.broadcast_to(value.valid, (n,))


def broadcast(value: Vector, n: int) -> np.ndarray:
    """``data`` with one entry a row."""
    return value.data if value.data.ndim else np.broadcast_to(value.data, (n,))


def broadcast_text(value: Vector, n: int) -> pa.Array:
    """Texts as a plain Arrow array with one entry a row."""
    data = value.data
    if isinstance(data, pa.Scalar):
        budget.check(budget.size_of(data) * n)
        return pa.repeat(data, n)
    return decode_dictionary(data)


def decode_dictionary(data: pa.Array) -> pa.Array:
    """Return texts without a dictionary. Raises `MemoryBudgetError` before allocating more than the budget."""
    if not pa.types.is_dictionary(data.type):
        return data
    budget.check(budget.size_of(data))
    return data.dictionary_decode()


def size_of(value: Value) -> int:
    """The bytes that ``value`` takes, texts decoded."""
    if isinstance(value, Lists):
        return value.offsets.nbytes + size_of(value.items)
    data = value.data
    if isinstance(data, np.ndarray | np.generic):
        return data.nbytes
    return 0 if isinstance(data, pa.Scalar) else budget.size_of(data)


def constant(kind: Kind, value: Any) -> Vector:
    """One value for all rows; ``value`` is units, days, microseconds, a text, a truth value or None."""
    if kind.name == "text":
        return Vector(pa.scalar(value, pa.string()))
    if kind.name == "boolean":
        return Vector(np.array(bool(value)), None if value is not None else np.array(False))
    if value is None:
        return Vector(np.array(0, np.int64), np.array(False), 0, 0)
    return Vector(np.array(value, np.int64), None, value, value)


def single_value(kind: Kind, value: Value) -> Any:
    """Return the value of the only row of ``value``, as `constant` takes it. Raises TypeError for a list."""
    if not is_valid(kind, value, 1)[0]:
        return None
    if isinstance(value, Lists):
        raise TypeError("a list is not a single value")
    if kind.name == "text":
        return value.data.as_py() if isinstance(value.data, pa.Scalar) else value.data[0].as_py()
    only = value.data.reshape(-1)[0]
    return bool(only) if kind.name == "boolean" else int(only)


@overload
def take(kind: Kind, value: Vector, index: np.ndarray) -> Vector: ...


@overload
def take(kind: Kind, value: Lists, index: np.ndarray) -> Lists: ...


def take(kind: Kind, value: Value, index: np.ndarray) -> Value:
    """The values of rows ``index``; -1 means no value."""
    absent = index < 0
    some = bool(absent.any())
    if isinstance(value, Lists):
        return _take_lists(kind, value, np.where(absent, 0, index), absent if some else None)
    if kind.name in ("text", "object"):
        if isinstance(value.data, pa.Scalar):
            budget.check(budget.size_of(value.data) * index.size if some else 0)
            return Vector(pc.if_else(pa.array(~absent), value.data, _NO_TEXT)) if some else value
        places = pa.array(index, mask=absent) if some else pa.array(index)
        return Vector(budget.take_within_budget(value.data, places))
    if value.data.ndim and not value.data.size:
        return Vector(np.zeros(index.size, value.data.dtype), np.zeros(index.size, bool))
    places = np.where(absent, 0, index) if some else index
    data = value.data[places] if value.data.ndim else np.broadcast_to(value.data, index.shape)
    valid = value.valid
    if valid is not None:
        valid = valid[places] if valid.ndim else np.broadcast_to(valid, index.shape)
    return Vector(data, all_valid(valid, ~absent if some else None))


def _take_lists(kind: Kind, value: Lists, index: np.ndarray, absent: np.ndarray | None) -> Lists:
    counts = value.counts[index] if value.offsets.size > 1 else np.zeros(index.size, np.int64)
    if absent is not None:
        counts = np.where(absent, 0, counts)
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
    budget.check(int(offsets[-1]) * offsets.itemsize)
    starts = value.offsets[index] if value.offsets.size > 1 else np.zeros(index.size, np.int64)
    item_indices = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - starts, counts)
    valid = None if value.valid is None else value.valid[index]
    items = take(kind.element, value.items, item_indices)
    return Lists(offsets, items, all_valid(valid, None if absent is None else ~absent))


def load(column: pa.Array, kind: Kind) -> Value:
    """An Arrow column of the type that `types.from_arrow` answered ``kind`` for."""
    return load_lists(column, kind) if kind.name == "list" else load_vector(column, kind)


def load_vector(column: pa.Array, kind: Kind) -> Vector:
    """`load` for single values."""
    if kind.name == "text":
        return Vector(column)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if kind.name == "object":
        return Vector(column)
    if kind.name == "null":
        return Vector(np.zeros(len(column), np.int64), np.zeros(len(column), bool))
    valid = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
    data: np.ndarray
    if pa.types.is_float64(column.type):
        data = np.array([units_of(value, kind.places) or 0 for value in column.to_pylist()], np.int64)
    elif kind.name == "decimal":
        data = texts.decimal_units(column) if len(column) else np.zeros(0, np.int64)
    elif kind.name == "boolean":
        data = (column.fill_null(False) if column.null_count else column).to_numpy(zero_copy_only=False)
    elif not len(column):
        data = np.zeros(0, np.int64)
    else:
        width = np.int32 if kind.name == "date" else np.int64
        data = np.frombuffer(column.buffers()[1], width)[column.offset : column.offset + len(column)]
        data = data.astype(np.int64) if kind.name == "date" else data
    return Vector(data if valid is None else np.where(valid, data, data.dtype.type(0)), valid)


def units_of(value: Any, places: int) -> int | None:
    """A number written down by hand in units of ``places`` digits, half to even; None for None and for what no
    64-bit number of units can hold."""
    if value is None:
        return None
    try:
        units = int(Decimal(repr(value) if isinstance(value, float) else value).scaleb(places).quantize(
            Decimal(1), rounding=ROUND_HALF_EVEN
        ))  # fmt: skip
    except ArithmeticError:
        return None
    return units if types.MIN_INTEGER <= units <= types.MAX_INTEGER else None


def load_lists(column: pa.Array, kind: Kind) -> Lists:
    """`load` for lists."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    counts = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)))
    valid = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
    return Lists(offsets, load(column.flatten(), kind.element), valid)


def member(value: Vector, index: int, kind: Kind) -> Value:
    """Field number ``index`` of objects."""
    return load(value.data.flatten()[index], kind)


def store(kind: Kind, value: Value, n: int) -> pa.Array:
    """One Arrow array of ``types.to_arrow(kind)``, of length ``n``."""
    if kind.name == "null":
        return pa.nulls(n)
    if isinstance(value, Lists):
        items = store(kind.element, value.items, int(value.offsets[-1]))
        mask = None if value.valid is None else pa.array(~value.valid)
        dtype = types.to_arrow(kind)
        return pa.ListArray.from_arrays(
            pa.array(value.offsets.astype(np.int32)), items, type=dtype, mask=mask
        )
    if kind.name == "text":
        return broadcast_text(value, n)
    if kind.name == "object":
        return value.data
    data = np.ascontiguousarray(broadcast(value, n))
    if kind.name == "decimal":
        array = texts.decimal_array(data, kind.places)
    elif kind.name == "boolean":
        array = pa.array(data)
    elif kind.name == "date":
        array = pa.array(data.astype(np.int32)).view(pa.date32())
    else:
        array = pa.array(data).view(types.to_arrow(kind))
    if value.valid is None:
        return array
    return pc.if_else(pa.array(broadcast(Vector(value.valid), n)), array, pa.scalar(None, array.type))


def to_text(kind: Kind, value: Vector, n: int) -> Vector:
    """Values as the texts they are spelled with."""
    if kind.name == "text":
        return value
    if kind.name == "null":
        return Vector(_NO_TEXT)
    if kind.name != "object" and not value.data.ndim:
        one = texts.to_text(store(kind, value, 1))
        return Vector(one[0])
    return Vector(texts.to_text(store(kind, value, n)))


def convert(value: Value, kind: Kind, target: Kind, n: int) -> Value:
    """``value`` of type ``kind`` as the wider type ``target`` (see `types.common_kind`)."""
    if kind.name == "null":
        return _null_values(target, n)
    if isinstance(value, Lists):
        return value
    if kind.is_numeric and target.places > kind.places:
        return scale(value, target.places - kind.places)
    if kind.name == "date" and target.name == "timestamp":
        low, high = types.FIRST_DAY * types.DAY_US, (types.LAST_DAY + 1) * types.DAY_US
        return Vector(value.data * types.DAY_US, value.valid, low, high)
    if target.name == "text" and kind.name != "text":
        return to_text(kind, value, n)
    return value


def _null_values(kind: Kind, n: int) -> Value:
    if kind.name == "list":
        item = _null_values(kind.element, 0)
        return Lists(np.zeros(n + 1, np.int64), item, np.zeros(n, bool))
    if kind.name == "object":
        return Vector(pa.nulls(n, types.to_arrow(kind)))
    return constant(kind, None)


def days_of(point: datetime) -> int:
    """Days since 1970 of an aware point in time."""
    return (point.date() - _DAY_ZERO).days


def element(value: Lists, kind: Kind, index: int) -> Value:
    """Element ``index`` of each list, from the end where negative; blank if it does not exist."""
    return take(kind.element, value.items, element_indices(value, index))


def element_indices(value: Lists, index: int) -> np.ndarray:
    """``int64[n]``: where in ``items`` element ``index`` of each list is; -1 if it does not exist."""
    counts = value.counts
    inside = counts > index if index >= 0 else counts >= -index
    positions = value.offsets[:-1] + index if index >= 0 else value.offsets[1:] + index
    return np.where(inside, positions, -1)
