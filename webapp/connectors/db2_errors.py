"""What Db2 says when something goes wrong, by its SQLCODEs (Db2, "SQL messages")."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from webapp.connectors.base import ConnectorError, Lost
from webapp.connectors.shape import Entity
from webapp.connectors.sieve import Refusal
from webapp.connectors.sql import shortened

# The way is gone: communication, the instance stopped, the session forced off; and what the driver says of that itself.
_LOST: Final = frozenset({-30081, -30080, -30108, -1224, -1032, -1229, -4499, -1131})
_LOST_STATES: Final = ("08001", "08003", "08007", "08S01", "40003")
# Of one row's values: `base.REASONS`.
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
_WHOLE: Final[Mapping[int, tuple[str, str, bool]]] = {
    -30082: ("auth_failed", "Check user name and password.", False),
    -1403: ("auth_failed", "Check user name and password.", False),
    -1060: ("auth_failed", "Grant the account CONNECT on the database.", False),
    -1013: ("no_database", "Check the name of the database.", False),
    -30061: ("no_database", "Check the name of the database.", False),
    -1031: ("no_database", "Check the name of the database.", False),
    -20576: ("tls_failed", "Does the certificate fit, and is this the port for TLS?", False),
    -551: ("no_permission", "Grant the account what the statement needs on this table.", False),
    -552: ("no_permission", "Grant the account the right to make tables.", False),
    -5193: ("no_permission", "The account has no session of its own workload: grant USAGE.", False),
    -204: ("no_table", "Look at the tables again.", False),
    -206: ("no_column", "Look at the tables again.", False),
    -601: ("exists", "Choose another name.", False),
    -289: ("full", "The table space is full.", False),
    -964: ("full", "The transaction log is full: push fewer rows at once, or let the log grow.", True),
    -968: ("full", "The file system of the server is full.", False),
    -1776: ("read_only", "This is a standby, which takes no changes: connect to the primary.", False),
    -952: ("cancelled", "The statement was stopped, or it took too long.", False),
    -668: ("not_ready", "The table waits for REORG, LOAD or SET INTEGRITY; its message has the reason code.", False),
    -1040: ("busy", "The server takes no more connections at this moment.", True),
    -1226: ("busy", "The server takes no more connections at this moment.", True),
    -798: ("unsupported", "The column is always counted by the server: leave it out.", False),
    -150: ("unsupported", "The view takes no such change: pick its table.", False),
    -989: ("unsupported", "A trigger of the table changes rows, so keys cannot be brought back: map them.", False),
    -104: ("bad_query", "The server cannot read the statement.", False),
    -199: ("bad_query", "The server cannot read the statement.", False),
    -10: ("bad_query", "A quotation mark is missing.", False),
}  # fmt: skip
_CODE: Final = re.compile(r"SQLCODE=(-?\d+)")
_STATE: Final = re.compile(r"SQLSTATE=(\w{5})")
_MESSAGE: Final = re.compile(r"^.*?\b((?:SQL|CLI)\d{4,5}[A-Z]\b)", re.S)
_TAIL: Final = re.compile(r"\s*SQLSTATE=\w{5}\s*(?:SQLCODE=-?\d+)?\s*$")
_REASON_CODE: Final = re.compile(r'[Rr]eason code "?(\d+)')
_SETTING_UP_TLS: Final = "sqlccSSLSocketSetup"  # the driver's function, which SQL30081N names
_CONSTRAINT: Final = re.compile(r'(?:FOREIGN KEY|constraint) "([^"]+)"', re.I)
_PLACE: Final = re.compile(r"COLNO=(\d+)")
_NAMED: Final = re.compile(r'(?:column|[Tt]arget name is) "([^"]+)"')
_USERS: Final = re.compile(r"[7-9I-Z]\w{4}")  # SQLSTATEs that triggers make up for themselves (SIGNAL)


def converted(said: str) -> ConnectorError:
    """What the driver says, as one of our errors; `details.native` is the SQLCODE."""
    code, state = code_of(said), state_of(said)
    message = shortened(_TAIL.sub("", _MESSAGE.sub(r"\1", said)))
    details = {"native": str(code), "sqlstate": state} if code else {}
    if code in (-911, -913):
        return _gave_way(message, details)
    if code == -30081 and _SETTING_UP_TLS in said:
        hint = "Is this the port for TLS, and does ca_certificate belong to the authority of its certificate?"
        return ConnectorError(message, reason="tls_failed", hint=hint, details=details)
    if code in _LOST or (state in _LOST_STATES and code not in _WHOLE):
        return Lost(f"The connection to the server was lost: {message}", details=details)
    reason, hint, transient = _WHOLE.get(code, ("failed", "", False))
    wire = "read_only_connection" if reason == "read_only" else "target_failed"
    return ConnectorError(message, code=wire, reason=reason, hint=hint, transient=transient, details=details)


def _gave_way(message: str, details: Mapping[str, str]) -> ConnectorError:
    """SQL0911N, after which the server has rolled back: reason code 2 is a deadlock, 68 a lock not given in time."""
    found = _REASON_CODE.search(message)
    locked = found is not None and found[1] == "68"
    hint = (
        "Another transaction holds the rows that are wanted."
        if locked
        else "Another transaction wanted the same rows; one of the two had to give way."
    )
    reason = "locked" if locked else "conflict"
    return ConnectorError(message, reason=reason, hint=hint, transient=True, details=details)


def code_of(said: str) -> int:
    """The SQLCODE of a message; 0 where it has none."""
    found = _CODE.search(said)
    return int(found[1]) if found else 0


def state_of(said: str) -> str:
    """The SQLSTATE of a message, or nothing."""
    found = _STATE.search(said)
    return found[1] if found else ""


def refusal(error: ConnectorError, entity: Entity) -> Refusal | None:
    """What an error says of a row of a table; None where it is not of one row."""
    code = int(error.details.get("native", "0"))
    if isinstance(error, Lost) or error.reason != "failed" or not code:
        return None
    reason = _REASONS.get(code)
    if reason is None and not _USERS.fullmatch(error.details.get("sqlstate", "")):
        return None
    return Refusal(reason or "refused", error.message, str(code), _column(error.message, entity))


def _column(message: str, entity: Entity) -> str | None:
    """The column that a message is about: by its number (SQL0407N), its name, or its foreign key."""
    if place := _PLACE.search(message):
        number = int(place[1])
        return entity.fields[number].name if number < len(entity.fields) else None
    if named := _NAMED.search(message):
        name = named[1].rpartition(".")[2]
        return name if entity.column(name) else None
    if constraint := _CONSTRAINT.search(message):
        name = constraint[1].rpartition(".")[2]
        found = next((one for one in entity.relations if one.name == name), None)
        return found.columns[0] if found and len(found.columns) == 1 else None
    return None
