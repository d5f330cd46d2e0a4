"""Projects and teams."""

from __future__ import annotations

from typing import Any

from flask import Response
from sqlalchemy import Select

from webapp import limits
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.access.models import Membership, Project, Team
from webapp.accounts.services import workspaces
from webapp.accounts.views.projects import ProjectIn, ProjectOut, ProjectPatch, TeamIn, TeamOut
from webapp.compat.views.people import member_out
from webapp.compat.views.routing import ROOT, call
from webapp.compat.views.words import Loose, camelled, read
from webapp.errors import Fault, validation_error
from webapp.extensions import db
from webapp.web.responses import matching, reply

PROJECT = f"{ROOT}/projects/<project_id>"
TEAM = f"{ROOT}/teams/<team_id>"


def project_out(project: Project) -> dict[str, Any]:
    """A project as the clients know it."""
    return {**camelled(ProjectOut.of(project)), "avatar": None, "createdBy": ""}


def team_out(team: Team) -> dict[str, Any]:
    """A team as the clients know it."""
    return {**camelled(TeamOut.of(team)), "avatar": None}


def _all(statement: Select[Any], newest: Any) -> list[Any]:
    return list(db.session.scalars(statement.order_by(newest.desc()).limit(limits.COMPAT_LIST_ROWS)))


@call(f"{ROOT}/projects", scope="member")
def projects_list(actor: Actor) -> Response:
    """List the projects that one reaches."""
    found = _all(tenancy.listing(actor, Project, project=False), Project.id)
    return reply([project_out(one) for one in found])


@call(f"{ROOT}/projects", ["POST"], scope="admin", body=Loose, idempotent=True)
def project_create(actor: Actor, body: Loose) -> Response:
    """Create a project."""
    given = read(ProjectIn, body.said())
    made = workspaces.create_project(
        actor, given.name, team_id=given.team_id or None, description=given.description
    )
    return reply(project_out(made))


@call(PROJECT, scope="member")
def project_show(actor: Actor, project_id: str) -> Response:
    """Get a project."""
    return reply(project_out(tenancy.get(actor, Project, project_id, "member")), tag=True)


@call(PROJECT, ["PUT"], scope="admin", body=Loose)
def project_change(actor: Actor, project_id: str, body: Loose) -> Response:
    """Change a project's name or description."""
    row = tenancy.get(actor, Project, project_id, "admin", lock=True)
    matching(project_out(row))
    said = body.said()
    if said.pop("team_id", row.team_id) not in (row.team_id, ""):
        raise validation_error([Fault("teamId", "not_allowed", "A project stays in its team.")])
    changes = read(ProjectPatch, said).model_dump(exclude_unset=True)
    if changes:
        workspaces.rename(actor, row, changes)
    return reply(project_out(row))


@call(PROJECT, ["DELETE"], scope="admin")
def project_delete(actor: Actor, project_id: str) -> Response:
    """Move a project with all its contents to the trash."""
    row = tenancy.get(actor, Project, project_id, "admin", lock=True)
    workspaces.delete_project(actor, row)
    return reply({"message": f"Project {row.name} deleted"})


@call(f"{ROOT}/teams", scope="member")
def teams_list(actor: Actor) -> Response:
    """List the teams that one belongs to."""
    return reply([team_out(one) for one in _all(tenancy.listing(actor, Team, project=False), Team.id)])


@call(f"{ROOT}/teams", ["POST"], scope="admin", body=Loose, idempotent=True)
def team_create(actor: Actor, body: Loose) -> Response:
    """Create a team."""
    return reply(team_out(workspaces.create_team(actor, read(TeamIn, body.said()).name)))


@call(TEAM, ["PUT"], scope="admin", body=Loose)
def team_change(actor: Actor, team_id: str, body: Loose) -> Response:
    """Rename a team."""
    row = tenancy.get(actor, Team, team_id, "admin", lock=True)
    matching(team_out(row))
    workspaces.rename(actor, row, {"name": read(TeamIn, body.said()).name})
    return reply(team_out(row))


@call(f"{ROOT}/setup/teams", ["POST"], scope="admin", body=Loose)
def team_setup(actor: Actor, body: Loose) -> Response:
    """Create a team with its first project. The caller belongs to it through their role in the workspace."""
    said = body.said()
    project = said.pop("project_name", None) or "Default"
    team = workspaces.create_team(actor, read(TeamIn, said).name)
    made = workspaces.create_project(actor, read(ProjectIn, {"name": project}).name, team_id=team.id)
    mine = db.session.scalars(
        tenancy.listing(actor, Membership).where(
            Membership.user_id == actor.user_id, Membership.team_id.is_(None)
        )
    ).first()
    return reply(
        {
            "team": team_out(team),
            "project": project_out(made),
            "teamMember": member_out(actor, mine, team.id) if mine else None,
        }
    )
