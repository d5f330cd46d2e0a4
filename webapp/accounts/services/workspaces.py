"""Workspaces, their teams and projects: create, change, delete and restore them.

An owner deletes a workspace, the operator can restore it within 30 days, and then the sweeper removes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy import func, select, update

from webapp import clock, limits
from webapp.access import actors, tenancy
from webapp.access.actors import Actor, require_scope
from webapp.access.models import ApiKey, Invitation, Membership, Project, Team, User, Workspace
from webapp.access.tenancy import listing
from webapp.audit.services import audit_log
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.model_base import Base
from webapp.versioning.services import restore
from webapp.work.models import END_STATES, MODELS


def create_workspace(actor: Actor, name: str, *, plan: str = "free", owner: User | None = None) -> Workspace:
    """Create a workspace, optionally with its owner. Only the service itself can do this; commits."""
    if actor.kind != "system":
        raise ApiError("forbidden", "Only the operator can create workspaces.", {"needs": "operator"})
    workspace = Workspace(name=name, plan=plan)
    db.session.add(workspace)
    db.session.flush()
    if owner is not None:
        db.session.add(Membership(workspace_id=workspace.id, user_id=owner.id, role="owner"))
    audit_log.record(
        actor, "workspace.create", workspace, join=True, workspace_id=workspace.id, name=name, plan=plan
    )
    db.session.commit()
    return workspace


def change_workspace(actor: Actor, changes: Mapping[str, Any]) -> Workspace:
    """Change `name`, `settings` (admins), `plan`, `own_limits` (owners) of the actor's workspace; commits.

    New limits apply from the next request on, in every process.
    """
    require_scope(actor, "owner" if {"plan", "own_limits"} & changes.keys() else "admin")
    workspace = db.session.get_one(
        Workspace, actor.workspace_id, with_for_update=True, populate_existing=True
    )
    old_values = {key: getattr(workspace, key) for key in changes}
    for key, value in changes.items():
        setattr(workspace, key, value)
    workspace.updated_at = clock.now()
    differences = {key: {"from": old_values[key], "to": value} for key, value in changes.items()}
    audit_log.record(actor, "workspace.change", workspace, join=True, changes=differences)
    _commit_change(workspace.id)
    return workspace


def create_team(actor: Actor, name: str) -> Team:
    """Create a team in the actor's workspace; commits."""
    require_scope(actor, "admin")
    team = Team(workspace_id=actor.workspace_id, name=name)
    db.session.add(team)
    db.session.flush()
    audit_log.record(actor, "team.create", team, join=True, name=name)
    db.session.commit()
    return team


def create_project(actor: Actor, name: str, *, team_id: str | None = None, description: str = "") -> Project:
    """Create a project in a team (that of the current project, or the workspace's first one); commits.

    Errors: forbidden, validation_error for a team that is not the actor's.
    """
    require_scope(actor, "admin")
    teams = listing(actor, Team).order_by(Team.id).limit(1)
    wanted_team_id = team_id or actor.team_id
    team = db.session.scalar(teams.where(Team.id == wanted_team_id) if wanted_team_id else teams)
    if team is None:
        raise validation_error([Fault("team_id", "unknown", "There is no such team in this workspace.")])
    project = Project(workspace_id=actor.workspace_id, team_id=team.id, name=name, description=description)
    db.session.add(project)
    db.session.flush()
    audit_log.record(actor, "project.create", project, join=True, name=name)
    db.session.commit()
    return project


def update_attributes(actor: Actor, row: Team | Project | ApiKey, changes: Mapping[str, Any]) -> None:
    """Change the own columns of a team, a project or an API key; commits."""
    differences = audit_log.changes_between({key: getattr(row, key) for key in changes}, changes)
    for key, value in changes.items():
        setattr(row, key, value)
    if not isinstance(row, ApiKey):  # has no last change
        row.updated_at = clock.now()
    audit_log.record(actor, f"{audit_log.object_type(row)}.change", row, join=True, changes=differences)
    db.session.commit()


def delete_project(actor: Actor, project: Project) -> None:
    """Soft-delete a project, and commit. Its objects are restored with it; its API keys stop working immediately.

    Error: conflict for the last project of a workspace.
    """
    if project.deleted_at is None:
        others = select(func.count()).where(
            Project.workspace_id == actor.workspace_id, Project.deleted_at.is_(None), Project.id != project.id
        )
        if not db.session.scalar(others):
            raise ApiError("conflict", "This is the last project of the workspace.", {"id": project.id})
        project.deleted_at = clock.now()
        audit_log.record(actor, "project.delete", project, join=True)
    _commit_change(actor.workspace_id)


def restore_project(actor: Actor, project: Project) -> None:
    """Restore a project; commits. Errors: not_found after 30 days, conflict while its team is deleted."""
    if db.session.get_one(Team, project.team_id).deleted_at is not None:
        text = "The team of this project is deleted too. Restore the team first."
        raise ApiError("conflict", text, {"team_id": project.team_id})
    actors.announce_permission_change(db.session(), actor.workspace_id)
    restore(actor, project)


def delete_team(actor: Actor, team: Team) -> None:
    """Soft-delete a locked team without projects. Its members lose their roles in it until it is restored, and its open
    invitations are closed; commits.

    Errors: in_use with its projects, conflict for the last team of a workspace.
    """
    require_scope(actor, "admin")
    if team.deleted_at is None:
        projects = select(Project.id, Project.name).where(
            Project.team_id == team.id, Project.deleted_at.is_(None)
        )
        if users := [
            {"type": "project", "id": row.id, "name": row.name} for row in db.session.execute(projects)
        ]:
            message = ", ".join(user["name"] for user in users[:3])
            text = (
                f"This team still has projects: {message}. Move them to another team, or delete them first."
            )
            raise ApiError("in_use", text, {"used_by": users})
        others = select(func.count()).where(
            Team.workspace_id == actor.workspace_id, Team.deleted_at.is_(None), Team.id != team.id
        )
        if not db.session.scalar(others):
            raise ApiError("conflict", "This is the last team of the workspace.", {"id": team.id})
        team.deleted_at = clock.now()
        conditions = (
            Invitation.team_id == team.id,
            Invitation.accepted_at.is_(None),
            Invitation.revoked_at.is_(None),
        )
        db.session.execute(update(Invitation).where(*conditions).values(revoked_at=team.deleted_at))
        audit_log.record(actor, "team.delete", team, join=True, name=team.name)
    _commit_change(actor.workspace_id)


def restore_team(actor: Actor, team: Team) -> None:
    """Restore a team with its roles; commits. Error: not_found after 30 days."""
    require_scope(actor, "admin")
    actors.announce_permission_change(db.session(), actor.workspace_id)
    restore(actor, team)


def move_to_team(actor: Actor, project: Project, team_id: str) -> None:
    """Move a locked project with all of its contents to another team, whose members can access it from their next
    request on; commits. Error: validation_error for an unknown team."""
    require_scope(actor, "admin")
    team = db.session.scalar(listing(actor, Team).where(Team.id == team_id).with_for_update())
    if team is None:
        raise validation_error([Fault("team_id", "unknown", "There is no such team in this workspace.")])
    old_team_id = project.team_id
    if old_team_id != team.id:
        for table in Base.metadata.sorted_tables:
            if {"project_id", "team_id"} <= set(table.c.keys()):
                statement = table.update().where(table.c.project_id == project.id)
                db.session.execute(statement.values(team_id=team.id))
        project.team_id, project.updated_at = team.id, clock.now()
        audit_log.record(
            actor, "project.change", project, join=True, team={"from": old_team_id, "to": team.id}
        )
    _commit_change(actor.workspace_id)


def _commit_change(workspace_id: str) -> None:
    actors.announce_permission_change(db.session(), workspace_id)
    db.session.commit()


# --- Deletion of a workspace --------------------------------------------------------------------------------


def delete_workspace(actor: Actor, confirm: str) -> Workspace:
    """Delete the actor's workspace, and commit: API keys and sessions stop working, schedules stop, running work is
    cancelled. `confirm` is the workspace's name.

    Errors: forbidden, validation_error for another name.
    """
    require_scope(actor, "owner")
    workspace = db.session.get_one(
        Workspace, actor.workspace_id, with_for_update=True, populate_existing=True
    )
    if confirm.strip() != workspace.name.strip():
        hint = f"Type {workspace.name} to delete it."
        raise validation_error([Fault("confirm", "not_allowed", "This is not the workspace's name.", hint)])
    now = clock.now()
    workspace.deleted_at = workspace.updated_at = now
    for model in MODELS.values():
        going = (model.in_workspace(workspace.id), model.status.not_in(END_STATES))
        db.session.execute(
            update(model).where(*going).values(cancel_requested_at=now),
            execution_options={"synchronize_session": False},
        )
    audit_log.record(actor, "workspace.delete", workspace, join=True, name=workspace.name)
    actors.announce_permission_change(db.session(), workspace.id)
    db.session.commit()
    return workspace


def restore_workspace(actor: Actor, workspace: Workspace) -> None:
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
        actors.announce_permission_change(db.session(), workspace.id)
    db.session.commit()


# --- What the sweeper does ----------------------------------------------------------------------------------
