"""The diagram of a dataset's relations: boxes have positions, lines connect two boxes, and there is a text version."""

from __future__ import annotations

import random
import re
from itertools import combinations

import pytest

from tests.services.test_relations import refers, stored
from webapp.datasets.views import diagram


def table(name, *fields, count=5):
    return diagram.Table(name, name.title(), [stored("id"), *fields], count)


def boxes_of(*tables):
    return {box.template_id: box for box in diagram.of(tables).boxes}


SHOP = (
    table("lines", refers("order_id", "orders", cardinality={"min": 1, "max": 9})),
    table("orders", refers("customer_id", "customers"), count=50_000),
    table("customers", count=1),
)


def test_parents_are_left_of_their_children():
    boxes = boxes_of(*SHOP)
    assert boxes["customers"].x < boxes["orders"].x < boxes["lines"].x


def test_a_box_shows_rows_keys_and_references():
    boxes = boxes_of(*SHOP)
    assert [
        (boxes[one].rows, [(r.mark, r.text) for r in boxes[one].fields]) for one in ("orders", "customers")
    ] == [
        ("50,000 rows", [("PK", "id"), ("FK", "customer_id")]),
        ("1 row", [("PK", "id")]),
    ]


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
    found = diagram.of([table("a"), table("b", refers("a_id", "a", **more))])
    assert [line.label for line in found.lines] == [label]
    assert found.texts == [f"B.a_id refers to A.id, {label}"]


def test_a_line_ends_at_the_fields_it_joins():
    found = diagram.of([table("a"), table("b", refers("x", "a"), refers("y", "a"))])
    a, b = found.boxes
    for line, row in zip(found.lines, b.fields[1:], strict=True):
        assert line.path.startswith(f"M{a.x + a.width} {a.fields[0].y}C")
        assert line.path.endswith(f" {b.x} {row.y}")


def test_tables_without_relations_are_below_the_others():
    found = diagram.of([table("alone"), *SHOP])
    lowest = max(box.y + box.height for box in found.boxes if box.template_id != "alone")
    assert next(box.y for box in found.boxes if box.template_id == "alone") >= lowest


def test_no_tables_make_an_empty_picture():
    assert diagram.of([]).boxes == []


@pytest.mark.parametrize("seed", range(12))
def test_boxes_do_not_overlap_and_everything_is_inside_the_diagram(seed):
    dice = random.Random(seed)
    names = [f"t{number}" for number in range(dice.choice([2, 5, 12, 50]))]
    tables = [
        table(
            name,
            *(refers(f"f{at}", dice.choice([*names, "self"])) for at in range(dice.choice([0, 0, 1, 2, 12]))),
        )
        for name in names
    ]
    found = diagram.of(tables)
    assert found == diagram.of(tables)
    for one, other in combinations(found.boxes, 2):
        apart = one.x + one.width <= other.x or other.x + other.width <= one.x
        assert apart or one.y + one.height <= other.y or other.y + other.height <= one.y
    assert len(found.lines) == sum(field["type"] == "reference" for one in tables for field in one.fields)
    for line in found.lines:
        points = [float(number) for number in re.findall(r"-?[\d.]+", line.path)]
        assert all(0 <= x <= found.width for x in points[::2])
        assert all(0 <= y <= found.height for y in points[1::2])
    for box in found.boxes:
        assert 0 < box.x < box.x + box.width < found.width
        assert 0 < box.y < box.y + box.height < found.height
