"""A connection of ibm_db's (IBM's CLI driver), whose errors are ours and which another thread can cut."""

from __future__ import annotations

import os
import socket
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, Final

import ibm_db

from webapp import limits
from webapp.connectors import sql
from webapp.connectors.base import ConnectorError
from webapp.connectors.db2_errors import converted

_connecting: Final = threading.Lock()


@contextmanager
def _conversing() -> Iterator[None]:
    """What the driver raises within comes out as ours: it knows `Exception` alone."""
    try:
        yield
    except ConnectorError:
        raise
    except Exception as error:
        raise converted(str(error)) from None


class Db2Link:
    """See `statement_session.Link`. In autocommit, but between `begin` and `commit` or `rollback`."""

    def __init__(self, dsn: str, address: str, port: int) -> None:
        self._lock = threading.Lock()
        self._same: int | None = None
        with _connecting, _conversing():  # one at a time, so that a new socket is this connection's
            before = set(_sockets(address, port))
            options = {ibm_db.SQL_ATTR_AUTOCOMMIT: ibm_db.SQL_AUTOCOMMIT_ON}
            self._connection = ibm_db.connect(dsn, "", "", options)
            made = [number for one, number in _sockets(address, port).items() if one not in before]
            if not made:
                ibm_db.close(self._connection)
                raise ConnectorError(
                    "The server sent the driver on to another address.",
                    code="target_not_allowed",
                    reason="not_allowed",
                    hint="Connect to that server itself.",
                )
            self._same = os.dup(made[-1])
        _watch(self._same)

    @property
    def server(self) -> tuple[str, str]:
        """What it calls itself, and its version: DB2/LINUXX8664, 11.05.0900."""
        with _conversing():
            return tuple(
                str(ibm_db.get_db_info(self._connection, what))
                for what in (ibm_db.SQL_DBMS_NAME, ibm_db.SQL_DBMS_VER)
            )

    def ask(
        self, text: str, values: Sequence[Any] = (), limit: int | None = None, seconds: float | None = None
    ) -> tuple[list[str], list[Sequence[Any]]]:
        """See `Link.ask`. `seconds`: how long the server may take."""
        with _conversing():
            statement = ibm_db.prepare(self._connection, text)
            try:
                if seconds is not None:
                    ibm_db.set_option(statement, {ibm_db.SQL_ATTR_QUERY_TIMEOUT: max(1, int(seconds))}, 0)
                ibm_db.execute(statement, *([tuple(values)] if values else []))
                rows = _rows(statement)
                return _names(statement), list(rows) if limit is None else sql.answer(rows, limit)
            finally:
                ibm_db.free_stmt(statement)

    def run(self, text: str) -> int:
        """See `Link.run`."""
        with _conversing():
            statement = ibm_db.exec_immediate(self._connection, text)
            try:
                return max(int(ibm_db.num_rows(statement)), 0)
            finally:
                ibm_db.free_stmt(statement)

    def stream(self, text: str) -> Iterator[tuple[list[str], list[Sequence[Any]]]]:
        """See `Link.stream`."""
        with _conversing():
            statement = ibm_db.exec_immediate(self._connection, text)
            try:
                names = _names(statement)
                for piece in sql.grouped(_rows(statement)):
                    yield names, piece
            finally:
                ibm_db.free_stmt(statement)

    # --- transactions ---

    def begin(self) -> None:
        """What follows is one transaction."""
        with _conversing():
            ibm_db.autocommit(self._connection, ibm_db.SQL_AUTOCOMMIT_OFF)

    def commit(self) -> None:
        """Commit the open transaction."""
        with _conversing():
            ibm_db.commit(self._connection)
            ibm_db.autocommit(self._connection, ibm_db.SQL_AUTOCOMMIT_ON)

    def rollback(self) -> None:
        """Undo the open transaction."""
        with _conversing():
            ibm_db.rollback(self._connection)
            ibm_db.autocommit(self._connection, ibm_db.SQL_AUTOCOMMIT_ON)

    # --- the end ---

    def close(self) -> None:
        """See `Link.close`. What is open is rolled back, which the driver does not do by itself."""
        with self._lock:
            same, self._same = self._same, None
        for step in (ibm_db.rollback, ibm_db.close):
            try:
                step(self._connection)
            except Exception:  # noqa: S110 - it is gone already, and the driver has no other class
                pass
        if same is not None:
            os.close(same)

    def cut(self) -> None:
        """See `Link.cut`. The driver's own way to break off cannot be reached from Python, its socket can."""
        with self._lock:
            if self._same is None:
                return
            try:
                with socket.socket(fileno=os.dup(self._same)) as one:
                    one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it is gone already


def _watch(descriptor: int) -> None:
    """The connection notices when the other side is gone."""
    silent = limits.TARGET_SILENT_SECONDS
    kept = {"KEEPIDLE": silent // 2, "KEEPINTVL": silent // 6, "KEEPCNT": 3, "USER_TIMEOUT": silent * 1000}
    with socket.socket(fileno=os.dup(descriptor)) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in kept.items():
            if hasattr(socket, f"TCP_{name}"):  # each system has some of them
                one.setsockopt(socket.IPPROTO_TCP, getattr(socket, f"TCP_{name}"), int(value))


def _names(statement: Any) -> list[str]:
    return [ibm_db.field_name(statement, place) for place in range(ibm_db.num_fields(statement) or 0)]


def _rows(statement: Any) -> Iterator[Sequence[Any]]:
    """Rows as they come; decimals, which the driver gives as text, exactly."""
    count = ibm_db.num_fields(statement) or 0
    if not count:
        return
    kinds = [str(ibm_db.field_type(statement, place)).lower() for place in range(count)]
    decimals = [place for place, kind in enumerate(kinds) if kind == "decimal"]
    while row := ibm_db.fetch_tuple(statement):
        if decimals:
            row = list(row)
            for place in decimals:
                row[place] = None if row[place] is None else Decimal(str(row[place]).replace(",", "."))
        yield row


def _sockets(address: str, port: int) -> dict[int, int]:
    """Descriptors of this process's sockets to a place, by what the kernel numbers each socket with."""
    found: dict[int, int] = {}
    for name in os.listdir("/dev/fd"):
        try:
            number = int(name)
            told = os.fstat(number)
            if not stat.S_ISSOCK(told.st_mode):
                continue
            with socket.socket(fileno=os.dup(number)) as one:
                if one.getpeername()[:2] == (address, port):
                    found[told.st_ino] = number
        except (OSError, ValueError):
            continue  # closed in the meantime, or of another family
    return found
