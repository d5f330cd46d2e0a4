"""What the builder's form says of masking."""

from __future__ import annotations

import pytest
from werkzeug.datastructures import MultiDict

from webapp.builder.forms import draft, field_rows

FIELD = {"id": "fld_01HZZZZZZZZZZZZZZZZZZZZZZZ", "name": "email", "type": "email", "options": {}}


def sent(**said: str) -> dict:
    """The field that a browser sends of an open row, with these keys of masking filled in."""
    row = field_rows.row(FIELD, str, opened=[FIELD["id"]])
    values = MultiDict([("row", row.mark), (f"{row.key}.name", row.name), (f"{row.key}.type", row.type)])
    values.add(f"{row.key}.open", "1")
    for key, value in said.items():
        values.add(f"{row.key}.masking.{key}", value)
    return draft.read(values)["fields"][0]


@pytest.mark.parametrize(
    ("said", "masking"),
    [
        ({"consistent": "y"}, None),
        ({}, None),
        ({"consistent": "y", "strategy": "hash"}, {"strategy": "hash"}),
        ({"strategy": "hash"}, {"strategy": "hash", "consistent": False}),
        ({"consistent": "y", "domain": "d"}, {"domain": "d"}),  # the parser asks for the strategy
        ({"consistent": "y", "strategy": "hash", "key_version": "2"}, {"strategy": "hash", "key_version": 2}),
    ],
)
def test_an_open_field_sends_what_was_filled_in(said, masking):
    assert sent(**said).get("masking") == masking


def test_a_closed_field_shows_its_strategy():
    row = field_rows.row({**FIELD, "masking": {"strategy": "hash", "domain": "d"}}, str)
    assert "masking hash" in row.notes
