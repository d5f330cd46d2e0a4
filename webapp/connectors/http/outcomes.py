"""Derive the outcome of a row from the outcome of its request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from webapp import limits
from webapp.connectors.http.channel import RowOutcome, State
from webapp.connectors.http.retry import RequestOutcome
from webapp.net.session import Reply

_OF_NET: Final = {"timeout": "timeout", "reset": "reset", "bad_response": "reset", "redirected": "redirected"}
# The cause is the target, not the row: nothing listens there, or nothing responds.
_AWAY: Final = frozenset({"unresolved", "refused", "unreachable", "timeout", "reset"})
_OF_STATUS: Final = {401: "forbidden", 403: "forbidden", 429: "throttled"}
_EARLIER: Final = "An earlier attempt got no response and may have been delivered"
# More of a body than is shown, so that a secret at the end of the shown part is complete and can be found.
_READ_CHARS: Final = limits.HTTP_BODY_CHARS + limits.TOKEN_CHARS


def delivered(reply: Reply) -> bool:
    """Return whether a reply means that the row was delivered."""
    return 200 <= reply.status < 300


def ended(
    place: int,
    tried: RequestOutcome,
    stopped: bool,
    redact: Callable[[str], str],
    keys: Callable[[Reply], Mapping[str, Any]] = lambda _: {},
    again: bool = False,
) -> RowOutcome:
    """Return the outcome of a row.

    `stopped`: the push ended before the row's next attempt. `keys` reads the values to capture. `again`: the
    row may have been sent by a worker that was lost since.
    """
    if tried.reply is None:
        assert tried.error is not None
        state: State = "unknown" if tried.unknown else "failed"
        reason = (
            "interrupted" if stopped and state == "failed" else _OF_NET.get(tried.error.reason, "unreachable")
        )
        away = tried.error.reason in _AWAY and not stopped
        return RowOutcome(
            place, state, None, tried.attempts, reason, redact(tried.error.message), tried.ms, away=away
        )
    reply = tried.reply
    if delivered(reply):
        told = f"{_EARLIER}, too." if tried.unanswered else ""
        return RowOutcome(
            place, "delivered", reply.status, tried.attempts, message=told, ms=tried.ms, keys=keys(reply)
        )
    reason = _OF_STATUS.get(reply.status) or ("unavailable" if reply.status >= 500 else "rejected")
    # A conflict may be caused by an earlier attempt without a response.
    doubtful = reply.status == 409 and (tried.unanswered > 0 or again)
    told = redact(said(reply))
    if tried.unanswered:
        told = f"{_EARLIER}. {told}"
    return RowOutcome(
        place,
        "unknown" if doubtful else "failed",
        reply.status,
        tried.attempts,
        "interrupted" if stopped else reason,
        told[: limits.HTTP_BODY_CHARS],
        tried.ms,
    )


def said(reply: Reply) -> str:
    """Return a target's reply for users: its status and the beginning of its body.

    Must be cut to limits.HTTP_BODY_CHARS after secrets have been redacted.
    """
    body = " ".join(reply.body[:_READ_CHARS].decode("utf-8", "replace").split())
    return f"{reply.status} {reply.reason}: {body}".rstrip(": ")
