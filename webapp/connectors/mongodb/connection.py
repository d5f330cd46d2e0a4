"""Connect to a MongoDB server or cluster through the address guard, and convert errors of the driver."""

from __future__ import annotations

import os
import socket
import ssl
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, Final

import pymongo
from pymongo import errors
from pymongo.network_layer import NetworkingInterface
from pymongo.synchronous import pool as driver

from webapp import limits
from webapp.connectors.base import ConnectionLost, ConnectorError
from webapp.connectors.sql.base import shorten_message
from webapp.connectors.verification import bad_settings_error, from_gate_error
from webapp.net.gate import Gate, GateError

Client = pymongo.MongoClient[dict[str, Any]]

# Errors of the account, the collection or the server (MongoDB, "Error Codes"): reason, hint, whether it is
# transient.
_STATEMENT_ERRORS: Final[Mapping[int, tuple[str, str, bool]]] = {
    18: ("auth_failed", "Check the user name, the password and authSource.", False),
    11: ("auth_failed", "Check the user name and authSource: an account belongs to one database.", False),
    8000: ("auth_failed", "Check the user name and the password.", False),
    13: ("no_permission", "Grant the account readWrite on the database.", False),
    26: ("no_table", "Refresh the collections.", False),
    48: ("exists", "Choose another name.", False),
    73: ("bad_name", "Choose another name.", False),
    166: ("unsupported", "This is a view. Select its collection.", False),
    50: ("timeout", "The operation took too long. Restrict it, or add an index.", False),
    2: ("bad_query", "Check the condition.", False),
    9: ("bad_query", "Check the condition.", False),
    11600: ("lost", "The server is shutting down.", True),
    14031: ("full", "The server's disk is full.", False),
}
_SOCKET_FUNCTION: Final = "_configured_socket_interface"


@dataclass(frozen=True, slots=True)
class ConnectOptions:
    """Connect options that are combined from all settings."""

    hosts: tuple[tuple[str, int], ...]
    database: str
    username: str | None
    password: str | None = field(repr=False)
    tls: str
    authority: str | None
    """Certificates in PEM format; None for the authorities that the system trusts."""
    options: Mapping[str, Any]
    """Options of the driver, by their names in a connection string."""


class MongodbConnection:
    """A driver client whose sockets all connect through the address guard."""

    def __init__(self, params: ConnectOptions, gate: Gate, seconds: float) -> None:
        self.connect_options, self.gate = params, gate
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self.refused: GateError | None = None
        """The last error of the address guard."""
        self.broken = ""
        """The error of the last failed TLS handshake."""
        self.encrypted = ""
        """The TLS version; empty if the connection is not encrypted."""
        wait, pool_class = int(seconds * 1000), self._pool_class()
        driver_options: dict[str, Any] = {**params.options}
        if params.username is not None:
            driver_options |= {"username": params.username, "password": params.password or ""}
        if params.tls != "disable":
            driver_options["tls"] = True
            if params.tls == "require":
                driver_options["tlsInsecure"] = True
            elif params.tls == "verify-ca":
                driver_options["tlsAllowInvalidHostnames"] = True
        with _certificate_file(params.authority) as path:
            if path and params.tls != "disable":
                driver_options["tlsCAFile"] = path
            try:
                self.client: Client = pymongo.MongoClient(
                    [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in params.hosts],
                    appname="rowsmith",
                    tz_aware=True,
                    datetime_conversion="DATETIME_AUTO",
                    connectTimeoutMS=wait,
                    serverSelectionTimeoutMS=wait,
                    maxPoolSize=4,
                    connect=False,
                    _pool_class=pool_class,
                    **driver_options,
                )
            except (errors.PyMongoError, ValueError, TypeError, OSError) as error:
                raise bad_settings_error(f"The settings are invalid: {error}", "Check the options.") from None
        self.database = self.client[params.database]

    def _pool_class(self) -> type[driver.Pool]:
        """Return the driver's connection pool with one name in its `connect` bound to `_socket`.

        Sockets must be opened by the address guard, and the driver offers no other hook.
        """
        connect = driver.Pool.connect
        if _SOCKET_FUNCTION not in connect.__code__.co_names or connect.__closure__:
            raise ConnectorError(
                f"PyMongo {pymongo.version} is not supported.",
                reason="unsupported",
                hint="Install the version of the lock file.",
            )
        names = {**vars(driver), _SOCKET_FUNCTION: self._socket}
        guarded_connect = FunctionType(connect.__code__, names, "connect", connect.__defaults__)
        return type("GuardedPool", (driver.Pool,), {"connect": guarded_connect})

    def _socket(self, address: tuple[str, int], options: Any, _session: Any = None) -> NetworkingInterface:
        host, port = address
        try:
            connection = self.gate.connect(
                host, port, options.connect_timeout or limits.TARGET_CONNECT_SECONDS
            )
        except GateError as error:
            self.refused = error
            raise OSError(error.message) from None
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if options._ssl_context is not None:
            try:
                connection = options._ssl_context.wrap_socket(connection, server_hostname=host)
            except (OSError, ssl.SSLError) as error:
                connection.close()
                self.broken = f"{error.strerror or error}"
                raise
            self.encrypted = connection.version() or "TLS"
        connection.settimeout(options.socket_timeout)
        self._sockets.add(connection)
        return NetworkingInterface(connection)

    def abort(self) -> None:
        """Abort all connections without informing the server. Operations in other threads then fail."""
        for connection in list(self._sockets):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # already closed

    def close(self) -> None:
        """Close all connections."""
        self.client.close()


@contextmanager
def _certificate_file(text: str | None) -> Iterator[str | None]:
    """Write certificates to a temporary file, because the driver reads them from a file."""
    if text is None:
        yield None
        return
    handle, path = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        yield path
    finally:
        os.unlink(path)


def convert_error(error: BaseException) -> ConnectorError:
    """Convert an error of the driver that does not concern a row."""
    if isinstance(error, errors.OperationFailure):
        code, message = error.code or 0, shorten_message(str((error.details or {}).get("errmsg") or error))
        reason, hint, transient = _STATEMENT_ERRORS.get(code, ("failed", "", False))
        if reason == "lost":
            return ConnectionLost(message)
        error_code = "target_timeout" if reason == "timeout" else "target_failed"
        details = {"native": str(code)} if code else {}
        return ConnectorError(
            message, code=error_code, reason=reason, hint=hint, transient=transient, details=details
        )
    message = shorten_message(str(error).partition(", Timeout:")[0])
    if isinstance(error, errors.NetworkTimeout):
        return ConnectionLost("The server did not respond in time.", code="target_timeout")
    if isinstance(error, errors.ConnectionFailure | errors.InvalidOperation | OSError):
        return ConnectionLost(f"The connection to the server was lost: {message}")
    if isinstance(error, errors.ConfigurationError | errors.InvalidName):
        return bad_settings_error(message, "Check the settings.")
    return ConnectorError(message)


@contextmanager
def converting_errors() -> Iterator[None]:
    """Convert errors of the driver that are raised in the block."""
    try:
        yield
    except (errors.PyMongoError, OSError) as error:
        raise convert_error(error) from error


def handshake(link: MongodbConnection) -> dict[str, Any]:
    """Connect, sign in if there is an account, and return the server's description of itself."""
    try:
        link.client.admin.command("ping")
        return link.client.server_info()
    except errors.OperationFailure as error:
        raise convert_error(error) from None
    except (errors.PyMongoError, OSError) as error:
        if link.refused is not None:
            raise from_gate_error(link.refused) from None
        if link.broken:
            raise ConnectorError(
                f"TLS failed: {shorten_message(link.broken)}",
                reason="tls_failed",
                hint="Check that the server supports TLS. Enter the authority's certificate, or check the host name.",
            ) from None
        if isinstance(error, errors.ServerSelectionTimeoutError | errors.NetworkTimeout):
            raise ConnectorError(
                "None of the servers responded as a writable server.",
                code="target_timeout",
                reason="timeout",
                hint="Check that MongoDB listens on this address, with or without TLS as configured, and that "
                "replicaSet is correct.",
                transient=True,
            ) from None
        raise convert_error(error) from None
