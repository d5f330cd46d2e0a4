"""The plan for the launcher: user, limits, seccomp filter, command and environment variables."""

from __future__ import annotations

import functools
import marshal
import os
import resource
from pathlib import Path
from typing import Any, Final

from jobs.sandbox import seccomp
from jobs.sandbox.spec import MB, SandboxSpec

_DATA_SLACK: Final = (
    2048 * MB
)  # allocators reserve memory that they never use; the supervisor measures what is used
FILES: Final = 256  # descriptors of one process; each can hold a buffer of the kernel
_LAST_CPU: Final = 5  # seconds between the signal that can be caught and the one that cannot


def memory_file(content: bytes, name: str) -> int:
    """Return a descriptor of an unnamed file with this content, at its start. It is not inherited unless
    requested."""
    made = os.memfd_create(name, os.MFD_CLOEXEC)
    os.write(made, content) if len(content) < MB else _write(made, content)
    os.lseek(made, 0, os.SEEK_SET)
    return made


def _write(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


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


def _at_most(which: int, wanted: int) -> tuple[int, int]:
    """Return soft and hard limit: the requested value, or this process's own limit if that is lower."""
    hard = resource.getrlimit(which)[1]
    fit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
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
    given = {"landlock": None, "watch": False, "keep": False, "command": tuple(spec.command), **more}
    return marshal.dumps({**given, "seccomp": seccomp.number("seccomp") if given["filter"] else 0})


@functools.cache
def launcher_command() -> str:
    """Return the launcher as an argument of `python -c`. It is compiled once, here, because compiling takes
    as long as everything else it does."""
    path = Path(__file__).with_name("launcher.py")
    code = marshal.dumps(compile(path.read_text(), path.name, "exec", optimize=2))
    return f"import marshal; exec(marshal.loads(bytes.fromhex('{code.hex()}')))"
