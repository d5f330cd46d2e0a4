"""Send rows in parallel: started in order, limited in rate, until all are finished."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as all_over
from typing import Final

from webapp.connectors.base import ConnectorError
from webapp.connectors.http.channel import RowOutcome, SendControl
from webapp.connectors.http.retry import RequestOutcome, Retry, retry_after, send_with_retries
from webapp.net.session import NetError, Reply

# The Retry-After of 429 applies to all rows (RFC 6585, 4). That of 503 (RFC 9110, 15.6.4) can be about one request:
# it applies to its own row until this many responses in a row were 503. Then the target itself is unavailable.
_TOO_MANY, _UNAVAILABLE = 429, 503
_UNAVAILABLE_RESPONSES: Final = 3


class RequestPacer:
    """Limits requests per second over all threads, including retries. None: no limit.

    No request is sent while the target has asked to wait.
    """

    def __init__(self, per_second: float | None) -> None:
        self._every = 1 / per_second if per_second else 0.0
        self._next = self._paused_until = 0.0
        self._lock = threading.Lock()

    def wait_turn(self, wait: Callable[[float], None], not_before: float = 0.0) -> None:
        """Wait until this request may be sent. `not_before` is the time until which its row has already waited.

        Raises what `wait` raises.
        """
        while (
            paused_until := self._paused_until
        ) > not_before:  # another thread may extend the pause in the meantime
            not_before = paused_until
            if (remaining := paused_until - time.monotonic()) > 0:
                wait(remaining)
        with self._lock:
            self._paused_until = (
                self._paused_until if self._paused_until > not_before else 0.0
            )  # the pause is over
        if not self._every:
            return
        with self._lock:
            now = time.monotonic()
            start = max(self._next, now)
            self._next = start + self._every
        if start > now:
            wait(start - now)

    def pause(self, seconds: float) -> float:
        """Pause all requests for this many seconds, and return the end of the pause."""
        until = time.monotonic() + seconds
        with self._lock:
            self._paused_until = max(self._paused_until, until)
        return until


class SendingStopped(Exception):
    """Sending was stopped by an exception of `SendControl`. The caller calls it again to get the reason."""


class _StoppableControl:
    """Wraps a control and converts its exceptions to `SendingStopped`."""

    def __init__(self, control: SendControl) -> None:
        self._control = control

    def raise_if_stopped(self) -> None:
        try:
            self._control.raise_if_stopped()
        except Exception as reason:
            raise SendingStopped from reason

    def wait(self, seconds: float) -> None:
        try:
            self._control.wait(seconds)
        except Exception as reason:
            raise SendingStopped from reason


class SenderThreads:
    """Sends rows in `parallel` threads, which live until `close`."""

    def __init__(self, control: SendControl, retry: Retry, parallel: int, per_second: float | None) -> None:
        self._control, self._retry, self._parallel = _StoppableControl(control), retry, parallel
        self._pacer = RequestPacer(per_second)
        self._responses = 0
        self._unavailable = (
            0  # responses in a row with this status; an estimate, because threads do not wait for it
        )
        self._pool = ThreadPoolExecutor(parallel, thread_name_prefix="lane")

    def close(self) -> None:
        """Stop the threads. Those that are busy finish their row."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def run(
        self, count: int, send_row: Callable[[int], RowOutcome], stop_at_failure: bool = False
    ) -> list[RowOutcome]:
        """Call `send_row(index)` for each row, and return the outcomes of the started rows in order.

        Sending stops when `SendControl.raise_if_stopped` raises, and at a `ConnectorError` of a row, which is raised if
        no row was sent before. It also stops at a row without a response (`RowOutcome.is_unanswered`) if no other row
        got a response in the meantime. When this returns or raises, no request is running.
        """
        run = _Run(count, self._control, stop_at_failure, lambda: self._responses)
        if self._parallel == 1 or count == 1:
            run.process_rows(send_row)
        else:
            futures = [
                self._pool.submit(run.process_rows, send_row) for _ in range(min(self._parallel, count))
            ]
            all_over(futures)
            for future in futures:
                future.result()
        return run.outcomes()

    def attempt(self, send: Callable[[], Reply]) -> tuple[RequestOutcome, bool]:
        """Send with `retry.send_with_retries`. If `SendControl` stops it between two attempts, returns the last outcome
        and True.

        Raises `SendingStopped` only if nothing was sent.
        """
        last: list[RequestOutcome] = []
        began, waited = time.monotonic(), 0.0

        def raise_if_stopped() -> None:
            if not last:  # between two attempts, `wait` has just checked it
                self._control.raise_if_stopped()

        def send_noted() -> Reply:
            nonlocal waited
            self._pacer.wait_turn(self._control.wait, waited)
            number, unanswered = len(last) + 1, last[-1].unanswered if last else 0
            spent = round((time.monotonic() - began) * 1000)
            try:
                reply = send()
            except NetError as error:
                unknown = error.arrived and error.reason != "redirected"
                last.append(RequestOutcome(None, error, number, unknown, unanswered + unknown, spent))
                raise
            self._responses += 1
            last.append(RequestOutcome(reply, None, number, False, unanswered, spent))
            self._unavailable = self._unavailable + 1 if reply.status == _UNAVAILABLE else 0
            for_all = reply.status == _TOO_MANY or self._unavailable >= _UNAVAILABLE_RESPONSES
            if for_all and reply.status in self._retry.retry_on:
                waited = self._pacer.pause(retry_after(reply))
            return reply

        try:
            return send_with_retries(
                send_noted, self._retry, wait=self._control.wait, raise_if_stopped=raise_if_stopped
            ), False
        except SendingStopped:
            if not last:
                raise
            return last[-1], True


class _Run:
    """One call of `run`, shared by its threads."""

    def __init__(
        self, count: int, control: _StoppableControl, stop_at_failure: bool, answers: Callable[[], int]
    ) -> None:
        self._control, self._stop_at_failure, self._responses = control, stop_at_failure, answers
        self._lock = threading.Lock()
        self._outcomes: list[RowOutcome | None] = [None] * count
        self._next = 0
        self._stopped = False
        self._error: ConnectorError | None = None

    def process_rows(self, send_row: Callable[[int], RowOutcome]) -> None:
        """Process rows until none is left."""
        while (index := self._take_index()) is not None:
            before = self._responses()
            try:
                outcome = send_row(index)
            except ConnectorError as error:
                self._stopped, self._error = True, self._error or error
                outcome = RowOutcome(index, "failed", None, 0, "no_token", error.message)
            except SendingStopped:
                self._stopped = True
                outcome = RowOutcome(index, "failed", None, 0, "interrupted", _NOT_SENT)
            except BaseException:  # an internal error: start no further rows
                self._stopped = True
                raise
            self._outcomes[index] = outcome
            if self._stop_at_failure and outcome.state != "delivered":
                self._stopped = True
            if outcome.is_unanswered and self._responses() == before:
                self._stopped = True

    def _take_index(self) -> int | None:
        with self._lock:
            if self._stopped or self._next >= len(self._outcomes):
                return None
            try:
                self._control.raise_if_stopped()
            except SendingStopped:
                self._stopped = True
                return None
            self._next += 1
            return self._next - 1

    def outcomes(self) -> list[RowOutcome]:
        """Return the outcomes of started rows, without trailing rows for which nothing was sent."""
        outcomes = [outcome for outcome in self._outcomes if outcome is not None]
        while outcomes and outcomes[-1].attempts == 0:
            outcomes.pop()
        if not outcomes and self._error is not None:
            raise self._error
        return outcomes


_NOT_SENT = "The push was stopped before this row was sent."
