"""Work of the service that is watched from here, and what Ctrl-C does to it: nothing, unless told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rowsmith.cli.problems import FAILED, OK
from rowsmith.cli.work import Work
from rowsmith.error import ServiceError


def add_options(made: Any) -> None:
    """What every watching command takes."""
    made.add_argument(
        "--cancel-on-interrupt", action="store_true", help="Ctrl-C also cancels it on the service."
    )
    made.add_argument(
        "--timeout", type=float, metavar="SECONDS", help="Stop waiting after so long, with status 8."
    )


@contextmanager
def interruptible(work: Work, id: str, cancel: Callable[[], object]) -> Iterator[None]:
    """Around watching: Ctrl-C says what becomes of the work, and cancels it only where that was asked for."""
    try:
        yield
    except KeyboardInterrupt:
        if not getattr(work.args, "cancel_on_interrupt", False):
            work.console.note(f"{id} goes on; `rowsmith cancel {id}` ends it.")
            raise
        try:
            cancel()
            work.console.note(f"{id} is being cancelled.")
        except ServiceError as error:
            work.console.note(f"{id} could not be cancelled: {error}")
        raise


def outcome(status: str, *, harmed: bool = False) -> int:
    """The exit status of work that has ended so."""
    return OK if status == "completed" and not harmed else FAILED


def why(found: Any) -> str:
    """What the service says of a failure, in brackets."""
    told = found.get("error") or {}
    return f" ({told.get('code')}: {told.get('message')})" if told else ""
