"""Windows are exact, over threads and processes."""

from __future__ import annotations

import json
import subprocess
import sys
import threading

import pytest
import redis

from webapp.extensions import make_redis
from webapp.rate_limiting import Windows

HAMMER = """
import json, sys, threading, time
from webapp.extensions import make_redis
from webapp.rate_limiting import Windows
windows = Windows(make_redis(sys.argv[1]))
until = time.monotonic() + float(sys.argv[2])
marks = []
def hammer():
    while time.monotonic() < until:
        passage = windows.enter("hammered", int(sys.argv[3]), float(sys.argv[4]))
        if passage.accepted:
            marks.append(int(passage.mark))
threads = [threading.Thread(target=hammer) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(json.dumps(marks))
"""


@pytest.fixture
def windows(shared_redis):
    client = make_redis(shared_redis)
    client.flushdb()
    made = Windows(client)
    yield made
    made.close()
    client.close()


def test_sixteen_threads_in_two_processes_never_pass_the_limit_in_any_window(windows, shared_redis):
    limit, window = 60, 0.5
    command = [sys.executable, "-c", HAMMER, shared_redis, "1.8", str(limit), str(window)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    marks = sorted(mark for p in processes for mark in json.loads(p.communicate()[0]))
    assert all(p.returncode == 0 for p in processes)
    assert len(marks) >= 3 * limit  # it does let in what it may
    # One more than the limit never lies within one window.
    assert all(late - early >= window * 1e6 for early, late in zip(marks, marks[limit:], strict=False))


def test_a_place_given_back_is_free_again(windows):
    first = windows.enter("w", 1, 60)
    assert not windows.enter("w", 1, 60).accepted
    windows.give_back("w", first)
    assert windows.enter("w", 1, 60).accepted


def test_remaining_counts_down_and_reset_is_when_the_first_one_leaves(windows):
    first, second = windows.enter("w", 3, 60), windows.enter("w", 3, 60)
    assert (first.remaining, second.remaining) == (2, 1)
    assert first.reset == second.reset == int(first.mark) / 1e6 + 60


def test_a_lowered_limit_holds_at_once(windows):
    for _ in range(5):
        windows.enter("w", 10, 60)
    assert not windows.enter("w", 3, 60).accepted
    assert windows.enter("w", 6, 60).accepted


def test_nothing_is_counted_under_a_stale_epoch(windows, shared_redis):
    client = make_redis(shared_redis)
    client.set("epoch", "new")
    stale = windows.enter("w", 5, 60, "epoch", "old")
    assert (stale.stale, stale.accepted) == (True, False)
    assert windows.enter("w", 5, 60, "epoch", "new").remaining == 4
    assert windows.enter("w", 5, 60, "no-epoch", "any").stale
    client.close()


def test_rows_are_taken_all_or_none(windows):
    windows.seed_rows("r", [])
    assert windows.take_rows("r", 8, 10).state == "taken"
    refused = windows.take_rows("r", 3, 10)
    assert (refused.state, refused.used) == ("refused", 8)
    assert windows.take_rows("r", 2, 10).used == 10


def test_rows_fit_again_when_enough_old_ones_have_left(windows, shared_redis):
    client = make_redis(shared_redis)
    now = int(client.time()[0])
    client.close()
    windows.seed_rows("r", [(now - 3_000, 5), (now - 2_000, 3), (now - 1_000, 2)])
    assert windows.take_rows("r", 6, 10).second == now - 2_000 + 3_601
    assert windows.take_rows("r", 1, 10).second == now - 3_000 + 3_601


def test_rows_older_than_an_hour_do_not_count(windows, shared_redis):
    client = make_redis(shared_redis)
    now = int(client.time()[0])
    client.close()
    windows.seed_rows("r", [(now - 3_700, 5), (now - 100, 3)])
    assert windows.take_rows("r", 0, 10).used == 3


def test_rows_given_back_are_free_again_and_never_more_than_were_taken(windows):
    windows.seed_rows("r", [])
    taken = windows.take_rows("r", 8, 10)
    assert windows.give_rows("r", taken.second, 5) == 5
    assert windows.give_rows("r", taken.second, 50) == 3
    assert windows.give_rows("r", taken.second, 50) == 0
    assert windows.take_rows("r", 0, 10).used == 0


def test_an_emptied_redis_says_that_it_does_not_know_the_rows(windows):
    assert windows.take_rows("r", 1, 10).state == "unknown"


def test_a_count_is_not_seeded_over(windows):
    windows.seed_rows("r", [])
    windows.take_rows("r", 8, 10)
    windows.seed_rows("r", [(1, 1)])
    assert windows.take_rows("r", 0, 10).used == 8


def test_rows_taken_by_many_threads_add_up_to_the_limit_exactly(windows):
    windows.seed_rows("r", [])
    taken = []

    def take():
        states = [windows.take_rows("r", 7, 1_000).state for _ in range(20)]
        taken.extend(7 for state in states if state == "taken")

    threads = [threading.Thread(target=take) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(taken) == 994  # 142 times 7: one more would be 1,001


def test_a_connection_cut_by_redis_is_made_anew(windows, shared_redis):
    assert windows.enter("w", 5, 60).accepted
    client = make_redis(shared_redis)
    client.client_kill_filter(_type="normal", skipme=True)
    client.close()
    assert windows.enter("w", 5, 60).accepted


def test_an_answer_that_came_too_late_is_not_taken_for_the_next_ones(shared_redis):
    slow, client = make_redis(shared_redis), make_redis(shared_redis)
    slow.connection_pool.connection_kwargs.update(socket_timeout=0.05)
    windows = Windows(slow)
    windows.seed_rows("late", [])
    client.client_pause(400, all=False)  # scripts wait; connections can be made
    with pytest.raises(redis.TimeoutError):
        windows.enter("w", 5, 60)
    client.client_unpause()
    assert windows.take_rows("late", 3, 10).state == "taken"
    windows.close()
    slow.close()
    client.close()


def both(windows, limit, most, epoch=""):
    return windows.enter_and_take("w", limit, 60, "epoch", epoch, "r", 4, most)


def test_a_place_and_rows_are_taken_in_one_question(windows):
    windows.seed_rows("r", [])
    passage, answer = both(windows, 5, 10)
    assert (passage.accepted, passage.remaining, answer.state, answer.used) == (True, 4, "taken", 4)


def test_without_a_place_no_rows_are_taken(windows, shared_redis):
    windows.seed_rows("r", [])
    windows.enter("w", 1, 60)
    passage, answer = both(windows, 1, 10)
    assert (passage.accepted, passage.stale, answer) == (False, False, None)
    passage, answer = both(windows, 5, 10, epoch="old")
    assert (passage.accepted, passage.stale, answer) == (False, True, None)
    assert windows.take_rows("r", 0, 10).used == 0


def test_a_place_is_taken_where_the_rows_are_not(windows):
    passage, answer = both(windows, 5, 10)
    assert (passage.remaining, answer.state) == (4, "unknown")
    windows.seed_rows("r", [])
    passage, answer = both(windows, 5, 3)
    assert (passage.remaining, answer.state) == (3, "refused")


def test_a_connection_that_redis_closed_is_renewed(windows, shared_redis):
    assert windows.enter("w", 5, 60).accepted
    client = make_redis(shared_redis)
    client.client_kill_filter(_type="normal", skipme=True)
    assert windows.enter("w", 5, 60).remaining == 3
    client.close()


def test_a_redis_that_is_silent_is_a_timeout(windows, shared_redis):
    client = make_redis(shared_redis)
    silent = Windows(redis.Redis.from_url(shared_redis, socket_timeout=0.2))
    silent.enter("w", 5, 60)
    client.client_pause(1500)
    with pytest.raises(redis.TimeoutError):
        silent.enter("w", 5, 60)
    client.client_unpause()
    client.close()
