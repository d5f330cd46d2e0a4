"""Retention: what is deleted when, by the sweeper.

By plan: logs of runs and pushes and the files of exports are deleted first; the runs, pushes and exports stay, and show
this. Later, whole runs, pushes with their ledgers, and exports are deleted. The audit log stays: a deletion adds an
entry per day, and the entries that were written earlier contain who did what, with which seed and version.

For all plans: deleted objects past their restore time, used tokens and old answers (`purge` and what follows).
"""

from __future__ import annotations

import logging
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from flask import current_app
from sqlalchemy import Select, Table, and_, delete, exists, func, insert, or_, select, tuple_, update
from sqlalchemy import delete as delete_from
from sqlalchemy.orm import Session, aliased

from webapp import limits, storage
from webapp.access import actors
from webapp.access.models import BrowserSession, Invitation, Project, SignInLink, Team, Workspace
from webapp.audit.models import AuditHead
from webapp.audit.services import audit_log, seals
from webapp.builder.models import TemplateDraft
from webapp.connections.models import Connection, Endpoint, Fetched
from webapp.connections.services import sqlite_files
from webapp.datasets.models import Dataset
from webapp.exports.models import Export, ExportPart
from webapp.exports.services import remove_files
from webapp.extensions import changed_rows, reading, writing
from webapp.files import services as files
from webapp.files.models import CompatObject, KeyMapEntry, WorkspaceFile
from webapp.files.names import OUTPUTS
from webapp.limits import Retention
from webapp.mail.models import Mail
from webapp.model_base import Base
from webapp.notifications.models import Delivery, LimitWarning, Webhook
from webapp.pushes.models import Push, PushLine, PushRange, PushRow
from webapp.row_templates.models import Template
from webapp.scenarios.models import Run, RunChunk, Scenario
from webapp.scenarios.services.run_completion import MARK
from webapp.sources.services import kept_answers, sources
from webapp.sources.services.fetched_files import FOLDER
from webapp.web.models import IdempotencyRecord
from webapp.work import batch_delete
from webapp.work.batch_delete import Turn, rows
from webapp.work.models import END_STATES

log = logging.getLogger(__name__)

QUIET: Final = {"synchronize_session": False}
Done = Counter[tuple[str, str]]
"""Return the numbers of deleted objects, by workspace."""


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


def _run_logs(plan: str, kept: Retention, now: datetime, turn: Turn, done: Done) -> None:
    statement = _ended(Run, plan, now, kept.log_days).where(
        Run.log_removed_at.is_(None), Run.line_count > 0, Run.closed_at.is_not(None)
    )
    text = _gone(kept.log_days, plan)
    while not turn.over and (found := _some(statement)):
        for run_id, workspace_id in found:
            if not _remove_run_log(run_id, text, now, turn):
                return
            done[workspace_id, "run_logs"] += 1


def _remove_run_log(run_id: str, text: str, now: datetime, turn: Turn) -> bool:
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
    _mark(Run, run_id, log_removed_at=now)
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
            _remove_run_log(run_id, text, now, Turn())
            used, done = used - size, done + 1
        if not found:
            break
    if done:
        whole = ("workspace", workspace_id)
        audit_log.record(actors.system(workspace_id), "retention.sweep", whole, run_logs=done)
    return done


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
            if batch_delete.held():
                return
            remove_files(export_id, now)
            done[workspace_id, "export_files"] += 1
            if turn.over:
                return


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
                    files.begins(f"{OUTPUTS}/{run_id}/"),
                )
                session.execute(outputs.values(deleted_at=now), execution_options=QUIET)
            done[workspace_id, "runs"] += runs([run_id], turn)
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
            done[workspace_id, "pushes"] += pushes(both, turn)
            if turn.over:
                return


def _exports(plan: str, kept: Retention, now: datetime, turn: Turn, done: Done) -> None:
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


def pushes(found: Sequence[tuple[str, str]], turn: Turn) -> int:
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


def runs(found: Sequence[str], turn: Turn) -> int:
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

# --- Removal of what has expired ----------------------------------------------------------------------------

_HOLDERS: Final = (Project, Team, WorkspaceFile)
"""Return the tables of objects with files or many dependent rows."""


def wind_up(gone: datetime) -> None:
    """Mark the contents of workspaces deleted before `gone` as deleted, so that the usual cleanup removes them and
    their files in small steps."""
    with writing() as session:
        for workspace in session.scalars(select(Workspace).where(Workspace.deleted_at < gone)):
            for model in _HOLDERS:
                held = update(model).where(model.workspace_id == workspace.id)
                session.execute(held.values(deleted_at=workspace.deleted_at))


def remove(gone: datetime, now: datetime, turn: Turn) -> int:
    """Remove those workspaces of which nothing is left but what goes along with them: members, keys, secrets, the
    trail; a little at a time, until the turn is over. Returns how many are gone."""
    done = 0
    left = [exists().where(model.workspace_id == Workspace.id) for model in _HOLDERS]
    with reading() as session:
        ids = session.scalars(
            select(Workspace.id).where(Workspace.deleted_at < gone, *(~one for one in left))
        ).all()
    for workspace_id in ids:
        shutil.rmtree(current_app.config["SETTINGS"].data_dir / "targets" / workspace_id, ignore_errors=True)
        with writing() as session:
            seals.let_go(session, workspace_id, now)
        for table in _belongings():
            _drain_table(table, workspace_id, turn)
        if turn.over:
            break
        with writing() as session:
            session.execute(delete_from(Workspace).where(Workspace.id == workspace_id))
            seals.forget(session)
        done += 1
    return done


def _belongings() -> list[Table]:
    """The tables whose rows name their workspace, those that others refer to last."""
    own = [table for table in Base.metadata.sorted_tables if "workspace_id" in table.c]
    return [table for table in reversed(own) if table is not AuditHead.__table__]


def _drain_table(table: Table, workspace_id: str, turn: Turn) -> None:
    """Remove a workspace's rows of a table in batches, each a separate transaction."""
    key = tuple_(*table.primary_key.columns)
    chosen = select(*table.primary_key.columns).where(table.c.workspace_id == workspace_id)
    while not turn.over:
        with writing() as session:
            some = delete_from(table).where(key.in_(chosen.limit(limits.DRAIN_ROWS)))
            if changed_rows(session.execute(some)) < limits.DRAIN_ROWS:
                return
        time.sleep(limits.DRAIN_PAUSE_SECONDS)


# Soft-deleted rows are removed after RESTORE_DAYS; children before parents, whose removal also removes remaining
# children.
_SOFT: Final[tuple[Any, ...]] = (
    Export,
    Dataset,
    Template,
    Connection,
    Endpoint,  # after connections: the one of an endpoint is removed, with its files, after the endpoint
    Scenario,
    WorkspaceFile,
    Webhook,
    Project,
    Team,
)


def purge(now: datetime, turn: Turn | None = None, *, bytes_too: bool = True) -> int:
    """Remove what can no longer be accessed, with the files of exports, pushes and connections, the
    workspace's files, and bytes that none of these names any more. Returns the number of rows.

    A file goes before its row, so that a purge cut short leaves no file that nothing names. Ledgers and logs go a
    little at a time, until the turn is over, and what they belong to after them. `bytes_too`: whether the storage is
    looked through for bytes that nothing names.
    """
    gone, turn = now - timedelta(days=limits.RESTORE_DAYS), turn or Turn()
    wind_up(gone)
    _remove_files(gone, now)
    if bytes_too:
        files.sweep(now)
        sqlite_files.sweep()
    done = kept_answers.purge(now, pinned) + _drain(gone, turn)
    if turn.over:
        return done
    for model, condition in (
        *((model, _past_restoring(model, gone)) for model in _SOFT),
        (IdempotencyRecord, IdempotencyRecord.expires_at < now),
        (TemplateDraft, TemplateDraft.updated_at < gone),
        (SignInLink, SignInLink.expires_at < gone),
        (Invitation, Invitation.expires_at < gone),
        (BrowserSession, or_(BrowserSession.expires_at < gone, BrowserSession.ended_at < gone)),
        (Delivery, Delivery.ended_at < now - timedelta(days=limits.WEBHOOK_DELIVERY_DAYS)),
        (LimitWarning, LimitWarning.created_at < now - timedelta(days=limits.WEBHOOK_DELIVERY_DAYS)),
        (Mail, Mail.ended_at < now - timedelta(days=limits.MAIL_DAYS)),
    ):
        done += batch_delete.rows(model, condition, turn)
    return done + remove(gone, now, turn)


def _drain(gone: datetime, turn: Turn) -> int:
    """Remove objects that can have a million dependent rows: pushes, and runs of scenarios or projects that are about
    to be removed, key maps and saved sets of such projects. Returns the number of pushes, entries and sets."""
    with reading() as session:
        ended = session.execute(select(Push.workspace_id, Push.id).where(_going(Push, gone))).all()
        programs = select(Scenario.id).where(_going(Scenario, gone))
        of_them = session.scalars(select(Run.id).where(Run.scenario_id.in_(programs))).all()
    done = pushes([(one.workspace_id, one.id) for one in ended], turn)
    runs(of_them, turn)
    projects = select(Project.id).where(
        or_(Project.deleted_at < gone, Project.team_id.in_(select(Team.id).where(Team.deleted_at < gone)))
    )
    for model in (KeyMapEntry, CompatObject):
        done += batch_delete.rows(model, model.project_id.in_(projects), turn)
    return done


def _remove_files(gone: datetime, now: datetime) -> None:
    """Files of what is about to go: by its own deletion, or with its project or team."""
    store = storage.of(current_app)
    with writing() as session:  # a backup ignores the names of exports that are marked so
        marked = update(Export).where(Export.file_removed_at.is_(None), _going(Export, gone))
        session.execute(marked.values(file_removed_at=now), execution_options={"synchronize_session": False})
    with reading() as session:
        keys = list(session.scalars(select(Export.storage_key).where(_going(Export, gone))))
        for kept in (Connection.metadata_key, Connection.document_key):
            keys += session.scalars(select(kept).where(_going(Connection, gone)))
        keys += session.scalars(select(WorkspaceFile.storage_key).where(_going(WorkspaceFile, gone)))
        keys += _parts(session, gone)
    for key in keys:
        if key is not None:
            store.delete(key)


def _parts(session: Session, gone: datetime) -> list[str]:
    """Files of the parts of exports that are about to go, less those that a retry which stays has taken over."""
    going = select(Export.id).where(_going(Export, gone))
    stays = select(ExportPart.storage_key).where(
        ExportPart.storage_key.is_not(None), ExportPart.export_id.not_in(going)
    )
    mine = select(ExportPart.storage_key).where(
        ExportPart.storage_key.is_not(None), ExportPart.export_id.in_(going)
    )
    return list(session.scalars(mine.where(ExportPart.storage_key.not_in(stays)).distinct()))


def _past_restoring(model: Any, gone: datetime) -> Any:
    """Return a condition: deleted long enough ago, or a connection of a removed endpoint. A connection stays as long as
    its stored responses, because their rows refer to the files."""
    ended = model.deleted_at < gone
    if model is not Connection:
        return ended
    alone = and_(Connection.of_endpoint, Connection.id.not_in(select(Endpoint.connection_id)))
    return and_(or_(ended, alone), Connection.id.not_in(select(Fetched.connection_id)))


def _going(model: Any, gone: datetime) -> Any:
    with_project = model.project_id.in_(select(Project.id).where(Project.deleted_at < gone))
    with_team = model.team_id.in_(select(Team.id).where(Team.deleted_at < gone))
    return or_(_past_restoring(model, gone), with_project, with_team)


def pinned(session: Any) -> set[str]:
    """Return the files that unfinished exports, and existing pushes, use."""
    exports = select(Export.pins).where(Export.status.not_in(END_STATES))
    pushes = select(Push.pins).where(Push.pins["snapshot"].as_string().is_not(None))
    places: set[str] = set()
    for pins in (*session.scalars(exports), *session.scalars(pushes)):
        for one in (pins, *pins.get("tables", ())):
            places.update(one.get("outside", {}).values())
    return {sources.stored_at(where) or f"{FOLDER}/{where}.arrow" for where in places}
