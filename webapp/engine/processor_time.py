"""The budget of processor time for the rows of one request.

Rows, fields, characters and bytes are limited one by one; their product can still occupy a processor for minutes. A
request runs inside a `CpuBudget`, and the engine calls `check` before each column and after each step of a formula.
Time counts only while the thread of the request works, so a busy machine, a slow target or a slow client costs a
request nothing. Background work has no budget: people can cancel it.

The budget is stored per thread instead of being passed as an argument, because everything that a request generates
counts, independent of the service that generates it.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from webapp import limits
from webapp.engine.errors import SpecError
from webapp.errors import Fault

T = TypeVar("T")


class CpuBudgetError(SpecError):
    """Rows that take more processor time than their request has. ``seconds`` is the limit."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        text = f"Generating these rows takes more than {seconds:,.0f} s of processor time."
        hint = "Use fewer rows, fewer or simpler formulas, or shorter texts. Exports have no such limit."
        super().__init__([Fault("fields", "too_slow", text, hint)])


class CpuBudget:
    """Processor seconds of one request, or of one table of a request that has many. Counts while a thread is inside its
    ``with`` block. The seconds of a budget inside another one count only for the inner one."""

    __slots__ = ("_began", "_entered", "_outer", "clock", "elapsed", "limit", "seconds", "tables", "used")

    def __init__(
        self,
        seconds: float,
        clock: Callable[[], float] = time.thread_time,
        elapsed: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.seconds, self.clock, self.elapsed = seconds, clock, elapsed
        self.limit = seconds * limits.GENERATE_MIN_SHARE
        self.used = self.tables = self._began = self._entered = 0.0
        self._outer: CpuBudget | None = None

    def __enter__(self) -> CpuBudget:
        self._outer, _current.budget = _current.budget, self
        self._began, self._entered = self.clock(), self.elapsed()
        return self

    def __exit__(self, *_: object) -> None:
        used = self.clock() - self._began
        self.used += used
        if self._outer is not None:
            self._outer.exclude(used)
        _current.budget, self._outer = self._outer, None

    def exclude(self, seconds: float) -> None:
        """Leave these seconds out of the time used so far."""
        self._began += seconds

    @property
    def seconds_used(self) -> float:
        """Seconds used so far."""
        return self.used + self.clock() - self._began if _current.budget is self else self.used

    def raise_limit(self, rows: int) -> None:
        """Raise the limit to that of ``rows`` rows. It is never lowered."""
        share = rows / limits.MAX_ROWS_PER_GENERATION
        self.limit = max(self.limit, self.seconds * share)

    def check(self) -> None:
        """Raise `CpuBudgetError` if the time is used up."""
        # A thread works no longer than the time that passes, and only the processor clock takes a system call.
        upper_bound = self.used + self.elapsed() - self._entered
        if upper_bound > self.limit and self.seconds_used > self.limit:
            raise CpuBudgetError(self.limit)


class _Current(threading.local):
    budget: CpuBudget | None = None


_current = _Current()


def current_budget() -> CpuBudget | None:
    """The budget of this thread's request; None in background work."""
    return _current.budget


def seconds_used() -> float:
    """Seconds that this thread's request has used; 0 in background work."""
    return 0.0 if _current.budget is None else _current.budget.seconds_used


def raise_limit(rows: int) -> None:
    """Raise the limit of this thread's request to that of ``rows`` rows."""
    if _current.budget is not None:
        _current.budget.raise_limit(rows)


@contextmanager
def table_budget() -> Iterator[None]:
    """Give a table that a request prepares beside others a budget of its own, that of a small request, so that the
    number of tables is not limited by it. All tables together have `limits.TABLES_SECONDS`. Does nothing in background
    work."""
    outer = _current.budget
    if outer is None:
        yield
        return
    table = CpuBudget(outer.seconds, outer.clock, outer.elapsed)
    table.limit = min(table.limit, max(0.0, limits.TABLES_SECONDS - outer.tables))
    try:
        with table:
            yield
    finally:
        outer.tables += table.used


@contextmanager
def exclude_shared_work() -> Iterator[None]:
    """Exclude work that is done once for all requests, such as an index, from the budget of this request."""
    outer = _current.budget
    if outer is None:
        yield
        return
    with CpuBudget(math.inf, outer.clock, outer.elapsed):
        yield


def within_budget(pieces: Iterable[T]) -> Iterator[T]:
    """Yield ``pieces`` that are generated later, each within the budget that the request of this thread has now."""
    budget = _current.budget
    return iter(pieces) if budget is None else _within_budget(budget, iter(pieces))


def _within_budget(budget: CpuBudget, pieces: Iterator[T]) -> Iterator[T]:
    while True:
        with budget:
            try:
                piece = next(pieces)
            except StopIteration:
                return
        yield piece
        del piece  # its memory is free while the next one is made


def check() -> None:
    """Raise `CpuBudgetError` if this thread's request has used up its time."""
    if _current.budget is not None:
        _current.budget.check()
