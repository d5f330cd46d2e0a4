"""One program without namespaces: a group of processes that it cannot leave, walled in by Landlock - or, in `plain`, by
nothing."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from jobs.sandbox import bubblewrap, filters, landlock, outputs, plan
from jobs.sandbox.box import Box, Mode, Unprotected
from jobs.sandbox.cell import others, talk
from jobs.sandbox.kernel_memory import KernelMemory, diagnostics
from jobs.sandbox.tree import Tree

_SLACK: Final = 16
_KILL_SECONDS: Final = 10.0  # for the kernel to end what was killed
_CONNECTING: Final = ("connect", "bind", "listen")
_SIGNALLING: Final = ("kill", "tkill", "tgkill")


@dataclass
class Group:
    """A program that runs."""

    process: subprocess.Popen[bytes]
    """Who watches over the group, and leads it."""
    tree: Tree
    home: int
    home_path: Path
    listener: int | None
    served: list[socket.socket] = field(default_factory=list)

    def kill(self) -> None:
        """SIGKILL to everything. Returns once nothing lives."""
        until = time.monotonic() + _KILL_SECONDS
        while True:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                break
            if not any(not one.gone for one in self.tree.processes()) or time.monotonic() > until:
                break
            time.sleep(0.005)  # each round takes whom the last saw being born
        self.process.wait()

    def is_full(self, tmp_bytes: int) -> bool:
        """Whether its home holds too much."""
        size, count = outputs.size(self.home_path)
        return size > tmp_bytes or count > outputs.MOST_FILES

    def close(self) -> None:
        """Let go of all descriptors, and take the home away."""
        self.tree.kernel.close()
        for one in (self.tree.proc, self.home, self.listener):
            if one is not None:
                os.close(one)
        with suppress(OSError):
            outputs.remove(self.home_path)


def begin(box: Box, mode: Mode, output: int, user: int | None) -> Group:
    """Start a program as `user`. It dies with the thread that calls this. Unprotected if it cannot be walled in."""
    home = landlock.make_home(box, user)
    walled = mode.name == "landlock"
    ours, theirs = socket.socketpair()
    errors = os.memfd_create("errors", os.MFD_CLOEXEC)
    process = subprocess.Popen(
        [bubblewrap.python()[0], "-I", "-S", "-c", plan.inside(), str(theirs.fileno())],
        stdin=subprocess.DEVNULL,
        stdout=errors,
        stderr=errors,
        pass_fds=[theirs.fileno(), output],
        start_new_session=True,
        env={},
        cwd="/",
    )
    theirs.close()
    try:
        (proc, folder), listener = talk(ours, _plan(box, mode, output, user, home, walled))
    except (OSError, EOFError, ValueError) as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        shutil.rmtree(home, ignore_errors=True)
        said = os.pread(errors, 2000, 0).decode(errors="replace").strip()
        raise Unprotected(said or f"{type(error).__name__}: {error}") from error
    finally:
        ours.close()
        os.close(errors)
    kernel = KernelMemory(
        proc, diagnostics(), shared=True, files=plan.FILES, box=box, home=str(home), own_home=-1
    )
    return Group(process, Tree(proc, kernel, process.pid, shared=True), folder, home, listener)


def _plan(box: Box, mode: Mode, output: int, user: int | None, home: Path, walled: bool) -> bytes:
    env = plan.variables(box, str(home), str(home / ".tmp"))
    if walled:  # one question in one call, on a connected socket: others are closed (resolv.conf(5))
        env.setdefault("RES_OPTIONS", "single-request")
    asked = _CONNECTING if mode.own_user else (*_CONNECTING, *_SIGNALLING)
    families = [filters.AF_UNIX]
    if box.network != "none":
        families += [filters.AF_INET, filters.AF_INET6]
    return plan.plan(
        box,
        env=env,
        folder=str(home),
        folders=("/proc", str(home)),
        output=output,
        user=user,
        limits=plan.limits(box, box.caps.processes + _SLACK + others(mode)),
        filter=filters.program(sockets=tuple(families), ask=asked, shared=True) if walled else b"",
        listen=walled,
        serve=[],
        landlock=landlock.rules(box, home) if walled else None,
        watch=True,
        keep=not walled,
    )
