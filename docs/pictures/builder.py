"""The builder of templates, exports, API keys."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page

from pictures.datasets import MADE, shop


def builder(page: Page, name: str = "Customers") -> None:
    """A template in the builder."""
    page.get_by_role("link", name=name, exact=True).click()
    page.wait_for_selector(".cells td")


def open_field(page: Page, number: int) -> None:
    """A field in the inspector."""
    page.locator(".colhead[data-field]").nth(number).click()
    page.wait_for_selector(".insp .stats")


def open_row(page: Page) -> None:
    """A field in the inspector, with the distribution of its values."""
    builder(page)
    open_field(page, 1)


def relations(page: Page) -> None:
    """References to other templates."""
    shop(page)
    page.goto(f"/templates/{MADE['Purchases']}")
    page.wait_for_selector(".cells td")


def relation(page: Page) -> None:
    """One of them opened."""
    relations(page)
    open_field(page, 1)


def formula(page: Page) -> None:
    """A formula with a fault, and the list of functions."""
    page.goto("/templates/new?names=price,quantity,total")
    open_field(page, 2)
    page.locator("[data-pick]").click()
    page.get_by_label("Search types").fill("formula")
    page.wait_for_selector("#picker [aria-selected=true]")
    page.keyboard.press("Enter")
    page.locator("[name$='.o.expression']").fill("round(price * quantity * * 1.19, 2)")
    page.wait_for_selector(".errcell")
    page.locator(".functions summary").first.click()
    page.get_by_label("Search functions").first.fill("round")


def version(page: Page) -> None:
    """An older version."""
    shop(page)
    page.goto(f"/templates/{MADE['Purchases']}@v1")


def fault(page: Page) -> None:
    """A fault at its field."""
    page.goto("/templates/new?names=id,email,quantity,price")
    open_field(page, 2)
    page.locator("input[name$='.o.min']").fill("90")
    page.locator("input[name$='.o.max']").fill("10")
    page.wait_for_selector(".errcell")


def nested(page: Page) -> None:
    """Objects and lists inside a row."""
    builder(page, "Order documents")


def picker(page: Page) -> None:
    """The type picker."""
    builder(page)
    open_field(page, 1)
    page.locator("[data-pick]").click()
    page.get_by_label("Search types").fill("name")
    page.wait_for_selector("#about-type table")


def grid(page: Page) -> None:
    """The list of fields."""
    builder(page)
    page.locator(".toolbar .seg a", has_text="List").click()
    page.wait_for_selector(".flist")


def tab(name: str, ready: str) -> Callable[[Page], None]:
    """A view of the builder; `ready` is on it."""

    def show(page: Page) -> None:
        builder(page)
        page.goto(f"{page.url.partition('?')[0]}?view={name.lower()}")
        page.wait_for_selector(ready)

    return show


def versions(page: Page) -> None:
    """Two versions compared."""
    builder(page)
    open_field(page, 1)
    blank = page.locator("input[type=number][name$='.percent_blank']")
    blank.fill("50" if blank.input_value() != "50" else "25")
    page.locator("#save").click()
    page.wait_for_selector("[data-toast]")
    page.goto(f"{page.url.partition('?')[0]}?view=versions")
    page.get_by_role("button", name="Compare").first.click()
    page.wait_for_selector("#diff td")


def export(page: Page) -> None:
    """The export dialog."""
    builder(page)
    page.get_by_role("button", name="Download options").click()
    page.get_by_role("link", name="All options").click()
    page.locator(".formats label", has_text="SQL").click()
    page.locator("#x-count").fill("250000")
    page.wait_for_selector("#estimate b")


def export_done(page: Page) -> None:
    """A file that is ready."""
    export(page)
    page.get_by_role("button", name="Run in background").click()
    page.wait_for_selector("a:has-text('Download')", timeout=60_000)


def new_key(page: Page) -> None:
    """A key that was just made."""
    page.goto("/api-keys")
    page.locator("#new-key summary").click()
    page.locator("#name").fill("Nightly build")
    page.get_by_label("read").check()
    page.get_by_label("generate").check()
    page.get_by_role("button", name="Create key").click()
    page.wait_for_selector(".made")
