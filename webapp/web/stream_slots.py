"""Slots for clients that stay connected: followers of event streams, and requests that wait for the end of a run.

Each of them keeps a thread of a web process busy. `WEB_FREE_THREADS` threads are never used for slots, so all other
requests are still answered immediately.
"""

from __future__ import annotations

import select
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

from flask import Flask, Response, current_app, request

from webapp import limits
from webapp.errors import ApiError
from webapp.extensions import application

_SLOTS: Final = "rowsmith.stream_slots"
STOPPING: Final = "rowsmith.stopping"  # an extension: returns whether this web process is stopping
# Linux reports a client that has disconnected; elsewhere the next write fails.
_DISCONNECTED: Final = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)


class StreamSlots:
    """A number of slots, acquired and released by any thread."""

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.used = 0
        self._lock = threading.Lock()

    def acquire(self) -> bool:
        """Acquire a slot. Return False if all are in use."""
        with self._lock:
            if self.used >= self.maximum:
                return False
            self.used += 1
            return True

    def release(self) -> None:
        """Release a slot."""
        with self._lock:
            self.used -= 1


def of_process(app: Flask) -> StreamSlots:
    """Return the slots of this web process."""
    slots = app.extensions.get(_SLOTS)
    if slots is None:
        threads = app.config["SETTINGS"].web_threads
        maximum = max(threads - limits.WEB_FREE_THREADS, threads // 2, 1)
        slots = app.extensions.setdefault(_SLOTS, StreamSlots(maximum))
    return cast(StreamSlots, slots)


def stream(pieces: Iterator[bytes], on_close: Callable[[], None] = lambda: None) -> Response:
    """Return a stream of events as a response that uses a slot. `on_close` is called once when it ends for any reason.

    Error: unavailable with Retry-After if no slot is free.
    """
    slots = of_process(application())
    if not slots.acquire():
        on_close()
        raise no_free_slot()
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return Response(_SlotStream(pieces, on_close, slots), mimetype="text/event-stream", headers=headers)


def no_free_slot() -> ApiError:
    """Return the error when all slots are in use."""
    wait = limits.FOLLOW_RETRY_SECONDS
    message = "Too many clients are following events. Try again in a moment; Last-Event-ID resumes where you stopped."
    return ApiError("unavailable", message, {"retry_after": wait}, headers={"Retry-After": str(wait)})


class _SlotStream:
    """The body of a response. Its slot is released when it is closed, even if no piece was ever read."""

    def __init__(self, pieces: Iterator[bytes], on_close: Callable[[], None], slots: StreamSlots) -> None:
        self._pieces, self._on_close, self._slots = pieces, on_close, slots
        self._closed = False

    def __iter__(self) -> Iterator[bytes]:
        """Iterate over the pieces."""
        return self

    def __next__(self) -> bytes:
        """Return the next piece. The slot is released after the last one."""
        try:
            return next(self._pieces)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the slot. Repeating it does nothing."""
        if self._closed:
            return
        self._closed = True
        close = getattr(self._pieces, "close", None)
        try:
            if close is not None:
                close()
            self._on_close()
        finally:
            self._slots.release()


def connection_check() -> Callable[[], bool]:
    """Return a function that returns whether the client of this request is still connected and the process is not
    stopping."""
    stopping = current_app.extensions.get(STOPPING)
    disconnected = _disconnection(request.environ.get("gunicorn.socket"))
    return lambda: not (disconnected() or (stopping is not None and stopping()))


def _disconnection(socket: Any) -> Callable[[], bool]:
    if socket is None:
        return lambda: False
    poll = select.poll()
    poll.register(socket, getattr(select, "POLLRDHUP", 0))  # the other two are always reported

    def is_disconnected() -> bool:
        return any(event & _DISCONNECTED for _, event in poll.poll(0))

    return is_disconnected
