"""Convert errors of SQL Server by number (sys.messages)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from webapp.connectors.base import ConnectionLost, ConnectorError
from webapp.connectors.row_isolation import RowRejection
from webapp.connectors.schema import Entity
from webapp.connectors.sql.base import shortened

# Numbers of FreeTDS (dblib): the connection is lost, was never established, or did not respond in time.
_LOST: Final = frozenset({20003, 20004, 20006, 20017, 20020, 20047, 20002, 20009, 10054, 6005, 596})
_TIMEOUT: Final = 20003

# Errors of one row's values: entries of `base.REASONS`.
_REASONS: Final[Mapping[int, str]] = {
    2601: "unique", 2627: "unique", 8672: "unique", 515: "not_null", 547: "check", 2628: "too_long", 8152: "too_long",
    220: "out_of_range", 8115: "out_of_range", 242: "out_of_range", 232: "out_of_range", 517: "out_of_range",
    245: "wrong_type", 241: "wrong_type", 8114: "wrong_type", 8169: "wrong_type", 206: "wrong_type",
    9420: "wrong_type", 13609: "wrong_type", 50000: "refused", 3609: "refused",
}  # fmt: skip
_WHOLE: Final[Mapping[int, tuple[str, str, bool]]] = {
    18456: ("auth_failed", "Check the user name and the password.", False),
    18452: ("auth_failed", "The server accepts only Windows accounts. Enable SQL Server authentication.", False),
    18486: ("auth_failed", "The account is locked.", False),
    18488: ("auth_failed", "The account's password has expired.", False),
    4060: ("no_database", "Check the name of the database, and that the account is allowed to use it.", False),
    911: ("no_database", "Check the name of the database.", False),
    229: ("no_permission", "Grant the account the privileges that the statement needs on this table.", False),
    230: ("no_permission", "Grant the account the privileges that the statement needs on these columns.", False),
    262: ("no_permission", "Grant the account the privilege to create tables.", False),
    2760: ("no_permission", "The schema does not exist, or the account is not allowed to use it.", False),
    208: ("no_table", "Refresh the tables.", False),
    207: ("no_column", "Refresh the tables.", False),
    2714: ("exists", "Choose another name.", False),
    1222: ("locked", "Another transaction has locked the rows.", True),
    1205: ("conflict", "A deadlock with another transaction occurred, and this one was rolled back.", True),
    1105: ("full", "The database is full. Free space on the server.", False),
    9002: ("full", "The transaction log is full.", False),
    3906: ("read_only", "The database is read-only.", False),
    271: ("unsupported", "Remove computed columns.", False),
    272: ("unsupported", "Remove the timestamp column.", False),
    334: ("unsupported", "The table has triggers, so keys cannot be returned. Map them.", False),
    102: ("bad_query", "Check the syntax of the statement.", False),
    156: ("bad_query", "Check the syntax of the statement.", False),
    105: ("bad_query", "A quotation mark is missing.", False),
}  # fmt: skip
_COLUMN: Final = re.compile(r"column '([^']+)'", re.I)


def convert_error(number: int, said: str) -> ConnectorError:
    """Convert an error that does not concern a row."""
    message = shortened(said)
    if number == _TIMEOUT:
        return ConnectionLost("The server did not respond in time.", code="target_timeout")
    if number in _LOST:
        return ConnectionLost(f"The connection to the server was lost: {message}")
    reason, hint, transient = _WHOLE.get(number, ("failed", "", False))
    code = "read_only_connection" if reason == "read_only" else "target_failed"
    details = {"native": str(number)} if number else {}
    return ConnectorError(message, code=code, reason=reason, hint=hint, transient=transient, details=details)


def row_rejection(error: ConnectorError, entity: Entity) -> RowRejection | None:
    """Return why a row of a table was rejected; None if the error does not concern a row."""
    number = int(error.details.get("native", "0"))
    if number not in _REASONS and not (number > 50_000 and error.reason == "failed"):
        return None  # user-defined errors are above 50000
    reason = _REASONS.get(number, "refused")
    if number == 547 and any(word in error.message for word in ("FOREIGN KEY", "REFERENCE")):
        reason = "foreign_key"
    found = _COLUMN.search(error.message)
    column = found[1] if found and entity.column(found[1]) else None
    return RowRejection(reason, error.message, str(number), column)
