"""Scenarios over REST: made, read, changed, versioned, compared, deleted; bad input; who may give secrets."""

from __future__ import annotations

import pytest

from tests.views.speak import code_of, faults, refused
from webapp import limits

CODE = 'print("hello")\n'


@pytest.fixture
def adam(api, cast):
    """Who may give secrets, and read the trail."""
    return api(cast.adam)


@pytest.fixture
def scenario(edith):
    return made(edith)


@pytest.fixture
def token(adam):
    """The name of a secret."""
    assert adam.put("/secrets/ERP_TOKEN", json={"value": "t0p"}).status_code == 201
    return "ERP_TOKEN"


def made(program, **more):
    answer = program.post("/scenarios", json={"name": "Nightly", "code": CODE, **more})
    assert answer.status_code == 201, answer.json
    return answer.json


def at(scenario):
    return f"/scenarios/{scenario['id']}"


def actions(program, scenario):
    items = program.get(f"/audit?object_id={scenario['id']}").json["items"]
    return [(item["action"], item["details"]) for item in reversed(items)]


def test_a_scenario_needs_only_a_name_and_code(edith, cast):
    answer = edith.post("/scenarios", json={"name": "Nightly", "code": CODE})
    assert answer.status_code == 201
    data = answer.json
    assert answer.headers["Location"] == at(data)
    assert answer.headers["ETag"]
    assert data["id"].startswith("scn_")
    value = {key: data[key] for key in data if key not in ("id", "created_at", "updated_at")}
    assert value == {
        "name": "Nightly",
        "description": "",
        "code": CODE,
        "version": 1,
        "timeout_seconds": 900,
        "env": {},
        "secrets": [],
        "writable_secrets": [],
        "network": "full",
        "schedule": None,
        "next_run_at": None,
        "requirements": [],
        "lock": None,
        "project_id": cast.main,
        "team_id": cast.blue,
        "created_by": cast.edith.user_id,
        "deleted_at": None,
        "warnings": [],
    }
    assert edith.get(at(data)).json == data


def test_all_attributes_of_a_scenario_are_stored_as_sent(edith):
    text = {
        "description": "Every night",
        "timeout_seconds": 60,
        "env": {"STAGE": "test", "_n": "5"},
        "network": "api",
        "schedule": {
            "cron": "30 6 * * 1-5",
            "timezone": "Europe/Berlin",
            "enabled": False,
            "params": {"DAY": "today"},
        },
    }
    data = made(edith, **text)
    assert {key: data[key] for key in text} == text
    assert data["next_run_at"] is None


def test_name_and_code_are_required_and_all_errors_are_reported_together(edith):
    assert faults(edith.post("/scenarios", json={})) == {"name": "missing", "code": "missing"}
    bad = {
        "name": "",
        "code": "",
        "timeout_seconds": 59,
        "network": "all",
        "cod": "x",
        "schedule": {"cron": 5},
    }
    assert faults(edith.post("/scenarios", json=bad)) == {
        "name": "too_short",
        "code": "too_short",
        "timeout_seconds": "out_of_range",
        "network": "not_allowed",
        "cod": "unknown_key",
        "schedule.cron": "wrong_type",
    }


def test_names_and_values_of_variables_are_checked_each_at_its_place(edith):
    env = {
        "1st": "x",
        "with space": "x",
        "SERVICE_API_KEY": "x",
        "DATAMAKER_URL": "x",
        "PATH": "x",
        "PYTHONPATH": "x",
        "LD_PRELOAD": "x",
        "HOME": "x",
        "number": 5,
        "long": "x" * (limits.MAX_VARIABLE_BYTES + 1),
        "path": "lower case is another name",
        "fine": "ü",
    }
    assert faults(edith.post("/scenarios", json={"name": "N", "code": CODE, "env": env})) == {
        "env.1st": "wrong_form",
        "env.with space": "wrong_form",
        "env.SERVICE_API_KEY": "reserved",
        "env.DATAMAKER_URL": "reserved",
        "env.PATH": "reserved",
        "env.PYTHONPATH": "reserved",
        "env.LD_PRELOAD": "reserved",
        "env.HOME": "reserved",
        "env.number": "wrong_type",
        "env.long": "too_long",
    }


def test_code_up_to_the_limit_is_kept_byte_for_byte_and_one_byte_more_is_rejected(edith):
    code = "# " + "ü" * ((limits.MAX_CODE_BYTES - 4) // 2) + "\n"
    code += " " * (limits.MAX_CODE_BYTES - len(code.encode()))
    assert made(edith, code=code)["code"] == code
    answer = edith.post("/scenarios", json={"name": "N", "code": code + "#"})
    assert faults(answer) == {"code": "too_long"}
    answer = edith.post("/scenarios", json={"name": "N", "code": "a = '\0'"})
    assert code_of(answer) == (400, "invalid_request")


def test_an_incomplete_program_is_saved_with_a_warning_and_a_position(edith):
    data = made(edith, code="x = 1\nif x\n    print(x)\n")
    (warning,) = data["warnings"]
    assert (warning["path"], warning["code"]) == ("code", "syntax_error")
    assert "line 2, column 5" in warning["message"]
    assert warning["position"] == 11
    assert edith.put(at(data), json={"code": CODE}).json["warnings"] == []


@pytest.mark.parametrize(
    "code", ["(" * 5_000, "x = " + "-" * 200_000 + "1", "\ud800".encode("utf-8", "replace").decode()]
)
def test_code_that_no_reader_survives_is_saved_all_the_same(edith, code):
    assert made(edith, code=code)["version"] == 1


def test_put_replaces_the_code_and_makes_a_version(edith, adam, scenario):
    answer = edith.put(at(scenario), json={"code": "print(2)\n"})
    assert answer.status_code == 200
    assert (answer.json["version"], answer.json["code"], answer.json["name"]) == (2, "print(2)\n", "Nightly")
    whole = edith.put(at(scenario), json={"code": "print(3)\n", "name": "Other", "timeout_seconds": 120}).json
    assert (whole["version"], whole["name"], whole["timeout_seconds"]) == (3, "Other", 120)
    assert faults(edith.put(at(scenario), json={"name": "N"})) == {"code": "missing"}
    result = [(action, details["version"]) for action, details in actions(adam, scenario)]
    assert result == [("scenario.create", 1), ("scenario.change", 2), ("scenario.change", 3)]


def test_how_it_is_run_changes_without_a_version(edith, adam, scenario):
    changed = edith.patch(
        at(scenario), json={"timeout_seconds": 300, "env": {"A": "1"}, "network": "none"}
    ).json
    assert (changed["version"], changed["timeout_seconds"], changed["network"]) == (1, 300, "none")
    assert changed["env"] == {"A": "1"}
    assert edith.get(at(scenario)).json == changed
    action, details = actions(adam, scenario)[-1]
    assert action == "scenario.change"
    assert details["settings"] == ["timeout_seconds", "env", "network"]
    assert "1" not in str(details["settings"])
    assert edith.patch(at(scenario), json={"timeout_seconds": 300}).json == changed
    assert len(actions(adam, scenario)) == 2, "nothing changed, so nothing is recorded"


def test_a_patch_of_name_description_or_code_makes_a_version(edith, scenario):
    assert edith.patch(at(scenario), json={"name": "Renamed"}).json["version"] == 2
    assert edith.patch(at(scenario), json={"description": "D"}).json["version"] == 3
    last = edith.patch(at(scenario), json={"code": "print(9)\n"}).json
    assert (last["version"], last["code"], last["name"]) == (4, "print(9)\n", "Renamed")


def test_clients_may_send_back_what_they_read(edith, scenario):
    again = edith.put(at(scenario), json=scenario)
    assert again.status_code == 200, again.json
    assert again.json["version"] == 2


def test_versions_are_whole_and_an_old_one_becomes_the_newest(edith, scenario):
    edith.put(at(scenario), json={"code": "print(2)\n", "name": "Two"})
    items = edith.get(f"{at(scenario)}/versions").json["items"]
    assert [(item["version"], item["name"], item["code"]) for item in items] == [
        (2, "Two", "print(2)\n"),
        (1, "Nightly", CODE),
    ]
    assert edith.get(f"{at(scenario)}@v1").json["code"] == CODE
    back = edith.post(f"{at(scenario)}/versions/1/restore").json
    assert (back["version"], back["name"], back["code"]) == (3, "Nightly", CODE)
    assert code_of(edith.get(f"{at(scenario)}@v4")) == (404, "not_found")


def test_two_versions_are_compared_line_by_line(edith, scenario):
    edith.put(at(scenario), json={"code": 'import os\nprint("hello")\n', "name": "Two"})
    diff = edith.get(f"{at(scenario)}@v1/diff").json
    assert (diff["from"], diff["to"], diff["scenario"]) == (1, 2, {"name": {"from": "Nightly", "to": "Two"}})
    assert diff["code"].splitlines() == [
        "--- v1/main.py",
        "+++ v2/main.py",
        "@@ -1,2 +1,3 @@",
        "+import os",
        ' print("hello")',
        " ",
    ]
    assert edith.get(f"{at(scenario)}@v2/diff?to=2").json["code"] == ""


def test_a_change_of_an_outdated_state_is_rejected(edith, scenario):
    tag = edith.get(at(scenario)).headers["ETag"]
    assert edith.put(at(scenario), json={"code": "a = 1"}, headers={"If-Match": tag}).status_code == 200
    for method in ("PUT", "PATCH", "DELETE"):
        body = {"code": "a = 2"} if method != "DELETE" else None
        answer = edith.open(method, at(scenario), json=body, headers={"If-Match": tag})
        assert code_of(answer) == (412, "version_conflict")
    assert edith.get(at(scenario)).json["code"] == "a = 1"


def test_the_same_key_makes_one_scenario(edith):
    body = {"name": "Once", "code": CODE}
    first, second = (edith.post("/scenarios", json=body, headers={"Idempotency-Key": "k"}) for _ in range(2))
    assert second.json == first.json
    assert second.headers["Idempotent-Replayed"] == "true"
    assert edith.get("/scenarios").json["total"] == 1


def test_a_list_is_paged_and_searched_by_name(edith):
    for name in ("Alpha", "Beta", "Alphabet"):
        made(edith, name=name)
    first = edith.get("/scenarios?limit=2").json
    assert ([item["name"] for item in first["items"]], first["total"]) == (["Alphabet", "Beta"], 3)
    rest = edith.get(f"/scenarios?limit=2&cursor={first['next_cursor']}").json
    assert ([item["name"] for item in rest["items"]], rest["next_cursor"]) == (["Alpha"], None)
    found = edith.get("/scenarios?q=alpha&sort=name").json["items"]
    assert [item["name"] for item in found] == ["Alpha", "Alphabet"]


def test_a_deleted_scenario_is_gone_until_it_is_restored(edith, adam, scenario):
    gone = edith.delete(at(scenario))
    assert (gone.status_code, gone.json["id"]) == (200, scenario["id"])
    assert gone.json["deleted_at"]
    assert code_of(edith.get(at(scenario))) == (404, "not_found")
    assert edith.get("/scenarios").json["total"] == 0
    assert edith.post(f"{at(scenario)}/restore").json["deleted_at"] is None
    assert edith.get(at(scenario)).json["code"] == CODE
    result = [action for action, _ in actions(adam, scenario)]
    assert result == ["scenario.create", "scenario.delete", "scenario.restore"]


# --- Secrets ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["secrets", "writable_secrets"])
def test_a_secret_is_given_by_those_who_may_manage_secrets_and_taken_by_every_editor(
    edith, adam, scenario, token, key
):
    details = refused(edith.patch(at(scenario), json={key: [token]}), 403, "forbidden")
    assert details["needs"] == "secrets"
    assert edith.get(at(scenario)).json[key] == []
    assert adam.patch(at(scenario), json={key: [token, token]}).json[key] == [token]
    # A user who keeps existing secrets and changes other attributes grants no access.
    stored = edith.patch(at(scenario), json={key: [token], "code": "print(2)\n"})
    assert (stored.status_code, stored.json["version"]) == (200, 2)
    assert edith.patch(at(scenario), json={key: []}).json[key] == []
    assert refused(edith.patch(at(scenario), json={key: [token]}), 403, "forbidden")["needs"] == "secrets"
    result = [details for _, details in actions(adam, scenario)]
    assert [item.get(f"{key}_given") for item in result] == [None, [token], None, None]
    assert [item.get(f"{key}_taken") for item in result] == [None, None, None, [token]]


def test_secrets_must_be_there_and_be_names_of_variables(adam, scenario, token):
    adam.put("/secrets/with.dot", json={"value": "x"})
    adam.put("/secrets/PYTHONPATH", json={"value": "x"})
    body = {"secrets": ["ERP_TOKN", "with.dot", "PYTHONPATH", token]}
    answer = adam.patch(at(scenario), json=body)
    assert faults(answer) == {
        "secrets[0]": "unknown_secret",
        "secrets[1]": "wrong_form",
        "secrets[2]": "reserved",
    }
    assert answer.json["error"]["details"]["fields"][0]["hint"] == "Did you mean `ERP_TOKEN`?"


def test_a_variable_and_a_secret_cannot_share_a_name(adam, scenario, token):
    answer = adam.patch(at(scenario), json={"secrets": [token], "env": {token: "x"}})
    assert faults(answer) == {f"env.{token}": "duplicate"}
    adam.patch(at(scenario), json={"env": {token: "x"}})
    assert faults(adam.patch(at(scenario), json={"secrets": [token]})) == {f"env.{token}": "duplicate"}
    schedule = {"cron": "* * * * *", "params": {token: "x"}}
    answer = adam.patch(at(scenario), json={"env": {}, "secrets": [token], "schedule": schedule})
    assert faults(answer) == {f"schedule.params.{token}": "duplicate"}


@pytest.mark.parametrize("key", ["secrets", "writable_secrets"])
def test_a_secret_that_a_scenario_names_is_not_removed_under_it(adam, scenario, token, key):
    adam.patch(at(scenario), json={key: [token]})
    details = refused(adam.delete(f"/secrets/{token}"), 409, "in_use")
    assert details["used_by"] == [{"type": "scenario", "id": scenario["id"], "name": "Nightly"}]
    adam.patch(at(scenario), json={key: []})
    assert adam.delete(f"/secrets/{token}").status_code == 200


# --- Schedules ----------------------------------------------------------------------------------------------


def test_a_schedule_says_when_it_is_due_next_and_is_turned_off_and_taken_away(edith, scenario):
    body = {"schedule": {"cron": "30 6 1 1 *", "timezone": "Europe/Berlin"}}
    data = edith.patch(at(scenario), json=body).json
    assert data["schedule"] == {**body["schedule"], "enabled": True, "params": {}}
    assert data["next_run_at"].endswith("-01-01T05:30:00Z")
    off = edith.patch(at(scenario), json={"schedule": {**data["schedule"], "enabled": False}}).json
    assert (off["next_run_at"], off["version"]) == (None, 1)
    assert edith.patch(at(scenario), json={"schedule": None}).json["schedule"] is None


def test_every_error_of_a_schedule_is_reported(edith, scenario):
    schedule = {"cron": "61 6 * * *", "timezone": "Europe/Berln", "params": {"PATH": "x", "n": 5}}
    answer = edith.patch(at(scenario), json={"schedule": schedule})
    assert faults(answer) == {
        "schedule.cron": "invalid",
        "schedule.timezone": "unknown_timezone",
        "schedule.params.PATH": "reserved",
        "schedule.params.n": "wrong_type",
    }
    hints = {field["path"]: field.get("hint") for field in answer.json["error"]["details"]["fields"]}
    assert hints["schedule.timezone"] == "Did you mean `Europe/Berlin`?"


@pytest.mark.parametrize(
    "name", ["localtime", "posixrules", "Factory", "../../etc/localtime", "/etc/localtime"]
)
def test_a_time_zone_means_the_same_on_every_machine(edith, scenario, name):
    answer = edith.patch(at(scenario), json={"schedule": {"cron": "0 6 * * *", "timezone": name}})
    assert faults(answer) == {"schedule.timezone": "unknown_timezone"}


def test_a_due_time_that_passes_is_no_change_of_what_was_read(app, edith, scenario):
    from webapp.extensions import write_session
    from webapp.scenarios.models import Scenario

    edith.patch(at(scenario), json={"schedule": {"cron": "* * * * *"}})
    tag = edith.get(at(scenario)).headers["ETag"]
    with app.app_context(), write_session() as session:
        session.get_one(Scenario, scenario["id"]).next_run_at = None
    assert edith.get(at(scenario)).headers["ETag"] == tag


# --- Looking through a program ------------------------------------------------------------------------------


def test_a_program_is_checked_without_being_saved(edith):
    code = "# requirements: tenacity>=8, --index-url x\nif x\n"
    found = edith.post("/scenarios/check", json={"code": code})
    assert found.status_code == 200
    assert found.json["requirements"] == ["tenacity>=8"]
    assert [fault["code"] for fault in found.json["faults"]] == ["invalid_requirement"]
    assert [warning["code"] for warning in found.json["warnings"]] == ["syntax_error"]
    assert found.json["packages"] is None
    assert edith.get("/scenarios").json["total"] == 0
    clean = {"requirements": [], "packages": None, "faults": [], "warnings": []}
    assert edith.post("/scenarios/check", json={"code": CODE}).json == clean
