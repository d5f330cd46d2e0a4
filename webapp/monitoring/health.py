"""The components of the service: whether each is available, its version, and the number of waiting jobs. Nothing here
belongs to a workspace, so totals and versions are public; addresses, folders and host names are not.

Each component is checked in a separate thread within READY_SECONDS. A component that hangs is checked only once:
requests in the meantime wait for the same result.
"""

from __future__ import annotations

import functools
import logging
import os
import re
import socket
import threading
import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import orjson
import redis
from flask import Flask, current_app
from sqlalchemy import func, select, text
from sqlalchemy.exc import DatabaseError

from webapp import clock, limits, storage
from webapp.extensions import application, read_session, redis_client
from webapp.work import jobs_queue
from webapp.work.jobs_queue import KINDS

WORKER = "worker"
RUNNER = "runner"
SWEEPER = "sweeper"
WEB = "web"
"""Web processes, as counted for /metrics."""


def process_name() -> str:
    """Return the name of this process: `host:pid`."""
    return f"{socket.gethostname()}:{os.getpid()}"


@dataclass(frozen=True, slots=True)
class Process:
    """A process with heartbeats: `last_seen` is the epoch second of the last one; `about` has `since` (epoch seconds),
    and while the process works, `kind` and `id` of the job and `at`, the time when the process started it."""

    part: str
    host: str
    pid: str
    last_seen: float
    about: Mapping[str, Any]


def _heartbeat_key(part: str) -> str:
    return f"rowsmith:alive:{part}"


def record_heartbeat(client: redis.Redis, part: str, process: str, now: float) -> None:
    """Record a heartbeat of `process` of `part`, and remove expired ones. `now` is in epoch seconds."""
    with client.pipeline() as pipe:
        pipe.zadd(_heartbeat_key(part), {process: now})
        pipe.zremrangebyscore(_heartbeat_key(part), "-inf", now - limits.WORKER_HEARTBEAT_MAX_AGE_SECONDS)
        pipe.execute()


def record_end(client: redis.Redis, part: str, process: str) -> None:
    """Record that `process` has ended."""
    client.zrem(_heartbeat_key(part), process)


def report_value(client: redis.Redis, part: str, process: str, value: str) -> None:
    """Store a detail of a process with its heartbeat, and for as long."""
    client.set(f"{_heartbeat_key(part)}:{process}", value, ex=limits.WORKER_HEARTBEAT_MAX_AGE_SECONDS)


def reported_values(client: redis.Redis, part: str, since: float) -> list[str]:
    """Return the attributes that the living processes of a component report, without duplicates, in order."""
    found = _with_heartbeat(client, part, since)
    values = client.mget([f"{_heartbeat_key(part)}:{name}" for name, _ in found]) if found else []
    return sorted({value.decode() for value in values if isinstance(value, bytes)})


def _with_heartbeat(client: redis.Redis, part: str, since: float) -> list[tuple[str, float]]:
    """Return the processes of a part with a heartbeat at or after `since`, and its time, by name."""
    reply: Any = client.zrangebyscore(
        _heartbeat_key(part), since, "+inf", withscores=True
    )  # its type depends on options
    return sorted((name.decode(), float(score)) for name, score in reply)


def count_alive(client: redis.Redis, part: str, since: float) -> int:
    """Return the number of processes of `part` with a heartbeat at or after `since` (epoch seconds). Error: RedisError.

    The readiness check counts those of the last WORKER_HEARTBEAT_MAX_AGE_SECONDS.
    """
    return int(client.zcount(_heartbeat_key(part), since, "+inf"))


def report_activity(client: redis.Redis, part: str, process: str, about: Mapping[str, Any]) -> None:
    """Report the activity of a process with its heartbeat; see `Process`."""
    client.set(
        f"{_heartbeat_key(part)}:{process}:about",
        orjson.dumps(about),
        ex=limits.WORKER_HEARTBEAT_MAX_AGE_SECONDS,
    )


def processes(client: redis.Redis, part: str, since: float) -> list[Process]:
    """Return the processes of a component with a heartbeat at or after `since`, by name. Error: RedisError."""
    found = _with_heartbeat(client, part, since)
    descriptions = client.mget([f"{_heartbeat_key(part)}:{name}:about" for name, _ in found]) if found else []
    result = []
    for (name, score), about in zip(found, descriptions, strict=True):
        host, _, pid = name.rpartition(":")
        result.append(Process(part, host, pid, score, orjson.loads(about) if about else {}))
    return result


log = logging.getLogger(__name__)

_ROOT: Final = Path(__file__).resolve().parents[2]
COMPONENTS: Final = ("database", "redis", "storage", "worker", "runner")
_CACHE_KEY: Final = "rowsmith.parts"
_creation_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class ComponentState:
    """The state of a component. `state`: ok, missing (it failed), slow (no response within READY_SECONDS), behind (the
    database's schema is older than this release). `facts` are its details: kind, version, revision, count; `ms` is its
    latency."""

    name: str
    state: str
    ms: int
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Queue:
    """Work of one queue: `waiting` and `running` pieces, and for how many seconds the oldest has waited."""

    name: str
    waiting: int
    running: int
    oldest_seconds: float | None


class _TimedCheck:
    """The check of one component; at most one thread runs it at a time."""

    def __init__(self, app: Flask, name: str, check: Callable[[], tuple[str, dict[str, Any]]]) -> None:
        self._app, self._name, self._check = app, name, check
        self._lock = threading.Lock()
        self._done: threading.Event | None = None
        self._result: ComponentState | None = None

    def begin(self) -> threading.Event:
        """Start the check unless one is in progress."""
        with self._lock:
            if self._done is None:
                self._done = threading.Event()
                name = f"ask-{self._name}"
                threading.Thread(target=self._run, args=(self._done,), name=name, daemon=True).start()
            return self._done

    def wait_for_result(self, done: threading.Event, until: float) -> ComponentState:
        """Return the result, or the state slow."""
        if done.wait(max(0.0, until - time.monotonic())) and self._result is not None:
            return self._result
        return ComponentState(self._name, "slow", round(limits.READY_SECONDS * 1000))

    def _run(self, done: threading.Event) -> None:
        started = time.monotonic()
        try:
            with self._app.app_context():
                state, facts = self._check()
        except Exception as error:  # any exception means that the component is unavailable
            level = logging.WARNING if isinstance(error, redis.RedisError) else logging.ERROR
            log.log(level, "%s is not ready: %s: %s", self._name, type(error).__name__, error)
            state, facts = "missing", {}
        self._result = ComponentState(self._name, state, round((time.monotonic() - started) * 1000), facts)
        with self._lock:
            self._done = None
        done.set()


def check_all() -> dict[str, ComponentState]:
    """Check all components in parallel, within READY_SECONDS."""
    checks = _checks()
    until = time.monotonic() + limits.READY_SECONDS
    events = {name: check.begin() for name, check in checks.items()}
    return {name: checks[name].wait_for_result(done, until) for name, done in events.items()}


def _checks() -> dict[str, _TimedCheck]:
    app = application()
    with _creation_lock:
        if _CACHE_KEY not in app.extensions:
            checks = (_database, _redis, _storage, _heartbeat_check(WORKER), _heartbeat_check(RUNNER))
            app.extensions[_CACHE_KEY] = {
                name: _TimedCheck(app, name, check) for name, check in zip(COMPONENTS, checks, strict=True)
            }
        questions: dict[str, _TimedCheck] = app.extensions[_CACHE_KEY]
        return questions


def _database() -> tuple[str, dict[str, Any]]:
    with read_session() as session:
        kind = session.get_bind().dialect.name
        message = "SELECT sqlite_version()" if kind == "sqlite" else "SHOW server_version"
        facts = {"kind": kind, "version": str(session.scalar(text(message))), "revision": None}
    with read_session() as session:
        try:
            facts["revision"] = session.scalar(text("SELECT version_num FROM alembic_version"))
        except DatabaseError as error:  # created without migrations: there is nothing to compare
            log.debug("no revision: %s", type(error).__name__)
    behind = facts["revision"] is not None and facts["revision"] < newest_revision()
    return ("behind" if behind else "ok"), facts


@functools.cache
def newest_revision() -> str:
    """Return the revision of the schema of this release."""
    return max(path.name[:4] for path in (_ROOT / "webapp" / "migrations" / "versions").glob("[0-9]*.py"))


@functools.cache
def service_version() -> str:
    """Return the version of this service."""
    return str(tomllib.loads((_ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"])


def _redis() -> tuple[str, dict[str, Any]]:
    info = redis_client().info("server")
    kind = "valkey" if "valkey_version" in info else "redis"
    return "ok", {"kind": kind, "version": str(info.get(f"{kind}_version", ""))}


def _storage() -> tuple[str, dict[str, Any]]:
    kind = "s3" if current_app.config["SETTINGS"].storage_url.startswith("s3:") else "file"
    return ("ok" if storage.get_storage(current_app).is_usable() else "missing"), {"kind": kind}


def _heartbeat_check(part: str) -> Callable[[], tuple[str, dict[str, Any]]]:
    def question() -> tuple[str, dict[str, Any]]:
        number = count_alive(redis_client(), part, heartbeat_cutoff())
        return ("ok" if number else "missing"), {"count": number}

    return question


def heartbeat_cutoff() -> float:
    """Return the epoch second of the oldest heartbeat that counts."""
    return clock.epoch() - limits.WORKER_HEARTBEAT_MAX_AGE_SECONDS


def sandbox() -> str:
    """Return the sandbox of the active runners; "" if none reports it."""
    try:
        return ", ".join(reported_values(redis_client(), RUNNER, heartbeat_cutoff()))
    except redis.RedisError:
        return ""


def major_version(version: str) -> str:
    """Return the leading number of a version, which may be public."""
    return re.match(r"\d*", version)[0]  # type: ignore[index]  # it always matches


# --- What waits ---------------------------------------------------------------------------------------------


def queues() -> list[Queue]:
    """Return all queues with their work, as the database has it. Takes some milliseconds. Errors: those of the
    database."""
    now = clock.now()
    result = []
    with read_session() as session:
        for kind in KINDS.values():
            model = kind.model
            conditions = [model.status.in_(("queued", "running"))]
            statement = select(model.status, func.count(), func.min(model.created_at))
            statement = statement.where(*conditions, *model.worker_conditions())
            found = {row[0]: row for row in session.execute(statement.group_by(model.status))}
            waiting, running = found.get("queued"), found.get("running")
            oldest = (now - waiting[2]).total_seconds() if waiting else None
            result.append(
                Queue(kind.queue, waiting[1] if waiting else 0, running[1] if running else 0, oldest)
            )
    return result


def oldest_lease_seconds() -> float | None:
    """Return the age of the oldest heartbeat of a worker with a lease; None without leases. Above LEASE_SECONDS, its
    work is about to be taken over."""
    found = _lease_ages(func.min)
    return round(max(found), 1) if found else None


def lease_clock_skew_seconds() -> float:
    """Return how far the clock of a worker with a lease is ahead of this one, at least; 0 if none is. Its work is
    considered lost that much later."""
    return round(max([0.0, *(-silent for silent in _lease_ages(func.max))]), 1)


def _lease_ages(aggregate: Any) -> list[float]:
    """Return the seconds since the last heartbeat of the lease that `aggregate` selects, for each kind of work."""
    now, found = clock.now(), []
    with read_session() as session:
        for kind in KINDS.values():
            model = kind.model
            horizon = now + timedelta(days=1)  # exports in parts hold theirs for ever
            statement = select(aggregate(model.lease_until)).where(
                model.status == "running", model.lease_until < horizon
            )
            if (until := session.scalar(statement)) is not None:
                found.append(limits.LEASE_SECONDS - (until - now).total_seconds())
    return found


def redis_queue_lengths() -> dict[str, int]:
    """Return the number of jobs in Redis by queue. Error: RedisError."""
    client = redis_client()
    return {kind.queue: jobs_queue.queue_of(client, name).count for name, kind in KINDS.items()}
