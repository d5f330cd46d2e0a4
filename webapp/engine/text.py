"""Values as text: the canonical form used when a value is inserted into another text.

Integers in decimal, decimals with their declared digits, dates and times in ISO 8601, booleans as ``true`` and
``false``, objects and arrays as JSON. Null stays null.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine.formats.nested import json_texts

_FRACTION_TABLE_PLACES = 4


def to_text(column: pa.Array) -> pa.Array:
    """``column`` as a string array (a dictionary array keeps its shape, over a pool of texts)."""
    kind = column.type
    if pa.types.is_string(kind):
        return column
    if pa.types.is_dictionary(kind):
        if pa.types.is_string(kind.value_type):
            return column
        return pa.DictionaryArray.from_arrays(column.indices, to_text(column.dictionary), safe=False)
    if pa.types.is_decimal(kind):
        return decimal_text(column)
    if pa.types.is_time64(kind):
        return _without_zero_fraction(column.cast(pa.string()))
    if pa.types.is_timestamp(kind):
        moments = column.cast(pa.timestamp("us")).cast(pa.string())
        moments = _without_zero_fraction(pc.replace_substring(moments, " ", "T", max_replacements=1))
        return pc.binary_join_element_wise(moments, "Z", "") if kind.tz else moments
    if pa.types.is_struct(kind) or pa.types.is_list(kind):
        texts = json_texts(column)
        return (
            pc.if_else(column.is_valid(), texts, pa.scalar(None, pa.string())) if column.null_count else texts
        )
    return column.cast(pa.string())


def decode_dictionary(column: pa.Array) -> pa.Array:
    """``column`` without dictionary encoding."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def json_text(value: Any) -> str:
    """One value as compact JSON."""
    return orjson.dumps(value, default=str).decode()


def decimal_text(column: pa.Array) -> pa.Array:
    """Decimals with all their places; units are read from the low word, which 18 digits always fit."""
    places = column.type.scale
    units = decimal_units(column)
    if places == 0:
        plain = pa.array(units).cast(pa.string())
    else:
        integer_part, rest = np.divmod(np.abs(units), 10**places)
        sign = pa.array(["", "-"]).take(pa.array((units < 0).astype(np.int8)))
        if places <= _FRACTION_TABLE_PLACES:
            table = pa.array([f"{i:0{places}d}" for i in range(10**places)])
            padded = table.take(pa.array(rest))
        else:
            padded = pc.utf8_slice_codeunits(pa.array(rest + 10**places).cast(pa.string()), 1)
        point = pa.scalar(".")
        plain = pc.binary_join_element_wise(sign, pa.array(integer_part).cast(pa.string()), point, padded, "")
    return pc.if_else(column.is_valid(), plain, pa.scalar(None, pa.string())) if column.null_count else plain


def decimal_units(column: pa.Array) -> np.ndarray:
    """``int64[n]``: a decimal128 column in units of its last digit; the engine generates none beyond int64."""
    words = np.frombuffer(column.buffers()[1], np.int64)
    return words[2 * column.offset : 2 * (column.offset + len(column)) : 2]


def decimal_array(units: np.ndarray, places: int) -> pa.Array:
    """A decimal128(38, places) column from whole units of the last place (``int64[n]``)."""
    words = np.empty((units.size, 2), np.int64)
    words[:, 0] = units
    words[:, 1] = units >> 63
    return pa.Array.from_buffers(pa.decimal128(38, places), units.size, [None, pa.py_buffer(words)])


def _without_zero_fraction(texts: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(texts, r"\.0+$", "")
