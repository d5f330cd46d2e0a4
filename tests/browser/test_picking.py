"""A person picks templates, fields, groups and functions in the builder."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.builder import Builder
from tests.browser.conftest import NARROWEST
from tests.browser.looking import axe, faults_found_by_axe  # noqa: F401 - a fixture
from tests.views.targets import sqlite_target

CUSTOMERS = [{"name": "id", "type": "row_number"}, {"name": "name", "type": "name"}]


@pytest.fixture
def orders(api, cast):
    """Orders with their customers, and the unrelated template Shops."""
    program = api(cast.edith)
    parent = program.post(
        "/templates", json={"name": "Customers", "quantity": 1000, "fields": CUSTOMERS}
    ).json
    program.post("/templates", json={"name": "Shops", "fields": [{"name": "code", "type": "uuid"}]})
    reference = {
        "name": "customer_id",
        "type": "reference",
        "options": {"template_id": parent["id"], "field": "id"},
    }
    price = {"name": "price", "type": "number", "options": {"min": 1, "max": 9}}
    return program.post("/templates", json={"name": "Orders", "fields": [reference, price]}).json


@pytest.fixture
def builder(edith, orders):
    return Builder(edith.page(f"/templates/{orders['id']}"))


def test_a_template_and_its_field_are_picked_by_keyboard(builder):
    field = builder.open("customer_id")
    box = field.get_by_label("Template", exact=True)
    expect(box.locator("option")).to_have_text(["choose", "This template", "Customers", "Shops"])
    box.focus()
    builder.page.keyboard.type("Shops")
    builder.page.keyboard.press("Tab")
    expect(field).to_contain_text("one of 10 rows of Shops")
    expect(field.get_by_label("Field", exact=True).locator("option")).to_have_text(["its key", "code"])
    field.get_by_label("Field", exact=True).select_option("code")
    builder.save(2)


@pytest.fixture
def existing(app, api, cast):
    """A template without fields that ask; the project has two connections to databases."""
    shop = sqlite_target(app, cast)
    sqlite_target(app, cast, "CREATE TABLE parts (code TEXT)", name="Archive")
    shop.execute("INSERT INTO customers (id, email) VALUES (4711, 'a@b.example')")
    field = {"name": "customer_id", "type": "foreign_key", "options": {
        "connection_id": shop.connection_id, "table": "orders", "column": "id"}}  # fmt: skip
    return api(cast.edith).post("/templates", json={"name": "Visits", "fields": [field]}).json


def test_a_connection_a_table_and_a_column_are_picked_by_keyboard(edith, existing):
    page = edith.page("/templates/new?names=customer_id")
    builder = Builder(page)
    field = builder.open("customer_id")
    builder.pick("existing key")
    expect(field.locator("[data-pick]")).to_have_text("Existing key")
    for label, choices, word in (
        ("Connection", ["choose", "Archive (SQLite)", "Shop (SQLite)"], "Shop"),
        ("Table", ["choose", "customers", "orders"], "customers"),
        ("Column", ["choose", "id", "email", "first_name", "age"], "id"),
    ):
        box = field.get_by_role("combobox", name=label, exact=True)
        expect(box.locator("option")).to_have_text(choices)
        box.focus()
        page.keyboard.type(word)
        page.keyboard.press("Tab")
        expect(box.locator("option:checked")).to_contain_text(word)
    builder.name("Visits of customers")
    builder.save_new()
    expect(builder.inspector.get_by_role("combobox", name="Column")).to_have_value("id")
    page.get_by_role("button", name="Later rows").click()
    expect(page.locator("#status")).to_contain_text("Rows 51")
    expect(builder.cell("customer_id")).to_have_text("4711")


def test_numbers_for_each_row_are_shown_after_typing(builder):
    field = builder.open("customer_id")
    field.get_by_label("At least").fill("1")
    field.get_by_label("At most").fill("9")
    expect(builder.state).to_contain_text("Unsaved")
    builder.page.keyboard.press("Escape")
    field = builder.open("customer_id")
    expect(field).to_contain_text("1 to 9 rows for each of 1,000 Customers: 5,000 rows")


def test_a_formula_is_put_together_from_fields_and_functions(builder):
    builder.add("gross")
    field = builder.open("gross")
    builder.pick("formula")
    expect(field.locator("[data-pick]")).to_have_text("Formula")
    text = field.get_by_label("Expression")
    formula = field.locator(".formula").first
    formula.get_by_text("Functions", exact=True).click()
    formula.get_by_label("Search functions").fill("half to even")
    formula.get_by_role("button", name="round(").click()
    formula.get_by_role("button", name="price", exact=True).click()
    expect(text).to_have_value("round(price")
    expect(builder.page.locator(".errcell")).to_be_visible()  # the parenthesis is missing
    text.press("End")
    text.press_sequentially(" * 1.19, 1)")
    expect(text).to_have_value("round(price * 1.19, 1)")
    expect(builder.page.locator(".errcell")).to_have_count(0)
    expect(text).to_be_focused()


def test_without_script_a_relation_is_picked_and_saved(desk, cast, orders):
    page = desk(cast.edith, java_script_enabled=False).page(f"/templates/{orders['id']}?field=customer_id")
    page.get_by_label("Template", exact=True).select_option(label="Shops")
    page.locator("select[name$='.o.field']").select_option("")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#inspector")).to_contain_text("one of 10 rows of Shops")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_where_things_are_picked(desk, cast, orders, existing, axe, scheme):
    olivia = desk(cast.olivia, color_scheme=scheme, bypass_csp=True)
    page = olivia.page(f"/templates/{orders['id']}?field=customer_id")
    page.wait_for_load_state("networkidle")
    page.locator("summary", has_text="Change with a formula").click()
    page.locator(".functions summary").locator("visible=true").click()
    expect(page.get_by_label("Search functions").locator("visible=true")).to_be_visible()
    found = faults_found_by_axe(page, axe)
    asks = f"/templates/{existing['id']}"
    opened = f"{asks}?field=customer_id"
    for path in (
        asks,
        opened,
        f"/templates/{orders['id']}@v1",
        f"/templates/{orders['id']}@v1/diff",
        "/builder/functions",
    ):
        page.goto(olivia.origin + path)
        page.wait_for_load_state("networkidle")
        found += faults_found_by_axe(page, axe)
    assert found == []


def test_the_selection_fits_a_narrow_screen(desk, cast, orders, existing):
    narrow = desk(cast.olivia, NARROWEST)
    page = narrow.page(f"/templates/{orders['id']}?field=customer_id")
    for path in (
        "",
        f"/templates/{orders['id']}@v1",
        f"/templates/{orders['id']}@v1/diff",
        "/builder/functions",
        f"/templates/{existing['id']}",
        f"/templates/{existing['id']}?field=customer_id",
    ):
        if path:
            page.goto(narrow.origin + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROWEST[0], path


def test_the_type_whose_very_name_is_typed_comes_first(builder):
    builder.open("price").locator("[data-pick]").press("Enter")
    search = builder.page.get_by_label("Search types")
    search.fill("name")
    expect(builder.page.locator("#t-name")).to_have_attribute("aria-selected", "true")
    search.fill("time")
    expect(builder.page.locator("#t-time")).to_have_attribute("aria-selected", "true")
