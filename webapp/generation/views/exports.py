"""Exports: files that a worker makes."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from flask import Blueprint, Response, current_app, g, request, url_for

from webapp import clock, limits, storage
from webapp.accounts.actors import Actor
from webapp.accounts.services import tenancy
from webapp.datasets.services import rows as datasets_rows
from webapp.engine.formats import FORMATS
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.generation.models import Export, ExportPart
from webapp.generation.services import export_parts, exports
from webapp.generation.services import rows as generation_rows
from webapp.generation.services.pins import Pins
from webapp.generation.views.generate import format_by_accept
from webapp.real_data.views.masking import LeakReport
from webapp.row_templates.schemas import GenerateInput, TemplateExportInput
from webapp.web import events, page_shell, snippets
from webapp.web.inputs import ListQuery
from webapp.web.responses import Listed, Output, Raw, matching, reply
from webapp.web.routing import route


def context(data: Mapping[str, Any], export: Export) -> dict[str, Any]:
    """`pace`, `parts` and `code` for the page of an export (and as JSON)."""
    return {"pace": pace(data), "parts": parts(export) if export.parts else None, "code": _code(data)}


def parts(export: Export, first: int = 1) -> dict[str, Any]:
    """One page of an export's parts: `{items, before, after}`; the last two are numbers that the pages before and after
    it begin with, None where there is none."""
    shown = [export_parts.as_json(part) for part in export_parts.some(export, first)]
    after = first + limits.PARTS_SHOWN
    return {
        "items": shown,
        "before": max(1, first - limits.PARTS_SHOWN) if first > 1 else None,
        "after": after if after <= (export.parts or 0) else None,
    }


def pace(data: Mapping[str, Any]) -> dict[str, Any]:
    """`{rate, left, took}`: rows a second so far, time left and time taken in words; None where unknown."""
    started, finished = (_moment(data[key]) for key in ("started_at", "finished_at"))
    if started is None:
        return {"rate": None, "left": None, "took": None}
    spent = ((finished or clock.now()) - started).total_seconds()
    rate = data["rows_done"] / spent if spent > 0 and data["rows_done"] else None
    left = (
        page_shell.duration((data["count"] - data["rows_done"]) / rate) if rate and finished is None else None
    )
    return {
        "rate": round(rate) if rate else None,
        "left": left,
        "took": page_shell.duration(spent) if finished else None,
    }


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _code(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    base = snippets.origin()
    ask = data["request"]
    made = []
    if data["template_id"]:
        made.append(
            ("Ask for it", snippets.curl("POST", f"{base}/templates/{data['template_id']}/exports", ask))
        )
    if data["dataset_id"]:
        made.append(
            ("Ask for it", snippets.curl("POST", f"{base}/datasets/{data['dataset_id']}/exports", ask))
        )
    made.append(("Follow it", snippets.curl("GET", f"{base}/exports/{data['id']}/events", more="-N")))
    if data["parts"]:
        manifest = snippets.curl("GET", f"{base}/exports/{data['id']}/manifest")
        made.append(("What it is made of: rows, size and checksum of each part", manifest))
    if data["answers_url"]:
        key = snippets.curl("GET", f"{base}/exports/{data['id']}/answers")
        made.append(("Which cells are bad on purpose, and their good values", key))
    if data["parts"] and not FORMATS[data["format"]].continues:
        part = snippets.curl("GET", f"{base}/exports/{data['id']}/parts/1", more="-OJ")
        made.append(("Download one part, a file of its own", part))
        return made
    download = snippets.curl(
        "GET", f"{base}/exports/{data['id']}/download", more=f"-C - -o {data['file_name']!r}"
    )
    made.append(("Download it; go on where it broke off", download))
    return made


bp = Blueprint("exports", __name__)

FILE = (*(kind.media_type for name, kind in FORMATS.items() if name != "json"), "application/zip")


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
    """An export: one file, made or to be made, or `parts` files of `part_rows` rows each. `leaks` is what the leak
    check saw of rows that are taken from real data, once they are made.

    `of_id` is the export that it retries. `answers_url` is where the bad values are told, where it has any on purpose.
    """

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
    manifest_url: str
    answers_url: str | None
    part_rows: int | None
    parts: int | None
    parts_done: int | None
    of_id: str | None
    attempt: int
    seed: str
    now: str | None
    pins: ExportPins
    request: dict[str, Any]
    leaks: list[LeakReport] | None
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
    return with_addresses(exports.as_json(export))


def with_addresses(data: dict[str, Any]) -> dict[str, Any]:
    """The same with its addresses whole."""
    for name in ("download_url", "manifest_url", "answers_url"):
        if data.get(name):
            data[name] = snippets.origin() + data[name]
    return data


@route(
    bp,
    "/templates/<template_id>/exports",
    ["POST"],
    scope="generate",
    body=TemplateExportInput,
    returns=ExportOut,
    status=201,
    idempotent=True,
    errors=("row_limit_exceeded", "quota_exceeded", "leak_found"),
)
def create(actor: Actor, template_id: str, body: TemplateExportInput) -> Response:
    """Have a file of rows made by a worker, or by many in parts."""
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
    export = exports.get(actor, export_id)
    data = as_dict(export)
    shown = context(data, export) if g.face == "person" else {}
    return reply(data, template="exports/show.html", block="work", tag=True, **shown)


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
    return events.follow(lambda: exports.of(export_id))


@route(
    bp,
    "/exports/<export_id>/download",
    scope="read",
    returns=Raw({}),
    produces=FILE,
    errors=("conflict",),
)
def download(actor: Actor, export_id: str) -> Response:
    """Download an export's file, whole or a range of it (RFC 9110, section 14).

    Its ETag is its SHA-256. What was made in parts comes as one file, part after part; XLSX and Parquet cannot be put
    together so, and only their parts can be had (`conflict`).
    """
    export = exports.get(actor, export_id)
    if export.status != "completed":
        raise ApiError("not_found", "This export has no file.", {"id": export.id, "status": export.status})
    exports.check_kept(export)
    headers = describe(export)
    if export.parts is None:
        return sent(headers, [(export.storage_key, export.bytes)], export.sha256, export_id)
    if not export_parts.in_one_piece(export):
        text = f"Parts of {export.format} are files of their own, listed at /exports/{export.id}/manifest."
        raise ApiError("conflict", text, {"id": export.id, "format": export.format})
    parts = export_parts.of(export)
    files = [(part.storage_key, part.bytes) for part in parts]
    # The parts' digests tell their bytes; the whole has not been read to be digested.
    tag = hashlib.sha256("".join(part.sha256 for part in parts).encode()).hexdigest()
    return sent(headers, files, f"parts-{tag}", export_id)


def sent(headers: dict[str, str], files: Sequence[tuple[str, int]], tag: str, export_id: str) -> Response:
    """Files (key, bytes) as one, or the range of it that was asked for. Ends the database session.

    Errors: not_found where the storage has lost one, invalid_request as in `asked_range`.
    """
    db.session.remove()
    headers |= {"Accept-Ranges": "bytes", "ETag": f'"{tag}"'}
    if request.if_none_match.contains_weak(tag):
        return Response(status=304, headers={"ETag": headers["ETag"]})
    size = sum(length for _, length in files)
    first, last = asked_range(size, headers["ETag"])
    partial = (first, last) != (0, size)
    if partial:
        headers["Content-Range"] = f"bytes {first}-{last - 1}/{size}"
    headers["Content-Length"] = str(last - first)
    store = storage.of(current_app._get_current_object())  # type: ignore[attr-defined]
    try:
        pieces = export_parts.joined(store, files, first, last)
    except storage.MissingError:
        raise tenancy.not_found("file", export_id) from None
    return Response(pieces, 206 if partial else 200, headers=headers)


def describe(export: Export, part: ExportPart | None = None) -> dict[str, str]:
    """The headers that describe an export's file, or that of one of its parts."""
    kind = FORMATS[export.format]
    file_name, sha256 = export.file_name, export.sha256
    if "tables" in export.pins:
        told = {"Content-Type": datasets_rows.content_type(kind), **datasets_rows.headers(export.pins)}
    else:
        ask = GenerateInput.model_validate(export.request["ask"], strict=False)
        options = ask.options_for(kind)
        if part is not None and part.number > 1 and kind.name == "csv":
            options = options.model_copy(update={"header": False})
        told = {
            "Content-Type": generation_rows.content_type(kind, options),
            **Pins.from_json(export.pins).headers(),
        }
    if part is not None:
        stem, _, extension = file_name.rpartition(".")
        file_name, sha256 = f"{stem}-{part.number:04}.{extension}", part.sha256
    if sha256:
        told["Repr-Digest"] = f"sha-256=:{base64.b64encode(bytes.fromhex(sha256)).decode()}:"  # RFC 9530
    return {**told, "Content-Disposition": generation_rows.attachment(file_name)}


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
