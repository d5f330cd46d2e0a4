"""What `push` and `push_mysql` share: the bench template's rows, sent through a connector's target, and tuples of them
for a driver."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from bench.generate import ENV, HEADER, plan
from webapp import limits
from webapp.connectors.base import Session, Writing
from webapp.engine.block import Bound

Figures = dict[str, tuple[float, int]]
"""Seconds of each way, and how many rows it reported bad."""


def batches(rows: int) -> Iterator[pa.RecordBatch]:
    """The bench template's rows, made now."""
    bound = Bound(plan(), ENV)
    for at in range(0, rows, limits.PUSH_CHUNK_ROWS):
        arrays = bound.block(at, min(limits.PUSH_CHUNK_ROWS, rows - at))
        yield pa.RecordBatch.from_arrays(arrays, HEADER)


class Sending(ABC):
    """Rows for the table `orders` of a session."""

    session: Session

    def __init__(self, rows: int) -> None:
        self.count = rows
        self._ready: list[tuple[Any, ...]] = []

    def ready(self) -> list[tuple[Any, ...]]:
        """The same rows as tuples."""
        if not self._ready:
            for batch in batches(self.count):
                self._ready += zip(*(column.to_pylist() for column in batch.columns), strict=True)
        return self._ready

    def ours(self, bad: float = 0.0) -> int:
        """Generate and send; `bad` is the share of rows whose key is an earlier row's. Returns how many failed."""
        entity = self.session.entity("orders")
        assert entity is not None
        target = self.session.target(Writing(entity, entity.fields))
        failed = 0
        for batch in batches(self.count):
            target.begin()
            failed += len(target.send(spoilt(batch, bad) if bad else batch).failures)
            target.proof()
            target.commit()
        return failed

    def in_chunks(
        self, execute: Callable[[list[tuple[Any, ...]]], object], commit: Callable[[], object]
    ) -> int:
        """A driver's executemany of ready tuples, committed as often as ours."""
        for at in range(0, self.count, limits.PUSH_CHUNK_ROWS):
            execute(self.ready()[at : at + limits.PUSH_CHUNK_ROWS])
            commit()
        return 0

    @abstractmethod
    def executemany(self) -> int:
        """The driver's executemany, through a connection that was open before."""

    @abstractmethod
    def clear(self) -> None:
        """Empty the table."""

    def ways(self, shares: Iterable[float]) -> dict[str, Callable[[], int]]:
        """Ours, the driver's, and ours with shares of bad rows, by the names that the figures go by."""
        spoiling = {named(share): lambda share=share: self.ours(share) for share in shares}
        return {"ours": self.ours, "executemany": self.executemany, **spoiling}

    def timed(self, action: Callable[[], int]) -> tuple[float, int]:
        """Seconds that an action takes from an empty table, and what it returns."""
        self.clear()
        start = time.perf_counter()
        answer = action()
        return time.perf_counter() - start, answer


def named(share: float) -> str:
    """How the figures call a share of bad rows."""
    return f"{share:.1%} bad"


def spoilt(batch: pa.RecordBatch, share: float) -> pa.RecordBatch:
    """A batch in which so many rows, at even distances, repeat the key of the row before them."""
    keys = batch.column(0).to_numpy().copy()
    places = np.arange(int(1 / share) - 1, keys.size, int(1 / share))
    keys[places] = keys[places - 1]
    return batch.set_column(0, "id", pa.array(keys))


def judged_bad(
    found: Figures, rows: int, slower: dict[float, float], name: str
) -> Iterator[tuple[str, float, float, bool]]:
    """For each share of bad rows, the time it took against none, the most it may, and whether that holds and all were
    told."""
    clean = found["ours"][0]
    for share, most in slower.items():
        seconds, failed = found[named(share)]
        right = failed == int(rows * share)
        yield (
            f"{name}, {share:.1%} bad rows: time of clean",
            seconds / clean,
            most,
            seconds / clean <= most and right,
        )
