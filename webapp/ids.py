"""Ids: a prefix that says the kind, and a ULID (26 characters of Crockford's base 32, sorted by time)."""

from __future__ import annotations

import base64
import os
import re
import time
from typing import Final

ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # https://github.com/ulid/spec: no I, L, O, U

_CROCKFORD: Final = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", ALPHABET.encode())

PREFIXES: Final = frozenset(
    "tpl fld dst scn run con end psh exp fil sec key usr ws team prj aud ses inv lnk mem idm req".split()
)
_FORM = re.compile(r"^([a-z]+)_([0-7][0-9A-HJKMNP-TV-Z]{25})$")


def ulid(milliseconds: int, randomness: bytes) -> str:
    """26 characters from a time (ms since 1970, 48 bits) and 10 random bytes."""
    number = (milliseconds & (2**48 - 1)) << 80 | int.from_bytes(randomness[:10], "big")
    # 26 characters are 130 bits: two zero bits before the number, six after it to fill the last of 17 bytes.
    return base64.b32encode((number << 6).to_bytes(17, "big"))[:26].translate(_CROCKFORD).decode()


def new(prefix: str) -> str:
    """A fresh id, for example `new("tpl")` -> `tpl_01KAK3...`. The prefix must be a known one."""
    if prefix not in PREFIXES:
        raise ValueError(f"unknown id prefix {prefix!r}")
    return f"{prefix}_{ulid(time.time_ns() // 1_000_000, os.urandom(10))}"


def is_id(text: str, prefix: str | None = None) -> bool:
    """Whether `text` has the form of an id (of that prefix). Anything else need not be looked up."""
    match = _FORM.match(text)
    return bool(match) and match[1] in PREFIXES and prefix in (None, match[1])
