"""Db2 without a server: the statements that write rows, and what is made of those that are refused."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from tests.connectors.db2_answers import ID, NAME, PREFIX, Link, said
from tests.connectors.sending import reasons
from webapp.connectors.base import ConnectionLost, ConnectorError, WriteSpec
from webapp.connectors.db2.errors import convert_error, row_rejection
from webapp.connectors.db2.session import Db2Target
from webapp.connectors.schema import Column, Entity, Relation

TABLE = Entity("t", ("SHOP", "t"), (ID, NAME), keys=("id",))
MOMENT = dt.datetime(2024, 1, 2, 3, 4, 5, 6)  # noqa: DTZ001


def target_of(link, *columns, entity=TABLE, **how):
    target = Db2Target(link, WriteSpec(entity, columns, **how))
    target.begin()
    return target


def changes(link):
    return [
        item for item in link.told if item not in ("BEGIN", "SAVEPOINT rowsmith ON ROLLBACK RETAIN CURSORS")
    ]


# --- Statements ---------------------------------------------------------------------------------------------


def test_rows_are_inserted_many_at_a_time_behind_a_savepoint():
    link = Link()
    sent = target_of(link, ID, NAME).send(pa.record_batch({"id": [1, 2], "name": ["it's", None]}))
    assert (sent.failures, sent.keys) == ([], None)
    assert link.told == [
        "BEGIN",
        "SAVEPOINT rowsmith ON ROLLBACK RETAIN CURSORS",
        """INSERT INTO "SHOP"."t" ("id", "name") VALUES (1,'it''s'),(2,NULL)""",
    ]


def test_no_statement_has_more_than_five_hundred_rows():
    link = Link()
    target_of(link, ID).send(pa.record_batch({"id": list(range(1_200))}))
    assert [change.count("),(") + 1 for change in changes(link)] == [500, 500, 200]


def test_long_rows_go_in_statements_that_the_server_takes():
    link = Link()
    target_of(link, ID, NAME).send(pa.record_batch({"id": [1, 2, 3], "name": ["é" * 400_000] * 3}))
    assert len(changes(link)) == 3


def test_an_upsert_is_a_merge_of_typed_rows_that_cuts_no_text():
    link = Link()
    how = {"mode": "upsert", "key_columns": ("id",)}
    target_of(link, ID, NAME, **how).send(pa.record_batch({"id": [1, 2], "name": ["sixsix", None]}))
    assert changes(link) == [
        'MERGE INTO "SHOP"."t" t USING (VALUES (CAST(1 AS INTEGER),\'sixsix\'),'
        '(CAST(2 AS INTEGER),CAST(NULL AS VARCHAR(5)))) AS s ("id", "name") ON (t."id" = s."id") '
        'WHEN MATCHED THEN UPDATE SET "name" = s."name" '
        'WHEN NOT MATCHED THEN INSERT ("id", "name") VALUES (s."id", s."name")'
    ]


def test_rows_of_one_key_go_in_statements_of_their_own():
    link = Link()
    how = {"mode": "upsert", "key_columns": ("id",)}
    target_of(link, ID, NAME, **how).send(pa.record_batch({"id": [1, 1], "name": ["a", "b"]}))
    assert ["'a'" in change for change in changes(link)] == [True, False]


def test_an_update_leaves_out_rows_that_are_not_there():
    link = Link(("WHERE NOT EXISTS", lambda text: [(1,)] if ",1)" in text else []))
    how = {"mode": "update", "key_columns": ("id",)}
    sent = target_of(link, ID, NAME, **how).send(pa.record_batch({"id": [1, 9], "name": ["a", "b"]}))
    assert reasons(sent) == {1: "missing_row"}
    assert changes(link)[0] == (
        'SELECT s."rowsmith row" FROM (VALUES (CAST(1 AS INTEGER),0),(CAST(9 AS INTEGER),1)) AS s '
        '("id", "rowsmith row") WHERE NOT EXISTS (SELECT 1 FROM "SHOP"."t" t WHERE t."id" = s."id")'
    )
    assert changes(link)[-1] == (
        'MERGE INTO "SHOP"."t" t USING (VALUES (CAST(1 AS INTEGER),\'a\')) AS s ("id", "name") '
        'ON (t."id" = s."id") WHEN MATCHED THEN UPDATE SET "name" = s."name"'
    )


def test_a_delete_names_its_keys():
    link = Link()
    target = target_of(link, ID, key_columns=("id",))
    assert target.delete(pa.record_batch({"id": [3, 4]})).failures == []
    assert changes(link)[-1] == (
        'DELETE FROM "SHOP"."t" WHERE ("id") IN (VALUES (CAST(3 AS INTEGER)),(CAST(4 AS INTEGER)))'
    )


def test_captured_keys_are_assigned_to_rows_in_any_response_order():
    link = Link(("FINAL TABLE", [(1, 12), (0, 11)]))
    sent = target_of(link, NAME, capture=("id",)).send(pa.record_batch({"name": ["a", "b"]}))
    assert sent.keys.to_pydict() == {"id": [11, 12]}
    assert changes(link) == [
        'SELECT "rowsmith row", "id" FROM FINAL TABLE (INSERT INTO "SHOP"."t" ("name") '
        "INCLUDE (\"rowsmith row\" INTEGER) VALUES ('a',0),('b',1))"
    ]


def test_capturing_keys_of_an_upsert_is_rejected():
    with pytest.raises(ConnectorError) as caught:
        target_of(Link(), ID, NAME, mode="upsert", key_columns=("id",), capture=("id",))
    assert caught.value.reason == "unsupported"


@pytest.mark.parametrize(
    ("column", "value", "literal"),
    [
        (Column("v", "boolean", "BOOLEAN"), True, "TRUE"),
        (Column("v", "integer", "SMALLINT", bits=16), True, "1"),
        (Column("v", "integer", "BIGINT", bits=64), 2**63 - 1, "9223372036854775807"),
        (Column("v", "decimal", "DECIMAL(5,2)", precision=5, scale=2), "1.50", "1.50"),
        (Column("v", "float", "DOUBLE"), 0.1, "0.1"),
        (Column("v", "date", "DATE"), dt.date(2024, 2, 29), "'2024-02-29'"),
        (Column("v", "time", "TIME"), dt.time(1, 2, 3, 4), "'01:02:03'"),
        (Column("v", "timestamp", "TIMESTAMP(6)"), MOMENT, "'2024-01-02 03:04:05.000006'"),
        (Column("v", "text", "VARGRAPHIC(9)"), "é😀\n", "'é😀'||CHR(10)||''"),
        (Column("v", "text", "CLOB(1048576)"), "", "''"),
        (Column("v", "binary", "BLOB(9)"), b"\0\xff", "BLOB(BX'00ff')"),
        (Column("v", "binary", "VARBINARY(9)"), b"\0\xff", "BX'00ff'"),
        (Column("v", "binary", "CHARACTER(2) FOR BIT DATA"), b"\0\xff", "X'00ff'"),
    ],
)
def test_values_of_every_type_are_written_as_db2_reads_them(column, value, literal):
    link = Link()
    sent = target_of(link, column, entity=Entity("t", ("S", "t"), (column,))).send(
        pa.record_batch({"v": [value]})
    )
    assert sent.failures == []
    assert changes(link) == [f'INSERT INTO "S"."t" ("v") VALUES ({literal})']


def test_texts_and_bytes_too_long_for_one_literal_are_put_together():
    link = Link()
    columns = (Column("c", "text", "CLOB(2147483647)"), Column("b", "binary", "BLOB(2147483647)"))
    batch = pa.record_batch({"c": ["x" * 40_000], "b": [b"y" * 20_000]})
    target_of(link, *columns, entity=Entity("t", ("S", "t"), columns)).send(batch)
    (statement,) = changes(link)
    assert statement.count("TO_CLOB('") > 1
    assert statement.count("BLOB(BX'") == 3
    assert max(map(len, statement.split("'"))) <= 32_672


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        (Column("v", "float", "DOUBLE"), float("nan"), "out_of_range"),
        (Column("v", "float", "DOUBLE"), float("-inf"), "out_of_range"),
        (Column("v", "integer", "SMALLINT", bits=16), 40_000, "out_of_range"),
        (Column("v", "decimal", "DECIMAL(5,2)", precision=5, scale=2), "1000.00", "out_of_range"),
        (Column("v", "date", "DATE"), "2021-02-30", "wrong_type"),
        (Column("v", "text", "VARCHAR(9)"), "a\0b", "wrong_type"),
    ],
)
def test_values_that_no_literal_supports_are_reported_before_sending(column, value, reason):
    link = Link()
    sent = target_of(link, column, entity=Entity("t", ("S", "t"), (column,))).send(
        pa.record_batch({"v": [value]})
    )
    assert reasons(sent) == {0: reason}
    assert changes(link) == []


def test_statements_for_people_are_of_one_row_each():
    rows = pa.record_batch({"id": [1], "name": ["a"]})
    key = {"key_columns": ("id",)}
    assert target_of(Link(), ID, NAME).statements(rows) == [
        """INSERT INTO "SHOP"."t" ("id", "name") VALUES (1, 'a');"""
    ]
    assert target_of(Link(), ID, NAME, mode="update", **key).statements(rows) == [
        """UPDATE "SHOP"."t" SET "name" = 'a' WHERE "id" = 1;"""
    ]
    (merge,) = target_of(Link(), ID, NAME, mode="upsert", **key).statements(rows)
    assert 'SELECT 1 AS "id", \'a\' AS "name" FROM SYSIBM.SYSDUMMY1' in merge


# --- Refused rows -------------------------------------------------------------------------------------------


def test_the_rejected_row_is_found_and_the_others_are_written():
    duplicate = said(
        -803, "23505", 'constrains table "SHOP.T" from having duplicate values for the index key.'
    )
    link = Link(("INSERT", lambda text: duplicate if "(3)" in text else None))
    sent = target_of(link, ID).send(pa.record_batch({"id": [1, 2, 3, 4]}))
    assert [(failure.index, failure.reason, failure.native) for failure in sent.failures] == [
        (2, "unique", "-803")
    ]
    undone = link.told.count("ROLLBACK TO SAVEPOINT rowsmith")
    assert undone == len([item for item in link.told if "INSERT" in item and "(3)" in item])
    assert changes(link)[-1].endswith("VALUES (4)")


def test_missing_values_are_found_without_halving():
    null = said(
        -407, "23502", 'Assignment of a NULL value to a NOT NULL column "TBSPACEID=2, TABLEID=4, COLNO=1" ..'
    )
    link = Link(("INSERT", lambda text: null if "NULL" in text else None))
    sent = target_of(link, ID, NAME).send(
        pa.record_batch({"id": [1, 2, 3, 4], "name": ["a", None, "c", None]})
    )
    assert [(failure.index, failure.reason, failure.column) for failure in sent.failures] == [
        (1, "not_null", "name"), (3, "not_null", "name"),
    ]  # fmt: skip
    assert len([item for item in link.told if "INSERT" in item]) == 2


@pytest.mark.parametrize(
    ("code", "state", "reason"),
    [
        (-803, "23505", "unique"), (-788, "21506", "unique"), (-530, "23503", "foreign_key"),
        (-531, "23504", "foreign_key"), (-532, "23504", "foreign_key"), (-407, "23502", "not_null"),
        (-545, "23513", "check"), (-433, "22001", "too_long"), (-302, "22001", "too_long"),
        (-413, "22003", "out_of_range"), (-406, "22003", "out_of_range"), (-420, "22018", "wrong_type"),
        (-180, "22007", "wrong_type"), (-438, "75001", "refused"), (-4743, "75001", "refused"),
    ],
)  # fmt: skip
def test_errors_of_one_row_have_their_reasons(code, state, reason):
    found = row_rejection(convert_error(said(code, state, "It is so.")), TABLE)
    assert (found.reason, found.native, found.message) == (reason, str(code), f"SQL{-code:04d}N It is so.")


@pytest.mark.parametrize(
    ("code", "state", "reason", "transient"),
    [
        (-30082, "08001", "auth_failed", False), (-1403, "08004", "auth_failed", False),
        (-1060, "08004", "auth_failed", False), (-1013, "42705", "no_database", False),
        (-30061, "08004", "no_database", False), (-551, "42501", "no_permission", False),
        (-204, "42704", "no_table", False), (-206, "42703", "no_column", False), (-601, "42710", "exists", False),
        (-289, "57011", "full", False), (-964, "57011", "full", True), (-1776, "51034", "read_only", False),
        (-668, "57016", "not_ready", False), (-798, "428C9", "unsupported", False),
        (-104, "42601", "bad_query", False), (-952, "57014", "cancelled", False), (-9999, "58004", "failed", False),
    ],
)  # fmt: skip
def test_errors_of_everything_else_end_the_push(code, state, reason, transient):
    error = convert_error(said(code, state, "x"))
    assert (error.reason, error.transient, row_rejection(error, TABLE)) == (reason, transient, None)
    link = Link(("INSERT", said(code, state, "x")))
    with pytest.raises(ConnectorError) as caught:
        target_of(link, ID).send(pa.record_batch({"id": [1]}))
    assert caught.value.reason == reason


@pytest.mark.parametrize(("reason_code", "reason"), [("2", "conflict"), ("68", "locked")])
@pytest.mark.parametrize("code", [-911, -913])
def test_deadlocks_and_lock_timeouts_are_distinguished(code, reason_code, reason):
    text = f'The current transaction has been rolled back ...  Reason code "{reason_code}".'
    error = convert_error(said(code, "40001", text))
    assert (error.reason, error.transient) == (reason, True)


@pytest.mark.parametrize(
    "text",
    [
        said(
            -30081,
            "08001",
            'A communication error has been detected. Communication protocol being used: "TCP/IP".',
        ),
        said(
            -30081, "08001", 'protocol being used: "SSL". Function detecting the error: "sqlccSSLSocketRead".'
        ),
        said(-1224, "55032", "The database manager is not able to accept new requests."),
        f"{PREFIX}CLI0106E  Connection is closed. SQLSTATE=08003 SQLCODE=-99999",
    ],
)
def test_a_connection_that_went_away_is_lost(text):
    assert isinstance(convert_error(text), ConnectionLost)


def test_an_encryption_error_is_reported_as_such():
    text = said(
        -30081, "08001", 'Communication protocol being used: "SSL". Location "sqlccSSLSocketSetup" "414"'
    )
    assert convert_error(text).reason == "tls_failed"
    assert (
        convert_error(said(-20576, "08001", "a TLS connection could not be established")).reason
        == "tls_failed"
    )


def test_a_refusal_names_the_column_of_its_foreign_key():
    entity = Entity("T", ("SHOP", "T"), (ID, NAME), relations=(Relation("FK1", ("name",), "P", ("ID",)),))
    error = convert_error(
        said(-530, "23503", 'The insert or update value of the FOREIGN KEY "SHOP.T.FK1" is not equal')
    )
    assert row_rejection(error, entity).column == "name"
