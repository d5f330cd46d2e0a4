"""Lists of words by language: this folder's own, those of the libraries, and what is made of the places."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product

import pyarrow as pa

from webapp.engine.data.extract import prose, web, work
from webapp.engine.data.extract_2 import own as second
from webapp.engine.data.extract_2.tools import lines as second_lines
from webapp.engine.data.extract_2.tools import section
from webapp.engine.data.extract_3 import own_places, places, scripts
from webapp.engine.data.extract_3.locales import FAKER, FIRST_LOCALES, LOCALES
from webapp.engine.data.extract_3.streets import OWN, ROMAN
from webapp.engine.data.extract_3.tools import fold, lines, listed, listed_by, unique

ENGLISH = "en"
_ENGLISH_COUNTRIES = ("AU", "CA", "GB", "IE", "NZ", "US")
_LARGE = 100_000
_MARKS = ("/", "*", "(")
_LONGEST_TITLE = 60
_MOST_CITIES = 60


def _own(name: str, locale: str) -> list[str] | None:
    """This folder's list of a locale, else of its language."""
    for source in ("words_own", "words_more"):
        found = listed_by(source).get(name, {})
        words = found.get(locale) or found.get(locale.partition("_")[0])
        if words:
            return words
    return None


def by_language(name: str) -> Callable[[], dict[str, list[str]]]:
    """A source of a list that this folder has in many languages."""

    def make() -> dict[str, list[str]]:
        return {locale: words for locale in LOCALES if (words := _own(name, locale))}

    return make


def positioned(name: str) -> Callable[[], pa.Table]:
    """A source of (locale, name) for a list whose order has a meaning."""

    def make() -> pa.Table:
        rows = [(locale, word) for locale in LOCALES for word in _own(name, locale) or ()]
        return pa.table({"locale": [row[0] for row in rows], "name": [row[1] for row in rows]})

    return make


def industries() -> dict[str, list[str]]:
    """Branches of business: English for all, and in the languages that have a list."""
    from webapp.engine.data.extract_2 import WORDS

    return {**{name: list(words) for name, words in WORDS["industry"]().items()}, **by_language("industry")()}


def words() -> dict[str, list[str]]:
    """Common words by locale, English for those without a list of their own."""
    made = {name: list(found) for name, found in prose.words().items()}
    for locale in LOCALES:
        if locale not in made:
            source = _own("word", locale) or _letters(
                listed("lorem", FAKER.get(locale, locale), "word_list") or []
            )
            if source:
                made[locale] = source
    return made


def _letters(source: list[str]) -> list[str]:
    return [word for word in source if word.isalpha()]


def colors() -> dict[str, list[str]]:
    """Names of colours."""
    made = {name: list(found) for name, found in web.colors().items()}
    for locale in LOCALES:
        if locale in made or locale.startswith("en"):
            continue
        found = _own("color", locale) or listed("color", FAKER.get(locale, locale), "all_colors")
        if found:
            made[locale] = list(found)
    return made


def job_titles() -> dict[str, list[str]]:
    """Those of the second extractor, and of the locales that are new; none where no list is known."""
    made = {locale: list(found) for locale, found in second.job_titles().items()}
    for locale in LOCALES:
        if locale in made or locale.startswith("en"):
            continue
        found = _own("job_title", locale) or listed("job", FAKER.get(locale, locale), "jobs") or []
        language = locale.partition("_")[0]
        kept = [
            title
            for title in unique(found)
            if len(title) <= _LONGEST_TITLE and not any(mark in title for mark in _MARKS)
        ]
        kept = kept or next((made[other] for other in made if other.startswith(f"{language}_")), [])
        if kept:
            made[locale] = kept
    return made


def company_forms() -> dict[str, list[str]]:
    """What follows the name of a company; British forms in English and where no others are known."""
    made = {locale: list(found) for locale, found in work.company_forms().items()}
    for locale in LOCALES:
        if locale in made:
            continue
        language = locale.partition("_")[0]
        found = _own("company_form", locale) or listed(
            "company", FAKER.get(locale, locale), "company_suffixes"
        )
        if found is None:
            found = next((made[other] for other in made if other.startswith(f"{language}_")), made["en_GB"])
        made[locale] = [form for form in unique(found) if not form.startswith("-")] or made["en_GB"]
    return made


def districts() -> dict[str, list[str]]:
    """Parts of towns by locale; with `OWN` behind a locale in its own script, and with `ROMAN` the same in Latin
    letters. English ones where none are known, and in place of letters that are spelled out without their vowels."""
    first: dict[str, str] = {}
    for locale in LOCALES:
        first.setdefault(locale.partition("_")[0], locale)
    made: dict[str, list[str]] = {}
    for line in second_lines("districts"):
        language, _, found = line.partition(": ")
        made[first[language]] = found.split("|")
    for line in lines("districts_own"):
        locale, _, found = line.partition(": ")
        made[locale] = found.split("|")
    scripted = own_places.scripted()
    for locale in scripted:
        if locale + OWN not in made:
            made[locale + OWN] = made[first[locale.partition("_")[0]] + OWN]
        if locale in FIRST_LOCALES and locale + ROMAN not in made:
            made[locale + ROMAN] = [scripts.titled(name, locale) for name in made[locale + OWN]]
    made[""] = made[first[ENGLISH]]
    return made


@cache
def _large_cities(locale: str) -> list[str]:
    country = locale.partition("_")[2]
    rows = places.cities_of(country)
    if locale in own_places.localised():
        names = own_places.cities(locale)()["name"].to_pylist()
    else:
        names = [city["name"] for city in rows]
    found = sorted((-city["population"], name) for city, name in zip(rows, names, strict=True) if name)
    towns = [_bare(name, locale) for _, name in found]
    return list(dict.fromkeys(towns))[:_MOST_CITIES]


def _bare(name: str, locale: str) -> str:
    """A city without the word for city."""
    if locale.startswith(("ja", "zh", "ko")) and len(name) > 2:
        return name.rstrip("市区町村县縣區시군구")
    return name


def universities() -> dict[str, list[str]]:
    """Names such as universities of the larger towns of a locale's country have, in its language; English for all."""
    table, codes = places.cities(), places.countries()["alpha2"].to_pylist()
    rows = zip(*(table[name].to_pylist() for name in ("name", "country", "population")), strict=True)
    towns = {
        name: None
        for name, country, people in rows
        if codes[country] in _ENGLISH_COUNTRIES and people >= _LARGE
    }
    made = {"": [form.format(town) for town, form in product(towns, second._SCHOOLS)]}
    for locale in LOCALES:
        forms = _own("university", locale)
        if forms:
            found = [form.format(town) for town, form in product(_large_cities(locale), forms)]
            if found:
                made[locale] = found
    return made


def banks() -> pa.Table:
    """(country alpha-2, name): those of the second extractor and this folder's, the banks of a country together."""
    rows = list(zip(*(second.banks()[name].to_pylist() for name in ("country", "name")), strict=True))
    known = {country for country, _ in rows}
    for line in lines("banks"):
        country, _, names = line.partition(": ")
        if country not in known:
            rows += [(country, name) for name in names.split("|")]
    return pa.table({"country": [row[0] for row in rows], "name": [row[1] for row in rows]})


def top_level() -> dict[str, list[str]]:
    """Top-level domains: common ones, and those of countries."""
    codes = [code.lower() for code in places.countries()["alpha2"].to_pylist() if code not in ("AQ", "XK")]
    made = list(dict.fromkeys([*section("tld"), *("uk" if code == "gb" else code for code in codes)]))
    if len({fold(name) for name in made}) != len(made):
        raise ValueError("a top-level domain is listed twice")
    return {"": made}


def street_locales() -> pa.Table:
    """(locale): those that have streets of their own beside those of their country."""
    of_country = set(places.countries()["street_locale"].to_pylist())
    names = [locale for locale in LOCALES if locale not in of_country]
    return pa.table({"locale": [*names, *(locale + OWN for locale in own_places.scripted())]})


def currency_names() -> pa.Table:
    """(locale, name): the names of the currencies, in their order, for each locale in turn."""
    from webapp.engine.data.extract import money
    from webapp.engine.data.extract_3 import cldr

    codes = money._codes()
    rows = [(locale, cldr.known(locale).currencies.get(code, code)) for locale in LOCALES for code in codes]
    return pa.table({"locale": [row[0] for row in rows], "name": [row[1] for row in rows]})
