"""Postal codes by city: those of its subdivision (`postal.txt`) that begin like codes near it (`postal_areas.txt`)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from webapp.engine.data import extract_3
from webapp.engine.data.extract_3 import postal
from webapp.engine.data.extract_4.tools import lines, listed_by

PEOPLE_PER_KM2 = 12_000
"""A low guess at how far a city reaches: the postal areas whose centres are within reach are all those of the city."""
KM_PER_DEGREE = 111.2
_DIGITS = re.compile(r"\d+")
_NOT_OF_AREA = re.compile(r"[^0-9A-Z]")
_COUNTRY_SIGNS = {"AZ": "AZ", "LU": "L", "LV": "LV", "MD": "MD"}
"""What may stand before the codes of a country."""
_SIGNS = dict.fromkeys(("AR", "AU", "BR", "CN", "CO", "ID", "IN", "JP", "KE", "PH"), 3) | {"RU": 4}
"""How many signs name a postal area, where two name too large a one."""
_LETTERS = re.compile(r"[A-Z]*")


def area_of(country: str, code: str) -> str:
    """The postal area of a code or of its beginning: two to four signs; in Great Britain the letters."""
    signs = _NOT_OF_AREA.sub("", code.upper()).removeprefix(_COUNTRY_SIGNS.get(country, " "))
    letters = _LETTERS.match(signs)
    return letters[0] if letters and country == "GB" else signs[: _SIGNS.get(country, 2)]


def heads() -> pa.Table:
    """The beginnings of postal codes of the third extractor, followed by those that are corrected here."""
    return _corrected()[1]


def ranges() -> list[tuple[int, int]]:
    """For each city the first of its heads and how many it has."""
    return _corrected()[0]


@cache
def _corrected() -> tuple[list[tuple[int, int]], pa.Table]:
    table, before = extract_3.TABLES["cities"](), extract_3.TABLES["postal_heads"]()
    rows, tails = before.to_pylist(), extract_3.TABLES["postal_tails"]()["text"].to_pylist()
    codes = extract_3.TABLES["countries"]()["alpha2"].to_pylist()
    columns = ("country", "postal_start", "postal_count", "latitude", "longitude", "population")
    cities = zip(*(table[name].to_pylist() for name in columns), _states_of(table), strict=True)
    regions: dict[tuple[str, str], dict[str, list[str]]] = {}
    made: dict[tuple[str, str, Sequence[str]], tuple[int, int]] = {}
    found = []
    for at, start, count, latitude, longitude, population, state in cities:
        region = codes[at], state
        if region not in regions:
            regions[region] = _by_area(*region, [row["text"] for row in rows[start : start + count]])
        areas = regions[region]
        if not areas:
            found.append((start, count))
            continue
        near = _near(region[0], tuple(areas), latitude / 1e5, longitude / 1e5, population)
        key = *region, near
        if key not in made:
            own = _some([text for area in near for text in areas[area]])
            made[key] = len(rows), len(own)
            rest = _tails(rows[start] if count else {}, tails, region[0])
            rows += [{**rest, "text": text} for text in own]
        found.append(made[key])
    return found, pa.Table.from_pylist(rows, before.schema)


def _tails(head: dict[str, Any], tails: list[str], country: str) -> dict[str, Any]:
    """What follows a head: what the third extractor says, or as many digits as `postal.txt` says."""
    if country not in _digits():
        return head
    _, digits = _digits()[country]
    spelled = [f"{number:0{digits}d}" for number in range(10**digits)]
    starts = (at for at, text in enumerate(tails) if text == spelled[0])
    start = next(at for at in starts if tails[at : at + len(spelled)] == spelled)
    return {"tail_start": start, "tail_count": len(spelled)}


def _by_area(country: str, state: str, before: list[str]) -> dict[str, list[str]]:
    """{postal area: all heads of a subdivision in it}; {} where the third extractor's are right."""
    made: dict[str, list[str]] = {}
    for text in _of_region(country, state, before) or ():
        made.setdefault(area_of(country, text), []).append(text)
    return made


def _of_region(country: str, state: str, before: list[str]) -> list[str] | None:
    """All heads of a subdivision; None where the third extractor's are right. ``before`` is a selection of those."""
    change = listed_by("corrections")["postal_heads"].get(country, ())
    wrong = {
        region: change.partition(">") for region, _, change in (entry.partition("=") for entry in change)
    }
    if country in _digits():
        before = ["0" * _digits()[country][0]]
    elif not before:
        return None
    if state in wrong:
        replaced, _, by = wrong[state]
        return [text for old in before for text in ([old] if old != replaced else by.split(",")) if text]
    regions = _regions().get(country, {})
    listed = regions.get(state, regions.get("*", "") if state or country in _digits() else "")
    if listed:
        return _with_prefixes(before[0], postal._prefixes(listed.replace("{}", state)))
    if country not in _areas():
        return None
    rule = postal._rules().get(country)
    if rule is None:
        return before
    shape, _, prefixes = rule
    all_of = prefixes.get(state, prefixes.get("*", []))
    if country in _digits():
        return _with_prefixes(before[0], all_of)
    return [
        text for prefix in all_of for text in postal._spelled(postal._placed(shape, prefix, state), country)
    ]


@cache
def _digits() -> dict[str, tuple[int, int]]:
    """{country: digits of its heads, digits that follow them}, where `postal.txt` says so."""
    named = (line.split()[0].split(":") for line in lines("postal"))
    return {country: (int(sizes[0]), int(sizes[1])) for country, *sizes in named if sizes}


@cache
def _regions() -> dict[str, dict[str, str]]:
    """{country: {subdivision: the first digits of its codes}}; none where `postal.txt` says nothing."""
    made = {}
    for line in lines("postal"):
        country, *regions = line.split()
        made[country.partition(":")[0]] = {
            name: listed for name, _, listed in (region.partition("=") for region in regions)
        }
    return made


def _with_prefixes(shape: str, prefixes: list[str]) -> list[str]:
    """All heads with the digits of ``shape`` replaced by those that begin with one of the prefixes."""
    digits = _DIGITS.search(shape)
    assert digits is not None
    size = len(digits[0])
    numbers = [
        prefix + (f"{rest:0{size - len(prefix)}d}" if size > len(prefix) else "")
        for prefix in prefixes
        for rest in range(10 ** (size - len(prefix)))
    ]
    return [shape.replace(digits[0], number, 1) for number in numbers]


def _some(texts: list[str]) -> list[str]:
    """A selection of many heads, evenly chosen."""
    most = postal.HEADS_OF_REGION
    return texts if len(texts) <= most else [texts[at * len(texts) // most] for at in range(most)]


@cache
def _areas() -> dict[str, dict[str, tuple[float, float]]]:
    """{country: {postal area: (latitude, longitude) in degrees}}."""
    made = {}
    for line in lines("postal_areas"):
        country, *areas = line.split()
        made[country] = {
            name: (float(north), float(east))
            for name, north, east in (re.split("[=,]", area) for area in areas)
        }
    return made


def _near(
    country: str, areas: Sequence[str], latitude: float, longitude: float, population: int
) -> tuple[str, ...]:
    """Those of some postal areas that are nearest to a city; all of them where it is not known where they are."""
    centres = _areas().get(country, {})
    known = [area for area in areas if area in centres]
    if not known:
        return tuple(areas)
    north, east = np.array([centres[name] for name in known]).T
    km = KM_PER_DEGREE * np.hypot(north - latitude, (east - longitude) * math.cos(math.radians(latitude)))
    reach = max(float(km.min()), math.sqrt(population / PEOPLE_PER_KM2 / math.pi))
    return tuple(name for name, away in zip(known, km, strict=True) if away <= reach)


def _states_of(table: pa.Table) -> list[str]:
    """The code of each city's subdivision; "" where it is not known."""
    codes = extract_3.TABLES["states"]()["code"].to_pylist()
    return [codes[row] if row >= 0 else "" for row in table["state"].to_pylist()]
