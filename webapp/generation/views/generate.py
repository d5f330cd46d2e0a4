"""Generate and preview routes, for saved templates and drafts."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
from flask import Blueprint, Response, g, request
from pydantic import WithJsonSchema

from webapp import limits
from webapp.access.actors import Actor
from webapp.engine.formats import FORMATS
from webapp.errors import ApiError
from webapp.generation.services import generate
from webapp.generation.services.generate import Generation, Preview
from webapp.generation.views import export_form
from webapp.row_templates.schemas import DraftInput, DraftPreviewInput, GenerateInput, PreviewInput
from webapp.web.inputs import with_more
from webapp.web.responses import Output, Raw, reply
from webapp.web.routing import route

bp = Blueprint("generate", __name__)

_PRODUCES = tuple(kind.media_type for name, kind in FORMATS.items() if name != "json")
_ROWS = Raw({"type": "array", "items": {"type": "object"}})
_PREVIEW_ERRORS = ("quota_exceeded",)  # of the objects in arrays that previews show within an hour
_ERRORS = ("row_limit_exceeded", "quota_exceeded", "leak_found")


class DraftIn(DraftInput):
    """Rows of an unsaved template: its definition, in addition to the keys of generate."""


class DraftPreviewIn(DraftPreviewInput):
    """Three rows of an unsaved template: its definition, in addition to the keys of preview."""


class PreviewIn(PreviewInput):
    """Three rows of a template or, with `fields`, of an unsaved draft of it."""


def more_of_saved(actor: Actor, error: ApiError, said: Any, template_id: str) -> ApiError:
    """Return the error of a request for rows of a saved template, with what else is wrong with the request."""
    head = generate.find_template(actor, template_id, "generate")

    def check(ask: GenerateInput) -> None:
        generate.requested(actor, head, ask, fetch=False)

    return with_more(error, said, GenerateInput, check)


def more_of_draft(actor: Actor, error: ApiError, said: Any) -> ApiError:
    """Return the error of a request for rows of a draft, with what else is wrong with the request."""

    def check(ask: DraftInput) -> None:
        generate.requested_of_draft(actor, ask, fetch=False)

    return with_more(error, said, DraftInput, check)


def _more_of_preview(actor: Actor, error: ApiError, said: Any, template_id: str) -> ApiError:
    def check(ask: PreviewInput) -> None:
        generate.check_preview(actor, ask, template_id)

    return with_more(error, said, PreviewInput, check)


def _more_of_draft_preview(actor: Actor, error: ApiError, said: Any) -> ApiError:
    return with_more(error, said, DraftPreviewInput, lambda ask: generate.check_preview(actor, ask))


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
    errors=_ERRORS,
    produces=_PRODUCES,
    on_fault=export_form.again,
    more_faults=more_of_saved,
)
def saved(actor: Actor, template_id: str, body: GenerateInput) -> Response:
    """Generate rows of a template, as a stream.

    The headers X-Seed, X-Now, X-Template-Version, X-Vocabulary and X-Engine contain the values that reproduce
    the same rows.
    """
    return streamed(generate.saved(actor, template_id, body, format_by_accept()))


@route(
    bp,
    "/generate",
    ["POST"],
    scope="generate",
    body=DraftIn,
    returns=_ROWS,
    reads=True,
    errors=_ERRORS,
    produces=_PRODUCES,
    more_faults=more_of_draft,
)
def draft(actor: Actor, body: DraftIn) -> Response:
    """Generate rows of an unsaved template, as a stream."""
    return streamed(generate.draft(actor, body, format_by_accept()))


@route(
    bp,
    "/templates/<template_id>/preview",
    ["POST"],
    scope="read",
    body=PreviewIn,
    returns=PreviewOut,
    reads=True,
    errors=_PREVIEW_ERRORS,
    more_faults=_more_of_preview,
)
def preview(actor: Actor, template_id: str, body: PreviewIn) -> Response:
    """Generate the first three rows of a template, or of an unsaved draft of it. They do not count toward the quota.

    They equal the first three rows that generate returns with the same seed.
    """
    return _previewed(generate.preview(actor, template_id, body))


@route(
    bp,
    "/preview",
    ["POST"],
    scope="read",
    body=DraftPreviewIn,
    returns=PreviewOut,
    reads=True,
    errors=_PREVIEW_ERRORS,
    more_faults=_more_of_draft_preview,
)
def preview_draft(actor: Actor, body: DraftPreviewIn) -> Response:
    """Generate the first three rows of an unsaved template. They do not count toward the quota."""
    return _previewed(generate.preview_draft(actor, body, body.fetch))


def format_by_accept() -> str | None:
    """Return `csv` if the Accept header names text/csv and prefers no other type. It overrides the format in
    the body. Other Accept headers have no effect."""
    if "text/csv" not in request.headers.get("Accept", "").lower():
        return None
    wanted: dict[str, float] = {}
    for kind, quality in request.accept_mimetypes:
        plain = (
            kind.partition(";")[0].strip().lower()
        )  # its parameters (charset, header) do not select another format
        if plain != "*/*":
            wanted[plain] = max(quality, wanted.get(plain, 0))
    best = max(wanted.values(), default=0)
    return "csv" if 0 < wanted.get("text/csv", 0) == best else None


def streamed(made: Generation) -> Response:
    """Return rows as a response that proxies do not buffer."""
    headers = {**made.recipe.headers(), "X-Accel-Buffering": "no"}
    return Response(made.body, headers=headers, content_type=made.recipe.content_type)


def _previewed(made: Preview) -> Response:
    rows: Any = orjson.Fragment(made.rows) if g.face == "program" else orjson.loads(made.rows)
    data = {"rows": rows, "seed": made.seed, "warnings": made.warnings[: limits.MAX_FAULTS]}
    if made.bad is not None:
        data["bad"] = made.bad
    return reply(data, headers=made.recipe.pins.headers())
