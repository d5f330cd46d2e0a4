"""Responses: one function for API clients and browsers.

    return reply(data, template="things/show.html", status=201, see=url_for("things.show", thing_id=...))

A program gets `data` as JSON with `status`. A browser gets `template` (a page that extends `base.html`), rendered with
`data` and all other keyword arguments. After a form has changed something, it is redirected to `redirect_to` instead.
An htmx request gets only `block`, a named block of the same page. Without a template, a browser shows the data itself.
With `tag=True`, the ETag of a single resource is sent, and If-None-Match can be answered with 304.

How a new resource is added:

1. `services/things.py`: functions that take an Actor first, load by `tenancy.get` / `tenancy.listing`, end
   their work with `audit.record(..., join=True)` and `db.session.commit()`, and raise ApiError.
2. `views/things.py`: a blueprint; inputs as `inputs.Input`, outputs as pydantic models; one function a route with
   `routes.route(...)`; `check_if_match(data)` before a PATCH, PUT or DELETE acts. Add it to `views.BLUEPRINTS`.
3. `templates/things/*.html`, where people see it. A form is a `forms.page_form.FormSpec` of the input, drawn with
   `ui.summary` and `ui.field`; `on_fault` draws it again with its errors.
4. `tests/security/cases_things.py`: who may do what; the matrix test fails while a route has no line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final

import orjson
from flask import Response, current_app, flash, g, redirect, render_template, request
from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, WithJsonSchema

from webapp import clock
from webapp.errors import ApiError

JSON: Final = "application/json"
# Attributes that can change without a change of the resource, which are excluded from its ETag.
_VOLATILE: Final = frozenset({"last_used_at", "last_used_address", "last_seen_at", "next_run_at", "unused"})


def reply(
    data: Any = None,
    *,
    template: str | None = None,
    block: str | None = None,
    status: int = 200,
    redirect_to: str | None = None,
    flash_message: str | None = None,
    send_etag: bool = False,
    headers: Mapping[str, str] | None = None,
    **context: Any,
) -> Response:
    """Return the response in the client's format; see the module. `flash_message` is a message for the next page."""
    if g.face == "program":
        response = json_reply(data, status)
        if send_etag:
            response.headers["ETag"] = etag(data)
            response = _as_not_modified(response)
    else:
        response = _html_response(data, template, block, status, redirect_to, flash_message, context)
    for name, value in (headers or {}).items():
        if not (name == "Location" and g.face == "person"):  # browsers are redirected to `redirect_to`
            response.headers[name] = value
    return response


def see_other(address: str) -> Response:
    """Return a redirect that the browser follows with GET (RFC 9110, 15.4.4)."""
    response = redirect(address, 303)
    assert isinstance(response, Response)  # `response_class` of the application
    return response


def json_reply(data: Any, status: int = 200) -> Response:
    """Return data as a JSON response; without a body for status 204."""
    if status == 204:
        return Response(status=204)
    try:
        raw = orjson.dumps(data)
    except TypeError:  # integers beyond 64 bits, which an error may repeat
        raw = json.dumps(data, ensure_ascii=False).encode()
    return Response(raw, status, mimetype=JSON)


def _html_response(
    data: Any,
    template: str | None,
    block: str | None,
    status: int,
    redirect_to: str | None,
    flash_message: str | None,
    context: Mapping[str, Any],
) -> Response:
    htmx = "HX-Request" in request.headers
    if flash_message and redirect_to and not (htmx and block):
        flash(flash_message)
    if htmx and block and template:
        return Response(render_block(template, block, data=data, flashed=flash_message, **context), status)
    if redirect_to is not None:
        if htmx:
            return Response(status=204, headers={"HX-Redirect": redirect_to})
        return see_other(redirect_to)
    if status == 204:
        return Response(status=204)
    # Resources without a page show their data.
    found = current_app.jinja_env.select_template([*([template] if template else []), "plain.html"])
    return Response(render_template(found, data=data, **context), status, mimetype="text/html")


def render_block(template: str, block: str, **context: Any) -> str:
    """Return one named block of a page, rendered like the page."""
    found = current_app.jinja_env.get_template(template)
    current_app.update_template_context(context)
    return "".join(found.blocks[block](found.new_context(context)))


def error_response(error: ApiError) -> Response:
    """Return an error in the client's format: JSON, or an HTML page for browsers."""
    if getattr(g, "face", "program") == "program":
        response = json_reply(error.as_dict(), error.status)
    elif "HX-Request" in request.headers:
        response = Response(render_block("error.html", "message", error=error), error.status)
    else:
        response = Response(render_template("error.html", error=error), error.status, mimetype="text/html")
    response.headers.update(error.headers)
    return response


def etag(data: Any) -> str:
    """Return a strong ETag of the JSON form of a resource."""
    stable = {k: v for k, v in data.items() if k not in _VOLATILE} if isinstance(data, Mapping) else data
    digest = hashlib.blake2b(orjson.dumps(stable, option=orjson.OPT_SORT_KEYS), digest_size=12)
    return f'"{digest.hexdigest()}"'


def check_if_match(data: Any) -> None:
    """Raise `version_conflict` if If-Match does not match `data` (RFC 9110, 13.1.1). Call this before the action.

    Load the row with `tenancy.get(..., lock=True)` first, so that it cannot change between this check and the action.
    """
    if not request.headers.get("If-Match"):
        return
    current = etag(data)
    if not request.if_match.contains(current.strip('"')):
        raise ApiError("version_conflict", details={"etag": current})


def _as_not_modified(response: Response) -> Response:
    """Return 304 if the client already has this version (RFC 9110, section 13.1.2)."""
    if (
        request.method in ("GET", "HEAD")
        and response.status_code == 200
        and "If-None-Match" in request.headers
    ):
        tag = response.headers["ETag"]
        if request.if_none_match.contains_weak(tag.strip('"')):
            return Response(status=304, headers={"ETag": tag})
    return response


# Responses as pydantic models: the same declaration serializes a response and documents it in OpenAPI.

# A time as RFC 3339 in UTC ending in `Z`.
Time = Annotated[
    datetime,
    PlainSerializer(clock.to_text, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
OptionalTime = Annotated[
    datetime | None,
    PlainSerializer(clock.to_text, return_type=str | None),
    WithJsonSchema({"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]}),
]
Scopes = Annotated[list[str] | None, BeforeValidator(lambda v: None if v is None else list(v))]


class Output(BaseModel):
    """A response. `Output.from_row(row)` reads a database row, or any object with these attributes."""

    model_config = ConfigDict(from_attributes=True, extra="ignore")
    listed: ClassVar[type[BaseModel] | None] = None

    @classmethod
    def from_row(cls, row: Any, **more: Any) -> dict[str, Any]:
        """Return the JSON object of a row; `more` are values that the row does not have."""
        if more:
            known = {
                name: getattr(row, name)
                for name in cls.model_fields
                if name not in more and hasattr(row, name)
            }
            return cls.model_validate({**known, **more}).model_dump()
        return cls.model_validate(row).model_dump()


class ListOf:
    """`ListOf(ThingOut)` as `returns=` of a list route: `{items, next_cursor, total}`."""

    def __init__(self, item: type[BaseModel]) -> None:
        self.item = item


class RawSchema:
    """`RawSchema(schema)` as `returns=`: an explicit JSON Schema, for responses that no model describes."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema


def requested_range(size: int, etag: str) -> tuple[int, int]:
    """Return the requested range of bytes: start, and end (exclusive).

    Multiple ranges, other units, or an If-Range of another file return the whole file (RFC 9110, section 14.2).
    Error: invalid_request with status 416 for a range outside the file.
    """
    requested = request.range
    if requested is None or requested.units != "bytes" or len(requested.ranges) != 1:
        return 0, size
    if "If-Range" in request.headers and request.if_range.etag != etag.strip('"'):
        return 0, size
    found = requested.range_for_length(size)
    if found is None:
        headers = {"Content-Range": f"bytes */{size}"}
        raise ApiError(
            "invalid_request", f"The file has {size} bytes.", {"bytes": size}, status=416, headers=headers
        )
    return found
