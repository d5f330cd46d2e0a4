"""Search of the audit log by any column of an entry: one page, or all entries.

The most selective filter that has an index (`_INDEXED_COLUMNS`) selects entries, together with the time range. The
other filters are applied to these entries, to at most `limits.AUDIT_WINDOW` of them for one page: so a page costs the
same in a log of a million entries. If the scan stops before the page is full, its cursor continues there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, Text, and_, cast, func, or_, select

from webapp import clock, limits, pagination
from webapp.access import tenancy
from webapp.access.actors import Actor, require_scope
from webapp.access.models import ApiKey, Membership, User, Workspace
from webapp.audit.models import AuditEntry
from webapp.errors import ApiError
from webapp.extensions import application, db, read_session
from webapp.model_base import Base

_INDEXED_COLUMNS: Final = {
    "object_id": AuditEntry.object_id,
    "key_id": AuditEntry.key_id,
    "user_id": AuditEntry.user_id,
    "address": AuditEntry.address,
    "action": AuditEntry.action,
    "kind": AuditEntry.object_type,
    "project_id": AuditEntry.project_id,
}
# Kinds of objects that have entries, as `services.audit.name_of` calls them.
KINDS: Final = tuple(
    (
        "api_key browser_session connection custom_data_type dataset endpoint endpoint_folder export invitation "
        "masking_key masking_policy plan project push run scenario secret set team template template_folder user "
        "webhook workspace workspace_file"
    ).split()
)
_BATCH: Final = 500
_NAME: Final = "audit"


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """Which entries. `q`: a part of the action; `text`: a part of the details; `since` counts, `until` does not."""

    action: str | None = None
    kind: str | None = None
    object_id: str | None = None
    user_id: str | None = None
    key_id: str | None = None
    project_id: str | None = None
    address: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    rows_min: int | None = None
    rows_max: int | None = None
    q: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class SearchPage:
    """One page. `total` is exact, or a lower bound; `searched_until` is the time of the oldest entry that was scanned
    if the scan stopped before the page was full."""

    items: list[AuditEntry]
    next_cursor: str | None
    total: int
    total_exact: bool
    searched_until: datetime | None


_NAME_COLUMNS: Final = (
    "name",
    "file_name",
    "target",
)  # columns that name an object, the first that its table has


def page(actor: Actor, filters: EntryFilter, cursor: str | None, limit: int) -> SearchPage:
    """Return a page of the entries, newest first. Errors: forbidden, invalid_request (the cursor)."""
    require_scope(actor, "admin")
    base, unindexed = _conditions(actor.workspace_id, filters)
    values = {name: getattr(filters, name) for name in EntryFilter.__slots__}
    description = json.dumps(
        {name: value for name, value in values.items() if value is not None}, default=str
    )
    context = f"{actor.workspace_id} {description}"
    if cursor:
        last, last_id = pagination.decode_cursor(_NAME, context, cursor)
        at = datetime.fromisoformat(str(last))
        tie = and_(AuditEntry.at == at, AuditEntry.id < str(last_id))
        base = [*base, or_(AuditEntry.at < at, tie)]
    bound = _window_start(base) if unindexed else None
    conditions = [*base, *unindexed, *([AuditEntry.at >= bound] if bound is not None else [])]
    order = (AuditEntry.at.desc(), AuditEntry.id.desc())
    rows = list(db.session.scalars(select(AuditEntry).where(*conditions).order_by(*order).limit(limit + 1)))
    following, until = None, None
    if len(rows) > limit:
        following = pagination.encode_cursor(
            _NAME, context, [rows[limit - 1].at.isoformat(), rows[limit - 1].id]
        )
    elif bound is not None:  # older entries may match too
        following, until = pagination.encode_cursor(_NAME, context, [bound.isoformat(), ""]), bound
    total, exact = _total(actor.workspace_id, filters)
    return SearchPage(rows[:limit], following, total, exact, until)


def _conditions(
    workspace_id: str, filters: EntryFilter
) -> tuple[list[ColumnElement[bool]], list[ColumnElement[bool]]]:
    """Return conditions that use an index, and conditions on the entries found, which no database uses another
    index for."""
    leading = next((name for name in _INDEXED_COLUMNS if getattr(filters, name) is not None), None)
    base: list[ColumnElement[bool]] = [AuditEntry.workspace_id == workspace_id]
    unindexed: list[ColumnElement[bool]] = []
    for name, column in _INDEXED_COLUMNS.items():
        value = getattr(filters, name)
        if name == leading:
            base.append(column == value)
        elif value is not None:
            unindexed.append(func.coalesce(column, "") == value)
    if filters.since is not None:
        base.append(AuditEntry.at >= filters.since)
    if filters.until is not None:
        base.append(AuditEntry.at < filters.until)
    if filters.rows_min is not None:
        unindexed.append(AuditEntry.rows >= filters.rows_min)
    if filters.rows_max is not None:
        unindexed.append(AuditEntry.rows <= filters.rows_max)
    if (filters.q or "").strip():
        unindexed.append(pagination.contains(AuditEntry.action, (filters.q or "").strip()))
    if text := (filters.text or "").strip():
        # Details are JSON text, in which non-ASCII characters may be escaped.
        details: Any = cast(AuditEntry.details, Text)
        forms = dict.fromkeys((json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1]))
        unindexed.append(or_(*(pagination.contains(details, form) for form in forms)))
    return base, unindexed


def _window_start(base: list[ColumnElement[bool]]) -> datetime | None:
    """Return the time of the last entry of the window; None if it includes all entries."""
    statement = select(AuditEntry.at).where(*base).order_by(AuditEntry.at.desc()).offset(limits.AUDIT_WINDOW)
    return db.session.scalar(statement.limit(1))


def _total(workspace_id: str, filters: EntryFilter) -> tuple[int, bool]:
    """Count the entries: within the time window if there is one, and up to the maximum."""
    base, unindexed = _conditions(workspace_id, filters)
    bound = _window_start(base) if unindexed else None
    within = [*base, *unindexed, *([AuditEntry.at >= bound] if bound is not None else [])]
    counted = select(AuditEntry.at).where(*within).limit(limits.AUDIT_MAX_COUNT + 1).subquery()
    total = db.session.scalar(select(func.count()).select_from(counted)) or 0
    return min(total, limits.AUDIT_MAX_COUNT), bound is None and total <= limits.AUDIT_MAX_COUNT


# --- Export -------------------------------------------------------------------------------------------------


def iter_entries(workspace_id: str, filters: EntryFilter) -> Iterator[list[AuditEntry]]:
    """Yield all entries, oldest first, in batches, each read in a separate short transaction."""
    app = application()
    base, unindexed = _conditions(workspace_id, filters)
    chosen = select(AuditEntry).where(*base, *unindexed).order_by(AuditEntry.at, AuditEntry.id).limit(_BATCH)

    def batches() -> Iterator[list[AuditEntry]]:
        last: AuditEntry | None = None
        while True:
            statement: Select[Any] = chosen
            if last is not None:
                tie = and_(AuditEntry.at == last.at, AuditEntry.id > last.id)
                statement = chosen.where(or_(AuditEntry.at > last.at, tie))
            with app.app_context(), read_session() as session:
                rows = list(session.scalars(statement))
            if not rows:
                return
            yield rows
            last = rows[-1]

    return batches()


# --- Names --------------------------------------------------------------------------------------------------


def names(workspace_id: str, entries: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the names of the users, API keys and objects of some entries, by id. Deleted objects have none."""
    people = {item["user_id"] for item in entries if item["user_id"]}
    keys = {item["key_id"] for item in entries if item["key_id"]}
    found = {}
    for user in db.session.scalars(select(User).where(User.id.in_(people))):
        found[user.id] = user.name or user.email
    condition = (ApiKey.workspace_id == workspace_id, ApiKey.id.in_(keys))
    found |= {
        row.id: row.name for row in db.session.execute(select(ApiKey.id, ApiKey.name).where(*condition))
    }
    if any(item["object_id"] == workspace_id for item in entries):
        found[workspace_id] = db.session.get_one(Workspace, workspace_id).name
    # The objects of those kinds whose table has a name or a file name.
    tables = {mapper.class_.__name__.lower(): mapper.local_table for mapper in Base.registry.mappers}
    ids: dict[str, set[str]] = {}
    for entry in entries:
        if entry["object_id"]:
            ids.setdefault(str(entry["object_type"]).replace("_", ""), set()).add(entry["object_id"])
    for kind, object_ids in ids.items():
        table = tables.get("workspacefile" if kind == "file" else kind)
        name_column = next((name for name in _NAME_COLUMNS if table is not None and name in table.c), None)
        if table is None or name_column is None or "workspace_id" not in table.c:
            continue
        objects = select(table.c.id, table.c[name_column]).where(
            table.c.workspace_id == workspace_id, table.c.id.in_(object_ids)
        )
        found |= {row[0]: row[1] for row in db.session.execute(objects) if row[1]}
    return found


def choices(actor: Actor) -> dict[str, list[tuple[str, str]]]:
    """Return the choices of the filters, as `(value, text)`: kinds of objects, users, keys and projects, as many as the
    longest page has of each."""
    limit = limits.PAGE_LIMIT_MAX
    members = select(Membership.user_id).where(Membership.workspace_id == actor.workspace_id)
    people = db.session.scalars(select(User).where(User.id.in_(members)).order_by(User.name).limit(limit))
    statement = select(ApiKey).where(ApiKey.workspace_id == actor.workspace_id, ApiKey.run_id.is_(None))
    keys = db.session.scalars(statement.order_by(ApiKey.id.desc()).limit(limit))
    return {
        "kinds": [(kind, kind.replace("_", " ")) for kind in KINDS],
        "people": [(person.id, person.name or person.email) for person in people],
        "keys": [(key.id, key.name) for key in keys],
        "projects": [(project.id, project.name) for project in tenancy.accessible_projects(actor)[:limit]],
    }


def parse_time(text: str) -> datetime:
    """Parse a time of the command line or a form: RFC 3339, or a date. Error: invalid_request."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ApiError(
            "invalid_request", f"{text[:40]!r} is not a valid time. Use a time such as 2026-11-21T12:00:00Z."
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=clock.now().tzinfo)
