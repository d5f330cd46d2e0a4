"""`rowsmith.types`: what the service takes and answers, as typed dictionaries made from its OpenAPI document."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from typing import Any

from schema_types import expression

_TEXTS = re.compile(r'""".*?"""', re.S)
SKIPPED = frozenset({"Error", "Fault", "JsonValue"})
"""Shapes that `rowsmith.error` speaks of, or that are no objects."""
LINES = 330
"""Lines of a module before formatting; the shapes go on in the next."""
HEAD = '''"""Shapes of the API from {first} to {last}, made from its OpenAPI document: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired
'''

PACKAGE_HEAD = '''"""What the API takes and answers, made from its OpenAPI document: do not edit."""

from __future__ import annotations
'''


def modules(document: Mapping[str, Any]) -> dict[str, str]:
    """Name and text of every module of the package."""
    schemas = {k: v for k, v in sorted(document["components"]["schemas"].items()) if k not in SKIPPED}
    texts = {name: _shape(name, schema) for name, schema in schemas.items()}
    groups: list[list[str]] = [[]]
    size = 0
    for name, text in texts.items():
        size += text.count("\n") + 2
        if size > LINES and groups[-1]:
            groups.append([])
            size = text.count("\n") + 2
        groups[-1].append(name)
    out = {}
    where = {}
    for number, group in enumerate(groups, 1):
        where.update(dict.fromkeys(group, f"part{number}"))
    for number, group in enumerate(groups, 1):
        body = "\n\n".join(texts[name] for name in group)
        out[f"part{number}.py"] = _head(group, body, where, f"part{number}") + "\n\n" + body
    out["__init__.py"] = _package(groups)
    return out


def _head(group: list[str], body: str, where: Mapping[str, str], own: str) -> str:
    head = HEAD.format(first=group[0], last=group[-1])
    words = ["TYPE_CHECKING", *(n for n in ("Any", "Literal") if _used(n, body)), "TypedDict"]
    head = head.replace("TYPE_CHECKING, Any, Literal, TypedDict", ", ".join(words))
    others = [name for name, module in where.items() if module != own and _used(name, body)]
    lines = (f"    from rowsmith.types.{where[name]} import {name}\n" for name in sorted(others))
    head += "".join(lines)
    if "NotRequired[" not in body:
        head = head.replace("    from typing_extensions import NotRequired\n", "" if others else "    pass\n")
    return head


def _used(name: str, text: str) -> bool:
    return re.search(rf"(?<![A-Za-z_.]){name}(?![A-Za-z_])", _TEXTS.sub("", text)) is not None


def _package(groups: list[list[str]]) -> str:
    lines = [PACKAGE_HEAD]
    lines += [
        f"from rowsmith.types.part{n} import {', '.join(sorted(group))}" for n, group in enumerate(groups, 1)
    ]
    names = sorted(name for group in groups for name in group)
    return "\n".join([*lines, "", f"__all__ = {names!r}", ""])


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
