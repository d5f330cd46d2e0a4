"""Read the collections of a MongoDB database.

Collections have no columns. Their fields are those that the validator describes, and those of some documents.
Indexes define uniqueness, the validator defines checks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from bson import Binary, Decimal128, ObjectId
from bson.binary import UUID_SUBTYPE

from webapp import limits
from webapp.connectors.schema import Column, ColumnType, Entity

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


def listed(database: Any, name: str | None = None) -> list[Mapping[str, Any]]:
    """Return collections and views as the server lists them; with a name, those that match ignoring case."""
    found: dict[str, Any] = {"name": {"$not": re.compile("^system\\.")}}
    if name is not None:
        found = {"name": re.compile(f"^{re.escape(name)}$", re.I)}
    return sorted(database.list_collections(filter=found), key=lambda one: str(one["name"]))


def entity(database: Any, told: Mapping[str, Any]) -> Entity:
    """Return a collection as an `Entity`."""
    name, view = told["name"], told.get("type") == "view"
    schema = told.get("options", {}).get("validator", {}).get("$jsonSchema", {})
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
    fields = {ID: _ID, **_described(schema)}
    for field, values in _seen(documents).items():
        fields[field] = _sampled(field, values, fields.get(field))
    alone = {unique[0] for unique in uniques if len(unique) == 1}
    columns = tuple(
        replace(column, unique=column.unique or column.name in alone) for column in fields.values()
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


def _described(schema: Mapping[str, Any]) -> dict[str, Column]:
    required = set(schema.get("required") or ())
    fields = {}
    for name, rule in (schema.get("properties") or {}).items():
        kinds = _kinds(rule)
        kind, whole = _type(kinds), [kind for kind in kinds if kind in ("int", "long")]
        choices = rule.get("enum")
        items = _kinds(rule.get("items") or {}) if isinstance(rule.get("items") or {}, Mapping) else []
        texts = choices and all(isinstance(choice, str | None) for choice in choices)
        fields[name] = Column(
            name,
            "enum" if texts else kind,
            " | ".join(kinds) or "any",
            nullable=name not in required or "null" in kinds or (not kinds and not choices),
            max_length=rule.get("maxLength") if kind == "text" else None,
            bits=(32 if whole == ["int"] else 64) if kind == "integer" else None,
            choices=tuple(choice for choice in choices if choice is not None) if texts else (),
            items=_type(items) if kind == "array" and items else None,
            key=name == ID,
            unique=name == ID,
            generated="identity" if name == ID and kind in ("objectid", "other") else "",
            comment=str(rule.get("description") or ""),
        )
    return fields


def _kinds(rule: Mapping[str, Any]) -> list[str]:
    found = rule.get("bsonType") or rule.get("type") or []
    return [found] if isinstance(found, str) else list(found)


def _type(kinds: Sequence[str]) -> ColumnType:
    """Return the common type of these types; JSON if some are documents or arrays."""
    found = {_TYPES.get(kind, "other") for kind in kinds if kind != "null"}
    if len(found) == 1:
        return found.pop()
    if found & {"json", "array"}:
        return "json"
    if found and found <= {"integer", "decimal", "float"}:
        return "decimal" if "decimal" in found else "float"
    return "other"


def _seen(documents: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for document in documents:
        for name, value in document.items():
            found.setdefault(name, []).append(value)
    return found


def _sampled(name: str, values: Sequence[Any], known: Column | None) -> Column:
    """Return the column for a field of documents. A type from the validator has priority."""
    kinds = list(dict.fromkeys(_name_of(value) for value in values if value is not None))
    identifiers = kinds == ["binData"] and all(
        isinstance(value, Binary) and value.subtype == UUID_SUBTYPE for value in values if value is not None
    )
    kind: ColumnType = "uuid" if identifiers else _type(kinds)
    if known is not None and name != ID:
        if known.type == "binary" and identifiers:
            return replace(known, type="uuid")
        return replace(known, type=kind) if known.type == "other" else known
    if name == ID:
        made = kind == "objectid"
        return replace(_ID, type=kind, declared=" | ".join(kinds), generated="identity" if made else "")
    items = [
        _name_of(item) for value in values if isinstance(value, list) for item in value if item is not None
    ]
    return Column(
        name,
        kind,
        " | ".join(kinds) or "null",
        bits=64 if kind == "integer" else None,
        items=_type(list(dict.fromkeys(items))) if kind == "array" and items else None,
    )


def _name_of(value: Any) -> str:
    if isinstance(value, Binary | bytes):
        return "binData"
    if hasattr(value, "isoformat"):
        return "date"
    return next((name for kind, name in _PYTHON if isinstance(value, kind)), type(value).__name__.lower())


def _checks(schema: Mapping[str, Any]) -> Iterator[str]:
    for name, rule in (schema.get("properties") or {}).items():
        for word, sign in _CHECKS:
            if word in rule:
                strict = rule.get(f"exclusive{word.capitalize()}") is True
                yield f"{name} {sign.rstrip('=') if strict else sign} {rule[word]}"
