"""COPY's binary format leaves what its text format leaves, and is not used where the two may differ."""

from __future__ import annotations

from datetime import UTC, date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.connectors.conftest import missing
from tests.connectors.kind_postgresql import PostgresqlKind
from tests.connectors.sending import deliver, reasons, target_of
from webapp.connectors.postgresql.copy import CopyBinary
from webapp.connectors.schema import Column

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=40)
TYPES = {
    "bigint": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "integer": (pa.int64(), st.integers(-(2**31), 2**31 - 1)),
    "smallint": (pa.int64(), st.integers(-(2**15), 2**15 - 1)),
    "numeric": (pa.decimal128(38, 3), st.decimals(-(10**14), 10**14, places=3, allow_nan=False)),
    "numeric(20,2)": (pa.decimal128(20, 2), st.decimals(-(10**14), 10**14, places=2, allow_nan=False)),
    "numeric(30)": (pa.int64(), st.integers(-(2**62), 2**62)),
    "double precision": (pa.float64(), st.floats()),
    "boolean": (pa.bool_(), st.booleans()),
    "date": (pa.date32(), st.dates()),
    "timestamp without time zone": (pa.timestamp("us"), st.datetimes()),
    "timestamp with time zone": (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(UTC))),
    "uuid": (pa.string(), st.uuids().map(str)),
    "text": (pa.string(), TEXTS),
    "character varying(40)": (pa.string(), TEXTS),
    "character(40)": (pa.dictionary(pa.int32(), pa.string()), TEXTS),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if reason := missing(PostgresqlKind):
        pytest.skip(reason)
    kind = PostgresqlKind(tmp_path_factory.mktemp("postgresql"))
    kind.start()
    columns = ", ".join(f'"{name}" {name}' for name in TYPES)
    for table in ("by_text", "by_binary"):
        kind.run(f"CREATE TABLE {table} ({columns})")
    kind.run("CREATE TABLE few (id bigint PRIMARY KEY, n integer, t text, u uuid)")
    with kind.connector().open() as session:
        yield kind, session
    kind.stop()


@pytest.fixture
def few(server):
    kind, session = server
    kind.run("TRUNCATE few")
    return kind, session


@settings(deadline=None, max_examples=40)
@given(data=st.data(), count=st.integers(1, 60))
def test_both_formats_leave_the_same_values(server, data, count):
    kind, session = server
    rows = {}
    for name, (type_, values) in TYPES.items():
        found = data.draw(st.lists(st.none() | values, min_size=count, max_size=count))
        rows[name] = pa.array(found, type_)
    batch = pa.record_batch(rows)
    for table in ("by_text", "by_binary"):
        kind.run(f"TRUNCATE {table}")
        target = target_of(session, table, list(rows))
        assert target._binary.lines(batch) is not None
        if table == "by_text":
            target._binary._able = False
        assert target.send(batch).failures == []
        target.commit()
    left, right = (
        kind.run(f"SELECT t::text FROM {table} t ORDER BY ctid") for table in ("by_text", "by_binary")
    )
    assert left == right


def writes(declared: str, array: pa.Array) -> bool:
    return CopyBinary([Column("c", "other", declared)]).lines(pa.record_batch({"c": array})) is not None


@pytest.mark.parametrize(
    ("declared", "array"),
    [
        ("integer", pa.array([1, 2**31])),
        ("smallint", pa.array([-(2**15) - 1])),
        ("bigint", pa.array(["1"])),
        ("bigint", pa.array([2**63], pa.uint64())),
        ("numeric", pa.array([Decimal(2**70)], pa.decimal128(38, 2))),
        ("numeric", pa.array([2**63 - 1], pa.int64()).cast(pa.decimal128(38, 1))),
        ("text", pa.array(["a\0b"])),
        ("text", pa.array([1])),
        ("uuid", pa.array(["6f2c1e4e81c34e0ab6b1a9b1f0c1d2e3"])),
        ("uuid", pa.array(["6f2c1e4e-81c3-4e0a-b6b1-a9b1f0c1d2ez"])),
        ("uuid", pa.array(["6f2c1e4e-81c3-4e0a_b6b1-a9b1f0c1d2e3"])),
        ("date", pa.array([-800_000], pa.int32()).cast(pa.date32())),
        ("date", pa.array(["2024-01-01"])),
        ("timestamp without time zone", pa.array([2**62], pa.int64()).cast(pa.timestamp("us"))),
        ("interval", pa.array(["1 day"])),
        ("money", pa.array([1])),
        ("some_domain", pa.array(["x"])),
    ],
)
def test_types_that_may_differ_are_sent_in_text_format(declared, array):
    assert not writes(declared, array)


@pytest.mark.parametrize(
    ("declared", "array"),
    [
        ("date", pa.array([date(1, 1, 1), date(9999, 12, 31)])),
        (
            "timestamp without time zone",
            pa.array([-62_135_596_800_000_000, 253_402_300_799_999_999], pa.timestamp("us")),
        ),
        ("integer", pa.array([-(2**31), 2**31 - 1])),
        ("uuid", pa.array(["6F2C1E4E-81C3-4E0A-B6B1-A9B1F0C1D2E3", None])),
        ("text", pa.array([None, None], pa.string())),
        ("bigint", pa.nulls(3)),
    ],
)
def test_types_equal_in_both_are_sent_in_binary_format(declared, array):
    assert writes(declared, array)


def test_slices_are_written_as_they_are(few):
    kind, session = few
    whole = pa.record_batch(
        {"id": np.arange(9), "n": pa.array([None, 1] * 4 + [2]), "t": pa.array(["é" * i for i in range(9)])}
    )
    target = target_of(session, "few", whole.schema.names)
    target.send(whole.slice(3, 4))
    target.commit()
    assert kind.run("SELECT id, n, t FROM few ORDER BY id") == [
        (3, 1, "ééé"), (4, None, "éééé"), (5, 1, "ééééé"), (6, None, "éééééé"),
    ]  # fmt: skip


def test_rejected_rows_of_a_binary_chunk_are_identified_by_their_lines(few):
    kind, session = few
    kind.run("INSERT INTO few VALUES (500, 0)")
    sent = deliver(session, "few", {"id": [*range(1_000), 7], "n": [1] * 1_001})
    assert reasons(sent) == {500: "unique", 1_000: "unique"}
    assert {failure.native for failure in sent.failures} == {"23505"}
    assert kind.run("SELECT count(*) FROM few WHERE n = 1") == [(999,)]
