"""Server-sent events about the progress of a job (HTML standard, section 9.2).

The stream has `event: progress` with the counts as JSON when they change, one `event: end`, and a comment every 15
seconds of silence. A client that reconnects with Last-Event-ID does not get the same state twice, and always gets an
end event.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import orjson
from flask import Response, request

from webapp import limits
from webapp.extensions import application
from webapp.web import stream_slots


class State(Protocol):
    """The state of a job at one moment."""

    @property
    def mark(self) -> str:
        """A value that identifies this state among those of the job."""

    @property
    def ended(self) -> bool:
        """Whether the state is final."""

    def counts(self) -> Mapping[str, Any]:
        """The data of a `progress` event."""

    def end(self) -> Mapping[str, Any]:
        """The data of the `end` event."""


def event(name: str, mark: str, data: Mapping[str, Any]) -> bytes:
    """One event."""
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (mark.encode(), name.encode(), orjson.dumps(data))


def progress(
    look: Callable[[], State | None],
    last_seen: str = "",
    *,
    wait: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[bytes]:
    """Yield the events of a job until it ends or is deleted, or SSE_MAX_SECONDS have passed."""
    began = spoke = clock()
    while (state := look()) is not None:
        now = clock()
        if state.ended:
            yield event("end", state.mark, state.end())
            return
        if state.mark != last_seen:
            last_seen, spoke = state.mark, now
            yield event("progress", state.mark, state.counts())
        elif now - spoke >= limits.SSE_COMMENT_SECONDS:
            spoke = now
            yield b": still here\n\n"
        if now - began >= limits.SSE_MAX_SECONDS:
            return
        wait(limits.SSE_POLL_SECONDS)


def follow(look: Callable[[], State | None]) -> Response:
    """A stream of `progress` as an answer. `look` is called with an application at hand and must hold no session.
    Error: unavailable, when as many follow as may."""
    app = application()

    def looked() -> State | None:
        with app.app_context():
            return look()

    return stream_slots.stream(progress(looked, request.headers.get("Last-Event-ID", "")))
