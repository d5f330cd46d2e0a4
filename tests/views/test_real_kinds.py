"""Rows taken from every kind of database there is here: MariaDB itself, SQL Server and MongoDB by the wire."""

from __future__ import annotations

import pytest

from tests.connectors.kind_mongodb import WRITER, MongodbKind
from tests.connectors.kind_mssql import WRITER as MSSQL_WRITER
from tests.connectors.kind_mssql import MssqlKind
from tests.connectors.kind_mysql import URL, MysqlKind
from tests.connectors.kinds import Col, Table
from tests.connectors.sending import deliver
from tests.views.speak import make
from tests.views.targets import connection, postgres_target
from webapp.services import real_spool

PEOPLE = Table(
    "people",
    {"id": Col(key=True, null=False), "email": Col("text", 60), "more": Col("json"), "age": Col("integer")},
)
FIELDS = [
    {"name": "id", "type": "source_column"},
    {"name": "email", "type": "email", "sensitive": True},
    {"name": "more", "type": "source_column"},
    {"name": "age", "type": "number"},
]
KINDS = {"mysql": MysqlKind, "mssql": MssqlKind, "mongodb": MongodbKind}


@pytest.fixture
def edith(api, cast):
    yield api(cast.edith)
    real_spool.OPEN.clear()


@pytest.fixture(params=KINDS)
def shop(request, app, cast, tmp_path):
    """A connection to twenty people, stored last first; its kind's name."""
    kind = KINDS[request.param]
    if (reason := kind.unavailable()) is not None:
        pytest.skip(reason)
    made = kind(tmp_path)
    made.start()
    try:
        made.make(PEOPLE)
        numbers = list(range(20, 0, -1))
        people = {
            "id": numbers,
            "email": [f"person.{n}@corp.test" for n in numbers],
            "age": [n + 20 for n in numbers],
        }
        with made.connector().open() as session:
            deliver(session, "people", people)
        yield connection(app, cast, request.param, settings(made)), request.param
    finally:
        made.stop()


def settings(kind):
    if kind.name == "mysql":
        return {"connection_string": URL, "database": kind.place}
    there = {"host": "127.0.0.1", "port": kind.server.port, "database": "shop"}
    if kind.name == "mssql":
        return {**there, "username": MSSQL_WRITER[0], "password": MSSQL_WRITER[1], "tls": "disable"}
    return {**there, "username": WRITER[0], "password": WRITER[1], "options": {"authMechanism": "PLAIN"}}


def rows_of(edith, here, fields=FIELDS, **source):
    path = f"/templates/{make(edith, name='People', fields=fields, source={'connection_id': here, **source})['id']}"
    answer = edith.post(f"{path}/generate", json={"seed": "s"})
    assert answer.status_code == 200, answer.json
    return answer.json


def test_a_table_is_taken_in_the_order_of_its_key_and_masked(edith, shop):
    here, kind = shop
    rows = rows_of(edith, here, table="people")
    if kind == "mongodb":  # its key is _id, which follows the order of the inserts
        rows.reverse()
    assert [row["id"] for row in rows] == list(range(1, 21))
    assert all("corp" not in row["email"] for row in rows)
    assert [row["age"] for row in rows] == list(range(21, 41))


def test_a_condition_and_a_limit_choose_rows(edith, shop):
    here, kind = shop
    where = '{"id": {"$gt": 5}}' if kind == "mongodb" else "id > 5"
    wanted = [20, 19, 18] if kind == "mongodb" else [6, 7, 8]
    assert [row["id"] for row in rows_of(edith, here, table="people", where=where, limit=3)] == wanted


def test_a_query_is_taken_where_the_kind_has_such(edith, shop):
    here, kind = shop
    if kind == "mongodb":
        made = {
            "name": "People",
            "fields": FIELDS[:1],
            "source": {"connection_id": here, "query": "SELECT 1"},
        }
        answer = edith.post("/generate", json={**made, "count": 1})
        assert (answer.status_code, answer.json["error"]["code"]) == (502, "target_failed"), answer.json
        assert "Name a table" in answer.json["error"]["details"]["hint"]
        return
    rows = rows_of(
        edith, here, FIELDS[:2], query="SELECT id, email FROM people WHERE age < 25 ORDER BY id DESC"
    )
    assert [row["id"] for row in rows] == [4, 3, 2, 1]


def test_columns_that_cannot_be_ordered_by_are_taken_from_postgresql(app, cast, edith, postgres_url):
    script = """CREATE TABLE keyed (id integer PRIMARY KEY, a json, b jsonb, c integer[], d xml, e point);
    INSERT INTO keyed VALUES (2, '{"b": 1, "a": 2}', '{"k": [1, 2]}', '{1,2}', '<a/>', '(1,2)');
    INSERT INTO keyed VALUES (1, NULL, '3', NULL, NULL, NULL);
    CREATE TABLE bare (n integer, a json); INSERT INTO bare VALUES (2, '[]'), (1, '{}');
    CREATE TABLE lone (a json); INSERT INTO lone VALUES ('{"x": 1}');"""
    with postgres_target(app, cast, postgres_url, script) as target:
        fields = [{"name": name, "type": "source_column"} for name in ("id", "a", "b", "c")]
        rows = rows_of(edith, target.connection_id, fields, table="keyed")
        assert [row["id"] for row in rows] == [1, 2]
        assert "".join(rows[1]["a"].split()) == '{"b":1,"a":2}'
        bare = rows_of(edith, target.connection_id, [{"name": "n", "type": "source_column"}], table="bare")
        assert [row["n"] for row in bare] == [1, 2]
        assert (
            len(rows_of(edith, target.connection_id, [{"name": "a", "type": "source_column"}], table="lone"))
            == 1
        )
