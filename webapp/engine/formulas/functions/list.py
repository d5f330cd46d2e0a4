"""Functions of lists: of an array field (`lines[*].amount`), of `split`, or written out (`[a, b]`)."""

# ruff: noqa: D103 - the declaration above each function says what it does

from __future__ import annotations

from webapp.engine.formulas import reductions
from webapp.engine.formulas.declarations import Call, function
from webapp.engine.formulas.nodes import Node


@function("sum(list)", "The exact sum of the elements; 0 for an empty list.", "sum([1.25, 2.5, null])", 3.75)
def sum_(call: Call) -> Node:
    return reductions.sum_values(call.list_argument(0), call.position)


@function("count(list)", "Number of elements that are not blank.", "count([1, null, 3])", 2)
def count(call: Call) -> Node:
    return reductions.count_values(call.list_argument(0), call.position)


@function("size(list)", "Number of elements, including blank ones.", "size([1, null, 3])", 3)
def size(call: Call) -> Node:
    return reductions.element_count(call.list_argument(0), call.position)


@function(
    "avg(list)",
    "The average with 6 decimal places, or with n in round(avg(...), n); blank for an empty list.",
    "round(avg([1, 2, 4]), 2)",
    2.33,
    ("average", "mean"),
)
def avg(call: Call) -> Node:
    return reductions.average(call.list_argument(0), call.position)


@function("any(list)", "Whether at least one condition is true.", "any([1 > 2, 2 > 1])", True)
def any_(call: Call) -> Node:
    return reductions.any_of(call.list_argument(0), call.position, every=False)


@function(
    "all(list)", "Whether all conditions are true; true for an empty list.", "all([1 > 2, 2 > 1])", False
)
def all_(call: Call) -> Node:
    return reductions.any_of(call.list_argument(0), call.position, every=True)


@function("first(list)", "The first element; blank for an empty list.", 'first(split("a b", " "))', "a")
def first(call: Call) -> Node:
    return reductions.element(call.list_argument(0), 0, call.position)


@function("last(list)", "The last element; blank for an empty list.", 'last(split("a b", " "))', "b")
def last(call: Call) -> Node:
    return reductions.element(call.list_argument(0), -1, call.position)


@function(
    "join(list, separator = ', ')",
    "The elements joined to one text; blank ones are ignored.",
    'join([1, null, 3], "-")',
    "1-3",
)
def join(call: Call) -> Node:
    separator = call.fixed_text(1, ", ", empty=True)
    return reductions.join(call.list_argument(0), separator, call.position)


@function("unique_count(list)", "Number of distinct elements.", "unique_count([1, 2, 2, null])", 2)
def unique_count(call: Call) -> Node:
    return reductions.distinct_count(call.list_argument(0), call.position)
