"""Whether a chunk was committed, when the connection or the worker went away around its COMMIT.

MySQL keeps no record of a transaction's end. The proof is the connection, which is killed and waited for, and the
unique keys of a few rows that it inserted: they are in the table or they are not. They are read with a lock, which
waits for whoever still holds them. Tables without a unique key that the rows bring or the server counts have no proof.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pymysql

from webapp import limits
from webapp.connectors import sql
from webapp.connectors.base import Writing
from webapp.connectors.mysql_errors import conversing, number_of
from webapp.connectors.mysql_link import Link
from webapp.connectors.mysql_values import DIALECT, fit, texts
from webapp.connectors.shape import Column, Entity

_NO_SUCH_THREAD: Final = 1094
_NOT_OURS: Final = 1095
_LOCKED: Final = 1205
_WAITING: Final = " LOCK IN SHARE MODE"

Ask = Callable[..., Sequence[Sequence[Any]]]


class Proving:
    """Notes what tells of the open transaction."""

    def __init__(self, link: Link, writing: Writing) -> None:
        self._link, self._writing = link, writing
        self._unique = _unique(writing)
        self._counted = counted(writing)
        self._rows: list[list[str]] = []
        self._first: int = 0
        self._written = 0
        self._place: tuple[str, str] | None = None

    def begin(self) -> None:
        """A transaction was opened."""
        self._rows, self._first, self._written = [], 0, 0

    def wrote(self, batch: pa.RecordBatch, rows: np.ndarray, first: int) -> None:
        """These places of a batch stand in the table; `first` is the first AUTO_INCREMENT value they were given."""
        self._written += rows.size
        self._first = self._first or first
        if not rows.size or not self._unique or len(self._rows) >= limits.MYSQL_PROOF_ROWS:
            return
        chosen = rows[np.unique([0, rows.size // 2, rows.size - 1])]
        columns = [_column(self._writing, name) for name in self._unique]
        values = [
            fit(column, batch.column(self._writing.columns.index(column)).take(pa.array(chosen)))[0]
            for column in columns
        ]
        if any(one.null_count for one in values):
            return  # NULL is never equal, so it is no key
        literals = [texts(column, array) for column, array in zip(columns, values, strict=True)]
        self._rows += [list(row) for row in zip(*literals, strict=True)]

    def proof(self) -> dict[str, Any]:
        """See `base.Target.proof`."""
        if self._writing.mode != "insert":
            return {}
        keys, rows = list(self._unique), self._rows
        if not rows and self._first and self._counted:
            keys, rows = [self._counted], [[str(self._first)]]
        # What a trigger or a column's precision has changed is not found again, and so proves nothing.
        rows = [row for row in rows if is_there(self._link, self._writing.entity, keys, row)]
        if self._written and not rows:
            return {}
        if self._place is None:
            self._link.write(
                b"SELECT USER, HOST FROM information_schema.processlist WHERE ID = CONNECTION_ID()"
            )
            self._place = (str(self._link.rows[0][0]), str(self._link.rows[0][1]))
        return {"connection": self._link.thread_id(), "from": list(self._place), "keys": keys, "rows": rows}


class Settling:
    """Finds out from a proof, and sees to it that the old connection can commit no more."""

    def __init__(self, link: Link, ask: Ask) -> None:
        self._link, self._ask = link, ask

    def of(self, entity: Entity, proof: Mapping[str, Any]) -> bool | None:
        """See `base.Session.settled`."""
        if not {"connection", "from", "keys", "rows"} <= proof.keys():
            return None
        with conversing():
            if not self._ended(int(proof["connection"]), proof["from"]):
                return None
            if not proof["rows"]:
                return True  # nothing was inserted: there is nothing to be missed or doubled
            try:
                found = [is_there(self._link, entity, proof["keys"], row, _WAITING) for row in proof["rows"]]
            except pymysql.err.OperationalError as error:
                if number_of(error) != _LOCKED:
                    raise
                return None
        return found[0] if all(found) or not any(found) else None

    def _ended(self, connection: int, origin: Sequence[str]) -> bool:
        """Whether that very connection is gone, after it was killed. A number alone may be another's by now: the
        server may have been started anew."""
        deadline = time.monotonic() + limits.TARGET_SETTLE_SECONDS
        while True:
            rows = self._ask(
                "SELECT USER, HOST FROM information_schema.processlist WHERE ID = %s", (connection,)
            )
            if not rows or list(rows[0]) != list(origin):
                return True
            if time.monotonic() > deadline:
                return False
            try:
                self._link.write(f"KILL CONNECTION {connection}".encode())
            except pymysql.err.Error as error:
                if number_of(error) == _NOT_OURS:
                    return False
                if number_of(error) != _NO_SUCH_THREAD:
                    raise
            time.sleep(limits.PROBE_PAUSE_SECONDS)


def is_there(link: Link, entity: Entity, keys: Sequence[str], row: Sequence[str], how: str = "") -> bool:
    """Whether a table has a row with these keys, which are literals."""
    found = " AND ".join(f"{DIALECT.quoted(name)} = {value}" for name, value in zip(keys, row, strict=True))
    link.write(f"SELECT 1 FROM {sql.qualified(DIALECT, entity.parts)} WHERE {found} LIMIT 1{how}".encode())
    return bool(link.rows)


def _unique(writing: Writing) -> tuple[str, ...]:
    """The columns of the shortest unique key that the rows bring whole."""
    entity, brought = writing.entity, {column.name for column in writing.columns}
    fit_keys = [one for one in (entity.keys, *entity.uniques) if one and set(one) <= brought]
    return min(fit_keys, key=len, default=())


def counted(writing: Writing) -> str | None:
    """The column that the server counts, where the rows do not bring it and no two rows can have the same number."""
    brought = {column.name for column in writing.columns}
    fields = (one for one in writing.entity.fields if one.generated == "identity" and one.unique)
    return next((one.name for one in fields if one.name not in brought), None)


def _column(writing: Writing, name: str) -> Column:
    return next(one for one in writing.columns if one.name == name)
