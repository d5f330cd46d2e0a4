"""Helpers for verification: timing, errors as stages, and errors of the address guard."""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from webapp.connectors.base import ConnectorError, Stage
from webapp.net.gate import GateError

_CODES: Final = {
    "not_allowed": "target_not_allowed", "secret_host": "target_not_allowed", "timeout": "target_timeout",
}  # fmt: skip
_HINTS: Final = {
    "unresolved": "Check the spelling of the host.",
    "not_allowed": "The operator can allow this network with TARGET_NETWORKS.",
    "secret_host": "An admin can allow the host for this secret under Settings, Secrets.",
    "refused": "Check that the server is running and listens on this port.",
    "timeout": "Check whether a firewall blocks the connection.",
    "unreachable": "Check the host and the network route to it.",
}

Step = Callable[[], str]
"""Runs one stage and returns the message of success. Raises `ConnectorError` or `GateError`."""


def run_stages(steps: Sequence[tuple[str, Step]]) -> Iterator[Stage]:
    """Run the stages in order, up to the first failure."""
    for name, step in steps:
        start = time.monotonic()
        message, code, hint = "", "", ""
        try:
            message = step()
        except ConnectorError as error:
            message, code, hint = error.message, error.reason, error.hint
        except GateError as error:
            converted = from_gate_error(error)
            message, code, hint = converted.message, converted.reason, converted.hint
        yield Stage(name, not code, code, message, hint, round((time.monotonic() - start) * 1000))
        if code:
            return


def from_gate_error(error: GateError) -> ConnectorError:
    """Convert an error of the address guard."""
    return ConnectorError(
        error.message,
        code=_CODES.get(error.reason, "target_failed"),
        reason=error.reason,
        hint=_HINTS.get(error.reason, ""),
        transient=error.reason in ("refused", "timeout", "unreachable"),
    )


def unknown_option_error(name: str, known: Iterable[str], more: str = "") -> ConnectorError:
    """Return the error for an option that is not supported in a connection string."""
    names = list(known)
    matches = difflib.get_close_matches(name.lower(), [name.lower() for name in names], 1)
    suggestion = next((name for name in names if matches and name.lower() == matches[0]), None)
    hint = f"Did you mean {suggestion}?" if suggestion else f"Supported options: {', '.join(names)}."
    return bad_settings_error(
        f"The option {name} is not supported in a connection string.", f"{hint} {more}".rstrip()
    )


def bad_settings_error(message: str, hint: str) -> ConnectorError:
    """Return the error for settings that cannot be used."""
    return ConnectorError(message, reason="bad_settings", hint=hint)
