"""Generate src/types.ts, the inputs and outputs of the API, from the OpenAPI document of the service.

.venv/bin/python sdk/typescript/tools/generate.py [--check]

Run it with the Python environment of the service. `--check` writes nothing and exits with status 1 if the file is out
of date.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

HERE = Path(__file__).resolve().parent
TYPES = HERE.parent / "src" / "types.ts"
sys.path[:0] = [str(HERE.parents[2])]

HEAD: Final = (
    "// Inputs and outputs of the API, generated from its OpenAPI document by tools/generate.py: do not edit.\n"
)
SKIPPED: Final = frozenset({"Error", "Fault", "JsonValue"})
"""Schemas that src/errors.ts covers, or that are not objects."""
SIMPLE: Final = {
    "integer": "number",
    "number": "number",
    "string": "string",
    "boolean": "boolean",
    "null": "null",
}
Schema = Mapping[str, Any]


def document() -> dict[str, Any]:
    """Return the OpenAPI document of the application without opening any connection."""
    from webapp import create_app
    from webapp.config import Settings
    from webapp.web import openapi

    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            database_url=f"sqlite:///{folder}/none.db",
            redis_url="redis://127.0.0.1:1/0",
            secret_key=secrets.token_urlsafe(32),
            vault_keys=(base64.b64encode(secrets.token_bytes(32)).decode(),),
            data_dir=Path(folder),
        )
        return openapi.build(create_app(settings), "0")


def text(described: Schema) -> str:
    """Return the whole file. `described` is the OpenAPI document."""
    schemas = dict(described["components"]["schemas"])
    for part in list(_inner(schemas)):  # nested schemas, such as a template's field
        schemas.setdefault(part["title"], part)
    names = frozenset(schemas) - SKIPPED
    shapes = [_shape(name, schemas[name], names) for name in sorted(names)]
    return "\n".join([HEAD, *shapes])


def _inner(node: Any, depth: int = 0) -> Iterator[Schema]:
    """Yield objects with properties and a title, anywhere below the named schemas."""
    if isinstance(node, Mapping):
        if depth > 1 and isinstance(node.get("title"), str) and node.get("properties"):
            yield node
        for part in node.values():
            yield from _inner(part, depth + 1)
    elif isinstance(node, list):
        for part in node:
            yield from _inner(part, depth + 1)


def _shape(name: str, schema: Schema, names: frozenset[str]) -> str:
    lines = _comment(schema.get("description"), "")
    if not schema.get("properties"):
        return "\n".join([*lines, f"export type {name} = {expression(schema, names)};\n"])
    required = frozenset(schema.get("required", ()))
    lines.append(f"export interface {name} {{")
    for key, part in schema["properties"].items():
        lines += _comment(part.get("description"), "  ")
        called = key if re.fullmatch(r"[A-Za-z_]\w*", key) else json.dumps(key)
        lines.append(f"  {called}{'' if key in required else '?'}: {expression(part, names)};")
    if schema.get("additionalProperties") is True:
        lines.append("  [other: string]: unknown;")
    return "\n".join([*lines, "}\n"])


def expression(schema: Schema, names: frozenset[str]) -> str:
    """Convert `{"type": "integer"}` to `number`. `names` are the schemas that can be referenced."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return name if name in names else "unknown"
    if "anyOf" in schema:
        found = list(dict.fromkeys(expression(one, names) for one in schema["anyOf"]))
        return "unknown" if "unknown" in found else " | ".join(found)
    if "enum" in schema:
        return " | ".join(json.dumps(one) for one in schema["enum"])
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(expression({**schema, "type": one}, names) for one in kind)
    if kind == "array":
        inner = expression(schema.get("items", {}), names)
        return f"({inner})[]" if " | " in inner else f"{inner}[]"
    if kind == "object":
        return _object(schema, names)
    return SIMPLE.get(str(kind), "unknown")


def _object(schema: Schema, names: frozenset[str]) -> str:
    if schema.get("properties"):
        if schema.get("title") in names:
            return str(schema["title"])
        required = frozenset(schema.get("required", ()))
        parts = (
            f"{json.dumps(key)}{'' if key in required else '?'}: {expression(part, names)}"
            for key, part in schema["properties"].items()
        )
        return "{ " + "; ".join(parts) + " }"
    inner = schema.get("additionalProperties")
    # A JSON object without a schema: callers read its values, so they must not be `unknown`.
    return f"Record<string, {expression(inner, names) if isinstance(inner, Mapping) and inner else 'any'}>"


def _comment(told: Any, indent: str) -> list[str]:
    line = str(told or "").strip().partition("\n")[0].replace("*/", "* /")
    return [f"{indent}/** {line} */"] if line else []


def main(arguments: list[str]) -> int:
    """Write the files, or with `--check` only report."""
    wanted = text(document())
    if TYPES.is_file() and TYPES.read_text("utf-8") == wanted:
        return 0
    print(TYPES.relative_to(HERE.parents[2]))
    if "--check" in arguments:
        return 1
    TYPES.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
