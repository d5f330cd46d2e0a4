"""A connection to Oracle, and writing rows with one statement for an array of rows, in which the server reports the
rejected rows (batch errors).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

import pyarrow as pa

from webapp import limits
from webapp.connectors import column_values as connectors_values
from webapp.connectors.base import ConnectorError, RowError, Target, WriteResult, WriteSpec
from webapp.connectors.oracle import catalog
from webapp.connectors.oracle.connection import OracleLink, failure
from webapp.connectors.schema import Column, Entity
from webapp.connectors.sql import base as sql
from webapp.connectors.sql.statements import StatementSession, StatementTarget, literals
from webapp.engine.formats.sql_dialects import DIALECTS, Dialect

DIALECT: Final = DIALECTS["oracle"]
# Types of the driver, where they do not follow from the values.
_BINDS: Final = {
    "integer": "DB_TYPE_NUMBER", "decimal": "DB_TYPE_NUMBER", "timestamp": "DB_TYPE_TIMESTAMP",
    "timestamptz": "DB_TYPE_TIMESTAMP", "date": "DB_TYPE_DATE", "boolean": "DB_TYPE_NUMBER",
}  # fmt: skip
_LARGE: Final = {"CLOB": "DB_TYPE_CLOB", "NCLOB": "DB_TYPE_NCLOB", "BLOB": "DB_TYPE_BLOB"}


class OracleTarget(StatementTarget):
    """See `StatementTarget`."""

    dialect: ClassVar[Dialect] = DIALECT
    title: ClassVar[str] = "Oracle"
    _link: OracleLink

    # --- transactions ---

    def opening(self) -> None:
        """See `StatementTarget.opening`. Oracle opens a transaction with the first change."""
        self._link.rollback()

    def ending(self) -> None:
        """See `StatementTarget.ending`."""
        try:
            self._link.commit()
        except ConnectorError as error:
            if (
                error.details.get("native") != "ORA-02091"
            ):  # the server rolled back because of a deferred constraint
                raise
            hint = "These rows violate a deferred constraint of the table."
            raise ConnectorError(error.message, reason="deferred", hint=hint) from None

    # --- rows ---

    def sent(self, batch: pa.RecordBatch, mode: str) -> WriteResult:
        """See `StatementTarget.sent`."""
        cells: list[list[Any]] = []
        errors: dict[int, RowError] = {}
        for column, array in zip(self.writing.columns, batch.columns, strict=True):
            values, misfits = connectors_values.convert_column(array, column, _to_driver)
            cells.append(values)
            errors |= {item.index: item for item in misfits}
        rows = [row for row in range(batch.num_rows) if row not in errors]
        statement, order = self._statement(mode)
        types = [_type(self.writing.columns[index]) for index in order]
        failures = list(errors.values())
        self._returned = {}
        names = self.writing.capture if mode == "insert" else ()
        captured = [self.writing.entity.column(name) for name in names]
        return_types = [_type(item) or "DB_TYPE_VARCHAR" for item in captured if item is not None]
        for start in range(0, len(rows), limits.TARGET_SAVEPOINT_ROWS):
            piece = rows[start : start + limits.TARGET_SAVEPOINT_ROWS]
            answer = self._link.many(
                statement, [[cells[index][row] for index in order] for row in piece], types, return_types
            )
            rejection = [
                failure(piece[index], code, message, self.writing.entity)
                for index, code, message in answer.refused
            ]
            failures += rejection
            rejected = {item.index for item in rejection}
            self._returned |= {
                row: item for row, item in zip(piece, answer.returned, strict=False) if row not in rejected
            }
            if mode in ("update", "delete"):
                counted = (
                    piece
                    if len(answer.counts) == len(piece)
                    else [row for row in piece if row not in rejected]
                )
                pairs = zip(counted, answer.counts, strict=True)
                failures += [self.missing(row) for row, count in pairs if not count and row not in rejected]
        if mode == "insert":
            rejected = {error.index for error in failures}
            if written := [row for row in rows if row not in rejected]:
                # Record keys of the first, middle and last row for the commit token.
                sampled = list(dict.fromkeys((written[0], written[len(written) // 2], written[-1])))
                keys, _ = literals(DIALECT, self.writing.columns, batch.take(pa.array(sampled)))
                self._commit_keys.wrote(self._names, keys, list(range(len(sampled))))
        failures.sort(key=lambda item: item.index)
        return WriteResult(failures, self.captured(batch.num_rows) if return_types else None)

    # --- statements ---

    def _statement(self, mode: str) -> tuple[str, list[int]]:
        """Return a statement with placeholders, and the index of the column for each placeholder."""
        quoted, names = DIALECT.quoted, self._names
        keys, table = self.writing.key_columns, self._table
        others = [name for name in names if name not in keys] or list(keys[:1])
        all_columns = list(range(len(names)))
        if mode in ("update", "delete"):
            setting = ", ".join(f"{quoted(name)} = :{index}" for index, name in enumerate(others, 1))
            start = len(others) + 1 if mode == "update" else 1
            condition = " AND ".join(f"{quoted(name)} = :{index}" for index, name in enumerate(keys, start))
            if mode == "delete":
                return f"DELETE FROM {table} WHERE {condition}", [names.index(name) for name in keys]
            order = [names.index(name) for name in (*others, *keys)]
            return f"UPDATE {table} SET {setting} WHERE {condition}", order
        if mode == "upsert":
            source = ", ".join(f":{index} AS {quoted(name)}" for index, name in enumerate(names, 1))
            on = " AND ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in keys)
            changed = [name for name in names if name not in keys]
            setting = ", ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in changed)
            update = f"WHEN MATCHED THEN UPDATE SET {setting} " if changed else ""
            return (
                f"MERGE INTO {table} t USING (SELECT {source} FROM DUAL) s ON ({on}) {update}WHEN NOT MATCHED THEN "
                f"INSERT ({sql.listed(DIALECT, names)}) VALUES ({sql.listed(DIALECT, names, 's.')})"
            ), all_columns
        placeholders = ", ".join(f":{index}" for index in range(1, len(names) + 1))
        insert = f"INSERT INTO {table} ({sql.listed(DIALECT, names)}) VALUES ({placeholders})"
        if self.writing.capture:
            into = ", ".join(
                f":{index}" for index in range(len(names) + 1, len(names) + 1 + len(self.writing.capture))
            )
            insert += f" RETURNING {sql.listed(DIALECT, self.writing.capture)} INTO {into}"
        return insert, all_columns


def _to_driver(value: Any, column: Column) -> Any:
    """Convert a value for the driver."""
    if column.type == "date":  # Oracle's DATE includes a time of day
        return connectors_values.local(value, column).replace(microsecond=0)
    if column.type == "timestamptz":  # the session's time zone is UTC
        return connectors_values.instant(value, column).replace(tzinfo=None)
    if column.type == "boolean":
        return int(connectors_values.boolean(value, column))
    if column.type == "uuid":
        return connectors_values.identifier(value, column).bytes
    converted = connectors_values.CONVERTERS[column.type](value, column)
    return converted.isoformat() if isinstance(converted, dt.time) else converted


def _type(column: Column) -> str | None:
    if column.type == "float" and column.declared == "BINARY_DOUBLE":
        return "DB_TYPE_BINARY_DOUBLE"
    return _LARGE.get(column.declared) or _BINDS.get(column.type)


class OracleSession(StatementSession):
    """See `StatementSession`. Oracle opens a transaction with the first change. `open_another` opens a second
    connection."""

    dialect: ClassVar[Dialect] = DIALECTS["oracle"]
    origin: ClassVar[str] = " FROM DUAL"
    marker: ClassVar[str] = ":{}"
    link: OracleLink

    def __init__(self, link: OracleLink, another: Callable[[], OracleLink], read_only: bool) -> None:
        _, ((home,),) = link.query("SELECT SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA') FROM DUAL")
        super().__init__(link, f"Oracle {link.version}", home, read_only)
        self._another = another

    def another(self) -> OracleLink:
        """See `StatementSession.another`."""
        return self._another()

    def entities(self, like: str = "") -> list[Entity]:
        """See `StatementSession.entities`."""
        return catalog.entities(lambda text, values: self.link.query(text, values)[1], self.home, like)

    def begin_reading(self, link: Any) -> None:
        """See `StatementSession.begin_reading`."""
        link.rollback()
        link.run("SET TRANSACTION READ ONLY")

    def reading(
        self, link: Any, text: str, values: Sequence[Any], limit: int
    ) -> tuple[list[str], list[Sequence[Any]]]:
        """See `StatementSession.reading`. A read-only transaction cannot change anything."""
        self.begin_reading(link)
        link.patience(limits.TARGET_QUERY_SECONDS)
        try:
            answer: tuple[list[str], list[Sequence[Any]]] = link.query(text, values, limit)
            return answer
        finally:
            try:
                link.patience(None)
                link.rollback()
            except ConnectorError:
                pass  # the connection is lost, and the transaction with it

    def execute(self, statement: str) -> None:
        """See `Session.execute`."""
        super().execute(statement)
        self.link.commit()

    def target(self, writing: WriteSpec) -> Target:
        """See `Session.target`."""
        self.writable(writing)
        return OracleTarget(self.link, writing)

    def commit_outcome(self, entity: Entity, commit_token: Mapping[str, Any]) -> bool | None:
        """See `Session.commit_outcome`. Oracle's readers do not wait for writers, so the table is locked
        until they are done."""
        if not {"keys", "rows"} <= commit_token.keys():
            return None
        try:
            wait = int(limits.TARGET_LOCK_SECONDS)
            self.link.run(f"LOCK TABLE {self.table(entity)} IN SHARE MODE WAIT {wait}")
            return super().commit_outcome(entity, commit_token)
        except ConnectorError as error:
            if error.reason != "locked":
                raise
            return None
        finally:
            self.link.rollback()
