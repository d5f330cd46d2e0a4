"""Drafts of templates on the server: they save themselves, and every change can be undone.

A draft is a stack of revisions, each of which is the whole template as a user would send it (`spec`: `name`, `fields`
and the other attributes that clients can set). `position` points to the revision that the user sees: undo and redo move
it, a change adds a revision after it and removes those that could have been redone. The last
`limits.DRAFT_REVISIONS` are kept, of a large template fewer. Revisions count toward the JSON that a workspace stores.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
from sqlalchemy import delete, select

from webapp import clock, ids, limits
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.builder.models import DraftRevision, TemplateDraft
from webapp.extensions import db
from webapp.metering import stored_json
from webapp.row_templates.models import Template
from webapp.row_templates.services import templates

Spec = dict[str, Any]


@dataclass(frozen=True, slots=True)
class State:
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


def of_template(actor: Actor, template: Template, *, lock: bool = False) -> TemplateDraft | None:
    """Return the actor's draft of a saved template, if it has one."""
    statement = select(TemplateDraft).where(
        TemplateDraft.user_id == actor.user_id, TemplateDraft.template_id == template.id
    )
    return db.session.scalar(statement.with_for_update() if lock else statement)


def newest(actor: Actor) -> TemplateDraft | None:
    """Return the draft of a template that is not saved yet, which the actor changed last in the present project."""
    return db.session.scalar(
        select(TemplateDraft)
        .where(TemplateDraft.user_id == actor.user_id, TemplateDraft.project_id == actor.project_id)
        .where(TemplateDraft.template_id.is_(None), TemplateDraft.position > 0)
        .order_by(TemplateDraft.updated_at.desc())
        .limit(1)
    )


def begin(actor: Actor, spec: Spec, template: Template | None = None) -> TemplateDraft:
    """Start a draft of a saved template or of a new one; `spec` is its revision 0. Of a user who has MAX_DRAFTS, the
    draft that was changed longest ago is deleted. Does not commit. Error: quota_exceeded."""
    stored_json.take(actor, spec)
    oldest = (
        select(TemplateDraft.id)
        .where(TemplateDraft.user_id == actor.user_id, TemplateDraft.workspace_id == actor.workspace_id)
        .order_by(TemplateDraft.updated_at.desc(), TemplateDraft.id.desc())
        .offset(limits.MAX_DRAFTS - 1)
    )
    for old in db.session.scalars(oldest).all():
        db.session.execute(delete(TemplateDraft).where(TemplateDraft.id == old))
    place = (
        {
            "workspace_id": template.workspace_id,
            "project_id": template.project_id,
            "team_id": template.team_id,
        }
        if template is not None
        else tenancy.here(actor)
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
        **place,
    )
    db.session.add(draft)
    db.session.flush()
    _add(draft, 0, spec, "", "", moment)
    return draft


def _add(draft: TemplateDraft, number: int, spec: Spec, label: str, key: str, moment: datetime) -> None:
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
    stored_json.take(actor, spec)
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
        _add(draft, draft.position, spec, label, key, moment)
        kept = min(limits.DRAFT_REVISIONS, max(1, limits.DRAFT_BYTES // len(orjson.dumps(spec, default=str))))
        first = DraftRevision.number < draft.position - kept
        db.session.execute(delete(DraftRevision).where(DraftRevision.draft_id == draft.id, first))
    draft.updated_at = moment
    return True


def step(draft: TemplateDraft, by: int) -> str | None:
    """Undo (-1) or redo (1) one change. Return what the change was; None if there is none. Does not commit."""
    if _revision(draft, draft.position + by) is None:
        return None
    undone = _revision(draft, draft.position if by < 0 else draft.position + 1)
    draft.position += by
    draft.updated_at = clock.now()
    return undone.label if undone is not None else None


def saved(draft: TemplateDraft, template_id: str, version: int, spec: Spec) -> None:
    """Note that the present revision is saved as a version of a template. Does not commit."""
    current = _revision(draft, draft.position)
    assert current is not None
    current.spec, current.key = spec, ""
    draft.template_id, draft.loaded_version, draft.saved_position = template_id, version, draft.position
    draft.updated_at = clock.now()


def discard(draft: TemplateDraft) -> None:
    """Delete a draft. Does not commit."""
    db.session.delete(draft)


def state(draft: TemplateDraft | None) -> State:
    """Return what the page says about a draft; None is a page that nothing was changed on."""
    if draft is None:
        return State(False, None, None, None)
    back, ahead = _revision(draft, draft.position), _revision(draft, draft.position + 1)
    can_undo = _revision(draft, draft.position - 1) is not None
    return State(
        is_dirty(draft),
        back.label if can_undo and back is not None else None,
        ahead.label if ahead is not None else None,
        clock.to_text(draft.updated_at),
    )


def is_dirty(draft: TemplateDraft) -> bool:
    """Return whether the draft has changes that are not saved."""
    return draft.position != draft.saved_position


def as_sent(template: Template, number: int | None = None) -> Spec:
    """Return a version of a template as a client would send it to create the same version again."""
    spec = templates.version_of(template, number).spec
    return {key: deepcopy(spec[key]) for key in templates.CHANGEABLE if spec.get(key) is not None}
