"""Lenient JSON input: `5.0` is the integer 5, and `per-row`, `Per Row` and `PER_ROW` are the word `per_row`.

JSON has only one kind of number, and JSON Schema treats every number without a fraction as an integer (draft 2020-12,
validation, 6.1.1); programs in languages that only have doubles write 5.0. pydantic distinguishes them, so JSON input
is validated by models derived from `Model`: `5` and `5.0` are the same integer, `5.5`, `"5"` and `true` are not
integers. Arrays in these models also have a maximum length: `limits.MAX_JSON_ELEMENTS`, unless a model sets its own.

`canonicalize_enums` replaces the words of enumerations by the spelling of the model. A word that is not in the
enumeration is left unchanged: the model that validates the input rejects it and names the closest one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel, GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticKnownError, core_schema

from webapp import limits


def lenient_integer(value: Any) -> Any:
    """Return a number without a fraction as int, and all other values unchanged, to be validated by the model."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def strict_integer(value: Any) -> Any:
    """Like `lenient_integer`, and reject other types here, for models that are not strict."""
    found = lenient_integer(value)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise PydanticKnownError("int_type")
    return found


_NOT_VALIDATED: Final = frozenset({"metadata", "serialization", "default"})


def _patched_schema(source: Any, handler: GetCoreSchemaHandler, read: Any) -> CoreSchema:
    schema = handler(source)
    _patch_integers(handler.resolve_ref_schema(schema), read)
    return schema


def _patch_integers(node: Any, read: Any) -> None:
    """Insert the validator `read` before every integer below a node of pydantic's schema, and limit its arrays."""
    items: list[tuple[Any, Any]] = []
    if isinstance(node, dict):
        if node.get("type") in ("list", "set") and node.get("max_length") is None:
            node["max_length"] = limits.MAX_JSON_ELEMENTS  # each can have errors
        if node.get("type") == "function-before" and node["function"]["function"] in (
            lenient_integer,
            strict_integer,
        ):
            return
        items = [(key, item) for key, item in node.items() if key not in _NOT_VALIDATED]
    elif isinstance(node, list):
        items = list(enumerate(node))
    for key, item in items:
        if isinstance(item, dict) and item.get("type") == "int":
            node[key] = core_schema.no_info_before_validator_function(read, item)
        else:
            _patch_integers(item, read)


class Model(BaseModel):
    """A model that accepts 5.0 for `int`."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return _patched_schema(source, handler, lenient_integer)


class ExactModel(BaseModel):
    """A model that accepts 5.0 for `int`, but neither texts nor true, although it is not strict otherwise."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return _patched_schema(source, handler, strict_integer)


# --- Words of enumerations ----------------------------------------------------------------------------------

_SEPARATORS: Final = re.compile(r"[-_ ]+")
_MAX_WORD_CHARS: Final = 100  # no word of an enumeration is longer


def normalize_word(word: str) -> str:
    """Return a word without case, hyphens, underscores and spaces."""
    return _SEPARATORS.sub("", word.casefold())


@dataclass(slots=True)
class _EnumWords:
    """The allowed words at a key, by their normalized form, and the known keys below it."""

    spellings: dict[str, str | None] = field(default_factory=dict)
    nested: dict[str, _EnumWords] = field(default_factory=dict)

    def add(self, found: Iterable[str]) -> None:
        for word in found:
            key = normalize_word(word)
            if not key:  # a sign, such as the hyphen between the parts of an address, has no other spelling
                continue
            # Two words that differ only in a hyphen (`name`, `-name`) are compared exactly.
            self.spellings[key] = word if self.spellings.get(key, word) == word else None


def canonicalize_enums(model: type[BaseModel], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return an input of `model` with the words of its enumerations as the model spells them, at any depth.

    An enumeration is a `Literal` of texts. In a union of models (kinds of authentication) a key takes the words of all.
    """
    return _canonical_object(_enum_words(model), values)


def _canonical_object(known: _EnumWords, values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _canonical_value(known.nested[key], value) if key in known.nested else value
        for key, value in values.items()
    }


def _canonical_value(known: _EnumWords, value: Any) -> Any:
    if isinstance(value, str):
        is_candidate = (
            known.spellings and len(value) <= _MAX_WORD_CHARS and value not in known.spellings.values()
        )
        return (known.spellings.get(normalize_word(value)) or value) if is_candidate else value
    if isinstance(value, Mapping):
        return _canonical_object(known, value)
    if isinstance(value, list):
        return [_canonical_value(known, item) for item in value]
    return value


@cache
def _enum_words(model: type[BaseModel]) -> _EnumWords:
    known = _EnumWords()
    for name, info in model.model_fields.items():
        words = known.nested.setdefault(info.alias or name, _EnumWords())
        _collect_words(info.annotation, words)
        if not words.spellings and not words.nested:
            del known.nested[info.alias or name]
    return known


def _collect_words(annotation: Any, target: _EnumWords) -> None:
    """Add the allowed values of an annotation: the words of a `Literal`, the keys of models, at any depth."""
    if get_origin(annotation) is Literal:
        target.add(word for word in get_args(annotation) if isinstance(word, str))
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for key, inner in _enum_words(annotation).nested.items():
            _merge(target.nested.setdefault(key, _EnumWords()), inner)
    else:
        for part in get_args(annotation):
            _collect_words(part, target)


def _merge(target: _EnumWords, other: _EnumWords) -> None:
    target.add(word for word in other.spellings.values() if word is not None)
    for key, inner in other.nested.items():
        _merge(target.nested.setdefault(key, _EnumWords()), inner)
