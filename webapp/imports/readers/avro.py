"""Avro schemas (Apache Avro 1.12, "Schema Declaration") as JSON Schema: each record at the top is a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webapp import limits
from webapp.imports.readers import json_rows, json_schema
from webapp.imports.readers.base import Read, Source, Unreadable

_TIME: Final = {"type": "string", "format": "time"}
_INSTANT: Final = {"type": "string", "format": "date-time"}
_PRIMITIVES: Final[Mapping[str, Mapping[str, Any]]] = {
    "boolean": {"type": "boolean"}, "int": {"type": "integer", "format": "int32"},
    "long": {"type": "integer", "format": "int64"}, "float": {"type": "number", "format": "float"},
    "double": {"type": "number", "format": "double"}, "string": {"type": "string"},
    "bytes": {"type": "string", "format": "byte"}, "null": {"type": "null"},
}  # fmt: skip
_LOGICAL_TYPES: Final[Mapping[str, Mapping[str, Any]]] = {
    "date": {"type": "string", "format": "date"}, "uuid": {"type": "string", "format": "uuid"},
    "time-millis": _TIME, "time-micros": _TIME, "timestamp-millis": _INSTANT, "timestamp-micros": _INSTANT,
    "timestamp-nanos": _INSTANT, "local-timestamp-millis": _INSTANT, "local-timestamp-micros": _INSTANT,
}  # fmt: skip


def read(source: Source) -> Read:
    """Read a table for each record. Raises `Unreadable`."""
    value = json_rows.parse_json(source)
    translator = _Translator()
    tops = value if isinstance(value, list) else [value]
    objects: dict[str, Any] = {}
    for top in tops:
        converted = translator.of(top, "", 0)
        if isinstance(top, dict) and top.get("type") == "record":
            objects[str(top.get("name") or source.stem or "record")] = converted
    if not objects:
        raise Unreadable(
            "The schema does not contain a record.",
            'It needs {"type": "record", "name": ..., "fields": [...]}.',
        )
    return json_schema.tables({"$defs": translator.named}, objects, "avro")


class _Translator:
    """Converts one schema. `named` are its types by their full names, for `$ref`."""

    def __init__(self) -> None:
        self.named: dict[str, Any] = {}

    def of(self, schema: Any, space: str, depth: int) -> dict[str, Any]:
        """Convert an Avro schema to a JSON Schema; unknown types become an empty one."""
        if depth > limits.MAX_JSON_DEPTH:
            return {}
        if isinstance(schema, str):
            if schema in _PRIMITIVES:
                return dict(_PRIMITIVES[schema])
            full = schema if "." in schema or not space else f"{space}.{schema}"
            known = full if full in self.named else schema
            return {"$ref": "#/$defs/" + known.replace("~", "~0").replace("/", "~1")}
        if isinstance(schema, list):  # a union: the first that is not null
            converted = next(
                (self.of(item, space, depth + 1) for item in schema if item != "null"), {"type": "null"}
            )
            return (
                {**converted, "nullable": True} if "null" in schema and "$ref" not in converted else converted
            )
        if not isinstance(schema, dict):
            return {}
        logical, kind = schema.get("logicalType"), schema.get("type")
        if isinstance(logical, str) and logical in _LOGICAL_TYPES:
            return dict(_LOGICAL_TYPES[logical])
        if logical in ("decimal", "big-decimal"):
            return _decimal(schema)
        if kind in ("record", "error"):
            return self._record(schema, space, depth)
        if kind == "enum":
            symbols = [symbol for symbol in schema.get("symbols") or () if isinstance(symbol, str)]
            return self._register(schema, space, {"type": "string", "enum": symbols})
        if kind == "array":
            return {"type": "array", "items": self.of(schema.get("items"), space, depth + 1)}
        if kind == "map":
            return {"type": "object"}
        if kind == "fixed":
            return self._register(schema, space, {"type": "string", "format": "byte"})
        return self.of(kind, space, depth + 1)

    def _record(self, schema: dict[str, Any], space: str, depth: int) -> dict[str, Any]:
        namespace = str(schema.get("namespace") or space)
        converted: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
        self._register(schema, space, converted)
        for field in schema.get("fields") or ():
            if not isinstance(field, dict):
                continue
            name = str(field.get("name", ""))
            property_schema = self.of(field.get("type"), namespace, depth + 1)
            if field.get("doc") and "$ref" not in property_schema:
                property_schema["description"] = str(field["doc"])
            converted["properties"][name] = property_schema
            is_nullable = isinstance(field.get("type"), list) and "null" in field["type"]
            if not is_nullable:
                converted["required"].append(name)
        return converted

    def _register(self, schema: dict[str, Any], space: str, converted: dict[str, Any]) -> dict[str, Any]:
        name = str(schema.get("name", ""))
        namespace = str(schema.get("namespace") or space)
        self.named[name if "." in name or not namespace else f"{namespace}.{name}"] = converted
        self.named.setdefault(name, converted)
        return converted


def _decimal(schema: dict[str, Any]) -> dict[str, Any]:
    scale, precision = schema.get("scale", 0), schema.get("precision", 9)
    is_valid = isinstance(scale, int) and isinstance(precision, int) and 0 <= scale <= precision
    scale, precision = (scale, min(precision, 15)) if is_valid else (2, 9)
    maximum = min(10 ** max(1, precision - scale) - 1, 1_000)
    return {
        "type": "number",
        "minimum": 0,
        "maximum": maximum,
        "multipleOf": float(f"1e-{min(scale, limits.MAX_DECIMALS)}"),
    }
