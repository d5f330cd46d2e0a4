"""The samples of the API reference, read from its pages as a reader copies them."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

from tests.cast import Browser

LANGUAGES = ("curl", "python", "typescript")
_SECTION = re.compile(r'<section class="op">.*?</section>', re.S)
_TITLE = re.compile(r'<h2 id="([^"]+)"')
_LINE = re.compile(r'<p class="line"><b[^>]*>(\w+)</b> <code>([^<]+)</code>')
_PANEL = re.compile(r'<div role="tabpanel" id="p\d+-(\w+)".*?<code>(.*?)</code></pre>', re.S)


@dataclass(frozen=True)
class Shown:
    """One operation on a page: the page's part of the address, the operation's key (`GET /me`), its id in the
    document, the samples by language."""

    slug: str
    key: str
    id: str
    samples: dict[str, str]
    section: str


def slugs(browser: Browser) -> list[str]:
    """The groups that the first page leads to."""
    page = browser.get("/docs/api").get_data(as_text=True)
    return list(dict.fromkeys(re.findall(r'href="/docs/api/([a-z-]+)"', page)))


def shown(browser: Browser) -> list[Shown]:
    """Every operation of every page."""
    found = []
    for slug in slugs(browser):
        page = browser.get(f"/docs/api/{slug}").get_data(as_text=True)
        for section in _SECTION.findall(page):
            method, path = _LINE.search(section).groups()
            samples = {name: html.unescape(text) for name, text in _PANEL.findall(section)}
            found.append(Shown(slug, f"{method} {path}", _TITLE.search(section)[1], samples, section))
    return found
