"""Choices keep the values as they were written, in the proportions asked for."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.test_random import chi_square
from tests.engine.types.made import bound, faults, table, values
from webapp.engine.errors import SpecError

N = 30_000


def schema_type(options: dict) -> pa.DataType:
    return bound([{"name": "x", "type": "custom", "options": options}]).schema.field("x").type


@pytest.mark.parametrize(
    ("given", "kind", "result"),
    [
        (["b", "a"], pa.string(), {"b", "a"}),
        ([3, 1], pa.int64(), {3, 1}),
        ([True, False], pa.bool_(), {True, False}),
        ([1.5, 2], pa.decimal128(38, 1), {Decimal("1.5"), Decimal("2.0")}),
        ([1e300, 0.5], pa.float64(), {1e300, 0.5}),
        ([1, "a", True], pa.string(), {"1", "a", "true"}),
        (["a", None], pa.string(), {"a", None}),
        ([1, None], pa.int64(), {1, None}),
    ],
)
def test_values_keep_their_kind(given, kind, result):
    assert schema_type({"values": given}) == kind
    assert set(values("custom", 300, options={"values": given})) == result


def test_objects_and_arrays_are_json():
    source = bound([{"name": "x", "type": "custom", "options": {"values": [{"a": 1}, [2, 3]]}}])
    assert source.schema.field("x").metadata[b"json"] == b"1"
    assert set(table(source, 0, 100)["x"]) == {'{"a":1}', "[2,3]"}


def test_a_value_written_twice_is_twice_as_likely():
    found = values("custom", N, options={"values": ["a", "b", "a"]})
    assert abs(found.count("a") / N - 2 / 3) < 4 * math.sqrt(2 / 9 / N)


@settings(max_examples=12, deadline=None)
@given(st.lists(st.integers(0, 1000), min_size=1, max_size=12).filter(any), st.sampled_from([1, 0.1, 0.001]))
def test_weights_are_kept_at_any_scale(weights, scale):
    options = {"values": list(range(len(weights))), "weights": [weight * scale for weight in weights]}
    counts = np.bincount(np.array(values("enum", N, options=options)), minlength=len(weights))
    share = np.array(weights) / sum(weights)
    assert not counts[share == 0].any()
    assert (np.abs(counts - N * share) <= 5 * np.sqrt(np.maximum(N * share * (1 - share), 1))).all()


def test_without_weights_an_enum_is_even():
    counts = np.unique(values("enum", N, options={"values": list("abcdefg")}), return_counts=True)[1]
    assert abs(chi_square(counts, N / 7)) < 4


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"values": []}, {"options.values": "too_short"}),
        ({"values": [None]}, {"options.values": "too_few"}),
        ({}, {"options.values": "required"}),
        ({"values": ["a", "b"], "weights": [1]}, {"options.weights": "wrong_length"}),
        ({"values": ["a", "b"], "weights": [0, 0]}, {"options.weights": "wrong_value"}),
        (
            {"values": ["a", "b"], "weights": [-1, -2]},
            {"options.weights[0]": "wrong_value", "options.weights[1]": "wrong_value"},
        ),
        ({"values": ["a"], "weights": ["much"]}, {"options.weights[0]": "decimal_parsing"}),
    ],
)
def test_an_impossible_enum_is_rejected(options, expected):
    assert faults("enum", options) == expected


def test_unique_choices_use_every_value_once():
    assert sorted(values("custom", 4, options={"values": ["a", "b", "a", "c", "d"]}, unique=True)) == list(
        "abcd"
    )
    source = bound(
        [{"name": "x", "type": "custom", "options": {"values": ["A", "a", "Á", "b "]}, "unique": True}]
    )
    source.check(0, 2)
    with pytest.raises(SpecError):
        source.check(0, 3)
    assert faults("enum", {"values": ["a", "b"], "weights": [1, 2]}, unique=True) == {"unique": "not_unique"}
    assert faults("custom", {"values": ["a", None]}, unique=True) == {"unique": "not_unique"}


def test_a_list_in_turn_goes_round():
    options = {"values": ["n", "e", None, "s"]}
    assert values("list_sequential", 6, options=options) == ["n", "e", None, "s", "n", "e"]
    assert values("list_sequential", 2, start=4 * 10**12 + 1, options=options) == ["e", None]


def mapped(source: dict, **options) -> list[tuple]:
    it = {"name": "it", "type": "mapped", "options": {"field": "from", **options}}
    generated = table(bound([{"name": "from", **source}, it]), 0, 400)
    return list(zip(generated["from"], generated["it"], strict=True))


def test_a_map_replaces_each_value():
    source = {"type": "enum", "options": {"values": ["DE", "FR", "XX"]}}
    rows = mapped(source, map={"DE": "Germany", "FR": "France"}, default="elsewhere")
    assert set(rows) == {("DE", "Germany"), ("FR", "France"), ("XX", "elsewhere")}
    assert set(mapped(source, map={"DE": 49, "FR": 33})) == {("DE", 49), ("FR", 33), ("XX", None)}


@pytest.mark.parametrize(
    ("source", "keys"),
    [
        ({"type": "number", "options": {"min": 1, "max": 2}}, {1: "1", 2: "2"}),
        ({"type": "boolean"}, {True: "true", False: "false"}),
        (
            {"type": "number", "options": {"min": 0, "max": 0.5, "step": 0.5, "decimals": 1}},
            {Decimal("0.0"): "0.0"},
        ),
        ({"type": "custom", "options": {"values": [1, 2]}}, {1: "1", 2: "2"}),
    ],
)
def test_a_map_reads_values_of_any_kind_as_text(source, keys):
    rows = set(mapped(source, map={text: f"<{text}>" for text in keys.values()}, default="-"))
    assert {(value, f"<{text}>") for value, text in keys.items()} <= rows


def test_a_blank_value_takes_the_default():
    source = {"type": "enum", "options": {"values": ["a"]}, "percent_blank": 50}
    assert set(mapped(source, map={"a": 1}, default=0)) == {("a", 1), (None, 0)}
    plain = {"type": "words", "options": {"count": 1}, "percent_blank": 50}
    assert all(result == "-" for value, result in mapped(plain, map={"?": "!"}, default="-"))


def test_a_map_rejects_a_missing_field_and_one_without_single_values():
    assert faults("mapped", {"field": "nope", "map": {"a": 1}}) == {"options.field": "unknown_field"}
    nested = {"name": "o", "type": "nested", "options": {"fields": [{"name": "n", "type": "number"}]}}
    it = {"name": "it", "type": "mapped", "options": {"field": "o", "map": {"a": 1}}}
    with pytest.raises(SpecError) as error:
        bound([nested, it])
    assert [fault.code for fault in error.value.faults] == ["wrong_type"]
    assert faults("mapped", {"field": "x", "map": {}}) == {"options.map": "too_short"}
    assert (
        faults(
            "mapped",
            {"field": "x", "map": {"a": None}},
        )["options.map"]
        == "too_few"
    )
