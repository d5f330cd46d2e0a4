"""Numbers of which one is never below the other have ranges that do not overlap."""

from __future__ import annotations

import pytest

from webapp.imports.readers import formats
from webapp.imports.readers.base import Source
from webapp.imports.services import drafts
from webapp.imports.services.tables import sample_rows
from webapp.row_templates.services import compilation


def rows(columns: str) -> list[dict[str, object]]:
    """Rows of a table with these columns and checks."""
    words = compilation.vocabulary()
    script = f"CREATE TABLE t (id int PRIMARY KEY, {columns})".encode()
    (draft,) = drafts.draft_tables(formats.read(Source(script, "a.sql"), "auto", words), words, 10)
    return sample_rows(draft, words, blanks=False)


@pytest.mark.parametrize(
    "columns",
    [
        "a int NOT NULL, b int NOT NULL, CHECK (a <= b)",
        "a int, b int, CHECK (b > a)",
        "a numeric(8, 2), b numeric(8, 2), CHECK (a < b AND b < 100)",
        "a bigint, b smallint, CHECK (a <= b)",
    ],
)
def test_a_check_that_compares_two_numbers_holds_and_both_vary(columns: str) -> None:
    found = rows(columns)
    assert len(found) == 64
    assert all(row["a"] < row["b"] for row in found)  # type: ignore[operator]
    assert len({row["a"] for row in found}) > 10
    assert len({row["b"] for row in found}) > 10


def test_three_numbers_in_a_row_are_ordered() -> None:
    found = rows("a int, c int, b int, CHECK (a <= b), CHECK (b <= c)")
    assert len(found) == 64
    assert all(row["a"] < row["b"] < row["c"] for row in found)  # type: ignore[operator]


@pytest.mark.parametrize(("low", "high"), [("min_players", "max_players"), ("price_low", "price_high")])
def test_names_alone_order_numbers(low: str, high: str) -> None:
    found = rows(f"{high} int, {low} int")
    assert len(found) == 64
    assert all(row[low] < row[high] for row in found)  # type: ignore[operator]


def test_ranges_that_contradict_a_check_stay() -> None:
    assert rows("a int CHECK (a > 100), b int CHECK (b < 50), CHECK (a <= b)")
