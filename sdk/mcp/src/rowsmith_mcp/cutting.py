"""Results that a model can hold: large values, long lists and long texts are cut, and it is said what was cut."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from rowsmith_mcp.bounds import MAX_RESULT_BYTES, MAX_TEXT_BYTES

ENVELOPE: Final = 400
"""Bytes of a result that are not the answer: the protocol's own keys, and room for a note."""
STRINGS: Final = (4000, 1000, 300)
"""Characters that are left of each text, step after step, before lists lose their ends."""
HARDER: Final = (100, 40)
"""What is left of texts where lists are empty and the answer is still too large."""
KEY: Final = re.compile(r"rws_[0-9A-Za-z]{4,}_[0-9A-Za-z]{16,}")
"""What an API key looks like."""
HIDDEN: Final = "********"

Path = tuple[Any, ...]


class TooLarge(Exception):
    """An answer that is too large however it is cut."""


def weight(value: Any) -> int:
    """Bytes of a result with this answer on the wire, where it stands as structured content and again as text."""
    once = compact(value)
    return len(once.encode()) + len(json.dumps(once, ensure_ascii=False).encode()) + ENVELOPE


def compact(value: Any) -> str:
    """JSON without spaces, as it is sent."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def fitted(answer: Mapping[str, Any], limit: int = MAX_RESULT_BYTES) -> dict[str, Any]:
    """The answer, not heavier than `limit` bytes. What is cut stands in its `notes`. TooLarge where that is in vain.

    First texts are shortened, then lists lose their ends: a model sees few whole objects rather than many stumps.
    """
    whole = json.loads(compact(answer))
    if weight(whole) <= limit:
        return dict(whole)
    made = whole
    for chars in STRINGS:
        made = _noted(whole, *_shortened(whole, chars))
        if weight(made) <= limit:
            return made
    made = _without_ends(made, limit)
    for chars in HARDER:
        if weight(made) <= limit:
            return made
        made = _noted(made, *_shortened(made, chars))
    if weight(made) > limit:
        raise TooLarge
    return made


def head(text: str, room: int = MAX_TEXT_BYTES) -> str:
    """As much of the beginning as weighs at most `room` bytes in JSON."""
    if len(text) * 12 <= room or _heavy(text) <= room:
        return text
    low, high = 0, min(len(text), room)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _heavy(text[:middle]) <= room else (low, middle - 1)
    return text[:low]


def tail(lines: list[str], count: int, room: int = MAX_TEXT_BYTES) -> list[str]:
    """The last `count` lines, fewer where they weigh more than `room` bytes. One alone that does is cut."""
    kept: list[str] = []
    left = room
    for line in reversed(lines[-count:] if count else []):
        needed = _heavy(line) + 8
        if needed > left:
            if not kept:
                kept.append(head(line, max(room - 8, 0)))
            break
        kept.append(line)
        left -= needed
    return kept[::-1]


def scrubbed(value: Any, *known: str) -> Any:
    """The same without API keys: those given, and whatever looks like one, in every text of it."""
    if isinstance(value, str):
        for one in known:
            if one:
                value = value.replace(one, HIDDEN)
        return KEY.sub(HIDDEN, value)
    if isinstance(value, Mapping):
        return {scrubbed(name, *known): scrubbed(one, *known) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [scrubbed(one, *known) for one in value]
    return value


def _heavy(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode())


def _shortened(value: Any, chars: int) -> tuple[Any, int]:
    """The value with texts of at most `chars` characters and a remark, and how many were longer."""
    if isinstance(value, str):
        if len(value) <= chars + 40:  # the remark would be as long as what it replaces
            return value, 0
        return f"{value[:chars]}… (cut, {len(value)} characters)", 1
    if isinstance(value, dict):
        done = {name: _shortened(one, chars) for name, one in value.items()}
        return {name: one for name, (one, _) in done.items()}, sum(count for _, count in done.values())
    if isinstance(value, list):
        parts = [_shortened(one, chars) for one in value]
        return [one for one, _ in parts], sum(count for _, count in parts)
    return value, 0


def _noted(before: dict[str, Any], made: dict[str, Any], cut: int) -> dict[str, Any]:
    if not cut:
        return made
    return {**made, "notes": [*before.get("notes", []), f"{cut} long texts are cut."]}


def _without_ends(answer: dict[str, Any], limit: int) -> dict[str, Any]:
    """The answer with its heaviest lists shortened from the end until it fits, or until there is nothing in them."""
    made = json.loads(compact(answer))
    lengths: dict[Path, int] = {}
    while (now := weight(made)) > limit:
        path, found = _heaviest(made, ())
        if not found:
            break
        lengths.setdefault(path, len(found))
        # A little less than the proportion says, since the rest of the answer has its weight too.
        keep = min(len(found) - 1, int(len(found) * limit / now * 0.97))
        del found[max(keep, 0) :]
        told = [_told(made, where, was) for where, was in lengths.items()]
        made["notes"] = [*answer.get("notes", []), *[one for one in told if one]]
    return dict(made)


def _heaviest(value: Any, path: Path) -> tuple[Path, list[Any]]:
    """The outermost list with most bytes, and where it is; of lists within lists the outer one counts."""
    best: tuple[Path, list[Any]] = (path, [])
    if isinstance(value, list):
        return path, value
    if isinstance(value, dict):
        for name, one in value.items():
            if name == "notes" and not path:
                continue
            found = _heaviest(one, (*path, name))
            if found[1] and len(compact(found[1])) > len(compact(best[1])):
                best = found
    return best


def _told(answer: Any, path: Path, was: int) -> str:
    found = answer
    for name in path:
        found = found[name]
    return f"{'.'.join(map(str, path))}: the first {len(found)} of {was} are shown."
