"""Generate and preview routes, for saved templates and drafts.

Exports share the response models and the form of the export dialog, with errors at its fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import orjson
from flask import Blueprint, Response, g, render_template, request
from pydantic import Field, WithJsonSchema

from webapp import limits
from webapp.access.actors import Actor
from webapp.engine.formats import FORMATS
from webapp.errors import READ_TARGET_ERRORS, ApiError, Fault, validation_error
from webapp.generation.services import generate
from webapp.generation.services.generate import Generation, Preview
from webapp.row_templates.models import Template
from webapp.row_templates.schemas import (
    CsvSection,
    DraftInput,
    DraftPreviewInput,
    GenerateInput,
    PreviewInput,
    SqlSection,
)
from webapp.row_templates.services import templates
from webapp.web.forms.from_model import bind_form
from webapp.web.forms.page_form import Control, FormSpec
from webapp.web.inputs import merge_faults
from webapp.web.responses import Output, RawSchema, reply
from webapp.web.routing import route


class WholeColumn(Output):
    """Whether real values of the column occur in any row.

    `kind` is none if the masking excludes that and an occurrence would have failed the work; counted if a masked value
    can be another person's real value by chance.

    `distinct` is the number of real values in the column, of which a `share` was checked; `expected` is the number of
    matches that chance explains, null if it is unknown.
    """

    kind: str
    distinct: int
    share: float
    found: int
    expected: float | None


class LeakColumn(Output):
    """One sensitive column.

    The number of checked values, and the number that remained unmasked in their own row, which is always 0, because
    one would have failed the work.
    """

    column: str
    source_column: str
    strategy: str
    key_version: int
    values: int
    survivors: int
    whole_column: WholeColumn


class LeakReport(Output):
    """The result of the leak check for one table. `unmasked`: the columns that have the values of the source."""

    table: str
    columns: list[LeakColumn]
    unmasked: list[str] = Field(default_factory=list)


# --- The export dialog --------------------------------------------------------------------------------------

_FORMATS: Final = (
    ("csv", "Comma-separated"),
    ("json", "One array"),
    ("ndjson", "One object per line"),
    ("sql", "INSERTs"),
    ("xlsx", "Excel"),
    ("parquet", "columns"),
)
_SECTIONS: Final = (("csv", CsvSection), ("sql", SqlSection))
EXPORT_FORM: Final = FormSpec(
    GenerateInput,
    {
        "format": Control("Format", type="radios", choices=_FORMATS),
        "count": Control("Rows"),
        "seed": Control("Seed", placeholder="a new one", attributes={"spellcheck": "false"}),
        "locale": Control("Locale", attributes={"spellcheck": "false", "list": "locales"}),
    },
    codes={"row_limit_exceeded": "count"},
)


def export_context(
    actor: Actor,
    template: Template,
    values: Mapping[str, Any] | None = None,
    *,
    sent: Any = None,
    error: ApiError | None = None,
) -> dict[str, Any]:
    """Return the context of `templates/export.html`: the form with initial or submitted values and its error.

    `places` are (id of the control, label, error) in the order of the page; `faults` are errors of format
    options by the name of the control.
    """
    data = templates.show(template)
    sections = [(name, bind_form(model, formdata=sent, prefix=f"{name}.")) for name, model in _SECTIONS]
    names = {item.name for _, section in sections for item in section}
    faults: dict[str, str] = {}
    if error is not None and error.code == "validation_error":
        fields = error.details["fields"]
        faults = {field["path"]: field["message"] for field in fields if field["path"] in names}
        rest = [Fault(**field) for field in fields if field["path"] not in names]
        error = validation_error(rest) if rest else None
    form = EXPORT_FORM.render(
        {"format": "csv", "count": data["quantity"], **(values or {})}, sent=sent, error=error, id="x-"
    )
    count, locale = form["count"], form["locale"]
    count.render_kw = {
        **count.render_kw,
        "max": actor.limits.rows_per_generation,
        "placeholder": data["quantity"],
    }
    locale.render_kw = {**locale.render_kw, "placeholder": data["locale"] or "the template's"}
    form_faults = [(item.anchor, item.label.text, " ".join(item.errors)) for item in form.wrong]
    section_faults = [
        (item.id, item.label.text, faults[item.name])
        for _, section in sections
        for item in section
        if item.name in faults
    ]
    return {
        "data": data,
        "form": form,
        "sections": sections,
        "faults": faults,
        "places": [*form_faults, *section_faults],
        "texts": list(form.form_errors),
    }


def form_with_errors(actor: Actor, error: ApiError, template_id: str) -> Response:
    """Render the submitted form with its errors. For the dialog, render only the errors."""
    if error.code in ("not_found", "forbidden"):
        raise error
    page_context = export_context(
        actor, templates.get(actor, template_id, "generate"), sent=request.form, error=error
    )
    if "HX-Request" in request.headers:
        headers = {"HX-Retarget": "#estimate", "HX-Reswap": "innerHTML"}
        return Response(render_template("templates/estimate.html", **page_context), headers=headers)
    return Response(render_template("templates/export_page.html", **page_context), mimetype="text/html")


bp = Blueprint("generate", __name__)

# --- Routes -------------------------------------------------------------------------------------------------

_PRODUCES = tuple(kind.media_type for name, kind in FORMATS.items() if name != "json")
_ROWS = RawSchema({"type": "array", "items": {"type": "object"}})
# Values and source rows come from connections. The quota of a preview is that of the objects in its arrays.
PREVIEW_ERRORS: Final = (*READ_TARGET_ERRORS, "provider_missing", "quota_exceeded")
GENERATE_ERRORS: Final = (*PREVIEW_ERRORS, "row_limit_exceeded", "leak_found")


class DraftIn(DraftInput):
    """Rows of an unsaved template: its definition, in addition to the keys of generate."""


class DraftPreviewIn(DraftPreviewInput):
    """Three rows of an unsaved template: its definition, in addition to the keys of preview."""


class PreviewIn(PreviewInput):
    """Three rows of a template or, with `fields`, of an unsaved draft of it."""


def more_faults_of_saved(actor: Actor, error: ApiError, body: Any, template_id: str) -> ApiError:
    """Return the error of a request for rows of a saved template, with what else is wrong with the request."""
    template_ref = generate.find_template(actor, template_id, "generate")

    def check(request: GenerateInput) -> None:
        generate.prepare_saved(actor, template_ref, request, fetch=False)

    return merge_faults(error, body, GenerateInput, check)


def more_faults_of_draft(actor: Actor, error: ApiError, body: Any) -> ApiError:
    """Return the error of a request for rows of a draft, with what else is wrong with the request."""

    def check(request: DraftInput) -> None:
        generate.prepare_draft(actor, request, fetch=False)

    return merge_faults(error, body, DraftInput, check)


def _more_faults_of_preview(actor: Actor, error: ApiError, body: Any, template_id: str) -> ApiError:
    def check(request: PreviewInput) -> None:
        generate.check_preview(actor, request, template_id)

    return merge_faults(error, body, PreviewInput, check)


def _more_faults_of_draft_preview(actor: Actor, error: ApiError, body: Any) -> ApiError:
    return merge_faults(error, body, DraftPreviewInput, lambda ask: generate.check_preview(actor, ask))


class BadCell(Output):
    """An injected invalid cell: its row, counted from 1, field, kind, and the original value."""

    row: int
    field: str
    kind: str
    good: Annotated[Any, WithJsonSchema({})]


class PreviewOut(Output):
    """The first three rows, the seed that reproduces them, and the injected invalid cells, if any."""

    rows: Annotated[list[dict[str, Any]], WithJsonSchema({"type": "array", "items": {"type": "object"}})]
    seed: str
    warnings: list[dict[str, str]]
    bad: list[BadCell] | None = None


@route(
    bp,
    "/templates/<template_id>/generate",
    ["POST"],
    scope="generate",
    body=GenerateInput,
    returns=_ROWS,
    reads=True,
    errors=GENERATE_ERRORS,
    produces=_PRODUCES,
    on_fault=form_with_errors,
    more_faults=more_faults_of_saved,
)
def saved(actor: Actor, template_id: str, body: GenerateInput) -> Response:
    """Generate rows of a template, as a stream.

    The headers X-Seed, X-Now, X-Template-Version, X-Vocabulary and X-Engine contain the values that reproduce
    the same rows.
    """
    return stream_response(generate.generate_saved(actor, template_id, body, format_by_accept()))


@route(
    bp,
    "/generate",
    ["POST"],
    scope="generate",
    body=DraftIn,
    returns=_ROWS,
    reads=True,
    errors=GENERATE_ERRORS,
    produces=_PRODUCES,
    more_faults=more_faults_of_draft,
)
def draft(actor: Actor, body: DraftIn) -> Response:
    """Generate rows of an unsaved template, as a stream."""
    return stream_response(generate.generate_draft(actor, body, format_by_accept()))


@route(
    bp,
    "/templates/<template_id>/preview",
    ["POST"],
    scope="read",
    body=PreviewIn,
    returns=PreviewOut,
    reads=True,
    errors=PREVIEW_ERRORS,
    more_faults=_more_faults_of_preview,
)
def preview(actor: Actor, template_id: str, body: PreviewIn) -> Response:
    """Generate the first three rows of a template, or of an unsaved draft of it. They do not count toward the quota.

    They equal the first three rows that generate returns with the same seed.
    """
    return _preview_response(generate.preview(actor, template_id, body))


@route(
    bp,
    "/preview",
    ["POST"],
    scope="read",
    body=DraftPreviewIn,
    returns=PreviewOut,
    reads=True,
    errors=PREVIEW_ERRORS,
    more_faults=_more_faults_of_draft_preview,
)
def preview_draft(actor: Actor, body: DraftPreviewIn) -> Response:
    """Generate the first three rows of an unsaved template. They do not count toward the quota."""
    return _preview_response(generate.preview_draft(actor, body, body.fetch))


def format_by_accept() -> str | None:
    """Return `csv` if the Accept header names text/csv and prefers no other type. It overrides the format in
    the body. Other Accept headers have no effect."""
    if "text/csv" not in request.headers.get("Accept", "").lower():
        return None
    qualities: dict[str, float] = {}
    for kind, quality in request.accept_mimetypes:
        media_type = (
            kind.partition(";")[0].strip().lower()
        )  # its parameters (charset, header) do not select another format
        if media_type != "*/*":
            qualities[media_type] = max(quality, qualities.get(media_type, 0))
    best = max(qualities.values(), default=0)
    return "csv" if 0 < qualities.get("text/csv", 0) == best else None


def stream_response(generation: Generation) -> Response:
    """Return rows as a response that proxies do not buffer."""
    headers = {**generation.recipe.headers(), "X-Accel-Buffering": "no"}
    return Response(generation.body, headers=headers, content_type=generation.recipe.content_type)


def _preview_response(result: Preview) -> Response:
    rows: Any = orjson.Fragment(result.rows) if g.face == "program" else orjson.loads(result.rows)
    data = {"rows": rows, "seed": result.seed, "warnings": result.warnings[: limits.MAX_FAULTS]}
    if result.invalid_cells is not None:
        data["bad"] = result.invalid_cells
    return reply(data, headers=result.recipe.pins.headers())
