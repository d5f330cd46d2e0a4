"""Groups: sharing by group name, fields that are added later, and conflicting options within a group."""

from __future__ import annotations

from urllib.parse import urlsplit

import phonenumbers
import pytest

from tests.engine.agreeing import NOW, ROWS, TITLES, host, made, of_types, plain, rows
from tests.engine.facts import tender
from webapp.engine import groups
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.data import vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse

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


# -- currencies next to places


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


def test_a_currency_in_a_separate_group_does_not_depend_on_the_place():
    fields = [
        *of_types("country_code"),
        {"name": "currency_code", "type": "currency_code", "group": "currency"},
    ]
    found = rows(made(*fields), 1_000)
    assert any(row["currency_code"] not in tender(row["country_code"]) for row in found)


def test_a_unique_currency_of_a_places_country_is_rejected_with_advice():
    with pytest.raises(SpecError) as error:
        made(*of_types("country"), {"name": "c", "type": "currency_code", "group": "place", "unique": True})
    (fault,) = error.value.faults
    assert (fault.path, fault.code) == ("fields[1].unique", "not_unique")
    assert "separate group" in fault.hint


# -- what joins later


def with_id(field: dict, number: int) -> dict:
    return {**field, "id": f"fld_{number:026d}"}


def test_a_company_name_and_its_address_keep_their_values_when_others_join():
    name, address, site = (
        with_id(field, n) for n, field in enumerate(of_types("company_name", "company_email", "url"))
    )
    alone = [row["company_name"] for row in rows(made(name), 200)]
    unnamed = compile_plan(parse([name]), vocabulary.open_default())
    assert [
        row["company_name"] for row in rows(BoundPlan(unnamed, GenerationContext("agree", NOW)), 200)
    ] == alone
    assert [row["company_name"] for row in rows(made(name, address, site), 200)] == alone
    before = [row["company_email"] for row in rows(made(address), 200)]
    later = [with_id(of_types("company_name")[0], 7), with_id(of_types("name")[0], 8)]
    assert [row["company_email"] for row in rows(made(address, *later), 200)] == before


def test_an_independent_site_is_not_grouped_with_a_company_added_later():
    site, name = with_id(of_types("url")[0], 1), with_id(of_types("company_name")[0], 2)
    assert groups_of(site)["url"] is None
    assert groups_of(site, name)["url"] == "company"
    settled = groups.assign(parse([site, name]), ungrouped_ids={site["id"]})
    assert [field.group for field in settled.fields] == [None, "company"]


def test_two_companies_that_name_no_group_are_two():
    plan = compile_plan(
        parse([*of_types("company_name"), {"name": "b", "type": "company_name"}]), vocabulary.open_default()
    )
    found = rows(BoundPlan(plan, GenerationContext("agree", NOW)), 500)
    assert sum(row["company_name"] == row["b"] for row in found) < 10


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
def test_fields_of_one_group_with_contradicting_options_are_rejected(fields, path, code):
    with pytest.raises(SpecError) as error:
        made(*({"name": kind, "type": kind, "options": options} for kind, options in fields))
    assert [(fault.path, fault.code) for fault in error.value.faults] == [(path, code)]


def test_sites_of_one_company_have_the_same_domain():
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


def test_a_date_of_birth_has_the_requested_format_and_matches_the_age():
    fields = of_types("age", "date_of_birth")
    fields[1]["options"] = {"format": "DD.MM.YYYY"}
    source = made(*fields)
    for row in (*rows(source, 500), *rows(source, 5, 7)):
        day, month, year = map(int, row["date_of_birth"].split("."))
        assert row["age"] == NOW.year - year - ((NOW.month, NOW.day) < (month, day))
