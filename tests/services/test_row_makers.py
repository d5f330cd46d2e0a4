"""Rows that come with a request keep what they say: numbers, texts, lists, nested values."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from webapp.generation.services.row_makers import SubmittedRows, table_of_rows
from webapp.pushes.services.rows import TableRows

NOW = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, None, -(2**63)], pa.int64()),
        ([1, 2.5], pa.float64()),
        ([2**63, 1], pa.decimal128(38, 0)),
        ([True, None], pa.bool_()),
        (["a", ""], pa.string()),
        ([None, None], pa.string()),
        ([[1, 2], [], None], pa.list_(pa.int64())),
        ([[], None], pa.list_(pa.string())),
    ],
)
def test_a_column_of_one_kind_keeps_its_values(values, dtype):
    column = table_of_rows([{"a": value} for value in values]).column("a")
    assert column.type == dtype
    assert column.to_pylist() == values


def test_values_of_several_kinds_become_text():
    values = ["a", 1, True, {"b": [1]}, [{"c": 1}], 10**40, None]
    column = table_of_rows([{"a": value} for value in values]).column("a")
    assert column.to_pylist() == ["a", "1", "true", '{"b":[1]}', '[{"c":1}]', "1" + "0" * 40, None]


def test_keys_that_a_row_has_not_are_null():
    assert table_of_rows([{"a": 1}, {"b": "x"}]).to_pylist() == [{"a": 1, "b": None}, {"a": None, "b": "x"}]


def table(rows, *columns) -> TableRows:
    spec = {
        "name": "t", "target": "t", "count": len(rows), "offset": 0, "mode": "insert", "key_columns": [],
        "columns": list(columns), "capture": [], "from_parent": {}, "later": [],
    }  # fmt: skip
    return TableRows(0, spec, SubmittedRows(table_of_rows(rows), "s", NOW))


def test_lists_stay_only_where_the_column_is_an_array():
    result = table(
        [{"a": [1, 2]}, {"a": None}],
        {"column": "x", "field": "a"},
        {"column": "y", "field": "a", "list": True},
    )
    batch = result.batch(np.array([1, 0], np.uint64))
    assert batch.to_pylist() == [{"x": None, "y": None}, {"x": "[1,2]", "y": [1, 2]}]


def test_formulas_reckon_with_given_rows():
    result = table([{"a": 2, "b": "x"}, {"a": 5, "b": None}], {"column": "twice", "formula": "a * 2"})
    assert result.batch(np.array([0, 1], np.uint64)).column(0).to_pylist() == [4, 10]


def test_keys_of_ours_are_the_same_whenever_a_row_is_sent():
    result = table([{"a": n} for n in range(5)], {"column": "_id", "object_id": "psh_1:0"})
    every = result.batch(np.arange(5, dtype=np.uint64)).column(0).to_pylist()
    assert result.batch(np.array([3], np.uint64)).column(0).to_pylist() == every[3:4]
    assert len(set(every)) == 5
    assert all(len(item) == 24 and int(item, 16) for item in every)
