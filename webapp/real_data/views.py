"""Real data: classify a sample, the versions of the workspace's masking key, masked copies, and subsets.

Masked copies are created in the browser only, in steps: detect personal data in a file or a table, choose the masking,
create the template. API clients use `/classify` and `/templates`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Annotated, Any, Final

from flask import Blueprint, Response, g, render_template, request, url_for
from pydantic import Field, JsonValue, model_validator

from webapp import limits
from webapp.access.actors import Actor
from webapp.builder import forms
from webapp.builder.inputs import TemplateIn
from webapp.builder.views import draft_page, drafts
from webapp.builder.views.draft_page import SOURCE_KINDS, SourceCard
from webapp.builder.views.templates import TemplateOut
from webapp.datasets.views.datasets import DatasetOut
from webapp.engine.masking import Masking
from webapp.engine.source_data import SourceSpec
from webapp.errors import TARGET_ERRORS, ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.imports.views.tables import EntityName
from webapp.real_data import detection, services
from webapp.real_data.services import MaskingChoice, Proposal
from webapp.row_templates.schemas import Name
from webapp.row_templates.services import templates
from webapp.sources.services import masking_keys
from webapp.web.inputs import Input, Query, parse
from webapp.web.responses import Output, render_block, reply, see_other
from webapp.web.routing import route

masking_bp = Blueprint("masking", __name__)
KEYS_PAGE: Final = "masking_keys.html"

_Name = Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS)]
_CLASSIFY_ERRORS = ("target_failed", "target_timeout", "target_not_allowed", "driver_missing", "unavailable")


class ClassifyIn(Input):
    """A sample: `rows`, a workspace `file` (`sheet` of a workbook), or the `table` of a connection.

    Of a file, the first 1,000 rows are analyzed; of a table, 200. With `rows`, `table` says what a row describes.
    """

    rows: (
        Annotated[list[dict[str, JsonValue]], Field(min_length=1, max_length=limits.CLASSIFY_ROWS)] | None
    ) = None
    file: Annotated[str, Field(min_length=1, max_length=limits.MAX_FILE_NAME_CHARS)] | None = None
    sheet: _Name | None = None
    connection_id: _Name | None = None
    table: _Name | None = None

    @model_validator(mode="after")
    def _one_sample(self) -> ClassifyIn:
        if sum(item is not None for item in (self.rows, self.file, self.connection_id)) != 1:
            raise ValueError("Send one of: rows, file, or connection_id with table.")
        if self.connection_id is not None and self.table is None:
            raise ValueError("Enter a table of the connection.")
        if self.sheet is not None and self.file is None:
            raise ValueError("Only a workbook file has sheets.")
        return self


class ClassifiedOut(Output):
    """One column.

    `kind`: the kind of personal data, or null if none was found. `confidence`: 0 to 1, in the kind or in its absence.
    `type`, `masking` and `options`: proposed values for a field of a template.
    """

    name: str
    kind: str | None
    sensitive: bool
    confidence: float
    reason: str
    type: str | None
    masking: Masking | None
    options: dict[str, JsonValue] | None


class ClassifyOut(Output):
    """The columns, in the sample's order."""

    columns: list[ClassifiedOut]


class MaskingKeyOut(Output):
    """A version of the masking key, without the key."""

    version: int
    created_by: str | None
    created_at: str


class MaskingKeysOut(Output):
    """The versions, newest first. The newest is used unless a field sets `key_version`."""

    items: list[MaskingKeyOut]


@route(
    masking_bp,
    "/classify",
    ["POST"],
    scope="write",
    body=ClassifyIn,
    returns=ClassifyOut,
    errors=_CLASSIFY_ERRORS,
)
def classify(actor: Actor, body: ClassifyIn) -> Response:
    """Detect personal data in the columns of a sample, and propose how to mask them.

    The detection uses column names and values. Nothing is stored, and the response contains no values.
    """
    if body.rows is not None:
        found = detection.classify_rows(body.rows, body.table or "")
    elif body.file is not None:
        found = detection.classify_file(actor, body.file, body.sheet)
    else:
        found = detection.classify_table(actor, str(body.connection_id), str(body.table))
    return reply({"columns": [detection.as_json(column) for column in found]})


@route(masking_bp, "/masking/keys", scope="secrets", returns=MaskingKeysOut)
def keys(actor: Actor) -> Response:
    """List the versions of the workspace's masking key, newest first. There is none before something was masked."""
    return _keys_page(actor)


def _keys_page(actor: Actor, error: ApiError | None = None) -> Response:
    found = masking_keys.listing(actor)
    data = {"items": [masking_keys.as_json(key) for key in found]}
    status = error.status if error is not None else 200
    creators = masking_keys.creator_names(found) if g.face == "person" else {}
    return reply(
        data, template=KEYS_PAGE, status=status, who=creators, most=limits.MAX_MASKING_KEYS, error=error
    )


@route(
    masking_bp, "/masking/keys/rotate", ["POST"], scope="secrets", returns=MaskingKeyOut, status=201, idempotent=True,
    errors=("conflict", "unavailable"), on_fault=_keys_page,
)  # fmt: skip
def rotate(actor: Actor) -> Response:
    """Create a new version of the masking key, which is used from now on.

    New copies will not match earlier ones. To match earlier copies, set `key_version` in a field.
    """
    key: dict[str, Any] = masking_keys.as_json(masking_keys.rotate(actor))
    message = f"New values are masked with version {key['version']}"
    return reply(key, status=201, redirect_to=url_for("masking.keys"), flash_message=message)


# The results of the leak check, as the API shows them for exports and pushes.


# --- Masked copies ------------------------------------------------------------------------------------------

masked_bp = Blueprint("masked", __name__, url_prefix="/templates")
PAGE: Final = "templates/masked.html"
_FILE_SOURCE: Final = "file"
_FIELD_PATH: Final = re.compile(r"fields\[(\d+)\]")


class MaskedQuery(Query):
    """The source, if a page links here: a workspace file, or the table of a connection."""

    file: str = ""
    connection_id: str = ""
    table: str = ""


@route(masked_bp, "/masked", scope="write", query=MaskedQuery, hidden=True, allows_api_keys=False)
def ask(actor: Actor, query: MaskedQuery) -> Response:
    """Show the form for choosing a file or a table; for a file in the query, its columns."""
    source = {name: value for name, value in query.model_dump().items() if value}
    if source.keys() != {"file"}:
        return _page(actor, source or None)
    return _proposal_page(actor, source)


@route(
    masked_bp, "/masked/look", ["POST"], scope="write", hidden=True, allows_api_keys=False,
    max_body=limits.MAX_UPLOAD_BYTES + limits.UPLOAD_FORM_BYTES,
)  # fmt: skip
def look(actor: Actor) -> Response:
    """Save the uploaded file, analyze the source, and propose a masking for each column."""
    source = forms.read_source(request.form)
    if any(file.filename for file in request.files.getlist("file")):
        try:
            stored = draft_page.save_upload(actor, request)
        except ApiError as error:
            return _error_page(actor, source, error)
        source = {
            **(source if source and forms.source_kind(source) == _FILE_SOURCE else {}),
            "file": stored.name,
        }
    return _proposal_page(actor, source)


def _proposal_page(actor: Actor, source: dict[str, Any] | None) -> Response:
    try:
        spec = _source_spec(source)
        proposals = services.propose_masking(actor, spec)
    except ApiError as error:
        return _error_page(actor, source, error)
    source_name = spec.table or (spec.file or "query").rpartition("/")[2].rpartition(".")[0] or "query"
    name = f"{source_name} (masked)"[: limits.MAX_NAME_CHARS]
    return _page(actor, source, proposals, [proposed_columns.choice for proposed_columns in proposals], name)


def _source_spec(source: dict[str, Any] | None) -> SourceSpec:
    if not source:
        text = "Choose a file or a table first."
        raise validation_error([Fault("source", "missing", text, "Drop a file, or choose a table.")])
    return parse(SourceSpec, source, strict=False)


def _error_page(actor: Actor, source: dict[str, Any] | None, error: ApiError) -> Response:
    if error.status >= 500 and error.status != 502:
        raise error
    db.session.rollback()
    return _page(actor, source, error=error)


# --- What becomes of the columns ----------------------------------------------------------------------------


@route(masked_bp, "/masked", ["POST"], scope="write", hidden=True, allows_api_keys=False)
def make(actor: Actor) -> Response:
    """Create the template from the user's choices, or render the columns and their preview again."""
    source_values, chosen, name = (
        forms.read_source(request.form),
        _choices_in_form(),
        request.form.get("name", "").strip(),
    )
    if request.form.get("do") == "again":
        return _page(actor, source_values, _proposals_in_form(), chosen, name)
    try:
        spec = _source_spec(source_values)
        source, rows = spec.model_dump(exclude_none=True), services.default_quantity(actor, spec)
        body = {"name": name, "fields": services.build_fields(chosen), "source": source, "quantity": rows}
        template = templates.create(actor, **parse(TemplateIn, body, strict=False).model_dump())
    except ApiError as error:
        if error.code != "validation_error":
            raise
        db.session.rollback()
        return _page(actor, source_values, _proposals_in_form(), chosen, name, error)
    location = url_for("templates.show", template_id=template["id"])
    if "HX-Request" in request.headers:
        return Response(status=204, headers={"HX-Redirect": location})
    return see_other(location)


def _preview(actor: Actor, source: dict[str, Any] | None, choices: list[MaskingChoice]) -> dict[str, Any]:
    try:
        fields = services.build_fields(choices)
    except ApiError as error:
        return {"error": " ".join(fault["message"] for fault in error.details["fields"])}
    return drafts.preview_draft(actor, {"fields": fields, "source": source}, "sample", fetch=True)


def _column_names() -> list[str]:
    return request.form.getlist("column")[: limits.MAX_FIELDS]


def _choices_in_form() -> list[MaskingChoice]:
    """Parse the choices for each column; a column that is not marked gets no strategy."""
    form, found = request.form, []
    for number, name in enumerate(_column_names()):
        kind = form.get(f"c{number}.type") or services.UNCHANGED_TYPE
        known = services.strategies(kind)
        strategy = form.get(f"c{number}.strategy", "")
        found.append(
            MaskingChoice(
                name,
                f"c{number}.taken" in form,
                f"c{number}.sensitive" in form,
                kind,
                strategy if strategy in known else known[0],
                form.get(f"c{number}.person", ""),
                form.get(f"c{number}.format", "")[: limits.MAX_AFFIX_CHARS],
            )
        )
    return found


def _proposals_in_form() -> list[Proposal]:
    """Read the proposal from the form, so that the sample is not analyzed again."""
    found = []
    for number, name in enumerate(_column_names()):
        confidence, reason, description = (
            request.form.get(f"c{number}.{key}", "") for key in ("confidence", "reason", "kind_label")
        )
        share = min(1.0, float(confidence)) if re.fullmatch(r"\d(\.\d{1,4})?", confidence) else 0.0
        found.append(Proposal(MaskingChoice(name), share, reason, description))
    return found


def _page(
    actor: Actor,
    source: dict[str, Any] | None,
    proposals: list[Proposal] | None = None,
    choices: list[MaskingChoice] | None = None,
    name: str = "",
    error: ApiError | None = None,
) -> Response:
    """Render the page; for htmx only its result."""
    choices = choices or []
    preview = _preview(actor, source, choices) if proposals and not error else None
    source_cells: dict[str, Any] = {}  # the cells of the source's first rows by column
    if preview and preview.get("columns"):
        source_preview = _preview(actor, source, [replace(choice, sensitive=False) for choice in choices])
        source_cells = {column["path"]: column["cells"] for column in source_preview.get("columns", ())}
    context = {
        "proposals": list(zip(proposals or (), choices, strict=False)),
        "given": source or {},
        "way": forms.source_kind(source),
        "name": name,
        "error": error,
        "faults": _faults_by_column(error, choices),
        "types": services.maskable_types(),
        "strategies": services.strategies,
        "preview": preview,
        "before": source_cells,
    }
    status = 200 if error is None or "HX-Request" in request.headers else error.status
    if "HX-Request" in request.headers:
        return Response(render_block(PAGE, "result", **context), status, mimetype="text/html")
    card = SourceCard(actor, source, default_kind=_FILE_SOURCE)
    html = render_template(PAGE, source=card, source_ways=SOURCE_KINDS[1:], **context)
    return Response(html, status, mimetype="text/html")


def _faults_by_column(error: ApiError | None, chosen: list[MaskingChoice]) -> dict[str, str]:
    """Return the errors by column; "" for all others."""
    included = [choice.name for choice in chosen if choice.is_included]
    found: dict[str, str] = {}
    for fault in (error.details.get("fields") or ()) if error is not None else ():
        match = _FIELD_PATH.match(fault["path"])
        name = included[int(match[1])] if match and int(match[1]) < len(included) else ""
        message = " ".join(filter(None, (fault["message"], fault.get("hint"))))
        found[name] = f"{found[name]} {message}" if name in found else message
    return found


# --- Subsets ------------------------------------------------------------------------------------------------

subsets_bp = Blueprint("subsets", __name__)


class SubsetIn(Input):
    """The start rows and the depth of a subset."""

    table: EntityName
    where: str = Field(
        "",
        max_length=limits.MAX_FORMULA_CHARS,
        description="Optional filter: a condition in the target's query language (the part after WHERE).",
    )
    limit: Annotated[int, Field(ge=1, le=limits.SOURCE_ROWS)] | None = Field(
        None, description="Maximum number of rows, the first by primary key."
    )
    children: Annotated[list[EntityName], Field(max_length=limits.MAX_DATASET_TABLES)] | None = Field(
        None,
        description=("Tables whose rows are included if they refer to included rows; null: all, []: none."),
    )
    depth: Annotated[int, Field(ge=0, le=limits.SUBSET_DEPTH)] = Field(1, description="Depth of child rows.")
    name: Name | None = Field(None, description="Name of the dataset.")


class SubsetTable(Output):
    """The rows of one table in the subset, the relations they were found by, and its masked columns."""

    table: str
    template_id: str
    rows: int
    ways: list[str]
    sensitive: list[str]


class SubsetOut(Output):
    """The created dataset, its templates, and the contents of each table."""

    dataset: DatasetOut
    templates: list[TemplateOut]
    report: list[SubsetTable]


@route(
    subsets_bp,
    "/connections/<connection_id>/subsets",
    ["POST"],
    scope="write",
    body=SubsetIn,
    returns=SubsetOut,
    status=201,
    idempotent=True,
    errors=TARGET_ERRORS,
)
def create(actor: Actor, connection_id: str, body: SubsetIn) -> Response:
    """Create a dataset from some rows of a table and all related rows.

    Foreign keys are followed in both directions; parents are always included. Each template reads its part of
    a table when rows are requested, and columns with personal data are masked.
    """
    subset = services.create(actor, connection_id, **body.model_dump())
    message = ", ".join(f"{table['table']} {table['rows']:,}" for table in subset.report)
    return reply(
        {"dataset": subset.dataset, "templates": subset.templates, "report": subset.report},
        status=201,
        redirect_to=url_for("datasets.show", dataset_id=subset.dataset["id"]),
        flash_message=f"A subset of {len(subset.report)} tables. Rows: {message}"[
            : limits.MAX_DESCRIPTION_CHARS
        ],
    )
