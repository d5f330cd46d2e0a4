"""What the last step inside is told: user, limits, filter, command and variables."""

from __future__ import annotations

import functools
import marshal
import os
import resource
from pathlib import Path
from typing import Any, Final

from jobs.sandbox import filters
from jobs.sandbox.box import MB, Box

_DATA_SLACK: Final = (
    2048 * MB
)  # arenas that allocators reserve and never touch; the warden sees what is touched
FILES: Final = 256  # descriptors of one process; each can hold a buffer of the kernel
_LAST_CPU: Final = 5  # seconds between the signal that can be caught and the one that cannot


def fill(content: bytes, name: str) -> int:
    """A descriptor, at its start, of an unnamed file with a content. It is inherited only where that is asked for."""
    made = os.memfd_create(name, os.MFD_CLOEXEC)
    os.write(made, content) if len(content) < MB else _write(made, content)
    os.lseek(made, 0, os.SEEK_SET)
    return made


def _write(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def limits(box: Box, processes: int) -> list[tuple[int, int, int]]:
    """The kernel's own limits, of each process alone: (which, soft, hard)."""
    caps = box.caps
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
    """Both limits: what is wanted, or less where this process has less."""
    hard = resource.getrlimit(which)[1]
    fit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    return fit, fit


def variables(box: Box, home: str, temporary: str, **more: str) -> dict[str, str]:
    """The program's whole environment: its own, and what every program needs unless it says otherwise."""
    paths = (str(box.environment / "bin"), "/usr/local/bin", "/usr/bin", "/bin")
    return {
        "PATH": ":".join(paths),
        "HOME": home,
        "TMPDIR": temporary,
        "LANG": "C.UTF-8",
        "VIRTUAL_ENV": str(box.environment),
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        **more,
        **box.env,
    }


def plan(box: Box, **more: Any) -> bytes:
    """Marshalled for `inside.py`: env, folder (where the program begins), folders (to be opened for us), output, user,
    limits, filter, listen (whether it has a listener), serve; and where there are no namespaces `landlock` and
    `watch`; `keep`: power is kept, for `plain`."""
    given = {"landlock": None, "watch": False, "keep": False, "command": tuple(box.command), **more}
    return marshal.dumps({**given, "seccomp": filters.number("seccomp") if given["filter"] else 0})


@functools.cache
def inside() -> str:
    """The last step, as what `python -c` takes. It is compiled once, here: by the Python that runs it, and compiling
    takes as long as all the rest that it does."""
    path = Path(__file__).with_name("inside.py")
    code = marshal.dumps(compile(path.read_text(), path.name, "exec", optimize=2))
    return f"import marshal; exec(marshal.loads(bytes.fromhex('{code.hex()}')))"
