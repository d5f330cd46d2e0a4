"""Check constraints are read as far as they are beyond doubt, and named where they are not."""

from __future__ import annotations

from decimal import Decimal

import pytest

from webapp.connectors.schema import Column, Entity
from webapp.imports.inference import checks as imports_checks
from webapp.imports.inference import columns
from webapp.imports.inference.texts import common_pattern, few_words, round_bound
from webapp.row_templates.services import compilation

COLUMNS = ("price", "status", "a", "b", "code", "starts_on", "ends_on", "Mixed Case")


def read(*checks: str) -> imports_checks.Rules:
    return imports_checks.read(checks, COLUMNS)


@pytest.mark.parametrize(
    ("check", "low", "low_open", "high", "high_open"),
    [
        ("price > 0::numeric", 0, True, None, False),
        ("0 < price", 0, True, None, False),
        ("(price >= '-5'::integer) AND (price < (5)::numeric)", -5, False, 5, True),
        ("price BETWEEN 1 AND 2.5", 1, False, Decimal("2.5"), False),
        ("([price]>(0))", 0, True, None, False),
        ("`price` <= -1", None, False, -1, False),
        ("price IS NULL OR price > 3", 3, True, None, False),
    ],
)
def test_bounds_are_read_as_servers_write_them(check, low, low_open, high, high_open):
    rule = read(check).rule_of("price")
    assert (imports_checks.finite_number(rule.low), rule.low_open) == (low, low_open)
    assert (imports_checks.finite_number(rule.high), rule.high_open) == (high, high_open)


def test_of_several_bounds_the_tightest_holds():
    rule = read("price > 0", "price > 10", "price < 100 AND price < 50").rule_of("price")
    assert (rule.low, rule.high) == (10, 50)


@pytest.mark.parametrize(
    "check",
    [
        "status IN ('new', 'it''s')",
        "(status)::text = ANY ((ARRAY['new'::character varying, 'it''s'::character varying])::text[])",
        "status = 'new' OR status = 'it''s'",
        "status = ANY (ARRAY['new'::text, 'it''s'::text])",
    ],
)
def test_choices_are_read_in_every_writing(check):
    assert read(check).rule_of("status").choices == ["new", "it's"]


def test_lengths_patterns_and_other_columns():
    unlike = "\"Mixed Case\" <> ''::text"
    found = read("char_length(code) = 3", "code ~ '^[A-Z]+$'::text", "ends_on >= starts_on", unlike)
    assert (found.rule_of("code").min_length, found.rule_of("code").max_length) == (3, 3)
    assert found.rule_of("code").pattern == "^[A-Z]+$"
    assert found.earlier_column_by_column == {"ends_on": "starts_on"}
    assert found.rule_of("Mixed Case").excluded == [""]
    assert found.unsupported_checks == {}


@pytest.mark.parametrize(
    "check",
    [
        "a + b < 10",
        "upper(code) = code",
        "price > 0 OR status = 'free'",
        "price IS NULL",
        "NOT (price > 0)",
        "price > 0 AND (a > 1 OR b > 1)",
        "code ~~ 'A%'",
        "price > 0 §",
    ],
)
def test_only_certain_outcomes_count(check):
    found = read(check)
    assert found.columns == {}
    assert found.earlier_column_by_column == {}
    assert {check for result in found.unsupported_checks.values() for check in result} == {check}


def test_shapes_hold_no_letter_or_digit_of_the_values():
    values = [f"AB-{number}x" for number in range(1000, 1020)]
    assert common_pattern(values) == "[A-Z]{2}\\-[0-9]{4}[a-z]"
    assert common_pattern([*values, "other"]) is None
    assert common_pattern([f"Anna{letter}" for letter in "abcdefghijkl"]) is None


def test_words_are_taken_of_columns_that_sort_rows_into_kinds():
    values = ["open", "closed"] * 20
    assert few_words("order_status", values) == ["closed", "open"]
    assert few_words("orderStatus", values) == ["closed", "open"]
    assert few_words("manager", values) is None
    assert few_words("status", [*values, "x@y.z"]) is None
    assert few_words("status", [f"word {letter}" for letter in "abcdefghijkl"]) is None


def test_ranges_are_rounded_away_from_the_values():
    assert round_bound(Decimal(41_237), down=True) == 41_000
    assert round_bound(Decimal(41_237), down=False) == 42_000
    assert round_bound(Decimal("-0.0123"), down=True) == Decimal("-0.013")


@pytest.mark.parametrize(
    ("pattern", "quick"),
    [
        (r"^\w+$", True), (r"^[^@]+@[^@]+\.[^@]+$", True), (r"^[(+*]{3}(-\d)?$", True), ("^https?://", True),
        (r"^(a+)+$", False), ("^(a|aa)+$", False), ("^((a?)b)*$", False), ("(.*)(.*)(.*)(.*)x", False),
        ("a?" * 9 + "a" * 9, False),
    ],
)  # fmt: skip
def test_only_expressions_that_match_in_a_short_time_are_matched(pattern, quick):
    assert imports_checks.translate_expression(pattern, ignore_case=False, negated=False).is_quick is quick


@pytest.mark.parametrize(
    ("check", "negated"),
    [
        ("`code` regexp '^[A-Z]+$'", False), ("(`code` rlike _utf8mb4'^[A-Z]+$')", False),
        ("regexp_like(`code`,'^[A-Z]+$')", False), ("REGEXP_LIKE(code, '^[A-Z]+$', 'i')", False),
        ("code NOT REGEXP '[0-9]'", True), ("code !~ '[0-9]'", True),
    ],
)  # fmt: skip
def test_regular_expressions_are_read_in_every_writing(check, negated):
    (found,) = read(check).rule_of("code").patterns
    assert found.negated is negated


def test_an_expression_that_usual_texts_match_demands_nothing():
    assert read("code ~ '[[:alpha:]]'").rule_of("code").patterns == []
    assert read(r"code ~ '^\w+$'").rule_of("code").pattern == r"^\w+$"
    forbidden = read(r"code !~ '\s'").rule_of("code")
    assert (forbidden.pattern, [pattern.negated for pattern in forbidden.patterns]) == (None, [True])


def test_values_of_a_column_with_an_expression_are_believable(app):
    fields = (
        Column("id", "integer", "int4", key=True), Column("email", "text", "text"), Column("name", "text", "text"),
        Column("code", "text", "text"), Column("login", "text", "text"),
    )  # fmt: skip
    reported = (r"email ~ '^[^@]+@[^@]+$'", r"name ~ '^\w+$'", r"code ~ '^[A-Z]{3}-\d+$'", r"login !~ '\s'")
    with app.app_context():
        found = columns.infer_columns(
            Entity("t", ("t",), fields, checks=reported), None, compilation.vocabulary(), 10
        )
    kinds = {result.column: result.field["type"] for result in found}
    assert kinds["email"] == "email"
    assert kinds["name"] == "slug"
    assert kinds["code"] == "regexp"
    assert kinds["login"] == "username"
