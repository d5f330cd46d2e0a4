"""The bytes of JSON, NDJSON, CSV and SQL depend only on the rows, not on blocks, pools or the code path.

Promise 12 of docs/promises.md.
"""

from __future__ import annotations

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given, settings

from tests.engine.formats import samples
from webapp.engine.formats import layout

ROWS = 60
TEXT_FORMATS = [
    ("json", {}),
    ("ndjson", {}),
    ("csv", {}),
    ("csv", {"delimiter": ";", "quote": "all"}),
    ("sql", {"rows_per_statement": 7}),
    ("sql", {"rows_per_statement": 1}),
    *(("sql", {"dialect": name}) for name in ("postgresql", "mysql", "mssql", "oracle", "db2")),
]
FORMAT_IDS = ["-".join([name, *map(str, options.values())]) for name, options in TEXT_FORMATS]
EVERYTHING = samples.columns({**samples.FLAT, **samples.NESTED}, ROWS)

shape = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1) | st.integers(-20_000, 20_000),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float64(): st.floats(allow_nan=False, allow_infinity=False),
    samples.DECIMAL: st.integers(-(10**12), 10**12).map(lambda n: samples.Decimal(n).scaleb(-2)),
    pa.string(): st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
    | st.sampled_from([text for text in samples.TEXTS if text is not None]),
    pa.date32(): st.dates(),
    samples.STAMP: st.datetimes(),
    samples.CLOCK: st.times(),
    pa.bool_(): st.booleans(),
}


@st.composite
def tables(draw: st.DrawFn) -> dict[str, pa.Array]:
    count = draw(st.integers(1, 130))
    generated = {}
    for index, kind in enumerate(draw(st.lists(st.sampled_from(list(shape)), min_size=1, max_size=4))):
        values = draw(st.lists(st.none() | shape[kind], min_size=1, max_size=8))
        column = pa.array([values[row % len(values)] for row in range(count)], kind)
        generated[f"c{index}"] = samples.pooled(column) if draw(st.booleans()) else column
    return generated


@pytest.mark.parametrize(("name", "options"), TEXT_FORMATS, ids=FORMAT_IDS)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_bytes_do_not_depend_on_where_blocks_are_cut(name, options, data):
    table = data.draw(tables())
    count = len(next(iter(table.values())))
    cuts = data.draw(st.lists(st.integers(1, count), max_size=6))
    assert samples.file(name, table, cuts, **options) == samples.file(name, table, **options)


@pytest.mark.parametrize(("name", "options"), TEXT_FORMATS, ids=FORMAT_IDS)
def test_every_type_is_written_the_same_row_by_row_and_as_a_block(name, options):
    whole = samples.file(name, EVERYTHING, **options)
    assert samples.file(name, EVERYTHING, list(range(ROWS)), **options) == whole
    assert samples.file(name, EVERYTHING, [1, 50], **options) == whole


@pytest.mark.parametrize(("name", "options"), TEXT_FORMATS, ids=FORMAT_IDS)
def test_every_type_is_written_the_same_from_a_pool(name, options, monkeypatch):
    monkeypatch.setattr(layout, "POOLS", layout.PoolCache())
    shared = {key: samples.pooled(column) for key, column in EVERYTHING.items()}
    whole = samples.file(name, EVERYTHING, **options)
    assert samples.file(name, shared, **options) == whole
    assert samples.file(name, shared, [2, 3, 55], **options) == whole


@pytest.mark.parametrize(("name", "options"), TEXT_FORMATS, ids=FORMAT_IDS)
def test_long_texts_are_written_in_parts_with_the_same_bytes(name, options, monkeypatch):
    whole = samples.file(name, EVERYTHING, **options)
    monkeypatch.setattr(layout.limits, "FORMAT_PART_BYTES", 2_000)
    assert samples.file(name, EVERYTHING, **options) == whole


@pytest.mark.parametrize(("name", "options"), TEXT_FORMATS, ids=FORMAT_IDS)
def test_wide_rows_are_written_in_parts_with_the_same_bytes(name, options, monkeypatch):
    whole = samples.file(name, EVERYTHING, **options)
    monkeypatch.setattr(layout.limits, "FORMAT_PART_PIECES", 500)
    assert samples.file(name, EVERYTHING, **options) == whole


def test_a_row_longer_than_a_part_is_written_whole(monkeypatch):
    monkeypatch.setattr(layout.limits, "FORMAT_PART_BYTES", 10)
    table = {"lines": pa.array([["a" * 100, "b"]] * 3)}
    line = '{"lines":["' + "a" * 100 + '","b"]}\n'
    assert samples.file("ndjson", table).decode() == line * 3


def test_pools_that_change_from_block_to_block_are_followed():
    generated = [pa.array([f"value {block} of a pool {row}" for row in range(60)]) for block in range(12)]
    fmt = samples.FORMATS["csv"]
    stream = fmt(pa.schema([("a", pa.string())]), fmt.Options(header=False), title="x")
    text = b"".join(samples.write(stream, ([block.dictionary_encode()] for block in generated)))
    assert text.decode().split("\r\n")[:-1] == [value for block in generated for value in block.to_pylist()]


def test_a_block_without_rows_writes_nothing():
    table = {"a": pa.array([1, 2])}
    assert samples.file("json", {"a": pa.array([], pa.int64())}) == b"[\n]\n"
    fmt = samples.FORMATS["json"]
    stream = fmt(samples.schema(table), fmt.Options(), title="x")
    blocks = [[table["a"].slice(0, 1)], [table["a"].slice(0, 0)], [table["a"].slice(1)]]
    assert b"".join(samples.write(stream, blocks)) == samples.file("json", table)


@pytest.mark.parametrize("name", ["json", "csv", "sql", "xlsx"])
def test_a_short_block_between_longer_ones_leaves_no_trace(name):
    table = {"a": pa.array(list(range(1_000, 1_460))), "b": pa.array(["x"] * 460)}
    whole = samples.file(name, table)
    if name == "xlsx":
        assert samples.sheet(samples.file(name, table, [200, 260])) == samples.sheet(whole)
    else:
        assert samples.file(name, table, [200, 260]) == whole
