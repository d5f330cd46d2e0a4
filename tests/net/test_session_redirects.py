"""Redirects, and credentials that stay at home. Against real servers."""

from __future__ import annotations

import pytest
from requests.auth import AuthBase, HTTPBasicAuth

from tests.fakes.echo_target import Answer, redirect
from tests.net import sending
from tests.net.sending import SECRET, failing, send
from webapp import limits
from webapp.connectors.http.authentication import ApiKeyAuth
from webapp.net.urls import display_url

target = sending.target
other = sending.other
session = sending.session


class Crossed(AuthBase):
    def __call__(self, r):
        r.headers["Authorization"] = f"Bearer {SECRET}"
        r.headers["X-API-Key"] = SECRET
        return r


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_credentials_go_nowhere_else(session, target, other, status, method):
    target.on("/set", Answer(200, headers={"Set-Cookie": f"sid={SECRET}; path=/"}))
    send(session, "GET", target.url("/set"))
    target.on("/", redirect(other.url("/there"), status))
    headers = {"X-Tenant": SECRET, "Accept": "text/csv", "Cookie": f"a={SECRET}"}
    reply = send(session, method, target.url(), auth=Crossed(), headers=headers)
    assert (reply.status, reply.url) == (200, other.url("/there"))
    assert SECRET in target.calls("/")[0].headers["x-api-key"]
    [came] = other.seen
    assert set(came.headers) == {"host", "user-agent", "accept-encoding", "accept"}
    assert came.headers["accept"] == "text/csv"
    assert came.method == method


def test_credentials_stay_within_their_origin(session, target):
    target.on("/", redirect("/there?page=2", 307))
    send(session, "GET", target.url("/?page=1"), auth=HTTPBasicAuth("me", SECRET), headers={"X-Tenant": "7"})
    there = target.calls("/there")[0]
    assert there.headers["authorization"].startswith("Basic ")
    assert (there.headers["x-tenant"], there.query) == ("7", {"page": ["2"]})


def test_credentials_do_not_come_back_by_way_of_another_origin(session, target, other):
    target.on("/", redirect(other.url()))
    other.on("/", redirect(target.url("/back")))
    target.on("/back", redirect("/again"))
    send(session, "GET", target.url(), auth=HTTPBasicAuth("me", SECRET))
    assert [item.path for item in target.seen if "authorization" in item.headers] == ["/"]
    assert len(target.seen) == 3


def test_a_cookie_of_another_origin_is_not_taken(session, target, other):
    target.on("/", redirect(other.url("/there")))
    other.on("/there", Answer(200, headers={"Set-Cookie": "sid=theirs; path=/"}))
    send(session, "GET", target.url())
    send(session, "GET", target.url("/again"))
    assert "cookie" not in target.calls("/again")[0].headers


def test_an_api_key_of_the_query_does_not_leave_even_if_the_target_repeats_it(session, target, other):
    auth = ApiKeyAuth.model_validate({"type": "api-key", "in": "query", "name": "api_key", "value": SECRET})
    target.on("/", redirect(other.url(f"/there?page=2&api_key={SECRET}&copy={SECRET}")))
    send(session, "GET", target.url("/?page=2"), auth=auth.requests_auth(session))
    assert target.seen[0].query == {"page": ["2"], "api_key": [SECRET]}
    assert other.seen[0].query == {"page": ["2"]}


def test_an_api_key_of_the_query_is_sent_along_within_its_origin(session, target):
    auth = ApiKeyAuth.model_validate({"type": "api-key", "in": "query", "name": "api_key", "value": SECRET})
    target.on("/", redirect(f"/there?api_key={SECRET}"))
    send(session, "GET", target.url("/"), auth=auth.requests_auth(session))
    assert target.calls("/there")[0].query == {"api_key": [SECRET]}


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_write_does_not_follow_what_would_make_it_a_read(session, target, method, status):
    target.on("/", redirect(f"http://me:{SECRET}@127.0.0.1:1/login?token={SECRET}", status))
    failed = failing(session, method, target.url(), json={})
    assert (failed.reason, failed.arrived) == ("redirected", True)
    target.on("/", redirect(f"/login?token={SECRET}", status))
    failed = failing(session, method, target.url(), json={})
    assert "/login" in failed.message
    assert len(target.seen) == 2


@pytest.mark.parametrize("status", [307, 308])
def test_a_write_follows_within_its_origin_and_no_further(session, target, other, status):
    target.on("/rows", redirect("/rows/", status))
    assert send(session, "POST", target.url("/rows"), json={"a": 1}).status == 201
    assert target.calls("/rows/")[0].json == {"a": 1}
    target.on("/away", redirect(other.url(), status))
    assert failing(session, "POST", target.url("/away"), json={"a": 1}).reason == "redirected"
    assert other.opened == 0


def test_a_redirect_can_be_looked_at(session, target):
    target.on("/", redirect("/there"))
    assert send(session, "GET", target.url(), follow=False).headers["location"] == "/there"


def test_five_redirects_are_followed(session, target):
    target.on("/", *[redirect("/")] * 5, Answer(200))
    assert send(session, "GET", target.url()).status == 200
    target.on("/round", redirect("/round"))
    assert failing(session, "GET", target.url("/round")).reason == "redirected"
    assert len(target.calls("/round")) == 6


def test_a_url_for_people_has_no_secrets():
    assert (
        display_url(f"https://me:{SECRET}@example.org:8443/a/b?key={SECRET}#{SECRET}")
        == "https://example.org:8443/a/b"
    )


@pytest.mark.parametrize("value", [f"{SECRET}\r\nX-Evil: 1", f"{SECRET}\0", f"{SECRET}€"])
def test_an_invalid_header_is_rejected_without_showing_its_value(session, target, value):
    failed = failing(session, "GET", target.url(), headers={"X-Key": value})
    assert (failed.reason, target.seen) == ("bad_url", [])


def test_no_log_line_holds_a_key(session, target, caplog):
    caplog.set_level("DEBUG")
    target.on("/odd", Answer(raw=b"HTTP/1.1 200 OK\r\nno header\r\n: x\r\nContent-Length: 0\r\n\r\n"))
    for path in ("/odd", "/even"):
        send(session, "GET", target.url(f"{path}?api_key={SECRET}"), headers={"X-Key": SECRET})
    failing(session, "GET", f"http://127.0.0.1:1/?api_key={SECRET}")
    assert SECRET not in caplog.text


def test_a_target_cannot_fill_the_memory_with_cookies(session, target):
    target.on("/", lambda seen: Answer(200, headers={"Set-Cookie": f"c{len(target.seen)}=1; path=/"}))
    for _ in range(limits.HTTP_COOKIES + 20):
        send(session, "GET", target.url())
    assert len(session.cookies) == limits.HTTP_COOKIES
    assert f"c{limits.HTTP_COOKIES + 20}" in session.cookies
