"""The documentation by keyboard, and its list of pages on a narrow screen."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import NARROW


def test_search_by_keyboard_leads_to_a_heading(desk):
    reader = desk()
    page = reader.page("/docs/reference/settings")
    page.keyboard.press("/")
    box = page.get_by_role("searchbox", name="Search the documentation")
    expect(box).to_be_focused()
    page.keyboard.type("zip code")
    first = page.locator("#docs-found a").first
    expect(first).to_have_attribute("href", "/docs/field-types/place#zip_code")
    expect(first.locator("mark").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(first).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(box).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{reader.origin}/docs/field-types/place#zip_code")
    expect(page.locator("#zip_code")).to_be_in_viewport()


def test_escape_puts_the_results_away(desk):
    page = desk().page("/docs")
    page.keyboard.press("/")
    page.keyboard.type("seed")
    expect(page.locator("#docs-found a").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#docs-found a")).to_have_count(0)
    expect(page.get_by_role("searchbox", name="Search the documentation")).to_be_focused()


def test_enter_without_script_searches_too(desk):
    page = desk(java_script_enabled=False).page("/docs")
    page.get_by_role("searchbox", name="Search the documentation").fill("determinism")
    page.keyboard.press("Enter")
    page.wait_for_url("**/docs/search?q=determinism")
    expect(page.locator(".docs-results a").first).to_have_attribute("href", "/docs/guide/determinism")


def test_code_is_copied_unchanged(desk):
    reader = desk()
    reader.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = reader.page("/docs/guide/start")
    page.get_by_role("button", name="Copy to the clipboard").first.click()
    expect(page.locator("#toasts")).to_contain_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "./rowsmith up"


def test_the_list_of_pages_is_open_on_wide_screens_and_folded_on_narrow_ones(desk):
    wide = desk().page("/docs/guide/start")
    link = wide.get_by_role("navigation", name="Documentation").get_by_role("link", name="Relations")
    expect(link).to_be_visible()
    narrow = desk(size=NARROW).page("/docs/guide/start")
    link = narrow.get_by_role("navigation", name="Documentation").get_by_role("link", name="Relations")
    expect(link).to_be_hidden()
    narrow.get_by_text("All pages").focus()
    narrow.keyboard.press("Enter")
    expect(link).to_be_visible()
    link.click()
    narrow.wait_for_url(re.compile("/docs/guide/relations$"))
