"""A user combines tables into a dataset in the browser, views their relations, and downloads one file."""

from __future__ import annotations

import sqlite3

import pytest
from playwright.sync_api import expect

from jobs import exports
from tests.browser.conftest import NARROWEST
from tests.browser.looking import axe, faults_found_by_axe  # noqa: F401 - a fixture
from tests.cast import Program
from tests.views.speak import make
from webapp import limits
from webapp.extensions import db

KEY = {"name": "id", "type": "row_number"}


@pytest.fixture
def two(app, cast):
    """Buyers, and what they bought."""
    program = Program(app, cast.edith.key)
    buyers = make(program, name="Buyers", quantity=7, fields=[KEY, {"name": "who", "type": "name"}])["id"]
    options = {"template_id": buyers, "field": "id", "cardinality": {"min": 1, "max": 9}}
    bought = make(
        program, name="Bought", fields=[KEY, {"name": "buyer_id", "type": "reference", "options": options}]
    )
    return [buyers, bought["id"]]


@pytest.fixture
def shop(app, cast, two):
    tables = [{"template_id": one} for one in two]
    made = Program(app, cast.edith.key).post(
        "/datasets", json={"name": "Shop", "templates": tables, "seed": "s"}
    )
    return made.json


def test_a_dataset_is_created_with_its_relations_and_a_preview(edith, two):
    page = edith.page("/datasets")
    page.get_by_role("main").get_by_role("link", name="New dataset").first.click()
    page.locator("input.title").fill("Shop")
    for name in ("Bought", "Buyers"):
        page.get_by_label("Template to add").select_option(label=name)
        page.get_by_role("button", name="Add").click()
        expect(page.locator(".look h3", has_text=name)).to_be_visible()
    expect(page.locator(".diagram .many")).to_have_text("1 : 1..9")
    page.get_by_label("Rows of Buyers", exact=True).fill("2")
    page.get_by_label("Rows of Buyers", exact=True).press("Tab")
    expect(page.locator(".diagram a", has_text="Buyers").locator(".few")).to_have_text("2 rows")
    expect(page.get_by_label("Name in the file").nth(1)).to_be_focused()  # rendered again, it keeps the focus
    page.get_by_role("button", name="Move up: Buyers").click()
    expect(page.locator(".look h3").first).to_contain_text("Buyers")
    page.keyboard.press("Control+s")
    page.wait_for_url("**/datasets/dst_*")
    expect(page.get_by_label("Rows of Buyers", exact=True)).to_have_value("2")


def test_tables_are_reached_from_the_diagram_by_keyboard(edith, shop, two):
    page = edith.page(f"/datasets/{shop['id']}")
    page.locator(".diagram a").first.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/templates/{two[1]}")


def test_an_export_is_followed_and_downloaded(edith, shop, app):
    page = edith.page(f"/datasets/{shop['id']}#export")
    page.locator(".formats label", has_text="SQL").click()
    page.get_by_label("Create table").select_option("true")
    page.get_by_role("button", name="Make the file").click()
    page.wait_for_url("**/exports/exp_*")
    expect(page.locator("#work")).to_contain_text("waiting for a worker")
    with app.app_context():
        exports.run(page.url.rsplit("/", 1)[1])
        db.session.remove()
    with page.expect_download() as found:
        page.get_by_role("link", name="Download").click()
    assert found.value.suggested_filename == "Shop.sql"
    database = sqlite3.connect(":memory:")
    database.executescript(found.value.path().read_text())
    assert database.execute("SELECT count(DISTINCT buyer_id) FROM bought").fetchone() == (7,)
    database.close()


def test_a_deletion_is_undone_from_the_toast(edith, shop):
    page = edith.page("/datasets")
    page.get_by_role("link", name="Delete Shop").click()
    page.get_by_role("button", name="Delete Shop").click()
    expect(page.get_by_role("heading", name="No datasets yet")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    page.wait_for_url(f"**/datasets/{shop['id']}")


def test_a_dataset_fits_a_phone(desk, cast, shop):
    page = desk(cast.edith, NARROWEST).page(f"/datasets/{shop['id']}")
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROWEST[0]


def test_a_dataset_is_created_without_a_script(desk, cast, two):
    page = desk(cast.edith, java_script_enabled=False).page("/datasets/new")
    page.locator("input.title").fill("Plain")
    page.get_by_label("Template to add").select_option(label="Buyers")
    page.get_by_role("button", name="Add").click()
    page.get_by_role("button", name="Save").last.click()
    page.wait_for_url("**/datasets/dst_*")
    expect(page.locator(".look h3")).to_contain_text("Buyers")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_a_dataset_and_in_its_dialog(desk, cast, shop, axe, scheme):
    page = desk(cast.edith, color_scheme=scheme, bypass_csp=True).page(f"/datasets/{shop['id']}")
    for part in page.locator("summary").all():
        part.click()
    found = faults_found_by_axe(page, axe)
    page.get_by_role("button", name="Export").click()
    assert found + faults_found_by_axe(page, axe) == []


def test_among_many_templates_the_one_is_found_by_its_name_and_put_in(edith, api, cast, monkeypatch):
    monkeypatch.setattr(limits, "DATASET_CHOICES", 2)
    program = api(cast.edith)
    for name in ("Airports", "Buyers", "Flights", "Invoices", "Zones"):
        make(program, name=name, fields=[KEY])
    page = edith.page("/datasets/new")
    page.locator("input.title").fill("World")
    box, choice = page.get_by_label("Find a template to add"), page.get_by_label("Template to add", exact=True)
    for name in ("Zones", "Invoices"):
        box.press_sequentially(name[:4].lower())
        expect(choice.locator("option")).to_have_text([name])
        expect(box).to_be_focused()
        page.get_by_role("button", name="Add").click()
        expect(page.locator(".look h3", has_text=name)).to_be_visible()
        expect(box).to_have_value("")
    expect(choice.locator("option")).to_have_text(["Airports", "Buyers"])
    box.fill("nothing like it")
    expect(page.get_by_text("No other template has this in its name.")).to_be_visible()
    page.keyboard.press("Control+s")
    page.wait_for_url("**/datasets/dst_*")
    expect(page.locator("input.title")).to_have_value("World")
