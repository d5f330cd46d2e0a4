"""Opening connections: their settings with their secrets, the address guard, and what may not be told of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import orjson
from flask import current_app

from webapp import storage
from webapp.connectors import KINDS, wire
from webapp.connectors.base import Connector, ConnectorError, Link, Session
from webapp.connectors.channel import HttpConnector
from webapp.connectors.http_token import tokens
from webapp.errors import ApiError, Fault, validation_error
from webapp.models import Connection
from webapp.net.gate import Gate
from webapp.services import connection_settings

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
SQLITE: Final = "sqlite"


def gate() -> Gate:
    """The address guard as the operator set it."""
    return Gate(current_app.config["SETTINGS"].reachable_networks)


def connector_of(connection: Connection, changed: Mapping[str, Any] = NOTHING) -> Connector:
    """The connector of a connection, secrets filled in. Errors: driver_missing, unavailable (no key opens a secret),
    target_failed (it refers to a secret that is gone), validation_error (see `check_disk`)."""
    return hushing(connection, changed)[0]


def hushing(
    connection: Connection, changed: Mapping[str, Any] = NOTHING
) -> tuple[Connector, Callable[[str], str]]:
    """Its connector, and what takes its secrets out of a message: targets repeat what they were told. `changed` are
    settings of one push or endpoint that stand in for its own."""
    kind = KINDS[connection.type]
    driver(connection.type)
    check_disk(connection.type)
    settings, secret = connection_settings.opened(connection, kind, changed)
    folder = current_app.config["SETTINGS"].data_dir / "targets" / connection.workspace_id
    made = kind(settings, gate(), str(folder), connection.read_only)

    def hush(text: str) -> str:
        return connection_settings.hushed(text, [*secret, *tokens.texts()])

    if isinstance(made, HttpConnector):
        made.hush = hush
        made.document = document_of(connection)
    return made, hush


def check_disk(kind: str) -> None:
    """`validation_error` for a kind whose rows would lie on the disk of whichever machine wrote them, where there are
    several."""
    if kind == SQLITE and current_app.config["SETTINGS"].hosts > 1:
        text = "A SQLite file lies on the disk of one machine, and this service runs on several."
        raise validation_error([Fault("type", "one_machine", text, "Use PostgreSQL.")])


def document_of(connection: Connection) -> bytes | None:
    """The metadata document that was uploaded for it. Error: unavailable where the storage has lost it."""
    if connection.document_key is None:
        return None
    try:
        return b"".join(storage.of(current_app).get(connection.document_key))
    except storage.MissingError:
        raise ApiError("unavailable", "The metadata document of this connection is no longer stored.") from None


def open_link(
    connection: Connection, timeout: float | None = None, changed: Mapping[str, Any] = NOTHING
) -> Link:
    """Connect. Raises ApiError as `connector_of`, ConnectorError for the target's own troubles."""
    connector, hush = hushing(connection, changed)
    if isinstance(connector, HttpConnector) and connector.has_entities:
        found = cached(connection)
        connector.known = wire.from_json(found) if found is not None else None
    try:
        return connector.open(timeout)
    except ConnectorError as error:
        error.message = hush(error.message)
        error.args = (error.message,)
        raise


def open_session(connection: Connection, timeout: float | None = None) -> Session:
    """Connect to a database. As `open_link`; ConnectorError (reason unsupported) for what has no tables."""
    link = open_link(connection, timeout)
    if not isinstance(link, Session):
        link.close()
        raise ConnectorError("This kind of connection has no tables.", reason="unsupported")
    return link


def driver(kind: str) -> None:
    """See that the driver of a kind is there. Error: driver_missing."""
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


def cached(connection: Connection) -> dict[str, Any] | None:
    """Its metadata as it was last read, as `wire.to_json` makes it."""
    if connection.metadata_key is None:
        return None
    store = storage.of(current_app)
    try:
        return orjson.loads(b"".join(store.get(connection.metadata_key)))
    except storage.MissingError:
        return None
