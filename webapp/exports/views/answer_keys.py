"""Routes of answer keys: the injected invalid data of an export's file, and of the rows of a generate call."""

from __future__ import annotations

from flask import Blueprint, Response, request

from webapp.access.actors import Actor
from webapp.engine.formats import FORMATS
from webapp.exports.services import exports
from webapp.exports.services.exports import KeyFormat, Written
from webapp.extensions import db
from webapp.generation.views.generate import format_by_accept, more_of_saved
from webapp.row_templates.schemas import GenerateInput
from webapp.web.inputs import Query
from webapp.web.responses import Raw
from webapp.web.routing import route

bp = Blueprint("answer_keys", __name__)

_ANSWER = {
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
_KEY = Raw({"type": "array", "items": _ANSWER})
_TEXTS = tuple(FORMATS[name].media_type for name in ("ndjson", "csv"))
_FILES = tuple(kind.media_type for name, kind in FORMATS.items() if name != "json")


class KeyQuery(Query):
    """The format of the key. `Accept: text/csv` overrides it."""

    format: KeyFormat = "ndjson"


@route(
    bp,
    "/exports/<export_id>/answers",
    scope="read",
    query=KeyQuery,
    returns=_KEY,
    produces=_TEXTS,
    errors=("unavailable", "validation_error"),
)
def of_export(actor: Actor, export_id: str, query: KeyQuery) -> Response:
    """Get the injected invalid cells of an export's file: their kinds and the original values.

    Rows count from 1 in the file; for a dataset each line also names its table. The answer key is generated
    when it is requested, also before the file exists. Without invalid data it has no lines.
    """
    export = exports.get(actor, export_id)
    name = export.file_name or export.id
    kind: KeyFormat = "csv" if format_by_accept() == "csv" and "format" not in request.args else query.format
    return _sent(exports.of_export(export.id, name, kind))


@route(
    bp,
    "/templates/<template_id>/answers",
    ["POST"],
    scope="generate",
    body=GenerateInput,
    returns=_KEY,
    reads=True,
    errors=("row_limit_exceeded",),
    produces=_FILES,
    more_faults=more_of_saved,
)
def of_template(actor: Actor, template_id: str, body: GenerateInput) -> Response:
    """Get the injected invalid cells in the rows that generate returns for the same body, which must contain a seed.

    Row 1 is the first row that generate returns, whatever its offset. No rows are counted toward the quota.
    """
    return _sent(exports.of_template(actor, template_id, body, format_by_accept()))


def _sent(made: Written) -> Response:
    db.session.remove()
    return Response(made.pieces, headers=made.headers(), content_type=made.content_type)
