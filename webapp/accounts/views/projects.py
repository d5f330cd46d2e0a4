"""Teams and projects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from flask import Blueprint, Response, flash, g, request, url_for
from pydantic import Field

from webapp import limits, pagination
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.access.models import Project, Team
from webapp.accounts.services import workspaces
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.web.forms.page_form import Control, FormSpec, PageForm
from webapp.web.inputs import Input, ListQuery
from webapp.web.responses import ListOf, OptionalTime, Output, Time, check_if_match, reply
from webapp.web.routing import route

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
    """A new project. Without `team_id`: the team of the current project."""

    name: Name
    description: Description = ""
    team_id: str | None = None


class ProjectPatch(Input):
    """The properties of a project that can be changed.

    A new `team_id` moves it, with all its contents, to that team.
    """

    name: Name | None = None
    description: Description | None = None
    team_id: str | None = None


_NAME: Final = Control("Name", required=True, autocomplete="off")
_DESCRIPTION: Final = Control("Description", type="textarea", attributes={"rows": 2})
NEW_FORMS: Final[Mapping[type[Team] | type[Project], FormSpec]] = {
    Team: FormSpec(TeamIn, {"name": _NAME}),
    Project: FormSpec(ProjectIn, {"name": _NAME, "team_id": Control("Team"), "description": _DESCRIPTION}),
}
CHANGE_FORMS: Final[Mapping[type[Team] | type[Project], FormSpec]] = {
    Team: FormSpec(TeamIn, {"name": Control("New name", required=True, autocomplete="off")}),
    Project: FormSpec(
        ProjectPatch,
        {
            "name": _NAME,
            "description": _DESCRIPTION,
            "team_id": Control("Team", hint="Moving a project to another team changes who has access to it."),
        },
    ),
}


class ProjectOut(Output):
    """A project."""

    id: str
    name: str
    description: str
    team_id: str
    created_at: Time
    updated_at: Time
    deleted_at: OptionalTime


@dataclass(frozen=True, slots=True)
class NamedKind:
    """A named object in the hierarchy of a workspace (a team or project), with its service functions.

    `endpoints`: for listing, creating, reading and changing. `listed` and `changed` describe the first and the last.
    """

    model: type[Team] | type[Project]
    create: Callable[[Actor, Any], Team | Project]
    body: type[Input]
    patch: type[Input]
    returns: type[Output]
    endpoints: tuple[str, str, str, str]
    listed: str
    changed: str


def declare_routes(kind: NamedKind) -> None:
    """Declare the routes shared by teams and projects."""
    model, shape, name, plural = (
        kind.model,
        kind.returns,
        kind.model.__name__.lower(),
        kind.model.__tablename__,
    )
    one, (index_at, create_at, show_at, change_at) = f"/{plural}/<{name}_id>", kind.endpoints

    def listed(actor: Actor, query: ListQuery, **how: Any) -> Response:
        found = pagination.paginate(
            tenancy.listing(actor, model, project=False),
            name=plural,
            id_column=model.id,
            cursor=query.cursor,
            limit=query.limit,
            search=(query.q, model.name),
            context=f"{actor.workspace_id} {actor.user_id}",
        )
        context = {"query": query, **_page_context(actor, model, **how)} if g.face == "person" else {}
        return reply(found.as_dict(shape.from_row), template=f"{plural}.html", **context)

    def again(actor: Actor, error: ApiError, **address: str) -> Response:
        """Render the page with the rejected form, for users who may see it."""
        if error.code in ("forbidden", "not_found"):
            raise error
        row = tenancy.get(actor, model, address[f"{name}_id"], "admin") if address else None
        return listed(actor, ListQuery(), error=error, row=shape.from_row(row) if row else None)

    @route(
        bp, f"/{plural}", scope="member", query=ListQuery, returns=ListOf(shape), endpoint=index_at,
        summary=kind.listed,
    )  # fmt: skip
    def index(actor: Actor, query: ListQuery) -> Response:
        return listed(actor, query)

    @route(
        bp, f"/{plural}", ["POST"], scope="admin", body=kind.body, returns=shape, status=201, idempotent=True,
        endpoint=create_at, summary=f"Create a {name}.", on_fault=again,
    )  # fmt: skip
    def create(actor: Actor, body: Input) -> Response:
        row = kind.create(actor, body)
        address: dict[str, Any] = {f"{name}_id": row.id}
        location = url_for(f".{show_at}", **address)
        return reply(
            shape.from_row(row),
            status=201,
            redirect_to=url_for(f".{index_at}"),
            headers={"Location": location},
        )

    @route(bp, one, scope="member", returns=shape, endpoint=show_at, summary=f"Read a {name}.")
    def show(actor: Actor, **address: str) -> Response:
        return reply(
            shape.from_row(tenancy.get(actor, model, address[f"{name}_id"], "member")), send_etag=True
        )

    @route(
        bp, one, ["PATCH"], scope="admin", body=kind.patch, returns=shape, errors=["version_conflict"],
        endpoint=change_at, summary=kind.changed, on_fault=again,
    )  # fmt: skip
    def change(actor: Actor, body: Input, **address: str) -> Response:
        if g.face == "person":
            CHANGE_FORMS[model].check(request.form)
        row = tenancy.get(actor, model, address[f"{name}_id"], "admin", lock=True)
        check_if_match(shape.from_row(row))
        changes = {
            key: value for key, value in body.model_dump(exclude_unset=True).items() if value is not None
        }
        team_id = changes.pop("team_id", None)
        if team_id is not None and isinstance(row, Project):
            workspaces.move_to_team(actor, row, team_id)
        if changes:
            workspaces.update_attributes(actor, row, changes)
        return reply(shape.from_row(row), redirect_to=url_for(f".{index_at}"), send_etag=True)


def _page_context(
    actor: Actor,
    model: type[Team] | type[Project],
    error: ApiError | None = None,
    row: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return additional data for the page of teams or projects. `error` belongs to the form of `row`, or to the form
    for a new one."""
    teams = list(db.session.scalars(tenancy.listing(actor, Team).order_by(Team.name)))
    choices = {"team_id": [(team.id, team.name) for team in teams]} if model is Project else {}
    hidden_fields = ("team_id",) if len(teams) < 2 else ()
    current_project = db.session.get(Project, actor.project_id) if actor.project_id else None

    def form(spec: FormSpec, data: Mapping[str, Any], wrong: bool = False, id: str = "") -> PageForm:
        sent = request.form if wrong else None
        return spec.render(
            data, sent=sent, error=error if wrong else None, id=id, choices=choices, without=hidden_fields
        )

    context: dict[str, Any] = {
        "form": form(
            NEW_FORMS[model],
            {"team_id": current_project and current_project.team_id},
            error is not None and row is None,
        ),
        "change_form": lambda data: form(CHANGE_FORMS[model], data, id=f"{data['id']}-"),
        "changed": row,
        "changed_form": row and form(CHANGE_FORMS[model], row, wrong=True, id="changed-"),
    }
    return context | (
        {"teams": teams}
        if model is Project
        else {"inside": tenancy.team_contents(actor, [team.id for team in teams])}
    )


declare_routes(
    NamedKind(
        Team,
        lambda actor, body: workspaces.create_team(actor, body.name),
        TeamIn,
        TeamIn,
        TeamOut,
        ("teams", "create_team", "team", "change_team"),
        listed="List your teams; members of the workspace see all teams.",
        changed="Rename a team.",
    )
)
declare_routes(
    NamedKind(
        Project,
        lambda actor, body: workspaces.create_project(
            actor, body.name, team_id=body.team_id, description=body.description
        ),
        ProjectIn,
        ProjectPatch,
        ProjectOut,
        ("index", "create", "show", "change"),
        listed="List the projects of your teams; members of the workspace see all projects.",
        changed="Change a project's name, description or team.",
    )
)


def declare_deletion(
    kind: type[Team] | type[Project],
    shape: type[Output],
    delete: Callable[[Actor, Any], None],
    restore: Callable[[Actor, Any], None],
    *,
    consequence: str,
) -> None:
    """Declare the routes that delete and restore teams and projects. `consequence`: the effect on their contents."""
    name, plural = kind.__name__.lower(), kind.__tablename__
    one = f"/{plural}/<{name}_id>"
    delete_at, restore_at = (
        ("delete", "restore") if kind is Project else (f"delete_{name}", f"restore_{name}")
    )
    index_at = ".index" if kind is Project else f".{plural}"

    @route(
        bp, one, ["DELETE"], scope="admin", returns=shape, errors=["version_conflict", "conflict", "in_use"],
        endpoint=delete_at, summary=f"Delete a {name}{consequence}. It can be restored for 30 days.",
    )  # fmt: skip
    def remove(actor: Actor, **address: str) -> Response:
        row = tenancy.get(actor, kind, address[f"{name}_id"], "admin", lock=True)
        check_if_match(shape.from_row(row))
        delete(actor, row)
        if g.face == "person":  # the category of the message contains the URL of its Undo button
            values: dict[str, Any] = {**address}
            flash(f"{name.title()} {row.name} deleted", url_for(f".{restore_at}", **values))
        return reply(shape.from_row(row), redirect_to=url_for(index_at))

    @route(
        bp, f"{one}/restore", ["POST"], scope="admin", returns=shape, errors=["conflict"], endpoint=restore_at,
        summary=f"Restore a {name}.",
    )  # fmt: skip
    def back(actor: Actor, **address: str) -> Response:
        row = tenancy.get(actor, kind, address[f"{name}_id"], "admin", lock=True, deleted=True)
        restore(actor, row)
        return reply(shape.from_row(row), redirect_to=url_for(index_at))


declare_deletion(
    Team,
    TeamOut,
    workspaces.delete_team,
    workspaces.restore_team,
    consequence=" without projects, together with its roles",
)
declare_deletion(
    Project,
    ProjectOut,
    workspaces.delete_project,
    workspaces.restore_project,
    consequence=" with all its contents",
)
