"""Which rows a push has, and which of them were delivered, by their numbers in the ledger.

A push of rows has 1 to `count` of each table; a retry has those rows of the first push that are marked with it; an
undo has the delivered rows of the push it undoes. All three number a table's rows alike, from 1, and none keeps a
list: a window of numbers at a time is worked out from ranges and exceptions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session

from webapp import limits
from webapp.models import Push, PushRange, PushRow

Numbers = np.ndarray
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
        found = select(PushRow.row).where(
            PushRow.push_id == home.id, PushRow.retried_by == push.id, *_within(PushRow, table, first, last)
        )
        return _numbers(session.scalars(found.order_by(PushRow.row)).all())
    undone = session.get_one(Push, push.of_id)
    found = delivered(session, undone, table, first, last)
    for earlier in _undos(session, undone, push.id):
        found = np.setdiff1d(found, delivered(session, earlier, table, first, last), assume_unique=True)
    return found


def delivered(session: Session, push: Push, table: int, first: int, last: int) -> Numbers:
    """The numbers between two that a push brought to the target (an undo: took out of it), ascending."""
    ranges = session.execute(
        select(PushRange.first, PushRange.last)
        .where(PushRange.push_id == push.id, PushRange.table == table)
        .where(PushRange.last >= first, PushRange.first <= last)
    ).all()
    parts = [
        belonging(session, push, table, max(first, one.first), min(last, one.last))
        for one in sorted(ranges, key=lambda one: one.first)
    ]
    found = np.concatenate(parts) if parts else _numbers([])
    bad = select(PushRow.row).where(PushRow.push_id == push.id, *_within(PushRow, table, first, last))
    bad = bad.where(PushRow.state.not_in(_THERE))
    return np.setdiff1d(found, _numbers(session.scalars(bad).all()), assume_unique=True)


def undone(session: Session, push: Push, table: int, first: int, last: int) -> Numbers:
    """The numbers between two that undos have taken out of the target again."""
    parts = [delivered(session, one, table, first, last) for one in _undos(session, push)]
    return np.unique(np.concatenate(parts)) if parts else _numbers([])


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


def _within(model: type[PushRow], table: int, first: int, last: int) -> tuple[object, ...]:
    return model.table == table, model.row >= first, model.row <= last


def _numbers(rows: object) -> Numbers:
    return np.asarray(rows, dtype=np.int64)
