"""Rows per hour: reserved before the first row is made, given back when a client leaves early."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from sqlalchemy import select

from webapp import clock, limits
from webapp.accounts.actors import Actor
from webapp.accounts.services import identity
from webapp.accounts.services.identity import windows
from webapp.audit.models import AuditEntry
from webapp.errors import ApiError
from webapp.extensions import reading
from webapp.notifications.services import limit_warnings
from webapp.rate_limiting import Passage, RowsAnswer


@dataclass(frozen=True, slots=True)
class Reservation:
    """Rows taken from a workspace's hour, and the second they were taken in."""

    workspace_id: str
    rows: int
    second: int


def check_rows(actor: Actor, rows: int) -> None:
    """`row_limit_exceeded` when one call asks for more than the workspace's plan allows at once."""
    most = actor.limits.rows_per_generation
    if rows > most:
        raise ApiError(
            "row_limit_exceeded",
            f"One call may ask for {most:,} rows, not {rows:,}.",
            {"limit": most, "requested": rows},
        )


def reserve_rows(actor: Actor, rows: int, *, largest: int | None = None) -> Reservation:
    """Take `rows` from the workspace's hour, all or none. `largest`: the most rows of one table, where several
    are asked for together.

    Errors: row_limit_exceeded (more than one call may ask for), quota_exceeded with Retry-After.
    """
    check_rows(actor, rows if largest is None else largest)
    limit = actor.limits.rows_per_hour
    answer = _first(actor, rows, limit)
    if answer.state == "taken":
        limit_warnings.took(actor, rows, answer.used)
        return Reservation(actor.workspace_id, rows, answer.second)
    wait = max(1, math.ceil(answer.second - clock.epoch()))
    raise ApiError(
        "quota_exceeded",
        f"{limit:,} rows an hour; {answer.used:,} of them are used.",
        {"limit": limit, "used": answer.used, "requested": rows, "retry_after": wait},
        headers={"Retry-After": str(wait)},
    )


def take_preview_records(actor: Actor, records: int) -> None:
    """Count objects in arrays that a preview shows. Previews spend no rows, but an array may have 10,000 objects: of
    those a workspace has, within an hour, as many as rows. Error: quota_exceeded with Retry-After."""
    limit, name = actor.limits.rows_per_hour, f"rowsmith:{{{actor.workspace_id}}}:previews"
    answer = windows().take_rows(name, records, limit)
    if answer.state == "unknown":
        windows().seed_rows(name, [])
        answer = windows().take_rows(name, records, limit)
    if answer.state == "taken":
        return
    wait = max(1, math.ceil(answer.second - clock.epoch()))
    raise ApiError(
        "quota_exceeded",
        f"Previews show up to {limit:,} objects in arrays per hour; {answer.used:,} have been shown. "
        "Lower the number of elements.",
        {"limit": limit, "used": answer.used, "requested": records, "retry_after": wait},
        headers={"Retry-After": str(wait)},
    )


def records_told(records: int) -> dict[str, int]:
    """What an audit entry says of the objects in arrays that were spent beside the rows."""
    return {"records": records} if records else {}


def give_back(reservation: Reservation, rows: int) -> Reservation:
    """Give `rows` of a reservation back. Returns what is left of it; giving more than it holds gives it all."""
    rows = min(rows, reservation.rows)
    if rows <= 0:
        return reservation
    windows().give_rows(_name(reservation.workspace_id), reservation.second, rows)
    return replace(reservation, rows=reservation.rows - rows)


def rows_used(workspace_id: str, limit: int) -> int:
    """Rows of the last hour."""
    return _ask(workspace_id, 0, limit).used


@dataclass(frozen=True, slots=True)
class Gauge:
    """How much of a limit is used. `next_at`: when the first part of it comes free; `resets_at`: when all of it is, if
    nothing more is used. None where nothing is used."""

    limit: int
    used: int
    window_seconds: int
    next_at: datetime | None
    resets_at: datetime | None

    @property
    def left(self) -> int:
        """What can still be used now; 0 where a limit was lowered below what is used."""
        return max(0, self.limit - self.used)

    @property
    def near(self) -> bool:
        """Whether people are warned."""
        return self.used >= limits.USAGE_WARN_SHARE * self.limit


def gauges(actor: Actor, passage: Passage) -> dict[str, Gauge]:
    """`requests` of the minute and `rows` of the hour; `passage` is that of the request that asks."""
    held, name = actor.limits, _name(actor.workspace_id)
    used = rows_used(actor.workspace_id, held.rows_per_hour)
    all_requests, first_rows, all_rows = identity.ends(actor.workspace_id, name)
    first_rows, all_rows = (first_rows, all_rows) if used else (None, None)
    asked = held.requests_per_minute - passage.remaining
    return {
        "requests": Gauge(
            held.requests_per_minute,
            asked,
            limits.RATE_WINDOW_SECONDS,
            _moment(passage.reset if asked else None),
            _moment(all_requests if asked else None),
        ),
        "rows": Gauge(
            held.rows_per_hour, used, limits.ROWS_WINDOW_SECONDS, _moment(first_rows), _moment(all_rows)
        ),
    }


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _name(workspace_id: str) -> str:
    return f"rowsmith:{{{workspace_id}}}:rows"


def _first(actor: Actor, rows: int, limit: int) -> RowsAnswer:
    """The answer to a request for rows, which may be what its place in the minute is asked for with."""
    if actor.entry is not None and actor.entry.passage is None:
        answer = actor.entry.take_rows(_name(actor.workspace_id), rows, limit)
        if answer.state != "unknown":
            return answer
    return _ask(actor.workspace_id, rows, limit)


def _ask(workspace_id: str, rows: int, limit: int) -> RowsAnswer:
    name = _name(workspace_id)
    answer = windows().take_rows(name, rows, limit)
    if answer.state == "unknown":
        windows().seed_rows(name, _from_audit(workspace_id))
        answer = windows().take_rows(name, rows, limit)
    return answer


def _from_audit(workspace_id: str) -> list[tuple[int, int]]:
    """The hour's rows by second, from the audit trail: what Redis knew before it was emptied.

    Rows given back since are counted here too, so that the hour is never exceeded, only perhaps not filled.
    """
    since = clock.now() - timedelta(seconds=limits.ROWS_WINDOW_SECONDS + 1)
    statement = (
        select(AuditEntry.at, AuditEntry.rows, AuditEntry.details)
        .where(AuditEntry.workspace_id == workspace_id, AuditEntry.at >= since, AuditEntry.rows > 0)
        .order_by(AuditEntry.at)
    )
    seconds: dict[int, int] = {}
    with reading() as session:
        for at, rows, details in session.execute(statement):
            second = int(at.timestamp())
            seconds[second] = seconds.get(second, 0) + rows + (details or {}).get("records", 0)
    return list(seconds.items())
