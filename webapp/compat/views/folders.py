"""Folders of templates, and of endpoints and connections.

A folder is a prefix of names: a template "Customers" in the folder "HR" is named "HR/Customers" in the application and
in the API proper. The clients see the name without the folder, and the folder's id separately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from flask import Response

from webapp import clock
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.accounts.views.projects import Name
from webapp.compat.services import objects
from webapp.compat.views.objects import Patch, Placed
from webapp.compat.views.routing import ROOT, call
from webapp.compat.views.words import Anything, Loose, everything, placed
from webapp.connections.services import connections
from webapp.endpoints import services as endpoints
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.files.models import CompatObject
from webapp.row_templates.models import Template
from webapp.row_templates.services import templates
from webapp.web.responses import reply

TEMPLATES: Final = "template_folder"
ENDPOINTS: Final = "endpoint_folder"
_KEYS: Final = {TEMPLATES: "templateFolderId", ENDPOINTS: "endpointFolderId"}


class Folders:
    """The folders of one kind in a project."""

    def __init__(self, kind: str, project_id: str) -> None:
        self.kind = kind
        # The longest first: of "HR" and "HR/Germany" the second is the folder of "HR/Germany/Customers".
        names = objects.in_project(project_id, kind).items()
        self.names = dict(sorted(names, key=lambda one: -len(one[1])))

    def shown(self, name: str) -> dict[str, str | None]:
        """Return the keys `name` and folder id of an object, as the clients know it."""
        folder_id, rest = self.split(name)
        return {"name": rest, _KEYS[self.kind]: folder_id}

    def split(self, name: str) -> tuple[str | None, str]:
        """Return the id of the folder that a name is in, and the rest of the name."""
        for folder_id, folder in self.names.items():
            if name.startswith(f"{folder}/") and len(name) > len(folder) + 1:
                return folder_id, name[len(folder) + 1 :]
        return None, name

    def joined(self, folder_id: Any, name: str) -> str:
        """Return the whole name of an object in a folder. Error: validation_error for a folder that is not there."""
        if not folder_id:
            return name
        folder = self.names.get(folder_id) if isinstance(folder_id, str) else None
        if folder is None:
            text = "There is no such folder in the project."
            raise validation_error([Fault(_KEYS[self.kind], "unknown", text)])
        return f"{folder}/{name}"

    def put(self, said: dict[str, Any], body: Loose, name: str | None = None) -> None:
        """Give what was sent its whole name. `name` is that of an object which is changed: it stays in its folder
        unless another one is sent."""
        key = _KEYS[self.kind]
        sent = body.model_extra or {}
        present, rest = self.split(name) if name is not None else (None, "")
        if key not in sent and "name" not in said:
            return
        own = said.get("name", rest)
        if isinstance(own, str):
            said["name"] = self.joined(sent.get(key, present), own)


# --- The folders themselves -----------------------------------------------------------------------------------


class FolderIn(Placed):
    """A new folder."""

    is_database: bool | None = None


class FolderChange(Patch):
    """Changes to a folder; missing attributes are unchanged."""

    name: Name | None = None
    is_database: bool | None = None


def folder_out(row: CompatObject) -> dict[str, Any]:
    """A folder as the clients know it."""
    shown = {
        "id": row.id,
        "name": row.name,
        "createdAt": clock.to_text(row.created_at),
        "createdBy": row.created_by,
        "projectId": row.project_id,
        "teamId": row.team_id,
    }
    return {**shown, "isDatabase": row.document["is_database"]} if row.kind == TEMPLATES else shown


def _check_name(actor: Actor, kind: str, name: str, own: CompatObject | None = None) -> None:
    if name.strip("/ ") != name:
        text = "The name of a folder does not begin or end with a slash or a space."
        raise validation_error([Fault("name", "wrong_form", text)])
    objects.lock(actor)
    other = objects.named(actor, kind, name)
    if other is not None and other is not own:
        # The hosted service's document has 400 here.
        raise ApiError("invalid_request", f"The folder name `{name}` is already in use.", {"id": other.id})


def _list(actor: Actor, kind: str, query: Anything) -> Response:
    here = placed(actor, "read", query.projectId, query.teamId)
    return reply([folder_out(row) for row in objects.listing(here, kind)])


def _create(actor: Actor, kind: str, body: FolderIn, status: int) -> Response:
    here = placed(actor, "write", body.project_id, body.team_id)
    _check_name(here, kind, body.name)
    document = {"is_database": bool(body.is_database)}
    return reply(folder_out(objects.create(here, kind, body.name, document)), status=status)


def _change(actor: Actor, kind: str, folder_id: str, body: FolderChange) -> Response:
    row = objects.get(actor, kind, folder_id, "write", lock=True)
    if body.name is not None and body.name != row.name:
        here = placed(actor, "write", row.project_id)
        _check_name(here, kind, body.name, row)
        # Each rename commits by itself, the folder's own last: a call that is cut short can be repeated.
        before = row.name
        db.session.commit()
        for object_id, rename in _within(here, kind, before):
            rename(object_id, before, body.name)
        row = objects.get(actor, kind, folder_id, "write", lock=True)
    document = {} if body.is_database is None else {"is_database": body.is_database}
    return reply(folder_out(objects.change(actor, row, name=body.name, document=document)))


Rename = Callable[[str, str, str], None]


def _within(actor: Actor, kind: str, folder: str) -> Iterable[tuple[str, Rename]]:
    """The objects in a folder, each with what renames it."""

    def inside(listing: Any, name_of: Callable[[Any], tuple[str, str]]) -> list[str]:
        found = [name_of(one) for one in everything(listing, actor)]
        return [object_id for object_id, name in found if name.startswith(f"{folder}/")]

    def template(object_id: str, before: str, after: str) -> None:
        head = templates.get(actor, object_id, "write", lock=True)
        templates.change(actor, head, {"name": after + head.name.removeprefix(before)})

    def endpoint(object_id: str, before: str, after: str) -> None:
        row = connections.get_endpoint(actor, object_id, "write", lock=True)
        endpoints.change(actor, row, {"name": after + row.name.removeprefix(before)})

    def connection(object_id: str, before: str, after: str) -> None:
        row = connections.get(actor, object_id, "write", lock=True)
        connections.change(actor, row, {"name": after + row.name.removeprefix(before)})

    def of_row(row: Any) -> tuple[str, str]:
        return row.id, row.name

    if kind == TEMPLATES:
        statement = tenancy.listing(actor, Template).with_only_columns(Template.id, Template.name)
        named = db.session.execute(statement.order_by(Template.id.desc()))
        return [(row.id, template) for row in named if row.name.startswith(f"{folder}/")]
    held = [(one, endpoint) for one in inside(connections.list_endpoints, of_row)]
    return [*held, *((one, connection) for one in inside(connections.listing, of_row))]


@call(f"{ROOT}/templateFolders", scope="read")
def template_folders_list(actor: Actor, query: Anything) -> Response:
    """List the folders of templates of the project, newest first."""
    return _list(actor, TEMPLATES, query)


@call(f"{ROOT}/templateFolders", ["POST"], scope="write", body=FolderIn, idempotent=True)
def template_folder_create(actor: Actor, body: FolderIn) -> Response:
    """Create a folder of templates."""
    return _create(actor, TEMPLATES, body, 200)


@call(f"{ROOT}/templateFolders/<folder_id>", ["PUT"], scope="write", body=FolderChange)
def template_folder_change(actor: Actor, folder_id: str, body: FolderChange) -> Response:
    """Rename a folder of templates, and with it the templates in it, each of which gets a new version."""
    return _change(actor, TEMPLATES, folder_id, body)


@call(f"{ROOT}/templateFolders/<folder_id>", ["DELETE"], scope="write")
def template_folder_delete(actor: Actor, folder_id: str) -> Response:
    """Delete a folder of templates. Its templates stay, and keep the folder in their names."""
    row = objects.get(actor, TEMPLATES, folder_id, "write", lock=True)
    name = row.name
    objects.delete(actor, row)
    return reply({"message": f"Folder {name} deleted"})


@call(f"{ROOT}/endpointFolders", scope="read")
def endpoint_folders_list(actor: Actor, query: Anything) -> Response:
    """List the folders of endpoints and connections of the project, newest first."""
    return _list(actor, ENDPOINTS, query)


@call(f"{ROOT}/endpointFolders", ["POST"], scope="write", body=FolderIn, status=201, idempotent=True)
def endpoint_folder_create(actor: Actor, body: FolderIn) -> Response:
    """Create a folder of endpoints and connections."""
    return _create(actor, ENDPOINTS, body, 201)


@call(f"{ROOT}/endpointFolders/<folder_id>", ["PUT"], scope="write", body=FolderChange)
def endpoint_folder_change(actor: Actor, folder_id: str, body: FolderChange) -> Response:
    """Rename a folder of endpoints and connections, and with it what is in it."""
    return _change(actor, ENDPOINTS, folder_id, body)


@call(f"{ROOT}/endpointFolders/<folder_id>", ["DELETE"], scope="write")
def endpoint_folder_delete(actor: Actor, folder_id: str) -> Response:
    """Delete a folder of endpoints and connections. What is in it stays, and keeps the folder in its name."""
    row = objects.get(actor, ENDPOINTS, folder_id, "write", lock=True)
    shown = folder_out(row)
    objects.delete(actor, row)
    return reply(shown)
