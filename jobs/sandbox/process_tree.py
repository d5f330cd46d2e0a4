"""Measure and signal the processes of a sandbox, as its /proc shows them."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field
from typing import Final

from jobs.sandbox.kernel_memory import KernelMemory
from jobs.sandbox.spec import Usage

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_TICK_MS: Final = 1000 // os.sysconf("SC_CLK_TCK")
# Of /proc/<pid>/stat, after the name (proc(5)): the fields count from 3 there.
_STATE, _GROUP, _UTIME, _STIME, _CUTIME, _CSTIME, _THREADS, _START, _RSS = 0, 2, 11, 12, 13, 14, 17, 19, 21


@dataclass(frozen=True)
class Process:
    """One process at one moment. Times are in clock ticks."""

    pid: int
    """As in this /proc."""
    group: int
    start: int
    cpu_ticks: int
    """Its CPU time."""
    children_cpu_ticks: int
    """CPU time of ended children that were waited for."""
    threads: int
    memory: int
    """Resident, shared pages included; bytes."""
    zombie: bool
    """It has ended, and its parent has not waited for it."""
    running: bool
    """It is running or ready to run."""


@dataclass
class Tree:
    """The processes of a sandbox. `proc`: a descriptor of the /proc that shows them: the sandbox's own, whose
    first process is bubblewrap, or the host's, for a process group whose `leader` only supervises."""

    proc: int
    kernel: KernelMemory
    leader: int = 1
    shared: bool = False
    max_memory: int = 0
    _last: dict[tuple[int, int], float] = field(default_factory=dict)
    _ended_ticks: float = 0.0
    _last_measured: float = 0.0

    def processes(self) -> list[Process]:
        """Return the live processes."""
        try:
            names = os.listdir(self.proc)
        except OSError:
            return []  # the namespace has ended
        found = (read_process(self.proc, int(name)) for name in names if name.isdigit())
        return [item for item in found if item is not None and self._is_ours(item)]

    def _is_ours(self, one: Process) -> bool:
        return one.pid != self.leader and (not self.shared or one.group == self.leader)

    @property
    def nameless_bytes(self) -> int:
        """Disk space of files that were deleted and are still in use."""
        return self.kernel.nameless_bytes

    def usage(self, most: int, outside: int = 0) -> Usage:
        """Return the resource usage, with kernel memory and `outside`, the bytes of connections in the host's
        network. Above `most` bytes, shared pages are measured so that each counts once."""
        living = self.processes()
        memory = sum(item.memory for item in living)
        kernel = outside + self.kernel.measure([item.pid for item in living if not item.zombie], self.leader)
        if memory + kernel > most:
            # Twice, because while processes end, pages that they shared are attributed to the remaining ones.
            memory = min(sum(proportional_memory(self.proc, item) for item in living) for _ in range(2))
        memory += kernel
        self.max_memory = max(self.max_memory, memory)
        threads = sum(item.threads for item in living if not item.zombie)
        return Usage(memory, self.max_memory, self._cpu(living) * _TICK_MS, threads)

    def _cpu(self, living: list[Process]) -> int:
        """Return the CPU ticks of all processes, including ended ones: the larger of two sums, because each
        misses something.

        The kernel adds the CPU time of waited-for processes to their parents or, for orphans, to the leader.
        A process whose parent ignores SIGCHLD is in neither. Processes that we saw count with their last
        known time. A process that was seen only once represents all short-lived ones since the previous
        measurement: it counts as if it had run for the whole interval.
        """
        moment = time.monotonic()
        since = (moment - self._last_measured) * 1000 / _TICK_MS if self._last_measured else 0.0
        self._last_measured = moment
        now: dict[tuple[int, int], float] = {}
        for item in living:
            key = (item.pid, item.start)
            cpu_ticks = float(item.cpu_ticks)
            if key not in self._last and item.running:
                cpu_ticks = max(cpu_ticks, since * _share(self.proc, item.pid))
            now[key] = cpu_ticks
        self._ended_ticks += sum(cpu_ticks for key, cpu_ticks in self._last.items() if key not in now)
        self._last = now
        leader = read_process(self.proc, self.leader)
        children_cpu_ticks = sum(item.cpu_ticks + item.children_cpu_ticks for item in living) + (
            leader.children_cpu_ticks if leader else 0
        )
        return max(int(self._ended_ticks + sum(item.cpu_ticks for item in living)), children_cpu_ticks)

    def signal(self, number: int) -> None:
        """Send a signal to every process."""
        for process in self.processes():
            try:
                handle = os.open(str(process.pid), os.O_RDONLY | os.O_DIRECTORY, dir_fd=self.proc)
            except OSError:
                continue
            try:
                signal.pidfd_send_signal(
                    handle, number
                )  # a folder of /proc serves as one (pidfd_send_signal(2))
            except OSError:
                pass  # it has ended
            finally:
                os.close(handle)


def read_process(proc: int, pid: int) -> Process | None:
    """Return a process, or None if it has ended."""
    text = read_file(proc, f"{pid}/stat")
    if text is None:
        return None
    part = text.rpartition(b")")[2].split()
    number = [int(item) for item in part[1:]]
    at = [0, *number]
    return Process(
        pid=pid,
        group=at[_GROUP],
        start=at[_START],
        cpu_ticks=at[_UTIME] + at[_STIME],
        children_cpu_ticks=at[_CUTIME] + at[_CSTIME],
        threads=at[_THREADS],
        memory=at[_RSS] * _PAGE,
        zombie=part[_STATE] in b"ZX",
        running=part[_STATE] == b"R",
    )


def _share(proc: int, pid: int) -> float:
    """Return the share of its runnable time in which a process had a CPU."""
    text = read_file(proc, f"{pid}/schedstat")
    if text is None or len(text.split()) < 2:
        return 0.0
    had, children_cpu_ticks = (int(part) for part in text.split()[:2])
    return had / (had + children_cpu_ticks) if had else 0.0


def proportional_memory(proc: int, one: Process) -> int:
    """Return its memory with its share of shared pages, or its resident set if the kernel does not report
    shares; 0 if it has ended."""
    text = read_file(proc, f"{one.pid}/smaps_rollup")
    for line in (text or b"").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    now = read_process(proc, one.pid)
    return 0 if now is None or now.zombie else now.memory


def read_file(proc: int, name: str) -> bytes | None:
    """Read a file below /proc; None if it does not exist."""
    try:
        file = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)
    except OSError:
        return None
    try:
        return os.read(file, 16384)
    except OSError:
        return None  # the process has ended
    finally:
        os.close(file)
