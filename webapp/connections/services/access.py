"""Opening connections: their settings with their secrets, the address guard, and what may not be told of them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

import orjson
from flask import current_app

from webapp import limits, storage
from webapp.connections.models import Connection
from webapp.connections.services import settings as connections_settings
from webapp.connections.services import sqlite_files
from webapp.connections.services.oauth_tokens import SharedTokens
from webapp.connectors import KINDS, wire
from webapp.connectors.base import Connector, ConnectorError, Link, Session
from webapp.connectors.channel import HttpConnector
from webapp.connectors.http_token import tokens
from webapp.connectors.reader_process import ReaderProcess
from webapp.connectors.shape import Metadata
from webapp.connectors.sqlite import SqliteConnector
from webapp.errors import ApiError, Fault, validation_error
from webapp.net.gate import Gate

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


def gate(secrets: Mapping[str, list[str]] = NOTHING) -> Gate:
    """The address guard as the operator set it. `secrets`: what a connection sends, with the hosts that each named
    secret may be sent to."""
    return Gate(current_app.config["SETTINGS"].reachable_networks, secrets)


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
    settings, secret, bound = connections_settings.opened(connection, kind, changed)
    folder = sqlite_files.folder_of(connection)
    made = kind(settings, gate(bound), str(folder), connection.read_only)
    if isinstance(made, SqliteConnector):
        if bound:
            text = (
                f'The secret "{next(iter(bound))}" may be sent to certain hosts only, and a file is no host.'
            )
            raise ApiError("target_not_allowed", text, {"reason": "secret_host"})
        workspace_id = connection.workspace_id
        sqlite_files.make_room(workspace_id)
        made.growth = sqlite_files.allowance(workspace_id)

    def hush(text: str) -> str:
        return connections_settings.hushed(text, [*secret, *tokens.texts()])

    if isinstance(made, HttpConnector):
        made.hush = hush
        made.document = document_of(connection)
        if made.token_credentials is not None:
            made.token_credentials.share_tokens(SharedTokens(connection.id))
    return made, hush


def check_disk(kind: str) -> None:
    """`validation_error` for a kind whose rows would lie on the disk of whichever machine wrote them, where there are
    several."""
    if kind == sqlite_files.KIND and current_app.config["SETTINGS"].hosts > 1:
        text = "A SQLite file lies on the disk of one machine, and this service runs on several."
        raise validation_error([Fault("type", "one_machine", text, "Use PostgreSQL.")])


def document_of(connection: Connection) -> bytes | None:
    """The metadata document that was uploaded for it. Error: unavailable where the storage has lost it."""
    if connection.document_key is None:
        return None
    try:
        return b"".join(storage.of(current_app).get(connection.document_key))
    except storage.MissingError:
        raise ApiError(
            "unavailable", "The metadata document of this connection is no longer stored."
        ) from None


def open_link(
    connection: Connection, timeout: float | None = None, changed: Mapping[str, Any] = NOTHING
) -> Link:
    """Connect. Raises ApiError as `connector_of`, ConnectorError for the target's own troubles."""
    connector, hush = hushing(connection, changed)
    if isinstance(connector, HttpConnector) and connector.has_entities:
        connector.known = known_metadata(connection)
    with _hushed(hush):
        return connector.open(timeout)


def open_session(connection: Connection, timeout: float | None = None) -> Session:
    """Connect to a database. As `open_link`; ConnectorError (reason unsupported) for what has no tables."""
    link = open_link(connection, timeout)
    if not isinstance(link, Session):
        link.close()
        raise ConnectorError("This kind of connection has no tables.", reason="unsupported")
    return link


@contextmanager
def _hushed(hush: Callable[[str], str]) -> Iterator[None]:
    try:
        yield
    except ConnectorError as error:
        error.message = hush(error.message)
        error.args = (error.message,)
        raise


def open_reader(connection: Connection, timeout: float | None = None) -> ReaderProcess | Session:
    """Connect to a database for what users ask of it, such as queries, in a process of its own whose memory is limited.
    As `open_session`."""
    connector, hush = hushing(connection)
    if not connector.can.tables:
        raise ConnectorError("This kind of connection has no tables.", reason="unsupported")
    with _hushed(hush):
        if isinstance(connector, SqliteConnector):  # each of its queries has such a process
            return connector.open(timeout)
        return ReaderProcess(connector, timeout)


def driver(kind: str) -> None:
    """See that the driver of a kind is there. Error: driver_missing."""
    try:
        KINDS[kind].driver()
    except ConnectorError as error:
        raise told(error) from None


def told(error: ConnectorError) -> ApiError:
    """A target's trouble as the API tells it. A request template that names a missing field is the caller's fault."""
    if error.reason == "unknown_field":
        return validation_error([Fault("request_template", "unknown_field", error.message, error.hint)])
    details = {"reason": error.reason, **error.details}
    if error.hint:
        details["hint"] = error.hint
    return ApiError(error.code, error.message, details)


class _Known:
    """Metadata that this process has read from the storage, the least recently used first; at most METADATA_KEPT_TABLES
    tables of all connections together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, tuple[datetime, Metadata]] = OrderedDict()

    def get(self, connection_id: str, read_at: datetime) -> Metadata | None:
        with self._lock:
            held = self._entries.get(connection_id)
            if held is None or held[0] != read_at:
                return None
            self._entries.move_to_end(connection_id)
            return held[1]

    def put(self, connection_id: str, read_at: datetime, metadata: Metadata) -> None:
        with self._lock:
            self._entries.pop(connection_id, None)
            if len(metadata.entities) > limits.METADATA_KEPT_TABLES:
                return
            self._entries[connection_id] = read_at, metadata
            tables = sum(len(held.entities) for _, held in self._entries.values())
            while tables > limits.METADATA_KEPT_TABLES:
                tables -= len(self._entries.popitem(last=False)[1][1].entities)


_known: Final = _Known()


def known_metadata(connection: Connection) -> Metadata | None:
    """Its metadata as it was last read, None before that. Parsing thousands of tables takes long, so they are kept."""
    if connection.metadata_key is None or connection.metadata_at is None:
        return None
    found = _known.get(connection.id, connection.metadata_at)
    if found is None:
        stored = cached(connection)
        if stored is None:
            return None
        found = wire.from_json(stored)
        _known.put(connection.id, connection.metadata_at, found)
    return found


def cached(connection: Connection) -> dict[str, Any] | None:
    """Its metadata as it was last read, as `wire.to_json` makes it."""
    if connection.metadata_key is None:
        return None
    store = storage.of(current_app)
    try:
        return orjson.loads(b"".join(store.get(connection.metadata_key)))
    except storage.MissingError:
        return None


# How long a request may wait for a target.


@contextmanager
def limited(session: Link, left: float, whole: float) -> Iterator[None]:
    """Stops what a session waits for after `left` seconds; the message tells of `whole` seconds.

    A target that is stuck does not keep to the time limit of a statement: somebody else has to end the wait.
    Error: ConnectorError `target_timeout`.
    """
    over = threading.Event()

    def stop() -> None:
        over.set()
        session.cancel()

    timer = threading.Timer(max(0.0, left), stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    except ConnectorError:
        if not over.is_set():
            raise
        raise ConnectorError(
            f"The target did not answer within {whole:g} s.",
            code="target_timeout",
            reason="timeout",
            hint="Look whether it is busy, or whether somebody holds a lock there; then try again.",
        ) from None
    finally:
        timer.cancel()
