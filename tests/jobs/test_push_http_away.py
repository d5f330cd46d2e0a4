"""A target that answers no request: a push over HTTP waits for it as pushes to databases do.

Rows whose requests cannot have arrived keep waiting with it; a row that may have arrived is unknown. An error that the
target answers is the end of its row alone.
"""

from __future__ import annotations

import pytest

from jobs.lease import NotFree
from tests.fakes.echo_target import Answer, EchoTarget
from tests.jobs.test_push_http import counts, echo, people, pushing, seen_rows  # noqa: F401
from tests.jobs.waiting import eventually
from webapp import clock, limits
from webapp.operations.models import END_STATES
from webapp.pushes.models import Push
from webapp.pushes.services.ledger import read

ROWS = 300


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(limits, "PUSH_TARGET_WAITS", (0.1, 0.2, 0.5))
    monkeypatch.setattr(limits, "PUSH_HELD_SECONDS", 0.3)


@pytest.fixture
def away(pushing):
    """Nobody listens where the pushes go."""
    with EchoTarget() as gone:
        address = gone.url("/api")
    pushing.settings |= {"base_url": address, "retry": {"retries": 1, "backoff_seconds": [0]}}
    return pushing


def until_ended(pushing, push_id: str) -> Push:
    """Do what a worker and the sweeper do, until the push has ended."""
    while True:
        push = pushing.do(push_id)
        if push.status in END_STATES:
            return push
        assert (push.status, push.lease_owner, push.attempt) == ("running", None, 1), "the worker is released"
        with pytest.raises(NotFree):  # no worker takes it before its time
            pushing.do(push_id)
        eventually(lambda push=push: push.retry_at <= clock.now(), 60)


def test_a_push_waits_for_a_target_that_refuses_connections_and_no_row_fails(away):
    push_id = away.push(people(ROWS), ask={"on_error": "continue"})
    push = away.do(push_id)
    assert (push.status, push.lease_owner) == ("running", None)
    told = read.waiting(push.status, push.retry_at, push.waiting)
    assert told["next_try_at"] == clock.to_text(push.retry_at)
    assert told["message"]
    assert counts(push) == (0, 0, 0, ROWS)
    assert any("Waiting for the target, next try in" in line.text for line in read.lines(push_id, limit=1_000))


def test_a_push_that_waited_its_time_fails_with_all_rows_pending_and_can_be_resumed(away, echo):
    push_id = away.push(people(ROWS), ask={"target_wait_seconds": 1})
    done = until_ended(away, push_id)
    assert (done.status, done.error["code"], done.error["details"]["reason"]) == (
        "failed", "target_failed", "unreachable",
    )  # fmt: skip
    assert "Resume the push" in done.error["details"]["hint"]
    assert counts(done) == (0, 0, 0, ROWS)
    del away.settings["base_url"]
    again = away.do(away.retry(push_id, ["pending"]))
    assert (again.status, again.delivered) == ("completed", ROWS)
    assert seen_rows(echo) == dict.fromkeys(range(1, ROWS + 1), 1)


def test_a_push_goes_on_when_its_target_is_back_and_sends_each_row_once(away, echo):
    push_id = away.push(people(ROWS))
    assert away.do(push_id).status == "running"
    del away.settings["base_url"]
    eventually(lambda: away.read(push_id).retry_at <= clock.now(), 60)
    done = until_ended(away, push_id)
    assert counts(done) == (ROWS, 0, 0, 0)
    assert seen_rows(echo) == dict.fromkeys(range(1, ROWS + 1), 1)


def test_a_target_that_goes_away_in_the_middle_holds_the_rows_that_are_left(pushing):
    with EchoTarget() as target:
        pushing.settings |= {"base_url": target.url("/api"), "parallel": 1, "retry": {"retries": 0}}

        def last(_seen):
            target._server.socket.close()
            return Answer(201, close=True)

        target.on("*", *[Answer(201)] * 99, last)
        done = until_ended(pushing, pushing.push(people(ROWS), ask={"target_wait_seconds": 1}))
        delivered, failed, unknown, pending = counts(done)
        assert (done.status, delivered, failed) == ("failed", 100, 0)
        assert unknown <= 1, "a request on the connection that is being closed may have arrived"
        assert pending == 200 - unknown


@pytest.mark.parametrize("answer", [Answer(201, delay=60), Answer(cut="read")], ids=["timeout", "reset"])
def test_without_an_answer_only_rows_that_may_have_arrived_are_unknown(pushing, echo, answer):
    echo.on("*", answer)
    pushing.settings |= {"parallel": 4, "retry": {"retries": 0, "timeout_seconds": 0.2}}
    done = until_ended(pushing, pushing.push(people(ROWS), ask={"target_wait_seconds": 1}))
    assert done.status == "failed"
    delivered, failed, unknown, pending = counts(done)
    assert (delivered, failed) == (0, 0)
    assert unknown == len(echo.calls()), "no row is sent twice"
    assert 4 < unknown < 20, "after the first requests one row goes at a time"
    assert pending == ROWS - unknown


def test_a_batch_that_cannot_arrive_stays_whole(away, echo):
    away.settings |= {"push_mode": "batch", "wrapper_key": "rows", "batch_size": 100}
    push_id = away.push(people(ROWS))
    assert counts(away.do(push_id)) == (0, 0, 0, ROWS)
    del away.settings["base_url"]
    eventually(lambda: away.read(push_id).retry_at <= clock.now(), 60)
    assert counts(until_ended(away, push_id)) == (ROWS, 0, 0, 0)
    assert [len(one.json["rows"]) for one in echo.calls()] == [100, 100, 100]


@pytest.mark.parametrize("status", [400, 404, 500, 501, 503, 429])
def test_an_error_that_is_answered_is_the_end_of_its_row_alone(pushing, echo, status):
    echo.on("*", Answer(status))
    done = pushing.do(pushing.push(people(ROWS), ask={"on_error": "continue"}))
    assert (done.status, counts(done)) == ("completed", (0, ROWS, 0, 0))


def test_an_undo_waits_for_its_target(pushing, echo):
    pushing.settings["retry"] = {"retries": 0}
    pushing.settings["delete_path"] = "people/{{id}}"
    push_id = pushing.push(people(20, spec={"key_columns": ["id"]}))
    assert pushing.do(push_id).delivered == 20
    with EchoTarget() as gone:
        pushing.settings["base_url"] = gone.url("/api")
    undo = pushing.undo(push_id)
    push = pushing.do(undo)
    assert (push.status, counts(push)) == ("running", (0, 0, 0, 20))
    del pushing.settings["base_url"]
    eventually(lambda: pushing.read(undo).retry_at <= clock.now(), 60)
    assert counts(until_ended(pushing, undo)) == (20, 0, 0, 0)
