"""Which rows a push has, and which of them were delivered, by their numbers in the ledger.

A push of rows has 1 to `count` of each table; a retry has those rows of the first push that are marked with it, and
spans of rows that were never sent (`pending` of its tables); an undo has the delivered rows of the push it undoes. All
three number a table's rows alike, from 1, and none keeps a list: a window of numbers at a time is worked out from
spans and exceptions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
from sqlalchemy import ColumnElement, and_, or_, select
from sqlalchemy.orm import Session

from webapp import limits
from webapp.models import Push, PushRange, PushRow

Numbers = np.ndarray
Span = tuple[int, int]
"""Row numbers from one to another, both included."""
_THERE: Final = ("delivered", "undone")  # of a PushRow: the target had it


def first_of(session: Session, push: Push) -> Push:
    """The push whose rows a retry or an undo has: itself for one that is neither."""
    while push.of_id is not None:
        push = session.get_one(Push, push.of_id)
    return push


def count_of(push: Push, table: int) -> int:
    """The highest number that a row of a table can have."""
    return int(push.tables[table]["count"])


def belonging(session: Session, push: Push, table: int, first: int, last: int) -> Numbers:
    """The numbers between two (both included) that a push has of a table, ascending."""
    if push.kind == "push":
        return np.arange(first, min(last, count_of(push, table)) + 1, dtype=np.int64)
    if push.of_id is None:
        return _numbers([])  # of a push that was removed since
    if push.kind == "retry":
        home = first_of(session, push)
        taken = select(PushRow.row).where(
            PushRow.push_id == home.id, PushRow.retried_by == push.id, *_within(PushRow, table, first, last)
        )
        marked = _numbers(session.scalars(taken).all())
        return np.union1d(marked, unsent(push, table, first, last))
    undone = session.get_one(Push, push.of_id)
    found = delivered(session, undone, table, first, last)
    for earlier in _undos(session, undone, push.id):
        found = np.setdiff1d(found, delivered(session, earlier, table, first, last), assume_unique=True)
    for later in retries(session, undone):
        if later.id > push.id:  # it brought its rows when this undo was over
            found = np.setdiff1d(found, belonging(session, later, table, first, last), assume_unique=True)
    return found


def pending_of(push: Push, table: int) -> list[Span]:
    """The rows of a retry that had never been sent when it was asked for."""
    return [(first, last) for first, last in push.tables[table].get("pending") or ()]


def unsent(push: Push, table: int, first: int, last: int) -> Numbers:
    """The numbers between two that `pending_of` holds, ascending."""
    parts = [
        np.arange(max(first, low), min(last, high) + 1, dtype=np.int64)
        for low, high in pending_of(push, table)
        if low <= last and high >= first
    ]
    return np.concatenate(parts) if parts else _numbers([])


def sent_as(session: Session, push: Push, table: int, numbers: Sequence[int]) -> dict[int, str]:
    """By which key a target tells some rows of a push apart. A row that is sent again because nobody knows of it keeps
    the key that it had: who honours keys has it once."""
    place = f"{table}." if table else ""
    keys = {number: f"{push.id}-{place}{number}" for number in numbers}
    if push.kind == "retry" and keys:
        held = _unknown_as(session, push, table, min(keys), max(keys))
        keys |= {number: key for number, key in held.items() if number in keys}
    return keys


def _unknown_as(session: Session, retry: Push, table: int, first: int, last: int) -> dict[int, str]:
    home = first_of(session, retry)
    found = select(PushRow.row, PushRow.native).where(
        PushRow.push_id == home.id, PushRow.retried_by == retry.id, PushRow.state == "unknown", PushRow.native != "",
        *_within(PushRow, table, first, last),
    )  # fmt: skip
    return dict(session.execute(found).all())


def spans_of(session: Session, push_id: str, table: int, first: int = 1, last: int | None = None) -> list[Span]:
    """The ranges of a table's rows that have their end, those that touch the numbers between two, ascending."""
    found = select(PushRange.first, PushRange.last).where(
        PushRange.push_id == push_id, PushRange.table == table, PushRange.last >= first
    )
    if last is not None:
        found = found.where(PushRange.first <= last)
    return [(row.first, row.last) for row in session.execute(found.order_by(PushRange.first))]


def ended(session: Session, push: Push, table: int, first: int, last: int) -> Numbers:
    """The numbers between two that a push has and that have their end, ascending."""
    parts = [
        belonging(session, push, table, max(first, low), min(last, high))
        for low, high in spans_of(session, push.id, table, first, last)
    ]
    return np.concatenate(parts) if parts else _numbers([])


def delivered(session: Session, push: Push, table: int, first: int, last: int) -> Numbers:
    """The numbers between two that a push brought to the target (an undo: took out of it), ascending."""
    found = ended(session, push, table, first, last)
    bad = select(PushRow.row).where(PushRow.push_id == push.id, *_within(PushRow, table, first, last))
    bad = bad.where(PushRow.state.not_in(_THERE))
    return np.setdiff1d(found, _numbers(session.scalars(bad).all()), assume_unique=True)


def undone(session: Session, push: Push, table: int, first: int, last: int) -> Numbers:
    """The numbers between two that undos have taken out of the target again."""
    parts = [delivered(session, one, table, first, last) for one in _undos(session, push)]
    return np.unique(np.concatenate(parts)) if parts else _numbers([])


def retries(session: Session, push: Push) -> list[Push]:
    """The retries of a push's rows, in the order they were asked for."""
    home = first_of(session, push)
    return list(session.scalars(select(Push).where(Push.of_id == home.id, Push.kind == "retry").order_by(Push.id)))


def unsettled(session: Session, push: Push) -> list[Push]:
    """The first push and its retries that ended with a chunk whose commit is in doubt, apart from `push` itself."""
    home = first_of(session, push)
    family = (home, *retries(session, home))
    return [one for one in family if one.unsettled is not None and one.id != push.id]


def upwards(session: Session, push: Push, table: int, after: int, most: int) -> Numbers:
    """The next numbers of a push above one, at most so many, ascending. Empty at the end of the table."""
    return _gathered(_windows_up(after + 1, count_of(push, table)), session, push, table, most)


def downwards(session: Session, push: Push, table: int, before: int, most: int) -> Numbers:
    """The next numbers of a push below one, at most so many, descending."""
    return _gathered(_windows_down(before - 1), session, push, table, most, down=True)


def _gathered(
    windows: Iterator[tuple[int, int]], session: Session, push: Push, table: int, most: int, down: bool = False
) -> Numbers:
    parts: list[Numbers] = []
    held = 0
    for first, last in windows:
        found = belonging(session, push, table, first, last)
        parts.append(found[::-1] if down else found)
        held += len(found)
        if held >= most:
            break
    return np.concatenate(parts)[:most] if parts else _numbers([])


def _windows_up(first: int, last: int) -> Iterator[tuple[int, int]]:
    for start in range(first, last + 1, limits.PUSH_WINDOW_ROWS):
        yield start, min(start + limits.PUSH_WINDOW_ROWS - 1, last)


def _windows_down(last: int) -> Iterator[tuple[int, int]]:
    for end in range(last, 0, -limits.PUSH_WINDOW_ROWS):
        yield max(1, end - limits.PUSH_WINDOW_ROWS + 1), end


def _undos(session: Session, push: Push, before: str | None = None) -> list[Push]:
    """The undos that took rows of a push, or of its retries, out of the target: those made before another one."""
    home = first_of(session, push)
    family = select(Push.id).where(or_(Push.id == home.id, and_(Push.of_id == home.id, Push.kind == "retry")))
    found = select(Push).where(Push.kind == "undo", Push.of_id.in_(family)).order_by(Push.id)
    return list(session.scalars(found.where(Push.id < before) if before else found))


# --- Spans ------------------------------------------------------------------------------------------------------


def spans(numbers: Numbers) -> list[Span]:
    """Ascending numbers as spans."""
    if not len(numbers):
        return []
    breaks = np.flatnonzero(np.diff(numbers) > 1)
    firsts, lasts = numbers[np.r_[0, breaks + 1]], numbers[np.r_[breaks, len(numbers) - 1]]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


def size(parts: Iterable[Span]) -> int:
    """How many numbers spans hold, which do not overlap."""
    return sum(last - first + 1 for first, last in parts)


def joined(parts: Iterable[Span]) -> list[Span]:
    """Spans put together where they touch, ascending."""
    found: list[Span] = []
    for first, last in sorted(parts):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


def without(parts: Iterable[Span], others: Iterable[Span]) -> list[Span]:
    """What spans hold that others do not, ascending."""
    left = iter(joined(others))
    found: list[Span] = []
    other = next(left, None)
    for first, last in joined(parts):
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


def _within(model: type[PushRow], table: int, first: int, last: int) -> tuple[ColumnElement[bool], ...]:
    return model.table == table, model.row >= first, model.row <= last


def _numbers(rows: object) -> Numbers:
    return np.asarray(rows, dtype=np.int64)
