"""Pushes to an OData service: tokens and cookies as gateways have them, and what becomes of each row."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest
from pydantic import ValidationError

from tests.connectors.odata_documents import V2, V4
from tests.fakes.echo_target import Answer, EchoTarget, Seen, busy, redirect
from tests.fakes.oauth_server import OAuthServer
from tests.fakes.odata_rules import Csrf
from webapp.connectors.base import ConnectorError, Writing
from webapp.connectors.channel import LOCATION, Rows
from webapp.connectors.odata import OdataConnector, OdataSettings
from webapp.net.gate import Gate

GATE = Gate(["127.0.0.0/8"])
SECRET = "s3cret-token"


class Hand:
    """Whoever holds the push: says stop after so many requests."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.stop_after, self.asked, self.waits = stop_after, 0, []
        self._lock = threading.Lock()

    def may_go(self) -> None:
        with self._lock:
            self.asked += 1
            if self.stop_after is not None and self.asked > self.stop_after:
                raise InterruptedError

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)


@pytest.fixture
def target():
    with EchoTarget() as found:
        yield found


def connector(
    target: EchoTarget, document: bytes | None = V2, path: str = "/sap", **settings
) -> OdataConnector:
    found = OdataConnector(
        OdataSettings.model_validate({"service_url": target.url(path), "parallel": 1, **settings}), GATE
    )
    found.document = document
    return found


def rows(values: list[dict], first: int = 1) -> Rows:
    batch = pa.RecordBatch.from_pylist(values)
    numbers = range(first, first + len(values))
    return Rows(batch, list(numbers), [f"push-{number}" for number in numbers])


def writing(made: OdataConnector, names: list[str], entity: str = "OrderSet", **more) -> Writing:
    with made.open() as channel:
        found = channel.entity(entity)
    return Writing(found, tuple(found.column(name) for name in names if name != LOCATION), **more)


def push(
    made: OdataConnector, count: int = 3, hand: Hand | None = None, stop_at_failure: bool = False, **more
):
    told = writing(made, ["Customer", "Total"], **more)
    with made.open() as channel:
        sending = channel.sending(told, hand or Hand())
        values = [{"Customer": f"C{n}", "Total": n / 4} for n in range(1, count + 1)]
        found = []
        for start in range(0, count, sending.size):
            part = values[start : start + sending.size]
            found += sending.send(rows(part, start + 1), stop_at_failure)
        return found


def states(ended) -> Counter:
    return Counter((one.state, one.reason) for one in ended)


# --- Tokens and cookies ---------------------------------------------------------------------------------------


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
def test_every_row_arrives_once_whatever_the_gateway_does_with_tokens(target, quirk, parallel):
    rule = Csrf("/sap", **quirk)
    target.on("/sap*", rule)
    ended = push(connector(target, parallel=parallel), 12)
    assert states(ended) == {("delivered", ""): 12}
    assert Counter(one.headers["x-rowsmith-row"] for one in target.effects) == {
        str(n): 1 for n in range(1, 13)
    }
    assert max(rule.used.values()) <= (rule.uses or 12)


def test_a_token_is_used_until_it_is_refused(target):
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
    for one in target.calls("/sap/OrderSet"):
        by_token.setdefault(one.headers["x-csrf-token"], set()).add(one.connection)
    assert len(by_token) == target.most_at_once > 1
    assert all(len(connections) == 1 for connections in by_token.values())


def test_where_the_token_is_fetched_can_be_said(target):
    rule = Csrf("/elsewhere")
    target.on("/elsewhere*", rule)
    target.on("/sap/*", rule)
    made = connector(target, csrf={"fetch_path": "/elsewhere/token", "fetch_method": "GET"})
    assert states(push(made)) == {("delivered", ""): 3}
    assert (target.seen[0].method, target.seen[0].path) == ("GET", "/elsewhere/token")


def test_a_service_without_tokens_is_asked_for_one_once(target):
    target.on("/sap*", Answer(200), method="GET")
    target.on("/sap*", Answer(200), method="HEAD")
    assert states(push(connector(target, parallel=3), 30)) == {("delivered", ""): 30}
    asked = [one for one in target.seen if one.headers.get("x-csrf-token") == "Fetch"]
    assert len(asked) <= 3 * 4
    assert not any("x-csrf-token" in one.headers for one in target.calls("/sap/OrderSet"))


def test_csrf_off_asks_for_nothing(target):
    push(connector(target, csrf="off"))
    assert {one.method for one in target.seen} == {"POST"}


@pytest.mark.parametrize(
    ("quirk", "seen"),
    [
        ({"tokens": False}, "No address gave a CSRF token"),
        ({"cookies": False}, "no session cookie came with it"),
        ({"uses": 0}, "A fresh CSRF token was sent with its session cookie"),
    ],
    ids=str,
)
def test_a_persistent_refusal_says_what_was_seen_and_the_three_causes(target, quirk, seen):
    target.on("/sap*", Csrf("/sap", **quirk))
    with pytest.raises(ConnectorError) as caught:
        push(connector(target))
    assert caught.value.reason == "csrf_failed"
    assert seen in caught.value.message
    for remedy in ("basic auth", "forward", "csrf.fetch_path"):
        assert remedy in caught.value.hint
    assert len(target.calls("/sap/OrderSet")) == 2  # once, and once with a fresh token


def test_a_cookie_for_https_alone_is_named_as_the_cause(target):
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
    assert "write https in service_url" in caught.value.message


def test_a_refusal_for_the_token_after_rows_were_taken_is_the_rows_own(target):
    rule = Csrf("/sap")
    target.on("/sap*", rule)
    told = writing(connector(target), ["Customer"])
    with connector(target).open() as channel:
        sending = channel.sending(told, Hand())
        assert states(sending.send(rows([{"Customer": "1"}]))) == {("delivered", ""): 1}
        rule.uses = 0
        (ended,) = sending.send(rows([{"Customer": "2"}]))
    assert (ended.state, ended.reason, ended.status_code) == ("failed", "csrf", 403)
    assert ended.message.startswith("csrf_failed: ")


def test_a_403_that_is_not_about_the_token_is_told_and_not_sent_again(target):
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
    hand = Hand()
    assert states(push(connector(target), 1, hand)) == {("delivered", ""): 1}
    assert hand.waits == [1.0, 2.0]


# --- Rows -----------------------------------------------------------------------------------------------------


def test_a_row_is_one_post_with_its_key_its_number_and_the_query_of_the_settings(target):
    made = connector(target, csrf="off", sap_client="100", language="EN", default_headers={"X-Own": "1"})
    push(made, 1)
    (one,) = target.seen
    assert (one.method, one.path) == ("POST", "/sap/OrderSet")
    assert one.query == {"sap-client": ["100"], "sap-language": ["EN"]}
    assert one.json == {"Customer": "C1", "Total": "0.25"}
    assert one.headers["idempotency-key"] == "push-1"
    assert one.headers["x-rowsmith-row"] == "1"
    assert one.headers["x-own"] == "1"
    assert one.headers["dataserviceversion"] == "2.0"


@pytest.mark.parametrize("url", ["/sap", "/sap/", "/sap/$metadata", "/sap/?sap-client=100"])
def test_the_service_is_found_however_its_address_is_written(target, url):
    push(connector(target, path=url, csrf="off"), 1)
    assert target.seen[0].path == "/sap/OrderSet"


def test_keys_come_from_the_body_and_else_from_the_location(target):
    location = {"Location": "https://inside.example/sap/OrderSet('0000000008')"}
    target.on(
        "/sap/OrderSet",
        Answer(201, {"d": {"Number": "0000000007", "Placed": "/Date(0)/"}}, {"Location": "OrderSet('7')"}),
        Answer(204, b"", location),
    )
    made = connector(target, csrf="off")
    first, second = push(made, 2, capture=("Number", "Placed", LOCATION))
    assert first.keys == {
        "Number": "0000000007", "Placed": "1970-01-01T00:00:00", LOCATION: target.url("/sap/OrderSet('7')")
    }  # fmt: skip
    # The gateway calls itself by another name; the address is kept as we reach it.
    assert second.keys == {"Number": "0000000008", LOCATION: target.url("/sap/OrderSet('0000000008')")}


def test_a_value_that_does_not_fit_is_not_sent_and_the_others_are(target):
    made = connector(target, csrf="off")
    told = writing(made, ["Customer", "Total"])
    with made.open() as channel:
        ended = channel.sending(told, Hand()).send(
            rows([{"Customer": "1", "Total": "1"}, {"Customer": "2", "Total": "x"}])
        )
    assert [(one.state, one.reason) for one in ended] == [("delivered", ""), ("failed", "wrong_type")]
    assert ended[1].message.startswith("Total: 'x'")
    assert len(target.seen) == 1


def test_retries_wait_as_specified(target):
    target.on("/sap/OrderSet", Answer(503), busy(7), Answer(502), Answer(201))
    hand = Hand()
    (ended,) = push(connector(target, csrf="off"), 1, hand)
    assert (ended.state, ended.status_code, ended.attempts) == ("delivered", 201, 4)
    assert hand.waits[:3] == [1.0, 7.0, 4.0]


def test_other_refusals_are_final_and_tell_why(target):
    error = {"error": {"code": "Z/1", "message": {"value": "Customer C1 is not a valid key"}}}
    target.on("/sap/OrderSet", Answer(400, error))
    (ended,) = push(connector(target, csrf="off"), 1)
    assert (ended.state, ended.status_code, ended.attempts) == ("failed", 400, 1)
    assert ended.message == "Z/1: Customer C1 is not a valid key"


@pytest.mark.parametrize(
    ("answer", "state", "reason"),
    [
        (Answer(503), "failed", "unavailable"),
        (Answer(429), "failed", "throttled"),
        (Answer(401), "failed", "forbidden"),
        (Answer(500, {"error": {"message": "UNIQUE constraint failed: x"}}), "failed", "unique"),
        (Answer(500, "boom"), "failed", "unavailable"),
        (redirect("https://elsewhere.example/"), "failed", "redirected"),
        (Answer(201, cut="head"), "unknown", "reset"),
        (Answer(201, cut="read"), "unknown", "reset"),
        (Answer(201, {"d": {"Number": "1"}}, cut="body"), "delivered", ""),
    ],
)
def test_how_a_row_ends(target, answer, state, reason):
    target.on("/sap/OrderSet", answer)
    made = connector(target, csrf="off", retry={"retries": 1, "backoff_seconds": [0]})
    ended = push(made, 1)
    assert [(one.state, one.reason) for one in ended] == [(state, reason)]


def test_a_duplicate_of_a_row_that_may_have_arrived_is_in_doubt(target):
    taken = Answer(400, {"error": {"code": "X", "message": "Entity already exists"}})
    target.on("/sap/OrderSet", Answer(201, cut="read"), taken)
    (ended,) = push(connector(target, csrf="off"), 1)
    assert (ended.state, ended.reason, ended.attempts) == ("unknown", "unique", 2)


def test_where_nobody_listens_the_push_ends_and_no_row_fails(target):
    made = connector(target, csrf="off", retry={"retries": 0})
    told = writing(made, ["Customer"])
    target.close()
    with made.open() as channel, pytest.raises(ConnectorError) as caught:
        channel.sending(told, Hand()).send(rows([{"Customer": "1"}]))
    assert caught.value.reason == "refused"


def test_a_hand_that_says_stop_leaves_the_rest_unbegun(target):
    ended = push(connector(target, csrf="off"), 10, Hand(stop_after=4))
    assert [one.index for one in ended] == list(range(len(ended)))
    assert len(target.effects) == len(ended) < 10


def test_the_first_failure_ends_it_where_that_is_wanted(target):
    target.on("/sap/OrderSet", Answer(201), Answer(400), Answer(201))
    ended = push(connector(target, csrf="off"), 10, stop_at_failure=True)
    assert [one.state for one in ended] == ["delivered", "failed"]


def test_cancel_cuts_what_is_under_way(target):
    arrived = threading.Event()

    def slow(seen: Seen) -> Answer:
        arrived.set()
        return Answer(201, delay=30)

    target.on("/sap/OrderSet", slow)
    made = connector(target, csrf="off", retry={"retries": 0})
    told = writing(made, ["Customer"])
    found = []
    with made.open() as channel:
        sending = channel.sending(told, Hand())
        thread = threading.Thread(target=lambda: found.extend(sending.send(rows([{"Customer": "1"}]))))
        thread.start()
        assert arrived.wait(10)
        channel.cancel()
        thread.join(10)
    assert [one.state for one in found] == ["unknown"]


def test_no_secret_is_in_what_is_told(target):
    target.on("/sap/OrderSet", Answer(400, f"wrong token {SECRET}"))
    made = connector(target, csrf="off", auth={"type": "bearer", "token": SECRET})
    made.hush = lambda text: text.replace(SECRET, "********")
    (ended,) = push(made, 1)
    assert ended.message == "wrong token ********"
    assert target.seen[0].headers["authorization"] == f"Bearer {SECRET}"


# --- Changes by key ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "entity", "method"),
    [(V2, "CustomerSet", "MERGE"), (V4, "Orders", "PATCH")],
    ids=["v2", "v4"],
)
def test_an_update_goes_to_the_row_of_the_key(target, document, entity, method):
    key, name, value = (
        ("Id", "Name", "A") if document is V2 else ("ID", "name", "64ef3aea-00cf-4d15-b9c8-7c4a59a02376")
    )
    made = connector(target, document, csrf="off")
    told = writing(made, [key, name], entity, mode="update", key_columns=(key,))
    if method == "MERGE":
        text = _shown(made, told, {key: "A", name: "new"})
        assert text.startswith("MERGE /sap/CustomerSet('A') HTTP/1.1")
        return
    with made.open() as channel:
        sending = channel.sending(told, Hand())
        assert sending.repeatable
        target.on("/sap/Orders*", Answer(204), Answer(412))
        ended = sending.send(rows([{key: value, name: "new"}] * 2))
    assert [(one.state, one.reason) for one in ended] == [("delivered", ""), ("failed", "missing_row")]
    assert (target.seen[0].path, target.seen[0].headers["if-match"]) == (f"/sap/Orders({value})", "*")
    assert target.seen[0].json == {"name": "new"}


def _shown(made: OdataConnector, told: Writing, row: dict) -> str:
    with made.open() as channel:
        return channel.sending(told, Hand()).requests(rows([row]))[0]


def test_an_update_by_anything_but_the_key_is_refused(target):
    made = connector(target)
    told = writing(made, ["Customer", "Total"], mode="update", key_columns=("Customer",))
    with made.open() as channel, pytest.raises(ConnectorError) as caught:
        channel.sending(told, Hand())
    assert caught.value.reason == "unsupported"


def test_rows_are_deleted_by_key_with_an_etag_where_one_is_wanted(target):
    target.on("/sap/OrderSet*", Answer(428), Answer(204), Answer(404))
    made = connector(target, csrf="off")
    told = writing(made, ["Number"], key_columns=("Number",))
    with made.open() as channel:
        ended = channel.sending(told, Hand()).delete(rows([{"Number": "O'N"}, {"Number": "2"}]))
    assert [(one.state, one.reason) for one in ended] == [("delivered", ""), ("failed", "missing_row")]
    assert target.seen[0].path == "/sap/OrderSet('O''N')"
    assert [one.headers.get("if-match") for one in target.seen] == [None, "*", None]


def test_a_captured_address_of_another_host_is_not_called(target):
    made = connector(target, csrf="off")
    told = writing(made, [LOCATION], key_columns=(LOCATION,))
    with made.open() as channel:
        ended = channel.sending(told, Hand()).delete(
            rows([{LOCATION: "https://evil.example/x"}, {LOCATION: target.url("/sap/OrderSet('1')")}])
        )
    assert [one.state for one in ended] == ["failed", "delivered"]
    assert [one.path for one in target.seen] == ["/sap/OrderSet('1')"]


# --- Batches ------------------------------------------------------------------------------------------------------


def _batch_answer(seen: Seen, statuses: list[int]) -> Answer:
    """As gateways do it: a refused changeset has its answer bare."""
    parts = []
    for status, number in zip(statuses, re.findall(rb"X-Rowsmith-Row: (\d+)", seen.body), strict=False):
        body = json.dumps(
            {"d": {"Number": number.decode()}} if status < 300 else {"error": {"message": "no"}}
        )
        inner = (
            f"Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 {status} X\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        )
        if status < 300:
            inner = f"Content-Type: multipart/mixed; boundary=b-c\r\n\r\n--b-c\r\n{inner}\r\n--b-c--\r\n"
        parts.append(f"--b\r\n{inner}\r\n")
    return Answer(
        202, "".join([*parts, "--b--\r\n"]).encode(), {"Content-Type": "multipart/mixed; boundary=b"}
    )


def test_a_batch_has_a_changeset_a_row_and_each_row_its_own_end(target):
    target.on("/sap/$batch", lambda seen: _batch_answer(seen, [201, 400, 201]))
    made = connector(target, csrf="off", batch=True)
    ended = push(made, 3, capture=("Number",))
    assert [(one.state, one.status_code) for one in ended] == [
        ("delivered", 201),
        ("failed", 400),
        ("delivered", 201),
    ]
    assert [one.keys for one in ended] == [{"Number": "1"}, {}, {"Number": "3"}]
    assert len(target.seen) == 1
    assert target.seen[0].body.count(b"POST OrderSet HTTP/1.1") == 3


def test_rows_that_a_batch_left_undone_or_asks_for_again_are_sent_again_and_no_other(target):
    answers = [[201, 503, 201], [201, 201]]  # three of four; then the second and the fourth
    target.on("/sap/$batch", lambda seen: _batch_answer(seen, answers.pop(0)))
    hand = Hand()
    ended = push(connector(target, csrf="off", batch=True), 4, hand)
    assert states(ended) == {("delivered", ""): 4}
    assert re.findall(rb"X-Rowsmith-Row: (\d+)", target.seen[1].body) == [b"2", b"4"]
    assert hand.waits == [1.0]


def test_a_batch_whose_answer_cannot_be_read_leaves_its_rows_in_doubt(target):
    target.on("/sap/$batch", Answer(200, "fine"))
    assert states(push(connector(target, csrf="off", batch=True), 2)) == {("unknown", "rejected"): 2}


def test_a_batch_that_is_refused_fails_its_rows(target):
    target.on("/sap/$batch", Answer(404, "no batch here"))
    assert states(push(connector(target, csrf="off", batch=True), 2)) == {("failed", "rejected"): 2}


def test_a_batch_carries_the_token(target):
    rule = Csrf("/sap")
    target.on(
        "/sap*", lambda seen: _batch_answer(seen, [201] * 9) if rule(seen).status == 201 else rule(seen)
    )
    assert states(push(connector(target, batch=True), 2)) == {("delivered", ""): 2}


# --- Dry run ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("auth", "line"),
    [
        ({"type": "basic", "username": "u", "password": SECRET}, "Authorization: Basic ********"),
        ({"type": "bearer", "token": SECRET}, "Authorization: Bearer ********"),
        ({"type": "api-key", "name": "X-Key", "value": SECRET}, "X-Key: ********"),
        (
            {"type": "api-key", "in": "query", "name": "key", "value": SECRET},
            "POST /sap/OrderSet?sap-client=100&key=******** HTTP/1.1",
        ),
    ],
)
def test_a_dry_run_shows_the_exact_request_without_secrets_and_sends_nothing(target, auth, line):
    made = connector(target, auth=auth, sap_client="100")
    text = _shown(made, writing(made, ["Total"]), {"Total": "1.5"})
    assert line in text.replace("%2A", "*").splitlines()
    assert text.endswith('\n\n{"Total":"1.5"}')
    assert f"Host: 127.0.0.1:{target.port}" in text
    assert SECRET not in text
    assert target.seen == []


def test_a_dry_run_tells_what_would_not_be_sent(target):
    made = connector(target)
    assert _shown(made, writing(made, ["Total"]), {"Total": "x"}).startswith("Not sent: Total: 'x'")


# --- Metadata and verification ------------------------------------------------------------------------------------


def test_an_uploaded_document_is_used_and_nothing_is_fetched(target):
    with connector(target).open() as channel:
        assert channel.metadata().version == "OData V2"
        assert channel.entity("orderset").name == "OrderSet"
        assert channel.entity("Nothing") is None
    assert target.seen == []


def test_a_closed_metadata_document_is_told_with_both_remedies(target):
    target.on("/sap*", Csrf("/sap", metadata_401=True))
    with connector(target, None).open() as channel, pytest.raises(ConnectorError) as caught:
        channel.metadata()
    assert caught.value.reason == "metadata_refused"
    assert "same account" in caught.value.hint
    assert "upload" in caught.value.hint


def test_rows_are_sent_by_known_columns_where_the_metadata_is_closed(target):
    target.on("/sap*", Csrf("/sap", metadata_401=True))
    told = writing(connector(target), ["Customer", "Total"])
    made = connector(target, None)
    made.known = OdataConnector.read_document(V2)
    with made.open() as channel:
        ended = channel.sending(told, Hand()).send(rows([{"Customer": "1", "Total": "2.5"}]))
    assert states(ended) == {("delivered", ""): 1}
    assert target.effects[0].json == {"Customer": "1", "Total": "2.5"}


def stages(made: OdataConnector) -> list[tuple[str, str]]:
    return [(one.name, one.code) for one in made.stages()]


def test_a_good_service_is_verified_to_its_rows(target):
    target.on("/sap*", Csrf("/sap"))
    target.on("/sap/$metadata", Answer(200, V2, {"Content-Type": "application/xml"}))
    found = list(connector(target, None).stages())
    assert [(one.name, one.code) for one in found] == [
        ("resolve", ""), ("connect", ""), ("tls", ""), ("auth", ""), ("permission", ""), ("sample", "")
    ]  # fmt: skip
    assert "OData V2, 4 entity sets ($metadata)" in found[4].message
    assert "HEAD /sap/: 200" in found[4].message
    assert target.seen[-1].query == {"$top": ["1"]}
    assert (found[-1].response["method"], found[-1].response["status"]) == ("GET", 200)


@pytest.mark.parametrize(
    ("path", "answer", "stage", "code"),
    [
        ("/sap*", Answer(401), "auth", "auth_failed"),
        ("/sap/", Answer(200, "<html>", {"Content-Type": "text/html"}), "auth", "auth_failed"),
        ("/sap/$metadata", Answer(404), "permission", "no_metadata"),
        ("/sap/$metadata", Answer(401), "permission", "metadata_refused"),
        ("/sap/$metadata", Answer(200, "<a"), "permission", "bad_document"),
        ("/sap/*Set", Answer(403), "sample", "no_permission"),
    ],
)
def test_verification_ends_with_the_stage_that_fails(target, path, answer, stage, code):
    target.on("/sap*", Csrf("/sap"))
    target.on("/sap/$metadata", Answer(200, V2, {"Content-Type": "application/xml"}))
    target.on(path, answer)
    assert stages(connector(target, None))[-1] == (stage, code)


def test_a_closed_address_is_not_reached(target):
    made = OdataConnector(OdataSettings.model_validate({"service_url": target.url("/sap")}), Gate())
    assert stages(made) == [("resolve", "not_allowed")]
    made.document = V2
    told = writing(made, ["Customer"])
    with made.open() as channel, pytest.raises(ConnectorError) as caught:
        channel.sending(told, Hand()).send(rows([{"Customer": "1"}]))
    assert caught.value.code == "target_not_allowed"
    assert target.opened == 0


@pytest.mark.parametrize(
    "settings",
    [
        {"service_url": "ftp://x/"},
        {"service_url": "https://u:p@x/"},
        {"service_url": "https://x/", "odata_version": "v3"},
        {"service_url": "https://x/", "sap_client": "1"},
        {"service_url": "https://x/", "csrf": {"fetch": "x"}},
        {"service_url": "https://x/", "csrf": {"fetch_path": "https://evil.example/"}},
        {"service_url": "https://x/", "csrf": {"fetch_path": "//evil.example/"}},
        {"service_url": "https://x/", "default_headers": {"X": "{{name}}"}},
        {"service_url": "https://x/", "parallel": 0},
        {"service_url": "https://x/", "unknown": 1},
    ],
)
def test_settings_that_cannot_be_are_refused(settings):
    with pytest.raises(ValidationError):
        OdataSettings.model_validate(settings)


def test_a_read_only_connection_takes_no_rows(target):
    made = connector(target)
    told = writing(made, ["Customer"])
    made.read_only = True
    with made.open() as channel, pytest.raises(ConnectorError) as caught:
        channel.sending(told, Hand())
    assert caught.value.code == "read_only_connection"


def test_a_fetched_token_that_is_worth_nothing_any_more_costs_no_row():
    with OAuthServer() as server:
        server.uses = 2
        auth = {
            "type": "oauth2-client-credentials", "token_url": server.token_url,
            "client_id": server.client_id, "client_secret": server.client_secret,
        }  # fmt: skip
        made = connector(server, path="/guarded/sap", csrf="off", auth=auth)
        assert states(push(made, 7)) == {("delivered", ""): 7}
        assert len(server.given) == 4


def test_a_token_request_that_is_refused_ends_the_push_and_no_row_fails():
    with OAuthServer() as server:
        auth = {
            "type": "oauth2-client-credentials", "token_url": server.token_url,
            "client_id": server.client_id, "client_secret": "wrong",
        }  # fmt: skip
        with pytest.raises(ConnectorError) as caught:
            push(connector(server, path="/guarded/sap", auth=auth), 3)
    assert caught.value.code == "token_request_failed"
