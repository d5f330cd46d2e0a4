"""Passwords: argon2id with OWASP's parameters, a bound on how many are computed at once, equal time for nobody."""

from __future__ import annotations

import threading
from functools import lru_cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from webapp import limits

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


@lru_cache(maxsize=1)
def _nobody() -> str:
    """A hash that no password has a use for: `verify` never returns True for it."""
    return _hasher.hash("nobody")
