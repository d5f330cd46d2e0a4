"""Names that the editor of scenarios completes: those of the Python SDK, read from its source.

The source is parsed, never run, so what is offered is what a program will find, and costs nothing until it is asked
for.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import keyword
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from webapp import ROOT
from webapp.views.reply import json_reply

SOURCE: Final = ROOT / "sdk" / "python" / "src" / "rowsmith"
INJECTED: Final = (
    "SERVICE_API_KEY",
    "SERVICE_API_URL",
    "SERVICE_PROJECT_ID",
    "SERVICE_TEAM_ID",
    "SERVICE_SCENARIO_ID",
    "SERVICE_WORKSPACE_UPLOADS",
    "SERVICE_WORKSPACE_OUTPUTS",
)
"""Specification, Scenario runtime: variables of every run."""
_CLIENT: Final = "Client"
_OFFERED: Final = frozenset({"api", "client", "error", "fields", "template"})
"""Parts of the package that a program names; the others lie under these."""
_NOT_OFFERED: Final = frozenset({"self", "cls", "common"})


@lru_cache(maxsize=1)
def found() -> dict[str, Any]:
    """`{client, names, words}`: the client's methods and the package's classes, each `{name, args, doc}`, and Python's
    own words. Empty where the SDK is not beside the service."""
    client: list[dict[str, str]] = []
    names: list[dict[str, str]] = []
    for path in sorted(SOURCE.rglob("*.py")):
        if path.relative_to(SOURCE).parts[0].removesuffix(".py") not in _OFFERED:
            continue
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                if node.name == _CLIENT:
                    client = [_told(one) for one in _methods(node)]
                names.append(_class(node, path))
    ordered = sorted({one["name"]: one for one in names}.values(), key=lambda one: one["name"])
    plain = [one for one in dir(builtins) if not one.startswith("_")]
    return {"client": client, "names": ordered, "words": sorted({*keyword.kwlist, *plain})}


def mark() -> str:
    """What tells these names from those of another release, for their address."""
    return _mark()


@lru_cache(maxsize=1)
def _mark() -> str:
    return hashlib.blake2b(json_reply(found()).get_data(), digest_size=5).hexdigest()


def _methods(node: ast.ClassDef) -> Iterator[ast.FunctionDef]:
    for one in node.body:
        if isinstance(one, ast.FunctionDef) and not one.name.startswith("_"):
            yield one


def _told(node: ast.FunctionDef) -> dict[str, str]:
    return {"name": node.name, "args": _arguments(node), "doc": _first(node)}


def _class(node: ast.ClassDef, path: Path) -> dict[str, str]:
    made = next(
        (one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None
    )
    module = ".".join(("rowsmith", *path.relative_to(SOURCE).with_suffix("").parts))
    place = module.removesuffix(".__init__")
    if place.startswith("rowsmith.fields"):
        place = "rowsmith.fields"
    return {"name": node.name, "args": _arguments(made) if made else "", "doc": _first(node), "from": place}


def _arguments(node: ast.FunctionDef) -> str:
    """The arguments that a caller gives, without their types: `template, quantity=…`."""
    told = node.args
    plain = [one.arg for one in (*told.posonlyargs, *told.args)]
    needed = len(plain) - len(told.defaults)
    made = [name if place < needed else f"{name}=…" for place, name in enumerate(plain)]
    made += [
        one.arg if default is None else f"{one.arg}=…"
        for one, default in zip(told.kwonlyargs, told.kw_defaults, strict=True)
    ]
    return ", ".join(one for one in made if one.removesuffix("=…") not in _NOT_OFFERED)


def _first(node: ast.ClassDef | ast.FunctionDef) -> str:
    """The first sentence of its documentation."""
    told = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
    return told[:160]
