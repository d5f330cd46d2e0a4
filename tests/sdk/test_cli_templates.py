"""Templates as files: pulled, planned, applied; all of it or nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from rowsmith import Template, error
from rowsmith.cli import template_files
from rowsmith.fields import EmailField, FirstNameField, RowNumberField

from webapp.builder.inputs import TemplateIn
from webapp.engine.spec import CommonKeys

PEOPLE = Template(
    "People",
    quantity=5,
    fields=[
        RowNumberField("id"),
        FirstNameField("first"),
        EmailField("email", unique=True),
        {"name": "address", "type": "nested", "options": {"fields": [{"name": "town", "type": "city"}]}},
    ],
)
PATH = Path("templates/people.json")


@pytest.fixture
def people(sdk):
    return sdk().templates.create(PEOPLE)


def edited(change, path: Path = PATH) -> dict:
    """A file after `change` was done to what it holds."""
    found = json.loads(path.read_text())
    change(found)
    path.write_text(json.dumps(found))
    return found


def test_a_file_has_every_key_that_a_template_and_a_field_can_have():
    assert {*template_files.BODY} == {*TemplateIn.model_fields}
    own = {"id", "name", "type", "options", "unique_together"}  # the last is an inner name of `unique`
    assert {*template_files.COMMON} == {*CommonKeys.model_fields} - own


def test_bad_values_and_a_source_go_into_the_file_and_back(shell, sdk):
    bad = {"rate": 0.5, "kinds": ["missing"]}
    fields = [{"name": "id", "type": "row_number"}, {"name": "mail", "type": "email", "invalid": bad}]
    created = sdk().templates.create(Template("Spoilt", fields=fields).to_dict() | {"invalid": bad})
    shell.good("templates", "pull")
    found = json.loads(Path("templates/spoilt.json").read_text())
    assert (found["invalid"], found["fields"][1]["invalid"]) == (
        created["invalid"],
        created["fields"][1]["invalid"],
    )
    assert shell("templates", "plan").out == "0 to create, 0 to update, 1 unchanged.\n"
    request = ("-n", "50", "-f", "csv", "--seed", "s")
    there = shell.good("generate", "Spoilt", *request).raw
    assert shell.good("generate", "templates/spoilt.json", "--offline", *request).raw == there
    edited(lambda item: item["invalid"].update(rate=0.25), Path("templates/spoilt.json"))
    shell.good("templates", "apply")
    assert sdk().templates.get(created["id"])["invalid"]["rate"] == 0.25
    edited(lambda item: item.update(source={"file": "people.csv"}), Path("templates/spoilt.json"))
    refused = shell("generate", "templates/spoilt.json", "--offline")
    assert (refused.status, "offline_outside" in refused.err) == (6, True), refused.err


def test_a_file_is_imported_after_a_look(shell, sdk):
    Path("clients.csv").write_text("id,email\n1,a@example.org\n2,b@example.org\n")
    looked = shell.good("templates", "import", "clients.csv", "--look", "--json").json
    assert looked["templates"][0]["id"] is None
    created = shell.good("templates", "import", "clients.csv", "--json").json["templates"][0]
    assert sdk().templates.get(created["id"])["name"] == "clients"
    assert "green" in shell.good("templates", "import", "clients.csv", "--look").out


def test_a_pulled_file_has_ids_and_nothing_that_changes_by_itself(shell, sdk, people):
    shell.good("templates", "pull")
    text = PATH.read_text()
    found = json.loads(text)
    assert list(found) == ["id", "name", "quantity", "anchor", "fields"] or list(found)[:2] == ["id", "name"]
    assert found["id"] == people["id"]
    assert [field["id"] for field in found["fields"]] == [field["id"] for field in people["fields"]]
    assert not {"version", "created_at", "updated_at", "warnings", "project_id", "label"} & set(found)
    assert text == json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    before = PATH.stat().st_mtime_ns
    result = shell.good("templates", "pull", "--json").json
    assert [item["changed"] for item in result] == [False]
    assert PATH.stat().st_mtime_ns == before
    assert shell.good("templates", "get", "People").out == text
    assert shell.good("templates", "get", "People", "--json").json["version"] == 1


def test_a_file_keeps_its_name_when_its_template_is_renamed(shell, sdk, people):
    shell.good("templates", "pull")
    sdk().templates.update(people["id"], name="Folk")
    sdk().templates.create({**PEOPLE.to_dict(), "name": "People!"})
    shell.good("templates", "pull")
    names = sorted(path.name for path in Path("templates").glob("*.json"))
    assert len(names) == 2
    assert json.loads(PATH.read_text())["name"] == "Folk"


def test_plan_says_nothing_of_what_was_just_pulled(shell, people):
    shell.good("templates", "pull")
    ended = shell("templates", "plan")
    assert (ended.status, ended.out) == (0, "0 to create, 0 to update, 1 unchanged.\n")


def test_plan_shows_every_change_by_field_and_exits_with_2(shell, people):
    shell.good("templates", "pull")

    def change(it):
        it["quantity"] = 7
        it["fields"][1]["name"] = "given"
        it["fields"][2]["percent_blank"] = 5
        it["fields"][3]["options"]["fields"][0]["prefix"] = ">"
        it["fields"].reverse()
        it["fields"].append({"name": "age", "type": "number", "options": {"min": 1}})

    edited(change)
    ended = shell("templates", "plan")
    assert ended.status == 2
    for line in (
        "~ quantity: 5 -> 7",
        '~ field given.name: "first" -> "given"',
        "~ field email.percent_blank: 0 -> 5",
        '~ field address.town.prefix: "" -> ">"',
        "+ field age (number)",
        "> field id: place 1 -> 4",
    ):
        assert line in ended.out
    result = shell("templates", "plan", "--json")
    assert (result.status, result.json["update"]) == (2, 1)
    assert result.json["steps"][0]["changes"]["template"]["quantity"] == {"from": 5, "to": 7}


def test_apply_does_what_plan_said_and_columns_keep_their_values(shell, sdk, people):
    before = sdk().templates.generate(people["id"], count=4, seed="s")
    shell.good("templates", "pull")
    edited(lambda it: it["fields"][1].update(name="given"))
    edited(lambda it: it["fields"].insert(0, {"name": "new", "type": "E-Mail"}))
    assert shell("templates", "plan").status == 2
    shell.good("templates", "apply")
    assert shell("templates", "plan").status == 0
    after = sdk().templates.generate(people["id"], count=4, seed="s")
    assert [row["given"] for row in after] == [row["first"] for row in before]
    assert [row["email"] for row in after] == [row["email"] for row in before]
    assert json.loads(PATH.read_text())["fields"][0]["id"].startswith("fld_")
    differing = shell("templates", "diff", "People", "--exit-code")
    assert (differing.status, "+ field new (email)" in differing.out) == (2, True)


def test_a_type_by_another_name_is_no_change(shell, people):
    shell.good("templates", "pull")
    edited(lambda it: it["fields"][2].update(type="E-Mail"))
    edited(lambda it: it["fields"][1].update(type="First Name"))
    assert shell("templates", "plan").status == 0


def test_a_dry_run_checks_and_changes_nothing(shell, sdk, people):
    shell.good("templates", "pull")
    edited(lambda it: it.update(quantity=9))
    assert "~ quantity: 5 -> 9" in shell.good("templates", "apply", "--dry-run").out
    edited(lambda it: it["fields"][0].update(type="nmber"))
    refused = shell("templates", "apply", "--dry-run")
    assert (refused.status, "nmber" in refused.err) == (6, True)
    assert sdk().templates.get(people["id"])["version"] == 1


def test_changes_of_others_since_the_pull_are_not_overwritten(shell, sdk, people):
    shell.good("templates", "pull")
    sdk().templates.update(people["id"], description="theirs")
    edited(lambda it: it.update(quantity=9))
    refused = shell("templates", "apply")
    assert refused.status == 5
    assert refused.err.startswith("rowsmith: version_conflict: ")
    assert "people.json" in refused.err
    assert sdk().templates.get(people["id"])["version"] == 2
    assert "changed on the service" in shell("templates", "plan").out
    shell.good("templates", "apply", "--force")
    assert sdk().templates.get(people["id"])["quantity"] == 9
    edited(lambda it: it.update(quantity=10))
    shell.good("templates", "apply")


def test_a_change_between_reading_and_writing_is_a_clash_and_takes_the_others_back(
    shell, sdk, people, monkeypatch
):
    other = sdk().templates.create({**PEOPLE.to_dict(), "name": "Also"})
    shell.good("templates", "pull")
    for name in ("also", "people"):
        edited(lambda it: it.update(quantity=9), Path(f"templates/{name}.json"))
    Path("templates/new.json").write_text(json.dumps({**PEOPLE.to_dict(), "name": "New"}))
    os.rename("templates/people.json", "templates/zzz.json")
    from rowsmith.cli import planning

    real = planning.check

    def meanwhile(*given, **how):
        real(*given, **how)
        sdk().templates.update(people["id"], description="theirs")

    monkeypatch.setattr(planning, "check", meanwhile)
    text = Path("templates/new.json").read_text()
    refused = shell("templates", "apply", "--create")
    assert refused.status == 5
    assert "zzz.json: Another user has changed it in the meantime" in refused.err
    assert "No changes were made." in refused.err
    api = sdk()
    assert api.templates.get(other["id"])["quantity"] == 5
    assert sorted(item["name"] for item in api.templates.list()) == ["Also", "People"]
    assert api.templates.get(people["id"])["quantity"] == 5
    assert Path("templates/new.json").read_text() == text


def test_new_templates_are_created_on_request_and_their_ids_are_written_to_the_files(shell, sdk):
    Path("templates").mkdir()
    PATH.write_text(json.dumps(PEOPLE.to_dict()))
    refused = shell("templates", "apply")
    assert (refused.status, "--create" in refused.err) == (3, True)
    assert sdk().templates.list().total == 0
    assert "+ People (people.json): new, 4 fields" in shell("templates", "plan").out
    shell.good("templates", "apply", "--create")
    result = sdk().templates.list().first()
    found = json.loads(PATH.read_text())
    assert found["id"] == result["id"]
    assert [field["id"] for field in found["fields"]] == [field["id"] for field in result["fields"]]
    assert "0 created, 0 updated, 1 unchanged" in shell.good("templates", "apply", "--create").out


def test_a_file_of_another_project_goes_by_its_name_and_keeps_its_values(shell, sdk, cast, people):
    shell.good("templates", "pull")
    side = ("--project", cast.side)
    shell.good("templates", "apply", "--create", "--no-write", *side)
    assert shell("templates", "plan", *side).status == 0
    shell.good("templates", "apply", "--create", "--no-write", *side)
    there = sdk(project=cast.side).templates.list().all()
    assert len(there) == 1
    here = sdk().templates.generate(people["id"], count=3, seed="s")
    assert sdk(project=cast.side).templates.generate(there[0]["id"], count=3, seed="s") == here
    assert json.loads(PATH.read_text())["id"] == people["id"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "is not valid JSON"),
        ("[]", "are required"),
        ('{"name": "x", "fields": [], "nme": 1}', "unknown keys: nme"),
    ],
)
def test_a_file_that_is_no_template_is_named(shell, text, expected):
    Path("templates").mkdir()
    PATH.write_text(text)
    ended = shell("templates", "plan")
    assert ended.status == 6
    assert expected in ended.err
    assert "people.json" in ended.err


def test_several_templates_with_one_name_are_distinguished_by_id(shell, sdk, people):
    again = sdk().templates.create(PEOPLE)
    ended = shell("generate", "People")
    assert ended.status == 5
    assert people["id"] in ended.err
    assert again["id"] in ended.err
    shell.good("templates", "pull")
    assert shell("templates", "plan").status == 0
    assert len(list(Path("templates").glob("*.json"))) == 2


def test_the_note_of_what_was_pulled_is_left_out_by_git(shell, people):
    shell.good("templates", "pull")
    assert Path("templates/.rowsmith/.gitignore").read_text() == "*\n"


def test_a_deleted_template_cannot_be_read(shell, sdk, people):
    sdk().templates.delete(people["id"])
    with pytest.raises(error.NotFound):
        sdk().templates.get(people["id"])
    assert shell("templates", "get", people["id"]).status == 3
