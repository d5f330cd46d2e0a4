"""The trash, what uses an object, and moving objects between projects: what all kinds of objects have alike."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from flask import Blueprint, Response, g, request, url_for
from pydantic import Field

from webapp import limits
from webapp.accounts.actors import Actor
from webapp.accounts.models import Project
from webapp.accounts.services import tenancy
from webapp.errors import ApiError
from webapp.files.services import file_store
from webapp.objects.services import moves, trash, usages
from webapp.web.inputs import Input, ListQuery
from webapp.web.responses import Listed, Output, reply
from webapp.web.routing import route

bp = Blueprint("trash", __name__)

# Where an object of a kind is restored, shown and deleted: the endpoint's blueprint, and what its address names.
PLACES: dict[str, tuple[str, str]] = {
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
    """`type`: one kind alone."""

    type: (
        Literal[
            "template", "dataset", "scenario", "connection", "endpoint", "file", "webhook", "project", "team"
        ]
        | None
    ) = None


class TrashedOut(Output):
    """Something deleted. It is gone for good at `gone_at`; `restorable`: the caller may have it back until then."""

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
    """One object that uses another, and how. What `blocks` must be gone before that other can be deleted. `id` and
    `name` are null for what lies in a team that the caller is not in."""

    type: str
    id: str | None
    name: str | None
    how: str
    blocks: bool


class UsesOut(Output):
    """What uses an object."""

    items: list[UseOut]
    total: int
    blocked: bool


class MoveIn(Input):
    """Objects for a project, by their ids. `related`: what else hangs together with them makes a refusal that names it
    (`refuse`), goes along (`take`), or, within one team, stays (`leave`)."""

    objects: Annotated[list[str], Field(min_length=1, max_length=limits.MAX_MOVED)]
    related: moves.Related = "refuse"


class MovedOut(Output):
    """One object that lies in the project now."""

    type: str
    id: str
    name: str


class MovesOut(Output):
    """What moved."""

    items: list[MovedOut]
    total: int


def restore_address(type: str, object_id: str) -> str:
    """Where a deletion of that kind is taken back."""
    if type == "team":
        return url_for("projects.restore_team", team_id=object_id)
    blueprint, part = PLACES[type]
    return url_for(f"{blueprint}.restore", **{part: object_id})


# What is said beside the question whether to delete.
NOTES: dict[str, str] = {
    "secret": "It is gone for good.",
    "project": "All that lies in it goes with it, and its keys stop working. It can be restored for 30 days.",
    "team": "Its members lose the role they have in it. It can be restored for 30 days.",
}
DELETED_WITH: dict[str, str] = {"secret": "secrets", "project": "admin", "team": "admin"}


def _asked(actor: Actor, found: Any) -> dict[str, Any]:
    """What the page needs to ask whether an object is to be deleted."""
    kind = usages.word_of(type(found))
    scope = DELETED_WITH.get(kind, "write")
    if kind == "team":
        action = url_for("projects.delete_team", team_id=found.id)
    elif kind in ("file", "secret"):
        by = found.id if kind == "file" else found.name
        action = url_for(f"{'workspace_files' if kind == 'file' else 'secrets'}.delete", name=by)
    else:
        blueprint, part = PLACES[kind]
        action = url_for(f"{blueprint}.delete", **{part: found.id})
    may = actor.can(scope, getattr(found, "team_id", None)) if scope == "write" else actor.can(scope)
    if kind == "file" and found.project_id is None:
        may = may and file_store.may_change_shared(actor)
    note = NOTES.get(kind, "It can be restored for 30 days.")
    return {"kind": kind, "name": found.name, "action": f"{action}?_method=DELETE", "may": may, "note": note}


_LISTS: dict[str, str] = {
    "team": "/teams", "project": "/projects", "member": "/members", "api_key": "/api-keys", "secret": "/secrets",
}  # fmt: skip


def object_address(type: str, object_id: str = "") -> str:
    """The page of an object, or without an id of its kind's list; "" where it has none. Kinds whose objects have no
    page of their own are shown by their list."""
    if type in _LISTS:
        return _LISTS[type]
    if type == "file":
        return f"/workspace/file/{object_id}" if object_id else "/workspace/files"
    if type == "run":
        return ""
    return f"/{'pushes' if type == 'push' else type + 's'}{'/' + object_id if object_id else ''}"


@route(bp, "/trash", scope="read", query=TrashQuery, returns=Listed(TrashedOut))
def index(actor: Actor, query: TrashQuery) -> Response:
    """List what was deleted in the project, and the workspace's shared files, projects and teams, the last deleted
    first."""
    found = trash.page(actor, type=query.type, q=query.q, cursor=query.cursor, limit=query.limit)
    shown = {
        "query": query,
        "kinds": list(trash.KINDS),
        "days": limits.RESTORE_DAYS,
        "restore_at": restore_address,
    }
    return reply(found.as_dict(dict), template="trash.html", block="list", **shown)


@route(bp, "/used-by/<object_id>", scope="read", returns=UsesOut)
def used_by(actor: Actor, object_id: str) -> Response:
    """What uses a template, dataset, scenario, connection, endpoint, file, secret, project or team."""
    found, told = usages.of(actor, object_id)
    items = usages.told(actor, told)
    data = {"items": items, "total": len(items), "blocked": any(one["blocks"] for one in items)}
    shown = {"asked": _asked(actor, found), "address": object_address} if g.face == "person" else {}
    return reply(data, template="used_by.html", block="uses", **shown)


def _not_moved(actor: Actor, error: ApiError, project_id: str) -> Response:
    """For a person: what else has to move, and the ways to go on."""
    related = error.details.get("related")
    if related is None:
        raise error
    project = tenancy.get(actor, Project, project_id, "write")
    ids = request.form.getlist("objects")
    first = tenancy.get(actor, usages.kind_of(ids[0]), ids[0])
    shown = {"error": error, "asked": ids, "project": project, "near": first.team_id == project.team_id}
    return reply({"related": related}, template="move.html", address=object_address, **shown)


@route(
    bp, "/projects/<project_id>/move", ["POST"], scope="write", body=MoveIn, returns=MovesOut,
    errors=["in_use", "not_found", "validation_error"], on_fault=_not_moved,
)  # fmt: skip
def move(actor: Actor, project_id: str, body: MoveIn) -> Response:
    """Put templates, datasets, connections, endpoints, scenarios and files into this project.

    The caller needs `write` in both projects. What hangs together moves together: see `related`.
    """
    project = tenancy.get(actor, Project, project_id, "write", lock=True)
    name = project.name
    moved = moves.move(actor, project, body.objects, body.related)
    told = f"{len(moved)} {'object lies' if len(moved) == 1 else 'objects lie'} in {name} now."
    see = (
        object_address(moved[0]["type"], moved[0]["id"])
        if g.face == "person" and len(moved) == 1
        else "/templates"
    )
    return reply({"items": moved, "total": len(moved)}, see=see, flashed=told)
