"""Text with holes: values and filters put into it, and every mistake named with its place."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from webapp.engine import placeholders

COLUMNS = {
    "name": pa.array(["Ann", 'O"Neil', None]),
    "paid": pa.array([Decimal("1.50"), None, Decimal("-0.05")], pa.decimal128(38, 2)),
    "day": pa.array([date(2026, 1, 2), date(1999, 12, 31), None]),
    "lines": pa.array([[{"sku": "a"}], [], None], pa.list_(pa.struct([("sku", pa.string())]))),
    "kind": pa.DictionaryArray.from_arrays(pa.array([1, 0, None], pa.int32()), pa.array(["x", "y"])),
}


def filled(source: str) -> list[str]:
    return pa.array(placeholders.parse(source).fill(COLUMNS.__getitem__, 3)).to_pylist()


def test_values_are_inserted_at_their_names_and_nulls_are_empty():
    assert filled("<{{name}}|{{ kind }}>") == ["<Ann|y>", '<O"Neil|x>', "<|>"]
    assert filled("{{paid}} {{day}}") == ["1.50 2026-01-02", " 1999-12-31", "-0.05 "]


def test_filters_are_applied_from_left_to_right():
    assert filled("{{name | upper}}{{ name|lower }}") == ["ANNann", 'O"NEILo"neil', ""]
    assert filled("{{day | date('DD/MM/YY')}}") == ["02/01/26", "31/12/99", ""]
    assert filled("{{name|upper|json}}") == ['"ANN"', '"O\\"NEIL"', "null"]


def test_json_filter_makes_a_json_value_of_every_type():
    source = (
        '{"n": {{name|json}}, "p": {{paid|json}}, "d": {{day|json}}, "l": {{lines|json}}, "k": {{kind|json}}}'
    )
    assert [json.loads(row) for row in filled(source)] == [
        {"n": "Ann", "p": 1.5, "d": "2026-01-02", "l": [{"sku": "a"}], "k": "y"},
        {"n": 'O"Neil', "p": None, "d": "1999-12-31", "l": [], "k": "x"},
        {"n": None, "p": -0.05, "d": None, "l": None, "k": None},
    ]


@pytest.mark.parametrize(
    ("source", "position"),
    [
        ("a {{b", 2),
        ("{{}}", 0),
        ("x{{a|}}", 1),
        ("{{a|shout}}", 0),
        ("{{a|upper('x')}}", 0),
        ("{{a|date}}", 0),
    ],
)
def test_mistakes_are_named_with_their_place(source, position):
    with pytest.raises(placeholders.PlaceholderError) as caught:
        placeholders.parse(source)
    assert caught.value.position == position
