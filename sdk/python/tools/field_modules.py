"""Generate `rowsmith.fields`: one class per type of the catalogue, one module per category."""

from __future__ import annotations

import keyword
import re
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from schema_types import expression

WIDTH = 110
HEAD = '''"""Fields of the category {category}, generated from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import {typing}

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack
'''
PACKAGE_HEAD = '''"""One class per field type, keyed by name in `BY_TYPE`. Generated from the catalogue: do not edit."""

from __future__ import annotations
'''
PACKAGE_TAIL = """
BY_TYPE: dict[str, type[Field]] = {
    kind.type_name: kind
    for kind in list(globals().values())
    if isinstance(kind, type) and issubclass(kind, Field) and kind.type_name
}
"""
_WHOLE = frozenset("ai uuid ulid url iban bic sku ssn ein cvv isbn issn upc".split())
_TAKEN = frozenset({"self", "name", "common", "type", "options", "id"})


def modules(entries: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the text of every module of the package by name."""
    by_category: dict[str, list[Mapping[str, Any]]] = {}
    for entry in sorted(entries, key=lambda item: item["name"]):
        by_category.setdefault(entry["category"], []).append(entry)
    out = {f"{category}.py": _module(category, found) for category, found in by_category.items()}
    out["__init__.py"] = _package(by_category)
    return out


def class_name(type_name: str) -> str:
    """Return the class name: `first_name` -> `FirstNameField`. Abbreviations stay uppercase: `AIField`."""
    if type_name in _WHOLE:
        return f"{type_name.upper()}Field"
    return "".join(word.capitalize() for word in type_name.split("_")) + "Field"


def _package(by_module: Mapping[str, list[Mapping[str, Any]]]) -> str:
    lines = [PACKAGE_HEAD]
    names = []
    for module in sorted(by_module):
        found = sorted(class_name(entry["name"]) for entry in by_module[module])
        names += found
        lines.append(f"from rowsmith.fields.{module} import {', '.join(found)}")
    lines.append("from rowsmith.template import Field\n")
    lines.append(f"__all__ = {sorted([*names, 'BY_TYPE', 'Field'])!r}")
    return "\n".join([*lines, PACKAGE_TAIL])


def _module(name: str, entries: list[Mapping[str, Any]]) -> str:
    classes = "\n\n".join(_class(entry) for entry in entries)
    used = ["TYPE_CHECKING", "Any"]
    if "Literal[" in classes:
        used.append("Literal")
    return HEAD.format(category=name.partition("_")[0], typing=", ".join(used)) + "\n\n" + classes


def _class(entry: Mapping[str, Any]) -> str:
    schema = entry["options_schema"]
    required = set(schema.get("required", ()))
    options = [(key, _parameter(key), part) for key, part in schema.get("properties", {}).items()]
    positional = [(key, name, part) for key, name, part in options if key in required]
    optional = [(key, name, part) for key, name, part in options if key not in required]
    # A type without required options accepts all of them as a dictionary, `NumberField("age", {"min": 18})`,
    # or as keywords.
    every = "options: Mapping[str, Any] | None = None"
    head = ["self", "name: str", *(f"{name}: {expression(part)}" for _, name, part in positional)]
    head += ["*", every] if positional else [every, "*"]
    head += [f"{name}: {expression(part)} = UNSET" for _, name, part in optional]
    if head[-1] == "*":
        head.pop()
    given = ", ".join(f'"{key}": {name}' for key, name, _ in options)
    return (
        f"class {class_name(entry['name'])}(Field):\n{_docstring(entry, options)}\n\n"
        f'    type_name = "{entry["name"]}"\n\n'
        f"    def __init__({', '.join(head)}, **common: Unpack[Common]) -> None:\n"
        f"        self._set(name, options, common, {{{given}}})\n"
    )


def _parameter(key: str) -> str:
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).lower()
    return f"{snake}_" if keyword.iskeyword(snake) or snake in _TAKEN else snake


def _docstring(entry: Mapping[str, Any], options: list[tuple[str, str, Mapping[str, Any]]]) -> str:
    text = textwrap.fill(entry["description"], WIDTH - 8)
    told = []
    for _, name, part in options:
        line = f"{name}: {part.get('description', part.get('title', name))}"
        told.append(textwrap.fill(line, WIDTH - 8, subsequent_indent="    "))
    if told:
        text += "\n\n" + "\n".join(told) + "\n"
    made = textwrap.indent(f'"""{text}', "    ").replace("\\", "\\\\")
    return made + ('    """' if told else '"""')
