"""The API reference: a page for each group of operations, with samples that carry what is the reader's own, and a
Postman collection. All of it is made from the OpenAPI document."""

from __future__ import annotations

import re
from typing import Any, Final

import orjson
from flask import Blueprint, Flask, Response, current_app, g, render_template, request
from markupsafe import Markup, escape

from webapp import openapi
from webapp.errors import ApiError
from webapp.services.actors import Actor
from webapp.views import hooks, snippets
from webapp.views.docs_api import examples, own, postman, reference, samples
from webapp.views.reply import JSON, reply
from webapp.views.routes import route

bp = Blueprint("docs_api", __name__)
COOKIE: Final = "language"
FILE: Final = "rowsmith.postman_collection.json"
_MADE: Final = "rowsmith.docs_api"
_MARK: Final = re.compile(r"\bOWN_([A-Z]+)_ID\b")
_TICKS: Final = re.compile(r"`([^`]+)`")


@bp.record_once
def _for_templates(state: Any) -> None:
    state.app.jinja_env.filters["ticks"] = ticks


@route(bp, "/docs/api", scope="public", hidden=True)
def index() -> Response:
    """How the API is spoken to, and every operation by group."""
    return _page(
        "docs/api.html", groups=_reference().values(), every=openapi.HEADERS, version=hooks.NEWEST_VERSION
    )


@route(bp, "/docs/api/<slug>", scope="public", hidden=True)
def group(actor: Actor | None, slug: str) -> Response:
    """The operations of one group."""
    found = _reference().get(slug)
    if found is None:
        raise ApiError(
            "not_found", "There is no such group of operations: see /docs/api.", {"id": slug[:100]}
        )
    body = _body(found, _language(), actor is not None)
    return _page("docs/api_group.html", group=found, body=_filled(body, actor))


@route(bp, "/docs/postman.json", scope="public", hidden=True)
def collection() -> Response:
    """The Postman collection, as a file."""
    made = postman.collection(_reference(), hooks.NEWEST_VERSION, snippets.origin())
    headers = {"Content-Disposition": f'attachment; filename="{FILE}"'}
    return Response(orjson.dumps(made, option=orjson.OPT_INDENT_2), mimetype=JSON, headers=headers)


def ticks(text: str) -> Markup:
    """A text of the document as HTML: what stands between backticks is code."""
    return Markup(_TICKS.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped just now


def _page(template: str, **context: Any) -> Response:
    g.face = "person"  # documents are for people, whoever asks
    return reply(template=template, **context)


def _remembered() -> dict[Any, Any]:
    kept: dict[Any, Any] = current_app.extensions.setdefault(_MADE, {})
    return kept


def _reference() -> dict[str, reference.Group]:
    """The groups by slug, read from the document once."""
    kept = _remembered()
    if "groups" not in kept:
        app: Flask = current_app._get_current_object()  # type: ignore[attr-defined]
        kept["groups"] = reference.groups(openapi.build(app, hooks.NEWEST_VERSION))
    groups: dict[str, reference.Group] = kept["groups"]
    return groups


def _language() -> str:
    """The language of samples that this browser chose last."""
    chosen = request.cookies.get(COOKIE, "")
    return chosen if chosen in samples.LANGUAGES else samples.LANGUAGES[0]


def _body(group: reference.Group, language: str, signed_in: bool) -> str:
    """The operations as HTML, drawn once, with marks for what is each reader's own."""
    kept, key = _remembered(), (group.tag, language, signed_in)
    if key not in kept:
        made = [(one, samples.of(one, signed_in=signed_in)) for one in group.operations]
        kept[key] = render_template(
            "docs/api_operations.html",
            group=group,
            operations=made,
            chosen=language,
            languages=samples.NAMES,
            example=example,
        )
    body: str = kept[key]
    return body


def example(operation: reference.Operation) -> str:
    """The body of an operation's samples as JSON on several lines; "" where it takes none."""
    body = examples.BODIES.get(operation.key)
    return "" if body is None else orjson.dumps(body, option=orjson.OPT_INDENT_2).decode()


def _filled(body: str, actor: Actor | None) -> Markup:
    """The marks replaced: by the reader's address and ids, by words in capitals where there is none."""
    known = own.ids(actor, set(_MARK.findall(body))) if actor is not None else {}
    text = _MARK.sub(lambda m: known.get(m[1]) or f"{m[1]}_ID", body)
    return Markup(text.replace(samples.ORIGIN, str(escape(snippets.origin()))))  # noqa: S704 - drawn by a template
