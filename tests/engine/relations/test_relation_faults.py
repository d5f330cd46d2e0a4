"""What relations refuse: each with the path of what is wrong, a code, and what to do."""

from __future__ import annotations

import pytest

from tests.engine.relating import World, aggregate, reference, template
from webapp import limits

ID = {"name": "id", "type": "row_number"}
AMOUNT = {"name": "amount", "type": "number", "options": {"min": 1, "max": 100, "decimals": 2}}
NAME = {"name": "name", "type": "name"}
POSITION = {"name": "position", "type": "position_in_parent"}
READS = {"name": "d", "type": "derived", "options": {"value": "{{parent.idd}}"}}


def to(name="p", field="id", **more):
    return reference(name, name, field, **more)


def inside(field):
    return {"name": "a", "type": "nested", "options": {"array": True, "fields": [field]}}


REFUSED = {
    "no such template": ([reference("x", "zz", "id")], "fields[0].options.template_id", "unknown_template"),
    "no such template, total": ([aggregate("x", "zz", "id")], "fields[0].options.template_id", "unknown_template"),
    "no such template, rows": ([template("x", "zz")], "fields[0].options.template_id", "unknown_template"),
    "no such field": ([to(field="amout")], "fields[0].options.field", "unknown_field"),
    "no such field of the parent": ([to(), READS], "fields[1].options.value", "unknown_field"),
    "no parent": ([READS], "fields[0].options.value", "no_parent"),
    "several parents": ([to(), to("q"), READS], "fields[2].options.value", "no_parent"),
    "two owners": ([to(cardinality=2), to("q", cardinality=2)], "fields[1].options.cardinality", "not_for_this_type"),
    "children inside an array": (
        [inside(to(cardinality=2))], "fields[0].options.fields[0].options.cardinality", "not_for_this_type",
    ),
    "children of itself": ([ID, reference("m", "self", "id", cardinality=2)], "fields[1].options.cardinality", "*"),
    "said twice": (
        [to(cardinality=2, group="g"), reference("y", "p", "amount", group="g", cardinality=3)],
        "fields[1].options.cardinality", "contradiction",
    ),
    "two templates in a group": ([to(group="g"), to("q", group="g")], "fields[1].group", "two_templates"),
    "layout without cardinality": ([to(layout="mixed")], "fields[0].options.layout", "not_for_this_type"),
    "roots elsewhere": ([to(roots=2)], "fields[0].options.roots", "not_for_this_type"),
    "exponent without zipf": ([to(exponent=2)], "fields[0].options.exponent", "not_for_this_type"),
    "skewed and unique": ([to(distribution="zipf", unique=True)], "fields[0].unique", "not_unique"),
    "skewed with cardinality": (
        [to(distribution="normal", cardinality=2)], "fields[0].options.distribution", "not_for_this_type",
    ),
    "skewed managers": (
        [ID, reference("m", "self", "id", distribution="zipf")], "fields[1].options.distribution", "not_for_this_type",
    ),
    "unique with cardinality": ([to(cardinality=2, unique=True)], "fields[0].unique", "not_unique"),
    "unique of what repeats": ([to(field="amount", unique=True)], "fields[0].unique", "not_unique"),
    "blank with cardinality": ([to(cardinality=2, percent_blank=9)], "fields[0].percent_blank", "not_for_this_type"),
    "two shares of blanks": (
        [to(percent_blank=10), reference("y", "p", "amount", percent_blank=20)],
        "fields[1].percent_blank", "contradiction",
    ),
    "a position without a parent": ([to(), POSITION], "fields[1].type", "no_parent"),
    "a position inside an array": (
        [to(cardinality=2), inside(POSITION)], "fields[1].options.fields[0].type", "no_parent",
    ),
    "a relation without children": ([ID, aggregate("s", "q", "id")], "fields[1].options.template_id", "no_cardinality"),
    "a total inside an array": ([ID, inside(aggregate("s", "q", "id"))], "fields[1].options.fields[0].type", "*"),
    "a broken parent": ([reference("x", "broken", "b")], "fields[0].options.field", "related_fault"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_rejected_with_path_code_and_hint(case):
    fields, path, code = REFUSED[case]
    broken = [{"name": "b", "type": "number", "options": {"min": 5, "max": 1}}]
    found = World(p=(10, [ID, AMOUNT]), q=(10, [ID]), broken=(1, broken), c=(10, fields)).faults("c")
    assert path in found
    assert code in (found[path].code, "*")
    assert found[path].message
    assert found[path].hint


def test_a_name_that_is_nearly_right_is_proposed():
    found = World(p=(10, [ID, AMOUNT]), c=(10, [to(field="amout"), READS])).faults("c")
    assert "amount" in found["fields[0].options.field"].hint
    assert "id" in found["fields[1].options.value"].hint


@pytest.mark.parametrize(
    ("inputs", "path"),
    [
        ({"min": 3, "max": 2}, "cardinality"),
        ({"min": -1, "max": 2}, "cardinality.min"),
        (0, "cardinality"),
        ({"min": 1, "max": 10_001}, "cardinality.max"),
        ({"min": 1, "max": 2, "weights": [1, 2]}, "cardinality"),
        ({"min": 1, "max": 2, "distribution": "weights", "weights": [1, 2, 3]}, "cardinality"),
        ({"min": 1, "max": 2, "distribution": "weights"}, "cardinality"),
        ({"min": 1, "max": 2, "distribution": "zipf", "mean": 9}, "cardinality"),
        ({"min": 1, "max": 2, "maxx": 9}, "cardinality.maxx"),
        (True, "cardinality"),
        ("2", "cardinality"),
        (1.5, "cardinality"),
    ],
)
def test_an_invalid_cardinality_is_rejected(inputs, path):
    found = World(p=(10, [ID]), c=(10, [to(cardinality=inputs)])).faults("c")
    assert list(found) == [f"fields[0].options.{path}"]


CHILD = [
    to(cardinality=2),
    AMOUNT,
    NAME,
    {"name": "at", "type": "datetime"},
    {"name": "ok", "type": "boolean"},
]
TOTALS = {
    "no field": (aggregate("s", "c"), "options.field", "required"),
    "no such field": (aggregate("s", "c", "amoun"), "options.field", "unknown_field"),
    "sum of texts": (aggregate("s", "c", "name"), "options.field", "wrong_type"),
    "sum of moments": (aggregate("s", "c", "at"), "options.field", "wrong_type"),
    "span of moments": (aggregate("s", "c", "at", "span"), "options.field", "wrong_type"),
    "average of truths": (aggregate("s", "c", "ok", "avg"), "options.field", "wrong_type"),
    "any of numbers": (aggregate("s", "c", "amount", "any"), "options.field", "wrong_type"),
    "least of texts": (aggregate("s", "c", "name", "min"), "options.field", "wrong_type"),
    "decimals of a sum": (aggregate("s", "c", "amount", decimals=1), "options.decimals", "not_for_this_type"),
}


@pytest.mark.parametrize("case", TOTALS)
def test_an_impossible_total_is_rejected(case):
    field, option, code = TOTALS[case]
    found = World(p=(10, [ID, field]), c=(1, CHILD)).faults("p")
    assert {path: fault.code for path, fault in found.items()} == {f"fields[1].{option}": code}
    assert all(fault.hint for fault in found.values())


def test_totals_over_a_free_reference_are_rejected_with_a_remedy():
    (fault,) = World(p=(10, [ID, aggregate("s", "c", "amount")]), c=(1, [to(), AMOUNT])).faults("p").values()
    assert (fault.path, fault.code) == ("fields[1].options.template_id", "no_cardinality")
    assert "cardinality" in fault.hint


def test_totals_of_totals_that_need_too_many_cells_are_rejected():
    middle = [ID, to("a", cardinality=200), aggregate("t", "c", "v")]
    lowest = [to("b", cardinality=100), {"name": "v", "type": "number"}]
    through = {"name": "k", "type": "derived", "options": {"value": "{{t}}"}}
    for read, function in (("t", "sum"), ("k", "first")):
        world = World(
            a=(5, [ID, aggregate("s", "b", read, function)]), b=(1, [*middle, through]), c=(1, lowest)
        )
        (fault,) = world.faults("a").values()
        assert (fault.path, fault.code) == ("fields[1]", "too_many_cells")
        assert "20,201" in fault.message  # itself, 200 children, 100 of each of those
        assert fault.hint


def test_templates_with_circular_row_counts_are_rejected():
    world = World(p=(1, [ID, to("c", cardinality=2)]), c=(1, [ID, to("p", cardinality=2)]))
    for own in ("p", "c"):
        assert {fault.code for fault in world.faults(own).values()} == {"unrelated"}


def test_every_error_is_reported_together():
    fields = [to(field="amout"), reference("x", "zz", "id"), aggregate("s", "p", "id"), POSITION]
    assert len(World(p=(10, [ID, AMOUNT]), c=(10, fields)).faults("c")) == 4


def test_references_that_double_at_every_step_are_rejected_and_a_long_chain_is_not():
    """Two groups of references at each of 15 steps would be 2**15 blocks; one at each is 15."""

    def steps(count, sides):
        result = [ID]
        for step in range(count):
            texts = "".join(f"{{{{{side}{step}}}}}" for side in sides)
            result.append({"name": f"f{step}", "type": "derived", "options": {"value": texts}})
            result += [
                reference(f"{side}{step}", "self", f"f{step + 1}", group=f"{side}{step}") for side in sides
            ]
        return World(c=(1000, [*result, {"name": f"f{count}", "type": "number"}]))

    found = steps(15, "ab").faults("c")
    assert {fault.code for fault in found.values()} == {"too_many_cells"}
    assert "fields[1]" in found
    assert len(steps(15, "a").rows("c", 3)) == 3
    assert len(steps(6, "ab").rows("c", 3)) == 3


def test_chains_of_dependent_fields_that_are_too_long_are_rejected():
    def chain(count):
        result = [reference(f"f{at}", "self", f"f{at + 1}", group=f"g{at}") for at in range(count)]
        return World(c=(1000, [*result, {"name": f"f{count}", "type": "number"}]))

    assert len(chain(limits.MAX_CHAIN - 1).rows("c", 300)) == 300
    assert "too_deep" in {fault.code for fault in chain(limits.MAX_CHAIN).faults("c").values()}
