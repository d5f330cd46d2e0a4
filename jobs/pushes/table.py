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
from jobs.pushes.failures import bad_rows, stopped, table_refused
from webapp import limits
from webapp.connectors.base import ConnectorError, Session, WriteResult
from webapp.connectors.sql import base as sql
from webapp.engine.budget import TooLarge
from webapp.engine.text import decode
from webapp.errors import validation_error
from webapp.extensions import application
from webapp.pushes.services.ledger.write import Bad, Book, Chunk, next_numbers
from webapp.pushes.services.planning import Order
from webapp.pushes.services.rows import TableRows

_MANY_REJECTED_SHARE = (
    0.1  # chosen: the share of rejected rows above which a fill looks for the columns that cause it
)
KEYLESS = "The key of this row is unknown, so it cannot be located."


@dataclass(frozen=True, slots=True)
class Part:
    """The generated rows of a chunk. `numbers` are the ledger's; `sendable` marks those that the batch
    contains. `send` is the result of `Target.prepare`, if the target has prepared the batch."""

    numbers: np.ndarray
    sendable: np.ndarray
    batch: pa.RecordBatch
    send: Callable[[], WriteResult] | None = None

    def split(self, start: int, end: int) -> Part:
        """Return some of the rows, by their positions in `numbers`."""
        before = int(self.sendable[:start].sum())
        sendable = self.sendable[start:end]
        return Part(self.numbers[start:end], sendable, self.batch.slice(before, int(sendable.sum())))


def orphan_reason(table: TableRows) -> str:
    """Return why rows of a table that need the key of another row are not sent."""
    lost = next(iter(table.lost_parents().items()), None)
    if lost is None:
        return "Its parent row was not delivered, so there is no key to reference."
    return f'Its column "{lost[0]}" needs a row of "{lost[1]}", and none was delivered.'


def generate_rows(order: Order, place: int, numbers: np.ndarray) -> Part:
    """Generate rows of a table, or only the first ones if all would take too much memory. Rows whose parent
    has no key, or that have none themselves, are left out. Raises validation_error if a single row is too
    large."""
    while True:
        try:
            return _generate_part(order, place, numbers)
        except TooLarge as error:
            if len(numbers) < 2:
                raise validation_error(error.faults) from None
        numbers = numbers[: max(1, len(numbers) // limits.BLOCK_STEP)]


def _generate_part(order: Order, place: int, numbers: np.ndarray) -> Part:
    table = order.tables[place]
    rows = (numbers - 1 + table.first).astype(np.uint64)
    sendable = np.ones(len(rows), np.bool_)
    if order.push.kind == "undo":
        batch = table.key_batch(rows, order.spool)
        for column in batch.columns:
            sendable &= column.is_valid().to_numpy(zero_copy_only=False)
        return Part(numbers, sendable, batch if sendable.all() else batch.filter(pa.array(sendable)))
    if table.from_parent or table.references:
        sendable = ~table.orphans(rows, order.spool)
    return Part(numbers, sendable, table.batch(rows[sendable], order.spool))


class ManyRejected(Exception):
    """The target rejected many rows of the first chunk of a table; nothing is written about them. `bad` is one of
    them."""

    def __init__(self, bad: Bad) -> None:
        super().__init__(bad.message)
        self.bad = bad


def canary(order: Order, place: int) -> int:
    """Return how many rows of a table are sent first as a canary; 0 for none."""
    return 0 if place else order.canary


class Sender:
    """Sends one table through one session. Raises `ConnectorError` (including `Lost`), `Interrupted`, and
    `ApiError` if the push must end. `again`: the number of chunks that an earlier session may have sent; `trial`: raise
    `ManyRejected` if the target rejects many rows of the first chunk."""

    def __init__(
        self,
        work: Lease,
        book: Book,
        order: Order,
        session: Session,
        place: int,
        again: int = 0,
        *,
        trial: bool = False,
    ) -> None:
        self.work, self.book, self.order, self.place = work, book, order, place
        self.table = order.tables[place]
        self.undo = order.push.kind == "undo"
        create_spec = self.table.key_writing if self.undo else self.table.writing
        writing = create_spec(session)
        self.entity = writing.entity
        self._new_target = partial(session.target, writing)
        self._chunks_to_repeat = 0 if order.transactions else again
        self.target = session.target(replace(writing, is_retry=self._chunks_to_repeat > 0))
        self._last_failure: Bad | None = None
        self._same_failures: int | None = (
            0 if order.stops_when_all_fail and book.reach(place) is None else None
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
                following = self._generate_next(pool, self.book.reach(self.place))
                while following is not None:
                    numbers, future = following
                    part = future.result()
                    if len(part.numbers) < len(numbers):
                        self._max_rows = len(part.numbers)
                    low, high = int(part.numbers.min()), int(part.numbers.max())
                    self.target.begin()  # before the other thread competes for the interpreter
                    following = self._generate_next(pool, (low, high))
                    self._send(part)
                    sent += 1
                    if sent == self._chunks_to_repeat:
                        self.target = self._new_target()
        finally:
            self.target.rollback()
        return sent

    # --- Generating ---

    def _generate_next(
        self, pool: ThreadPoolExecutor, reached: tuple[int, int] | None
    ) -> tuple[np.ndarray, Future[Part]] | None:
        limit = self._max_rows
        if reached is None:
            limit = canary(self.order, self.place) or min(limits.PUSH_FIRST_ROWS, limits.PUSH_CHUNK_ROWS)
        numbers = next_numbers(self.order.push, self.place, reached, limit)
        return (numbers, pool.submit(self._generate, numbers)) if len(numbers) else None

    def _generate(self, numbers: np.ndarray) -> Part:
        with self._app.app_context():
            part = generate_rows(self.order, self.place, numbers)
        if self.undo or not self.order.transactions:
            return part  # without transactions, the target may be replaced in the meantime
        return replace(part, send=self.target.prepare(part.batch))

    # --- Sending ---

    def _send(self, part: Part) -> None:
        """Send one chunk, from begin to commit."""
        self.work.check()
        began = time.monotonic()
        self.target.begin()
        sent = (
            self.target.delete(part.batch)
            if self.undo
            else (part.send or partial(self.target.send, part.batch))()
        )
        self.work.check()  # errors of a cancelled statement are not the target's response
        bad = self._bad_rows(part, sent.failures, began)
        if self._trial and len(bad) >= max(1, len(part.numbers) * _MANY_REJECTED_SHARE):
            raise ManyRejected(bad[0])
        self._trial = False
        if bad and self.order.stops and self.order.transactions:  # otherwise nothing can be rolled back
            size = 1 + int(np.flatnonzero(part.numbers == bad[0].row)[0])
            if size < len(part.numbers):
                self.target.rollback()
                self._send(part.split(0, size))
                return
        if not self.undo:
            self._keep_keys(part, sent.keys)
        low, high = int(part.numbers.min()), int(part.numbers.max())
        chunk = Chunk(self.place, low, high, len(part.numbers), len(bad))
        self._log_outcomes(chunk, bad)
        if len(bad) == len(part.numbers):
            self.target.rollback()
            self.book.refused(chunk, bad)
        else:
            self.book.intend(replace(chunk, proof=self.target.commit_token()), bad)
            try:
                self.target.commit()
            except ConnectorError as error:
                if error.reason != "deferred":
                    raise
                # The target rejected the chunk at its commit: send it again with constraints checked immediately, or
                # in halves.
                self.target.rollback()
                self.book.retract()
                if self.target.check_at_once():
                    self._send(part.split(0, len(part.numbers)))
                else:
                    self._halve(part, error)
                return
            self.book.landed()
        self._judge(chunk, bad)

    def _halve(self, part: Part, error: ConnectorError) -> None:
        """Split a chunk in halves to find the rows that violate a constraint that is only checked at the commit, which
        names no row."""
        count = len(part.numbers)
        if count > 1:
            self._send(part.split(0, count // 2))
            self._send(part.split(count // 2, count))
            return
        number = int(part.numbers[0])
        native = str(error.details.get("sqlstate") or "")
        code = sql.reason_of(native) if native else "refused"
        bad = [Bad(number, code, error.message[: limits.PUSH_MESSAGE_CHARS], native)]
        chunk = Chunk(self.place, number, number, 1, 1)
        self._log_outcomes(chunk, bad)
        self.book.refused(chunk, bad)
        self._judge(chunk, bad)

    def _bad_rows(self, part: Part, failures: Sequence[Any], began: float) -> list[Bad]:
        """Return the rows that were not delivered, in the order of sending."""
        ms = round((time.monotonic() - began) * 1000)
        numbers = part.numbers[part.sendable].tolist()
        found = bad_rows(
            failures,
            numbers,
            part.batch,
            key_columns=self.table.key_columns,
            sensitive=self.table.sensitive,
            ms=ms,
        )
        if self.undo and self.table.found_by != self.table.key_columns:
            # The row was deleted together with one of the same values.
            found = [item for item in found if item.code != "missing_row"]
        orphans = part.numbers[~part.sendable].tolist()
        if orphans:
            code = "missing_row" if self.undo else "foreign_key"
            text = KEYLESS if self.undo else orphan_reason(self.table)
            found += [Bad(number, code, text) for number in orphans]
        return sorted(found, key=lambda item: item.row, reverse=self.undo)

    def _keep_keys(self, part: Part, captured: pa.RecordBatch | None) -> None:
        """Store the keys that the target generated, and those that refer to rows of other tables as they were sent."""
        keys: dict[str, pa.Array] = {
            name: decode(part.batch.column(name)) for name in self.table.stored_columns
        }
        if captured is not None and self.table.capture:
            keys |= dict(zip(captured.schema.names, captured.columns, strict=True))
        if keys:
            rows = (part.numbers[part.sendable] - 1 + self.table.first).astype(np.uint64)
            batch = pa.RecordBatch.from_arrays(list(keys.values()), names=list(keys))
            self.order.spool.put(self.place, rows, batch, self.work.id, self.work.epoch)

    # --- Log lines and stopping ---

    def _log_outcomes(self, chunk: Chunk, bad: Sequence[Bad]) -> None:
        for item in bad:
            if item.code not in self._logged:
                self._logged.add(item.code)
                native = f" ({item.native})" if item.native else ""
                self.book.say(f"{self.table.name}, row {item.row}: {item.code}{native}: {item.message}")
        done = f"{self.table.name}: rows {chunk.first:,} to {chunk.last:,} of {self.table.count:,}"
        failed = f", {chunk.failed:,} of them rejected" if chunk.failed else ""
        self.book.say_sometimes(lambda: done + failed)

    def _judge(self, chunk: Chunk, bad: Sequence[Bad]) -> None:
        """Decide whether the push continues after this chunk, which is in the ledger already."""
        first = canary(self.order, self.place)
        if bad and first and chunk.last <= first:
            which = f"{len(bad):,} of the first {first:,} rows of {self.table.name} were rejected"
            raise stopped(self.table.name, bad[0], which)
        if bad and self.order.stops:
            raise stopped(self.table.name, bad[0], f"Row {bad[0].row:,} of {self.table.name} was rejected")
        if self._same_failures is None:
            return
        kinds = {(item.code, item.native, item.column) for item in bad}
        if self._last_failure is not None:
            kinds.add((self._last_failure.code, self._last_failure.native, self._last_failure.column))
        if chunk.failed < chunk.rows or len(kinds) > 1:
            self._same_failures = None
            return
        self._last_failure, self._same_failures = bad[0], self._same_failures + chunk.rows
        if self._same_failures >= limits.PUSH_SAME_FAILURES:
            raise table_refused(self.table.name, bad[0], self._same_failures)
