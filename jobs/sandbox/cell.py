"""One program in bubblewrap: started, stopped, waited for."""

from __future__ import annotations

import array
import json
import os
import platform
import select
import signal
import socket
import subprocess
from dataclasses import dataclass
from typing import Final

from jobs.sandbox import bubblewrap, filters, plan
from jobs.sandbox.box import Box, Mode, Unprotected
from jobs.sandbox.kernel_memory import KernelMemory
from jobs.sandbox.tree import Tree

_START_SECONDS: Final = 20.0  # until the program begins; 0.03 on an idle machine
_SLACK: Final = 16  # processes beyond the cap that the kernel lets be, so that it is the warden who says why
_FEWEST_FILES: Final = 10_000  # each takes about a kilobyte of the kernel's memory, its content apart
# Sockets are those of an empty network, so nothing but connections that we make reaches anything.
_FAMILIES: Final = (filters.AF_UNIX, filters.AF_INET, filters.AF_INET6, filters.AF_NETLINK)
_ASKED: Final = ("connect", "bind", "listen")
_RIGHTS: Final = 16  # descriptors of one message


@dataclass
class Cell:
    """A box that runs."""

    process: subprocess.Popen[bytes]
    tree: Tree
    home: int
    """A descriptor of the file system that /tmp and home are on."""
    served: list[socket.socket]
    """Sockets of the box's network, in the order they were asked for."""
    listener: int | None
    """Where the kernel asks before the program connects."""
    first: int
    """pidfd of the first process of its namespace, with which everything in it ends."""

    def kill(self) -> None:
        """SIGKILL to everything. Returns once nothing lives."""
        try:
            signal.pidfd_send_signal(self.first, signal.SIGKILL)
        except ProcessLookupError:
            pass
        poll = select.poll()
        poll.register(self.first, select.POLLIN)
        poll.poll()  # a namespace's first process ends after all the others (pid_namespaces(7))
        self.process.wait()

    def is_full(self, tmp_bytes: int) -> bool:
        """Whether home and /tmp hold too much: here the kernel sees to the bytes, and files are counted."""
        found = os.fstatvfs(self.home)
        return found.f_files - found.f_ffree > max(_FEWEST_FILES, tmp_bytes // 4096)

    def close(self) -> None:
        """Let go of all descriptors."""
        self.tree.kernel.close()
        for one in (self.tree.proc, self.home, self.first, self.listener):
            if one is not None:
                os.close(one)
        for each in self.served:
            each.close()


def begin(
    box: Box,
    mode: Mode,
    output: int,
    serve: list[tuple[str, str, int]],
    files: dict[str, bytes],
    env: dict[str, str],
    user: int | None,
) -> Cell:
    """Start a program as `user`. It dies with the thread that calls this. Unprotected if bubblewrap cannot do it."""
    ours, theirs = socket.socketpair()
    info_ours, info_theirs = os.pipe()
    made = {path: plan.fill(content, "etc") for path, content in files.items()}
    # Through a descriptor, for the program can read the command line of its first process.
    options = bubblewrap.arguments(box, mode, made, info_theirs)
    given = plan.fill("".join(f"{one}\0" for one in options).encode(), "arguments")
    command = [
        "bwrap", "--args", str(given), "--",
        bubblewrap.python()[0], "-I", "-S", "-c", plan.inside(), str(theirs.fileno()),
    ]  # fmt: skip
    errors = os.memfd_create("errors", os.MFD_CLOEXEC)
    try:
        process = subprocess.Popen(
            command,
            executable=mode.bwrap,
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            pass_fds=[theirs.fileno(), info_theirs, output, given, *made.values()],
            start_new_session=True,
            env={},
            cwd="/",
        )
    finally:
        theirs.close()
        for one in (info_theirs, given, *made.values()):
            os.close(one)
    try:
        return _settle(box, mode, output, serve, env, user, process, ours, info_ours)
    except (OSError, EOFError, ValueError) as error:
        process.kill()
        process.wait()
        said = os.pread(errors, 2000, 0).decode(errors="replace").strip()
        raise Unprotected(said or f"{type(error).__name__}: {error}") from error
    finally:
        ours.close()
        os.close(info_ours)
        os.close(errors)


def _settle(
    box: Box,
    mode: Mode,
    output: int,
    serve: list[tuple[str, str, int]],
    env: dict[str, str],
    user: int | None,
    process: subprocess.Popen[bytes],
    control: socket.socket,
    info: int,
) -> Cell:
    """Talk the last step inside through (`inside.py`)."""
    first = os.pidfd_open(_first_pid(info))
    listen = mode.notify and box.network != "none"
    content = plan.plan(
        box,
        env=plan.variables(box, bubblewrap.HOME, "/tmp", **env),  # noqa: S108
        folder=bubblewrap.HOME,
        folders=("/proc", "/home"),
        output=output,
        user=user,
        limits=plan.limits(box, box.caps.processes + _SLACK + others(mode)),
        filter=filters.program(sockets=_FAMILIES, ask=_ASKED if listen else ()),
        listen=listen,
        serve=[("diagnostics", "", 0), *serve],
    )
    (proc, home, *sockets), listener = talk(control, content)
    diagnostics, *served = [socket.socket(fileno=one) for one in sockets]
    kernel = KernelMemory(
        proc,
        diagnostics,
        shared=False,
        files=plan.FILES,
        box=box,
        home=bubblewrap.HOME,
        own_home=os.fstat(home).st_dev,
    )
    return Cell(process, Tree(proc, kernel), home, served, listener, first)


def talk(control: socket.socket, content: bytes) -> tuple[list[int], int | None]:
    """Tell the last step inside what to do, and get the descriptors that it has opened, and its listener."""
    control.settimeout(_START_SECONDS)
    control.sendall(len(content).to_bytes(8, "little") + content)
    given = _receive(control, b"s")
    control.sendall(b"g")
    listener = _receive(control, b"l")
    return given, listener[0] if listener else None


def others(mode: Mode) -> int:
    """Processes that count towards the kernel's limit and are not the program's: before Linux 5.14 all of a user's do,
    in whatever namespace they are."""
    major, minor = (int("".join(filter(str.isdigit, one)) or 0) for one in platform.release().split(".")[:2])
    if mode.own_user or (mode.name == "bubblewrap" and (major, minor) >= (5, 14)):
        return 0
    mine, count = os.getuid(), 0
    for entry in os.scandir("/proc"):
        try:
            if entry.name.isdigit() and entry.stat().st_uid == mine:
                count += len(os.listdir(f"/proc/{entry.name}/task"))
        except OSError:
            continue
    return count


def _first_pid(info: int) -> int:
    ready, _, _ = select.select([info], [], [], _START_SECONDS)
    said = os.read(info, 4096) if ready else b""
    while said and b"}" not in said:
        more = os.read(info, 4096)
        if not more:
            break
        said += more
    if b"}" not in said:
        raise EOFError("bubblewrap has made no namespace")
    return int(json.loads(said)["child-pid"])


def _receive(control: socket.socket, word: bytes) -> list[int]:
    """The descriptors of the next message, which is `word`."""
    said, ancillary, _, _ = control.recvmsg(1, socket.CMSG_SPACE(_RIGHTS * 4))
    out = array.array("i")
    for level, kind, content in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            out.frombytes(content[: len(content) - len(content) % out.itemsize])
    for one in out:
        os.set_inheritable(one, False)
    if said != word:
        for one in out:
            os.close(one)
        raise EOFError("the last step inside has ended")
    return list(out)
