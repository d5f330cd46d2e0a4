"""Conformance tests for every field type of the catalogue.

Promise 12 of docs/promises.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.engine.catalogue_cases import bound, cases, column, digests, last_row, made, window
from webapp.engine import text
from webapp.engine.errors import SpecError
from webapp.engine.types.base import FieldType
from webapp.engine.types.registry import REGISTRY, find, normalize_name
from webapp.engine.types.values import fold_text

ROOT = Path(__file__).resolve().parents[2]
ROWS = 700
ALWAYS_BLANK = {"null"}

every_type = pytest.mark.parametrize("kind", REGISTRY, ids=lambda kind: kind.name)


def refusal(field: dict) -> dict[str, tuple[str, str]]:
    """Code and hint of every fault, by path."""
    try:
        bound(field)
    except SpecError as error:
        return {fault.path: (fault.code, fault.hint or "") for fault in error.faults}
    return {}


@every_type
def test_cells_depend_only_on_their_row(kind: type[FieldType]):
    for case in cases(kind):
        source = made(kind, case.label)
        whole = window(source, 0, ROWS)
        assert len(whole) == ROWS
        for start, count in ((0, 3), (1, 1), (250, 10), (ROWS - 1, 1), (100, 599)):
            assert window(source, start, count).equals(whole.slice(start, count)), (case.label, start)
        rows = np.random.default_rng(7).permutation(ROWS)[:333]
        scattered = text.decode_dictionary(column(source, rows))
        assert scattered.equals(whole.take(pa.array(rows))), case.label
        assert len(window(source, 0, 0)) == 0, case.label
        start = max(0, min(2**40, (last_row(source) or 2**41) - 50))
        far = window(source, start + 5, 20)
        assert window(source, start + 9, 3).equals(far.slice(4, 3)), case.label


@every_type
def test_rows_without_values_of_a_type_are_rejected_by_number(kind: type[FieldType]):
    for case in cases(kind):
        source = made(kind, case.label)
        last = last_row(source)
        if last is not None:
            source.check(last - 1, 1)
            with pytest.raises(SpecError) as error:
                source.check(last, 1)
            assert [(fault.path, fault.code) for fault in error.value.faults] == [("fields[0]", "too_far")]
            assert f"{last:,}" in error.value.faults[0].message


@every_type
def test_a_preview_is_the_head_of_a_long_run(kind: type[FieldType]):
    source = made(kind, "plain")
    stream = list(source.blocks(0, 1000))
    head = pa.concat_arrays([text.decode_dictionary(block[0]) for block in stream]).slice(0, 3)
    assert window(source, 0, 3).equals(head)


@every_type
def test_columns_are_of_the_declared_type_and_length(kind: type[FieldType]):
    for case in cases(kind):
        source = made(kind, case.label)
        declared = source.schema.field("it")
        values = window(source, 0, ROWS)
        values.validate(full=True)
        assert values.type == declared.type, case.label
        longest = (declared.metadata or {}).get(b"max_length")
        if longest is not None and pa.types.is_string(values.type):
            assert (pc.max(pc.utf8_length(values)).as_py() or 0) <= int(longest), case.label


@every_type
def test_a_pool_stays_where_it_is(kind: type[FieldType]):
    for case in cases(kind):
        source = made(kind, case.label)
        first, second = source.block(0, 300)[0], source.block(5000, 300)[0]
        if pa.types.is_dictionary(first.type) and pa.types.is_dictionary(second.type):
            addresses = [[b and b.address for b in block.dictionary.buffers()] for block in (first, second)]
            assert addresses[0] == addresses[1], case.label


def test_another_process_with_another_hash_seed_makes_the_same_rows():
    environment = {**os.environ, "PYTHONHASHSEED": "4242", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(ROOT / "tests" / "engine" / "catalogue_cases.py")]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, check=True)
    theirs, ours = json.loads(done.stdout), digests()
    assert {name for name in ours if ours[name] != theirs.get(name)} == set()


@every_type
def test_combinations_with_another_field_never_repeat(kind: type[FieldType]):
    other = {"name": "other", "type": "enum", "options": {"values": ["a", "b"]}, "unique": "key"}
    for case in cases(kind):
        field = case.field(unique="key")
        if refusal(case.field(unique=True)) or kind.name == "foreign_key":  # its column may repeat there
            continue
        try:
            source = bound(field, other)
        except SpecError:
            continue
        count = next((rows for rows in (60, 8, 2) if not source.row_faults(rows)), 0)
        columns = [text.decode_dictionary(item).to_pylist() for item in source.block(0, count)[:2]]
        pairs = {(fold_text(v) if isinstance(v, str) else repr(v), w) for v, w in zip(*columns, strict=True)}
        assert len(pairs) == count, case.label


@every_type
def test_nulls_are_exact_in_every_hundred_and_do_not_change_other_values(kind: type[FieldType]):
    if kind.name in ALWAYS_BLANK:
        return
    full = window(made(kind, "plain"), 0, 300)
    case = next(cases(kind))
    some = window(bound(case.field(percent_blank=37)), 0, 300)
    blank = some.is_null().to_numpy(False)
    assert [int(blank[start : start + 100].sum()) for start in (0, 100, 200)] == [37, 37, 37]
    stored = pa.array(~blank)
    assert some.filter(stored).to_pylist() == full.filter(stored).to_pylist()


@every_type
def test_the_catalogue_describes_the_type(kind: type[FieldType]):
    assert kind.name == "".join(ch if ch.isalnum() else "_" for ch in kind.name.lower())
    assert kind.label
    assert kind.description.endswith(".")
    assert kind.__doc__
    orjson.dumps(kind.example)
    if kind.name not in ALWAYS_BLANK:
        assert kind.example is not None
    capacity = kind.capacity()
    assert capacity is None or capacity > 0
    schema = kind.Options.model_json_schema(by_alias=True)
    undescribed = [
        name for name, option in schema.get("properties", {}).items() if not option.get("description")
    ]
    assert undescribed == []


@every_type
def test_an_unknown_option_is_rejected_by_name(kind: type[FieldType]):
    field = next(cases(kind)).field()
    refused = refusal({**field, "options": {**field["options"], "zzz_no_such": 1}})
    assert refused["fields[0].options.zzz_no_such"][0] == "unknown_key"


@every_type
def test_text_transformations_are_applied_or_rejected(kind: type[FieldType]):
    field = next(cases(kind)).field(prefix="<", suffix=">", text_case="upper")
    plainly = made(kind, "plain")
    declared = plainly.schema.field("it").type
    if pa.types.is_nested(declared):
        assert "not_for_this_type" in {code for code, _ in refusal(field).values()}
        return
    dressed = window(bound(field), 0, 50)
    assert dressed.type == pa.string()
    values = text.to_text(window(plainly, 0, 50)).cast(pa.string())
    assert dressed.equals(pc.binary_join_element_wise("<", pc.utf8_upper(values), ">", ""))


@every_type
def test_a_hidden_field_is_left_out_and_still_read(kind: type[FieldType]):
    reader = {"name": "reads", "type": "derived", "options": {"value": "{{it}}"}}
    source = bound(next(cases(kind)).field(hidden=True), reader)
    assert source.schema.names == ["reads"]
    values = window(made(kind, "plain"), 0, 20)
    expected = pc.fill_null(text.to_text(values).cast(pa.string()), "")
    assert window(source, 0, 20).equals(expected)


@every_type
def test_a_locale_is_supported_or_rejected(kind: type[FieldType]):
    refused = refusal(next(cases(kind)).field(locale="de_DE"))
    assert refused.get("fields[0].locale", ("", ""))[0] == ("" if kind.localised else "not_for_this_type")


@every_type
def test_a_type_is_found_by_each_of_its_names(kind: type[FieldType]):
    for name in (kind.name, kind.label, *kind.aliases, kind.name.replace("_", "-").upper()):
        assert find(name) is kind, name


def test_no_name_means_two_types():
    owners = defaultdict(set)
    for kind in REGISTRY:
        for name in (kind.name, kind.label, *kind.aliases):
            owners[normalize_name(name)].add(kind.name)
    assert {name: kinds for name, kinds in owners.items() if len(kinds) > 1} == {}
