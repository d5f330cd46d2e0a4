"""Bad rows are taken out of a chunk in few attempts, and no other row with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.connectors.row_isolation import BatchSizer, RowRejection, isolate_bad_rows

ROWS = 1_000
# A set that is drawn without looking for values it does not have yet: that takes long on a busy machine.
BAD = st.lists(st.integers(0, 59), max_size=60).map(set)


class Target:
    """Takes what has no bad row; says of others what `tells` asks of it."""

    def __init__(self, bad: set[int], tells: str) -> None:
        self.bad, self.tells = bad, tells
        self.attempts = 0
        self.taken: list[int] = []

    def __call__(self, piece: np.ndarray) -> RowRejection | None:
        self.attempts += 1
        places = [place for place, row in enumerate(piece.tolist()) if row in self.bad]
        if not places:
            self.taken += piece.tolist()
            return None
        text = RowRejection("check", "no")
        known = {
            "nothing": text,
            "at": replace(text, at=places[0]),
            "bad": replace(text, bad=np.array(places)),
            "suspect": replace(text, suspect=places[0]),
            "the wrong one": replace(text, suspect=(places[0] + 1) % piece.size),
            "one beyond": replace(text, suspect=piece.size),
        }
        return known[self.tells]


@pytest.mark.parametrize("tells", ["nothing", "at", "bad", "suspect", "the wrong one", "one beyond"])
@given(bad=BAD)
def test_only_the_bad_rows_are_rejected_and_the_others_are_sent_in_order(tells, bad):
    target = Target(bad, tells)
    failures = isolate_bad_rows(np.arange(60), target)
    assert [failure.index for failure in failures] == sorted(bad)
    assert target.taken == [row for row in range(60) if row not in bad]


@pytest.mark.parametrize(("tells", "most"), [("at", 3), ("bad", 2), ("suspect", 4), ("nothing", 25)])
def test_a_row_that_is_named_costs_few_attempts(tells, most):
    target = Target({700}, tells)
    isolate_bad_rows(np.arange(ROWS), target)
    assert target.attempts <= most


@pytest.mark.parametrize(
    ("tells", "most"), [("at", 1_100), ("suspect", 1_100), ("nothing", 1_100), ("the wrong one", 1_200)]
)
def test_a_target_that_rejects_every_row_is_asked_about_once_per_row(tells, most):
    target = Target(set(range(ROWS)), tells)
    failures = isolate_bad_rows(np.arange(ROWS), target, BatchSizer(ROWS, ROWS))
    assert [failure.index for failure in failures] == list(range(ROWS))
    assert target.attempts <= most


@pytest.mark.parametrize("tells", ["nothing", "at", "bad", "suspect", "the wrong one", "one beyond"])
@given(bad=BAD)
def test_a_pace_rejects_only_the_bad_rows_and_keeps_the_order(tells, bad):
    target = Target(bad, tells)
    failures = isolate_bad_rows(np.arange(60), target, BatchSizer(60, 60))
    assert [failure.index for failure in failures] == sorted(bad)
    assert target.taken == [row for row in range(60) if row not in bad]


def test_rows_after_a_streak_of_rejected_ones_are_sent_together_again():
    target = Target(set(range(100)), "at")
    isolate_bad_rows(np.arange(10_000), target, BatchSizer(64, 10_000, 120))
    assert target.attempts < 250
