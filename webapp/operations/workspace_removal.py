"""The removal of workspaces that were deleted more than 30 days ago. Called by the sweeper."""

from __future__ import annotations

import shutil
import time
from datetime import datetime
from typing import Final

from flask import current_app
from sqlalchemy import Table, exists, select, tuple_, update
from sqlalchemy import delete as delete_from

from webapp import limits
from webapp.access.models import Project, Team, Workspace
from webapp.audit.models import AuditHead
from webapp.audit.services import seals
from webapp.extensions import changed_rows, reading, writing
from webapp.files.models import WorkspaceFile
from webapp.model_base import Base
from webapp.work.batch_delete import Turn

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
            _drain(table, workspace_id, turn)
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


def _drain(table: Table, workspace_id: str, turn: Turn) -> None:
    """Remove a workspace's rows of a table in batches, each a separate transaction."""
    key = tuple_(*table.primary_key.columns)
    chosen = select(*table.primary_key.columns).where(table.c.workspace_id == workspace_id)
    while not turn.over:
        with writing() as session:
            some = delete_from(table).where(key.in_(chosen.limit(limits.DRAIN_ROWS)))
            if changed_rows(session.execute(some)) < limits.DRAIN_ROWS:
                return
        time.sleep(limits.DRAIN_PAUSE_SECONDS)
