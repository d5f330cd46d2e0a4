"""JSON Schemas that are larger than one template, and many of them in one process."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest

from webapp import limits
from webapp.imports.inference import json_schema
from webapp.imports.readers import formats
from webapp.imports.readers.base import Source
from webapp.imports.services import drafts
from webapp.row_templates.services import compilation


def drafted(schema: dict[str, Any]) -> drafts.Draft:
    words = compilation.vocabulary()
    read = formats.read(Source(json.dumps(schema).encode(), "wide.json"), "json_schema", words)
    (result,) = drafts.draft_tables(read, words, 10)
    return result


def test_objects_beyond_the_limit_of_fields_become_one_valid_object():
    part = {
        "type": "object",
        "properties": {f"p{number}": {"type": "integer"} for number in range(25)},
        "required": ["p1"],
    }
    listed = {"type": "array", "items": part, "minItems": 1}
    schema = {"type": "object", "properties": {f"object_{number}": part for number in range(24)}}
    schema["properties"] |= {"listed": listed}
    outcome = drafted(schema)
    assert len(outcome.fields) == 25
    simpler = [
        column
        for column in outcome.columns
        if column.state == "yellow" and column.reason.startswith("A fixed value")
    ]
    assert simpler
    for result in simpler:
        assert result.field is not None
        assert result.field["type"] == "enum"
        (value,) = result.field["options"]["values"]
        value = value[0] if isinstance(value, list) else value
        assert isinstance(value["p1"], int)
    assert not [column for column in outcome.columns if column.state == "red"]


def test_the_work_for_one_schema_does_not_count_for_the_next(monkeypatch: pytest.MonkeyPatch):
    schema = {
        "type": "object",
        "properties": {f"p{number}": {"type": "string", "maxLength": 9} for number in range(20)},
    }
    monkeypatch.setattr(limits, "DOCUMENT_VISITS", 2_000)
    importlib.reload(json_schema)  # as a process begins
    for _ in range(20):
        assert len(drafted(schema).fields) == 20
