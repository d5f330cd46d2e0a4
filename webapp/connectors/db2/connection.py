"""A connection of ibm_db (IBM's CLI driver) that converts errors and can be aborted by another thread."""

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
from webapp.connectors.base import ConnectorError
from webapp.connectors.db2.errors import convert_error
from webapp.connectors.sql import base as sql

_connecting: Final = threading.Lock()


@contextmanager
def _converting_errors() -> Iterator[None]:
    """Convert errors of the driver, which raises only `Exception`."""
    try:
        yield
    except ConnectorError:
        raise
    except Exception as error:
        raise convert_error(str(error)) from None


class Db2Connection:
    """See `sql.statements.DriverConnection`. In autocommit mode, except between `begin` and `commit` or
    `rollback`."""

    def __init__(self, dsn: str, address: str, port: int) -> None:
        self._lock = threading.Lock()
        self._descriptor: int | None = None
        with (
            _connecting,
            _converting_errors(),
        ):  # one at a time, so that the new socket belongs to this connection
            before = set(_sockets(address, port))
            options = {ibm_db.SQL_ATTR_AUTOCOMMIT: ibm_db.SQL_AUTOCOMMIT_ON}
            self._connection = ibm_db.connect(dsn, "", "", options)
            opened = [number for key, number in _sockets(address, port).items() if key not in before]
            if not opened:
                ibm_db.close(self._connection)
                raise ConnectorError(
                    "The server redirected the driver to another address.",
                    code="target_not_allowed",
                    reason="not_allowed",
                    hint="Connect to that server directly.",
                )
            self._descriptor = os.dup(opened[-1])
        _enable_keepalive(self._descriptor)

    @property
    def server(self) -> tuple[str, str]:
        """The product name and version, such as DB2/LINUXX8664 and 11.05.0900."""
        with _converting_errors():
            name = ibm_db.get_db_info(self._connection, ibm_db.SQL_DBMS_NAME)
            version = ibm_db.get_db_info(self._connection, ibm_db.SQL_DBMS_VER)
            return str(name), str(version)

    def query(
        self, text: str, values: Sequence[Any] = (), limit: int | None = None, seconds: float | None = None
    ) -> tuple[list[str], list[Sequence[Any]]]:
        """See `DriverConnection.query`. `seconds` limits the time that the server may take."""
        with _converting_errors():
            statement = ibm_db.prepare(self._connection, text)
            try:
                if seconds is not None:
                    ibm_db.set_option(statement, {ibm_db.SQL_ATTR_QUERY_TIMEOUT: max(1, int(seconds))}, 0)
                ibm_db.execute(statement, *([tuple(values)] if values else []))
                rows = _rows(statement)
                return _names(statement), list(rows) if limit is None else sql.take_rows(rows, limit)
            finally:
                ibm_db.free_stmt(statement)

    def run(self, text: str) -> int:
        """See `Link.run`."""
        with _converting_errors():
            statement = ibm_db.exec_immediate(self._connection, text)
            try:
                return max(int(ibm_db.num_rows(statement)), 0)
            finally:
                ibm_db.free_stmt(statement)

    def stream(self, text: str) -> Iterator[tuple[list[str], list[Sequence[Any]]]]:
        """See `Link.stream`."""
        with _converting_errors():
            statement = ibm_db.exec_immediate(self._connection, text)
            try:
                names = _names(statement)
                for piece in sql.group_rows(_rows(statement)):
                    yield names, piece
            finally:
                ibm_db.free_stmt(statement)

    # --- transactions ---

    def begin(self) -> None:
        """Begin a transaction."""
        with _converting_errors():
            ibm_db.autocommit(self._connection, ibm_db.SQL_AUTOCOMMIT_OFF)

    def commit(self) -> None:
        """Commit the open transaction."""
        with _converting_errors():
            ibm_db.commit(self._connection)
            ibm_db.autocommit(self._connection, ibm_db.SQL_AUTOCOMMIT_ON)

    def rollback(self) -> None:
        """Roll back the open transaction."""
        with _converting_errors():
            ibm_db.rollback(self._connection)
            ibm_db.autocommit(self._connection, ibm_db.SQL_AUTOCOMMIT_ON)

    # --- closing ---

    def close(self) -> None:
        """See `DriverConnection.close`. Rolls back first, which the driver does not do on its own."""
        with self._lock:
            descriptor, self._descriptor = self._descriptor, None
        for step in (ibm_db.rollback, ibm_db.close):
            try:
                step(self._connection)
            except Exception:  # noqa: S110  # the connection is lost; the driver has no other exception class
                pass
        if descriptor is not None:
            os.close(descriptor)

    def abort(self) -> None:
        """See `DriverConnection.abort`. Python cannot access the driver's cancel function, only its socket."""
        with self._lock:
            if self._descriptor is None:
                return
            try:
                with socket.socket(fileno=os.dup(self._descriptor)) as duplicate:
                    duplicate.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # already closed


def _enable_keepalive(descriptor: int) -> None:
    """Let the connection detect a lost peer."""
    silent = limits.TARGET_UNACKNOWLEDGED_SECONDS
    settings = {
        "KEEPIDLE": silent // 2,
        "KEEPINTVL": silent // 6,
        "KEEPCNT": 3,
        "USER_TIMEOUT": silent * 1000,
    }
    with socket.socket(fileno=os.dup(descriptor)) as duplicate:
        duplicate.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in settings.items():
            if hasattr(socket, f"TCP_{name}"):  # the supported options differ between systems
                duplicate.setsockopt(socket.IPPROTO_TCP, getattr(socket, f"TCP_{name}"), int(value))


def _names(statement: Any) -> list[str]:
    return [ibm_db.field_name(statement, index) for index in range(ibm_db.num_fields(statement) or 0)]


def _rows(statement: Any) -> Iterator[Sequence[Any]]:
    """Yield rows with exact decimals, which the driver returns as text."""
    count = ibm_db.num_fields(statement) or 0
    if not count:
        return
    kinds = [str(ibm_db.field_type(statement, index)).lower() for index in range(count)]
    decimals = [index for index, kind in enumerate(kinds) if kind == "decimal"]
    while row := ibm_db.fetch_tuple(statement):
        if decimals:
            row = list(row)
            for index in decimals:
                row[index] = None if row[index] is None else Decimal(str(row[index]).replace(",", "."))
        yield row


def _sockets(address: str, port: int) -> dict[int, int]:
    """Return descriptors of this process's sockets that are connected to an address, by inode."""
    result: dict[int, int] = {}
    for name in os.listdir("/dev/fd"):
        try:
            number = int(name)
            status = os.fstat(number)
            if not stat.S_ISSOCK(status.st_mode):
                continue
            with socket.socket(fileno=os.dup(number)) as duplicate:
                if duplicate.getpeername()[:2] == (address, port):
                    result[status.st_ino] = number
        except (OSError, ValueError):
            continue  # closed in the meantime, or of another family
    return result
