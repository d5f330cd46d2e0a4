"""Reads a page as a browser does, and says what in it could run."""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import unquote

LINKS = ("href", "src", "action", "formaction", "data", "xlink:href", "hx-get", "hx-post")


class Reader(HTMLParser):
    """Collects what the page's writer cannot have meant."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        got = dict(attrs)
        self._script = tag == "script"
        if tag.startswith("x-canary") or tag in ("style", "iframe", "object", "embed", "base"):
            self.found.append(f"<{tag}>")
        if tag == "script" and "src" not in got:
            self.found.append("inline <script>")
        for name, value in got.items():
            if name == "style" or name.startswith(("on", "hx-on", "x-canary")):
                self.found.append(f"<{tag} {name}>")
            if name in LINKS and unquote(value or "").strip().lower().startswith(
                ("javascript:", "data:text", "vbscript:")
            ):
                self.found.append(f"<{tag} {name}={value}>")

    def handle_endtag(self, tag: str) -> None:
        self._script = False

    def handle_data(self, data: str) -> None:
        if self._script and data.strip():
            self.found.append(f"script: {data.strip()[:60]}")


def running(html: str) -> list[str]:
    """What of a page could run; [] for one that is inert."""
    reader = Reader()
    reader.feed(html)
    reader.close()
    return reader.found
