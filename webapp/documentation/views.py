"""The documentation in the application: guide, references, field types, error codes, limits, changes, search.

`registry` lists the pages, `pages` finds them, `render` draws them; every page is Markdown first, at its address
with `.md`. The documentation is public.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from flask import Blueprint, Response, g, request
from flask.blueprints import BlueprintSetupState
from markupsafe import Markup
from pydantic import Field

from webapp import limits
from webapp.documentation import field_types as documentation_field_types
from webapp.documentation import pages, registry, rendering, search
from webapp.errors import ApiError
from webapp.extensions import application
from webapp.paths import ROOT
from webapp.web import snippets
from webapp.web.inputs import Query
from webapp.web.responses import reply
from webapp.web.routing import route

bp = Blueprint("docs", __name__)
_MARKDOWN: Final = "text/markdown"
_MAX_PAGES_BELOW: Final = 80
"""Pages that the list of pages shows below an entry. Where there are more, the entry's own page lists them."""
_PICTURES: Final = {".png": "image/png", ".svg": "image/svg+xml"}


@bp.record_once
def _nav_for_templates(state: BlueprintSetupState) -> None:
    state.app.jinja_env.globals.update(docs_nav=nav)


def nav() -> list[dict[str, Any]]:
    """Return the list of pages for the navigation: `[{title, pages: [{href, title, level, here}]}]`."""
    return [
        {"title": group.title, "pages": [line for entry in group.entries for line in _lines(entry)]}
        for group in registry.GROUPS
    ]


def _lines(entry: registry.Entry) -> list[dict[str, Any]]:
    """Return an entry of the list of pages; if it or a page below it is open, also the pages below it."""
    path = request.path
    is_open = path == entry.href or path.startswith(f"{entry.href}/")
    if not (entry.opens and is_open):
        return [{"href": entry.href, "title": entry.title, "level": 0, "here": is_open}]
    below = [item for item in pages.all_pages().values() if item.address.startswith(f"{entry.address}/")]
    if len(below) > _MAX_PAGES_BELOW:
        below = [item for item in below if path == item.href]
    entries: list[tuple[int, registry.Entry | pages.Page]] = [(0, entry), *((1, item) for item in below)]
    return [
        {"href": item.href, "title": item.title, "level": level, "here": path == item.href}
        for level, item in entries
    ]


@route(bp, "/docs", scope="public", hidden=True)
def front() -> Response:
    """The documentation's first page."""
    first = snippets.first_call(snippets.origin())
    return _page("docs/index.html", groups=registry.GROUPS, blurb=BLURB, first=first)


@route(bp, "/docs.md", scope="public", hidden=True)
def front_as_markdown() -> Response:
    """The list of pages as Markdown."""
    return Response(front_page(), mimetype=_MARKDOWN)


@route(bp, "/llms.txt", scope="public", hidden=True)
def llms_txt() -> Response:
    """List the contents of the documentation for language models."""
    return Response(llms_text(snippets.origin()), mimetype="text/plain")


class SearchQuery(Query):
    """`q` is the search text."""

    q: Annotated[str, Field(max_length=limits.MAX_QUERY_TEXT)] = ""


@route(bp, "/docs/search", scope="public", query=SearchQuery, hidden=True)
def found(query: SearchQuery) -> Response:
    """Search the documentation."""
    app = application()
    results = search.search(app, query.q)
    return _page("docs/search.html", block="found", q=query.q.strip(), results=results)


@route(bp, "/docs/field-types", scope="public", query=SearchQuery, hidden=True)
def field_types(query: SearchQuery) -> Response:
    """Every field type, by family or best fit first."""
    page = pages.find("field-types")
    assert page is not None  # it is in the registry
    if not query.q.strip():
        return _page_response(page)
    return _rendered_response(
        page, rendering.render(documentation_field_types.types_page(query.q), str), q=query.q
    )


@route(bp, "/docs/img/<name>", scope="public", hidden=True)
def picture(name: str) -> Response:
    """A picture of the guide."""
    path = ROOT / pages.PICTURES / name
    kind = _PICTURES.get(path.suffix)
    if kind is None or not path.is_file():
        raise ApiError("not_found", "There is no such image.", {"id": name[:100]})
    response = Response(path.read_bytes(), mimetype=kind)
    response.add_etag()
    response.make_conditional(request)
    return response


@route(bp, "/docs/<path:address>", scope="public", hidden=True)
def page(address: str) -> Response:
    """A page of the documentation; with `.md`, as Markdown."""
    found = pages.find(address.removesuffix(".md"))
    if found is None:
        g.face = "person"
        text = "We couldn't find that page. Search the documentation, or see the list of pages."
        raise ApiError("not_found", text, {"id": address[:100]})
    if address.endswith(".md"):
        return Response(found.markdown, mimetype=_MARKDOWN)
    return _page_response(found)


def _page_response(found: pages.Page) -> Response:
    return _rendered_response(found, found.rendered)


def _rendered_response(found: pages.Page, rendered: rendering.RenderedPage, **context: Any) -> Response:
    listed = [entry for entry in registry.ENTRIES if not entry.plain]
    position = next((at for at, entry in enumerate(listed) if entry.address == found.address), None)
    previous_page = listed[position - 1] if position else None
    next_page = listed[position + 1] if position is not None and position + 1 < len(listed) else None
    body = Markup(rendered.html)  # noqa: S704 - drawn from our own files, raw HTML in them is escaped
    return _page(
        "docs/page.html",
        page=found,
        body=body,
        contents=rendered.contents,
        before=previous_page,
        after=next_page,
        **context,
    )


def _page(template: str, block: str | None = None, **context: Any) -> Response:
    g.face = "person"  # render HTML for API clients, too
    return reply(template=template, block=block, **context)


# The documentation for programs: the list of pages as Markdown, and /llms.txt (llmstxt.org).

BLURB = (
    "Rowsmith generates test data. A template of typed fields becomes rows: in files, over REST, in databases, REST"
    " APIs and OData services, or in Python programs that run on its workers. The same version and seed produce the"
    " same bytes."
)


def listing(origin: str = "") -> str:
    """Return the list of all pages with their URLs as Markdown, by group."""
    parts = []
    for group in registry.GROUPS:
        parts.append(f"\n## {group.title}\n\n")
        parts += [
            f"- [{entry.title}]({origin}{entry.href}{'' if entry.plain else '.md'}): {entry.about}\n"
            for entry in group.entries
        ]
    return "".join(parts)


def front_page() -> str:
    """Return the first page as Markdown."""
    return f"# Rowsmith: documentation\n\n{BLURB}\n{listing()}"


def llms_text(origin: str) -> str:
    """Return /llms.txt: title, blurb, and links to the pages as Markdown."""
    return (
        f"# Rowsmith\n\n> {BLURB}\n\n"
        f"[{origin}/docs]({origin}/docs) is the documentation. Append `.md` to the URL of a page to get it as"
        f" Markdown. [{origin}/openapi.json]({origin}/openapi.json) is the API specification.\n"
        f"{listing(origin)}"
    )
