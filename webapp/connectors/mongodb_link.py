"""The way to a MongoDB server or cluster: sockets through the address guard, and the driver's errors as ours."""

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
from webapp.connectors.base import ConnectorError, Lost
from webapp.connectors.sql import shortened
from webapp.connectors.stages import bad_settings, of_gate
from webapp.net.gate import Gate, GateError

Client = pymongo.MongoClient[dict[str, Any]]

# Of the account, the collection, the server (MongoDB, "Error Codes"): reason, hint, whether it may pass.
_WHOLE: Final[Mapping[int, tuple[str, str, bool]]] = {
    18: ("auth_failed", "Check user name, password and authSource.", False),
    11: ("auth_failed", "Check user name and authSource: the account is kept in one database.", False),
    8000: ("auth_failed", "Check user name and password.", False),
    13: ("no_permission", "Grant the account readWrite on the database.", False),
    26: ("no_table", "Look at the collections again.", False),
    48: ("exists", "Choose another name.", False),
    73: ("bad_name", "Choose another name.", False),
    166: ("unsupported", "This is a view: pick its collection.", False),
    50: ("timeout", "It took too long: narrow it down, or add an index.", False),
    2: ("bad_query", "Check the condition.", False),
    9: ("bad_query", "Check the condition.", False),
    11600: ("lost", "The server shuts down.", True),
    14031: ("full", "The server's disk is full.", False),
}
_OUR_SOCKET: Final = "_configured_socket_interface"


@dataclass(frozen=True, slots=True)
class Way:
    """Where to go and how, whichever way the settings said it."""

    hosts: tuple[tuple[str, int], ...]
    database: str
    username: str | None
    password: str | None = field(repr=False)
    tls: str
    authority: str | None
    """Certificates in PEM format; None for the authorities that the machine trusts."""
    options: Mapping[str, Any]
    """Of the driver, by their names in a connection string."""


class Link:
    """A driver's client, whose every socket led to an address that the guard judged."""

    def __init__(self, way: Way, gate: Gate, seconds: float) -> None:
        self.way, self.gate = way, gate
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self.refused: GateError | None = None
        """What the guard said last."""
        self.broken = ""
        """Why the last TLS handshake failed."""
        self.encrypted = ""
        """The version of TLS that is spoken; empty for none."""
        with _authority(way.authority) as path:
            self.client = _client(way, seconds, path, self._pool_class())
        self.database = self.client[way.database]

    def _pool_class(self) -> type[driver.Pool]:
        """The driver's pool of connections with one name in its `connect` bound to `_socket`: where to find a host is
        the guard's to say, and the driver has no other place to put that in."""
        connect = driver.Pool.connect
        if _OUR_SOCKET not in connect.__code__.co_names or connect.__closure__:
            raise ConnectorError(
                f"PyMongo {pymongo.version} is not supported.",
                reason="unsupported",
                hint="Install the version of the lock file.",
            )
        names = {**vars(driver), _OUR_SOCKET: self._socket}
        ours = FunctionType(connect.__code__, names, "connect", connect.__defaults__)
        return type("GuardedPool", (driver.Pool,), {"connect": ours})

    def _socket(self, address: tuple[str, int], options: Any, _session: Any = None) -> NetworkingInterface:
        host, port = address
        try:
            made = self.gate.connect(host, port, options.connect_timeout or limits.TARGET_CONNECT_SECONDS)
        except GateError as error:
            self.refused = error
            raise OSError(error.message) from None
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if options._ssl_context is not None:
            try:
                made = options._ssl_context.wrap_socket(made, server_hostname=host)
            except (OSError, ssl.SSLError) as error:
                made.close()
                self.broken = f"{error.strerror or error}"
                raise
            self.encrypted = made.version() or "TLS"
        made.settimeout(options.socket_timeout)
        self._sockets.add(made)
        return NetworkingInterface(made)

    def cut(self) -> None:
        """End every connection now, without a word to the server; waits in other threads end with them."""
        for one in list(self._sockets):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it is gone already

    def close(self) -> None:
        """Give the connections back."""
        self.client.close()


@contextmanager
def _authority(text: str | None) -> Iterator[str | None]:
    """The driver reads certificates from a file."""
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


def _client(way: Way, seconds: float, authority: str | None, pool_class: type[driver.Pool]) -> Client:
    wait = int(seconds * 1000)
    more: dict[str, Any] = {**way.options}
    if way.username is not None:
        more |= {"username": way.username, "password": way.password or ""}
    if way.tls != "disable":
        more["tls"] = True
        if way.tls == "require":
            more["tlsInsecure"] = True
        elif way.tls == "verify-ca":
            more["tlsAllowInvalidHostnames"] = True
        if authority:
            more["tlsCAFile"] = authority
    try:
        return pymongo.MongoClient(
            [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in way.hosts],
            appname="rowsmith",
            tz_aware=True,
            datetime_conversion="DATETIME_AUTO",
            connectTimeoutMS=wait,
            serverSelectionTimeoutMS=wait,
            maxPoolSize=4,
            connect=False,
            _pool_class=pool_class,
            **more,
        )
    except (errors.PyMongoError, ValueError, TypeError, OSError) as error:
        raise bad_settings(f"The settings are not understood: {error}", "Check the options.") from None


def converted(error: BaseException) -> ConnectorError:
    """An error of the driver's as one of ours, where it is not of one row."""
    if isinstance(error, errors.OperationFailure):
        code, said = error.code or 0, shortened(str((error.details or {}).get("errmsg") or error))
        reason, hint, transient = _WHOLE.get(code, ("failed", "", False))
        if reason == "lost":
            return Lost(said)
        wire = "target_timeout" if reason == "timeout" else "target_failed"
        details = {"native": str(code)} if code else {}
        return ConnectorError(said, code=wire, reason=reason, hint=hint, transient=transient, details=details)
    said = shortened(str(error).partition(", Timeout:")[0])
    if isinstance(error, errors.NetworkTimeout):
        return Lost("The server did not answer in time.", code="target_timeout")
    if isinstance(error, errors.ConnectionFailure | errors.InvalidOperation | OSError):
        return Lost(f"The connection to the server was lost: {said}")
    if isinstance(error, errors.ConfigurationError | errors.InvalidName):
        return bad_settings(said, "Check the settings.")
    return ConnectorError(said)


@contextmanager
def conversing() -> Iterator[None]:
    """What the driver raises within comes out as ours."""
    try:
        yield
    except (errors.PyMongoError, OSError) as error:
        raise converted(error) from error


def arrive(link: Link) -> dict[str, Any]:
    """Say hello, signed in where there is an account: what the server says of itself."""
    try:
        link.client.admin.command("ping")
        return link.client.server_info()
    except errors.OperationFailure as error:
        raise converted(error) from None
    except (errors.PyMongoError, OSError) as error:
        raise _at_arrival(error, link) from None


def _at_arrival(error: BaseException, link: Link) -> ConnectorError:
    if link.refused is not None:
        return of_gate(link.refused)
    if link.broken:
        hint = "Does the server offer TLS? Give the authority's certificate, or check the host's name."
        return ConnectorError(f"TLS failed: {shortened(link.broken)}", reason="tls_failed", hint=hint)
    if isinstance(error, errors.ServerSelectionTimeoutError | errors.NetworkTimeout):
        return ConnectorError(
            "No server of these answered as one to write to.",
            code="target_timeout",
            reason="timeout",
            hint="Does MongoDB listen there, with or without TLS as set? Does replicaSet name the right one?",
            transient=True,
        )
    return converted(error)
