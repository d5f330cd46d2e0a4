"""Connections and signals of a program that shares the host's network and processes (Landlock).

Its sockets are the host's: every connection is judged, and made with our copy of the address on the socket that was
judged; nothing may listen but on paths in its own home; signals go to its own group alone.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Set
from pathlib import Path

from jobs.sandbox import addresses, asking, filters, names
from jobs.sandbox.asking import Question
from jobs.sandbox.box import Box
from jobs.sandbox.network import Connections
from jobs.sandbox.tree import read


class SharedConnections(Connections):
    """`leader`: the pid that leads the program's group; `home`: where its unix sockets may lie."""

    def __init__(
        self,
        box: Box,
        listener: int,
        open_ways: Set[tuple[addresses.Address, int]],
        reach: addresses.Reach,
        register: Callable[[int, int], None],
        forget: Callable[[int], None],
        leader: int,
        home: Path,
    ) -> None:
        super().__init__(box, listener, open_ways, reach, None, register, forget)
        self._leader, self._home = leader, home
        self._proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._signals = {filters.number(call) for call in ("kill", "tkill", "tgkill")}

    def close(self) -> None:
        """Let go of everything."""
        super().close()
        os.close(self._proc)

    def _judge(self, question: Question) -> int | None:
        if question.number in self._signals:
            if self._is_own(question.descriptor):
                asking.answer(self.listener, question, carry_on=True)  # its arguments are numbers, which stay
                return None
            return errno.EPERM
        return super()._judge(question)

    def _is_own(self, pid: int) -> bool:
        """Whether a process, or a group written as kill(2) does, is the program's."""
        if pid <= 0:
            return pid in (0, -self._leader)
        found = read(self._proc, pid)
        return found is not None and found.group == self._leader and pid != self._leader

    def _is_given(self, target: addresses.Target, stream: bool) -> bool:
        return (target.address, target.port) in self.api and (stream or target.port == names.PORT)

    def _is_outside(self, one: socket.socket) -> bool:
        return one.family in (socket.AF_INET, socket.AF_INET6)

    def _bind(self, question: Question, one: socket.socket, raw: bytes) -> int | None:
        if one.family == socket.AF_UNIX:
            if raw[2:3] in (b"", b"\0"):
                return errno.EACCES  # a name of the host's
            asking.answer(self.listener, question, carry_on=True)  # Landlock knows where it may make one
            return None
        # Any port of any address is what connecting chooses anyway. The address tells who calls the API, so it is ours.
        target = addresses.target(raw)
        return 0 if target is not None and target.port == 0 else errno.EACCES

    def _connect_unix(self, question: Question, one: socket.socket, raw: bytes) -> int | None:
        path = raw[2:].partition(b"\0")[0]
        if not path:
            return errno.EACCES
        file = asking.open_inside(question, path)
        try:
            found = Path(os.readlink(f"/proc/self/fd/{file}"))
            if not found.is_relative_to(self._home):
                return errno.EACCES
            return self._reach(question, one, file)
        finally:
            os.close(file)
