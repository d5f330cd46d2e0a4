"""Which values do not fit a column: lengths, ranges, digits, choices, and how texts must be written.

Judged for a whole column at once, and only by what a column tells of itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from webapp.connectors.shape import Column
from webapp.services.mapping import kinds_of
from webapp.services.row_makers import Field

Bad = tuple[str, pa.Array, str, str]
"""Reason, where, message, hint."""


# MySQL 8.0 Reference Manual, 11.2.4 The YEAR Type; 0000 aside.
_YEAR: Final = (Decimal(1901), Decimal(2155))


def limit_of(column: Column) -> tuple[Decimal, Decimal] | None:
    """The least and the greatest number that a column takes."""
    if column.type == "integer" and column.declared.casefold().startswith("year"):
        return _YEAR
    if column.type == "integer" and column.bits:
        if column.unsigned:
            return Decimal(0), Decimal(2**column.bits - 1)
        half = 2 ** (column.bits - 1)
        return Decimal(-half), Decimal(half - 1)
    if column.type == "decimal" and column.precision is not None:
        most = Decimal(10) ** (column.precision - (column.scale or 0)) - Decimal(10) ** -(column.scale or 0)
        return -most, most
    return None


def bad_values(column: Column, values: pa.Array, kind: str) -> Iterator[Bad]:
    """What of the values does not fit a column of a kind of connection: reason, where, message, hint."""
    dtype = values.type
    if pa.types.is_string(dtype):
        yield from _bad_texts(column, values)
    elif pa.types.is_integer(dtype) or pa.types.is_decimal(dtype) or pa.types.is_floating(dtype):
        yield from _bad_numbers(column, values)
    elif pa.types.is_date(dtype) or pa.types.is_timestamp(dtype):
        yield from _bad_dates(column, values, kind)
    if column.type in _NOT_FROM_OTHERS and not _takes(column, dtype):
        text = f"The column is {column.declared or column.type}."
        yield "wrong_type", values.is_valid(), text, "Map another field, or write a formula in computed."


_NOT_FROM_OTHERS: Final = frozenset(
    {"integer", "decimal", "float", "date", "timestamp", "timestamptz", "uuid"}
)


def _takes(column: Column, dtype: pa.DataType) -> bool:
    if pa.types.is_string(dtype) or pa.types.is_null(dtype):
        return True
    return column.type in kinds_of(Field("", dtype)) or (
        pa.types.is_boolean(dtype) and column.type == "integer"
    )


def _bad_texts(column: Column, values: pa.Array) -> Iterator[Bad]:
    length = column.max_length
    if length is not None and column.type in ("text", "other"):
        text = f"The column takes {length:,} characters."
        yield "too_long", pc.greater(pc.utf8_length(values), length), text, "Make the field's texts shorter."
    if length is not None and column.type == "binary":
        long = pc.greater(pc.binary_length(values), length)
        yield "too_long", long, f"The column takes {length:,} bytes.", "Make the field's texts shorter."
    if column.choices:
        strange = pc.invert(pc.is_in(values, value_set=pa.array(column.choices)))
        hint = f"It takes {', '.join(column.choices[:20])}."
        yield "enum", pc.and_(values.is_valid(), strange), "The column has no such choice.", hint
    pattern = _WRITTEN.get(column.type)
    if pattern is not None:
        odd = pc.invert(pc.match_substring_regex(values, pattern))
        text = f"This cannot be read as {column.declared or column.type}."
        yield "wrong_type", odd, text, "Map another field, or write a formula in computed."
    if column.type == "json":
        odd = pa.array([value is not None and not _is_json(value) for value in values.to_pylist()])
        yield "wrong_type", odd, "This is no JSON.", "Map an object or an array, or quote the text."


# How texts must be written for a column; RE2.
_WRITTEN: Final[Mapping[str, str]] = {
    "integer": r"^\s*[-+]?\d+\s*$",
    "decimal": r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$",
    "float": r"(?i)^\s*[-+]?(\d+\.?\d*|\.\d+|inf(inity)?|nan)(e[-+]?\d+)?\s*$",
    "uuid": r"(?i)^\{?[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}\}?$",
    "date": r"^\s*\d{4}-\d\d?-\d\d?",
    "timestamp": r"^\s*\d{4}-\d\d?-\d\d?",
    "timestamptz": r"^\s*\d{4}-\d\d?-\d\d?",
    "boolean": r"(?i)^\s*(t|true|y|yes|on|1|f|false|n|no|off|0)\s*$",
}


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _bad_numbers(column: Column, values: pa.Array) -> Iterator[Bad]:
    limit, decimal = limit_of(column), pa.types.is_decimal(values.type)
    if limit is not None:
        low, high = limit
        # A comparison in doubles is exact enough: what is at the very edge of 38 digits, the target tells.
        numbers = values.cast(pa.float64()) if not pa.types.is_integer(values.type) else values
        if pa.types.is_integer(values.type):
            ends = (max(int(low), -(2**63)), min(int(high), 2**63 - 1))
        else:
            ends = (float(low), float(high))
        bad = pc.or_(pc.less(numbers, ends[0]), pc.greater(numbers, ends[1]))
        text = f"The column takes {low:f} to {high:f}."
        yield "out_of_range", bad, text, "Narrow the field's min and max."
    whole = column.type == "integer"
    scale = 0 if whole else column.scale
    if scale is not None and decimal and column.type in ("integer", "decimal") and values.type.scale > scale:
        lost = pc.not_equal(pc.round(values, scale), values)
        text = (
            "The column takes whole numbers."
            if whole
            else f"The column keeps {scale} digits after the point."
        )
        yield ("wrong_type" if whole else "precision"), lost, text, "Set the field's decimals."
    if whole and pa.types.is_floating(values.type):
        lost = pc.not_equal(pc.floor(values), values)
        yield (
            "wrong_type",
            lost,
            "The column takes whole numbers.",
            "Round the field: a formula such as round(x).",
        )


# The years that a type has, where they are fewer than four digits can say: MySQL 8.0 Reference Manual, 11.2.2; SQL
# Server, "datetime" and "smalldatetime".
_YEARS: Final[Mapping[tuple[str, str], tuple[int, int]]] = {
    ("mysql", "datetime"): (1000, 9999),
    ("mysql", "timestamp"): (1970, 2037),
    ("mssql", "datetime"): (1753, 9999),
    ("mssql", "smalldatetime"): (1900, 2078),
}


def _bad_dates(column: Column, values: pa.Array, kind: str) -> Iterator[Bad]:
    years = _YEARS.get((kind, column.declared.partition("(")[0].casefold()))
    if years is not None:
        found = pc.year(values)
        bad = pc.or_(pc.less(found, years[0]), pc.greater(found, years[1]))
        text = f"The column takes the years {years[0]} to {years[1]}."
        yield "out_of_range", bad, text, "Narrow the field's dates."
