"""The specification of a sandboxed program: what to run, with which files, network and limits; and the launcher's plan.

The plan has the user, limits, seccomp filter, command and environment variables.
"""

from __future__ import annotations

import functools
import marshal
import os
import resource
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from jobs.sandbox import seccomp

Network = Literal["full", "api", "none"]
Setting = Literal["auto", "bubblewrap", "landlock", "plain"]
Name = Literal["bubblewrap", "landlock", "plain"]

MB: Final = 1024 * 1024


class SandboxUnavailable(Exception):
    """This machine cannot isolate programs as the setting requires."""


@dataclass(frozen=True)
class Caps:
    """Limits of one program and all processes that it starts."""

    wall_seconds: float
    cpu_seconds: float
    """CPU time of all its processes together."""
    memory_bytes: int
    """Memory of all its processes together. Shared memory counts once."""
    processes: int
    """Simultaneous processes and threads."""
    file_bytes: int
    """Of a single file."""
    tmp_bytes: int
    """Of its home folder and /tmp together. Writes beyond it fail."""
    outputs_bytes: int
    """Of all its outputs together."""


@dataclass(frozen=True)
class SandboxSpec:
    """A program with its files, environment and limits. Folders have the same paths inside and outside."""

    command: tuple[str, ...]
    """As for a shell with the environment's `bin` in PATH: ("python3", "main.py")."""
    code: Path
    """A folder. Its entries are visible, read-only, in the working directory."""
    environment: Path
    """A virtual environment, read-only."""
    read_only: tuple[Path, ...]
    """Other visible folders: the environment's Python, libraries. Missing ones are skipped."""
    uploads: Path
    outputs: Path
    """The only folder of the host that the program may write to."""
    env: Mapping[str, str]
    network: Network
    api: tuple[str, int]
    """Host and port of Rowsmith's API. Always allowed in `full` and `api`."""
    caps: Caps
    resolvers: tuple[str, ...] = ()
    """Addresses of name servers. Default: those of the host's /etc/resolv.conf."""
    networks: tuple[str, ...] = field(default=())
    """Networks (CIDR) that the operator allows for programs in addition to the public internet."""
    hidden: tuple[tuple[str, int], ...] = ()
    """The service's own components: host, address or network (CIDR), and port. They are blocked in all
    networks."""
    api_source: str = ""
    """The IPv4 loopback source address for calls to the API, by which it identifies programs; "" for any."""


@dataclass(frozen=True)
class Mode:
    """How programs are isolated on this machine, and why."""

    name: Name
    why: str
    bwrap: str = ""
    """Path of bubblewrap, in that mode."""
    separate_user: bool = False
    """Each program gets a separate user id, because we are root."""
    notify: bool = False
    """The kernel notifies us before a program connects."""


@dataclass(frozen=True)
class Usage:
    """Resource usage so far. CPU time includes ended processes."""

    memory_bytes: int = 0
    max_memory_bytes: int = 0
    cpu_ms: int = 0
    processes: int = 0


# --- The launcher's plan ------------------------------------------------------------------------------------

_DATA_SLACK: Final = (
    2048 * MB
)  # allocators reserve memory that they never use; the supervisor measures what is used
FILES: Final = 256  # descriptors of one process; each can hold a buffer of the kernel
_LAST_CPU: Final = 5  # seconds between the signal that can be caught and the one that cannot


def memory_file(content: bytes, name: str) -> int:
    """Return a descriptor of an unnamed file with this content, at its start. It is not inherited unless
    requested."""
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
    remaining = memoryview(content)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def limits(spec: SandboxSpec, processes: int) -> list[tuple[int, int, int]]:
    """Return the limits that the kernel enforces per process: (which, soft, hard)."""
    caps = spec.caps
    cpu = max(1, int(caps.cpu_seconds) + 1)
    data = caps.memory_bytes + _DATA_SLACK
    return [
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_CPU, cpu, cpu + _LAST_CPU),
        (resource.RLIMIT_DATA, data, data),
        (resource.RLIMIT_FSIZE, caps.file_bytes, caps.file_bytes),
        (resource.RLIMIT_NOFILE, *_at_most(resource.RLIMIT_NOFILE, FILES)),
        (resource.RLIMIT_NPROC, *_at_most(resource.RLIMIT_NPROC, processes)),
        (resource.RLIMIT_MEMLOCK, *_at_most(resource.RLIMIT_MEMLOCK, MB)),
        (resource.RLIMIT_MSGQUEUE, 0, 0),
        (resource.RLIMIT_SIGPENDING, *_at_most(resource.RLIMIT_SIGPENDING, 1024)),
    ]


def _at_most(which: int, requested: int) -> tuple[int, int]:
    """Return soft and hard limit: the requested value, or this process's own limit if that is lower."""
    hard = resource.getrlimit(which)[1]
    fit = requested if hard == resource.RLIM_INFINITY else min(requested, hard)
    return fit, fit


def variables(spec: SandboxSpec, home: str, temporary: str, **more: str) -> dict[str, str]:
    """Return the program's environment variables: defaults, overridden by its own."""
    paths = (str(spec.environment / "bin"), "/usr/local/bin", "/usr/bin", "/bin")
    return {
        "PATH": ":".join(paths),
        "HOME": home,
        "TMPDIR": temporary,
        "LANG": "C.UTF-8",
        "VIRTUAL_ENV": str(spec.environment),
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        **more,
        **spec.env,
    }


def plan(spec: SandboxSpec, **more: Any) -> bytes:
    """Encode the plan for `launcher.py`: env, folder (working directory), folders (to open for us), output,
    user, limits, filter, listen (whether to create a seccomp listener), serve; without namespaces `landlock`
    and `watch`; `keep`: keep privileges, for `plain`."""
    values = {"landlock": None, "watch": False, "keep": False, "command": tuple(spec.command), **more}
    return marshal.dumps({**values, "seccomp": seccomp.call_number("seccomp") if values["filter"] else 0})


@functools.cache
def launcher_command() -> str:
    """Return the launcher as an argument of `python -c`. It is compiled once, here, because compiling takes
    as long as everything else it does."""
    path = Path(__file__).with_name("launcher.py")
    code = marshal.dumps(compile(path.read_text(), path.name, "exec", optimize=2))
    return f"import marshal; exec(marshal.loads(bytes.fromhex('{code.hex()}')))"
