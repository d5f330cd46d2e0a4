"""Send one table of a push over HTTP: requests with one row or a batch, several in parallel, one chunk at a
time.

Requests cannot be rolled back, so the intent of a chunk is in the ledger before its first request. If a
worker dies, the chunk is in doubt: its rows become unknown, or are sent again if the target treats repeated
requests as one.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import groupby
from typing import Any, Final

import numpy as np
import pyarrow as pa

from jobs.lease import Lease, Released
from jobs.pushes import wait
from jobs.pushes.failures import first_failure_error, redact_all, redact_each, row_keys, table_rejected_error
from jobs.pushes.table import (
    UNKNOWN_KEY_MESSAGE,
    GeneratedRows,
    canary_count,
    generate_rows,
    orphan_reason,
    raise_if_stopping,
)
from webapp import limits
from webapp.connectors.base import ConnectorError
from webapp.connectors.http.channel import LOCATION, Channel, RowBatch, RowOutcome
from webapp.extensions import application
from webapp.pushes.services.ledger.write import (
    NO_TOKEN,
    UNKNOWN,
    Chunk,
    LedgerEntry,
    LedgerWriter,
    next_row_numbers,
)
from webapp.pushes.services.planning import PushJob

_INT64: Final = range(-(2**63), 2**63)
IN_DOUBT_MESSAGE: Final = (
    "It is not known whether this row was delivered, because the worker was lost while it was being sent."
)
NOT_SENT_MESSAGE: Final = "The row was not sent because no OAuth token could be fetched for it."


class TargetUnavailable(ConnectorError):
    """The target is unavailable: it cannot be reached or does not respond in time."""

    def __init__(self, outcome: RowOutcome) -> None:
        super().__init__(outcome.message, reason=outcome.reason, transient=True)


class LeaseSendControl:
    """Checks the lease for the sender. A worker that is stopping starts no further rows. Rows in progress, with their
    retries, may finish within PUSH_DRAIN_SECONDS."""

    def __init__(self, work: Lease) -> None:
        self._work = work
        self._app = application()
        self._drain_until = float("inf")

    def raise_if_stopped(self) -> None:
        """Raise `Interrupted` if no further row may be started."""
        with self._app.app_context():  # an expired lease is checked in the database
            self._work.check()

    def wait(self, seconds: float) -> None:
        """Wait, or raise `Interrupted`."""
        until, pause = time.monotonic() + seconds, threading.Event()
        while True:
            try:
                self.raise_if_stopped()
            except Released:
                now = time.monotonic()
                self._drain_until = min(self._drain_until, now + limits.PUSH_DRAIN_SECONDS)
                if now >= self._drain_until:
                    raise
            left = until - time.monotonic()
            if left <= 0:
                return
            pause.wait(min(left, wait.POLL_SECONDS))


class HttpSender:
    """Sends one table through one channel. Raises `ConnectorError`, `Interrupted`, and `ApiError` if the push
    must end. `resent` is a chunk that a lost worker may have sent. `probing`: the target was unavailable, so
    send a single row first."""

    def __init__(
        self,
        work: Lease,
        ledger: LedgerWriter,
        job: PushJob,
        channel: Channel,
        table_index: int,
        resent: Chunk | None = None,
        *,
        probing: bool = False,
    ) -> None:
        self.work, self.ledger, self.job, self.table_index = work, ledger, job, table_index
        self.table = job.tables[table_index]
        self.is_undo = job.push.kind == "undo"
        writing = self.table.key_write_spec(channel) if self.is_undo else self.table.write_spec(channel)
        control = LeaseSendControl(work)
        self.sending = channel.create_sender(writing, control)
        self._probing = probing and not self.sending.is_single_request
        self._resent = resent if resent is not None and resent.table == table_index else None
        self._resending = (
            channel.create_sender(replace(writing, is_retry=True), control) if self._resent else self.sending
        )
        self._app = application()
        self._last_failure: LedgerEntry | None = None
        self._same_failures: int | None = 0 if ledger.processed_range(table_index) is None else None
        self._logged: set[tuple[str, int | None]] = set()
        self._logged_columns: set[str] = set()
        # Reduced if this many rows take too much memory.
        self._max_rows = max(self.sending.chunk_rows, limits.HTTP_BLOCK_ROWS)

    def send_all(self) -> None:
        """Send every row that has no outcome. The next rows are generated while others are being sent."""
        self._send_without_token()
        with ThreadPoolExecutor(1, thread_name_prefix="rows") as pool:
            following = self._generate_next(pool, self.ledger.processed_range(self.table_index))
            while following is not None:
                numbers, future = following
                generated = future.result()
                if len(generated.numbers) < len(numbers):
                    self._max_rows = len(generated.numbers)
                following = self._generate_next(
                    pool, (int(generated.numbers.min()), int(generated.numbers.max()))
                )
                for start, end in self._chunk_bounds(len(generated.numbers)):
                    left = generated.split(start, end)
                    while len(
                        left.numbers
                    ):  # the error that stopped a chunk has ended the push or is resolved
                        left = self._send(left)

    # --- Generating ---

    def _generate_next(
        self, pool: ThreadPoolExecutor, processed_range: tuple[int, int] | None
    ) -> tuple[np.ndarray, Future[GeneratedRows]] | None:
        numbers = next_row_numbers(self.job.push, self.table_index, processed_range, self._max_rows)
        return (numbers, pool.submit(self._generate, numbers)) if len(numbers) else None

    def _chunk_bounds(self, count: int) -> Iterable[tuple[int, int]]:
        """Split rows into chunks. The rows of the canary, or the single probe row, come first."""
        first = (
            canary_count(self.job, self.table_index)
            if self.ledger.processed_range(self.table_index) is None
            else 0
        )
        if self._probing:
            first, self._probing = 1, False
        starts = [0, *range(first, count, self.sending.chunk_rows)] if 0 < first < count else None
        starts = starts or list(range(0, count, self.sending.chunk_rows))
        return zip(starts, [*starts[1:], count], strict=True)

    def _generate(self, numbers: np.ndarray) -> GeneratedRows:
        with self._app.app_context():
            return generate_rows(self.job, self.table_index, numbers)

    # --- Sending ---

    def _send(self, generated: GeneratedRows) -> GeneratedRows:
        """Send one chunk, from intent to outcome. Return the rows that remain because it was stopped early."""
        self.work.check()
        sendable = generated.numbers[generated.sendable]
        proof = {"keyed": not self.is_undo, "repeatable": self.is_undo or self.sending.is_idempotent}
        chunk = self._chunk(generated.numbers, [], proof)
        rows = self._rows(generated, sendable)
        # Rows that may have been sent before may already exist in the target, or be deleted.
        resent = self._resent
        was_sent = resent is not None and resent.first <= chunk.last and chunk.first <= resent.last
        sending, outcomes = self._resending if was_sent else self.sending, []
        self.ledger.write_intent(chunk, [])
        try:
            if len(sendable):
                outcomes = (
                    sending.delete(rows) if self.is_undo else sending.send(rows, self.job.stops_on_error)
                )
        except ConnectorError:
            self.ledger.discard_chunk()
            raise
        outcomes, unavailable = _split_unavailable(outcomes)
        started = generated.numbers
        if len(outcomes) != len(sendable):
            # Up to the last row that was started.
            last = (
                int(np.flatnonzero(generated.numbers == sendable[len(outcomes) - 1])[0]) + 1
                if outcomes
                else 0
            )
            started = generated.numbers[:last]
        entries = self._ledger_entries(generated, started, rows.keys, outcomes)
        if self.table.captured_columns and not self.is_undo:
            self._store_keys(sendable[: len(outcomes)], outcomes)
        done = self._chunk(started, entries, proof) if len(started) else replace(chunk, rows=0)
        self.ledger.mark_committed(done, entries)
        self._log_outcomes(done, started, entries)
        self._check_stop_conditions(done, [item for item in entries if not _has_no_token(item)])
        if unavailable is not None:
            self.ledger.flush()
            if self.ledger.processed_count < self.ledger.push.total:
                raise TargetUnavailable(unavailable)
        if any(_has_no_token(item) for item in entries):
            self._send_without_token()
        return generated.split(len(started), len(generated.numbers))

    def _send_without_token(self) -> None:
        """Send the rows that could not be sent because there was no token for them although later rows were sent: a
        target rejected the previous token with 401, and the token endpoint was unavailable.

        They are unknown while they are sent, and fail again if they are not sent. Raises `ConnectorError` while there
        is no token.
        """
        if self.is_undo:
            return  # a further undo deletes the rows
        self.ledger.flush()
        while numbers := self.ledger.rows_without_token(self.table_index, self.sending.chunk_rows):
            self.work.check()
            generated = generate_rows(self.job, self.table_index, np.array(numbers, np.int64))
            sendable = generated.numbers[generated.sendable]
            rows = self._rows(generated, sendable)
            in_doubt = [
                LedgerEntry(number, UNKNOWN, IN_DOUBT_MESSAGE, key, attempts=0, state="unknown")
                for number, key in zip(sendable.tolist(), rows.keys, strict=True)
            ]
            self.ledger.replace_outcomes(self.table_index, in_doubt)
            row_outcomes: list[RowOutcome] = []
            try:
                if len(sendable):
                    row_outcomes = self.sending.send(rows, self.job.stops_on_error)
            except ConnectorError as error:
                self.ledger.replace_outcomes(
                    self.table_index, _token_failures(sendable.tolist(), error.message)
                )
                raise
            row_outcomes, unavailable = _split_unavailable(row_outcomes)
            if self.table.captured_columns:
                self._store_keys(sendable[: len(row_outcomes)], row_outcomes)
            exceptions = {
                exception.row: exception
                for exception in self._ledger_entries(generated, generated.numbers, rows.keys, row_outcomes)
            }
            sent = sendable[: len(row_outcomes)].tolist()
            outcomes = [
                exceptions.pop(number)
                if number in exceptions
                else LedgerEntry(
                    number, "", "", ms=outcome.ms, status_code=outcome.status_code, state="delivered"
                )
                for number, outcome in zip(sent, row_outcomes, strict=True)
            ]
            outcomes += exceptions.values()  # rows whose parents have no key
            unsent = sendable[len(row_outcomes) :].tolist()
            self.ledger.replace_outcomes(
                self.table_index, [*outcomes, *_token_failures(unsent, NOT_SENT_MESSAGE)]
            )
            low, high = int(generated.numbers.min()), int(generated.numbers.max())
            self._log_outcomes(
                Chunk(self.table_index, low, high, len(outcomes)), np.array(sent, np.int64), outcomes
            )
            failed = [
                outcome for outcome in outcomes if outcome.state != "delivered" and not _has_no_token(outcome)
            ]
            if failed and (self.job.stops_on_error or high <= canary_count(self.job, self.table_index)):
                raise first_failure_error(
                    self.table.name,
                    failed[0],
                    f"Row {failed[0].row:,} of {self.table.name} was not delivered",
                )
            if unavailable is not None:
                raise TargetUnavailable(unavailable)

    def _rows(self, generated: GeneratedRows, sendable: np.ndarray) -> RowBatch:
        numbers = sendable.tolist()
        return RowBatch(generated.batch, numbers, self.job.idempotency_keys(self.table_index, numbers))

    def _chunk(self, numbers: np.ndarray, entries: Sequence[LedgerEntry], proof: dict[str, Any]) -> Chunk:
        states = Counter(item.state for item in entries)
        low, high = int(numbers.min()), int(numbers.max())
        return Chunk(self.table_index, low, high, len(numbers), states["failed"], proof, states["unknown"])

    def _ledger_entries(
        self,
        generated: GeneratedRows,
        started: np.ndarray,
        idempotency_keys: Sequence[str],
        outcomes: Sequence[RowOutcome],
    ) -> list[LedgerEntry]:
        """Return the rows that were not simply delivered."""
        numbers = generated.numbers[generated.sendable].tolist()
        usual_status = self.ledger.set_usual_status(
            item.status_code for item in outcomes if item.state == "delivered"
        )
        exceptions = [
            item
            for item in outcomes
            if item.state != "delivered"
            or item.attempts > 1
            or item.message
            or item.status_code != usual_status
        ]
        positions = pa.array([item.index for item in exceptions], pa.int64())
        messages = self._redacted_messages(
            generated, numbers, positions, [item.message for item in exceptions]
        )
        keys = row_keys(generated.batch, self.table.key_columns, self.table.sensitive, positions)
        found = [
            LedgerEntry(
                numbers[item.index],
                item.reason,
                message[: limits.HTTP_BODY_CHARS],
                # Unknown rows are sent again with the same key: a target that honours keys stores them once.
                native=idempotency_keys[item.index] if item.state == "unknown" else "",
                key=key,
                ms=item.ms,
                attempts=item.attempts,
                status_code=item.status_code,
                state=item.state,
            )
            for item, message, key in zip(exceptions, messages, keys, strict=True)
        ]
        orphans = np.intersect1d(generated.numbers[~generated.sendable], started).tolist()
        if orphans:
            code = "missing_row" if self.is_undo else "foreign_key"
            text = UNKNOWN_KEY_MESSAGE if self.is_undo else orphan_reason(self.table)
            found += [LedgerEntry(number, code, text) for number in orphans]
        return sorted(found, key=lambda entry: entry.row, reverse=self.is_undo)

    def _redacted_messages(
        self, generated: GeneratedRows, numbers: Sequence[int], positions: pa.Array, messages: Sequence[str]
    ) -> list[str]:
        """Return the messages of rows with sensitive values redacted. A message about a whole batch is
        attached to its first row and has the values of all rows redacted."""
        sensitive = self.table.sensitive
        if not self.sending.is_single_request or len(messages) < 2:
            return redact_each(generated.batch, sensitive, positions, messages)
        message = messages[0]
        if sensitive:
            for start in range(0, len(numbers), limits.HTTP_BLOCK_ROWS):
                block = pa.array(range(start, min(start + limits.HTTP_BLOCK_ROWS, len(numbers))), pa.int64())
                message = redact_all(generated.batch, sensitive, block, message)
        first = numbers[positions[0].as_py()]
        return [
            message,
            *[f"Sent together with row {first:,}. See its message." if message else ""] * (len(messages) - 1),
        ]

    def _store_keys(self, numbers: np.ndarray, outcomes: Sequence[RowOutcome]) -> None:
        """Store the keys from responses, for child rows and for undo."""
        for name in self.table.captured_columns:
            missing = next(
                (item for item in outcomes if item.state == "delivered" and name not in item.keys), None
            )
            if missing is not None and name != LOCATION and name not in self._logged_columns:
                self._logged_columns.add(name)
                row = int(numbers[missing.index])
                self.ledger.log(
                    f"{self.table.name}, row {row:,}: the response contains no {name}. {UNKNOWN_KEY_MESSAGE}"
                )
        if not any(item.keys for item in outcomes):
            return
        rows = (numbers - 1 + self.table.first_row).astype(np.uint64)
        columns = [
            _key_array([item.keys.get(name) for item in outcomes]) for name in self.table.captured_columns
        ]
        keys = pa.RecordBatch.from_arrays(columns, names=list(self.table.captured_columns))
        self.job.key_spool.put(self.table_index, rows, keys, self.work.id, self.work.epoch)

    # --- Log lines and stopping ---

    def _log_outcomes(self, chunk: Chunk, numbers: np.ndarray, entries: Sequence[LedgerEntry]) -> None:
        """Log the first row of each kind of failure, and the status of all rows as ranges."""
        for item in entries:
            if item.state != "delivered" and (item.code, item.status_code) not in self._logged:
                self._logged.add((item.code, item.status_code))
                self.ledger.log(f"{self.table.name}, row {item.row:,}: {_status_text(item)}: {item.message}")
        if not len(numbers):
            return
        exceptions = {item.row: _status_text(item) for item in entries}
        usual_status = str(self.ledger.status_code or "delivered")
        ranges = []
        for status, group in groupby(numbers.tolist(), lambda number: exceptions.get(number, usual_status)):
            rows = list(group)
            ranges.append(
                f"{rows[0]:,}: {status}" if len(rows) == 1 else f"{rows[0]:,} to {rows[-1]:,}: {status}"
            )
        self.ledger.log(f"{self.table.name}: rows {', '.join(ranges)}")

    def _check_stop_conditions(self, chunk: Chunk, entries: Sequence[LedgerEntry]) -> None:
        """Decide whether the push continues after this chunk."""
        failed = [item for item in entries if item.state != "delivered"]
        raise_if_stopping(self.job, self.table_index, chunk, failed, "not delivered")
        if self._same_failures is None or not chunk.rows:
            return
        kinds = {(item.code, item.status_code) for item in failed}
        if self._last_failure is not None:
            kinds.add((self._last_failure.code, self._last_failure.status_code))
        if len(failed) < chunk.rows or len(kinds) > 1:
            self._same_failures = None
            return
        self._last_failure, self._same_failures = failed[0], self._same_failures + chunk.rows
        if self.job.stops_when_all_fail and self._same_failures >= limits.HTTP_SAME_FAILURES:
            raise table_rejected_error(self.table.name, failed[0], self._same_failures)


def commit_outcome(chunk: Chunk) -> bool | None:
    """Return False if the rows may be sent again, otherwise None (unknown). See `Session.commit_outcome`."""
    return False if chunk.proof.get("repeatable") else None


def _has_no_token(entry: LedgerEntry) -> bool:
    return entry.code == NO_TOKEN and entry.attempts == 0


def _token_failures(numbers: Iterable[int], message: str) -> list[LedgerEntry]:
    """Return the outcomes of rows that were not sent because there was no token."""
    return [
        LedgerEntry(number, NO_TOKEN, message[: limits.HTTP_BODY_CHARS], attempts=0) for number in numbers
    ]


def _split_unavailable(outcomes: list[RowOutcome]) -> tuple[list[RowOutcome], RowOutcome | None]:
    """Return the rows without the last ones, if their requests did not reach an unavailable target, and the last row
    that it did not answer. A row whose request may have arrived keeps its outcome."""
    unavailable = outcomes[-1] if outcomes and outcomes[-1].is_unanswered else None
    while outcomes and outcomes[-1].is_unanswered and outcomes[-1].state == "failed":
        outcomes = outcomes[:-1]
    return outcomes, unavailable


def _status_text(entry: LedgerEntry) -> str:
    if entry.state == "unknown":
        return f"unknown ({entry.code})"
    code = str(entry.status_code) if entry.status_code else entry.code
    return f"{code} after {entry.attempts} attempts" if entry.attempts > 1 else code


def _key_array(values: Sequence[Any]) -> pa.Array:
    """Return integers unchanged and other values as text."""
    if all(value is None or (type(value) is int and value in _INT64) for value in values):
        return pa.array(values, pa.int64())
    return pa.array([None if value is None else str(value) for value in values], pa.string())
