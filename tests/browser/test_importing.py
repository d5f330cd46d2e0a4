"""Importing in the browser: review a file, change a type, create templates, and apply parts of a changed schema."""

from __future__ import annotations

from pathlib import Path

SCHEMA = """CREATE TABLE customers (id INT PRIMARY KEY, email VARCHAR(120) NOT NULL UNIQUE, city VARCHAR(40), old INT);
CREATE TABLE orders (id INT PRIMARY KEY, customer_id INT NOT NULL REFERENCES customers (id), spot GEOMETRY NOT NULL);"""
CHANGED = "CREATE TABLE customers (id INT PRIMARY KEY, email VARCHAR(120) NOT NULL UNIQUE, phone VARCHAR(30), city INT)"


def test_a_file_is_previewed_imported_and_updated(desk, cast, tmp_path: Path):
    edith = desk(cast.edith)
    file = tmp_path / "shop.sql"
    file.write_text(SCHEMA)
    page = edith.page("/import")
    page.set_input_files("#file", file)
    page.get_by_role("button", name="Review").click()
    page.get_by_text("Nothing is created yet").wait_for()
    assert page.get_by_text("0 to check, 2 unknown").is_visible()
    city = page.get_by_label("Field type of customers.city")
    assert city.input_value() == "City"
    city.fill("Country")
    city.press("Tab")
    page.wait_for_function(
        "document.querySelector('#sample-2 span') && !document.querySelector('#sample-2 .bad')"
    )
    page.get_by_role("button", name="Create 2 templates and a dataset").click()
    page.get_by_role("link", name="Open dataset").wait_for()
    assert not page.get_by_role("button", name="Create").count(), "the form cannot be sent twice"
    page.get_by_role("link", name="customers", exact=True).click()
    page.get_by_role("button", name="More").click()
    page.get_by_role("link", name="Import a changed schema").click()
    file.write_text(CHANGED)
    page.set_input_files("#file", file)
    page.get_by_role("button", name="Compare").click()
    page.get_by_text("added", exact=True).wait_for()
    page.get_by_label("city", exact=True).uncheck()
    page.get_by_role("button", name="Apply selected changes").click()
    page.get_by_text("1 column updated in version 2").wait_for()


def test_no_page_of_imports_is_wider_than_a_phone(desk, cast):
    page = desk(cast.edith, (320, 700)).page("/import")
    page.fill("#content", SCHEMA)
    page.get_by_role("button", name="Review").click()
    page.get_by_text("Nothing is created yet").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
