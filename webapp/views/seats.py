"""Places for callers who stay: followers of streams of events, and those who wait for the end of a run.

Each of them holds a thread of a web process. A process gives away all threads but WEB_FREE_THREADS, so that however
many follow, everybody else is answered at once.
"""

from __future__ import annotations

import select
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

from flask import Flask, Response, current_app, request

from webapp import limits
from webapp.errors import ApiError

_SEATS: Final = "rowsmith.seats"
STOPPING: Final = "rowsmith.stopping"  # an extension: says whether this web process is asked to end
# Linux tells of a caller that has gone; elsewhere the next thing sent to it does.
_HANG_UP: Final = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)


class Seats:
    """So many places, taken and left by any thread."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.taken = 0
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Whether there was a free one, which is now the caller's."""
        with self._lock:
            if self.taken >= self.most:
                return False
            self.taken += 1
            return True

    def leave(self) -> None:
        """Give one back."""
        with self._lock:
            self.taken -= 1


def of(app: Flask) -> Seats:
    """The places of this web process."""
    found = app.extensions.get(_SEATS)
    if found is None:
        threads = app.config["SETTINGS"].web_threads
        most = max(threads - limits.WEB_FREE_THREADS, threads // 2, 1)
        found = app.extensions.setdefault(_SEATS, Seats(most))
    return cast(Seats, found)


def stream(pieces: Iterator[bytes], left: Callable[[], None] = lambda: None) -> Response:
    """A stream of events as an answer, in a place of its own; `left` is called once it has ended, however it does.
    Error: unavailable with Retry-After, when every place is taken."""
    seats = of(current_app._get_current_object())  # type: ignore[attr-defined]
    if not seats.take():
        left()
        raise full()
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return Response(_Held(pieces, left, seats), mimetype="text/event-stream", headers=headers)


def full() -> ApiError:
    """Every place is taken."""
    wait = limits.FOLLOW_RETRY_SECONDS
    told = "As many follow here as can. Come again in a moment; Last-Event-ID goes on where you were."
    return ApiError("unavailable", told, {"retry_after": wait}, headers={"Retry-After": str(wait)})


class _Held:
    """Pieces of an answer; its place is left when it is closed, also when nobody ever asked for a piece."""

    def __init__(self, pieces: Iterator[bytes], left: Callable[[], None], seats: Seats) -> None:
        self._pieces, self._left, self._seats = pieces, left, seats
        self._closed = False

    def __iter__(self) -> Iterator[bytes]:
        """The pieces."""
        return self

    def __next__(self) -> bytes:
        """The next one. The place is left with the last."""
        try:
            return next(self._pieces)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Leave. Doing it twice changes nothing."""
        if self._closed:
            return
        self._closed = True
        close = getattr(self._pieces, "close", None)
        try:
            if close is not None:
                close()
            self._left()
        finally:
            self._seats.leave()


def presence() -> Callable[[], bool]:
    """A question to ask now and then: whether the caller of the present request is still there and the process is not
    asked to end."""
    stopping = current_app.extensions.get(STOPPING)
    gone = _gone(request.environ.get("gunicorn.socket"))
    return lambda: not (gone() or (stopping is not None and stopping()))


def _gone(socket: Any) -> Callable[[], bool]:
    if socket is None:
        return lambda: False
    poll = select.poll()
    poll.register(socket, getattr(select, "POLLRDHUP", 0))  # the other two are always told

    def ask() -> bool:
        return any(event & _HANG_UP for _, event in poll.poll(0))

    return ask
