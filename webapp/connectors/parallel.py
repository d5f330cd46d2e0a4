"""Rows on their way, several at once: begun in order, no faster than allowed, until all have their end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as all_over
from typing import Final

from webapp.connectors.base import ConnectorError
from webapp.connectors.channel import Ended, Hand
from webapp.connectors.retry import Ended as Tried
from webapp.connectors.retry import Retry, asked_for, attempt
from webapp.net.session import NetError, Reply

# Answers whose Retry-After is meant for everybody, not for one row (RFC 6585, 4; RFC 9110, 15.6.4).
_SLOW_DOWN: Final = frozenset({429, 503})


class Pace:
    """At most so many requests a second, over all threads; None: as many as come. Retries count, too. None goes while
    the target wants to be left alone."""

    def __init__(self, per_second: float | None) -> None:
        self._every = 1 / per_second if per_second else 0.0
        self._next = self._held = 0.0
        self._lock = threading.Lock()

    def turn(self, wait: Callable[[float], None], waited: float = 0.0) -> None:
        """Waits until it is this request's turn; `waited`: up to which moment its row has waited by itself. Raises what
        `wait` raises."""
        while (held := self._held) > waited:  # while it waits, another may be told to wait for longer
            waited = held
            if (left := held - time.monotonic()) > 0:
                wait(left)
        with self._lock:
            self._held = self._held if self._held > waited else 0.0  # that moment has come
        if not self._every:
            return
        with self._lock:
            now = time.monotonic()
            mine = max(self._next, now)
            self._next = mine + self._every
        if mine > now:
            wait(mine - now)

    def hold(self, seconds: float) -> float:
        """Nobody's turn comes before that moment, which is returned."""
        until = time.monotonic() + seconds
        with self._lock:
            self._held = max(self._held, until)
        return until


class Stopped(Exception):
    """Nothing more may be sent: `Hand` said so, whatever it raised. Its holder asks it again and learns why."""


class _Asked:
    """A hand whose refusals are `Stopped`."""

    def __init__(self, hand: Hand) -> None:
        self._hand = hand

    def may_go(self) -> None:
        try:
            self._hand.may_go()
        except Exception as reason:
            raise Stopped from reason

    def wait(self, seconds: float) -> None:
        try:
            self._hand.wait(seconds)
        except Exception as reason:
            raise Stopped from reason


class Lanes:
    """Sends rows through `parallel` threads, which live until `close`."""

    def __init__(self, hand: Hand, retry: Retry, parallel: int, per_second: float | None) -> None:
        self._hand, self._retry, self._parallel = _Asked(hand), retry, parallel
        self._pace = Pace(per_second)
        self._answers = 0
        self._pool = ThreadPoolExecutor(parallel, thread_name_prefix="lane")

    def close(self) -> None:
        """Let the threads go; those that are busy end with their row."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def run(self, count: int, one: Callable[[int], Ended], stop_at_failure: bool = False) -> list[Ended]:
        """`one(place)` for each of so many rows; those that were begun, in order. What `Hand.may_go` raises stops it,
        and `ConnectorError` of a row too, which is raised if no row was sent before. A row that was not answered
        (`Ended.away`) stops it where no other row was answered in the meantime. Nothing is under way any more when it
        returns or raises."""
        course = _Course(count, self._hand, stop_at_failure, lambda: self._answers)
        if self._parallel == 1 or count == 1:
            course.drive(one)
        else:
            lanes = [self._pool.submit(course.drive, one) for _ in range(min(self._parallel, count))]
            all_over(lanes)
            for lane in lanes:
                lane.result()
        return course.ended()

    def attempt(self, send: Callable[[], Reply]) -> tuple[Tried, bool]:
        """As `retry.attempt`. Where `Hand` stops it between two attempts, the last one stands, and the second value is
        True. Raises `Stopped` only if nothing was sent."""
        last: list[Tried] = []
        began, waited = time.monotonic(), 0.0

        def may_go() -> None:
            if not last:  # between two attempts `wait` has just been asked
                self._hand.may_go()

        def noted() -> Reply:
            nonlocal waited
            self._pace.turn(self._hand.wait, waited)
            number, unanswered = len(last) + 1, last[-1].unanswered if last else 0
            spent = round((time.monotonic() - began) * 1000)
            try:
                reply = send()
            except NetError as error:
                unknown = error.arrived and error.reason != "redirected"
                last.append(Tried(None, error, number, unknown, unanswered + unknown, spent))
                raise
            self._answers += 1
            last.append(Tried(reply, None, number, False, unanswered, spent))
            if reply.status in _SLOW_DOWN and reply.status in self._retry.retry_on:
                waited = self._pace.hold(asked_for(reply))
            return reply

        try:
            return attempt(noted, self._retry, wait=self._hand.wait, may_go=may_go), False
        except Stopped:
            if not last:
                raise
            return last[-1], True


class _Course:
    """One `Lanes.run`, over its threads."""

    def __init__(self, count: int, hand: _Asked, stop_at_failure: bool, answers: Callable[[], int]) -> None:
        self._hand, self._stop_at_failure, self._answers = hand, stop_at_failure, answers
        self._lock = threading.Lock()
        self._found: list[Ended | None] = [None] * count
        self._next = 0
        self._over = False
        self._error: ConnectorError | None = None

    def drive(self, one: Callable[[int], Ended]) -> None:
        """Take row after row until none is left."""
        while (place := self._take()) is not None:
            before = self._answers()
            try:
                ended = one(place)
            except ConnectorError as error:
                self._over, self._error = True, self._error or error
                ended = Ended(place, "failed", None, 0, "no_token", error.message)
            except Stopped:
                self._over = True
                ended = Ended(place, "failed", None, 0, "interrupted", _NOT_SENT)
            except BaseException:  # no row is begun after a fault of our own
                self._over = True
                raise
            self._found[place] = ended
            if self._stop_at_failure and ended.state != "delivered":
                self._over = True
            if ended.away and self._answers() == before:
                self._over = True

    def _take(self) -> int | None:
        with self._lock:
            if self._over or self._next >= len(self._found):
                return None
            try:
                self._hand.may_go()
            except Stopped:
                self._over = True
                return None
            self._next += 1
            return self._next - 1

    def ended(self) -> list[Ended]:
        """The rows that were begun; trailing ones of which nothing was sent are left out."""
        found = [one for one in self._found if one is not None]
        while found and found[-1].attempts == 0:
            found.pop()
        if not found and self._error is not None:
            raise self._error
        return found


_NOT_SENT = "The push was stopped before this row was sent."
