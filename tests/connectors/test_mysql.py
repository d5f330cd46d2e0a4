"""What is special to MySQL and MariaDB: values, bad rows, tables; the rest is in the tests that run over every kind."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from tests.connectors import mysql_sessions
from tests.connectors.kind_mysql import URL
from tests.connectors.kinds import GATE
from tests.connectors.mysql_sessions import target_as_mysql
from tests.connectors.sending import deliver, reasons, target_of
from webapp import limits
from webapp.connectors.base import ConnectorError
from webapp.connectors.mysql import catalog as mysql_catalog
from webapp.connectors.mysql.connector import MysqlConnector
from webapp.connectors.schema import UniqueIndex

kind = mysql_sessions.kind
REFUSED = [
    ("VARCHAR(3)", "abcd", "too_long"),
    ("VARCHAR(3)", "abc  ", "too_long"),
    ("TINYTEXT", "ü" * 128, "too_long"),
    ("VARBINARY(2)", b"\0\1\2", "too_long"),
    ("INT", 1.5, "wrong_type"),
    ("INT", "12 apples", "wrong_type"),
    ("DECIMAL(5, 2)", "a lot", "wrong_type"),
    ("TINYINT UNSIGNED", -1, "out_of_range"),
    ("BIGINT", Decimal(2**63), "out_of_range"),
    ("DECIMAL(5, 2)", Decimal("1000.00"), "out_of_range"),
    ("DOUBLE", float("nan"), "out_of_range"),
    ("BOOLEAN", "perhaps", "wrong_type"),
    ("BIT(2)", 4, "too_long"),
    ("DATE", "2021-02-30", "wrong_type"),
    ("DATE", "0000-00-00", "wrong_type"),
    ("DATETIME(6)", "2021-02-30T00:00:00Z", "wrong_type"),
    ("TIME", "later", "wrong_type"),
    ("ENUM('a', 'b')", "c", "wrong_type"),
    ("JSON", "{", "wrong_type"),
    ("VARCHAR(9) CHARACTER SET latin1", "日", "wrong_type"),
]


# --- nothing is changed silently ----------------------------------------------------------------------------


@pytest.mark.parametrize(("type", "value", "reason"), REFUSED)
def test_a_value_that_does_not_fit_is_rejected_and_never_truncated(kind, session, type, value, reason):
    kind.run(f"CREATE TABLE strict_ (n INT PRIMARY KEY, v {type}) DEFAULT CHARACTER SET utf8mb4")
    sent = deliver(session, "strict_", {"n": [1, 2, 3], "v": pa.array([None, value, None])})
    assert reasons(sent) == {1: reason}
    assert kind.rows("strict_", "n", "v") == [(1, None), (3, None)]


KEPT = [
    ("BIGINT UNSIGNED", pa.array([2**64 - 1], pa.uint64())),
    ("BIT(64)", pa.array([2**63 - 1], pa.int64())),
    ("BOOLEAN", pa.array([True])),
    ("BIT(1)", pa.array([True])),
    ("YEAR", pa.array([2024])),
    ("SET('a', 'b')", pa.array(["a,b"])),
    ("TIME(6)", pa.array([86_399_999_999], pa.time64("us"))),
    ("VARBINARY(3)", pa.array([b"\0'\\"])),
    ("DECIMAL(38, 10)", pa.array([Decimal("-1234567890123456789012345678.0123456789")])),
    ("TIMESTAMP(6) NULL", pa.array([1_700_000_000_123_456], pa.timestamp("us", "UTC"))),
]


@pytest.mark.parametrize(("type", "values"), KEPT, ids=[item for item, _ in KEPT])
def test_custom_types_are_returned_as_sent(kind, session, type, values):
    kind.run(f"CREATE TABLE own (v {type})")
    assert reasons(deliver(session, "own", {"v": values})) == {}
    assert session.sample(session.entity("own"), 1).column(0).to_pylist() == values.to_pylist()


def test_times_with_a_zone_arrive_as_utc(kind, session):
    kind.run("CREATE TABLE moments (n INT PRIMARY KEY, v DATETIME)")
    deliver(session, "moments", {"n": [1, 2], "v": ["2024-01-01T00:30:00+02:00", "2024-01-01 00:30:00"]})
    assert [str(row[1]) for row in kind.rows("moments", "n", "v")] == [
        "2023-12-31 22:30:00",
        "2024-01-01 00:30:00",
    ]


# --- bad rows are found -------------------------------------------------------------------------------------


def test_a_row_rejected_by_a_trigger_is_found_without_a_row_number(kind, session):
    kind.run("CREATE TABLE guarded (n INT PRIMARY KEY)")
    kind.run(
        "CREATE TRIGGER guard BEFORE INSERT ON guarded FOR EACH ROW "
        "IF NEW.n = 42 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not 42'; END IF"
    )
    sent = deliver(session, "guarded", {"n": range(100)})
    assert reasons(sent) == {42: "refused"}
    assert "not 42" in sent.failures[0].message


def test_a_row_number_from_a_statement_in_a_trigger_is_ignored(kind, session):
    kind.run("CREATE TABLE log_ (n INT CHECK (n <> 7))")
    kind.run("CREATE TABLE guarded (n INT PRIMARY KEY)")
    kind.run(
        "CREATE TRIGGER logged AFTER INSERT ON guarded FOR EACH ROW INSERT INTO log_ VALUES (0), (1), (2), (NEW.n)"
    )
    sent = deliver(session, "guarded", {"n": range(20)})
    assert [failure.index for failure in sent.failures] == [7]
    assert [row[0] for row in kind.rows("guarded", "n")] == [row for row in range(20) if row != 7]


def test_bad_rows_are_found_by_halving_where_the_server_gives_no_row_numbers(kind, session, monkeypatch):
    kind.run("CREATE TABLE halved (n INT PRIMARY KEY, v INT NOT NULL)")
    target = target_as_mysql(session, monkeypatch, "halved", ["n", "v"])
    values = [None if row in (3, 500, 999) else row for row in range(1_000)]
    sent = target.send(pa.record_batch({"n": range(1_000), "v": values}))
    target.commit()
    assert reasons(sent) == dict.fromkeys((3, 500, 999), "not_null")
    assert len(kind.rows("halved", "n")) == 997


def test_an_upsert_does_not_change_a_row_found_by_another_unique_index(kind, session):
    kind.run("CREATE TABLE accounts (id INT PRIMARY KEY, mail VARCHAR(50) UNIQUE, name VARCHAR(50))")
    deliver(session, "accounts", {"id": [1, 2], "mail": ["a@x", "b@x"], "name": ["A", "B"]})
    rows = {"id": [1, 3, 4], "mail": ["a@x", "b@x", "d@x"], "name": ["A2", "thief", "D"]}
    sent = deliver(session, "accounts", rows, mode="upsert", key_columns=("id",))
    assert reasons(sent) == {1: "unique"}
    assert kind.rows("accounts") == [(1, "a@x", "A2"), (2, "b@x", "B"), (4, "d@x", "D")]


def test_an_upsert_by_columns_that_are_not_a_key_is_rejected_immediately(kind, session):
    kind.run("CREATE TABLE accounts (id INT PRIMARY KEY, name VARCHAR(50))")
    with pytest.raises(ConnectorError) as error:
        target_of(session, "accounts", ["id", "name"], mode="upsert", key_columns=("name",))
    assert error.value.reason == "unsupported"


def test_rows_longer_than_a_statement_may_be_are_sent_in_several(kind, session, monkeypatch):
    kind.run("CREATE TABLE wide (n INT PRIMARY KEY, v LONGTEXT)")
    monkeypatch.setattr(limits, "MYSQL_STATEMENT_BYTES", limits.MYSQL_STATEMENT_MARGIN + 10_000)
    assert reasons(deliver(session, "wide", {"n": range(50), "v": ["x" * 3_000] * 50})) == {}
    assert len(kind.rows("wide", "n")) == 50


def test_a_row_longer_than_the_server_accepts_is_reported_as_too_long(kind, session, monkeypatch):
    kind.run("CREATE TABLE wide (n INT PRIMARY KEY, v LONGTEXT)")
    monkeypatch.setattr(session, "packet", limits.MYSQL_STATEMENT_MARGIN + 10_000)
    sent = deliver(session, "wide", {"n": [1, 2, 3], "v": ["x", "x" * 20_000, "x"]})
    assert reasons(sent) == {1: "too_long"}
    assert len(kind.rows("wide", "n")) == 2


# --- looking around -----------------------------------------------------------------------------------------


def test_invalid_dates_are_unknown(kind, session):
    kind.run("CREATE TABLE days (v DATE)")
    kind.run("INSERT INTO days VALUES ('2024-02-29')")
    expected = pa.record_batch({"v": ["2024-02-30", "2024-02-29", "never", None]})
    assert session.contains(session.entity("days"), ["v"], expected).to_pylist() == [
        False,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("columns", [["id"], ["v"]])
def test_an_update_without_columns_to_set_or_match_is_rejected_immediately(kind, session, columns):
    kind.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    with pytest.raises(ConnectorError) as error:
        target_of(session, "t", columns, mode="update", key_columns=("id",))
    assert error.value.reason == "unsupported"


def test_columns_tell_what_the_server_declares(kind, session):
    kind.run("CREATE TABLE parents (a INT, b INT, PRIMARY KEY (a, b))")
    kind.run(
        "CREATE TABLE every (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, code VARCHAR(40) NOT NULL UNIQUE, "
        "a INT, b INT, price DECIMAL(10, 3) DEFAULT 1.5 CHECK (price > 0), state ENUM('it''s', 'b,c') COMMENT 'how', "
        "doubled DECIMAL(12, 3) AS (price * 2), doc JSON, body TEXT, "
        "UNIQUE both_ (a, b), UNIQUE part (body(10)), FOREIGN KEY fk (a, b) REFERENCES parents (a, b))"
    )
    entity = session.entity("EVERY")
    by = {column.name: column for column in entity.fields}
    assert (by["id"].bits, by["id"].unsigned, by["id"].generated, by["id"].key) == (
        64,
        True,
        "identity",
        True,
    )
    assert (by["code"].max_length, by["code"].nullable, by["code"].unique) == (40, False, True)
    assert (by["price"].precision, by["price"].scale, by["price"].default) == (10, 3, "1.500")
    assert (by["state"].choices, by["state"].comment) == (("it's", "b,c"), "how")
    assert by["doubled"].generated == "computed"
    assert by["doc"].type == "json"
    assert by["a"].default is None
    assert entity.keys == ("id",)
    assert set(entity.uniques) == {("code",), ("a", "b")}
    assert entity.unique_indexes == (UniqueIndex(("body",)),)
    assert entity.relations[0].columns == ("a", "b")
    assert (entity.relations[0].entity, entity.relations[0].entity_columns) == ("parents", ("a", "b"))
    assert entity.checks == ("`price` > 0",)


def test_a_unique_index_over_a_computed_column_is_one_over_the_columns_it_is_computed_from(kind, session):
    kind.run(
        "CREATE TABLE t (id INT PRIMARY KEY, shop INT, name VARCHAR(20), folded VARCHAR(20) AS (LOWER(name)), "
        "UNIQUE (shop, folded))"
    )
    entity = session.entity("t")
    assert (entity.uniques, entity.unique_indexes) == ((), (UniqueIndex(("shop", "name")),))


def test_columns_tell_which_characters_they_can_have(kind, session):
    kind.run(
        "CREATE TABLE t (a VARCHAR(9) CHARACTER SET latin1, b VARCHAR(9) CHARACTER SET utf8mb3, "
        "c VARCHAR(9) CHARACTER SET utf8mb4, d INT)"
    )
    assert [field.characters for field in session.entity("t").fields] == ["cp1252", "bmp", "", ""]


def test_a_table_whose_engine_has_no_transactions_tells_so(kind, session):
    kind.run("CREATE TABLE t (n INT) ENGINE = MyISAM")
    assert "MyISAM does not support transactions" in session.entity("t").obstacle


def test_indexes_on_expressions_of_mysql_name_their_columns():
    columns = [
        ("shop", "t", name, "varchar", "varchar(9)", "YES", None, "", 9, None, None, "", "", "utf8mb4")
        for name in ("name", "kind")
    ]
    indexes = [
        ("shop", "t", "u", None, None, "lower(`name`)"),
        ("shop", "t", "u", "kind", None, None),
    ]
    answers = {
        "tables": [("shop", "t", "BASE TABLE", "", "InnoDB", "YES")],
        "columns": columns,
        "statistics": indexes,
    }

    def ask(query, values):
        return next((rows for name, rows in answers.items() if f"information_schema.{name} " in query), [])

    (entity,) = mysql_catalog.entities(ask, mysql_catalog.parse_version("8.0.36"), "shop")
    assert entity.unique_indexes == (UniqueIndex(("name", "kind")),)


def test_tables_of_other_databases_are_named_with_theirs(kind):
    kind.run("CREATE TABLE here (n INT PRIMARY KEY)")
    with MysqlConnector(MysqlConnector.Settings(connection_string=URL), GATE).open() as session:
        entity = session.entity(f"{kind.place}.here")
        assert (entity.name, entity.parts) == (f"{kind.place}.here", (kind.place, "here"))
        assert reasons(deliver(session, entity.name, {"n": [1]})) == {}


def test_metadata_are_of_the_connections_database_or_of_all_databases(kind, session):
    other = f"{kind.place}_b"
    kind.run(f"CREATE DATABASE {other}")
    try:
        kind.run(f"CREATE TABLE {other}.parents (id INT PRIMARY KEY)")
        kind.run(f"CREATE TABLE children (id INT REFERENCES {other}.parents (id))")
        (child,) = session.metadata().entities
        assert (child.name, child.relations[0].entity) == ("children", f"{other}.parents")
        assert session.entity(f"{other}.parents").parts == (other, "parents")
        with MysqlConnector(MysqlConnector.Settings(connection_string=URL), GATE).open() as everywhere:
            names = {entity.name for entity in everywhere.metadata().entities}
        assert {f"{kind.place}.children", f"{other}.parents"} <= names
    finally:
        kind.run("DROP TABLE IF EXISTS children")
        kind.run(f"DROP DATABASE {other}")


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE made (n INT)", "SELECT 1; CREATE TABLE made (n INT)", "/*! CREATE TABLE made (n INT) */",
        "/*M! CREATE TABLE made (n INT) */", "-- SELECT\nCREATE TABLE made (n INT)", "SET GLOBAL max_connections = 1",
        "WITH x AS (SELECT 1) DELETE FROM there", "SELECT n FROM there FOR UPDATE INTO @x",
    ],
)  # fmt: skip
def test_a_query_changes_nothing(kind, session, text):
    kind.run("CREATE TABLE there (n INT)")
    kind.run("INSERT INTO there VALUES (1)")
    try:
        session.query(text, {}, 10)
    except ConnectorError:
        pass
    assert kind.run("SHOW TABLES") == [("there",)]
    assert kind.rows("there") == [(1,)]
    assert session.query("(SELECT n FROM there)", {}, 10).to_pylist() == [{"n": 1}]
    assert reasons(deliver(session, "there", {"n": [2]})) == {}


def test_a_query_that_takes_too_long_is_stopped(kind, session, monkeypatch):
    monkeypatch.setattr(limits, "TARGET_QUERY_SECONDS", 0.2)
    with pytest.raises(ConnectorError) as error:
        session.query("SELECT SLEEP(20)", {}, 1)
    assert error.value.code == "target_timeout"
    assert session.query("SELECT 1 AS one", {}, 1).to_pylist() == [{"one": 1}]
