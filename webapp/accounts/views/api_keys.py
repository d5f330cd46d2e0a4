"""API keys."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Final, Literal

from flask import Blueprint, Response, g, request, url_for
from pydantic import Field

from webapp import clock, limits, pagination
from webapp.access import tenancy
from webapp.access.actors import KEY_SCOPES, Actor
from webapp.access.models import ApiKey
from webapp.accounts.services import api_keys
from webapp.errors import ApiError
from webapp.security.keys import PREFIX
from webapp.web.forms.page_form import Control, FormSpec
from webapp.web.inputs import Input, ListQuery, Query, Timestamp
from webapp.web.responses import ListOf, OptionalTime, Output, Scopes, Time, check_if_match, reply
from webapp.web.routing import route

bp = Blueprint("api_keys", __name__)


class ApiKeyIn(Input):
    """A new key.

    Without `scopes`: all permissions of the creator's role. Without `project_id`: the current project.
    """

    name: Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS, pattern=r"\S")]
    scopes: list[Literal[KEY_SCOPES]] | None = None  # type: ignore[valid-type]  # for pydantic
    expires_at: Timestamp | None = None
    project_id: str | None = None


KEY: Final = FormSpec(
    ApiKeyIn,
    {
        "name": Control(
            "Name", placeholder="Who or what uses the key, such as nightly build", autocomplete="off"
        ),
        "scopes": Control("Scopes", type="checkboxes", hint="No scopes selected: read only."),
        "expires_at": Control("Expires"),
        "project_id": Control("Project"),
    },
)
_EXPIRY: Final = (
    (1, "In a day"),
    (7, "In a week"),
    (30, "In 30 days"),
    (90, "In 90 days"),
    (365, "In a year"),
)
_USUAL_EXPIRY: Final = "In 90 days"


class KeyQuery(ListQuery):
    """`created_by`: keys of one user. `unused=true`: valid keys that were not used for 90 days."""

    created_by: str | None = None
    unused: bool | None = None


class RevokeQuery(Query):
    """Filter by the users of the keys."""

    created_by: str


class ApiKeyOut(Output):
    """A key without its secret.

    `prefix` is the visible part of the key; `last_used_address` is the address of the last call; `unused`: the key is
    valid but was not used for 90 days.
    """

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
    last_used_address: str | None
    unused: bool
    revoked_at: OptionalTime


class RevokedOut(Output):
    """The revoked keys."""

    items: list[ApiKeyOut]
    total: int


class NewApiKeyOut(ApiKeyOut):
    """The response to the creation, the only one that contains the key."""

    key: str


def as_dict(key: ApiKey) -> dict[str, Any]:
    """Return a key as JSON."""
    return ApiKeyOut.from_row(key, prefix=f"{PREFIX}_{key.handle}", unused=api_keys.is_unused(key))


def _listed(actor: Actor, query: KeyQuery) -> dict[str, Any]:
    found = pagination.paginate(
        api_keys.listing(actor, created_by=query.created_by or None, unused=query.unused),
        name="api-keys",
        id_column=ApiKey.id,
        cursor=query.cursor,
        limit=query.limit,
        search=(query.q, ApiKey.name),
        context=f"{actor.workspace_id} {actor.user_id} {query.created_by} {query.unused}",
    )
    return found.as_dict(as_dict)


def _page(actor: Actor, data: Any, query: KeyQuery, error: ApiError | None = None, **more: Any) -> Response:
    if g.face == "program":
        return reply(data, **more)
    projects = tenancy.accessible_projects(actor)
    # When a key can expire, counted from now. A time that was sent is shown as the option that it was.
    now = clock.now().replace(microsecond=0)
    options = [(now + timedelta(days=days), text) for days, text in _EXPIRY]
    sent_expiry = request.form.get("expires_at", "") if error else ""
    try:
        chosen = datetime.fromisoformat(sent_expiry)
        matching_labels = [text for moment, text in options if abs(moment - chosen) < timedelta(hours=12)]
    except (TypeError, ValueError):
        matching_labels = []
    expiries = [
        ("", "Never"),
        *(
            (sent_expiry if text in matching_labels else str(clock.to_text(moment)), text)
            for moment, text in options
        ),
    ]
    form = KEY.render(
        {
            "project_id": actor.project_id,
            "scopes": ["read"],
            "expires_at": next(moment for moment, text in expiries if text == _USUAL_EXPIRY),
        },
        sent=request.form if error else None,
        error=error,
        choices={
            "expires_at": expiries,
            "project_id": [(project.id, project.name) for project in projects],
        },
    )
    makers = {maker.id: maker for maker in api_keys.creators(actor)}
    return reply(
        data, template="api_keys.html", query=query, form=form, projects=projects, makers=makers, **more
    )


def _page_with_error(actor: Actor, error: ApiError) -> Response:
    query = KeyQuery()
    return _page(actor, _listed(actor, query), query, error)


@route(bp, "/api-keys", scope="self", query=KeyQuery, returns=ListOf(ApiKeyOut), errors=["forbidden"])
def index(actor: Actor, query: KeyQuery) -> Response:
    """List your own keys, or for admins all keys of the workspace."""
    return _page(actor, _listed(actor, query), query)


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
    on_fault=_page_with_error,
)
def create(actor: Actor, body: ApiKeyIn) -> Response:
    """Create a key. Only this response contains it."""
    # A forgotten choice on the page must not give a key with all permissions.
    scopes = body.scopes if g.face == "program" or body.scopes else ["read"]
    key, text = api_keys.create(
        actor,
        body.name,
        api_version=g.api_version,
        scopes=scopes,
        expires_at=body.expires_at,
        project_id=body.project_id,
    )
    data = {**as_dict(key), "key": text}
    if g.face == "program":
        return reply(data, status=201, headers={"Location": url_for("api_keys.show", key_id=key.id)})
    # Shown on this very page, never put into a redirect, a cookie or a second request.
    query = KeyQuery()
    return _page(actor, _listed(actor, query), query, made=data, status=201)


@route(
    bp, "/api-keys", ["DELETE"], scope="self", query=RevokeQuery, returns=RevokedOut,
    errors=["forbidden", "not_found"],
)  # fmt: skip
def revoke_all(actor: Actor, query: RevokeQuery) -> Response:
    """Revoke all keys of a user immediately and permanently, for example when they leave."""
    revoked = [as_dict(key) for key in api_keys.revoke_all(actor, query.created_by)]
    message = f"{len(revoked)} {'key is' if len(revoked) == 1 else 'keys are'} revoked."
    see = url_for("api_keys.index", created_by=query.created_by)
    return reply({"items": revoked, "total": len(revoked)}, redirect_to=see, flash_message=message)


@route(bp, "/api-keys/<key_id>", scope="self", returns=ApiKeyOut, errors=["forbidden"])
def show(actor: Actor, key_id: str) -> Response:
    """Get a key."""
    return reply(as_dict(api_keys.get(actor, key_id)), send_etag=True)


@route(
    bp,
    "/api-keys/<key_id>",
    ["DELETE"],
    scope="self",
    returns=ApiKeyOut,
    errors=["forbidden", "version_conflict"],
)
def revoke(actor: Actor, key_id: str) -> Response:
    """Revoke a key immediately and permanently."""
    key = api_keys.get(actor, key_id, lock=True)
    check_if_match(as_dict(key))
    api_keys.revoke(actor, key)
    return reply(
        as_dict(key), redirect_to=url_for("api_keys.index"), flash_message=f"Key {key.name} is revoked."
    )
