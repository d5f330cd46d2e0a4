"""Pushes to an OData service: what becomes of each row, one by one, by key and in batches."""

from __future__ import annotations

import json
import re
import threading

import pytest

from tests.connectors import odata_pushes
from tests.connectors.odata_documents import V2, V4
from tests.connectors.odata_pushes import SECRET, SendControl, _shown, connector, push, rows, states, writing
from tests.fakes.echo_target import Answer, Seen, busy, redirect
from tests.fakes.odata_rules import Csrf
from webapp.connectors.base import ConnectorError
from webapp.connectors.http.channel import LOCATION

target = odata_pushes.target


# --- Rows ---------------------------------------------------------------------------------------------------


def test_a_row_is_one_post_with_its_key_its_number_and_the_query_of_the_settings(target):
    result = connector(target, csrf="off", sap_client="100", language="EN", default_headers={"X-Own": "1"})
    push(result, 1)
    (one,) = target.seen
    assert (one.method, one.path) == ("POST", "/sap/OrderSet")
    assert one.query == {"sap-client": ["100"], "sap-language": ["EN"]}
    assert one.json == {"Customer": "C1", "Total": "0.25"}
    assert one.headers["idempotency-key"] == "push-1"
    assert one.headers["x-rowsmith-row"] == "1"
    assert one.headers["x-own"] == "1"
    assert one.headers["dataserviceversion"] == "2.0"


@pytest.mark.parametrize("url", ["/sap", "/sap/", "/sap/$metadata", "/sap/?sap-client=100"])
def test_the_service_is_found_with_any_notation_of_its_address(target, url):
    push(connector(target, path=url, csrf="off"), 1)
    assert target.seen[0].path == "/sap/OrderSet"


def test_keys_come_from_the_body_and_else_from_the_location(target):
    location = {"Location": "https://inside.example/sap/OrderSet('0000000008')"}
    target.on(
        "/sap/OrderSet",
        Answer(201, {"d": {"Number": "0000000007", "Placed": "/Date(0)/"}}, {"Location": "OrderSet('7')"}),
        Answer(204, b"", location),
    )
    result = connector(target, csrf="off")
    first, second = push(result, 2, capture=("Number", "Placed", LOCATION))
    assert first.keys == {
        "Number": "0000000007", "Placed": "1970-01-01T00:00:00", LOCATION: target.url("/sap/OrderSet('7')")
    }  # fmt: skip
    # The gateway calls itself by another name; the address is kept as we reach it.
    assert second.keys == {"Number": "0000000008", LOCATION: target.url("/sap/OrderSet('0000000008')")}


def test_a_value_that_does_not_fit_is_not_sent_and_the_others_are(target):
    created = connector(target, csrf="off")
    result = writing(created, ["Customer", "Total"])
    with created.open() as channel:
        ended = channel.create_sender(result, SendControl()).send(
            rows([{"Customer": "1", "Total": "1"}, {"Customer": "2", "Total": "x"}])
        )
    assert [(outcome.state, outcome.reason) for outcome in ended] == [
        ("delivered", ""),
        ("failed", "wrong_type"),
    ]
    assert ended[1].message.startswith("Total: 'x'")
    assert len(target.seen) == 1


def test_retries_wait_as_specified(target):
    target.on("/sap/OrderSet", Answer(503), busy(7), Answer(502), Answer(201))
    hand = SendControl()
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
    result = connector(target, csrf="off", retry={"retries": 1, "backoff_seconds": [0]})
    ended = push(result, 1)
    assert [(item.state, item.reason) for item in ended] == [(state, reason)]


def test_a_duplicate_of_a_row_that_may_have_arrived_is_in_doubt(target):
    taken = Answer(400, {"error": {"code": "X", "message": "Entity already exists"}})
    target.on("/sap/OrderSet", Answer(201, cut="read"), taken)
    (ended,) = push(connector(target, csrf="off"), 1)
    assert (ended.state, ended.reason, ended.attempts) == ("unknown", "unique", 2)


def test_a_refused_connection_ends_the_push_and_no_row_fails(target):
    outcome = connector(target, csrf="off", retry={"retries": 0})
    result = writing(outcome, ["Customer"])
    target.close()
    with outcome.open() as channel, pytest.raises(ConnectorError) as caught:
        channel.create_sender(result, SendControl()).send(rows([{"Customer": "1"}]))
    assert caught.value.reason == "refused"


def test_a_hand_that_says_stop_leaves_the_rest_unbegun(target):
    ended = push(connector(target, csrf="off"), 10, SendControl(stop_after=4))
    assert [item.index for item in ended] == list(range(len(ended)))
    assert len(target.effects) == len(ended) < 10


def test_the_first_failure_ends_it_where_that_is_wanted(target):
    target.on("/sap/OrderSet", Answer(201), Answer(400), Answer(201))
    ended = push(connector(target, csrf="off"), 10, stop_at_failure=True)
    assert [item.state for item in ended] == ["delivered", "failed"]


def test_cancel_cuts_what_is_under_way(target):
    arrived = threading.Event()

    def slow(seen: Seen) -> Answer:
        arrived.set()
        return Answer(201, delay=30)

    target.on("/sap/OrderSet", slow)
    outcome = connector(target, csrf="off", retry={"retries": 0})
    result = writing(outcome, ["Customer"])
    found = []
    with outcome.open() as channel:
        sending = channel.create_sender(result, SendControl())
        thread = threading.Thread(target=lambda: found.extend(sending.send(rows([{"Customer": "1"}]))))
        thread.start()
        assert arrived.wait(10)
        channel.cancel()
        thread.join(10)
    assert [item.state for item in found] == ["unknown"]


def test_no_secret_is_in_the_messages(target):
    target.on("/sap/OrderSet", Answer(400, f"wrong token {SECRET}"))
    result = connector(target, csrf="off", auth={"type": "bearer", "token": SECRET})
    result.redact = lambda text: text.replace(SECRET, "********")
    (ended,) = push(result, 1)
    assert ended.message == "wrong token ********"
    assert target.seen[0].headers["authorization"] == f"Bearer {SECRET}"


# --- Changes by key -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "entity", "method"),
    [(V2, "CustomerSet", "MERGE"), (V4, "Orders", "PATCH")],
    ids=["v2", "v4"],
)
def test_an_update_goes_to_the_row_of_the_key(target, document, entity, method):
    key, name, value = (
        ("Id", "Name", "A") if document is V2 else ("ID", "name", "64ef3aea-00cf-4d15-b9c8-7c4a59a02376")
    )
    created = connector(target, document, csrf="off")
    result = writing(created, [key, name], entity, mode="update", key_columns=(key,))
    if method == "MERGE":
        text = _shown(created, result, {key: "A", name: "new"})
        assert text.startswith("MERGE /sap/CustomerSet('A') HTTP/1.1")
        return
    with created.open() as channel:
        sending = channel.create_sender(result, SendControl())
        assert sending.is_idempotent
        target.on("/sap/Orders*", Answer(204), Answer(412))
        ended = sending.send(rows([{key: value, name: "new"}] * 2))
    assert [(outcome.state, outcome.reason) for outcome in ended] == [
        ("delivered", ""),
        ("failed", "missing_row"),
    ]
    assert (target.seen[0].path, target.seen[0].headers["if-match"]) == (f"/sap/Orders({value})", "*")
    assert target.seen[0].json == {"name": "new"}


def test_an_update_by_other_columns_than_a_key_is_rejected(target):
    outcome = connector(target)
    result = writing(outcome, ["Customer", "Total"], mode="update", key_columns=("Customer",))
    with outcome.open() as channel, pytest.raises(ConnectorError) as caught:
        channel.create_sender(result, SendControl())
    assert caught.value.reason == "unsupported"


def test_rows_are_deleted_by_key_with_an_etag_where_one_is_wanted(target):
    target.on("/sap/OrderSet*", Answer(428), Answer(204), Answer(404))
    created = connector(target, csrf="off")
    result = writing(created, ["Number"], key_columns=("Number",))
    with created.open() as channel:
        ended = channel.create_sender(result, SendControl()).delete(
            rows([{"Number": "O'N"}, {"Number": "2"}])
        )
    assert [(outcome.state, outcome.reason) for outcome in ended] == [
        ("delivered", ""),
        ("failed", "missing_row"),
    ]
    assert target.seen[0].path == "/sap/OrderSet('O''N')"
    assert [item.headers.get("if-match") for item in target.seen] == [None, "*", None]


def test_a_captured_address_of_another_host_is_not_called(target):
    created = connector(target, csrf="off")
    result = writing(created, [LOCATION], key_columns=(LOCATION,))
    with created.open() as channel:
        ended = channel.create_sender(result, SendControl()).delete(
            rows([{LOCATION: "https://evil.example/x"}, {LOCATION: target.url("/sap/OrderSet('1')")}])
        )
    assert [outcome.state for outcome in ended] == ["failed", "delivered"]
    assert [item.path for item in target.seen] == ["/sap/OrderSet('1')"]


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


# --- Batches ------------------------------------------------------------------------------------------------


def test_a_batch_has_a_changeset_a_row_and_each_row_its_own_end(target):
    target.on("/sap/$batch", lambda seen: _batch_answer(seen, [201, 400, 201]))
    result = connector(target, csrf="off", batch=True)
    ended = push(result, 3, capture=("Number",))
    assert [(item.state, item.status_code) for item in ended] == [
        ("delivered", 201),
        ("failed", 400),
        ("delivered", 201),
    ]
    assert [item.keys for item in ended] == [{"Number": "1"}, {}, {"Number": "3"}]
    assert len(target.seen) == 1
    assert target.seen[0].body.count(b"POST OrderSet HTTP/1.1") == 3


def test_rows_that_a_batch_left_undone_or_asks_for_again_are_sent_again_and_no_other(target):
    answers = [[201, 503, 201], [201, 201]]  # three of four; then the second and the fourth
    target.on("/sap/$batch", lambda seen: _batch_answer(seen, answers.pop(0)))
    hand = SendControl()
    ended = push(connector(target, csrf="off", batch=True), 4, hand)
    assert states(ended) == {("delivered", ""): 4}
    assert re.findall(rb"X-Rowsmith-Row: (\d+)", target.seen[1].body) == [b"2", b"4"]
    assert hand.waits == [1.0]


def test_a_batch_whose_answer_cannot_be_read_leaves_its_rows_in_doubt(target):
    target.on("/sap/$batch", Answer(200, "fine"))
    assert states(push(connector(target, csrf="off", batch=True), 2)) == {("unknown", "rejected"): 2}


def test_a_rejected_batch_fails_its_rows(target):
    target.on("/sap/$batch", Answer(404, "no batch here"))
    assert states(push(connector(target, csrf="off", batch=True), 2)) == {("failed", "rejected"): 2}


def test_a_batch_carries_the_token(target):
    rule = Csrf("/sap")
    target.on(
        "/sap*", lambda seen: _batch_answer(seen, [201] * 9) if rule(seen).status == 201 else rule(seen)
    )
    assert states(push(connector(target, batch=True), 2)) == {("delivered", ""): 2}
