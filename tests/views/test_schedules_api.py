"""Schedules of exports and pushes by the API: created, changed, started, deleted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from jobs.pushes import push as job
from tests.views.speak import make
from tests.views.targets import sqlite_target
from webapp.extensions import db, write_session
from webapp.pushes.models import Push
from webapp.schedules import services
from webapp.schedules.models import Schedule

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
FIELDS = [{"name": "id", "type": "row_number"}]


@pytest.fixture
def template(edith):
    return make(edith, name="Rows", fields=FIELDS, quantity=9)["id"]


@pytest.fixture
def nightly(edith, template):
    """Return the schedule of a template's export."""
    return create(edith, template_id=template).json


def create(program, **more):
    body = {
        "name": "Nightly",
        "cron": "0 2 * * *",
        "kind": "export",
        "request": {"format": "csv", "count": 5},
    }
    return program.post("/schedules", json={**body, **more})


def paths(response):
    return sorted(field["path"] for field in response.json["error"]["details"]["fields"])


def test_a_schedule_of_an_export_is_created_read_and_listed(edith, template):
    answer = create(edith, template_id=template, timezone="Europe/Berlin", new_seed=True)
    result = answer.json
    assert (answer.status_code, answer.headers["Location"]) == (201, f"/schedules/{result['id']}")
    assert result["request"] == {"format": "csv", "count": 5}
    assert (result["enabled"], result["new_seed"], result["timezone"]) == (True, True, "Europe/Berlin")
    assert result["next_run_at"].endswith("Z")
    assert (result["last_job_id"], result["problem"]) == (None, None)
    assert edith.get(f"/schedules/{result['id']}").json == result
    assert edith.get("/schedules").json["items"] == [result]
    assert edith.get("/schedules?q=night").json["total"] == 1
    assert edith.get("/schedules?q=zebra").json["total"] == 0


def test_a_schedule_of_a_dataset_is_started_and_repeats_its_request(edith, template):
    dataset = edith.post("/datasets", json={"name": "D", "templates": [{"template_id": template}]}).json["id"]
    created = create(edith, dataset_id=dataset, request={"format": "sql", "seed": "s"}).json
    answer = edith.post(f"/schedules/{created['id']}/start")
    assert (answer.status_code, answer.json["kind"]) == (201, "export")
    export = edith.get(f"/exports/{answer.json['job_id']}").json
    assert (export["dataset_id"], export["format"], export["seed"]) == (dataset, "sql", "s")
    assert edith.get(f"/schedules/{created['id']}").json["last_job_id"] == export["id"]


def test_a_schedule_of_a_push_is_started(app, cast, edith, template):
    target = sqlite_target(app, cast, "CREATE TABLE rows (id INTEGER PRIMARY KEY);")
    ask = {"connection_id": target.connection_id, "target": "rows", "count": 3}
    created = create(edith, template_id=template, kind="push", request=ask).json
    started = edith.post(f"/schedules/{created['id']}/start").json
    assert started["kind"] == "push"
    assert edith.get(f"/pushes/{started['job_id']}").json["target"] == "rows"


def test_a_schedule_repeats_an_earlier_job(edith, template):
    export = edith.post(
        f"/templates/{template}/exports", json={"format": "json", "count": 4, "seed": "s"}
    ).json["id"]
    created = edith.post("/schedules", json={"name": "Again", "cron": "0 2 * * *", "repeats": export}).json
    assert (created["kind"], created["template_id"]) == ("export", template)
    assert {"format": "json", "count": 4, "seed": "s"}.items() <= created["request"].items()
    both = create(edith, template_id=template, repeats=export)
    assert paths(both) == ["kind", "request", "template_id"]
    assert (
        edith.post("/schedules", json={"name": "A", "cron": "0 2 * * *", "repeats": "exp_none"}).status_code
        == 404
    )


def test_all_errors_of_a_schedule_are_reported_together(edith, template):
    answer = create(edith, cron="every day", timezone="Mars/Olympus", kind=None, request={})
    assert answer.status_code == 422
    assert paths(answer) == ["cron", "kind", "template_id", "timezone"]
    answer = create(edith, template_id=template, request={"format": "docx", "count": 0, "zzz": 1})
    assert paths(answer) == ["request.count", "request.format", "request.zzz"]
    assert create(edith, template_id="tpl_none").status_code == 404
    dry = {"connection_id": "con_x", "dry_run": True}
    assert paths(create(edith, template_id=template, kind="push", request=dry)) == ["request.dry_run"]
    assert edith.get("/schedules").json["total"] == 0


def test_a_schedule_is_changed_and_turned_off(edith, nightly):
    path = f"/schedules/{nightly['id']}"
    changed = edith.patch(
        path, json={"name": "Weekly", "cron": "0 6 * * 1", "request": {"format": "xlsx"}}
    ).json
    assert (changed["name"], changed["cron"], changed["request"]) == (
        "Weekly",
        "0 6 * * 1",
        {"format": "xlsx"},
    )
    off = edith.patch(path, json={"enabled": False}).json
    assert (off["enabled"], off["next_run_at"]) == (False, None)
    assert paths(edith.patch(path, json={"cron": "99 * * * *"})) == ["cron"]
    assert paths(edith.patch(path, json={"request": {"format": "docx"}})) == ["request.format"]
    assert edith.get(path).json["cron"] == "0 6 * * 1"


def test_a_changed_schedule_is_not_overwritten(edith, nightly):
    path = f"/schedules/{nightly['id']}"
    tag = edith.get(path).headers["ETag"]
    edith.patch(path, json={"name": "Other"})
    for answer in (
        edith.patch(path, json={"name": "Mine"}, headers={"If-Match": tag}),
        edith.delete(path, headers={"If-Match": tag}),
    ):
        assert (answer.status_code, answer.json["error"]["code"]) == (412, "version_conflict")


def test_a_deleted_schedule_is_gone_and_its_jobs_stay(edith, nightly):
    path = f"/schedules/{nightly['id']}"
    export = edith.post(f"{path}/start").json["job_id"]
    assert edith.delete(path).json["id"] == nightly["id"]
    assert edith.get(path).status_code == 404
    assert edith.get(f"/exports/{export}").status_code == 200


def test_what_is_sent_back_as_it_was_read_changes_nothing(edith, nightly):
    path = f"/schedules/{nightly['id']}"
    same = edith.patch(path, json=nightly).json
    assert {**same, "updated_at": ""} == {**nightly, "updated_at": "", "saved_by": same["saved_by"]}


def test_a_viewer_and_another_workspace_cannot_change_schedules(api, cast, edith, template, nightly):
    path = f"/schedules/{nightly['id']}"
    victor, mallory = api(cast.victor), api(cast.mallory)
    assert victor.get(path).status_code == 200
    assert create(victor, template_id=template).status_code == 403
    for answer in (victor.patch(path, json={"name": "x"}), victor.delete(path), victor.post(f"{path}/start")):
        assert answer.status_code == 403
    for answer in (mallory.get(path), mallory.patch(path, json={"name": "x"}), mallory.delete(path)):
        assert answer.status_code == 404
    assert create(mallory, template_id=template).status_code == 404


# --- Undo the previous push --------------------------------------------------------------------------------------


@pytest.fixture
def target(app, cast):
    return sqlite_target(app, cast, "CREATE TABLE rows (id INTEGER PRIMARY KEY);")


@pytest.fixture
def refreshed(edith, template, target):
    """Return a schedule that sends rows 1 to 3 and deletes those of its previous push first."""
    ask = {"connection_id": target.connection_id, "target": "rows", "count": 3, "seed": "s"}
    return create(edith, template_id=template, kind="push", request=ask, undo_previous=True).json


@pytest.fixture
def sweep(app, refreshed):
    """Start what is due at a moment, and do the jobs as a worker would. Return the kinds of the jobs that were done."""

    def run(moment=NOON, *, due=True, work=True):
        with app.app_context():
            if due:
                with write_session() as session:
                    session.get_one(Schedule, refreshed["id"]).next_run_at = moment
            services.run_due(moment)
            db.session.remove()
            queued = db.select(Push.id, Push.kind).where(Push.status == "queued").order_by(Push.id)
            found = db.session.execute(queued).all()
            db.session.remove()
            for push_id, _ in found if work else ():
                job.run(push_id)
                db.session.remove()
            return [kind for _, kind in found]

    return run


def test_the_previous_push_is_undone_before_the_next(edith, refreshed, sweep, target):
    assert sweep() == ["push"]
    first = edith.get(f"/schedules/{refreshed['id']}").json["last_job_id"]
    later = NOON + timedelta(days=1)
    assert sweep(later) == ["undo"]  # the due time stays until the undo has ended
    assert target.count("rows") == 0
    assert sweep(later, due=False) == ["push"]
    assert target.count("rows") == 3
    now = edith.get(f"/schedules/{refreshed['id']}").json
    assert now["problem"] is None
    assert now["last_job_id"] != first


def test_an_undo_is_started_once_while_it_runs(sweep):
    sweep()
    later = NOON + timedelta(days=1)
    assert sweep(later, work=False) == ["undo"]
    assert sweep(later, due=False, work=False) == ["undo"]  # the same one, still queued


def test_nothing_is_sent_while_the_previous_push_runs(edith, refreshed, sweep):
    sweep(work=False)
    assert sweep(NOON + timedelta(days=1), work=False) == ["push"]
    assert edith.get(f"/schedules/{refreshed['id']}").json["problem"]["code"] == "conflict"


def test_only_pushes_that_insert_rows_can_be_undone(edith, template, target):
    assert paths(create(edith, template_id=template, undo_previous=True)) == ["undo_previous"]
    ask = {"connection_id": target.connection_id, "target": "rows", "mode": "upsert"}
    created = create(edith, template_id=template, kind="push", request=ask, undo_previous=True)
    assert paths(created) == ["undo_previous"]
