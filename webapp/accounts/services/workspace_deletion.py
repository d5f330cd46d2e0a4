"""The end of a workspace: deleted by an owner, had back by the operator within 30 days, then removed by the sweeper."""

from __future__ import annotations

import shutil
import time
from datetime import datetime, timedelta
from typing import Final

from flask import current_app
from sqlalchemy import Table, exists, select, tuple_, update
from sqlalchemy import delete as delete_from

from webapp import clock, limits
from webapp.accounts import actors
from webapp.accounts.actors import Actor, require
from webapp.accounts.models import Project, Team, Workspace
from webapp.accounts.services import tenancy
from webapp.audit.models import AuditHead
from webapp.audit.services import audit_log, seals
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db, reading, writing
from webapp.files.models import WorkspaceFile
from webapp.generation.models import Export, ExportPart
from webapp.model_base import Base
from webapp.operations.batch_delete import Turn
from webapp.operations.models import END_STATES
from webapp.pushes.models import Push
from webapp.scenarios.models import Run

_WORK: Final = (Export, Push, Run)
_HOLDERS: Final = (Project, Team, WorkspaceFile)
"""What everything else of a workspace that has files or a long tail lies in."""


def delete(actor: Actor, confirm: str) -> Workspace:
    """Close the actor's workspace at once for everybody: keys and sessions end to count, schedules stop, work that has
    not ended is asked to; commits. `confirm` is the workspace's name.

    Errors: forbidden, validation_error for another name.
    """
    require(actor, "owner")
    workspace = db.session.get_one(
        Workspace, actor.workspace_id, with_for_update=True, populate_existing=True
    )
    if confirm.strip() != workspace.name.strip():
        hint = f"Type {workspace.name} to delete it."
        raise validation_error([Fault("confirm", "not_allowed", "This is not the workspace's name.", hint)])
    now = clock.now()
    workspace.deleted_at = workspace.updated_at = now
    for model in _WORK:
        going = (model.workspace_id == workspace.id, model.status.not_in(END_STATES))
        db.session.execute(update(model).where(*going).values(cancel_requested_at=now))
    parts = select(Export.id).where(Export.workspace_id == workspace.id)
    going_parts = (ExportPart.export_id.in_(parts), ExportPart.status.not_in(END_STATES))
    db.session.execute(update(ExportPart).where(*going_parts).values(cancel_requested_at=now))
    audit_log.record(actor, "workspace.delete", workspace, join=True, name=workspace.name)
    actors.changing(db.session(), workspace.id)
    db.session.commit()
    return workspace


def restore(actor: Actor, workspace: Workspace) -> None:
    """Take a deletion back; people enter as before at once, keys that were tried meanwhile within a minute; commits.
    For the operator, since nobody else gets in.

    Errors: forbidden, not_found after 30 days.
    """
    if actor.kind != "system":
        raise ApiError("forbidden", "Workspaces are had back by the operator.", {"needs": "operator"})
    if workspace.deleted_at is not None:
        if clock.now() - workspace.deleted_at > timedelta(days=limits.RESTORE_DAYS):
            raise tenancy.not_found("workspace", workspace.id)
        workspace.deleted_at, workspace.updated_at = None, clock.now()
        audit_log.record(actor, "workspace.restore", workspace, join=True, workspace_id=workspace.id)
        actors.changing(db.session(), workspace.id)
    db.session.commit()


# --- What the sweeper does ----------------------------------------------------------------------------------


def wind_up(gone: datetime) -> None:
    """Have all that lies in workspaces deleted before `gone` removed as whatever was deleted then is: with its files,
    and a little at a time."""
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
    """Remove a workspace's rows of a table in batches, each a transaction of its own, as `drains.rows` does."""
    key = tuple_(*table.primary_key.columns)
    chosen = select(*table.primary_key.columns).where(table.c.workspace_id == workspace_id)
    while not turn.over:
        with writing() as session:
            some = delete_from(table).where(key.in_(chosen.limit(limits.DRAIN_ROWS)))
            if session.execute(some).rowcount < limits.DRAIN_ROWS:
                return
        time.sleep(limits.DRAIN_PAUSE_SECONDS)
