"""What a model helps with: a template from a description, a type for a field."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from flask import Blueprint, Response, url_for
from pydantic import Field, JsonValue, WithJsonSchema

from webapp import limits
from webapp.errors import ApiError
from webapp.services import ai_values, described, suggested
from webapp.services.actors import Actor
from webapp.services.row_requests import FIELD_SCHEMA
from webapp.views.inputs import Input
from webapp.views.outputs import Output
from webapp.views.reply import reply
from webapp.views.routes import route
from webapp.views.templates import Quantity, TemplateOut

bp = Blueprint("ai", __name__)

_ERRORS = ("provider_missing", "target_failed", "target_timeout", "target_not_allowed", "unavailable")
_ConnectionId = Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS)]


class DescribeIn(Input):
    """What rows are to be like, in any words. `connection_id`: the model; the project's only one, if not said. Nothing
    is saved unless `save` is true."""

    description: Annotated[str, Field(min_length=1, max_length=limits.AI_DESCRIPTION_CHARS, pattern=r"\S")]
    connection_id: _ConnectionId | None = None
    quantity: Quantity = limits.DEFAULT_QUANTITY
    save: bool = False


class DescribedField(Output):
    """What one field came to. `state`: green, as the model had it; yellow, without options that did not fit; red,
    plain text in its place."""

    field: str
    type: str
    state: Literal["green", "yellow", "red"]
    reason: str


class DescribedOut(Output):
    """A draft of a template, and the template where it was saved."""

    name: str
    quantity: int
    fields: Annotated[list[dict[str, Any]], WithJsonSchema({"type": "array", "items": FIELD_SCHEMA})]
    report: list[DescribedField]
    template: TemplateOut | None


class SuggestIn(Input):
    """A field, and what is known of it. `sample`: some of its values, which a model is shown where one is asked."""

    name: Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS, pattern=r"\S")]
    description: Annotated[str, Field(max_length=limits.MAX_DESCRIPTION_CHARS)] = ""
    sample: Annotated[list[JsonValue], Field(max_length=limits.INFER_SAMPLE_ROWS)] = Field(
        default_factory=list
    )
    connection_id: _ConnectionId | None = None


class Suggestion(Output):
    """A type with options to begin with. `source` says what it follows from."""

    type: str
    options: dict[str, Any]
    reason: str
    source: Literal["name", "sample", "ai"]


class SuggestOut(Output):
    """Types, the likeliest first; at least one."""

    suggestions: list[Suggestion]


@route(bp, "/describe", scope="write", hidden=True, programs=False)
def ask(actor: Actor) -> Response:
    """The form that a description is written into."""
    return reply(template="templates/describe.html", models=ai_values.models(actor), error=None)


def _again(actor: Actor, error: ApiError) -> Response:
    models = ai_values.models(actor)
    return reply(template="templates/describe.html", status=error.status, models=models, error=error)


@route(
    bp, "/describe", ["POST"], scope="write", body=DescribeIn, returns=DescribedOut, idempotent=True,
    errors=_ERRORS, on_fault=_again,
)  # fmt: skip
def describe(actor: Actor, body: DescribeIn) -> Response:
    """Draft a template from a description.

    A model of the project is asked for fields of the catalogue's types. What it answers is checked like any template;
    a field that does not fit becomes plain text, and the report says so.
    """
    made = described.template(actor, **body.model_dump())
    doubtful = [one["field"] for one in made["report"] if one["state"] != "green"]
    told = f" Look at {', '.join(doubtful)}: what the model had there did not fit." if doubtful else ""
    saved = made["template"]
    where = url_for("templates.show", template_id=saved["id"]) if saved else None
    return reply(made, see=where, flashed=f"Template {made['name']} drafted.{told}")


@route(
    bp, "/fields/suggest", ["POST"], scope="write", body=SuggestIn, returns=SuggestOut, reads=True,
    errors=_ERRORS,
)  # fmt: skip
def suggest(actor: Actor, body: SuggestIn) -> Response:
    """Suggest a type for a field.

    By its name and a sample of its values; a model is asked where those say nothing and there is one, or where one is
    named.
    """
    return reply({"suggestions": suggested.suggestions(actor, **body.model_dump())})
