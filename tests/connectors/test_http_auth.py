"""Authentication of requests: what is sent, what is refused, that no message holds a secret. Against real servers."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from pydantic import ValidationError

from tests.connectors import http_requests
from tests.connectors.http_requests import AUTH, SECRET, send
from webapp.connectors.http.authentication import Auth
from webapp.connectors.redaction import redact

fresh = http_requests.fresh
target = http_requests.target
session = http_requests.session


# --- What is sent -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("auth", "name", "value"),
    [
        ({"type": "basic", "username": "jürgen", "password": "pä:ss"},
         "authorization", "Basic " + base64.b64encode("jürgen:pä:ss".encode()).decode()),
        ({"type": "bearer", "token": "abc.def-1"}, "authorization", "Bearer abc.def-1"),
        ({"type": "api-key", "name": "X-API-Key", "value": "k1 2"}, "x-api-key", "k1 2"),
        ({"type": "api-key", "in": "header", "name": "apikey", "value": "k"}, "apikey", "k"),
    ],
)  # fmt: skip
def test_a_header_carries_the_credentials(session, target, auth, name, value):
    send(session, auth, target.url())
    assert target.seen[0].headers[name] == value


def test_none_sends_nothing(session, target):
    send(session, {"type": "none"}, target.url())
    assert "authorization" not in target.seen[0].headers


def test_an_api_key_is_added_to_the_existing_query(session, target):
    auth = {"type": "api-key", "in": "query", "name": "api_key", "value": "a&b=c d"}
    send(session, auth, target.url("/rows?api_key=old&page=2&$filter=a%20eq%201"))
    assert target.seen[0].query == {"page": ["2"], "$filter": ["a eq 1"], "api_key": ["a&b=c d"]}


@pytest.mark.parametrize(
    "auth",
    [
        {"type": "bearer", "token": f"{SECRET}\r\nX-Evil: 1"},
        {"type": "bearer", "token": "abc\n"},
        {"type": "bearer", "token": ""},
        {"type": "bearer"},
        {"type": "basic", "username": "a:b", "password": SECRET},
        {"type": "basic", "username": "me", "password": f"{SECRET}\0"},
        {"type": "api-key", "name": "X Key", "value": SECRET},
        {"type": "api-key", "name": "X-Key\r\nY", "value": SECRET},
        {"type": "api-key", "name": "X-Key", "value": f"{SECRET}\nX-Evil: 1"},
        {"type": "api-key", "name": "X-Key", "value": f" {SECRET}"},
        {"type": "api-key", "name": "X-Key", "value": f"{SECRET}\u2028"},
        {"type": "api-key", "name": "Host", "value": SECRET},
        {"type": "api-key", "name": "content-length", "value": "5"},
        {"type": "api-key", "name": "Transfer-Encoding", "value": "chunked"},
        {"type": "api-key", "in": "body", "name": "k", "value": SECRET},
        {"type": "api-key", "where": "query", "name": "k", "value": SECRET},
        {"type": "oauth2-client-credentials", "token_url": "x", "client_id": "c", "client_secret": SECRET},
        {"type": "oauth2-client-credentials", "token_url": f"https://c:{SECRET}@x/", "client_id": "c",
         "client_secret": SECRET},
        {"type": "oauth2-client-credentials", "token_url": "https://x/", "client_id": "c", "client_secret": SECRET,
         "client_auth": "jwt"},
        {"type": "oauth2-client-credentials", "token_url": "https://x/", "client_id": "c", "client_secret": SECRET,
         "scope": "a\nb"},
        {"type": "digest", "username": "me", "password": SECRET},
        {"type": "none", "token": SECRET},
        {"token": SECRET},
    ],
)  # fmt: skip
def test_invalid_requests_are_rejected_without_showing_values(auth):
    with pytest.raises(ValidationError) as refused:
        AUTH.validate_python(auth)
    assert all(SECRET not in fault["msg"] for fault in refused.value.errors())


def test_settings_are_written_as_they_are_read():
    auth = {"type": "api-key", "in": "query", "name": "k", "value": "v"}
    assert AUTH.dump_python(AUTH.validate_python(auth)) == auth


def test_settings_that_are_printed_tell_no_secret():
    for auth in (
        {"type": "bearer", "token": "hunter2"},
        {"type": "basic", "username": "me", "password": "hunter2"},
        {"type": "api-key", "name": "k", "value": "hunter2"},
        {
            "type": "oauth2-client-credentials",
            "token_url": "https://x/",
            "client_id": "c",
            "client_secret": "hunter2",
        },
    ):
        assert "hunter2" not in repr(AUTH.validate_python(auth))


def test_secrets_are_marked():
    marked = {
        (kind.__name__, name)
        for kind in Auth.__origin__.__args__
        for name, info in kind.model_fields.items()
        if info.json_schema_extra == {"secret": True}
    }
    assert marked == {
        ("BasicAuth", "password"), ("BearerAuth", "token"), ("ApiKeyAuth", "value"),
        ("ClientCredentials", "client_secret"),
    }  # fmt: skip


# --- Secrets cut --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("secret", [SECRET, "abc", 'a"b\\c/d', "päss wörd", "k" * 100])
@pytest.mark.parametrize("before", ["", "x", "user:", "me@example.org:"])
def test_a_secret_is_cut_in_every_form(secret, before):
    whole = base64.b64encode(f"{before}{secret}!".encode()).decode()
    text = " | ".join(
        [secret, quote(secret), quote(secret, safe="").lower(), quote_plus(secret), json.dumps(secret),
         json.dumps(secret, ensure_ascii=False)]
    )  # fmt: skip
    cut = redact(f"{text} | {whole}", [secret, ""])
    assert secret not in cut
    assert quote(secret, safe="").lower() not in cut.lower()
    if len(secret) > 8:
        assert whole not in cut
        assert base64.urlsafe_b64encode(f"{before}{secret}!".encode()).decode() not in cut
