"""Tables made of this folder's own lists, and words taken out of Faker's."""

from __future__ import annotations

from itertools import product

import pyarrow as pa

from webapp.engine.data.extract import places, work
from webapp.engine.data.extract_2.tools import fold, lines, provider, section

_ENGLISH = ("AU", "CA", "GB", "IE", "NZ", "US")
_LARGE = 100_000
"""People of a town that has universities."""
_SCHOOLS = (
    "University of {}", "{} State University", "{} Institute of Technology", "{} College", "{} School of Business",
    "{} Technical University",
)  # fmt: skip
PHRASE_PARTS = ("catch_phrase_first", "catch_phrase_second", "catch_phrase_third")


def universities() -> dict[str, list[str]]:
    """Names such as schools of the larger English-speaking towns have."""
    table, codes = places.cities(), places.countries()["alpha2"].to_pylist()
    rows = zip(*(table[name].to_pylist() for name in ("name", "country", "population")), strict=True)
    towns = {name: None for name, country, people in rows if codes[country] in _ENGLISH and people >= _LARGE}
    return {"": [form.format(town) for town, form in product(towns, _SCHOOLS)]}


def buzzwords() -> dict[str, list[str]]:
    """What businesses like to call things: Faker's adjectives and nouns of that kind."""
    words = provider("company").catch_phrase_words
    return {"": [word for part in words for word in part]}


def catch_phrase_part(name: str) -> dict[str, list[str]]:
    """One of Faker's three columns, of which a word each makes a phrase."""
    return {"": list(provider("company").catch_phrase_words[PHRASE_PARTS.index(name)])}


def job_titles() -> dict[str, list[str]]:
    """Those of the extractor before; our own where it has none; those of its language where a locale has none."""
    from webapp.engine.data.extract_2 import LOCALES

    made = {locale: list(words) for locale, words in work.job_titles().items()}
    own = dict(line.split(": ") for line in lines("jobs"))
    for locale in LOCALES:
        language = locale.partition("_")[0]
        if locale in made or language == "en":
            continue
        same = next(
            (made[other] for other in LOCALES if other in made and other.startswith(f"{language}_")), None
        )
        made[locale] = same or own[language].split("|")
    return made


def street_locales() -> pa.Table:
    """(locale): those whose country has the streets of another locale, as it has more than one language."""
    from webapp.engine.data.extract_2 import LOCALES

    of_country = set(places.countries()["street_locale"].to_pylist())
    return pa.table({"locale": [locale for locale in LOCALES if locale not in of_country]})


def districts() -> dict[str, list[str]]:
    """Parts of towns by language, each under the language's first locale."""
    from webapp.engine.data.extract_2 import LOCALES

    first: dict[str, str] = {}
    for locale in LOCALES:
        first.setdefault(locale.partition("_")[0], locale)
    found = {}
    for line in lines("districts"):
        language, _, words = line.partition(": ")
        found[first[language]] = words.split("|")
    return found


def _table(name: str, columns: tuple[str, ...]) -> pa.Table:
    rows = [line.split("|") for line in lines(name)]
    if any(len(row) != len(columns) for row in rows):
        raise ValueError(f"a line of {name}.txt has not {len(columns)} parts")
    return pa.table(dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True)))


def airlines() -> pa.Table:
    """(name, iata, icao)."""
    return _table("airlines", ("name", "iata", "icao"))


def diagnoses() -> pa.Table:
    """(code, name) of ICD-10."""
    return _table("icd10", ("code", "name"))


def _listed(name: str, between: str) -> list[tuple[str, str]]:
    """(owner, thing) of the lines ``owner: thing, thing``."""
    rows = []
    for line in lines(name):
        owner, _, things = line.partition(": ")
        rows += [(owner, thing) for thing in things.split(between)]
    return rows


def cars() -> pa.Table:
    """(make, model), the models of a make beside each other."""
    makes, models = zip(*_listed("cars", ", "), strict=True)
    return pa.table({"make": makes, "model": models})


def banks() -> pa.Table:
    """(country alpha-2, name), the banks of a country beside each other."""
    countries, names = zip(*_listed("banks", "|"), strict=True)
    return pa.table({"country": countries, "name": names})


def units() -> pa.Table:
    """(quantity, name, symbol)."""
    rows = [(quantity, *unit.split("=")) for quantity, unit in _listed("units", ", ")]
    quantities, names, symbols = zip(*rows, strict=True)
    return pa.table({"quantity": quantities, "name": names, "symbol": symbols})


def degrees() -> pa.Table:
    """(level, name, abbreviation): ``Bachelor``, ``Bachelor of Science in Physics``, ``B.Sc.``."""
    rows = []
    for line in lines("degrees"):
        head, _, subjects = line.partition(": ")
        level, title, short = head.split("|")
        rows += [(level, title if f" {subject}" == title[-len(subject) - 1 :] else f"{title} in {subject}", short)
                 for subject in subjects.split(", ")]  # fmt: skip
    levels, names, shorts = zip(*rows, strict=True)
    return pa.table({"level": levels, "name": names, "abbreviation": shorts})


def _top_level() -> list[str]:
    countries = [
        code.lower() for code in places.countries()["alpha2"].to_pylist() if code not in ("AQ", "XK")
    ]
    return list(dict.fromkeys([*section("tld"), *("uk" if code == "gb" else code for code in countries)]))


def top_level() -> dict[str, list[str]]:
    """Top-level domains: common ones, and those of countries."""
    made = _top_level()
    if len({fold(one) for one in made}) != len(made):
        raise ValueError("a top-level domain stands twice")
    return {"": made}
