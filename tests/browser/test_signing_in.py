"""Signing in, the second factor and the list of sessions, in a real browser, with the keyboard only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pyotp
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NARROWEST
from tests.cast import PASSWORD
from tests.fakes.oidc_provider import OidcProvider

KEYS = 40  # of one page; more than any has to be pressed


@pytest.fixture(scope="module")
def provider() -> Iterator[OidcProvider]:
    result = OidcProvider()
    yield result
    result.stop()


@pytest.fixture
def settings(settings, provider):
    return replace(settings, **provider.settings)


def tab_to(page: Page, text: str) -> None:
    """Press Tab until what has the focus shows this text, or is labelled by it."""
    reported = "e => (e.textContent.trim() || (e.labels && e.labels[0] || {}).textContent || e.ariaLabel || '').trim()"
    for _ in range(KEYS):
        page.keyboard.press("Tab")
        if page.evaluate(f"({reported})(document.activeElement)").startswith(text):
            return
    raise AssertionError(f"the keyboard does not get to {text!r}")


def fits(page: Page) -> bool:
    return page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_the_provider_is_reached_and_left_by_keyboard_and_one_is_where_one_wanted_to_be(
    desk, origin, provider
):
    page = desk().page("/projects")
    tab_to(page, "Sign in with Acme SSO")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{provider.issuer}/authorize**")
    page.get_by_label("Who are you?").select_option("edith")
    page.get_by_role("button", name="Continue").press("Enter")
    page.wait_for_url(f"{origin}/projects")


def test_cancelling_at_the_provider_shows_the_reason_on_the_sign_in_page(desk, origin):
    page = desk().page("/sign-in")
    page.get_by_role("link", name="Sign in with Acme SSO").click()
    page.get_by_role("button", name="Cancel").click()
    page.wait_for_url(f"{origin}/sign-in?problem=stopped")
    expect(page.get_by_role("alert")).to_contain_text("Acme SSO rejected the sign-in, or you cancelled it.")
    assert fits(page)


def test_a_second_factor_is_set_up_used_and_turned_off_by_keyboard(desk, origin, cast):
    page = desk(cast.edith, NARROWEST).page("/me/two-factor")
    tab_to(page, "Set up two-factor sign-in")
    page.keyboard.press("Enter")
    expect(page.locator(".qr")).to_be_visible()
    assert fits(page)
    phone = pyotp.TOTP(page.locator("#totp-key").inner_text().strip())
    tab_to(page, "Code")
    page.keyboard.type(phone.now())
    tab_to(page, "Your password")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Your recovery codes")).to_be_visible()
    recovery = page.locator("#recovery-codes").inner_text().split()
    assert fits(page)

    other = desk(size=NARROWEST).page("/sign-in")
    tab_to(other, "E-mail address")
    other.keyboard.type(cast.edith.email)
    tab_to(other, "Password")
    other.keyboard.type(PASSWORD)
    other.keyboard.press("Enter")
    other.wait_for_url(f"{origin}/sign-in/code")
    expect(other.get_by_label("Code", exact=True)).to_be_focused()
    other.keyboard.type("000000")
    other.keyboard.press("Enter")
    expect(other.get_by_label("Code", exact=True)).to_have_accessible_description(
        re.compile("This code is incorrect")
    )
    expect(other.get_by_label("Code", exact=True)).to_be_focused()
    tab_to(other, "I can't access my authenticator")
    other.keyboard.press("Enter")
    tab_to(other, "Recovery code")
    other.keyboard.type(recovery[0])
    other.keyboard.press("Enter")
    other.wait_for_url(f"{origin}/")
    expect(other.get_by_text("9 are left")).to_be_visible()

    page.goto(f"{origin}/me/two-factor")
    off = page.locator("section", has_text="Turn it off")
    off.get_by_label("Your password").fill(PASSWORD)
    off.get_by_label("Code or recovery code").fill(recovery[1])
    off.get_by_role("button", name="Turn off two-factor sign-in").press("Enter")
    page.wait_for_url(f"{origin}/me")
    expect(page.get_by_text("Two-factor sign-in is off.")).to_be_visible()


def test_other_browsers_are_seen_and_signed_out(desk, origin, cast):
    here, there = desk(cast.edith).page("/me"), desk(cast.edith).page("/projects")
    here.reload()
    expect(here.get_by_text("this browser", exact=True)).to_have_count(1)
    here.get_by_role("button", name="Sign out all others").press("Enter")
    expect(here.get_by_text("1 other session ended.")).to_be_visible()
    there.reload()
    there.wait_for_url(f"{origin}/sign-in?next=%2Fprojects")
