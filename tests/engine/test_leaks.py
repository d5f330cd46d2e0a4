"""The leak check finds original values that any masking strategy leaves, and tolerates matches by chance."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from webapp.engine import digests, leaks
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.data import vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.external_values import ExternalResponse, LoadedSource
from webapp.engine.masking import KeyRing
from webapp.engine.plan import compile_plan
from webapp.engine.source_data import SourceSpec, SourceTable
from webapp.engine.spec import parse
from webapp.errors import ApiError

KEYS = KeyRing(1, {1: bytes(range(32))})
SOURCE = SourceSpec(file="people.csv")
ENV = GenerationContext("s", datetime(2026, 11, 22, tzinfo=UTC))


@pytest.fixture
def bound():
    """A template over some columns, bound to a request."""

    def make(columns: dict[str, list[Any]], fields: list[dict[str, Any]]) -> BoundPlan:
        real = SourceTable(pa.table(columns), "snapshot")
        plan = compile_plan(parse(fields, source=SOURCE), vocabulary.open_default())
        answer = ExternalResponse(pa.table({}), "snapshot", loaded_source=LoadedSource(real, KEYS, ""))
        return BoundPlan(plan.with_responses({SOURCE.external_query().key: answer}), ENV)

    return make


def sent(bound: BoundPlan, count: int | None = None) -> dict[str, list[Any]]:
    taken = bound.plan.loaded_source
    assert taken is not None
    columns = bound.block(0, taken.table.row_count if count is None else count)
    return {name: column.to_pylist() for name, column in zip(bound.plan.layer.visible, columns, strict=True)}


def instead(monkeypatch, bound: BoundPlan, name: str, made: list[Any]) -> None:
    """Replace the masking with one that returns the given values."""

    class Broken:
        def __init__(self, masker: Any) -> None:
            self._masker = masker

        def __getattr__(self, key: str) -> Any:
            return getattr(self._masker, key)

        def mask(self, column: pa.Array, person: pa.Array | None = None) -> pa.Array:
            return pa.array(made, pa.string())

    bound.states[name] = Broken(bound.states[name])
    assert bound.leak_checker is not None
    bound.leak_checker._maskers = {**bound.leak_checker._maskers, name: bound.states[name]}


PHONES = ["+49 170 1234567", "0049-151-7654321", "030 9876543"]


@pytest.mark.parametrize(
    ("survivor", "how"),
    [
        ("+49 170 1234567", "is unchanged"),
        (" +49 170 1234567 ", "is unchanged"),
        ("+491701234567", "has the same digits"),
        ("call +49 170 1234567 now", "is part of"),
    ],
)
def test_a_survivor_of_any_form_stops_the_block_and_names_the_column(bound, monkeypatch, survivor, how):
    fields = [{"name": "phone", "type": "phone_number", "masking": {"strategy": "format_preserve"}}]
    result = bound({"phone": PHONES}, fields)
    instead(monkeypatch, result, "phone", [survivor, "+49 222 0000000", "030 1111111"])
    with pytest.raises(ApiError) as found:
        sent(result)
    error = found.value
    assert error.code == "leak_found"
    assert how in error.message
    assert error.details["column"] == "phone"
    assert error.details["row"] == 1
    assert all(phone not in str(error.as_dict()) for phone in PHONES)


def test_case_does_not_hide_a_survivor(bound, monkeypatch):
    result = bound({"name": ["Ann Lee"]}, [{"name": "name", "type": "name", "sensitive": True}])
    instead(monkeypatch, result, "name", ["ANN LEE"])
    with pytest.raises(ApiError, match="is unchanged"):
        sent(result)


def test_a_real_value_in_a_column_that_is_not_masked_is_a_survivor(bound):
    fields = [
        {"name": "email", "type": "email", "sensitive": True},
        {"name": "note", "type": "source_column"},
    ]
    columns = {
        "email": ["ann@corp.test", "bob@corp.test"],
        "note": ["nothing", "wrote from Bob@Corp.test twice"],
    }
    with pytest.raises(ApiError) as found:
        sent(bound(columns, fields))
    assert found.value.details == {**found.value.details, "column": "email", "found_in": "note", "row": 2}
    hidden = [fields[0], {**fields[1], "hidden": True}]
    assert len(sent(bound(columns, hidden))["email"]) == 2
    through = [*hidden, {"name": "shown", "type": "formula", "options": {"expression": "upper(note)"}}]
    with pytest.raises(ApiError, match='appears in "shown"'):
        sent(bound(columns, through))
    masked = [fields[0], {**fields[1], "masking": {"strategy": "redact"}}]
    assert sent(bound(columns, masked))["note"] == ["[redacted]", "[redacted]"]


def test_digits_inside_a_longer_number_are_chance_and_separate_ones_are_not(bound):
    fields = [
        {"name": "id", "type": "source_column", "masking": {"strategy": "format_preserve"}},
        {"name": "note", "type": "source_column"},
    ]
    assert sent(bound({"id": ["12345"], "note": ["order 9912345000"]}, fields))["note"] == [
        "order 9912345000"
    ]
    with pytest.raises(ApiError, match='appears in "note"'):
        sent(bound({"id": ["12345"], "note": ["customer 12345, urgent"]}, fields))


def test_few_digits_in_a_token_are_chance(bound, monkeypatch):
    result = bound(
        {"id": ["p53544@corp.test"]}, [{"name": "id", "type": "name", "masking": {"strategy": "tokenize"}}]
    )
    instead(monkeypatch, result, "id", ["tok_a5b3c5d4e4fghijklmnopqrstu"])
    assert len(sent(result)["id"]) == 1
    result = bound(
        {"id": ["123456789012"]}, [{"name": "id", "type": "name", "masking": {"strategy": "tokenize"}}]
    )
    instead(monkeypatch, result, "id", ["tok_abcdefghijklmn123456789012"])
    with pytest.raises(ApiError, match="is part of its masked value"):
        sent(result)


def test_a_real_value_in_another_row_stops_a_column_whose_values_cannot_be_real(bound, monkeypatch):
    result = bound(
        {"name": ["Ann Lee", "Bob Ray"]},
        [{"name": "name", "type": "name", "masking": {"strategy": "tokenize"}}],
    )
    instead(monkeypatch, result, "name", ["tok_" + "a" * 26, "ann lee"])
    with pytest.raises(ApiError, match="appears in another row"):
        sent(result)


def test_coincidences_are_counted_next_to_the_number_expected_by_chance(bound):
    values = [f"{number:03}" for number in range(1_000)]
    fields = [{"name": "pin", "type": "source_column", "masking": {"strategy": "format_preserve"}}]
    generated = bound({"pin": values}, fields)
    assert sorted(sent(generated)["pin"]) == values  # a permutation: each value belongs to another row
    assert generated.leak_checker is not None
    [reported] = generated.leak_checker.report()
    assert reported["survivors"] == 0
    assert reported["whole_column"]["found"] == 1_000
    assert reported["whole_column"]["expected"] == pytest.approx(1_000)
    assert reported["whole_column"]["kind"] == "counted"


def test_blank_and_empty_values_say_nothing(bound):
    fields = [{"name": "name", "type": "name", "masking": {"strategy": "format_preserve"}}]
    assert sent(bound({"name": ["", None, "---"]}, fields))["name"] == ["", None, "---"]


def test_a_column_that_the_source_lacks_is_named(bound):
    fields = [{"name": "mail", "type": "email", "column": "emial"}]
    with pytest.raises(SpecError) as found:
        bound({"email": ["a@b.c"]}, fields)
    assert [(fault.path, fault.code) for fault in found.value.faults] == [
        ("fields[0].column", "unknown_column")
    ]


def test_fields_without_a_column_are_generated(bound):
    fields = [{"name": "id", "type": "row_number"}, {"name": "who", "type": "name", "column": "name"}]
    found = sent(bound({"name": ["Ann", "Bob"]}, fields))
    assert found == {"id": [1, 2], "who": ["Ann", "Bob"]}


def test_digests_of_more_values_than_are_kept_are_thinned_evenly():
    column = pa.chunked_array(
        [[f"value {n}" for n in range(at, at + 1_000)] for at in range(0, 20_000, 1_000)]
    )
    real = SourceTable(pa.table({"c": column}), "s")
    found = digests._collect_digests(real, "c", digests.normalize_texts, 4_000)
    assert found.sampling_bits in (2, 3)
    assert found.sorted_digests.size <= 8_192
    assert found.sampled_share == 1 / (1 << found.sampling_bits)
    assert found.distinct_count == pytest.approx(20_000, rel=0.1)
    hit = found.contains(
        digests.hash_texts(digests.normalize_texts(pa.array([f"VALUE {n}" for n in range(20_000)])))
    )
    assert hit.sum() == found.sorted_digests.size
    assert not found.contains(digests.hash_texts(pa.array([f"other {n}" for n in range(20_000)]))).any()


def test_rows_in_any_order_are_those_of_their_numbers():
    pieces = [[1, 2, 3], [4, 5]]
    real = SourceTable(pa.table({"n": pa.chunked_array(pieces)}), "s")
    assert real.take("n", np.array([4, 0, 2], np.uint64)).to_pylist() == [5, 1, 3]
    assert real.take("n", np.array([2, 3], np.uint64)).to_pylist() == [3, 4]
    assert real.take("n", np.array([], np.uint64)).to_pylist() == []


def test_reports_of_parts_are_added_up():
    def part(values: int, found: int) -> list[dict[str, Any]]:
        whole = {"kind": "counted", "distinct": 9, "share": 1.0, "found": found, "expected": 0.5}
        return [{"column": "a", "values": values, "survivors": 0, "whole_column": whole}]

    [reported] = leaks.merge_reports([part(10, 1), part(5, 2)])
    assert (reported["values"], reported["whole_column"]["found"], reported["whole_column"]["expected"]) == (
        15,
        3,
        1.0,
    )
