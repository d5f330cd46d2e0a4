"""The browser sessions of a user."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, g, request, url_for

from webapp import pagination
from webapp.access.actors import Actor
from webapp.access.models import BrowserSession
from webapp.accounts.services import sessions
from webapp.accounts.views.session import END_SESSION, EndForm, SessionOut, profile_again
from webapp.web.inputs import ListQuery, parse
from webapp.web.responses import Listed, Output, matching, reply
from webapp.web.routing import route

bp = Blueprint("sessions", __name__)


class EndedOut(Output):
    """Number of ended sessions."""

    ended: int


def _password() -> str:
    return parse(EndForm, {"password": request.form.get("password", "")}).password


def _shown(actor: Actor, row: BrowserSession) -> dict[str, Any]:
    return SessionOut.of(row, current=row.id == actor.session_id)


@route(bp, "/me/sessions", scope="self", query=ListQuery, returns=Listed(SessionOut), errors=["forbidden"])
def index(actor: Actor, query: ListQuery) -> Response:
    """List the browser sessions of the key's owner. Not allowed for keys with scopes."""
    if g.face == "person":
        return reply(see=url_for("session.me"))
    found = pagination.page(
        sessions.mine(actor),
        name="sessions",
        identity=BrowserSession.id,
        cursor=query.cursor,
        limit=query.limit,
        search=(query.q, BrowserSession.user_agent),
        context=actor.user_id or "",
    )
    return reply(found.as_dict(lambda row: _shown(actor, row)))


@route(
    bp, "/me/sessions", ["DELETE"], scope="self", returns=EndedOut, errors=["forbidden"],
    on_fault=profile_again(END_SESSION),
)  # fmt: skip
def end_others(actor: Actor) -> Response:
    """End all sessions except the current one, or all if called with a key. Not allowed for keys with scopes."""
    sessions.prove(actor, None, _password())
    ended = sessions.end_others(actor)
    said = "There was no other session." if not ended else f"{ended} other session{'s' * (ended > 1)} ended."
    return reply(EndedOut.of({"ended": ended}), see=url_for("session.me"), flashed=said)


@route(
    bp,
    "/me/sessions/<session_id>",
    ["DELETE"],
    scope="self",
    returns=SessionOut,
    errors=["forbidden", "version_conflict"],
    on_fault=profile_again(END_SESSION),
)
def end_one(actor: Actor, session_id: str) -> Response:
    """End a session and sign its browser out. Not allowed for keys with scopes."""
    sessions.prove(actor, session_id, _password())
    row = sessions.load(actor, session_id)
    data = _shown(actor, row)
    matching(data)
    sessions.end(actor, row)
    return reply(data, see=url_for("session.me"), flashed="The session has ended.")
