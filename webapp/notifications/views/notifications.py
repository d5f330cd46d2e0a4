"""Notifications of a user's own work: e-mail settings, and notices in the browser."""

from __future__ import annotations

from flask import Blueprint, Response, url_for

from webapp.access.actors import Actor
from webapp.accounts.views.session import NOTICES, NoticesForm, profile_again
from webapp.mail import choices
from webapp.notifications.services import notifications
from webapp.web.inputs import Moment, Query
from webapp.web.responses import json_reply, reply
from webapp.web.routing import route

bp = Blueprint("notices", __name__)


class EndedQuery(Query):
    """Since when."""

    since: Moment | None = None


@route(
    bp,
    "/me/notices",
    ["POST"],
    scope="self",
    body=NoticesForm,
    hidden=True,
    programs=False,
    on_fault=profile_again(NOTICES),
)
def choose(actor: Actor, body: NoticesForm) -> Response:
    """Set when one gets mail about one's own work."""
    choices.choose(actor, choices.Choice(body.mail, body.minutes))
    return reply(see=url_for("session.me"), flashed="When you get mail is changed.")


@route(bp, "/notices", scope="self", query=EndedQuery, hidden=True, programs=False)
def ended(actor: Actor, query: EndedQuery) -> Response:
    """Return the user's longer jobs that have finished since a moment; browsers poll this."""
    return json_reply(notifications.just_ended(actor, query.since))
