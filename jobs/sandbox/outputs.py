"""The outputs of a program, read as what they are: made by somebody who is not trusted."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MOST_FILES: Final = 20_000  # files and folders; each costs the host an inode
_DEPTH: Final = 32  # folders within folders


def size(folder: Path) -> tuple[int, int]:
    """Bytes on the disk of all below a folder, and how many files and folders there are. A file under two names
    counts once."""
    total, count = 0, 0
    seen: set[int] = set()
    for entry in _walk(folder):
        count += 1
        try:
            found = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        if found.st_ino not in seen:
            seen.add(found.st_ino)
            total += max(found.st_blocks * 512, 0)
        if count > MOST_FILES:
            break
    return total, count


def files(folder: Path) -> list[Path]:
    """The regular files below a folder, in order of their names. Left out are links of both kinds, pipes, sockets,
    devices: what stands behind them may be the host's."""
    found = []
    for entry in _walk(folder):
        try:
            about = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        if stat.S_ISREG(about.st_mode) and about.st_nlink == 1:
            found.append(Path(entry.path))
    return sorted(found)


def open_file(folder: Path, path: Path) -> int:
    """A descriptor to read one of `files` from. No part of the way is followed where it is a link. OSError if it is
    no longer what it was."""
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        *parents, name = path.relative_to(folder).parts
        for parent in parents:
            lower = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            os.close(at)
            at = lower
        made = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
    finally:
        os.close(at)
    about = os.fstat(made)
    if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1:
        os.close(made)
        raise OSError(f"{path.name} is no file of its own")
    return made


def _walk(folder: Path) -> Iterator[os.DirEntry[str]]:
    """All entries below a folder; no link is followed."""
    waiting = [(str(folder), 0)]
    while waiting:
        path, depth = waiting.pop()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    yield entry
                    if depth < _DEPTH and entry.is_dir(follow_symlinks=False):
                        waiting.append((entry.path, depth + 1))
        except OSError:
            continue
