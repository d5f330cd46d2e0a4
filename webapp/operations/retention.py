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
from webapp.extensions import affected_row_count, read_session, write_session
from webapp.files import services as files
from webapp.files.models import WorkspaceFile
from webapp.files.names import OUTPUTS_FOLDER
from webapp.limits import Retention
from webapp.pushes.models import Push, PushLine, PushRange, PushRow
from webapp.scenarios.models import Run, RunChunk
from webapp.scenarios.services.run_completion import LOG_PREFIX
from webapp.work import batch_delete
from webapp.work.batch_delete import TimeBudget, delete_rows
from webapp.work.models import END_STATES

log = logging.getLogger(__name__)

NO_SYNCHRONIZATION: Final = {"synchronize_session": False}
RemovalCounts = Counter[tuple[str, str]]
"""The numbers of deleted objects, by workspace and kind."""


def sweep(now: datetime, budget: TimeBudget) -> int:
    """Remove data past its retention until the time budget is used up. Returns the number of runs, pushes, exports,
    logs and files."""
    done: RemovalCounts = Counter()
    for plan, retention in limits.RETENTION.items():
        for step in (
            _remove_run_logs,
            _remove_push_logs,
            _remove_export_files,
            _remove_expired_runs,
            _remove_expired_pushes,
            _remove_expired_exports,
        ):
            if budget.is_used_up:
                break
            step(plan, retention, now, budget, done)
    for workspace_id in {workspace_id for workspace_id, _ in done}:
        details: dict[str, Any] = {
            kind: number for (owner_id, kind), number in done.items() if owner_id == workspace_id
        }
        audit_log.record(
            actors.system_actor(workspace_id), "retention.sweep", ("workspace", workspace_id), **details
        )
    return sum(done.values())


def _past_retention(model: Any, plan: str, now: datetime, days: int) -> Select[Any]:
    """Return a select of work of one plan past its retention, the oldest first, in small batches."""
    of_plan = select(Workspace.id).where(Workspace.plan == plan)
    return (
        select(model.id, model.workspace_id)
        .where(model.workspace_id.in_(of_plan), model.status.in_(END_STATES))
        .where(model.finished_at < now - timedelta(days=days))
        .order_by(model.finished_at)
        .limit(limits.RETENTION_BATCH_WORK)
    )


def _read_batch(statement: Select[*tuple[Any, ...]]) -> Sequence[Any]:
    with read_session() as session:
        return session.execute(statement).all()


def _removal_note(days: int, plan: str) -> str:
    return f"{LOG_PREFIX}this log was removed: the {plan} plan keeps logs for {days} days"


# --- Logs ---------------------------------------------------------------------------------------------------


def _remove_run_logs(
    plan: str, retention: Retention, now: datetime, budget: TimeBudget, done: RemovalCounts
) -> None:
    statement = _past_retention(Run, plan, now, retention.log_days).where(
        Run.log_removed_at.is_(None), Run.line_count > 0, Run.closed_at.is_not(None)
    )
    text = _removal_note(retention.log_days, plan)
    while not budget.is_used_up and (found := _read_batch(statement)):
        for run_id, workspace_id in found:
            if not _remove_run_log(run_id, text, now, budget):
                return
            done[workspace_id, "run_logs"] += 1


def _remove_run_log(run_id: str, text: str, now: datetime, budget: TimeBudget) -> bool:
    """Replace a run's log by a note about the removal. Return False if the time budget is used up before it is done."""
    with write_session() as session:
        session.execute(delete(RunChunk).where(RunChunk.run_id == run_id, RunChunk.first == 1))
        session.add(RunChunk(run_id=run_id, first=1, last=1, at=now, text=text))
        values = {"line_count": 1, "log_bytes": len(text) + 1}
        session.execute(
            update(Run).where(Run.id == run_id).values(**values), execution_options=NO_SYNCHRONIZATION
        )
    others = (RunChunk.run_id == run_id) & (RunChunk.first > 1)
    batch_delete.delete_rows(RunChunk, others, budget, limits.RETENTION_BATCH_CHUNKS)
    if budget.is_used_up:
        return False
    with write_session() as session:
        removed = update(Run).where(Run.id == run_id).values(log_removed_at=now)
        session.execute(removed, execution_options=NO_SYNCHRONIZATION)
    return True


def make_room_for_log(workspace_id: str, now: datetime) -> int:
    """Remove the oldest logs of a workspace's finished runs until a run that starts has space for its own, which is
    RUN_LOG_BYTES. Return how many were removed."""
    run_logs = (Run.workspace_id == workspace_id) & Run.log_removed_at.is_(None)
    with read_session() as session:
        plan = session.scalar(select(Workspace.plan).where(Workspace.id == workspace_id)) or "free"
        used = int(session.scalar(select(func.sum(Run.log_bytes)).where(run_logs)) or 0)
    maximum, done = limits.RUN_LOGS_BYTES[plan], 0
    text = f"{LOG_PREFIX}this log was removed: the logs of all runs can take at most {maximum // limits.MB:,} MB,"
    text += " and newer logs need the space"
    removable = run_logs & Run.status.in_(END_STATES) & Run.closed_at.is_not(None) & (Run.line_count > 0)
    while used > maximum - limits.RUN_LOG_BYTES:
        oldest = (
            select(Run.id, Run.log_bytes)
            .where(removable)
            .order_by(Run.finished_at)
            .limit(limits.RETENTION_BATCH_WORK)
        )
        found = _read_batch(oldest)
        for run_id, size in found:
            if used <= maximum - limits.RUN_LOG_BYTES:
                break
            _remove_run_log(run_id, text, now, TimeBudget())
            used, done = used - size, done + 1
        if not found:
            break
    if done:
        workspace = ("workspace", workspace_id)
        audit_log.record(actors.system_actor(workspace_id), "retention.sweep", workspace, run_logs=done)
    return done


def _remove_push_logs(
    plan: str, retention: Retention, now: datetime, budget: TimeBudget, done: RemovalCounts
) -> None:
    statement = _past_retention(Push, plan, now, retention.log_days).where(Push.log_removed_at.is_(None))
    while not budget.is_used_up and (found := _read_batch(statement)):
        for push_id, workspace_id in found:
            batch_delete.delete_rows(PushLine, (PushLine.push_id == push_id) & (PushLine.number > 1), budget)
            if budget.is_used_up:
                return
            with write_session() as session:
                first = (PushLine.push_id == push_id) & (PushLine.number == 1)
                session.execute(delete(PushLine).where(first), execution_options=NO_SYNCHRONIZATION)
                line = {
                    "push_id": push_id,
                    "number": 1,
                    "at": now,
                    "text": _removal_note(retention.log_days, plan),
                }
                session.execute(insert(PushLine).values(**line))
                values = {"log_removed_at": now}
                session.execute(
                    update(Push).where(Push.id == push_id).values(**values),
                    execution_options=NO_SYNCHRONIZATION,
                )
            done[workspace_id, "push_logs"] += 1


# --- Files --------------------------------------------------------------------------------------------------


def _remove_export_files(
    plan: str, retention: Retention, now: datetime, budget: TimeBudget, done: RemovalCounts
) -> None:
    parts = exists().where(ExportPart.export_id == Export.id, ExportPart.storage_key.is_not(None))
    statement = _past_retention(Export, plan, now, retention.file_days).where(
        or_(Export.storage_key.is_not(None), parts)
    )
    while not budget.is_used_up and (found := _read_batch(statement)):
        for export_id, workspace_id in found:
            if batch_delete.is_suspended():
                return
            remove_files(export_id, now)
            done[workspace_id, "export_files"] += 1
            if budget.is_used_up:
                return


# --- Finished work ------------------------------------------------------------------------------------------


def _remove_expired_runs(
    plan: str, retention: Retention, now: datetime, budget: TimeBudget, done: RemovalCounts
) -> None:
    statement = _past_retention(Run, plan, now, retention.work_days).where(Run.closed_at.is_not(None))
    while not budget.is_used_up and (found := _read_batch(statement)):
        for run_id, workspace_id in found:
            # Its outputs go to the trash. A file that its program stored elsewhere, such as an input that it replaced,
            # belongs to the workspace and stays.
            with write_session() as session:
                outputs = update(WorkspaceFile).where(
                    WorkspaceFile.run_id == run_id,
                    WorkspaceFile.deleted_at.is_(None),
                    files.name_starts_with(f"{OUTPUTS_FOLDER}/{run_id}/"),
                )
                session.execute(outputs.values(deleted_at=now), execution_options=NO_SYNCHRONIZATION)
            done[workspace_id, "runs"] += remove_runs([run_id], budget)
            if budget.is_used_up:
                return


def _remove_expired_pushes(
    plan: str, retention: Retention, now: datetime, budget: TimeBudget, done: RemovalCounts
) -> None:
    """Remove pushes with all their retries and undos if the last of these is past its retention."""
    later, earliest = aliased(Push), now - timedelta(days=retention.work_days)
    has_recent = exists().where(later.of_id == Push.id, func.coalesce(later.finished_at, now) >= earliest)
    statement = _past_retention(Push, plan, now, retention.work_days).where(Push.of_id.is_(None), ~has_recent)
    while not budget.is_used_up and (found := _read_batch(statement)):
        for push_id, workspace_id in found:
            follow_ups = _read_batch(select(Push.workspace_id, Push.id).where(Push.of_id == push_id))
            all_pushes = [*((item.workspace_id, item.id) for item in follow_ups), (workspace_id, push_id)]
            done[workspace_id, "pushes"] += remove_pushes(all_pushes, budget)
            if budget.is_used_up:
                return


def _remove_expired_exports(
    plan: str, retention: Retention, now: datetime, budget: TimeBudget, done: RemovalCounts
) -> None:
    statement = _past_retention(Export, plan, now, retention.work_days)
    while not budget.is_used_up and (found := _read_batch(statement)):
        for export_id, workspace_id in found:
            if batch_delete.is_suspended():
                return
            remove_files(export_id, now)
            batch_delete.delete_rows(ExportPart, ExportPart.export_id == export_id, budget)
            if budget.is_used_up:
                return
            with write_session() as session:
                session.execute(
                    delete(Export).where(Export.id == export_id), execution_options=NO_SYNCHRONIZATION
                )
            done[workspace_id, "exports"] += 1


def remove_pushes(found: Sequence[tuple[str, str]], budget: TimeBudget) -> int:
    """Remove pushes (workspace, id) with their ledgers, logs and captured keys. Returns how many were removed."""
    store = storage.get_storage(current_app)
    done = 0
    for workspace_id, push_id in found:
        for model in (PushRow, PushRange, PushLine):
            delete_rows(model, model.push_id == push_id, budget)
        if budget.is_used_up:
            return done
        for stored in store.listing(f"pushes/{workspace_id}/{push_id}"):
            store.delete(stored.key)
        done += _delete_row(Push, push_id)
    return done


def remove_runs(found: Sequence[str], budget: TimeBudget) -> int:
    """Remove runs with their logs. Returns the number of removed runs."""
    done = 0
    for run_id in found:
        delete_rows(RunChunk, RunChunk.run_id == run_id, budget, limits.RETENTION_BATCH_CHUNKS)
        if budget.is_used_up:
            return done
        done += _delete_row(Run, run_id)
    return done


def _delete_row(model: Any, row_id: str) -> int:
    with write_session() as session:
        statement = delete(model).where(model.id == row_id)
        return affected_row_count(
            session.execute(statement, execution_options={"synchronize_session": False})
        )


# The removal of workspaces that were deleted more than 30 days ago. Called by the sweeper.
