"""Teams and projects."""

from __future__ import annotations

from typing import Annotated, Any

from flask import Blueprint, Response, flash, g, url_for
from pydantic import Field

from webapp import limits
from webapp.models import Project, Team
from webapp.services import paging, tenancy
from webapp.services.actors import Actor
from webapp.views.inputs import Input, ListQuery
from webapp.views.outputs import Listed, OptionalTime, Output, Time
from webapp.views.reply import matching, reply
from webapp.views.routes import route

bp = Blueprint("projects", __name__)

Name = Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS, pattern=r"\S")]
Description = Annotated[str, Field(max_length=limits.MAX_DESCRIPTION_CHARS)]


class TeamIn(Input):
    """A team."""

    name: Name


class TeamOut(Output):
    """A team."""

    id: str
    name: str
    created_at: Time
    updated_at: Time
    deleted_at: OptionalTime


class ProjectIn(Input):
    """A new project; `team_id` left out: the team of the present project."""

    name: Name
    description: Description = ""
    team_id: str | None = None


class ProjectPatch(Input):
    """What of a project can change."""

    name: Name | None = None
    description: Description | None = None


class ProjectOut(Output):
    """A project."""

    id: str
    name: str
    description: str
    team_id: str
    created_at: Time
    updated_at: Time
    deleted_at: OptionalTime


def _listed(actor: Actor, model: Any, shape: type[Output], query: ListQuery) -> dict[str, Any]:
    found = paging.page(
        tenancy.listing(actor, model, project=False),
        name=model.__tablename__,
        identity=model.id,
        cursor=query.cursor,
        limit=query.limit,
        search=(query.q, model.name),
        context=f"{actor.workspace_id} {actor.user_id}",
    )
    return found.as_dict(shape.of)


@route(bp, "/teams", scope="member", query=ListQuery, returns=Listed(TeamOut))
def teams(actor: Actor, query: ListQuery) -> Response:
    """List the teams one belongs to; members of the workspace see all."""
    return reply(_listed(actor, Team, TeamOut, query), template="teams.html")


@route(bp, "/teams", ["POST"], scope="admin", body=TeamIn, returns=TeamOut, status=201, idempotent=True)
def create_team(actor: Actor, body: TeamIn) -> Response:
    """Make a team."""
    team = tenancy.create_team(actor, body.name)
    where = url_for("projects.team", team_id=team.id)
    return reply(TeamOut.of(team), status=201, see=url_for("projects.teams"), headers={"Location": where})


@route(bp, "/teams/<team_id>", scope="member", returns=TeamOut)
def team(actor: Actor, team_id: str) -> Response:
    """Read a team."""
    return reply(TeamOut.of(tenancy.get(actor, Team, team_id, "member")), tag=True)


@route(
    bp,
    "/teams/<team_id>",
    ["PATCH"],
    scope="admin",
    body=TeamIn,
    returns=TeamOut,
    errors=["version_conflict"],
)
def change_team(actor: Actor, team_id: str, body: TeamIn) -> Response:
    """Rename a team."""
    row = tenancy.get(actor, Team, team_id, "admin", lock=True)
    matching(TeamOut.of(row))
    tenancy.rename(actor, row, {"name": body.name})
    return reply(TeamOut.of(row), see=url_for("projects.teams"), tag=True)


@route(bp, "/projects", scope="member", query=ListQuery, returns=Listed(ProjectOut))
def index(actor: Actor, query: ListQuery) -> Response:
    """List the projects of the teams one belongs to; members of the workspace see all."""
    return reply(_listed(actor, Project, ProjectOut, query), template="projects.html")


@route(
    bp, "/projects", ["POST"], scope="admin", body=ProjectIn, returns=ProjectOut, status=201, idempotent=True
)
def create(actor: Actor, body: ProjectIn) -> Response:
    """Make a project."""
    row = tenancy.create_project(actor, body.name, team_id=body.team_id, description=body.description)
    where = url_for("projects.show", project_id=row.id)
    return reply(ProjectOut.of(row), status=201, see=url_for("projects.index"), headers={"Location": where})


@route(bp, "/projects/<project_id>", scope="member", returns=ProjectOut)
def show(actor: Actor, project_id: str) -> Response:
    """Read a project."""
    return reply(ProjectOut.of(tenancy.get(actor, Project, project_id, "member")), tag=True)


@route(
    bp,
    "/projects/<project_id>",
    ["PATCH"],
    scope="admin",
    body=ProjectPatch,
    returns=ProjectOut,
    errors=["version_conflict"],
)
def change(actor: Actor, project_id: str, body: ProjectPatch) -> Response:
    """Change a project's name or description."""
    row = tenancy.get(actor, Project, project_id, "admin", lock=True)
    matching(ProjectOut.of(row))
    changes = {key: value for key, value in body.model_dump(exclude_unset=True).items() if value is not None}
    if changes:
        tenancy.rename(actor, row, changes)
    return reply(ProjectOut.of(row), see=url_for("projects.index"), tag=True)


@route(
    bp,
    "/projects/<project_id>",
    ["DELETE"],
    scope="admin",
    returns=ProjectOut,
    errors=["version_conflict", "conflict"],
)
def delete(actor: Actor, project_id: str) -> Response:
    """Soft-delete a project with all that lies in it; it can be restored for 30 days."""
    row = tenancy.get(actor, Project, project_id, "admin", lock=True)
    matching(ProjectOut.of(row))
    tenancy.delete_project(actor, row)
    if g.face == "person":  # the category of a message is where its Undo goes
        flash(f"Project {row.name} deleted", url_for("projects.restore", project_id=project_id))
    return reply(ProjectOut.of(row), see=url_for("projects.index"))


@route(bp, "/projects/<project_id>/restore", ["POST"], scope="admin", returns=ProjectOut)
def restore(actor: Actor, project_id: str) -> Response:
    """Take a project's deletion back."""
    row = tenancy.get(actor, Project, project_id, "admin", lock=True, deleted=True)
    tenancy.restore_project(actor, row)
    return reply(ProjectOut.of(row), see=url_for("projects.index"))
