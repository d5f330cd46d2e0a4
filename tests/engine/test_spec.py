"""The parser reports all errors together, each with its path and, if possible, a suggestion."""

from __future__ import annotations

import pytest

from webapp.engine import groups
from webapp.engine.data import vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse, with_ids


def faults(fields: object) -> dict[str, str]:
    with pytest.raises(SpecError) as caught:
        compile_plan(parse(fields), vocabulary.open_default())
    return {fault.path: fault.code for fault in caught.value.faults}


def test_all_errors_are_listed_together_by_path():
    found = faults(
        [
            {"name": "a", "type": "row numbr"},
            {"name": "b", "type": "sequence", "options": {"start": "one", "stepp": 2}},
            {"type": "null"},
            7,
            {"name": "n", "type": "nested", "options": {"fields": [{"name": "x", "type": "constant"}]}},
        ]
    )
    assert found == {
        "fields[0].type": "unknown_type",
        "fields[1].options.start": "int_type",
        "fields[1].options.stepp": "unknown_key",
        "fields[2].name": "required",
        "fields[3]": "wrong_type",
        "fields[4].options.fields[0].options.value": "required",
    }


def test_unknown_names_come_with_what_was_probably_meant():
    with pytest.raises(SpecError) as caught:
        parse(
            [{"name": "a", "type": "row numbr"}, {"name": "b", "type": "sequence", "options": {"stepp": 2}}]
        )
    assert [fault.hint for fault in caught.value.faults] == [
        "Did you mean `row_number`?",
        "Did you mean `step`?",
    ]


def test_type_names_match_on_letters_and_digits_only():
    for spelled in ("row_number", "Row Number", "ROWNUMBER", "row-number", "auto increment"):
        assert parse([{"name": "a", "type": spelled}]).fields[0].to_json()["type"] == "row_number"


def test_common_keys_inside_options_are_moved_up():
    options = {"value": 1, "percent_blank": 5, "unique": False, "hidden": True, "prefix": "x"}
    field = parse([{"name": "a", "type": "constant", "options": options}]).fields[0].to_json()
    assert (field["percent_blank"], field["hidden"], field["prefix"]) == (5, True, "x")
    assert field["options"] == {"value": 1}


def test_active_false_means_hidden():
    spec = parse(
        [{"name": "a", "type": "null", "active": False}, {"name": "b", "type": "null", "active": True}]
    )
    assert [field.common.hidden for field in spec.fields] == [True, False]


def test_a_template_answered_can_be_sent_back():
    spec = with_ids(
        groups.assign(parse([{"name": "n", "type": "nested", "options": {"array": True, "count": {"min": 1, "max": 2},
        "fields": [{"name": "x", "type": "sequence", "options": {"start": 3}}]}}])),
        iter([f"fld_{i:026d}" for i in range(9)]).__next__,
    )  # fmt: skip
    sent = [field.to_json() for field in spec.fields]
    assert [field.to_json() for field in parse(sent).fields] == sent


@pytest.mark.parametrize(
    ("fields", "path", "code"),
    [
        ([], "fields", "too_few"),
        ({}, "fields", "wrong_type"),
        ([{"name": "a", "type": "null"}] * 2, "fields[1].name", "duplicate"),
        ([{"name": f"f{i}", "type": "null"} for i in range(501)], "fields", "too_many"),
        ([{"name": "a", "type": "null", "id": "fld_1"}], "fields[0].id", "wrong_format"),
        ([{"name": "a", "type": "null", "percent_blank": 101}], "fields[0].percent_blank", "less_than_equal"),
        ([{"name": "a", "type": "null", "hidden": True}], "fields", "all_hidden"),
        (
            [{"name": "a", "type": "derived", "options": {"value": "{{b}}"}}],
            "fields[0].options.value",
            "unknown_field",
        ),
        (
            [{"name": "a", "type": "derived", "options": {"value": "{{b"}}],
            "fields[0].options.value",
            "bad_placeholder",
        ),
        ([{"name": "a", "type": "null", "locale": "de_DE"}], "fields[0].locale", "not_for_this_type"),
        ([{"name": "a", "type": "null", "group": "g"}], "fields[0].group", "not_for_this_type"),
        (
            [{"name": "a", "type": "constant", "options": {"value": 1}, "unique": True}],
            "fields[0].unique",
            "not_unique",
        ),
    ],
)
def test_an_invalid_template_is_rejected(fields, path, code):
    assert faults(fields)[path] == code


def test_nesting_nine_deep_is_rejected():
    field = {"name": "x", "type": "null"}
    for depth in range(8):
        field = {"name": f"n{depth}", "type": "nested", "options": {"fields": [field]}}
    assert set(faults([field]).values()) == {"too_deep"}
    parse(field["options"]["fields"])


def test_a_circle_of_fields_is_named():
    with pytest.raises(SpecError) as caught:
        fields = [
            {"name": n, "type": "derived", "options": {"value": f"{{{{{m}}}}}"}}
            for n, m in ("ab", "bc", "ca")
        ]
        compile_plan(parse(fields), vocabulary.open_default())
    assert [fault.code for fault in caught.value.faults] == ["cycle"]
    assert "a -> b -> c -> a" in caught.value.faults[0].message


def test_more_elements_than_a_row_can_have_are_rejected():
    inner = {
        "name": "i",
        "type": "nested",
        "options": {"array": True, "count": 101, "fields": [{"name": "x", "type": "null"}]},
    }
    outer = {"name": "o", "type": "nested", "options": {"array": True, "count": 100, "fields": [inner]}}
    assert faults([outer]) == {"fields": "too_many_cells"}
