"""The pages of scenarios, without a script: written, saved, looked through, compared, set up, deleted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.forms.in_html import controls
from webapp.extensions import db
from webapp.scenarios import examples
from webapp.scenarios.models import Run, Scenario

CODE = 'print("hello")\n'


@pytest.fixture
def person(browser, cast):
    return browser(cast.edith)


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


@pytest.fixture
def one(edith):
    return edith.post("/scenarios", json={"name": "Nightly", "code": CODE, "description": "Says hello."}).json


def held(answer, form="scenario") -> dict[str, str]:
    """What a form of a page holds."""
    return controls(answer.text, form).to_dict()


def test_a_new_program_starts_with_a_short_one_or_an_example(person, edith):
    page = person.get("/scenarios/new")
    assert page.status_code == 200
    assert held(page)["code"].replace("\r\n", "\n") == examples.BLANK.code
    for example in examples.EXAMPLES:
        begun = person.get(f"/scenarios/new?example={example.key}")
        assert f'value="{example.name}"' in begun.text
        assert held(begun)["code"].replace("\r\n", "\n") == example.code
    assert edith.get("/scenarios").json["total"] == 0


def test_a_program_is_saved_as_it_was_typed(person, edith):
    code = "\n\nif True:\n\tprint('ä')  \n\n"
    answer = person.submit(
        "/scenarios/new", {"name": "Mine", "code": code.replace("\n", "\r\n"), "do": "save"}
    )
    result = edith.get("/scenarios").json["items"][0]
    assert (answer.status_code, answer.headers["Location"]) == (303, f"/scenarios/{result['id']}")
    assert (result["name"], result["code"]) == ("Mine", code)
    assert held(person.get(f"/scenarios/{result['id']}"))["code"].replace("\r\n", "\n") == code


def test_saving_creates_a_version_and_saving_the_same_does_not(person, edith, one):
    path = f"/scenarios/{one['id']}"
    value = held(person.get(path))
    person.submit(f"{path}/edit", {**value, "do": "save"})
    assert edith.get(path).json["version"] == 1
    answer = person.submit(f"{path}/edit", {**value, "code": "print(2)\r\n", "do": "save"})
    assert answer.headers["Location"] == path
    assert (edith.get(path).json["version"], edith.get(path).json["code"]) == (2, "print(2)\n")
    assert "Saved as version 2" in person.get(path).text


def test_a_save_over_a_newer_version_shows_both_and_asks_first(person, edith, one):
    path = f"/scenarios/{one['id']}"
    mine = held(person.get(path)) | {"code": 'print("mine")\n', "do": "save"}
    edith.patch(path, json={"code": 'print("theirs")\n'})
    answer = person.submit(f"{path}/edit", mine)
    assert answer.status_code == 412
    assert "Version 2 was saved while you edited version 1" in answer.text
    assert "print(&#34;theirs&#34;)" in answer.text
    assert held(answer)["code"].replace("\r\n", "\n") == 'print("mine")\n'
    assert held(answer)["version"] == "1"
    assert edith.get(path).json["version"] == 2
    over = person.submit(f"{path}/edit", {**mine, "do": "save-over:2"})
    assert (over.status_code, edith.get(path).json["code"]) == (303, 'print("mine")\n')


def test_an_error_is_shown_at_its_line_and_the_text_is_kept(person, edith, one):
    path = f"/scenarios/{one['id']}"
    code = "import os\n# requirements: not a package!!\n"
    answer = person.submit(f"{path}/edit", held(person.get(path)) | {"code": code, "do": "save"})
    assert answer.status_code == 422
    assert 'data-line="2"' in answer.text
    assert held(answer)["code"].replace("\r\n", "\n") == code
    assert edith.get(path).json["version"] == 1


def test_syntax_errors_are_shown_at_their_line_before_saving(person):
    text = person.submit(
        "/scenarios/said", {"code": "x = 1\r\ny = (\r\n"}, headers={"HX-Request": "true"}
    ).text
    assert "<html" not in text
    assert 'data-line="2"' in text
    assert "Syntax error" in text
    assert (
        "data-line"
        not in person.submit("/scenarios/said", {"code": CODE}, headers={"HX-Request": "true"}).text
    )


def test_a_script_that_saves_gets_only_the_part_next_to_the_text(person, one):
    path = f"/scenarios/{one['id']}"
    value = held(person.get(path)) | {"code": "print(3)\n", "do": "save"}
    answer = person.submit(f"{path}/edit", value, headers={"HX-Request": "true"})
    assert answer.headers["HX-Trigger"] == "saved"
    assert "<html" not in answer.text
    assert 'name="code"' not in answer.text
    assert 'name="version" value="2"' in answer.text
    assert 'id="findings" hx-swap-oob' in answer.text


def test_running_saves_first_and_takes_the_parameters_along(person, edith, one, app):
    path = f"/scenarios/{one['id']}"
    value = held(person.get(path)) | {"code": "print(9)\n", "do": "run"}
    value |= {"params[0].name": "ROWS", "params[0].value": "5", "params[1].name": "", "params[1].value": ""}
    answer = person.submit(f"{path}/edit", value)
    run = edith.get(f"{path}/runs").json["items"][0]
    assert (answer.status_code, answer.headers["Location"]) == (303, f"{path}/runs/{run['id']}")
    assert (run["scenario_version"], run["params"], run["trigger"]) == (2, {"ROWS": "5"}, "browser")
    assert held(person.get(path))["params[0].name"] == "ROWS"
    again = person.submit(f"{path}/edit", value, headers={"HX-Request": "true"})
    assert again.headers["HX-Redirect"].startswith(f"{path}/runs/")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([("", "5")], "has no name"),
        ([("A", "1"), ("A", "2")], "is set twice"),
        ([("PATH", "x")], "is reserved"),
        ([("1st", "x")], "is not a valid variable name"),
    ],
)
def test_an_invalid_parameter_starts_no_run_and_has_a_reason(person, edith, one, rows, expected):
    path = f"/scenarios/{one['id']}"
    values = held(person.get(path)) | {"do": "run"}
    for place, (name, value) in enumerate(rows):
        values |= {f"params[{place}].name": name, f"params[{place}].value": value}
    answer = person.submit(f"{path}/edit", values)
    assert answer.status_code == 422
    assert expected in answer.text
    assert edith.get(f"{path}/runs").json["total"] == 0


def test_settings_are_saved_and_the_next_times_shown(person, edith, one, api, cast):
    api(cast.olivia).put("/secrets/sap_login", json={"value": "v"})
    path = f"/scenarios/{one['id']}"
    value = {
        "description": "New words.", "timeout_seconds": "120", "network": "api", "env[0].name": "REGION",
        "env[0].value": "a\r\nb", "env[1].name": "", "env[1].value": "", "cron": "30 6 * * 1-5",
        "timezone": "Europe/Berlin", "enabled": "yes", "params[0].name": "N", "params[0].value": "3",
    }  # fmt: skip
    answer = person.submit(f"{path}/settings", value)
    assert (answer.status_code, answer.headers["Location"]) == (303, f"{path}/settings")
    now = edith.get(path).json
    assert (now["timeout_seconds"], now["network"], now["env"]) == (120, "api", {"REGION": "a\nb"})
    assert now["description"] == "New words."
    assert now["schedule"]["params"] == {"N": "3"}
    page = person.get(f"{path}/settings")
    assert page.text.count(", 06:30</time>") == 3
    again = held(page, "settings")
    assert {key: again[key] for key in value} == value  # what is kept comes back
    assert "sap_login" not in page.text  # an editor is not told the names of secrets
    gone = {**value, "cron": ""}
    person.submit(f"{path}/settings", gone)
    assert edith.get(path).json["schedule"] is None


def test_an_admin_gives_secrets_by_ticking_them(browser, api, cast, one):
    olivia = browser(cast.olivia)
    api(cast.olivia).put("/secrets/sap_login", json={"value": "v"})
    path = f"/scenarios/{one['id']}"
    value = {
        "timeout_seconds": "900",
        "network": "full",
        "secrets": "sap_login",
        "writable_secrets": "sap_login",
    }
    assert 'name="secrets" value="sap_login"' in olivia.get(f"{path}/settings").text
    assert olivia.submit(f"{path}/settings", value).status_code == 303
    now = api(cast.olivia).get(path).json
    assert (now["secrets"], now["writable_secrets"]) == (["sap_login"], ["sap_login"])


def test_settings_name_the_private_networks_that_the_operator_opens(person, one, app, monkeypatch):
    page = f"/scenarios/{one['id']}/settings"
    assert "No private networks" in person.get(page).text
    opened = replace(app.config["SETTINGS"], target_networks=("10.20.0.0/16", "192.168.7.15/32"))
    monkeypatch.setitem(app.config, "SETTINGS", opened)
    shown = person.get(page).text
    assert "Includes these private networks: 10.20.0.0/16, 192.168.7.15/32" in shown
    assert "No private networks" not in shown


def test_errors_of_settings_are_shown_at_their_inputs(person, edith, one):
    path = f"/scenarios/{one['id']}/settings"
    value = {"timeout_seconds": "5", "network": "full", "cron": "61 * * * *", "timezone": "Europe/Berln"}
    answer = person.submit(path, value)
    assert answer.status_code == 422
    assert "timeout_seconds" in answer.text
    value |= {"timeout_seconds": "60", "env[0].name": "LD_PRELOAD", "env[0].value": "x"}
    answer = person.submit(path, value)
    assert answer.status_code == 422
    for result in ("schedule.cron", "Europe/Berlin", "LD_"):
        assert result in answer.text
    assert held(answer, "settings")["cron"] == "61 * * * *"
    assert edith.get(f"/scenarios/{one['id']}").json == one


def test_the_next_times_are_shown_while_typing(person):
    text = person.submit(
        "/scenarios/times", {"cron": "0 2 * * *", "timezone": "Asia/Tokyo", "enabled": "yes"}
    ).text
    assert text.count(", 02:00</time>") == 3
    assert "five fields" in person.submit("/scenarios/times", {"cron": "@daily", "timezone": "UTC"}).text


def test_versions_are_compared_looked_at_and_restored(person, edith, one):
    path = f"/scenarios/{one['id']}"
    edith.patch(path, json={"code": "print('other')\n", "name": "Other"})
    text = person.get(f"{path}/history").text
    assert f'action="{path}/versions/1/restore"' in text
    shown = person.get(f"{path}@v1/diff").text
    assert '<tr class="del">' in shown
    assert '<tr class="add">' in shown
    assert "<b>name</b>" in shown
    part = person.get(f"{path}@v1/diff", headers={"HX-Request": "true"}).text
    assert "<html" not in part
    assert "print(&#34;hello&#34;)" in person.get(f"{path}@v1").text
    person.submit(f"{path}/versions/1/restore")
    assert edith.get(path).json["code"] == CODE


def test_deleting_can_be_undone_from_the_next_page_and_from_the_trash(person, edith, one):
    path = f"/scenarios/{one['id']}"
    assert person.submit(path, method="DELETE").headers["Location"] == "/scenarios"
    listed = person.get("/scenarios").text
    assert "Scenario Nightly deleted" in listed
    assert f'action="{path}/restore"' in listed
    assert f'action="{path}/restore"' in person.get("/trash").text
    assert person.submit(f"{path}/restore").status_code == 303
    assert edith.get(path).status_code == 200


def test_a_list_has_an_empty_state_a_search_and_the_last_run(person, edith, one, app):
    edith.post(f"/scenarios/{one['id']}/run", json={})
    text = person.get("/scenarios?q=night").text
    assert "Nightly" in text
    assert "Queued" in text
    assert "No scenarios match “zebra”" in person.get("/scenarios?q=zebra").text
    with app.app_context():
        db.session.execute(db.delete(Run))
        db.session.execute(db.delete(Scenario))
        db.session.commit()
    text = person.get("/scenarios").text
    assert "No scenarios yet" in text
    assert 'href="/scenarios/new"' in text


def test_a_viewer_reads_and_is_offered_no_change(browser, cast, one):
    victor = browser(cast.victor)
    path = f"/scenarios/{one['id']}"
    text = victor.get(path).text
    assert "print(&#34;hello&#34;)" in text
    for offered in ('id="save"', 'id="run"', "Delete scenario"):
        assert offered not in text
    assert "disabled" in victor.get(f"{path}/settings").text
    assert "New scenario" not in victor.get("/scenarios").text


def test_names_that_are_completed_are_those_of_the_sdk(person):
    page = person.get("/scenarios/new").text
    assert "/scenarios/names?v=" in page
    found = person.get("/scenarios/names").json
    methods = {item["name"]: item for item in found["client"]}
    # The specification's table of the client's methods.
    assert {
        "generate",
        "generate_from_template_id",
        "export_to_database",
        "save_file",
        "get_templates",
    } <= set(methods)
    assert methods["generate_from_template_id"]["args"] == "template_id, quantity=…"
    assert any(name["name"] == "EmailField" and name["from"] == "rowsmith.fields" for name in found["names"])
    assert {"yield", "print"} <= set(found["words"])


def test_markup_in_input_stays_text(person, edith):
    evil = "<script>alert(1)</script>'\"</textarea>"
    code = f'# {evil}\nprint("""{evil}""")\n'
    created = edith.post(
        "/scenarios", json={"name": evil, "description": evil, "code": code, "env": {"A": evil}}
    ).json
    path = f"/scenarios/{created['id']}"
    edith.patch(path, json={"code": code + evil})
    for where in (path, "/scenarios", f"{path}/settings", f"{path}/history", f"{path}@v1", f"{path}@v1/diff"):
        assert evil not in person.get(where).text


def test_pages_are_small_and_hold_no_style(person, edith, one):
    edith.post(f"/scenarios/{one['id']}/run", json={})
    path = f"/scenarios/{one['id']}"
    for where in (
        "/scenarios",
        "/scenarios/new",
        path,
        f"{path}/settings",
        f"{path}/history",
        f"{path}/runs",
        "/runs",
    ):
        text = person.get(where).text
        assert len(text.encode()) < 50_000, where
        assert 'style="' not in text, where
