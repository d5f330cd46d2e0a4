"""What is written of a chunk: inside a transaction that the caller fenced. Shared by the runner's book and by the end
of a push that no worker is left for.

A chunk's failed rows are written together with its intent: they are refused whatever becomes of the commit. Its
delivered rows are written when that is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import numpy as np
from sqlalchemy import CursorResult, delete, func, insert, select, update
from sqlalchemy.orm import Session

from webapp import limits
from webapp.models import Push, PushRange, PushRow
from webapp.services import ledger_rows


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
    own = set(ledger_rows.belonging(session, push, table, min(rows), max(rows)).tolist())
    _amend(session, push, table, [one for one in bad if one.row in own])
    _amend(session, ledger_rows.first_of(session, push), table, bad)


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
        home = ledger_rows.first_of(session, push)
        session.flush()
        session.refresh(home, with_for_update=True)  # two retries may move its counts at once
        (_close_retried if push.kind == "retry" else _close_undone)(session, push, home, chunk)


def close_unknown(
    session: Session, push: Push, chunk: Chunk, message: str, keys: Mapping[int, Any] | None = None
) -> int:
    """Write that nobody knows whether a chunk was committed. Returns how many rows are in doubt."""
    numbers = ledger_rows.belonging(session, push, chunk.table, chunk.first, chunk.last).tolist()
    refused = set(session.scalars(select(PushRow.row).where(*_of(push.id, chunk))).all())
    sent_as = ledger_rows.sent_as(session, push, chunk.table, numbers) if chunk.proof.get("keyed") else {}
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
    home = ledger_rows.first_of(session, push)
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
    theirs = _in_doubt(ledger_rows.first_of(session, push).id, chunk)
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
_ARRIVED: Final = "The connection was lost during the commit. The target confirmed later that the row had arrived."
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
    held = ledger_rows.spans_of(session, push_id, chunk.table)
    ends = [*(end for span in held for end in span), chunk.first, chunk.last]
    _cover(session, push_id, chunk.table, [(min(ends), max(ends))])


def _cover(session: Session, push_id: str, table: int, spans: Sequence[ledger_rows.Span]) -> None:
    """The rows of some spans have their end: they become one with the ranges they touch."""
    first, last = spans[0][0] - 1, spans[-1][1] + 1
    held = ledger_rows.spans_of(session, push_id, table, first, last)
    mine = (
        PushRange.push_id == push_id,
        PushRange.table == table,
        PushRange.last >= first,
        PushRange.first <= last,
    )
    session.execute(delete(PushRange).where(*mine), execution_options=_QUIET)
    rows = [
        {"push_id": push_id, "table": table, "first": low, "last": high}
        for low, high in ledger_rows.joined([*held, *spans])
    ]
    session.execute(insert(PushRange), rows)


def _close_retried(session: Session, push: Push, home: Push, chunk: Chunk) -> None:
    """The rows that a retry had in hand, in the ledger of the push they belong to."""
    theirs = (*_of(home.id, chunk), PushRow.retried_by == push.id)
    before = _by_state(session, theirs)
    again = session.scalars(select(PushRow).where(*_of(push.id, chunk))).all()
    fresh = ledger_rows.unsent(push, chunk.table, chunk.first, chunk.last)
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
        _cover(session, home.id, chunk.table, ledger_rows.spans(fresh))
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
    taken = ledger_rows.delivered(session, push, chunk.table, chunk.first, chunk.last)
    for retry in ledger_rows.retries(session, home):
        theirs = ledger_rows.delivered(session, retry, chunk.table, chunk.first, chunk.last)
        count = len(np.intersect1d(taken, theirs, assume_unique=True))
        retry.delivered, retry.undone = retry.delivered - count, retry.undone + count
    left = select(PushRow.row).where(*_of(push.id, chunk))
    mine = (*_of(home.id, chunk), PushRow.state == "delivered", PushRow.row.not_in(left))
    session.execute(update(PushRow).where(*mine).values(state="undone"), execution_options=_QUIET)


def _by_state(session: Session, where: tuple[Any, ...]) -> dict[str, int]:
    found = select(PushRow.state, func.count()).where(*where).group_by(PushRow.state)
    return dict(session.execute(found).all())
