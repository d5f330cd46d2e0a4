"""The budget of processor time: what counts, what raises it, and where it does not apply."""

from __future__ import annotations

import threading

import pytest

from webapp import limits
from webapp.engine import processor_time
from webapp.engine.processor_time import CpuBudget, CpuBudgetError


class Clock:
    """A processor clock that only tests advance."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_time_counts_only_inside_the_budget(clock):
    budget = CpuBudget(30, clock, clock)
    clock.now = 100
    with budget:
        clock.now = 104
        assert budget.seconds_used == 4
    clock.now = 200
    with budget:
        clock.now = 203
        assert processor_time.seconds_used() == 7
    assert budget.seconds_used == 7


def test_few_rows_have_a_third_of_the_time(clock):
    with CpuBudget(30, clock, clock):
        clock.now = 10
        processor_time.check()
        clock.now = 10.1
        with pytest.raises(CpuBudgetError) as caught:
            processor_time.check()
    assert caught.value.faults[0].code == "too_slow"
    assert "more than 10 s" in caught.value.faults[0].message


def test_time_in_which_the_thread_waits_does_not_count(clock):
    waits = Clock()
    with CpuBudget(30, clock, waits):
        clock.now, waits.now = 1, 1_000
        processor_time.check()


def test_pieces_that_are_generated_later_count(clock):
    def pieces():
        for seconds in (4, 7):
            clock.now += seconds
            processor_time.check()
            yield seconds

    with CpuBudget(30, clock, clock) as budget:
        later = processor_time.within_budget(pieces())
    clock.now = 100
    assert next(later) == 4
    assert budget.used == 4
    clock.now = 200
    with pytest.raises(CpuBudgetError):
        next(later)
    assert processor_time.current_budget() is None


def test_many_rows_have_time_in_proportion_and_few_take_none_away(clock):
    with CpuBudget(30, clock, clock) as budget:
        processor_time.raise_limit(2 * limits.MAX_ROWS_PER_GENERATION)
        processor_time.raise_limit(1)
        assert budget.limit == 60


def test_background_work_has_no_budget():
    assert processor_time.current_budget() is None
    processor_time.check()
    processor_time.raise_limit(10)
    assert processor_time.seconds_used() == 0


def test_a_budget_is_of_one_thread(clock):
    seen = []
    with CpuBudget(1, clock, clock) as budget:
        thread = threading.Thread(target=lambda: seen.append(processor_time.current_budget()))
        thread.start()
        thread.join()
        assert processor_time.current_budget() is budget
    assert seen == [None]


def test_each_table_of_a_request_has_a_budget_of_its_own(clock):
    with CpuBudget(30, clock, clock) as request:
        clock.now = 9
        for _ in range(3):
            with processor_time.table_budget():
                clock.now += 9
                processor_time.check()
        assert processor_time.seconds_used() == 9
        processor_time.check()
        with pytest.raises(CpuBudgetError), processor_time.table_budget():
            clock.now += 11
            processor_time.check()
        assert request.seconds_used == 9


def test_all_tables_together_have_a_limit(clock):
    with CpuBudget(30, clock, clock):
        tables = 0
        with pytest.raises(CpuBudgetError):
            while tables < 100:
                with processor_time.table_budget():
                    clock.now += 9
                    processor_time.check()
                tables += 1
    assert tables == limits.TABLES_SECONDS // 9


def test_a_table_of_background_work_has_no_budget():
    with processor_time.table_budget():
        assert processor_time.current_budget() is None
        processor_time.check()
