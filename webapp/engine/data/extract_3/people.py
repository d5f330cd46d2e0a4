"""Names of people, from Faker's lists and this folder's own, and the same names in the letters a to z."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache

import pyarrow as pa

from webapp.engine.data.extract.people import _own as first_own
from webapp.engine.data.extract_3 import japanese, scripts
from webapp.engine.data.extract_3.locales import FAKER, LOCALES, OWN_SCRIPT
from webapp.engine.data.extract_3.tools import fold, listed, listed_by, unique

_MOST_PARTS = 4
_SIGNS = {"Mn", "Mc"}
_BETWEEN = " '’‘ʻ-·"
_JAPANESE = {
    "first_names_female": "female", "first_names_male": "male", "last_names_female": "family",
    "last_names_male": "family",
}  # fmt: skip


def first_names_female() -> dict[str, list[str]]:
    """Given names of women."""
    return _names("first_names_female")


def first_names_male() -> dict[str, list[str]]:
    """Given names of men."""
    return _names("first_names_male")


def last_names_female() -> dict[str, list[str]]:
    """Family names as women bear them."""
    return _names("last_names_female", "last_names")


def last_names_male() -> dict[str, list[str]]:
    """Family names as men bear them."""
    return _names("last_names_male", "last_names")


def romanized() -> pa.Table:
    """(locale, word, ascii, folded, roman): every name of the four lists, in lower-case letters a to z, without case
    and accents, and in Latin letters as it is written in a passport."""
    lists = (first_names_female(), first_names_male(), last_names_female(), last_names_male())
    rows = [
        (locale, word, _roman(word, locale), fold(word), _titled(word, locale))
        for locale in LOCALES
        for word in dict.fromkeys(word for names in lists for word in names[locale])
    ]
    names = ("locale", "word", "ascii", "folded", "roman")
    columns = zip(names, zip(*rows, strict=True), strict=True)
    return pa.table({name: pa.array(column) for name, column in columns})


def kana() -> pa.Table:
    """(word, hiragana, katakana) of every Japanese name."""
    lists = (first_names_female(), first_names_male(), last_names_male())
    words = list(dict.fromkeys(word for names in lists for word in names["ja_JP"]))
    readings = [japanese.readings()[word] for word in words]
    return pa.table(
        {"word": words, "hiragana": readings, "katakana": [japanese.katakana(text) for text in readings]}
    )


def _names(*attributes: str) -> dict[str, list[str]]:
    return {locale: _names_of(locale, attributes) for locale in LOCALES}


@cache
def _names_of(locale: str, attributes: tuple[str, ...]) -> list[str]:
    found = _own(locale, attributes) or listed("person", FAKER.get(locale, locale), *attributes)
    if found is None:
        raise LookupError(f"There is no list of {attributes[0]} for {locale}")
    return [name for name in unique(found) if _fit(name) and _roman(name, locale)]


def _own(locale: str, attributes: tuple[str, ...]) -> list[str] | None:
    """This folder's lists, and those that Faker files otherwise than the rest."""
    if locale == "ja_JP":
        return [name for name, _ in japanese.pairs(_JAPANESE[attributes[0]])]
    language = locale.partition("_")[0]
    known = listed_by("names")
    for attribute in attributes:
        words = known.get(attribute.replace("names", "name"), {})
        found = words.get(locale) or words.get({"fil": "en_PH"}.get(language, ""))
        if found:
            return found
    if locale == "zh_TW" and attributes[0].startswith("last"):
        return [
            name for name in listed("person", locale, "last_names") or [] if scripts.letters(name, locale)
        ]
    return first_own(locale, attributes[0])


def _fit(name: str) -> bool:
    """Whether a name is made of letters alone, with the signs that its script adds, and few parts."""
    if not name[:1].isalpha() or len(name.split()) > _MOST_PARTS or name[-1] in _BETWEEN:
        return False
    return all(
        ch.isalpha() or unicodedata.category(ch) in _SIGNS or ch in _BETWEEN or ch in "\u200c\u200d"
        for ch in name
    ) and not re.search(r"[ '’-]{2}", name)


@lru_cache(maxsize=1 << 17)
def _roman(word: str, locale: str) -> str:
    return scripts.letters(word, locale)


def _titled(word: str, locale: str) -> str:
    return (
        word if word.isascii() or locale.partition("_")[0] not in OWN_SCRIPT else scripts.titled(word, locale)
    )
