"""What changed between two versions of a dataset."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import select

from webapp.extensions import db
from webapp.models import Dataset, Template
from webapp.services import datasets

_HEAD: Final = ("name", "description", "seed", "anchor")


def between(dataset: Dataset, old: int, new: int) -> dict[str, Any]:
    """The differences from version `old` to `new`.

    `dataset`: attributes that differ, `{key: {from, to}}`. `templates.added` and `templates.removed`: the tables;
    `templates.changed`: `{template_id, changes: {count, name, version: {from, to}}}`. `order`: the template ids before
    and after where those that both have stand in another order, else None. Error: not_found.
    """
    before, after = (datasets.show(dataset, number) for number in (old, new))
    was = {one["template_id"]: one for one in before["templates"]}
    now = {one["template_id"]: one for one in after["templates"]}
    both = [one for one in was if one in now]
    changed = [
        {"template_id": one, "changes": _changes(was[one], now[one])} for one in both if was[one] != now[one]
    ]
    orders = [[one for one in side if one in both] for side in (was, now)]
    return {
        "dataset_id": dataset.id,
        "from": old,
        "to": new,
        "dataset": _changes({key: before[key] for key in _HEAD}, {key: after[key] for key in _HEAD}),
        "templates": {
            "added": [now[one] for one in now if one not in was],
            "removed": [was[one] for one in was if one not in now],
            "changed": changed,
        },
        "order": {"from": orders[0], "to": orders[1]} if orders[0] != orders[1] else None,
    }


def names(found: dict[str, Any]) -> dict[str, str]:
    """The names of the templates that a diff speaks of, by id."""
    told = [one["template_id"] for part in found["templates"].values() for one in part]
    statement = select(Template.id, Template.name).where(Template.id.in_(told))
    return {row[0]: row[1] for row in db.session.execute(statement)}


def _changes(old: dict[str, Any], new: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {key: {"from": old[key], "to": new[key]} for key in old if old[key] != new[key]}
