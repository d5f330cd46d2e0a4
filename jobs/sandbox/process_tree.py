"""Measure and signal the processes of a sandbox, as its /proc shows them, and measure the kernel memory they use.

Kernel memory is memory and disk space that the kernel uses for a program outside of its processes' resident sets: page
tables, buffers of sockets and pipes, file locks, mappings, deleted files. It is part of the sandbox memory limit. If
the kernel does not report the size of an object, the maximum is assumed.
See "Kernel memory" in docs/reference/sandbox.md.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import stat
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from jobs.sandbox.spec import SandboxSpec, Usage

_TIME_SHARE: Final = 5  # descriptors and sockets are examined for at most this part of the time
_ANSWER_SECONDS: Final = 5.0
_SLOW_SECONDS: Final = 2.0  # between looks at mappings and file locks
_FEW_SOCKETS: Final = 8
_FEW_PROCESSES: Final = (
    8  # below, the number of mappings is not counted: 65,530 of 256 bytes for each process
)
_BUFFER: Final = 212_992  # net.core.wmem_default and rmem_default of Linux
_SOCKET: Final = 2_048  # a socket, its inode and its file
_EPOLL_ITEM: Final = 256
_PROC_FILE: Final = 32_768  # the buffer of a file of /proc; that of /proc/stat grows with the processors
_PROC_LINE: Final = 256  # an item of epoll or a lock in fdinfo: 100 characters, in a buffer that doubles
_FLIGHT_SECONDS: Final = 0.5  # a descriptor is in flight for microseconds, unless it is never received
_MAX_LOCKS: Final = 10_000  # SQLite holds a few; counting millions would take longer than creating them
_MAPPING: Final = 256
_PIPE: Final = 65_536
_SMALL_PIPE: Final = 8_192  # of a user who is above pipe-user-pages-soft (pipe(7))
# --- Processes ----------------------------------------------------------------------------------------------

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")

# linux/netlink.h, linux/sock_diag.h, linux/unix_diag.h, linux/inet_diag.h
_SOCK_DIAG: Final = 4  # NETLINK_SOCK_DIAG
_BY_FAMILY: Final = 20
_REQUEST, _DUMP = 0x1, 0x300
_ERROR, _DONE = 2, 3
_HEAD: Final = struct.Struct("=IHHII")
_ATTRIBUTE: Final = struct.Struct("=HH")
_UNIX_REQUEST: Final = struct.Struct("=BBHIII8x")
_UNIX_MESSAGE: Final = struct.Struct("=BBBxI8x")
_UNIX_SHOW: Final = 0x04 | 0x10 | 0x20  # UDIAG_SHOW_PEER, _RQLEN, _MEMINFO
_UNIX_SHOW_QUEUE: Final = 0x10  # UDIAG_SHOW_RQLEN
_UNIX_PEER, _UNIX_RQLEN, _UNIX_MEMINFO = 2, 4, 5
_INET_REQUEST: Final = struct.Struct("=BBBxI48s")
_INET_MESSAGE: Final = 72
_INET_SKMEMINFO: Final = 7
_LISTEN: Final = 10  # TCP_LISTEN, which unix sockets use too
_ALL_STATES: Final = 0xFFFFFFFF
# SK_MEMINFO_*: bytes of one socket.
_RECEIVED, _SENT, _FORWARD, _QUEUED, _OPTIONS, _BACKLOG = 0, 2, 4, 5, 6, 7


@dataclass
class _OpenObjects:
    """Counts of open objects of the sandbox's processes."""

    items: int = 0
    """Items of epoll instances."""
    proc_files: int = 0
    """Files of /proc."""
    in_flight: int = 0
    """Descriptors in flight through unix sockets."""


class KernelMemory:
    """The kernel memory of one sandbox's processes.

    `proc`: a descriptor of their /proc; `diagnostics`: a NETLINK_SOCK_DIAG socket in their network, or None;
    `shared`: whether that network is the host's; `files`: the maximum number of descriptors per process;
    `home`: the folder that they may write to in addition to the outputs; `own_home`: its device if it has a
    size limit, else -1.
    """

    def __init__(
        self,
        proc: int,
        diagnostics: socket.socket | None,
        *,
        shared: bool,
        files: int,
        spec: SandboxSpec,
        home: str,
        own_home: int,
    ) -> None:
        self._proc, self._diagnostics, self._shared = proc, diagnostics, shared
        self._files, self._file_bytes = files, spec.caps.file_bytes
        self._writable_folders = tuple(os.fsencode(f"{item}/") for item in (spec.outputs, home))
        self._home_device = own_home
        self._buffer = max(
            _read_sysctl("net/core/wmem_default"), _read_sysctl("net/core/rmem_default"), _BUFFER
        )
        self._pipe_pages = _read_sysctl("fs/pipe-user-pages-soft")
        self._last_bytes = self._mappings = 0
        self._next = self._next_slow = 0.0
        self._mapped: dict[tuple[int, int], int] = {}
        self._proc_device = os.fstat(proc).st_dev
        self._locks = self._lines = 0
        self._known: set[int] = set()
        self._flights: list[tuple[float, int]] = []
        self.too_many_locks = False
        """Whether the processes hold more file locks (fcntl(2)) than any program needs. The kernel sets no limit."""
        self.deleted_file_bytes = 0
        """Disk space of files that were deleted and are still open or mapped."""

    def measure(self, pids: Sequence[int], leader: int) -> int:
        """Return the bytes of kernel memory of these processes. `leader`: a process in their network."""
        now = time.monotonic()
        if now >= self._next_slow:
            self._next_slow = now + _SLOW_SECONDS
            self._count_mappings(pids)
            self._locks = self._count_locks(pids)
            self.too_many_locks = self._locks > _MAX_LOCKS
        if now >= self._next:
            self._last_bytes = self._measure_descriptors(pids, leader)
            self._next = now + (time.monotonic() - now) * _TIME_SHARE
        return self._last_bytes + sum(map(self._page_table_bytes, pids))

    def close(self) -> None:
        """Close the socket."""
        if self._diagnostics is not None:
            self._diagnostics.close()

    def _page_table_bytes(self, pid: int) -> int:
        """Page tables, huge pages and swapped pages of a process: a program can have its pages swapped out
        (MADV_PAGEOUT)."""
        text = _read(self._proc, f"{pid}/status")
        found = re.findall(rb"^(?:VmPTE|HugetlbPages|VmSwap):\s+(\d+) kB", text, re.MULTILINE)
        return 1024 * sum(map(int, found))

    def _measure_descriptors(self, pids: Sequence[int], leader: int) -> int:
        sockets: set[int] = set()
        pipes: set[tuple[int, int]] = set()
        nameless = dict(self._mapped)
        memory = self._mappings * _MAPPING if len(pids) > _FEW_PROCESSES else 0
        open_ = _OpenObjects()
        for pid in pids:
            try:
                folder = os.open(f"{pid}/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._proc)
            except PermissionError:  # a process that hides its descriptors
                memory += self._files * 2 * self._buffer
                continue
            except OSError:
                continue  # it has ended
            try:
                self._classify_descriptors(pid, folder, sockets, pipes, nameless, open_)
            except OSError:
                continue
            finally:
                os.close(folder)
        # A descriptor open in /proc keeps a buffer for its largest record, which has a line for each item or lock.
        self._lines = max(self._lines, open_.items + self._locks)
        memory += open_.items * _EPOLL_ITEM + open_.proc_files * (_PROC_FILE + self._lines * _PROC_LINE)
        if not self._shared:  # there nothing is sent that could carry a descriptor
            open_.in_flight += self._sockets_in_flight(sockets) * self._files
        self.deleted_file_bytes = sum(nameless.values())
        self.deleted_file_bytes += max(0, self._min_in_flight(open_.in_flight) - 1) * self._file_bytes
        full = self._pipe_pages * _PAGE // _PIPE or len(pipes)
        memory += min(len(pipes), full) * _PIPE + max(0, len(pipes) - full) * _SMALL_PIPE
        if not self._shared:
            return memory + self._network_memory(leader)
        if len(sockets) <= _FEW_SOCKETS:
            return memory
        return memory + (self._unix_socket_memory(sockets)[0] or len(sockets) * 2 * self._buffer)

    def _classify_descriptors(
        self,
        pid: int,
        folder: int,
        sockets: set[int],
        pipes: set[tuple[int, int]],
        nameless: dict[tuple[int, int], int],
        open_: _OpenObjects,
    ) -> None:
        """Classify the open descriptors of a process."""
        for name in os.listdir(folder):
            try:
                about = os.stat(name, dir_fd=folder)
                kind = stat.S_IFMT(about.st_mode)
                if kind == stat.S_IFSOCK:
                    if not self._shared and about.st_ino not in sockets:
                        open_.in_flight += _parse_number_after(
                            _read(self._proc, f"{pid}/fdinfo/{name}"), b"scm_fds:"
                        )
                    sockets.add(about.st_ino)
                elif kind == stat.S_IFIFO:
                    pipes.add((about.st_dev, about.st_ino))
                elif kind == stat.S_IFREG and about.st_dev == self._proc_device:
                    open_.proc_files += 1
                elif kind == stat.S_IFREG and about.st_nlink == 0 and about.st_dev != self._home_device:
                    nameless[about.st_dev, about.st_ino] = about.st_blocks * 512
                elif kind == 0 and os.readlink(name, dir_fd=folder) == "anon_inode:[eventpoll]":
                    open_.items += _read(self._proc, f"{pid}/fdinfo/{name}").count(b"tfd:")
            except OSError:
                continue  # it was closed

    def _sockets_in_flight(self, sockets: set[int]) -> int:
        """Count unix sockets with unread data that no process has open: they are in flight through other
        sockets, and their contents are not visible. A socket counts from the second measurement on, because
        it may have been created after the descriptors were listed."""
        request = _UNIX_REQUEST.pack(socket.AF_UNIX, 0, 0, _ALL_STATES, 0, _UNIX_SHOW_QUEUE)
        waiting = set()
        for message in self._query_sockets(request):
            _, _, _, inode = _UNIX_MESSAGE.unpack_from(message)
            unread = dict(_attributes(message, _UNIX_MESSAGE.size)).get(_UNIX_RQLEN, bytes(4))
            if inode and struct.unpack_from("=I", unread)[0]:
                waiting.add(inode)
        hidden = (waiting & self._known) - sockets
        self._known = waiting
        return len(hidden)

    def _min_in_flight(self, count: int) -> int:
        """Return how many descriptors have been in flight for a while: the minimum of the recent
        measurements. In the worst case they are deleted files."""
        now = time.monotonic()
        self._flights.append((now, count))
        while len(self._flights) > 1 and self._flights[1][0] <= now - _FLIGHT_SECONDS:
            del self._flights[0]
        if self._flights[0][0] > now - _FLIGHT_SECONDS:
            return 0
        return min(item for _, item in self._flights)

    def _count_mappings(self, pids: Sequence[int]) -> None:
        """Count the mappings of the processes, and find deleted files among them."""
        self._mappings, self._mapped = 0, {}
        for pid in pids:
            text = _read(self._proc, f"{pid}/maps")
            self._mappings += text.count(b"\n")
            for line in text.splitlines() if b" (deleted)\n" in text else ():
                condition, _, _, _, inode, *path = line.split(maxsplit=5)
                if (
                    not path
                    or not path[0].endswith(b" (deleted)")
                    or not any(o in path[0] for o in self._writable_folders)
                ):
                    continue
                try:
                    about = os.stat(f"{pid}/map_files/{condition.decode()}", dir_fd=self._proc)
                except PermissionError:  # an ordinary user may not look: as large as a file can be
                    self._mapped[-1, int(inode)] = self._file_bytes
                except OSError:
                    continue  # it was unmapped in the meantime
                else:
                    if about.st_dev != self._home_device:
                        self._mapped[about.st_dev, about.st_ino] = about.st_blocks * 512

    def _count_locks(self, pids: Sequence[int]) -> int:
        """How many file locks the processes hold; counting ends beyond _MOST_LOCKS."""
        count = 0
        for pid in pids:
            try:
                folder = os.open(
                    f"{pid}/fdinfo", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._proc
                )
            except OSError:
                continue
            try:
                for name in os.listdir(folder):
                    count += _read(folder, name).count(b"lock:")
                    if count > _MAX_LOCKS:
                        return count
            except OSError:
                continue  # it has ended
            finally:
                os.close(folder)
        return count

    # --- Sockets ------------------------------------------------------------------------------------------------

    def _network_memory(self, leader: int) -> int:
        """Bytes of all sockets of the box's own network, also of those that no descriptor leads to any more."""
        used = _parse_number_after(_read(self._proc, f"{leader}/net/sockstat"), b"sockets: used")
        few = used <= _FEW_SOCKETS
        memory, seen = (0, 0) if few else self._unix_socket_memory(None)
        # One TCP socket can hold as much as tcp_rmem and tcp_wmem allow, usually 10 MB.
        for family, file, protocol in (
            (socket.AF_INET, "sockstat", b"TCP"),
            (socket.AF_INET6, "sockstat6", b"TCP6"),
        ):
            if _parse_number_after(_read(self._proc, f"{leader}/net/{file}"), protocol + b": inuse"):
                request = _INET_REQUEST.pack(
                    family, socket.IPPROTO_TCP, 1 << (_INET_SKMEMINFO - 1), _ALL_STATES, bytes(48)
                )
                sizes = [
                    _socket_memory(dict(_attributes(message, _INET_MESSAGE)).get(_INET_SKMEMINFO, b""))
                    for message in self._query_sockets(request)
                ]
                memory, seen = memory + sum(sizes), seen + len(sizes)
        # Datagrams, netlink, and closed sockets whose data another has not read yet.
        return memory if few else memory + max(0, used - seen) * 2 * self._buffer

    def _unix_socket_memory(self, inodes: set[int] | None) -> tuple[int, int]:
        """Bytes and number of the unix sockets with these inodes; None for all of the network."""
        memory = count = 0
        request = _UNIX_REQUEST.pack(socket.AF_UNIX, 0, 0, _ALL_STATES, 0, _UNIX_SHOW)
        for message in self._query_sockets(request):
            _, _, state, inode = _UNIX_MESSAGE.unpack_from(message)
            if inodes is not None and inode not in inodes:
                continue
            count += 1
            found = dict(_attributes(message, _UNIX_MESSAGE.size))
            waiting = struct.unpack_from("=I", found.get(_UNIX_RQLEN, bytes(4)))[0]
            memory += _socket_memory(found.get(_UNIX_MEMINFO, b""))
            # Data sent by a socket is counted with it. For a closed one, its receiver shows that there is data.
            if state == _LISTEN:
                memory += waiting * 2 * self._buffer
            elif waiting and not any(found.get(_UNIX_PEER, b"")):
                memory += 2 * self._buffer
        return memory, count

    def _query_sockets(self, request: bytes) -> Iterator[bytes]:
        return _query(self._diagnostics, request, _REQUEST | _DUMP)


class OutsideSockets:
    """TCP connections of a program in the host's network."""

    def __init__(self) -> None:
        self._diagnostics = open_diagnostics()
        self._requests: dict[bytes, bytes] = {}
        self._last_bytes = 0
        self._next = 0.0

    def add(self, sock: socket.socket, raw: bytes, cookie: int) -> None:
        """Remember a socket that is connected, or about to be, to the address `raw` (a struct sockaddr)."""
        own = sock.getsockname()
        start, size = (4, 4) if sock.family == socket.AF_INET else (8, 16)
        ends = (socket.inet_pton(sock.family, own[0].partition("%")[0]), raw[start : start + size])
        name = struct.pack("!H", own[1]) + raw[2:4] + b"".join(end.ljust(16, b"\0") for end in ends)
        name += struct.pack("=IQ", 0, cookie)
        self._requests[name] = _INET_REQUEST.pack(
            sock.family, socket.IPPROTO_TCP, 1 << (_INET_SKMEMINFO - 1), _ALL_STATES, name
        )

    def measure(self) -> int:
        """Return the bytes used by sockets that are not closed."""
        now = time.monotonic()
        if now < self._next or not self._requests:
            return self._last_bytes
        self._last_bytes = 0
        for name, request in list(self._requests.items()):
            found = next(_query(self._diagnostics, request, _REQUEST), None)
            memory = (
                b"" if found is None else dict(_attributes(found, _INET_MESSAGE)).get(_INET_SKMEMINFO, b"")
            )
            if memory:
                self._last_bytes += _socket_memory(memory)
            else:
                del self._requests[name]
        self._next = now + (time.monotonic() - now) * _TIME_SHARE
        return self._last_bytes

    def close(self) -> None:
        """Close the socket."""
        if self._diagnostics is not None:
            self._diagnostics.close()


def open_diagnostics() -> socket.socket | None:
    """A socket of NETLINK_SOCK_DIAG in this process's network; None where netlink is not allowed."""
    try:
        return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG)
    except OSError:
        return None


def _query(diagnostics: socket.socket | None, request: bytes, flags: int) -> Iterator[bytes]:
    """The messages that answer a request (sock_diag(7)); none if the kernel does not answer."""
    if diagnostics is None:
        return
    try:
        diagnostics.settimeout(_ANSWER_SECONDS)
        diagnostics.send(_HEAD.pack(_HEAD.size + len(request), _BY_FAMILY, flags, 0, 0) + request)
        while True:
            part = diagnostics.recv(65_536)
            place = 0
            while place + _HEAD.size <= len(part):
                length, kind, _, _, _ = _HEAD.unpack_from(part, place)
                if kind in (_DONE, _ERROR) or length < _HEAD.size:
                    return
                yield part[place + _HEAD.size : place + length]
                place += (length + 3) & ~3
            if not flags & _DUMP:
                return
    except OSError:
        return


def _attributes(message: bytes, place: int) -> Iterator[tuple[int, bytes]]:
    while place + _ATTRIBUTE.size <= len(message):
        length, kind = _ATTRIBUTE.unpack_from(message, place)
        if length < _ATTRIBUTE.size:
            return
        yield kind, message[place + _ATTRIBUTE.size : place + length]
        place += (length + 3) & ~3


def _socket_memory(numbers: bytes) -> int:
    """Bytes of a socket, by its SK_MEMINFO."""
    each: tuple[int, ...] = struct.unpack(f"={len(numbers) // 4}I", numbers)
    if len(each) <= _BACKLOG:
        return _SOCKET
    sending = max(each[_SENT], each[_QUEUED])
    return _SOCKET + each[_RECEIVED] + sending + each[_FORWARD] + each[_OPTIONS] + each[_BACKLOG]


def _parse_number_after(text: bytes, label: bytes) -> int:
    """The number after a word of /proc/net/sockstat."""
    found = re.search(re.escape(label) + rb" (\d+)", text)
    return int(found[1]) if found else 0


def _read_sysctl(name: str) -> int:
    """Return a number of /proc/sys, or 0 if it does not exist."""
    try:
        return int(Path("/proc/sys", name).read_text())
    except (OSError, ValueError):
        return 0


def _read(proc: int, name: str, limit: int = 64 * 1024 * 1024) -> bytes:
    """Read a file below a /proc folder, up to `limit` bytes. Empty if it does not exist."""
    try:
        file = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)
    except OSError:
        return b""
    try:
        parts = []
        while limit > 0 and (part := os.read(file, 262_144)):
            parts.append(part)
            limit -= len(part)
        return b"".join(parts)
    except OSError:
        return b""  # the process ended in the meantime
    finally:
        os.close(file)


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
    is_zombie: bool
    """It has ended, and its parent has not waited for it."""
    is_running: bool
    """It is running or ready to run."""


@dataclass
class ProcessTree:
    """The processes of a sandbox. `proc`: a descriptor of the /proc that shows them: the sandbox's own, whose
    first process is bubblewrap, or the host's, for a process group whose `leader` only supervises."""

    proc: int
    kernel: KernelMemory
    leader: int = 1
    is_host_network: bool = False
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
        return [
            item
            for item in found
            if item is not None
            and item.pid != self.leader
            and (not self.is_host_network or item.group == self.leader)
        ]

    @property
    def deleted_file_bytes(self) -> int:
        """Disk space of files that were deleted and are still in use."""
        return self.kernel.deleted_file_bytes

    def usage(self, most: int, outside: int = 0) -> Usage:
        """Return the resource usage, with kernel memory and `outside`, the bytes of connections in the host's
        network. Above `most` bytes, shared pages are measured so that each counts once."""
        living = self.processes()
        memory = sum(item.memory for item in living)
        kernel = outside + self.kernel.measure(
            [item.pid for item in living if not item.is_zombie], self.leader
        )
        if memory + kernel > most:
            # Twice, because while processes end, pages that they shared are attributed to the remaining ones.
            memory = min(sum(proportional_memory(self.proc, item) for item in living) for _ in range(2))
        memory += kernel
        self.max_memory = max(self.max_memory, memory)
        threads = sum(item.threads for item in living if not item.is_zombie)
        return Usage(memory, self.max_memory, self._cpu_ticks(living) * _TICK_MS, threads)

    def _cpu_ticks(self, living: list[Process]) -> int:
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
            if key not in self._last and item.is_running:
                cpu_ticks = max(cpu_ticks, since * _cpu_share(self.proc, item.pid))
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
        is_zombie=part[_STATE] in b"ZX",
        is_running=part[_STATE] == b"R",
    )


def _cpu_share(proc: int, pid: int) -> float:
    """Return the share of its runnable time in which a process had a CPU."""
    text = read_file(proc, f"{pid}/schedstat")
    if text is None or len(text.split()) < 2:
        return 0.0
    running, waiting = (int(part) for part in text.split()[:2])
    return running / (running + waiting) if running else 0.0


def proportional_memory(proc: int, process: Process) -> int:
    """Return its memory with its share of shared pages, or its resident set if the kernel does not report
    shares; 0 if it has ended."""
    text = read_file(proc, f"{process.pid}/smaps_rollup")
    for line in (text or b"").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    now = read_process(proc, process.pid)
    return 0 if now is None or now.is_zombie else now.memory


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
