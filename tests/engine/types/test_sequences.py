"""Values that depend on earlier rows: exact, the same from any offset, and without circular references."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from itertools import accumulate

import numpy as np
import pytest

from tests.engine.types.made import bound, faults, table
from webapp import limits
from webapp.engine.blocks import Block, BoundPlan, GenerationContext
from webapp.engine.errors import SpecError
from webapp.engine.relations import totals

AMOUNT = {"name": "amount", "type": "number", "options": {"min": -50, "max": 500, "decimals": 2}}
TOTAL = {"name": "total", "type": "running_total", "options": {"field": "amount"}}
LATE = limits.TOTAL_ROWS - 3


def refusals(fields: list[dict], **common) -> dict[str, str]:
    try:
        bound(fields, **common)
    except SpecError as error:
        return {fault.path: fault.code for fault in error.faults}
    return {}


def reading(kind: str, **options) -> dict:
    return {"name": "it", "type": kind, "options": {"field": "amount", **options}}


@pytest.mark.parametrize("step", [1, 3, 250])
def test_the_row_before_is_that_of_the_other_column(step):
    rows = table(bound([AMOUNT, reading("previous", step=step, default=-1)]), 0, 700)
    assert rows["it"] == [Decimal(-1)] * step + rows["amount"][:-step]


def test_previous_copies_blanks_and_leaves_the_first_rows_blank():
    rows = table(bound([{**AMOUNT, "percent_blank": 30}, reading("previous")]), 0, 700)
    assert rows["it"] == [None, *rows["amount"][:-1]]
    assert rows["amount"].count(None) == 210


@pytest.mark.parametrize("kind", ["uuid", "city", "date", "boolean", "first_name", "datetime", "nested"])
def test_previous_reads_every_kind_of_value(kind):
    inner = {"array": True, "fields": [{"name": "n", "type": "number"}]} if kind == "nested" else {}
    source = bound([{"name": "amount", "type": kind, "options": inner}, reading("previous")])
    rows = table(source, 0, 300)
    assert rows["it"] == [None, *rows["amount"][:-1]]
    assert table(source, 250, 50)["it"] == rows["it"][250:]


def test_previous_reads_a_fixed_value_and_text_steps():
    dressed = {"name": "amount", "type": "city", "text_case": "upper", "prefix": "*"}
    rows = table(bound([dressed, reading("previous", default="none")]), 0, 50)
    assert rows["it"] == ["none", *rows["amount"][:-1]]
    assert rows["it"][1].startswith("*")
    fixed = table(bound([AMOUNT, reading("previous")], overrides={"amount": 7}), 0, 3)
    assert fixed["it"] == [None, Decimal(7), Decimal(7)]


def test_a_default_of_another_type_is_rejected():
    assert refusals([AMOUNT, reading("previous", default="none")]) == {
        "fields[1].options.default": "wrong_type"
    }
    assert refusals([{"name": "amount", "type": "city"}, reading("previous", default=4)]) == {
        "fields[1].options.default": "wrong_type"
    }


@pytest.mark.parametrize("kind", ["previous", "running_total", "date_relative"])
def test_a_column_that_reads_itself_is_a_cycle(kind):
    options = {"field": "it", **({"offset": "+1d"} if kind == "date_relative" else {})}
    assert set(refusals([{"name": "it", "type": kind, "options": options}]).values()) == {"cycle"}


def test_a_column_that_reads_itself_through_others_is_a_cycle():
    through = {"name": "amount", "type": "derived", "options": {"value": "{{it}}"}}
    assert "cycle" in refusals([reading("previous"), through]).values()


@pytest.mark.parametrize("kind", ["previous", "running_total"])
def test_elements_of_an_array_have_no_row_before_them(kind):
    inner = [AMOUNT, reading(kind)]
    array = {"name": "lines", "type": "nested", "options": {"array": True, "fields": inner}}
    assert refusals([array]) == {"fields[0].options.fields[1]": "not_for_this_type"}
    deep = {"name": "inside", "type": "nested", "options": {"fields": inner}}
    array = {"name": "lines", "type": "nested", "options": {"array": True, "fields": [deep]}}
    assert set(refusals([array]).values()) == {"not_for_this_type"}


def test_inside_an_object_the_row_before_is_that_of_the_object():
    inner = [{"name": "copy", "type": "derived", "options": {"value": "{{amount}}"}}, reading("previous")]
    last = {"name": "last", "type": "previous", "options": {"field": "copy"}}
    fields = [AMOUNT, {"name": "inside", "type": "nested", "options": {"fields": [*inner, last, TOTAL]}}]
    rows = table(bound(fields), 0, 300)
    assert [item["it"] for item in rows["inside"]] == [None, *rows["amount"][:-1]]
    assert [item["last"] for item in rows["inside"]] == [None, *(str(value) for value in rows["amount"][:-1])]
    assert [item["total"] for item in rows["inside"]] == list(accumulate(rows["amount"]))


def test_many_ways_to_the_same_earlier_row_make_it_once():
    fields = [{"name": "f0", "type": "number"}]
    for level in range(1, 60):
        near, far = (
            {
                "name": f"p{level}_{step}",
                "type": "previous",
                "options": {"field": f"f{level - 1}", "step": step},
            }
            for step in (1, 2)
        )
        both = {
            "name": f"f{level}",
            "type": "derived",
            "options": {"value": "{{{{{}}}}}".format(near["name"])},
        }
        both["options"]["value"] += "{{{{{}}}}}".format(far["name"]) if level < 6 else ""
        fields += [near, {**far, "hidden": True}, both]
    source = bound(fields[:40])
    assert len(table(source, 100, 3)["f0"]) == 3
    assert "too_many_cells" in refusals(fields).values()


def test_a_running_total_is_the_sum_of_all_rows_so_far():
    rows = table(bound([AMOUNT, TOTAL]), 0, 9000)
    assert rows["total"] == list(accumulate(rows["amount"]))


def test_blanks_count_as_nothing():
    rows = table(bound([{**AMOUNT, "percent_blank": 30}, TOTAL]), 0, 1000)
    assert rows["total"] == list(accumulate(value or Decimal(0) for value in rows["amount"]))


@pytest.mark.parametrize("start", [1, 8191, 8192, 8193, 65_536, 100_001])
def test_an_offset_starts_where_the_rows_before_it_end(start):
    totals._CACHE.clear()
    whole = np.array(
        table(bound([{**AMOUNT, "type": "number", "options": {"max": 9}}, TOTAL]), 0, start + 20)["total"]
    )
    totals._CACHE.clear()
    source = bound([{**AMOUNT, "options": {"max": 9}}, TOTAL])
    assert table(source, start, 20)["total"] == whole[start:].tolist()


def test_streams_of_any_cut_and_scattered_rows_agree():
    fields = [{**AMOUNT, "options": {"max": 9}, "percent_blank": 12.5}, TOTAL]
    whole = [total for block in bound(fields).blocks(0, 40_000) for total in block[1].to_pylist()]
    totals._CACHE.clear()
    later = [total for block in bound(fields).blocks(13_333, 20_000) for total in block[1].to_pylist()]
    assert later == whole[13_333:33_333]
    rows = np.random.default_rng(1).integers(0, 40_000, 500).astype(np.uint64)
    totals._CACHE.clear()
    source = bound(fields)
    scattered = Block(source, source.plan.layer, rows).column("total").to_pylist()
    assert scattered == [whole[row] for row in rows.tolist()]


def test_cached_values_are_distinguished_by_seed_and_by_fixed_values():
    source = bound([AMOUNT, TOTAL])
    first = table(source, 20_000, 1)["total"]
    other = BoundPlan(source.plan, GenerationContext("another seed", source.env.now))
    assert table(other, 20_000, 1)["total"] != first
    fixed = BoundPlan(source.plan, source.env, {"amount": 2})
    assert table(fixed, 20_000, 1)["total"] == [Decimal(40_002)]
    assert table(source, 20_000, 1)["total"] == first


def test_the_cache_is_limited():
    plan = bound([AMOUNT, TOTAL]).plan
    now = bound([AMOUNT]).env.now
    for seed in range(limits.CACHED_TOTALS + 9):
        source = BoundPlan(plan, GenerationContext(str(seed), now))
        for start in range(0, 40, 2):
            table(source, start, 1)
    assert len(totals._CACHE) == limits.CACHED_TOTALS
    assert all(len(stored._sums_at_stream_ends) <= limits.TOTAL_ENDS for stored, _ in totals._CACHE.values())


def test_the_last_row_of_a_running_total_is_the_ten_millionth():
    counted = {"name": "amount", "type": "row_number"}
    source = bound([counted, TOTAL])
    source.check(LATE, 3)
    with pytest.raises(SpecError) as error:
        source.check(LATE, 4)
    assert [(fault.path, fault.code) for fault in error.value.faults] == [("fields[1]", "too_far")]
    assert table(source, LATE, 3)["total"] == [n * (n + 1) // 2 for n in range(LATE + 1, LATE + 4)]


def test_totals_of_totals_and_of_earlier_rows_are_exact():
    fields = [
        {"name": "one", "type": "number", "options": {"max": 3}},
        {"name": "before", "type": "previous", "options": {"field": "one"}},
        {"name": "amount", "type": "running_total", "options": {"field": "before"}},
        TOTAL,
    ]
    rows = table(bound(fields), 0, 20_000)
    inner = list(accumulate([0, *rows["one"][:-1]]))
    assert (rows["amount"], rows["total"]) == (inner, list(accumulate(inner)))


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ({"type": "city"}, "wrong_type"),
        ({"type": "number", "options": {"stringify": True}}, "wrong_type"),
        ({"type": "number", "prefix": "$"}, "wrong_type"),
        ({"type": "custom", "options": {"values": [0.1, 1e300]}}, "wrong_type"),
        ({"type": "boolean"}, "wrong_type"),
        ({"type": "number", "options": {"max": 10**12}}, "out_of_range"),
        ({"type": "number", "options": {"max": 10**9, "decimals": 6}}, "out_of_range"),
        ({"type": "number", "options": {"distribution": "pareto", "alpha": 0.2}}, "out_of_range"),
        ({"type": "ssn"}, "wrong_type"),
    ],
)
def test_inexact_sums_are_rejected(source, code):
    assert refusals([{"name": "amount", **source}, TOTAL]) == {"fields[1].options.field": code}


@pytest.mark.parametrize(
    "source",
    [
        {"type": "currency"},
        {"type": "epoch"},
        {"type": "sequence", "options": {"start": 5, "step": -3, "repeat": 2}},
        {"type": "custom", "options": {"values": [1, 2.5, -4]}},
        {"type": "enum", "options": {"values": [1, 2, 3], "weights": [3, 2, 1]}},
        {"type": "poisson"},
        {"type": "geometric"},
        {"type": "latitude"},
        {"type": "year"},
        {"type": "percentage"},
        {"type": "counter", "options": {"start": 10, "step": -2, "end": 0}},
        {"type": "boolean", "options": {"truthy": 1, "falsy": 0}},
        {"type": "number", "options": {"distribution": "exponential"}},
    ],
)
def test_every_number_of_known_size_can_be_added_up(source):
    result = bound([{"name": "amount", **source}, TOTAL])
    rows = table(result, 0, 500)
    assert rows["total"] == list(accumulate(rows["amount"]))
    low, high = result.plan.layer.columns["amount"].type.bounds(limits.TOTAL_ROWS)
    scale = getattr(result.plan.layer.columns["amount"].dtype, "scale", 0)
    assert all(low <= int(value * 10**scale) <= high for value in rows["amount"])


@pytest.mark.parametrize("value", ["a lot", 10**15, [1], 1.234])
def test_a_fixed_value_that_cannot_be_summed_is_rejected(value):
    assert refusals([AMOUNT, TOTAL], overrides={"amount": value}) == {"overrides.amount": "wrong_type"}
    assert refusals([AMOUNT, TOTAL], overrides={"amount": value, "total": 1}) == {}


@pytest.mark.parametrize("kind", ["previous", "running_total"])
def test_unique_is_rejected_with_advice(kind):
    with pytest.raises(SpecError) as error:
        bound([AMOUNT, {**reading(kind), "unique": True}])
    (fault,) = error.value.faults
    assert (fault.code, fault.hint) == ("not_unique", "Make the field it reads unique instead.")


def test_an_unknown_field_is_rejected_by_name():
    assert faults("previous", {"field": "amuont"}) == {"options.field": "unknown_field"}


def test_blocks_at_other_rows_go_when_the_first_one_goes():
    source = bound([AMOUNT])
    block = Block(source, source.plan.layer, np.arange(8, 16, dtype=np.uint64))
    near, far = (np.arange(start, start + 8, dtype=np.uint64) for start in (4, 0))
    before = block.at_rows(near)
    assert before.at_rows(far) is block.at_rows(far)
    assert before.at_rows(block.rows) is block
    assert block.at_rows(near) is before
    assert block.at_rows(near, keep=False) is not before
    stored = weakref.ref(before)
    gc.disable()
    try:
        del block, before
        assert stored() is None
    finally:
        gc.enable()


def test_threads_that_add_up_the_same_column_agree():
    fields = [AMOUNT, TOTAL]
    whole = table(bound(fields), 0, 60_000)["total"]
    totals._CACHE.clear()
    plan, env = (source := bound(fields)).plan, source.env

    def read(start: int) -> bool:
        return table(BoundPlan(plan, env), start, 500)["total"] == whole[start : start + 500]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, [59_500, 100, 33_333, 8_192, 8_191, 59_000, 0, 41_000] * 4))


def test_a_total_of_a_formula_is_exact_and_bounded_by_it():
    fields = [
        {"name": "quantity", "type": "number", "options": {"min": 1, "max": 9}},
        {"name": "price", "type": "number", "options": {"max": 99, "decimals": 2}},
        {"name": "amount", "type": "formula", "options": {"expression": "quantity * price"}},
        TOTAL,
        {"name": "dozens", "type": "number", "options": {"max": 9}, "formula": "this * 12"},
        {"name": "all", "type": "running_total", "options": {"field": "dozens"}},
    ]
    rows = table(bound(fields), 0, 500)
    lines = [quantity * price for quantity, price in zip(rows["quantity"], rows["price"], strict=True)]
    assert rows["total"] == list(accumulate(lines))
    assert rows["all"] == list(accumulate(rows["dozens"]))
    assert {value % 12 for value in rows["dozens"]} == {0}
    fields[4]["formula"] = "this * 200000000000"
    assert refusals(fields) == {"fields[5].options.field": "out_of_range"}
