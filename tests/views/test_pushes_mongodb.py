"""Pushes into MongoDB: what is nested in the template is nested in the documents."""

from __future__ import annotations

import datetime as dt

import pytest
from bson import Decimal128, Int64, ObjectId

from tests.connectors.kind_mongodb import WRITER, MongodbKind
from tests.views.speak import make
from tests.views.targets import connection, work  # noqa: F401
from webapp import limits

ADDRESS = [
    {"name": "city", "type": "city"},
    {"name": "since", "type": "date", "options": {"min": "2020-01-01", "max": "2020-12-31"}},
    {"name": "floor", "type": "number", "options": {"min": 1, "max": 9}},
]
LINES = [
    {"name": "sku", "type": "number", "options": {"min": 1, "max": 99}},
    {"name": "price", "type": "number", "options": {"min": 1, "max": 50, "decimals": 2}},
]
FIELDS = [
    {"name": "name", "type": "first_name"},
    {"name": "address", "type": "nested", "options": {"fields": ADDRESS}},
    {
        "name": "lines",
        "type": "nested",
        "options": {"fields": LINES, "array": True, "count": {"min": 1, "max": 3}},
    },
]


@pytest.fixture
def mongo(tmp_path):
    result = MongodbKind(tmp_path)
    result.start()
    try:
        yield result
    finally:
        result.stop()


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


@pytest.fixture
def place(app, cast, mongo):
    settings = {
        "host": "127.0.0.1", "port": mongo.server.port, "database": "shop", "username": WRITER[0],
        "password": WRITER[1], "options": {"authMechanism": "PLAIN"},
    }  # fmt: skip
    return connection(app, cast, "mongodb", settings)


@pytest.fixture
def send(edith, place, work):
    template = make(edith, name="Customers", fields=FIELDS)["id"]

    def ask(**body):
        how = {
            "connection_id": place,
            "count": 5,
            "seed": "s",
            "target": "customers",
            "create_table": True,
            **body,
        }
        answer = edith.post(f"/templates/{template}/push", json=how)
        assert answer.status_code in (200, 201), answer.json
        if not body.get("dry_run"):
            work(answer.json["id"])
        return answer.json

    ask.template = template
    return ask


def test_objects_and_arrays_arrive_as_documents_of_the_types_that_mongodb_has(edith, send, mongo):
    push = send()
    result = edith.get(f"/pushes/{push['id']}").json
    assert (result["status"], result["counts"]["delivered"]) == ("completed", 5), result
    created = edith.post(f"/templates/{send.template}/generate", json={"count": 5, "seed": "s"}).json
    found = mongo.documents("customers")
    assert {type(item["_id"]) for item in found} == {ObjectId}
    for item, expected in zip(found, created, strict=True):
        assert item["name"] == expected["name"]
        assert item["address"] == {
            "city": expected["address"]["city"],
            "since": dt.datetime.combine(
                dt.date.fromisoformat(expected["address"]["since"]), dt.time(), dt.UTC
            ),
            "floor": expected["address"]["floor"],
        }
        assert type(item["address"]["floor"]) is Int64
        prices = [str(line["price"]) for line in expected["lines"]]
        assert [float(str(line["price"])) for line in item["lines"]] == [float(price) for price in prices]
        assert {type(line["price"]) for line in item["lines"]} == {Decimal128}


def test_a_member_that_is_mapped_by_itself_goes_to_its_own_key(send, mongo):
    send(mapping={"address.city": "town"})
    assert {frozenset(document) for document in mongo.documents("customers")} == {
        frozenset({"_id", "name", "lines", "town"})
    }
    assert all(isinstance(document["town"], str) for document in mongo.documents("customers"))


def test_a_dry_run_shows_nested_documents_and_what_will_not_fit(send, mongo):
    result = send(dry_run=True)
    assert result["misfits"] == []
    assert 'db.createCollection("customers")' in result["statements"][0]
    assert '"address": {"city": ' in result["statements"][1]
    rule = {"address": {"bsonType": "string"}, "name": {"bsonType": "string", "maxLength": 1}}
    create = {"create": "strict", "validator": {"$jsonSchema": {"properties": rule}}, "$db": "shop"}
    mongo.server._answer(create, [WRITER[0]])
    result = send(dry_run=True, target="strict")
    assert {(item["column"], item["reason"]) for item in result["misfits"]} >= {("name", "too_long")}


def test_rejected_rows_are_shown_with_their_nested_values(edith, send, mongo):
    create = {
        "create": "strict",
        "validator": {"$jsonSchema": {"properties": {"name": {"bsonType": "string", "maxLength": 3}}}},
        "$db": "shop",
    }
    mongo.server._answer(create, [WRITER[0]])
    push = send(target="strict", count=20)
    bad = edith.get(f"/pushes/{push['id']}/rows?state=failed&values=true").json["items"]
    assert bad
    assert isinstance(bad[0]["values"]["address"]["city"], str), bad[0]


def test_objects_of_rows_that_are_given_arrive_as_they_were(edith, place, work, mongo, monkeypatch):
    monkeypatch.setattr(limits, "EXPORT_DB_WAIT_SECONDS", 0.01)
    rows = [
        {"_id": "a", "at": {"city": "Ulm"}, "tags": [{"t": 1}]},
        {"_id": "b", "at": {"no": 5.5}, "tags": None},
    ]
    with mongo.connector().open() as session:
        session.create("given", [], ())
    answer = edith.post("/export/db", json={"connection_id": place, "table": "given", "rows": rows})
    assert answer.status_code in (200, 201, 202), answer.json
    if not mongo.documents("given"):
        work(answer.json["id"])
    assert mongo.documents("given") == rows
