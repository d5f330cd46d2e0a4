"""The operators: ``+ - * / // % **``, comparisons, ``and or not in``, and conditional expressions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp import limits
from webapp.engine import budget, moments
from webapp.engine.formulas import text_kernels, types, vectors
from webapp.engine.formulas.nodes import (
    Node,
    as_text,
    check_bounds,
    check_length,
    convert_node,
    elementwise,
    literal,
)
from webapp.engine.formulas.types import FormulaError, Kind
from webapp.engine.formulas.uniqueness import Part, UniquenessProof, prove_parts
from webapp.engine.formulas.vectors import Vector, all_valid

QUOTIENT_PLACES = 6
"""Digits after the point of ``/`` and of averages, unless round(...) says otherwise."""


def wrong_type(node: Node, expected: str, hint: str = "") -> FormulaError:
    """``node`` is not what is needed."""
    text = f"{expected[0].upper()}{expected[1:]} is required here, not {node.element_kind.label}."
    return FormulaError("wrong_type", text, node.position, hint)


def as_number(node: Node) -> Node:
    """``node``, a number (blank counts as one)."""
    kind = node.element_kind
    if kind.is_numeric:
        return node
    if kind.name == "null":
        return convert_node(node, types.number(0, 0, 0))
    hint = "Use `number(...)` to read a text as a number." if kind.name == "text" else ""
    raise wrong_type(node, "a number", hint)


def as_condition(node: Node) -> Node:
    """``node``, a condition."""
    if node.element_kind.name == "null":
        return literal(types.BOOLEAN, False, node.position)
    if node.element_kind.name != "boolean":
        raise wrong_type(node, "a condition", "Compare it with something, or use is_blank(...).")
    return node


def is_true(value: Vector) -> np.ndarray:
    """Return where a condition is true; null counts as false."""
    return value.data if value.valid is None else value.data & value.valid


def add(a: Node, b: Node, at: int) -> Node:
    """``a + b``: add numbers, join texts, or add days to a date."""
    if "text" in (a.element_kind.name, b.element_kind.name):
        return join_texts([a, b], at)
    if a.element_kind.name in ("date", "timestamp"):
        return add_days(a, as_number(b), 1, at)
    if b.element_kind.name in ("date", "timestamp"):
        return add_days(b, as_number(a), 1, at)
    return _sum(a, b, at, vectors.add, lambda p, q: (p[0] + q[0], p[1] + q[1]))


def subtract(a: Node, b: Node, at: int) -> Node:
    """``a - b``: subtract numbers, or dates, or days from a date."""
    if a.element_kind.name in ("date", "timestamp"):
        if a.element_kind.name == b.element_kind.name == "date":
            return elementwise(
                [a, b],
                types.number(0, -4_000_000, 4_000_000),
                lambda n, x, y: Vector(x.data - y.data, all_valid(x.valid, y.valid)),
                at,
            )
        if b.element_kind.name in ("date", "timestamp"):
            hint = "Use `days_between(a, b)` or `seconds_between(a, b)`."
            raise FormulaError("wrong_type", "Two points in time cannot be subtracted.", at, hint)
        return add_days(a, as_number(b), -1, at)
    return _sum(a, b, at, vectors.subtract, lambda p, q: (p[0] - q[1], p[1] - q[0]))


Bounds = tuple[int, int]


def _sum(
    a: Node,
    b: Node,
    at: int,
    kernel: Callable[[Vector, Vector], Vector],
    bounds: Callable[[Bounds, Bounds], Bounds],
) -> Node:
    a, b = _with_same_places(as_number(a), as_number(b))
    p, q = a.element_kind.bounds, b.element_kind.bounds
    kind = types.number(a.element_kind.places, *(bounds(p, q) if p and q else (None, None)))
    check_bounds(kind, at)
    proof = _injective_proof(a, b, positive=kernel is vectors.add)
    return elementwise([a, b], kind, lambda n, x, y: kernel(x, y), at, proof)


def _with_same_places(*nodes: Node) -> list[Node]:
    places = max(node.element_kind.places for node in nodes)
    return [convert_node(node, types.number(places)) for node in nodes]


def _injective_proof(a: Node, b: Node, *, positive: bool) -> UniquenessProof | None:
    """The proof of a number put together with a constant; ``positive``: two numbers of 0 or more give such a one."""
    const, other = (a.const, b) if a.is_constant else (b.const, a)
    if a.is_constant == b.is_constant or const is None or other.proof is None:
        return None
    return other.proof.changed(positive=positive and const >= 0)


def multiply(a: Node, b: Node, at: int) -> Node:
    """``a * b``, with the digits after the point of both."""
    if "text" in (a.element_kind.name, b.element_kind.name):
        text = "A text cannot be multiplied."
        raise FormulaError(
            "wrong_type", text, at, "Use `repeat(text, count)`, or `number(...)` to read a number."
        )
    a, b = as_number(a), as_number(b)
    places = a.element_kind.places + b.element_kind.places
    if places > limits.MAX_DECIMALS:
        text = f"The product has {places} decimal places; the maximum is {limits.MAX_DECIMALS}."
        raise FormulaError("too_fine", text, at, "Round one of the two first: round(x, 2).")
    p, q = a.element_kind.bounds, b.element_kind.bounds
    kind = types.number(places, *(vectors.product_bounds(p, q) if p and q else (None, None)))
    check_bounds(kind, at)
    zero = (a.const if a.is_constant else b.const) == 0
    proof = None if zero else _injective_proof(a, b, positive=True)
    return elementwise([a, b], kind, lambda n, x, y: vectors.multiply(x, y), at, proof)


def divide(a: Node, b: Node, at: int) -> Node:
    """``a / b`` to `QUOTIENT_PLACES` digits, half to even; blank where b is 0."""
    a, b = as_number(a), as_number(b)
    result = quotient(a, b, QUOTIENT_PLACES, at)
    result.quotient = lambda places: quotient(a, b, places, at)
    return result


def quotient(a: Node, b: Node, places: int, at: int) -> Node:
    """``a / b`` to this many decimal places, rounded half to even; blank where b is 0."""
    _reject_zero(b)
    digits = places + b.element_kind.places - a.element_kind.places
    return elementwise([a, b], types.number(places), lambda n, x, y: vectors.divide(x, y, digits), at)


def _reject_zero(b: Node) -> None:
    if b.is_constant and b.const == 0:
        raise FormulaError("wrong_value", "Division by 0 is not possible.", b.position)


def floor_divide(a: Node, b: Node, at: int) -> Node:
    """``a // b``: the quotient rounded down."""
    a, b = _with_same_places(as_number(a), as_number(b))
    _reject_zero(b)
    return elementwise([a, b], types.number(0), lambda n, x, y: vectors.floor_divide(x, y), at)


def modulo(a: Node, b: Node, at: int) -> Node:
    """``a % b``, with the sign of b."""
    if a.element_kind.name == "text":
        raise FormulaError("wrong_type", "Texts cannot be formatted with %.", at, "Join texts with +.")
    a, b = _with_same_places(as_number(a), as_number(b))
    _reject_zero(b)
    low = high = None
    if b.element_kind.bounds:
        lowest, greatest = b.element_kind.bounds
        largest = max(abs(lowest), abs(greatest))
        low, high = (-largest if lowest < 0 else 0), (largest if greatest > 0 else 0)
    kind = types.number(b.element_kind.places, low, high)
    return elementwise([a, b], kind, lambda n, x, y: vectors.modulo(x, y), at)


def power(a: Node, b: Node, at: int) -> Node:
    """``a ** b``; the exponent is a constant."""
    a, b = as_number(a), as_number(b)
    if (
        not b.is_constant
        or b.element_kind.places
        or b.const is None
        or not 0 <= b.const <= limits.MAX_FORMULA_POWER
    ):
        text = f"The exponent must be a constant whole number from 0 to {limits.MAX_FORMULA_POWER}."
        raise FormulaError("wrong_value", text, b.position, "Example: `x ** 2`.")
    exponent = b.const
    places = a.element_kind.places * exponent
    if places > limits.MAX_DECIMALS:
        text = f"The power has {places} decimal places; the maximum is {limits.MAX_DECIMALS}."
        raise FormulaError("too_fine", text, at, "Round the number first: round(x, 2).")
    kind = types.number(places)
    if a.element_kind.bounds:
        low, high = a.element_kind.bounds
        ends = [low**exponent, high**exponent] + ([0] if low < 0 < high else [])
        kind = types.number(places, min(ends), max(ends))
        check_bounds(kind, at)
    return elementwise([a], kind, lambda n, x: vectors.power(x, exponent), at)


def negate(a: Node, at: int) -> Node:
    """``-a``."""
    a = as_number(a)
    kind = a.element_kind
    low, high = (-kind.bounds[1], -kind.bounds[0]) if kind.bounds else (None, None)
    proof = a.proof and a.proof.changed(positive=False)
    return elementwise([a], types.number(kind.places, low, high), lambda n, x: vectors.negate(x), at, proof)


def add_days(moment: Node, days: Node, sign: int, at: int) -> Node:
    """Return a date or point in time that is this many days later."""
    if days.element_kind.places:
        raise wrong_type(days, "a whole number of days", "Use `add_hours(...)` for parts of a day.")
    unit = 1 if moment.element_kind.name == "date" else types.DAY_US
    return elementwise(
        [moment, days], moment.element_kind, lambda n, x, y: shift_moments(x, y, sign * unit, unit), at
    )


def shift_moments(moment: Vector, count: Vector, step: int, unit: int) -> Vector:
    """``moment`` plus ``count`` times ``step``; no value outside the years 1 to 9999. ``unit`` is a day's length."""
    max_count = (types.LAST_DAY - types.FIRST_DAY) * unit // abs(step) + 1
    limited = np.clip(count.data, -max_count, max_count)
    data = moment.data + limited * np.int64(step)
    inside = (data >= types.FIRST_DAY * unit) & (data < (types.LAST_DAY + 1) * unit)
    valid = all_valid(moment.valid, count.valid, None if inside.all() else inside)
    return Vector(np.where(inside, data, 0), valid)


def join_texts(nodes: list[Node], at: int, blank: str | None = None) -> Node:
    """Join texts; blank if one of them is, unless ``blank`` replaces blank ones."""
    nodes = [as_text(node) for node in nodes]
    longest = types.total_length_of([node.element_kind.max_length for node in nodes])
    check_length(longest, at)
    parts: list[Part] = []
    for node in nodes:
        if node.is_constant:
            parts.append((node.const or "", None))
        else:
            parts += node.parts or [(None, node.proof)]

    def kernel(n: int, *values: Vector) -> Vector:
        return text_kernels.concat(n, values, blank)

    result = elementwise(nodes, types.text(longest), kernel, at, prove_parts(parts))
    result.parts = tuple(parts)
    return result


def compare(a: Node, b: Node, sign: str, at: int) -> Node:
    """True or false; false if one of the two is null."""
    for node, other in ((a, b), (b, a)):
        if node.is_constant and node.const is None and sign in ("==", "!="):
            return is_valid(other, at) if sign == "!=" else logical_not(is_valid(other, at), at)
    a, b = parse_date_constant(a, b), parse_date_constant(b, a)
    common = types.common_kind([a.element_kind, b.element_kind])
    if common is None:
        text = f"{a.element_kind.label.capitalize()} cannot be compared with {b.element_kind.label}."
        hint = "Use `number(...)` or `text(...)` to compare values of the same type."
        raise FormulaError("wrong_type", text, at, hint)
    a, b = convert_node(a, common), convert_node(b, common)
    kind = a.element_kind
    if kind.name == "text":
        return elementwise([a, b], types.BOOLEAN, lambda n, x, y: text_kernels.compare(sign, n, x, y), at)
    if kind.name in ("list", "object") or (kind.name == "boolean" and sign not in ("==", "!=")):
        raise FormulaError("wrong_type", f"{kind.label.capitalize()} does not support this comparison.", at)
    operation = _COMPARE[sign]

    def kernel(n: int, x: Vector, y: Vector) -> Vector:
        valid = all_valid(x.valid, y.valid)
        result = operation(x.data, y.data)
        return Vector(result if valid is None else result & valid)

    return elementwise([a, b], types.BOOLEAN, kernel, at)


_COMPARE: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip


def parse_date_constant(node: Node, other: Node) -> Node:
    """Parse a constant text that is compared with a date as a date."""
    if not (
        node.is_constant
        and node.element_kind.name == "text"
        and other.element_kind.name in ("date", "timestamp")
    ):
        return node
    return as_moment(node)


def as_moment(node: Node) -> Node:
    """A date or point in time; a text that is written out is read as one."""
    if node.element_kind.name in ("date", "timestamp"):
        return node
    if node.is_constant and node.const is None:
        return literal(types.DATE, None, node.position)
    if node.element_kind.name != "text" or not node.is_constant:
        hint = "Use `to_date(...)` to read a text as a date." if node.element_kind.name == "text" else ""
        raise wrong_type(node, "a date", hint)
    try:
        point = moments.parse(node.const)
    except moments.MomentError:
        point = None
    if point is None or point.at is None:
        text = f'"{node.const[:40]}" is not a date.'
        raise FormulaError(
            "wrong_value", text, node.position, "Write it as 2026-12-31 or 2026-12-31T08:00:00Z."
        )
    if point.midnight:
        return literal(types.DATE, vectors.days_of(point.at), node.position)
    gap = point.at.replace(tzinfo=None) - datetime.combine(date(1970, 1, 1), datetime.min.time())
    micros = (gap.days * 86_400 + gap.seconds) * 1_000_000 + gap.microseconds
    return literal(types.TIMESTAMP, micros, node.position)


def is_valid(node: Node, at: int) -> Node:
    """Return whether there is a value."""
    kind = node.element_kind
    return elementwise([node], types.BOOLEAN, lambda n, x: Vector(vectors.is_valid(kind, x, n)), at)


def logical_not(node: Node, at: int) -> Node:
    """True if the condition does not hold."""
    return elementwise([as_condition(node)], types.BOOLEAN, lambda n, x: Vector(~is_true(x)), at)


def logical_and(nodes: list[Node], at: int) -> Node:
    """``and``."""
    return _logical(nodes, np.logical_and, at)


def logical_or(nodes: list[Node], at: int) -> Node:
    """``or``."""
    return _logical(nodes, np.logical_or, at)


def _logical(nodes: list[Node], operation: np.ufunc, at: int) -> Node:
    def kernel(n: int, *values: Vector) -> Vector:
        out = is_true(values[0])
        for value in values[1:]:
            out = operation(out, is_true(value))
        return Vector(out)

    return elementwise([as_condition(node) for node in nodes], types.BOOLEAN, kernel, at)


def with_common_type(nodes: list[Node], at: int) -> tuple[list[Node], Kind]:
    """``nodes`` as one type."""
    kind = types.common_kind([node.element_kind for node in nodes])
    if kind is None:
        names = " and ".join(
            dict.fromkeys(node.element_kind.label for node in nodes if node.element_kind.name != "null")
        )
        hint = "Use `text(...)` around those that are not texts."
        raise FormulaError("mixed_types", f"These have different types: {names}.", at, hint)
    return [convert_node(node, kind) for node in nodes], kind


def conditional(condition: Node, yes: Node, no: Node, at: int) -> Node:
    """``yes if condition else no``."""
    condition = as_condition(condition)
    if "list" in (yes.kind.name, no.kind.name) and condition.kind.name != "list":
        hint = "Sum, join or count the list, or take one element: [0]."
        raise FormulaError("wrong_type", "A list cannot be chosen as a whole.", at, hint)
    (yes, no), kind = with_common_type([yes, no], at)
    return elementwise([condition, yes, no], kind, lambda n, c, x, y: select(kind, n, is_true(c), x, y), at)


def select(kind: Kind, n: int, where: np.ndarray, yes: Vector, no: Vector) -> Vector:
    """``yes`` where ``where`` is true, else ``no``."""
    if kind.name in ("text", "object"):
        if not where.ndim:
            return yes if where else no
        left, right = (
            text_kernels.decoded_texts(value) if kind.name == "text" else value.data for value in (yes, no)
        )
        if isinstance(left, pa.Scalar) or isinstance(right, pa.Scalar):
            chosen = int(np.count_nonzero(where))
            for item, rows in ((left, chosen), (right, where.size - chosen)):
                budget.check(budget.size_of(item) * rows if isinstance(item, pa.Scalar) else 0)
        return Vector(pc.if_else(pa.array(where), left, right))
    valid = None
    if yes.valid is not None or no.valid is not None:
        masks = [np.True_ if value.valid is None else value.valid for value in (yes, no)]
        valid = np.where(where, *masks)
    if kind.is_numeric:
        bounds = [*yes.bounds, *no.bounds]
        return Vector(np.where(where, yes.data, no.data), valid, min(bounds), max(bounds))
    return Vector(np.where(where, yes.data, no.data), valid)
