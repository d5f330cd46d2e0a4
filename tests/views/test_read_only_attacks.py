"""No query, filter or source writes to a read-only PostgreSQL connection, with any user."""

from __future__ import annotations

import uuid

import psycopg
import pytest

from tests.connectors.kind_postgresql import URL, PostgresqlKind

COMMIT = "commit; begin read write; {}; commit"


@pytest.fixture
def victim():
    if reason := PostgresqlKind.unavailable():
        pytest.skip(reason)
    schema = f"attack_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(URL, autocommit=True) as own:
        own.execute(f"CREATE SCHEMA {schema}")
        own.execute(f"CREATE TABLE {schema}.victim (id int PRIMARY KEY)")
        own.execute(f"INSERT INTO {schema}.victim VALUES (1), (2), (3)")
        try:
            yield own, schema
        finally:
            own.execute(f"DROP SCHEMA {schema} CASCADE")


def test_stacked_statements_in_fields_and_sources_write_nothing(api, cast, victim):
    own, schema = victim
    edith, victor = api(cast.edith), api(cast.victor)
    settings = {"connection_string": URL, "schema": schema}
    connection = edith.post(
        "/connections", json={"name": "c", "type": "postgresql", "settings": settings, "read_only": True}
    ).json
    assert connection["verification"]["status"] == "verified"
    wipe = COMMIT.format(f"delete from {schema}.victim")
    of = {"connection_id": connection["id"]}
    query = {"name": "q", "type": "db_response", "options": {**of, "query": f"select 13; {wipe}"}}
    where = f"1=1); {wipe}; select 1 from victim where (1=1"
    key = {
        "name": "k",
        "type": "foreign_key",
        "options": {**of, "table": "victim", "column": "id", "filter": where},
    }
    source = {
        **of,
        "query": f"select 1 as id; {COMMIT.format(f'create table {schema}.pwned as select 1 as a')}",
    }
    bodies = [
        {"fields": [query]},
        {"fields": [key]},
        {"fields": [{"name": "id", "type": "number"}], "source": source},
    ]
    for body in bodies:
        answers = [edith.post("/preview", json={**body, "fetch": True})]
        answers += [edith.post("/generate", json={**body, "count": 2})]
        saved = edith.post("/templates", json={"name": "t", **body})
        if saved.status_code == 201:
            path = f"/templates/{saved.json['id']}"
            answers += [
                victor.post(f"{path}/preview", json={}),
                edith.post(f"{path}/generate", json={"count": 2}),
            ]
        assert [answer for answer in answers if answer.status_code == 500] == []
        assert any(answer.status_code in (422, 502) for answer in answers)
        assert own.execute(f"SELECT count(*) FROM {schema}.victim").fetchone() == (3,)
        tables = own.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [schema]).fetchall()
        assert tables == [("victim",)]
