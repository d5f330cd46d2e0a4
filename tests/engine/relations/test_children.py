"""Children by cardinality: their number and order, and the values that they read from their parents."""

from __future__ import annotations

import time
import tracemalloc
from collections import Counter
from decimal import Decimal
from itertools import pairwise

import pytest

from tests.engine.orders import AMOUNT, ID, LAYOUTS, NAME, POSITION, families, lines_of
from tests.engine.relating import World, aggregate, reference

# --- How many --------------------------------------------------------------------------------------------------


@LAYOUTS
@pytest.mark.parametrize("orders", [1, 7, 999, 1000, 1001, 2500])
def test_every_parent_has_from_min_to_max_children_at_positions_from_one_on(orders, layout):
    world = lines_of({"min": 1, "max": 9}, orders=orders, layout=layout)
    rows = world.all_rows("lines")
    found = families(rows)
    assert set(found) == set(range(1, orders + 1))
    for children in found.values():
        assert 1 <= len(children) <= 9
        assert sorted(row["position"] for row in children) == list(range(1, len(children) + 1))
    assert abs(len(rows) - 5 * orders) <= 1


def test_children_of_one_parent_are_consecutive_unless_mixed():
    together = lines_of({"min": 1, "max": 9}).all_rows("lines")
    assert [row["order_id"] for row in together] == sorted(row["order_id"] for row in together)
    mixed = lines_of({"min": 1, "max": 9}, layout="mixed").all_rows("lines")
    beside = sum(a["order_id"] == b["order_id"] for a, b in pairwise(mixed))
    assert beside < len(mixed) / 20
    assert Counter(row["order_id"] for row in mixed) == Counter(row["order_id"] for row in together)


def test_a_plain_number_is_how_many_each_has():
    assert {len(rows) for rows in families(lines_of(4).all_rows("lines")).values()} == {4}


def test_parents_may_be_childless():
    found = families(lines_of({"min": 0, "max": 2}, orders=1000).all_rows("lines"))
    assert 200 < 1000 - len(found) < 450
    assert max(len(rows) for rows in found.values()) == 2


def test_requesting_more_children_than_exist_is_rejected_with_their_number():
    world = lines_of({"min": 1, "max": 5}, orders=100)
    assert len(world.rows("lines", 300)) == 300
    (fault,) = world.refused("lines", 1, start=300)
    assert (fault.path, fault.code) == ("fields[0]", "not_enough_rows")
    assert "300" in fault.message
    assert "301" in fault.message
    assert fault.hint


@pytest.mark.parametrize("stated", [200, 201, 999, 1234, 1799, 1800])
def test_a_stated_number_of_children_is_met_exactly(stated):
    world = lines_of({"min": 1, "max": 9}, stated={"lines": stated})
    found = families(world.rows("lines", stated))
    assert sum(len(rows) for rows in found.values()) == stated
    assert len(found) == 200
    assert max(len(rows) for rows in found.values()) <= 9
    assert [fault.code for fault in world.refused("lines", stated + 1)] == ["not_enough_rows"]


@pytest.mark.parametrize("stated", [199, 1801])
def test_an_impossible_number_of_children_is_rejected_with_both_bounds(stated):
    (fault,) = lines_of({"min": 1, "max": 9}, stated={"lines": stated}).faults("lines").values()
    assert (fault.path, fault.code) == ("fields[0].options.cardinality", "unrelated")
    assert all(number in fault.message for number in ("200", "1,800", f"{stated:,}"))
    assert fault.hint


def test_weights_set_the_share_of_parents_per_number_of_children():
    world = lines_of({"min": 1, "max": 3, "distribution": "weights", "weights": [5, 3, 2]}, orders=1000)
    sizes = Counter(len(rows) for rows in families(world.all_rows("lines")).values())
    assert sizes == {1: 500, 2: 300, 3: 200}


def test_more_children_than_can_be_numbered_are_rejected():
    world = World(p=(2**53, [ID]), c=(1, [reference("p", "p", "id", cardinality=10_000)]))
    (fault,) = world.faults("c").values()
    assert (fault.path, fault.code) == ("fields[0].options.cardinality", "unrelated")


# --- What they read --------------------------------------------------------------------------------------------


def test_a_line_shows_fields_of_its_order_and_of_its_orders_customer():
    customers = [ID, NAME, {"name": "country", "type": "country"}]
    orders = [
        ID,
        reference("customer_id", "customers", "id", cardinality={"min": 1, "max": 3}),
        reference("customer_name", "customers", "name"),
        reference("customer_country", "customers", "country"),
    ]
    lines = [
        reference("order_id", "orders", "id", cardinality={"min": 1, "max": 5}),
        reference("customer", "orders", "customer_name"),
        {"name": "country", "type": "derived", "options": {"value": "{{parent.customer_country}}"}},
    ]
    world = World(customers=(50, customers), orders=(1, orders), lines=(1, lines))
    people = {row["id"]: row for row in world.all_rows("customers")}
    bought = {row["id"]: people[row["customer_id"]] for row in world.all_rows("orders")}
    for row in world.all_rows("lines"):
        assert (row["customer"], row["country"]) == (
            bought[row["order_id"]]["name"],
            bought[row["order_id"]]["country"],
        )


def test_positions_begin_at_the_given_number():
    child = [reference("p", "p", "id", cardinality=3), {**POSITION, "options": {"start": 0}}]
    assert [row["position"] for row in World(p=(2, [ID]), c=(1, child)).all_rows("c")] == [0, 1, 2] * 2


def test_a_child_may_refer_freely_to_further_templates():
    lines = lines_of(
        {"min": 1, "max": 4}, reference("sku", "products", "sku"), reference("price", "products", "price")
    )
    lines.fields["products"] = [{"name": "sku", "type": "sku"}, {"name": "price", "type": "number"}]
    world = World(
        products=(30, lines.fields["products"]),
        orders=(200, lines.fields["orders"]),
        lines=(1, lines.fields["lines"]),
    )
    products = {row["sku"]: row["price"] for row in world.all_rows("products")}
    rows = world.all_rows("lines")
    assert len({row["sku"] for row in rows}) == len(products)
    assert all(products[row["sku"]] == row["price"] for row in rows)


def test_other_types_read_fields_of_the_parent():
    orders = [
        ID,
        {"name": "placed", "type": "datetime"},
        {"name": "state", "type": "enum", "options": {"values": ["a", "b"]}},
    ]
    lines = [
        reference("order_id", "orders", "id", cardinality={"min": 1, "max": 3}),
        {
            "name": "sent",
            "type": "date_relative",
            "options": {"field": "parent.placed", "min": "1d", "max": "3d"},
        },
        {
            "name": "word",
            "type": "mapped",
            "options": {"field": "parent.state", "map": {"a": "A"}, "default": "x"},
        },
        {"name": "twice", "type": "formula", "options": {"expression": "parent.id * 2"}},
        {"name": "before", "type": "previous", "options": {"field": "parent.id"}},
    ]
    world = World(orders=(50, orders), lines=(1, lines))
    found = {row["id"]: row for row in world.all_rows("orders")}
    rows = world.all_rows("lines")
    for row, before in zip(rows, [None, *rows], strict=False):
        order = found[row["order_id"]]
        assert 1 <= (row["sent"] - order["placed"]).total_seconds() / 86_400 <= 3
        assert row["word"] == {"a": "A", "b": "x"}[order["state"]]
        assert row["twice"] == 2 * order["id"]
        assert row["before"] == (before and before["order_id"])


@LAYOUTS
def test_a_running_total_restarts_for_each_parent(layout):
    running = {"name": "so_far", "type": "running_total", "options": {"field": "some", "within": "parent"}}
    world = lines_of({"min": 0, "max": 5}, running, orders=1100, layout=layout)
    rows = world.all_rows("lines")
    for lines in families(sorted(rows, key=lambda row: row["position"])).values():
        total = Decimal(0)
        for line in lines:
            total += line["some"] or 0
            assert line["so_far"] == total
    assert world.rows("lines", 300, 1000) == rows[1000:1300]
    assert world.at("lines", [2000, 3, 3, 999]) == [rows[2000], rows[3], rows[3], rows[999]]


# --- Three levels ----------------------------------------------------------------------------------------------


def shop(customers=1000, stated=None):
    """Customers, orders and lines; totals all the way up."""
    return World(
        customers=(
            customers,
            [ID, NAME, aggregate("spent", "orders", "total"), aggregate("orders", "orders", None, "count")],
        ),
        orders=(
            10_000,
            [
                ID,
                reference("customer_id", "customers", "id", cardinality={"min": 1, "max": 19}),
                reference("customer_name", "customers", "name"),
                aggregate("total", "lines", "amount"),
                aggregate("items", "lines", function="count"),
            ],
        ),
        lines=(
            50_000,
            [
                reference("order_id", "orders", "id", cardinality={"min": 1, "max": 9}),
                reference("name", "orders", "customer_name"),
                POSITION,
                {**AMOUNT, "options": {"min": 1, "max": 100, "decimals": 2}},
            ],
        ),
        stated=stated,
    )


def test_a_thousand_customers_ten_thousand_orders_and_fifty_thousand_lines_fit_together():
    world = shop(stated={"customers": 1000, "orders": 10_000, "lines": 50_000})
    customers, orders, lines = (
        world.rows(name, count)
        for name, count in (("customers", 1000), ("orders", 10_000), ("lines", 50_000))
    )
    for own, count in (("customers", 1000), ("orders", 10_000), ("lines", 50_000)):
        assert [fault.code for fault in world.refused(own, 1, count)][:1] in (
            ["not_enough_rows"],
            ["too_far"],
        )
    names = {row["id"]: row["name"] for row in customers}
    by_order, by_customer = families(lines), families(orders, "customer_id")
    assert set(by_order) == {row["id"] for row in orders}
    assert set(by_customer) == set(names)
    customer_of = {row["id"]: row["customer_id"] for row in orders}
    for row in orders:
        assert row["total"] == sum(line["amount"] for line in by_order[row["id"]])
        assert row["items"] == len(by_order[row["id"]])
        assert row["customer_name"] == names[row["customer_id"]]
    for row in customers:
        assert row["spent"] == sum(order["total"] for order in by_customer[row["id"]])
        assert row["orders"] == len(by_customer[row["id"]])
    assert all(names[customer_of[line["order_id"]]] == line["name"] for line in lines)
    assert sum(row["spent"] for row in customers) == sum(line["amount"] for line in lines)


def test_the_numbers_multiply_where_none_is_stated():
    world = shop(customers=100)
    assert (world.total("orders"), world.total("lines")) == (1000, 5000)


def test_a_billion_parents_are_as_quick_at_their_end_as_at_their_beginning():
    world = World(
        orders=(10**9, [ID, NAME, aggregate("total", "lines", "amount")]),
        lines=(
            10,
            [
                reference("order_id", "orders", "id", cardinality={"min": 1, "max": 9}),
                reference("name", "orders", "name"),
                reference("order_total", "orders", "total"),
                POSITION,
                AMOUNT,
            ],
        ),
    )
    source = world.bound("lines")
    source.check(5 * 10**9 - 1000, 1000)
    source.block(0, 3)
    tracemalloc.start()
    before = time.process_time()
    rows = world.rows("lines", 1000, start=5 * 10**9 - 1000)
    far = [source.block(at, 1000) for at in range(4 * 10**9, 4 * 10**9 + 20_000, 1000)]
    spent = time.process_time() - before
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows[-1]["order_id"] == 10**9
    assert len(far) == 20
    assert peak < 60_000_000  # where children start is kept for 16 million parents at most
    assert spent < 30  # nothing is walked through
    whole = families(rows)
    whole.pop(rows[0]["order_id"])  # may have begun before
    assert all(
        row["order_total"] == sum(r["amount"] for r in lines) for lines in whole.values() for row in lines
    )
