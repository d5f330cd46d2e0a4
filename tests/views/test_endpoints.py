"""Endpoints over REST: kept, changed, pushed to; credentials never come back."""

from __future__ import annotations

import pytest

from tests.fakes.echo_target import EchoTarget
from tests.views.speak import faults, make
from tests.views.targets import CUSTOMERS, connection, work  # noqa: F401


@pytest.fixture
def target():
    with EchoTarget() as result:
        yield result


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


@pytest.fixture
def template(edith):
    return make(edith, name="Customers", fields=CUSTOMERS)["id"]


def test_an_endpoint_with_its_own_address_keeps_its_secret(edith, target):
    value = {
        "name": "People", "method": "PUT", "url": target.url("/people/{{id}}"), "headers": {"X-Kind": "{{age}}"},
        "auth": {"type": "bearer", "token": "very-secret-token"},
    }  # fmt: skip
    answer = edith.post("/endpoints", json=value)
    assert answer.status_code == 201, answer.json
    result = answer.json
    assert (result["url"], result["method"], result["connection_id"]) == (value["url"], "PUT", None)
    assert result["auth"] == {"type": "bearer", "token": "********"}
    assert edith.get(f"/endpoints/{result['id']}").json == result
    assert [item["id"] for item in edith.get("/endpoints").json["items"]] == [result["id"]]
    assert edith.get("/connections").json["total"] == 0


def test_rows_go_to_an_endpoint_as_it_says(edith, target, template, work):
    value = {
        "name": "People", "method": "PUT", "url": target.url("/people/{{id}}"),
        "body": {"mail": "{{E-Mail}}"},
        "auth": {"type": "api-key", "in": "query", "name": "key", "value": "s3cret-key"},
    }  # fmt: skip
    endpoint = edith.post("/endpoints", json=value).json
    answer = edith.post(
        f"/templates/{template}/push", json={"endpoint_id": endpoint["id"], "count": 3, "seed": "s"}
    )
    assert answer.status_code == 201, answer.json
    work(answer.json["id"])
    push = edith.get(f"/pushes/{answer.json['id']}").json
    assert (push["counts"]["delivered"], push["endpoint_id"]) == (3, endpoint["id"])
    rows = edith.post(f"/templates/{template}/generate", json={"count": 3, "seed": "s"}).json
    seen = {call.path: call for call in target.calls()}
    assert {path: seen[path].json for path in seen} == {
        f"/people/{row['id']}": {"mail": row["E-Mail"]} for row in rows
    }
    assert {item.query["key"][0] for item in seen.values()} == {"s3cret-key"}


def test_an_endpoint_on_a_connection_uses_its_address_and_credentials(
    app, cast, edith, target, template, work
):
    auth = {"type": "basic", "username": "u", "password": "p"}
    result = connection(app, cast, "rest", {"base_url": target.url("/api"), "auth": auth})
    endpoint = edith.post("/endpoints", json={"name": "P", "connection_id": result, "path": "/people"}).json
    assert (endpoint["path"], endpoint["url"], endpoint["auth"]) == ("/people", None, None)
    push = edith.post(f"/templates/{template}/push", json={"endpoint_id": endpoint["id"], "count": 2}).json
    work(push["id"])
    assert {(call.path, call.headers["authorization"]) for call in target.calls()} == {
        ("/api/people", "Basic dTpw")
    }
    used = edith.delete(f"/connections/{result}")
    assert (used.status_code, used.json["error"]["code"]) == (409, "in_use")


def test_a_mask_keeps_the_secret_only_while_the_address_stays(edith, target):
    value = {"name": "P", "url": target.url("/a"), "auth": {"type": "bearer", "token": "very-secret-token"}}
    created = edith.post("/endpoints", json=value).json
    same = edith.patch(f"/endpoints/{created['id']}", json={"url": target.url("/b"), "auth": created["auth"]})
    assert (same.status_code, same.json["url"]) == (200, target.url("/b"))
    moved = edith.patch(
        f"/endpoints/{created['id']}", json={"url": "http://other.example/a", "auth": created["auth"]}
    )
    assert faults(moved) == {"auth.token": "needed_again"}


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({}, {"url": "missing"}),
        ({"url": "http://a.example/", "connection_id": "con_x"}, {"url": "missing"}),
        ({"url": "/people"}, {"url": "invalid"}),
        ({"url": "http://a.example/{{x"}, {"path": "invalid"}),
        ({"url": "http://a.example/", "headers": {"Bad Name": "x"}}, {"headers.Bad Name": "invalid"}),
        ({"url": "http://a.example/", "headers": {"Authorization": "Bearer x"}}, {"headers": "invalid"}),
        ({"url": "http://a.example/", "auth": {"type": "digest"}}, {"auth": "wrong_type"}),
        ({"url": "http://a.example/", "retry": {"retries": -1}}, {"retry.retries": "out_of_range"}),
        ({"url": "http://a.example/", "capture": {"id": "$.[["}}, {"capture.id": "invalid"}),
        ({"url": "http://a.example/", "body": {"x": "{{a | nope}}"}}, {"body": "invalid"}),
    ],
)
def test_impossible_options_are_rejected_by_name(edith, inputs, expected):
    assert faults(edith.post("/endpoints", json={"name": "P", **inputs})) == expected


def test_rows_that_are_given_arrive_in_one_call(app, edith, target, work, monkeypatch):
    endpoint = edith.post("/endpoints", json={"name": "P", "url": target.url("/in")}).json
    monkeypatch.setattr("webapp.pushes.views.exports.wait_until_finished", lambda push_id: work(push_id))
    rows = [{"id": 1, "tags": ["a", "b"], "who": {"name": "Ann"}}, {"id": 2, "tags": [], "who": None}]
    answer = edith.post("/export/rest", json={"endpoint_id": endpoint["id"], "rows": rows})
    assert answer.status_code == 201, answer.json
    assert (answer.json["status"], answer.json["counts"]["delivered"]) == ("completed", 2)
    assert sorted((call.json for call in target.calls()), key=lambda row: row["id"]) == rows


def test_errors_of_credentials_are_reported_at_the_keys_that_were_sent(edith):
    value = {"name": "P", "url": "http://a.example/", "auth": {"type": "bearer"}}
    assert faults(edith.post("/endpoints", json=value)) == {"auth.token": "missing"}


def test_errors_of_the_address_and_of_the_rest_are_reported_together(edith):
    wrong = {
        "name": "P", "url": "people", "auth": {"type": "bearer"}, "headers": {"X": "{{no"},
        "parallel": 0,
    }  # fmt: skip
    reported = faults(edith.post("/endpoints", json=wrong))
    assert set(reported) == {"url", "auth.token", "headers.X", "parallel"}
    both = {"name": "P", "url": "https://x.example", "connection_id": "con_x", "retry": {"retries": 99}}
    assert set(faults(edith.post("/endpoints", json={**both, "connection_id": None}))) == {"retry.retries"}


def test_a_rejected_change_changes_nothing(edith, target):
    created = edith.post("/endpoints", json={"name": "P", "url": target.url("/a")}).json
    one = f"/endpoints/{created['id']}"
    reported = faults(edith.patch(one, json={"url": target.url("/b"), "parallel": 0, "environment": "prod"}))
    assert set(reported) == {"parallel"}
    assert edith.get(one).json == created
