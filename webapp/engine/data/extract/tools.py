"""What every source uses: cleaning, folding, and reading Faker's lists."""

from __future__ import annotations

import importlib
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any

import pyarrow as pa

_REMEMBERED = 1 << 18
"""Words are folded and cleaned several times over while a vocabulary is built."""


@lru_cache(maxsize=_REMEMBERED)
def fold(word: str) -> str:
    """A word as databases with a forgiving collation compare it: without case, accents and outer blanks."""
    if word.isascii():
        return word.lower().strip()
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return "".join(ch for ch in decomposed if not unicodedata.combining(ch)).strip()


@lru_cache(maxsize=_REMEMBERED)
def clean(word: str) -> str:
    """A word with composed letters, single blanks, and no characters that cannot be printed."""
    if word.isascii() and word.isprintable():
        return " ".join(word.split())
    printable = "".join(ch if ch.isprintable() else " " for ch in unicodedata.normalize("NFC", word))
    return " ".join(printable.split())


def unique(words: Iterable[str]) -> list[str]:
    """The cleaned words in their order, each once: what folds to the same stands for the same."""
    kept: dict[str, str] = {}
    for word in words:
        cleaned = clean(word)
        if cleaned:
            kept.setdefault(fold(cleaned), cleaned)
    return list(kept.values())


def word_list(words: Iterable[str], name: str) -> pa.Array:
    """``words`` as one list of the vocabulary. Raises `ValueError` for a set, whose order is nobody's."""
    if isinstance(words, set | frozenset):
        raise ValueError(f"{name} comes from a set")
    kept = unique(words)
    if not kept:
        raise ValueError(f"{name} is empty")
    return pa.array(kept, pa.string())


@cache
def provider(family: str, locale: str = "") -> Any:
    """Faker's provider class of a family (``person``, ``address`` ...); the base class without a locale."""
    return importlib.import_module(f"faker.providers.{family}{'.' + locale if locale else ''}").Provider


def listed(family: str, locale: str, *attributes: str) -> list[str] | None:
    """The first of ``attributes`` that the provider of exactly this locale has, as a list; None if there is none.

    Faker keeps words as tuples, lists or ordered dictionaries of weights; the weights are not used.
    """
    try:
        source = provider(family, locale)
    except ModuleNotFoundError:
        return None
    for attribute in attributes:
        words = getattr(source, attribute, None)
        if words:
            return sorted(words) if isinstance(words, set | frozenset) else list(words)
    return None


@cache
def _faker(locale: str) -> Any:
    from faker import Faker

    return Faker(locale)


def sampled(locale: str, method: str, tries: int, **arguments: Any) -> list[str]:
    """What ``tries`` calls of one of Faker's methods give, each once, from a fixed seed."""
    source = _faker(locale)
    source.seed_instance(0)
    call = getattr(source, method)
    return unique(str(call(**arguments)) for _ in range(tries))
