"""Values that satisfy check constraints are found by trying them."""

from __future__ import annotations

import pytest

from webapp.imports.inference import check_search
from webapp.imports.inference.check_search import Options

ROWS = [
    {"a": at, "b": at + 1, "c": at, "status": ["draft", "approved", "void"][at % 3], "at": f"day {at}", "tags": []}
    for at in range(9)
]


def search(checks, rows, options):
    """The changes apart from columns that are only never null."""
    found = check_search.search(checks, rows, rows, options)
    return {name: change for name, change in found.items() if change[0] != "filled"}


REFERENCE = Options(nullable=True, fixed=False, values=())
TEXT = Options(nullable=False, fixed=True, values=())


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
    kept = {name for name in ("a", "b") if name not in found}
    status = found["status"][1]
    assert kept == {"approved": {"a"}, "void": {"b"}}.get(status, set())


def test_a_condition_that_is_not_evaluated_does_not_matter_where_the_other_side_decides():
    assert search(["a IS NULL OR cardinality(permissions) > 0"], ROWS, {"a": REFERENCE}) == {"a": ("null", None)}


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
    rows = [{**one, "a": None if one["a"] % 2 else one["a"]} for one in ROWS]
    found = check_search.search(["(a IS NULL) = (b IS NULL)"], rows, ROWS, {"a": REFERENCE, "b": REFERENCE})
    assert found == {"a": ("filled", None), "b": ("filled", None)}
