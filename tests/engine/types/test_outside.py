"""Values from outside: rows are made of answers that the caller hands in, and of nothing else."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from webapp.engine import external_values, groups
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.data import vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.external_values import ExternalResponse, RequestRecorder
from webapp.engine.plan import Plan, compile_plan
from webapp.engine.spec import parse

NOW = datetime(2026, 1, 31, tzinfo=UTC)
KEYS = pa.table({"id": [7, 8, 9, 10]})
PAIRS = pa.table({"no": [1, 1, 2, 2, 3], "region": ["e", "w", "e", "w", "n"]})


def key(name: str = "k", column: str = "id", **common: Any) -> dict[str, Any]:
    more = common.pop("options", {})
    options = {"connection_id": "con", "table": "customers", "column": column, **more}
    return {"name": name, "type": "foreign_key", "options": options, **common}


def ask(name: str = "q", query: str = "select name from t", **common: Any) -> dict[str, Any]:
    more = common.pop("options", {})
    return {
        "name": name,
        "type": "db_response",
        "options": {"connection_id": "con", "query": query, **more},
        **common,
    }


def planned(*fields: dict[str, Any]) -> Plan:
    return compile_plan(groups.assign(parse(list(fields))), vocabulary.open_default())


def answered(plan: Plan, *tables: pa.Table) -> Plan:
    return plan.with_responses(
        {
            request.query.key: ExternalResponse(table, "s")
            for request, table in zip(plan.external_requests, tables, strict=True)
        }
    )


def rows(plan: Plan, start: int = 0, count: int = 1000, seed: str = "s") -> dict[str, list]:
    bound = BoundPlan(plan, GenerationContext(seed, NOW))
    bound.check(start, count)
    return pa.table(bound.block(start, count), names=bound.schema.names).to_pydict()


def faults(*fields: dict[str, Any], tables: tuple[pa.Table, ...] = ()) -> dict[str, str]:
    try:
        answered(planned(*fields), *tables) if tables else planned(*fields)
    except SpecError as error:
        return {fault.path: fault.code for fault in error.faults}
    return {}


def sets(**answers: list) -> tuple[pa.Array, pa.Table, np.ndarray]:
    """The answer to a keyed question: names by the key of the set."""
    keys = sorted(answers)
    table = pa.table({"name": pa.array([name for key in keys for name in answers[key]], pa.string())})
    return pa.array(keys), table, np.cumsum([0, *(len(answers[key]) for key in keys)])


def keyed(plan: Plan, place: int = 0, **answers: list) -> Plan:
    keys, table, starts = sets(**answers)
    return plan.with_responses(
        {plan.external_requests[place].query.key: ExternalResponse(table, "s", keys, starts)}
    )


CODES = {"name": "code", "type": "list_sequential", "options": {"values": ["a", "b", "a"]}}


def test_every_row_takes_a_key_of_the_list_each_about_as_often():
    counted = Counter(rows(answered(planned(key()), KEYS), count=8_000)["k"])
    assert set(counted) == {7, 8, 9, 10}
    assert all(1_850 < times < 2_150 for times in counted.values())


def test_any_rows_are_part_of_the_whole_and_depend_only_on_seed_and_list():
    plan = answered(planned(key(id="fld_01J00000000000000000000000")), KEYS)
    whole = rows(plan)["k"]
    assert rows(plan, 700, 10)["k"] == whole[700:710]
    assert rows(plan, 0, 3)["k"] == whole[:3]
    assert rows(plan, seed="t")["k"] != whole
    other = answered(planned(key("renamed", id="fld_01J00000000000000000000000")), KEYS)
    assert rows(other)["renamed"] == whole


def test_columns_of_a_group_are_those_of_one_row():
    plan = answered(planned(key("a", "no"), key("b", "region")), PAIRS)
    generated = rows(plan)
    assert set(zip(generated["a"], generated["b"], strict=True)) == {
        (1, "e"),
        (1, "w"),
        (2, "e"),
        (2, "w"),
        (3, "n"),
    }


def test_columns_of_two_groups_are_drawn_apart():
    plan = planned(key("a", group="one"), key("b", group="two"))
    generated = rows(answered(plan, KEYS))  # one list for both
    assert len(set(zip(generated["a"], generated["b"], strict=True))) == 16


def test_unique_uses_each_key_once_and_rejects_one_row_more():
    plan = answered(planned(key(unique=True)), KEYS)
    assert sorted(rows(plan, count=4)["k"]) == [7, 8, 9, 10]
    with pytest.raises(SpecError, match=r"5 values were requested and only 4 exist") as error:
        rows(plan, count=5)
    assert error.value.faults[0].path == "fields[0].unique"


def test_a_key_of_several_columns_is_unique_as_a_whole():
    plan = answered(planned(key("a", "no", unique="pair"), key("b", "region", unique="pair")), PAIRS)
    generated = rows(plan, count=5)
    assert len(set(zip(generated["a"], generated["b"], strict=True))) == 5
    with pytest.raises(SpecError):
        rows(plan, count=6)


def test_unique_in_one_column_of_several_holds_in_that_column():
    plan = answered(planned(key("a", "no", unique=True), key("b", "region")), PAIRS)
    assert sorted(rows(plan, count=3)["a"]) == [1, 2, 3]
    with pytest.raises(SpecError):
        rows(plan, count=4)


def test_fields_of_a_composite_key_are_blank_together():
    plan = answered(planned(key("a", "no", percent_blank=30), key("b", "region")), PAIRS)
    generated = rows(plan)
    assert [item is None for item in generated["a"]] == [item is None for item in generated["b"]]
    assert generated["a"].count(None) == 300


EMPTY = pa.table({"id": pa.array([], pa.int64())})


def test_an_empty_list_is_an_error_blank_or_the_default_as_the_option_says():
    assert faults(key(), tables=(EMPTY,)) == {"fields[0]": "empty_answer"}
    blank = answered(planned(key(options={"on_empty": "blank"})), EMPTY)
    assert rows(blank, count=3)["k"] == [None] * 3
    fixed = answered(planned(key(options={"on_empty": "default", "default": 5})), EMPTY)
    assert rows(fixed, count=3)["k"] == [5] * 3


def test_without_a_response_every_row_has_the_placeholder():
    plan = planned(key(), ask(), ask("n", options={"kind": "decimal", "decimals": 3}))
    generated = rows(plan, count=3)
    assert generated == {"k": [4711] * 3, "q": ["example"] * 3, "n": [Decimal("1.000")] * 3}


def test_a_query_without_fields_is_a_list_to_draw_from():
    plan = answered(planned(ask()), pa.table({"name": ["x", "y", None]}))
    assert set(rows(plan)["q"]) == {"x", "y", None}


def test_fields_with_the_same_query_show_the_same_row_of_its_answer():
    plan = planned(ask("a"), ask("b", options={"column": "no"}))
    generated = rows(answered(plan, pa.table({"name": ["x", "y", "z"], "no": [1, 2, 3]})))
    assert set(zip(generated["a"], generated["b"], strict=True)) == {("x", 1), ("y", 2), ("z", 3)}


def test_a_query_with_fields_is_asked_once_for_each_set_of_values():
    plan = planned(CODES, ask(query="select name from t where code = {{code}}"))
    recorder = RequestRecorder(10)
    bound = BoundPlan(plan, GenerationContext("s", NOW, recorder=recorder))
    bound.block(0, 500)
    (found,) = recorder.values.values()
    assert found == {"a": ("a",), "b": ("b",)}
    generated = rows(keyed(plan, a=["A"], b=["B1", "B2"]), count=500)
    assert set(zip(generated["code"], generated["q"], strict=True)) == {("a", "A"), ("b", "B1"), ("b", "B2")}


def test_values_are_distinguished_whatever_they_contain():
    columns = [pa.array(["a\x1f", "a", "\\0", None]), pa.array(["b", "\x1fb", "x", "x"])]
    assert len(set(external_values.value_set_keys(columns).to_pylist())) == 4


def test_a_query_can_depend_on_the_response_of_another():
    plan = planned(CODES, ask("first", "one {{code}}"), ask("second", "two {{first}}"))
    assert [(request.path, request.level) for request in plan.external_requests] == [
        ("fields[1]", 0),
        ("fields[2]", 1),
    ]
    half = keyed(plan, a=["x"], b=["y"])
    recorder = RequestRecorder(10)
    BoundPlan(half, GenerationContext("s", NOW, recorder=recorder)).block(0, 10)
    assert sorted(recorder.values[plan.external_requests[1].query.key]) == ["x", "y"]


def test_too_many_different_requests_are_rejected_by_number():
    plan = planned({"name": "code", "type": "row_number"}, ask(query="{{code}}"))
    with pytest.raises(SpecError, match="more than 100") as error:
        BoundPlan(plan, GenerationContext("s", NOW, recorder=RequestRecorder(100))).block(0, 101)
    assert error.value.faults[0].path == "fields[1]"


def test_a_set_of_values_without_rows_is_an_error_unless_the_field_says_otherwise():
    query = "select name from t where code = {{code}}"
    with pytest.raises(SpecError, match="1 of 2 sets of values, such as b"):
        keyed(planned(CODES, ask(query=query)), a=["A"], b=[])
    blank = keyed(planned(CODES, ask(query=query, options={"on_empty": "blank"})), a=["A"], b=[])
    assert rows(blank, count=3)["q"] == ["A", None, "A"]
    filled = planned(CODES, ask(query=query, options={"on_empty": "default", "default": "-"}))
    assert rows(keyed(filled, a=["A"], b=[]), count=3)["q"] == ["A", "-", "A"]


def test_an_error_about_an_empty_answer_keeps_a_sensitive_value_to_itself():
    code = {**CODES, "sensitive": True}
    with pytest.raises(SpecError) as error:
        keyed(planned(code, ask(query="{{code}}")), a=["A"], b=[])
    assert "such as" not in error.value.faults[0].message


def test_sensitive_values_are_replaced_before_any_other_field_sees_them():
    reader = {"name": "r", "type": "derived", "options": {"value": "<{{q}}>"}}
    plan = answered(planned(ask(sensitive=True), reader), pa.table({"name": ["secret", None]}))
    generated = rows(plan)
    assert set(generated["q"]) == {"[redacted]", None}
    assert set(generated["r"]) == {"<[redacted]>", "<>"}
    numbers = answered(planned(key(sensitive=True)), KEYS)
    assert rows(numbers, count=3)["k"] == [None] * 3


def test_other_maskings_of_sensitive_values_are_rejected_by_name():
    field = ask(sensitive=True, masking={"strategy": "replace"})
    assert faults(field) == {"fields[0].masking": "not_available"}
    assert faults(ask(sensitive=True, masking={"strategy": "redact"})) == {}


def test_fetched_values_are_never_considered_unique():
    assert faults(ask(unique=True)) == {"fields[0].unique": "not_unique"}
    assert faults(key(unique=True, sensitive=True)) == {"fields[0].unique": "not_unique"}


@pytest.mark.parametrize(
    ("column", "dtype"),
    [
        (pa.array([1, 2], pa.int16()), pa.int64()),
        (pa.array([2**63 + 5, 1], pa.uint64()), pa.string()),
        (pa.array([Decimal("1.50"), None], pa.decimal128(9, 2)), pa.decimal128(38, 2)),
        (pa.array([Decimal("1" * 30)], pa.decimal128(38, 0)), pa.string()),
        (pa.array([b"\x01\xff"]), pa.string()),
        (pa.array([datetime(2026, 1, 1, tzinfo=UTC)]), pa.timestamp("us", "UTC")),
        (pa.array([{"a": 1}]), pa.string()),
        (pa.nulls(2), pa.string()),
        (pa.array(["x"]).dictionary_encode(), pa.string()),
    ],
)
def test_answers_become_values_of_the_engine(column, dtype):
    generated, _ = external_values.convert_column(pa.chunked_array([column]), None, 2, True)
    assert generated.type == dtype
    assert generated.null_count == column.null_count


def test_decimals_of_an_answer_that_may_grow_do_not_change_their_spelling():
    few = external_values.convert_column(pa.chunked_array([pa.array([Decimal("1.5")])]), None, 2, False)[0]
    more = external_values.convert_column(
        pa.chunked_array([pa.array([Decimal("1.5"), Decimal("2.25")])]), None, 2, False
    )[0]
    assert few.type == more.type
    assert few[0] == more[0]


def test_a_value_of_the_wrong_type_is_rejected():
    plan = planned(ask(options={"kind": "integer"}))
    with pytest.raises(SpecError) as error:
        answered(plan, pa.table({"name": ["4", "x"]}))
    assert [(fault.path, fault.code) for fault in error.value.faults] == [
        ("fields[0].options.kind", "wrong_type")
    ]


def test_a_column_missing_in_the_response_is_reported_with_the_existing_ones():
    plan = planned(ask(options={"column": "nam"}))
    with pytest.raises(SpecError, match="Its columns: name, no") as error:
        answered(plan, pa.table({"name": ["x"], "no": [1]}))
    assert error.value.faults[0].hint == "Did you mean `name`?"


def test_a_group_draws_from_one_table():
    other = key("b", options={"table": "orders"}, group="g")
    assert faults(key("a", group="g"), other) == {"fields[1].group": "two_tables"}


@pytest.mark.parametrize("query", ["{{code | upper}}", "{{nothing}}", "{{"])
def test_places_for_values_are_plain_fields(query):
    assert "fields[1].options.query" in faults(CODES, ask(query=query))
