"""Fields of type template: rows of another template inside each row."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from tests.engine.relating import World, aggregate, reference, template
from webapp import limits

ID = {"name": "id", "type": "row_number"}
NAME = {"name": "name", "type": "name"}
AMOUNT = {"name": "amount", "type": "number", "options": {"min": 1, "max": 100, "decimals": 2}}
CODE = {"name": "code", "type": "number", "options": {"min": 1, "max": 50}, "unique": True}


def shop(least=1, layout="together"):
    """Customers with their orders with their lines inside."""
    orders = [
        ID,
        reference("customer_id", "customers", "id", cardinality={"min": least, "max": 4}, layout=layout),
        aggregate("total", "lines", "amount"),
        template("lines", "lines"),
    ]
    lines = [
        reference("order_id", "orders", "id", cardinality={"min": least, "max": 5}, layout=layout),
        {"name": "position", "type": "position_in_parent"},
        reference("order_total", "orders", "total"),
        AMOUNT,
        {"name": "secret", "type": "uuid", "hidden": True},
    ]
    return World(
        customers=(120, [ID, NAME, template("orders", "orders")]), orders=(1, orders), lines=(1, lines)
    )


def without(row, *names):
    return {name: value for name, value in row.items() if name not in names}


@pytest.mark.parametrize("layout", ["together", "mixed"])
@pytest.mark.parametrize("least", [0, 1])
def test_nested_rows_are_those_of_the_flat_tables(least, layout):
    world = shop(least, layout)
    lines, orders = defaultdict(list), defaultdict(list)
    for row in sorted(world.all_rows("lines"), key=lambda row: row["position"]):
        lines[row["order_id"]].append(without(row, "order_id"))
    flat = world.all_rows("orders")
    for row in flat:
        assert row["lines"] == lines[row["id"]]
        assert row["total"] == sum(line["amount"] for line in row["lines"])
        orders[row["customer_id"]].append(without(row, "customer_id"))
    for row in world.all_rows("customers"):
        assert sorted(row["orders"], key=lambda order: order["id"]) == sorted(
            orders[row["id"]], key=lambda item: item["id"]
        )


def test_any_window_and_any_scattered_rows_are_those_of_the_whole():
    world = shop()
    whole = world.all_rows("customers")
    assert world.rows("customers", 20, 100) == whole[100:]
    order = np.random.default_rng(3).permutation(120)[:50].tolist()
    assert world.at("customers", order) == [whole[row] for row in order]
    assert [fault.code for fault in world.refused("customers", 1, 120)] == ["too_far"]


def test_a_template_without_a_parent_has_the_requested_number_of_rows():
    fields = [
        template("three", "p", quantity=3),
        template("some", "p", count={"min": 0, "max": 2}),
        template("one", "p", array=False),
    ]
    rows = World(p=(1, [ID, NAME]), c=(1, [ID, *fields])).rows("c", 300)
    assert {len(row["three"]) for row in rows} == {3}
    assert {len(row["some"]) for row in rows} == {0, 1, 2}
    assert all(set(row["one"]) == {"id", "name"} for row in rows)
    assert [item["id"] for row in rows for item in row["three"]] == list(range(1, 901))


def test_its_windows_and_scattered_rows_are_those_of_the_whole_too():
    fields = [template("some", "p", count={"min": 0, "max": 4}), template("one", "p", array=False)]
    world = World(p=(1, [ID, NAME, CODE | {"options": {"max": 10**6}}]), c=(1, [ID, *fields]))
    whole = world.rows("c", 1500)
    for start, count in ((0, 3), (255, 2), (999, 3), (1499, 1)):
        assert world.rows("c", count, start) == whole[start : start + count]
    assert world.at("c", [1400, 3, 3, 999]) == [whole[1400], whole[3], whole[3], whole[999]]


def test_two_fields_of_one_template_show_different_rows():
    address = [
        {"name": "street", "type": "street_address"},
        {"name": "city", "type": "city"},
        {"name": "n", "type": "uuid"},
    ]
    fields = [template("shipping", "address", array=False), template("billing", "address", array=False)]
    rows = World(address=(1, address), c=(1, [ID, *fields])).rows("c", 200)
    assert all(row["shipping"]["n"] != row["billing"]["n"] for row in rows)
    assert len({row[name]["n"] for row in rows for name in ("shipping", "billing")}) == 400


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_a_template_inside_itself_ends_at_its_depth_and_no_level_repeats_another(depth):
    fields = [ID, {"name": "key", "type": "uuid"}, template("kids", "self", quantity=2, max_depth=depth)]
    keys = []

    def walk(row, level):
        keys.append(row["key"])
        if level == depth:
            assert row["kids"] is None
            return
        assert len(row["kids"]) == 2
        for kid in row["kids"]:
            walk(kid, level + 1)

    for row in World(tree=(5, fields)).rows("tree", 5):
        walk(row, 0)
    assert len(set(keys)) == len(keys) == 5 * (2 ** (depth + 1) - 1)


def test_templates_inside_each_other_end_too():
    world = World(
        a=(5, [ID, template("b", "b", quantity=1, max_depth=2)]),
        b=(5, [ID, template("a", "a", quantity=1, max_depth=2)]),
    )
    (row,) = world.rows("a", 1)
    assert row == {"id": 1, "b": [{"id": 1, "a": [{"id": 1, "b": None}]}]}


def test_the_reference_to_the_parent_is_left_out_by_name():
    child = [reference("p", "p", "id"), reference("q", "p", "id", group="other"), AMOUNT]
    world = World(p=(5, [ID, template("kids", "c", quantity=2, foreign_key="p")]), c=(1, child))
    assert {tuple(kid) for row in world.rows("p", 5) for kid in row["kids"]} == {("q", "amount")}


def test_a_nested_template_reads_other_templates():
    pets = [
        reference("owner", "people", "id"),
        reference("owner_name", "people", "name"),
        {"name": "pet", "type": "uuid"},
    ]
    world = World(
        people=(50, [ID, NAME]), pets=(1, pets), homes=(1, [ID, template("pets", "pets", quantity=3)])
    )
    names = {row["id"]: row["name"] for row in world.all_rows("people")}
    met = [pet for row in world.rows("homes", 100) for pet in row["pets"]]
    assert len({pet["owner"] for pet in met}) > 40
    assert all(names[pet["owner"]] == pet["owner_name"] for pet in met)


def test_inside_an_array_it_matches_every_element():
    inner = [{"name": "n", "type": "number"}, template("tags", "tags", quantity=2)]
    array = {
        "name": "items",
        "type": "nested",
        "options": {"array": True, "count": {"min": 0, "max": 3}, "fields": inner},
    }
    world = World(tags=(1, [{"name": "tag", "type": "uuid"}]), c=(1, [ID, array]))
    rows = world.rows("c", 200)
    tags = [tag["tag"] for row in rows for item in row["items"] for tag in item["tags"]]
    assert len(tags) == 2 * sum(len(row["items"]) for row in rows)
    assert len(set(tags)) == len(tags)
    assert world.rows("c", 2, 150) == rows[150:152]


# --- What is refused --------------------------------------------------------------------------------------------


def only(world, own="c"):
    (fault,) = world.faults(own).values()
    assert fault.hint
    return fault.path, fault.code


def test_rows_beyond_the_distinct_values_of_a_nested_template_are_rejected_before_the_first():
    world = World(p=(1000, [CODE]), c=(10, [template("x", "p", quantity=3)]))
    codes = [item["code"] for row in world.rows("c", 16) for item in row["x"]]
    assert len(set(codes)) == 48
    assert [(fault.path, fault.code) for fault in world.refused("c", 17)] == [
        ("fields[0]", "not_enough_values")
    ]


def test_more_rows_than_the_parents_have_children_are_rejected():
    lines = [reference("order", "orders", "id", cardinality=2), AMOUNT]
    world = World(orders=(10, [ID]), lines=(1, lines), other=(10, [template("x", "lines", quantity=2)]))
    assert len(world.rows("other", 10)) == 10
    (fault,) = world.refused("other", 11)
    assert (fault.path, fault.code) == ("fields[0]", "not_enough_rows")


def test_more_elements_than_a_row_can_have_are_rejected():
    fields = [ID, template("kids", "self", quantity=10, max_depth=5)]
    (fault,) = World(tree=(5, fields)).faults("tree").values()
    assert (fault.path, fault.code) == ("fields", "too_many_cells")
    assert f"{limits.MAX_ARRAY_PRODUCT:,}" in fault.message
    assert fault.hint


def test_endless_branches_are_rejected_quickly():
    fields = [ID, *(template(f"k{i}", "self", array=False, max_depth=8) for i in range(9))]
    assert "too_many_cells" in {fault.code for fault in World(tree=(5, fields)).faults("tree").values()}


def test_options_that_contradict_the_cardinality_are_rejected():
    child = [reference("p", "p", "id", cardinality=2), AMOUNT]
    for options, named in (
        ({"quantity": 2}, "quantity"),
        ({"count": {"min": 1, "max": 2}}, "count"),
        ({"array": False}, "array"),
    ):
        world = World(p=(5, [ID, template("x", "c", **options)]), c=(1, child))
        assert only(world, "p") == (f"fields[1].options.{named}", "contradiction")


def test_contradicting_options_are_rejected():
    plain = {"p": (5, [ID])}
    both = {"quantity": 2, "count": {"min": 1, "max": 2}}
    assert only(World(**plain, c=(1, [template("x", "p", **both)]))) == (
        "fields[0].options.count",
        "contradiction",
    )
    one = {"quantity": 2, "array": False}
    assert only(World(**plain, c=(1, [template("x", "p", **one)]))) == (
        "fields[0].options.quantity",
        "not_for_this_type",
    )


def test_a_template_without_visible_fields_is_rejected():
    world = World(p=(5, [ID, template("x", "c")]), c=(1, [reference("p", "p", "id", cardinality=2)]))
    assert only(world, "p") == ("fields[1].options.template_id", "all_hidden")


def test_a_foreign_key_without_matching_fields_is_rejected():
    world = World(p=(5, [ID]), c=(1, [template("x", "p", quantity=1, foreign_key="idd")]))
    assert only(world) == ("fields[0].options.foreign_key", "unknown_field")
