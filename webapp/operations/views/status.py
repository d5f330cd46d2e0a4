"""The status page: the parts for every member, and for admins who works on what, what waits, what failed."""

from __future__ import annotations

from typing import Annotated, Any

import redis
from flask import Blueprint, Response, url_for
from pydantic import Field
from sqlalchemy.exc import SQLAlchemyError

from webapp import clock, limits
from webapp.access.actors import Actor
from webapp.engine.plan import ENGINE
from webapp.monitoring import health
from webapp.operations import work as operations_work
from webapp.web.inputs import Input
from webapp.web.responses import reply
from webapp.web.routing import route

bp = Blueprint("status", __name__)
_USES = (
    ("database", "templates, keys, people, the audit trail"),
    ("redis", "rates, and waking workers"),
    ("storage", "export files"),
    ("worker", "creates files, sends rows"),
    ("runner", "runs the programs of scenarios"),
)


class ReleaseIn(Input):
    """The epoch of the lease as the page showed it."""

    epoch: Annotated[int, Field(ge=0)]


@route(bp, "/status", scope="member", hidden=True, programs=False)
def index(actor: Actor) -> Response:
    """Show the state of the service's components; for admins, also the jobs of their workspace."""
    found = health.ask()
    ready = all(part.state == "ok" for part in found.values())
    more = _for_admins(actor, found) if actor.can("admin") else {}
    return reply(
        template="status.html", found=found, uses=_USES, ready=ready, admin=actor.can("admin"), **more
    )


def _for_admins(actor: Actor, found: dict[str, health.Part]) -> dict[str, Any]:
    told: dict[str, Any] = {"processes": [], "queues": [], "work": [], "failed": [], "now": clock.epoch()}
    told |= {"lost_after": limits.LEASE_SECONDS, "failed_days": limits.STATUS_FAILED_DAYS}
    told |= {"most_work": limits.STATUS_WORK, "most_failed": limits.STATUS_FAILED}
    told["release"] = {
        "version": health.service_version(),
        "engine": ENGINE,
        "newest": health.newest_revision(),
    }
    told["sandbox"] = health.sandbox() if found["redis"].state == "ok" else ""
    if found["database"].state != "ok":
        return told
    try:
        told["queues"], told["work"] = health.queues(), operations_work.going_on(actor)
        told["failed"] = operations_work.failed(actor)
        told["processes"] = operations_work.processes(actor)
    except (SQLAlchemyError, redis.RedisError) as error:
        told["broken"] = type(error).__name__
    return told


@route(
    bp,
    "/status/leases/<work_id>/release",
    ["POST"],
    scope="admin",
    body=ReleaseIn,
    hidden=True,
    programs=False,
)
def release(actor: Actor, work_id: str, body: ReleaseIn) -> Response:
    """Take work from a worker that is stuck."""
    work = operations_work.release(actor, work_id, body.epoch)
    ends = (
        "It was marked as failed, because programs are not repeated."
        if work.kind == "run"
        else "The next worker will continue it."
    )
    said = f"{work.kind.capitalize()} {work.name or work.id} was released from {work.owner or 'its worker'}. {ends}"
    return reply(see=url_for("status.index"), flashed=said)
