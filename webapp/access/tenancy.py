"""Finding objects that an actor can see and change.

`get` and `listing` are the only ways to load an object: both filter by the actor's workspace. What is outside of it,
or in a team the actor has no role in, does not exist for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from sqlalchemy import Select, false, func, or_, select

from webapp.access.actors import Actor, require_scope
from webapp.access.models import Membership, Project, Team, Workspace
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.model_base import Base

T = TypeVar("T", bound=Base)


def not_found(what: str, object_id: str) -> ApiError:
    """Return 404 for an object that does not exist or that the actor cannot see, without a difference."""
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
    """Return an object of the actor's workspace after checking the permission for `scope` in its project.

    `lock` locks the row until the transaction ends (use it before a change); `deleted` also finds soft-deleted objects.
    Errors: not_found; forbidden (the actor may see the object, but has no permission for this).
    """
    table: Any = model
    if "\0" in object_id:  # PostgreSQL rejects this value in comparisons
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
    require_scope(actor, scope, team_id)
    return row


def listing(actor: Actor, model: type[T], *, project: bool = True, deleted: bool = False) -> Select[T]:
    """Return a select of the objects that the actor can see: in the current project, or with `project=False` in all of
    their teams."""
    table: Any = model
    statement = select(model).where(table.workspace_id == actor.workspace_id)
    if hasattr(model, "deleted_at"):
        statement = statement.where(table.deleted_at.isnot(None) if deleted else table.deleted_at.is_(None))
    if getattr(model, "shared_without_project", False):
        return statement.where(or_(table.project_id == actor.project_id, table.project_id.is_(None)))
    if project and hasattr(model, "project_id"):
        return statement.where(table.project_id == actor.project_id)
    if actor.workspace_role is None and (model is Team or hasattr(model, "team_id")):
        column = table.id if model is Team else table.team_id
        return statement.where(column.in_(list(actor.team_roles)) if actor.team_roles else false())
    return statement


def current_scope(actor: Actor) -> dict[str, str]:
    """Return `workspace_id`, `project_id`, `team_id` for a new object of the current project.

    Error: validation_error if the actor has no project (a new workspace, or all deleted).
    """
    if actor.project_id is None or actor.team_id is None:
        message = "There is no project to create this in."
        raise validation_error([Fault("X-Project-Id", "missing", message, "Create a project first.")])
    return {"workspace_id": actor.workspace_id, "project_id": actor.project_id, "team_id": actor.team_id}


def accessible_projects(actor: Actor) -> list[Project]:
    """Return the projects that the actor can access, by name, for the project menu."""
    return list(db.session.scalars(listing(actor, Project, project=False).order_by(func.lower(Project.name))))


def team_contents(actor: Actor, team_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the contents of teams by their ids: `projects` (their names) and `members` (the number of roles in the
    team)."""
    found: dict[str, dict[str, Any]] = {item: {"projects": [], "members": 0} for item in team_ids}
    for project in accessible_projects(actor):
        if project.team_id in found:
            found[project.team_id]["projects"].append(project.name)
    statement = select(Membership.team_id, func.count()).where(Membership.team_id.in_(team_ids))
    for team_id, members in db.session.execute(statement.group_by(Membership.team_id)):
        assert team_id is not None  # one of `team_ids`
        found[team_id]["members"] = members
    return found


def workspaces_of(user_id: str) -> list[Workspace]:
    """Return the workspaces that a user is a member of, by name."""
    workspace_ids = select(Membership.workspace_id).where(Membership.user_id == user_id)
    statement = select(Workspace).where(Workspace.id.in_(workspace_ids)).order_by(func.lower(Workspace.name))
    return list(db.session.scalars(statement))
