from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.engine.formats import samples
from tests.engine.formats.samples import file
from webapp.engine.formats import parquet_format

EVERYTHING = samples.columns({**samples.FLAT, **samples.NESTED}, 150)


def read(data: bytes) -> pa.Table:
    return pq.read_table(io.BytesIO(data))


@pytest.mark.parametrize("pooled", [False, True], ids=["plain", "pooled"])
@pytest.mark.parametrize("cuts", [[], [1, 2, 50]])
def test_every_value_is_read_back_equal_with_its_type(pooled, cuts):
    table = {k: samples.pooled(v) for k, v in EVERYTHING.items()} if pooled else EVERYTHING
    got = read(file("parquet", table, cuts))
    for name, column in EVERYTHING.items():
        assert got[name].to_pylist() == column.to_pylist(), name
        if name not in samples.NESTED:
            assert got.schema.field(name).type == (pa.string() if name == "nothing" else column.type)


def test_pools_inside_objects_and_arrays_are_read():
    pool = pa.array(["a", None, "b", "a"]).dictionary_encode()
    table = {
        "o": pa.StructArray.from_arrays([pool.slice(0, 2)], ["x"]),
        "l": pa.ListArray.from_arrays(pa.array([0, 3, 4], pa.int32()), pool),
    }
    got = read(file("parquet", table))
    assert got.to_pylist() == [{"o": {"x": "a"}, "l": ["a", None, "b"]}, {"o": {"x": None}, "l": ["a"]}]


def test_row_groups_have_a_fixed_size_with_any_blocks(monkeypatch):
    monkeypatch.setattr(parquet_format.limits, "PARQUET_GROUP_ROWS", 100)
    table = {"n": pa.array(list(range(250)))}
    for cuts in ([], [30, 60, 90, 120, 249]):
        data = file("parquet", table, cuts)
        meta = pq.read_metadata(io.BytesIO(data))
        assert [meta.row_group(i).num_rows for i in range(meta.num_row_groups)] == [100, 100, 50]
        assert read(data)["n"].to_pylist() == list(range(250))


def test_a_wide_row_group_ends_sooner(monkeypatch):
    monkeypatch.setattr(parquet_format.limits, "PARQUET_GROUP_BYTES", 1_000)
    data = file("parquet", {"t": pa.array(["x" * 100] * 40)}, list(range(0, 40, 5)))
    assert pq.read_metadata(io.BytesIO(data)).num_row_groups == 4


def test_the_same_rows_make_the_same_file():
    assert file("parquet", EVERYTHING) == file("parquet", EVERYTHING)


def test_a_file_without_rows_has_its_schema():
    got = read(file("parquet", {"a": pa.array([], pa.int64()), "b": pa.array([], pa.string())}))
    assert got.schema.names == ["a", "b"]
    assert got.num_rows == 0
