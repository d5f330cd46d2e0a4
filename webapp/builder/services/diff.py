"""Differences between two versions of a template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from webapp.engine.spec import ELEMENT
from webapp.generation.services import generate
from webapp.row_templates.models import Template
from webapp.row_templates.services import templates
from webapp.row_templates.services.field_ids import Stored, children

_HEAD = ("name", "description", "quantity", "locale", "anchor", "source", "invalid")
_FOLLOWS = frozenset({"id", "label"})  # given by the service, or following from the type


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The differences from `old` to `new`, two stored specs.

    `template`: head attributes that differ, `{key: {from, to}}`. `fields.added` and `fields.removed`: items
    `{id, path, field}`; fields nested in an added or removed field are not listed again. `fields.changed`: items
    `{id, path, name, changes: {key: {from, to}}}`, options by `options.<name>`. `fields.moved`: items
    `{id, path, from, to}`, places counted from 0 among the fields that both have at that level. Fields are the
    same when their ids are; a field that changed levels is removed and added.
    """
    out: dict[str, list[dict[str, Any]]] = {"added": [], "removed": [], "changed": [], "moved": []}
    _level(old["fields"], new["fields"], "", out)
    head = {key: {"from": old.get(key), "to": new.get(key)} for key in _HEAD if old.get(key) != new.get(key)}
    return {"template": head, "fields": out}


def _level(
    old: Sequence[Stored], new: Sequence[Stored], prefix: str, out: dict[str, list[dict[str, Any]]]
) -> None:
    before = {field["id"]: field for field in old}
    after = {field["id"]: field for field in new}
    for where, fields, other in (("removed", old, after), ("added", new, before)):
        out[where] += [
            {"id": field["id"], "path": prefix + field["name"], "field": dict(field)}
            for field in fields
            if field["id"] not in other
        ]
    places = {key: place for place, key in enumerate(key for key in before if key in after)}
    for place, key in enumerate(key for key in after if key in before):
        path = prefix + after[key]["name"]
        if places[key] != place:
            out["moved"].append({"id": key, "path": path, "from": places[key], "to": place})
        changes = _changes(before[key], after[key])
        if changes:
            out["changed"].append({"id": key, "path": path, "name": after[key]["name"], "changes": changes})
        _level(children(before[key]), children(after[key]), f"{path}.", out)


def _changes(old: Stored, new: Stored) -> dict[str, dict[str, Any]]:
    found = {
        key: {"from": old.get(key), "to": new.get(key)}
        for key in dict.fromkeys([*old, *new])
        if key not in _FOLLOWS and key != "options" and old.get(key) != new.get(key)
    }
    before, after = old["options"], new["options"]
    for key in dict.fromkeys([*before, *after]):
        if key not in ("fields", ELEMENT) and before.get(key) != after.get(key):
            found[f"options.{key}"] = {"from": before.get(key), "to": after.get(key)}
    return found


def cells(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the cells that differ between two previews: items `{row, column, from, to}`, rows counted from 1. Only
    columns of both previews are compared; the diff of the fields lists the others."""
    found = []
    for number, (before, after) in enumerate(zip(old, new, strict=True), 1):
        found += [
            {"row": number, "column": name, "from": before[name], "to": after[name]}
            for name in before
            if name in after and before[name] != after[name]
        ]
    return found


def between(template: Template, old: int, new: int, seed: str | None = None) -> dict[str, Any]:
    """The differences from version `old` to `new`; with a `seed`, also of their previews under it, cell by cell.

    `preview` is None without a seed, else `{seed, from, to, cells}` with three rows of each. Errors: not_found;
    validation_error and unavailable if a preview cannot be generated.
    """
    before, after = (templates.version_of(template, number) for number in (old, new))
    out: dict[str, Any] = {
        "template_id": template.id,
        "from": old,
        "to": new,
        **compare(before.spec, after.spec),
    }
    out["preview"] = None
    if seed is not None:
        found = generate.TemplateRef(template.id, template.version, template.project_id, template.team_id)
        rows = [orjson.loads(generate.preview_version(found, number, seed).rows) for number in (old, new)]
        out["preview"] = {"seed": seed, "from": rows[0], "to": rows[1], "cells": cells(*rows)}
    return out
