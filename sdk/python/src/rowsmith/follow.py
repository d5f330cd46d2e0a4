"""Following long work through server-sent events to its end, reconnecting when a connection breaks."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, Optional, TypeVar

from rowsmith.error import ConnectionFailed, ServiceError, Timeout
from rowsmith.wire.answer import Answer
from rowsmith.wire.events import Event, parse

T = TypeVar("T")
SILENT_SECONDS: Final = 45.0
"""Three intervals of the comments that the service sends into an idle stream. After a longer silence the
connection counts as broken."""
PATIENCE_SECONDS: Final = 120.0
"""How long a follower tries to reconnect before it gives up."""
LONGEST_WAIT: Final = 10.0


@dataclass(frozen=True)
class LogLine:
    """A line of a log, numbered from 1."""

    number: int
    text: str


Open = Callable[[str, float], Answer]
"""Opens the stream after an event's ID ("" for all), with a timeout for silence in seconds."""


class Follower(Generic[T]):
    """The events of running work. Iterate it once; it ends when the work has finished.

    Afterwards `end` contains the final event: `status`, and for runs `exit_code`. After a broken connection
    the follower reconnects and continues after the last received event, so no event is missed or repeated. If
    it cannot reconnect within `patience` seconds, the error is raised; `timeout` seconds after the start it
    raises Timeout.
    """

    def __init__(
        self,
        open: Open,
        made_of: Callable[[Event], T],
        *,
        after: str = "",
        timeout: Optional[float] = None,
        patience: float = PATIENCE_SECONDS,
        sleep: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.end: Optional[dict[str, Any]] = None
        self.last_id = after
        self._open, self._convert = open, made_of
        self._patience, self._sleep, self._clock = patience, sleep, clock
        self._timeout = timeout
        self._deadline = None if timeout is None else clock() + timeout
        self._answer: Optional[Answer] = None
        self._events = self._iterate()

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        return next(self._events)

    def __enter__(self) -> Follower[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop following."""
        self._events.close()
        if self._answer is not None:
            self._answer.close()

    def wait(self) -> dict[str, Any]:
        """Read to the end and return the final event."""
        for _ in self:
            pass
        return self.end or {}

    def _iterate(self) -> Generator[T, None, None]:
        connected, wait = self._clock(), 0.5
        while True:
            try:
                self._answer = self._open(self.last_id, self._read_timeout())
                connected = self._clock()
                for event in parse(self._answer.pieces(), self.last_id):
                    wait = 0.5
                    self.last_id = event.id
                    if event.name == "end":
                        self.end = event.json()
                        return
                    yield self._convert(event)
                connected = (
                    self._clock()
                )  # the service closed the stream in an orderly way and expects the client to reconnect
            except ServiceError as error:
                if not _is_retryable(error) or self._clock() - connected > self._patience:
                    raise
                wait = max(wait, error.retry_after or 0.0)
            finally:
                if self._answer is not None:
                    self._answer.close()
            self._check_deadline(wait)
            self._sleep(wait)
            wait = min(wait * 2, LONGEST_WAIT)

    def _read_timeout(self) -> float:
        self._check_deadline(0)
        left = SILENT_SECONDS if self._deadline is None else self._deadline - self._clock()
        return max(0.001, min(SILENT_SECONDS, left))

    def _check_deadline(self, wait: float) -> None:
        if self._deadline is not None and self._clock() + wait >= self._deadline:
            raise Timeout("timeout", message=f"It did not finish within {self._timeout} s.")


def log_line(event: Event) -> LogLine:
    """Return the log line of an event."""
    return LogLine(int(event.id) if event.id.isdigit() else 0, event.data)


def progress(event: Event) -> dict[str, Any]:
    """Return the counts of a progress event."""
    found: dict[str, Any] = event.json()
    return found


def _is_retryable(error: ServiceError) -> bool:
    return isinstance(error, ConnectionFailed) or error.status == 429 or error.status >= 500
