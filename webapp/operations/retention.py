"""Retention by plan: logs, export files, finished work. Called by the sweeper.

Logs of runs and pushes and the files of exports are deleted first; the runs, pushes and exports stay, and show this.
Later, whole runs, pushes with their ledgers, and exports are deleted. The audit log stays: a deletion adds an entry per
day, and the entries that were written earlier contain who did what, with which seed and version.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from flask import current_app
from sqlalchemy import Select, delete, exists, func, insert, or_, select, update
from sqlalchemy.orm import aliased

from webapp import limits, storage
from webapp.access import actors
from webapp.access.models import Workspace
from webapp.audit.services import audit_log
from webapp.exports.export_files import remove_files
from webapp.exports.models import Export, ExportPart
from webapp.extensions import changed_rows, reading, writing
from webapp.files import services as files
from webapp.files.models import WorkspaceFile
from webapp.files.names import OUTPUTS
from webapp.limits import Retention
from webapp.pushes.models import Push, PushLine, PushRange, PushRow
from webapp.scenarios.models import Run, RunChunk
from webapp.scenarios.services.run_completion import MARK
from webapp.work import batch_delete
from webapp.work.batch_delete import TimeBudget, rows
from webapp.work.models import END_STATES

log = logging.getLogger(__name__)

QUIET: Final = {"synchronize_session": False}
Done = Counter[tuple[str, str]]
"""Return the numbers of deleted objects, by workspace."""


def sweep(now: datetime, turn: TimeBudget) -> int:
    """Remove what no plan keeps any more, until the turn is over. Returns the number of runs, pushes, exports, logs and
    files."""
    done: Done = Counter()
    for plan, kept in limits.RETENTION.items():
        for step in (_run_logs, _push_logs, _export_files, _runs, _pushes, _exports):
            if turn.over:
                break
            step(plan, kept, now, turn, done)
    for workspace_id in {workspace_id for workspace_id, _ in done}:
        told: dict[str, Any] = {what: number for (mine, what), number in done.items() if mine == workspace_id}
        audit_log.record(actors.system(workspace_id), "retention.sweep", ("workspace", workspace_id), **told)
    return sum(done.values())


def _ended(model: Any, plan: str, now: datetime, days: int) -> Select[Any]:
    """Return a select of work of one plan past its retention, the oldest first, in small batches."""
    of_plan = select(Workspace.id).where(Workspace.plan == plan)
    return (
        select(model.id, model.workspace_id)
        .where(model.workspace_id.in_(of_plan), model.status.in_(END_STATES))
        .where(model.finished_at < now - timedelta(days=days))
        .order_by(model.finished_at)
        .limit(limits.DRAIN_WORK)
    )


def _some(statement: Select[*tuple[Any, ...]]) -> Sequence[Any]:
    with reading() as session:
        return session.execute(statement).all()


def _gone(days: int, plan: str) -> str:
    return f"{MARK}this log was removed: the plan {plan} keeps logs for {days} days"


# --- Logs ---------------------------------------------------------------------------------------------------


def _run_logs(plan: str, kept: Retention, now: datetime, turn: TimeBudget, done: Done) -> None:
    statement = _ended(Run, plan, now, kept.log_days).where(
        Run.log_removed_at.is_(None), Run.line_count > 0, Run.closed_at.is_not(None)
    )
    text = _gone(kept.log_days, plan)
    while not turn.over and (found := _some(statement)):
        for run_id, workspace_id in found:
            if not _remove_run_log(run_id, text, now, turn):
                return
            done[workspace_id, "run_logs"] += 1


def _remove_run_log(run_id: str, text: str, now: datetime, turn: TimeBudget) -> bool:
    """Replace a run's log by a line that says so. Return False when the turn is over before all of it is gone."""
    with writing() as session:
        session.execute(delete(RunChunk).where(RunChunk.run_id == run_id, RunChunk.first == 1))
        session.add(RunChunk(run_id=run_id, first=1, last=1, at=now, text=text))
        told = {"line_count": 1, "log_bytes": len(text) + 1}
        session.execute(update(Run).where(Run.id == run_id).values(**told), execution_options=QUIET)
    others = (RunChunk.run_id == run_id) & (RunChunk.first > 1)
    batch_delete.rows(RunChunk, others, turn, limits.DRAIN_CHUNKS)
    if turn.over:
        return False
    with writing() as session:
        removed = update(Run).where(Run.id == run_id).values(log_removed_at=now)
        session.execute(removed, execution_options=QUIET)
    return True


def make_room_for_log(workspace_id: str, now: datetime) -> int:
    """Remove the oldest logs of a workspace's finished runs until a run that starts has space for its own, which is
    RUN_LOG_BYTES. Return how many were removed."""
    mine = (Run.workspace_id == workspace_id) & Run.log_removed_at.is_(None)
    with reading() as session:
        plan = session.scalar(select(Workspace.plan).where(Workspace.id == workspace_id)) or "free"
        used = int(session.scalar(select(func.sum(Run.log_bytes)).where(mine)) or 0)
    most, done = limits.RUN_LOGS_BYTES[plan], 0
    text = f"{MARK}this log was removed: the logs of all runs may take {most // limits.MB:,} MB, and newer ones need it"
    ended = mine & Run.status.in_(END_STATES) & Run.closed_at.is_not(None) & (Run.line_count > 0)
    while used > most - limits.RUN_LOG_BYTES:
        oldest = select(Run.id, Run.log_bytes).where(ended).order_by(Run.finished_at).limit(limits.DRAIN_WORK)
        found = _some(oldest)
        for run_id, size in found:
            if used <= most - limits.RUN_LOG_BYTES:
                break
            _remove_run_log(run_id, text, now, TimeBudget())
            used, done = used - size, done + 1
        if not found:
            break
    if done:
        whole = ("workspace", workspace_id)
        audit_log.record(actors.system(workspace_id), "retention.sweep", whole, run_logs=done)
    return done


def _push_logs(plan: str, kept: Retention, now: datetime, turn: TimeBudget, done: Done) -> None:
    statement = _ended(Push, plan, now, kept.log_days).where(Push.log_removed_at.is_(None))
    while not turn.over and (found := _some(statement)):
        for push_id, workspace_id in found:
            batch_delete.rows(PushLine, (PushLine.push_id == push_id) & (PushLine.number > 1), turn)
            if turn.over:
                return
            with writing() as session:
                first = (PushLine.push_id == push_id) & (PushLine.number == 1)
                session.execute(delete(PushLine).where(first), execution_options=QUIET)
                line = {"push_id": push_id, "number": 1, "at": now, "text": _gone(kept.log_days, plan)}
                session.execute(insert(PushLine).values(**line))
                moment = {"log_removed_at": now}
                session.execute(
                    update(Push).where(Push.id == push_id).values(**moment), execution_options=QUIET
                )
            done[workspace_id, "push_logs"] += 1


# --- Files --------------------------------------------------------------------------------------------------


def _export_files(plan: str, kept: Retention, now: datetime, turn: TimeBudget, done: Done) -> None:
    parts = exists().where(ExportPart.export_id == Export.id, ExportPart.storage_key.is_not(None))
    statement = _ended(Export, plan, now, kept.file_days).where(or_(Export.storage_key.is_not(None), parts))
    while not turn.over and (found := _some(statement)):
        for export_id, workspace_id in found:
            if batch_delete.held():
                return
            remove_files(export_id, now)
            done[workspace_id, "export_files"] += 1
            if turn.over:
                return


# --- Finished work ------------------------------------------------------------------------------------------


def _runs(plan: str, kept: Retention, now: datetime, turn: TimeBudget, done: Done) -> None:
    statement = _ended(Run, plan, now, kept.work_days).where(Run.closed_at.is_not(None))
    while not turn.over and (found := _some(statement)):
        for run_id, workspace_id in found:
            # Its outputs go to the trash. A file that its program stored elsewhere, such as an input that it replaced,
            # belongs to the workspace and stays.
            with writing() as session:
                outputs = update(WorkspaceFile).where(
                    WorkspaceFile.run_id == run_id,
                    WorkspaceFile.deleted_at.is_(None),
                    files.begins(f"{OUTPUTS}/{run_id}/"),
                )
                session.execute(outputs.values(deleted_at=now), execution_options=QUIET)
            done[workspace_id, "runs"] += runs([run_id], turn)
            if turn.over:
                return


def _pushes(plan: str, kept: Retention, now: datetime, turn: TimeBudget, done: Done) -> None:
    """Pushes with all their retries and undos, once the last of these is old enough."""
    later, border = aliased(Push), now - timedelta(days=kept.work_days)
    young = exists().where(later.of_id == Push.id, func.coalesce(later.finished_at, now) >= border)
    statement = _ended(Push, plan, now, kept.work_days).where(Push.of_id.is_(None), ~young)
    while not turn.over and (found := _some(statement)):
        for push_id, workspace_id in found:
            again = _some(select(Push.workspace_id, Push.id).where(Push.of_id == push_id))
            both = [*((one.workspace_id, one.id) for one in again), (workspace_id, push_id)]
            done[workspace_id, "pushes"] += pushes(both, turn)
            if turn.over:
                return


def _exports(plan: str, kept: Retention, now: datetime, turn: TimeBudget, done: Done) -> None:
    statement = _ended(Export, plan, now, kept.work_days)
    while not turn.over and (found := _some(statement)):
        for export_id, workspace_id in found:
            if batch_delete.held():
                return
            remove_files(export_id, now)
            batch_delete.rows(ExportPart, ExportPart.export_id == export_id, turn)
            if turn.over:
                return
            with writing() as session:
                session.execute(delete(Export).where(Export.id == export_id), execution_options=QUIET)
            done[workspace_id, "exports"] += 1


def pushes(found: Sequence[tuple[str, str]], turn: TimeBudget) -> int:
    """Remove pushes (workspace, id) with their ledgers, logs and captured keys. Returns how many are gone."""
    store = storage.of(current_app)
    done = 0
    for workspace_id, push_id in found:
        for model in (PushRow, PushRange, PushLine):
            rows(model, model.push_id == push_id, turn)
        if turn.over:
            return done
        for stored in store.listing(f"pushes/{workspace_id}/{push_id}"):
            store.delete(stored.key)
        done += _one(Push, push_id)
    return done


def runs(found: Sequence[str], turn: TimeBudget) -> int:
    """Remove runs with their logs. Returns how many are gone."""
    done = 0
    for run_id in found:
        rows(RunChunk, RunChunk.run_id == run_id, turn, limits.DRAIN_CHUNKS)
        if turn.over:
            return done
        done += _one(Run, run_id)
    return done


def _one(model: Any, row_id: str) -> int:
    with writing() as session:
        statement = delete(model).where(model.id == row_id)
        return changed_rows(session.execute(statement, execution_options={"synchronize_session": False}))


# The removal of workspaces that were deleted more than 30 days ago. Called by the sweeper.
