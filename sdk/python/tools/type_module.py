"""Generate `rowsmith.types`: the inputs and outputs of the service as typed dictionaries, from its OpenAPI
document."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from typing import Any

from schema_types import expression

_TEXTS = re.compile(r'""".*?"""', re.S)
SKIPPED = frozenset({"Error", "Fault", "JsonValue"})
"""Schemas that `rowsmith.error` covers, or that are not objects."""
HEAD = '''"""Inputs and outputs of the API, generated from its OpenAPI document: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired
'''


def module(document: Mapping[str, Any]) -> str:
    """Return the text of the module."""
    schemas = {k: v for k, v in sorted(document["components"]["schemas"].items()) if k not in SKIPPED}
    body = "\n\n".join(_shape(name, schema) for name, schema in schemas.items())
    names = ["TYPE_CHECKING", *(name for name in ("Any", "Literal") if _used(name, body)), "TypedDict"]
    head = HEAD.replace("TYPE_CHECKING, Any, Literal, TypedDict", ", ".join(names))
    return f"{head}\n__all__ = {sorted(schemas)!r}\n\n\n{body}"


def _used(name: str, text: str) -> bool:
    return re.search(rf"(?<![A-Za-z_.]){name}(?![A-Za-z_])", _TEXTS.sub("", text)) is not None


def _shape(name: str, schema: Mapping[str, Any]) -> str:
    required = set(schema.get("required", ()))
    text = str(schema.get("description") or name).partition("\n")[0].strip().replace('"""', "")
    text = text.replace("\\", "\\\\")
    pairs = []
    for key, part in schema.get("properties", {}).items():
        kind = expression(part, named=True)
        pairs.append((key, kind if key in required else f"NotRequired[{kind}]"))
    if any(keyword.iskeyword(key) or not key.isidentifier() for key, _ in pairs):
        inner = ", ".join(f'"{key}": "{kind}"' for key, kind in pairs)
        return f'{name} = TypedDict("{name}", {{{inner}}})\n"""{text}"""\n'
    lines = [f"class {name}(TypedDict):", f'    """{text}"""', ""]
    lines += [f"    {key}: {kind}" for key, kind in pairs]
    return "\n".join(lines) + "\n"
