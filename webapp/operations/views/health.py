"""Health checks: liveness and readiness. Open to all; requests without credentials are not counted.

Without an admin's credentials the responses include only a status. Admins see components, kinds and major versions;
addresses, folders, machines and full versions are on the status page.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from flask import Blueprint, Response
from pydantic import BaseModel
from sqlalchemy.exc import SQLAlchemyError

from webapp.accounts import authentication
from webapp.engine.plan import ENGINE
from webapp.errors import ApiError
from webapp.monitoring import health
from webapp.monitoring.health import Part
from webapp.web.responses import json_reply
from webapp.web.routing import route

log = logging.getLogger(__name__)
bp = Blueprint("health", __name__)


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


_SAID: Final = {
    "missing": "",
    "slow": " (no answer in time)",
    "behind": " (its schema is older than this release)",
}


@route(bp, "/health/live", scope="public", counted=False, returns=Live)
def live() -> Response:
    """Check whether the process responds. Checks nothing else."""
    return json_reply({"status": "ok"})


@route(bp, "/health/ready", scope="public", counted=False, returns=ReadyOut, errors=["unavailable"])
def ready() -> Response:
    """Check whether database, Redis, storage, a worker and a scenario runner are available; 503 if one is not.

    Each has 1.5 seconds to respond. With the credentials of a workspace admin, the response says which component is
    missing, and shows versions, latencies and queues; any other response has a status only.
    """
    found = health.ask()
    there = {name: part.state == "ok" for name, part in found.items()}
    told = {"parts": {name: _shown(part) for name, part in found.items()}}
    missing = ", ".join(f"{name}{_SAID[part.state]}" for name, part in found.items() if part.state != "ok")
    if missing:
        log.warning("Not ready: %s.", missing)
    if not authentication.is_admin():
        if missing:
            raise ApiError("unavailable", "The service is not ready.")
        return json_reply({"status": "ok"})
    if missing:
        raise ApiError("unavailable", f"Not ready: {missing}.", {**there, **told})
    return json_reply(
        {
            "status": "ok",
            **there,
            "sandbox": health.sandbox(),
            "version": health.service_version(),
            "engine": ENGINE,
            **told,
            **waiting(),
        }
    )


def _shown(part: Part) -> dict[str, Any]:
    facts = dict(part.facts)
    if "version" in facts:
        facts["version"] = health.coarse(facts["version"])
    return {"state": part.state, "ms": part.ms, **facts}


def waiting() -> dict[str, Any]:
    """Return `queues` by name and `oldest_lease_seconds`; nothing if the database becomes unavailable."""
    try:
        queues = {
            one.name: {"waiting": one.waiting, "running": one.running, "oldest_seconds": one.oldest_seconds}
            for one in health.queues()
        }
        return {"queues": queues, "oldest_lease_seconds": health.oldest_lease_seconds()}
    except SQLAlchemyError as error:
        log.error("queues are not counted: %s", type(error).__name__)
        return {"queues": {}, "oldest_lease_seconds": None}
