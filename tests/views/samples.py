"""The samples of the API reference, read from its pages as a reader copies them."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

from tests.cast import Browser

LANGUAGES = ("curl", "python", "typescript")
_TITLE = re.compile(r'<h1 id="([^"]+)"')
_LINE = re.compile(r'<p class="line"><b[^>]*>(\w+)</b> <code>([^<]+)</code>')
_PANEL = re.compile(r'<div role="tabpanel" id="p-(\w+)".*?<code>(.*?)</code></pre>', re.S)


@dataclass(frozen=True)
class Shown:
    """One operation: its page's address and group, the operation's key (`GET /me`), its id in the document, the samples
    by language, and the page from its heading on."""

    address: str
    slug: str
    key: str
    id: str
    samples: dict[str, str]
    section: str


def slugs(browser: Browser) -> list[str]:
    """The groups that the first page leads to."""
    page = browser.get("/docs/api").text
    return list(dict.fromkeys(re.findall(r'href="/docs/api/([a-z-]+)"', page)))


def addresses(browser: Browser, *groups: str) -> list[str]:
    """The pages of all operations, or of some groups, as the groups' pages lead to them."""
    found: list[str] = []
    for slug in groups or slugs(browser):
        page = browser.get(f"/docs/api/{slug}").text
        found += re.findall(rf'<h2 id="[^"]+"><a href="(/docs/api/{slug}/[^"]+)"', page)
    return found


def shown(browser: Browser, *groups: str) -> list[Shown]:
    """Every operation, or those of some groups."""
    return [shown_at(address, browser.get(address).text) for address in addresses(browser, *groups)]


def shown_at(address: str, page: str) -> Shown:
    """The operation of a page."""
    section = page[page.index('<section class="op">') : page.index("</article>")]
    method, path = _LINE.search(section).groups()
    samples = {name: html.unescape(text) for name, text in _PANEL.findall(section)}
    slug = address.split("/")[3]
    return Shown(address, slug, f"{method} {path}", _TITLE.search(section)[1], samples, section)
