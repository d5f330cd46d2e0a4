"""Conditions, blanks and random values. A random value depends on seed, field and row like any other cell."""

# ruff: noqa: D103 - the declaration above each function says what it does

from __future__ import annotations

import numpy as np

from webapp.engine import random as engine_random
from webapp.engine.formulas import operators, reductions, vectors
from webapp.engine.formulas import types as formulas_types
from webapp.engine.formulas.declarations import Call, function
from webapp.engine.formulas.nodes import Frame, Node, literal
from webapp.engine.formulas.vectors import Vector

_RANDOM_PLACES = 6


@function(
    "if_(condition, yes, no = null)",
    "One of two values, depending on a condition; if(...) is the same.",
    'if(2 > 1, "yes", "no")',
    "yes",
    ("if", "iif"),
)
def if_(call: Call) -> Node:
    no = call.args[2] if call.has(2) else literal(formulas_types.NULL, None, call.position)
    return operators.conditional(call.args[0], call.args[1], no, call.position)


@function(
    "switch(value, case, result, ...)",
    "The result of the first case that equals the value; otherwise "
    "the default, if there is a last argument without a case.",
    'switch("b", "a", 1, "b", 2, 0)',
    2,
)
def switch(call: Call) -> Node:
    value, rest = call.args[0], call.args[1:]
    out = rest[-1] if len(rest) % 2 else literal(formulas_types.NULL, None, call.position)
    for place in range(len(rest) // 2 * 2 - 2, -1, -2):
        test = operators.compare(value, rest[place], "==", rest[place].position)
        out = operators.conditional(test, rest[place + 1], out, call.position)
    return out


@function("coalesce(value, ...)", "The first value that is not blank.", 'coalesce(null, "b")', "b")
def coalesce(call: Call) -> Node:
    nodes, kind = operators.with_common_type(call.args, call.position)
    if kind.name == "list":
        raise call.error(0, "wrong_type", "coalesce does not support lists.")

    def kernel(n: int, *values: Vector) -> Vector:
        out = values[-1]
        for value in reversed(values[:-1]):
            out = operators.select(kind, n, vectors.is_valid(kind, value, n), value, out)
        return out

    return call.apply(kind, kernel, *nodes)


@function(
    "is_blank(value)", "Whether the value is blank, an empty text or an empty list.", 'is_blank("")', True
)
def is_blank(call: Call) -> Node:
    node = call.args[0]
    if node.kind.name == "list":
        return Node(
            formulas_types.BOOLEAN, lambda frame: Vector(node.lists(frame).counts == 0), call.position
        )
    is_present = operators.is_valid(node, call.position)
    if node.kind.name == "text":
        empty = operators.compare(
            node, literal(formulas_types.text(), "", call.position), "!=", call.position
        )
        is_present = operators.logical_and([is_present, empty], call.position)
    return operators.logical_not(is_present, call.position)


@function("random()", "A random decimal from 0 to 0.999999, different for each row.", "random() < 1", True)
def random(call: Call) -> Node:
    return _random_integer(
        call, formulas_types.number(_RANDOM_PLACES, 0, 10**_RANDOM_PLACES - 1), 0, 10**_RANDOM_PLACES - 1
    )


@function(
    "random_int(low, high)",
    "A random integer between two literal numbers.",
    "random_int(1, 6) in [1, 2, 3, 4, 5, 6]",
    True,
)
def random_int(call: Call) -> Node:
    ends = [call.fixed_integer(place, -(10**18), 10**18) for place in (0, 1)]
    if ends[0] > ends[1]:
        raise call.error(0, "min_above_max", "`low` must not be larger than `high`.")
    return _random_integer(call, formulas_types.number(0, *ends), *ends)


def _random_integer(call: Call, kind: formulas_types.Kind, low: int, high: int) -> Node:
    salt = call.builder.next_salt()

    def run(frame: Frame) -> Vector:
        return Vector(engine_random.between(frame.context.bits(salt), low, high), None, low, high)

    return Node(kind, run, call.position)


@function(
    "choose(value, ...)",
    "One of the values at random, with equal probability.",
    'choose("a", "a")',
    "a",
    ("pick",),
)
def choose(call: Call) -> Node:
    index_node = _random_integer(call, formulas_types.number(0), 0, len(call.args) - 1)
    nodes, kind = operators.with_common_type(call.args, call.position)
    if kind.name == "list":
        raise call.error(
            0, "wrong_type", "A list cannot be chosen as a whole.", "List its elements as arguments."
        )
    if len(nodes) == 1:
        return nodes[0]
    listed = reductions.list_literal(nodes, call.position)
    size = len(nodes)

    def run(frame: Frame) -> vectors.Value:
        index = np.arange(frame.n) * size + index_node.vector(frame).data
        return frame.charge(vectors.take(kind, listed.lists(frame).items, index))

    return Node(kind, run, call.position)
