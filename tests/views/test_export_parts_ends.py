"""How exports in parts end: cancelled, failed, made again, taken over by another worker, removed."""

from __future__ import annotations

import pytest

from jobs import exports, sweeper
from jobs.lease import NotAvailable
from tests.views.speak import in_parts, refused, rows_used
from webapp import clock, limits, storage
from webapp.exports import services as exports_services
from webapp.exports.models import Export, ExportPart
from webapp.extensions import redis_client
from webapp.operations import purge
from webapp.work import jobs_queue

pytestmark = pytest.mark.usefixtures("small_parts")


def test_a_cancel_ends_what_waits_and_gives_back_once_what_was_not_made(edith, path, parts_of, do, app, row):
    export = in_parts(edith, path)
    first, second, *rest = parts_of(export["id"])
    do(first)
    row(ExportPart, second, status="running", lease_owner="w:1", lease_until=clock.now(), rows_done=77)
    request = edith.delete(f"/exports/{export['id']}").json
    assert (request["status"], request["rows_done"]) == ("running", 10_077)
    assert request["cancel_requested_at"]
    assert [row(ExportPart, part).status for part in rest] == ["cancelled"] * 3
    assert row(ExportPart, second).cancel_requested_at
    with app.app_context(), pytest.raises(NotAvailable):
        exports.run_part(rest[0])
    with app.app_context():
        sweeper.sweep(redis_client(), clock.now())
        sweeper.sweep(redis_client(), clock.now())
    ended = edith.get(f"/exports/{export['id']}").json
    assert (ended["status"], ended["rows_done"], ended["parts_done"]) == ("cancelled", 10_000, 1)
    assert rows_used(edith) == 10_000
    assert edith.get(f"/exports/{export['id']}/parts/1").status_code == 200
    refused(edith.delete(f"/exports/{export['id']}"), 409, "run_finished")


def test_a_cancel_before_a_worker_starts_takes_effect_immediately(edith, path, parts_of, row):
    export = in_parts(edith, path)
    assert edith.delete(f"/exports/{export['id']}").json["status"] == "cancelled"
    assert {row(ExportPart, part).status for part in parts_of(export["id"])} == {"cancelled"}
    assert rows_used(edith) == 0


def test_a_retry_creates_only_the_failed_part_again(edith, path, parts_of, do, app, row, monkeypatch):
    whole = edith.post(f"{path}/generate", json={"count": 45_000, "seed": "s", "format": "csv"}).data
    used = rows_used(edith)
    export = in_parts(edith, path)
    first, second, *rest = parts_of(export["id"])
    row(ExportPart, second, status="failed", error={"code": "worker_lost", "message": "Lost.", "details": {}})
    do(first, *rest)
    failed = edith.get(f"/exports/{export['id']}").json
    assert (failed["status"], failed["rows_done"], failed["parts_done"]) == ("failed", 35_000, 4)
    assert failed["error"]["code"] == "worker_lost"
    assert failed["error"]["details"]["parts"] == [2]
    assert rows_used(edith) == used + 35_000
    answer = edith.post(f"/exports/{export['id']}/retry")
    assert answer.status_code == 201, answer.json
    again = answer.json
    assert answer.headers["Location"] == f"/exports/{again['id']}"
    assert (again["status"], again["of_id"], again["parts_done"], again["rows_done"]) == (
        "queued",
        export["id"],
        4,
        35_000,
    )
    assert rows_used(edith) == used + 45_000
    fresh = parts_of(again["id"])
    with app.app_context():
        assert fresh[1] in jobs_queue.queued_ids(redis_client(), "part")
        for part in (fresh[0], *fresh[2:]):
            with pytest.raises(NotAvailable):
                exports.run_part(part)
    do(fresh[1])
    assert edith.get(f"/exports/{again['id']}").json["status"] == "completed"
    assert edith.get(f"/exports/{again['id']}/download").data == whole
    assert edith.get(f"/exports/{export['id']}").json["status"] == "failed"
    refused(edith.post(f"/exports/{again['id']}/retry"), 409, "conflict")


def test_running_and_single_file_exports_cannot_be_retried(edith, path, work):
    export = in_parts(edith, path)
    refused(edith.post(f"/exports/{export['id']}/retry"), 409, "conflict")
    single = in_parts(edith, path, count=10)
    edith.delete(f"/exports/{single['id']}")
    refused(edith.post(f"/exports/{single['id']}/retry"), 409, "conflict")


def test_an_export_whose_last_worker_died_before_telling_it_ends_all_the_same(
    edith, path, parts_of, do, app, row
):
    export = in_parts(edith, path)
    do(*parts_of(export["id"])[:4])
    row(ExportPart, parts_of(export["id"])[4], status="failed", finished_at=clock.now())
    with app.app_context():
        assert len(exports_services.stalled_parts()) == 1
        sweeper.sweep(redis_client(), clock.now())
        assert exports_services.stalled_parts() == []
    ended = edith.get(f"/exports/{export['id']}").json
    assert (ended["status"], ended["error"]["code"]) == ("failed", "internal_error")
    assert rows_used(edith) == 40_000


def test_a_purge_leaves_files_that_a_retry_has_taken_over(edith, path, parts_of, do, app, row):
    export = in_parts(edith, path)
    first, *rest = parts_of(export["id"])
    row(ExportPart, first, status="failed")
    do(*rest)
    again = edith.post(f"/exports/{export['id']}/retry").json
    do(parts_of(again["id"])[0])
    whole = edith.get(f"/exports/{again['id']}/download").data
    old = clock.now().replace(year=2020)
    row(Export, export["id"], deleted_at=old)
    with app.app_context():
        purge.purge(clock.now())
        store = storage.get_storage(app)
        assert len(store.listing("exports")) == 5
    assert edith.get(f"/exports/{again['id']}/download").data == whole
    row(Export, again["id"], deleted_at=old)
    with app.app_context():
        purge.purge(clock.now())
        assert store.listing("exports") == []


def test_a_worker_that_wakes_up_too_late_changes_nothing(edith, path, parts_of, do, app, row, monkeypatch):
    export = in_parts(edith, path, count=15_000)
    first, second = parts_of(export["id"])
    do(second)
    real = storage.Storage.put

    def frozen(self, key, chunks):
        """While this worker's file was on its way, another one took the part up and made it."""
        monkeypatch.setattr(storage.Storage, "put", real)
        size = real(self, key, chunks)
        row(ExportPart, first, lease_until=clock.now().replace(year=2020))
        exports.run_part(first)
        return size

    monkeypatch.setattr(storage.Storage, "put", frozen)
    do(first)
    with app.app_context():
        keys = [stored.key.rpartition("/")[2] for stored in storage.get_storage(app).listing("exports")]
    assert sorted(keys) == ["1.csv", "2.csv"], "the second attempt's file of part 1, and that of part 2"
    assert (row(ExportPart, first).attempt, row(ExportPart, first).status) == (2, "completed")
    assert edith.get(f"/exports/{export['id']}").json["status"] == "completed"
    whole = edith.post(f"{path}/generate", json={"count": 15_000, "seed": "s", "format": "csv"}).data
    assert edith.get(f"/exports/{export['id']}/download").data == whole


def test_a_part_whose_workers_are_lost_three_times_fails_its_export(edith, path, parts_of, do, app, row):
    export = in_parts(edith, path, count=15_000)
    first, second = parts_of(export["id"])
    do(second)
    gone = clock.now().replace(year=2020)
    row(ExportPart, first, status="running", attempt=limits.MAX_ATTEMPTS, lease_owner="x:1", lease_until=gone)
    with app.app_context():
        sweeper.sweep(redis_client(), clock.now())
    failed = edith.get(f"/exports/{export['id']}").json
    assert (failed["status"], failed["error"]["code"]) == ("failed", "worker_lost")
    assert failed["error"]["message"].startswith("Part 1: The worker of this part was lost 3 times")
    assert rows_used(edith) == 5_000
