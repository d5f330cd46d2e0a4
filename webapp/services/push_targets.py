"""Where a push goes: its connection, the rights to use it so, and the tables it names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from webapp import limits
from webapp.connectors import KINDS
from webapp.connectors.base import Capabilities, ConnectorError, Entity, Metadata, Session
from webapp.errors import ApiError, Fault, did_you_mean, validation_error
from webapp.extensions import db, may_write, only_reads
from webapp.models import Connection
from webapp.services import connections, deadline, rows, tenancy
from webapp.services.actors import Actor, require
from webapp.services.push_requests import SendingInput

_HTTP: Final = ("push_mode", "wrapper_key", "retry")


def connection_of(actor: Actor, ask: SendingInput) -> Connection:
    """The connection of a push that may be sent there so.

    Errors: not_found, validation_error (none named, one that holds no tables), read_only_connection, forbidden
    (statements of one who is no admin), those of `confirmed`.
    """
    if ask.endpoint_id is not None:
        text = "Endpoints take no pushes yet; name a connection to a database."
        raise validation_error([Fault("endpoint_id", "not_allowed", text)])
    if ask.connection_id is None:
        raise validation_error([Fault("connection_id", "missing", "Where the rows go is needed.")])
    found = named(actor, ask.connection_id)
    unfit = [
        Fault(name, "not_for_this_type", "This is for connections that speak HTTP.", "Leave it out.")
        for name in _HTTP
        if getattr(ask, name) is not None
    ]
    if unfit:
        raise validation_error(unfit)
    if ask.before_sql or ask.after_sql:
        require(actor, "admin")
        if not capabilities(found).sql:
            text = "This kind of connection carries out no statements."
            raise validation_error([Fault("before_sql", "not_for_this_type", text, "Leave them out.")])
    usable(found)
    if not ask.dry_run:
        confirmed(found, ask.confirm)
    return found


def named(actor: Actor, connection_id: str) -> Connection:
    """A connection with tables that the actor may push to. Errors: not_found, forbidden, validation_error."""
    found = tenancy.get(actor, Connection, connection_id, "push")
    if found.type not in KINDS:
        text = f"A connection of type {found.type} has no tables to send rows to."
        hint = f"Name one of type {', '.join(KINDS)}."
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
        raise connections.told(error) from None


@contextmanager
def session_of(connection: Connection) -> Iterator[Session]:
    """An open session, to look at the target; whatever fails in it, or takes too long, is told as the API tells it."""
    whole = limits.PUSH_LOOK_SECONDS
    with told(), connections.open_session(connection) as session, deadline.limited(session, whole, whole):
        yield session


class Catalogue:
    """The tables of a connection, from what is kept of it; looked up anew once, where something is missing."""

    def __init__(self, actor: Actor, connection: Connection) -> None:
        # Who may push may see where the rows go, whatever else a key is narrowed to.
        # What was fetched from outside before has ended the session that the connection was read in.
        self._actor, self._connection = replace(actor, scopes=None), db.session.merge(connection)
        self._fresh = False
        self._metadata: Metadata | None = None

    def entity(self, name: str) -> Entity | None:
        """A table by its name: exactly, else ignoring case where only one has it so."""
        found = self._find(name)
        if found is None and self._renewed():
            found = self._find(name)
        return found

    def fitting(self, name: str) -> Entity | None:
        """The table that a template's or a dataset table's name means: `Order lines` is `order_lines`."""
        for wanted in (name, rows.slug(name), f"{rows.slug(name)}s"):
            found = self._find(wanted)
            if found is not None:
                return found
        return self._find(name) if self._renewed() else None

    def unknown(self, path: str, name: str) -> Fault:
        """The fault of a table that is not there."""
        text = f'There is no table "{name}" in "{self._connection.name}".'
        known = [one.name for one in self._entities()]
        hint = did_you_mean(name, known) or "Set create_table to have it made."
        return Fault(path, "unknown_table", text, hint)

    def renewed(self) -> bool:
        """Read the tables anew; false where that was just done."""
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
            self._metadata = connections.metadata(self._actor, self._connection, refresh=refresh)
        finally:
            only_reads()
