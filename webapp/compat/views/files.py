"""Files of scenarios, and key maps.

Files are sent as the clients do: base64 in JSON, multipart, by id, by key, by a signed URL. Key maps map old keys of a
source system to the new keys of a target system.

The files are the workspace files of the scenario's project: those under `outputs/` are in the folder "outputs", all
others in "uploads".
"""

from __future__ import annotations

import base64
import binascii
import io
import re
from pathlib import Path
from typing import IO, Annotated, Any, Final

from flask import Response, current_app, request
from pydantic import BeforeValidator, Field
from werkzeug.datastructures import FileStorage
from werkzeug.formparser import MultiPartParser

from webapp import clock, limits
from webapp.access import actors, tenancy
from webapp.access.actors import Actor
from webapp.compat import services
from webapp.compat.views.routing import (
    ROOT,
    CamelCaseInput,
    PassThroughInput,
    ProjectQuery,
    actor_in_project,
    call,
    camelize_keys,
    list_all,
)
from webapp.errors import ApiError, Fault, did_you_mean, validation_error
from webapp.extensions import db
from webapp.files import names
from webapp.files import services as files
from webapp.files import views as files_views
from webapp.files.models import WorkspaceFile
from webapp.files.multipart import Spool
from webapp.scenarios.models import Scenario
from webapp.scenarios.services import scenarios
from webapp.security import sealing
from webapp.web.responses import reply

FOLDERS: Final = ("uploads", "outputs")
SCENARIO: Final = f"{ROOT}/scenarios/<scenario_id>"
_KEY: Final = "rowsmith.compat_files"
_BOUNDARY: Final = re.compile(rb"--([0-9A-Za-z'()+_,./:=? -]{1,70})\r\n")  # RFC 2046, 5.1.1
# Prefix of the hosted service's storage keys, which programs may contain.
_HOSTED_KEY: Final = re.compile(r"scenarios/(?:[^/]+/)*?workspace/(?P<name>.+)")


class FolderQuery(ProjectQuery):
    """Which folder; both without."""

    folder: str | None = None


class FileKeyQuery(ProjectQuery):
    """Which file, by its name with its folders."""

    key: Annotated[str, Field(min_length=1)]


def _used_bytes(workspace_id: str) -> int:
    """Return the size in bytes of a workspace's files, sets and key maps."""
    used = files.usage(workspace_id)
    return used.bytes + used.compat_bytes


def file_out(file: WorkspaceFile, scenario_id: str) -> dict[str, Any]:
    """Return a file in the compatible format. `scenario_id` is empty if the call does not name a scenario."""
    data = files.as_json(file)
    folder = "outputs" if file.name.startswith(f"{names.OUTPUTS_FOLDER}/") else "uploads"
    name = file.name.removeprefix(f"{names.OUTPUTS_FOLDER}/")
    # A URL of the file that needs no key for a while, with the host that the request used.
    until = int(clock.epoch()) + limits.COMPAT_LINK_SECONDS
    token = sealing.sign(_signer(), [file.workspace_id, file.id, until])
    return {
        "id": file.id,
        "scenarioId": scenario_id,
        "filename": name,
        "name": name,
        "key": file.name,
        "filePath": file.name,
        "folder": folder,
        "size": file.size,
        "mimeType": file.content_type,
        "presignedUrl": f"{request.host_url.rstrip('/')}{ROOT}/files/{token}",
        "createdBy": file.created_by,
        "createdAt": data["created_at"],
        "updatedAt": data["updated_at"],
    }


# --- Addresses that need no key ---------------------------------------------------------------------------------


def _signer() -> bytes:
    found: bytes | None = current_app.extensions.get(_KEY)
    if found is None:
        found = current_app.extensions[_KEY] = sealing.derive(str(current_app.secret_key), "compat_files")
    return found


@call(f"{ROOT}/files/<token>", scope="public")
def file_signed(token: str) -> Response:
    """Send a file by its signed URL. The signature is the credential, for ten minutes."""
    signed = sealing.unsign(_signer(), token) if len(token) < limits.HTTP_URL_CHARS else None
    if not isinstance(signed, list) or len(signed) != 3 or signed[2] < clock.epoch():
        raise ApiError("not_found", "This link has expired or is invalid. Request the file again.")
    workspace_id, file_id, _ = signed
    actor = actors.system_actor(workspace_id)
    try:
        return files_views.send_file_range(actor, files.find(actor, file_id))
    except files.MissingContentError:  # it was replaced between the look and the read
        db.session.rollback()
        raise files.not_found_error(file_id) from None


# --- Reading ------------------------------------------------------------------------------------------------


@call(f"{ROOT}/scenarios", scope="read")
def scenarios_list(actor: Actor, query: ProjectQuery) -> Response:
    """List the scenarios of the project."""
    project_actor = actor_in_project(actor, "read", query.projectId)
    used = _used_bytes(project_actor.workspace_id)
    return reply([_scenario_out(item, used) for item in list_all(scenarios.listing, project_actor)])


@call(SCENARIO, scope="read")
def scenario_show(actor: Actor, scenario_id: str) -> Response:
    """Get a scenario."""
    used = _used_bytes(actor.workspace_id)
    return reply(_scenario_out(scenarios.show(scenarios.get(actor, scenario_id)), used), send_etag=True)


def _scenario_out(scenario: dict[str, Any], used: int) -> dict[str, Any]:
    """Return a scenario in the compatible format. Its code is in `code`; there are no script URLs and no diagrams."""
    return {
        **camelize_keys(scenario),
        "presignedUrl": None,
        "requirementsUrl": None,
        "storageUsed": used,
        "environmentVariables": scenario["env"],
        "diagram": None,
        "diagramBusiness": None,
        "diagramStatus": "none",
        "diagramUpdatedAt": None,
        "diagramError": None,
        "diagramSourceHash": None,
    }


@call(f"{SCENARIO}/files", scope="read", query=FolderQuery)
def files_list(actor: Actor, scenario_id: str, query: FolderQuery) -> Response:
    """List the files that a scenario reads and writes, with the used storage."""
    project_actor = _actor_of_scenario(actor, scenario_id)
    if query.folder is not None:
        _check_folder(query.folder)
    found = [file_out(file, scenario_id) for file in list_all(files.listing, project_actor)]
    used = _used_bytes(actor.workspace_id)
    return reply(
        {
            "files": [item for item in found if query.folder in (None, item["folder"])],
            "storageUsed": used,
            "storageLimit": limits.MAX_WORKSPACE_FILES_BYTES,
        }
    )


@call(f"{SCENARIO}/storage", scope="read")
def storage(actor: Actor, scenario_id: str) -> Response:
    """Usage of the file quota."""
    scenarios.get(actor, scenario_id)
    used, limit = _used_bytes(actor.workspace_id), limits.MAX_WORKSPACE_FILES_BYTES
    return reply(
        {"storageUsed": used, "storageLimit": limit, "storageUsedPercent": round(100 * used / limit)}
    )


@call(f"{SCENARIO}/files/<file_id>", scope="read")
def file_show(actor: Actor, scenario_id: str, file_id: str) -> Response:
    """Read what is known of a file, with an address that leads to it."""
    return reply(file_out(files.find(_actor_of_scenario(actor, scenario_id), file_id), scenario_id))


@call(f"{SCENARIO}/files/<file_id>", ["DELETE"], scope="write")
def file_delete(actor: Actor, scenario_id: str, file_id: str) -> Response:
    """Delete a file."""
    project_actor = _actor_of_scenario(actor, scenario_id, "write")
    files.delete(project_actor, files.find(project_actor, file_id, "write", lock=True))
    return reply({"success": True})


@call(f"{ROOT}/workspace-files/by-key", scope="read", query=FileKeyQuery)
def file_by_key(actor: Actor, query: FileKeyQuery) -> Response:
    """Read what is known of a file, by its name with its folders."""
    hosted_key = _HOSTED_KEY.fullmatch(query.key)
    try:
        file = files.find(actor, query.key)
    except ApiError as error:
        tried = (hosted_key["name"] if hosted_key else query.key).removeprefix("uploads/")
        if error.code != "not_found" or tried == query.key:
            raise
        file = files.find(actor, tried)
    return reply(file_out(file, ""))


# --- Writing ------------------------------------------------------------------------------------------------


def _actor_of_scenario(actor: Actor, scenario_id: str, scope: str = "read") -> Actor:
    """Return the actor in the project of a scenario, whose files its runs see. Errors: not_found, forbidden."""
    scenario = tenancy.get(actor, Scenario, scenario_id, scope)  # its files change, and not the scenario
    return actor_in_project(actor, scope, scenario.project_id)


def _check_folder(text: Any) -> str:
    if text not in FOLDERS:
        hint = did_you_mean(str(text)[:50], FOLDERS) or "The folders are uploads and outputs."
        raise validation_error([Fault("folder", "not_allowed", "There is no such folder.", hint)])
    return str(text)


def _path_in_folder(folder: str, name: str) -> str:
    return f"{names.OUTPUTS_FOLDER}/{name}" if folder == "outputs" else name


@call(f"{ROOT}/scenario-files", ["POST"], scope="write", body=PassThroughInput, idempotent=True)
def file_create(actor: Actor, body: PassThroughInput) -> Response:
    """Create a file from base64, replacing a file with the same name."""
    values = body.native_values()
    scenario_id = values.get("scenario_id")
    if not isinstance(scenario_id, str):
        raise validation_error([Fault("scenarioId", "missing", "This field is required.")])
    project_actor = _actor_of_scenario(actor, scenario_id, "write")
    name, content, kind = values.get("name"), values.get("content"), values.get("mime_type")
    faults = [
        Fault(path, "missing" if value is None else "wrong_type", "This value must be a text.")
        for path, value in (("name", name), ("content", content))
        if not isinstance(value, str)
    ]
    raw = b""
    if isinstance(content, str):
        try:
            raw = base64.b64decode(content, validate=True)
        except (binascii.Error, ValueError):
            faults.append(Fault("content", "wrong_form", "This value is not valid base64."))
    if faults:
        raise validation_error(faults)
    folder = _check_folder(values.get("folder", "uploads"))
    file, _ = files.upload(
        project_actor,
        _path_in_folder(folder, str(name)),
        io.BytesIO(raw),
        content_type=kind if isinstance(kind, str) else None,
    )
    return reply(file_out(file, scenario_id))


@call(
    f"{SCENARIO}/files/upload", ["POST"], scope="write", idempotent=True,
    max_body=limits.MAX_UPLOAD_BYTES + limits.UPLOAD_FORM_BYTES,
)  # fmt: skip
def file_upload(actor: Actor, scenario_id: str) -> Response:
    """Upload a multipart file regardless of its content type, replacing one with the same name."""
    project_actor = _actor_of_scenario(actor, scenario_id, "write")
    form, upload = _parse_form()
    try:
        folder = _check_folder(form.get("folder", "uploads"))
        name = form.get("name") or (upload.filename or "").replace("\\", "/").rpartition("/")[2]
        file, _ = files.upload(
            project_actor, _path_in_folder(folder, name), upload.stream, content_type=upload.mimetype or None
        )
    finally:
        upload.close()
    return reply({"success": True, "file": file_out(file, scenario_id)})


class _PeekableStream(io.RawIOBase):
    """A stream whose first bytes can be inspected before reading."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if self._head:
            head, self._head = self._head, b""
            return head
        return self._rest.read(size)


def _parse_form() -> tuple[dict[str, str], FileStorage]:
    """Parse the parts of the body. The clients send the content type `application/json` without a boundary, so the
    boundary is read from the first line of the body.

    Errors: unsupported_media_type, invalid_request, payload_too_large, validation_error.
    """
    db.session.rollback()  # a slow sender must not hold a transaction open
    stream: Any = request.stream
    boundary = request.mimetype_params.get("boundary", "").encode("latin-1", "replace")
    if not boundary:
        head = stream.readline(80)
        found = _BOUNDARY.fullmatch(head)
        if found is None:
            text = "Send the file as multipart, with the parts `file` and `folder`."
            raise ApiError("unsupported_media_type", text, {"content_type": request.mimetype})
        boundary, stream = found[1], _PeekableStream(head, stream)
    spools: list[Spool] = []
    folder = Path(current_app.config["SETTINGS"].data_dir) / "spool"

    def spooled(*_: Any, **__: Any) -> Any:
        if spools:
            raise ApiError("invalid_request", "Each request can store only one file.")
        spools.append(Spool(folder))
        return spools[-1]

    parser = MultiPartParser(stream_factory=spooled, max_form_memory_size=limits.UPLOAD_FORM_BYTES)
    try:
        form, files = parser.parse(stream, boundary, request.content_length)
        uploads = files.getlist("file")
        if len(uploads) != 1:
            raise validation_error([Fault("file", "missing", "Send one file in the part `file`.")])
        return {key: form[key] for key in form}, uploads[0]
    except BaseException as error:
        for spool in spools:
            spool.close()
        if isinstance(error, ValueError):
            text = "The body is not valid multipart data."
            raise ApiError("invalid_request", text) from None
        raise


# --- Key maps -----------------------------------------------------------------------------------------------

MAP: Final = f"{ROOT}/keymaps/<path:map_name>"

MapName = Annotated[str, Field(min_length=1, max_length=limits.KEY_MAP_NAME_CHARS)]
Key = Annotated[str, Field(min_length=1, max_length=limits.KEY_MAP_KEY_CHARS)]


class Entry(CamelCaseInput):
    """A key of the source system and the one that it became."""

    read_only = frozenset()

    old_key: Key
    new_key: Key


class _KeyMapInput(CamelCaseInput):
    map_name: MapName
    object: MapName
    project_id: str | None = None
    team_id: str | None = None


class EntriesIn(_KeyMapInput):
    """Entries to write. Existing entries get the new key."""

    entries: Annotated[list[Entry], Field(min_length=1, max_length=limits.KEY_MAP_BATCH)]
    run_id: Annotated[str, Field(max_length=limits.KEY_MAP_NAME_CHARS)] | None = None


class LookupIn(_KeyMapInput):
    """Keys to translate."""

    old_keys: Annotated[list[Key], Field(min_length=1, max_length=limits.KEY_MAP_BATCH)]


class ObjectQuery(ProjectQuery):
    """The entries of one object; of all without."""

    object: str | None = None


def _cap_page_size(value: Any) -> Any:
    """Return a page size as the hosted service reads it: a larger one is its largest."""
    text = str(value)
    return min(int(text), limits.KEY_MAP_PAGE) if text.isdecimal() and len(text) < 10 else value


class PageQuery(ObjectQuery):
    """Which page of the entries, from 1."""

    page: Annotated[int, Field(ge=1, le=limits.MAX_KEY_MAP_ENTRIES)] = 1
    pageSize: Annotated[int, BeforeValidator(_cap_page_size), Field(ge=1)] = 100  # noqa: N815 - the wire's own name


@call(f"{ROOT}/keymaps", scope="read")
def maps_list(actor: Actor, query: ProjectQuery) -> Response:
    """List the key maps of the project: a row for each map and object."""
    project_actor = actor_in_project(actor, "read", query.projectId, query.teamId)
    return reply(
        [
            {
                "mapName": row.map_name,
                "object": row.object_name,
                "entryCount": row.entries,
                "updatedAt": clock.to_text(row.updated_at),
            }
            for row in services.list_maps(project_actor)
        ]
    )


@call(f"{ROOT}/keymaps/entries", ["POST"], scope="write", body=EntriesIn, idempotent=True)
def entries_put(actor: Actor, body: EntriesIn) -> Response:
    """Write entries of a key map. Of an old key that is sent twice the last new key counts."""
    project_actor = actor_in_project(actor, "write", body.project_id, body.team_id)
    keys = {entry.old_key: entry.new_key for entry in body.entries}
    count = services.put_entries(project_actor, body.map_name, body.object, keys, body.run_id)
    return reply({"mapName": body.map_name, "object": body.object, "upserted": count})


@call(f"{ROOT}/keymaps/lookup", ["POST"], scope="read", body=LookupIn, reads=True)
def entries_lookup(actor: Actor, body: LookupIn) -> Response:
    """Translate old keys, and name those that have no new key."""
    project_actor = actor_in_project(actor, "read", body.project_id, body.team_id)
    found = services.lookup(project_actor, body.map_name, body.object, body.old_keys)
    old_keys = dict.fromkeys(body.old_keys)
    return reply(
        {
            "mapName": body.map_name,
            "object": body.object,
            "mappings": {key: found[key] for key in old_keys if key in found},
            "missing": [key for key in old_keys if key not in found],
        }
    )


@call(f"{MAP}/entries", scope="read", query=PageQuery)
def entries_list(actor: Actor, map_name: str, query: PageQuery) -> Response:
    """A page of a key map's entries, in the order of object and old key."""
    project_actor = actor_in_project(actor, "read", query.projectId, query.teamId)
    start = (query.page - 1) * query.pageSize
    found, total = services.list_entries(
        project_actor, _check_map_name(map_name), query.object or None, start, query.pageSize
    )
    return reply(
        {
            "mapName": map_name,
            "page": query.page,
            "pageSize": query.pageSize,
            "total": total,
            "entries": [
                {
                    "object": entry.object_name,
                    "oldKey": entry.old_key,
                    "newKey": entry.new_key,
                    "runId": entry.run_id,
                    "updatedAt": clock.to_text(entry.updated_at),
                }
                for entry in found
            ],
        }
    )


@call(MAP, ["DELETE"], scope="write", query=ObjectQuery)
def map_delete(actor: Actor, map_name: str, query: ObjectQuery) -> Response:
    """Delete a key map, or its entries of one object."""
    project_actor = actor_in_project(actor, "write", query.projectId, query.teamId)
    deleted = services.delete_entries(project_actor, _check_map_name(map_name), query.object or None)
    return reply({"message": f"Key map {map_name} deleted", "deleted": deleted})


def _check_map_name(text: str) -> str:
    if "\0" in text:  # PostgreSQL would reject it
        raise ApiError("not_found", "There is no such key map.")
    return text
