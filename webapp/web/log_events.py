"""Log lines of a job as server-sent events (SSE): each with its line number, then the end.

    id: 17
    event: log
    data: the line

SSE resume: a client that reconnects with Last-Event-ID gets the lines after that one, and always `event: end`, even
long after the job has ended. See `log_hub` for reading logs, and `stream_slots` for the maximum number of followers.
"""

from __future__ import annotations

import builtins
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

import redis
from flask import Flask, Response, request
from sqlalchemy.exc import SQLAlchemyError

from webapp import limits
from webapp.extensions import application, db, make_redis
from webapp.web import events, stream_slots
from webapp.work.log_lines import Piece

# One reader for all followers of the same job in this process.

log = logging.getLogger(__name__)

_HUB: Final = "rowsmith.log_hub"
_LISTEN_SECONDS: Final = 0.1  # chosen: a new follower's word is listened to after this at most
_ROUNDS: Final = 16  # chosen: reads of one log before the others get their turn


class Source(Protocol):
    """A run with a log, read by short transactions within an application context."""

    @property
    def key(self) -> str:
        """A value that identifies the job."""

    @property
    def channel(self) -> str | None:
        """The Redis channel of notifications about new lines; None: poll every SSE_POLL_SECONDS."""

    def pieces(self, after: int) -> Sequence[Piece]:
        """The next lines above a number; none when there are no more now."""

    def state(self) -> events.State | None:
        """The state; None when the work is gone."""

    def last(self, state: events.State) -> int:
        """The last line of the log that is certainly written, by a state; 0 if unknown."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a new follower gets first: lines as events, up to number `last`."""

    first: int
    last: int
    lines: Sequence[str]
    bytes: bytes

    def after(self, number: int) -> builtins.bytes:
        """The events of those lines that are above a number."""
        if number < self.first:
            return self.bytes
        return told(Piece(number + 1, self.last, self.lines[number + 1 - self.first :])).bytes


def told(piece: Piece) -> Told:
    """Lines as events, each under its number."""
    made = "".join(
        f"id: {number}\nevent: log\ndata: {line}\n\n" for number, line in enumerate(piece.lines, piece.first)
    )
    return Told(piece.first, piece.last, piece.lines, made.encode("utf-8", "replace"))


class Feed:
    """The cached state of one followed job. Followers read it while holding `changed`."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.changed = threading.Condition()
        self.state: events.State | None = None
        self.gone = False
        self.over = False
        """Whether the job has ended and all of its lines have been read."""
        self.base = self.reached = 0
        """The window holds the lines above `base`, up to `reached`."""
        self.window: deque[Told] = deque()
        self.users = self.readers = 0
        self.looked = float("-inf")
        self.due = 0.0
        self._size = 0

    def next(self, after: int, wait: float) -> tuple[list[Told], bool]:
        """Return lines after a number, waiting for them for a while; and whether the cache starts too late, so that the
        source has to be read."""
        with self.changed:
            if after >= self.reached and not (self.over or self.gone):
                self.changed.wait(wait)
            if after < self.base:
                return [], True
            return [one for one in self.window if one.last > after], False

    def apply(self, state: events.State | None, found: Sequence[Told], *, over: bool, read: bool) -> None:
        """Store the latest state; `read`: and the lines."""
        with self.changed:
            self.gone = state is None
            if state is not None:
                self.state = state
            for one in found:
                self.window.append(one)
                self.reached = one.last
                self._size += len(one.bytes)
            while self._size > limits.FOLLOW_WINDOW_BYTES and len(self.window) > 1:
                left = self.window.popleft()
                self.base, self._size = left.last, self._size - len(left.bytes)
            self.over = over and (read or self.readers == 0)  # a reader may have arrived in the meantime
            self.changed.notify_all()

    def begin(self, at: int) -> None:
        """Hold the lines from here on."""
        self.window.clear()
        self._size = 0
        self.base = self.reached = at


class Hub:
    """The reader of one process."""

    def __init__(self, app: Flask) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._feeds: dict[str, Feed] = {}
        self._thread: threading.Thread | None = None

    def attach(self, source: Source, *, lines: bool) -> Feed:
        """The feed of a work, kept going until `detach`. `lines`: of its log too. Call it with an application at
        hand."""
        state = source.state()
        with self._lock:
            feed = self._feeds.setdefault(source.key, Feed(source))
            feed.users += 1
            with feed.changed:
                if state is not None:
                    feed.state = state
                if lines and feed.readers == 0:
                    feed.begin(source.last(state) if state is not None else 0)
                    feed.over = False
                feed.readers += lines
                feed.due = 0.0
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="log-hub", daemon=True)
                self._thread.start()
        return feed

    def detach(self, feed: Feed, *, lines: bool) -> None:
        """End what `attach` with the same `lines` has started."""
        with self._lock:
            feed.users -= 1
            feed.readers -= lines
            if feed.users == 0:
                self._feeds.pop(feed.source.key, None)

    def _run(self) -> None:
        with _Ear(self._app.config["REDIS_URL"]) as ear:
            while True:
                with self._lock:
                    feeds = list(self._feeds.values())
                    if not feeds:
                        self._thread = None
                        return
                channels = {feed.source.channel: feed for feed in feeds if feed.source.channel}
                for channel in ear.heard(set(channels), _LISTEN_SECONDS):
                    if (feed := channels.get(channel)) is not None:
                        feed.due = min(feed.due, feed.looked + limits.FOLLOW_WAKE_SECONDS)
                for feed in feeds:
                    if time.monotonic() >= feed.due:
                        self.look(feed)

    def look(self, feed: Feed) -> None:
        """Read what is new."""
        read = feed.readers > 0
        try:
            with self._app.app_context():
                state = feed.source.state()
                found, more = self._lines(feed) if read else ([], False)
        except SQLAlchemyError as error:
            log.warning("%s cannot be read: %s", feed.source.key, type(error).__name__)
            feed.due = time.monotonic() + limits.RUN_POLLED_SECONDS
            return
        ended = state is not None and state.ended
        # A run may write its last line right after its final state, so the log is read once more.
        again = feed.source.channel is None and not (feed.state is not None and feed.state.ended)
        feed.apply(state, found, over=ended and not found and not more and not again, read=read)
        feed.looked = time.monotonic()
        quick = limits.SSE_POLL_SECONDS if feed.source.channel is None else limits.RUN_POLLED_SECONDS
        hurry = more or (ended and not feed.over)
        feed.due = feed.looked + (limits.FOLLOW_WAKE_SECONDS if hurry else quick)

    def _lines(self, feed: Feed) -> tuple[list[Told], bool]:
        """New lines of a feed, and whether there may be more."""
        found: list[Told] = []
        reached = feed.reached
        for _ in range(_ROUNDS):
            pieces = feed.source.pieces(reached)
            if not pieces:
                return found, False
            found += [told(piece) for piece in pieces]
            reached = pieces[-1].last
        return found, True


def of(app: Flask) -> Hub:
    """The reader of this process."""
    found = app.extensions.get(_HUB)
    if found is None:
        found = app.extensions.setdefault(_HUB, Hub(app))
    return cast(Hub, found)


class _Ear:
    """Yield messages of one Redis connection; nothing while Redis is unavailable."""

    def __init__(self, url: str) -> None:
        self._client = make_redis(url)
        self._held: Any = None
        self._channels: set[str] = set()
        self._silent_until = 0.0

    def __enter__(self) -> _Ear:
        return self

    def __exit__(self, *_: object) -> None:
        self._drop()
        self._client.close()

    def heard(self, channels: set[str], seconds: float) -> set[str]:
        """Wait up to the timeout, and return the channels with new messages."""
        if not channels or time.monotonic() < self._silent_until:
            time.sleep(seconds)
            return set()
        try:
            return self._listen(channels, seconds)
        except (redis.RedisError, OSError) as error:
            log.debug("Redis does not answer: %s", error)
            self._drop()
            self._silent_until = time.monotonic() + limits.RUN_POLLED_SECONDS
            return set()

    def _listen(self, channels: set[str], seconds: float) -> set[str]:
        if self._held is None:
            self._held = self._client.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]  # redis-py does not annotate it
        if new := channels - self._channels:
            self._held.subscribe(*new)
        if old := self._channels - channels:
            self._held.unsubscribe(*old)
        self._channels = set(channels)
        found: set[str] = set()
        wait = seconds
        while (message := self._held.get_message(timeout=wait)) is not None or wait == seconds:
            wait = 0.0
            if message is not None:
                found.add(message["channel"].decode())
        return found

    def _drop(self) -> None:
        held, self._held = self._held, None
        self._channels = set()
        if held is not None:
            try:
                held.close()
            except (redis.RedisError, OSError):
                pass  # it is gone already


_MOST_ID: Final = 15  # digits of a line's number


def follow(source: Source, after: int = 0) -> Response:
    """The lines of a log as an answer, those above number `after` for who comes the first time. Error: unavailable,
    when as many follow as may."""
    app = application()
    seen = request.headers.get("Last-Event-ID", "")
    after = int(seen) if seen.isascii() and seen.isdigit() and len(seen) <= _MOST_ID else after
    db.session.remove()
    hub = of(app)
    feed = hub.attach(source, lines=True)
    pieces = following(app, feed, after, present=stream_slots.connection_check())
    return stream_slots.stream(pieces, lambda: hub.detach(feed, lines=True))


def progress(source: Source) -> Response:
    """The counts of a work as an answer, whenever they change. Error: unavailable, when as many follow as may."""
    app = application()
    db.session.remove()
    hub = of(app)
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
    hub = of(app)
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
            found = [told(piece) for piece in pieces]
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
