"""Convert Arrow columns to BSON values, and documents to Arrow columns."""

from __future__ import annotations

import datetime as dt
import json
import math
import uuid
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from bson import Binary, Decimal128, Int64, ObjectId
from bson.binary import UUID_SUBTYPE
from bson.decimal128 import create_decimal128_context
from bson.errors import InvalidId

from webapp.connectors import scalars
from webapp.connectors.arrow_values import plain
from webapp.connectors.base import RowError
from webapp.connectors.scalars import ConversionError, convert_column, shown
from webapp.connectors.schema import Column
from webapp.engine.formats.nested import is_json_text

_LEAST, _MOST = -(2**63), 2**63 - 1
_DIGITS: Final = create_decimal128_context()  # 34 digits (IEEE 754 decimal128)
_LONG: Final = Column("", "integer", "long", bits=64)
_INT: Final = Column("", "integer", "int", bits=32)
_NESTING: Final = ("other", "json", "array", "objectid")
"""Types of columns that may contain objects and arrays."""


def rendered(array: pa.Array, column: Column, json_text: bool = False) -> tuple[list[Any], list[RowError]]:
    """Convert a column's values to BSON, and return the errors of values that do not fit.

    `json_text`: the texts are JSON, and are parsed.
    """
    make = _json if json_text and column.type in _NESTING else _CONVERTERS.get(column.type, _natural)
    if column.type == "integer" and column.bits == 32:
        make = _integer
    natural = _of_type(array.type)
    if natural is not None and column.type in _NESTING:
        arrays = pa.types.is_list(array.type) or pa.types.is_large_list(array.type)
        make = natural if arrays or column.type != "array" else _array
    return convert_column(array, column, lambda value, _: make(value))


def _of_type(kind: pa.DataType) -> Callable[[Any], Any] | None:
    """Return the conversion of an Arrow type to BSON; 64-bit integers keep their type, also inside objects
    and arrays.

    Returns None for types whose Python values determine the BSON type.
    """
    if pa.types.is_dictionary(kind):
        return _of_type(kind.value_type)
    if pa.types.is_struct(kind):
        fields = [(one.name, _json if is_json_text(one) else _of_type(one.type) or _natural) for one in kind]
        return lambda value: {
            name: None if value[name] is None else make(value[name]) for name, make in fields
        }
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        item = kind.value_field
        each = _json if is_json_text(item) else _of_type(item.type) or _natural
        return lambda value: [None if one is None else each(one) for one in value]
    return _whole if pa.types.is_int64(kind) or pa.types.is_uint64(kind) else None


# --- Single values
# ---------------------------------------------------------------------------------------------


def _natural(value: Any) -> Any:
    """Convert a value by its own type."""
    if isinstance(value, str | bool | float | bytes):
        return value
    if isinstance(value, int):
        return value if _LEAST <= value <= _MOST else _decimal(value)
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, dt.date | dt.time):
        return value.isoformat() if isinstance(value, dt.time) else _moment(value)
    if isinstance(value, Mapping):
        return {_key(name): _natural(one) for name, one in value.items()}
    if isinstance(value, Sequence):
        return [_natural(one) for one in value]
    return value


def _key(name: str) -> str:
    if "\0" in name:
        raise ConversionError("wrong_type", "a field name cannot contain a NUL character")
    return name


def _whole(value: int) -> Int64 | Decimal128:
    return Int64(value) if _LEAST <= value <= _MOST else _decimal(value)


def _long(value: Any) -> Int64:
    return Int64(scalars.integer(value, _LONG))


def _integer(value: Any) -> int:
    return scalars.integer(value, _INT)


def _decimal(value: Any) -> Decimal128:
    try:
        number = Decimal(str(value).strip() if isinstance(value, str | float) else value)
        kept = _DIGITS.create_decimal(number)
    except (ArithmeticError, ValueError, TypeError):
        raise ConversionError("wrong_type", f"{shown(value)} is not a number") from None
    if number.is_finite() and kept != number:
        raise ConversionError("out_of_range", f"{shown(value)} has more than 34 digits")
    return Decimal128(kept)


def _float(value: Any) -> float:
    return scalars.real(value, _LONG)


def _boolean(value: Any) -> bool:
    return scalars.boolean(value, _LONG)


def _moment(value: Any) -> dt.datetime:
    """Convert to a BSON date, which is a UTC time in milliseconds. A date becomes midnight; without a zone,
    UTC is assumed."""
    found = scalars.instant(value, _LONG)
    return found.replace(microsecond=found.microsecond // 1000 * 1000)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.datetime):
        return value.isoformat()
    if isinstance(value, Mapping | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def _binary(value: Any) -> bytes:
    return value if isinstance(value, bytes) else _text(value).encode()


def _uuid(value: Any) -> Binary:
    try:
        return Binary.from_uuid(
            uuid.UUID(bytes=value) if isinstance(value, bytes) else uuid.UUID(_text(value))
        )
    except ValueError:
        raise ConversionError("wrong_type", f"{shown(value)} is not a UUID") from None


def _object_id(value: Any) -> Any:
    """Convert 24 hexadecimal digits to an ObjectId. Keys may also have any other type."""
    if isinstance(value, str):
        try:
            return ObjectId(value)
        except InvalidId:
            return value
    return _natural(value)


def _json(value: Any) -> Any:
    """Parse JSON text. Objects become documents."""
    if not isinstance(value, str):
        return _natural(value)
    try:
        return _natural(json.loads(value, parse_float=_fraction, parse_constant=_no_number))
    except ValueError as error:
        if isinstance(error, ConversionError):
            raise
        raise ConversionError("wrong_type", f"{shown(value)} is not JSON") from None
    except RecursionError:
        raise ConversionError("too_long", "the JSON is nested too deeply") from None


def _fraction(text: str) -> float:
    found = float(text)
    if math.isinf(found):
        raise ConversionError("out_of_range", f"{shown(text)} is not a double")
    return found


def _no_number(text: str) -> Any:
    raise ConversionError("wrong_type", f"{text} is not JSON")


def _array(value: Any) -> list[Any]:
    found = _json(value)
    if not isinstance(found, list):
        raise ConversionError("wrong_type", f"{shown(value)} is not an array")
    return found


_CONVERTERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "integer": _long, "decimal": _decimal, "float": _float, "boolean": _boolean, "date": _moment,
    "timestamp": _moment, "timestamptz": _moment, "text": _text, "enum": _text, "time": _text, "interval": _text,
    "binary": _binary, "uuid": _uuid, "objectid": _object_id, "json": _json, "array": _array, "other": _natural,
}  # fmt: skip


# --- Documents -------------------------------------------------------------------------------------------------


def put(document: dict[str, Any], name: str, value: Any) -> None:
    """Set a field. Dots in the name lead into nested documents."""
    *outer, last = name.split(".")
    for part in outer:
        document = document.setdefault(part, {})
    document[last] = value


def got(document: Mapping[str, Any], name: str) -> Any:
    """Return a field's value; None if it does not exist."""
    found: Any = document
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def batch_of(documents: Sequence[Mapping[str, Any]], names: Sequence[str]) -> pa.RecordBatch:
    """Return some fields of documents as a record batch."""
    arrays = [column_of([got(document, name) for document in documents]) for name in names]
    return pa.RecordBatch.from_arrays(arrays, list(names))


def column_of(values: list[Any]) -> pa.Array:
    """Convert the values of a field to Arrow; they become text if their types differ."""
    told = [spoken(value) for value in values]
    if any(isinstance(one, dict | list) for one in told):
        told = [None if one is None else json.dumps(one, ensure_ascii=False, default=_text) for one in told]
    kinds = {type(one) for one in told if one is not None}
    try:
        if kinds == {dt.datetime}:
            return pa.array(told, pa.timestamp("us", "UTC"))
        if len(kinds) <= 1 or kinds == {int, float}:
            return plain(pa.array(told))
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        pass  # Arrow's type cannot represent one of them
    return pa.array([None if one is None else _text(one) for one in told], pa.string())


def spoken(value: Any) -> Any:
    """Convert a BSON value to a Python value."""
    if isinstance(value, Binary) and value.subtype == UUID_SUBTYPE:
        return str(value.as_uuid())
    if isinstance(value, bool | str | float | bytes | dt.datetime) or value is None:
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Decimal128):
        found = value.to_decimal()
        return found if found.is_finite() else str(value)
    if isinstance(value, Mapping):
        return {name: spoken(one) for name, one in value.items()}
    if isinstance(value, list):
        return [spoken(one) for one in value]
    return str(value)


def same(value: Any) -> Any:
    """Return a value for comparisons as MongoDB does them: numbers by value, regardless of their type."""
    if isinstance(value, Decimal128):
        value = value.to_decimal()
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        if isinstance(value, Mapping):
            return tuple((name, same(one)) for name, one in value.items())
        if isinstance(value, list):
            return ("array", *map(same, value))
        return (type(value).__name__, value)
    return ("number", Decimal(value))
