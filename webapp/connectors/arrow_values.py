"""Convert between Arrow columns and values of databases: for writing to SQL columns, and from server responses."""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.connectors.schema import Column, ColumnType
from webapp.engine.formats.nested import json_texts

_NUMERIC: Final = ("integer", "decimal", "float")
_HEX: Final = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), np.uint16)
_UNIT: Final = "us"
_NOTHING: Final = pa.scalar(None, pa.string())
_TRUE: Final = pa.array(["t", "true", "1"])


def plain(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Convert to one of the types that the engine's writers support.

    These are int64, uint64, decimal128, float64, bool, date32, time64, timestamp in microseconds, string,
    binary, list, struct and null. Dictionaries of strings are kept.
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    kind = array.type
    if pa.types.is_dictionary(kind):
        keeps = pa.types.is_string(kind.value_type) and kind.index_type.bit_width <= 32
        return array if keeps else plain(array.dictionary_decode())
    if pa.types.is_string(kind) or pa.types.is_null(kind):
        return array
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return array.cast(pa.string())
    if pa.types.is_integer(kind):
        return array if pa.types.is_uint64(kind) else array.cast(pa.int64())
    if pa.types.is_floating(kind):
        return array.cast(pa.float64())
    if pa.types.is_decimal(kind):
        return array if pa.types.is_decimal128(kind) and kind.scale >= 0 else array.cast(pa.string())
    if pa.types.is_date64(kind):
        return array.cast(pa.date32())
    if pa.types.is_time(kind):
        return array.cast(pa.time64(_UNIT))
    if pa.types.is_timestamp(kind):
        # Digits beyond microseconds are dropped. Arrow stores times with a zone in UTC anyway.
        return array.cast(pa.timestamp(_UNIT, "UTC" if kind.tz else None), safe=kind.unit != "ns")
    if pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind) or pa.types.is_binary_view(kind):
        return array.cast(pa.binary())
    return array


def fitted(array: pa.Array, column: Column) -> pa.Array:
    """Convert to a supported type, and to the type of the column where that loses nothing.

    Text becomes bytes, 3.00 an integer, true 1, and nested values JSON. Values that do not fit are left
    unchanged, so that the target rejects them.
    """
    array = plain(array)
    kind = array.type
    if column.type in _NUMERIC and pa.types.is_boolean(kind):
        return array.cast(pa.int64())
    if column.type == "integer" and (pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return pc.replace_substring_regex(array.cast(pa.string()), r"\.0*$", "")
    if column.type == "binary" and not pa.types.is_binary(kind):
        return _texts(array).cast(pa.binary())
    if column.type == "json" and (
        pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_timestamp(kind)
    ):
        return json_texts(array)
    if pa.types.is_nested(kind):
        return pc.if_else(array.is_null(), _NOTHING, json_texts(array))
    if pa.types.is_binary(kind) and column.type != "binary":
        return hexed(array)
    return array


def _texts(array: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(array.type):
        return array.dictionary_decode()
    return array if pa.types.is_string(array.type) else array.cast(pa.string())


def hexed(array: pa.Array) -> pa.Array:
    """Return binary values as hexadecimal digits, `string[n]`."""
    _, offsets, data = array.buffers()
    span = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    octets = np.frombuffer(data or b"", np.uint8)[span[0] : span[-1]]
    digits = pa.py_buffer(_HEX.take(octets))
    bounds = pa.py_buffer((span - span[0]) * np.int32(2))
    texts = pa.Array.from_buffers(pa.string(), len(array), [None, bounds, digits])
    return pc.if_else(array.is_valid(), texts, _NOTHING) if array.null_count else texts


# --- Values that servers return
# --------------------------------------------------------------------------------

_ARROW: Final[dict[str, pa.DataType]] = {
    "integer": pa.int64(),
    "float": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64(_UNIT),
    "timestamp": pa.timestamp(_UNIT),
    "timestamptz": pa.timestamp(_UNIT, "UTC"),
}


def read(texts: list[str | None], kind: ColumnType, scale: int | None = None) -> pa.Array:
    """Convert a column of a server's texts to Arrow.

    The result is text if Arrow's type cannot represent one of them (an infinite date, a year 20000, a number
    of forty digits).
    """
    array = pa.array(texts, pa.string())
    try:
        if kind == "boolean":
            return pc.if_else(array.is_valid(), pc.is_in(array, _TRUE), pa.scalar(None, pa.bool_()))
        if kind == "binary":
            return pa.array(
                [None if text is None else bytes.fromhex(text[2:]) for text in texts], pa.binary()
            )
        if kind == "decimal":
            return array.cast(pa.decimal128(38, _places(texts) if scale is None else scale))
        if kind == "time":  # Arrow parses a time of day only after a date
            return (
                pc.binary_join_element_wise("1970-01-01", array, " ")
                .cast(pa.timestamp(_UNIT))
                .cast(_ARROW[kind])
            )
        return array.cast(_ARROW[kind]) if kind in _ARROW else array
    except (pa.ArrowInvalid, ValueError):
        return array


def _places(texts: list[str | None]) -> int:
    return max((len(text.partition(".")[2]) for text in texts if text), default=0)


def of_objects(values: list[Any]) -> pa.Array:
    """Convert a column of a driver's objects to Arrow; mixed or unknown objects become text."""
    try:
        return plain(pa.array(values))
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return pa.array([_text(value) for value in values], pa.string())


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)
