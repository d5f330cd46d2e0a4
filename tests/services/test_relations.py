"""Relations between templates are derived from their stored fields, in a stable order."""

from __future__ import annotations

from typing import Any

import pytest

from webapp.row_templates.services import relations
from webapp.row_templates.services.relations import Edge


def stored(
    name: str, kind: str = "row_number", fields: list[Any] | None = None, **more: Any
) -> dict[str, Any]:
    common = {"percent_blank": 0, "unique": False, "hidden": False, "formula": None}
    options = {key: value for key, value in more.items() if key not in common}
    if fields is not None:
        options["fields"] = fields
    values = {key: value for key, value in more.items() if key in common}
    return {"id": f"fld_{name}", "name": name, "type": kind, "options": options, **common, **values}


def refers(name: str, to: str, field: str = "id", **more: Any) -> dict[str, Any]:
    return stored(name, "reference", template_id=to, field=field, **more)


CUSTOMERS = [stored("id"), stored("email", "email", unique=True)]
SHOP = {
    "lines": [stored("id"), refers("order_id", "orders", cardinality={"min": 1, "max": 9})],
    "orders": [stored("id"), refers("customer_id", "customers")],
    "customers": CUSTOMERS,
}


def ring(*names: str) -> dict[str, Any]:
    """Each refers to the next, the last to the first."""
    return {
        name: [stored("id"), refers("next_id", to)]
        for name, to in zip(names, [*names[1:], names[0]], strict=True)
    }


def ordered(templates: dict[str, Any]) -> tuple[str, list[tuple[str, str]]]:
    found = relations.sort_tables(list(templates), relations.find_edges(templates))
    return " ".join(found.template_ids), [
        (e.child_template_id, e.parent_template_id) for e in found.cyclic_edges
    ]


def test_edges_are_reported_with_their_cardinality():
    assert relations.find_edges(SHOP) == [
        Edge("lines", "order_id", "orders", "id", {"min": 1, "max": 9}),
        Edge("orders", "customer_id", "customers", "id"),
    ]


def test_edges_of_nested_fields_are_found_by_their_paths():
    inner = stored("buyer", "nested", [refers("email", "customers", "email", unique=True)])
    found = relations.find_edges({"orders": [stored("head", "nested", [inner])], "customers": CUSTOMERS})
    assert found == [Edge("orders", "head.buyer.email", "customers", "email", None, unique=True)]


def test_a_parents_field_referenced_by_id_is_reported_by_its_path():
    assert (
        relations.find_edges({"o": [refers("c", "customers", "fld_email")], "customers": CUSTOMERS})[
            0
        ].parent_field
        == "email"
    )


def test_self_is_the_own_template():
    (edge,) = relations.find_edges({"staff": [stored("id"), refers("manager", "self")]})
    assert (edge.parent_template_id, edge.is_self_reference) == ("staff", True)


def test_an_edge_to_an_outside_template_is_reported_and_not_among_the_tables():
    found = relations.find_edges({"orders": SHOP["orders"]})
    assert [edge.parent_template_id for edge in found] == ["customers"]
    assert relations.edges_among(found, ["orders"]) == []


def test_other_types_with_a_template_are_no_edges():
    assert relations.find_edges({"a": [stored("sum", "aggregate", template_id="b", field="n")]}) == []


def test_parents_come_before_their_children():
    assert ordered(SHOP) == ("customers orders lines", [])


def test_unrelated_settings_are_unchanged():
    assert ordered({"b": [stored("id")], "a": [stored("id")], "c": [refers("x", "a")]}) == ("b a c", [])


def test_a_table_that_refers_to_itself_is_in_order_with_that_edge_broken():
    assert ordered({"staff": [stored("id"), refers("boss", "self")]}) == ("staff", [("staff", "staff")])


@pytest.mark.parametrize("names", ["ab", "abc", "abcd"])
def test_a_ring_is_opened_at_its_first_table_and_loses_one_edge(names):
    found, broken = ordered(ring(*names))
    assert found.split()[0] == "a"
    assert broken == [("a", "b")]


def test_tables_that_depend_on_a_circular_reference_do_not_break_it():
    templates = {"child": [refers("x", "a")], **ring("a", "b")}
    assert ordered(templates) == ("a child b", [("a", "b")])


def test_a_ring_below_a_ring_waits_for_it():
    below = {"c": [refers("d", "d"), refers("a", "a")], "d": [refers("c", "c")]}
    found, broken = ordered({**below, **ring("a", "b")})
    assert found == "a b c d"
    assert broken == [("c", "d"), ("a", "b")]


def test_an_order_is_the_same_with_any_hash_seed():
    many = {f"t{n}": [stored("id"), refers("up", f"t{(n * 7 + 3) % 50}")] for n in range(50)}
    first = ordered(many)
    assert all(ordered(dict(many)) == first for _ in range(3))
    place = {item: at for at, item in enumerate(first[0].split())}
    remaining = [
        e for e in relations.find_edges(many) if (e.child_template_id, e.parent_template_id) not in first[1]
    ]
    assert all(place[e.parent_template_id] < place[e.child_template_id] for e in remaining)


def test_depths_count_the_parents_above():
    edges = relations.find_edges(SHOP)
    assert relations.table_depths(list(SHOP), edges) == {"customers": 0, "orders": 1, "lines": 2}
    two = ring("a", "b")
    assert relations.table_depths(list(two), relations.find_edges(two)) == {"a": 0, "b": 1}


@pytest.mark.parametrize(
    ("field", "sure"),
    [
        (stored("id"), True),
        (stored("id", "uuid"), True),
        (stored("id", "uuid", percent_blank=5), False),
        (stored("id", "row_number", formula="this % 2"), False),
        (stored("n", "number"), False),
        (stored("n", "number", unique=True), True),
        (stored("n", "uuid", primaryKey=True), True),
    ],
)
def test_a_key_is_what_never_repeats(field, sure):
    assert relations.identifies_rows(field) is sure


def test_the_primary_key_is_the_marked_the_referenced_or_the_first_unique_field():
    text = stored("key", "uuid", primaryKey=True)
    assert relations.find_primary_key([stored("id"), text], ["id"]) == "key"
    assert relations.find_primary_key(CUSTOMERS, ["email"]) == "email"
    assert relations.find_primary_key(CUSTOMERS) == "id"
    assert relations.find_primary_key([stored("n", "number")]) is None
    assert relations.find_primary_key([stored("id", hidden=True), stored("u", "ulid")]) == "u"


def test_a_reference_of_the_same_group_has_the_cardinality_that_the_other_one_states():
    few = {"min": 1, "max": 5}
    fields = [
        {**refers("customer_id", "customers", cardinality=few), "group": "parent"},
        {**refers("customer_email", "customers", "email"), "group": "parent"},
        {**refers("seller_id", "customers"), "group": "parent_2"},
    ]
    found = relations.find_edges({"orders": fields, "customers": CUSTOMERS})
    assert [edge.cardinality for edge in found] == [few, few, None]


def test_a_ring_is_opened_at_a_reference_that_may_wait():
    templates = ring("a", "b", "c")
    found = relations.sort_tables(
        list(templates), relations.find_edges(templates), lambda template: template.child_template_id == "b"
    )
    assert found.template_ids == ("b", "a", "c")
    assert [edge.child_template_id for edge in found.cyclic_edges] == ["b"]


def test_a_table_whose_references_may_not_all_wait_opens_no_ring():
    both = [stored("id"), refers("a_id", "a"), refers("b_id", "b")]
    templates = {**ring("a", "b"), "c": both, "a": [stored("id"), refers("b_id", "b"), refers("c_id", "c")]}
    edges = relations.find_edges(templates)
    found = relations.sort_tables(
        list(templates), edges, lambda template: template.child_field in ("next_id", "a_id", "b_id")
    )
    assert found.template_ids == ("b", "c", "a")
    assert {(edge.child_template_id, edge.parent_template_id) for edge in found.cyclic_edges} == {
        ("b", "a"),
        ("c", "a"),
    }
