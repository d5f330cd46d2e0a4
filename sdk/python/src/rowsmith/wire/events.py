"""Server-sent events, parsed according to the HTML standard (section 9.2.6)."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Event:
    """One event: its ID (the latest one that was sent), its name, its data."""

    id: str
    name: str
    data: str

    def json(self) -> Any:
        """The data parsed as JSON."""
        return json.loads(self.data)


def parse(pieces: Iterable[bytes], last_id: str = "") -> Iterator[Event]:
    """Yield the events of a stream. An incomplete event after the last blank line is dropped."""
    name, data = "", None
    for line in _lines(pieces):
        if not line:
            if data is not None:
                yield Event(last_id, name or "message", data)
            name, data = "", None
            continue
        field, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if field == "data":
            data = value if data is None else f"{data}\n{value}"
        elif field == "event":
            name = value
        elif field == "id" and "\0" not in value:
            last_id = value


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Yield lines ended by CR, LF or both. Characters that are split between network packets are reassembled."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    rest, after_return = "", False
    for piece in pieces:
        text = decoder.decode(piece)
        if after_return and text.startswith("\n"):
            text = text[1:]
        after_return = text.endswith("\r") if text else after_return
        *lines, rest = (rest + text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        yield from lines
