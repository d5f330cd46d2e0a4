"""Connections: kept with their secrets sealed, changed, deleted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webapp import clock, limits
from webapp.connectors import KINDS
from webapp.errors import ApiError, Fault, did_you_mean, validation_error
from webapp.extensions import db
from webapp.models import Connection
from webapp.services import audit, audit_changes, connection_looks, connection_settings, paging, tenancy, uses
from webapp.services.actors import Actor, require
from webapp.services.connection_links import check_disk, driver

ENVIRONMENTS: Final = ("dev", "test", "prod")
_ALIASES: Final = {
    "postgres": "postgresql", "mariadb": "mysql", "sqlserver": "mssql", "mongo": "mongodb", "openai": "ai",
}  # fmt: skip


def as_json(connection: Connection) -> dict[str, Any]:
    """A connection as the API shows it; what is secret is masked."""
    return {
        "id": connection.id,
        "name": connection.name,
        "type": connection.type,
        "connection_type": connection.type,
        "settings": connection_settings.shown(connection.settings, KINDS[connection.type]),
        "environment": connection.environment,
        "read_only": connection.read_only,
        "verification": connection.verification,
        "metadata_at": clock.to_text(connection.metadata_at),
        "metadata_document": connection.document_key is not None,
        "project_id": connection.project_id,
        "team_id": connection.team_id,
        "created_by": connection.created_by,
        "created_at": clock.to_text(connection.created_at),
        "updated_at": clock.to_text(connection.updated_at),
        "deleted_at": clock.to_text(connection.deleted_at),
    }


# --- Finding and changing -----------------------------------------------------------------------------------


def get(actor: Actor, connection_id: str, scope: str = "read", **how: bool) -> Connection:
    """One connection. Errors: not_found, forbidden."""
    return tenancy.get(actor, Connection, connection_id, scope, **how)


def listing(
    actor: Actor,
    *,
    cursor: str | None = None,
    limit: int = limits.PAGE_LIMIT_DEFAULT,
    q: str | None = None,
    type: str | None = None,
    deleted: bool = False,
) -> paging.Page[Connection]:
    """A page of the project's connections, newest first. `q` searches names."""
    statement = tenancy.listing(actor, Connection, deleted=deleted).where(Connection.of_endpoint.is_(False))
    if type is not None:
        statement = statement.where(Connection.type == kind_of(type, "type"))
    return paging.page(
        statement,
        name="connections",
        identity=Connection.id,
        cursor=cursor,
        limit=limit,
        search=(q, Connection.name),
        context=f"{actor.project_id} {type} {deleted}",
    )


def kind_of(word: str, path: str = "type") -> str:
    """The wire name of a kind. Error: validation_error with the nearest one."""
    found = word.strip().casefold()
    found = _ALIASES.get(found, found)
    if found in KINDS:
        return found
    hint = did_you_mean(found, [*KINDS, *_ALIASES]) or f"There are {', '.join(KINDS)}."
    raise validation_error([Fault(path, "unknown_type", f'There is no type of connection "{word[:50]}".', hint)])


def create(
    actor: Actor,
    *,
    name: str,
    type: str,
    settings: Mapping[str, Any],
    environment: str = "dev",
    read_only: bool = False,
    verifies: bool = True,
) -> Connection:
    """A connection, verified once; one that fails is kept as unverified; commits.

    Errors: forbidden, driver_missing, validation_error with every fault of the settings.
    """
    connection = draft(
        actor, name=name, type=type, settings=settings, environment=environment, read_only=read_only
    )
    db.session.commit()
    if verifies:
        connection_looks.verified(connection)
    return connection


def draft(
    actor: Actor, *, name: str, type: str, settings: Mapping[str, Any], tells: bool = True, **columns: Any
) -> Connection:
    """A connection that joins the caller's transaction. `columns` are others of its row; `tells`: whether the audit
    trail is told of it, or by the caller. Errors as `create`."""
    require(actor, "write")
    kind = kind_of(type)
    driver(kind)
    check_disk(kind)
    connection = Connection(
        **tenancy.here(actor), name=name, type=kind, settings={}, created_by=actor.user_id, **columns
    )
    connection_settings.check(actor.workspace_id, KINDS[kind], settings, {})
    db.session.add(connection)
    db.session.flush()
    connection.settings = connection_settings.kept(connection, KINDS[kind], settings)
    told = {"name": name, "connection_type": kind, "environment": connection.environment}
    if tells:
        audit.record(actor, "connection.create", connection, join=True, **told)
    return connection


def change(actor: Actor, connection: Connection, changes: Mapping[str, Any]) -> Connection:
    """Change `name`, `settings` (whole), `environment`, `read_only` of a locked connection; commits. Masked secrets
    stay as they are. New settings are verified. Errors: validation_error."""
    told = put_in(actor, connection, changes)
    audit.record(actor, "connection.change", connection, join=True, name=connection.name, changes=told)
    db.session.commit()
    if changes.get("settings") is not None:
        connection_looks.verified(connection)
    return connection


def put_in(actor: Actor, connection: Connection, changes: Mapping[str, Any]) -> dict[str, Any]:
    """As `change`, in the caller's transaction, which tells of it and verifies nothing. Returns what changed, as the
    audit trail tells it."""
    kind, fresh = KINDS[connection.type], changes.get("settings")
    before = _told(connection)
    if fresh is not None:
        connection_settings.check(actor.workspace_id, kind, fresh, connection.settings)
        connection.settings = connection_settings.kept(connection, kind, fresh)
        connection.verification = connection.metadata_key = connection.metadata_at = None
    for key in ("name", "environment", "read_only"):
        if key in changes:
            setattr(connection, key, changes[key])
    connection.updated_at = clock.now()
    return audit_changes.between(before, _told(connection), {**changes, **(fresh or {})})


def _told(connection: Connection) -> dict[str, Any]:
    own = {key: getattr(connection, key) for key in ("name", "environment", "read_only")}
    return {**connection_settings.shown(connection.settings, KINDS[connection.type]), **own}


def delete(actor: Actor, connection: Connection) -> None:
    """Soft-delete a locked connection; commits. Error: in_use, with what uses it."""
    users = [
        {"type": one.type, "id": one.id, "name": one.name} for one in uses.of_connection(connection) if one.blocks
    ]
    if users:
        names = ", ".join(f'{one["type"]} "{one["name"]}"' for one in users[:3])
        more = f" and {len(users) - 3} more" if len(users) > 3 else ""
        raise ApiError("in_use", f"{names}{more} use this connection.", {"used_by": users})
    tenancy.soft_delete(actor, connection)


def restore(actor: Actor, connection: Connection) -> None:
    """Take a deletion back; commits. Error: not_found after 30 days."""
    tenancy.restore(actor, connection)
