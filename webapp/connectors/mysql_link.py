"""The way to a MySQL or MariaDB server: a socket through the address guard, TLS, and signing in."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import pymysql
from pymysql.constants import CLIENT, COMMAND

from webapp import limits
from webapp.connectors.base import ConnectorError, Lost
from webapp.connectors.mysql_errors import converted
from webapp.connectors.stages import bad_settings, of_gate
from webapp.net.gate import Gate, GateError

if TYPE_CHECKING:
    _Connection = pymysql.connections.Connection[Any]
else:
    _Connection = pymysql.connections.Connection

VERIFYING: Final = ("verify-ca", "verify-full")
_FILE_REFUSED: Final = 2068  # MySQL, CR_LOAD_DATA_LOCAL_INFILE_REJECTED
_MULTIPLE_ON, _MULTIPLE_OFF = 0, 1  # MySQL, "COM_SET_OPTION"


@dataclass(frozen=True, slots=True)
class Way:
    """Where to go and how, whichever way the settings said it."""

    host: str
    port: int
    database: str | None
    username: str
    password: str = field(repr=False)
    tls: str
    authority: str | None
    """Certificates in PEM format; None for the authorities that the machine trusts."""
    options: Mapping[str, str]
    """Session variables."""


class Link(_Connection):
    """A driver's connection whose waits can be set, and which another thread can cut."""

    def patience(self, seconds: float | None) -> None:
        """How long each wait for the server may take from now on; None: until it answers or is gone."""
        self._read_timeout = self._write_timeout = seconds

    def _create_ssl_ctx(self, sslp: Any) -> ssl.SSLContext:
        return sslp if isinstance(sslp, ssl.SSLContext) else _context("prefer", None)

    def several(self, on: bool) -> None:
        """Whether one command may hold several statements."""
        self._execute_command(COMMAND.COM_SET_OPTION, bytes([_MULTIPLE_ON if on else _MULTIPLE_OFF, 0]))
        self._read_packet()

    def _read_query_result(self, unbuffered: bool = False) -> int:
        try:
            return super()._read_query_result(unbuffered)
        except RuntimeError:  # the driver, of a server that asks for a file of this machine
            self._force_close()
            raise pymysql.err.OperationalError(
                _FILE_REFUSED, "The server asks for a file of this machine."
            ) from None

    def hand_over(self, statements: bytes) -> None:
        """Send statements whose answers `next_answer` takes one by one."""
        self._execute_command(COMMAND.COM_QUERY, statements)

    def next_answer(self) -> int:
        """How many rows the next of several statements has found. Raises the driver's error where it was refused;
        the server then leaves those after it alone."""
        return self._read_query_result()

    def write(self, statement: bytes) -> int:
        """Carry out one statement and return the rows it has found."""
        return self.query(statement)

    @property
    def first_id(self) -> int:
        """The first AUTO_INCREMENT value that the last statement made; 0 for none."""
        return self._result.insert_id or 0 if self._result else 0

    @property
    def rows(self) -> tuple[tuple[Any, ...], ...]:
        """What the last statement returned."""
        return self._result.rows or () if self._result else ()

    @property
    def fields(self) -> list[Any]:
        """The columns of what the last statement returned."""
        return self._result.fields if self._result and self._result.field_count else []

    def cut(self) -> None:
        """End the connection now, without a word to the server; a wait in another thread ends with it."""
        wire = self._sock
        if wire is not None:
            try:
                wire.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it is gone already

    def discard(self) -> bool:
        """End the connection where the server still sends rows that nobody reads. Whether it did."""
        result = self._result
        if result is None or not result.unbuffered_active:
            return False
        result.unbuffered_active = False
        self._force_close()
        return True

    @property
    def encrypted(self) -> str:
        """The version of TLS that is spoken; empty for none."""
        return (self._sock.version() or "TLS") if isinstance(self._sock, ssl.SSLSocket) else ""


class _NotInClear:
    """Sends a password in clear text, as LDAP and PAM want it, through TLS only: any server may ask for one."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def authenticate(self, _packet: Any) -> Any:
        """See PyMySQL's `auth_plugin_map`."""
        if not self._link.encrypted:
            raise ConnectorError(
                "The server asks for the password in clear text, and TLS is not spoken.",
                reason="tls_failed",
                hint="Choose a TLS mode that encrypts.",
            )
        self._link.write_packet(self._link.password + b"\0")
        return self._link._read_packet()


def wire(way: Way, gate: Gate, seconds: float) -> socket.socket:
    """A socket to the server, which notices when the other side is gone."""
    try:
        opened = gate.connect(way.host, way.port, seconds)
    except GateError as error:
        raise of_gate(error) from None
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    silent = limits.TARGET_SILENT_SECONDS
    kept = {"KEEPIDLE": silent // 2, "KEEPINTVL": silent // 6, "KEEPCNT": 3, "USER_TIMEOUT": silent * 1000}
    for name, value in kept.items():
        if hasattr(socket, f"TCP_{name}"):  # each system has some of them
            opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, f"TCP_{name}"), int(value))
    return opened


def sign_in(way: Way, opened: socket.socket, seconds: float) -> Link:
    """A connection over a socket, which is closed where none comes about."""
    try:
        link = _prepared(way)
        link.patience(seconds)
        link.connect(opened)
    except ssl.SSLError as error:
        opened.close()
        raise bad_settings(
            f"The CA certificate cannot be read: {error.reason}.", "Paste it in PEM format."
        ) from None
    except RuntimeError as error:  # the package cryptography, for passwords without TLS, is not there
        opened.close()
        raise ConnectorError(
            str(error), reason="auth_failed", hint="Choose a TLS mode that encrypts."
        ) from None
    except (pymysql.err.Error, OSError, struct.error, IndexError, ValueError, AssertionError) as error:
        opened.close()
        raise _at_sign_in(error, way) from None
    except BaseException:
        opened.close()
        raise
    link.patience(None)
    return link


def _at_sign_in(error: Exception, way: Way) -> ConnectorError:
    if isinstance(error, pymysql.err.InternalError) or not isinstance(error, pymysql.err.Error | OSError):
        return ConnectorError(
            "What answers there is neither MySQL nor MariaDB.",
            reason="not_mysql",
            hint="Check host and port.",
        )
    found = converted(error)
    if not isinstance(found, Lost):
        return found
    late = found.code == "target_timeout"
    return ConnectorError(
        f"{way.host}:{way.port} did not answer in time." if late else f"{way.host}:{way.port} broke off.",
        code=found.code,
        reason="timeout" if late else "refused",
        hint="Does a MySQL or MariaDB server listen there?",
        transient=True,
    )


@lru_cache(maxsize=32)
def _context(tls: str, authority: str | None) -> ssl.SSLContext:
    """How a connection is secured. Kept, since reading this machine's authorities takes longer than signing in."""
    if tls not in VERIFYING:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context
    context = ssl.create_default_context(cadata=authority)
    context.check_hostname = tls == "verify-full"
    return context


def _prepared(way: Way) -> Link:
    secured: dict[str, Any] = {}
    if way.tls == "disable":
        secured["ssl_disabled"] = True
    elif way.tls != "prefer":
        secured["ssl"] = _context(way.tls, way.authority)
    return Link(
        host=way.host,
        port=way.port,
        user=way.username,
        password=way.password,
        database=way.database,
        charset="utf8mb4",
        conv=dict(pymysql.converters.encoders),  # what comes back stays as the server wrote it
        autocommit=True,
        client_flag=CLIENT.FOUND_ROWS,
        auth_plugin_map={"mysql_clear_password": _NotInClear, "dialog": _NotInClear},
        program_name="rowsmith",
        defer_connect=True,
        **secured,
    )
