"""A push over HTTP: the ledger matches the requests that the target received, even if the push is stopped."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace

import pytest
import sqlalchemy as sa

from jobs import lease
from jobs.pushes import http
from tests.fakes.echo_target import Answer, EchoTarget, busy
from tests.jobs.pushing import Pushing, rows, table_spec
from tests.jobs.test_push_crash import Died, lose
from webapp import clock, limits
from webapp.connectors.rest.connector import RestConnector
from webapp.extensions import write_session
from webapp.net.gate import Gate
from webapp.pushes.models import Push
from webapp.pushes.services import planning
from webapp.pushes.services.ledger import read
from webapp.pushes.services.ledger.write import LedgerWriter

CHUNK = 48  # rows in hand at most: with 8 threads, whole rounds of at most limits.HTTP_CHUNK_ROWS


@pytest.fixture
def echo():
    with EchoTarget() as result:
        yield result


@pytest.fixture
def pushing(app, echo, monkeypatch):
    """Pushes to the echo target; `pushing.settings` are the connection's."""
    result = Pushing(app, monkeypatch)
    result.settings = {"retry": {"backoff_seconds": [0, 0, 0]}}

    def connect():
        settings = RestConnector.Settings.model_validate({"base_url": echo.url("/api"), **result.settings})
        return RestConnector(settings, Gate(["127.0.0.0/8"])).open()

    def order(push_id):
        return replace(result.order(push_id), capabilities=RestConnector.can)

    result.connect = connect
    monkeypatch.setattr(planning, "load_push_job", order)
    return result


def people(count: int, path: str = "people", spec=(), **columns):
    value = rows(count, **columns)
    return [(table_spec(path, value, **dict(spec)), value)]


def seen_rows(echo: EchoTarget) -> Counter[int]:
    """How often each row had an effect."""
    return Counter(int(effect.headers["x-rowsmith-row"]) for effect in echo.effects)


def told(pushing, push_id: str) -> Counter[str]:
    """Rows by their end, one by one."""
    return Counter(row.state for row in read.rows(push_id, limit=10_000))


def counts(push) -> tuple[int, int, int, int]:
    ended = push.delivered + push.failed + push.unknown
    return push.delivered, push.failed, push.unknown, push.total - ended


def change(push_id: str, **columns) -> None:
    with write_session() as session:
        session.execute(sa.update(Push).where(Push.id == push_id).values(**columns))


def at_row(app, number: int, do):
    """Answers each row after a moment, and does something when a row comes."""
    done = threading.Event()

    def rule(seen):
        if int(seen.headers["x-rowsmith-row"]) == number and not done.is_set():
            done.set()
            with app.app_context():
                do()
        return Answer(201, delay=0.05)

    return rule


# --- Stopped on the way ---------------------------------------------------------------------------------------


def test_rows_that_were_not_started_stay_pending_when_a_push_is_cancelled(app, pushing, echo):
    push_id = pushing.push(people(2_000))
    echo.on("*", at_row(app, 60, lambda: change(push_id, cancel_requested_at=clock.now())))
    done = pushing.do(push_id)
    assert done.status == "cancelled"
    assert counts(done)[1:3] == (0, 0)
    assert done.delivered == len(echo.effects) < 2_000
    assert set(seen_rows(echo)) == set(range(1, done.delivered + 1))
    assert told(pushing, push_id) == {"delivered": done.delivered}


def test_rows_in_flight_that_do_not_answer_a_cancel_are_unknown(app, pushing, echo):
    pushing.settings["parallel"] = 4
    push_id = pushing.push(people(100))
    # The fourth of those that hang: by then all four are under way.
    hangs = at_row(app, 23, lambda: change(push_id, cancel_requested_at=clock.now()))

    def rule(seen):
        answer = hangs(seen)
        return replace(answer, delay=60) if int(seen.headers["x-rowsmith-row"]) >= 20 else answer

    echo.on("*", rule)
    done = pushing.do(push_id)
    assert done.status == "cancelled"
    assert counts(done) == (19, 0, 4, 77)
    assert len(echo.calls()) == 23


def test_a_worker_that_takes_over_is_not_written_over(app, pushing, echo):
    push_id = pushing.push(people(2_000))

    def taken_over():
        change(push_id, epoch=Push.epoch + 1)

    echo.on("*", at_row(app, 60, taken_over))
    done = pushing.do(push_id)
    assert (done.status, counts(done)) == ("running", (CHUNK, 0, 0, 2_000 - CHUNK))
    assert done.intent["chunk"]["first"] == CHUNK + 1
    seen, first = len(echo.calls()), max(call.at for call in echo.calls())
    assert 60 <= seen < 2_000
    assert all(call.at <= first for call in echo.calls())


@pytest.fixture
def stopping(monkeypatch):
    result = threading.Event()
    monkeypatch.setattr(lease, "stopping", result)
    return result


def test_a_stopping_worker_finishes_started_rows_and_starts_no_other(app, pushing, echo, stopping):
    pushing.settings["retry"] = {"backoff_seconds": [1.0]}
    push_id = pushing.push(people(500))
    first = Counter()

    def rule(seen):
        number = int(seen.headers["x-rowsmith-row"])
        first[number] += 1
        if number == 60:
            stopping.set()
        return busy(0, 503) if number == 57 and first[57] == 1 else Answer(201, delay=0.02)

    echo.on("*", rule)
    handed = pushing.do(push_id)
    assert (handed.status, handed.lease_owner, handed.intent["chunk"]) == ("running", None, None)
    assert handed.failed == handed.unknown == 0, "row 57 waited a second, and came through"
    assert handed.delivered == len(echo.effects) < 500
    stopping.clear()
    done = pushing.do(push_id)
    assert (done.status, counts(done), done.attempt) == ("completed", (500, 0, 0, 0), 1)
    assert set(seen_rows(echo).values()) == {1}


def test_a_drain_has_its_limit(app, pushing, echo, stopping, monkeypatch):
    monkeypatch.setattr(limits, "PUSH_DRAIN_SECONDS", 0.3)
    pushing.settings.update(parallel=1)
    push_id = pushing.push(people(10))

    def rule(seen):
        stopping.set()
        return busy(100)

    echo.on("*", rule)
    handed = pushing.do(push_id)
    assert counts(handed) == (0, 1, 0, 9)
    assert [(row.row, row.code) for row in read.rows(push_id, state="failed")] == [(1, "interrupted")]


# --- Crashes --------------------------------------------------------------------------------------------------


def dies_before_outcome(monkeypatch, pushing, push_id, chunk: int) -> None:
    """The worker is gone when a chunk has been sent, and before that is written."""
    real, calls = LedgerWriter.mark_committed, []

    def landed(book, *arguments):
        calls.append(1)
        if len(calls) == chunk:
            raise Died
        real(book, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(LedgerWriter, "mark_committed", landed)
        with pytest.raises(Died):
            pushing.do(push_id)
    lose(push_id)


def test_after_a_crash_the_chunk_in_hand_is_unknown_and_not_sent_again(pushing, echo, monkeypatch):
    push_id = pushing.push(people(200))
    dies_before_outcome(monkeypatch, pushing, push_id, 2)
    done = pushing.do(push_id)
    assert (done.status, counts(done)) == ("completed", (200 - CHUNK, 0, CHUNK, 0))
    assert seen_rows(echo) == dict.fromkeys(range(1, 201), 1)
    assert any("cannot be determined" in line.text for line in read.log_lines(push_id))


def test_a_crash_costs_nothing_where_the_target_honours_the_key(pushing, echo, monkeypatch):
    echo.honours_keys = True
    pushing.settings["idempotent"] = True
    push_id = pushing.push(people(200))
    dies_before_outcome(monkeypatch, pushing, push_id, 2)
    done = pushing.do(push_id)
    assert (done.status, counts(done)) == ("completed", (200, 0, 0, 0))
    assert seen_rows(echo) == dict.fromkeys(range(1, 201), 1)
    assert len(echo.calls()) == 200 + CHUNK


def test_rows_that_a_crash_left_unknown_are_sent_again_under_the_key_they_had(pushing, echo, monkeypatch):
    echo.honours_keys = True  # and the connection does not say so
    push_id = pushing.push(people(100))
    dies_before_outcome(monkeypatch, pushing, push_id, 1)
    assert pushing.do(push_id).unknown == CHUNK
    assert pushing.do(pushing.retry(push_id)).status == "completed"
    assert counts(pushing.read(push_id)) == (100, 0, 0, 0)
    assert seen_rows(echo) == dict.fromkeys(range(1, 101), 1)
    assert echo.keys[f"{push_id}-1"] == 2


def test_a_retry_of_rows_never_sent_sends_them_once(app, pushing, echo):
    push_id = pushing.push(people(300))
    echo.on("*", at_row(app, 60, lambda: change(push_id, cancel_requested_at=clock.now())), method="POST")
    left = pushing.do(push_id)
    assert left.status == "cancelled"
    assert counts(left)[3] > 0
    echo.on("*", Answer(201))
    assert pushing.do(pushing.retry(push_id, ["pending"])).status == "completed"
    assert counts(pushing.read(push_id)) == (300, 0, 0, 0)
    assert seen_rows(echo) == dict.fromkeys(range(1, 301), 1)


def test_the_intent_is_written_before_the_first_request_and_the_outcome_after_the_last(
    app, pushing, echo, monkeypatch
):
    push_id = pushing.push(people(100))

    def rule(seen):
        number = int(seen.headers["x-rowsmith-row"])
        with app.app_context():
            chunk = pushing.read(push_id).intent["chunk"]
        inside.append(chunk["first"] <= number <= chunk["last"])
        return Answer(201)

    inside: list[bool] = []
    echo.on("*", rule)
    assert pushing.do(push_id).status == "completed"
    assert inside == [True] * 100


def test_a_deletion_that_was_sent_before_a_crash_counts_as_done(pushing, echo, monkeypatch):
    def created(seen):
        return Answer(201, headers={"Location": f"/api/{seen.headers['x-rowsmith-row']}"})

    echo.on("*", created, method="POST")
    gone: set[str] = set()

    def delete(seen):
        known = seen.path in gone
        gone.add(seen.path)
        return Answer(404 if known else 204)

    echo.on("*", delete, method="DELETE")
    push_id = pushing.push(people(60, spec={"key_columns": ["@location"], "capture": ["@location"]}))
    assert pushing.do(push_id).delivered == 60
    undo = pushing.undo(push_id)
    dies_before_outcome(monkeypatch, pushing, undo, 1)
    done = pushing.do(undo)
    assert (done.status, counts(done)) == ("completed", (60, 0, 0, 0))
    assert len(gone) == 60


# --- Told to stop ---------------------------------------------------------------------------------------------


def test_the_first_rejected_row_is_the_last_one_started(pushing, echo):
    echo.on("*", lambda seen: Answer(422 if seen.headers["x-rowsmith-row"] == "20" else 201, delay=0.01))
    push_id = pushing.push(people(300), ask={"on_error": "stop"})
    done = pushing.do(push_id)
    assert (done.status, done.failed, done.error["details"]["row"]) == ("failed", 1, 20)
    # Others are begun as long as the refusal is on its way.
    assert done.delivered == len(echo.effects) < 100
    assert counts(done)[3] == 300 - done.delivered - 1


def test_a_canary_that_fails_ends_the_push(pushing, echo):
    echo.on("*", lambda seen: Answer(422 if seen.headers["x-rowsmith-row"] == "3" else 201))
    push_id = pushing.push(people(300), ask={"canary": 10})
    done = pushing.do(push_id)
    assert (done.status, counts(done)) == ("failed", (9, 1, 0, 290))
    assert len(echo.calls()) == 10


# --- Faults in the middle -------------------------------------------------------------------------------------


def fails_at(pushing, number: int, error: Exception, times: int = 1) -> list[int]:
    """Make fetching a token for this row fail, `times` times."""
    connect, left = pushing.connect, [number] * times

    def opened():
        channel = connect()
        make = channel.create_sender

        def sending(*arguments):
            created = make(*arguments)
            real = created._send_request

            def exchanged(request):
                if left and request.headers["X-Rowsmith-Row"] == str(left[-1]):
                    left.pop()
                    raise error
                return real(request)

            created._send_request = exchanged
            return created

        channel.create_sender = sending
        return channel

    pushing.connect = opened
    return left


def refused(transient: bool = False) -> http.ConnectorError:
    return http.ConnectorError("No token.", code="token_request_failed", reason="x", transient=transient)


def test_an_interrupted_chunk_continues_where_it_stopped(pushing, echo):
    left = fails_at(pushing, 60, refused())
    push_id = pushing.push(people(200))
    done = pushing.do(push_id)
    assert (left, done.status) == ([], "completed")
    assert sum(counts(done)[:3]) == 200, "no row is passed over"
    assert done.delivered == len(echo.effects) >= 199
    assert set(seen_rows(echo).values()) == {1}


def test_a_permanently_rejected_token_ends_the_push_and_leaves_the_rest_pending(pushing, echo):
    pushing.settings["parallel"] = 1
    fails_at(pushing, 60, refused(), times=50)
    push_id = pushing.push(people(200))
    done = pushing.do(push_id)
    assert (done.status, done.error["code"]) == ("failed", "token_request_failed")
    assert counts(done) == (59, 0, 0, 141)
    assert len(echo.calls()) == 59


def test_an_internal_error_stops_all_senders(pushing, echo):
    echo.on("*", Answer(201, delay=0.1))
    fails_at(pushing, 60, ZeroDivisionError("ours"))
    push_id = pushing.push(people(200))
    done = pushing.do(push_id)
    assert (done.status, done.error["code"]) == ("failed", "internal_error")
    calls = len(echo.calls())
    assert 59 <= calls < 80
    assert echo.in_hand == 0, "the others had been waited for"
    assert counts(done) == (CHUNK, 0, CHUNK, 200 - 2 * CHUNK)
