"""Answer keys of bad data on purpose: beside an export's file, and for the rows of a generate."""

from __future__ import annotations

from flask import Blueprint, Response, request

from webapp.accounts.actors import Actor
from webapp.engine.formats import FORMATS
from webapp.extensions import db
from webapp.generation.services import answer_keys, exports
from webapp.generation.services.answer_keys import KeyFormat, Written
from webapp.generation.views.generate import format_by_accept
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
    """How the key is written; `Accept: text/csv` wins over it."""

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
    """Read which cells of an export's file are bad on purpose, of which kind, and the good value behind each.

    Rows count from 1 in the file; of a dataset's file each line names its table too. The key is made from the export's
    pins as it is sent, also before the file is there. Without bad values it has no lines.
    """
    export = exports.get(actor, export_id)
    name = export.file_name or export.id
    kind: KeyFormat = "csv" if format_by_accept() == "csv" and "format" not in request.args else query.format
    return _sent(answer_keys.of_export(export.id, name, kind))


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
)
def of_template(actor: Actor, template_id: str, body: GenerateInput) -> Response:
    """Read which cells are bad on purpose in the rows that generate makes for the same body, which names a seed.

    Rows count from 1 for the first one that generate sends, whatever its offset. No rows are spent.
    """
    return _sent(answer_keys.of_template(actor, template_id, body, format_by_accept()))


def _sent(made: Written) -> Response:
    db.session.remove()
    return Response(made.pieces, headers=made.headers(), content_type=made.content_type)
