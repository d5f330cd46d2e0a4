"""The home page and the search box."""

from __future__ import annotations

from typing import Annotated, Final

from flask import Blueprint, Response, request, url_for
from pydantic import Field

from webapp import clock, limits
from webapp.access.actors import Actor
from webapp.activity import services as activity
from webapp.activity.services import JobFilter
from webapp.activity.views import next_step
from webapp.extensions import application
from webapp.generation.services import rows
from webapp.home import search, services
from webapp.starters.catalogue import STARTERS
from webapp.web.inputs import Query
from webapp.web.responses import reply, see_other
from webapp.web.routing import route

bp = Blueprint("home", __name__)
HIDDEN: Final = "checklist"
"""Cookie of browsers in which the checklist is hidden."""
_YEAR: Final = 31_536_000  # seconds
_RUNNING_SHOWN: Final = 4


class SampleQuery(Query):
    """Which rows to show: those of a seed."""

    seed: Annotated[str, Field(max_length=limits.MAX_NAME_CHARS)] | None = None


class SearchQuery(Query):
    """What to look for."""

    q: Annotated[str, Field(max_length=limits.MAX_QUERY_TEXT)] = ""
    part: search.Part = "all"


@route(bp, "/", scope="self", query=SampleQuery, hidden=True, allows_api_keys=False)
def show(actor: Actor, query: SampleQuery) -> Response:
    """Show the home page: first steps, starters, running jobs and recently edited objects."""
    if actor.project_id is None or not actor.can("read"):
        return reply({}, template="home/none.html")
    template = services.sample_template(actor)
    done = services.completed_steps(actor)
    running, _ = activity.jobs(actor, JobFilter(status="running"), limit=_RUNNING_SHOWN)
    hidden = request.cookies.get(HIDDEN) == "off" or all(done.values())
    return reply(
        {"done": done},
        template="home/show.html",
        block="sample",
        hidden=hidden,
        template_shown=template,
        sample=services.sample_rows(actor, template.id, query.seed) if template and not hidden else None,
        starters=list(STARTERS.values()),
        running=running,
        recent=services.recent(actor),
        step=next_step,
        new_seed=rows.new_seed,
        now=clock.now(),
    )


@route(bp, "/session/checklist", ["POST"], scope="self", reads=True, hidden=True, allows_api_keys=False)
def hide() -> Response:
    """Hide the checklist of first steps in this browser."""
    response = see_other(url_for("home.show"))
    response.set_cookie(HIDDEN, "off", max_age=_YEAR, samesite="Lax", secure=request.is_secure)
    return response


@route(bp, "/search", scope="read", query=SearchQuery, hidden=True, allows_api_keys=False)
def find(actor: Actor, query: SearchQuery) -> Response:
    """Search objects, actions, field types and the documentation."""
    found = search.search(application(), actor, query.q, query.part)
    return reply({"groups": found}, template="home/search.html", block="found", query=query)
