"""Files of one team, and everything by which a member of another team could try to reach them."""

from __future__ import annotations

import io
import unicodedata

import pytest
import sqlalchemy as sa

from tests.views.uploading import URL, address, problem, send
from webapp.access import actors
from webapp.extensions import db
from webapp.files import services as files
from webapp.files.models import WorkspaceFile
from webapp.operations.purge import purge
from webapp.scenarios.models import Run
from webapp.scenarios.services import run_completion

SOURCE = {"name": "T", "fields": [{"name": "a", "type": "source_column"}], "source": {"file": "secret.csv"}}


@pytest.fixture
def theirs(tessa):
    return send(tessa, "secret.csv", b"a\nhidden-value\n").json


def test_another_teams_files_are_not_reached_by_any_route(rita, theirs):
    file_id = theirs["id"]
    calls = [
        rita.get(address("secret.csv")),
        rita.get(f"{URL}/{file_id}"),
        rita.delete(address("secret.csv")),
        rita.delete(f"{URL}/{file_id}"),
        rita.post(f"{URL}/{file_id}/restore"),
        rita.get(f"/used-by/{file_id}"),
        rita.post("/classify", json={"file": "secret.csv"}),
        rita.post("/classify", json={"file": file_id}),
        rita.post("/import", json={"file": "secret.csv"}),
        rita.post("/import", json={"file": file_id}),
        rita.get("/compat/workspace-files/by-key?key=secret.csv"),
        rita.get(f"/compat/workspace-files/by-key?key={file_id}"),
    ]
    assert [call.status_code for call in calls] == [404] * len(calls)
    assert rita.get(URL).json["total"] == 0
    assert rita.get(f"{URL}?q=secret").json["total"] == 0


@pytest.mark.parametrize("by", ["name", "id"])
def test_another_teams_file_is_no_source_of_rows(rita, theirs, by):
    source = {"file": "secret.csv" if by == "name" else theirs["id"]}
    created = rita.post("/templates", json={**SOURCE, "source": source})
    assert created.status_code == 201, created.text
    for path in ("preview", "generate", "exports"):
        answer = rita.post(
            f"/templates/{created.json['id']}/{path}", json={"count": 1} if path != "preview" else {}
        )
        assert problem(answer) == (422, "validation_error"), path
        assert "hidden-value" not in answer.text
    column = {"name": "x", "type": "dataset_column", "options": {"file": source["file"], "column": "a"}}
    answer = rita.post("/generate", json={"fields": [column], "count": 1})
    assert problem(answer) == (422, "validation_error")
    assert "hidden-value" not in answer.text


def test_a_template_reads_the_file_of_its_own_project(api, cast, tessa, theirs):
    created = tessa.post("/templates", json=SOURCE).json["id"]
    edith = api(cast.edith, **{"X-Project-Id": cast.red_project})
    send(edith, "secret.csv", b"a\n7\n")
    answer = edith.post(f"/templates/{created}/generate", json={"count": 1})
    assert answer.json == [{"a": "hidden-value"}]


def test_two_projects_have_files_of_one_name(rita, tessa, theirs):
    assert send(rita, "secret.csv", b"mine").status_code == 201
    assert rita.get(address("secret.csv")).data == b"mine"
    assert tessa.get(address("secret.csv")).data == b"a\nhidden-value\n"
    rita.delete(address("secret.csv"))
    assert tessa.get(address("secret.csv")).status_code == 200


def test_shared_files_are_read_by_all_and_changed_by_editors_of_the_workspace(api, cast, rita, tessa):
    edith = api(cast.edith)
    shared = send(edith, "shared.csv", more={"shared": "true"}).json
    assert (shared["project_id"], shared["team_id"]) == (None, None)
    for item in (rita, tessa, api(cast.victor)):
        assert item.get(address("shared.csv")).status_code == 200
        assert problem(send(item, "shared.csv", b"x")) == (403, "forbidden")
        assert problem(item.delete(address("shared.csv"))) == (403, "forbidden")
        assert problem(send(item, "other.csv", b"x", more={"shared": "true"})) == (403, "forbidden")
    body = {"objects": [shared["id"]]}
    assert problem(rita.post(f"/projects/{cast.red_project}/move", json=body)) == (403, "forbidden")
    edith.delete(address("shared.csv"))
    assert problem(rita.post(f"{URL}/{shared['id']}/restore")) == (403, "forbidden")
    trashed = rita.get("/trash?type=file").json["items"]
    assert [item["restorable"] for item in trashed] == [False]
    assert edith.post(f"{URL}/{shared['id']}/restore").status_code == 200
    assert send(edith, "shared.csv", b"new").json["project_id"] is None, "a replaced file stays shared"


def test_a_shared_file_and_a_projects_file_never_have_one_name(api, cast, tessa, theirs):
    edith = api(cast.edith, **{"X-Project-Id": cast.red_project})
    clash = send(edith, "secret.csv", more={"shared": "true"})
    assert problem(clash) == (409, "conflict")
    assert problem(send(edith, "secret.csv/inner", more={"shared": "true"})) == (409, "conflict")
    shared = send(edith, "one.csv", more={"shared": "true"}).json["id"]
    edith.delete(f"{URL}/{shared}")
    send(tessa, "one.csv", b"theirs")
    assert problem(edith.post(f"{URL}/{shared}/restore")) == (409, "conflict")


def test_a_trashed_file_is_not_restored_over_another_one(api, cast, tessa, theirs):
    tessa.delete(address("secret.csv"))
    fresh = send(tessa, "secret.csv", b"new").json["id"]
    assert problem(tessa.post(f"{URL}/{theirs['id']}/restore")) == (409, "conflict")
    tessa.delete(f"{URL}/{fresh}")
    send(tessa, "secret.csv/inner", b"x")
    assert problem(tessa.post(f"{URL}/{theirs['id']}/restore")) == (409, "conflict")


def test_a_file_moves_between_projects_with_its_templates(api, cast, tessa, theirs):
    edith = api(cast.edith)
    template = tessa.post("/templates", json=SOURCE).json["id"]
    into = f"/projects/{cast.side}/move"
    left = edith.post(into, json={"objects": [theirs["id"]]})
    assert problem(left) == (409, "in_use")
    assert [item["id"] for item in left.json["error"]["details"]["related"]] == [template]
    moved = edith.post(into, json={"objects": [theirs["id"]], "related": "take"})
    assert {(item["type"], item["id"]) for item in moved.json["items"]} == {
        ("file", theirs["id"]),
        ("template", template),
    }
    assert edith.get(address("secret.csv")).status_code == 404
    in_side = api(cast.edith, **{"X-Project-Id": cast.side})
    assert in_side.get(address("secret.csv")).status_code == 200
    assert in_side.post(f"/templates/{template}/generate", json={"count": 1}).json == [{"a": "hidden-value"}]


def test_a_file_does_not_move_onto_another_one(api, cast, theirs):
    send(api(cast.edith, **{"X-Project-Id": cast.side}), "secret.csv", b"other")
    answer = api(cast.edith).post(f"/projects/{cast.side}/move", json={"objects": [theirs["id"]]})
    assert problem(answer) == (409, "conflict")


def test_a_file_moves_only_where_both_projects_are_the_callers(cast, rita, tessa, theirs):
    body = {"objects": [theirs["id"]]}
    assert problem(rita.post(f"/projects/{cast.red_project}/move", json=body)) == (404, "not_found")
    assert problem(tessa.post(f"/projects/{cast.red_project}/move", json=body)) == (404, "not_found")


@pytest.mark.parametrize(
    "name",
    [
        "Secret.csv",
        "SECRET.CSV",
        "secret.csv ",
        "./secret.csv",
        "x/../secret.csv",
        "secret.csv/",
        "%2e/secret.csv",
    ],
)
def test_spellings_of_a_name_reach_no_other_file(rita, theirs, name):
    assert rita.get(address(name)).status_code in (404, 308)


def test_equal_names_in_unicode_are_one_name(tessa):
    composed, apart = "é.csv", unicodedata.normalize("NFD", "é.csv")
    assert send(tessa, composed, b"1").status_code == 201
    assert send(tessa, apart, b"2").status_code == 201
    assert tessa.get(address(composed)).data == b"2"
    assert tessa.get(URL).json["total"] == 1


def test_a_run_sees_the_files_of_its_project_and_shared_ones(app, api, cast, tessa, theirs, tmp_path):
    send(api(cast.edith, **{"X-Project-Id": cast.red_project}), "red.csv", b"red")
    send(api(cast.edith), "all.csv", b"all", more={"shared": "true"})
    with app.app_context():
        files.sync(cast.acme, cast.main, tmp_path / "blue")
        files.sync(cast.acme, cast.red_project, tmp_path / "red")
    assert sorted(path.name for path in (tmp_path / "blue").iterdir()) == ["all.csv", "secret.csv"]
    assert sorted(path.name for path in (tmp_path / "red").iterdir()) == ["all.csv", "red.csv"]


def test_outputs_of_a_run_belong_to_its_project(app, api, cast, rita, tessa, tmp_path):
    scenario = tessa.post("/scenarios", json={"name": "S", "code": "print(1)\n"}).json["id"]
    run_id = tessa.post(f"/scenarios/{scenario}/run", json={}).json["run_id"]
    (tmp_path / "outputs").mkdir()
    (tmp_path / "outputs" / "rows.csv").write_bytes(b"1")
    with app.app_context():
        stored = run_completion.store_outputs(db.session.get_one(Run, run_id), tmp_path / "outputs")
        db.session.remove()
    name = stored.files[0]["name"]
    assert tessa.get(address(name)).data == b"1"
    assert rita.get(address(name)).status_code == 404
    assert rita.get(f"{URL}/{stored.files[0]['file_id']}").status_code == 404


def test_sparse_files_and_hard_links_count_by_what_is_stored(app, api, cast, tessa, tmp_path, monkeypatch):
    """Four sparse files of 500 MB each were stored as 2 GB, although a run may leave 512 MB."""
    from webapp import limits

    monkeypatch.setattr(limits, "RUN_OUTPUTS_BYTES", 10_000)
    scenario = tessa.post("/scenarios", json={"name": "S", "code": "print(1)\n"}).json["id"]
    run_id = tessa.post(f"/scenarios/{scenario}/run", json={}).json["run_id"]
    folder = tmp_path / "outputs"
    folder.mkdir()
    for number in range(4):
        with (folder / f"sparse{number}").open("wb") as file:
            file.truncate(4_000)
    (folder / "twice").hardlink_to(folder / "sparse0")
    (folder / "link").symlink_to("/etc/passwd")
    with app.app_context():
        stored = run_completion.store_outputs(db.session.get_one(Run, run_id), folder)
        db.session.remove()
    assert stored.bytes == sum(item["size"] for item in stored.files) == 8_000
    assert [name for name, _ in stored.rejected] == ["link", "sparse2", "sparse3", "twice"]


def test_files_from_before_projects_stay_visible_to_everybody(app, api, cast, rita, tessa):
    with app.app_context():
        files.upload(actors.system_actor(cast.acme), "old.csv", io.BytesIO(b"1"))
        db.session.remove()
    for item in (rita, tessa, api(cast.edith), api(cast.victor)):
        assert item.get(address("old.csv")).data == b"1"


def test_files_of_a_deleted_project_go_with_it(app, api, cast, rita):
    from webapp import clock, storage
    from webapp.access.models import Project

    edith = api(cast.edith, **{"X-Project-Id": cast.side})
    key = send(edith, "a").json["id"]
    api(cast.adam).delete(f"/projects/{cast.side}")
    with app.app_context():
        project = db.session.get_one(Project, cast.side)
        project.deleted_at = clock.now() - __import__("datetime").timedelta(days=31)
        db.session.commit()
        purge(clock.now())
        assert db.session.scalar(sa.select(WorkspaceFile).where(WorkspaceFile.id == key)) is None
        assert storage.get_storage(app).listing("files") == []
        db.session.remove()


def test_purged_files_of_another_team_are_not_named(api, cast, rita, tessa, theirs, monkeypatch):
    from webapp import limits

    tessa.delete(address("secret.csv"))
    monkeypatch.setattr(limits, "MAX_WORKSPACE_FILES_BYTES", 10)
    result = send(rita, "big", b"x" * 10)
    assert (result.status_code, result.json["purged"]) == (201, [])
    assert tessa.post(f"{URL}/{theirs['id']}/restore").status_code == 404


def test_compat_files_are_those_of_the_scenarios_project(api, cast, rita, tessa, theirs):
    scenario = rita.post("/scenarios", json={"name": "S", "code": "print(1)\n"}).json["id"]
    assert rita.get(f"/compat/scenarios/{scenario}/files").json["files"] == []
    assert rita.get(f"/compat/scenarios/{scenario}/files/{theirs['id']}").status_code == 404
    assert rita.delete(f"/compat/scenarios/{scenario}/files/{theirs['id']}").status_code == 404
