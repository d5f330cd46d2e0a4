"""Datasets: templates that are generated together under one seed; made, read, changed, deleted, and every version.

As with templates, a dataset is a head and one row for each version, which never changes. A version pins the version
each of its templates had when it was saved, so that it goes on making the same rows whatever becomes of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import select

from webapp import clock, limits
from webapp.errors import Fault, validation_error
from webapp.extensions import db
from webapp.models import Dataset, DatasetVersion, Template, TemplateVersion
from webapp.services import audit, paging, relations, rows, tenancy
from webapp.services.actors import Actor

CHANGEABLE: Final = ("name", "description", "templates", "seed", "anchor")
"""The attributes that a caller sets; together they are a version's stored spec, with `warnings` beside them."""

Spec = Mapping[str, Any]
"""A version's stored spec; its `templates` are `{template_id, count, name}`."""


def as_json(dataset: Dataset, version: DatasetVersion) -> dict[str, Any]:
    """A dataset as of one version, as the API shows it; each table with the version of its template."""
    spec, pinned = version.spec, version.pins["templates"]
    return {
        "id": dataset.id,
        "name": spec["name"],
        "description": spec["description"],
        "templates": [{**one, "version": pinned[one["template_id"]]} for one in spec["templates"]],
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


def listing(
    actor: Actor,
    *,
    cursor: str | None = None,
    limit: int = limits.PAGE_LIMIT_DEFAULT,
    q: str | None = None,
    sort: str | None = None,
) -> paging.Page[dict[str, Any]]:
    """A page of the project's datasets, each whole: newest first, or by `name` or `updated` (`-`: backwards)."""
    order = {"name": Dataset.name, "updated": Dataset.updated_at}.get((sort or "").removeprefix("-"))
    page = paging.page(
        tenancy.listing(actor, Dataset),
        name="datasets",
        identity=Dataset.id,
        cursor=cursor,
        limit=limit,
        search=(q, Dataset.name),
        order=order,
        descending=sort is None or sort.startswith("-"),
        context=actor.project_id or "",
    )
    statement = (
        select(DatasetVersion)
        .join(Dataset, Dataset.id == DatasetVersion.dataset_id)
        .where(Dataset.id.in_([one.id for one in page.items]), DatasetVersion.number == Dataset.version)
    )
    newest = {version.dataset_id: version for version in db.session.scalars(statement)}
    return paging.Page([as_json(one, newest[one.id]) for one in page.items], page.next_cursor, page.total)


def get(
    actor: Actor, dataset_id: str, scope: str = "read", *, lock: bool = False, deleted: bool = False
) -> Dataset:
    """A dataset's head. Errors: not_found, forbidden."""
    return tenancy.get(actor, Dataset, dataset_id, scope, lock=lock, deleted=deleted)


def version_of(dataset: Dataset, number: int | None = None) -> DatasetVersion:
    """One version of a dataset; its newest for None. Error: not_found."""
    wanted = dataset.version if number is None else number
    found = None
    if 1 <= wanted <= dataset.version:
        statement = select(DatasetVersion).where(
            DatasetVersion.dataset_id == dataset.id, DatasetVersion.number == wanted
        )
        found = db.session.scalar(statement)
    if found is None:
        raise tenancy.not_found("dataset version", f"{dataset.id}@v{wanted}")
    return found


def show(dataset: Dataset, number: int | None = None) -> dict[str, Any]:
    """A dataset as of a version (default: the newest), as the API shows it. Error: not_found."""
    return as_json(dataset, version_of(dataset, number))


def versions(
    dataset: Dataset, *, cursor: str | None = None, limit: int = limits.PAGE_LIMIT_DEFAULT
) -> paging.Page[dict[str, Any]]:
    """A page of a dataset's versions, newest first, each the whole dataset as of then."""
    page = paging.page(
        select(DatasetVersion).where(DatasetVersion.dataset_id == dataset.id),
        name="dataset_versions",
        identity=DatasetVersion.number,
        cursor=cursor,
        limit=limit,
        context=dataset.id,
    )
    return paging.Page([as_json(dataset, one) for one in page.items], page.next_cursor, page.total)


def create(
    actor: Actor,
    *,
    name: str,
    templates: Sequence[Mapping[str, Any]],
    description: str = "",
    seed: str | None = None,
    anchor: datetime | None = None,
) -> dict[str, Any]:
    """A new dataset in the actor's project, with its first version; commits. Returns it as the API shows it.

    `templates` are `{template_id, count, name}`; a seed is made where none is given; without an `anchor` (aware) each
    table hangs on its own template's. Error: validation_error with every fault of the tables.
    """
    moment = clock.now()
    spec = {
        "name": name,
        "description": description,
        "templates": _tables(templates),
        "seed": seed or rows.new_seed(),
        "anchor": clock.to_text(anchor),
    }
    ready, pins = _checked(actor, spec)
    dataset = Dataset(**tenancy.here(actor), created_by=actor.user_id, created_at=moment)
    db.session.add(dataset)
    return _save(actor, dataset, ready, pins, "dataset.create", moment)


def change(actor: Actor, dataset: Dataset, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The next version of a locked dataset, with `changes` (any of `CHANGEABLE`), on the newest versions of its
    templates; commits. Returns the dataset as the API shows it. Error: validation_error."""
    before = version_of(dataset).spec
    spec = {key: changes.get(key, before[key]) for key in CHANGEABLE}
    spec["templates"] = _tables(spec["templates"])
    spec["seed"] = spec["seed"] or rows.new_seed()
    if "anchor" in changes:
        spec["anchor"] = clock.to_text(changes["anchor"])
    ready, pins = _checked(actor, spec)
    return _save(actor, dataset, ready, pins, "dataset.change", clock.now())


def restore_version(actor: Actor, dataset: Dataset, number: int) -> dict[str, Any]:
    """Make version `number` of a locked dataset the newest: a new version that says the same and, since it keeps
    that version's pins, makes the same rows; commits. Error: not_found."""
    old = version_of(dataset, number)
    moment = clock.now()
    return _save(actor, dataset, old.spec, old.pins, "dataset.restore_version", moment, restored=number)


def refresh_references(actor: Actor, dataset: Dataset) -> dict[str, Any]:
    """Pin the newest versions of a locked dataset's templates; commits. Where they are pinned already, nothing
    changes. Error: validation_error for a template that is gone."""
    newest = version_of(dataset)
    ready, pins = _checked(actor, {key: newest.spec[key] for key in CHANGEABLE})
    if pins == newest.pins:
        db.session.commit()
        return as_json(dataset, newest)
    return _save(actor, dataset, ready, pins, "dataset.refresh", clock.now())


def delete(actor: Actor, dataset: Dataset) -> dict[str, Any]:
    """Soft-delete a locked dataset; commits. Returns it as the API shows it."""
    tenancy.soft_delete(actor, dataset)
    return show(dataset)


def restore(actor: Actor, dataset: Dataset) -> dict[str, Any]:
    """Take a deletion back within 30 days; commits. Returns the dataset as the API shows it. Error: not_found."""
    tenancy.restore(actor, dataset)
    return show(dataset)


def known_templates(actor: Actor, spec: Spec, scope: str | None = None) -> dict[str, Template]:
    """The templates that a dataset names, by id: those that are there for the actor, with the right to do `scope`.

    Error: validation_error with a fault for each other one, and for each that is named twice.
    """
    wanted = [one["template_id"] for one in spec["templates"]]
    statement = select(Template).where(
        Template.id.in_([one for one in wanted if "\0" not in one]),
        Template.workspace_id == actor.workspace_id,
        Template.deleted_at.is_(None),
    )
    found = {one.id: one for one in db.session.scalars(statement) if _may(actor, one, scope)}
    faults = []
    for place, template_id in enumerate(wanted):
        path = f"templates[{place}].template_id"
        if template_id not in found:
            text = "There is no such template here."
            hint = "It may have been deleted: restore it, or take it out of the dataset."
            faults.append(Fault(path, "unknown_template", text, hint))
        elif template_id in wanted[:place]:
            text = f"templates[{wanted.index(template_id)}] is this template already."
            faults.append(Fault(path, "duplicate", text, "A dataset has each template once."))
    if faults:
        raise validation_error(faults)
    return found


def _may(actor: Actor, template: Template, scope: str | None) -> bool:
    there = actor.role_in(template.team_id) is not None
    return there and (scope is None or actor.can(scope, template.team_id))


def fields_of(numbers: Mapping[str, int]) -> relations.Templates:
    """The stored fields of some template versions (`{template id: number}`), in that order; what is gone is left
    out."""
    statement = select(TemplateVersion.template_id, TemplateVersion.number, TemplateVersion.spec).where(
        TemplateVersion.template_id.in_(list(numbers)), TemplateVersion.number.in_(set(numbers.values()))
    )
    found = {row[0]: row[2]["fields"] for row in db.session.execute(statement) if numbers[row[0]] == row[1]}
    return {one: found[one] for one in numbers if one in found}


def _tables(templates: Sequence[Any]) -> list[dict[str, Any]]:
    return [{key: one.get(key) for key in ("template_id", "count", "name")} for one in templates]


def _checked(actor: Actor, spec: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A spec as it is stored, and its pins. `validation_error` with every fault."""
    found = known_templates(actor, spec)
    pinned = {one["template_id"]: found[one["template_id"]].version for one in spec["templates"]}
    names = {one["template_id"]: one["name"] or found[one["template_id"]].name for one in spec["templates"]}
    return {**spec, "warnings": _warnings(names, fields_of(pinned))}, {"templates": pinned}


def _warnings(names: Mapping[str, str], fields: relations.Templates) -> list[dict[str, str]]:
    """What will surprise: a reference to a template that is not among the tables."""
    places = {one: place for place, one in enumerate(names)}
    told = []
    for edge in relations.edges(fields):
        if edge.parent_template_id in names:
            continue
        path = f"templates[{places[edge.child_template_id]}]"
        text = f"{names[edge.child_template_id]}.{edge.child_field} refers to a template that is not in this dataset."
        told.append(
            Fault(path, "outside_reference", text, "Add that template, so that its rows are there too.")
        )
    return [fault.as_dict() for fault in told]


def _save(
    actor: Actor,
    dataset: Dataset,
    spec: dict[str, Any],
    pins: dict[str, Any],
    action: str,
    moment: datetime,
    **details: Any,
) -> dict[str, Any]:
    dataset.version = 1 if action == "dataset.create" else dataset.version + 1
    dataset.name, dataset.description = spec["name"], spec["description"]
    dataset.table_count = len(spec["templates"])
    dataset.updated_at = moment
    db.session.flush()
    version = DatasetVersion(
        dataset_id=dataset.id,
        number=dataset.version,
        spec=spec,
        pins=pins,
        created_by=actor.user_id,
        created_at=moment,
    )
    db.session.add(version)
    audit.record(actor, action, dataset, join=True, name=dataset.name, version=dataset.version, **details)
    db.session.commit()
    return as_json(dataset, version)
