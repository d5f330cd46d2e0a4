"""Columns that follow another column of their row, and columns that share the choice of a group."""

from __future__ import annotations

import re

import pytest
from stdnum import isbn, isin, luhn

from bench import truth
from tests.engine.types.made import bound, table
from webapp.engine import groups
from webapp.engine.spec import parse
from webapp.engine.types import agreement, registry
from webapp.engine.types.agreement import RULES, _values

ROWS = 300
SPECIMENS = [
    ("BIC / IBAN", "nl_NL", ("iban", "bic")),
    ("BIC / IBAN", None, ("iban", "bic", "country_code")),
    ("account / IBAN", "en_US", ("iban", "account_number", "aba_routing", "country_code")),
    ("account / IBAN", "de_DE", ("iban", "account_number", "aba_routing", "country_code")),
    ("account / IBAN", None, ("iban", "account_number", "aba_routing", "country_code")),
    ("ISBN-10 / ISBN", None, ("isbn", "isbn_10")),
    ("ISIN valid", None, ("cusip", "isin")),
    ("calling code", None, ("country_code", "calling_code")),
    ("calling code", "it_CH", ("country_code", "calling_code")),
    ("locale code", None, ("country_code", "locale_code")),
    ("zodiac / birth", "sv_SE", ("date_of_birth", "zodiac_sign")),
    ("letter / sex", "ja_JP", ("sex", "gender_abbreviation")),
    ("file / media type", None, ("file_name", "file_extension", "mime_type")),
    ("hex / rgb / hsl", None, ("hex_color", "rgb_color", "hsl_color")),
    ("passport name", "en_GB", ("first_name", "last_name", "passport_owner")),
]


def rows(
    *names: str, locale: str | None = None, start: int = 0, count: int = ROWS, **keys: dict
) -> list[dict]:
    fields = [{"name": name, "type": re.sub("_[ab]$", "", name), **keys.get(name, {})} for name in names]
    columns = table(bound(fields, locale=locale), start, count)
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


@pytest.mark.parametrize(("label", "locale", "names"), SPECIMENS)
def test_columns_agree(label, locale, names):
    verdicts = [truth.CHECKS[label][1](row) for row in rows(*names, locale=locale)]
    assert [verdict for verdict in verdicts if verdict] == []
    assert sum(verdict is not None for verdict in verdicts) >= 10


@pytest.mark.parametrize(("label", "locale", "names"), SPECIMENS)
def test_they_agree_in_any_order_of_the_fields(label, locale, names):
    verdicts = [truth.CHECKS[label][1](row) for row in rows(*reversed(names), locale=locale)]
    assert [verdict for verdict in verdicts if verdict] == []


@pytest.mark.parametrize(
    ("locale", "name", "other", "pattern"),
    [
        ("en_US", "ssn", "national_id", "^{}$"),
        ("en_US", "ein", "tax_id", "^{}$"),
        ("en_GB", "nhs_number", "national_id", "^{}$"),
        ("pt_BR", "cnpj", "vat_id", "^{}$"),
        ("fr_FR", "siren", "siret", "^{}"),
        ("fr_FR", "siren", "vat_id", "{}$"),
        ("fr_FR", "siret", "vat_id", None),
    ],
)
def test_two_columns_for_one_number_have_one_number(locale, name, other, pattern):
    for row in rows(name, other, locale=locale):
        if pattern is None:
            assert row["vat_id"][4:] == row["siret"][:9]
            assert luhn.is_valid(row["siret"])
        else:
            assert re.search(pattern.format(re.escape(row[name])), row[other])


def test_a_siret_has_valid_check_digits_and_the_siren():
    for row in rows("siren", "siret", "vat_id", locale="fr_FR"):
        assert luhn.is_valid(row["siret"])
        assert luhn.is_valid(row["siren"])
        assert row["siret"].startswith(row["siren"])
        assert row["vat_id"].endswith(row["siren"])


def test_book_numbers_are_of_one_book():
    for row in rows("isbn", "isbn_10", "sbn9"):
        assert isbn.is_valid(row["isbn_10"])
        if row["isbn_10"].startswith("0"):
            assert row["isbn_10"][1:] == row["sbn9"]


def test_an_isin_with_the_cusip_is_valid():
    seen = {row["isin"][:2] for row in rows("isin", "cusip") if isin.is_valid(row["isin"])}
    assert seen >= {"US", "CA", "DE"}
    assert all(isin.is_valid(row["isin"]) for row in rows("isin", "cusip"))


def vin_is_valid(vin: str) -> bool:
    """49 CFR 565.15."""
    letters = dict(zip("ABCDEFGHJKLMNPRSTUVWXYZ", "12345678123457923456789", strict=True))
    worth = {**{digit: digit for digit in "0123456789"}, **letters}
    weights = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)
    rest = sum(int(worth[sign]) * weight for sign, weight in zip(vin, weights, strict=True)) % 11
    return vin[8] == "0123456789X"[rest]


def test_a_vin_has_the_maker_and_the_model_year():
    codes = "ABCDEFGHJKLMNPRSTVWXY123456789"
    for row in rows("vin", "car_make", "car_year"):
        assert vin_is_valid(row["vin"])
        assert row["vin"][:3] == agreement.CAR_MAKERS[row["car_make"]]
        assert row["vin"][9] == codes[(row["car_year"] - 1980) % 30]
        assert row["vin"][6].isdigit() == (row["car_year"] < 2010)


def test_every_make_of_the_vocabulary_has_a_maker_code():
    assert {row["car_make"] for row in rows("vin", "car_make", count=4000)} <= set(agreement.CAR_MAKERS)


@pytest.mark.parametrize(
    ("follower", "leader", "expected"),
    [
        (
            "chemical_symbol",
            "chemical_element",
            {"Iron": "Fe", "Polonium": "Po", "Gold": "Au", "Actinium": "Ac"},
        ),
        ("cryptocurrency_code", "cryptocurrency", {"Bitcoin": "BTC", "Tezos": "XTZ"}),
        ("plant_family", "plant_scientific_name", {"Quercus robur": "Fagaceae"}),
        ("animal", "animal_scientific_name", {"Panthera leo": "Lion"}),
        ("plant", "plant_scientific_name", {"Quercus robur": "Oak"}),
        ("icd9_code", "diagnosis_name", {"Asthma": "493.9"}),
        ("hex_color", "color", {"Tomato": "#ff6347"}),
    ],
)
def test_a_table_says_what_goes_with_a_value(follower, leader, expected):
    found = {row[leader]: row[follower] for row in rows(follower, leader, count=4000)}
    assert expected.items() <= found.items()


@pytest.mark.parametrize(
    ("kind", "known"),
    [("animal_scientific_name", "ANIMALS"), ("plant_scientific_name", "PLANTS"),
     ("plant_scientific_name", "PLANT_FAMILIES"), ("diagnosis_name", "ICD_9")],
)  # fmt: skip
def test_the_tables_have_every_value(kind, known):
    assert set(_values(kind)) == set(getattr(agreement, known))


def test_snow_falls_when_it_is_cold_and_apple_devices_have_systems_of_apple():
    for row in rows("weather", "temperature", "device_brand", "device_os"):
        degrees = int(row["temperature"].split()[0])
        if "Snow" in row["weather"]:
            assert degrees <= 2
        if row["weather"] in ("Rain", "Heavy Rain", "Showers"):
            assert degrees > 0
        assert (row["device_brand"] == "Apple") == row["device_os"].startswith(("iOS", "iPadOS"))


def test_a_subcategory_is_of_the_category():
    for row in rows("product_category", "product_subcategory"):
        if row["product_category"] == "Furniture":
            assert row["product_subcategory"] in agreement.SUBCATEGORIES["FUR"]


def test_names_of_people_that_are_neither_have_an_x():
    generated = rows("gender", "gender_abbreviation", gender={"options": {"nonbinary": 30}})
    assert {(row["gender"], row["gender_abbreviation"]) for row in generated} == {
        ("Female", "F"), ("Male", "M"), ("Non-binary", "X")
    }  # fmt: skip


def test_values_do_not_depend_on_the_block_they_are_made_in():
    names = ("iban", "account_number", "product", "product_subcategory", "device_brand", "device_os", "weather",
             "temperature", "vin", "car_make", "color", "lab_color")  # fmt: skip
    whole = rows(*names, count=60)
    assert [rows(*names, start=place, count=1)[0] for place in range(60)] == whole


def test_the_second_field_follows_the_second_field():
    for row in rows("iban_a", "iban_b", "account_number_a", "account_number_b", locale="de_DE"):
        assert row["iban_a"].endswith(row["account_number_a"])
        assert row["iban_b"].endswith(row["account_number_b"])
    assert all(row["account_number_a"] != row["account_number_b"] for row in rows(
        "iban_a", "account_number_a", "account_number_b", locale="de_DE"
    ))  # fmt: skip


def test_a_field_in_a_group_follows_the_field_or_the_person_of_that_group():
    keys = {
        "sex_a": {"group": "buyer"},
        "sex_b": {"group": "seller"},
        "gender_abbreviation": {"group": "seller"},
    }
    generated = rows("sex_a", "sex_b", "gender_abbreviation", **keys)
    assert all(row["gender_abbreviation"] == row["sex_b"][0].upper() for row in generated)
    assert any(row["sex_a"] != row["sex_b"] for row in generated)


def test_a_length_that_was_asked_for_stays():
    generated = rows("iban", "account_number", locale="de_DE", account_number={"options": {"length": 7}})
    assert {len(row["account_number"]) for row in generated} == {7}
    generated = rows("iban", "account_number", locale="en_GB", account_number={"options": {"length": 8}})
    assert all(row["iban"].endswith(row["account_number"]) for row in generated)


def test_a_unique_field_follows_nothing():
    generated = rows("color", "hex_color", hex_color={"unique": True}, count=1000)
    assert len({row["hex_color"] for row in generated}) == 1000


def warned(*names: str, locale: str | None, unique: str) -> list[str]:
    fields = [{"name": name, "type": name, "unique": name == unique} for name in names]
    return [fault.path for fault in bound(fields, locale=locale).warnings if fault.code == "independent"]


@pytest.mark.parametrize(
    ("names", "locale", "unique", "text"),
    [
        (("date_of_birth", "national_id"), "pl_PL", "national_id", False),  # people are born as it says
        (("name", "national_id"), "en_US", "national_id", False),  # the number says nothing of the person
        (("country", "national_id"), None, "national_id", True),
        (("iban", "bic"), "de_DE", "iban", False),
        (("iban", "bic"), None, "iban", False),
        (("iban", "bic", "city"), None, "iban", True),
        (("company_name", "url"), "de_DE", "url", True),
        (("national_id", "ssn"), "en_US", "ssn", True),
        (("uuid", "ssn"), "en_US", "ssn", False),
        (("uuid", "email"), "en_US", "email", False),
    ],
)
def test_a_warning_says_that_unique_values_may_contradict_the_row(names, locale, unique, text):
    assert warned(*names, locale=locale, unique=unique) == (
        [f"fields[{names.index(unique)}]"] if text else []
    )


@pytest.mark.parametrize("kind", ["money", "market_cap"])
def test_amounts_have_the_symbol_of_the_row_s_currency(kind):
    for row in rows(kind, "currency_symbol", "country_code"):
        symbol = row["currency_symbol"]
        assert re.fullmatch(
            re.escape(symbol) + (" " if symbol[-1].isalpha() else "") + r"[0-9.]+[MB]?", row[kind]
        )
    for row in rows(kind, "currency_code"):
        assert row["currency_code"] != "EUR" or row[kind].startswith("€")
    assert {row[kind][0] for row in rows(kind, "city", locale="de_DE")} == {"€"}
    assert {row[kind][0] for row in rows(kind, "uuid")} == {"$"}


def test_a_symbol_that_was_asked_for_stays():
    generated = rows("money", "currency_code", money={"options": {"symbol": "$"}})
    assert {row["money"][0] for row in generated} == {"$"}
    generated = rows("money", "currency_code", money={"options": {"min": -5, "max": -1}}, locale="fr_FR")
    assert all(row["money"].startswith("-") for row in generated)


@pytest.mark.parametrize("locale", ["nl_NL", "de_DE", None])
def test_unique_ibans_agree_with_the_bic_and_the_account(locale):
    generated = rows("iban", "bic", "account_number", locale=locale, iban={"unique": True}, count=3000)
    assert len({row["iban"] for row in generated}) == 3000
    for row in generated:
        assert row["iban"][:2] == row["bic"][4:6]
        assert row["account_number"] in row["iban"]
        assert not row["iban"][4:8].isalpha() or row["iban"][4:8] == row["bic"][:4]


def test_a_blank_value_says_nothing():
    generated = rows("iban", "account_number", locale="de_DE", iban={"percent_blank": 50})
    assert all(row["account_number"] for row in generated)
    assert 0 < sum(row["iban"] is None for row in generated) < ROWS
    assert all(row["iban"] is None or row["iban"].endswith(row["account_number"]) for row in generated)


def test_a_prefix_of_the_other_field_does_not_hinder_a_formula_that_reads_both():
    fields = [
        {"name": "a", "type": "iban", "formula": 'concat("X", b)', "locale": "de_DE"},
        {"name": "b", "type": "account_number"},
    ]
    columns = table(bound(fields), 0, 5)
    assert [f"X{value}" for value in columns["b"]] == columns["a"]


def field(name: str, kind: str, number: int, **keys) -> dict:
    return {"id": f"fld_{number:026d}", "name": name, "type": kind, **keys}


def test_a_new_field_changes_no_value_of_a_saved_one():
    before = [field("account", "account_number", 1)]
    settled = {item["id"] for item in before}
    later = [*before, field("iban", "iban", 2)]
    spec = groups.assign(parse(later, locale="de_DE"), settled)
    assert spec.fields[0].group is None
    follower = groups.assign(
        parse([field("iban", "iban", 1), field("account", "account_number", 2)], locale="de_DE")
    )
    assert follower.fields[1].group == "row"
    saved = [
        field("other", "iban", 9),
        field("iban", "iban", 1),
        field("account", "account_number", 2, group="row"),
    ]
    columns = table(bound(saved, locale="de_DE"), 0, 20)
    assert all(whole.endswith(part) for whole, part in zip(columns["iban"], columns["account"], strict=True))


def test_engine_2_puts_nothing_into_a_row():
    spec = groups.assign(parse([field("iban", "iban", 1), field("account", "account_number", 2)]), engine=2)
    assert spec.fields[1].group is None


def test_the_rules_name_types_that_exist():
    names = {kind.name for kind in registry.REGISTRY}
    assert set(RULES) <= names
    assert {name for rules in RULES.values() for rule in rules for name in rule.types} <= names
    assert {rule.kind for rules in RULES.values() for rule in rules if rule.kind} <= set(registry.GROUP_KINDS)
