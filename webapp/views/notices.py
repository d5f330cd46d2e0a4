"""What a person is told of their own work: when there is mail, and what has just ended, for the browser."""

from __future__ import annotations

from typing import Annotated, Literal

from flask import Blueprint, Response, url_for
from pydantic import Field

from webapp import limits
from webapp.errors import ApiError
from webapp.services import notices
from webapp.services.actors import Actor
from webapp.views import session
from webapp.views.inputs import Input, Moment, Query
from webapp.views.reply import json_reply, reply
from webapp.views.routes import route

bp = Blueprint("notices", __name__)


class NoticesForm(Input):
    """When a person wants mail about work that they started."""

    mail: Literal["never", "failed", "always"]
    minutes: Annotated[int, Field(ge=0, le=limits.NOTICE_MOST_MINUTES)]


class EndedQuery(Query):
    """Since when."""

    since: Moment | None = None


def _again(actor: Actor, error: ApiError) -> Response:
    return session.profile_again(actor, error)


@route(
    bp, "/me/notices", ["POST"], scope="self", body=NoticesForm, hidden=True, programs=False, on_fault=_again
)
def choose(actor: Actor, body: NoticesForm) -> Response:
    """Set when one gets mail about one's own work."""
    notices.choose(actor, notices.Choice(body.mail, body.minutes))
    return reply(see=url_for("session.me"), flashed="When you get mail is changed.")


@route(bp, "/notices", scope="self", query=EndedQuery, hidden=True, programs=False)
def ended(actor: Actor, query: EndedQuery) -> Response:
    """One's own longer work that has ended since a moment; asked by the browser now and then."""
    return json_reply(notices.just_ended(actor, query.since))
