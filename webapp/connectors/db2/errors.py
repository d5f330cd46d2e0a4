"""Convert errors of Db2 by SQLCODE (Db2, "SQL messages")."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from webapp.connectors.base import ConnectionLost, ConnectorError
from webapp.connectors.row_isolation import RowRejection
from webapp.connectors.schema import Entity
from webapp.connectors.sql.base import shorten_message

# The connection is lost: communication failed, the instance stopped, or the session was forced off.
_LOST: Final = frozenset({-30081, -30080, -30108, -1224, -1032, -1229, -4499, -1131})
_LOST_STATES: Final = ("08001", "08003", "08007", "08S01", "40003")
# Errors of one row's values: entries of `base.REASONS`.
_REASONS: Final[Mapping[int, str]] = {
    -803: "unique", -788: "unique", -530: "foreign_key", -531: "foreign_key", -532: "foreign_key",
    -407: "not_null", -545: "check", -161: "check",
    -433: "too_long", -302: "too_long", -404: "too_long", -101: "too_long", -102: "too_long", -670: "too_long",
    -413: "out_of_range", -406: "out_of_range", -405: "out_of_range", -802: "out_of_range", -183: "out_of_range",
    -181: "out_of_range",
    -420: "wrong_type", -180: "wrong_type", -408: "wrong_type", -401: "wrong_type", -440: "wrong_type",
    -461: "wrong_type", -20448: "wrong_type", -16110: "wrong_type",
    -438: "refused", -723: "refused",
}  # fmt: skip
_STATEMENT_ERRORS: Final[Mapping[int, tuple[str, str, bool]]] = {
    -30082: ("auth_failed", "Check the user name and the password.", False),
    -1403: ("auth_failed", "Check the user name and the password.", False),
    -1060: ("auth_failed", "Grant the account CONNECT on the database.", False),
    -1013: ("no_database", "Check the name of the database.", False),
    -30061: ("no_database", "Check the name of the database.", False),
    -1031: ("no_database", "Check the name of the database.", False),
    -20576: ("tls_failed", "Check the certificate, and that this is the TLS port.", False),
    -551: ("no_permission", "Grant the account the privileges that the statement needs on this table.", False),
    -552: ("no_permission", "Grant the account the privilege to create tables.", False),
    -5193: ("no_permission", "Grant the account USAGE on its workload.", False),
    -204: ("no_table", "Refresh the tables.", False),
    -206: ("no_column", "Refresh the tables.", False),
    -601: ("exists", "Choose another name.", False),
    -289: ("full", "The table space is full.", False),
    -964: ("full", "The transaction log is full. Push fewer rows at a time, or increase the log.", True),
    -968: ("full", "The file system of the server is full.", False),
    -1776: ("read_only", "This is a read-only standby. Connect to the primary server.", False),
    -952: ("cancelled", "The statement was cancelled or took too long.", False),
    -668: ("not_ready", "The table requires REORG, LOAD or SET INTEGRITY; the message has the reason code.", False),
    -1040: ("busy", "The server accepts no more connections at the moment.", True),
    -1226: ("busy", "The server accepts no more connections at the moment.", True),
    -798: ("unsupported", "The server always generates this column. Remove it.", False),
    -150: ("unsupported", "The view does not support this change. Select its table.", False),
    -989: ("unsupported", "A trigger of the table changes rows, so keys cannot be returned. Map them.", False),
    -104: ("bad_query", "Check the syntax of the statement.", False),
    -199: ("bad_query", "Check the syntax of the statement.", False),
    -10: ("bad_query", "A quotation mark is missing.", False),
}  # fmt: skip
_CODE: Final = re.compile(r"SQLCODE=(-?\d+)")
_STATE: Final = re.compile(r"SQLSTATE=(\w{5})")
_MESSAGE: Final = re.compile(r"^.*?\b((?:SQL|CLI)\d{4,5}[A-Z]\b)", re.S)
_TAIL: Final = re.compile(r"\s*SQLSTATE=\w{5}\s*(?:SQLCODE=-?\d+)?\s*$")
_REASON_CODE: Final = re.compile(r'[Rr]eason code "?(\d+)')
_SETTING_UP_TLS: Final = "sqlccSSLSocketSetup"  # the driver's function that SQL30081N names
_CONSTRAINT: Final = re.compile(r'(?:FOREIGN KEY|constraint) "([^"]+)"', re.I)
_COLUMN_NUMBER: Final = re.compile(r"COLNO=(\d+)")
_COLUMN_NAME: Final = re.compile(r'(?:column|[Tt]arget name is) "([^"]+)"')
_TRIGGER_STATE: Final = re.compile(r"[7-9I-Z]\w{4}")  # SQLSTATEs that triggers define (SIGNAL)


def convert_error(text: str) -> ConnectorError:
    """Convert a message of the driver. `details.native` is the SQLCODE."""
    code, state = code_of(text), state_of(text)
    message = shorten_message(_TAIL.sub("", _MESSAGE.sub(r"\1", text)))
    details = {"native": str(code), "sqlstate": state} if code else {}
    if code in (-911, -913):  # the server has rolled back
        match = _REASON_CODE.search(message)
        if match is not None and match[1] == "68":  # a lock timeout
            reason, hint = "locked", "Another transaction has locked the rows."
        else:
            reason = "conflict"
            hint = "A deadlock with another transaction occurred, and this one was rolled back."
        return ConnectorError(message, reason=reason, hint=hint, transient=True, details=details)
    if code == -30081 and _SETTING_UP_TLS in text:
        hint = "Check that this is the TLS port, and that ca_certificate is the authority of its certificate."
        return ConnectorError(message, reason="tls_failed", hint=hint, details=details)
    if code in _LOST or (state in _LOST_STATES and code not in _STATEMENT_ERRORS):
        return ConnectionLost(f"The connection to the server was lost: {message}", details=details)
    reason, hint, transient = _STATEMENT_ERRORS.get(code, ("failed", "", False))
    error_code = "read_only_connection" if reason == "read_only" else "target_failed"
    return ConnectorError(
        message, code=error_code, reason=reason, hint=hint, transient=transient, details=details
    )


def code_of(text: str) -> int:
    """Return the SQLCODE of a message; 0 if it has none."""
    match = _CODE.search(text)
    return int(match[1]) if match else 0


def state_of(text: str) -> str:
    """Return the SQLSTATE of a message; "" if it has none."""
    match = _STATE.search(text)
    return match[1] if match else ""


def row_rejection(error: ConnectorError, entity: Entity) -> RowRejection | None:
    """Return why a row of a table was rejected; None if the error does not concern a row."""
    code = int(error.details.get("native", "0"))
    if isinstance(error, ConnectionLost) or error.reason != "failed" or not code:
        return None
    reason = _REASONS.get(code)
    if reason is None and not _TRIGGER_STATE.fullmatch(error.details.get("sqlstate", "")):
        return None
    return RowRejection(reason or "refused", error.message, str(code), _column(error.message, entity))


def _column(message: str, entity: Entity) -> str | None:
    """Return the column that a message names by number (SQL0407N), by name, or by foreign key."""
    if match := _COLUMN_NUMBER.search(message):
        number = int(match[1])
        return entity.fields[number].name if number < len(entity.fields) else None
    if named := _COLUMN_NAME.search(message):
        name = named[1].rpartition(".")[2]
        return name if entity.column(name) else None
    if constraint := _CONSTRAINT.search(message):
        name = constraint[1].rpartition(".")[2]
        foreign_key = next((relation for relation in entity.relations if relation.name == name), None)
        return foreign_key.columns[0] if foreign_key and len(foreign_key.columns) == 1 else None
    return None
