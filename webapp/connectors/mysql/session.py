"""A connection to MySQL or MariaDB: metadata, reading, statements, and writing rows.

Rows are written with INSERT statements of many rows. InnoDB rolls back a rejected statement completely, so a chunk
needs no savepoints. The bad row is the one that MariaDB names (GET DIAGNOSTICS ... ROW_NUMBER), which is then sent on
its own to make sure, or it is found by splitting. Statements become shorter after rejections, and longer again without
them. LOAD DATA LOCAL would be faster, but turns errors into warnings, and so truncates and skips silently.

Rows that are matched by key have one statement each, many in one command. Each reports how many rows it matched, and
the server stops at the first one that fails.

MySQL does not record the outcome of transactions, so a commit token finds out whether a chunk was committed after the
connection or the worker failed during COMMIT. It contains the connection, which is killed and waited for, and the
unique keys of a few inserted rows, which are either in the table or not. They are read with a lock, which waits for
transactions that still lock them. Without a unique key that the rows contain or the server generates, there is no
commit token.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pymysql

from webapp import limits
from webapp.connectors.base import ConnectorError, RowError, Session, Target, WriteResult, WriteSpec
from webapp.connectors.mysql import catalog
from webapp.connectors.mysql.catalog import ServerVersion
from webapp.connectors.mysql.connection import (
    ConnectOptions,
    MysqlConnection,
    batch_of,
    convert_error,
    converting_errors,
    error_number,
    row_rejection,
)
from webapp.connectors.mysql.values import DIALECT, Literals, LiteralWriter, convert_array, texts
from webapp.connectors.row_isolation import BatchSizer, RowRejection, isolate_bad_rows
from webapp.connectors.schema import Column, Entity, Metadata
from webapp.connectors.sql import base as sql

_NO_SUCH_THREAD: Final = 1094
_NOT_OWNER: Final = 1095
_LOCKED: Final = 1205
_WAIT_FOR_LOCKS: Final = " LOCK IN SHARE MODE"

RunQuery = Callable[..., Sequence[Sequence[Any]]]
_ROW_NUMBER: Final = b"GET DIAGNOSTICS CONDITION 1 @rowsmith_row = ROW_NUMBER"
# Division by zero, by which an upsert's statement reports that the row conflicts with another unique key.
_OTHER_KEY_CONFLICT: Final = 1365
# Strict, so that the server truncates nothing silently; without the modes that change how literals are read.
SQL_MODE: Final = (
    "STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ZERO_DATE,NO_ZERO_IN_DATE,NO_ENGINE_SUBSTITUTION,"
    "NO_AUTO_VALUE_ON_ZERO"
)
_READS: Final = re.compile(
    r"(?:\s|\(|--[ \t][^\n]*\n|#[^\n]*\n|/\*(?![!M]).*?\*/)*(select|with|values|table|show|desc|describe|explain)\b",
    re.I | re.S,
)
# Comments may occur between the words.
_INTO_FILE: Final = re.compile(
    r"\binto\b(?:\s|/\*.*?\*/|--[^\n]*\n|#[^\n]*\n)*\b(?:outfile|dumpfile)\b", re.I | re.S
)
_PLAIN_OPTION: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?|ON|OFF|DEFAULT", re.I)


class CommitTokenBuilder:
    """Records what identifies the outcome of the open transaction."""

    def __init__(self, link: MysqlConnection, spec: WriteSpec) -> None:
        self._link, self._writing = link, spec
        self._shortest_key = _shortest_key(spec)
        self._identity = auto_increment_column(spec)
        self._rows: list[list[str]] = []
        self._first: int = 0
        self._written = 0
        self._account: tuple[str, str] | None = None

    def begin(self) -> None:
        """Start over for a new transaction."""
        self._rows, self._first, self._written = [], 0, 0

    def record(self, batch: pa.RecordBatch, rows: np.ndarray, first: int) -> None:
        """Record that these rows of a batch were written. `first_id` is the first AUTO_INCREMENT value they
        got."""
        self._written += rows.size
        self._first = self._first or first
        if not rows.size or not self._shortest_key or len(self._rows) >= limits.MYSQL_PROOF_ROWS:
            return
        sampled = rows[np.unique([0, rows.size // 2, rows.size - 1])]
        columns = [
            next(item for item in self._writing.columns if item.name == name) for name in self._shortest_key
        ]
        values = [
            convert_array(column, batch.column(self._writing.columns.index(column)).take(pa.array(sampled)))[
                0
            ]
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
        keys, rows = list(self._shortest_key), self._rows
        if not rows and self._first and self._identity:
            keys, rows = [self._identity], [[str(self._first)]]
        # Values that a trigger or a column's precision changed are not found, and prove nothing.
        rows = [row for row in rows if row_exists(self._link, self._writing.entity, keys, row)]
        if self._written and not rows:
            return {}
        if self._account is None:
            self._link.run_statement(
                b"SELECT USER, HOST FROM information_schema.processlist WHERE ID = CONNECTION_ID()"
            )
            self._account = (str(self._link.rows[0][0]), str(self._link.rows[0][1]))
        return {
            "connection": self._link.connection_id,
            "from": list(self._account),
            "keys": keys,
            "rows": rows,
        }


class CommitOutcome:
    """Determines the outcome from a commit token, and prevents the old connection from committing."""

    def __init__(self, link: MysqlConnection, run_query: RunQuery) -> None:
        self._link, self._query = link, run_query

    def determine(self, entity: Entity, commit_token: Mapping[str, Any]) -> bool | None:
        """See `base.Session.commit_outcome`."""
        if not {"connection", "from", "keys", "rows"} <= commit_token.keys():
            return None
        with converting_errors():
            if not self._kill(int(commit_token["connection"]), commit_token["from"]):
                return None
            if not commit_token["rows"]:
                return True  # nothing was inserted, so nothing can be missing or duplicated
            try:
                existing = [
                    row_exists(self._link, entity, commit_token["keys"], row, _WAIT_FOR_LOCKS)
                    for row in commit_token["rows"]
                ]
            except pymysql.err.OperationalError as error:
                if error_number(error) != _LOCKED:
                    raise
                return None
        return existing[0] if all(existing) or not any(existing) else None

    def _kill(self, connection: int, origin: Sequence[str]) -> bool:
        """Kill the connection, and return whether it is gone.

        Its number may belong to another connection now, because the server may have been restarted.
        """
        deadline = time.monotonic() + limits.TARGET_SETTLE_SECONDS
        while True:
            rows = self._query(
                "SELECT USER, HOST FROM information_schema.processlist WHERE ID = %s", (connection,)
            )
            if not rows or list(rows[0]) != list(origin):
                return True
            if time.monotonic() > deadline:
                return False
            try:
                self._link.run_statement(f"KILL CONNECTION {connection}".encode())
            except pymysql.err.Error as error:
                if error_number(error) == _NOT_OWNER:
                    return False
                if error_number(error) != _NO_SUCH_THREAD:
                    raise
            time.sleep(limits.PROBE_PAUSE_SECONDS)


def row_exists(
    link: MysqlConnection, entity: Entity, keys: Sequence[str], row: Sequence[str], how: str = ""
) -> bool:
    """Return whether the table has a row with these keys, which are literals."""
    condition = " AND ".join(
        f"{DIALECT.quote_name(name)} = {value}" for name, value in zip(keys, row, strict=True)
    )
    link.run_statement(
        f"SELECT 1 FROM {sql.qualified_name(DIALECT, entity.parts)} WHERE {condition} LIMIT 1{how}".encode()
    )
    return bool(link.rows)


def _shortest_key(spec: WriteSpec) -> tuple[str, ...]:
    """Return the columns of the shortest unique key that the rows contain completely."""
    entity, written = spec.entity, {column.name for column in spec.columns}
    fit_keys = [item for item in (entity.keys, *entity.uniques) if item and set(item) <= written]
    return min(fit_keys, key=len, default=())


def auto_increment_column(spec: WriteSpec) -> str | None:
    """Return the unique AUTO_INCREMENT column, unless the rows contain values for it."""
    written = {column.name for column in spec.columns}
    fields = (column for column in spec.entity.fields if column.generated == "identity" and column.unique)
    return next((column.name for column in fields if column.name not in written), None)


# --- Target -------------------------------------------------------------------------------------------------


class MysqlTarget(Target):
    """See `Target`."""

    def __init__(self, link: MysqlConnection, server: ServerVersion, packet: int, spec: WriteSpec) -> None:
        names = [column.name for column in spec.columns]
        if spec.mode == "update" and not set(spec.key_columns) < set(names):
            raise ConnectorError(
                "An update needs key columns and other columns to change.",
                reason="unsupported",
                hint="Map both kinds of columns.",
            )
        if not names:
            raise ConnectorError(
                "No column is mapped.", reason="unsupported", hint="Map at least one column."
            )
        self.spec = spec
        self._link, self._server = link, server
        self._writer = LiteralWriter(spec.columns)
        self._max_bytes = min(packet, limits.MYSQL_STATEMENT_BYTES) - limits.MYSQL_STATEMENT_MARGIN
        self._max_row_bytes = packet - limits.MYSQL_STATEMENT_MARGIN
        self._rows = limits.MYSQL_STATEMENT_ROWS
        self._batch_sizer = BatchSizer(limits.MYSQL_STATEMENT_ROWS, limits.MYSQL_STATEMENT_ROWS)
        self._table = sql.qualified_name(DIALECT, spec.entity.parts)
        self._prefix = f"INSERT INTO {self._table} ({sql.column_list(DIALECT, names)}) VALUES ".encode()
        self._capture = _Capture(link, server, spec)
        self._suffix = (self._on_duplicate() + self._capture.tail).encode()
        self._token_builder = CommitTokenBuilder(link, spec)
        self.is_open = False

    # --- transactions ---

    def begin(self) -> None:
        """See `Target.begin`."""
        if self.is_open:
            return
        with converting_errors():
            self._link.run_statement(b"START TRANSACTION")
        self._token_builder.begin()
        self.is_open = True

    def commit_token(self) -> dict[str, Any]:
        """See `Target.commit_token`: this connection, and keys of inserted rows."""
        with converting_errors():
            return self._token_builder.commit_token()

    def commit(self) -> None:
        """See `Target.commit`."""
        self.is_open = False
        with converting_errors():
            self._link.run_statement(b"COMMIT")

    def rollback(self) -> None:
        """See `Target.rollback`."""
        self.is_open = False
        try:
            if self._link.open:
                self._link.run_statement(b"ROLLBACK")
        except (pymysql.err.Error, OSError):
            pass  # the connection is lost, and the transaction with it

    # --- rows ---

    def statements(self, batch: pa.RecordBatch) -> list[str]:
        """See `Target.statements`."""
        return sql.statements(DIALECT, self.spec, batch)

    def send(self, batch: pa.RecordBatch) -> WriteResult:
        """See `Target.send`."""
        return self.prepare(batch)()

    def prepare(self, batch: pa.RecordBatch) -> Callable[[], WriteResult]:
        """See `Target.prepare`: converts the rows of an INSERT to literals."""
        if self.spec.mode == "update":
            return partial(self._run_statements, batch, self._update)
        arrays, failures = self._writer.convert(batch)
        rows = _accepted_rows(batch.num_rows, failures)
        if failures:
            arrays = [array.take(pa.array(rows)) for array in arrays]
        literals = self._writer.literals(arrays) if rows.size else None
        return partial(self._send, batch, rows, literals, failures)

    def _send(
        self, batch: pa.RecordBatch, rows: np.ndarray, literals: Literals | None, failures: list[RowError]
    ) -> WriteResult:
        self._capture.begin(batch)
        if literals is not None:
            rejection = self._insert(literals, rows)
            failures += rejection
            if self.spec.mode == "insert":
                rejected = {error.index for error in rejection}
                self._token_builder.record(
                    batch, rows if not rejected else rows[~np.isin(rows, list(rejected))], self._capture.first
                )
        return WriteResult(sorted(failures, key=lambda failure: failure.index), self._capture.keys())

    def _insert(self, literals: Literals, rows: np.ndarray) -> list[RowError]:
        """Insert rows, and return errors of rejected rows. `rows[i]` is the batch position of row `i` of the
        literals."""

        def attempt(piece: np.ndarray) -> RowRejection | None:
            start, end = int(piece[0]), int(piece[-1]) + 1
            try:
                self._link.run_statement(
                    b"".join((self._prefix, literals.slice_rows(start, end), self._suffix))
                )
            except (pymysql.err.Error, OSError) as error:
                rejection = row_rejection(error, self.spec.entity)
                if rejection is None:
                    raise convert_error(error) from error
                if self.spec.mode == "upsert" and rejection.native == str(_OTHER_KEY_CONFLICT):
                    message = "Another row has the same value in a different unique index."
                    rejection = replace(rejection, reason="unique", message=message)
                if end - start > 1:
                    rejection = replace(rejection, suspect=self._failed_row(end - start))
                return rejection
            self._capture.record(rows[start:end])
            return None

        failures: list[RowError] = []
        position = 0
        while position < rows.size:
            end = literals.end_within(position, min(rows.size, position + self._rows), self._max_bytes)
            if end == position + 1 and literals.size(position, end) > self._max_row_bytes:
                message = (
                    f"The row has {literals.size(position, end):,} bytes, which exceeds max_allowed_packet."
                )
                errors = [RowError(position, "too_long", message)]
            else:
                errors = isolate_bad_rows(np.arange(position, end), attempt, self._batch_sizer)
            failures += (replace(item, index=int(rows[item.index])) for item in errors)
            if errors:  # so that most of the next statements are shorter than the distance between bad rows
                gap = (end - position) // (len(errors) + 1)
                self._rows = max(limits.MYSQL_MIN_ROWS, min(self._rows, gap // 3))
            else:
                self._rows = min(limits.MYSQL_STATEMENT_ROWS, self._rows + self._rows // 3)
            position = end
        return failures

    def _failed_row(self, count: int) -> int | None:
        """Return the position of the row at which the last statement failed, if the server reports it."""
        if not self._server.reports_failed_row:
            return None
        with converting_errors():
            self._link.run_statement(_ROW_NUMBER)
            self._link.run_statement(b"SELECT @rowsmith_row")
            number = int(self._link.rows[0][0] or 0)
        return number - 1 if 0 < number <= count else None

    def _on_duplicate(self) -> str:
        """Return the clause that updates the row with the same key in an upsert.

        A row that conflicts in any other unique index must not be updated: a division by zero, an error in
        strict mode, rejects it.
        """
        spec = self.spec
        if spec.mode != "upsert":
            return ""
        keys, entity = spec.key_columns, spec.entity
        known = [set(item) for item in (entity.keys, *entity.uniques) if item]
        if set(keys) not in known:
            raise ConnectorError(
                f"{entity.name} has no unique key of {', '.join(keys) or 'no columns'}.",
                reason="unsupported",
                hint="Choose the columns of its primary key or of a unique index.",
            )
        quoted = DIALECT.quote_name
        sets = [
            f"{quoted(column.name)} = VALUES({quoted(column.name)})"
            for column in spec.columns
            if column.name not in keys
        ]
        first = quoted(keys[0])
        if len(known) > 1:
            condition = " AND ".join(f"{quoted(name)} <=> VALUES({quoted(name)})" for name in keys)
            sets.insert(0, f"{first} = IF({condition}, {first}, 1 DIV 0)")
        return f" ON DUPLICATE KEY UPDATE {', '.join(sets) or f'{first} = {first}'}"

    # --- rows matched by key ---

    def delete(self, batch: pa.RecordBatch) -> WriteResult:
        """See `Target.delete`."""
        return self._run_statements(batch, self._delete)

    def _update(self, columns: Sequence[Column], values: Sequence[str]) -> str:
        pairs = dict(zip((column.name for column in columns), values, strict=True))
        keys = self.spec.key_columns
        setting = ", ".join(
            f"{DIALECT.quote_name(name)} = {value}" for name, value in pairs.items() if name not in keys
        )
        return f"UPDATE {self._table} SET {setting} WHERE {_key_condition(keys, pairs)}"

    def _delete(self, columns: Sequence[Column], values: Sequence[str]) -> str:
        pairs = dict(zip((column.name for column in columns), values, strict=True))
        return f"DELETE FROM {self._table} WHERE {_key_condition(tuple(pairs), pairs)}"

    def _run_statements(self, batch: pa.RecordBatch, statement: Any) -> WriteResult:
        arrays, failures = self._writer.convert(batch)
        columns = self.spec.columns
        literals = [texts(column, array) for column, array in zip(columns, arrays, strict=True)]
        rows = _accepted_rows(batch.num_rows, failures).tolist()
        statements = [statement(columns, [column[row] for column in literals]).encode() for row in rows]
        self._capture.begin(batch)
        position = 0
        with converting_errors():
            self._link.allow_multiple_statements(True)
            try:
                while position < len(rows):
                    end, size = position, 0
                    while (
                        end < len(rows)
                        and end - position < limits.MYSQL_COMMAND_STATEMENTS
                        and size < self._max_bytes
                    ):
                        size += len(statements[end]) + 1
                        end += 1
                    position += self._run_command(statements[position:end], rows[position:end], failures)
            finally:
                if self._link.open:
                    self._link.allow_multiple_statements(False)
        failed = {error.index for error in failures}
        self._capture.record(np.array([row for row in rows if row not in failed], np.int64))
        return WriteResult(sorted(failures, key=lambda failure: failure.index), self._capture.keys())

    def _run_command(self, statements: list[bytes], rows: list[int], failures: list[RowError]) -> int:
        """Run statements up to the first that fails, and return how many have a result."""
        self._link.send_statements(b";".join(statements))
        for index, row in enumerate(rows):
            try:
                matched = self._link.next_row_count()
            except (pymysql.err.Error, OSError) as error:
                rejection = row_rejection(error, self.spec.entity)
                if rejection is None:
                    raise
                failures.append(rejection.error_for(row))
                return index + 1
            if not matched:
                message = f"No such row exists in {self.spec.entity.name}."
                failures.append(RowError(row, "missing_row", message))
        return len(rows)


class _Capture:
    """Returns values that the server generates.

    Uses RETURNING if supported, otherwise counts from the first AUTO_INCREMENT value of a statement: InnoDB
    assigns consecutive values to an INSERT with a known number of rows, in every innodb_autoinc_lock_mode
    (MySQL, "AUTO_INCREMENT Handling in InnoDB").
    """

    def __init__(self, link: MysqlConnection, server: ServerVersion, spec: WriteSpec) -> None:
        self._link, self._writing = link, spec
        self._column_names = [column.name for column in spec.columns]
        self._generated = [name for name in spec.capture if name not in self._column_names]
        self._uses_returning = bool(self._generated) and server.supports_returning and spec.mode != "update"
        self._step = 1
        self._identity = auto_increment_column(spec)
        returned = dict.fromkeys([*self._generated, *([self._identity] if self._identity else [])])
        self.tail = f" RETURNING {sql.column_list(DIALECT, returned)}" if self._uses_returning else ""
        self.first = 0
        """The first AUTO_INCREMENT value of the last statement that generated one."""
        self._batch: pa.RecordBatch | None = None
        self._parts: list[tuple[np.ndarray, pa.RecordBatch]] = []
        self._positions: list[np.ndarray] = []
        if self._generated and not self._uses_returning:
            columns = [spec.entity.column(name) for name in self._generated]
            identity = len(columns) == 1 and columns[0] is not None and columns[0].generated == "identity"
            if not identity or spec.mode != "insert":
                raise ConnectorError(
                    f"This server cannot return {', '.join(self._generated)} for written rows.",
                    reason="unsupported",
                    hint="It returns only AUTO_INCREMENT values of inserted rows. MariaDB 10.5 returns any column.",
                )
            link.run_statement(b"SELECT @@auto_increment_increment")
            self._step = int(link.rows[0][0])

    def begin(self, batch: pa.RecordBatch) -> None:
        """Start over for a new batch."""
        self._batch, self._parts, self._positions, self.first = batch, [], [], 0

    def record(self, rows: np.ndarray) -> None:
        """Record the generated values of a statement that wrote the rows at these positions."""
        if self._writing.capture:
            self._positions.append(rows)
        if self._uses_returning:
            answer = batch_of(self._link.fields, self._link.rows)
            if answer.num_rows != rows.size:
                raise ConnectorError(
                    "The server returned a different number of rows than were sent.", reason="unsupported"
                )
            self._parts.append((rows, answer))
            if self._identity:
                self.first = self.first or int(answer.column(self._identity)[0].as_py())
            return
        first = self._link.first_insert_id
        self.first = self.first or first
        if self._generated:
            ids = first + self._step * np.arange(rows.size, dtype=np.int64)
            self._parts.append((rows, pa.RecordBatch.from_arrays([pa.array(ids)], self._generated)))

    def keys(self) -> pa.RecordBatch | None:
        """See `WriteResult.keys`."""
        if not self._writing.capture or self._batch is None:
            return None
        count = self._batch.num_rows
        positions = np.concatenate(self._positions) if self._positions else np.empty(0, np.int64)
        is_written = np.zeros(count, bool)
        is_written[positions] = True
        order = np.full(count, -1, np.int64)
        table = None
        if self._parts:
            order[np.concatenate([rows for rows, _ in self._parts])] = np.arange(positions.size)
            parts = [part for _, part in self._parts]
            if any(part.schema != parts[0].schema for part in parts):  # then columns become text
                parts = [
                    pa.RecordBatch.from_arrays(
                        [column.cast(pa.string()) for column in part.columns], part.schema.names
                    )
                    for part in parts
                ]
            table = pa.Table.from_batches(parts).combine_chunks()
        indexes = pa.array(order, mask=order < 0)
        arrays = []
        for name in self._writing.capture:
            if name in self._column_names:
                sent = self._batch.column(self._column_names.index(name))
                arrays.append(sent.take(pa.array(np.arange(count), mask=~is_written)))
            elif table is None:
                arrays.append(pa.nulls(count))
            else:
                arrays.append(table.column(name).combine_chunks().take(indexes))
        return pa.RecordBatch.from_arrays(arrays, list(self._writing.capture))


def _accepted_rows(count: int, failures: Sequence[RowError]) -> np.ndarray:
    """Return the positions of rows without an error."""
    accepted = np.ones(count, bool)
    accepted[[error.index for error in failures]] = False
    return np.flatnonzero(accepted)


def _key_condition(keys: Sequence[str], pairs: dict[str, str]) -> str:
    return " AND ".join(f"{DIALECT.quote_name(name)} <=> {pairs[name]}" for name in keys)


class MysqlSession(Session):
    """A connection in autocommit mode. Transactions are opened where needed. `open_another` opens a second
    connection."""

    def __init__(
        self,
        link: MysqlConnection,
        params: ConnectOptions,
        open_another: Callable[[float], MysqlConnection],
        read_only: bool,
    ) -> None:
        self.link, self.connect_options, self.read_only = link, params, read_only
        self._open_another = open_another
        self._target: MysqlTarget | None = None
        with converting_errors():
            self._set_up(link)
            version, self.default_schema, self.packet = self._fetch_rows(
                "SELECT VERSION(), DATABASE(), @@max_allowed_packet"
            )[0]
        self.server = catalog.parse_version(version)

    def _set_up(self, link: MysqlConnection) -> None:
        wait = int(limits.TARGET_LOCK_SECONDS)
        link.run_statement(
            f"SET SESSION sql_mode = '{SQL_MODE}', time_zone = '+00:00', innodb_lock_wait_timeout = {wait}, "
            f"lock_wait_timeout = {wait}, net_write_timeout = {int(limits.TARGET_READER_SECONDS)}".encode()
        )
        for name, value in self.connect_options.options.items():
            literal = value if _PLAIN_OPTION.fullmatch(value) else link.escape(value)
            link.run_statement(f"SET SESSION `{name}` = {literal}".encode())
        if self.read_only:
            link.run_statement(b"SET SESSION TRANSACTION READ ONLY")

    # --- the connection ---

    def _fetch_rows(self, text: str, values: Sequence[Any] = ()) -> tuple[tuple[Any, ...], ...]:
        """Return the rows of a query, as the server wrote them."""
        if values:
            text = text % tuple(self.link.escape(value) for value in values)
        self.link.run_statement(text.encode())
        return self.link.rows

    def close(self) -> None:
        """See `Session.close`."""
        try:
            self.link.close()
        except pymysql.err.Error:
            pass  # already closed

    def cancel(self) -> None:
        """See `Session.cancel`."""
        try:
            other = self._open_another(limits.PUSH_CANCEL_TIMEOUT_SECONDS / 2)
        except ConnectorError:
            self.link.abort()
            return
        try:
            other.set_timeout(limits.PUSH_CANCEL_TIMEOUT_SECONDS / 2)
            other.run_statement(f"KILL QUERY {self.link.connection_id}".encode())
            other.close()
        except (pymysql.err.Error, OSError):
            self.link.abort()

    @contextmanager
    def _read_only(
        self, link: MysqlConnection, seconds: float | None, rows: int | None = None
    ) -> Iterator[None]:
        """Make statements read-only, and limit their time and their rows.

        Uses session variables of the server, because a CREATE would end a read-only transaction and then run.
        """
        variable = "max_statement_time" if self.server.is_mariadb else "max_execution_time"
        time_limit = 0 if seconds is None else seconds if self.server.is_mariadb else int(seconds * 1000)
        row_limit = "DEFAULT" if rows is None else rows
        with converting_errors():
            if not self.read_only:
                link.run_statement(b"SET SESSION TRANSACTION READ ONLY")
            try:
                link.run_statement(
                    f"SET SESSION {variable} = {time_limit}, sql_select_limit = {row_limit}".encode()
                )
                yield
            finally:
                if link.open:
                    link.run_statement(
                        f"SET SESSION {variable} = DEFAULT, sql_select_limit = DEFAULT".encode()
                    )
                    if not self.read_only:
                        link.run_statement(b"SET SESSION TRANSACTION READ WRITE")

    # --- metadata ---

    def metadata(self) -> Metadata:
        """See `Session.metadata`."""
        with self._read_only(self.link, limits.TARGET_QUERY_SECONDS):
            entities = catalog.entities(self._fetch_rows, self.server, self.default_schema)
        return Metadata("mysql", self.server.title, tuple(entities))

    def entity(self, name: str) -> Entity | None:
        """See `Session.entity`."""
        with converting_errors():
            tables = self._fetch_rows(
                "SELECT table_schema, table_name FROM information_schema.tables WHERE LOWER(table_name) = LOWER(%s)"
                " AND table_schema = DATABASE() OR LOWER(CONCAT(table_schema, '.', table_name)) = LOWER(%s)",
                (name, name),
            )
            names = {
                catalog.name_of((schema, table), self.default_schema): (schema, table)
                for schema, table in tables
            }
            if name in names:
                tables = (names[name],)
            entities = [
                entity
                for schema, table in tables[:2]
                for entity in catalog.entities(
                    self._fetch_rows, self.server, self.default_schema, (schema, table)
                )
            ]
        return sql.find_entity(entities, name)

    def check_permission(self) -> str:
        """Return what the account can see, as a message. Raises `ConnectorError` if it sees nothing."""
        with converting_errors():
            where = "= DATABASE()" if self.default_schema else f"NOT IN {catalog.SYSTEM_SCHEMAS}"
            count = int(
                self._fetch_rows(
                    f"SELECT COUNT(*) FROM information_schema.tables WHERE table_schema {where}"
                )[0][0]
            )
            grants = [str(row[0]) for row in self._fetch_rows("SHOW GRANTS")]
        scope = f"the database {self.default_schema}" if self.default_schema else "the server"
        if not count and all(grant.startswith("GRANT USAGE ON") for grant in grants):
            raise ConnectorError(
                f"The account cannot see any table in {scope}.",
                reason="no_permission",
                hint="Ask an administrator to GRANT it SELECT, INSERT, UPDATE and DELETE on the database.",
            )
        return f"{count:,} tables in {scope} are visible."

    def check_sample(self) -> str:
        """Read one row of the first readable table, and return a message."""
        where = "= DATABASE()" if self.default_schema else f"NOT IN {catalog.SYSTEM_SCHEMAS}"
        with converting_errors():
            tables = self._fetch_rows(
                f"SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema {where}"
                " AND table_type = 'BASE TABLE' ORDER BY 1, 2 LIMIT 1"
            )
        if not tables:
            return "No tables yet."
        with self._read_only(self.link, limits.TARGET_QUERY_SECONDS):
            self.link.run_statement(
                f"SELECT * FROM {sql.qualified_name(DIALECT, tables[0])} LIMIT 1".encode()
            )
        return f"Read from {tables[0][1]}."

    # --- reading ---

    def sample(self, entity: Entity, limit: int) -> pa.RecordBatch:
        """See `Session.sample`."""
        names = sql.column_list(DIALECT, (column.name for column in entity.fields)) or "*"
        text = f"SELECT {names} FROM {sql.qualified_name(DIALECT, entity.parts)} LIMIT {int(limit)}"
        with self._unbuffered(text) as (fields, rows):
            return batch_of(fields, sql.take_sample(rows))

    def keys(
        self, entity: Entity, columns: Sequence[str], where: str = "", order: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """See `Session.keys`."""
        names = sql.column_list(DIALECT, columns)
        condition = sql.where_clause("mysql", where)
        condition += sql.order_by_clause(DIALECT, columns, order)
        for batch in self._stream_batches(
            f"SELECT {names} FROM {sql.qualified_name(DIALECT, entity.parts)}{condition}"
        ):
            if batch.num_rows:
                yield batch

    def stream(self, text: str) -> Iterator[pa.RecordBatch]:
        """See `Session.stream`."""
        statement = sql.bind_parameters(text, {}, "%s")[0]
        _check_read_only(statement)
        yield from self._stream_batches(statement)

    def _stream_batches(self, text: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a query. The last batch is empty."""
        with self._unbuffered(text) as (fields, rows):
            for piece in sql.group_rows(rows):
                yield batch_of(fields, piece)
            yield batch_of(fields, [])

    @contextmanager
    def _unbuffered(self, text: str) -> Iterator[tuple[list[Any], Iterator[tuple[Any, ...]]]]:
        """Yield the columns of a query and its rows one by one.

        This uses a separate connection, which is aborted if not all rows are read, because the driver would read
        the rest.
        """
        link = self._open_another(limits.TARGET_CONNECT_SECONDS)
        try:
            with converting_errors():
                self._set_up(link)
                link.run_statement(b"SET SESSION TRANSACTION READ ONLY")
                cursor = link.cursor(pymysql.cursors.SSCursor)
                cursor.execute(text)
                yield link.fields, iter(cursor.fetchone, None)
        finally:
            if not link.close_if_unread():
                link.close()

    def contains(self, entity: Entity, columns: Sequence[str], candidates: pa.RecordBatch) -> pa.BooleanArray:
        """See `Session.contains`. Values are compared as literals, with the column's collation."""
        fields = [entity.column(name) or Column(name, "text", "text") for name in columns]
        missing = [False] * candidates.num_rows
        literals = []
        for column, values in zip(fields, candidates.columns, strict=True):
            fitted, misfits = convert_array(column, values)
            for where, _, _ in misfits:
                missing = [
                    item or bool(wrong) for item, wrong in zip(missing, where.to_pylist(), strict=True)
                ]
            literals.append(texts(column, fitted))
        table, names = (
            sql.qualified_name(DIALECT, entity.parts),
            [DIALECT.quote_name(name) for name in columns],
        )
        queries = [
            f"SELECT {row} FROM DUAL WHERE EXISTS (SELECT 1 FROM {table} WHERE "
            + " AND ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))
            + ")"
            for row, values in enumerate(zip(*literals, strict=True))
            if not missing[row]
        ]
        existing: set[int] = set()
        step = limits.MYSQL_KNOWN_ROWS
        with self._read_only(self.link, limits.TARGET_QUERY_SECONDS):
            for start in range(0, len(queries), step):
                existing.update(self._existing_rows(queries[start : start + step], entity))
        return pa.array([row in existing for row in range(candidates.num_rows)], pa.bool_())

    def _existing_rows(self, queries: list[str], entity: Entity) -> list[int]:
        """Return the numbers that the queries return. A value that does not fit the column's type is not in
        the table."""
        try:
            self.link.run_statement(" UNION ALL ".join(queries).encode())
            return [int(row[0]) for row in self.link.rows]
        except pymysql.err.Error as error:
            if row_rejection(error, entity) is None:
                raise
        half = len(queries) // 2
        return (
            self._existing_rows(queries[:half], entity) + self._existing_rows(queries[half:], entity)
            if half
            else []
        )

    def query(self, text: str, values: Mapping[str, Any], limit: int) -> pa.RecordBatch:
        """See `Session.query`. Runs read-only for at most `limits.TARGET_QUERY_SECONDS`."""
        statement, parameters = sql.bind_parameters(text, values, "%s", doubled_chars="%")
        _check_read_only(statement)
        with self._read_only(self.link, limits.TARGET_QUERY_SECONDS, int(limit)):
            cursor = self.link.cursor(pymysql.cursors.SSCursor)
            try:
                cursor.execute(statement, parameters)
                rows = sql.take_rows(iter(cursor.fetchone, None), int(limit))
            except BaseException:
                self.link.close_if_unread()
                raise
            fields = self.link.fields
            cursor.close()
            return batch_of(fields, rows)

    # --- statements ---

    def execute(self, statement: str) -> None:
        """See `Session.execute`. DDL commits implicitly, so no transaction may be open."""
        self.check_writable()
        if self._target is not None and self._target.is_open:
            raise ConnectorError("A chunk is being written. Wait until its transaction ends.", reason="busy")
        with converting_errors():
            self.link.run_statement(statement.strip().rstrip(";").encode())
            # The statement may have opened a transaction, or changed session variables.
            self.link.run_statement(b"COMMIT")
            self._set_up(self.link)
            if self.default_schema:
                self.link.run_statement(f"USE {DIALECT.quote_name(self.default_schema)}".encode())

    def create(self, name: str, columns: Sequence[Column], keys: Sequence[str]) -> str:
        """See `Session.create`."""
        statement = self.create_statement(name, columns, keys)
        self.execute(statement)
        return statement

    def create_statement(self, name: str, columns: Sequence[Column], keys: Sequence[str]) -> str:
        """See `Session.create_statement`. A name without a dot is in the connection's own database."""
        schema, dot, table = name.partition(".")
        parts = (schema, table) if dot else (name,)
        return f"{sql.create_statement(DIALECT, parts, columns, keys)} ENGINE = InnoDB"

    def target(self, spec: WriteSpec) -> Target:
        """See `Session.target`."""
        self.check_writable()
        entity = spec.entity
        if entity.kind == "view":
            raise ConnectorError(
                f"{entity.name} is a view.", reason="unsupported", hint="Select the underlying table."
            )
        table_name = entity.parts if len(entity.parts) > 1 else (self.default_schema or "", *entity.parts)
        table = sql.qualified_name(DIALECT, entity.parts)
        names = [DIALECT.quote_name(column.name) for column in spec.columns]
        if spec.mode == "update":
            setting = ", ".join(f"{name} = {name}" for name in names)
            statement = f"UPDATE {table} SET {setting} WHERE 1 = 0"
        else:
            statement = (
                f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(['NULL'] * len(names))})"
            )
        with converting_errors():
            rows = self._fetch_rows(
                "SELECT t.engine, e.transactions FROM information_schema.tables t JOIN information_schema.engines e "
                "ON e.engine = t.engine WHERE t.table_schema = %s AND t.table_name = %s",
                table_name,
            )
            if rows and rows[0][1] != "YES":
                raise ConnectorError(
                    f"{entity.name} uses the engine {rows[0][0]}, which does not support transactions.",
                    reason="unsupported",
                    hint=f"Run ALTER TABLE {table} ENGINE = InnoDB.",
                )
            try:  # EXPLAIN checks the privileges for a statement without running it
                self.link.run_statement(f"EXPLAIN {statement}".encode())
            except pymysql.err.Error as error:
                if row_rejection(error, entity) is None:
                    raise
            self._target = MysqlTarget(self.link, self.server, int(self.packet), spec)
        return self._target

    def can_suspend_foreign_keys(self) -> bool:
        """See `Session`: every account may set `foreign_key_checks` for its session."""
        return True

    @contextmanager
    def suspend_foreign_keys(self) -> Iterator[None]:
        """See `Session`."""
        with converting_errors():
            self._fetch_rows("SET SESSION foreign_key_checks = 0")
        try:
            yield
        finally:
            with (
                suppress(ConnectorError),
                converting_errors(),
            ):  # a connection that is gone has no session either
                self._fetch_rows("SET SESSION foreign_key_checks = 1")

    def max_value(self, entity: Entity, column: str) -> int | None:
        """See `Session.max_value`."""
        with converting_errors():
            rows = self._fetch_rows(
                f"SELECT MAX({DIALECT.quote_name(column)}) FROM {sql.qualified_name(DIALECT, entity.parts)}"
            )
        return None if rows[0][0] is None else int(rows[0][0])

    def count(self, entity: Entity) -> int:
        """See `Session.count`."""
        with converting_errors():
            rows = self._fetch_rows(f"SELECT COUNT(*) FROM {sql.qualified_name(DIALECT, entity.parts)}")
        return int(rows[0][0])

    def commit_outcome(self, entity: Entity, commit_token: Mapping[str, Any]) -> bool | None:
        """See `Session.commit_outcome`."""
        return CommitOutcome(self.link, self._fetch_rows).determine(entity, commit_token)


def _check_read_only(statement: str) -> None:
    """Raise `ConnectorError` unless a query only reads. A read-only transaction prevents writing tables, but
    not files."""
    if (
        not _READS.match(statement)
        or sql.EXECUTABLE_COMMENT.search(statement)
        or _INTO_FILE.search(statement)
    ):
        raise ConnectorError(
            "Only queries that read data are allowed.",
            reason="bad_query",
            hint="Start the query with SELECT, WITH, VALUES or SHOW, and remove INTO OUTFILE and /*! ... */.",
        )
