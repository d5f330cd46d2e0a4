"""Columns of one row do not contradict each other, as libraries that did not produce them judge (`bench/truth.py`)."""

from __future__ import annotations

import numpy as np
import phonenumbers
import pytest

from bench import truth
from tests.engine.types.made import bound, table
from webapp.engine.data import vocabulary
from webapp.engine.random import RandomStream
from webapp.engine.types import documents, national_ids

ROWS = 150
CHECKS = ("phone / state", "mobile / state", "IBAN, BIC / country", "national id valid", "national id / birth",
          "national id / sex", "tax id valid", "VAT id valid", "currency / country", "plate / region")  # fmt: skip
COLUMNS = ("sex", "date_of_birth", "state", "state_abbr", "country_code", "phone_number", "mobile", "iban", "bic",
           "national_id", "tax_id", "vat_id", "currency_code", "license_plate")  # fmt: skip


def rows(locale: str | None, *names: str) -> list[dict]:
    columns = table(bound([{"name": name, "type": name} for name in names], locale=locale), 0, ROWS)
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


@pytest.mark.parametrize("locale", ["zh_CN", "de_DE", "pl_PL", "it_IT", "en_US", "tr_TR"])
def test_no_two_columns_of_a_row_contradict_each_other(locale):
    generated = rows(locale, *COLUMNS)
    judged = 0
    for label in CHECKS:
        verdicts = [truth.CHECKS[label][1](row) for row in generated]
        assert [verdict for verdict in verdicts if verdict] == [], label
        judged += sum(verdict is not None for verdict in verdicts)
    assert judged > 4 * ROWS


@pytest.mark.parametrize("country", sorted(national_ids.PERSON_CODES))
def test_a_number_tells_the_day_of_birth_and_the_sex_of_its_person(country):
    words, days = vocabulary.open_default(), np.arange(0, national_ids.DAYS, 97)
    sexes = np.arange(days.size) % 2
    code = national_ids.national_id(words, country)
    draws = code.draw(RandomStream(np.uint64(1), np.arange(days.size, dtype=np.uint64)))
    texts = code.text(draws, national_ids.person_inputs(days, sexes)).to_pylist()
    checks = (truth.national_id_is_valid, truth.national_id_birth, truth.national_id_sex)
    seen = 0
    for text, day, sex in zip(texts, days.tolist(), sexes.tolist(), strict=True):
        born = np.datetime64(national_ids.FIRST_DAY) + day
        row = {
            "national_id": text,
            "country_code": country,
            "date_of_birth": born.item(),
            "sex": truth_sex(sex),
        }
        valid = not (truth.date(1920, 1, 1) <= born.item() <= truth.date(2025, 1, 1))
        # Libraries refuse days to come, and days that a number of two digits for the year cannot tell apart.
        assert valid or [verdict for verdict in (check(row) for check in checks) if verdict] == []
        seen += not valid
    assert seen > 300


def truth_sex(sex: int) -> str:
    return ("female", "male")[sex]


@pytest.mark.parametrize("country", sorted(documents.TAX))
def test_tax_numbers_pass_python_stdnum(country):
    code = documents.tax_number(vocabulary.open_default(), country)
    draws = code.draw(RandomStream(np.uint64(1), np.arange(500, dtype=np.uint64)))
    result = [{"tax_id": text, "country_code": country} for text in code.text(draws).to_pylist()]
    assert [verdict for verdict in map(truth.tax_id_is_valid, result) if verdict] == []


@pytest.mark.parametrize("country", sorted(documents.VAT))
def test_vat_numbers_pass_python_stdnum(country):
    code = documents.vat_number(vocabulary.open_default(), country)
    draws = code.draw(RandomStream(np.uint64(1), np.arange(500, dtype=np.uint64)))
    result = [{"vat_id": text, "country_code": country} for text in code.text(draws).to_pylist()]
    assert [verdict for verdict in map(truth.vat_id_is_valid, result) if verdict] == []


def test_a_column_without_numbers_for_its_country_is_blank_and_says_so():
    source = bound([{"name": "x", "type": "vat_id"}], locale="en_US")
    assert [warning.code for warning in source.warnings] == ["no_values"]
    assert table(source, 0, 10)["x"] == [None] * 10


def test_an_american_account_has_a_routing_number_and_says_so():
    fields = [{"name": name, "type": name} for name in ("iban", "bank_name", "bic")]
    source = bound(fields, locale="en_US")
    assert "no_iban" in [warning.code for warning in source.warnings]
    columns = table(source, 0, 50)
    assert all(len(text.split()[0]) == 9 for text in columns["iban"])
    assert {text[4:6] for text in columns["bic"]} == {"US"}
    assert None not in columns["bank_name"]


def test_numbers_of_the_kind_that_was_requested():
    fields = [
        {"name": kind, "type": "phone_number", "options": {"kind": kind}, "locale": "de_DE", "group": "one"}
        for kind in ("any", "landline", "mobile")
    ]
    columns = table(bound(fields), 0, 200)
    kinds = {
        kind: {phonenumbers.number_type(phonenumbers.parse(text)) for text in texts}
        for kind, texts in columns.items()
    }
    assert kinds["landline"] == {phonenumbers.PhoneNumberType.FIXED_LINE}
    assert kinds["mobile"] == {phonenumbers.PhoneNumberType.MOBILE}
    assert len(kinds["any"]) == 2


def test_unique_national_ids_do_not_repeat_and_keep_a_day_of_their_own():
    field = {"name": "x", "type": "national_id", "unique": True, "locale": "pl_PL"}
    generated = table(bound([field, {"name": "born", "type": "date_of_birth"}]), 0, 3_000)["x"]
    assert len(set(generated)) == 3_000
    assert all(
        truth.national_id_is_valid({"national_id": text, "country_code": "PL"}) == "" for text in generated
    )


@pytest.mark.parametrize("locale", ["pt_BR", "de_DE", "es_ES", "nl_NL", "hr_HR"])
def test_a_person_has_one_number_where_the_country_has_one(locale):
    columns = table(
        bound([{"name": name, "type": name} for name in ("national_id", "tax_id")], locale=locale), 0, 50
    )
    assert columns["tax_id"] == columns["national_id"]


def test_a_tax_id_next_to_a_blank_national_id_is_not_blank():
    fields = [
        {"name": "national_id", "type": "national_id", "percent_blank": 50},
        {"name": "tax_id", "type": "tax_id"},
    ]
    columns = table(bound(fields, locale="de_DE"), 0, 200)
    pairs = list(zip(columns["national_id"], columns["tax_id"], strict=True))
    assert {number is None for number, _ in pairs} == {True, False}
    assert all(tax is not None and number in (None, tax) for number, tax in pairs)


def test_tax_ids_of_companies_are_not_numbers_of_people():
    columns = table(
        bound([{"name": name, "type": name} for name in ("national_id", "tax_id")], locale="pl_PL"), 0, 50
    )
    assert not set(columns["tax_id"]) & set(columns["national_id"])


def test_an_armenian_number_has_the_day_of_birth_and_the_sex():
    fields = [{"name": name, "type": name} for name in ("national_id", "date_of_birth", "sex")]
    for number, born, sex in zip(*table(bound(fields, locale="hy_AM"), 0, 200).values(), strict=True):
        assert number[:6] == f"{born.day + (50 if sex == 'female' else 10):02d}{born:%m%y}"


@pytest.mark.parametrize("locale", ["ar_SA", "ko_KR", "de_CH", "cs_CZ", "pl_PL"])
def test_countries_have_landlines(locale):
    field = {"name": "phone", "type": "phone_number", "options": {"kind": "landline"}}
    source = bound([field], locale=locale)
    assert list(source.warnings) == []
    types = phonenumbers.PhoneNumberType
    fixed = {types.FIXED_LINE, types.FIXED_LINE_OR_MOBILE}
    kinds = {phonenumbers.number_type(phonenumbers.parse(text)) for text in table(source, 0, 200)["phone"]}
    assert kinds <= fixed


def test_mobile_numbers_in_place_of_landlines_are_reported():
    field = {"name": "phone", "type": "phone_number", "options": {"kind": "landline"}}
    assert [(fault.path, fault.code) for fault in bound([field], locale="zh_TW").warnings] == [
        ("fields[0]", "no_landlines")
    ]
