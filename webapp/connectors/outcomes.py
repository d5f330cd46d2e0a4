"""From how a request ended to what became of its row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from webapp import limits
from webapp.connectors.channel import Ended
from webapp.connectors.retry import Ended as Tried
from webapp.net.session import Reply

_OF_NET: Final = {"timeout": "timeout", "reset": "reset", "bad_response": "reset", "redirected": "redirected"}
# The target, and not the row, is the cause: nobody listens, or nobody answers.
_AWAY: Final = frozenset({"unresolved", "refused", "unreachable", "timeout", "reset"})
_OF_STATUS: Final = {401: "forbidden", 403: "forbidden", 429: "throttled"}
_EARLIER: Final = "An earlier attempt was not answered and may have arrived"
# More of a body than is told: a secret at the end of what is told must be whole to be found.
_READ_CHARS: Final = limits.HTTP_BODY_CHARS + limits.TOKEN_CHARS


def delivered(reply: Reply) -> bool:
    """Whether an answer says that the row is there."""
    return 200 <= reply.status < 300


def ended(
    place: int,
    tried: Tried,
    stopped: bool,
    hush: Callable[[str], str],
    keys: Callable[[Reply], Mapping[str, Any]] = lambda _: {},
    again: bool = False,
) -> Ended:
    """What became of the row at a place. `stopped`: the push ended before the row's next attempt. `keys` reads what is
    captured; `again`: the row may have been sent by a worker that was lost since."""
    if tried.reply is None:
        assert tried.error is not None
        state = "unknown" if tried.unknown else "failed"
        reason = (
            "interrupted" if stopped and state == "failed" else _OF_NET.get(tried.error.reason, "unreachable")
        )
        away = tried.error.reason in _AWAY and not stopped
        return Ended(
            place, state, None, tried.attempts, reason, hush(tried.error.message), tried.ms, away=away
        )
    reply = tried.reply
    if delivered(reply):
        told = f"{_EARLIER}, too." if tried.unanswered else ""
        return Ended(
            place, "delivered", reply.status, tried.attempts, message=told, ms=tried.ms, keys=keys(reply)
        )
    reason = _OF_STATUS.get(reply.status) or ("unavailable" if reply.status >= 500 else "rejected")
    # A target that says "there already" may mean an earlier attempt, which was not answered.
    doubtful = reply.status == 409 and (tried.unanswered > 0 or again)
    told = hush(said(reply))
    if tried.unanswered:
        told = f"{_EARLIER}. {told}"
    return Ended(
        place,
        "unknown" if doubtful else "failed",
        reply.status,
        tried.attempts,
        "interrupted" if stopped else reason,
        told[: limits.HTTP_BODY_CHARS],
        tried.ms,
    )


def said(reply: Reply) -> str:
    """What a target answered, for people: its status and the beginning of its body. To be cut to
    limits.HTTP_BODY_CHARS once secrets are out of it."""
    body = " ".join(reply.body[:_READ_CHARS].decode("utf-8", "replace").split())
    return f"{reply.status} {reply.reason}: {body}".rstrip(": ")
