"""Which kinds of bad values a compiled field can have, and what makes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from webapp import limits
from webapp.engine import budget
from webapp.engine import cells as cellular
from webapp.engine.bad import checks, shapes, values
from webapp.engine.bad.invalid import KINDS, Kind
from webapp.engine.fields.between import DAY_SECONDS, Point
from webapp.engine.fields.relations import NUMBERED, Reference
from webapp.engine.fields.time import Time

if TYPE_CHECKING:
    from webapp.engine.bad.spoiler import Here
    from webapp.engine.layers import Column

Made: TypeAlias = pa.Array | list[str]
"""Texts, or an array of the column's own type."""
Make = Callable[["Here", list[Any], np.ndarray], Made]
"""Bad values for some cells: ``(here, good values, uint64[n] of random bits)``."""

_BEYOND: Final = 1000  # chosen: so many units beyond an end a number lies at most
_ORPHANS: Final = 1 << 20  # chosen: so many rows beyond the last parent are drawn from
_DAY_MICROS: Final = DAY_SECONDS * 1_000_000
_LAST_DAY: Final = 2_932_896  # 9999-12-31
_FIRST_DAY: Final = -719_162  # 0001-01-01


@dataclass(frozen=True, slots=True)
class Range:
    """What numbers there are, in units of the last decimal, and what the column's type can hold beyond them."""

    low: int
    high: int
    least: int
    most: int

    @property
    def has_outside(self) -> bool:
        """Whether there is a number that is not in it."""
        return self.low - _BEYOND >= self.least or self.high + _BEYOND <= self.most

    def outside(self, bits: int) -> int:
        """A number below or above it."""
        step = 1 + bits // 2 % _BEYOND
        below = self.low - step
        if self.high + _BEYOND > self.most or (bits % 2 and self.low - _BEYOND >= self.least):
            return below
        return self.high + step


def makes_of(column: Column) -> Mapping[Kind, Make]:
    """What the column can have, by kind, in the order of `KINDS`."""
    dtype = column.dtype
    if pa.types.is_null(dtype):
        return {}
    found: dict[Kind, Make] = {}
    whole = column.blank is None
    if whole and not column.type.blank_together:
        found["missing"] = lambda here, good, bits: pa.nulls(len(good), dtype)
    if pa.types.is_nested(dtype):
        return found
    if whole and _never_repeats(column):
        found["duplicate"] = lambda here, good, bits: here.earlier(bits)
    orphan = _orphan(column)
    if orphan is not None:
        found["orphan"] = orphan
    if column.type.json_text and column.after is None and column.formula is None:
        return found
    if pa.types.is_string(dtype):
        found |= _of_texts(column)
    else:
        found |= _of_values(column)
    return {kind: found[kind] for kind in KINDS if kind in found}


def _never_repeats(column: Column) -> bool:
    if column.spec.common.unique:
        return True
    return column.formula is None and (column.type.primary or column.type.name in NUMBERED)


def _each(make: Callable[[Any, int], str]) -> Make:
    return lambda here, good, bits: [make(one, bit) for one, bit in zip(good, bits.tolist(), strict=True)]


def _longer(longest: int) -> Make:
    def make(here: Here, good: list[Any], bits: np.ndarray) -> list[str]:
        budget.check(longest * len(good))
        return [values.too_long(one, longest, bit) for one, bit in zip(good, bits.tolist(), strict=True)]

    return make


# --- Texts ------------------------------------------------------------------------------------------------------


def _of_texts(column: Column) -> dict[Kind, Make]:
    found: dict[Kind, Make] = {
        "injection": _each(values.injection),
        "unicode_edge": _each(values.unicode_edge),
    }
    told = (column.arrow_field().metadata or {}).get(b"max_length")
    longest = int(told) if told else None
    if longest and longest < limits.BAD_TEXT_CHARS:
        found["too_long"] = _longer(longest)
    if column.formula is not None:  # the values are no longer those of the type
        return found
    misshape = shapes.of_type(column.type.name, type(column.type))
    if misshape is not None:
        found["bad_format"] = _each(_inside(column, misshape))
    place = checks.place_of(column.type)
    if place is not None:
        found["bad_checksum"] = _each(_inside(column, lambda text, bits: checks.broken(text, place, bits)))
    return found


def _inside(column: Column, change: shapes.Misshape) -> shapes.Misshape:
    """``change`` between the field's prefix and suffix."""
    common = column.spec.common
    start, end = len(common.prefix), len(common.suffix)
    if not start and not end:
        return change

    def changed(text: str, bits: int) -> str:
        return f"{common.prefix}{change(text[start : len(text) - end], bits)}{common.suffix}"

    return changed


# --- Numbers, dates, truth values -------------------------------------------------------------------------------


def _of_values(column: Column) -> dict[Kind, Make]:
    found: dict[Kind, Make] = {"wrong_type": _each(values.wrong_type)}
    dtype = column.dtype
    for test, texts in _CALENDAR:
        if test(dtype):
            found["bad_format"] = _each(shapes.fixed(*texts))
    outside = _outside(column)
    if outside is not None:
        found["out_of_range"] = outside
    return found


_CALENDAR: Final = (
    (pa.types.is_date, shapes.DATES),
    (pa.types.is_timestamp, shapes.MOMENTS),
    (pa.types.is_time, shapes.TIMES),
)


def _outside(column: Column) -> Make | None:
    made, dtype = column.type, column.dtype
    if column.formula is None and isinstance(made, Point):

        def of_point(here: Here, good: list[Any], bits: np.ndarray) -> Made:
            span = here.state
            found = Range(span.low, span.low + span.size - 1, *_held(dtype))
            return _typed([found.outside(bit) for bit in bits.tolist()], dtype)

        return of_point
    found = _range(column)
    if found is None or not found.has_outside:
        return None
    return lambda here, good, bits: _typed([found.outside(bit) for bit in bits.tolist()], dtype)


def _range(column: Column) -> Range | None:
    """Least and largest number, where these are the field's own and no matter of how many rows there are."""
    made, dtype = column.type, column.dtype
    if isinstance(made, Time):
        low, high = (getattr(made.options, end) for end in ("min", "max"))
        return Range(_second(low), _second(high), 0, DAY_SECONDS - 1)
    if not (pa.types.is_integer(dtype) or pa.types.is_decimal(dtype)):
        return None
    if isinstance(made, Reference) or column.formula is not None or made.needs:
        return None
    few, many = column.bounds(1), column.bounds(limits.MAX_OFFSET)
    return None if few is None or few != many else Range(*few, *_held(dtype))


def _second(clock: str) -> int:
    hour, minute, second = (int(part) for part in (*clock.strip().split(":"), "0")[:3])
    return hour * 3600 + minute * 60 + second


def _held(dtype: pa.DataType) -> tuple[int, int]:
    """Least and largest number of units that a type holds."""
    if pa.types.is_decimal(dtype):
        return 1 - 10**dtype.precision, 10**dtype.precision - 1
    if pa.types.is_date(dtype):
        return _FIRST_DAY, _LAST_DAY
    if pa.types.is_timestamp(dtype):
        return _FIRST_DAY * DAY_SECONDS, (_LAST_DAY + 1) * DAY_SECONDS - 1
    return (0, 2**64 - 1) if pa.types.is_uint64(dtype) else (-(2**63), 2**63 - 1)


def _typed(units: list[int], dtype: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(dtype):
        return pa.array([Decimal(one).scaleb(-dtype.scale) for one in units], dtype)
    if pa.types.is_date(dtype):
        return pa.array(units, pa.int32()).cast(dtype)
    if pa.types.is_timestamp(dtype) or pa.types.is_time(dtype):
        return pa.array([one * 1_000_000 for one in units], pa.int64()).cast(dtype)
    return pa.array(units, dtype)


# --- References -------------------------------------------------------------------------------------------------


def _orphan(column: Column) -> Make | None:
    """Keys of rows that the other template does not have; None where it has a row for each key there is."""
    made = column.type
    if not isinstance(made, Reference) or column.formula is not None or column.after is not None:
        return None
    parent, rows, address = made.shown_column, made.parent_rows, made.address
    if parent is None or address is None or not _never_repeats(parent):
        return None
    space = parent.type.space() if parent.spec.common.unique else None
    beyond = _ORPHANS if space is None else min(_ORPHANS, space - rows)
    if beyond <= 0:
        return None

    def orphans(here: Here, good: list[Any], bits: np.ndarray) -> Made:
        others = here.bound.relatives[address].at(cellular.below(bits, beyond) + np.uint64(rows))
        return decoded(others.column(parent.name))

    return orphans


def decoded(column: pa.Array) -> pa.Array:
    """A column without its dictionary."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def told(kinds: Sequence[str]) -> str:
    """Kinds as a sentence names them."""
    return ", ".join(kinds) or "none"
