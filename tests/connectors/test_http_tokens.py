"""OAuth tokens: how they are fetched, kept, renewed and waited for. Against real servers."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

import pytest
from pydantic import ValidationError

from tests.connectors import http_requests
from tests.connectors.http_requests import AUTH, OPEN, SECRET, send
from tests.fakes.certificates import Authority
from tests.fakes.echo_target import Answer, EchoTarget, redirect
from tests.fakes.oauth_server import OAuthServer
from tests.net.ways import HERE, METADATA, Canary
from webapp.connectors.base import ConnectorError
from webapp.connectors.http import tokens
from webapp.net.gate import Gate
from webapp.net.session import NetError, Session, open_session

fresh = http_requests.fresh
target = http_requests.target
session = http_requests.session


@pytest.fixture
def oauth() -> Iterator[OAuthServer]:
    with OAuthServer() as result:
        yield result


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    """The time that tokens live by, in a list of one."""
    real, ahead = tokens.time.monotonic, [0.0]

    class Clock:
        monotonic = staticmethod(lambda: real() + ahead[0])

    monkeypatch.setattr(tokens, "time", Clock)
    return ahead


def credentials(oauth: EchoTarget, **more: object) -> dict[str, object]:
    value = {"token_url": oauth.url("/token"), "client_id": "client", "client_secret": SECRET}
    return {"type": "oauth2-client-credentials", **value, **more}


def failing(session: Session, auth, url: str) -> ConnectorError:
    with pytest.raises(ConnectorError) as failed:
        send(session, auth, url)
    error = failed.value
    reported = json.dumps([error.message, error.hint, error.details], ensure_ascii=False)
    forms = [
        SECRET,
        quote(SECRET),
        quote(SECRET, safe=""),
        quote_plus(SECRET),
        base64.b64encode(SECRET.encode()).decode(),
    ]
    assert not [form for form in forms if form in reported]
    return error


# --- Tokens -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client_auth", ["post", "basic"])
@pytest.mark.parametrize("scope", [None, "api://x/.default a"])
def test_a_token_is_fetched_form_encoded(session, oauth, client_auth, scope):
    oauth.client_auth, oauth.scope = client_auth, scope
    assert (
        send(
            session, credentials(oauth, client_auth=client_auth, scope=scope), oauth.url("/guarded/1")
        ).status
        == 201
    )
    [request] = oauth.calls("/token")
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"
    assert ("authorization" in request.headers) == (client_auth == "basic")
    assert (b"client_secret" in request.body) == (client_auth == "post")


def test_one_token_serves_many_requests_and_connections_with_the_same_settings(session, oauth):
    for _ in range(5):
        send(session, credentials(oauth), oauth.url("/guarded/1"))
    with open_session(Gate(OPEN)) as second:
        send(second, credentials(oauth), oauth.url("/guarded/1"))
    assert len(oauth.calls("/token")) == 1
    oauth.client_id = "another"
    send(session, credentials(oauth, client_id="another"), oauth.url("/guarded/1"))
    assert len(oauth.calls("/token")) == 2


@pytest.mark.parametrize(
    ("expires_in", "stored"),
    [(3600, 3540), ("3600", 3540), (3600.0, 3540), (None, 240), ("soon", 240), (-5, 240), (True, 240), ([], 240),
     ("1e400", 240), (10**30, 86_340), (120, 60)],
)  # fmt: skip
def test_a_token_is_kept_until_60_s_before_its_end(session, oauth, clock, expires_in, stored):
    oauth.expires_in = expires_in
    auth = AUTH.validate_python(credentials(oauth)).requests_auth(session)
    send(session, auth, oauth.url("/guarded/1"))
    clock[0] = stored - 30
    send(session, auth, oauth.url("/guarded/1"))
    assert len(oauth.given) == 1
    clock[0] = stored + 5
    send(session, auth, oauth.url("/guarded/1"))
    assert len(oauth.given) == 2


@pytest.mark.parametrize("expires_in", [0, 30, 60])
def test_a_token_that_ends_within_60_s_is_used_once(session, oauth, expires_in):
    oauth.expires_in = expires_in
    for _ in range(3):
        assert send(session, credentials(oauth), oauth.url("/guarded/1")).status == 201
    assert len(oauth.given) == 3


def test_threads_that_need_a_token_concurrently_fetch_one(oauth):
    oauth.on("/token", lambda seen: Answer(**{**vars(oauth.token(seen)), "delay": 0.2}))
    statuses: list[int] = []

    def work() -> None:
        with open_session(Gate(OPEN)) as session:
            statuses.append(send(session, credentials(oauth), oauth.url("/guarded/1")).status)

    run(work, 12)
    assert (statuses, len(oauth.calls("/token"))) == ([201] * 12, 1)


def test_threads_that_wait_for_a_token_share_its_failure(oauth):
    oauth.on("/token", Answer(500, b"", delay=0.3))
    failures: list[str] = []

    def work() -> None:
        with open_session(Gate(OPEN)) as session:
            failures.append(failing(session, credentials(oauth), oauth.url("/guarded/1")).code)

    run(work, 8)
    assert failures == ["token_request_failed"] * 8
    assert len(oauth.calls("/token")) < 8


def test_a_lying_expires_in_costs_one_refresh_and_no_row(session, oauth):
    oauth.uses = 5
    auth = AUTH.validate_python(credentials(oauth)).requests_auth(session)
    assert [send(session, auth, oauth.url("/guarded/1")).status for _ in range(23)] == [201] * 23
    assert len(oauth.given) == 5


def test_threads_refresh_once_when_all_get_a_401(session, oauth):
    auth = AUTH.validate_python(credentials(oauth)).requests_auth(session)
    send(session, auth, oauth.url("/guarded/1"))
    oauth.revoke()
    statuses: list[int] = []
    run(lambda: statuses.append(send(session, auth, oauth.url("/guarded/1")).status), 8)
    assert (statuses, len(oauth.given)) == ([201] * 8, 2)


def test_a_target_that_rejects_every_token_is_reported_without_further_token_requests(session, oauth, clock):
    oauth.uses = 0
    auth = AUTH.validate_python(credentials(oauth)).requests_auth(session)
    assert [send(session, auth, oauth.url("/guarded/1")).status for _ in range(10)] == [401] * 10
    assert len(oauth.given) == 2
    oauth.uses, clock[0] = None, 6.0
    oauth.revoke()
    assert send(session, auth, oauth.url("/guarded/1")).status == 201


def test_a_static_token_is_sent_once_at_a_401(session, target):
    target.on("/", Answer(401))
    assert send(session, {"type": "bearer", "token": "t"}, target.url()).status == 401
    assert len(target.seen) == 1


# --- Token requests that fail -------------------------------------------------------------------------------


def test_rejected_credentials_are_explained(session, oauth):
    oauth.client_secret = "another"
    failed = failing(session, credentials(oauth), oauth.url("/guarded/1"))
    assert (failed.code, failed.reason, failed.transient) == ("token_request_failed", "invalid_client", False)
    assert "rejected" in failed.message
    assert oauth.token_url in failed.hint
    assert "application/x-www-form-urlencoded" in failed.hint
    assert "********" in failed.message  # the endpoint repeats the secret, which is cut out
    assert oauth.calls("/guarded/*") == []


def test_a_wrong_place_of_the_credentials_is_explained(session, oauth):
    oauth.client_auth = "basic"
    assert "some servers require basic" in failing(session, credentials(oauth), oauth.url("/guarded/1")).hint


def test_a_rejected_scope_is_explained(session, oauth):
    oauth.scope = "api://x/.default"
    failed = failing(session, credentials(oauth, scope="x"), oauth.url("/guarded/1"))
    assert (failed.reason, "<resource>/.default" in failed.hint) == ("invalid_scope", True)


def json_answer(body: object, kind: str = "application/json", status: int = 200) -> Answer:
    return Answer(status, json.dumps(body).encode(), {"Content-Type": kind})


@pytest.mark.parametrize(
    ("answer", "reason", "transient"),
    [
        (Answer(200, b"<!doctype html><title>Sign in", {"Content-Type": "text/html"}), "wrong_content_type", False),
        (Answer(200, f"access_token={SECRET}&scope=", {"Content-Type": "text/plain"}), "wrong_content_type", False),
        (Answer(200, b""), "wrong_content_type", False),
        (json_answer(["x"]), "wrong_content_type", False),
        (json_answer({}), "no_access_token", False),
        (json_answer({"access_token": ""}), "no_access_token", False),
        (json_answer({"access_token": 5}), "no_access_token", False),
        (json_answer({"access_token": "a\r\nX: y"}), "no_access_token", False),
        (json_answer({"access_token": "a" * 20_000}), "no_access_token", False),
        (json_answer({"access_token": "a", "token_type": "mac"}), "wrong_token_type", False),
        (json_answer({"error": "unauthorized_client", "error_description": f"\0{quote(SECRET)}"}, status=400),
         "unauthorized_client", False),
        (json_answer({"error": SECRET}, status=400), "failed", False),
        (json_answer({"error": ["x"]}, status=401), "invalid_client", False),
        (Answer(404, b"<html>"), "failed", False),
        (Answer(429, b""), "failed", True),
        (Answer(503, f"<html>{SECRET}"), "failed", True),
        (redirect("/elsewhere"), "redirected", False),
        (redirect("/elsewhere", 307), "redirected", False),
        (Answer(200, cut="read"), "reset", True),
        (Answer(raw=b"SSH-2.0\r\n"), "bad_response", True),
    ],
)  # fmt: skip
def test_a_token_endpoint_that_fails_has_a_name_for_it(session, oauth, answer, reason, transient):
    oauth.on("/token", answer)
    failed = failing(session, credentials(oauth), oauth.url("/guarded/1"))
    assert (failed.code, failed.reason, failed.transient) == ("token_request_failed", reason, transient)
    assert failed.hint
    assert oauth.calls("/elsewhere") == []


def test_json_that_is_labelled_as_text_is_read(session, oauth):
    oauth.content_type = "text/plain"
    assert send(session, credentials(oauth), oauth.url("/guarded/1")).status == 201


def test_a_failure_is_not_kept(session, oauth):
    oauth.on("/token", Answer(503), oauth.token)
    failing(session, credentials(oauth), oauth.url("/guarded/1"))
    assert send(session, credentials(oauth), oauth.url("/guarded/1")).status == 201


def test_a_silent_token_endpoint_is_late(session, oauth, monkeypatch):
    monkeypatch.setattr(tokens.limits, "TOKEN_SECONDS", 0.3)
    oauth.on("/token", Answer(200, delay=60))
    failed = failing(session, credentials(oauth), oauth.url("/guarded/1"))
    assert (failed.reason, failed.transient) == ("timeout", True)


def test_a_refused_connection_to_the_token_endpoint_is_reported(session, oauth, target):
    target.close()
    failed = failing(session, credentials(target), oauth.url("/guarded/1"))
    assert (failed.code, failed.reason) == ("token_request_failed", "refused")


@pytest.mark.parametrize(
    "host", [item for item in HERE + METADATA if item.isprintable() and item == item.strip()]
)
def test_no_token_url_leads_into_a_closed_network(host):
    canary = Canary()
    try:
        written = f"[{host}]" if ":" in host and not host.startswith("[") else host
        value = {
            "token_url": f"http://{written}:{canary.port}/token",
            "client_id": "c",
            "client_secret": SECRET,
        }
        try:
            auth = AUTH.validate_python({"type": "oauth2-client-credentials", **value})
        except ValidationError:
            return
        with open_session(Gate()) as session:
            failed = failing(session, auth.requests_auth(session), "http://192.0.2.1/")
        assert failed.reason in ("not_allowed", "unresolved", "bad_url")
        assert canary.count == 0
    finally:
        canary.close()


def test_a_token_is_fetched_by_tls_of_the_same_authority(tmp_path):
    authority = Authority(tmp_path)
    with OAuthServer(tls=authority.server("127.0.0.1")) as oauth:
        with open_session(Gate(OPEN), verify_tls=str(authority.file)) as session:
            assert send(session, credentials(oauth), oauth.url("/guarded/1")).status == 201
        with open_session(Gate(OPEN)) as session:  # which does not trust it, and gets no token of the other
            assert failing(session, credentials(oauth), oauth.url("/guarded/1")).reason == "tls_failed"


# --- Stopping -----------------------------------------------------------------------------------------------


def test_stopping_a_session_stops_its_token_request_and_all_waiting_threads(oauth):
    came, again = threading.Event(), threading.Event()
    oauth.on("/token", lambda _seen: came.set() or Answer(200, delay=60), oauth.token)
    ended: list[Exception | int] = []

    def work(session: Session) -> None:
        try:
            ended.append(send(session, credentials(oauth), oauth.url("/guarded/1")).status)
        except (ConnectorError, NetError) as error:
            ended.append(error)
        again.set()

    with (
        open_session(Gate(OPEN)) as first,
        open_session(Gate(OPEN)) as waiting,
        open_session(Gate(OPEN)) as patient,
    ):
        threads = [threading.Thread(target=work, args=(first,))]
        threads[0].start()
        came.wait(20)
        threads += [threading.Thread(target=work, args=(item,)) for item in (waiting, patient)]
        for thread in threads[1:]:
            thread.start()
        waiting.stop()
        assert again.wait(6)
        assert len(ended) == 1
        first.stop()
        for thread in threads:
            thread.join(20)
    assert sorted(type(item).__name__ for item in ended) == ["ConnectorError", "NetError", "int"]
    assert 201 in ended  # the one that was not stopped asked for itself


def run(work, count: int) -> None:
    failures: list[BaseException] = []

    def kept() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=kept) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
