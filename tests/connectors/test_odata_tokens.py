"""Pushes to an OData service: tokens and cookies as gateways have them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from tests.connectors import odata_pushes
from tests.connectors.odata_pushes import SendControl, connector, push, rows, states, writing
from tests.fakes.echo_target import Answer, Seen
from tests.fakes.oauth_server import OAuthServer
from tests.fakes.odata_rules import Csrf
from webapp.connectors.base import ConnectorError

target = odata_pushes.target


# --- Tokens and cookies -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "quirk",
    [
        {},
        {"head": "refused"},
        {"head": "empty"},
        {"head": "not_found"},
        {"slash": "redirect"},
        {"slash": "not_found"},
        {"slash": "wanted"},
        {"head": "refused", "slash": "not_found"},
        {"uses": 2},
        {"uses": 2, "header": False},
    ],
    ids=str,
)
@pytest.mark.parametrize("parallel", [1, 4])
def test_every_row_arrives_once_with_any_token_behaviour_of_the_gateway(target, quirk, parallel):
    rule = Csrf("/sap", **quirk)
    target.on("/sap*", rule)
    ended = push(connector(target, parallel=parallel), 12)
    assert states(ended) == {("delivered", ""): 12}
    assert Counter(effect.headers["x-rowsmith-row"] for effect in target.effects) == {
        str(n): 1 for n in range(1, 13)
    }
    assert max(rule.used.values()) <= (rule.uses or 12)


def test_a_token_is_used_until_it_is_rejected(target):
    rule = Csrf("/sap")
    target.on("/sap*", rule)
    push(connector(target), 120)
    assert len(rule.given) == 1


def test_no_two_senders_share_a_token(target):
    rule = Csrf("/sap")
    target.on("/sap*", rule)
    target.on("/sap/OrderSet", lambda seen: replace(rule(seen), delay=0.02))
    push(connector(target, parallel=4), 40)
    by_token: dict[str, set[int]] = {}
    for call in target.calls("/sap/OrderSet"):
        by_token.setdefault(call.headers["x-csrf-token"], set()).add(call.connection)
    assert len(by_token) == target.most_at_once > 1
    assert all(len(connections) == 1 for connections in by_token.values())


def test_the_token_url_can_be_configured(target):
    rule = Csrf("/elsewhere")
    target.on("/elsewhere*", rule)
    target.on("/sap/*", rule)
    result = connector(target, csrf={"fetch_path": "/elsewhere/token", "fetch_method": "GET"})
    assert states(push(result)) == {("delivered", ""): 3}
    assert (target.seen[0].method, target.seen[0].path) == ("GET", "/elsewhere/token")


def test_a_service_without_tokens_gets_one_token_request(target):
    target.on("/sap*", Answer(200), method="GET")
    target.on("/sap*", Answer(200), method="HEAD")
    assert states(push(connector(target, parallel=3), 30)) == {("delivered", ""): 30}
    requests = [item for item in target.seen if item.headers.get("x-csrf-token") == "Fetch"]
    assert len(requests) <= 3 * 4
    assert not any("x-csrf-token" in call.headers for call in target.calls("/sap/OrderSet"))


def test_csrf_off_asks_for_nothing(target):
    push(connector(target, csrf="off"))
    assert {item.method for item in target.seen} == {"POST"}


@pytest.mark.parametrize(
    ("quirk", "seen"),
    [
        ({"tokens": False}, "No address issued a CSRF token"),
        ({"cookies": False}, "without a session cookie that can be sent back"),
        ({"uses": 0}, "A fresh CSRF token was sent with its session cookie"),
    ],
    ids=str,
)
def test_a_persistent_rejection_lists_the_attempts_and_three_causes(target, quirk, seen):
    target.on("/sap*", Csrf("/sap", **quirk))
    with pytest.raises(ConnectorError) as caught:
        push(connector(target))
    assert caught.value.reason == "csrf_failed"
    assert seen in caught.value.message
    for remedy in ("basic auth", "forward", "csrf.fetch_path"):
        assert remedy in caught.value.hint
    assert len(target.calls("/sap/OrderSet")) == 2  # once, and once with a fresh token


def test_a_secure_cookie_over_http_is_reported_as_the_cause(target):
    rule = Csrf("/sap")

    def secure(seen: Seen) -> Answer:
        answer = rule(seen)
        crumb = answer.headers.get("Set-Cookie")
        return (
            replace(answer, headers={**answer.headers, "Set-Cookie": f"{crumb}; Secure"}) if crumb else answer
        )

    target.on("/sap*", secure)
    with pytest.raises(ConnectorError) as caught:
        push(connector(target), 1)
    assert "use https in service_url" in caught.value.message


def test_a_refusal_for_the_token_after_rows_were_taken_is_the_rows_own(target):
    rule = Csrf("/sap")
    target.on("/sap*", rule)
    result = writing(connector(target), ["Customer"])
    with connector(target).open() as channel:
        sending = channel.create_sender(result, SendControl())
        assert states(sending.send(rows([{"Customer": "1"}]))) == {("delivered", ""): 1}
        rule.uses = 0
        (ended,) = sending.send(rows([{"Customer": "2"}]))
    assert (ended.state, ended.reason, ended.status_code) == ("failed", "csrf", 403)
    assert ended.message.startswith("csrf_failed: ")


def test_a_403_that_is_not_about_the_token_is_reported_and_not_retried(target):
    rule = Csrf("/sap", forbidden=True)
    target.on("/sap*", rule)
    ended = push(connector(target))
    assert states(ended) == {("failed", "forbidden"): 3}
    assert ended[0].message == "AUTH/1: No authorization for this entity"
    assert len(target.calls("/sap/OrderSet")) == 3
    assert len(rule.given) == 1


def test_the_service_being_away_while_the_token_is_fetched_is_retried_and_no_row_is_in_doubt(target):
    rule = Csrf("/sap", head="refused")
    away = [Answer(503), Answer(503)]
    target.on("/sap/", lambda seen: away.pop() if seen.method == "GET" and away else rule(seen))
    target.on("/sap/OrderSet", rule)
    hand = SendControl()
    assert states(push(connector(target), 1, hand)) == {("delivered", ""): 1}
    assert hand.waits == [1.0, 2.0]


# --- Metadata and verification ------------------------------------------------------------------------------


def test_a_fetched_token_that_is_worth_nothing_any_more_costs_no_row():
    with OAuthServer() as server:
        server.uses = 2
        auth = {
            "type": "oauth2-client-credentials", "token_url": server.token_url,
            "client_id": server.client_id, "client_secret": server.client_secret,
        }  # fmt: skip
        result = connector(server, path="/guarded/sap", csrf="off", auth=auth)
        assert states(push(result, 7)) == {("delivered", ""): 7}
        assert len(server.given) == 4


def test_a_rejected_token_request_ends_the_push_and_no_row_fails():
    with OAuthServer() as server:
        auth = {
            "type": "oauth2-client-credentials", "token_url": server.token_url,
            "client_id": server.client_id, "client_secret": "wrong",
        }  # fmt: skip
        with pytest.raises(ConnectorError) as caught:
            push(connector(server, path="/guarded/sap", auth=auth), 3)
    assert caught.value.code == "token_request_failed"
