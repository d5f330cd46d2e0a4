"""A connection to SQL Server, and writing rows: INSERT statements of up to 1,000 rows, MERGE to match rows or return
values.

A rejected statement is rolled back to its savepoint and split. Literals are checked first, because a failed
conversion on the server ends the transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

import pyarrow as pa

from webapp import limits
from webapp.connectors.base import ConnectorError, RowError, Target, WriteSpec
from webapp.connectors.row_isolation import RowRejection
from webapp.connectors.schema import Column, Entity
from webapp.connectors.sql.statements import Cells, LiteralTarget, StatementSession, literals
from webapp.connectors.sqlserver import catalog
from webapp.connectors.sqlserver.connection import MssqlConnection, row_rejection
from webapp.engine.formats.sql_dialects import DIALECTS, Dialect

DIALECT: Final = DIALECTS["mssql"]
_ROW: Final = "[rowsmith row]"
# A rejected statement does not end the transaction, dates are parsed the same way everywhere, nothing is
# truncated.
SET_UP = (
    "SET XACT_ABORT OFF; SET IMPLICIT_TRANSACTIONS OFF; SET LANGUAGE us_english; SET DATEFORMAT ymd;"
    " SET ANSI_NULLS ON; SET ANSI_PADDING ON; SET ANSI_WARNINGS ON; SET ARITHABORT ON; SET CONCAT_NULL_YIELDS_NULL ON;"
    " SET QUOTED_IDENTIFIER ON; SET NUMERIC_ROUNDABORT OFF; SET TEXTSIZE 2147483647;"
    f" SET LOCK_TIMEOUT {int(limits.TARGET_LOCK_SECONDS * 1000)};"
)


class MssqlTarget(LiteralTarget):
    """See `LiteralTarget`."""

    dialect: ClassVar[Dialect] = DIALECT
    max_rows: ClassVar[int] = limits.MSSQL_ROWS_PER_STATEMENT
    max_length: ClassVar[int] = limits.MSSQL_STATEMENT_BYTES
    _link: MssqlConnection

    def __init__(self, link: MssqlConnection, spec: WriteSpec) -> None:
        super().__init__(link, spec)
        # Integers are limited to the size of their type. The server reports all other errors.
        self._columns = [
            replace(column, bits=64) if column.type == "integer" and column.bits is None else column
            for column in spec.columns
        ]
        self._inserts_identity = spec.mode != "update" and any(
            column.generated == "identity" for column in spec.columns
        )

    # --- transactions ---

    def begin_transaction(self) -> None:
        """See `StatementTarget.begin_transaction`."""
        numbers = f" SET IDENTITY_INSERT {self._table} ON;" if self._inserts_identity else ""
        self._link.run(f"BEGIN TRANSACTION;{numbers}")

    def commit_transaction(self) -> None:
        """See `StatementTarget.commit_transaction`."""
        self._link.run("COMMIT TRANSACTION")
        self._disable_identity_insert()

    def roll_back_transaction(self) -> None:
        """See `StatementTarget.roll_back_transaction`."""
        self._link.run("IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION")
        self._disable_identity_insert()

    def _disable_identity_insert(self) -> None:
        if self._inserts_identity:  # only one table of a session may have it on
            self._link.run(f"SET IDENTITY_INSERT {self._table} OFF")

    # --- rows ---

    def statements(self, batch: pa.RecordBatch) -> list[str]:
        """See `Target.statements`."""
        result = super().statements(batch)
        if self._inserts_identity:
            on, off = (f"SET IDENTITY_INSERT {self._table} {state};" for state in ("ON", "OFF"))
            return [f"{on} {item} {off}" for item in result]
        return result

    def to_literals(self, batch: pa.RecordBatch) -> tuple[list[list[str]], list[RowError]]:
        """See `LiteralTarget.to_literals`."""
        return literals(DIALECT, self._columns, batch)

    def missing_rows(self, rows: Sequence[int], mode: str) -> list[int]:
        """See `LiteralTarget.missing_rows`."""
        return [row for row in rows if row not in self._returned] if mode in ("update", "delete") else []

    def write_rows(self, cells: Cells, rows: list[int], mode: str) -> RowRejection | None:
        """See `LiteralTarget.write_rows`."""
        plain = mode == "insert" and not self.spec.capture
        statement = self.insert(cells, rows) if plain else self._merge(cells, rows, mode)
        try:
            if plain:
                self._link.run(f"SAVE TRANSACTION rowsmith; {statement}")
                return None
            _, caught = self._link.query(f"SAVE TRANSACTION rowsmith; {statement}")
        except ConnectorError as error:
            rejection = row_rejection(error, self.spec.entity)
            if rejection is None:
                raise
            self._roll_back()
            return rejection
        self._returned |= {int(row[0]): row[1:] for row in caught}
        return None

    def _roll_back(self) -> None:
        """Roll back to the savepoint. Raises if a trigger or a conversion has ended the transaction."""
        _, ((state,),) = self._link.query(
            "IF XACT_STATE() = 1 ROLLBACK TRANSACTION rowsmith; SELECT CAST(XACT_STATE() AS int)"
        )
        if state != 1:
            self._open = False
            raise ConnectorError(
                "A trigger of the table rolled back the whole chunk.",
                reason="rolled_back",
                hint="Change the trigger so that it raises its error without ROLLBACK, and with SET XACT_ABORT OFF.",
            )

    # --- statements ---

    def _merge(self, cells: Cells, rows: Sequence[int], mode: str) -> str:
        """Return a MERGE statement that outputs each row that it changed."""
        spec, quoted = self.spec, DIALECT.quote_name
        columns = [quoted(name) for name in self._names]
        values = ",".join(
            "(" + ",".join([str(row), *(column[row] for column in cells)]) + ")" for row in rows
        )
        casts = [
            f"CAST({name} AS {_cast(item)}) AS {name}"
            for name, item in zip(columns, self._columns, strict=True)
        ]
        source = (
            f"SELECT {', '.join([_ROW, *casts])} FROM (VALUES {values}) AS v ({', '.join([_ROW, *columns])})"
        )
        keys = spec.key_columns
        on = (
            "1 = 0"
            if mode == "insert"
            else " AND ".join(f"t.{quoted(key)} = s.{quoted(key)}" for key in keys)
        )
        others = [name for name in self._names if name not in keys] or list(keys[:1])
        setting = ", ".join(f"t.{quoted(other)} = s.{quoted(other)}" for other in others)
        insert = f"INSERT ({', '.join(columns)}) VALUES ({', '.join(f's.{column}' for column in columns)})"
        parts = {
            "insert": f"WHEN NOT MATCHED THEN {insert}",
            "update": f"WHEN MATCHED THEN UPDATE SET {setting}",
            "upsert": f"WHEN MATCHED THEN UPDATE SET {setting} WHEN NOT MATCHED THEN {insert}",
            "delete": "WHEN MATCHED THEN DELETE",
        }[mode]
        captured = [] if mode == "delete" else [spec.entity.column(name) for name in spec.capture]
        definitions = [f"c{index} {_cast(item)} NULL" for index, item in enumerate(captured) if item]
        output = ", ".join([f"s.{_ROW}", *(f"inserted.{quoted(item.name)}" for item in captured if item)])
        return (
            f"DECLARE @done TABLE ({', '.join(['r int NOT NULL', *definitions])}); "
            f"MERGE INTO {self._table} WITH (HOLDLOCK) AS t USING ({source}) AS s ON ({on}) {parts} "
            f"OUTPUT {output} INTO @done; SELECT * FROM @done;"
        )


def _cast(column: Column) -> str:
    """Return a type that accepts any value of the column without truncating it."""
    if column.type in ("text", "enum", "json", "array", "other"):
        return "nvarchar(max)"
    if column.type == "binary":
        return "varbinary(max)"
    return column.declared


class MssqlSession(StatementSession):
    """See `StatementSession`. `open_another` opens a second connection."""

    dialect: ClassVar[Dialect] = DIALECTS["mssql"]
    lock_hint: ClassVar[str] = " WITH (READCOMMITTEDLOCK)"
    doubled_chars: ClassVar[str] = "%"
    link: MssqlConnection

    def __init__(
        self, link: MssqlConnection, open_another: Callable[[], MssqlConnection], read_only: bool
    ) -> None:
        _, ((version, default_schema),) = link.query(
            "SELECT CAST(SERVERPROPERTY('ProductVersion') AS nvarchar(60)), COALESCE(SCHEMA_NAME(), N'dbo')"
        )
        super().__init__(link, f"SQL Server {version}", default_schema, read_only)
        self._open_another = open_another

    def open_another(self) -> MssqlConnection:
        """See `StatementSession.open_another`."""
        return self._open_another()

    def entities(self, name_filter: str = "") -> list[Entity]:
        """See `StatementSession.entities`."""
        where = ""
        if name_filter:
            text = "N'" + name_filter.lower().replace("'", "''") + "'"
            where = f" AND (LOWER(o.name) = {text} OR LOWER(CONCAT(s.name, N'.', o.name)) = {text})"
        return catalog.entities(lambda query: self.link.query(query)[1], self.default_schema, where)

    def limited_query(self, names: str, rest: str, limit: int) -> str:
        """See `StatementSession.limited_query`."""
        return f"SELECT TOP ({limit}) {names} {rest}"

    def begin_read_only(self, link: Any) -> None:
        """See `StatementSession.begin_read_only`."""
        link.run("BEGIN TRANSACTION")

    def query_and_roll_back(
        self, link: Any, text: str, values: Sequence[Any], limit: int
    ) -> tuple[list[str], list[Sequence[Any]]]:
        """See `StatementSession.query_and_roll_back`."""
        self.begin_read_only(link)
        try:
            answer: tuple[list[str], list[Sequence[Any]]] = link.query(text, values, limit)
            return answer
        finally:
            try:
                link.run("IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION")
            except ConnectorError:
                pass  # the connection is lost, and the transaction with it

    def check_permission(self) -> str:
        """See `StatementSession.check_permission`."""
        message = super().check_permission()
        _, ((is_allowed,),) = self.link.query("SELECT HAS_PERMS_BY_NAME(DB_NAME(), N'DATABASE', N'CONNECT')")
        if is_allowed == 0:
            raise ConnectorError(
                "The account is not allowed to use the database.",
                reason="no_permission",
                hint="Ask the database owner to grant CONNECT.",
            )
        return message

    def target(self, spec: WriteSpec) -> Target:
        """See `Session.target`."""
        self.check_target(spec)
        return MssqlTarget(self.link, spec)
