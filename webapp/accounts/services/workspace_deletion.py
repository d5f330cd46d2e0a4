"""The end of a workspace: deleted by an owner, had back by the operator within 30 days, then removed by the sweeper."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import update

from webapp import clock, limits
from webapp.access import actors, tenancy
from webapp.access.actors import Actor, require
from webapp.access.models import Workspace
from webapp.audit.services import audit_log
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.work.models import END_STATES, MODELS


def delete(actor: Actor, confirm: str) -> Workspace:
    """Delete the actor's workspace, and commit: API keys and sessions stop working, schedules stop, running work is
    cancelled. `confirm` is the workspace's name.

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
    for model in MODELS.values():
        going = (model.of_workspace(workspace.id), model.status.not_in(END_STATES))
        db.session.execute(
            update(model).where(*going).values(cancel_requested_at=now),
            execution_options={"synchronize_session": False},
        )
    audit_log.record(actor, "workspace.delete", workspace, join=True, name=workspace.name)
    actors.changing(db.session(), workspace.id)
    db.session.commit()
    return workspace


def restore(actor: Actor, workspace: Workspace) -> None:
    """Restore a deleted workspace, and commit. API keys that were used in the meantime work again within a minute.
    For operators, because members no longer have access.

    Errors: forbidden, not_found after 30 days.
    """
    if actor.kind != "system":
        raise ApiError("forbidden", "Only the operator can restore workspaces.", {"needs": "operator"})
    if workspace.deleted_at is not None:
        if clock.now() - workspace.deleted_at > timedelta(days=limits.RESTORE_DAYS):
            raise tenancy.not_found("workspace", workspace.id)
        workspace.deleted_at, workspace.updated_at = None, clock.now()
        audit_log.record(actor, "workspace.restore", workspace, join=True, workspace_id=workspace.id)
        actors.changing(db.session(), workspace.id)
    db.session.commit()


# --- What the sweeper does ----------------------------------------------------------------------------------
