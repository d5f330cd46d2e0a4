"""Open connections: fill in secrets, apply the address guard, and redact secrets in messages."""

from __future__ import annotations

import hmac
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from secrets import token_hex
from types import MappingProxyType
from typing import Any, Final

import orjson
import redis
from flask import current_app

from webapp import app_vault, clock, limits, storage
from webapp.connections.models import Connection
from webapp.connections.services import settings as connections_settings
from webapp.connections.services import sqlite_files
from webapp.connectors import KINDS, metadata_json
from webapp.connectors.base import Connector, ConnectorError, OpenConnection, Session
from webapp.connectors.http.channel import HttpConnector
from webapp.connectors.http.tokens import StoredToken, tokens
from webapp.connectors.reader_process import ReaderProcess
from webapp.connectors.schema import Metadata
from webapp.connectors.sqlite.connector import SqliteConnector
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import redis_client
from webapp.monitoring import process_log
from webapp.net.gate import Gate
from webapp.security.sealing import VaultError

# OAuth tokens shared by web processes, workers and their jobs: encrypted in Redis, one entry per connection and
# credentials.

log = logging.getLogger(__name__)

_PREFIX: Final = "rowsmith:oauth:"
# Deletes a key that still has the value it was read with. KEYS[1] the key, ARGV[1] the value.
_DELETE_IF_EQUAL: Final = (
    'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end'
)


class SharedTokens:
    """The `TokenStore` of one connection. Safe in any thread; needs an app context only when it is created."""

    def __init__(self, connection_id: str) -> None:
        self.scope = connection_id
        self._client, self._vault = redis_client(), app_vault.vault()
        self._secret = current_app.config["SETTINGS"].secret_key.encode()

    def _redis_key(self, key: str) -> str:
        """Return the Redis key, with a keyed digest: a plain one would let a reader of Redis try out client secrets."""
        digest = hmac.new(self._secret, key.encode(), "sha256").hexdigest()
        return f"{_PREFIX}{self.scope}:{digest}"

    def _read(self, name: str) -> tuple[bytes | None, StoredToken | None]:
        sealed = self._client.get(name)
        if sealed is None:
            return None, None
        assert isinstance(sealed, bytes)
        try:
            entry = StoredToken(**orjson.loads(self._vault.open(sealed)))
        except VaultError:
            return sealed, None  # sealed with a key that has been removed since
        process_log.add_secrets(entry.token)
        return sealed, entry

    def load(self, key: str) -> StoredToken | None:
        """See `TokenStore.load`."""
        try:
            return self._read(self._redis_key(key))[1]
        except redis.RedisError as error:
            log.warning("the shared OAuth tokens cannot be read: %s", type(error).__name__)
            return None

    def save(self, key: str, entry: StoredToken) -> None:
        """See `TokenStore.save`."""
        process_log.add_secrets(entry.token)
        lifetime = entry.until - clock.epoch() if entry.token else limits.TOKEN_FAILURE_SECONDS
        if lifetime <= 0:
            return
        try:
            sealed = self._vault.seal(orjson.dumps(asdict(entry)).decode())
            self._client.set(self._redis_key(key), sealed, px=max(round(lifetime * 1000), 1))
        except VaultError:
            return  # without a key nothing is stored
        except redis.RedisError as error:
            log.warning("an OAuth token cannot be shared: %s", type(error).__name__)

    def drop(self, key: str, token: str) -> None:
        """See `TokenStore.drop`."""
        name = self._redis_key(key)
        try:
            sealed, entry = self._read(name)
            if sealed is not None and (entry is None or entry.token == token):
                self._client.eval(_DELETE_IF_EQUAL, 1, name, sealed)
        except redis.RedisError as error:
            log.warning("a rejected OAuth token cannot be removed: %s", type(error).__name__)

    @contextmanager
    def fetch_lock(self, key: str, wait: Callable[[], None]) -> Iterator[None]:
        """See `TokenStore.fetch_lock`. The lock expires, so that a killed process does not block others."""
        name, owner = f"{self._redis_key(key)}:lock", token_hex(8).encode()
        try:
            while not self._client.set(name, owner, nx=True, px=round(limits.TOKEN_LOCK_SECONDS * 1000)):
                wait()
        except redis.RedisError as error:
            log.warning("an OAuth token is fetched without a lock: %s", type(error).__name__)
        try:
            yield
        finally:
            try:
                self._client.eval(_DELETE_IF_EQUAL, 1, name, owner)
            except redis.RedisError:
                log.info("the lock of an OAuth token was not released and will expire")


NO_CHANGES: Final[Mapping[str, Any]] = MappingProxyType({})


def create_gate(secrets: Mapping[str, list[str]] = NO_CHANGES) -> Gate:
    """Return the address guard with the operator's networks. `secrets` are the hosts that each named secret may be
    sent to."""
    return Gate(current_app.config["SETTINGS"].reachable_networks, secrets)


def create_connector(connection: Connection, changed: Mapping[str, Any] = NO_CHANGES) -> Connector:
    """Return the connector of a connection with its secrets filled in.

    Errors: driver_missing, unavailable (no key decrypts a secret), target_failed (the settings refer to a secret that
    does not exist), validation_error (see `check_single_host`)."""
    return create_connector_and_redactor(connection, changed)[0]


def create_connector_and_redactor(
    connection: Connection, changed: Mapping[str, Any] = NO_CHANGES
) -> tuple[Connector, Callable[[str], str]]:
    """Return the connector of a connection, and a function that redacts its secrets in messages, because targets may
    repeat them.

    `changed` are settings of one push or endpoint that override the connection's."""
    kind = KINDS[connection.type]
    check_driver(connection.type)
    check_single_host(connection.type)
    settings, secret, bound = connections_settings.decrypted_settings(connection, kind, changed)
    folder = sqlite_files.folder_of(connection)
    connector = kind(settings, create_gate(bound), str(folder), connection.read_only)
    if isinstance(connector, SqliteConnector):
        if bound:
            text = f'The secret "{next(iter(bound))}" may only be sent to certain hosts, so a file cannot use it.'
            raise ApiError("target_not_allowed", text, {"reason": "secret_host"})
        workspace_id = connection.workspace_id
        sqlite_files.make_room(workspace_id)
        connector.growth_allowance = sqlite_files.growth_allowance(workspace_id)

    def redact(text: str) -> str:
        return connections_settings.redact_plaintexts(text, [*secret, *tokens.current_tokens()])

    if isinstance(connector, HttpConnector):
        connector.redact = redact
        connector.document = load_document(connection)
        if connector.token_credentials is not None:
            connector.token_credentials.share_tokens(SharedTokens(connection.id))
    return connector, redact


def check_single_host(kind: str) -> None:
    """Raise validation_error for SQLite if the service runs on several machines, each of which has its own disk."""
    if kind == sqlite_files.KIND and current_app.config["SETTINGS"].hosts > 1:
        text = "A SQLite file is stored on the disk of one machine, but this service runs on several."
        raise validation_error([Fault("type", "one_machine", text, "Use PostgreSQL.")])


def load_document(connection: Connection) -> bytes | None:
    """Return the uploaded metadata document, or None. Error: unavailable if the storage no longer has it."""
    if connection.document_key is None:
        return None
    try:
        return b"".join(storage.get_storage(current_app).get(connection.document_key))
    except storage.MissingError:
        raise ApiError(
            "unavailable", "The metadata document of this connection is no longer stored."
        ) from None


def open_connection(
    connection: Connection, timeout: float | None = None, changed: Mapping[str, Any] = NO_CHANGES
) -> OpenConnection:
    """Connect. Raises ApiError as `create_connector`, and ConnectorError for errors of the target."""
    connector, redact = create_connector_and_redactor(connection, changed)
    if isinstance(connector, HttpConnector) and connector.has_entities:
        connector.cached_metadata = known_metadata(connection)
    with _redacting(redact):
        return connector.open(timeout)


def open_session(connection: Connection, timeout: float | None = None) -> Session:
    """Connect to a database. Raises as `open_connection`, and ConnectorError (reason unsupported) for other kinds."""
    link = open_connection(connection, timeout)
    if not isinstance(link, Session):
        link.close()
        raise ConnectorError("This kind of connection has no tables.", reason="unsupported")
    return link


@contextmanager
def _redacting(redact: Callable[[str], str]) -> Iterator[None]:
    try:
        yield
    except ConnectorError as error:
        error.message = redact(error.message)
        error.args = (error.message,)
        raise


def open_reader(connection: Connection, timeout: float | None = None) -> ReaderProcess | Session:
    """Connect to a database in a separate process with limited memory, for queries of users. Raises as
    `open_session`."""
    connector, redact = create_connector_and_redactor(connection)
    if not connector.can.tables:
        raise ConnectorError("This kind of connection has no tables.", reason="unsupported")
    with _redacting(redact):
        if isinstance(connector, SqliteConnector):  # runs each query in such a process itself
            return connector.open(timeout)
        return ReaderProcess(connector, timeout)


def check_driver(kind: str) -> None:
    """Check that the driver of a kind is installed. Error: driver_missing."""
    try:
        KINDS[kind].driver()
    except ConnectorError as error:
        raise api_error(error) from None


def api_error(error: ConnectorError) -> ApiError:
    """Convert an error of a target to an API error. A request template with an unknown field is a validation error."""
    if error.reason == "unknown_field":
        return validation_error([Fault("request_template", "unknown_field", error.message, error.hint)])
    details = {"reason": error.reason, **error.details}
    if error.hint:
        details["hint"] = error.hint
    return ApiError(error.code, error.message, details)


class _MetadataCache:
    """A cache of metadata in this process. Removes the least recently used entries when all entries together have more
    than METADATA_CACHED_TABLES tables."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, tuple[datetime, Metadata]] = OrderedDict()

    def get(self, connection_id: str, read_at: datetime) -> Metadata | None:
        with self._lock:
            entry = self._entries.get(connection_id)
            if entry is None or entry[0] != read_at:
                return None
            self._entries.move_to_end(connection_id)
            return entry[1]

    def put(self, connection_id: str, read_at: datetime, metadata: Metadata) -> None:
        with self._lock:
            self._entries.pop(connection_id, None)
            if len(metadata.entities) > limits.METADATA_CACHED_TABLES:
                return
            self._entries[connection_id] = read_at, metadata
            tables = sum(len(cached.entities) for _, cached in self._entries.values())
            while tables > limits.METADATA_CACHED_TABLES:
                tables -= len(self._entries.popitem(last=False)[1][1].entities)


_metadata_cache: Final = _MetadataCache()


def known_metadata(connection: Connection) -> Metadata | None:
    """Return the metadata of a connection as last read, or None. Cached, because parsing it may take long."""
    if connection.metadata_key is None or connection.metadata_at is None:
        return None
    found = _metadata_cache.get(connection.id, connection.metadata_at)
    if found is None:
        stored = cached_metadata_json(connection)
        if stored is None:
            return None
        found = metadata_json.from_json(stored)
        _metadata_cache.put(connection.id, connection.metadata_at, found)
    return found


def cached_metadata_json(connection: Connection) -> dict[str, Any] | None:
    """Return the metadata of a connection as last read, as JSON (see `metadata_json.to_json`), or None."""
    if connection.metadata_key is None:
        return None
    store = storage.get_storage(current_app)
    try:
        metadata: dict[str, Any] = orjson.loads(b"".join(store.get(connection.metadata_key)))
    except storage.MissingError:
        return None
    return metadata


@contextmanager
def time_limited(session: OpenConnection, left: float, limit: float) -> Iterator[None]:
    """Cancel the operation of a session after `left` seconds. The message names the time limit, `limit` seconds.

    A target that hangs ignores the time limit of a statement, so another thread cancels it. Raises ConnectorError
    (code `target_timeout`).
    """
    timed_out = threading.Event()

    def stop() -> None:
        timed_out.set()
        session.cancel()

    timer = threading.Timer(max(0.0, left), stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    except ConnectorError:
        if not timed_out.is_set():
            raise
        raise ConnectorError(
            f"The target did not respond within {limit:g} s.",
            code="target_timeout",
            reason="timeout",
            hint="Check whether the target is busy or waiting for a lock, then try again.",
        ) from None
    finally:
        timer.cancel()
