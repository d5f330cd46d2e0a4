"""Why requests of a push fail, for a tester: what it means in one sentence, and what to do next in another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from webapp.connectors.channel import HTTP_REASONS


class Explained(NamedTuple):
    """A reason in words."""

    reason: str
    means: str
    next: str


_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "rejected": (
        "The target read the request and refused it, for the cause that it gives.",
        "Compare the row's values with what it says, change the field or the mapping, and retry the failed rows.",
    ),
    "forbidden": (
        "The target does not accept the credentials (401), or does not let them do this (403).",
        "Test the connection; if that is well, ask whoever runs the target to let the account create these objects.",
    ),
    "csrf": (
        "The target wants a CSRF token, and refused even a fresh one: it was given without its cookie, at another "
        "address than this one, or a gateway in between dropped one of the two.",
        "Set under CSRF token where it is fetched, or switch it off for a service that needs none; ask whether a proxy "
        "removes cookies.",
    ),
    "throttled": (
        "The target took fewer requests than were sent, and said so to the last attempt (429).",
        "Lower the requests at once or the rate per second in the push's form, then retry the failed rows.",
    ),
    "unavailable": (
        "The target was in trouble or overloaded, and answered so to the last attempt (5xx).",
        "Wait until it is well again, then retry the failed rows.",
    ),
    "redirected": (
        "The target sent the request to another address, where credentials are not taken along.",
        "Put the address that it leads to into the connection; often it lacks https:// or a slash at its end.",
    ),
    "timeout": (
        "No answer came in time, so a row whose state is unknown may have arrived.",
        "Look for one of them in the target; raise the time limit under Retry, and retry.",
    ),
    "reset": (
        "The connection broke while the answer was awaited, so a row whose state is unknown may have arrived.",
        "Look for one of them in the target, and retry; where it happens often, send fewer requests at once.",
    ),
    "unreachable": (
        "The target was never reached, so nothing of these rows arrived.",
        "Test the connection, whose stages tell what is in the way, then retry the failed rows.",
    ),
    "no_token": (
        "The token endpoint gave no token, so these rows were not sent.",
        "Check token URL, client ID and client secret of the connection with Test, then retry the failed rows.",
    ),
    "interrupted": (
        "The push ended while these rows waited for their next attempt.",
        "Retry the failed rows when you want to go on.",
    ),
}
_OF_ERRORS: Final = {"token_request_failed": "no_token", "target_timeout": "timeout", "csrf_failed": "csrf"}
KNOWN: Final = frozenset({*HTTP_REASONS, "no_token"})
"""Every reason has its words: a test sees to it."""


def explained(reason: str) -> Explained | None:
    """A reason in words; None for one that its own message explains."""
    found = _WORDS.get(reason)
    return Explained(reason, *found) if found else None


def of_rows(items: Iterable[Mapping[str, Any]]) -> list[Explained]:
    """The reasons of some rows, the commonest first."""
    numbers: dict[str, int] = {}
    for one in items:
        numbers[one["code"]] = numbers.get(one["code"], 0) + 1
    found = (explained(reason) for reason in sorted(numbers, key=lambda one: -numbers[one]))
    return [one for one in found if one is not None]


def of_error(error: Mapping[str, Any] | None) -> Explained | None:
    """Why a push could not go on."""
    if not error:
        return None
    reason = (error.get("details") or {}).get("reason", "")
    said = error["message"].partition(":")[0]  # pushes keep the reason before the message
    for name in (reason, said, error["code"]):
        if found := explained(_OF_ERRORS.get(name, name)):
            return found
    return None
