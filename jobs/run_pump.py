"""From a program's output into its log: a thread that reads the pipe, cuts it into lines and has them written.

Where the database is slow the pipe fills and the program waits: nothing is lost, and nothing piles up here.
"""

from __future__ import annotations

import logging
import os
import select
import threading

from flask import Flask
from sqlalchemy.exc import SQLAlchemyError

from jobs.lease import Fenced
from jobs.run_lines import Lines
from jobs.run_log import RunLog
from webapp import limits
from webapp.connectors.redaction import Cutter
from webapp.services import run_secrets

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
            found = [*run_secrets.stored(workspace_id), *self._more]
            self.lines.cutter = Cutter(found, limits.HUSHED_CHARS)
            self._mark = mark

    def _asked(self, workspace_id: str) -> object:
        while True:
            try:
                return run_secrets.mark(workspace_id)
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
