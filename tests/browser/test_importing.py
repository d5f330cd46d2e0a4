"""Importing by hand: a file chosen, looked at, made; a changed schema compared and partly taken over."""

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
    page.get_by_role("button", name="Look first").click()
    page.get_by_text("Nothing is saved yet").wait_for()
    assert page.get_by_text("1 not understood").is_visible()
    page.get_by_role("button", name="Make templates").click()
    page.get_by_text("2 linked templates").wait_for()
    page.get_by_role("link", name="customers", exact=True).click()
    page.get_by_text("Imported from shop.sql").click()
    page.get_by_role("link", name="Import a changed schema").click()
    file.write_text(CHANGED)
    page.set_input_files("#file", file)
    page.get_by_role("button", name="Compare").click()
    page.get_by_text("added", exact=True).wait_for()
    page.get_by_label("city", exact=True).uncheck()
    page.get_by_role("button", name="Take the ticked columns over").click()
    page.get_by_text("1 column taken over into version 2").wait_for()


def test_no_page_of_imports_is_wider_than_a_phone(desk, cast):
    page = desk(cast.edith, (320, 700)).page("/import")
    page.fill("#content", SCHEMA)
    page.get_by_role("button", name="Look first").click()
    page.get_by_text("Nothing is saved yet").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
