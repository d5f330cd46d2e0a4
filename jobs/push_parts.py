"""Rows of a push, made for sending: a chunk at a time, whatever the way they go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from webapp import limits
from webapp.connectors.base import Sent
from webapp.engine.budget import TooLarge
from webapp.errors import validation_error
from webapp.services.push_order import Order

ORPHAN = "Its parent row did not arrive, so there is no key to refer to."
KEYLESS = "The key of this row is not known, so it cannot be found."


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one chunk, made. `numbers` are the ledger's; `sendable` says which of them the batch has.
    `send` is `Target.prepare`'s, where the target has done its part already."""

    numbers: np.ndarray
    sendable: np.ndarray
    batch: pa.RecordBatch
    send: Callable[[], Sent] | None = None

    def split(self, start: int, end: int) -> Part:
        """Some of its rows, by their place in `numbers`."""
        before = int(self.sendable[:start].sum())
        sendable = self.sendable[start:end]
        return Part(self.numbers[start:end], sendable, self.batch.slice(before, int(sendable.sum())))


def made(order: Order, place: int, numbers: np.ndarray) -> Part:
    """The rows of some numbers of a table, or of the first of them where all together take too much memory; not those
    whose parent has no key, or that have none themselves. Error: validation_error where a single row is too large."""
    while True:
        try:
            return _made(order, place, numbers)
        except TooLarge as error:
            if len(numbers) < 2:
                raise validation_error(error.faults) from None
        numbers = numbers[: max(1, len(numbers) // limits.BLOCK_STEP)]


def _made(order: Order, place: int, numbers: np.ndarray) -> Part:
    table = order.tables[place]
    rows = (numbers - 1 + table.first).astype(np.uint64)
    sendable = np.ones(len(rows), np.bool_)
    if order.push.kind == "undo":
        batch = table.key_batch(rows, order.spool)
        for column in batch.columns:
            sendable &= column.is_valid().to_numpy(zero_copy_only=False)
        return Part(numbers, sendable, batch if sendable.all() else batch.filter(pa.array(sendable)))
    if table.from_parent:
        sendable = ~table.orphans(rows, order.spool)
    return Part(numbers, sendable, table.batch(rows[sendable], order.spool))


def canary(order: Order, place: int) -> int:
    """Rows of a table to be tried before all others; 0 where none are."""
    return 0 if place else order.canary
