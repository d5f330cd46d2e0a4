"""Convert JSON Schema to Python type expressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SIMPLE = {"integer": "int", "number": "float", "string": "str", "boolean": "bool", "null": "None"}


def expression(schema: Mapping[str, Any], named: bool = False) -> str:
    """Convert `{"type": "integer"}` to `int`. With `named`, references are classes of the package's types."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return name if named and name != "JsonValue" else "Any" if name == "JsonValue" else "dict[str, Any]"
    if "anyOf" in schema:
        found = list(dict.fromkeys(expression(one, named) for one in schema["anyOf"]))
        return "Any" if "Any" in found else " | ".join(found)
    if "enum" in schema:
        return f"Literal[{', '.join(repr(one) for one in schema['enum'])}]"
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(expression({**schema, "type": one}, named) for one in kind)
    if kind == "array":
        return f"list[{expression(schema.get('items', {}), named)}]"
    if kind == "object":
        inner = schema.get("additionalProperties")
        return f"dict[str, {expression(inner, named) if isinstance(inner, dict) else 'Any'}]"
    return SIMPLE.get(str(kind), "Any")
