"""An answer as it comes: its head, and a body that is read in pieces and known to be whole."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable, Iterator
from typing import Any, Final, Optional

from rowsmith.error import BadAnswer, ConnectionFailed, Timeout

PIECE: Final = 64 * 1024
"""Bytes that are read at once, at most."""


class Answer:
    """The answer to one request. Read it to the end or close it; `with` closes it."""

    def __init__(self, response: http.client.HTTPResponse, done: Callable[[bool], None]) -> None:
        self._response = response
        self._done: Optional[Callable[[bool], None]] = done
        self._left = response.length  # None: until the last chunk, or until the other side hangs up
        self.status: int = response.status
        self.headers = response.headers
        self.request_id: Optional[str] = response.headers.get("X-Request-Id")

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def pieces(self) -> Iterator[bytes]:
        """The body as it arrives. ConnectionFailed where it ends before its end, Timeout where nothing comes."""
        while self._done is not None:
            piece = self._piece()
            if not piece:
                self._end(whole=True)
                return
            yield piece

    def read(self) -> bytes:
        """All of the body."""
        return b"".join(self.pieces())

    def json(self) -> Any:
        """The body as JSON. BadAnswer where it is something else."""
        kind = self.headers.get_content_type()
        raw = self.read()
        if kind != "application/json" and not kind.endswith("+json"):
            raise self._bad(f"It is {kind}, not JSON.")
        try:
            return json.loads(raw)
        except ValueError:
            raise self._bad("It is no whole JSON document.") from None

    def close(self) -> None:
        """Let go of the connection, whatever of the body is not read."""
        if self._done is not None:
            self._end(whole=False)

    def _piece(self) -> bytes:
        try:
            if self._left is None:
                # read1 gives what is there and does not wait for more, as followers need it.
                return self._response.read1(PIECE)
            piece = self._response.read(min(PIECE, self._left)) if self._left else b""
        except socket.timeout as error:
            self.close()
            raise self._failed(Timeout, "timeout", "The answer stopped coming.") from error
        except (OSError, http.client.HTTPException, ValueError, AttributeError) as error:
            self.close()
            raise self._failed(
                ConnectionFailed, "connection_failed", f"The answer broke off: {error!r}"
            ) from error
        self._left -= len(piece)
        if not piece and self._left:
            self.close()
            raise self._failed(ConnectionFailed, "connection_failed", "The answer broke off.")
        return piece

    def _failed(self, kind: type[ConnectionFailed], code: str, message: str) -> ConnectionFailed:
        made = kind(code, 0, {}, self.request_id, message)
        made.sent = True
        return made

    def _bad(self, why: str) -> BadAnswer:
        return BadAnswer(
            "bad_answer", self.status, {}, self.request_id, f"The answer is not the service's. {why}"
        )

    def _end(self, whole: bool) -> None:
        done, self._done = self._done, None
        reusable = whole and not self._response.will_close
        self._response.close()
        if done is not None:
            done(reusable)
