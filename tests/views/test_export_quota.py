"""Export files of a workspace take no more than their quota: the oldest go, and what does not fit fails."""

from __future__ import annotations

import threading

import pytest
import sqlalchemy as sa

from jobs import exports
from webapp import limits, storage
from webapp.exports import export_files
from webapp.extensions import db, read_session
from webapp.files.models import StorageHold


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(limits, "EXPORT_FILES_BYTES", dict.fromkeys(limits.EXPORT_FILES_BYTES, 100_000))
    monkeypatch.setattr(limits, "EXPORT_HOLD_BYTES", 5_000)


def ordered(edith, path, count=600) -> str:
    return edith.post(f"{path}/exports", json={"count": count, "seed": "s", "format": "csv"}).json["id"]


def stored(app) -> int:
    return sum(item.size for item in storage.get_storage(app).listing("exports"))


def test_the_oldest_files_make_room_for_a_new_one(app, edith, path, work, small):
    outcome = []
    for _ in range(8):
        outcome.append(ordered(edith, path))
        work(outcome[-1])
        assert stored(app) <= 100_000
    result = [edith.get(f"/exports/{item}").json for item in outcome]
    assert {item["status"] for item in result} == {"completed"}
    assert 15_000 < result[-1]["bytes"] < 45_000
    answers = [edith.get(f"/exports/{item}/download") for item in outcome]
    assert [answer.status_code for answer in answers[-2:]] == [200, 200]
    assert answers[0].status_code == 404
    assert "needed the space" in answers[0].json["error"]["message"]


def test_a_file_that_fits_nowhere_fails_and_leaves_nothing(app, edith, path, work, small):
    export_id = ordered(edith, path, 20_000)
    work(export_id)
    result = edith.get(f"/exports/{export_id}").json
    assert (result["status"], result["error"]["code"]) == ("failed", "quota_exceeded")
    assert stored(app) == 0
    with app.app_context():
        assert db.session.scalar(sa.select(sa.func.count()).select_from(StorageHold)) == 0
        db.session.remove()


def test_exports_at_the_same_time_do_not_exceed_the_quota_together(app, edith, path, small, cast):
    ids = [ordered(edith, path) for _ in range(8)]
    most, done = [], threading.Event()

    def watch():
        while not done.wait(0.01):
            most.append(stored(app))

    def run(export_id):
        with app.app_context():
            exports.run(export_id)
            db.session.remove()

    threads = [threading.Thread(target=run, args=(item,)) for item in ids]
    watcher = threading.Thread(target=watch)
    watcher.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    watcher.join()
    with app.app_context(), read_session() as session:
        assert export_files.used_bytes(session, cast.acme) == stored(app) <= 100_000
    assert max(most) <= 100_000
    assert {edith.get(f"/exports/{item}").json["status"] for item in ids} <= {"completed", "failed"}
