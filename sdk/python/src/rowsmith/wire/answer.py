"""A response: its headers, and a body that is read in pieces and checked for completeness."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable, Iterator
from typing import Any, Final, Optional

from rowsmith.error import BadAnswer, ConnectionFailed, Timeout

PIECE: Final = 64 * 1024
"""Maximum number of bytes to read at a time."""


class Answer:
    """The response to a request. Read it to the end or close it, for example with `with`."""

    def __init__(self, response: http.client.HTTPResponse, done: Callable[[bool], None]) -> None:
        self._response = response
        self._done: Optional[Callable[[bool], None]] = done
        self._left = response.length  # None: until the last chunk, or until the server closes the connection
        self.status: int = response.status
        self.headers = response.headers
        self.request_id: Optional[str] = response.headers.get("X-Request-Id")

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def pieces(self) -> Iterator[bytes]:
        """Yield the body as it arrives. Raise ConnectionFailed if it ends early, Timeout if nothing arrives."""
        while self._done is not None:
            piece = self._piece()
            if not piece:
                self._end(whole=True)
                return
            yield piece

    def read(self) -> bytes:
        """Return the whole body."""
        return b"".join(self.pieces())

    def json(self) -> Any:
        """Parse the body as JSON. Raise BadAnswer if it is not JSON."""
        kind = self.headers.get_content_type()
        raw = self.read()
        if kind != "application/json" and not kind.endswith("+json"):
            raise self._bad(f"It is {kind}, not JSON.")
        try:
            return json.loads(raw)
        except ValueError:
            raise self._bad("It is not a complete JSON document.") from None

    def close(self) -> None:
        """Release the connection, even if the body was not read completely."""
        if self._done is not None:
            self._end(whole=False)

    def _piece(self) -> bytes:
        try:
            if self._left is None:
                # read1 returns the available bytes and does not wait for more, which followers need.
                return self._response.read1(PIECE)
            piece = self._response.read(min(PIECE, self._left)) if self._left else b""
        except socket.timeout as error:
            self.close()
            raise self._failed(Timeout, "timeout", "The response stalled.") from error
        except (OSError, http.client.HTTPException, ValueError, AttributeError) as error:
            self.close()
            raise self._failed(
                ConnectionFailed, "connection_failed", f"The connection was lost during the response: {error!r}"
            ) from error
        self._left -= len(piece)
        if not piece and self._left:
            self.close()
            raise self._failed(ConnectionFailed, "connection_failed", "The connection was lost during the response.")
        return piece

    def _failed(self, kind: type[ConnectionFailed], code: str, message: str) -> ConnectionFailed:
        made = kind(code, 0, {}, self.request_id, message)
        made.sent = True
        return made

    def _bad(self, why: str) -> BadAnswer:
        return BadAnswer(
            "bad_answer", self.status, {}, self.request_id, f"The response is not from the service. {why}"
        )

    def _end(self, whole: bool) -> None:
        done, self._done = self._done, None
        reusable = whole and not self._response.will_close
        self._response.close()
        if done is not None:
            done(reusable)
