"""Remove expired data: deletions past their restore time, used tokens, old responses. Called by the sweeper."""

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
from webapp.extensions import affected_row_count, read_session, write_session
from webapp.files import services as files
from webapp.files.models import CompatObject, KeyMapEntry, WorkspaceFile
from webapp.imports.services import background
from webapp.mail.models import Mail
from webapp.model_base import Base
from webapp.notifications.models import Delivery, LimitWarning, Webhook
from webapp.operations.retention import remove_pushes, remove_runs
from webapp.pushes.models import Push
from webapp.row_templates.models import Template
from webapp.scenarios.models import Run, Scenario
from webapp.sources.services import kept_answers, sources
from webapp.sources.services.fetched_files import FOLDER
from webapp.web.models import IdempotencyRecord
from webapp.work import batch_delete
from webapp.work.batch_delete import TimeBudget
from webapp.work.models import END_STATES

_MODELS_REMOVED_FIRST: Final = (Project, Team, WorkspaceFile)
"""The tables of objects with files or many dependent rows."""


def mark_contents_deleted(restore_limit: datetime) -> None:
    """Mark the contents of workspaces deleted before `restore_limit` as deleted, so that the usual cleanup removes them
    and their files in small steps."""
    with write_session() as session:
        for workspace in session.scalars(select(Workspace).where(Workspace.deleted_at < restore_limit)):
            for model in _MODELS_REMOVED_FIRST:
                statement = update(model).where(model.workspace_id == workspace.id)
                session.execute(statement.values(deleted_at=workspace.deleted_at))


def remove_workspaces(restore_limit: datetime, now: datetime, budget: TimeBudget) -> int:
    """Remove workspaces without remaining objects, with their members, keys, secrets and audit log, in small steps
    until the time budget is used up. Returns the number of removed workspaces."""
    done = 0
    remaining = [exists().where(model.workspace_id == Workspace.id) for model in _MODELS_REMOVED_FIRST]
    with read_session() as session:
        ids = session.scalars(
            select(Workspace.id).where(Workspace.deleted_at < restore_limit, *(~item for item in remaining))
        ).all()
    tables = [
        table
        for table in Base.metadata.sorted_tables
        if "workspace_id" in table.c and table is not AuditHead.__table__
    ]
    for workspace_id in ids:
        shutil.rmtree(current_app.config["SETTINGS"].data_dir / "targets" / workspace_id, ignore_errors=True)
        with write_session() as session:
            seals.allow_deletion(session, workspace_id, now)
        for table in reversed(tables):  # those that others refer to come last
            _delete_in_batches(table, workspace_id, budget)
        if budget.is_used_up:
            break
        with write_session() as session:
            session.execute(delete_from(Workspace).where(Workspace.id == workspace_id))
            seals.delete_orphans(session)
        done += 1
    return done


def _delete_in_batches(table: Table, workspace_id: str, budget: TimeBudget) -> None:
    """Remove a workspace's rows of a table in batches, each a separate transaction."""
    key = tuple_(*table.primary_key.columns)
    keys = select(*table.primary_key.columns).where(table.c.workspace_id == workspace_id)
    while not budget.is_used_up:
        with write_session() as session:
            statement = delete_from(table).where(key.in_(keys.limit(limits.RETENTION_BATCH_ROWS)))
            if affected_row_count(session.execute(statement)) < limits.RETENTION_BATCH_ROWS:
                return
        time.sleep(limits.RETENTION_PAUSE_SECONDS)


# Soft-deleted rows are removed after RESTORE_DAYS; children before parents, whose removal also removes remaining
# children.
_SOFT_DELETED: Final[tuple[Any, ...]] = (
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


def purge(now: datetime, budget: TimeBudget | None = None, *, remove_files: bool = True) -> int:
    """Remove what can no longer be accessed, with the files of exports, pushes and connections, the
    workspace's files, and bytes that none of these names any more. Returns the number of rows.

    A file is removed before its row, so that an interrupted purge leaves no file without a row. Ledgers and logs are
    removed in small steps until the time budget is used up, and the objects that they belong to after them.
    `remove_files`: whether to search the storage for files without a row.
    """
    restore_limit, budget = now - timedelta(days=limits.RESTORE_DAYS), budget or TimeBudget()
    mark_contents_deleted(restore_limit)
    _remove_files(restore_limit, now)
    if remove_files:
        files.sweep(now)
        sqlite_files.delete_unused()
    background.purge(now)
    done = kept_answers.purge(now, pinned_files) + _delete_objects_with_many_rows(restore_limit, budget)
    if budget.is_used_up:
        return done
    for model, condition in (
        *((model, _past_restore_limit(model, restore_limit)) for model in _SOFT_DELETED),
        (IdempotencyRecord, IdempotencyRecord.expires_at < now),
        (TemplateDraft, TemplateDraft.updated_at < restore_limit),
        (SignInLink, SignInLink.expires_at < restore_limit),
        (Invitation, Invitation.expires_at < restore_limit),
        (
            BrowserSession,
            or_(BrowserSession.expires_at < restore_limit, BrowserSession.ended_at < restore_limit),
        ),
        (Delivery, Delivery.ended_at < now - timedelta(days=limits.WEBHOOK_DELIVERY_DAYS)),
        (LimitWarning, LimitWarning.created_at < now - timedelta(days=limits.WEBHOOK_DELIVERY_DAYS)),
        (Mail, Mail.ended_at < now - timedelta(days=limits.MAIL_DAYS)),
    ):
        done += batch_delete.delete_rows(model, condition, budget)
    return done + remove_workspaces(restore_limit, now, budget)


def _delete_objects_with_many_rows(restore_limit: datetime, budget: TimeBudget) -> int:
    """Remove objects that can have a million dependent rows: pushes, and runs of scenarios or projects that are about
    to be removed, key maps and saved sets of such projects. Returns the number of pushes, entries and sets."""
    with read_session() as session:
        push_rows = session.execute(
            select(Push.workspace_id, Push.id).where(_is_removed(Push, restore_limit))
        ).all()
        scenario_ids = select(Scenario.id).where(_is_removed(Scenario, restore_limit))
        run_ids = session.scalars(select(Run.id).where(Run.scenario_id.in_(scenario_ids))).all()
    done = remove_pushes([(row.workspace_id, row.id) for row in push_rows], budget)
    remove_runs(run_ids, budget)
    projects = select(Project.id).where(
        or_(
            Project.deleted_at < restore_limit,
            Project.team_id.in_(select(Team.id).where(Team.deleted_at < restore_limit)),
        )
    )
    for model in (KeyMapEntry, CompatObject):
        done += batch_delete.delete_rows(model, model.project_id.in_(projects), budget)
    return done


def _remove_files(restore_limit: datetime, now: datetime) -> None:
    """Remove the files of objects that will be removed: by their own deletion, or with their project or team."""
    store = storage.get_storage(current_app)
    with write_session() as session:  # a backup ignores the names of exports that are marked so
        statement = update(Export).where(Export.file_removed_at.is_(None), _is_removed(Export, restore_limit))
        session.execute(
            statement.values(file_removed_at=now), execution_options={"synchronize_session": False}
        )
    with read_session() as session:
        keys = list(session.scalars(select(Export.storage_key).where(_is_removed(Export, restore_limit))))
        for column in (Connection.metadata_key, Connection.document_key):
            keys += session.scalars(select(column).where(_is_removed(Connection, restore_limit)))
        keys += session.scalars(
            select(WorkspaceFile.storage_key).where(_is_removed(WorkspaceFile, restore_limit))
        )
        # Files of the parts of exports, less those that a retry which stays has taken over.
        export_ids = select(Export.id).where(_is_removed(Export, restore_limit))
        files_of_parts = select(ExportPart.storage_key).where(ExportPart.storage_key.is_not(None))
        kept_files = files_of_parts.where(ExportPart.export_id.not_in(export_ids))
        removed_files = files_of_parts.where(ExportPart.export_id.in_(export_ids))
        keys += session.scalars(removed_files.where(ExportPart.storage_key.not_in(kept_files)).distinct())
    for key in keys:
        if key is not None:
            store.delete(key)


def _past_restore_limit(model: Any, restore_limit: datetime) -> Any:
    """Return a condition: deleted long enough ago, or a connection of a removed endpoint. A connection stays as long as
    its stored responses, because their rows refer to the files."""
    is_past = model.deleted_at < restore_limit
    if model is not Connection:
        return is_past
    is_orphan = and_(Connection.of_endpoint, Connection.id.not_in(select(Endpoint.connection_id)))
    return and_(or_(is_past, is_orphan), Connection.id.not_in(select(Fetched.connection_id)))


def _is_removed(model: Any, restore_limit: datetime) -> Any:
    with_project = model.project_id.in_(select(Project.id).where(Project.deleted_at < restore_limit))
    with_team = model.team_id.in_(select(Team.id).where(Team.deleted_at < restore_limit))
    return or_(_past_restore_limit(model, restore_limit), with_project, with_team)


def pinned_files(session: Any) -> set[str]:
    """Return the files that unfinished exports, and existing pushes, use."""
    exports = select(Export.pins).where(Export.status.not_in(END_STATES))
    pushes = select(Push.pins).where(Push.pins["snapshot"].as_string().is_not(None))
    source_keys: set[str] = set()
    for pins in (*session.scalars(exports), *session.scalars(pushes)):
        for table in (pins, *pins.get("tables", ())):
            source_keys.update(table.get("outside", {}).values())
    return {
        sources.find_storage_key(source_key) or f"{FOLDER}/{source_key}.arrow" for source_key in source_keys
    }
