"""Generate the reference of the package from its signatures and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from typing import Any

HEADS = {
    "python": """# Python

Start with the [guide](../guide/python.md). This page lists every class with its methods. [`Api`](python-api.md) and the
[field classes](python-fields.md) of `rowsmith.fields` have separate pages.
""",
    "python-api": """# Python: `Api`

Every operation of the service, for programs outside of it and for scenarios that need more than
[`Client`](python.md#client). For the types of return values, see [What comes back](python.md#what-comes-back). Members,
keys, secrets and webhooks are on [a separate page](python-workspace.md).
""",
    "python-workspace": """# Python: the workspace

The rest of [`Api`](python-api.md): members, keys, secrets, webhooks, and the service itself.
""",
    "python-fields": """# Python: field classes

One class of `rowsmith.fields` per type of the [catalogue](/docs/field-types). Its options are keywords, in addition to
the keys that [every field](python.md#field) has.
""",
}
WORKSPACE = ("workspace", "members", "teams", "projects", "api_keys", "secrets", "webhooks", "service")
MADE = """
Generated from the docstrings of the package `rowsmith` by `sdk/python/tools/generate.py`. Types of arguments and return
values, written as `types.…`, are the typed dictionaries of `rowsmith.types`; their keys are those of the REST API.
"""


def pages() -> dict[str, str]:
    """Return the pages by name."""
    groups = _groups()
    made = {
        "python": _package(),
        "python-api": [
            *_api(),
            *(line for name, lines in groups.items() if name not in WORKSPACE for line in lines),
        ],
        "python-workspace": [line for name in WORKSPACE for line in groups[name]],
        "python-fields": _fields(),
    }
    return {name: "\n".join([HEADS[name] + MADE, *parts]).rstrip() + "\n" for name, parts in made.items()}


def _package() -> list[str]:
    import rowsmith
    from rowsmith import error, follow, pages, record, streams, template

    out = [*_class(rowsmith.Client, "Client"), "## What comes back\n"]
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
        *_common(template.Common),
    ]
    return [*out, "## Errors\n", _paragraphs(error.__doc__ or ""), "", *_errors(error)]


def _api() -> list[str]:
    import rowsmith

    return _class(rowsmith.Api, "Api", only=("request", "close"))


def _groups() -> dict[str, list[str]]:
    """Return the methods of each group of `Api`, by the group's name."""
    import rowsmith
    from rowsmith.resources.base import Resource

    return {
        name: [f"## `api.{name}`\n", *_methods(type(variable), prefix=f"api.{name}.")]
        for name, variable in vars(rowsmith.Api("key", "http://127.0.0.1:1")).items()
        if isinstance(variable, Resource)
    }


def _fields() -> list[str]:
    from rowsmith import fields

    out = ["| class | type | |", "|---|---|---|"]
    for name, kind in sorted(fields.BY_TYPE.items()):
        told = (kind.__doc__ or "").partition("\n\n")[0]
        out.append(f"| `{kind.__name__}` | `{name}` | {_line(told)} |".replace("\\", "\\\\"))
    return out


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
    return [f"Keys of every field in addition to its own options: {names}.\n"]


def _errors(module: Any) -> Iterable[str]:
    kinds = [item for item in vars(module).values() if inspect.isclass(item) and issubclass(item, Exception)]
    yield "| class | |"
    yield "|---|---|"
    for kind in kinds:
        base = kind.__bases__[0].__name__
        message = f" (a {base})" if base not in ("Exception", "ServiceError") else ""
        yield f"| `{kind.__name__}`{message} | {_line(kind.__doc__)} |"
