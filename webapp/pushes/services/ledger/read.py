"""Read the ledger of a push: its counts, rows, log and rate. `ledger_book` writes it.

Delivered rows are stored as ranges, and all other rows as one `PushRow` each, so a page of rows combines both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

import numpy as np
from sqlalchemy import ColumnElement, and_, func, or_, select
from sqlalchemy.orm import Session

from webapp import clock, limits
from webapp.extensions import read_session
from webapp.pushes.models import Push, PushLine, PushRange, PushRow
from webapp.work.models import END_STATES

Numbers = np.ndarray
Span = tuple[int, int]
"""Row numbers from first to last, both included."""
_ARRIVED_STATES: Final = ("delivered", "undone")  # States of a `PushRow` whose row was in the target


def original_push(session: Session, push: Push) -> Push:
    """Return the push that a retry or an undo belongs to, or the push itself if it is neither."""
    while push.of_id is not None:
        push = session.get_one(Push, push.of_id)
    return push


def row_count(push: Push, table: int) -> int:
    """Return the highest possible row number of a table."""
    return int(push.tables[table]["count"])


def row_numbers(session: Session, push: Push, table: int, first: int, last: int) -> Numbers:
    """Return the row numbers of a table that belong to a push, between two numbers (both included), ascending."""
    if push.kind == "push":
        return np.arange(first, min(last, row_count(push, table)) + 1, dtype=np.int64)
    if push.of_id is None:
        return _as_array([])  # The push was removed in the meantime
    if push.kind == "retry":
        original = original_push(session, push)
        statement = select(PushRow.row).where(
            PushRow.push_id == original.id,
            PushRow.retried_by == push.id,
            *_in_range(PushRow, table, first, last),
        )
        retried = _as_array(session.scalars(statement).all())
        return np.union1d(retried, pending_row_numbers(push, table, first, last))
    undone_push = session.get_one(Push, push.of_id)
    found = delivered_row_numbers(session, undone_push, table, first, last)
    for earlier in _undos(session, undone_push, push.id):
        found = np.setdiff1d(
            found, delivered_row_numbers(session, earlier, table, first, last), assume_unique=True
        )
    for later in retries(session, undone_push):
        if later.id > push.id:  # The retry delivered its rows after this undo
            found = np.setdiff1d(found, row_numbers(session, later, table, first, last), assume_unique=True)
    return found


def pending_spans(push: Push, table: int) -> list[Span]:
    """Return the rows of a retry that had never been sent when the retry was requested."""
    return [(first, last) for first, last in push.tables[table].get("pending") or ()]


def pending_row_numbers(push: Push, table: int, first: int, last: int) -> Numbers:
    """Return the row numbers between two numbers that `pending_spans` contains, ascending."""
    parts = [
        np.arange(max(first, low), min(last, high) + 1, dtype=np.int64)
        for low, high in pending_spans(push, table)
        if low <= last and high >= first
    ]
    return np.concatenate(parts) if parts else _as_array([])


def idempotency_keys(session: Session, push: Push, table: int, numbers: Sequence[int]) -> dict[int, str]:
    """Return the idempotency keys of some rows of a push. A row that is sent again because its outcome is unknown keeps
    its key, so that a target that supports idempotency keys creates it only once."""
    prefix = f"{table}." if table else ""
    keys = {number: f"{push.id}-{prefix}{number}" for number in numbers}
    if push.kind == "retry" and keys:
        original = original_push(session, push)
        statement = select(PushRow.row, PushRow.native).where(
            PushRow.push_id == original.id, PushRow.retried_by == push.id, PushRow.state == "unknown",
            PushRow.native != "", *_in_range(PushRow, table, min(keys), max(keys)),
        )  # fmt: skip
        keys |= {number: key for number, key in session.execute(statement).all() if number in keys}
    return keys


def processed_spans(
    session: Session, push_id: str, table: int, first: int = 1, last: int | None = None
) -> list[Span]:
    """Return the ranges of processed rows of a table that overlap the numbers between two, ascending."""
    found = select(PushRange.first, PushRange.last).where(
        PushRange.push_id == push_id, PushRange.table == table, PushRange.last >= first
    )
    if last is not None:
        found = found.where(PushRange.first <= last)
    return [(row.first, row.last) for row in session.execute(found.order_by(PushRange.first))]


def processed_row_numbers(session: Session, push: Push, table: int, first: int, last: int) -> Numbers:
    """Return the processed row numbers of a push between two numbers, ascending."""
    parts = [
        row_numbers(session, push, table, max(first, low), min(last, high))
        for low, high in processed_spans(session, push.id, table, first, last)
    ]
    return np.concatenate(parts) if parts else _as_array([])


def delivered_row_numbers(session: Session, push: Push, table: int, first: int, last: int) -> Numbers:
    """Return the row numbers between two numbers that a push delivered to the target (an undo: deleted from it),
    ascending."""
    found = processed_row_numbers(session, push, table, first, last)
    bad = select(PushRow.row).where(PushRow.push_id == push.id, *_in_range(PushRow, table, first, last))
    bad = bad.where(PushRow.state.not_in(_ARRIVED_STATES))
    return np.setdiff1d(found, _as_array(session.scalars(bad).all()), assume_unique=True)


def has_undelivered_rows(session: Session, push: Push, table: int) -> bool:
    """Return whether a row of a table was processed without being delivered."""
    bad = select(PushRow.row).where(PushRow.push_id == push.id, PushRow.table == table)
    return session.scalar(bad.where(PushRow.state.not_in(_ARRIVED_STATES)).limit(1)) is not None


def final_delivered_row_numbers(session: Session, push: Push, table: int, count: int) -> Numbers | None:
    """Return the delivered row numbers of a table, ascending, or None until all `count` rows are processed."""
    if len(processed_row_numbers(session, push, table, 1, count)) < count:
        return None
    return delivered_row_numbers(session, push, table, 1, count)


def undone_row_numbers(session: Session, push: Push, table: int, first: int, last: int) -> Numbers:
    """Return the row numbers between two numbers that undos deleted from the target, ascending."""
    parts = [delivered_row_numbers(session, undo, table, first, last) for undo in _undos(session, push)]
    return np.unique(np.concatenate(parts)) if parts else _as_array([])


def retries(session: Session, push: Push) -> list[Push]:
    """Return the retries of a push, in the order in which they were requested."""
    original = original_push(session, push)
    return list(
        session.scalars(select(Push).where(Push.of_id == original.id, Push.kind == "retry").order_by(Push.id))
    )


def pushes_in_doubt(session: Session, push: Push) -> list[Push]:
    """Return the first push and its retries that ended with a chunk whose commit is in doubt, except `push` itself."""
    original = original_push(session, push)
    family = (original, *retries(session, original))
    return [item for item in family if item.unsettled is not None and item.id != push.id]


def row_numbers_after(session: Session, push: Push, table: int, after: int, limit: int) -> Numbers:
    """Return the next `limit` row numbers of a push above a number, ascending. Empty at the end of the table."""
    return _collect_row_numbers(
        _ascending_windows(after + 1, row_count(push, table)), session, push, table, limit
    )


def row_numbers_before(session: Session, push: Push, table: int, before: int, limit: int) -> Numbers:
    """Return the next `limit` row numbers of a push below a number, descending."""
    return _collect_row_numbers(_descending_windows(before - 1), session, push, table, limit, descending=True)


def _collect_row_numbers(
    windows: Iterator[tuple[int, int]],
    session: Session,
    push: Push,
    table: int,
    limit: int,
    descending: bool = False,
) -> Numbers:
    parts: list[Numbers] = []
    count = 0
    for first, last in windows:
        found = row_numbers(session, push, table, first, last)
        parts.append(found[::-1] if descending else found)
        count += len(found)
        if count >= limit:
            break
    return np.concatenate(parts)[:limit] if parts else _as_array([])


def _ascending_windows(first: int, last: int) -> Iterator[tuple[int, int]]:
    for start in range(first, last + 1, limits.PUSH_WINDOW_ROWS):
        yield start, min(start + limits.PUSH_WINDOW_ROWS - 1, last)


def _descending_windows(last: int) -> Iterator[tuple[int, int]]:
    for end in range(last, 0, -limits.PUSH_WINDOW_ROWS):
        yield max(1, end - limits.PUSH_WINDOW_ROWS + 1), end


def _undos(session: Session, push: Push, before: str | None = None) -> list[Push]:
    """Return the undos that deleted rows of a push, or of its retries, from the target; with `before`, only those
    created before it."""
    original = original_push(session, push)
    family = select(Push.id).where(
        or_(Push.id == original.id, and_(Push.of_id == original.id, Push.kind == "retry"))
    )
    found = select(Push).where(Push.kind == "undo", Push.of_id.in_(family)).order_by(Push.id)
    return list(session.scalars(found.where(Push.id < before) if before else found))


# --- Spans ------------------------------------------------------------------------------------------------------


def to_spans(numbers: Numbers) -> list[Span]:
    """Convert ascending numbers to spans."""
    if not len(numbers):
        return []
    breaks = np.flatnonzero(np.diff(numbers) > 1)
    firsts, lasts = numbers[np.r_[0, breaks + 1]], numbers[np.r_[breaks, len(numbers) - 1]]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


def count_in_spans(parts: Iterable[Span]) -> int:
    """Return how many numbers the spans contain. The spans must not overlap."""
    return sum(last - first + 1 for first, last in parts)


def merge_spans(parts: Iterable[Span]) -> list[Span]:
    """Merge adjacent spans, ascending."""
    found: list[Span] = []
    for first, last in sorted(parts):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


def subtract_spans(parts: Iterable[Span], others: Iterable[Span]) -> list[Span]:
    """Return the numbers in the first spans that are not in the others, ascending."""
    left = iter(merge_spans(others))
    found: list[Span] = []
    other = next(left, None)
    for first, last in merge_spans(parts):
        while other is not None and other[0] <= last:
            if other[1] >= first:
                if other[0] > first:
                    found.append((first, other[0] - 1))
                first = other[1] + 1
            if other[1] > last:
                break
            other = next(left, None)
        if first <= last:
            found.append((first, last))
    return found


def _in_range(model: type[PushRow], table: int, first: int, last: int) -> tuple[ColumnElement[bool], ...]:
    return model.table == table, model.row >= first, model.row <= last


def _as_array(rows: object) -> Numbers:
    return np.asarray(rows, dtype=np.int64)


ROW_STATES: Final = ("delivered", "failed", "unknown", "undone")


def counts(push: Push) -> dict[str, int]:
    """Return `{total, delivered, failed, unknown, pending, undone}` of a push: the total is the sum of the others.
    `undone` rows were delivered and later deleted by an undo; `delivered` of an undo itself are the rows that it
    deleted."""
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


def waiting_details(
    status: str, retry_at: datetime | None, stored: dict[str, Any] | None
) -> dict[str, Any] | None:
    """Return `{since, tries, reason, message, next_try_at, next_try_in_seconds}` of a push that waits for its target,
    None for any other."""
    if status != "running" or retry_at is None or stored is None:
        return None
    details = {name: stored[name] for name in ("since", "tries", "reason", "message")}
    seconds = max(0, round((retry_at - clock.now()).total_seconds()))
    return {**details, "next_try_at": clock.to_text(retry_at), "next_try_in_seconds": seconds}


def progress(push: Push) -> list[list[float]]:
    """Return the points of the rate chart, `[seconds since the start, rows processed]`, at most PUSH_PROGRESS_POINTS of
    them."""
    return list(push.progress or ())


# --- Followers ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PushState:
    """The state of a push that is streamed to its followers."""

    status: str
    attempt: int
    total: int
    delivered: int
    failed: int
    unknown: int
    undone: int
    error: dict[str, Any] | None
    retry_at: datetime | None = None
    pending: dict[str, Any] | None = None

    @property
    def is_final(self) -> bool:
        """Whether the state is final."""
        return self.status in END_STATES

    @property
    def event_id(self) -> str:
        """The id of this state's event, which differs from those of earlier states."""
        wait = f"-{self.retry_at.timestamp():.0f}" if self.retry_at else ""
        return (
            f"{self.attempt}-{self.status}-{self.delivered}-{self.failed}-{self.unknown}-{self.undone}{wait}"
        )

    def progress_data(self) -> dict[str, Any]:
        """The data of a `progress` event."""
        return {
            "status": self.status,
            "attempt": self.attempt,
            "counts": _counts(self.total, self.delivered, self.failed, self.unknown, self.undone),
            "waiting": waiting_details(self.status, self.retry_at, self.pending),
        }

    def end_data(self) -> dict[str, Any]:
        """The data of the `end` event."""
        return {**self.progress_data(), "exit_code": None, "error": self.error}


def state(push_id: str) -> PushState | None:
    """Return the current state of a push, or None if it no longer exists. Uses a separate short transaction."""
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
    with read_session() as session:
        row = session.execute(select(*columns).where(Push.id == push_id)).one_or_none()
    return PushState(*row) if row is not None else None


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a push's log."""

    number: int
    at: datetime
    text: str


def log_lines(push_id: str, after: int = 0, limit: int = limits.PAGE_LIMIT_MAX) -> list[LogLine]:
    """Return the log lines of a push whose number is above `after`, in order, at most `limit`. Uses a separate short
    transaction."""
    found = select(PushLine.number, PushLine.at, PushLine.text).where(
        PushLine.push_id == push_id, PushLine.number > after
    )
    with read_session() as session:
        return [LogLine(*row) for row in session.execute(found.order_by(PushLine.number).limit(limit))]


def last_log_lines(push_id: str, limit: int) -> list[LogLine]:
    """Return the last log lines of a push, in order. Uses a separate short transaction."""
    found = select(PushLine.number, PushLine.at, PushLine.text).where(PushLine.push_id == push_id)
    with read_session() as session:
        rows = session.execute(found.order_by(PushLine.number.desc()).limit(limit)).all()
    return [LogLine(*row) for row in reversed(rows)]


# --- Rows ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowResult:
    """The outcome of one row. `row` counts from 1; unknown attributes are None or empty."""

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
        """Return the outcome as the API shows it. `tables` are the push's."""
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
) -> list[RowResult]:
    """Return the processed rows of a push above `after`, ordered by (table, row), at most `limit`.

    `state` is one of ROW_STATES, or None for all. `failed`, `unknown` and `undone` are fast for pushes of any size.
    """
    with read_session() as session:
        push = session.get_one(Push, push_id)
        tables = range(len(push.tables)) if table is None else (table,)
        found: list[RowResult] = []
        for table_index in tables:
            after_row = after[1] if table_index == after[0] else 0 if table_index > after[0] else None
            if after_row is None:
                continue
            missing = limit - len(found)
            if state in ("failed", "unknown"):
                found += _recorded_rows(session, push, table_index, after_row, missing, state)
            else:
                found += _processed_rows(session, push, table_index, after_row, missing, state)
            if len(found) >= limit:
                break
    return found


def count_rows(push: Push, state: str | None = None) -> int:
    """Return the total number of rows that `rows` can return."""
    totals = counts(push)
    return totals["total"] - totals["pending"] if state is None else totals.get(state, 0)


def _recorded_rows(
    session: Session, push: Push, table: int, after: int, limit: int, state: str | None = None, last: int = 0
) -> list[RowResult]:
    found = select(PushRow).where(PushRow.push_id == push.id, PushRow.table == table, PushRow.row > after)
    if state is not None:
        found = found.where(PushRow.state == state)
    if last:
        found = found.where(PushRow.row <= last)
    return [row_result(row) for row in session.scalars(found.order_by(PushRow.row).limit(limit))]


def row_result(row: PushRow) -> RowResult:
    """Return a stored row of the ledger as the outcome of that row."""
    return RowResult(
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


def _processed_rows(
    session: Session, push: Push, table: int, after: int, limit: int, state: str | None
) -> list[RowResult]:
    """Return the rows of all states except failed and unknown, one window of numbers at a time."""
    spans = processed_spans(session, push.id, table)
    found: list[RowResult] = []
    if not spans:
        return found
    first, last = max(after + 1, spans[0][0]), spans[-1][1]
    while first <= last and len(found) < limit:
        end = min(last, first + limits.PUSH_WINDOW_ROWS - 1)
        numbers = processed_row_numbers(session, push, table, first, end)
        recorded = {
            row.row: row for row in _recorded_rows(session, push, table, first - 1, len(numbers), None, end)
        }
        deleted = (
            set()
            if push.kind == "undo"
            else set(undone_row_numbers(session, push, table, first, end).tolist())
        )
        for number in numbers.tolist():
            row = recorded.get(number) or RowResult(table, number, "delivered", status_code=push.status_code)
            if number in deleted and row.state == "delivered":
                row = replace(row, state="undone")
            if state in (None, row.state):
                found.append(row)
                if len(found) == limit:
                    break
        first = end + 1
    return found


@dataclass(slots=True)
class TableCounts:
    """The outcome of the rows of one table so far."""

    name: str
    target: str
    total: int
    delivered: int = 0
    failed: int = 0
    unknown: int = 0

    @property
    def pending(self) -> int:
        """Rows without an outcome."""
        return max(0, self.total - self.delivered - self.failed - self.unknown)


def counts_by_table(session: Session, push: Push) -> list[TableCounts]:
    """Return the outcome for each table of a push, in the order of sending."""
    found = [TableCounts(item["name"], item["target"], item["count"]) for item in push.tables]
    size = func.sum(PushRange.last - PushRange.first + 1)
    ended = select(PushRange.table, size).where(PushRange.push_id == push.id).group_by(PushRange.table)
    for table, rows in session.execute(ended):
        found[table].delivered = int(rows)
    states = select(PushRow.table, PushRow.state, func.count()).where(PushRow.push_id == push.id)
    for table, state, rows in session.execute(states.group_by(PushRow.table, PushRow.state)):
        if state != "delivered":
            found[table].delivered -= rows
        if state in ("failed", "unknown"):
            setattr(found[table], state, rows)
    return found
