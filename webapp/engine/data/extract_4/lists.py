"""Lists of words by language: those of the third extractor, and this folder's own."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pyarrow as pa

from webapp.engine.data import extract_3
from webapp.engine.data.extract_3 import cldr
from webapp.engine.data.extract_3 import lists as third
from webapp.engine.data.extract_3.locales import LOCALES
from webapp.engine.data.extract_4.tools import lines, listed_by


def _own(name: str, locale: str) -> list[str] | None:
    """This folder's list of a locale, else of its language."""
    found = listed_by("words").get(name, {})
    return found.get(locale) or found.get(locale.partition("_")[0])


def _with_own(name: str) -> dict[str, list[str]]:
    made = {locale: list(words) for locale, words in extract_3.WORDS[name]().items()}
    return {**made, **{locale: words for locale in LOCALES if (words := _own(name, locale))}}


def words() -> dict[str, list[str]]:
    """Common words by locale."""
    return _with_own("word")


def colors() -> dict[str, list[str]]:
    """Names of colours."""
    return _with_own("color")


def job_titles() -> dict[str, list[str]]:
    """Titles by locale."""
    return _with_own("job_title")


def company_forms() -> dict[str, list[str]]:
    """What follows the name of a company."""
    return _with_own("company_form")


def industries() -> dict[str, list[str]]:
    """Branches of business."""
    return _with_own("industry")


def universities() -> dict[str, list[str]]:
    """Names such as universities of the larger towns of a locale's country have, in its language."""
    made = {locale: list(names) for locale, names in extract_3.WORDS["university"]().items()}
    for locale in LOCALES:
        forms = _own("university", locale)
        if forms:
            towns = third._large_cities(locale)
            found = [form.format(town) if "{}" in form else form for town, form in product(towns, forms)]
            made[locale] = list(dict.fromkeys(found))
    return made


def departments() -> pa.Table:
    """(locale, name): departments in the order of the English list."""
    found = extract_3.TABLES["local_department"]()
    rows = list(zip(found["locale"].to_pylist(), found["name"].to_pylist(), strict=True))
    own = {locale: words for locale in LOCALES if (words := _own("department", locale))}
    rows = [row for row in rows if row[0] not in own]
    rows += [(locale, word) for locale, words in own.items() for word in words]
    return pa.table({"locale": [row[0] for row in rows], "name": [row[1] for row in rows]})


_CONTINENTS = ("002", "AQ", "142", "150", "003", "009", "005")
"""Africa, Antarctica, Asia, Europe, North America, Oceania and South America, by the codes of the CLDR."""


def continents() -> pa.Table:
    """(locale, name): the continents in their alphabetical order in English, for each locale that has them."""
    rows = []
    for locale in LOCALES:
        known = cldr.known(locale)
        names = known.territories
        if known.language != "en" and all(code in names for code in _CONTINENTS):
            rows += [(locale, names[code]) for code in _CONTINENTS]
    return pa.table({"locale": [row[0] for row in rows], "name": [row[1] for row in rows]})


def nationalities() -> pa.Table:
    """(locale, name): the nationality of the locale's country as forms in its language have it, which is next to
    "nationality" or "citizenship" and so does not follow the person's sex."""
    rows = [(locale, words[0]) for locale in LOCALES if (words := _own("nationality", locale))]
    return pa.table({"locale": [row[0] for row in rows], "name": [row[1] for row in rows]})


def banks() -> pa.Table:
    """(country alpha-2, name): those of the third extractor, and the own names of banks that it has in English."""
    own = {
        country: names.split("|") for country, _, names in (line.partition(": ") for line in lines("banks"))
    }
    rows = []
    for country, name in zip(
        *(extract_3.TABLES["bank"]()[column].to_pylist() for column in ("country", "name")), strict=True
    ):
        if country not in own:
            rows.append((country, name))
        elif (country, own[country][0]) not in rows:
            rows += [(country, name) for name in own[country]]
    return pa.table({"country": [row[0] for row in rows], "name": [row[1] for row in rows]})


def states(locale: str) -> Callable[[], pa.Table]:
    """A source of (name): the subdivisions of a locale's country in its language, in the order of the table of states;
    empty where the name is no other."""

    def make() -> pa.Table:
        known = dict(entry.split("=") for entry in listed_by("states")["state"][locale])
        rows = extract_3.TABLES["states"]().to_pylist()
        names = [known.get(row["code"], "") for row in rows if row["country"] == locale.partition("_")[2]]
        return pa.table({"name": pa.array(names, pa.string())})

    return make


_NAMED_ALONE = {
    "months": ("ca", "cs", "el", "fa", "fi", "hr", "hy", "lt", "pl", "ru", "sk", "uk"),
    "days": ("fi",),
}
"""Languages that have another form of these names beside a date: CLDR's format "stycznia", alone "styczeń"."""


def months(width: str) -> Callable[[], pa.Table]:
    """A source of (locale, name): the months of each locale in turn, in the form that they have alone."""
    return _alone("months", f"month_{width}", width)


def weekdays(width: str) -> Callable[[], pa.Table]:
    """A source of (locale, name): Monday to Sunday of each locale in turn, in the form that they have alone."""
    return _alone("days", f"weekday_{width}", width)


def _alone(names: str, table: str, width: str) -> Callable[[], pa.Table]:
    def make() -> pa.Table:
        rows = extract_3.TABLES[table]().to_pylist()
        languages = {row["locale"].partition("_")[0] for row in rows}
        for language in languages.intersection(_NAMED_ALONE[names]):
            texts = getattr(cldr.known(language), names)["stand-alone"][width]
            for locale in {row["locale"] for row in rows if row["locale"].partition("_")[0] == language}:
                own = [row for row in rows if row["locale"] == locale]
                for row, key in zip(own, sorted(texts), strict=True):
                    row["name"] = texts[key]
        return pa.Table.from_pylist(rows)

    return make
