"""A connection of pymssql (FreeTDS) that can be aborted by another thread, and its errors by number (sys.messages)."""

from __future__ import annotations

import os
import re
import socket
import ssl
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pymssql import _mssql

from webapp.connectors.base import ConnectionLost, ConnectorError
from webapp.connectors.row_isolation import RowRejection
from webapp.connectors.schema import Entity
from webapp.connectors.sql import base as sql
from webapp.connectors.sql.base import shorten_message
from webapp.connectors.verification import bad_settings_error

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
_STATEMENT_ERRORS: Final[Mapping[int, tuple[str, str, bool]]] = {
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


def convert_error(number: int, text: str) -> ConnectorError:
    """Convert an error that does not concern a row."""
    message = shorten_message(text)
    if number == _TIMEOUT:
        return ConnectionLost("The server did not respond in time.", code="target_timeout")
    if number in _LOST:
        return ConnectionLost(f"The connection to the server was lost: {message}")
    reason, hint, transient = _STATEMENT_ERRORS.get(number, ("failed", "", False))
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
    match = _COLUMN.search(error.message)
    column = match[1] if match and entity.column(match[1]) else None
    return RowRejection(reason, error.message, str(number), column)


# --- Connection ---------------------------------------------------------------------------------------------

_DEAD_CONNECTION: Final = 20047  # FreeTDS: the connection is dead
_waiting: Final = threading.local()


def _record_socket(descriptor: int) -> None:
    """Record the socket that the driver is about to wait for. The driver has no other way to find it."""
    link = getattr(_waiting, "link", None)
    if link is not None:
        link.descriptor = descriptor


@contextmanager
def configured(host: str, port: int, tls: str, address: str, authority: str | None) -> Iterator[str]:
    """Yield a server name for the driver, under which it finds the address and the TLS options in a temporary
    file.

    The driver then reads no configuration of this machine (FreeTDS User Guide, "The freetds.conf file"). Only
    one at a time in a process.
    """
    name = f"rowsmith:{port}"
    lines = [f"[{name}]", f"host = {address}", f"port = {port}", "tds version = 7.4"]
    with tempfile.TemporaryDirectory(prefix="rowsmith-") as folder:
        if tls == "verify-full":
            trusted = ssl.get_default_verify_paths().cafile
            if authority:
                trusted = os.path.join(folder, "ca.pem")
                Path(trusted).write_text(authority)
            if not trusted:
                raise bad_settings_error(
                    "This system has no trusted certificate authorities.", "Enter the CA certificate."
                )
            lines += [
                f"ca file = {trusted}",
                "check certificate hostname = yes",
                f"certificate hostname = {host}",
            ]
        file = Path(folder, "freetds.conf")
        file.write_text("\n".join(lines) + "\n")
        os.environ["FREETDSCONF"] = str(file)
        yield name


class MssqlConnection:
    """See `sql.statements.DriverConnection`."""

    def __init__(self, host: str, port: int, **driver_options: Any) -> None:
        self.descriptor: int | None = None
        self._lock = threading.Lock()
        try:
            self._connection = _mssql.MSSQLConnection(server=host, port=str(port), **driver_options)
        except _mssql.MSSQLException as error:
            raise self._convert(error) from None

    @staticmethod
    def _convert(error: Exception) -> ConnectorError:
        number = getattr(error, "number", 0) or (
            0 if isinstance(error, _mssql.MSSQLDatabaseException) else _DEAD_CONNECTION
        )
        raw = getattr(error, "text", None) or (error.args[0] if error.args else "")
        text = raw.decode(errors="replace") if isinstance(raw, bytes) else str(raw)
        head, _, tail = text.partition("DB-Lib error message")
        if not head and (match := re.match(r"\s*(\d+)", tail)):
            number = int(
                match[1]
            )  # the server sent no message: the number belongs to another connection's message
        return convert_error(number, head or text)

    def _execute(self, text: str, values: Sequence[Any] = ()) -> None:
        _mssql.set_wait_callback(_record_socket)
        _waiting.link = self
        try:
            if values:
                self._connection.execute_query(text, tuple(values))
            else:
                self._connection.execute_query(text)
        finally:
            _waiting.link = None

    def query(
        self, text: str, values: Sequence[Any] = (), limit: int | None = None
    ) -> tuple[list[str], list[Sequence[Any]]]:
        """See `DriverConnection.query`: returns the first result that has columns."""
        try:
            self._execute(text, values)
            names, rows = self._names(), map(self._row, self._connection)
            if limit is None:
                return names, list(rows)
            try:
                return names, sql.take_rows(rows, limit)
            finally:
                self._connection.cancel()  # discards unread rows
        except _mssql.MSSQLException as error:
            raise self._convert(error) from None

    def _names(self) -> list[str]:
        return [description[0] or "" for description in self._connection.get_header() or ()]

    @staticmethod
    def _row(row: dict[Any, Any]) -> tuple[Any, ...]:
        indexes = [key for key in row if isinstance(key, int)]
        return tuple(row[index] for index in sorted(indexes))

    def run(self, text: str) -> int:
        """See `Link.run`."""
        _mssql.set_wait_callback(_record_socket)
        _waiting.link = self
        try:
            self._connection.execute_non_query(text)
            return int(self._connection.rows_affected)
        except _mssql.MSSQLException as error:
            raise self._convert(error) from None
        finally:
            _waiting.link = None

    def stream(self, text: str) -> Iterator[tuple[list[str], list[Sequence[Any]]]]:
        """See `Link.stream`."""
        try:
            self._execute(text)
            names = self._names()
            rows: Iterator[Sequence[Any]] = map(self._row, self._connection)
            for piece in sql.group_rows(rows):
                yield names, piece
        except _mssql.MSSQLException as error:
            raise self._convert(error) from None

    def close(self) -> None:
        """See `Link.close`."""
        with self._lock:
            self.descriptor = None
            self._connection.close()

    def abort(self) -> None:
        """See `Link.abort`."""
        with self._lock:
            if self.descriptor is None:
                return
            try:
                with socket.socket(fileno=os.dup(self.descriptor)) as duplicate:
                    duplicate.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # already closed
