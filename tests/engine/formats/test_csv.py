from __future__ import annotations

import csv
import io

import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from tests.engine.formats import samples
from tests.engine.formats.samples import FormatError, file
from webapp import limits
from webapp.engine import mixed_columns

ROWS = 150
EVERYTHING = samples.columns({**samples.FLAT, **samples.NESTED}, ROWS)
LINES = {"lines": {b"max_items": b"3"}, "tags": {b"max_items": b"3"}, "grid": {b"max_items": b"3"}}


def read(text: bytes, delimiter: str = ",") -> list[list[str]]:
    return list(csv.reader(io.StringIO(text.decode(), newline=""), delimiter=delimiter, strict=True))


def spelled(kind: pa.DataType, value: object) -> str:
    """A flat value as CSV spells it, by Python's own means."""
    if value is None:
        return ""
    if pa.types.is_boolean(kind):
        return "true" if value else "false"
    if pa.types.is_floating(kind):
        return pa.scalar(value).cast(pa.string()).as_py()
    if pa.types.is_decimal(kind):
        return f"{value:f}"
    if pa.types.is_timestamp(kind):
        return value.replace(tzinfo=None).isoformat() + ("Z" if kind.tz else "")
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


@pytest.mark.parametrize("quote", ["minimal", "all"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", "^", "~"])
def test_every_flat_value_is_read_back_equal(delimiter, quote):
    table = samples.columns(samples.FLAT, ROWS)
    header, *lines = read(file("csv", table, delimiter=delimiter, quote=quote), delimiter)
    assert header == list(table)
    for name, got in zip(table, zip(*lines, strict=True), strict=True):
        assert list(got) == [spelled(table[name].type, value) for value in table[name].to_pylist()], name


@pytest.mark.parametrize("quote", ["minimal", "all"])
def test_null_and_the_empty_text_are_distinguished(quote):
    texts = ["x", "", None, '"', "NULL", "a,b"] * 20
    text = file("csv", {"a": pa.array(texts), "b": pa.array([1] * 120)}, quote=quote)
    options = pacsv.ConvertOptions(
        column_types={"a": pa.string()},
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=[""],
    )
    assert pacsv.read_csv(io.BytesIO(text), convert_options=options)["a"].to_pylist() == texts


def test_null_is_empty_and_the_empty_text_is_quoted():
    assert (
        file("csv", {"a": pa.array([None, "", "x"]), "b": pa.array([1, None, 2])})
        == b'a,b\r\n,1\r\n"",\r\nx,2\r\n'
    )


def test_text_that_a_spreadsheet_would_compute_is_not_altered():
    texts = ["=1+1", "+1", "-1", "@x", "=cmd|' /C calc'!A0"] * 15
    assert [row[0] for row in read(file("csv", {"a": pa.array(texts)}))[1:]] == texts


FORMULAS = [
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    '="a""b"',
    "-",
    "＝1+1",
    "＠x",
]
HARMLESS = ["-5", "+1.5e3", "-.5", "a=1", "'=1", " =1", "", None, "ö", "1-2", '"=1"', "é", "㍻", "-5.", "😀"]


@pytest.mark.parametrize("quote", ["minimal", "all"])
@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_text_that_a_spreadsheet_would_run_is_escaped_on_request(quote, delimiter):
    texts = [*FORMULAS, *HARMLESS] * 6
    table = {
        "=a": pa.array(texts),
        "b": pa.array([-5] * len(texts)),
        "c": pa.array(texts).dictionary_encode(),
    }
    text = file("csv", table, quote=quote, delimiter=delimiter, escape_formulas=True)
    header, *lines = read(text, delimiter)
    assert header == ["'=a", "b", "c"]
    expected = ["'" + formula for formula in FORMULAS] + [item or "" for item in HARMLESS]
    assert [row[0] for row in lines] == expected * 6
    assert [row[2] for row in lines] == expected * 6
    assert {row[1] for row in lines} == {"-5"}


def test_formulas_are_escaped_the_same_way_in_one_block_and_row_by_row():
    texts = [*FORMULAS, *HARMLESS] * 6
    cells = mixed_columns.create(
        pa.array([-1, None] * (len(texts) // 2)), pa.array([None, "-1-1"] * (len(texts) // 2))
    )
    table = {"a": pa.array(texts), "=b": pa.array(texts[::-1]), "c": cells}
    whole = file("csv", table, escape_formulas=True)
    assert file("csv", table, list(range(len(texts))), escape_formulas=True) == whole
    assert [row[2] for row in read(whole)[1:3]] == ["-1", "'-1-1"]


def test_a_lone_end_of_data_mark_is_quoted_for_copy():
    texts = ["\\.", "ab", "\\.x", "x\\."] * 15
    assert file("csv", {"a": pa.array(texts)}, header=False) == b'"\\."\r\nab\r\n\\.x\r\nx\\.\r\n' * 15
    two = {"a": pa.array(["\\."]), "b": pa.array(["x"])}
    assert file("csv", two, header=False) == b"\\.,x\r\n"


def test_the_header_is_quoted_like_any_text():
    table = {"a,b": pa.array([1]), 'c"d': pa.array([2]), "e": pa.array([3])}
    assert file("csv", table) == b'"a,b","c""d",e\r\n1,2,3\r\n'
    assert file("csv", table, quote="all") == b'"a,b","c""d","e"\r\n"1","2","3"\r\n'
    assert file("csv", table, header=False) == b"1,2,3\r\n"


def test_objects_are_dotted_columns_and_arrays_json_text():
    table = samples.columns(samples.NESTED, 60)
    header, *lines = read(file("csv", table))
    assert header == ["place.city", "place.geo.lat", "place.geo.day", "lines", "tags", "grid"]
    whole = samples.file("ndjson", {"lines": table["lines"]}).decode().splitlines()
    want = ["" if line.endswith(":null}") else line.removeprefix('{"lines":')[:-1] for line in whole]
    assert [line[3] for line in lines] == want
    assert lines[0][:3] == ['P"a', "1.5", "2024-01-31"]
    assert lines[1][:3] == ["", "", ""]


def test_arrays_become_numbered_columns_up_to_their_declared_maximum():
    table = samples.columns({"lines": samples.NESTED["lines"], "tags": samples.NESTED["tags"]}, 60)
    header, *lines = read(file("csv", table, arrays="columns", metadata=LINES))
    assert header == [f"lines.{n}.{key}" for n in range(3) for key in ("sku", "n", "price")] + [
        f"tags.{n}" for n in range(3)
    ]
    assert lines[0][:9] == ['a,"b', "1", "1.50", "", "", "", "", "", ""]
    assert lines[4][:9] == ["x", "-5", "-0.05"] * 3
    assert lines[0][9:] == ["", "", ""]
    assert lines[3][9:] == ["a", "", "é😀\n"]


def test_an_array_without_a_maximum_cannot_become_columns():
    with pytest.raises(FormatError) as caught:
        file("csv", samples.columns(samples.NESTED, 3), arrays="columns")
    assert [(fault.path, fault.code) for fault in caught.value.faults] == [
        ("lines", "no_maximum"), ("tags", "no_maximum"), ("grid", "no_maximum"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("most", "fits"), [(limits.MAX_FLAT_COLUMNS, True), (limits.MAX_FLAT_COLUMNS + 1, False)]
)
def test_arrays_as_columns_make_at_most_500(most, fits):
    table = {"tags": pa.array([["a"]])}
    metadata = {"tags": {b"max_items": str(most).encode()}}
    if fits:
        assert len(read(file("csv", table, arrays="columns", metadata=metadata))[0]) == most
        return
    with pytest.raises(FormatError) as caught:
        file("csv", table, arrays="columns", metadata=metadata)
    assert caught.value.faults[0].code == "too_many_columns"


def test_an_array_longer_than_declared_is_rejected():
    with pytest.raises(FormatError) as caught:
        file(
            "csv", {"tags": pa.array([["a", "b"]])}, arrays="columns", metadata={"tags": {b"max_items": b"1"}}
        )
    assert caught.value.faults[0].code == "value_does_not_fit"


@pytest.mark.parametrize(
    "option", [{"delimiter": "ab"}, {"delimiter": '"'}, {"quote": "none"}, {"escape": "\\"}]
)
def test_unknown_options_are_rejected(option):
    with pytest.raises(ValueError, match="validation error"):
        samples.FORMATS["csv"].Options(**option)


def test_a_date_beyond_iso_8601_is_rejected_by_name():
    table = {"a": pa.array([1]), "born": pa.array([4_000_000], pa.int32()).cast(pa.date32())}
    with pytest.raises(FormatError) as caught:
        file("csv", table)
    assert [(fault.path, fault.code) for fault in caught.value.faults] == [("born", "value_does_not_fit")]
