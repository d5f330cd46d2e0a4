"""Generate the OpenAPI 3.1 document from the declarations of the routes and their pydantic models.

The document contains only what the routes declare, so it always matches the service.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final, Literal

import orjson
from flask import Blueprint, Flask, Response, current_app
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from webapp.access.models import NEWEST_VERSION
from webapp.errors import CODES
from webapp.extensions import application
from webapp.web.responses import JSON, RawSchema
from webapp.web.routing import route

_REF: Final = "#/components/schemas/{model}"
_PATH_PARAMETER: Final = re.compile(r"<(?:(?P<kind>[^:<>]+):)?(?P<name>[^<>]+)>")
_TYPES: Final = {"int": {"type": "integer", "minimum": 0}}
COMMON_ERRORS: Final = (
    "internal_error",
    "unavailable",
    "rate_limited",
    "https_required",
    "unsupported_version",
    "uri_too_long",
    "headers_too_large",
)

ERROR_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "description": "Every 4xx and 5xx response. Match on `code`; `message` is for display and may change.",
    "required": ["error"],
    "additionalProperties": False,
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "details"],
            "additionalProperties": False,
            "properties": {
                "code": {"type": "string", "enum": sorted(CODES)},
                "message": {"type": "string"},
                "details": {
                    "type": "object",
                    "properties": {
                        "fields": {"type": "array", "items": {"$ref": _REF.format(model="Fault")}},
                        "request_id": {"type": "string"},
                        "reason": {"type": "string"},
                        "needs": {"type": "string"},
                    },
                },
            },
        }
    },
}
FAULT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["path", "code", "message"],
    "properties": {
        **{name: {"type": "string"} for name in ("path", "code", "message", "hint")},
        "position": {"type": "integer", "description": "Position in a formula, in characters from 1."},
    },
}
_IDEMPOTENCY: Final = (
    "Header `Idempotency-Key` (1 to 255 visible ASCII characters): the same key with the same request "
    "takes effect once in 24 hours; later calls get the first response, with `Idempotent-Replayed: "
    "true`."
)
_IF_MATCH: Final = "Header `If-Match`: act only if the resource still has this ETag, otherwise 412."
HEADERS: Final = {
    "X-Request-Id": "The request ID: the one that the caller sent, if it is valid.",
    "X-RateLimit-Limit": "Requests per minute of the workspace.",
    "X-RateLimit-Remaining": "Number of remaining requests.",
    "X-RateLimit-Reset": "When the next request becomes available, in seconds since 1970.",
    "Api-Version": "The API version of this response.",
}


def build(app: Flask, version: str) -> dict[str, Any]:
    """Return the document of all routes for API clients. It is cached: do not change it."""
    return _build(tuple((rule, d) for rule, d in declared_routes(app) if not d.hidden), version)


@lru_cache(maxsize=2)
def _build(found: tuple[tuple[str, Any], ...], version: str) -> dict[str, Any]:
    bodies = {declaration.body for _, declaration in found}
    models: dict[type[BaseModel], Literal["validation", "serialization"]] = {}
    for _, declaration in found:
        returned = getattr(declaration.returns, "item", declaration.returns)
        for model in (declaration.body, returned, *declaration.other_responses.values()):
            if isinstance(model, type) and issubclass(model, BaseModel):
                models[model] = "validation" if model in bodies else "serialization"
    _, definitions = models_json_schema(list(models.items()), ref_template=_REF)
    names = {model: model.__name__ for model in models}
    schemas = dict(definitions.get("$defs", {}))
    schemas |= {"Error": ERROR_SCHEMA, "Fault": FAULT_SCHEMA}
    paths: dict[str, dict[str, Any]] = {}
    for rule, declaration in found:
        for method in declaration.methods:
            paths.setdefault(path_of(rule), {})[method.lower()] = _operation(rule, declaration, method, names)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Rowsmith",
            "version": version,
            "description": "Test data from one template: files, databases, REST, OData, scenarios.",
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}, {"header": []}],
        "tags": [{"name": name} for name in sorted({d.tag for _, d in found})],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "headers": {
                name: {"description": text, "schema": {"type": "string"}} for name, text in HEADERS.items()
            },
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            },
        },
    }


def declared_routes(app: Flask) -> list[tuple[str, Any]]:
    """Return every `(rule, declaration)` of the application, sorted by URL."""
    found = {}
    for rule in app.url_map.iter_rules():
        declaration = getattr(app.view_functions[rule.endpoint], "declaration", None)
        if declaration is not None:
            found[rule.rule, rule.endpoint] = declaration
    return [(rule, declaration) for (rule, _), declaration in sorted(found.items())]


def path_of(rule: str) -> str:
    """Convert a rule of Flask to an OpenAPI path: `/things/<int:n>` -> `/things/{n}`."""
    return _PATH_PARAMETER.sub(lambda m: "{" + m["name"] + "}", rule)


def _operation(rule: str, declaration: Any, method: str, names: dict[type[BaseModel], str]) -> dict[str, Any]:
    slug = re.sub(r"[^a-z0-9]+", "_", path_of(rule).lower()).strip("_") or "root"
    operation: dict[str, Any] = {
        "operationId": f"{declaration.tag}_{slug}_{method.lower()}",
        "summary": declaration.summary.rstrip("."),
        "tags": [declaration.tag],
        "parameters": [*_path_parameters(rule), *_query_parameters(declaration.query)],
        "responses": _responses(declaration, rule, names),
        "x-scope": declaration.scope,
    }
    # The two request headers are described in text and not as parameters: tools that create requests from parameters
    # would send invented keys and tags, which are correctly rejected.
    paragraphs = [declaration.description] if declaration.description else []
    if declaration.idempotent:
        operation["x-idempotency-key"] = True
        paragraphs.append(_IDEMPOTENCY)
    if "version_conflict" in declaration.errors and method in ("PUT", "PATCH", "DELETE"):
        operation["x-if-match"] = True
        paragraphs.append(_IF_MATCH)
    if paragraphs:
        operation["description"] = "\n\n".join(paragraphs)
    if declaration.scope == "public":
        operation["security"] = []
    if declaration.body is not None:
        schema = {"$ref": _REF.format(model=names[declaration.body])}
        required = any(info.is_required() for info in declaration.body.model_fields.values())
        operation["requestBody"] = {"required": required, "content": {"application/json": {"schema": schema}}}
    if declaration.multipart is not None:
        body = operation.setdefault("requestBody", {"required": True, "content": {}})
        body["content"]["multipart/form-data"] = {"schema": declaration.multipart}
    return operation


def _path_parameters(rule: str) -> list[dict[str, Any]]:
    return [
        {
            "name": m["name"],
            "in": "path",
            "required": True,
            "schema": _TYPES.get(m["kind"] or "", {"type": "string"}),
        }
        for m in _PATH_PARAMETER.finditer(rule)
    ]


def _query_parameters(model: type[BaseModel] | None) -> list[dict[str, Any]]:
    if model is None:
        return []
    schema = model.model_json_schema(ref_template=_REF)
    return [
        {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", []),
            "schema": {key: value for key, value in part.items() if key != "title"},
        }
        for name, part in schema.get("properties", {}).items()
    ]


def _responses(declaration: Any, rule: str, names: dict[type[BaseModel], str]) -> dict[str, Any]:
    headers = {name: {"$ref": f"#/components/headers/{name}"} for name in HEADERS}
    success: dict[str, Any] = {"description": declaration.summary, "headers": headers}
    content: dict[str, Any] = {}
    schema = _response_schema(declaration.returns, names)
    if schema is not None:
        content["application/json"] = {"schema": schema}
    # An event stream is described by its text in `description`: tools read the schema as that of one event.
    content |= {
        kind: {"schema": {} if kind == "text/event-stream" else {"type": "string"}}
        for kind in declaration.produces
    }
    if content:
        success["content"] = content
    responses: dict[str, Any] = {str(declaration.status): success}
    for status, returns in declaration.other_responses.items():
        returned_content = {"application/json": {"schema": _response_schema(returns, names)}}
        first_line = str(returns.__doc__ or "").partition("\n")[0].rstrip(".")
        responses[str(status)] = {"description": first_line, "headers": headers, "content": returned_content}
    by_status: dict[int, list[str]] = {}
    for code in _error_codes(declaration, rule):
        by_status.setdefault(CODES[code][0], []).append(code)
    error = {"application/json": {"schema": {"$ref": _REF.format(model="Error")}}}
    for status, codes in sorted(by_status.items()):
        text = "; ".join(f"`{code}`: {CODES[code][1]}" for code in codes)
        responses[str(status)] = {"description": text, "headers": headers, "content": error}
    return responses


def _error_codes(declaration: Any, rule: str) -> list[str]:
    codes = [*declaration.errors, *COMMON_ERRORS, "invalid_request"]
    if declaration.scope != "public":
        codes += ["unauthenticated", "not_found"]  # not_found: also another workspace's X-Project-Id
    if declaration.scope not in ("public", "self"):
        codes.append("forbidden")
    if "<" in rule:
        codes.append("not_found")
    if declaration.body is not None or declaration.multipart is not None:
        codes += ["validation_error", "payload_too_large", "unsupported_media_type"]
    if declaration.idempotent:
        codes += ["validation_error", "idempotency_mismatch", "idempotency_in_progress"]
    return sorted(set(codes))


def _response_schema(returns: Any, names: dict[type[BaseModel], str]) -> dict[str, Any] | None:
    if returns is None:
        return None
    if isinstance(returns, type):
        return {"$ref": _REF.format(model=names[returns])}
    if hasattr(returns, "schema"):
        return dict(returns.schema)
    return {
        "type": "object",
        "required": ["items", "next_cursor", "total"],
        "properties": {
            "items": {"type": "array", "items": {"$ref": _REF.format(model=names[returns.item])}},
            "next_cursor": {"type": ["string", "null"]},
            "total": {"type": "integer"},
        },
    }


# The API's description of itself.

bp = Blueprint("documents", __name__)
_DOCUMENT_KEY: Final = "rowsmith.openapi"


@route(bp, "/openapi.json", scope="public", returns=RawSchema({"type": "object"}))
def document() -> Response:
    """The OpenAPI document of this service."""
    raw: bytes | None = current_app.extensions.get(_DOCUMENT_KEY)
    if raw is None:
        app = application()
        raw = current_app.extensions[_DOCUMENT_KEY] = orjson.dumps(build(app, NEWEST_VERSION))
    return Response(raw, mimetype=JSON)
