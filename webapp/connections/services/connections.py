"""Create, change, list, delete and restore connections, and find endpoints.

Secrets of connections are encrypted. Requests of endpoints are defined in `webapp.endpoints`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from webapp import clock, json_input, limits, pagination
from webapp.access import tenancy
from webapp.access.actors import Actor, require_scope
from webapp.audit.services import audit_log
from webapp.connections.models import Connection, Endpoint
from webapp.connections.services import inspection, secrets, sqlite_files
from webapp.connections.services import settings as connections_settings
from webapp.connections.services.access import check_single_host
from webapp.connectors import KINDS
from webapp.errors import ApiError, Fault, did_you_mean, validation_error
from webapp.extensions import db
from webapp.files import services as files
from webapp.versioning import services as versioning


def get_endpoint(actor: Actor, endpoint_id: str, scope: str = "read", **how: bool) -> Endpoint:
    """Return an endpoint. Errors: not_found, forbidden."""
    return tenancy.get(actor, Endpoint, endpoint_id, scope, **how)


def list_endpoints(
    actor: Actor,
    *,
    cursor: str | None = None,
    limit: int = limits.PAGE_LIMIT_DEFAULT,
    q: str | None = None,
    connection_id: str | None = None,
) -> pagination.Page[Endpoint]:
    """Return a page of the project's endpoints, newest first. `q` searches names."""
    statement = tenancy.listing(actor, Endpoint)
    if connection_id is not None:
        statement = statement.where(Endpoint.connection_id == connection_id)
    return pagination.paginate(
        statement,
        name="endpoints",
        id_column=Endpoint.id,
        cursor=cursor,
        limit=limit,
        search=(q, Endpoint.name),
        context=f"{actor.project_id} {connection_id}",
        sizes=(Endpoint.settings,),
    )


# --- Connections --------------------------------------------------------------------------------------------

ENVIRONMENTS: Final = ("dev", "test", "prod")
_ALIASES: Final = {
    "postgres": "postgresql", "mariadb": "mysql", "sqlserver": "mssql", "mongo": "mongodb", "openai": "ai",
}  # fmt: skip


def as_json(connection: Connection) -> dict[str, Any]:
    """Return a connection as the API shows it, with secrets masked."""
    return {
        "id": connection.id,
        "name": connection.name,
        "type": connection.type,
        "connection_type": connection.type,
        "settings": connections_settings.masked_settings(connection.settings, KINDS[connection.type]),
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
    """Return a connection. Errors: not_found, forbidden."""
    return tenancy.get(actor, Connection, connection_id, scope, **how)


def listing(
    actor: Actor,
    *,
    cursor: str | None = None,
    limit: int = limits.PAGE_LIMIT_DEFAULT,
    q: str | None = None,
    type: str | None = None,
    deleted: bool = False,
) -> pagination.Page[Connection]:
    """Return a page of the project's connections, newest first. `q` searches names."""
    statement = tenancy.listing(actor, Connection, deleted=deleted).where(Connection.of_endpoint.is_(False))
    if type is not None:
        statement = statement.where(Connection.type == parse_kind(type, "type"))
    return pagination.paginate(
        statement,
        name="connections",
        id_column=Connection.id,
        cursor=cursor,
        limit=limit,
        search=(q, Connection.name),
        context=f"{actor.project_id} {type} {deleted}",
        sizes=(Connection.settings, Connection.verification),
    )


def iter_with_metadata(actor: Actor) -> Iterator[Connection]:
    """Yield the project's connections whose metadata has been read, newest first."""
    statement = tenancy.listing(actor, Connection).where(
        Connection.of_endpoint.is_(False), Connection.metadata_key.is_not(None)
    )
    yield from db.session.scalars(statement.order_by(Connection.id.desc()))


def discard_metadata(session: Session, connection_id: str | None) -> None:
    """Discard the cached metadata of a connection whose tables have changed."""
    changes = {"metadata_key": None, "metadata_at": None}
    session.execute(update(Connection).where(Connection.id == connection_id).values(changes))


def parse_kind(spelling: str, path: str = "type") -> str:
    """Return the name of a kind in the API for any spelling. Error: validation_error, with the closest match."""
    found = json_input.normalize_word(spelling)
    found = _ALIASES.get(found, found)
    if found in KINDS:
        return found
    hint = did_you_mean(found, [*KINDS, *_ALIASES]) or f"Supported types: {', '.join(KINDS)}."
    raise validation_error([Fault(path, "unknown_type", f'Unknown connection type "{spelling[:50]}".', hint)])


def check(actor: Actor, type: str, settings: Mapping[str, Any], connection: Connection | None = None) -> None:
    """Check the settings of a new connection or of a change without saving them. Error: validation_error with all
    errors in the type and the settings."""
    kind = KINDS[parse_kind(type)]
    project_id = actor.project_id if connection is None else connection.project_id
    stored = {} if connection is None else connection.settings
    connections_settings.check(
        actor, project_id, kind, json_input.canonicalize_enums(kind.Settings, settings), stored
    )


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
    """Create a connection, commit, and verify it. A connection whose verification fails is kept.

    Errors: forbidden, validation_error with all errors in the settings.
    """
    connection = draft(
        actor, name=name, type=type, settings=settings, environment=environment, read_only=read_only
    )
    db.session.commit()
    if verifies:
        inspection.verify_unaudited(connection)
    return connection


def verify_unsaved(
    actor: Actor, type: str, settings: Mapping[str, Any], connection: Connection | None = None
) -> dict[str, Any]:
    """Verify settings that are not saved, of a new connection or of `connection`. Nothing of them is kept but the audit
    entry of the test. Returns the same as `inspection.verify`. Errors: forbidden, validation_error, and conflict for a
    SQLite file, which exists only after the connection is saved."""
    kind = parse_kind(type)
    if kind == sqlite_files.KIND:
        raise ApiError("conflict", "The file of a SQLite connection is created when you save the connection.")
    try:
        if connection is None:
            connection = draft(actor, name=KINDS[kind].title, type=kind, settings=settings, tells=False)
        else:
            apply_changes(actor, connection, {"settings": settings})
        result = inspection.verification_result(connection, db.session.rollback)
    finally:
        db.session.rollback()
    details = {"connection_type": kind, "status": result["status"]}
    audit_log.record(actor, "connection.test", ("connection", ""), join=True, **details)
    db.session.commit()
    return result


def draft(
    actor: Actor, *, name: str, type: str, settings: Mapping[str, Any], tells: bool = True, **columns: Any
) -> Connection:
    """Create a connection in the caller's transaction.

    `columns` are further columns of its row. `tells`: write the audit entry; otherwise the caller does. Errors: see
    `create`."""
    require_scope(actor, "write")
    kind = parse_kind(type)
    check_single_host(kind)
    settings = json_input.canonicalize_enums(KINDS[kind].Settings, settings)
    connection = Connection(
        **tenancy.current_scope(actor), name=name, type=kind, settings={}, created_by=actor.user_id, **columns
    )
    grants = connections_settings.check(actor, connection.project_id, KINDS[kind], settings, {})
    secrets.allow_hosts(actor, grants)
    db.session.add(connection)
    db.session.flush()
    connection.settings = connections_settings.stored_settings(connection, KINDS[kind], settings)
    if kind == sqlite_files.KIND:
        sqlite_files.assign_folder(connection)
    details: dict[str, Any] = {"name": name, "connection_type": kind, "environment": connection.environment}
    if tells:
        audit_log.record(actor, "connection.create", connection, join=True, **details)
    return connection


def change(actor: Actor, connection: Connection, changes: Mapping[str, Any]) -> Connection:
    """Change `name`, `settings` (replaced completely), `environment` or `read_only` of a locked connection, and commit.

    Masked secrets are kept on update (see `settings.keep`). New settings are verified. Errors: validation_error."""
    recorded = apply_changes(actor, connection, changes)
    audit_log.record(
        actor, "connection.change", connection, join=True, name=connection.name, changes=recorded
    )
    db.session.commit()
    if changes.get("settings") is not None:
        inspection.verify_unaudited(connection)
    return connection


def apply_changes(actor: Actor, connection: Connection, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Change a connection in the caller's transaction, without verifying it. Returns the changes for the audit entry,
    which the caller writes."""
    kind, new_settings = KINDS[connection.type], changes.get("settings")
    before = _audited(connection)
    file = sqlite_files.name_of(connection) if connection.type == sqlite_files.KIND else ""
    if new_settings is not None:
        new_settings = json_input.canonicalize_enums(kind.Settings, new_settings)
        grants = connections_settings.check(
            actor, connection.project_id, kind, new_settings, connection.settings
        )
        endpoint_settings = select(Endpoint.settings).where(
            Endpoint.connection_id == connection.id, Endpoint.deleted_at.is_(None)
        )
        grants += connections_settings.check_moved(
            actor, connection, kind, new_settings, list(db.session.scalars(endpoint_settings))
        )
        secrets.allow_hosts(actor, grants)
        connection.settings = connections_settings.stored_settings(connection, kind, new_settings)
        connection.verification = connection.metadata_key = connection.metadata_at = None
        if connection.type == sqlite_files.KIND and sqlite_files.name_of(connection) != file:
            sqlite_files.assign_folder(connection)
    for key in ("name", "environment", "read_only"):
        if key in changes:
            setattr(connection, key, changes[key])
    connection.updated_at = clock.now()
    return audit_log.changes_between(before, _audited(connection), {**changes, **(new_settings or {})})


def _audited(connection: Connection) -> dict[str, Any]:
    columns = {key: getattr(connection, key) for key in ("name", "environment", "read_only")}
    return {**connections_settings.masked_settings(connection.settings, KINDS[connection.type]), **columns}


def delete(actor: Actor, connection: Connection) -> None:
    """Soft-delete a locked connection, and commit. Error: in_use, with the objects and running pushes that use it."""
    versioning.check_not_in_use(actor, versioning.find_dependents(actor, connection), "connection")
    versioning.soft_delete(actor, connection)


def restore(actor: Actor, connection: Connection) -> None:
    """Restore a deleted connection, and commit.

    Errors: not_found after 30 days, quota_exceeded (too many SQLite files).
    """
    if connection.type == sqlite_files.KIND and connection.deleted_at is not None:
        files.lock(connection.workspace_id)
        sqlite_files.check_file_quota(connection)
    versioning.restore(actor, connection)
