"""A worker killed in the middle of a push over HTTP: every row arrives once, or is reported as unknown.

Promise 1 of docs/promises.md.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import threading
import time

import pytest

from jobs import sweeper
from tests.chaos.conftest import COUNT, alive, lose
from tests.chaos.http_target import agrees, echo, effects, target  # noqa: F401
from tests.chaos.test_interrupted import horse_of, under_way, worker  # noqa: F401
from tests.jobs.waiting import eventually
from webapp import clock, limits
from webapp.work import jobs_queue

ROUNDS = int(os.environ.get("CHAOS_ROUNDS", "3"))


@pytest.mark.parametrize("honours", [False, True], ids=["any target", "one that honours the key"])
def test_every_row_is_delivered_once_or_unknown_after_kills_at_any_moment(
    nursery, new_push, pushing, echo, honours
):
    keeper = nursery(HTTP=json.dumps({"idempotent": honours}))
    chance = random.Random(20261122 + honours)
    interrupted = 0
    for _ in range(ROUNDS):
        echo.clear()
        echo._stored.clear()
        echo.honours_keys = honours
        push_id = new_push()
        for _ in range(limits.MAX_ATTEMPTS - 1):
            pid = keeper.start(push_id)
            threading.Event().wait(chance.uniform(0, 4))  # the moment of the kill, no waiting for anything
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            keeper.over()
            interrupted += pushing.read(push_id).status == "running"
            lose(push_id)
        keeper.do(push_id)
        ended = pushing.read(push_id)
        agrees(ended, echo, limits.MAX_ATTEMPTS - 1)
        print(
            f"attempt {ended.attempt}: {ended.delivered} delivered, {ended.unknown} unknown, {len(echo.seen)} sent"
        )
        if honours:
            assert ended.unknown == 0
            assert effects(echo) == dict.fromkeys(range(1, COUNT + 1), 1)
    assert interrupted >= ROUNDS


def test_every_outcome_is_known_within_a_minute_after_a_worker_is_back(
    worker, new_push, pushing, client, echo
):
    """Use the real lease duration, and wait until the lease expires."""
    first = worker()
    push_id = new_push()
    jobs_queue.enqueue(client, "push", push_id)
    under_way(pushing, push_id, 1_000)
    horse = horse_of(first.pid)
    for pid in (first.pid, horse):
        os.kill(pid, signal.SIGKILL)
    first.wait()
    eventually(lambda: not alive(horse))
    worker()
    again = time.monotonic()

    def over() -> bool:
        sweeper.sweep(client, clock.now())
        return pushing.read(push_id).has_ended

    eventually(over, within=60)
    took = time.monotonic() - again
    agrees(pushing.read(push_id), echo, 1)
    print(f"{took:.0f} s")
