"""Values that do not fit are reported before sending: each with its row, its reason and a possible cause."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from webapp import limits
from webapp.connectors.postgresql import connector
from webapp.connectors.schema import Column, Entity, Relation
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.generation.services.row_makers import SubmittedRows, TemplateRows, table_of_rows
from webapp.pushes.services import planning, value_checks
from webapp.pushes.services.mapping import RequestedMapping
from webapp.pushes.services.planning import RequestedTable
from webapp.pushes.services.value_checks import column_mismatches
from webapp.row_templates.services import compiled_plans

NOW = datetime(2026, 11, 21, tzinfo=UTC)
CAN = connector.PostgresqlConnector.can


class Known:
    """A session that knows some keys."""

    def __init__(self, *keys) -> None:
        self.keys, self.asked = set(keys), 0

    def entity(self, name):
        return Entity(name, (name,), ())

    def contains(self, entity, columns, wanted):
        self.asked += wanted.num_rows
        rows = zip(*(column.to_pylist() for column in wanted.columns), strict=True)
        return pa.array([(entity.name, *row) in self.keys for row in rows])


def planned(maker, *columns: Column, count: int, **more):
    entity = Entity("t", ("t",), columns, **more)
    result = planning.plan_table(
        RequestedTable("T", "t", maker, count, RequestedMapping({}, {}), entity), CAN, "psh", 0
    )
    assert result.faults == []
    return result


def checked(rows: list[dict], *columns: Column, session=None, **more):
    """Column, row and reason of every misfit of given rows."""
    result = planned(SubmittedRows(table_of_rows(rows), "s", NOW), *columns, count=len(rows), **more)
    found, count = value_checks.check(result, result.rows(0), session or Known(), [], "postgresql")
    assert count == len(rows)
    return [(mismatch.column, mismatch.row, mismatch.reason) for mismatch in found]


def bound(fields: list[dict]) -> TemplateRows:
    source = compiled_plans.compile_draft("t", fields, 10, None, None)
    return TemplateRows(BoundPlan(source.plan, GenerationContext("s", NOW)))


def text(name: str, **more) -> Column:
    return Column(name, "text", "varchar", **more)


def test_lengths_are_counted_in_characters():
    rows = [{"a": "12345"}, {"a": "123456"}, {"a": "😀" * 5}, {"a": None}]
    assert checked(rows, text("a", max_length=5)) == [("a", 2, "too_long")]


def test_a_null_where_none_may_be():
    assert checked([{"a": 1}, {"a": None}], Column("a", "integer", "int", nullable=False)) == [
        ("a", 2, "not_null")
    ]


@pytest.mark.parametrize(
    ("column", "good", "bad", "reason"),
    [
        (Column("a", "integer", "smallint", bits=16), [-32768, 32767], [32768, -32769], "out_of_range"),
        (
            Column("a", "integer", "int unsigned", bits=32, unsigned=True),
            [0, 2**32 - 1],
            [-1, 2**32],
            "out_of_range",
        ),
        (Column("a", "integer", "bigint", bits=64), [2**63 - 1], [], "out_of_range"),
        (
            Column("a", "decimal", "numeric(4,2)", precision=4, scale=2),
            [99.99, -99.5],
            [100.0],
            "out_of_range",
        ),
        (Column("a", "integer", "int", bits=32), [1.0, 2.0], [1.5], "wrong_type"),
        (Column("a", "enum", "mood", choices=("sad", "ok")), ["ok"], ["happy", ""], "enum"),
        (Column("a", "uuid", "uuid"), ["6f1c0a3e-1111-4222-8333-444455556666"], ["6f1c0a3e"], "wrong_type"),
        (Column("a", "date", "date"), ["2026-11-21"], ["21.11.2026"], "wrong_type"),
        (Column("a", "json", "jsonb"), ['{"a": 1}', "1"], ["{a: 1}"], "wrong_type"),
        (Column("a", "decimal", "numeric"), ["1e5", "-.5"], ["1,5", "abc"], "wrong_type"),
        (Column("a", "boolean", "boolean"), ["true", "f", "1"], ["maybe"], "wrong_type"),
        (Column("a", "date", "date"), [], [1, 2], "wrong_type"),
    ],
)
def test_values_that_a_column_does_not_take(column, good, bad, reason):
    found = checked([{"a": item} for item in [*good, *bad]], column)
    assert found == [("a", len(good) + place, reason) for place in range(1, len(bad) + 1)]


def test_digits_that_would_be_rounded_away_are_reported():
    column = Column("a", "decimal", "numeric(10,2)", precision=10, scale=2)
    values = pa.array([1, 2], pa.decimal128(10, 4))
    values = pa.array([value.as_py() / 8 for value in values], pa.decimal128(10, 4))
    assert [value[0] for value in column_mismatches(column, values, "postgresql") if value[1].true_count] == [
        "precision"
    ]


def test_years_that_a_kind_of_target_does_not_have():
    column = Column("a", "timestamp", "datetime")
    values = pa.array(["1700-01-01", "1800-01-01"]).cast(pa.timestamp("us"))
    result = {
        kind: [value[1].to_pylist() for value in column_mismatches(column, values, kind)]
        for kind in ("mssql", "sqlite")
    }
    assert result == {"mssql": [[True, False]], "sqlite": []}


def test_values_that_repeat_in_the_rows_themselves():
    rows = [
        {"a": 1, "b": "x"},
        {"a": 2, "b": "x"},
        {"a": 1, "b": "y"},
        {"a": 2, "b": "x"},
        {"a": None, "b": None},
    ]
    columns = Column("a", "integer", "int"), text("b")
    assert checked(rows, *columns, uniques=(("a", "b"),)) == [("a", 4, "unique")]
    columns = Column("a", "integer", "int", unique=True), text("b")
    assert checked(rows, *columns) == [("a", 3, "unique"), ("a", 4, "unique")]


def test_values_that_the_target_has_already():
    session = Known(("t", 7))
    columns = (Column("a", "integer", "int", unique=True),)
    assert checked([{"a": 6}, {"a": 7}], *columns, session=session) == [("a", 2, "unique")]


def test_keys_that_are_in_no_row_of_the_other_table_and_each_is_asked_once():
    session = Known(("parents", 1))
    relation = Relation("fk", ("a",), "parents", ("id",))
    rows = [{"a": 1}, {"a": 5}, {"a": 1}, {"a": None}, {"a": 5}]
    found = checked(rows, Column("a", "integer", "int"), session=session, relations=(relation,))
    assert found == [("a", 2, "foreign_key"), ("a", 5, "foreign_key")]
    assert session.asked == 2


def test_keys_of_tables_in_the_same_push_are_not_looked_for():
    relation = Relation("fk", ("a",), "parents", ("id",))
    result = planned(
        SubmittedRows(table_of_rows([{"a": 1}]), "s", NOW),
        Column("a", "integer", "int"),
        count=1,
        relations=(relation,),
    )
    session = Known()
    assert value_checks.check(result, result.rows(0), session, ["parents"], "postgresql") == ([], 1)
    assert session.asked == 0


def test_possible_misfits_of_fields_are_reported_without_rows():
    fields = [
        {"name": "few", "type": "number", "options": {"min": 0, "max": 70_000}},
        {"name": "blank", "type": "first_name", "percent_blank": 0.0001},
        {"name": "once", "type": "number", "options": {"min": 1, "max": 5}},
    ]
    columns = (
        Column("few", "integer", "smallint", bits=16),
        text("blank", nullable=False, max_length=3),
        Column("once", "integer", "int", unique=True),
    )
    outcome = planned(bound(fields), *columns, count=10)
    result = [
        (mismatch.column, mismatch.reason, mismatch.row)
        for mismatch in value_checks.schema_mismatches(outcome)
    ]
    assert result == [
        ("few", "out_of_range", None),
        ("blank", "too_long", None),
        ("blank", "not_null", None),
        ("once", "unique", None),
    ]


def test_a_field_that_never_repeats_fits_a_unique_column():
    fields = [{"name": "id", "type": "row_number"}, {"name": "key", "type": "uuid"}]
    columns = Column("id", "integer", "bigint", key=True, bits=64), Column("key", "uuid", "uuid", unique=True)
    result = planned(bound(fields), *columns, count=100_000, keys=("id",))
    assert list(value_checks.schema_mismatches(result)) == []


def test_values_are_looked_at_up_to_a_block_and_listed_up_to_a_limit():
    rows = [{"a": "x" * 9}] * (limits.BLOCK_ROWS + 5)
    result = planned(SubmittedRows(table_of_rows(rows), "s", NOW), text("a", max_length=5), count=len(rows))
    found, count = value_checks.check(result, result.rows(0), Known(), [], "postgresql")
    assert (len(found), count) == (limits.LISTED_MISFITS, limits.BLOCK_ROWS)


def test_sensitive_values_are_not_shown():
    maker = bound([{"name": "a", "type": "first_name", "sensitive": True}])
    result = planned(maker, text("a", max_length=1), count=3)
    found, _ = value_checks.check(result, result.rows(0), Known(), [], "postgresql")
    assert {mismatch.value for mismatch in found} == {"********"}


def test_rows_are_generated_again_in_any_order():
    maker = bound([{"name": "id", "type": "row_number"}, {"name": "n", "type": "number"}])
    result = planned(maker, Column("id", "integer", "int"), Column("n", "integer", "int"), count=50)
    table = result.rows(0)
    every = table.batch(np.arange(50, dtype=np.uint64)).to_pylist()
    some = np.array([49, 3, 3, 17], np.uint64)
    assert table.batch(some).to_pylist() == [every[place] for place in some]
