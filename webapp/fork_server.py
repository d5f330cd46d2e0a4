"""Start child processes within milliseconds: a server process with one thread imports modules once and forks.

Each process of the service starts its own server at the first request. The server does no work itself, so it
can be forked at any time. It ends when the process that started it ends.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NoReturn

from webapp import limits

_ROOT: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Environment variables that the server inherits: for Python, libraries, temporary files and certificate
# authorities. No secrets.
_INHERITED_VARIABLES: Final = (
    "PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip
# One thread, few arenas and no separate Arrow pool, because memory that they reserve counts toward memory
# limits.
SETTINGS: Final = {
    "OPENBLAS_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": str(limits.MALLOC_ARENAS),
}  # fmt: skip
_NAME_BYTES: Final = 512  # maximum length of a module's name in a request
_PR_SET_PDEATHSIG: Final = 1  # prctl(2)


class ForkServer:
    """A server process, `python -m {module}`, which is started on demand. `module` calls `serve`."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._lock = threading.Lock()
        self._channel: socket.socket | None = None
        self.process: subprocess.Popen[bytes] | None = None
        atexit.register(self.stop)
        os.register_at_fork(after_in_child=self._close_in_child)

    def fork(self, module: str, descriptors: list[int]) -> bool:
        """Make the server import `module` and fork a process that gets the descriptors. Returns False if it
        cannot start."""
        with self._lock:
            for _ in range(2):  # a server that was killed is replaced
                try:
                    channel = self._start_if_needed()
                    socket.send_fds(channel, [module.encode()], descriptors)
                    if channel.recv(1):
                        return True
                except OSError:
                    pass
                self.stop()
        return False

    def _start_if_needed(self) -> socket.socket:
        if self._channel is None:
            channel, server_end = socket.socketpair()
            channel.settimeout(limits.DOCUMENT_START_SECONDS)
            with server_end:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", self._module],
                    stdin=server_end.fileno(),
                    stdout=subprocess.DEVNULL,
                    cwd=_ROOT,
                    env={
                        **{name: os.environ[name] for name in _INHERITED_VARIABLES if name in os.environ},
                        **SETTINGS,
                    },
                    start_new_session=True,
                )
            self._channel = channel
        return self._channel

    def stop(self) -> None:
        """Stop the server, if it runs. The processes that it forked end with it."""
        channel, process, self._channel, self.process = self._channel, self.process, None, None
        if channel is not None:
            channel.close()
        if process is not None:
            process.kill()
            process.wait()

    def _close_in_child(self) -> None:
        """Close the server's channel in a forked process: the server belongs to the parent."""
        if self._channel is not None:
            self._channel.close()
        if self.process is not None:
            self.process.returncode = 0  # not a child of this process, so there is nothing to wait for
        self._channel = self.process = None
        self._lock = threading.Lock()


def serve(channel: socket.socket, work: Callable[..., NoReturn]) -> None:
    """Fork a process for each request, and call `work` with its descriptors, until the calling process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is meant for the calling process
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forked processes are not waited for
    while True:
        module, descriptors, _, _ = socket.recv_fds(channel, _NAME_BYTES, 2)
        if not module:
            return
        channel.send(b".")
        if module.decode() not in sys.modules:
            with suppress(ImportError):  # a driver that is not installed: the forked process reports it
                importlib.import_module(module.decode())
            gc.collect()
            gc.freeze()  # so that forked processes do not copy unchanged objects
        if os.fork() == 0:
            channel.close()
            work(*descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def die_with_parent() -> None:
    """Make the kernel kill this process when its parent ends."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
