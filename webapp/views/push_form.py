"""The form of a push: what a person chose, read as the request of a program; its mapping, drawn from the plan.

What stands in the form is what is sent: a field that no column shows is left out, whatever its name may fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from webapp.errors import ApiError
from webapp.views import push_where

FORMULA: Final = " ="
"""The choice of a formula instead of a field; no field's name begins with a space."""
HOWS: Final = {
    "given": "chosen",
    "computed": "formula",
    "name": "same name",
    "alike": "similar name",
    "synonym": "same meaning",
    "label": "by its label",
    "type": "the only one of its type",
    "parent": "key of its parent",
}
NOTHINGS: Final = {
    "identity": "made by the target",
    "computed": "computed by the target",
    "default": "its default",
    "nullable": "null",
    "update": "stays as it is",
    "left_out": "left out",
}
_MOST_OPTIONS: Final = 900  # chosen: above that the page would pass 50 kB, and inputs with one list take their place


def tables_of(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The form's tables: `{name, target, was, out, all, c: [{column, field, formula, was, key}]}`; columns of
    another target than the present one are dropped."""
    found = given.get("t")
    tables = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    if tables and "target" in given:  # the form of a template has one
        tables[0] = {**tables[0], "target": _text(given, "target")}
    moved = given.get("connection_id") != given.get("was")
    return [
        {
            "name": _text(one, "name"),
            "target": "" if moved else _text(one, "target"),
            "out": "out" in one,
            "all": _names(_text(one, "all")),
            "c": [] if moved or _text(one, "target") != _text(one, "was") else _columns(one.get("c")),
        }
        for one in tables
    ]


def _columns(found: Any) -> list[dict[str, str]]:
    rows = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    return [{key: _text(one, key) for key in ("column", "field", "formula", "was", "key")} for one in rows]


def _text(one: Mapping[str, Any], key: str) -> str:
    value = one.get(key, "")
    return value if isinstance(value, str) else ""


def _names(text: str) -> list[str]:
    try:
        found = orjson.loads(text) if text else []
    except orjson.JSONDecodeError:
        return []
    return [str(one) for one in found] if isinstance(found, list) else []


# --- As a request -----------------------------------------------------------------------------------------------


def of_template(given: Mapping[str, Any]) -> dict[str, Any]:
    """The form as the body of `POST /templates/{id}/push`."""
    asked = _common(given)
    for one in tables_of(given)[:1]:
        asked |= {"target": one["target"] or None, **_mapping(one, asked["mode"])}
    for key in ("count", "seed", "locale"):
        if text := _text(given, key).strip():
            asked[key] = text
    return asked


def of_dataset(given: Mapping[str, Any]) -> dict[str, Any]:
    """The form as the body of `POST /datasets/{id}/push`."""
    asked = _common(given)
    asked |= {"targets": {}, "mappings": {}, "computed": {}, "key_columns": {}}
    for one in tables_of(given):
        if one["out"] or one["target"]:
            asked["targets"][one["name"]] = None if one["out"] else one["target"]
        told = _mapping(one, asked["mode"])
        for key, place in (("mapping", "mappings"), ("computed", "computed"), ("key_columns", "key_columns")):
            if told.get(key):
                asked[place][one["name"]] = told[key]
    if text := _text(given, "seed").strip():
        asked["seed"] = text
    return asked


def _common(given: Mapping[str, Any]) -> dict[str, Any]:
    asked: dict[str, Any] = {
        **push_where.named(_text(given, "connection_id")),
        "mode": _text(given, "mode") or "insert",
        "on_error": _text(given, "on_error") or "continue",
        "create_table": "create_table" in given,
        "confirm": _text(given, "confirm") or None,
    }
    if "canary" in given:
        asked["canary"] = True
    for key in ("before_sql", "after_sql"):
        if text := _text(given, key).strip():
            asked[key] = [text]
    return asked


def _mapping(one: Mapping[str, Any], mode: str) -> dict[str, Any]:
    """What the rows of one table say. A field that is chosen for a second column goes there as a formula."""
    if not one["c"]:
        return {}
    mapping: dict[str, str | None] = {}
    computed: dict[str, str] = {}
    for row in one["c"]:
        if row["field"] == FORMULA:
            computed[row["column"]] = row["formula"].strip() or "null"
        elif row["field"] in mapping:
            computed[row["column"]] = row["field"]
        elif row["field"]:
            mapping[row["field"]] = row["column"]
    mapping |= {name: None for name in one["all"] if name not in mapping}
    keys = [row["column"] for row in one["c"] if row["key"]] if mode != "insert" else []
    return {"mapping": mapping, "computed": computed, "key_columns": keys}


# --- As it is drawn ---------------------------------------------------------------------------------------------


def drawn(plan: Mapping[str, Any] | None, given: Mapping[str, Any], names: Sequence[str]) -> list[dict[str, Any]]:
    """The tables of the page, in the order of sending, those that are left out or have no plan at the end:
    `{name, target, out, plan, kept, all, cells, unused, listed}`; `kept` are rows of the form that have no plan now."""
    asked = {one["name"]: one for one in tables_of(given)}
    planned = {one["name"]: one for one in (plan or {}).get("tables", ())}
    made = []
    for name in [*planned, *(one for one in names if one not in planned)]:
        mine, table = asked.get(name, {"target": "", "out": False, "c": [], "all": []}), planned.get(name)
        made.append(
            {
                "name": name,
                "target": table["target"] if table else mine["target"],
                "out": mine["out"],
                "plan": table,
                "kept": [] if table else mine["c"],
                "all": mine["all"],
                "cells": [_cell(one, mine["c"]) for one in table["columns"]] if table else [],
                "unused": _unused(table) if table else [],
            }
        )
    options = sum(len(one["cells"]) * len(one["plan"]["fields"]) for one in made if one["plan"])
    return [{**one, "listed": options > _MOST_OPTIONS} for one in made]


def _unused(table: Mapping[str, Any]) -> list[str]:
    sent = {one["field"] or one["formula"] for one in table["columns"]}
    parts = {str(name).partition(".")[0] for name in sent if name}
    return [one["name"] for one in table["fields"] if one["name"].partition(".")[0] not in parts]


def _cell(cell: Mapping[str, Any], rows: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """A column as the plan has it, with how its field was found in the first place."""
    row = next((one for one in rows if one["column"] == cell["column"]), None)
    how, _, field = (row["was"] if row else "").partition("|")
    found = how if how and field == cell["field"] else cell["how"] or ""
    names_a_field = cell["formula"] and not (row and row["field"] == FORMULA)
    return {
        **cell,
        "field": cell["formula"] if names_a_field else cell["field"],
        "formula": None if names_a_field else cell["formula"],
        "how": found,
        "says": HOWS.get(found, ""),
        "nothing": NOTHINGS.get(cell["skipped"] or "", "choose a field"),
    }


def faults(error: ApiError | None, plan: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """What stands in the way, as the page lists it."""
    if error is not None:
        told = error.details.get("fields") or [
            {"path": "", "message": error.message, "hint": error.details.get("hint", "")}
        ]
        return list(told)
    return [one for table in (plan or {}).get("tables", ()) for one in table["faults"]]
