"""The diagram of a dataset: columns by relation, lines from key to reference, and what is left out."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from itertools import combinations

import pytest

from tests.services.test_relations import refers, stored
from webapp.dataset_editor import overview
from webapp.dataset_editor.overview import Overview, Table


def table(name, *fields, count=5):
    return name, [stored("id"), *fields], count


def overview_of(*tables) -> Overview:
    """What the page knows of some tables, without a database."""
    result, contents = Overview(), {}
    for place, (name, fields, count) in enumerate(tables):
        result.tables.append(Table(place, name, name.title(), name.title(), "", 1, 1, count, rows=count))
        contents[name] = overview._parse_contents(name, {"quantity": 5, "fields": fields})
    result.by_id = {item.template_id: item for item in result.tables}
    overview._set_relations(result, contents)
    return result


def drawn(*tables, **how):
    return overview.build_diagram(overview_of(*tables), **how)


def boxes_of(*tables, **how):
    return {box.table.template_id: box for box in drawn(*tables, **how).boxes}


SHOP = (
    table("lines", refers("order_id", "orders", cardinality={"min": 1, "max": 9})),
    table("orders", refers("customer_id", "customers"), count=50_000),
    table("customers", count=1),
)


def test_parents_are_left_of_their_children():
    boxes = boxes_of(*SHOP)
    assert boxes["customers"].x < boxes["orders"].x < boxes["lines"].x


def test_tables_are_numbered_in_load_order():
    assert [item.name for item in overview_of(*SHOP).load_order] == ["Customers", "Orders", "Lines"]


def test_a_card_shows_keys_and_references():
    boxes = boxes_of(*SHOP)
    assert [
        [(row.mark, row.column.path, row.parent) for row in boxes[item].fields]
        for item in ("orders", "customers")
    ] == [
        [("key", "id", ""), ("link", "customer_id", "Customers")],
        [("key", "id", "")],
    ]


def test_a_card_with_many_fields_shows_its_keys_and_the_number_of_the_others():
    many = [stored(f"f{at}") for at in range(20)]
    box = boxes_of(table("a"), table("b", *many, refers("a_id", "a")))["b"]
    assert [row.column.path for row in box.fields[:2]] == ["id", "a_id"]
    assert len(box.fields) + box.more == 22
    assert boxes_of(table("a"), table("b", *many), folded=True)["b"].fields == []


@pytest.mark.parametrize(
    ("more", "label"),
    [
        ({"cardinality": {"min": 1, "max": 9}}, "1 : 1..9"),
        ({"cardinality": {"min": 2, "max": 2}}, "1 : 2"),
        ({"cardinality": {"min": 0, "max": 1_000}}, "1 : 0..1,000"),
        ({"unique": True}, "1 : 0..1"),
        ({}, "1 : n"),
    ],
)
def test_a_line_shows_how_many_children_a_parent_has(more, label):
    known = overview_of(table("a"), table("b", refers("a_id", "a", **more)))
    assert [line.label for line in overview.build_diagram(known).lines] == [label]
    assert [overview.describe_relation(known, edge) for edge in known.edges] == [
        f"B.a_id references A.id, {label}"
    ]


def test_a_line_ends_at_the_fields_it_joins():
    found = drawn(table("a"), table("b", refers("x", "a"), refers("y", "a")))
    a, b = found.boxes
    for line, row in zip(found.lines, b.fields[1:], strict=True):
        assert line.path.startswith(f"M{a.x + a.width} {a.fields[0].y}C")
        assert line.path.endswith(f" {b.x} {row.y}")


def test_tables_without_relations_are_separate_from_the_columns():
    found = drawn(table("alone"), *SHOP)
    assert [box.table.name for box in found.alone] == ["Alone"]
    assert len(found.columns) == 3


def test_tables_that_are_not_shown_are_counted_on_the_cards_of_related_tables():
    found = drawn(*SHOP, visible={"orders"})
    assert [(box.table.name, box.beyond) for box in found.boxes] == [("Orders", 2)]
    assert found.lines == []


def test_no_tables_make_an_empty_diagram():
    assert drawn().boxes == []


@pytest.mark.parametrize("seed", range(12))
def test_cards_do_not_overlap_and_everything_is_inside_the_diagram(seed):
    dice = random.Random(seed)
    names = [f"t{number}" for number in range(dice.choice([2, 5, 12, 50]))]
    tables = [
        table(
            name,
            *(refers(f"f{at}", dice.choice([*names, name])) for at in range(dice.choice([0, 0, 1, 2, 12]))),
        )
        for name in names
    ]
    found = drawn(*tables)
    assert [box.y for box in found.boxes] == [box.y for box in drawn(*tables).boxes]
    placed = [box for column in found.columns for box in column]
    for item, other in combinations(placed, 2):
        apart = item.x + item.width <= other.x or other.x + other.width <= item.x
        assert apart or item.y + item.height <= other.y or other.y + other.height <= item.y
    assert len(found.lines) == sum(
        field["type"] == "reference" for _, fields, _ in tables for field in fields
    )
    for line in found.lines:
        points = [float(number) for number in re.findall(r"-?[\d.]+", line.path)]
        assert all(0 <= x <= found.width for x in points[::2])
        assert all(0 <= y <= found.height for y in points[1::2])
    for box in placed:
        assert 0 < box.x < box.x + box.width < found.width
        assert 0 < box.y < box.y + box.height < found.height


def test_two_thousand_tables_are_related_and_drawn_quickly_enough_to_finish():
    dice = random.Random(1)
    tables = [
        table(f"t{at}", *(refers(f"f{n}", f"t{dice.randrange(at)}") for n in range(2 * bool(at))))
        for at in range(2_000)
    ]
    known = overview_of(*tables)
    assert len(known.edges) == 2 * 1_999
    assert [item.order for item in known.tables] == list(range(1, 2_001))
    assert len(overview.build_diagram(known, {item.template_id for item in known.tables[:40]}).boxes) == 40


def test_an_entered_count_stays_with_its_table():
    known = overview_of(*SHOP)
    assert replace(known.tables[1]).count == 50_000
