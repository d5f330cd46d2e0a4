"""Aggregates over children are exact in blocks of any size, and never include values of other parents."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.engine.relations import totals
from webapp.engine.relations.totals import Reduction, SumOverflowError

KINDS = ["sum", "count", "min", "max", "first", "any", "avg"]
FOLDS = {
    "sum": totals.sums,
    "min": totals.minima,
    "max": totals.maxima,
    "first": totals.firsts,
    "any": totals.anys,
    "avg": totals.averages,
}
CHILDREN = st.lists(
    st.lists(st.tuples(st.integers(-(10**15), 10**15), st.booleans()), max_size=6), max_size=30
)


def columns(families, blanks=True):
    flat = [child for family in families for child in family]
    values = np.array([value for value, _ in flat], np.int64)
    valid = np.array([seen for _, seen in flat], bool) if blanks else None
    sizes = np.array([len(family) for family in families], np.int64)
    return values, valid, sizes


def expected(kind, families):
    found = []
    for family in families:
        seen = [value for value, valid in family if valid]
        result = {
            "sum": sum(seen),
            "count": len(seen),
            "any": any(seen),
            "min": min(seen, default=0),
            "max": max(seen, default=0),
            "first": seen[0] if seen else 0,
            "avg": round(Fraction(sum(seen), len(seen))) if seen else 0,
        }
        found.append((result[kind], bool(seen)))
    return found


def pairs(folded):
    return list(zip(folded[0].tolist(), folded[1].tolist(), strict=True))


@pytest.mark.parametrize("kind", sorted(FOLDS))
@given(families=CHILDREN)
def test_a_reduction_is_that_of_each_parents_own_children(kind, families):
    values, valid, sizes = columns(families)
    starts = np.cumsum(sizes) - sizes
    assert pairs(FOLDS[kind](values, valid, starts, sizes)) == expected(kind, families)


@pytest.mark.parametrize("kind", sorted(FOLDS))
@given(families=CHILDREN, data=st.data())
def test_parents_can_be_requested_in_any_order_and_separately(kind, families, data):
    values, valid, sizes = columns(families)
    starts = np.cumsum(sizes) - sizes
    request = data.draw(st.lists(st.sampled_from(range(len(families))))) if families else []
    chosen = np.array(request, np.int64)
    found = FOLDS[kind](values, valid, starts[chosen], sizes[chosen])
    assert pairs(found) == expected(kind, [families[i] for i in request])


@pytest.mark.parametrize("kind", KINDS)
@given(families=CHILDREN, cuts=st.lists(st.integers(0, 180), max_size=12), blanks=st.booleans())
def test_pieces_do_not_show(kind, families, cuts, blanks):
    if not blanks:
        families = [[(value, True) for value, _ in family] for family in families]
    values, valid, sizes = columns(families, blanks)
    fold = Reduction(kind, sizes)
    edges = [0, *sorted(min(cut, values.size) for cut in cuts), values.size]
    for low, high in pairwise(edges):
        fold.add(values[low:high], None if valid is None else valid[low:high])
    assert pairs(fold.result()) == expected(kind, families)


def test_a_childless_parent_does_not_get_its_neighbours_value():
    values, sizes = np.array([5, 7], np.int64), np.array([0, 1, 0, 1, 0])
    starts = np.cumsum(sizes) - sizes
    for fold in (
        totals.minima,
        totals.maxima,
        totals.firsts,
        totals.sums,
    ):
        assert pairs(fold(values, None, starts, sizes)) == [
            (0, False),
            (5, True),
            (0, False),
            (7, True),
            (0, False),
        ]


def test_children_that_are_all_null_count_as_none():
    values, sizes = np.array([5, 7], np.int64), np.array([2])
    found = totals.minima(values, np.array([False, False]), np.array([0]), sizes)
    assert pairs(found) == [(0, False)]


@pytest.mark.parametrize("pieces", [1, 2, 3])
def test_a_sum_beyond_64_bits_is_rejected_unless_only_an_intermediate_one(pieces):
    big = 2**62
    cases = [([big, big], False), ([big, big, -big], True), ([-big, -big, -1], False), ([-big, -big], True)]
    for values, fits in cases:
        column = np.array(values, np.int64)
        fold = Reduction("sum", np.array([0, len(values), 0]))
        for piece in np.array_split(column, pieces):
            fold.add(piece)
        if fits:
            assert fold.result()[0].tolist() == [0, sum(values), 0]
            assert totals.sums(column, None, np.array([0]), np.array([len(values)]))[0].tolist() == [
                sum(values)
            ]
        else:
            with pytest.raises(SumOverflowError):
                fold.result()
            with pytest.raises(SumOverflowError):
                totals.sums(column, None, np.array([0]), np.array([len(values)]))


def test_the_running_total_of_other_parents_may_pass_64_bits():
    values = np.full(1000, 2**62, np.int64)
    found, _ = totals.sums(values, None, np.arange(1000), np.ones(1000, np.int64))
    assert found.tolist() == [2**62] * 1000


@given(st.integers(-(2**63) + 1, 2**63 - 1), st.integers(1, 2**62))
def test_half_even_is_what_exact_fractions_round_to(numerator, denominator):
    found = totals.half_even(np.array([numerator], np.int64), np.array([denominator], np.int64))
    assert found.tolist() == [round(Fraction(numerator, denominator))]


def test_children_missing_or_over_are_noticed():
    fold = Reduction("sum", np.array([2, 1]))
    fold.add(np.array([1, 2], np.int64))
    with pytest.raises(ValueError):
        fold.result()
    with pytest.raises(ValueError):
        fold.add(np.array([1, 2], np.int64))
