"""Words of enumerations in other spellings: `per-row`, `Per Row` and `PER_ROW` are all `per_row`.

A word that is not of the enumeration, however it is spelled, stays as it is: the model that checks the input rejects it
and names the nearest one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel

_BETWEEN: Final = re.compile(r"[-_ ]+")
_CHARS: Final = 100  # no word of an enumeration is longer


def plain(word: str) -> str:
    """Return a word without case, hyphens, underscores and spaces."""
    return _BETWEEN.sub("", word.casefold())


@dataclass(slots=True)
class _Words:
    """The allowed words at a key, by their normalized form, and the known keys below it."""

    words: dict[str, str | None] = field(default_factory=dict)
    below: dict[str, _Words] = field(default_factory=dict)

    def add(self, found: Iterable[str]) -> None:
        for word in found:
            key = plain(word)
            if not key:  # a sign, such as the hyphen between the parts of an address, has no other spelling
                continue
            # Two words that differ only in a hyphen (`name`, `-name`) are compared exactly.
            self.words[key] = word if self.words.get(key, word) == word else None


def canonical(model: type[BaseModel], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return an input of `model` with the words of its enumerations as the model spells them, at any depth.

    An enumeration is a `Literal` of texts. In a union of models (kinds of authentication) a key takes the words of all.
    """
    return _spelled(_words(model), given)


def _spelled(known: _Words, given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _value(known.below[key], value) if key in known.below else value for key, value in given.items()
    }


def _value(known: _Words, value: Any) -> Any:
    if isinstance(value, str):
        short = known.words and len(value) <= _CHARS and value not in known.words.values()
        return (known.words.get(plain(value)) or value) if short else value
    if isinstance(value, Mapping):
        return _spelled(known, value)
    if isinstance(value, list):
        return [_value(known, item) for item in value]
    return value


@cache
def _words(model: type[BaseModel]) -> _Words:
    known = _Words()
    for name, info in model.model_fields.items():
        here = known.below.setdefault(info.alias or name, _Words())
        _gather(info.annotation, here)
        if not here.words and not here.below:
            del known.below[info.alias or name]
    return known


def _gather(annotation: Any, into: _Words) -> None:
    """Add the allowed values of an annotation: the words of a `Literal`, the keys of models, at any depth."""
    if get_origin(annotation) is Literal:
        into.add(word for word in get_args(annotation) if isinstance(word, str))
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for key, inner in _words(annotation).below.items():
            _merge(into.below.setdefault(key, _Words()), inner)
    else:
        for part in get_args(annotation):
            _gather(part, into)


def _merge(into: _Words, other: _Words) -> None:
    into.add(word for word in other.words.values() if word is not None)
    for key, inner in other.below.items():
        _merge(into.below.setdefault(key, _Words()), inner)
