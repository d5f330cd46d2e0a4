"""The builder of templates, exports, API keys."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page

from pictures.datasets import MADE, shop


def builder(page: Page, name: str = "Customers") -> None:
    """A template in the builder."""
    page.get_by_role("link", name=name, exact=True).click()
    page.wait_for_selector("#preview td")


def open_row(page: Page) -> None:
    """A field opened, its values explained."""
    builder(page)
    page.locator(".row [aria-expanded]").nth(1).click()
    page.get_by_role("button", name="Explain the values").click()
    page.wait_for_selector(".explained")


def relations(page: Page) -> None:
    """References to other templates."""
    shop(page)
    page.goto(f"/templates/{MADE['Purchases']}")
    page.wait_for_selector("#preview td")


def relation(page: Page) -> None:
    """One of them opened."""
    relations(page)
    page.locator(".row [aria-expanded]").nth(1).click()
    page.wait_for_selector(".panel")


def formula(page: Page) -> None:
    """A formula with a fault, and the list of functions."""
    page.goto("/templates/new?names=price,quantity,total")
    page.locator(".pick").nth(2).click()
    page.get_by_label("Search types").fill("formula")
    page.wait_for_selector("#picker [aria-selected=true]")
    page.keyboard.press("Enter")
    page.wait_for_selector("[name$='.o.expression']")
    page.locator(".row [aria-expanded]").nth(2).click()
    page.locator(".panel textarea").first.fill("round(price * quantity * * 1.19, 2)")
    page.wait_for_selector(".formula .fault mark")
    page.locator(".functions summary").first.click()
    page.get_by_label("Search functions").first.fill("round")


def version(page: Page) -> None:
    """An older version."""
    shop(page)
    page.goto(f"/templates/{MADE['Purchases']}@v1")


def fault(page: Page) -> None:
    """A fault at its field."""
    page.goto("/templates/new?names=id,email,quantity,price")
    page.locator(".row").nth(2).locator("input[name$='.o.min']").fill("90")
    page.locator(".row").nth(2).locator("input[name$='.o.max']").fill("10")
    page.wait_for_selector("#preview .faults")


def nested(page: Page) -> None:
    """Objects and lists inside a row."""
    builder(page, "Order documents")


def picker(page: Page) -> None:
    """The type picker."""
    builder(page)
    page.locator(".pick").nth(1).click()
    page.get_by_label("Search types").fill("name")
    page.wait_for_selector("#picker [aria-selected=true]")


def grid(page: Page) -> None:
    """A million rows in the grid."""
    builder(page)
    page.locator("#grid-count").fill("1000000")
    page.locator("#generate").click()
    page.wait_for_selector("#grid td")
    page.locator("#results").scroll_into_view_if_needed()


def tab(name: str, ready: str) -> Callable[[Page], None]:
    """A tab of the builder; `ready` is on it."""

    def show(page: Page) -> None:
        builder(page)
        page.get_by_role("tab", name=name).click()
        page.wait_for_selector(ready)

    return show


def versions(page: Page) -> None:
    """Two versions compared."""
    builder(page)
    blank = page.locator("[name$='.percent_blank']")
    for field, number in ((-1, "50"), (5, "60")):
        blank.nth(field).fill(number if blank.nth(field).input_value() != number else "25")
    page.locator("#save").click()
    page.wait_for_selector("[data-toast]")
    page.get_by_role("tab", name="Versions").click()
    page.get_by_role("button", name="Compare").first.click()
    page.wait_for_selector("#diff td")
    page.locator("[data-toast] [data-close]").click()


def export(page: Page) -> None:
    """The export dialog."""
    builder(page)
    page.get_by_role("button", name="Export").click()
    page.locator(".formats label", has_text="SQL").click()
    page.locator("#x-count").fill("250000")
    page.wait_for_selector("#estimate b")


def export_done(page: Page) -> None:
    """A file that is ready."""
    export(page)
    page.get_by_role("button", name="In the background").click()
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
