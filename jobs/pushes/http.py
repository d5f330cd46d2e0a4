"""Sending one table of a push over HTTP: requests of a row or a batch each, several at once, a chunk at a time.

What is sent cannot be taken back, so the chunk's intent stands in the ledger before its first request. A worker that
dies leaves the chunk in doubt: its rows are unknown, or sent again where the target takes a request twice for one.
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
from flask import current_app

from jobs.lease import HandBack, Lease
from jobs.pushes import wait as pushes_wait
from jobs.pushes.failures import hide_rows, hide_together, keys_of, stopped, table_refused
from jobs.pushes.table import KEYLESS, ORPHAN, Part, canary, made
from webapp import limits
from webapp.connectors.base import ConnectorError
from webapp.connectors.channel import LOCATION, Channel, Ended, Rows, Sending
from webapp.pushes.services.ledger.write import Bad, Book, Chunk, next_numbers
from webapp.pushes.services.planning import Order

_INT64: Final = range(-(2**63), 2**63)


class Away(ConnectorError):
    """The target answers no request: it cannot be reached, or does not answer in time."""

    def __init__(self, ended: Ended) -> None:
        super().__init__(ended.message, reason=ended.reason, transient=True)


class LeaseHand:
    """The lease, as whoever sends asks it. A worker that is asked to stop begins no further row; those that it has
    begun may come to their end, retries included, for PUSH_DRAIN_SECONDS."""

    def __init__(self, work: Lease) -> None:
        self._work = work
        self._app: Any = current_app._get_current_object()  # type: ignore[attr-defined]
        self._drained = float("inf")

    def may_go(self) -> None:
        """Raises `Interrupted`."""
        with self._app.app_context():  # an old lease asks the database
            self._work.check()

    def wait(self, seconds: float) -> None:
        """Raises `Interrupted`."""
        until, pause = time.monotonic() + seconds, threading.Event()
        while True:
            self._may_go_on()
            left = until - time.monotonic()
            if left <= 0:
                return
            pause.wait(min(left, pushes_wait.POLL_SECONDS))

    def _may_go_on(self) -> None:
        try:
            self.may_go()
        except HandBack:
            now = time.monotonic()
            self._drained = min(self._drained, now + limits.PUSH_DRAIN_SECONDS)
            if now >= self._drained:
                raise


class Caller:
    """One table, being sent through one channel. Raises `ConnectorError`, `Interrupted`, and `ApiError` where the push
    must end. `resent` is a chunk that may have been sent before, by a worker that was lost. `probing`: the target
    answered no request before, so that one row goes first."""

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
        hand = LeaseHand(work)
        self.sending = channel.sending(writing, hand)
        self._probing = probing and not self.sending.together
        self._resent = resent if resent is not None and resent.table == place else None
        self._again = channel.sending(replace(writing, again=True), hand) if self._resent else self.sending
        self._app: Any = current_app._get_current_object()  # type: ignore[attr-defined]
        self._alike: Bad | None = None
        self._same: int | None = 0 if book.reach(place) is None else None
        self._told: set[tuple[str, int | None]] = set()
        self._keyless: set[str] = set()
        # Lower, where so many rows took too much memory.
        self._most = max(self.sending.size, limits.HTTP_MADE_ROWS)

    def send_all(self) -> None:
        """Every row that has no end yet. The next rows are made while some are on their way."""
        with ThreadPoolExecutor(1, thread_name_prefix="rows") as pool:
            following = self._ahead(pool, self.book.reach(self.place))
            while following is not None:
                numbers, made = following
                part = made.result()
                if len(part.numbers) < len(numbers):
                    self._most = len(part.numbers)
                following = self._ahead(pool, (int(part.numbers.min()), int(part.numbers.max())))
                for start, end in self._cuts(len(part.numbers)):
                    left = part.split(start, end)
                    while len(left.numbers):  # what stopped a chunk ends the push, or has passed
                        left = self._send(left)

    # --- Making -----------------------------------------------------------------------------------------------

    def _ahead(
        self, pool: ThreadPoolExecutor, beyond: tuple[int, int] | None
    ) -> tuple[np.ndarray, Future[Part]] | None:
        numbers = next_numbers(self.order.push, self.place, beyond, self._most)
        return (numbers, pool.submit(self._make, numbers)) if len(numbers) else None

    def _cuts(self, count: int) -> Iterable[tuple[int, int]]:
        """Chunks of rows that were made together; a canary's rows, or the one that goes first, are the first."""
        first = canary(self.order, self.place) if self.book.reach(self.place) is None else 0
        if self._probing:
            first, self._probing = 1, False
        starts = [0, *range(first, count, self.sending.size)] if 0 < first < count else None
        starts = starts or list(range(0, count, self.sending.size))
        return zip(starts, [*starts[1:], count], strict=True)

    def _make(self, numbers: np.ndarray) -> Part:
        with self._app.app_context():
            return made(self.order, self.place, numbers)

    # --- Sending ----------------------------------------------------------------------------------------------

    def _send(self, part: Part) -> Part:
        """One chunk, from intent to outcome; what is left of it, because it was stopped before its end."""
        self.work.check()
        there = part.numbers[part.sendable]
        proof = {"keyed": not self.undo, "repeatable": self.undo or self.sending.repeatable}
        chunk = self._chunk(part.numbers, [], proof)
        rows = self._rows(part, there)
        self.book.intend(chunk, [])
        try:
            sending, ended = self._sending(chunk), []
            if len(there):
                ended = sending.delete(rows) if self.undo else sending.send(rows, self.order.stops)
        except ConnectorError:
            self.book.retract()
            raise
        ended, away = _answered(ended)
        begun = self._begun(part, there, ended)
        bad = self._bad(part, begun, rows.keys, ended)
        if self.table.capture and not self.undo:
            self._keep_keys(there[: len(ended)], ended)
        done = self._chunk(begun, bad, proof) if len(begun) else replace(chunk, rows=0)
        self.book.landed(done, bad)
        self._tell(done, begun, bad)
        self._judge(done, bad)
        if away is not None:
            self.book.close()
            if self.book.ended_rows < self.book.push.total:
                raise Away(away)
        return part.split(len(begun), len(part.numbers))

    def _sending(self, chunk: Chunk) -> Sending:
        """The way for a chunk: rows that may have been sent before can be there already, or be gone."""
        before = self._resent
        met = before is not None and before.first <= chunk.last and chunk.first <= before.last
        return self._again if met else self.sending

    def _rows(self, part: Part, there: np.ndarray) -> Rows:
        numbers = there.tolist()
        return Rows(part.batch, numbers, self.order.idempotency_keys(self.place, numbers))

    def _chunk(self, numbers: np.ndarray, bad: Sequence[Bad], proof: dict[str, Any]) -> Chunk:
        states = Counter(one.state for one in bad)
        low, high = int(numbers.min()), int(numbers.max())
        return Chunk(self.place, low, high, len(numbers), states["failed"], proof, states["unknown"])

    def _begun(self, part: Part, there: np.ndarray, ended: Sequence[Ended]) -> np.ndarray:
        """The numbers that the chunk reaches over: up to the last row that was begun."""
        if len(ended) == len(there):
            return part.numbers
        if not ended:
            return part.numbers[:0]
        last = int(np.flatnonzero(part.numbers == there[len(ended) - 1])[0])
        return part.numbers[: last + 1]

    def _bad(
        self, part: Part, begun: np.ndarray, sent_as: Sequence[str], ended: Sequence[Ended]
    ) -> list[Bad]:
        """Rows that were not simply delivered."""
        numbers = part.numbers[part.sendable].tolist()
        usual = self.book.usual_status(one.status_code for one in ended if one.state == "delivered")
        odd = [
            one
            for one in ended
            if one.state != "delivered" or one.attempts > 1 or one.message or one.status_code != usual
        ]
        places = pa.array([one.index for one in odd], pa.int64())
        messages = self._messages(part, numbers, places, [one.message for one in odd])
        keys = keys_of(part.batch, self.table.key_columns, self.table.sensitive, places)
        found = [
            Bad(
                numbers[one.index],
                one.reason,
                message[: limits.HTTP_BODY_CHARS],
                # What nobody knows of is sent again under the same key: a target that honours keys has it once.
                native=sent_as[one.index] if one.state == "unknown" else "",
                key=key,
                ms=one.ms,
                attempts=one.attempts,
                status_code=one.status_code,
                state=one.state,
            )
            for one, message, key in zip(odd, messages, keys, strict=True)
        ]
        code, text = ("missing_row", KEYLESS) if self.undo else ("foreign_key", ORPHAN)
        orphans = np.intersect1d(part.numbers[~part.sendable], begun).tolist()
        found += [Bad(number, code, text) for number in orphans]
        return sorted(found, key=lambda one: one.row, reverse=self.undo)

    def _messages(
        self, part: Part, numbers: Sequence[int], places: pa.Array, messages: Sequence[str]
    ) -> list[str]:
        """What was said of some rows, without their sensitive values. What was said of all at once stands at the first
        of them, without the values of any."""
        sensitive = self.table.sensitive
        if not self.sending.together or len(messages) < 2:
            return hide_rows(part.batch, sensitive, places, messages)
        told = messages[0]
        if sensitive:
            for place in range(0, len(numbers), limits.HTTP_MADE_ROWS):
                some = pa.array(range(place, min(place + limits.HTTP_MADE_ROWS, len(numbers))), pa.int64())
                told = hide_together(part.batch, sensitive, some, told)
        first = numbers[places[0].as_py()]
        return [told, *[f"Sent with row {first:,}: see there." if told else ""] * (len(messages) - 1)]

    def _keep_keys(self, numbers: np.ndarray, ended: Sequence[Ended]) -> None:
        """What answers said of their rows, for children and for an undo."""
        for name in self.table.capture:
            lacking = next((one for one in ended if one.state == "delivered" and name not in one.keys), None)
            if lacking is not None and name != LOCATION and name not in self._keyless:
                self._keyless.add(name)
                row = int(numbers[lacking.index])
                self.book.say(f"{self.table.name}, row {row:,}: the answer brings no {name}. {KEYLESS}")
        if not any(one.keys for one in ended):
            return
        rows = (numbers - 1 + self.table.first).astype(np.uint64)
        columns = [_captured([one.keys.get(name) for one in ended]) for name in self.table.capture]
        keys = pa.RecordBatch.from_arrays(columns, names=list(self.table.capture))
        self.order.spool.put(self.place, rows, keys, self.work.id, self.work.epoch)

    # --- Saying and stopping ----------------------------------------------------------------------------------

    def _tell(self, chunk: Chunk, numbers: np.ndarray, bad: Sequence[Bad]) -> None:
        """The status code of each row, those of neighbours that are alike together."""
        for one in bad:
            if one.state != "delivered" and (one.code, one.status_code) not in self._told:
                self._told.add((one.code, one.status_code))
                self.book.say(f"{self.table.name}, row {one.row:,}: {_status(one)}: {one.message}")
        if not len(numbers):
            return
        odd = {one.row: _status(one) for one in bad}
        usual = str(self.book.status_code or "delivered")
        told = []
        for status, group in groupby(numbers.tolist(), lambda number: odd.get(number, usual)):
            rows = list(group)
            told.append(
                f"{rows[0]:,}: {status}" if len(rows) == 1 else f"{rows[0]:,} to {rows[-1]:,}: {status}"
            )
        self.book.say(f"{self.table.name}: rows {', '.join(told)}")

    def _judge(self, chunk: Chunk, bad: Sequence[Bad]) -> None:
        """Whether the push goes on after this chunk."""
        failed = [one for one in bad if one.state != "delivered"]
        first = canary(self.order, self.place)
        if failed and first and chunk.last <= first:
            which = f"{len(failed):,} of the first {first:,} rows of {self.table.name} did not arrive"
            raise stopped(self.table.name, failed[0], which)
        if failed and self.order.stops:
            raise stopped(
                self.table.name, failed[0], f"Row {failed[0].row:,} of {self.table.name} did not arrive"
            )
        if self._same is None or not chunk.rows:
            return
        kinds = {(one.code, one.status_code) for one in failed}
        if self._alike is not None:
            kinds.add((self._alike.code, self._alike.status_code))
        if len(failed) < chunk.rows or len(kinds) > 1:
            self._same = None
            return
        self._alike, self._same = failed[0], self._same + chunk.rows
        if self.order.stops_when_all_fail and self._same >= limits.HTTP_SAME_FAILURES:
            raise table_refused(self.table.name, failed[0], self._same)


def settled(chunk: Chunk) -> bool | None:
    """Whether rows in doubt arrived, as `Session.settled`: nobody can tell, unless they may simply be sent again."""
    return False if chunk.proof.get("repeatable") else None


def _answered(ended: list[Ended]) -> tuple[list[Ended], Ended | None]:
    """Return the rows without the last ones, if their requests did not reach a target that is away, and the last row
    that it did not answer. A row whose request may have arrived keeps its end."""
    away = ended[-1] if ended and ended[-1].away else None
    while ended and ended[-1].away and ended[-1].state == "failed":
        ended = ended[:-1]
    return ended, away


def _status(one: Bad) -> str:
    if one.state == "unknown":
        return f"unknown ({one.code})"
    code = str(one.status_code) if one.status_code else one.code
    return f"{code} after {one.attempts} attempts" if one.attempts > 1 else code


def _captured(values: Sequence[Any]) -> pa.Array:
    """Whole numbers as such, all else as text."""
    if all(value is None or (type(value) is int and value in _INT64) for value in values):
        return pa.array(values, pa.int64())
    return pa.array([None if value is None else str(value) for value in values], pa.string())
