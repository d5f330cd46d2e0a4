"""Rules for all kinds of invalid data: cells, shares, valid values for dependent fields, and errors with paths."""

from __future__ import annotations

import importlib
import json
from collections import Counter

import pyarrow as pa
import pytest

from tests.engine.invalid_data import shop
from tests.engine.types import test_government as states
from webapp.engine import mixed_columns
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.data import vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.invalid_data import injector
from webapp.engine.invalid_data.injector import with_wrong_check_digit
from webapp.engine.invalid_data.settings import KINDS, Invalid
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse
from webapp.engine.types import government

AGE = {"name": "age", "type": "number", "options": {"min": 18, "max": 99}}
ID = {"name": "id", "type": "row_number"}
EMAIL = {"name": "email", "type": "email"}


def bound(fields, invalid=None, seed="s", overrides=None):
    text = None if invalid is None else Invalid.model_validate(invalid)
    plan = compile_plan(parse(fields, invalid_data=text), vocabulary.open_default())
    return BoundPlan(plan, GenerationContext(seed, shop.NOW), overrides)


def with_bad(field, rate=0.1, kinds=None):
    return {**field, "invalid": {"rate": rate, **({"kinds": kinds} if kinds else {})}}


def refusals(fields, invalid=None):
    with pytest.raises(SpecError) as caught:
        bound(fields, invalid)
    return [(fault.path, fault.code, fault.hint) for fault in caught.value.faults]


def rows(source, count, offset=0):
    return json.loads(shop.file_of(source, "json", count, offset))


# --- Cells ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_any_window_of_rows_equals_the_same_rows_of_the_whole(kind):
    source = shop.world().bound("orders")
    whole = shop.read(kind, shop.file_of(source, kind, shop.ORDERS))
    for offset, count in ((0, 1), (1, 40), (255, 300), (1_190, 10)):
        window = shop.read(kind, shop.file_of(source, kind, count, offset))
        assert window == whole[offset : offset + count]


def test_the_key_of_a_window_is_that_part_of_the_whole_key():
    source = shop.world().bound("orders")
    whole = shop.answers(source, shop.ORDERS)
    part = shop.answers(source, 300, 500)
    assert [{**item, "row": item["row"] + 500} for item in part] == [
        item for item in whole if 500 < item["row"] <= 800
    ]
    assert [(item["row"], list(shop.FIELDS).index(item["field"])) for item in whole] == sorted(
        (item["row"], list(shop.FIELDS).index(item["field"])) for item in whole
    )


def test_the_key_has_the_good_values_and_all_other_cells_are_those_of_the_template_without_bad_ones():
    good = shop.world().rows("orders", shop.ORDERS) and rows(shop.world().bound("orders"), shop.ORDERS)
    clean_world = shop.world()
    for field in clean_world.fields["orders"]:
        del field["invalid"]
    clean = rows(clean_world.bound("orders"), shop.ORDERS)
    result = {
        (answer["row"], answer["field"]): answer["good"]
        for answer in shop.answers(shop.world().bound("orders"), shop.ORDERS)
    }
    for number, (bad_row, clean_row) in enumerate(zip(good, clean, strict=True), 1):
        for name, value in clean_row.items():
            if (number, name) in result:
                assert result[number, name] == value
                assert bad_row[name] != value or isinstance(value, bool)
            else:
                assert bad_row[name] == value


@pytest.mark.parametrize("rate", ["0.01", "0.125", "0.003", "1"])
def test_the_share_of_bad_cells_is_exact_over_full_hundreds(rate):
    source = bound([with_bad(AGE, rate, ["wrong_type"])])
    assert len(shop.answers(source, 100_000)) == round(100_000 * float(rate))


def test_kinds_come_as_often_and_a_template_spoils_one_cell_of_a_row():
    source = bound([ID, EMAIL, AGE], {"rate": 0.2})
    result = shop.answers(source, 50_000)
    assert len({item["row"] for item in result}) == len(result) == 10_000
    counts = Counter(item["kind"] for item in result)
    assert max(counts.values()) < 1.2 * min(counts.values())
    assert {item["field"] for item in result} == {"id", "email", "age"}


def test_a_field_with_its_own_share_ignores_the_templates_share():
    source = bound([with_bad(AGE, 0.1, ["missing"]), EMAIL], {"rate": 0.5, "kinds": ["missing"]})
    counts = Counter(answer["field"] for answer in shop.answers(source, 1_000))
    assert counts == {"age": 100, "email": 500}


def test_another_seed_spoils_other_cells():
    fields = [with_bad(AGE, 0.1)]
    first, second = (shop.answers(bound(fields, seed=seed), 1_000) for seed in ("a", "b"))
    assert {item["row"] for item in first} != {item["row"] for item in second}


def test_the_order_of_kinds_changes_nothing():
    one = shop.file_of(bound([with_bad(AGE, 0.3, ["missing", "wrong_type"])]), "csv", 500)
    assert one == shop.file_of(bound([with_bad(AGE, 0.3, ["wrong_type", "missing"])]), "csv", 500)


# --- Who reads a bad cell's field reads the good value -------------------------------------------------------------


def test_formulas_and_derived_fields_read_the_good_value():
    fields = [
        with_bad(AGE, 0.5, ["wrong_type", "missing", "out_of_range"]),
        {"name": "next", "type": "formula", "options": {"expression": "age + 1"}},
        {"name": "text", "type": "derived", "options": {"value": "{{age}} years"}},
    ]
    source = bound(fields)
    result = {answer["row"]: answer["good"] for answer in shop.answers(source, 1_000)}
    assert len(result) == 500
    for number, row in enumerate(rows(source, 1_000), 1):
        age = result.get(number, row["age"])
        assert (row["next"], row["text"]) == (age + 1, f"{age} years")


def test_children_refer_to_the_good_keys_of_their_parents():
    customers = [{"name": "id", "type": "sequence", "invalid": {"rate": 0.5, "kinds": ["wrong_type"]}}]
    orders = [{"name": "of", "type": "reference", "options": {"template_id": "customers", "field": "id"}}]
    world = shop.World(customers=(20, customers), orders=(200, orders))
    assert {row["of"] for row in rows(world.bound("orders"), 200)} <= set(range(1, 21))


def test_an_overridden_field_has_no_bad_values():
    source = bound([with_bad(AGE, 1, ["wrong_type"]), EMAIL], overrides={"age": 40})
    assert {row["age"] for row in rows(source, 50)} == {40}
    assert shop.answers(source, 50) == []


def test_blank_cells_stay_blank_and_are_not_in_the_key():
    source = bound([with_bad({**EMAIL, "percent_blank": 30}, 0.5, ["bad_format"])])
    blank = [number for number, row in enumerate(rows(source, 1_000), 1) if row["email"] is None]
    result = {answer["row"] for answer in shop.answers(source, 1_000)}
    assert len(blank) == 300
    assert result.isdisjoint(blank)
    assert 300 < len(result) < 400


def test_a_template_without_bad_values_has_an_empty_key():
    source = bound([ID, EMAIL])
    assert source.invalid_data_injector is None
    assert shop.answers(source, 100) == []


# --- Single kinds --------------------------------------------------------------------------------------------------


def test_the_first_row_is_no_duplicate_and_every_duplicate_is_like_a_good_row_before_it():
    source = bound([with_bad({**ID, "name": "n"}, 0.9, ["duplicate"])])
    result = {answer["row"] for answer in shop.answers(source, 2_000)}
    assert 1 not in result
    seen: dict[int, int] = {}
    for number, row in enumerate(rows(source, 2_000), 1):
        assert (number in result) == (row["n"] in seen)
        if number in result:
            assert seen[row["n"]] not in result
        seen.setdefault(row["n"], number)


def test_texts_of_mixed_columns_need_no_escaping_anywhere():
    from webapp.engine.invalid_data import injector

    result = [
        *injector.WRONG_TYPE,
        *injector.INVALID_DATES,
        *injector.INVALID_TIMESTAMPS,
        *injector.INVALID_TIMES,
    ]
    assert [text for text in result if not mixed_columns.SAFE_TEXT.fullmatch(text)] == []


def test_unicode_edge_cases_are_recognizable_and_never_nul():
    result = {injector.unicode_edge("plain", bits) for bits in range(100)}
    assert len(result) == 10
    assert all(set(text) & injector.EDGE_SIGNS for text in result)
    assert "\0" not in "".join(result) + "".join(injector.INJECTIONS)


@pytest.mark.parametrize("country", government.TAX_COUNTRIES)
def test_invalid_tax_numbers_are_rejected_by_python_stdnum(country):
    _all_refused(government.tax_number(vocabulary.open_default(), country), states.TAX[country])


@pytest.mark.parametrize("country", government.VAT_COUNTRIES)
def test_invalid_vat_numbers_are_rejected_by_python_stdnum(country):
    _all_refused(government.vat_number(vocabulary.open_default(), country), states.VAT[country])


def _all_refused(code, module):
    importlib.import_module(f"stdnum.{module}")
    if code.check_position is None:
        pytest.skip("this number has no check digit")
    if module == "kr.brn":
        pytest.skip("python-stdnum only checks the format of these")
    numbers = states.made(code, count=2_000)
    changed = [
        with_wrong_check_digit(number, code.check_position, bits * 0x9E3779B97F4A7C15)
        for bits, number in enumerate(numbers)
    ]
    pairs = list(zip(numbers, changed, strict=True))
    assert all(sum(a != b for a, b in zip(item, other, strict=True)) == 1 for item, other in pairs)
    assert [other for _, other in pairs if states.valid(module, other)] == []


# --- Refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "kinds", "can"),
    [
        (EMAIL, ["bad_checksum"], "too_long, bad_format, missing, injection, unicode_edge"),
        (AGE, ["orphan"], "wrong_type, out_of_range, missing"),
        ({**EMAIL, "percent_blank": 5}, ["missing"], "too_long, bad_format, injection, unicode_edge"),
        ({**EMAIL, "unique": True, "percent_blank": 5}, ["duplicate"], "too_long, bad_format, injection"),
        ({"name": "s", "type": "ssn"}, ["bad_checksum"], "too_long, bad_format, missing"),
        ({**AGE, "formula": "this + 1"}, ["out_of_range"], "wrong_type, missing"),
        (
            {"name": "o", "type": "nested", "options": {"fields": [AGE]}},
            ["wrong_type"],
            "missing",
        ),
        ({"name": "t", "type": "time"}, ["out_of_range"], "wrong_type, bad_format, missing"),
    ],
)
def test_an_unsupported_kind_is_rejected_with_the_supported_ones(field, kinds, can):
    ((path, code, hint),) = refusals([with_bad(field, 0.1, kinds)])
    assert (path, code) == ("fields[0].invalid.kinds[0]", "not_for_this_type")
    assert hint.startswith(f"Supported: {can}")


def test_a_kind_that_no_field_supports_is_rejected_for_the_template():
    ((path, code, hint),) = refusals([AGE, EMAIL], {"rate": 0.1, "kinds": ["missing", "orphan"]})
    assert (path, code) == ("invalid.kinds[1]", "not_for_these_fields")
    assert "orphan" not in hint


def test_nested_fields_are_rejected():
    inside = {"name": "o", "type": "nested", "options": {"fields": [with_bad(AGE)]}}
    ((path, code, hint),) = refusals([inside])
    assert (path, code) == ("fields[0].options.fields[0].invalid", "not_here")
    assert hint == "Remove it, or set it for the enclosing field, which can be missing as a whole."
    around = {**inside, "options": {"fields": [AGE]}}
    assert [row["o"] is None for row in rows(bound([with_bad(around, 0.5, ["missing"])]), 100)].count(
        True
    ) == 50


def test_without_valid_rows_no_row_is_a_duplicate():
    assert refusals([with_bad(ID, 1, ["duplicate"])])[0][:2] == ("fields[0].invalid.rate", "out_of_range")
    assert "duplicate" not in {answer["kind"] for answer in shop.answers(bound([with_bad(ID, 1)]), 100)}


@pytest.mark.parametrize(
    "text", [{"rate": 0}, {"rate": 1.5}, {"rate": 0.1, "kinds": []}, {"rate": 0.1, "kinds": ["odd"]},
             {"rate": 0.1, "kinds": ["missing", "missing"]}, {"rate": 0.1, "more": 1}, {}, 5]
)  # fmt: skip
def test_settings_are_validated(text):
    assert refusals([{**AGE, "invalid": text}])[0][0].startswith("fields[0].invalid")


def test_orphans_are_rejected_if_every_key_has_its_parent():
    customers = [{"name": "id", "type": "number", "unique": True, "options": {"min": 1, "max": 20}}]
    reference = {"name": "of", "type": "reference", "options": {"template_id": "customers", "field": "id"}}
    world = shop.World(customers=(20, customers), orders=(50, [with_bad(reference, 0.1, ["orphan"])]))
    with pytest.raises(SpecError) as caught:
        world.bound("orders")
    assert caught.value.faults[0].path == "fields[0].invalid.kinds[0]"


def test_mixed_columns_cross_arrow_streams():
    column = mixed_columns.create(pa.array([1, None, None]), pa.array([None, "x", None]))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("n", column.type)])) as stream:
        stream.write_batch(pa.record_batch([column], names=["n"]))
    again = pa.ipc.open_stream(sink.getvalue()).read_all().column("n")
    assert again.to_pylist() == [1, "x", None]
    assert mixed_columns.is_mixed(again.type)


def test_every_kind_is_available():
    assert set(KINDS) == {bad for _, _, bad in shop.FIELDS.values()}
