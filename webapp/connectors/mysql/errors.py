"""Convert errors of MySQL and MariaDB by number.

Numbers: MySQL Reference Manual, "Server Error Message Reference"; MariaDB Knowledge Base, "MariaDB Error
Codes".
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import pymysql

from webapp.connectors.base import ConnectionLost, ConnectorError
from webapp.connectors.row_isolation import RowRejection
from webapp.connectors.schema import Entity
from webapp.connectors.sql.base import is_of_row, reason_of, shortened

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
_WHOLE: Final[Mapping[int, tuple[str, str, bool]]] = {
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
    1792: ("read_only", "Only statements that read are allowed.", False),
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
_WORDS: Final[Mapping[str, str]] = {
    "timeout": "target_timeout",
    "read_only": "read_only_connection",
}

_GENERAL: Final = "HY000"  # errors without a specific SQLSTATE

_COLUMN: Final = re.compile(r"[Cc]olumn ['`](?:[^'`]*`\.`)*([^'`]+)['`]|[Ff]ield '([^']+)'")
_FOREIGN: Final = re.compile(r"FOREIGN KEY \(`([^`]+)`\)")
_INDEX: Final = re.compile(r"for key '(?:[^'.]*\.)?([^']+)'$")
_JSON_CHECK: Final = re.compile(r"CONSTRAINT `[^`.]*\.([^`]+)`")


def number_of(error: BaseException) -> int:
    """Return the number of an error of the server or the driver; 0 if it has none."""
    number = error.args[0] if error.args else 0
    return number if isinstance(number, int) else 0


def message_of(error: BaseException) -> str:
    """Return the server's message without the number."""
    return shortened(str(error.args[1] if len(error.args) > 1 else error))


def is_lost(error: BaseException) -> bool:
    """Return whether the connection was lost with this error."""
    if isinstance(error, OSError):
        return True
    return number_of(error) in _LOST or "Packet sequence number wrong" in str(error)


def convert_error(error: BaseException) -> ConnectorError:
    """Convert an error of the driver that does not concern a row."""
    number, message = number_of(error), message_of(error)
    origin = getattr(error, "original_exception", None) or error
    if isinstance(origin, ssl.SSLError):
        words = getattr(origin, "verify_message", "") or origin.reason or "the handshake failed"
        hint = "Enter the authority's certificate, or check the host name."
        return ConnectorError(f"TLS failed: {words}.", reason="tls_failed", hint=hint)
    if isinstance(origin, TimeoutError) or "timed out" in message:
        return ConnectionLost("The server did not respond in time.", code="target_timeout")
    if is_lost(error) or isinstance(origin, OSError):
        return ConnectionLost(f"The connection to the server was lost: {message or 'it closed'}.")
    reason, hint, transient = _WHOLE.get(number, ("failed", "", False))
    details = {"native": str(number)} if number else {}
    return ConnectorError(
        message,
        code=_WORDS.get(reason, "target_failed"),
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
    number, message = number_of(error), message_of(error)
    state = getattr(error, "sqlstate", None) or _GENERAL
    if is_lost(error) or number in _WHOLE:
        return None
    if number not in _REASONS and state != _GENERAL and not is_of_row(state):
        return None
    reason = _REASONS.get(number) or reason_of(state)
    column = _column_of(number, message, entity)
    if number == 4025 and (json := _JSON_CHECK.search(message)):
        found = entity.column(json[1])
        if found is not None and found.type == "json":
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
    found = _FOREIGN.search(message) or _COLUMN.search(message)
    name = next((group for group in found.groups() if group), None) if found else None
    return name if name and entity.column(name) else None
