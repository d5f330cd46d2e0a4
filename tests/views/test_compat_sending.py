"""The wire of the hosted service's clients: connections with test and tables, endpoints, and both exports."""

from __future__ import annotations

import pytest

from tests.cast import Program
from tests.compat.conftest import worker  # noqa: F401
from tests.fakes.echo_target import EchoTarget
from tests.views.targets import shop, sqlite_target  # noqa: F401
from webapp.compat.views import sending
from webapp.extensions import db


@pytest.fixture
def client(app):
    return lambda person: Program(app, "", **{"X-API-Key": person.key, "Content-Type": "application/json"})


@pytest.fixture
def dm(client, cast):
    return client(cast.edith)


def made(answer):
    assert answer.status_code in (200, 201), answer.text
    return answer.json


def refused(answer, status: int, code: str) -> dict:
    assert (answer.status_code, answer.json["error"]["code"]) == (status, code), answer.text
    assert answer.json["message"] == answer.json["error"]["message"]
    return answer.json["error"]["details"]


def sent_by_the_client(cast, **more):
    return {
        "name": "Shop", "type": "sqlite", "connectionString": "sqlite:///shop.db", "createdBy": "somebody",
        "projectId": cast.main, "teamId": cast.blue, **more,
    }  # fmt: skip


# --- Connections and endpoints ----------------------------------------------------------------------------------


def test_a_connection_goes_through_its_life(dm, cast):
    connection = made(dm.post("/compat/connections", json=sent_by_the_client(cast, readOnly=True)))
    assert (connection["readOnly"], connection["type"]) == (True, "sqlite")
    assert connection["createdBy"] == cast.edith.user_id
    assert not [key for key in connection if "_" in key]
    one = f"/compat/connections/{connection['id']}"
    assert [each["id"] for each in made(dm.get("/compat/connections"))] == [connection["id"]]
    changed = made(dm.open("PUT", one, json=sent_by_the_client(cast, name="Other", readOnly=False)))
    assert (changed["name"], changed["readOnly"]) == ("Other", False)
    details = refused(
        dm.open("PUT", one, json=sent_by_the_client(cast, type="mysql")), 422, "validation_error"
    )
    assert details["fields"][0]["path"] == "type"
    assert list(made(dm.open("DELETE", one))) == ["message"]
    refused(dm.get(one), 404, "not_found")


def test_a_password_in_a_connection_string_never_comes_back_and_is_kept(dm, cast, app):
    from webapp.connections.models import Secret
    from webapp.connections.services import secrets

    string = "postgresql://me:canary-of-compat@127.0.0.1:1/none"
    sent = sent_by_the_client(cast, type="postgresql", connectionString=string)
    answer = dm.post("/compat/connections", json=sent)
    connection = made(answer)
    assert "canary-of-compat" not in answer.text
    assert connection["connectionString"] == "postgresql://me:********@127.0.0.1:1/none"
    again = {**sent, "connectionString": connection["connectionString"]}
    made(dm.open("PUT", f"/compat/connections/{connection['id']}", json=again))
    with app.app_context():
        stored = [secrets.decrypt(secret) for secret in db.session.query(Secret)]
        db.session.remove()
    assert stored == [string]


def test_a_connection_is_tried_before_it_is_kept(dm, api, cast):
    assert made(dm.post("/compat/connections/test", json={"type": "sqlite", "connectionString": "a.db"}))[
        "success"
    ]
    sent = {"type": "postgresql", "connectionString": "postgresql://me:canary-of-compat@127.0.0.1:1/none"}
    answer = dm.post("/compat/connections/test", json=sent)
    assert refused(answer, 502, "target_failed")["stages"][-1]["ok"] is False
    assert "canary-of-compat" not in answer.text
    assert api(cast.edith).get("/connections").json["total"] == 0


def test_tables_are_returned_in_the_compatible_format(dm, shop):
    for path in (
        "/compat/connections/tables",
        f"/compat/connections/tables?connectionId={shop.connection_id}",
    ):
        found = {item["table_name"]: item for item in made(dm.get(path))}
        assert set(found) == {"customers", "orders"}
        assert {"column_name": "email", "data_type": "VARCHAR(60)"} in found["customers"]["columns"]
        assert found["customers"]["dependencies"] == [
            {"dependent_table": "orders", "dependent_column": "customer_id", "referenced_column": "id"}
        ]


def test_an_endpoint_goes_through_its_life(dm, cast):
    sent = {
        "name": "E", "method": "POST", "url": "http://127.0.0.1:9/rows", "headers": {"X-A": "b"},
        "queryParams": {"q": "1"}, "createdBy": "u", "projectId": cast.main, "teamId": cast.blue,
        "endpointFolderId": None,
    }  # fmt: skip
    endpoint = made(dm.post("/compat/endpoints", json=sent))
    assert (endpoint["url"], endpoint["queryParams"], endpoint["headers"]) == (
        sent["url"],
        {"q": "1"},
        {"X-A": "b"},
    )
    one = f"/compat/endpoints/{endpoint['id']}"
    assert made(dm.open("PUT", one, json={**sent, "method": "PUT"}))["method"] == "PUT"
    assert [each["id"] for each in made(dm.get("/compat/endpoints"))] == [endpoint["id"]]
    assert made(dm.get(one))["name"] == "E"
    assert list(made(dm.open("DELETE", one))) == ["message"]


# --- Exports ----------------------------------------------------------------------------------------------------


def test_a_plain_insert_becomes_a_push_and_answers_as_a_driver(dm, shop, worker):
    query = (
        "INSERT INTO customers (email, first_name, age) VALUES ('a@example.org', 'O''Neil; DROP TABLE x', 3), "
        "('b@example.org', NULL, 4);"
    )
    answer = made(dm.post("/compat/export/db", json={"connectionId": shop.connection_id, "query": query}))
    assert (answer["command"], answer["rowCount"], answer["rows"]) == ("INSERT", 2, [])
    assert shop.execute("SELECT email, first_name, age FROM customers ORDER BY age") == [
        ("a@example.org", "O'Neil; DROP TABLE x", 3), ("b@example.org", None, 4),
    ]  # fmt: skip
    assert dm.get(f"/pushes/{answer['pushId']}").json["counts"]["delivered"] == 2


def test_an_insert_that_names_the_key_writes_it(dm, shop, worker):
    query = "INSERT INTO customers (id, email) VALUES (41, 'a@example.org')"
    made(dm.post("/compat/export/db", json={"connectionId": shop.connection_id, "query": query}))
    assert shop.execute("SELECT id, email FROM customers") == [(41, "a@example.org")]


def test_rows_go_into_a_table_that_is_named(dm, shop, worker):
    sent = {
        "connectionId": shop.connection_id,
        "table": "customers",
        "data": [{"email": "a@example.org", "age": 1}],
    }
    assert made(dm.post("/compat/export/db", json=sent))["rowCount"] == 1
    assert shop.count("customers") == 1


def test_rejected_rows_are_a_failure(dm, shop, worker):
    query = "INSERT INTO customers (id, email) VALUES (1, 'a@example.org'), (1, 'b@example.org')"
    answer = dm.post("/compat/export/db", json={"connectionId": shop.connection_id, "query": query})
    details = refused(answer, 502, "target_failed")
    assert details["counts"]["failed"] >= 1
    assert details["rows"][0]["message"]


def test_a_query_answers_its_rows_and_may_not_write(dm, shop):
    shop.execute("INSERT INTO customers (email, age) VALUES ('a@example.org', 7)")
    ask = {"connectionId": shop.connection_id, "query": "SELECT email, age FROM customers"}
    answer = made(dm.post("/compat/export/db", json=ask))
    assert (answer["rowCount"], answer["rows"]) == (1, [{"email": "a@example.org", "age": 7}])
    sly = "WITH x AS (SELECT 1) DELETE FROM customers"
    assert dm.post("/compat/export/db", json={**ask, "query": sly}).status_code == 502
    assert shop.count("customers") == 1


def test_other_statements_are_for_admins(dm, client, cast, shop):
    ask = {"connectionId": shop.connection_id, "query": "DELETE FROM customers"}
    shop.execute("INSERT INTO customers (email) VALUES ('a@example.org')")
    assert refused(dm.post("/compat/export/db", json=ask), 403, "forbidden")["needs"] == "admin"
    assert shop.count("customers") == 1
    answer = made(client(cast.adam).post("/compat/export/db", json=ask))
    assert (answer["command"], answer["rowCount"]) == ("DELETE", None)
    assert shop.count("customers") == 0
    refused(client(cast.mallory).post("/compat/export/db", json=ask), 404, "not_found")


def test_production_and_read_only_connections_are_guarded_here_too(app, client, cast):
    admin, query = client(cast.adam), "DELETE FROM customers"
    prod = sqlite_target(app, cast, environment="prod")
    ask = {"connectionId": prod.connection_id, "query": query}
    details = refused(admin.post("/compat/export/db", json=ask), 422, "validation_error")
    assert details["fields"][0]["path"] == "confirm"
    made(admin.post("/compat/export/db", json={**ask, "confirm": "Shop"}))
    fixed = sqlite_target(app, cast, read_only=True)
    for statement in (query, "INSERT INTO customers (email) VALUES ('a')"):
        ask = {"connectionId": fixed.connection_id, "query": statement}
        refused(admin.post("/compat/export/db", json=ask), 403, "read_only_connection")


def test_a_viewer_sends_nothing(client, cast, shop):
    for query in ("SELECT 1", "INSERT INTO customers (email) VALUES ('a')"):
        ask = {"connectionId": shop.connection_id, "query": query}
        refused(client(cast.victor).post("/compat/export/db", json=ask), 403, "forbidden")


def test_rows_go_to_an_endpoint(dm, worker):
    with EchoTarget() as target:
        endpoint = made(
            dm.post("/compat/endpoints", json={"name": "E", "method": "POST", "url": target.url("/rows")})
        )
        answer = made(
            dm.post("/compat/export/rest", json={"endpointId": endpoint["id"], "data": [{"a": 1}, {"a": 2}]})
        )
        assert len(target.calls("/rows")) == 2
    assert (answer["response"]["status"], answer["counts"]["delivered"]) == (201, 2)
    assert (answer["request"]["method"], answer["success"]) == ("POST", True)


def test_rows_go_to_no_address_that_is_not_kept(dm):
    details = refused(
        dm.post("/compat/export/rest", json={"url": "http://127.0.0.1:9", "data": [{"a": 1}]}),
        422,
        "validation_error",
    )
    assert details["fields"]


# --- Statements -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "table", "rows"),
    [
        ("insert into t (a) values (1)", "t", [{"a": 1}]),
        ('INSERT INTO "My"."T x" ("a b",c) VALUES (-1.5e3, TRUE) ;', "My.T x", [{"a b": -1500.0, "c": True}]),
        ("/* x */ INSERT INTO [dbo].[t] ([a]) VALUES\n (N'x')\n,('--')", "dbo.t", [{"a": "x"}, {"a": "--"}]),
        ("INSERT INTO `t` (`a`, b) VALUES (null, '')", "t", [{"a": None, "b": ""}]),
    ],
)
def test_a_plain_insert_is_read_into_rows(text, table, rows):
    assert sending.parse_insert(text, escapes=False) == sending.Insert(table, rows)


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t VALUES (1)",
        "INSERT INTO t (a) VALUES (now())",
        "INSERT INTO t (a) VALUES (1); DROP TABLE t",
        "INSERT INTO t (a) VALUES (1) DROP TABLE t",
        "INSERT INTO t (a) VALUES (1) ON CONFLICT DO NOTHING",
        "INSERT INTO t (a) VALUES (1) RETURNING a",
        "INSERT INTO t (a) SELECT 1",
        "INSERT INTO t (a, b) VALUES (1)",
        "INSERT INTO t (a, a) VALUES (1, 2)",
        "INSERT INTO t (a) VALUES (1 + 1)",
        "INSERT INTO t (a) VALUES ('x' || 'y')",
        "INSERT INTO t (a) VALUES (E'x')",
        "INSERT INTO t (a) VALUES (0x1F)",
        "INSERT INTO t (a) VALUES ('x",
        "INSERT INTO t (a) VALUES",
        "UPDATE t SET a = 1",
        "",
    ],
)
def test_any_other_statement_is_no_plain_insert(text):
    assert sending.parse_insert(text, escapes=False) is None


def test_a_backslash_is_plain_only_where_it_is_no_escape():
    text = r"INSERT INTO t (a) VALUES ('\'), (1)--')"
    assert sending.parse_insert(text, escapes=True) is None
    assert sending.parse_insert(r"INSERT INTO t (a) VALUES ('C:\x')", escapes=False).rows == [{"a": r"C:\x"}]


def test_a_long_insert_is_read_in_time():
    text = "INSERT INTO t (a, b) VALUES " + ", ".join(f"({n}, 'x{n}')" for n in range(20_000))
    assert len(sending.parse_insert(text, escapes=False).rows) == 20_000
    assert sending.parse_insert("INSERT INTO t (" + "a," * 50_000, escapes=False) is None
    assert sending.parse_insert("INSERT" + " " * 100_000 + "x", escapes=False) is None
    assert sending.parse_insert("/*" * 50_000, escapes=False) is None
    assert sending.parse_insert(f"INSERT INTO t {' ' * 50_000}x", escapes=False) is None
    assert sending.parse_insert(f"INSERT INTO t (a{' /**/' * 20_000}x", escapes=False) is None
