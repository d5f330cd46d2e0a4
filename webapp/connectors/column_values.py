"""Convert between Arrow columns and values of databases: for writing to SQL columns, and from server responses.

For kinds whose drivers take values one by one, single values are converted to the Python type of a column.
"""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.connectors.base import RowError
from webapp.connectors.schema import Column, ColumnType
from webapp.engine.formats.nested import json_texts

_NUMERIC: Final = ("integer", "decimal", "float")
_HEX: Final = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), np.uint16)
_UNIT: Final = "us"
_NULL: Final = pa.scalar(None, pa.string())
_TRUE: Final = pa.array(["t", "true", "1"])


def to_plain(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Convert to one of the types that the engine's writers support.

    These are int64, uint64, decimal128, float64, bool, date32, time64, timestamp in microseconds, string,
    binary, list, struct and null. Dictionaries of strings are kept.
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    kind = array.type
    if pa.types.is_dictionary(kind):
        is_supported = pa.types.is_string(kind.value_type) and kind.index_type.bit_width <= 32
        return array if is_supported else to_plain(array.dictionary_decode())
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


def convert_to_column(array: pa.Array, column: Column) -> pa.Array:
    """Convert to a supported type, and to the type of the column where that loses nothing.

    Text becomes bytes, 3.00 an integer, true 1, and nested values JSON. Values that do not fit are left
    unchanged, so that the target rejects them.
    """
    array = to_plain(array)
    kind = array.type
    if column.type in _NUMERIC and pa.types.is_boolean(kind):
        return array.cast(pa.int64())
    if column.type == "integer" and (pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return pc.replace_substring_regex(array.cast(pa.string()), r"\.0*$", "")
    if column.type == "binary" and not pa.types.is_binary(kind):
        if pa.types.is_dictionary(kind):
            return array.dictionary_decode().cast(pa.binary())
        return (array if pa.types.is_string(kind) else array.cast(pa.string())).cast(pa.binary())
    if column.type == "json" and (
        pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_timestamp(kind)
    ):
        return json_texts(array)
    if pa.types.is_nested(kind):
        return pc.if_else(array.is_null(), _NULL, json_texts(array))
    if pa.types.is_binary(kind) and column.type != "binary":
        return to_hex(array)
    return array


def to_hex(array: pa.Array) -> pa.Array:
    """Return binary values as hexadecimal digits, `string[n]`."""
    _, offsets, data = array.buffers()
    span = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    octets = np.frombuffer(data or b"", np.uint8)[span[0] : span[-1]]
    digits = pa.py_buffer(_HEX.take(octets))
    bounds = pa.py_buffer((span - span[0]) * np.int32(2))
    texts = pa.Array.from_buffers(pa.string(), len(array), [None, bounds, digits])
    return pc.if_else(array.is_valid(), texts, _NULL) if array.null_count else texts


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


def from_texts(texts: list[str | None], kind: ColumnType, scale: int | None = None) -> pa.Array:
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
            if scale is None:
                scale = max((len(text.partition(".")[2]) for text in texts if text), default=0)
            return array.cast(pa.decimal128(38, scale))
        if kind == "time":  # Arrow parses a time of day only after a date
            return (
                pc.binary_join_element_wise("1970-01-01", array, " ")
                .cast(pa.timestamp(_UNIT))
                .cast(_ARROW[kind])
            )
        return array.cast(_ARROW[kind]) if kind in _ARROW else array
    except (pa.ArrowInvalid, ValueError):
        return array


def from_objects(values: list[Any]) -> pa.Array:
    """Convert a column of a driver's objects to Arrow; mixed or unknown objects become text."""
    try:
        return to_plain(pa.array(values))
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return pa.array([_as_text(value) for value in values], pa.string())


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


# --- Single values ------------------------------------------------------------------------------------------

TRUE: Final = ("true", "t", "yes", "y", "1")
FALSE: Final = ("false", "f", "no", "n", "0")
Converter = Callable[[Any, Column], Any]


class ConversionError(ValueError):
    """A value that does not fit its column. `reason` is one of `base.REASONS`."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)


def convert_column(array: pa.Array, column: Column, convert: Converter) -> tuple[list[Any], list[RowError]]:
    """Convert a column's values with `convert`, keeping nulls, and return them with the errors of values that
    do not fit."""
    values = to_plain(array)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_binary(values.type) and column.type not in ("binary", "uuid", "other"):
        values = to_hex(values)
    converted: list[Any] = []
    failures: list[RowError] = []
    for row, value in enumerate(values.to_pylist()):
        try:
            converted.append(None if value is None else convert(value, column))
        except ConversionError as error:
            converted.append(None)
            failures.append(RowError(row, error.reason, f"{column.name}: {error}", column=column.name))
    return converted, failures


def shorten_value(value: Any) -> str:
    """Return a value for a message, shortened."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def to_integer(value: Any, column: Column) -> int:
    """Convert to an integer within the column's bits. 3.00 is accepted."""
    try:
        number = Decimal(value.strip()) if isinstance(value, str) else value
        result = int(number)
    except (InvalidOperation, ValueError, OverflowError, TypeError):
        raise ConversionError("wrong_type", f"{shorten_value(value)} is not a whole number") from None
    if result != number:
        raise ConversionError("wrong_type", f"{shorten_value(value)} has a fraction")
    if column.bits is not None:
        limit = 1 << (column.bits if column.unsigned else column.bits - 1)
        if not (0 if column.unsigned else -limit) <= result < limit:
            raise ConversionError("out_of_range", f"{shorten_value(value)} has more than {column.bits} bits")
    elif column.precision is not None and abs(result) >= 10**column.precision:
        raise ConversionError(
            "out_of_range", f"{shorten_value(value)} has more than {column.precision} digits"
        )
    return result


def to_decimal(value: Any, column: Column) -> Decimal:
    """Convert to a decimal whose integer digits fit. The target rounds the fraction."""
    try:
        result = Decimal(str(value).strip() if isinstance(value, str | float) else value)
    except (InvalidOperation, ValueError, TypeError):
        result = Decimal("NaN")
    if not result.is_finite():
        raise ConversionError("wrong_type", f"{shorten_value(value)} is not a number")
    if column.precision is not None and abs(result) >= Decimal(10) ** (
        column.precision - (column.scale or 0)
    ):
        raise ConversionError(
            "out_of_range",
            f"{shorten_value(value)} has too many digits for ({column.precision},{column.scale or 0})",
        )
    return result


def to_float(value: Any, column: Column) -> float:
    """Convert to a double."""
    try:
        return float(value)
    except (ValueError, TypeError, OverflowError):
        raise ConversionError("wrong_type", f"{shorten_value(value)} is not a number") from None


def to_boolean(value: Any, column: Column) -> bool:
    """Convert to a boolean."""
    lowered = str(value).strip().lower()
    if lowered not in (*TRUE, *FALSE):
        raise ConversionError("wrong_type", f"{shorten_value(value)} is neither true nor false")
    return lowered in TRUE


def to_datetime(value: Any, column: Column) -> dt.datetime:
    """Convert to a date and time, with a time zone only if the value has one. A date becomes midnight."""
    try:
        result = dt.datetime.fromisoformat(value.strip()) if isinstance(value, str) else value
    except ValueError:
        result = None
    if isinstance(result, dt.date) and not isinstance(result, dt.datetime):
        result = dt.datetime.combine(result, dt.time())
    if not isinstance(result, dt.datetime):
        raise ConversionError("wrong_type", f"{shorten_value(value)} is not a date and time")
    return result


def to_utc_datetime(value: Any, column: Column) -> dt.datetime:
    """Convert to a date and time in UTC. Without a time zone, UTC is assumed."""
    result = to_datetime(value, column)
    return result.replace(tzinfo=dt.UTC) if result.tzinfo is None else result.astimezone(dt.UTC)


def to_naive_datetime(value: Any, column: Column) -> dt.datetime:
    """Convert to a date and time without a time zone: in UTC if the value has one."""
    result = to_datetime(value, column)
    return result if result.tzinfo is None else result.astimezone(dt.UTC).replace(tzinfo=None)


def to_date(value: Any, column: Column) -> dt.date:
    """Convert to a date."""
    return to_naive_datetime(value, column).date()


def to_time(value: Any, column: Column) -> dt.time:
    """Convert to a time of day."""
    try:
        result = dt.time.fromisoformat(value.strip()) if isinstance(value, str) else value
    except ValueError:
        result = None
    if isinstance(result, dt.datetime):
        result = result.time()
    if not isinstance(result, dt.time):
        raise ConversionError("wrong_type", f"{shorten_value(value)} is not a time of day")
    return result.replace(tzinfo=None)


def to_text(value: Any, column: Column) -> str:
    """Convert to text; nested values become JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, Mapping | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def to_bytes(value: Any, column: Column) -> bytes:
    """Convert to bytes; text is encoded as UTF-8."""
    result = value if isinstance(value, bytes) else to_text(value, column).encode()
    if column.max_length is not None and len(result) > column.max_length:
        raise ConversionError(
            "too_long", f"the value has {len(result):,} bytes, but at most {column.max_length:,} fit"
        )
    return result


def to_uuid(value: Any, column: Column) -> uuid.UUID:
    """Convert to a UUID."""
    try:
        return uuid.UUID(bytes=value) if isinstance(value, bytes) else uuid.UUID(to_text(value, column))
    except ValueError:
        raise ConversionError("wrong_type", f"{shorten_value(value)} is not a UUID") from None


def to_json_text(value: Any, column: Column) -> str:
    """Return JSON text, after checking that it is valid."""
    result = to_text(value, column)
    try:
        json.loads(result)
    except (ValueError, RecursionError):
        raise ConversionError("wrong_type", f"{shorten_value(value)} is not JSON") from None
    return result


CONVERTERS: Final[Mapping[str, Converter]] = {
    "integer": to_integer, "decimal": to_decimal, "float": to_float, "boolean": to_boolean, "date": to_date,
    "time": to_time,
    "timestamp": to_naive_datetime, "timestamptz": to_utc_datetime, "text": to_text, "enum": to_text,
    "interval": to_text, "uuid": to_uuid,
    "binary": to_bytes, "json": to_text, "array": to_text, "objectid": to_text, "other": to_text,
}  # fmt: skip
"""Converters for SQL columns, by `Column.type`."""
