"""A dataset as one push: parents first, keys that the target makes go to the children, rings are closed afterwards."""

from __future__ import annotations

import pytest

from jobs import exports
from tests.views.speak import faults, make
from tests.views.targets import postgres_target, shop, work  # noqa: F401

# The target counts every key itself, so that no row can bring one.
MADE_THERE = """
CREATE TABLE customers (
    id bigint GENERATED ALWAYS AS IDENTITY (START WITH 5000) PRIMARY KEY, email text NOT NULL, best_order bigint
);
CREATE TABLE orders (
    id bigint GENERATED ALWAYS AS IDENTITY (START WITH 90000) PRIMARY KEY,
    customer_id bigint NOT NULL REFERENCES customers (id), number text NOT NULL, follows bigint REFERENCES orders (id)
);
ALTER TABLE customers ADD FOREIGN KEY (best_order) REFERENCES orders (id);
"""


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


@pytest.fixture
def templates(edith):
    """Customers, and their orders, which follow one another."""
    customers = [{"name": "id", "type": "row_number"}, {"name": "email", "type": "email"}]
    parent = make(edith, name="Customers", quantity=40, fields=customers)["id"]
    orders = [
        {"name": "id", "type": "row_number"},
        {
            "name": "customer_id",
            "type": "reference",
            "options": {"template_id": parent, "field": "id", "cardinality": {"min": 1, "max": 4}},
        },
        {"name": "number", "type": "uuid"},
        {
            "name": "mail",
            "type": "reference",
            "options": {"template_id": parent, "field": "email"},
            "hidden": True,
        },
        {
            "name": "follows",
            "type": "reference",
            "group": "before",
            "options": {"template_id": "self", "field": "id"},
        },
    ]
    return parent, make(edith, name="Orders", fields=orders)["id"]


def dataset(edith, *templates):
    body = {"name": "Shop", "templates": [{"template_id": template} for template in templates], "seed": "s"}
    answer = edith.post("/datasets", json=body)
    assert answer.status_code == 201, answer.json
    return f"/datasets/{answer.json['id']}"


def test_children_get_the_keys_that_the_target_made(app, cast, edith, templates, postgres_url, work):
    path = dataset(edith, *reversed(templates))
    with postgres_target(app, cast, postgres_url, MADE_THERE) as target:
        answer = edith.post(f"{path}/push", json={"connection_id": target.connection_id})
        assert answer.status_code == 201, answer.json
        push = answer.json
        assert [table["target"] for table in push["tables"]] == ["customers", "orders"]
        assert push["tables"][1]["from_parent"] == {"customer_id": 0, "follows": 1}
        work(push["id"])
        push = edith.get(f"/pushes/{push['id']}").json
        assert (push["status"], push["error"], push["counts"]["failed"]) == ("completed", None, 0)
        created = edith.post(
            f"/templates/{templates[1]}/generate", json={"seed": "s", "count": push["counts"]["total"] - 40}
        ).json
        parents = edith.post(f"/templates/{templates[0]}/generate", json={"seed": "s", "count": 40}).json
        assert len(created) == target.count("orders") == push["counts"]["total"] - 40
        emails = {parent["id"]: parent["email"] for parent in parents}
        numbers = {item["id"]: item["number"] for item in created}
        there = target.execute(
            "SELECT o.number, c.email, b.number FROM orders o JOIN customers c ON c.id = o.customer_id "
            "LEFT JOIN orders b ON b.id = o.follows"
        )
        assert {(item[0], item[1], item[2]) for item in there} == {
            (item["number"], emails[item["customer_id"]], numbers.get(item["follows"])) for item in created
        }
        work(edith.post(f"/pushes/{push['id']}/undo", json={}).json["id"])
        assert target.count("orders") == target.count("customers") == 0


def test_a_ring_is_closed_after_its_rows_are_there(app, cast, edith, postgres_url, work):
    ids = [{"name": "id", "type": "row_number"}, {"name": "email", "type": "email"}]
    customers = make(edith, name="Customers", quantity=15, fields=ids)["id"]
    orders = [
        {"name": "id", "type": "row_number"},
        {"name": "number", "type": "uuid"},
        {"name": "customer_id", "type": "reference", "options": {"template_id": customers, "field": "id"}},
    ]
    created = make(edith, name="Orders", quantity=60, fields=orders)["id"]
    best = {"name": "best_order", "type": "reference", "options": {"template_id": created, "field": "id"}}
    changed = edith.patch(f"/templates/{customers}", json={"fields": [*ids, best]})
    assert changed.status_code == 200, changed.json
    path = dataset(edith, customers, created)
    with postgres_target(app, cast, postgres_url, MADE_THERE) as target:
        answer = edith.post(f"{path}/push", json={"connection_id": target.connection_id})
        assert answer.status_code == 201, answer.json
        work(answer.json["id"])
        push = edith.get(answer.headers["Location"]).json
        assert (push["status"], push["error"], push["counts"]["delivered"]) == ("completed", None, 75)
        assert target.execute("SELECT count(*) FROM customers WHERE best_order IS NULL") == [(0,)]


def test_a_table_may_be_left_out_and_another_named(edith, templates, shop, work):
    path = dataset(edith, *templates)
    shop.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, email TEXT)")
    body = {"connection_id": shop.connection_id, "targets": {"Customers": "people", "Orders": None}}
    push = edith.post(f"{path}/push", json=body)
    assert push.status_code == 201, push.json
    work(push.json["id"])
    assert (shop.count("people"), shop.count("orders"), push.json["counts"]["total"]) == (40, 0, 40)


def test_missing_tables_are_reported_together(edith, templates, shop):
    path = dataset(edith, *templates)
    wrong = {"Customers": "custommers", "Order": "orders", "Orders": "x"}
    answer = edith.post(f"{path}/push", json={"connection_id": shop.connection_id, "targets": wrong})
    assert faults(answer) == dict.fromkeys((f"targets.{name}" for name in wrong), "unknown_table")
    del wrong["Order"]
    answer = edith.post(f"{path}/push", json={"connection_id": shop.connection_id, "targets": wrong})
    assert faults(answer) == {"targets.Customers": "unknown_table", "targets.Orders": "unknown_table"}
    hints = [field["hint"] for field in answer.json["error"]["details"]["fields"]]
    assert hints[0] == "Did you mean `customers`?"


def test_a_dry_run_of_a_dataset_shows_each_table(edith, templates, shop):
    path = dataset(edith, *templates)
    shop.execute("ALTER TABLE orders ADD COLUMN number TEXT")
    body = {
        "connection_id": shop.connection_id,
        "dry_run": True,
        "computed": {"Orders": {"amount": "id + 1"}},
    }
    answer = edith.post(f"{path}/push", json=body)
    assert answer.status_code == 200, answer.json
    assert [(table["target"], len(table["statements"])) for table in answer.json["tables"]] == [
        ("customers", 3),
        ("orders", 3),
    ]
    assert shop.count("customers") == 0


FEW = """
CREATE TABLE statuses (id bigint PRIMARY KEY, name text NOT NULL UNIQUE);
CREATE TABLE orders (id bigint PRIMARY KEY, status_id bigint NOT NULL REFERENCES statuses (id));
"""


def test_a_table_gets_as_many_rows_as_its_values_allow(app, cast, edith, postgres_url, work):
    names = {
        "name": "name",
        "type": "custom_list",
        "options": {"values": ["new", "paid", "sent"]},
        "unique": True,
    }
    statuses = make(edith, name="Statuses", fields=[{"name": "id", "type": "row_number"}, names])["id"]
    reference = {"template_id": statuses, "field": "id", "distribution": "uniform"}
    orders = make(
        edith,
        name="Orders",
        fields=[
            {"name": "id", "type": "row_number"},
            {"name": "status_id", "type": "reference", "options": reference},
        ],
    )["id"]
    tables = [{"template_id": statuses, "count": 1000}, {"template_id": orders, "count": 50}]
    created = edith.post("/datasets", json={"name": "Few", "templates": tables, "seed": "s"}).json
    with postgres_target(app, cast, postgres_url, FEW) as target:
        plan = edith.post(
            f"/datasets/{created['id']}/push/plan", json={"connection_id": target.connection_id}
        ).json
        note = '"name" must be unique: 1,000 values were requested and only 3 exist.'
        assert [(table["count"], table["note"]) for table in plan["tables"]] == [(3, note), (50, "")]
        push = edith.post(
            f"/datasets/{created['id']}/push", json={"connection_id": target.connection_id}
        ).json
        assert [(table["count"], table["note"]) for table in push["tables"]] == [(3, note), (50, "")]
        work(push["id"])
        assert edith.get(f"/pushes/{push['id']}").json["counts"]["delivered"] == 53
        assert target.execute("SELECT count(*) FROM orders JOIN statuses ON statuses.id = status_id") == [
            (50,)
        ]


def test_a_file_of_a_dataset_has_as_many_rows_as_values_allow(app, edith):
    names = {
        "name": "name",
        "type": "custom_list",
        "options": {"values": ["new", "paid", "sent"]},
        "unique": True,
    }
    statuses = make(edith, name="Statuses", fields=[names])["id"]
    body = {"name": "Few", "templates": [{"template_id": statuses, "count": 1000}], "seed": "s"}
    path = f"/datasets/{edith.post('/datasets', json=body).json['id']}"
    export = edith.post(f"{path}/exports", json={"format": "csv"}).json
    assert [(table["rows"], table["note"]) for table in export["pins"]["tables"]] == [
        (3, '"name" must be unique: 1,000 values were requested and only 3 exist.')
    ]
    with app.app_context():
        exports.run(export["id"])
    assert edith.get(f"/exports/{export['id']}").json["status"] == "completed"
