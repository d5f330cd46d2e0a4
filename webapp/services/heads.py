"""What must be known of a template before its rows are made: read by one statement, or remembered.

A head that was read for a caller who is remembered (`identity.Entry`) is remembered under the same epoch of the
workspace. The question to Redis that lets the caller in says whether that epoch still holds, and every change of a
template moves it on before its commit, so remembering costs nothing and forgetting is immediate: see rights.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, cast

from flask import current_app
from sqlalchemy import bindparam, event, select
from sqlalchemy.orm import object_session

from webapp import ids, limits
from webapp.models import Template
from webapp.services import rights, tenancy
from webapp.services.actors import Actor, require
from webapp.services.quick import Quick

_T = Template.__table__.c
_HEAD: Final = Quick(
    select(_T.version, _T.project_id, _T.team_id).where(
        _T.id == bindparam("id"), _T.workspace_id == bindparam("workspace"), _T.deleted_at.is_(None)
    )
)
_MEMORY: Final = "rowsmith.heads"


@dataclass(frozen=True, slots=True)
class Head:
    """One template's head."""

    id: str
    version: int
    project_id: str
    team_id: str


def of(actor: Actor, template_id: str, scope: str) -> Head:
    """As `tenancy.get`, without the objects: this is asked for every call of generate. Errors: not_found,
    forbidden."""
    found = _found(actor, template_id)
    if found is None or actor.role_in(found.team_id) is None:
        raise tenancy.not_found("template", template_id)
    require(actor, scope, found.team_id)
    return found


def _found(actor: Actor, template_id: str) -> Head | None:
    epoch = actor.entry.epoch if actor.entry is not None and actor.entry.passage is None else None
    memory = cast(dict[tuple[str, str], tuple[str, Head]], current_app.extensions.setdefault(_MEMORY, {}))
    place = (actor.workspace_id, template_id)
    if epoch is not None and (kept := memory.get(place)) is not None and kept[0] == epoch:
        return kept[1]
    row = _HEAD.row(id=template_id, workspace=actor.workspace_id) if ids.is_id(template_id, "tpl") else None
    if row is None:
        return None
    found = Head(template_id, *row)
    if epoch is not None:
        if len(memory) >= limits.IDENTITY_CACHE_ENTRIES:
            memory.clear()  # simple, and rare: it is only a memory
        memory[place] = (epoch, found)
    return found


@event.listens_for(Template, "after_update")
@event.listens_for(Template, "after_delete")
def _changed(_mapper: Any, _connection: Any, template: Template) -> None:
    """A change of a head is announced inside the transaction that makes it. A new one was remembered by nobody."""
    session = object_session(template)
    if session is not None:
        rights.changing(session, template.workspace_id)
