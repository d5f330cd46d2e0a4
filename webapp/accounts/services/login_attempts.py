"""Counting failed attempts to sign in: ten in five minutes, by account and by address, close the door.

They close it for the rest of the five minutes, whether the account exists or not. An attempt takes its places before
anything is looked at, and gives them back when it was right, so that attempts at the same time cannot slip through.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

from flask import current_app

from webapp import clock, limits
from webapp.accounts.services.identity import windows
from webapp.errors import ApiError
from webapp.net import addresses
from webapp.rate_limiting import Passage


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt, which counts as a failure until `was_right` is called."""

    places: tuple[tuple[str, Passage], ...]

    def was_right(self) -> None:
        """Give its places back."""
        for log, place in self.places:
            windows().give_back(log, place)


def begin(account: str, address: str, *, code: bool = False) -> Attempt:
    """Count an attempt on an account (its e-mail address) from an address. A code counts against the day too.

    Errors: rate_limited, with Retry-After; forbidden for a program of a run, which has a key and would otherwise close
    sign-in for others.
    """
    if addresses.is_run(address):
        text = "Programs of runs cannot sign in. They use the key in SERVICE_API_KEY."
        raise ApiError("forbidden", text, {"needs": "person"})
    hashed = hashlib.blake2b(
        account.encode("utf-8", "replace"), key=str(current_app.secret_key).encode()[:64], digest_size=12
    ).hexdigest()
    asked: list[tuple[str, int, int]] = [
        (f"rowsmith:sign-in:account:{hashed}", limits.LOGIN_FAILURES, limits.LOGIN_WINDOW_SECONDS),
        (f"rowsmith:sign-in:address:{address}", limits.LOGIN_FAILURES, limits.LOGIN_WINDOW_SECONDS),
    ]
    if code:
        day = (limits.CODE_FAILURES_PER_DAY, limits.CODE_DAY_SECONDS)
        asked.append((f"rowsmith:sign-in:codes:{hashed}", *day))
    places: list[tuple[str, Passage]] = []
    for log, most, window in asked:
        place = windows().enter(log, most, window)
        if not place.accepted:
            Attempt(tuple(places)).was_right()
            raise _refused(place)
        places.append((log, place))
    return Attempt(tuple(places))


def _refused(place: Passage) -> ApiError:
    wait = max(1, math.ceil(place.reset - clock.epoch()))
    return ApiError(
        "rate_limited",
        f"Too many failures. Try again in {wait} s, or ask for a sign-in link.",
        {"retry_after": wait},
        headers={"Retry-After": str(wait)},
    )
