"""Usage: rows and requests by the hour and by the day, and the last generation of each template.

The stored hours (`usage_hours`) and what is not stored yet, added up: rows of entries that have no
seal yet, requests that are still counted in Redis. The rows match the audit log exactly.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal

import redis
from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from webapp import clock, limits
from webapp.access import tenancy
from webapp.access.actors import Actor, require_scope
from webapp.access.models import ApiKey, Project, User
from webapp.audit.models import AuditEntry, AuditPending
from webapp.connections.services import sqlite_files
from webapp.datasets.models import Dataset
from webapp.errors import ApiError
from webapp.exports import export_files
from webapp.extensions import READ_ONLY_OPTION, db, read_session, redis_client
from webapp.files import services as files_services
from webapp.metering import hourly
from webapp.metering.hourly import UsageKey
from webapp.metering.models import UsageFold, UsageHour
from webapp.row_templates.models import Template

By = Literal["project", "template", "key", "person"]
Step = Literal["hour", "day"]
_POSITIONS: Final[Mapping[str, int]] = {"project": 1, "template": 2, "key": 3, "person": 4}  # in a Part
_MODELS: Final[Mapping[str, tuple[Any, ...]]] = {
    "project": (Project,), "template": (Template, Dataset), "key": (ApiKey,),
}  # fmt: skip
_COLUMNS: Final = (
    UsageHour.hour,
    UsageHour.project_id,
    UsageHour.template_id,
    UsageHour.key_id,
    UsageHour.user_id,
)
_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)


@dataclass(slots=True)
class UsageSum:
    """Rows and requests of a stretch of time."""

    rows: int = 0
    requests: int = 0

    def add(self, rows: int, requests: int) -> None:
        """Add rows and requests."""
        self.rows += rows
        self.requests += requests


@dataclass(slots=True)
class UsageShare:
    """The share of one project, template, key or user, in total and by step; the id "" is for usage without one."""

    id: str
    name: str
    sum: UsageSum = field(default_factory=UsageSum)
    steps: dict[datetime, UsageSum] = field(default_factory=dict)


@dataclass(slots=True)
class UsageHistory:
    """Usage from `start` up to, not with, `end`: every step, oldest first, and the shares, the largest first. `others`
    is how many shares are summed up in the last one."""

    start: datetime
    end: datetime
    step: Step
    by: By | None
    sum: UsageSum
    steps: dict[datetime, UsageSum]
    shares: list[UsageShare]
    others: int = 0


def history(
    actor: Actor,
    *,
    by: By | None = None,
    step: Step | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
) -> UsageHistory:
    """Return the usage of the workspace, or of the projects that the actor can access; by default for the last 24
    hours.

    `start` and `end` are rounded outwards to whole steps. Only admins get usage by key and by user. Errors: forbidden,
    invalid_request (an empty range, or one that is too long for its step).
    """
    require_scope(actor, "member")
    if by in ("key", "person"):
        require_scope(actor, "admin")
    end = end or clock.now()
    start = start or end - 23 * _HOUR
    if start >= end:
        raise ApiError("invalid_request", "`from` must be before `to`.", {"from": clock.to_text(start)})
    if step is None:
        step = "hour" if end - start <= 2 * _DAY else "day"
    length, maximum = (_HOUR, limits.USAGE_MAX_HOURS) if step == "hour" else (_DAY, limits.USAGE_MAX_DAYS)
    first, last = _step_start(start, step), _step_start(end, step)
    if last < end:
        last += length
    number = (last - first) // length
    if number > maximum:
        hint = "Use steps of a day, or a shorter range." if step == "hour" else "Use a shorter range."
        message = f"The range has {number:,} {step}s, but at most {maximum} are allowed. {hint}"
        raise ApiError("invalid_request", message)
    steps = {first + index * length: UsageSum() for index in range(number)}
    found = UsageHistory(first, last, step, by, UsageSum(), steps, [])
    parts = _counts_by_part(actor, found)
    for part, amount in parts.items():
        hour = part[0]
        found.sum.add(amount.rows, amount.requests)
        found.steps[_step_start(hour, found.step)].add(amount.rows, amount.requests)
    if by is not None:
        _add_shares(actor, found, by, parts)
    return found


def _step_start(at: datetime, step: Step) -> datetime:
    hour = hourly.hour_of(at)
    return hour if step == "hour" else hour.replace(hour=0)


# --- What was counted ---------------------------------------------------------------------------------------


def _counts_by_part(actor: Actor, found: UsageHistory) -> dict[UsageKey, UsageSum]:
    """Return all counts in a range, by hour and dimension."""
    parts: dict[UsageKey, UsageSum] = defaultdict(UsageSum)
    visible = None if actor.workspace_role else {item.id for item in tenancy.accessible_projects(actor)}
    with Session(db.engine, autoflush=False) as session:
        # One snapshot: entries that are sealed in the meantime are counted once.
        options: dict[str, Any] = {READ_ONLY_OPTION: True}
        if db.engine.dialect.name != "sqlite":
            options["isolation_level"] = "REPEATABLE READ"
        session.connection(execution_options=options)
        statement = select(*_COLUMNS, UsageHour.rows, UsageHour.requests).where(
            UsageHour.workspace_id == actor.workspace_id,
            UsageHour.hour >= found.start,
            UsageHour.hour < found.end,
        )
        for row in session.execute(statement):
            hour, project, template, key, person, rows, request_count = row
            parts[hour, project, template, key, person].add(rows, request_count)
        pending = select(AuditPending.entry_id).where(AuditPending.workspace_id == actor.workspace_id)
        columns = (
            AuditEntry.at,
            AuditEntry.object_type,
            AuditEntry.object_id,
            AuditEntry.project_id,
            AuditEntry.key_id,
            AuditEntry.user_id,
            AuditEntry.rows,
            AuditEntry.details,
        )
        counted = or_(AuditEntry.rows.is_not(None), AuditEntry.action.in_(hourly.RETURNING_ACTIONS))
        unsealed = select(*columns).where(AuditEntry.id.in_(pending), counted)
        for entry in session.execute(unsealed).mappings():
            if rows := hourly.net_rows(entry):
                parts[hourly.usage_key(entry)].add(rows, 0)
        fold = session.scalar(select(UsageFold.fold).where(UsageFold.workspace_id == actor.workspace_id))
    try:
        for part, requests in hourly.unflushed_requests(redis_client(), actor.workspace_id, fold or ""):
            parts[part].add(0, requests)
    except redis.RedisError:  # without Redis, requests that are still counted there are left out
        pass
    return {
        part: amount
        for part, amount in parts.items()
        if found.start <= part[0] < found.end and (visible is None or part[1] in visible)
    }


# --- Owners -------------------------------------------------------------------------------------------------


def _add_shares(actor: Actor, found: UsageHistory, by: By, parts: Mapping[UsageKey, UsageSum]) -> None:
    position = _POSITIONS[by]
    shares: dict[str, UsageShare] = {}
    for part, amount in parts.items():
        name = str(part[position])
        share = shares.setdefault(name, UsageShare(name, ""))
        share.sum.add(amount.rows, amount.requests)
        share.steps.setdefault(_step_start(part[0], found.step), UsageSum()).add(amount.rows, amount.requests)
    ranked = sorted(shares.values(), key=lambda item: (-item.sum.rows, -item.sum.requests, item.id))
    found.shares, rest = ranked[: limits.USAGE_PARTS], ranked[limits.USAGE_PARTS :]
    ids = [item.id for item in found.shares if item.id]
    names: dict[str, str] = {}  # those of deleted ones among them
    if by == "person":
        people = db.session.scalars(select(User).where(User.id.in_(ids)))
        names = {item.id: item.name or item.email for item in people}
    for model in _MODELS.get(by, ()):
        statement = select(model.id, model.name).where(
            model.workspace_id == actor.workspace_id, model.id.in_(ids)
        )
        names |= {row.id: row.name for row in db.session.execute(statement)}
    for share in found.shares:
        share.name = names.get(share.id, "") if share.id else ""
    if rest:
        found.others = len(rest)
        remainder = UsageShare("", f"{len(rest)} others")
        for item in rest:
            remainder.sum.add(item.sum.rows, item.sum.requests)
            for at, amount in item.steps.items():
                remainder.steps.setdefault(at, UsageSum()).add(amount.rows, amount.requests)
        found.shares.append(remainder)


def storage(actor: Actor) -> dict[str, dict[str, int]]:
    """Return what the workspace stores, and its quotas: `{files, sqlite, exports}`."""
    files = files_services.usage(actor.workspace_id)
    sqlite_bytes, sqlite_count = sqlite_files.usage(actor.workspace_id)
    with read_session() as session:
        exports = export_files.used_bytes(session, actor.workspace_id)
    return {
        "files": {
            "limit_bytes": limits.MAX_WORKSPACE_FILES_BYTES,
            "used_bytes": files.bytes,
            "trash_bytes": files.trash_bytes,
            "uploading_bytes": files.held_bytes,
            "compat_bytes": files.compat_bytes,
            "files": files.files,
            "trash_files": files.trash_files,
        },
        "sqlite": {
            "limit_bytes": limits.SQLITE_WORKSPACE_BYTES,
            "used_bytes": sqlite_bytes,
            "limit_files": limits.MAX_SQLITE_FILES,
            "files": sqlite_count,
        },
        "exports": {"limit_bytes": limits.EXPORT_FILES_BYTES[actor.plan], "used_bytes": exports},
    }
