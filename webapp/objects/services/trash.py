"""The trash: deleted objects of all kinds that can be restored, with the user who deleted them and their expiry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from sqlalchemy import Row, String, and_, false, func, literal, null, or_, select, union_all

from webapp import clock, limits, pagination
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.access.models import Project, Team, User
from webapp.audit.models import AuditEntry
from webapp.connections.models import Connection, Endpoint
from webapp.datasets.models import Dataset
from webapp.extensions import db
from webapp.files.models import WorkspaceFile
from webapp.files.services import file_store
from webapp.notifications.models import Webhook
from webapp.row_templates.models import Template
from webapp.scenarios.models import Scenario

KINDS: Final[Mapping[str, tuple[Any, str]]] = {
    "template": (Template, "write"),
    "dataset": (Dataset, "write"),
    "scenario": (Scenario, "write"),
    "connection": (Connection, "write"),
    "endpoint": (Endpoint, "write"),
    "file": (WorkspaceFile, "write"),
    "webhook": (Webhook, "write"),
    "project": (Project, "admin"),
    "team": (Team, "admin"),
}
"""By kind: its table, and the scope that restoring takes. Projects and teams are those of the workspace, the others
those of the present project; files and webhooks also those of no project."""

_NAME: Final = "trash"
_SAME: Final = timedelta(seconds=5)
"""The trail's entry of a deletion is written in the same transaction, a moment later."""


def page(
    actor: Actor,
    *,
    type: str | None = None,
    q: str | None = None,
    cursor: str | None = None,
    limit: int = limits.PAGE_LIMIT_DEFAULT,
) -> pagination.Page[dict[str, Any]]:
    """Return a page of objects that can be restored, latest first. Error: invalid_request for an invalid cursor."""
    now = clock.now()
    parts = [_of(actor, kind, q, now) for kind in KINDS if type in (None, kind)]
    every = union_all(*parts).subquery()
    total = db.session.scalar(select(func.count()).select_from(every)) or 0
    statement = select(every)
    context = f"{actor.workspace_id} {actor.project_id} {actor.user_id} {type} {q}"
    if cursor:
        at, last = pagination.read_cursor(_NAME, context, cursor)
        moment = datetime.fromisoformat(at)
        earlier = or_(every.c.deleted_at < moment, and_(every.c.deleted_at == moment, every.c.id < last))
        statement = statement.where(earlier)
    ordered = statement.order_by(every.c.deleted_at.desc(), every.c.id.desc()).limit(limit + 1)
    rows = db.session.execute(ordered).all()
    following = None
    if len(rows) > limit:
        end = rows[limit - 1]
        following = pagination.cursor_of(_NAME, context, [end.deleted_at.isoformat(), end.id])
    who = _who(actor.workspace_id, rows[:limit])
    return pagination.Page([_told(actor, row, who, now) for row in rows[:limit]], following, total)


def _of(actor: Actor, kind: str, q: str | None, now: datetime) -> Any:
    model, _ = KINDS[kind]
    team = model.id if model is Team else getattr(model, "team_id", null())
    project = getattr(model, "project_id", null())
    statement = tenancy.listing(actor, model, project=model not in (Project, Team), deleted=True)
    statement = statement.where(model.deleted_at > now - timedelta(days=limits.RESTORE_DAYS))
    if model is Connection:
        statement = statement.where(Connection.of_endpoint.is_(False))
    if model is Webhook:
        statement = _webhooks(actor, now)
    name = Webhook.description if model is Webhook else model.name
    if q and q.strip():
        statement = statement.where(pagination.contains(name, q.strip()))
    return statement.with_only_columns(
        literal(kind, String).label("type"),
        model.id.label("id"),
        name.label("name"),
        model.deleted_at.label("deleted_at"),
        project.label("project_id"),
        team.label("team_id"),
        (Webhook.url if model is Webhook else literal("", String)).label("url"),
    )


def _webhooks(actor: Actor, now: datetime) -> Any:
    """Return those that the actor could see: of the project with the write scope; of the workspace for admins."""
    mine = Webhook.project_id == actor.project_id if actor.can("write", actor.team_id) else false()
    seen = or_(mine, Webhook.project_id.is_(None)) if actor.can("admin") else mine
    return select(Webhook).where(
        Webhook.workspace_id == actor.workspace_id,
        Webhook.deleted_at > now - timedelta(days=limits.RESTORE_DAYS),
        seen,
    )


def _who(workspace_id: str, rows: Sequence[Row[Any]]) -> dict[str, User]:
    """Return the user who deleted each object, by its id, according to the audit log."""
    if not rows:
        return {}
    # Separate queries, combined: each uses an index, which a planner may not do for an OR.
    each = [
        select(AuditEntry.object_id, AuditEntry.user_id).where(
            AuditEntry.workspace_id == workspace_id,
            AuditEntry.object_id == row.id,
            AuditEntry.at >= row.deleted_at,
            AuditEntry.at < row.deleted_at + _SAME,
            AuditEntry.action.like("%.delete"),
        )
        for row in rows
    ]
    found = union_all(*each).subquery()
    statement = select(found.c.object_id, User).join(User, User.id == found.c.user_id)
    return {row[0]: row[1] for row in db.session.execute(statement)}


def _told(actor: Actor, row: Row[Any], who: Mapping[str, User], now: datetime) -> dict[str, Any]:
    gone = row.deleted_at + timedelta(days=limits.RESTORE_DAYS)
    by, scope = who.get(row.id), KINDS[row.type][1]
    if row.type == "webhook" and row.project_id is None:
        scope = "admin"
    restorable = actor.can(scope, row.team_id) if scope == "write" else actor.can(scope)
    if row.type == "file" and row.project_id is None:
        restorable = restorable and file_store.may_change_shared(actor)
    return {
        "type": row.type,
        "id": row.id,
        "name": row.name or urlsplit(row.url).hostname or row.id,  # of an address no more: it may hold a key
        "project_id": row.project_id,
        "deleted_at": clock.to_text(row.deleted_at),
        "deleted_by": by.id if by else None,
        "deleted_by_name": (by.name or by.email) if by else None,
        "gone_at": clock.to_text(gone),
        "days_left": max(0, (gone - now).days),
        "restorable": restorable,
    }
