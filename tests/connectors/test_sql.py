"""What the SQL kinds share: readable statements, tables from columns, parameters, failures, and the sieve."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.connectors.base import REASONS, ConnectorError, WriteSpec
from webapp.connectors.column_values import convert_to_column, from_objects, from_texts, to_hex
from webapp.connectors.row_isolation import BatchSizer, RowRejection, isolate_bad_rows
from webapp.connectors.schema import Column, Entity
from webapp.connectors.sql import base as sql
from webapp.engine.formats.sql_dialects import DIALECTS

ID, NAME = Column("id", "integer", "bigint", nullable=False, key=True), Column("na me", "text", "text")
TABLE = Entity("t", ("s", "t"), (ID, NAME), keys=("id",))
ROW = pa.record_batch({"id": [1], "na me": ["it's"]})


@pytest.mark.parametrize(
    ("dialect", "mode", "statement"),
    [
        ("postgresql", "insert", """INSERT INTO "s"."t" ("id", "na me") VALUES (1, 'it''s');"""),
        ("mysql", "insert", "INSERT INTO `s`.`t` (`id`, `na me`) VALUES (1, 'it''s');"),
        ("mssql", "insert", "INSERT INTO [s].[t] ([id], [na me]) VALUES (1, N'it''s');"),
        (
            "postgresql",
            "upsert",
            """INSERT INTO "s"."t" ("id", "na me") VALUES (1, 'it''s')"""
            """ ON CONFLICT ("id") DO UPDATE SET "na me" = excluded."na me";""",
        ),
        (
            "mysql",
            "upsert",
            "INSERT INTO `s`.`t` (`id`, `na me`) VALUES (1, 'it''s')"
            " ON DUPLICATE KEY UPDATE `na me` = VALUES(`na me`);",
        ),
        (
            "oracle",
            "upsert",
            """MERGE INTO "s"."t" t USING (SELECT 1 AS "id", 'it''s' AS "na me" FROM DUAL) s ON (t."id" = s."id")"""
            """ WHEN MATCHED THEN UPDATE SET t."na me" = s."na me" """
            """WHEN NOT MATCHED THEN INSERT ("id", "na me") VALUES (s."id", s."na me");""",
        ),
        ("ansi", "update", """UPDATE "s"."t" SET "na me" = 'it''s' WHERE "id" = 1;"""),
    ],
)
def test_statements_read_as_a_person_writes_them(dialect, mode, statement):
    writing = WriteSpec(TABLE, (ID, NAME), mode, key_columns=("id",))
    assert sql.statements(DIALECTS[dialect], writing, ROW) == [statement]


@pytest.mark.parametrize(
    ("array", "type", "words"),
    [
        (pa.array([True, None]), "boolean", ["TRUE", "NULL"]),
        (pa.array([True]), "integer", ["1"]),
        (pa.array([dt.date(2024, 1, 31)]), "date", ["'2024-01-31'"]),
        (pa.array([1], pa.timestamp("s", "UTC")), "timestamptz", ["'1970-01-01 00:00:01+00:00'"]),
        (pa.array([b"\0\xff"]), "binary", ["'\\x00ff'"]),
        (pa.array([Decimal("1.50")]), "decimal", ["1.50"]),
        (pa.array([3.0, 2.5, None]), "integer", ["3", "2.5", "NULL"]),
        (pa.array(["12", "1 or 2"]), "integer", ["12", "'1 or 2'"]),
        (pa.array([[1, 2]]), "json", ["'[1,2]'"]),
        (pa.array(["a", "b"]).dictionary_encode(), "text", ["'a'", "'b'"]),
    ],
)  # fmt: skip
def test_values_are_literals_of_their_columns(array, type, words):
    assert sql.literals(DIALECTS["postgresql"], array, Column("c", type, "")) == words


def test_a_table_is_made_of_columns_for_every_dialect():
    columns = [
        Column("id", "text", "", max_length=400), Column("n", "decimal", "", precision=50, scale=60),
        Column("b", "binary", ""), Column("a", "array", "", items="integer"), Column("i", "integer", "", unsigned=True),
        Column("o", "other", ""), Column("t", "timestamptz", "", nullable=False),
    ]  # fmt: skip
    for dialect in DIALECTS.values():
        statement = sql.create_statement(dialect, ("t",), columns, ["id"])
        assert statement.count("\n") == len(columns) + 2, dialect.name
        assert "PRIMARY KEY" in statement
        assert "{" not in statement


def test_a_query_has_markers_for_its_places_in_order():
    values = {"a": 1, "b": "x"}
    assert sql.bind_parameters("SELECT {{a}}, '{{b}}', 100 % {{ a }};", values, "%s", doubled_chars="%") == (
        "SELECT %s, %s, 100 %% %s", [1, "x", 1],
    )  # fmt: skip
    assert sql.bind_parameters("{{b|upper}} {{a}}", values, ":{}") == (":1 :2", ["X", 1])
    with pytest.raises(ConnectorError) as caught:
        sql.bind_parameters("{{c}}", values, "?")
    assert "a, b" in caught.value.hint


@pytest.mark.parametrize(
    ("state", "of_row", "reason"),
    [
        ("23505", True, "unique"), ("23503", True, "foreign_key"), ("23502", True, "not_null"),
        ("23514", True, "check"),
        ("22001", True, "too_long"), ("22003", True, "out_of_range"), ("22P02", True, "wrong_type"),
        ("P0001", True, "refused"), ("ABCDE", True, "refused"), ("54000", True, "too_long"), ("42501", False, None),
        ("40P01", False, None), ("57014", False, None), ("08006", False, None), ("", False, None),
    ],
)  # fmt: skip
def test_states_are_of_a_row_or_of_the_whole(state, of_row, reason):
    assert sql.is_row_error(state) is of_row
    if of_row:
        assert sql.reason_of(state) == reason
        assert reason in REASONS


def test_values_are_fitted_to_their_columns():
    text, whole, binary = Column("c", "text", ""), Column("c", "integer", ""), Column("c", "binary", "")
    assert convert_to_column(pa.array([1.0, 2.5, None]), whole).to_pylist() == ["1", "2.5", None]
    assert convert_to_column(pa.array(["é", None]), binary).to_pylist() == ["é".encode(), None]
    assert convert_to_column(pa.array([{"a": 1}, None]), text).to_pylist() == ['{"a":1}', None]
    assert convert_to_column(pa.array([1], pa.int16()), whole).type == pa.int64()
    assert convert_to_column(pa.array(["a"], pa.large_string()), text).type == pa.string()


@given(st.lists(st.none() | st.binary()))
def test_bytes_are_written_as_hexadecimal_digits(values):
    array = pa.array([b"before", *values], pa.binary()).slice(1)
    assert to_hex(array).to_pylist() == [value if value is None else value.hex() for value in values]


def test_values_that_do_not_match_their_type_are_read_as_text():
    assert from_texts(["2024-01-31", None], "date").to_pylist() == [dt.date(2024, 1, 31), None]
    assert from_texts(["infinity", "2024-01-31"], "date").to_pylist() == ["infinity", "2024-01-31"]
    assert from_texts(["9" * 50], "decimal").to_pylist() == ["9" * 50]
    assert from_texts(["t", "f", None], "boolean").to_pylist() == [True, False, None]
    assert from_objects([1, "a", None]).to_pylist() == ["1", "a", None]


@given(
    st.sets(st.integers(0, 59)),
    st.sampled_from(["line", "key", "nothing"]),
    st.sampled_from([None, (1, 7, 1), (4, 99, 20)]),
)
def test_the_sieve_takes_out_exactly_the_bad_rows_and_keeps_the_order(bad, hint, batch_sizer):
    taken: list[int] = []

    def attempt(piece):
        places = np.flatnonzero(np.isin(piece, list(bad)))
        if not places.size:
            taken.extend(piece.tolist())
            return None
        at = int(places[0]) if hint == "line" else None
        return RowRejection("check", "no", at=at, bad=places[-1:] if hint == "key" else None)

    failures = isolate_bad_rows(np.arange(60), attempt, batch_sizer and BatchSizer(*batch_sizer))
    assert [failure.index for failure in failures] == sorted(bad)
    assert taken == [row for row in range(60) if row not in bad]


def test_pieces_grow_while_rows_go_through_and_shrink_where_they_do_not():
    batch_sizer = BatchSizer(10, 1_000, 50)
    assert batch_sizer.rows == 1_000
    batch_sizer.record_stop(100)
    assert batch_sizer.rows == 100  # the square root of 2 * 50 * 100
    batch_sizer.record_accepted(100)  # those before the bad row, again
    batch_sizer.record_accepted(100)
    assert batch_sizer.rows == 100
    batch_sizer.record_accepted(300)
    assert batch_sizer.rows == 200
    for _ in range(20):
        batch_sizer.record_stop(0)
    assert batch_sizer.rows == 10
    batch_sizer.record_accepted(100_000)
    assert batch_sizer.rows == 1_000
