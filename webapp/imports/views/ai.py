"""Features with a model: a template from a description, a type for a field."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import orjson
from flask import Blueprint, Response, g, render_template, request, url_for
from pydantic import Field, JsonValue, WithJsonSchema

from webapp import limits
from webapp.access.actors import Actor
from webapp.builder import forms
from webapp.builder.forms import draft_fields
from webapp.builder.inputs import Quantity
from webapp.builder.views import draft_page, drafts
from webapp.builder.views.templates import TemplateOut
from webapp.engine.types.registry import find
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.generation.services import ai_values
from webapp.imports.services import descriptions
from webapp.imports.services import suggestions as imports_suggestions
from webapp.row_templates.schemas import FIELD_SCHEMA
from webapp.row_templates.services import catalogue
from webapp.web.forms.page_form import Control, FormSpec
from webapp.web.inputs import Input, parse
from webapp.web.responses import Output, reply
from webapp.web.routing import route

bp = Blueprint("ai", __name__)

_ERRORS = ("provider_missing", "target_failed", "target_timeout", "target_not_allowed", "unavailable")
_ConnectionId = Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS)]


class DescribeIn(Input):
    """A description of the rows in any words.

    `connection_id`: the model; default: the project's only one. Nothing is saved unless `save` is true.
    """

    description: Annotated[str, Field(min_length=1, max_length=limits.AI_DESCRIPTION_CHARS, pattern=r"\S")]
    connection_id: _ConnectionId | None = None
    quantity: Quantity = limits.DEFAULT_QUANTITY
    save: bool = False


DESCRIBE: Final = FormSpec(
    DescribeIn,
    {
        "save": Control(type="hidden"),
        "description": Control(
            "Description",
            hint="The description is sent to the model's server. The response can take a minute.",
            type="textarea",
            placeholder="Orders of a bicycle shop: customer, e-mail, product, price, status and delivery date",
            attributes={"rows": 5},
        ),
        "connection_id": Control("Model"),
    },
)


class DescribedField(Output):
    """The result for one field.

    `state`: green, as the model proposed it; yellow, without options that were invalid; red, replaced by plain text.
    """

    field: str
    type: str
    state: Literal["green", "yellow", "red"]
    reason: str


class DescribedOut(Output):
    """A draft of a template, and the template if it was saved."""

    name: str
    quantity: int
    fields: Annotated[list[dict[str, Any]], WithJsonSchema({"type": "array", "items": FIELD_SCHEMA})]
    report: list[DescribedField]
    template: TemplateOut | None


class SuggestIn(Input):
    """A field and what is known about it. `sample`: some of its values, which a model gets to see if one is used."""

    name: Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS, pattern=r"\S")]
    description: Annotated[str, Field(max_length=limits.MAX_DESCRIPTION_CHARS)] = ""
    sample: Annotated[list[JsonValue], Field(max_length=limits.INFER_SAMPLE_ROWS)] = Field(
        default_factory=list
    )
    connection_id: _ConnectionId | None = None


class Suggestion(Output):
    """A type with suggested options. `source` says what the suggestion is based on."""

    type: str
    options: dict[str, Any]
    reason: str
    source: Literal["name", "sample", "ai"]


class SuggestOut(Output):
    """Types, best match first; at least one."""

    suggestions: list[Suggestion]


@route(bp, "/describe", scope="write", hidden=True, allows_api_keys=False)
def ask(actor: Actor) -> Response:
    """The form that a description is written into."""
    return _page(actor)


def _page(actor: Actor, error: ApiError | None = None) -> Response:
    models = ai_values.ai_connections(actor)
    form = DESCRIBE.render(
        {"save": "true"},
        sent=request.form if error else None,
        error=error,
        choices={"connection_id": [(model.id, model.name) for model in models]},
        without=("connection_id",) if len(models) < 2 else (),
    )
    status = error.status if error else 200
    return reply(template="templates/describe.html", status=status, models=models, form=form, error=error)


@route(
    bp, "/describe", ["POST"], scope="write", body=DescribeIn, returns=DescribedOut, idempotent=True,
    errors=_ERRORS, on_fault=_page,
)  # fmt: skip
def describe(actor: Actor, body: DescribeIn) -> Response:
    """Draft a template from a description.

    A model of the project proposes fields with types of the catalogue. The result is validated like any
    template. A field that is invalid becomes plain text, and the report says so.
    """
    try:
        result = descriptions.create_template(actor, **body.model_dump())
    except ApiError as error:
        if g.face != "person" or error.status < 500:
            raise
        db.session.rollback()
        return _page(actor, error)  # the model's fault, not ours: what was typed is not lost by it
    doubtful = [item["field"] for item in result["report"] if item["state"] != "green"]
    message = (
        f" Check {', '.join(doubtful)}: the model did not describe these fields correctly."
        if doubtful
        else ""
    )
    saved = result["template"]
    location = url_for("templates.show", template_id=saved["id"]) if saved else None
    return reply(result, redirect_to=location, flash_message=f"Template {result['name']} drafted.{message}")


@route(
    bp, "/fields/suggest", ["POST"], scope="write", body=SuggestIn, returns=SuggestOut, reads=True,
    errors=_ERRORS,
)  # fmt: skip
def suggest(actor: Actor, body: SuggestIn) -> Response:
    """Suggest a type for a field.

    The suggestion is based on its name and sample values. A model is used if these are not sufficient and one
    is available, or if the request names one.
    """
    return reply({"suggestions": imports_suggestions.suggest(actor, **body.model_dump())})


@route(bp, "/builder/suggest", ["POST"], scope="write", allows_api_keys=False, hidden=True, reads=True)
def suggest_here(actor: Actor) -> Response:
    """Return types for one field of the builder's form, for its picker; `model` selects the model."""
    _, key, _ = drafts.parse_button()
    model = request.form.get("model") or None
    draft = draft_page.draft_of_form(actor)
    fields = draft_fields(forms.read_form(request.form, draft.spec)["fields"])
    field = next((item.submitted for item in fields if item.key == key), {})
    name = str(field.get("name", ""))
    context: dict[str, Any] = {"name": name, "asked": model, "found": [], "error": None}
    data = {"name": name, "description": str(field.get("description") or ""), "connection_id": model}
    try:
        if name:
            body = parse(SuggestIn, data, strict=False)
            results = imports_suggestions.suggest(actor, **body.model_dump())
            context["found"] = [_picker_entry(result) for result in results]
    except ApiError as error:
        db.session.rollback()
        context["error"] = error
    context["models"] = ai_values.ai_connections(actor)
    return Response(render_template("templates/suggested.html", **context), mimetype="text/html")


def _picker_entry(suggestion: dict[str, Any]) -> dict[str, Any]:
    """Return a suggestion for the picker: `value` is the type, with its options if there are any."""
    kind = find(suggestion["type"])
    entry = next(known for known in catalogue.entries() if known["name"] == kind.name) if kind else {}
    value = (
        f"{suggestion['type']} {orjson.dumps(suggestion['options']).decode()}"
        if suggestion["options"]
        else suggestion["type"]
    )
    return {
        **suggestion,
        "word": value,
        "label": entry.get("label", suggestion["type"]),
        "example": entry.get("example", ""),
    }
