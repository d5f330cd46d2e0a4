"""What a MongoDB database holds. Collections have no columns: their fields are those that the validator describes, and
those of some documents; uniqueness is told by indexes, checks by the validator."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from bson import Binary, Decimal128, ObjectId
from bson.binary import UUID_SUBTYPE

from webapp import limits
from webapp.connectors.shape import Column, ColumnType, Entity

ID: Final = "_id"
_ID: Final = Column(ID, "objectid", "objectId", nullable=False, key=True, unique=True, generated="identity")
# BSON's types by the names that validators use (MongoDB, "BSON Types").
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
    """Collections and views as the server lists them; with a name, those alike but for case."""
    found: dict[str, Any] = {"name": {"$not": re.compile("^system\\.")}}
    if name is not None:
        found = {"name": re.compile(f"^{re.escape(name)}$", re.I)}
    return sorted(database.list_collections(filter=found), key=lambda one: str(one["name"]))


def entity(database: Any, told: Mapping[str, Any]) -> Entity:
    """A collection as a table."""
    name, view = told["name"], told.get("type") == "view"
    schema = told.get("options", {}).get("validator", {}).get("$jsonSchema", {})
    indexes = [] if view else list(database[name].list_indexes())
    uniques = tuple(
        tuple(one["key"])
        for one in indexes
        if one.get("unique") and not one.keys() & {"partialFilterExpression", "sparse"}
    )
    documents = list(
        database[name].find(
            limit=limits.MONGODB_SAMPLE_ROWS, max_time_ms=int(limits.TARGET_QUERY_SECONDS * 1000)
        )
    )
    fields = {ID: _ID, **_described(schema)}
    for field, values in _seen(documents).items():
        fields[field] = _sampled(field, values, fields.get(field))
    alone = {one[0] for one in uniques if len(one) == 1}
    columns = tuple(replace(one, unique=one.unique or one.name in alone) for one in fields.values())
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
        kind, whole = _type(kinds), [one for one in kinds if one in ("int", "long")]
        choices = rule.get("enum")
        items = _kinds(rule.get("items") or {}) if isinstance(rule.get("items") or {}, Mapping) else []
        texts = choices and all(isinstance(one, str | None) for one in choices)
        fields[name] = Column(
            name,
            "enum" if texts else kind,
            " | ".join(kinds) or "any",
            nullable=name not in required or "null" in kinds or (not kinds and not choices),
            max_length=rule.get("maxLength") if kind == "text" else None,
            bits=(32 if whole == ["int"] else 64) if kind == "integer" else None,
            choices=tuple(one for one in choices if one is not None) if texts else (),
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
    """The one type that values of these may have; JSON where they may be documents among others."""
    found = {_TYPES.get(one, "other") for one in kinds if one != "null"}
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
    """What the documents tell of a field; a type that the validator gives stands."""
    kinds = list(dict.fromkeys(_name_of(one) for one in values if one is not None))
    identifiers = kinds == ["binData"] and all(
        isinstance(one, Binary) and one.subtype == UUID_SUBTYPE for one in values if one is not None
    )
    kind: ColumnType = "uuid" if identifiers else _type(kinds)
    if known is not None and name != ID:
        if known.type == "binary" and identifiers:
            return replace(known, type="uuid")
        return replace(known, type=kind) if known.type == "other" else known
    if name == ID:
        made = kind == "objectid"
        return replace(_ID, type=kind, declared=" | ".join(kinds), generated="identity" if made else "")
    items = [_name_of(item) for one in values if isinstance(one, list) for item in one if item is not None]
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
