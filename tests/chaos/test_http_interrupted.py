"""What else may happen to a push over HTTP: a cancel, a stop, the loss of the parent, an empty Redis.

Promises 2 and 8 of docs/promises.md.
"""

from __future__ import annotations

import signal
import threading
import time

import pytest

from jobs import sweeper
from tests.chaos.conftest import COUNT, alive, cancel, lose
from tests.chaos.http_target import agrees, echo, effects, target  # noqa: F401
from tests.chaos.test_interrupted import horse_of, under_way, worker  # noqa: F401
from tests.fakes.echo_target import Answer, busy
from tests.jobs.waiting import eventually
from webapp import clock
from webapp.extensions import write_session
from webapp.pushes.models import Push
from webapp.pushes.services.ledger import read
from webapp.work import jobs_queue


@pytest.mark.parametrize(
    "stalled",
    [
        Answer(delay=600),
        Answer(201, "x" * 100, drip=1),
        Answer(201, drip_head=1),
        Answer(endless=True),
        busy(100),
    ],
    ids=["silent", "slow body", "slow head", "endless", "told to wait"],
)
def test_a_cancel_holds_within_six_seconds_and_leaves_nothing_sending(
    nursery, new_push, pushing, echo, stalled
):
    keeper = nursery()
    push_id = new_push()
    pid = keeper.start(push_id)
    under_way(pushing, push_id, 500)
    echo.on("*", stalled)
    threading.Event().wait(0.5)  # they hang by then
    request = time.monotonic()
    cancel(push_id)
    eventually(lambda: pushing.read(push_id).has_ended and not alive(pid))
    took = time.monotonic() - request
    keeper.over()
    assert took < 6
    calls = len(echo.calls())
    ended = pushing.read(push_id)
    assert ended.status == "cancelled"
    assert ended.request["settled"]
    arrived = set(effects(echo))
    doubt = {row.row for row in read.rows(push_id, state="unknown", limit=100)}
    assert len(doubt) == ended.unknown <= 8
    assert ended.delivered <= len(arrived) <= ended.delivered + ended.unknown
    assert ended.delivered + ended.failed + ended.unknown < COUNT
    threading.Event().wait(0.5)
    assert len(echo.calls()) == calls


def test_a_stopping_worker_releases_its_push_and_the_next_continues(worker, new_push, pushing, client, echo):
    push_id = new_push()
    echo.on("*", lambda seen: Answer(201, delay=0.005))
    process = worker()
    jobs_queue.enqueue(client, "push", push_id)
    for rows in (500, 3_000):
        under_way(pushing, push_id, rows)
        request = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
        assert time.monotonic() - request < 20
        freed = pushing.read(push_id)
        assert (freed.status, freed.lease_owner, freed.attempt) == ("running", None, 1)
        process = worker()
    ended = eventually(lambda: (row := pushing.read(push_id)).has_ended and row, within=90)
    assert (ended.status, ended.delivered, ended.attempt) == ("completed", COUNT, 1)
    assert effects(echo) == dict.fromkeys(range(1, COUNT + 1), 1)


def test_killing_only_the_parent_never_makes_two_senders(worker, new_push, pushing, client, echo):
    first = worker()
    push_id = new_push()
    jobs_queue.enqueue(client, "push", push_id)
    under_way(pushing, push_id, 500)
    horse = horse_of(first.pid)
    first.kill()
    first.wait()
    eventually(lambda: not alive(horse))
    lose(push_id)
    worker()
    sweeper.sweep(client, clock.now())
    ended = eventually(lambda: (row := pushing.read(push_id)).has_ended and row, within=90)
    assert ended.attempt == 2
    agrees(ended, echo, 1)


def test_emptying_redis_loses_no_push_and_no_line(worker, new_push, pushing, client, echo):
    worker()
    running, waiting = new_push(), new_push(count=500)
    for push_id in (running, waiting):
        jobs_queue.enqueue(client, "push", push_id)
    under_way(pushing, running, 500)
    client.flushall()
    with write_session() as session:
        session.get_one(Push, waiting).created_at = clock.now().replace(year=2020)
    sweeper.sweep(client, clock.now())
    for push_id, rows in ((running, COUNT), (waiting, 500)):
        ended = eventually(
            lambda push_id=push_id: (row := pushing.read(push_id)).has_ended and row, within=90
        )
        assert (ended.status, ended.delivered) == ("completed", rows)
        lines = read.log_lines(push_id, limit=10_000)
        assert [line.number for line in lines] == list(range(1, len(lines) + 1))
        assert "completed" in lines[-1].text
    keys = [call.headers["idempotency-key"] for call in echo.calls()]
    assert len(keys) == len(set(keys)) == COUNT + 500
