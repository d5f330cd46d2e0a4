"""Read and remove the outputs of a program. They are untrusted."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MAX_FILES: Final = 20_000  # files and folders; each costs the host an inode
MAX_DEPTH: Final = 32  # folders within folders
_MISSING_ERRORS: Final = (errno.ENOENT, errno.ENOTDIR)  # it was removed, or something else has its name
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def disk_usage(folder: Path) -> tuple[int, int]:
    """Return the bytes on disk below a folder, and the number of files and folders. Hard links count once. If
    something cannot be read (too deep, too long a path, no permission), more than MOST_FILES are reported."""
    total, count = 0, 0
    seen: set[int] = set()
    unreadable: list[str] = []
    for entry in _walk(folder, unreadable):
        count += 1
        try:
            found = entry.stat(follow_symlinks=False)
        except OSError as error:
            if error.errno not in _MISSING_ERRORS:
                unreadable.append(entry.path)
            continue
        if found.st_ino not in seen:
            seen.add(found.st_ino)
            total += max(found.st_blocks * 512, 0)
        if count > MAX_FILES or unreadable:
            break
    return total, max(count, MAX_FILES + 1) if unreadable else count


def remove(folder: Path) -> None:
    """Delete a folder and everything below it, regardless of depth and permissions. Links are not followed.
    Raises OSError.

    Nested folders are moved up to `folder` before they are emptied, so that neither depth nor path length
    matters.
    """
    top = os.open(folder, _FOLDER)
    try:
        os.chmod(top, 0o700)
        while waiting := os.listdir(top):
            for name in waiting:
                if not _unlink(name, top):
                    _remove_folder(name, top)
    finally:
        os.close(top)
    os.rmdir(folder)


def _remove_folder(name: str, top: int) -> None:
    """Remove a folder in `top`. Its subfolders are moved up."""
    os.chmod(name, 0o700, dir_fd=top)
    descriptor = os.open(name, _FOLDER, dir_fd=top)
    try:
        for inner in os.listdir(descriptor):
            if not _unlink(inner, descriptor):
                os.chmod(inner, 0o700, dir_fd=descriptor)
                os.rename(inner, secrets.token_hex(16), src_dir_fd=descriptor, dst_dir_fd=top)
    finally:
        os.close(descriptor)
    os.rmdir(name, dir_fd=top)


def _unlink(name: str, descriptor: int) -> bool:
    """Remove anything but a folder. Return False for a folder."""
    if stat.S_ISDIR(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode):
        return False
    os.unlink(name, dir_fd=descriptor)
    return True


def files(folder: Path) -> list[Path]:
    """Return the regular files below a folder, sorted by name. Symbolic and hard links, pipes, sockets and
    devices are left out, because they may lead to the host's files."""
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
    """Open one of `files` for reading. No symbolic link is followed. Raises OSError if it has changed."""
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        *parents, name = path.relative_to(folder).parts
        for parent in parents:
            lower = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            os.close(at)
            at = lower
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
    finally:
        os.close(at)
    about = os.fstat(descriptor)
    if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1:
        os.close(descriptor)
        raise OSError(f"{path.name} has other hard links or is not a regular file")
    return descriptor


def _walk(folder: Path, unreadable: list[str] | None = None) -> Iterator[os.DirEntry[str]]:
    """Yield all entries below a folder without following links. `unreadable` collects folders that cannot be
    read."""
    unreadable = [] if unreadable is None else unreadable
    waiting = [(str(folder), 0)]
    while waiting:
        path, depth = waiting.pop()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    yield entry
                    if not entry.is_dir(follow_symlinks=False):
                        continue
                    if depth < MAX_DEPTH:
                        waiting.append((entry.path, depth + 1))
                    else:
                        unreadable.append(entry.path)
        except OSError as error:
            if error.errno not in _MISSING_ERRORS:
                unreadable.append(path)
