"""Two references of a row to the same template that never take the same row."""

from __future__ import annotations

import pytest

from tests.engine.relating import World, reference

PEOPLE = [{"name": "id", "type": "row_number"}]


def friends(count: int, **more: object) -> World:
    """`count` people, and friendships between two of them."""
    return World(
        people=(count, PEOPLE),
        friends=(
            10,
            [
                {**reference("a", "people", "id", group="a"), **more},
                {**reference("b", "people", "id", group="b", differs_from="a"), **more},
            ],
        ),
    )


@pytest.mark.parametrize("count", [2, 3, 20])
def test_they_take_different_rows_and_every_pair_occurs(count):
    pairs = [(row["a"], row["b"]) for row in friends(count).rows("friends", 20_000)]
    assert all(a != b for a, b in pairs)
    assert len(set(pairs)) == count * (count - 1)


def test_rows_are_the_same_in_any_block():
    world = friends(9)
    assert world.rows("friends", 30)[20:] == world.rows("friends", 10, 20)


def test_pairs_that_never_repeat_are_all_pairs_of_different_rows():
    world = friends(12, unique="pair")
    pairs = {(row["a"], row["b"]) for row in world.rows("friends", 12 * 11)}
    assert len(pairs) == 12 * 11
    assert all(a != b for a, b in pairs)


@pytest.mark.parametrize(
    ("fields", "path", "code"),
    [
        ([reference("b", "p", "id", group="b", differs_from="zz")], "fields[0]", "unknown_field"),
        (
            [reference("a", "q", "id", group="a"), reference("b", "p", "id", group="b", differs_from="a")],
            "fields[1]",
            "two_templates",
        ),
        (
            [
                reference("a", "p", "id", group="a"),
                {**reference("b", "p", "id", group="b", differs_from="a"), "unique": True},
            ],
            "fields[1]",
            "not_for_this_type",
        ),
        (
            [
                reference("a", "p", "id", group="a", differs_from="b"),
                reference("b", "p", "id", group="b", differs_from="a"),
            ],
            "fields[0]",
            "contradiction",
        ),
        (
            [
                reference("a", "one", "id", group="a"),
                reference("b", "one", "id", group="b", differs_from="a"),
            ],
            "fields[1]",
            "out_of_range",
        ),
    ],
)
def test_what_cannot_differ_is_an_error(fields, path, code):
    world = World(p=(5, PEOPLE), q=(5, PEOPLE), one=(1, PEOPLE), own=(10, fields))
    found = world.faults("own")
    assert found[f"{path}.options.differs_from"].code == code
