"""A connection of python-oracledb in thin mode that converts errors."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import oracledb
from oracledb import thin_impl  # type: ignore[attr-defined]  # a compiled module without types

from webapp import limits
from webapp.connectors.base import ConnectorError
from webapp.connectors.oracle.errors import convert_error
from webapp.connectors.sql import base as sql
from webapp.connectors.verification import from_gate_error
from webapp.net.gate import Gate, GateError


class _Sockets:
    """Replaces the driver's `socket` module, so that connections go through the address guard of the calling
    thread."""

    def __init__(self) -> None:
        self.asked = threading.local()

    def __getattr__(self, name: str) -> Any:
        return getattr(socket, name)

    def create_connection(self, address: tuple[str, int], timeout: float | None = None) -> socket.socket:
        gate: Gate = self.asked.gate
        self.asked.made += 1
        if self.asked.made > limits.ORACLE_CONNECTS:
            raise OSError("the listener redirects too many times")
        if self.asked.last is not None:
            self.asked.last.close()  # the driver forgets it after a redirect
        try:
            made = gate.connect(address[0], address[1], timeout or limits.TARGET_CONNECT_SECONDS)
        except GateError as error:
            self.asked.refused = error
            raise OSError(error.message) from None
        self.asked.last = made
        return made


_sockets: Final = _Sockets()


@contextmanager
def _guarded(gate: Gate) -> Iterator[None]:
    """Check every address that the driver connects to.

    The driver follows redirects of a listener on its own, and offers no other hook. Raises `ConnectorError` if an
    address is not allowed.
    """
    thin_impl.socket = _sockets
    asked = _sockets.asked
    asked.gate, asked.made, asked.last, asked.refused = gate, 0, None, None
    try:
        yield
    except oracledb.Error:
        if asked.refused is not None:
            raise from_gate_error(asked.refused) from None
        raise
    finally:
        made, asked.gate, asked.last = asked.made, None, None
    if not made:
        raise ConnectorError(
            f"python-oracledb {oracledb.__version__} is not supported.",
            reason="unsupported",
            hint="Install the version of the lock file.",
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a statement for an array of rows.

    Errors are (position, number, message). `counts` are the rows that each row changed, `returned` the values of
    RETURNING.
    """

    refused: list[tuple[int, int, str]]
    counts: list[int]
    returned: list[list[Any]]


@contextmanager
def converting_errors() -> Iterator[None]:
    """Convert errors of the driver that are raised in the block."""
    try:
        yield
    except oracledb.Error as error:
        told = error.args[0] if error.args else None
        number, said = getattr(told, "code", 0) or 0, getattr(told, "message", str(error))
        raise convert_error(number, said, getattr(told, "full_code", "")) from None
    except OSError as error:
        raise convert_error(3113, str(error)) from None


class OracleLink:
    """See `sql.statements.DriverConnection`. `gate` checks every address that the listener redirects to."""

    def __init__(self, gate: Gate, **how: Any) -> None:
        with converting_errors(), _guarded(gate):
            self._connection = oracledb.connect(**how)
        with converting_errors():
            self._connection.outputtypehandler = _read_as
            self.run("ALTER SESSION SET TIME_ZONE = '+00:00'")
            self.run("ALTER SESSION SET NLS_NUMERIC_CHARACTERS = '.,'")

    @property
    def version(self) -> str:
        """The version of the server."""
        return str(self._connection.version)

    def ask(
        self, text: str, values: Sequence[Any] = (), limit: int | None = None
    ) -> tuple[list[str], list[Sequence[Any]]]:
        """See `Link.ask`."""
        with converting_errors(), self._connection.cursor() as cursor:
            if limit is not None:
                cursor.prefetchrows, cursor.arraysize = limits.QUERY_FIRST_ROWS, limits.QUERY_FIRST_ROWS
            cursor.execute(text, list(values))
            if not cursor.description:
                return [], []
            rows = cursor.fetchall() if limit is None else sql.answer(iter(cursor.fetchone, None), limit)
            return [one[0] for one in cursor.description], rows

    def run(self, text: str) -> int:
        """See `Link.run`."""
        with converting_errors(), self._connection.cursor() as cursor:
            cursor.execute(text)
            return max(int(cursor.rowcount), 0)

    def many(
        self, text: str, rows: list[list[Any]], types: Sequence[str | None], back: Sequence[str]
    ) -> Answer:
        """Run a statement for each row, and report the rejected rows. The others are in the transaction.

        `types` are names of the driver's types, None for those that follow from the values; `back` those of
        RETURNING.
        """
        with converting_errors(), self._connection.cursor() as cursor:
            sizes = [getattr(oracledb, name) if name else None for name in types]
            out = [cursor.var(getattr(oracledb, name), arraysize=len(rows)) for name in back]
            cursor.setinputsizes(*sizes, *out)
            cursor.executemany(text, [[*row, *[None] * len(out)] for row in rows] if out else rows,
                               batcherrors=True, arraydmlrowcounts=True)  # fmt: skip
            refused = [
                (getbatcherror.offset, getbatcherror.code, getbatcherror.message)
                for getbatcherror in cursor.getbatcherrors()
            ]
            places = range(len(rows)) if out else ()
            returned = [[(var.getvalue(place) or [None])[0] for var in out] for place in places]
            return Answer(refused, list(cursor.getarraydmlrowcounts()), returned)

    def stream(self, text: str) -> Iterator[tuple[list[str], list[Sequence[Any]]]]:
        """See `Link.stream`."""
        with converting_errors(), self._connection.cursor() as cursor:
            cursor.prefetchrows = cursor.arraysize = limits.QUERY_FIRST_ROWS
            cursor.execute(text)
            names = [one[0] for one in cursor.description]
            count = limits.QUERY_FIRST_ROWS
            while rows := cursor.fetchmany(count):
                yield names, rows
                cursor.arraysize = count = sql.next_count(count, len(rows), sql.size_of(rows))

    def patience(self, seconds: float | None) -> None:
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

    def cut(self) -> None:
        """See `DriverConnection.abort`: asks the server to stop."""
        try:
            self._connection.cancel()
        except (oracledb.Error, OSError):
            pass  # already closed


def _read_as(cursor: Any, told: Any) -> Any:
    """Read numbers exactly, and long texts and bytes as plain values."""
    kinds = {
        oracledb.DB_TYPE_CLOB: oracledb.DB_TYPE_LONG,
        oracledb.DB_TYPE_NCLOB: oracledb.DB_TYPE_LONG_NVARCHAR,
        oracledb.DB_TYPE_BLOB: oracledb.DB_TYPE_LONG_RAW,
    }
    if told.type_code in kinds:
        return cursor.var(kinds[told.type_code], arraysize=cursor.arraysize)
    if told.type_code is oracledb.DB_TYPE_NUMBER and told.scale:
        return cursor.var(str, arraysize=cursor.arraysize, outconverter=_decimal)
    return None


def _decimal(text: str) -> Any:
    from decimal import Decimal

    return Decimal(text)
