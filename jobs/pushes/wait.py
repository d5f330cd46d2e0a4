"""Beside a push that waits for its target: a cancel, a stop or a loss of the lease must not wait with it.

The runner checks its lease between chunks. A statement may hang for minutes in between, so a thread watches: after a
short grace it stops the statement, and where the target does not even take that, it writes the end itself and leaves
with the whole process. Nothing is lost by that: what was not committed is rolled back by the target, and a commit in
hand stands in the ledger as an intent.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from flask import current_app

from jobs import lease
from jobs.lease import Cancelled, Fenced, HandBack, Interrupted, Lease
from webapp import limits
from webapp.connectors.base import Link

log = logging.getLogger(__name__)

POLL_SECONDS: Final = 0.1
# How long the chunk in hand may go on by itself.
_GRACE: Final = {
    Cancelled: limits.PUSH_CANCEL_SECONDS,
    HandBack: limits.PUSH_DRAIN_SECONDS,
    Fenced: 0.0,
}


def leave() -> None:
    """End this process at once; its worker sees to the rest."""
    os._exit(0)


class Watch:
    """Watches while the block runs. `session` is what to stop; `stuck` writes the end when that is in vain."""

    def __init__(self, work: Lease, stuck: Callable[[Interrupted], None]) -> None:
        self.session: Link | None = None
        self._work, self._stuck = work, stuck
        self._over = threading.Event()
        self._app: Any = current_app._get_current_object()  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._run, name=f"watch-{work.id}", daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        reason = self._wait_for_reason()
        if reason is None or self._over.wait(_GRACE[type(reason)]):
            return
        log.info("%s %s: the statement in hand is stopped", self._work.kind, self._work.id)
        threading.Thread(target=self._stop, name="stop", daemon=True).start()
        if self._over.wait(limits.PUSH_STUCK_SECONDS):
            return
        log.warning("%s %s: the target does not take the cancel", self._work.kind, self._work.id)
        try:
            with self._app.app_context():
                self._stuck(reason)
        except Exception:
            log.exception("%s %s: its end could not be written", self._work.kind, self._work.id)
        leave()

    def _wait_for_reason(self) -> Interrupted | None:
        while not self._over.wait(POLL_SECONDS):
            reason = interruption(self._work)
            if reason is not None:
                return reason
        return None

    def _stop(self) -> None:
        """Stop the statement in hand, and whatever follows it, until the block is left."""
        while not self._over.is_set():
            session = self.session
            if session is not None:
                try:
                    session.cancel()
                except Exception as error:
                    log.info("the cancel failed: %s", type(error).__name__)
            self._over.wait(limits.CANCEL_POLL_SECONDS)


def interruption(work: Lease) -> Interrupted | None:
    """Why the work must not go on, as far as this process knows."""
    if work.fenced:
        return Fenced(work.id)
    if work.cancelled:
        return Cancelled(work.id)
    return HandBack(work.id) if lease.stopping.is_set() else None


def wait(work: Lease, seconds: float) -> None:
    """Wait, unless the work must not go on: then raise."""
    until = time.monotonic() + seconds
    pause = threading.Event()
    while (left := until - time.monotonic()) > 0:
        work.check()
        pause.wait(min(left, POLL_SECONDS))
    work.check()
