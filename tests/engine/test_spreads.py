"""Distributions by type and options: their moments, shape and tails. Null values are independent of other values."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.engine.test_random import chi_square
from tests.engine.types.made import NOW, bound
from webapp.engine import text
from webapp.engine.blocks import BoundPlan

N = 100_000
TAIL_ROWS = 10_000_000
DAY = 86_400


@dataclass(frozen=True)
class Law:
    """What a field's values are to follow; ``below(x)`` is the share of values up to x."""

    kind: str
    options: dict[str, Any]
    below: Callable[[float], float]
    mean: float | None = None
    deviation: float | None = None


def truncated(law: NormalDist, low: float, high: float) -> Callable[[float], float]:
    """Return the share below x of the distribution between ``low`` and ``high``."""
    first, last = law.cdf(low), law.cdf(high)
    return lambda x: (min(max(law.cdf(x), first), last) - first) / (last - first)


def lognormal(mean: float, deviation: float) -> Callable[[float], float]:
    variance = math.log(1 + (deviation / mean) ** 2)
    law = NormalDist(math.log(mean) - variance / 2, math.sqrt(variance))
    return lambda x: law.cdf(math.log(x)) if x > 0 else 0.0


def summed(chance: Callable[[int], float], most: int, first: int = 0) -> Callable[[float], float]:
    """The share up to x of whole numbers from ``first`` on that have these chances."""
    shares = np.cumsum([chance(k) for k in range(first, most + 1)])
    return lambda x: float(shares[min(int(x) - first, most - first)]) if x >= first else 0.0


def halved(half_life: float, size: int) -> Callable[[float], float]:
    """Of counts back from an end: each half-life halves them."""
    return lambda back: (1 - 0.5 ** ((math.floor(back) + 1) / half_life)) / (1 - 0.5 ** (size / half_life))


def poisson(mean: float) -> Callable[[int], float]:
    return lambda k: math.exp(k * math.log(mean) - mean - math.lgamma(k + 1))


def binomial(trials: int, p: float) -> Callable[[int], float]:
    return lambda k: math.comb(trials, k) * p**k * (1 - p) ** (trials - k)


def zipf(alpha: float, ranks: int) -> Callable[[int], float]:
    total = sum(k**-alpha for k in range(1, ranks + 1))
    return lambda k: k**-alpha / total


def moments_of(chance: Callable[[int], float], most: int, first: int = 0) -> tuple[float, float]:
    mean = sum(k * chance(k) for k in range(first, most + 1))
    return mean, math.sqrt(sum((k - mean) ** 2 * chance(k) for k in range(first, most + 1)))


BINS = [
    {"from": 0, "to": 10, "weight": 3},
    {"from": 10, "to": 30, "weight": 1},
    {"from": 30, "to": 40, "weight": 2},
]
FINE = {"decimals": 6}
LAST = datetime(2024, 1, 31, tzinfo=UTC)
YEAR = {"min": "2023-02-01", "max": "2024-01-31"}

SMOOTH = {
    "uniform": Law("number", {"min": 0, "max": 1, **FINE}, lambda x: x, 0.5, 1 / math.sqrt(12)),
    "normal": Law("normal", {"mean": 50, "stddev": 7, **FINE}, NormalDist(50, 7).cdf, 50, 7),
    "normal, cut": Law(
        "number",
        {"distribution": "normal", "mean": 0, "stddev": 2, "min": -1, "max": 5, **FINE},
        truncated(NormalDist(0, 2), -1, 5),
    ),
    "lognormal": Law("lognormal", {"mean": 20, "stddev": 5, **FINE}, lognormal(20, 5), 20, 5),
    "exponential": Law("exponential", {"mean": 3, **FINE}, lambda x: 1 - math.exp(-x / 3), 3, 3),
    "exponential, rate": Law("exponential", {"lambda": 0.5, **FINE}, lambda x: 1 - math.exp(-x / 2), 2, 2),
    "pareto": Law(
        "pareto",
        {"alpha": 4.5, "min": 2, **FINE},
        lambda x: 1 - (2 / x) ** 4.5 if x > 2 else 0.0,
        9 / 3.5,
        2 / 3.5 * math.sqrt(4.5 / 2.5),
    ),
    "pareto without deviation": Law(
        "pareto", {"alpha": 1.5, **FINE}, lambda x: 1 - x**-1.5 if x > 1 else 0.0
    ),
    "histogram": Law(
        "float",
        {"distribution": "histogram", "bins": BINS, "precision": 6},
        lambda x: float(np.interp(x, [0, 10, 30, 40], [0, 1 / 2, 2 / 3, 1])),
        2.5 + 20 / 6 + 35 / 3,
        math.sqrt(
            100 / 6
            + (27000 - 1000) / 3 / 20 / 6
            + (64000 - 27000) / 3 / 10 / 3
            - (2.5 + 20 / 6 + 35 / 3) ** 2
        ),
    ),
    "float, normal": Law(
        "float",
        {"distribution": "normal", "mean": -3, "stddev": 0.25, "precision": 9},
        NormalDist(-3, 0.25).cdf,
        -3,
        0.25,
    ),
    "currency": Law(
        "currency",
        {"mean": 5000, "stddev": 900, "min": -100_000, "max": 100_000},
        NormalDist(5000, 900).cdf,
        5000,
        900,
    ),
}

WHOLE = {
    "poisson": Law("poisson", {"lambda": 3.5}, summed(poisson(3.5), 60), 3.5, math.sqrt(3.5)),
    "poisson, number": Law(
        "number", {"distribution": "poisson", "mean": 40}, summed(poisson(40), 200), 40, math.sqrt(40)
    ),
    "binomial": Law(
        "binomial", {"trials": 20, "probability": 0.3}, summed(binomial(20, 0.3), 20), 6, math.sqrt(4.2)
    ),
    "geometric": Law("geometric", {"probability": 0.2}, lambda x: 1 - 0.8 ** (x + 1), 4, math.sqrt(20)),
    "zipf": Law("zipf", {"max": 50, "alpha": 1}, summed(zipf(1, 50), 50, 1), *moments_of(zipf(1, 50), 50, 1)),
    "zipf, steep": Law(
        "number",
        {"distribution": "zipf", "max": 900, "alpha": 2.5},
        summed(zipf(2.5, 900), 900, 1),
        *moments_of(zipf(2.5, 900), 900, 1),
    ),
    "enum": Law(
        "enum",
        {"values": [0, 1, 2, 3], "weights": [5, 0, 3, 2]},
        summed([0.5, 0, 0.3, 0.2].__getitem__, 3),
        1.2,
        1.249,
    ),
    "boolean": Law(
        "boolean",
        {"truthy": 1, "falsy": 0, "probability": 0.01},
        summed([0.99, 0.01].__getitem__, 1),
        0.01,
        0.0995,
    ),
    "histogram": Law(
        "number",
        {"distribution": "histogram", "edges": [0, 2, 5], "weights": [3, 1]},
        summed([3 / 8, 3 / 8, 1 / 16, 1 / 16, 1 / 16, 1 / 16].__getitem__, 5),
        *moments_of([3 / 8, 3 / 8, 1 / 16, 1 / 16, 1 / 16, 1 / 16].__getitem__, 5),
    ),
}

TIMES = {
    # Counted back from the last day or second.
    "recent dates": Law(
        "date", {**YEAR, "distribution": "recent_bias", "halflife_days": 30}, halved(30, 365)
    ),
    "recent dates, a decade": Law("date", {"distribution": "recent_bias"}, halved(90, 3653)),
    "recent times": Law(
        "datetime", {**YEAR, "distribution": "recent_bias", "halflife_days": 7}, halved(7 * DAY, 365 * DAY)
    ),
    "dates, normal": Law(
        "date",
        {**YEAR, "distribution": "normal"},
        lambda back: truncated(NormalDist(182, 365 / 6), -0.5, 364.5)(math.floor(back) + 0.5),
    ),
    "times, even": Law("datetime", YEAR, lambda back: (back + 1) / (365 * DAY)),
}


def made(law: Law) -> BoundPlan:
    return bound([{"name": "x", "type": law.kind, "options": law.options}])


def numbers(source: BoundPlan, count: int, start: int = 0) -> np.ndarray:
    """``float64[count]``."""
    parts = []
    for row in range(start, start + count, 8192):
        column = text.decode_dictionary(source.block(row, min(8192, start + count - row))[0])
        kind = column.type
        if pa.types.is_decimal(kind):
            parts.append(text.decimal_units(column) / 10**kind.scale)
        elif pa.types.is_date32(kind):
            parts.append(column.cast(pa.int32()).to_numpy().astype(np.float64))
        elif pa.types.is_timestamp(kind):
            parts.append(column.cast(pa.int64()).to_numpy() / 1e6)
        else:
            parts.append(column.to_numpy().astype(np.float64))
    return np.concatenate(parts)


def assert_moments(drawn: np.ndarray, mean: float, deviation: float) -> None:
    assert abs(drawn.mean() - mean) < 4 * deviation / math.sqrt(N)
    fourth = ((drawn - drawn.mean()) ** 4).mean()
    assert (
        abs(drawn.var() - deviation**2) < 4 * math.sqrt((fourth - drawn.var() ** 2) / N) + 1e-3 * deviation**2
    )


def distance(drawn: np.ndarray, below: Callable[[float], float]) -> float:
    """Kolmogorov's: the largest gap between the shares of the values and those of the law."""
    values, counts = np.unique(drawn, return_counts=True)
    share = np.cumsum(counts) / drawn.size
    return float(np.abs(share - np.array([below(float(value)) for value in values])).max())


@pytest.mark.parametrize("name", SMOOTH)
def test_numbers_of_a_smooth_law_follow_it(name):
    law = SMOOTH[name]
    drawn = numbers(made(law), N)
    assert distance(drawn, law.below) < 0.007
    if law.mean is not None:
        assert_moments(drawn, law.mean, law.deviation)


@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_come_as_often_as_they_should(name):
    law = WHOLE[name]
    drawn = numbers(made(law), N).astype(int)
    assert distance(drawn, law.below) < 0.007
    assert_moments(drawn, law.mean, law.deviation)
    first = int(drawn.min())
    expected = N * np.diff([0.0, *(law.below(k) for k in range(first, int(drawn.max()) + 1))])
    counts = np.bincount(drawn - first, minlength=expected.size)
    assert (counts[expected == 0] == 0).all()
    often = expected > 20
    rest = N - expected[often].sum()
    seen, required = counts[often], expected[often]
    if rest > 5:
        seen, required = np.append(seen, N - seen.sum()), np.append(required, rest)
    assert abs(chi_square(seen, required)) < 4


@pytest.mark.parametrize("name", TIMES)
def test_times_lie_as_their_law_says(name):
    law = TIMES[name]
    drawn = numbers(made(law), N)
    unit = DAY if law.kind == "date" else 1
    last = (NOW if "max" not in law.options else LAST).timestamp() // unit
    if law.kind == "datetime":
        last += DAY - 1  # a date without a time includes the whole day
    back = last - drawn
    assert back.min() >= 0
    assert distance(back, law.below) < 0.007


def test_the_jitter_of_a_time_series_is_even():
    options = {"start": "2024-01-01", "interval": "1h", "jitter": "30min"}
    source = bound([{"name": "x", "type": "time_series", "options": options}])
    late = (numbers(source, N) - datetime(2024, 1, 1, tzinfo=UTC).timestamp()) - 3600 * np.arange(N)
    counts = np.bincount(late.astype(int))
    assert counts.size == 1801
    assert abs(chi_square(counts, N / 1801)) < 4
    assert_moments(late, 900, math.sqrt((1801**2 - 1) / 12))


@pytest.mark.parametrize(
    ("kind", "options", "edge", "share"),
    [
        ("normal", {"mean": 0, "stddev": 1000}, 4753.4, 1e-6),
        ("exponential", {"mean": 1000}, 13_815.5, 1e-6),
        ("lognormal", {"mean": 1000, "stddev": 500}, 8440.6, 1 - lognormal(1000, 500)(8440.6)),
        ("pareto", {"alpha": 2.5, "min": 1000}, 251_188.6, 1e-6),
        ("geometric", {"probability": 0.01}, 1373, 0.99**1374),
        ("poisson", {"lambda": 4}, 15, 1 - summed(poisson(4), 60)(15)),
        ("binomial", {"trials": 30, "probability": 0.2}, 17, sum(map(binomial(30, 0.2), range(18, 31)))),
        ("zipf", {"max": 10**6, "alpha": 2}, 3 * 10**5, (1 / (3 * 10**5) - 1e-6) / (math.pi**2 / 6)),
    ],
)
def test_ten_million_rows_reach_as_far_as_the_law_does(kind, options, edge, share):
    source = bound([{"name": "x", "type": kind, "options": options}])
    beyond = sum(
        int((text.decode_dictionary(source.block(row, 8192)[0]).to_numpy() > edge).sum())
        for row in range(0, TAIL_ROWS, 8192)
    )
    expected = TAIL_ROWS * share
    assert expected > 5
    assert beyond
    assert abs(beyond - expected) < 4 * math.sqrt(expected) + 1


@pytest.mark.parametrize(("percent", "each"), [(30, [30]), (12.5, [12, 13]), (0.1, [0] * 9 + [1])])
def test_blanks_are_exact_in_every_full_hundred(percent, each):
    source = bound([{"name": "x", "type": "number", "percent_blank": percent}])
    blank = np.concatenate([block[0].is_null().to_numpy(False) for block in source.blocks(0, N)])
    assert blank.reshape(-1, 100).sum(axis=1).tolist() == each * (N // 100 // len(each))
    far = source.block(10**12, 1000)[0].is_null().to_numpy(False)
    assert far.reshape(-1, 100).sum(axis=1).tolist() == (each * 10)[:10]


@pytest.mark.parametrize("percent", [30, 12.5, 0.1])
def test_nulls_depend_neither_on_the_value_nor_on_the_position(percent):
    options = {"min": 0, "max": 9}
    full = bound([{"name": "x", "type": "number", "options": options}])
    some = bound([{"name": "x", "type": "number", "options": options, "percent_blank": percent}])
    rows = 10 * N
    values = np.concatenate([block[0].to_numpy() for block in full.blocks(0, rows)])
    blank = np.concatenate([block[0].is_null().to_numpy(False) for block in some.blocks(0, rows)])
    stored = np.concatenate([pc.fill_null(block[0], -1).to_numpy() for block in some.blocks(0, rows)])
    assert (stored == np.where(blank, -1, values)).all()
    share = blank.sum() / rows
    counts = np.bincount(values[blank], minlength=10)
    assert abs(chi_square(counts, share * np.bincount(values, minlength=10))) < 4
    places = np.bincount(np.flatnonzero(blank) % 100, minlength=100)
    assert abs(chi_square(places, blank.sum() / 100)) < 4


def test_two_columns_are_blank_in_rows_of_their_own():
    names = ("a", "b")
    source = bound([{"name": name, "type": "number", "percent_blank": 30} for name in names])
    blank = [
        np.concatenate([block[place].is_null().to_numpy(False) for block in source.blocks(0, N)])
        for place in (0, 1)
    ]
    both = int((blank[0] & blank[1]).sum())
    assert abs(both - 0.09 * N) < 4 * math.sqrt(N * 0.09 * 0.91)
