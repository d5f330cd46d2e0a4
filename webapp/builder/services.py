"""Drafts of templates: their revisions, their rows, and the differences between versions.

Drafts on the server save themselves, and every change can be undone. A draft is a stack of revisions, each of which is
the whole template as a user would send it (`spec`: `name`, `fields` and the other attributes that clients can set).
`position` points to the revision that the user sees: undo and redo move it, a change adds a revision after it and
removes those that could have been redone. The last `limits.DRAFT_REVISIONS` are kept, of a large template fewer.
Revisions count toward the JSON that a workspace stores.

A draft may have errors: in its rows, fields with errors stay empty, and the others keep their values.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

import orjson
from sqlalchemy import delete, select

from webapp import clock, ids, limits
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.builder.models import DraftRevision, TemplateDraft
from webapp.engine.spec import ELEMENT
from webapp.engine.types.registry import find
from webapp.errors import ApiError, Fault
from webapp.extensions import db
from webapp.generation.services import generate
from webapp.generation.services.generate import Generation
from webapp.metering import stored_json
from webapp.row_templates.models import Template
from webapp.row_templates.schemas import DraftInput
from webapp.row_templates.services import templates
from webapp.row_templates.services.field_ids import StoredField, children

_HEADER_KEYS = ("name", "description", "quantity", "locale", "anchor", "source", "invalid")
_DERIVED = frozenset({"id", "label"})  # given by the service, or following from the type


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the differences from `old` to `new`, two stored specs.

    `template`: head attributes that differ, `{key: {from, to}}`. `fields.added` and `fields.removed`: items
    `{id, path, field}`; fields nested in an added or removed field are not listed again. `fields.changed`: items
    `{id, path, name, changes: {key: {from, to}}}`, options by `options.<name>`. `fields.moved`: items
    `{id, path, from, to}`, places counted from 0 among the fields that both have at that level. Fields are the
    same when their ids are; a field that changed levels is removed and added.
    """
    out: dict[str, list[dict[str, Any]]] = {"added": [], "removed": [], "changed": [], "moved": []}
    _compare_level(old["fields"], new["fields"], "", out)
    head = {
        key: {"from": old.get(key), "to": new.get(key)}
        for key in _HEADER_KEYS
        if old.get(key) != new.get(key)
    }
    return {"template": head, "fields": out}


def _compare_level(
    old: Sequence[StoredField],
    new: Sequence[StoredField],
    prefix: str,
    result: dict[str, list[dict[str, Any]]],
) -> None:
    before = {field["id"]: field for field in old}
    after = {field["id"]: field for field in new}
    for kind, fields, other in (("removed", old, after), ("added", new, before)):
        result[kind] += [
            {"id": field["id"], "path": prefix + field["name"], "field": dict(field)}
            for field in fields
            if field["id"] not in other
        ]
    positions = {key: index for index, key in enumerate(key for key in before if key in after)}
    for index, key in enumerate(key for key in after if key in before):
        path = prefix + after[key]["name"]
        if positions[key] != index:
            result["moved"].append({"id": key, "path": path, "from": positions[key], "to": index})
        changes = _changes(before[key], after[key])
        if changes:
            result["changed"].append(
                {"id": key, "path": path, "name": after[key]["name"], "changes": changes}
            )
        _compare_level(children(before[key]), children(after[key]), f"{path}.", result)


def _changes(old: StoredField, new: StoredField) -> dict[str, dict[str, Any]]:
    found = {
        key: {"from": old.get(key), "to": new.get(key)}
        for key in dict.fromkeys([*old, *new])
        if key not in _DERIVED and key != "options" and old.get(key) != new.get(key)
    }
    before, after = old["options"], new["options"]
    for key in dict.fromkeys([*before, *after]):
        if key not in ("fields", ELEMENT) and before.get(key) != after.get(key):
            found[f"options.{key}"] = {"from": before.get(key), "to": after.get(key)}
    return found


def changed_cells(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
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


def diff_versions(template: Template, old: int, new: int, seed: str | None = None) -> dict[str, Any]:
    """Return the differences from version `old` to `new`; with a `seed`, also of their previews under it, cell by cell.

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
        out["preview"] = {"seed": seed, "from": rows[0], "to": rows[1], "cells": changed_cells(*rows)}
    return out


# --- Drafts -------------------------------------------------------------------------------------------------

Spec = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DraftState:
    """What the page says about a draft. `undo` and `redo` describe the next step; None if there is none."""

    dirty: bool
    undo: str | None
    redo: str | None
    at: str | None


def get(actor: Actor, draft_id: str, *, lock: bool = False) -> TemplateDraft:
    """Return a draft of the actor; no other user sees it. Raises not_found."""
    found = db.session.get(TemplateDraft, draft_id, with_for_update=lock)
    if found is None or found.user_id != actor.user_id or found.workspace_id != actor.workspace_id:
        raise tenancy.not_found("draft", draft_id)
    return found


def find_draft(actor: Actor, template: Template, *, lock: bool = False) -> TemplateDraft | None:
    """Return the actor's draft of a saved template, if it has one."""
    statement = select(TemplateDraft).where(
        TemplateDraft.user_id == actor.user_id, TemplateDraft.template_id == template.id
    )
    return db.session.scalar(statement.with_for_update() if lock else statement)


def newest_unsaved_draft(actor: Actor) -> TemplateDraft | None:
    """Return the draft of a template that is not saved yet, which the actor changed last in the present project."""
    return db.session.scalar(
        select(TemplateDraft)
        .where(TemplateDraft.user_id == actor.user_id, TemplateDraft.project_id == actor.project_id)
        .where(TemplateDraft.template_id.is_(None), TemplateDraft.position > 0)
        .order_by(TemplateDraft.updated_at.desc())
        .limit(1)
    )


def create_draft(actor: Actor, spec: Spec, template: Template | None = None) -> TemplateDraft:
    """Start a draft of a saved template or of a new one; `spec` is its revision 0. Of a user who has MAX_DRAFTS, the
    draft that was changed longest ago is deleted. Does not commit. Error: quota_exceeded."""
    stored_json.reserve(actor, spec)
    oldest = (
        select(TemplateDraft.id)
        .where(TemplateDraft.user_id == actor.user_id, TemplateDraft.workspace_id == actor.workspace_id)
        .order_by(TemplateDraft.updated_at.desc(), TemplateDraft.id.desc())
        .offset(limits.MAX_DRAFTS - 1)
    )
    for old in db.session.scalars(oldest).all():
        db.session.execute(delete(TemplateDraft).where(TemplateDraft.id == old))
    scope = (
        {
            "workspace_id": template.workspace_id,
            "project_id": template.project_id,
            "team_id": template.team_id,
        }
        if template is not None
        else tenancy.current_scope(actor)
    )
    moment = clock.now()
    draft = TemplateDraft(
        id=ids.new("drf"),
        user_id=actor.user_id,
        template_id=template.id if template is not None else None,
        loaded_version=template.version if template is not None else None,
        position=0,
        saved_position=0 if template is not None else None,
        created_at=moment,
        updated_at=moment,
        **scope,
    )
    db.session.add(draft)
    db.session.flush()
    _add_revision(draft, 0, spec, "", "", moment)
    return draft


def _add_revision(
    draft: TemplateDraft, number: int, spec: Spec, label: str, key: str, moment: datetime
) -> None:
    db.session.add(
        DraftRevision(
            draft_id=draft.id,
            number=number,
            label=label[: limits.MAX_NAME_CHARS],
            key=key[: limits.MAX_NAME_CHARS],
            spec=spec,
            created_at=moment,
        )
    )


def _revision(draft: TemplateDraft, number: int) -> DraftRevision | None:
    return db.session.scalar(
        select(DraftRevision).where(DraftRevision.draft_id == draft.id, DraftRevision.number == number)
    )


def spec_of(draft: TemplateDraft) -> Spec:
    """Return the draft as the user sees it. The caller may change it."""
    found = _revision(draft, draft.position)
    assert found is not None  # a draft has at least the revision it began with
    return deepcopy(found.spec)


def change(actor: Actor, draft: TemplateDraft, spec: Spec, label: str, key: str = "") -> bool:
    """Add a revision. Return False if nothing has changed. Changes with the same `key` shortly after each other are
    one revision. Does not commit. Error: quota_exceeded."""
    current = _revision(draft, draft.position)
    assert current is not None
    if current.spec == spec:
        return False
    stored_json.reserve(actor, spec)
    moment = clock.now()
    later = DraftRevision.number > draft.position
    db.session.execute(delete(DraftRevision).where(DraftRevision.draft_id == draft.id, later))
    typing = moment - current.created_at < timedelta(seconds=limits.DRAFT_TYPING_SECONDS)
    if key and key == current.key and typing and draft.position != draft.saved_position:
        current.spec, current.created_at = spec, moment
    else:
        if draft.saved_position is not None and draft.saved_position > draft.position:
            draft.saved_position = -1  # the saved state can no longer be reached by redo
        draft.position += 1
        _add_revision(draft, draft.position, spec, label, key, moment)
        revisions = min(
            limits.DRAFT_REVISIONS, max(1, limits.DRAFT_BYTES // len(orjson.dumps(spec, default=str)))
        )
        outdated = DraftRevision.number < draft.position - revisions
        db.session.execute(delete(DraftRevision).where(DraftRevision.draft_id == draft.id, outdated))
    draft.updated_at = moment
    return True


def undo_or_redo(draft: TemplateDraft, by: int) -> str | None:
    """Undo (-1) or redo (1) one change. Return its label; None if there is no change. Does not commit."""
    if _revision(draft, draft.position + by) is None:
        return None
    undone = _revision(draft, draft.position if by < 0 else draft.position + 1)
    draft.position += by
    draft.updated_at = clock.now()
    return undone.label if undone is not None else None


def mark_saved(draft: TemplateDraft, template_id: str, version: int, spec: Spec) -> None:
    """Record that the current revision is saved as a version of a template. Does not commit."""
    current = _revision(draft, draft.position)
    assert current is not None
    current.spec, current.key = spec, ""
    draft.template_id, draft.loaded_version, draft.saved_position = template_id, version, draft.position
    draft.updated_at = clock.now()


def discard(draft: TemplateDraft) -> None:
    """Delete a draft. Does not commit."""
    db.session.delete(draft)


def describe_state(draft: TemplateDraft | None) -> DraftState:
    """Return the state of a draft for the page; None stands for a page without changes."""
    if draft is None:
        return DraftState(False, None, None, None)
    back, ahead = _revision(draft, draft.position), _revision(draft, draft.position + 1)
    can_undo = _revision(draft, draft.position - 1) is not None
    return DraftState(
        is_dirty(draft),
        back.label if can_undo and back is not None else None,
        ahead.label if ahead is not None else None,
        clock.to_text(draft.updated_at),
    )


def is_dirty(draft: TemplateDraft) -> bool:
    """Return whether the draft has changes that are not saved."""
    return draft.position != draft.saved_position


def submitted_spec(template: Template, number: int | None = None) -> Spec:
    """Return a version of a template as a client would send it to create the same version again."""
    spec = templates.version_of(template, number).spec
    return {key: deepcopy(spec[key]) for key in templates.CHANGEABLE if spec.get(key) is not None}


# --- Rows of a draft ----------------------------------------------------------------------------------------

Result = TypeVar("Result")
ParseDraft = Callable[[Mapping[str, Any]], DraftInput]
"""Parse the input of a generate call. Raises validation_error."""

_PLACEHOLDER: Final = {"type": "number", "options": {}}
_PLACEHOLDER_ATTEMPTS: Final = 3  # ways to replace a field with errors by one that has no values
# Fields that are too large together have their errors one after the other, each after rows were generated.
_MAX_ROUNDS: Final = 20


@dataclass(slots=True)
class DraftSample:
    """Rows of a draft. `faults` are the errors of its fields; `waiting` are fields of the first level, by id, that have
    no errors but depend on such a field, with its name. `empty` are the ids of those without values. `error` says why
    there are no rows at all."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    waiting: dict[str, str] = field(default_factory=dict)
    empty: frozenset[str] = frozenset()
    warnings: list[dict[str, Any]] = field(default_factory=list)
    bad: list[dict[str, Any]] = field(default_factory=list)
    leaks: list[dict[str, Any]] | None = None
    seed: str = ""
    error: str = ""
    milliseconds: float = 0.0


def sample(
    actor: Actor,
    parse: ParseDraft,
    draft: Mapping[str, Any],
    template_id: str,
    *,
    seed: str,
    offset: int = 0,
    count: int = limits.BUILDER_ROWS,
    fetch: bool = False,
    timer: Callable[[], float] = time.perf_counter,
) -> DraftSample:
    """Return rows of a draft. The first ones are a preview, which is not counted toward the quota; others are counted.

    `parse` makes the input of a generate call from a JSON object. `template_id` is the id of the saved template. Errors
    that are not errors of fields are in `DraftSample.error`.
    """
    began = timer()
    result = DraftSample()

    def preview_first_rows(body: dict[str, Any]) -> None:
        preview = generate.preview_draft(actor, parse(body), fetch, template_id, count)
        result.rows = orjson.loads(preview.rows)
        result.warnings, result.bad, result.seed = preview.warnings, preview.invalid_cells or [], preview.seed

    def generate_later_rows(body: dict[str, Any]) -> None:
        request = {**body, "offset": offset, "count": count, "format": "json"}
        generation = generate.generate_draft(actor, parse(request), template_id=template_id)
        try:
            raw = generation.body if isinstance(generation.body, bytes) else generation.output.read()
        finally:
            if not isinstance(generation.body, bytes):
                generation.body.close()
        result.rows, result.bad = orjson.loads(raw), generation.recipe.invalid_cells()
        result.seed, result.leaks = generation.recipe.pins.seed, generation.leaks

    try:
        call_with_placeholders(draft, seed, generate_later_rows if offset else preview_first_rows, result)
    except ApiError as error:
        if error.status >= 500:
            raise
        result.error = error.message
    result.milliseconds = (timer() - began) * 1000
    return result


def generate_file(
    actor: Actor,
    parse: ParseDraft,
    draft: Mapping[str, Any],
    template_id: str,
    *,
    seed: str,
    more: Mapping[str, Any],
) -> Generation:
    """Generate a file from a draft; fields with errors are empty. `more` are further attributes of the generate call:
    `count`, `format` and so on. Raises what `generate.generate_draft` raises."""
    return call_with_placeholders(
        draft,
        seed,
        lambda body: generate.generate_draft(actor, parse({**body, **more}), template_id=template_id),
        DraftSample(),
    )


def call_with_placeholders(
    draft: Mapping[str, Any],
    seed: str,
    function: Callable[[dict[str, Any]], Result],
    draft_sample: DraftSample,
) -> Result:
    """Call `function` with a draft in which fields with errors are replaced by fields without values. The errors, and
    the fields that have no values because of them, are added to `draft_sample`. Raises validation_error if the errors
    are not errors of fields, or if finding them takes too many rounds or too long."""
    rounds, began = 0, time.thread_time()
    fields = [dict(item) if isinstance(item, Mapping) else item for item in draft.get("fields", ())]
    tried: dict[int, int] = {}
    while True:
        body = {key: value for key, value in draft.items() if value not in (None, "")}
        body |= {"name": body.get("name") or "rows", "fields": fields}
        if seed:
            body["seed"] = seed
        try:
            result = function(body)
        except ApiError as error:
            if error.code != "validation_error":
                raise
            faults = faults_of(error)
            places = {place for fault in faults if (place := _field_index(fault.path)) is not None}
            new = {
                place
                for place in places
                if tried.get(place, 0) < _PLACEHOLDER_ATTEMPTS and place < len(fields)
            }
            rounds += 1
            if not new or rounds > _MAX_ROUNDS or time.thread_time() - began > limits.BUILDER_SECONDS:
                raise
            _record_faults(draft_sample, faults, tried, draft["fields"])
            for place in new:
                tried[place] = tried.get(place, 0) + 1
                fields[place] = _placeholder(draft["fields"][place], place, tried[place])
            continue
        draft_sample.empty = frozenset(_field_id(draft["fields"][place]) for place in tried)
        return result


def _record_faults(
    found: DraftSample, faults: list[Fault], tried: Mapping[int, int], fields: Sequence[Any]
) -> None:
    if not tried:
        found.faults = faults
        return
    causes = ", ".join(
        str(fields[index].get("name", "")) for index in tried if isinstance(fields[index], Mapping)
    )
    for fault in faults:
        index = _field_index(fault.path)
        if index is not None and index not in tried:
            found.waiting[_field_id(fields[index])] = causes


def _placeholder(field: Any, index: int, attempt: int) -> dict[str, Any]:
    """Return a field without values that replaces one with errors: of the same type, if it needs no options, so that
    formulas that read it work; else a number; else, if the name is invalid, with another name."""
    properties = field if isinstance(field, Mapping) else {}
    kind = find(str(properties.get("type", "")))
    placeholder = {"name": properties.get("name"), "percent_blank": 100, **_PLACEHOLDER}
    if isinstance(properties.get("id"), str):
        placeholder["id"] = properties["id"]
    if attempt == 1 and kind is not None:
        placeholder["type"] = kind.name
    if (
        attempt == _PLACEHOLDER_ATTEMPTS
        or not isinstance(placeholder["name"], str)
        or not placeholder["name"]
    ):
        placeholder |= {"name": f"field {index + 1} "}
        placeholder.pop("id", None)
    return placeholder


def _field_index(path: str) -> int | None:
    """Return the number of the field of the first level that an error's path leads to."""
    number = path.removeprefix("fields[").partition("]")[0]
    return int(number) if path.startswith("fields[") and number.isdecimal() else None


def _field_id(field: Any) -> str:
    return str(field.get("id", "")) if isinstance(field, Mapping) else ""


def faults_of(error: ApiError) -> list[Fault]:
    """Return the errors in a `validation_error`."""
    return [
        Fault(item["path"], item["code"], item["message"], item.get("hint"), item.get("position"))
        for item in error.details["fields"]
    ]
