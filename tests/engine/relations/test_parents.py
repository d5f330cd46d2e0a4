"""Choosing parents: as even or as uneven as asked, one to one, in unique pairs, without circles."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webapp import limits
from webapp.engine import random
from webapp.engine.relations.cardinality import ChildCounts, ChildDistribution
from webapp.engine.types import relations

KEY = random.key("seed", "fld_1")
ROWS = np.arange(200_000, dtype=np.uint64)
SHAPES = ["uniform", "zipf", "normal"]


def chi_square(counts, expected):
    """Return the distance of the statistic from its mean, in standard deviations."""
    freedom = counts.size - 1
    return float((((counts - expected) ** 2 / expected).sum() - freedom) / np.sqrt(2 * freedom))


@pytest.mark.parametrize("n", [2, 7, 100, 1_500, 3 * 2**20 + 1])
def test_uniform_parents_are_chosen_with_equal_probability(n):
    drawn = relations.create_picker("uniform", n).draw(KEY, ROWS)
    bins = min(n, 300)
    counts = np.bincount((drawn * np.uint64(bins) // np.uint64(n)).astype(np.int64), minlength=bins)
    sizes = np.bincount(np.arange(n, dtype=np.int64) * bins // n, minlength=bins)
    assert abs(chi_square(counts, ROWS.size * sizes / n)) < 4


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 2**40), key=st.integers(0, 2**64 - 1), salt=st.integers(-5, 5))
def test_a_parent_exists_and_is_the_same_for_all_children(shape, n, key, salt):
    drawn = relations.create_picker(shape, n).draw(np.uint64(key), ROWS[:200], salt)
    assert int(drawn.max()) < n
    scattered = relations.create_picker(shape, n).draw(np.uint64(key), ROWS[150:10:-7], salt)
    assert scattered.tolist() == drawn[150:10:-7].tolist()


@pytest.mark.parametrize("shape", SHAPES)
def test_another_salt_is_another_draw(shape):
    picker = relations.create_picker(shape, 1_000)
    assert (picker.draw(KEY, ROWS) == picker.draw(KEY, ROWS, 1)).mean() < 0.05


@pytest.mark.parametrize(
    ("n", "exponent"), [(1_000, 1), (10**5, 1), (10**9, 1), (10**9, 2), (5_000, Fraction(1, 2))]
)
def test_the_most_popular_parent_has_its_zipf_share(n, exponent):
    picker = relations.create_picker("zipf", n, Fraction(exponent))
    ranks = np.arange(1, min(n, 10**5) + 1, dtype=np.float64)
    whole = (ranks ** -float(exponent)).sum()
    if n > ranks.size:
        low, high, s = ranks.size + 0.5, n + 0.5, float(exponent)
        whole += np.log(high / low) if s == 1 else (low ** (1 - s) - high ** (1 - s)) / (s - 1)
    weights = picker.ranks._weights
    assert abs(weights[0] / sum(weights) * whole - 1) < 1e-4
    _, counts = np.unique(picker.draw(KEY, ROWS), return_counts=True)
    share = 1 / whole
    assert abs(counts.max() / ROWS.size - share) < 5 * np.sqrt(share / ROWS.size)


def test_popular_parents_are_not_the_first_ones_and_depend_on_the_key():
    picker = relations.create_picker("zipf", 100_000)
    tops = []
    for seed in "abcdefgh":
        found, counts = np.unique(picker.draw(random.key(seed, "f"), ROWS[:20_000]), return_counts=True)
        tops.append(int(found[counts.argmax()]))
    assert len(set(tops)) == 8
    assert max(tops) > 50_000


@pytest.mark.parametrize("n", [60, 100_000, 10**12])
def test_normal_parents_lie_around_the_middle(n):
    drawn = relations.create_picker("normal", n).draw(KEY, ROWS).astype(np.float64)
    # Cut at three deviations, a normal distribution keeps 0.98658 of its deviation.
    assert abs(drawn.mean() / n - 0.5) < 0.5 / n + 0.002
    assert abs(drawn.std() / (n / 6) - 0.98658) < 0.01
    assert abs((drawn < n / 6).mean() - 0.0215) < 0.005


@pytest.mark.parametrize("n", [0, limits.MAX_PARENTS + 1])
@pytest.mark.parametrize("shape", SHAPES)
def test_no_parents_or_too_many_are_rejected(shape, n):
    with pytest.raises(ValueError):
        relations.create_picker(shape, n)


@pytest.mark.parametrize("roots", [1, 7])
def test_managers_come_before_their_people(roots):
    found, having = relations.self_reference_parents(KEY, ROWS, roots)
    assert np.array_equal(having, roots <= ROWS)
    assert bool((found[having] < ROWS[having]).all())
    assert not found[~having].any()


def test_managers_are_any_earlier_row_with_equal_probability():
    rows = ROWS[1000:]
    found, _ = relations.self_reference_parents(KEY, rows)
    counts = np.bincount((found * np.uint64(100) // rows).astype(np.int64), minlength=100)
    assert abs(chi_square(counts, rows.size / 100)) < 4
    far = np.arange(2**40, 2**40 + 50_000, dtype=np.uint64)
    low = relations.self_reference_parents(KEY, far)[0] & np.uint64(63)
    assert abs(chi_square(np.bincount(low.astype(np.int64), minlength=64), far.size / 64)) < 4


def test_a_managers_row_does_not_depend_on_other_requested_rows():
    whole, _ = relations.self_reference_parents(KEY, ROWS)
    few, _ = relations.self_reference_parents(KEY, ROWS[[90_000, 5, 17]])
    assert few.tolist() == whole[[90_000, 5, 17]].tolist()


@pytest.mark.parametrize("n", [1, 10, 1_024, 1_025, 40_000])
def test_one_to_one_takes_every_parent_once_and_can_be_undone(n):
    found = relations.one_to_one_parents(KEY, ROWS[:n], n)
    assert np.array_equal(np.sort(found), ROWS[:n])
    assert np.array_equal(relations.one_to_one_children(KEY, found, n), ROWS[:n])


SHARES = [(30, 1), (25, 2), (1, 10), (0, 1), (999, 10), (7, 3), (99, 1)]


@pytest.mark.parametrize(("numerator", "denominator"), SHARES)
def test_ranks_count_the_rows_that_are_not_blank(numerator, denominator):
    rows = ROWS[:20_050]
    full = ~random.blank_mask(KEY, rows, numerator, denominator)
    expected = np.where(full, np.cumsum(full) - 1, -1)
    ranks = random.filled_rank(KEY, rows, numerator, denominator)
    assert np.array_equal(ranks, expected)
    scattered = rows[[20_049, 3, 3, 777, 12_345]]
    assert np.array_equal(
        random.filled_rank(KEY, scattered, numerator, denominator), expected[scattered.view(np.int64)]
    )
    back = random.filled_row(KEY, ranks[full].view(np.uint64), numerator, denominator)
    assert np.array_equal(back, rows[full])


@pytest.mark.parametrize(("numerator", "denominator"), SHARES)
def test_the_number_of_rows_not_blank_is_known_beforehand(numerator, denominator):
    full = ~random.blank_mask(KEY, ROWS[:20_000], numerator, denominator)
    for count in (0, 1, 37, 100, 150, 999, 1_000, 19_999, 20_000):
        there = int(full[:count].sum())
        bound = random.filled_count(count, numerator, denominator)
        assert there <= bound <= count
        if count % 100 == 0:
            assert there == bound


def test_ranks_far_out_are_exact_too():
    rows = np.arange(2**52, 2**52 + 3_000, dtype=np.uint64)
    ranks = random.filled_rank(KEY, rows, 125, 10)
    full = ranks >= 0
    assert np.array_equal(np.diff(ranks[full]), np.ones(full.sum() - 1))
    assert np.array_equal(random.filled_row(KEY, ranks[full].view(np.uint64), 125, 10), rows[full])


def test_one_to_one_with_blanks_takes_no_parent_twice():
    ranks = random.filled_rank(KEY, ROWS[:10_000], 30, 1)
    found = relations.one_to_one_parents(KEY, ranks[ranks >= 0].view(np.uint64), 7_000)
    assert np.array_equal(np.sort(found), ROWS[:7_000])


@pytest.mark.parametrize(("na", "nb"), [(1, 1), (3, 5), (40, 31), (100, 1_000)])
def test_pairs_are_all_there_once(na, nb):
    a, b = relations.unique_pairs(KEY, ROWS[: na * nb], na, nb)
    assert len(set(zip(a.tolist(), b.tolist(), strict=True))) == na * nb
    assert (int(a.max()), int(b.max())) == (na - 1, nb - 1)


@pytest.mark.parametrize("nb", [5, 8, 60, 5_000])
def test_no_parent_has_a_partner_twice(nb):
    bound = ChildCounts(5_000, ChildDistribution(0, 5)).bind(KEY)
    owners, positions = bound.owners(np.arange(bound.total, dtype=np.uint64))
    found = relations.distinct_partners(KEY, owners, positions, nb)
    assert int(found.max()) == nb - 1
    assert len(set(zip(owners.tolist(), found.tolist(), strict=True))) == bound.total
    if nb <= 60:
        assert abs(chi_square(np.bincount(found.astype(np.int64)), bound.total / nb)) < 4


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 3_000), st.integers(0, 2**64 - 1))
def test_a_permutation_by_a_vector_of_keys_hits_everything_once(n, key):
    keys = np.full(n, key, np.uint64)
    sent = random.permutation_by(keys, ROWS[:n], n)
    assert np.array_equal(np.sort(sent), ROWS[:n])


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 2**62), st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**62)), min_size=1)
)
def test_every_key_of_a_vector_goes_its_own_way(n, asked):
    keys = np.array([key for key, _ in asked], np.uint64)
    rows = np.array([row % n for _, row in asked], np.uint64)
    alone = [int(random.permutation_by(keys[i : i + 1], rows[i : i + 1], n)[0]) for i in range(keys.size)]
    assert random.permutation_by(keys, rows, n).tolist() == alone
    assert max(alone) < n


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_short_permutations_have_all_orders_with_equal_probability(n):
    keys = random.bits(KEY, ROWS)
    places = [random.permutation_by(keys, np.full(keys.size, i, np.uint64), n) for i in range(n)]
    code = sum(place * np.uint64(n**i) for i, place in enumerate(places))
    _, counts = np.unique(code, return_counts=True)
    assert counts.size == factorial(n)
    assert abs(chi_square(counts, keys.size / counts.size)) < 4


@pytest.mark.parametrize("n", [8, 9, 13, 30, 100, 127, 128, 200])
def test_two_places_of_a_permutation_are_independent(n):
    keys = random.bits(KEY, ROWS)
    places = [
        random.permutation_by(keys, np.full(keys.size, i, np.uint64), n).astype(np.int64) for i in range(4)
    ]
    for item, other in itertools.combinations(places, 2):
        counts = np.bincount((item - other) % n, minlength=n)
        assert counts[0] == 0
        assert abs(chi_square(counts[1:], keys.size / (n - 1))) < 4.5
