"""API keys and tokens: generate, parse, hash and compare them. The API key hash is `digest`.

A key is `rws_<handle>_<secret>`. Handle and secret are in base 62. The secret has 256 bits of randomness, so one round
of SHA-256 is a safe hash: dictionary attacks are impossible (argon2 is for passwords, which people choose).
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable
from typing import Final

from webapp import limits

PREFIX: Final = "rws"
_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
SECRET_CHARS: Final = 43  # 32 bytes in base 62
_FORM: Final = re.compile(
    rf"{PREFIX}_([0-9A-Za-z]{{{limits.KEY_HANDLE_CHARS}}})_([0-9A-Za-z]{{{SECRET_CHARS}}})", re.ASCII
)

Random = Callable[[int], bytes]


def _base62(number: int, chars: int) -> str:
    characters = []
    for _ in range(chars):
        number, digit = divmod(number, 62)
        characters.append(_ALPHABET[digit])
    return "".join(characters)


def new_key(random: Random) -> tuple[str, str, str]:
    """Return `(full key, handle, hash of the secret)`. `random(n)` gives n bytes (os.urandom)."""
    handle = _base62(int.from_bytes(random(16), "big"), limits.KEY_HANDLE_CHARS)
    secret = _base62(int.from_bytes(random(limits.KEY_SECRET_BYTES), "big"), SECRET_CHARS)
    return f"{PREFIX}_{handle}_{secret}", handle, digest(secret)


def split_key(text: str) -> tuple[str, str] | None:
    """Return `(handle, secret)` of a key; None if the text does not have the form of a key."""
    match = _FORM.fullmatch(text)
    return (match[1], match[2]) if match else None


def new_token(random: Random) -> tuple[str, str]:
    """Return `(token, its hash)` for sessions and one-time links: 256 bits, safe in a URL and a cookie."""
    token = _base62(int.from_bytes(random(limits.KEY_SECRET_BYTES), "big"), SECRET_CHARS)
    return token, digest(token)


def digest(secret: str) -> str:
    """Return the stored hash of a secret or token: SHA-256 in hexadecimal."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def matches(secret: str, stored: str) -> bool:
    """Return whether a secret has that hash, in constant time."""
    return hmac.compare_digest(digest(secret), stored)
