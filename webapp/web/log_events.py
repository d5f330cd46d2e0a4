"""Log lines of a job as server-sent events (SSE): each with its line number, then the end.

    id: 17
    event: log
    data: the line

SSE resume: a client that reconnects with Last-Event-ID gets the lines after that one, and always `event: end`, even
long after the job has ended. See `log_hub` for reading logs, and `stream_slots` for the maximum number of followers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

from flask import Flask, Response, request

from webapp import limits
from webapp.extensions import application, db
from webapp.web import events, log_hub, stream_slots
from webapp.web.log_hub import Feed, Source

_MOST_ID: Final = 15  # digits of a line's number


def follow(source: Source, after: int = 0) -> Response:
    """The lines of a log as an answer, those above number `after` for who comes the first time. Error: unavailable,
    when as many follow as may."""
    app = application()
    seen = request.headers.get("Last-Event-ID", "")
    after = int(seen) if seen.isascii() and seen.isdigit() and len(seen) <= _MOST_ID else after
    db.session.remove()
    hub = log_hub.of(app)
    feed = hub.attach(source, lines=True)
    pieces = following(app, feed, after, present=stream_slots.connection_check())
    return stream_slots.stream(pieces, lambda: hub.detach(feed, lines=True))


def progress(source: Source) -> Response:
    """The counts of a work as an answer, whenever they change. Error: unavailable, when as many follow as may."""
    app = application()
    db.session.remove()
    hub = log_hub.of(app)
    feed = hub.attach(source, lines=False)
    present = stream_slots.connection_check()

    def look() -> events.State | None:
        return None if feed.gone or not present() else feed.state

    pieces = events.progress(look, request.headers.get("Last-Event-ID", ""))
    return stream_slots.stream(pieces, lambda: hub.detach(feed, lines=False))


def await_end(source: Source, seconds: float) -> bool:
    """Wait up to `seconds` for a run to end. Return False immediately if no stream slot is free.

    Returns early if the client disconnects; the run continues. Keeps no database session open.
    """
    app = application()
    db.session.remove()
    slots = stream_slots.of_process(app)
    if not slots.acquire():
        return False
    hub = log_hub.of(app)
    feed = hub.attach(source, lines=False)
    present = stream_slots.connection_check()
    until = time.monotonic() + seconds
    try:
        with feed.changed:
            while not (feed.gone or (feed.state is not None and feed.state.ended)):
                left = until - time.monotonic()
                if left <= 0 or not present():
                    break
                feed.changed.wait(min(left, limits.FOLLOW_GONE_SECONDS))
    finally:
        hub.detach(feed, lines=False)
        slots.release()
    return True


def following(
    app: Flask,
    feed: Feed,
    after: int = 0,
    *,
    present: Callable[[], bool] = lambda: True,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[bytes]:
    """Yield the events of a log after line `after` until its job has ended or is deleted, the follower has
    disconnected, or SSE_MAX_SECONDS have passed."""
    began = spoke = clock()
    while True:
        found, behind = feed.next(after, limits.FOLLOW_GONE_SECONDS)
        with feed.changed:
            over, gone, state, reached = feed.over, feed.gone, feed.state, feed.reached
        if behind:
            with app.app_context():
                pieces = feed.source.pieces(after)
            found = [log_hub.told(piece) for piece in pieces]
        if found:
            made, after, spoke = b"".join([one.after(after) for one in found]), found[-1].last, clock()
            yield made
            continue
        if behind:
            after = feed.base  # missing lines will not arrive any more
            continue
        if over and after >= reached and state is not None:
            yield events.event("end", str(after), state.end())
            return
        now = clock()
        if gone or not present() or now - began >= limits.SSE_MAX_SECONDS:
            return
        if now - spoke >= limits.SSE_COMMENT_SECONDS:
            spoke = now
            yield b": still here\n\n"
