"""Retries: exactly those of the specification (promise 7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from email.utils import formatdate
from itertools import pairwise

import pytest
import requests
from pydantic import ValidationError

from tests.fakes.echo_target import MB, Answer, EchoTarget, busy, redirect
from webapp import limits
from webapp.connectors.base import ConnectorError
from webapp.connectors.http.retry import RequestOutcome, Retry, send_with_retries
from webapp.net.gate import Gate
from webapp.net.session import NetError, Reply, Session, exchange, open_session


@pytest.fixture
def target() -> Iterator[EchoTarget]:
    with EchoTarget() as result:
        yield result


@pytest.fixture
def session() -> Iterator[Session]:
    with open_session(Gate(["127.0.0.0/8"])) as result:
        yield result


class Sender:
    """Posts to a URL; waits are recorded instead of slept."""

    def __init__(self, session: Session, url: str, policy: Retry | None = None) -> None:
        self.session, self.url, self.policy = session, url, policy or Retry()
        self.waits: list[float] = []
        self.asked = 0

    def raise_if_stopped(self) -> None:
        self.asked += 1

    def post(self) -> Reply:
        request = requests.Request("POST", self.url, json={"a": 1})
        return exchange(self.session, request, timeout_seconds=self.policy.timeout_seconds, max_bytes=MB)

    def ended(self, send: Callable[[], Reply] | None = None) -> RequestOutcome:
        return send_with_retries(
            send or self.post, self.policy, wait=self.waits.append, raise_if_stopped=self.raise_if_stopped
        )


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_four_statuses_are_tried_four_times_after_1_2_and_4_s(session, target, status):
    target.on("/", Answer(status))
    sender = Sender(session, target.url())
    ended = sender.ended()
    assert (ended.reply.status, ended.attempts, ended.unknown, ended.error) == (status, 4, False, None)
    assert (sender.waits, sender.asked, len(target.seen)) == ([1.0, 2.0, 4.0], 4, 4)


@pytest.mark.parametrize(
    "status", [400, 401, 403, 404, 405, 408, 409, 410, 413, 415, 418, 422, 423, 425, 451]
)
def test_any_other_4xx_is_one_attempt(session, target, status):
    target.on("/", Answer(status))
    sender = Sender(session, target.url())
    assert (sender.ended().attempts, sender.waits, len(target.seen)) == (1, [], 1)


@pytest.mark.parametrize("status", [200, 201, 204, 304, 500, 501, 505])
def test_a_final_response_is_one_attempt(session, target, status):
    target.on("/", Answer(status))
    assert (Sender(session, target.url()).ended().attempts, len(target.seen)) == (1, 1)


@pytest.mark.parametrize(
    "bad", [Answer(503), Answer(201, cut="read"), Answer(raw=b""), Answer(raw=b"SSH\r\n")]
)
def test_a_successful_second_attempt_is_final(session, target, bad):
    target.on("/", bad, Answer(201))
    sender = Sender(session, target.url())
    ended = sender.ended()
    assert (ended.reply.status, ended.attempts, ended.unknown, sender.waits) == (201, 2, False, [1.0])


def test_a_target_that_is_not_there_is_tried_four_times_and_did_not_get_it(session, target):
    sender = Sender(session, target.url())
    target.close()
    ended = sender.ended()
    assert (ended.error.reason, ended.attempts, ended.unknown, ended.reply) == ("refused", 4, False, None)
    assert sender.waits == [1.0, 2.0, 4.0]


@pytest.mark.parametrize(
    ("answers", "unknown", "unanswered"),
    [
        ([Answer(cut="read")], True, 4),
        ([Answer(503), Answer(cut="read")], True, 3),
        ([Answer(cut="read"), Answer(503)], False, 1),
        ([Answer(cut="read"), Answer(422)], False, 1),
        ([Answer(cut="read"), Answer(201)], False, 1),
        ([Answer(503)] * 3 + [Answer(cut="read")], True, 1),
        ([Answer(cut="read")] * 3 + [Answer(503)], False, 3),
    ],
)
def test_only_a_last_attempt_that_may_have_arrived_unanswered_is_unknown(
    session, target, answers, unknown, unanswered
):
    target.on("/", *answers)
    ended = Sender(session, target.url()).ended()
    assert (ended.unknown, ended.unanswered) == (unknown, unanswered)


def test_a_silent_target_is_tried_four_times_and_then_unknown(session, target):
    target.on("/", Answer(201, delay=60))
    ended = Sender(session, target.url(), Retry(timeout_seconds=0.2)).ended()
    assert (ended.error.reason, ended.attempts, ended.unknown) == ("timeout", 4, True)
    assert len(target.effects) == 4


@pytest.mark.parametrize("reason", ["not_allowed", "tls_failed", "bad_url", "too_large", "redirected"])
def test_permanent_errors_are_one_attempt(session, reason):
    def send() -> Reply:
        raise NetError(reason, "no", reason in ("redirected", "too_large"))

    sender = Sender(session, "")
    ended = sender.ended(send)
    assert (ended.attempts, sender.waits) == (1, [])
    assert ended.unknown == (reason == "too_large")  # a redirect is an answer


def test_a_redirect_elsewhere_is_an_answer(session, target):
    target.on("/", redirect("http://127.0.0.1:1/"))
    ended = Sender(session, target.url()).ended()
    assert (ended.error.reason, ended.attempts, ended.unknown) == ("redirected", 1, False)


# --- Retry-After


@pytest.mark.parametrize(
    ("after", "waited"),
    [("3", 3.0), ("0", 1.0), ("-5", 1.0), ("0.5", 1.0), ("7.5", 7.5), ("soon", 1.0), ("nan", 1.0), ("inf", 1.0),
     ("999999", limits.RETRY_WAIT_SECONDS), ("", 1.0)],
)  # fmt: skip
@pytest.mark.parametrize("status", [429, 503])
def test_a_longer_retry_after_wins_up_to_a_limit(session, target, after, waited, status):
    target.on("/", busy(after, status), Answer(201))
    sender = Sender(session, target.url())
    assert (sender.ended().attempts, sender.waits) == (2, [waited])


@pytest.mark.parametrize(("ahead", "waited"), [(30, 30.0), (-30, 1.0), (9_999, limits.RETRY_WAIT_SECONDS)])
@pytest.mark.parametrize("skew", [0, 86_400, None], ids=["same clock", "a day ahead", "no clock"])
def test_a_retry_after_of_a_date_counts_by_the_targets_clock(
    session, target, monkeypatch, ahead, waited, skew
):
    now = 1_800_000_000
    monkeypatch.setattr("webapp.clock.source", lambda: now)
    headers = {"Retry-After": formatdate(now + (skew or 0) + ahead, usegmt=True)}
    if skew is not None:
        headers["Date"] = formatdate(now + skew, usegmt=True)
    target.on("/", Answer(429, headers=headers), Answer(201))
    sender = Sender(session, target.url())
    sender.ended()
    assert sender.waits == [waited]


def test_a_retry_after_of_a_final_response_is_ignored(session, target):
    target.on("/", Answer(201, headers={"Retry-After": "60"}))
    sender = Sender(session, target.url())
    assert (sender.ended().attempts, sender.waits) == (1, [])


# --- The caller's say


class Cancelled(Exception):
    pass


def test_a_cancel_between_attempts_holds(session, target):
    target.on("/", Answer(503))
    sender = Sender(session, target.url())

    def raise_if_stopped() -> None:
        if len(target.seen) == 2:
            raise Cancelled

    with pytest.raises(Cancelled):
        send_with_retries(sender.post, Retry(), wait=sender.waits.append, raise_if_stopped=raise_if_stopped)
    assert len(target.seen) == 2


def test_a_cancel_during_a_wait_holds(session, target):
    target.on("/", Answer(503))
    sender = Sender(session, target.url())

    def wait(_seconds: float) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        send_with_retries(sender.post, Retry(), wait=wait, raise_if_stopped=sender.raise_if_stopped)
    assert len(target.seen) == 1


def test_disallowed_requests_are_not_sent(session, target):
    def raise_if_stopped() -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        send_with_retries(
            Sender(session, target.url()).post,
            Retry(),
            wait=lambda _s: None,
            raise_if_stopped=raise_if_stopped,
        )
    assert target.opened == 0


def test_a_missing_token_is_tried_again_where_that_may_help(session, target):
    sender = Sender(session, target.url())
    errors = [ConnectorError("busy", code="token_request_failed", transient=True)] * 2

    def send() -> Reply:
        if errors:
            raise errors.pop()
        return sender.post()

    ended = sender.ended(send)
    assert (ended.reply.status, ended.attempts, ended.unanswered, sender.waits) == (201, 3, 0, [1.0, 2.0])


@pytest.mark.parametrize(("transient", "attempts"), [(True, 4), (False, 1)])
def test_an_unavailable_token_raises_an_error(session, transient, attempts):
    sender = Sender(session, "")

    def send() -> Reply:
        raise ConnectorError("no", code="token_request_failed", transient=transient)

    with pytest.raises(ConnectorError):
        sender.ended(send)
    assert sender.asked == attempts


# --- Policies


def test_a_policy_of_ones_own(session, target):
    target.on("/", Answer(418))
    sender = Sender(session, target.url(), Retry(retries=4, backoff_seconds=[0.5, 3], retry_on=[418]))
    assert (sender.ended().attempts, sender.waits) == (5, [0.5, 3.0, 3.0, 3.0])


def test_no_retries(session, target):
    target.on("/", Answer(503))
    sender = Sender(session, target.url(), Retry.model_validate({"retries": 0, "backoff_seconds": []}))
    assert (sender.ended().attempts, sender.waits) == (1, [])


def test_the_defaults_are_the_specifications():
    assert Retry().model_dump() == {
        "timeout_seconds": 30.0, "retries": 3, "backoff_seconds": [1.0, 2.0, 4.0], "retry_on": [429, 502, 503, 504],
    }  # fmt: skip
    assert all(later == 2 * earlier for earlier, later in pairwise(Retry().backoff_seconds))


@pytest.mark.parametrize(
    "inputs",
    [{"timeout_seconds": 0}, {"timeout_seconds": 301}, {"timeout_seconds": "30"}, {"timeout_seconds": float("nan")},
     {"retries": -1}, {"retries": 11}, {"retries": 1.5}, {"retries": True}, {"backoff_seconds": [-1]},
     {"backoff_seconds": [121]}, {"backoff_seconds": 1}, {"backoff_seconds": []}, {"backoff_seconds": [float("inf")]},
     {"backoff_seconds": [1] * 11}, {"retry_on": [200]}, {"retry_on": [302]}, {"retry_on": ["429"]},
     {"retry_on": [600]}, {"retry_on": [429] * 101}, {"backoff": [1]}],
)  # fmt: skip
def test_policies_have_limits(inputs):
    with pytest.raises(ValidationError):
        Retry.model_validate(inputs)


def test_whole_numbers_are_numbers():
    assert (
        Retry.model_validate({"timeout_seconds": 5, "retries": 2.0, "backoff_seconds": [1, 2]}).retries == 2
    )
