"""Convert single values to the Python type of a column, for kinds whose drivers take values one by one."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import pyarrow as pa

from webapp.connectors.arrow_values import hexed, plain
from webapp.connectors.base import RowError
from webapp.connectors.schema import Column

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
    values = plain(array)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_binary(values.type) and column.type not in ("binary", "uuid", "other"):
        values = hexed(values)
    found: list[Any] = []
    failures: list[RowError] = []
    for row, value in enumerate(values.to_pylist()):
        try:
            found.append(None if value is None else convert(value, column))
        except ConversionError as error:
            found.append(None)
            failures.append(RowError(row, error.reason, f"{column.name}: {error}", column=column.name))
    return found, failures


def shown(value: Any) -> str:
    """Return a value for a message, shortened."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def integer(value: Any, column: Column) -> int:
    """Convert to an integer within the column's bits. 3.00 is accepted."""
    try:
        number = Decimal(value.strip()) if isinstance(value, str) else value
        whole = int(number)
    except (InvalidOperation, ValueError, OverflowError, TypeError):
        raise ConversionError("wrong_type", f"{shown(value)} is not a whole number") from None
    if whole != number:
        raise ConversionError("wrong_type", f"{shown(value)} has a fraction")
    if column.bits is not None:
        most = 1 << (column.bits if column.unsigned else column.bits - 1)
        if not (0 if column.unsigned else -most) <= whole < most:
            raise ConversionError("out_of_range", f"{shown(value)} has more than {column.bits} bits")
    elif column.precision is not None and abs(whole) >= 10**column.precision:
        raise ConversionError("out_of_range", f"{shown(value)} has more than {column.precision} digits")
    return whole


def number(value: Any, column: Column) -> Decimal:
    """Convert to a decimal whose integer digits fit. The target rounds the fraction."""
    try:
        found = Decimal(str(value).strip() if isinstance(value, str | float) else value)
    except (InvalidOperation, ValueError, TypeError):
        found = Decimal("NaN")
    if not found.is_finite():
        raise ConversionError("wrong_type", f"{shown(value)} is not a number")
    if column.precision is not None and abs(found) >= Decimal(10) ** (column.precision - (column.scale or 0)):
        raise ConversionError(
            "out_of_range", f"{shown(value)} has too many digits for ({column.precision},{column.scale or 0})"
        )
    return found


def real(value: Any, column: Column) -> float:
    """Convert to a double."""
    try:
        return float(value)
    except (ValueError, TypeError, OverflowError):
        raise ConversionError("wrong_type", f"{shown(value)} is not a number") from None


def boolean(value: Any, column: Column) -> bool:
    """Convert to a boolean."""
    word = str(value).strip().lower()
    if word not in (*TRUE, *FALSE):
        raise ConversionError("wrong_type", f"{shown(value)} is neither true nor false")
    return word in TRUE


def moment(value: Any, column: Column) -> dt.datetime:
    """Convert to a date and time, with a time zone only if the value has one. A date becomes midnight."""
    try:
        found = dt.datetime.fromisoformat(value.strip()) if isinstance(value, str) else value
    except ValueError:
        found = None
    if isinstance(found, dt.date) and not isinstance(found, dt.datetime):
        found = dt.datetime.combine(found, dt.time())
    if not isinstance(found, dt.datetime):
        raise ConversionError("wrong_type", f"{shown(value)} is not a date and time")
    return found


def instant(value: Any, column: Column) -> dt.datetime:
    """Convert to a date and time in UTC. Without a time zone, UTC is assumed."""
    found = moment(value, column)
    return found.replace(tzinfo=dt.UTC) if found.tzinfo is None else found.astimezone(dt.UTC)


def local(value: Any, column: Column) -> dt.datetime:
    """Convert to a date and time without a time zone: in UTC if the value has one."""
    found = moment(value, column)
    return found if found.tzinfo is None else found.astimezone(dt.UTC).replace(tzinfo=None)


def day(value: Any, column: Column) -> dt.date:
    """Convert to a date."""
    return local(value, column).date()


def time(value: Any, column: Column) -> dt.time:
    """Convert to a time of day."""
    try:
        found = dt.time.fromisoformat(value.strip()) if isinstance(value, str) else value
    except ValueError:
        found = None
    if isinstance(found, dt.datetime):
        found = found.time()
    if not isinstance(found, dt.time):
        raise ConversionError("wrong_type", f"{shown(value)} is not a time of day")
    return found.replace(tzinfo=None)


def text(value: Any, column: Column) -> str:
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


def octets(value: Any, column: Column) -> bytes:
    """Convert to bytes; text is encoded as UTF-8."""
    found = value if isinstance(value, bytes) else text(value, column).encode()
    if column.max_length is not None and len(found) > column.max_length:
        raise ConversionError(
            "too_long", f"the value has {len(found):,} bytes, but at most {column.max_length:,} fit"
        )
    return found


def identifier(value: Any, column: Column) -> uuid.UUID:
    """A UUID."""
    try:
        return uuid.UUID(bytes=value) if isinstance(value, bytes) else uuid.UUID(text(value, column))
    except ValueError:
        raise ConversionError("wrong_type", f"{shown(value)} is not a UUID") from None


def document(value: Any, column: Column) -> str:
    """Return JSON text, after checking that it is valid."""
    found = text(value, column)
    try:
        json.loads(found)
    except (ValueError, RecursionError):
        raise ConversionError("wrong_type", f"{shown(value)} is not JSON") from None
    return found


CONVERTERS: Final[Mapping[str, Converter]] = {
    "integer": integer, "decimal": number, "float": real, "boolean": boolean, "date": day, "time": time,
    "timestamp": local, "timestamptz": instant, "text": text, "enum": text, "interval": text, "uuid": identifier,
    "binary": octets, "json": text, "array": text, "objectid": text, "other": text,
}  # fmt: skip
"""Converters for SQL columns, by `Column.type`."""
