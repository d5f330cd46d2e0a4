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
from jobs.pushes import wait as pushes_wait
from jobs.pushes.failures import hide_rows, hide_together, keys_of, stopped, table_refused
from jobs.pushes.table import KEYLESS, Part, canary, generate_rows, orphan_reason
from webapp import limits
from webapp.connectors.base import ConnectorError
from webapp.connectors.http.channel import LOCATION, Channel, RowOutcome, Rows
from webapp.extensions import application
from webapp.pushes.services.ledger.write import NO_TOKEN, UNKNOWN, Bad, Book, Chunk, next_numbers
from webapp.pushes.services.planning import Order

_INT64: Final = range(-(2**63), 2**63)
IN_DOUBT: Final = (
    "It is not known whether this row was delivered, because the worker was lost while it was being sent."
)
NOT_SENT: Final = "The row was not sent because no OAuth token could be fetched for it."


class TargetUnavailable(ConnectorError):
    """The target is unavailable: it cannot be reached or does not respond in time."""

    def __init__(self, ended: RowOutcome) -> None:
        super().__init__(ended.message, reason=ended.reason, transient=True)


class LeaseSendControl:
    """Checks the lease for the sender. A worker that is stopping starts no further rows. Rows in progress, with their
    retries, may finish within PUSH_DRAIN_SECONDS."""

    def __init__(self, work: Lease) -> None:
        self._work = work
        self._app = application()
        self._drained = float("inf")

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
                self._drained = min(self._drained, now + limits.PUSH_DRAIN_SECONDS)
                if now >= self._drained:
                    raise
            left = until - time.monotonic()
            if left <= 0:
                return
            pause.wait(min(left, pushes_wait.POLL_SECONDS))


class Caller:
    """Sends one table through one channel. Raises `ConnectorError`, `Interrupted`, and `ApiError` if the push
    must end. `resent` is a chunk that a lost worker may have sent. `probing`: the target was unavailable, so
    send a single row first."""

    def __init__(
        self,
        work: Lease,
        book: Book,
        order: Order,
        channel: Channel,
        place: int,
        resent: Chunk | None = None,
        *,
        probing: bool = False,
    ) -> None:
        self.work, self.book, self.order, self.place = work, book, order, place
        self.table = order.tables[place]
        self.undo = order.push.kind == "undo"
        writing = self.table.key_writing(channel) if self.undo else self.table.writing(channel)
        control = LeaseSendControl(work)
        self.sending = channel.sending(writing, control)
        self._probing = probing and not self.sending.together
        self._resent = resent if resent is not None and resent.table == place else None
        self._resending = (
            channel.sending(replace(writing, is_retry=True), control) if self._resent else self.sending
        )
        self._app = application()
        self._last_failure: Bad | None = None
        self._same_failures: int | None = 0 if book.reach(place) is None else None
        self._logged: set[tuple[str, int | None]] = set()
        self._logged_columns: set[str] = set()
        # Reduced if this many rows take too much memory.
        self._max_rows = max(self.sending.size, limits.HTTP_MADE_ROWS)

    def send_all(self) -> None:
        """Send every row that has no outcome. The next rows are generated while others are being sent."""
        self._send_without_token()
        with ThreadPoolExecutor(1, thread_name_prefix="rows") as pool:
            following = self._generate_next(pool, self.book.reach(self.place))
            while following is not None:
                numbers, future = following
                part = future.result()
                if len(part.numbers) < len(numbers):
                    self._max_rows = len(part.numbers)
                following = self._generate_next(pool, (int(part.numbers.min()), int(part.numbers.max())))
                for start, end in self._chunk_bounds(len(part.numbers)):
                    left = part.split(start, end)
                    while len(
                        left.numbers
                    ):  # the error that stopped a chunk has ended the push or is resolved
                        left = self._send(left)

    # --- Generating ---

    def _generate_next(
        self, pool: ThreadPoolExecutor, reached: tuple[int, int] | None
    ) -> tuple[np.ndarray, Future[Part]] | None:
        numbers = next_numbers(self.order.push, self.place, reached, self._max_rows)
        return (numbers, pool.submit(self._generate, numbers)) if len(numbers) else None

    def _chunk_bounds(self, count: int) -> Iterable[tuple[int, int]]:
        """Split rows into chunks. The rows of the canary, or the single probe row, come first."""
        first = canary(self.order, self.place) if self.book.reach(self.place) is None else 0
        if self._probing:
            first, self._probing = 1, False
        starts = [0, *range(first, count, self.sending.size)] if 0 < first < count else None
        starts = starts or list(range(0, count, self.sending.size))
        return zip(starts, [*starts[1:], count], strict=True)

    def _generate(self, numbers: np.ndarray) -> Part:
        with self._app.app_context():
            return generate_rows(self.order, self.place, numbers)

    # --- Sending ---

    def _send(self, part: Part) -> Part:
        """Send one chunk, from intent to outcome. Return the rows that remain because it was stopped early."""
        self.work.check()
        sendable = part.numbers[part.sendable]
        proof = {"keyed": not self.undo, "repeatable": self.undo or self.sending.repeatable}
        chunk = self._chunk(part.numbers, [], proof)
        rows = self._rows(part, sendable)
        # Rows that may have been sent before may already exist in the target, or be deleted.
        resent = self._resent
        was_sent = resent is not None and resent.first <= chunk.last and chunk.first <= resent.last
        sending, ended = self._resending if was_sent else self.sending, []
        self.book.intend(chunk, [])
        try:
            if len(sendable):
                ended = sending.delete(rows) if self.undo else sending.send(rows, self.order.stops)
        except ConnectorError:
            self.book.retract()
            raise
        ended, away = _split_unavailable(ended)
        started = part.numbers
        if len(ended) != len(sendable):
            # Up to the last row that was started.
            last = int(np.flatnonzero(part.numbers == sendable[len(ended) - 1])[0]) + 1 if ended else 0
            started = part.numbers[:last]
        bad = self._exceptions(part, started, rows.keys, ended)
        if self.table.capture and not self.undo:
            self._keep_keys(sendable[: len(ended)], ended)
        done = self._chunk(started, bad, proof) if len(started) else replace(chunk, rows=0)
        self.book.landed(done, bad)
        self._log_outcomes(done, started, bad)
        self._judge(done, [item for item in bad if not _has_no_token(item)])
        if away is not None:
            self.book.close()
            if self.book.ended_rows < self.book.push.total:
                raise TargetUnavailable(away)
        if any(_has_no_token(item) for item in bad):
            self._send_without_token()
        return part.split(len(started), len(part.numbers))

    def _send_without_token(self) -> None:
        """Send the rows that could not be sent because there was no token for them although later rows were sent: a
        target rejected the previous token with 401, and the token endpoint was unavailable.

        They are unknown while they are sent, and fail again if they are not sent. Raises `ConnectorError` while there
        is no token.
        """
        if self.undo:
            return  # a further undo deletes the rows
        self.book.close()
        while numbers := self.book.without_token(self.place, self.sending.size):
            self.work.check()
            part = generate_rows(self.order, self.place, np.array(numbers, np.int64))
            sendable = part.numbers[part.sendable]
            rows = self._rows(part, sendable)
            in_doubt = [
                Bad(number, UNKNOWN, IN_DOUBT, key, attempts=0, state="unknown")
                for number, key in zip(sendable.tolist(), rows.keys, strict=True)
            ]
            self.book.replace_outcomes(self.place, in_doubt)
            ended: list[RowOutcome] = []
            try:
                if len(sendable):
                    ended = self.sending.send(rows, self.order.stops)
            except ConnectorError as error:
                self.book.replace_outcomes(self.place, _token_failures(sendable.tolist(), error.message))
                raise
            ended, away = _split_unavailable(ended)
            if self.table.capture:
                self._keep_keys(sendable[: len(ended)], ended)
            exceptions = {
                exception.row: exception
                for exception in self._exceptions(part, part.numbers, rows.keys, ended)
            }
            sent = sendable[: len(ended)].tolist()
            outcomes = [
                exceptions.pop(number)
                if number in exceptions
                else Bad(number, "", "", ms=outcome.ms, status_code=outcome.status_code, state="delivered")
                for number, outcome in zip(sent, ended, strict=True)
            ]
            outcomes += exceptions.values()  # rows whose parents have no key
            unsent = sendable[len(ended) :].tolist()
            self.book.replace_outcomes(self.place, [*outcomes, *_token_failures(unsent, NOT_SENT)])
            low, high = int(part.numbers.min()), int(part.numbers.max())
            self._log_outcomes(
                Chunk(self.place, low, high, len(outcomes)), np.array(sent, np.int64), outcomes
            )
            failed = [
                outcome for outcome in outcomes if outcome.state != "delivered" and not _has_no_token(outcome)
            ]
            if failed and (self.order.stops or high <= canary(self.order, self.place)):
                raise stopped(
                    self.table.name,
                    failed[0],
                    f"Row {failed[0].row:,} of {self.table.name} was not delivered",
                )
            if away is not None:
                raise TargetUnavailable(away)

    def _rows(self, part: Part, sendable: np.ndarray) -> Rows:
        numbers = sendable.tolist()
        return Rows(part.batch, numbers, self.order.idempotency_keys(self.place, numbers))

    def _chunk(self, numbers: np.ndarray, bad: Sequence[Bad], proof: dict[str, Any]) -> Chunk:
        states = Counter(item.state for item in bad)
        low, high = int(numbers.min()), int(numbers.max())
        return Chunk(self.place, low, high, len(numbers), states["failed"], proof, states["unknown"])

    def _exceptions(
        self, part: Part, started: np.ndarray, sent_as: Sequence[str], ended: Sequence[RowOutcome]
    ) -> list[Bad]:
        """Return the rows that were not simply delivered."""
        numbers = part.numbers[part.sendable].tolist()
        usual_status = self.book.usual_status(item.status_code for item in ended if item.state == "delivered")
        exceptions = [
            item
            for item in ended
            if item.state != "delivered"
            or item.attempts > 1
            or item.message
            or item.status_code != usual_status
        ]
        places = pa.array([item.index for item in exceptions], pa.int64())
        messages = self._messages(part, numbers, places, [item.message for item in exceptions])
        keys = keys_of(part.batch, self.table.key_columns, self.table.sensitive, places)
        found = [
            Bad(
                numbers[item.index],
                item.reason,
                message[: limits.HTTP_BODY_CHARS],
                # Unknown rows are sent again with the same key: a target that honours keys stores them once.
                native=sent_as[item.index] if item.state == "unknown" else "",
                key=key,
                ms=item.ms,
                attempts=item.attempts,
                status_code=item.status_code,
                state=item.state,
            )
            for item, message, key in zip(exceptions, messages, keys, strict=True)
        ]
        orphans = np.intersect1d(part.numbers[~part.sendable], started).tolist()
        if orphans:
            code = "missing_row" if self.undo else "foreign_key"
            text = KEYLESS if self.undo else orphan_reason(self.table)
            found += [Bad(number, code, text) for number in orphans]
        return sorted(found, key=lambda entry: entry.row, reverse=self.undo)

    def _messages(
        self, part: Part, numbers: Sequence[int], places: pa.Array, messages: Sequence[str]
    ) -> list[str]:
        """Return the messages of rows with sensitive values redacted. A message about a whole batch is
        attached to its first row and has the values of all rows redacted."""
        sensitive = self.table.sensitive
        if not self.sending.together or len(messages) < 2:
            return hide_rows(part.batch, sensitive, places, messages)
        message = messages[0]
        if sensitive:
            for place in range(0, len(numbers), limits.HTTP_MADE_ROWS):
                some = pa.array(range(place, min(place + limits.HTTP_MADE_ROWS, len(numbers))), pa.int64())
                message = hide_together(part.batch, sensitive, some, message)
        first = numbers[places[0].as_py()]
        return [
            message,
            *[f"Sent together with row {first:,}. See its message." if message else ""] * (len(messages) - 1),
        ]

    def _keep_keys(self, numbers: np.ndarray, ended: Sequence[RowOutcome]) -> None:
        """Store the keys from responses, for child rows and for undo."""
        for name in self.table.capture:
            missing = next(
                (item for item in ended if item.state == "delivered" and name not in item.keys), None
            )
            if missing is not None and name != LOCATION and name not in self._logged_columns:
                self._logged_columns.add(name)
                row = int(numbers[missing.index])
                self.book.say(f"{self.table.name}, row {row:,}: the response contains no {name}. {KEYLESS}")
        if not any(item.keys for item in ended):
            return
        rows = (numbers - 1 + self.table.first).astype(np.uint64)
        columns = [_captured([item.keys.get(name) for item in ended]) for name in self.table.capture]
        keys = pa.RecordBatch.from_arrays(columns, names=list(self.table.capture))
        self.order.spool.put(self.place, rows, keys, self.work.id, self.work.epoch)

    # --- Log lines and stopping ---

    def _log_outcomes(self, chunk: Chunk, numbers: np.ndarray, bad: Sequence[Bad]) -> None:
        """Log the first row of each kind of failure, and the status of all rows as ranges."""
        for item in bad:
            if item.state != "delivered" and (item.code, item.status_code) not in self._logged:
                self._logged.add((item.code, item.status_code))
                self.book.say(f"{self.table.name}, row {item.row:,}: {_status_text(item)}: {item.message}")
        if not len(numbers):
            return
        exceptions = {item.row: _status_text(item) for item in bad}
        usual_status = str(self.book.status_code or "delivered")
        ranges = []
        for status, group in groupby(numbers.tolist(), lambda number: exceptions.get(number, usual_status)):
            rows = list(group)
            ranges.append(
                f"{rows[0]:,}: {status}" if len(rows) == 1 else f"{rows[0]:,} to {rows[-1]:,}: {status}"
            )
        self.book.say(f"{self.table.name}: rows {', '.join(ranges)}")

    def _judge(self, chunk: Chunk, bad: Sequence[Bad]) -> None:
        """Decide whether the push continues after this chunk."""
        failed = [item for item in bad if item.state != "delivered"]
        first = canary(self.order, self.place)
        if failed and first and chunk.last <= first:
            which = f"{len(failed):,} of the first {first:,} rows of {self.table.name} were not delivered"
            raise stopped(self.table.name, failed[0], which)
        if failed and self.order.stops:
            raise stopped(
                self.table.name, failed[0], f"Row {failed[0].row:,} of {self.table.name} was not delivered"
            )
        if self._same_failures is None or not chunk.rows:
            return
        kinds = {(item.code, item.status_code) for item in failed}
        if self._last_failure is not None:
            kinds.add((self._last_failure.code, self._last_failure.status_code))
        if len(failed) < chunk.rows or len(kinds) > 1:
            self._same_failures = None
            return
        self._last_failure, self._same_failures = failed[0], self._same_failures + chunk.rows
        if self.order.stops_when_all_fail and self._same_failures >= limits.HTTP_SAME_FAILURES:
            raise table_refused(self.table.name, failed[0], self._same_failures)


def settled(chunk: Chunk) -> bool | None:
    """Return False if the rows may be sent again, otherwise None (unknown). See `Session.commit_outcome`."""
    return False if chunk.proof.get("repeatable") else None


def _has_no_token(one: Bad) -> bool:
    return one.code == NO_TOKEN and one.attempts == 0


def _token_failures(numbers: Iterable[int], message: str) -> list[Bad]:
    """Return the outcomes of rows that were not sent because there was no token."""
    return [Bad(number, NO_TOKEN, message[: limits.HTTP_BODY_CHARS], attempts=0) for number in numbers]


def _split_unavailable(ended: list[RowOutcome]) -> tuple[list[RowOutcome], RowOutcome | None]:
    """Return the rows without the last ones, if their requests did not reach an unavailable target, and the last row
    that it did not answer. A row whose request may have arrived keeps its outcome."""
    away = ended[-1] if ended and ended[-1].away else None
    while ended and ended[-1].away and ended[-1].state == "failed":
        ended = ended[:-1]
    return ended, away


def _status_text(one: Bad) -> str:
    if one.state == "unknown":
        return f"unknown ({one.code})"
    code = str(one.status_code) if one.status_code else one.code
    return f"{code} after {one.attempts} attempts" if one.attempts > 1 else code


def _captured(values: Sequence[Any]) -> pa.Array:
    """Return integers unchanged and other values as text."""
    if all(value is None or (type(value) is int and value in _INT64) for value in values):
        return pa.array(values, pa.int64())
    return pa.array([None if value is None else str(value) for value in values], pa.string())
