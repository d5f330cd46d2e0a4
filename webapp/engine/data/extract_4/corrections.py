"""What `corrections.txt` and `postal.txt` correct in lists of names and in the table of cities."""

from __future__ import annotations

import re
from functools import cache

import pyarrow as pa

from webapp.engine.data import extract_3
from webapp.engine.data.extract.tools import fold
from webapp.engine.data.extract_3 import people, postal
from webapp.engine.data.extract_4 import landlines
from webapp.engine.data.extract_4.tools import lines, listed_by, spelled

SPREAD = 500
"""Places of a city are within this many units of 1e-5 degrees (about 550 m) of its centre."""
SPREAD_AT_BORDER = 50
_DIGITS = re.compile(r"\d+")


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
    near = [name in at_border.get(country, ()) for country, name in cities]
    out = [name in left_out.get(country, ()) for country, name in cities]
    zone = [right.get((*city, at), at) for city, at in zip(cities, zone, strict=True)]
    starts, counts = (table[f"postal_{part}"].to_pylist() for part in ("start", "count"))
    ranges, _ = _postal()
    for row, ((code, _), state) in enumerate(zip(cities, _states_of(table), strict=True)):
        starts[row], counts[row] = ranges.get((code, state), (starts[row], counts[row]))
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


def postal_heads() -> pa.Table:
    """The beginnings of postal codes of the third extractor, and those of the regions that are corrected."""
    return _postal()[1]


@cache
def _postal() -> tuple[dict[tuple[str, str], tuple[int, int]], pa.Table]:
    """{(country, subdivision): its range of heads} of the corrected regions, and all heads with those at the end."""
    table, heads = extract_3.TABLES["cities"](), extract_3.TABLES["postal_heads"]()
    rows, ranges = heads.to_pylist(), {}
    codes = extract_3.TABLES["countries"]()["alpha2"].to_pylist()
    wrong = {
        (country, state): change.partition(">")
        for country, entries in listed_by("corrections")["postal_heads"].items()
        for state, _, change in (entry.partition("=") for entry in entries)
    }
    columns = (table[name].to_pylist() for name in ("country", "postal_start", "postal_count"))
    for country, start, count, state in zip(*columns, _states_of(table), strict=True):
        key = codes[country], state
        if key in ranges:
            continue
        if key in wrong:
            before, _, after = wrong[key]
            made = []
            for row in rows[start : start + count]:
                texts = (
                    [row["text"]] if row["text"] != before else [text for text in after.split(",") if text]
                )
                made += [{**row, "text": text} for text in texts]
        elif prefixes := _prefixes(*key):
            shape = rows[start]
            made = [{**shape, "text": text} for text in _with_prefixes(shape["text"], prefixes)]
        else:
            continue
        ranges[key] = len(rows), len(made)
        rows += made
    return ranges, pa.Table.from_pylist(rows, heads.schema)


def _prefixes(country: str, state: str) -> list[str]:
    """The first digits of the codes of a subdivision by `postal.txt`; none where it says nothing."""
    regions = _regions().get(country, {})
    listed = regions.get(state, regions.get("*", "") if state else "")
    return postal._prefixes(listed.replace("{}", state)) if listed else []


@cache
def _regions() -> dict[str, dict[str, str]]:
    """{country: {subdivision: its prefixes}}."""
    made = {}
    for line in lines("postal"):
        country, *regions = line.split()
        made[country] = {name: listed for name, _, listed in (region.partition("=") for region in regions)}
    return made


def _with_prefixes(shape: str, prefixes: list[str]) -> list[str]:
    """All heads with the digits of ``shape`` replaced by those that begin with one of the prefixes; a selection if there
    are many."""
    digits = _DIGITS.search(shape)
    assert digits is not None
    size = len(digits[0])
    numbers = [
        prefix + (f"{rest:0{size - len(prefix)}d}" if size > len(prefix) else "")
        for prefix in prefixes
        for rest in range(10 ** (size - len(prefix)))
    ]
    if len(numbers) > postal.HEADS_OF_REGION:
        step = len(numbers) / postal.HEADS_OF_REGION
        numbers = [numbers[int(at * step)] for at in range(postal.HEADS_OF_REGION)]
    return [shape.replace(digits[0], number, 1) for number in numbers]


def _states_of(table: pa.Table) -> list[str]:
    """The code of each city's subdivision; "" where it is not known."""
    codes = extract_3.TABLES["states"]()["code"].to_pylist()
    return [codes[row] if row >= 0 else "" for row in table["state"].to_pylist()]
