"""Every type of person, place and telephone in every locale: honoured, or refused by name."""

from __future__ import annotations

import phonenumbers
import pyarrow.compute as pc
import pytest

from tests.engine.types.made import bound, faults, table
from webapp.engine.data import vocabulary
from webapp.engine.types.registry import REGISTRY

WORDS = vocabulary.open_default()
LOCALES = WORDS.locales
KINDS = [
    kind.name
    for kind in REGISTRY
    if kind.category in ("person", "place") or kind.name in ("phone_number", "mobile", "username", "email")
]
LOCALISED = [kind.name for kind in REGISTRY if kind.name in KINDS and kind.localised]
ROWS = 300
ANYWHERE = {
    "address_line_2", "avatar", "title", "suffix", "street_number", "first_name_kana", "last_name_kana", "name_kana",
}  # fmt: skip
"""Types of which nothing is known here beyond that they have values."""
PARTLY = {"address_line_2"}
"""Types that have no words for some locales."""


def honoured(kind: str) -> list[str]:
    """The locales that a type has values for; it refuses the others by name."""
    found = {locale: faults(kind, locale=locale) for locale in LOCALES}
    assert all(set(refused) <= {"locale"} for refused in found.values())
    return [locale for locale, refused in found.items() if not refused]


def made(locale: str, *, of_field: bool) -> dict[str, list]:
    more = {"locale": locale} if of_field else {}
    known = [name for name in LOCALISED if name not in PARTLY or not faults(name, locale=locale)]
    fields = [{"name": name, "type": name, **more} for name in known]
    return table(bound(fields, locale=None if of_field else locale), 0, ROWS)


@pytest.mark.parametrize("kind", LOCALISED)
def test_every_type_honours_more_than_twenty_locales(kind):
    assert len(LOCALISED) >= 25
    assert len(honoured(kind)) >= (30 if kind in PARTLY else len(LOCALES))


@pytest.mark.parametrize("kind", sorted(set(KINDS) - set(LOCALISED)))
def test_a_type_without_locales_rejects_every_locale_by_name(kind):
    assert faults(kind, locale="de_DE") == {"locale": "not_for_this_type"}


@pytest.mark.parametrize("kind", LOCALISED)
@pytest.mark.parametrize("locale", ["xx_XX", "de_ZZ", "qq_QQ"])
def test_a_locale_without_words_is_rejected_by_name(kind, locale):
    assert faults(kind, locale=locale) == {"locale": "unknown_locale"}


def named(locale: str, country: str) -> str:
    """The name of a country in the language of a locale."""
    if locale.startswith("en"):
        return {row["alpha2"]: row["name"] for row in WORDS.table("countries").to_pylist()}[country]
    row = WORDS.table("countries")["alpha2"].to_pylist().index(country)
    return WORDS.table(f"country@{locale}")["name"][row].as_py()


def unknown(locale: str) -> set[str]:
    """The types of which a country has no values: its cities have no subdivision, or it has no postal codes or no
    airports."""
    country = WORDS.table("countries")["alpha2"].to_pylist().index(locale[-2:])
    here = pc.equal(WORDS.table("cities")["country"], country)
    cities = WORDS.table("cities").filter(here)
    airports = WORDS.table("city_airports").filter(here)["count"].to_pylist()
    lacking = set() if all(state >= 0 for state in cities["state"].to_pylist()) else {"state", "state_abbr"}
    if not all(cities["postal_count"].to_pylist()):
        lacking.add("zip_code")
    if not any(airports):
        lacking |= {"airport_code", "airport_name"}
    return lacking


@pytest.mark.parametrize("locale", LOCALES)
def test_a_locale_is_honoured_by_all_of_them(locale):
    columns = made(locale, of_field=True)
    assert columns == made(locale, of_field=False)
    country = locale[-2:]
    assert set(columns["country_code"]) == {country}
    assert set(columns["country"]) == {named(locale, country)}
    own = WORDS.has_words("street", f"{locale}@own")
    blank = {name for name, values in columns.items() if None in values} - ANYWHERE - {"middle_name"}
    assert blank <= unknown(locale), blank
    first = {
        word for sex in ("female", "male") for word in WORDS.words(f"first_name_{sex}", locale).to_pylist()
    }
    last = {
        word for sex in ("female", "male") for word in WORDS.words(f"last_name_{sex}", locale).to_pylist()
    }
    assert set(columns["first_name"]) <= first
    assert set(columns["last_name"]) <= last
    assert all(value in name for value, name in zip(columns["first_name"], columns["name"], strict=True))
    filed = f"{locale}@own" if own else locale
    assert set(columns["district"]) <= set(WORDS.words("district", filed).to_pylist())
    assert set(columns["street_name"]) <= set(WORDS.words("street", filed).to_pylist())
    if WORDS.has_words("job_title", locale):
        assert set(columns["job_title"]) <= set(WORDS.words("job_title", locale).to_pylist())
    for column in ("phone_number", "mobile"):
        for number in columns[column]:
            assert phonenumbers.is_valid_number_for_region(phonenumbers.parse(number, country), country), (
                number
            )


@pytest.mark.parametrize("locale", ["nl_BE", "fr_CA", "fr_CH"])
def test_streets_use_the_requested_language_if_a_country_has_several(locale):
    fields = [
        {"name": "line", "type": "street_address", "locale": locale, "unique": True, "group": "one"},
        {"name": "street", "type": "street_name", "locale": locale},
        {"name": "anywhere", "type": "street_name", "group": "other"},
    ]
    made = table(bound(fields), 0, ROWS)
    streets = set(WORDS.words("street", locale).to_pylist())
    assert set(made["street"]) <= streets
    assert all(any(street in line for street in streets) for line in made["line"])
    assert len(set(made["line"])) == ROWS
    assert not set(made["anywhere"]) <= streets


def test_places_of_cities_at_a_border_are_near_their_centre():
    cities = {
        (name, country): (latitude, longitude, spread)
        for name, country, latitude, longitude, spread in zip(
            *(
                WORDS.table("cities")[name].to_pylist()
                for name in ("name", "country", "latitude", "longitude", "spread")
            ),
            strict=True,
        )
    }
    switzerland = WORDS.table("countries")["alpha2"].to_pylist().index("CH")
    fields = [{"name": name, "type": name} for name in ("city", "latitude", "longitude")]
    made = table(bound(fields, locale="de_CH"), 0, 5_000)
    apart: dict[str, int] = {}
    for city, latitude, longitude in zip(*made.values(), strict=True):
        if (city, switzerland) not in cities:
            continue  # named otherwise in German
        north, east, _ = cities[city, switzerland]
        distance = max(abs(int(latitude * 10**5) - north), abs(int(longitude * 10**5) - east))
        apart[city] = max(apart.get(city, 0), distance)
    assert 0 < apart["Kreuzlingen"] <= cities["Kreuzlingen", switzerland][2] == 50
    assert 400 < apart["Basel"] <= cities["Basel", switzerland][2] == 500


def test_no_row_is_in_a_city_that_the_source_has_in_another_country():
    rows = table(bound([{"name": "city", "type": "city", "unique": True}], locale="en_IN"), 0, 1_000)
    assert "Jogbani" not in rows["city"]
