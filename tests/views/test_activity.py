"""The list of all jobs, the panel of running jobs, and the redirects of the earlier lists."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.cast import Browser
from webapp import clock, ids
from webapp.exports.models import Export
from webapp.extensions import db
from webapp.pushes.models import Push

FIELDS = [{"name": "id", "type": "row_number"}]


@pytest.fixture
def template(api, cast) -> dict[str, Any]:
    return api(cast.edith).post("/templates", json={"name": "Shop customers", "fields": FIELDS}).json


@pytest.fixture
def edith(app, cast) -> Browser:
    return Browser(app, cast.edith)


def export(cast, template, status: str = "completed", **more: Any) -> str:
    """An export in the database; returns its id."""
    row = Export(
        id=ids.new("exp"), workspace_id=cast.acme, project_id=cast.main, team_id=cast.blue, template_id=template["id"],
        template_version=1, format="csv", count=100, rows_done=40, file_name="rows.csv", request={"ask": {}}, pins={},
        status=status, started_at=clock.now(), created_by=cast.edith.user_id, **more,
    )  # fmt: skip
    db.session.add(row)
    db.session.commit()
    return row.id


def push(cast, template, status: str = "completed", **more: Any) -> str:
    row = Push(
        id=ids.new("psh"), workspace_id=cast.acme, project_id=cast.main, team_id=cast.blue, template_id=template["id"],
        template_version=1, target="customers", total=100, request={"ask": {}}, pins={}, status=status,
        started_at=clock.now(), created_by=cast.edith.user_id, **more,
    )  # fmt: skip
    db.session.add(row)
    db.session.commit()
    return row.id


@pytest.fixture
def jobs(app, cast, template) -> dict[str, str]:
    with app.app_context():
        result = {
            "export": export(cast, template, bytes=8_200_000, finished_at=clock.now()),
            "failures": push(cast, template, delivered=74, failed=26, finished_at=clock.now()),
            "running": push(cast, template, "running", delivered=62),
            "failed": push(cast, template, "failed", finished_at=clock.now(), delivered=1),
        }
        db.session.remove()
    return result


def listed(browser: Browser, query: str = "") -> str:
    answer = browser.get(f"/activity{query}")
    assert answer.status_code == 200
    return answer.text


def test_all_kinds_of_jobs_are_in_one_list_with_their_next_step(edith, jobs):
    page = listed(edith)
    assert "Completed with 26 failures" in page
    assert f"/pushes/{jobs['running']}?_method=DELETE" in page
    assert f"/exports/{jobs['export']}/download" in page
    assert f'href="/pushes/{jobs["failures"]}">Review' in page
    assert page.index(">Running</th>") < page.index(">Today</th>")


@pytest.mark.parametrize(
    ("query", "there"),
    [
        ("?kind=export", {"export"}),
        ("?kind=push", {"failures", "running", "failed"}),
        ("?kind=run", set()),
        ("?status=running", {"running"}),
        ("?status=failures", {"failures"}),
        ("?status=failed", {"failed"}),
        ("?status=completed", {"export"}),
        ("?status=failures&kind=export", set()),
        ("?q=SHOP", {"export", "failures", "running", "failed"}),
        ("?q=nothing", set()),
    ],
)
def test_filters_of_the_address_narrow_the_list(edith, jobs, query, there):
    page = listed(edith, query)
    assert {name for name, job_id in jobs.items() if f"/{job_id}" in page} == there


def test_person_and_period_narrow_the_list(app, cast, edith, template, jobs):
    with app.app_context():
        old = export(cast, template, finished_at=clock.now(), created_at=clock.now() - timedelta(days=9))
        db.session.remove()
    assert old not in listed(edith)
    assert old in listed(edith, "?days=30")
    assert jobs["export"] in listed(edith, f"?by={cast.edith.user_id}")
    assert jobs["export"] not in listed(edith, f"?by={cast.adam.user_id}")


def test_chips_have_the_counts_of_the_other_filters(edith, jobs):
    page = listed(edith, "?kind=push")
    for text, number in (("With failures", 1), ("Failed", 1), ("Running", 1), ("Completed", 0)):
        assert f'{text} <span class="n">{number}</span>' in page


def test_pages_continue_where_the_last_one_ended(app, cast, edith, template):
    with app.app_context():
        result = [export(cast, template) for _ in range(3)] + [push(cast, template) for _ in range(3)]
        from webapp.access import actors
        from webapp.activity import services
        from webapp.activity.services import JobFilter

        actor = actors.system_actor(cast.acme)
        from dataclasses import replace

        actor = replace(actor, project_id=cast.main)
        seen, cursor = [], None
        for _ in range(3):
            found, cursor = services.jobs(actor, JobFilter(), cursor, limit=2)
            seen += [job.id for job in found]
        db.session.remove()
    assert cursor is None
    assert sorted(seen) == sorted(result)
    assert [item.partition("_")[2] for item in seen] == sorted(
        (item.partition("_")[2] for item in result), reverse=True
    )


def test_the_panel_has_running_jobs_with_cancel_and_those_that_finished(edith, jobs):
    panel = edith.get("/activity/now", headers={"HX-Request": "true"}).text
    assert 'data-running="1" data-attention="2"' in panel
    assert f"/pushes/{jobs['running']}?_method=DELETE" in panel
    assert "62 of 100 rows" in panel
    assert "Completed with 26 failures" in panel


def test_every_page_has_the_number_of_running_jobs(edith, jobs):
    assert '<b>1</b><span class="sr"> running</span>' in edith.get("/usage").text


def test_jobs_of_another_project_are_not_listed(app, cast, jobs):
    mallory = Browser(app, cast.mallory)
    assert not any(job_id in listed(mallory, "?days=0") for job_id in jobs.values())


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("/pushes", "/activity?kind=push&days=0"),
        ("/exports", "/activity?kind=export&days=0"),
        ("/runs", "/activity?kind=run&days=0"),
        ("/pushes?connection_id=con_x", "/activity?kind=push&of=con_x&days=0"),
    ],
)
def test_lists_of_one_kind_lead_browsers_to_activity_and_stay_for_programs(api, cast, edith, path, where):
    answer = edith.get(path)
    assert (answer.status_code, answer.headers["Location"]) == (303, where)
    if "?" not in path:
        assert api(cast.edith).get(path).json == {"items": [], "next_cursor": None, "total": 0}
