"""Connect to a MySQL or MariaDB server: socket through the address guard, TLS, signing in, results as Arrow, errors.

Errors are converted by number: MySQL Reference Manual, "Server Error Message Reference"; MariaDB Knowledge Base,
"MariaDB Error Codes".
"""

from __future__ import annotations

import re
import socket
import ssl
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pymysql
from pymysql.constants import CLIENT, COMMAND, FIELD_TYPE, FLAG

from webapp import limits
from webapp.connectors.base import ConnectionLost, ConnectorError
from webapp.connectors.column_values import from_texts
from webapp.connectors.row_isolation import RowRejection
from webapp.connectors.schema import ColumnType, Entity
from webapp.connectors.sql.base import is_row_error, reason_of, shorten_message
from webapp.connectors.verification import bad_settings_error, from_gate_error
from webapp.net.gate import Gate, GateError

_LOST: Final = frozenset({
    0,  # PyMySQL: the connection is closed
    1053,  # the server shuts down
    1927,  # killed by another connection
    2006, 2013, 2014, 2055,  # gone away, lost, out of sync
    3169, 4031,  # MySQL: session killed, disconnected for being idle
})  # fmt: skip

# Errors of one row's values: entries of `base.REASONS`.
_REASONS: Final[Mapping[int, str]] = {
    1022: "unique", 1062: "unique", 1169: "unique", 1586: "unique",
    1216: "foreign_key", 1217: "foreign_key", 1451: "foreign_key", 1452: "foreign_key",
    1048: "not_null", 1263: "not_null", 1364: "not_null",
    1369: "check", 3819: "check", 4025: "check", 1526: "check",
    1406: "too_long", 1301: "too_long", 1162: "too_long",
    1264: "out_of_range", 1690: "out_of_range", 1416: "wrong_type",
    1265: "wrong_type", 1292: "wrong_type", 1366: "wrong_type", 1411: "wrong_type", 1367: "wrong_type",
    1525: "wrong_type", 3140: "wrong_type", 3141: "wrong_type", 4038: "wrong_type",
}  # fmt: skip

# Errors of the table, the account or the server: reason, hint, and whether the same call may succeed later.
_STATEMENT_ERRORS: Final[Mapping[int, tuple[str, str, bool]]] = {
    1040: ("too_many_connections", "The server has no free connections.", True),
    1203: ("too_many_connections", "The account has no free connections.", True),
    1226: ("too_many_connections", "The account has exceeded its hourly limit.", True),
    1129: ("refused", "The server blocks this host. Run FLUSH HOSTS on the server.", False),
    1130: ("refused", "Configure the server to accept connections from this host.", False),
    1045: ("auth_failed", "Check the user name and the password.", False),
    1698: ("auth_failed", "This account can sign in only through a Unix socket. Use one with a password.", False),
    1524: ("auth_failed", "The server does not have the authentication plug-in that the account requires.", False),
    1251: ("auth_failed", "The account's authentication method is too old.", False),
    2059: ("auth_failed", "The account uses an authentication plug-in that is not supported.", False),
    1820: ("auth_failed", "The account's password has expired.", False),
    1862: ("auth_failed", "The account's password has expired.", False),
    3118: ("auth_failed", "The account is locked.", False),
    4151: ("auth_failed", "The account is locked.", False),
    3159: ("tls_failed", "The server accepts only encrypted connections. Choose a TLS mode that encrypts.", False),
    2026: ("tls_failed", "The server does not support TLS, or its certificate is not valid.", False),
    1049: ("no_database", "Check the name of the database.", False),
    1046: ("no_database", "Set a database in the connection.", False),
    1044: ("no_permission", "Grant the account access to the database.", False),
    1142: ("no_permission", "Grant the account the privileges that the statement needs on this table.", False),
    1143: ("no_permission", "Grant the account the privileges that the statement needs on these columns.", False),
    1227: ("no_permission", "The account lacks a privilege that the statement needs.", False),
    1370: ("no_permission", "The account is not allowed to call this routine.", False),
    1146: ("no_table", "Refresh the tables.", False),
    1051: ("no_table", "Refresh the tables.", False),
    1054: ("no_column", "Refresh the tables.", False),
    1050: ("exists", "Choose another name.", False),
    1205: ("locked", "Another transaction has locked the rows.", True),
    1213: ("conflict", "A deadlock with another transaction occurred, and this one was rolled back.", True),
    1020: ("conflict", "Another transaction changed the same rows.", True),
    1114: ("full", "The table is full. Free space on the server.", False),
    1021: ("full", "The server's disk is full.", False),
    1030: ("full", "The server's storage engine failed.", False),
    1290: ("read_only", "The server is read-only. Connect to one that accepts changes.", False),
    1792: ("read_only", "Only read-only statements are allowed.", False),
    1836: ("read_only", "The server is read-only. Connect to one that accepts changes.", False),
    1317: ("cancelled", "The statement was stopped.", False),
    1969: ("timeout", "The statement took too long. Restrict it, or add an index.", False),
    3024: ("timeout", "The statement took too long. Restrict it, or add an index.", False),
    1153: ("too_large", "Increase max_allowed_packet on the server.", False),
    1064: ("bad_query", "Check the syntax of the statement.", False),
    1149: ("bad_query", "Check the syntax of the statement.", False),
    1136: ("bad_query", "The number of values does not match the number of columns.", False),
    1907: ("unsupported", "Remove computed columns.", False),
    3105: ("unsupported", "Remove computed columns.", False),
    1906: ("unsupported", "Remove computed columns.", False),
    2068: ("unsupported", "The request was denied. Check that this is the intended server.", False),
    1471: ("unsupported", "This table cannot be written to.", False),
    1288: ("unsupported", "This table cannot be written to.", False),
}  # fmt: skip
_CODES_BY_REASON: Final[Mapping[str, str]] = {
    "timeout": "target_timeout",
    "read_only": "read_only_connection",
}

_GENERAL: Final = "HY000"  # errors without a specific SQLSTATE

_COLUMN: Final = re.compile(r"[Cc]olumn ['`](?:[^'`]*`\.`)*([^'`]+)['`]|[Ff]ield '([^']+)'")
_FOREIGN_KEY: Final = re.compile(r"FOREIGN KEY \(`([^`]+)`\)")
_INDEX: Final = re.compile(r"for key '(?:[^'.]*\.)?([^']+)'$")
_JSON_CHECK: Final = re.compile(r"CONSTRAINT `[^`.]*\.([^`]+)`")


def error_number(error: BaseException) -> int:
    """Return the number of an error of the server or the driver; 0 if it has none."""
    number = error.args[0] if error.args else 0
    return number if isinstance(number, int) else 0


def error_message(error: BaseException) -> str:
    """Return the server's message without the number."""
    return shorten_message(str(error.args[1] if len(error.args) > 1 else error))


def is_connection_lost(error: BaseException) -> bool:
    """Return whether the connection was lost with this error."""
    if isinstance(error, OSError):
        return True
    return error_number(error) in _LOST or "Packet sequence number wrong" in str(error)


def convert_error(error: BaseException) -> ConnectorError:
    """Convert an error of the driver that does not concern a row."""
    number, message = error_number(error), error_message(error)
    origin = getattr(error, "original_exception", None) or error
    if isinstance(origin, ssl.SSLError):
        problem = getattr(origin, "verify_message", "") or origin.reason or "the handshake failed"
        hint = "Enter the authority's certificate, or check the host name."
        return ConnectorError(f"TLS failed: {problem}.", reason="tls_failed", hint=hint)
    if isinstance(origin, TimeoutError) or "timed out" in message:
        return ConnectionLost("The server did not respond in time.", code="target_timeout")
    if is_connection_lost(error) or isinstance(origin, OSError):
        return ConnectionLost(f"The connection to the server was lost: {message or 'it was closed'}.")
    reason, hint, transient = _STATEMENT_ERRORS.get(number, ("failed", "", False))
    details = {"native": str(number)} if number else {}
    return ConnectorError(
        message,
        code=_CODES_BY_REASON.get(reason, "target_failed"),
        reason=reason,
        hint=hint,
        transient=transient,
        details=details,
    )


@contextmanager
def converting_errors() -> Iterator[None]:
    """Convert errors of the driver that are raised in the block."""
    try:
        yield
    except (pymysql.err.Error, OSError) as error:
        raise convert_error(error) from error


def row_rejection(error: BaseException, entity: Entity) -> RowRejection | None:
    """Return why a row of a table was rejected; None if the error does not concern a row."""
    number, message = error_number(error), error_message(error)
    state = getattr(error, "sqlstate", None) or _GENERAL
    if is_connection_lost(error) or number in _STATEMENT_ERRORS:
        return None
    if number not in _REASONS and state != _GENERAL and not is_row_error(state):
        return None
    reason = _REASONS.get(number) or reason_of(state)
    column = _column_of(number, message, entity)
    if number == 4025 and (json := _JSON_CHECK.search(message)):
        json_column = entity.column(json[1])
        if json_column is not None and json_column.type == "json":
            reason, column, message = "wrong_type", json[1], f"{json[1]} accepts only JSON: {message}"
    return RowRejection(reason, message, str(number), column)


def _column_of(number: int, message: str, entity: Entity) -> str | None:
    if _REASONS.get(number) == "unique":
        index = _INDEX.search(message)
        if index is None:
            return None
        if index[1] == "PRIMARY" and len(entity.keys) == 1:
            return entity.keys[0]
        return index[1] if entity.column(index[1]) else None
    match = _FOREIGN_KEY.search(message) or _COLUMN.search(message)
    name = next((group for group in match.groups() if group), None) if match else None
    return name if name and entity.column(name) else None


if TYPE_CHECKING:
    _Connection = pymysql.connections.Connection[Any]
else:
    _Connection = pymysql.connections.Connection

# --- Connection ---------------------------------------------------------------------------------------------

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


class MysqlConnection(_Connection):
    """A driver connection with adjustable timeouts, which another thread can abort."""

    if TYPE_CHECKING:  # attributes missing in the type stubs of PyMySQL
        _result: Any
        _sock: socket.socket | None

        def _execute_command(self, command: int, sql: bytes) -> None: ...
        def _read_packet(self, packet_type: Any = ...) -> Any: ...
        def _force_close(self) -> None: ...

    @property
    def connection_id(self) -> int:
        """The server's id of this connection (`CONNECTION_ID()`)."""
        return int(self.thread_id())  # type: ignore[no-untyped-call]  # the stubs give it no types

    def set_timeout(self, seconds: float | None) -> None:
        """Set how long each following operation may wait for the server; None for no limit."""
        self._read_timeout = self._write_timeout = seconds

    def _create_ssl_ctx(self, sslp: Any) -> ssl.SSLContext:
        return sslp if isinstance(sslp, ssl.SSLContext) else _tls_context("prefer", None)

    def allow_multiple_statements(self, on: bool) -> None:
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

    def send_statements(self, statements: bytes) -> None:
        """Send statements whose results `next_result` returns one by one."""
        self._execute_command(COMMAND.COM_QUERY, statements)

    def next_row_count(self) -> int:
        """Return how many rows the next of several statements matched.

        Raises the driver's error if it was rejected; the server then skips the statements after it.
        """
        return self._read_query_result()

    def run_statement(self, statement: bytes) -> int:
        """Run one statement, and return the number of rows that it matched."""
        return self.query(statement)

    @property
    def first_insert_id(self) -> int:
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

    def abort(self) -> None:
        """Abort the connection without informing the server. An operation in another thread then fails."""
        connection = self._sock
        if connection is not None:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # already closed

    def close_if_unread(self) -> bool:
        """Close the connection if the server is still sending rows. Returns whether it did."""
        result = self._result
        if result is None or not result.unbuffered_active:
            return False
        result.unbuffered_active = False
        self._force_close()
        return True

    @property
    def tls_version(self) -> str:
        """The TLS version; empty if the connection is not encrypted."""
        return (self._sock.version() or "TLS") if isinstance(self._sock, ssl.SSLSocket) else ""


class _PasswordOverTls:
    """Sends a password in clear text, as LDAP and PAM require, but only over TLS, because any server may
    request it."""

    def __init__(self, link: MysqlConnection) -> None:
        self._link = link

    def authenticate(self, _packet: Any) -> Any:
        """See PyMySQL's `auth_plugin_map`."""
        if not self._link.tls_version:
            raise ConnectorError(
                "The server requests the password in clear text, but the connection does not use TLS.",
                reason="tls_failed",
                hint="Choose a TLS mode that encrypts.",
            )
        self._link.write_packet(self._link.password + b"\0")
        return self._link._read_packet()


def open_socket(params: ConnectOptions, gate: Gate, seconds: float) -> socket.socket:
    """Open a socket to the server that detects a lost peer."""
    try:
        connection = gate.connect(params.host, params.port, seconds)
    except GateError as error:
        raise from_gate_error(error) from None
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    silent = limits.TARGET_UNACKNOWLEDGED_SECONDS
    settings = {
        "KEEPIDLE": silent // 2,
        "KEEPINTVL": silent // 6,
        "KEEPCNT": 3,
        "USER_TIMEOUT": silent * 1000,
    }
    for name, value in settings.items():
        if hasattr(socket, f"TCP_{name}"):  # the supported options differ between systems
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, f"TCP_{name}"), int(value))
    return connection


def sign_in(params: ConnectOptions, connection: socket.socket, seconds: float) -> MysqlConnection:
    """Sign in over a socket, which is closed if that fails."""
    try:
        link = _create_link(params)
        link.set_timeout(seconds)
        link.connect(connection)
    except ssl.SSLError as error:
        connection.close()
        raise bad_settings_error(
            f"The CA certificate is invalid: {error.reason}.", "Enter it in PEM format."
        ) from None
    except (
        RuntimeError
    ) as error:  # the cryptography package, needed for passwords without TLS, is not installed
        connection.close()
        raise ConnectorError(
            str(error), reason="auth_failed", hint="Choose a TLS mode that encrypts."
        ) from None
    except (pymysql.err.Error, OSError, struct.error, IndexError, ValueError, AssertionError) as error:
        connection.close()
        if isinstance(error, pymysql.err.InternalError) or not isinstance(error, pymysql.err.Error | OSError):
            raise ConnectorError(
                "The server at this address is neither MySQL nor MariaDB.",
                reason="not_mysql",
                hint="Check the host and the port.",
            ) from None
        converted = convert_error(error)
        if not isinstance(converted, ConnectionLost):
            raise converted from None
        timed_out = converted.code == "target_timeout"
        raise ConnectorError(
            f"{params.host}:{params.port} did not respond in time."
            if timed_out
            else f"{params.host}:{params.port} closed the connection.",
            code=converted.code,
            reason="timeout" if timed_out else "refused",
            hint="Check that a MySQL or MariaDB server listens on this address.",
            transient=True,
        ) from None
    except BaseException:
        connection.close()
        raise
    link.set_timeout(None)
    return link


@lru_cache(maxsize=32)
def _tls_context(tls: str, authority: str | None) -> ssl.SSLContext:
    """Return a TLS context. Cached, because loading the system's authorities takes longer than signing in."""
    if tls not in VERIFYING:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context
    context = ssl.create_default_context(cadata=authority)
    context.check_hostname = tls == "verify-full"
    return context


def _create_link(params: ConnectOptions) -> MysqlConnection:
    tls_options: dict[str, Any] = {}
    if params.tls == "disable":
        tls_options["ssl_disabled"] = True
    elif params.tls != "prefer":
        tls_options["ssl"] = _tls_context(params.tls, params.authority)
    encoders: dict[Any, Any] = dict(pymysql.converters.encoders)
    auth_plugins: dict[str, Any] = {"mysql_clear_password": _PasswordOverTls, "dialog": _PasswordOverTls}
    return MysqlConnection(
        host=params.host,
        port=params.port,
        user=params.username,
        password=params.password,
        database=params.database,
        charset="utf8mb4",
        conv=encoders,  # values are returned as the server sent them
        autocommit=True,
        client_flag=CLIENT.FOUND_ROWS,
        auth_plugin_map=auth_plugins,
        program_name="rowsmith",
        defer_connect=True,
        **tls_options,
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
        return _to_integers(
            [None if value is None else str(int.from_bytes(value, "big")) for value in values], field
        )
    if kind in _BYTES and field.charsetnr == _BINARY:
        return pa.array(
            [value.encode() if isinstance(value, str) else value for value in values], pa.binary()
        )
    column_type = _TYPES.get(kind, "text")
    if column_type == "integer":
        return _to_integers(values, field)
    if column_type == "timestamptz":
        # The session's time zone is UTC.
        values = [None if value is None else f"{value}Z" for value in values]
    return from_texts(values, column_type, field.scale if column_type == "decimal" else None)


def _to_integers(values: list[str | None], field: Any) -> pa.Array:
    """Convert integers. A column of one digit or one bit that contains only 0 and 1 becomes boolean."""
    if field.length == 1 and set(values) <= {"0", "1", None}:
        return from_texts(values, "boolean")
    if field.flags & FLAG.UNSIGNED and field.type_code == FIELD_TYPE.LONGLONG:
        return pa.array(values, pa.string()).cast(pa.uint64())
    return from_texts(values, "integer")
