"""Rows read from all kinds of databases: a real MariaDB, SQL Server and MongoDB as protocol servers, Oracle's
statements run by H2, and Db2's answered as its manual describes."""

from __future__ import annotations

import uuid

import pytest

from tests.connectors.db2_answers import Link as Db2Answers
from tests.connectors.kind_mongodb import WRITER, MongodbKind
from tests.connectors.kind_mssql import WRITER as MSSQL_WRITER
from tests.connectors.kind_mssql import MssqlKind
from tests.connectors.kind_mysql import URL, MysqlKind
from tests.connectors.kind_oracle import OracleKind
from tests.connectors.kinds import Col, Table
from tests.connectors.sending import deliver
from tests.fakes import h2
from tests.views.speak import make
from tests.views.targets import connection, postgres_target
from webapp.connections.services import access
from webapp.connectors.base import ConnectorError
from webapp.connectors.db2.connector import Db2Connector
from webapp.connectors.db2.session import Db2Session
from webapp.connectors.oracle.connector import OracleConnector
from webapp.connectors.oracle.session import OracleSession
from webapp.sources.services import files

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
    files.SOURCE_CACHE.clear()


@pytest.fixture(params=KINDS)
def shop(request, app, cast, tmp_path):
    """A connection to twenty people, stored last first; its kind's name."""
    kind = KINDS[request.param]
    if (reason := kind.unavailable()) is not None:
        pytest.skip(reason)
    result = kind(tmp_path)
    result.start()
    try:
        result.make(PEOPLE)
        numbers = list(range(20, 0, -1))
        people = {
            "id": numbers,
            "email": [f"person.{n}@corp.test" for n in numbers],
            "age": [n + 20 for n in numbers],
        }
        with result.connector().open() as session:
            deliver(session, "people", people)
        yield connection(app, cast, request.param, settings(result)), request.param
    finally:
        result.stop()


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
    expected = [20, 19, 18] if kind == "mongodb" else [6, 7, 8]
    assert [row["id"] for row in rows_of(edith, here, table="people", where=where, limit=3)] == expected


def test_a_query_is_taken_where_the_kind_has_such(edith, shop):
    here, kind = shop
    if kind == "mongodb":
        result = {
            "name": "People",
            "fields": FIELDS[:1],
            "source": {"connection_id": here, "query": "SELECT 1"},
        }
        answer = edith.post("/generate", json={**result, "count": 1})
        assert (answer.status_code, answer.json["error"]["code"]) == (502, "target_failed"), answer.json
        assert "Specify a table" in answer.json["error"]["details"]["hint"]
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


ORACLE = """CREATE TABLE people (id NUMBER(9) PRIMARY KEY, email VARCHAR2(60 CHAR), age NUMBER(3), born DATE,
    joined TIMESTAMP(6), price NUMBER(9,2), more CLOB)"""


def in_this_process(monkeypatch):
    """The links above are of this process: what reads from them must be too."""
    monkeypatch.setattr(access, "ReaderProcess", lambda connector, timeout=None: connector.open(timeout))


@pytest.fixture
def oracle(app, cast, monkeypatch):
    """A connection to six people in H2, stored last first, one of whom is hardly known."""
    if (reason := OracleKind.unavailable()) is not None:
        pytest.skip(reason)
    place = f"real_{uuid.uuid4().hex[:8]}"
    own = h2.H2Link(place)
    own._execute(ORACLE)
    for n in range(6, 1, -1):
        own._execute(
            f"INSERT INTO people VALUES ({n}, 'person.{n}@corp.test', {n + 20}, DATE '1990-01-0{n}', "
            f"TIMESTAMP '2026-01-02 03:04:05.00000{n}', {n}.25, 'note {n}')"
        )
    own._execute("INSERT INTO people (id) VALUES (1)")
    own.commit()

    def opened(_self, timeout=None):
        return OracleSession(h2.H2Link(place), lambda: h2.H2Link(place), read_only=True)

    monkeypatch.setattr(OracleConnector, "open", opened)
    in_this_process(monkeypatch)
    yield connection(app, cast, "oracle", {"host": "127.0.0.1", "database": place})
    own.close()


def test_a_table_of_oracle_is_taken_in_the_order_of_its_key_and_masked(edith, oracle):
    names = ("id", "age", "price", "born", "joined", "more")
    fields = [{"name": name, "type": "source_column"} for name in names]
    fields.append({"name": "email", "type": "email", "sensitive": True})
    rows = rows_of(edith, oracle, fields, table="people")
    assert [row["id"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert {name: rows[0][name] for name in rows[0]} == dict.fromkeys((*names, "email")) | {"id": 1}
    assert [(row["age"], float(row["price"]), row["more"]) for row in rows[1:]] == [
        (n + 20, n + 0.25, f"note {n}") for n in range(2, 7)
    ]
    assert rows[1]["born"].startswith("1990-01-02")
    assert rows[1]["joined"].startswith("2026-01-02T03:04:05")
    assert all("corp" not in row["email"] and "@" in row["email"] for row in rows[1:])
    chosen = rows_of(
        edith, oracle, fields[:1], table="PEOPLE", where="age > 23 AND more LIKE 'note%'", limit=2
    )
    assert [row["id"] for row in chosen] == [4, 5]
    query = "SELECT id FROM people WHERE age < 24 ORDER BY id DESC"
    assert [row["id"] for row in rows_of(edith, oracle, fields[:1], query=query)] == [3, 2]


class Db2People(Db2Answers):
    """Two people as Db2 would send them, and its catalog's word on their table."""

    TABLE = ("SHOP", "PEOPLE", "T", None)
    COLUMNS = (
        (*TABLE, "ID", "SYSIBM", "INTEGER", 4, 0, 0, None, None, "N", None, "N", " ", None),
        (*TABLE, "EMAIL", "SYSIBM", "VARCHAR", 60, 0, 1208, "OCTETS", 60, "Y", None, "N", " ", None),
    )

    def __init__(self):
        super().__init__(
            ("CURRENT SCHEMA) FROM", [("SHOP",)]),
            ("SYSCAT.COLUMNS", list(self.COLUMNS)),
            ("SYSCAT.INDEXES", [("SHOP", "PEOPLE", "PK1", "P", "ID")]),
            ("SYSCAT.REFERENCES", []),
            ("SYSCAT.CHECKS", []),
        )

    def stream(self, text):
        self.told.append(text)
        yield ["ID", "EMAIL"], [(1, "person.1@corp.test"), (2, "person.2@corp.test")]


def test_a_table_of_db2_is_read_in_the_order_of_its_key_and_masked(app, cast, edith, monkeypatch):
    link = Db2People()
    monkeypatch.setattr(Db2Connector, "driver", classmethod(lambda _kind: None))
    monkeypatch.setattr(
        Db2Connector, "open", lambda _self, timeout=None: Db2Session(link, lambda: link, True)
    )
    in_this_process(monkeypatch)
    here = connection(
        app, cast, "db2", {"host": "127.0.0.1", "database": "D", "username": "u", "password": "p"}
    )
    fields = [
        {"name": "ID", "type": "source_column"},
        {"name": "EMAIL", "type": "email", "sensitive": True},
    ]
    rows = rows_of(edith, here, fields, table="people", where="ID > 0")
    assert [row["ID"] for row in rows] == [1, 2]
    assert all("corp" not in row["EMAIL"] and "@" in row["EMAIL"] for row in rows)
    (requests,) = {" ".join(item.split()) for item in link.told if 'FROM "SHOP"."PEOPLE"' in item}
    assert requests == 'SELECT "ID", "EMAIL" FROM "SHOP"."PEOPLE" WHERE (ID > 0 ) ORDER BY "ID"'


def test_errors_of_db2_for_a_query_are_reported(app, cast, edith, monkeypatch):
    class Refusing(Db2People):
        def stream(self, text):
            raise ConnectorError("SQL0206N  EMIAL is not valid.", reason="no_column")

    link = Refusing()
    monkeypatch.setattr(Db2Connector, "driver", classmethod(lambda _kind: None))
    monkeypatch.setattr(
        Db2Connector, "open", lambda _self, timeout=None: Db2Session(link, lambda: link, True)
    )
    in_this_process(monkeypatch)
    here = connection(
        app, cast, "db2", {"host": "127.0.0.1", "database": "D", "username": "u", "password": "p"}
    )
    source = {"connection_id": here, "query": "SELECT EMIAL FROM PEOPLE ORDER BY 1"}
    fields = [{"name": "x", "type": "source_column"}]
    answer = edith.post("/generate", json={"name": "P", "fields": fields, "source": source, "count": 1})
    assert answer.status_code == 502, answer.json
    assert "SQL0206N" in answer.json["error"]["message"]
    assert answer.json["error"]["details"]["path"] == "source.table"
