"""The files that a project sees in a folder, for a run: whole ones only, and without a copy of each for each run.

Files that were fetched once lie in a cache under the SHA-256 of their content (`cache/files` in the data folder),
read-only. A run's folder gets hard links to them where the file system allows it, else copies. The cache keeps to
FILE_CACHE_BYTES, and lets go of what was used longest ago. Any number of runs may sync at once.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from flask import current_app
from sqlalchemy import select

from webapp import clock, limits, storage
from webapp.errors import ApiError
from webapp.extensions import reading
from webapp.files.models import WorkspaceFile
from webapp.files.names import OUTPUTS
from webapp.files.services import file_store

_READ_ONLY: Final = 0o444
_COPIED: Final = frozenset(
    {errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS}
)
_ABANDONED_SECONDS: Final = limits.FILE_ORPHAN_SECONDS


@dataclass(frozen=True, slots=True)
class _Wanted:
    id: str
    name: str
    size: int
    sha256: str
    key: str


def sync(workspace_id: str, project_id: str | None, folder: Path, *, link: bool = True) -> None:
    """Put every live file of a project, and those shared with the workspace, into a folder under its name, except what
    is under `outputs/`.

    Files are read-only and may share their bytes with the cache: `link=False` makes copies, for a program that could
    write to them all the same. A file that is replaced meanwhile is there as it was or as it is, whole; one that is
    deleted meanwhile may be missing. Error: `unavailable` (the storage does not answer, or the disk is full).
    """
    wanted = _listed(workspace_id, project_id)
    cache = Path(current_app.config["SETTINGS"].data_dir) / "cache" / "files"
    with file_store.reachable():
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        for one in wanted:
            target = folder / one.name
            target.parent.mkdir(parents=True, exist_ok=True)
            _place(cache, one, target, link=link)
        _trim(cache)


def _listed(workspace_id: str, project_id: str | None) -> list[_Wanted]:
    table = WorkspaceFile
    columns = table.id, table.name, table.size, table.sha256, table.storage_key
    with reading() as session:
        statement = select(*columns).where(
            file_store.seen(workspace_id, project_id), ~file_store.begins(f"{OUTPUTS}/")
        )
        return [_Wanted(*row) for row in session.execute(statement.order_by(table.name))]


def _place(cache: Path, wanted: _Wanted, target: Path, *, link: bool) -> None:
    """One file into the folder; what was replaced or evicted meanwhile is asked for again."""
    one: _Wanted | None = wanted
    for _ in range(limits.FILE_CACHE_TRIES):
        try:
            _put(_cached(cache, one), target, link=link)
            return
        except storage.MissingError:
            one = _again(one)
            if one is None:
                return
        except FileNotFoundError:
            continue  # evicted between the look and the link
    raise ApiError("unavailable", f"`{wanted.name}` changes too often to be read.", {"reason": "storage"})


def _again(one: _Wanted) -> _Wanted | None:
    """A file as it is now; None when it was deleted, or called otherwise. Error: `unavailable` when its bytes are
    gone although nothing changed."""
    table = WorkspaceFile
    columns = table.id, table.name, table.size, table.sha256, table.storage_key
    with reading() as session:
        statement = select(*columns).where(
            table.id == one.id, table.deleted_at.is_(None), table.name == one.name
        )
        row = session.execute(statement).one_or_none()
    if row is None:
        return None
    now = _Wanted(*row)
    if now.key == one.key:
        raise ApiError(
            "unavailable", f"The bytes of `{one.name}` are not in the storage.", {"reason": "storage"}
        )
    return now


def _cached(cache: Path, one: _Wanted) -> Path:
    """The file in the cache, fetched where it is not there. Errors: storage.MissingError, unavailable, OSError."""
    path = cache / one.sha256[:2] / one.sha256
    with suppress(FileNotFoundError):
        there = path.stat()
        if there.st_size == one.size:
            # The time of last use; the time of change stays, for programs that look at it.
            os.utime(path, ns=(int(clock.epoch() * 1e9), there.st_mtime_ns))
            return path
        path.unlink(missing_ok=True)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    pieces = file_store.pieces(one.key)
    digest = hashlib.sha256()
    handle, name = tempfile.mkstemp(prefix=".new-", dir=cache)
    try:
        with os.fdopen(handle, "wb") as file:
            for piece in pieces:
                digest.update(piece)
                file.write(piece)
            os.fchmod(file.fileno(), _READ_ONLY)
        if digest.hexdigest() != one.sha256:
            raise ApiError("unavailable", f"The bytes of `{one.name}` are damaged.", {"reason": "storage"})
        os.replace(name, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise
    return path


def _put(path: Path, target: Path, *, link: bool) -> None:
    """The cached file under its name in the folder, in place of what may be there."""
    target.unlink(missing_ok=True)
    if link:
        try:
            os.link(path, target)
            return
        except OSError as error:
            if error.errno not in _COPIED:
                raise
    shutil.copyfile(path, target)
    target.chmod(_READ_ONLY)


def _trim(cache: Path) -> None:
    """Let go of what was used longest ago until the cache is small enough; somebody else's trimming is enough."""
    with (cache / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        now = clock.epoch()
        for left in cache.glob(".new-*"):
            with suppress(FileNotFoundError):
                if now - left.stat().st_mtime > _ABANDONED_SECONDS:
                    left.unlink()
        held = []
        for path in cache.glob("??/*"):
            with suppress(FileNotFoundError):
                told = path.stat()
                held.append((told.st_atime_ns, told.st_size, path))
        total = sum(size for _, size, _ in held)
        for _, size, path in sorted(held):
            if total <= limits.FILE_CACHE_BYTES:
                return
            path.unlink(missing_ok=True)
            total -= size
