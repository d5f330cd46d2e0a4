"""Queries that took gigabytes of the process that asked: each driver holds a whole row, or a whole answer, in memory.

The process with the driver is limited, and so is what it passes on.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import descendants
from tests.connectors.kinds import Col, Table
from webapp import limits
from webapp.connectors.base import ConnectorError
from webapp.connectors.reader_process import ReaderProcess

MB = limits.MB
MOST = 200 * MB
POSTGRESQL = {
    "one_value_of_1_gb": "select repeat('x', 1000000000)",
    "ten_values_of_100_mb": "select repeat('x', 100000000) from generate_series(1, 10)",
    "an_aggregate_of_300_mb": "select string_agg(repeat('x', 1000), '') from generate_series(1, 300000)",
    "an_array_of_30_million_numbers": "select array_fill(1::int8, array[30000000])",
    "an_array_of_many_texts": "select array_agg(repeat('x', 1000)) from generate_series(1, 200000)",
    "json_of_200_mb": "select json_agg(repeat('x', 1000)) from generate_series(1, 200000)",
    "bytes_of_200_mb": "select decode(repeat('ab', 100000000), 'hex')",
    "a_value_of_17_mb": "select repeat('x', 17000000)",
    "a_row_of_40_mb": "select " + ", ".join(["repeat('x', 10000000)"] * 4),
    "1600_columns_of_100_kb": "select " + ", ".join(["repeat('x', 100000)"] * 1_600),
    "wide_rows_after_narrow_ones": (
        "select case when n < 500 then '' else repeat('x', 1000000) end from generate_series(1, 900) n"
    ),
}
MYSQL = {
    "60_values_of_15_mb": "select repeat('x', 15000000) from (select 1 {sixty}) a",
    "rows_of_90_mb": "select " + ", ".join(["space(15000000)"] * 6),
    "a_row_of_40_mb": "select " + ", ".join(["repeat('x', 10000000)"] * 4),
    "wide_rows_after_narrow_ones": "select if(a.n < 50, '', repeat('x', 15000000)) from (select 1 n {sixty}) a",
}
SIXTY = "".join(f" union all select {number}" for number in range(2, 61))
ANSWERS = {"postgresql": POSTGRESQL, "mysql": MYSQL}


@contextmanager
def growth() -> Iterator[list[int]]:
    """How much larger this process is at its largest than before, in bytes."""
    gc.collect()

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before, most, done = resident(), [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            most[0] = max(most[0], resident() - before)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield most
    finally:
        done.set()
        watcher.join()


@pytest.fixture
def reader(kind):
    if kind.name not in ANSWERS:
        pytest.skip("see the tests of PostgreSQL and MySQL")
    with ReaderProcess(kind.connector(read_only=True)) as found:
        yield found


@pytest.mark.parametrize("name", sorted(POSTGRESQL | MYSQL))
def test_an_answer_that_is_too_large_takes_no_memory_of_this_process(kind, reader, name):
    if name not in ANSWERS[kind.name]:
        pytest.skip("of another kind")
    text = ANSWERS[kind.name][name].replace("{sixty}", SIXTY)
    with growth() as most, pytest.raises(ConnectorError) as caught:
        reader.query(text, {}, 10_001)
    assert caught.value.reason == "too_large"
    assert " MB" in caught.value.message
    assert most[0] < MOST, f"{most[0] / MB:.0f} MB"
    assert reader.query("select 1 as a", {}, 5).num_rows == 1, "the next query is answered"


@pytest.mark.parametrize("name", ["one_value_of_1_gb", "a_row_of_40_mb"])
def test_a_stream_of_rows_that_are_too_large_takes_no_memory_of_this_process(kind, reader, name):
    if name not in ANSWERS[kind.name]:
        pytest.skip("of another kind")
    with growth() as most, pytest.raises(ConnectorError) as caught:
        list(reader.stream(ANSWERS[kind.name][name]))
    assert caught.value.reason == "too_large"
    assert most[0] < MOST, f"{most[0] / MB:.0f} MB"


@pytest.mark.parametrize("name", ["wide_rows_after_narrow_ones", "ten_values_of_1_mb_and_many_empty_ones"])
def test_a_stream_of_wide_rows_is_read_in_small_batches(kind, reader, name):
    """Hundreds of megabytes in all: as many rows as come may have any width, within the limits of a row."""
    text = {
        "wide_rows_after_narrow_ones": ANSWERS[kind.name]["wide_rows_after_narrow_ones"].replace(
            "{sixty}", SIXTY
        ),
        "ten_values_of_1_mb_and_many_empty_ones": "select repeat('x', 1000000) from (select 1 n {sixty}) a".replace(
            "{sixty}", SIXTY
        ),
    }[name]
    rows = 900 if kind.name == "postgresql" and name.startswith("wide") else 60
    with growth() as most:
        count = 0
        for batch in reader.stream(text):
            assert batch.nbytes <= limits.QUERY_ROW_BYTES
            count += batch.num_rows
    assert count == rows
    assert most[0] < MOST, f"{most[0] / MB:.0f} MB"


def test_values_and_rows_up_to_the_limits_are_read(kind, reader):
    found = reader.query("select repeat('x', 6000000) as a, repeat('y', 6000000) as b", {}, 10)
    assert [len(column[0].as_py()) for column in found.columns] == [6_000_000, 6_000_000]


def test_samples_of_wide_rows_are_fewer_rows(kind, reader):
    kind.make(Table("wide", {"id": Col(key=True, null=False), "v": Col("text")}))
    kind.run("ALTER TABLE wide ALTER COLUMN v TYPE text" if kind.name == "postgresql" else
             "ALTER TABLE wide MODIFY v LONGTEXT")  # fmt: skip
    for number in range(30):
        kind.run(f"INSERT INTO wide (id, v) VALUES ({number}, repeat('x', 2000000))")
    found = reader.sample(reader.entity("wide"), 1_000)
    assert 1 <= found.num_rows < 30
    assert found.nbytes <= limits.QUERY_ROW_BYTES


def test_the_answers_of_a_process_are_those_of_a_session(kind):
    """Every kind that has a server here: rows, keys, samples, columns and errors."""
    if kind.name == "sqlite":
        pytest.skip("its queries have such a process each")
    kind.make(Table("t", {"id": Col(key=True, null=False), "name": Col("text", 20)}))
    connector = kind.connector(read_only=True)
    with connector.open() as session, ReaderProcess(connector) as reader:
        entity = session.entity("t")
        assert reader.entity("t") == entity
        assert reader.entity("no such table") is None
        assert reader.metadata().entities == session.metadata().entities
        assert reader.sample(entity, 5).equals(session.sample(entity, 5))
        assert list(reader.keys(entity, ["id"])) == list(session.keys(entity, ["id"]))
        if kind.name != "mongodb":
            with pytest.raises(ConnectorError) as own:
                session.query("select no_such_column from t", {}, 1)
            with pytest.raises(ConnectorError) as other:
                reader.query("select no_such_column from t", {}, 1)
            assert (other.value.message, other.value.reason) == (own.value.message, own.value.reason)


def test_cancel_ends_a_query_and_its_process(kind, reader):
    def cancel() -> None:
        time.sleep(0.5)
        reader.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    began = time.monotonic()
    sleep = "select pg_sleep(25)" if kind.name == "postgresql" else "select sleep(25)"
    with pytest.raises(ConnectorError):
        reader.query(sleep, {}, 1)
    thread.join()
    assert time.monotonic() - began < 15
    running = (
        f"SELECT 1 FROM pg_stat_activity WHERE query LIKE '%{sleep}%' AND state = 'active' AND pid <> pg_backend_pid()"
        if kind.name == "postgresql"
        else f"SELECT 1 FROM information_schema.processlist WHERE info LIKE '{sleep}%' AND id <> connection_id()"
    )
    until = time.monotonic() + 10
    while kind.run(running) and time.monotonic() < until:
        time.sleep(0.05)
    assert kind.run(running) == [] or kind.run(running) == ()


def test_a_stream_that_is_given_up_leaves_no_process(kind, reader):
    before = descendants(os.getpid())
    many = (
        "select g from generate_series(1, 100000000) g"
        if kind.name == "postgresql"
        else f"select 1 from (select 1 n {SIXTY}) a, (select 1 n {SIXTY}) b, (select 1 n {SIXTY}) c"
    )
    rows = reader.stream(many)
    assert next(rows).num_rows
    rows.close()
    assert len(descendants(os.getpid())) < len(before)
    assert reader.query("select 1 as a", {}, 5).num_rows == 1


def test_a_driver_that_dies_is_an_error_and_the_next_query_is_answered(kind, reader):
    os.kill(reader._process._pid, 9)
    with pytest.raises(ConnectorError) as caught:
        reader.query("select 1 as a", {}, 5)
    assert caught.value.reason == "too_large"
    assert reader.query("select 1 as a", {}, 5).num_rows == 1
