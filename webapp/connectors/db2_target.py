"""Rows into a Db2 table: statements of many rows of literals (INSERT, MERGE, DELETE), each undone as a whole by its
savepoint where it is refused, and halved. Db2 does not say which row of a statement it refuses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
import pyarrow as pa

from webapp import limits
from webapp.connectors import sql
from webapp.connectors.base import ConnectorError, Failure
from webapp.connectors.db2_errors import refusal
from webapp.connectors.shape import Column
from webapp.connectors.sieve import Refusal
from webapp.connectors.statement_session import literals
from webapp.connectors.statement_target import Cells, LiteralTarget
from webapp.engine.formats.sql_dialects import DIALECTS, Dialect

if TYPE_CHECKING:
    from webapp.connectors.db2_link import Db2Link

# Tables that this service makes have SMALLINT for booleans; those of others have BOOLEAN (Db2 11.1).
DIALECT: Final = replace(DIALECTS["db2"], booleans=("FALSE", "TRUE"))
_ROW: Final = '"rowsmith row"'
_NULL: Final = "NULL"
_NO_NUMBER: Final = frozenset({"nan", "inf", "-inf"})
_HEX_PART: Final = limits.DB2_LITERAL_BYTES // 2  # digits; half of what fits into one, and an even number
_PARTS_OF_SECOND: Final = re.compile(r"\.\d+'$")
_WORDS: Final = ("text", "enum", "json", "array", "other", "interval", "uuid", "objectid")


class Db2Target(LiteralTarget):
    """See `LiteralTarget`. Db2 judges constraints at each statement, never at the end."""

    dialect: ClassVar[Dialect] = DIALECT
    title: ClassVar[str] = "Db2"
    most_rows: ClassVar[int] = limits.DB2_STATEMENT_ROWS
    most_length: ClassVar[int] = limits.DB2_STATEMENT_BYTES
    _link: Db2Link

    @staticmethod
    def length(literal: str) -> int:
        """Bytes of its UTF-8."""
        return len(literal) if literal.isascii() else len(literal.encode())

    def spelled(self, batch: pa.RecordBatch) -> tuple[list[list[str]], list[Failure]]:
        """See `LiteralTarget.spelled`."""
        return spelled(self.writing.columns, batch)

    def attempt(self, cells: Cells, rows: list[int], mode: str) -> Refusal | None:
        """See `LiteralTarget.attempt`."""
        try:
            if mode in ("update", "delete") and (missing := self._unmatched(cells, rows)):
                places = [place for place, row in enumerate(rows) if row in missing]
                return Refusal("missing_row", self.missing(places[0]).message, bad=np.array(places))
            self._link.run("SAVEPOINT rowsmith ON ROLLBACK RETAIN CURSORS")
            if self.writing.capture and mode == "insert":
                _, caught = self._link.ask(self._returning(cells, rows))
                self._caught |= {int(row[0]): row[1:] for row in caught}
            else:
                self._link.run(self._statement(cells, rows, mode))
        except ConnectorError as error:
            refused = refusal(error, self.writing.entity)
            if refused is None:
                raise
            self._link.run("ROLLBACK TO SAVEPOINT rowsmith")
            return self._pointed(refused, cells, rows)
        return None

    def _pointed(self, refused: Refusal, cells: Cells, rows: Sequence[int]) -> Refusal:
        """A missing value tells by itself which rows are meant."""
        if refused.reason != "not_null" or refused.column not in self._names:
            return refused
        column = cells[self._names.index(refused.column)]
        places = [place for place, row in enumerate(rows) if column[row] == _NULL]
        return replace(refused, bad=np.array(places)) if places else refused

    def _unmatched(self, cells: Cells, rows: Sequence[int]) -> set[int]:
        """Which rows find none of the table by their key."""
        keys = self.writing.key_columns
        same = " AND ".join(f"t.{DIALECT.quoted(one)} = s.{DIALECT.quoted(one)}" for one in keys)
        _, found = self._link.ask(
            f"SELECT s.{_ROW} FROM {self._source(cells, rows, keys, numbered=True)} "
            f"WHERE NOT EXISTS (SELECT 1 FROM {self._table} t WHERE {same})"
        )
        return {int(row[0]) for row in found}

    # --- statements ---

    def _statement(self, cells: Cells, rows: Sequence[int], mode: str) -> str:
        if mode == "insert":
            return self.insert(cells, rows)
        keys = self.writing.key_columns
        if mode == "delete":
            names = sql.listed(DIALECT, keys)
            wanted = self._values(cells, rows, keys)
            return f"DELETE FROM {self._table} WHERE ({names}) IN (VALUES {wanted})"
        on = " AND ".join(f"t.{DIALECT.quoted(one)} = s.{DIALECT.quoted(one)}" for one in keys)
        others = [one for one in self._names if one not in keys] or list(keys[:1])
        setting = ", ".join(f"{DIALECT.quoted(one)} = s.{DIALECT.quoted(one)}" for one in others)
        merge = (
            f"MERGE INTO {self._table} t USING {self._source(cells, rows, self._names)} ON ({on}) "
            f"WHEN MATCHED THEN UPDATE SET {setting}"
        )
        if mode == "update":
            return merge
        names = sql.listed(DIALECT, self._names)
        return f"{merge} WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({sql.listed(DIALECT, self._names, 's.')})"

    def _returning(self, cells: Cells, rows: Sequence[int]) -> str:
        """An INSERT that tells of each row, by its place in the batch, what the server made."""
        values = ",".join(
            "(" + ",".join([*(column[row] for column in cells), str(row)]) + ")" for row in rows
        )
        return (
            f"SELECT {_ROW}, {sql.listed(DIALECT, self.writing.capture)} FROM FINAL TABLE "
            f"(INSERT INTO {self._table} ({sql.listed(DIALECT, self._names)}) INCLUDE ({_ROW} INTEGER) VALUES {values})"
        )

    def _source(
        self,
        cells: Cells,
        rows: Sequence[int],
        names: Sequence[str],
        *,
        numbered: bool = False,
    ) -> str:
        """Rows as a table `s` whose columns have the types of the target's."""
        columns = [*map(DIALECT.quoted, names), *([_ROW] if numbered else [])]
        return f"(VALUES {self._values(cells, rows, names, numbered=numbered)}) AS s ({', '.join(columns)})"

    def _values(
        self,
        cells: Cells,
        rows: Sequence[int],
        names: Sequence[str],
        *,
        numbered: bool = False,
    ) -> str:
        places = [self._names.index(name) for name in names]
        columns = self.writing.columns
        return ",".join(
            "("
            + ",".join([*(_typed(cells[one][row], columns[one]) for one in places), *([str(row)] * numbered)])
            + ")"
            for row in rows
        )


def spelled(columns: Sequence[Column], batch: pa.RecordBatch) -> tuple[list[list[str]], list[Failure]]:
    """Literals of each column as Db2 takes them, and the rows that have a value its column cannot hold."""
    cells, failures = literals(DIALECT, columns, batch)
    bad = {one.index: one for one in failures}
    for place, column in enumerate(columns):
        if column.type == "float":
            for row, cell in enumerate(cells[place]):
                if cell in _NO_NUMBER:
                    message = f"{column.name}: Db2's {column.declared or 'DOUBLE'} holds no {cell}"
                    bad.setdefault(row, Failure(row, "out_of_range", message, column=column.name))
        elif column.type == "time":  # Db2 keeps whole seconds
            cells[place] = [_PARTS_OF_SECOND.sub("'", cell) for cell in cells[place]]
        elif column.type == "binary":
            cells[place] = [_octets(cell, column) for cell in cells[place]]
    return cells, sorted(bad.values(), key=lambda one: one.index)


def _octets(cell: str, column: Column) -> str:
    """Bytes as a literal; put together from parts where they are too many for one."""
    if cell == _NULL:
        return cell
    digits = cell[3:-1]
    if column.declared.endswith("FOR BIT DATA"):
        return f"X'{digits}'"
    if len(digits) <= _HEX_PART:
        return f"BLOB(BX'{digits}')" if column.declared.startswith("BLOB") else cell
    parts = (digits[at : at + _HEX_PART] for at in range(0, len(digits), _HEX_PART))
    return "||".join(f"BLOB(BX'{part}')" for part in parts)


def _typed(cell: str, column: Column) -> str:
    """A literal that has its column's type outside an INSERT too. Texts keep their length: cast, they would be cut."""
    if cell != _NULL and (column.type in _WORDS or column.type == "binary"):
        return cell
    return f"CAST({cell} AS {column.declared})" if column.declared else cell
