"""A run's log while it grows: lines are written some at a time, fenced by the lease, and followers are woken.

A line is in the log once it is in SQL. The chunk and the count of lines are written by one transaction, so whoever
goes on with the log, this process or the one that tells the end, goes on after its last line.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from sqlalchemy import insert, select

from jobs.lease import Lease
from webapp import clock, limits
from webapp.extensions import reading
from webapp.models import Run, RunChunk
from webapp.services import run_logs
from webapp.services.run_end import MARK


class RunLog:
    """The log of the run that a lease holds. Safe over threads; each call needs an application at hand."""

    def __init__(self, work: Lease) -> None:
        self._work = work
        self._lock = threading.Lock()
        self._waiting: list[str] = []
        self._size = 0
        self._since: float | None = None
        self._quiet_until = 0.0
        with reading() as session:
            row = session.execute(select(Run.line_count, Run.log_bytes).where(Run.id == work.id)).one()
        self.lines, self.bytes = row
        """Written so far."""

    @property
    def full(self) -> bool:
        """Whether it may grow no further. What is added then is dropped."""
        written, more = self.bytes + self._size, self.lines + len(self._waiting)
        return written >= limits.RUN_LOG_BYTES or more >= limits.RUN_LOG_LINES

    @property
    def due(self) -> bool:
        """Whether what waits should be written now."""
        if self._since is None:
            return False
        late = time.monotonic() - self._since >= limits.RUN_FLUSH_SECONDS
        return late or self._size >= limits.RUN_CHUNK_BYTES

    @property
    def waits(self) -> bool:
        """Whether there is something to be written."""
        return self._since is not None

    def say(self, text: str) -> None:
        """A line of ours, written at once."""
        self.add([MARK + " ".join(text.split())])
        self.flush()

    def add(self, lines: Sequence[str]) -> None:
        """Lines in the order they were printed; those beyond the log's limit are dropped."""
        with self._lock:
            for line in lines:
                if self.full:
                    break
                self._waiting.append(line)
                self._size += len(line) + 1
            if self._waiting and self._since is None:
                self._since = time.monotonic()

    def flush(self) -> None:
        """Write what waits, all or nothing; then wake followers. `Fenced` if another worker holds the run now; errors
        of the database leave the lines waiting."""
        with self._lock:
            if not self._waiting:
                return
            for part in _chunks(self._waiting):
                self._write(part)
                del self._waiting[: len(part)]
            self._size, self._since = 0, None
        if time.monotonic() >= self._quiet_until and not run_logs.wake(self._work.id):
            self._quiet_until = time.monotonic() + limits.RUN_POLLED_SECONDS

    def _write(self, lines: Sequence[str]) -> None:
        text = "\n".join(lines)
        first, last = self.lines + 1, self.lines + len(lines)
        size = self.bytes + len(text.encode()) + 1
        row = {"run_id": self._work.id, "first": first, "last": last, "at": clock.now(), "text": text}
        with self._work.transaction(line_count=last, log_bytes=size) as session:
            session.execute(insert(RunChunk), row)
        self.lines, self.bytes = last, size


def _chunks(lines: Sequence[str]) -> list[list[str]]:
    """Some lines in parts of about RUN_CHUNK_BYTES: readers take them one by one."""
    found: list[list[str]] = [[]]
    size = 0
    for line in lines:
        if size >= limits.RUN_CHUNK_BYTES:
            found.append([])
            size = 0
        found[-1].append(line)
        size += len(line) + 1
    return found
