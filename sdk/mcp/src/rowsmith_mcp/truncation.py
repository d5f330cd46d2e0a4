"""Limiting results to a size that a model can handle: large values, long lists and long texts are cut, and
notes say what was cut."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from rowsmith_mcp.limits import MAX_RESULT_BYTES, MAX_TEXT_BYTES

ENVELOPE: Final = 400
"""Bytes of a result that are not content: the protocol's own keys, and space for a note."""
STRINGS: Final = (4000, 1000, 300)
"""Characters to keep of each text, in steps, before lists are shortened."""
HARDER: Final = (100, 40)
"""Characters to keep of texts if lists are empty and the result is still too large."""
KEY: Final = re.compile(r"rws_[0-9A-Za-z]{4,}_[0-9A-Za-z]{16,}")
"""The pattern of an API key."""
HIDDEN: Final = "********"

Path = tuple[Any, ...]


class TooLarge(Exception):
    """A result that is too large even after cutting."""


def size_of_result(value: Any) -> int:
    """Return the size in bytes of a result on the wire, which contains it as structured content and as text."""
    once = compact(value)
    return len(once.encode()) + len(json.dumps(once, ensure_ascii=False).encode()) + ENVELOPE


def compact(value: Any) -> str:
    """JSON without spaces, as it is sent."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def fit_to_limit(answer: Mapping[str, Any], limit: int = MAX_RESULT_BYTES) -> dict[str, Any]:
    """Return a result of at most `limit` bytes. Its `notes` say what was cut. Raises TooLarge if that is not
    possible.

    Texts are shortened first, then lists: a model can use a few complete objects better than many incomplete
    ones.
    """
    whole = json.loads(compact(answer))
    if size_of_result(whole) <= limit:
        return dict(whole)
    result = whole
    for chars in STRINGS:
        result = _with_note(whole, *_shorten_texts(whole, chars))
        if size_of_result(result) <= limit:
            return result
    result = _shorten_lists(result, limit)
    for chars in HARDER:
        if size_of_result(result) <= limit:
            return result
        result = _with_note(result, *_shorten_texts(result, chars))
    if size_of_result(result) > limit:
        raise TooLarge
    return result


def head(text: str, room: int = MAX_TEXT_BYTES) -> str:
    """Return the longest prefix of at most `room` bytes in JSON."""
    if len(text) * 12 <= room or _byte_size(text) <= room:
        return text
    low, high = 0, min(len(text), room)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _byte_size(text[:middle]) <= room else (low, middle - 1)
    return text[:low]


def tail(lines: list[str], count: int, room: int = MAX_TEXT_BYTES) -> list[str]:
    """Return the last `count` lines, or fewer if they exceed `room` bytes. A single line that is too long is
    cut."""
    kept: list[str] = []
    left = room
    for line in reversed(lines[-count:] if count else []):
        needed = _byte_size(line) + 8
        if needed > left:
            if not kept:
                kept.append(head(line, max(room - 8, 0)))
            break
        kept.append(line)
        left -= needed
    return kept[::-1]


def without_keys(value: Any, *known: str) -> Any:
    """Remove API keys from every text: the given ones, and anything with the pattern of a key."""
    if isinstance(value, str):
        for item in known:
            if item:
                value = value.replace(item, HIDDEN)
        return KEY.sub(HIDDEN, value)
    if isinstance(value, Mapping):
        return {without_keys(name, *known): without_keys(item, *known) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_keys(item, *known) for item in value]
    return value


def _byte_size(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode())


def _shorten_texts(value: Any, chars: int) -> tuple[Any, int]:
    """Shorten texts to at most `chars` characters with a note, and return how many were longer."""
    if isinstance(value, str):
        if len(value) <= chars + 40:  # the note would be as long as the removed text
            return value, 0
        return f"{value[:chars]}… (cut, {len(value)} characters)", 1
    if isinstance(value, dict):
        done = {name: _shorten_texts(item, chars) for name, item in value.items()}
        return {name: item for name, (item, _) in done.items()}, sum(count for _, count in done.values())
    if isinstance(value, list):
        parts = [_shorten_texts(item, chars) for item in value]
        return [item for item, _ in parts], sum(count for _, count in parts)
    return value, 0


def _with_note(before: dict[str, Any], result: dict[str, Any], cut: int) -> dict[str, Any]:
    if not cut:
        return result
    return {**result, "notes": [*before.get("notes", []), f"{cut} long texts were shortened."]}


def _shorten_lists(answer: dict[str, Any], limit: int) -> dict[str, Any]:
    """Shorten the largest lists of a result from their end until it fits, or until they are empty."""
    result = json.loads(compact(answer))
    lengths: dict[Path, int] = {}
    while (now := size_of_result(result)) > limit:
        path, found = _largest_list(result, ())
        if not found:
            break
        lengths.setdefault(path, len(found))
        # A little less than the proportion, since the rest of the result also has a size.
        keep = min(len(found) - 1, int(len(found) * limit / now * 0.97))
        del found[max(keep, 0) :]
        notes = [_size_text(result, where, was) for where, was in lengths.items()]
        result["notes"] = [*answer.get("notes", []), *[item for item in notes if item]]
    return dict(result)


def _largest_list(value: Any, path: Path) -> tuple[Path, list[Any]]:
    """Return the outermost list with the most bytes, and its path. For nested lists the outer one counts."""
    best: tuple[Path, list[Any]] = (path, [])
    if isinstance(value, list):
        return path, value
    if isinstance(value, dict):
        for name, item in value.items():
            if name == "notes" and not path:
                continue
            found = _largest_list(item, (*path, name))
            if found[1] and len(compact(found[1])) > len(compact(best[1])):
                best = found
    return best


def _size_text(answer: Any, path: Path, was: int) -> str:
    found = answer
    for name in path:
        found = found[name]
    return f"{'.'.join(map(str, path))}: showing the first {len(found)} of {was}."
