"""A connection of python-oracledb in thin mode that converts errors by number (Oracle, "Database Error Messages")."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import oracledb
from oracledb import thin_impl  # type: ignore[attr-defined]  # a compiled module without types

from webapp import limits
from webapp.connectors.base import ConnectionLost, ConnectorError, RowError
from webapp.connectors.schema import Entity
from webapp.connectors.sql import base as sql
from webapp.connectors.sql.base import shorten_message
from webapp.connectors.verification import from_gate_error
from webapp.net.gate import Gate, GateError

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
_STATEMENT_ERRORS: Final[Mapping[int, tuple[str, str, bool]]] = {
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
    1456: ("read_only", "Only read-only statements are allowed.", False),
    1013: ("cancelled", "The statement was stopped.", False),
    900: ("bad_query", "Check the syntax of the statement.", False),
    933: ("bad_query", "Check the syntax of the statement.", False),
    936: ("bad_query", "Check the syntax of the statement.", False),
    923: ("bad_query", "Check the syntax of the statement.", False),
    54013: ("unsupported", "Remove computed columns.", False),
    32795: ("unsupported", "The server always generates this column. Remove it.", False),
}  # fmt: skip
_CONNECT_ERRORS: Final = (
    ("DPY-6001", "no_database", "Check the service name."),
    ("DPY-6003", "no_database", "Check the SID. Most servers require a service name."),
    (
        "[SSL",
        "tls_failed",
        "Enter the authority's certificate, and the host name that the server's certificate was issued for.",
    ),
)
_COLUMN: Final = re.compile(r'"[^"]*"\."[^"]*"\."([^"]+)"')


def convert_error(number: int, text: str, code: str = "") -> ConnectorError:
    """Convert an error that does not concern a row. `code` is the driver's code, such as DPY-4011."""
    message = shorten_message(text)
    if code in ("DPY-4024", "DPY-4024:"):
        return ConnectionLost("The server did not respond in time.", code="target_timeout")
    if code == "DPY-6005":  # the connection was not established, for the reason that follows
        for part, reason, hint in _CONNECT_ERRORS:
            if part in text:
                return ConnectorError(message, reason=reason, hint=hint)
    if number in _LOST or code in ("DPY-1001", "DPY-4011", "DPY-4005", "DPY-6005"):
        return ConnectionLost(f"The connection to the server was lost: {message}")
    reason, hint, transient = _STATEMENT_ERRORS.get(number, ("failed", "", False))
    details = {"native": format_error_code(number)} if number else {}
    error_code = "read_only_connection" if reason == "read_only" else "target_failed"
    return ConnectorError(
        message, code=error_code, reason=reason, hint=hint, transient=transient, details=details
    )


def format_error_code(number: int) -> str:
    """Return a number in Oracle's format, such as ORA-00001."""
    return f"ORA-{number:05d}"


def to_row_error(row: int, number: int, text: str, entity: Entity) -> RowError:
    """Return the error of one row from a batch error. Raises if it does not concern a row."""
    if number in _STATEMENT_ERRORS or number in _LOST or not (number in _REASONS or 20000 <= number <= 20999):
        raise convert_error(number, text)  # user-defined errors are ORA-20000 to ORA-20999
    match = _COLUMN.search(text)
    column = match[1] if match and entity.column(match[1]) else None
    return RowError(
        row, _REASONS.get(number, "refused"), shorten_message(text), format_error_code(number), column
    )


# --- Connection ---------------------------------------------------------------------------------------------


class _Sockets:
    """Replaces the driver's `socket` module, so that connections go through the address guard of the calling
    thread."""

    def __init__(self) -> None:
        self.state = threading.local()

    def __getattr__(self, name: str) -> Any:
        return getattr(socket, name)

    def create_connection(self, address: tuple[str, int], timeout: float | None = None) -> socket.socket:
        gate: Gate = self.state.gate
        self.state.connections += 1
        if self.state.connections > limits.ORACLE_CONNECTS:
            raise OSError("the listener redirects too many times")
        if self.state.last is not None:
            self.state.last.close()  # the driver forgets it after a redirect
        try:
            connection = gate.connect(address[0], address[1], timeout or limits.TARGET_CONNECT_SECONDS)
        except GateError as error:
            self.state.refused = error
            raise OSError(error.message) from None
        self.state.last = connection
        return connection


_sockets: Final = _Sockets()


@contextmanager
def _guarded(gate: Gate) -> Iterator[None]:
    """Check every address that the driver connects to.

    The driver follows redirects of a listener on its own, and offers no other hook. Raises `ConnectorError` if an
    address is not allowed.
    """
    thin_impl.socket = _sockets
    state = _sockets.state
    state.gate, state.connections, state.last, state.refused = gate, 0, None, None
    try:
        yield
    except oracledb.Error:
        if state.refused is not None:
            raise from_gate_error(state.refused) from None
        raise
    finally:
        connections, state.gate, state.last = state.connections, None, None
    if not connections:
        raise ConnectorError(
            f"python-oracledb {oracledb.__version__} is not supported.",
            reason="unsupported",
            hint="Install the version of the lock file.",
        )


@dataclass(frozen=True, slots=True)
class ArrayResult:
    """The result of a statement for an array of rows.

    Errors are (position, number, message). `counts` are the rows that each row changed, `returned` the values of
    RETURNING.
    """

    errors: list[tuple[int, int, str]]
    counts: list[int]
    returned: list[list[Any]]


@contextmanager
def converting_errors() -> Iterator[None]:
    """Convert errors of the driver that are raised in the block."""
    try:
        yield
    except oracledb.Error as error:
        details = error.args[0] if error.args else None
        number, message = getattr(details, "code", 0) or 0, getattr(details, "message", str(error))
        raise convert_error(number, message, getattr(details, "full_code", "")) from None
    except OSError as error:
        raise convert_error(3113, str(error)) from None


class OracleConnection:
    """See `sql.statements.DriverConnection`. `gate` checks every address that the listener redirects to."""

    def __init__(self, gate: Gate, **driver_options: Any) -> None:
        with converting_errors(), _guarded(gate):
            self._connection = oracledb.connect(**driver_options)
        with converting_errors():
            self._connection.outputtypehandler = _output_type
            self.run("ALTER SESSION SET TIME_ZONE = '+00:00'")
            self.run("ALTER SESSION SET NLS_NUMERIC_CHARACTERS = '.,'")

    @property
    def version(self) -> str:
        """The version of the server."""
        return str(self._connection.version)

    def query(
        self, text: str, values: Sequence[Any] = (), limit: int | None = None
    ) -> tuple[list[str], list[Sequence[Any]]]:
        """See `Link.query`."""
        with converting_errors(), self._connection.cursor() as cursor:
            if limit is not None:
                cursor.prefetchrows, cursor.arraysize = limits.QUERY_FIRST_ROWS, limits.QUERY_FIRST_ROWS
            cursor.execute(text, list(values))
            if not cursor.description:
                return [], []
            rows = cursor.fetchall() if limit is None else sql.take_rows(iter(cursor.fetchone, None), limit)
            return [info[0] for info in cursor.description], rows

    def run(self, text: str) -> int:
        """See `Link.run`."""
        with converting_errors(), self._connection.cursor() as cursor:
            cursor.execute(text)
            return max(int(cursor.rowcount), 0)

    def run_many(
        self, text: str, rows: list[list[Any]], types: Sequence[str | None], return_types: Sequence[str]
    ) -> ArrayResult:
        """Run a statement for each row, and report the rejected rows. The others are in the transaction.

        `types` are names of the driver's types, None for those that follow from the values; `return_types` those of
        RETURNING.
        """
        with converting_errors(), self._connection.cursor() as cursor:
            sizes = [getattr(oracledb, name) if name else None for name in types]
            variables = [cursor.var(getattr(oracledb, name), arraysize=len(rows)) for name in return_types]
            cursor.setinputsizes(*sizes, *variables)
            cursor.executemany(text, [[*row, *[None] * len(variables)] for row in rows] if variables else rows,
                               batcherrors=True, arraydmlrowcounts=True)  # fmt: skip
            refused = [
                (getbatcherror.offset, getbatcherror.code, getbatcherror.message)
                for getbatcherror in cursor.getbatcherrors()
            ]
            indexes = range(len(rows)) if variables else ()
            returned = [[(var.getvalue(index) or [None])[0] for var in variables] for index in indexes]
            return ArrayResult(refused, list(cursor.getarraydmlrowcounts()), returned)

    def stream(self, text: str) -> Iterator[tuple[list[str], list[Sequence[Any]]]]:
        """See `Link.stream`."""
        with converting_errors(), self._connection.cursor() as cursor:
            cursor.prefetchrows = cursor.arraysize = limits.QUERY_FIRST_ROWS
            cursor.execute(text)
            names = [info[0] for info in cursor.description]
            count = limits.QUERY_FIRST_ROWS
            while rows := cursor.fetchmany(count):
                yield names, rows
                cursor.arraysize = count = sql.next_count(count, len(rows), sql.estimate_size(rows))

    def set_timeout(self, seconds: float | None) -> None:
        """Set the time limit of each following operation; None for no limit."""
        with converting_errors():
            self._connection.call_timeout = int((seconds or 0) * 1000)

    def commit(self) -> None:
        """Commit the open transaction."""
        with converting_errors():
            self._connection.commit()

    def rollback(self) -> None:
        """Roll back the open transaction."""
        with converting_errors():
            self._connection.rollback()

    def close(self) -> None:
        """See `Link.close`."""
        try:
            self._connection.close()
        except (oracledb.Error, OSError):
            pass  # already closed

    def abort(self) -> None:
        """See `DriverConnection.abort`: asks the server to stop."""
        try:
            self._connection.cancel()
        except (oracledb.Error, OSError):
            pass  # already closed


def _output_type(cursor: Any, metadata: Any) -> Any:
    """Read numbers exactly, and long texts and bytes as plain values."""
    kinds = {
        oracledb.DB_TYPE_CLOB: oracledb.DB_TYPE_LONG,
        oracledb.DB_TYPE_NCLOB: oracledb.DB_TYPE_LONG_NVARCHAR,
        oracledb.DB_TYPE_BLOB: oracledb.DB_TYPE_LONG_RAW,
    }
    if metadata.type_code in kinds:
        return cursor.var(kinds[metadata.type_code], arraysize=cursor.arraysize)
    if metadata.type_code is oracledb.DB_TYPE_NUMBER and metadata.scale:
        return cursor.var(str, arraysize=cursor.arraysize, outconverter=_decimal)
    return None


def _decimal(text: str) -> Any:
    from decimal import Decimal

    return Decimal(text)
