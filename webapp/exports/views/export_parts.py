"""Routes of exports in parts: the manifest, the file of a part, and retries of missing parts."""

from __future__ import annotations

from typing import Annotated, Any

from flask import Blueprint, Response, url_for
from pydantic import Field

from webapp import limits
from webapp.access.actors import Actor
from webapp.errors import ApiError
from webapp.exports.models import Export
from webapp.exports.services import export_parts, exports
from webapp.exports.views import exports as generation_exports
from webapp.exports.views.exports import FILE, ExportOut, as_dict, describe, sent, stored, with_addresses
from webapp.web.inputs import Query
from webapp.web.responses import Output, Raw, reply
from webapp.web.routing import route

bp = Blueprint("export_parts", __name__)


class PartOut(Output):
    """One part: `rows` rows from row `offset` of the template on, and its file once it exists."""

    number: int
    offset: int
    rows: int
    status: str
    attempt: int
    rows_done: int
    bytes: int | None
    sha256: str | None
    download_url: str | None
    error: dict[str, Any] | None


class ManifestOut(Output):
    """The contents of an export: its rows and parts. An export without parts has one part.

    `concatenates`: the concatenated parts are the whole file, byte for byte.
    """

    export_id: str
    status: str
    template_id: str | None
    template_version: int | None
    dataset_id: str | None
    dataset_version: int | None
    seed: str
    now: str | None
    engine: int
    vocabulary: str | None
    locale: str | None
    format: str
    file_name: str
    concatenates: bool
    offset: int
    rows: int
    part_rows: int | None
    bytes: int | None
    sha256: str | None
    download_url: str | None
    parts: list[PartOut]


@route(bp, "/exports/<export_id>/manifest", scope="read", returns=ManifestOut)
def manifest(actor: Actor, export_id: str) -> Response:
    """Get the manifest of an export: its rows, and the file and checksum of each part."""
    data = with_addresses(export_parts.manifest(exports.get(actor, export_id)))
    data["parts"] = [with_addresses(part) for part in data["parts"]]
    return reply(data, tag=True)


class PageQuery(Query):
    """The first part of a page."""

    first: Annotated[int, Field(ge=1, le=limits.MAX_PARTS)] = 1


@route(bp, "/exports/<export_id>/parts", scope="read", query=PageQuery, hidden=True, programs=False)
def page(actor: Actor, export_id: str, query: PageQuery) -> Response:
    """Return a page of an export's parts."""
    export = exports.get(actor, export_id)
    first = min(query.first, export.parts or 0)
    if not first:
        raise ApiError("not_found", "This export has no parts.", {"id": export.id})
    parts = generation_exports.parts(export, first)
    return reply(as_dict(export), template="exports/parts.html", block="parts", parts=parts)


@route(bp, "/exports/<export_id>/parts/<int:number>", scope="read", returns=Raw({}), produces=FILE)
def download(actor: Actor, export_id: str, number: int) -> Response:
    """Download the file of one part, completely or a range of it. Its ETag is its SHA-256.

    The finished parts of a failed or cancelled export are also available.
    """
    export = exports.get(actor, export_id)
    exports.check_kept(export)
    if export.parts is None:
        return _whole(export, number)
    part = export_parts.one(export, number)
    if part is None or part.status != "completed":
        details = {"id": export.id, "part": number, "status": part.status if part else None}
        text = "This part has no file yet." if part else f"This export has {export.parts:,} parts."
        raise ApiError("not_found", text, details)
    file, sha256 = stored(part)
    return sent(describe(export, part), [file], sha256, export_id)


def _whole(export: Export, number: int) -> Response:
    """Return the only part of an export that is a single file."""
    if number != 1 or export.status != "completed":
        text = "This export has no file." if number == 1 else "This export has one part."
        raise ApiError("not_found", text, {"id": export.id, "part": number, "status": export.status})
    file, sha256 = stored(export)
    return sent(describe(export), [file], sha256, export.id)


@route(
    bp,
    "/exports/<export_id>/retry",
    ["POST"],
    scope="generate",
    returns=ExportOut,
    status=201,
    idempotent=True,
    errors=("conflict", "row_limit_exceeded", "quota_exceeded"),
)
def retry(actor: Actor, export_id: str) -> Response:
    """Create the missing parts of an export that failed or was cancelled.

    This creates a new export that reuses the finished parts. Only the rows of the other parts count toward
    the quota.
    """
    export = exports.retry(actor, export_id)
    where = url_for("exports.show", export_id=export.id)
    return reply(as_dict(export), status=201, see=where, headers={"Location": where})
