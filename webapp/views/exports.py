"""Exports: files that a worker makes."""

from __future__ import annotations

import base64
from typing import Any

from flask import Blueprint, Response, current_app, request, url_for

from webapp import storage
from webapp.engine.formats import FORMATS
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.models import Export
from webapp.services import dataset_rows, exports, rows, tenancy
from webapp.services.actors import Actor
from webapp.services.pins import Pins
from webapp.services.row_requests import GenerateInput
from webapp.views import events, exports_shown
from webapp.views.generate import format_by_accept
from webapp.views.inputs import ListQuery
from webapp.views.outputs import Listed, Output, Raw
from webapp.views.reply import matching, reply
from webapp.views.routes import route

bp = Blueprint("exports", __name__)

_FILE = (*(kind.media_type for name, kind in FORMATS.items() if name != "json"), "application/zip")


class ExportQuery(ListQuery):
    """Which exports. `q` searches file names."""

    template_id: str | None = None
    dataset_id: str | None = None
    status: str | None = None


class ReferencePin(Output):
    """A template that relations reach: which version of it, and how many rows they reckon with."""

    template_id: str
    version: int
    rows: int


class TablePins(Output):
    """What one table of a dataset's file was made with."""

    name: str
    template_id: str
    template_version: int
    rows: int
    now: str
    vocabulary: str
    locale: str | None
    references: list[ReferencePin]


class ExportPins(Output):
    """What a file was made with. The same pins and the same request give the same bytes.

    `now` is null for a dataset whose tables hang on their own anchors; `vocabulary` where they differ in it.
    """

    engine: int
    seed: str
    now: str | None
    vocabulary: str | None
    template_version: int | None
    dataset_version: int | None
    locale: str | None
    references: list[ReferencePin]
    tables: list[TablePins]


class ExportOut(Output):
    """An export: one file, made or to be made."""

    id: str
    status: str
    template_id: str | None
    template_version: int | None
    dataset_id: str | None
    dataset_version: int | None
    format: str
    count: int
    offset: int
    rows_done: int
    bytes: int | None
    sha256: str | None
    file_name: str | None
    download_url: str | None
    attempt: int
    seed: str
    now: str | None
    pins: ExportPins
    request: dict[str, Any]
    error: dict[str, Any] | None
    project_id: str
    team_id: str
    created_by: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None
    cancel_requested_at: str | None


def as_dict(export: Export) -> dict[str, Any]:
    """An export as JSON, its download address whole."""
    data = exports.as_json(export)
    if data["download_url"]:
        origin = current_app.config["SETTINGS"].public_url or request.host_url.rstrip("/")
        data["download_url"] = origin + data["download_url"]
    return data


@route(
    bp,
    "/templates/<template_id>/exports",
    ["POST"],
    scope="generate",
    body=GenerateInput,
    returns=ExportOut,
    status=201,
    idempotent=True,
    errors=("row_limit_exceeded", "quota_exceeded"),
)
def create(actor: Actor, template_id: str, body: GenerateInput) -> Response:
    """Have a file of rows made by a worker."""
    export = exports.create(actor, template_id, body, format_by_accept())
    where = url_for("exports.show", export_id=export.id)
    return reply(as_dict(export), status=201, see=where, headers={"Location": where})


@route(bp, "/exports", scope="read", query=ExportQuery, returns=Listed(ExportOut))
def index(actor: Actor, query: ExportQuery) -> Response:
    """List the exports of the project, newest first."""
    page = exports.listing(actor, **query.model_dump())
    return reply(page.as_dict(as_dict), template="exports/list.html", block="list", query=query)


@route(bp, "/exports/<export_id>", scope="read", returns=ExportOut)
def show(actor: Actor, export_id: str) -> Response:
    """Read an export."""
    data = as_dict(exports.get(actor, export_id))
    return reply(data, template="exports/show.html", block="work", tag=True, **exports_shown.context(data))


@route(
    bp,
    "/exports/<export_id>",
    ["DELETE"],
    scope="generate",
    returns=ExportOut,
    errors=("run_finished", "version_conflict"),
)
def cancel(actor: Actor, export_id: str) -> Response:
    """Cancel an export that has not ended."""
    export = exports.get(actor, export_id, "generate", lock=True)
    matching(as_dict(export))
    return reply(as_dict(exports.cancel(actor, export)), see=url_for("exports.show", export_id=export_id))


@route(
    bp,
    "/exports/<export_id>/events",
    scope="read",
    produces=("text/event-stream",),
)
def follow(actor: Actor, export_id: str) -> Response:
    """Follow an export's progress as server-sent events, until it ends."""
    exports.get(actor, export_id)
    db.session.remove()
    return events.follow(lambda: exports.state(export_id))


@route(
    bp,
    "/exports/<export_id>/download",
    scope="read",
    returns=Raw({}),
    produces=_FILE,
)
def download(actor: Actor, export_id: str) -> Response:
    """Download an export's file, whole or a range of it (RFC 9110, section 14). Its ETag is its SHA-256."""
    export = exports.get(actor, export_id)
    if export.status != "completed":
        raise ApiError("not_found", "This export has no file.", {"id": export.id, "status": export.status})
    headers = _describe(export)
    size, key = export.bytes, export.storage_key
    db.session.remove()
    if request.if_none_match.contains_weak(headers["ETag"].strip('"')):
        return Response(status=304, headers={"ETag": headers["ETag"]})
    first, last = asked_range(size, headers["ETag"])
    partial = (first, last) != (0, size)
    if partial:
        headers["Content-Range"] = f"bytes {first}-{last - 1}/{size}"
    headers["Content-Length"] = str(last - first)
    try:
        pieces = storage.of(current_app._get_current_object()).get(key, first, last)  # type: ignore[attr-defined]
    except storage.MissingError:
        raise tenancy.not_found("file", export_id) from None
    return Response(pieces, 206 if partial else 200, headers=headers)


def _describe(export: Export) -> dict[str, str]:
    kind = FORMATS[export.format]
    digest = base64.b64encode(bytes.fromhex(export.sha256)).decode()
    if "tables" in export.pins:
        told = {"Content-Type": dataset_rows.content_type(kind), **dataset_rows.headers(export.pins)}
    else:
        ask = GenerateInput.model_validate(export.request["ask"], strict=False)
        made = rows.content_type(kind, ask.options_for(kind))
        told = {"Content-Type": made, **Pins.from_json(export.pins).headers()}
    return {
        **told,
        "Content-Disposition": rows.attachment(export.file_name),
        "Accept-Ranges": "bytes",
        "ETag": f'"{export.sha256}"',
        "Repr-Digest": f"sha-256=:{digest}:",  # RFC 9530
    }


def asked_range(size: int, etag: str) -> tuple[int, int]:
    """The bytes to send, from the first up to, not with, the last.

    Several ranges at once, other units, or an If-Range of another file mean the whole (RFC 9110, 14.2).
    Error: invalid_request with status 416 for a range that lies outside.
    """
    asked = request.range
    if asked is None or asked.units != "bytes" or len(asked.ranges) != 1:
        return 0, size
    if "If-Range" in request.headers and request.if_range.etag != etag.strip('"'):
        return 0, size
    found = asked.range_for_length(size)
    if found is None:
        outside = {"Content-Range": f"bytes */{size}"}
        raise ApiError(
            "invalid_request", f"The file has {size} bytes.", {"bytes": size}, status=416, headers=outside
        )
    return found
