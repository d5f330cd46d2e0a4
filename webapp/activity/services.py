"""Exports, pushes and runs as entries of one list: filters, counts, pages, and the jobs that run now.

Ids of jobs contain the time of their creation (see `ids`), so the part after the prefix orders all three kinds, and is
the position where a page ends.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from sqlalchemy import ColumnElement, Select, and_, case, false, func, not_, or_, select
from sqlalchemy.orm import load_only

from webapp import clock, limits, pagination
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.access.models import User
from webapp.connections.models import Connection
from webapp.datasets.models import Dataset
from webapp.exports.models import Export
from webapp.extensions import db
from webapp.pushes.models import Push
from webapp.row_templates.models import Template
from webapp.scenarios.models import Run, Scenario

Kind = Literal["export", "push", "run"]
Status = Literal["running", "failures", "failed", "completed", "cancelled"]
KINDS: Final[Mapping[str, Any]] = {"export": Export, "push": Push, "run": Run}
UNFINISHED_STATES: Final = ("queued", "running")
_FAILED_STATES: Final = ("failed", "timed_out")
_PREFIXES: Final = {"export": "exp", "push": "psh", "run": "run"}
# The columns of an entry; the others of a job can be large.
_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "export": ("file_name", "format", "bytes", "count", "rows_done", "template_id", "dataset_id", "request",
               "file_removed_at"),
    "push": ("kind", "target", "total", "delivered", "failed", "unknown", "undone", "connection_id", "template_id",
             "dataset_id", "request"),
    "run": ("scenario_id", "trigger", "rows_generated"),
}  # fmt: skip
_SHARED: Final = (
    "id",
    "status",
    "created_at",
    "started_at",
    "finished_at",
    "created_by",
    "cancel_requested_at",
)


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs: `of` is the id of the template, dataset, connection or scenario that they belong to; `days` counts
    back from now, 0 for all; `q` is a part of a name."""

    kind: Kind | None = None
    status: Status | None = None
    by: str | None = None
    days: int = 0
    q: str = ""
    of: str | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """One entry. `name` is that of the template, dataset or scenario; `place` is where its rows go; `rows` are those
    that it processed, of `total` (None if unknown); `failures` are rows that did not arrive; `by` is a user's name, or
    "" for a schedule."""

    kind: Kind
    id: str
    of: str
    name: str
    what: str
    place: str
    status: str
    failures: int
    rows: int
    total: int | None
    bytes: int | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    by: str
    scheduled: bool
    stopping: bool
    has_file: bool

    @property
    def open(self) -> bool:
        """Return whether it has not finished."""
        return self.status in UNFINISHED_STATES

    @property
    def percent(self) -> int | None:
        """The share of its rows that are processed; None if unknown."""
        return self.rows * 100 // self.total if self.total else None

    def seconds(self, now: datetime) -> float | None:
        """Return how long it has been running, or took; None before it started."""
        return ((self.finished_at or now) - self.started_at).total_seconds() if self.started_at else None


def jobs(
    actor: Actor, filters: JobFilter, cursor: str | None = None, limit: int = limits.PAGE_LIMIT_DEFAULT
) -> tuple[list[Job], str | None]:
    """Return one page of the project's jobs, newest first, and the cursor of the next page.

    Errors: invalid_request for a cursor of another list.
    """
    context = f"{actor.project_id} {filters}"
    before = pagination.decode_cursor("activity", context, cursor)[0] if cursor else None
    found: list[tuple[str, Any]] = []
    for kind in _kinds(filters):
        model = KINDS[kind]
        statement = _matching_jobs(actor, kind, filters)
        if before is not None:
            statement = statement.where(model.id < f"{_PREFIXES[kind]}_{before}")
        newest = _load_columns(kind, statement).order_by(model.id.desc()).limit(limit + 1)
        found += [(kind, row) for row in db.session.scalars(newest)]
    found.sort(key=lambda pair: _time_part(pair[1].id), reverse=True)
    visible = found[:limit]
    more = len(found) > limit
    following = (
        pagination.encode_cursor("activity", context, [_time_part(visible[-1][1].id)]) if more else None
    )
    return as_jobs(actor, visible), following


def count_by_status(actor: Actor, filters: JobFilter) -> dict[str, int]:
    """Return how many jobs have each status with the other filters: keys of `Status`, and `all`."""
    found: dict[str, int] = defaultdict(int)
    for kind in _kinds(filters):
        model = KINDS[kind]
        with_failures = func.sum(case((_with_failures(kind), 1), else_=0))
        statement = _matching_jobs(actor, kind, filters, status=False).with_only_columns(
            model.status, func.count(), with_failures, maintain_column_froms=True
        )
        for status, number, partial in db.session.execute(statement.group_by(model.status)):
            found["all"] += number
            found[_status_group(status, has_failures=False)] += number - partial
            found[_status_group(status, has_failures=True)] += partial
    return found


def count_running(actor: Actor) -> int:
    """Return how many jobs of the project are queued or running."""
    numbers = [
        tenancy.listing(actor, model)
        .where(model.status.in_(UNFINISHED_STATES))
        .with_only_columns(func.count(), maintain_column_froms=True)
        .scalar_subquery()
        for model in KINDS.values()
    ]
    return sum(db.session.execute(select(*numbers)).one())


def recently_finished(actor: Actor, limit: int) -> list[Job]:
    """Return the last jobs of the project that finished within a day, those with failures among them."""
    since = clock.now() - timedelta(days=1)
    found: list[tuple[str, Any]] = []
    for kind, model in KINDS.items():
        statement = tenancy.listing(actor, model).where(model.finished_at >= since)
        rows = db.session.scalars(
            _load_columns(kind, statement).order_by(model.finished_at.desc()).limit(limit)
        )
        found += [(kind, row) for row in rows]
    found.sort(key=lambda pair: pair[1].finished_at, reverse=True)
    return as_jobs(actor, found[:limit])


def job_creators(actor: Actor) -> list[tuple[str, str]]:
    """Return id and name of the users who started jobs of the project, by name."""
    ids: set[str] = set()
    for model in KINDS.values():
        statement = tenancy.listing(actor, model).with_only_columns(
            model.created_by, maintain_column_froms=True
        )
        ids.update(item for item in db.session.scalars(statement.distinct()) if item)
    return sorted(_names_by_id(User, ids).items(), key=lambda pair: pair[1].casefold())


def as_jobs(actor: Actor, found: Sequence[tuple[str, Any]]) -> list[Job]:
    """Return jobs, given as pairs of kind and row, with the names of what they belong to."""
    rows = [row for _, row in found]
    ids = {
        model: {getattr(row, column) for row in rows if getattr(row, column, None)}
        for model, column in (
            (Template, "template_id"),
            (Dataset, "dataset_id"),
            (Connection, "connection_id"),
            (Scenario, "scenario_id"),
            (User, "created_by"),
        )
    }
    names = {model: _names_by_id(model, object_ids) for model, object_ids in ids.items()}
    return [_job(kind, row, names) for kind, row in found]


def _job(kind: str, row: Any, names: Mapping[Any, Mapping[str, str]]) -> Job:
    shared: dict[str, Any] = {
        "id": row.id,
        "status": row.status,
        "created_at": row.created_at,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "by": names[User].get(row.created_by or "", ""),
        "stopping": row.cancel_requested_at is not None,
    }
    if kind == "run":
        name = names[Scenario].get(row.scenario_id, row.scenario_id)
        return Job(
            kind="run", of=row.scenario_id, name=name, what="Run", place="", failures=0, rows=row.rows_generated,
            total=None, bytes=None, scheduled=row.trigger == "schedule", has_file=False, **shared,
        )  # fmt: skip
    source = row.template_id or row.dataset_id or ""
    name = names[Template].get(source) or names[Dataset].get(source)
    scheduled = bool(row.request.get("schedule"))
    if kind == "export":
        return Job(
            kind="export", of=source, name=name or row.file_name or row.id, what="Export", place=row.format.upper(),
            failures=0, rows=row.count if row.status == "completed" else row.rows_done, total=row.count,
            bytes=row.bytes, scheduled=scheduled,
            has_file=row.status == "completed" and row.file_removed_at is None, **shared,
        )  # fmt: skip
    undone = f", {row.undone:,} undone" if row.undone else ""
    done = row.delivered + row.failed + row.unknown + row.undone
    return Job(
        kind="push", of=source, name=name or row.target, what=f"{row.kind.capitalize()}{undone}",
        place=names[Connection].get(row.connection_id or "", row.target), failures=row.failed + row.unknown,
        rows=done if row.status in UNFINISHED_STATES else row.delivered, total=row.total, bytes=None,
        scheduled=scheduled,
        has_file=False, **shared,
    )  # fmt: skip


def _kinds(filters: JobFilter) -> Iterable[str]:
    return (filters.kind,) if filters.kind else tuple(KINDS)


def _matching_jobs(actor: Actor, kind: str, filters: JobFilter, *, status: bool = True) -> Select[Any]:
    """Return a select of the jobs of one kind that a filter lets through."""
    model = KINDS[kind]
    statement = tenancy.listing(actor, model)
    if status and filters.status is not None:
        statement = statement.where(_status_condition(kind, filters.status))
    if filters.by:
        statement = statement.where(model.created_by == filters.by)
    if filters.days:
        statement = statement.where(model.created_at >= clock.now() - timedelta(days=filters.days))
    if filters.of:
        belongs = ("template_id", "dataset_id", "connection_id", "endpoint_id", "scenario_id", "of_id")
        columns = [getattr(model, name) for name in belongs if hasattr(model, name)]
        statement = statement.where(or_(*(column == filters.of for column in columns)))
    if filters.q and kind == "run":
        scenario_ids = select(Scenario.id).where(pagination.contains(Scenario.name, filters.q))
        statement = statement.where(Run.scenario_id.in_(scenario_ids))
    elif filters.q:
        name_column = Export.file_name if kind == "export" else Push.target
        templates = select(Template.id).where(pagination.contains(Template.name, filters.q))
        datasets = select(Dataset.id).where(pagination.contains(Dataset.name, filters.q))
        statement = statement.where(
            or_(
                pagination.contains(name_column, filters.q),
                model.template_id.in_(templates),
                model.dataset_id.in_(datasets),
            )
        )
    return statement


def _status_condition(kind: str, status: str) -> ColumnElement[bool]:
    model = KINDS[kind]
    if status == "running":
        return model.status.in_(UNFINISHED_STATES)  # type: ignore[no-any-return]
    if status == "failed":
        return model.status.in_(_FAILED_STATES)  # type: ignore[no-any-return]
    if status == "failures":
        return and_(model.status == "completed", _with_failures(kind))
    if status == "completed":
        return and_(model.status == "completed", not_(_with_failures(kind)))
    return model.status == status  # type: ignore[no-any-return]


def _with_failures(kind: str) -> ColumnElement[bool]:
    return (Push.failed + Push.unknown) > 0 if kind == "push" else false()


def _status_group(status: str, *, has_failures: bool) -> str:
    if status in UNFINISHED_STATES:
        return "running"
    if status in _FAILED_STATES:
        return "failed"
    return "failures" if status == "completed" and has_failures else status


def _load_columns(kind: str, statement: Select[Any]) -> Select[Any]:
    model = KINDS[kind]
    return statement.options(load_only(*(getattr(model, name) for name in (*_SHARED, *_COLUMNS[kind]))))


def _names_by_id(model: Any, ids: Iterable[str]) -> dict[str, str]:
    id_list = list(ids)
    if not id_list:
        return {}
    rows = db.session.execute(select(model.id, model.name).where(model.id.in_(id_list)))
    return {row.id: row.name for row in rows}


def _time_part(job_id: str) -> str:
    return job_id.partition("_")[2]
