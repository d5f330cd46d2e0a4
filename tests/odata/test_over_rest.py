"""A real OData service over REST: entity sets become linked templates at one call, and their rows arrive."""

from __future__ import annotations

import pytest

from tests.conftest import app  # noqa: F401 - not the one of the worker's tests
from tests.views.targets import connection, work  # noqa: F401


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


@pytest.fixture(params=["v4", "v2"])
def erp(app, cast, server, request):
    server.become(expire_after=20)
    return connection(app, cast, "odata", {"service_url": f"{server.url}/odata/{request.param}/shop"})


def test_entity_sets_become_templates_whose_rows_are_all_taken(edith, server, erp, work):
    names = [entity["name"] for entity in edith.get(f"/connections/{erp}/metadata").json["entities"]]
    answer = edith.post(f"/connections/{erp}/templates", json={"entities": names, "quantity": 20})
    assert answer.status_code == 201, answer.json
    result = {item["name"]: item for item in answer.json["templates"]}
    fields = {
        name: {field["name"]: field for field in template["fields"]} for name, template in result.items()
    }
    assert fields["Customers"]["ID"]["unique"]
    assert "touchedAt" not in fields["Orders"]
    assert fields["Orders"]["customer_ID"]["type"] == "reference"
    assert fields["Orders"]["customer_ID"]["options"]["template_id"] == result["Customers"]["id"]
    assert fields["Orders"]["status"]["options"]["values"] == ["open", "shipped", "cancelled"]
    members = [{"template_id": item["id"], "name": name, "count": 20} for name, item in result.items()]
    dataset = edith.post("/datasets", json={"name": "ERP", "templates": members, "seed": "s"}).json
    push = edith.post(f"/datasets/{dataset['id']}/push", json={"connection_id": erp})
    assert push.status_code == 201, push.json
    work(push.json["id"])
    push = edith.get(f"/pushes/{push.json['id']}").json
    failed = edith.get(f"/pushes/{push['id']}/rows?state=failed").json["items"]
    assert (push["counts"]["delivered"], failed) == (20 * len(names), [])
    customers = {row["ID"] for row in server.rows("Customers")}
    assert {row["customer_ID"] for row in server.rows("Orders")} <= customers | {None}
    orders = {row["ID"] for row in server.rows("Orders")}
    assert {row["parent_ID"] for row in server.rows("Items")} <= orders | {None}


def test_nested_fields_are_inserted_with_their_parent(edith, server, erp, work):
    item = [
        {"name": "position", "type": "number", "options": {"min": 1, "max": 9}},
        {"name": "product", "type": "words", "options": {"count": 2}},
    ]
    fields = [
        {"name": "number", "type": "regexp", "options": {"string": "A-[0-9]{6}"}},
        {"name": "total", "type": "number", "options": {"min": 1, "max": 900, "decimals": 2}},
        {
            "name": "Items",
            "type": "nested",
            "options": {"array": True, "count": {"min": 1, "max": 3}, "fields": item},
        },
    ]
    template = edith.post("/templates", json={"name": "Orders", "fields": fields}).json
    ask = {"connection_id": erp, "target": "Orders", "count": 30, "seed": "s"}
    dry = edith.post(f"/templates/{template['id']}/push", json={**ask, "dry_run": True}).json
    assert len(dry["requests"]) == 3
    assert dry["misfits"] == []
    push = edith.post(f"/templates/{template['id']}/push", json=ask).json
    work(push["id"])
    assert edith.get(f"/pushes/{push['id']}").json["counts"]["delivered"] == 30
    rows = edith.post(f"/templates/{template['id']}/generate", json={"count": 30, "seed": "s"}).json
    there = {entry["number"]: entry for entry in server.rows("Orders?$expand=Items")}
    for row in rows:
        stored = there[row["number"]]
        assert float(stored["total"]) == row["total"]
        result = sorted((entry["position"], entry["product"]) for entry in stored["Items"])
        assert result == sorted((entry["position"], entry["product"]) for entry in row["Items"])
