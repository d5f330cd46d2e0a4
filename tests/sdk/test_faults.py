"""What the network and the things in between do wrong, and what the package makes of it."""

from __future__ import annotations

import json
import socket
import threading
import time

import pytest
import rowsmith
from rowsmith import error

from tests.fakes.certificates import Authority
from tests.fakes.echo_target import Answer, EchoTarget
from tests.sdk.answers import GOOD, HERE, refusal
from tests.sdk.conftest import KEY


def test_a_refusal_has_its_code_its_details_and_the_id_of_its_request(far, target):
    target.on(HERE, Answer(404, refusal("not_found", reason="gone"), {"X-Request-Id": "req_1"}))
    with pytest.raises(error.NotFound) as found:
        far.templates.get("tpl_1")
    result = found.value
    assert (result.code, result.status, result.details, result.request_id) == (
        "not_found",
        404,
        {"reason": "gone"},
        "req_1",
    )
    assert "req_1" in str(result)
    assert len(target.calls(HERE)) == 1


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "invalid_request", error.InvalidRequest),
        (401, "unauthenticated", error.Unauthenticated),
        (403, "forbidden", error.Forbidden),
        (409, "in_use", error.Conflict),
        (412, "version_conflict", error.VersionConflict),
        (413, "payload_too_large", error.TooLarge),
        (422, "row_limit_exceeded", error.ValidationError),
    ],
)
def test_every_refusal_has_its_class_and_is_not_sent_again(far, target, status, code, kind):
    target.on(HERE, Answer(status, refusal(code)))
    with pytest.raises(kind) as found:
        far.templates.get("tpl_1")
    assert found.value.code == code
    assert len(target.calls()) == 1


def test_503_twice_then_an_answer_is_an_answer(far, target, waits):
    target.on(
        HERE, Answer(503, refusal("unavailable")), Answer(503, refusal("unavailable")), Answer(200, GOOD)
    )
    assert far.templates.get("tpl_1")["name"] == "T"
    assert waits == [0.5, 1.0]


def test_retries_end(far, target, waits):
    target.on(HERE, Answer(500, refusal("internal_error", request_id="req_9")))
    with pytest.raises(error.ServerError) as found:
        far.templates.get("tpl_1")
    assert found.value.request_id == "req_9"
    assert (len(target.calls()), waits) == (5, [0.5, 1.0, 2.0, 4.0])


def test_the_servers_retry_after_is_waited_for(far, target, waits):
    target.on(HERE, Answer(429, refusal("rate_limited"), {"Retry-After": "7"}), Answer(200, GOOD))
    far.templates.get("tpl_1")
    assert waits == [7.0]


def test_a_retry_after_that_is_too_long_is_reported_without_waiting(far, target, waits):
    target.on(HERE, Answer(429, refusal("quota_exceeded"), {"Retry-After": "3000"}))
    with pytest.raises(error.RateLimited) as found:
        far.templates.get("tpl_1")
    assert (found.value.retry_after, waits) == (3000, [])


def test_a_creating_call_keeps_its_idempotency_key_over_its_attempts(far, target):
    target.on(
        "/templates", Answer(cut="body", body=GOOD), Answer(503, refusal("unavailable")), Answer(201, GOOD)
    )
    far.templates.create({"name": "T", "fields": []})
    keys = [call.headers["idempotency-key"] for call in target.calls("/templates")]
    assert len(keys) == 3
    assert len(set(keys)) == 1
    far.templates.create({"name": "T", "fields": []})
    assert target.calls("/templates")[-1].headers["idempotency-key"] not in keys


@pytest.mark.parametrize("cut", ["unread", "read", "head", "body"])
def test_a_broken_connection_is_opened_again(far, target, cut):
    target.on(HERE, Answer(cut=cut, body=GOOD), Answer(200, GOOD))
    assert far.templates.get("tpl_1")["name"] == "T"


def test_half_an_answer_is_no_answer(far, target):
    target.on(
        HERE, Answer(200, json.dumps(GOOD)[:20], {"Content-Type": "application/json"}, length=500, close=True)
    )
    with pytest.raises(error.ConnectionFailed) as found:
        far.templates.get("tpl_1")
    assert found.value.sent
    assert len(target.calls()) == 5


def test_a_change_whose_answer_is_lost_is_not_made_twice(far, target):
    target.on(HERE, Answer(cut="body", body=GOOD))
    with pytest.raises(error.ConnectionFailed) as found:
        far.templates.update("tpl_1", name="U")
    assert found.value.sent
    assert len(target.calls()) == 1


def test_a_change_that_was_rejected_before_it_was_executed_is_sent_again(far, target):
    target.on(
        HERE, Answer(429, refusal("rate_limited")), Answer(503, refusal("unavailable")), Answer(200, GOOD)
    )
    assert far.templates.update("tpl_1", name="U")["name"] == "T"


def test_html_in_place_of_json_is_a_bad_answer(far, target):
    target.on(HERE, Answer(200, "<html>Sign in to the hotel", {"Content-Type": "text/html"}))
    with pytest.raises(error.BadAnswer, match="text/html"):
        far.templates.get("tpl_1")
    target.on(HERE, Answer(502, "<html>Bad gateway", {"Content-Type": "text/html"}), Answer(200, GOOD))
    assert far.templates.get("tpl_1")["name"] == "T"


def test_a_response_that_is_not_http_is_a_bad_response(far, target):
    target.on(HERE, Answer(raw=b"SSH-2.0-OpenSSH_9.2\r\n\r\n"))
    with pytest.raises(error.BadAnswer):
        far.templates.get("tpl_1")


def test_a_redirect_is_not_followed_with_the_key(far, target):
    with EchoTarget() as other:
        target.on(HERE, Answer(302, b"", {"Location": other.url("/")}))
        with pytest.raises(error.BadAnswer, match="redirects to"):
            far.templates.get("tpl_1")
        assert other.calls() == []


def test_a_wrong_key_has_a_reason(far, target):
    target.on(HERE, Answer(401, refusal("unauthenticated", reason="unknown")))
    with pytest.raises(error.Unauthenticated) as found:
        far.templates.get("tpl_1")
    assert found.value.details == {"reason": "unknown"}
    assert KEY not in repr(far) + str(found.value) + repr(found.value)


def test_silence_ends_in_a_timeout(target):
    target.on(HERE, Answer(200, GOOD, delay=30))
    api = rowsmith.Api(KEY, target.url(""), timeout=0.2, retries=0)
    with pytest.raises(error.Timeout):
        api.templates.get("tpl_1")


def test_the_total_time_bounds_all_attempts(target):
    target.on(HERE, Answer(503, refusal("unavailable")))
    api = rowsmith.Api(KEY, target.url(""), retries=50, total_timeout=1)
    begun = time.monotonic()
    with pytest.raises(error.ServerError):
        api.templates.get("tpl_1")
    assert time.monotonic() - begun < 5
    assert len(target.calls()) < 5
    api.close()


def test_a_missing_server_is_a_failed_connection_that_was_not_sent():
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    api = rowsmith.Api(KEY, f"http://127.0.0.1:{port}", retries=0)
    with pytest.raises(error.ConnectionFailed) as found:
        api.templates.update("tpl_1", name="x")
    assert not found.value.sent


def test_connections_are_used_again(far, target):
    target.on(HERE, Answer(200, GOOD))
    for _ in range(5):
        far.templates.get("tpl_1")
    assert {call.connection for call in target.calls()} == {1}


def test_a_connection_closed_by_the_server_in_the_meantime_is_not_reused(target):
    target.on(HERE, Answer(200, GOOD, close=True))
    api = rowsmith.Api(KEY, target.url(""), retries=0)
    for _ in range(3):
        api.templates.get("tpl_1")
    assert len({call.connection for call in target.calls()}) == 3


def test_threads_share_one_way_in(far, target):
    target.on(HERE, Answer(200, GOOD, delay=0.02))
    found = []
    threads = [threading.Thread(target=lambda: found.append(far.templates.get("tpl_1"))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(found) == 12


def test_the_client_of_a_scenario_makes_every_call_once(target):
    target.on("/templates", Answer(503, refusal("unavailable")))
    client = rowsmith.Client(KEY, target.url(""))
    with pytest.raises(error.ServerError):
        client.get_templates()
    assert len(target.calls()) == 1
    assert target.calls()[0].headers["x-api-key"] == KEY
    assert target.calls()[0].headers["user-agent"].startswith("rowsmith-python/")
    client._caller.connections.close()


def test_a_key_never_goes_over_plain_http_to_another_machine():
    with pytest.raises(error.ServiceError, match="unencrypted"):
        rowsmith.Api(KEY, "http://rowsmith.example.com")
    rowsmith.Api(KEY, "http://localhost:8000")


@pytest.mark.parametrize("key", ["rws_a b\r\nX-Evil: 1", "schlüssel"])
def test_an_invalid_key_is_rejected_without_showing_it(key):
    with pytest.raises(error.ServiceError) as found:
        rowsmith.Api(key, "http://localhost:8000")
    assert found.value.code == "not_configured"
    assert key not in str(found.value)


def test_certificates_are_checked(tmp_path):
    authority = Authority(tmp_path)
    with EchoTarget(authority.server("127.0.0.1")) as target:
        target.on(HERE, Answer(200, GOOD))
        with pytest.raises(error.ConnectionFailed, match="not trusted"):
            rowsmith.Api(KEY, target.url(""), retries=0).templates.get("tpl_1")
        trusting = rowsmith.Api(KEY, target.url(""), retries=0, ca_file=str(authority.file))
        assert trusting.templates.get("tpl_1")["name"] == "T"
        trusting.close()
