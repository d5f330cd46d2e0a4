"""Log lines of a piece of work as server-sent events: each under its own number, then the end.

A follower that comes again with Last-Event-ID gets the lines after that one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from flask import Response, current_app, request

from webapp import limits
from webapp.views import events


class Line(Protocol):
    """One line."""

    number: int
    text: str


Read = Callable[[int], tuple[Sequence[Line], events.State | None]]
"""The next lines after a number, and the state as it was before they were read."""


def following(
    read: Read,
    after: int = 0,
    *,
    wait: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[bytes]:
    """The events of a log until its work has ended or is gone, or SSE_MAX_SECONDS have passed."""
    began = spoke = clock()
    last_look = False
    while True:
        lines, state = read(after)
        for line in lines:
            after, spoke = line.number, clock()
            yield _event(line)
        if state is None:
            return
        if state.ended and not lines:
            if last_look:  # the last line may be written right after the end
                yield events.event("end", str(after), state.end())
                return
            last_look = True
        now = clock()
        if now - spoke >= limits.SSE_COMMENT_SECONDS:
            spoke = now
            yield b": still here\n\n"
        if now - began >= limits.SSE_MAX_SECONDS:
            return
        if not lines:
            wait(limits.SSE_POLL_SECONDS)


def _event(line: Line) -> bytes:
    text = "".join(f"data: {part}\n" for part in line.text.splitlines() or [""])
    return f"id: {line.number}\nevent: log\n{text}\n".encode()


def follow(read: Read) -> Response:
    """The stream as an answer. `read` is called with an application at hand and must hold no session."""
    app = current_app._get_current_object()  # type: ignore[attr-defined]
    seen = request.headers.get("Last-Event-ID", "")

    def looked(after: int) -> tuple[Sequence[Line], events.State | None]:
        with app.app_context():
            return read(after)

    pieces = following(looked, int(seen) if seen.isascii() and seen.isdigit() and len(seen) < 10 else 0)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return Response(pieces, mimetype="text/event-stream", headers=headers)
