"""Bytes and rows of workspace files together: nothing is half there, whatever fails when.

Their size is reserved in the quota first (`StorageHold`). Then the bytes are put, under a key of their own; then one
transaction checks the name and the quota, switches the row to them and is committed; then the bytes it named before are
removed. Whoever reads those goes on reading. A process that dies in between leaves bytes that no row names: `sweep`
removes them, whose age stands in their keys, and until then they stay reserved. The workspace's row is locked for the
reservation and for the switch, so that uploads at the same time cannot exceed the quota together.

Deleted files count towards the quota. Where an upload needs their space, the oldest of them go for good.
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
from webapp.accounts.actors import RANK, Actor, require
from webapp.accounts.models import Workspace
from webapp.audit.services import audit_log
from webapp.compat.models import CompatObject, KeyMapEntry
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db, reading, writing
from webapp.files.models import StorageHold, WorkspaceFile
from webapp.files.names import folders_of
from webapp.net import clamd
from webapp.operations import deferred_deletion

log = logging.getLogger(__name__)

ROOT: Final = "files"
"""Their folder in the storage: `files/<workspace id>/<an id that tells the time>`."""

Check = Callable[[WorkspaceFile | None], None]
_FULL: Final = tuple(f"os error {number}" for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG))


@dataclass(frozen=True, slots=True)
class Put:
    """Bytes that lie in the storage and that no row names yet."""

    key: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Usage:
    """How much of a workspace's file quota is used."""

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
    """A deleted file that was removed for good, because an upload needed its space."""

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
    """Store a stream of at most `size` bytes, which is scanned for viruses on its way if there is a scanner.

    The bytes are reserved in the quota first. If they do not fit, the oldest deleted files of the workspace are
    removed for good; they are added to `purged`. `replaces` is the size of the file that the content will replace.

    Errors: quota_exceeded; `unavailable` when the storage does not take it or the scanner says nothing;
    validation_error when it finds something; whatever the stream itself raises.
    """
    key = f"{ROOT}/{actor.workspace_id}/{ids.new('fil')}"
    lock(actor.workspace_id)
    removed = make_room(actor, size, replaces=replaces)
    db.session.add(_hold(actor.workspace_id, key, size))
    db.session.commit()
    for _, old in removed:
        drop(old)
    if purged is not None:
        purged += [one for one, _ in removed]
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
    """Remove stored bytes that nothing names, and their reservation."""
    drop(key)
    with suppress(SQLAlchemyError), writing() as session:
        session.execute(delete_from(StorageHold).where(StorageHold.key == key))


@contextmanager
def _scanned() -> Iterator[Callable[[bytes], None]]:
    """Takes a file in pieces; at the end there is the scanner's verdict. Errors: validation_error, unavailable."""
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
        text = "The virus scanner that looks at every file gives no verdict. Nothing was stored; try again."
        raise ApiError("unavailable", text, {"reason": "scanner"}, headers={"Retry-After": "60"}) from None
    if found is not None:
        log.warning("the virus scanner found %s in a file that was sent", found)
        text = f"The virus scanner found {found} in it, so it was not stored."
        raise validation_error([Fault("", "malware", text)])


def pieces(key: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """Stored bytes, as `Storage.get`. Errors: storage.MissingError and `unavailable`, at once."""
    with reachable():
        return storage.of(current_app).get(key, start, end)


@contextmanager
def reachable() -> Iterator[None]:
    """Turns what a storage or a disk says into `unavailable`, with a sentence."""
    from obstore.exceptions import BaseError

    try:
        yield
    except (BaseError, OSError) as error:
        log.error("the storage failed: %s", str(error).partition("\n")[0])
        raise unavailable(error) from error


def unavailable(error: Exception) -> ApiError:
    """What a failure of a storage or a disk is to a caller."""
    told = str(error)
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    if full or any(word in told for word in _FULL):
        text = "The server's disk is full. Nothing was stored, and what was there before still is."
        return ApiError("unavailable", text, {"reason": "disk_full"}, headers={"Retry-After": "60"})
    text = "The file storage does not answer as it should. Nothing was changed; try again."
    return ApiError("unavailable", text, {"reason": "storage"}, headers={"Retry-After": "5"})


def drop(key: str) -> None:
    """Remove bytes that nothing names; what cannot be removed now is swept later."""
    from obstore.exceptions import BaseError

    with suppress(BaseError, OSError):
        storage.of(current_app).delete(key)


def live(workspace_id: str) -> Any:
    """The condition of a workspace's files that are not deleted."""
    return (WorkspaceFile.workspace_id == workspace_id) & WorkspaceFile.deleted_at.is_(None)


def seen(workspace_id: str, project_id: str | None) -> Any:
    """The condition of the live files that a project sees: its own, and those shared with the whole workspace."""
    shared = WorkspaceFile.project_id.is_(None)
    return live(workspace_id) & (
        shared if project_id is None else shared | (WorkspaceFile.project_id == project_id)
    )


def rivals(workspace_id: str, project_id: str | None) -> Any:
    """The condition of the live files whose names a file of a project must not have. Without a project the file is
    shared, and every project sees it."""
    return live(workspace_id) if project_id is None else seen(workspace_id, project_id)


def require_shared(actor: Actor) -> None:
    """`forbidden` unless the actor may change files that are shared with the whole workspace: an editor of one team
    may not."""
    require(actor, "write")
    if not may_change_shared(actor):
        text = "Files shared with the whole workspace can be changed only by editors of the workspace."
        raise ApiError("forbidden", text, {"needs": "write", "role": "editor"})


def may_change_shared(actor: Actor) -> bool:
    """Whether the actor is an editor of the workspace itself."""
    return actor.workspace_role is not None and RANK[actor.workspace_role] >= RANK["editor"]


def usage(workspace_id: str) -> Usage:
    """What the files of a workspace take: live ones, deleted ones, and uploads in progress."""
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
    entries = select(func.count()).select_from(KeyMapEntry).where(KeyMapEntry.workspace_id == workspace_id)
    compat = int(db.session.scalar(sets) or 0) + limits.KEY_MAP_ENTRY_BYTES * int(
        db.session.scalar(entries) or 0
    )
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
    """Let a name mean the bytes of `held`; commits. Returns the file, and whether it was there before.

    The file belongs to the actor's project, or, with `shared`, to the whole workspace. `check` is called with the file
    that the name means now, locked, and may raise. When this fails, the bytes are removed.
    Errors: conflict (a folder and a file of one name), forbidden, quota_exceeded, those of `check`.
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
            if (
                deferred_deletion.held()
            ):  # a backup may still need the old bytes: they count until they are swept
                db.session.add(_hold(actor.workspace_id, file.storage_key, file.size))
            else:
                before = file.storage_key
        file.size, file.sha256, file.storage_key = held.size, held.sha256, held.key
        file.content_type, file.run_id, file.created_by = content_type, run_id, created_by
        file.updated_at = clock.now()
        db.session.flush()
        told = {"name": name, "size": held.size, "sha256": held.sha256, "replaced": replaced}
        audit_log.record(actor, "workspace_file.upload", file, join=True, **told)
        db.session.flush()
    except BaseException:
        db.session.rollback()
        release(held.key)
        raise
    # If this fails, it is not known whether it was done: the bytes stay, and the sweep looks at them.
    db.session.commit()
    for key in [*([before] if before is not None else []), *(old for _, old in removed)]:
        drop(key)
    return file, replaced


def named(actor: Actor, name: str, *, shared: bool = False, lock: bool = False) -> WorkspaceFile | None:
    """The live file that an upload of this name replaces; None for a new one.

    Errors: forbidden for a shared file that the actor may not change; conflict where a new shared file would have the
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
    """Hold the workspace's files until the transaction ends: names and quota stay as they are seen from here on."""
    statement = select(Workspace.id).where(Workspace.id == workspace_id)
    db.session.execute(
        statement.with_for_update(key_share=True)
    )  # rows that refer to it can still be inserted


def refuse_clash(workspace_id: str, name: str, project_id: str | None = None) -> None:
    """`conflict` when a folder of the name is a file, or the name is a folder: no file system could hold both."""
    others = rivals(workspace_id, project_id)
    folders = folders_of(name)
    over = select(WorkspaceFile.name).where(others, WorkspaceFile.name.in_(folders)).limit(1)
    found = db.session.scalar(over) if folders else None
    if found is not None:
        raise ApiError("conflict", f"`{found}` is a file: nothing can lie under it.", {"name": found})
    prefix = f"{name}/"
    under = select(WorkspaceFile.name).where(others, begins(prefix)).limit(1)
    found = db.session.scalar(under)
    if found is not None:
        raise ApiError("conflict", f"`{name}` is a folder: `{found}` lies in it.", {"name": found})


def begins(prefix: str) -> Any:
    """Whether a file's name begins with a text; LIKE would not tell its case apart on SQLite."""
    return func.substr(WorkspaceFile.name, 1, len(prefix)) == prefix


def refuse_over(
    workspace_id: str, size: int, *, replaces: int | None = None, what: str = "this file has"
) -> Usage:
    """`quota_exceeded` when a file of `size` bytes does not fit even if all deleted files are removed. `replaces` is
    the size of the file that it replaces; `what` is said of the bytes in the message. Returns what is used now."""
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
    """Remove the rows of the oldest deleted files until `size` more bytes fit into the quota, each with an audit entry.
    Returns them with their storage keys, whose bytes the caller drops after its commit. Call it with the files locked.

    Error: quota_exceeded, also while a backup runs, which may still need the bytes of deleted files.
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
    if deferred_deletion.held():
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
        told = {"name": file.name, "size": file.size, "reason": "quota"}
        audit_log.record(actor, "workspace_file.purge", file, join=True, **told)
        db.session.delete(file)
    db.session.flush()
    return removed


def sweep(now: datetime) -> int:
    """Remove bytes that no row names and that no upload can still be about to name. Returns how many files."""
    from obstore.exceptions import BaseError

    store = storage.of(current_app)
    try:
        found = [one.key for one in store.listing(ROOT) if _age(one.key, now) > limits.FILE_ORPHAN_SECONDS]
    except BaseError as error:
        log.warning("the storage could not be swept: %s", str(error).partition("\n")[0])
        return 0
    with writing() as session:  # of uploads that were cut short
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
    """Seconds since a key was made, which its id tells; 0 for a key that is none of ours."""
    text = key.rpartition("/")[2].removeprefix("fil_")
    try:
        made = sum(ids.ALPHABET.index(char) << (5 * place) for place, char in enumerate(reversed(text[:10])))
    except ValueError:
        return 0.0
    return now.timestamp() - made / 1000 if len(text) == 26 else 0.0
