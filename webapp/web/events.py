"""Server-sent events (HTML standard, section 9.2): the progress of a job, and its log lines.

Each follower keeps a thread of a web process busy. `WEB_FREE_THREADS` threads are never used for followers, so all
other requests are still answered immediately (`slot`).

The stream of a job's progress has `event: progress` with the counts as JSON when they change, one `event: end`, and a
comment every 15 seconds of silence. A client that reconnects with Last-Event-ID does not get the same state twice, and
always gets an end event.

Log lines come each with its line number, then the end:

    id: 17
    event: log
    data: the line

SSE resume: a client that reconnects with Last-Event-ID gets the lines after that one, and always `event: end`, even
long after the job has ended. One thread of each process reads the logs for all followers.
"""

from __future__ import annotations

import builtins
import logging
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

import orjson
import redis
from flask import Flask, Response, current_app, request
from sqlalchemy.exc import SQLAlchemyError

from webapp import limits
from webapp.errors import ApiError
from webapp.extensions import application, create_redis_client, db
from webapp.work.log_lines import LogLines

log = logging.getLogger(__name__)

_SLOTS_KEY: Final = "rowsmith.stream_slots"
STOPPING_KEY: Final = "rowsmith.stopping"  # an extension: returns whether this web process is stopping
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


def stream_slots(app: Flask) -> StreamSlots:
    """Return the slots of this web process."""
    slots = app.extensions.get(_SLOTS_KEY)
    if slots is None:
        threads = app.config["SETTINGS"].web_threads
        maximum = max(threads - limits.WEB_FREE_THREADS, threads // 2, 1)
        slots = app.extensions.setdefault(_SLOTS_KEY, StreamSlots(maximum))
    return cast(StreamSlots, slots)


def stream(pieces: Iterator[bytes], on_close: Callable[[], None] = lambda: None) -> Response:
    """Return a stream of events as a response that uses a slot. `on_close` is called once when it ends for any reason.

    Error: unavailable with Retry-After if no slot is free.
    """
    slots = stream_slots(application())
    if not slots.acquire():
        on_close()
        raise no_free_slot_error()
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return Response(_SlotStream(pieces, on_close, slots), mimetype="text/event-stream", headers=headers)


def no_free_slot_error() -> ApiError:
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
    stopping = current_app.extensions.get(STOPPING_KEY)
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


# --- Progress of a job --------------------------------------------------------------------------------------


class JobState(Protocol):
    """The state of a job at one moment."""

    @property
    def event_id(self) -> str:
        """A value that identifies this state among those of the job."""

    @property
    def is_final(self) -> bool:
        """Whether the state is final."""

    def progress_data(self) -> Mapping[str, Any]:
        """The data of a `progress_events` event."""

    def end_data(self) -> Mapping[str, Any]:
        """The data of the `end` event."""


def format_event(name: str, mark: str, data: Mapping[str, Any]) -> bytes:
    """Return one event as bytes."""
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (mark.encode(), name.encode(), orjson.dumps(data))


def progress_events(
    look: Callable[[], JobState | None],
    last_seen: str = "",
    *,
    wait: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[bytes]:
    """Yield the events of a job until it ends or is deleted, or SSE_MAX_SECONDS have passed."""
    started = last_sent = clock()
    while (state := look()) is not None:
        now = clock()
        if state.is_final:
            yield format_event("end", state.event_id, state.end_data())
            return
        if state.event_id != last_seen:
            last_seen, last_sent = state.event_id, now
            yield format_event("progress", state.event_id, state.progress_data())
        elif now - last_sent >= limits.SSE_COMMENT_SECONDS:
            last_sent = now
            yield b": still here\n\n"
        if now - started >= limits.SSE_MAX_SECONDS:
            return
        wait(limits.SSE_POLL_SECONDS)


def follow_progress(look: Callable[[], JobState | None]) -> Response:
    """Return a response that streams `progress_events`. `look` is called in an application context, and must not keep a
    session open. Error: unavailable, if no slot is free."""
    app = application()

    def looked() -> JobState | None:
        with app.app_context():
            return look()

    return stream(progress_events(looked, request.headers.get("Last-Event-ID", "")))


# One reader for all followers of the same job in this process.


# --- Log lines ----------------------------------------------------------------------------------------------

_HUB_KEY: Final = "rowsmith.log_hub"
_LISTEN_SECONDS: Final = 0.1  # chosen: the maximum delay until messages for a new follower are received
_MAX_READS: Final = 16  # chosen: reads of one log before the others get their turn


class LogSource(Protocol):
    """A job with a log, read in short transactions within an application context."""

    @property
    def key(self) -> str:
        """A value that identifies the job."""

    @property
    def channel(self) -> str | None:
        """The Redis channel of notifications about new lines; None: poll every SSE_POLL_SECONDS."""

    def read_lines(self, after: int) -> Sequence[LogLines]:
        """Return the next lines after a number; none if there are no more yet."""

    def read_state(self) -> JobState | None:
        """Return the current state; None if the job was deleted."""

    def last_line_number(self, state: JobState) -> int:
        """Return the number of the last line that has certainly been written at a state; 0 if unknown."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """Consecutive log lines as events, from number `first` to `last`."""

    first: int
    last: int
    lines: Sequence[str]
    bytes: bytes

    def after(self, number: int) -> builtins.bytes:
        """Return the events of the lines after a number."""
        if number < self.first:
            return self.bytes
        return to_backlog(LogLines(number + 1, self.last, self.lines[number + 1 - self.first :])).bytes


def to_backlog(piece: LogLines) -> Backlog:
    """Return log lines as events, each with its number as id."""
    text = "".join(
        f"id: {number}\nevent: log\ndata: {line}\n\n" for number, line in enumerate(piece.lines, piece.first)
    )
    return Backlog(piece.first, piece.last, piece.lines, text.encode("utf-8", "replace"))


class Feed:
    """The cached state of one followed job. Followers read it while holding `changed`."""

    def __init__(self, source: LogSource) -> None:
        self.source = source
        self.changed = threading.Condition()
        self.state: JobState | None = None
        self.is_deleted = False
        self.over = False
        """Whether the job has ended and all of its lines have been read."""
        self.base = self.reached = 0
        """The window holds the lines above `base`, up to `reached`."""
        self.window: deque[Backlog] = deque()
        self.users = self.readers = 0
        self.looked = float("-inf")
        self.next_read = 0.0
        self._size = 0

    def wait_for_lines(self, after: int, wait: float) -> tuple[list[Backlog], bool]:
        """Return lines after a number, waiting for them for a while; and whether the cache starts too late, so that the
        source has to be read."""
        with self.changed:
            if after >= self.reached and not (self.over or self.is_deleted):
                self.changed.wait(wait)
            if after < self.base:
                return [], True
            return [lines for lines in self.window if lines.last > after], False

    def update(self, state: JobState | None, found: Sequence[Backlog], *, over: bool, read: bool) -> None:
        """Store the latest state; `read`: and the lines."""
        with self.changed:
            self.is_deleted = state is None
            if state is not None:
                self.state = state
            for lines in found:
                self.window.append(lines)
                self.reached = lines.last
                self._size += len(lines.bytes)
            while self._size > limits.FOLLOW_WINDOW_BYTES and len(self.window) > 1:
                oldest = self.window.popleft()
                self.base, self._size = oldest.last, self._size - len(oldest.bytes)
            self.over = over and (read or self.readers == 0)  # a reader may have arrived in the meantime
            self.changed.notify_all()

    def reset_window(self, number: int) -> None:
        """Clear the window, and cache the lines after a number from now on."""
        self.window.clear()
        self._size = 0
        self.base = self.reached = number


class LogHub:
    """Reads the logs and states of all followed jobs of one process, in one thread."""

    def __init__(self, app: Flask) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._feeds: dict[str, Feed] = {}
        self._thread: threading.Thread | None = None

    def attach(self, source: LogSource, *, lines: bool) -> Feed:
        """Return the feed of a job, which is updated until `detach`. `lines`: also read its log. Call it in an
        application context."""
        state = source.read_state()
        with self._lock:
            feed = self._feeds.setdefault(source.key, Feed(source))
            feed.users += 1
            with feed.changed:
                if state is not None:
                    feed.state = state
                if lines and feed.readers == 0:
                    feed.reset_window(source.last_line_number(state) if state is not None else 0)
                    feed.over = False
                feed.readers += lines
                feed.next_read = 0.0
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="log-hub", daemon=True)
                self._thread.start()
        return feed

    def detach(self, feed: Feed, *, lines: bool) -> None:
        """Undo one call of `attach` with the same `lines`."""
        with self._lock:
            feed.users -= 1
            feed.readers -= lines
            if feed.users == 0:
                self._feeds.pop(feed.source.key, None)

    def close(self) -> None:
        """Detach all feeds, and wait until the thread has ended."""
        with self._lock:
            self._feeds.clear()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        with _Subscription(self._app.config["REDIS_URL"]) as subscription:
            while True:
                with self._lock:
                    feeds = list(self._feeds.values())
                    if not feeds:
                        self._thread = None
                        return
                channels = {feed.source.channel: feed for feed in feeds if feed.source.channel}
                for channel in subscription.wait(set(channels), _LISTEN_SECONDS):
                    if (feed := channels.get(channel)) is not None:
                        feed.next_read = min(feed.next_read, feed.looked + limits.FOLLOW_WAKE_SECONDS)
                for feed in feeds:
                    if time.monotonic() >= feed.next_read:
                        self.look(feed)

    def look(self, feed: Feed) -> None:
        """Read the state of a feed and, if a client reads them, its new lines."""
        read = feed.readers > 0
        try:
            with self._app.app_context():
                state = feed.source.read_state()
                found, more = self._new_lines(feed) if read else ([], False)
        except SQLAlchemyError as error:
            log.warning("could not read %s: %s", feed.source.key, type(error).__name__)
            feed.next_read = time.monotonic() + limits.RUN_FALLBACK_POLL_SECONDS
            return
        ended = state is not None and state.is_final
        # A run may write its last line right after its final state, so the log is read once more.
        reads_again = feed.source.channel is None and not (feed.state is not None and feed.state.is_final)
        feed.update(state, found, over=ended and not found and not more and not reads_again, read=read)
        feed.looked = time.monotonic()
        interval = (
            limits.SSE_POLL_SECONDS if feed.source.channel is None else limits.RUN_FALLBACK_POLL_SECONDS
        )
        is_urgent = more or (ended and not feed.over)
        feed.next_read = feed.looked + (limits.FOLLOW_WAKE_SECONDS if is_urgent else interval)

    def _new_lines(self, feed: Feed) -> tuple[list[Backlog], bool]:
        """Return the new lines of a feed, and whether there may be more."""
        found: list[Backlog] = []
        reached = feed.reached
        for _ in range(_MAX_READS):
            pieces = feed.source.read_lines(reached)
            if not pieces:
                return found, False
            found += [to_backlog(piece) for piece in pieces]
            reached = pieces[-1].last
        return found, True


def log_hub(app: Flask) -> LogHub:
    """Return the log hub of this process."""
    found = app.extensions.get(_HUB_KEY)
    if found is None:
        found = app.extensions.setdefault(_HUB_KEY, LogHub(app))
    return cast(LogHub, found)


def close(app: Flask) -> None:
    """Stop the log hub of this process, if there is one."""
    if _HUB_KEY in app.extensions:
        log_hub(app).close()


class _Subscription:
    """Yield messages of one Redis connection; nothing while Redis is unavailable."""

    def __init__(self, url: str) -> None:
        self._client = create_redis_client(url)
        self._pubsub: Any = None
        self._channels: set[str] = set()
        self._silent_until = 0.0

    def __enter__(self) -> _Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self._disconnect()
        self._client.close()

    def wait(self, channels: set[str], seconds: float) -> set[str]:
        """Wait up to the timeout, and return the channels with new messages."""
        if not channels or time.monotonic() < self._silent_until:
            time.sleep(seconds)
            return set()
        try:
            return self._listen(channels, seconds)
        except (redis.RedisError, OSError) as error:
            log.debug("Redis is unavailable: %s", error)
            self._disconnect()
            self._silent_until = time.monotonic() + limits.RUN_FALLBACK_POLL_SECONDS
            return set()

    def _listen(self, channels: set[str], seconds: float) -> set[str]:
        if self._pubsub is None:
            self._pubsub = self._client.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]  # redis-py does not annotate it
        if new := channels - self._channels:
            self._pubsub.subscribe(*new)
        if old := self._channels - channels:
            self._pubsub.unsubscribe(*old)
        self._channels = set(channels)
        found: set[str] = set()
        wait = seconds
        while (message := self._pubsub.get_message(timeout=wait)) is not None or wait == seconds:
            wait = 0.0
            if message is not None:
                found.add(message["channel"].decode())
        return found

    def _disconnect(self) -> None:
        pubsub, self._pubsub = self._pubsub, None
        self._channels = set()
        if pubsub is not None:
            try:
                pubsub.close()
            except (redis.RedisError, OSError):
                pass  # it is closed already


_MAX_ID_DIGITS: Final = 15  # digits of a line's number


def follow_log(source: LogSource, after: int = 0) -> Response:
    """Return a response that streams the lines of a log, for a new client those after number `after`. Error:
    unavailable, if no slot is free."""
    app = application()
    seen = request.headers.get("Last-Event-ID", "")
    after = int(seen) if seen.isascii() and seen.isdigit() and len(seen) <= _MAX_ID_DIGITS else after
    db.session.remove()
    hub = log_hub(app)
    feed = hub.attach(source, lines=True)
    pieces = log_events(app, feed, after, is_connected=connection_check())
    return stream(pieces, lambda: hub.detach(feed, lines=True))


def log_progress(source: LogSource) -> Response:
    """Return a response that streams the counts of a job when they change. Error: unavailable, if no slot is free."""
    app = application()
    db.session.remove()
    hub = log_hub(app)
    feed = hub.attach(source, lines=False)
    is_connected = connection_check()

    def look() -> JobState | None:
        return None if feed.is_deleted or not is_connected() else feed.state

    pieces = progress_events(look, request.headers.get("Last-Event-ID", ""))
    return stream(pieces, lambda: hub.detach(feed, lines=False))


def wait_until_finished(source: LogSource, seconds: float) -> bool:
    """Wait up to `seconds` for a run to end. Return False immediately if no stream slot is free.

    Returns early if the client disconnects; the run continues. Keeps no database session open.
    """
    app = application()
    db.session.remove()
    slots = stream_slots(app)
    if not slots.acquire():
        return False
    hub = log_hub(app)
    feed = hub.attach(source, lines=False)
    is_connected = connection_check()
    deadline = time.monotonic() + seconds
    try:
        with feed.changed:
            while not (feed.is_deleted or (feed.state is not None and feed.state.is_final)):
                left = deadline - time.monotonic()
                if left <= 0 or not is_connected():
                    break
                feed.changed.wait(min(left, limits.FOLLOW_DISCONNECT_POLL_SECONDS))
    finally:
        hub.detach(feed, lines=False)
        slots.release()
    return True


def log_events(
    app: Flask,
    feed: Feed,
    after: int = 0,
    *,
    is_connected: Callable[[], bool] = lambda: True,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[bytes]:
    """Yield the events of a log after line `after` until its job has ended or is deleted, the follower has
    disconnected, or SSE_MAX_SECONDS have passed."""
    started = last_sent = clock()
    while True:
        found, behind = feed.wait_for_lines(after, limits.FOLLOW_DISCONNECT_POLL_SECONDS)
        with feed.changed:
            over, gone, state, reached = feed.over, feed.is_deleted, feed.state, feed.reached
        if behind:
            with app.app_context():
                pieces = feed.source.read_lines(after)
            found = [to_backlog(piece) for piece in pieces]
        if found:
            events, after, last_sent = (
                b"".join([lines.after(after) for lines in found]),
                found[-1].last,
                clock(),
            )
            yield events
            continue
        if behind:
            after = feed.base  # missing lines will not arrive any more
            continue
        if over and after >= reached and state is not None:
            yield format_event("end", str(after), state.end_data())
            return
        now = clock()
        if gone or not is_connected() or now - started >= limits.SSE_MAX_SECONDS:
            return
        if now - last_sent >= limits.SSE_COMMENT_SECONDS:
            last_sent = now
            yield b": still here\n\n"
