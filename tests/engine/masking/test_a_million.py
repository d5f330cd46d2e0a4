"""One million different values: none meets another, none is left in its own row, strategy by strategy."""

from __future__ import annotations

import pytest

from tests.engine.masking.speak import APART, check_apart


@pytest.mark.parametrize(("kind", "source", "strategy"), APART)
def test_a_million_values_stay_a_million_and_none_stays_itself(kind, source, strategy):
    check_apart(kind, source, strategy, 1_000_000)
