"""Avro schemas (Apache Avro 1.12, "Schema Declaration") as JSON Schema: each record at the top is a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webapp import limits
from webapp.imports.readers import json_rows, json_schema
from webapp.imports.readers.base import Read, Source, Unreadable

_TIME: Final = {"type": "string", "format": "time"}
_INSTANT: Final = {"type": "string", "format": "date-time"}
_PLAIN: Final[Mapping[str, Mapping[str, Any]]] = {
    "boolean": {"type": "boolean"}, "int": {"type": "integer", "format": "int32"},
    "long": {"type": "integer", "format": "int64"}, "float": {"type": "number", "format": "float"},
    "double": {"type": "number", "format": "double"}, "string": {"type": "string"},
    "bytes": {"type": "string", "format": "byte"}, "null": {"type": "null"},
}  # fmt: skip
_LOGICAL: Final[Mapping[str, Mapping[str, Any]]] = {
    "date": {"type": "string", "format": "date"}, "uuid": {"type": "string", "format": "uuid"},
    "time-millis": _TIME, "time-micros": _TIME, "timestamp-millis": _INSTANT, "timestamp-micros": _INSTANT,
    "timestamp-nanos": _INSTANT, "local-timestamp-millis": _INSTANT, "local-timestamp-micros": _INSTANT,
}  # fmt: skip


def read(source: Source) -> Read:
    """A table for each record. Raises `Unreadable`."""
    value = json_rows.parsed(source)
    translator = _Translator()
    tops = value if isinstance(value, list) else [value]
    objects: dict[str, Any] = {}
    for one in tops:
        made = translator.of(one, "", 0)
        if isinstance(one, dict) and one.get("type") == "record":
            objects[str(one.get("name") or source.stem or "record")] = made
    if not objects:
        raise Unreadable(
            "The schema has no record.", 'It needs {"type": "record", "name": ..., "fields": [...]}.'
        )
    return json_schema.tables({"$defs": translator.named}, objects, "avro")


class _Translator:
    """One schema on its way. `named` are its types by their full names, for `$ref`."""

    def __init__(self) -> None:
        self.named: dict[str, Any] = {}

    def of(self, schema: Any, space: str, depth: int) -> dict[str, Any]:
        """An Avro schema as a JSON Schema; of what is unknown an empty one."""
        if depth > limits.MAX_JSON_DEPTH:
            return {}
        if isinstance(schema, str):
            if schema in _PLAIN:
                return dict(_PLAIN[schema])
            full = schema if "." in schema or not space else f"{space}.{schema}"
            known = full if full in self.named else schema
            return {"$ref": "#/$defs/" + known.replace("~", "~0").replace("/", "~1")}
        if isinstance(schema, list):  # a union: the first that is not null
            made = next((self.of(one, space, depth + 1) for one in schema if one != "null"), {"type": "null"})
            return {**made, "nullable": True} if "null" in schema and "$ref" not in made else made
        if not isinstance(schema, dict):
            return {}
        logical, kind = schema.get("logicalType"), schema.get("type")
        if isinstance(logical, str) and logical in _LOGICAL:
            return dict(_LOGICAL[logical])
        if logical in ("decimal", "big-decimal"):
            return _decimal(schema)
        if kind in ("record", "error"):
            return self._record(schema, space, depth)
        if kind == "enum":
            symbols = [one for one in schema.get("symbols") or () if isinstance(one, str)]
            return self._keep(schema, space, {"type": "string", "enum": symbols})
        if kind == "array":
            return {"type": "array", "items": self.of(schema.get("items"), space, depth + 1)}
        if kind == "map":
            return {"type": "object"}
        if kind == "fixed":
            return self._keep(schema, space, {"type": "string", "format": "byte"})
        return self.of(kind, space, depth + 1)

    def _record(self, schema: dict[str, Any], space: str, depth: int) -> dict[str, Any]:
        inner = str(schema.get("namespace") or space)
        made: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
        self._keep(schema, space, made)
        for one in schema.get("fields") or ():
            if not isinstance(one, dict):
                continue
            name = str(one.get("name", ""))
            found = self.of(one.get("type"), inner, depth + 1)
            if one.get("doc") and "$ref" not in found:
                found["description"] = str(one["doc"])
            made["properties"][name] = found
            blank = isinstance(one.get("type"), list) and "null" in one["type"]
            if not blank:
                made["required"].append(name)
        return made

    def _keep(self, schema: dict[str, Any], space: str, made: dict[str, Any]) -> dict[str, Any]:
        name = str(schema.get("name", ""))
        inner = str(schema.get("namespace") or space)
        self.named[name if "." in name or not inner else f"{inner}.{name}"] = made
        self.named.setdefault(name, made)
        return made


def _decimal(schema: dict[str, Any]) -> dict[str, Any]:
    scale, precision = schema.get("scale", 0), schema.get("precision", 9)
    plain = isinstance(scale, int) and isinstance(precision, int) and 0 <= scale <= precision
    scale, precision = (scale, min(precision, 15)) if plain else (2, 9)
    most = min(10 ** max(1, precision - scale) - 1, 1_000)
    return {
        "type": "number",
        "minimum": 0,
        "maximum": most,
        "multipleOf": float(f"1e-{min(scale, limits.MAX_DECIMALS)}"),
    }
