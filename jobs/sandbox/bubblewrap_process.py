"""Start a program in bubblewrap, and stop it."""

from __future__ import annotations

import array
import json
import os
import platform
import select
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jobs.sandbox import seccomp
from jobs.sandbox import spec as sandbox_spec
from jobs.sandbox.process_tree import KernelMemory, ProcessTree
from jobs.sandbox.spec import Mode, SandboxSpec, SandboxUnavailable

SANDBOX_HOME: Final = "/home/scenario"
# Folders of the system that programs see. /etc contains only what libraries need.
SYSTEM_FOLDERS: Final = (
    *(f"/usr/{name}" for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "libexec", "share")),
    *(f"/usr/local/{name}" for name in ("bin", "lib", "lib64", "share")),
)
LINKED_FOLDERS: Final = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
ETC_FILES: Final = (
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ssl/certs", "ssl/openssl.cnf", "ca-certificates", "pki/tls/certs",
    "pki/ca-trust/extracted", "alternatives", "localtime", "timezone", "mime.types", "protocols", "services",
    "gai.conf", "os-release", "locale.alias", "fonts", "magic",
)  # fmt: skip
_DEVICES: Final = ("null", "full", "random", "urandom")
# Capabilities that the launcher needs before it drops all of them.
_CAPABILITIES: Final = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE")
SANDBOX_USER_ID: Final = 1000  # the user id inside, if the service runs as an ordinary user


def python_executable() -> tuple[str, str]:
    """Return the executable and the folder of the Python that runs this process, outside of any virtual
    environment."""
    found = Path(os.path.realpath(sys.executable))
    return str(found), str(Path(sys.base_prefix).resolve())


def bubblewrap_arguments(spec: SandboxSpec, mode: Mode, files: dict[str, int], info: int) -> list[str]:
    """Return the options of bubblewrap. `files`: descriptors with the contents of files by path; `info`: the
    descriptor that receives the pid of the namespace's first process."""
    out = ["--die-with-parent", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts",
           "--unshare-cgroup-try", "--hostname", "scenario", "--info-fd", str(info), "--clearenv"]  # fmt: skip
    if not mode.separate_user:
        out += ["--unshare-user", "--uid", str(SANDBOX_USER_ID), "--gid", str(SANDBOX_USER_ID)]
    for power in _CAPABILITIES:
        out += ["--cap-add", power]
    binds = [
        (folder, "--ro-bind")
        for folder in (*spec.read_only, spec.environment, spec.uploads, Path(python_executable()[1]))
    ]
    binds = [(folder, how) for folder, how in binds if folder.exists()]
    binds.append((spec.outputs, "--bind"))
    out += _system_binds()
    # One file system in memory for home, /tmp and /dev/shm, so that one limit covers all three.
    out += ["--size", str(spec.caps.tmp_bytes), "--tmpfs", "/home"]
    for path in ("/home/tmp", "/home/shm"):
        out += ["--perms", "1777", "--dir", path]
    links = ("--symlink", "home/tmp", "/tmp", "--symlink", "/home/shm", "/dev/shm")  # noqa: S108 - of the box
    out += ["--perms", "0777", "--dir", SANDBOX_HOME, *links]
    for parent in _parents([folder for folder, _ in binds]):
        out += ["--dir", parent]
    for folder, how in binds:
        out += [how, str(folder.resolve()), str(folder)]
    for entry in sorted(spec.code.iterdir()):
        out += ["--ro-bind", str(entry), f"{SANDBOX_HOME}/{entry.name}"]
    for path, descriptor in files.items():
        out += ["--perms", "0644", "--ro-bind-data", str(descriptor), path]
    return [*out, "--remount-ro", "/", "--chdir", SANDBOX_HOME]


def _parents(folders: list[Path]) -> list[str]:
    """Return the parents of folders, from the top down: bubblewrap would create them for root only. Parents
    inside of a mount or of the system already exist."""
    found = {str(parent) for folder in folders for parent in folder.parents if len(parent.parts) > 1}
    bound = (*(str(item) for item in folders), *SYSTEM_FOLDERS)
    nested = {item for item in found if any(f"{item}/".startswith(f"{other}/") for other in bound)}
    return sorted(found - nested - {"/home", "/tmp"})  # noqa: S108 - those of the box


def _system_binds() -> list[str]:
    out = []
    for folder in (
        "/usr",
        "/usr/local",
        "/etc",
        "/etc/ssl",
        "/etc/pki",
        "/etc/pki/tls",
        "/etc/pki/ca-trust",
        "/dev",
    ):
        out += ["--dir", folder]
    for folder in SYSTEM_FOLDERS:
        out += ["--ro-bind-try", folder, folder]
    for name in LINKED_FOLDERS:
        path = Path("/", name)
        if path.is_symlink():
            out += ["--symlink", f"usr/{name}", str(path)]
        elif path.exists():
            out += ["--ro-bind", str(path), str(path)]
    for name in ETC_FILES:
        out += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    for name in _DEVICES:
        out += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    # A mapping of /dev/zero is memory that no limit covers. Reading /dev/full also returns zeros.
    out += ["--symlink", "full", "/dev/zero"]
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        out += ["--symlink", f"/proc/self/fd{target}", f"/dev/{name}"]
    # Hides the kernel's command line.
    return [*out, "--proc", "/proc", "--dev-bind", "/dev/null", "/proc/cmdline"]


_START_SECONDS: Final = 20.0  # until the program begins; 0.03 on an idle machine
_SLACK: Final = 16  # extra processes that the kernel allows, so that the supervisor reports the reason
_MIN_FILES: Final = 10_000  # each takes about a kilobyte of the kernel's memory in addition to its content
# Sockets belong to an empty network, so only connections that we open reach anything.
_FAMILIES: Final = (seccomp.AF_UNIX, seccomp.AF_INET, seccomp.AF_INET6, seccomp.AF_NETLINK)
_NOTIFIED_CALLS: Final = ("connect", "bind", "listen")
_RIGHTS: Final = 16  # descriptors of one message


@dataclass
class BubblewrapProcess:
    """A program that runs in bubblewrap."""

    process: subprocess.Popen[bytes]
    tree: ProcessTree
    home_descriptor: int
    """A descriptor of the file system that /tmp and home are on."""
    sockets: list[socket.socket]
    """Sockets of the sandbox's network, in the order of the request."""
    listener: int | None
    """The seccomp listener: the kernel notifies us before the program connects."""
    first_pid: int
    """pidfd of the namespace's first process. Everything in the namespace ends with it."""

    def kill(self) -> None:
        """Send SIGKILL to all processes. Returns when all have ended."""
        try:
            signal.pidfd_send_signal(self.first_pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        poll = select.poll()
        poll.register(self.first_pid, select.POLLIN)
        poll.poll()  # a namespace's first process ends after all the others (pid_namespaces(7))
        self.process.wait()

    def is_full(self, tmp_bytes: int) -> bool:
        """Whether home and /tmp contain too many files. The kernel enforces the size in bytes."""
        found = os.fstatvfs(self.home_descriptor)
        return found.f_files - found.f_ffree > max(_MIN_FILES, tmp_bytes // 4096)

    def close(self) -> None:
        """Close all descriptors."""
        self.tree.kernel.close()
        for descriptor in (self.tree.proc, self.home_descriptor, self.first_pid, self.listener):
            if descriptor is not None:
                os.close(descriptor)
        for served in self.sockets:
            served.close()


def launch(
    spec: SandboxSpec,
    mode: Mode,
    output: int,
    serve: list[tuple[str, str, int]],
    files: dict[str, bytes],
    env: dict[str, str],
    user: int | None,
) -> BubblewrapProcess:
    """Start a program as `user`. It ends with the thread that calls this. Raises SandboxUnavailable if
    bubblewrap fails."""
    ours, theirs = socket.socketpair()
    info_ours, info_theirs = os.pipe()
    file_descriptors = {path: sandbox_spec.memory_file(content, "etc") for path, content in files.items()}
    # In a file, because the program can read the command line of its first process.
    options = bubblewrap_arguments(spec, mode, file_descriptors, info_theirs)
    arguments_file = sandbox_spec.memory_file(
        "".join(f"{option}\0" for option in options).encode(), "arguments"
    )
    command = [
        "bwrap", "--args", str(arguments_file), "--",
        python_executable()[0], "-I", "-S", "-c", sandbox_spec.launcher_command(), str(theirs.fileno()),
    ]  # fmt: skip
    errors = os.memfd_create("errors", os.MFD_CLOEXEC)
    try:
        process = subprocess.Popen(
            command,
            executable=mode.bwrap,
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            pass_fds=[theirs.fileno(), info_theirs, output, arguments_file, *file_descriptors.values()],
            start_new_session=True,
            env={},
            cwd="/",
        )
    finally:
        theirs.close()
        for item in (info_theirs, arguments_file, *file_descriptors.values()):
            os.close(item)
    try:
        return _connect_launcher(spec, mode, output, serve, env, user, process, ours, info_ours)
    except (OSError, EOFError, ValueError) as error:
        process.kill()
        process.wait()
        message = os.pread(errors, 2000, 0).decode(errors="replace").strip()
        raise SandboxUnavailable(message or f"{type(error).__name__}: {error}") from error
    finally:
        ours.close()
        os.close(info_ours)
        os.close(errors)


def _connect_launcher(
    spec: SandboxSpec,
    mode: Mode,
    output: int,
    serve: list[tuple[str, str, int]],
    env: dict[str, str],
    user: int | None,
    process: subprocess.Popen[bytes],
    control: socket.socket,
    info: int,
) -> BubblewrapProcess:
    """Exchange the launch plan and descriptors with the launcher (`launcher.py`)."""
    first = os.pidfd_open(_first_pid(info))
    listen = mode.notify and spec.network != "none"
    content = sandbox_spec.plan(
        spec,
        env=sandbox_spec.variables(spec, SANDBOX_HOME, "/tmp", **env),  # noqa: S108
        folder=SANDBOX_HOME,
        folders=("/proc", "/home"),
        output=output,
        user=user,
        limits=sandbox_spec.limits(spec, spec.caps.processes + _SLACK + other_processes(mode)),
        filter=seccomp.build_filter(sockets=_FAMILIES, notified_calls=_NOTIFIED_CALLS if listen else ()),
        listen=listen,
        serve=[("diagnostics", "", 0), *serve],
    )
    (proc, home, *sockets), listener = exchange_plan(control, content)
    diagnostics, *served = [socket.socket(fileno=item) for item in sockets]
    kernel = KernelMemory(
        proc,
        diagnostics,
        shared=False,
        files=sandbox_spec.FILES,
        spec=spec,
        home=SANDBOX_HOME,
        own_home=os.fstat(home).st_dev,
    )
    return BubblewrapProcess(process, ProcessTree(proc, kernel), home, served, listener, first)


def exchange_plan(control: socket.socket, content: bytes) -> tuple[list[int], int | None]:
    """Send the plan to the launcher. Return the descriptors that it opened, and its seccomp listener."""
    control.settimeout(_START_SECONDS)
    control.sendall(len(content).to_bytes(8, "little") + content)
    descriptors = _receive_descriptors(control, b"s")
    control.sendall(b"g")
    listener = _receive_descriptors(control, b"l")
    return descriptors, listener[0] if listener else None


def other_processes(mode: Mode) -> int:
    """Count processes of other programs that count toward the kernel's limit: before Linux 5.14, all
    processes of the user, in every namespace."""
    major, minor = (
        int("".join(filter(str.isdigit, part)) or 0) for part in platform.release().split(".")[:2]
    )
    if mode.separate_user or (mode.name == "bubblewrap" and (major, minor) >= (5, 14)):
        return 0
    own_user, count = os.getuid(), 0
    for entry in os.scandir("/proc"):
        try:
            if entry.name.isdigit() and entry.stat().st_uid == own_user:
                count += len(os.listdir(f"/proc/{entry.name}/task"))
        except OSError:
            continue
    return count


def _first_pid(info: int) -> int:
    ready, _, _ = select.select([info], [], [], _START_SECONDS)
    message = os.read(info, 4096) if ready else b""
    while message and b"}" not in message:
        more = os.read(info, 4096)
        if not more:
            break
        message += more
    if b"}" not in message:
        raise EOFError("bubblewrap did not create a namespace")
    return int(json.loads(message)["child-pid"])


def _receive_descriptors(control: socket.socket, expected: bytes) -> list[int]:
    """Receive the descriptors of the next message, which must be `expected`."""
    message, ancillary, _, _ = control.recvmsg(1, socket.CMSG_SPACE(_RIGHTS * 4))
    out = array.array("i")
    for level, kind, content in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            out.frombytes(content[: len(content) - len(content) % out.itemsize])
    for item in out:
        os.set_inheritable(item, False)
    if message != expected:
        for item in out:
            os.close(item)
        raise EOFError("the launcher has ended")
    return list(out)
