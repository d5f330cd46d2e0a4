"""Every field type in the builder's form: rendered values are parsed back, in open and closed rows."""

from __future__ import annotations

from typing import Any

import pytest
from flask import render_template

from tests.forms.in_html import controls
from webapp import ids
from webapp.builder.forms import draft, field_rows
from webapp.engine.spec import CommonKeys
from webapp.engine.types.registry import REGISTRY
from webapp.web.forms.from_model import bound, form_class, inline, keys

COMMON = {
    "percent_blank": 12.5,
    "unique": True,
    "sensitive": True,
    "hidden": True,
    "locale": "de_DE",
    "group": "buyer",
    "prefix": "<'\"&> ",
    "suffix": "{{ x }}",
    "text_case": "upper",
    "formula": "this + 1",
    "description": "two\r\nlines",
    "masking": {"strategy": "redact"},
}


def new_id() -> str:
    return ids.new("fld")


def _resolved(schema: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return _resolved(defs[schema["$ref"].rsplit("/", 1)[1]], defs)
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            real = [part for part in schema[key] if part.get("type") != "null"]
            return {
                **_resolved(real[0], defs),
                **{k: v for k, v in schema.items() if k in ("examples", "default")},
            }
    return schema


def _value(schema: dict[str, Any], defs: dict[str, Any]) -> Any:
    """Some value that the schema takes and that is not its default."""
    schema = _resolved(schema, defs)
    if schema.get("examples"):
        return schema["examples"][0]
    if "enum" in schema:
        return next(value for value in reversed(schema["enum"]) if value != schema.get("default"))
    kind = schema.get("type")
    if kind == "boolean":
        return not schema.get("default", False)
    if kind in ("integer", "number"):
        return max(schema.get("minimum", 3), 3)
    if kind == "array":
        items = _resolved(schema.get("items", {}), defs)
        return items["enum"][:2] if "enum" in items else [_value(items, defs)]
    if kind == "object":
        inner = schema.get("properties")
        return (
            {name: _value(part, defs) for name, part in inner.items()}
            if inner
            else {"DE": "Deutsch", "7": [1]}
        )
    return "a <b> & 'c'"


def filled_options(kind: Any) -> dict[str, Any]:
    schema = kind.Options.model_json_schema(by_alias=True)
    return {name: _value(schema["properties"][name], schema.get("$defs", {})) for name in keys(kind.Options)}


def drawn_and_read(drawing, field: dict[str, Any], opened: set[str]) -> dict[str, Any]:
    with drawing.test_request_context():
        rows = field_rows.rows([field], new_id, opened=opened)
        html = render_template("templates/row_list.html", rows=rows, common_hints={})
    return draft.read(controls(html))["fields"][0]


def _as_text(value: Any) -> Any:
    """Decimals come back as exact text, which the models read as the number it is."""
    if isinstance(value, dict):
        return {key: _as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_text(item) for item in value]
    return str(value) if isinstance(value, float) else value


@pytest.mark.parametrize("kind", REGISTRY, ids=lambda kind: kind.name)
@pytest.mark.parametrize("is_open", [False, True], ids=["closed", "open"])
def test_a_row_gives_back_the_field_it_was_drawn_from(drawing, kind, is_open):
    field = {"id": new_id(), "name": "value", "type": kind.name, "options": filled_options(kind), **COMMON}
    if "fields" in kind.Options.model_fields:
        field["options"]["fields"] = []
    found = drawn_and_read(drawing, field, {field["id"]} if is_open else set())
    assert _as_text(found) == _as_text(field)


@pytest.mark.parametrize("kind", REGISTRY, ids=lambda kind: kind.name)
def test_a_folded_row_gives_back_the_field_it_was_drawn_from(drawing, kind):
    field = {"id": new_id(), "name": "value", "type": kind.name, "options": filled_options(kind), **COMMON}
    with drawing.test_request_context():
        html = render_template(
            "templates/row_list.html", rows=field_rows.rows([field], new_id, most=0), common_hints={}
        )
    found = draft.read(controls(html))["fields"][0]
    found["options"].pop("fields", None)
    assert _as_text(found) == _as_text(field)


@pytest.mark.parametrize(
    ("opened", "ticked", "word", "unique"),
    [
        (False, True, None, "slot"),  # a closed row holds the word
        (False, False, None, None),  # and loses it with the tick
        (True, True, "slot", "slot"),
        (True, True, "", True),
        (True, False, "slot", None),
        (True, False, "other", "other"),  # a word that is written needs no tick
        (True, True, "other", "other"),
    ],
)
def test_the_tick_and_the_word_of_uniqueness_are_one_key(drawing, opened, ticked, word, unique):
    field = {"id": new_id(), "name": "value", "type": "number", "options": {}, "unique": "slot"}
    with drawing.test_request_context():
        rows = field_rows.rows([field], new_id, opened={field["id"]} if opened else ())
        html = render_template("templates/row_list.html", rows=rows, common_hints={})
    form = controls(html)
    if not ticked:
        form.pop(f"{rows[0].key}.unique")
    if word is not None:
        form[f"{rows[0].key}.unique_together"] = word
    found = draft.read(form)["fields"][0]
    assert found.get("unique") == unique
    assert "unique_together" not in found


@pytest.mark.parametrize("kind", REGISTRY, ids=lambda kind: kind.name)
def test_a_row_that_says_nothing_sends_nothing(drawing, kind):
    field = {"id": new_id(), "name": "value", "type": kind.name, "options": {}}
    found = drawn_and_read(drawing, field, {field["id"]})
    found["options"].pop("fields", None)
    assert found == field


@pytest.mark.parametrize("kind", REGISTRY, ids=lambda kind: kind.name)
def test_every_option_has_a_control_or_is_a_list_of_fields(kind):
    schema = kind.Options.model_json_schema(by_alias=True)
    known = {name for name, part in schema.get("properties", {}).items() if part.get("type") != "null"}
    assert set(keys(kind.Options)) == known - {"fields"}
    assert set(inline(kind.Options)) <= known


def test_every_key_that_all_fields_have_is_on_the_row_or_held():
    shown = {*field_rows.SHOWN, *field_rows.MORE, *field_rows.OWN}
    assert "masking" in shown
    assert set(CommonKeys.model_fields) - shown <= {"column", "invalid"}
    assert set(form_class(CommonKeys, field_rows.MORE).names) == set(field_rows.MORE)


def test_a_form_of_no_keys_has_no_controls():
    assert bound(CommonKeys, names=()).payload() == {}
