"""A value that is given narrows the thing that its group shares, and what nothing fits is warned of."""

from __future__ import annotations

from datetime import date
from urllib.parse import urlsplit

import pytest

from tests.engine.agreeing import made, of_types, rows


def follows(overrides: dict, *types: str, locale: str | None = None) -> list[dict]:
    source = made(*of_types(*types), locale=locale, **overrides)
    assert source.warnings == []
    return rows(source, 300)


def test_a_city_that_is_given_says_country_zone_currency_and_language():
    for row in follows(
        {"city": "Berlin"}, "city", "country_code", "time_zone", "currency_code", "language", "phone_number"
    ):
        result = row["country_code"], row["time_zone"], row["currency_code"], row["language"]
        assert result == ("DE", "Europe/Berlin", "EUR", "German")
        assert row["phone_number"].startswith("+49 ")


@pytest.mark.parametrize(
    ("inputs", "expected"),
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
def test_a_fixed_country_narrows_the_places(inputs, expected):
    types = (
        "country_code",
        "continent",
        "language",
        "nationality",
        "currency_code",
        "currency_name",
        "mobile",
    )
    for row in follows(inputs, *types):
        assert {name: row[name] for name in expected} == expected


def test_a_title_that_is_given_says_the_sex():
    for value, sex in (("Ms.", "female"), ("mr", "male")):
        assert {row["sex"] for row in follows({"title": value}, "title", "sex", "first_name")} == {sex}
    assert {row["sex"] for row in follows({"suffix": "Jr."}, "suffix", "sex")} == {"male"}


def test_an_age_that_is_given_says_the_year_of_birth_and_the_other_way_round():
    born = [row["date_of_birth"] for row in follows({"age": 30}, "age", "date_of_birth")]
    assert min(born) >= date(1995, 3, 1)
    assert max(born) <= date(1996, 2, 28)
    (age,) = {row["age"] for row in follows({"date_of_birth": "2000-02-29"}, "age", "date_of_birth")}
    assert age == 25


@pytest.mark.parametrize(
    "inputs",
    [
        {"company_name": "Lee Inc"},
        {"domain_name": "lee-inc.example"},
        {"company_email": "ann.lee@lee-inc.example"},
    ],
)
def test_a_fixed_company_determines_its_name_and_site(inputs):
    for row in follows(inputs, "company_name", "domain_name", "url", "company_email")[:20]:
        assert inputs.get("company_name", row["company_name"]) == "Lee Inc"
        assert urlsplit(row["url"]).hostname == "lee-inc.example"


@pytest.mark.parametrize(
    ("types", "inputs", "path"),
    [
        (("city", "country"), {"city": "Nowhereville"}, "overrides.city"),
        (("title", "sex"), {"title": "Captain"}, "overrides.title"),
        (("age", "date_of_birth"), {"age": 30, "date_of_birth": "2000-01-01"}, "overrides.date_of_birth"),
        (("age", "date_of_birth"), {"age": 500}, "overrides.age"),
        (("company_name", "url"), {"company_name": "Nobody at all"}, "overrides.company_name"),
        (("country", "currency_code"), {"currency_code": "XXX"}, "overrides.currency_code"),
    ],
)
def test_a_value_that_nothing_fits_is_warned_of_by_name(types, inputs, path):
    source = made(*of_types(*types), **inputs)
    assert [(fault.path, fault.code) for fault in source.warnings] == [(path, "no_match")]


def test_values_that_no_place_has_together_are_warned_of_by_name():
    source = made(*of_types("country", "city", "currency_code"), country="Germany", currency_code="USD")
    assert {fault.path for fault in source.warnings} == {"overrides.country", "overrides.currency_code"}
