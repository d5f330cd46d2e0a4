"""Counters, combinations, shares and amounts, digits, and parts of the calendar."""

from __future__ import annotations

import re
from collections import Counter
from datetime import date
from decimal import Decimal
from itertools import product

import pytest

from tests.engine.types.made import assert_laws, bound, faults, table, values
from webapp.engine.errors import SpecError


def test_a_counter_restarts_after_its_end():
    assert values("counter", 7, options={"start": 3, "step": 2, "end": 8}) == [3, 5, 7, 3, 5, 7, 3]
    assert values("counter", 5, options={"start": 0, "step": -5, "end": -10}) == [0, -5, -10, 0, -5]
    assert values("counter", 3, 10**12) == [10**12 + 1, 10**12 + 2, 10**12 + 3]


def test_a_counter_is_unique_for_one_round():
    source = bound([{"name": "x", "type": "counter", "options": {"end": 10}, "unique": True}])
    source.check(0, 10)
    with pytest.raises(SpecError):
        source.check(0, 11)


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"step": 0}, "options.step"),
        ({"start": 5, "end": 4}, "options.end"),
        ({"step": -1, "end": 4}, "options.end"),
    ],
)
def test_counters_without_an_end_are_rejected(options, path):
    assert faults("counter", options) == {path: "wrong_value"}


@pytest.mark.parametrize("kind", ["sequence", "counter"])
def test_a_sequence_ends_before_its_numbers_pass_64_bits(kind):
    options = {"step": 2**53 - 1}
    source = bound([{"name": "x", "type": kind, "options": options}])
    last = source.plan.layer.columns["x"].type.available_rows(None)
    source.check(last - 1, 1)
    assert values(kind, 1, last - 1, options=options) == [1 + (last - 1) * (2**53 - 1)]
    with pytest.raises(SpecError):
        source.check(last, 1)


LISTS = [["red", "blue"], [1, 2, 3], ["s", "l"]]


def test_every_combination_comes_once_in_order_and_then_again():
    generated = values("cartesian", 15, options={"lists": LISTS, "separator": "-"})
    every = ["-".join(map(str, chosen)) for chosen in product(*LISTS)]
    assert generated == every + every[:3]


def test_parts_of_the_same_lists_lie_side_by_side():
    fields = [
        {"name": str(part), "type": "cartesian", "options": {"lists": LISTS, "part": part}}
        for part in (1, 2, 3)
    ]
    rows = table(bound(fields), 0, 12)
    assert list(zip(rows["1"], rows["2"], rows["3"], strict=True)) == list(product(*LISTS))


def test_unique_combinations_leave_out_what_databases_take_for_the_same():
    lists = [["a", "A", "b"], ["x", "é", "e"]]
    generated = values("cartesian", 4, options={"lists": lists}, unique=True)
    assert generated == ["a x", "a é", "b x", "b é"]


@pytest.mark.parametrize(
    "options",
    [
        {"lists": [["a", "a b"], ["b c", "c"]]},
        {"lists": [["a", ""], ["b", ""]]},
        {"lists": [["a"], ["b"]], "separator": ""},
        {"lists": [["a"], ["b"]], "part": 1},
    ],
)
def test_combinations_with_ambiguous_text_are_not_unique(options):
    assert faults("cartesian", options, unique=True) == {"unique": "not_unique"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"lists": []}, {"options.lists": "too_short"}),
        ({"lists": [["a"], []]}, {"options.lists[1]": "too_short"}),
        ({"lists": [["a", None]]}, {"options.lists[0]": "wrong_value"}),
        ({"lists": [["a"]], "part": 2}, {"options.part": "out_of_range"}),
        ({"lists": [["a"]], "part": 1, "separator": "-"}, {"options.separator": "conflict"}),
    ],
)
def test_lists_that_cannot_be_combined_are_rejected(options, expected):
    assert faults("cartesian", options) == expected


def test_a_percentage_may_have_its_sign():
    generated = values("percentage", 1000)
    assert (min(generated), max(generated)) == (0, 100)
    signed = values("percentage", 50, options={"decimals": 1, "symbol": True})
    assert all(re.fullmatch(r"\d{1,3}\.\d%", item) for item in signed)
    assert_laws("percentage", {"min": -5, "decimals": 1, "symbol": True})


def test_money_has_its_symbol_behind_the_minus():
    generated = values("money", 500, options={"min": -20, "max": 20, "symbol": "€"})
    assert all(re.fullmatch(r"-?€\d+\.\d\d", item) for item in generated)
    assert any(item.startswith("-€") for item in generated)
    plain = values("money", 500, options={"min": -20, "max": 20, "symbol": ""})
    assert [Decimal(item.replace("€", "")) for item in generated] == plain
    assert_laws("money", {"min": -1, "max": 1})


def test_digits_are_placed_as_in_the_mask():
    generated = values("digit_sequence", 100, options={"format": r"(###) \#@-##"})
    assert all(re.fullmatch(r"\(\d{3}\) #@-\d\d", item) for item in generated)
    assert len(set(values("digit_sequence", 1000, options={"format": "###"}, unique=True))) == 1000


def test_business_days_are_even_from_monday_to_friday():
    generated = values("business_day", 10_000, options={"min": "2024-01-01", "max": "2024-12-31"})
    assert {day.weekday() for day in generated} == {0, 1, 2, 3, 4}
    assert (min(generated), max(generated)) == (date(2024, 1, 1), date(2024, 12, 31))
    assert len(set(generated)) == 262
    assert max(Counter(generated).values()) < 75


def test_every_business_day_of_a_span_can_be_unique():
    options = {"min": "1965-12-18", "max": "1970-01-11", "format": "YYYY-MM-DD"}
    space = bound([{"name": "x", "type": "business_day", "options": options}]).states["x"].size
    generated = values("business_day", space, options=options, unique=True)
    expected = {
        date.fromordinal(day).isoformat()
        for day in range(date(1965, 12, 18).toordinal(), date(1970, 1, 11).toordinal() + 1)
        if date.fromordinal(day).weekday() < 5
    }
    assert set(generated) == expected
    assert len(generated) == len(expected)


def test_a_weekend_has_no_business_day():
    assert faults("business_day", {"min": "2024-01-06", "max": "2024-01-07"}) == {"options.min": "too_narrow"}


def test_years_end_with_that_of_now():
    generated = values("year", 2000)
    assert (min(generated), max(generated)) == (1976, 2026)
    assert sorted(values("year", 4, options={"min": 2001, "max": 2004}, unique=True)) == [
        2001,
        2002,
        2003,
        2004,
    ]
    assert faults("year", {"min": 2005, "max": 2004}) == {"options.min": "min_above_max"}
    assert faults("year", {"min": 2030}) == {"options.min": "min_above_max"}


def test_quarters_are_four():
    assert set(values("quarter", 100)) == {"Q1", "Q2", "Q3", "Q4"}
    assert set(values("quarter", 100, options={"number": True})) == {1, 2, 3, 4}


HISTOGRAM = {"distribution": "histogram"}


def test_a_histogram_has_its_shares_and_its_ends():
    bins = [{"from": 0, "to": 10, "weight": 3}, {"from": 20, "to": 30, "weight": 1}]
    generated = values("number", 40_000, options={**HISTOGRAM, "bins": bins})
    counts = Counter(generated)
    assert set(counts) == {*range(10), *range(20, 31)}
    expected = {n: 3000 if n < 10 else 10_000 / 11 for n in counts}
    assert sum((counts[n] - expected[n]) ** 2 / expected[n] for n in counts) < 55
    edged = values("number", 100, options={**HISTOGRAM, "edges": [0, 10, 20], "weights": [3, 1]})
    assert 0 <= min(edged) <= max(edged) <= 20


def test_a_histogram_of_wide_bins_reaches_every_decimal():
    bins = [{"from": -1_000_000, "to": 1_000_000}]
    generated = values("number", 1000, options={**HISTOGRAM, "bins": bins, "decimals": 9})
    assert len({value % Decimal("0.001") for value in generated}) > 990
    assert min(generated) < -990_000 < 990_000 < max(generated)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"bins": "required"}),
        ({"bins": []}, {"bins": "required"}),
        ({"bins": [{"from": 0, "to": 1}], "edges": [0, 1]}, {"bins": "required"}),
        ({"bins": [{"from": 0, "to": 1}], "weights": [1]}, {"weights": "conflict"}),
        ({"edges": [0, 1, 2], "weights": [1]}, {"weights": "wrong_length"}),
        ({"edges": [0, 1, 2], "weights": [1, -1]}, {"weights[1]": "wrong_value"}),
        ({"edges": [0, 1, 2], "weights": [0, 0]}, {"edges[0]": "wrong_value"}),
        ({"edges": [2, 1, 4], "weights": [1, 1]}, {"edges[0]": "min_above_max"}),
        ({"bins": [{"from": 0, "to": 5}, {"from": 4, "to": 9}]}, {"bins[1]": "conflict"}),
        ({"bins": [{"from": 0, "to": 0.5}]}, {"bins[0]": "too_fine"}),
        ({"bins": [{"from": 0, "to": 5}], "min": 1}, {"min": "not_for_this_distribution"}),
        ({"bins": [{"from": 0, "to": 5}], "mean": 1}, {"mean": "not_for_this_distribution"}),
        ({"bins": [{"from": 0, "to": 5, "weight": -1}]}, {"bins[0].weight": "wrong_value"}),
        ({"bins": [{"from": 0}]}, {"bins[0].to": "required"}),
    ],
)
def test_ambiguous_and_empty_histograms_are_rejected(options, expected):
    found = faults("number", {**HISTOGRAM, **options})
    assert {path.removeprefix("options."): code for path, code in found.items()} == expected


def test_bins_without_a_histogram_are_rejected():
    assert faults("number", {"bins": [{"from": 0, "to": 5}]}) == {"options.bins": "not_for_this_distribution"}
    assert faults("number", {**HISTOGRAM, "bins": [{"from": 0, "to": 5}]}, unique=True) == {
        "unique": "not_unique"
    }
