"""What the ledger keeps of a refusal: no value of a sensitive column, no endless text."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from jobs.pushes.failures import ledger_entries, redact
from webapp import limits
from webapp.connectors.base import RowError


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        (
            "Key (email)=(ann@example.org) already exists.",
            "ann@example.org",
            "Key (email)=(********) already exists.",
        ),
        ("row contains (1, ann@example.o...)", "ann@example.org", "row contains (1, ********...)"),
        ("value 42 of 420 in (42)", "42", "value ******** of 420 in (********)"),
        ("nothing of it", "ann@example.org", "nothing of it"),
    ],
)
def test_sensitive_values_are_cut_from_messages_even_where_the_target_shortened_them(text, value, expected):
    assert redact(text, [value]) == expected


def test_key_values_are_kept_as_json_and_cut():
    batch = pa.RecordBatch.from_arrays(
        [pa.array([1, 2]), pa.array(["x" * 900, "y"]), pa.array([Decimal("1.50"), None])],
        names=["id", "name", "n"],
    )
    failures = [RowError(0, "unique", "m" * 5_000, "23505", "id"), RowError(1, "check", "no", "23514")]
    first, second = ledger_entries(
        failures, [11, 12], batch, key_columns=("id", "name", "n", "more"), sensitive=frozenset(), ms=5
    )
    assert first.key == {"id": 1, "name": "x" * limits.PUSH_KEY_CHARS, "n": "1.50"}
    assert len(first.message) == limits.PUSH_MESSAGE_CHARS
    assert (second.row, second.key, second.ms) == (12, {"id": 2, "name": "y", "n": None}, 5)


def test_an_empty_batch_of_failures_costs_nothing():
    batch = pa.RecordBatch.from_arrays([pa.array([1])], names=["id"])
    assert ledger_entries([], [1], batch, key_columns=("id",), sensitive=frozenset({"id"}), ms=0) == []
