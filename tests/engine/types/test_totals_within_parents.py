"""A running total that restarts for each parent."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from webapp.engine import groups
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.data import vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.plan import compile_plan
from webapp.engine.relations.related_plans import RelatedTemplate, TemplateLibrary
from webapp.engine.spec import TemplateSpec, parse

ENV = GenerationContext("totals", datetime(2026, 1, 1, tzinfo=UTC))
PARENTS, CHILDREN = 1_000, 4_000
LINES: list[dict[str, Any]] = [
    {"name": "position", "type": "position_in_parent"},
    {
        "name": "amount",
        "type": "number",
        "percent_blank": 10,
        "options": {"min": -5, "max": 100, "decimals": 2},
    },
    {"name": "so_far", "type": "running_total", "options": {"field": "amount", "within": "parent"}},
]


def template(name: str, fields: list[dict[str, Any]], first: int) -> TemplateSpec:
    """A template whose fields have ids."""
    numbered = [{"id": f"fld_{first + place:026d}", **field} for place, field in enumerate(fields)]
    return groups.assign(parse(numbered, name=name))


def lines(layout: str) -> BoundPlan:
    """Lines of orders that have up to nine of them."""
    orders = template("orders", [{"name": "id", "type": "row_number"}], 1)
    options = {"template_id": "tpl_o", "field": "id", "cardinality": {"min": 0, "max": 9}, "layout": layout}
    child = template("lines", [{"name": "order_id", "type": "reference", "options": options}, *LINES], 10)
    library = TemplateLibrary(
        {"tpl_o": RelatedTemplate("orders", orders, PARENTS, vocabulary.open_default(), True)},
        "tpl_l",
        CHILDREN,
        True,
    )
    return BoundPlan(compile_plan(child, vocabulary.open_default(), library=library), ENV)


@pytest.mark.parametrize("layout", ["together", "mixed"])
def test_a_running_total_within_parents_is_the_sum_of_the_siblings_so_far(layout):
    columns = [column.to_pylist() for column in lines(layout).block(0, CHILDREN)]
    sums: dict[int, Decimal] = defaultdict(Decimal)
    for order, _, amount, so_far in sorted(zip(*columns, strict=True), key=lambda row: row[:2]):
        sums[order] += amount or 0
        assert so_far == sums[order]


@pytest.mark.parametrize("layout", ["together", "mixed"])
def test_a_running_total_within_parents_does_not_depend_on_block_boundaries(layout):
    whole = lines(layout).block(0, CHILDREN)[3].to_pylist()
    source = lines(layout)
    assert [
        value
        for start in range(0, CHILDREN, 333)
        for value in source.block(start, min(333, CHILDREN - start))[3].to_pylist()
    ] == whole


def test_a_running_total_within_parents_needs_parents():
    alone = template("alone", LINES[1:], 1)
    with pytest.raises(SpecError) as refused:
        compile_plan(alone, vocabulary.open_default())
    assert [(fault.path, fault.code) for fault in refused.value.faults] == [
        ("fields[1].options.within", "no_parent")
    ]
