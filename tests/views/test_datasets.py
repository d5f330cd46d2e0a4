"""Datasets over REST: made, read, changed, versioned, deleted; three rows of each table; bad input."""

from __future__ import annotations

import pytest

from tests.views.speak import faults, make, refused
from webapp import limits


@pytest.fixture
def adam(api, cast):
    """Who may read the trail."""
    return api(cast.adam)


@pytest.fixture
def two(edith):
    """The ids of two templates: People with a quantity of 7, Orders with 10."""
    return [make(edith, name="People", quantity=7)["id"], make(edith, name="Orders")["id"]]


@pytest.fixture
def shop(edith, two):
    return made(edith, two)


def made(program, ids, **more):
    tables = [{"template_id": item} for item in ids]
    answer = program.post("/datasets", json={"name": "Shop", "templates": tables, "seed": "s", **more})
    assert answer.status_code == 201, answer.json
    return answer.json


def at(dataset):
    return f"/datasets/{dataset['id']}"


def actions(program, dataset):
    items = program.get(f"/audit?object_id={dataset['id']}").json["items"]
    return [(item["action"], item["details"].get("version")) for item in reversed(items)]


def test_a_dataset_is_created_as_requested(edith, two, cast):
    answer = edith.post(
        "/datasets",
        json={
            "name": "Shop",
            "description": "A small one",
            "seed": "s",
            "templates": [{"template_id": two[1], "count": 50, "name": "orders"}, {"template_id": two[0]}],
            "anchor": "2026-01-01T00:00:00Z",
        },
    )
    assert answer.status_code == 201
    data = answer.json
    assert answer.headers["Location"] == at(data)
    assert data["id"].startswith("dst_")
    assert data["templates"] == [
        {"template_id": two[1], "count": 50, "name": "orders", "version": 1},
        {"template_id": two[0], "count": None, "name": None, "version": 1},
    ]
    reported = {
        key: data[key]
        for key in ("name", "description", "seed", "version", "anchor", "deleted_at", "warnings")
    }
    assert reported == {
        "name": "Shop",
        "description": "A small one",
        "seed": "s",
        "version": 1,
        "anchor": "2026-01-01T00:00:00Z",
        "deleted_at": None,
        "warnings": [],
    }
    assert (data["project_id"], data["team_id"], data["created_by"]) == (
        cast.main,
        cast.blue,
        cast.edith.user_id,
    )
    assert edith.get(at(data)).json == data
    assert edith.get(at(data)).headers["ETag"] == answer.headers["ETag"]


def test_a_missing_seed_is_generated_and_a_missing_anchor_is_not(edith, two):
    data = edith.post("/datasets", json={"name": "D", "templates": [{"template_id": two[0]}]}).json
    assert data["seed"]
    assert data["anchor"] is None


def test_responses_can_be_sent_back_as_requests(edith, shop):
    answer = edith.put(at(shop), json=shop)
    assert answer.status_code == 200
    assert {**answer.json, "version": 1, "updated_at": shop["updated_at"]} == shop


def test_every_change_makes_a_version_on_the_newest_templates(edith, two, shop):
    edith.patch(f"/templates/{two[0]}", json={"quantity": 8})
    assert [template["version"] for template in edith.get(at(shop)).json["templates"]] == [1, 1]
    changed = edith.patch(at(shop), json={"seed": "t"}).json
    assert (changed["version"], changed["seed"], changed["name"]) == (2, "t", "Shop")
    assert [template["version"] for template in changed["templates"]] == [2, 1]
    assert edith.get(f"{at(shop)}@v1").json == shop
    assert [item["version"] for item in edith.get(f"{at(shop)}/versions").json["items"]] == [2, 1]
    refused(edith.get(f"{at(shop)}@v3"), 404, "not_found")


def test_refreshing_pins_the_newest_templates_and_nothing_where_they_are(edith, adam, two, shop):
    assert edith.post(f"{at(shop)}/refresh-references").json["version"] == 1
    edith.patch(f"/templates/{two[1]}", json={"quantity": 8})
    fresh = edith.post(f"{at(shop)}/refresh-references").json
    assert (fresh["version"], [template["version"] for template in fresh["templates"]]) == (2, [1, 2])
    assert actions(adam, shop) == [("dataset.create", 1), ("dataset.refresh", 2)]


def test_a_restored_version_keeps_its_templates_versions(edith, two, shop):
    edith.patch(f"/templates/{two[0]}", json={"quantity": 8})
    edith.patch(at(shop), json={"name": "Other"})
    back = edith.post(f"{at(shop)}/versions/1/restore").json
    assert (back["version"], back["name"], back["templates"]) == (3, "Shop", shop["templates"])


def test_a_change_from_another_state_is_412(edith, shop):
    tag = edith.get(at(shop)).headers["ETag"]
    assert edith.get(at(shop), headers={"If-None-Match": tag}).status_code == 304
    assert edith.patch(at(shop), json={"name": "A"}, headers={"If-Match": tag}).status_code == 200
    refused(edith.patch(at(shop), json={"name": "B"}, headers={"If-Match": tag}), 412, "version_conflict")
    refused(edith.delete(at(shop), headers={"If-Match": tag}), 412, "version_conflict")


def test_a_deleted_dataset_is_gone_until_it_is_restored(edith, adam, shop):
    assert edith.delete(at(shop)).json["deleted_at"]
    for answer in (edith.get(at(shop)), edith.post(f"{at(shop)}/exports"), edith.post(f"{at(shop)}/preview")):
        refused(answer, 404, "not_found")
    assert edith.get("/datasets").json["total"] == 0
    assert edith.post(f"{at(shop)}/restore").json == {**shop, "deleted_at": None}
    assert actions(adam, shop) == [("dataset.create", 1), ("dataset.delete", None), ("dataset.restore", None)]


def test_a_list_is_searched_sorted_and_paged(edith, two):
    for name in ("Beta", "alpha shop", "Gamma shop"):
        made(edith, two, name=name)
    assert [item["name"] for item in edith.get("/datasets").json["items"]] == [
        "Gamma shop",
        "alpha shop",
        "Beta",
    ]
    assert [item["name"] for item in edith.get("/datasets?q=SHOP&sort=name").json["items"]] == [
        "Gamma shop",
        "alpha shop",
    ]
    page = edith.get("/datasets?limit=2").json
    assert (len(page["items"]), page["total"]) == (2, 3)
    assert [
        item["name"] for item in edith.get(f"/datasets?limit=2&cursor={page['next_cursor']}").json["items"]
    ] == ["Beta"]
    refused(edith.get(f"/templates?cursor={page['next_cursor']}"), 400, "invalid_request")


def test_the_same_idempotency_key_makes_one_dataset(edith, two):
    body = {"name": "Once", "templates": [{"template_id": two[0]}]}
    first, again = (edith.post("/datasets", json=body, headers={"Idempotency-Key": "k"}) for _ in range(2))
    assert first.json == again.json
    assert again.headers["Idempotent-Replayed"] == "true"
    assert edith.get("/datasets").json["total"] == 1


def test_a_diff_contains_changed_tables_and_attributes(edith, two, shop):
    third = make(edith, name="Third")["id"]
    edith.patch(
        at(shop),
        json={"seed": "t", "templates": [{"template_id": third}, {"template_id": two[0], "count": 5}]},
    )
    found = edith.get(f"{at(shop)}@v1/diff").json
    assert found["dataset"] == {"seed": {"from": "s", "to": "t"}}
    assert [item["template_id"] for item in found["templates"]["added"]] == [third]
    assert [item["template_id"] for item in found["templates"]["removed"]] == [two[1]]
    assert found["templates"]["changed"] == [
        {"template_id": two[0], "changes": {"count": {"from": None, "to": 5}}}
    ]
    assert found["order"] is None
    back = [{"template_id": item} for item in (two[0], third)]
    edith.patch(at(shop), json={"templates": back})
    assert edith.get(f"{at(shop)}@v2/diff?to=3").json["order"] == {
        "from": [third, two[0]],
        "to": [two[0], third],
    }


# --- Preview --------------------------------------------------------------------------------------------------


def test_a_preview_is_the_first_rows_of_each_templates_own(edith, two, shop):
    before = edith.get("/usage").json["rows"]["used"]
    data = edith.post(f"{at(shop)}/preview").json
    assert [(item["name"], item["template_id"], item["count"]) for item in data["tables"]] == [
        ("People", two[0], 7),
        ("Orders", two[1], 10),
    ]
    assert (data["seed"], data["warnings"]) == ("s", [])
    for table in data["tables"]:
        own = edith.post(f"/templates/{table['template_id']}/preview", json={"seed": "s"}).json["rows"]
        assert table["rows"] == own
        assert len(own) == limits.PREVIEW_ROWS
    assert edith.get("/usage").json["rows"]["used"] == before


def test_a_preview_has_the_seed_of_the_request_and_no_more_rows_than_the_table(edith, two):
    data = made(edith, [two[0]])
    edith.patch(at(data), json={"templates": [{"template_id": two[0], "count": 1, "name": "one"}]})
    found = edith.post(f"{at(data)}/preview", json={"seed": "other"}).json
    assert (found["seed"], found["tables"][0]["name"], len(found["tables"][0]["rows"])) == ("other", "one", 1)
    other = edith.post(f"/templates/{two[0]}/preview", json={"seed": "other"}).json["rows"]
    assert found["tables"][0]["rows"] == other[:1]


def test_a_preview_depends_on_the_datasets_or_else_each_templates_anchor(edith):
    fields = [{"name": "at", "type": "datetime", "options": {"min": "-2d", "max": "-1d"}}]
    ids = [make(edith, fields=fields, anchor=f"20{year}-01-01T00:00:00Z")["id"] for year in (10, 20)]
    data = made(edith, ids)

    def years(**body):
        tables = edith.post(f"{at(data)}/preview", json=body).json["tables"]
        return [{row["at"][:4] for row in table["rows"]} for table in tables]

    assert years() == [{"2009"}, {"2019"}]
    assert years(now="2031-01-01T00:00:00Z") == [{"2030"}] * 2
    edith.patch(at(data), json={"anchor": "2041-01-01T00:00:00Z"})
    assert years() == [{"2040"}] * 2


def test_a_preview_has_the_pinned_versions(edith, two, shop):
    before = edith.post(f"{at(shop)}/preview").json
    edith.patch(f"/templates/{two[0]}", json={"fields": [{"name": "other", "type": "row_number"}]})
    assert edith.post(f"{at(shop)}/preview").json == before


def test_fewer_values_than_rows_are_a_warning_of_the_preview_and_a_note_of_the_file(edith, two):
    narrow = [{"name": "bit", "type": "enum", "options": {"values": [0, 1]}, "unique": True}]
    data = made(edith, [two[0], make(edith, fields=narrow, quantity=2)["id"]])
    tables = [{key: template[key] for key in ("template_id", "count")} for template in data["templates"]]
    tables[1]["count"] = 3
    edith.patch(at(data), json={"templates": tables})
    preview = edith.post(f"{at(data)}/preview").json
    assert [(warning["path"], warning["code"]) for warning in preview["warnings"]] == [
        ("templates[1].fields[0].unique", "not_enough_values")
    ]
    assert [len(table["rows"]) for table in preview["tables"]] == [3, 2]
    export = edith.post(f"{at(data)}/exports").json
    assert [bool(table["note"]) for table in export["pins"]["tables"]] == [False, True]


# --- Bad input ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"templates": []}, {"templates": "too_short"}),
        ({"templates": "all"}, {"templates": "wrong_type"}),
        ({"templates": None}, {"templates": "wrong_type"}),
        ({"templates": [{"template_id": "tpl_nope"}]}, {"templates[0].template_id": "unknown_template"}),
        ({"templates": [{"template_id": ""}]}, {"templates[0].template_id": "too_short"}),
        ({"templates": [{}]}, {"templates[0].template_id": "missing"}),
        ({"templates": ["x"]}, {"templates[0]": "wrong_type"}),
        ({"name": ""}, {"name": "too_short"}),
        ({"name": "x" * 201}, {"name": "too_long"}),
        ({"seed": ""}, {"seed": "too_short"}),
        ({"seed": "x" * 201}, {"seed": "too_long"}),
        ({"seed": 5}, {"seed": "wrong_type"}),
        ({"anchor": "yesterday"}, {"anchor": "invalid"}),
        ({"colour": "red"}, {"colour": "unknown_key"}),
    ],
)
def test_an_invalid_dataset_is_rejected_with_its_path(edith, two, shop, change, found):
    body = {"name": "D", "templates": [{"template_id": two[0]}], **change}
    assert faults(edith.post("/datasets", json=body)) == found
    assert faults(edith.patch(at(shop), json=change)) == found
    assert edith.get("/datasets").json["total"] == 1
    assert edith.get(at(shop)).json["version"] == 1


@pytest.mark.parametrize(
    ("count", "code"),
    [
        (0, "out_of_range"),
        (-1, "out_of_range"),
        ("ten", "wrong_type"),
        (1.5, "wrong_type"),
        (10**12, "out_of_range"),
    ],
)
def test_an_invalid_count_is_rejected_with_its_path(edith, two, count, code):
    tables = [{"template_id": two[0]}, {"template_id": two[1], "count": count}]
    found = faults(edith.post("/datasets", json={"name": "D", "templates": tables}))
    assert found == {"templates[1].count": code}


def test_an_unknown_key_of_a_table_is_rejected_by_name(edith, two):
    answer = edith.post("/datasets", json={"name": "D", "templates": [{"template_id": two[0], "rows": 5}]})
    assert faults(answer) == {"templates[0].rows": "unknown_key"}


def test_all_errors_of_the_tables_are_reported_together(edith, two):
    ids = [two[0], "tpl_nope", two[0], "tpl_01M7Y5BT16VAMSDNZ2PWHH1947"]
    answer = edith.post("/datasets", json={"name": "D", "templates": [{"template_id": item} for item in ids]})
    assert faults(answer) == {
        "templates[1].template_id": "unknown_template",
        "templates[2].template_id": "duplicate",
        "templates[3].template_id": "unknown_template",
    }


def test_a_deleted_template_is_not_found(edith, two, shop):
    edith.delete(f"/templates/{two[1]}")
    body = {"name": "D", "templates": [{"template_id": two[0]}, {"template_id": two[1]}]}
    expected = {"templates[1].template_id": "unknown_template"}
    assert faults(edith.post("/datasets", json=body)) == expected
    assert faults(edith.post(f"{at(shop)}/preview")) == expected
    assert faults(edith.post(f"{at(shop)}/exports")) == expected
    assert faults(edith.post(f"{at(shop)}/refresh-references")) == expected
    assert edith.get(at(shop)).json == shop
    assert edith.patch(at(shop), json={"templates": [{"template_id": two[0]}]}).status_code == 200


def test_two_thousand_tables_are_accepted_and_one_more_is_not(edith):
    ids = [make(edith, fields=[{"name": "n", "type": "row_number"}])["id"] for _ in range(60)]
    assert len(made(edith, ids)["templates"]) == 60
    listed = [{"template_id": f"tpl_{number}"} for number in range(limits.MAX_DATASET_TABLES + 1)]
    answer = edith.post("/datasets", json={"name": "D", "templates": listed})
    assert limits.MAX_DATASET_TABLES == 2_000
    assert faults(answer) == {"templates": "too_long"}


def test_a_template_of_another_workspace_or_team_is_not_found(edith, two, api, cast):
    mallory = api(cast.mallory)
    body = {"name": "D", "templates": [{"template_id": two[0]}]}
    assert faults(mallory.post("/datasets", json=body)) == {"templates[0].template_id": "unknown_template"}
    red = api(cast.olivia, **{"X-Project-Id": cast.red_project})
    hers = make(red, name="Red")["id"]
    tables = [{"template_id": two[0]}, {"template_id": hers}]
    dataset = api(cast.olivia).post("/datasets", json={"name": "Both", "templates": tables}).json
    tessa = api(cast.tessa)
    assert tessa.get(at(dataset)).status_code == 200
    for answer in (tessa.post(f"{at(dataset)}/preview"), tessa.post(f"{at(dataset)}/exports")):
        assert faults(answer) == {"templates[1].template_id": "unknown_template"}


def test_the_description_of_the_api_lists_every_route_of_datasets(edith):
    paths = edith.get("/openapi.json").json["paths"]
    found = {
        f"{method.upper()} {path}" for path in paths for method in paths[path] if path.startswith("/datasets")
    }
    one = "/datasets/{dataset_id}"
    assert found == {
        "GET /datasets",
        "POST /datasets",
        f"GET {one}",
        f"PATCH {one}",
        f"PUT {one}",
        f"DELETE {one}",
        f"POST {one}/restore",
        f"GET {one}/versions",
        f"POST {one}/versions/{{number}}/restore",
        f"POST {one}/refresh-references",
        f"GET {one}@v{{number}}",
        f"GET {one}@v{{number}}/diff",
        f"POST {one}/preview",
        f"POST {one}/exports",
        f"POST {one}/push",
        f"POST {one}/push/plan",
    }
    body = paths["/datasets"]["post"]
    assert body["x-idempotency-key"]
    assert paths[f"{one}/exports"]["post"]["x-idempotency-key"]
