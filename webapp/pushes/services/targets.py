"""Resolve the destination of a push: its connection, the required permissions, and its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from webapp import limits
from webapp.access import tenancy
from webapp.access.actors import Actor, require_scope
from webapp.connections.models import Connection, Endpoint
from webapp.connections.services import access, inspection, settings
from webapp.connectors import KINDS
from webapp.connectors.base import Capabilities, ConnectorError, Session
from webapp.connectors.http.channel import Channel, HttpConnector
from webapp.connectors.schema import Entity, Metadata
from webapp.errors import ApiError, ErrorCollector, Fault, did_you_mean, validation_error
from webapp.extensions import allow_writes, db, set_read_only
from webapp.generation.services import rows
from webapp.pushes.models import Push
from webapp.pushes.schemas import SendingInput

PUSH_SETTINGS: Final = (
    "push_mode", "wrapper_key", "batch_size", "retry", "request_template", "parallel", "rate_per_second",
)  # fmt: skip
"""Keys of a push request that override settings of HTTP connections."""


def setting_overrides(endpoint: Endpoint | None, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that override those of the connection: an endpoint's, overridden in turn by those of the
    push."""
    overrides = {name: request[name] for name in PUSH_SETTINGS if request.get(name) is not None}
    stored = dict(endpoint.settings) if endpoint else {}
    if stored.pop("operation", None):
        stored.pop("request_template")  # Defined by the operation
    return {**stored, **overrides}


@dataclass(slots=True)
class Destination:
    """The destination of a push. `overrides` contains the settings of the endpoint and the push that override the
    connection's."""

    connection: Connection
    endpoint: Endpoint | None
    overrides: dict[str, Any]
    has_valid_settings: bool = True
    """Whether the settings in the push request are valid. If not, `changed` does not contain them."""

    @property
    def can(self) -> Capabilities:
        """The capabilities of the target."""
        return capabilities(self.connection)

    @property
    def operation(self) -> str | None:
        """The only target of an endpoint that was created from an operation."""
        return self.endpoint.settings.get("operation") if self.endpoint else None


def resolve_destination(actor: Actor, request: SendingInput, gathered: ErrorCollector) -> Destination | None:
    """Return the destination of a push, or None if it is unknown. Every error is added to `gathered`: not_found,
    validation_error (neither or both of connection and endpoint are given, the connection cannot receive rows, invalid
    settings, `confirm`), read_only_connection.

    Raise forbidden for statements of a user who is not an admin.
    """
    if (request.connection_id is None) == (request.endpoint_id is None):
        gathered.add([Fault("connection_id", "missing", "Specify either connection_id or endpoint_id.")])
        return None
    endpoint: Endpoint | None = None
    found: Connection | None = None
    name = "connection_id" if request.endpoint_id is None else "endpoint_id"
    with gathered.check(name):
        if request.endpoint_id is not None:
            endpoint = tenancy.get(actor, Endpoint, request.endpoint_id, "push")
        found = get_connection(
            actor, request.connection_id or "" if endpoint is None else endpoint.connection_id
        )
    if found is None:
        return None
    can = capabilities(found)
    gathered.add(_unsupported_settings(can, request))
    if (request.before_sql or request.after_sql) and can.sql:
        require_scope(actor, "admin")
    with gathered.check(name):
        require_writable(found)
    with gathered.check():
        if not request.dry_run:
            require_confirmation(found, request.confirm)
    if not can.by_row:
        return Destination(found, endpoint, {})
    changed = setting_overrides(endpoint, request.model_dump(include=set(PUSH_SETTINGS)))
    stored = endpoint.settings if endpoint is not None else {}
    with gathered.check():
        settings.check_changed(actor, found, KINDS[found.type], changed, stored)
        return Destination(found, endpoint, changed)
    return Destination(found, endpoint, setting_overrides(endpoint, {}), has_valid_settings=False)


def destination_of_push(connection: Connection, push: Push) -> Destination:
    """Return the destination of an earlier push."""
    endpoint = db.session.get(Endpoint, push.endpoint_id) if push.endpoint_id else None
    return Destination(connection, endpoint, setting_overrides(endpoint, push.request["ask"]))


def _unsupported_settings(can: Capabilities, request: SendingInput) -> list[Fault]:
    """Return the faults of settings that this kind of connection does not support."""
    messages: dict[str, str] = {}
    if not can.by_row:
        messages = dict.fromkeys(PUSH_SETTINGS, "Only HTTP connections support this setting.")
    if not can.sql:
        messages |= dict.fromkeys(
            ("before_sql", "after_sql"), "This kind of connection cannot run SQL statements."
        )
    if not can.create_table and can.by_row:
        messages["create_table"] = "This kind of connection cannot create tables."
    return [
        Fault(name, "not_for_this_type", text, "Leave it out.")
        for name, text in messages.items()
        if getattr(request, name, None) not in (None, [], False)
    ]


def get_connection(actor: Actor, connection_id: str) -> Connection:
    """Return a connection with tables that the actor may push to. Raise not_found, forbidden or validation_error."""
    found = tenancy.get(actor, Connection, connection_id, "push")
    if not KINDS[found.type].can.modes:
        text = f"Connections of type {found.type} cannot receive rows."
        fitting = ", ".join(name for name, kind in KINDS.items() if kind.can.modes)
        hint = f"They are used by fields of type {found.type}. Send rows to a connection of type {fitting}."
        raise validation_error([Fault("connection_id", "not_for_this_type", text, hint)])
    return found


def require_writable(connection: Connection) -> None:
    """Raise read_only_connection if the connection is read-only."""
    if connection.read_only:
        text = f'The connection "{connection.name}" is read-only.'
        hint = "Choose another connection, or turn off read_only for this one."
        raise ApiError("read_only_connection", text, {"connection_id": connection.id, "hint": hint})


def require_confirmation(connection: Connection, confirm: str | None) -> None:
    """Raise validation_error, with the required value, if a push to production does not confirm the name."""
    if connection.environment == "prod" and confirm != connection.name:
        text = f'"{connection.name}" is marked as production.'
        raise validation_error(
            [Fault("confirm", "needs_confirmation", text, f'Send confirm: "{connection.name}".')]
        )


def capabilities(connection: Connection) -> Capabilities:
    """Return the capabilities of the connection's kind."""
    return KINDS[connection.type].can


@contextmanager
def translated_errors() -> Iterator[None]:
    """Translate failures of a target into API errors."""
    try:
        yield
    except ConnectorError as error:
        raise access.api_error(error) from None


@contextmanager
def open_channel(destination: Destination) -> Iterator[Channel]:
    """Open a channel for sending. Failures are translated into API errors."""
    with (
        translated_errors(),
        access.open_connection(destination.connection, changed=destination.overrides) as channel,
    ):
        assert isinstance(channel, Channel)
        yield channel


@contextmanager
def open_session(connection: Connection) -> Iterator[Session]:
    """Open a session for inspecting the target. Failures and timeouts are translated into API errors."""
    seconds = limits.DRY_RUN_READ_SECONDS
    with (
        translated_errors(),
        access.open_session(connection) as session,
        access.time_limited(session, seconds, seconds),
    ):
        yield session


class ForeignKeyChecks:
    """Queries a database once whether it can suspend foreign key checks for circular references."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._can_suspend: bool | None = None

    def can_suspend(self) -> bool:
        """Return whether rows may be written before the rows that they reference. Raises the errors of connections."""
        if self._can_suspend is None:
            with open_session(self._connection) as session:
                self._can_suspend = session.can_suspend_foreign_keys()
        return self._can_suspend

    def highest(self, entity: Entity, column: str) -> int:
        """Return the highest value of an integer column, or 0 if it is empty. Raises the errors of connections."""
        with open_session(self._connection) as session:
            return max(0, session.max_value(entity, column) or 0)


class PathCatalogue:
    """Replacement for `Catalogue` for connections that do not list tables: any path is valid."""

    def __init__(self, destination: Destination) -> None:
        connector = access.create_connector(destination.connection, destination.overrides)
        assert isinstance(connector, HttpConnector)
        self._connector = connector

    def entity(self, name: str) -> Entity | None:
        """Return the entity for a path."""
        try:
            return self._connector.entity_for_path(name)
        except ConnectorError as error:
            raise validation_error([Fault("target", "invalid", error.message, error.hint)]) from None

    def find_by_name(self, _name: str) -> Entity | None:
        """Return the path from the settings."""
        return self._connector.entity_for_path(None)

    def missing_table_fault(self, path: str, name: str) -> Fault:
        """Never used, because `entity` accepts any path."""
        return Fault(path, "unknown_table", f'There is no path "{name}".')

    def refresh(self) -> bool:
        """Return False, because there is nothing to read again."""
        return False

    def inspect_tables(self, names: Iterable[str]) -> None:
        """Do nothing, because there is nothing to inspect."""


def catalogue_of(actor: Actor, destination: Destination) -> Catalogue | PathCatalogue:
    """Return the entities that can receive rows."""
    if accepts_any_path(destination.connection):
        return PathCatalogue(destination)
    return Catalogue(actor, destination.connection)


def accepts_any_path(connection: Connection) -> bool:
    """Return whether any path can receive rows because the connection lists no tables or entity sets."""
    kind = KINDS[connection.type]
    return issubclass(kind, HttpConnector) and not kind.has_entities


def possible_table_names(name: str) -> tuple[str, ...]:
    """Return the table names that the name of a template or a dataset's table can match."""
    return name, rows.slug(name), f"{rows.slug(name)}s"


class Catalogue:
    """The tables of a connection, from cached metadata. The metadata is refreshed once if a table is missing."""

    def __init__(self, actor: Actor, connection: Connection) -> None:
        # A user who may push may see the destination, even if the API key has other restrictions. Fetching external
        # values may have ended the session that the connection was loaded in.
        self._actor, self._connection = replace(actor, scopes=None), db.session.merge(connection)
        self._is_fresh = False
        self._metadata: Metadata | None = None
        self._inspected: dict[str, Entity | None] = {}

    def inspect_tables(self, names: Iterable[str]) -> None:
        """Inspect some tables at the target, because the cached metadata may contain a dropped table or lack a new one.
        `entity` and `fitting` then return the current state. Raises the errors of the target."""
        missing = [name for name in names if name not in self._inspected]
        if not missing:
            return
        with open_session(self._connection) as session:
            self._inspected |= {name: session.entity(name) for name in missing}

    def entity(self, name: str) -> Entity | None:
        """Return a table by its exact name, or by its name ignoring case if only one matches."""
        if name in self._inspected:
            return self._inspected[name]
        found = self._find(name)
        if found is None and self._refresh_once():
            found = self._find(name)
        return found

    def find_by_name(self, name: str) -> Entity | None:
        """Return the table that matches the name of a template or a dataset's table: `Order lines` matches
        `order_lines`."""
        for spelling in possible_table_names(name):
            found = self._inspected[spelling] if spelling in self._inspected else self._find(spelling)
            if found is not None:
                return found
        if self._inspected.keys() >= set(possible_table_names(name)):
            return None
        return self._find(name) if self._refresh_once() else None

    def missing_table_fault(self, path: str, name: str) -> Fault:
        """Return the fault for a missing table."""
        can_create = capabilities(self._connection).create_table
        text = f'There is no {"table" if can_create else "target"} "{name}" in "{self._connection.name}".'
        known = [entity.name for entity in self._entities()]
        default_hint = (
            "Set create_table to create it."
            if can_create
            else "The metadata of the connection lists its targets."
        )
        hint = did_you_mean(name, known) or default_hint
        return Fault(path, "unknown_table", text, hint)

    def refresh(self) -> bool:
        """Refresh the tables. Return False if they have just been refreshed."""
        self._inspected.clear()
        return self._refresh_once()

    def _entities(self) -> tuple[Entity, ...]:
        if self._metadata is None:
            self._load()
        assert self._metadata is not None
        return self._metadata.entities

    def _find(self, name: str) -> Entity | None:
        exact = [entity for entity in self._entities() if entity.name == name]
        folded = [entity for entity in self._entities() if entity.name.casefold() == name.casefold()]
        return exact[0] if exact else folded[0] if len(folded) == 1 else None

    def _refresh_once(self) -> bool:
        if self._is_fresh:
            return False
        self._is_fresh = True
        self._load(refresh=True)
        return True

    def _load(self, refresh: bool = False) -> None:
        allow_writes()  # The refreshed metadata is saved
        try:
            self._metadata = inspection.metadata(self._actor, self._connection, refresh=refresh)
        finally:
            set_read_only()
