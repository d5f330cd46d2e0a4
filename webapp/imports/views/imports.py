"""Templates from files and schemas: create them, and update them from a changed schema. For API clients and
browsers."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from flask import Blueprint, Response, g, request, url_for
from pydantic import Field, WithJsonSchema

from webapp import limits
from webapp.access.actors import Actor
from webapp.builder.inputs import Quantity
from webapp.builder.views.templates import TemplateOut
from webapp.datasets.views.datasets import DatasetOut
from webapp.engine.types.registry import REGISTRY, find
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.files import multipart
from webapp.files import services as files_services
from webapp.imports.models import ImportJob
from webapp.imports.readers import formats
from webapp.imports.readers.formats import Format
from webapp.imports.services import background, drafts, imports, updates
from webapp.imports.services.imports import SubmittedDocument
from webapp.imports.views.tables import ColumnReport
from webapp.row_templates.models import Template
from webapp.row_templates.schemas import FIELD_SCHEMA
from webapp.row_templates.services import templates as row_templates_templates
from webapp.versioning import views as versioned_routes
from webapp.web.forms.page_form import Control, FormSpec, PageForm
from webapp.web.inputs import Input
from webapp.web.responses import Output, reply, see_other
from webapp.web.routing import route

bp = Blueprint("imports", __name__)
PAGE: Final = "imports/new.html"
COMPARISON_PAGE: Final = "imports/again.html"
MAX_REQUEST_BYTES: Final = limits.MAX_UPLOAD_BYTES + limits.UPLOAD_FORM_BYTES
FORMAT_NAMES: Final = {
    "auto": "Detect automatically", "csv": "CSV",
    "json": "JSON: rows or an example row", "ndjson": "NDJSON", "xlsx": "XLSX",
    "sql": "SQL definitions (CREATE TABLE)", "json_schema": "JSON Schema", "openapi": "OpenAPI", "avro": "Avro schema",
    "protobuf": "Protocol Buffers", "mockaroo": "Mockaroo schema file",
}  # fmt: skip

_Fields = Annotated[list[dict[str, Any]], WithJsonSchema({"type": "array", "items": FIELD_SCHEMA})]
_Text = Annotated[str, Field(max_length=limits.IMPORT_TEXT_CHARS)]
_File = Annotated[str, Field(max_length=limits.MAX_FILE_NAME_CHARS)]
_Name = Annotated[str, Field(max_length=limits.MAX_FILE_NAME_CHARS)]
_Table = Annotated[str, Field(max_length=limits.MAX_NAME_CHARS)]


class SourceIn(Input):
    """A file or a text. `file`: a file of the workspace, by name or id; or a part of multipart/form-data. `name`: what
    a text is called, as a file would be."""

    format: Format = "auto"
    content: _Text | None = None
    file: _File | None = None
    name: _Name | None = None


class ImportIn(SourceIn):
    """What to create templates from. With `save` false nothing is saved; `quantity` is that of each template.

    `types`: field types for columns, by the place of the column in the `report`; empty texts keep the recognized type.
    With `wait` false the document is read by a worker, within larger limits. `import_id`: such an import that saved
    nothing; its document is imported.
    """

    save: bool = True
    wait: bool = True
    import_id: Annotated[str, Field(max_length=limits.MAX_NAME_CHARS)] | None = None
    types: Annotated[list[_Name], Field(max_length=limits.IMPORT_COLUMNS)] = Field(default_factory=list)
    quantity: Quantity = limits.DEFAULT_QUANTITY


class AgainIn(SourceIn):
    """A schema to compare with a template.

    `table`: one of several tables; `accept`: names of the columns to apply. Without `accept` nothing is changed.
    """

    table: _Table | None = None
    accept: Annotated[list[_Table], Field(max_length=limits.IMPORT_COLUMNS)] | None = None


_SOURCE_CONTROLS: Final = {
    "file": Control(
        "File",
        type="file",
        hint="Choose a file, or drop it here: CSV, JSON, NDJSON, XLSX, SQL, JSON Schema, OpenAPI, Avro, .proto, or a "
        "Mockaroo schema. At most 50 MB.",
    ),
    "content": Control(
        "Or paste it here",
        type="textarea",
        placeholder="CREATE TABLE customers (id INT PRIMARY KEY, email VARCHAR(120) UNIQUE, ...);",
        attributes={"rows": 8, "spellcheck": "false"},
    ),
    "format": Control("Format", choices=tuple(FORMAT_NAMES.items())),
}
_IMPORT_FORM: Final = FormSpec(
    ImportIn, _SOURCE_CONTROLS, codes={"payload_too_large": "file"}, focus="content"
)
_UPDATE_FORM: Final = FormSpec(
    AgainIn,
    {
        **_SOURCE_CONTROLS,
        "table": Control(
            "Table, if the file has several", attributes={"spellcheck": "false", "autocomplete": "off"}
        ),
    },
    codes={"payload_too_large": "file"},
)


def _form(spec: FormSpec, error: ApiError | None = None) -> PageForm:
    """Return the form of a source with the submitted values. A long text is not sent back."""
    sent = multipart.form_values(request) if request.method == "POST" else None
    form = spec.render(sent=sent, error=error)
    if len(form["content"].data or "") >= limits.IMPORT_ECHO_CHARS:
        form["content"].data = ""
    return form


class ImportedTemplate(Output):
    """A template of an import; without an ID if it was not saved."""

    id: str | None
    name: str
    quantity: int
    version: int | None
    fields: _Fields


class ImportOut(Output):
    """The templates, the result for each column, and the dataset if there are several.

    A report entry without a column concerns a table that was left out.
    """

    format: str
    templates: list[ImportedTemplate]
    dataset: DatasetOut | None
    report: list[ColumnReport]


class ImportJobOut(Output):
    """An import that a worker does.

    `tables`: in the document, 0 until they are known. `tables_done`: those whose field types are detected. `result`:
    the response of an import without a worker; null until the end.
    """

    id: str
    status: Literal["queued", "running", "completed", "failed", "cancelled", "timed_out"]
    name: str
    save: bool
    tables: int
    tables_done: int
    error: Mapping[str, Any] | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    result: ImportOut | None


class ColumnChange(Output):
    """A column that differs: the template's field, and the field that results from the schema."""

    column: str
    change: Literal["added", "removed", "changed"]
    from_: Annotated[dict[str, Any] | None, Field(alias="from")]
    to: dict[str, Any] | None
    state: Literal["green", "yellow", "red"]
    reason: str


class AgainOut(Output):
    """The template, its differences from the schema, and the applied columns (null: none were requested)."""

    template: TemplateOut
    table: str
    format: str
    columns: list[ColumnChange]
    report: list[ColumnReport]
    accepted: list[str] | None


def _multipart_schema(**extra: Any) -> dict[str, Any]:
    text = {"type": "string"}
    return {
        "type": "object",
        "properties": {
            "file": {"type": "string", "format": "binary", "description": "At most 50 MB."},
            "content": text,
            "format": {"type": "string", "enum": list(formats.FORMATS), "default": "auto"},
            "name": text,
            **extra,
        },
    }


_STRING_ARRAY: Final = {"type": "array", "items": {"type": "string"}}


@route(bp, "/import", scope="write", hidden=True, allows_api_keys=False)
def ask(actor: Actor) -> Response:
    """The form that a file is dropped on, or a schema is pasted into."""
    return reply(template=PAGE, form=_form(_IMPORT_FORM), made=None)


def _form_with_error(actor: Actor, error: ApiError) -> Response:
    return reply(template=PAGE, block="review", form=_form(_IMPORT_FORM, error), made=None)


@route(
    bp, "/import", ["POST"], scope="write", body=ImportIn, returns=ImportOut, status=201, idempotent=True,
    max_body=MAX_REQUEST_BYTES,
    multipart=_multipart_schema(
        save={"type": "boolean"}, wait={"type": "boolean"}, import_id={"type": "string"},
        quantity={"type": "integer"}, types=_STRING_ARRAY,
    ),
    errors=(*versioned_routes.SAVE_ERRORS, "quota_exceeded"), other_responses={200: ImportOut, 202: ImportJobOut},
    on_fault=_form_with_error,
)  # fmt: skip
def create(actor: Actor, body: ImportIn) -> Response:
    """Create templates from a file or a schema.

    CSV, JSON, NDJSON, XLSX, SQL definitions, JSON Schema, OpenAPI, Avro, Protocol Buffers and Mockaroo
    schemas. Several tables become related templates and a dataset. A column that cannot be converted is red
    in the report and is imported as text. 200 if nothing was saved. With `wait` false the response is 202 and
    an import that a worker does: follow it at `GET /imports/{import_id}`.
    """
    person = g.face == "person"
    with _import_document(actor, body) as submitted:
        options: dict[str, Any] = {
            "quantity": body.quantity,
            "save": body.save,
            "types": body.types,
            "samples": person and not body.save,
        }
        if not body.wait or (person and _size(submitted) > limits.IMPORT_IN_REQUEST_BYTES):
            job = background.start(actor, submitted, body.format, **options)
            location = url_for("imports.show", import_id=job.id)
            if person and not request.headers.get("HX-Request"):
                return see_other(location)
            return _job_response(job, 202, {"Location": location})
        result = imports.create(actor, submitted, body.format, **options)
        echo = _echo(submitted) if person and not body.save else ""
    return _result_response(result, body.save, echo, submitted.name if echo else "")


def _result_response(
    result: imports.ImportResult, saved: bool, echo: str = "", name: str = "", job: Any = None
) -> Response:
    """Return the result of an import, as JSON or as a part of the page. `echo`: the document, for a browser without
    JavaScript; `job`: the import of a worker."""
    data = _as_json(result)
    if g.face == "program":
        return reply(data, status=201 if saved else 200)
    form = _form(_IMPORT_FORM)
    if echo:
        form["content"].data = echo
    context: dict[str, Any] = {
        "form": form,
        "made": data,
        "saved": saved,
        "review": [] if saved else _review_tables(result),
        "kinds": sorted(REGISTRY, key=lambda kind: kind.label),
        "name": name,
        "job": job,
        "together": 1 < len(result.templates) <= limits.MAX_DATASET_TABLES,
    }
    if saved:  # the form is replaced, so that it cannot be sent twice
        return reply(
            data,
            template=PAGE,
            block="result",
            status=200 if job else 201,
            headers={"HX-Retarget": "#result"},
            **context,
        )
    return reply(data, template=PAGE, block="review", **context)


def _as_json(result: imports.ImportResult) -> dict[str, Any]:
    return {
        "format": result.format,
        "templates": result.templates,
        "dataset": result.dataset,
        "report": result.report,
    }


@route(bp, "/imports/<import_id>", scope="write", returns=ImportJobOut)
def show(actor: Actor, import_id: str) -> Response:
    """Follow an import that a worker does. It is deleted a day after its end."""
    return _job_response(background.get(actor, import_id))


@route(bp, "/imports/<import_id>", ["DELETE"], scope="write", returns=ImportJobOut, errors=("run_finished",))
def cancel(actor: Actor, import_id: str) -> Response:
    """Cancel an import that has not finished. Templates that it has saved stay."""
    return _job_response(background.cancel(actor, background.get(actor, import_id, lock=True)))


def _job_response(job: ImportJob, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    result = background.result(job)
    data = background.as_json(job)
    if g.face == "program":
        return reply({**data, "result": _as_json(result) if result else None}, status=status, headers=headers)
    if result is not None:
        return _result_response(result, job.request["save"], job=data)
    return reply(template=PAGE, block="review", status=status, form=_form(_IMPORT_FORM), made=None, job=data)


@route(bp, "/import/sample", scope="read", hidden=True, allows_api_keys=False)
def sample(actor: Actor) -> Response:
    """Values that a column would have with another type, for its row in a review. The query has the column, and the
    type under the name that the form of the review has for it."""
    column = request.args.get("column", "")[: limits.MAX_NAME_CHARS] or "value"
    type_name = next((value for key, value in request.args.items() if key.startswith("types[")), "")
    kind = find(type_name) if type_name.strip() else None
    values, fault = (
        ([], "There is no such field type.") if kind is None else drafts.example_values(column, kind.name)
    )
    return reply(template="imports/sample.html", values=values, fault=fault)


def _review_tables(result: imports.ImportResult) -> list[dict[str, Any]]:
    """Return the tables of a review with their columns: values, type and index in the report."""
    found: dict[str, dict[str, Any]] = {}
    columns = zip(result.report, [*result.shown, *({} for _ in result.report)], strict=False)
    for index, (row, values) in enumerate(columns):
        if not values:
            continue
        empty = {"name": row["table"], "place": index, "columns": [], "counts": Counter()}
        table = found.setdefault(row["table"], empty)
        kind = find(row["type"]) if row["type"] else None
        table["columns"].append({**row, **values, "place": index, "label": kind.label if kind else ""})
        table["counts"][row["confidence"]] += 1
    return list(found.values())


def _echo(sent: SubmittedDocument) -> str:
    """Return the text of a small uploaded file, so that a browser without JavaScript need not send it again."""
    if request.headers.get("HX-Request") or isinstance(sent.document, bytes):
        return ""
    sent.document.seek(0)
    raw = sent.document.read(limits.IMPORT_ECHO_CHARS)
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return ""
    return text if len(raw) < limits.IMPORT_ECHO_CHARS and "\0" not in text else ""


@route(bp, "/templates/<template_id>/import", scope="write", hidden=True, allows_api_keys=False)
def ask_again(actor: Actor, template_id: str) -> Response:
    """The form that a changed schema of a template is given to."""
    template = row_templates_templates.get(actor, template_id, "write")
    return _comparison_page(template, None, None)


def _comparison_with_error(actor: Actor, error: ApiError, template_id: str) -> Response:
    return _comparison_page(row_templates_templates.get(actor, template_id, "write"), None, error)


def _comparison_page(template: Template, found: Any, error: ApiError | None) -> Response:
    form, last = _form(_UPDATE_FORM, error), imports.last_import(template)
    data = found["template"] if found else row_templates_templates.show(template)
    form["table"].render_kw = {
        **form["table"].render_kw,
        "placeholder": last.entity if last else data["name"],
    }
    return reply(data, template=COMPARISON_PAGE, block="result", form=form, found=found, last=last)


@route(
    bp, "/templates/<template_id>/import", ["POST"], scope="write", body=AgainIn, returns=AgainOut,
    max_body=MAX_REQUEST_BYTES, errors=versioned_routes.CHANGE_ERRORS, on_fault=_comparison_with_error,
    multipart=_multipart_schema(table={"type": "string"}, accept={"type": "array", "items": {"type": "string"}}),
)  # fmt: skip
def compare(actor: Actor, template_id: str, body: AgainIn) -> Response:
    """Compare a template with a changed schema, and apply columns.

    Without `accept` the response lists the differences; with it, these columns become the template's next
    version. Fields that were edited stay unchanged unless their column is accepted.
    """
    with submitted_document(actor, body) as submitted:
        template = row_templates_templates.get(actor, template_id, "write")
        schema = updates.parse_schema(actor, template, submitted, body.format, body.table or None)
    template = versioned_routes.get_matching_head(actor, row_templates_templates.KIND, template_id)
    accept = body.accept
    if g.face == "person":  # a form without a tick has no such name
        accept = (accept or []) if request.args.get("do") == "accept" else None
    found = updates.compare(actor, template, schema, accept)
    if g.face == "person":
        return _comparison_page(template, found.as_dict(), None)
    return reply(found.as_dict())


@contextmanager
def _import_document(actor: Actor, body: ImportIn) -> Iterator[SubmittedDocument]:
    """The document of a request, or that of an earlier import. On the page, a file that is still chosen is not what was
    reviewed, so it counts only if it is to be read again."""
    person, files = (
        g.face == "person",
        [storage for storage in request.files.getlist("file") if storage.filename],
    )
    has_document = bool(body.content or body.file or files)
    if not body.import_id or (person and has_document and not body.save):
        with submitted_document(actor, body) as sent:
            yield sent
        return
    if has_document and not person:
        text = "Send either a document or the id of an import."
        raise validation_error([Fault("import_id", "duplicate", text, "import_id, content or file")])
    job = background.get(actor, body.import_id)
    with background.open_document(job) as sent:
        yield sent


def _size(sent: SubmittedDocument) -> int:
    if isinstance(sent.document, bytes):
        return len(sent.document)
    return sent.document.seek(0, os.SEEK_END)


@contextmanager
def submitted_document(actor: Actor, body: SourceIn) -> Iterator[SubmittedDocument]:
    """The file that was sent, the one of the workspace that was named, or the text. Errors: validation_error,
    not_found."""
    files = [storage for storage in request.files.getlist("file") if storage.filename]
    content = body.content or None
    sources = [item for item in (content, body.file, *files) if item]
    if len(sources) != 1:
        text = "Send either a file or a text." if sources else "Send a file or a text."
        raise validation_error(
            [Fault("content", "duplicate" if sources else "missing", text, "content or file")]
        )
    name = (body.name or "").strip()
    if files:
        file_name = (files[0].filename or "").replace("\\", "/").rpartition("/")[2]
        yield SubmittedDocument(files[0].stream, name or file_name)
    elif body.file:
        file = files_services.find(actor, body.file)
        with tempfile.TemporaryFile() as copy:
            for piece in files_services.read_chunks(file.storage_key):
                copy.write(piece)
            yield SubmittedDocument(copy, name or file.name)
    else:
        yield SubmittedDocument((content or "").encode("utf-8", "replace"), name)


@bp.app_template_filter("option_summary")
def option_summary(core: dict[str, Any]) -> str:
    """Summarize a field's options in a few words."""
    options = [
        f"{key} {value}" for key, value in core["options"].items() if key not in ("fields", "template_id")
    ]
    more = [f"{key} {value}" for key, value in core.items() if key not in ("type", "options")]
    return ", ".join([*options, *more])


@bp.app_context_processor
def helpers() -> dict[str, Any]:
    """Return the functions that templates of template pages use."""
    if getattr(g, "face", "") != "person":
        return {}
    return {"imported": _last_import}


def _last_import(template_id: str) -> Any:
    """Return the newest import into a template, for its page."""
    template = db.session.get(Template, template_id)
    return None if template is None else imports.last_import(template)
