"""Start a program without namespaces: in its own process group, restricted by Landlock - or not at all, in
`plain`."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from jobs.sandbox import bubblewrap_process, outputs, seccomp
from jobs.sandbox import spec as sandbox_spec
from jobs.sandbox.bubblewrap_process import exchange_plan, other_processes
from jobs.sandbox.process_tree import KernelMemory, ProcessTree, open_diagnostics
from jobs.sandbox.spec import Mode, SandboxSpec, SandboxUnavailable

_CREATE_RULESET: Final = 444
_VERSION: Final = 1
# LANDLOCK_ACCESS_FS_*
_EXECUTE, _WRITE, _READ, _LIST = 1, 2, 4, 8
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_FIRST_ABI: Final = (1 << 13) - 1
_READ_AND_EXECUTE: Final = _EXECUTE | _READ | _LIST
_DEVICES: Final = ("null", "full", "random", "urandom")  # a mapping of zero is memory that no cap counts
# Files of /etc for name resolution. Bubblewrap creates them instead.
_NAME_FILES: Final = ("passwd", "group", "hosts", "resolv.conf", "nsswitch.conf", "host.conf")


def landlock_version() -> int:
    """Return the kernel's Landlock version; 0 for none."""
    if platform.machine() not in seccomp.ARCHITECTURES:
        return 0
    found = ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, 0, _VERSION)
    return 0 if found < 0 and ctypes.get_errno() in (errno.ENOSYS, errno.EOPNOTSUPP) else max(0, found)


def landlock_rules(spec: SandboxSpec, home: Path) -> tuple[int, tuple[tuple[str, int], ...]]:
    """Return the restricted kinds of access, and the exceptions: (path, kinds)."""
    handled = (
        _FIRST_ABI
        | (_REFER if landlock_version() >= 2 else 0)
        | (_TRUNCATE if landlock_version() >= 3 else 0)
    )
    special = (1 << 6) | (1 << 11)  # MAKE_CHAR, MAKE_BLOCK
    write = handled & ~special
    seen = [
        *bubblewrap_process.SYSTEM_FOLDERS,
        *(f"/etc/{name}" for name in (*bubblewrap_process.ETC_FILES, *_NAME_FILES)),
        bubblewrap_process.python_executable()[1],
    ]
    seen += [str(item) for item in (*spec.read_only, spec.environment, spec.code, spec.uploads)]
    seen += [f"/{name}" for name in bubblewrap_process.LINKED_FOLDERS if not Path("/", name).is_symlink()]
    granted = [(path, _READ_AND_EXECUTE) for path in seen]
    granted += [(f"/dev/{name}", _READ | _WRITE) for name in _DEVICES]
    granted += [("/proc/self", _READ | _LIST), (str(home), write), (str(spec.outputs), write)]
    return handled, tuple(granted)


def make_home(spec: SandboxSpec, user: int | None) -> Path:
    """Create a home folder for the program, with links to its code and a folder for temporary files."""
    home = Path(tempfile.mkdtemp(prefix="scenario-")).resolve()
    for entry in spec.code.iterdir():
        (home / entry.name).symlink_to(entry.resolve())
    (home / ".tmp").mkdir()
    if user is not None:
        for item in (home, home / ".tmp"):
            shutil.chown(item, user, user)
    return home


_SLACK: Final = 16
_KILL_SECONDS: Final = 10.0  # for the kernel to end what was killed
_CONNECTING: Final = ("connect", "bind", "listen")
_SIGNALLING: Final = ("kill", "tkill", "tgkill")


@dataclass
class LandlockProcess:
    """A program that runs in a process group."""

    process: subprocess.Popen[bytes]
    """The launcher, which leads the group and ends it."""
    tree: ProcessTree
    home_descriptor: int
    home_path: Path
    listener: int | None
    sockets: list[socket.socket] = field(default_factory=list)

    def kill(self) -> None:
        """Send SIGKILL to all processes. Returns when all have ended."""
        until = time.monotonic() + _KILL_SECONDS
        while True:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                break
            if (
                not any(not process.is_zombie for process in self.tree.processes())
                or time.monotonic() > until
            ):
                break
            time.sleep(0.005)  # repeat for processes that were forked in the meantime
        self.process.wait()

    def is_full(self, tmp_bytes: int) -> bool:
        """Whether its home folder is too large."""
        size, count = outputs.disk_usage(self.home_path)
        return size > tmp_bytes or count > outputs.MAX_FILES

    def close(self) -> None:
        """Close all descriptors and remove the home folder."""
        self.tree.kernel.close()
        for item in (self.tree.proc, self.home_descriptor, self.listener):
            if item is not None:
                os.close(item)
        with suppress(OSError):
            outputs.remove(self.home_path)


def launch(spec: SandboxSpec, mode: Mode, output: int, user: int | None) -> LandlockProcess:
    """Start a program as `user`. It ends with the thread that calls this. Raises SandboxUnavailable if it
    cannot be restricted."""
    home = make_home(spec, user)
    restricted = mode.name == "landlock"
    ours, theirs = socket.socketpair()
    errors = os.memfd_create("errors", os.MFD_CLOEXEC)
    process = subprocess.Popen(
        [
            bubblewrap_process.python_executable()[0],
            "-I",
            "-S",
            "-c",
            sandbox_spec.launcher_command(),
            str(theirs.fileno()),
        ],
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
        (proc, folder), listener = exchange_plan(ours, _plan(spec, mode, output, user, home, restricted))
    except (OSError, EOFError, ValueError) as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        shutil.rmtree(home, ignore_errors=True)
        message = os.pread(errors, 2000, 0).decode(errors="replace").strip()
        raise SandboxUnavailable(message or f"{type(error).__name__}: {error}") from error
    finally:
        ours.close()
        os.close(errors)
    kernel = KernelMemory(
        proc,
        open_diagnostics(),
        shared=True,
        files=sandbox_spec.FILES,
        spec=spec,
        home=str(home),
        own_home=-1,
    )
    return LandlockProcess(
        process, ProcessTree(proc, kernel, process.pid, is_host_network=True), folder, home, listener
    )


def _plan(
    spec: SandboxSpec, mode: Mode, output: int, user: int | None, home: Path, restricted: bool
) -> bytes:
    env = sandbox_spec.variables(spec, str(home), str(home / ".tmp"))
    if restricted:  # one query per call on a connected socket, since others are blocked (resolv.conf(5))
        env.setdefault("RES_OPTIONS", "single-request")
    notified_calls = _CONNECTING if mode.separate_user else (*_CONNECTING, *_SIGNALLING)
    families = [seccomp.AF_UNIX]
    if spec.network != "none":
        families += [seccomp.AF_INET, seccomp.AF_INET6]
    return sandbox_spec.plan(
        spec,
        env=env,
        folder=str(home),
        folders=("/proc", str(home)),
        output=output,
        user=user,
        limits=sandbox_spec.limits(spec, spec.caps.processes + _SLACK + other_processes(mode)),
        filter=seccomp.build_filter(sockets=tuple(families), notified_calls=notified_calls, shared=True)
        if restricted
        else b"",
        listen=restricted,
        serve=[],
        landlock=landlock_rules(spec, home) if restricted else None,
        watch=True,
        keep=not restricted,
    )
