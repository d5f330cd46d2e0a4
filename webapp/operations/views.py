"""The service as its operators see it: health checks, metrics for Prometheus, and the status page.

Liveness and readiness are open to all; requests without credentials are not counted. Without an admin's credentials the
responses include only a status. Admins see components, kinds and major versions; addresses, folders, machines and full
versions are on the status page, which shows every member the state of the components, and admins also which work is
running, waiting or failed. /metrics is served where ROWSMITH_METRICS says so, to those who may read it.
"""

from __future__ import annotations

import hmac
import logging
from typing import Annotated, Any, Final

import redis
from flask import Blueprint, Response, current_app, g, request, url_for
from pydantic import BaseModel, Field
from sqlalchemy.exc import SQLAlchemyError

from webapp import clock, limits
from webapp.access.actors import Actor
from webapp.accounts import authentication
from webapp.config import Settings
from webapp.engine import ENGINE
from webapp.errors import ApiError
from webapp.monitoring import health
from webapp.monitoring import metrics as operations_metrics
from webapp.monitoring.health import ComponentState
from webapp.net import addresses
from webapp.operations import work as operations_work
from webapp.web.inputs import Input
from webapp.web.responses import json_reply, reply
from webapp.web.routing import route

log = logging.getLogger(__name__)
health_bp = Blueprint("health", __name__)


class Live(BaseModel):
    """The process responds."""

    status: str


class Ready(Live):
    """The components of the service. Only `status` is shown without an admin's credential."""

    database: bool = True
    redis: bool = True
    storage: bool = True
    worker: bool = True
    runner: bool = True


class ReadyPart(BaseModel):
    """A component.

    `state`: ok, missing, slow (no response in time), behind (the database schema is older than the service). `kind` and
    `version` of database, Redis and storage; `revision` of the schema; `count` of workers and runners.
    """

    state: str
    ms: int
    kind: str | None = None
    version: str | None = None
    revision: str | None = None
    count: int | None = None


class QueueOut(BaseModel):
    """Work in a queue, all workspaces. `oldest_seconds`: how long the oldest entry has waited."""

    waiting: int
    running: int
    oldest_seconds: float | None


class ReadyOut(Ready):
    """The sandbox and the oldest lease.

    `sandbox`: how the runners isolate programs: bubblewrap, landlock, plain or none, combined in one text if they
    differ. `oldest_lease_seconds`: the time since the last heartbeat of any worker that holds work.
    """

    sandbox: str = ""
    version: str = ""
    engine: int = ENGINE
    parts: dict[str, ReadyPart] = {}
    queues: dict[str, QueueOut] = {}
    oldest_lease_seconds: float | None = None


_STATE_NOTES: Final = {
    "missing": "",
    "slow": " (no answer in time)",
    "behind": " (its schema is older than this release)",
}


@route(health_bp, "/health/live", scope="public", rate_limited=False, returns=Live)
def live() -> Response:
    """Check whether the process responds. Checks nothing else."""
    return json_reply({"status": "ok"})


@route(
    health_bp, "/health/ready", scope="public", rate_limited=False, returns=ReadyOut, errors=["unavailable"]
)
def ready() -> Response:
    """Check whether database, Redis, storage, a worker and a scenario runner are available; 503 if one is not.

    Each has 1.5 seconds to respond. With the credentials of a workspace admin, the response says which component is
    missing, and shows versions, latencies and queues; any other response has a status only.
    """
    found = health.check_all()
    states = {name: part.state == "ok" for name, part in found.items()}
    details = {"parts": {name: _part_json(part) for name, part in found.items()}}
    missing = ", ".join(
        f"{name}{_STATE_NOTES[part.state]}" for name, part in found.items() if part.state != "ok"
    )
    if missing:
        log.warning("Not ready: %s.", missing)
    if not authentication.is_admin():
        if missing:
            raise ApiError("unavailable", "The service is not ready.")
        return json_reply({"status": "ok"})
    if missing:
        raise ApiError("unavailable", f"Not ready: {missing}.", {**states, **details})
    return json_reply(
        {
            "status": "ok",
            **states,
            "sandbox": health.sandbox(),
            "version": health.service_version(),
            "engine": ENGINE,
            **details,
            **waiting_work(),
        }
    )


def _part_json(part: ComponentState) -> dict[str, Any]:
    facts = dict(part.facts)
    if "version" in facts:
        facts["version"] = health.major_version(facts["version"])
    return {"state": part.state, "ms": part.ms, **facts}


def waiting_work() -> dict[str, Any]:
    """Return `queues` by name and `oldest_lease_seconds`; nothing if the database becomes unavailable."""
    try:
        queues = {
            queue.name: {
                "waiting": queue.waiting,
                "running": queue.running,
                "oldest_seconds": queue.oldest_seconds,
            }
            for queue in health.queues()
        }
        return {"queues": queues, "oldest_lease_seconds": health.oldest_lease_seconds()}
    except SQLAlchemyError as error:
        log.error("queues could not be counted: %s", type(error).__name__)
        return {"queues": {}, "oldest_lease_seconds": None}


# --- Metrics ------------------------------------------------------------------------------------------------

metrics_bp = Blueprint("metrics", __name__)
FORMAT: Final = "text/plain; version=0.0.4; charset=utf-8"


@route(metrics_bp, "/metrics", scope="public", rate_limited=False, allows_browsers=False, hidden=True)
def metrics() -> Response:
    """Metrics of all processes, and the current state.

    With ROWSMITH_METRICS_TOKEN, that token is required; otherwise from ROWSMITH_METRICS_NETWORKS, or from this machine.
    Programs of runs need the token in any case.
    """
    settings: Settings = current_app.config["SETTINGS"]
    if not settings.metrics:
        raise ApiError("not_found", "Metrics are disabled: the operator has not set ROWSMITH_METRICS.")
    _check_access(settings)
    return Response(operations_metrics.render(), content_type=FORMAT)


def _check_access(settings: Settings) -> None:
    """Check access. Errors: unauthenticated for a wrong or missing token, forbidden for an address without
    permission."""
    if settings.metrics_token:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        is_valid = hmac.compare_digest(token.strip().encode(), settings.metrics_token.encode())
        if scheme.casefold() == "bearer" and is_valid:
            return
        raise ApiError(
            "unauthenticated",
            "Send the token of ROWSMITH_METRICS_TOKEN: `Authorization: Bearer <token>`.",
            {"reason": "unknown" if scheme else "missing"},
            headers={"WWW-Authenticate": 'Bearer realm="rowsmith"'},
        )
    origin: addresses.Origin = request.environ["rowsmith.origin"]
    if settings.metrics_networks:
        if addresses.Proxies(settings.metrics_networks).trusts("" if g.address == "unix" else g.address):
            return
    # Behind a proxy on loopback, any client has its address, so a token or networks must be set. Programs
    # of runs that call ::1 cannot be distinguished from others there, so ::1 has to be in ROWSMITH_METRICS_NETWORKS.
    elif (
        addresses.is_loopback(origin.address)
        and not addresses.is_scenario_run(origin.address)
        and origin.address != "::1"
        and not origin.forwarded
        and not settings.trusted_proxies
    ):
        return
    raise ApiError(
        "forbidden",
        "This address is not allowed to read /metrics: the operator sets ROWSMITH_METRICS_TOKEN or "
        "ROWSMITH_METRICS_NETWORKS.",
        {"needs": "operator"},
    )


# --- Status page --------------------------------------------------------------------------------------------

status_bp = Blueprint("status", __name__)
_PART_USES = (
    ("database", "templates, keys, users, audit log"),
    ("redis", "rate limits, notifications to workers"),
    ("storage", "export files"),
    ("worker", "creates files, sends rows"),
    ("runner", "runs the programs of scenarios"),
)


class ReleaseIn(Input):
    """The epoch of the lease that the page showed."""

    epoch: Annotated[int, Field(ge=0)]


@route(status_bp, "/status", scope="member", hidden=True, allows_api_keys=False)
def index(actor: Actor) -> Response:
    """Show the state of the service's components; for admins, also the jobs of their workspace."""
    found = health.check_all()
    ready = all(part.state == "ok" for part in found.values())
    more = _admin_context(actor, found) if actor.can("admin") else {}
    return reply(
        template="status.html", found=found, uses=_PART_USES, ready=ready, admin=actor.can("admin"), **more
    )


def _admin_context(actor: Actor, found: dict[str, health.ComponentState]) -> dict[str, Any]:
    context: dict[str, Any] = {"processes": [], "queues": [], "work": [], "failed": [], "now": clock.epoch()}
    context |= {"lost_after": limits.LEASE_SECONDS, "failed_days": limits.STATUS_FAILED_DAYS}
    context |= {"most_work": limits.STATUS_WORK, "most_failed": limits.STATUS_FAILED}
    context["release"] = {
        "version": health.service_version(),
        "engine": ENGINE,
        "newest": health.newest_revision(),
    }
    context["sandbox"] = health.sandbox() if found["redis"].state == "ok" else ""
    if found["database"].state != "ok":
        return context
    try:
        context["queues"], context["work"] = health.queues(), operations_work.unfinished_work(actor)
        context["failed"] = operations_work.failed_work(actor)
        context["processes"] = operations_work.processes(actor)
    except (SQLAlchemyError, redis.RedisError) as error:
        context["broken"] = type(error).__name__
    return context


@route(
    status_bp,
    "/status/leases/<work_id>/release",
    ["POST"],
    scope="admin",
    body=ReleaseIn,
    hidden=True,
    allows_api_keys=False,
)
def release(actor: Actor, work_id: str, body: ReleaseIn) -> Response:
    """Release work from a worker that is stuck."""
    work = operations_work.release(actor, work_id, body.epoch)
    note = (
        "It was marked as failed, because programs are not repeated."
        if work.kind == "run"
        else "The next worker will continue it."
    )
    message = f"{work.kind.capitalize()} {work.name or work.id} was released from {work.owner or 'its worker'}. {note}"
    return reply(redirect_to=url_for("status.index"), flash_message=message)
