"""Write the log of a run: read the program's output, split it into lines, store them in SQL and notify
followers.

A line is in the log when it is committed. Chunks and the line count are written in one transaction that
requires the lease, so this process and the one that ends the run both continue after the last line.
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

from jobs.lease import Lease, LeaseLost
from webapp import clock, limits
from webapp.connectors.redaction import Redactor
from webapp.extensions import read_session
from webapp.scenarios.models import Run, RunChunk
from webapp.scenarios.services import environment_variables, run_completion
from webapp.scenarios.services.run_completion import LOG_PREFIX
from webapp.work.log_lines import CONTROL_SEQUENCES

log = logging.getLogger(__name__)


class RunLog:
    """The log of the run whose lease is held. Thread-safe. Calls need an application context."""

    def __init__(self, work: Lease) -> None:
        self._lease = work
        self._lock = threading.Lock()
        self._buffer: list[str] = []
        self._size = 0
        self._buffered_since: float | None = None
        self._next_notification = 0.0
        with read_session() as session:
            row = session.execute(sql_select(Run.line_count, Run.log_bytes).where(Run.id == work.id)).one()
        self.line_count, self.byte_count = row
        """Lines written so far."""

    @property
    def is_full(self) -> bool:
        """Whether the log has reached its limit. Further lines are dropped."""
        written, more = self.byte_count + self._size, self.line_count + len(self._buffer)
        return written >= limits.RUN_LOG_BYTES or more >= limits.RUN_LOG_LINES

    @property
    def is_flush_due(self) -> bool:
        """Whether the buffer should be written now."""
        if self._buffered_since is None:
            return False
        late = time.monotonic() - self._buffered_since >= limits.RUN_FLUSH_SECONDS
        return late or self._size >= limits.RUN_CHUNK_BYTES

    @property
    def has_buffered_lines(self) -> bool:
        """Whether the buffer contains lines."""
        return self._buffered_since is not None

    def write_service_message(self, text: str) -> None:
        """Write a message of the service immediately."""
        self.add([LOG_PREFIX + " ".join(text.split())])
        self.flush()

    def add(self, lines: Sequence[str]) -> None:
        """Add lines to the buffer. Lines beyond the log's limit are dropped."""
        with self._lock:
            for line in lines:
                if self.is_full:
                    break
                self._buffer.append(line)
                self._size += len(line) + 1
            if self._buffer and self._buffered_since is None:
                self._buffered_since = time.monotonic()

    def flush(self) -> None:
        """Write the buffer in one transaction, then notify followers. Raise `LeaseLost` if another worker
        holds the run. After a database error the lines stay in the buffer."""
        with self._lock:
            if not self._buffer:
                return
            for part in _chunks(self._buffer):
                text = "\n".join(part)
                first, last = self.line_count + 1, self.line_count + len(part)
                size = self.byte_count + len(text.encode()) + 1
                row = {
                    "run_id": self._lease.id,
                    "first": first,
                    "last": last,
                    "at": clock.now(),
                    "text": text,
                }
                with self._lease.transaction(line_count=last, log_bytes=size) as session:
                    session.execute(insert(RunChunk), row)
                self.line_count, self.byte_count = last, size
                del self._buffer[: len(part)]
            self._size, self._buffered_since = 0, None
        if time.monotonic() >= self._next_notification and not run_completion.notify_followers(
            self._lease.id
        ):
            self._next_notification = time.monotonic() + limits.RUN_FALLBACK_POLL_SECONDS


def _chunks(lines: Sequence[str]) -> list[list[str]]:
    """Split lines into chunks of about RUN_CHUNK_BYTES. Readers load one chunk at a time."""
    found: list[list[str]] = [[]]
    size = 0
    for line in lines:
        if size >= limits.RUN_CHUNK_BYTES:
            found.append([])
            size = 0
        found[-1].append(line)
        size += len(line) + 1
    return found


# The output of a program as lines: any bytes of any length, with or without a line feed at the end.
#
# A line ends with LF, CR LF or CR (each update of a progress bar is a line). Bytes that are not UTF-8 become the
# replacement character, as does NUL, which PostgreSQL cannot store. A line that looks like a message of the service
# (`rowsmith: `) is prefixed with `| `. Everything else is unchanged.

ESCAPE_PREFIX: Final = "| "  # prefix for a program's line that looks like a message of the service
_SERVICE_PREFIX: Final = LOG_PREFIX.strip().casefold()
_CHECKED_CHARS: Final = 200  # only the first characters are checked for the prefix
_INVISIBLE: Final = re.compile(rf"{CONTROL_SEQUENCES.pattern}|\s", re.DOTALL)


def escape_service_prefix(line: str) -> str:
    """Prefix a program's line with `| ` if a reader or a terminal would take it for a message of the service."""
    if line.isascii() and "\x1b" not in line[:_CHECKED_CHARS] and line[:1].isalnum():
        visible = line[: len(_SERVICE_PREFIX)].casefold()
    else:
        seen = unicodedata.normalize("NFKC", _INVISIBLE.sub("", line[:_CHECKED_CHARS]))
        visible = "".join(item for item in seen if unicodedata.category(item)[0] != "C").casefold()
    return ESCAPE_PREFIX + line if visible.startswith(_SERVICE_PREFIX) else line


class LineSplitter:
    """Splits bytes into complete lines. `cutter`, which redacts secrets, may be replaced at any time."""

    def __init__(self, cutter: Redactor | None = None) -> None:
        self.redactor = cutter
        self.last_line = ""
        """The last line that is not blank."""
        self._incomplete_line = b""

    def feed(self, data: bytes) -> list[str]:
        """Add bytes and return the lines that are complete now."""
        data = self._incomplete_line + data
        carriage_return = b"\r" if data.endswith(b"\r") else b""  # an LF may follow
        if carriage_return:
            data = data[:-1]
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *complete, rest = data.split(b"\n")
        texts = self._to_text(complete)
        while len(rest) > limits.RUN_LINE_BYTES + self._longest_secret:
            position = _max_line_end(rest)
            if self.redactor is not None:
                position = self.redactor.split_position(rest, position)
            texts += self._to_text([rest[:position]])
            rest = rest[position:]
        self._incomplete_line = rest + carriage_return
        return texts

    def finish(self) -> list[str]:
        """Return the incomplete last line at the end of the output."""
        rest, self._incomplete_line = self._incomplete_line.removesuffix(b"\r"), b""
        return self._to_text([rest]) if rest else []

    @property
    def _longest_secret(self) -> int:
        return self.redactor.longest if self.redactor is not None else 0

    def _to_text(self, lines: list[bytes]) -> list[str]:
        if not lines:
            return []
        data = b"\n".join(lines)
        if self.redactor is not None:
            # Redact line by line: a secret of several lines is redacted per line, and no match may include a
            # line feed.
            data = b"\n".join([self.redactor.redact(line) for line in lines])
        if any(len(line) > limits.RUN_LINE_BYTES for line in lines):
            data = b"\n".join([part for line in data.split(b"\n") for part in self._split_long_line(line)])
        texts = [
            escape_service_prefix(item)
            for item in data.decode("utf-8", "replace").replace("\0", "\ufffd").split("\n")
        ]
        self.last_line = next((line for line in reversed(texts) if line.strip()), self.last_line)
        return texts

    def _split_long_line(self, line: bytes) -> list[bytes]:
        found = []
        while len(line) > limits.RUN_LINE_BYTES:
            position = _max_line_end(line)
            found.append(line[:position])
            line = line[position:]
        return [*found, line]


def _max_line_end(data: bytes) -> int:
    """Return where the longest line that may be stored ends in longer data, without splitting a character."""
    position = limits.RUN_LINE_BYTES
    while position > limits.RUN_LINE_BYTES - 4 and data[position] & 0xC0 == 0x80:
        position -= 1
    return position


# The thread that reads the program's output from a pipe, splits it into lines and writes them to the log.
#
# If the database is slow, the pipe fills and the program blocks: nothing is lost, and memory is bounded.


class LogReader(threading.Thread):
    """Reads until the pipe is closed by all writers or `stop` is called, then closes `output`.

    `redacted_workspace`: the workspace whose secrets are redacted, or None. `more_secrets`: additional secrets.
    """

    def __init__(
        self,
        app: Flask,
        run_log: RunLog,
        output: int,
        redacted_workspace: str | None = None,
        more_secrets: tuple[str, ...] = (),
    ) -> None:
        super().__init__(name="pump", daemon=True)
        self.lines = LineSplitter()
        self.closed = threading.Event()
        """Set when the output has ended and all lines are written."""
        self.log_full = threading.Event()
        """Set when the log is full. Further output is dropped."""
        self.lease_lost = threading.Event()
        """Set when another worker holds the run. Further output is dropped."""
        self._app, self._log, self._output = app, run_log, output
        self._workspace, self._more_secrets = redacted_workspace, more_secrets
        self._loaded_secrets_version: object = None
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Stop, even if a process still holds the other end of the pipe."""
        self._stopping.set()

    def run(self) -> None:
        """Read the pipe until its end."""
        try:
            with self._app.app_context():
                self._read_all()
        except Exception:  # the program must not block on a pipe that is no longer read
            log.exception("could not continue the log of a run")
            self.lease_lost.set()
        finally:
            os.close(self._output)
            self.closed.set()

    def _read_all(self) -> None:
        while not self._stopping.is_set():
            wait = (
                limits.RUN_FLUSH_SECONDS if self._log.has_buffered_lines else limits.RUN_FALLBACK_POLL_SECONDS
            )
            readable, _, _ = select.select([self._output], [], [], wait)
            if readable:
                data = os.read(self._output, limits.RUN_READ_BYTES)
                if not data:
                    break
                self._process(data)
            if self._log.is_flush_due:
                self._flush()
        self._add(self.lines.finish())
        self._flush()

    def _process(self, data: bytes) -> None:
        if self.lease_lost.is_set() or self.log_full.is_set():
            return
        if self._workspace is not None:
            # A secret that the program received before printing it is already stored.
            secrets_version = self._secrets_version(self._workspace)
            if secrets_version != self._loaded_secrets_version:
                found = [*environment_variables.stored_secrets(self._workspace), *self._more_secrets]
                self.lines.redactor = Redactor(found, limits.REDACTED_SECRET_MIN_CHARS)
                self._loaded_secrets_version = secrets_version
        self._add(self.lines.feed(data))

    def _add(self, lines: list[str]) -> None:
        self._log.add(lines)
        if self._log.is_full:
            self.log_full.set()

    def _secrets_version(self, workspace_id: str) -> object:
        while True:
            try:
                return environment_variables.secrets_version(workspace_id)
            except SQLAlchemyError as error:
                log.warning("could not load the secrets to redact: %s", type(error).__name__)
                if self._stopping.wait(limits.RUN_LOG_RETRY_SECONDS):
                    raise

    def _flush(self) -> None:
        while not self.lease_lost.is_set():
            try:
                self._log.flush()
                return
            except LeaseLost:
                self.lease_lost.set()
            except SQLAlchemyError as error:
                log.warning("could not write lines of a run, will retry: %s", type(error).__name__)
                if self._stopping.wait(limits.RUN_LOG_RETRY_SECONDS):
                    return
