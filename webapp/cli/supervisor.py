"""Keeps the parts of `./rowsmith up` running: starts them in order, restarts what dies, stops them in reverse.

Each part is a process forked from this one. What this process has imported, every part shares without importing it
again, so a part starts within milliseconds and takes memory only for what it changes. This process therefore has a
single thread and no connections to the database.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.context import ForkProcess
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from webapp import limits
from webapp.cli.datadir import CliError

# Log files of the parts: kept from growing without end, and read back when a part dies.


def rotate_log(path: Path) -> None:
    """Keep a log under LOG_FILE_BYTES: past it, its content moves to `<name>.1` and the file starts empty.

    The writer keeps its file open in append mode, so the file is emptied in place; a line written in the very moment
    between copy and emptying is lost.
    """
    with suppress(FileNotFoundError):
        if path.stat().st_size > limits.LOG_FILE_BYTES:
            rotated = path.with_name(f"{path.name}.1")
            shutil.copyfile(path, rotated)
            os.chmod(rotated, 0o600)
            os.truncate(path, 0)


def tail(path: Path, offset: int, lines: int) -> list[str]:
    """Return the last lines that were written after byte `offset`."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(offset if offset <= size else 0, size - 64 * 1024))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip()][-lines:]


_FORK: Final = multiprocessing.get_context("fork")
_PR_SET_PDEATHSIG: Final = 1  # prctl(2)
_PR_SET_NAME: Final = 15
_SUPERVISOR_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)
"""Signals that the supervisor handles and its child processes do not."""


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """One process to keep running.

    `main` is called in the process, whose environment is `env`; `exec_program` is one that becomes another program.
    `is_ready` is polled until it returns true, at most `PART_READY_SECONDS`. A part with `is_needed` is not started
    with the others, but as soon as that returns true; it is called every `PART_NEEDED_SECONDS`.
    """

    name: str
    main: Callable[[], object]
    env: Mapping[str, str]
    is_ready: Callable[[], bool]
    is_needed: Callable[[], bool] | None = None


def exec_program(command: Sequence[str]) -> NoReturn:
    """Replace the process of a part with a program, with the signals as a shell leaves them."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.execvp(command[0], list(command))


@dataclass(slots=True)
class _RunningProcess:
    """A part, its process, and its restarts."""

    part: ProcessSpec
    log: Path
    process: ForkProcess | None = None
    since: float = 0.0
    offset: int = 0  # where in the log this process began
    quick_deaths: int = 0
    restart_at: float | None = None


class StopRequested(Exception):
    """Ctrl-C or SIGTERM came while something was waited for."""


@dataclass
class Supervisor:
    """Runs processes. `tell(line)` prints a line for the user; `clock` returns monotonic seconds."""

    logs: Path
    cwd: Path
    print_line: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    _parts: list[_RunningProcess] = field(default_factory=list)
    _waiting: list[ProcessSpec] = field(default_factory=list)  # parts that are not needed yet
    _stop_signals: int = 0  # number of stop signals

    @contextmanager
    def signals(self) -> Iterator[None]:
        """Listen to SIGINT, SIGTERM and SIGHUP, and wake up when a part dies."""
        self._wake_in, self._wake_out = os.pipe()
        os.set_blocking(self._wake_in, False)
        os.set_blocking(self._wake_out, False)
        old_wake = signal.set_wakeup_fd(self._wake_out, warn_on_full_buffer=False)
        names = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        old_handlers = {number: signal.signal(number, self._on_stop_signal) for number in names}
        old_handlers[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        try:
            yield
        finally:
            signal.set_wakeup_fd(old_wake)
            for number, handler in old_handlers.items():
                signal.signal(number, handler)
            os.close(self._wake_in)
            os.close(self._wake_out)

    def _on_stop_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._stop_signals += 1

    def _pause(self, seconds: float) -> None:
        """Wait for a time, or until a signal arrives."""
        readable, _, _ = select.select([self._wake_in], [], [], max(seconds, 0))
        if readable:
            with suppress(BlockingIOError):
                os.read(self._wake_in, 4096)

    def raise_if_stopping(self) -> None:
        """Raise `StopRequested` after a stop signal."""
        if self._stop_signals:
            raise StopRequested

    def start(self, *parts: ProcessSpec) -> None:
        """Start parts that need nothing of each other and wait until all are ready, apart from those that are started
        when they are needed.

        CliError with the end of its log if one does not become so.
        """
        self._waiting += [part for part in parts if part.is_needed]
        started = [self._launch(part) for part in parts if not part.is_needed]
        for running in started:
            part, process = running.part, running.process
            assert process
            while not part.is_ready():
                self.raise_if_stopping()
                if process.exitcode is not None:
                    self._parts.remove(running)
                    raise CliError(
                        f"{part.name} did not start ({_exit_reason(process.exitcode)}):\n{self._log_tail(running)}"
                    )
                if self.clock() - running.since > limits.PART_READY_SECONDS:
                    raise CliError(
                        f"{part.name} was not ready after {limits.PART_READY_SECONDS:.0f} s:\n{self._log_tail(running)}"
                    )
                self._pause(limits.PROBE_PAUSE_SECONDS)
            self.print_line(f"  {part.name:<12} ready in {self.clock() - running.since:.1f} s")

    def _launch(self, part: ProcessSpec) -> _RunningProcess:
        running = _RunningProcess(part, self.logs / f"{part.name}.log")
        self._parts.append(running)
        self._spawn(running)
        return running

    def run_once(self, name: str, main: Callable[[], object], env: Mapping[str, str]) -> str:
        """Call `main` in a separate process. Returns what it printed; raises CliError with the end of its log if it
        fails."""
        running = _RunningProcess(ProcessSpec(name, main, env, lambda: True), self.logs / f"{name}.log")
        self._parts.append(running)
        readable, writable = os.pipe()
        try:
            self._spawn(running, stdout=writable)
            os.close(writable)
            process = running.process
            assert process
            output = bytearray()
            while chunk := self._read(readable):
                output += chunk
        finally:
            os.close(readable)
        while process.exitcode is None:
            self.raise_if_stopping()
            self._pause(limits.PROBE_PAUSE_SECONDS)
        self._parts.remove(running)
        if process.exitcode != 0:
            raise CliError(f"{name} failed ({_exit_reason(process.exitcode)}):\n{self._log_tail(running)}")
        return output.decode()

    def _read(self, descriptor: int) -> bytes:
        """Return the next bytes of a pipe; empty at its end. Raises `StopRequested` if a stop signal comes first."""
        while True:
            self.raise_if_stopping()
            readable, _, _ = select.select([descriptor, self._wake_in], [], [])
            if descriptor in readable:
                return os.read(descriptor, 65536)
            self._pause(0)

    def run(self) -> None:
        """Watch the processes until a stop signal. CliError if one exits repeatedly."""
        next_check = next_needed_check = self.clock()
        while not self._stop_signals:
            if self.clock() >= next_check:
                for running in self._parts:
                    rotate_log(running.log)
                next_check = self.clock() + limits.LOG_CHECK_SECONDS
            due = next_check
            if self._waiting:
                if self.clock() >= next_needed_check:
                    self._start_needed()
                    next_needed_check = self.clock() + limits.PART_NEEDED_SECONDS
                due = min(due, next_needed_check)
            for running in self._parts:
                self._check_process(running)
                due = min(due, running.restart_at or due)
            self._pause(due - self.clock())

    def _start_needed(self) -> None:
        """Start the first waiting part of each kind that is needed now."""
        checked: set[Callable[[], bool]] = set()
        for part in list(self._waiting):
            assert part.is_needed
            if part.is_needed in checked:
                continue
            checked.add(part.is_needed)
            if part.is_needed():
                self._waiting.remove(part)
                self._launch(part)
                self.print_line(f"{part.name} started: the others are busy")

    def _check_process(self, running: _RunningProcess) -> None:
        """Notice a death; start again when its time has come."""
        if running.restart_at is not None:
            if self.clock() >= running.restart_at:
                running.restart_at = None
                self._spawn(running)
                assert running.process is not None
                self.print_line(f"{running.part.name} restarted, pid {running.process.pid}")
            return
        process = running.process
        if process is None or process.exitcode is None:
            return
        _kill_group(process.pid)  # its remaining files would disturb the next one
        lived = self.clock() - running.since
        running.quick_deaths = running.quick_deaths + 1 if lived < limits.START_FAILURE_SECONDS else 0
        reason = _exit_reason(process.exitcode)
        if running.quick_deaths > len(limits.RESTART_PAUSES):
            raise CliError(
                f"{running.part.name} died {running.quick_deaths} times in a row right after its start ({reason}), "
                f"so everything is stopped:\n{self._log_tail(running)}"
            )
        pause = limits.RESTART_PAUSES[max(running.quick_deaths - 1, 0)]
        self.print_line(f"{running.part.name} died ({reason}); restarting it")
        if process.exitcode > 0:
            self.print_line(self._log_tail(running))
        running.restart_at = self.clock() + pause

    def stop(self) -> None:
        """Stop all processes in reverse order: SIGTERM, STOP_SECONDS to finish, SIGKILL. A second Ctrl-C skips the
        wait."""
        if self._parts:
            self.print_line("\nstopping")
        patience = self._stop_signals + 1
        for running in reversed(self._parts):
            process = running.process
            if process is None:
                continue
            process.terminate()
            deadline = self.clock() + limits.STOP_SECONDS
            while process.exitcode is None and self.clock() < deadline and self._stop_signals < patience:
                self._pause(min(deadline - self.clock(), 0.5))
            _kill_group(process.pid)
            process.join()
            self.print_line(f"  {running.part.name:<12} stopped")
        self._parts.clear()

    def _spawn(self, running: _RunningProcess, stdout: int | None = None) -> None:
        """Start the process of a part, whose output goes to its log, or to the descriptor `stdout`."""
        with open(os.open(running.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as log:
            running.offset = log.tell()
            outputs = (log.fileno() if stdout is None else stdout, log.fileno())
            running.process = _FORK.Process(
                target=_run_part, args=(running.part, outputs, self.cwd, os.getpid()), name=running.part.name
            )
            # Until the child process has its own handlers, a signal would call the supervisor's and be lost.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, _SUPERVISOR_SIGNALS)
            try:
                running.process.start()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        running.since = self.clock()

    def _log_tail(self, running: _RunningProcess) -> str:
        lines = tail(running.log, running.offset, limits.PART_LOG_LINES)
        return "\n".join([*(f"    {line}" for line in lines), f"    (full log: {running.log})"])


def _run_part(part: ProcessSpec, outputs: tuple[int, int], cwd: Path, supervisor: int) -> None:
    """Run the process of a part, from its fork to its end, in a separate session, so that Ctrl-C reaches only the
    supervisor, with whom the process ends (on Linux; elsewhere only when the supervisor stops in order)."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in (*_SUPERVISOR_SIGNALS, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SUPERVISOR_SIGNALS)
    if sys.platform.startswith("linux"):
        library = ctypes.CDLL(None)
        library.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        library.prctl(_PR_SET_NAME, part.name.encode(), 0, 0, 0)
    if os.getppid() != supervisor:
        sys.exit(1)  # the supervisor ended before the call
    os.dup2(outputs[0], 1)
    os.dup2(outputs[1], 2)
    _release_descriptors()
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(part.env)
    part.main()


def _release_descriptors() -> None:
    """Turn the descriptors that belong to the supervisor (its lock, its connections) into /dev/null.

    They are not closed, because objects of the supervisor that still have their numbers would close later files.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for name in os.listdir("/dev/fd"):
        if int(name) > 2 and int(name) != nothing:
            with suppress(OSError):  # the descriptor that listed the folder
                os.fstat(int(name))
                os.dup2(nothing, int(name), inheritable=False)
    os.close(nothing)


def _kill_group(leader: int | None) -> None:
    """Kill what is left of a part's process group."""
    assert leader is not None
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _exit_reason(status: int) -> str:
    """Return an exit status as text."""
    if status >= 0:
        return f"exit status {status}"
    with suppress(ValueError):
        return f"killed by {signal.Signals(-status).name}"
    return f"killed by signal {-status}"
