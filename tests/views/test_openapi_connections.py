"""OpenAPI connections over REST: a document is fetched or uploaded, operations become templates, rows go there."""

from __future__ import annotations

import json

import pytest

from tests.connectors.test_openapi import V3
from tests.fakes.echo_target import Answer, EchoTarget
from tests.views.speak import faults
from tests.views.targets import connection, work  # noqa: F401

LINE = {"sku": {"type": "string"}, "quantity": {"type": "integer", "minimum": 1, "maximum": 5}}
PERSON = {"first_name": {"type": "string"}, "age": {"type": "integer", "minimum": 18, "maximum": 99}}
ORDER = {
    "type": "object",
    "required": ["email", "lines"],
    "properties": {
        "id": {"type": "integer", "readOnly": True},
        "email": {"type": "string", "format": "email"},
        "status": {"type": "string", "enum": ["new", "paid"]},
        "total": {"type": "number", "minimum": 1, "maximum": 9},
        "code": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"},
        "placed": {"type": "string", "format": "date-time"},
        "customer": {"type": "object", "properties": PERSON},
        "lines": {
            "type": "array",
            "minItems": 2,
            "maxItems": 3,
            "items": {"type": "object", "properties": LINE},
        },
    },
}
PARAMETERS = [
    {"name": "shop", "in": "path", "required": True, "schema": {"type": "string", "enum": ["a b", "c"]}},
    {"name": "X-Trace", "in": "header", "required": True, "schema": {"type": "string", "format": "uuid"}},
]
PLACE = {"parameters": PARAMETERS, "requestBody": {"content": {"application/json": {"schema": ORDER}}}}
SHOP = {
    "openapi": "3.0.3",
    "info": {"title": "Shop", "version": "1"},
    "servers": [{"url": "/v1"}],
    "paths": {"/shops/{shop}/orders": {"post": PLACE}},
}


@pytest.fixture
def target():
    with EchoTarget() as result:
        result.on("/openapi.json", Answer(200, SHOP))
        yield result


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


@pytest.fixture
def shop(edith, target):
    settings = {"document_url": target.url("/openapi.json")}
    answer = edith.post("/connections", json={"name": "Shop", "type": "openapi", "settings": settings})
    assert answer.status_code == 201, answer.json
    return answer.json


def test_the_document_is_fetched_and_its_server_verified(edith, target, shop):
    assert shop["verification"]["status"] == "verified", shop["verification"]
    assert shop["verification"]["response"]["url"] == target.url("/v1")
    metadata = edith.get(f"/connections/{shop['id']}/metadata").json
    assert [entity["name"] for entity in metadata["entities"]] == ["POST /shops/{shop}/orders"]
    assert metadata["kind"] == "openapi"


def test_an_operation_becomes_a_template_whose_rows_it_takes(edith, target, shop, work):
    expected = {"entities": ["POST /shops/{shop}/orders"], "quantity": 5}
    answer = edith.post(f"/connections/{shop['id']}/templates", json=expected)
    assert answer.status_code == 201, answer.json
    template = answer.json["templates"][0]
    assert {item["state"] for item in answer.json["report"]} == {"green"}
    body = {"connection_id": shop["id"], "target": "POST /shops/{shop}/orders", "count": 5, "seed": "s"}
    push = edith.post(f"/templates/{template['id']}/push", json=body)
    assert push.status_code == 201, push.json
    work(push.json["id"])
    assert edith.get(f"/pushes/{push.json['id']}").json["counts"]["delivered"] == 5
    calls = [item for item in target.calls() if item.method == "POST"]
    rows = edith.post(f"/templates/{template['id']}/generate", json={"count": 5, "seed": "s"}).json
    paths = [f"/v1/shops/{row['shop'].replace(' ', '%20')}/orders" for row in rows]
    assert sorted(item.path for item in calls) == sorted(paths)
    for call in calls:
        row = rows[int(call.headers["x-rowsmith-row"]) - 1]
        assert call.headers["x-trace"] == row["X-Trace"]
        assert call.json == {key: value for key, value in row.items() if key not in ("shop", "X-Trace")}
        assert "id" not in call.json
        assert call.json["status"] in ("new", "paid")
        assert 1 <= call.json["total"] <= 9
        assert 2 <= len(call.json["lines"]) <= 3
        assert 18 <= call.json["customer"]["age"] <= 99


def test_an_uploaded_document_is_used_and_nothing_is_fetched(app, cast, edith, target):
    result = connection(app, cast, "openapi", {"base_url": target.url("/v1")})
    path = f"/connections/{result}/metadata-document"
    answer = edith.put(path, data=V3.encode(), content_type="application/yaml")
    assert (answer.status_code, answer.json["entities"]) == (200, 1), answer.json
    assert edith.get(f"/connections/{result}/metadata?refresh=true").json["total"] == 1
    assert target.calls() == []
    assert edith.get(path).data == V3.encode()
    assert edith.delete(path).json["metadata_document"] is False
    assert edith.get(path).status_code == 404


@pytest.mark.parametrize(
    ("document", "expected"), [(b"", {"document": "missing"}), (b"<x/>", {"document": "bad_document"})]
)
def test_an_unreadable_document_is_rejected(app, cast, edith, target, document, expected):
    result = connection(app, cast, "openapi", {"base_url": target.url("/v1")})
    assert faults(edith.put(f"/connections/{result}/metadata-document", data=document)) == expected


def test_other_kinds_take_no_document(app, cast, edith, target):
    result = connection(app, cast, "rest", {"base_url": target.url("/v1")})
    answer = edith.put(f"/connections/{result}/metadata-document", data=json.dumps(SHOP))
    assert faults(answer) == {"type": "not_for_this_type"}


def test_an_operation_becomes_an_endpoint_that_takes_the_rows_of_its_template(edith, target, shop, work):
    expected = {"entities": ["POST /shops/{shop}/orders"], "quantity": 3}
    created = edith.post(f"/connections/{shop['id']}/templates", json=expected).json
    (endpoint,) = created["endpoints"]
    assert (endpoint["method"], endpoint["path"]) == ("POST", '/shops/{{"shop"}}/orders')
    assert endpoint["body"]["email"] == '{{"email"}}'
    assert edith.get(f"/endpoints/{endpoint['id']}").json == endpoint
    template = created["templates"][0]["id"]
    push = edith.post(f"/templates/{template}/push", json={"endpoint_id": endpoint["id"], "count": 3})
    assert push.status_code == 201, push.json
    work(push.json["id"])
    assert edith.get(f"/pushes/{push.json['id']}").json["counts"]["delivered"] == 3
    assert {call.path.rpartition("/")[2] for call in target.calls() if call.method == "POST"} == {"orders"}
    assert edith.post(f"/connections/{shop['id']}/templates", json=expected).json["endpoints"] == []
    changed = edith.patch(f"/endpoints/{endpoint['id']}", json={"name": "Orders", "parallel": 2})
    assert (changed.status_code, changed.json["parallel"], changed.json["path"]) == (200, 2, endpoint["path"])
    assert faults(edith.patch(f"/endpoints/{endpoint['id']}", json={"method": "PUT"})) == {
        "method": "not_allowed"
    }
