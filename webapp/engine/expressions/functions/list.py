"""Functions of lists: of an array field (`lines[*].amount`), of `split`, or written out (`[a, b]`)."""

# ruff: noqa: D103 - the declaration above each function says what it does

from __future__ import annotations

from webapp.engine.expressions import folding
from webapp.engine.expressions.declare import Call, function
from webapp.engine.expressions.nodes import Node


@function("sum(list)", "The sum of the elements, exact; 0 of an empty list.", "sum([1.25, 2.5, null])", 3.75)
def sum_(call: Call) -> Node:
    return folding.total(call.items(0), call.at)


@function("count(list)", "How many elements are not blank.", "count([1, null, 3])", 2)
def count(call: Call) -> Node:
    return folding.counted(call.items(0), call.at)


@function("size(list)", "How many elements there are, blank ones too.", "size([1, null, 3])", 3)
def size(call: Call) -> Node:
    return folding.elements(call.items(0), call.at)


@function("avg(list)", "The average to 6 digits, or to as many as round(avg(...), n) says; blank of none.",
          "round(avg([1, 2, 4]), 2)", 2.33, ("average", "mean"))  # fmt: skip
def avg(call: Call) -> Node:
    return folding.average(call.items(0), call.at)


@function("any(list)", "Whether one of the conditions holds.", "any([1 > 2, 2 > 1])", True)
def any_(call: Call) -> Node:
    return folding.any_of(call.items(0), call.at, every=False)


@function("all(list)", "Whether all conditions hold; true of an empty list.", "all([1 > 2, 2 > 1])", False)
def all_(call: Call) -> Node:
    return folding.any_of(call.items(0), call.at, every=True)


@function("first(list)", "The first element; blank of an empty list.", 'first(split("a b", " "))', "a")
def first(call: Call) -> Node:
    return folding.element(call.items(0), 0, call.at)


@function("last(list)", "The last element; blank of an empty list.", 'last(split("a b", " "))', "b")
def last(call: Call) -> Node:
    return folding.element(call.items(0), -1, call.at)


@function("join(list, separator = ', ')", "The elements as one text; blank ones are left out.",
          'join([1, null, 3], "-")', "1-3")  # fmt: skip
def join(call: Call) -> Node:
    separator = call.words(1, ", ", empty=True)
    return folding.join(call.items(0), separator, call.at)


@function("unique_count(list)", "How many different elements there are.", "unique_count([1, 2, 2, null])", 2)
def unique_count(call: Call) -> Node:
    return folding.distinct(call.items(0), call.at)
