"""Pages of the documentation: found by path, read or generated as Markdown, rendered once and cached."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cache, cached_property, lru_cache, partial
from typing import Final

from babel import Locale, UnknownLocaleError

from webapp.documentation import field_types, reference, registry, rendering
from webapp.documentation.reference import code, table, text
from webapp.engine import groups, processor_time
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse
from webapp.paths import ROOT
from webapp.row_templates.services import catalogue, compilation

# One page for each locale: ten sample rows, generated when the page is built, and what the locale lacks.

ROWS: Final = 10
SEED: Final = "docs"
NOW: Final = "2026-01-01T00:00:00+00:00"
COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "People": (
        "name", "gender", "date_of_birth", "marital_status", "job_title", "department", "email", "national_id",
    ),
    "Places": (
        "address", "city", "state", "zip_code", "country", "phone_number", "mobile", "time_zone", "license_plate",
    ),
    "Money and companies": (
        "company_name", "industry", "tax_id", "vat_id", "bank_name", "iban", "bic", "currency_name",
    ),
    "Products": ("product_name", "product_category", "sku"),
    "Words": ("month", "weekday", "color", "language", "university", "words"),
}  # fmt: skip
"""The columns of the sample rows. All of them are columns of one template, so that a row is one person at one place."""


def locale_names() -> tuple[str, ...]:
    """Return the locales of the current vocabulary."""
    return compilation.vocabulary().locales


@cache
def locale_title(name: str) -> str:
    """Return the English name of a locale, such as German (Austria)."""
    try:
        return Locale.parse(name).get_display_name("en") or name
    except UnknownLocaleError:
        return name


def locales_page() -> str:
    """Return the list of all locales as Markdown."""
    rows = [(code(name), f"[{text(locale_title(name))}](/docs/locales/{name})") for name in locale_names()]
    return (
        f"# Locales\n\nThere are {len(rows)} locales. Set one for a template, or for a field with `locale`; a language"
        " without a country, such as `de`, means the first locale of the language. Rows without a locale contain places"
        " from all over the world, with texts in English.\n\nA type that has no words in the language of a locale"
        " generates English ones, and a number that does not exist in a country is blank. Both are reported as warnings"
        " of the template, and on the page of the locale. Rows never have numbers of another country."
        " `GET /field-types?locale=de_DE` returns the same information for each type in `lacks`. Types without"
        " *Depends on `locale`* in their reference, such as `catch_phrase` and `animal`, are the same in all"
        " locales.\n\n" + table(("Locale", "Language and country"), rows)
    )


def locale_page(name: str) -> str:
    """Return the page of a locale as Markdown, with sample rows."""
    fields = [{"name": kind, "type": kind} for kinds in COLUMNS.values() for kind in kinds]
    plan = compile_plan(groups.assign(parse(fields, locale=name)), compilation.vocabulary())
    bound = BoundPlan(plan, GenerationContext(SEED, datetime.fromisoformat(NOW)))
    block = bound.block(0, ROWS)
    columns = {kind: column.to_pylist() for kind, column in zip(bound.schema.names, block, strict=True)}
    parts = [
        f"# {text(locale_title(name))}\n\nTen rows of the locale {code(name)} with the seed {code(SEED)}. Each "
        "row describes one person at one place.\n"
    ]
    for heading, kinds in COLUMNS.items():
        visible = [kind for kind in kinds if kind in columns]
        rows = [
            tuple("" if columns[kind][row] is None else text(str(columns[kind][row])) for kind in visible)
            for row in range(ROWS)
        ]
        parts.append(f"\n## {heading}\n\n{table([code(kind) for kind in visible], rows)}")
    lacking = [(code(kind), text(message)) for kind, message in catalogue.missing_values(name).items()]
    found = table(("Field type", "What is missing"), lacking) if lacking else "Nothing.\n"
    parts.append(f"\n## What this locale lacks\n\n{found}")
    return "".join(parts)


Crumbs = tuple[tuple[str, str], ...]
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
    crumbs: Crumbs = ()

    @property
    def href(self) -> str:
        """Its address in the application."""
        return f"/docs/{self.address}"

    @cached_property
    def markdown(self) -> str:
        """The page as Markdown, cached. The time to generate sample rows does not count toward the request."""
        with processor_time.exclude_shared_work():
            return self.read()

    @cached_property
    def rendered(self) -> rendering.RenderedPage:
        """The page as HTML, with its sections."""
        return rendering.render(self.markdown, self.resolve, anchors_are_code=self.anchors_are_code)

    def resolve(self, link: str) -> str:
        """Return the path in the application for a link of the page's file; other links are unchanged."""
        return resolve_link(self.file, link) if self.file else link


def resolve_link(file: str, link: str) -> str:
    """Return the path in the application for a link of a file; links to elsewhere are unchanged."""
    path, hash, anchor = link.partition("#")
    if not path or "://" in path or path.startswith(("/", "mailto:")):
        return link
    found = posixpath.normpath(posixpath.join(posixpath.dirname(file), path))
    if found.startswith(f"{PICTURES}/"):
        return f"/{found}"
    page = pages_by_file().get(found)
    return f"{page.href}{hash}{anchor}" if page else link


def find(address: str) -> Page | None:
    """Return the page at a path below /docs, or None."""
    return all_pages().get(address)


@lru_cache(maxsize=1)
def all_pages() -> dict[str, Page]:
    """Return all Markdown pages by path, in reading order."""
    found: dict[str, Page] = {}
    for entry in registry.ENTRIES:
        if entry.plain:
            continue
        read = _GENERATED[entry.address] if entry.address in _GENERATED else _file_reader(entry.file)
        anchors_are_code = entry.address in _CODE_ANCHOR_PAGES
        found[entry.address] = Page(entry.address, entry.title, read, entry.file, anchors_are_code)
        found.update({page.address: page for page in _child_pages(entry)})
    return found


@lru_cache(maxsize=1)
def pages_by_file() -> dict[str, Page]:
    """Return the pages that come from files, by file."""
    found = {page.file: page for page in all_pages().values() if page.file}
    types = (page for page in all_pages().values() if page.address.partition("/")[0] == "field-types")
    return found | {_types_file(page.address): page for page in types}


def _child_pages(entry: registry.Entry) -> list[Page]:
    """Return the pages below an entry, which the list of pages shows under it or not at all."""
    crumbs = ((entry.address, entry.title),)
    if entry.address == "field-types":
        return [
            _types_page("every-field", "Every field", crumbs, anchors_are_code=False),
            *(_types_page(family["name"], family["label"], crumbs) for family in field_types.families()),
        ]
    if entry.address == "locales":
        return [
            Page(f"locales/{name}", locale_title(name), partial(locale_page, name), crumbs=crumbs)
            for name in locale_names()
        ]
    if entry.address == "adr":
        files = [f"{DECISIONS}/{path.name}" for path in sorted((ROOT / DECISIONS).glob("[0-9]*.md"))]
        return [
            Page(
                f"adr/{posixpath.basename(name)[:-3]}",
                _first_heading(name),
                _file_reader(name),
                name,
                crumbs=crumbs,
            )
            for name in files
        ]
    return []


TYPES: Final = "docs/reference/types"
"""The catalogue as files, with sample rows that a test compares with generated ones. Generating them here would make
readers wait."""
_LINK: Final = re.compile(r"(?<=\]\()[^()\s]+(?=\))")


def _types_file(address: str) -> str:
    return f"{TYPES}/{address.partition('/')[2] or 'README'}.md"


def _types_page(name: str, title: str, crumbs: Crumbs, *, anchors_are_code: bool = True) -> Page:
    address = f"field-types/{name}"
    return Page(address, title, partial(_types_markdown, address), "", anchors_are_code, crumbs)


def _types_markdown(address: str) -> str:
    """Return a page of the catalogue, with links that lead to other pages as they do from files."""
    file = _types_file(address)
    text = _file_reader(file)().partition("\n\n")[2]  # without the remark that it is generated
    return _LINK.sub(lambda link: resolve_link(file, link[0]), text)


def _file_reader(file: str) -> Callable[[], str]:
    return lambda: (ROOT / file).read_text("utf-8")


def _first_heading(file: str) -> str:
    return _file_reader(file)().partition("\n")[0].removeprefix("# ").strip()


_GENERATED: Final[dict[str, Callable[[], str]]] = {
    "errors": reference.error_codes_page,
    "limits": reference.limits_page,
    "field-types": partial(_types_markdown, "field-types"),
    "locales": locales_page,
}
_CODE_ANCHOR_PAGES: Final = frozenset({"errors"})
