"""What a workspace's plan keeps, and for how long: logs, files of exports, finished work. Called by the sweeper.

Logs of runs and pushes and the files of exports go first; what they belong to stays, and says so. Later whole runs,
pushes with their ledgers, and exports go. The trail stays: what is removed here leaves an entry there by the day, and
who did what, with which seed and version, is in the entries that were made then.
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
from webapp.accounts import actors
from webapp.accounts.models import Workspace
from webapp.audit.services import audit_log
from webapp.extensions import reading, writing
from webapp.files.models import WorkspaceFile
from webapp.files.names import OUTPUTS
from webapp.files.services import file_store
from webapp.generation.models import Export, ExportPart
from webapp.limits import Retention
from webapp.operations import batch_delete, deferred_deletion
from webapp.operations.batch_delete import Turn
from webapp.operations.models import END_STATES
from webapp.pushes.models import Push, PushLine
from webapp.scenarios.models import Run, RunChunk
from webapp.scenarios.services.run_completion import MARK

log = logging.getLogger(__name__)

QUIET: Final = {"synchronize_session": False}
Done = Counter[tuple[str, str]]
"""How many of what were removed, by workspace."""


def sweep(now: datetime, turn: Turn) -> int:
    """Remove what no plan keeps any more, until the turn is over. Returns the number of runs, pushes, exports, logs and
    files."""
    done: Done = Counter()
    for plan, kept in limits.RETENTION.items():
        for step in (_run_logs, _push_logs, _export_files, _runs, _pushes, _exports):
            if turn.over:
                break
            step(plan, kept, now, turn, done)
    for workspace_id in {workspace_id for workspace_id, _ in done}:
        told = {what: number for (mine, what), number in done.items() if mine == workspace_id}
        audit_log.record(actors.system(workspace_id), "retention.sweep", ("workspace", workspace_id), **told)
    return sum(done.values())


def _ended(model: Any, plan: str, now: datetime, days: int) -> Select[Any]:
    """A select of work of one plan that ended so long ago, the oldest first, a few at once."""
    of_plan = select(Workspace.id).where(Workspace.plan == plan)
    return (
        select(model.id, model.workspace_id)
        .where(model.workspace_id.in_(of_plan), model.status.in_(END_STATES))
        .where(model.finished_at < now - timedelta(days=days))
        .order_by(model.finished_at)
        .limit(limits.DRAIN_WORK)
    )


def _some(statement: Select[Any]) -> Sequence[Any]:
    with reading() as session:
        return session.execute(statement).all()


def _gone(days: int, plan: str) -> str:
    return f"{MARK}this log was removed: the plan {plan} keeps logs for {days} days"


# --- Logs ---------------------------------------------------------------------------------------------------


def _run_logs(plan: str, kept: Retention, now: datetime, turn: Turn, done: Done) -> None:
    statement = _ended(Run, plan, now, kept.log_days).where(
        Run.log_removed_at.is_(None), Run.line_count > 0, Run.closed_at.is_not(None)
    )
    text = _gone(kept.log_days, plan)
    while not turn.over and (found := _some(statement)):
        for run_id, workspace_id in found:
            with writing() as session:
                session.execute(delete(RunChunk).where(RunChunk.run_id == run_id, RunChunk.first == 1))
                session.add(RunChunk(run_id=run_id, first=1, last=1, at=now, text=text))
                told = {"line_count": 1, "log_bytes": len(text) + 1}
                session.execute(update(Run).where(Run.id == run_id).values(**told), execution_options=QUIET)
            others = (RunChunk.run_id == run_id) & (RunChunk.first > 1)
            batch_delete.rows(RunChunk, others, turn, limits.DRAIN_CHUNKS)
            if turn.over:
                return
            _mark(Run, run_id, log_removed_at=now)
            done[workspace_id, "run_logs"] += 1


def _push_logs(plan: str, kept: Retention, now: datetime, turn: Turn, done: Done) -> None:
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


def _mark(model: Any, row_id: str, **values: Any) -> None:
    with writing() as session:
        session.execute(update(model).where(model.id == row_id).values(**values), execution_options=QUIET)


# --- Files --------------------------------------------------------------------------------------------------


def _export_files(plan: str, kept: Retention, now: datetime, turn: Turn, done: Done) -> None:
    parts = exists().where(ExportPart.export_id == Export.id, ExportPart.storage_key.is_not(None))
    statement = _ended(Export, plan, now, kept.file_days).where(or_(Export.storage_key.is_not(None), parts))
    while not turn.over and (found := _some(statement)):
        for export_id, workspace_id in found:
            if deferred_deletion.held():
                return
            remove_files(export_id, now)
            done[workspace_id, "export_files"] += 1
            if turn.over:
                return


def remove_files(export_id: str, now: datetime) -> None:
    """Remove the files of an export: mark it, delete the files, then clear their names.

    A backup ignores the names of a marked export. A removal that is interrupted leaves names for the next sweep, and
    never a file that nothing names.
    """
    store = storage.of(current_app)
    whole = update(Export).where(Export.id == export_id)
    with writing() as session:
        session.execute(whole.values(file_removed_at=now), execution_options=QUIET)
    with reading() as session:
        own = session.scalar(select(Export.storage_key).where(Export.id == export_id))
    for key in [*([own] if own else []), *batch_delete.part_files([export_id])]:
        store.delete(key)
    with writing() as session:
        parts = update(ExportPart).where(ExportPart.export_id == export_id).values(storage_key=None)
        session.execute(parts, execution_options=QUIET)
        session.execute(whole.values(storage_key=None), execution_options=QUIET)


# --- Finished work ------------------------------------------------------------------------------------------


def _runs(plan: str, kept: Retention, now: datetime, turn: Turn, done: Done) -> None:
    statement = _ended(Run, plan, now, kept.work_days).where(Run.closed_at.is_not(None))
    while not turn.over and (found := _some(statement)):
        for run_id, workspace_id in found:
            # Its outputs go to the trash. A file that its program stored elsewhere, such as an input that it replaced,
            # belongs to the workspace and stays.
            with writing() as session:
                outputs = update(WorkspaceFile).where(
                    WorkspaceFile.run_id == run_id,
                    WorkspaceFile.deleted_at.is_(None),
                    file_store.begins(f"{OUTPUTS}/{run_id}/"),
                )
                session.execute(outputs.values(deleted_at=now), execution_options=QUIET)
            done[workspace_id, "runs"] += batch_delete.runs([run_id], turn)
            if turn.over:
                return


def _pushes(plan: str, kept: Retention, now: datetime, turn: Turn, done: Done) -> None:
    """Pushes with all their retries and undos, once the last of these is old enough."""
    later, border = aliased(Push), now - timedelta(days=kept.work_days)
    young = exists().where(later.of_id == Push.id, func.coalesce(later.finished_at, now) >= border)
    statement = _ended(Push, plan, now, kept.work_days).where(Push.of_id.is_(None), ~young)
    while not turn.over and (found := _some(statement)):
        for push_id, workspace_id in found:
            again = _some(select(Push.workspace_id, Push.id).where(Push.of_id == push_id))
            both = [*((one.workspace_id, one.id) for one in again), (workspace_id, push_id)]
            done[workspace_id, "pushes"] += batch_delete.pushes(both, turn)
            if turn.over:
                return


def _exports(plan: str, kept: Retention, now: datetime, turn: Turn, done: Done) -> None:
    statement = _ended(Export, plan, now, kept.work_days)
    while not turn.over and (found := _some(statement)):
        for export_id, workspace_id in found:
            if deferred_deletion.held():
                return
            remove_files(export_id, now)
            batch_delete.rows(ExportPart, ExportPart.export_id == export_id, turn)
            if turn.over:
                return
            with writing() as session:
                session.execute(delete(Export).where(Export.id == export_id), execution_options=QUIET)
            done[workspace_id, "exports"] += 1
