"""A person sends rows to a table, sees which were refused and why, and repairs them in the browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from jobs.pushes import push as job
from tests.browser.conftest import NARROWEST
from tests.browser.looking import axe, faults_found_by_axe  # noqa: F401 - a fixture
from tests.cast import Program
from tests.views.speak import make
from tests.views.targets import CUSTOMERS, SHOP, sqlite_target
from webapp.connections.models import Connection
from webapp.extensions import db

FEW = SHOP.replace("age INTEGER", "age INTEGER CHECK (age >= 21)")


@pytest.fixture
def target(app, cast):
    return sqlite_target(app, cast, FEW)


@pytest.fixture
def template(app, cast, target):
    return make(Program(app, cast.edith.key), name="Customers", fields=CUSTOMERS)["id"]


@pytest.fixture
def done(app):
    """Do what was ordered as a worker would."""

    def do(page):
        with app.app_context():
            job.run(page.url.rsplit("/", 1)[1])
            db.session.remove()

    return do


@pytest.fixture
def pushed(app, cast, template, target):
    """A push of 1,000 rows, some of them refused."""
    program = Program(app, cast.edith.key)
    ask = {"connection_id": target.connection_id, "count": 1000, "seed": "s"}
    created = program.post(f"/templates/{template}/push", json=ask).json["id"]
    with app.app_context():
        job.run(created)
        db.session.remove()
    return created


def test_a_push_is_mapped_tried_sent_and_its_failed_rows_repaired(edith, template, target, done):
    page = edith.page(f"/templates/{template}#export")
    page.locator("#x-count").fill("77")
    page.locator("#x-seed").fill("carried")
    page.locator("#x-locale").fill("de_DE")
    page.get_by_label("Push to").select_option(label="Shop")
    page.get_by_role("button", name="Review push").click()
    page.wait_for_url("**/push?**")
    expect(page.get_by_label("Rows", exact=True)).to_have_value("77")
    expect(page.get_by_label("Seed")).to_have_value("carried")
    expect(page.get_by_label("Locale")).to_have_value("de_DE")
    expect(page.get_by_label("Field for email")).to_have_value("E-Mail")
    page.get_by_label("Field for first_name").select_option(label="Formula…")
    page.get_by_label("Formula for first_name").fill("upper(firstName)")
    page.get_by_label("Rows", exact=True).fill("1000")
    page.get_by_role("button", name="Dry run").click()
    expect(page.locator("#dry")).to_contain_text("INSERT INTO")
    expect(page.locator("#dry")).to_contain_text("none sent")
    assert target.count("customers") == 0
    page.get_by_label("Field for age").select_option("")
    expect(page.locator("#dry")).to_be_hidden()  # its result was for another mapping
    page.get_by_label("Field for age").select_option("age")
    page.get_by_role("button", name="Push", exact=True).click()
    page.wait_for_url("**/pushes/psh_*")
    expect(page.locator("#work")).to_contain_text("waiting for a worker")
    done(page)
    expect(page.locator("#work")).to_contain_text("Completed with")  # updated by events
    expect(page.locator("#log")).to_contain_text("completed")
    there = target.count("customers")
    assert 900 < there < 1000
    expect(page.locator(".tally .bad dd")).to_have_text(str(1000 - there))
    expect(page.locator("#rows tbody tr").first).to_contain_text("check")
    page.get_by_role("link", name="With values").click()
    expect(page.locator("#rows .vals").first).to_contain_text("age")
    page.get_by_role("link", name="Check constraint violated").click()
    page.get_by_label("Column", exact=True).select_option("age")
    value = page.locator("#failure").get_by_label("Value, formula or field")
    value.fill("21")
    value.press("Tab")
    expect(page.locator("#failure td.after").first).to_have_text(
        "21"
    )  # before and after the fix, side by side
    page.locator("#failure").get_by_role("button", name=re.compile("Retry")).click()
    page.wait_for_url(re.compile(r"/pushes/psh_(?!.*repair)"))
    expect(page.locator("h1 + .badge")).to_have_text("retry")
    done(page)
    expect(page.locator("#work")).to_contain_text("Completed")
    assert target.count("customers") == 1000
    assert target.execute("SELECT count(*) FROM customers WHERE first_name = upper(first_name)")[0][0] == 1000


def test_the_101st_connection_is_found_and_a_failed_one_is_not_offered(edith, template, app, cast):
    with app.app_context():
        place = {"workspace_id": cast.acme, "project_id": cast.main, "team_id": cast.blue}
        rest = {"type": "rest", "settings": {"base_url": "http://127.0.0.1:1/"}, **place}
        db.session.add_all([Connection(name=f"api {n:03}", **rest) for n in range(101)])
        failed = {"status": "failed", "stages": [], "response": None, "checked_at": "2026-11-21T00:00:00Z"}
        db.session.add(Connection(name="api down", verification=failed, **rest))
        db.session.commit()
        db.session.remove()
    page = edith.page(f"/templates/{template}#export")
    places = page.get_by_label("Push to")
    expect(places.locator("option", has_text="more: search by name")).to_be_attached()
    shown = places.locator("option").all_inner_texts()
    hidden = next(name for name in (f"api {n:03}" for n in range(101)) if name not in shown)
    page.locator("#x-search").press_sequentially(hidden)
    expect(places.locator("option")).to_have_text([hidden])
    page.locator("#x-search").fill("down")
    expect(places.locator("option")).to_have_text(["No results for “down”"])


def test_the_dialog_offers_where_one_comes_from(edith, template, target, app, cast):
    other = sqlite_target(app, cast, "CREATE TABLE parts (code TEXT)", name="Archive")
    newest = sqlite_target(app, cast, "CREATE TABLE bins (code TEXT)", name="Newest")
    body = {"entities": ["parts"]}
    created = Program(app, cast.edith.key).post(f"/connections/{other.connection_id}/templates", json=body)
    assert created.status_code == 201, created.text
    of_table = created.json["templates"][0]["id"]
    page = edith.page(f"/templates/{of_table}#export")
    places = page.get_by_label("Push to")
    expect(places).to_have_value(f"{other.connection_id}/parts")
    expect(page.locator("#x-target")).to_have_value("parts")
    page.goto(f"{edith.origin}/connections/{target.connection_id}")
    page.goto(f"{edith.origin}/templates/{template}#export")
    expect(places).to_have_value(target.connection_id)
    page.goto(f"{edith.origin}/connections/{newest.connection_id}")
    page.goto(f"{edith.origin}/templates/{template}#export")
    expect(places).to_have_value(newest.connection_id)


def test_two_quick_presses_send_once(edith, template, target, app, cast):
    page = edith.page(f"/templates/{template}/push")
    page.get_by_role("button", name="Push", exact=True).dblclick()
    page.wait_for_url("**/pushes/psh_*")
    assert Program(app, cast.edith.key).get("/pushes").json["total"] == 1


def test_another_table_shows_its_own_columns(edith, template, target):
    page = edith.page(f"/templates/{template}/push")
    page.get_by_label("Table", exact=True).focus()
    page.get_by_label("Table", exact=True).select_option("orders")
    expect(page.locator("th", has_text="Column of orders")).to_be_visible()
    expect(page.get_by_label("Table", exact=True)).to_be_focused()  # rendered again, it keeps the focus
    expect(page.get_by_label("Field for amount")).to_have_attribute("aria-invalid", "true")


def test_rows_are_filtered_without_leaving_the_page(edith, pushed):
    page = edith.page(f"/pushes/{pushed}")
    page.get_by_role("link", name=re.compile("^Delivered")).click()
    expect(page.locator("#rows tbody tr")).to_have_count(20)
    page.get_by_role("link", name="Next").click()
    expect(page.get_by_role("link", name="First page")).to_be_visible()
    assert page.url.endswith(pushed)


def test_an_undo_asks_and_deletes(edith, pushed, target, done):
    page = edith.page(f"/pushes/{pushed}")
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name=re.compile("^Delete")).click()
    expect(page.locator("h1 + .badge")).to_have_text("undo")
    done(page)
    expect(page.locator("#work")).to_contain_text("Completed")
    assert target.count("customers") == 0


def test_letters_lead_to_connections_and_endpoints(edith):
    page = edith.page("/templates")
    page.keyboard.type("gc")
    page.wait_for_url("**/connections")
    page.keyboard.type("ge")
    page.wait_for_url("**/endpoints")


def test_a_push_needs_no_script(desk, cast, template, target, done):
    page = desk(cast.edith, java_script_enabled=False).page(f"/templates/{template}/push")
    page.get_by_label("Field for first_name").select_option(label="Formula…")
    page.get_by_role("button", name="Refresh").click()
    page.get_by_label("Formula for first_name").fill("'x'")
    page.get_by_role("button", name="Dry run").click()
    expect(page.locator("#dry")).to_contain_text("none sent")
    page.get_by_role("button", name="Push", exact=True).click()
    page.wait_for_url("**/pushes/psh_*")
    done(page)
    page.reload()
    expect(page.locator("#work")).to_contain_text("Completed")
    assert target.execute("SELECT DISTINCT first_name FROM customers") == [("x",)]


def test_pushes_fit_a_phone(desk, cast, template, pushed):
    narrow = desk(cast.edith, NARROWEST)
    for path in (
        f"/templates/{template}/push",
        f"/pushes/{pushed}",
        f"/pushes/{pushed}/rows?values=true",
        "/pushes",
    ):
        page = narrow.page(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROWEST[0], path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_the_pages_of_a_push(desk, cast, template, pushed, target, axe, scheme):
    window, found = desk(cast.edith, color_scheme=scheme, bypass_csp=True), []
    page = window.page(f"/templates/{template}/push")
    page.get_by_label("Mode").select_option("upsert")
    expect(page.get_by_label("Find rows by email")).to_be_visible()
    page.get_by_role("button", name="Dry run").click()
    expect(page.locator("#dry")).to_be_visible()
    found += faults_found_by_axe(page, axe)
    paths = (f"/pushes/{pushed}", f"/pushes/{pushed}/rows?values=true", "/pushes")
    for path in (*paths, f"/connections/{target.connection_id}", f"/connections/{target.connection_id}/edit"):
        page.goto(window.origin + path)
        page.wait_for_load_state("networkidle")
        found += faults_found_by_axe(page, axe)
    assert found == []


def test_the_focus_is_kept_while_the_list_refreshes(edith, app, cast, template, target):
    program = Program(app, cast.edith.key)
    ask = {"connection_id": target.connection_id, "count": 5}
    ids = [program.post(f"/templates/{template}/push", json=ask).json["id"] for _ in range(2)]
    page = edith.page("/activity")
    link = page.locator(f"a[href='/pushes/{ids[0]}']")
    link.focus()
    page.evaluate("document.activeElement.dataset.first = ''")
    for _ in range(2):
        with page.expect_response("**/activity*"):
            pass
    expect(page.locator("[data-first]")).to_have_count(0)
    expect(link).to_be_focused()
