"""Convert errors of Oracle by number (Oracle, "Database Error Messages")."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from webapp.connectors.base import ConnectionLost, ConnectorError, RowError
from webapp.connectors.schema import Entity
from webapp.connectors.sql.base import shortened

_LOST: Final = frozenset(
    {28, 600, 1012, 1033, 1034, 1089, 1092, 3113, 3114, 3135, 12153, 12537, 12547, 12570}
)
# Errors of one row's values: entries of `base.REASONS`.
_REASONS: Final[Mapping[int, str]] = {
    1: "unique", 2290: "check", 2291: "foreign_key", 2292: "foreign_key", 1400: "not_null", 1407: "not_null",
    12899: "too_long", 1401: "too_long", 1461: "too_long", 1704: "too_long", 1438: "out_of_range",
    1426: "out_of_range", 1722: "wrong_type", 1830: "wrong_type", 1843: "wrong_type", 1847: "wrong_type",
    1858: "wrong_type", 1861: "wrong_type", 1839: "wrong_type", 932: "wrong_type", 1465: "wrong_type",
    2289: "refused", 40441: "wrong_type", 1402: "check", 4088: "refused", 6502: "wrong_type", 38104: "refused",
}  # fmt: skip
_WHOLE: Final[Mapping[int, tuple[str, str, bool]]] = {
    1017: ("auth_failed", "Check the user name and the password.", False),
    28000: ("auth_failed", "The account is locked.", False),
    28001: ("auth_failed", "The account's password has expired.", False),
    1045: ("no_permission", "Grant the account CREATE SESSION.", False),
    1031: ("no_permission", "Grant the account the privileges that the statement needs on this table.", False),
    1950: ("no_permission", "Grant the account a quota on its tablespace.", False),
    12514: ("no_database", "Check the service name.", False),
    12505: ("no_database", "Check the SID. Most servers require a service name.", False),
    942: ("no_table", "Refresh the tables, and check the account's privileges.", False),
    904: ("no_column", "Refresh the tables.", False),
    955: ("exists", "Choose another name.", False),
    54: ("locked", "Another transaction has locked the table.", True),
    30006: ("locked", "Another transaction has locked the rows.", True),
    60: ("conflict", "A deadlock with another transaction occurred, and this one was rolled back.", True),
    8177: ("conflict", "Another transaction changed the same rows.", True),
    1653: ("full", "The tablespace is full.", False),
    1536: ("full", "The account has exceeded its quota.", False),
    16000: ("read_only", "The database is read-only. Connect to the primary server.", False),
    1456: ("read_only", "Only statements that read are allowed.", False),
    1013: ("cancelled", "The statement was stopped.", False),
    900: ("bad_query", "Check the syntax of the statement.", False),
    933: ("bad_query", "Check the syntax of the statement.", False),
    936: ("bad_query", "Check the syntax of the statement.", False),
    923: ("bad_query", "Check the syntax of the statement.", False),
    54013: ("unsupported", "Remove computed columns.", False),
    32795: ("unsupported", "The server always generates this column. Remove it.", False),
}  # fmt: skip
_ARRIVALS: Final = (
    ("DPY-6001", "no_database", "Check the service name."),
    ("DPY-6003", "no_database", "Check the SID. Most servers require a service name."),
    (
        "[SSL",
        "tls_failed",
        "Enter the authority's certificate, and the host name that the server's certificate was issued for.",
    ),
)
_COLUMN: Final = re.compile(r'"[^"]*"\."[^"]*"\."([^"]+)"')


def convert_error(number: int, said: str, code: str = "") -> ConnectorError:
    """Convert an error that does not concern a row. `code` is the driver's code, such as DPY-4011."""
    message = shortened(said)
    if code in ("DPY-4024", "DPY-4024:"):
        return ConnectionLost("The server did not respond in time.", code="target_timeout")
    if code == "DPY-6005":  # the connection was not established, for the reason that follows
        for word, reason, hint in _ARRIVALS:
            if word in said:
                return ConnectorError(message, reason=reason, hint=hint)
    if number in _LOST or code in ("DPY-1001", "DPY-4011", "DPY-4005", "DPY-6005"):
        return ConnectionLost(f"The connection to the server was lost: {message}")
    reason, hint, transient = _WHOLE.get(number, ("failed", "", False))
    details = {"native": native(number)} if number else {}
    wire = "read_only_connection" if reason == "read_only" else "target_failed"
    return ConnectorError(message, code=wire, reason=reason, hint=hint, transient=transient, details=details)


def native(number: int) -> str:
    """Return a number in Oracle's format, such as ORA-00001."""
    return f"ORA-{number:05d}"


def failure(row: int, number: int, said: str, entity: Entity) -> RowError:
    """Return the error of one row from a batch error. Raises if it does not concern a row."""
    if number in _WHOLE or number in _LOST or not (number in _REASONS or 20000 <= number <= 20999):
        raise convert_error(number, said)  # user-defined errors are ORA-20000 to ORA-20999
    found = _COLUMN.search(said)
    column = found[1] if found and entity.column(found[1]) else None
    return RowError(row, _REASONS.get(number, "refused"), shortened(said), native(number), column)
