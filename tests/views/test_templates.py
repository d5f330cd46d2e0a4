"""Templates over REST: every change is a version, and fields keep who they are."""

from __future__ import annotations

from typing import Any

import pytest

from tests.views.speak import FIELDS, faults, make, refused
from webapp import clock, ids, limits


def test_a_template_is_created_with_defaults_and_returned_completely(edith, cast):
    answer = edith.post("/templates", json={"name": "Customers", "fields": FIELDS})
    assert answer.status_code == 201
    result = answer.json
    assert answer.headers["Location"] == f"/templates/{result['id']}"
    assert ids.is_id(result["id"], "tpl")
    assert {
        key: result[key] for key in ("name", "description", "quantity", "version", "locale", "deleted_at")
    } == {
        "name": "Customers",
        "description": "",
        "quantity": limits.DEFAULT_QUANTITY,
        "version": 1,
        "locale": None,
        "deleted_at": None,
    }
    assert (result["project_id"], result["team_id"], result["created_by"]) == (
        cast.main,
        cast.blue,
        cast.edith.user_id,
    )
    assert result["anchor"].endswith("Z")
    assert result["warnings"] == []
    assert [field["name"] for field in result["fields"]] == ["id", "code", "amount", "text"]
    assert all(ids.is_id(field["id"], "fld") for field in result["fields"])
    assert result["fields"][1]["label"] == "Sequence"
    assert edith.get(answer.headers["Location"]).json == result


def test_types_and_keys_are_answered_in_their_canonical_form(edith):
    sent = [
        {"name": "a", "type": "Row Number"},
        {"name": "b", "type": "ROW-NUMBER", "options": {"prefix": "x"}},
        {"name": "c", "type": "sequence", "active": False},
    ]
    found = make(edith, fields=sent)["fields"]
    assert [field["type"] for field in found] == ["row_number", "row_number", "sequence"]
    assert (found[1]["prefix"], found[1]["options"]) == ("x", {})
    assert [field["hidden"] for field in found] == [False, False, True]


def test_names_need_not_be_unique(edith):
    assert make(edith)["id"] != make(edith)["id"]


# --- Versions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["PATCH", "PUT"])
def test_every_change_makes_a_version_and_keeps_the_rest(edith, method):
    first = make(edith, quantity=7)
    path = f"/templates/{first['id']}"
    second = edith.open(method, path, json={"name": "Renamed"})
    assert second.status_code == 200
    assert second.json == {
        **first,
        "name": "Renamed",
        "version": 2,
        "updated_at": second.json["updated_at"],
    }
    assert edith.get(path).json == second.json
    assert edith.get(f"{path}@v2").json == second.json
    assert edith.get(f"{path}@v1").json == first


def test_versions_are_listed_newest_first_and_whole(edith):
    created = make(edith)
    path = f"/templates/{created['id']}"
    for number in range(2, 5):
        edith.patch(path, json={"quantity": number})
    page = edith.get(f"{path}/versions?limit=3").json
    assert [item["version"] for item in page["items"]] == [4, 3, 2]
    assert page["total"] == 4
    rest = edith.get(f"{path}/versions", query_string={"limit": 3, "cursor": page["next_cursor"]}).json
    assert rest["items"] == [created]
    assert rest["next_cursor"] is None


@pytest.mark.parametrize("number", ["0", "3", "99", "99999999999999999999999", "x", "-1", ""])
def test_a_version_that_is_not_there_is_404(edith, number):
    created = make(edith)
    edith.patch(f"/templates/{created['id']}", json={"quantity": 2})
    refused(edith.get(f"/templates/{created['id']}@v{number}"), 404, "not_found")


def test_fields_sent_without_ids_keep_theirs_by_name(edith):
    created = make(edith)
    bare = [
        {"name": field["name"], "type": field["type"], "options": field["options"]}
        for field in created["fields"]
    ]
    after = edith.patch(f"/templates/{created['id']}", json={"fields": bare[::-1]}).json
    assert [field["id"] for field in after["fields"]] == [field["id"] for field in created["fields"]][::-1]


def test_a_renamed_field_keeps_its_rows(edith):
    created = make(edith)
    path = f"/templates/{created['id']}"
    before = edith.post(f"{path}/preview", json={"seed": "s"}).json["rows"]
    renamed = [
        {**field, "name": "sum"} if field["name"] == "amount" else field for field in created["fields"][:3]
    ]
    assert edith.patch(path, json={"fields": renamed}).status_code == 200
    after = edith.post(f"{path}/preview", json={"seed": "s"}).json["rows"]
    assert [row["sum"] for row in after] == [row["amount"] for row in before]


def test_a_response_can_be_sent_back_completely(edith):
    created = make(edith)
    after = edith.put(f"/templates/{created['id']}", json=created).json
    assert after == {**created, "version": 2, "updated_at": after["updated_at"]}


def test_read_only_keys_change_nothing(edith, cast):
    created = make(edith)
    sent = {
        "id": ids.new("tpl"),
        "version": 9,
        "project_id": cast.red_project,
        "created_by": cast.adam.user_id,
    }
    after = edith.patch(f"/templates/{created['id']}", json=sent).json
    assert {key: after[key] for key in sent} == {key: created[key] for key in sent} | {"version": 2}


def test_the_anchor_is_kept_by_later_versions_and_can_be_set(edith):
    created = make(edith, anchor="2025-01-02T03:04:05+01:00")
    assert created["anchor"] == "2025-01-02T02:04:05Z"
    path = f"/templates/{created['id']}"
    assert edith.patch(path, json={"name": "B"}).json["anchor"] == created["anchor"]
    assert edith.patch(path, json={"anchor": "2030-01-01T00:00:00Z"}).json["anchor"] == "2030-01-01T00:00:00Z"


def test_a_restored_version_is_the_newest_and_says_the_same(edith):
    created = make(edith)
    path = f"/templates/{created['id']}"
    edith.patch(path, json={"name": "B", "fields": FIELDS[:1], "quantity": 99})
    answer = edith.post(f"{path}/versions/1/restore")
    assert answer.status_code == 200
    assert answer.json == {**created, "version": 3, "updated_at": answer.json["updated_at"]}
    refused(edith.post(f"{path}/versions/4/restore"), 404, "not_found")


def test_a_template_without_references_keeps_its_version_when_they_are_refreshed(edith):
    created = make(edith)
    answer = edith.post(f"/templates/{created['id']}/refresh-references")
    assert (answer.status_code, answer.json) == (200, created)


def test_a_diff_contains_fields_and_cells(edith):
    created = make(edith, anchor="2025-01-01T00:00:00Z")
    path = f"/templates/{created['id']}"
    changed = [
        {**created["fields"][0], "name": "number"},
        {**created["fields"][1], "options": {"start": 100, "pad": 6}},
        *created["fields"][2:3],
        {"name": "new", "type": "constant", "options": {"value": 1}},
    ]
    edith.patch(path, json={"fields": changed, "quantity": 3})
    found = edith.get(f"{path}@v1/diff?to=2&seed=s").json
    assert (found["from"], found["to"]) == (1, 2)
    assert found["template"] == {"quantity": {"from": 10, "to": 3}}
    assert [item["path"] for item in found["fields"]["added"]] == ["new"]
    assert [item["path"] for item in found["fields"]["removed"]] == ["text"]
    assert {item["path"]: list(item["changes"]) for item in found["fields"]["changed"]} == {
        "number": ["name"],
        "code": ["options.start"],
    }
    assert {cell["column"] for cell in found["preview"]["cells"]} == {"code"}
    assert [cell["row"] for cell in found["preview"]["cells"]] == [1, 2, 3]
    assert edith.get(f"{path}@v1/diff").json["preview"] is None
    assert edith.get(f"{path}@v2/diff?to=2").json["fields"]["changed"] == []
    refused(edith.get(f"{path}@v1/diff?to=3"), 404, "not_found")


# --- Lists ----------------------------------------------------------------------------------------------------


def test_lists_are_paged_searched_and_of_the_project(edith, cast):
    names = [make(edith, name=f"Template {i}")["name"] for i in range(5)]
    make(edith, name="100% special")
    page = edith.get("/templates?limit=4&q=template").json
    assert [item["name"] for item in page["items"]] == names[:0:-1]
    assert page["total"] == 5
    last = edith.get(
        "/templates", query_string={"limit": 4, "q": "template", "cursor": page["next_cursor"]}
    ).json
    assert [item["name"] for item in last["items"]] == names[:1]
    assert last["next_cursor"] is None
    assert edith.get("/templates?q=0%25 s").json["total"] == 1
    assert edith.get("/templates", headers={"X-Project-Id": cast.side}).json["total"] == 0
    refused(edith.get("/templates?cursor=nonsense"), 400, "invalid_request")
    refused(edith.get("/templates?limit=101"), 400, "invalid_request")


def test_a_listed_template_is_the_template(edith):
    created = make(edith)
    edith.patch(f"/templates/{created['id']}", json={"quantity": 3})
    assert edith.get("/templates").json["items"] == [edith.get(f"/templates/{created['id']}").json]


# --- Deleting -------------------------------------------------------------------------------------------------


def test_a_deleted_template_is_answered_gone_and_can_come_back(edith):
    created = make(edith)
    path = f"/templates/{created['id']}"
    gone = edith.delete(path)
    assert gone.status_code == 200
    assert gone.json == {**created, "deleted_at": gone.json["deleted_at"]}
    assert gone.json["deleted_at"].endswith("Z")
    for method, where in [
        ("GET", path),
        ("PATCH", path),
        ("DELETE", path),
        ("GET", f"{path}/versions"),
        ("GET", f"{path}@v1"),
        ("POST", f"{path}/generate"),
        ("POST", f"{path}/preview"),
        ("POST", f"{path}/exports"),
    ]:
        refused(edith.open(method, where, json={}), 404, "not_found")
    assert edith.get("/templates").json["total"] == 0
    back = edith.post(f"{path}/restore")
    assert (back.status_code, back.json) == (200, created)
    assert edith.get(path).json == created


def test_a_deleted_template_is_purged_after_thirty_days(edith, monkeypatch):
    path = f"/templates/{make(edith)['id']}"
    edith.delete(path)
    late = clock.epoch() + (limits.RESTORE_DAYS * 86_400) + 60
    monkeypatch.setattr(clock, "source", lambda: late)
    refused(edith.post(f"{path}/restore"), 404, "not_found")


# --- Two editors ----------------------------------------------------------------------------------------------


def test_a_change_based_on_an_outdated_version_is_reported(edith):
    created = make(edith)
    path = f"/templates/{created['id']}"
    old = edith.get(path).headers["ETag"]
    new = edith.patch(path, json={"quantity": 5}, headers={"If-Match": old}).headers["ETag"]
    assert new != old
    for method in ("PATCH", "PUT", "DELETE"):
        refused(
            edith.open(method, path, json={"quantity": 6}, headers={"If-Match": old}), 412, "version_conflict"
        )
    assert edith.get(path).json["version"] == 2
    assert edith.patch(path, json={"quantity": 6}, headers={"If-Match": new}).status_code == 200


def test_an_unchanged_file_is_304(edith):
    path = f"/templates/{make(edith)['id']}"
    tag = edith.get(path).headers["ETag"]
    assert edith.get(path, headers={"If-None-Match": tag}).status_code == 304
    assert edith.get(f"{path}@v1", headers={"If-None-Match": tag}).status_code == 304
    edith.patch(path, json={"quantity": 5})
    assert edith.get(path, headers={"If-None-Match": tag}).status_code == 200


def test_the_same_idempotency_key_makes_one_template(edith):
    sent = {"json": {"name": "Once", "fields": FIELDS}, "headers": {"Idempotency-Key": "k1"}}
    first, second = edith.post("/templates", **sent), edith.post("/templates", **sent)
    assert (first.status_code, second.status_code) == (201, 201)
    assert second.json == first.json
    assert second.headers["Idempotent-Replayed"] == "true"
    assert edith.get("/templates").json["total"] == 1


# --- Warnings and faults --------------------------------------------------------------------------------------


def test_saving_warns_of_too_few_values_and_generating_rejects_them(edith):
    few = [{"name": "n", "type": "number", "options": {"min": 1, "max": 3}, "unique": True}]
    created = make(edith, fields=few, quantity=10)
    assert [warning["path"] for warning in created["warnings"]] == ["fields[0].unique"]
    path = f"/templates/{created['id']}"
    assert edith.patch(path, json={"quantity": 3}).json["warnings"] == []
    answer = edith.post(f"{path}/generate", json={"count": 4})
    assert faults(answer) == {"fields[0].unique": "not_enough_values"}
    assert edith.post(f"{path}/generate", json={"count": 3}).status_code == 200


def test_a_rejected_change_leaves_the_template_unchanged(edith):
    created = make(edith)
    path = f"/templates/{created['id']}"
    bad: list[dict[str, Any]] = [{"name": "a", "type": "derived", "options": {"value": "{{b}}"}}]
    assert faults(edith.patch(path, json={"name": "B", "fields": bad})) == {
        "fields[0].options.value": "unknown_field"
    }
    assert edith.get(path).json == created


def test_the_audit_log_shows_who_changed_which_version(edith, api, cast):
    created = make(edith)
    path = f"/templates/{created['id']}"
    edith.patch(path, json={"quantity": 5})
    edith.post(f"{path}/versions/1/restore")
    edith.delete(path)
    edith.post(f"{path}/restore")
    trail = api(cast.adam).get(f"/audit?object_id={created['id']}").json["items"]
    assert [(item["action"], item["details"].get("version")) for item in reversed(trail)] == [
        ("template.create", 1),
        ("template.change", 2),
        ("template.restore_version", 3),
        ("template.delete", None),
        ("template.restore", None),
    ]
    assert {item["user_id"] for item in trail} == {cast.edith.user_id}
