"""A worker that dies in the middle of a push: nothing is lost, nothing is doubled, nothing is made up.

Promise 3 of docs/promises.md.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import threading

import psycopg
import pytest

from tests.chaos.conftest import COUNT, ids, lose
from webapp import limits

ROUNDS = int(os.environ.get("CHAOS_ROUNDS", "25"))


@pytest.fixture(params=["people", "heap", "file"])
def place(request, target, tmp_path):
    """A target, its table, and how to empty and read it: PostgreSQL with a key and without, SQLite."""
    if request.param != "file":
        yield target, request.param, lambda: empty(target, request.param), lambda: ids(target, request.param)
        return
    path = tmp_path / "target.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("CREATE TABLE heap (id integer, name text)")
    found = "SELECT id FROM heap ORDER BY id"
    yield (
        f"sqlite:///{path}",
        "heap",
        lambda: connection.execute("DELETE FROM heap"),
        lambda: [row[0] for row in connection.execute(found)],
    )
    connection.close()


def empty(url: str, table: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"TRUNCATE {table}")


def test_rows_in_the_table_are_the_rows_delivered_after_kills_at_any_moment(
    nursery, new_push, pushing, place
):
    address, table, clear, found = place
    keeper = nursery(TARGET=address)
    chance = random.Random(20261121)
    interrupted = 0
    for _ in range(ROUNDS):
        clear()
        push_id = new_push(table)
        for _ in range(limits.MAX_ATTEMPTS - 1):
            pid = keeper.start(push_id)
            threading.Event().wait(chance.uniform(0, 0.35))  # the moment of the kill, no waiting for anything
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            keeper.over()
            lose(push_id)
        keeper.do(push_id)
        ended = pushing.read(push_id)
        assert ended.status == "completed", ended.error
        assert (ended.delivered, ended.failed) == (COUNT - ended.unknown, 0)
        assert ended.unknown <= (500 if address.startswith("sqlite") else 0), (
            "a chunk at most; PostgreSQL can tell"
        )
        rows = found()
        assert len(rows) == len(set(rows)), "no row twice"
        assert ended.delivered <= len(rows) <= ended.delivered + ended.unknown
        interrupted += ended.attempt > 1
    # On a quick machine many a kill comes too late.
    assert interrupted >= ROUNDS // 5, "enough kills hit a push that was under way"
