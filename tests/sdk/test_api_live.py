"""`rowsmith.Api` against the application itself."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import pytest
import rowsmith
from flask import Flask
from rowsmith import Template, error
from rowsmith.fields import FirstNameField, NumberField, RowNumberField

from jobs import exports
from jobs.pushes import push as push_job
from tests.views.targets import CUSTOMERS, sqlite_target
from webapp.extensions import db

PEOPLE = Template(
    "People",
    quantity=5,
    fields=[
        RowNumberField("id"),
        FirstNameField("first"),
        NumberField("age", min=18, max=99, percent_blank=10),
    ],
)


@pytest.fixture
def work(app: Flask) -> Callable[[str], None]:
    """Carry out an export or a push as a worker would."""

    def do(work_id: str) -> None:
        with app.app_context():
            (exports if work_id.startswith("exp_") else push_job).run(work_id)
            db.session.remove()

    return do


def test_a_template_goes_through_its_whole_life(sdk):
    api = sdk()
    created = api.templates.create(PEOPLE)
    again = api.templates.get(created["id"])
    changed = api.templates.update(created["id"], name="Folk", if_match=again)
    assert (again["version"], changed["version"]) == (1, 2)
    assert api.templates.get(created["id"], 1)["name"] == "People"
    assert [version["version"] for version in api.templates.versions(created["id"])] == [2, 1]
    assert api.templates.diff(created["id"], 1)["to"] == 2
    assert api.templates.restore_version(created["id"], 1)["name"] == "People"
    with pytest.raises(error.VersionConflict):
        api.templates.delete(created["id"], if_match=again)
    api.templates.delete(created["id"])
    with pytest.raises(error.NotFound) as gone:
        api.templates.get(created["id"])
    assert gone.value.code == "not_found"
    assert gone.value.request_id
    assert api.templates.restore(created["id"])["id"] == created["id"]


def test_a_list_returns_every_object_with_any_page_size(sdk, monkeypatch):
    monkeypatch.setattr("rowsmith.pages.PAGE", 10)
    api = sdk()
    names = [f"T{i:02}" for i in range(25)]
    for name in names:
        api.templates.create(Template(name, fields=[RowNumberField("id")]))
    pages = api.templates.list()
    assert sorted(page["name"] for page in pages) == names
    assert pages.total == 25
    assert [item["name"] for item in api.templates.list(q="T24")] == ["T24"]


def test_rows_are_the_same_as_list_stream_file_and_draft(sdk, tmp_path):
    api = sdk()
    created = api.templates.create(PEOPLE)
    as_list = api.templates.generate(created["id"], count=300, seed="s")
    stream = api.templates.rows(created["id"], count=300, seed="s")
    assert list(stream) == as_list
    assert (stream.seed, stream.version) == ("s", "1")
    path = api.templates.save(created["id"], tmp_path / "people.json", count=300, seed="s")
    assert json.loads(path.read_text()) == as_list
    assert (
        b"".join(api.templates.stream(created["id"], count=300, seed="s", format="json")) == path.read_bytes()
    )
    assert api.templates.preview(created["id"], seed="s")["rows"] == as_list[:3]
    draft = {**PEOPLE.to_dict(), "fields": created["fields"], "anchor": created["anchor"]}
    assert api.templates.generate(draft, count=300, seed="s") == as_list
    assert not list(tmp_path.glob(".people*"))


def test_the_format_is_the_end_of_the_name(sdk, tmp_path):
    api = sdk()
    path = api.templates.save(PEOPLE, tmp_path / "people.csv", seed="s")
    assert path.read_text().startswith("id,first,age")
    with pytest.raises(ValueError, match="does not indicate a format"):
        api.templates.save(PEOPLE, tmp_path / "people.doc")


def test_rows_come_as_an_arrow_table(sdk):
    pytest.importorskip("pyarrow")
    table = sdk().templates.arrow(PEOPLE, count=50, seed="s")
    assert (table.num_rows, table.column_names) == (50, ["id", "first", "age"])


def test_all_errors_are_returned_together_with_their_paths(sdk):
    bad = {
        "name": "x",
        "fields": [{"name": "a", "type": "nmber"}, {"name": "b", "type": "number", "options": {"min": "x"}}],
    }
    with pytest.raises(error.ValidationError) as found:
        sdk().templates.create(bad)
    assert {field["path"] for field in found.value.fields} == {"fields[0].type", "fields[1].options.min"}
    assert "fields[0].type" in str(found.value)
    assert "Did you mean" in str(found.value)


def test_a_creating_call_that_is_sent_twice_under_one_key_acts_once(sdk):
    api = sdk()
    first = api.templates.create(PEOPLE, idempotency_key="once")
    second = api.templates.create(PEOPLE, idempotency_key="once")
    assert first["id"] == second["id"]
    assert second.replayed
    with pytest.raises(error.ServiceError) as found:
        api.templates.create({**PEOPLE.to_dict(), "name": "other"}, idempotency_key="once")
    assert found.value.code == "idempotency_mismatch"


def test_an_export_is_followed_to_its_end_and_downloaded_whole(sdk, work, tmp_path):
    api = sdk()
    created = api.templates.export(api.templates.create(PEOPLE)["id"], count=40, format="csv", seed="s")
    work(created["id"])
    done = api.exports.wait(created["id"], timeout=30)
    assert (done["status"], done["rows_done"]) == ("completed", 40)
    path = api.exports.download(created["id"], tmp_path / "out.csv")
    assert len(path.read_text().splitlines()) == 41
    assert api.exports.stream(created["id"]).read() == path.read_bytes()
    with pytest.raises(error.Conflict) as found:
        api.exports.cancel(created["id"])
    assert found.value.code == "run_finished"
    assert [item["id"] for item in api.exports.list(status="completed")] == [created["id"]]


def test_a_push_is_tried_dry_sent_followed_and_undone(sdk, app, cast, work):
    api, shop = sdk(), sqlite_target(app, cast)
    template = api.templates.create({"name": "customers", "fields": CUSTOMERS})
    how = {"connection_id": shop.connection_id, "target": "customers", "count": 12}
    plan = api.templates.push_plan(template["id"], **how)
    assert plan["total"] == 12
    assert len(api.templates.dry_run(template["id"], **how)["statements"]) == 3
    push = api.templates.push(template["id"], **how)
    work(push["id"])
    done = api.pushes.wait(push["id"], timeout=30)
    assert (done["status"], done["counts"]["delivered"], shop.count("customers")) == ("completed", 12, 12)
    follower = api.pushes.follow_log(push["id"], timeout=30)
    lines = list(follower)
    assert [line.number for line in lines] == list(range(1, len(lines) + 1))
    assert follower.end["status"] == "completed"
    whole = api.pushes.log(push["id"]).splitlines()
    assert all(result.endswith(line.text) for result, line in zip(whole, lines, strict=True))
    later = api.pushes.follow_log(push["id"], after=lines[0].number, timeout=30)
    assert list(later) == lines[1:]
    assert [row["state"] for row in api.pushes.rows(push["id"], state="delivered")] == ["delivered"] * 12
    undone = api.pushes.undo(push["id"])
    work(undone["id"])
    assert api.pushes.wait(undone["id"], timeout=30)["status"] == "completed"
    assert shop.count("customers") == 0


def test_connections_endpoints_and_secrets_are_kept_and_listed(sdk, cast):
    api = sdk(cast.olivia)
    created = api.connections.create(name="Lite", type="sqlite", settings={"file": "a.db"})
    assert api.connections.verify(created["id"])["status"] == "verified"
    assert [item["id"] for item in api.connections.list(type="sqlite")] == [created["id"]]
    assert api.connections.metadata(created["id"])["entities"] == []
    endpoint = api.endpoints.create(name="Hook", method="POST", url="https://example.org/hook")
    assert api.endpoints.update(endpoint["id"], name="Hooked")["name"] == "Hooked"
    assert api.secrets.put("token", "s3cret")["name"] == "token"
    assert [item["name"] for item in api.secrets.list()] == ["token"]
    assert api.secrets.delete("token")["name"] == "token"


def test_the_workspace_shows_the_current_user_and_recent_activity(sdk, cast):
    api = sdk(cast.olivia)
    api.templates.create(PEOPLE)
    assert api.workspace.me()["email"] == cast.olivia.email
    assert list(api.workspace.sessions()) == []
    assert api.workspace.end_sessions() == {"ended": 0}
    assert api.workspace.usage()["plan"] == "enterprise"
    assert {item["name"] for item in api.teams.list()} == {"Blue", "Red"}
    assert "template.create" in {item["action"] for item in api.workspace.audit()}
    assert any(item["action"] == "template.create" for item in api.workspace.audit_stream())
    key = api.api_keys.create(name="CI", scopes=["read"])
    with pytest.raises(error.Forbidden) as found:
        rowsmith.Api(key["key"], str(api._caller.address)).templates.create(PEOPLE)
    assert found.value.code == "forbidden"
    assert api.api_keys.revoke(key["id"])["revoked_at"]
    assert api.service.live()["status"]
    assert api.fields.list(q="e-mail").first()["name"] == "email"


def test_another_project_of_the_workspace_is_named_at_the_start(sdk, cast):
    here, there = sdk(), sdk(project=cast.side)
    created = there.templates.create(PEOPLE)
    assert created["project_id"] == cast.side
    assert here.templates.list().all() == []


def test_a_file_goes_up_in_pieces_and_comes_down_whole(sdk, tmp_path):
    api = sdk()
    path = tmp_path / "inputs.bin"
    path.write_bytes(bytes(range(256)) * 1024)
    result = api.files.upload(path, "inputs/ü b.bin")
    assert (result["name"], result["size"]) == ("inputs/ü b.bin", path.stat().st_size)
    assert api.files.download("inputs/ü b.bin", tmp_path / "back.bin").read_bytes() == path.read_bytes()
    assert api.files.read(result["id"]) == path.read_bytes()
    with pytest.raises(error.VersionConflict):
        api.files.upload(b"x", "inputs/ü b.bin", only_new=True)
    with path.open("rb") as file:
        file.seek(10)
        assert api.files.upload(file)["size"] == path.stat().st_size - 10
    assert api.files.upload(Unseekable(b"y" * 100_000), "piped")["size"] == 100_000
    assert {item["name"] for item in api.files.list()} == {"inputs/ü b.bin", "inputs.bin", "piped"}
    api.files.delete("piped")
    with pytest.raises(error.NotFound):
        api.files.read("piped")


class Unseekable(io.BytesIO):
    """A pipe: it can be read once."""

    def seekable(self) -> bool:
        return False

    def seek(self, *_: object) -> int:
        raise OSError("a pipe")


def test_a_scenario_is_kept_in_versions_and_its_runs_can_be_cancelled(sdk):
    api = sdk()
    created = api.scenarios.create(name="S", code="print('one')")
    assert api.scenarios.replace(created["id"], "print('two')")["version"] == 2
    assert api.scenarios.get(created["id"], 1)["code"] == "print('one')"
    run = api.runs.start(created["id"], {"COUNT": "3"})
    assert (run["status"], run["params"]) == ("queued", {"COUNT": "3"})
    assert [item["id"] for item in api.runs.list(created["id"])] == [run["id"]]
    assert [item["id"] for item in api.runs.list()] == [run["id"]]
    api.runs.cancel(created["id"], run["id"])
    follower = api.runs.follow_log(created["id"], run["id"], timeout=30)
    list(follower)
    assert follower.end["status"] == "cancelled"
    assert api.runs.wait(created["id"], run["id"], timeout=30)["status"] == "cancelled"
    with pytest.raises(error.Conflict) as found:
        api.runs.cancel(created["id"], run["id"])
    assert found.value.code == "run_finished"


def test_waiting_ends_after_the_time_given(sdk):
    api = sdk()
    created = api.scenarios.create(name="S", code="print('one')")
    with pytest.raises(error.Timeout):
        api.runs.run(created["id"], timeout=1)
