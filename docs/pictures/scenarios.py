"""Pictures of scenarios and their runs."""

from __future__ import annotations

from playwright.sync_api import Page, expect

FIRST = "Customers with their orders"
JOINED = "Fetch, join, post"
_LONG = 120_000  # milliseconds: the first run with packages fetches them


def scenario(page: Page, name: str = JOINED) -> None:
    """A program in the editor."""
    page.goto("/scenarios")
    page.get_by_role("link", name=name, exact=True).click()
    page.wait_for_selector(".CodeMirror")


def completion(page: Page) -> None:
    """Names of the SDK after a dot."""
    scenario(page, FIRST)
    editor = page.locator(".CodeMirror-code")
    editor.click()
    page.keyboard.press("Control+Home")
    for _ in range(20):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Home")
    page.keyboard.type("rows = client.")
    page.wait_for_selector(".CodeMirror-hints")


def settings(page: Page) -> None:
    """How the nightly one runs."""
    scenario(page, "Nightly CSV")
    page.get_by_role("link", name="Settings").last.click()


def run(page: Page) -> None:
    """A run that has ended, with its log, outputs and resources."""
    page.goto("/scenarios")
    page.get_by_role("button", name=f"Run {FIRST}").click()
    page.wait_for_url("**/runs/run_*")
    expect(page.locator("#work .badge")).to_have_text("Completed", timeout=_LONG)


def history(page: Page) -> None:
    """The runs of one scenario."""
    run(page)
    page.get_by_role("navigation", name="You are here").get_by_role("link", name="Runs").click()


def versions(page: Page) -> None:
    """Two versions, compared."""
    scenario(page)
    page.get_by_role("link", name="Versions").click()
    page.get_by_role("link", name="Compare").first.click()
    page.wait_for_selector(".diff")
