"""Shared code of `push` and `push_mysql`: the benchmark template's rows, sent through a connector's target,
and the same rows as tuples for a driver."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from bench.generate import ENV, HEADER, plan
from webapp import limits
from webapp.connectors.base import Session, WriteSpec
from webapp.engine.blocks import BoundPlan

Figures = dict[str, tuple[float, int]]
"""Seconds of each variant, and the number of rows it reported as invalid."""


def batches(rows: int) -> Iterator[pa.RecordBatch]:
    """Generate the benchmark template's rows."""
    bound = BoundPlan(plan(), ENV)
    for at in range(0, rows, limits.PUSH_CHUNK_ROWS):
        arrays = bound.block(at, min(limits.PUSH_CHUNK_ROWS, rows - at))
        yield pa.RecordBatch.from_arrays(arrays, HEADER)


class Sending(ABC):
    """Return rows for the table `orders` of a session."""

    session: Session

    def __init__(self, rows: int) -> None:
        self.count = rows
        self._ready: list[tuple[Any, ...]] = []

    def ready(self) -> list[tuple[Any, ...]]:
        """Return the same rows as tuples."""
        if not self._ready:
            for batch in batches(self.count):
                self._ready += zip(*(column.to_pylist() for column in batch.columns), strict=True)
        return self._ready

    def ours(self, bad: float = 0.0) -> int:
        """Generate and send rows; `bad` is the share of rows whose key repeats an earlier one. Return the
        number of failed rows."""
        entity = self.session.entity("orders")
        assert entity is not None
        target = self.session.target(WriteSpec(entity, entity.fields))
        failed = 0
        for batch in batches(self.count):
            target.begin()
            failed += len(target.send(spoilt(batch, bad) if bad else batch).failures)
            target.commit_token()
            target.commit()
        return failed

    def in_chunks(
        self, execute: Callable[[list[tuple[Any, ...]]], object], commit: Callable[[], object]
    ) -> int:
        """A driver's executemany of existing tuples, committed as often as Rowsmith commits."""
        for at in range(0, self.count, limits.PUSH_CHUNK_ROWS):
            execute(self.ready()[at : at + limits.PUSH_CHUNK_ROWS])
            commit()
        return 0

    @abstractmethod
    def executemany(self) -> int:
        """Run the driver's executemany over an open connection."""

    @abstractmethod
    def clear(self) -> None:
        """Empty the table."""

    def ways(self, shares: Iterable[float]) -> dict[str, Callable[[], int]]:
        """Return the variants by name: Rowsmith, the driver, and Rowsmith with shares of invalid rows."""
        spoiling = {named(share): lambda share=share: self.ours(share) for share in shares}
        return {"ours": self.ours, "executemany": self.executemany, **spoiling}

    def timed(self, action: Callable[[], int]) -> tuple[float, int]:
        """Return the seconds of an action that starts with an empty table, and its result."""
        self.clear()
        start = time.perf_counter()
        answer = action()
        return time.perf_counter() - start, answer


def named(share: float) -> str:
    """Return the name of a share of invalid rows."""
    return f"{share:.1%} bad"


def spoilt(batch: pa.RecordBatch, share: float) -> pa.RecordBatch:
    """Return a batch in which this number of evenly distributed rows repeat the key of the previous row."""
    keys = batch.column(0).to_numpy().copy()
    places = np.arange(int(1 / share) - 1, keys.size, int(1 / share))
    keys[places] = keys[places - 1]
    return batch.set_column(0, "id", pa.array(keys))


def judged_bad(
    found: Figures, rows: int, slower: dict[float, float], name: str
) -> Iterator[tuple[str, float, float, bool]]:
    """Return, for each share of invalid rows, the time compared with none, the maximum, and whether it holds
    and all invalid rows were reported."""
    clean = found["ours"][0]
    for share, most in slower.items():
        seconds, failed = found[named(share)]
        right = failed == int(rows * share)
        yield (
            f"{name}, {share:.1%} invalid rows: time compared with none",
            seconds / clean,
            most,
            seconds / clean <= most and right,
        )
