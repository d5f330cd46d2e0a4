"""The API's description of itself."""

from __future__ import annotations

from typing import Final

import orjson
from flask import Blueprint, Response, current_app

from webapp import openapi
from webapp.views import hooks
from webapp.views.outputs import Raw
from webapp.views.reply import JSON
from webapp.views.routes import route

bp = Blueprint("documents", __name__)
_MADE: Final = "rowsmith.openapi"


@route(bp, "/openapi.json", scope="public", returns=Raw({"type": "object"}))
def document() -> Response:
    """The OpenAPI document of this service."""
    made: bytes | None = current_app.extensions.get(_MADE)
    if made is None:
        app = current_app._get_current_object()  # type: ignore[attr-defined]
        made = current_app.extensions[_MADE] = orjson.dumps(openapi.build(app, hooks.NEWEST_VERSION))
    return Response(made, mimetype=JSON)
