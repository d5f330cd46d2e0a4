"""Pushes to REST targets: one request per row or per batch; the ledger has the outcome of each row."""

from __future__ import annotations

import json

import pytest

from tests.fakes.echo_target import Answer, EchoTarget, busy
from tests.views.speak import faults, make
from tests.views.targets import CUSTOMERS, ORDERS, connection, work  # noqa: F401

QUICK = {"backoff_seconds": [0, 0, 0]}


@pytest.fixture
def target():
    with EchoTarget() as result:
        yield result


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


@pytest.fixture
def customers(edith):
    return f"/templates/{make(edith, name='Customers', fields=CUSTOMERS)['id']}"


@pytest.fixture
def send(app, cast, edith, target, customers, work):
    """A finished push; `settings` are those of the connection."""

    def do(settings=(), **body):
        result = connection(
            app, cast, "rest", {"base_url": target.url("/api"), "retry": QUICK, **dict(settings)}
        )
        how = {"connection_id": result, "count": 10, "seed": "s", "target": "customers", **body}
        answer = edith.post(f"{customers}/push", json=how)
        assert answer.status_code == 201, answer.json
        work(answer.json["id"])
        return edith.get(f"/pushes/{answer.json['id']}").json

    return do


def rows_of(edith, push, **query):
    return edith.get(f"/pushes/{push['id']}/rows", query_string=query).json["items"]


def test_each_row_is_one_post_with_the_row_as_its_body(edith, target, customers, send):
    push = send(count=120)
    assert (push["status"], push["counts"]["delivered"]) == ("completed", 120)
    created = edith.post(f"{customers}/generate", json={"count": 120, "seed": "s"}).json
    calls = {int(call.headers["x-rowsmith-row"]): call for call in target.calls("/api/customers")}
    assert [calls[number].json for number in sorted(calls)] == created
    assert len(target.calls()) == 120
    assert {call.method for call in calls.values()} == {"POST"}
    assert {call.headers["content-type"] for call in calls.values()} == {"application/json"}
    assert {calls[n].headers["idempotency-key"] for n in calls} == {
        f"{push['id']}-{n}" for n in range(1, 121)
    }
    assert target.most_at_once > 1


def test_error_of_a_target_commands_no_terminal_through_the_log(edith, target, send):
    target.on("/api/customers", Answer(422, "\x1b]0;owned\x07\x1b[2J no such country"))
    push = send({"parallel": 1})
    log = edith.get(f"/pushes/{push['id']}/logs").text
    assert "no such country" in log
    assert not {"\x1b", "\x07", "\x9b"} & set(log)


def test_the_log_has_the_status_of_each_row(edith, target, send):
    target.on("/api/customers", *[Answer(201)] * 3, Answer(422, {"error": "no such country"}), Answer(201))
    push = send({"parallel": 1})
    log = edith.get(f"/pushes/{push['id']}/logs").text
    assert "rows 1 to 3: 201, 4: 422, 5 to 10: 201" in log
    assert "no such country" in log
    failed = rows_of(edith, push, state="failed")
    result = [(item["row"], item["status_code"], item["code"], item["attempts"]) for item in failed]
    assert result == [(4, 422, "rejected", 1)]
    assert "no such country" in failed[0]["message"]
    assert {item["status_code"] for item in rows_of(edith, push, state="delivered")} == {201}


def test_a_row_is_tried_four_times_and_then_failed(edith, target, send):
    target.on("/api/customers", Answer(503))
    push = send(count=2)
    assert push["counts"]["failed"] == 2
    assert [
        (item["status_code"], item["code"], item["attempts"]) for item in rows_of(edith, push, state="failed")
    ] == [(503, "unavailable", 4)] * 2
    assert len(target.calls()) == 8


def test_a_row_delivered_after_a_retry_is_marked(edith, target, send):
    target.on("/api/customers", busy(0), Answer(201))
    push = send({"parallel": 1}, count=3)
    assert push["counts"]["delivered"] == 3
    assert [item["attempts"] for item in rows_of(edith, push)] == [2, 1, 1]


def test_a_row_whose_last_attempt_may_have_arrived_is_unknown(edith, target, send):
    target.on("/api/customers", Answer(201), Answer(cut="read"))
    push = send({"parallel": 1, "retry": {"retries": 1, "backoff_seconds": [0]}}, count=3)
    assert (push["counts"]["delivered"], push["counts"]["unknown"], push["counts"]["failed"]) == (1, 2, 0)
    assert {(item["code"], item["attempts"]) for item in rows_of(edith, push, state="unknown")} == {
        ("reset", 2)
    }


def test_unknown_rows_are_sent_again_under_the_key_they_had(edith, target, send, work):
    target.on("/api/customers", Answer(201), Answer(cut="read"), Answer(422), Answer(201))
    push = send({"parallel": 1, "retry": {"retries": 0}}, count=3)
    assert (push["counts"]["unknown"], push["counts"]["failed"]) == (1, 1)
    again = edith.post(f"/pushes/{push['id']}/retry", json={}).json
    work(again["id"])
    assert edith.get(f"/pushes/{push['id']}").json["counts"]["delivered"] == 3
    keys = [call.headers["idempotency-key"] for call in target.calls()][3:]
    assert keys == [f"{push['id']}-2", f"{again['id']}-3"]


def test_batch_mode_sends_one_object_with_the_rows_under_the_wrapper_key(edith, target, customers, send):
    push = send({"push_mode": "batch", "wrapper_key": "items"}, count=7)
    created = edith.post(f"{customers}/generate", json={"count": 7, "seed": "s"}).json
    assert [call.json for call in target.calls()] == [{"items": created}]
    assert push["counts"]["delivered"] == 7


def test_batches_have_the_requested_number_of_rows(edith, target, send):
    push = send({"push_mode": "batch", "wrapper_key": "items", "batch_size": 4}, count=10)
    assert [len(call.json["items"]) for call in target.calls()] == [4, 4, 2]
    assert push["counts"]["delivered"] == 10


def test_a_push_may_choose_its_own_way(target, send):
    send(count=3, push_mode="batch", wrapper_key="rows", target="other")
    assert [(call.path, list(call.json)) for call in target.calls()] == [("/api/other", ["rows"])]


def test_a_template_makes_method_path_headers_and_body_from_the_row(edith, target, customers, send):
    template = {
        "method": "PUT",
        "headers": {"X-Name": "{{firstName | upper}}"},
        "query_params": {"age": "{{age}}"},
        "body": {
            "who": {"mail": "{{E-Mail}}", "age": "{{age}}", "label": "{{firstName}} is {{age}}"},
            "n": 1,
            "all": [],
        },
    }
    send({"request_template": template}, count=2, target="people/{{E-Mail}}")
    created = edith.post(f"{customers}/generate", json={"count": 2, "seed": "s"}).json
    calls = sorted(target.calls(), key=lambda item: int(item.headers["x-rowsmith-row"]))
    for row, call in zip(created, calls, strict=True):
        assert (call.method, call.path) == ("PUT", f"/api/people/{row['E-Mail'].replace('@', '%40')}")
        assert call.headers["x-name"] == row["firstName"].upper()
        assert call.query == {"age": [str(row["age"])]}
        who = {"mail": row["E-Mail"], "age": row["age"], "label": f"{row['firstName']} is {row['age']}"}
        assert call.json == {"who": who, "n": 1, "all": []}


def test_a_dry_run_shows_the_exact_requests_and_sends_none(app, cast, edith, target, customers):
    auth = {"type": "bearer", "token": "very-secret-token"}
    result = connection(app, cast, "rest", {"base_url": target.url("/api"), "auth": auth})
    body = {"connection_id": result, "count": 10, "seed": "s", "target": "customers", "dry_run": True}
    answer = edith.post(f"{customers}/push", json=body)
    assert answer.status_code == 200, answer.json
    assert len(answer.json["requests"]) == 3
    first = answer.json["requests"][0]
    assert first.startswith(f"POST {target.url('/api/customers')}\n")
    assert "Authorization: Bearer ********" in first
    row = edith.post(f"{customers}/generate", json={"count": 1, "seed": "s"}).json[0]
    assert json.loads(first.partition("\n\n")[2]) == row
    assert target.calls() == []


def test_credentials_are_sent_and_never_shown(app, cast, edith, target, customers, work):
    target.on("/api/customers", Answer(400, "your token very-secret-token is no good"))
    auth = {"type": "bearer", "token": "very-secret-token"}
    result = connection(app, cast, "rest", {"base_url": target.url("/api"), "auth": auth})
    assert edith.get(f"/connections/{result}").json["settings"]["auth"] == {
        "type": "bearer",
        "token": "********",
    }
    push = edith.post(
        f"{customers}/push", json={"connection_id": result, "count": 1, "target": "customers"}
    ).json
    work(push["id"])
    assert {call.headers["authorization"] for call in target.calls()} == {"Bearer very-secret-token"}
    text = edith.get(f"/pushes/{push['id']}/rows").text + edith.get(f"/pushes/{push['id']}/logs").text
    assert "very-secret-token" not in text
    assert "your token ******** is no good" in text


def test_database_options_are_rejected(app, cast, edith, target, customers):
    result = connection(app, cast, "rest", {"base_url": target.url("/api")})
    body = {"connection_id": result, "count": 1, "target": "x", "create_table": True, "mode": "upsert"}
    assert faults(edith.post(f"{customers}/push", json=body)) == {
        "create_table": "not_for_this_type",
        "mode": "not_allowed",
    }
    answer = edith.post(f"{customers}/push", json={"connection_id": result, "mode": "upsert", "target": "x"})
    assert faults(answer) == {"mode": "not_allowed"}


def test_settings_of_a_push_that_do_not_fit_are_named(app, cast, edith, target, customers):
    result = connection(app, cast, "rest", {"base_url": target.url("/api")})
    body = {
        "connection_id": result,
        "count": 1,
        "target": "x",
        "retry": {"retries": 99, "nonsense": 1},
        "parallel": 0,
    }
    assert set(faults(edith.post(f"{customers}/push", json=body))) == {
        "retry.retries",
        "retry.nonsense",
        "parallel",
    }


def test_captured_values_of_responses_are_used_to_undo_the_push(edith, target, send, work):
    target.on(
        "/api/customers", *[Answer(201, headers={"Location": f"/api/customers/{n}"}) for n in (11, 12, 13)]
    )
    push = send({"parallel": 1}, count=3)
    undo = edith.post(f"/pushes/{push['id']}/undo", json={}).json
    work(undo["id"])
    assert edith.get(f"/pushes/{undo['id']}").json["counts"]["delivered"] == 3
    gone = [(call.method, call.path) for call in target.calls() if call.method == "DELETE"]
    assert sorted(gone) == [("DELETE", f"/api/customers/{n}") for n in (11, 12, 13)]


def test_a_dead_target_fails_no_row(edith, send):
    push = send({"base_url": "http://127.0.0.1:9", "parallel": 16}, count=400, target_wait_seconds=1)
    assert (push["status"], push["counts"]["failed"], push["counts"]["pending"]) == ("failed", 0, 400)
    assert push["error"]["details"]["reason"] == "unreachable"


def test_a_value_that_would_lead_upwards_is_not_sent(edith, target, send):
    push = send(
        {"request_template": {"body": {}}}, count=2, target="a/{{firstName}}", overrides={"firstName": ".."}
    )
    assert {item["code"] for item in rows_of(edith, push, state="failed")} == {"wrong_type"}
    assert target.calls() == []


def test_a_json_path_with_exponential_cost_is_rejected(edith, target):
    settings = {"base_url": target.url("/"), "capture": {"id": "$..*..*"}}
    answer = edith.post("/connections", json={"name": "x", "type": "rest", "settings": settings})
    assert faults(answer) == {"settings.capture.id": "invalid"}


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(
    ("place", "template"),
    [
        ("path", {"path": "/people/{{nope}}"}),
        ("headers.X-Id", {"headers": {"X-Id": "{{nope}}"}}),
        ("body", {"body": {"id": "{{nope.id}}"}}),
    ],
)
def test_a_template_that_names_a_missing_field_is_rejected_by_dry_run_and_push(
    app, cast, edith, target, customers, place, template, dry_run
):
    to = connection(app, cast, "rest", {"base_url": target.url("/api"), "retry": QUICK})
    body = {"connection_id": to, "count": 5, "request_template": template, "dry_run": dry_run}
    used = edith.get("/usage").json["rows"]["used"]
    answer = edith.post(f"{customers}/push", json=body)
    assert answer.status_code == 422, answer.json
    assert faults(answer) == {f"request_template.{place}": "unknown_field"}
    assert "firstName" in answer.json["error"]["details"]["fields"][0]["hint"]
    assert edith.get("/usage").json["rows"]["used"] == used
    assert target.calls() == []


def test_every_row_is_tried_although_all_are_rejected(edith, target, send):
    target.on("/api/customers", Answer(422, {"error": "no"}))
    push = send(count=300)
    assert (push["status"], push["counts"]["failed"]) == ("completed", 300)
    assert len(target.calls("/api/customers")) == 300


def test_stop_when_all_fail_ends_the_push_after_the_first_rows(edith, target, send):
    target.on("/api/customers", Answer(422, {"error": "no"}))
    push = send(count=300, on_error="stop_when_all_fail")
    assert (push["status"], push["counts"]["delivered"]) == ("failed", 0)
    assert 100 <= push["counts"]["failed"] < 200
    assert "all failed for the same reason" in push["error"]["message"]


def test_a_target_that_answers_no_request_leaves_the_rows_pending(edith, target, send):
    target.on("/api/customers", Answer(raw=b""))
    push = send({"retry": {"retries": 0}}, count=300, target_wait_seconds=1)
    assert push["status"] == "failed"
    assert push["counts"]["pending"] > 280
    assert push["counts"]["failed"] == 0
