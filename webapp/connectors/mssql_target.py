"""Rows into a SQL Server table: INSERT statements of up to 1,000 rows of literals, MERGE for everything that looks for
rows or brings something back. Each is undone as a whole by its savepoint where it is refused, and halved; literals are
judged beforehand, since a conversion that fails in the server ends the transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from webapp import limits
from webapp.connectors import sql
from webapp.connectors.base import ConnectorError, Failure, Sent, Target, Writing
from webapp.connectors.mssql_errors import refusal
from webapp.connectors.mssql_link import MssqlLink
from webapp.connectors.shape import Column
from webapp.connectors.sieve import Refusal, sift
from webapp.connectors.sql_values import of_objects
from webapp.connectors.statement_session import Proof, literals
from webapp.engine.formats.sql_dialects import DIALECTS

DIALECT: Final = DIALECTS["mssql"]
_ROW: Final = "[rowsmith row]"


class MssqlTarget(Target):
    """See `Target`."""

    def __init__(self, link: MssqlLink, writing: Writing) -> None:
        self.writing = writing
        self._link = link
        self._table = sql.qualified(DIALECT, writing.entity.parts)
        self._columns = [_spelled(column) for column in writing.columns]
        self._names = [column.name for column in writing.columns]
        self._numbered = writing.mode != "update" and any(
            one.generated == "identity" for one in writing.columns
        )
        self._proof = Proof(writing)
        self._open = False
        self._caught: dict[int, Sequence[Any]] = {}

    # --- transactions ---

    def begin(self) -> None:
        """See `Target.begin`."""
        if not self._open:
            numbers = f" SET IDENTITY_INSERT {self._table} ON;" if self._numbered else ""
            self._link.run(f"BEGIN TRANSACTION;{numbers}")
            self._proof.begin()
            self._open = True

    def proof(self) -> dict[str, Any]:
        """See `Target.proof`: keys of rows that were inserted."""
        return self._proof.told()

    def commit(self) -> None:
        """See `Target.commit`."""
        self._open = False
        self._link.run("COMMIT TRANSACTION")
        self._number_off()

    def rollback(self) -> None:
        """See `Target.rollback`."""
        self._open = False
        try:
            self._link.run("IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION")
            self._number_off()
        except ConnectorError:
            pass  # gone, and the transaction with it

    def _number_off(self) -> None:
        if self._numbered:  # one table of a session only may have it on
            self._link.run(f"SET IDENTITY_INSERT {self._table} OFF")

    # --- rows ---

    def statements(self, batch: pa.RecordBatch) -> list[str]:
        """See `Target.statements`."""
        made = sql.statements(DIALECT, self.writing, batch)
        if self._numbered:
            on, off = (f"SET IDENTITY_INSERT {self._table} {word};" for word in ("ON", "OFF"))
            return [f"{on} {one} {off}" for one in made]
        return made

    def send(self, batch: pa.RecordBatch) -> Sent:
        """See `Target.send`."""
        return self._sent(batch, self.writing.mode)

    def delete(self, batch: pa.RecordBatch) -> Sent:
        """See `Target.delete`."""
        return self._sent(batch, "delete")

    def _sent(self, batch: pa.RecordBatch, mode: str) -> Sent:
        cells, failures = literals(DIALECT, self._columns, batch)
        self._caught = {}
        bad = {one.index for one in failures}
        rows = [row for row in range(batch.num_rows) if row not in bad]
        keys = (
            [cells[self._names.index(name)] for name in self.writing.key_columns] if mode != "insert" else []
        )

        def attempt(piece: np.ndarray) -> Refusal | None:
            return self._attempt(cells, piece, mode)

        for piece in _pieces(rows, cells, keys):
            failures += sift(piece, attempt)
        bad = {one.index for one in failures}
        if mode in ("update", "delete"):
            lost = [row for row in rows if row not in bad and row not in self._caught]
            message = f"There is no such row in {self.writing.entity.name}."
            failures += [Failure(row, "missing_row", message) for row in lost]
        if mode == "insert":
            self._proof.wrote(self._names, cells, [row for row in rows if row not in bad])
        failures = sorted(failures, key=lambda one: one.index)
        wanted = self.writing.capture and mode != "delete"
        return Sent(failures, self._keys(batch.num_rows) if wanted else None)

    def _attempt(self, cells: Sequence[Sequence[str]], piece: np.ndarray, mode: str) -> Refusal | None:
        rows = piece.tolist()
        plain = mode == "insert" and not self.writing.capture
        statement = self._insert(cells, rows) if plain else self._merge(cells, rows, mode)
        try:
            if plain:
                self._link.run(f"SAVE TRANSACTION rowsmith; {statement}")
                return None
            _, caught = self._link.ask(f"SAVE TRANSACTION rowsmith; {statement}")
        except ConnectorError as error:
            refused = refusal(error, self.writing.entity)
            if refused is None:
                raise
            self._undo()
            return refused
        self._caught |= {int(row[0]): row[1:] for row in caught}
        return None

    def _undo(self) -> None:
        """Back to before the statement; what triggers and conversions end altogether cannot be saved."""
        _, ((state,),) = self._link.ask(
            "IF XACT_STATE() = 1 ROLLBACK TRANSACTION rowsmith; SELECT CAST(XACT_STATE() AS int)"
        )
        if state != 1:
            self._open = False
            raise ConnectorError(
                "A trigger of the table rolled the whole chunk back.",
                reason="rolled_back",
                hint="Let the trigger raise its error without ROLLBACK, and with SET XACT_ABORT OFF.",
            )

    # --- statements ---

    def _insert(self, cells: Sequence[Sequence[str]], rows: Sequence[int]) -> str:
        values = ",".join("(" + ",".join([column[row] for column in cells]) + ")" for row in rows)
        return f"INSERT INTO {self._table} ({sql.listed(DIALECT, self._names)}) VALUES {values}"

    def _merge(self, cells: Sequence[Sequence[str]], rows: Sequence[int], mode: str) -> str:
        """A MERGE that tells of each row that it changed."""
        writing, quoted = self.writing, DIALECT.quoted
        columns = [quoted(name) for name in self._names]
        values = ",".join(
            "(" + ",".join([str(row), *(column[row] for column in cells)]) + ")" for row in rows
        )
        casts = [
            f"CAST({name} AS {_cast(one)}) AS {name}"
            for name, one in zip(columns, self._columns, strict=True)
        ]
        source = (
            f"SELECT {', '.join([_ROW, *casts])} FROM (VALUES {values}) AS v ({', '.join([_ROW, *columns])})"
        )
        keys = writing.key_columns
        on = (
            "1 = 0"
            if mode == "insert"
            else " AND ".join(f"t.{quoted(one)} = s.{quoted(one)}" for one in keys)
        )
        others = [one for one in self._names if one not in keys] or list(keys[:1])
        setting = ", ".join(f"t.{quoted(one)} = s.{quoted(one)}" for one in others)
        insert = f"INSERT ({', '.join(columns)}) VALUES ({', '.join(f's.{one}' for one in columns)})"
        parts = {
            "insert": f"WHEN NOT MATCHED THEN {insert}",
            "update": f"WHEN MATCHED THEN UPDATE SET {setting}",
            "upsert": f"WHEN MATCHED THEN UPDATE SET {setting} WHEN NOT MATCHED THEN {insert}",
            "delete": "WHEN MATCHED THEN DELETE",
        }[mode]
        wanted = [] if mode == "delete" else [writing.entity.column(name) for name in writing.capture]
        noted = [f"c{place} {_cast(one)} NULL" for place, one in enumerate(wanted) if one]
        back = ", ".join([f"s.{_ROW}", *(f"inserted.{quoted(one.name)}" for one in wanted if one)])
        return (
            f"DECLARE @done TABLE ({', '.join(['r int NOT NULL', *noted])}); "
            f"MERGE INTO {self._table} WITH (HOLDLOCK) AS t USING ({source}) AS s ON ({on}) {parts} "
            f"OUTPUT {back} INTO @done; SELECT * FROM @done;"
        )

    def _keys(self, count: int) -> pa.RecordBatch:
        width = len(self.writing.capture)
        none = (None,) * width
        rows = [self._caught.get(row, none) for row in range(count)]
        arrays = [of_objects([row[place] for row in rows]) for place in range(width)]
        return pa.RecordBatch.from_arrays(arrays, list(self.writing.capture))


def _pieces(
    rows: Sequence[int], cells: Sequence[Sequence[str]], keys: Sequence[Sequence[str]]
) -> Iterator[np.ndarray]:
    """Rows for one statement each: so many, so long, and no key twice, since each stands for itself."""
    piece: list[int] = []
    seen: set[tuple[str, ...]] = set()
    size = 0
    for row in rows:
        length = sum(len(column[row]) for column in cells)
        key = tuple(column[row] for column in keys)
        full = len(piece) == limits.MSSQL_ROWS_PER_STATEMENT or size + length > limits.MSSQL_STATEMENT_BYTES
        if piece and (full or (keys and key in seen)):
            yield np.array(piece)
            piece, size = [], 0
            seen.clear()
        piece.append(row)
        seen.add(key)
        size += length
    if piece:
        yield np.array(piece)


def _spelled(column: Column) -> Column:
    """Whole numbers judged by their type's size; of the rest the server says what is wrong."""
    return replace(column, bits=64) if column.type == "integer" and column.bits is None else column


def _cast(column: Column) -> str:
    """A type that takes whatever the column takes, and cuts nothing."""
    if column.type in ("text", "enum", "json", "array", "other"):
        return "nvarchar(max)"
    if column.type == "binary":
        return "varbinary(max)"
    return column.declared
