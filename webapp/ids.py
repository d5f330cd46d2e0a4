"""Ids: a prefix that says the kind, and a ULID (26 characters of Crockford's base 32, sorted by time)."""

from __future__ import annotations

import os
import re
import threading
import time
from collections import deque
from typing import Final

ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # https://github.com/ulid/spec: no I, L, O, U

_PAIRS: Final = [first + second for first in ALPHABET for second in ALPHABET]  # ten bits each
_SHIFTS: Final = tuple(range(120, -10, -10))

PREFIXES: Final = frozenset(
    (
        "tpl fld dst scn sch run con end psh exp prt fil sec key usr ws team prj aud "
        "ses inv lnk mem idm req mky idn rec mai whk dlv lim cmp drf imp"
    ).split()
)
_ID_FORMAT = re.compile(r"^([a-z]+)_([0-7][0-9A-HJKMNP-TV-Z]{25})$")


def ulid(milliseconds: int, randomness: bytes) -> str:
    """Return 26 characters for a time (ms since 1970, 48 bits) and 10 random bytes."""
    return _text(_number(milliseconds, randomness))


def _number(milliseconds: int, randomness: bytes) -> int:
    return (milliseconds & (2**48 - 1)) << 80 | int.from_bytes(randomness[:10], "big")


def _text(number: int) -> str:
    return "".join([_PAIRS[number >> shift & 1023] for shift in _SHIFTS])


_last: Final = [0]  # the number of the newest id of this process
_lock: Final = [threading.Lock()]


def _reset_in_child() -> None:
    """Forget the newest id in a forked child, so that it does not continue like its parent."""
    _last[0], _lock[0] = 0, threading.Lock()


os.register_at_fork(after_in_child=_reset_in_child)


def new(prefix: str) -> str:
    """Return a new id, for example `new("tpl")` -> `tpl_01KAK3...`. The prefix must be a known one.

    Ids of a process sort in the order in which they were created, also within a millisecond.
    """
    if prefix not in PREFIXES:
        raise ValueError(f"unknown id prefix {prefix!r}")
    random_bytes = _take_random()
    number = _number(time.time_ns() // 1_000_000, random_bytes)
    with _lock[0]:
        if number <= _last[0]:
            number = _last[0] + 1 + int.from_bytes(random_bytes[:4], "big")
        _last[0] = number
    return f"{prefix}_{_text(number)}"


_RANDOM_BYTES: Final = 10  # bytes in an id
_spare: deque[bytes] = deque()  # read from the kernel for many ids together
os.register_at_fork(after_in_child=_spare.clear)


def _take_random() -> bytes:
    try:
        return _spare.pop()
    except IndexError:
        random_bytes = os.urandom(_RANDOM_BYTES * 128)
        _spare.extend(
            random_bytes[start : start + _RANDOM_BYTES]
            for start in range(_RANDOM_BYTES, len(random_bytes), _RANDOM_BYTES)
        )
        return random_bytes[:_RANDOM_BYTES]


def is_id(text: str, prefix: str | None = None) -> bool:
    """Return whether `text` has the form of an id, with this prefix if given. Other texts need no lookup."""
    match = _ID_FORMAT.match(text)
    return match is not None and match[1] in PREFIXES and prefix in (None, match[1])
