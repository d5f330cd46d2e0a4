"""One page of the documentation: found by its address, read or written as Markdown, drawn once and remembered."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Final

from webapp.documentation import error_codes, field_types, limits, locales, registry, rendering
from webapp.paths import ROOT

DECISIONS: Final = "docs/adr"
PICTURES: Final = "docs/img"


@dataclass(frozen=True)
class Page:
    """A page. `crumbs`: the pages above it, as `(path, title)`."""

    address: str
    title: str
    read: Callable[[], str]
    file: str = ""
    anchors_are_code: bool = False
    crumbs: tuple[tuple[str, str], ...] = ()

    @property
    def href(self) -> str:
        """Its address in the application."""
        return f"/docs/{self.address}"

    @cached_property
    def markdown(self) -> str:
        """The page as Markdown."""
        return self.read()

    @cached_property
    def drawn(self) -> rendering.Drawn:
        """The page as HTML, with its sections."""
        return rendering.draw(self.markdown, self.resolve, anchors_are_code=self.anchors_are_code)

    def resolve(self, link: str) -> str:
        """Return the path in the application for a link of the page's file; other links are unchanged."""
        path, mark, anchor = link.partition("#")
        if not path or not self.file or "://" in path or path.startswith(("/", "mailto:")):
            return link
        found = posixpath.normpath(posixpath.join(posixpath.dirname(self.file), path))
        if found.startswith(f"{PICTURES}/"):
            return f"/{found}"
        page = by_file().get(found)
        return f"{page.href}{mark}{anchor}" if page else link


def find(address: str) -> Page | None:
    """The page at an address below /docs."""
    return all_pages().get(address)


@lru_cache(maxsize=1)
def all_pages() -> dict[str, Page]:
    """Every page of Markdown by its address, in the order in which they are read."""
    found: dict[str, Page] = {}
    for entry in registry.ENTRIES:
        if entry.plain:
            continue
        read = _WRITTEN[entry.address] if entry.address in _WRITTEN else _reader(entry.file)
        coded = entry.address in _ANCHORS_ARE_CODE
        found[entry.address] = Page(entry.address, entry.title, read, entry.file, coded)
        found.update({page.address: page for page in _below(entry)})
    return found


@lru_cache(maxsize=1)
def by_file() -> dict[str, Page]:
    """The pages that come from files, by the file."""
    return {page.file: page for page in all_pages().values() if page.file}


def _below(entry: registry.Entry) -> list[Page]:
    """The pages that the list shows under another one, or not at all."""
    above = ((entry.address, entry.title),)
    if entry.address == "field-types":
        return [
            Page("field-types/every-field", "Every field", field_types.every_field, crumbs=above),
            *(
                Page(
                    f"field-types/{one['name']}",
                    one["label"],
                    partial(field_types.family, one),
                    "",
                    True,
                    above,
                )
                for one in field_types.families()
            ),
        ]
    if entry.address == "locales":
        return [
            Page(f"locales/{name}", locales.title(name), partial(locales.page, name), crumbs=above)
            for name in locales.names()
        ]
    if entry.address == "adr":
        files = [f"{DECISIONS}/{path.name}" for path in _decision_files()]
        return [
            Page(f"adr/{posixpath.basename(name)[:-3]}", _heading(name), _reader(name), name, crumbs=above)
            for name in files
        ]
    return []


def _reader(file: str) -> Callable[[], str]:
    return lambda: (ROOT / file).read_text("utf-8")


def _heading(file: str) -> str:
    return _reader(file)().partition("\n")[0].removeprefix("# ").strip()


def _decision_files() -> list[Path]:
    return sorted((ROOT / DECISIONS).glob("[0-9]*.md"))


_WRITTEN: Final[dict[str, Callable[[], str]]] = {
    "errors": error_codes.page,
    "limits": limits.page,
    "field-types": field_types.index,
    "locales": locales.index,
}
_ANCHORS_ARE_CODE: Final = frozenset({"errors"})
