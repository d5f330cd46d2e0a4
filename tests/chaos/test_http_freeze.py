"""A sender over HTTP that is frozen for longer than its lease and wakes up: it sends at most what it had in hand.

Promise 2 of docs/promises.md.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import threading
import time
from contextlib import closing

import pytest
from sqlalchemy import select

from tests.chaos.conftest import COUNT, alive
from tests.chaos.http_target import agrees, echo, target  # noqa: F401
from tests.jobs.waiting import eventually
from webapp import clock
from webapp.extensions import db
from webapp.pushes.models import Push

ROUNDS = int(os.environ.get("CHAOS_ROUNDS", "3"))
SHORT = {"LEASE_SECONDS": 2, "LEASE_RENEWAL_SECONDS": 0.5}


def sender(name: str, parallel: int) -> str:
    return json.dumps({"default_headers": {"X-Sender": name}, "parallel": parallel})


def sent_by(echo, name: str, after: float) -> int:
    return sum(item.headers["x-sender"] == name and item.at > after for item in echo.seen)


def freeze(pid: int, push_id: str) -> None:
    """Stop a process, but not while it writes: a file of SQLite would stay locked for everybody, and on PostgreSQL the
    push, until the server ends the transaction."""
    while True:
        os.kill(pid, signal.SIGSTOP)
        if not is_locked(push_id):
            return
        os.kill(pid, signal.SIGCONT)
        threading.Event().wait(0.01)


def is_locked(push_id: str) -> bool:
    if db.engine.dialect.name != "sqlite":
        with db.engine.connect() as connection:
            statement = select(Push.id).where(Push.id == push_id).with_for_update(skip_locked=True)
            return connection.scalar(statement) is None
    try:
        with closing(sqlite3.connect(db.engine.url.database, timeout=0.2, isolation_level=None)) as own:
            own.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:
        return True
    return False


def frozen_and_woken(
    first, second, push_id: str, pushing, echo, parallel: int, moment: float, asleep: float
) -> bool:
    """One round; whether the freeze hit a push under way."""
    pid = first.start(push_id)
    threading.Event().wait(moment)
    freeze(pid, push_id)
    row = pushing.read(push_id)
    if row.status != "running":
        os.kill(pid, signal.SIGCONT)
        first.over()
        return False
    slept = time.monotonic()
    eventually(
        lambda: clock.now() > row.lease_until and time.monotonic() - slept >= asleep, within=asleep + 45
    )
    second.start(push_id)
    eventually(lambda: pushing.read(push_id).epoch > row.epoch)
    eventually(lambda: sent_by(echo, "second", slept))
    woken = time.monotonic()
    os.kill(pid, signal.SIGCONT)
    first.over()
    assert not alive(pid)
    second.over()
    assert sent_by(echo, "first", woken) <= parallel, "the request in hand of each thread"
    agrees(pushing.read(push_id), echo, 1)
    return True


@pytest.mark.parametrize("parallel", [1, 8])
def test_a_fenced_sender_sends_at_most_the_request_in_hand(nursery, new_push, pushing, echo, parallel):
    first = nursery(HTTP=sender("first", parallel), **SHORT)
    second = nursery(HTTP=sender("second", 8), **SHORT)
    chance, hit = random.Random(7), 0
    for _ in range(ROUNDS):
        echo.clear()
        push_id = new_push()
        hit += frozen_and_woken(first, second, push_id, pushing, echo, parallel, chance.uniform(0.3, 2), 0)
    assert hit


def test_a_freeze_of_forty_seconds_under_the_real_lease(nursery, new_push, pushing, echo):
    first, second = nursery(HTTP=sender("first", 8)), nursery(HTTP=sender("second", 8))
    push_id = new_push()
    assert frozen_and_woken(first, second, push_id, pushing, echo, 8, 1.5, 40)
    assert pushing.read(push_id).delivered >= COUNT - 50
