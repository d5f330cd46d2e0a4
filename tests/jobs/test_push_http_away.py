"""A target that answers no request: a push over HTTP waits for it as pushes to databases do.

Rows whose requests cannot have arrived wait with it; a row that may have arrived is unknown. An error response of the
target fails only its row.
"""

from __future__ import annotations

import pytest

from jobs.lease import NotAvailable
from tests.fakes.echo_target import Answer, EchoTarget
from tests.fakes.oauth_server import OAuthServer
from tests.jobs.test_push_http import counts, echo, people, pushing, seen_rows  # noqa: F401
from tests.jobs.waiting import eventually
from webapp import clock, limits
from webapp.connectors.http.tokens import tokens
from webapp.pushes.models import Push
from webapp.pushes.services.ledger import read
from webapp.work.models import END_STATES

ROWS = 120  # some chunks


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(limits, "PUSH_TARGET_RETRY_SECONDS", (0.1, 0.2, 0.5))
    monkeypatch.setattr(limits, "PUSH_WORKER_WAIT_SECONDS", 0.3)


@pytest.fixture
def away(pushing):
    """The address of the target refuses connections."""
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
        with pytest.raises(NotAvailable):  # no worker takes it before its time
            pushing.do(push_id)
        eventually(lambda push=push: push.retry_at <= clock.now(), 60)


def test_a_push_waits_for_a_target_that_refuses_connections_and_no_row_fails(away):
    push_id = away.push(people(ROWS), ask={"on_error": "continue"})
    push = away.do(push_id)
    assert (push.status, push.lease_owner) == ("running", None)
    result = read.waiting_details(push.status, push.retry_at, push.waiting)
    assert result["next_try_at"] == clock.to_text(push.retry_at)
    assert result["message"]
    assert counts(push) == (0, 0, 0, ROWS)
    assert any(
        "Waiting for the target, next try in" in line.text for line in read.log_lines(push_id, limit=1_000)
    )


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


def test_a_push_continues_when_its_target_is_back_and_sends_each_row_once(away, echo):
    push_id = away.push(people(ROWS))
    assert away.do(push_id).status == "running"
    del away.settings["base_url"]
    eventually(lambda: away.read(push_id).retry_at <= clock.now(), 60)
    done = until_ended(away, push_id)
    assert counts(done) == (ROWS, 0, 0, 0)
    assert seen_rows(echo) == dict.fromkeys(range(1, ROWS + 1), 1)


def test_the_remaining_rows_wait_for_a_target_that_becomes_unavailable(pushing):
    with EchoTarget() as target:
        pushing.settings |= {"base_url": target.url("/api"), "parallel": 1, "retry": {"retries": 0}}

        def last(_seen):
            target._server.socket.close()
            return Answer(201, close=True)

        target.on("*", *[Answer(201)] * 39, last)
        done = until_ended(pushing, pushing.push(people(ROWS), ask={"target_wait_seconds": 1}))
        delivered, failed, unknown, pending = counts(done)
        assert (done.status, delivered, failed) == ("failed", 40, 0)
        assert unknown <= 1, "a request on the connection that is being closed may have arrived"
        assert pending == ROWS - 40 - unknown


@pytest.mark.parametrize("answer", [Answer(201, delay=60), Answer(cut="read")], ids=["timeout", "reset"])
def test_without_an_answer_only_rows_that_may_have_arrived_are_unknown(pushing, echo, answer):
    echo.on("*", answer)
    pushing.settings |= {"parallel": 4, "retry": {"retries": 0, "timeout_seconds": 0.2}}
    done = until_ended(pushing, pushing.push(people(ROWS), ask={"target_wait_seconds": 1}))
    assert done.status == "failed"
    delivered, failed, unknown, pending = counts(done)
    assert (delivered, failed) == (0, 0)
    assert unknown == len(echo.calls()), "no row is sent twice"
    assert 4 <= unknown < 20, "after the first four requests at most one row goes at a time"
    assert pending == ROWS - unknown


def test_a_batch_that_cannot_arrive_stays_whole(away, echo):
    away.settings |= {"push_mode": "batch", "wrapper_key": "rows", "batch_size": 40}
    push_id = away.push(people(ROWS))
    assert counts(away.do(push_id)) == (0, 0, 0, ROWS)
    del away.settings["base_url"]
    eventually(lambda: away.read(push_id).retry_at <= clock.now(), 60)
    assert counts(until_ended(away, push_id)) == (ROWS, 0, 0, 0)
    assert [len(call.json["rows"]) for call in echo.calls()] == [40, 40, 40]


@pytest.mark.parametrize("status", [400, 404, 500, 501, 503, 429])
def test_an_error_response_only_fails_its_row(pushing, echo, status):
    echo.on("*", Answer(status))
    done = pushing.do(pushing.push(people(20), ask={"on_error": "continue"}))
    assert (done.status, counts(done)) == ("completed", (0, 20, 0, 0))


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


# --- The token endpoint is away ----------------------------------------------------------------------------------


@pytest.fixture
def oauth():
    tokens.clear()
    with OAuthServer() as result:
        yield result
    tokens.clear()


@pytest.fixture
def authorized(pushing, oauth):
    """Pushes whose rows need a token of `oauth`."""
    auth = {
        "type": "oauth2-client-credentials", "token_url": oauth.token_url,
        "client_id": oauth.client_id, "client_secret": oauth.client_secret,
    }  # fmt: skip
    pushing.settings |= {"auth": auth, "retry": {"retries": 1, "backoff_seconds": [0]}, "parallel": 2}
    return pushing


def unreachable(pushing) -> dict[str, str]:
    """Make the token URL refuse connections. Returns the previous settings."""
    with EchoTarget() as gone:
        address = gone.url("/token")
    before = pushing.settings["auth"]
    pushing.settings["auth"] = {**before, "token_url": address}
    return before


@pytest.mark.parametrize("answer", [None, Answer(503), Answer(429), Answer(cut="read")])
def test_a_push_waits_for_a_token_endpoint_that_is_away_and_sends_each_row_once(
    authorized, oauth, echo, answer
):
    before = authorized.settings["auth"]
    if answer is None:
        unreachable(authorized)
    else:
        oauth.on("/token", answer)
    push_id = authorized.push(people(ROWS))
    push = authorized.do(push_id)
    assert (push.status, push.lease_owner, counts(push)) == ("running", None, (0, 0, 0, ROWS))
    assert "The token " in read.waiting_details(push.status, push.retry_at, push.waiting)["message"]
    assert echo.calls() == []
    authorized.settings["auth"] = before
    oauth.on("/token", oauth.token)
    eventually(lambda: authorized.read(push_id).retry_at <= clock.now(), 60)
    done = until_ended(authorized, push_id)
    assert (done.status, counts(done)) == ("completed", (ROWS, 0, 0, 0))
    assert seen_rows(echo) == dict.fromkeys(range(1, ROWS + 1), 1)


def test_a_token_endpoint_that_stays_away_ends_the_push_with_rows_that_can_be_resumed(authorized, echo):
    before = unreachable(authorized)
    push_id = authorized.push(people(ROWS), ask={"target_wait_seconds": 1})
    done = until_ended(authorized, push_id)
    assert (done.status, done.error["code"], done.error["details"]["reason"]) == (
        "failed", "token_request_failed", "refused",
    )  # fmt: skip
    assert counts(done) == (0, 0, 0, ROWS)
    assert any("Gave up after waiting" in line.text for line in read.log_lines(push_id, limit=1_000))
    authorized.settings["auth"] = before
    again = authorized.do(authorized.retry(push_id, ["pending"]))
    assert (again.status, again.delivered) == ("completed", ROWS)
    assert seen_rows(echo) == dict.fromkeys(range(1, ROWS + 1), 1)


def test_rejected_credentials_end_a_push_without_waiting(authorized, oauth, echo):
    authorized.settings["auth"] = {**authorized.settings["auth"], "client_secret": "another"}
    done = authorized.do(authorized.push(people(ROWS)))
    assert (done.status, done.error["code"]) == ("failed", "token_request_failed")
    assert (len(oauth.calls("/token")), echo.calls()) == (1, [])
    assert counts(done) == (0, 0, 0, ROWS)


@pytest.fixture
def revoked(authorized, oauth, echo):
    """The target rejects the token of row 1 when row 2 is on its way, and the token endpoint is then away. Row 2
    arrives with the earlier token."""
    first: list[str] = []

    def rule(seen):
        row = seen.headers["x-rowsmith-row"]
        if row == "1" and not first:
            first.append(row)
            oauth.on("/token", Answer(503))
            return Answer(401, delay=1.5)
        return Answer(201, delay=4 if row == "2" else 0)

    echo.on("*", rule)
    return authorized


def test_a_row_whose_token_is_rejected_while_the_token_endpoint_is_away_is_sent_later(revoked, oauth, echo):
    push_id = revoked.push(people(ROWS))
    push = revoked.do(push_id)
    assert (push.status, push.lease_owner, push.delivered, push.unknown) == ("running", None, 1, 0)
    oauth.on("/token", oauth.token)
    eventually(lambda: revoked.read(push_id).retry_at <= clock.now(), 60)
    done = until_ended(revoked, push_id)
    assert (done.status, counts(done)) == ("completed", (ROWS, 0, 0, 0))
    assert seen_rows(echo) == dict.fromkeys(range(1, ROWS + 1), 1)
    assert [(row.row, row.attempts) for row in read.rows(push_id)[:2]] == [(1, 1), (2, 1)]


def test_a_retry_waits_for_the_token_endpoint_too(revoked, oauth, echo):
    outage, token = list(echo._rules), oauth.token
    echo.on("*", Answer(400))
    push_id = revoked.push(people(2))
    assert counts(revoked.do(push_id)) == (0, 2, 0, 0)
    echo._rules[:] = outage
    again = revoked.retry(push_id, ["failed"])
    assert revoked.do(again).status == "running"
    oauth.on("/token", token)
    eventually(lambda: revoked.read(again).retry_at <= clock.now(), 60)
    assert counts(until_ended(revoked, again)) == (2, 0, 0, 0)
    assert counts(revoked.read(push_id)) == (2, 0, 0, 0)
    assert [row.attempts for row in read.rows(push_id)] == [2, 2]


@pytest.mark.parametrize("status", [201, 400])
def test_a_row_that_waited_for_its_token_has_the_outcome_of_its_request(revoked, oauth, echo, status):
    push_id = revoked.push(people(2))
    assert counts(revoked.do(push_id))[0] == 1, "all rows have an outcome, but the push has not ended"
    assert revoked.read(push_id).status == "running"
    oauth.on("/token", oauth.token)
    echo.on("*", Answer(status))
    eventually(lambda: revoked.read(push_id).retry_at <= clock.now(), 60)
    done = until_ended(revoked, push_id)
    assert (done.status, counts(done)) == ("completed", (2, 0, 0, 0) if status == 201 else (1, 1, 0, 0))


def test_a_row_without_a_token_fails_when_the_endpoint_stays_away(revoked, oauth, echo):
    push_id = revoked.push(people(2), ask={"target_wait_seconds": 1})
    done = until_ended(revoked, push_id)
    assert (done.status, done.error["code"]) == ("failed", "token_request_failed")
    assert counts(done) == (1, 1, 0, 0)
    assert [row.code for row in read.rows(push_id, state="failed")] == ["no_token"]
    oauth.on("/token", oauth.token)
    again = revoked.do(revoked.retry(push_id, ["failed"]))
    assert (again.status, counts(again)) == ("completed", (1, 0, 0, 0))
    assert counts(revoked.read(push_id)) == (2, 0, 0, 0)
