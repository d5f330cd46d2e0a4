"""API keys."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from flask import Blueprint, Response, g, url_for
from pydantic import Field

from webapp import limits
from webapp.models import ApiKey
from webapp.security.keys import PREFIX
from webapp.services import api_keys, paging, tenancy
from webapp.services.actors import KEY_SCOPES, Actor
from webapp.views.inputs import Input, ListQuery, Moment
from webapp.views.outputs import Listed, OptionalTime, Output, Scopes, Time
from webapp.views.reply import matching, reply
from webapp.views.routes import route

bp = Blueprint("api_keys", __name__)


class ApiKeyIn(Input):
    """A new key. `scopes` left out: all that the maker's role allows. `project_id` left out: the present one."""

    name: Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS, pattern=r"\S")]
    scopes: list[Literal[KEY_SCOPES]] | None = None  # type: ignore[valid-type]
    expires_at: Moment | None = None
    project_id: str | None = None


class ApiKeyOut(Output):
    """A key without its secret. `prefix` is what can be shown of it."""

    id: str
    name: str
    prefix: str
    project_id: str
    scopes: Scopes
    api_version: str
    created_by: str
    created_at: Time
    expires_at: OptionalTime
    last_used_at: OptionalTime
    revoked_at: OptionalTime


class NewApiKeyOut(ApiKeyOut):
    """The answer to a creation: the only one that holds the key itself."""

    key: str


def as_dict(key: ApiKey) -> dict[str, Any]:
    """A key as JSON."""
    return ApiKeyOut.of(key, prefix=f"{PREFIX}_{key.handle}")


def _shown(actor: Actor, query: ListQuery) -> dict[str, Any]:
    found = paging.page(
        api_keys.listing(actor),
        name="api-keys",
        identity=ApiKey.id,
        cursor=query.cursor,
        limit=query.limit,
        search=(query.q, ApiKey.name),
        context=f"{actor.workspace_id} {actor.user_id}",
    )
    return found.as_dict(as_dict)


def _page(actor: Actor, data: Any, **more: Any) -> Response:
    projects = tenancy.projects_of(actor)
    return reply(data, template="api_keys.html", projects=projects, key_scopes=KEY_SCOPES, **more)


def _again(actor: Actor, error: Any) -> Response:
    return _page(actor, _shown(actor, ListQuery()), error=error)


@route(bp, "/api-keys", scope="self", query=ListQuery, returns=Listed(ApiKeyOut), errors=["forbidden"])
def index(actor: Actor, query: ListQuery) -> Response:
    """List keys: one's own, or all of the workspace for admins."""
    return _page(actor, _shown(actor, query), query=query)


@route(
    bp,
    "/api-keys",
    ["POST"],
    scope="self",
    body=ApiKeyIn,
    returns=NewApiKeyOut,
    status=201,
    idempotent=True,
    errors=["forbidden"],
    on_fault=_again,
)
def create(actor: Actor, body: ApiKeyIn) -> Response:
    """Make a key. Its text is in this answer and nowhere else."""
    key, text = api_keys.create(
        actor,
        body.name,
        api_version=g.api_version,
        scopes=body.scopes,
        expires_at=body.expires_at,
        project_id=body.project_id,
    )
    data = {**as_dict(key), "key": text}
    if g.face == "program":
        return reply(data, status=201, headers={"Location": url_for("api_keys.show", key_id=key.id)})
    # Shown on this very page, never put into a redirect, a cookie or a second request.
    return _page(actor, _shown(actor, ListQuery()), made=data, status=201)


@route(bp, "/api-keys/<key_id>", scope="self", returns=ApiKeyOut, errors=["forbidden"])
def show(actor: Actor, key_id: str) -> Response:
    """Read one key."""
    return reply(as_dict(api_keys.get(actor, key_id)), tag=True)


@route(
    bp,
    "/api-keys/<key_id>",
    ["DELETE"],
    scope="self",
    returns=ApiKeyOut,
    errors=["forbidden", "version_conflict"],
)
def revoke(actor: Actor, key_id: str) -> Response:
    """Revoke a key: at once, everywhere, for good."""
    key = api_keys.get(actor, key_id, lock=True)
    matching(as_dict(key))
    api_keys.revoke(actor, key)
    return reply(as_dict(key), see=url_for("api_keys.index"), flashed=f"Key {key.name} is revoked.")
