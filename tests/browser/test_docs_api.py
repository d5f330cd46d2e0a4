"""The API reference in a real browser: languages by mouse and keyboard, without script, narrow, accessible."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import NARROW, NARROWEST
from tests.browser.looking import axe, faults_found_by_axe  # noqa: F401 - a fixture

PAGES = ("/docs/api", "/docs/api/templates", "/docs/api/generate", "/docs/api/secrets")


def shown(page, place: int) -> list[str]:
    """The languages whose sample of an operation can be seen."""
    names = ("curl", "python", "typescript")
    return [name for name in names if page.locator(f"#p{place}-{name}").is_visible()]


def test_a_language_chosen_by_keyboard_is_that_of_every_sample_and_of_the_next_page(desk, cast):
    reader = desk(cast.edith)
    page = reader.page("/docs/api/templates")
    assert [shown(page, place) for place in (1, 4)] == [["curl"], ["curl"]]
    tab = page.locator("#t4-curl")
    tab.focus()
    before = tab.bounding_box()["y"]
    page.keyboard.press("ArrowRight")
    expect(page.locator("#t4-python")).to_be_focused()
    expect(page.locator("#t1-python")).to_have_attribute("aria-selected", "true")
    assert [shown(page, place) for place in (1, 4)] == [["python"], ["python"]]
    assert abs(page.locator("#t4-python").bounding_box()["y"] - before) < 2  # the page stays where it was
    page.keyboard.press("End")
    expect(page.locator("#t4-typescript")).to_be_focused()
    page.keyboard.press("Home")
    expect(page.locator("#t4-curl")).to_be_focused()
    page.locator("#t2-typescript").click()
    page.goto(f"{reader.origin}/docs/api/datasets")
    assert shown(page, 1) == ["typescript"]
    expect(page.locator("#t1-typescript")).not_to_have_attribute("tabindex", "-1")


def test_a_sample_is_copied(desk, cast):
    reader = desk(cast.edith)
    reader.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = reader.page("/docs/api/secrets")
    page.locator("#p1-curl").get_by_role("button", name="Copy to the clipboard").click()
    told = page.evaluate("navigator.clipboard.readText()")
    assert told.startswith(f"curl -sS {reader.origin}/secrets")


def test_without_script_all_languages_are_read(desk):
    page = desk(None, java_script_enabled=False).page("/docs/api/templates")
    assert shown(page, 1) == ["curl", "python", "typescript"]
    assert not page.locator("#t1-curl").is_visible()


@pytest.mark.parametrize("size", [NARROW, NARROWEST])
def test_no_page_is_wider_than_a_narrow_screen(desk, cast, size):
    reader = desk(cast.edith, size)
    for path in PAGES:
        page = reader.page(path)
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(desk, cast, axe, scheme):  # noqa: F811
    reader = desk(cast.edith, color_scheme=scheme, bypass_csp=True)
    found = []
    for path in PAGES:
        page = reader.page(path)
        page.evaluate("document.querySelectorAll('details.keys').forEach((one) => { one.open = true; })")
        found += faults_found_by_axe(page, axe)
        page.close()
    assert not found, "\n".join(found)
