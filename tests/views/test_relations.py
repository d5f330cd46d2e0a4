"""Related templates over REST: versions are pinned, refreshed only on request, and equal in all outputs."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal

import orjson
import pytest

from jobs import exports
from tests.views.speak import faults, make, reference
from webapp.extensions import db
from webapp.row_templates.services import compiled_plans

CUSTOMERS = [
    {"name": "id", "type": "row_number"},
    {"name": "name", "type": "name"},
    {"name": "country", "type": "country"},
]


@pytest.fixture
def shop(edith):
    """Customers, their orders, the lines of those; the ids of the templates by name."""
    customers = make(edith, name="customers", quantity=100, fields=CUSTOMERS)["id"]
    orders = [
        {"name": "id", "type": "row_number"},
        reference("customer_id", customers, "id", cardinality={"min": 1, "max": 5}),
        reference("customer", customers, "name"),
    ]
    orders = make(edith, name="orders", fields=orders)["id"]
    lines = [
        reference("order_id", orders, "id", cardinality={"min": 1, "max": 9}),
        {"name": "position", "type": "position_in_parent"},
        {"name": "amount", "type": "number", "options": {"min": 1, "max": 100, "decimals": 2}},
        reference("customer", orders, "customer"),
    ]
    lines = make(edith, name="lines", fields=lines)["id"]
    return {"customers": customers, "orders": orders, "lines": lines}


def rows(program, template_id, count, **ask):
    answer = program.post(f"/templates/{template_id}/generate", json={"count": count, "seed": "s", **ask})
    assert answer.status_code == 200, answer.json
    return orjson.loads(answer.data)


def shown(program, template_id):
    return program.get(f"/templates/{template_id}").json


def changed(program, template_id, **changes):
    answer = program.patch(f"/templates/{template_id}", json=changes)
    assert answer.status_code == 200, answer.json
    return answer.json


def added(program, template_id, *fields):
    """The template with further fields."""
    return changed(program, template_id, fields=[*shown(program, template_id)["fields"], *fields])


# --- Rows -------------------------------------------------------------------------------------------------------


def test_three_levels_fit_together_over_http(edith, shop):
    people = {row["id"]: row["name"] for row in rows(edith, shop["customers"], 100)}
    orders = {row["id"]: row for row in rows(edith, shop["orders"], 300)}
    lines = rows(edith, shop["lines"], 1500)
    assert {row["customer_id"] for row in orders.values()} == set(people)
    assert all(people[row["customer_id"]] == row["customer"] for row in orders.values())
    assert {row["order_id"] for row in lines} == set(orders)
    assert all(orders[row["order_id"]]["customer"] == row["customer"] for row in lines)
    positions = defaultdict(list)
    for row in lines:
        positions[row["order_id"]].append(row["position"])
    assert all(found == list(range(1, len(found) + 1)) for found in positions.values())


def test_totals_over_http_are_the_sums_of_the_children(edith, shop):
    total = {
        "name": "total",
        "type": "aggregate",
        "options": {"template_id": shop["lines"], "field": "amount"},
    }
    added(edith, shop["orders"], total)
    edith.post(f"/templates/{shop['lines']}/refresh-references")
    stated = {shop["orders"]: 300}
    sums = defaultdict(Decimal)
    for row in rows(edith, shop["lines"], 1500, rows=stated):
        sums[row["order_id"]] += Decimal(str(row["amount"]))
    orders = rows(edith, shop["orders"], 300, rows=stated)
    assert {row["id"]: Decimal(str(row["total"])) for row in orders} == sums


def test_requesting_more_children_than_exist_is_rejected_with_their_number(edith, shop):
    answer = edith.post(f"/templates/{shop['lines']}/generate", json={"count": 1501, "seed": "s"})
    assert faults(answer) == {"fields[0]": "not_enough_rows"}
    assert "1,500" in answer.json["error"]["details"]["fields"][0]["message"]


def test_a_preview_is_the_head_of_what_generate_gives(edith, shop):
    for template_id in shop.values():
        answer = edith.post(f"/templates/{template_id}/preview", json={"seed": "s"})
        assert answer.json["rows"] == rows(edith, template_id, 3)
        fields = shown(edith, template_id)["fields"]
        draft = edith.post(f"/templates/{template_id}/preview", json={"seed": "s", "fields": fields})
        assert draft.json["rows"] == answer.json["rows"]


def test_a_preview_of_fewer_children_than_three_shows_those(edith, shop):
    answer = edith.post(
        f"/templates/{shop['orders']}/preview",
        json={"seed": "s", "rows": {shop["customers"]: 1, shop["orders"]: 2}},
    )
    assert [row["id"] for row in answer.json["rows"]] == [1, 2]


def test_a_template_that_is_not_saved_may_refer_to_one_that_is(edith, shop):
    fields = [reference("customer", shop["customers"], "name")]
    answer = edith.post("/generate", json={"fields": fields, "count": 50, "seed": "s"})
    assert answer.status_code == 200
    known = {row["name"] for row in rows(edith, shop["customers"], 100)}
    assert {row["customer"] for row in answer.json} <= known
    assert f"{shop['customers']}@v1; rows=100" in answer.headers["X-References"]


def test_an_export_by_a_worker_has_the_bytes_of_generate(edith, shop, app):
    ask = {"count": 700, "seed": "s", "format": "csv", "rows": {shop["orders"]: 250}}
    export = edith.post(f"/templates/{shop['lines']}/exports", json=ask).json
    compiled_plans.CACHE.__init__()  # a worker is another process
    with app.app_context():
        exports.run(export["id"])
        db.session.remove()
    result = edith.get(f"/exports/{export['id']}").json
    assert result["status"] == "completed", result
    file = edith.get(f"/exports/{export['id']}/download").data
    assert file == edith.post(f"/templates/{shop['lines']}/generate", json=ask).data
    assert file.count(b"\n") == 701


def test_an_export_keeps_the_versions_it_was_asked_with(edith, shop, app):
    before = rows(edith, shop["orders"], 300)
    export = edith.post(f"/templates/{shop['orders']}/exports", json={"count": 300, "seed": "s"}).json
    customers = shown(edith, shop["customers"])["fields"]
    changed(edith, shop["customers"], quantity=50, fields=[customers[0], {**customers[1], "type": "city"}])
    edith.post(f"/templates/{shop['orders']}/refresh-references")
    with app.app_context():
        exports.run(export["id"])
        db.session.remove()
    assert orjson.loads(edith.get(f"/exports/{export['id']}/download").data) == before


# --- Rows that a request states ---------------------------------------------------------------------------------


def test_a_request_contains_the_row_counts_of_the_others(edith, shop):
    ask = {"rows": {shop["customers"]: 7}}
    found = rows(edith, shop["orders"], 21, **ask)
    assert {row["customer_id"] for row in found} == set(range(1, 8))
    answer = edith.post(f"/templates/{shop['orders']}/generate", json={"count": 22, **ask})
    assert faults(answer) == {"fields[1]": "not_enough_rows"}


def test_a_requested_number_of_children_is_met_exactly_or_rejected(edith, shop):
    path = f"/templates/{shop['orders']}/generate"
    found = rows(edith, shop["orders"], 487, rows={shop["orders"]: 487})
    assert {row["customer_id"] for row in found} == set(range(1, 101))
    assert faults(edith.post(path, json={"count": 488, "rows": {shop["orders"]: 487}})) == {
        "fields[1]": "not_enough_rows"
    }
    for stated in (99, 501):
        answer = edith.post(path, json={"count": 1, "rows": {shop["orders"]: stated}})
        assert faults(answer) == {"fields[1].options.cardinality": "unrelated"}


def test_rows_of_an_unrelated_template_are_rejected(edith, shop):
    answer = edith.post(
        f"/templates/{shop['customers']}/generate", json={"count": 1, "rows": {shop["lines"]: 5}}
    )
    assert faults(answer) == {f"rows.{shop['lines']}": "unknown_template"}
    answer = edith.post(f"/templates/{shop['orders']}/preview", json={"rows": {"tpl_x": 5}})
    assert faults(answer) == {"rows.tpl_x": "unknown_template"}


# --- Pins -------------------------------------------------------------------------------------------------------


def test_a_template_lists_its_references_and_rows_are_sent_with_it(edith, shop):
    assert shown(edith, shop["customers"])["references"] == []
    assert shown(edith, shop["lines"])["references"] == sorted(
        [
            {"template_id": shop["customers"], "version": 1, "rows": 100},
            {"template_id": shop["orders"], "version": 1, "rows": 10},
        ],
        key=lambda item: item["template_id"],
    )
    answer = edith.post(
        f"/templates/{shop['orders']}/generate", json={"count": 1, "rows": {shop["customers"]: 9}}
    )
    assert answer.headers["X-References"] == f"{shop['customers']}@v1; rows=9"
    assert (
        "X-References"
        not in edith.post(f"/templates/{shop['customers']}/generate", json={"count": 1}).headers
    )


def test_a_reference_that_names_no_field_is_stored_with_the_key(edith, shop):
    fields = [{"name": "customer", "type": "reference", "options": {"template_id": shop["customers"]}}]
    assert make(edith, fields=fields)["fields"][0]["options"]["field"] == "id"


def test_a_changed_parent_changes_the_children_only_when_they_are_refreshed(edith, shop):
    before = rows(edith, shop["orders"], 300)
    customers = shown(edith, shop["customers"])["fields"]
    changed(edith, shop["customers"], fields=[customers[0], {**customers[1], "type": "city"}])
    assert rows(edith, shop["orders"], 300) == before
    compiled_plans.CACHE.__init__()
    assert rows(edith, shop["orders"], 300) == before
    refreshed = edith.post(f"/templates/{shop['orders']}/refresh-references").json
    assert (refreshed["version"], refreshed["references"][0]["version"]) == (2, 2)
    cities = {row["name"] for row in rows(edith, shop["customers"], 100)}
    after = rows(edith, shop["orders"], 300)
    assert {row["customer"] for row in after} == cities
    assert [row["customer_id"] for row in after] == [row["customer_id"] for row in before]


def test_refreshing_makes_a_version_only_when_something_changed(edith, shop):
    path = f"/templates/{shop['lines']}/refresh-references"
    assert edith.post(path).json["version"] == 1
    changed(edith, shop["customers"], quantity=50)  # reached by way of the orders
    assert edith.post(path).json["version"] == 2
    assert edith.post(path).json["version"] == 2
    assert edith.post(f"/templates/{shop['customers']}/refresh-references").json["version"] == 2


def test_refreshing_names_what_no_longer_fits(edith, shop):
    customers = shown(edith, shop["customers"])["fields"]
    changed(edith, shop["customers"], fields=[customers[0], {**customers[1], "name": "full_name"}])
    answer = edith.post(f"/templates/{shop['orders']}/refresh-references")
    assert faults(answer) == {"fields[2].options.field": "unknown_field"}
    assert "full_name" in answer.json["error"]["details"]["fields"][0]["hint"]
    assert shown(edith, shop["orders"])["version"] == 1
    assert len(rows(edith, shop["orders"], 300)) == 300


def test_a_restored_version_keeps_the_parents_it_was_saved_with(edith, shop):
    before = rows(edith, shop["orders"], 300)
    changed(edith, shop["customers"], quantity=20)
    edith.post(f"/templates/{shop['orders']}/refresh-references")
    assert {row["customer_id"] for row in rows(edith, shop["orders"], 60)} == set(range(1, 21))
    back = edith.post(f"/templates/{shop['orders']}/versions/1/restore").json
    assert (back["version"], back["references"][0]["version"], back["references"][0]["rows"]) == (3, 1, 100)
    assert rows(edith, shop["orders"], 300) == before


def test_saving_a_child_pins_the_newest_parents(edith, shop):
    changed(edith, shop["customers"], quantity=50)
    assert changed(edith, shop["orders"], description="new")["references"] == [
        {"template_id": shop["customers"], "version": 2, "rows": 50}
    ]


# --- What is not there ------------------------------------------------------------------------------------------


def test_a_deleted_parent_is_named_when_rows_are_requested(edith, shop):
    assert edith.delete(f"/templates/{shop['customers']}").status_code in (200, 204)
    for path in ("generate", "preview"):
        answer = edith.post(f"/templates/{shop['orders']}/{path}", json={})
        assert faults(answer) == dict.fromkeys(
            ("fields[1].options.template_id", "fields[2].options.template_id"), "unknown_template"
        )
    compiled_plans.CACHE.__init__()
    assert "fields[1].options.template_id" in faults(
        edith.post(f"/templates/{shop['orders']}/generate", json={})
    )
    edith.post(f"/templates/{shop['customers']}/restore")
    assert len(rows(edith, shop["orders"], 300)) == 300


def test_a_deleted_parent_of_a_parent_is_reported_at_the_field_that_leads_to_it(edith, shop):
    assert len(rows(edith, shop["lines"], 3)) == 3
    edith.delete(f"/templates/{shop['customers']}")
    for _ in range(2):  # with a cached plan, and without
        found = faults(edith.post(f"/templates/{shop['lines']}/generate", json={}))
        assert found
        assert all(path.startswith("fields[") for path in found)
        compiled_plans.CACHE.__init__()


def test_a_reference_to_a_missing_template_is_rejected_when_saved(edith):
    fields = [reference("x", "tpl_00000000000000000000000000", "id")]
    answer = edith.post("/templates", json={"name": "T", "fields": fields})
    assert faults(answer) == {"fields[0].options.template_id": "unknown_template"}


def test_another_workspaces_template_does_not_exist(edith, shop, api, cast):
    stranger = api(cast.mallory)
    fields = [reference("x", shop["customers"], "id")]
    for path in ("/templates", "/generate"):
        answer = stranger.post(path, json={"name": "T", "fields": fields})
        assert faults(answer) == {"fields[0].options.template_id": "unknown_template"}
    hers = make(stranger, name="mine")["id"]
    answer = stranger.patch(f"/templates/{hers}", json={"fields": fields})
    assert faults(answer) == {"fields[0].options.template_id": "unknown_template"}


def test_a_team_has_no_templates_for_users_who_are_not_its_members(api, cast):
    olivia, tessa = (
        api(who, **{"X-Project-Id": project})
        for who, project in ((cast.olivia, cast.red_project), (cast.tessa, cast.main))
    )
    hidden = make(olivia, fields=CUSTOMERS)
    if hidden["project_id"] != cast.red_project:
        pytest.skip("a key is of one project")
    answer = tessa.post("/templates", json={"name": "T", "fields": [reference("x", hidden["id"], "id")]})
    assert faults(answer) == {"fields[0].options.template_id": "unknown_template"}


def test_templates_that_refer_to_each_other_are_saved_one_after_the_other(edith, shop):
    total = {
        "name": "orders",
        "type": "aggregate",
        "options": {"template_id": shop["orders"], "function": "count"},
    }
    assert added(edith, shop["customers"], total)["version"] == 2
    counts = defaultdict(int)
    for row in rows(edith, shop["orders"], 300):
        counts[row["customer_id"]] += 1
    assert {row["id"]: row["orders"] for row in rows(edith, shop["customers"], 100)} == counts
    circle = {
        "name": "bad",
        "type": "aggregate",
        "options": {"template_id": shop["orders"], "field": "again"},
    }
    fields = [*shown(edith, shop["orders"])["fields"], reference("again", shop["customers"], "orders")]
    assert changed(edith, shop["orders"], fields=fields)["version"] == 2
    answer = edith.patch(
        f"/templates/{shop['customers']}", json={"fields": [*CUSTOMERS, {**circle, "name": "orders"}]}
    )
    assert faults(answer) == {"fields[3].options.field": "cycle"}


def test_without_a_count_a_child_has_all_its_rows_if_its_parents_have_fewer_children(edith):
    parent = make(edith, name="p", quantity=2, fields=[{"name": "id", "type": "row_number"}])
    fields = [reference("p", parent["id"], "id", cardinality=3)]
    child = make(edith, name="c", quantity=100, fields=fields)
    rows = edith.post(f"/templates/{child['id']}/generate", json={"seed": "s"}).json
    assert [row["p"] for row in rows] == [1, 1, 1, 2, 2, 2]
