"""What lives in a box, as its own /proc tells it."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field
from typing import Final

from jobs.sandbox.box import Usage
from jobs.sandbox.kernel_memory import KernelMemory

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_TICK_MS: Final = 1000 // os.sysconf("SC_CLK_TCK")
# Of /proc/<pid>/stat, after the name (proc(5)): the fields count from 3 there.
_STATE, _GROUP, _UTIME, _STIME, _CUTIME, _CSTIME, _THREADS, _START, _RSS = 0, 2, 11, 12, 13, 14, 17, 19, 21


@dataclass(frozen=True)
class Process:
    """One process at one moment. Times in ticks of the clock."""

    pid: int
    """As this /proc numbers it."""
    group: int
    start: int
    own: int
    """Processor time of its own."""
    waited: int
    """That of its children that ended and were waited for."""
    threads: int
    memory: int
    """Resident, shared pages included; bytes."""
    gone: bool
    """It has ended, and its parent has not asked how."""
    running: bool
    """It has a processor, or waits for one."""


@dataclass
class Tree:
    """The processes of a box. `proc`: a descriptor of the /proc that shows them: the box's own, in which the first
    process is bubblewrap's; or the host's, where they are those of a process group, whose `leader` only watches."""

    proc: int
    kernel: KernelMemory
    leader: int = 1
    shared: bool = False
    max_memory: int = 0
    _last: dict[tuple[int, int], float] = field(default_factory=dict)
    _ended: float = 0.0
    _looked: float = 0.0

    def processes(self) -> list[Process]:
        """Who lives now."""
        try:
            names = os.listdir(self.proc)
        except OSError:
            return []  # the namespace has ended
        found = (read(self.proc, int(name)) for name in names if name.isdigit())
        return [one for one in found if one is not None and self._is_ours(one)]

    def _is_ours(self, one: Process) -> bool:
        return one.pid != self.leader and (not self.shared or one.group == self.leader)

    @property
    def nameless_bytes(self) -> int:
        """Disk space of files that were deleted and are still in use."""
        return self.kernel.nameless_bytes

    def usage(self, most: int, outside: int = 0) -> Usage:
        """What they take, with what the kernel holds for them and `outside`, bytes of their connections in the host's
        network. Beyond `most` bytes shared pages are looked at closely, so that each counts once."""
        living = self.processes()
        memory = sum(one.memory for one in living)
        kernel = outside + self.kernel.measure([one.pid for one in living if not one.gone], self.leader)
        if memory + kernel > most:
            # Twice: while processes end, what they shared is found with those that are left, more of it every time.
            memory = min(sum(proportional(self.proc, one) for one in living) for _ in range(2))
        memory += kernel
        self.max_memory = max(self.max_memory, memory)
        threads = sum(one.threads for one in living if not one.gone)
        return Usage(memory, self.max_memory, self._cpu(living) * _TICK_MS, threads)

    def _cpu(self, living: list[Process]) -> int:
        """Ticks of all that live or lived. Two sums, of which the greater holds, since each leaves something out.

        Of processes that were waited for, the kernel keeps the sum with those that waited: their parents, and for
        orphans the leader. A process whose parent ignores SIGCHLD is in no such sum. Those that were seen count with
        what they had taken when they were last seen. One that was seen only once stands for all that came and went
        since the look before: it counts as if it had gone on for that long.
        """
        moment = time.monotonic()
        since = (moment - self._looked) * 1000 / _TICK_MS if self._looked else 0.0
        self._looked = moment
        now: dict[tuple[int, int], float] = {}
        for one in living:
            key = (one.pid, one.start)
            own = float(one.own)
            if key not in self._last and one.running:
                own = max(own, since * _share(self.proc, one.pid))
            now[key] = own
        self._ended += sum(own for key, own in self._last.items() if key not in now)
        self._last = now
        leader = read(self.proc, self.leader)
        waited = sum(one.own + one.waited for one in living) + (leader.waited if leader else 0)
        return max(int(self._ended + sum(one.own for one in living)), waited)

    def signal(self, number: int) -> None:
        """To every process."""
        for one in self.processes():
            try:
                handle = os.open(str(one.pid), os.O_RDONLY | os.O_DIRECTORY, dir_fd=self.proc)
            except OSError:
                continue
            try:
                signal.pidfd_send_signal(
                    handle, number
                )  # a folder of /proc serves as one (pidfd_send_signal(2))
            except OSError:
                pass  # it went
            finally:
                os.close(handle)


def read(proc: int, pid: int) -> Process | None:
    """One process, or None if it is gone."""
    text = contents(proc, f"{pid}/stat")
    if text is None:
        return None
    part = text.rpartition(b")")[2].split()
    number = [int(one) for one in part[1:]]
    at = [0, *number]
    return Process(
        pid=pid,
        group=at[_GROUP],
        start=at[_START],
        own=at[_UTIME] + at[_STIME],
        waited=at[_CUTIME] + at[_CSTIME],
        threads=at[_THREADS],
        memory=at[_RSS] * _PAGE,
        gone=part[_STATE] in b"ZX",
        running=part[_STATE] == b"R",
    )


def _share(proc: int, pid: int) -> float:
    """The part of its time that a process had a processor while it wanted one."""
    text = contents(proc, f"{pid}/schedstat")
    if text is None or len(text.split()) < 2:
        return 0.0
    had, waited = (int(one) for one in text.split()[:2])
    return had / (had + waited) if had else 0.0


def proportional(proc: int, one: Process) -> int:
    """Its memory, of shared pages its part; what it has resident where the kernel does not say; 0 once it has ended."""
    text = contents(proc, f"{one.pid}/smaps_rollup")
    for line in (text or b"").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    now = read(proc, one.pid)
    return 0 if now is None or now.gone else now.memory


def contents(proc: int, name: str) -> bytes | None:
    """A file below /proc; None if there is none."""
    try:
        file = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)
    except OSError:
        return None
    try:
        return os.read(file, 16384)
    except OSError:
        return None  # the process ended meanwhile
    finally:
        os.close(file)
