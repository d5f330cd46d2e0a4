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
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Final

from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from webapp import clock, limits
from webapp.extensions import reading
from webapp.models import Push, PushLine, PushRange
from webapp.services import ledger_entries, ledger_rows
from webapp.services.ledger_entries import Bad, Chunk

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
            ledger_entries.write_bad(session, push, chunk.table, bad)
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
            ledger_entries.write_bad(session, push, chunk.table, bad)
            ledger_entries.close(session, push, chunk)
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
            ledger_entries.drop(session, push, self.doubt)
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
            count = ledger_entries.close_unknown(session, push, chunk, IN_DOUBT, keys)
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
            ledger_entries.amend(session, push, table, bad)
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
            self._lines.append({"at": clock.now(), "text": ledger_entries.line(text)})
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
            ledger_entries.write_bad(session, push, self.doubt.table, self._late)
            ledger_entries.close(session, push, self.doubt)
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


def next_numbers(push: Push, table: int, beyond: tuple[int, int] | None, most: int) -> ledger_rows.Numbers:
    """The next rows of a push to be sent: upwards, in an undo downwards. `beyond` is what `Book.reach` says."""
    with reading() as session:
        if push.kind == "undo":
            top = ledger_rows.count_of(push, table) + 1
            return ledger_rows.downwards(session, push, table, beyond[0] if beyond else top, most)
        return ledger_rows.upwards(session, push, table, beyond[1] if beyond else 0, most)
