"""A sender that is frozen for longer than its lease and wakes up: there are never two.

Promise 2 of docs/promises.md.
"""

from __future__ import annotations

import os
import random
import signal
import threading

import psycopg
import pytest

from tests.chaos.conftest import COUNT, alive, ids
from tests.jobs.waiting import eventually
from webapp import clock

ROUNDS = int(os.environ.get("CHAOS_ROUNDS", "6"))


@pytest.mark.parametrize("table", ["people", "heap"])
def test_freezing_a_sender_never_makes_two(nursery, new_push, pushing, target, table):
    lease = {"LEASE_SECONDS": 2, "LEASE_RENEWAL_SECONDS": 0.5}
    first, second = nursery(**lease), nursery(**lease)
    chance = random.Random(7)
    taken_over = 0
    for _ in range(ROUNDS):
        with psycopg.connect(target, autocommit=True) as connection:
            connection.execute(f"TRUNCATE {table}")
        push_id = new_push(table)
        frozen = first.start(push_id)
        threading.Event().wait(chance.uniform(0.05, 0.3))
        os.kill(frozen, signal.SIGSTOP)
        if (row := pushing.read(push_id)).status == "running":
            eventually(lambda row=row: clock.now() > row.lease_until)
            other = second.start(push_id)
            threading.Event().wait(chance.uniform(0, 0.3))
            os.kill(frozen, signal.SIGCONT)
            second.over()
            taken_over += 1
            assert not alive(other)
        else:
            os.kill(frozen, signal.SIGCONT)
        first.over()
        ended = pushing.read(push_id)
        assert (ended.status, ended.delivered, ended.unknown) == ("completed", COUNT, 0), (
            first.log.read_text()[-3000:]
        )
        assert ids(target, table) == list(range(1, COUNT + 1))
    assert taken_over
