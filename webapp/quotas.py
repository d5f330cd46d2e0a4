"""Row quota per hour: rows are reserved before the first is generated, and returned if the client disconnects."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import select

from webapp import clock, limits
from webapp.access.actors import Actor
from webapp.accounts.services import identity
from webapp.accounts.services.identity import rate_limiter
from webapp.audit.models import AuditEntry
from webapp.errors import ApiError
from webapp.extensions import read_session
from webapp.metering import limit_warnings
from webapp.rate_limiting import RateLimitResult, RowsResult


@dataclass(frozen=True, slots=True)
class Reservation:
    """Rows reserved from a workspace's hourly quota, and the second of the reservation."""

    workspace_id: str
    rows: int
    second: int


def check_rows(actor: Actor, rows: int) -> None:
    """Raise `row_limit_exceeded` if one call requests more rows than the workspace's plan allows."""
    limit = actor.limits.rows_per_generation
    if rows > limit:
        raise ApiError(
            "row_limit_exceeded",
            f"A request can have at most {limit:,} rows, not {rows:,}.",
            {"limit": limit, "requested": rows},
        )


def reserve_rows(actor: Actor, rows: int, *, largest: int | None = None) -> Reservation:
    """Reserve `rows` from the workspace's hourly quota, all or none. `largest`: the rows of the largest table of a
    request for several.

    Errors: row_limit_exceeded (more than the plan allows per call), quota_exceeded with Retry-After.
    """
    check_rows(actor, rows if largest is None else largest)
    limit = actor.limits.rows_per_hour
    result = _reserve(actor.workspace_id, rows, limit)
    if result.state == "reserved":
        limit_warnings.check_rows(actor, rows, result.used)
        return Reservation(actor.workspace_id, rows, result.second)
    wait = max(1, math.ceil(result.second - clock.epoch()))
    raise ApiError(
        "quota_exceeded",
        f"The quota is {limit:,} rows per hour; {result.used:,} are used.",
        {"limit": limit, "used": result.used, "requested": rows, "retry_after": wait},
        headers={"Retry-After": str(wait)},
    )


def count_preview_records(actor: Actor, records: int) -> None:
    """Count the objects in arrays of a preview. Previews do not count toward the row quota, but an array can have
    10,000 objects, so their number per hour is limited by the same quota. Error: quota_exceeded with Retry-After."""
    limit, name = actor.limits.rows_per_hour, f"rowsmith:{{{actor.workspace_id}}}:previews"
    result = rate_limiter().reserve_rows(name, records, limit)
    if result.state == "unknown":
        rate_limiter().restore_rows(name, [])
        result = rate_limiter().reserve_rows(name, records, limit)
    if result.state == "reserved":
        return
    wait = max(1, math.ceil(result.second - clock.epoch()))
    raise ApiError(
        "quota_exceeded",
        f"Previews show up to {limit:,} objects in arrays per hour; {result.used:,} have been shown. "
        "Lower the number of elements.",
        {"limit": limit, "used": result.used, "requested": records, "retry_after": wait},
        headers={"Retry-After": str(wait)},
    )


def preview_records_details(records: int) -> dict[str, Any]:
    """Return the details of an audit entry about objects in arrays that counted in addition to the rows."""
    return {"records": records} if records else {}


def return_rows(reservation: Reservation, rows: int) -> Reservation:
    """Return up to `rows` unused rows of a reservation to the quota. Return the rest of the reservation."""
    rows = min(rows, reservation.rows)
    if rows <= 0:
        return reservation
    rate_limiter().return_rows(_rows_key(reservation.workspace_id), reservation.second, rows)
    return replace(reservation, rows=reservation.rows - rows)


def rows_used(workspace_id: str, limit: int) -> int:
    """Return the number of rows used in the last hour."""
    return _reserve(workspace_id, 0, limit).used


@dataclass(frozen=True, slots=True)
class Gauge:
    """Usage of a limit. `next_at`: when the first part becomes available again; `resets_at`: when all of it is, if
    nothing more is used. None if nothing is used."""

    limit: int
    used: int
    window_seconds: int
    next_at: datetime | None
    resets_at: datetime | None

    @property
    def left(self) -> int:
        """Return what is left; 0 if the limit was lowered below the usage."""
        return max(0, self.limit - self.used)

    @property
    def near(self) -> bool:
        """Whether the usage is above the warning threshold."""
        return self.used >= limits.USAGE_WARN_SHARE * self.limit


def gauges(actor: Actor, rate_limit: RateLimitResult) -> dict[str, Gauge]:
    """Return the usage of `requests` per minute and `rows` per hour. `rate_limit`: the result of this request."""
    plan_limits, name = actor.limits, _rows_key(actor.workspace_id)
    used = rows_used(actor.workspace_id, plan_limits.rows_per_hour)
    all_requests, first_rows, all_rows = identity.rate_limit_reset_times(actor.workspace_id, name)
    first_rows, all_rows = (first_rows, all_rows) if used else (None, None)
    requests = plan_limits.requests_per_minute - rate_limit.remaining
    return {
        "requests": Gauge(
            plan_limits.requests_per_minute,
            requests,
            limits.RATE_WINDOW_SECONDS,
            _time_or_none(rate_limit.reset if requests else None),
            _time_or_none(all_requests if requests else None),
        ),
        "rows": Gauge(
            plan_limits.rows_per_hour,
            used,
            limits.ROWS_WINDOW_SECONDS,
            _time_or_none(first_rows),
            _time_or_none(all_rows),
        ),
    }


def _time_or_none(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _rows_key(workspace_id: str) -> str:
    return f"rowsmith:{{{workspace_id}}}:rows"


def _reserve(workspace_id: str, rows: int, limit: int) -> RowsResult:
    name = _rows_key(workspace_id)
    result = rate_limiter().reserve_rows(name, rows, limit)
    if result.state == "unknown":
        rate_limiter().restore_rows(name, _rows_in_audit_log(workspace_id))
        result = rate_limiter().reserve_rows(name, rows, limit)
    return result


def _rows_in_audit_log(workspace_id: str) -> list[tuple[int, int]]:
    """Return the rows of the last hour by second from the audit log, to restore the counts after Redis was emptied.

    Rows that were returned to the quota are included, so the quota is never exceeded but might not be used up.
    """
    since = clock.now() - timedelta(seconds=limits.ROWS_WINDOW_SECONDS + 1)
    statement = (
        select(AuditEntry.at, AuditEntry.rows, AuditEntry.details)
        .where(AuditEntry.workspace_id == workspace_id, AuditEntry.at >= since, AuditEntry.rows > 0)
        .order_by(AuditEntry.at)
    )
    seconds: dict[int, int] = {}
    with read_session() as session:
        for at, rows, details in session.execute(statement):
            second = int(at.timestamp())
            seconds[second] = seconds.get(second, 0) + rows + (details or {}).get("records", 0)
    return list(seconds.items())
