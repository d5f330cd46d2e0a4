"""Street names: in Latin letters for each locale, and in its own script where it has another one.

Lists of a locale's own script are filed under the locale with `OWN` behind it, since rows without a locale, and those
that are `romanized`, have the names in Latin letters.
"""

from __future__ import annotations

from collections.abc import Iterable

from webapp.engine.data.extract import streets as first
from webapp.engine.data.extract_3 import own_places, scripts
from webapp.engine.data.extract_3.locales import LOCALES
from webapp.engine.data.extract_3.people import last_names_male
from webapp.engine.data.extract_3.tools import lines, listed, sampled, unique

OWN, ROMAN = "@own", "@roman"
MOST = 800
_LONGEST = 40
_LATIN_WORDS = ("{} Street", "{} Road", "{} Avenue")


def streets() -> dict[str, list[str]]:
    """{locale, with `OWN` behind it for its own script: street names}."""
    made: dict[str, list[str]] = dict(first.streets())
    for locale in LOCALES:
        if locale not in made:
            made[locale] = _fit(_latin(locale))[:MOST]
    for locale in own_places.scripted():
        made[locale + OWN] = _fit(_own(locale))[:MOST]
    return made


def _fit(names: Iterable[str]) -> list[str]:
    return [name for name in unique(names) if len(name) <= _LONGEST and not any(ch in name for ch in ",;/")]


def _crossed(names: Iterable[str], patterns: Iterable[str]) -> list[str]:
    names = list(names)
    return [pattern.format(name) for pattern in patterns for name in names]


def _latin(locale: str) -> list[str]:
    names = last_names_male()[locale]
    if locale.partition("_")[0] not in own_places.OWN_SCRIPT:
        return _crossed(names, own_places.street_patterns(locale))
    if locale == "zh_TW":
        return _crossed([scripts.titled(name, locale) for name in _listed(locale)], ("{} Rd.", "{} St."))
    return _crossed([scripts.titled(name, locale) for name in names], _LATIN_WORDS)


def _listed(locale: str) -> list[str]:
    for line in lines("streets_own"):
        of, _, names = line.partition(": ")
        if of == locale:
            return names.split("|")
    return []


def _own(locale: str) -> list[str]:
    match locale:
        case "ru_RU":
            return sampled(locale, "street_name", 2 * MOST)
        case "uk_UA":
            titles = listed("address", locale, "street_titles") or []
            return [f"вулиця {title}" for title in titles if not any(ch.isdigit() for ch in title)]
        case "el_GR":
            return [f"Οδός {name}" for name in sampled(locale, "street", 2 * MOST)]
        case "bg_BG":
            return _crossed(_listed(locale), ("ул. {}", "бул. {}"))
        case "ko_KR":
            names = listed("address", locale, "road_names") or []
            return _crossed(
                [name for name in names if all("가" <= ch <= "힣" for ch in name)], ("{}로", "{}길")
            )
    names = _listed(locale) or last_names_male()[locale]
    return _crossed(names, own_places.street_patterns(locale))
