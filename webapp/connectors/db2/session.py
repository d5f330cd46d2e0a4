"""A connection to Db2, and writing rows with statements of many rows (INSERT, MERGE, DELETE).

A rejected statement is rolled back to its savepoint and split, because Db2 does not report which row it rejects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from webapp import limits
from webapp.connectors.base import ConnectorError, Target, WriteSpec
from webapp.connectors.db2 import catalog
from webapp.connectors.schema import Entity
from webapp.connectors.sql.statements import StatementSession
from webapp.engine.formats.sql_dialects import DIALECTS, Dialect

if TYPE_CHECKING:
    from webapp.connectors.db2.connection import Db2Connection
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from webapp.connectors.base import RowError
from webapp.connectors.db2.errors import row_rejection
from webapp.connectors.row_isolation import RowRejection
from webapp.connectors.schema import Column
from webapp.connectors.sql import base as sql
from webapp.connectors.sql.statements import Cells, LiteralTarget, literals

# Tables that Rowsmith creates use SMALLINT for booleans; other tables have BOOLEAN (Db2 11.1).
DIALECT: Final = replace(DIALECTS["db2"], booleans=("FALSE", "TRUE"))
_ROW: Final = '"rowsmith row"'
_NULL: Final = "NULL"
_NO_NUMBER: Final = frozenset({"nan", "inf", "-inf"})
_HEX_PART: Final = (
    limits.DB2_LITERAL_BYTES // 2
)  # hexadecimal digits of a literal: half of the limit, and an even number
_PARTS_OF_SECOND: Final = re.compile(r"\.\d+'$")
_TEXT_TYPES: Final = ("text", "enum", "json", "array", "other", "interval", "uuid", "objectid")


class Db2Target(LiteralTarget):
    """See `LiteralTarget`. Db2 checks constraints at each statement, never at the end."""

    dialect: ClassVar[Dialect] = DIALECT
    title: ClassVar[str] = "Db2"
    max_rows: ClassVar[int] = limits.DB2_STATEMENT_ROWS
    max_length: ClassVar[int] = limits.DB2_STATEMENT_BYTES
    _link: Db2Connection

    @staticmethod
    def literal_length(literal: str) -> int:
        """Return the number of bytes in UTF-8."""
        return len(literal) if literal.isascii() else len(literal.encode())

    def to_literals(self, batch: pa.RecordBatch) -> tuple[list[list[str]], list[RowError]]:
        """See `LiteralTarget.to_literals`."""
        return to_literals(self.spec.columns, batch)

    def write_rows(self, cells: Cells, rows: list[int], mode: str) -> RowRejection | None:
        """See `LiteralTarget.write_rows`."""
        try:
            if mode in ("update", "delete") and (missing := self._unmatched(cells, rows)):
                indexes = [index for index, row in enumerate(rows) if row in missing]
                return RowRejection(
                    "missing_row", self.missing_row_error(indexes[0]).message, bad=np.array(indexes)
                )
            self._link.run("SAVEPOINT rowsmith ON ROLLBACK RETAIN CURSORS")
            if self.spec.capture and mode == "insert":
                _, caught = self._link.query(self._insert_returning(cells, rows))
                self._returned |= {int(row[0]): row[1:] for row in caught}
            else:
                self._link.run(self._statement(cells, rows, mode))
        except ConnectorError as error:
            rejection = row_rejection(error, self.spec.entity)
            if rejection is None:
                raise
            self._link.run("ROLLBACK TO SAVEPOINT rowsmith")
            if rejection.reason == "not_null" and rejection.column in self._names:
                column = cells[self._names.index(rejection.column)]
                if indexes := [index for index, row in enumerate(rows) if column[row] == _NULL]:
                    return replace(rejection, bad=np.array(indexes))
            return rejection
        return None

    def _unmatched(self, cells: Cells, rows: Sequence[int]) -> set[int]:
        """Return the rows whose key does not exist in the table."""
        keys = self.spec.key_columns
        condition = " AND ".join(f"t.{DIALECT.quote_name(key)} = s.{DIALECT.quote_name(key)}" for key in keys)
        _, unmatched = self._link.query(
            f"SELECT s.{_ROW} FROM {self._source(cells, rows, keys, numbered=True)} "
            f"WHERE NOT EXISTS (SELECT 1 FROM {self._table} t WHERE {condition})"
        )
        return {int(row[0]) for row in unmatched}

    # --- statements ---

    def _statement(self, cells: Cells, rows: Sequence[int], mode: str) -> str:
        if mode == "insert":
            return self.insert(cells, rows)
        keys = self.spec.key_columns
        if mode == "delete":
            names = sql.column_list(DIALECT, keys)
            key_values = self._values(cells, rows, keys)
            return f"DELETE FROM {self._table} WHERE ({names}) IN (VALUES {key_values})"
        on = " AND ".join(f"t.{DIALECT.quote_name(key)} = s.{DIALECT.quote_name(key)}" for key in keys)
        others = [name for name in self._names if name not in keys] or list(keys[:1])
        setting = ", ".join(
            f"{DIALECT.quote_name(other)} = s.{DIALECT.quote_name(other)}" for other in others
        )
        merge = (
            f"MERGE INTO {self._table} t USING {self._source(cells, rows, self._names)} ON ({on}) "
            f"WHEN MATCHED THEN UPDATE SET {setting}"
        )
        if mode == "update":
            return merge
        names = sql.column_list(DIALECT, self._names)
        return f"{merge} WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({sql.column_list(DIALECT, self._names, 's.')})"

    def _insert_returning(self, cells: Cells, rows: Sequence[int]) -> str:
        """Return an INSERT that outputs the generated values of each row, with the row's position in the batch."""
        values = ",".join(
            "(" + ",".join([*(column[row] for column in cells), str(row)]) + ")" for row in rows
        )
        return (
            f"SELECT {_ROW}, {sql.column_list(DIALECT, self.spec.capture)} FROM FINAL TABLE "
            f"(INSERT INTO {self._table} ({sql.column_list(DIALECT, self._names)}) INCLUDE ({_ROW} INTEGER) "
            f"VALUES {values})"
        )

    def _source(
        self,
        cells: Cells,
        rows: Sequence[int],
        names: Sequence[str],
        *,
        numbered: bool = False,
    ) -> str:
        """Return rows as a table expression `s` whose columns have the types of the target columns."""
        columns = [*map(DIALECT.quote_name, names), *([_ROW] if numbered else [])]
        return f"(VALUES {self._values(cells, rows, names, numbered=numbered)}) AS s ({', '.join(columns)})"

    def _values(
        self,
        cells: Cells,
        rows: Sequence[int],
        names: Sequence[str],
        *,
        numbered: bool = False,
    ) -> str:
        indexes = [self._names.index(name) for name in names]
        columns = self.spec.columns
        return ",".join(
            "("
            + ",".join(
                [
                    *(_cast_literal(cells[index][row], columns[index]) for index in indexes),
                    *([str(row)] * numbered),
                ]
            )
            + ")"
            for row in rows
        )


def to_literals(columns: Sequence[Column], batch: pa.RecordBatch) -> tuple[list[list[str]], list[RowError]]:
    """Return Db2 literals of each column, and the errors of rows with a value that does not fit."""
    cells, failures = literals(DIALECT, columns, batch)
    errors = {error.index: error for error in failures}
    for index, column in enumerate(columns):
        if column.type == "float":
            for row, cell in enumerate(cells[index]):
                if cell in _NO_NUMBER:
                    message = f"{column.name}: Db2's {column.declared or 'DOUBLE'} cannot store {cell}"
                    errors.setdefault(row, RowError(row, "out_of_range", message, column=column.name))
        elif column.type == "time":  # Db2 stores no fractions of seconds
            cells[index] = [_PARTS_OF_SECOND.sub("'", cell) for cell in cells[index]]
        elif column.type == "binary":
            cells[index] = [_binary_literal(cell, column) for cell in cells[index]]
    return cells, sorted(errors.values(), key=lambda item: item.index)


def _binary_literal(cell: str, column: Column) -> str:
    """Return a literal for bytes, concatenated from several parts if it would be too long."""
    if cell == _NULL:
        return cell
    digits = cell[3:-1]
    if column.declared.endswith("FOR BIT DATA"):
        return f"X'{digits}'"
    if len(digits) <= _HEX_PART:
        return f"BLOB(BX'{digits}')" if column.declared.startswith("BLOB") else cell
    parts = (digits[at : at + _HEX_PART] for at in range(0, len(digits), _HEX_PART))
    return "||".join(f"BLOB(BX'{part}')" for part in parts)


def _cast_literal(cell: str, column: Column) -> str:
    """Return a literal with its column's type outside of an INSERT. Texts are not cast, which would truncate them."""
    if cell != _NULL and (column.type in _TEXT_TYPES or column.type == "binary"):
        return cell
    return f"CAST({cell} AS {column.declared})" if column.declared else cell


class Db2Session(StatementSession):
    """See `StatementSession`. `open_another` opens a second connection; `schema` is the default schema."""

    dialect: ClassVar[Dialect] = DIALECTS["db2"]
    from_dual: ClassVar[str] = " FROM SYSIBM.SYSDUMMY1"
    placeholder: ClassVar[str] = "?"
    link: Db2Connection

    def __init__(
        self,
        link: Db2Connection,
        open_another: Callable[[], Db2Connection],
        read_only: bool,
        schema: str | None = None,
    ) -> None:
        name, version = link.server
        if not name.startswith("DB2/"):  # DB2 without a slash is z/OS, AS is IBM i: their catalogs differ
            raise ConnectorError(
                f"The server is {name} {version}, not Db2 for Linux, UNIX and Windows.",
                reason="unsupported",
                hint="Connect to a server of this product.",
            )
        _set_up(link, schema)
        _, ((default_schema,),) = link.query("SELECT RTRIM(CURRENT SCHEMA) FROM SYSIBM.SYSDUMMY1")
        super().__init__(link, f"Db2 {version}", default_schema, read_only)
        self._open_another, self._schema = open_another, schema

    def open_another(self) -> Db2Connection:
        """See `StatementSession.open_another`."""
        link = self._open_another()
        _set_up(link, self._schema)
        return link

    def entities(self, name_filter: str = "") -> list[Entity]:
        """See `StatementSession.entities`."""
        return catalog.entities(
            lambda text, values: self.link.query(text, values)[1], self.default_schema, name_filter
        )

    def begin_read_only(self, link: Any) -> None:
        """See `StatementSession.begin_read_only`."""
        link.begin()

    def query_and_roll_back(
        self, link: Any, text: str, values: Sequence[Any], limit: int
    ) -> tuple[list[str], list[Sequence[Any]]]:
        """See `StatementSession.query_and_roll_back`."""
        self.begin_read_only(link)
        try:
            answer: tuple[list[str], list[Sequence[Any]]] = link.query(
                text, values, limit, limits.TARGET_QUERY_SECONDS
            )
            return answer
        finally:
            try:
                link.rollback()
            except ConnectorError:
                pass  # the connection is lost, and the transaction with it

    def target(self, spec: WriteSpec) -> Target:
        """See `Session.target`."""
        self.check_target(spec)
        return Db2Target(self.link, spec)

    def commit_outcome(self, entity: Entity, commit_token: Mapping[str, Any]) -> bool | None:
        """See `Session.commit_outcome`. Db2's readers see the last committed state without waiting, so the
        table is locked until its writers are done."""
        if not {"keys", "rows"} <= commit_token.keys():
            return None
        self.link.begin()
        try:
            self.link.run(f"LOCK TABLE {self.table(entity)} IN SHARE MODE")
            return super().commit_outcome(entity, commit_token)
        except ConnectorError as error:
            if error.reason != "locked":
                raise
            return None
        finally:
            try:
                self.link.rollback()
            except ConnectorError:
                pass  # the connection is lost, and the lock with it


def _set_up(link: Db2Connection, schema: str | None) -> None:
    """Set the lock timeout and the default schema."""
    link.run(f"SET CURRENT LOCK TIMEOUT {int(limits.TARGET_LOCK_SECONDS)}")
    if schema:
        link.run("SET CURRENT SCHEMA = '" + schema.replace("'", "''") + "'")
