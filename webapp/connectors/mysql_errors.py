"""What MySQL and MariaDB say when something goes wrong, by their error numbers.

Numbers: MySQL Reference Manual, "Server Error Message Reference"; MariaDB Knowledge Base, "MariaDB Error Codes".
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import pymysql

from webapp.connectors.base import ConnectorError, Lost
from webapp.connectors.shape import Entity
from webapp.connectors.sieve import Refusal
from webapp.connectors.sql import is_of_row, reason_of, shortened

_LOST: Final = frozenset({
    0,  # PyMySQL: the connection is closed
    1053,  # the server shuts down
    1927,  # killed by another connection
    2006, 2013, 2014, 2055,  # gone away, lost, out of sync
    3169, 4031,  # MySQL: session killed, disconnected for being idle
})  # fmt: skip

# Of one row's values: `base.REASONS`.
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

# Of the table, the account, the server: reason, hint, and whether the same may succeed a moment later.
_WHOLE: Final[Mapping[int, tuple[str, str, bool]]] = {
    1040: ("too_many_connections", "The server has no connection to spare.", True),
    1203: ("too_many_connections", "The account has no connection to spare.", True),
    1226: ("too_many_connections", "The account has used up what it may in an hour.", True),
    1129: ("refused", "The server blocks this host: FLUSH HOSTS there.", False),
    1130: ("refused", "Let the server accept connections from this host.", False),
    1045: ("auth_failed", "Check user name and password.", False),
    1698: ("auth_failed", "This account signs in by the server's own socket only; make one with a password.", False),
    1524: ("auth_failed", "The server wants a way of signing in that it does not have.", False),
    1251: ("auth_failed", "The account's way of signing in is too old.", False),
    2059: ("auth_failed", "The account signs in by a plug-in that is not supported here.", False),
    1820: ("auth_failed", "The account's password has run out.", False),
    1862: ("auth_failed", "The account's password has run out.", False),
    3118: ("auth_failed", "The account is locked.", False),
    4151: ("auth_failed", "The account is locked.", False),
    3159: ("tls_failed", "The server takes encrypted connections only: choose a TLS mode that encrypts.", False),
    2026: ("tls_failed", "The server does not offer TLS, or its certificate does not do.", False),
    1049: ("no_database", "Check the name of the database.", False),
    1046: ("no_database", "Name a database in the connection.", False),
    1044: ("no_permission", "Grant the account access to the database.", False),
    1142: ("no_permission", "Grant the account what the statement needs on this table.", False),
    1143: ("no_permission", "Grant the account what the statement needs on these columns.", False),
    1227: ("no_permission", "The account lacks a privilege that the statement needs.", False),
    1370: ("no_permission", "The account may not call this routine.", False),
    1146: ("no_table", "Look at the tables again.", False),
    1051: ("no_table", "Look at the tables again.", False),
    1054: ("no_column", "Look at the tables again.", False),
    1050: ("exists", "Choose another name.", False),
    1205: ("locked", "Another transaction holds the rows that are wanted.", True),
    1213: ("conflict", "Another transaction wanted the same rows; one of the two had to give way.", True),
    1020: ("conflict", "Another transaction changed the same rows.", True),
    1114: ("full", "The table is full: make room on the server.", False),
    1021: ("full", "The server's disk is full.", False),
    1030: ("full", "The server's storage engine failed.", False),
    1290: ("read_only", "The server takes no changes; connect to one that does.", False),
    1792: ("read_only", "Only statements that read are allowed here.", False),
    1836: ("read_only", "The server takes no changes; connect to one that does.", False),
    1317: ("cancelled", "The statement was stopped.", False),
    1969: ("timeout", "The statement took too long: narrow it down, or add an index.", False),
    3024: ("timeout", "The statement took too long: narrow it down, or add an index.", False),
    1153: ("too_large", "Raise max_allowed_packet on the server.", False),
    1064: ("bad_query", "The server cannot read the statement.", False),
    1149: ("bad_query", "The server cannot read the statement.", False),
    1136: ("bad_query", "The number of values is not that of the columns.", False),
    1907: ("unsupported", "Leave computed columns out.", False),
    3105: ("unsupported", "Leave computed columns out.", False),
    1906: ("unsupported", "Leave computed columns out.", False),
    2068: ("unsupported", "It is given none. Is that server what it should be?", False),
    1471: ("unsupported", "This cannot be written to.", False),
    1288: ("unsupported", "This cannot be written to.", False),
}  # fmt: skip
_WORDS: Final[Mapping[str, str]] = {
    "timeout": "target_timeout",
    "read_only": "read_only_connection",
}

_GENERAL: Final = "HY000"  # errors that have no SQLSTATE of their own

_COLUMN: Final = re.compile(r"[Cc]olumn ['`](?:[^'`]*`\.`)*([^'`]+)['`]|[Ff]ield '([^']+)'")
_FOREIGN: Final = re.compile(r"FOREIGN KEY \(`([^`]+)`\)")
_INDEX: Final = re.compile(r"for key '(?:[^'.]*\.)?([^']+)'$")
_JSON_CHECK: Final = re.compile(r"CONSTRAINT `[^`.]*\.([^`]+)`")


def number_of(error: BaseException) -> int:
    """The server's or driver's number of an error; 0 where it has none."""
    number = error.args[0] if error.args else 0
    return number if isinstance(number, int) else 0


def message_of(error: BaseException) -> str:
    """The server's words, without the number."""
    return shortened(str(error.args[1] if len(error.args) > 1 else error))


def is_lost(error: BaseException) -> bool:
    """Whether the connection went away with this error."""
    if isinstance(error, OSError):
        return True
    return number_of(error) in _LOST or "Packet sequence number wrong" in str(error)


def converted(error: BaseException) -> ConnectorError:
    """An error of the driver's as one of ours, where it is not of one row."""
    number, message = number_of(error), message_of(error)
    origin = getattr(error, "original_exception", None) or error
    if isinstance(origin, ssl.SSLError):
        words = getattr(origin, "verify_message", "") or origin.reason or "the handshake failed"
        hint = "Give the authority's certificate, or check the host's name."
        return ConnectorError(f"TLS failed: {words}.", reason="tls_failed", hint=hint)
    if isinstance(origin, TimeoutError) or "timed out" in message:
        return Lost("The server did not answer in time.", code="target_timeout")
    if is_lost(error) or isinstance(origin, OSError):
        return Lost(f"The connection to the server was lost: {message or 'it closed'}.")
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
def conversing() -> Iterator[None]:
    """What the driver raises within comes out as ours."""
    try:
        yield
    except (pymysql.err.Error, OSError) as error:
        raise converted(error) from error


def refusal(error: BaseException, entity: Entity) -> Refusal | None:
    """What an error says of a row of a table; None where it is not of one row."""
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
            reason, column, message = "wrong_type", json[1], f"{json[1]} takes JSON only: {message}"
    return Refusal(reason, message, str(number), column)


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
