"""What Oracle says when something goes wrong, by its error numbers (Oracle, "Database Error Messages")."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from webapp.connectors.base import ConnectorError, Failure, Lost
from webapp.connectors.shape import Entity
from webapp.connectors.sql import shortened

_LOST: Final = frozenset(
    {28, 600, 1012, 1033, 1034, 1089, 1092, 3113, 3114, 3135, 12153, 12537, 12547, 12570}
)
# Of one row's values: `base.REASONS`.
_REASONS: Final[Mapping[int, str]] = {
    1: "unique", 2290: "check", 2291: "foreign_key", 2292: "foreign_key", 1400: "not_null", 1407: "not_null",
    12899: "too_long", 1401: "too_long", 1461: "too_long", 1704: "too_long", 1438: "out_of_range",
    1426: "out_of_range", 1722: "wrong_type", 1830: "wrong_type", 1843: "wrong_type", 1847: "wrong_type",
    1858: "wrong_type", 1861: "wrong_type", 1839: "wrong_type", 932: "wrong_type", 1465: "wrong_type",
    2289: "refused", 40441: "wrong_type", 1402: "check", 4088: "refused", 6502: "wrong_type", 38104: "refused",
}  # fmt: skip
_WHOLE: Final[Mapping[int, tuple[str, str, bool]]] = {
    1017: ("auth_failed", "Check user name and password.", False),
    28000: ("auth_failed", "The account is locked.", False),
    28001: ("auth_failed", "The account's password has run out.", False),
    1045: ("no_permission", "Grant the account CREATE SESSION.", False),
    1031: ("no_permission", "Grant the account what the statement needs on this table.", False),
    1950: ("no_permission", "Give the account a quota on its tablespace.", False),
    12514: ("no_database", "Check the service name.", False),
    12505: ("no_database", "Check the SID; most servers want a service name.", False),
    942: ("no_table", "Look at the tables again, and at the account's rights.", False),
    904: ("no_column", "Look at the tables again.", False),
    955: ("exists", "Choose another name.", False),
    54: ("locked", "Another transaction holds the table.", True),
    30006: ("locked", "Another transaction holds the rows that are wanted.", True),
    60: ("conflict", "Another transaction wanted the same rows; one of the two had to give way.", True),
    8177: ("conflict", "Another transaction changed the same rows.", True),
    1653: ("full", "The tablespace is full.", False),
    1536: ("full", "The account has used up its quota.", False),
    16000: ("read_only", "The database takes no changes; connect to the primary.", False),
    1456: ("read_only", "Only statements that read are allowed here.", False),
    1013: ("cancelled", "The statement was stopped.", False),
    900: ("bad_query", "The server cannot read the statement.", False),
    933: ("bad_query", "The server cannot read the statement.", False),
    936: ("bad_query", "The server cannot read the statement.", False),
    923: ("bad_query", "The server cannot read the statement.", False),
    54013: ("unsupported", "Leave computed columns out.", False),
    32795: ("unsupported", "The column is always counted by the server: leave it out.", False),
}  # fmt: skip
_ARRIVALS: Final = (
    ("DPY-6001", "no_database", "Check the service name."),
    ("DPY-6003", "no_database", "Check the SID; most servers want a service name."),
    ("[SSL", "tls_failed", "Give the authority's certificate, and the host name that the server's is for."),
)
_COLUMN: Final = re.compile(r'"[^"]*"\."[^"]*"\."([^"]+)"')


def converted(number: int, said: str, code: str = "") -> ConnectorError:
    """An error as one of ours, where it is not of one row. `code` is the driver's own: DPY-4011."""
    message = shortened(said)
    if code in ("DPY-4024", "DPY-4024:"):
        return Lost("The server did not answer in time.", code="target_timeout")
    if code == "DPY-6005":  # no connection came about, for the reason that follows
        for word, reason, hint in _ARRIVALS:
            if word in said:
                return ConnectorError(message, reason=reason, hint=hint)
    if number in _LOST or code in ("DPY-1001", "DPY-4011", "DPY-4005", "DPY-6005"):
        return Lost(f"The connection to the server was lost: {message}")
    reason, hint, transient = _WHOLE.get(number, ("failed", "", False))
    details = {"native": native(number)} if number else {}
    wire = "read_only_connection" if reason == "read_only" else "target_failed"
    return ConnectorError(message, code=wire, reason=reason, hint=hint, transient=transient, details=details)


def native(number: int) -> str:
    """Oracle's own writing of a number: ORA-00001."""
    return f"ORA-{number:05d}"


def failure(row: int, number: int, said: str, entity: Entity) -> Failure:
    """What a batch error says of one row. Raises where it is not of one row."""
    if number in _WHOLE or number in _LOST or not (number in _REASONS or 20000 <= number <= 20999):
        raise converted(number, said)  # users' own errors are ORA-20000 to ORA-20999
    found = _COLUMN.search(said)
    column = found[1] if found and entity.column(found[1]) else None
    return Failure(row, _REASONS.get(number, "refused"), shortened(said), native(number), column)
