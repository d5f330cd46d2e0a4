"""Pushes over REST: rows of a template are delivered, and the response reports the outcome of each row."""

from __future__ import annotations

import pytest

from tests.views.speak import faults, make, refused
from tests.views.targets import CUSTOMERS, ORDERS, shop, sqlite_target, work  # noqa: F401
from webapp.extensions import redis_client
from webapp.work.jobs_queue import queued_ids


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


@pytest.fixture
def customers(edith):
    return f"/templates/{make(edith, name='Customers', fields=CUSTOMERS)['id']}"


@pytest.fixture
def orders(edith):
    return f"/templates/{make(edith, name='Orders', fields=ORDERS)['id']}"


@pytest.fixture
def send(edith, shop):
    def ask(path: str, **body):
        how = {"connection_id": shop.connection_id, "count": 10, "seed": "s", **body}
        return edith.post(f"{path}/push", json=how)

    return ask


def rows_used(program) -> int:
    return program.get("/usage").json["rows"]["used"]


def test_a_push_is_queued_and_a_worker_is_rung_for(edith, customers, send, app):
    answer = send(customers)
    assert answer.status_code == 201, answer.json
    push = answer.json
    assert answer.headers["Location"] == f"/pushes/{push['id']}"
    assert (push["status"], push["kind"], push["attempt"], push["target"]) == (
        "queued",
        "push",
        0,
        "customers",
    )
    assert push["counts"] == {
        "total": 10,
        "delivered": 0,
        "failed": 0,
        "unknown": 0,
        "pending": 10,
        "undone": 0,
    }
    assert (push["seed"], push["template_version"]) == ("s", 1)
    assert edith.get(answer.headers["Location"]).json == push
    assert rows_used(edith) == 10
    with app.app_context():
        assert queued_ids(redis_client(), "push") == {push["id"]}


def test_the_rows_that_arrive_are_those_that_generate_gives(edith, customers, send, shop, work):
    push = send(customers, count=2_500, offset=3).json
    work(push["id"])
    push = edith.get(f"/pushes/{push['id']}").json
    assert (push["status"], push["counts"]["delivered"], push["attempt"]) == ("completed", 2_500, 1)
    created = edith.post(f"{customers}/generate", json={"count": 2_500, "offset": 3, "seed": "s"}).json
    expected = sorted((item["E-Mail"], item["firstName"], item["age"]) for item in created)
    assert sorted(shop.execute("SELECT email, first_name, age FROM customers")) == expected


def test_rows_rejected_by_the_target_are_reported_and_the_others_arrive(edith, orders, send, shop, work):
    for number in (1, 2, 3):
        shop.execute(f"INSERT INTO customers (id, email) VALUES ({number}, 'c{number}')")
    push = send(orders, count=50).json
    work(push["id"])
    push = edith.get(f"/pushes/{push['id']}").json
    created = edith.post(f"{orders}/generate", json={"count": 50, "seed": "s"}).json
    bad = [place for place, item in enumerate(created, 1) if item["customer_id"] > 3]
    assert push["status"] == "completed"
    assert push["counts"]["failed"] == len(bad) > 0
    assert shop.count("orders") == 50 - len(bad)
    result = edith.get(f"/pushes/{push['id']}/rows?state=failed&limit=100").json
    assert [item["row"] for item in result["items"]] == bad
    assert result["total"] == len(bad)
    assert {item["code"] for item in result["items"]} == {"foreign_key"}
    assert all(item["message"] for item in result["items"])


def test_rows_are_listed_page_by_page(edith, orders, send, work):
    push = send(orders, count=30).json
    work(push["id"])
    found, cursor = [], ""
    while cursor is not None:
        page = edith.get(f"/pushes/{push['id']}/rows?limit=7{cursor and f'&cursor={cursor}'}").json
        found += [item["row"] for item in page["items"]]
        cursor = page["next_cursor"]
    assert found == list(range(1, 31))


def test_a_rows_values_are_generated_again_on_demand_with_sensitive_ones_redacted(edith, shop, work):
    fields = [*ORDERS[:2], {**ORDERS[2], "sensitive": True}]
    path = f"/templates/{make(edith, fields=fields)['id']}"
    body = {"connection_id": shop.connection_id, "count": 3, "seed": "s", "target": "orders"}
    push = edith.post(f"{path}/push", json=body).json
    work(push["id"])
    created = edith.post(f"{path}/generate", json={"count": 3, "seed": "s"}).json
    shown = edith.get(f"/pushes/{push['id']}/rows?values=true").json["items"]
    assert [item["values"]["customer_id"] for item in shown] == [item["customer_id"] for item in created]
    assert {item["values"]["amount"] for item in shown} == {"********"}


def test_a_table_is_created_on_request(edith, customers, send, shop, work):
    assert faults(send(customers, target="people")) == {"target": "unknown_table"}
    push = send(customers, target="people", create_table=True).json
    work(push["id"])
    push = edith.get(f"/pushes/{push['id']}").json
    assert (push["status"], push["error"]) == ("completed", None)
    assert shop.execute('SELECT min(id), max(id), count("E-Mail") FROM people') == [(1, 10, 10)]


def test_a_table_that_a_push_creates_is_in_the_list_of_tables(edith, customers, send, shop, work):
    listed = f"/connections/{shop.connection_id}/metadata"
    assert "people" not in [entity["name"] for entity in edith.get(listed).json["entities"]]
    work(send(customers, target="people", create_table=True).json["id"])
    assert "people" in [entity["name"] for entity in edith.get(listed).json["entities"]]


def test_a_formula_fills_a_column(edith, customers, send, shop, work):
    mapping = {"firstName": None}
    push = send(customers, mapping=mapping, computed={"first_name": "upper(firstName)"})
    assert push.status_code == 201, push.json
    work(push.json["id"])
    names = [item for (item,) in shop.execute("SELECT first_name FROM customers")]
    assert names == [name.upper() for name in names] != [name.lower() for name in names]


# --- Before anything is sent --------------------------------------------------------------------------------------


def test_a_dry_run_shows_three_statements_and_sends_and_spends_nothing(edith, customers, send, shop):
    answer = send(customers, dry_run=True)
    assert answer.status_code == 200, answer.json
    assert len(answer.json["statements"]) == 3
    assert all(
        statement.startswith("INSERT INTO") and "customers" in statement
        for statement in answer.json["statements"]
    )
    assert (answer.json["misfits"], answer.json["checked_rows"]) == ([], 10)
    assert shop.count("customers") == 0
    assert edith.get("/pushes").json["total"] == 0
    assert rows_used(edith) == 0


def test_a_dry_run_finds_keys_that_are_not_in_the_target(orders, send, shop):
    shop.execute("INSERT INTO customers (id, email) VALUES (1, 'one')")
    found = send(orders, dry_run=True, count=40).json["misfits"]
    assert {(item["column"], item["reason"]) for item in found} == {("customer_id", "foreign_key")}
    assert all(item["row"] and item["value"] != 1 for item in found)


def test_the_plan_shows_the_source_of_each_column(edith, customers, shop):
    answer = edith.post(f"{customers}/push/plan", json={"connection_id": shop.connection_id})
    assert answer.status_code == 200, answer.json
    columns = {column["column"]: column for column in answer.json["tables"][0]["columns"]}
    assert {name: column["field"] for name, column in columns.items()} == {
        "id": columns["id"]["field"], "email": "E-Mail", "first_name": "firstName", "age": "age",
    }  # fmt: skip
    assert (columns["email"]["how"], columns["age"]["how"]) == ("alike", "name")
    assert answer.json["tables"][0]["faults"] == []


def test_every_error_of_a_mapping_is_reported_together(customers, send):
    mapping = {"fistName": "first_name", "age": "agee", "E-Mail": None}
    found = faults(send(customers, mapping=mapping))
    assert found == {
        "mapping.fistName": "unknown_field",
        "mapping.age": "unknown_column",
        "mapping": "missing_column",
    }


def test_a_read_only_connection_takes_no_push(app, cast, edith, customers):
    target = sqlite_target(app, cast, read_only=True)
    body = {"connection_id": target.connection_id}
    refused(edith.post(f"{customers}/push", json=body), 403, "read_only_connection")


def test_production_has_to_be_named(app, cast, edith, customers):
    target = sqlite_target(app, cast, environment="prod", name="Live shop")
    body = {"connection_id": target.connection_id, "count": 3}
    answer = edith.post(f"{customers}/push", json=body)
    assert faults(answer) == {"confirm": "needs_confirmation"}
    assert "Live shop" in answer.json["error"]["details"]["fields"][0]["hint"]
    assert edith.post(f"{customers}/push", json={**body, "confirm": "Live shop"}).status_code == 201


def test_statements_are_for_admins(api, cast, customers, send, shop, work):
    sql = {"before_sql": "INSERT INTO customers (id, email) VALUES (500, 'before')"}
    assert refused(send(customers, **sql), 403, "forbidden")["needs"] == "admin"
    body = {"connection_id": shop.connection_id, "count": 2, **sql}
    push = api(cast.adam).post(f"{customers}/push", json=body)
    assert push.status_code == 201, push.json
    work(push.json["id"])
    assert shop.count("customers") == 3


def test_rows_go_to_a_connection_or_to_an_endpoint(edith, customers, shop):
    both = {"endpoint_id": "end_1", "connection_id": shop.connection_id}
    assert faults(edith.post(f"{customers}/push", json=both)) == {"connection_id": "missing"}
    refused(edith.post(f"{customers}/push", json={"endpoint_id": "end_1"}), 404, "not_found")


def test_the_same_idempotency_key_makes_one_push(edith, customers, shop):
    body = {"connection_id": shop.connection_id, "count": 5}
    how = {"json": body, "headers": {"Idempotency-Key": "k"}}
    first, second = edith.post(f"{customers}/push", **how), edith.post(f"{customers}/push", **how)
    assert second.json == first.json
    assert edith.get("/pushes").json["total"] == 1
