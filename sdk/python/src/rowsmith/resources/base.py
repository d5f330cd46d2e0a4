"""Base classes of all resources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from rowsmith.follow import Follower, LogLine, log_line, progress
from rowsmith.pages import Pages
from rowsmith.record import IfMatch, if_match
from rowsmith.template import plain
from rowsmith.wire.answer import Answer
from rowsmith.wire.caller import Caller
from rowsmith.wire.retry import NONE

Key = Optional[str]
"""An Idempotency-Key. If none is given, a new one is created and used for all attempts."""


class Resource:
    """One kind of object, accessed through a `Caller`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def _get(self, path: str, query: Optional[Mapping[str, Any]] = None, **parts: object) -> Any:
        return self._caller.json("GET", path, parts=parts, query=query)

    def _list(self, path: str, query: Mapping[str, Any], **parts: object) -> Pages[Any]:
        def fetch(asked: Mapping[str, object]) -> Mapping[str, Any]:
            found: Mapping[str, Any] = self._caller.json("GET", path, parts=parts, query=asked)
            return found

        return Pages(fetch, query)

    def _create(self, path: str, body: Any, key: Key = None, **parts: object) -> Any:
        """Send a POST that creates or starts something. It takes effect once, however often it is sent."""
        sent = plain(body) if body is not None else None
        return self._caller.json("POST", path, parts=parts, json=sent, idempotency_key=key or True)

    def _ask(
        self, path: str, body: Any = None, repeatable: bool = True, tag: IfMatch = None, **parts: object
    ) -> Any:
        """Send a POST without Idempotency-Key, usually because repeating it is harmless."""
        sent, headers = (plain(body) if body is not None else None), if_match(tag)
        return self._caller.json("POST", path, parts=parts, json=sent, headers=headers, repeatable=repeatable)

    def _change(self, method: str, path: str, body: Any, tag: IfMatch = None, **parts: object) -> Any:
        # With If-Match a second attempt is harmless, but it would be rejected if the first one had arrived.
        return self._caller.json(method, path, parts=parts, json=plain(body), headers=if_match(tag))

    def _delete(
        self, path: str, tag: IfMatch = None, query: Optional[Mapping[str, Any]] = None, **parts: object
    ) -> Any:
        return self._caller.json("DELETE", path, parts=parts, query=query, headers=if_match(tag))

    def _stream(self, path: str, query: Mapping[str, Any], parts: Mapping[str, object]) -> Any:
        def open(last_id: str, silent: float) -> Answer:
            headers = {"Accept": "text/event-stream"}
            if last_id:
                headers["Last-Event-ID"] = last_id
            # The follower reconnects on its own.
            return self._caller.open(
                "GET", path, parts=parts, query=query, headers=headers, silent_seconds=silent, retries=NONE
            )

        return open

    def _progress(self, path: str, timeout: Optional[float], **parts: object) -> Follower[dict[str, Any]]:
        return Follower(self._stream(path, {}, parts), progress, timeout=timeout)

    def _log(self, path: str, after: int, timeout: Optional[float], **parts: object) -> Follower[LogLine]:
        last = str(after) if after else ""
        return Follower(self._stream(path, {"follow": True}, parts), log_line, after=last, timeout=timeout)

    def _text(self, path: str, query: Optional[Mapping[str, Any]] = None, **parts: object) -> str:
        return self._caller.text("GET", path, parts=parts, query=query)
