"""A connection to MongoDB: metadata, reading, and writing documents.

Collections have no columns. Their fields are those that the validator describes, and those of some documents. Indexes
define uniqueness, the validator defines checks. Arrow columns are converted to BSON values, and documents to Arrow
columns.

There are no transactions, so a chunk may be sent again: every inserted document has an `_id` that is the same
each time its row is sent. A document that already exists with exactly the same fields under an ObjectId was
delivered by an earlier attempt. Under any other key it might come from somewhere else, and is rejected as a
duplicate, unless the rows are known to be sent again (`WriteSpec.is_retry`).
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

import bson
import pyarrow as pa
import pymongo
from bson import Binary, Decimal128, Int64, ObjectId, json_util
from bson.binary import UUID_SUBTYPE
from bson.decimal128 import create_decimal128_context
from bson.errors import InvalidDocument, InvalidId
from bson.raw_bson import RawBSONDocument
from pymongo import errors

from webapp import limits
from webapp.connectors import column_values
from webapp.connectors.base import ConnectorError, RowError, Session, Target, WriteResult, WriteSpec
from webapp.connectors.column_values import ConversionError, convert_column, shorten_value, to_plain
from webapp.connectors.mongodb.connection import MongodbConnection, convert_error, converting_errors
from webapp.connectors.schema import Column, ColumnType, Entity, Metadata
from webapp.connectors.sql import base as sql
from webapp.connectors.sql.base import shorten_message
from webapp.engine.formats.nested import is_json_text

ID: Final = "_id"
_ID: Final = Column(ID, "objectid", "objectId", nullable=False, key=True, unique=True, generated="identity")
# BSON types by the names that validators use (MongoDB, "BSON Types").
_TYPES: Final[Mapping[str, ColumnType]] = {
    "double": "float", "string": "text", "object": "json", "array": "array", "binData": "binary",
    "objectId": "objectid", "bool": "boolean", "date": "timestamptz", "int": "integer", "long": "integer",
    "decimal": "decimal", "number": "decimal", "integer": "integer", "boolean": "boolean",
}  # fmt: skip
_PYTHON: Final = (
    (bool, "bool"), (int, "long"), (float, "double"), (str, "string"), (Decimal128, "decimal"),
    (ObjectId, "objectId"), (dict, "object"), (list, "array"),
)  # fmt: skip
_CHECKS: Final = (
    ("minimum", ">="), ("maximum", "<="), ("pattern", "~"), ("minLength", "length >="), ("minItems", "items >="),
    ("maxItems", "items <="), ("multipleOf", "is a multiple of"),
)  # fmt: skip


def list_collections(database: Any, name: str | None = None) -> list[Mapping[str, Any]]:
    """Return collections and views as the server lists them; with a name, those that match ignoring case."""
    query: dict[str, Any] = {"name": {"$not": re.compile("^system\\.")}}
    if name is not None:
        query = {"name": re.compile(f"^{re.escape(name)}$", re.I)}
    return sorted(database.list_collections(filter=query), key=lambda collection: str(collection["name"]))


def entity(database: Any, description: Mapping[str, Any]) -> Entity:
    """Return a collection as an `Entity`."""
    name, view = description["name"], description.get("type") == "view"
    schema = description.get("options", {}).get("validator", {}).get("$jsonSchema", {})
    indexes = [] if view else list(database[name].list_indexes())
    uniques = tuple(
        tuple(index["key"])
        for index in indexes
        if index.get("unique") and not index.keys() & {"partialFilterExpression", "sparse"}
    )
    documents = list(
        database[name].find(
            limit=limits.MONGODB_SAMPLE_ROWS, max_time_ms=int(limits.TARGET_QUERY_SECONDS * 1000)
        )
    )
    fields = {ID: _ID, **_schema_columns(schema)}
    seen: dict[str, list[Any]] = {}
    for document in documents:
        for field, value in document.items():
            seen.setdefault(field, []).append(value)
    for field, values in seen.items():
        fields[field] = _sampled_column(field, values, fields.get(field))
    single = {unique[0] for unique in uniques if len(unique) == 1}
    columns = tuple(
        replace(column, unique=column.unique or column.name in single) for column in fields.values()
    )
    return Entity(
        name,
        (name,),
        columns,
        "view" if view else "collection",
        keys=(ID,),
        uniques=uniques,
        checks=tuple(_checks(schema)),
        comment=str(schema.get("description") or ""),
    )


def _schema_columns(schema: Mapping[str, Any]) -> dict[str, Column]:
    required = set(schema.get("required") or ())
    fields = {}
    for name, rule in (schema.get("properties") or {}).items():
        kinds = _kinds(rule)
        kind, integers = _type(kinds), [kind for kind in kinds if kind in ("int", "long")]
        choices = rule.get("enum")
        items = _kinds(rule.get("items") or {}) if isinstance(rule.get("items") or {}, Mapping) else []
        texts = choices and all(isinstance(choice, str | None) for choice in choices)
        fields[name] = Column(
            name,
            "enum" if texts else kind,
            " | ".join(kinds) or "any",
            nullable=name not in required or "null" in kinds or (not kinds and not choices),
            max_length=rule.get("maxLength") if kind == "text" else None,
            bits=(32 if integers == ["int"] else 64) if kind == "integer" else None,
            choices=tuple(choice for choice in choices if choice is not None) if texts else (),
            items=_type(items) if kind == "array" and items else None,
            key=name == ID,
            unique=name == ID,
            generated="identity" if name == ID and kind in ("objectid", "other") else "",
            comment=str(rule.get("description") or ""),
        )
    return fields


def _kinds(rule: Mapping[str, Any]) -> list[str]:
    types = rule.get("bsonType") or rule.get("type") or []
    return [types] if isinstance(types, str) else list(types)


def _type(kinds: Sequence[str]) -> ColumnType:
    """Return the common type of these types; JSON if some are documents or arrays."""
    types = {_TYPES.get(kind, "other") for kind in kinds if kind != "null"}
    if len(types) == 1:
        return types.pop()
    if types & {"json", "array"}:
        return "json"
    if types and types <= {"integer", "decimal", "float"}:
        return "decimal" if "decimal" in types else "float"
    return "other"


def _sampled_column(name: str, values: Sequence[Any], known: Column | None) -> Column:
    """Return the column for a field of documents. A type from the validator has priority."""
    kinds = list(dict.fromkeys(_bson_type(value) for value in values if value is not None))
    identifiers = kinds == ["binData"] and all(
        isinstance(value, Binary) and value.subtype == UUID_SUBTYPE for value in values if value is not None
    )
    kind: ColumnType = "uuid" if identifiers else _type(kinds)
    if known is not None and name != ID:
        if known.type == "binary" and identifiers:
            return replace(known, type="uuid")
        return replace(known, type=kind) if known.type == "other" else known
    if name == ID:
        is_generated = kind == "objectid"
        return replace(
            _ID, type=kind, declared=" | ".join(kinds), generated="identity" if is_generated else ""
        )
    items = [
        _bson_type(item) for value in values if isinstance(value, list) for item in value if item is not None
    ]
    return Column(
        name,
        kind,
        " | ".join(kinds) or "null",
        bits=64 if kind == "integer" else None,
        items=_type(list(dict.fromkeys(items))) if kind == "array" and items else None,
    )


def _bson_type(value: Any) -> str:
    if isinstance(value, Binary | bytes):
        return "binData"
    if hasattr(value, "isoformat"):
        return "date"
    return next((name for kind, name in _PYTHON if isinstance(value, kind)), type(value).__name__.lower())


def _checks(schema: Mapping[str, Any]) -> Iterator[str]:
    for name, rule in (schema.get("properties") or {}).items():
        for keyword, operator in _CHECKS:
            if keyword in rule:
                strict = rule.get(f"exclusive{keyword.capitalize()}") is True
                yield f"{name} {operator.rstrip('=') if strict else operator} {rule[keyword]}"


_MIN_LONG, _MAX_LONG = -(2**63), 2**63 - 1
# --- Values -------------------------------------------------------------------------------------------------

_DIGITS: Final = create_decimal128_context()  # 34 digits (IEEE 754 decimal128)
_LONG: Final = Column("", "integer", "long", bits=64)
_INT: Final = Column("", "integer", "int", bits=32)
_NESTING: Final = ("other", "json", "array", "objectid")
"""Types of columns that may contain objects and arrays."""


def convert_to_bson(
    array: pa.Array, column: Column, json_text: bool = False
) -> tuple[list[Any], list[RowError]]:
    """Convert a column's values to BSON, and return the errors of values that do not fit.

    `json_text`: the texts are JSON, and are parsed.
    """
    convert = _json if json_text and column.type in _NESTING else _CONVERTERS.get(column.type, _to_bson)
    if column.type == "integer" and column.bits == 32:
        convert = _integer
    by_type = _type_converter(array.type)
    if by_type is not None and column.type in _NESTING:
        is_list = pa.types.is_list(array.type) or pa.types.is_large_list(array.type)
        convert = by_type if is_list or column.type != "array" else _array
    return convert_column(array, column, lambda value, _: convert(value))


def _type_converter(kind: pa.DataType) -> Callable[[Any], Any] | None:
    """Return the conversion of an Arrow type to BSON; 64-bit integers keep their type, also inside objects
    and arrays.

    Returns None for types whose Python values determine the BSON type.
    """
    if pa.types.is_dictionary(kind):
        return _type_converter(kind.value_type)
    if pa.types.is_struct(kind):
        fields = [
            (entry.name, _json if is_json_text(entry) else _type_converter(entry.type) or _to_bson)
            for entry in kind
        ]
        return lambda value: {
            name: None if value[name] is None else convert(value[name]) for name, convert in fields
        }
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        item = kind.value_field
        convert_item = _json if is_json_text(item) else _type_converter(item.type) or _to_bson
        return lambda value: [None if entry is None else convert_item(entry) for entry in value]
    return _to_integer if pa.types.is_int64(kind) or pa.types.is_uint64(kind) else None


# --- Single values
# ---------------------------------------------------------------------------------------------


def _to_bson(value: Any) -> Any:
    """Convert a value by its own type."""
    if isinstance(value, str | bool | float | bytes):
        return value
    if isinstance(value, int):
        return value if _MIN_LONG <= value <= _MAX_LONG else _decimal(value)
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, dt.date | dt.time):
        return value.isoformat() if isinstance(value, dt.time) else _moment(value)
    if isinstance(value, Mapping):
        return {_check_key(name): _to_bson(item) for name, item in value.items()}
    if isinstance(value, Sequence):
        return [_to_bson(item) for item in value]
    return value


def _check_key(name: str) -> str:
    if "\0" in name:
        raise ConversionError("wrong_type", "a field name cannot contain a NUL character")
    return name


def _to_integer(value: int) -> Int64 | Decimal128:
    return Int64(value) if _MIN_LONG <= value <= _MAX_LONG else _decimal(value)


def _long(value: Any) -> Int64:
    return Int64(column_values.to_integer(value, _LONG))


def _integer(value: Any) -> int:
    return column_values.to_integer(value, _INT)


def _decimal(value: Any) -> Decimal128:
    try:
        number = Decimal(str(value).strip() if isinstance(value, str | float) else value)
        rounded = _DIGITS.create_decimal(number)
    except (ArithmeticError, ValueError, TypeError):
        raise ConversionError("wrong_type", f"{shorten_value(value)} is not a number") from None
    if number.is_finite() and rounded != number:
        raise ConversionError("out_of_range", f"{shorten_value(value)} has more than 34 digits")
    return Decimal128(rounded)


def _float(value: Any) -> float:
    return column_values.to_float(value, _LONG)


def _boolean(value: Any) -> bool:
    return column_values.to_boolean(value, _LONG)


def _moment(value: Any) -> dt.datetime:
    """Convert to a BSON date, which is a UTC time in milliseconds. A date becomes midnight; without a zone,
    UTC is assumed."""
    instant = column_values.to_utc_datetime(value, _LONG)
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)


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
        raise ConversionError("wrong_type", f"{shorten_value(value)} is not a UUID") from None


def _object_id(value: Any) -> Any:
    """Convert 24 hexadecimal digits to an ObjectId. Keys may also have any other type."""
    if isinstance(value, str):
        try:
            return ObjectId(value)
        except InvalidId:
            return value
    return _to_bson(value)


def _json(value: Any) -> Any:
    """Parse JSON text. Objects become documents."""
    if not isinstance(value, str):
        return _to_bson(value)
    try:
        return _to_bson(json.loads(value, parse_float=_parse_float, parse_constant=_reject_constant))
    except ValueError as error:
        if isinstance(error, ConversionError):
            raise
        raise ConversionError("wrong_type", f"{shorten_value(value)} is not JSON") from None
    except RecursionError:
        raise ConversionError("too_long", "the JSON is nested too deeply") from None


def _parse_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ConversionError("out_of_range", f"{shorten_value(text)} is not a double")
    return number


def _reject_constant(text: str) -> Any:
    raise ConversionError("wrong_type", f"{text} is not JSON")


def _array(value: Any) -> list[Any]:
    parsed = _json(value)
    if not isinstance(parsed, list):
        raise ConversionError("wrong_type", f"{shorten_value(value)} is not an array")
    return parsed


_CONVERTERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "integer": _long, "decimal": _decimal, "float": _float, "boolean": _boolean, "date": _moment,
    "timestamp": _moment, "timestamptz": _moment, "text": _text, "enum": _text, "time": _text, "interval": _text,
    "binary": _binary, "uuid": _uuid, "objectid": _object_id, "json": _json, "array": _array, "other": _to_bson,
}  # fmt: skip


# --- Documents -------------------------------------------------------------------------------------------------


def set_field(document: dict[str, Any], name: str, value: Any) -> None:
    """Set a field. Dots in the name lead into nested documents."""
    *outer, last = name.split(".")
    for part in outer:
        document = document.setdefault(part, {})
    document[last] = value


def get_field(document: Mapping[str, Any], name: str) -> Any:
    """Return a field's value; None if it does not exist."""
    value: Any = document
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def batch_of(documents: Sequence[Mapping[str, Any]], names: Sequence[str]) -> pa.RecordBatch:
    """Return some fields of documents as a record batch."""
    arrays = [column_of([get_field(document, name) for document in documents]) for name in names]
    return pa.RecordBatch.from_arrays(arrays, list(names))


def column_of(values: list[Any]) -> pa.Array:
    """Convert the values of a field to Arrow; they become text if their types differ."""
    converted = [to_python(value) for value in values]
    if any(isinstance(item, dict | list) for item in converted):
        converted = [
            None if item is None else json.dumps(item, ensure_ascii=False, default=_text)
            for item in converted
        ]
    kinds = {type(item) for item in converted if item is not None}
    try:
        if kinds == {dt.datetime}:
            return pa.array(converted, pa.timestamp("us", "UTC"))
        if len(kinds) <= 1 or kinds == {int, float}:
            return to_plain(pa.array(converted))
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        pass  # Arrow's type cannot represent one of them
    return pa.array([None if item is None else _text(item) for item in converted], pa.string())


def to_python(value: Any) -> Any:
    """Convert a BSON value to a Python value."""
    if isinstance(value, Binary) and value.subtype == UUID_SUBTYPE:
        return str(value.as_uuid())
    if isinstance(value, bool | str | float | bytes | dt.datetime) or value is None:
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Decimal128):
        number = value.to_decimal()
        return number if number.is_finite() else str(value)
    if isinstance(value, Mapping):
        return {name: to_python(item) for name, item in value.items()}
    if isinstance(value, list):
        return [to_python(item) for item in value]
    return str(value)


def comparable(value: Any) -> Any:
    """Return a value for comparisons as MongoDB does them: numbers by value, regardless of their type."""
    if isinstance(value, Decimal128):
        value = value.to_decimal()
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        if isinstance(value, Mapping):
            return tuple((name, comparable(item)) for name, item in value.items())
        if isinstance(value, list):
            return ("array", *map(comparable, value))
        return (type(value).__name__, value)
    return ("number", Decimal(value))


# Convert errors of rejected documents: duplicates in a unique index, and violations of the validator.

# --- Session ------------------------------------------------------------------------------------------------

_DUPLICATE_KEY: Final = 11000
_INVALID: Final = 121
# Reasons for rules of validators (MongoDB, "$jsonSchema").
_RULES: Final = {
    "required": "not_null", "bsonType": "wrong_type", "type": "wrong_type", "maxLength": "too_long",
    "maxItems": "too_long", "minimum": "check", "maximum": "check", "minLength": "check", "pattern": "check",
    "enum": "check", "multipleOf": "check", "minItems": "check", "uniqueItems": "check",
}  # fmt: skip


def to_row_error(index: int, error: Mapping[str, Any], entity: Entity) -> RowError:
    """Return the error of one row of a bulk write."""
    code, message = error.get("code"), shorten_message(str(error.get("errmsg", "")))
    if code == _DUPLICATE_KEY:
        pattern = error.get("keyPattern") or {}
        column = next(iter(pattern)) if len(pattern) == 1 else None
        return RowError(index, "unique", message, str(code), column)
    if code == _INVALID:
        for name, rule in _violations(error.get("errInfo") or {}):
            rule_name, value = str(rule.get("operatorName", "")), rule.get("consideredValue")
            if rule_name == "required":
                reason, detail = "not_null", f"{name} is required"
            elif rule_name in ("bsonType", "type") and value is None and "consideredType" in rule:
                reason, detail = "not_null", f"{name} cannot be null"
            else:
                reason, detail = (
                    _RULES.get(rule_name, "refused"),
                    f"{name}: {rule_name} {rule.get('specifiedAs', {}).get(rule_name)}",
                )
            known = name if entity.column(name) else None
            return RowError(index, reason, shorten_message(f"{message}: {detail}"), str(code), known)
    return RowError(index, "refused", message or "The server rejected the document.", str(code or ""))


def _violations(info: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield fields with the rules that they violate (MongoDB 5.0, "Schema Validation", the error output)."""
    for rule in (info.get("details") or {}).get("schemaRulesNotSatisfied") or ():
        for field in rule.get("propertiesNotSatisfied") or ():
            for detail in field.get("details") or ():
                yield str(field.get("propertyName")), detail
        for name in rule.get("missingProperties") or ():
            yield str(name), rule


_MS = int(limits.TARGET_QUERY_SECONDS * 1000)


class MongodbSession(Session):
    """A client of one database. `server_info` is the server's description of itself."""

    def __init__(self, link: MongodbConnection, server_info: Mapping[str, Any], read_only: bool) -> None:
        self.link, self.read_only = link, read_only
        self.database = link.database
        self.title = f"MongoDB {server_info.get('version', '')}".rstrip()

    # --- the connection ---

    def close(self) -> None:
        """See `Session.close`."""
        self.link.close()

    def cancel(self) -> None:
        """See `Session.cancel`."""
        self.link.abort()

    # --- verification ---

    def check_permission(self) -> str:
        """Return what the account can see, as a message. Raises `ConnectorError` if it may not write.

        Compatible servers may list no privileges at all: then it is unknown whether it may write.
        """
        with converting_errors():
            count = len(self.database.list_collection_names())
            auth_info = self.database.command("connectionStatus", showPrivileges=True)["authInfo"]
        privileges = auth_info.get("authenticatedUserPrivileges") or ()
        grants = [
            privilege
            for privilege in privileges
            if privilege["resource"].get("anyResource")
            or privilege["resource"].get("db") in ("", self.database.name)
        ]
        if (
            auth_info.get("authenticatedUsers")
            and privileges
            and not self.read_only
            and not any({"insert", "anyAction"} & set(grant["actions"]) for grant in grants)
        ):
            raise ConnectorError(
                f"The account is not allowed to write to {self.database.name}.",
                reason="no_permission",
                hint="Grant it readWrite on the database, or mark the connection as read-only.",
            )
        return f"{count:,} collections in {self.database.name} are visible."

    def check_sample(self) -> str:
        """Read one document of the first collection, and return a message."""
        with converting_errors():
            collections = list_collections(self.database)
            if not collections:
                return "No collections yet."
            self.database[collections[0]["name"]].find_one(max_time_ms=_MS)
        return f"Read from {collections[0]['name']}."

    # --- metadata ---

    def metadata(self) -> Metadata:
        """See `Session.metadata`. Uses two requests for each collection: its indexes, and some of its
        documents."""
        with converting_errors():
            entities = tuple(entity(self.database, item) for item in list_collections(self.database))
        return Metadata("mongodb", self.title, entities)

    def entity(self, name: str) -> Entity | None:
        """See `Session.entity`."""
        if not name:
            return None
        with converting_errors():
            collections = list_collections(self.database, name)
            exact = [collection for collection in collections if collection["name"] == name]
            entities = [entity(self.database, collection) for collection in (exact or collections)[:2]]
        return sql.find_entity(entities, name)

    # --- reading ---

    def sample(self, entity: Entity, limit: int) -> pa.RecordBatch:
        """See `Session.sample`."""
        if limit < 1:
            return batch_of([], [column.name for column in entity.fields])
        with (
            converting_errors(),
            self.database[entity.name].find(limit=int(limit), max_time_ms=_MS) as cursor,
        ):
            documents = sql.take_sample(cursor)
        return batch_of(documents, [column.name for column in entity.fields])

    def keys(
        self, entity: Entity, columns: Sequence[str], where: str = "", order: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """See `Session.keys`."""
        with converting_errors():
            cursor = self.database[entity.name].find(
                _parse_condition(where),
                _projection(columns),
                sort=[(name, 1) for name in (columns if order is None else order)] or None,
                allow_disk_use=True,
                batch_size=limits.TARGET_READ_ROWS,
            )
            with cursor:
                for piece in sql.group_rows(cursor):
                    yield batch_of(piece, columns)

    def contains(self, entity: Entity, columns: Sequence[str], candidates: pa.RecordBatch) -> pa.BooleanArray:
        """See `Session.contains`."""
        fields = [entity.column(name) or Column(name, "other", "") for name in columns]
        cells = [
            convert_to_bson(array, field)[0] for array, field in zip(candidates.columns, fields, strict=True)
        ]
        rows = list(zip(*cells, strict=True))
        return pa.array(self.existing(entity.name, columns, rows), pa.bool_())

    def existing(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[bool]:
        """Return for each combination of values whether the collection contains it. None is never contained."""
        existing: set[Any] = set()
        complete = [row for row in rows if None not in row]
        for start in range(0, len(complete), limits.MONGODB_KNOWN_ROWS):
            chunk = complete[start : start + limits.MONGODB_KNOWN_ROWS]
            conditions = [dict(zip(columns, row, strict=True)) for row in chunk]
            if len(columns) == 1:
                query: dict[str, Any] = {columns[0]: {"$in": [row[0] for row in chunk]}}
            else:
                query = {"$or": conditions}
            with converting_errors():
                documents = self.database[name].find(query, _projection(columns), max_time_ms=_MS)
                existing.update(
                    tuple(comparable(get_field(document, column)) for column in columns)
                    for document in documents
                )
        return [None not in row and tuple(map(comparable, row)) in existing for row in rows]

    def query(self, text: str, values: Mapping[str, Any], limit: int) -> pa.RecordBatch:
        """See `Session.query`, which MongoDB does not support."""
        raise ConnectorError(
            "MongoDB does not support SQL queries.",
            reason="unsupported",
            hint="Use the keys of a collection instead.",
        )

    # --- statements ---

    def execute(self, statement: str) -> None:
        """See `Session.execute`, which MongoDB does not support."""
        self.check_writable()
        raise ConnectorError(
            "MongoDB does not support SQL.", reason="unsupported", hint="Remove the statements."
        )

    def create(self, name: str, columns: Sequence[Column], keys: Sequence[str]) -> str:
        """See `Session.create`: creates the collection, and a unique index on keys other than `_id`."""
        statement = self.create_statement(name, columns, keys)
        self.check_writable()
        with converting_errors():
            self.database.create_collection(name, check_exists=False)
            if keys and tuple(keys) != (ID,):
                self.database[name].create_index([(key, 1) for key in keys], unique=True)
        return statement

    def create_statement(self, name: str, columns: Sequence[Column], keys: Sequence[str]) -> str:
        """See `Session.create_statement`: returns commands for the MongoDB shell."""
        if not name or "$" in name or "\0" in name or name.startswith(("system.", ".")) or name.endswith("."):
            raise ConnectorError(
                f"{name!r} is not a valid collection name.", reason="bad_name", hint="Choose another name."
            )
        if len(name) > 120:
            raise ConnectorError(
                "The name is too long.", reason="bad_name", hint="Use at most 120 characters."
            )
        lines = [f"db.createCollection({json.dumps(name, ensure_ascii=False)})"]
        if keys and tuple(keys) != (ID,):
            index_keys = json.dumps(dict.fromkeys(keys, 1), ensure_ascii=False)
            collection = json.dumps(name, ensure_ascii=False)
            lines.append(f"db.getCollection({collection}).createIndex({index_keys}, {{unique: true}})")
        return ";\n".join(lines)

    def target(self, spec: WriteSpec) -> Target:
        """See `Session.target`."""

        self.check_writable()
        if spec.entity.kind == "view":
            raise ConnectorError(
                f"{spec.entity.name} is a view.",
                reason="unsupported",
                hint="Select the underlying collection.",
            )
        return MongodbTarget(self, spec)

    def commit_outcome(self, entity: Entity, commit_token: Mapping[str, Any]) -> bool | None:
        """See `Session.commit_outcome`. There are no transactions; rows have keys, and are sent again."""
        return None


def _projection(columns: Sequence[str]) -> dict[str, int]:
    return {ID: 0, **dict.fromkeys(columns, 1)}


_CODE_OPERATORS: Final = frozenset({"$where", "$function", "$accumulator"})


def _operators(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield key
            yield from _operators(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _operators(inner)


def _parse_condition(where: str) -> dict[str, Any]:
    """Parse a condition in JSON or MongoDB's Extended JSON ({"$oid": ...})."""
    if not where.strip():
        return {}
    try:
        parsed = json_util.loads(where)
        runs_code = bool(_CODE_OPERATORS.intersection(_operators(parsed)))
    except (ValueError, TypeError, RecursionError) as error:
        parsed, runs_code = error, False
    if runs_code:
        raise ConnectorError(
            "The condition runs JavaScript on the server.",
            reason="bad_query",
            hint=f"Remove {', '.join(sorted(_CODE_OPERATORS))}.",
        )
    if not isinstance(parsed, dict):
        raise ConnectorError(
            "The condition is not a JSON object.",
            reason="bad_query",
            hint='Use a form such as {"status": "active"}.',
        )
    return parsed


_DUPLICATE: Final = 11000


class MongodbTarget(Target):
    """See `Target`."""

    def __init__(self, session: MongodbSession, spec: WriteSpec) -> None:
        self.spec = spec
        self._session = session
        self._collection = session.database[spec.entity.name]
        self._names = [column.name for column in spec.columns]
        for name in self._names:
            parts = name.split(".")
            if not all(parts) or any(part.startswith("$") or "\0" in part for part in parts):
                raise ConnectorError(
                    f"{name!r} is not a valid field name.", reason="bad_name", hint="Choose another name."
                )
            if any(".".join(parts[:length]) in self._names for length in range(1, len(parts))):
                raise ConnectorError(
                    f"{name} is part of a field that is written as a whole.",
                    reason="bad_name",
                    hint="Map only one of the two.",
                )
        unsupported = set(spec.capture) - {ID, *self._names}
        if unsupported or (spec.capture and spec.mode != "insert"):
            raise ConnectorError(
                f"MongoDB does not return {', '.join(unsupported or spec.capture)}.",
                reason="unsupported",
                hint="For inserted documents, _id can be captured.",
            )

    # --- transactions (not supported) ---

    def begin(self) -> None:
        """See `Target.begin`."""

    def commit_token(self) -> dict[str, Any]:
        """See `Target.commit_token`: empty, because rows are visible immediately and may be sent again."""
        return {}

    def commit(self) -> None:
        """See `Target.commit`."""

    def rollback(self) -> None:
        """See `Target.rollback`: does nothing, because nothing can be rolled back."""

    # --- rows ---

    def statements(self, batch: pa.RecordBatch) -> list[str]:
        """See `Target.statements`: returns commands for the MongoDB shell."""
        rows, _ = self._rows(batch)
        collection = f"db.getCollection({json_util.dumps(self.spec.entity.name, ensure_ascii=False)})"
        commands = []
        for row in rows:
            if self.spec.mode == "insert":
                commands.append(f"{collection}.insertOne({_to_shell(self._document(row))})")
                continue
            query, change = self._filter_and_update(row)
            tail = ", {upsert: true}" if self.spec.mode == "upsert" else ""
            commands.append(f"{collection}.updateOne({_to_shell(query)}, {_to_shell(change)}{tail})")
        return commands

    def send(self, batch: pa.RecordBatch) -> WriteResult:
        """See `Target.send`."""
        rows, failures = self._rows(batch)
        rejected = {error.index for error in failures}
        indexes = [index for index in range(len(rows)) if index not in rejected]
        ids: list[Any] = [None] * len(rows)
        if self.spec.mode == "insert":
            documents = {index: self._document(rows[index]) for index in indexes}
            for index, document in documents.items():
                ids[index] = document.setdefault(ID, ObjectId())
            failures += self._insert(documents)
        else:
            failures += self._update(indexes, rows)
        failures = sorted(failures, key=lambda item: item.index)
        if not self.spec.capture:
            return WriteResult(failures)
        rejected, arrays = {error.index for error in failures}, []
        for name in self.spec.capture:
            values = ids if name == ID else [row[self._names.index(name)] for row in rows]
            arrays.append(
                column_of([None if index in rejected else value for index, value in enumerate(values)])
            )
        return WriteResult(failures, pa.RecordBatch.from_arrays(arrays, list(self.spec.capture)))

    def delete(self, batch: pa.RecordBatch) -> WriteResult:
        """See `Target.delete`."""
        keys = self.spec.key_columns
        rows, failures = self._rows(batch)
        cells = [tuple(row[self._names.index(key)] for key in keys) for row in rows]
        exists = self._session.existing(self.spec.entity.name, keys, cells)
        rejected, done, operations = {error.index for error in failures}, set(), []
        for index, cell in enumerate(cells):
            identity = tuple(map(comparable, cell))
            if index in rejected:
                continue
            if not exists[index] or identity in done:
                failures.append(self._missing_error(index))
                continue
            done.add(identity)
            operations.append((index, pymongo.DeleteOne(dict(zip(keys, cell, strict=True)))))
        failures += self._run_operations(operations)
        return WriteResult(sorted(failures, key=lambda item: item.index))

    def _rows(self, batch: pa.RecordBatch) -> tuple[list[tuple[Any, ...]], list[RowError]]:
        cells: list[list[Any]] = []
        failures: dict[int, RowError] = {}
        for array, field, column in zip(batch.columns, batch.schema, self.spec.columns, strict=True):
            values, rejected = convert_to_bson(array, column, is_json_text(field))
            cells.append(values)
            failures |= {error.index: error for error in rejected}
        return list(zip(*cells, strict=True)), list(failures.values())

    def _document(self, row: Sequence[Any]) -> dict[str, Any]:
        document: dict[str, Any] = {}
        for name, value in zip(self._names, row, strict=True):
            if not (name == ID and value is None):
                set_field(document, name, value)
        return document

    # --- inserts ---

    def _insert(self, documents: dict[int, dict[str, Any]]) -> list[RowError]:
        encoded: dict[int, RawBSONDocument] = {}
        failures: list[RowError] = []
        for index, document in documents.items():
            try:
                data = bson.encode(document)
            except (InvalidDocument, OverflowError, RecursionError) as error:
                failures.append(RowError(index, "wrong_type", f"MongoDB cannot store this document: {error}"))
                continue
            if len(data) > limits.MONGODB_DOCUMENT_BYTES:
                limit = limits.MONGODB_DOCUMENT_BYTES
                message = f"The document has {len(data):,} bytes; at most {limit:,} are allowed."
                failures.append(RowError(index, "too_long", message))
                continue
            encoded[index] = RawBSONDocument(data)
        indexes = list(encoded)
        if not indexes:
            return failures
        try:
            self._collection.insert_many(encoded.values(), ordered=False)
        except errors.BulkWriteError as error:
            row_errors = self._row_errors(error)
            delivered = self._delivered({indexes[item["index"]]: item for item in row_errors}, documents)
            failures += [
                to_row_error(indexes[item["index"]], item, self.spec.entity)
                for item in row_errors
                if indexes[item["index"]] not in delivered
            ]
        except (errors.PyMongoError, OSError) as error:
            raise convert_error(error) from error
        return failures

    def _row_errors(self, error: errors.BulkWriteError) -> list[dict[str, Any]]:
        """Return the server's errors of single rows. Raises errors that do not concern single rows."""
        details = error.details or {}
        for writeerror in details.get("writeErrors", ()):
            converted = convert_error(
                errors.OperationFailure(writeerror.get("errmsg", ""), writeerror.get("code"), writeerror)
            )
            if converted.reason not in ("failed", "bad_query"):
                raise converted from error
        if concern := details.get("writeConcernErrors"):
            raise ConnectorError(
                f"The write concern was not satisfied: {concern[0].get('errmsg')}",
                reason="failed",
                hint="The rows may have been written. They can safely be sent again.",
                transient=True,
            ) from error
        return list(details.get("writeErrors", ()))

    def _delivered(
        self, row_errors: dict[int, dict[str, Any]], documents: dict[int, dict[str, Any]]
    ) -> set[int]:
        """Return the rows that were rejected as duplicates because an earlier attempt delivered them."""
        seen: set[Any] = set()
        candidates: dict[Any, int] = {}
        for index, document in documents.items():
            key = document[ID]
            if not (self.spec.is_retry or isinstance(key, ObjectId)):
                continue
            identity = comparable(key)
            if identity not in seen and index in row_errors and row_errors[index].get("code") == _DUPLICATE:
                candidates[identity] = index
            seen.add(identity)
        if not candidates:
            return set()
        with converting_errors():
            keys = [documents[index][ID] for index in candidates.values()]
            stored = {comparable(item[ID]): item for item in self._collection.find({ID: {"$in": keys}})}
        return {
            index
            for identity, index in candidates.items()
            if _is_same_document(stored.get(identity, {}), documents[index])
        }

    # --- changes ---

    def _filter_and_update(self, row: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the filter and the update of a row."""
        keys, pairs = self.spec.key_columns, dict(zip(self._names, row, strict=True))
        others = {name: value for name, value in pairs.items() if name not in keys}
        change: dict[str, Any] = {}
        if ID in others:
            new_id = others.pop(ID)
            if new_id is not None and self.spec.mode == "upsert":
                change["$setOnInsert"] = {ID: new_id}
        change["$set"] = others or {keys[0]: pairs[keys[0]]}
        return {name: pairs[name] for name in keys}, change

    def _update(self, indexes: Sequence[int], rows: Sequence[Sequence[Any]]) -> list[RowError]:
        upsert = self.spec.mode == "upsert"
        missing: list[RowError] = []
        if not upsert:
            keys = self.spec.key_columns
            cells = [[rows[index][self._names.index(key)] for key in keys] for index in indexes]
            exists = self._session.existing(self.spec.entity.name, keys, cells)
            missing = [
                self._missing_error(index)
                for index, is_there in zip(indexes, exists, strict=True)
                if not is_there
            ]
            indexes = [index for index, is_there in zip(indexes, exists, strict=True) if is_there]
        operations = [
            (index, pymongo.UpdateOne(*self._filter_and_update(rows[index]), upsert=upsert))
            for index in indexes
        ]
        return missing + self._run_operations(operations)

    def _run_operations(self, operations: list[tuple[int, Any]]) -> list[RowError]:
        """Run operations in order. After a rejected one, the following ones are sent again."""
        failures: list[RowError] = []
        while operations:
            try:
                self._collection.bulk_write([item for _, item in operations], ordered=True)
                break
            except errors.BulkWriteError as error:
                (details,) = self._row_errors(error)
                failures.append(to_row_error(operations[details["index"]][0], details, self.spec.entity))
                operations = operations[details["index"] + 1 :]
            except (InvalidDocument, OverflowError, errors.DocumentTooLarge) as error:
                if len(operations) == 1:
                    reason = "too_long" if isinstance(error, errors.DocumentTooLarge) else "wrong_type"
                    failures.append(RowError(operations[0][0], reason, str(error)))
                    break
                half = len(operations) // 2
                failures += self._run_operations(operations[:half])
                operations = operations[half:]
            except (errors.PyMongoError, OSError) as error:
                raise convert_error(error) from error
        return failures

    def _missing_error(self, index: int) -> RowError:
        return RowError(index, "missing_row", f"No such document exists in {self.spec.entity.name}.")


def _is_same_document(stored: dict[str, Any], sent: dict[str, Any]) -> bool:
    return all(
        comparable(get_field(stored, name)) == comparable(value) for name, value in sent.items()
    ) and len(stored) == len(sent)


def _to_shell(document: dict[str, Any]) -> str:
    return f"EJSON.deserialize({json_util.dumps(document, ensure_ascii=False)})"
