"""Routes of connections: create, change, verify, metadata."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from flask import Blueprint, Response, flash, g, url_for
from pydantic import Field

from webapp import limits
from webapp.access.actors import Actor
from webapp.connections.services import connections, inspection
from webapp.errors import TARGET_ERRORS, ApiError, ErrorCollector, Fault, validation_error
from webapp.versioning import services as versioning
from webapp.web.inputs import READ_ONLY, Input, ListQuery, Query, merge_faults
from webapp.web.responses import ListOf, Output, RawSchema, check_if_match, reply
from webapp.web.routing import route

bp = Blueprint("connections", __name__)
ONE = "/connections/<connection_id>"
Name = Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS, pattern=r"\S")]
Environment = Literal["dev", "test", "prod"]
_ERRORS = (*TARGET_ERRORS, "unavailable")


class ConnectionQuery(ListQuery):
    """Which connections. `q` searches names."""

    type: str | None = None


class ConnectionIn(Input):
    """A new connection.

    `connection_type` is an alias of `type`. A connection string can be given next to the settings.
    """

    read_only = READ_ONLY | {"verification", "metadata_at", "metadata_document"}

    name: Name
    type: Annotated[str, Field(max_length=50)] | None = None
    connection_type: Annotated[str, Field(max_length=50)] | None = None
    settings: dict[str, Any] = Field(default_factory=dict)
    connection_string: Annotated[str, Field(max_length=2_000)] | None = None
    environment: Environment = "dev"
    is_read_only: bool = Field(False, alias="read_only")
    project_id: str | None = None
    team_id: str | None = None

    def values(self) -> dict[str, Any]:
        """Return the settings, including the connection string."""
        if self.connection_string is None:
            return self.settings
        return {**self.settings, "connection_string": self.connection_string}


class ConnectionChange(Input):
    """The changes. `settings` must be complete; a secret sent back as `********` is kept."""

    read_only = READ_ONLY | {
        "verification", "metadata_at", "metadata_document", "type", "connection_type", "project_id", "team_id"
    }  # fmt: skip

    name: Name | None = None
    settings: dict[str, Any] | None = None
    connection_string: Annotated[str, Field(max_length=2_000)] | None = None
    environment: Environment | None = None
    is_read_only: bool | None = Field(None, alias="read_only")

    def changes(self) -> dict[str, Any]:
        """Return the changes, with the connection string among the settings."""
        changes = self.model_dump(exclude_unset=True, by_alias=True)
        text = changes.pop("connection_string", None)
        if text is not None:
            changes["settings"] = {**(changes.get("settings") or {}), "connection_string": text}
        return {key: value for key, value in changes.items() if value is not None}


class StageOut(Output):
    """The result of one stage of a verification."""

    name: str
    ok: bool
    code: str
    message: str
    hint: str
    ms: int


class VerificationOut(Output):
    """The result of a verification: `verified` or `failed`, stage by stage."""

    status: str
    stages: list[StageOut]
    response: dict[str, Any] | None
    checked_at: str


class ConnectionOut(Output):
    """A connection. Secret parts of its settings are `********`."""

    id: str
    name: str
    type: str
    connection_type: str
    settings: dict[str, Any]
    environment: str
    read_only: bool
    verification: VerificationOut | None
    metadata_at: str | None
    metadata_document: bool
    project_id: str
    team_id: str
    created_by: str | None
    created_at: str
    updated_at: str
    deleted_at: str | None


class MetadataQuery(Query):
    """`refresh`: read it again. `entity`: only these tables. `q`: only tables whose name contains this text.
    `limit`: maximum number of tables."""

    refresh: bool = False
    entity: Annotated[str, Field(max_length=500)] | None = None
    q: Annotated[str, Field(max_length=limits.MAX_QUERY_TEXT)] | None = None
    limit: Annotated[int, Field(ge=1, le=10_000)] | None = None


_METADATA = RawSchema(
    {
        "type": "object",
        "required": ["kind", "version", "entities", "total"],
        "properties": {
            "kind": {"type": "string"},
            "version": {"type": "string"},
            "total": {"type": "integer"},
            "metadata_at": {"type": ["string", "null"]},
            "entities": {"type": "array", "items": {"type": "object"}},
        },
    }
)


@route(
    bp,
    "/connections",
    scope="read",
    query=ConnectionQuery,
    returns=ListOf(ConnectionOut),
    errors=("validation_error",),
)
def index(actor: Actor, query: ConnectionQuery) -> Response:
    """List the connections of the project, newest first."""
    page = connections.listing(actor, **query.model_dump())
    return reply(
        page.as_dict(connections.as_json), template="connections/list.html", block="list", query=query
    )


def _ownership_faults(actor: Actor, body: ConnectionIn) -> list[Fault]:
    """Check that there is a type, and that any project and team are the caller's."""
    faults = [
        Fault(
            name,
            "not_yours",
            f"{name} must be that of the current {name.removesuffix('_id')}.",
            f"Leave it out, or send {current}.",
        )
        for name, sent, current in (
            ("project_id", body.project_id, actor.project_id),
            ("team_id", body.team_id, actor.team_id),
        )
        if sent is not None and sent != current
    ]
    if not (body.type or body.connection_type):
        faults.append(Fault("type", "missing", "Specify the kind of target, for example postgresql."))
    return faults


def _check(actor: Actor, body: ConnectionIn) -> list[Fault]:
    """Check a new connection, some of whose keys may be missing. Returns or raises the faults."""
    errors = ErrorCollector()
    errors.add(_ownership_faults(actor, body))
    if kind := body.type or body.connection_type:
        with errors.check():
            connections.check(actor, kind, body.values())
    errors.raise_all()
    return []


def _more_faults(actor: Actor, error: ApiError, body: Any) -> ApiError:
    return merge_faults(error, body, ConnectionIn, partial(_check, actor))


def _more_faults_of_change(actor: Actor, error: ApiError, sent: Any, connection_id: str) -> ApiError:
    found = connections.get(actor, connection_id, "write")

    def check(body: ConnectionChange) -> None:
        settings = body.changes().get("settings")
        if settings is not None:
            connections.check(actor, found.type, settings, found)

    return merge_faults(error, sent, ConnectionChange, check)


@route(
    bp,
    "/connections",
    ["POST"],
    scope="write",
    body=ConnectionIn,
    returns=ConnectionOut,
    status=201,
    idempotent=True,
    errors=("driver_missing", "quota_exceeded", "unavailable"),
    more_faults=_more_faults,
)
def create(actor: Actor, body: ConnectionIn) -> Response:
    """Create a connection and verify it. A connection that fails is saved as unverified."""
    if faults := _ownership_faults(actor, body):
        raise merge_faults(
            validation_error(faults), body.model_dump(by_alias=True), ConnectionIn, partial(_check, actor)
        )
    connection = connections.create(
        actor,
        name=body.name,
        type=body.type or body.connection_type or "",
        settings=body.values(),
        environment=body.environment,
        read_only=body.is_read_only,
    )
    location = url_for(".show", connection_id=connection.id)
    return reply(
        connections.as_json(connection),
        status=201,
        redirect_to=location,
        send_etag=True,
        headers={"Location": location},
    )


@route(bp, ONE, scope="read", returns=ConnectionOut)
def show(actor: Actor, connection_id: str) -> Response:
    """Get a connection."""
    found = connections.get(actor, connection_id)
    used_by = (
        versioning.usages_as_json(actor, versioning.find_dependents(actor, found))
        if g.face == "person"
        else []
    )
    return reply(
        connections.as_json(found), template="connections/show.html", send_etag=True, used_by=used_by
    )


@route(
    bp,
    ONE,
    ["PATCH"],
    scope="write",
    body=ConnectionChange,
    returns=ConnectionOut,
    errors=("version_conflict", "driver_missing", "quota_exceeded", "unavailable"),
    more_faults=_more_faults_of_change,
)
def change(actor: Actor, connection_id: str, body: ConnectionChange) -> Response:
    """Change a connection. New settings are verified."""
    found = connections.get(actor, connection_id, "write", lock=True)
    check_if_match(connections.as_json(found))
    changed = connections.change(actor, found, body.changes())
    return reply(
        connections.as_json(changed),
        redirect_to=url_for(".show", connection_id=connection_id),
        send_etag=True,
    )


@route(bp, ONE, ["DELETE"], scope="write", returns=ConnectionOut, errors=("version_conflict", "in_use"))
def delete(actor: Actor, connection_id: str) -> Response:
    """Delete a connection. It can be restored for 30 days."""
    found = connections.get(actor, connection_id, "write", lock=True)
    check_if_match(connections.as_json(found))
    connections.delete(actor, found)
    if g.face == "person":  # the category of a message is the URL of its Undo button
        flash(f"Connection {found.name} deleted", url_for(".restore", connection_id=connection_id))
    return reply(connections.as_json(found), redirect_to=url_for(".index"))


@route(bp, f"{ONE}/restore", ["POST"], scope="write", returns=ConnectionOut, errors=("quota_exceeded",))
def restore(actor: Actor, connection_id: str) -> Response:
    """Restore a connection."""
    found = connections.get(actor, connection_id, "write", lock=True, deleted=True)
    connections.restore(actor, found)
    return reply(
        connections.as_json(found), redirect_to=url_for(".show", connection_id=connection_id), send_etag=True
    )


@route(bp, f"{ONE}/verify", ["POST"], scope="write", returns=VerificationOut, errors=_ERRORS)
def verify(actor: Actor, connection_id: str) -> Response:
    """Verify a connection again, stage by stage."""
    found = connections.get(actor, connection_id, "write")
    verification = inspection.verify(actor, found)
    if g.face == "program":
        return reply(verification)
    see = url_for(".show", connection_id=connection_id)
    return reply(
        connections.as_json(found), template="connections/show.html", block="verification", redirect_to=see
    )


@route(
    bp,
    f"{ONE}/metadata",
    scope="read",
    query=MetadataQuery,
    returns=_METADATA,
    errors=_ERRORS,
    reads=False,
)
def metadata(actor: Actor, connection_id: str, query: MetadataQuery) -> Response:
    """Get the metadata of the target: tables with columns, keys and relations, as last read."""
    found = connections.get(actor, connection_id)
    known = inspection.metadata_json(actor, found, query.refresh)
    search = (query.q or "").casefold()
    names = {entity.strip() for entity in query.entity.split(",")} if query.entity else None
    matches = [
        entity
        for entity in known["entities"]
        if search in entity["name"].casefold() and (names is None or entity["name"] in names)
    ]
    result = {
        "kind": known["kind"],
        "version": known["version"],
        "metadata_at": connections.as_json(found)["metadata_at"],
        "total": len(matches),
        "entities": matches[: query.limit],
    }
    return reply(result, template="connections/metadata.html", connection=found, query=query)
