"""Send one table of a push to a database, chunk by chunk. The next chunk is generated and encoded while one
is being sent."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from jobs.lease import Lease
from jobs.pushes.failures import first_failure_error, ledger_entries, table_rejected_error
from webapp import limits
from webapp.connectors.base import ConnectorError, Session, WriteResult
from webapp.connectors.sql import base as sql
from webapp.engine.budget import MemoryBudgetError
from webapp.engine.text import decode_dictionary
from webapp.errors import validation_error
from webapp.extensions import application
from webapp.pushes.services.ledger.write import Chunk, LedgerEntry, LedgerWriter, next_row_numbers
from webapp.pushes.services.planning import PushJob
from webapp.pushes.services.rows import TableRows

_MANY_REJECTED_SHARE = (
    0.1  # chosen: the share of rejected rows above which a fill looks for the columns that cause it
)
UNKNOWN_KEY_MESSAGE = "The key of this row is unknown, so it cannot be located."


@dataclass(frozen=True, slots=True)
class GeneratedRows:
    """The generated rows of a chunk. `numbers` are the ledger's; `sendable` marks those that the batch
    contains. `send_prepared` is the result of `Target.prepare`, if the target has prepared the batch."""

    numbers: np.ndarray
    sendable: np.ndarray
    batch: pa.RecordBatch
    send_prepared: Callable[[], WriteResult] | None = None

    def split(self, start: int, end: int) -> GeneratedRows:
        """Return some of the rows, by their positions in `numbers`."""
        before = int(self.sendable[:start].sum())
        sendable = self.sendable[start:end]
        return GeneratedRows(self.numbers[start:end], sendable, self.batch.slice(before, int(sendable.sum())))


def orphan_reason(table: TableRows) -> str:
    """Return why rows of a table that need the key of another row are not sent."""
    lost = next(iter(table.undelivered_parents().items()), None)
    if lost is None:
        return "Its parent row was not delivered, so there is no key to reference."
    return f'Its column "{lost[0]}" needs a row of "{lost[1]}", and none was delivered.'


def generate_rows(job: PushJob, table_index: int, numbers: np.ndarray) -> GeneratedRows:
    """Generate rows of a table, or only the first ones if all would take too much memory. Rows whose parent
    has no key, or that have none themselves, are left out. Raises validation_error if a single row is too
    large."""
    while True:
        try:
            return _generate_rows_once(job, table_index, numbers)
        except MemoryBudgetError as error:
            if len(numbers) < 2:
                raise validation_error(error.faults) from None
        numbers = numbers[: max(1, len(numbers) // limits.BLOCK_STEP)]


def _generate_rows_once(job: PushJob, table_index: int, numbers: np.ndarray) -> GeneratedRows:
    table = job.tables[table_index]
    rows = (numbers - 1 + table.first_row).astype(np.uint64)
    sendable = np.ones(len(rows), np.bool_)
    if job.push.kind == "undo":
        batch = table.key_batch(rows, job.key_spool)
        for column in batch.columns:
            sendable &= column.is_valid().to_numpy(zero_copy_only=False)
        return GeneratedRows(numbers, sendable, batch if sendable.all() else batch.filter(pa.array(sendable)))
    if table.from_parent or table.references:
        sendable = ~table.orphan_mask(rows, job.key_spool)
    return GeneratedRows(numbers, sendable, table.batch(rows[sendable], job.key_spool))


class ManyRejectedError(Exception):
    """The target rejected many rows of the first chunk of a table; nothing is written about them. `failure` is one of
    them."""

    def __init__(self, failure: LedgerEntry) -> None:
        super().__init__(failure.message)
        self.failure = failure


def canary_count(job: PushJob, table_index: int) -> int:
    """Return how many rows of a table are sent first as a canary; 0 for none."""
    return 0 if table_index else job.canary_rows


def raise_if_stopping(
    job: PushJob, table_index: int, chunk: Chunk, failures: Sequence[LedgerEntry], outcome: str
) -> None:
    """Raise the error that ends the push if rows of the canary failed, or any row of a push that stops on errors.
    `outcome`: what happened to the rows, for the message."""
    if not failures:
        return
    name, canary = job.tables[table_index].name, canary_count(job, table_index)
    if canary and chunk.last <= canary:
        text = f"{len(failures):,} of the first {canary:,} rows of {name} were {outcome}"
        raise first_failure_error(name, failures[0], text)
    if job.stops_on_error:
        raise first_failure_error(name, failures[0], f"Row {failures[0].row:,} of {name} was {outcome}")


class DatabaseSender:
    """Sends one table through one session. Raises `ConnectorError` (including `Lost`), `Interrupted`, and
    `ApiError` if the push must end. `chunks_to_repeat`: the number of chunks that an earlier session may have sent;
    `trial`: raise `ManyRejectedError` if the target rejects many rows of the first chunk."""

    def __init__(
        self,
        work: Lease,
        ledger: LedgerWriter,
        job: PushJob,
        session: Session,
        table_index: int,
        chunks_to_repeat: int = 0,
        *,
        trial: bool = False,
    ) -> None:
        self.work, self.ledger, self.job, self.table_index = work, ledger, job, table_index
        self.table = job.tables[table_index]
        self.is_undo = job.push.kind == "undo"
        create_spec = self.table.key_write_spec if self.is_undo else self.table.write_spec
        writing = create_spec(session)
        self.entity = writing.entity
        self._new_target = partial(session.target, writing)
        self._chunks_to_repeat = 0 if job.has_transactions else chunks_to_repeat
        self.target = session.target(replace(writing, is_retry=self._chunks_to_repeat > 0))
        self._last_failure: LedgerEntry | None = None
        self._same_failures: int | None = (
            0 if job.stops_when_all_fail and ledger.processed_range(table_index) is None else None
        )
        self._trial = trial
        self._logged: set[str] = set()
        self._max_rows = limits.PUSH_CHUNK_ROWS  # reduced if this many rows take too much memory
        self._app = application()

    def send_all(self) -> int:
        """Send every row that has no outcome. Return the number of chunks."""
        sent = 0
        try:
            with ThreadPoolExecutor(1, thread_name_prefix="rows") as pool:
                following = self._generate_next(pool, self.ledger.processed_range(self.table_index))
                while following is not None:
                    numbers, future = following
                    generated = future.result()
                    if len(generated.numbers) < len(numbers):
                        self._max_rows = len(generated.numbers)
                    low, high = int(generated.numbers.min()), int(generated.numbers.max())
                    self.target.begin()  # before the other thread competes for the interpreter
                    following = self._generate_next(pool, (low, high))
                    self._send(generated)
                    sent += 1
                    if sent == self._chunks_to_repeat:
                        self.target = self._new_target()
        finally:
            self.target.rollback()
        return sent

    # --- Generating ---

    def _generate_next(
        self, pool: ThreadPoolExecutor, processed_range: tuple[int, int] | None
    ) -> tuple[np.ndarray, Future[GeneratedRows]] | None:
        limit = self._max_rows
        if processed_range is None:
            limit = canary_count(self.job, self.table_index) or min(
                limits.PUSH_FIRST_ROWS, limits.PUSH_CHUNK_ROWS
            )
        numbers = next_row_numbers(self.job.push, self.table_index, processed_range, limit)
        return (numbers, pool.submit(self._generate, numbers)) if len(numbers) else None

    def _generate(self, numbers: np.ndarray) -> GeneratedRows:
        with self._app.app_context():
            generated = generate_rows(self.job, self.table_index, numbers)
        if self.is_undo or not self.job.has_transactions:
            return generated  # without transactions, the target may be replaced in the meantime
        return replace(generated, send_prepared=self.target.prepare(generated.batch))

    # --- Sending ---

    def _send(self, generated: GeneratedRows) -> None:
        """Send one chunk, from begin to commit."""
        self.work.check()
        began = time.monotonic()
        self.target.begin()
        result = (
            self.target.delete(generated.batch)
            if self.is_undo
            else (generated.send_prepared or partial(self.target.send, generated.batch))()
        )
        self.work.check()  # errors of a cancelled statement are not the target's response
        failures = self._failed_rows(generated, result.failures, began)
        if self._trial and len(failures) >= max(1, len(generated.numbers) * _MANY_REJECTED_SHARE):
            raise ManyRejectedError(failures[0])
        self._trial = False
        if (
            failures and self.job.stops_on_error and self.job.has_transactions
        ):  # otherwise nothing can be rolled back
            size = 1 + int(np.flatnonzero(generated.numbers == failures[0].row)[0])
            if size < len(generated.numbers):
                self.target.rollback()
                self._send(generated.split(0, size))
                return
        if not self.is_undo:
            self._store_keys(generated, result.keys)
        low, high = int(generated.numbers.min()), int(generated.numbers.max())
        chunk = Chunk(self.table_index, low, high, len(generated.numbers), len(failures))
        self._log_outcomes(chunk, failures)
        if len(failures) == len(generated.numbers):
            self.target.rollback()
            self.ledger.write_rejected_chunk(chunk, failures)
        else:
            self.ledger.write_intent(replace(chunk, proof=self.target.commit_token()), failures)
            try:
                self.target.commit()
            except ConnectorError as error:
                if error.reason != "deferred":
                    raise
                # The target rejected the chunk at its commit: send it again with constraints checked immediately, or
                # in halves.
                self.target.rollback()
                self.ledger.discard_chunk()
                if self.target.check_constraints_immediately():
                    self._send(generated.split(0, len(generated.numbers)))
                else:
                    self._send_halves(generated, error)
                return
            self.ledger.mark_committed()
        self._check_stop_conditions(chunk, failures)

    def _send_halves(self, generated: GeneratedRows, error: ConnectorError) -> None:
        """Split a chunk in halves to find the rows that violate a constraint that is only checked at the commit, which
        names no row."""
        count = len(generated.numbers)
        if count > 1:
            self._send(generated.split(0, count // 2))
            self._send(generated.split(count // 2, count))
            return
        number = int(generated.numbers[0])
        native = str(error.details.get("sqlstate") or "")
        code = sql.reason_of(native) if native else "refused"
        failures = [LedgerEntry(number, code, error.message[: limits.PUSH_MESSAGE_CHARS], native)]
        chunk = Chunk(self.table_index, number, number, 1, 1)
        self._log_outcomes(chunk, failures)
        self.ledger.write_rejected_chunk(chunk, failures)
        self._check_stop_conditions(chunk, failures)

    def _failed_rows(
        self, generated: GeneratedRows, errors: Sequence[Any], began: float
    ) -> list[LedgerEntry]:
        """Return the rows that were not delivered, in the order of sending."""
        ms = round((time.monotonic() - began) * 1000)
        numbers = generated.numbers[generated.sendable].tolist()
        found = ledger_entries(
            errors,
            numbers,
            generated.batch,
            key_columns=self.table.key_columns,
            sensitive=self.table.sensitive,
            ms=ms,
        )
        if self.is_undo and self.table.lookup_columns != self.table.key_columns:
            # The row was deleted together with one of the same values.
            found = [item for item in found if item.code != "missing_row"]
        orphans = generated.numbers[~generated.sendable].tolist()
        if orphans:
            code = "missing_row" if self.is_undo else "foreign_key"
            text = UNKNOWN_KEY_MESSAGE if self.is_undo else orphan_reason(self.table)
            found += [LedgerEntry(number, code, text) for number in orphans]
        return sorted(found, key=lambda item: item.row, reverse=self.is_undo)

    def _store_keys(self, generated: GeneratedRows, captured: pa.RecordBatch | None) -> None:
        """Store the keys that the target generated, and those that refer to rows of other tables as they were sent."""
        keys: dict[str, pa.Array] = {
            name: decode_dictionary(generated.batch.column(name)) for name in self.table.stored_columns
        }
        if captured is not None and self.table.captured_columns:
            keys |= dict(zip(captured.schema.names, captured.columns, strict=True))
        if keys:
            rows = (generated.numbers[generated.sendable] - 1 + self.table.first_row).astype(np.uint64)
            batch = pa.RecordBatch.from_arrays(list(keys.values()), names=list(keys))
            self.job.key_spool.put(self.table_index, rows, batch, self.work.id, self.work.epoch)

    # --- Log lines and stopping ---

    def _log_outcomes(self, chunk: Chunk, failures: Sequence[LedgerEntry]) -> None:
        for item in failures:
            if item.code not in self._logged:
                self._logged.add(item.code)
                native = f" ({item.native})" if item.native else ""
                self.ledger.log(f"{self.table.name}, row {item.row}: {item.code}{native}: {item.message}")
        done = f"{self.table.name}: rows {chunk.first:,} to {chunk.last:,} of {self.table.count:,}"
        failed = f", {chunk.failed:,} of them rejected" if chunk.failed else ""
        self.ledger.log_throttled(lambda: done + failed)

    def _check_stop_conditions(self, chunk: Chunk, failures: Sequence[LedgerEntry]) -> None:
        """Decide whether the push continues after this chunk, which is in the ledger already."""
        raise_if_stopping(self.job, self.table_index, chunk, failures, "rejected")
        if self._same_failures is None:
            return
        kinds = {(item.code, item.native, item.column) for item in failures}
        if self._last_failure is not None:
            kinds.add((self._last_failure.code, self._last_failure.native, self._last_failure.column))
        if chunk.failed < chunk.rows or len(kinds) > 1:
            self._same_failures = None
            return
        self._last_failure, self._same_failures = failures[0], self._same_failures + chunk.rows
        if self._same_failures >= limits.PUSH_SAME_FAILURES:
            raise table_rejected_error(self.table.name, failures[0], self._same_failures)
