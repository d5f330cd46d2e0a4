"""Routes for all kinds of objects: the trash, usages, and moving objects between projects."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from flask import Blueprint, Response, g, request, url_for
from pydantic import Field

from webapp import limits
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.access.models import Project
from webapp.errors import ApiError
from webapp.files import services as files
from webapp.objects import services
from webapp.versioning.services import usages_as_json
from webapp.web.inputs import Input, ListQuery
from webapp.web.responses import ListOf, Output, reply
from webapp.web.routing import route

bp = Blueprint("trash", __name__)

# Where an object of a kind is restored, shown and deleted: the endpoint's blueprint, and what its address names.
RESTORE_ROUTES: dict[str, tuple[str, str]] = {
    "template": ("templates", "template_id"),
    "dataset": ("datasets", "dataset_id"),
    "scenario": ("scenarios", "scenario_id"),
    "connection": ("connections", "connection_id"),
    "endpoint": ("endpoints", "endpoint_id"),
    "file": ("workspace_files", "workspace_file_id"),
    "webhook": ("webhooks", "webhook_id"),
    "project": ("projects", "project_id"),
}


class TrashQuery(ListQuery):
    """`type`: only one kind."""

    type: (
        Literal[
            "template", "dataset", "scenario", "connection", "endpoint", "file", "webhook", "project", "team"
        ]
        | None
    ) = None


class TrashedOut(Output):
    """A deleted object. It is removed permanently at `gone_at`; `restorable`: the caller can restore it until then."""

    type: str
    id: str
    name: str
    project_id: str | None
    deleted_at: str
    deleted_by: str | None
    deleted_by_name: str | None
    gone_at: str
    days_left: int
    restorable: bool


class UseOut(Output):
    """An object that uses another one, and how.

    If `blocks` is true, it prevents the deletion. `id` and `name` are null for objects of a team that the caller is not
    a member of.
    """

    type: str
    id: str | None
    name: str | None
    how: str
    blocks: bool


class UsesOut(Output):
    """The objects that use an object."""

    items: list[UseOut]
    total: int
    blocked: bool


class MoveIn(Input):
    """IDs of objects to move to a project.

    `related` says what happens to related objects: reject the request and list them (`refuse`), move them too (`take`),
    or, within one team, leave them (`leave`).
    """

    objects: Annotated[list[str], Field(min_length=1, max_length=limits.MAX_MOVED)]
    related: services.Related = "refuse"


class MovedOut(Output):
    """An object that is now in the project."""

    type: str
    id: str
    name: str


class MovesOut(Output):
    """The moved objects."""

    items: list[MovedOut]
    total: int


def restore_url(type: str, object_id: str) -> str:
    """Return the URL that undoes a deletion of that kind."""
    if type == "team":
        return url_for("projects.restore_team", team_id=object_id)
    blueprint, part = RESTORE_ROUTES[type]
    values: dict[str, Any] = {part: object_id}
    return url_for(f"{blueprint}.restore", **values)


# Text of the confirmation before deleting.
DELETION_NOTES: dict[str, str] = {
    "secret": "It cannot be restored.",
    "project": "Everything in it is deleted as well, and its API keys stop working. You can restore it for 30 days.",
    "team": "Its members lose their roles in the team. You can restore it for 30 days.",
}
DELETION_SCOPES: dict[str, str] = {"secret": "secrets", "project": "admin", "team": "admin"}


_LISTS: dict[str, str] = {
    "team": "/teams", "project": "/projects", "member": "/members", "api_key": "/api-keys", "secret": "/secrets",
}  # fmt: skip


def object_url(type: str, object_id: str = "") -> str:
    """Return the URL of an object's page, or without an id the URL of the list of its kind; "" if there is no such
    page. Kinds without object pages use their list."""
    if type in _LISTS:
        return _LISTS[type]
    if type == "file":
        return f"/workspace/file/{object_id}" if object_id else "/workspace/files"
    if type == "run":
        return ""
    return f"/{'pushes' if type == 'push' else type + 's'}{'/' + object_id if object_id else ''}"


@route(bp, "/trash", scope="read", query=TrashQuery, returns=ListOf(TrashedOut))
def index(actor: Actor, query: TrashQuery) -> Response:
    """List deleted objects, most recently deleted first.

    The list contains objects of the project, and the workspace's shared files, projects and teams.
    """
    found = services.trash_page(actor, type=query.type, q=query.q, cursor=query.cursor, limit=query.limit)
    context: dict[str, Any] = {
        "query": query,
        "kinds": list(services.TRASH),
        "days": limits.RESTORE_DAYS,
        "restore_at": restore_url,
    }
    return reply(found.as_dict(dict), template="trash.html", block="list", **context)


@route(bp, "/used-by/<object_id>", scope="read", returns=UsesOut)
def used_by(actor: Actor, object_id: str) -> Response:
    """List what uses a template, dataset, scenario, connection, endpoint, file, secret, project or team."""
    found, uses = services.find_with_dependents(actor, object_id)
    items = usages_as_json(actor, uses)
    data = {"items": items, "total": len(items), "blocked": any(item["blocks"] for item in items)}
    context: dict[str, Any] = {}
    if g.face == "person":
        kind = services.kind_name(type(found))
        scope = DELETION_SCOPES.get(kind, "write")
        if kind == "team":
            action = url_for("projects.delete_team", team_id=found.id)
        elif kind == "file":
            action = url_for("workspace_files.delete", name=found.id)
        elif kind == "secret":
            action = url_for("secrets.delete", name=found.name)
        else:
            blueprint, part = RESTORE_ROUTES[kind]
            action = url_for(f"{blueprint}.delete", **{part: found.id})
        may = actor.can(scope, getattr(found, "team_id", None)) if scope == "write" else actor.can(scope)
        if kind == "file" and found.project_id is None:
            may = may and files.can_change_shared(actor)
        confirmation = {
            "kind": kind,
            "name": found.name,
            "action": f"{action}?_method=DELETE",
            "may": may,
            "note": DELETION_NOTES.get(kind, "It can be restored for 30 days."),
        }
        context = {"asked": confirmation, "address": object_url}
    return reply(data, template="used_by.html", block="uses", **context)


def _move_error_page(actor: Actor, error: ApiError, project_id: str) -> Response:
    """Render the page with the related objects and the choices."""
    related = error.details.get("related")
    if related is None:
        raise error
    project = tenancy.get(actor, Project, project_id, "write")
    ids = request.form.getlist("objects")
    first = tenancy.get(actor, services.model_of_id(ids[0]), ids[0])
    context = {"error": error, "asked": ids, "project": project, "near": first.team_id == project.team_id}
    return reply({"related": related}, template="move.html", address=object_url, **context)


@route(
    bp, "/projects/<project_id>/move", ["POST"], scope="write", body=MoveIn, returns=MovesOut,
    errors=["in_use", "not_found", "validation_error"], on_fault=_move_error_page,
)  # fmt: skip
def move(actor: Actor, project_id: str, body: MoveIn) -> Response:
    """Move templates, datasets, connections, endpoints, scenarios and files to this project.

    The caller needs `write` in both projects. Related objects move together: see `related`.
    """
    project = tenancy.get(actor, Project, project_id, "write", lock=True)
    name = project.name
    moved = services.move(actor, project, body.objects, body.related)
    message = f"{len(moved)} {'object' if len(moved) == 1 else 'objects'} moved to {name}."
    see = (
        object_url(moved[0]["type"], moved[0]["id"])
        if g.face == "person" and len(moved) == 1
        else "/templates"
    )
    return reply({"items": moved, "total": len(moved)}, redirect_to=see, flash_message=message)
