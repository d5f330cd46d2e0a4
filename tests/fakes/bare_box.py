"""A replacement for `jobs.sandbox` without isolation: programs start in milliseconds and on any machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from jobs.sandbox import Mode, SandboxSpec, Usage

# The kernel ends the program with this process, as the sandbox would; it says its pid where a test wants to know it.
_BEGIN = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
if os.getppid() != int(sys.argv[1]): os._exit(1)
os.execvp(sys.executable, [sys.executable, *sys.argv[2:]])
"""


def mode(_setting: str = "auto") -> Mode:
    """It works always."""
    return Mode("plain", "a test")


class BareBoxed:
    """A program in a new session."""

    stopped_by: str | None = None

    def __init__(self, box: SandboxSpec, output: int) -> None:
        self._home = tempfile.TemporaryDirectory()
        for entry in box.code.iterdir():
            (Path(self._home.name) / entry.name).write_bytes(entry.read_bytes())
        self.process = subprocess.Popen(
            [sys.executable, "-c", _BEGIN, str(os.getpid()), *box.command[1:]],
            env={"PATH": os.environ["PATH"], "HOME": self._home.name, **box.env},
            cwd=self._home.name,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        self._ended = threading.Event()

    def poll(self) -> int | None:
        return self.process.poll()

    def wait(self, seconds: float | None = None) -> int | None:
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        self.process.wait()

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def usage(self) -> Usage:
        return Usage(memory_bytes=10_000_000, max_memory_bytes=12_000_000, cpu_ms=7, processes=1)

    def close(self) -> None:
        self.kill()
        self._home.cleanup()


def start(box: SandboxSpec, _mode: Mode, output: int) -> BareBoxed:
    return BareBoxed(box, output)
