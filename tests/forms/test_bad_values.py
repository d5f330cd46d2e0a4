"""Invalid data in the form of the builder: settings of a field, and of the whole template."""

from __future__ import annotations

from werkzeug.datastructures import MultiDict

from webapp.builder.forms import draft, field_rows
from webapp.engine.spec import parse

FIELD = {
    "id": "fld_01HZZZZZZZZZZZZZZZZZZZZZZZ",
    "name": "age",
    "type": "number",
    "options": {},
    "invalid": {"rate": 0.05, "kinds": ["missing", "wrong_type"]},
}


def sent(row):
    """What a browser sends of an open row."""
    values = MultiDict([("row", row.mark), (f"{row.key}.name", row.name), (f"{row.key}.type", row.type)])
    values.add(f"{row.key}.open", "1")
    values.add(f"{row.key}.held", row.held_json)
    values.add(f"{row.key}.masking.consistent", "y")  # selected by default
    values.add(f"{row.key}.invalid.rate", row.more["invalid"].form["rate"].data)
    for kind in row.more["invalid"].form["kinds"].data:
        values.add(f"{row.key}.invalid.kinds", kind)
    return values


def test_an_open_field_shows_its_bad_values_and_sends_them_back():
    row = field_rows.row(FIELD, str, opened=[FIELD["id"]])
    (found,) = draft.read(sent(row))["fields"]
    assert parse([found]).fields[0].common.invalid == parse([FIELD]).fields[0].common.invalid


def test_a_closed_field_keeps_them_and_shows_how_many():
    row = field_rows.row(FIELD, str)
    assert row.held["invalid"] == FIELD["invalid"]
    assert "invalid 5 %" in row.notes


def test_the_template_sets_its_own_share_in_addition_to_the_fields():
    form = MultiDict([("name", "T"), ("invalid.rate", "0.01"), ("invalid.kinds", "missing")])
    form.add("invalid.kinds", "injection")
    assert draft.read(form)["invalid"] == {"rate": "0.01", "kinds": ["missing", "injection"]}
    assert "invalid" not in draft.read(MultiDict([("name", "T"), ("invalid.rate", "")]))
