"""Write the ledger of a push: one fenced transaction for each chunk, right before its commit at the target.

    ledger.load()                          # after a crash, `ledger.current_chunk` is the chunk to resolve
    ledger.write_intent(chunk, entries)    # the outcome of the previous chunk and the intent of this one
    target.commit()
    ledger.mark_committed()                # the next chunk, or `flush`, writes the outcome
    ledger.flush()

`Push.intent` contains what the next attempt must know: `{"chunk": the current chunk, "steps": {name: state}}`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import numpy as np
from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.orm import Session, defer
from sqlalchemy.orm.attributes import set_committed_value

from webapp import clock, limits
from webapp.extensions import affected_row_count, read_session
from webapp.pushes.models import Push, PushLine, PushRange, PushRow
from webapp.pushes.services.ledger import read


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows sent in one transaction of the target. `first` and `last` are the lowest and highest row number, and `rows`
    is the number of rows of the push between them. Of those, `failed` were rejected and the outcome of `unknown` is
    unknown. `proof` is the token that identifies the transaction when the target is queried later. Over HTTP, `keyed`
    means that the rows had idempotency keys, and `repeatable` that they may be sent again."""

    table: int
    first: int
    last: int
    rows: int
    failed: int = 0
    proof: dict[str, Any] = field(default_factory=dict)
    unknown: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the chunk as it is stored in `Push.intent`."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """The outcome and reason of a row that was not simply delivered. Texts are truncated and contain no sensitive
    values. `state` is failed, unknown or delivered; `attempts` counts the attempts of this push."""

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


def write_entries(session: Session, push: Push, table: int, entries: Sequence[LedgerEntry]) -> None:
    """Insert a `PushRow` for each of some rows, each with its own state."""
    if entries:
        rows = [{"push_id": push.id, "table": table, **asdict(item)} for item in entries]
        session.execute(insert(PushRow), rows)


def write_late_failures(session: Session, push: Push, table: int, entries: Sequence[LedgerEntry]) -> None:
    """Insert or replace the `PushRow` of delivered rows that need a note. Notes on the rows of a retry are also added
    to the first push, which may have delivered some of the rows itself."""
    if not entries:
        return
    if push.of_id is None:
        _replace_entries(session, push, table, entries)
        return
    rows = [item.row for item in entries]
    own = set(read.row_numbers(session, push, table, min(rows), max(rows)).tolist())
    _replace_entries(session, push, table, [item for item in entries if item.row in own])
    _replace_entries(session, read.original_push(session, push), table, entries)


def _replace_entries(session: Session, push: Push, table: int, entries: Sequence[LedgerEntry]) -> None:
    numbers = PushRow.row.in_([item.row for item in entries])
    conditions = (PushRow.push_id == push.id, PushRow.table == table, PushRow.state == "delivered", numbers)
    statement = select(PushRow.row, PushRow.attempts, PushRow.retried_by).where(*conditions)
    stored = {
        row: {"attempts": attempts, "retried_by": by} for row, attempts, by in session.execute(statement)
    }
    session.execute(delete(PushRow).where(*conditions), execution_options=_NO_SYNC)
    owner = {"push_id": push.id, "table": table, "retried_by": None}
    rows = [{**owner, **asdict(item), "state": "delivered", **stored.get(item.row, {})} for item in entries]
    if rows:
        session.execute(insert(PushRow), rows)


def single_line(text: str) -> str:
    """Return a text as one line of the log."""
    return " ".join(text.split())[: limits.PUSH_LINE_CHARS]


def discard_chunk(session: Session, push: Push, chunk: Chunk) -> None:
    """Discard a chunk that was not committed: its rows are not processed yet."""
    session.execute(delete(PushRow).where(*_rows_of_chunk(push.id, chunk)), execution_options=_NO_SYNC)


def write_chunk_outcome(session: Session, push: Push, chunk: Chunk) -> None:
    """Write the outcome of a chunk's rows: those without a `PushRow` were delivered. Update the counts of `push`, which
    must be loaded in this session, and of the push that a retry or an undo belongs to."""
    if not chunk.rows:
        return
    _extend_range(session, push.id, chunk)
    push.delivered += chunk.rows - chunk.failed - chunk.unknown
    push.failed += chunk.failed
    push.unknown += chunk.unknown
    if push.of_id is not None:
        original = read.original_push(session, push)
        session.flush()
        session.refresh(original, with_for_update=True)  # Two retries may update its counts concurrently
        (_write_retried_outcome if push.kind == "retry" else _write_undone_outcome)(
            session, push, original, chunk
        )


def write_unknown_outcome(
    session: Session, push: Push, chunk: Chunk, message: str, keys: Mapping[int, Any] | None = None
) -> int:
    """Record that it is unknown whether a chunk was committed. Return the number of rows in doubt."""
    numbers = read.row_numbers(session, push, chunk.table, chunk.first, chunk.last).tolist()
    rejected = set(session.scalars(select(PushRow.row).where(*_rows_of_chunk(push.id, chunk))).all())
    idempotency_keys = (
        read.idempotency_keys(session, push, chunk.table, numbers) if chunk.proof.get("keyed") else {}
    )
    entries = [
        LedgerEntry(
            row, UNKNOWN, message, idempotency_keys.get(row, ""), key=(keys or {}).get(row), state="unknown"
        )
        for row in numbers
        if row not in rejected
    ]
    write_entries(session, push, chunk.table, entries)
    write_chunk_outcome(session, push, replace(chunk, unknown=chunk.unknown + len(entries)))
    return len(entries)


def can_resolve_later(push: Push, chunk: Chunk) -> bool:
    """Return whether the target can be queried later for the outcome of a chunk. This is impossible over HTTP, and an
    undo is repeated instead."""
    return push.kind != "undo" and bool(chunk.proof) and "keyed" not in chunk.proof


def resolve_chunk(session: Session, push: Push, chunk: Chunk, is_committed: bool, retry: Push) -> int:
    """Write the outcome of the chunk of `push` whose commit was in doubt: its unknown rows were delivered or failed.
    Delivered rows are removed from `retry`, which was about to send them. Return the number of those rows."""
    original = read.original_push(session, push)
    values: dict[str, str | None] = dict(_NOT_DELIVERED_VALUES)
    if is_committed:
        values = {"state": "delivered", "code": "", "message": _DELIVERED_MESSAGE}
    count = 0
    for owner in {push.id: push, original.id: original}.values():
        session.refresh(owner, with_for_update=True)
        in_doubt = _rows_in_doubt(owner.id, chunk)
        if is_committed and owner is original:
            retry.total -= _retried_count(session, in_doubt, retry)
            values["retried_by"] = None if push is original else push.id
        result = session.execute(
            update(PushRow).where(*in_doubt).values(**values), execution_options=_NO_SYNC
        )
        count = affected_row_count(result)
        owner.unknown -= count
        if is_committed:
            owner.delivered += count
        else:
            owner.failed += count
    push.unsettled = None
    return count


def exclude_from_retry(session: Session, push: Push, chunk: Chunk, retry: Push) -> None:
    """Leave the rows of a chunk in doubt unknown, and exclude them from `retry`."""
    in_doubt = _rows_in_doubt(read.original_push(session, push).id, chunk)
    retry.total -= _retried_count(session, in_doubt, retry)
    session.execute(
        update(PushRow).where(*in_doubt, PushRow.retried_by == retry.id).values(retried_by=None),
        execution_options=_NO_SYNC,
    )


def _rows_in_doubt(push_id: str, chunk: Chunk) -> tuple[Any, ...]:
    return (*_rows_of_chunk(push_id, chunk), PushRow.state == "unknown", PushRow.code == UNKNOWN)


def _retried_count(session: Session, rows: tuple[Any, ...], retry: Push) -> int:
    counted = select(func.count()).select_from(PushRow).where(*rows, PushRow.retried_by == retry.id)
    return session.scalar(counted) or 0


UNKNOWN: Final = "unknown"
"""The code of a row whose chunk was being committed when the connection was lost."""
_DELIVERED_MESSAGE: Final = (
    "The connection was lost during the commit. The target confirmed later that the row had arrived."
)
_NOT_DELIVERED_VALUES: Final = {
    "state": "failed",
    "code": "interrupted",
    "message": "The connection was lost during the commit. The target confirmed later that the row had not arrived.",
}
NO_TOKEN: Final = "no_token"  # noqa: S105 - the name of a reason
"""The code of a row that was not sent because no OAuth token could be fetched for it."""
_NO_SYNC = {"synchronize_session": False}
_OUTCOME_COLUMNS = ("state", "status_code", "code", "native", "column", "message", "ms")


def _rows_of_chunk(push_id: str, chunk: Chunk) -> tuple[Any, ...]:
    return (
        PushRow.push_id == push_id,
        PushRow.table == chunk.table,
        PushRow.row >= chunk.first,
        PushRow.row <= chunk.last,
    )


def _extend_range(session: Session, push_id: str, chunk: Chunk) -> None:
    """Extend the table's range over the chunk: upwards in a push, downwards in an undo."""
    ranges = read.processed_spans(session, push_id, chunk.table)
    ends = [*(end for span in ranges for end in span), chunk.first, chunk.last]
    _mark_processed(session, push_id, chunk.table, [(min(ends), max(ends))])


def _mark_processed(session: Session, push_id: str, table: int, spans: Sequence[read.Span]) -> None:
    """Mark the rows of some spans as processed, merging them with adjacent ranges."""
    first, last = spans[0][0] - 1, spans[-1][1] + 1
    ranges = read.processed_spans(session, push_id, table, first, last)
    overlapping = (
        PushRange.push_id == push_id,
        PushRange.table == table,
        PushRange.last >= first,
        PushRange.first <= last,
    )
    session.execute(delete(PushRange).where(*overlapping), execution_options=_NO_SYNC)
    rows = [
        {"push_id": push_id, "table": table, "first": low, "last": high}
        for low, high in read.merge_spans([*ranges, *spans])
    ]
    session.execute(insert(PushRange), rows)


def _write_retried_outcome(session: Session, push: Push, original: Push, chunk: Chunk) -> None:
    """Write the outcome of a retry's rows to the ledger of the push that they belong to."""
    retried = (*_rows_of_chunk(original.id, chunk), PushRow.retried_by == push.id)
    before = _counts_by_state(session, retried)
    recorded = session.scalars(select(PushRow).where(*_rows_of_chunk(push.id, chunk))).all()
    new_numbers = read.pending_row_numbers(push, chunk.table, chunk.first, chunk.last)
    new = set(new_numbers.tolist())
    session.execute(
        update(PushRow).where(*retried).values(state="delivered", attempts=PushRow.attempts + 1),
        execution_options=_NO_SYNC,
    )
    for row in recorded:
        if row.row in new:
            continue
        values = {name: getattr(row, name) for name in _OUTCOME_COLUMNS}
        values["attempts"] = PushRow.attempts - 1 + row.attempts
        session.execute(
            update(PushRow).where(*retried, PushRow.row == row.row).values(**values),
            execution_options=_NO_SYNC,
        )
    after = _counts_by_state(session, retried)
    changes = Counter(after)
    changes.subtract(before)
    changes.update(row.state for row in recorded if row.row in new)
    changes["delivered"] += len(new) - sum(row.row in new for row in recorded)
    for name in ("delivered", "failed", "unknown"):
        setattr(original, name, getattr(original, name) + changes[name])
    if new:
        _mark_processed(session, original.id, chunk.table, read.to_spans(new_numbers))
    columns = ("table", "row", "attempts", "key", *_OUTCOME_COLUMNS)
    rows = [{name: getattr(row, name) for name in columns} for row in recorded if row.row in new]
    if rows:
        owner = {"push_id": original.id, "retried_by": push.id}
        session.execute(insert(PushRow), [{**row, **owner} for row in rows])


def _write_undone_outcome(session: Session, push: Push, original: Push, chunk: Chunk) -> None:
    """Mark rows that an undo deleted as no longer delivered, both in the first push and in the retry that delivered
    them. Rows that have a `PushRow` there are updated individually."""
    count_deleted = chunk.rows - chunk.failed - chunk.unknown
    original.delivered, original.undone = original.delivered - count_deleted, original.undone + count_deleted
    deleted = read.delivered_row_numbers(session, push, chunk.table, chunk.first, chunk.last)
    for retry in read.retries(session, original):
        delivered = read.delivered_row_numbers(session, retry, chunk.table, chunk.first, chunk.last)
        count = len(np.intersect1d(deleted, delivered, assume_unique=True))
        retry.delivered, retry.undone = retry.delivered - count, retry.undone + count
    not_deleted = select(PushRow.row).where(*_rows_of_chunk(push.id, chunk))
    conditions = (
        *_rows_of_chunk(original.id, chunk),
        PushRow.state == "delivered",
        PushRow.row.not_in(not_deleted),
    )
    session.execute(update(PushRow).where(*conditions).values(state="undone"), execution_options=_NO_SYNC)


def _counts_by_state(session: Session, where: tuple[Any, ...]) -> dict[str, int]:
    found = select(PushRow.state, func.count()).where(*where).group_by(PushRow.state)
    return dict(session.execute(found).all())


IN_DOUBT_MESSAGE: Final = (
    "It is not known whether this row was delivered, because the connection was lost while it was being "
    "committed."
)


_UNCHANGED_COLUMNS: Final = ("tables", "request", "pins", "leaks")
"""Columns of a push that its own ledger does not change."""


class LedgerWriter:
    """The ledger of one push, written by the holder of its lease. `transaction` is the lease's and is fenced."""

    def __init__(self, push_id: str, transaction: Callable[[], AbstractContextManager[Session]]) -> None:
        self.push_id = push_id
        self._transaction = transaction
        self._lines: list[dict[str, Any]] = []
        self._last_line_at = float("-inf")
        self.push: Push
        self.current_chunk: Chunk | None = None
        self._is_committed = False
        self._late_entries: Sequence[LedgerEntry] = ()
        self._first_status: int | None = None

    def load(self) -> None:
        """Load the current ledger. Unwritten changes are discarded, except log lines."""
        with read_session() as session:
            self.push = session.get_one(Push, self.push_id)
            # Stored separately, because a transaction that is rolled back expires the columns of `push`.
            self._unchanged = {name: getattr(self.push, name) for name in _UNCHANGED_COLUMNS}
            last = select(func.max(PushLine.number)).where(PushLine.push_id == self.push_id)
            self._number: int = session.scalar(last) or 0
            ranges = select(PushRange).where(PushRange.push_id == self.push_id)
            self._ranges = {item.table: (item.first, item.last) for item in session.scalars(ranges)}
        intent = self.push.intent or {}
        self.current_chunk = Chunk(**intent["chunk"]) if intent.get("chunk") else None
        self._steps: dict[str, Any] = dict(intent.get("steps") or {})
        self._is_committed, self._late_entries = False, ()

    @property
    def has_chunk_in_doubt(self) -> bool:
        """Whether a commit was started and its outcome is unknown."""
        return self.current_chunk is not None and not self._is_committed

    @property
    def processed_count(self) -> int:
        """The number of processed rows that are already written to the ledger."""
        return self.push.delivered + self.push.failed + self.push.unknown

    def processed_range(self, table: int) -> tuple[int, int] | None:
        """Return the lowest and highest row number of a table that is processed or in the current chunk, or None before
        the first."""
        reached = self._ranges.get(table)
        if self.current_chunk is None or self.current_chunk.table != table or not self.current_chunk.rows:
            return reached
        first, last = self.current_chunk.first, self.current_chunk.last
        return (min(reached[0], first), max(reached[1], last)) if reached else (first, last)

    # --- Chunks -----------------------------------------------------------------------------------------------

    def write_intent(self, chunk: Chunk, entries: Sequence[LedgerEntry]) -> None:
        """Record that the previous chunk was delivered and that this one, except its invalid rows, is about to be
        committed."""
        with self._transaction() as session:
            push = self._push_with_outcome(session)
            write_entries(session, push, chunk.table, entries)
            self._set_intent(push, chunk)
        self._after_write(push)

    def mark_committed(self, chunk: Chunk | None = None, entries: Sequence[LedgerEntry] = ()) -> None:
        """Record that the current chunk was committed. If the outcome is known only after the commit, `chunk` is
        the part that was committed, and `entries` contains those of its rows that were not simply delivered."""
        if chunk is not None:
            self.current_chunk = chunk
        self._is_committed, self._late_entries = True, entries

    def write_rejected_chunk(self, chunk: Chunk, entries: Sequence[LedgerEntry]) -> None:
        """Record that all rows of a chunk failed, so there is nothing to commit."""
        with self._transaction() as session:
            push = self._push_with_outcome(session)
            write_entries(session, push, chunk.table, entries)
            write_chunk_outcome(session, push, chunk)
            self._set_intent(push, None)
        self._extend_range(chunk)
        self._after_write(push)

    def flush(self) -> None:
        """Write the outcome of the current chunk, if it was committed, and the pending log lines."""
        if self._is_committed or self._lines:
            with self._transaction() as session:
                push = self._push_with_outcome(session)
                self._set_intent(push, None if self._is_committed else self.current_chunk)
            self._after_write(push)

    def discard_chunk(self) -> None:
        """Discard the current chunk, which was not committed: its rows are not processed yet."""
        assert self.current_chunk is not None
        with self._transaction() as session:
            push = self._load_push(session)
            discard_chunk(session, push, self.current_chunk)
            self._set_intent(push, None)
            self._write_lines(session)
        self._is_committed, self._late_entries = False, ()
        self._after_write(push)

    def write_unknown_outcome(self, keys: Mapping[int, Any] | None = None) -> int:
        """Record that it is unknown whether the current chunk was committed. Return the number of rows in doubt."""
        assert self.current_chunk is not None
        chunk = self.current_chunk
        with self._transaction() as session:
            push = self._load_push(session)
            count = write_unknown_outcome(session, push, chunk, IN_DOUBT_MESSAGE, keys)
            self._add_progress_point(push)
            self._set_intent(push, None)
            self._write_lines(session)
        self._extend_range(chunk)
        self._after_write(push)
        return count

    def rows_without_token(self, table: int, limit: int) -> list[int]:
        """Return the numbers of up to `limit` rows that were not sent because there was no token for them."""
        conditions = (PushRow.push_id == self.push_id, PushRow.table == table, PushRow.state == "failed")
        with read_session() as session:
            found = select(PushRow.row).where(*conditions, PushRow.code == NO_TOKEN, PushRow.attempts == 0)
            return list(session.scalars(found.order_by(PushRow.row).limit(limit)))

    def replace_outcomes(self, table: int, outcomes: Sequence[LedgerEntry]) -> None:
        """Replace the outcomes of rows that have a `PushRow`, in this push and in the one that a retry belongs to.
        Attempts are added."""
        with self._transaction() as session:
            push = self._push_with_outcome(session)
            session.flush()
            for owner in {
                push.id: push,
                (original := read.original_push(session, push)).id: original,
            }.values():
                session.refresh(owner, with_for_update=True)
                for outcome in outcomes:
                    conditions = (
                        PushRow.push_id == owner.id,
                        PushRow.table == table,
                        PushRow.row == outcome.row,
                    )
                    before = session.scalars(select(PushRow.state).where(*conditions)).one()
                    values = {name: getattr(outcome, name) for name in _OUTCOME_COLUMNS}
                    values["attempts"] = PushRow.attempts + outcome.attempts
                    session.execute(
                        update(PushRow).where(*conditions).values(**values), execution_options=_NO_SYNC
                    )
                    setattr(owner, before, getattr(owner, before) - 1)
                    setattr(owner, outcome.state, getattr(owner, outcome.state) + 1)
            self._add_progress_point(push)
            self._set_intent(push, None if self._is_committed else self.current_chunk)
        self._after_write(push)

    def write_late_failures(self, table: int, entries: Sequence[LedgerEntry], name: str, state: Any) -> None:
        """Record a later failure on delivered rows, and the progress of the step that found it."""
        self._steps[name] = state
        with self._transaction() as session:
            push = self._push_with_outcome(session)
            write_late_failures(session, push, table, entries)
            self._set_intent(push, None)
        self._after_write(push)

    # --- Steps and lines --------------------------------------------------------------------------------------

    def step_progress(self, name: str) -> Any:
        """Return the progress of a step, or None before it began."""
        return self._steps.get(name)

    def save_step_progress(self, name: str, state: Any) -> None:
        """Write the progress of a step."""
        self._steps[name] = state
        with self._transaction() as session:
            push = self._push_with_outcome(session)
            self._set_intent(push, None if self._is_committed else self.current_chunk)
        self._after_write(push)

    def log(self, text: str) -> None:
        """Add a log line, which the next chunk or `write_chunk_outcome` writes."""
        number = self._number + len(self._lines)
        if number < limits.PUSH_LINES:
            self._lines.append({"at": clock.now(), "text": single_line(text)})
        self._last_line_at = time.monotonic()

    def log_throttled(self, text: Callable[[], str]) -> None:
        """Add an optional log line. At most one every PUSH_LINE_SECONDS is kept."""
        if time.monotonic() - self._last_line_at >= limits.PUSH_LINE_SECONDS:
            self.log(text())

    @property
    def status_code(self) -> int | None:
        """The HTTP status of delivered rows; deviating rows have a `PushRow`."""
        return self.push.status_code or self._first_status

    def set_usual_status(self, codes: Iterable[int | None]) -> int | None:
        """Set the HTTP status of delivered rows, based on the first responses. The next chunk writes it."""
        if self.status_code is None:
            self._first_status = next((code for code in codes if code is not None), None)
        return self.status_code

    # --- Inside a transaction ---------------------------------------------------------------------------------

    def _load_push(self, session: Session) -> Push:
        """Return the push in this session. Columns that do not change while it runs are not read again: with hundreds
        of tables, they are many times as large as the rest, and every chunk loads the push."""
        push = session.get_one(
            Push, self.push_id, options=[defer(getattr(Push, name)) for name in _UNCHANGED_COLUMNS]
        )
        for name in _UNCHANGED_COLUMNS:
            set_committed_value(push, name, self._unchanged[name])
        return push

    def _push_with_outcome(self, session: Session) -> Push:
        """Return the push, loaded in this session, after adding the outcome of a committed chunk and the pending log
        lines."""
        push = self._load_push(session)
        push.status_code = push.status_code or self._first_status
        if self._is_committed and self.current_chunk is not None:
            write_entries(session, push, self.current_chunk.table, self._late_entries)
            write_chunk_outcome(session, push, self.current_chunk)
        self._add_progress_point(push)
        self._write_lines(session)
        return push

    def _set_intent(self, push: Push, chunk: Chunk | None) -> None:
        push.intent = {"chunk": chunk.as_json() if chunk else None, "steps": dict(self._steps)}
        self._next_chunk = chunk

    def _after_write(self, push: Push) -> None:
        """Update the state in memory after a transaction."""
        if self._is_committed and self.current_chunk is not None:
            self._extend_range(self.current_chunk)
        self.push = push
        self.current_chunk, self._is_committed, self._late_entries = self._next_chunk, False, ()
        self._number += len(self._lines)
        self._lines = []

    def _extend_range(self, chunk: Chunk) -> None:
        if not chunk.rows:
            return
        current = self._ranges.get(chunk.table, (chunk.first, chunk.last))
        self._ranges[chunk.table] = (min(current[0], chunk.first), max(current[1], chunk.last))

    def _write_lines(self, session: Session) -> None:
        if self._lines:
            rows = [
                {"push_id": self.push_id, "number": self._number + place, **line}
                for place, line in enumerate(self._lines, 1)
            ]
            session.execute(insert(PushLine), rows)

    def _add_progress_point(self, push: Push) -> None:
        ended = push.delivered + push.failed + push.unknown
        points = list(push.progress or ())
        if not ended or (points and points[-1][1] == ended):
            return
        since = push.started_at
        points.append([round((clock.now() - since).total_seconds(), 2) if since else 0.0, ended])
        if len(points) > limits.PUSH_PROGRESS_POINTS:
            points = [*points[:-1:2], points[-1]]
        push.progress = points


def next_row_numbers(
    push: Push, table: int, processed_range: tuple[int, int] | None, limit: int
) -> read.Numbers:
    """Return the next rows of a push to be sent: ascending, or descending in an undo. `processed_range` is the result
    of `LedgerWriter.processed_range`."""
    with read_session() as session:
        if push.kind == "undo":
            top = read.row_count(push, table) + 1
            return read.row_numbers_before(
                session, push, table, processed_range[0] if processed_range else top, limit
            )
        return read.row_numbers_after(
            session, push, table, processed_range[1] if processed_range else 0, limit
        )
