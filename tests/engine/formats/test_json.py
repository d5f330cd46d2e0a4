from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import orjson
import pyarrow as pa
import pytest

from tests.engine.formats import samples
from tests.engine.formats.samples import file

ROWS = 150
EVERYTHING = samples.columns({**samples.FLAT, **samples.NESTED}, ROWS)


def expected(value):
    """A value as a JSON reader with exact numbers gives it back."""
    match value:
        case bool() | None | str() | int() | Decimal():
            return value
        case float():
            return Decimal(repr(value))
        case dt.datetime():
            return value.replace(tzinfo=None).isoformat() + ("Z" if value.tzinfo else "")
        case dt.date() | dt.time():
            return value.isoformat()
        case list():
            return [expected(item) for item in value]
        case dict():
            return {key: expected(item) for key, item in value.items()}
    raise AssertionError(value)


def rows_of(table):
    lists = {name: [expected(value) for value in column.to_pylist()] for name, column in table.items()}
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]


def read(text: bytes):
    return json.loads(
        text, parse_float=Decimal, parse_int=lambda digits: Decimal(digits) if digits == "-0" else int(digits)
    )


def test_every_value_of_every_type_is_read_back_equal():
    rows = read(file("json", EVERYTHING))
    assert rows == rows_of(EVERYTHING)


def test_a_strict_reader_takes_every_file():
    assert len(orjson.loads(file("json", EVERYTHING))) == ROWS


def test_ndjson_holds_one_object_a_line():
    lines = file("ndjson", EVERYTHING).decode().split("\n")
    assert lines.pop() == ""
    assert [read(line) for line in lines] == rows_of(EVERYTHING)


def test_decimals_are_numbers_with_their_declared_places():
    table = {"price": pa.array([Decimal("1.50"), Decimal("-0.05"), Decimal(12)], pa.decimal128(38, 2))}
    assert file("ndjson", table) == b'{"price":1.50}\n{"price":-0.05}\n{"price":12.00}\n'


@pytest.mark.parametrize("places", [0, 1, 3, 4, 5, 8, 11, 18, 30])
@pytest.mark.parametrize("rows", [3, 100])
def test_decimals_of_any_scale_keep_every_digit(places, rows):
    units = [0, 1, -1, 10**places, -(10**places) - 1, 123_456_789_012, -(2**63), 2**63 - 1, 10**37 + 1, None]
    values = [None if unit is None else Decimal(unit).scaleb(-places) for unit in units]
    table = {"d": pa.array([values[row % len(values)] for row in range(rows)], pa.decimal128(38, places))}
    texts = [
        json.loads(line, parse_float=str, parse_int=str)["d"] for line in file("ndjson", table).splitlines()
    ]
    assert texts == [None if value is None else f"{value:f}" for value in table["d"].to_pylist()]


def test_the_layout_of_the_array_is_an_object_a_line():
    assert file("json", {"a": pa.array([1, 2])}) == b'[\n{"a":1},\n{"a":2}\n]\n'


def test_json_text_is_embedded_as_it_is():
    table = {"doc": pa.array(['{"a": [1,\n 2]}', None, '"x"'])}
    metadata = {"doc": {b"json": b"1"}}
    text = file("json", table, metadata=metadata)
    assert [row["doc"] for row in json.loads(text)] == [{"a": [1, 2]}, None, "x"]
    lines = file("ndjson", table, metadata=metadata).splitlines()
    assert [json.loads(line)["doc"] for line in lines] == [{"a": [1, 2]}, None, "x"]


def test_keys_are_escaped():
    table = {'a"\\\n😀': pa.array([1])}
    assert json.loads(file("json", table)) == [{'a"\\\n😀': 1}]


def test_objects_without_keys_and_arrays_of_nothing():
    table = {
        "empty": pa.array([{}, None], pa.struct([])),
        "none": pa.array([[None, None], []], pa.list_(pa.null())),
        "bare": pa.array([[], []], pa.list_(pa.int64())),
    }
    assert json.loads(file("json", table)) == [
        {"empty": {}, "none": [None, None], "bare": []},
        {"empty": None, "none": [], "bare": []},
    ]


def test_pools_inside_objects_and_arrays_are_read():
    pool = pa.array(["a", "b", None, "a"] * 20).dictionary_encode()
    table = {
        "o": pa.StructArray.from_arrays([pool.slice(0, 40)], ["x"]),
        "l": pa.ListArray.from_arrays(pa.array([2 * i for i in range(41)], pa.int32()), pool),
    }
    plain = ["a", "b", None, "a"] * 20
    want = [{"o": {"x": plain[i]}, "l": plain[2 * i : 2 * i + 2]} for i in range(40)]
    assert json.loads(file("json", table)) == want
    assert json.loads(file("json", table, [7, 20])) == want


def test_values_hidden_under_a_null_do_not_show():
    values = pa.array([1, 10**15, 3])
    hidden = pa.Array.from_buffers(pa.int64(), 3, [pa.py_buffer(b"\x05"), values.buffers()[1]])
    assert json.loads(file("json", {"a": hidden})) == [{"a": 1}, {"a": None}, {"a": 3}]


def test_a_column_of_an_unknown_type_is_rejected():
    with pytest.raises(TypeError, match="binary"):
        file("json", {"a": pa.array([b"x"])})


def test_a_schema_without_columns_is_rejected():
    fmt = samples.FORMATS["json"]
    with pytest.raises(samples.FormatError) as caught:
        fmt(pa.schema([]), fmt.Options(), title="x")
    assert [fault.code for fault in caught.value.faults] == ["all_hidden"]
