"""Columns for the tests: every type, with the values that break writers."""

from __future__ import annotations

# ruff: noqa: DTZ001 - timestamps without a time zone are a separate type
import datetime as dt
import io
import zipfile
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa

from webapp.engine.formats import FORMATS, FormatError, write

__all__ = ["FORMATS", "FormatError", "columns", "file", "pooled", "schema", "sheet", "write"]

DECIMAL = pa.decimal128(38, 2)
FINE_DECIMAL = pa.decimal128(38, 9)
STAMP, INSTANT, CLOCK = pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.time64("us")

TEXTS = [
    "plain", "", None, " ", " edge ", "\t", "comma, semicolon; tab\t pipe |", 'quote " and ""', "apostrophe ' and ''",
    "line\nline", "line\r\nline", "\r", "\n", "=1+1", "+1", "-1", "@SUM(A1)", "back\\slash", "ends in \\",
    "\\\nline", "\\\r\nline", "\\.", "NULL", "null", "\\N", "<b>&amp;</b>", "]]>", "_x0041_", "_x0041_x0042_",
    "é ñ ß ﬀ", "😀 emoji 👩‍👧", "مرحبا", "\u2028", "\ufeff", "\ufffe", "\x01\x07\x1b\x1f", "\x7f", "a" * 13, "a" * 500,
    "$(x) ${x} &x :x ?", "a;\n\nb--c/*", "GO\nGO", "0", "00123", "1e5", "true", "2024-01-31",
]  # fmt: skip
NUMBERS = [0, 1, -1, 9, 10, 9_999, 10_000, -9_999, -10_000, 99_999_999, 100_000_000, -99_999_999, -100_000_000,
           2**31, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), None]  # fmt: skip
SMALL_NUMBERS = [0, 7, None, -7, 12_345, -12_345]
UNSIGNED = [0, 1, 2**53, 2**53 + 1, 2**63, 2**64 - 1, None]
FLOATS = [0.0, -0.0, 1.5, 0.1, -2.25, 1e20, 1e-7, 123456789.123, 5e-324, 1.7976931348623157e308, None]
DECIMALS = [
    Decimal(text)
    for text in (
        "0.00 0.01 -0.01 -0.99 1.00 -1.00 99.50 9999.99 -9999.99 10000.00 99999999.99 100000000.00 -100000000.01 "
        "92233720368547758.07 -92233720368547758.08 92233720368547758.08 123456789012345678901234567890123456.78"
    ).split()
]
BOOLEANS = [True, False, None, True]
DATES = [dt.date(1970, 1, 1), dt.date(1, 1, 1), dt.date(1899, 12, 31), dt.date(1900, 1, 1), dt.date(1900, 2, 28),
         dt.date(1900, 3, 1), dt.date(2000, 2, 29), dt.date(2099, 12, 31), dt.date(2100, 1, 1), dt.date(9999, 12, 31),
         None]  # fmt: skip
STAMPS = [dt.datetime(2024, 1, 31, 1, 2, 3), dt.datetime(1, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
          dt.datetime(2024, 1, 1, 12, 0, 0, 500_000), dt.datetime(2024, 1, 1, 0, 0, 0, 1),
          dt.datetime(9999, 12, 31, 23, 59, 59, 999_999), dt.datetime(1899, 12, 30, 6), None]  # fmt: skip
CLOCKS = [dt.time(0), dt.time(23, 59, 59, 999_999), dt.time(1, 2, 3), dt.time(12, 0, 0, 1_000), None]

FLAT: dict[str, tuple[pa.DataType, list[Any]]] = {
    "whole": (pa.int64(), NUMBERS),
    "small": (pa.int64(), SMALL_NUMBERS),
    "unsigned": (pa.uint64(), UNSIGNED),
    "float": (pa.float64(), FLOATS),
    "price": (DECIMAL, [*DECIMALS, None]),
    "fine": (FINE_DECIMAL, [Decimal("0.000000001"), Decimal("-0.5"), Decimal(10_000), None]),
    "flag": (pa.bool_(), BOOLEANS),
    "text": (pa.string(), TEXTS),
    "day": (pa.date32(), DATES),
    "at": (STAMP, STAMPS),
    "instant": (INSTANT, [value and value.replace(tzinfo=dt.UTC) for value in STAMPS]),
    "clock": (CLOCK, CLOCKS),
    "nothing": (pa.null(), [None]),
}

LINE = pa.struct([("sku", pa.string()), ("n", pa.int64()), ("price", DECIMAL)])
PLACE = pa.struct([("city", pa.string()), ("geo", pa.struct([("lat", pa.float64()), ("day", pa.date32())]))])
NESTED: dict[str, tuple[pa.DataType, list[Any]]] = {
    "place": (PLACE, [
        {"city": 'P"a', "geo": {"lat": 1.5, "day": dt.date(2024, 1, 31)}}, None, {"city": None, "geo": None},
        {"city": "", "geo": {"lat": None, "day": None}},
    ]),
    "lines": (pa.list_(LINE), [
        [{"sku": 'a,"b', "n": 1, "price": Decimal("1.50")}, None], [], None,
        [{"sku": None, "n": None, "price": None}], [{"sku": "x", "n": -5, "price": Decimal("-0.05")}] * 3,
    ]),
    "tags": (pa.list_(pa.string()), [["a", None, "é😀\n"], [], None, [""]]),
    "grid": (pa.list_(pa.list_(pa.int64())), [[[1, 2], [], None], None, [[3]]]),
}  # fmt: skip


def columns(types: dict[str, tuple[pa.DataType, list[Any]]], rows: int) -> dict[str, pa.Array]:
    """``rows`` rows of each, its values over and over, each column from another of them on."""
    generated = {}
    for shift, (name, (kind, values)) in enumerate(types.items()):
        generated[name] = pa.array([values[(row + shift) % len(values)] for row in range(rows)], kind)
    return generated


def pooled(column: pa.Array) -> pa.Array:
    """``column`` as a dictionary without null values, indices ``int32``."""
    return (
        column
        if pa.types.is_nested(column.type) or pa.types.is_null(column.type)
        else column.dictionary_encode()
    )


def schema(made: dict[str, pa.Array], **metadata: dict[bytes, bytes]) -> pa.Schema:
    """Their schema; ``metadata`` by column."""
    return pa.schema(
        [pa.field(name, column.type, metadata=metadata.get(name)) for name, column in made.items()]
    )


def file(
    name: str,
    made: dict[str, pa.Array],
    cuts: list[int] | None = None,
    title: str = "Order lines",
    **given: Any,
):
    """The bytes of a file of these columns, handed over in blocks that end at ``cuts``."""
    metadata = given.pop("metadata", {})
    cls = FORMATS[name]
    fmt = cls(schema(made, **metadata), cls.Options(**given), title=title)
    rows = len(next(iter(made.values())))
    bounds = sorted({0, rows, *(cuts or [])})
    blocks = (
        [column.slice(start, end - start) for column in made.values()] for start, end in pairwise(bounds)
    )
    return b"".join(write(fmt, blocks))


def sheet(data: bytes, number: int = 1) -> bytes:
    """The mark-up of a sheet of an XLSX file."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.read(f"xl/worksheets/sheet{number}.xml")
