"""What SQL Server says when something goes wrong, by its error numbers (sys.messages)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from webapp.connectors.base import ConnectorError, Lost
from webapp.connectors.shape import Entity
from webapp.connectors.sieve import Refusal
from webapp.connectors.sql import shortened

# FreeTDS's own (dblib): the connection is gone, was never there, or did not answer in time.
_LOST: Final = frozenset({20003, 20004, 20006, 20017, 20020, 20047, 20002, 20009, 10054, 6005, 596})
_TIMEOUT: Final = 20003

# Of one row's values: `base.REASONS`.
_REASONS: Final[Mapping[int, str]] = {
    2601: "unique", 2627: "unique", 8672: "unique", 515: "not_null", 547: "check", 2628: "too_long", 8152: "too_long",
    220: "out_of_range", 8115: "out_of_range", 242: "out_of_range", 232: "out_of_range", 517: "out_of_range",
    245: "wrong_type", 241: "wrong_type", 8114: "wrong_type", 8169: "wrong_type", 206: "wrong_type",
    9420: "wrong_type", 13609: "wrong_type", 50000: "refused", 3609: "refused",
}  # fmt: skip
_WHOLE: Final[Mapping[int, tuple[str, str, bool]]] = {
    18456: ("auth_failed", "Check user name and password.", False),
    18452: ("auth_failed", "The server takes Windows accounts only: allow SQL Server sign-in.", False),
    18486: ("auth_failed", "The account is locked.", False),
    18488: ("auth_failed", "The account's password has run out.", False),
    4060: ("no_database", "Check the name of the database, and that the account may use it.", False),
    911: ("no_database", "Check the name of the database.", False),
    229: ("no_permission", "Grant the account what the statement needs on this table.", False),
    230: ("no_permission", "Grant the account what the statement needs on these columns.", False),
    262: ("no_permission", "Grant the account the right to make tables.", False),
    2760: ("no_permission", "The schema is not there, or the account may not use it.", False),
    208: ("no_table", "Look at the tables again.", False),
    207: ("no_column", "Look at the tables again.", False),
    2714: ("exists", "Choose another name.", False),
    1222: ("locked", "Another transaction holds the rows that are wanted.", True),
    1205: ("conflict", "Another transaction wanted the same rows; one of the two had to give way.", True),
    1105: ("full", "The database is full: make room on the server.", False),
    9002: ("full", "The transaction log is full.", False),
    3906: ("read_only", "The database takes no changes.", False),
    271: ("unsupported", "Leave computed columns out.", False),
    272: ("unsupported", "Leave the timestamp column out.", False),
    334: ("unsupported", "The table has triggers, so keys cannot be brought back: map them.", False),
    102: ("bad_query", "The server cannot read the statement.", False),
    156: ("bad_query", "The server cannot read the statement.", False),
    105: ("bad_query", "A quotation mark is missing.", False),
}  # fmt: skip
_COLUMN: Final = re.compile(r"column '([^']+)'", re.I)


def converted(number: int, said: str) -> ConnectorError:
    """An error as one of ours, where it is not of one row."""
    message = shortened(said)
    if number == _TIMEOUT:
        return Lost("The server did not answer in time.", code="target_timeout")
    if number in _LOST:
        return Lost(f"The connection to the server was lost: {message}")
    reason, hint, transient = _WHOLE.get(number, ("failed", "", False))
    code = "read_only_connection" if reason == "read_only" else "target_failed"
    details = {"native": str(number)} if number else {}
    return ConnectorError(message, code=code, reason=reason, hint=hint, transient=transient, details=details)


def refusal(error: ConnectorError, entity: Entity) -> Refusal | None:
    """What an error says of a row of a table; None where it is not of one row."""
    number = int(error.details.get("native", "0"))
    if number not in _REASONS and not (number > 50_000 and error.reason == "failed"):
        return None  # users' own errors are above 50000
    reason = _REASONS.get(number, "refused")
    if number == 547 and any(word in error.message for word in ("FOREIGN KEY", "REFERENCE")):
        reason = "foreign_key"
    found = _COLUMN.search(error.message)
    column = found[1] if found and entity.column(found[1]) else None
    return Refusal(reason, error.message, str(number), column)
