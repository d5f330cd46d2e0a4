"""Names of people, from Faker's lists."""

from __future__ import annotations

from webapp.engine.data.extract.locales import FAKER, LOCALES
from webapp.engine.data.extract.tools import listed


def _names(*attributes: str) -> dict[str, list[str]]:
    made = {}
    for locale in LOCALES:
        found = listed("person", FAKER.get(locale, locale), *attributes)
        if found is None:
            raise LookupError(f"Faker has no {attributes[0]} for {locale}")
        made[locale] = found
    return made


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
