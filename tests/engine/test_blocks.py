"""Rules for blocks: a cell depends on seed, field and row, never on how it was requested.

Promise 12 of docs/promises.md.
"""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from webapp.engine import groups
from webapp.engine.blocks import Block, BoundPlan, GenerationContext
from webapp.engine.budget import MemoryBudgetError
from webapp.engine.data import vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def bound(fields: list[dict], *, seed: str = "s", overrides: dict | None = None) -> BoundPlan:
    plan = compile_plan(groups.assign(parse(fields)), vocabulary.open_default())
    return BoundPlan(plan, GenerationContext(seed, NOW), overrides)


def rows(source: BoundPlan, start: int, count: int) -> list[dict]:
    return pa.table(source.block(start, count), names=source.schema.names).to_pylist()


ORDER = [
    {"name": "id", "type": "row_number"},
    {"name": "code", "type": "sequence", "options": {"start": 7, "step": 3, "pad": 6}, "prefix": "A-"},
    {"name": "note", "type": "constant", "options": {"value": "x"}, "percent_blank": 12.5},
    {"name": "text", "type": "derived", "options": {"value": "{{code | lower}}/{{note}}"}},
    {
        "name": "lines",
        "type": "nested",
        "options": {
            "array": True,
            "count": {"min": 0, "max": 4},
            "fields": [
                {"name": "n", "type": "row_number"},
                {"name": "of", "type": "derived", "options": {"value": "{{id}}:{{n}}"}},
                {"name": "blank", "type": "constant", "options": {"value": 1}, "percent_blank": 30},
            ],
        },
    },
]


def test_any_window_of_rows_is_the_same_as_in_the_whole():
    source = bound(ORDER)
    whole = rows(source, 0, 700)
    for start, count in [(0, 1), (0, 3), (99, 2), (256, 300), (699, 1), (13, 687)]:
        assert rows(source, start, count) == whole[start : start + count]


def test_scattered_rows_are_the_same_as_in_the_whole():
    source = bound(ORDER)
    whole = rows(source, 0, 400)
    for picked in ([0, 250, 2], [399, 0, 7, 7], [5], list(range(300, 0, -3))):
        block = Block(source, source.plan.layer, np.array(picked, np.uint64))
        for name in source.schema.names:
            assert block.column(name).to_pylist() == [whole[row][name] for row in picked]


def test_blocks_of_a_stream_join_to_the_whole():
    source = bound(ORDER)
    parts = [pa.table(block, names=source.schema.names) for block in source.blocks(5, 9_000)]
    assert [part.num_rows for part in parts][:2] == [256, 8192]
    assert pa.concat_tables(parts, promote_options="default").to_pylist()[-50:] == rows(source, 8_955, 50)


def test_renaming_adding_and_moving_a_field_leaves_the_others_as_they_were():
    ids = [f"fld_{i:026d}" for i in range(3)]
    kinds = [
        {"id": ids[i], "name": f"f{i}", "type": "constant", "options": {"value": i}, "percent_blank": 50}
        for i in range(3)
    ]
    before = bound(kinds)
    moved = bound(
        [{**kinds[2], "name": "renamed"}, {"name": "new", "type": "row_number"}, kinds[0], kinds[1]]
    )
    old, new = rows(before, 0, 200), rows(moved, 0, 200)
    assert [r["f2"] for r in old] == [r["renamed"] for r in new]
    assert [(r["f0"], r["f1"]) for r in old] == [(r["f0"], r["f1"]) for r in new]


def test_blanks_are_exact_in_every_full_hundred():
    source = bound([{"name": "a", "type": "constant", "options": {"value": 1}, "percent_blank": 30}])
    column = source.block(0, 5_000)[0]
    for start in range(0, 5_000, 100):
        assert column.slice(start, 100).null_count == 30
    odd = bound([{"name": "a", "type": "constant", "options": {"value": 1}, "percent_blank": 0.1}])
    assert sum(block[0].null_count for block in odd.blocks(0, 100_000)) == 100


def test_children_see_fields_of_the_row_around_them():
    for row in rows(bound(ORDER), 0, 50):
        assert all(line["of"] == f"{row['id']}:{line['n']}" for line in row["lines"])


def test_override_is_seen_by_derived_fields_and_takes_the_blanks_away():
    source = bound(ORDER, overrides={"note": "fixed", "code": 5})
    for row in rows(source, 0, 200):
        assert (row["note"], row["code"], row["text"]) == ("fixed", 5, "5/fixed")


def test_an_override_of_an_unknown_field_is_rejected_by_name():
    with pytest.raises(SpecError) as caught:
        bound(ORDER, overrides={"nots": 1, "cod": 2})
    assert [(f.path, f.code, f.hint) for f in caught.value.faults] == [
        ("overrides.nots", "unknown_field", "Did you mean `note`?"),
        ("overrides.cod", "unknown_field", "Did you mean `code`?"),
    ]


@pytest.mark.parametrize(
    "field", [{"type": "row_number", "unique": True}, {"type": "uuid", "options": {"primaryKey": True}}]
)
def test_an_override_of_a_unique_field_is_rejected_for_several_rows(field):
    source = bound([{"name": "id", **field}], overrides={"id": 5})
    source.check(0, 1)
    with pytest.raises(SpecError, match="fixed value"):
        source.check(0, 2)


def test_a_column_that_arrow_cannot_represent_is_an_error_of_its_field(monkeypatch):
    def more_than_2_gb(*_args: object) -> pa.Array:
        raise pa.ArrowCapacityError("array cannot contain more than 2147483646 bytes, have 2147483647")

    source = bound(
        [{"name": "a", "type": "row_number"}, {"name": "b", "type": "constant", "options": {"value": "x"}}]
    )
    monkeypatch.setattr(Block, "_generate_column", more_than_2_gb)
    with pytest.raises(MemoryBudgetError) as caught:
        source.block(0, 2)
    assert (caught.value.faults[0].path, caught.value.faults[0].code) == ("fields[0]", "row_too_large")


def test_deep_arrays_shrink_the_block_and_keep_the_rows():
    inner = {
        "name": "c",
        "type": "nested",
        "options": {"array": True, "count": 50, "fields": [{"name": "n", "type": "row_number"}]},
    }
    outer = [{"name": "o", "type": "nested", "options": {"array": True, "count": 40, "fields": [inner]}}]
    source = bound(outer)
    assert source.block_rows * 2_000 <= 65_536
    assert [len(b[0]) for b in source.blocks(0, 70)] == [32, 32, 6]
