"""Numbers stay where they were put, on their lattice, exact, and spread as asked."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.test_random import chi_square
from tests.engine.types.made import assert_unique, bound, faults, values
from webapp import limits

N = 100_000


def column_type(kind: str, options: dict) -> pa.DataType:
    return bound([{"name": "x", "type": kind, "options": options}]).schema.field("x").type


def test_a_number_is_an_integer_unless_decimals_are_requested():
    assert column_type("number", {}) == pa.int64()
    assert column_type("number", {"decimals": 2}) == pa.decimal128(38, 2)
    assert column_type("float", {}) == pa.decimal128(38, 2)
    assert column_type("float", {"precision": 0}) == pa.int64()


def test_a_number_is_between_0_and_1000_by_default():
    found = values("number", 20_000)
    assert (min(found), max(found)) == (0, 1000)
    assert min(values("number", 5000, options={"min": 5000})) >= 5000
    assert max(values("number", 5000, options={"max": -5})) <= -5


@settings(max_examples=60, deadline=None)
@given(
    low=st.integers(-(10**9), 10**9),
    width=st.integers(0, 10**6),
    step=st.integers(1, 5000),
    places=st.integers(0, 6),
)
def test_even_numbers_keep_to_their_lattice(low, width, step, places):
    unit = Decimal(1).scaleb(-places)
    options = {"min": float(low * unit), "max": float((low + width) * unit), "step": float(step * unit)}
    found = values("number", 200, options={**options, "decimals": places})
    units = [int(Decimal(value).scaleb(places)) for value in found]
    assert all(low <= unit <= low + width and (unit - low) % step == 0 for unit in units)


def test_every_value_of_a_range_is_as_likely():
    counts = np.bincount(np.array(values("number", N, options={"min": 1, "max": 37})))[1:]
    assert counts.size == 37
    assert abs(chi_square(counts, N / 37)) < 4


def test_the_widest_range_is_carried():
    found = values("number", 1000, options={"min": -limits.MAX_INTEGER, "max": limits.MAX_INTEGER})
    assert min(found) < -(2**50) < 2**50 < max(found)


def test_decimals_are_exact_and_printed_with_all_their_places():
    found = values("number", 1000, options={"min": 0.1, "max": 0.3, "decimals": 1})
    assert set(found) == {Decimal("0.1"), Decimal("0.2"), Decimal("0.3")}
    spelled = values("number", 1000, options={"min": -1, "max": 1, "decimals": 3, "stringify": True})
    assert all(len(text.lstrip("-")) == 5 for text in spelled)
    assert {text.lstrip("-")[0] for text in spelled} <= {"0", "1"}
    assert any(text.startswith("-0.") for text in spelled)


def test_a_number_as_text_knows_its_length():
    source = bound([{"name": "x", "type": "number", "options": {"min": -7, "max": 12345, "stringify": True}}])
    field = source.schema.field("x")
    assert field.type == pa.string()
    assert field.metadata[b"max_length"] == b"5"


def test_unique_numbers_fill_their_range():
    assert_unique({"name": "x", "type": "number", "options": {"min": 1, "max": 5000}}, 5000)
    assert_unique({"name": "x", "type": "float", "options": {"max": 9.99}}, 1000)
    assert faults("number", {"distribution": "normal"}, unique=True) == {"unique": "not_unique"}


SHAPES = {
    "normal": ({"mean": 50, "stddev": 7}, 50, 7),
    "lognormal": ({"mean": 20, "stddev": 5}, 20, 5),
    "exponential": ({"lambda": 0.25}, 4, 4),
    "pareto": ({"alpha": 4.5, "min": 2}, 2 * 4.5 / 3.5, 2 / 3.5 * math.sqrt(4.5 / 2.5)),
    "poisson": ({"lambda": 3.5}, 3.5, math.sqrt(3.5)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_distribution_has_the_requested_mean_and_deviation(shape):
    options, mean, deviation = SHAPES[shape]
    options = {**options, "distribution": shape, "decimals": 3}
    found = np.array([float(value) for value in values("number", N, options=options)])
    assert abs(found.mean() - mean) < 4 * deviation / math.sqrt(N)
    fourth = ((found - found.mean()) ** 4).mean()
    assert abs(found.var() - deviation**2) < 4 * math.sqrt((fourth - found.var() ** 2) / N)


@pytest.mark.parametrize("shape", ["normal", "lognormal", "exponential", "pareto", "zipf", "poisson"])
@pytest.mark.parametrize("decimals", [0, 2])
def test_min_and_max_cut_a_distribution_and_nothing_piles_up_there(shape, decimals):
    options = {"distribution": shape, "min": 5, "max": 25, "decimals": decimals}
    if shape in ("normal", "lognormal", "exponential"):
        options["mean"] = 15
    found = [float(value) for value in values("number", 20_000, options=options)]
    assert 5 <= min(found) <= max(found) <= 25
    if shape in ("normal", "lognormal"):
        assert found.count(25.0) < found.count(15.0)


def test_a_step_is_applied_to_a_distribution():
    found = values(
        "number", 5000, options={"distribution": "normal", "mean": 50, "stddev": 20, "min": 3, "step": 10}
    )
    assert {value % 10 for value in found} == {3}
    assert min(found) == 3


def test_the_mean_of_a_stepped_distribution_is_kept():
    options = {"distribution": "normal", "mean": 100, "stddev": 20, "step": 5}
    found = np.array(values("number", N, options=options))
    assert abs(found.mean() - 100) < 0.4
    assert set((found % 5).tolist()) == {0}


def test_zipf_ranks_start_at_min():
    found = np.array(values("number", N, options={"distribution": "zipf", "min": 10, "max": 19}))
    counts = np.bincount(found - 10)
    weights = 1 / np.arange(1, 11)
    assert abs(chi_square(counts, N * weights / weights.sum())) < 4


def test_the_heaviest_tail_stays_within_json_integers():
    found = values("number", 20_000, options={"distribution": "pareto", "alpha": 0.02})
    assert 2**40 < max(found) <= limits.MAX_INTEGER


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"min": 5, "max": 1}, {"options.min": "min_above_max"}),
        ({"min": 0.5}, {"options.min": "too_fine"}),
        ({"step": 0}, {"options.step": "wrong_value"}),
        ({"step": -1, "min": 2, "max": 1}, {"options.min": "min_above_max", "options.step": "wrong_value"}),
        ({"decimals": 12, "max": limits.MAX_INTEGER}, {"options.max": "out_of_range"}),
        ({"mean": 5}, {"options.mean": "not_for_this_distribution"}),
        (
            {"alpha": 2, "lambda": 1},
            dict.fromkeys(("options.alpha", "options.lambda"), "not_for_this_distribution"),
        ),
        ({"distribution": "normal", "alpha": 2}, {"options.alpha": "not_for_this_distribution"}),
        ({"distribution": "normal", "stddev": 0}, {"options.stddev": "wrong_value"}),
        ({"distribution": "normal", "min": 5, "max": 5}, {"options.stddev": "required"}),
        ({"distribution": "normal", "mean": 0, "stddev": 1, "min": 90}, {"options.min": "too_narrow"}),
        ({"distribution": "lognormal", "mean": -3, "stddev": 1}, {"options.mean": "wrong_value"}),
        ({"distribution": "lognormal", "step": 2}, {"options.step": "not_for_this_distribution"}),
        ({"distribution": "exponential", "mean": 3, "lambda": 3}, {"options.lambda": "conflict"}),
        ({"distribution": "exponential", "mean": -3}, {"options.mean": "wrong_value"}),
        ({"distribution": "poisson", "lambda": 2_000_000}, {"options.lambda": "out_of_range"}),
        ({"distribution": "poisson", "mean": -1}, {"options.mean": "out_of_range"}),
        ({"distribution": "pareto", "min": 0}, {"options.min": "wrong_value"}),
        ({"distribution": "zipf", "max": 2**41}, {"options.max": "out_of_range"}),
        ({"distribution": "zipf", "alpha": 99}, {"options.alpha": "out_of_range"}),
        ({"distribution": "zipf", "max": 0}, {"options.max": "min_above_max"}),
        (
            {"distribution": "normal", "mean": limits.MAX_INTEGER, "decimals": 12},
            {"options.distribution": "out_of_range"},
        ),
        ({"distribution": "cauchy"}, {"options.distribution": "literal_error"}),
        ({"min": True}, {"options.min": "value_error"}),
        ({"min": "ten"}, {"options.min": "decimal_parsing"}),
    ],
)
def test_meaningless_options_are_rejected_with_their_path(options, expected):
    assert faults("number", options) == expected


def test_a_boolean_may_be_any_two_values():
    assert set(values("boolean")) == {True, False}
    assert set(values("boolean", options={"truthy": "Y", "falsy": "N"})) == {"Y", "N"}
    assert set(values("boolean", options={"truthy": 1, "falsy": 0})) == {1, 0}
    assert set(values("boolean", options={"truthy": "on", "falsy": None})) == {"on", None}
    assert column_type("boolean", {"truthy": 1, "falsy": 0}) == pa.int64()


@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.999, 1])
def test_a_boolean_keeps_its_share(share):
    found = np.array(values("boolean", N, options={"probability": share}))
    assert abs(found.mean() - share) <= 4 * math.sqrt(share * (1 - share) / N)


def test_a_boolean_rejects_invalid_shares_and_choices():
    assert faults("boolean", {"probability": 50}) == {"options.probability": "out_of_range"}
    assert faults("boolean", {"truthy": "x", "falsy": "x"}) == {"options.falsy": "duplicate"}
    assert faults("boolean", {"probability": 0.5}, unique=True) == {"unique": "not_unique"}
    assert sorted(values("boolean", 2, unique=True)) == [False, True]


NAMED = {
    "normal": ({"mean": 10, "stddev": 3}, 10, 3),
    "lognormal": ({"mean": 30, "stddev": 10, "decimals": 3}, 30, 10),
    "exponential": ({"mean": 7, "decimals": 3}, 7, 7),
    "poisson": ({"lambda": 9}, 9, 3),
    "binomial": ({"trials": 40, "probability": 0.25}, 10, math.sqrt(7.5)),
    "geometric": ({"probability": 0.2}, 4, math.sqrt(20)),
}


@pytest.mark.parametrize("kind", NAMED)
def test_a_type_named_after_a_distribution_follows_it(kind):
    options, mean, deviation = NAMED[kind]
    found = np.array([float(value) for value in values(kind, N, options=options)])
    assert abs(found.mean() - mean) < 4 * deviation / math.sqrt(N) + (0.005 if kind == "normal" else 0)
    assert abs(found.std() / deviation - 1) < 0.03


@pytest.mark.parametrize("kind", ["binomial", "geometric"])
@pytest.mark.parametrize("share", [0, 1, 1.5])
def test_a_probability_without_effect_is_rejected(kind, share):
    assert faults(kind, {"probability": share}) == {"options.probability": "out_of_range"}


def test_a_sequence_counts_on_at_any_row():
    options = {"start": 5, "step": -2, "repeat": 3}
    assert values("sequence", 7, options=options) == [5, 5, 5, 3, 3, 3, 1]
    assert values("sequence", 2, start=3_000_000_000, options=options) == [5 - 2 * 1_000_000_000] * 2
    assert values("sequence", 3, options={"start": -1, "pad": 4}) == ["-0001", "0000", "0001"]
    assert values("row_number", 2, start=10) == [11, 12]
    assert faults("sequence", {"step": 0}) == {"options.step": "wrong_value"}


def test_options_come_back_as_plain_json_numbers():
    from webapp.engine.spec import parse

    options = {"min": 1, "max": 2.5, "decimals": 1, "distribution": "exponential", "lambda": 0.1}
    (field,) = parse([{"name": "x", "type": "number", "options": options}]).fields
    assert field.to_json()["options"] == options
    assert Fraction(field.options.lambda_) == Fraction(1, 10)
