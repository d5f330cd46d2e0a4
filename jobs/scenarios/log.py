"""A run's log while it grows: lines are written some at a time, fenced by the lease, and followers are woken.

A line is in the log once it is in SQL. The chunk and the count of lines are written by one transaction, so whoever
goes on with the log, this process or the one that tells the end, goes on after its last line.
"""

from __future__ import annotations

import logging
import os
import re
import select
import threading
import time
import unicodedata
from collections.abc import Sequence
from typing import Final

from flask import Flask
from sqlalchemy import insert
from sqlalchemy import select as sql_select
from sqlalchemy.exc import SQLAlchemyError

from jobs.lease import Fenced, Lease
from webapp import clock, limits
from webapp.connectors.redaction import Cutter
from webapp.extensions import reading
from webapp.scenarios.models import Run, RunChunk
from webapp.scenarios.services import environment_variables, run_logs
from webapp.scenarios.services.run_completion import MARK
from webapp.scenarios.services.run_logs import COMMANDS


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
            row = session.execute(sql_select(Run.line_count, Run.log_bytes).where(Run.id == work.id)).one()
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


# What a program prints, as lines: any bytes, of any length, with or without a line feed at the end.
#
# A line ends with LF, CR LF or CR (a progress bar is a line each time it is drawn). Bytes that are no UTF-8 become the
# replacement character, and so does NUL, which PostgreSQL cannot keep. A line that looks like one of the service's own
# (`rowsmith: `) gets `| ` before it; everything else stays as it was printed.

QUOTED: Final = "| "  # begins a line of a program that would look like one of the service's
_OWN: Final = MARK.strip().casefold()
_HEAD: Final = 200  # characters in which a line is looked at closely
_UNSEEN: Final = re.compile(rf"{COMMANDS.pattern}|\s", re.DOTALL)


def quoted(line: str) -> str:
    """A line of a program, with `| ` before one that a reader or a terminal would take for the service's."""
    if line.isascii() and "\x1b" not in line[:_HEAD] and line[:1].isalnum():
        looks = line[: len(_OWN)].casefold()
    else:
        seen = unicodedata.normalize("NFKC", _UNSEEN.sub("", line[:_HEAD]))
        looks = "".join(one for one in seen if unicodedata.category(one)[0] != "C").casefold()
    return QUOTED + line if looks.startswith(_OWN) else line


class Lines:
    """Takes bytes as they come and gives the lines that are whole. `cutter` may be replaced at any time."""

    def __init__(self, cutter: Cutter | None = None) -> None:
        self.cutter = cutter
        self.last = ""
        """The last line that is not blank."""
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """The lines that are whole now."""
        data = self._rest + data
        held = b"\r" if data.endswith(b"\r") else b""  # an LF may follow
        if held:
            data = data[:-1]
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *whole, rest = data.split(b"\n")
        made = self._texts(whole)
        while len(rest) >= limits.RUN_LINE_BYTES + self._longest:
            at = self._border(rest)
            made += self._texts([rest[:at]])
            rest = rest[at:]
        self._rest = rest + held
        return made

    def end(self) -> list[str]:
        """What is left when nothing more will come."""
        rest, self._rest = self._rest.removesuffix(b"\r"), b""
        return self._texts([rest]) if rest else []

    @property
    def _longest(self) -> int:
        return self.cutter.longest if self.cutter is not None else 0

    def _border(self, data: bytes) -> int:
        at = limits.RUN_LINE_BYTES
        while at > limits.RUN_LINE_BYTES - 4 and data[at] & 0xC0 == 0x80:  # within a character
            at -= 1
        return self.cutter.border(data, at) if self.cutter is not None else at

    def _texts(self, whole: list[bytes]) -> list[str]:
        if not whole:
            return []
        data = b"\n".join(whole)
        if self.cutter is not None:
            # Line by line: a secret of several lines is cut by its lines, and no cut may swallow a line feed.
            data = b"\n".join([self.cutter.cut(line) for line in whole])
        if any(len(line) > limits.RUN_LINE_BYTES for line in whole):
            data = b"\n".join([part for line in data.split(b"\n") for part in self._parts(line)])
        made = [quoted(one) for one in data.decode("utf-8", "replace").replace("\0", "\ufffd").split("\n")]
        self.last = next((line for line in reversed(made) if line.strip()), self.last)
        return made

    def _parts(self, line: bytes) -> list[bytes]:
        found = []
        while len(line) > limits.RUN_LINE_BYTES:
            at = limits.RUN_LINE_BYTES
            while at > limits.RUN_LINE_BYTES - 4 and line[at] & 0xC0 == 0x80:
                at -= 1
            found.append(line[:at])
            line = line[at:]
        return [*found, line]


# From a program's output into its log: a thread that reads the pipe, cuts it into lines and has them written.
#
# Where the database is slow the pipe fills and the program waits: nothing is lost, and nothing piles up here.

log = logging.getLogger(__name__)


class Pump(threading.Thread):
    """Pumps until the pipe is closed at its other end, or `stop` was called. `output` is closed in the end.

    `cut_for`: the workspace whose secrets are cut out; None for none. `more`: secrets beside those.
    """

    def __init__(
        self, app: Flask, into: RunLog, output: int, cut_for: str | None = None, more: tuple[str, ...] = ()
    ) -> None:
        super().__init__(name="pump", daemon=True)
        self.lines = Lines()
        self.closed = threading.Event()
        """Set once nothing more comes and everything is written."""
        self.overflown = threading.Event()
        """Set once the log is full; what comes then is dropped."""
        self.lost = threading.Event()
        """Set once the run is another worker's; likewise."""
        self._app, self._log, self._output = app, into, output
        self._workspace, self._more = cut_for, more
        self._mark: object = None
        self._stop_asked = threading.Event()

    def stop(self) -> None:
        """End, though somebody may still hold the other end of the pipe."""
        self._stop_asked.set()

    def run(self) -> None:
        """Pump."""
        try:
            with self._app.app_context():
                self._pump()
        except Exception:  # the program must not wait for a pipe that nobody reads
            log.exception("the log of a run ends here")
            self.lost.set()
        finally:
            os.close(self._output)
            self.closed.set()

    def _pump(self) -> None:
        while not self._stop_asked.is_set():
            wait = limits.RUN_FLUSH_SECONDS if self._log.waits else limits.RUN_POLLED_SECONDS
            readable, _, _ = select.select([self._output], [], [], wait)
            if readable:
                data = os.read(self._output, limits.RUN_READ_BYTES)
                if not data:
                    break
                self._take(data)
            if self._log.due:
                self._flush()
        self._add(self.lines.end())
        self._flush()

    def _take(self, data: bytes) -> None:
        if self.lost.is_set() or self.overflown.is_set():
            return
        if self._workspace is not None:
            self._learn(self._workspace)
        self._add(self.lines.feed(data))

    def _add(self, lines: list[str]) -> None:
        self._log.add(lines)
        if self._log.full:
            self.overflown.set()

    def _learn(self, workspace_id: str) -> None:
        """Know every secret that the program may know: one that it was given before it printed it is stored by now."""
        mark = self._asked(workspace_id)
        if mark != self._mark:
            found = [*environment_variables.stored(workspace_id), *self._more]
            self.lines.cutter = Cutter(found, limits.HUSHED_CHARS)
            self._mark = mark

    def _asked(self, workspace_id: str) -> object:
        while True:
            try:
                return environment_variables.mark(workspace_id)
            except SQLAlchemyError as error:
                log.warning("the secrets cannot be read: %s", type(error).__name__)
                if self._stop_asked.wait(limits.RUN_LOG_RETRY_SECONDS):
                    raise

    def _flush(self) -> None:
        while not self.lost.is_set():
            try:
                self._log.flush()
                return
            except Fenced:
                self.lost.set()
            except SQLAlchemyError as error:
                log.warning("lines of a run wait to be written: %s", type(error).__name__)
                if self._stop_asked.wait(limits.RUN_LOG_RETRY_SECONDS):
                    return
