"""A program that runs, as its caller sees it."""

from __future__ import annotations

import signal

from jobs.sandbox.box import Box, Mode, Unprotected, Usage
from jobs.sandbox.warden import Warden


class Boxed:
    """One program and all that it has started. Made by `start`; to be closed."""

    def __init__(self, warden: Warden) -> None:
        self._warden = warden

    def poll(self) -> int | None:
        """None while it runs, then its exit code, or -signal where one ended it. Nothing of it lives by then."""
        return self._warden.code if self._warden.ended.is_set() else None

    def wait(self, seconds: float | None = None) -> int | None:
        """As `poll`, after its end or after so many seconds."""
        self._warden.ended.wait(seconds)
        return self.poll()

    def terminate(self) -> None:
        """SIGTERM to everything."""
        if not self._warden.ended.is_set():
            self._warden.tell(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL to everything. Returns once nothing of it lives."""
        if not self._warden.ended.is_set():
            self._warden.tell(signal.SIGKILL)
        self._warden.ended.wait()

    def usage(self) -> Usage:
        """What it takes, at most a tenth of a second old; after its end what it took last."""
        return self._warden.usage

    @property
    def stopped_by(self) -> str | None:
        """The cap that ended it: memory, processes, cpu, wall, outputs or tmp; None if it was none."""
        return self._warden.stopped_by

    def close(self) -> None:
        """End it and let go of everything."""
        self.kill()
        self._warden.close()

    def __enter__(self) -> Boxed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def start(box: Box, mode: Mode, output: int) -> Boxed:
    """Start a program. `output`: the descriptor that gets what it prints, to stdout and stderr alike; it is duplicated.

    Returns once the program is about to run. Unprotected if it cannot be kept apart after all.
    """
    warden = Warden(box, mode, output)
    warden.start()
    warden.started.wait()
    if warden.failure is not None:
        warden.close()
        if isinstance(warden.failure, Unprotected):
            raise warden.failure
        raise Unprotected(f"{type(warden.failure).__name__}: {warden.failure}") from warden.failure
    return Boxed(warden)
