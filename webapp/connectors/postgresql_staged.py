"""A temporary table through which rows go that are found by their keys, or whose new keys are to come back.

The order of captured keys: an INSERT .. SELECT .. ORDER BY computes its defaults row after row in that order, and
RETURNING gives one row for each as it is inserted (executor's ModifyTable; no plan that writes is parallel). A count
that differs from what was sent means that the order cannot be told, and is treated as a refusal.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import psycopg
import pyarrow as pa

from webapp.connectors import sql
from webapp.connectors.base import Writing
from webapp.connectors.sql_values import read
from webapp.engine.formats.sql_dialects import DIALECTS

DIALECT: Final = DIALECTS["postgresql"]


class Staged:
    """The temporary table of one target. Made outside a transaction, so that it outlives every one of them."""

    def __init__(self, connection: psycopg.Connection[Any], writing: Writing) -> None:
        self._connection, self.writing = connection, writing
        names = [column.name for column in writing.columns]
        self._row = "rowsmith_row"
        while self._row in names:
            self._row += "_"
        self.name = "rowsmith_rows"
        quoted = DIALECT.quoted
        columns = ", ".join(f"{quoted(column.name)} {column.declared}" for column in writing.columns)
        table = f"pg_temp.{quoted(self.name)}"
        connection.execute(f"DROP TABLE IF EXISTS {table}".encode())
        connection.execute(
            f"CREATE TEMPORARY TABLE {quoted(self.name)} ({quoted(self._row)} bigint PRIMARY KEY, {columns})"
            " ON COMMIT DELETE ROWS".encode()
        )
        self._clear = f"TRUNCATE {table}".encode()
        self.copy = f"COPY {table} ({quoted(self._row)}, {sql.listed(DIALECT, names)}) FROM STDIN".encode()
        self._into = sql.qualified(DIALECT, writing.entity.parts)
        self._from = table
        self._names = names
        self.used = False
        self._captured: list[tuple[np.ndarray, list[list[str | None]]]] = []
        self._insert = self._insertion()

    def clear(self) -> None:
        """Empty it for the next batch. A commit does so by itself: `used` is false in a new transaction."""
        self._captured.clear()
        if self.used:
            self._connection.execute(self._clear)
        self.used = True

    def _chosen(self, piece: np.ndarray) -> str:
        """A condition for the rows of a piece, which is in most cases a run of them."""
        row = f"s.{DIALECT.quoted(self._row)}"
        if int(piece[-1] - piece[0]) + 1 == piece.size:
            return f"{row} BETWEEN {piece[0]} AND {piece[-1]}"
        return f"{row} = ANY('{{{','.join(map(str, piece.tolist()))}}}')"

    # --- insert, upsert ---

    def _insertion(self) -> tuple[str, str]:
        writing, quoted = self.writing, DIALECT.quoted
        names = sql.listed(DIALECT, self._names)
        override = (
            " OVERRIDING SYSTEM VALUE" if any(c.generated == "identity" for c in writing.columns) else ""
        )
        conflict = ""
        if writing.mode == "upsert":
            keys = writing.key_columns
            others = [name for name in self._names if name not in keys] or list(keys[:1])
            setting = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in others)
            conflict = f" ON CONFLICT ({sql.listed(DIALECT, keys)}) DO UPDATE SET {setting}"
        back = f" RETURNING {sql.listed(DIALECT, writing.capture)}" if writing.capture else ""
        head = f"INSERT INTO {self._into} ({names}){override} SELECT {sql.listed(DIALECT, self._names, 's.')}"
        return f"{head} FROM {self._from} s WHERE ", f" ORDER BY s.{quoted(self._row)}{conflict}{back}"

    def insert(self, piece: np.ndarray) -> bool:
        """Carry the rows of a piece over, in order; False where some were left out."""
        head, tail = self._insert
        cursor = self._connection.execute(f"{head}{self._chosen(piece)}{tail}".encode())
        if cursor.rowcount != piece.size:
            return False
        if self.writing.capture:
            self._captured.append((piece, _texts(cursor)))
        return True

    def captured(self, count: int) -> pa.RecordBatch:
        """The captured columns of the batch's `count` rows, null where a row was refused."""
        columns: list[list[str | None]] = [[None] * count for _ in self.writing.capture]
        for piece, texts in self._captured:
            for column, found in zip(columns, texts, strict=True):
                for row, text in zip(piece.tolist(), found, strict=True):
                    column[row] = text
        fields = [self.writing.entity.column(name) for name in self.writing.capture]
        arrays = [
            read(column, field.type if field else "text", field.scale if field else None)
            for column, field in zip(columns, fields, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, list(self.writing.capture))

    # --- update, delete ---

    def _same(self) -> str:
        quoted = DIALECT.quoted
        return " AND ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in self.writing.key_columns)

    def update(self, piece: np.ndarray) -> np.ndarray:
        """Change the rows that a piece names; returns those that were there."""
        quoted, keys = DIALECT.quoted, self.writing.key_columns
        others = [name for name in self._names if name not in keys] or list(keys[:1])
        setting = ", ".join(f"{quoted(name)} = s.{quoted(name)}" for name in others)
        statement = f"UPDATE {self._into} t SET {setting} FROM {self._from} s WHERE {self._same()}"
        return self._done(statement, piece)

    def delete(self, piece: np.ndarray) -> np.ndarray:
        """Delete the rows that a piece names; returns those that were there."""
        return self._done(f"DELETE FROM {self._into} t USING {self._from} s WHERE {self._same()}", piece)

    def _done(self, statement: str, piece: np.ndarray) -> np.ndarray:
        back = ", ".join(["", *(f"t.{DIALECT.quoted(name)}" for name in self.writing.capture)])
        cursor = self._connection.execute(
            f"{statement} AND {self._chosen(piece)} RETURNING s.{DIALECT.quoted(self._row)}{back}".encode()
        )
        numbers, *texts = _texts(cursor)
        rows = np.array(numbers, np.int64)
        if self.writing.capture:
            self._captured.append((rows, texts))
        return np.unique(rows)


def _texts(cursor: psycopg.Cursor[Any]) -> list[list[str | None]]:
    """A result's columns as the server's texts."""
    result = cursor.pgresult
    assert result is not None
    rows = range(result.ntuples)
    return [
        [None if (cell := result.get_value(row, place)) is None else cell.decode() for row in rows]
        for place in range(result.nfields)
    ]
