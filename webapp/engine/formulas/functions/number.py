"""Functions of numbers. Nothing is binary: what is rounded is rounded half to even, at the digit that is named."""

# ruff: noqa: D103 - the declaration above each function says what it does

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp import limits
from webapp.engine.formulas import operators, reductions, text_kernels, vectors
from webapp.engine.formulas import types as formulas_types
from webapp.engine.formulas.declarations import Call, function
from webapp.engine.formulas.nodes import Node, convert_node, elementwise, literal
from webapp.engine.formulas.types import FormulaError, Kind
from webapp.engine.formulas.vectors import Vector, all_valid

_ROOT_PLACES = 6


@function("abs(number)", "The absolute value.", "abs(-2.5)", 2.5)
def abs_(call: Call) -> Node:
    x = call.number(0)
    kind = x.element_kind
    if kind.bounds:
        kind = formulas_types.number(kind.places, 0, max(map(abs, kind.bounds)))
    return call.apply(kind, lambda n, value: vectors.absolute(value), x)


@function(
    "round(number, places = 0)",
    "The number rounded to `places` decimal places, half to even.",
    "round(10 / 3, 2)",
    3.33,
)
def round_(call: Call) -> Node:
    places = call.fixed_integer(1, 0, limits.MAX_DECIMALS, 0)
    return to_places(call.number(0), places, call.position)


def to_places(x: Node, places: int, at: int) -> Node:
    """Return ``x`` with this many decimal places, rounded half to even."""
    if x.quotient is not None:
        return x.quotient(places)
    drop = x.element_kind.places - places
    if drop <= 0:
        return convert_node(x, formulas_types.number(places))
    low = high = None
    if x.element_kind.bounds:
        low, high = (vectors.half_even(end, 10**drop) for end in x.element_kind.bounds)
    return elementwise(
        [x], formulas_types.number(places, low, high), lambda n, value: vectors.round_digits(value, drop), at
    )


@function("floor(number)", "The number rounded down to an integer.", "floor(2.7)", 2)
def floor(call: Call) -> Node:
    return _to_integer(call, lambda value, unit: vectors.floor_divide(value, unit))


@function("ceil(number)", "The number rounded up to an integer.", "ceil(2.1)", 3, ("ceiling",))
def ceil(call: Call) -> Node:
    return _to_integer(
        call, lambda value, unit: vectors.negate(vectors.floor_divide(vectors.negate(value), unit))
    )


@function(
    "int(value)",
    "The integer part; a text is parsed, and the result is blank if it is not a number.",
    'int("42")',
    42,
)
def int_(call: Call) -> Node:
    if call.args[0].element_kind.name == "text":
        x = call.args[0]
        return call.apply(formulas_types.number(0), lambda n, value: _parsed(n, value, 0, truncate=True), x)

    def cut(value: Vector, unit: Vector) -> Vector:
        low = vectors.floor_divide(vectors.absolute(value), unit)
        return Vector(np.where(value.data < 0, -low.data, low.data), low.valid)

    return _to_integer(call, cut)


def _to_integer(call: Call, kernel: Callable[[Vector, Vector], Vector]) -> Node:
    x = call.number(0)
    places = x.element_kind.places
    if not places:
        return x
    unit = vectors.constant(formulas_types.number(0), 10**places)
    low = high = None
    if x.element_kind.bounds:
        low, high = x.element_kind.bounds
        low, high = low // 10**places - 1, -(-high // 10**places) + 1
    return call.apply(formulas_types.number(0, low, high), lambda n, value: kernel(value, unit), x)


@function(
    "number(value, places = 0)",
    "A text parsed as a number; blank if it is not a number.",
    'number("12.50", 2)',
    12.5,
    ("decimal",),
)
def number(call: Call) -> Node:
    places = call.fixed_integer(1, 0, limits.MAX_DECIMALS, 0)
    x = call.args[0]
    if x.element_kind.name == "boolean":
        return call.apply(
            formulas_types.number(0, 0, 1), lambda n, v: Vector(v.data.astype(np.int64), v.valid), x
        )
    if x.element_kind.name != "text":
        return to_places(call.number(0), places, call.position)
    return call.apply(
        formulas_types.number(places), lambda n, value: _parsed(n, value, places, truncate=False), x
    )


def _parsed(n: int, value: Vector, places: int, *, truncate: bool) -> Vector:
    texts = vectors.broadcast_text(value, n)
    found = pc.extract_regex(pc.utf8_trim_whitespace(texts), _NUMBER)
    is_number = pc.fill_null(pc.match_substring_regex(pc.utf8_trim_whitespace(texts), _NUMBER), False)
    sign, integer_part, fraction = (pc.fill_null(piece, "") for piece in found.flatten())
    integer_part = pc.utf8_ltrim(integer_part, "0")
    has_room = pc.less_equal(pc.utf8_length(integer_part), limits.MAX_FORMULA_DIGITS - places)
    good = pc.and_(is_number, has_room).to_numpy(zero_copy_only=False)
    padded = pc.utf8_rpad(fraction, places, "0")
    decimals = (
        pc.utf8_slice_codeunits(padded, 0, places) if places else pc.utf8_slice_codeunits(fraction, 0, 0)
    )
    digits = pc.binary_join_element_wise("0", pc.if_else(pa.array(good), integer_part, ""), decimals, "")
    units = digits.cast(pa.int64()).to_numpy(zero_copy_only=False)
    if not truncate:
        rest = pc.utf8_slice_codeunits(fraction, places)
        more = pc.match_substring_regex(rest, "^(5[0-9]*[1-9]|[6-9])").to_numpy(zero_copy_only=False)
        half = pc.match_substring_regex(rest, "^50*$").to_numpy(zero_copy_only=False)
        units = units + (more | (half & (units % 2 == 1)))
    negative = pc.equal(sign, "-").to_numpy(zero_copy_only=False)
    return Vector(np.where(negative, -units, units), None if good.all() else good)


_NUMBER = r"^(?P<sign>[+-]?)(?P<whole>[0-9]+)(?:\.(?P<part>[0-9]*))?$"


@function(
    "min(value, ...)", "The minimum of the values, or of a list; blanks are ignored.", "min(3, 1, 2)", 1
)
def min_(call: Call) -> Node:
    return _extreme(call, "min", least=True)


@function(
    "max(value, ...)", "The maximum of the values, or of a list; blanks are ignored.", "max(3, 1, 2)", 3
)
def max_(call: Call) -> Node:
    return _extreme(call, "max", least=False)


def _extreme(call: Call, name: str, *, least: bool) -> Node:
    if len(call.args) == 1:
        return reductions.extreme(call.list_argument(0), call.position, least=least)
    nodes, kind = operators.with_common_type(call.args, call.position)
    if kind.name in ("list", "object", "boolean"):
        raise FormulaError("wrong_type", f"{name} cannot compare {kind.label}.", call.position)
    bounds = [node.element_kind.bounds for node in nodes if node.element_kind.bounds]
    if kind.bounds and len(bounds) == len(nodes):
        pick = min if least else max
        kind = formulas_types.number(
            kind.places, pick(low for low, _ in bounds), pick(high for _, high in bounds)
        )

    def kernel(n: int, *values: Vector) -> Vector:
        out = values[0]
        for other in values[1:]:
            out = better(kind, n, out, other, least=least)
        return out

    return call.apply(kind, kernel, *nodes)


def better(kind: Kind, n: int, a: Vector, b: Vector, *, least: bool) -> Vector:
    """Return the minimum or maximum of two values; the other one if one is null."""
    if kind.name == "text":
        pick = pc.min_element_wise if least else pc.max_element_wise
        return Vector(pick(text_kernels.decoded_texts(a), text_kernels.decoded_texts(b)))
    where = a.data <= b.data if least else a.data >= b.data
    if b.valid is not None:
        where = where | ~b.valid
    if a.valid is not None:
        where = where & a.valid
    return operators.select(kind, n, where, a, b)


@function(
    "clamp(number, low, high)",
    "The number limited to the range from `low` to `high`.",
    "clamp(12, 0, 10)",
    10,
)
def clamp(call: Call) -> Node:
    (x, low, high), kind = operators.with_common_type(
        [call.number(0), call.number(1), call.number(2)], call.position
    )

    def kernel(n: int, value: Vector, lowest: Vector, highest: Vector) -> Vector:
        valid = all_valid(value.valid, lowest.valid, highest.valid)
        return Vector(np.minimum(np.maximum(value.data, lowest.data), highest.data), valid)

    return call.apply(kind, kernel, x, low, high)


@function("sign(number)", "-1, 0 or 1.", "sign(-7)", -1)
def sign(call: Call) -> Node:
    return call.apply(
        formulas_types.number(0, -1, 1),
        lambda n, value: Vector(np.sign(value.data), value.valid),
        call.number(0),
    )


@function(
    "mod(number, divisor)", "The remainder of a division; it has the sign of the divisor.", "mod(17, 5)", 2
)
def mod(call: Call) -> Node:
    return operators.modulo(call.number(0), call.number(1), call.position)


@function(
    "power(number, exponent)", "The number raised to a literal exponent.", "power(2, 10)", 1024, ("pow",)
)
def power(call: Call) -> Node:
    return operators.power(call.number(0), call.number(1), call.position)


@function(
    "sqrt(number, places = 6)",
    "The square root with `places` decimal places; blank for negative numbers.",
    "sqrt(2, 3)",
    1.414,
)
def sqrt(call: Call) -> Node:
    x, places = call.number(0), call.fixed_integer(1, 0, limits.MAX_DECIMALS, _ROOT_PLACES)
    digits = 2 * places - x.element_kind.places
    return call.apply(formulas_types.number(places), lambda n, value: vectors.sqrt(value, digits), x)


@function("percent(part, whole, places = 2)", "One number as a percentage of another.", "percent(1, 8)", 12.5)
def percent(call: Call) -> Node:
    places = call.fixed_integer(2, 0, limits.MAX_DECIMALS - 2, 2)
    hundredfold = operators.quotient(call.number(0), call.number(1), places + 2, call.position)
    kept = formulas_types.number(places)
    if hundredfold.is_constant:
        return literal(kept, hundredfold.const, call.position)
    # The units of a share with two digits more are those of its hundredfold.
    whole = hundredfold.kind
    kind = formulas_types.list_of(kept, whole.origin, whole.max_items) if whole.name == "list" else kept
    return Node(kind, hundredfold.run, call.position)


@function(
    "luhn(digits)",
    "The Luhn check digit, as in card and account numbers; blank if the text contains "
    "characters other than digits.",
    'luhn("7992739871")',
    3,
)
def luhn(call: Call) -> Node:
    def kernel(n: int, value: Vector) -> Vector:
        texts = vectors.broadcast_text(value, n)
        good = pc.fill_null(pc.match_substring_regex(texts, "^[0-9]{1,64}$"), False)
        padded = pc.utf8_lpad(pc.if_else(good, texts, "0"), 64, "0")
        raw = np.frombuffer(padded.buffers()[2] or b"", np.uint8)[: 64 * len(padded)]
        digits = raw.reshape(len(padded), 64).astype(np.int64) - ord("0")
        doubled = digits[:, 1::2] * 2
        total = digits[:, 0::2].sum(axis=1) + (doubled - 9 * (doubled > 9)).sum(axis=1)
        mask = good.to_numpy(zero_copy_only=False)
        return Vector((10 - total % 10) % 10, None if mask.all() else mask)

    return call.apply(formulas_types.number(0, 0, 9), kernel, call.text(0))
