"""Numbers: exact, never wrapped, and the same as Python's own fractions."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.formulas.reckon import compiled, fault, formula, made, reckoned
from webapp.engine.errors import SpecError
from webapp.engine.formulas import vectors
from webapp.engine.formulas.types import FormulaErrors

WHOLE = st.integers(-1000, 1000)
MONEY = st.integers(-(10**6), 10**6)


def half_even(value: Fraction, places: int) -> Fraction:
    """Round to ``places`` digits, half to even, as the language specifies."""
    return Fraction(round(value * 10**places), 10**places)


@st.composite
def arithmetic_source(draw: Any, depth: int = 3) -> str:
    """A small expression over a, b (whole) and m (two decimals)."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(["a", "b", "m", "7", "2.50", "0", "-3", "0.125"]))
    left, right = draw(arithmetic_source(depth - 1)), draw(arithmetic_source(depth - 1))
    shape = draw(
        st.sampled_from(
            [
                "({} + {})",
                "({} - {})",
                "({} * {})",
                "min({}, {})",
                "max({}, {})",
                "({0} if {0} > {1} else {1})",
            ]
        )
    )
    return shape.format(left, right)


def outcome(source: str, columns: dict[str, pa.Array]) -> tuple[list | None, set[str]]:
    """The values, or the codes it is refused with."""
    try:
        return reckoned(source, **columns), set()
    except FormulaErrors as refused:
        return None, {error.code for error in refused.errors}
    except SpecError as refused:
        return None, {fault.code for fault in refused.faults}


def python_value(source: str, values: dict[str, Fraction]) -> Fraction:
    """The same by Python itself, in fractions."""
    import re

    literal = re.sub(r"(?<![\w.])(\d+\.\d+|\d+)", lambda match: f"F('{match[1]}')", source)
    return Fraction(eval(literal, {"__builtins__": {}, "F": Fraction, "min": min, "max": max}, values))


@settings(max_examples=300, deadline=None)
@given(source=arithmetic_source(), rows=st.lists(st.tuples(WHOLE, WHOLE, MONEY), min_size=1, max_size=40))
def test_sums_products_and_choices_are_those_of_fractions(source, rows):
    columns = {
        "a": pa.array([a for a, _, _ in rows], pa.int64()),
        "b": pa.array([b for _, b, _ in rows], pa.int64()),
        "m": pa.array([Decimal(m).scaleb(-2) for _, _, m in rows], pa.decimal128(38, 2)),
    }
    got, refusal = outcome(source, columns)
    if got is None:
        assert refusal <= {"too_fine", "too_large"}
        return
    if len(got) != len(rows):
        got = got * len(rows)
    for value, (a, b, m) in zip(got, rows, strict=True):
        expected = python_value(source, {"a": Fraction(a), "b": Fraction(b), "m": Fraction(m, 100)})
        assert Fraction(value) == expected


@settings(max_examples=200, deadline=None)
@given(rows=st.lists(st.tuples(MONEY, MONEY), min_size=1, max_size=40), places=st.integers(0, 6))
def test_quotients_are_rounded_once_half_to_even(rows, places):
    a = pa.array([Decimal(x).scaleb(-2) for x, _ in rows], pa.decimal128(38, 2))
    b = pa.array([y for _, y in rows], pa.int64())
    plain, rounded = reckoned("a / b", a=a, b=b), reckoned(f"round(a / b, {places})", a=a, b=b)
    floor, rest = reckoned("a // b", a=a, b=b), reckoned("a % b", a=a, b=b)
    for i, (x, y) in enumerate(rows):
        if y == 0:
            assert (plain[i], rounded[i], floor[i], rest[i]) == (None, None, None, None)
            continue
        exact = Fraction(x, 100) / y
        assert Fraction(plain[i]) == half_even(exact, 6)
        assert Fraction(rounded[i]) == half_even(exact, places)
        assert floor[i] == exact.__floor__()
        assert Fraction(rest[i]) == Fraction(x, 100) - y * exact.__floor__()


@settings(max_examples=200, deadline=None)
@given(
    a=st.integers(-(2**63) + 1, 2**63 - 1),
    b=st.integers(-(2**63) + 1, 2**63 - 1),
    sign=st.sampled_from(["+", "-", "*"]),
)
def test_no_calculation_overflows(a, b, sign):
    expected = {"+": a + b, "-": a - b, "*": a * b}[sign]
    columns = {"a": pa.array([a, 1], pa.int64()), "b": pa.array([b, 1], pa.int64())}
    if vectors.fits(expected, expected):
        assert reckoned(f"a {sign} b", **columns)[0] == expected
    else:
        with pytest.raises(SpecError) as caught:
            reckoned(f"a {sign} b", **columns)
        assert caught.value.faults[0].code == "too_large"


@settings(max_examples=200, deadline=None)
@given(a=st.integers(1, 2**63 - 1), b=st.integers(1, 2**63 - 1))
def test_large_quotients_are_exact_too(a, b):
    columns = {"a": pa.array([a], pa.int64()), "b": pa.array([b], pa.int64())}
    expected = half_even(Fraction(a, b), 6)
    if expected * 10**6 <= 2**63 - 1:
        assert Fraction(reckoned("a / b", **columns)[0]) == expected
    else:
        with pytest.raises(SpecError):
            reckoned("a / b", **columns)
    assert reckoned("a // b", **columns) == [a // b]


@settings(max_examples=200, deadline=None)
@given(value=st.integers(0, 10**14), places=st.integers(0, 4))
def test_roots_are_the_nearest_decimals_with_the_given_digits(value, places):
    column = pa.array([Decimal(value).scaleb(-3)], pa.decimal128(38, 3))
    root = Fraction(reckoned(f"sqrt(a, {places})", a=column)[0])
    half = Fraction(1, 2 * 10**places)
    exact = Fraction(value, 1000)
    assert (root + half) ** 2 >= exact
    assert root <= half or (root - half) ** 2 <= exact


def test_a_value_that_does_not_count_does_not_overflow():
    big = pa.array([2**62, None, 3], pa.int64())
    zero = pa.array([None, 2**62, 2], pa.int64())
    assert reckoned("a * b", a=big, b=zero) == [None, None, 6]


def test_the_type_of_a_number_is_known_before_any_row():
    columns = {"a": pa.array([1]), "m": pa.array([Decimal("1.50")], pa.decimal128(38, 2))}
    for source, expected in {
        "a + 1": pa.int64(),
        "a + m": pa.decimal128(38, 2),
        "m * m": pa.decimal128(38, 4),
        "a / 3": pa.decimal128(38, 6),
        "round(a / 3, 2)": pa.decimal128(38, 2),
        "round(m)": pa.int64(),
        "m // 1": pa.int64(),
        "m % 1": pa.decimal128(38, 2),
        "a > m": pa.bool_(),
        "text(m)": pa.string(),
        "today": pa.date32(),
        "now": pa.timestamp("us", "UTC"),
        "a ** 3": pa.int64(),
        "[a, m]": pa.list_(pa.decimal128(38, 2)),
        "1 if a > 1 else 2.5": pa.decimal128(38, 1),
    }.items():
        assert compiled(source, columns).dtype == expected, source


def test_values_outside_of_bounds_are_rejected_before_any_row():
    wide = {"name": "wide", "type": "number", "options": {"min": 0, "max": 2**53 - 1}}
    found = fault("wide * wide", wide)
    assert (found.code, found.position) == ("too_large", 1)
    assert made([wide, formula("wide * 1000 >= wide")], "r") == [True] * 5


def test_errors_that_only_rows_show_have_the_formulas_path():
    fields = [{"name": "n", "type": "sequence", "options": {"start": 2**52, "step": 1}}, formula("n * n * n")]
    with pytest.raises(SpecError) as caught:
        made(fields, "r")
    assert [(item.path, item.code) for item in caught.value.faults] == [
        ("fields[1].options.expression", "too_large")
    ]


def test_binary_fractions_that_were_written_down_become_decimals():
    fields = [{"name": "c", "type": "constant", "options": {"value": 0.1}}, formula("c + c + c == 0.3")]
    assert made(fields, "r") == [True] * 5


def test_percent_of_written_numbers_needs_no_more_digits_than_its_result():
    assert reckoned("percent(9000000000000000, 1, 0)") == [900000000000000000]
