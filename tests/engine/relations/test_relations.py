"""References: which row of another template a row takes, and what it shows of it."""

from __future__ import annotations

import time
import tracemalloc
from collections import Counter

import numpy as np
import pytest

from tests.engine.relating import World, reference

ID = {"name": "id", "type": "row_number"}
NAME = {"name": "name", "type": "name"}
COUNTRY = {"name": "country", "type": "country"}
CITY = {"name": "city", "type": "city"}
EMAIL = {"name": "email", "type": "email"}
CODE = {"name": "code", "type": "number", "options": {"min": 1, "max": 5000}, "unique": True}
PEOPLE = [ID, NAME, EMAIL, CITY, COUNTRY, CODE]


def pets(*fields, people=1000, **more):
    """People, and pets that refer to them."""
    return World(
        people=(people, PEOPLE), pets=(500, [{"name": "pet", "type": "row_number"}, *fields]), **more
    )


def by_id(rows, key="id"):
    return {row[key]: row for row in rows}


# --- Which row, and what is shown of it -------------------------------------------------------------------------


def test_a_reference_shows_a_value_that_the_other_template_has():
    world = pets(reference("owner", "people", "id"))
    there = {row["id"] for row in world.all_rows("people")}
    assert {row["owner"] for row in world.rows("pets", 3000)} <= there


def test_several_fields_of_one_group_are_of_one_row_and_equal_what_the_other_template_makes():
    shown = ("id", "name", "email", "city", "country", "code")
    world = pets(*(reference(f"owner_{name}", "people", name) for name in shown))
    people = by_id(world.all_rows("people"))
    for row in world.rows("pets", 2000):
        assert {name: row[f"owner_{name}"] for name in shown} == people[row["owner_id"]]


def test_a_composite_key_takes_both_parts_from_one_row():
    parents = [
        {"name": "a", "type": "number", "options": {"max": 10}},
        {"name": "b", "type": "number", "options": {"max": 10}},
    ]
    world = World(
        p=(50, parents),
        c=(10, [reference("x", "p", "a", group="key"), reference("y", "p", "b", group="key")]),
    )
    pairs = {(row["a"], row["b"]) for row in world.all_rows("p")}
    assert {(row["x"], row["y"]) for row in world.rows("c", 1000)} <= pairs


def test_references_of_two_groups_take_rows_by_themselves():
    world = pets(reference("owner", "people", "id"), reference("vet", "people", "id", group="vet"))
    same = sum(row["owner"] == row["vet"] for row in world.rows("pets", 5000))
    assert same < 30


def test_a_second_reference_without_a_group_joins_the_first_of_the_same_template():
    world = pets(reference("owner", "people", "id"), reference("owner_name", "people", "name"))
    assert len({field.group for field in world.spec("pets").fields[1:]}) == 1


def test_a_second_reference_to_the_same_field_takes_another_row():
    world = pets(reference("owner", "people", "id"), reference("vet", "people", "id"))
    assert sum(row["owner"] == row["vet"] for row in world.rows("pets", 5000)) < 30


def test_a_reference_that_names_no_field_shows_the_key():
    world = World(p=(5, [NAME, ID]), q=(5, [NAME, CODE]), c=(5, [reference("x", "p"), reference("y", "q")]))
    assert {row["x"] for row in world.rows("c", 300)} == {1, 2, 3, 4, 5}
    assert {row["y"] for row in world.rows("c", 300)} == {row["code"] for row in world.all_rows("q")}


def test_fields_of_the_parent_are_read_by_texts_and_formulas():
    amount = {"name": "amount", "type": "number", "options": {"max": 500}}
    fields = [
        reference("owner", "people", "id"),
        reference("owner_name", "people", "name"),
        {"name": "dear", "type": "derived", "options": {"value": "{{parent.name}}/{{parent.city}}/{{pet}}"}},
        {"name": "twice", "type": "formula", "options": {"expression": "owner * 2 + 1"}},
    ]
    world = World(
        people=(100, [*PEOPLE, amount]), pets=(10, [{"name": "pet", "type": "row_number"}, *fields])
    )
    people = by_id(world.all_rows("people"))
    for row in world.rows("pets", 300):
        owner = people[row["owner"]]
        assert row["dear"] == f"{owner['name']}/{owner['city']}/{row['pet']}"
        assert row["twice"] == row["owner"] * 2 + 1


def test_a_hidden_field_and_a_changed_text_of_the_parent_are_shown_as_they_are():
    dressed = {**NAME, "text_case": "upper", "prefix": "Dr. ", "hidden": True}
    world = World(
        p=(20, [ID, dressed]), c=(20, [reference("x", "p", "name", suffix=""), reference("n", "p", "id")])
    )
    assert all(row["x"].startswith("Dr. ") and row["x"][4:].isupper() for row in world.rows("c", 50))
    assert list(world.all_rows("p")[0]) == ["id"]


def test_a_reference_may_be_dressed_itself_and_its_blanks_stay_blank():
    world = pets(reference("owner", "people", "id", prefix="C-", percent_blank=50))
    rows = world.rows("pets", 200)
    assert sum(row["owner"] is None for row in rows) == 100
    assert all(row["owner"] is None or row["owner"].startswith("C-") for row in rows)


# --- Random access to rows ---------------------------------------------------------------------------------------

KINDS = {
    "uniform": reference("x", "people", "id"),
    "zipf": reference("x", "people", "id", distribution="zipf", exponent=1),
    "normal": reference("x", "people", "id", distribution="normal"),
    "null share": reference("x", "people", "id", percent_blank=30),
    "unique": reference("x", "people", "id", unique=True),
    "unique and null share": reference("x", "people", "id", unique=True, percent_blank=30),
    "self": reference("x", "self", "pet"),
    "self, several roots": reference("x", "self", "pet", roots=7, percent_blank=20),
    "cardinality": reference("x", "people", "id", cardinality={"min": 0, "max": 3}),
    "cardinality, mixed": reference("x", "people", "id", cardinality={"min": 0, "max": 3}, layout="mixed"),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
def test_any_window_and_any_scattered_rows_are_those_of_the_whole(kind):
    world = pets(
        KINDS[kind],
        reference("y", KINDS[kind]["options"]["template_id"], "pet" if "self" in kind else "name"),
    )
    whole = world.rows("pets", 900)
    for start, count in ((0, 1), (0, 3), (255, 2), (256, 300), (899, 1)):
        assert world.rows("pets", count, start) == whole[start : start + count]
    order = np.random.default_rng(3).permutation(900)[:200].tolist()
    assert world.at("pets", order) == [whole[row] for row in order]
    assert world.at("pets", [5, 5, 5]) == [whole[5]] * 3
    assert world.at("pets", []) == []


@every_kind
def test_another_seed_makes_other_choices(kind):
    world = pets(KINDS[kind])
    first, other = (world.rows("pets", 500, seed=seed) for seed in ("one", "two"))
    assert [row["x"] for row in first] != [row["x"] for row in other]


def test_a_renamed_or_further_field_of_the_parent_leaves_the_children_as_they_were():
    plain = {"id": "fld_00000000000000000000000001", **ID}
    name = {"id": "fld_00000000000000000000000002", **NAME}
    before = World(p=(100, [plain, name]), c=(10, [reference("x", "p", "id"), reference("n", "p", "name")]))
    renamed = [{**plain, "name": "number"}, {**name, "name": "called"}, CITY, COUNTRY, EMAIL]
    after = World(p=(100, renamed), c=(10, [reference("x", "p", "number"), reference("n", "p", "called")]))
    assert before.rows("c", 500) == after.rows("c", 500)


def test_a_parent_that_is_far_away_costs_what_a_near_one_does_and_no_memory():
    world = pets(
        reference("x", "people", "id"),
        reference("name", "people", "name"),
        reference("z", "people", "id", group="z", distribution="zipf"),
        people=10**9,
    )
    world.fields["people"] = [ID, NAME]
    source = world.bound("pets")
    source.block(0, 3)
    tracemalloc.start()
    before = time.process_time()
    generated = [source.block(10**15 + at, 1000) for at in range(0, 10_000, 1000)]
    spent = time.process_time() - before
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert max(block[1].to_numpy().max() for block in generated) > 0.99 * 10**9
    assert peak < 20_000_000
    assert spent < 30  # nothing is walked through: a walk of a billion rows would take minutes


def test_overrides_are_shown_and_the_rest_of_the_group_is_marked():
    world = pets(reference("owner", "people", "id"), reference("name", "people", "name"))
    source = world.bound("pets", overrides={"name": "Bob"})
    assert [fault.path for fault in source.warnings] == ["overrides.name"]
    rows = world.rows("pets", 50, overrides={"name": "Bob"})
    assert {row["name"] for row in rows} == {"Bob"}
    assert [row["owner"] for row in rows] == [row["owner"] for row in world.rows("pets", 50)]


# --- How rows are chosen ----------------------------------------------------------------------------------------


def test_an_even_choice_takes_every_row_about_as_often():
    taken = Counter(row["x"] for row in pets(KINDS["uniform"], people=100).rows("pets", 20_000))
    assert len(taken) == 100
    assert min(taken.values()) > 130
    assert max(taken.values()) < 270


def test_zipf_takes_the_most_popular_row_twice_as_often_as_the_second():
    taken = Counter(row["x"] for row in pets(KINDS["zipf"]).rows("pets", 20_000)).most_common()
    (first, most), (_, second) = taken[:2]
    assert 1.7 < most / second < 2.4
    assert 0.11 < most / 20_000 < 0.16  # 1 / H(1000)
    assert first > 3  # which rows are popular is up to the seed


def test_a_steeper_zipf_takes_fewer_rows():
    steep = reference("x", "people", "id", distribution="zipf", exponent=2)
    flat = reference("x", "people", "id", distribution="zipf", exponent="0.5")
    distinct = [len({row["x"] for row in pets(kind).rows("pets", 5000)}) for kind in (steep, flat)]
    assert distinct[0] < distinct[1] / 2


def test_normal_takes_rows_around_the_middle():
    taken = np.array([row["x"] for row in pets(KINDS["normal"]).rows("pets", 20_000)])
    assert abs(taken.mean() - 500.5) < 5
    assert abs(taken.std() - 1000 / 6) < 10
    assert taken.min() >= 1
    assert taken.max() <= 1000


def test_blanks_are_exact_in_every_hundred_and_shared_by_the_group():
    world = pets(reference("x", "people", "id", percent_blank=30), reference("name", "people", "name"))
    blank = [(row["x"] is None, row["name"] is None) for row in world.rows("pets", 1000)]
    assert {sum(x for x, _ in blank[at : at + 100]) for at in range(0, 1000, 100)} == {30}
    assert all(x == name for x, name in blank)


def test_the_same_rows_are_taken_with_and_without_blanks():
    full = pets(KINDS["uniform"]).rows("pets", 500)
    some = pets(KINDS["null share"]).rows("pets", 500)
    assert all(b["x"] in (None, a["x"]) for a, b in zip(full, some, strict=True))


# --- One to one -------------------------------------------------------------------------------------------------


def test_a_unique_reference_takes_each_row_once_and_all_of_them():
    world = pets(KINDS["unique"], reference("name", "people", "name"))
    rows = world.rows("pets", 1000)
    assert sorted(row["x"] for row in rows) == list(range(1, 1001))
    people = by_id(world.all_rows("people"))
    assert all(people[row["x"]]["name"] == row["name"] for row in rows)


def test_a_unique_reference_needs_as_many_parents_as_rows():
    (fault,) = pets(KINDS["unique"]).refused("pets", 1001)
    assert (fault.path, fault.code) == ("fields[1].unique", "not_enough_values")
    assert "1,001" in fault.message
    assert "1,000" in fault.message


def test_with_a_null_share_it_needs_as_many_as_are_not_blank():
    world = pets(KINDS["unique and null share"], people=700)
    rows = world.rows("pets", 1000)
    taken = [row["x"] for row in rows if row["x"] is not None]
    assert len(taken) == 700
    assert sorted(taken) == list(range(1, 701))
    assert [fault.code for fault in world.refused("pets", 1100)] == ["not_enough_values"]


# --- A template that refers to itself ---------------------------------------------------------------------------

STAFF = [
    ID,
    NAME,
    reference("manager", "self", "id"),
    reference("manager_name", "self", "name"),
]


def test_every_row_has_an_earlier_one_above_it_and_all_lead_to_the_root():
    rows = World(staff=(5000, STAFF)).all_rows("staff")
    assert [row["manager"] for row in rows[:1]] == [None]
    assert all(row["manager"] < row["id"] for row in rows[1:])
    names = {row["id"]: row["name"] for row in rows}
    assert all(row["manager_name"] == names.get(row["manager"]) for row in rows)


def test_there_are_as_many_roots_as_stated():
    roots = World(staff=(100, [ID, reference("up", "self", "id", roots=4)])).all_rows("staff")
    assert [row["id"] for row in roots if row["up"] is None] == [1, 2, 3, 4]


def test_an_optional_parent_is_missing_in_that_share_of_the_rows():
    rows = World(staff=(1000, [ID, reference("up", "self", "id", percent_blank=25)])).all_rows("staff")
    blank = [row["id"] for row in rows if row["up"] is None]
    assert len(set(blank) - {1}) in (249, 250)
    assert all(row["up"] is None or row["up"] < row["id"] for row in rows)


def test_a_template_may_name_itself_by_its_id():
    world = World(staff=(100, [ID, reference("up", "staff", "id")]))
    world_self = World(staff=(100, [ID, reference("up", "self", "id")]))
    library = world.library("staff")
    assert library.own_id == "staff"
    assert world.all_rows("staff") == world_self.all_rows("staff")


def test_elements_of_an_array_may_refer_to_any_row_of_their_own_template():
    inner = [reference("friend", "self", "id"), reference("friend_name", "self", "name")]
    friends = {"name": "friends", "type": "nested", "options": {"array": True, "count": 3, "fields": inner}}
    rows = World(people=(50, [ID, NAME, friends])).all_rows("people")
    names = {row["id"]: row["name"] for row in rows}
    met = [friend for row in rows for friend in row["friends"]]
    assert len({friend["friend"] for friend in met}) > 30
    assert all(names[friend["friend"]] == friend["friend_name"] for friend in met)


# --- Templates that refer to each other -------------------------------------------------------------------------


def test_templates_may_refer_to_each_other():
    employees = [ID, NAME, reference("department", "d", "id"), reference("department_name", "d", "title")]
    departments = [
        ID,
        {"name": "title", "type": "department"},
        reference("head", "e", "id"),
        reference("hn", "e", "name"),
    ]
    world = World(e=(200, employees), d=(10, departments))
    people, units = by_id(world.all_rows("e")), by_id(world.all_rows("d"))
    assert all(units[row["department"]]["title"] == row["department_name"] for row in people.values())
    assert all(people[row["head"]]["name"] == row["hn"] for row in units.values())


def test_a_circular_dependency_of_values_is_rejected_with_its_path():
    world = World(
        a=(10, [ID, reference("x", "b", "y")]),
        b=(10, [ID, reference("y", "c", "z")]),
        c=(10, [reference("z", "a", "x")]),
    )
    (fault,) = world.faults("a").values()
    assert (fault.path, fault.code) == ("fields[1].options.field", "cycle")
    assert "x -> b.y -> c.z -> x" in fault.message
    assert fault.hint


def test_a_self_reference_to_the_same_field_is_rejected():
    (fault,) = World(a=(10, [ID, reference("x", "self", "x")])).faults("a").values()
    assert fault.code == "cycle"


def test_a_reference_to_a_template_without_rows_is_blank():
    none = [ID, reference("p", "p", "id", cardinality={"min": 0, "max": 1})]
    world = World(p=(10, [ID]), none=(1, none), z=(5, [reference("x", "none", "id")]), stated={"none": 0})
    assert world.rows("z", 5) == [{"x": None}] * 5


def test_references_in_arrays_are_embedded_with_their_context():
    inner = [
        reference("pid", "p", "id"),
        reference("pn", "p", "name"),
        {"name": "d", "type": "derived", "options": {"value": "{{pn}}/{{id}}"}},
    ]
    items = {
        "name": "items",
        "type": "nested",
        "options": {"array": True, "count": {"min": 0, "max": 3}, "fields": inner},
    }
    world = World(p=(50, [ID, NAME]), c=(20, [ID, items]))
    names = {row["id"]: row["name"] for row in world.all_rows("p")}
    rows = world.rows("c", 300)
    assert len({item["pid"] for row in rows for item in row["items"]}) == 50
    for row in rows:
        for item in row["items"]:
            assert (item["pn"], item["d"]) == (names[item["pid"]], f"{names[item['pid']]}/{row['id']}")


# --- What the other template cannot give ------------------------------------------------------------------------


def test_parents_without_enough_distinct_values_are_rejected_before_the_first_row():
    code = {**CODE, "options": {"min": 1, "max": 50}}
    (fault,) = World(p=(1000, [code]), c=(10, [reference("x", "p", "code")])).refused("c", 3)
    assert (fault.path, fault.code) == ("fields[0]", "not_enough_values")
    assert "1,000" in fault.message
    assert "50" in fault.message
    assert fault.hint


def test_it_is_reported_at_the_field_that_leads_there_through_several_templates():
    code = {**CODE, "options": {"min": 1, "max": 50}}
    world = World(
        p=(1000, [code]), q=(10, [reference("y", "p", "code")]), c=(10, [ID, reference("x", "q", "y")])
    )
    assert [(fault.path, fault.code) for fault in world.refused("c", 3)] == [
        ("fields[1]", "not_enough_values")
    ]
