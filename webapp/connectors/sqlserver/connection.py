"""A connection of pymssql (FreeTDS) that converts errors and can be aborted by another thread."""

from __future__ import annotations

import os
import re
import socket
import ssl
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pymssql import _mssql

from webapp.connectors.base import ConnectorError
from webapp.connectors.sql import base as sql
from webapp.connectors.sqlserver.errors import convert_error
from webapp.connectors.verification import bad_settings

_GONE: Final = 20047  # FreeTDS: the connection is dead
_waiting: Final = threading.local()


def _waits(descriptor: int) -> None:
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
                raise bad_settings(
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


class MssqlLink:
    """See `sql.statements.DriverConnection`."""

    def __init__(self, host: str, port: int, **how: Any) -> None:
        self.descriptor: int | None = None
        self._lock = threading.Lock()
        try:
            self._connection = _mssql.MSSQLConnection(server=host, port=str(port), **how)
        except _mssql.MSSQLException as error:
            raise self._ours(error) from None

    @staticmethod
    def _ours(error: Exception) -> ConnectorError:
        number = getattr(error, "number", 0) or (
            0 if isinstance(error, _mssql.MSSQLDatabaseException) else _GONE
        )
        said = getattr(error, "text", None) or (error.args[0] if error.args else "")
        text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        head, _, tail = text.partition("DB-Lib error message")
        if not head and (found := re.match(r"\s*(\d+)", tail)):
            number = int(
                found[1]
            )  # the server sent no message: the number belongs to another connection's message
        return convert_error(number, head or text)

    def _carry_out(self, text: str, values: Sequence[Any] = ()) -> None:
        _mssql.set_wait_callback(_waits)
        _waiting.link = self
        try:
            if values:
                self._connection.execute_query(text, tuple(values))
            else:
                self._connection.execute_query(text)
        finally:
            _waiting.link = None

    def ask(
        self, text: str, values: Sequence[Any] = (), limit: int | None = None
    ) -> tuple[list[str], list[Sequence[Any]]]:
        """See `DriverConnection.query`: returns the first result that has columns."""
        try:
            self._carry_out(text, values)
            names, rows = self._names(), map(self._row, self._connection)
            if limit is None:
                return names, list(rows)
            try:
                return names, sql.answer(rows, limit)
            finally:
                self._connection.cancel()  # discards unread rows
        except _mssql.MSSQLException as error:
            raise self._ours(error) from None

    def _names(self) -> list[str]:
        return [one[0] or "" for one in self._connection.get_header() or ()]

    @staticmethod
    def _row(row: dict[Any, Any]) -> tuple[Any, ...]:
        places = [key for key in row if isinstance(key, int)]
        return tuple(row[place] for place in sorted(places))

    def run(self, text: str) -> int:
        """See `Link.run`."""
        _mssql.set_wait_callback(_waits)
        _waiting.link = self
        try:
            self._connection.execute_non_query(text)
            return int(self._connection.rows_affected)
        except _mssql.MSSQLException as error:
            raise self._ours(error) from None
        finally:
            _waiting.link = None

    def stream(self, text: str) -> Iterator[tuple[list[str], list[Sequence[Any]]]]:
        """See `Link.stream`."""
        try:
            self._carry_out(text)
            names = self._names()
            rows: Iterator[Sequence[Any]] = map(self._row, self._connection)
            for piece in sql.grouped(rows):
                yield names, piece
        except _mssql.MSSQLException as error:
            raise self._ours(error) from None

    def close(self) -> None:
        """See `Link.close`."""
        with self._lock:
            self.descriptor = None
            self._connection.close()

    def cut(self) -> None:
        """See `Link.cut`."""
        with self._lock:
            if self.descriptor is None:
                return
            try:
                with socket.socket(fileno=os.dup(self.descriptor)) as same:
                    same.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # already closed
