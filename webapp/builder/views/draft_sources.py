"""The source of a draft's rows: its card in the settings of the builder."""

from __future__ import annotations

from flask import Blueprint, Response, request

from webapp import limits
from webapp.access.actors import Actor, require
from webapp.builder.forms import draft
from webapp.builder.views import source_form
from webapp.builder.views.source_form import WAYS, SourceCard
from webapp.errors import ApiError
from webapp.web.responses import render_block
from webapp.web.routing import route

bp = Blueprint("draft_sources", __name__, url_prefix="/builder")


@route(bp, "/source", ["POST"], scope="read", reads=True, hidden=True, programs=False)
def show(actor: Actor) -> Response:
    """Render the source card again, with the tables of the connection and the names of the columns. Queries the target
    if the user requested it, or selected a connection whose tables have never been read."""
    given = {"source": draft.read_source(request.form)}
    asks = request.form.get("do") == "read"
    if asks:
        require(actor, "generate")
    card = SourceCard(actor, given.get("source"), asks, request.form.get(draft.WAY, ""))
    card.tables.asks = True
    return _card(card)


@route(
    bp, "/source/upload", ["POST"], scope="write", hidden=True, programs=False,
    max_body=limits.MAX_UPLOAD_BYTES + limits.UPLOAD_FORM_BYTES,
)  # fmt: skip
def upload(actor: Actor) -> Response:
    """Save an uploaded file in the workspace, use it as the source of the draft, and render the source card."""
    try:
        stored = source_form.kept_apart(actor, request)
    except ApiError as error:
        if error.status >= 500:
            raise
        return _card(SourceCard(actor, None, way="file", error=error))
    made = _card(SourceCard(actor, {"file": stored.name}))
    made.headers["HX-Trigger-After-Settle"] = "changed"
    return made


def _card(card: SourceCard) -> Response:
    return Response(
        render_block("templates/settings.html", "source_card", source=card, source_ways=WAYS),
        mimetype="text/html",
    )
