"""Pages of activity: the list of all jobs, and the panel of running jobs that every page has."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

from flask import Blueprint, Response, url_for
from pydantic import Field

from webapp import clock, limits
from webapp.access.actors import Actor
from webapp.activity import services
from webapp.activity.services import Job, JobFilter, Kind, Status
from webapp.web.inputs import Query
from webapp.web.responses import reply
from webapp.web.routing import route

bp = Blueprint("activity", __name__)
_DAYS: Final = ((1, "Last day"), (7, "Last 7 days"), (30, "Last 30 days"), (0, "Any time"))
_DEFAULT_DAYS: Final = 7
_RUNNING_SHOWN: Final = 6  # in the panel; chosen: it stays lower than a small window
_ENDED_SHOWN: Final = 4


class ActivityQuery(Query):
    """Which jobs."""

    kind: Kind | None = None
    status: Status | None = None
    by: str | None = None
    days: Annotated[int, Field(ge=0, le=3660)] = _DEFAULT_DAYS
    q: Annotated[str, Field(max_length=limits.MAX_QUERY_TEXT)] = ""
    of: str | None = None
    cursor: str | None = None


@route(bp, "/activity", scope="read", query=ActivityQuery, hidden=True, allows_api_keys=False)
def index(actor: Actor, query: ActivityQuery) -> Response:
    """List exports, pushes and runs of the project, newest first."""
    filters = JobFilter(query.kind, query.status, query.by, query.days, query.q.strip(), query.of)
    found, following = services.jobs(actor, filters, query.cursor)
    current = query.model_dump(exclude={"cursor"}, exclude_defaults=True)
    data = {"items": found, "next_cursor": following}
    return reply(
        data,
        template="activity/list.html",
        block="list",
        query=query,
        groups=list(_group_by_day(found, clock.now())),
        counts=services.count_by_status(actor, filters),
        people=services.job_creators(actor),
        spans=_DAYS,
        to=lambda **other: _list_url(current, other),
        more=following and _list_url(current, {"cursor": following}),
        step=next_step,
        now=clock.now(),
    )


@route(bp, "/activity/now", scope="read", hidden=True, allows_api_keys=False)
def now(actor: Actor) -> Response:
    """Return the running jobs of the project and those that finished lately; pages poll this."""
    running, _ = services.jobs(actor, JobFilter(status="running"), limit=_RUNNING_SHOWN)
    return reply(
        {"running": running, "ended": services.recently_finished(actor, _ENDED_SHOWN)},
        template="activity/now.html",
        block="now",
        total=services.count_running(actor),
        step=next_step,
        now=clock.now(),
    )


def _list_url(current: dict[str, Any], changes: dict[str, Any]) -> str:
    """Return the address of the list with other filters; a filter of None is removed."""
    parameters = {**current, **changes}
    return url_for(
        "activity.index", **{name: value for name, value in parameters.items() if value is not None}
    )


def job_url(job: Job) -> str:
    """Return the address of a job's page."""
    if job.kind == "export":
        return url_for("exports.show", export_id=job.id)
    if job.kind == "push":
        return url_for("pushes.show", push_id=job.id)
    return url_for("runs.show", scenario_id=job.of, run_id=job.id)


def next_step(job: Job) -> dict[str, str]:
    """Return the address of a job's `page`, and of its next step: `cancel` (of a form), `review` or `download`."""
    page = job_url(job)
    if job.open:
        return {"page": page, "cancel": "" if job.stopping else f"{page}?_method=DELETE"}
    if job.status in ("failed", "timed_out") or (job.status == "completed" and job.failures):
        return {"page": page, "review": page}
    if job.has_file:
        return {"page": page, "download": url_for("exports.download", export_id=job.id)}
    return {"page": page}


def _group_by_day(found: Iterable[Job], now: datetime) -> Iterable[tuple[str, list[Job]]]:
    """Yield the jobs with headings: those that run, then by day (UTC)."""
    groups: dict[str, list[Job]] = {}
    today = now.astimezone(UTC).date()
    for job in found:
        day = job.created_at.astimezone(UTC).date()
        if job.open:
            heading = "Running"
        elif day == today:
            heading = "Today"
        elif day == today - timedelta(days=1):
            heading = "Yesterday"
        else:
            heading = f"{day:%A, %d %B %Y}"
        groups.setdefault(heading, []).append(job)
    if "Running" in groups:
        yield "Running", groups.pop("Running")
    yield from groups.items()
