"""Reaching objects, and the tree they hang on: workspaces, teams, projects.

`get` and `listing` are the only ways to an object: both name the actor's workspace, and what lies outside of it,
or in a team the actor has no role in, does not exist for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from sqlalchemy import Select, false, func, or_, select, update

from webapp import clock, limits
from webapp.accounts import actors
from webapp.accounts.actors import Actor, require
from webapp.accounts.models import Invitation, Membership, Project, Team, User, Workspace
from webapp.audit.services import audit_log
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.files.models import WorkspaceFile
from webapp.model_base import Base

T = TypeVar("T", bound=Base)


def not_found(what: str, object_id: str) -> ApiError:
    """404 for an object that is not there, or not there for this actor: the two look alike."""
    return ApiError("not_found", f"There is no such {what}.", {"id": object_id[:100]})


def get(
    actor: Actor,
    model: type[T],
    object_id: str,
    scope: str = "read",
    *,
    lock: bool = False,
    deleted: bool = False,
) -> T:
    """One object of the actor's workspace, with the right to do `scope` where it lies.

    `lock` holds the row until the transaction ends (call it before a change); `deleted` also finds soft-deleted
    ones. Errors: not_found, forbidden (an actor who may see the object but not do this).
    """
    table: Any = model
    if "\0" in object_id:  # PostgreSQL would refuse to compare it
        raise not_found(model.__name__.lower(), object_id)
    statement = select(model).where(table.id == object_id, table.workspace_id == actor.workspace_id)
    if hasattr(model, "deleted_at") and not deleted:
        statement = statement.where(table.deleted_at.is_(None))
    if lock:
        statement = statement.with_for_update().execution_options(populate_existing=True)
    row = db.session.scalar(statement)
    what = model.__name__.lower()
    if row is None:
        raise not_found(what, object_id)
    team_id = row.id if isinstance(row, Team) else getattr(row, "team_id", None)
    if team_id is not None and actor.role_in(team_id) is None:
        raise not_found(what, object_id)
    require(actor, scope, team_id)
    return row


def listing(actor: Actor, model: type[T], *, project: bool = True, deleted: bool = False) -> Select[tuple[T]]:
    """A select of what the actor may see: of the present project, or with `project=False` of all their teams."""
    table: Any = model
    statement = select(model).where(table.workspace_id == actor.workspace_id)
    if hasattr(model, "deleted_at"):
        statement = statement.where(table.deleted_at.isnot(None) if deleted else table.deleted_at.is_(None))
    if model is WorkspaceFile:  # those without a project are shared with the whole workspace
        return statement.where(or_(table.project_id == actor.project_id, table.project_id.is_(None)))
    if project and hasattr(model, "project_id"):
        return statement.where(table.project_id == actor.project_id)
    if actor.workspace_role is None and (model is Team or hasattr(model, "team_id")):
        column = table.id if model is Team else table.team_id
        return statement.where(column.in_(list(actor.team_roles)) if actor.team_roles else false())
    return statement


def here(actor: Actor) -> dict[str, str]:
    """`workspace_id`, `project_id`, `team_id` for a new object of the present project.

    Error: validation_error when the actor has no project (a new workspace, or all deleted).
    """
    if actor.project_id is None or actor.team_id is None:
        message = "There is no project to put this into."
        raise validation_error([Fault("X-Project-Id", "missing", message, "Create a project first.")])
    return {"workspace_id": actor.workspace_id, "project_id": actor.project_id, "team_id": actor.team_id}


def soft_delete(actor: Actor, row: Any) -> None:
    """Mark a row deleted, with its audit entry, and commit. Doing it twice changes nothing."""
    if row.deleted_at is None:
        row.deleted_at = clock.now()
        audit_log.record(actor, f"{audit_log.name_of(row)}.delete", row, join=True)
    db.session.commit()


def restore(actor: Actor, row: Any) -> None:
    """Take a deletion back within 30 days, and commit. Error: not_found after that."""
    if row.deleted_at is not None:
        if clock.now() - row.deleted_at > timedelta(days=limits.RESTORE_DAYS):
            raise not_found(type(row).__name__.lower(), row.id)
        row.deleted_at = None
        audit_log.record(actor, f"{audit_log.name_of(row)}.restore", row, join=True)
    db.session.commit()


def create_workspace(actor: Actor, name: str, *, plan: str = "free", owner: User | None = None) -> Workspace:
    """A workspace, with its owner when one is given. Only the service itself makes one; commits."""
    if actor.kind != "system":
        raise ApiError("forbidden", "Workspaces are made by the operator.", {"needs": "operator"})
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

    New limits hold from the next request on, in every process.
    """
    require(actor, "owner" if {"plan", "own_limits"} & changes.keys() else "admin")
    workspace = db.session.get_one(
        Workspace, actor.workspace_id, with_for_update=True, populate_existing=True
    )
    before = {key: getattr(workspace, key) for key in changes}
    for key, value in changes.items():
        setattr(workspace, key, value)
    workspace.updated_at = clock.now()
    told = {key: {"from": before[key], "to": value} for key, value in changes.items()}
    audit_log.record(actor, "workspace.change", workspace, join=True, changes=told)
    _announced(workspace.id)
    return workspace


def create_team(actor: Actor, name: str) -> Team:
    """A team in the actor's workspace; commits."""
    require(actor, "admin")
    team = Team(workspace_id=actor.workspace_id, name=name)
    db.session.add(team)
    db.session.flush()
    audit_log.record(actor, "team.create", team, join=True, name=name)
    db.session.commit()
    return team


def create_project(actor: Actor, name: str, *, team_id: str | None = None, description: str = "") -> Project:
    """A project in a team (the present project's, or the workspace's first one); commits.

    Errors: forbidden, validation_error for a team that is not the actor's.
    """
    require(actor, "admin")
    team = _team_for(actor, team_id)
    project = Project(workspace_id=actor.workspace_id, team_id=team.id, name=name, description=description)
    db.session.add(project)
    db.session.flush()
    audit_log.record(actor, "project.create", project, join=True, name=name)
    db.session.commit()
    return project


def _team_for(actor: Actor, team_id: str | None) -> Team:
    statement = listing(actor, Team).order_by(Team.id).limit(1)
    wanted = team_id or actor.team_id
    team = db.session.scalar(statement.where(Team.id == wanted) if wanted else statement)
    if team is None:
        raise validation_error([Fault("team_id", "unknown", "There is no such team in this workspace.")])
    return team


def rename(actor: Actor, row: Team | Project, changes: Mapping[str, Any]) -> None:
    """Change a team's or project's own columns; commits."""
    told = audit_log.between({key: getattr(row, key) for key in changes}, changes)
    for key, value in changes.items():
        setattr(row, key, value)
    row.updated_at = clock.now()
    audit_log.record(actor, f"{audit_log.name_of(row)}.change", row, join=True, changes=told)
    db.session.commit()


def delete_project(actor: Actor, project: Project) -> None:
    """Soft-delete a project. What lies in it stays and comes back with it; its keys lose it at once; commits.

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
    _announced(actor.workspace_id)


def restore_project(actor: Actor, project: Project) -> None:
    """Take a project's deletion back; commits. Errors: not_found after 30 days, conflict while its team is deleted."""
    if db.session.get_one(Team, project.team_id).deleted_at is not None:
        text = "The team of this project is deleted too. Restore the team first."
        raise ApiError("conflict", text, {"team_id": project.team_id})
    actors.changing(db.session(), actor.workspace_id)
    restore(actor, project)


def delete_team(actor: Actor, team: Team) -> None:
    """Soft-delete a locked team that has no projects any more. Its members lose the role they had in it, and have it
    again when it is restored; its open invitations end; commits.

    Errors: in_use with its projects, conflict for the last team of a workspace.
    """
    require(actor, "admin")
    if team.deleted_at is None:
        inside = select(Project.id, Project.name).where(
            Project.team_id == team.id, Project.deleted_at.is_(None)
        )
        if users := [
            {"type": "project", "id": row.id, "name": row.name} for row in db.session.execute(inside)
        ]:
            told = ", ".join(one["name"] for one in users[:3])
            text = f"Projects lie in this team: {told}. Move them to another team, or delete them first."
            raise ApiError("in_use", text, {"used_by": users})
        others = select(func.count()).where(
            Team.workspace_id == actor.workspace_id, Team.deleted_at.is_(None), Team.id != team.id
        )
        if not db.session.scalar(others):
            raise ApiError("conflict", "This is the last team of the workspace.", {"id": team.id})
        team.deleted_at = clock.now()
        still_open = (
            Invitation.team_id == team.id,
            Invitation.accepted_at.is_(None),
            Invitation.revoked_at.is_(None),
        )
        db.session.execute(update(Invitation).where(*still_open).values(revoked_at=team.deleted_at))
        audit_log.record(actor, "team.delete", team, join=True, name=team.name)
    _announced(actor.workspace_id)


def restore_team(actor: Actor, team: Team) -> None:
    """Take a team's deletion back, and with it the roles in it; commits. Error: not_found after 30 days."""
    require(actor, "admin")
    actors.changing(db.session(), actor.workspace_id)
    restore(actor, team)


def to_team(actor: Actor, project: Project, team_id: str) -> None:
    """Put a locked project with all that lies in it into another team, whose members reach it from their next request
    on; commits. Error: validation_error for a team that is not there."""
    require(actor, "admin")
    team = db.session.scalar(listing(actor, Team).where(Team.id == team_id).with_for_update())
    if team is None:
        raise validation_error([Fault("team_id", "unknown", "There is no such team in this workspace.")])
    before = project.team_id
    if before != team.id:
        for table in Base.metadata.sorted_tables:
            if {"project_id", "team_id"} <= set(table.c.keys()):
                inside = table.update().where(table.c.project_id == project.id)
                db.session.execute(inside.values(team_id=team.id))
        project.team_id, project.updated_at = team.id, clock.now()
        audit_log.record(actor, "project.change", project, join=True, team={"from": before, "to": team.id})
    _announced(actor.workspace_id)


def _announced(workspace_id: str) -> None:
    actors.changing(db.session(), workspace_id)
    db.session.commit()


def projects_of(actor: Actor) -> list[Project]:
    """All projects the actor reaches, by name: for the project switch."""
    return list(db.session.scalars(listing(actor, Project, project=False).order_by(func.lower(Project.name))))


def inside(actor: Actor, team_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What teams hold, by their ids: `projects` (their names) and `members` (how many have a role in the team)."""
    found: dict[str, dict[str, Any]] = {one: {"projects": [], "members": 0} for one in team_ids}
    for project in projects_of(actor):
        if project.team_id in found:
            found[project.team_id]["projects"].append(project.name)
    counts = select(Membership.team_id, func.count()).where(Membership.team_id.in_(team_ids))
    for team_id, members in db.session.execute(counts.group_by(Membership.team_id)):
        found[team_id]["members"] = members
    return found


def workspaces_of(user_id: str) -> list[Workspace]:
    """All workspaces a user is a member of, by name."""
    mine = select(Membership.workspace_id).where(Membership.user_id == user_id)
    statement = select(Workspace).where(Workspace.id.in_(mine)).order_by(func.lower(Workspace.name))
    return list(db.session.scalars(statement))
