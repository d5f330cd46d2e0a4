"""The laws of cells: integers from a key and a row, even, independent of order, the same everywhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webapp.engine import random as engine_random

ROWS = np.arange(100_000, dtype=np.uint64)
KEY = engine_random.key("seed", "fld_1")


def chi_square(counts: np.ndarray, expected: np.ndarray | float) -> float:
    """Return the distance of the statistic from its mean, in standard deviations."""
    freedom = counts.size - 1
    return float((((counts - expected) ** 2 / expected).sum() - freedom) / np.sqrt(2 * freedom))


def splitmix(z: int) -> int:
    """The finaliser as its paper writes it, in Python's own integers."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_bits_are_those_of_the_paper(key, row):
    expected = splitmix((row * 0x9E3779B97F4A7C15 + key) % 2**64)
    assert engine_random.bits(np.uint64(key), np.array([row], np.uint64)).tolist() == [expected]


def test_keys_are_what_they_have_always_been():
    assert int(engine_random.key("seed", "fld_1")) == 0xAE565AF559EB4C61
    assert int(engine_random.derive(np.uint64(7), -3)) == 0xBCDB8E44E28D3E7E


def test_keys_are_distinguished_by_the_ends_of_their_parts():
    assert engine_random.key("ab", "c") != engine_random.key("a", "bc")


@given(st.lists(st.integers(0, 2**53), min_size=1, max_size=50), st.integers(0, 2**64 - 1))
def test_bits_depend_on_neither_order_nor_neighbours(rows, key):
    together = engine_random.bits(np.uint64(key), np.array(rows, np.uint64))
    alone = [int(engine_random.bits(np.uint64(key), np.array([row], np.uint64))[0]) for row in rows]
    assert together.tolist() == alone


@given(st.integers(1, 2**64), st.integers(0, 2**64 - 1))
def test_below_stays_below(n, key):
    drawn = engine_random.below(engine_random.bits(np.uint64(key), ROWS[:100]), n)
    assert max(drawn.tolist()) < n


@given(st.integers(-(2**62), 2**62), st.integers(0, 2**62))
def test_between_stays_between(low, width):
    drawn = engine_random.between(engine_random.bits(KEY, ROWS[:100]), low, low + width).tolist()
    assert low <= min(drawn) <= max(drawn) <= low + width


@pytest.mark.parametrize("n", [2, 3, 10, 97, 1000])
def test_draws_are_even(n):
    counts = np.bincount(engine_random.below(engine_random.bits(KEY, ROWS), n).astype(np.int64), minlength=n)
    assert abs(chi_square(counts, ROWS.size / n)) < 4


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5000), st.integers(0, 2**64 - 1))
def test_a_permutation_hits_everything_once_and_can_be_undone(n, key):
    rows = np.arange(n, dtype=np.uint64)
    sent = engine_random.permutation(np.uint64(key), rows, n)
    assert np.array_equal(np.sort(sent), rows)
    assert np.array_equal(engine_random.permutation_inverse(np.uint64(key), sent, n), rows)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1025, 2**63 - 1), st.lists(st.integers(0, 2**63 - 2), min_size=1, max_size=30, unique=True)
)
def test_a_permutation_of_any_size_stays_inside_and_never_meets(n, rows):
    rows = np.array(sorted({row % n for row in rows}), np.uint64)
    sent = engine_random.permutation(KEY, rows, n)
    assert int(sent.max()) < n
    assert len(set(sent.tolist())) == rows.size
    assert np.array_equal(engine_random.permutation_inverse(KEY, sent, n), rows)


@pytest.mark.parametrize("n", [100, 1100])
def test_a_permutation_sends_a_row_anywhere_as_likely(n):
    keys = engine_random.bits(KEY, ROWS[:2000])
    found = np.array([engine_random.permutation(key, np.array([5], np.uint64), n)[0] for key in keys]).astype(
        np.int64
    )
    counts = np.bincount(found * 10 // n, minlength=10)
    assert abs(chi_square(counts, keys.size / 10)) < 4


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=40).filter(any))
@settings(max_examples=40, deadline=None)
def test_weights_are_kept(weights):
    drawn = engine_random.AliasSampler(weights).draw(engine_random.bits(KEY, ROWS[:20_000])).astype(np.int64)
    counts = np.bincount(drawn, minlength=len(weights))
    share = np.array(weights, float) / sum(weights)
    assert not counts[np.array(weights) == 0].any()
    deviation = np.sqrt(np.maximum(20_000 * share * (1 - share), 1))
    assert (np.abs(counts - 20_000 * share) < 6 * deviation).all()


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 1000), st.integers(0, 2**50), st.integers(0, 2**64 - 1))
def test_blanks_are_exact_in_every_hundred(tenths, hundred, key):
    rows = np.arange(100, dtype=np.uint64) + np.uint64(100 * hundred)
    blank = engine_random.blank_mask(np.uint64(key), rows, tenths, 10)
    assert blank.sum() == (hundred + 1) * tenths // 10 - hundred * tenths // 10
    some = rows[::7][::-1]
    assert np.array_equal(engine_random.blank_mask(np.uint64(key), some, tenths, 10), blank[::7][::-1])


def test_chances_are_kept():
    assert engine_random.chance(engine_random.bits(KEY, ROWS), 0, 1).sum() == 0
    assert engine_random.chance(engine_random.bits(KEY, ROWS), 1, 1).sum() == ROWS.size
    third = engine_random.chance(engine_random.bits(KEY, ROWS), 1, 3)
    assert abs(third.mean() - 1 / 3) < 4 * np.sqrt(2 / 9 / ROWS.size)


@pytest.mark.parametrize("n", [2**20 + 1, 10**9, 3_000_000_019, 2**32 - 1, 2**32, 2**40 + 7])
def test_wide_draws_are_the_high_word_of_the_product(n):
    random = engine_random.bits(np.uint64(7), np.arange(2000, dtype=np.uint64))
    assert engine_random.below(random, n).tolist() == [int(item) * n >> 64 for item in random]
