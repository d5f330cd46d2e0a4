"""What holds for every registered format."""

from __future__ import annotations

import hashlib
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError

from tests.engine.formats import samples
from webapp.engine.formats import FORMATS, Format, layout, write

EVERY_FORMAT = pytest.mark.parametrize("name", list(FORMATS))
BLOCK = 8_192


def test_the_registry_holds_the_six_formats_under_their_names():
    assert list(FORMATS) == ["json", "ndjson", "csv", "sql", "xlsx", "parquet"]
    assert [cls.name for cls in FORMATS.values()] == list(FORMATS)


@EVERY_FORMAT
def test_a_format_describes_itself(name):
    cls = FORMATS[name]
    assert issubclass(cls, Format)
    assert "/" in cls.media_type
    assert cls.extension.isalnum()
    assert cls.__doc__
    assert cls.Options.model_json_schema()["additionalProperties"] is False


@EVERY_FORMAT
def test_unknown_options_are_rejected_by_the_driver_settings(name):
    with pytest.raises(ValidationError, match="Extra inputs"):
        FORMATS[name].Options(colour="red")


@EVERY_FORMAT
def test_the_first_bytes_are_sent_before_a_second_block_is_requested(name):
    requests = []

    def blocks():
        for number in range(3):
            requests.append(number)
            yield [pa.array([number] * 300), pa.array([f"a text for row {i}" for i in range(300)])]

    cls = FORMATS[name]
    schema = pa.schema([("n", pa.int64()), ("t", pa.string())])
    stream = write(cls(schema, cls.Options(), title="x"), blocks())
    assert next(stream)
    assert len(requests) <= 1
    assert all(stream)
    assert requests == [0, 1, 2]


@EVERY_FORMAT
def test_every_piece_is_bytes_or_a_view_of_them(name):
    cls = FORMATS[name]
    table = samples.columns(samples.FLAT, 100)
    stream = write(cls(samples.schema(table), cls.Options(), title="x"), [list(table.values())])
    for piece in stream:
        assert isinstance(piece, bytes) or (isinstance(piece, memoryview) and piece.format == "B")


@EVERY_FORMAT
def test_memory_stays_flat_over_200_000_rows(name, monkeypatch):
    monkeypatch.undo()  # checking every view takes its time
    assert layout.join_views.__module__ == "webapp.engine.formats.layout"
    cities = pa.array([f"a city of some {i}" for i in range(3_000)])
    days = pa.array(np.arange(18_000, 20_000).astype("M8[D]"))

    def block(start):
        rows = np.arange(start, start + BLOCK)
        return [
            pa.array(rows),
            pa.array(rows * 7_919 % 10_000_019).cast(pa.string()),
            pa.DictionaryArray.from_arrays(pa.array((rows % 3_000).astype(np.int32)), cities),
            pa.DictionaryArray.from_arrays(pa.array((rows % 2_000).astype(np.int32)), days),
            pa.array(rows % 1_000).cast(pa.decimal128(38, 2)),
        ]

    first = block(0)
    schema = pa.schema([(f"c{i}", column.type) for i, column in enumerate(first)])
    cls = FORMATS[name]
    stream = cls(schema, cls.Options(), title="x")
    size = (
        len(stream.start())
        + sum(map(len, stream.write_block(first)))
        + sum(map(len, stream.write_block(block(BLOCK))))
    )
    tracemalloc.start()
    arrow = pa.total_allocated_bytes()
    for start in range(2 * BLOCK, 200_000, BLOCK):
        size += sum(map(len, stream.write_block(block(start))))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    size += sum(map(len, stream.finish()))
    assert size > 1_000_000
    assert peak < 12_000_000
    assert pa.total_allocated_bytes() - arrow < 8_000_000


def test_memory_stays_flat_with_rows_of_any_width(monkeypatch):
    monkeypatch.undo()
    column = pa.array([f"text of some length {i}" for i in range(2_048)])
    cls = FORMATS["json"]
    stream = cls(pa.schema([(f"c{i}", pa.string()) for i in range(500)]), cls.Options(), title="x")
    tracemalloc.start()
    size = sum(len(piece) for _ in range(2) for piece in stream.write_block([column] * 500))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size > 60_000_000
    assert peak < 40_000_000


GOLDEN = {
    "json": "b4ee132fe01bc283644a0a2d1183cc621b3f9a0db259d9be9fac543cbd332b5b",
    "ndjson": "bb34ede87c4f22cd2fea296c28379eb38d18be23fb2bccfce589766a21976999",
    "csv": "6c973ffd5a96821a773988cf4df6f2a3abc98baf86dee3b59211771f8bffaabe",
    "sql": "7bc462720c72bdfa7f8201c14673471d458c3d9c4b246b71147e1a4636f8b195",
    "sql-postgresql": "7f79fc06c7360b26d08b20465ca81c0bcfdbce8477162934e41c0b70fc348c1a",
    "sql-mysql": "d1d90d6883bd5da11000d0d3f81966fb38f9f1a1a1128a1393e68009432d47d1",
    "sql-mssql": "7901ad2c16f49c34c6a00eb68c5b9c7e0ac46b047a686f75e0aa28ec20863d41",
    "sql-oracle": "90181dcfd8bfd906764a918b7022565a740f5bfac4eb1ec1c066926d3ca132a6",
    "sql-db2": "798738baa8e1c343a647ab78d13a094ca28b12c048dc35ba3526f622749ffd63",
}


@pytest.mark.parametrize("name", list(GOLDEN))
def test_the_bytes_of_a_format_never_change(name):
    table = samples.columns({**samples.FLAT, **samples.NESTED}, 200)
    cls, _, dialect = name.partition("-")
    data = samples.file(
        cls, table, [1, 100], **({"dialect": dialect, "create_table": True} if dialect else {})
    )
    assert hashlib.sha256(data).hexdigest() == GOLDEN[name]


@pytest.mark.parametrize("name", ["json", "csv", "sql", "xlsx"])
def test_the_files_of_a_small_table_are_these(name):
    when = samples.STAMPS[0]
    table = {
        "id": pa.array([1, 2]),
        "name": pa.array(['Ann "A", O\'Neil', None]),
        "price": pa.array([samples.Decimal("1.50"), None], samples.DECIMAL),
        "at": pa.array([None, when], samples.INSTANT),
        "tags": pa.array([["x", "y"], None]),
    }
    expected = {
        "json": (
            b'[\n{"id":1,"name":"Ann \\"A\\", O\'Neil","price":1.50,"at":null,"tags":["x","y"]},\n'
            b'{"id":2,"name":null,"price":null,"at":"2024-01-31T01:02:03Z","tags":null}\n]\n'
        ),
        "csv": (
            b'id,name,price,at,tags\r\n1,"Ann ""A"", O\'Neil",1.50,,"[""x"",""y""]"\r\n2,,,2024-01-31T01:02:03Z,\r\n'
        ),
        "sql": (
            b'INSERT INTO "order_lines" ("id", "name", "price", "at", "tags") VALUES\n'
            b"(1,'Ann \"A\", O''Neil',1.50,NULL,'[\"x\",\"y\"]'),\n"
            b"(2,NULL,NULL,'2024-01-31 01:02:03+00:00',NULL);\n"
        ),
        "xlsx": (
            b'<c><v>1</v></c><c t="inlineStr"><is><t>Ann "A", O\'Neil</t></is></c><c s="5"><v>1.50</v></c><c/>'
            b'<c t="inlineStr"><is><t>["x","y"]</t></is></c></row>'
            b'<row><c><v>2</v></c><c/><c/><c s="3"><v>45322.043090277778</v></c><c/></row></sheetData></worksheet>'
        ),
    }
    data = samples.file(name, table)
    if name == "xlsx":
        assert samples.sheet(data).endswith(expected[name])
    else:
        assert data == expected[name]
