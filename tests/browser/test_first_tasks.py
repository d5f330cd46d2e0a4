"""The first three tasks of a new user, from the home page, with the number of clicks and keystrokes that each takes.

`-s` prints the numbers. Choosing a file in the system's dialog counts as one click, pasting as one keystroke.
"""

from __future__ import annotations

import csv
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from playwright.sync_api import Locator, Page, expect

from jobs.pushes import push as job
from tests.cast import Program
from webapp.extensions import db

SCHEMA = """
CREATE TABLE customers (
    id INTEGER PRIMARY KEY, email VARCHAR(120) NOT NULL UNIQUE, full_name VARCHAR(80) NOT NULL, city VARCHAR(60)
);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers (id), placed_at TIMESTAMP NOT NULL,
    total NUMERIC(9, 2) NOT NULL CHECK (total >= 0)
);
CREATE TABLE order_items (
    id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL REFERENCES orders (id), sku VARCHAR(20) NOT NULL,
    quantity INTEGER NOT NULL CHECK (quantity BETWEEN 1 AND 20)
);
"""
FIRST, LAST = ("Anna", "Jürgen", "Mia", "Günther"), ("Müller", "Schäfer", "Weiß", "Köhler", "Brandt")


class Hand:
    """Does what a user does, and counts it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = self.keys = 0

    def click(self, target: Locator) -> None:
        self.clicks += 1
        target.click()

    def choose_file(self, target: Locator, path: Path) -> None:
        self.clicks += 2  # the button, and "Open" of the system's dialog
        with self.page.expect_file_chooser() as chooser:
            target.click()
        chooser.value.set_files(path)

    def paste(self, text: str) -> None:
        """Paste into what has the focus."""
        self.keys += 1
        self.page.evaluate("text => navigator.clipboard.writeText(text)", text)
        self.page.keyboard.press("Control+v")

    def download(self, target: Locator, folder: Path) -> Path:
        with self.page.expect_download() as found:
            self.click(target)
        path = folder / found.value.suggested_filename
        found.value.save_as(path)
        return path

    def told(self, task: str) -> None:
        print(f"\n{task}: {self.clicks} clicks, {self.keys} keystrokes")


@pytest.fixture
def hand(desk, cast) -> Hand:
    """Edith at the home page."""
    return Hand(desk(cast.edith, permissions=["clipboard-read", "clipboard-write"]).page("/"))


def test_a_thousand_customers_as_csv_take_three_clicks(hand, tmp_path):
    page = hand.page
    hand.click(page.get_by_role("link", name="Blank template", exact=True))
    hand.click(page.get_by_role("link", name="Shop customers"))
    path = hand.download(page.get_by_role("button", name="Download", exact=True), tmp_path)
    hand.told("1,000 customers as CSV")
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    assert path.name == "customers.csv"
    assert len(rows) == 1000
    assert {"first_name", "last_name", "email", "city"} <= rows[0].keys()
    assert (hand.clicks, hand.keys) <= (3, 0)


def test_a_pasted_schema_fills_postgresql_in_six_clicks(hand, app, cast, postgres_url):
    address = sa.make_url(postgres_url).set(drivername="postgresql").render_as_string(hide_password=False)
    created = Program(app, cast.edith.key).post(
        "/connections", json={"name": "Staging shop", "type": "postgresql", "connection_string": address}
    )
    assert created.status_code == 201, created.text
    page = hand.page
    hand.click(page.get_by_role("link", name="Import a file or schema"))
    page.wait_for_url("**/import")
    expect(page.get_by_label("Or paste it here")).to_be_focused()
    hand.paste(SCHEMA)
    hand.click(page.get_by_role("button", name="Review"))
    hand.click(page.get_by_role("button", name="Create 3 templates and a dataset"))
    hand.click(page.get_by_role("link", name="Send to a database"))
    expect(page.get_by_label("Connection", exact=True)).to_have_value(created.json["id"])
    hand.click(page.get_by_role("button", name="Push", exact=True))
    page.wait_for_url("**/pushes/psh_*")
    hand.told("Three related tables from a pasted schema into PostgreSQL")
    with app.app_context():
        job.run(page.url.rsplit("/", 1)[1])
        db.session.remove()
    expect(page.locator("#work")).to_contain_text("Completed")
    with psycopg.connect(address) as database:
        found = database.execute(
            "SELECT (SELECT count(*) FROM customers),"
            " (SELECT count(*) FROM orders JOIN customers c ON c.id = customer_id),"
            " (SELECT count(*) FROM order_items JOIN orders o ON o.id = order_id)"
        ).fetchone()
    assert all(found), found
    assert hand.clicks <= 6
    assert hand.keys <= 1


def test_a_masked_copy_of_a_german_customer_file_takes_six_clicks(hand, tmp_path):
    source = tmp_path / "kunden.csv"
    lines = [
        f"{4000 + n};{FIRST[n % 4]};{LAST[n % 5]};person{n}@firma{n % 9}.example;{1 + n % 28:02}.{1 + n % 12:02}."
        f"{1950 + n % 50};+49 170 {1_000_000 + 13 * n};DE{10**19 + n * 7919 + 89 * 10**18:020};{n % 97},50"
        for n in range(2_345)
    ]
    head = "Kundennummer;Vorname;Nachname;E-Mail;Geburtsdatum;Telefon;IBAN;Umsatz"
    source.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    page = hand.page
    hand.click(page.get_by_role("link", name="Mask real data"))
    hand.choose_file(page.get_by_label("Upload a file"), source)
    hand.click(page.get_by_role("button", name="Detect personal data"))
    for name in ("Vorname", "Nachname", "E-Mail", "Geburtsdatum", "Telefon", "IBAN"):
        expect(page.get_by_label(f"{name} is personal")).to_be_checked()
    expect(page.get_by_label("Umsatz is personal")).not_to_be_checked()
    hand.click(page.get_by_role("button", name="Create template"))
    page.wait_for_url("**/templates/tpl_*")
    path = hand.download(page.get_by_role("button", name="Download", exact=True), tmp_path)
    hand.told("Masked copy of a German customer file")
    text = path.read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    assert len(rows) == 2_345, "a masked copy has all rows of its source"
    real = list(csv.DictReader(source.read_text(encoding="utf-8").splitlines(), delimiter=";"))
    for column in ("E-Mail", "Telefon", "IBAN"):
        assert not {row[column] for row in real} & {row[column] for row in rows}, column
    same = [
        column
        for before, after in zip(real, rows, strict=True)
        for column in ("Vorname", "Nachname", "Geburtsdatum")
        if before[column] == after[column]
    ]
    assert same == []
    assert [row["Umsatz"] for row in rows[:3]] == ["0,50", "1,50", "2,50"]
    assert hand.clicks <= 6
    assert hand.keys == 0
