"""Defects that users reported in the browser, so that none of them returns."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect
from sqlalchemy import update

from jobs.pushes import push as job
from tests.cast import Program
from tests.views.speak import make
from tests.views.targets import CUSTOMERS, SHOP, sqlite_target
from webapp import clock
from webapp.extensions import db
from webapp.pushes.models import Push

BARS = (
    "/",
    "/templates",
    "/scenarios",
    "/scenarios/new",
    "/activity",
    "/connections",
    "/workspace/files",
    "/audit",
)


@pytest.fixture
def target(app, cast):
    return sqlite_target(app, cast, SHOP.replace("age INTEGER", "age INTEGER CHECK (age >= 21)"))


@pytest.fixture
def template(app, cast):
    return make(Program(app, cast.edith.key), name="Customers", fields=CUSTOMERS)["id"]


@pytest.fixture
def queued(app, cast, template, target):
    """The id of a push that no worker has begun."""
    body = {"connection_id": target.connection_id, "count": 200, "seed": "s"}
    return Program(app, cast.edith.key).post(f"/templates/{template}/push", json=body).json["id"]


def done(app, push: str) -> None:
    with app.app_context():
        job.run(push)
        db.session.remove()


def changed(app, push: str, **values: object) -> None:
    with app.app_context():
        db.session.execute(update(Push).where(Push.id == push).values(values))
        db.session.commit()
        db.session.remove()


def test_the_question_before_a_cancellation_stays_open_while_the_page_refreshes(edith, app, queued):
    page = edith.page(f"/pushes/{queued}")
    page.get_by_role("button", name="Cancel", exact=True).click()
    question = page.locator("#ask-cancel")
    expect(question).to_be_visible()
    expect(page.locator(".tally .ok dd")).to_have_text("0")
    changed(app, queued, delivered=20)
    expect(page.locator(".tally .ok dd")).to_have_text("20")  # the page has refreshed
    expect(question).to_be_visible()
    question.get_by_role("button", name="Cancel push").click()
    expect(page.locator("#work .badge").first).to_have_text("Cancelled")


def test_a_queued_push_shows_no_log_and_a_finished_one_counts_in_one_way(edith, app, queued):
    page = edith.page(f"/pushes/{queued}")
    expect(page.locator("#work .badge").first).to_have_text("Queued")
    expect(page.locator("#log li")).to_have_count(0)
    done(app, queued)
    page.reload()
    failed = int(page.locator(".tally .bad dd").inner_text())
    assert failed > 0
    expect(page.locator("#work .badge").first).to_have_text(f"Completed with {failed} failures")
    expect(page.locator("#rows tbody tr")).to_have_count(min(failed, 50))
    expect(page.locator("#rows")).not_to_contain_text("No failed rows")


def test_no_time_left_is_shown_in_the_first_two_seconds(edith, app, queued):
    changed(app, queued, status="running", started_at=clock.now(), delivered=20)
    page = edith.page(f"/pushes/{queued}")
    expect(page.locator("#work .badge").first).to_have_text("Running")
    expect(page.locator("#work")).not_to_contain_text(" left")


def test_a_push_is_the_last_use_of_its_template(edith, app, queued):
    done(app, queued)
    page = edith.page("/templates")
    row = page.locator("tr", has_text="Customers")
    expect(row).to_contain_text("200 rows")
    expect(row).not_to_contain_text("Never")


def test_templates_of_the_same_name_are_told_apart(edith, app, cast, template):
    make(Program(app, cast.edith.key), name="Customers", fields=CUSTOMERS)
    make(Program(app, cast.edith.key), name="Parts", fields=CUSTOMERS)
    page = edith.page("/templates")
    expect(page.locator("tr", has_text="Customers")).to_have_count(2)
    for row in page.locator("tr", has_text="Customers").all():
        expect(row).to_contain_text(re.compile(r"Created \d{4}-\d\d-\d\d \d\d:\d\d UTC"))
    expect(page.locator("tr", has_text="Parts")).not_to_contain_text("Created")


def test_the_audit_log_names_people_and_objects(desk, cast, template):
    page = desk(cast.adam).page("/audit")
    row = page.locator("tr", has_text="template.create").first
    expect(row).to_contain_text("Customers")
    expect(row).not_to_contain_text(template[-6:])
    expect(page.locator("table.audit")).not_to_contain_text("usr_")


def test_the_bar_is_at_the_same_place_on_every_page(desk, cast):
    adam = desk(cast.adam)  # an editor may not see the audit log
    page = adam.page("/")
    places = {}
    for path in BARS:
        page.goto(adam.origin + path)
        places[path] = page.locator(".topbar").evaluate(
            "bar => { const b = bar.getBoundingClientRect(); return [b.x, b.y, b.height].map(Math.round) }"
        )
    assert len({tuple(place) for place in places.values()}) == 1, places


def test_a_search_for_types_without_results_says_what_to_use(edith):
    page = edith.page("/templates/new")
    page.locator(".colhead[data-field]").first.click()
    page.locator("[data-pick]").click()
    page.get_by_label("Search types").fill("zzzz")
    expect(page.locator("[data-none]")).to_be_visible()
    page.get_by_role("button", name="Regular expression").click()
    expect(page.locator("#picker")).to_be_hidden()
    expect(page.locator("#inspector [data-pick]")).to_have_text("Regular expression")
