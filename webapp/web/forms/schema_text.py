"""A model's keys in words, for the documents: name, type, default, meaning."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

Schema = Mapping[str, Any]
_WORDS = {"integer": "whole number", "boolean": "true or false", "string": "text", "null": "null"}


def options(model: type[BaseModel]) -> list[dict[str, Any]]:
    """`{name, kind, default, text, required}` of every key of a model."""
    return keys(model.model_json_schema(by_alias=True))


def keys(schema: Schema) -> list[dict[str, Any]]:
    """The same of an object's JSON Schema."""
    required = schema.get("required", ())
    found = []
    for name, part in schema.get("properties", {}).items():
        default = part.get("default")
        found.append(
            {
                "name": name,
                "kind": kind(part, schema.get("$defs", {})),
                "default": "" if default is None else json.dumps(default, ensure_ascii=False),
                "text": part.get("description", ""),
                "required": name in required,
            }
        )
    return found


def kind(schema: Schema, defs: Schema) -> str:
    """A schema in a few words: `whole number, 0 to 10`, `a, b or c`, `list of text`."""
    if "$ref" in schema:
        return kind(defs[schema["$ref"].rsplit("/", 1)[1]], defs)
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            parts = [kind(one, defs) for one in schema[key] if one.get("type") != "null"]
            return " or ".join(dict.fromkeys(parts))
    if "enum" in schema or "const" in schema:
        return " or ".join(
            json.dumps(one, ensure_ascii=False) for one in schema.get("enum", [schema.get("const")])
        )
    name: str = schema.get("type", "any")
    if name == "array":
        return f"list of {kind(schema.get('items', {}), defs)}" + _sizes(
            schema, "minItems", "maxItems", " values"
        )
    if name == "object":
        inner = schema.get("properties")
        return "object with " + ", ".join(inner) if inner else "object"
    return _WORDS.get(name, name) + _bounds(schema)


def _bounds(schema: Schema) -> str:
    if schema.get("type") == "string":
        return _sizes(schema, "minLength", "maxLength", " characters")
    low, high, above = (_told(schema.get(key)) for key in ("minimum", "maximum", "exclusiveMinimum"))
    if above:
        return f", more than {above}" + (f", at most {high}" if high else "")
    if low and high:
        return f", {low} to {high}"
    if low:
        return f", at least {low}"
    return f", at most {high}" if high else ""


def _told(bound: float | None) -> str:
    """Return a bound in digits; "" without a bound, and for bounds that are meaningless for users, such as those of 64
    bits."""
    if bound is None or abs(bound) >= 1e9:
        return ""
    return f"{int(bound):,}" if bound == int(bound) else f"{bound:,}"


def _sizes(schema: Schema, least: str, most: str, unit: str = "") -> str:
    low, high = schema.get(least), schema.get(most)
    if low and high:
        return f", {low:,}{unit}" if low == high else f", {low:,} to {high:,}{unit}"
    if high:
        return f", at most {high:,}{unit}"
    return f", at least {low:,}{unit}" if low else ""
