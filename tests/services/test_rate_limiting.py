"""RateLimiter are exact, over threads and processes."""

from __future__ import annotations

import json
import subprocess
import sys
import threading

import pytest
import redis

from webapp.extensions import create_redis_client
from webapp.rate_limiting import RateLimiter

HAMMER = """
import json, sys, threading, time
from webapp.extensions import create_redis_client
from webapp.rate_limiting import RateLimiter
limiter = RateLimiter(create_redis_client(sys.argv[1]))
until = time.monotonic() + float(sys.argv[2])
marks = []
def hammer():
    while time.monotonic() < until:
        passage = limiter.hit("hammered", int(sys.argv[3]), float(sys.argv[4]))
        if passage.accepted:
            marks.append(int(passage.member))
threads = [threading.Thread(target=hammer) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(json.dumps(marks))
"""


@pytest.fixture
def limiter(shared_redis):
    client = create_redis_client(shared_redis)
    client.flushdb()
    result = RateLimiter(client)
    yield result
    client.close()


def test_sixteen_threads_in_two_processes_never_exceed_the_limit_in_any_window(limiter, shared_redis):
    limit, window = 60, 0.25
    command = [sys.executable, "-c", HAMMER, shared_redis, "0.9", str(limit), str(window)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    marks = sorted(mark for p in processes for mark in json.loads(p.communicate()[0]))
    assert all(p.returncode == 0 for p in processes)
    assert len(marks) >= 3 * limit  # it does let in what it may
    # No window contains more requests than the limit.
    assert all(late - early >= window * 1e6 for early, late in zip(marks, marks[limit:], strict=False))


def test_an_undone_hit_is_available_again(limiter):
    first = limiter.hit("w", 1, 60)
    assert not limiter.hit("w", 1, 60).accepted
    limiter.undo_hit("w", first)
    assert limiter.hit("w", 1, 60).accepted


def test_remaining_counts_down_and_reset_is_when_the_first_hit_expires(limiter):
    first, second = limiter.hit("w", 3, 60), limiter.hit("w", 3, 60)
    assert (first.remaining, second.remaining) == (2, 1)
    assert first.reset == second.reset == int(first.member) / 1e6 + 60


def test_a_lowered_limit_applies_immediately(limiter):
    for _ in range(5):
        limiter.hit("w", 10, 60)
    assert not limiter.hit("w", 3, 60).accepted
    assert limiter.hit("w", 6, 60).accepted


def test_no_request_is_counted_under_a_stale_epoch(limiter, shared_redis):
    client = create_redis_client(shared_redis)
    client.set("epoch", "new")
    stale = limiter.hit("w", 5, 60, "epoch", "old")
    assert (stale.stale, stale.accepted) == (True, False)
    assert limiter.hit("w", 5, 60, "epoch", "new").remaining == 4
    assert limiter.hit("w", 5, 60, "no-epoch", "any").stale
    client.close()


def test_rows_are_reserved_completely_or_not_at_all(limiter):
    limiter.restore_rows("r", [])
    assert limiter.reserve_rows("r", 8, 10).state == "reserved"
    refused = limiter.reserve_rows("r", 3, 10)
    assert (refused.state, refused.used) == ("exceeded", 8)
    assert limiter.reserve_rows("r", 2, 10).used == 10


def test_rows_fit_again_once_enough_old_ones_have_expired(limiter, shared_redis):
    client = create_redis_client(shared_redis)
    now = int(client.time()[0])
    client.close()
    limiter.restore_rows("r", [(now - 3_000, 5), (now - 2_000, 3), (now - 1_000, 2)])
    assert limiter.reserve_rows("r", 6, 10).second == now - 2_000 + 3_601
    assert limiter.reserve_rows("r", 1, 10).second == now - 3_000 + 3_601


def test_rows_older_than_an_hour_do_not_count(limiter, shared_redis):
    client = create_redis_client(shared_redis)
    now = int(client.time()[0])
    client.close()
    limiter.restore_rows("r", [(now - 3_700, 5), (now - 100, 3)])
    assert limiter.reserve_rows("r", 0, 10).used == 3


def test_returned_rows_are_available_again_up_to_the_reservation(limiter):
    limiter.restore_rows("r", [])
    taken = limiter.reserve_rows("r", 8, 10)
    assert limiter.return_rows("r", taken.second, 5) == 5
    assert limiter.return_rows("r", taken.second, 50) == 3
    assert limiter.return_rows("r", taken.second, 50) == 0
    assert limiter.reserve_rows("r", 0, 10).used == 0


def test_rows_are_unknown_after_redis_was_emptied(limiter):
    assert limiter.reserve_rows("r", 1, 10).state == "unknown"


def test_restore_does_not_overwrite_a_count(limiter):
    limiter.restore_rows("r", [])
    limiter.reserve_rows("r", 8, 10)
    limiter.restore_rows("r", [(1, 1)])
    assert limiter.reserve_rows("r", 0, 10).used == 8


def test_parallel_reservations_add_up_to_the_limit(limiter):
    limiter.restore_rows("r", [])
    taken = []

    def take():
        states = [limiter.reserve_rows("r", 7, 1_000).state for _ in range(20)]
        taken.extend(7 for state in states if state == "reserved")

    threads = [threading.Thread(target=take) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(taken) == 994  # 142 times 7: one more would be 1,001


def test_a_late_reply_is_not_used_for_the_next_command(shared_redis):
    slow, client = create_redis_client(shared_redis), create_redis_client(shared_redis)
    slow.connection_pool.connection_kwargs.update(socket_timeout=0.05)
    limiter = RateLimiter(slow)
    limiter.restore_rows("late", [])
    client.client_pause(400, all=False)  # scripts wait; connections can be made
    with pytest.raises(redis.TimeoutError):
        limiter.hit("w", 5, 60)
    client.client_unpause()
    assert limiter.reserve_rows("late", 3, 10).state == "reserved"
    slow.close()
    client.close()


def test_a_connection_that_redis_closed_is_renewed(limiter, shared_redis):
    assert limiter.hit("w", 5, 60).accepted
    client = create_redis_client(shared_redis)
    client.client_kill_filter(_type="normal", skipme=True)
    assert limiter.hit("w", 5, 60).remaining == 3
    client.close()


def test_a_silent_redis_is_a_timeout(limiter, shared_redis):
    client = create_redis_client(shared_redis)
    silent = RateLimiter(redis.Redis.from_url(shared_redis, socket_timeout=0.2))
    silent.hit("w", 5, 60)
    client.client_pause(1500)
    with pytest.raises(redis.TimeoutError):
        silent.hit("w", 5, 60)
    client.client_unpause()
    client.close()
