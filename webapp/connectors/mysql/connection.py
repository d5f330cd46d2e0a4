"""Connect to a MySQL or MariaDB server: socket through the address guard, TLS, signing in, and results as
Arrow."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pymysql
from pymysql.constants import CLIENT, COMMAND, FIELD_TYPE, FLAG

from webapp import limits
from webapp.connectors.arrow_values import read
from webapp.connectors.base import ConnectionLost, ConnectorError
from webapp.connectors.mysql.errors import convert_error
from webapp.connectors.schema import ColumnType
from webapp.connectors.verification import bad_settings, from_gate_error
from webapp.net.gate import Gate, GateError

if TYPE_CHECKING:
    _Connection = pymysql.connections.Connection[Any]
else:
    _Connection = pymysql.connections.Connection

VERIFYING: Final = ("verify-ca", "verify-full")
_FILE_REFUSED: Final = 2068  # MySQL, CR_LOAD_DATA_LOCAL_INFILE_REJECTED
_MULTIPLE_ON, _MULTIPLE_OFF = 0, 1  # MySQL, "COM_SET_OPTION"


@dataclass(frozen=True, slots=True)
class ConnectOptions:
    """Connect options that are combined from all settings."""

    host: str
    port: int
    database: str | None
    username: str
    password: str = field(repr=False)
    tls: str
    authority: str | None
    """Certificates in PEM format; None for the authorities that the system trusts."""
    options: Mapping[str, str]
    """Session variables."""


class Link(_Connection):
    """A driver connection with adjustable timeouts, which another thread can abort."""

    if TYPE_CHECKING:  # attributes missing in the type stubs of PyMySQL
        _result: Any
        _sock: socket.socket | None

        def _execute_command(self, command: int, sql: bytes) -> None: ...
        def _read_packet(self, packet_type: Any = ...) -> Any: ...
        def _force_close(self) -> None: ...

    @property
    def number(self) -> int:
        """The server's id of this connection (`CONNECTION_ID()`)."""
        return int(self.thread_id())  # type: ignore[no-untyped-call]  # the stubs give it no types

    def patience(self, seconds: float | None) -> None:
        """Set how long each following operation may wait for the server; None for no limit."""
        self._read_timeout = self._write_timeout = seconds

    def _create_ssl_ctx(self, sslp: Any) -> ssl.SSLContext:
        return sslp if isinstance(sslp, ssl.SSLContext) else _context("prefer", None)

    def several(self, on: bool) -> None:
        """Allow or forbid several statements in one command."""
        self._execute_command(COMMAND.COM_SET_OPTION, bytes([_MULTIPLE_ON if on else _MULTIPLE_OFF, 0]))
        self._read_packet()

    def _read_query_result(self, unbuffered: bool = False) -> int:
        try:
            return int(super()._read_query_result(unbuffered))  # type: ignore[misc]  # the stubs leave it out
        except RuntimeError:  # the driver raises it if a server requests a local file
            self._force_close()
            raise pymysql.err.OperationalError(
                _FILE_REFUSED, "The server requested a local file of this machine."
            ) from None

    def hand_over(self, statements: bytes) -> None:
        """Send statements whose results `next_result` returns one by one."""
        self._execute_command(COMMAND.COM_QUERY, statements)

    def next_answer(self) -> int:
        """Return how many rows the next of several statements matched.

        Raises the driver's error if it was rejected; the server then skips the statements after it.
        """
        return self._read_query_result()

    def write(self, statement: bytes) -> int:
        """Run one statement, and return the number of rows that it matched."""
        return self.query(statement)

    @property
    def first_id(self) -> int:
        """The first AUTO_INCREMENT value that the last statement generated; 0 if none."""
        return self._result.insert_id or 0 if self._result else 0

    @property
    def rows(self) -> tuple[tuple[Any, ...], ...]:
        """The result of the last statement."""
        rows: tuple[tuple[Any, ...], ...] = self._result.rows or () if self._result else ()
        return rows

    @property
    def fields(self) -> list[Any]:
        """The columns of what the last statement returned."""
        fields: list[Any] = self._result.fields if self._result and self._result.field_count else []
        return fields

    def cut(self) -> None:
        """Abort the connection without informing the server. An operation in another thread then fails."""
        wire = self._sock
        if wire is not None:
            try:
                wire.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # already closed

    def discard(self) -> bool:
        """Close the connection if the server is still sending rows. Returns whether it did."""
        result = self._result
        if result is None or not result.unbuffered_active:
            return False
        result.unbuffered_active = False
        self._force_close()
        return True

    @property
    def encrypted(self) -> str:
        """The TLS version; empty if the connection is not encrypted."""
        return (self._sock.version() or "TLS") if isinstance(self._sock, ssl.SSLSocket) else ""


class _NotInClear:
    """Sends a password in clear text, as LDAP and PAM require, but only over TLS, because any server may
    request it."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def authenticate(self, _packet: Any) -> Any:
        """See PyMySQL's `auth_plugin_map`."""
        if not self._link.encrypted:
            raise ConnectorError(
                "The server requests the password in clear text, but the connection does not use TLS.",
                reason="tls_failed",
                hint="Choose a TLS mode that encrypts.",
            )
        self._link.write_packet(self._link.password + b"\0")
        return self._link._read_packet()


def wire(params: ConnectOptions, gate: Gate, seconds: float) -> socket.socket:
    """Open a socket to the server that detects a lost peer."""
    try:
        opened = gate.connect(params.host, params.port, seconds)
    except GateError as error:
        raise from_gate_error(error) from None
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    silent = limits.TARGET_SILENT_SECONDS
    kept = {"KEEPIDLE": silent // 2, "KEEPINTVL": silent // 6, "KEEPCNT": 3, "USER_TIMEOUT": silent * 1000}
    for name, value in kept.items():
        if hasattr(socket, f"TCP_{name}"):  # the supported options differ between systems
            opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, f"TCP_{name}"), int(value))
    return opened


def sign_in(params: ConnectOptions, opened: socket.socket, seconds: float) -> Link:
    """Sign in over a socket, which is closed if that fails."""
    try:
        link = _prepared(params)
        link.patience(seconds)
        link.connect(opened)
    except ssl.SSLError as error:
        opened.close()
        raise bad_settings(
            f"The CA certificate is invalid: {error.reason}.", "Enter it in PEM format."
        ) from None
    except (
        RuntimeError
    ) as error:  # the cryptography package, needed for passwords without TLS, is not installed
        opened.close()
        raise ConnectorError(
            str(error), reason="auth_failed", hint="Choose a TLS mode that encrypts."
        ) from None
    except (pymysql.err.Error, OSError, struct.error, IndexError, ValueError, AssertionError) as error:
        opened.close()
        raise _at_sign_in(error, params) from None
    except BaseException:
        opened.close()
        raise
    link.patience(None)
    return link


def _at_sign_in(error: Exception, params: ConnectOptions) -> ConnectorError:
    if isinstance(error, pymysql.err.InternalError) or not isinstance(error, pymysql.err.Error | OSError):
        return ConnectorError(
            "The server at this address is neither MySQL nor MariaDB.",
            reason="not_mysql",
            hint="Check the host and the port.",
        )
    found = convert_error(error)
    if not isinstance(found, ConnectionLost):
        return found
    late = found.code == "target_timeout"
    return ConnectorError(
        f"{params.host}:{params.port} did not respond in time."
        if late
        else f"{params.host}:{params.port} closed the connection.",
        code=found.code,
        reason="timeout" if late else "refused",
        hint="Check that a MySQL or MariaDB server listens on this address.",
        transient=True,
    )


@lru_cache(maxsize=32)
def _context(tls: str, authority: str | None) -> ssl.SSLContext:
    """Return a TLS context. Cached, because loading the system's authorities takes longer than signing in."""
    if tls not in VERIFYING:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context
    context = ssl.create_default_context(cadata=authority)
    context.check_hostname = tls == "verify-full"
    return context


def _prepared(params: ConnectOptions) -> Link:
    secured: dict[str, Any] = {}
    if params.tls == "disable":
        secured["ssl_disabled"] = True
    elif params.tls != "prefer":
        secured["ssl"] = _context(params.tls, params.authority)
    encoders: dict[Any, Any] = dict(pymysql.converters.encoders)
    refusing: dict[str, Any] = {"mysql_clear_password": _NotInClear, "dialog": _NotInClear}
    return Link(
        host=params.host,
        port=params.port,
        user=params.username,
        password=params.password,
        database=params.database,
        charset="utf8mb4",
        conv=encoders,  # values are returned as the server sent them
        autocommit=True,
        client_flag=CLIENT.FOUND_ROWS,
        auth_plugin_map=refusing,
        program_name="rowsmith",
        defer_connect=True,
        **secured,
    )


_BINARY: Final = 63  # the character set "binary"
_TYPES: Final[dict[int, ColumnType]] = {
    **dict.fromkeys(
        (
            FIELD_TYPE.TINY,
            FIELD_TYPE.SHORT,
            FIELD_TYPE.INT24,
            FIELD_TYPE.LONG,
            FIELD_TYPE.LONGLONG,
            FIELD_TYPE.YEAR,
        ),
        "integer",
    ),
    FIELD_TYPE.FLOAT: "float",
    FIELD_TYPE.DOUBLE: "float",
    FIELD_TYPE.DECIMAL: "decimal",
    FIELD_TYPE.NEWDECIMAL: "decimal",
    FIELD_TYPE.DATE: "date",
    FIELD_TYPE.NEWDATE: "date",
    FIELD_TYPE.TIME: "time",
    FIELD_TYPE.DATETIME: "timestamp",
    FIELD_TYPE.TIMESTAMP: "timestamptz",
}
_BYTES: Final = (
    FIELD_TYPE.BLOB, FIELD_TYPE.TINY_BLOB, FIELD_TYPE.MEDIUM_BLOB, FIELD_TYPE.LONG_BLOB, FIELD_TYPE.STRING,
    FIELD_TYPE.VAR_STRING, FIELD_TYPE.VARCHAR, FIELD_TYPE.GEOMETRY,
)  # fmt: skip


def batch_of(fields: Sequence[Any], rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """Convert rows of the server's texts; `fields` are the driver's descriptions of the columns."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(fields)
    arrays = [_array(field, list(values)) for field, values in zip(fields, columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, [field.name for field in fields])


def _array(field: Any, values: list[Any]) -> pa.Array:
    kind = field.type_code
    if kind == FIELD_TYPE.BIT:
        return _whole(
            [None if value is None else str(int.from_bytes(value, "big")) for value in values], field
        )
    if kind in _BYTES and field.charsetnr == _BINARY:
        return pa.array(
            [value.encode() if isinstance(value, str) else value for value in values], pa.binary()
        )
    found = _TYPES.get(kind, "text")
    if found == "integer":
        return _whole(values, field)
    if found == "timestamptz":
        # The session's time zone is UTC.
        values = [None if value is None else f"{value}Z" for value in values]
    return read(values, found, field.scale if found == "decimal" else None)


def _whole(values: list[str | None], field: Any) -> pa.Array:
    """Convert integers. A column of one digit or one bit that contains only 0 and 1 becomes boolean."""
    if field.length == 1 and set(values) <= {"0", "1", None}:
        return read(values, "boolean")
    if field.flags & FLAG.UNSIGNED and field.type_code == FIELD_TYPE.LONGLONG:
        return pa.array(values, pa.string()).cast(pa.uint64())
    return read(values, "integer")
