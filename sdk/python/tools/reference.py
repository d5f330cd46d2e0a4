"""The reference of the package, from its signatures and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from typing import Any

HEAD = """# Python

Made from the docstrings of the package `rowsmith` by `sdk/python/tools/generate.py`. The way to begin is the
[guide](../guide/python.md). What calls take and answer, written `types.…` here, are the typed dictionaries of
`rowsmith.types`; their keys are those of the REST API.
"""


def page() -> str:
    """The whole page."""
    import rowsmith
    from rowsmith import error, fields, follow, pages, record, streams, template
    from rowsmith.resources.base import Resource

    api = rowsmith.Api("key", "http://127.0.0.1:1")
    out = [HEAD, *_class(rowsmith.Client, "Client"), *_class(rowsmith.Api, "Api", only=("request", "close"))]
    for name, one in vars(api).items():
        if isinstance(one, Resource):
            out += [f"### `api.{name}`\n", *_methods(type(one), prefix=f"api.{name}.")]
    out.append("## What comes back\n")
    for kind in (
        pages.Pages,
        streams.RowStream,
        streams.ByteStream,
        follow.Follower,
        follow.LogLine,
        record.Record,
    ):
        out += _class(kind, kind.__name__, level="###")
    out += [
        "## Templates\n",
        *_class(template.Template, "Template", level="###"),
        *_class(template.Field, "Field", level="###"),
    ]
    out += [*_common(template.Common), *_fields(fields.BY_TYPE)]
    out += ["## Errors\n", _paragraphs(error.__doc__ or ""), "", *_errors(error)]
    return "\n".join(out).rstrip() + "\n"


def _class(kind: type, name: str, *, only: tuple[str, ...] = (), level: str = "##") -> list[str]:
    out = [f"{level} `{name}`\n"]
    if "__init__" in vars(kind):
        out.append(f"    {name}{_signature(kind)}\n")
    out.append(_paragraphs(kind.__doc__ or "") + "\n")
    return out + _methods(kind, only=only)


def _methods(kind: type, *, prefix: str = "", only: tuple[str, ...] = ()) -> list[str]:
    out = []
    for name, method in inspect.getmembers(kind):
        plain = not name.startswith("_") and (not only or name in only)
        if plain and isinstance(method, property):
            out.append(f"- `{name}`: {_line(method.__doc__)}")
        elif plain and inspect.isfunction(method):
            out.append(f"- `{prefix}{name}{_signature(method)}`  \n  {_line(method.__doc__)}")
    return [*out, ""] if out else []


def _signature(thing: Any) -> str:
    told = str(inspect.signature(thing))
    told = re.sub(r"\(self(, )?", "(", told)
    told = re.sub(r"(: |-> )'((?:[^'\\]|\\.)*)'", r"\1\2", told)
    told = re.sub(r"\bbuiltins\.|collections\.abc\.", "", told)
    return re.sub(r" -> None$", "", told)


def _line(text: str | None) -> str:
    return " ".join(inspect.cleandoc(text or "").split())


def _paragraphs(text: str) -> str:
    return inspect.cleandoc(text)


def _common(kind: Any) -> list[str]:
    names = ", ".join(f"`{name}`" for name in kind.__annotations__)
    return [f"Keys that every field takes beside its own options: {names}.\n"]


def _fields(by_type: dict[str, type]) -> list[str]:
    out = [
        "### `rowsmith.fields`\n",
        "A class for each type of the catalogue, with its options as keywords.\n",
    ]
    out += ["| class | type | |", "|---|---|---|"]
    for name in sorted(by_type):
        told = (by_type[name].__doc__ or "").partition("\n\n")[0]
        out.append(f"| `{by_type[name].__name__}` | `{name}` | {_line(told)} |".replace("\\", "\\\\"))
    return [*out, ""]


def _errors(module: Any) -> Iterable[str]:
    kinds = [one for one in vars(module).values() if inspect.isclass(one) and issubclass(one, Exception)]
    yield "| class | |"
    yield "|---|---|"
    for kind in kinds:
        base = kind.__bases__[0].__name__
        told = f" (a {base})" if base not in ("Exception", "ServiceError") else ""
        yield f"| `{kind.__name__}`{told} | {_line(kind.__doc__)} |"
