"""Rows into a MySQL or MariaDB table: INSERT statements of many rows of literals.

InnoDB undoes a refused statement as a whole, so a chunk needs no savepoints: a statement is the piece that stands or
falls. The bad row is the one that MariaDB names (GET DIAGNOSTICS ... ROW_NUMBER), which is then sent by itself to make
sure, or it is found by halving. Statements become shorter where rows are refused, and longer again where they are
not. LOAD DATA LOCAL would be faster yet, but it turns what is refused into warnings, and so cuts and skips silently.

Rows that are found by their keys are statements of their own, many in one command; each says how many rows it has
found, and the server stops at the first one that fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pymysql

from webapp import limits
from webapp.connectors import sql
from webapp.connectors.base import ConnectorError, Failure, Sent, Target, Writing
from webapp.connectors.mysql_catalog import Server
from webapp.connectors.mysql_errors import conversing, converted, refusal
from webapp.connectors.mysql_link import Link
from webapp.connectors.mysql_proof import Proving, counted
from webapp.connectors.mysql_results import batch_of
from webapp.connectors.mysql_values import DIALECT, Literals, Writer, texts
from webapp.connectors.shape import Column
from webapp.connectors.sieve import Pace, Refusal, sift

_ROW_NUMBER: Final = b"GET DIAGNOSTICS CONDITION 1 @rowsmith_row = ROW_NUMBER"
_ALIEN: Final = (
    1365  # division by zero: how an upsert's statement says that another unique key stands in the way
)


class MysqlTarget(Target):
    """See `Target`."""

    def __init__(self, link: Link, server: Server, packet: int, writing: Writing) -> None:
        _check(writing)
        self.writing = writing
        self._link, self._server = link, server
        self._writer = Writer(writing.columns)
        self._most = min(packet, limits.MYSQL_STATEMENT_BYTES) - limits.MYSQL_STATEMENT_MARGIN
        self._longest = packet - limits.MYSQL_STATEMENT_MARGIN
        self._rows = limits.MYSQL_STATEMENT_ROWS
        self._pace = Pace(limits.MYSQL_STATEMENT_ROWS, limits.MYSQL_STATEMENT_ROWS)
        self._table = sql.qualified(DIALECT, writing.entity.parts)
        self._names = [DIALECT.quoted(column.name) for column in writing.columns]
        self._head = f"INSERT INTO {self._table} ({', '.join(self._names)}) VALUES ".encode()
        self._capture = _Capture(link, server, writing)
        self._tail = (self._on_duplicate() + self._capture.tail).encode()
        self._proving = Proving(link, writing)
        self.is_open = False

    # --- transactions ---

    def begin(self) -> None:
        """See `Target.begin`."""
        if self.is_open:
            return
        with conversing():
            self._link.write(b"START TRANSACTION")
        self._proving.begin()
        self.is_open = True

    def proof(self) -> dict[str, Any]:
        """See `Target.proof`: this connection, and keys of rows that it has inserted."""
        with conversing():
            return self._proving.proof()

    def commit(self) -> None:
        """See `Target.commit`."""
        self.is_open = False
        with conversing():
            self._link.write(b"COMMIT")

    def rollback(self) -> None:
        """See `Target.rollback`."""
        self.is_open = False
        try:
            if self._link.open:
                self._link.write(b"ROLLBACK")
        except (pymysql.err.Error, OSError):
            pass  # gone, and the transaction with it

    # --- rows ---

    def statements(self, batch: pa.RecordBatch) -> list[str]:
        """See `Target.statements`."""
        return sql.statements(DIALECT, self.writing, batch)

    def send(self, batch: pa.RecordBatch) -> Sent:
        """See `Target.send`."""
        return self.prepare(batch)()

    def prepare(self, batch: pa.RecordBatch) -> Callable[[], Sent]:
        """See `Target.prepare`: the rows of an INSERT are written as literals."""
        if self.writing.mode == "update":
            return partial(self._one_by_one, batch, self._update)
        arrays, failures = self._writer.fit(batch)
        rows = _others(batch.num_rows, failures)
        if failures:
            arrays = [array.take(pa.array(rows)) for array in arrays]
        literals = self._writer.literals(arrays) if rows.size else None
        return partial(self._send, batch, rows, literals, failures)

    def _send(
        self, batch: pa.RecordBatch, rows: np.ndarray, literals: Literals | None, failures: list[Failure]
    ) -> Sent:
        self._capture.begin(batch)
        if literals is not None:
            refused = self._insert(literals, rows)
            failures += refused
            if self.writing.mode == "insert":
                bad = {one.index for one in refused}
                self._proving.wrote(
                    batch, rows if not bad else rows[~np.isin(rows, list(bad))], self._capture.first
                )
        return Sent(sorted(failures, key=lambda one: one.index), self._capture.keys())

    def _insert(self, literals: Literals, rows: np.ndarray) -> list[Failure]:
        """`rows[i]` is the batch's place of the literals' row `i`. Returns the rows that were refused."""

        def attempt(piece: np.ndarray) -> Refusal | None:
            return self._attempt(literals, int(piece[0]), int(piece[-1]) + 1, rows)

        failures: list[Failure] = []
        at = 0
        while at < rows.size:
            end = literals.cut(at, min(rows.size, at + self._rows), self._most)
            if end == at + 1 and literals.size(at, end) > self._longest:
                message = f"The row takes {literals.size(at, end):,} bytes; max_allowed_packet is the most."
                found = [Failure(at, "too_long", message)]
            else:
                found = sift(np.arange(at, end), attempt, self._pace)
            failures += (replace(one, index=int(rows[one.index])) for one in found)
            if found:  # most of the next statements are then shorter than the way to the next bad row
                gap = (end - at) // (len(found) + 1)
                self._rows = max(limits.MYSQL_LEAST_ROWS, min(self._rows, gap // 3))
            else:
                self._rows = min(limits.MYSQL_STATEMENT_ROWS, self._rows + self._rows // 3)
            at = end
        return failures

    def _attempt(self, literals: Literals, start: int, end: int, rows: np.ndarray) -> Refusal | None:
        statement = b"".join((self._head, literals.of(start, end), self._tail))
        try:
            self._link.write(statement)
        except (pymysql.err.Error, OSError) as error:
            refused = refusal(error, self.writing.entity)
            if refused is None:
                raise converted(error) from error
            if self.writing.mode == "upsert" and refused.native == str(_ALIEN):
                message = "A row with other keys has the same value in another unique index."
                refused = replace(refused, reason="unique", message=message)
            return refused if end - start == 1 else replace(refused, suspect=self._suspect(end - start))
        self._capture.took(rows[start:end])
        return None

    def _suspect(self, count: int) -> int | None:
        """The place of the row that the last statement stumbled over, as the server has it."""
        if not self._server.names_rows:
            return None
        with conversing():
            self._link.write(_ROW_NUMBER)
            self._link.write(b"SELECT @rowsmith_row")
            found = int(self._link.rows[0][0] or 0)
        return found - 1 if 0 < found <= count else None

    def _on_duplicate(self) -> str:
        """What an upsert does with a row whose key is there. A row that was found by any other unique index is not
        the one that was meant: dividing by zero, an error in strict mode, refuses it."""
        writing = self.writing
        if writing.mode != "upsert":
            return ""
        keys, entity = writing.key_columns, writing.entity
        known = [set(one) for one in (entity.keys, *entity.uniques) if one]
        if set(keys) not in known:
            raise ConnectorError(
                f"{entity.name} has no unique key of {', '.join(keys) or 'no columns'}.",
                reason="unsupported",
                hint="Choose the columns of its primary key or of a unique index.",
            )
        quoted = DIALECT.quoted
        sets = [
            f"{quoted(one.name)} = VALUES({quoted(one.name)})"
            for one in writing.columns
            if one.name not in keys
        ]
        first = quoted(keys[0])
        if len(known) > 1:
            same = " AND ".join(f"{quoted(name)} <=> VALUES({quoted(name)})" for name in keys)
            sets.insert(0, f"{first} = IF({same}, {first}, 1 DIV 0)")
        return f" ON DUPLICATE KEY UPDATE {', '.join(sets) or f'{first} = {first}'}"

    # --- rows found by their keys ---

    def delete(self, batch: pa.RecordBatch) -> Sent:
        """See `Target.delete`."""
        return self._one_by_one(batch, self._delete)

    def _update(self, columns: Sequence[Column], values: Sequence[str]) -> str:
        pairs = dict(zip((column.name for column in columns), values, strict=True))
        keys = self.writing.key_columns
        setting = ", ".join(
            f"{DIALECT.quoted(name)} = {value}" for name, value in pairs.items() if name not in keys
        )
        return f"UPDATE {self._table} SET {setting} WHERE {_found(keys, pairs)}"

    def _delete(self, columns: Sequence[Column], values: Sequence[str]) -> str:
        pairs = dict(zip((column.name for column in columns), values, strict=True))
        return f"DELETE FROM {self._table} WHERE {_found(tuple(pairs), pairs)}"

    def _one_by_one(self, batch: pa.RecordBatch, statement: Any) -> Sent:
        arrays, failures = self._writer.fit(batch)
        columns = self.writing.columns
        literals = [texts(column, array) for column, array in zip(columns, arrays, strict=True)]
        rows = _others(batch.num_rows, failures).tolist()
        made = [statement(columns, [column[row] for column in literals]).encode() for row in rows]
        self._capture.begin(batch)
        at = 0
        with conversing():
            self._link.several(True)
            try:
                while at < len(rows):
                    end, size = at, 0
                    while (
                        end < len(rows) and end - at < limits.MYSQL_COMMAND_STATEMENTS and size < self._most
                    ):
                        size += len(made[end]) + 1
                        end += 1
                    at += self._answers(made[at:end], rows[at:end], failures)
            finally:
                if self._link.open:
                    self._link.several(False)
        failed = {one.index for one in failures}
        self._capture.took(np.array([row for row in rows if row not in failed], np.int64))
        return Sent(sorted(failures, key=lambda one: one.index), self._capture.keys())

    def _answers(self, statements: list[bytes], rows: list[int], failures: list[Failure]) -> int:
        """Carries out statements up to the first that fails, and returns how many have their answer."""
        self._link.hand_over(b";".join(statements))
        for place, row in enumerate(rows):
            try:
                found = self._link.next_answer()
            except (pymysql.err.Error, OSError) as error:
                refused = refusal(error, self.writing.entity)
                if refused is None:
                    raise
                failures.append(refused.of(row))
                return place + 1
            if not found:
                message = f"There is no such row in {self.writing.entity.name}."
                failures.append(Failure(row, "missing_row", message))
        return len(rows)


def _check(writing: Writing) -> None:
    names = [column.name for column in writing.columns]
    if writing.mode == "update" and not set(writing.key_columns) < set(names):
        raise ConnectorError(
            "An update needs the columns by which rows are found, and others to change.",
            reason="unsupported",
            hint="Map both.",
        )
    if not names:
        raise ConnectorError("No column is written.", reason="unsupported", hint="Map one at least.")


class _Capture:
    """Values that the server makes, brought back: by RETURNING where it is there, else by counting from the first
    AUTO_INCREMENT value of a statement. InnoDB gives an INSERT with known rows consecutive values, in every
    innodb_autoinc_lock_mode (MySQL, "AUTO_INCREMENT Handling in InnoDB")."""

    def __init__(self, link: Link, server: Server, writing: Writing) -> None:
        self._link, self._writing = link, writing
        self._sent = [column.name for column in writing.columns]
        self._wanted = [name for name in writing.capture if name not in self._sent]
        self._returns = bool(self._wanted) and server.returns and writing.mode != "update"
        self._step = 1
        self._counted = counted(writing)
        returned = dict.fromkeys([*self._wanted, *([self._counted] if self._counted else [])])
        self.tail = f" RETURNING {sql.listed(DIALECT, returned)}" if self._returns else ""
        self.first = 0
        """The first AUTO_INCREMENT value of the last statement that made one."""
        self._batch: pa.RecordBatch | None = None
        self._parts: list[tuple[np.ndarray, pa.RecordBatch]] = []
        self._taken: list[np.ndarray] = []
        if self._wanted and not self._returns:
            self._prepare()

    def _prepare(self) -> None:
        columns = [self._writing.entity.column(name) for name in self._wanted]
        counted = len(columns) == 1 and columns[0] is not None and columns[0].generated == "identity"
        if not counted or self._writing.mode != "insert":
            raise ConnectorError(
                f"This server cannot bring back {', '.join(self._wanted)} of rows that are written.",
                reason="unsupported",
                hint="Of an INSERT it tells AUTO_INCREMENT values only; MariaDB 10.5 tells all (RETURNING).",
            )
        self._link.write(b"SELECT @@auto_increment_increment")
        self._step = int(self._link.rows[0][0])

    def begin(self, batch: pa.RecordBatch) -> None:
        """Before the rows of a batch are written."""
        self._batch, self._parts, self._taken, self.first = batch, [], [], 0

    def took(self, rows: np.ndarray) -> None:
        """A statement with these places of the batch was carried out just now."""
        if self._writing.capture:
            self._taken.append(rows)
        if self._returns:
            answer = batch_of(self._link.fields, self._link.rows)
            if answer.num_rows != rows.size:
                raise ConnectorError(
                    "The server brought back another number of rows than it was sent.", reason="unsupported"
                )
            self._parts.append((rows, answer))
            if self._counted:
                self.first = self.first or int(answer.column(self._counted)[0].as_py())
            return
        first = self._link.first_id
        self.first = self.first or first
        if self._wanted:
            ids = first + self._step * np.arange(rows.size, dtype=np.int64)
            self._parts.append((rows, pa.RecordBatch.from_arrays([pa.array(ids)], self._wanted)))

    def keys(self) -> pa.RecordBatch | None:
        """See `Sent.keys`."""
        if not self._writing.capture or self._batch is None:
            return None
        count = self._batch.num_rows
        taken = np.concatenate(self._taken) if self._taken else np.empty(0, np.int64)
        there = np.zeros(count, bool)
        there[taken] = True
        order = np.full(count, -1, np.int64)
        made = None
        if self._parts:
            order[np.concatenate([rows for rows, _ in self._parts])] = np.arange(taken.size)
            made = pa.Table.from_batches(_alike([part for _, part in self._parts])).combine_chunks()
        places = pa.array(order, mask=order < 0)
        arrays = []
        for name in self._writing.capture:
            if name in self._sent:
                sent = self._batch.column(self._sent.index(name))
                arrays.append(sent.take(pa.array(np.arange(count), mask=~there)))
            elif made is None:
                arrays.append(pa.nulls(count))
            else:
                arrays.append(made.column(name).combine_chunks().take(places))
        return pa.RecordBatch.from_arrays(arrays, list(self._writing.capture))


def _alike(parts: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Parts of one schema: text where their types differ."""
    if all(part.schema == parts[0].schema for part in parts):
        return parts
    return [
        pa.RecordBatch.from_arrays([column.cast(pa.string()) for column in part.columns], part.schema.names)
        for part in parts
    ]


def _others(count: int, failures: Sequence[Failure]) -> np.ndarray:
    """The places of the rows that have no failure."""
    there = np.ones(count, bool)
    there[[one.index for one in failures]] = False
    return np.flatnonzero(there)


def _found(keys: Sequence[str], pairs: dict[str, str]) -> str:
    return " AND ".join(f"{DIALECT.quoted(name)} <=> {pairs[name]}" for name in keys)
