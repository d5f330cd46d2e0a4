"""Oracle's statements in H2's Oracle mode, and what needs no server: connection strings, errors, the dictionary."""

from __future__ import annotations

import datetime as dt
import socket

import pyarrow as pa
import pytest

from tests.connectors.kind_oracle import OracleKind
from tests.connectors.kinds import GATE, Col, Table
from tests.connectors.one_kind import only
from tests.connectors.sending import deliver, reasons, target_of
from tests.fakes.certificates import Authority
from tests.fakes.tns import Tns
from webapp.connectors.base import ConnectionLost, ConnectorError
from webapp.connectors.oracle import catalog as oracle_catalog
from webapp.connectors.oracle.connection import convert_error, to_row_error
from webapp.connectors.oracle.connector import OracleConnector
from webapp.connectors.schema import Column, UniqueIndex
from webapp.net.gate import Gate

kind = only(OracleKind)


def test_rejected_rows_are_reported_and_the_others_are_written(kind, session):
    kind.make(Table("parents", {"id": Col(key=True, null=False)}))
    kind.make(
        Table(
            "orders",
            {
                "id": Col(key=True, null=False),
                "code": Col("text", length=5, unique=True),
                "parent": Col(refers=("parents", "id")),
                "amount": Col("decimal", least=0),
            },
        )
    )
    deliver(session, "parents", {"id": [1]})
    rows = {
        "id": [1, 2, 3, 4, 5, 6, None], "code": ["a", "b", "a", "sixsix", "e", "f", "g"],
        "parent": [1, 1, 1, 1, 9, 1, 1], "amount": ["1.50", "x", "1", "1", "1", "-1", "1"],
    }  # fmt: skip
    assert reasons(deliver(session, "orders", rows)) == {
        1: "wrong_type", 2: "unique", 3: "too_long", 4: "foreign_key", 5: "check", 6: "not_null",
    }  # fmt: skip
    assert kind.rows("orders", "id") == [(1,)]


def test_upserts_updates_and_deletes_find_their_rows(kind, session):
    kind.make(Table("Order", {"id": Col(key=True, null=False), "with space": Col("text")}))
    how = {"key_columns": ("id",)}
    assert (
        reasons(deliver(session, "Order", {"id": [1, 2], "with space": ["a", "b"]}, mode="upsert", **how))
        == {}
    )
    assert (
        reasons(deliver(session, "Order", {"id": [2, 3], "with space": ["B", "c"]}, mode="upsert", **how))
        == {}
    )
    sent = deliver(session, "Order", {"id": [9, 1], "with space": ["x", "it's"]}, mode="update", **how)
    assert reasons(sent) == {0: "missing_row"}
    assert kind.rows("Order") == [(1, "it's"), (2, "B"), (3, "c")]
    target = target_of(session, "Order", ["id"], **how)
    assert reasons(target.delete(pa.record_batch({"id": [3, 7]}))) == {1: "missing_row"}
    target.commit()
    assert kind.rows("Order", "id") == [(1,), (2,)]


def test_captured_keys_are_in_the_order_of_their_rows(kind, session):
    kind.make(Table("made", {"id": Col(identity=True, key=True, null=False), "v": Col("text", unique=True)}))
    sent = deliver(session, "made", {"v": ["a", "b", "a", "c"]}, capture=("id",))
    assert reasons(sent) == {2: "unique"}
    found = dict(kind.rows("made", "v", "id"))
    assert sent.keys["id"].to_pylist() == [found["a"], found["b"], None, found["c"]]


@pytest.mark.parametrize(
    ("type", "value", "stored"),
    [
        ("integer", 2**63 - 1, 2**63 - 1),
        ("boolean", True, 1),
        ("float", 0.1, 0.1),
        ("date", dt.date(2024, 2, 29), dt.datetime(2024, 2, 29)),  # noqa: DTZ001
        ("timestamp", dt.datetime(2024, 1, 31, 1, 2, 3, 500), dt.datetime(2024, 1, 31, 1, 2, 3, 500)),  # noqa: DTZ001
        ("text", "it's \\ é 😀\n", "it's \\ é 😀\n"),
        ("uuid", "0f8fad5b-d9cb-469f-a165-70867728950e", bytes.fromhex("0f8fad5bd9cb469fa16570867728950e")),
    ],
)
def test_values_of_every_type_come_back_as_they_were_sent(kind, session, type, value, stored):
    kind.make(Table("round", {"n": Col(key=True, null=False), "v": Col(type)}))
    sent = deliver(session, "round", {"n": [1, 2], "v": pa.array([value, None])})
    assert sent.failures == []
    assert kind.rows("round", "n", "v") == [(1, stored), (2, None)]


def test_a_chunk_is_settled_as_done_after_its_commit_only(kind, session):
    kind.make(Table("kept", {"id": Col(key=True, null=False)}))
    target = target_of(session, "kept", ["id"])
    target.send(pa.record_batch({"id": [1, 2, 3]}))
    commit_token = target.commit_token()
    target.rollback()
    entity = session.entity("kept")
    assert session.commit_outcome(entity, commit_token) is False
    deliver(session, "kept", {"id": [1, 2, 3]})
    assert session.commit_outcome(entity, commit_token) is True
    assert session.commit_outcome(entity, {}) is None


def test_a_table_made_of_columns_is_read_and_asked(kind, session):
    columns = [
        Column("id", "integer", "", nullable=False),
        Column("v", "text", "", max_length=20),
        Column("at", "timestamp", ""),
    ]
    session.create("made", columns, ["id"])
    assert session.entity("MADE").keys == ("id",)
    deliver(session, "made", {"id": [2, 1], "v": ["b", "it's"]})
    entity = session.entity("made")
    assert [batch.to_pydict() for batch in session.keys(entity, ["id"])] == [{"id": [1, 2]}]
    assert session.contains(entity, ["v"], pa.record_batch({"v": ["it's", "x", None]})).to_pylist() == [
        True,
        False,
        False,
    ]
    assert session.query(
        'SELECT "id" AS "n" FROM "made" WHERE "v" = {{v}}', {"v": "it's"}, 5
    ).to_pylist() == [{"n": 1}]
    assert session.sample(entity, 1).num_rows == 1
    with pytest.raises(ConnectorError) as caught:
        session.create("made", columns, ["id"])
    assert caught.value.reason == "exists"


def test_statements_for_people_are_carried_out(kind, session):
    kind.make(Table("said", {"id": Col(key=True, null=False), "v": Col("text")}))
    rows = pa.record_batch({"id": [1], "v": ["it's\n& so"]})
    for mode, how in (
        ("insert", {}),
        ("upsert", {"key_columns": ("id",)}),
        ("update", {"key_columns": ("id",)}),
    ):
        for statement in target_of(session, "said", ["id", "v"], mode=mode, **how).statements(rows):
            session.execute(statement)
    assert kind.rows("said") == [(1, "it's\n& so")]


# --- Without a server -------------------------------------------------------------------------------------------


def test_the_dictionary_becomes_tables():
    answers = [
        [
            ("SHOP", "T", "TABLE", "ID", "NUMBER", 0, 22, 10, 0, "N", "x.nextval", "YES", "NO"),
            ("SHOP", "T", "TABLE", "NAME", "VARCHAR2", 7, 28, None, None, "N", "'a' ", "NO", "NO"),
            (
                "SHOP",
                "T",
                "TABLE",
                "AT",
                "TIMESTAMP(6) WITH TIME ZONE",
                0,
                13,
                None,
                6,
                "Y",
                None,
                "NO",
                "NO",
            ),
            ("ELSE", "V", "VIEW", "TWICE", "NUMBER", 0, 22, None, None, "Y", '"X"*2', "NO", "YES"),
        ],
        [
            ("SHOP", "T", "PK", "P", "ID", None, None, None, None),
            ("SHOP", "T", "CK", "C", "NAME", None, None, None, "name > 'a'"),
            ("SHOP", "T", "NN", "C", "NAME", None, None, None, '"NAME" IS NOT NULL'),
            ("SHOP", "T", "FK", "R", "NAME", "ELSE", "O", "KEY", None),
        ],
        [
            ("SHOP", "T", "UX", "SYS_NC00004$", 'UPPER("NAME")'),
            ("SHOP", "T", "UY", "AT", None),
            ("SHOP", "T", "UY", "NAME", None),
        ],
    ]
    table, view = oracle_catalog.entities(lambda *_: answers.pop(0), "SHOP")
    assert [(field.type, field.declared, field.generated, field.default) for field in table.fields] == [
        ("integer", "NUMBER(10,0)", "identity", None),
        ("text", "VARCHAR2(7 CHAR)", "", "'a'"),
        ("timestamptz", "TIMESTAMP(6) WITH TIME ZONE", "", None),
    ]
    assert (table.keys, table.checks, table.relations[0].entity) == (("ID",), ("name > 'a'",), "ELSE.O")
    assert (table.uniques, table.unique_indexes) == ((("AT", "NAME"),), (UniqueIndex(("NAME",)),))
    assert (view.name, view.kind, view.fields[0].generated) == ("ELSE.V", "view", "computed")


def test_errors_of_one_row_name_its_column_and_others_end_the_push(monkeypatch):
    table = oracle_catalog.Entity("T", ("T",), (Column("NAME", "text", "VARCHAR2(7 CHAR)"),))
    found = to_row_error(
        3, 12899, 'ORA-12899: value too large for column "SHOP"."T"."NAME" (actual: 9)', table
    )
    assert (found.index, found.reason, found.native, found.column) == (3, "too_long", "ORA-12899", "NAME")
    assert to_row_error(0, 20001, "ORA-20001: by a trigger", table).reason == "refused"
    for number, reason in ((942, "no_table"), (1031, "no_permission"), (1653, "full"), (99999, "failed")):
        with pytest.raises(ConnectorError) as caught:
            to_row_error(0, number, "x", table)
        assert caught.value.reason == reason
    assert isinstance(convert_error(3113, "end-of-file"), ConnectionLost)


@pytest.mark.parametrize(
    "text",
    [
        "oracle://shop:p%40ss@db.example:1522/orders",
        "oracle+oracledb://shop:p%40ss@db.example:1522/?service_name=orders",
        "jdbc:oracle:thin:shop/p@ss@//db.example:1522/orders",
    ],
)
def test_a_connection_string_is_read(text):
    params = OracleConnector(OracleConnector.Settings(connection_string=text), GATE).connect_options()
    assert (params.host, params.port, params.service, params.username, params.password) == (
        "db.example", 1522, "orders", "shop", "p@ss",
    )  # fmt: skip


def test_a_descriptor_that_could_be_misused_is_rejected():
    for text in ("(DESCRIPTION=(ADDRESS=(HOST=h)(PORT=1))(CONNECT_DATA=(SID=x)))", "h", "hello world"):
        with pytest.raises(ConnectorError) as caught:
            OracleConnector(OracleConnector.Settings(connection_string=text), GATE).connect_options()
        assert caught.value.reason == "bad_settings"


def test_a_closed_network_is_never_reached():
    connector = OracleConnector(OracleConnector.Settings(host="127.0.0.1", database="x"), Gate())
    assert [stage.code for stage in connector.stages()] == ["not_allowed"]
    with pytest.raises(ConnectorError) as caught:
        connector.open()
    assert caught.value.code == "target_not_allowed"


# --- The driver against a listener ------------------------------------------------------------------------------


@pytest.fixture
def listens():
    """Makes listeners, which end with the test."""
    result = []

    def listen(*how, **more):
        result.append(Tns(*how, **more))
        return result[-1]

    yield listen
    for item in result:
        item.stop()


def connector(listener, gate=GATE, **settings):
    how = {"host": "127.0.0.1", "port": listener.port, "database": "orders", "username": "u", "password": "p"}
    return OracleConnector(OracleConnector.Settings(**how | settings), gate)


def refused(found):
    with pytest.raises(ConnectorError) as caught:
        found.open(5.0)
    return caught.value


def test_rejections_by_the_listener_are_reported(listens):
    listener = listens()
    assert refused(connector(listener)).reason == "no_database"
    assert b"SERVICE_NAME=orders" in listener.asked[0]


def test_a_listener_cannot_redirect_into_a_blocked_network(listens):
    inner = socket.create_server(("127.0.0.2", 0))
    with inner:
        error = refused(connector(listens(inner.getsockname()[:2]), Gate(["127.0.0.1/32"])))
        assert (error.code, error.reason) == ("target_not_allowed", "not_allowed")
        inner.setblocking(False)
        with pytest.raises(BlockingIOError):
            inner.accept()


def test_a_listener_may_send_to_where_the_settings_could_lead_too(listens):
    there = listens()
    error = refused(connector(listens(("127.0.0.1", there.port)), Gate(["127.0.0.1/32"])))
    assert error.reason == "no_database"
    assert len(there.asked) == 1


def test_listeners_that_send_in_circles_come_to_an_end(listens, monkeypatch):
    monkeypatch.setattr("webapp.limits.ORACLE_CONNECTS", 3)
    first = listens()
    first.onwards = ("127.0.0.1", first.port)
    assert refused(connector(first)).reason == "refused"
    assert len(first.asked) == 3


@pytest.mark.parametrize(
    ("name", "trusted", "tls", "reason"),
    [
        ("127.0.0.1", True, "verify-full", "no_database"),
        ("other.example", True, "verify-full", "tls_failed"),
        ("127.0.0.1", False, "verify-full", "tls_failed"),
        ("other.example", False, "require", "no_database"),
    ],
)
def test_a_certificate_is_verified_as_the_mode_says(listens, tmp_path, name, trusted, tls, reason):
    authority = Authority(tmp_path)
    listener = listens(tls=authority.server(name))
    more = {"ca_certificate": authority.file.read_text()} if trusted else {}
    assert refused(connector(listener, tls=tls, **more)).reason == reason
    assert len(listener.asked) == (reason == "no_database")


def test_unknown_options_are_rejected_with_a_suggestion():
    with pytest.raises(ConnectorError) as caught:
        OracleConnector(
            OracleConnector.Settings(connection_string="oracle://h/?servicename=x"), GATE
        ).connect_options()
    assert (caught.value.reason, caught.value.hint) == ("bad_settings", "Did you mean service_name?")
