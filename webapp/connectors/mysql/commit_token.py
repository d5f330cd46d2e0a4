"""Find out whether a chunk was committed after the connection or the worker failed during COMMIT.

MySQL does not record the outcome of transactions. A commit token contains the connection, which is killed and
waited for, and the unique keys of a few inserted rows, which are either in the table or not. They are read
with a lock, which waits for transactions that still lock them. Without a unique key that the rows contain or
the server generates, there is no commit token.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pymysql

from webapp import limits
from webapp.connectors.base import WriteSpec
from webapp.connectors.mysql.connection import Link
from webapp.connectors.mysql.errors import converting_errors, number_of
from webapp.connectors.mysql.values import DIALECT, fit, texts
from webapp.connectors.schema import Column, Entity
from webapp.connectors.sql import base as sql

_NO_SUCH_THREAD: Final = 1094
_NOT_OURS: Final = 1095
_LOCKED: Final = 1205
_WAITING: Final = " LOCK IN SHARE MODE"

Ask = Callable[..., Sequence[Sequence[Any]]]


class CommitTokenBuilder:
    """Records what identifies the outcome of the open transaction."""

    def __init__(self, link: Link, writing: WriteSpec) -> None:
        self._link, self._writing = link, writing
        self._unique = _unique(writing)
        self._counted = counted(writing)
        self._rows: list[list[str]] = []
        self._first: int = 0
        self._written = 0
        self._place: tuple[str, str] | None = None

    def begin(self) -> None:
        """Start over for a new transaction."""
        self._rows, self._first, self._written = [], 0, 0

    def wrote(self, batch: pa.RecordBatch, rows: np.ndarray, first: int) -> None:
        """Record that these rows of a batch were written. `first_id` is the first AUTO_INCREMENT value they
        got."""
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
        if any(value.null_count for value in values):
            return  # NULL never equals NULL, so it cannot be looked up
        literals = [texts(column, array) for column, array in zip(columns, values, strict=True)]
        self._rows += [list(row) for row in zip(*literals, strict=True)]

    def commit_token(self) -> dict[str, Any]:
        """See `base.Target.commit_token`."""
        if self._writing.mode != "insert":
            return {}
        keys, rows = list(self._unique), self._rows
        if not rows and self._first and self._counted:
            keys, rows = [self._counted], [[str(self._first)]]
        # Values that a trigger or a column's precision changed are not found, and prove nothing.
        rows = [row for row in rows if is_there(self._link, self._writing.entity, keys, row)]
        if self._written and not rows:
            return {}
        if self._place is None:
            self._link.write(
                b"SELECT USER, HOST FROM information_schema.processlist WHERE ID = CONNECTION_ID()"
            )
            self._place = (str(self._link.rows[0][0]), str(self._link.rows[0][1]))
        return {"connection": self._link.number, "from": list(self._place), "keys": keys, "rows": rows}


class CommitOutcome:
    """Determines the outcome from a commit token, and prevents the old connection from committing."""

    def __init__(self, link: Link, ask: Ask) -> None:
        self._link, self._ask = link, ask

    def of(self, entity: Entity, commit_token: Mapping[str, Any]) -> bool | None:
        """See `base.Session.commit_outcome`."""
        if not {"connection", "from", "keys", "rows"} <= commit_token.keys():
            return None
        with converting_errors():
            if not self._ended(int(commit_token["connection"]), commit_token["from"]):
                return None
            if not commit_token["rows"]:
                return True  # nothing was inserted, so nothing can be missing or duplicated
            try:
                found = [
                    is_there(self._link, entity, commit_token["keys"], row, _WAITING)
                    for row in commit_token["rows"]
                ]
            except pymysql.err.OperationalError as error:
                if number_of(error) != _LOCKED:
                    raise
                return None
        return found[0] if all(found) or not any(found) else None

    def _ended(self, connection: int, origin: Sequence[str]) -> bool:
        """Kill the connection, and return whether it is gone.

        Its number may belong to another connection now, because the server may have been restarted.
        """
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
    """Return whether the table has a row with these keys, which are literals."""
    found = " AND ".join(f"{DIALECT.quoted(name)} = {value}" for name, value in zip(keys, row, strict=True))
    link.write(f"SELECT 1 FROM {sql.qualified(DIALECT, entity.parts)} WHERE {found} LIMIT 1{how}".encode())
    return bool(link.rows)


def _unique(writing: WriteSpec) -> tuple[str, ...]:
    """Return the columns of the shortest unique key that the rows contain completely."""
    entity, brought = writing.entity, {column.name for column in writing.columns}
    fit_keys = [one for one in (entity.keys, *entity.uniques) if one and set(one) <= brought]
    return min(fit_keys, key=len, default=())


def counted(writing: WriteSpec) -> str | None:
    """Return the unique AUTO_INCREMENT column, unless the rows contain values for it."""
    brought = {column.name for column in writing.columns}
    fields = (column for column in writing.entity.fields if column.generated == "identity" and column.unique)
    return next((column.name for column in fields if column.name not in brought), None)


def _column(writing: WriteSpec, name: str) -> Column:
    return next(column for column in writing.columns if column.name == name)
