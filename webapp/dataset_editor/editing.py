"""Changes of a dataset on its page. Each is saved immediately as a version, which the page can undo.

A version that was saved here has a `step`: `{label, undo, redo, templates}`. `undo` and `redo` are the numbers of the
versions that Undo and Redo restore (null: none), so the steps survive a reload and are the same for all users.
`templates` are the templates that the step changed, `{id: [version before, version after]}`: undoing the step restores
their earlier version as well, unless they have been changed since. A version that was saved by the API has no step;
undoing it restores the version before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final, Literal

import orjson
from pydantic import ValidationError

from webapp import limits
from webapp.access.actors import Actor
from webapp.dataset_editor import overview
from webapp.datasets.inputs import DatasetPatch
from webapp.datasets.models import Dataset, DatasetVersion
from webapp.datasets.services import datasets
from webapp.engine.types.relations import Cardinality
from webapp.errors import ApiError, Fault, pydantic_message, validation_error
from webapp.extensions import db
from webapp.generation.services import rows as generation_rows
from webapp.row_templates.services import field_ids, relations, templates
from webapp.row_templates.services.relations import Edge
from webapp.web.inputs import parse

Kind = Literal["any", "one", "range"]
SETTINGS: Final = ("name", "description", "seed", "anchor")
_GROUPING: Final = re.compile(r"[\s,.'’_]")


@dataclass(frozen=True, slots=True)
class Steps:
    """What can be undone and redone from a version: the label of each, "" if there is nothing."""

    undo: str
    redo: str


def steps(dataset: Dataset, version: DatasetVersion) -> Steps:
    """Return what can be undone and redone from the newest version."""
    step = version.step or {}
    undo_number, redo_number = _undo_number(version), step.get("redo")
    redo = datasets.version_of(dataset, redo_number).step if redo_number else None
    return Steps(
        str(step.get("label") or "last change") if undo_number else "",
        str((redo or {}).get("label", "change")) if redo_number else "",
    )


def _undo_number(version: DatasetVersion) -> int | None:
    if version.step is None:
        return version.number - 1 or None
    number: int | None = version.step["undo"]
    return number


def undo(actor: Actor, dataset: Dataset) -> dict[str, Any] | None:
    """Undo the last step of a locked dataset; commits. Return the dataset, None if there is nothing to undo."""
    current_version = datasets.version_of(dataset)
    target_number = _undo_number(current_version)
    if target_number is None:
        return None
    step, target = current_version.step or {}, datasets.version_of(dataset, target_number)
    changed = {key: (after, before) for key, (before, after) in step.get("templates", {}).items()}
    new_step = {
        "label": (target.step or {}).get("label", ""),
        "undo": _undo_number(target),
        "redo": current_version.number,
    }
    return _restore(
        actor, dataset, target, changed, {**new_step, "templates": (target.step or {}).get("templates", {})}
    )


def redo(actor: Actor, dataset: Dataset) -> dict[str, Any] | None:
    """Redo the step of a locked dataset that was undone last; commits. Return the dataset, None if there is none."""
    current = datasets.version_of(dataset)
    forward = (current.step or {}).get("redo")
    if not forward:
        return None
    target = datasets.version_of(dataset, forward)
    step = target.step or {}
    changed = {key: (before, after) for key, (before, after) in step.get("templates", {}).items()}
    return _restore(actor, dataset, target, changed, {**step, "undo": current.number})


def _restore(
    actor: Actor,
    dataset: Dataset,
    target: DatasetVersion,
    changed: Mapping[str, tuple[int, int]],
    step: dict[str, Any],
) -> dict[str, Any]:
    """Restore a version of a dataset, and of the templates that were changed with it: `changed` are the versions whose
    fields they have now, and those whose fields they get."""
    number, pinned, step_templates = (
        target.number,
        dict(target.pins["templates"]),
        dict(step.get("templates", {})),
    )
    for template_id, (now, restored) in changed.items():
        if template_id not in pinned:
            continue
        template = templates.get(actor, template_id, "write", lock=True)
        is_unchanged = (
            templates.version_of(template).spec["fields"]
            == templates.version_of(template, now).spec["fields"]
        )
        if is_unchanged and now != restored:
            pinned[template_id] = templates.restore_version(actor, template, restored)["version"]
    dataset = datasets.get(actor, dataset.id, "write", lock=True)
    return datasets.KIND.restore_version(
        actor, dataset, number, {"templates": pinned}, {"step": {**step, "templates": step_templates}}
    )


def _save_change(
    actor: Actor,
    dataset: Dataset,
    label: str,
    changes: Mapping[str, Any],
    changed: Mapping[str, Sequence[int]] | None = None,
) -> dict[str, Any]:
    step = {
        "label": label[: limits.MAX_NAME_CHARS],
        "undo": dataset.version,
        "redo": None,
        "templates": dict(changed or {}),
    }
    return datasets.change(actor, dataset, changes, {"step": step})


# --- Values ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SaveResult:
    """The result of a change: the dataset as the API shows it, None if nothing changed; and errors by input."""

    dataset: dict[str, Any] | None
    faults: dict[str, str]


def set_values(actor: Actor, dataset: Dataset, inputs: Mapping[str, str]) -> SaveResult:
    """Set values of a locked dataset from inputs; commits. Inputs are `name`, `description`, `seed`, `anchor`,
    `count:<template id>` and `as:<template id>`. What is valid is saved, the rest is reported."""
    current = datasets.version_of(dataset).spec
    changes: dict[str, Any] = {}
    sources: dict[str, str] = {}  # the input that a fault of the model belongs to
    faults: dict[str, str] = {}
    listed = [dict(template) for template in current["templates"]]
    positions = {item["template_id"]: position for position, item in enumerate(listed)}
    labels = []
    for name, text in inputs.items():
        setting, _, template_id = name.partition(":")
        if setting in SETTINGS and not template_id:
            value: Any = text.strip() or (None if setting in ("seed", "anchor") else "")
            if setting == "name" and not value:
                faults[name] = "Enter a name."
            elif setting == "seed" and value is None:
                continue  # an empty seed keeps the current one
            elif value != current[setting]:
                changes[setting], sources[setting] = value, name
                labels.append(setting.capitalize())
        elif setting in ("count", "as") and template_id in positions:
            position = positions[template_id]
            key = "count" if setting == "count" else "name"
            try:
                value = _parse_count(text) if setting == "count" else text.strip() or None
            except ValueError as error:
                faults[name] = str(error)
                continue
            if listed[position][key] != value:
                listed[position][key] = value
                changes["templates"], sources[f"templates[{position}].{key}"] = listed, name
                labels.append("Rows" if setting == "count" else "Name of a table")
    while changes:
        try:
            body = parse(DatasetPatch, orjson.loads(orjson.dumps(changes)), strict=False)
            break
        except ApiError as error:
            if error.code != "validation_error" or not _revert_invalid(
                error, changes, sources, current, faults
            ):
                raise
    if not changes:
        db.session.rollback()
        return SaveResult(None, faults)
    values = {key: value for key, value in body.model_dump(exclude_unset=True).items() if key in changes}
    if "templates" in values:
        values["templates"] = [table.model_dump() for table in body.templates]
    return SaveResult(_save_change(actor, dataset, ", ".join(dict.fromkeys(labels)), values), faults)


def _revert_invalid(
    error: ApiError,
    changes: dict[str, Any],
    sources: Mapping[str, str],
    current: Mapping[str, Any],
    faults: dict[str, str],
) -> bool:
    """Take back the changes that an error is about, and report them. Return whether there were any."""
    found = False
    for fault in error.details.get("fields", ()):
        if (name := sources.get(fault["path"])) is None or name in faults:
            continue
        faults[name], found = fault["message"], True
        setting, _, template_id = name.partition(":")
        if not template_id:
            changes.pop(setting, None)
            continue
        key = "count" if setting == "count" else "name"
        old = {table["template_id"]: table[key] for table in current["templates"]}
        for table in changes["templates"]:
            if table["template_id"] == template_id:
                table[key] = old[template_id]
    if "templates" in changes and changes["templates"] == current["templates"]:
        del changes["templates"]
    return found


def _parse_count(text: str) -> int | None:
    """Return a number of rows as people write it: `5,000`, `5 000`; None for an empty text. Error: ValueError."""
    digits = _GROUPING.sub("", text)
    if not digits:
        return None
    maximum = limits.ENTERPRISE_MAX.rows_per_generation
    if not digits.isdecimal() or not digits.isascii() or len(digits) > 12 or not 1 <= int(digits) <= maximum:
        raise ValueError(f"Enter a whole number from 1 to {maximum:,}.")
    return int(digits)


# --- Tables ---------------------------------------------------------------------------------------------------


def create(actor: Actor, name: str, template_ids: Sequence[str], with_parents: bool) -> dict[str, Any]:
    """Create a dataset of templates; commits. `with_parents`: also of the templates that they reference. Error:
    validation_error."""
    ids = list(dict.fromkeys(template_ids))
    if with_parents:
        ids = _add_parents(actor, ids)
    return datasets.create(
        actor, name=name, templates=[{"template_id": item, "count": None, "name": None} for item in ids]
    )


def add_tables(
    actor: Actor, dataset: Dataset, template_ids: Sequence[str], with_parents: bool = False
) -> dict[str, Any] | None:
    """Add templates to a locked dataset; commits. Error: validation_error."""
    listed = [dict(template) for template in datasets.version_of(dataset).spec["templates"]]
    existing = {item["template_id"] for item in listed}
    new = [template_id for template_id in dict.fromkeys(template_ids) if template_id not in existing]
    if with_parents:
        new = [parent for parent in _add_parents(actor, new) if parent not in existing]
    if not new:
        db.session.rollback()
        return None
    if len(listed) + len(new) > limits.MAX_DATASET_TABLES:
        text = f"A dataset can have at most {limits.MAX_DATASET_TABLES:,} tables."
        raise validation_error([Fault("templates", "too_many", text)])
    listed += [{"template_id": item, "count": None, "name": None} for item in new]
    return _save_change(actor, dataset, "Add table" if len(new) == 1 else "Add tables", {"templates": listed})


def _add_parents(actor: Actor, template_ids: Sequence[str]) -> list[str]:
    """Return templates and those that they reference, parents first."""
    found: dict[str, overview.Contents] = {}
    pending = list(template_ids)
    while pending and len(found) <= limits.MAX_DATASET_TABLES:
        templates_by_id = datasets.look_up_templates(actor, pending)[0]
        contents = overview.read_contents(
            {key: template.version for key, template in templates_by_id.items()}
        )
        found |= contents
        above = {edge.parent_template_id for content in contents.values() for edge in content.edges}
        pending = sorted(above - found.keys())
    edges = [edge for item in found.values() for edge in item.edges]
    return [
        *relations.sort_tables(list(found), edges).template_ids,
        *(template_id for template_id in template_ids if template_id not in found),
    ]


def remove_table(actor: Actor, dataset: Dataset, template_id: str) -> dict[str, Any] | None:
    """Remove a table from a locked dataset; commits. The last one stays. Error: validation_error."""
    listed = datasets.version_of(dataset).spec["templates"]
    remaining = [dict(item) for item in listed if item["template_id"] != template_id]
    if len(remaining) == len(listed):
        db.session.rollback()
        return None
    if not remaining:
        text = "A dataset must have at least one table. Add another table first, or delete the dataset."
        raise validation_error([Fault("templates", "too_few", text)])
    return _save_change(actor, dataset, "Remove table", {"templates": remaining})


def move_table(actor: Actor, dataset: Dataset, template_id: str, by: int) -> dict[str, Any] | None:
    """Move a table of a locked dataset up (-1) or down (1) in the list; commits."""
    listed = [dict(template) for template in datasets.version_of(dataset).spec["templates"]]
    index = next((index for index, item in enumerate(listed) if item["template_id"] == template_id), -1)
    if index < 0 or not 0 <= index + by < len(listed):
        db.session.rollback()
        return None
    listed[index], listed[index + by] = listed[index + by], listed[index]
    return _save_change(actor, dataset, "Move table", {"templates": listed})


# --- Relations ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Children:
    """How many rows a parent's row has: `any` number, at most `one`, or a `range`."""

    kind: Kind
    least: str = ""
    most: str = ""
    distribution: str = ""
    mean: str = ""

    def cardinality(self, before: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Return the cardinality of a reference; what the form does not have is kept from `before` if it still fits.
        Error: validation_error."""
        if self.kind != "range":
            return None
        faults, bounds = [], {}
        maximum = limits.MAX_ARRAY_PRODUCT
        for path, text, minimum in (("least", self.least, 0), ("most", self.most, 1)):
            digits = _GROUPING.sub("", text)
            if (
                digits.isdecimal()
                and digits.isascii()
                and len(digits) <= 12
                and minimum <= int(digits) <= maximum
            ):
                bounds[path] = int(digits)
            else:
                faults.append(Fault(path, "invalid", f"Enter a whole number from {minimum} to {maximum:,}."))
        if not faults and bounds["least"] > bounds["most"]:
            faults.append(Fault("most", "invalid", "Enter a number that is not below the minimum."))
        shape = self.distribution or "uniform"
        options: dict[str, Any] = {"min": bounds.get("least"), "max": bounds.get("most")}
        if shape in ("poisson", "geometric") and not self.mean.strip():
            faults.append(Fault("mean", "required", "Enter the average number of rows."))
        if faults:
            raise validation_error(faults)
        if shape != "uniform":
            options["distribution"] = shape
        if shape in ("poisson", "geometric"):
            options["mean"] = self.mean.strip()
        if shape == "zipf" and (before or {}).get("exponent") is not None:
            options["exponent"] = (before or {})["exponent"]
        if shape == "weights":
            options["weights"] = (before or {}).get("weights")
        try:
            checked = Cardinality.model_validate(options, strict=False)
        except ValidationError as error:
            text = " ".join(pydantic_message(item) for item in error.errors())
            path = "mean" if "mean" in text else "distribution" if "weight" in text else "most"
            raise validation_error([Fault(path, "invalid", f"{text[:1].upper()}{text[1:]}")]) from None
        stored: dict[str, Any] = checked.model_dump(mode="json", exclude_defaults=True)
        return {**stored, "min": checked.min, "max": checked.max}


def set_children(actor: Actor, dataset: Dataset, edge: Edge, children: Children) -> dict[str, Any] | None:
    """Set how many rows of a child table belong to a row of its parent; commits. The reference of the child's template
    is changed, which creates a version of the template. Errors: validation_error, forbidden."""
    child = edge.child_template_id

    def change(fields: list[dict[str, Any]]) -> None:
        field = _find_field(fields, edge.child_field)
        grouped = [
            member for member in fields if field.get("group") and member.get("group") == field["group"]
        ]
        members = [member for member in grouped if member["type"] == relations.REFERENCE] or [field]
        holder = next((member for member in members if member["options"].get("cardinality")), field)
        cardinality = children.cardinality(holder["options"].get("cardinality"))
        for member in members:
            member["options"].pop("cardinality", None)
        if cardinality is not None:
            holder["options"]["cardinality"] = cardinality
        field["unique"] = children.kind == "one"

    before = {
        template["template_id"]: template["count"]
        for template in datasets.version_of(dataset).spec["templates"]
    }[child]
    count: int | None = before
    if children.kind == "range":
        count = None  # the number of rows follows from the parents
    elif edge.cardinality and before is None:
        rows = overview.build_overview(actor, datasets.show(dataset)).by_id[child].rows
        count = max(1, rows) if rows is not None else None
    return _change_template(actor, dataset, child, change, "Rows per parent", {child: count})


def add_relation(
    actor: Actor, dataset: Dataset, child: str, parent: str, name: str, children: Children
) -> tuple[dict[str, Any] | None, str]:
    """Add a reference from one table of a dataset to another; commits. Return the dataset and the new field's name.
    Errors: validation_error, forbidden."""
    tables = overview.build_overview(actor, datasets.show(dataset)).tables
    names = {table.template_id: table.template_name for table in tables}
    key = next((table.key for table in tables if table.template_id == parent), None)
    if child not in names or parent not in names:
        raise validation_error([Fault("parent", "unknown_template", "Choose two tables of this dataset.")])
    cardinality = children.cardinality(None)
    field_name = name.strip() or f"{_singular(generation_rows.slug(names[parent]))}_id"

    def change(fields: list[dict[str, Any]]) -> None:
        nonlocal field_name
        taken, number, base = {item["name"] for item in fields}, 1, field_name
        while not name.strip() and field_name in taken:
            number += 1
            field_name = f"{base}_{number}"
        options: dict[str, Any] = {"template_id": parent}
        if child == parent:
            if not key:
                text = "Add a field whose values are unique to the template first, for example a row number."
                raise validation_error([Fault("parent", "no_key", text)])
            options = {"template_id": relations.SELF, "field": key}
        if cardinality is not None:
            options["cardinality"] = cardinality
        field = {"name": field_name, "type": relations.REFERENCE, "options": options}
        fields.append({**field, "unique": True} if children.kind == "one" else field)

    counts = {child: None} if children.kind == "range" else {}
    return _change_template(actor, dataset, child, change, "Add relation", counts), field_name


def remove_relation(actor: Actor, dataset: Dataset, edge: Edge) -> dict[str, Any] | None:
    """Remove the field of a relation from its template; commits. Errors: validation_error, forbidden."""

    def change(fields: list[dict[str, Any]]) -> None:
        parent_path, _, name = edge.child_field.rpartition(".")
        siblings = field_ids.children(_find_field(fields, parent_path)) if parent_path else fields
        siblings[:] = [sibling for sibling in siblings if sibling["name"] != name]  # type: ignore[index]

    return _change_template(actor, dataset, edge.child_template_id, change, "Remove relation", {})


def _change_template(
    actor: Actor,
    dataset: Dataset,
    template_id: str,
    change: Callable[[list[dict[str, Any]]], None],
    label: str,
    counts: Mapping[str, int | None],
) -> dict[str, Any] | None:
    """Change the fields of a template, and use its new version in the dataset, with other counts of tables."""
    dataset_id = dataset.id
    template = templates.get(actor, template_id, "write", lock=True)
    before = template.version
    fields = deepcopy(list(templates.version_of(template).spec["fields"]))
    change(fields)
    after = templates.change(actor, template, {"fields": fields})["version"]
    dataset = datasets.get(actor, dataset_id, "write", lock=True)
    listed = [
        {**item, "count": counts.get(item["template_id"], item["count"])}
        for item in datasets.version_of(dataset).spec["templates"]
    ]
    return _save_change(actor, dataset, label, {"templates": listed}, {template_id: [before, after]})


def _find_field(fields: Sequence[dict[str, Any]], path: str) -> dict[str, Any]:
    found = next((item for at, item in relations.walk(fields) if at == path), None)
    if found is None:
        text = f"The newest version of the template has no field {path}."
        raise validation_error(
            [Fault("relation", "unknown_field", text, "Use the newest versions of the templates.")]
        )
    return found  # type: ignore[return-value]


def _singular(plural: str) -> str:
    if plural.endswith("ies") and len(plural) > 4:
        return f"{plural[:-3]}y"
    return plural[:-1] if plural.endswith("s") and not plural.endswith("ss") and len(plural) > 2 else plural
