"""How long a request may wait for a target."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from webapp.connectors.base import ConnectorError, Link


@contextmanager
def limited(session: Link, left: float, whole: float) -> Iterator[None]:
    """Stops what a session waits for after `left` seconds; the message tells of `whole` seconds.

    A target that is stuck does not keep to the time limit of a statement: somebody else has to end the wait.
    Error: ConnectorError `target_timeout`.
    """
    over = threading.Event()

    def stop() -> None:
        over.set()
        session.cancel()

    timer = threading.Timer(max(0.0, left), stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    except ConnectorError:
        if not over.is_set():
            raise
        raise ConnectorError(
            f"The target did not answer within {whole:g} s.",
            code="target_timeout",
            reason="timeout",
            hint="Look whether it is busy, or whether somebody holds a lock there; then try again.",
        ) from None
    finally:
        timer.cancel()
