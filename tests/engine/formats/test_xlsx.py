from __future__ import annotations

# ruff: noqa: DTZ001 - cells know no zone
import datetime as dt
import io
import re
import struct
import zipfile
from decimal import Decimal

import openpyxl
import pyarrow as pa
import pytest

from tests.engine.formats import samples
from tests.engine.formats.samples import FormatError, file
from webapp.engine.formats import xlsx_format, zipstream

ROWS = 150


def sheets(data: bytes, **options):
    book = openpyxl.load_workbook(io.BytesIO(data), **options)
    return {sheet.title: [list(row) for row in sheet.iter_rows(values_only=True)] for sheet in book}


def read(data: bytes):
    (lines,) = sheets(data).values()
    return dict(zip(lines[0], map(list, zip(*lines[1:], strict=True)), strict=True))


def unhidden(text):
    """Return a text as a spreadsheet shows it: openpyxl does not decode ``_xHHHH_``."""
    return text and re.sub("_x([0-9A-F]{4})_", lambda match: chr(int(match[1], 16)), text)


def expected(kind, value):
    if value is None:
        return None
    if pa.types.is_integer(kind):
        return value if abs(value) <= 2**53 else str(value)
    if pa.types.is_decimal(kind):
        return float(value) if abs(value.scaleb(kind.scale)) <= 2**53 else f"{value:f}"
    if pa.types.is_date(kind):
        return dt.datetime.combine(value, dt.time()) if value.year >= 1900 else value.isoformat()
    if pa.types.is_timestamp(kind):
        value = value.replace(tzinfo=None)
        return milliseconds(value) if value.year >= 1900 else value.isoformat(sep=" ")
    return milliseconds(value) if pa.types.is_time(kind) else value


def milliseconds(value):
    return value.replace(microsecond=value.microsecond // 1000 * 1000)


@pytest.mark.parametrize("pooled", [False, True], ids=["plain", "pooled"])
def test_every_flat_value_is_read_back_equal(pooled):
    table = samples.columns(samples.FLAT, ROWS)
    got = read(file("xlsx", {k: samples.pooled(v) for k, v in table.items()} if pooled else table))
    assert [unhidden(text) for text in got.pop("text")] == table.pop("text").to_pylist()
    for name, column in table.items():
        assert got[name] == [expected(column.type, value) for value in column.to_pylist()], name


def test_a_reader_without_cell_references_finds_every_cell():
    table = samples.columns({name: samples.FLAT[name] for name in ("small", "day", "nothing", "flag")}, 60)
    assert sheets(file("xlsx", table)) == sheets(file("xlsx", table), read_only=True)


def test_text_beginning_with_an_equals_sign_is_text():
    data = file("xlsx", {"a": pa.array(["=1+1", "=HYPERLINK(1)"] * 30)})
    cells = openpyxl.load_workbook(io.BytesIO(data)).active
    assert {cell.data_type for cell in cells["A"][1:]} <= {"s", "inlineStr"}
    assert read(data)["a"] == ["=1+1", "=HYPERLINK(1)"] * 30


def test_dates_times_and_decimals_carry_their_number_formats():
    when = dt.datetime(2024, 1, 31, 1, 2, 3)
    table = {
        "day": pa.array([when.date()] * 60),
        "at": pa.array([when] * 60, samples.STAMP),
        "clock": pa.array([when.time()] * 60, samples.CLOCK),
        "price": pa.array([Decimal("1.50")] * 60, samples.DECIMAL),
        "n": pa.array([1] * 60),
    }
    cells = openpyxl.load_workbook(io.BytesIO(file("xlsx", table))).active[2]
    formats = [cell.number_format for cell in cells]
    assert formats == ["yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss", "hh:mm:ss", "0.00", "General"]


def test_objects_are_dotted_columns_and_arrays_json_text():
    got = read(file("xlsx", samples.columns(samples.NESTED, 60)))
    assert list(got) == ["place.city", "place.geo.lat", "place.geo.day", "lines", "tags", "grid"]
    assert got["place.geo.day"][0] == dt.datetime(2024, 1, 31)
    assert got["tags"][2] == '["a",null,"é😀\\n"]'
    metadata = {"tags": {b"max_items": b"3"}}
    table = {"tags": samples.columns(samples.NESTED, 60)["tags"]}
    assert list(read(file("xlsx", table, arrays="columns", metadata=metadata))) == [
        "tags.0",
        "tags.1",
        "tags.2",
    ]


def test_rows_beyond_a_sheet_go_to_the_next(monkeypatch):
    monkeypatch.setattr(xlsx_format.limits, "XLSX_SHEET_ROWS", 101)
    table = {"n": pa.array(list(range(250)))}
    want = {
        "Order lines": [["n"], *([n] for n in range(100))],
        "Order lines (2)": [["n"], *([n] for n in range(100, 200))],
        "Order lines (3)": [["n"], *([n] for n in range(200, 250))],
    }
    assert sheets(file("xlsx", table)) == want
    assert sheets(file("xlsx", table, [60, 100, 130, 249])) == want


def test_a_sheet_that_is_just_full_has_no_next(monkeypatch):
    monkeypatch.setattr(xlsx_format.limits, "XLSX_SHEET_ROWS", 101)
    assert list(sheets(file("xlsx", {"n": pa.array([1] * 100)}))) == ["Order lines"]


def test_a_sheet_holds_as_many_rows_as_excel_takes():
    limits = xlsx_format.limits
    assert (limits.XLSX_SHEET_ROWS, limits.XLSX_SHEET_COLUMNS, limits.XLSX_CELL_CHARS) == (
        1_048_576,
        16_384,
        32_767,
    )


@pytest.mark.parametrize("pooled", [False, True], ids=["plain", "pooled"])
def test_a_text_longer_than_a_cell_is_rejected_by_name(pooled):
    texts = pa.array(["ok", "😀" * 16_384] * 30)  # two UTF-16 units each
    table = {"n": pa.array([1] * 60), "long": texts.dictionary_encode() if pooled else texts}
    with pytest.raises(FormatError) as caught:
        file("xlsx", table)
    fault = caught.value.faults[0]
    assert (fault.path, fault.code) == ("long", "value_does_not_fit")
    assert "32,767" in fault.message


def test_a_text_as_long_as_a_cell_is_taken():
    texts = ["😀" * 16_383 + "x", "é" * 32_767]
    assert read(file("xlsx", {"a": pa.array(texts)}))["a"] == texts


def test_more_columns_than_a_sheet_holds_are_rejected():
    fmt = samples.FORMATS["xlsx"]
    wide = pa.schema([pa.field("o", pa.struct([(f"c{n}", pa.int64()) for n in range(16_385)]))])
    with pytest.raises(FormatError) as caught:
        fmt(wide, fmt.Options(), title="x")
    assert caught.value.faults[0].code == "too_many_columns"


@pytest.mark.parametrize(
    ("title", "number", "name"),
    [
        ("Orders", 1, "Orders"), ("Orders", 2, "Orders (2)"), ("a[b]:c*d?e/f\\g", 1, "a b  c d e f g"),
        ("x" * 40, 1, "x" * 31), ("x" * 40, 12, "x" * 26 + " (12)"), ("😀" * 20, 1, "😀" * 15),
        ("'quoted'", 1, "quoted"), ("", 1, "Sheet1"), ("History", 1, "History1"), ("a\nb", 1, "a b"),
    ],
)  # fmt: skip
def test_a_sheet_is_named_by_the_title_within_excels_rules(title, number, name):
    assert xlsx_format.sheet_name(title, number) == name


def test_names_and_titles_with_mark_up_are_read_back():
    data = file("xlsx", {'<a> & "b" _x0041_': pa.array([1])}, title='R&D <1> "x"')
    ((title, lines),) = sheets(data).items()
    assert title == 'R&D <1> "x"'
    assert unhidden(lines[0][0]) == '<a> & "b" _x0041_'


def test_the_same_rows_always_produce_the_same_file():
    table = samples.columns(samples.FLAT, 60)
    data = file("xlsx", table)
    assert data == file("xlsx", table)
    assert {info.date_time for info in zipfile.ZipFile(io.BytesIO(data)).infolist()} == {
        (1980, 1, 1, 0, 0, 0)
    }


def test_content_does_not_depend_on_where_blocks_are_cut():
    table = samples.columns({**samples.FLAT, **samples.NESTED}, 120)
    parts = [zipfile.ZipFile(io.BytesIO(file("xlsx", table, cuts))) for cuts in ([], [1, 2, 60], [100])]
    names = parts[0].namelist()
    assert len({tuple(part.read(name) for name in names) for part in parts}) == 1


def test_the_archive_is_sound_without_isal(monkeypatch):
    import zlib

    with_isal = file("xlsx", {"a": pa.array(["x", "y"])})
    monkeypatch.setattr(zipstream, "deflater", zlib)
    assert sheets(file("xlsx", {"a": pa.array(["x", "y"])})) == sheets(with_isal)


def test_sizes_beyond_four_bytes_are_written_in_eight(monkeypatch):
    monkeypatch.setattr(zipstream, "_MAX32", 100)
    stream = zipstream.ZipStream()
    data = (
        stream.add_entry("small", b"x") + stream.open("large") + stream.write(b"abc" * 1_000) + stream.close()
    )
    data += stream.add_entry("behind", b"y") + stream.finish()
    tail = data.index(struct.pack("<I", 0x06064B50))
    assert data[tail : tail + 4] == b"PK\x06\x06"
    patched = data.replace(struct.pack("<I", 100), struct.pack("<I", 0xFFFFFFFF))
    archive = zipfile.ZipFile(io.BytesIO(patched))
    assert [archive.read(name) for name in archive.namelist()] == [b"x", b"abc" * 1_000, b"y"]
    assert archive.testzip() is None


def test_a_file_without_rows_has_its_header():
    assert sheets(file("xlsx", {"a": pa.array([], pa.int64())})) == {"Order lines": [["a"]]}
