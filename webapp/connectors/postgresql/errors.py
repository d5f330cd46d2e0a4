"""Convert errors of PostgreSQL and psycopg. They are recognized by code, because messages are in the server's
language."""

from __future__ import annotations

from typing import Any, Final

import psycopg

from webapp import limits
from webapp.connectors.base import ConnectionLost, ConnectorError
from webapp.connectors.sql.base import shorten_message

# Reasons and hints by SQLSTATE. The longest matching prefix counts.
_STATES: Final[dict[str, tuple[str, str]]] = {
    "28": ("auth_failed", "Check the user name and the password."),
    "3D000": ("no_database", "Check the name of the database."),
    "3F000": ("no_schema", "Check the name of the schema."),
    "42501": ("no_permission", "Grant the account this privilege, or use another account."),
    "42P01": ("no_table", "Check the name of the table and its schema."),
    "42703": ("no_column", "The table has changed. Refresh its columns."),
    "42P07": ("exists", "Choose a name that does not exist yet."),
    "42601": ("bad_query", "Check the statement."),
    "42": ("bad_query", "Check the statement."),
    "25006": ("read_only", "The server or the account is read-only."),
    "53300": (
        "too_many_connections",
        "Wait until other connections are closed, or increase max_connections.",
    ),
    "57014": ("timeout", "The statement took too long or was cancelled."),
    "55P03": (
        "locked",
        "Find the session with SELECT pid, query FROM pg_stat_activity WHERE state <> 'idle', end it, and try again.",
    ),
    "40": ("conflict", "The transaction conflicted with another one. Try again."),
    "57P03": ("starting", "The server is starting. Try again in a moment."),
}
_TRANSIENT: Final = ("40", "53", "55P03", "57P", "58")
# Texts in messages of libpq and the server before a session exists, when there is no SQLSTATE.
_AT_CONNECT: Final = (
    ("starting up", "starting", "The server is starting. Try again in a moment."),
    ("shutting down", "starting", "The server is restarting. Try again in a moment."),
    ("accepting connections", "starting", "The server is starting. Try again in a moment."),
    ("recovery mode", "starting", "The server is recovering. Try again in a moment."),
    ("password", "auth_failed", "Check the user name and the password."),
    (
        "pg_hba",
        "auth_failed",
        "The server does not accept this user from this host, or only with TLS (pg_hba.conf).",
    ),
    ("role", "auth_failed", "Check the user name."),
    ("certificate", "tls_failed", "The server's certificate is not trusted. Enter the CA's certificate."),
    ("SSL", "tls_failed", "Check the TLS mode."),
    ("database", "no_database", "Check the name of the database."),
    (
        "connection slots",
        "too_many_connections",
        "Wait until other connections are closed, or increase max_connections.",
    ),
    (
        "too many clients",
        "too_many_connections",
        "Wait until other connections are closed, or increase max_connections.",
    ),
    ("closed the connection", "lost", "Check whether a proxy in front of the server can reach it."),
    ("reset by peer", "lost", "Check whether a proxy in front of the server can reach it."),
    ("no route to host", "unreachable", "Check the host and the network route to it."),
    ("is unreachable", "unreachable", "Check the host and the network route to it."),
    ("timeout", "timeout", "Check that a PostgreSQL server listens on this address and responds."),
    ("refused", "refused", "Check that the server is running and listens on this port."),
)


def convert_error(error: psycopg.Error, connection: psycopg.Connection[Any] | None) -> ConnectorError:
    """Convert the error of a statement: to `ConnectionLost` if the connection is lost."""
    state = error.sqlstate or ""
    message = shorten_message(error.diag.message_primary or str(error))
    if not state and "memory" in message:  # libpq: "out of memory", "cannot allocate memory for input buffer"
        mb = limits.QUERY_MEMORY_BYTES // limits.MB
        text = f"The query needs more than {mb:,} MB of memory."
        return ConnectorError(text, reason="too_large", hint="Read fewer rows or shorter values.")
    if connection is not None and (connection.broken or connection.closed):
        return ConnectionLost(f"The connection was lost: {message}")
    known = next((_STATES[state[:size]] for size in (5, 2) if state[:size] in _STATES), None)
    reason, hint = known or ("failed", "")
    code = "target_timeout" if reason == "timeout" else "target_failed"
    details = {"sqlstate": state} if state else {}
    if reason == "locked":
        message = (
            f"Another session holds a lock on a required table and did not release it in time: {message}."
        )
    if detail := error.diag.message_detail:
        message = f"{message} {shorten_message(detail)}"
    return ConnectorError(
        message, code=code, reason=reason, hint=hint, transient=state.startswith(_TRANSIENT), details=details
    )


def convert_connect_error(error: psycopg.Error, host: str) -> ConnectorError:
    """Convert the error of a failed connection attempt."""
    message = shorten_message(str(error)).removeprefix("connection failed: ")
    lower = message.rpartition("failed: ")[2] or message
    reason, hint = "failed", ""
    for part, matched_reason, advice in _AT_CONNECT:
        if part.lower() in lower.lower():
            reason, hint = matched_reason, advice
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
