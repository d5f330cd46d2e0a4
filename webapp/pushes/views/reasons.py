"""Explain why requests of a push failed: one sentence about the meaning, one about the next step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from webapp.connectors.http.channel import HTTP_REASONS


class Explained(NamedTuple):
    """A reason in words."""

    reason: str
    means: str
    next: str


_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "rejected": (
        "The target rejected the request. Its reason is in the message.",
        "Compare the values of the row with the message, change the field or the mapping, and retry the failed rows.",
    ),
    "forbidden": (
        "The target does not accept the credentials (401), or they do not allow this request (403).",
        "Test the connection. If it passes, ask the target's administrator for permission to create these objects.",
    ),
    "csrf": (
        "The target requires a CSRF token and rejected a new one. The token was issued without its cookie or at "
        "another URL, or a gateway removed one of the two.",
        "In the connection's CSRF settings, set the URL that issues the token, or turn CSRF off if the service needs "
        "none. Check whether a proxy removes cookies.",
    ),
    "throttled": (
        "The target received more requests than it allows and rejected the last attempt (429).",
        "Lower the number of parallel requests or the rate per second in the push's form, then retry the failed rows.",
    ),
    "unavailable": (
        "The target was overloaded or had an internal error at the last attempt (5xx).",
        "Wait until the target is available again, then retry the failed rows.",
    ),
    "redirected": (
        "The target redirected the request to another host, where credentials are not sent.",
        "Enter the URL of the redirect in the connection. Often https:// or a slash at the end is missing.",
    ),
    "timeout": (
        "The target did not respond in time. Rows with an unknown state may have arrived.",
        "Look for one of these rows in the target. Then raise the time limit under Retry, and retry.",
    ),
    "reset": (
        "The connection was closed before the response. Rows with an unknown state may have arrived.",
        "Look for one of these rows in the target, then retry. If it happens often, send fewer requests in parallel.",
    ),
    "unreachable": (
        "The target could not be reached, so none of these rows arrived.",
        "Test the connection to see which stage fails, then retry the failed rows.",
    ),
    "no_token": (
        "The token endpoint did not issue a token, so these rows were not sent.",
        "Test the connection to check the token URL, client ID and client secret, then retry the failed rows.",
    ),
    "interrupted": (
        "The push ended while these rows waited for their next attempt.",
        "Retry the failed rows.",
    ),
}
_OF_ERRORS: Final = {"token_request_failed": "no_token", "target_timeout": "timeout", "csrf_failed": "csrf"}
KNOWN: Final = frozenset({*HTTP_REASONS, "no_token"})
"""Reasons that have an explanation; a test checks that none is missing."""


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
    """Explain why a push failed."""
    if not error:
        return None
    reason = (error.get("details") or {}).get("reason", "")
    said = error["message"].partition(":")[0]  # pushes keep the reason before the message
    for name in (reason, said, error["code"]):
        if found := explained(_OF_ERRORS.get(name, name)):
            return found
    return None
