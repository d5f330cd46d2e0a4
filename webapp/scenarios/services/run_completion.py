"""Complete runs, whatever ended them: last log line, row count, API key, audit entry, and start of the next run.

`CODES` are the codes of a run's `error`. They describe how a program ended, not how a request failed, so they are no
codes of the API's errors; like those they are never renamed or reused.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final

import redis
from sqlalchemy import Select, case, func, or_, select, update
from sqlalchemy.orm import Session

from webapp import clock, ids, limits
from webapp.access.models import ApiKey, Workspace
from webapp.audit.models import AuditEntry
from webapp.extensions import reading, redis_client, writing
from webapp.scenarios.models import Run
from webapp.scenarios.services import run_logs
from webapp.security import keys
from webapp.work import jobs_queue
from webapp.work.models import END_STATES

SCOPES: Final = ("read", "write", "generate", "push", "run")
API_VERSION: Final = "2026-11-21"  # the newest; a test compares it with what the views know


def issue(session: Session, run: Run, maker: str, now: datetime) -> str:
    """Create a new API key for a run, in the caller's transaction, and return its text. An older key of the same run,
    which its first worker has released, is revoked. `maker`: the user whose role it has."""
    revoke(session, run.id, now)
    text, handle, secret_hash = keys.new_key(os.urandom)
    seconds = run.settings["timeout_seconds"] + limits.RUN_KEY_MARGIN_SECONDS
    session.add(
        ApiKey(
            workspace_id=run.workspace_id,
            project_id=run.project_id,
            team_id=run.team_id,
            name=run.id,
            handle=handle,
            secret_hash=secret_hash,
            scopes=list(SCOPES),
            created_by=maker,
            api_version=API_VERSION,
            expires_at=now + timedelta(seconds=seconds),
            run_id=run.id,
            writable_secrets=list(run.settings["writable_secrets"]),
        )
    )
    return text


def revoke(session: Session, run_id: str, now: datetime) -> None:
    """End the key of a run, in the caller's transaction. Doing it twice changes nothing."""
    session.execute(
        update(ApiKey)
        .where(ApiKey.run_id == run_id, ApiKey.revoked_at.is_(None))
        .values(revoked_at=now)
        .execution_options(synchronize_session=False)
    )


KIND: Final = "run"
_MOST: Final = case(
    *((Workspace.plan == plan, most) for plan, most in limits.RUNS_AT_ONCE.items()),
    else_=1,
)


def may_start(run_id: str) -> Callable[[Session], bool]:
    """Return the condition under which a worker may start a run: a free slot in its workspace."""

    def ask(session: Session) -> bool:
        run = session.execute(select(Run.workspace_id, Run.status).where(Run.id == run_id)).one_or_none()
        if run is None or run.status != "queued":
            return True  # one that was handed back has its place; of all others `take` decides
        most = session.scalar(
            select(_MOST).where(Workspace.id == run.workspace_id).with_for_update(key_share=True)
        )
        running = session.scalar(
            select(func.count())
            .select_from(Run)
            .where(Run.workspace_id == run.workspace_id, Run.status == "running")
        )
        return (running or 0) < (most or 0)

    return ask


def startable(statement: Select[Any]) -> Select[Any]:
    """Restrict a query to runs that are not queued behind others: the sweeper enqueues only those."""
    place = func.row_number().over(partition_by=Run.workspace_id, order_by=(Run.created_at, Run.id))
    queued = (
        select(Run.id, Run.workspace_id, place.label("place"))
        .where(Run.status == "queued", Run.cancel_requested_at.is_(None))
        .subquery()
    )
    running = (
        select(Run.workspace_id, func.count().label("runs"))
        .where(Run.status == "running")
        .group_by(Run.workspace_id)
        .subquery()
    )
    first = (
        select(queued.c.id)
        .join(Workspace, Workspace.id == queued.c.workspace_id)
        .outerjoin(running, running.c.workspace_id == queued.c.workspace_id)
        .where(queued.c.place <= _MOST - func.coalesce(running.c.runs, 0))
    )
    return statement.where(or_(Run.status != "queued", Run.id.in_(first)))


def ring_next(client: redis.Redis, workspace_id: str) -> None:
    """Enqueue the workspace's runs that can start now and have no job yet. If Redis is down, the sweeper does it."""
    queued = select(Run.id).where(Run.workspace_id == workspace_id, Run.status == "queued")
    with reading() as session:
        found = session.scalars(startable(queued).order_by(Run.created_at, Run.id)).all()
    if not found:
        return
    try:
        rings = jobs_queue.waiting(client, KIND)
    except redis.RedisError as error:
        log.warning("Redis is unavailable, %d run(s) are waiting: %s", len(found), error)
        return
    for run_id in found:
        if run_id not in rings:
            jobs_queue.ring(client, KIND, run_id)


log = logging.getLogger(__name__)

CODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "program_failed": "The program failed.",
        "time_limit": "The program exceeded its time limit.",
        "memory_limit": "The program exceeded the memory limit of a run.",
        "process_limit": "The program exceeded the process limit of a run.",
        "disk_limit": "The program exceeded the disk limit of a run.",
        "cpu_limit": "The program exceeded the CPU time limit of a run.",
        "log_limit": "The program's output exceeded the log size limit of a run.",
        "environment_failed": "The environment of the program could not be created.",
        "secret_missing": "A secret of the scenario does not exist.",
        "uploads_failed": "The workspace's files could not be loaded.",
        "maker_missing": "The user who started this run no longer exists or has lost access.",
        "program_missing": "The version of the scenario no longer exists.",
        "sandbox_missing": "This machine has no working sandbox.",
        "outputs_failed": "The output files could not be stored.",
        "worker_stopped": "The runner was stopped during the run. Runs are not repeated.",
        "worker_lost": "The runner was lost. Runs are not repeated.",
        "internal_error": "Something went wrong on our side.",
    }
)
# Actions that generate rows; a push of rows from the request does not.
_MAKING: Final = ("template.generate", "template.export", "dataset.export", "template.push", "dataset.push")
MARK: Final = "rowsmith: "  # prefix of log lines written by Rowsmith itself


def error(code: str, message: str | None = None, **details: Any) -> dict[str, Any]:
    """A run's `error`."""
    return {"code": code, "message": message or CODES[code], "details": details}


def settle(run_id: str) -> None:
    """Complete a run: write the last log line if it is missing, wake followers, and start the next run of its
    workspace. Can be called repeatedly; does nothing while the run is running."""
    with writing() as session:
        run = session.get(Run, run_id, with_for_update=True)
        if run is None or not run.ended:
            return
        close(session, run_id)
        workspace_id = run.workspace_id
    run_logs.wake(run_id)
    ring_next(redis_client(), workspace_id)


def untold() -> list[str]:
    """Return runs that have ended but are not completed; the sweeper completes them."""
    ended = select(Run.id).where(Run.closed_at.is_(None), Run.status.in_(END_STATES))
    with reading() as session:
        return list(session.scalars(ended.limit(limits.SWEEP_BATCH)))


def close(session: Session, run_id: str) -> None:
    """Record the end of a run in the transaction that ends it: the log contains the reason unless the run was
    successful, the key is revoked, the rows are counted, and an audit entry is written. Does this once."""
    run = session.get_one(Run, run_id)
    if run.closed_at is not None:
        return
    now = clock.now()
    run.closed_at = now
    revoke(session, run_id, now)
    run.rows_generated = rows_made(session, run)
    if run.status != "completed":
        run_logs.write(session, run, [_line(run)], now)
    session.add(_entry(run))


def rows_made(session: Session, run: Run) -> int:
    """Return the number of rows that a run has generated so far, according to the audit log: generate requests, exports
    and pushes of templates and datasets that used its key."""
    if run.started_at is None:
        return 0
    own = select(ApiKey.id).where(ApiKey.run_id == run.id)
    counted = select(func.sum(AuditEntry.rows)).where(
        AuditEntry.workspace_id == run.workspace_id,
        AuditEntry.at >= run.started_at - timedelta(seconds=limits.LEASE_SECONDS),  # clocks differ a little
        AuditEntry.key_id.in_(own),
        AuditEntry.action.in_(_MAKING),
    )
    return int(session.scalar(counted) or 0)


def _line(run: Run) -> str:
    """Return the last line of a log: why the run ended."""
    told = {"timed_out": "stopped", "cancelled": "cancelled"}.get(run.status, "failed")
    why = f": {run.error['message']}" if run.error else ""
    return " ".join(f"{MARK}{told}{why}".split())


def _entry(run: Run) -> AuditEntry:
    """Write the audit entry about the end. It counts no rows, because the program's own requests do."""
    details = {
        "scenario": run.scenario_id,
        "version": run.scenario_version,
        "status": run.status,
        "exit_code": run.exit_code,
        "code": run.error["code"] if run.error else None,
        "rows_generated": run.rows_generated,
    }
    return AuditEntry(
        id=ids.new("aud"),
        at=clock.now(),
        workspace_id=run.workspace_id,
        action="run.end",
        object_type="run",
        object_id=run.id,
        project_id=run.project_id,
        user_id=run.created_by,
        key_id=run.key_id,
        details=details,
    )
