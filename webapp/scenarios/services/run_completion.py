"""The end of a run, whoever brought it about: its last line, its rows, its key, the trail, whose turn is next.

`CODES` are the codes of a run's `error`. They describe how a program ended, not how a request failed, so they are no
codes of the API's errors; like those they are never renamed or reused.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from webapp import clock, ids, limits
from webapp.accounts.models import ApiKey
from webapp.audit.models import AuditEntry
from webapp.extensions import reading, redis_client, writing
from webapp.operations.models import END_STATES
from webapp.scenarios.models import Run
from webapp.scenarios.services import run_keys, run_logs, run_queue

log = logging.getLogger(__name__)

CODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "program_failed": "The program ended with an error.",
        "time_limit": "The time limit was reached.",
        "memory_limit": "The program used more memory than a run may have.",
        "process_limit": "The program started more processes than a run may have.",
        "disk_limit": "The program wrote more than a run may write.",
        "cpu_limit": "The program used more processor time than a run may have.",
        "log_limit": "The program printed more than a run's log may hold.",
        "environment_failed": "The environment of the program could not be made.",
        "secret_missing": "A secret that the scenario is given is not there.",
        "uploads_failed": "The workspace's files could not be fetched for the program.",
        "maker_missing": "Nobody is there in whose name the program could act.",
        "program_missing": "The version of the program is not there.",
        "sandbox_missing": "Programs cannot be run in protection on this machine.",
        "outputs_failed": "The files that the program left behind could not be stored.",
        "worker_stopped": "The runner was stopped while the program ran; it is not repeated.",
        "worker_lost": "The runner of this program was lost; it is not repeated.",
        "internal_error": "Something went wrong on our side.",
    }
)
# Actions that make rows; sending rows that were brought along makes none.
_MAKING: Final = ("template.generate", "template.export", "dataset.export", "template.push", "dataset.push")
MARK: Final = "rowsmith: "  # begins the lines of a run's log that are ours


def error(code: str, message: str | None = None, **details: Any) -> dict[str, Any]:
    """A run's `error`."""
    return {"code": code, "message": message or CODES[code], "details": details}


def settle(run_id: str) -> None:
    """See to the end of a run: told, if it was not; followers woken; the next one of its workspace called. Does it as
    often as it is called, and nothing for a run that goes on."""
    with writing() as session:
        run = session.get(Run, run_id, with_for_update=True)
        if run is None or not run.ended:
            return
        close(session, run_id)
        workspace_id = run.workspace_id
    run_logs.wake(run_id)
    run_queue.ring_next(redis_client(), workspace_id)


def untold() -> list[str]:
    """Runs that have ended and were not told: the sweeper settles them."""
    ended = select(Run.id).where(Run.closed_at.is_(None), Run.status.in_(END_STATES))
    with reading() as session:
        return list(session.scalars(ended.limit(limits.SWEEP_BATCH)))


def close(session: Session, run_id: str) -> None:
    """Tell the end of a run that has one, in the transaction that wrote it: the log says why, unless it went well, the
    key ends, the rows are counted, the trail has an entry. Does it once."""
    run = session.get_one(Run, run_id)
    if run.closed_at is not None:
        return
    now = clock.now()
    run.closed_at = now
    run_keys.revoke(session, run_id, now)
    run.rows_generated = rows_made(session, run)
    if run.status != "completed":
        run_logs.write(session, run, [_line(run)], now)
    session.add(_entry(run))


def rows_made(session: Session, run: Run) -> int:
    """Rows that a run's program had made so far, by the trail: those of generates, exports and pushes of templates and
    datasets that were asked for with its key."""
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
    """The last line of a log: why it ended."""
    told = {"timed_out": "stopped", "cancelled": "cancelled"}.get(run.status, "failed")
    why = f": {run.error['message']}" if run.error else ""
    return " ".join(f"{MARK}{told}{why}".split())


def _entry(run: Run) -> AuditEntry:
    """How it ended, in the trail. It counts no rows: those of the program's own requests do."""
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
