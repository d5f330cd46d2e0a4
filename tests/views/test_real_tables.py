"""Templates that take their rows from a connection, on their way to databases, REST and OData; and subsets."""

from __future__ import annotations

import json

import pytest

from tests.connectors.odata_documents import V2
from tests.fakes.echo_target import EchoTarget
from tests.views.speak import faults, make, refused
from tests.views.targets import connection, postgres_target, sqlite_target, work  # noqa: F401
from tests.views.test_real_data import as_csv
from tests.views.uploading import send
from webapp.connections.models import Fetched
from webapp.extensions import db, write_session
from webapp.sources.services import files

STOCK = """
CREATE TABLE countries (code VARCHAR(2) PRIMARY KEY, name VARCHAR(40));
CREATE TABLE people (
    id INTEGER PRIMARY KEY, email VARCHAR(60) NOT NULL UNIQUE, first_name VARCHAR(40), born DATE,
    country VARCHAR(2) REFERENCES countries (code), boss INTEGER REFERENCES people (id)
);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY, person INTEGER NOT NULL REFERENCES people (id), amount NUMERIC(8, 2) NOT NULL, note TEXT
);
CREATE TABLE lines (
    order_id INTEGER NOT NULL REFERENCES orders (id), no INTEGER NOT NULL, sku TEXT, PRIMARY KEY (order_id, no)
);
CREATE TABLE loose (a INTEGER, b TEXT);
INSERT INTO countries VALUES ('DE', 'Germany'), ('FR', 'France'), ('IT', 'Italy');
"""


def filled() -> str:
    """Forty people, the first without a boss; a hundred orders with two lines each."""
    people = ", ".join(
        f"({n}, 'person.{n}@corp.test', 'Name{n}', '19{50 + n}-01-02', '{('DE', 'FR')[n % 2]}', "
        f"{'NULL' if n == 1 else n // 2})"
        for n in range(1, 41)
    )
    orders = ", ".join(f"({n}, {n % 40 + 1}, {n}.50, NULL)" for n in range(1, 101))
    lines = ", ".join(f"({n}, {at}, 'S{n}')" for n in range(1, 101) for at in (1, 2))
    rows = {"people": people, "orders": orders, "lines": lines}
    return STOCK + " ".join(f"INSERT INTO {table} VALUES {values};" for table, values in rows.items())


@pytest.fixture(params=["sqlite", "postgresql"])
def stock(request, app, cast):
    if request.param == "sqlite":
        yield sqlite_target(app, cast, filled(), name="Stock")
    else:
        url = request.getfixturevalue("postgres_url")
        with postgres_target(app, cast, url, filled()) as target:
            yield target
    files.SOURCE_CACHE.clear()


@pytest.fixture
def shop_file(app, cast):
    """A file of SQLite with no rows, where others are pushed to."""
    return sqlite_target(
        app, cast, "CREATE TABLE people (id INTEGER PRIMARY KEY, email TEXT, first_name TEXT, born TEXT)"
    )


FIELDS = [
    {"name": "id", "type": "source_column"},
    {"name": "email", "type": "email", "sensitive": True},
    {"name": "first_name", "type": "first_name", "sensitive": True},
    {"name": "born", "type": "date", "masking": {"strategy": "shift", "person": "id"}},
]


def over(edith, target, fields=FIELDS, **source):
    found = {"connection_id": target.connection_id, **(source or {"table": "people"})}
    return f"/templates/{make(edith, name='People', fields=fields, source=found)['id']}"


def test_rows_of_a_table_are_in_the_order_of_its_key_and_masked(edith, stock):
    created = edith.post(f"{over(edith, stock)}/generate", json={"seed": "s"}).json
    assert [row["id"] for row in created] == list(range(1, 41))
    assert all("corp" not in row["email"] and not row["first_name"].startswith("Name") for row in created)
    assert all(row["born"] != f"19{50 + row['id']}-01-02" for row in created)
    few = over(edith, stock, table="people", where="id > 30", limit=5)
    assert [row["id"] for row in edith.post(f"{few}/generate", json={}).json] == [31, 32, 33, 34, 35]
    assert len(edith.post(f"{over(edith, stock)}/preview", json={}).json["rows"]) == 3


def test_a_query_may_read_and_nothing_else(edith, stock):
    fields = [{"name": "n", "type": "source_column"}, {"name": "amount", "type": "source_column"}]
    joined = "people JOIN orders ON person = people.id"
    query = f"SELECT country AS n, sum(amount) AS amount FROM {joined} GROUP BY 1 ORDER BY 1"
    path = over(edith, stock, fields, query=query)
    assert [row["n"] for row in edith.post(f"{path}/generate", json={}).json] == ["DE", "FR"]
    path = over(edith, stock, fields, query="DELETE FROM orders")
    assert edith.post(f"{path}/generate", json={}).status_code == 502
    assert stock.count("orders") == 100
    path = over(edith, stock, table="nowhere")
    assert refused(edith.post(f"{path}/generate", json={}), 502, "target_failed")["reason"] == "no_table"


def test_a_worker_generates_the_rows_from_the_source_as_read_at_the_request(app, edith, stock, work):
    from jobs import exports

    path = over(edith, stock)
    before = edith.post(f"{path}/generate", json={"seed": "s"}).data
    created = edith.post(f"{path}/exports", json={"seed": "s"}).json
    files.SOURCE_CACHE.clear()
    stock.execute("UPDATE people SET email = 'x' || email")
    with app.app_context():
        exports.run(created["id"])
        db.session.remove()
    export = edith.get(f"/exports/{created['id']}").json
    assert export["status"] == "completed"
    assert edith.get(f"/exports/{created['id']}/download").data == before
    with app.app_context(), write_session() as session:
        stored = session.query(Fetched).one()
        assert stored.storage_key.startswith("sources/")


def test_a_push_into_a_database_carries_masked_rows_and_its_report(edith, stock, shop_file, work):
    ask = {"connection_id": shop_file.connection_id, "target": "people", "seed": "s"}
    push = edith.post(f"{over(edith, stock)}/push", json=ask)
    assert push.status_code == 201, push.json
    work(push.json["id"])
    push = edith.get(f"/pushes/{push.json['id']}").json
    assert (push["status"], push["counts"]["delivered"]) == ("completed", 40)
    assert {column["column"]: column["survivors"] for column in push["leaks"][0]["columns"]} == {
        "email": 0,
        "first_name": 0,
        "born": 0,
    }
    arrived = shop_file.execute("SELECT id, email FROM people ORDER BY id")
    generated = edith.post(f"{over(edith, stock)}/generate", json={"seed": "s"}).json
    assert arrived == [(row["id"], row["email"]) for row in generated]


def people_of(edith, rows, fields=FIELDS[:3]):
    send(edith, "people.csv", as_csv(rows))
    return f"/templates/{make(edith, name='people', fields=fields, source={'file': 'people.csv'})['id']}"


ROWS = [{"id": n, "email": f"p.{n}@corp.test", "first_name": f"Name{n}"} for n in range(1, 201)]


@pytest.mark.parametrize("kind", ["rest", "odata"])
def test_a_push_over_http_sends_no_real_value(app, cast, edith, work, kind):
    with EchoTarget() as target:
        if kind == "rest":
            settings, where, fields = {"base_url": target.url("/api")}, "people", FIELDS[:3]
        else:
            settings, where = {"service_url": target.url("/sap"), "csrf": "off"}, "CustomerSet"
            name = {
                "name": "Name",
                "type": "username",
                "column": "email",
                "masking": {"strategy": "tokenize"},
            }
            fields = [{"name": "Id", "type": "source_column", "column": "id"}, name]
        stored = connection(app, cast, kind, settings)
        if kind == "odata":
            assert edith.put(f"/connections/{stored}/metadata-document", data=V2).status_code == 200
        ask = {"connection_id": stored, "target": where, "seed": "s"}
        push = edith.post(f"{people_of(edith, ROWS, fields)}/push", json=ask)
        assert push.status_code == 201, push.json
        work(push.json["id"])
        push = edith.get(f"/pushes/{push.json['id']}").json
        assert (push["status"], push["counts"]["delivered"]) == ("completed", 200)
        bodies = [item.json for item in target.seen if item.method == "POST"]
        assert len(bodies) == 200
        assert "corp.test" not in json.dumps(bodies)
        assert all(column["survivors"] == 0 for column in push["leaks"][0]["columns"])


def test_a_planted_survivor_stops_a_push_before_its_block_is_sent(edith, shop_file, work):
    rows = [dict(row) for row in ROWS]
    rows[150]["first_name"] = "p.151@corp.test"
    fields = [*FIELDS[:2], {"name": "first_name", "type": "source_column"}]
    ask = {"connection_id": shop_file.connection_id, "target": "people", "seed": "s"}
    push = edith.post(f"{people_of(edith, rows, fields)}/push", json=ask).json
    work(push["id"])
    push = edith.get(f"/pushes/{push['id']}").json
    assert push["status"] == "failed"
    assert push["error"]["code"] == "leak_found"
    assert push["error"]["details"]["column"] == "email"
    assert "p.151@corp.test" not in json.dumps(shop_file.execute("SELECT * FROM people"))


# --- Subsets ----------------------------------------------------------------------------------------------------


def subset(edith, target, **ask):
    answer = edith.post(f"/connections/{target.connection_id}/subsets", json={"table": "people", **ask})
    assert answer.status_code == 201, answer.json
    return answer.json


def rows_of(edith, made):
    return {
        template["name"]: edith.post(f"/templates/{template['id']}/generate", json={"seed": "s"}).json
        for template in made["templates"]
    }


def test_a_subset_follows_the_keys_both_ways_and_they_fit(edith, stock):
    result = subset(edith, stock, where="id IN (20, 21)", depth=2)
    found = rows_of(edith, result)
    assert {item["table"]: item["rows"] for item in result["report"]} == {
        name: len(rows) for name, rows in found.items()
    }
    people = {row["id"] for row in found["people"]}
    assert {20, 21, 10, 5, 2, 1} <= people
    assert people == {20, 21, 10, 5, 2, 1, 40}  # those whom they report to, and who reports to them
    assert {row["person"] for row in found["orders"]} <= people
    assert {row["order_id"] for row in found["lines"]} <= {row["id"] for row in found["orders"]}
    assert {row["country"] for row in found["people"]} <= {row["code"] for row in found["countries"]}
    assert all(row["boss"] in people for row in found["people"] if row["boss"] is not None)
    report = {item["table"]: item for item in result["report"]}
    assert {"email", "first_name"} <= set(report["people"]["sensitive"])
    order = [template["name"] for template in result["templates"]]
    assert order.index("countries") < order.index("people") < order.index("orders") < order.index("lines")


def test_children_are_only_included_on_request(edith, stock):
    assert {item["table"] for item in subset(edith, stock, limit=3, children=[])["report"]} == {
        "people",
        "countries",
    }
    result = subset(edith, stock, limit=3, children=["orders"])
    assert {item["table"] for item in result["report"]} == {"people", "countries", "orders"}
    assert [row["id"] for row in rows_of(edith, result)["people"]] == [1, 2, 3]


def test_a_subset_is_exported_as_a_whole(edith, stock, app):
    from jobs import exports

    result = subset(edith, stock, limit=5)
    export = edith.post(f"/datasets/{result['dataset']['id']}/exports", json={"format": "json", "seed": "s"})
    assert export.status_code == 201, export.json
    with app.app_context():
        exports.run(export.json["id"])
        db.session.remove()
    export = edith.get(f"/exports/{export.json['id']}").json
    assert export["status"] == "completed", export["error"]
    assert any(table["columns"] for table in export["leaks"])


def test_impossible_options_are_rejected_with_their_reason(app, cast, edith, stock):
    address = f"/connections/{stock.connection_id}/subsets"
    assert faults(edith.post(address, json={"table": "loose", "limit": 3})) == {"table": "no_primary_key"}
    assert faults(edith.post(address, json={"table": "nope"})) == {"table": "unknown_entity"}
    chain = edith.post(address, json={"table": "people", "where": "id = 40", "children": []})
    assert chain.status_code == 201
    values = ", ".join(f"({n}, 'q{n}@corp.test', {n - 1})" for n in range(101, 120))
    stock.execute("INSERT INTO people (id, email, boss) VALUES (100, 'q@corp.test', NULL)")
    stock.execute(f"INSERT INTO people (id, email, boss) VALUES {values}")
    deep = edith.post(address, json={"table": "people", "where": "id = 119", "children": []})
    assert faults(deep) == {"table": "open_ring"}
    rest = connection(app, cast, "rest", {"base_url": "http://127.0.0.1:9"})
    answer = edith.post(f"/connections/{rest}/subsets", json={"table": "a"})
    assert faults(answer) == {"connection_id": "not_for_this_type"}


def test_keys_that_are_masked_still_fit(app, cast, edith):
    script = """
    CREATE TABLE users (email VARCHAR(60) PRIMARY KEY, n INTEGER);
    CREATE TABLE logins (id INTEGER PRIMARY KEY, email VARCHAR(60) REFERENCES users (email));
    INSERT INTO users VALUES ('ann@corp.test', 1), ('bob@corp.test', 2);
    INSERT INTO logins VALUES (1, 'ann@corp.test'), (2, 'bob@corp.test'), (3, 'ann@corp.test');
    """
    target = sqlite_target(app, cast, script, name="Keys")
    result = subset(edith, target, table="users")
    found = rows_of(edith, result)
    keys = {row["email"] for row in found["users"]}
    assert len(keys) == 2
    assert {row["email"] for row in found["logins"]} == keys
    assert not keys & {"ann@corp.test", "bob@corp.test"}


def test_no_field_refers_to_rows_that_are_taken_and_not_made(edith, stock):
    real = make(
        edith, name="People", fields=FIELDS, source={"connection_id": stock.connection_id, "table": "people"}
    )
    link = {"name": "who", "type": "reference", "options": {"template_id": real["id"], "field": "id"}}
    body = {"name": "Orders", "fields": [{"name": "id", "type": "row_number"}, link]}
    expected = {"fields[1].options.template_id": "has_source"}
    assert faults(edith.post("/templates", json=body)) == expected
    assert faults(edith.post("/generate", json={**body, "count": 2})) == expected
    boss = {"name": "boss", "type": "reference", "options": {"template_id": "self", "field": "id"}}
    own = {"name": "Own", "fields": [*FIELDS, boss], "source": real["source"]}
    assert faults(edith.post("/templates", json=own)) == {
        f"fields[{len(FIELDS)}].options.template_id": "has_source"
    }
