"""What PostgreSQL and its driver say, as our errors. Server messages come in the server's language, so codes decide."""

from __future__ import annotations

from typing import Any, Final

import psycopg

from webapp import limits
from webapp.connectors.base import ConnectorError, Lost
from webapp.connectors.sql import shortened

# Reasons and hints by SQLSTATE; the longest beginning that fits decides.
_STATES: Final[dict[str, tuple[str, str]]] = {
    "28": ("auth_failed", "Check the user name and the password."),
    "3D000": ("no_database", "Check the name of the database."),
    "3F000": ("no_schema", "Check the name of the schema."),
    "42501": ("no_permission", "Ask for the right to do this, or use another account."),
    "42P01": ("no_table", "Check the name of the table and its schema."),
    "42703": ("no_column", "The table has changed: read its columns again."),
    "42P07": ("exists", "There is something of that name already."),
    "42601": ("bad_query", "Check the statement."),
    "42": ("bad_query", "Check the statement."),
    "25006": ("read_only", "The server or the account allows reading only."),
    "53300": ("too_many_connections", "Wait until others have left, or raise max_connections."),
    "57014": ("timeout", "The statement took too long or was cancelled."),
    "55P03": (
        "locked",
        "Find it with SELECT pid, query FROM pg_stat_activity WHERE state <> 'idle', let it end, and try again.",
    ),
    "40": ("conflict", "Another transaction was in the way. Try again."),
    "57P03": ("starting", "The server is starting. Try again in a moment."),
}
_TRANSIENT: Final = ("40", "53", "55P03", "57P", "58")
# Parts of what libpq and the server say before a session exists, where there is no SQLSTATE.
_AT_CONNECT: Final = (
    ("starting up", "starting", "The server is starting. Try again in a moment."),
    ("shutting down", "starting", "The server is restarting. Try again in a moment."),
    ("recovery mode", "starting", "The server is recovering. Try again in a moment."),
    ("password", "auth_failed", "Check the user name and the password."),
    (
        "pg_hba",
        "auth_failed",
        "The server does not let this user in from here, or only with TLS (pg_hba.conf).",
    ),
    ("role", "auth_failed", "Check the user name."),
    ("certificate", "tls_failed", "The server's certificate is not trusted: give the CA's certificate."),
    ("SSL", "tls_failed", "Check the TLS mode."),
    ("database", "no_database", "Check the name of the database."),
    ("connection slots", "too_many_connections", "Wait until others have left, or raise max_connections."),
    ("too many clients", "too_many_connections", "Wait until others have left, or raise max_connections."),
    ("closed the connection", "lost", "Is there a proxy in between whose server is away?"),
    ("reset by peer", "lost", "Is there a proxy in between whose server is away?"),
    ("no route to host", "unreachable", "Check the host and the way to it."),
    ("is unreachable", "unreachable", "Check the host and the way to it."),
    ("timeout", "timeout", "Does a PostgreSQL server listen there, and is it not stuck?"),
    ("refused", "refused", "Is the server running, and is this its port?"),
)


def translated(error: psycopg.Error, connection: psycopg.Connection[Any] | None) -> ConnectorError:
    """The error of a statement. `Lost` where the connection went with it."""
    state = error.sqlstate or ""
    said = shortened(error.diag.message_primary or str(error))
    if not state and "memory" in said:  # libpq: "out of memory", "cannot allocate memory for input buffer"
        mb = limits.QUERY_MEMORY_BYTES // limits.MB
        text = f"The query needs more than {mb:,} MB of memory."
        return ConnectorError(text, reason="too_large", hint="Read fewer rows or shorter values.")
    if connection is not None and (connection.broken or connection.closed):
        return Lost(f"The connection was lost: {said}")
    found = next((_STATES[state[:size]] for size in (5, 2) if state[:size] in _STATES), None)
    reason, hint = found or ("failed", "")
    code = "target_timeout" if reason == "timeout" else "target_failed"
    details = {"sqlstate": state} if state else {}
    if reason == "locked":
        said = (
            f"Another session holds a lock on a table that is needed, and did not release it in time: {said}."
        )
    if detail := error.diag.message_detail:
        said = f"{said} {shortened(detail)}"
    return ConnectorError(
        said, code=code, reason=reason, hint=hint, transient=state.startswith(_TRANSIENT), details=details
    )


def at_connect(error: psycopg.Error, host: str) -> ConnectorError:
    """Why no session came about."""
    said = shortened(str(error)).removeprefix("connection failed: ")
    lower = said.rpartition("failed: ")[2] or said
    reason, hint = "failed", ""
    for part, word, advice in _AT_CONNECT:
        if part.lower() in lower.lower():
            reason, hint = word, advice
            break
    if isinstance(error, psycopg.errors.ConnectionTimeout):
        reason = "timeout"
    code = "target_timeout" if reason == "timeout" else "target_failed"
    return ConnectorError(
        f"{host}: {lower}",
        code=code,
        reason=reason,
        hint=hint,
        transient=reason in ("refused", "timeout", "too_many_connections", "starting", "lost", "unreachable"),
    )
