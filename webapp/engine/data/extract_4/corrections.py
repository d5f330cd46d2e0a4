"""What `corrections.txt` corrects in lists of names and in the table of cities."""

from __future__ import annotations

import pyarrow as pa

from webapp.engine.data import extract_3
from webapp.engine.data.extract_4.tools import listed_by

SPREAD = 500
"""Places of a city are within this many units of 1e-5 degrees (about 550 m) of its centre."""
SPREAD_AT_BORDER = 50


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
    near = [name in at_border.get(country, ()) for country, name in cities]
    out = [name in left_out.get(country, ()) for country, name in cities]
    zone = [right.get((*city, at), at) for city, at in zip(cities, zone, strict=True)]
    table = table.set_column(table.column_names.index("time_zone"), "time_zone", pa.array(zone, pa.int32()))
    table = table.append_column(
        "spread", pa.array([SPREAD_AT_BORDER if one else SPREAD for one in near], pa.int32())
    )
    return table.append_column("left_out", pa.array([int(one) for one in out], pa.int32()))
