"""The log of a run: lines in SQL, and notifications for followers.

A line is part of the log once it is in SQL. Redis only announces new lines, so emptying it loses nothing.
Followers resume (SSE) after the last line number they received.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

import redis
from sqlalchemy import select
from sqlalchemy.orm import Session

from webapp import limits
from webapp.extensions import reading, redis_client
from webapp.scenarios.models import Run, RunChunk
from webapp.work.log_lines import Piece, visible

log = logging.getLogger(__name__)

_CHUNKS: Final = 64  # chunks per query; a chunk has at most RUN_CHUNK_BYTES and a line


def pieces(run_id: str, after: int = 0) -> list[Piece]:
    """Return the next chunks of a run's log with a number above `after`, in order. Uses a separate short read
    transaction."""
    statement = (
        select(RunChunk.first, RunChunk.last, RunChunk.text)
        .where(RunChunk.run_id == run_id, RunChunk.last > after)
        .order_by(RunChunk.first)
        .limit(_CHUNKS)
    )
    found, size = [], 0
    with reading() as session:
        for first, last, text in session.execute(statement):
            lines = text.split("\n")
            found.append(Piece(max(first, after + 1), last, lines[max(0, after + 1 - first) :]))
            size += len(text)
            if size >= limits.RUN_TEXT_BYTES:
                break
    return found


def text(run_id: str) -> Iterator[str]:
    """Yield the whole log in pieces, with line feeds, for a terminal: see `visible`."""
    after = 0
    while found := pieces(run_id, after):
        for piece in found:
            yield visible("\n".join(piece.lines)) + "\n"
        after = found[-1].last


def last_lines(run_id: str, limit: int) -> list[tuple[int, str]]:
    """Return the last lines with their numbers, in order. Uses a separate short read."""
    statement = (
        select(RunChunk.first, RunChunk.text)
        .where(RunChunk.run_id == run_id)
        .order_by(RunChunk.first.desc())
        .execution_options(yield_per=8)
    )
    found: deque[tuple[int, str]] = deque()
    with reading() as session:
        for first, told in session.execute(statement):
            lines = list(enumerate(told.split("\n"), first))
            found.extendleft(reversed(lines[-(limit - len(found)) :]))
            if len(found) >= limit:
                break
    return list(found)


def write(session: Session, run: Run, lines: Sequence[str], at: datetime) -> None:
    """Append lines to a log, in the caller's transaction, which has locked the run's row."""
    if not lines:
        return
    joined = "\n".join(lines)
    first = run.line_count + 1
    run.line_count += len(lines)
    run.log_bytes += len(joined.encode()) + 1
    session.add(RunChunk(run_id=run.id, first=first, last=run.line_count, at=at, text=joined))


# --- Notifying followers ---


def channel(run_id: str) -> str:
    """The Redis channel for new lines and state changes of a run."""
    return f"rowsmith:log:{run_id}"


def wake(run_id: str) -> bool:
    """Notify followers. Return False if Redis is unavailable: followers then poll."""
    try:
        redis_client().publish(channel(run_id), b"")
    except redis.RedisError as error:
        log.debug("could not notify followers of %s: %s", run_id, error)
        return False
    return True
