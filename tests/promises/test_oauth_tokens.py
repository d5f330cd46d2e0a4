"""Section 5 of the specification at the running product: an OAuth token is cached until 60 s before it expires, for the
web processes, the workers' jobs and the verifications together. Counted at a real token endpoint."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes.echo_target import Answer
from tests.fakes.oauth_server import OAuthServer
from tests.promises import loot
from tests.promises.product import Api, Product
from webapp import limits

FIELDS = [{"name": "id", "type": "row_number"}]


@pytest.fixture
def oauth() -> Iterator[OAuthServer]:
    with OAuthServer() as server:
        yield server


class Connected:
    """A REST connection with OAuth, a template to push, and a template that reads values from the API."""

    def __init__(self, api: Api, oauth: OAuthServer) -> None:
        self.api, self.oauth = api, oauth
        self.auth = {
            "type": "oauth2-client-credentials",
            "token_url": oauth.token_url,
            "client_id": oauth.client_id,
            "client_secret": oauth.client_secret,
        }
        settings = {"base_url": oauth.url("/guarded"), "auth": self.auth}
        self.id = api.made("/connections", {"name": "OAuth", "type": "rest", "settings": settings})["id"]
        self.template = api.made("/templates", {"name": "Rows", "fields": FIELDS})["id"]
        self.asked = 0

    def push(self) -> None:
        body = {"connection_id": self.id, "target": "rows", "count": 3}
        result = self.api.made(f"/templates/{self.template}/push", body)
        ended = self.api.ended(f"/pushes/{result['id']}")
        assert (ended["status"], ended["counts"]["delivered"]) == ("completed", 3), ended

    def verify(self) -> None:
        answer = self.api.made(f"/connections/{self.id}/verify")
        assert answer["status"] == "verified", answer

    def generate(self, api: Api | None = None) -> None:
        self.asked += 1
        options: dict[str, Any] = {
            "connection_id": self.id,
            "path": f"/values/{self.asked}",
            "extract": "$.token",
        }
        field = {"name": "value", "type": "api_response", "options": options}
        result = (api or self.api).made("/generate", {"fields": [field], "count": 1, "format": "json"})
        assert isinstance(result[0]["value"], int)


def test_one_token_serves_pushes_a_verification_and_generates_of_all_processes(
    product: Product, oauth: OAuthServer
):
    used = Connected(product.api(), oauth)
    for _ in range(3):
        used.push()
    used.verify()
    for _ in range(6):
        used.generate(product.api())  # with a new connection, so that both web processes are used
    assert len(oauth.given) == 1
    # A 401 drops the token, in the process of a verification too.
    oauth.revoke()
    used.verify()
    used.push()
    used.generate()
    assert len(oauth.given) == 2
    oauth.revoke()
    used.push()
    used.push()
    used.verify()
    assert len(oauth.given) == 3
    # A changed secret needs a new token.
    oauth.client_secret = "another secret"
    auth = {**used.auth, "client_secret": "another secret"}
    changed = {"settings": {"base_url": oauth.url("/guarded"), "auth": auth}}
    assert product.api().call("PATCH", f"/connections/{used.id}", json=changed).status_code == 200
    used.push()
    used.generate()
    assert len(oauth.given) == 4
    tokens = {f"token {number}": token for number, token in enumerate(oauth.given)}
    for stored in (loot.in_redis(product), loot.database(product)):
        assert loot.hits(stored, tokens) == []
    logs = product.logs()
    assert not [token for token in oauth.given if token in logs]


def test_emptying_redis_costs_one_token_request(product: Product, oauth: OAuthServer):
    used = Connected(product.api(), oauth)
    used.push()
    with product.redis() as client:
        client.flushall()
    used.push()
    used.push()
    assert len(oauth.given) == 2


def test_processes_that_need_a_token_at_the_same_time_fetch_one(product: Product, oauth: OAuthServer):
    oauth.expires_in = limits.TOKEN_EARLY_SECONDS + 1
    used = Connected(product.api(), oauth)
    time.sleep(1.1)  # until every process needs a new one
    oauth.expires_in = 3600
    before = len(oauth.given)
    oauth.on("/token", lambda seen: Answer(**{**vars(oauth.token(seen)), "delay": 1.0}))
    failures: list[BaseException] = []

    def run(work: Any) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in [used.push, *[used.verify] * 4]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(oauth.given) - before == 1
