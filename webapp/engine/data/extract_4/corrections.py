"""What `corrections.txt` corrects in lists of names and in the table of cities."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa

from webapp.engine.data import extract_3
from webapp.engine.data.extract.tools import fold
from webapp.engine.data.extract_3 import people
from webapp.engine.data.extract_4 import landlines, postal
from webapp.engine.data.extract_4.tools import listed_by, spelled

SPREAD = 500
"""Places of a city are within this many units of 1e-5 degrees (about 550 m) of its centre."""
SPREAD_AT_BORDER = 50
_COMMA_BELOW = str.maketrans("şţŞŢ", "șțȘȚ")
"""Romanian letters have a comma, for which GeoNames writes a cedilla."""


def first_names_female() -> dict[str, list[str]]:
    """Given names of women."""
    return _without("first_name_female")


def first_names_male() -> dict[str, list[str]]:
    """Given names of men."""
    return _without("first_name_male")


def _without(name: str) -> dict[str, list[str]]:
    wrong = listed_by("corrections")[name]
    return {
        locale: [word for word in words if word not in wrong.get(locale, ())]
        for locale, words in extract_3.WORDS[name]().items()
    }


def romanized() -> pa.Table:
    """The spellings in plain letters of the third extractor, and those of the names that are spelled otherwise here."""
    table = extract_3.TABLES["romanized"]()
    rows = table.to_pylist()
    known = {(row["locale"], row["word"]) for row in rows}
    for row in list(rows):
        word, locale = spelled(row["word"], row["locale"]), row["locale"]
        if (locale, word) not in known:
            known.add((locale, word))
            plain = word.replace("ɛ", "e")
            spellings = people._roman(plain, locale), fold(word), people._titled(plain, locale)
            rows.append(dict(zip(table.column_names, (locale, word, *spellings), strict=True)))
    return pa.Table.from_pylist(rows, table.schema)


def cities() -> pa.Table:
    """The cities of the third extractor with two more columns: ``spread``, how far from its centre places of a city
    are, in units of 1e-5 degrees, and ``left_out``, 1 for a city that no row is in."""
    table = extract_3.TABLES["cities"]()
    codes = extract_3.TABLES["countries"]()["alpha2"].to_pylist()
    zones = extract_3.TABLES["time_zones"]()["name"].to_pylist()
    names, countries, zone = (table[column].to_pylist() for column in ("name", "country", "time_zone"))
    at_border, left_out, wrong_zone = (
        listed_by("corrections")[what] for what in ("at_border", "left_out", "zone")
    )
    right = {}
    for country, entries in wrong_zone.items():
        for city, _, change in (entry.partition("=") for entry in entries):
            before, _, after = change.partition(">")
            right[country, city, zones.index(before)] = zones.index(after)
    cities = [(codes[at], name) for name, at in zip(names, countries, strict=True)]
    for column, spelling in (("name", str), ("folded", fold)):
        texts = [spelling(_city(*city)) for city in cities]
        table = table.set_column(table.column_names.index(column), column, pa.array(texts, pa.string()))
    near = [name in at_border.get(country, ()) for country, name in cities]
    out = [name in left_out.get(country, ()) for country, name in cities]
    zone = [right.get((*city, at), at) for city, at in zip(cities, zone, strict=True)]
    starts, counts = zip(*postal.ranges(), strict=True)
    for column, values in (("time_zone", zone), ("postal_start", starts), ("postal_count", counts)):
        table = table.set_column(table.column_names.index(column), column, pa.array(values, pa.int32()))
    for part, at in (("start", 0), ("count", 1)):
        before = table[f"line_{part}"].to_pylist()
        found = [own[at] if own[1] else old for own, old in zip(landlines.ranges(), before, strict=True)]
        table = table.set_column(
            table.column_names.index(f"line_{part}"), f"line_{part}", pa.array(found, pa.int32())
        )
    table = table.append_column(
        "spread", pa.array([SPREAD_AT_BORDER if one else SPREAD for one in near], pa.int32())
    )
    return table.append_column("left_out", pa.array([int(one) for one in out], pa.int32()))


def local_cities(locale: str) -> Callable[[], pa.Table]:
    """A source of (name): the cities of a locale's country by the third extractor, as `corrections.txt` names them."""

    def make() -> pa.Table:
        names = extract_3.TABLES[f"city@{locale}"]()["name"].to_pylist()
        letters = _COMMA_BELOW if locale == "ro_RO" else {}
        of_country = [_city(locale.partition("_")[2], name.translate(letters)) for name in names]
        return pa.table({"name": pa.array([_city(locale, name) for name in of_country], pa.string())})

    return make


def _city(country: str, name: str) -> str:
    """The name of a city in an address; ``country`` is a country or a locale."""
    for entry in listed_by("corrections")["city"].get(country, ()):
        pattern, _, right = entry.partition("=")
        if re.fullmatch(pattern, name):
            return right
    return name
