"""Avro schemas (Apache Avro 1.12, "Schema Declaration") as JSON Schema: each record at the top is a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webapp import limits
from webapp.imports.readers import json_rows, json_schema
from webapp.imports.readers.base import ParsedFile, Source, UnreadableFileError

_TIME: Final = {"type": "string", "format": "time"}
_TIMESTAMP: Final = {"type": "string", "format": "date-time"}
_PRIMITIVES: Final[Mapping[str, Mapping[str, Any]]] = {
    "boolean": {"type": "boolean"}, "int": {"type": "integer", "format": "int32"},
    "long": {"type": "integer", "format": "int64"}, "float": {"type": "number", "format": "float"},
    "double": {"type": "number", "format": "double"}, "string": {"type": "string"},
    "bytes": {"type": "string", "format": "byte"}, "null": {"type": "null"},
}  # fmt: skip
_LOGICAL_TYPES: Final[Mapping[str, Mapping[str, Any]]] = {
    "date": {"type": "string", "format": "date"}, "uuid": {"type": "string", "format": "uuid"},
    "time-millis": _TIME, "time-micros": _TIME, "timestamp-millis": _TIMESTAMP, "timestamp-micros": _TIMESTAMP,
    "timestamp-nanos": _TIMESTAMP, "local-timestamp-millis": _TIMESTAMP, "local-timestamp-micros": _TIMESTAMP,
}  # fmt: skip


def read(source: Source) -> ParsedFile:
    """Read a table for each record. Raises `UnreadableFileError`."""
    value = json_rows.parse_json(source)
    translator = _Translator()
    tops = value if isinstance(value, list) else [value]
    objects: dict[str, Any] = {}
    for top in tops:
        converted = translator.convert(top, "", 0)
        if isinstance(top, dict) and top.get("type") == "record":
            objects[str(top.get("name") or source.stem or "record")] = converted
    if not objects:
        raise UnreadableFileError(
            "The schema does not contain a record.",
            'It needs {"type": "record", "name": ..., "fields": [...]}.',
        )
    return json_schema.build_tables({"$defs": translator.types_by_name}, objects, "avro")


class _Translator:
    """Converts one schema. `types_by_name` are its types by their full names, for `$ref`."""

    def __init__(self) -> None:
        self.types_by_name: dict[str, Any] = {}

    def convert(self, schema: Any, parent_namespace: str, depth: int) -> dict[str, Any]:
        """Convert an Avro schema to a JSON Schema; unknown types become an empty one."""
        if depth > limits.MAX_JSON_DEPTH:
            return {}
        if isinstance(schema, str):
            if schema in _PRIMITIVES:
                return dict(_PRIMITIVES[schema])
            full = schema if "." in schema or not parent_namespace else f"{parent_namespace}.{schema}"
            known = full if full in self.types_by_name else schema
            return {"$ref": "#/$defs/" + known.replace("~", "~0").replace("/", "~1")}
        if isinstance(schema, list):  # a union: the first that is not null
            converted = next(
                (self.convert(item, parent_namespace, depth + 1) for item in schema if item != "null"),
                {"type": "null"},
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
            return _convert_decimal(schema)
        if kind in ("record", "error"):
            return self._convert_record(schema, parent_namespace, depth)
        if kind == "enum":
            symbols = [symbol for symbol in schema.get("symbols") or () if isinstance(symbol, str)]
            return self._register(schema, parent_namespace, {"type": "string", "enum": symbols})
        if kind == "array":
            return {"type": "array", "items": self.convert(schema.get("items"), parent_namespace, depth + 1)}
        if kind == "map":
            return {"type": "object"}
        if kind == "fixed":
            return self._register(schema, parent_namespace, {"type": "string", "format": "byte"})
        return self.convert(kind, parent_namespace, depth + 1)

    def _convert_record(self, schema: dict[str, Any], parent_namespace: str, depth: int) -> dict[str, Any]:
        namespace = str(schema.get("namespace") or parent_namespace)
        converted: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
        self._register(schema, parent_namespace, converted)
        for field in schema.get("fields") or ():
            if not isinstance(field, dict):
                continue
            name = str(field.get("name", ""))
            property_schema = self.convert(field.get("type"), namespace, depth + 1)
            if field.get("doc") and "$ref" not in property_schema:
                property_schema["description"] = str(field["doc"])
            converted["properties"][name] = property_schema
            is_nullable = isinstance(field.get("type"), list) and "null" in field["type"]
            if not is_nullable:
                converted["required"].append(name)
        return converted

    def _register(
        self, schema: dict[str, Any], parent_namespace: str, converted: dict[str, Any]
    ) -> dict[str, Any]:
        name = str(schema.get("name", ""))
        namespace = str(schema.get("namespace") or parent_namespace)
        self.types_by_name[name if "." in name or not namespace else f"{namespace}.{name}"] = converted
        self.types_by_name.setdefault(name, converted)
        return converted


def _convert_decimal(schema: dict[str, Any]) -> dict[str, Any]:
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
