"""Routes and pages of exports: whole files, parts, and answer keys.

Parts have a manifest, a file each, and retries of the missing ones. An answer key lists the injected invalid data of an
export's file, or of the rows of a generate call.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final

from flask import Blueprint, Response, g, request, url_for
from pydantic import Field

from webapp import clock, limits, storage
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.datasets.schemas import DatasetExportInput
from webapp.datasets.services import rows as datasets_rows
from webapp.datasets.views import datasets
from webapp.engine.formats import FORMATS
from webapp.errors import READ_TARGET_ERRORS, ApiError
from webapp.exports import services
from webapp.exports.models import Export, ExportPart
from webapp.exports.services import AnswerKeyFile, KeyFormat
from webapp.extensions import application, db
from webapp.generation import views as generation_views
from webapp.generation.services import rows as generation_rows
from webapp.generation.services.pins import Pins
from webapp.generation.views import LeakReport, format_by_accept, more_faults_of_saved
from webapp.row_templates.schemas import GenerateInput, TemplateExportInput
from webapp.web import events, page_shell, snippets
from webapp.web.inputs import ListQuery, Query
from webapp.web.responses import ListOf, Output, RawSchema, check_if_match, reply, requested_range, see_other
from webapp.web.routing import route


def export_page_context(data: Mapping[str, Any], export: Export) -> dict[str, Any]:
    """Return `pace`, `parts` and `code` for the page of an export (and as JSON)."""
    return {
        "pace": pace(data),
        "parts": parts_page(export) if export.parts else None,
        "code": _code_samples(data),
    }


def parts_page(export: Export, first: int = 1) -> dict[str, Any]:
    """Return one page of an export's parts: `{items, before, after}`. The last two are the first numbers of
    the previous and next page, or None."""
    items = [services.part_as_json(part) for part in services.get_parts_page(export, first)]
    after = first + limits.LISTED_PARTS
    return {
        "items": items,
        "before": max(1, first - limits.LISTED_PARTS) if first > 1 else None,
        "after": after if after <= (export.parts or 0) else None,
    }


_MIN_RATE_SECONDS: Final = (
    2  # chosen: before, the rate is that of the start, and the remaining time would jump
)


def pace(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return `{rate, left, took}`: rows per second so far, remaining and elapsed time in words; None if
    unknown."""
    started, finished = (
        datetime.fromisoformat(data[key]) if data[key] else None for key in ("started_at", "finished_at")
    )
    if started is None:
        return {"rate": None, "left": None, "took": None}
    elapsed = ((finished or clock.now()) - started).total_seconds()
    rate = data["rows_done"] / elapsed if elapsed > 0 and data["rows_done"] else None
    is_rate_known = rate and finished is None and elapsed >= _MIN_RATE_SECONDS
    remaining = (
        page_shell.duration((data["count"] - data["rows_done"]) / rate) if is_rate_known and rate else None
    )
    return {
        "rate": round(rate) if rate else None,
        "left": remaining,
        "took": page_shell.duration(elapsed) if finished else None,
    }


def _code_samples(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    base = snippets.origin()
    body = data["request"]
    samples = []
    if data["template_id"]:
        samples.append(
            ("Create it", snippets.curl("POST", f"{base}/templates/{data['template_id']}/exports", body))
        )
    if data["dataset_id"]:
        samples.append(
            ("Create it", snippets.curl("POST", f"{base}/datasets/{data['dataset_id']}/exports", body))
        )
    samples.append(
        ("Follow its progress", snippets.curl("GET", f"{base}/exports/{data['id']}/events", more="-N"))
    )
    if data["parts"]:
        manifest = snippets.curl("GET", f"{base}/exports/{data['id']}/manifest")
        samples.append(("Its contents: rows, size and checksum of each part", manifest))
    if data["answers_url"]:
        key = snippets.curl("GET", f"{base}/exports/{data['id']}/answers")
        samples.append(("Which cells are injected invalid data, and their original values", key))
    if data["parts"] and not FORMATS[data["format"]].is_resumable:
        part = snippets.curl("GET", f"{base}/exports/{data['id']}/parts/1", more="-OJ")
        samples.append(("Download one part", part))
        return samples
    download = snippets.curl(
        "GET", f"{base}/exports/{data['id']}/download", more=f"-C - -o {data['file_name']!r}"
    )
    samples.append(("Download it, resuming an interrupted download", download))
    return samples


bp = Blueprint("exports", __name__)

DOWNLOAD_TYPES = (*(kind.media_type for name, kind in FORMATS.items() if name != "json"), "application/zip")


class ExportQuery(ListQuery):
    """Which exports to list. `q` searches file names."""

    template_id: str | None = None
    dataset_id: str | None = None
    status: str | None = None


class ReferencePin(Output):
    """A template that is reached through relations: its version, and the number of rows used in calculations."""

    template_id: str
    version: int
    rows: int


class TablePins(Output):
    """The values with which one table of a dataset's file was generated. `note` says why it has fewer rows than
    requested, and is empty otherwise."""

    name: str
    template_id: str
    template_version: int
    rows: int
    note: str
    now: str
    vocabulary: str
    locale: str | None
    references: list[ReferencePin]


class ExportPins(Output):
    """The values with which a file was generated. The same values and the same request produce the same bytes.

    `now` is null for a dataset whose tables use their own anchors; `vocabulary` is null if they use different ones.
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
    """An export: one file, or `parts` files of `part_rows` rows each.

    `leaks` is the result of the leak check for rows from real data.

    `of_id` is the export that it retries. `answers_url` is the URL of the answer key, if the export contains injected
    invalid data.
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
    """Return an export as JSON with an absolute download URL."""
    return with_absolute_urls(services.as_json(export))


def with_absolute_urls(data: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest with absolute URLs."""
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
    errors=generation_views.GENERATE_ERRORS,
    on_fault=generation_views.form_with_errors,
    more_faults=more_faults_of_saved,
)
def create(actor: Actor, template_id: str, body: TemplateExportInput) -> Response:
    """Create a file of rows in the background, with one worker or with several in parts."""
    export = services.create(actor, template_id, body, format_by_accept())
    address = url_for("exports.show", export_id=export.id)
    return reply(as_dict(export), status=201, redirect_to=address, headers={"Location": address})


@route(bp, "/exports", scope="read", query=ExportQuery, returns=ListOf(ExportOut))
def index(actor: Actor, query: ExportQuery) -> Response:
    """List the exports of the project, newest first."""
    if g.face == "person":
        object_id = query.template_id or query.dataset_id
        return see_other(url_for("activity.index", kind="export", q=query.q, of=object_id, days=0))
    page = services.listing(actor, **query.model_dump())
    return reply(page.as_dict(as_dict))


@route(bp, "/exports/<export_id>", scope="read", returns=ExportOut)
def show(actor: Actor, export_id: str) -> Response:
    """Get an export."""
    export = services.get(actor, export_id)
    data = as_dict(export)
    page_context = export_page_context(data, export) if g.face == "person" else {}
    return reply(data, template="exports/show.html", block="work", send_etag=True, **page_context)


@route(
    bp,
    "/exports/<export_id>",
    ["DELETE"],
    scope="generate",
    returns=ExportOut,
    errors=("run_finished", "version_conflict"),
)
def cancel(actor: Actor, export_id: str) -> Response:
    """Cancel an export that has not finished."""
    export = services.get(actor, export_id, "generate", lock=True)
    check_if_match(as_dict(export))
    return reply(
        as_dict(services.cancel(actor, export)), redirect_to=url_for("exports.show", export_id=export_id)
    )


@route(
    bp,
    "/exports/<export_id>/events",
    scope="read",
    produces=("text/event-stream",),
)
def follow(actor: Actor, export_id: str) -> Response:
    """Follow an export's progress as server-sent events, until it finishes."""
    services.get(actor, export_id)
    db.session.remove()
    return events.follow_progress(lambda: services.read_state(export_id))


@route(
    bp,
    "/exports/<export_id>/download",
    scope="read",
    returns=RawSchema({}),
    produces=DOWNLOAD_TYPES,
    errors=("conflict",),
)
def download(actor: Actor, export_id: str) -> Response:
    """Download an export's file, completely or a range of it (RFC 9110, section 14).

    Its ETag is its SHA-256. Parts are concatenated to one file. XLSX and Parquet parts cannot be
    concatenated, so only the single parts are available (`conflict`).
    """
    export = services.get(actor, export_id)
    if export.status != "completed":
        raise ApiError("not_found", "This export has no file.", {"id": export.id, "status": export.status})
    services.check_files_exist(export)
    headers = file_headers(export)
    if export.parts is None:
        file, sha256 = stored_file(export)
        return send_files(headers, [file], sha256, export_id)
    if not services.is_downloadable(export):
        text = f"Parts in {export.format} format are separate files, listed at /exports/{export.id}/manifest."
        raise ApiError("conflict", text, {"id": export.id, "format": export.format})
    parts = [stored_file(part) for part in services.get_parts(export)]
    # Only the parts have digests; the whole was never read to calculate one.
    tag = hashlib.sha256("".join(sha256 for _, sha256 in parts).encode()).hexdigest()
    return send_files(headers, [file for file, _ in parts], f"parts-{tag}", export_id)


def stored_file(record: Export | ExportPart) -> tuple[tuple[str, int], str]:
    """Return the file (key, bytes) of a completed export or part, and its digest."""
    assert record.storage_key is not None
    assert record.bytes is not None
    assert record.sha256 is not None
    return (record.storage_key, record.bytes), record.sha256


def send_files(
    headers: dict[str, str], files: Sequence[tuple[str, int]], tag: str, export_id: str
) -> Response:
    """Return files (key, bytes) as one, or the requested range of it. Ends the database session.

    Raises not_found if the storage has lost one, invalid_request as `requested_range` does.
    """
    db.session.remove()
    headers |= {"Accept-Ranges": "bytes", "ETag": f'"{tag}"'}
    if request.if_none_match.contains_weak(tag):
        return Response(status=304, headers={"ETag": headers["ETag"]})
    size = sum(length for _, length in files)
    first, last = requested_range(size, headers["ETag"])
    partial = (first, last) != (0, size)
    if partial:
        headers["Content-Range"] = f"bytes {first}-{last - 1}/{size}"
    headers["Content-Length"] = str(last - first)
    store = storage.get_storage(application())
    try:
        pieces = services.concatenate_files(store, files, first, last)
    except storage.MissingError:
        raise tenancy.not_found("file", export_id) from None
    return Response(pieces, 206 if partial else 200, headers=headers)


def file_headers(export: Export, part: ExportPart | None = None) -> dict[str, str]:
    """Return the headers that describe an export's file or that of a part."""
    kind = FORMATS[export.format]
    file_name, sha256 = export.file_name or "", export.sha256
    if "tables" in export.pins:
        headers = {"Content-Type": datasets_rows.content_type(kind), **datasets_rows.headers(export.pins)}
    else:
        body = GenerateInput.model_validate(export.request["ask"], strict=False)
        options = body.options_for(kind)
        if part is not None and part.number > 1 and kind.name == "csv":
            options = options.model_copy(update={"header": False})
        headers = {
            "Content-Type": generation_rows.content_type(kind, options),
            **Pins.from_json(export.pins).headers(),
        }
    if part is not None:
        stem, _, extension = file_name.rpartition(".")
        file_name, sha256 = f"{stem}-{part.number:04}.{extension}", part.sha256
    if sha256:
        headers["Repr-Digest"] = f"sha-256=:{base64.b64encode(bytes.fromhex(sha256)).decode()}:"  # RFC 9530
    return {**headers, "Content-Disposition": generation_rows.content_disposition(file_name)}


@route(
    datasets.bp,
    "/datasets/<dataset_id>/exports",
    ["POST"],
    scope="generate",
    body=DatasetExportInput,
    returns=ExportOut,
    status=201,
    idempotent=True,
    errors=generation_views.GENERATE_ERRORS,
)
def export(actor: Actor, dataset_id: str, body: DatasetExportInput) -> Response:
    """Create one file with all tables in the background.

    XLSX produces a workbook, SQL a script, every other format a ZIP archive. Parent tables come before their child
    tables.
    """
    created = services.create_of_dataset(actor, dataset_id, body)
    address = url_for("exports.show", export_id=created.id)
    return reply(as_dict(created), status=201, redirect_to=address, headers={"Location": address})


# --- Parts --------------------------------------------------------------------------------------------------

parts_bp = Blueprint("export_parts", __name__)


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


@route(parts_bp, "/exports/<export_id>/manifest", scope="read", returns=ManifestOut)
def manifest(actor: Actor, export_id: str) -> Response:
    """Get the manifest of an export: its rows, and the file and checksum of each part."""
    data = with_absolute_urls(services.manifest(services.get(actor, export_id)))
    data["parts"] = [with_absolute_urls(part) for part in data["parts"]]
    return reply(data, send_etag=True)


class PageQuery(Query):
    """The first part of a page."""

    first: Annotated[int, Field(ge=1, le=limits.MAX_PARTS)] = 1


@route(
    parts_bp, "/exports/<export_id>/parts", scope="read", query=PageQuery, hidden=True, allows_api_keys=False
)
def page(actor: Actor, export_id: str, query: PageQuery) -> Response:
    """Return a page of an export's parts."""
    export = services.get(actor, export_id)
    first = min(query.first, export.parts or 0)
    if not first:
        raise ApiError("not_found", "This export has no parts.", {"id": export.id})
    page_of_parts = parts_page(export, first)
    return reply(as_dict(export), template="exports/parts.html", block="parts", parts=page_of_parts)


@route(
    parts_bp,
    "/exports/<export_id>/parts/<int:number>",
    scope="read",
    returns=RawSchema({}),
    produces=DOWNLOAD_TYPES,
)
def download_part(actor: Actor, export_id: str, number: int) -> Response:
    """Download the file of one part, completely or a range of it. Its ETag is its SHA-256.

    The finished parts of a failed or cancelled export are also available.
    """
    export = services.get(actor, export_id)
    services.check_files_exist(export)
    if export.parts is None:  # a single file, which is the only part
        if number != 1 or export.status != "completed":
            text = "This export has no file." if number == 1 else "This export has one part."
            raise ApiError("not_found", text, {"id": export.id, "part": number, "status": export.status})
        file, sha256 = stored_file(export)
        return send_files(file_headers(export), [file], sha256, export.id)
    part = services.get_part(export, number)
    if part is None or part.status != "completed":
        details = {"id": export.id, "part": number, "status": part.status if part else None}
        text = "This part has no file yet." if part else f"This export has {export.parts:,} parts."
        raise ApiError("not_found", text, details)
    file, sha256 = stored_file(part)
    return send_files(file_headers(export, part), [file], sha256, export_id)


@route(
    parts_bp,
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
    export = services.retry(actor, export_id)
    address = url_for("exports.show", export_id=export.id)
    return reply(as_dict(export), status=201, redirect_to=address, headers={"Location": address})


# --- Answer keys --------------------------------------------------------------------------------------------

answer_keys_bp = Blueprint("answer_keys", __name__)

_ANSWER_SCHEMA = {
    "type": "object",
    "required": ["row", "field", "kind", "good"],
    "properties": {
        "row": {"type": "integer", "minimum": 1},
        "table": {"type": "string"},
        "field": {"type": "string"},
        "kind": {"type": "string"},
        "good": {},
    },
}
_ANSWER_KEY_SCHEMA = RawSchema({"type": "array", "items": _ANSWER_SCHEMA})
_TEXT_TYPES = tuple(FORMATS[name].media_type for name in ("ndjson", "csv"))
_FILE_TYPES = tuple(kind.media_type for name, kind in FORMATS.items() if name != "json")


class KeyQuery(Query):
    """The format of the key. `Accept: text/csv` overrides it."""

    format: KeyFormat = "ndjson"


@route(
    answer_keys_bp,
    "/exports/<export_id>/answers",
    scope="read",
    query=KeyQuery,
    returns=_ANSWER_KEY_SCHEMA,
    produces=_TEXT_TYPES,
    errors=(*READ_TARGET_ERRORS, "unavailable", "validation_error"),
)
def of_export(actor: Actor, export_id: str, query: KeyQuery) -> Response:
    """Get the injected invalid cells of an export's file: their kinds and the original values.

    Rows count from 1 in the file; for a dataset each line also names its table. The answer key is generated
    when it is requested, also before the file exists. Without invalid data it has no lines.
    """
    export = services.get(actor, export_id)
    name = export.file_name or export.id
    kind: KeyFormat = "csv" if format_by_accept() == "csv" and "format" not in request.args else query.format
    return _answer_key_response(services.answer_key_of_export(export.id, name, kind))


@route(
    answer_keys_bp,
    "/templates/<template_id>/answers",
    ["POST"],
    scope="generate",
    body=GenerateInput,
    returns=_ANSWER_KEY_SCHEMA,
    reads=True,
    errors=generation_views.GENERATE_ERRORS,
    produces=_FILE_TYPES,
    more_faults=more_faults_of_saved,
)
def of_template(actor: Actor, template_id: str, body: GenerateInput) -> Response:
    """Get the injected invalid cells in the rows that generate returns for the same body, which must contain a seed.

    Row 1 is the first row that generate returns, whatever its offset. No rows are counted toward the quota.
    """
    return _answer_key_response(services.answer_key_of_template(actor, template_id, body, format_by_accept()))


def _answer_key_response(answer_key: AnswerKeyFile) -> Response:
    db.session.remove()
    return Response(answer_key.pieces, headers=answer_key.headers(), content_type=answer_key.content_type)
