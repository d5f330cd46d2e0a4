"""What the builder's form says of masking."""

from __future__ import annotations

import pytest
from werkzeug.datastructures import MultiDict

from webapp.builder import forms
from webapp.builder.forms import FieldForm, draft_fields

FIELD = {"id": "fld_01HZZZZZZZZZZZZZZZZZZZZZZZ", "name": "email", "type": "email", "options": {}}


def sent(**said: str) -> dict:
    """The field that a browser sends, with these keys of masking filled in."""
    form = FieldForm(draft_fields([FIELD])[0])
    values = MultiDict([("row", form.mark), (f"{form.key}.name", form.name), (f"{form.key}.type", form.type)])
    for key, value in said.items():
        values.add(f"{form.key}.masking.{key}", value)
    return forms.read_form(values, {"fields": [FIELD]})["fields"][0]


@pytest.mark.parametrize(
    ("text", "masking"),
    [
        ({"consistent": "y"}, None),
        ({}, None),
        ({"consistent": "y", "strategy": "hash"}, {"strategy": "hash"}),
        ({"strategy": "hash"}, {"strategy": "hash", "consistent": False}),
        ({"consistent": "y", "domain": "d"}, {"domain": "d"}),  # the parser asks for the strategy
        ({"consistent": "y", "strategy": "hash", "key_version": "2"}, {"strategy": "hash", "key_version": 2}),
    ],
)
def test_a_field_sends_what_was_filled_in(text, masking):
    assert sent(**text).get("masking") == masking
