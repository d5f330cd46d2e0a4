"""Names of people, from Faker's lists, and the same names in the letters a to z."""

from __future__ import annotations

import re
from functools import cache, lru_cache

import pyarrow as pa

from webapp.engine.data.extract.locales import FAKER, LOCALES
from webapp.engine.data.extract.romanize import letters
from webapp.engine.data.extract.tools import fold, listed, provider, unique

_NAME = re.compile(r"[^\W\d_]+(?:[ '’-][^\W\d_]+)*")
_MOST_PARTS = 4
_CHINESE_FAMILY_NAMES = 100
"""Chinese family names are taken by frequency, as far as their pinyin is known."""


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
    """(locale, word, ascii, folded): every name of the four lists, in lower-case letters a to z and without case and
    accents."""
    lists = (first_names_female(), first_names_male(), last_names_female(), last_names_male())
    rows = [
        (locale, word, _roman(word, locale), fold(word))
        for locale in LOCALES
        for word in dict.fromkeys(word for names in lists for word in names[locale])
    ]
    names = ("locale", "word", "ascii", "folded")
    return pa.table(
        {name: pa.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
    )


def _names(*attributes: str) -> dict[str, list[str]]:
    return {locale: _names_of(locale, attributes) for locale in LOCALES}


@cache
def _names_of(locale: str, attributes: tuple[str, ...]) -> list[str]:
    found = _own(locale, attributes[0]) or listed("person", FAKER.get(locale, locale), *attributes)
    if found is None:
        raise LookupError(f"Faker has no {attributes[0]} for {locale}")
    return [name for name in unique(found) if _fit(name) and _roman(name, locale)]


def _fit(name: str) -> bool:
    return bool(_NAME.fullmatch(name)) and len(name.split()) <= _MOST_PARTS


def _own(locale: str, attribute: str) -> list[str] | None:
    """Lists that Faker files otherwise than the rest."""
    if locale == "zh_CN" and attribute.startswith("last_names"):
        weights = provider("person", locale).last_names
        return sorted(weights, key=lambda name: (-weights[name], name))[:_CHINESE_FAMILY_NAMES]
    if locale == "pl_PL" and attribute.startswith("last_names"):
        source = provider("person", locale)
        declined = list(source.male_last_names)
        if attribute == "last_names_female":
            declined = [re.sub(r"(?<=[scd])ki$|(?<=dz)ki$", "ka", name) for name in declined]
        return declined + list(source.unisex_last_names)
    return None


@lru_cache(maxsize=1 << 17)
def _roman(word: str, locale: str) -> str:
    return _japanese().get(word, "") if locale == "ja_JP" else letters(word, locale)


@cache
def _japanese() -> dict[str, str]:
    """Kanji names with the reading Faker gives beside them."""
    source = provider("person", "ja_JP")
    pairs = [*source.first_name_female_pairs, *source.first_name_male_pairs, *source.last_name_pairs]
    return {unique([kanji])[0]: letters(roman, "ja_JP") for kanji, _, roman in pairs}
