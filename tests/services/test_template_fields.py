"""What a new version's fields keep of the version before: ids, and with them values; and groups."""

from __future__ import annotations

from typing import Any

from webapp import ids
from webapp.engine.spec import parse
from webapp.row_templates.services import field_ids


def stored(fields: list[dict[str, Any]], before: list[dict[str, Any]] | tuple = ()) -> list[dict[str, Any]]:
    return [field.to_json() for field in field_ids.assign_ids_and_groups(parse(fields), before).fields]


def by_name(fields: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {field["name"]: field for field in field_ids.walk(fields)}


A = {"name": "a", "type": "row_number"}
B = {"name": "b", "type": "sequence"}
LINES = {"name": "lines", "type": "nested", "options": {"array": True, "fields": [A, B]}}


def test_every_field_has_an_id_nested_ones_included():
    found = list(field_ids.walk(stored([A, LINES])))
    assert [field["name"] for field in found] == ["a", "lines", "a", "b"]
    assert len({field["id"] for field in found}) == 4
    assert all(ids.is_id(field["id"], "fld") for field in found)


def test_proposed_ids_are_kept():
    mine = ids.new("fld")
    assert stored([{**A, "id": mine}, B])[0]["id"] == mine


def test_fields_without_ids_are_matched_by_name_in_any_position():
    before = stored([A, LINES, B])
    after = stored([B, {"name": "new", "type": "constant", "options": {"value": 1}}, LINES, A], before)
    old = {field["name"]: field["id"] for field in before}
    assert {field["name"]: field["id"] for field in after if field["name"] != "new"} == old
    assert after[1]["id"] not in {field["id"] for field in field_ids.walk(before)}
    assert [f["id"] for f in field_ids.children(after[2])] == [f["id"] for f in field_ids.children(before[1])]


def test_a_renamed_field_that_is_sent_with_its_id_keeps_it():
    before = stored([A, B])
    after = stored([{**A, "name": "renamed", "id": before[0]["id"]}, B], before)
    assert [field["id"] for field in after] == [field["id"] for field in before]


def test_two_fields_that_swap_names_keep_their_ids():
    before = stored([A, B])
    after = stored(
        [{**A, "name": "b", "id": before[0]["id"]}, {**B, "name": "a", "id": before[1]["id"]}], before
    )
    assert [field["id"] for field in after] == [field["id"] for field in before]


def test_a_field_does_not_take_by_name_the_id_that_another_one_brings():
    before = stored([A])
    after = stored([{**A, "name": "renamed", "id": before[0]["id"]}, A], before)
    assert after[0]["id"] == before[0]["id"]
    assert after[1]["id"] != before[0]["id"]


def test_the_service_answers_what_it_was_sent_back_unchanged():
    before = stored([A, LINES, {**B, "prefix": "x", "percent_blank": 12.5}])
    assert stored(before, before) == before


def grouped(fields: list[dict[str, Any]]) -> dict[str, str | None]:
    return {field["name"]: field["group"] for field in fields}


FIRST = {"name": "first", "type": "first_name"}
LAST = {"name": "last", "type": "last_name"}


def test_fields_that_share_a_person_are_put_into_a_group_when_they_are_saved():
    assert grouped(stored([FIRST, LAST, {"name": "other", "type": "first_name"}, A])) == {
        "first": "person",
        "last": "person",
        "other": "person_2",
        "a": None,
    }


def test_a_group_is_kept_if_the_field_in_the_request_has_none():
    before = stored([{**FIRST, "group": "buyer"}, {**LAST, "group": "buyer"}])
    after = stored([FIRST, LAST, {"name": "seller", "type": "first_name"}], before)
    assert grouped(after) == {"first": "buyer", "last": "buyer", "seller": "person"}


def test_a_sent_group_wins_over_the_one_before():
    before = stored([FIRST, LAST])
    assert grouped(stored([{**FIRST, "group": "buyer"}, LAST], before)) == {
        "first": "buyer",
        "last": "person",
    }


def test_a_group_is_dropped_where_the_new_type_shares_nothing():
    before = stored([FIRST, LAST])
    assert grouped(stored([{"name": "first", "type": "row_number"}, LAST], before))["first"] is None


def test_a_site_that_was_saved_by_itself_stays_by_itself_when_a_company_is_added():
    first = stored([{"name": "site", "type": "url"}])
    assert first[0]["group"] is None
    later = stored([{"name": "site", "type": "url"}, {"name": "firm", "type": "company_name"}], first)
    assert [field["group"] for field in later] == [None, "company"]
    assert later[0]["id"] == first[0]["id"]
    anew = stored([{"name": "site", "type": "url"}, {"name": "firm", "type": "company_name"}])
    assert [field["group"] for field in anew] == ["company", "company"]


def test_a_currency_that_was_saved_by_itself_keeps_its_group_when_a_country_is_added():
    first = stored([{"name": "code", "type": "currency_code"}])
    later = stored(
        [
            {"name": "code", "type": "currency_code"},
            {"name": "land", "type": "country"},
            {"name": "sign", "type": "currency_symbol"},
        ],
        first,
    )
    assert [field["group"] for field in later] == ["currency", "place", "currency"]
