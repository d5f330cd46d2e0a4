"""Distributions have the specified moments, shape and tails, calculated with integers only."""

from __future__ import annotations

import math
from fractions import Fraction
from hashlib import blake2b
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.test_random import chi_square
from webapp.engine import distributions, fixed_point, random

F = Fraction
N = 100_000
KEY = random.key("seed", "distribution")
RANDOM = random.bits(KEY, np.arange(N, dtype=np.uint64))
SCALE = 10**6
"""Units of a value, so that rounding does not show."""


def normal_cdf(mean, stddev):
    return lambda x: NormalDist(mean, stddev).cdf(x)


def lognormal_parameters(mean, stddev):
    variance = math.log(1 + (stddev / mean) ** 2)
    return math.log(mean) - variance / 2, math.sqrt(variance)


def lognormal_cdf(mean, stddev):
    mu, sigma = lognormal_parameters(mean, stddev)
    return lambda x: NormalDist(mu, sigma).cdf(math.log(x)) if x > 0 else 0.0


CONTINUOUS = {
    # name: (distribution in units, mean, standard deviation, cdf)
    "normal": (distributions.normal(F(50 * SCALE), F(7 * SCALE)), 50, 7, normal_cdf(50, 7)),
    "normal around nothing": (distributions.normal(F(0), F(SCALE)), 0, 1, normal_cdf(0, 1)),
    "exponential": (distributions.exponential(F(3 * SCALE)), 3, 3, lambda x: 1 - math.exp(-x / 3)),
    "lognormal": (distributions.lognormal(F(20 * SCALE), F(5 * SCALE)), 20, 5, lognormal_cdf(20, 5)),
    "pareto": (
        distributions.pareto(F(9, 2), F(2 * SCALE)),
        2 * 4.5 / 3.5,
        2 / 3.5 * math.sqrt(4.5 / 2.5),
        lambda x: 1 - (2 / x) ** 4.5 if x > 2 else 0.0,
    ),
}
continuous = pytest.mark.parametrize("name", CONTINUOUS)

DISCRETE = {
    # name: (distribution, mean, standard deviation, probability of k)
    "poisson": (distributions.poisson(F(7, 2)), 3.5, math.sqrt(3.5), lambda k: _poisson(3.5, k)),
    "poisson, many": (distributions.poisson(F(400)), 400, 20, lambda k: _poisson(400, k)),
    "binomial": (
        distributions.binomial(20, F(3, 10)),
        6,
        math.sqrt(4.2),
        lambda k: math.comb(20, k) * 0.3**k * 0.7 ** (20 - k) if k <= 20 else 0.0,
    ),
    "geometric": (distributions.geometric(F(1, 5)), 4, math.sqrt(20), lambda k: 0.2 * 0.8**k),
    "zipf": (distributions.zipf(F(1), 50), *(0, 0), lambda k: 1 / (k + 1) / _harmonic(50) if k < 50 else 0.0),
}
discrete = pytest.mark.parametrize("name", DISCRETE)


def _poisson(mean, k):
    return math.exp(k * math.log(mean) - mean - math.lgamma(k + 1))


def _harmonic(n):
    return sum(1 / k for k in range(1, n + 1))


@continuous
def test_mean_and_deviation_are_as_requested(name):
    source, mean, deviation, _ = CONTINUOUS[name]
    drawn = source.draw(RANDOM) / SCALE
    assert abs(drawn.mean() - mean) < 4 * deviation / math.sqrt(N)
    fourth = ((drawn - drawn.mean()) ** 4).mean()
    assert abs(drawn.var() - deviation**2) < 4 * math.sqrt((fourth - drawn.var() ** 2) / N)


@continuous
def test_the_shape_is_that_of_the_distribution(name):
    source, _, _, cdf = CONTINUOUS[name]
    drawn = np.sort(source.draw(RANDOM) / SCALE)
    expected = np.array([cdf(x) for x in drawn])
    steps = np.arange(N + 1) / N
    assert max(np.abs(expected - steps[:-1]).max(), np.abs(expected - steps[1:]).max()) < 0.007


@pytest.mark.parametrize("name", ["normal", "exponential", "lognormal", "pareto"])
def test_the_far_tail_is_there_in_ten_million_rows(name):
    source, *_ = CONTINUOUS[name]
    edge = int(source.values_at(np.array([2**64 - 2**64 // 1_000_000], np.uint64))[0])
    beyond = 0
    for start in range(0, 10_000_000, 1_000_000):
        rows = np.arange(start, start + 1_000_000, dtype=np.uint64)
        beyond += int((source.draw(random.bits(KEY, rows)) > edge).sum())
    assert 1 <= beyond <= 30


@continuous
def test_values_never_fall_as_the_probability_rises(name):
    source, *_ = CONTINUOUS[name]
    ends = np.concatenate([np.uint64(2) ** np.arange(64, dtype=np.uint64), RANDOM])
    ends = np.sort(np.concatenate([ends, ~ends, ends + np.uint64(1)]))
    assert (np.diff(source.values_at(ends)) >= 0).all()


@discrete
def test_each_number_comes_as_often_as_it_should(name):
    source, mean, deviation, probability = DISCRETE[name]
    drawn = source.draw(RANDOM)
    expected = N * np.array([probability(k) for k in range(int(drawn.max()) + 1)])
    counts = np.bincount(drawn, minlength=expected.size)
    often = expected > 20
    rest = np.array([N - expected[often].sum()]), np.array([N - counts[often].sum()])
    stored = rest[0] > 5
    assert (
        abs(
            chi_square(np.append(counts[often], rest[1][stored]), np.append(expected[often], rest[0][stored]))
        )
        < 4
    )
    if deviation:
        assert abs(drawn.mean() - mean) < 4 * deviation / math.sqrt(N)


@pytest.mark.parametrize("exponent", ["0.5", "1", "1.2", "2"])
def test_ranks_of_a_billion_have_the_share_of_their_law(exponent):
    ranks, s = 10**9, float(exponent)
    first = np.arange(1, 2_000_001, dtype=float)
    tail = math.log(ranks / 2e6) if s == 1 else (ranks ** (1 - s) - 2e6 ** (1 - s)) / (1 - s)
    total = (first**-s).sum() + tail
    source = distributions.zipf(F(exponent), ranks)
    top = source._weights[0] / sum(source._weights)
    assert top == pytest.approx(1 / total, rel=1e-4)
    drawn = source.draw(RANDOM)
    assert 0 <= drawn.min() <= drawn.max() < ranks
    for edge in (10, 5000, 10**6):
        share = (first[: min(edge, first.size)] ** -s).sum() / total
        assert abs((drawn < edge).mean() - share) < 4.5 * math.sqrt(share * (1 - share) / N) + 1e-4


@pytest.mark.parametrize("ranks", [1, 2, 4095, 4096, 4097, 8191, 8192, 8193, 100_000, 2**40])
def test_every_rank_belongs_to_one_run(ranks):
    source = distributions.zipf(F(1), ranks)
    widths = source._widths or [1] * len(source._starts)
    assert source._starts[0] == 0
    assert [start + width for start, width in zip(source._starts, widths, strict=True)] == [
        *source._starts[1:],
        ranks,
    ]
    assert min(source._weights) > 0
    assert source.bounds() == (0, ranks - 1)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(CONTINUOUS)), st.floats(0.001, 0.6), st.floats(0.61, 0.999))
def test_a_cut_distribution_stays_inside_and_keeps_its_shape(name, low, high):
    source, _, _, cdf = CONTINUOUS[name]
    least, largest = (int(source.values_at(np.array([int(p * 2**64)], np.uint64))[0]) for p in (low, high))
    drawn = source.within(least, largest).draw(RANDOM[:20_000])
    assert least <= drawn.min() <= drawn.max() <= largest
    middle = (least + largest) // 2
    share = (cdf(middle / SCALE) - cdf(least / SCALE)) / (cdf(largest / SCALE) - cdf(least / SCALE))
    assert abs((drawn <= middle).mean() - share) < 5 * math.sqrt(0.25 / 20_000)


def test_a_truncation_that_leaves_nothing_is_rejected():
    with pytest.raises(distributions.TooNarrowError):
        distributions.normal(F(0), F(1)).within(50, 60)
    with pytest.raises(distributions.TooNarrowError):
        distributions.poisson(F(1)).within(100, None)
    with pytest.raises(distributions.TooWideError):
        distributions.normal(F(0), F(2**60))


def test_a_cut_discrete_distribution_keeps_its_proportions():
    drawn = distributions.poisson(F(4)).within(3, 5).draw(RANDOM)
    assert set(drawn.tolist()) == {3, 4, 5}
    counts = np.bincount(drawn)[3:]
    weights = np.array([_poisson(4, k) for k in (3, 4, 5)])
    assert abs(chi_square(counts, N * weights / weights.sum())) < 4


@pytest.mark.parametrize("stddev", [F(1, 1000), F(1, 3), F(1), F(12345, 7), F(10**15), F(2**56)])
def test_every_width_of_a_normal_is_carried(stddev):
    drawn = distributions.normal(F(1, 4), stddev).draw(RANDOM)
    exact = np.array([NormalDist(0.25, float(stddev)).inv_cdf((int(r) + 0.5) / 2**64) for r in RANDOM[:2000]])
    assert np.abs(drawn[:2000] - exact).max() <= 0.5001 + float(stddev) * 1e-6


def test_tables_are_what_they_have_always_been():
    normal, exponential = distributions._normal_table(), distributions._exponential_table()
    powers, slopes = fixed_point._powers()
    found = {
        name: blake2b(table.tobytes(), digest_size=8).hexdigest()
        for name, table in [
            ("normal", normal.value),
            ("exponential", exponential.value),
            ("powers", powers),
            ("slopes", slopes),
        ]
    }
    assert found == GOLDEN


GOLDEN = {
    "normal": "27e41c7484770593",
    "exponential": "114e3b9a8d463a4e",
    "powers": "7ffa78fac5bafa65",
    "slopes": "b172d87e18ab7777",
}


@given(st.integers(-2 * fixed_point.ONE, 61 * fixed_point.ONE))
def test_powers_of_two_are_right_to_nine_digits(exponent):
    found = int(fixed_point.exp2(np.array([exponent]))[0])
    exact = 2 ** (exponent / fixed_point.ONE)
    assert abs(found - exact) <= 0.5001 + exact * 3e-10


def test_powers_stop_at_the_largest_number():
    assert fixed_point.exp2(np.array([62, 63, 5000, -3, -5000]) << 40).tolist() == [2**62, 2**62, 2**62, 0, 0]


@given(st.integers(1, 4000))
def test_logarithms_are_right_to_twenty_digits(k):
    found = F(fixed_point.natural_logs(4096)[k], 1 << 80)
    assert abs(found - fixed_point.ln(F(k))) < F(1, 10**20)


@given(st.integers(-(2**46), 2**46), st.integers(0, 2**36 - 1), st.integers(20, 62))
def test_a_product_of_83_bits_is_exact(value, factor, shift):
    assert fixed_point.multiply_and_shift(np.array([value]), factor, shift).tolist() == [
        value * factor >> shift
    ]
