"""What the stages of a verification share: time taken, errors as stages, and what the address guard says."""

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
    "not_allowed": "The operator can open this network with TARGET_NETWORKS.",
    "secret_host": "An admin can allow the host for this secret under Settings, Secrets.",
    "refused": "Is the server running, and is this its port?",
    "timeout": "Is there a firewall in between?",
    "unreachable": "Check the host and the way to it.",
}

Step = Callable[[], str]
"""One stage: what is to be said where it goes well. Raises `ConnectorError`, `GateError`."""


def staged(steps: Sequence[tuple[str, Step]]) -> Iterator[Stage]:
    """The stages in order, ending with the first that fails."""
    for name, step in steps:
        start = time.monotonic()
        said, code, hint = "", "", ""
        try:
            said = step()
        except ConnectorError as error:
            said, code, hint = error.message, error.reason, error.hint
        except GateError as error:
            refused = of_gate(error)
            said, code, hint = refused.message, refused.reason, refused.hint
        yield Stage(name, not code, code, said, hint, round((time.monotonic() - start) * 1000))
        if code:
            return


def of_gate(error: GateError) -> ConnectorError:
    """What the address guard says, as an error of ours."""
    return ConnectorError(
        error.message,
        code=_CODES.get(error.reason, "target_failed"),
        reason=error.reason,
        hint=_HINTS.get(error.reason, ""),
        transient=error.reason in ("refused", "timeout", "unreachable"),
    )


def unknown_option(name: str, known: Iterable[str], more: str = "") -> ConnectorError:
    """An option of a connection string that cannot be set there."""
    names = list(known)
    alike = difflib.get_close_matches(name.lower(), [one.lower() for one in names], 1)
    meant = next((one for one in names if alike and one.lower() == alike[0]), None)
    hint = f"Did you mean {meant}?" if meant else f"There are {', '.join(names)}."
    return bad_settings(f"The option {name} cannot be set in a connection string.", f"{hint} {more}".rstrip())


def bad_settings(message: str, hint: str) -> ConnectorError:
    """Settings that lead nowhere."""
    return ConnectorError(message, reason="bad_settings", hint=hint)
