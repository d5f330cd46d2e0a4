"""What parents make of their children: sums, counts, ends and spans, exact for any rows."""

from __future__ import annotations

from collections import Counter
from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np
import pytest

from tests.engine.orders import AMOUNT, ID, LAYOUTS, families, lines_of
from tests.engine.relating import World, aggregate, reference

OF_ORDERS = (
    aggregate("total", "lines", "amount"),
    aggregate("count", "lines", function="count"),
    aggregate("filled", "lines", "some", "count"),
    aggregate("some_total", "lines", "some"),
    aggregate("least", "lines", "some", "min"),
    aggregate("most", "lines", "some", "max"),
    aggregate("mean", "lines", "some", "avg"),
    aggregate("rough", "lines", "some", "avg", decimals=0),
    aggregate("first", "lines", "some", "first"),
    aggregate("spread", "lines", "some", "span"),
    aggregate("day_first", "lines", "day", "min"),
    aggregate("day_last", "lines", "day", "max"),
    aggregate("days", "lines", "day", "span"),
    aggregate("moment_last", "lines", "moment", "max"),
    aggregate("any_open", "lines", "open", "any"),
    aggregate("first_word", "lines", "word", "first"),
    aggregate("whole_total", "lines", "whole"),
)
MORE = (
    {"name": "day", "type": "date"},
    {"name": "moment", "type": "datetime"},
    {"name": "open", "type": "boolean", "percent_blank": 30},
    {"name": "word", "type": "word"},
    {"name": "whole", "type": "number", "options": {"min": 1, "max": 10**12}},
)
SPREADS = pytest.mark.parametrize("least", [0, 1])


def summed(layout, least, **how):
    """Orders with every total, and their lines."""
    return lines_of(
        {"min": least, "max": 9}, *MORE, reference("order_total", "orders", "total"), layout=layout,
        order_fields=OF_ORDERS, orders=1100, **how,
    )  # fmt: skip


@LAYOUTS
@SPREADS
def test_totals_are_those_of_the_rows_of_the_child(layout, least):
    world = summed(layout, least)
    found = families(sorted(world.all_rows("lines"), key=lambda row: row["position"]))
    for order in world.all_rows("orders"):
        lines = found.get(order["id"], [])
        filled = [line["some"] for line in lines if line["some"] is not None]
        assert order["count"] == len(lines)
        assert order["total"] == sum(line["amount"] for line in lines)
        assert order["whole_total"] == sum(line["whole"] for line in lines)
        assert order["filled"] == len(filled)
        assert order["some_total"] == sum(filled)
        assert order["least"] == min(filled, default=None)
        assert order["most"] == max(filled, default=None)
        assert order["spread"] == (max(filled) - min(filled) if filled else None)
        mean = sum(filled) / Decimal(len(filled)) if filled else None
        assert order["mean"] == (mean and mean.quantize(Decimal("0.0001"), ROUND_HALF_EVEN))
        assert order["rough"] == (mean and mean.quantize(Decimal(1), ROUND_HALF_EVEN))
        assert order["first"] == (lines[0]["some"] if lines else None)
        assert order["first_word"] == (lines[0]["word"] if lines else None)
        days = [line["day"] for line in lines]
        assert (order["day_first"], order["day_last"]) == (min(days, default=None), max(days, default=None))
        assert order["days"] == ((max(days) - min(days)).days if days else None)
        assert order["moment_last"] == max((line["moment"] for line in lines), default=None)
        known = [line["open"] for line in lines if line["open"] is not None]
        assert order["any_open"] == (any(known) if known else None)


@LAYOUTS
def test_a_child_reads_its_parents_total_and_it_is_the_sum_of_its_siblings(layout):
    rows = summed(layout, 1).all_rows("lines")
    sums = {order: sum(row["amount"] for row in lines) for order, lines in families(rows).items()}
    assert all(row["order_total"] == sums[row["order_id"]] for row in rows)


@LAYOUTS
@SPREADS
@pytest.mark.parametrize("own", ["orders", "lines"])
def test_any_window_and_any_scattered_rows_are_those_of_the_whole(own, least, layout):
    world = summed(layout, least)
    whole = world.all_rows(own)
    last = len(whole)
    for start, count in ((0, 1), (0, 3), (255, 2), (last - 1, 1), (last - 300, 300), (700, 13)):
        assert world.rows(own, count, start) == whole[start : start + count]
    order = np.random.default_rng(3).permutation(last)[:300].tolist()
    assert world.at(own, order) == [whole[row] for row in order]
    assert world.at(own, [last - 1, 0, 0]) == [whole[-1], whole[0], whole[0]]


def test_an_average_between_two_values_is_rounded_to_even():
    values = {"name": "v", "type": "list_sequential", "options": {"values": [1, 2, 2, 3, -1, -2]}}
    child = [reference("p", "p", "id", cardinality=2), values]
    rows = World(p=(3, [ID, aggregate("m", "c", "v", "avg", decimals=0)]), c=(1, child)).all_rows("p")
    assert [row["m"] for row in rows] == [2, 2, -2]


def test_a_total_is_read_by_the_parents_own_fields():
    fields = (
        aggregate("total", "lines", "amount"),
        aggregate("count", "lines", function="count"),
        {"name": "text", "type": "derived", "options": {"value": "{{count}} lines, {{total}}"}},
        {"name": "twice", "type": "formula", "options": {"expression": "total * 2"}},
    )
    for row in lines_of({"min": 0, "max": 3}, order_fields=fields).all_rows("orders"):
        assert row["text"] == f"{row['count']} lines, {row['total']}"
        assert row["twice"] == row["total"] * 2


def test_totals_end_with_the_parents_that_children_were_dealt_out_to():
    world = lines_of({"min": 1, "max": 3}, order_fields=(aggregate("count", "lines", function="count"),))
    assert [fault.code for fault in world.refused("orders", 201)] == ["too_far"]
    world.stated["orders"] = 201
    assert world.refused("orders", 201) == []


@LAYOUTS
def test_parents_may_have_no_children_at_all(layout):
    child = [reference("p", "p", "id", cardinality={"min": 0, "max": 2}, layout=layout), AMOUNT]
    functions = ("sum", "count", "min", "max", "avg", "first", "span")
    totals = [aggregate(function, "c", "amount", function) for function in functions]
    rows = World(p=(5, [ID, *totals]), c=(1, child), stated={"c": 0}).rows("p", 5)
    assert {(row["sum"], row["count"]) for row in rows} == {(0, 0)}
    assert all(row[name] is None for row in rows for name in functions[2:])


# --- Sums that are large ---------------------------------------------------------------------------------------


def large(most, function="sum", **options):
    child = [reference("p", "p", "id", cardinality=20), {"name": "v", "type": "number", "options": most}]
    return World(p=(10, [ID, aggregate("t", "c", "v", function, **options)]), c=(1, child))


@pytest.mark.parametrize("function", ["sum", "avg"])
def test_sums_that_may_exceed_64_bits_are_rejected_when_the_template_is_saved(function):
    (fault,) = large({"min": 1, "max": 9 * 10**15, "decimals": 2}, function).faults("p").values()
    assert (fault.path, fault.code) == ("fields[1].options.field", "overflow")
    assert "64 bits" in fault.message
    assert fault.hint


def test_large_sums_that_fit_are_exact():
    world = large({"min": 2**53 - 1 - 1000, "max": 2**53 - 1})
    sums = Counter()
    for row in world.all_rows("c"):
        sums[row["p"]] += row["v"]
    rows = world.all_rows("p")
    assert {row["id"]: row["t"] for row in rows} == sums
    assert all(row["t"] > 2**57 for row in rows)


def test_sums_of_sums_that_may_exceed_64_bits_are_rejected_too():
    middle = [ID, reference("a", "a", "id", cardinality=100), aggregate("t", "c", "v")]
    lowest = [
        reference("b", "b", "id", cardinality=99),
        {"name": "v", "type": "number", "options": {"max": 10**15}},
    ]
    world = World(a=(5, [ID, aggregate("s", "b", "t")]), b=(1, middle), c=(1, lowest))
    assert world.faults("b") == {}
    assert [(path, fault.code) for path, fault in world.faults("a").items()] == [
        ("fields[1].options.field", "overflow")
    ]
