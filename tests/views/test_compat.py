"""The wire of the hosted service's clients, request by request as their sources send them: templates, rows, people."""

from __future__ import annotations

import json

import pytest

from tests.cast import Program
from tests.views.speak import rows_used
from webapp.engine.types import registry

README = [
    {"name": "first_name", "type": "First Name"},
    {"name": "last_name", "type": "Last Name"},
    {"name": "email", "type": "Derived", "options": {"value": "{{first_name}}.{{last_name}}@example.com"}},
]


def made(answer):
    assert answer.status_code in (200, 201), answer.text
    return answer.json


def new(dm, cast, **more):
    sent = {
        "name": "T", "fields": [{**item, "active": True} for item in README], "projectId": cast.main,
        "teamId": cast.blue, **more,
    }  # fmt: skip
    return made(dm.post("/compat/templates", json=sent))


def refused(answer, status: int, code: str) -> dict:
    assert (answer.status_code, answer.json["error"]["code"]) == (status, code), answer.text
    assert set(answer.json) == {"error", "message"}
    assert answer.json["message"] == answer.json["error"]["message"]
    return answer.json["error"]["details"]


# --- Who calls ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["X-API-Key: {}", "Authorization: {}", "Authorization: Bearer {}"])
def test_a_key_is_taken_as_the_clients_send_it(app, cast, form):
    name, _, value = form.format(cast.edith.key).partition(": ")
    answer = Program(app, "", **{name: value}).get("/compat/validate/apiKey")
    assert (answer.status_code, answer.json["message"]) == (200, "API key is valid")


@pytest.mark.parametrize(
    "agent", ["node", "undici", "Deno/2.9.6", "Bun/1.4.5", "Mozilla/5.0 (X11; Linux x86_64)"]
)
def test_a_failure_reads_well_where_the_npm_client_makes_its_text_of_error(app, cast, agent):
    ask = {"X-API-Key": cast.edith.key, "User-Agent": agent}
    answer = Program(app, "", **ask).get("/compat/shortcuts")
    result = answer.json
    assert (answer.status_code, result["code"]) == (404, "not_found")
    assert result["error"] == result["message"] != ""
    assert json.loads(result["details"])["hint"] in result["error"]
    assert "User-Agent" in answer.vary


@pytest.mark.parametrize("agent", ["python-requests/2.34.2", "curl/8.5.0", "my-node", ""])
def test_a_failure_has_the_services_shape_for_all_others(app, cast, agent):
    ask = {"X-API-Key": cast.edith.key, "User-Agent": agent}
    refused(Program(app, "", **ask).get("/compat/shortcuts"), 404, "not_found")


def test_a_bare_key_is_no_credential_of_the_api_proper(app, cast):
    assert Program(app, "", Authorization=cast.edith.key).get("/templates").status_code == 401
    for near in ("/compatible", "/compat.", "/"):
        assert Program(app, "", Authorization=cast.edith.key).get(near).status_code == 401


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({}, "missing"),
        ({"Authorization": "nonsense"}, "malformed"),
        ({"Authorization": "Basic YTpi"}, "malformed"),
        ({"X-API-Key": "rws_unknown1_" + "x" * 43}, None),
    ],
)
def test_failures_have_the_message_in_addition_to_the_error(app, headers, reason):
    details = refused(Program(app, "", **headers).get("/compat/templates"), 401, "unauthenticated")
    assert reason is None or details["reason"] == reason


def test_a_browser_that_comes_by_gets_json_and_is_sent_nowhere(browser, cast):
    answer = browser(cast.edith).get("/compat/templates", headers={"Accept": "text/html"})
    assert refused(answer, 401, "unauthenticated") == {"reason": "missing"}


def test_it_is_not_part_of_the_api_document(api):
    assert not [path for path in api().get("/openapi.json").json["paths"] if "compat" in path]


# --- Templates and rows -----------------------------------------------------------------------------------------


def test_a_template_goes_through_its_life(dm, cast):
    template = new(dm, cast)
    assert {"projectId", "teamId", "createdAt", "createdBy", "templateFolderId", "seed"} <= set(template)
    assert not [key for key in template if "_" in key]
    assert [field["active"] for field in template["fields"]] == [True] * 3
    listed = made(dm.get("/compat/templates"))
    assert [item["id"] for item in listed] == [template["id"]]
    assert made(dm.get(f"/compat/templates/{template['id']}")) == template
    changed = made(dm.open("PUT", f"/compat/templates/{template['id']}", json={**template, "name": "Other"}))
    assert (changed["name"], changed["version"], changed["fields"]) == ("Other", 2, template["fields"])
    gone = dm.open("DELETE", f"/compat/templates/{template['id']}")
    assert (gone.status_code, list(gone.json)) == (200, ["message"])
    refused(dm.get(f"/compat/templates/{template['id']}"), 404, "not_found")


def test_a_list_is_bare_and_whole(dm, cast, monkeypatch):
    from webapp import limits

    monkeypatch.setattr(limits, "PAGE_LIMIT_MAX", 2)
    ids = [new(dm, cast)["id"] for _ in range(5)]
    assert [item["id"] for item in made(dm.get("/compat/templates"))] == ids[::-1]
    assert (
        len(made(dm.get("/compat/templates", query_string={"projectId": cast.side, "teamId": cast.blue})))
        == 0
    )


def test_rows_come_as_a_bare_array(dm):
    before = rows_used(dm)
    answer = dm.post("/compat/datamaker", json={"name": "basic template", "fields": README, "quantity": 2})
    rows = made(answer)
    assert [list(row) for row in rows] == [["first_name", "last_name", "email"]] * 2
    assert rows[0]["email"] == f"{rows[0]['first_name']}.{rows[0]['last_name']}@example.com"
    assert rows_used(dm) == before + 2


def test_a_template_object_without_name_and_options_makes_rows(dm):
    fields = [
        {"name": "w", "type": "Words", "options": None},
        {"name": "id", "type": "UUID", "options": None},
    ]
    assert (
        len(made(dm.post("/compat/datamaker", json={"name": None, "fields": fields, "quantity": None}))) == 10
    )


def test_a_fetched_template_sent_back_makes_the_rows_of_the_saved_one(dm, cast, api):
    template = made(dm.get(f"/compat/templates/{new(dm, cast)['id']}"))
    rows = made(dm.post("/compat/datamaker", json={**template, "quantity": 3, "seed": 7}))
    saved = api(cast.edith).post(f"/templates/{template['id']}/generate", json={"count": 3, "seed": "7"}).json
    assert rows == saved


def test_every_error_of_a_definition_is_reported_together(dm):
    fields = [{"name": "a", "type": "Frist Name"}, {"name": "b", "type": "Number", "options": {"minn": 1}}]
    details = refused(
        dm.post("/compat/datamaker", json={"fields": fields, "quantty": 2}), 422, "validation_error"
    )
    assert {field["path"] for field in details["fields"]} >= {"fields[0].type", "quantty"}
    assert "quantity" in next(field["hint"] for field in details["fields"] if field["path"] == "quantty")


def test_fields_say_the_same_there_and_back(dm, cast):
    fields = [
        {"name": "a", "type": "Number", "options": {"min": 1, "max": 9}, "active": False, "percentBlank": 20},
        {"name": "b", "type": "UUID", "options": {"primaryKey": True}, "active": True},
        {"name": "c", "type": "Nested", "nested": [{"name": "d", "type": "First Name", "textCase": "upper"}],
         "active": True, "function": "", "optional": None},
    ]  # fmt: skip
    template = new(dm, cast, fields=fields)
    a, b, c = template["fields"]
    assert (a["active"], a["percentBlank"], a["options"]) == (False, 20, {"min": 1, "max": 9})
    assert b["options"] == {"primaryKey": True}
    assert c["options"]["fields"][0]["textCase"] == "upper"
    again = made(dm.open("PUT", f"/compat/templates/{template['id']}", json={"fields": template["fields"]}))
    assert again["fields"] == template["fields"]


def test_options_are_camel_case_there_and_back(dm, cast):
    parent = new(dm, cast)
    options = {"templateId": parent["id"], "field": "email"}
    template = new(dm, cast, fields=[{"name": "r", "type": "Reference", "options": options, "active": True}])
    assert template["fields"][0]["options"] == options


def test_every_type_name_that_the_clients_know_is_found():
    for name in ("Words", "UUID", "Number", "Float", "Boolean", "AI", "Custom", "First Name", "Last Name", "Derived",
                 "firstName", "lastName", "email", "Template", "Nested"):  # fmt: skip
        assert registry.find(name) is not None, name


def test_an_object_lands_in_the_project_that_is_named(dm, cast, api):
    template = new(dm, cast, projectId=cast.side)
    assert (template["projectId"], template["teamId"]) == (cast.side, cast.blue)
    assert api(cast.edith).get("/templates").json["total"] == 0
    sent = {"name": "T", "fields": README, "projectId": cast.mallorys}
    refused(dm.post("/compat/templates", json=sent), 404, "not_found")
    sent = {"name": "T", "fields": README, "teamId": cast.red}
    assert (
        refused(dm.post("/compat/templates", json=sent), 422, "validation_error")["fields"][0]["path"]
        == "teamId"
    )


def test_rights_count_in_the_project_that_is_named(client, cast):
    sent = {"name": "T", "fields": README, "projectId": cast.red_project}
    refused(client(cast.tessa).post("/compat/templates", json=sent), 404, "not_found")
    refused(
        client(cast.victor).post("/compat/templates", json={**sent, "projectId": cast.side}), 403, "forbidden"
    )


# --- Projects, teams, people, keys ------------------------------------------------------------------------------


def test_projects_and_teams_are_kept(client, cast):
    dm = client(cast.adam)
    project = made(dm.post("/compat/projects", json={"name": "P", "teamId": cast.red}))
    assert (project["teamId"], project["avatar"]) == (cast.red, None)
    one = f"/compat/projects/{project['id']}"
    assert made(dm.open("PUT", one, json={"name": "Q", "teamId": cast.red}))["name"] == "Q"
    assert made(dm.get(one))["name"] == "Q"
    assert project["id"] in [each["id"] for each in made(dm.get("/compat/projects"))]
    assert list(made(dm.open("DELETE", one))) == ["message"]
    team = made(dm.post("/compat/teams", json={"name": "Green"}))
    assert made(dm.open("PUT", f"/compat/teams/{team['id']}", json={"name": "Grey"}))["name"] == "Grey"
    assert {"Grey", "Blue", "Red"} <= {each["name"] for each in made(dm.get("/compat/teams"))}
    setup = made(dm.post("/compat/setup/teams", json={"name": "New"}))
    assert setup["project"]["teamId"] == setup["team"]["id"]
    assert setup["teamMember"]["role"] == "ADMIN"


def test_people_and_members_are_shown_and_changed(client, cast):
    dm = client(cast.adam)
    me = made(dm.get("/compat/users/me"))
    assert (me["email"], me["firstName"]) == (cast.adam.email, "Adam")
    assert {each["email"] for each in made(dm.get("/compat/users"))} >= {cast.edith.email, cast.tessa.email}
    assert cast.mallory.email not in str(made(dm.get("/compat/users")))
    assert (
        made(dm.open("PATCH", f"/compat/users/{me['id']}", json={"lastName": "Smith"}))["name"]
        == "Adam Smith"
    )
    refused(dm.open("PUT", f"/compat/users/{cast.edith.user_id}", json={"firstName": "X"}), 404, "not_found")
    sent = {"userId": cast.victor.user_id, "teamId": cast.red, "role": "MEMBER"}
    member = made(dm.post("/compat/teamMembers", json=sent))
    assert (member["role"], member["teamId"]) == ("MEMBER", cast.red)
    assert (
        made(dm.open("PUT", f"/compat/teamMembers/{member['id']}", json={"role": "ADMIN"}))["role"] == "ADMIN"
    )
    assert made(dm.open("DELETE", f"/compat/teamMembers/{member['id']}")) == {"message": "Member removed"}
    refused(dm.post("/compat/teamMembers", json={**sent, "userId": cast.mallory.user_id}), 404, "not_found")
    invited = made(dm.post("/compat/teamMembers/invite", json={"email": "n@example.org", "teamId": cast.red}))
    assert (invited["success"], invited["newMember"]["role"]) == (True, "MEMBER")
    assert "/invitations/accept/" in invited["url"]


def test_keys_are_created_renamed_and_revoked(dm, client, app):
    key = made(dm.post("/compat/apiKeys", json={"key": "mine", "scope": "READ", "name": "CI"}))
    assert key["key"].startswith("rws_")
    assert key["role"] == "READ"
    narrow = Program(app, "", Authorization=key["key"])
    assert made(narrow.get("/compat/templates")) == []
    refused(narrow.post("/compat/templates", json={"name": "T", "fields": README}), 403, "forbidden")
    assert key["key"] not in str(made(dm.get("/compat/apiKeys")))
    renamed = made(dm.open("PUT", f"/compat/apiKeys/{key['id']}", json={"key": "other", "name": "CD"}))
    assert renamed["name"] == "CD"
    assert list(made(dm.open("DELETE", f"/compat/apiKeys/{key['id']}"))) == ["message"]
    assert narrow.get("/compat/templates").status_code == 401
    details = refused(dm.post("/compat/apiKeys", json={"key": "k", "scope": "RAED"}), 422, "validation_error")
    assert details["fields"][0]["hint"] == "Did you mean `READ`?"


# --- What there is not ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "near"),
    [
        ("GET", "/compat/template", "GET /templates"),
        ("DELETE", "/compat/apiKeys", "GET /apiKeys"),
        ("POST", "/compat/datamakr", "POST /datamaker"),
        ("GET", "/compat/templates/", "GET /templates"),
    ],
)
def test_an_unknown_call_names_near_ones(dm, method, path, near):
    details = refused(dm.open(method, path), 404, "not_found")
    assert near in details["near"]
    assert details["hint"]


@pytest.mark.parametrize(
    "path", ["keymaps/m/copy", "plans/1/run", "endpoints/auth-resolve", "integrations/1/tosca/datasets", "shortcuts",
             "feedback", "users/provision", ""],
)  # fmt: skip
def test_calls_only_the_hosted_service_has_name_an_alternative(dm, path):
    details = refused(dm.post(f"/compat/{path}", json={}), 404, "not_found")
    assert details["hint"]


def test_a_body_that_is_not_json_is_reported(dm):
    answer = dm.post("/compat/datamaker", data=b"{", headers={"Content-Type": "application/json"})
    refused(answer, 400, "invalid_request")
