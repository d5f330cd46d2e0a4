"""Fields that are unique together: no two rows have the same values in all of them."""

from __future__ import annotations

import pytest

from tests.engine.relating import World, reference
from webapp.engine.errors import SpecError
from webapp.engine.spec import parse

ID = {"name": "id", "type": "row_number"}
COLOUR = {
    "name": "colour",
    "type": "custom",
    "options": {"values": ["red", "green", "blue"]},
    "unique": "pair",
}
SIZE = {"name": "size", "type": "number", "options": {"min": 1, "max": 40}, "unique": "pair"}


def values(rows: list[dict], *names: str) -> list[tuple]:
    """The values of some fields, row by row."""
    return [tuple(row[name] for name in names) for row in rows]


def codes(world: World, own: str, count: int, start: int = 0) -> list[tuple[str, str]]:
    """What is wrong with asking for rows."""
    with pytest.raises(SpecError) as refused:
        world.rows(own, count, start)
    return [(fault.path, fault.code) for fault in refused.value.faults]


def test_every_combination_occurs_once_and_no_more_are_available():
    world = World(shirts=(10, [COLOUR, SIZE]))
    assert len(set(values(world.rows("shirts", 120), "colour", "size"))) == 120
    assert codes(world, "shirts", 1, 120) == [("fields[0].unique", "not_enough_values")]


@pytest.mark.parametrize(
    "field",
    [
        {"type": "date", "options": {"min": "2020-01-01", "max": "2020-12-31"}},
        {"type": "regexp", "options": {"string": "[A-Z]{2}[0-9]"}},
        {"type": "number", "options": {"min": -5, "max": 5, "decimals": 2}},
        {"type": "hex_color"},
        {"type": "uuid"},
        {"type": "random_string", "options": {"min": 4, "max": 4}},
        {"type": "sequence"},
        {"type": "boolean"},
    ],
    ids=lambda field: field["type"],
)
def test_types_whose_values_can_be_numbered_are_unique_together_with_others(field):
    world = World(things=(10, [COLOUR, {"name": "other", **field, "unique": "pair"}]))
    count = min(500, 6 if field["type"] == "boolean" else 500)
    rows = world.rows("things", count)
    assert len(set(map(str, values(rows, "colour", "other")))) == count
    assert rows[-3:] == world.rows("things", 3, count - 3)


def test_a_pair_of_free_references_never_repeats():
    fields = [
        reference("student", "students", "id", unique="pair"),
        reference("course", "courses", "id", unique="pair"),
    ]
    world = World(students=(30, [ID]), courses=(20, [ID]), takes=(600, fields))
    rows = world.rows("takes", 600)
    assert len(set(values(rows, "student", "course"))) == 600
    assert codes(world, "takes", 601) == [("fields[0].unique", "not_enough_values")]


def test_further_fields_of_the_same_reference_show_the_same_row():
    name = {"name": "name", "type": "name"}
    fields = [
        reference("student", "students", "id", unique="pair", group="s"),
        reference("student_name", "students", "name", group="s"),
        reference("course", "courses", "id", unique="pair", group="c"),
    ]
    world = World(students=(30, [ID, name]), courses=(20, [ID]), takes=(600, fields))
    names = {row["id"]: row["name"] for row in world.all_rows("students")}
    assert all(names[row["student"]] == row["student_name"] for row in world.rows("takes", 600))


def lines(products: int) -> World:
    """Lines of orders; no order has a product twice."""
    fields = [
        reference("order", "orders", "id", cardinality={"min": 0, "max": 9}, unique="pair"),
        reference("product", "products", "id", unique="pair"),
    ]
    return World(orders=(500, [ID]), products=(products, [ID]), lines=(10, fields))


def test_children_have_a_partner_only_once_per_parent():
    world = lines(12)
    rows = world.all_rows("lines")
    assert len(set(values(rows, "order", "product"))) == len(rows) == 2250
    assert {row["product"] for row in rows} == set(range(1, 13))
    assert world.rows("lines", 50, 1111) == rows[1111:1161]


def test_too_few_partners_for_the_maximum_children_of_one_parent_are_rejected():
    assert codes(lines(8), "lines", 1) == [("fields[0].unique", "not_enough_values")]


def test_parent_and_position_are_unique_as_they_are():
    fields = [
        reference("order", "orders", "id", cardinality=3, unique="key"),
        {"name": "line", "type": "position_in_parent", "unique": "key"},
    ]
    rows = World(orders=(100, [ID]), lines=(10, fields)).all_rows("lines")
    assert len(set(values(rows, "order", "line"))) == 300


@pytest.mark.parametrize(
    ("second", "path"),
    [
        (
            {"name": "n", "type": "number", "options": {"distribution": "normal"}, "unique": "pair"},
            "fields[1].unique",
        ),
        ({"name": "n", "type": "name", "unique": "pair"}, "fields[1].unique"),
        ({**SIZE, "percent_blank": 10}, "fields[1].percent_blank"),
        ({**SIZE, "unique": False}, "fields[0].unique"),
        ({**SIZE, "unique": "another"}, "fields[0].unique"),
        (reference("n", "others", "id", distribution="zipf", unique="pair"), "fields[1].unique"),
    ],
    ids=["skewed", "in a group", "blank", "alone", "two words", "skewed reference"],
)
def test_impossible_combined_uniqueness_is_rejected(second, path):
    with pytest.raises(SpecError) as refused:
        World(things=(10, [COLOUR, second]), others=(10, [ID])).bound("things")
    assert (refused.value.faults[0].path, refused.value.faults[0].code) == (path, "not_unique")


def test_the_word_is_answered_where_it_was_sent():
    (field,) = parse([{**SIZE}]).fields
    assert field.to_json()["unique"] == "pair"
    with pytest.raises(SpecError) as refused:
        parse([{"name": "n", "type": "number", "unique_together": "pair"}])
    assert refused.value.faults[0].code == "unknown_key"
