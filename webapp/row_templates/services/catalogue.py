"""The catalogue of field types: the registry of the engine, as data that pages, clients and documents draw from."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from webapp.engine.formulas.functions import FUNCTIONS
from webapp.engine.types.base import FieldType
from webapp.engine.types.registry import REGISTRY, plain

# How well a word fits a type: the first of these that it fits decides, earlier is better.
_EXACT, _BEGINS, _INSIDE_NAME, _INSIDE_TEXT = range(4)


def entry(kind: type[FieldType]) -> dict[str, Any]:
    """Return one type as served by `/field-types`. `capacity` is the number of distinct values with default options;
    None if it is unlimited or unknown."""
    return {
        "name": kind.name,
        "label": kind.label,
        "category": kind.category,
        "description": kind.description,
        "aliases": list(kind.aliases),
        "options_schema": options_schema(kind),
        "example": kind.example,
        "capacity": kind.capacity(),
    }


@lru_cache(maxsize=1024)
def options_schema(kind: type[FieldType]) -> dict[str, Any]:
    """The JSON Schema of a type's options, from the model that checks them. Shared: do not change it."""
    return kind.Options.model_json_schema(by_alias=True)


@lru_cache(maxsize=1)
def entries() -> tuple[dict[str, Any], ...]:
    """Every type, in the registry's order. Shared: do not change it."""
    return tuple(entry(kind) for kind in REGISTRY)


def functions(q: str = "") -> list[dict[str, Any]]:
    """The functions of formulas whose name, signature or description holds every word of `q`, in their order."""
    words = q.casefold().split()
    return [
        function
        for function in _functions()
        if all(
            word in f"{function['name']} {function['signature']} {function['description']}".casefold()
            for word in words
        )
    ]


@lru_cache(maxsize=1)
def _functions() -> tuple[dict[str, Any], ...]:
    return tuple(item.as_dict() for item in FUNCTIONS)


def search(q: str = "") -> list[dict[str, Any]]:
    """The types that fit `q`, best first: by name, label or alias (letters and digits only, case ignored), else
    by every word of `q` standing in the description or category. All of them for an empty `q`."""
    if not q.strip():
        return list(entries())
    wanted = plain(q)
    words = q.casefold().split()
    ranked = [(_rank(item, wanted, words), item) for item in entries()]
    fits = [(rank, item) for rank, item in ranked if rank is not None]
    return [
        item for _, item in sorted(fits, key=lambda one: one[0])
    ]  # a stable sort: else the registry's order


def _rank(item: dict[str, Any], wanted: str, words: list[str]) -> int | None:
    names = [plain(name) for name in (item["name"], item["label"], *item["aliases"])]
    if wanted:
        if wanted in names:
            return _EXACT
        if any(name.startswith(wanted) for name in names):
            return _BEGINS
        if any(wanted in name for name in names):
            return _INSIDE_NAME
    text = f"{item['description']} {item['category']}".casefold()
    return _INSIDE_TEXT if all(word in text for word in words) else None
