"""What is written of a chunk: inside a transaction that the caller fenced. Shared by the runner's book and by the end
of a push that no worker is left for.

A chunk's failed rows are written together with its intent: they are refused whatever becomes of the commit. Its
delivered rows are written when that is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.orm import Session

from webapp.models import Push, PushRange, PushRow
from webapp.services import ledger_rows


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows sent in one transaction of the target. `first` and `last` are the lowest and highest number, `rows` how
    many the push has between them, `failed` how many of those were refused."""

    table: int
    first: int
    last: int
    rows: int
    failed: int = 0
    proof: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """As it stands in `Push.intent`."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Bad:
    """A row that was not delivered, and why. Texts are cut and hold no sensitive value."""

    row: int
    code: str
    message: str
    native: str = ""
    column: str | None = None
    key: Mapping[str, Any] | None = None
    ms: int | None = None


def write_bad(session: Session, push: Push, table: int, bad: Sequence[Bad], state: str = "failed") -> None:
    """A `PushRow` for each of some rows."""
    if bad:
        rows = [{"push_id": push.id, "table": table, "state": state, **asdict(one)} for one in bad]
        session.execute(insert(PushRow), rows)


def amend(session: Session, push: Push, table: int, bad: Sequence[Bad]) -> None:
    """A `PushRow` for delivered rows that something is to be said of; what was said of them before is replaced."""
    old = (PushRow.push_id == push.id, PushRow.table == table, PushRow.state == "delivered")
    rows = [one.row for one in bad]
    if rows:
        session.execute(delete(PushRow).where(*old, PushRow.row.in_(rows)), execution_options=_QUIET)
    write_bad(session, push, table, bad, "delivered")


def drop(session: Session, push: Push, chunk: Chunk) -> None:
    """Forget a chunk that did not take place: its rows have no end yet."""
    session.execute(delete(PushRow).where(*_of(push.id, chunk)), execution_options=_QUIET)


def close(session: Session, push: Push, chunk: Chunk, unknown: int = 0) -> None:
    """Write the end of a chunk's rows: those without a `PushRow` were delivered. Moves the counts of `push`, which must
    be a row of this session, and of the push that a retry or an undo is of."""
    _stretch(session, push.id, chunk)
    push.delivered += chunk.rows - chunk.failed - unknown
    push.failed += chunk.failed
    push.unknown += unknown
    if push.kind == "retry":
        _close_retried(session, push, chunk)
    elif push.kind == "undo":
        _close_undone(session, push, chunk)


def close_unknown(
    session: Session, push: Push, chunk: Chunk, message: str, keys: Mapping[int, Any] | None = None
) -> int:
    """Write that nobody knows whether a chunk was committed. Returns how many rows are in doubt."""
    numbers = ledger_rows.belonging(session, push, chunk.table, chunk.first, chunk.last).tolist()
    refused = set(session.scalars(select(PushRow.row).where(*_of(push.id, chunk))).all())
    doubt = [
        Bad(row, "unknown", message, key=(keys or {}).get(row)) for row in numbers if row not in refused
    ]
    write_bad(session, push, chunk.table, doubt, "unknown")
    close(session, push, chunk, unknown=len(doubt))
    return len(doubt)


_QUIET = {"synchronize_session": False}


def _of(push_id: str, chunk: Chunk) -> tuple[Any, ...]:
    return (
        PushRow.push_id == push_id,
        PushRow.table == chunk.table,
        PushRow.row >= chunk.first,
        PushRow.row <= chunk.last,
    )


def _stretch(session: Session, push_id: str, chunk: Chunk) -> None:
    """The table's range reaches over the chunk: upwards in a push, downwards in an undo."""
    mine = (PushRange.push_id == push_id, PushRange.table == chunk.table)
    held = session.execute(select(PushRange.first, PushRange.last).where(*mine)).first()
    if held is None:
        row = {"push_id": push_id, "table": chunk.table, "first": chunk.first, "last": chunk.last}
        session.execute(insert(PushRange).values(**row))
        return
    ends = {"first": min(held.first, chunk.first), "last": max(held.last, chunk.last)}
    session.execute(update(PushRange).where(*mine).values(**ends), execution_options=_QUIET)


def _close_retried(session: Session, push: Push, chunk: Chunk) -> None:
    """The rows that a retry had in hand, in the ledger of the push they belong to."""
    home = ledger_rows.first_of(session, push)
    theirs = (*_of(home.id, chunk), PushRow.retried_by == push.id)
    before = _by_state(session, theirs)
    again = session.scalars(select(PushRow).where(*_of(push.id, chunk))).all()
    session.execute(
        update(PushRow).where(*theirs).values(state="delivered", attempts=PushRow.attempts + 1),
        execution_options=_QUIET,
    )
    for row in again:
        told = {name: getattr(row, name) for name in ("state", "code", "native", "column", "message", "ms")}
        session.execute(
            update(PushRow).where(*theirs, PushRow.row == row.row).values(**told), execution_options=_QUIET
        )
    after = _by_state(session, theirs)
    for name in ("delivered", "failed", "unknown"):
        setattr(home, name, getattr(home, name) + after.get(name, 0) - before.get(name, 0))


def _close_undone(session: Session, push: Push, chunk: Chunk) -> None:
    """Rows that a retry had delivered are told one by one in the first push: they are undone now."""
    home = ledger_rows.first_of(session, push)
    left = select(PushRow.row).where(*_of(push.id, chunk))
    mine = (*_of(home.id, chunk), PushRow.state == "delivered", PushRow.row.not_in(left))
    session.execute(update(PushRow).where(*mine).values(state="undone"), execution_options=_QUIET)


def _by_state(session: Session, where: tuple[Any, ...]) -> dict[str, int]:
    found = select(PushRow.state, func.count()).where(*where).group_by(PushRow.state)
    return dict(session.execute(found).all())
