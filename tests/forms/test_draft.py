"""The builder's form between the browser and the field definitions."""

from __future__ import annotations

from itertools import count

import pytest
from werkzeug.datastructures import MultiDict

from webapp.accounts.views.api_keys import ApiKeyIn
from webapp.builder import forms
from webapp.builder.forms import FieldForm, assign_faults, draft_fields, is_same_field, mark_position
from webapp.engine import guess
from webapp.errors import Fault
from webapp.row_templates.schemas import GenerateInput
from webapp.web.forms import controls
from webapp.web.forms.from_model import convert_form_values, label_of


def ids_of_a_test():
    numbers = count(1)
    return lambda: f"fld_{next(numbers):026}"


def form(row: str = "a fld_A number", **pairs: str) -> MultiDict[str, str]:
    return MultiDict([("row", row), *((key.replace("__", "."), value) for key, value in pairs.items())])


def nested() -> dict:
    inner = [{"id": "fld_B", "name": "sku", "type": "sku", "options": {}}]
    order = {"id": "fld_A", "name": "order", "type": "nested", "options": {"fields": inner}}
    total = {"id": "fld_C", "name": "total", "type": "number", "options": {"min": 1, "max": "2.50"}}
    return {"name": "T", "fields": [order, total]}


def test_the_form_of_a_field_changes_that_field_only():
    values = form("c fld_C number", c__name="sum", c__type="number", c__o__max="3")
    found = forms.read_form(values, nested())
    assert found["fields"][0] == nested()["fields"][0]
    assert found["fields"][1] == {"id": "fld_C", "name": "sum", "type": "number", "options": {"max": 3}}
    assert found["name"] == "T"


def test_a_nested_field_is_changed_where_it_is():
    found = forms.read_form(form("b fld_B sku", b__name="code", b__type="sku"), nested())
    assert found["fields"][0]["options"]["fields"][0]["name"] == "code"


def test_a_field_that_stops_holding_fields_lets_them_go():
    found = forms.read_form(form("a fld_A nested", a__name="order", a__type="uuid"), nested())
    assert "fields" not in found["fields"][0]["options"]


def test_another_type_takes_only_the_options_it_knows():
    value = {"fields": [{"id": "fld_A", "name": "n", "type": "sequence", "options": {"start": 7}}]}
    values = form("a fld_A sequence", a__name="n", a__type="float", a__o__step="2", a__o__start="7")
    assert forms.read_form(values, value)["fields"][0]["options"] == {"step": 2}


def test_options_and_keys_that_the_form_does_not_know_are_kept():
    value = {"fields": [{"id": "fld_A", "name": "n", "type": "number", "options": {"odd": 1}, "strange": 2}]}
    found = forms.read_form(form(a__name="m", a__type="number"), value)["fields"][0]
    assert (found["options"], found["strange"]) == ({"odd": 1}, 2)


def test_parameters_of_another_distribution_go_when_one_is_chosen():
    options = {"distribution": "normal", "mean": 5, "min": 1}
    value = {"fields": [{"id": "fld_A", "name": "n", "type": "number", "options": options}]}
    values = form(
        a__name="n",
        a__type="number",
        a__o__distribution="zipf",
        a__o__mean="5",
        a__o__min="1",
        a__o__stddev="",
    )
    assert forms.read_form(values, value)["fields"][0]["options"] == {"distribution": "zipf", "min": 1}


@pytest.mark.parametrize(
    "row", ["a", "a fld_A", "a fld_A nonsense", "a fld_A number x y", "a fld_nobody number"]
)
def test_a_form_that_was_tampered_with_is_still_a_template(row):
    value = {"fields": [{"id": "fld_A", "name": "n", "type": "number", "options": {}}]}
    found = forms.read_form(form(row, a__name="n", a__type="number"), value)
    assert [field["name"] for field in found["fields"]] == ["n"]


@pytest.mark.parametrize(
    ("verb", "field_id", "names"),
    [
        ("left", "fld_C", ["total", "order"]),
        ("left", "fld_A", ["order", "total"]),
        ("right", "fld_A", ["total", "order"]),
        ("right", "fld_C", ["order", "total"]),
        ("first", "fld_C", ["total", "order"]),
        ("last", "fld_A", ["total", "order"]),
        ("remove", "fld_A", ["total"]),
        ("duplicate", "fld_C", ["order", "total", "total_2"]),
        ("insert", "fld_A", ["order", "", "total"]),
        ("add", "", ["order", "total", ""]),
        ("remove", "fld_nobody", ["order", "total"]),
        ("nonsense", "fld_A", ["order", "total"]),
    ],
)
def test_a_button_edits_the_fields(verb, field_id, names):
    value = nested()
    fields, _ = forms.apply_button(value["fields"], verb, field_id, new_id=ids_of_a_test())
    assert [field["name"] for field in fields] == names
    assert value == nested()  # the draft before the change stays, for undo


def test_a_copy_has_new_ids_at_all_levels():
    fields, focus = forms.apply_button(nested()["fields"], "duplicate", "fld_A", new_id=ids_of_a_test())
    copy = fields[1]
    assert (copy["name"], copy["id"]) == ("order_2", focus)
    assert {copy["id"], copy["options"]["fields"][0]["id"]}.isdisjoint({"fld_A", "fld_B"})


def test_a_field_is_added_inside_another():
    fields, focus = forms.apply_button(nested()["fields"], "inside", "fld_A", new_id=ids_of_a_test())
    assert [field["id"] for field in fields[0]["options"]["fields"]] == ["fld_B", focus]


def test_an_error_belongs_to_the_innermost_field_of_its_path():
    found = draft_fields(nested()["fields"])
    placed = assign_faults(
        found,
        [
            Fault("fields[1].options.min", "x", "Too small."),
            Fault("fields[0].options.fields[0].name", "x", "Taken."),
            Fault("fields[0].options.count.max", "x", "No input."),
            Fault("fields[7].name", "x", "Nobody's."),
            Fault("quantity", "x", "Too many."),
        ],
    )
    assert [place.name if place else None for place, _ in placed] == ["total", "sku", "order", None, None]
    total = FieldForm(found[2], nested()["fields"])
    assert total.faults == {f"{total.key}.o.min": "Too small."}
    order = FieldForm(found[0])
    assert order.faults == {f"{order.key}.o.count.max": "No input."}


@pytest.mark.parametrize(
    ("text", "position", "shown"),
    [
        ("price ** * 2", 10, (1, "price ** ", "*", " 2")),
        ("a +\r\nnix", 5, (2, "", "n", "ix")),
        ("round(a", 8, (1, "round(a", " ", "")),
        ("", 1, (1, "", " ", "")),
    ],
)
def test_the_character_that_is_wrong_is_cut_out_of_its_line(text, position, shown):
    found = mark_position(text, position)
    assert (found.line, found.before, found.at, found.after) == shown
    assert len(found.space) == len(found.before)


def test_fields_that_share_an_id_still_have_keys_of_their_own():
    twice = [{"id": "fld_X", "name": name, "type": "uuid"} for name in "ab"]
    assert len({place.key for place in draft_fields(twice)}) == 2


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ({"name": "a", "label": "A", "hidden": False}, {"name": "a"}, True),
        ({"name": "a", "options": {"min": 1}}, {"name": "a", "options": {"min": "1"}}, True),
        ({"name": "a", "options": {"min": 1}}, {"name": "a", "options": {"min": 2}}, False),
        ({"name": "a", "unique": True}, {"name": "a"}, False),
        ({"options": {"fields": [{"name": "x"}]}}, {"options": {"fields": [{"name": "y"}]}}, False),
    ],
)
def test_fields_are_the_same_when_they_mean_the_same(one, other, alike):
    assert is_same_field(one, other) is alike


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("id", "uuid"),
        ("customer_id", "uuid"),
        ("firstName", "first_name"),
        ("billing_email", "email"),
        ("isActive", "boolean"),
        ("created_at", "datetime"),
        ("order_qty", "number"),
        ("unitPrice", "price"),
        ("status", "enum"),
        ("xyzzy", "words"),
        ("", "words"),
    ],
)
def test_a_name_suggests_its_type(name, kind):
    assert guess.suggest_type(name) == kind


@pytest.mark.parametrize(
    "value", [5, 1.5, True, None, "5", "true", "plain", "", [1, "a"], {"a": None}, " x ", '"q"']
)
def test_any_value_is_read_back_as_it_was_written(value):
    assert controls.parse_json_or_text(controls.format_json_or_text(value)) == value


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("lineCount", "Line count"),
        ("percent_blank", "Percent blank"),
        ("halflife_days", "Halflife days"),
        ("min", "Min"),
    ],
)
def test_a_wire_name_becomes_a_label(name, label):
    assert label_of(name) == label


def test_empty_inputs_are_not_sent():
    sent = {"count": "", "seed": "", "format": "csv", "csv": {"delimiter": "", "header": "false"}}
    assert convert_form_values(GenerateInput, sent) == {"format": "csv", "csv": {"header": "false"}}


def test_one_ticked_box_of_several_is_a_list():
    assert convert_form_values(ApiKeyIn, {"name": "", "scopes": "read", "expires_at": ""}) == {
        "scopes": ["read"]
    }
