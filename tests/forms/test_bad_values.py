"""Invalid data in the form of the builder: settings of a field, and of the whole template."""

from __future__ import annotations

from werkzeug.datastructures import MultiDict

from webapp.builder import forms
from webapp.builder.forms import FieldForm, draft_fields
from webapp.engine.spec import parse

FIELD = {
    "id": "fld_01HZZZZZZZZZZZZZZZZZZZZZZZ",
    "name": "age",
    "type": "number",
    "options": {},
    "invalid": {"rate": 0.05, "kinds": ["missing", "wrong_type"]},
}


def test_the_form_of_a_field_shows_its_invalid_data_and_sends_it_back():
    form = FieldForm(draft_fields([FIELD])[0])
    part = form.common["invalid"].form
    values = MultiDict([("row", form.mark), (f"{form.key}.name", "years"), (f"{form.key}.type", form.type)])
    values.add(f"{form.key}.masking.consistent", "y")  # selected by default
    values.add(f"{form.key}.invalid.rate", part["rate"].data)
    for kind in part["kinds"].data:
        values.add(f"{form.key}.invalid.kinds", kind)
    (found,) = forms.read_form(values, {"fields": [FIELD]})["fields"]
    assert found["name"] == "years"
    assert parse([found]).fields[0].common.invalid == parse([FIELD]).fields[0].common.invalid


def test_the_template_sets_its_own_share_in_addition_to_the_fields():
    form = MultiDict([("settings", "1"), ("invalid.rate", "0.01"), ("invalid.kinds", "missing")])
    form.add("invalid.kinds", "injection")
    assert forms.read_form(form, {})["invalid"] == {"rate": "0.01", "kinds": ["missing", "injection"]}
    emptied = forms.read_form(
        MultiDict([("settings", "1"), ("invalid.rate", "")]), {"invalid": {"rate": 0.5}}
    )
    assert "invalid" not in emptied
    assert forms.read_form(MultiDict([("name", "T")]), {"invalid": {"rate": 0.5}})["invalid"] == {"rate": 0.5}
