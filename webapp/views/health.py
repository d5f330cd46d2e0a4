"""Whether the service lives, and whether it can work. Open to all, and no request is spent."""

from __future__ import annotations

import logging
from collections.abc import Callable

import redis
from flask import Blueprint, Response, current_app
from pydantic import BaseModel
from sqlalchemy import text

from webapp import clock, limits, storage
from webapp.errors import ApiError
from webapp.extensions import reading, redis_client
from webapp.services import heartbeat
from webapp.views.reply import json_reply
from webapp.views.routes import route

log = logging.getLogger(__name__)
bp = Blueprint("health", __name__)


class Live(BaseModel):
    """The process answers."""

    status: str


class Ready(Live):
    """The parts the service works with."""

    database: bool
    redis: bool
    storage: bool
    worker: bool
    runner: bool


class ReadyOut(Ready):
    """`sandbox`: how the runners keep programs apart: bubblewrap, landlock, plain or none, in one text where they
    differ."""

    sandbox: str


@route(bp, "/health/live", scope="public", counted=False, returns=Live)
def live() -> Response:
    """Whether the process answers. Asks nothing else."""
    return json_reply({"status": "ok"})


@route(bp, "/health/ready", scope="public", counted=False, returns=ReadyOut, errors=["unavailable"])
def ready() -> Response:
    """Whether database, Redis, storage, a worker and a runner of scenarios are there; 503 names what is missing."""
    found = parts()
    if not all(found.values()):
        missing = ", ".join(name for name, there in found.items() if not there)
        raise ApiError("unavailable", f"Not ready: {missing}.", found)
    return json_reply({"status": "ok", **found, "sandbox": sandbox()})


def parts() -> dict[str, bool]:
    """Whether each part the service works with is there."""
    return {
        "database": _holds(_database),
        "redis": _holds(lambda: bool(redis_client().ping())),
        "storage": _holds(lambda: storage.of(current_app).usable()),
        "worker": _holds(lambda: _beats(heartbeat.WORKER)),
        "runner": _holds(lambda: _beats(heartbeat.RUNNER)),
    }


def sandbox() -> str:
    """How the runners that are there keep programs apart; "" where none says."""
    try:
        return ", ".join(heartbeat.told(redis_client(), heartbeat.RUNNER, _since()))
    except redis.RedisError:
        return ""


def _holds(ask: Callable[[], bool]) -> bool:
    try:
        return ask()
    except Exception as error:  # whatever a part raises, the answer is that it is not there
        level = logging.WARNING if isinstance(error, redis.RedisError) else logging.ERROR
        log.log(level, "not ready: %s: %s", type(error).__name__, error)
        return False


def _database() -> bool:
    with reading() as session:
        return session.scalar(text("SELECT 1")) == 1


def _beats(part: str) -> bool:
    return heartbeat.alive(redis_client(), part, _since()) > 0


def _since() -> float:
    return clock.epoch() - limits.WORKER_SEEN_SECONDS
