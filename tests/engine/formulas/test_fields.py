"""Formulas in fields: the key `formula` of any field and the types derived, formula and case, with uniqueness."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from tests.engine.formulas.reckon import formula, made
from tests.engine.relating import World, reference
from tests.engine.types.made import bound, table
from webapp.engine.errors import SpecError
from webapp.engine.formulas import types as formulas_types
from webapp.engine.formulas.nodes import load_column
from webapp.engine.formulas.types import FormulaValueError

ID = {"name": "id", "type": "row_number", "unique": True}
PRICE = {"name": "price", "type": "number", "options": {"min": 1, "max": 100, "decimals": 2}}
NAME = {"name": "name", "type": "last_name"}
UID = {"name": "uid", "type": "uuid", "unique": True}
CODE = {"name": "code", "type": "random_string", "unique": True, "options": {"min": 3, "max": 8}}
SOME = {"name": "some", "type": "number", "options": {"max": 10}}


def refusals(*fields: dict) -> dict[str, str]:
    """Code of every fault, by path."""
    try:
        bound(list(fields))
    except SpecError as error:
        return {fault.path: fault.code for fault in error.faults}
    return {}


def test_the_key_formula_is_done_to_the_values_before_case_affixes_and_blanks():
    plain = made([PRICE], "price", 200)
    changed = {**PRICE, "formula": "round(this * 2, 1)", "prefix": "EUR ", "percent_blank": 40}
    got = made([changed], "price", 200)
    spelled = [f"EUR {(value * 2).quantize(Decimal('0.1'))}" for value in plain]
    assert [value for value in got if value is not None] == [
        text for text, value in zip(spelled, got, strict=True) if value is not None
    ]
    assert got.count(None) == 80


def test_the_key_formula_decides_the_type_and_reads_other_fields():
    fields = [SOME, {**PRICE, "formula": "this > some"}]
    source = bound(fields)
    assert source.schema.field("price").type == pa.bool_()
    rows = table(source, 0, 300)
    prices = made([PRICE], "price", 300)
    assert rows["price"] == [price > some for price, some in zip(prices, rows["some"], strict=True)]
    assert made([{**PRICE, "formula": "price + 1"}], "price", 3) == made(
        [{**PRICE, "formula": "this + 1"}], "price", 3
    )


def test_the_key_formula_reports_circular_references_and_errors_with_their_position():
    assert (
        "cycle" in refusals({**SOME, "formula": "this + price"}, {**PRICE, "formula": "this + some"}).values()
    )
    assert refusals({**SOME, "formula": "this +"}) == {"fields[0].formula": "bad_formula"}
    assert refusals({**SOME, "formula": "thiss + 1"}) == {"fields[0].formula": "unknown_field"}


def test_an_override_is_final_and_the_formula_does_not_touch_it():
    assert made([{**SOME, "formula": "this + 100"}], "some", 2, overrides={"some": 7}) == [7, 7]


def test_a_list_cannot_replace_a_text_that_a_formula_reads():
    with pytest.raises(FormulaValueError, match='"tag" is fixed to a value that is not a text'):
        load_column(pa.array([["a", "b"]]), formulas_types.text(), "tag")


def test_derived_is_text_with_holes_or_an_expression():
    fields = [ID, PRICE, NAME, {"name": "full name", "type": "last_name"}]

    def derived(value: str) -> list:
        return made([*fields, {"name": "r", "type": "derived", "options": {"value": value}}], "r", 40)

    prices, names, full = (made(fields, name, 40) for name in ("price", "name", "full name"))
    assert derived("{{upper(name)}}: {{price * 2}}") == [
        f"{name.upper()}: {price * 2}" for name, price in zip(names, prices, strict=True)
    ]
    assert derived("{{full name | upper}}/{{ price }}") == [
        f"{a.upper()}/{b}" for a, b in zip(full, prices, strict=True)
    ]
    assert derived('{{"full name"}}') == full
    assert derived("{{ name + '|' | lower }}") == [f"{name.lower()}|" for name in names]
    assert derived("{{row}}-{{id}}") == [f"{n}-{n}" for n in range(1, 41)]
    assert derived("price * 2") == [price * 2 for price in prices]
    assert derived('name + "-" + id') == [f"{name}-{n}" for n, name in enumerate(names, 1)]


@pytest.mark.parametrize(
    ("value", "code", "position"),
    [
        ("{{nam}}", "unknown_field", None),
        ("a {{ uper(name) }}", "unknown_function", 6),
        ("ä{{ price * nam }}", "unknown_field", 13),
        ("{{name", "bad_placeholder", 1),
        ("Hello there", "bad_formula", 1),
        ("{{name|shout}}", "bad_placeholder", 1),
    ],
)
def test_an_error_in_a_derived_text_has_its_position(value, code, position):
    with pytest.raises(SpecError) as caught:
        bound([NAME, PRICE, {"name": "r", "type": "derived", "options": {"value": value}}])
    found = caught.value.faults[0]
    assert (found.path, found.code) == ("fields[2].options.value", code)
    assert position is None or found.position == position


def case(**options: object) -> dict:
    return {"name": "r", "type": "case", "options": options}


def test_a_case_takes_the_first_condition_that_holds():
    fields = [
        PRICE,
        case(cases=[{"when": "price > 66", "then": "dear"}, {"when": "price > 33", "then": "fair"}]),
    ]
    rows = table(bound(fields), 0, 300)
    assert set(rows["r"]) == {"dear", "fair", None}
    assert rows["r"] == ["dear" if p > 66 else "fair" if p > 33 else None for p in rows["price"]]


def test_a_case_gives_values_of_one_type_and_formulas():
    fields = [PRICE, case(cases=[{"when": "price > 50", "then_formula": "price * 2"}], **{"else": 0.5})]
    rows = table(bound(fields), 0, 100)
    assert rows["r"] == [p * 2 if p > 50 else Decimal("0.50") for p in rows["price"]]
    assert bound(fields).schema.field("r").type == pa.decimal128(38, 2)
    assert made([PRICE, case(when="price > 0", then=True)], "r", 2) == [True, True]
    for wrong, path in {
        "mixed_types": case(cases=[{"when": "price > 1", "then": "x"}], **{"else": 1}),
        "wrong_type": case(cases=[{"when": "price", "then": "x"}]),
        "ambiguous": case(cases=[{"when": "price > 1", "then": "x", "then_formula": "price"}]),
        "unknown_field": case(cases=[{"when": "pric > 1", "then": "x"}]),
    }.items():
        assert set(refusals(PRICE, path).values()) == {wrong}
    assert refusals(PRICE, case(cases=[])) == {"fields[1].options.cases": "too_short"}


def test_a_case_survives_being_stored():
    from webapp.engine.spec import parse

    field = case(cases=[{"when": "row > 1", "then": "x"}], **{"else": "y"})
    stored = parse([field]).fields[0].to_json()
    assert stored["options"] == {"cases": [{"when": "row > 1", "then": "x"}], "else": "y"}
    assert made([stored | {"id": None}], "r", 2) == ["y", "x"]


def text(value: str) -> dict:
    return {"name": "r", "type": "derived", "options": {"value": value}}


UNIQUE = [
    formula("id + 7"),
    formula("1000 - id"),
    formula("id * -3"),
    formula("-id"),
    formula("'INV-' + id"),
    formula("text(id)"),
    formula("pad_left(id, 8, '0')"),
    formula("concat('x', pad_left(id, 9, '*'), 'y')"),
    formula("reverse(code)"),
    formula("name + '#' + id"),
    formula("concat(id, ' ', name)"),
    formula("'<' + code + '>'"),
    formula("row"),
    formula("row * 2"),
    formula("concat(id, 'a', name)"),
    formula("uid"),
    formula("concat(name, '-', id * 2 + 1)"),
    formula("name + '-' + (id + '!')"),
    text("{{name}}-{{id}}"),
    text("{{name}}.{{id}}"),
    text("{{id}}/{{name}}"),
    text("{{code}}"),
    text("{{name}}-{{id + 5}}x{{some}}") | {"_refused": True},
    text("{{id * 2}} {{name}}"),
]
REPEATED = [
    formula("name"),
    formula("some + id"),
    formula("id * some"),
    formula("id * 0"),
    formula("id // 2"),
    formula("id % 9"),
    formula("id / 3"),
    formula("round(id, 0) + 0 * id"),
    formula("name + id"),
    formula("concat(name, '-', debt)"),
    formula("concat(name, '-', -id)"),
    formula("concat(name, '-', id - 5)"),
    formula("concat(id, '1', name)"),
    formula("pad_right(id, 9, '0')"),
    formula("left(code, 3)"),
    formula("upper(code)"),
    formula("pad_left(code, 9, 'a')"),
    formula("if(id > 5, id, 5)"),
    formula("random()"),
    formula("name + '-' + code"),
    formula("abs(id)"),
    formula("maybe"),
    text("{{name}}{{id}}"),
    text("{{name}}-{{debt}}"),
    text("{{code}}-{{name}}"),
    text("{{id | upper}}"),
    {"name": "r", "type": "case", "options": {"when": "id > 1", "then_formula": "id", "else": 0}},
]
DEBT = {"name": "debt", "type": "number", "unique": True, "options": {"min": -10000, "max": 10000}}
MAYBE = {"name": "maybe", "type": "uuid", "percent_blank": 10}
AROUND = [ID, PRICE, NAME, UID, CODE, SOME, MAYBE, DEBT]


@pytest.mark.parametrize("field", UNIQUE, ids=lambda field: str(field["options"]))
def test_values_one_to_one_with_a_unique_field_never_repeat(field):
    field = {**field, "unique": True}
    if field.pop("_refused", False):
        assert refusals(*AROUND, field) == {"fields[8].unique": "not_unique"}
        return
    values = made([*AROUND, field], "r", 5000)
    assert len(set(values)) == 5000
    assert None not in values


@pytest.mark.parametrize("field", REPEATED, ids=lambda field: str(field["options"]))
def test_unproven_uniqueness_is_rejected_with_advice(field):
    with pytest.raises(SpecError) as caught:
        bound([*AROUND, {**field, "unique": True}])
    (found,) = caught.value.faults
    assert (found.path, found.code) == ("fields[8].unique", "not_unique")
    assert found.hint


def test_a_formula_reads_fields_of_the_parent():
    people = [{"name": "id", "type": "row_number"}, {"name": "city", "type": "city"}]
    shown = {
        "name": "r",
        "type": "formula",
        "options": {"expression": "upper(parent.city) + '/' + parent.id * 2"},
    }
    world = World(people=(50, people), pets=(20, [reference("owner", "people", "id"), shown]))
    cities = {row["id"]: row["city"] for row in world.all_rows("people")}
    rows = world.rows("pets", 20)
    assert [row["r"] for row in rows] == [
        f"{cities[row['owner']].upper()}/{row['owner'] * 2}" for row in rows
    ]
    assert refusals(PRICE, formula("parent.city")) == {"fields[1].options.expression": "no_parent"}


def test_a_field_of_an_outer_level_is_not_unique_inside():
    inner = {"name": "x", "type": "formula", "options": {"expression": "id + 1"}, "unique": True}
    lines = {"name": "lines", "type": "nested", "options": {"array": True, "fields": [inner]}}
    assert refusals(ID, lines) == {"fields[1].options.fields[0].unique": "not_unique"}
    inner["options"]["expression"] = "row + 1"
    assert refusals(ID, lines) == {}


def test_the_formula_of_a_unique_field_keeps_it_unique_or_is_rejected():
    assert len(set(made([{**ID, "formula": "'A' + (this * 3)"}], "id", 3000))) == 3000
    assert refusals({**ID, "formula": "this // 3"}) == {"fields[0].unique": "not_unique"}
    assert refusals({**ID, "formula": "this + 1"}, formula("id * 2", unique=True)) == {}
