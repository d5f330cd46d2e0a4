"""Queries on a SQLite file that took memory, changed the process they ran in, or told what is not in the file."""

from __future__ import annotations

import contextlib
import os
import resource
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from tests.connectors.kinds import GATE
from webapp import limits
from webapp.connectors.base import ConnectorError
from webapp.connectors.sqlite.connector import SqliteConnector


def resident() -> int:
    """The memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def readers() -> list[str]:
    """The processes of this one that carry out queries."""
    pids: list[str] = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError):  # a thread that has just ended
            pids += (task / "children").read_text().split()
    return [pid for pid in pids if b"sqlite/reader.py" in Path(f"/proc/{pid}/cmdline").read_bytes()]


@pytest.fixture
def connector(tmp_path):
    return SqliteConnector(SqliteConnector.Settings(file="shop.db"), GATE, folder=str(tmp_path / "space"))


@pytest.fixture
def session(connector):
    with connector.open() as found:
        found.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)")
        found.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        yield found


def refused(session, text) -> ConnectorError:
    with pytest.raises(ConnectorError) as caught:
        session.query(text, {}, 10)
    with pytest.raises(ConnectorError):
        list(session.stream(text))
    return caught.value


@pytest.mark.parametrize(
    "text",
    [
        "pragma hard_heap_limit=100000",
        "pragma soft_heap_limit=100000",
        "PRAGMA  main . cache_size = -900000",
        "pragma temp_store=memory",
        "pragma mmap_size=1000000000000",
        "pragma writable_schema=on",
        "pragma query_only=off",
        "pragma wal_checkpoint(truncate)",
        "pragma journal_mode=delete",
        "pragma database_list",
        "select file from pragma_database_list",
        "select * from pragma_hard_heap_limit(100000)",
        "select fts3_tokenizer('simple')",
        "select * from sqlite_stmt",
        "select sql from SQLITE_STMT where exists (select 1 from t)",
        "select load_extension('x')",
        "attach 'other.db' as o",
        "vacuum into '/tmp/rowsmith-attack.db'",
        "delete from t",
        "select 1; delete from t",
    ],
)
def test_statements_that_access_other_files_are_rejected(session, text):
    refused(session, text)
    assert session.query("select count(*) n from t", {}, 1).column(0).to_pylist() == [2]
    sqlite3.connect(":memory:").execute("create table fine (x)")  # the process's own SQLite works as before


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("pragma table_info(t)", 2),
        ("select name from pragma_table_xinfo('t')", 2),
        ("pragma foreign_key_list(t)", 0),
    ],
)
def test_pragmas_that_describe_tables_are_allowed(session, text, rows):
    assert session.query(text, {}, 10).num_rows == rows


HUGE = [
    "select length(max(hex(zeroblob(490000001)), hex(zeroblob(490000001)), hex(zeroblob(490000001))))",
    "select zeroblob(900000000)",
    "select group_concat(hex(zeroblob(4000000))) from (values (1),(2),(3),(4),(5),(6))",
    "select length(max(" + ",".join(["hex(zeroblob(8000000))"] * 100) + "))",
    "select " + ",".join(["hex(zeroblob(8000000))"] * 100),
    "with recursive r(n, x) as (select 1, zeroblob(8000000) union all select n + 1, x from r) select n, hex(x) from r",
    "select json_group_array(hex(zeroblob(8000000))) from (values (1),(2),(3))",
    "select replace(hex(zeroblob(4000000)), '0', 'aaaaaaaaaa')",
]


@pytest.mark.parametrize("text", HUGE)
def test_queries_that_need_much_memory_end_without_taking_it_from_this_process(session, text):
    before, most, done = resident(), [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            most[0] = max(most[0], resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with pytest.raises(ConnectorError) as caught:
            session.query(text, {}, 10)
    finally:
        done.set()
        watcher.join()
    assert caught.value.reason == "too_large"
    assert "MB" in caught.value.message
    assert most[0] - before < 200 * 1024 * 1024
    assert readers() == []


@pytest.mark.parametrize(
    "text",
    [
        "select length(format('%.*c', 2000000000, 'x'))",
        "select length(printf('%.2000000000c', 'x')) from t",
        "select count(*) from t where printf('%.*c', 2000000000, name) = name",
    ],
)
def test_one_function_does_not_run_to_the_time_limit_of_the_query(session, text, monkeypatch):
    monkeypatch.setattr(limits, "SQLITE_STEP_SECONDS", 0.5)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    with pytest.raises(ConnectorError) as caught:
        session.query(text, {}, 1)
    assert (caught.value.code, caught.value.reason) == ("target_timeout", "timeout")
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 5
    assert readers() == []


def test_a_query_of_many_short_steps_may_take_longer_than_one_step(session, monkeypatch):
    monkeypatch.setattr(limits, "SQLITE_STEP_SECONDS", 0.2)
    many = "with recursive r(n) as (select 1 union all select n + 1 from r limit 3000000) select count(*) n from r"
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    assert session.query(many, {}, 1).column(0).to_pylist() == [3_000_000]
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before > 0.2


def test_values_and_rows_up_to_the_limits_are_read(session):
    found = session.query("select hex(zeroblob(3000000)) a, 5 n", {}, 1)
    assert len(found.column(0)[0].as_py()) == 6_000_000


def test_a_stream_that_is_given_up_leaves_no_process(session):
    rows = session.stream("with recursive r(n) as (select 1 union all select n + 1 from r) select n from r")
    assert next(rows).num_rows >= 10_000
    rows.close()
    assert readers() == []


def test_cancel_ends_a_query(session):
    def cancel() -> None:
        time.sleep(0.5)
        session.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    endless = "with recursive r(n) as (select 1 union all select n + 1 from r) select count(*) from r"
    with pytest.raises(ConnectorError):
        session.query(endless, {}, 1)
    thread.join()


def test_generated_columns_are_bounded_in_pushes_too(session):
    session.execute("CREATE TABLE g (id INT, big AS (hex(zeroblob(400000000))))")
    with pytest.raises(ConnectorError, match="too big"):
        session.execute("INSERT INTO g (id) VALUES (1)")
