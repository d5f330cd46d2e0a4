"""Promise 18 in a real Chromium: no stored script runs in any page.

Every page of the route table is opened, in a workspace where every free text is a payload. A payload that runs calls a
counting function; one that is parsed as a script is reported as a CSP violation.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Error

from tests.promises.test_pages import pages
from tests.promises.world import World
from tests.served import served
from webapp.access.models import User
from webapp.accounts.services import sign_in
from webapp.extensions import db

COUNTS = "window.canaryRan = 0; window.canary = () => { window.canaryRan += 1; };"


@pytest.fixture(scope="module")
def origin(world: World) -> Iterator[str]:
    """The address of a server that runs the world's application, every free text a payload."""
    world.made = world.fill_with_payloads()
    with served(world.app) as address:
        yield address


@pytest.fixture(scope="module")
def context(world: World, origin: str, chromium: Browser) -> Iterator[BrowserContext]:
    """The owner's window."""
    with world.app.app_context():
        link = sign_in.create_link(db.session.get_one(User, world.cast.olivia.user_id))
        db.session.remove()
    result = chromium.new_context()
    result.set_default_timeout(30_000)
    result.add_init_script(COUNTS)
    page = result.new_page()
    page.goto(f"{origin}/sign-in/{link.rsplit('/', 1)[-1]}")
    page.locator("form button[type=submit], form button:not([type])").first.click()
    page.wait_for_url(lambda url: "/sign-in" not in url)
    page.close()
    yield result
    result.close()


def test_promise_18_no_stored_script_runs_in_a_real_browser(world, origin, context):
    page, troubles, opened = context.new_page(), [], 0
    page.on("dialog", lambda dialog: (troubles.append(f"dialog {dialog.message}"), dialog.dismiss()))
    page.on(
        "console",
        lambda text: (
            troubles.append(f"{page.url}: {text.text}") if "Content Security Policy" in text.text else None
        ),
    )
    for address in pages(world):
        shown = world.person().get(address, buffered=False)
        mimetype, status = shown.mimetype, shown.status_code
        shown.close()
        if mimetype != "text/html" or status >= 400:
            continue
        try:
            page.goto(f"{origin}{address}", wait_until="load")
        except Error as error:
            troubles.append(f"{address}: {error.message[:200]}")
            continue
        assert page.evaluate("window.canaryRan") == 0, address
        assert page.locator("x-canary").count() == 0, address
        opened += 1
    assert troubles == []
    assert opened > 60


def test_promise_18_the_function_that_counts_can_be_called(origin, context):
    page = context.new_page()
    page.goto(f"{origin}/sign-in")
    page.evaluate("window.canary()")
    assert page.evaluate("window.canaryRan") == 1
