"""A secret that a REST connection sends is in no log, error, audit entry, response or byte of our database, in any form
in which the target repeats it."""

from __future__ import annotations

import base64
import json
import logging
from urllib.parse import quote, quote_plus

import pytest

from jobs.pushes import push as job
from tests.fakes.echo_target import Answer, EchoTarget
from tests.fakes.oauth_server import OAuthServer
from tests.views.speak import make
from tests.views.targets import connection
from webapp.connectors.http import tokens
from webapp.extensions import db

SECRET = 'canary/7f3a+9c "q"=ü&z'
PLAIN = "canary-7f3a9c-token"  # for header values and visible texts


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


@pytest.fixture
def oauth():
    tokens.tokens.clear()
    with OAuthServer(client_secret=SECRET) as result:
        yield result
    tokens.tokens.clear()


def forms(secret: str) -> list[str]:
    """A secret as targets write it."""
    raw = secret.encode()
    return [
        secret, quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1], base64.b64encode(raw).decode(),
        base64.urlsafe_b64encode(raw).decode(), base64.b64encode(b"user:" + raw).decode(),
    ]  # fmt: skip


def told_back(seen) -> Answer:
    """A target that repeats all it was sent, in every form."""
    sent = [value for name, value in seen.headers.items() if name not in ("host", "content-length")]
    sent += [value for values in seen.query.values() for value in values]
    sent += [item.split(" ", 1)[1] for item in sent if " " in item]
    return Answer(422, "; ".join(form for item in [*sent, SECRET, PLAIN] for form in forms(item)))


AUTHS = {
    "bearer": {"type": "bearer", "token": PLAIN},
    "basic": {"type": "basic", "username": "user", "password": SECRET},
    "api-key in a header": {"type": "api-key", "in": "header", "name": "X-Key", "value": PLAIN},
    "api-key in the query": {"type": "api-key", "in": "query", "name": "key", "value": PLAIN},
    "oauth": {"type": "oauth2-client-credentials", "client_id": "client", "client_secret": SECRET},
}


@pytest.mark.parametrize("name", AUTHS)
def test_a_secret_is_not_stored_after_a_rejected_push(
    app, api, cast, edith, oauth, database_bytes, caplog, name
):
    caplog.set_level(logging.DEBUG)
    auth = AUTHS[name]
    if name == "oauth":
        auth = {**auth, "token_url": oauth.token_url}
    secrets = [auth.get(word) for word in ("token", "password", "value", "client_secret") if auth.get(word)]
    with EchoTarget() as target:
        target.on("*", lambda seen: _only(told_back(seen), secrets, oauth))
        result = connection(
            app, cast, "rest", {"base_url": target.url("/api"), "auth": auth, "retry": {"retries": 0}}
        )
        edith.post(f"/connections/{result}/verify")
        template = make(edith)["id"]
        how = {"connection_id": result, "target": "rows", "count": 3}
        dry = edith.post(f"/templates/{template}/push", json={**how, "dry_run": True})
        push = edith.post(f"/templates/{template}/push", json=how).json
        with app.app_context():
            job.run(push["id"])
            db.session.remove()
        assert target.calls("/api/rows")
    shown = dry.text + "".join(
        edith.get(path).text
        for path in (
            f"/connections/{result}", f"/pushes/{push['id']}", f"/pushes/{push['id']}/rows",
            f"/pushes/{push['id']}/logs", "/pushes",
        )
    )  # fmt: skip
    shown += api(cast.olivia).get("/audit").text
    for secret in [*secrets, *oauth.given]:
        for form in forms(secret):
            assert form not in shown, (secret, form)
            assert form not in caplog.text, (secret, form)
            assert form.encode() not in database_bytes(), (secret, form)
    assert "********" in edith.get(f"/pushes/{push['id']}/rows").text


def _only(answer: Answer, secrets: list[str], oauth: OAuthServer) -> Answer:
    """Remove secrets that this connection does not have."""
    text = answer.body
    for other in {SECRET, PLAIN} - set(secrets):
        for form in forms(other):
            text = text.replace(form, "")
    return Answer(answer.status, text)


def test_a_token_endpoint_that_echoes_its_request_reveals_no_secret(
    app, cast, edith, oauth, database_bytes, caplog
):
    caplog.set_level(logging.DEBUG)
    wrong = "wrong" + SECRET
    auth = {**AUTHS["oauth"], "client_secret": wrong, "token_url": oauth.token_url}
    result = connection(
        app, cast, "rest", {"base_url": oauth.url("/guarded"), "auth": auth, "retry": {"retries": 0}}
    )
    verified = edith.post(f"/connections/{result}/verify").text
    push = edith.post(
        f"/templates/{make(edith)['id']}/push", json={"connection_id": result, "target": "rows", "count": 3}
    ).json
    with app.app_context():
        job.run(push["id"])
        db.session.remove()
    ended = edith.get(f"/pushes/{push['id']}")
    assert ended.json["error"]["code"] == "token_request_failed"
    shown = verified + ended.text + edith.get(f"/pushes/{push['id']}/logs").text
    for form in forms(wrong):
        assert form not in shown + caplog.text, form
        assert form.encode() not in database_bytes(), form
