"""Secrets: set, listed by name, removed; their values never come back."""

from __future__ import annotations

from typing import Annotated

from flask import Blueprint, Response, url_for
from pydantic import Field

from webapp import limits
from webapp.errors import ApiError
from webapp.services import secrets
from webapp.services.actors import Actor
from webapp.views.inputs import Input, ListQuery
from webapp.views.outputs import Listed, Output
from webapp.views.reply import reply
from webapp.views.routes import route

bp = Blueprint("secrets", __name__)
PAGE = "secrets.html"


class SecretIn(Input):
    """A secret's new value."""

    value: Annotated[str, Field(min_length=1, max_length=limits.MAX_SECRET_CHARS)]


class NamedSecretIn(SecretIn):
    """A secret's name and value, as its form sends them."""

    name: str


class SecretOut(Output):
    """A secret, without its value."""

    id: str
    name: str
    created_by: str | None
    created_at: str
    updated_at: str


def _again(actor: Actor, error: ApiError) -> Response:
    data = secrets.listing(actor).as_dict(secrets.as_json)
    return reply(data, template=PAGE, error=error, status=error.status)


@route(bp, "/secrets", scope="secrets", query=ListQuery, returns=Listed(SecretOut))
def index(actor: Actor, query: ListQuery) -> Response:
    """List the workspace's secrets, newest first; `q` searches names."""
    page = secrets.listing(actor, **query.model_dump())
    return reply(page.as_dict(secrets.as_json), template=PAGE, query=query)


@route(
    bp,
    "/secrets/<name>",
    ["PUT"],
    scope="self",  # a run may set those its scenario names; of others the service asks for `secrets`
    body=SecretIn,
    returns=SecretOut,
    also={201: SecretOut},
    errors=("unavailable",),
)
def put(actor: Actor, name: str, body: SecretIn) -> Response:
    """Set a secret: a new one (201), or another value for one that is there. Connections use it at once."""
    secret, fresh = secrets.put(actor, name, body.value)
    told = f"The secret {name} is stored."
    return reply(
        secrets.as_json(secret), status=201 if fresh else 200, see=url_for("secrets.index"), flashed=told
    )


@route(bp, "/secrets", ["POST"], scope="secrets", body=NamedSecretIn, programs=False, hidden=True, on_fault=_again)
def store(actor: Actor, body: NamedSecretIn) -> Response:
    """Set a secret from its form."""
    secret, _ = secrets.put(actor, body.name.strip(), body.value)
    return reply(see=url_for("secrets.index"), flashed=f"The secret {secret.name} is stored.")


@route(bp, "/secrets/<name>", ["DELETE"], scope="secrets", returns=SecretOut, errors=("in_use",))
def delete(actor: Actor, name: str) -> Response:
    """Remove a secret for good, unless a connection or a scenario uses it."""
    secret = secrets.delete(actor, name)
    return reply(secrets.as_json(secret), see=url_for("secrets.index"), flashed=f"The secret {name} is gone.")
