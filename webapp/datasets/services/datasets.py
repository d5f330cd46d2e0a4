"""Datasets and their versions: templates that are generated together with one seed; create, read, change, delete.

Like a template, a dataset consists of a head and one immutable row per version. A version pins the versions of its
templates at the time when it was saved, so that it always generates the same rows, even if the templates change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import select

from webapp import clock
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.datasets.models import Dataset, DatasetVersion
from webapp.errors import Fault, validation_error
from webapp.extensions import db
from webapp.generation.services import rows
from webapp.row_templates.models import Template, TemplateVersion
from webapp.row_templates.services import related_templates, relations
from webapp.versioning import services as versioning

CHANGEABLE: Final = ("name", "description", "templates", "seed", "anchor")
"""The attributes that clients can set; together with `warnings` they are the stored spec of a version."""

Spec = Mapping[str, Any]
"""A version's stored spec; its `templates` are `{template_id, count, name}`."""


def as_json(dataset: Dataset, version: DatasetVersion) -> dict[str, Any]:
    """Return a version of a dataset as the API shows it, each table with the version of its template."""
    spec, pinned = version.spec, version.pins["templates"]
    return {
        "id": dataset.id,
        "name": spec["name"],
        "description": spec["description"],
        "templates": [
            {**template, "version": pinned[template["template_id"]]} for template in spec["templates"]
        ],
        "seed": spec["seed"],
        "version": version.number,
        "anchor": spec["anchor"],
        "project_id": dataset.project_id,
        "team_id": dataset.team_id,
        "created_by": dataset.created_by,
        "created_at": clock.to_text(dataset.created_at),
        "updated_at": clock.to_text(version.created_at),
        "deleted_at": clock.to_text(dataset.deleted_at),
        "warnings": spec["warnings"],
    }


def _set_table_count(dataset: Dataset, spec: Spec) -> None:
    dataset.table_count = len(spec["templates"])


KIND: Final = versioning.VersionedKind(Dataset, DatasetVersion, as_json, _set_table_count)
listing, get, show, versions, version_of = KIND.listing, KIND.get, KIND.show, KIND.versions, KIND.version_of
restore_version, delete, restore = KIND.restore_version, KIND.delete, KIND.restore


def create(
    actor: Actor,
    *,
    name: str,
    templates: Sequence[Mapping[str, Any]],
    description: str = "",
    seed: str | None = None,
    anchor: datetime | None = None,
) -> dict[str, Any]:
    """Create a dataset in the actor's project with its first version; commits. Returns it as the API shows it.

    `templates` are `{template_id, count, name}`; without a seed, one is generated; without an `anchor`
    (timezone-aware), each table uses the anchor of its template. Error: validation_error with all errors of the tables.
    """
    moment = clock.now()
    spec = {
        "name": name,
        "description": description,
        "templates": _stored_tables(templates),
        "seed": seed or rows.new_seed(),
        "anchor": clock.to_text(anchor),
    }
    ready, pins = _validate(actor, spec)
    dataset = Dataset(**tenancy.current_scope(actor), created_by=actor.user_id, created_at=moment)
    return KIND.save(actor, dataset, ready, pins, "create", moment)


def change(
    actor: Actor,
    dataset: Dataset,
    changes: Mapping[str, Any],
    columns: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Save the next version of a locked dataset, with `changes` (any of `CHANGEABLE`) and the newest versions of its
    templates; commits. `columns` are further columns of the version. Returns the dataset as the API shows it. Error:
    validation_error."""
    before = version_of(dataset).spec
    spec = {key: changes.get(key, before[key]) for key in CHANGEABLE}
    spec["templates"] = _stored_tables(spec["templates"])
    spec["seed"] = spec["seed"] or rows.new_seed()
    if "anchor" in changes:
        spec["anchor"] = clock.to_text(changes["anchor"])
    ready, pins = _validate(actor, spec)
    return KIND.save(actor, dataset, ready, pins, "change", clock.now(), columns)


def refresh_references(actor: Actor, dataset: Dataset) -> dict[str, Any]:
    """Pin the newest versions of a locked dataset's templates; commits. Does nothing if they are pinned already. Error:
    validation_error for a deleted template."""
    newest = version_of(dataset)
    ready, pins = _validate(actor, {key: newest.spec[key] for key in CHANGEABLE})
    if pins == newest.pins:
        db.session.commit()
        return as_json(dataset, newest)
    return KIND.save(actor, dataset, ready, pins, "refresh", clock.now())


def require_templates(actor: Actor, spec: Spec, scope: str | None = None) -> dict[str, Template]:
    """Return the templates of a dataset by id. The actor must have the permission `scope` for each.

    Error: validation_error with a fault for each that is missing or named twice.
    """
    found, faults = look_up_templates(actor, [table["template_id"] for table in spec["templates"]], scope)
    if faults:
        raise validation_error(faults)
    return found


def look_up_templates(
    actor: Actor, template_ids: Sequence[Any], scope: str | None = None
) -> tuple[dict[str, Template], list[Fault]]:
    """Return the templates of a dataset's tables by id, and a fault for each that is missing or named twice."""
    statement = select(Template).where(
        Template.id.in_([item for item in template_ids if isinstance(item, str) and "\0" not in item]),
        Template.workspace_id == actor.workspace_id,
        Template.deleted_at.is_(None),
    )
    found = {
        template.id: template
        for template in db.session.scalars(statement)
        if actor.role_in(template.team_id) is not None
        and (scope is None or actor.can(scope, template.team_id))
    }
    faults = []
    for index, template_id in enumerate(template_ids):
        path = f"templates[{index}].template_id"
        if not isinstance(template_id, str) or not template_id:
            continue  # the model reports it
        if template_id not in found:
            text = "There is no such template in this project."
            hint = "It may have been deleted: restore it, or remove it from the dataset."
            faults.append(Fault(path, "unknown_template", text, hint))
        elif template_id in template_ids[:index]:
            text = f"templates[{template_ids.index(template_id)}] is already this template."
            faults.append(Fault(path, "duplicate", text, "A dataset can contain each template only once."))
    return found, faults


def fields_of(numbers: Mapping[str, int]) -> relations.Templates:
    """Return the stored fields of some template versions (`{template id: number}`), in that order, without deleted
    ones."""
    statement = select(TemplateVersion.template_id, TemplateVersion.number, TemplateVersion.spec).where(
        TemplateVersion.template_id.in_(list(numbers)), TemplateVersion.number.in_(set(numbers.values()))
    )
    related_templates.check_size(statement)
    found = {row[0]: row[2]["fields"] for row in db.session.execute(statement) if numbers[row[0]] == row[1]}
    return {number: found[number] for number in numbers if number in found}


def _stored_tables(templates: Sequence[Any]) -> list[dict[str, Any]]:
    return [{key: template.get(key) for key in ("template_id", "count", "name")} for template in templates]


def _validate(actor: Actor, spec: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a spec in its stored form, and its pins. Error: `validation_error` with all errors."""
    found = require_templates(actor, spec)
    pinned = {
        template["template_id"]: found[template["template_id"]].version for template in spec["templates"]
    }
    names = {
        template["template_id"]: template["name"] or found[template["template_id"]].name
        for template in spec["templates"]
    }
    positions = {name: index for index, name in enumerate(names)}
    warnings = []
    for edge in relations.find_edges(fields_of(pinned)):
        if edge.parent_template_id in names:
            continue
        path = f"templates[{positions[edge.child_template_id]}]"
        text = f"{names[edge.child_template_id]}.{edge.child_field} refers to a template that is not in this dataset."
        hint = "Add that template to the dataset as well."
        warnings.append(Fault(path, "outside_reference", text, hint).as_dict())
    return {**spec, "warnings": warnings}, {"templates": pinned}


# Differences between two versions of a dataset.

_HEADER_KEYS: Final = ("name", "description", "seed", "anchor")


def diff_versions(dataset: Dataset, old: int, new: int) -> dict[str, Any]:
    """Return the differences from version `old` to `new`.

    `dataset`: attributes that differ, `{key: {from, to}}`. `templates.added` and `templates.removed`: the tables;
    `templates.changed`: `{template_id, changes: {count, name, version: {from, to}}}`. `order`: the template ids before
    and after if the order of the common ones differs, else None. Error: not_found.
    """
    before, after = (show(dataset, number) for number in (old, new))
    before_by_id = {template["template_id"]: template for template in before["templates"]}
    after_by_id = {template["template_id"]: template for template in after["templates"]}
    common = [item for item in before_by_id if item in after_by_id]
    changed = [
        {"template_id": item, "changes": _differences(before_by_id[item], after_by_id[item])}
        for item in common
        if before_by_id[item] != after_by_id[item]
    ]
    orders = [[item for item in side if item in common] for side in (before_by_id, after_by_id)]
    return {
        "dataset_id": dataset.id,
        "from": old,
        "to": new,
        "dataset": _differences(
            {key: before[key] for key in _HEADER_KEYS}, {key: after[key] for key in _HEADER_KEYS}
        ),
        "templates": {
            "added": [after_by_id[item] for item in after_by_id if item not in before_by_id],
            "removed": [before_by_id[item] for item in before_by_id if item not in after_by_id],
            "changed": changed,
        },
        "order": {"from": orders[0], "to": orders[1]} if orders[0] != orders[1] else None,
    }


def template_names(diff: dict[str, Any]) -> dict[str, str]:
    """Return the names of the templates in a diff, by id."""
    template_ids = [item["template_id"] for part in diff["templates"].values() for item in part]
    statement = select(Template.id, Template.name).where(Template.id.in_(template_ids))
    return {row[0]: row[1] for row in db.session.execute(statement)}


def _differences(old: dict[str, Any], new: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {key: {"from": old[key], "to": new[key]} for key in old if old[key] != new[key]}
