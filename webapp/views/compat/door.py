"""Who calls, how a call is declared, and how a failure looks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from flask import Blueprint, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import HTTPException

from webapp.views import hooks
from webapp.views.compat.words import Anything
from webapp.views.reply import json_reply
from webapp.views.routes import route

ROOT: Final = "/compat"
# How programs that call by `fetch` name themselves: Node (18 as undici), Deno, Bun, browsers.
_FETCH: Final = re.compile(r"node|undici|Deno/|Bun/|Mozilla/")
bp = Blueprint("compat", __name__)

# No line in /openapi.json, which describes the API proper; no page; whatever stands in the query is let pass.
call = partial(route, bp, hidden=True, people=False, query=Anything)


class Door:
    """Around the application: a call to `/compat` is a program's, and `Authorization` may hold the bare key."""

    def __init__(self, app: hooks.WsgiApp) -> None:
        self._app = app

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == ROOT or path.startswith(f"{ROOT}/"):
            environ["HTTP_ACCEPT"] = "application/json"
            key = environ.get("HTTP_AUTHORIZATION", "").strip()
            if key and " " not in key:
                environ["HTTP_X_API_KEY"] = key
                del environ["HTTP_AUTHORIZATION"]
        return self._app(environ, start_response)


@bp.errorhandler(Exception)
def failed(error: Exception) -> ResponseReturnValue:
    """The service's one shape of an error, and beside it the `message` that the clients show."""
    if isinstance(error, HTTPException) and (error.code or 500) < 400:
        return error
    found = hooks.as_api_error(error)
    body = {**found.as_dict(), "message": found.message}
    if _FETCH.match(request.headers.get("User-Agent", "")):
        # As the document in the npm package has it: `error` and `details` are texts there, and the client makes its
        # error's message of the first.
        details = json.dumps(found.details, ensure_ascii=False)
        body |= {"error": found.message, "code": found.code, "details": details}
    response = json_reply(body, found.status)
    response.headers.update(found.headers)
    response.vary.add("User-Agent")
    return response
