"""Removing what has run out: deletions past their restore time, used-up tokens, old answers. Called by the sweeper."""

from __future__ import annotations

import shutil
import time
from datetime import datetime, timedelta
from typing import Any, Final

from flask import current_app
from sqlalchemy import Table, and_, exists, or_, select, tuple_, update
from sqlalchemy import delete as delete_from

from webapp import limits, storage
from webapp.access.models import BrowserSession, Invitation, Project, SignInLink, Team, Workspace
from webapp.audit.models import AuditHead
from webapp.audit.services import seals
from webapp.builder.models import TemplateDraft
from webapp.connections.models import Connection, Endpoint, Fetched
from webapp.connections.services import sqlite_files
from webapp.datasets.models import Dataset
from webapp.exports.models import Export, ExportPart
from webapp.extensions import changed_rows, reading, writing
from webapp.files import services as files
from webapp.files.models import CompatObject, KeyMapEntry, WorkspaceFile
from webapp.imports.services import background
from webapp.mail.models import Mail
from webapp.model_base import Base
from webapp.notifications.models import Delivery, LimitWarning, Webhook
from webapp.operations.retention import pushes, runs
from webapp.pushes.models import Push
from webapp.row_templates.models import Template
from webapp.scenarios.models import Run, Scenario
from webapp.sources.services import kept_answers, sources
from webapp.sources.services.fetched_files import FOLDER
from webapp.web.models import IdempotencyRecord
from webapp.work import batch_delete
from webapp.work.batch_delete import TimeBudget
from webapp.work.models import END_STATES

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


def remove(gone: datetime, now: datetime, turn: TimeBudget) -> int:
    """Remove those workspaces of which nothing is left but what goes along with them: members, keys, secrets, the
    trail; a little at a time, until the turn is over. Returns how many are gone."""
    done = 0
    left = [exists().where(model.workspace_id == Workspace.id) for model in _HOLDERS]
    with reading() as session:
        ids = session.scalars(
            select(Workspace.id).where(Workspace.deleted_at < gone, *(~one for one in left))
        ).all()
    own = [
        table
        for table in Base.metadata.sorted_tables
        if "workspace_id" in table.c and table is not AuditHead.__table__
    ]
    for workspace_id in ids:
        shutil.rmtree(current_app.config["SETTINGS"].data_dir / "targets" / workspace_id, ignore_errors=True)
        with writing() as session:
            seals.let_go(session, workspace_id, now)
        for table in reversed(own):  # those that others refer to come last
            _drain_table(table, workspace_id, turn)
        if turn.over:
            break
        with writing() as session:
            session.execute(delete_from(Workspace).where(Workspace.id == workspace_id))
            seals.forget(session)
        done += 1
    return done


def _drain_table(table: Table, workspace_id: str, turn: TimeBudget) -> None:
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


def purge(now: datetime, turn: TimeBudget | None = None, *, bytes_too: bool = True) -> int:
    """Remove what can no longer be accessed, with the files of exports, pushes and connections, the
    workspace's files, and bytes that none of these names any more. Returns the number of rows.

    A file goes before its row, so that a purge cut short leaves no file that nothing names. Ledgers and logs go a
    little at a time, until the turn is over, and what they belong to after them. `bytes_too`: whether the storage is
    looked through for bytes that nothing names.
    """
    gone, turn = now - timedelta(days=limits.RESTORE_DAYS), turn or TimeBudget()
    wind_up(gone)
    _remove_files(gone, now)
    if bytes_too:
        files.sweep(now)
        sqlite_files.sweep()
    background.purge(now)
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


def _drain(gone: datetime, turn: TimeBudget) -> int:
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
        # Files of the parts of exports, less those that a retry which stays has taken over.
        going = select(Export.id).where(_going(Export, gone))
        files_of_parts = select(ExportPart.storage_key).where(ExportPart.storage_key.is_not(None))
        stays = files_of_parts.where(ExportPart.export_id.not_in(going))
        mine = files_of_parts.where(ExportPart.export_id.in_(going))
        keys += session.scalars(mine.where(ExportPart.storage_key.not_in(stays)).distinct())
    for key in keys:
        if key is not None:
            store.delete(key)


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
