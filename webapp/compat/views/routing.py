"""Authentication, declaration of calls, and error responses of the compatible API."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import partial
from typing import Any, Final

from flask import Blueprint, Response, current_app, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import HTTPException

from webapp.compat.views.words import Anything
from webapp.errors import ApiError
from webapp.web import hooks
from webapp.web.responses import json_reply
from webapp.web.routing import route

ROOT: Final = "/compat"
# How programs that call by `fetch` name themselves: Node (18 as undici), Deno, Bun, browsers.
_FETCH: Final = re.compile(r"node|undici|Deno/|Bun/|Mozilla/")
bp = Blueprint("compat", __name__)

# Not in /openapi.json, which describes the current API; no page; unknown query parameters are accepted.
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
    """Return the error in the usual form, and the `message` that the clients show."""
    if isinstance(error, HTTPException) and (error.code or 500) < 400:
        return error
    found = hooks.as_api_error(error)
    body = {**found.as_dict(), "message": found.message}
    if _FETCH.match(request.headers.get("User-Agent", "")):
        # As in the document of the npm package: `error` and `details` are texts there, and the client creates its
        details = json.dumps(found.details, ensure_ascii=False)
        body |= {"error": found.message, "code": found.code, "details": details}
    response = json_reply(body, found.status)
    response.headers.update(found.headers)
    response.vary.add("User-Agent")
    return response


# Routes only of the hosted service, and unknown routes: 404 with similar routes.

_PART: Final = re.compile(r"<(?:[^:<>]+:)?([^<>]+)>")
# Alternatives for calls of the clients that are not supported.
INSTEAD: Final = {
    "plans": "Plans are stored but not run. Use a scenario instead.",
    "keymaps": "Key maps have entries, a lookup and no further calls.",
    "integrations": "Create a connection (POST /connections) or an endpoint (POST /endpoints) to that system.",
    "shortcuts": "Shortcuts belong to the application's pages.",
    "feedback": "Feedback is not collected.",
    "endpoints/auth-resolve": "Credentials never leave the service: send rows to the endpoint by POST /export/rest.",
    "users": "Invite users with POST /teamMembers/invite, and remove them with DELETE /teamMembers/{id}.",
    "teams": "Teams can only be created and renamed. To delete their projects, use DELETE /projects/{id}.",
    "fields": "The catalogue is in the API itself: GET {origin}/field-types.",
    "scenarios": "Use the native API for scenarios: POST {origin}/scenarios/{id}/run.",
}
_NONE: Final = ("compat.root", "compat.root_slash", "compat.unknown")
_ALL: Final = ["GET", "POST", "PUT", "PATCH", "DELETE"]


@call(ROOT, _ALL, scope="self", endpoint="root")
@call(f"{ROOT}/", _ALL, scope="self", endpoint="root_slash")
def root() -> Response:
    """No call has an empty path."""
    raise _unknown("")


@call(f"{ROOT}/<path:rest>", _ALL, scope="self")
def unknown(rest: str) -> Response:
    """Reject unknown routes."""
    raise _unknown(rest)


def _unknown(path: str) -> ApiError:
    asked = f"{request.method} /{path}"[:200]
    near = _near(path)
    instead = INSTEAD.get(path) or INSTEAD.get(path.partition("/")[0])
    hint = instead or (f"Did you mean `{near[0]}`?" if near else "The guide lists the calls that are there.")
    return ApiError("not_found", f"There is no call `{asked}`. {hint}", {"hint": hint, "near": near})


def _near(path: str) -> list[str]:
    """Return up to five routes with the same or a similar path."""
    calls: dict[str, list[str]] = {}
    for rule in current_app.url_map.iter_rules():
        if rule.endpoint.startswith("compat.") and rule.endpoint not in _NONE:
            shown = _PART.sub(r"{\1}", rule.rule.removeprefix(ROOT))
            calls.setdefault(shown, []).extend(sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}))
    wanted = f"/{path}".rstrip("/")
    same = [one for one in calls if re.fullmatch(re.sub(r"\\\{[^}]*\\\}", "[^/]+", re.escape(one)), wanted)]
    alike = get_close_matches(wanted[:100], calls, n=3, cutoff=0.6)
    found = dict.fromkeys([*same, *alike])
    return [f"{method} {one}" for one in found for method in dict.fromkeys(calls[one])][:5]
