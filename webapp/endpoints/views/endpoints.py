"""Routes of endpoints: saved requests that rows are sent with."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from flask import Blueprint, Response, flash, g, url_for
from pydantic import Field

from webapp import limits
from webapp.access.actors import Actor
from webapp.connections.services import connections
from webapp.connectors.http.request_template import HeaderEncoding
from webapp.endpoints import services
from webapp.errors import ApiError
from webapp.web.inputs import READ_ONLY, Input, ListQuery, merge_faults
from webapp.web.responses import ListOf, Output, check_if_match, reply
from webapp.web.routing import route

bp = Blueprint("endpoints", __name__)
ENDPOINT_PATH = "/endpoints/<endpoint_id>"
_IGNORED_KEYS = READ_ONLY | {"project_id", "team_id"}
Name = Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS, pattern=r"\S")]
Text = Annotated[str, Field(max_length=limits.HTTP_URL_CHARS)]


class EndpointQuery(ListQuery):
    """Which endpoints. `q` searches names."""

    connection_id: str | None = None


class EndpointChange(Input):
    """The definition of an endpoint. `{{field}}` in url, path, headers, query and body is a value of the row."""

    read_only = _IGNORED_KEYS

    name: Name | None = None
    method: Literal["POST", "PUT", "PATCH", "DELETE", "GET"] | None = None
    url: Text | None = Field(
        None, description=("A complete URL, as an alternative to connection_id and path.")
    )
    connection_id: str | None = Field(
        None, description="A REST connection, whose URL and credentials are used."
    )
    path: Text | None = Field(None, description="A path on that connection.")
    headers: dict[str, Any] | None = None
    header_encoding: str | None = Field(
        None, description="How row values are encoded in headers: none (default), rfc8187 or percent."
    )
    query_params: dict[str, Any] | None = None
    body: dict[str, Any] | list[Any] | None = Field(None, description="Default: the row.")
    auth: dict[str, Any] | None = Field(None, description="Only with url.")
    environment: Literal["dev", "test", "prod"] | None = Field(None, description="Only with url.")
    push_mode: str | None = None
    wrapper_key: str | None = None
    batch_size: int | None = None
    retry: dict[str, Any] | None = None
    parallel: int | None = None
    rate_per_second: float | None = None
    capture: dict[str, Any] | None = None
    delete_path: str | None = None
    idempotent: bool | None = None

    def values(self) -> dict[str, Any]:
        """Return the values that the request contains."""
        return self.model_dump(exclude_unset=True)


class EndpointIn(EndpointChange):
    """A new endpoint."""

    read_only = _IGNORED_KEYS

    name: Name


class EndpointOut(Output):
    """An endpoint. Secret parts are `********`."""

    id: str
    name: str
    method: str
    url: str | None
    connection_id: str | None
    path: str | None
    headers: dict[str, Any]
    header_encoding: HeaderEncoding
    query_params: dict[str, Any]
    body: Any
    auth: dict[str, Any] | None
    push_mode: str | None
    wrapper_key: str | None
    batch_size: int | None
    retry: dict[str, Any] | None
    parallel: int | None
    rate_per_second: float | None
    capture: dict[str, Any] | None
    delete_path: str | None
    idempotent: bool | None
    environment: str
    project_id: str
    team_id: str
    created_by: str | None
    created_at: str
    updated_at: str
    deleted_at: str | None


@route(bp, "/endpoints", scope="read", query=EndpointQuery, returns=ListOf(EndpointOut))
def index(actor: Actor, query: EndpointQuery) -> Response:
    """List the endpoints of the project, newest first."""
    page = connections.list_endpoints(actor, **query.model_dump())
    return reply(page.as_dict(services.as_json), template="endpoints/list.html", block="list", query=query)


def _more_errors(actor: Actor, error: ApiError, submitted: Any) -> ApiError:
    def check(body: EndpointIn) -> None:
        services.prepare(actor, body.values())

    return merge_faults(error, submitted, EndpointIn, check)


def _more_errors_of_change(actor: Actor, error: ApiError, submitted: Any, endpoint_id: str) -> ApiError:
    found = connections.get_endpoint(actor, endpoint_id, "write")
    return merge_faults(
        error, submitted, EndpointChange, lambda body: services.check(actor, found, body.values())
    )


@route(
    bp,
    "/endpoints",
    ["POST"],
    scope="write",
    body=EndpointIn,
    returns=EndpointOut,
    status=201,
    idempotent=True,
    more_faults=_more_errors,
)
def create(actor: Actor, body: EndpointIn) -> Response:
    """Create an endpoint, with its own URL or on a REST connection."""
    endpoint = services.create(actor, body.values())
    address = url_for(".show", endpoint_id=endpoint.id)
    return reply(
        services.as_json(endpoint),
        status=201,
        redirect_to=address,
        send_etag=True,
        headers={"Location": address},
    )


@route(bp, ENDPOINT_PATH, scope="read", returns=EndpointOut)
def show(actor: Actor, endpoint_id: str) -> Response:
    """Get an endpoint."""
    return reply(
        services.as_json(connections.get_endpoint(actor, endpoint_id)),
        template="endpoints/show.html",
        send_etag=True,
    )


@route(
    bp, ENDPOINT_PATH, ["PATCH"], scope="write", body=EndpointChange, returns=EndpointOut, errors=("version_conflict",),
    more_faults=_more_errors_of_change,
)  # fmt: skip
def change(actor: Actor, endpoint_id: str, body: EndpointChange) -> Response:
    """Change an endpoint. A secret sent back as `********` is kept."""
    found = connections.get_endpoint(actor, endpoint_id, "write", lock=True)
    check_if_match(services.as_json(found))
    changed = services.change(actor, found, body.values())
    return reply(
        services.as_json(changed), redirect_to=url_for(".show", endpoint_id=endpoint_id), send_etag=True
    )


@route(
    bp, ENDPOINT_PATH, ["DELETE"], scope="write", returns=EndpointOut, errors=("version_conflict", "in_use")
)
def delete(actor: Actor, endpoint_id: str) -> Response:
    """Delete an endpoint. It can be restored for 30 days."""
    found = connections.get_endpoint(actor, endpoint_id, "write", lock=True)
    check_if_match(services.as_json(found))
    services.delete(actor, found)
    if g.face == "person":  # the category of a message is the URL of its Undo button
        flash(f"Endpoint {found.name} deleted", url_for(".restore", endpoint_id=endpoint_id))
    return reply(services.as_json(found), redirect_to=url_for(".index"))


@route(bp, f"{ENDPOINT_PATH}/restore", ["POST"], scope="write", returns=EndpointOut)
def restore(actor: Actor, endpoint_id: str) -> Response:
    """Restore a deleted object."""
    found = connections.get_endpoint(actor, endpoint_id, "write", lock=True, deleted=True)
    services.restore(actor, found)
    return reply(
        services.as_json(found), redirect_to=url_for(".show", endpoint_id=endpoint_id), send_etag=True
    )
