"""Search over the documentation: every heading of every page, the field types, and the operations of the API.

The few hundred sections fit in memory, so a search scans all of them. A section matches if it contains every word of
the query, at the beginning of a word or inside it. The position of a match determines its rank: the title of a page or
an alias of a field type, then a heading, then the text.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from typing import Any, Final

from flask import Flask
from markupsafe import Markup

from webapp.documentation import pages
from webapp.documentation.api.reference import slug_of
from webapp.engine import processor_time
from webapp.engine.types.registry import normalize_name
from webapp.row_templates.services import catalogue
from webapp.web import openapi

_CACHE_KEY: Final = "rowsmith.docs.index"
_INDEX_LOCK: Final = threading.Lock()
_MAX_RESULTS: Final = 20  # results
_CHARS_BEFORE: Final = 60  # characters of an excerpt before the first match
_EXCERPT_CHARS: Final = 180  # characters of an excerpt
_WORDS: Final = re.compile(r"[\w./{}-]+")
# Weight of a match by its position; whole words count double. A match in the title of a page outweighs one in a
# heading, which outweighs any number of matches in the text.
_NAME_WEIGHT, _TITLE_WEIGHT, _HEADING_WEIGHT, _TEXT_WEIGHT = 60, 24, 10, 1
_MAX_OCCURRENCES: Final = 4  # occurrences of a word in a text that count


@dataclass(frozen=True, slots=True)
class IndexedSection:
    """A section that a search can find. `page` is the page's title; `names` are aliases, letters and digits only."""

    href: str
    page: str
    heading: str
    text: str
    names: frozenset[str] = frozenset()
    title: str = ""
    """The page's title if this is the start of the page, in lower case, like `low_heading` and `low_text`."""
    low_heading: str = ""
    low_text: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """A search result: its URL, its page, its heading, and an excerpt with the words highlighted."""

    href: str
    page: str
    heading: Markup
    excerpt: Markup


def search(app: Flask, q: str) -> list[Result]:
    """Return the results for `q`, best match first; none for an empty one."""
    words = list(dict.fromkeys(_WORDS.findall(q.casefold())))
    if not words:
        return []
    whole_name, names = normalize_name(q), [(word, normalize_name(word)) for word in words]
    ranked = [(_score(part, names, whole_name), part) for part in _index(app)]
    best = sorted((item for item in ranked if item[0]), key=lambda item: -item[0])[:_MAX_RESULTS]
    return [
        Result(
            part.href,
            part.page,
            _highlight(part.heading, words),
            _highlight(_excerpt(part, words), words),
        )
        for _, part in best
    ]


def _score(section: IndexedSection, words: list[tuple[str, str]], whole_name: str) -> int:
    """Return the rank of a part; 0 if it does not match. ``words``: each as it is written and as names have it."""
    is_named = whole_name in section.names
    ranks = []
    for word, name in words:
        rank = (
            _match_weight(section.title, word) * _TITLE_WEIGHT
            + _match_weight(section.low_heading, word) * _HEADING_WEIGHT
        )
        if name in section.names:
            rank += _NAME_WEIGHT
        ranks.append(rank + min(section.low_text.count(word), _MAX_OCCURRENCES) * _TEXT_WEIGHT)
    if not is_named and not all(ranks):
        return 0
    return sum(ranks) + (_NAME_WEIGHT * 2 if is_named else 0)


def _match_weight(text: str, word: str) -> int:
    """Return 2 if a text contains the whole word, 1 if one of its words begins with it, else 0."""
    if not text or word not in text:
        return 0
    return 2 if word in _WORDS.findall(text) else 1


def _excerpt(section: IndexedSection, words: list[str]) -> str:
    places = [place for place in (section.low_text.find(word) for word in words) if place >= 0]
    first = max(0, min(places, default=0) - _CHARS_BEFORE)
    # Start at the beginning of a word if the match is inside it.
    begin = (section.text.find(" ", first, first + _CHARS_BEFORE) + 1 or first) if first else 0
    cut = section.text[begin : begin + _EXCERPT_CHARS]
    if begin + _EXCERPT_CHARS < len(section.text):
        cut = cut.rpartition(" ")[0] + " …"
    return f"… {cut}" if begin else cut


def _highlight(text: str, words: Iterable[str]) -> Markup:
    pattern = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    parts = re.split(f"({pattern})", text, flags=re.IGNORECASE)
    html = "".join(
        f"<mark>{escape(part)}</mark>" if place % 2 else escape(part) for place, part in enumerate(parts)
    )
    return Markup(html)  # noqa: S704 - every part is escaped


def _index(app: Flask) -> tuple[IndexedSection, ...]:
    """Return all sections, created once: the search runs for every typed letter, and concurrent requests wait for the
    first."""
    with _INDEX_LOCK:
        sections: tuple[IndexedSection, ...] | None = app.extensions.get(_CACHE_KEY)
        if sections is None:
            with processor_time.exclude_shared_work():
                sections = app.extensions[_CACHE_KEY] = (*_page_sections(), *_api_sections(app))
    return sections


def _indexed_section(href: str, page: str, heading: str, text: str, **more: Any) -> IndexedSection:
    one_line = " ".join(text.split())
    low_text = one_line.lower()
    if len(low_text) != len(one_line):  # excerpts are cut at the positions of matches
        low_text = "".join(item.lower()[:1] for item in one_line)
    details: dict[str, Any] = {"low_heading": heading.lower(), "low_text": low_text, **more}
    return IndexedSection(href, page, heading, one_line, **details)


def _page_sections() -> Iterator[IndexedSection]:
    names = {
        entry["name"]: frozenset(
            normalize_name(name) for name in (entry["name"], entry["label"], *entry["aliases"])
        )
        for entry in catalogue.entries()
    }
    for page in pages.all_pages().values():
        if page.address.startswith(
            "locales/"
        ):  # their text is generated rows; the page of all locales has the names
            continue
        typed = page.address.startswith("field-types/")
        for place, section in enumerate(page.rendered.sections):
            href = f"{page.href}#{section.anchor}" if place else page.href
            yield _indexed_section(
                href,
                page.title,
                section.short,
                section.text,
                names=names.get(section.anchor, frozenset()) if typed else frozenset(),
                title="" if place else f"{page.title} {section.title}".lower(),
                low_heading=section.title.lower(),
            )


def _api_sections(app: Flask) -> Iterator[IndexedSection]:
    for rule, declaration in openapi.declared_routes(app):
        if not declaration.hidden:
            path = openapi.path_of(rule)
            text = f"{declaration.summary.rstrip('.')} {declaration.description or ''}"
            for method in declaration.methods:
                href = f"/docs/api/{declaration.tag.replace('_', '-')}/{slug_of(method, path)}"
                yield _indexed_section(href, "API reference", f"{method} {path}", text)
