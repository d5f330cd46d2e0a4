"""The catalogue of field types: the registry of the engine, as data that pages, clients and documents draw from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

from webapp.engine import groups
from webapp.engine.errors import SpecError
from webapp.engine.formulas.functions import FUNCTIONS
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse
from webapp.engine.types.base import FieldType
from webapp.engine.types.registry import REGISTRY, normalize_name
from webapp.errors import ApiError, Fault, did_you_mean
from webapp.row_templates.services import compilation

# The ranks of a match, best first: the first one that applies is used.
_EXACT, _WORD, _BEGINS, _INSIDE_NAME, _INSIDE_TEXT, _MISTYPED = range(6)
_MISTYPED_CHARS: Final = 4  # shorter words resemble too many others


def entry(kind: type[FieldType]) -> dict[str, Any]:
    """Return one type as served by `/field-types`. `capacity` is the number of distinct values with default options;
    None if it is unlimited or unknown; `lacks` is for a locale (see `with_missing_values`)."""
    return {
        "name": kind.name,
        "label": kind.label,
        "category": kind.category,
        "description": kind.description,
        "aliases": list(kind.aliases),
        "options_schema": options_schema(kind),
        "example": kind.example,
        "capacity": kind.capacity(),
        "lacks": None,
    }


def with_missing_values(items: Iterable[dict[str, Any]], locale: str) -> list[dict[str, Any]]:
    """Return types with what a locale lacks for each as `lacks`: None, or a text that says which values are missing or
    in English.

    Error: validation_error for an unknown locale.
    """
    vocabulary = compilation.vocabulary()
    known = vocabulary.resolve(locale)
    if known is None:
        hint = did_you_mean(locale, vocabulary.locales) or ""
        fault = Fault("locale", "unknown_locale", f'There is no locale "{locale}".', hint)
        raise ApiError("validation_error", details={"fields": [fault.as_dict()]})
    found = missing_values(known)
    return [{**item, "lacks": found.get(item["name"])} for item in items]


@lru_cache(maxsize=128)
def missing_values(locale: str) -> dict[str, str]:
    """Return what a locale of the present vocabulary lacks: a text by the names of the types that lack something."""
    found: dict[str, str] = {}
    for kind in (kind for kind in REGISTRY if kind.localised):
        fields = [{"name": kind.name, "type": kind.name}]
        try:
            plan = compile_plan(groups.assign(parse(fields, locale=locale)), compilation.vocabulary())
        except SpecError:
            continue  # `faker`, which requires an option
        texts = [fault.message for fault in plan.warnings if fault.code in _NO_DATA_CODES]
        if texts:
            found[kind.name] = texts[0]
    return found


_NO_DATA_CODES: Final = frozenset({"other_language", "no_values"})
"""Codes of the warnings that a locale has no values for a type, or English ones."""


@lru_cache(maxsize=1024)
def options_schema(kind: type[FieldType]) -> dict[str, Any]:
    """Return the JSON Schema of a type's options, from the model that checks them. Shared: do not change it."""
    return kind.Options.model_json_schema(by_alias=True)


@lru_cache(maxsize=1)
def entries() -> tuple[dict[str, Any], ...]:
    """Return all types, in the registry's order. Shared: do not change it."""
    return tuple(entry(kind) for kind in REGISTRY)


def functions(q: str = "") -> list[dict[str, Any]]:
    """Return the functions of formulas whose name, signature or description contains every word of `q`, in order."""
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
    """Return the types that match `q`, best match first, or all types for an empty `q`.

    The order is: an exact name, label or alias (letters and digits only, case ignored), whole words of one, the
    beginnings of words, a part of one, words of the description or category, and finally names in which each word
    of `q` has at most one typing error. A name or label comes before an alias of the same rank. `narrow` in
    static/js/app.js ranks the types of the picker in the same way.
    """
    if not q.strip():
        return list(entries())
    compact = normalize_name(q)
    words = q.casefold().replace("_", " ").split()
    matches = []
    for item in entries():
        rank = _rank(item, item["aliases"], compact, words)
        if rank is not None:
            matches.append(((rank, rank != _rank(item, (), compact, words)), item))
    return [
        item for _, item in sorted(matches, key=lambda match: match[0])
    ]  # a stable sort: else the registry's order


def _rank(item: dict[str, Any], aliases: Iterable[str], compact: str, words: list[str]) -> int | None:
    names = [item["name"], item["label"], *aliases]
    parts = [re.split(r"[\W_]+", name.casefold()) for name in names]
    if compact:
        texts = [normalize_name(name) for name in names]
        if compact in texts:
            return _EXACT
        if any(all(word in part for word in words) for part in parts):
            return _WORD
        if any(text.startswith(compact) for text in texts) or any(
            all(any(element.startswith(word) for element in part) for word in words) for part in parts
        ):
            return _BEGINS
        if any(compact in text for text in texts):
            return _INSIDE_NAME
    text = f"{item['description']} {item['category']}".casefold()
    if all(word in text for word in words):
        return _INSIDE_TEXT
    if any(all(any(is_near_match(word, element) for element in part) for word in words) for part in parts):
        return _MISTYPED
    return None


def is_near_match(typed: str, word: str) -> bool:
    """Return whether `typed` is `word` with at most one letter missing, added, wrong or swapped with the next."""
    if typed == word:
        return True
    if len(typed) < _MISTYPED_CHARS or abs(len(typed) - len(word)) > 1:
        return False
    prefix = 0
    while prefix < min(len(typed), len(word)) and typed[prefix] == word[prefix]:
        prefix += 1
    left, right = typed[prefix:], word[prefix:]
    if len(left) == len(right):
        return left[1:] == right[1:] or (left[:2] == right[1::-1] and left[2:] == right[2:])
    return left[1:] == right if len(left) > len(right) else left == right[1:]
