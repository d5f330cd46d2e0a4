"""Workspace files: upload, list, download and delete them, and their pages.

The pages show folders, one file with the first lines of its content, and the API calls to copy.
"""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

from flask import Blueprint, Response, current_app, flash, g, make_response, request, url_for
from pydantic import Field

from webapp import limits
from webapp.access.actors import Actor
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.files import multipart, names, services
from webapp.files.models import WorkspaceFile
from webapp.web import snippets
from webapp.web.forms.page_form import Control, FormSpec
from webapp.web.inputs import Input, ListQuery
from webapp.web.responses import ListOf, Output, RawSchema, error_response, reply, requested_range
from webapp.web.routing import route

pages_bp = Blueprint("workspace_files_pages", __name__)


class UploadForm(Input):
    """The upload form of a folder's page. `multipart.read` parses it."""

    folder: str = Field("", max_length=limits.MAX_FILE_NAME_CHARS)
    file: str
    shared: bool = False


UPLOAD: Final = FormSpec(
    UploadForm,
    {
        "folder": Control(
            "Folder (optional)",
            type="text",
            placeholder="none",
            attributes={"spellcheck": "false", "autocomplete": "off"},
        ),
        "file": Control(
            "Files to upload",
            type="file",
            hint="Choose files, or drop them anywhere on this page. At most "
            f"{limits.MAX_UPLOAD_BYTES // 2**20} MB each. Files with the same name are replaced.",
            attributes={"multiple": True},
        ),
        "shared": Control("Share with the whole workspace", attributes={"value": "true"}),
    },
    codes={"payload_too_large": "file", "quota_exceeded": "file", "conflict": "file"},
)
AsDict = Callable[[WorkspaceFile], Mapping[str, Any]]
LIST: Final = "files/list.html"


def folder(actor: Actor, query: Any, as_dict: AsDict, error: ApiError | None = None) -> Response:
    """Return the page of a folder or of a search in it: folders, files, storage used, and the upload form. `error`: of
    an upload."""
    path = services.prefix_of(query.folder).rstrip("/")
    searching = bool((query.q or "").strip())
    page = services.listing(
        actor,
        cursor=query.cursor,
        limit=query.limit,
        q=query.q,
        folder=path,
        sort=query.sort or "name",
        flat=searching,
    )
    inner = [] if searching or query.cursor else services.folders(actor, path)
    used = services.usage(actor.workspace_id)
    may_share = services.can_change_shared(actor)
    sent = multipart.form_values(request) if request.method == "POST" else None
    without = [] if may_share else ["shared"]
    return reply(
        page.as_dict(as_dict),
        template=LIST,
        block="list",
        query=query,
        here=path,
        crumbs=[(item, names.base_name(item)) for item in names.parent_folders(f"{path}/x")] if path else [],
        folders=inner,
        used=used,
        may_share=may_share,
        most=limits.MAX_WORKSPACE_FILES_BYTES,
        most_of_one=limits.MAX_UPLOAD_BYTES,
        snippets=_upload_samples(path),
        form=UPLOAD.render({"folder": path}, sent=sent, error=error, without=without, focus=""),
    )


def folder_page_with_error(actor: Actor, error: ApiError) -> Response:
    """Return the page of the folder with the error of an upload; for a script only the error."""
    if "HX-Request" in request.headers:
        return error_response(error)
    folder_name = (
        multipart.form_values(request).get("folder", "")[: limits.MAX_FILE_NAME_CHARS].replace("\0", "")
    )
    return make_response(folder(actor, FileQuery(folder=folder_name or None), as_dict, error))


@route(pages_bp, "/workspace/file/<workspace_file_id>", scope="read", hidden=True, allows_api_keys=False)
def show(actor: Actor, workspace_file_id: str) -> Response:
    """Return the page of a file, with a preview of its content."""
    if not names.is_id(workspace_file_id):
        raise services.not_found_error(workspace_file_id)
    file = services.find(actor, workspace_file_id)
    data = as_dict(file)
    parent = file.name.rpartition("/")[0]
    return reply(
        data,
        template="files/show.html",
        last=names.base_name(file.name),
        crumbs=[(item, names.base_name(item)) for item in names.parent_folders(file.name)],
        here=parent,
        may_change=actor.can("write", file.team_id)
        and (bool(file.project_id) or services.can_change_shared(actor)),
        head=services.preview(file),
        snippets=_download_samples(data),
    )


def removed_text(count: int) -> str:
    """Return the number of permanently removed files as text."""
    return "1 deleted file was" if count == 1 else f"{count:,} deleted files were"


def _upload_samples(path: str) -> list[tuple[str, str]]:
    """Return code samples for uploading a file to a folder: (language, text)."""
    url = f"{snippets.origin()}/workspace/files"
    name = f"{path}/customers.csv" if path else "customers.csv"
    curl = snippets.curl("POST", url, {}).partition(" \\\n  -H 'Content-Type")[0]
    python = snippets.python("POST", url, then="print(answer.json()['id'])")
    sent = f'"{url}", data={{"name": {name!r}}}, files={{"file": open("customers.csv", "rb")}}'
    return [
        ("curl", f"{curl} \\\n  -F {shlex.quote('name=' + name)} -F file=@customers.csv"),
        ("Python", python.replace(f'"{url}"', sent)),
    ]


def _download_samples(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return code samples for downloading a file: (language, text)."""
    url = f"{snippets.origin()}/workspace/files/{quote(data['name'], safe='/')}"
    last = names.base_name(data["name"])
    save = f'open({last!r}, "wb").write(answer.content)'
    more = f"-o {shlex.quote(last)}"
    in_run = (
        "import os, pathlib\n\n"
        f'path = pathlib.Path(os.environ["SERVICE_WORKSPACE_UPLOADS"], {data["name"]!r})\n'
        "data = path.read_bytes()"
    )
    found = [
        ("curl", snippets.curl("GET", url, more=more)),
        ("Python", snippets.python("GET", url, then=save)),
    ]
    return (
        found if data["name"].startswith(f"{names.OUTPUTS_FOLDER}/") else [*found, ("In a scenario", in_run)]
    )


class FileQuery(ListQuery):
    """Which files. `folder`: those under it, at any depth; `q`: those whose names hold a text; `run_id`: those of a
    run, which are all files outside of `outputs/` (its uploads) and its own outputs.

    `sort`: `name`, `size` or `updated`, backwards with `-`; newest first without.
    """

    folder: Annotated[str, Field(max_length=limits.MAX_FILE_NAME_CHARS)] | None = None
    sort: Literal["name", "-name", "size", "-size", "updated", "-updated"] | None = None
    run_id: str | None = None


def as_dict(file: WorkspaceFile) -> dict[str, Any]:
    """Return a file as JSON, with the full URL for its download."""
    data = services.as_json(file)
    origin = current_app.config["SETTINGS"].public_url or request.host_url.rstrip("/")
    data["download_url"] = origin + data["download_url"]
    return data


bp = Blueprint("workspace_files", __name__)

# --- Routes -------------------------------------------------------------------------------------------------

# Types that a browser shows or saves and never runs; all others are sent as application/octet-stream. With nosniff,
# no file can be used as a script or style sheet of a Rowsmith page either.
_INLINE_TYPES: Final = frozenset(
    {
        "text/csv",
        "text/plain",
        "text/markdown",
        "application/json",
        "application/x-ndjson",
        "application/zip",
        "application/gzip",
        "application/vnd.apache.parquet",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "application/vnd.ms-excel",
        "image/png",
        "image/jpeg",
        "image/gif",
        "image/webp",
    }
)
BYTES: Final = "application/octet-stream"
_UNSAFE_IN_HEADER: Final = re.compile(r"[^A-Za-z0-9._ ()-]", re.ASCII)
# If a browser shows a file anyway, nothing in it runs, and it has no origin.
_SANDBOX_POLICY: Final = "sandbox; default-src 'none'"


class FileOut(Output):
    """A workspace file. Without a `project_id` it is shared with the whole workspace."""

    id: str
    name: str
    size: int
    content_type: str
    sha256: str
    run_id: str | None
    project_id: str | None
    team_id: str | None
    download_url: str
    created_by: str | None
    created_at: str
    updated_at: str
    deleted_at: str | None


class PurgedOut(Output):
    """A deleted file that was removed permanently because an upload needed its space."""

    id: str
    name: str
    size: int


class UploadedOut(FileOut):
    """An uploaded file. `purged` are deleted files that were permanently removed to free space for it."""

    purged: list[PurgedOut]


@route(bp, "/workspace/files", scope="read", query=FileQuery, returns=ListOf(FileOut))
def index(actor: Actor, query: FileQuery) -> Response:
    """List the files of the project and those shared with the whole workspace, newest first."""
    if g.face == "person":
        return folder(actor, query, as_dict)
    page = services.listing(actor, **query.model_dump())
    return reply(page.as_dict(as_dict))


@route(
    bp,
    "/workspace/files",
    ["POST"],
    scope="write",
    returns=UploadedOut,
    status=201,
    idempotent=True,
    max_body=limits.MAX_UPLOAD_BYTES + limits.UPLOAD_FORM_BYTES,
    multipart=multipart.SCHEMA,
    errors=("conflict", "version_conflict", "quota_exceeded"),
    on_fault=folder_page_with_error,
)
def upload(actor: Actor) -> Response:
    """Upload a file to the project, replacing a file with the same name.

    At most 50 MB. Default for `name`: the file's own name. With `shared` it belongs to the whole workspace,
    which requires the editor role in the workspace. If the quota is full, the oldest deleted files are
    removed permanently: see `purged`. Header `If-Match`: replace only the content that has this ETag;
    `If-None-Match: *`: only a new name. Otherwise 412.
    """
    stored: list[WorkspaceFile] = []
    purged: list[services.PurgedFile] = []
    for name, sent in multipart.read(request, many=g.face == "person"):
        file, _ = services.upload(
            actor,
            name,
            sent.stream,
            content_type=sent.mimetype,
            check=_check_preconditions,
            shared=multipart.is_shared(request),
            purged=purged,
        )
        stored.append(file)
    last = stored[-1]
    folder = last.name.rpartition("/")[0]
    message = (
        f"{names.base_name(last.name)} is stored" if len(stored) == 1 else f"{len(stored)} files are stored"
    )
    headers = {"Location": url_for("workspace_files.download", name=last.name), "ETag": services.etag(last)}
    see = url_for("workspace_files.index", folder=folder or None)
    if purged:
        message += f". To make room, {removed_text(len(purged))} removed for good"
    scripted = "HX-Request" in request.headers  # the script shows the result itself
    purged_items = [{"id": item.id, "name": item.name, "size": item.size} for item in purged]
    data = {**as_dict(last), "purged": purged_items}
    return reply(
        data, status=201, redirect_to=see, flash_message=None if scripted else message, headers=headers
    )


@route(
    bp,
    "/workspace/files/<path:name>",
    scope="read",
    returns=RawSchema({}),
    produces=(BYTES, *sorted(_INLINE_TYPES - {"application/json"})),
)
def download(actor: Actor, name: str) -> Response:
    """Download a file by its name or ID, completely or a range of it (RFC 9110, section 14).

    Its ETag is its SHA-256. Slashes in the name may be percent-encoded or not.
    """
    for _ in range(limits.FILE_CACHE_ATTEMPTS):
        file = services.find(actor, name)
        try:
            return send_file_range(actor, file)
        except services.MissingContentError:  # it was replaced between the lookup and the read
            db.session.rollback()
    raise services.not_found_error(name)


def send_file_range(actor: Actor, file: WorkspaceFile) -> Response:
    """Send a file, or the requested range of it."""
    digest = base64.b64encode(bytes.fromhex(file.sha256)).decode()
    headers = {
        "Content-Type": file.content_type if file.content_type in _INLINE_TYPES else BYTES,
        "Content-Disposition": content_disposition(names.base_name(file.name)),
        "Content-Security-Policy": _SANDBOX_POLICY,
        "Accept-Ranges": "bytes",
        "ETag": services.etag(file),
        "Repr-Digest": f"sha-256=:{digest}:",  # RFC 9530
    }
    size = file.size
    db.session.expunge(file)
    db.session.remove()
    if request.if_none_match.contains_weak(file.sha256):
        return Response(status=304, headers={"ETag": headers["ETag"]})
    first, last = requested_range(size, headers["ETag"])
    partial = (first, last) != (0, size)
    if partial:
        headers["Content-Range"] = f"bytes {first}-{last - 1}/{size}"
    headers["Content-Length"] = str(last - first)
    pieces: Iterator[bytes] = services.open_file(actor, file, first, last)
    return Response(pieces, 206 if partial else 200, headers=headers)


def content_disposition(name: str) -> str:
    """Return a Content-Disposition header for a download with any name (RFC 6266): unchanged as specified by RFC 8187,
    and for older clients with `_` for ambiguous characters."""
    return f"attachment; filename=\"{_UNSAFE_IN_HEADER.sub('_', name)}\"; filename*=UTF-8''{quote(name, safe='')}"


@route(
    bp,
    "/workspace/files/<path:name>",
    ["DELETE"],
    scope="write",
    returns=FileOut,
    errors=("version_conflict",),
)
def delete(actor: Actor, name: str) -> Response:
    """Delete a file by its name or ID. It can be restored for 30 days."""
    file = services.find(actor, name, "write", lock=True)
    _check_preconditions(file)
    deleted = services.delete(actor, file)
    if g.face == "person":  # the category of the message contains the URL of its Undo button
        restore_url = url_for("workspace_files.restore", workspace_file_id=deleted.id)
        flash(f"{names.base_name(deleted.name)} deleted", restore_url)
    folder = deleted.name.rpartition("/")[0]
    return reply(as_dict(deleted), redirect_to=url_for("workspace_files.index", folder=folder or None))


@route(
    bp,
    "/workspace/files/<workspace_file_id>/restore",
    ["POST"],
    scope="write",
    returns=FileOut,
    errors=("conflict", "quota_exceeded"),
)
def restore(actor: Actor, workspace_file_id: str) -> Response:
    """Restore a file by its ID. If another file has its name by now, the request fails with a conflict."""
    file = services.restore(actor, workspace_file_id)
    folder = file.name.rpartition("/")[0]
    see = url_for("workspace_files.index", folder=folder or None)
    return reply(as_dict(file), redirect_to=see, headers={"ETag": services.etag(file)})


def _check_preconditions(file: WorkspaceFile | None) -> None:
    """Raise `version_conflict` if If-Match or If-None-Match require another state (RFC 9110, 13.1): see `upload`."""
    details = {"etag": services.etag(file) if file else None}
    if request.headers.get("If-Match") and (file is None or not request.if_match.contains(file.sha256)):
        raise ApiError("version_conflict", details=details)
    if request.headers.get("If-None-Match") and file and request.if_none_match.contains_weak(file.sha256):
        raise ApiError("version_conflict", "A file with this name already exists.", details)
