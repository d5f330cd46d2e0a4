"""Static types of formulas: the kind of a value, its decimal places, its minimum and maximum, its longest text.

Errors of formulas have positions.

Numbers are whole units of their last decimal, held as 64-bit integers: ``integer`` has no places, ``decimal`` has
some. Where bounds are known they are in those units too.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa

from webapp import limits


class FormulaError(ValueError):
    """A formula that cannot be parsed or evaluated. ``position`` counts characters from 1."""

    def __init__(self, code: str, message: str, position: int = 1, hint: str | None = None) -> None:
        self.code, self.message, self.position, self.hint = code, message, position, hint
        super().__init__(message)


class FormulaErrors(ValueError):
    """Everything that is wrong with one formula; ``errors`` is never empty."""

    def __init__(self, errors: list[FormulaError]) -> None:
        self.errors = errors
        super().__init__("; ".join(error.message for error in errors))


class FormulaValueError(ArithmeticError):
    """A value of some row that cannot be carried further: too large a number, too long a text."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        self.code, self.message, self.hint = code, message, hint
        super().__init__(message)


MIN_INTEGER, MAX_INTEGER = -(2**63) + 1, 2**63 - 1
"""The largest absolute value of a number, in units of its last decimal."""

FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""1 January of the year 1 and 31 December 9999, in days since 1970."""

# --- Types --------------------------------------------------------------------------------------------------

DAY_US = 86_400_000_000

FLOAT_PLACES = 6
"""Digits kept of a binary fraction, which only values written down by hand can be."""


@dataclass(frozen=True, slots=True)
class Kind:
    """The type of one expression."""

    name: str
    """integer, decimal, text, boolean, date, timestamp, time, list, object or null."""
    places: int = 0
    low: int | None = None
    high: int | None = None
    max_length: int | None = None
    """The length of the longest text, if known."""
    item: Kind | None = None
    members: tuple[tuple[str, Kind], ...] = ()
    """Fields of an object."""
    zone: str | None = None
    origin: object = field(default=None, compare=False)
    """The array that a list comes from: only lists with the same origin can be combined element by element."""
    max_items: int | None = None
    """Elements of the longest list."""

    @property
    def is_numeric(self) -> bool:
        return self.name in ("integer", "decimal")

    @property
    def bounds(self) -> tuple[int, int] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def element(self) -> Kind:
        """The type of a list's elements. Raises TypeError for any other type."""
        if self.item is None:
            raise TypeError(f"{self.label} has no elements")
        return self.item

    @property
    def label(self) -> str:
        """The type in a sentence."""
        return _LABELS[self.name]


_LABELS = {
    "integer": "a whole number", "decimal": "a decimal number", "text": "a text", "boolean": "true or false",
    "date": "a date", "timestamp": "a point in time", "time": "a time of day", "list": "a list",
    "object": "an object", "null": "blank",
}  # fmt: skip

BOOLEAN, DATE, TIME, NULL = Kind("boolean"), Kind("date"), Kind("time"), Kind("null")
TIMESTAMP = Kind("timestamp", zone="UTC")


def number(places: int, low: int | None = None, high: int | None = None) -> Kind:
    """Return the type of numbers with this many decimal places."""
    return Kind("decimal" if places else "integer", places, low, high)


def text(longest: int | None = None) -> Kind:
    """Return the type of texts with this maximum length."""
    return Kind("text", max_length=longest)


def list_of(item: Kind, origin: object, max_items: int | None = None) -> Kind:
    """A list of ``item``."""
    return Kind("list", item=item, origin=origin, max_items=max_items)


def from_arrow(
    dtype: pa.DataType, longest: int | None = None, origin: object = None, max_items: int | None = None
) -> Kind:
    """The type of an Arrow column. Raises TypeError for one that formulas cannot read."""
    if pa.types.is_dictionary(dtype):
        dtype = dtype.value_type
    if pa.types.is_int64(dtype):
        return number(0)
    if pa.types.is_decimal128(dtype):
        return number(dtype.scale)
    if pa.types.is_float64(dtype):
        return number(FLOAT_PLACES)
    if pa.types.is_string(dtype):
        return text(longest)
    if pa.types.is_timestamp(dtype) and dtype.unit == "us":
        return Kind("timestamp", zone=dtype.tz)
    if pa.types.is_struct(dtype):
        return Kind("object", members=tuple((child.name, _of_child(child, origin)) for child in dtype))
    if pa.types.is_list(dtype):
        child = dtype.value_field
        declared = (child.metadata or {}).get(b"max_items")
        list_origin = origin if origin is not None else object()
        return list_of(
            _of_child(child, (list_origin, "item")), list_origin, int(declared) if declared else max_items
        )
    for test, kind in _PLAIN:
        if test(dtype):
            return kind
    raise TypeError(f"formulas cannot read {dtype}")


_PLAIN = (
    (pa.types.is_boolean, BOOLEAN),
    (pa.types.is_date32, DATE),
    (pa.types.is_time64, TIME),
    (pa.types.is_null, NULL),
)


def _of_child(child: pa.Field, origin: object) -> Kind:
    message = (child.metadata or {}).get(b"max_length")
    return from_arrow(child.type, int(message) if message else None, (origin, child.name))


def to_arrow(kind: Kind) -> pa.DataType:
    """The Arrow type of a column of this type."""
    match kind.name:
        case "integer":
            return pa.int64()
        case "decimal":
            return pa.decimal128(38, kind.places)
        case "text":
            return pa.string()
        case "boolean":
            return pa.bool_()
        case "date":
            return pa.date32()
        case "timestamp":
            return pa.timestamp("us", kind.zone)
        case "time":
            return pa.time64("us")
        case "null":
            return pa.null()
        case "object":
            return pa.struct([_field(name, member) for name, member in kind.members])
        case _:
            meta = {b"max_items": str(kind.max_items).encode()} if kind.max_items is not None else None
            return pa.list_(_field("item", kind.element, meta))


def _field(name: str, kind: Kind, meta: dict[bytes, bytes] | None = None) -> pa.Field:
    meta = dict(meta or {})
    if kind.name == "text" and kind.max_length is not None:
        meta[b"max_length"] = str(kind.max_length).encode()
    return pa.field(name, to_arrow(kind), metadata=meta or None)


def common_kind(kinds: list[Kind]) -> Kind | None:
    """Return the type that values of all these types can be converted to; None if there is no such type."""
    typed = [kind for kind in kinds if kind.name != "null"]
    if not typed:
        return NULL
    if all(kind.is_numeric for kind in typed):
        places = max(kind.places for kind in typed)
        bounds = [bound for kind in typed if (bound := scaled(kind, places)) is not None]
        if len(bounds) < len(typed):
            return number(places)
        return number(places, min(low for low, _ in bounds), max(high for _, high in bounds))
    names = {kind.name for kind in typed}
    if names == {"date", "timestamp"}:
        return TIMESTAMP
    if len(names) > 1:
        return None
    if names == {"text"}:
        return text(max_length_of([kind.max_length for kind in typed]))
    if names & {"list", "object"}:
        first = typed[0]
        same = all(to_arrow(kind) == to_arrow(first) for kind in typed)
        return replace(first, origin=object()) if same else None
    return typed[0]


def scaled(kind: Kind, places: int) -> tuple[int, int] | None:
    """A number's bounds in units of ``places`` digits, of which it has no more."""
    if kind.low is None or kind.high is None:
        return None
    factor = 10 ** (places - kind.places)
    return kind.low * factor, kind.high * factor


def max_length_of(lengths: list[int | None]) -> int | None:
    """Return the maximum of some lengths; None if one of them is unknown."""
    known = [length for length in lengths if length is not None]
    return None if len(known) < len(lengths) else max(known, default=0)


def total_length_of(lengths: list[int | None]) -> int | None:
    """Return the sum of some lengths; None if one of them is unknown."""
    known = [length for length in lengths if length is not None]
    return None if len(known) < len(lengths) else sum(known)


def text_length(kind: Kind) -> int | None:
    """Characters of the longest text that a value of this type is spelled with."""
    match kind.name:
        case "text":
            return kind.max_length
        case "integer" | "decimal":
            bounds = kind.bounds or (MIN_INTEGER, MAX_INTEGER)
            digits = max(len(str(abs(end))) for end in bounds)
            return max(digits, kind.places + 1) + bool(kind.places) + (bounds[0] < 0)
        case "boolean":
            return 5
        case "date":
            return 10
        case "timestamp" | "time":
            return 32
        case "null":
            return 0
        case _:
            return None


def is_too_long(longest: int | None) -> bool:
    """Return whether a text may become longer than a formula's result may be."""
    return longest is not None and longest > limits.MAX_FORMULA_TEXT
