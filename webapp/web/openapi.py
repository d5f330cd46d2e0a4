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
from webapp.web.responses import JSON, Raw
from webapp.web.routing import route

_REF: Final = "#/components/schemas/{model}"
_CONVERTED: Final = re.compile(r"<(?:(?P<kind>[^:<>]+):)?(?P<name>[^<>]+)>")
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
    "description": "Every 4xx and 5xx response. Match on `code`; `message` is for people and may change.",
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
    "X-Request-Id": "The request ID: the caller's own if it is well formed.",
    "X-RateLimit-Limit": "Requests per minute of the workspace.",
    "X-RateLimit-Remaining": "Number of remaining requests.",
    "X-RateLimit-Reset": "When the next request becomes available, in seconds since 1970.",
    "Api-Version": "The API version of this response.",
}


def build(app: Flask, version: str) -> dict[str, Any]:
    """The document of all routes that programs may use. It is cached: do not change it."""
    return _built(tuple((rule, d) for rule, d in declared(app) if not d.hidden), version)


@lru_cache(maxsize=2)
def _built(found: tuple[tuple[str, Any], ...], version: str) -> dict[str, Any]:
    bodies = {declaration.body for _, declaration in found}
    models: dict[type[BaseModel], Literal["validation", "serialization"]] = {}
    for _, declaration in found:
        returned = getattr(declaration.returns, "item", declaration.returns)
        for model in (declaration.body, returned, *declaration.also.values()):
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


def declared(app: Flask) -> list[tuple[str, Any]]:
    """Every `(rule, declaration)` of the application, in the order of the addresses."""
    out = {}
    for rule in app.url_map.iter_rules():
        declaration = getattr(app.view_functions[rule.endpoint], "declaration", None)
        if declaration is not None:
            out[rule.rule, rule.endpoint] = declaration
    return [(rule, declaration) for (rule, _), declaration in sorted(out.items())]


def path_of(rule: str) -> str:
    """`/things/<int:n>` -> `/things/{n}`."""
    return _CONVERTED.sub(lambda m: "{" + m["name"] + "}", rule)


def _operation(rule: str, declaration: Any, method: str, names: dict[type[BaseModel], str]) -> dict[str, Any]:
    slug = re.sub(r"[^a-z0-9]+", "_", path_of(rule).lower()).strip("_") or "root"
    out: dict[str, Any] = {
        "operationId": f"{declaration.tag}_{slug}_{method.lower()}",
        "summary": declaration.summary.rstrip("."),
        "tags": [declaration.tag],
        "parameters": [*_address(rule), *_query(declaration.query)],
        "responses": _responses(declaration, rule, names),
        "x-scope": declaration.scope,
    }
    # The two request headers are described in text and not as parameters: tools that create requests from parameters
    # would send invented keys and tags, which are correctly rejected.
    told = [declaration.description] if declaration.description else []
    if declaration.idempotent:
        out["x-idempotency-key"] = True
        told.append(_IDEMPOTENCY)
    if "version_conflict" in declaration.errors and method in ("PUT", "PATCH", "DELETE"):
        out["x-if-match"] = True
        told.append(_IF_MATCH)
    if told:
        out["description"] = "\n\n".join(told)
    if declaration.scope == "public":
        out["security"] = []
    if declaration.body is not None:
        schema = {"$ref": _REF.format(model=names[declaration.body])}
        required = any(info.is_required() for info in declaration.body.model_fields.values())
        out["requestBody"] = {"required": required, "content": {"application/json": {"schema": schema}}}
    if declaration.multipart is not None:
        body = out.setdefault("requestBody", {"required": True, "content": {}})
        body["content"]["multipart/form-data"] = {"schema": declaration.multipart}
    return out


def _address(rule: str) -> list[dict[str, Any]]:
    return [
        {
            "name": m["name"],
            "in": "path",
            "required": True,
            "schema": _TYPES.get(m["kind"] or "", {"type": "string"}),
        }
        for m in _CONVERTED.finditer(rule)
    ]


def _query(model: type[BaseModel] | None) -> list[dict[str, Any]]:
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
    good: dict[str, Any] = {"description": declaration.summary, "headers": headers}
    content: dict[str, Any] = {}
    schema = _schema(declaration.returns, names)
    if schema is not None:
        content["application/json"] = {"schema": schema}
    # An event stream is described by its text in `description`: tools read the schema as that of one event.
    content |= {
        kind: {"schema": {} if kind == "text/event-stream" else {"type": "string"}}
        for kind in declaration.produces
    }
    if content:
        good["content"] = content
    out: dict[str, Any] = {str(declaration.status): good}
    for status, returns in declaration.also.items():
        made = {"application/json": {"schema": _schema(returns, names)}}
        first_line = str(returns.__doc__ or "").partition("\n")[0].rstrip(".")
        out[str(status)] = {"description": first_line, "headers": headers, "content": made}
    by_status: dict[int, list[str]] = {}
    for code in _errors(declaration, rule):
        by_status.setdefault(CODES[code][0], []).append(code)
    error = {"application/json": {"schema": {"$ref": _REF.format(model="Error")}}}
    for status, codes in sorted(by_status.items()):
        text = "; ".join(f"`{code}`: {CODES[code][1]}" for code in codes)
        out[str(status)] = {"description": text, "headers": headers, "content": error}
    return out


def _errors(declaration: Any, rule: str) -> list[str]:
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


def _schema(returns: Any, names: dict[type[BaseModel], str]) -> dict[str, Any] | None:
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
_MADE: Final = "rowsmith.openapi"


@route(bp, "/openapi.json", scope="public", returns=Raw({"type": "object"}))
def document() -> Response:
    """The OpenAPI document of this service."""
    made: bytes | None = current_app.extensions.get(_MADE)
    if made is None:
        app = application()
        made = current_app.extensions[_MADE] = orjson.dumps(build(app, NEWEST_VERSION))
    return Response(made, mimetype=JSON)
