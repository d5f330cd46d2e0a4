"""Group the rows of a push that did not arrive by reason, and separate expected from unexpected failures.

A failure is expected if the row contains injected invalid data: the target was supposed to reject it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from webapp.errors import ApiError
from webapp.extensions import db
from webapp.pushes.models import Push, PushRow
from webapp.pushes.schemas import RetryInput
from webapp.pushes.services import completion, pushes, retries
from webapp.pushes.services import rows as pushes_rows
from webapp.pushes.services.ledger.read import RowEnd, row_end

_STATES: Final = ("failed", "unknown")
_SCAN: Final = (
    200_000  # chosen: rows that are compared with the injected data; generating them takes a few seconds
)
_BLOCK: Final = 10_000  # chosen: rows of one such comparison
_OPEN: Final = 50_000  # chosen: rows that are grouped while the push is running and the page refreshes often


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of one table that did not arrive for the same reason. `expected`: all of them contain injected invalid
    data. `row` is the first of them."""

    table: int
    state: str
    code: str
    native: str
    column: str
    status_code: int | None
    expected: bool
    count: int
    row: int
    message: str

    @property
    def key(self) -> dict[str, Any]:
        """The values that select this group, as query parameters."""
        chosen = {"table": self.table, "state": self.state, "code": self.code, "native": self.native}
        chosen |= {"column": self.column, "status": self.status_code or 0, "expected": int(self.expected)}
        return chosen


@dataclass(frozen=True, slots=True)
class Selection:
    """A group as a page asks for it."""

    table: int
    state: str
    code: str
    native: str
    column: str
    status: int
    expected: bool

    def conditions(self, push: Push) -> tuple[Any, ...]:
        """Return the conditions for its rows, apart from `expected`."""
        return (
            PushRow.push_id == push.id,
            PushRow.table == self.table,
            PushRow.state == self.state,
            PushRow.code == self.code,
            PushRow.native == self.native,
            func.coalesce(PushRow.column, "") == self.column,
            func.coalesce(PushRow.status_code, 0) == self.status,
        )


def groups(push: Push) -> list[Group]:
    """Return the reasons, unexpected ones first, then the most frequent first.

    While the push is running, at most `_OPEN` rows are counted and injected data is not looked for. After the end, at
    most `_SCAN` rows are compared with it; the failures beyond are treated as unexpected.
    """
    session = db.session()
    if push.ended and completion.has_bad(push):
        found = _separated(session, push)
    else:
        found = [
            Group(table, state, code, native, column, status, False, count, row, message)
            for table, state, code, native, column, status, count, row, message in session.execute(
                _counted(push)
            )
        ]
    return sorted(found, key=lambda one: (one.expected, -one.count, one.table, one.code, one.column))


def _counted(push: Push) -> Any:
    wanted = select(PushRow).where(PushRow.push_id == push.id, PushRow.state.in_(_STATES))
    rows = (wanted if push.ended else wanted.limit(_OPEN)).subquery().c
    kind = (
        rows.table_no,
        rows.state,
        rows.code,
        rows.native,
        func.coalesce(rows.column_name, ""),
        rows.status_code,
    )
    return select(*kind, func.count(), func.min(rows.row_no), func.min(rows.message)).group_by(*kind)


def _separated(session: Session, push: Push) -> list[Group]:
    """Group the rows one by one, because injected data is only found by generating the rows again."""
    found: dict[tuple[Any, ...], list[Any]] = {}
    for row, expected in _judged(session, push, (PushRow.push_id == push.id, PushRow.state.in_(_STATES))):
        kind = (row.table, row.state, row.code, row.native, row.column or "", row.status_code, expected)
        held = found.setdefault(kind, [0, row.row, row.message])
        held[0] += 1
    return [Group(*kind, *held) for kind, held in found.items()]


def _judged(session: Session, push: Push, conditions: tuple[Any, ...]) -> Iterator[tuple[RowEnd, bool]]:
    """Yield rows of the ledger in order, and whether each contains injected invalid data."""
    wanted = select(PushRow).where(*conditions).order_by(PushRow.table, PushRow.row)
    scanned, injected = 0, _Injected(push)
    after = (-1, 0)
    while True:
        beyond = (PushRow.table > after[0]) | ((PushRow.table == after[0]) & (PushRow.row > after[1]))
        block = [row_end(row) for row in session.scalars(wanted.where(beyond).limit(_BLOCK))]
        if not block:
            return
        after = (block[-1].table, block[-1].row)
        known = injected.of(block) if scanned < _SCAN else [False] * len(block)
        scanned += len(block)
        yield from zip(block, known, strict=True)


class _Injected:
    """Finds the rows of a push that contain injected invalid data; none if its pinned versions no longer exist."""

    def __init__(self, push: Push) -> None:
        self._push = push
        self._makers: Any = None
        if completion.has_bad(push):
            given = [one.get("given") for one in push.tables]
            try:
                self._makers = pushes_rows.makers_of(push.pins, push.request["ask"], given)
            except ApiError:
                self._makers = None

    def of(self, block: list[RowEnd]) -> list[bool]:
        found = [False] * len(block)
        if self._makers is None:
            return found
        for place, one in enumerate(self._push.tables):
            at = [number for number, row in enumerate(block) if row.table == place]
            if not at:
                continue
            fields = {each["field"] for each in one["columns"] if each.get("field")}
            numbers = np.array([block[number].row for number in at], np.int64) - 1 + one["offset"]
            bad = self._makers[one.get("recipe", 0)].bad_rows(numbers.astype(np.uint64), fields)
            for number, is_bad in zip(at, bad.tolist(), strict=True):
                found[number] = is_bad
        return found


def rows_of(push: Push, chosen: Selection, after: int, limit: int) -> list[RowEnd]:
    """Return the rows of a group above a row number, ascending, at most `limit`."""
    conditions = (*chosen.conditions(push), PushRow.row > after)
    if not completion.has_bad(push):
        wanted = select(PushRow).where(*conditions).order_by(PushRow.row).limit(limit)
        return [row_end(row) for row in db.session.scalars(wanted)]
    found: list[RowEnd] = []
    for row, expected in _judged(db.session(), push, conditions):
        if expected == chosen.expected:
            found.append(row)
            if len(found) == limit:
                break
    return found


def repaired_values(
    push: Push, tables: list[dict[str, Any]], ask: RetryInput, ends: list[RowEnd]
) -> list[dict[str, Any]]:
    """Return the values that a retry would send for some rows. `tables` are those of `retries.repaired`."""
    again = Push(tables=tables, pins=push.pins, request={"ask": retries.asked_again(push, ask)}, kind="retry")
    return pushes.values_of(again, ends)
