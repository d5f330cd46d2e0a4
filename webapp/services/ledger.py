"""What the ledger of a push says: its counts, its rows, its log, its rate. Written by `ledger_book`.

Delivered rows are ranges, all others a `PushRow` each, so a page of rows is put together from both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from webapp import clock, limits
from webapp.extensions import reading
from webapp.models import END_STATES, Push, PushLine, PushRow
from webapp.services import ledger_rows

ROW_STATES: Final = ("delivered", "failed", "unknown", "undone")


def counts(push: Push) -> dict[str, int]:
    """`{total, delivered, failed, unknown, pending, undone}` of a push: the total is the sum of the others. `undone`
    were delivered and taken out again by an undo; `delivered` of an undo itself are the rows it took out."""
    return _counts(push.total, push.delivered, push.failed, push.unknown, push.undone)


def _counts(total: int, delivered: int, failed: int, unknown: int, undone: int) -> dict[str, int]:
    return {
        "total": total,
        "delivered": delivered,
        "failed": failed,
        "unknown": unknown,
        "pending": total - delivered - failed - unknown - undone,
        "undone": undone,
    }


def waiting(status: str, retry_at: datetime | None, held: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return `{since, tries, reason, message, next_try_at, next_try_in_seconds}` of a push that waits for its target,
    None for any other."""
    if status != "running" or retry_at is None or held is None:
        return None
    told = {name: held[name] for name in ("since", "tries", "reason", "message")}
    seconds = max(0, round((retry_at - clock.now()).total_seconds()))
    return {**told, "next_try_at": clock.to_text(retry_at), "next_try_in_seconds": seconds}


def progress(push: Push) -> list[list[float]]:
    """Points of the rate chart: `[seconds since the start, rows that have their end]`, at most
    PUSH_PROGRESS_POINTS of them."""
    return list(push.progress or ())


# --- Followers ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class State:
    """What a follower is told of a push."""

    status: str
    attempt: int
    total: int
    delivered: int
    failed: int
    unknown: int
    undone: int
    error: dict[str, Any] | None
    retry_at: datetime | None = None
    held: dict[str, Any] | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing will change any more."""
        return self.status in END_STATES

    @property
    def mark(self) -> str:
        """What tells this state from the ones before it; the id of its event."""
        wait = f"-{self.retry_at.timestamp():.0f}" if self.retry_at else ""
        return f"{self.attempt}-{self.status}-{self.delivered}-{self.failed}-{self.unknown}-{self.undone}{wait}"

    def counts(self) -> dict[str, Any]:
        """The data of a `progress` event."""
        return {
            "status": self.status,
            "attempt": self.attempt,
            "counts": _counts(self.total, self.delivered, self.failed, self.unknown, self.undone),
            "waiting": waiting(self.status, self.retry_at, self.held),
        }

    def end(self) -> dict[str, Any]:
        """The data of the `end` event."""
        return {**self.counts(), "exit_code": None, "error": self.error}


def state(push_id: str) -> State | None:
    """The present state of a push; None when it is gone. A short read of its own."""
    columns = (
        Push.status,
        Push.attempt,
        Push.total,
        Push.delivered,
        Push.failed,
        Push.unknown,
        Push.undone,
        Push.error,
        Push.retry_at,
        Push.waiting,
    )
    with reading() as session:
        row = session.execute(select(*columns).where(Push.id == push_id)).one_or_none()
    return State(*row) if row is not None else None


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a push's log."""

    number: int
    at: datetime
    text: str


def lines(push_id: str, after: int = 0, limit: int = limits.PAGE_LIMIT_MAX) -> list[Line]:
    """The lines of a push's log whose number is above `after`, in order, at most `limit`. A short read of its own."""
    found = select(PushLine.number, PushLine.at, PushLine.text).where(
        PushLine.push_id == push_id, PushLine.number > after
    )
    with reading() as session:
        return [Line(*row) for row in session.execute(found.order_by(PushLine.number).limit(limit))]


def last_lines(push_id: str, limit: int) -> list[Line]:
    """The last lines of a push's log, in order. A short read of its own."""
    found = select(PushLine.number, PushLine.at, PushLine.text).where(PushLine.push_id == push_id)
    with reading() as session:
        rows = session.execute(found.order_by(PushLine.number.desc()).limit(limit)).all()
    return [Line(*row) for row in reversed(rows)]


# --- Rows ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowEnd:
    """What became of one row. `row` is counted from 1; what is not known of a row is None or empty."""

    table: int
    row: int
    state: str
    attempts: int = 1
    status_code: int | None = None
    code: str = ""
    native: str = ""
    column: str | None = None
    message: str = ""
    key: dict[str, Any] | None = None
    ms: int | None = None

    def as_json(self, tables: list[Any]) -> dict[str, Any]:
        """As the API shows it; `tables` are the push's."""
        return {
            "table": tables[self.table]["name"],
            "row": self.row,
            "state": self.state,
            "attempts": self.attempts,
            "status_code": self.status_code,
            "code": self.code,
            "native": self.native,
            "column": self.column,
            "message": self.message,
            "key": self.key,
            "ms": self.ms,
        }


def rows(
    push_id: str,
    *,
    state: str | None = None,
    table: int | None = None,
    after: tuple[int, int] = (0, 0),
    limit: int = limits.PAGE_LIMIT_DEFAULT,
) -> list[RowEnd]:
    """Rows of a push that have their end, in the order of (table, row), above `after`, at most `limit`.

    `state` is one of ROW_STATES; None: all. `failed`, `unknown` and `undone` are quick however large the push.
    """
    with reading() as session:
        push = session.get_one(Push, push_id)
        tables = range(len(push.tables)) if table is None else (table,)
        found: list[RowEnd] = []
        for place in tables:
            beyond = after[1] if place == after[0] else 0 if place > after[0] else None
            if beyond is None:
                continue
            missing = limit - len(found)
            if state in ("failed", "unknown"):
                found += _exceptions(session, push, place, beyond, missing, state)
            else:
                found += _ended(session, push, place, beyond, missing, state)
            if len(found) >= limit:
                break
    return found


def count_rows(push: Push, state: str | None = None) -> int:
    """How many rows `rows` has in all."""
    held = counts(push)
    return held["total"] - held["pending"] if state is None else held.get(state, 0)


def _exceptions(
    session: Session, push: Push, table: int, after: int, limit: int, state: str | None = None, last: int = 0
) -> list[RowEnd]:
    found = select(PushRow).where(PushRow.push_id == push.id, PushRow.table == table, PushRow.row > after)
    if state is not None:
        found = found.where(PushRow.state == state)
    if last:
        found = found.where(PushRow.row <= last)
    return [_row_end(row) for row in session.scalars(found.order_by(PushRow.row).limit(limit))]


def _row_end(row: PushRow) -> RowEnd:
    return RowEnd(
        row.table,
        row.row,
        row.state,
        row.attempts,
        row.status_code,
        row.code,
        row.native,
        row.column,
        row.message,
        row.key,
        row.ms,
    )


def _ended(
    session: Session, push: Push, table: int, after: int, limit: int, state: str | None
) -> list[RowEnd]:
    """Rows of every state but failed and unknown alone, a window of numbers at a time."""
    spans = ledger_rows.spans_of(session, push.id, table)
    found: list[RowEnd] = []
    if not spans:
        return found
    first, last = max(after + 1, spans[0][0]), spans[-1][1]
    while first <= last and len(found) < limit:
        end = min(last, first + limits.PUSH_WINDOW_ROWS - 1)
        found += _window(session, push, table, (first, end), limit - len(found), state)
        first = end + 1
    return found


def _window(
    session: Session, push: Push, table: int, window: tuple[int, int], limit: int, state: str | None
) -> list[RowEnd]:
    numbers = ledger_rows.ended(session, push, table, *window)
    odd = {
        one.row: one
        for one in _exceptions(session, push, table, window[0] - 1, len(numbers), None, window[1])
    }
    gone = set() if push.kind == "undo" else set(ledger_rows.undone(session, push, table, *window).tolist())
    found = []
    for number in numbers.tolist():
        end = odd.get(number) or RowEnd(table, number, "delivered", status_code=push.status_code)
        if number in gone and end.state == "delivered":
            end = replace(end, state="undone")
        if state in (None, end.state):
            found.append(end)
            if len(found) == limit:
                break
    return found
