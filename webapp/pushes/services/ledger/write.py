"""The runner's hand in the ledger: one fenced transaction for each chunk, right before its commit at the target.

    book.load()                          # what the ledger says; after a crash `book.doubt` is the chunk to settle
    book.intend(chunk, bad)              # outcome of the chunk before this one, intent of this one
    target.commit()
    book.landed()                        # known here, with what became of its rows; written with the next chunk, or by
    book.close()

`Push.intent` holds what a next attempt must know: `{"chunk": the chunk in hand, "steps": {name: state}}`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Final

import numpy as np
from sqlalchemy import CursorResult, delete, func, insert, select, update
from sqlalchemy.orm import Session

from webapp import clock, limits
from webapp.extensions import reading
from webapp.pushes.models import Push, PushLine, PushRange, PushRow
from webapp.pushes.services.ledger import read


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows sent in one transaction of the target. `first` and `last` are the lowest and highest number, `rows` how
    many the push has between them; of those `failed` were refused, of `unknown` nobody knows. `proof` is what a target
    is asked with afterwards; over HTTP `keyed` says that rows went under keys of their own, `repeatable` that they may
    go again."""

    table: int
    first: int
    last: int
    rows: int
    failed: int = 0
    proof: dict[str, Any] = field(default_factory=dict)
    unknown: int = 0

    def as_json(self) -> dict[str, Any]:
        """As it stands in `Push.intent`."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Bad:
    """A row that was not simply delivered, and why. Texts are cut and hold no sensitive value. `state` is one of
    failed, unknown, delivered; `attempts` are those of this push."""

    row: int
    code: str
    message: str
    native: str = ""
    column: str | None = None
    key: Mapping[str, Any] | None = None
    ms: int | None = None
    attempts: int = 1
    status_code: int | None = None
    state: str = "failed"


def write_bad(session: Session, push: Push, table: int, bad: Sequence[Bad]) -> None:
    """A `PushRow` for each of some rows, in its own state."""
    if bad:
        rows = [{"push_id": push.id, "table": table, **asdict(one)} for one in bad]
        session.execute(insert(PushRow), rows)


def amend(session: Session, push: Push, table: int, bad: Sequence[Bad]) -> None:
    """A `PushRow` for delivered rows that something is to be said of; what was said of them before is replaced. Those
    of a retry are the first push's too, which may have brought some of them itself."""
    if not bad:
        return
    if push.of_id is None:
        _amend(session, push, table, bad)
        return
    rows = [one.row for one in bad]
    own = set(read.belonging(session, push, table, min(rows), max(rows)).tolist())
    _amend(session, push, table, [one for one in bad if one.row in own])
    _amend(session, read.first_of(session, push), table, bad)


def _amend(session: Session, push: Push, table: int, bad: Sequence[Bad]) -> None:
    numbers = PushRow.row.in_([one.row for one in bad])
    mine = (PushRow.push_id == push.id, PushRow.table == table, PushRow.state == "delivered", numbers)
    held = select(PushRow.row, PushRow.attempts, PushRow.retried_by).where(*mine)
    kept = {row: {"attempts": attempts, "retried_by": by} for row, attempts, by in session.execute(held)}
    session.execute(delete(PushRow).where(*mine), execution_options=_QUIET)
    whose = {"push_id": push.id, "table": table, "retried_by": None}
    rows = [{**whose, **asdict(one), "state": "delivered", **kept.get(one.row, {})} for one in bad]
    if rows:
        session.execute(insert(PushRow), rows)


def line(text: str) -> str:
    """A text as one line of the log."""
    return " ".join(text.split())[: limits.PUSH_LINE_CHARS]


def drop(session: Session, push: Push, chunk: Chunk) -> None:
    """Forget a chunk that did not take place: its rows have no end yet."""
    session.execute(delete(PushRow).where(*_of(push.id, chunk)), execution_options=_QUIET)


def close(session: Session, push: Push, chunk: Chunk) -> None:
    """Write the end of a chunk's rows: those without a `PushRow` were delivered. Moves the counts of `push`, which must
    be a row of this session, and of the push that a retry or an undo is of."""
    if not chunk.rows:
        return
    _stretch(session, push.id, chunk)
    push.delivered += chunk.rows - chunk.failed - chunk.unknown
    push.failed += chunk.failed
    push.unknown += chunk.unknown
    if push.of_id is not None:
        home = read.first_of(session, push)
        session.flush()
        session.refresh(home, with_for_update=True)  # two retries may move its counts at once
        (_close_retried if push.kind == "retry" else _close_undone)(session, push, home, chunk)


def close_unknown(
    session: Session, push: Push, chunk: Chunk, message: str, keys: Mapping[int, Any] | None = None
) -> int:
    """Write that nobody knows whether a chunk was committed. Returns how many rows are in doubt."""
    numbers = read.belonging(session, push, chunk.table, chunk.first, chunk.last).tolist()
    refused = set(session.scalars(select(PushRow.row).where(*_of(push.id, chunk))).all())
    sent_as = read.sent_as(session, push, chunk.table, numbers) if chunk.proof.get("keyed") else {}
    doubt = [
        Bad(row, UNKNOWN, message, sent_as.get(row, ""), key=(keys or {}).get(row), state="unknown")
        for row in numbers
        if row not in refused
    ]
    write_bad(session, push, chunk.table, doubt)
    close(session, push, replace(chunk, unknown=chunk.unknown + len(doubt)))
    return len(doubt)


def can_settle(push: Push, chunk: Chunk) -> bool:
    """Whether the target can be asked later what became of a chunk. Over HTTP it cannot, and an undo is repeated."""
    return push.kind != "undo" and bool(chunk.proof) and "keyed" not in chunk.proof


def settle(session: Session, push: Push, chunk: Chunk, arrived: bool, retry: Push) -> int:
    """Write what became of the chunk of `push` whose commit was in doubt: its unknown rows were delivered, or failed.
    Delivered ones are taken from `retry`, which has them in hand. Returns how many rows that were."""
    home = read.first_of(session, push)
    values: dict[str, str | None] = dict(_NOT_ARRIVED)
    if arrived:
        values = {"state": "delivered", "code": "", "message": _ARRIVED}
    count = 0
    for owner in {push.id: push, home.id: home}.values():
        session.refresh(owner, with_for_update=True)
        theirs = _in_doubt(owner.id, chunk)
        if arrived and owner is home:
            retry.total -= _held(session, theirs, retry)
            values["retried_by"] = None if push is home else push.id
        done = session.execute(update(PushRow).where(*theirs).values(**values), execution_options=_QUIET)
        assert isinstance(done, CursorResult)  # what an update gives
        count = done.rowcount
        owner.unknown -= count
        if arrived:
            owner.delivered += count
        else:
            owner.failed += count
    push.unsettled = None
    return count


def leave_unknown(session: Session, push: Push, chunk: Chunk, retry: Push) -> None:
    """The rows of a chunk in doubt stay unknown, and `retry` does not send them."""
    theirs = _in_doubt(read.first_of(session, push).id, chunk)
    retry.total -= _held(session, theirs, retry)
    session.execute(
        update(PushRow).where(*theirs, PushRow.retried_by == retry.id).values(retried_by=None),
        execution_options=_QUIET,
    )


def _in_doubt(push_id: str, chunk: Chunk) -> tuple[Any, ...]:
    return (*_of(push_id, chunk), PushRow.state == "unknown", PushRow.code == UNKNOWN)


def _held(session: Session, rows: tuple[Any, ...], retry: Push) -> int:
    counted = select(func.count()).select_from(PushRow).where(*rows, PushRow.retried_by == retry.id)
    return session.scalar(counted) or 0


UNKNOWN: Final = "unknown"
"""The code of a row whose chunk was being committed when the connection was lost."""
_ARRIVED: Final = (
    "The connection was lost during the commit. The target confirmed later that the row had arrived."
)
_NOT_ARRIVED: Final = {
    "state": "failed",
    "code": "interrupted",
    "message": "The connection was lost during the commit. The target confirmed later that the row had not arrived.",
}
_QUIET = {"synchronize_session": False}
_RETOLD = ("state", "status_code", "code", "native", "column", "message", "ms")


def _of(push_id: str, chunk: Chunk) -> tuple[Any, ...]:
    return (
        PushRow.push_id == push_id,
        PushRow.table == chunk.table,
        PushRow.row >= chunk.first,
        PushRow.row <= chunk.last,
    )


def _stretch(session: Session, push_id: str, chunk: Chunk) -> None:
    """The table's range reaches over the chunk: upwards in a push, downwards in an undo."""
    held = read.spans_of(session, push_id, chunk.table)
    ends = [*(end for span in held for end in span), chunk.first, chunk.last]
    _cover(session, push_id, chunk.table, [(min(ends), max(ends))])


def _cover(session: Session, push_id: str, table: int, spans: Sequence[read.Span]) -> None:
    """The rows of some spans have their end: they become one with the ranges they touch."""
    first, last = spans[0][0] - 1, spans[-1][1] + 1
    held = read.spans_of(session, push_id, table, first, last)
    mine = (
        PushRange.push_id == push_id,
        PushRange.table == table,
        PushRange.last >= first,
        PushRange.first <= last,
    )
    session.execute(delete(PushRange).where(*mine), execution_options=_QUIET)
    rows = [
        {"push_id": push_id, "table": table, "first": low, "last": high}
        for low, high in read.joined([*held, *spans])
    ]
    session.execute(insert(PushRange), rows)


def _close_retried(session: Session, push: Push, home: Push, chunk: Chunk) -> None:
    """The rows that a retry had in hand, in the ledger of the push they belong to."""
    theirs = (*_of(home.id, chunk), PushRow.retried_by == push.id)
    before = _by_state(session, theirs)
    again = session.scalars(select(PushRow).where(*_of(push.id, chunk))).all()
    fresh = read.unsent(push, chunk.table, chunk.first, chunk.last)
    new = set(fresh.tolist())
    session.execute(
        update(PushRow).where(*theirs).values(state="delivered", attempts=PushRow.attempts + 1),
        execution_options=_QUIET,
    )
    for row in again:
        if row.row in new:
            continue
        told = {name: getattr(row, name) for name in _RETOLD}
        told["attempts"] = PushRow.attempts - 1 + row.attempts
        session.execute(
            update(PushRow).where(*theirs, PushRow.row == row.row).values(**told), execution_options=_QUIET
        )
    after = _by_state(session, theirs)
    moved = Counter(after)
    moved.subtract(before)
    moved.update(row.state for row in again if row.row in new)
    moved["delivered"] += len(new) - sum(row.row in new for row in again)
    for name in ("delivered", "failed", "unknown"):
        setattr(home, name, getattr(home, name) + moved[name])
    if new:
        _cover(session, home.id, chunk.table, read.spans(fresh))
    columns = ("table", "row", "attempts", "key", *_RETOLD)
    rows = [{name: getattr(row, name) for name in columns} for row in again if row.row in new]
    if rows:
        whose = {"push_id": home.id, "retried_by": push.id}
        session.execute(insert(PushRow), [{**row, **whose} for row in rows])


def _close_undone(session: Session, push: Push, home: Push, chunk: Chunk) -> None:
    """Rows that an undo took out are delivered no more: neither by the first push, nor by the retry that brought
    them. Those that have a `PushRow` there are told one by one."""
    gone = chunk.rows - chunk.failed - chunk.unknown
    home.delivered, home.undone = home.delivered - gone, home.undone + gone
    taken = read.delivered(session, push, chunk.table, chunk.first, chunk.last)
    for retry in read.retries(session, home):
        theirs = read.delivered(session, retry, chunk.table, chunk.first, chunk.last)
        count = len(np.intersect1d(taken, theirs, assume_unique=True))
        retry.delivered, retry.undone = retry.delivered - count, retry.undone + count
    left = select(PushRow.row).where(*_of(push.id, chunk))
    mine = (*_of(home.id, chunk), PushRow.state == "delivered", PushRow.row.not_in(left))
    session.execute(update(PushRow).where(*mine).values(state="undone"), execution_options=_QUIET)


def _by_state(session: Session, where: tuple[Any, ...]) -> dict[str, int]:
    found = select(PushRow.state, func.count()).where(*where).group_by(PushRow.state)
    return dict(session.execute(found).all())


IN_DOUBT: Final = (
    "It is not known whether this row arrived: the connection was lost while it was being committed."
)


class Book:
    """The ledger of one push, written by whoever holds its lease. `transaction` is the lease's, which fences."""

    def __init__(self, push_id: str, transaction: Callable[[], AbstractContextManager[Session]]) -> None:
        self.push_id = push_id
        self._transaction = transaction
        self._lines: list[dict[str, Any]] = []
        self._said = float("-inf")
        self.push: Push
        self.doubt: Chunk | None = None
        self._landed = False
        self._late: Sequence[Bad] = ()
        self._answered: int | None = None

    def load(self) -> None:
        """Read what the ledger says now; what was not written is forgotten, but for lines."""
        with reading() as session:
            self.push = session.get_one(Push, self.push_id)
            last = select(func.max(PushLine.number)).where(PushLine.push_id == self.push_id)
            self._number: int = session.scalar(last) or 0
            ranges = select(PushRange).where(PushRange.push_id == self.push_id)
            self._ranges = {one.table: (one.first, one.last) for one in session.scalars(ranges)}
        note = self.push.intent or {}
        self.doubt = Chunk(**note["chunk"]) if note.get("chunk") else None
        self._steps: dict[str, Any] = dict(note.get("steps") or {})
        self._landed, self._late = False, ()

    @property
    def in_doubt(self) -> bool:
        """Whether a commit is under way of which nobody knows the end."""
        return self.doubt is not None and not self._landed

    @property
    def ended_rows(self) -> int:
        """Rows that have their end, as far as it is written."""
        return self.push.delivered + self.push.failed + self.push.unknown

    def reach(self, table: int) -> tuple[int, int] | None:
        """The lowest and highest number of a table's rows that have their end or are in hand; None before the
        first."""
        held = self._ranges.get(table)
        if self.doubt is None or self.doubt.table != table or not self.doubt.rows:
            return held
        first, last = self.doubt.first, self.doubt.last
        return (min(held[0], first), max(held[1], last)) if held else (first, last)

    # --- Chunks -----------------------------------------------------------------------------------------------

    def intend(self, chunk: Chunk, bad: Sequence[Bad]) -> None:
        """The chunk before is delivered; this one is about to be committed, apart from its bad rows."""
        with self._transaction() as session:
            push = self._outcome(session)
            write_bad(session, push, chunk.table, bad)
            self._note(push, chunk)
        self._written(push)

    def landed(self, chunk: Chunk | None = None, bad: Sequence[Bad] = ()) -> None:
        """The chunk in hand is committed. `chunk` is what took place of it, where that is known only now, with those
        of its rows that were not simply delivered."""
        if chunk is not None:
            self.doubt = chunk
        self._landed, self._late = True, bad

    def refused(self, chunk: Chunk, bad: Sequence[Bad]) -> None:
        """All rows of a chunk failed: nothing is to be committed, and their end is known now."""
        with self._transaction() as session:
            push = self._outcome(session)
            write_bad(session, push, chunk.table, bad)
            close(session, push, chunk)
            self._note(push, None)
        self._stretch(chunk)
        self._written(push)

    def close(self) -> None:
        """Write the outcome of the chunk in hand, if it landed, and the lines that wait."""
        if self._landed or self._lines:
            with self._transaction() as session:
                push = self._outcome(session)
                self._note(push, None if self._landed else self.doubt)
            self._written(push)

    def retract(self) -> None:
        """The chunk in hand did not take place: its rows have no end yet."""
        assert self.doubt is not None
        with self._transaction() as session:
            push = session.get_one(Push, self.push_id)
            drop(session, push, self.doubt)
            self._note(push, None)
            self._write_lines(session)
        self._landed, self._late = False, ()
        self._written(push)

    def unknown(self, keys: Mapping[int, Any] | None = None) -> int:
        """Nobody knows whether the chunk in hand took place. Returns how many rows are in doubt."""
        assert self.doubt is not None
        chunk = self.doubt
        with self._transaction() as session:
            push = session.get_one(Push, self.push_id)
            count = close_unknown(session, push, chunk, IN_DOUBT, keys)
            self._point(push)
            self._note(push, None)
            self._write_lines(session)
        self._stretch(chunk)
        self._written(push)
        return count

    def amend(self, table: int, bad: Sequence[Bad], name: str, state: Any) -> None:
        """Say of delivered rows what went wrong with them afterwards, and how far the step that found it got."""
        self._steps[name] = state
        with self._transaction() as session:
            push = self._outcome(session)
            amend(session, push, table, bad)
            self._note(push, None)
        self._written(push)

    # --- Steps and lines --------------------------------------------------------------------------------------

    def step(self, name: str) -> Any:
        """How far a step got, None before it began."""
        return self._steps.get(name)

    def mark(self, name: str, state: Any) -> None:
        """Write how far a step got."""
        self._steps[name] = state
        with self._transaction() as session:
            push = self._outcome(session)
            self._note(push, None if self._landed else self.doubt)
        self._written(push)

    def say(self, text: str) -> None:
        """A line of the log; written with the next chunk, or by `close`."""
        number = self._number + len(self._lines)
        if number < limits.PUSH_LINES:
            self._lines.append({"at": clock.now(), "text": line(text)})
        self._said = time.monotonic()

    def say_sometimes(self, text: Callable[[], str]) -> None:
        """A line that may be left out: of those, one every PUSH_LINE_SECONDS."""
        if time.monotonic() - self._said >= limits.PUSH_LINE_SECONDS:
            self.say(text())

    @property
    def status_code(self) -> int | None:
        """What delivered rows are answered with; others are told one by one."""
        return self.push.status_code or self._answered

    def usual_status(self, codes: Iterable[int | None]) -> int | None:
        """The same, learnt from the first answers; written with the next chunk."""
        if self.status_code is None:
            self._answered = next((code for code in codes if code is not None), None)
        return self.status_code

    # --- Inside a transaction ---------------------------------------------------------------------------------

    def _outcome(self, session: Session) -> Push:
        """The row of this session, with the outcome of a chunk that landed and the lines that wait."""
        push = session.get_one(Push, self.push_id)
        push.status_code = push.status_code or self._answered
        if self._landed and self.doubt is not None:
            write_bad(session, push, self.doubt.table, self._late)
            close(session, push, self.doubt)
        self._point(push)
        self._write_lines(session)
        return push

    def _note(self, push: Push, chunk: Chunk | None) -> None:
        push.intent = {"chunk": chunk.as_json() if chunk else None, "steps": dict(self._steps)}
        self._noted = chunk

    def _written(self, push: Push) -> None:
        """After the transaction: what was written is what we know."""
        if self._landed and self.doubt is not None:
            self._stretch(self.doubt)
        self.push = push
        self.doubt, self._landed, self._late = self._noted, False, ()
        self._number += len(self._lines)
        self._lines = []

    def _stretch(self, chunk: Chunk) -> None:
        if not chunk.rows:
            return
        held = self._ranges.get(chunk.table, (chunk.first, chunk.last))
        self._ranges[chunk.table] = (min(held[0], chunk.first), max(held[1], chunk.last))

    def _write_lines(self, session: Session) -> None:
        if self._lines:
            rows = [
                {"push_id": self.push_id, "number": self._number + place, **line}
                for place, line in enumerate(self._lines, 1)
            ]
            session.execute(insert(PushLine), rows)

    def _point(self, push: Push) -> None:
        ended = push.delivered + push.failed + push.unknown
        points = list(push.progress or ())
        if not ended or (points and points[-1][1] == ended):
            return
        points.append([_seconds(push.started_at), ended])
        if len(points) > limits.PUSH_PROGRESS_POINTS:
            points = [*points[:-1:2], points[-1]]
        push.progress = points


def _seconds(since: datetime | None) -> float:
    return round((clock.now() - since).total_seconds(), 2) if since else 0.0


def next_numbers(push: Push, table: int, beyond: tuple[int, int] | None, most: int) -> read.Numbers:
    """The next rows of a push to be sent: upwards, in an undo downwards. `beyond` is what `Book.reach` says."""
    with reading() as session:
        if push.kind == "undo":
            top = read.count_of(push, table) + 1
            return read.downwards(session, push, table, beyond[0] if beyond else top, most)
        return read.upwards(session, push, table, beyond[1] if beyond else 0, most)
