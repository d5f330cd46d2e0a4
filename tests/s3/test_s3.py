"""Workspace files on S3: as in a folder, and `unavailable` when the server is gone."""

from __future__ import annotations

import os

import pytest
from sqlalchemy import select

from jobs import exports
from tests.views.speak import make
from tests.views.uploading import URL, send
from webapp import limits, storage
from webapp.access import actors
from webapp.errors import ApiError
from webapp.exports.models import ExportPart
from webapp.extensions import db
from webapp.files import services as files
from webapp.scenarios.models import Run, Scenario
from webapp.scenarios.services import run_completion
from webapp.storage import MissingError


@pytest.fixture
def store(app):
    return storage.get_storage(app)


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


@pytest.mark.parametrize("size", [0, 1, limits.STORAGE_PART_BYTES, 2 * limits.STORAGE_PART_BYTES + 1])
def test_stored_content_is_read_listed_and_deleted(store, size):
    content = os.urandom(size)
    pieces = [content[at : at + 700_000] for at in range(0, size, 700_000)]
    assert store.put("a/b", iter(pieces)) == size
    assert b"".join(store.get("a/b")) == content
    assert [(item.key, item.size) for item in store.listing("a")] == [("a/b", size)]
    store.delete("a/b")
    store.delete("a/b")
    with pytest.raises(MissingError):
        store.get("a/b")
    assert store.listing("a") == []


@pytest.mark.parametrize(("start", "end"), [(0, 3), (2, 5), (4, None), (9, 10), (0, None), (5, 5)])
def test_any_range_is_read(store, start, end):
    store.put("f", [b"0123456789"])
    assert b"".join(store.get("f", start, end)) == b"0123456789"[start:end]


def test_a_put_that_breaks_leaves_what_was_there(store):
    def broken():
        yield b"x" * (limits.STORAGE_PART_BYTES + 1)
        raise KeyError("the reason")

    store.put("f", [b"old"])
    with pytest.raises(KeyError, match="the reason"):
        store.put("f", broken())
    assert b"".join(store.get("f")) == b"old"
    assert store.is_usable()


def test_a_file_is_uploaded_replaced_read_by_range_and_deleted(edith, store):
    content = os.urandom(20 * limits.MB)
    file = send(edith, "in/a.bin", content)
    assert file.status_code == 201, file.text
    found = edith.get(f"{URL}/in/a.bin", headers={"Range": "bytes=9000000-9000009"})
    assert (found.status_code, found.data) == (206, content[9_000_000:9_000_010])
    assert edith.get(f"{URL}/in/a.bin").data == content
    assert send(edith, "in/a.bin", b"new").json["id"] == file.json["id"]
    assert edith.get(f"{URL}/in/a.bin").data == b"new"
    assert len(store.listing("files")) == 1
    gone = edith.delete(f"{URL}/in/a.bin").json["id"]
    assert edith.post(f"{URL}/{gone}/restore").status_code == 200
    assert edith.get(f"{URL}/{gone}").data == b"new"


def test_a_run_gets_its_files_and_leaves_its_outputs(app, cast, edith, tmp_path):
    send(edith, "in/a.csv", b"a\n1\n")
    where = {"workspace_id": cast.acme, "project_id": cast.main, "team_id": cast.blue}
    with app.app_context():
        scenario = Scenario(name="s", version=1, timeout_seconds=60, network="none", **where)
        db.session.add(scenario)
        db.session.flush()
        run = Run(scenario_id=scenario.id, scenario_version=1, trigger="api", status="running", **where)
        db.session.add(run)
        db.session.commit()
        files.sync(cast.acme, cast.main, tmp_path / "uploads")
        assert (tmp_path / "uploads" / "in" / "a.csv").read_bytes() == b"a\n1\n"
        (tmp_path / "outputs").mkdir()
        (tmp_path / "outputs" / "result").write_bytes(b"z" * (limits.STORAGE_PART_BYTES + 5))
        done = run_completion.store_outputs(run, tmp_path / "outputs")
        db.session.remove()
    assert (done.rejected, [file["size"] for file in done.files]) == ([], [limits.STORAGE_PART_BYTES + 5])
    assert len(edith.get(f"{URL}/{done.files[0]['file_id']}").data) == limits.STORAGE_PART_BYTES + 5


def test_an_export_in_parts_comes_as_one_file_and_part_by_part(app, edith, store, monkeypatch):
    monkeypatch.setattr(limits, "PARTS_FROM_ROWS", 1_000)
    path = f"/templates/{make(edith)['id']}"
    ask = {"count": 35_000, "seed": "s", "format": "json"}
    export = edith.post(f"{path}/exports", json={**ask, "part_rows": 10_000}).json
    with app.app_context():
        found = select(ExportPart.id).where(ExportPart.export_id == export["id"])
        for part_id in db.session.scalars(found.order_by(ExportPart.number.desc())).all():
            db.session.remove()
            exports.run_part(part_id)
        db.session.remove()
    whole = edith.post(f"{path}/generate", json=ask).data
    assert edith.get(f"/exports/{export['id']}/download").data == whole
    manifest = edith.get(f"/exports/{export['id']}/manifest").json
    files = [edith.get(f"/exports/{export['id']}/parts/{part['number']}").data for part in manifest["parts"]]
    assert b"".join(files) == whole
    edge = len(files[0])
    over = edith.get(f"/exports/{export['id']}/download", headers={"Range": f"bytes={edge - 9}-{edge + 9}"})
    assert over.data == whole[edge - 9 : edge + 10]
    assert [stored.size for stored in store.listing("exports")] == [len(file) for file in files]
    store.delete(store.listing("exports")[0].key)
    assert edith.get(f"/exports/{export['id']}/parts/1").status_code == 404


def test_a_server_that_is_gone_is_unavailable_and_changes_nothing(app, cast, edith, server, tmp_path):
    send(edith, "a", b"old")
    server.stop()
    for answer in (send(edith, "a", b"new"), send(edith, "b", b"new"), edith.get(f"{URL}/a")):
        assert (answer.status_code, answer.json["error"]["code"]) == (503, "unavailable"), answer.text
        assert answer.json["error"]["details"]["reason"] == "storage"
        assert "127.0.0.1" not in answer.text
    with app.app_context():
        acme = actors.system_actor(cast.acme, cast.main, cast.blue)
        with pytest.raises(ApiError, match="storage is not responding"):
            files.sync(cast.acme, cast.main, tmp_path / "uploads")
        assert files.find(acme, "a").size == 3
        db.session.remove()
    listed = edith.get(URL).json["items"]
    assert [(item["name"], item["size"]) for item in listed] == [("a", 3)]
