"""Store the content and the database rows of workspace files consistently, even if a step fails.

An upload reserves its size in the quota (`StorageHold`) and stores the content under a new key. One transaction then
checks the name and the quota and points the row to the new content. After the commit, the previous content is removed;
downloads that are already reading it can finish. A process that dies in between leaves content without a row: it stays
reserved until `sweep` removes it, based on the age in its key. The reservation and the final transaction lock the
workspace's row, so that concurrent uploads cannot exceed the quota together.

Deleted files count towards the quota. If an upload needs their space, the oldest are removed permanently.
"""

from __future__ import annotations

import errno
import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from flask import current_app
from sqlalchemy import delete as delete_from
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from webapp import clock, ids, limits, storage
from webapp.access.actors import RANK, Actor, require
from webapp.access.models import Workspace
from webapp.audit.services import audit_log
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db, reading, writing
from webapp.files.models import CompatObject, KeyMapEntry, StorageHold, WorkspaceFile
from webapp.files.names import folders_of
from webapp.net import clamd
from webapp.work import batch_delete

log = logging.getLogger(__name__)

ROOT: Final = "files"
"""The folder of workspace files in the storage: `files/<workspace id>/<an id that contains the time>`."""

Check = Callable[[WorkspaceFile | None], None]
_FULL: Final = tuple(f"os error {number}" for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG))


@dataclass(frozen=True, slots=True)
class Put:
    """Stored content that no row references yet."""

    key: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Usage of a workspace's file quota."""

    bytes: int
    """By live files."""
    files: int
    trash_bytes: int = 0
    """By deleted files that can still be restored."""
    trash_files: int = 0
    held_bytes: int = 0
    """By uploads in progress."""
    compat_bytes: int = 0
    """By saved sets and key maps, which programs of the compatible API create."""


@dataclass(frozen=True, slots=True)
class Purged:
    """A deleted file that was removed permanently because an upload needed its space."""

    id: str
    name: str
    size: int
    team_id: str | None


def put(
    actor: Actor,
    size: int,
    chunks: Iterable[bytes],
    *,
    replaces: int | None = None,
    purged: list[Purged] | None = None,
) -> Put:
    """Store a stream of at most `size` bytes. The stream is scanned for viruses if a scanner is configured.

    The bytes are reserved in the quota first. If they do not fit, the oldest deleted files of the workspace are removed
    permanently and added to `purged`. `replaces` is the size of the file that the content will replace.

    Raise quota_exceeded; `unavailable` if the storage fails or the scanner does not respond; validation_error if the
    scanner finds something; and any error of the stream itself.
    """
    key = f"{ROOT}/{actor.workspace_id}/{ids.new('fil')}"
    lock(actor.workspace_id)
    removed = make_room(actor, size, replaces=replaces)
    db.session.add(_hold(actor.workspace_id, key, size))
    db.session.commit()
    for _, old in removed:
        drop(old)
    if purged is not None:
        purged += [item for item, _ in removed]
    digest = hashlib.sha256()
    try:
        with _scanned() as look:

            def passing() -> Iterator[bytes]:
                for chunk in chunks:
                    digest.update(chunk)
                    look(chunk)
                    yield chunk

            with reachable():
                stored = storage.of(current_app).put(key, passing())
    except BaseException:
        release(key)
        raise
    return Put(key, stored, digest.hexdigest())


def _hold(workspace_id: str, key: str, size: int) -> StorageHold:
    return StorageHold(key=key, workspace_id=workspace_id, area=ROOT, bytes=size, updated_at=clock.now())


def release(key: str) -> None:
    """Remove stored content that no row references, and its reservation."""
    drop(key)
    with suppress(SQLAlchemyError), writing() as session:
        session.execute(delete_from(StorageHold).where(StorageHold.key == key))


@contextmanager
def _scanned() -> Iterator[Callable[[bytes], None]]:
    """Scan a file in pieces. The verdict is available at the end. Raise validation_error or unavailable."""
    place = current_app.config["SETTINGS"].scanner
    if place is None:
        yield lambda _piece: None
        return
    try:
        with clamd.begun(place) as scan:
            yield scan.feed
            found = scan.verdict()
    except clamd.ScannerError as error:
        log.error("the virus scanner at SCANNER_URL gave no verdict: %s", error)
        text = "The virus scanner, which checks every file, is not responding. Nothing was stored. Try again."
        raise ApiError("unavailable", text, {"reason": "scanner"}, headers={"Retry-After": "60"}) from None
    if found is not None:
        log.warning("the virus scanner found %s in a file that was sent", found)
        text = f"The virus scanner found {found} in it, so it was not stored."
        raise validation_error([Fault("", "malware", text)])


def pieces(key: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """Return stored bytes, as `Storage.get` does. Raise storage.MissingError or `unavailable` immediately, not during
    iteration."""
    with reachable():
        return storage.of(current_app).get(key, start, end)


@contextmanager
def reachable() -> Iterator[None]:
    """Translate errors of the storage or the disk into `unavailable` with a message."""
    from obstore.exceptions import BaseError

    try:
        yield
    except (BaseError, OSError) as error:
        log.error("the storage failed: %s", str(error).partition("\n")[0])
        raise unavailable(error) from error


def unavailable(error: Exception) -> ApiError:
    """Return the API error for a failure of the storage or the disk."""
    told = str(error)
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    if full or any(word in told for word in _FULL):
        text = "The server's disk is full. Nothing was stored, and what was there before still is."
        return ApiError("unavailable", text, {"reason": "disk_full"}, headers={"Retry-After": "60"})
    text = "The file storage does not answer as it should. Nothing was changed; try again."
    return ApiError("unavailable", text, {"reason": "storage"}, headers={"Retry-After": "5"})


def drop(key: str) -> None:
    """Remove content that no row references. Content that cannot be removed now is swept later."""
    from obstore.exceptions import BaseError

    with suppress(BaseError, OSError):
        storage.of(current_app).delete(key)


def live(workspace_id: str) -> Any:
    """Return the condition for files of a workspace that are not deleted."""
    return (WorkspaceFile.workspace_id == workspace_id) & WorkspaceFile.deleted_at.is_(None)


def seen(workspace_id: str, project_id: str | None) -> Any:
    """Return the condition for files visible to a project: its own and those shared with the whole workspace."""
    shared = WorkspaceFile.project_id.is_(None)
    return live(workspace_id) & (
        shared if project_id is None else shared | (WorkspaceFile.project_id == project_id)
    )


def rivals(workspace_id: str, project_id: str | None) -> Any:
    """Return the condition for files whose names a file of a project must not have. Without a project, the file is
    shared and therefore visible to every project."""
    return live(workspace_id) if project_id is None else seen(workspace_id, project_id)


def require_shared(actor: Actor) -> None:
    """Raise `forbidden` unless the actor may change files that are shared with the whole workspace. Editors of a single
    team may not."""
    require(actor, "write")
    if not may_change_shared(actor):
        text = "Files shared with the whole workspace can be changed only by editors of the workspace."
        raise ApiError("forbidden", text, {"needs": "write", "role": "editor"})


def may_change_shared(actor: Actor) -> bool:
    """Return whether the actor is an editor of the workspace itself."""
    return actor.workspace_role is not None and RANK[actor.workspace_role] >= RANK["editor"]


def usage(workspace_id: str) -> Usage:
    """Return the storage used by a workspace's files: live files, deleted files and uploads in progress."""
    deleted = WorkspaceFile.deleted_at.is_not(None)
    sums = select(deleted, func.coalesce(func.sum(WorkspaceFile.size), 0), func.count())
    mine = sums.where(WorkspaceFile.workspace_id == workspace_id).group_by(deleted)
    found = {bool(row[0]): (int(row[1]), int(row[2])) for row in db.session.execute(mine)}
    held = select(func.coalesce(func.sum(StorageHold.bytes), 0)).where(
        StorageHold.workspace_id == workspace_id, StorageHold.area == ROOT
    )
    sets = select(func.coalesce(func.sum(CompatObject.size), 0)).where(
        CompatObject.workspace_id == workspace_id
    )
    entries = select(func.coalesce(func.sum(KeyMapEntry.size), 0)).where(
        KeyMapEntry.workspace_id == workspace_id
    )
    compat = int(db.session.scalar(sets) or 0) + int(db.session.scalar(entries) or 0)
    return Usage(
        *found.get(False, (0, 0)), *found.get(True, (0, 0)), int(db.session.scalar(held) or 0), compat
    )


def keep(
    actor: Actor,
    name: str,
    held: Put,
    *,
    content_type: str,
    run_id: str | None = None,
    created_by: str | None = None,
    check: Check | None = None,
    shared: bool = False,
) -> tuple[WorkspaceFile, bool]:
    """Point a file name to the content of `held` and commit. Return the file and whether it existed before.

    The file belongs to the actor's project, or, with `shared`, to the whole workspace. `check` is called with the
    locked file that currently has the name, and may raise an error. The content is removed on failure.
    Raise conflict (a folder and a file have the same name), forbidden, quota_exceeded, or an error of `check`.
    """
    before = None
    project_id, team_id = (None, None) if shared else (actor.project_id, actor.team_id)
    try:
        lock(actor.workspace_id)
        file = named(actor, name, shared=shared, lock=True)
        if check is not None:
            check(file)
        replaced = file is not None
        db.session.execute(delete_from(StorageHold).where(StorageHold.key == held.key))
        if file is None:
            refuse_clash(actor.workspace_id, name, project_id)
            removed = make_room(actor, held.size)
            file = WorkspaceFile(id=ids.new("fil"), workspace_id=actor.workspace_id, name=name)
            file.project_id, file.team_id = project_id, team_id
            db.session.add(file)
        else:
            removed = make_room(actor, held.size, replaces=file.size)
            if batch_delete.held():  # a backup may still need the old bytes: they count until they are swept
                db.session.add(_hold(actor.workspace_id, file.storage_key, file.size))
            else:
                before = file.storage_key
        file.size, file.sha256, file.storage_key = held.size, held.sha256, held.key
        file.content_type, file.run_id, file.created_by = content_type, run_id, created_by
        file.updated_at = clock.now()
        db.session.flush()
        audit_log.record(
            actor,
            "workspace_file.upload",
            file,
            join=True,
            name=name,
            size=held.size,
            sha256=held.sha256,
            replaced=replaced,
        )
        db.session.flush()
    except BaseException:
        db.session.rollback()
        release(held.key)
        raise
    # If this fails, the commit may still have taken place, so keep the content and let the sweep decide.
    db.session.commit()
    for key in [*([before] if before is not None else []), *(old for _, old in removed)]:
        drop(key)
    return file, replaced


def named(actor: Actor, name: str, *, shared: bool = False, lock: bool = False) -> WorkspaceFile | None:
    """Return the live file that an upload with this name replaces, or None for a new file.

    Raise forbidden for a shared file that the actor may not change, and conflict if a new shared file would have the
    name of a project's file.
    """
    project_id = None if shared else actor.project_id
    statement = select(WorkspaceFile).where(
        rivals(actor.workspace_id, project_id), WorkspaceFile.name == name
    )
    statement = statement.order_by(WorkspaceFile.project_id.is_(None).desc()).limit(1)
    if lock:
        statement = statement.with_for_update().execution_options(populate_existing=True)
    file = db.session.scalar(statement)
    if shared or (file is not None and file.project_id is None and actor.project_id is not None):
        require_shared(actor)
    if file is not None and shared and file.project_id is not None:
        text = f"A project has a file called `{name}`. Delete it or move it first, or choose another name."
        raise ApiError("conflict", text, {"name": name, "project_id": file.project_id})
    return file


def lock(workspace_id: str) -> None:
    """Lock the workspace's files until the end of the transaction, so that names and quota do not change."""
    statement = select(Workspace.id).where(Workspace.id == workspace_id)
    db.session.execute(
        statement.with_for_update(key_share=True)
    )  # rows that refer to it can still be inserted


def refuse_clash(workspace_id: str, name: str, project_id: str | None = None) -> None:
    """Raise `conflict` if a folder in the name is a file or the name is a folder: no file system could hold both."""
    others = rivals(workspace_id, project_id)
    folders = folders_of(name)
    over = select(WorkspaceFile.name).where(others, WorkspaceFile.name.in_(folders)).limit(1)
    found = db.session.scalar(over) if folders else None
    if found is not None:
        raise ApiError("conflict", f"`{found}` is a file, so it cannot contain other files.", {"name": found})
    prefix = f"{name}/"
    under = select(WorkspaceFile.name).where(others, begins(prefix)).limit(1)
    found = db.session.scalar(under)
    if found is not None:
        raise ApiError("conflict", f"`{name}` is a folder that contains `{found}`.", {"name": found})


def begins(prefix: str) -> Any:
    """Return whether a file's name begins with a text. LIKE ignores case on SQLite."""
    return func.substr(WorkspaceFile.name, 1, len(prefix)) == prefix


def refuse_over(
    workspace_id: str, size: int, *, replaces: int | None = None, what: str = "this file has"
) -> Usage:
    """Raise `quota_exceeded` if a file of `size` bytes does not fit even when all deleted files are removed. `replaces`
    is the size of the file that it replaces, and `what` describes the bytes in the message. Return the bytes used now.
    """
    now = usage(workspace_id)
    most = limits.MAX_WORKSPACE_FILES_BYTES
    used = now.bytes + now.compat_bytes
    free = most - used - now.held_bytes + (replaces or 0)
    details: Mapping[str, int] = {
        "limit_bytes": most,
        "used_bytes": now.bytes,
        "trash_bytes": now.trash_bytes,
        "uploading_bytes": now.held_bytes,
        "compat_bytes": now.compat_bytes,
        "free_bytes": max(0, free),
        "file_bytes": size,
        "files": now.files,
    }
    if size > free:
        text = (
            f"The workspace's files may take {most:,} bytes. {used:,} are used, and {what} {size:,}: "
            "delete some files first."
        )
        if now.held_bytes:
            text = text.removesuffix(".") + f", or wait for other uploads ({now.held_bytes:,} bytes) to end."
        raise ApiError("quota_exceeded", text, details)
    if replaces is None and now.files >= limits.MAX_WORKSPACE_FILES:
        text = f"A workspace may have {limits.MAX_WORKSPACE_FILES:,} files, and has {now.files:,}: delete some first."
        raise ApiError("quota_exceeded", text, {**details, "limit_files": limits.MAX_WORKSPACE_FILES})
    return now


def make_room(
    actor: Actor, size: int, *, replaces: int | None = None, what: str = "this file has"
) -> list[tuple[Purged, str]]:
    """Delete the rows of the oldest deleted files until `size` more bytes fit into the quota, each with an audit entry.
    Return the files with their storage keys; the caller drops their content after its commit. The files must be locked.

    Raise quota_exceeded, also during a backup, which may still need the content of deleted files.
    """
    now = refuse_over(actor.workspace_id, size, replaces=replaces, what=what)
    missing = (
        now.bytes
        + now.compat_bytes
        + now.trash_bytes
        + now.held_bytes
        + size
        - (replaces or 0)
        - limits.MAX_WORKSPACE_FILES_BYTES
    )
    too_many = now.trash_files - limits.MAX_WORKSPACE_FILES
    if missing <= 0 and too_many < 0:
        return []
    if batch_delete.held():
        text = "A backup is running, so that no deleted files can be removed to make room. Try again in a few minutes."
        raise ApiError("quota_exceeded", text, {"reason": "backup"}, headers={"Retry-After": "60"})
    statement = select(WorkspaceFile).where(
        WorkspaceFile.workspace_id == actor.workspace_id, WorkspaceFile.deleted_at.is_not(None)
    )
    removed = []
    for file in db.session.scalars(statement.order_by(WorkspaceFile.deleted_at, WorkspaceFile.id)):
        if missing <= 0 and too_many < 0:
            break
        missing, too_many = missing - file.size, too_many - 1
        removed.append((Purged(file.id, file.name, file.size, file.team_id), file.storage_key))
        audit_log.record(
            actor, "workspace_file.purge", file, join=True, name=file.name, size=file.size, reason="quota"
        )
        db.session.delete(file)
    db.session.flush()
    return removed


def sweep(now: datetime) -> int:
    """Remove content that no row references and that no running upload can still use. Return the number of files."""
    from obstore.exceptions import BaseError

    store = storage.of(current_app)
    try:
        found = [item.key for item in store.listing(ROOT) if _age(item.key, now) > limits.FILE_ORPHAN_SECONDS]
    except BaseError as error:
        log.warning("the storage could not be swept: %s", str(error).partition("\n")[0])
        return 0
    with writing() as session:  # From interrupted uploads
        old = now - timedelta(seconds=limits.FILE_ORPHAN_SECONDS)
        cut = (StorageHold.area.in_(("files", "exports")), StorageHold.updated_at < old)
        session.execute(delete_from(StorageHold).where(*cut))
    done = 0
    for at in range(0, len(found), _BATCH):
        batch = found[at : at + _BATCH]
        with reading() as session:
            named = set(
                session.scalars(select(WorkspaceFile.storage_key).where(WorkspaceFile.storage_key.in_(batch)))
            )
        for key in batch:
            if key not in named:
                drop(key)
                done += 1
    return done


_BATCH: Final = 500


def _age(key: str, now: datetime) -> float:
    """Return the seconds since a key was created, derived from its id, or 0 if the key was not created here."""
    text = key.rpartition("/")[2].removeprefix("fil_")
    try:
        made = sum(ids.ALPHABET.index(char) << (5 * place) for place, char in enumerate(reversed(text[:10])))
    except ValueError:
        return 0.0
    return now.timestamp() - made / 1000 if len(text) == 26 else 0.0
