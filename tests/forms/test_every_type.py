"""Every field type in the builder's form: rendered values are parsed back, in open and closed rows."""

from __future__ import annotations

from typing import Any

import pytest
from flask import render_template
from werkzeug.datastructures import MultiDict

from tests.forms.in_html import controls
from webapp import ids
from webapp.builder import forms
from webapp.builder.forms import COMMON_NAMES, IDENTITY_KEYS, TABS, draft_fields, visible_options
from webapp.builder.services import DraftSample
from webapp.builder.views.draft_page import (
    HINTS,
    InspectorSelect,
    OpenDraft,
    ViewState,
    icon_of,
    inspector_form,
)
from webapp.engine.spec import CommonKeys
from webapp.engine.types.registry import REGISTRY
from webapp.web.forms.from_model import bind_form, control_names, form_class, inline_control_names

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
    return {
        name: _value(schema["properties"][name], schema.get("$defs", {}))
        for name in control_names(kind.Options)
    }


class Nowhere:
    """A builder without other templates and connections."""

    names: tuple[str, ...] = ()
    unique_labels: tuple[str, ...] = ()
    sourced = False

    def pick(self, field: Any, row: Any) -> InspectorSelect:
        return InspectorSelect([], str(field.data), "", reloads=False, typed=False, many=False)

    def groups(self, row: Any) -> list[tuple[str, str]]:
        return []

    sibling_names = groups


def drawn(drawing, field: dict[str, Any]) -> MultiDict[str, str]:
    """The inputs of the inspector of a field."""
    with drawing.test_request_context():
        at = OpenDraft(None, {"fields": [field]})
        shown = ViewState(field=draft_fields([field])[0].key)
        context = {
            "at": at,
            "shown": shown,
            "open_field": inspector_form(at, shown, DraftSample()),
            "lines": [],
            "tabs": TABS,
            "can_write": True,
            "hints": HINTS,
            "look": icon_of,
            "around": Nowhere(),
            "draft": at.spec,
            "key_for": str,
        }
        return controls(render_template("templates/inspector.html", **context))


def drawn_and_read(drawing, field: dict[str, Any], before: dict[str, Any] | None = None) -> dict[str, Any]:
    """The field that a form reads back, into a draft in which it said something else before."""
    return forms.read_form(drawn(drawing, field), {"fields": [before or field]})["fields"][0]


def _as_text(value: Any) -> Any:
    """Decimals come back as exact text, which the models read as the number it is."""
    if isinstance(value, dict):
        return {key: _as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_text(item) for item in value]
    return str(value) if isinstance(value, float) else value


@pytest.mark.parametrize("kind", REGISTRY, ids=lambda kind: kind.name)
def test_the_inspector_gives_back_the_field_it_was_drawn_from(drawing, kind):
    field = {"id": new_id(), "name": "value", "type": kind.name, "options": filled_options(kind), **COMMON}
    if "fields" in kind.Options.model_fields:
        field["options"]["fields"] = []
    shown = {*visible_options(kind, field["options"]), "fields"}
    field["options"] = {name: value for name, value in field["options"].items() if name in shown}
    empty = {"id": field["id"], "name": "", "type": kind.name, "options": {}}
    empty["options"] = {
        name: field["options"][name] for name in kind.Options.parameters if name in field["options"]
    }
    found = drawn_and_read(drawing, field, empty)
    assert _as_text(found) == _as_text(field)


@pytest.mark.parametrize(
    ("ticked", "word", "unique"),
    [
        (True, "slot", "slot"),
        (True, "", True),
        (False, "slot", None),
        (False, "other", "other"),  # a word that is written needs no tick
        (True, "other", "other"),
    ],
)
def test_the_tick_and_the_word_of_uniqueness_are_one_key(drawing, ticked, word, unique):
    field = {"id": new_id(), "name": "value", "type": "number", "options": {}, "unique": "slot"}
    form, key = drawn(drawing, field), draft_fields([field])[0].key
    if not ticked:
        form.pop(f"{key}.unique")
    form[f"{key}.unique_together"] = word
    found = forms.read_form(form, {"fields": [field]})["fields"][0]
    assert found.get("unique") == unique
    assert "unique_together" not in found


@pytest.mark.parametrize("kind", REGISTRY, ids=lambda kind: kind.name)
def test_a_field_that_says_nothing_sends_nothing(drawing, kind):
    field = {"id": new_id(), "name": "value", "type": kind.name, "options": {}}
    found = drawn_and_read(drawing, field)
    found["options"].pop("fields", None)
    assert found == field


@pytest.mark.parametrize("kind", REGISTRY, ids=lambda kind: kind.name)
def test_every_option_has_a_control_or_is_a_list_of_fields(kind):
    schema = kind.Options.model_json_schema(by_alias=True)
    known = {name for name, part in schema.get("properties", {}).items() if part.get("type") != "null"}
    assert set(control_names(kind.Options)) == known - {"fields"}
    assert set(inline_control_names(kind.Options)) <= known


def test_every_key_that_all_fields_have_is_on_a_tab():
    assert set(CommonKeys.model_fields) - IDENTITY_KEYS == set(COMMON_NAMES)
    assert set(form_class(CommonKeys, COMMON_NAMES).names) == set(COMMON_NAMES)


def test_a_form_of_no_keys_has_no_controls():
    assert bind_form(CommonKeys, names=()).payload() == {}
