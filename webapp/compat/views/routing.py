"""The compatible API's names and calls: translation of names, authentication, declaration of routes, error responses.

Names and fields of templates are translated both ways: as the clients write them, and as the services do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from typing import Any, Final, TypeVar

from flask import Blueprint, Response, current_app, request
from flask.typing import ResponseReturnValue
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from werkzeug.exceptions import HTTPException

from webapp import limits
from webapp.access import tenancy
from webapp.access.actors import Actor, require_scope
from webapp.access.models import Project
from webapp.compat import services
from webapp.engine.spec import CommonKeys
from webapp.engine.types import registry
from webapp.errors import ApiError, Fault, validation_error
from webapp.pagination import Page
from webapp.web import hooks, inputs
from webapp.web.responses import json_reply
from webapp.web.routing import route

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

_CAMEL_BOUNDARY: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")
_UNDERSCORE: Final = re.compile(r"_([a-z])")
# Keys of the hosted service without a counterpart here. Clients send them back unchanged.
IGNORED_KEYS: Final = frozenset(
    "id created_at updated_at created_by user_id avatar db_order_idx simulation_config template_folder_id "
    "endpoint_folder_id integration_id folder_id meta".split()
)
STRATEGIES: Final = {
    "faker-replace": "replace",
    "hash": "hash",
    "tokenize": "tokenize",
    "redact": "redact",
    "preserve-format": "format_preserve",
}
"""Strategies of the clients' masking policies, as `masking` of a field names them."""
_FIELD_KEYS: Final = {**{key: key for key in CommonKeys.model_fields}, "active": "active", "label": "label"}


class PassThroughInput(inputs.Input):
    """A body whose keys are validated later, by the model of the native API."""

    model_config = ConfigDict(extra="allow")
    read_only = frozenset()

    def native_values(self, **renamed: str) -> dict[str, Any]:
        """Return the input with the names of the native API; nulls and unsupported attributes are removed."""
        values = {}
        for key, value in (self.model_extra or {}).items():
            name = to_snake_case(key)
            name = renamed.get(name, name)
            if value is not None and name not in IGNORED_KEYS:
                values[name] = value
        return values


class CamelCaseInput(inputs.Input):
    """A body whose keys are checked here, in camelCase as the clients write them. They send back what they read, so
    keys that only the service writes are ignored."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=False)
    read_only = frozenset({"id", "createdAt", "updatedAt", "createdBy", "createdByName", "userId"})


class ProjectQuery(inputs.Query):
    """A query of which only the project matters."""

    model_config = ConfigDict(extra="ignore")

    projectId: str | None = None  # noqa: N815 - the wire's own name
    teamId: str | None = None  # noqa: N815


def to_snake_case(name: str) -> str:
    """`connectionString` -> `connection_string`."""
    return _CAMEL_BOUNDARY.sub(lambda found: f"_{found[1].lower()}", name)


def to_camel_case(name: str) -> str:
    """`connection_string` -> `connectionString`."""
    return _UNDERSCORE.sub(lambda found: found[1].upper(), name)


def camelize_keys(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a response with its own keys in camelCase; their values are unchanged."""
    return {to_camel_case(key): value for key, value in data.items()}


def parse_native(
    model: type[M],
    values: Mapping[str, Any],
    more: Callable[[ApiError, Mapping[str, Any]], ApiError] | None = None,
) -> M:
    """Parse the input with a model of the native API. `more` adds the errors of the rest to that of an invalid input.
    Error: validation_error with all errors."""
    try:
        return inputs.parse(model, values)
    except ApiError as error:
        raise (error if more is None else more(error, values)) from None


def actor_in_project(actor: Actor, scope: str, project_id: str | None, team_id: str | None = None) -> Actor:
    """Return the actor in the project that a call names, with the permission `scope`; the actor's own project if none
    is named.

    Errors: not_found, forbidden, validation_error (a team that is not the project's).
    """
    if project_id and project_id != actor.project_id:
        found = tenancy.get(actor, Project, project_id, scope)
        actor = replace(actor, project_id=found.id, team_id=found.team_id, role=actor.role_in(found.team_id))
        require_scope(actor, scope)
    if team_id and team_id != actor.team_id:
        hint = f"Leave it out, or send {actor.team_id}."
        raise validation_error(
            [Fault("teamId", "not_yours", "The project does not belong to this team.", hint)]
        )
    return actor


def actor_from_body(actor: Actor, scope: str, values: dict[str, Any]) -> Actor:
    """Apply `actor_in_project` with the ids in a body, and remove these keys from it."""
    return actor_in_project(
        actor, scope, values.pop("project_id", None) or None, values.pop("team_id", None) or None
    )


def list_all(listing: Callable[..., Page[T]], actor: Actor) -> list[T]:
    """Return all items of a paged list of the native API, newest first: at most `COMPAT_LIST_ROWS`, and none after the
    page that reaches `PAGE_BYTES`."""
    found: list[T] = []
    cursor = None
    size = 0
    while len(found) < limits.COMPAT_LIST_ROWS and size < limits.PAGE_BYTES:
        page = listing(actor, cursor=cursor, limit=limits.PAGE_LIMIT_MAX)
        found += page.items
        size += page.size
        cursor = page.next_cursor
        if cursor is None:
            break
    return found


# --- Fields -------------------------------------------------------------------------------------------------


Types = Mapping[str, Any]
"""Definitions of a project's custom data types, by name in lower case."""


def fields_to_native(actor: Actor, fields: Any) -> Any:
    """Convert field definitions to the service's format. Anything that is not a definition is left for the service to
    reject. A type that is not in the catalogue, but is a custom data type of the actor's project, is replaced by its
    definition."""
    types: Types = {}
    if _has_unknown_type(fields):
        found = services.listing(actor, "custom_data_type")
        types = {item.name.casefold(): item.document["field_config"] for item in found}
    return _convert_fields_to_native(fields, types)


def _has_unknown_type(fields: Any) -> bool:
    """Return whether a field, at any level, has a type that is not in the catalogue."""
    for field in fields if isinstance(fields, list) else ():
        if isinstance(field, Mapping):
            options = field.get("options")
            inner = options.get("fields") if isinstance(options, Mapping) else None
            if registry.find(str(field.get("type", ""))) is None or _has_unknown_type(field.get("nested")):
                return True
            if _has_unknown_type(inner):
                return True
    return False


def _convert_fields_to_native(fields: Any, types: Types) -> Any:
    return [_field_to_native(field, types) for field in fields] if isinstance(fields, list) else fields


def _field_to_native(field: Any, types: Types) -> Any:
    if not isinstance(field, Mapping):
        return field
    config = types.get(str(field.get("type", "")).casefold())
    if isinstance(config, Mapping) and "type" in config and registry.find(str(field.get("type", ""))) is None:
        merged = {**(config.get("options") or {}), **(field.get("options") or {})}
        overrides = {
            key: value for key, value in field.items() if key not in ("type", "options") and value is not None
        }
        field = {**config, **overrides, "options": merged}
    result = {}
    for key, value in field.items():
        name = to_snake_case(key) if to_snake_case(key) in _FIELD_KEYS else key
        # The hosted service keeps these with every field; empty, they say nothing.
        if value is None or (key in ("nested", "function", "optional") and not value):
            continue
        result[name] = value
    options, kind = result.get("options"), registry.find(str(result.get("type", "")))
    if "nested" in result and "fields" not in (options or {}):
        options = {**(options or {}), "fields": result.pop("nested")}
    if isinstance(options, Mapping):
        option_names = {*(kind.Options.model_fields if kind else ()), *_FIELD_KEYS}
        names = {
            key: to_snake_case(key) if key not in option_names and to_snake_case(key) in option_names else key
            for key in options
        }
        result["options"] = {
            names[key]: _convert_fields_to_native(value, types) if names[key] == "fields" else value
            for key, value in options.items()
        }
    return result


def fields_to_compat(fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return field definitions in the compatible format: `active` instead of `hidden`, and only explicit values."""
    return [_field_to_compat(field) for field in fields]


def _field_to_compat(field: Mapping[str, Any]) -> dict[str, Any]:
    kind = registry.find(field["type"])
    option_fields = kind.Options.model_fields if kind else {}
    options = {
        (
            to_camel_case(key) if key in option_fields and to_snake_case(to_camel_case(key)) == key else key
        ): fields_to_compat(value) if key == "fields" else value
        for key, value in field["options"].items()
    }
    common = {
        to_camel_case(key): field[key]
        for key, info in CommonKeys.model_fields.items()
        if key in field and key not in ("name", "type", "options", "hidden") and field[key] != info.default
    }
    return {
        "name": field["name"], "type": field["type"], "options": options, "active": not field["hidden"], **common
    }  # fmt: skip


# --- Routes -------------------------------------------------------------------------------------------------

ROOT: Final = "/compat"
# How programs that call by `fetch` name themselves: Node (18 as undici), Deno, Bun, browsers.
_FETCH_CLIENTS: Final = re.compile(r"node|undici|Deno/|Bun/|Mozilla/")
bp = Blueprint("compat", __name__)

# Not in /openapi.json, which describes the current API; no page; unknown query parameters are accepted.
call = partial(route, bp, hidden=True, allows_browsers=False, query=ProjectQuery)


class CompatMiddleware:
    """WSGI middleware: calls to `/compat` get JSON, and their `Authorization` may be a key without a scheme."""

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
def error_response(error: Exception) -> ResponseReturnValue:
    """Return the error in the usual form, and the `message` that the clients show."""
    if isinstance(error, HTTPException) and (error.code or 500) < 400:
        return error
    found = hooks.as_api_error(error)
    body = {**found.as_dict(), "message": found.message}
    if _FETCH_CLIENTS.match(request.headers.get("User-Agent", "")):
        # As in the document of the npm package, where `error` and `details` are texts.
        details = json.dumps(found.details, ensure_ascii=False)
        body |= {"error": found.message, "code": found.code, "details": details}
    response = json_reply(body, found.status)
    response.headers.update(found.headers)
    response.vary.add("User-Agent")
    return response


# Routes only of the hosted service, and unknown routes: 404 with similar routes.

_PARAMETER: Final = re.compile(r"<(?:[^:<>]+:)?([^<>]+)>")
# Alternatives for calls of the clients that are not supported.
ALTERNATIVES: Final = {
    "plans": "Plans are stored but not run. Use a scenario instead.",
    "keymaps": "Key maps support only entries and lookups.",
    "integrations": "Create a connection (POST /connections) or an endpoint (POST /endpoints) to that system.",
    "shortcuts": "Shortcuts are only available on the pages of the application.",
    "feedback": "Feedback is not supported.",
    "endpoints/auth-resolve": "Credentials never leave the service: send rows to the endpoint by POST /export/rest.",
    "users": "Invite users with POST /teamMembers/invite, and remove them with DELETE /teamMembers/{id}.",
    "teams": "Teams can only be created and renamed. To delete their projects, use DELETE /projects/{id}.",
    "fields": "Use the native API for the catalogue: GET {origin}/field-types.",
    "scenarios": "Use the native API for scenarios: POST {origin}/scenarios/{id}/run.",
}
_NONE: Final = ("compat.root", "compat.root_slash", "compat.unknown")
_METHODS: Final = ["GET", "POST", "PUT", "PATCH", "DELETE"]


@call(ROOT, _METHODS, scope="self", endpoint="root")
@call(f"{ROOT}/", _METHODS, scope="self", endpoint="root_slash")
def root() -> Response:
    """No call has an empty path."""
    raise _unknown_route_error("")


@call(f"{ROOT}/<path:rest>", _METHODS, scope="self")
def unknown(rest: str) -> Response:
    """Reject unknown routes."""
    raise _unknown_route_error(rest)


def _unknown_route_error(path: str) -> ApiError:
    requested = f"{request.method} /{path}"[:200]
    calls: dict[str, list[str]] = {}
    for rule in current_app.url_map.iter_rules():
        if rule.endpoint.startswith("compat.") and rule.endpoint not in _NONE:
            pattern = _PARAMETER.sub(r"{\1}", rule.rule.removeprefix(ROOT))
            calls.setdefault(pattern, []).extend(sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}))
    route_path = f"/{path}".rstrip("/")
    same = [
        item for item in calls if re.fullmatch(re.sub(r"\\\{[^}]*\\\}", "[^/]+", re.escape(item)), route_path)
    ]
    similar = get_close_matches(route_path[:100], calls, n=3, cutoff=0.6)
    found = dict.fromkeys([*same, *similar])
    suggestions = [f"{method} {item}" for item in found for method in dict.fromkeys(calls[item])][:5]
    instead = ALTERNATIVES.get(path) or ALTERNATIVES.get(path.partition("/")[0])
    hint = instead or (
        f"Did you mean `{suggestions[0]}`?" if suggestions else "The guide lists the available calls."
    )
    return ApiError(
        "not_found", f"The call `{requested}` does not exist. {hint}", {"hint": hint, "near": suggestions}
    )
