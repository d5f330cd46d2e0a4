"""The targets of the tests do what they say, seen by a client that is not ours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import requests

from tests.fakes.echo_target import Answer, EchoTarget
from tests.fakes.odata_rules import COOKIE, Csrf


@pytest.fixture
def target() -> Iterator[EchoTarget]:
    with EchoTarget() as result:
        yield result


@pytest.fixture
def client() -> Iterator[requests.Session]:
    with requests.Session() as result:
        result.trust_env = False
        yield result


def test_received_bytes_are_recorded_and_echoed(target, client):
    text = client.post(target.url("/rows?a=1&a=2"), json={"x": 1}).json()
    [seen] = target.seen
    assert (seen.method, seen.path, seen.query, seen.json) == ("POST", "/rows", {"a": ["1", "2"]}, {"x": 1})
    assert (seen.connection, seen.at_once) == (1, 1)
    assert (text["path"], text["body"]) == ("/rows", '{"x": 1}')


def test_a_target_that_honours_keys_carries_out_once(target, client):
    target.honours_keys = True
    target.on("/rows", Answer(503), Answer(201, {"id": 7}, cut="read"), Answer(201, {"id": 8}))
    headers = {"Idempotency-Key": "k1"}
    assert client.post(target.url("/rows"), headers=headers).status_code == 503
    with pytest.raises(requests.ConnectionError):
        client.post(target.url("/rows"), headers=headers)
    assert client.post(target.url("/rows"), headers=headers).json() == {"id": 7}
    assert (target.keys["k1"], len(target.effects)) == (3, 1)


def test_a_target_that_does_not_doubles(target, client):
    for _ in range(2):
        client.post(target.url("/rows"), headers={"Idempotency-Key": "k1"})
    assert (target.keys["k1"], len(target.effects)) == (2, 2)


def test_a_reset_before_the_body_has_no_effect(target, client):
    target.on("/rows", Answer(201, cut="unread"), Answer(201, cut="body", body="x" * 100))
    for effects in (0, 1):
        with pytest.raises(requests.exceptions.RequestException):
            client.post(target.url("/rows"), data=b"x" * 100)
        assert len(target.effects) == effects


@pytest.mark.parametrize("method", ["HEAD", "GET"])
@pytest.mark.parametrize("path", ["/sap", "/sap/"])
def test_a_token_and_its_cookie_open_a_service(target, client, method, path):
    target.on("/sap*", rule := Csrf("/sap", uses=2))
    token = client.request(method, target.url(path), headers={"X-CSRF-Token": "Fetch"}).headers[
        "X-CSRF-Token"
    ]
    post = [client.post(target.url("/sap/Orders"), headers={"X-CSRF-Token": token}) for _ in range(3)]
    assert [item.status_code for item in post] == [201, 201, 403]
    assert post[2].headers["X-CSRF-Token"] == "Required"
    client.cookies.clear()
    assert client.post(target.url("/sap/Orders"), headers={"X-CSRF-Token": token}).status_code == 403
    assert (rule.refused, COOKIE) == (2, "sap-XSRF_cookie")


@pytest.mark.parametrize(
    ("rule", "method", "path", "status", "token"),
    [
        (Csrf(head="refused"), "HEAD", "/sap/", 405, False),
        (Csrf(head="empty"), "HEAD", "/sap/", 200, False),
        (Csrf(head="empty"), "GET", "/sap/", 200, True),
        (Csrf(slash="redirect"), "GET", "/sap", 301, False),
        (Csrf(slash="not_found"), "GET", "/sap/", 404, False),
        (Csrf(slash="wanted"), "GET", "/sap", 404, False),
        (Csrf(slash="wanted"), "GET", "/sap/", 200, True),
        (Csrf(tokens=False), "GET", "/sap/", 200, False),
        (Csrf(metadata_401=True), "GET", "/sap/$metadata", 401, False),
        (Csrf(metadata_401=True), "GET", "/sap/Orders", 200, True),
    ],
)
def test_gateways_have_quirks(target, client, rule, method, path, status, token):
    target.on("/sap*", rule)
    answer = client.request(
        method, target.url(path), headers={"X-CSRF-Token": "Fetch"}, allow_redirects=False
    )
    assert (answer.status_code, "X-CSRF-Token" in answer.headers) == (status, token)


def test_a_403_that_was_never_about_tokens(target, client):
    target.on("/sap*", Csrf(forbidden=True))
    answer = client.post(target.url("/sap/Orders"))
    assert (answer.status_code, "X-CSRF-Token" in answer.headers) == (403, False)
