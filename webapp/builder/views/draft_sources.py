"""The builder's cards below the fields, including the source of a draft's rows."""

from __future__ import annotations

from typing import Any, Final

from flask import Blueprint, Response, request

from webapp import limits
from webapp.access.actors import Actor, require
from webapp.builder.forms import draft
from webapp.builder.views import uploads
from webapp.builder.views.source_form import WAYS, SourceCard
from webapp.engine.invalid_data.settings import Invalid
from webapp.errors import ApiError
from webapp.row_templates.services import compilation
from webapp.web.forms.from_model import bound
from webapp.web.responses import render_block
from webapp.web.routing import route

bp = Blueprint("draft_sources", __name__, url_prefix="/builder")
PAGE: Final = "templates/builder.html"


def about(actor: Actor, given: dict[str, Any]) -> dict[str, Any]:
    """Context of the cards below the fields: invalid data, the source, the locales."""
    bad, said = (
        one if isinstance(one, dict) else None for one in (given.get("invalid"), given.get("source"))
    )
    return {
        "invalid": bound(Invalid, bad, prefix=draft.INVALID),
        "source": SourceCard(actor, said),
        "source_ways": WAYS,
        "locales": compilation.vocabulary().locales,
    }


@route(bp, "/source", ["POST"], scope="read", reads=True, hidden=True, programs=False)
def show(actor: Actor) -> Response:
    """Render the source card again, with the tables of the connection and the names of the columns. Queries the target
    if the user requested it, or selected a connection whose tables have never been read."""
    given = draft.read(request.form)
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
        stored = uploads.kept_apart(actor, request)
    except ApiError as error:
        if error.status >= 500:
            raise
        return _card(SourceCard(actor, None, way="file", error=error))
    made = _card(SourceCard(actor, {"file": stored.name}))
    made.headers["HX-Trigger-After-Settle"] = "preview"
    return made


def _card(card: SourceCard) -> Response:
    return Response(
        render_block(PAGE, "source_card", source=card, source_ways=WAYS, opened=True), mimetype="text/html"
    )
