"""Values that satisfy check constraints are found by trying them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from webapp.imports.inference import check_search
from webapp.imports.inference.check_search import ColumnOptions, letter_cases, parse_constant, true_columns

ROWS = [
    {
        "a": at,
        "b": at + 1,
        "c": at,
        "status": ["draft", "approved", "void"][at % 3],
        "at": f"day {at}",
        "tags": [],
    }
    for at in range(9)
]


def search(checks, rows, options):
    """The changes apart from columns that are only never null."""
    found = check_search.search(checks, rows, rows, options)
    return {name: change for name, change in found.items() if change[0] != "filled"}


REFERENCE = ColumnOptions(can_be_null=True, can_be_fixed=False, values=())
TEXT = ColumnOptions(can_be_null=False, can_be_fixed=True, values=())


@pytest.mark.parametrize(
    "check",
    [
        "(a IS NOT NULL) <> (b IS NOT NULL)",
        "num_nonnulls(a, b) = 1",
        "(a IS NULL) <> (b IS NULL)",
        "((a IS NULL AND b IS NOT NULL) OR (a IS NOT NULL AND b IS NULL))",
    ],
)
def test_exactly_one_of_two_columns_stays(check):
    assert list(search([check], ROWS, {"a": REFERENCE, "b": REFERENCE}).values()) == [("null", None)]


def test_exactly_one_of_three_columns_stays():
    options = dict.fromkeys(("a", "b", "c"), REFERENCE)
    assert len(search(["num_nonnulls(a, b, c) = 1"], ROWS, options)) == 2


def test_checks_that_share_a_column_are_solved_together():
    checks = [
        "(status = 'approved'::quote_status) = (a IS NOT NULL)",
        "(status = 'void') = (b IS NOT NULL)",
    ]
    found = search(checks, ROWS, {"status": TEXT, "a": REFERENCE, "b": REFERENCE})
    stored = {name for name in ("a", "b") if name not in found}
    status = found["status"][1]
    assert stored == {"approved": {"a"}, "void": {"b"}}.get(status, set())


def test_a_condition_that_is_not_evaluated_does_not_matter_where_the_other_side_decides():
    assert search(["a IS NULL OR cardinality(permissions) > 0"], ROWS, {"a": REFERENCE}) == {
        "a": ("null", None)
    }


def test_satisfied_and_unsatisfiable_checks_change_nothing():
    options = {"a": REFERENCE, "status": TEXT}
    assert search(["b > a", "status IN ('draft', 'approved', 'void')"], ROWS, options) == {}
    assert search(["a = 1 AND a = 2 AND status = 'x' AND status = 'y'"], ROWS, {"status": TEXT}) == {}
    assert search(["this is no ((( condition"], ROWS, options) == {}


def test_a_value_is_taken_from_the_constraint():
    assert search(["upper((status)::text) = ANY (ARRAY['H'::text, 'M'::text])"], ROWS, {"status": TEXT}) == {
        "status": ("value", "H")
    }


def test_columns_that_are_sometimes_null_are_filled_where_that_suffices():
    rows = [{**row, "a": None if row["a"] % 2 else row["a"]} for row in ROWS]
    found = check_search.search(["(a IS NULL) = (b IS NULL)"], rows, ROWS, {"a": REFERENCE, "b": REFERENCE})
    assert found == {"a": ("filled", None), "b": ("filled", None)}


def test_defaults_casts_and_bounds_of_several_values_are_evaluated():
    assert parse_constant("'{}'::text[]", array=True) == []
    assert parse_constant("'draft'::quote_status") == "draft"
    assert parse_constant("now()") is None
    checks = ["allocated * '-1'::integer >= LEAST(0, qty)", "allocated * '-1'::integer <= GREATEST(qty, 0)"]
    rows = [{"allocated": 5, "qty": 3}, {"allocated": 7, "qty": -2}]
    options = {"allocated": ColumnOptions(can_be_null=False, can_be_fixed=True, values=(Decimal(0),))}
    assert check_search.search(checks, rows, rows, options) == {"allocated": ("value", Decimal(0))}


def test_the_columns_that_a_condition_needs_to_be_true():
    assert true_columns("is_default AND deleted_at IS NULL") == ["is_default"]
    assert true_columns("((a IS TRUE) AND (b = true) AND (c IS NOT NULL))") == ["a", "b"]
    assert true_columns("a IS NOT TRUE") == true_columns("a = false") == true_columns("") == []


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("https://%", "https://example.com", True),
        ("https://%", "http://example.com", False),
        ("%@%.%", "ann@example.com", True),
        ("%@%.%", "ann.example@com", False),
        ("a_c", "abc", True),
        ("a_c", "abbc", False),
        (r"100\%", "100%", True),
        (r"100\%", "1000", False),
        ("%a%a%", "ba", False),
        ("ab%ba", "aba", False),
    ],
)
def test_patterns_of_like_are_evaluated(pattern, text, fits):
    column = {"a": ColumnOptions(can_be_null=False, can_be_fixed=True, values=())}
    assert (search([f"a LIKE '{pattern}'"], [{"a": text}], column) == {}) is fits


@pytest.mark.parametrize(
    ("condition", "value", "fits"),
    [
        (r"low !~ '\s'", "a word", False), (r"low !~ '\s'", "word", True), (r"NOT (low ~ '\s')", "word", True),
        (r"low ~* '^[a-z]+$'", "WORD", True), (r"low ~ '^[a-z]+$'", "WORD", False),
        (r"low !~* '[a-z]'", "WORD", False),
    ],
)  # fmt: skip
def test_regular_expressions_are_evaluated(condition, value, fits):
    column = {"other": ColumnOptions(can_be_null=True, can_be_fixed=True, values=())}
    found = search([f"{condition} OR other = 'x'"], [{"low": value, "other": "y"}], column)
    assert (found == {}) is fits


def test_a_pattern_that_only_some_rows_need_is_satisfied():
    rows = [{"kind": kind, "url": "http://a"} for kind in ("oidc", "oauth2")]
    checks = ["kind <> 'oidc' OR url IS NULL OR url LIKE 'https://%'", "kind <> 'oidc' OR url IS NOT NULL"]
    found = search(checks, rows, {"url": ColumnOptions(can_be_null=True, can_be_fixed=True, values=())})
    assert found == {"url": ("value", "https://example")}


def test_conditions_with_case_are_evaluated():
    reference = ColumnOptions(can_be_null=True, can_be_fixed=False, values=())
    check = "CASE WHEN group_ IS NULL THEN host IS NOT NULL ELSE host IS NULL AND service IS NULL END"
    rows = [{"host": at, "service": at, "group_": at} for at in range(3)]
    found = search([check], rows, dict.fromkeys(("host", "service", "group_"), reference))
    assert found == {"group_": ("null", None)}
    assert (
        search(["CASE kind WHEN 'a' THEN n > 5 ELSE nullif(n, 0) IS NULL END"], [{"kind": "a", "n": 9}], {})
        == {}
    )


@pytest.mark.parametrize(
    "check",
    [
        "IF(group_ IS NULL, host IS NOT NULL, host IS NULL AND service IS NULL) = 1",
        "if(`group_` is null,`host` is not null,`host` is null and `service` is null) = 1",
        "([group_] IS NULL AND [host] IS NOT NULL OR [group_] IS NOT NULL AND [host] IS NULL AND [service] IS NULL)",
    ],
)
def test_conditions_of_mysql_and_sql_server_are_evaluated(check):
    reference = ColumnOptions(can_be_null=True, can_be_fixed=False, values=())
    rows = [{"host": at, "service": at, "group_": at} for at in range(3)]
    found = search([check], rows, dict.fromkeys(("host", "service", "group_"), reference))
    assert found == {"group_": ("null", None)}


def test_a_branch_that_names_many_columns_is_taken_as_it_is_written():
    names = [f"c{number}" for number in range(14)]
    rows = [{"kind": kind, **dict.fromkeys(names, 1)} for kind in ("add", "remove", "lock")]
    others = ", ".join(names[2:])
    check = f"(kind = 'add' AND num_nonnulls(c0, c1) = 2 AND num_nonnulls({others}) = 0) OR (kind = 'lock' AND c0 > 5)"
    options = {"kind": TEXT, **dict.fromkeys(names, REFERENCE)}
    found = search([check], rows, options)
    assert found == {"kind": ("value", "add"), **dict.fromkeys(names[2:], ("null", None))}


LISTS = [{"tags": (), "data": {"value": "a"}}]


@pytest.mark.parametrize(
    "check",
    [
        "array_length(tags, 1) IS NOT NULL AND array_ndims(tags) = 1",
        "cardinality(tags) > 0",
        "coalesce(array_length(tags, 1), 0) >= 1",
    ],
)
def test_an_array_that_may_not_be_empty_has_an_item(check):
    options = {"tags": ColumnOptions(can_be_null=False, can_be_fixed=True, values=((), ("1",)))}
    assert search([check], LISTS, options) == {"tags": ("value", ("1",))}


@pytest.mark.parametrize("function", ["jsonb_typeof", "json_typeof"])
def test_the_type_of_json_is_evaluated(function):
    options = {"data": ColumnOptions(can_be_null=False, can_be_fixed=True, values=(("example",),))}
    assert search([f"{function}(data) = 'object'::text"], LISTS, options) == {}
    found = search([f"{function}(data) = 'array'::text"], LISTS, options)
    assert found == {"data": ("value", ("example",))}
    assert search(["NOT (data ? 'tags') OR data -> 'tags' IS NULL"], LISTS, options) == {}


@pytest.mark.parametrize(
    ("check", "cases"),
    [
        ("((name)::text = lower((name)::text))", {"name": "lower"}),
        ("UPPER(code) = code AND length(code) = 2", {"code": "upper"}),
        ("name = lower(other)", {}),
        ("name = lower(name) OR name IS NULL", {}),
    ],
)
def test_the_case_that_a_check_demands(check, cases):
    assert letter_cases(check) == cases
