"""Exports over REST: a worker makes the file, it is the one that generate gives, and it can be had in parts."""

from __future__ import annotations

import hashlib

import orjson
import pytest

from jobs.lease import Cancelled, Lease, NotAvailable
from tests.views.speak import faults, make, refused, rows_used
from webapp import limits
from webapp.audit.services import audit_log
from webapp.exports import services as exports
from webapp.exports.models import Export
from webapp.extensions import db, redis_client, write_session
from webapp.work.jobs_queue import queued_ids


@pytest.fixture
def row(app):
    """Change or read an export's row behind everybody's back."""

    def touch(export_id: str, **columns):
        with app.app_context(), write_session() as session:
            found = session.get_one(Export, export_id)
            for name, value in columns.items():
                setattr(found, name, value)
            session.flush()
            session.refresh(found)
            session.expunge(found)
            return found

    return touch


def ordered(program, path, **body):
    answer = program.post(f"{path}/exports", json={"count": 500, "seed": "s", "format": "csv", **body})
    assert answer.status_code == 201, answer.json
    return answer.json


def test_an_export_is_queued_and_a_worker_is_rung_for(edith, path, app):
    answer = edith.post(f"{path}/exports", json={"count": 500, "seed": "s"})
    assert answer.status_code == 201
    export = answer.json
    assert answer.headers["Location"] == f"/exports/{export['id']}"
    assert {
        key: export[key] for key in ("status", "format", "count", "rows_done", "bytes", "sha256", "attempt")
    } == {
        "status": "queued",
        "format": "json",
        "count": 500,
        "rows_done": 0,
        "bytes": None,
        "sha256": None,
        "attempt": 0,
    }
    assert export["download_url"] is None
    assert (export["seed"], export["template_version"]) == ("s", 1)
    assert edith.get(answer.headers["Location"]).json == export
    assert rows_used(edith) == 500
    with app.app_context():
        assert queued_ids(redis_client(), "export") == {export["id"]}


@pytest.mark.parametrize("format", ["json", "ndjson", "csv", "sql"])
def test_the_file_is_what_generate_gives_byte_for_byte(edith, path, work, format):
    ask = {"count": 9_000, "offset": 3, "seed": "s", "format": format, "csv": {"delimiter": ";"}}
    export = ordered(edith, path, **ask)
    work(export["id"])
    export = edith.get(f"/exports/{export['id']}").json
    assert (export["status"], export["rows_done"], export["attempt"], export["error"]) == (
        "completed",
        9_000,
        1,
        None,
    )
    file = edith.get(f"/exports/{export['id']}/download")
    assert export["download_url"].endswith(f"/exports/{export['id']}/download")
    same = edith.post(f"{path}/generate", json=ask)
    assert file.data == same.data
    assert export["bytes"] == len(file.data)
    assert export["sha256"] == hashlib.sha256(file.data).hexdigest()
    for name in ("Content-Type", "Content-Disposition", "X-Seed", "X-Now", "X-Template-Version", "X-Engine"):
        assert file.headers[name] == same.headers[name]
    assert file.headers["ETag"] == f'"{export["sha256"]}"'


def test_accept_text_csv_makes_a_csv_export(edith, path):
    answer = edith.post(
        f"{path}/exports", json={"format": "json", "count": 1}, headers={"Accept": "text/csv"}
    )
    assert answer.json["format"] == "csv"


def test_an_export_uses_the_template_version_at_the_request(edith, path, work):
    before = edith.post(f"{path}/generate", json={"count": 500, "seed": "s", "format": "csv"}).data
    export = ordered(edith, path)
    edith.patch(path, json={"fields": [{"name": "other", "type": "row_number"}]})
    edith.delete(path)
    work(export["id"])
    assert edith.get(f"/exports/{export['id']}/download").data == before


def test_an_export_taken_up_again_is_the_same_bytes_under_the_next_attempt(edith, path, work, row):
    lost = ordered(edith, path, seed=None)
    work(lost["id"])
    whole = edith.get(f"/exports/{lost['id']}").json
    row(
        lost["id"],
        status="running",
        lease_owner="dead:1",
        lease_until=row(lost["id"]).created_at,
        bytes=None,
        sha256=None,
    )
    work(lost["id"])
    again = edith.get(f"/exports/{lost['id']}").json
    assert again["attempt"] == 2
    assert again["sha256"] == whole["sha256"]


# --- Limits ---------------------------------------------------------------------------------------------------


def test_impossible_rows_are_rejected_when_requested(edith):
    few = [{"name": "n", "type": "number", "options": {"min": 1, "max": 3}, "unique": True}]
    created = make(edith, fields=few)
    answer = edith.post(f"/templates/{created['id']}/exports", json={"count": 4})
    assert faults(answer) == {"fields[0].unique": "not_enough_values"}
    assert edith.get("/exports").json["total"] == 0
    assert rows_used(edith) == 0


def test_rows_beyond_the_hour_make_no_export(api, cast):
    mallory = api(cast.mallory)
    path = f"/templates/{make(mallory)['id']}"
    answer = mallory.post(f"{path}/exports", json={"count": limits.PLANS["free"].rows_per_hour + 1})
    refused(answer, 429, "quota_exceeded")
    assert int(answer.headers["Retry-After"]) > 0
    assert mallory.get("/exports").json["total"] == 0


def test_the_same_idempotency_key_makes_one_export(edith, path):
    how = {"json": {"count": 10}, "headers": {"Idempotency-Key": "k"}}
    first, second = edith.post(f"{path}/exports", **how), edith.post(f"{path}/exports", **how)
    assert second.json == first.json
    assert second.headers["Idempotent-Replayed"] == "true"
    assert rows_used(edith) == 10


def test_a_failed_export_has_a_reason_and_refunds_its_rows_once(edith, app, path, work, row):
    export = ordered(edith, path)
    pins = {**row(export["id"]).pins, "engine": 0}
    row(export["id"], pins=pins)
    work(export["id"])
    failed = edith.get(f"/exports/{export['id']}").json
    assert (failed["status"], failed["error"]["code"]) == ("failed", "unavailable")
    assert "engine" in failed["error"]["message"]
    assert rows_used(edith) == 0
    ordered(edith, path)
    with app.app_context():
        exports.return_unused_quota(export["id"])
    assert rows_used(edith) == 500


# --- Cancelling -----------------------------------------------------------------------------------------------


def test_a_queued_export_that_is_cancelled_never_starts_and_spends_nothing(edith, path, work):
    export = ordered(edith, path)
    answer = edith.delete(f"/exports/{export['id']}")
    assert (answer.status_code, answer.json["status"]) == (200, "cancelled")
    assert answer.json["finished_at"]
    with pytest.raises(NotAvailable):
        work(export["id"])
    assert edith.get(f"/exports/{export['id']}").json["status"] == "cancelled"
    assert rows_used(edith) == 0
    assert refused(edith.delete(f"/exports/{export['id']}"), 409, "run_finished") == {"status": "cancelled"}


def test_a_running_export_that_is_cancelled_leaves_no_file_and_gives_the_rest_back(
    edith, path, work, monkeypatch
):
    export = ordered(edith, path, count=50_000)
    checks = iter([None, None, Cancelled(export["id"])])

    def check(_lease):
        if (reason := next(checks)) is not None:
            raise reason

    monkeypatch.setattr(Lease, "check", check)
    monkeypatch.setattr(limits, "EXPORT_PROGRESS_SECONDS", 0.0)
    work(export["id"])
    gone = edith.get(f"/exports/{export['id']}").json
    assert gone["status"] == "cancelled"
    assert 0 < gone["rows_done"] < 50_000
    assert rows_used(edith) == gone["rows_done"]
    refused(edith.get(f"/exports/{export['id']}/download"), 404, "not_found")


def test_a_cancel_of_a_running_export_is_asked_of_its_worker(edith, path, row):
    export = ordered(edith, path)
    row(export["id"], status="running")
    answer = edith.delete(f"/exports/{export['id']}")
    assert (answer.status_code, answer.json["status"]) == (200, "running")
    assert answer.json["cancel_requested_at"]


# --- Downloading ----------------------------------------------------------------------------------------------


@pytest.fixture
def done(edith, path, work):
    export = ordered(edith, path)
    work(export["id"])
    where = f"/exports/{export['id']}/download"
    return where, edith.get(where).data


def test_a_range_is_that_part_of_the_file(edith, done):
    where, whole = done
    size = len(whole)
    for request, first, last in [
        ("bytes=0-99", 0, 99),
        ("bytes=100-", 100, size - 1),
        ("bytes=-50", size - 50, size - 1),
        (f"bytes={size - 1}-{size + 500}", size - 1, size - 1),
    ]:
        answer = edith.get(where, headers={"Range": request})
        assert answer.status_code == 206
        assert answer.data == whole[first : last + 1]
        assert answer.headers["Content-Range"] == f"bytes {first}-{last}/{size}"
        assert answer.headers["Content-Length"] == str(last - first + 1)


def test_a_range_outside_the_file_is_416_with_its_size(edith, done):
    where, whole = done
    answer = edith.get(where, headers={"Range": f"bytes={len(whole)}-"})
    refused(answer, 416, "invalid_request")
    assert answer.headers["Content-Range"] == f"bytes */{len(whole)}"


@pytest.mark.parametrize("requested", ["bytes=0-1,5-6", "rows=0-1", "bytes=x", "nonsense", "bytes=5-1"])
def test_requests_for_several_ranges_get_the_whole_file(edith, done, requested):
    where, whole = done
    answer = edith.get(where, headers={"Range": requested})
    assert (answer.status_code, answer.data) == (200, whole)
    assert answer.headers["Accept-Ranges"] == "bytes"


def test_a_resumed_download_of_another_file_starts_over(edith, done):
    where, whole = done
    tag = edith.get(where).headers["ETag"]
    part = edith.get(where, headers={"Range": "bytes=10-", "If-Range": tag})
    assert (part.status_code, part.data) == (206, whole[10:])
    other = edith.get(where, headers={"Range": "bytes=10-", "If-Range": '"other"'})
    assert (other.status_code, other.data) == (200, whole)
    assert edith.get(where, headers={"If-None-Match": tag}).status_code == 304


def test_a_head_request_returns_the_size(edith, done):
    where, whole = done
    answer = edith.open("HEAD", where)
    assert (answer.status_code, answer.headers["Content-Length"], answer.data) == (200, str(len(whole)), b"")


def test_there_is_no_file_before_the_end(edith, path):
    export = ordered(edith, path)
    details = refused(edith.get(f"/exports/{export['id']}/download"), 404, "not_found")
    assert details["status"] == "queued"


# --- Following and listing ------------------------------------------------------------------------------------


def test_a_follower_of_an_ended_export_gets_its_end(edith, done):
    where, whole = done
    answer = edith.get(where.replace("/download", "/events"))
    assert answer.mimetype == "text/event-stream"
    assert answer.headers["X-Accel-Buffering"] == "no"
    assert b"event: end\n" in answer.data
    end = orjson.loads(answer.data.split(b"data: ")[1])
    assert (end["status"], end["rows_done"], end["bytes"]) == ("completed", 500, len(whole))


def test_a_follower_gets_progress_and_holds_no_session(edith, app, path, row):
    export = ordered(edith, path)
    stream = edith.get(f"/exports/{export['id']}/events", buffered=False).iter_encoded()
    assert b"event: progress" in next(stream)
    audit_log.close(
        app
    )  # a key's last use is written beside the request, by a thread with a connection of its own
    with app.app_context():
        assert db.engine.pool.checkedout() == 0
    row(export["id"], status="failed", error={"code": "worker_lost", "message": "m", "details": {}})
    end = next(stream)
    assert b"event: end" in end
    assert orjson.loads(end.split(b"data: ")[1])["error"]["code"] == "worker_lost"


def test_exports_are_listed_newest_first_and_narrowed(edith, path, row):
    other = f"/templates/{make(edith)['id']}"
    first, second, third = ordered(edith, path), ordered(edith, other), ordered(edith, path)
    row(first["id"], status="failed")
    assert [item["id"] for item in edith.get("/exports").json["items"]] == [
        third["id"],
        second["id"],
        first["id"],
    ]
    of_path = edith.get(f"/exports?template_id={path.rpartition('/')[2]}").json
    assert [item["id"] for item in of_path["items"]] == [third["id"], first["id"]]
    assert edith.get("/exports?status=failed").json["total"] == 1
    page = edith.get("/exports?limit=2").json
    assert page["next_cursor"]
    rest = edith.get("/exports", query_string={"limit": 2, "cursor": page["next_cursor"]}).json
    assert [item["id"] for item in rest["items"]] == [first["id"]]


def test_another_workspaces_export_is_404(edith, api, cast, done):
    where = done[0].removesuffix("/download")
    mallory = api(cast.mallory)
    for method, rest in (("GET", ""), ("GET", "/events"), ("GET", "/download"), ("DELETE", "")):
        refused(mallory.open(method, where + rest), 404, "not_found")
    refused(api(cast.victor).delete(where), 403, "forbidden")
    assert api(cast.victor).get(where).status_code == 200


def test_an_export_leaves_one_audit_entry_and_a_cancel_another(edith, api, cast, path):
    export = ordered(edith, path)
    edith.delete(f"/exports/{export['id']}")
    trail = api(cast.adam).get("/audit").json["items"]
    found = {item["action"]: item for item in trail}
    assert found["template.export"]["rows"] == 500
    assert found["template.export"]["details"]["export"] == export["id"]
    assert found["template.export"]["details"]["seed"] == "s"
    assert found["export.cancel"]["object_id"] == export["id"]
