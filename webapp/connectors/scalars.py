"""One value for a column of one type, as Python has it; for kinds whose drivers take values one by one."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import pyarrow as pa

from webapp.connectors.base import Failure
from webapp.connectors.shape import Column
from webapp.connectors.sql_values import hexed, plain

TRUE: Final = ("true", "t", "yes", "y", "1")
FALSE: Final = ("false", "f", "no", "n", "0")
Maker = Callable[[Any, Column], Any]


class Misfit(ValueError):
    """A value that its column cannot hold. `reason` is one of `base.REASONS`."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)


def made(array: pa.Array, column: Column, make: Maker) -> tuple[list[Any], list[Failure]]:
    """A column's values through `make`, None where there is none, and the rows whose value does not fit."""
    values = plain(array)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_binary(values.type) and column.type not in ("binary", "uuid", "other"):
        values = hexed(values)
    found: list[Any] = []
    failures: list[Failure] = []
    for row, value in enumerate(values.to_pylist()):
        try:
            found.append(None if value is None else make(value, column))
        except Misfit as error:
            found.append(None)
            failures.append(Failure(row, error.reason, f"{column.name}: {error}", column=column.name))
    return found, failures


def shown(value: Any) -> str:
    """A value for a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def integer(value: Any, column: Column) -> int:
    """A whole number within the column's bits; 3.00 is one."""
    try:
        number = Decimal(value.strip()) if isinstance(value, str) else value
        whole = int(number)
    except (InvalidOperation, ValueError, OverflowError, TypeError):
        raise Misfit("wrong_type", f"{shown(value)} is not a whole number") from None
    if whole != number:
        raise Misfit("wrong_type", f"{shown(value)} has a fraction")
    if column.bits is not None:
        most = 1 << (column.bits if column.unsigned else column.bits - 1)
        if not (0 if column.unsigned else -most) <= whole < most:
            raise Misfit("out_of_range", f"{shown(value)} has more than {column.bits} bits")
    elif column.precision is not None and abs(whole) >= 10**column.precision:
        raise Misfit("out_of_range", f"{shown(value)} has more than {column.precision} digits")
    return whole


def number(value: Any, column: Column) -> Decimal:
    """A decimal number that fits before the point; the target rounds behind it."""
    try:
        found = Decimal(str(value).strip() if isinstance(value, str | float) else value)
    except (InvalidOperation, ValueError, TypeError):
        found = Decimal("NaN")
    if not found.is_finite():
        raise Misfit("wrong_type", f"{shown(value)} is not a number")
    if column.precision is not None and abs(found) >= Decimal(10) ** (column.precision - (column.scale or 0)):
        raise Misfit(
            "out_of_range", f"{shown(value)} has too many digits for ({column.precision},{column.scale or 0})"
        )
    return found


def real(value: Any, column: Column) -> float:
    """A double."""
    try:
        return float(value)
    except (ValueError, TypeError, OverflowError):
        raise Misfit("wrong_type", f"{shown(value)} is not a number") from None


def boolean(value: Any, column: Column) -> bool:
    """True or false."""
    word = str(value).strip().lower()
    if word not in (*TRUE, *FALSE):
        raise Misfit("wrong_type", f"{shown(value)} is neither true nor false")
    return word in TRUE


def moment(value: Any, column: Column) -> dt.datetime:
    """A date and time, with a zone only where the value has one; days begin at midnight."""
    try:
        found = dt.datetime.fromisoformat(value.strip()) if isinstance(value, str) else value
    except ValueError:
        found = None
    if isinstance(found, dt.date) and not isinstance(found, dt.datetime):
        found = dt.datetime.combine(found, dt.time())
    if not isinstance(found, dt.datetime):
        raise Misfit("wrong_type", f"{shown(value)} is not a date and time")
    return found


def instant(value: Any, column: Column) -> dt.datetime:
    """A moment in UTC; what has no zone is taken to be."""
    found = moment(value, column)
    return found.replace(tzinfo=dt.UTC) if found.tzinfo is None else found.astimezone(dt.UTC)


def local(value: Any, column: Column) -> dt.datetime:
    """A date and time without a zone: that of UTC where the value has one."""
    found = moment(value, column)
    return found if found.tzinfo is None else found.astimezone(dt.UTC).replace(tzinfo=None)


def day(value: Any, column: Column) -> dt.date:
    """A date."""
    return local(value, column).date()


def time(value: Any, column: Column) -> dt.time:
    """A time of day."""
    try:
        found = dt.time.fromisoformat(value.strip()) if isinstance(value, str) else value
    except ValueError:
        found = None
    if isinstance(found, dt.datetime):
        found = found.time()
    if not isinstance(found, dt.time):
        raise Misfit("wrong_type", f"{shown(value)} is not a time of day")
    return found.replace(tzinfo=None)


def text(value: Any, column: Column) -> str:
    """As text; what is nested as JSON."""
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
    """Bytes; those of text in UTF-8."""
    found = value if isinstance(value, bytes) else text(value, column).encode()
    if column.max_length is not None and len(found) > column.max_length:
        raise Misfit("too_long", f"there are {len(found):,} bytes, at most {column.max_length:,} are taken")
    return found


def identifier(value: Any, column: Column) -> uuid.UUID:
    """A UUID."""
    try:
        return uuid.UUID(bytes=value) if isinstance(value, bytes) else uuid.UUID(text(value, column))
    except ValueError:
        raise Misfit("wrong_type", f"{shown(value)} is not a UUID") from None


def document(value: Any, column: Column) -> str:
    """JSON text, which was read once to see that it is."""
    found = text(value, column)
    try:
        json.loads(found)
    except (ValueError, RecursionError):
        raise Misfit("wrong_type", f"{shown(value)} is not JSON") from None
    return found


MAKERS: Final[Mapping[str, Maker]] = {
    "integer": integer, "decimal": number, "float": real, "boolean": boolean, "date": day, "time": time,
    "timestamp": local, "timestamptz": instant, "text": text, "enum": text, "interval": text, "uuid": identifier,
    "binary": octets, "json": text, "array": text, "objectid": text, "other": text,
}  # fmt: skip
"""For SQL columns, by `Column.type`."""
