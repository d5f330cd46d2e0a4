"""Children by cardinality: exact totals, counts within bounds, and random access to every row."""

from __future__ import annotations

import itertools
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webapp import limits
from webapp.engine import random
from webapp.engine.relations.cardinality import (
    ChildCountError,
    ChildCounts,
    ChildDistribution,
    TooManyRowsError,
)

KEY = random.key("seed", "fld_1")
MEANT = {"poisson", "geometric"}


def rows(*at: int) -> np.ndarray:
    return np.arange(*at, dtype=np.uint64)


@st.composite
def spreads(draw, most=40):
    least = draw(st.integers(0, 5))
    largest = draw(st.integers(least, most))
    shape = draw(st.sampled_from(["uniform", "weights", "poisson", "geometric", "zipf"]))
    if shape == "weights":
        numbers = st.lists(st.integers(0, 50), min_size=largest - least + 1, max_size=largest - least + 1)
        return ChildDistribution(least, largest, shape, weights=tuple(draw(numbers.filter(any))))
    mean = draw(st.fractions(least, largest, max_denominator=100)) if shape in MEANT else None
    return ChildDistribution(least, largest, shape, mean)


@st.composite
def plans(draw, fewest=0):
    spread, n = draw(spreads()), draw(st.integers(fewest, 5_200))
    children = draw(st.none() | st.integers(n * spread.min_children, n * spread.max_children))
    return ChildCounts(n, spread, children)


@settings(max_examples=120, deadline=None)
@given(plans(), st.booleans(), st.integers(0, 2**64 - 1))
def test_everybodys_children_are_found_from_either_side(plan, mixed, key):
    bound = plan.bind(np.uint64(key), mixed)
    starts, counts = bound.spans(rows(plan.parents))
    assert counts.sum() == plan.total
    assert np.array_equal(np.cumsum(counts) - counts, starts)
    owners, positions = bound.owners(rows(plan.total))
    slots = bound.children_to_slots(rows(plan.total))
    assert np.array_equal(bound.slots_to_children(slots), rows(plan.total))
    assert np.array_equal(np.sort(slots), rows(plan.total))
    order = slots.astype(np.int64)
    assert np.array_equal(np.repeat(rows(plan.parents), counts)[order], owners)
    assert np.array_equal((np.arange(plan.total) - np.repeat(starts, counts))[order], positions)


@settings(max_examples=120, deadline=None)
@given(plans(), st.integers(0, 2**64 - 1))
def test_every_parent_has_a_number_of_children_between_min_and_max(plan, key):
    counts = plan.bind(np.uint64(key)).counts(rows(plan.parents))
    if plan.parents:
        assert counts.min() >= plan.min
        assert plan.spread.min <= plan.min <= plan.max <= plan.spread.max
        assert counts.max() <= plan.max
        assert plan.mean == Fraction(plan.total, plan.parents)


@settings(max_examples=80, deadline=None)
@given(plans(1), st.booleans(), st.data())
def test_batching_requests_does_not_change_the_responses(plan, mixed, data):
    bound = plan.bind(KEY, mixed)
    starts, counts = bound.spans(rows(plan.parents))
    request = data.draw(st.lists(st.integers(0, plan.parents - 1), min_size=1, max_size=40))
    some_starts, some_counts = plan.bind(KEY, mixed).spans(np.array(request, np.uint64))
    assert some_starts.tolist() == starts[request].tolist()
    assert some_counts.tolist() == counts[request].tolist()
    if plan.total:
        owners, positions = bound.owners(rows(plan.total))
        children = data.draw(st.lists(st.integers(0, plan.total - 1), min_size=1, max_size=40))
        found, at = plan.bind(KEY, mixed).owners(np.array(children, np.uint64))
        assert (found.tolist(), at.tolist()) == (owners[children].tolist(), positions[children].tolist())


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("chunk", [1_000, 8_192, 2_999])
def test_chunks_do_not_show(mixed, chunk):
    bound = ChildCounts(12_345, ChildDistribution(0, 6)).bind(KEY, mixed)
    whole, places = bound.owners(rows(bound.total))
    parts = [bound.owners(rows(at, min(at + chunk, bound.total))) for at in range(0, bound.total, chunk)]
    assert np.array_equal(np.concatenate([parents for parents, _ in parts]), whole)
    assert np.array_equal(np.concatenate([positions for _, positions in parts]), places)


@settings(max_examples=250, deadline=None)
@given(st.integers(1, 10**12), st.integers(0, 20), st.integers(0, 30), st.data())
def test_a_stated_number_of_children_is_met_exactly_at_any_size(parents, least, more, data):
    spread = ChildDistribution(least, least + more)
    children = data.draw(st.integers(parents * least, parents * (least + more)))
    plan = ChildCounts(parents, spread, children)
    assert plan.total == children
    bound = plan.bind(KEY)
    tail = rows(max(0, parents - 1_500), parents)
    starts, counts = bound.spans(tail)
    assert int(starts[-1] + counts[-1]) == children
    assert np.array_equal(np.cumsum(counts)[:-1], (starts - starts[0])[1:])
    assert counts.min() >= least
    assert counts.max() <= least + more
    if children:
        request = np.array(
            data.draw(st.lists(st.integers(0, children - 1), min_size=1, max_size=5)), np.uint64
        )
        owners, positions = bound.owners(request)
        starts, counts = bound.spans(owners)
        assert (starts + positions).tolist() == request.tolist()
        assert bool((positions < counts).all())


def test_blocks_of_a_stated_number_differ_by_one_child_at_most():
    bound = ChildCounts(10_000, ChildDistribution(0, 9), 34_567).bind(KEY)
    sums = bound.counts(rows(10_000)).reshape(10, 1000).sum(axis=1)
    assert set(sums.tolist()) == {3456, 3457}


@settings(max_examples=60, deadline=None)
@given(st.integers(1_000, limits.MAX_PARENTS), st.data())
def test_blocks_start_at_exact_fractions(parents, data):
    children = data.draw(st.integers(0, parents * 9))
    plan = ChildCounts(parents, ChildDistribution(0, 9), children)
    bound = plan.bind(KEY)
    blocks = data.draw(st.lists(st.integers(0, (parents - 1) // 1000), min_size=20, max_size=40))
    begins = [block * 1000 * children // parents for block in blocks]
    assert bound.starts(np.array(blocks, np.uint64) * np.uint64(1000)).tolist() == begins
    firsts = [begin for begin in begins if begin < children]
    if firsts:
        owners, positions = bound.owners(np.array(firsts, np.uint64))
        assert (bound.starts(owners) + positions).tolist() == firsts
        assert bool((positions < bound.counts(owners)).all())


def test_too_few_or_too_many_children_are_rejected_with_both_bounds():
    for children in (99, 501, -1):
        with pytest.raises(ChildCountError) as caught:
            ChildCounts(100, ChildDistribution(1, 5), children)
        assert (caught.value.least, caught.value.most) == (100, 500)
    with pytest.raises(ChildCountError):
        ChildCounts(0, ChildDistribution(0, 5), 1)


def test_numbers_beyond_the_row_range_are_rejected():
    with pytest.raises(TooManyRowsError):
        ChildCounts(limits.MAX_PARENTS + 1, ChildDistribution(0, 1))
    with pytest.raises(TooManyRowsError):
        ChildCounts(2**50, ChildDistribution(0, 2**13))


def test_no_parents_have_no_children():
    plan = ChildCounts(0, ChildDistribution(1, 5), 0)
    bound = plan.bind(KEY, is_shuffled=True)
    assert plan.total == 0
    assert [
        part.size for part in (*bound.owners(rows(0)), *bound.spans(rows(0)), *bound.children(rows(0)))
    ] == [0] * 6


def test_parents_that_have_no_children_are_passed_over():
    bound = ChildCounts(5_000_000, ChildDistribution(0, 3), 7).bind(KEY)
    owners, positions = bound.owners(rows(7))
    assert positions.tolist() == [0] * 7
    assert len(set(owners.tolist())) == 7
    assert bound.counts(owners).tolist() == [1] * 7
    assert bound.owners(np.array([6, 0], np.uint64))[0].tolist() == [owners[6], owners[0]]


def test_one_to_five_falls_on_two_hundred_each_of_every_thousand():
    plan = ChildCounts(10_000, ChildDistribution(1, 5))
    assert plan.total == 30_000
    for block in plan.bind(KEY).counts(rows(10_000)).reshape(10, 1000):
        assert Counter(block.tolist()) == dict.fromkeys(range(1, 6), 200)


def test_weights_are_kept_to_the_slot_and_gaps_stay_gaps():
    spread = ChildDistribution(0, 4, "weights", weights=(50, 0, 30, 0, 20))
    counts = ChildCounts(3_700, spread).bind(KEY).counts(rows(3_700))
    for block in counts[:3000].reshape(3, 1000):
        assert Counter(block.tolist()) == {0: 500, 2: 300, 4: 200}
    assert set(counts.tolist()) == {0, 2, 4}


@pytest.mark.parametrize("shape", ["uniform", "poisson", "geometric", "zipf"])
@pytest.mark.parametrize("mean", [Fraction(9, 4), Fraction(1, 1000), Fraction(79, 10)])
def test_a_mean_is_kept_with_any_truncation(shape, mean):
    plan = ChildCounts(100_000, ChildDistribution(0, 8, shape, mean))
    assert plan.total == mean * 100_000


def test_a_poisson_spread_is_one():
    mean = Fraction(23, 10)
    table = ChildDistribution(0, 30, "poisson", mean).slots(1000, None, 2300)
    share = np.exp(-2.3)
    for k in range(6):
        assert abs(np.count_nonzero(table == k) - 1000 * share) < 2
        share *= 2.3 / (k + 1)


def test_a_zipf_spread_keeps_its_tail():
    masses = 1 / np.arange(1, 1001)
    expected = 1000 * (masses * np.arange(1, 1001)).sum() / masses.sum()
    assert abs(ChildDistribution(1, 1000, "zipf").slots(1000).sum() / expected - 1) < 0.001


def test_slots_share_out_each_number_rounded_down_or_up():
    for least, largest, size in itertools.product((0, 1), (1, 3, 6, 17), (1, 7, 100, 1000)):
        table = ChildDistribution(least, largest).slots(size)
        counts = np.bincount(table - least, minlength=largest - least + 1)
        assert counts.max() - counts.min() <= 1
        assert counts.sum() == size


@settings(max_examples=120, deadline=None)
@given(spreads(), st.integers(1, 1000), st.data())
def test_a_table_can_have_any_sum_between_its_ends(spread, size, data):
    total = data.draw(st.integers(size * spread.min_children, size * spread.max_children))
    table = spread.slots(size, Fraction(total, size), total)
    assert table.sum() == total
    assert bool((np.diff(table) >= 0).all())
    assert table[0] >= spread.min_children
    assert table[-1] <= spread.max_children


def test_which_parents_have_many_children_is_up_to_the_key():
    plan = ChildCounts(50_000, ChildDistribution(1, 5))
    one, other = (plan.bind(random.key(seed, "f")).counts(rows(50_000)) for seed in ("a", "b"))
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.02
    assert abs(np.corrcoef(one[1:], one[:-1])[0, 1]) < 0.02
    places = one.reshape(50, 1000).mean(axis=0)
    assert abs(places.std() - np.sqrt(2 / 50)) < 0.02


def test_mixed_children_of_one_parent_lie_apart():
    bound = ChildCounts(10_000, ChildDistribution(3, 3)).bind(KEY, is_shuffled=True)
    children, counts = bound.children(rows(10_000))
    families = children.reshape(10_000, 3).astype(np.int64)
    assert counts.tolist() == [3] * 10_000
    assert np.abs(np.diff(families, axis=1)).mean() > 9_000
    assert abs(families.mean() - 15_000) < 150


@pytest.mark.parametrize("mixed", [False, True])
def test_children_are_those_that_name_the_parent_in_order(mixed):
    bound = ChildCounts(3_000, ChildDistribution(0, 4)).bind(KEY, mixed)
    request = np.array([2_999, 5, 6, 7, 1_000], np.uint64)
    children, counts = bound.children(request)
    owners, positions = bound.owners(children)
    assert owners.tolist() == np.repeat(request, counts).tolist()
    assert positions.tolist() == [i for count in counts for i in range(count)]


@pytest.mark.parametrize("children", [None, 3 * 10**12 + 12_345])
def test_the_row_at_ten_to_the_twelfth_is_generated_immediately(children):
    bound = ChildCounts(10**12, ChildDistribution(1, 5), children).bind(KEY)
    for first in (10**12, bound.total - 3):
        request = rows(first, first + 3)
        owners, positions = bound.owners(request)
        starts, counts = bound.spans(owners)
        assert (starts + positions).tolist() == request.tolist()
        assert bool((positions < counts).all())


def test_blocks_beyond_the_cache_answer_the_same(monkeypatch):
    plan = ChildCounts(40_000, ChildDistribution(0, 9), 150_001)
    request = random.below(random.bits(KEY, rows(3_000)), plan.total)
    expected = plan.bind(KEY).owners(request)
    monkeypatch.setattr(limits, "CARDINALITY_CACHE_BYTES", 8_192)
    small = plan.bind(KEY)
    for part in (request, request[:5]):
        owners, positions = small.owners(part)
        assert np.array_equal(owners, expected[0][: part.size])
        assert np.array_equal(positions, expected[1][: part.size])


def test_blocks_with_many_children_do_not_wrap_round():
    bound = ChildCounts(3_500, ChildDistribution(0, 1_000)).bind(KEY)
    starts, counts = bound.spans(rows(3_500))
    assert np.array_equal(np.cumsum(counts) - counts, starts)
    owners, positions = bound.owners(rows(bound.total)[::997])
    assert np.array_equal(starts[owners.astype(np.int64)] + positions, np.arange(bound.total)[::997])


def test_threads_share_one_without_getting_in_each_others_way():
    plan = ChildCounts(200_000, ChildDistribution(0, 5))
    request = random.below(random.bits(KEY, rows(64_000)), plan.total).reshape(32, 2_000)
    expected = [plan.bind(KEY).owners(part)[0].tolist() for part in request]
    shared = plan.bind(KEY)
    with ThreadPoolExecutor(4) as pool:
        assert [found[0].tolist() for found in pool.map(shared.owners, request)] == expected


def test_counts_are_what_they_have_always_been():
    plan = ChildCounts(1_010, ChildDistribution(0, 4))
    counts = plan.bind(KEY).counts(rows(1_010))
    assert counts[:8].tolist() == [4, 3, 1, 4, 2, 2, 1, 1]
    assert counts[-8:].tolist() == [0, 1, 4, 2, 3, 2, 0, 1]
    parents, positions = plan.bind(KEY, is_shuffled=True).owners(rows(6))
    assert parents.tolist() == [718, 782, 135, 119, 950, 412]
    assert positions.tolist() == [1, 1, 1, 0, 1, 0]


@pytest.mark.parametrize(
    "options",
    [
        {"min": 3, "max": 2},
        {"min": -1, "max": 2},
        {"min": 0, "max": limits.MAX_CARDINALITY + 1},
        {"min": 0, "max": 2, "weights": (1, 1, 1)},
        {"min": 0, "max": 2, "distribution": "weights", "weights": (1, 1)},
        {"min": 0, "max": 2, "distribution": "weights", "weights": (0, 0, 0)},
        {"min": 0, "max": 2, "distribution": "weights"},
        {"min": 0, "max": 2, "distribution": "poisson"},
        {"min": 0, "max": 2, "distribution": "poisson", "mean": Fraction(3)},
        {"min": 0, "max": 2, "distribution": "zipf", "exponent": Fraction(0)},
    ],
)
def test_an_impossible_distribution_is_rejected(options):
    with pytest.raises(ValueError):
        ChildDistribution(**options)
