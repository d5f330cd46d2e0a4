"""Markdown as HTML: headings with anchors, code with colours and a copy button, links into the application.

CommonMark with tables; raw HTML is text. Colours are classes (`k`, `s`, `n`, `c`, `f`), no styles, so that the
Content-Security-Policy holds and the theme decides.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import token as kinds
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from webapp.paths import ROOT

Resolve = Callable[[str], str]
_MAX_CONTENTS_LEVEL: Final = 3  # levels of headings that the contents of a page list
_CLASSES: Final = {
    kinds.Comment: "c",
    kinds.Keyword: "k",
    kinds.Name.Tag: "k",
    kinds.Name.Function: "f",
    kinds.Name.Class: "f",
    kinds.Name.Variable: "f",
    kinds.String: "s",
    kinds.Number: "n",
}
_COPY: Final = (
    '<button type="button" class="btn plain s icon copy" data-copy aria-label="Copy to the clipboard"'
    ' title="Copy"></button>'
)
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_SVG_SIZE: Final = re.compile(rb'<svg[^>]*viewBox="[\d.]+ [\d.]+ (\d+)(?:\.\d+)? (\d+)')
_NOT_IN_ANCHORS: Final = re.compile(r"[^\w\- ]")


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the text under it, up to the next. `level` is 1 for the page's own, `short` is the title without
    the code that is its anchor."""

    level: int
    anchor: str
    title: str
    short: str
    text: str


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """A page's HTML, and its sections in their order; the first is the page."""

    html: str
    sections: tuple[Section, ...]

    @property
    def contents(self) -> tuple[Section, ...]:
        """An entry of the table of contents."""
        return tuple(section for section in self.sections if 1 < section.level <= _MAX_CONTENTS_LEVEL)


def render(text: str, resolve: Resolve, *, anchors_are_code: bool = False) -> RenderedPage:
    """Render Markdown as HTML. `resolve` returns the URL of a link or a picture in the application. With
    `anchors_are_code`, the anchor of a heading is the code in it, unchanged: for headings that name a key."""
    tokens = _parser().parse(text)
    sections = list(_sections(tokens, anchors_are_code))
    for token in _walk_tokens(tokens):
        for name in ("href", "src"):
            if name in token.attrs:
                token.attrs[name] = resolve(str(token.attrs[name]))
        if token.type == "image" and (size := image_size(str(token.attrs["src"]))):
            token.attrs.update(zip(("width", "height"), size, strict=True))
    return RenderedPage(_parser().renderer.render(tokens, _parser().options, {}), tuple(sections))


def image_size(address: str) -> tuple[int, int] | None:
    """Return width and height in pixels of a picture of the documentation, so that the page can reserve its space
    before it is loaded; None for an external picture or one without a size."""
    path = ROOT / address.removeprefix("/")
    if not address.startswith("/docs/img/") or not path.is_file():
        return None
    begin = path.read_bytes()[:1_000]
    if begin.startswith(_PNG):
        width, height = struct.unpack(">II", begin[16:24])
        return width, height
    found = _SVG_SIZE.search(begin)
    return (int(found[1]), int(found[2])) if found else None


def _walk_tokens(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _walk_tokens(token.children or ())


def unique_anchor(title: str, taken: set[str]) -> str:
    """Return a heading's anchor as code hosts create it: lower case, hyphens instead of spaces, a number if it exists
    already."""
    plain = _NOT_IN_ANCHORS.sub("", title.lower()).replace(" ", "-") or "part"
    found, number = plain, 0
    while found in taken:
        number += 1
        found = f"{plain}-{number}"
    taken.add(found)
    return found


def _sections(tokens: list[Token], anchors_are_code: bool) -> Iterator[Section]:
    """Yield the sections, and set the anchor of each heading."""
    taken: set[str] = set()
    heading: tuple[int, str, str, str] | None = None
    texts: list[str] = []
    for index, token in enumerate(tokens):
        if token.type == "heading_open":
            if heading:
                yield Section(*heading, " ".join(texts))
            title = _plain_text(tokens[index + 1])
            codes = [
                inner.content for inner in tokens[index + 1].children or () if inner.type == "code_inline"
            ]
            anchor = codes[-1] if anchors_are_code and codes else unique_anchor(title, taken)
            if anchors_are_code and not codes:
                anchor = f"page-{anchor}"  # a page may be called as one of its keys is
            short = title.removesuffix(anchor).strip() if anchors_are_code else title
            heading, texts = (int(token.tag[1]), anchor, title, short or title), []
            token.attrs["id"] = anchor
        elif token.type == "inline" and tokens[index - 1].type != "heading_open":
            texts.append(_plain_text(token))
        elif token.type in ("fence", "code_block"):
            texts.append(token.content)
    if heading:
        yield Section(*heading, " ".join(texts))


def _plain_text(inline: Token) -> str:
    """Return an inline token as text, without markup."""
    return "".join(
        " " if child.type in ("softbreak", "hardbreak") else child.content for child in inline.children or ()
    )


@cache
def _parser() -> MarkdownIt:
    found = MarkdownIt("commonmark", {"html": False}).enable("table")
    for name, rule in _RULES.items():
        found.add_render_rule(name, rule)
    return found


def _fence(_self: Any, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    token = tokens[index]
    language = token.info.strip().partition(" ")[0]
    label = f"Code, {language}" if language else "Code"
    code = highlight(token.content.rstrip("\n"), language)
    return f'<div class="code"><pre tabindex="0" aria-label="{escape(label)}"><code>{code}</code></pre>{_COPY}</div>\n'


def _heading_close(_self: Any, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    opened = tokens[index - 2]
    if opened.tag != "h2":  # the contents of the page lead to smaller ones
        return f"</{opened.tag}>\n"
    anchor = escape(str(opened.attrs["id"]))
    # Screen readers and keyboards use the table of contents instead.
    return f' <a class="anchor" href="#{anchor}" aria-hidden="true" tabindex="-1">#</a></{opened.tag}>\n'


def _table_open(_self: Any, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    """Render the start of a table that scrolls horizontally. On narrow screens, a table with many columns whose first
    column is a key shows each row as a list, unless its columns contain numbers, which users compare."""
    end = next(at for at in range(index, len(tokens)) if tokens[at].type == "table_close")
    table_tokens = tokens[index:end]
    headings = [
        table_tokens[at + 1].content for at, token in enumerate(table_tokens) if token.type == "th_open"
    ]
    cells = [at for at, token in enumerate(table_tokens) if token.type == "td_open"]
    numbers = all(_is_right_aligned(table_tokens[at]) for at in cells[1 : len(headings)])
    is_stacked = (
        len(headings) > 2
        and not numbers
        and all(table_tokens[at + 1].content.startswith(("`", "[")) for at in cells[:: len(headings)])
    )
    if is_stacked:
        for number, at in enumerate(cells):
            column = number % len(headings)
            if 0 < column < len(headings) - 1 and len(headings) > 3 and table_tokens[at + 1].content:
                table_tokens[at].attrs["data-label"] = headings[column]
    class_suffix = " stacks" if is_stacked else ""
    return (
        '<div class="card scroll" tabindex="0" role="group" aria-label="Table">'
        f'<table class="table{class_suffix}">\n'
    )


def _th_open(_self: Any, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    if not tokens[index + 1].content:
        return "<td>"  # a corner with nothing in it heads nothing
    return '<th scope="col" class="right">' if _is_right_aligned(tokens[index]) else '<th scope="col">'


def _td_open(_self: Any, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    token = tokens[index]
    label = f' data-label="{escape(str(token.attrs["data-label"]))}"' if "data-label" in token.attrs else ""
    return f'<td class="right"{label}>' if _is_right_aligned(token) else f"<td{label}>"


def _is_right_aligned(cell: Token) -> bool:
    """Return whether a column is right-aligned. The parser sets a style attribute, which the CSP forbids."""
    return str(cell.attrs.get("style", "")).endswith("right")


def _th_close(_self: Any, tokens: Sequence[Token], place: int, _options: Any, _env: Any) -> str:
    return "</th>" if tokens[place - 1].content else "</td>"


_RULES: Final[dict[str, Callable[..., str]]] = {
    "fence": _fence,
    "code_block": _fence,
    "heading_close": _heading_close,
    "table_open": _table_open,
    "table_close": lambda *_: "</table></div>\n",
    "th_open": _th_open,
    "th_close": _th_close,
    "td_open": _td_open,
    "td_close": lambda *_: "</td>",
}


def highlight(code: str, language: str) -> str:
    """Return code as HTML, highlighted if the language is known."""
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False) if language else None
    except ClassNotFound:
        lexer = None
    if lexer is None:
        return escape(code, quote=False)
    parts: list[tuple[str, str]] = []
    for kind, text in lexer.get_tokens(code):
        name = next((_CLASSES[item] for item in reversed(kind.split()) if item in _CLASSES), "")
        if parts and (parts[-1][0] == name or not text.strip()):
            parts[-1] = (parts[-1][0], parts[-1][1] + text)
        else:
            parts.append((name, text))
    return "".join(
        f'<span class="{name}">{escape(text, quote=False)}</span>' if name else escape(text, quote=False)
        for name, text in parts
    )
