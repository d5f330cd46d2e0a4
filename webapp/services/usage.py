"""What was generated, told from the audit trail: by day, and last for each template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select

from webapp import clock, limits
from webapp.extensions import db
from webapp.models import AuditEntry
from webapp.services.actors import Actor, require

_RUNS = ("template.generate", "template.export", "dataset.export")


@dataclass(frozen=True, slots=True)
class Run:
    """One generation of a template: when, and how many rows."""

    at: datetime
    rows: int | None


def last_runs(actor: Actor, template_ids: Sequence[str]) -> dict[str, Run]:
    """The last generation or export of each of some templates that had one, by template id."""
    require(actor, "read")
    if not template_ids:
        return {}
    newest = (
        select(func.max(AuditEntry.id))
        .where(
            AuditEntry.workspace_id == actor.workspace_id,
            AuditEntry.object_id.in_(template_ids),
            AuditEntry.action.in_(_RUNS),
        )
        .group_by(AuditEntry.object_id)
    )
    found = db.session.execute(
        select(AuditEntry.object_id, AuditEntry.at, AuditEntry.rows).where(AuditEntry.id.in_(newest))
    )
    return {row.object_id: Run(row.at, row.rows) for row in found}


def rows_by_day(actor: Actor, days: int = limits.USAGE_DAYS) -> list[tuple[str, int]]:
    """`(date, rows generated)` of the workspace for the last `days` days (UTC), oldest first, today last."""
    require(actor, "member")
    today = clock.now().date()
    dates = [today - timedelta(days=back) for back in range(days - 1, -1, -1)]
    day = func.date(AuditEntry.at)
    statement = (
        select(day, func.sum(AuditEntry.rows))
        .where(
            AuditEntry.workspace_id == actor.workspace_id,
            AuditEntry.action.in_(_RUNS),
            AuditEntry.at >= clock.now() - timedelta(days=days),
        )
        .group_by(day)
    )
    found = {str(date): int(rows or 0) for date, rows in db.session.execute(statement)}
    return [(date.isoformat(), found.get(date.isoformat(), 0)) for date in dates]
