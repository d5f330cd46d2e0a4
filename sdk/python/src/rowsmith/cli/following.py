"""Following work of the service. Ctrl-C does not affect the work unless requested."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rowsmith.cli.problems import FAILED, OK
from rowsmith.cli.work import Work
from rowsmith.error import ServiceError


def add_options(made: Any) -> None:
    """Add the options of all commands that follow work."""
    made.add_argument(
        "--cancel-on-interrupt", action="store_true", help="Ctrl-C also cancels the work on the service."
    )
    made.add_argument(
        "--timeout", type=float, metavar="SECONDS", help="Stop waiting after this time (exit status 8)."
    )


@contextmanager
def interruptible(work: Work, id: str, cancel: Callable[[], object]) -> Iterator[None]:
    """Handle Ctrl-C while following: say what happens to the work, and cancel it only if requested."""
    try:
        yield
    except KeyboardInterrupt:
        if not getattr(work.args, "cancel_on_interrupt", False):
            work.console.note(f"{id} is still running. To cancel it, run `rowsmith cancel {id}`.")
            raise
        try:
            cancel()
            work.console.note(f"{id} is being cancelled.")
        except ServiceError as error:
            work.console.note(f"{id} could not be cancelled: {error}")
        raise


def outcome(status: str, *, harmed: bool = False) -> int:
    """Return the exit status for a final status."""
    return OK if status == "completed" and not harmed else FAILED


def error_in_brackets(found: Any) -> str:
    """Return the service's error message in brackets."""
    told = found.get("error") or {}
    return f" ({told.get('code')}: {told.get('message')})" if told else ""
