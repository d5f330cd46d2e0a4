"""The successful controls of a form in a page, as a browser that runs no script would send them."""

from __future__ import annotations

from html.parser import HTMLParser

from werkzeug.datastructures import MultiDict

Pairs = list[tuple[str, str]]


class _Controls(HTMLParser):
    def __init__(self, form_id: str) -> None:
        super().__init__()
        self.pairs: Pairs = []
        self._wanted, self._inside = form_id, not form_id
        self._select: str | None = None
        self._first: str | None = None
        self._chosen: str | None = None
        self._textarea: str | None = None
        self._text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        got = {key: value or "" for key, value in attrs}
        if tag == "form" and self._wanted:
            self._inside = got.get("id") == self._wanted
        if not self._inside:
            return
        if tag == "input" and got.get("name"):
            if got.get("type") in ("checkbox", "radio") and "checked" not in got:
                return
            self.pairs.append((got["name"], got.get("value", "")))
        elif tag == "select":
            self._select, self._first, self._chosen = got["name"], None, None
        elif tag == "option" and self._select:
            value = got.get("value", "")
            self._first = value if self._first is None else self._first
            self._chosen = value if "selected" in got else self._chosen
        elif tag == "textarea":
            self._textarea, self._text = got.get("name", ""), ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "form" and self._wanted:
            self._inside = False
        elif tag == "select" and self._select:
            chosen = self._chosen if self._chosen is not None else self._first
            self.pairs.append((self._select, chosen or ""))
            self._select = None
        elif tag == "textarea" and self._textarea:
            text = self._text.removeprefix("\r\n").removeprefix("\n")  # the first line break does not count
            self.pairs.append((self._textarea, text.replace("\r\n", "\n").replace("\n", "\r\n")))
            self._textarea = None

    def handle_data(self, data: str) -> None:
        self._text += data


def controls(html: str, form_id: str = "") -> MultiDict[str, str]:
    """What the form `form_id` of a page would send ("" for all of a fragment)."""
    parser = _Controls(form_id)
    parser.feed(html)
    return MultiDict(parser.pairs)
