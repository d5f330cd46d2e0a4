"""What Landlock grants to a program where no namespaces can be had (landlock(7)), and the folders it lives in."""

from __future__ import annotations

import ctypes
import errno
import platform
import shutil
import tempfile
from pathlib import Path
from typing import Final

from jobs.sandbox import bubblewrap, filters
from jobs.sandbox.box import Box

_CREATE_RULESET: Final = 444
_VERSION: Final = 1
# LANDLOCK_ACCESS_FS_*
_EXECUTE, _WRITE, _READ, _LIST = 1, 2, 4, 8
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_FIRST_ABI: Final = (1 << 13) - 1
_LOOK: Final = _EXECUTE | _READ | _LIST
_DEVICES: Final = ("null", "full", "random", "urandom")  # a mapping of zero is memory that no cap counts
# Of the host's /etc, for names: in bubblewrap they are made for the program.
_NAMES: Final = ("passwd", "group", "hosts", "resolv.conf", "nsswitch.conf", "host.conf")


def version() -> int:
    """What the kernel has of Landlock; 0 for nothing."""
    if platform.machine() not in filters.ARCHITECTURES:
        return 0
    found = ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, 0, _VERSION)
    return 0 if found < 0 and ctypes.get_errno() in (errno.ENOSYS, errno.EOPNOTSUPP) else max(0, found)


def rules(box: Box, home: Path) -> tuple[int, tuple[tuple[str, int], ...]]:
    """The kinds of access that are closed, and where they are granted nevertheless: (path, kinds)."""
    handled = _FIRST_ABI | (_REFER if version() >= 2 else 0) | (_TRUNCATE if version() >= 3 else 0)
    special = (1 << 6) | (1 << 11)  # MAKE_CHAR, MAKE_BLOCK
    write = handled & ~special
    seen = [
        *bubblewrap.SYSTEM,
        *(f"/etc/{name}" for name in (*bubblewrap.ETC, *_NAMES)),
        bubblewrap.python()[1],
    ]
    seen += [str(one) for one in (*box.read_only, box.environment, box.code, box.uploads)]
    seen += [f"/{name}" for name in bubblewrap.LINKED if not Path("/", name).is_symlink()]
    granted = [(path, _LOOK) for path in seen]
    granted += [(f"/dev/{name}", _READ | _WRITE) for name in _DEVICES]
    granted += [("/proc/self", _READ | _LIST), (str(home), write), (str(box.outputs), write)]
    return handled, tuple(granted)


def make_home(box: Box, user: int | None) -> Path:
    """A folder of the program's own, with its code in it and a folder for what is temporary."""
    home = Path(tempfile.mkdtemp(prefix="scenario-")).resolve()
    for entry in box.code.iterdir():
        (home / entry.name).symlink_to(entry.resolve())
    (home / ".tmp").mkdir()
    if user is not None:
        for one in (home, home / ".tmp"):
            shutil.chown(one, user, user)
    return home
