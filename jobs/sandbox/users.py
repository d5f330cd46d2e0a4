"""User ids of runs, where this service is root: none that lives is given out twice."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import Final

_FIRST: Final = 1_879_048_192  # below 2^31, and far from those of people and services
_MOST: Final = 4_194_304  # the kernel's largest number of a thread
_FEW: Final = 10_000  # for runs where this machine has few


def own() -> int:
    """The user id of the program that this thread starts and watches: as unique as the thread's number."""
    thread = threading.get_native_id()
    rows = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
    begin, length = max(((int(row[0]), int(row[2])) for row in rows), key=lambda one: one[1])
    if begin <= _FIRST and begin + length >= _FIRST + _MOST:
        return _FIRST + thread % _MOST
    few = min(_FEW, length // 2)  # root of a container without privileges
    return begin + length - 1 - few + thread % few


def let_in(folder: Path) -> None:
    """Let the users of runs read what lies below a folder: whoever made it may have closed it to everybody else."""
    for path, folders, files in os.walk(folder):
        for name in (".", *folders, *files):
            one = Path(path, name)
            about = one.lstat()
            wanted = 0o005 if stat.S_ISDIR(about.st_mode) else 0o004
            if not stat.S_ISLNK(about.st_mode) and about.st_mode & wanted != wanted:
                one.chmod(stat.S_IMODE(about.st_mode) | wanted)
