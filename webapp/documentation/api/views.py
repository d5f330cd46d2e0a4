"""The API reference: a page for each operation, with samples that use the reader's own objects, a page for each group,
and a Postman collection. Everything is generated from the OpenAPI document."""

from __future__ import annotations

import re
from typing import Any, Final

import orjson
from flask import Blueprint, Response, current_app, g, render_template, request
from markupsafe import Markup, escape

from webapp.access.actors import Actor
from webapp.access.models import NEWEST_VERSION
from webapp.documentation.api import reference, samples
from webapp.errors import ApiError
from webapp.extensions import application
from webapp.web import openapi, snippets
from webapp.web.responses import JSON, reply
from webapp.web.routing import route

bp = Blueprint("docs_api", __name__)
COOKIE: Final = "language"
FILE: Final = "rowsmith.postman_collection.json"
_CACHE_KEY: Final = "rowsmith.docs_api"
_OWN_ID: Final = re.compile(r"\bOWN_([A-Z]+)_ID\b")
_BACKTICKS: Final = re.compile(r"`([^`]+)`")


@bp.record_once
def _register_filters(state: Any) -> None:
    state.app.jinja_env.filters["ticks"] = ticks


@route(bp, "/docs/api", scope="public", hidden=True)
def index() -> Response:
    """Show the basics of the API, and every operation by group."""
    return _page("docs/api.html", groups=_reference().values(), every=openapi.HEADERS, version=NEWEST_VERSION)


@route(bp, "/docs/api/<slug>", scope="public", hidden=True)
def group(slug: str) -> Response:
    """Show the operations of one group."""
    return _page("docs/api_group.html", group=_group(slug))


@route(bp, "/docs/api/<slug>/<name>", scope="public", hidden=True)
def operation(actor: Actor | None, slug: str, name: str) -> Response:
    """Show one operation: its samples, its parameters and its responses."""
    group_found = _group(slug)
    found = next((item for item in group_found.operations if item.slug == name), None)
    if found is None:
        message = f"There is no such operation: see /docs/api/{group_found.slug}."
        raise ApiError("not_found", message, {"id": name[:100]})
    language = request.cookies.get(COOKIE, "")  # the language of samples that this browser chose last
    body = render_template(
        "docs/api_operation_body.html",
        operation=found,
        objects=group_found.objects_of(found),
        sample=samples.code_samples(found, signed_in=actor is not None),
        chosen=language if language in samples.LANGUAGES else samples.LANGUAGES[0],
        languages=samples.NAMES,
        example=example_body(found),
    )
    # Placeholders become the reader's URL and ids, or words in capitals.
    own_ids = samples.newest_ids(actor, set(_OWN_ID.findall(body))) if actor is not None else {}
    text = _OWN_ID.sub(lambda m: own_ids.get(m[1]) or f"{m[1]}_ID", body)
    html = Markup(text.replace(samples.ORIGIN, str(escape(snippets.origin()))))  # noqa: S704 - drawn by a template
    return _page("docs/api_operation.html", group=group_found, operation=found, body=html)


@route(bp, "/docs/postman.json", scope="public", hidden=True)
def collection() -> Response:
    """The Postman collection, as a file."""
    document = samples.collection(_reference(), NEWEST_VERSION, snippets.origin())
    headers = {"Content-Disposition": f'attachment; filename="{FILE}"'}
    return Response(orjson.dumps(document, option=orjson.OPT_INDENT_2), mimetype=JSON, headers=headers)


def ticks(text: str) -> Markup:
    """Return a text of the document as HTML, with code in backticks."""
    return Markup(_BACKTICKS.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped just now


def _page(template: str, **context: Any) -> Response:
    g.face = "person"  # always HTML
    return reply(template=template, **context)


def _reference() -> dict[str, reference.Group]:
    """Return the groups by slug. They are read from the document once."""
    groups: dict[str, reference.Group] | None = current_app.extensions.get(_CACHE_KEY)
    if groups is None:
        app = application()
        groups = current_app.extensions[_CACHE_KEY] = reference.groups(openapi.build(app, NEWEST_VERSION))
    return groups


def _group(slug: str) -> reference.Group:
    found = _reference().get(slug)
    if found is None:
        message = "There is no such group of operations: see /docs/api."
        raise ApiError("not_found", message, {"id": slug[:100]})
    return found


def example_body(operation: reference.Operation) -> str:
    """Return the example body of an operation as indented JSON; "" without a body."""
    body = samples.BODIES.get(operation.key)
    return "" if body is None else orjson.dumps(body, option=orjson.OPT_INDENT_2).decode()
