"""Where a push goes: its connection, the rights to use it so, and the tables it names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from webapp import limits
from webapp.accounts.actors import Actor, require
from webapp.accounts.services import tenancy
from webapp.connections.models import Connection
from webapp.connections.services import access, inspection, settings
from webapp.connectors import KINDS
from webapp.connectors.base import Capabilities, ConnectorError, Session
from webapp.connectors.channel import Channel, HttpConnector
from webapp.connectors.shape import Entity, Metadata
from webapp.endpoints.models import Endpoint
from webapp.errors import ApiError, Fault, Gathered, did_you_mean, validation_error
from webapp.extensions import db, may_write, only_reads
from webapp.generation.services import rows
from webapp.pushes.models import Push
from webapp.pushes.schemas import SendingInput

OF_A_PUSH: Final = (
    "push_mode", "wrapper_key", "batch_size", "retry", "request_template", "parallel", "rate_per_second",
)  # fmt: skip
"""Words of a push that are settings of connections which speak HTTP."""


def changed_settings(endpoint: Endpoint | None, ask: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that stand in for the connection's: an endpoint's, and before them those of the push itself."""
    told = {name: ask[name] for name in OF_A_PUSH if ask.get(name) is not None}
    own = dict(endpoint.settings) if endpoint else {}
    if own.pop("operation", None):
        own.pop("request_template")  # the operation says it
    return {**own, **told}


@dataclass(slots=True)
class Destination:
    """Where a push goes. `changed` are settings that stand in for the connection's: the endpoint's, the push's own."""

    connection: Connection
    endpoint: Endpoint | None
    changed: dict[str, Any]
    settings_fit: bool = True
    """The settings that the push asks for are valid; else `changed` is without them."""

    @property
    def can(self) -> Capabilities:
        """What the target can do."""
        return capabilities(self.connection)

    @property
    def operation(self) -> str | None:
        """The one target of an endpoint that was made of an operation."""
        return self.endpoint.settings.get("operation") if self.endpoint else None


def destination_of(actor: Actor, ask: SendingInput, gathered: Gathered) -> Destination | None:
    """Return where a push goes; None if that is not known. `gathered` gets every error: not_found, validation_error
    (none named or both, one that takes no rows, settings that do not fit, `confirm`), read_only_connection.

    Error: forbidden (statements of a user who is not an admin).
    """
    if (ask.connection_id is None) == (ask.endpoint_id is None):
        gathered.add([Fault("connection_id", "missing", "Specify either connection_id or endpoint_id.")])
        return None
    endpoint: Endpoint | None = None
    found: Connection | None = None
    name = "connection_id" if ask.endpoint_id is None else "endpoint_id"
    with gathered.check(name):
        if ask.endpoint_id is not None:
            endpoint = tenancy.get(actor, Endpoint, ask.endpoint_id, "push")
        found = named(actor, ask.connection_id or "" if endpoint is None else endpoint.connection_id)
    if found is None:
        return None
    can = capabilities(found)
    gathered.add(_unfit(can, ask))
    if (ask.before_sql or ask.after_sql) and can.sql:
        require(actor, "admin")
    with gathered.check(name):
        usable(found)
    with gathered.check():
        if not ask.dry_run:
            confirmed(found, ask.confirm)
    if not can.by_row:
        return Destination(found, endpoint, {})
    changed = changed_settings(endpoint, ask.model_dump(include=set(OF_A_PUSH)))
    stored = endpoint.settings if endpoint is not None else {}
    with gathered.check():
        settings.check_changed(actor, found, KINDS[found.type], changed, stored)
        return Destination(found, endpoint, changed)
    return Destination(found, endpoint, changed_settings(endpoint, {}), settings_fit=False)


def again(connection: Connection, push: Push) -> Destination:
    """Where a push went."""
    endpoint = db.session.get(Endpoint, push.endpoint_id) if push.endpoint_id else None
    return Destination(connection, endpoint, changed_settings(endpoint, push.request["ask"]))


def _unfit(can: Capabilities, ask: SendingInput) -> list[Fault]:
    """What is asked for, and is not for this kind of connection."""
    told: dict[str, str] = {}
    if not can.by_row:
        told = dict.fromkeys(OF_A_PUSH, "This is for connections that speak HTTP.")
    if not can.sql:
        told |= dict.fromkeys(
            ("before_sql", "after_sql"), "This kind of connection carries out no statements."
        )
    if not can.create_table and can.by_row:
        told["create_table"] = "This kind of connection makes no tables."
    return [
        Fault(name, "not_for_this_type", text, "Leave it out.")
        for name, text in told.items()
        if getattr(ask, name, None) not in (None, [], False)
    ]


def named(actor: Actor, connection_id: str) -> Connection:
    """A connection with tables that the actor may push to. Errors: not_found, forbidden, validation_error."""
    found = tenancy.get(actor, Connection, connection_id, "push")
    if not KINDS[found.type].can.modes:
        text = f"A connection of type {found.type} takes no rows."
        fitting = ", ".join(name for name, kind in KINDS.items() if kind.can.modes)
        hint = f"It answers fields of type {found.type}. Send rows to one of type {fitting}."
        raise validation_error([Fault("connection_id", "not_for_this_type", text, hint)])
    return found


def usable(connection: Connection) -> None:
    """Error: read_only_connection."""
    if connection.read_only:
        text = f'The connection "{connection.name}" is read-only.'
        hint = "Choose another, or unmark it where it is edited."
        raise ApiError("read_only_connection", text, {"connection_id": connection.id, "hint": hint})


def confirmed(connection: Connection, confirm: str | None) -> None:
    """A connection to production is named twice. Error: validation_error, which says what to send."""
    if connection.environment == "prod" and confirm != connection.name:
        text = f'"{connection.name}" is marked as production.'
        raise validation_error(
            [Fault("confirm", "needs_confirmation", text, f'Send confirm: "{connection.name}".')]
        )


def capabilities(connection: Connection) -> Capabilities:
    """What its kind of target can do."""
    return KINDS[connection.type].can


@contextmanager
def told() -> Iterator[None]:
    """Failures of a target as the API tells them."""
    try:
        yield
    except ConnectorError as error:
        raise access.told(error) from None


@contextmanager
def channel_of(destination: Destination) -> Iterator[Channel]:
    """Ready to send; whatever fails in it is told as the API tells it."""
    with told(), access.open_link(destination.connection, changed=destination.changed) as channel:
        assert isinstance(channel, Channel)
        yield channel


@contextmanager
def session_of(connection: Connection) -> Iterator[Session]:
    """An open session, to look at the target; whatever fails in it, or takes too long, is told as the API tells it."""
    whole = limits.PUSH_LOOK_SECONDS
    with told(), access.open_session(connection) as session, access.limited(session, whole, whole):
        yield session


class Places:
    """The paths of a connection that lists no tables: any is one. Stands in for `Catalogue`."""

    def __init__(self, destination: Destination) -> None:
        made = access.connector_of(destination.connection, destination.changed)
        assert isinstance(made, HttpConnector)
        self._connector = made

    def entity(self, name: str) -> Entity | None:
        """A path."""
        try:
            return self._connector.place(name)
        except ConnectorError as error:
            raise validation_error([Fault("target", "invalid", error.message, error.hint)]) from None

    def fitting(self, _name: str) -> Entity | None:
        """The path of the settings."""
        return self._connector.place(None)

    def unknown(self, path: str, name: str) -> Fault:
        """Never told: see `entity`."""
        return Fault(path, "unknown_table", f'There is no path "{name}".')

    def renewed(self) -> bool:
        """There is nothing to read anew."""
        return False

    def look(self, names: Iterable[str]) -> None:
        """There is nothing to look at."""


def catalogue_of(actor: Actor, destination: Destination) -> Catalogue | Places:
    """What rows can be sent to there."""
    if takes_any_path(destination.connection):
        return Places(destination)
    return Catalogue(actor, destination.connection)


def takes_any_path(connection: Connection) -> bool:
    """Whether rows go to any path: it lists no tables or entity sets."""
    kind = KINDS[connection.type]
    return issubclass(kind, HttpConnector) and not kind.has_entities


def spellings(name: str) -> tuple[str, ...]:
    """The tables that the name of a template or of a dataset's table may mean."""
    return name, rows.slug(name), f"{rows.slug(name)}s"


class Catalogue:
    """The tables of a connection, from what is kept of it; looked up anew once, where something is missing."""

    def __init__(self, actor: Actor, connection: Connection) -> None:
        # Who may push may see where the rows go, whatever else a key is narrowed to.
        # What was fetched from outside before has ended the session that the connection was read in.
        self._actor, self._connection = replace(actor, scopes=None), db.session.merge(connection)
        self._fresh = False
        self._metadata: Metadata | None = None
        self._seen: dict[str, Entity | None] = {}

    def look(self, names: Iterable[str]) -> None:
        """Look some tables up at the target now: what is kept may name one that was dropped since, or lack one that was
        created. `entity` and `fitting` then say what was found. Errors: those of the target."""
        wanted = [name for name in names if name not in self._seen]
        if not wanted:
            return
        with session_of(self._connection) as session:
            self._seen |= {name: session.entity(name) for name in wanted}

    def entity(self, name: str) -> Entity | None:
        """A table by its name: exactly, else ignoring case where only one has it so."""
        if name in self._seen:
            return self._seen[name]
        found = self._find(name)
        if found is None and self._renewed():
            found = self._find(name)
        return found

    def fitting(self, name: str) -> Entity | None:
        """The table that a template's or a dataset table's name means: `Order lines` is `order_lines`."""
        for wanted in spellings(name):
            found = self._seen[wanted] if wanted in self._seen else self._find(wanted)
            if found is not None:
                return found
        if self._seen.keys() >= set(spellings(name)):
            return None
        return self._find(name) if self._renewed() else None

    def unknown(self, path: str, name: str) -> Fault:
        """The fault of a table that is not there."""
        makes = capabilities(self._connection).create_table
        text = f'There is no {"table" if makes else "target"} "{name}" in "{self._connection.name}".'
        known = [one.name for one in self._entities()]
        otherwise = (
            "Set create_table to have it made." if makes else "Its metadata lists those that are there."
        )
        hint = did_you_mean(name, known) or otherwise
        return Fault(path, "unknown_table", text, hint)

    def renewed(self) -> bool:
        """Read the tables anew; false where that was just done."""
        self._seen.clear()
        return self._renewed()

    def _entities(self) -> tuple[Entity, ...]:
        if self._metadata is None:
            self._read()
        return self._metadata.entities

    def _find(self, name: str) -> Entity | None:
        exact = [one for one in self._entities() if one.name == name]
        folded = [one for one in self._entities() if one.name.casefold() == name.casefold()]
        return exact[0] if exact else folded[0] if len(folded) == 1 else None

    def _renewed(self) -> bool:
        if self._fresh:
            return False
        self._fresh = True
        self._read(refresh=True)
        return True

    def _read(self, refresh: bool = False) -> None:
        may_write()  # what was read anew is kept
        try:
            self._metadata = inspection.metadata(self._actor, self._connection, refresh=refresh)
        finally:
            only_reads()
