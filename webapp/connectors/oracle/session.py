"""A connection to Oracle, and writing rows with one statement for an array of rows, in which the server reports the
rejected rows (batch errors).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

import pyarrow as pa

from webapp import limits
from webapp.connectors import column_values
from webapp.connectors.base import ConnectorError, RowError, Target, WriteResult, WriteSpec
from webapp.connectors.oracle import catalog
from webapp.connectors.oracle.connection import OracleConnection, to_row_error
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
    _link: OracleConnection

    # --- transactions ---

    def begin_transaction(self) -> None:
        """See `StatementTarget.begin_transaction`. Oracle opens a transaction with the first change."""
        self._link.rollback()

    def commit_transaction(self) -> None:
        """See `StatementTarget.commit_transaction`."""
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

    def write_batch(self, batch: pa.RecordBatch, mode: str) -> WriteResult:
        """See `StatementTarget.write_batch`."""
        cells: list[list[Any]] = []
        errors: dict[int, RowError] = {}
        for column, array in zip(self.spec.columns, batch.columns, strict=True):
            values, misfits = column_values.convert_column(array, column, _to_driver)
            cells.append(values)
            errors |= {item.index: item for item in misfits}
        rows = [row for row in range(batch.num_rows) if row not in errors]
        statement, order = self._statement(mode)
        types = [_type(self.spec.columns[index]) for index in order]
        failures = list(errors.values())
        self._returned = {}
        names = self.spec.capture if mode == "insert" else ()
        captured = [self.spec.entity.column(name) for name in names]
        return_types = [_type(item) or "DB_TYPE_VARCHAR" for item in captured if item is not None]
        for start in range(0, len(rows), limits.TARGET_SAVEPOINT_ROWS):
            piece = rows[start : start + limits.TARGET_SAVEPOINT_ROWS]
            answer = self._link.run_many(
                statement, [[cells[index][row] for index in order] for row in piece], types, return_types
            )
            rejection = [
                to_row_error(piece[index], code, message, self.spec.entity)
                for index, code, message in answer.errors
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
                failures += [
                    self.missing_row_error(row) for row, count in pairs if not count and row not in rejected
                ]
        if mode == "insert":
            rejected = {error.index for error in failures}
            if written := [row for row in rows if row not in rejected]:
                # Record keys of the first, middle and last row for the commit token.
                sampled = list(dict.fromkeys((written[0], written[len(written) // 2], written[-1])))
                keys, _ = literals(DIALECT, self.spec.columns, batch.take(pa.array(sampled)))
                self._commit_keys.record(self._names, keys, list(range(len(sampled))))
        failures.sort(key=lambda item: item.index)
        return WriteResult(failures, self.captured_values(batch.num_rows) if return_types else None)

    # --- statements ---

    def _statement(self, mode: str) -> tuple[str, list[int]]:
        """Return a statement with placeholders, and the index of the column for each placeholder."""
        quoted, names = DIALECT.quote_name, self._names
        keys, table = self.spec.key_columns, self._table
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
                f"INSERT ({sql.column_list(DIALECT, names)}) VALUES ({sql.column_list(DIALECT, names, 's.')})"
            ), all_columns
        placeholders = ", ".join(f":{index}" for index in range(1, len(names) + 1))
        insert = f"INSERT INTO {table} ({sql.column_list(DIALECT, names)}) VALUES ({placeholders})"
        if self.spec.capture:
            into = ", ".join(
                f":{index}" for index in range(len(names) + 1, len(names) + 1 + len(self.spec.capture))
            )
            insert += f" RETURNING {sql.column_list(DIALECT, self.spec.capture)} INTO {into}"
        return insert, all_columns


def _to_driver(value: Any, column: Column) -> Any:
    """Convert a value for the driver."""
    if column.type == "date":  # Oracle's DATE includes a time of day
        return column_values.to_naive_datetime(value, column).replace(microsecond=0)
    if column.type == "timestamptz":  # the session's time zone is UTC
        return column_values.to_utc_datetime(value, column).replace(tzinfo=None)
    if column.type == "boolean":
        return int(column_values.to_boolean(value, column))
    if column.type == "uuid":
        return column_values.to_uuid(value, column).bytes
    converted = column_values.CONVERTERS[column.type](value, column)
    return converted.isoformat() if isinstance(converted, dt.time) else converted


def _type(column: Column) -> str | None:
    if column.type == "float" and column.declared == "BINARY_DOUBLE":
        return "DB_TYPE_BINARY_DOUBLE"
    return _LARGE.get(column.declared) or _BINDS.get(column.type)


class OracleSession(StatementSession):
    """See `StatementSession`. Oracle opens a transaction with the first change. `open_another` opens a second
    connection."""

    dialect: ClassVar[Dialect] = DIALECTS["oracle"]
    from_dual: ClassVar[str] = " FROM DUAL"
    placeholder: ClassVar[str] = ":{}"
    link: OracleConnection

    def __init__(
        self, link: OracleConnection, open_another: Callable[[], OracleConnection], read_only: bool
    ) -> None:
        _, ((default_schema,),) = link.query("SELECT SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA') FROM DUAL")
        super().__init__(link, f"Oracle {link.version}", default_schema, read_only)
        self._open_another = open_another

    def open_another(self) -> OracleConnection:
        """See `StatementSession.open_another`."""
        return self._open_another()

    def entities(self, name_filter: str = "") -> list[Entity]:
        """See `StatementSession.entities`."""
        return catalog.entities(
            lambda text, values: self.link.query(text, values)[1], self.default_schema, name_filter
        )

    def begin_read_only(self, link: Any) -> None:
        """See `StatementSession.begin_read_only`."""
        link.rollback()
        link.run("SET TRANSACTION READ ONLY")

    def query_and_roll_back(
        self, link: Any, text: str, values: Sequence[Any], limit: int
    ) -> tuple[list[str], list[Sequence[Any]]]:
        """See `StatementSession.query_and_roll_back`. A read-only transaction cannot change anything."""
        self.begin_read_only(link)
        link.set_timeout(limits.TARGET_QUERY_SECONDS)
        try:
            answer: tuple[list[str], list[Sequence[Any]]] = link.query(text, values, limit)
            return answer
        finally:
            try:
                link.set_timeout(None)
                link.rollback()
            except ConnectorError:
                pass  # the connection is lost, and the transaction with it

    def execute(self, statement: str) -> None:
        """See `Session.execute`."""
        super().execute(statement)
        self.link.commit()

    def target(self, spec: WriteSpec) -> Target:
        """See `Session.target`."""
        self.check_target(spec)
        return OracleTarget(self.link, spec)

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
