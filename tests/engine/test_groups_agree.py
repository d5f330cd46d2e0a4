"""Fields that share a thing never contradict each other: whole rows against data that the engine never reads."""

from __future__ import annotations

import re
from collections import defaultdict
from urllib.parse import urlsplit

import faker
import mimesis
import phonenumbers
import pycountry
import pytest
from babel import Locale
from babel.numbers import get_currency_name, get_currency_symbol
from mimesis.locales import Locale as MimesisLocale
from stdnum import luhn

from tests.engine.agreeing import (
    CARD,
    COMPANY,
    EVERYTHING,
    GOODS,
    LOCALES,
    MONEY,
    NOW,
    PERSON,
    PLACE,
    ROWS,
    TITLES,
    everything,
    host,
    made,
    of_types,
    plain,
    rows,
)
from tests.engine.facts import american_codes, countries, geonames, official, tender, zones
from webapp.engine import groups
from webapp.engine.spec import parse

# First digits of card numbers (ISO/IEC 7812), their length and that of the security code.
CARDS = {
    "Visa": (r"4", 16, 3),
    "Mastercard": (r"5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720", 16, 3),
    "American Express": (r"34|37", 15, 4),
    "Discover": (r"6011|64[4-9]|65", 16, 3),
    "Diners Club": (r"30[0-5]|36|38|39", 14, 3),
    "JCB": (r"35(2[89]|[3-8])", 16, 3),
    "UnionPay": (r"62", 16, 3),
    "Maestro": (r"50|5[6-8]|67", 16, 3),
}
CONTINENTS = {
    "AF": "Africa", "AN": "Antarctica", "AS": "Asia", "EU": "Europe", "NA": "North America", "OC": "Oceania",
    "SA": "South America",
}  # fmt: skip
CLDR_CONTINENTS = {
    "Africa": "002", "North America": "003", "South America": "005", "Oceania": "009", "Asia": "142", "Europe": "150",
}  # fmt: skip
NEAR_DEGREES = 0.006
UNLISTED = {"NO-31", "NO-32", "NO-33", "NO-39", "NO-40", "NO-55", "NO-56", "RS-RS", "TW-TW"}
"""Norway's counties of 2024, and two divisions of GeoNames that ISO 3166-2 does not divide so."""
NATIONALITIES = {
    "LS": "Basotho", "MK": "Macedonian", "MM": "Burmese", "PH": "Filipino", "SV": "Salvadoran", "US": "American",
}  # fmt: skip
"""Adjectives that neither begin like the country's name nor are in the other library's list."""

every_locale = pytest.mark.parametrize("locale", LOCALES, ids=str)


def test_the_template_has_more_than_24_fields_and_every_field_is_in_a_group():
    spec = groups.assign(parse(of_types(*EVERYTHING)))
    assert len(spec.fields) > 24
    found = defaultdict(set)
    for field in spec.fields:
        found[field.group].add(field.name)
    assert {name: len(members) for name, members in found.items()} == {
        "person": len(PERSON) + 1, "place": len(PLACE) + len(MONEY), "company": len(COMPANY) - 1,
        "card": len(CARD), "product": len(GOODS),
    }  # fmt: skip


@every_locale
def test_city_country_time_zone_and_point_are_those_of_geonames(locale):
    for row in everything(locale):
        code = row["country_code"]
        country = countries()[code]
        if locale is None or locale.startswith("en"):
            assert row["country"] in {country["name"], "Netherlands"}, row
        else:
            assert row["country"] == Locale.parse(locale).territories[code], row
        point = float(row["latitude"]), float(row["longitude"])
        assert any(
            abs(point[0] - city["latitude"]) < NEAR_DEGREES
            and abs(point[1] - city["longitude"]) < NEAR_DEGREES
            for city in geonames()[code, row["city"]]
        ), row
        assert tuple(float(part) for part in row["coordinates"].split(", ")) == point, row
        assert row["time_zone"] in zones()[code] or code == "XK", row
        continent = CONTINENTS[country["continentcode"]]
        if locale is not None:
            continent = Locale.parse(locale).territories[CLDR_CONTINENTS[continent]]
        assert row["continent"] == continent, row
        subdivision = f"{code}-{row['state_abbr']}"
        assert subdivision in UNLISTED or pycountry.subdivisions.get(code=subdivision) is not None, row
        if locale == "ja_JP":
            assert row["address"].startswith(f"〒{row['zip_code']} {row['state']}{row['city']}"), row
        else:
            assert row["address"].endswith(f", {row['country']}"), row
        assert row["city"] in row["address"], row
    if locale:
        assert {row["country_code"] for row in everything(locale)} == {locale[-2:]}


@every_locale
def test_telephone_numbers_are_valid_numbers_of_the_country(locale):
    for row in everything(locale):
        for name in ("phone_number", "mobile"):
            number = phonenumbers.parse(row[name])
            assert number.country_code == phonenumbers.country_code_for_region(row["country_code"]), row
            assert phonenumbers.is_valid_number_for_region(number, row["country_code"]), row


def test_american_postal_codes_are_those_of_the_city_and_the_state():
    seen = [row for locale in (None, "en_US") for row in everything(locale) if row["country_code"] == "US"]
    assert len(seen) > ROWS
    for row in seen:
        entry = american_codes()[row["zip_code"]]
        known = {plain(name) for name in (entry["city"], *entry["acceptable_cities"])}
        assert plain(row["city"]) in known, row
        assert (entry["state"], entry["timezone"]) == (row["state_abbr"], row["time_zone"]), row
        assert pycountry.subdivisions.get(code=f"US-{row['state_abbr']}").name == row["state"], row


@every_locale
def test_currency_and_language_are_those_of_the_country(locale):
    named = Locale.parse(locale or "en").languages
    for row in everything(locale):
        code = row["currency_code"]
        assert code in tender(row["country_code"]), row
        assert row["currency_name"] == get_currency_name(code, locale=locale or "en_US"), row
        assert row["currency_symbol"] == get_currency_symbol(code, locale="en"), row
        assert row["language"] in {named.get(language) for language in official(row["country_code"])}, row


def test_each_country_has_one_nationality_which_is_its_own():
    by_country = defaultdict(set)
    for row in everything(None):
        by_country[row["country_code"]].add(row["nationality"])
    assert all(len(found) == 1 for found in by_country.values())
    known = set(mimesis.Person(MimesisLocale.EN)._extract(["nationality"]))
    for code, (nationality,) in by_country.items():
        alike = nationality[:3] == countries()[code]["name"][:3]
        assert alike or nationality in known or NATIONALITIES.get(code) == nationality, (code, nationality)


@every_locale
def test_names_title_sex_and_addresses_are_one_persons(locale):
    for row in everything(locale):
        first, last = row["first_name"], row["last_name"]
        assert row["name"] in (f"{first} {last}", f"{last}{first}"), row
        assert row["title"] == TITLES[locale][row["sex"]], row
        assert row["suffix"] in {"MD", "PhD", "DDS", "DVM", "Esq."} or row["sex"] == "male", row
        handle = row["email"].partition("@")[0]
        assert handle == row["username"], row
        assert row["safe_email"] == row["email"], row
        assert row["company_email"].startswith(f"{handle}@"), row
        bare = re.sub("[^a-z]", "", handle)
        if locale != "ja_JP":  # names that no folding makes Latin
            spelled = {plain(first) + plain(last), plain(first)[:1] + plain(last)}
            assert bare in spelled or locale == "de_DE", row
            if bare not in spelled:  # ä is ae in German
                german = [
                    name.casefold().translate({228: "ae", 246: "oe", 252: "ue", 223: "ss"})
                    for name in (first, last)
                ]
                assert bare in {plain(german[0]) + plain(german[1]), german[0][0] + plain(german[1])}, row


@pytest.mark.parametrize("locale", ["en_US", "de_DE", "pt_BR"])
def test_first_names_are_given_to_that_sex(locale):
    source = next(p for p in faker.Faker(locale).get_providers() if hasattr(p, "first_names_female"))
    for row in everything(locale):
        names = source.first_names_female if row["sex"] == "female" else source.first_names_male
        spelled = {name[0] if isinstance(name, tuple) else name for name in names}
        assert row["first_name"] in spelled, row


@every_locale
def test_age_is_the_whole_years_since_the_date_of_birth(locale):
    ages = set()
    for row in everything(locale):
        born = row["date_of_birth"]
        years = NOW.year - born.year - ((NOW.month, NOW.day) < (born.month, born.day))
        assert row["age"] == years, row
        ages.add(years)
    assert (min(ages), max(ages), len(ages)) == (18, 80, 63)


def test_minors_are_not_married():
    fields = of_types("age", "marital_status")
    fields[0]["options"] = {"min": 12, "max": 25}
    found = rows(made(*fields), 2_000)
    assert {row["marital_status"] for row in found if row["age"] < 18} == {"Single"}
    assert {row["marital_status"] for row in found if row["age"] >= 18} == {
        "Single", "Married", "Divorced", "Widowed"
    }  # fmt: skip


@every_locale
def test_site_page_and_address_are_the_companys(locale):
    for row in everything(locale):
        site = row["domain_name"]
        assert urlsplit(row["url"]).hostname == site, row
        assert host(row["company_email"]) == site, row
        assert site.endswith(".example"), row
        if locale in (None, "en_US", "pt_BR"):
            assert plain(site.removesuffix(".example")) == plain(row["company_name"]), row


@every_locale
def test_card_number_issuer_and_security_code_agree(locale):
    seen = set()
    for row in everything(locale):
        prefix, digits, security = CARDS[row["credit_card_type"]]
        number = row["credit_card_number"]
        assert luhn.is_valid(number), row
        assert re.match(prefix, number), row
        assert len(number) == digits, row
        assert len(row["cvv"]) == security, row
        month, year = map(int, row["card_expiry"].split("/"))
        assert (2000 + year, month) > (NOW.year, NOW.month), row
        seen.add(row["credit_card_type"])
    assert seen == set(CARDS)


def test_a_product_has_one_category_which_its_number_contains():
    categories, codes = defaultdict(set), defaultdict(set)
    for row in everything(None):
        assert row["product_name"].endswith(f" {row['product']}"), row
        categories[row["product"]].add(row["product_category"])
        codes[row["product_category"]].add(row["sku"][:3])
    assert all(len(found) == 1 for found in (*categories.values(), *codes.values()))
    assert len({code for found in codes.values() for code in found}) == len(codes)


def test_a_row_far_out_and_a_preview_agree_as_the_rest():
    source = made(*of_types(*EVERYTHING))
    assert rows(source, 3) == everything(None)[:3]
    for row in rows(source, 10, 10**12):
        assert row["currency_code"] in tender(row["country_code"])
        assert host(row["company_email"]) == row["domain_name"]
