"""A newcomer makes customers, orders and lines in the browser and has them as one workbook and one SQL file."""

from __future__ import annotations

import re

import openpyxl
import psycopg
import pytest
import sqlalchemy as sa
from playwright.sync_api import Page, expect

from jobs import exports
from tests.browser.builder import Builder
from webapp.extensions import db


def template(person, name: str, fields: dict[str, str]) -> Builder:
    """A template that is not saved, with these fields and the labels of their types."""
    builder = Builder(person.page(f"/templates/new?names={','.join(fields)}"))
    builder.name(name)
    for field, label in fields.items():
        inspector = builder.open(field)
        builder.pick(label)
        expect(inspector.locator("[data-pick]")).to_have_text(label)
    return builder


def relate(
    builder: Builder, field: str, to: str, shown: str, least: int | None = None, most: int | None = None
) -> None:
    """Lets a field refer to a field of another template."""
    inspector = builder.open(field)
    inspector.get_by_label("Template", exact=True).select_option(label=to)
    expect(
        inspector.get_by_label("Field", exact=True).locator("option", has_text=shown).first
    ).to_be_attached()
    inspector.get_by_label("Field", exact=True).select_option(label=shown)
    if least is not None:
        inspector.get_by_label("At least").fill(str(least))
        inspector.get_by_label("At most").fill(str(most))


def export(page: Page, app, format: str, folder):
    """The dataset as a file of one format."""
    dataset = page.url.partition("#")[0]
    page.get_by_role("button", name=re.compile("^Destination")).click()
    dialog = page.get_by_role("dialog", name="Destination")
    dialog.locator(".formats label", has_text=format).click()
    if format == "SQL":
        dialog.get_by_label("Create table").select_option("true")
        dialog.get_by_label("Dialect").select_option("postgresql")
    dialog.get_by_role("button", name="Create file").click()
    page.wait_for_url("**/exports/exp_*")
    with app.app_context():
        exports.run(page.url.rsplit("/", 1)[1])
        db.session.remove()
    with page.expect_download() as found:
        page.get_by_role("link", name="Download").click()
    path = folder / found.value.suggested_filename
    found.value.save_as(path)
    page.goto(dataset)
    return path


@pytest.fixture
def shop(edith) -> Page:
    """The page of a dataset of three templates, all made by hand."""
    template(edith, "customers", {"id": "Row number", "name": "Full name", "email": "E-mail"}).save_new()
    orders = template(edith, "orders", {"id": "Row number", "customer_id": "Reference", "placed": "Date"})
    relate(orders, "customer_id", "customers", "id", 1, 5)
    orders.save_new()
    lines = template(edith, "lines", {"id": "Row number", "order_id": "Reference", "amount": "Number"})
    relate(lines, "order_id", "orders", "id", 1, 9)
    lines.save_new()
    page = edith.page("/datasets/new")
    page.get_by_label("Name").fill("shop")
    for name in ("customers", "orders", "lines"):
        page.get_by_label(re.compile(f"^{name}")).check()
    page.get_by_role("button", name="Create dataset").click()
    page.wait_for_url("**/datasets/dst_*")
    page.get_by_label("Rows in customers").fill("200")
    page.keyboard.press("Tab")
    expect(page.locator("#state")).to_contain_text("v2 · saved")
    expect(page.locator("#summary")).to_contain_text("3,800 rows")
    return page


def test_three_templates_made_by_hand_go_into_one_workbook_and_whole_into_postgresql(
    shop, app, tmp_path, postgres_url
):
    book = openpyxl.load_workbook(export(shop, app, "Excel", tmp_path), read_only=True)
    sheets = {sheet.title: list(sheet.iter_rows(values_only=True)) for sheet in book}
    assert {name: len(rows) - 1 for name, rows in sheets.items()} == {
        "customers": 200,
        "orders": 600,
        "lines": 3000,
    }
    orders = {row[0]: row for row in sheets["orders"][1:]}
    assert {row[1] for row in sheets["lines"][1:]} == set(orders)
    assert {row[1] for row in orders.values()} == {row[0] for row in sheets["customers"][1:]}

    script = export(shop, app, "SQL", tmp_path).read_text()
    address = sa.make_url(postgres_url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(address, autocommit=True) as database:
        database.execute(script)
        found = database.execute(
            "SELECT (SELECT count(*) FROM customers),"
            " (SELECT count(*) FROM orders JOIN customers c ON c.id = customer_id),"
            " (SELECT count(*) FROM lines JOIN orders o ON o.id = order_id)"
        ).fetchone()
        keys = database.execute("SELECT count(*) FROM pg_constraint WHERE contype = 'f'").fetchone()
    assert found == (200, 600, 3000)
    assert keys == (2,)
