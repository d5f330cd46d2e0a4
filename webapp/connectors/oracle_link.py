"""A connection of python-oracledb's in its thin mode, whose errors are ours."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import oracledb
from oracledb import thin_impl

from webapp import limits
from webapp.connectors import sql
from webapp.connectors.base import ConnectorError
from webapp.connectors.oracle_errors import converted
from webapp.connectors.stages import of_gate
from webapp.net.gate import Gate, GateError


class _Sockets:
    """In place of the driver's `socket` module: connections come about through the guard of who asked for them."""

    def __init__(self) -> None:
        self.asked = threading.local()

    def __getattr__(self, name: str) -> Any:
        return getattr(socket, name)

    def create_connection(self, address: tuple[str, int], timeout: float | None = None) -> socket.socket:
        gate: Gate = self.asked.gate
        self.asked.made += 1
        if self.asked.made > limits.ORACLE_CONNECTS:
            raise OSError("the listener sends from one address to another without end")
        if self.asked.last is not None:
            self.asked.last.close()  # the driver forgets it when it is sent on
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
    """What the driver connects to within is judged: it follows a listener's redirection by itself, and has no other
    place to put the guard in. Raises `ConnectorError` for what is closed."""
    thin_impl.socket = _sockets
    asked = _sockets.asked
    asked.gate, asked.made, asked.last, asked.refused = gate, 0, None, None
    try:
        yield
    except oracledb.Error:
        if asked.refused is not None:
            raise of_gate(asked.refused) from None
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
    """How an array of rows went: refused ones as (place, number, message), rows that each has changed, and what
    RETURNING gave for each."""

    refused: list[tuple[int, int, str]]
    counts: list[int]
    returned: list[list[Any]]


@contextmanager
def conversing() -> Iterator[None]:
    """What the driver raises within comes out as ours."""
    try:
        yield
    except oracledb.Error as error:
        told = error.args[0] if error.args else None
        number, said = getattr(told, "code", 0) or 0, getattr(told, "message", str(error))
        raise converted(number, said, getattr(told, "full_code", "")) from None
    except OSError as error:
        raise converted(3113, str(error)) from None


class OracleLink:
    """See `statement_session.Link`. Wherever the listener sends the driver, `gate` judges the address."""

    def __init__(self, gate: Gate, **how: Any) -> None:
        with conversing(), _guarded(gate):
            self._connection = oracledb.connect(**how)
        with conversing():
            self._connection.outputtypehandler = _read_as
            self.run("ALTER SESSION SET TIME_ZONE = '+00:00'")
            self.run("ALTER SESSION SET NLS_NUMERIC_CHARACTERS = '.,'")

    @property
    def version(self) -> str:
        """The server's."""
        return str(self._connection.version)

    def ask(
        self, text: str, values: Sequence[Any] = (), limit: int | None = None
    ) -> tuple[list[str], list[Sequence[Any]]]:
        """See `Link.ask`."""
        with conversing(), self._connection.cursor() as cursor:
            if limit is not None:
                cursor.prefetchrows, cursor.arraysize = limits.QUERY_FIRST_ROWS, limits.QUERY_FIRST_ROWS
            cursor.execute(text, list(values))
            if not cursor.description:
                return [], []
            rows = cursor.fetchall() if limit is None else sql.answer(iter(cursor.fetchone, None), limit)
            return [one[0] for one in cursor.description], rows

    def run(self, text: str) -> int:
        """See `Link.run`."""
        with conversing(), self._connection.cursor() as cursor:
            cursor.execute(text)
            return max(cursor.rowcount, 0)

    def many(
        self, text: str, rows: list[list[Any]], types: Sequence[str | None], back: Sequence[str]
    ) -> Answer:
        """Carry out a statement for every row; those that are refused are told, the others stand. `types` are names
        of the driver's, None for what the values say themselves; `back` those of RETURNING."""
        with conversing(), self._connection.cursor() as cursor:
            sizes = [getattr(oracledb, name) if name else None for name in types]
            out = [cursor.var(getattr(oracledb, name), arraysize=len(rows)) for name in back]
            cursor.setinputsizes(*sizes, *out)
            cursor.executemany(text, [[*row, *[None] * len(out)] for row in rows] if out else rows,
                               batcherrors=True, arraydmlrowcounts=True)  # fmt: skip
            refused = [(one.offset, one.code, one.message) for one in cursor.getbatcherrors()]
            places = range(len(rows)) if out else ()
            returned = [[(var.getvalue(place) or [None])[0] for var in out] for place in places]
            return Answer(refused, list(cursor.getarraydmlrowcounts()), returned)

    def stream(self, text: str) -> Iterator[tuple[list[str], list[Sequence[Any]]]]:
        """See `Link.stream`."""
        with conversing(), self._connection.cursor() as cursor:
            cursor.prefetchrows = cursor.arraysize = limits.QUERY_FIRST_ROWS
            cursor.execute(text)
            names = [one[0] for one in cursor.description]
            count = limits.QUERY_FIRST_ROWS
            while rows := cursor.fetchmany(count):
                yield names, rows
                cursor.arraysize = count = sql.next_count(count, len(rows), sql.size_of(rows))

    def patience(self, seconds: float | None) -> None:
        """How long each answer may take from now on; None: as long as it does."""
        with conversing():
            self._connection.call_timeout = int((seconds or 0) * 1000)

    def commit(self) -> None:
        """Commit the open transaction."""
        with conversing():
            self._connection.commit()

    def rollback(self) -> None:
        """Undo the open transaction."""
        with conversing():
            self._connection.rollback()

    def close(self) -> None:
        """See `Link.close`."""
        try:
            self._connection.close()
        except (oracledb.Error, OSError):
            pass  # closed already

    def cut(self) -> None:
        """See `Link.cut`: the server is asked to break off."""
        try:
            self._connection.cancel()
        except (oracledb.Error, OSError):
            pass  # it is gone already


def _read_as(cursor: Any, told: Any) -> Any:
    """Numbers exactly, long texts and bytes as values of their own."""
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
