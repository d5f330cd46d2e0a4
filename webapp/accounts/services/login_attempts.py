"""Rate limit of failed sign-in attempts: ten in five minutes, by account and by address.

The limit applies whether the account exists or not. An attempt counts as a failure before credentials are checked, and
is removed if they are right, so parallel attempts cannot exceed the limit.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

from flask import current_app

from webapp import clock, limits
from webapp.accounts.services.identity import rate_limiter
from webapp.errors import ApiError
from webapp.net import addresses
from webapp.rate_limiting import RateLimitResult


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that counts as a failure until `succeeded` is called."""

    hits: tuple[tuple[str, RateLimitResult], ...]

    def succeeded(self) -> None:
        """Remove the attempt from its windows."""
        for log, hit in self.hits:
            rate_limiter().undo_hit(log, hit)


def begin(account: str, address: str, *, code: bool = False) -> Attempt:
    """Count an attempt to sign in to an account (its e-mail address). A code also counts toward the limit of a day.

    Errors: rate_limited, with Retry-After; forbidden for programs of runs, which have an API key and could otherwise
    block the sign-in of others.
    """
    if addresses.is_run(address):
        text = "Scenario runs can't sign in. Use the API key in SERVICE_API_KEY."
        raise ApiError("forbidden", text, {"needs": "person"})
    hashed = hashlib.blake2b(
        account.encode("utf-8", "replace"), key=str(current_app.secret_key).encode()[:64], digest_size=12
    ).hexdigest()
    windows: list[tuple[str, int, int]] = [
        (f"rowsmith:sign-in:account:{hashed}", limits.LOGIN_FAILURES, limits.LOGIN_WINDOW_SECONDS),
        (f"rowsmith:sign-in:address:{address}", limits.LOGIN_FAILURES, limits.LOGIN_WINDOW_SECONDS),
    ]
    if code:
        day = (limits.CODE_FAILURES_PER_DAY, limits.CODE_DAY_SECONDS)
        windows.append((f"rowsmith:sign-in:codes:{hashed}", *day))
    hits: list[tuple[str, RateLimitResult]] = []
    for log, limit, window in windows:
        result = rate_limiter().hit(log, limit, window)
        if not result.accepted:
            Attempt(tuple(hits)).succeeded()
            raise _rate_limited(result)
        hits.append((log, result))
    return Attempt(tuple(hits))


def _rate_limited(result: RateLimitResult) -> ApiError:
    wait = max(1, math.ceil(result.reset - clock.epoch()))
    return ApiError(
        "rate_limited",
        f"Too many failed attempts. Try again in {wait} s, or request a sign-in link.",
        {"retry_after": wait},
        headers={"Retry-After": str(wait)},
    )
