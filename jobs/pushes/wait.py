"""Watch a push in a separate thread, so that a cancel, a stop or a lost lease does not wait for the target.

The lease is checked between chunks, but a statement may hang for minutes. After a short grace period the
thread cancels the statement. If the target does not react to that either, the thread writes the final state
itself and ends the process. Nothing is lost: the target rolls back what was not committed, and a commit in
progress is in the ledger as an intent.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Final

from jobs import lease
from jobs.lease import Cancelled, Interrupted, Lease, LeaseLost, Released
from webapp import limits
from webapp.connectors.base import OpenConnection
from webapp.extensions import application

log = logging.getLogger(__name__)

POLL_SECONDS: Final = 0.1
# How long the current chunk may continue.
_GRACE: Final = {
    Cancelled: limits.PUSH_CANCEL_SECONDS,
    Released: limits.PUSH_DRAIN_SECONDS,
    LeaseLost: 0.0,
}


def exit_process() -> None:
    """End this process immediately. Its worker handles the rest."""
    os._exit(0)


class PushWatcher:
    """Watches while the block runs. `session` is the session to cancel; `on_stuck` writes the final state if
    cancelling has no effect."""

    def __init__(self, work: Lease, on_stuck: Callable[[Interrupted], None]) -> None:
        self.session: OpenConnection | None = None
        self._work, self._on_stuck = work, on_stuck
        self._finished = threading.Event()
        self._app = application()
        self._thread = threading.Thread(target=self._run, name=f"watch-{work.id}", daemon=True)

    def __enter__(self) -> PushWatcher:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._finished.set()
        self._thread.join()

    def _run(self) -> None:
        reason = None
        while reason is None:
            if self._finished.wait(POLL_SECONDS):
                return
            reason = pending_interruption(self._work)
        if self._finished.wait(_GRACE[type(reason)]):
            return
        log.info("%s %s: cancelling the current statement", self._work.kind, self._work.id)
        threading.Thread(target=self._stop, name="stop", daemon=True).start()
        if self._finished.wait(limits.PUSH_CANCEL_TIMEOUT_SECONDS):
            return
        log.warning("%s %s: the target does not respond to the cancellation", self._work.kind, self._work.id)
        try:
            with self._app.app_context():
                self._on_stuck(reason)
        except Exception:
            log.exception("%s %s: could not write its final state", self._work.kind, self._work.id)
        exit_process()

    def _stop(self) -> None:
        """Cancel the current statement and any that follow, until the block ends."""
        while not self._finished.is_set():
            session = self.session
            if session is not None:
                try:
                    session.cancel()
                except Exception as error:
                    log.info("cancelling failed: %s", type(error).__name__)
            self._finished.wait(limits.CANCEL_POLL_SECONDS)


def pending_interruption(work: Lease) -> Interrupted | None:
    """Return why the work must stop, as far as this process knows."""
    if work.is_lost:
        return LeaseLost(work.id)
    if work.is_cancelled:
        return Cancelled(work.id)
    return Released(work.id) if lease.stopping.is_set() else None


def wait(work: Lease, seconds: float) -> None:
    """Wait, and raise if the work must stop."""
    until = time.monotonic() + seconds
    pause = threading.Event()
    while (left := until - time.monotonic()) > 0:
        work.check()
        pause.wait(min(left, POLL_SECONDS))
    work.check()
