"""Db2 without a server: its catalog, queries, and what became of a transaction."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.connectors.db2_answers import Link, said
from webapp.connectors.base import ConnectorError, WriteSpec
from webapp.connectors.db2 import catalog as db2_catalog
from webapp.connectors.db2.session import Db2Session
from webapp.connectors.schema import Column, Relation

ORDERS = ("SHOP", "T", "T", "Orders")
COLUMNS = [
    # schema, table, type, remarks, column, typeschema, typename, length, scale, codepage, units, unit length, nulls,
    # default, identity, generated, remarks
    (*ORDERS, "ID", "SYSIBM", "INTEGER", 4, 0, 0, None, None, "N", None, "Y", "A", None),
    (*ORDERS, "NAME", "SYSIBM", "VARCHAR", 28, 0, 1208, "CODEUNITS32", 7, "N", "'a'", "N", " ", "Who"),
    (*ORDERS, "OCT", "SYSIBM", "VARCHAR", 9, 0, 1208, "OCTETS", 9, "Y", None, "N", " ", None),
    (*ORDERS, "BITS", "SYSIBM", "CHARACTER", 16, 0, 0, None, None, "Y", None, "N", " ", None),
    (*ORDERS, "PRICE", "SYSIBM", "DECIMAL", 12, 2, 0, None, None, "Y", None, "N", " ", None),
    (*ORDERS, "FLOATING", "SYSIBM", "DECFLOAT", 8, 0, 0, None, None, "Y", None, "N", " ", None),
    (*ORDERS, "AT", "SYSIBM", "TIMESTAMP", 10, 6, 0, None, None, "N", "CURRENT TIMESTAMP", "N", " ", None),
    (*ORDERS, "OK", "SYSIBM", "BOOLEAN", 1, 0, 0, None, None, "Y", None, "N", " ", None),
    (*ORDERS, "WIDE", "SYSIBM", "VARGRAPHIC", 10, 0, 1200, "CODEUNITS16", 10, "Y", None, "N", " ", None),
    (*ORDERS, "TWICE", "SYSIBM", "DECIMAL", 13, 2, 0, None, None, "Y", "AS (PRICE * 2)", "N", "A", None),
    (*ORDERS, "MONEY", "SHOP", "EURO", 0, 0, 0, None, None, "Y", None, "N", " ", None),
    ("ELSE", "V", "V", None, "X", "SYSIBM", "XML", 0, 0, 0, None, None, "Y", None, "N", " ", None),
]  # fmt: skip
INDEXES = [
    ("SHOP", "T", "PK1", "P", "ID"),
    ("SHOP", "T", "UX1", "U", "NAME"),
    ("SHOP", "T", "UX2", "U", "PRICE"),
    ("SHOP", "T", "UX2", "U", "AT"),
    ("SHOP", "T", "UX3", "U", "K00"),  # on an expression
]
RELATIONS = [("SHOP", "T", "FK1", "NAME", "ELSE", "P", "A"), ("SHOP", "T", "FK1", "PRICE", "ELSE", "P", "B")]
CHECKS = [("SHOP", "T", "PRICE >= 0")]


def shop(*rules):
    return Link(
        *rules,
        ("CURRENT SCHEMA) FROM", [("SHOP",)]),
        ("SYSCAT.COLUMNS", COLUMNS),
        ("SYSCAT.INDEXES", INDEXES),
        ("SYSCAT.REFERENCES", RELATIONS),
        ("SYSCAT.CHECKS", CHECKS),
    )


def session_of(link=None, **how):
    link = link or shop()
    return Db2Session(link, lambda: link, **{"read_only": False, **how})


# --- Sessions -----------------------------------------------------------------------------------------------


def test_the_catalog_becomes_tables():
    table, view = session_of().metadata().entities
    assert [
        (field.name, field.type, field.declared, field.generated, field.default) for field in table.fields
    ] == [
        ("ID", "integer", "INTEGER", "identity", None),
        ("NAME", "text", "VARCHAR(7 CODEUNITS32)", "", "'a'"),
        ("OCT", "text", "VARCHAR(9)", "", None),
        ("BITS", "binary", "CHARACTER(16) FOR BIT DATA", "", None),
        ("PRICE", "decimal", "DECIMAL(12,2)", "", None),
        ("FLOATING", "decimal", "DECFLOAT(16)", "", None),
        ("AT", "timestamp", "TIMESTAMP(6)", "", "CURRENT TIMESTAMP"),
        ("OK", "boolean", "BOOLEAN", "", None),
        ("WIDE", "text", "VARGRAPHIC(10)", "", None),
        ("TWICE", "decimal", "DECIMAL(13,2)", "computed", None),
        ("MONEY", "other", "SHOP.EURO", "", None),
    ]
    assert (table.name, table.parts, table.kind, table.comment) == ("T", ("SHOP", "T"), "table", "Orders")
    assert (table.keys, table.uniques, table.checks) == (
        ("ID",),
        (("NAME",), ("PRICE", "AT")),
        ("PRICE >= 0",),
    )
    assert table.relations == (Relation("FK1", ("NAME", "PRICE"), "ELSE.P", ("A", "B")),)
    name, price = table.column("NAME"), table.column("PRICE")
    assert (name.max_length, name.unique, name.nullable, name.comment) == (7, True, False, "Who")
    assert (price.precision, price.scale, table.column("ID").bits, table.column("BITS").max_length) == (
        12,
        2,
        32,
        16,
    )
    assert (view.name, view.kind, view.fields[0].type) == ("ELSE.V", "view", "other")


def test_the_catalog_is_read_in_four_queries():
    link = shop()
    session_of(link).metadata()
    requests = [item for item in link.told if "FROM SYSCAT." in item]
    assert len(requests) == 4
    assert all("NOT LIKE 'SYS%'" in item for item in requests)


def test_one_table_is_queried_with_parameters():
    requests = []

    def ask(text, values):
        requests.append((values, text.count("?")))
        return []

    assert db2_catalog.entities(ask, "SHOP", "Else.T' OR '1") == []
    assert requests == [(["else.t' or '1", "else.t' or '1"], 2)]


def test_a_session_waits_for_locks_no_longer_than_the_limit_and_looks_in_its_schema():
    link = shop()
    session = session_of(link, schema="it's")
    assert link.told[:2] == ["SET CURRENT LOCK TIMEOUT 15", "SET CURRENT SCHEMA = 'it''s'"]
    assert (session.title, session.default_schema) == ("Db2 11.05.0900", "SHOP")


def test_keys_are_listed_over_a_connection_with_the_same_settings():
    link = shop()
    link.stream = lambda text: iter([(["ID"], [(1,), (2,)])])
    session = session_of(link, schema="S")
    (batch,) = session.keys(session.entity("T"), ["ID"], "PRICE > 1")
    assert batch.to_pydict() == {"ID": [1, 2]}
    assert link.told[-4:] == ["SET CURRENT LOCK TIMEOUT 15", "SET CURRENT SCHEMA = 'S'", "BEGIN", "CLOSE"]


def test_another_family_of_db2_is_rejected():
    link = shop()
    link.server = ("DB2", "12.01.0005")
    with pytest.raises(ConnectorError) as caught:
        session_of(link)
    assert caught.value.reason == "unsupported"


def test_queries_run_in_a_transaction_that_is_undone():
    link = shop()
    session_of(link).query("SELECT a FROM t WHERE b = '{{v}}'", {"v": "x"}, 5)
    assert link.told[-3:] == ["BEGIN", "SELECT a FROM t WHERE b = ?", "ROLLBACK"]


@pytest.mark.parametrize(
    "query", ["SELECT id FROM FINAL TABLE (INSERT INTO t (a) VALUES (1))", "VALUES 1", "SELECT 1; x"]
)
def test_a_query_that_does_more_than_read_is_never_sent(query):
    link = shop()
    session = session_of(link)
    before = list(link.told)
    with pytest.raises(ConnectorError) as caught:
        session.query(query, {}, 1)
    assert (caught.value.reason, link.told) == ("bad_query", before)


def test_rows_are_looked_for_and_sampled():
    link = shop(("SELECT 0 AS n", [(1,)]))
    session = session_of(link)
    table = session.entity("t")
    expected = pa.record_batch({"ID": [1, 2, None]})
    assert session.contains(table, ["ID"], expected).to_pylist() == [False, True, False]
    assert link.told[-1] == (
        'SELECT 0 AS n FROM SYSIBM.SYSDUMMY1 WHERE EXISTS (SELECT 1 FROM "SHOP"."T" WHERE "ID" = 1) UNION ALL '
        'SELECT 1 AS n FROM SYSIBM.SYSDUMMY1 WHERE EXISTS (SELECT 1 FROM "SHOP"."T" WHERE "ID" = 2)'
    )
    session.check_sample()
    assert link.told[-1] == 'SELECT * FROM "SHOP"."T" FETCH FIRST 1 ROWS ONLY'


def test_a_table_is_made_of_columns():
    columns = [
        Column("id", "integer", "", nullable=False),
        Column("name", "text", "", max_length=20),
        Column("at", "timestamp", ""),
        Column("ok", "boolean", ""),
        Column("price", "decimal", "", precision=38, scale=2),
        Column("photo", "binary", ""),
    ]
    link = shop()
    session_of(link).create("orders", columns, ["id"])
    assert link.told[-1] == (
        'CREATE TABLE "orders" (\n  "id" BIGINT NOT NULL,\n  "name" VARCHAR(20 CODEUNITS32),\n  "at" TIMESTAMP(6),\n'
        '  "ok" SMALLINT,\n  "price" DECIMAL(31,2),\n  "photo" BLOB(2G),\n  PRIMARY KEY ("id")\n)'
    )


def test_a_connection_for_reading_writes_nothing():
    session = session_of(read_only=True)
    table = session.entity("T")
    with pytest.raises(ConnectorError) as caught:
        session.target(WriteSpec(table, table.fields[:1]))
    assert caught.value.code == "read_only_connection"


# --- What became of a transaction ---------------------------------------------------------------------------


def test_a_chunk_is_settled_by_keys_that_are_read_behind_a_lock():
    link = shop()
    session = session_of(link)
    target = session.target(WriteSpec(session.entity("T"), (session.entity("T").column("ID"),)))
    target.begin()
    target.send(pa.record_batch({"ID": [1, 2, 3]}))
    commit_token = target.commit_token()
    assert commit_token == {"keys": ["ID"], "rows": [["1"], ["2"], ["3"]]}
    assert session.commit_outcome(target.spec.entity, commit_token) is False
    looked = [f'SELECT 1 FROM "SHOP"."T" WHERE "ID" = {item}' for item in (1, 2, 3)]
    assert link.told[-6:] == ["BEGIN", 'LOCK TABLE "SHOP"."T" IN SHARE MODE', *looked, "ROLLBACK"]
    assert session_of(shop(('WHERE "ID" =', [(1,)]))).commit_outcome(target.spec.entity, commit_token) is True
    assert session.commit_outcome(target.spec.entity, {}) is None


def test_a_locked_table_leaves_the_commit_in_doubt():
    stored = said(-911, "40001", 'The current transaction has been rolled back.  Reason code "68".')
    session = session_of(shop(("LOCK TABLE", stored)))
    commit_token = {"keys": ["ID"], "rows": [["1"]]}
    assert session.commit_outcome(session.entity("T"), commit_token) is None
    assert session.link.told[-1] == "ROLLBACK"
