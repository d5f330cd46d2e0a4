"""Arrays of values and documents in one text: what is inside is what the inner fields make."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from tests.engine.types.made import bound, faults, table, values
from webapp.builder import forms
from webapp.builder.services import _changes
from webapp.engine.errors import SpecError
from webapp.engine.spec import parse
from webapp.row_templates.services import field_ids, related_templates


def array(of: dict, **options) -> dict:
    return {"name": "x", "type": "array", "options": {"of": of, **options}}


def test_elements_have_the_requested_number_and_type():
    source = bound([array({"type": "number", "options": {"min": 1, "max": 6}}, count={"min": 0, "max": 4})])
    assert pa.types.is_integer(source.schema.field("x").type.value_type)
    generated = table(source, 0, 2_000)["x"]
    assert {len(item) for item in generated} == {0, 1, 2, 3, 4}
    assert {value for item in generated for value in item} == set(range(1, 7))
    assert {len(item) for item in table(bound([array({"type": "city"}, count=3)]), 0, 50)["x"]} == {3}


def test_an_element_depends_only_on_its_row_and_position():
    source = bound([array({"type": "uuid"}, count={"min": 0, "max": 5})])
    whole = table(source, 0, 500)["x"]
    assert table(source, 250, 10)["x"] == whole[250:260]
    every = [value for item in whole for value in item]
    assert len(set(every)) == len(every)


def test_elements_may_be_blank_dressed_nested_and_arrays_again():
    blank = table(bound([array({"type": "city", "percent_blank": 50}, count=2)]), 0, 500)["x"]
    assert {value is None for item in blank for value in item} == {True, False}
    dressed = table(bound([array({"type": "number", "prefix": "#"}, count=1)]), 0, 50)["x"]
    assert all(item[0].startswith("#") for item in dressed)
    inner = {"type": "nested", "options": {"fields": [{"name": "n", "type": "number"}]}}
    assert all(set(value) == {"n"} for item in table(bound([array(inner)]), 0, 50)["x"] for value in item)
    twice = array({"type": "array", "options": {"of": {"type": "boolean"}, "count": 2}}, count=3)
    assert [[len(value) for value in item] for item in table(bound([twice]), 0, 20)["x"]] == [[2, 2, 2]] * 20


def test_elements_read_the_fields_around_them():
    fields = [
        {"name": "code", "type": "list_sequential", "options": {"values": ["a", "b"]}},
        array({"type": "template_string", "options": {"value": "{{code}}!"}}, count=2),
    ]
    assert table(bound(fields), 0, 2)["x"] == [["a!", "a!"], ["b!", "b!"]]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"options.of": "required"}),
        ({"of": "number"}, {"options.of": "wrong_type"}),
        ({"of": {"type": "nonesuch"}}, {"options.of.type": "unknown_type"}),
        (
            {"of": {"type": "number", "options": {"min": 9, "max": 1}}},
            {"options.of.options.min": "min_above_max"},
        ),
        ({"of": {"type": "number", "hidden": True}}, {"options.of.hidden": "all_hidden"}),
        ({"of": {"type": "number"}, "count": -1}, {"options.count": "out_of_range"}),
        ({"of": {"type": "number"}, "count": 10_001}, {"options.count": "out_of_range"}),
    ],
)
def test_unsupported_array_elements_are_rejected_with_their_path(options, expected):
    assert faults("array", options) == expected


def test_arrays_nest_to_a_depth():
    of: dict = {"type": "number"}
    for _ in range(9):
        of = {"type": "array", "options": {"of": of, "count": 1}}
    with pytest.raises(SpecError) as error:
        parse([{"name": "x", **of}])
    assert [fault.code for fault in error.value.faults] == ["too_deep"]


def test_elements_are_stored_with_an_id_that_they_keep():
    first = field_ids.assign_ids_and_groups(parse([array({"type": "city"})]))
    stored = [field.to_json() for field in first.fields]
    inner = stored[0]["options"]["of"]
    assert inner["type"] == "city"
    assert inner["id"].startswith("fld_")
    again = field_ids.assign_ids_and_groups(parse(stored), stored)
    assert [field.to_json() for field in again.fields] == stored
    unnamed = field_ids.assign_ids_and_groups(parse([array({"type": "city"})]), stored)
    assert unnamed.fields[0].children[0].id == inner["id"]
    changed = field_ids.assign_ids_and_groups(parse([array({"type": "state"})]), stored).fields[0].to_json()
    assert _changes(stored[0], changed) == {}  # the change is the element's
    assert set(_changes(inner, changed["options"]["of"])) >= {"type"}
    copied = forms.copy_field(stored[0], lambda: "fld_other", {"x"})
    assert copied["options"]["of"]["id"] == "fld_other"


def test_a_template_that_an_element_refers_to_is_found():
    request = array({"type": "reference", "options": {"template_id": "tpl_1"}})
    assert list(related_templates.find_references([request])) == [
        ("fields[0].options.of.options.template_id", "tpl_1")
    ]


FIELDS = [{"name": "n", "type": "number"}, {"name": "s", "type": "city", "percent_blank": 20}]


def test_documents_are_the_objects_that_nested_makes():
    for options in ({"fields": FIELDS}, {"fields": FIELDS, "array": True, "count": {"min": 0, "max": 3}}):
        generated = values("json", 200, options=options)
        assert all(isinstance(item, str) for item in generated)
        assert [json.loads(item) for item in generated] == values("nested", 200, options=options)


def test_documents_are_texts_to_columns_and_objects_to_json():
    source = bound([{"name": "x", "type": "json", "options": {"fields": FIELDS}}])
    declared = source.schema.field("x")
    assert (declared.type, declared.metadata[b"json"]) == (pa.string(), b"1")
    assert faults("json", {"fields": []}) == {"options.fields": "too_few"}
    assert faults("json", {"fields": FIELDS, "count": 2}) == {"options.count": "not_for_this_type"}
