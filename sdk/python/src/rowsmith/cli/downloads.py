"""Responses whose bytes are counted as they arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rowsmith.cli.console import Bar
from rowsmith.streams import saved
from rowsmith.wire.answer import Answer
from rowsmith.wire.retry import Retries


class ProgressResponse:
    """A response with the interface that `rowsmith.streams.saved` reads."""

    def __init__(self, answer: Answer, bar: Bar) -> None:
        self._answer, self._bar = answer, bar
        self.status, self.headers = answer.status, answer.headers
        length = answer.headers.get("Content-Length")
        if answer.status == 206:
            length = (answer.headers.get("Content-Range") or "").rpartition("/")[2]
        else:
            bar.done = 0  # restart, discarding earlier bytes
        if length and length.isdigit():
            bar.total = int(length)

    def __enter__(self) -> ProgressResponse:
        return self

    def __exit__(self, *_: object) -> None:
        self._answer.close()

    def pieces(self) -> Iterator[bytes]:
        """Yield the body as it arrives."""
        for piece in self._answer.pieces():
            yield piece
            self._bar.add(len(piece))


def fetched(
    open: Callable[[Mapping[str, str]], Answer], path: Path, retries: Retries, bar: Bar
) -> Mapping[str, Any]:
    """Write a response to a file atomically, and return the headers of the last response."""
    last: dict[str, Any] = {}

    def again(headers: Mapping[str, str]) -> Any:
        answer = open(headers)
        last.update(answer.headers.items())
        return ProgressResponse(answer, bar)

    saved(again, path, retries)
    return last
