"""Connections: kept with their secrets sealed, verified in stages, opened for whoever sends or reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

import orjson
import pyarrow as pa
from flask import current_app
from sqlalchemy import Text, cast, select

from webapp import clock, limits, storage
from webapp.connectors import KINDS, apart, wire
from webapp.connectors.base import Connector, ConnectorError, Metadata, Session
from webapp.errors import ApiError, Fault, did_you_mean, validation_error
from webapp.extensions import db
from webapp.models import END_STATES, Connection, Push, Template, TemplateVersion
from webapp.net.gate import Gate
from webapp.services import audit, connection_settings, paging, tenancy
from webapp.services.actors import Actor, require

ENVIRONMENTS: Final = ("dev", "test", "prod")
_ALIASES: Final = {"postgres": "postgresql", "mariadb": "mysql", "sqlserver": "mssql", "mongo": "mongodb"}
# Named by the specification; the rows of these are sent by other means, which are not there yet.
_LATER: Final = ("db2", "rest", "odata", "openapi", "ai")


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
    statement = tenancy.listing(actor, Connection, deleted=deleted)
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
    if found in _LATER:
        text = f"Connections of type {found} cannot be made yet."
        raise validation_error([Fault(path, "not_available", text, f"There are {', '.join(KINDS)}.")])
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
    require(actor, "write")
    kind = kind_of(type)
    _driver(kind)
    connection = Connection(
        **tenancy.here(actor),
        name=name,
        type=kind,
        settings={},
        environment=environment,
        read_only=read_only,
        created_by=actor.user_id,
    )
    connection_settings.check(actor.workspace_id, KINDS[kind], settings, {})
    db.session.add(connection)
    db.session.flush()
    connection.settings = connection_settings.kept(connection, KINDS[kind], settings)
    told = {"name": name, "connection_type": kind, "environment": environment}
    audit.record(actor, "connection.create", connection, join=True, **told)
    db.session.commit()
    if verifies:
        _verified(connection)
    return connection


def change(actor: Actor, connection: Connection, changes: Mapping[str, Any]) -> Connection:
    """Change `name`, `settings` (whole), `environment`, `read_only` of a locked connection; commits. Masked secrets
    stay as they are. New settings are verified. Errors: validation_error."""
    kind, fresh = KINDS[connection.type], changes.get("settings")
    if fresh is not None:
        connection_settings.check(actor.workspace_id, kind, fresh, connection.settings)
        connection.settings = connection_settings.kept(connection, kind, fresh)
        connection.verification = connection.metadata_key = connection.metadata_at = None
    for key in ("name", "environment", "read_only"):
        if key in changes:
            setattr(connection, key, changes[key])
    connection.updated_at = clock.now()
    told = {key: value for key, value in changes.items() if key != "settings"}
    audit.record(actor, "connection.change", connection, join=True, changed=sorted(changes), **told)
    db.session.commit()
    if fresh is not None:
        _verified(connection)
    return connection


def delete(actor: Actor, connection: Connection) -> None:
    """Soft-delete a locked connection; commits. Error: in_use, with what uses it."""
    if users := used_by(connection):
        names = ", ".join(f'{one["type"]} "{one["name"]}"' for one in users[:3])
        more = f" and {len(users) - 3} more" if len(users) > 3 else ""
        raise ApiError("in_use", f"{names}{more} use this connection.", {"used_by": users})
    tenancy.soft_delete(actor, connection)


def restore(actor: Actor, connection: Connection) -> None:
    """Take a deletion back; commits. Error: not_found after 30 days."""
    tenancy.restore(actor, connection)


def used_by(connection: Connection) -> list[dict[str, str]]:
    """Templates whose newest version reads from a connection, and pushes that have not ended."""
    pushes = select(Push.id, Push.target).where(
        Push.connection_id == connection.id, Push.status.not_in(END_STATES), Push.deleted_at.is_(None)
    )
    found = [{"type": "push", "id": one, "name": target} for one, target in db.session.execute(pushes)]
    newest = (
        select(Template.id, Template.name, TemplateVersion.spec)
        .join(TemplateVersion, TemplateVersion.template_id == Template.id)
        .where(
            Template.workspace_id == connection.workspace_id,
            Template.deleted_at.is_(None),
            TemplateVersion.number == Template.version,
            # What is read of a whole workspace are those few versions that hold the id anywhere.
            cast(TemplateVersion.spec, Text).contains(connection.id, autoescape=True),
        )
    )
    mark = orjson.dumps(connection.id)
    for template_id, name, spec in db.session.execute(newest):
        if mark in orjson.dumps(spec["fields"]):
            found.append({"type": "template", "id": template_id, "name": name})
    return found


# --- Opening ------------------------------------------------------------------------------------------------


def gate() -> Gate:
    """The address guard as the operator set it."""
    return Gate(current_app.config["SETTINGS"].reachable_networks)


def connector_of(connection: Connection) -> Connector:
    """The connector of a connection, secrets filled in. Errors: driver_missing, unavailable (no key opens a secret),
    target_failed (it refers to a secret that is gone)."""
    return _hushing(connection)[0]


def _hushing(connection: Connection) -> tuple[Connector, Callable[[str], str]]:
    """Its connector, and what takes its secrets out of a message: targets repeat what they were told."""
    kind = KINDS[connection.type]
    _driver(connection.type)
    settings, secret = connection_settings.opened(connection, kind)
    folder = current_app.config["SETTINGS"].data_dir / "targets" / connection.workspace_id
    made = kind(settings, gate(), str(folder), connection.read_only)
    return made, lambda text: connection_settings.hushed(text, secret)


def open_session(connection: Connection, timeout: float | None = None) -> Session:
    """Connect. Raises ApiError as `connector_of`, ConnectorError for the target's own troubles."""
    connector, hush = _hushing(connection)
    try:
        return connector.open(timeout)
    except ConnectorError as error:
        error.message = hush(error.message)
        error.args = (error.message,)
        raise


def _driver(kind: str) -> None:
    try:
        KINDS[kind].driver()
    except ConnectorError as error:
        raise told(error) from None


def told(error: ConnectorError) -> ApiError:
    """A target's trouble as the API tells it."""
    details = {"reason": error.reason, **error.details}
    if error.hint:
        details["hint"] = error.hint
    return ApiError(error.code, error.message, details)


# --- Verification -------------------------------------------------------------------------------------------


def verify(actor: Actor, connection: Connection) -> dict[str, Any]:
    """Verify a connection again, and keep the answer: `{status, stages, response, checked_at}`; commits."""
    audit.record(actor, "connection.verify", connection, join=True)
    db.session.commit()
    return _verified(connection)


def _verified(connection: Connection) -> dict[str, Any]:
    asked_with = connection.settings
    try:
        connector, hush = _hushing(connection)
        db.session.commit()  # nothing is held open while the target is asked
        stages = apart.stages(connector, limits.VERIFY_SECONDS)
        stages = [{**one, "message": hush(one["message"])} for one in stages]
    except ApiError as error:  # its secrets or its settings as they are now
        stages = [_unasked(error)]
    good = bool(stages) and all(one["ok"] for one in stages)
    answer = {
        "status": "verified" if good else "failed",
        "stages": stages,
        "response": None,
        "checked_at": clock.to_text(clock.now()),
    }
    if _still(connection, asked_with):
        connection.verification = answer
    db.session.commit()
    return answer


def _unasked(error: ApiError) -> dict[str, Any]:
    """The stage that stands for a target which could not even be asked."""
    code, hint = error.details.get("reason", error.code), error.details.get("hint", "")
    return {"name": "resolve", "ok": False, "code": code, "message": error.message, "hint": hint, "ms": 0}


def _still(connection: Connection, settings: Mapping[str, Any]) -> bool:
    """Whether a connection, locked now, has the settings that its target was asked with."""
    db.session.refresh(connection, with_for_update=True)
    return bool(connection.settings == settings)


# --- Metadata and samples -----------------------------------------------------------------------------------


def metadata(actor: Actor, connection: Connection, refresh: bool = False) -> Metadata:
    """What the target holds: as it was last read, or read now. The actor is one who was given the connection, to
    whatever end (`get`, `tenancy.get`). Errors: those of the target."""
    return wire.from_json(metadata_json(actor, connection, refresh))


def metadata_json(_actor: Actor, connection: Connection, refresh: bool = False) -> dict[str, Any]:
    """The same as `wire.to_json` makes it, which takes a fifth of the time where there are thousands of tables."""
    found = None if refresh else _cached(connection)
    return found if found is not None else _read(connection)


def _cached(connection: Connection) -> dict[str, Any] | None:
    if connection.metadata_key is None:
        return None
    store = storage.of(current_app)
    try:
        return orjson.loads(b"".join(store.get(connection.metadata_key)))
    except storage.MissingError:
        return None


def _read(connection: Connection) -> dict[str, Any]:
    """Ask the target in a process of its own, and keep the answer."""
    connector, hush = _hushing(connection)
    asked_with = connection.settings
    db.session.commit()
    with _told(hush):
        found = apart.metadata(connector, limits.METADATA_SECONDS)
    moment: datetime = clock.now()
    key = f"connections/{connection.workspace_id}/{connection.id}/metadata.json"
    storage.of(current_app).put(key, [orjson.dumps(found)])
    if _still(connection, asked_with):
        connection.metadata_key, connection.metadata_at = key, moment
    db.session.commit()
    return found


def samples(
    connection: Connection, tables: Sequence[str], rows: int, seconds: float
) -> dict[str, pa.RecordBatch]:
    """The first rows of some tables, of as many as the time reaches and the account may read. Errors: those of the
    target, where there is not even a way to it."""
    connector, hush = _hushing(connection)
    db.session.commit()
    with _told(hush):
        return apart.samples(connector, tables, rows, seconds)


@contextmanager
def _told(hush: Callable[[str], str]) -> Iterator[None]:
    try:
        yield
    except ConnectorError as error:
        error.message = hush(error.message)
        raise told(error) from None
