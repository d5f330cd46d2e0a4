"""A real Chromium against a real server on loopback.

What a page logs as an error, an exception in it, a refusal by the Content-Security-Policy and a script's dialog
are collected, and fail the test at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from flask import Flask
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.cast import Person
from tests.served import served
from webapp.access.models import User
from webapp.accounts.services import sign_in
from webapp.extensions import db

# A machine may have much else to do; the first search of a process reads all of the documentation.
expect.set_options(timeout=15_000)
WIDE, NARROW, NARROWEST = (1280, 800), (390, 844), (320, 700)
# A refused save and a missing page are answers the tests ask for, and browsers log them; htmx logs a request that
# leaving the page cut off.
_EXPECTED = (
    "status of 404",
    "status of 409",
    "status of 412",
    "status of 422",
    "Response Status Error Code 4",
    "htmx:afterRequest",
    "htmx:sendAbort",
)


@pytest.fixture
def origin(app: Flask) -> Iterator[str]:
    """The address of a server that runs `app`."""
    with served(app) as address:
        yield address


class Desk:
    """A browser window of one user, which records errors and other unexpected events."""

    def __init__(self, context: BrowserContext, origin: str) -> None:
        self.context, self.origin = context, origin
        self.troubles: list[str] = []
        context.set_default_timeout(20_000)

    def page(self, path: str = "/") -> Page:
        page = self.context.new_page()
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.troubles.append(f"exception: {error}"))
        page.on("dialog", self._dialog)
        page.goto(self.origin + path)
        return page

    def _console(self, message: object) -> None:
        if message.type == "error" and not any(text in message.text for text in _EXPECTED):
            self.troubles.append(f"console: {message.text}")

    def _dialog(self, dialog: object) -> None:
        if dialog.type == "beforeunload":
            dialog.accept()
            return
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()


@pytest.fixture
def desk(app: Flask, origin: str, chromium: Browser, tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    """`desk(cast.edith)`: a browser with Edith signed in by a one-time link; `desk()`: an anonymous browser."""
    open_ones: list[Desk] = []

    def make(person: Person | None = None, size: tuple[int, int] = WIDE, **how: object) -> Desk:
        context = chromium.new_context(viewport={"width": size[0], "height": size[1]}, **how)
        result = Desk(context, origin)
        open_ones.append(result)
        if person is not None:
            with app.app_context():
                token = sign_in.create_link(db.session.get_one(User, person.user_id))
                db.session.remove()
            page = result.page(f"/sign-in/{token}")
            page.get_by_role("button", name="Sign in").click()
            page.wait_for_url(f"{origin}/")
            page.close()
        return result

    yield make
    for item in open_ones:
        for page in item.context.pages:
            page.unroute_all(behavior="ignoreErrors")  # a route may still wait for its delay
        item.context.close()
    assert [trouble for item in open_ones for trouble in item.troubles] == []


@pytest.fixture
def edith(desk: Callable[..., Desk], cast: object) -> Desk:
    return desk(cast.edith)
