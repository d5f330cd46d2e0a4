"""Sending a request again: when, how often, after what wait. The specification's "Retry policy", and nothing else."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from webapp import clock, limits
from webapp.connectors.base import ConnectorError, Settings
from webapp.net.session import NetError, Reply

# What may go better a moment later. A closed network, an untrusted certificate or a redirect does not.
_NETWORK: Final = frozenset({"unresolved", "refused", "unreachable", "timeout", "reset", "bad_response"})
_WAITABLE: Final = limits.RETRY_WAIT_SECONDS

_Seconds = Annotated[float, Field(ge=0, le=_WAITABLE, allow_inf_nan=False)]
_Status = Annotated[int, Field(ge=400, le=599)]


class Retry(Settings):
    """`timeout_seconds`: of one attempt. `retries`: attempts after the first. `backoff_seconds`: the wait before the
    first, second, ... of them; the last one is used for those beyond. `retry_on`: statuses that are tried again, as
    network errors are."""

    timeout_seconds: float = Field(
        30.0, ge=limits.RETRY_TIMEOUT_SECONDS[0], le=limits.RETRY_TIMEOUT_SECONDS[1], allow_inf_nan=False
    )
    retries: int = Field(3, ge=0, le=limits.RETRY_MOST)
    backoff_seconds: list[_Seconds] = Field([1.0, 2.0, 4.0], max_length=limits.RETRY_MOST)
    retry_on: list[_Status] = Field([429, 502, 503, 504], max_length=100)

    @model_validator(mode="after")
    def _has_waits(self) -> Self:
        if self.retries and not self.backoff_seconds:
            raise ValueError("give the waits between attempts in backoff_seconds, or 0 retries")
        return self

    def wait_before(self, retry: int) -> float:
        """Seconds before the retry of that number, from 1."""
        return self.backoff_seconds[min(retry, len(self.backoff_seconds)) - 1]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a request ended: with an answer of whatever status, or with an error."""

    reply: Reply | None
    error: NetError | None
    attempts: int
    """At least 1."""
    unknown: bool
    """The last attempt may have arrived, and was not answered."""
    unanswered: int
    """Attempts of which that is so; earlier ones count. A target that refuses a duplicate may mean one of those."""
    ms: int
    """From the first attempt to the end of the last, waits included."""


def attempt(
    send: Callable[[], Reply],
    policy: Retry,
    *,
    wait: Callable[[float], None],
    may_go: Callable[[], None],
) -> Ended:
    """Send until there is an answer that stands, or `policy` is exhausted.

    `send` makes one attempt: a Reply, NetError, or ConnectorError where the attempt could not be made (no token);
    a transient one is tried again, and raised when it is the last. `wait` sleeps that many seconds; `may_go` is asked
    before each attempt. Whatever these two raise ends it: pushes are cancelled and fenced so.
    """
    began = time.monotonic()
    unanswered = 0
    for number in range(1, policy.retries + 2):
        last = number > policy.retries
        reply, error, again = None, None, True
        may_go()
        try:
            reply = send()
            again = reply.status in policy.retry_on
        except NetError as failed:
            error, again = failed, failed.reason in _NETWORK
        except ConnectorError as failed:
            if last or not failed.transient:
                raise
        unknown = error is not None and error.arrived and error.reason != "redirected"
        unanswered += unknown
        if last or not again:
            break
        wait(_pause(policy.wait_before(number), reply))
    return Ended(reply, error, number, unknown, unanswered, round((time.monotonic() - began) * 1000))


def _pause(backoff: float, reply: Reply | None) -> float:
    """The longer of our wait and the target's, which has its limit."""
    return max(backoff, asked_for(reply)) if reply is not None else backoff


def asked_for(reply: Reply) -> float:
    """Seconds that an answer asks for, at most as many as anybody waits; 0 or less where it does not say."""
    return min(_retry_after(reply), _WAITABLE)


def _retry_after(reply: Reply) -> float:
    """RFC 9110, 10.2.3: seconds or a date."""
    text = reply.headers.get("Retry-After", "").strip()
    try:
        seconds = float(text)
        return seconds if math.isfinite(seconds) else 0.0
    except ValueError:
        pass
    until = _moment(text)
    if until is None:
        return 0.0
    # By the target's own clock, where it tells: ours may differ.
    now = _moment(reply.headers.get("Date", ""))
    return until - (clock.epoch() if now is None else now)


def _moment(text: str) -> float | None:
    """Seconds since 1970 of an HTTP date."""
    try:
        found = parsedate_to_datetime(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
