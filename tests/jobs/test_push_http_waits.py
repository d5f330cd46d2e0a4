"""When a request is sent again, measured where it arrives: the specification's "Retry policy" to the letter.

Promise 7 of docs/promises.md.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.fakes.echo_target import Answer, busy
from tests.jobs.test_push_http import counts, echo, people, pushing  # noqa: F401
from webapp.connectors.http import retry
from webapp.pushes.services.ledger import read

LATE = 0.8  # seconds that a busy machine may take beyond a wait


@pytest.fixture
def alone(pushing):
    """The defaults of the specification: waits of 1, 2 and 4 s."""
    pushing.settings = {}
    return pushing


def waits(echo) -> list[float]:
    moments = [call.at for call in echo.calls()]
    return [after - before for before, after in pairwise(moments)]


def holds(found: list[float], wanted: list[float]) -> bool:
    # Another thread notes what arrives: the first of two may be noted late on a busy machine, the second on time.
    return len(found) == len(wanted) and all(
        least - 0.25 <= wait <= least + LATE for wait, least in zip(found, wanted, strict=True)
    )


@pytest.mark.parametrize("answer", [Answer(429), Answer(502), Answer(503), Answer(504), Answer(cut="unread")])
def test_four_attempts_after_waits_of_one_two_and_four_seconds(alone, echo, answer):
    echo.on("*", answer)
    push_id = alone.push(people(1))
    ended = alone.do(push_id)
    assert holds(waits(echo), [1, 2, 4])
    last = read.rows(push_id)[0]
    assert last.attempts == 4
    arrived = answer.cut != ""
    assert counts(ended) == ((0, 0, 1, 0) if arrived else (0, 1, 0, 0))


def test_a_longer_retry_after_wins_a_shorter_one_does_not_and_there_is_a_cap(alone, echo, monkeypatch):
    monkeypatch.setattr(retry, "_WAITABLE", 5.0)
    echo.on("*", busy(3), busy(1), busy(600), Answer(201))
    assert alone.do(alone.push(people(1))).delivered == 1
    assert holds(waits(echo), [3, 2, 5])


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 500, 501])
def test_other_answers_are_final(alone, echo, status):
    echo.on("*", Answer(status))
    ended = alone.do(alone.push(people(1)))
    assert counts(ended) == (0, 1, 0, 0)
    assert len(echo.calls()) == 1


def test_an_attempt_has_its_time_and_no_more(alone, echo):
    alone.settings = {"retry": {"timeout_seconds": 1, "retries": 1, "backoff_seconds": [0.5]}}
    echo.on("*", Answer(201, delay=60))
    push_id = alone.push(people(1))
    ended = alone.do(push_id)
    assert counts(ended) == (0, 0, 1, 0)
    assert holds(waits(echo), [1.5])
    assert read.rows(push_id)[0].code == "timeout"
