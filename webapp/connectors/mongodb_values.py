"""Arrow columns as BSON values, and documents as Arrow columns."""

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
from webapp.connectors.base import Failure
from webapp.connectors.scalars import Misfit, made, shown
from webapp.connectors.shape import Column
from webapp.connectors.sql_values import plain
from webapp.engine.formats.nested import is_json_text

_LEAST, _MOST = -(2**63), 2**63 - 1
_DIGITS: Final = create_decimal128_context()  # 34 digits (IEEE 754 decimal128)
_LONG: Final = Column("", "integer", "long", bits=64)
_INT: Final = Column("", "integer", "int", bits=32)
_NESTING: Final = ("other", "json", "array", "objectid")
"""Types of columns that may hold objects and arrays."""


def rendered(array: pa.Array, column: Column, json_text: bool = False) -> tuple[list[Any], list[Failure]]:
    """A column's values as BSON takes them, and the rows whose value does not fit. `json_text`: texts are JSON, to
    become what they say."""
    make = _json if json_text and column.type in _NESTING else _MAKERS.get(column.type, _natural)
    if column.type == "integer" and column.bits == 32:
        make = _integer
    natural = _of_type(array.type)
    if natural is not None and column.type in _NESTING:
        arrays = pa.types.is_list(array.type) or pa.types.is_large_list(array.type)
        make = natural if arrays or column.type != "array" else _array
    return made(array, column, lambda value, _: make(value))


def _of_type(kind: pa.DataType) -> Callable[[Any], Any] | None:
    """How values of an Arrow type become BSON's, of objects and arrays what they hold: whole numbers of 64 bits stay
    such. None for types whose values tell that themselves."""
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


# --- One value -------------------------------------------------------------------------------------------------


def _natural(value: Any) -> Any:
    """As what it is."""
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
        raise Misfit("wrong_type", "a name in a document cannot hold a NUL")
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
        raise Misfit("wrong_type", f"{shown(value)} is not a number") from None
    if number.is_finite() and kept != number:
        raise Misfit("out_of_range", f"{shown(value)} has more than 34 digits")
    return Decimal128(kept)


def _float(value: Any) -> float:
    return scalars.real(value, _LONG)


def _boolean(value: Any) -> bool:
    return scalars.boolean(value, _LONG)


def _moment(value: Any) -> dt.datetime:
    """BSON's dates are moments in milliseconds; days begin at midnight, and what has no zone is in UTC."""
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
        raise Misfit("wrong_type", f"{shown(value)} is not a UUID") from None


def _object_id(value: Any) -> Any:
    """24 hexadecimal digits become an ObjectId; keys may be anything else too."""
    if isinstance(value, str):
        try:
            return ObjectId(value)
        except InvalidId:
            return value
    return _natural(value)


def _json(value: Any) -> Any:
    """What JSON text says, as values of their own: objects become documents."""
    if not isinstance(value, str):
        return _natural(value)
    try:
        return _natural(json.loads(value, parse_float=_fraction, parse_constant=_no_number))
    except ValueError as error:
        if isinstance(error, Misfit):
            raise
        raise Misfit("wrong_type", f"{shown(value)} is not JSON") from None
    except RecursionError:
        raise Misfit("too_long", "the JSON is nested too deeply") from None


def _fraction(text: str) -> float:
    found = float(text)
    if math.isinf(found):
        raise Misfit("out_of_range", f"{shown(text)} is no double")
    return found


def _no_number(text: str) -> Any:
    raise Misfit("wrong_type", f"{text} is not JSON")


def _array(value: Any) -> list[Any]:
    found = _json(value)
    if not isinstance(found, list):
        raise Misfit("wrong_type", f"{shown(value)} is not an array")
    return found


_MAKERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "integer": _long, "decimal": _decimal, "float": _float, "boolean": _boolean, "date": _moment,
    "timestamp": _moment, "timestamptz": _moment, "text": _text, "enum": _text, "time": _text, "interval": _text,
    "binary": _binary, "uuid": _uuid, "objectid": _object_id, "json": _json, "array": _array, "other": _natural,
}  # fmt: skip


# --- Documents -------------------------------------------------------------------------------------------------


def put(document: dict[str, Any], name: str, value: Any) -> None:
    """Set a field; dots in its name lead into documents within."""
    *outer, last = name.split(".")
    for part in outer:
        document = document.setdefault(part, {})
    document[last] = value


def got(document: Mapping[str, Any], name: str) -> Any:
    """A field's value; None where it is not there."""
    found: Any = document
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def batch_of(documents: Sequence[Mapping[str, Any]], names: Sequence[str]) -> pa.RecordBatch:
    """Documents as a table of some of their fields."""
    arrays = [column_of([got(one, name) for one in documents]) for name in names]
    return pa.RecordBatch.from_arrays(arrays, list(names))


def column_of(values: list[Any]) -> pa.Array:
    """Values of one field; as text where they are not all of one kind."""
    told = [spoken(one) for one in values]
    if any(isinstance(one, dict | list) for one in told):
        told = [None if one is None else json.dumps(one, ensure_ascii=False, default=_text) for one in told]
    kinds = {type(one) for one in told if one is not None}
    try:
        if kinds == {dt.datetime}:
            return pa.array(told, pa.timestamp("us", "UTC"))
        if len(kinds) <= 1 or kinds == {int, float}:
            return plain(pa.array(told))
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        pass  # one of them has no place in Arrow's type
    return pa.array([None if one is None else _text(one) for one in told], pa.string())


def spoken(value: Any) -> Any:
    """A BSON value as Python's own."""
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
    """A value for comparing as MongoDB does: numbers by what they come to, whatever their type."""
    if isinstance(value, Decimal128):
        value = value.to_decimal()
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        if isinstance(value, Mapping):
            return tuple((name, same(one)) for name, one in value.items())
        if isinstance(value, list):
            return ("array", *map(same, value))
        return (type(value).__name__, value)
    return ("number", Decimal(value))
