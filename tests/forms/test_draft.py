"""The builder's form between the browser and the field definitions."""

from __future__ import annotations

from itertools import count

import pytest
from werkzeug.datastructures import MultiDict

from webapp.accounts.views.api_keys import ApiKeyIn
from webapp.builder.forms import draft, field_rows
from webapp.engine import guess
from webapp.errors import Fault
from webapp.row_templates.schemas import GenerateInput
from webapp.web.forms import controls
from webapp.web.forms.from_model import filled, label_of


def ids_of_a_test():
    numbers = count(1)
    return lambda: f"fld_{next(numbers):026}"


def form(row: str = "a fld_A number", **pairs: str) -> MultiDict[str, str]:
    return MultiDict([("row", row), *((key.replace("__", "."), value) for key, value in pairs.items())])


NESTED = MultiDict(
    [
        ("row", "a fld_A nested"),
        ("a.name", "order"),
        ("a.type", "nested"),
        ("a.o.array", "y"),
        ("row", "b fld_B sku a"),
        ("b.name", "sku"),
        ("b.type", "sku"),
        ("row", "c fld_C number"),
        ("c.name", "total"),
        ("c.type", "number"),
        ("c.o.min", "1"),
        ("c.o.max", "2.50"),
    ]
)


def test_rows_are_fields_in_the_order_of_the_form():
    found = draft.read(NESTED)["fields"]
    assert [one["name"] for one in found] == ["order", "total"]
    assert found[0]["options"]["fields"][0]["id"] == "fld_B"
    assert found[1]["options"] == {"min": 1, "max": "2.50"}


def test_a_field_that_stops_holding_fields_lets_them_go():
    values = NESTED.copy()
    values.setlist("a.type", ["uuid"])
    assert "fields" not in draft.read(values)["fields"][0]["options"]


def test_another_type_takes_only_the_options_it_knows():
    values = form("a fld_A sequence", a__name="n", a__type="float", a__o__step="2", a__o__start="7")
    assert draft.read(values)["fields"][0]["options"] == {"step": 2}


@pytest.mark.parametrize(
    "row", ["a", "a fld_A", "a fld_A nonsense", "a fld_A number a", "a fld_A number nobody x y"]
)
def test_a_row_that_was_tampered_with_is_still_a_field(row):
    assert [one["name"] for one in draft.read(form(row, a__name="n", a__type="number"))["fields"]] == ["n"]


@pytest.mark.parametrize("held", ["{", "[]", '"x"', '{"options": []}', '{"id": "fld_X", "type": "uuid"}'])
def test_a_held_part_that_was_tampered_with_changes_nothing_else(held):
    values = form(a__name="n", a__type="number", a__held=held)
    assert draft.read(values)["fields"][0] == {"id": "fld_A", "name": "n", "type": "number", "options": {}}


@pytest.mark.parametrize(
    ("do", "names"),
    [
        ("up:fld_C", ["total", "order"]),
        ("up:fld_A", ["order", "total"]),
        ("down:fld_A", ["total", "order"]),
        ("remove:fld_A", ["total"]),
        ("duplicate:fld_C", ["order", "total", "total_2"]),
        ("insert:fld_A", ["order", "", "total"]),
        ("add", ["order", "total", ""]),
        ("remove:fld_nobody", ["order", "total"]),
        ("nonsense", ["order", "total"]),
    ],
)
def test_a_button_edits_the_fields(do, names):
    fields, _ = draft.edit(draft.read(NESTED)["fields"], do, ids_of_a_test())
    assert [one["name"] for one in fields] == names


def test_a_copy_has_new_ids_at_all_levels():
    fields, _ = draft.edit(draft.read(NESTED)["fields"], "duplicate:fld_A", ids_of_a_test())
    copy = fields[1]
    assert copy["name"] == "order_2"
    assert {copy["id"], copy["options"]["fields"][0]["id"]}.isdisjoint({"fld_A", "fld_B"})


def test_a_field_is_added_inside_another():
    fields, _ = draft.edit(draft.read(NESTED)["fields"], "inside:fld_A", ids_of_a_test())
    assert len(fields[0]["options"]["fields"]) == 2


def test_an_error_is_shown_at_the_input_that_caused_it():
    rows = field_rows.rows(draft.read(NESTED)["fields"], ids_of_a_test())
    keys = [one.key for one in rows]
    placed = field_rows.place_faults(
        rows,
        [
            Fault("fields[1].options.min", "x", "Too small."),
            Fault("fields[0].options.fields[0].name", "x", "Taken."),
            Fault("fields[0].options.count.max", "x", "Not on a closed row."),
            Fault("fields[7].name", "x", "Nobody's."),
            Fault("quantity", "x", "Too many."),
        ],
    )
    assert [target for target, _ in placed] == [
        f"{keys[2]}.o.min",
        f"{keys[1]}.name",
        keys[0],
        "",
        "quantity",
    ]
    assert rows[2].faults == {f"{keys[2]}.o.min": "Too small."}


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
    found = field_rows.marked(text, position)
    assert (found.line, found.before, found.at, found.after) == shown
    assert len(found.space) == len(found.before)


def test_fields_that_share_an_id_still_have_rows_of_their_own():
    twice = [{"id": "fld_X", "name": name, "type": "uuid"} for name in "ab"]
    rows = field_rows.rows(twice, ids_of_a_test())
    assert len({one.key for one in rows}) == 2


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
    assert guess.type_of(name) == kind


@pytest.mark.parametrize(
    "value", [5, 1.5, True, None, "5", "true", "plain", "", [1, "a"], {"a": None}, " x ", '"q"']
)
def test_any_value_is_read_back_as_it_was_written(value):
    assert controls.guess(controls.guessed_text(value)) == value


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
    assert filled(GenerateInput, sent) == {"format": "csv", "csv": {"header": "false"}}


def test_one_ticked_box_of_several_is_a_list():
    assert filled(ApiKeyIn, {"name": "", "scopes": "read", "expires_at": ""}) == {"scopes": ["read"]}
