"""Every page of the application in a real browser: axe in light and dark, 320 to 2560 px, the keyboard, no shift,
and the size of its HTML.

The pages are those that a walk over the URL map finds, so one that is added is looked at from its first day; what
else answers a browser with HTML is named, with the reason, in `everything.NO_PAGE`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.browser import everything
from tests.browser.everything import Acts, Strangers
from tests.browser.looking import COUNTS_SHIFTS, axe, colours, heavy, keyboard, settled, shifts, widths  # noqa: F401
from tests.cast import Person
from tests.conftest import ON_POSTGRES, close_app, settings_for
from tests.promises.world import World
from tests.served import served
from webapp import create_app
from webapp.access.models import User
from webapp.accounts.services import sign_in
from webapp.engine.data import vocab_lock
from webapp.extensions import db, redis_client
from webapp.row_templates.services import vocabularies

pytestmark = pytest.mark.skipif(ON_POSTGRES, reason="what a page looks like does not depend on the database")
WINDOW = {"viewport": {"width": 1280, "height": 800}, "bypass_csp": True, "reduced_motion": "reduce"}
PARTS = 6
"""Of a long list, so that no test takes long."""


@pytest.fixture(scope="module")
def world(
    peopled: tuple[Path, object], shared_redis: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """An application with an object of every kind."""
    folder = tmp_path_factory.mktemp("every")
    path, cast = peopled
    shutil.copyfile(path, folder / "every.db")
    oidc = {"oidc_issuer": "https://sso.example.com", "oidc_client_id": "r", "oidc_client_secret": "s"}
    app = create_app(
        settings_for(f"sqlite:///{folder}/every.db", shared_redis, folder, oidc_name="Acme SSO", **oidc)
    )
    with app.app_context():
        redis_client().flushdb()
        vocabularies.record_stored(vocab_lock.current_entry().id)
    yield World(app, cast)
    close_app(app)


@pytest.fixture(scope="module")
def origin(world: World) -> Iterator[str]:
    """The address of a server that runs it."""
    with served(world.app) as address:
        yield address


@pytest.fixture(scope="module")
def walked(world: World) -> tuple[dict[str, str], dict[str, str]]:
    """See `everything.walk`."""
    return everything.walk(world)


thrown: list[str] = []
"""What scripts of the pages threw since the last look."""


@pytest.fixture(scope="module")
def window(chromium: Browser, world: World, origin: str) -> Iterator[Callable[[Person | None], Page]]:
    """`window(cast.olivia)`: a page with Olivia signed in; `window(None)`: an anonymous page."""
    contexts: dict[str, BrowserContext] = {}
    thrown.clear()

    def make(person: Person | None) -> Page:
        name = person.name if person else ""
        if name not in contexts:
            contexts[name] = result = chromium.new_context(**WINDOW)
            result.set_default_timeout(20_000)
            result.add_init_script(COUNTS_SHIFTS)
            if person is not None:
                with world.app.app_context():
                    token = sign_in.create_link(db.session.get_one(User, person.user_id))
                    db.session.remove()
                page = result.new_page()
                page.goto(f"{origin}/sign-in/{token}")
                page.get_by_role("button", name="Sign in").click()
                page.wait_for_url(lambda url: "/sign-in" not in url)
                page.close()
        page = contexts[name].new_page()
        page.on("pageerror", lambda error: thrown.append(f"{page.url}: a script threw {error}"))
        return page

    yield make
    for context in contexts.values():
        context.close()


def faults(page: Page, axe: Path, *, keys: bool = True, moves: bool = True) -> list[str]:
    """What is wrong with a page that is open."""
    settled(page)
    found = [*thrown, *(shifts(page) if moves else [])]
    thrown.clear()
    found += colours(page, axe)
    found += keyboard(page) if keys else []
    return found + widths(page)


def faults_of(page: Page, addresses: list[str], axe: Path, *, keys: bool = True) -> list[str]:
    """What is wrong with pages as they open; closes `page`."""
    found = []
    for address in addresses:
        found += heavy(page.goto(address))
        found += faults(page, axe, keys=keys)
    page.close()
    return found


def test_all_routes_with_html_are_visited_or_have_a_reason(walked):
    whole, other = walked
    assert sorted(other) == sorted(everything.NO_PAGE), "a page that is new, or a reason that is old"
    assert len(whole) > 75


@pytest.mark.parametrize("part", range(PARTS))
def test_every_page_of_the_url_map(window, world, origin, walked, axe, part):
    addresses = [f"{origin}{item}" for item in list(walked[0].values())[part::PARTS]]
    found = faults_of(window(world.cast.olivia), addresses, axe)
    assert not found, everything.said(found)


@pytest.mark.parametrize("part", range(PARTS))
def test_every_page_of_the_documentation_and_of_the_forms(window, world, origin, axe, part):
    every = [*everything.more_addresses(world), *everything.groups(world.app)]
    addresses = [f"{origin}{item}" for item in every[part::PARTS]]
    # Frame and controls are those of the pages of the URL map, which are walked by keyboard.
    found = faults_of(window(world.cast.olivia), addresses, axe, keys=False)
    assert not found, everything.said(found)


@pytest.mark.parametrize("who", ["mallory", "victor"])
def test_every_empty_list_and_every_list_for_a_viewer(window, world, origin, axe, who):
    addresses = [f"{origin}{item}" for item in everything.LISTS]
    found = faults_of(window(world.cast.people[who]), addresses, axe)
    assert not found, everything.said(found)


def test_every_page_of_a_stranger(window, world, origin, axe):
    addresses = [f"{origin}{address}" for address in Strangers(world, origin).addresses()]
    found = faults_of(window(None), addresses, axe)
    assert not found, everything.said(found)


@pytest.mark.parametrize("act", Acts.names())
def test_every_page_after_an_act(window, world, origin, axe, act):
    page = window(world.cast.olivia)
    getattr(Acts(world, origin), act)(page)
    found = faults(page, axe, moves=False)
    page.close()
    assert not found, everything.said(found)
