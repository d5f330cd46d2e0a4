"""What only the hosted service's clients have: sets, key maps, masking policies, plans, custom data types, folders."""

from __future__ import annotations

import io
from datetime import timedelta

import pytest

from tests.views.test_compat import README, made, new, refused
from webapp import clock, limits
from webapp.access.actors import system_actor
from webapp.access.models import Project
from webapp.accounts.services import workspaces
from webapp.extensions import db
from webapp.files.models import CompatObject, KeyMapEntry
from webapp.operations import purge

GRADE = {"type": "Number", "options": {"min": 5, "max": 5}}


def save(dm, path, **body):
    return made(dm.post(f"/compat/{path}", json=body))


# --- Sets ---------------------------------------------------------------------------------------------------


def test_a_locked_set_is_changed_and_deleted_only_after_it_is_unlocked(dm):
    one = save(dm, "sets", name="S", data=[{"a": 1}], locked=True)
    url = f"/compat/sets/{one['id']}"
    assert refused(dm.patch(url, json={"name": "T"}), 409, "conflict")["locked"] is True
    refused(dm.patch(url, json={"name": "T", "locked": False}), 409, "conflict")
    refused(dm.delete(url), 409, "conflict")
    assert made(dm.patch(url, json={"locked": False}))["locked"] is False
    assert made(dm.patch(url, json={"name": "T"}))["name"] == "T"
    assert made(dm.delete(url)) == {"message": "Set T deleted"}


def test_a_set_counts_its_rows_unless_their_number_is_given(dm):
    one = save(dm, "sets", name="S", data=[1, 2, 3])
    assert one["rowCount"] == 3
    url = f"/compat/sets/{one['id']}"
    assert made(dm.patch(url, json={"data": [1]}))["rowCount"] == 1
    assert made(dm.patch(url, json={"data": {"any": "JSON"}, "rowCount": 7}))["rowCount"] == 7
    shown = made(dm.get(url))
    assert (shown["data"], shown["rowCount"], shown["createdByName"]) == ({"any": "JSON"}, 7, "Edith")
    assert "data" not in made(dm.get("/compat/sets"))[0]


def test_a_set_that_is_sent_back_whole_keeps_its_place(dm, cast):
    one = save(dm, "sets", name="S", projectId=cast.side)
    assert one["projectId"] == cast.side
    assert made(dm.get("/compat/sets")) == []
    assert len(made(dm.get(f"/compat/sets?projectId={cast.side}"))) == 1
    back = made(dm.patch(f"/compat/sets/{one['id']}", json={**one, "projectId": cast.main, "name": "T"}))
    assert (back["projectId"], back["name"]) == (cast.side, "T")


def test_a_set_has_at_most_10_000_rows_and_5_mb(dm, monkeypatch):
    assert save(dm, "sets", name="S", data=[0] * limits.MAX_SET_ROWS)["rowCount"] == 10_000
    assert refused(
        dm.post("/compat/sets", json={"name": "S", "data": [0] * 10_001}), 400, "invalid_request"
    ) == {"rows": 10_001, "bytes": 20_003}
    refused(
        dm.post("/compat/sets", json={"name": "S", "data": "x" * limits.MAX_SET_BYTES}),
        400,
        "invalid_request",
    )


def test_the_sets_of_a_workspace_share_a_quota(dm, client, cast, monkeypatch):
    monkeypatch.setattr(limits, "MAX_SETS_BYTES", 100)
    one = save(dm, "sets", name="S", data="x" * 50)
    other = client(cast.edith)
    sent = {"name": "T", "data": "y" * 50, "projectId": cast.side}
    assert refused(other.post("/compat/sets", json=sent), 429, "quota_exceeded")["used_bytes"] == 52
    url = f"/compat/sets/{one['id']}"
    made(dm.patch(url, json={"data": "z" * 90}))
    refused(dm.patch(url, json={"data": "z" * 99}), 429, "quota_exceeded")
    assert made(dm.get(url))["data"] == "z" * 90
    made(dm.delete(url))
    save(dm, "sets", name="T", data="y" * 50)


def test_a_project_has_a_limited_number_of_sets(dm, monkeypatch):
    monkeypatch.setattr(limits, "COMPAT_OBJECTS", 1)
    save(dm, "sets", name="S")
    refused(dm.post("/compat/sets", json={"name": "T"}), 429, "quota_exceeded")
    save(dm, "plans/save", title="P")  # each kind has its own


def test_an_object_of_another_kind_is_not_found(dm):
    one = save(dm, "sets", name="S")
    refused(dm.get(f"/compat/plans/{one['id']}"), 404, "not_found")
    refused(dm.delete(f"/compat/masking-policies/{one['id']}"), 404, "not_found")


def test_errors_name_the_keys_that_were_sent(dm):
    details = refused(dm.post("/compat/sets", json={"rowCount": -1, "dat": 1}), 422, "validation_error")
    assert {field["path"] for field in details["fields"]} == {"name", "rowCount", "dat"}
    assert "data" in next(field["hint"] for field in details["fields"] if field["path"] == "dat")


# --- Key maps -----------------------------------------------------------------------------------------------


ENTRY = limits.KEY_MAP_ENTRY_BYTES + 2 * 3 + 1  # an entry whose names and keys have one character each


def put(dm, entries, **more):
    pairs = [{"oldKey": old, "newKey": new} for old, new in entries]
    return dm.post("/compat/keymaps/entries", json={"mapName": "m", "object": "o", "entries": pairs, **more})


def looked_up(dm, *keys):
    return made(
        dm.post("/compat/keymaps/lookup", json={"mapName": "m", "object": "o", "oldKeys": list(keys)})
    )


def test_the_last_new_key_of_an_old_one_counts(dm):
    assert made(put(dm, [("a", "1"), ("b", "2"), ("a", "3")]))["upserted"] == 2
    made(put(dm, [("b", "4")], runId="run_1"))
    assert looked_up(dm, "b", "a", "c", "c") == {
        "mapName": "m", "object": "o", "mappings": {"b": "4", "a": "3"}, "missing": ["c"],
    }  # fmt: skip
    page = made(dm.get("/compat/keymaps/m/entries"))
    assert [(entry["oldKey"], entry["newKey"], entry["runId"]) for entry in page["entries"]] == [
        ("a", "3", None),
        ("b", "4", "run_1"),
    ]


def test_the_maps_of_another_project_are_apart(dm, cast):
    made(put(dm, [("a", "1")]))
    made(put(dm, [("a", "2")], projectId=cast.side))
    assert looked_up(dm, "a")["mappings"] == {"a": "1"}
    assert made(dm.delete("/compat/keymaps/m"))["deleted"] == 1
    assert made(dm.get("/compat/keymaps")) == []
    assert [item["entryCount"] for item in made(dm.get(f"/compat/keymaps?projectId={cast.side}"))] == [1]
    refused(put(dm, [("a", "2")], projectId=cast.mallorys), 404, "not_found")


def test_a_page_of_entries_has_at_most_500(dm):
    made(put(dm, [(f"{number:04}", "x") for number in range(501)]))
    page = made(dm.get("/compat/keymaps/m/entries?pageSize=100000"))
    assert (page["pageSize"], page["total"], len(page["entries"])) == (500, 501, 500)
    assert len(made(dm.get("/compat/keymaps/m/entries?page=2&pageSize=500"))["entries"]) == 1
    for query in ("page=0", "page=x", "pageSize=0", "pageSize=-1"):
        refused(dm.get(f"/compat/keymaps/m/entries?{query}"), 400, "invalid_request")


def test_a_batch_has_at_most_5_000_entries(dm):
    refused(put(dm, [(str(number), "x") for number in range(5_001)]), 422, "validation_error")
    refused(put(dm, []), 422, "validation_error")
    refused(put(dm, [("", "x")]), 422, "validation_error")
    refused(put(dm, [("x" * 301, "x")]), 422, "validation_error")


def test_the_key_maps_of_a_workspace_share_a_quota(dm, monkeypatch):
    monkeypatch.setattr(limits, "MAX_KEY_MAP_ENTRIES", 2)
    made(put(dm, [("a", "1"), ("b", "2")]))
    made(put(dm, [("a", "3"), ("b", "4")]))  # nothing new
    assert refused(put(dm, [("a", "5"), ("c", "6")]), 429, "quota_exceeded")["used_entries"] == 2
    assert looked_up(dm, "a", "c")["mappings"] == {"a": "3"}


def test_sets_and_key_maps_count_toward_the_quota_of_files(dm, edith, monkeypatch):
    monkeypatch.setattr(limits, "MAX_WORKSPACE_FILES_BYTES", 1_000)
    first = save(dm, "sets", name="S", data="x" * 298)
    made(put(dm, [("a", "1"), ("b", "2")]))
    assert edith.get("/usage").json["storage"]["files"]["compat_bytes"] == 300 + 2 * ENTRY

    def upload(name, size):
        return edith.post("/workspace/files", data={"name": name, "file": (io.BytesIO(b"x" * size), name)})

    over = upload("f", 701 - 2 * ENTRY)
    assert (over.status_code, over.json["error"]["code"]) == (429, "quota_exceeded")
    reported = over.json["error"]["details"]
    assert (reported["free_bytes"], reported["compat_bytes"]) == (700 - 2 * ENTRY, 300 + 2 * ENTRY)
    assert upload("f", 700 - 2 * ENTRY).status_code == 201
    refused(dm.post("/compat/sets", json={"name": "T", "data": "y"}), 429, "quota_exceeded")
    refused(dm.patch(f"/compat/sets/{first['id']}", json={"data": "x" * 299}), 429, "quota_exceeded")
    refused(put(dm, [("c", "3")]), 429, "quota_exceeded")
    made(put(dm, [("a", "4"), ("b", "5")]))  # nothing new
    made(dm.delete(f"/compat/sets/{first['id']}"))
    made(put(dm, [("c", "3")]))
    assert edith.get("/usage").json["storage"]["files"]["compat_bytes"] == 3 * ENTRY


def test_entries_of_key_maps_count_with_the_bytes_of_their_texts(dm, edith, monkeypatch):
    def taken() -> int:
        return edith.get("/usage").json["storage"]["files"]["compat_bytes"]

    long = "\N{ROCKET}" * limits.KEY_MAP_KEY_CHARS
    made(put(dm, [("a", "1"), (long, long)], runId="r" * 100))
    assert taken() == (ENTRY + 100) + (limits.KEY_MAP_ENTRY_BYTES + 2 * (2 + 1_200) + 1_200 + 100)
    made(put(dm, [(long, "1")]))
    assert taken() == (ENTRY + 100) + (limits.KEY_MAP_ENTRY_BYTES + 2 * (2 + 1_200) + 1)
    monkeypatch.setattr(limits, "MAX_WORKSPACE_FILES_BYTES", taken() + 1_000)
    refused(put(dm, [("a", long)]), 429, "quota_exceeded")  # longer than before
    refused(put(dm, [("b", long)]), 429, "quota_exceeded")
    made(put(dm, [("a", "1"), ("b", "2")]))
    monkeypatch.setattr(limits, "MAX_WORKSPACE_FILES_BYTES", 0)
    made(put(dm, [("a", "2")]))  # no longer than before


def test_a_set_takes_the_room_of_deleted_files(dm, edith, monkeypatch):
    monkeypatch.setattr(limits, "MAX_WORKSPACE_FILES_BYTES", 1_000)
    file = {"name": "f", "file": (io.BytesIO(b"x" * 900), "f")}
    assert edith.post("/workspace/files", data=file).status_code == 201
    assert edith.delete("/workspace/files/f").status_code == 200
    save(dm, "sets", name="S", data="x" * 500)
    files = edith.get("/usage").json["storage"]["files"]
    assert (files["trash_bytes"], files["compat_bytes"]) == (0, 502)


def test_a_map_of_any_name_is_read_and_dropped(dm):
    name = "a/b c?d%é"
    made(put(dm, [("a", "1")], mapName=name))
    assert made(dm.get("/compat/keymaps"))[0]["mapName"] == name
    quoted = "a%2Fb%20c%3Fd%25%C3%A9"
    assert made(dm.get(f"/compat/keymaps/{quoted}/entries"))["total"] == 1
    assert made(dm.delete(f"/compat/keymaps/{quoted}"))["deleted"] == 1
    refused(dm.get("/compat/keymaps/%00/entries"), 404, "not_found")


# --- Masking policies ---------------------------------------------------------------------------------------


def test_a_template_gets_the_masking_of_the_policy_that_it_names(dm, cast):
    rules = [
        {"field": "First_Name", "strategy": "faker-replace"},
        {"field": "email", "strategy": "preserve-format", "consistent": False},
    ]
    policy = save(dm, "masking-policies", name="GDPR", fields=rules, keyMapName="people")
    template = new(dm, cast, maskingPolicyId=policy["id"])
    assert [field.get("masking") for field in template["fields"]] == [
        {"strategy": "replace", "consistent": True, "domain": "people"},
        None,
        {"strategy": "format_preserve", "consistent": False},
    ]
    assert [field.get("sensitive") for field in template["fields"]] == [True, None, True]
    plain = new(dm, cast)
    sent = {"maskingPolicyId": policy["id"]}
    masked = made(dm.put(f"/compat/templates/{plain['id']}", json=sent))
    assert [field.get("sensitive") for field in masked["fields"]] == [True, None, True]


def test_a_reversible_policy_is_kept_and_masks_nothing(dm, cast):
    policy = save(
        dm, "masking-policies", name="P", fields=[{"field": "a", "strategy": "tokenize"}], reversible=True
    )
    sent = {"name": "T", "fields": README, "maskingPolicyId": policy["id"]}
    details = refused(dm.post("/compat/templates", json=sent), 422, "validation_error")
    assert details["fields"][0]["path"] == "maskingPolicyId"
    sent["maskingPolicyId"] = "cmp_none"
    refused(dm.post("/compat/templates", json=sent), 404, "not_found")


def test_a_rule_of_an_unknown_strategy_is_rejected(dm):
    sent = {"name": "P", "fields": [{"field": "a", "strategy": "encrypt"}]}
    details = refused(dm.post("/compat/masking-policies", json=sent), 422, "validation_error")
    assert details["fields"][0]["path"] == "fields[0].strategy"


# --- Custom data types ----------------------------------------------------------------------------------------


def test_a_field_of_a_custom_data_type_is_one_of_its_definition(dm, cast):
    save(dm, "customDataTypes", name="School Grade", fieldConfig=GRADE, projectId=cast.main)
    fields = [
        {"name": "a", "type": "school grade"},
        {"name": "b", "type": "School Grade", "options": {"max": 6, "min": 6}, "percentBlank": None},
        {"name": "c", "type": "Nested", "nested": [{"name": "d", "type": "School Grade"}]},
    ]
    rows = made(dm.post("/compat/datamaker", json={"fields": fields, "quantity": 2}))
    assert rows == [{"a": 5, "b": 6, "c": {"d": 5}}] * 2
    template = new(dm, cast, fields=fields)
    assert template["fields"][0]["type"] == "number"


def test_a_custom_data_type_is_one_of_its_project(dm, cast):
    save(dm, "customDataTypes", name="Grade", fieldConfig=GRADE, projectId=cast.side)
    fields = [{"name": "a", "type": "Grade"}]
    refused(dm.post("/compat/datamaker", json={"fields": fields}), 422, "validation_error")
    assert new(dm, cast, fields=fields, projectId=cast.side)["fields"][0]["type"] == "number"


def test_a_custom_data_type_has_a_unique_name(dm):
    one = save(dm, "customDataTypes", name="Grade", fieldConfig=GRADE)
    refused(dm.post("/compat/customDataTypes", json={"name": "Grade"}), 409, "conflict")
    details = refused(
        dm.post("/compat/customDataTypes", json={"name": "First Name"}), 422, "validation_error"
    )
    assert details["fields"][0]["code"] == "reserved"
    other = save(dm, "customDataTypes", name="Mark", fieldConfig={"any": "JSON"})
    refused(dm.put(f"/compat/customDataTypes/{other['id']}", json={"name": "Grade"}), 409, "conflict")
    assert made(dm.put(f"/compat/customDataTypes/{one['id']}", json=one)) | {"updatedAt": ""} == one | {
        "updatedAt": ""
    }


def test_a_type_that_is_a_definition_of_nothing_is_an_unknown_type(dm):
    save(dm, "customDataTypes", name="Mark", fieldConfig={"any": "JSON"})
    sent = {"fields": [{"name": "a", "type": "Mark"}]}
    details = refused(dm.post("/compat/datamaker", json=sent), 422, "validation_error")
    assert details["fields"][0]["path"] == "fields[0].type"


# --- Folders --------------------------------------------------------------------------------------------------


def test_a_folder_is_the_beginning_of_the_names_of_its_templates(dm, cast, api):
    outer = save(dm, "templateFolders", name="HR")
    inner = save(dm, "templateFolders", name="HR/Germany")
    one = new(dm, cast, templateFolderId=outer["id"])
    two = new(dm, cast, templateFolderId=inner["id"], name="U")
    proper = {item["name"] for item in api(cast.edith).get("/templates").json["items"]}
    assert proper == {"HR/T", "HR/Germany/U"}
    listed = {each["id"]: each for each in made(dm.get("/compat/templates"))}
    assert (listed[one["id"]]["name"], listed[one["id"]]["templateFolderId"]) == ("T", outer["id"])
    assert (listed[two["id"]]["name"], listed[two["id"]]["templateFolderId"]) == ("U", inner["id"])
    url = f"/compat/templates/{one['id']}"
    assert made(dm.put(url, json={"name": "V"}))["templateFolderId"] == outer["id"]
    moved = made(dm.put(url, json={"templateFolderId": inner["id"]}))
    assert (moved["name"], moved["templateFolderId"]) == ("V", inner["id"])
    assert api(cast.edith).get(f"/templates/{one['id']}").json["name"] == "HR/Germany/V"


def test_renaming_a_folder_renames_what_is_in_it_and_nothing_else(dm, cast, api):
    folder = save(dm, "templateFolders", name="HR")
    inside, beside = new(dm, cast, templateFolderId=folder["id"]), new(dm, cast, name="HRT")
    url = f"/compat/templateFolders/{folder['id']}"
    assert made(dm.put(url, json={"name": "People", "isDatabase": True}))["isDatabase"] is True
    assert made(dm.get(f"/compat/templates/{inside['id']}"))["templateFolderId"] == folder["id"]
    edith = api(cast.edith)
    assert edith.get(f"/templates/{inside['id']}").json["name"] == "People/T"
    assert edith.get(f"/templates/{beside['id']}").json["version"] == 1
    assert made(dm.delete(url)) == {"message": "Folder People deleted"}
    left = made(dm.get(f"/compat/templates/{inside['id']}"))
    assert (left["name"], left["templateFolderId"]) == ("People/T", None)


def test_a_folder_of_another_project_takes_no_template(dm, cast):
    folder = save(dm, "templateFolders", name="HR", projectId=cast.side)
    sent = {"name": "T", "fields": README, "templateFolderId": folder["id"]}
    details = refused(dm.post("/compat/templates", json=sent), 422, "validation_error")
    assert details["fields"][0]["path"] == "templateFolderId"
    assert new(dm, cast, templateFolderId=folder["id"], projectId=cast.side)["name"] == "T"


@pytest.mark.parametrize("kind", ["templateFolders", "endpointFolders"])
def test_a_folder_name_is_used_once_in_a_project(dm, cast, kind):
    one = save(dm, kind, name="HR")
    refused(dm.post(f"/compat/{kind}", json={"name": "HR"}), 400, "invalid_request")
    other = save(dm, kind, name="Sales")
    refused(dm.put(f"/compat/{kind}/{other['id']}", json={"name": "HR"}), 400, "invalid_request")
    assert made(dm.put(f"/compat/{kind}/{one['id']}", json=one))["name"] == "HR"
    refused(dm.post(f"/compat/{kind}", json={"name": "HR/"}), 422, "validation_error")
    save(dm, kind, name="HR", projectId=cast.side)


# --- Plans ----------------------------------------------------------------------------------------------------


def test_a_plan_keeps_what_its_document_does_not_describe(dm):
    plan = save(dm, "plans/save", title="P", spec={"later": {"any": 1}, "steps": ["one"]}, projectId="")
    assert (plan["spec"]["later"], plan["spec"]["lanes"], plan["history"]) == ({"any": 1}, [], [])
    url = f"/compat/plans/{plan['id']}"
    back = made(dm.patch(url, json={**plan, "status": "failed", "rows": 5}))
    assert (back["status"], back["rows"], back["spec"]) == ("failed", 0, plan["spec"])
    details = refused(
        dm.patch(url, json={"status": "done", "spec": {"entities": [{}]}}), 422, "validation_error"
    )
    assert {"status", "spec.entities[0].volume"} <= {field["path"] for field in details["fields"]}


# --- With their project -----------------------------------------------------------------------------------------


def test_objects_go_with_their_project(dm, app, cast):
    save(dm, "sets", name="S", projectId=cast.side, data=[1])
    made(put(dm, [("a", "1")], projectId=cast.side))
    stored = save(dm, "sets", name="S")
    with app.app_context():
        project = db.session.get_one(Project, cast.side)
        workspaces.delete_project(system_actor(cast.acme), project)
        db.session.remove()
        purge.purge(clock.now() + timedelta(days=limits.RESTORE_DAYS + 1))
        assert [item.id for item in db.session.query(CompatObject)] == [stored["id"]]
        assert db.session.query(KeyMapEntry).count() == 0
        db.session.remove()
