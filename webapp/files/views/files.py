"""Workspace files: uploaded, listed, downloaded, deleted. What of it only people see is in `workspace_files_pages`."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from flask import Blueprint, Response, flash, g, request, url_for

from webapp import limits
from webapp.access.actors import Actor
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.files import names
from webapp.files.models import WorkspaceFile
from webapp.files.services import file_store, files
from webapp.files.views import multipart, pages
from webapp.files.views.pages import FileQuery, as_dict
from webapp.web.responses import Listed, Output, Raw, asked_range, reply
from webapp.web.routing import route

bp = Blueprint("workspace_files", __name__)

# What a browser shows or saves and never runs; all else goes out as bytes of no kind. With nosniff, no file can be
# a script or a style sheet of a page of ours either.
_INERT: Final = frozenset(
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
_PLAIN: Final = re.compile(r"[^A-Za-z0-9._ ()-]", re.ASCII)
# Should a browser ever show one: nothing in it runs, and it belongs to no origin.
_ASIDE: Final = "sandbox; default-src 'none'"


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


@route(bp, "/workspace/files", scope="read", query=FileQuery, returns=Listed(FileOut))
def index(actor: Actor, query: FileQuery) -> Response:
    """List the files of the project and those shared with the whole workspace, newest first."""
    if g.face == "person":
        return pages.folder(actor, query, as_dict)
    page = files.listing(actor, **query.model_dump())
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
    on_fault=pages.again,
)
def upload(actor: Actor) -> Response:
    """Upload a file to the project, replacing a file with the same name.

    At most 50 MB. Default for `name`: the file's own name. With `shared` it belongs to the whole workspace,
    which requires the editor role in the workspace. If the quota is full, the oldest deleted files are
    removed permanently: see `purged`. Header `If-Match`: replace only the content that has this ETag;
    `If-None-Match: *`: only a new name. Otherwise 412.
    """
    stored: list[WorkspaceFile] = []
    purged: list[file_store.Purged] = []
    for name, sent in multipart.read(request, many=g.face == "person"):
        file, _ = files.upload(
            actor,
            name,
            sent.stream,
            content_type=sent.mimetype,
            check=_expected,
            shared=multipart.is_shared(request),
            purged=purged,
        )
        stored.append(file)
    last = stored[-1]
    folder = last.name.rpartition("/")[0]
    message = (
        f"{names.last_part(last.name)} is stored" if len(stored) == 1 else f"{len(stored)} files are stored"
    )
    headers = {"Location": _where(last), "ETag": files.tag(last)}
    see = url_for("workspace_files.index", folder=folder or None)
    if purged:
        message += f". To make room, {pages.removed(len(purged))} removed for good"
    scripted = "HX-Request" in request.headers  # it shows what it did itself
    gone = [{"id": one.id, "name": one.name, "size": one.size} for one in purged]
    shown = {**as_dict(last), "purged": gone}
    return reply(shown, status=201, see=see, flashed=None if scripted else message, headers=headers)


@route(
    bp,
    "/workspace/files/<path:name>",
    scope="read",
    returns=Raw({}),
    produces=(BYTES, *sorted(_INERT - {"application/json"})),
)
def download(actor: Actor, name: str) -> Response:
    """Download a file by its name or ID, completely or a range of it (RFC 9110, section 14).

    Its ETag is its SHA-256. Slashes in the name may be percent-encoded or not.
    """
    for _ in range(limits.FILE_CACHE_TRIES):
        file = files.find(actor, name)
        try:
            return sent(actor, file)
        except files.Missing:  # it was replaced between the look and the read
            db.session.rollback()
    raise files.missing(name)


def sent(actor: Actor, file: WorkspaceFile) -> Response:
    """Send a file, or the requested range of it."""
    headers, size = _describe(file), file.size
    db.session.expunge(file)
    db.session.remove()
    if request.if_none_match.contains_weak(file.sha256):
        return Response(status=304, headers={"ETag": headers["ETag"]})
    first, last = asked_range(size, headers["ETag"])
    partial = (first, last) != (0, size)
    if partial:
        headers["Content-Range"] = f"bytes {first}-{last - 1}/{size}"
    headers["Content-Length"] = str(last - first)
    pieces: Iterator[bytes] = files.open_file(actor, file, first, last)
    return Response(pieces, 206 if partial else 200, headers=headers)


def _describe(file: WorkspaceFile) -> dict[str, str]:
    digest = base64.b64encode(bytes.fromhex(file.sha256)).decode()
    return {
        "Content-Type": file.content_type if file.content_type in _INERT else BYTES,
        "Content-Disposition": attachment(names.last_part(file.name)),
        "Content-Security-Policy": _ASIDE,
        "Accept-Ranges": "bytes",
        "ETag": files.tag(file),
        "Repr-Digest": f"sha-256=:{digest}:",  # RFC 9530
    }


def attachment(name: str) -> str:
    """Return a Content-Disposition header for a download with any name (RFC 6266): unchanged as specified by RFC 8187,
    and for older clients with `_` for ambiguous characters."""
    return f"attachment; filename=\"{_PLAIN.sub('_', name)}\"; filename*=UTF-8''{quote(name, safe='')}"


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
    file = files.find(actor, name, "write", lock=True)
    _expected(file)
    gone = files.delete(actor, file)
    if g.face == "person":  # the category of the message contains the URL of its Undo button
        back = url_for("workspace_files.restore", workspace_file_id=gone.id)
        flash(f"{names.last_part(gone.name)} deleted", back)
    folder = gone.name.rpartition("/")[0]
    return reply(as_dict(gone), see=url_for("workspace_files.index", folder=folder or None))


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
    back = files.restore(actor, workspace_file_id)
    folder = back.name.rpartition("/")[0]
    see = url_for("workspace_files.index", folder=folder or None)
    return reply(as_dict(back), see=see, headers={"ETag": files.tag(back)})


def _where(file: WorkspaceFile) -> str:
    return url_for("workspace_files.download", name=file.name)


def _expected(file: WorkspaceFile | None) -> None:
    """Raise `version_conflict` if If-Match or If-None-Match require another state (RFC 9110, 13.1): see `upload`."""
    told = {"etag": files.tag(file) if file else None}
    if request.headers.get("If-Match") and (file is None or not request.if_match.contains(file.sha256)):
        raise ApiError("version_conflict", details=told)
    if request.headers.get("If-None-Match") and file and request.if_none_match.contains_weak(file.sha256):
        raise ApiError("version_conflict", "A file of this name is there already.", told)
