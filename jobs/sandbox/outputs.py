"""The outputs of a program, read as what they are: made by somebody who is not trusted."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MOST_FILES: Final = 20_000  # files and folders; each costs the host an inode
DEPTH: Final = 32  # folders within folders
_GONE: Final = (errno.ENOENT, errno.ENOTDIR)  # it was removed, or something else has its name
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def size(folder: Path) -> tuple[int, int]:
    """Bytes on the disk of all below a folder, and how many files and folders there are. A file under two names
    counts once. Where something cannot be looked at (too deep, a path that is too long, a folder that is closed to us),
    there may be any number of files: more than MOST_FILES are reported."""
    total, count = 0, 0
    seen: set[int] = set()
    unseen: list[str] = []
    for entry in _walk(folder, unseen):
        count += 1
        try:
            found = entry.stat(follow_symlinks=False)
        except OSError as error:
            if error.errno not in _GONE:
                unseen.append(entry.path)
            continue
        if found.st_ino not in seen:
            seen.add(found.st_ino)
            total += max(found.st_blocks * 512, 0)
        if count > MOST_FILES or unseen:
            break
    return total, max(count, MOST_FILES + 1) if unseen else count


def remove(folder: Path) -> None:
    """Delete a folder with all that is below it, however deep and whatever its rights. No link is followed. Raises
    OSError.

    Folders move up to `folder` before they are emptied, so that neither the depth nor the length of a path matters.
    """
    top = os.open(folder, _FOLDER)
    try:
        os.chmod(top, 0o700)
        while waiting := os.listdir(top):
            for name in waiting:
                if not _unlinked(name, top):
                    _empty(name, top)
    finally:
        os.close(top)
    os.rmdir(folder)


def _empty(name: str, top: int) -> None:
    """Remove a folder in `top`; the folders in it move up."""
    os.chmod(name, 0o700, dir_fd=top)
    at = os.open(name, _FOLDER, dir_fd=top)
    try:
        for inner in os.listdir(at):
            if not _unlinked(inner, at):
                os.chmod(inner, 0o700, dir_fd=at)
                os.rename(inner, secrets.token_hex(16), src_dir_fd=at, dst_dir_fd=top)
    finally:
        os.close(at)
    os.rmdir(name, dir_fd=top)


def _unlinked(name: str, at: int) -> bool:
    """Remove what is no folder; False for a folder."""
    if stat.S_ISDIR(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode):
        return False
    os.unlink(name, dir_fd=at)
    return True


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


def _walk(folder: Path, unseen: list[str] | None = None) -> Iterator[os.DirEntry[str]]:
    """All entries below a folder; no link is followed. `unseen` takes the folders that cannot be looked into."""
    unseen = [] if unseen is None else unseen
    waiting = [(str(folder), 0)]
    while waiting:
        path, depth = waiting.pop()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    yield entry
                    if not entry.is_dir(follow_symlinks=False):
                        continue
                    if depth < DEPTH:
                        waiting.append((entry.path, depth + 1))
                    else:
                        unseen.append(entry.path)
        except OSError as error:
            if error.errno not in _GONE:
                unseen.append(path)
