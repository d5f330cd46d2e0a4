"""The API reference in a real browser: languages by mouse and keyboard, without script, narrow, accessible."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import NARROW, NARROWEST
from tests.browser.looking import axe, faults_found_by_axe  # noqa: F401 - a fixture

LIST = "/docs/api/templates/get-templates"
PAGES = (
    "/docs/api",
    "/docs/api/templates",
    LIST,
    "/docs/api/generate/post-generate",
    "/docs/api/secrets/post-secrets",
)


def shown(page) -> list[str]:
    """The languages whose sample can be seen."""
    return [name for name in ("curl", "python", "typescript") if page.locator(f"#p-{name}").is_visible()]


def test_a_language_chosen_by_keyboard_is_that_of_the_next_page(desk, cast):
    reader = desk(cast.edith)
    page = reader.page(LIST)
    assert shown(page) == ["curl"]
    page.locator("#t-curl").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#t-python")).to_be_focused()
    expect(page.locator("#t-python")).to_have_attribute("aria-selected", "true")
    assert shown(page) == ["python"]
    page.keyboard.press("End")
    expect(page.locator("#t-typescript")).to_be_focused()
    page.keyboard.press("Home")
    expect(page.locator("#t-curl")).to_be_focused()
    page.locator("#t-typescript").click()
    page.goto(f"{reader.origin}/docs/api/datasets/get-datasets")
    assert shown(page) == ["typescript"]
    expect(page.locator("#t-typescript")).not_to_have_attribute("tabindex", "-1")


def test_from_the_list_to_an_operation_and_on_to_its_neighbour(desk, cast):
    page = desk(cast.edith).page("/docs/api")
    page.locator("a[href='/docs/api/templates/post-templates']").click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.locator(".docs-toc").get_by_role("link", name="DELETE").first.click()
    expect(page).to_have_url(re.compile("/docs/api/templates/delete-"))
    expect(page.locator(".docs-toc [aria-current=page]")).to_have_count(1)


def test_a_sample_is_copied(desk, cast):
    reader = desk(cast.edith)
    reader.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = reader.page("/docs/api/secrets/get-secrets")
    page.locator("#p-curl").get_by_role("button", name="Copy to the clipboard").click()
    result = page.evaluate("navigator.clipboard.readText()")
    assert result.startswith(f"curl -sS {reader.origin}/secrets")


def test_without_script_all_languages_are_read(desk):
    page = desk(None, java_script_enabled=False).page(LIST)
    assert shown(page) == ["curl", "python", "typescript"]
    assert not page.locator("#t-curl").is_visible()


@pytest.mark.parametrize("size", [NARROW, NARROWEST])
def test_no_page_is_wider_than_a_narrow_screen(desk, cast, size):
    reader = desk(cast.edith, size)
    for path in PAGES:
        page = reader.page(path)
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(desk, cast, axe, scheme):
    reader = desk(cast.edith, color_scheme=scheme, bypass_csp=True)
    found = []
    for path in PAGES:
        page = reader.page(path)
        page.evaluate("document.querySelectorAll('details.keys').forEach((one) => { one.open = true; })")
        found += faults_found_by_axe(page, axe)
        page.close()
    assert not found, "\n".join(found)
