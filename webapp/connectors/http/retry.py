"""Retry policy: which requests are sent again, how often, and after which delay.

The outcome of a row is derived from the outcome of its request.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Annotated, Any, Final, Self

from pydantic import Field, model_validator

from webapp import clock, limits
from webapp.connectors.base import ConnectorError, Settings
from webapp.connectors.http.channel import RowOutcome, State
from webapp.net.session import NetError, Reply

# Errors that may disappear. A blocked network, an untrusted certificate or a redirect do not.
_TRANSIENT_REASONS: Final = frozenset(
    {"unresolved", "refused", "unreachable", "timeout", "reset", "bad_response"}
)
_WAITABLE: Final = limits.RETRY_WAIT_SECONDS

_Seconds = Annotated[float, Field(ge=0, le=_WAITABLE, allow_inf_nan=False)]
_Status = Annotated[int, Field(ge=400, le=599)]


class Retry(Settings):
    """A retry policy.

    `timeout_seconds` applies to each attempt. `retries` is the number of attempts after the first.
    `backoff_seconds` are the delays before the first, second, ... retry; the last one is used for all others.
    `retry_on` are response statuses that are retried, in addition to network errors.
    """

    timeout_seconds: float = Field(
        30.0, ge=limits.RETRY_TIMEOUT_SECONDS[0], le=limits.RETRY_TIMEOUT_SECONDS[1], allow_inf_nan=False
    )
    retries: int = Field(3, ge=0, le=limits.MAX_RETRIES)
    backoff_seconds: list[_Seconds] = Field([1.0, 2.0, 4.0], max_length=limits.MAX_RETRIES)
    retry_on: list[_Status] = Field([429, 502, 503, 504], max_length=100)

    @model_validator(mode="after")
    def _has_waits(self) -> Self:
        if self.retries and not self.backoff_seconds:
            raise ValueError("enter the delays between attempts in backoff_seconds, or set retries to 0")
        return self

    def wait_before(self, retry: int) -> float:
        """Return the delay before a retry, counted from 1."""
        return self.backoff_seconds[min(retry, len(self.backoff_seconds)) - 1]


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """The outcome of a request: a reply with any status, or an error."""

    reply: Reply | None
    error: NetError | None
    attempts: int
    """At least 1."""
    unknown: bool
    """The last attempt may have been delivered, but got no response."""
    unanswered: int
    """The number of attempts that may have been delivered without a response. A target that rejects a
    duplicate may refer to one of them."""
    ms: int
    """From the first attempt to the end of the last, including delays."""


def send_with_retries(
    send: Callable[[], Reply],
    policy: Retry,
    *,
    wait: Callable[[float], None],
    raise_if_stopped: Callable[[], None],
) -> RequestOutcome:
    """Send until there is a final reply or `policy` is exhausted.

    `send` makes one attempt and returns a Reply, or raises NetError, or ConnectorError if the attempt could
    not be made (no token). A transient ConnectorError is retried, and raised after the last attempt. `wait`
    sleeps for a number of seconds; `raise_if_stopped` is called before each attempt. Exceptions of these two end the
    sending, which is how pushes are cancelled.
    """
    began = time.monotonic()
    unanswered = 0
    for number in range(1, policy.retries + 2):
        last = number > policy.retries
        reply, error, should_retry = None, None, True
        raise_if_stopped()
        try:
            reply = send()
            should_retry = reply.status in policy.retry_on
        except NetError as failed:
            error, should_retry = failed, failed.reason in _TRANSIENT_REASONS
        except ConnectorError as failed:
            if last or not failed.transient:
                raise
        unknown = error is not None and error.arrived and error.reason != "redirected"
        unanswered += unknown
        if last or not should_retry:
            break
        backoff = policy.wait_before(number)
        wait(max(backoff, retry_after(reply)) if reply is not None else backoff)
    return RequestOutcome(reply, error, number, unknown, unanswered, round((time.monotonic() - began) * 1000))


def retry_after(reply: Reply) -> float:
    """Return the delay that a response requests, limited to the maximum; 0 or less if there is none."""
    text = reply.headers.get("Retry-After", "").strip()  # RFC 9110, 10.2.3: seconds or a date
    try:
        seconds = float(text)
        return min(seconds, _WAITABLE) if math.isfinite(seconds) else 0.0
    except ValueError:
        pass
    until = _parse_http_date(text)
    if until is None:
        return 0.0
    # Use the target's clock if it sends a date, because it may differ from ours.
    now = _parse_http_date(reply.headers.get("Date", ""))
    return min(until - (clock.epoch() if now is None else now), _WAITABLE)


def _parse_http_date(text: str) -> float | None:
    """Return seconds since 1970 from an HTTP date."""
    try:
        date = parsedate_to_datetime(text)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


# --- Outcomes of rows ---------------------------------------------------------------------------------------

_REASONS_BY_ERROR: Final = {
    "timeout": "timeout",
    "reset": "reset",
    "bad_response": "reset",
    "redirected": "redirected",
}
# The cause is the target, not the row: nothing listens there, or nothing responds.
_TARGET_DOWN: Final = frozenset({"unresolved", "refused", "unreachable", "timeout", "reset"})
_REASONS_BY_STATUS: Final = {401: "forbidden", 403: "forbidden", 429: "throttled"}
_EARLIER_ATTEMPT: Final = "An earlier attempt got no response and may have been delivered"
# More of a body than is shown, so that a secret at the end of the shown part is complete and can be found.
_READ_CHARS: Final = limits.HTTP_BODY_CHARS + limits.TOKEN_CHARS


def is_delivered(reply: Reply) -> bool:
    """Return whether a reply means that the row was delivered."""
    return 200 <= reply.status < 300


def to_row_outcome(
    index: int,
    outcome: RequestOutcome,
    stopped: bool,
    redact: Callable[[str], str],
    keys: Callable[[Reply], Mapping[str, Any]] = lambda _: {},
    again: bool = False,
) -> RowOutcome:
    """Return the outcome of a row.

    `stopped`: the push ended before the row's next attempt. `keys` reads the values to capture. `again`: the
    row may have been sent by a worker that was lost since.
    """
    if outcome.reply is None:
        assert outcome.error is not None
        state: State = "unknown" if outcome.unknown else "failed"
        reason = (
            "interrupted"
            if stopped and state == "failed"
            else _REASONS_BY_ERROR.get(outcome.error.reason, "unreachable")
        )
        away = outcome.error.reason in _TARGET_DOWN and not stopped
        return RowOutcome(
            index,
            state,
            None,
            outcome.attempts,
            reason,
            redact(outcome.error.message),
            outcome.ms,
            is_unanswered=away,
        )
    reply = outcome.reply
    if is_delivered(reply):
        message = f"{_EARLIER_ATTEMPT}, too." if outcome.unanswered else ""
        return RowOutcome(
            index,
            "delivered",
            reply.status,
            outcome.attempts,
            message=message,
            ms=outcome.ms,
            keys=keys(reply),
        )
    reason = _REASONS_BY_STATUS.get(reply.status) or ("unavailable" if reply.status >= 500 else "rejected")
    # A conflict may be caused by an earlier attempt without a response.
    doubtful = reply.status == 409 and (outcome.unanswered > 0 or again)
    message = redact(reply_text(reply))
    if outcome.unanswered:
        message = f"{_EARLIER_ATTEMPT}. {message}"
    return RowOutcome(
        index,
        "unknown" if doubtful else "failed",
        reply.status,
        outcome.attempts,
        "interrupted" if stopped else reason,
        message[: limits.HTTP_BODY_CHARS],
        outcome.ms,
    )


def reply_text(reply: Reply) -> str:
    """Return a target's reply for users: its status and the beginning of its body.

    Must be cut to limits.HTTP_BODY_CHARS after secrets have been redacted.
    """
    body = " ".join(reply.body[:_READ_CHARS].decode("utf-8", "replace").split())
    return f"{reply.status} {reply.reason}: {body}".rstrip(": ")
