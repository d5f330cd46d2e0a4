"""Upsert, update, canary, and the checks between the request and the first row."""

from __future__ import annotations

import pytest

from tests.views.speak import faults, make
from tests.views.targets import CUSTOMERS, postgres_target, shop, work  # noqa: F401
from webapp.pushes import responses as pushes_responses

PEOPLE = """
CREATE TABLE customers (
    id bigint PRIMARY KEY, email varchar(60) NOT NULL, first_name varchar(40), age int CHECK (age < 90), tag text
);
INSERT INTO customers SELECT n, 'old', 'old', 1, 'kept' FROM generate_series(1, 5) AS n;
"""


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


@pytest.fixture
def people(app, cast, postgres_url):
    with postgres_target(app, cast, postgres_url, PEOPLE) as target:
        yield target


@pytest.fixture
def send(edith, people):
    path = f"/templates/{make(edith, name='Customers', fields=CUSTOMERS)['id']}"

    def ask(**body):
        how = {"connection_id": people.connection_id, "count": 20, "seed": "s", **body}
        return edith.post(f"{path}/push", json=how)

    return ask


def test_an_upsert_changes_what_is_there_and_adds_the_rest(edith, send, people, work):
    push = send(mode="upsert", overrides={"age": 33})
    assert push.status_code == 201, push.json
    assert push.json["tables"][0]["key_columns"] == ["id"]
    work(push.json["id"])
    assert people.count("customers") == 20
    found = people.execute("SELECT count(*), count(tag) FROM customers WHERE email <> 'old' AND age = 33")
    assert found == [(20, 5)]


def test_an_update_adds_nothing_and_reports_missing_rows(edith, send, people, work):
    push = send(mode="update", mapping={"E-Mail": None, "age": None})
    assert push.status_code == 201, push.json
    work(push.json["id"])
    counts = edith.get(f"/pushes/{push.json['id']}").json["counts"]
    assert (counts["delivered"], counts["failed"]) == (5, 15)
    assert people.execute("SELECT count(*) FROM customers WHERE first_name <> 'old' AND email = 'old'") == [
        (5,)
    ]
    failed = edith.get(f"/pushes/{push.json['id']}/rows?state=failed").json["items"]
    assert {item["code"] for item in failed} == {"missing_row"}


def test_an_upsert_by_columns_that_are_not_a_key_is_rejected(send):
    assert faults(send(mode="upsert", key_columns=["email"])) == {"key_columns": "not_a_key"}
    assert faults(send(mode="upsert", key_columns=["emial"])) == {"key_columns[0]": "unknown_column"}


def test_a_rejected_canary_stops_the_other_rows(edith, send, people, work):
    push = send(offset=100, count=500, canary=5, overrides={"age": 120})
    assert push.status_code == 201, push.json
    work(push.json["id"])
    push = edith.get(f"/pushes/{push.json['id']}").json
    assert push["status"] == "failed"
    assert push["counts"]["failed"] + push["counts"]["delivered"] <= 5
    assert people.count("customers") == 5


def test_keys_that_are_there_already_are_found_before_they_are_sent(send, people):
    answer = send(dry_run=True)
    assert answer.status_code == 200, answer.json
    found = {(item["column"], item["row"], item["reason"]) for item in answer.json["misfits"] if item["row"]}
    assert {("id", row, "unique") for row in range(1, 6)} <= found


def test_a_table_created_after_the_last_refresh_is_found(edith, send, people):
    assert send(dry_run=True, offset=10).status_code == 200
    people.execute("CREATE TABLE later (id bigint, email text)")
    assert send(target="later", dry_run=True).status_code == 200


def test_an_error_without_a_message_is_reported_by_its_key(send):
    wrong = {"mode": "upsrt", "canary": 0, "key_colums": ["id"], "on_error": "ignore"}
    found = faults(send(**wrong))
    assert {"mode", "key_colums", "on_error"} <= found.keys()


def test_http_options_are_rejected_by_a_database(send):
    found = faults(send(push_mode="batch", wrapper_key="d"))
    assert found == {"push_mode": "not_for_this_type", "wrapper_key": "not_for_this_type"}


def test_answers_have_the_keys_that_openapi_says(edith, send, people, work):
    requests = {"connection_id": people.connection_id, "count": 3}
    push = send(offset=10).json
    work(push["id"])
    plan = edith.post(f"/templates/{push['template_id']}/push/plan", json=requests).json
    rows = edith.get(f"/pushes/{push['id']}/rows?limit=1&values=true").json
    value = edith.post(
        "/export/db",
        json={
            "connection_id": people.connection_id,
            "table": "t",
            "rows": [{"a": 1}] * 1001,
            "create_table": True,
        },
    ).json
    for model, answer in (
        (pushes_responses.PushOut, push),
        (pushes_responses.PushOut, value),
        (pushes_responses.DryRunOut, send(dry_run=True).json),
        (pushes_responses.PlanOut, plan),
        (pushes_responses.PlannedColumn, plan["tables"][0]["columns"][0]),
        (pushes_responses.RowOut, rows["items"][0]),
    ):
        model.model_validate(answer, strict=True)
        assert set(answer) == set(model.model_fields)
