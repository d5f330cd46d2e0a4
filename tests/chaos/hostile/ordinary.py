"""Becomes an ordinary user, and a command: `python -m tests.chaos.hostile.ordinary <uid> <command>...`, as root.

If Python is in a folder that only root may enter, that folder is replaced for this process only: in a separate mount
namespace, by an empty folder that contains Python at its old path.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from pathlib import Path

NEW_MOUNTS = 0x00020000
BIND, PRIVATE = 4096, 1 << 18 | 16384
libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    value = [None if item is None else item.encode() for item in (source, target, kind)]
    if libc.mount(*value, ctypes.c_ulong(flags), None if options is None else options.encode()) != 0:
        raise OSError(ctypes.get_errno(), f"mount {target}")


def open_way_to(folder: Path) -> None:
    """Allow all users to enter the parents of a folder."""
    closed = [parent for parent in reversed(folder.parents) if not parent.stat().st_mode & 0o001]
    if not closed:
        return
    if libc.unshare(NEW_MOUNTS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    mount("none", "/", None, PRIVATE)
    stored = tempfile.mkdtemp()
    mount(str(folder), stored, None, BIND)
    mount("none", str(closed[0]), "tmpfs", 0, "mode=755")
    folder.mkdir(parents=True)
    mount(stored, str(folder), None, BIND)


def main() -> None:
    uid = int(sys.argv[1])
    open_way_to(Path(sys.base_prefix).resolve())
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    os.environ["HOME"] = "/"
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
