"""The log of a run: its lines as they lie in SQL, and the word that wakes those who follow it.

What was printed is true once it is in SQL; Redis only says that there is more, so emptying it loses no line.
"""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import redis
from sqlalchemy import select
from sqlalchemy.orm import Session

from webapp import limits
from webapp.extensions import reading, redis_client
from webapp.scenarios.models import Run, RunChunk

log = logging.getLogger(__name__)

# ECMA-48: control sequences, operating system commands, other escapes; and control characters that draw nothing.
COMMANDS: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-_]|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
_COLOUR: Final = r"\x1b\[[0-9;:]{0,64}m"  # ECMA-48, 8.3.117: select graphic rendition
_UNSAFE: Final = re.compile(rf"({_COLOUR})|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_CHUNKS: Final = 64  # read at once; a chunk has at most RUN_CHUNK_BYTES and a line


@dataclass(frozen=True, slots=True)
class Piece:
    """Lines `first` to `last` of a log, counted from 1. A line holds neither line feed nor carriage return."""

    first: int
    last: int
    lines: Sequence[str]


def pieces(run_id: str, after: int = 0) -> list[Piece]:
    """The next lines of a run's log whose number is above `after`, in order, some at once; [] where there are none.
    A short read of its own."""
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
    """The whole log as it is now, some lines at a time, each with its line feed, for a terminal: see `visible`."""
    after = 0
    while found := pieces(run_id, after):
        for piece in found:
            yield visible("\n".join(piece.lines)) + "\n"
        after = found[-1].last


def visible(text: str) -> str:
    """Lines with the colours of a terminal and without its other commands: what would move the cursor, set the title
    or draw a link is written out (`\\x1b`). Line feeds and tabs stay."""
    return _UNSAFE.sub(lambda found: found[1] or f"\\x{ord(found[0]):02x}", text)


def last_lines(run_id: str, limit: int) -> list[tuple[int, str]]:
    """The last lines with their numbers, in order. A short read of its own."""
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
    """Add lines at the end of a log, in the transaction of a caller who has the run's row locked."""
    if not lines:
        return
    joined = "\n".join(lines)
    first = run.line_count + 1
    run.line_count += len(lines)
    run.log_bytes += len(joined.encode()) + 1
    session.add(RunChunk(run_id=run.id, first=first, last=run.line_count, at=at, text=joined))


# --- Waking followers ---------------------------------------------------------------------------------------


def channel(run_id: str) -> str:
    """Where it is said that a run's log has grown, or its state changed."""
    return f"rowsmith:log:{run_id}"


def wake(run_id: str) -> bool:
    """Say so. Returns False when Redis cannot be reached: followers look by themselves, a little later."""
    try:
        redis_client().publish(channel(run_id), b"")
    except redis.RedisError as error:
        log.debug("followers of %s are not woken: %s", run_id, error)
        return False
    return True
