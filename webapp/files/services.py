"""Workspace files: the inputs of scenarios and the outputs of their runs.

A file belongs to the project that it was uploaded to, and only members of that project's team see it. Files without a
project are shared with the whole workspace: every project reads them, and only editors of the workspace change them. A
file is found by name, among those of the actor's project and the shared files, or by id in any project of the actor's
teams. A name never has the form of an id (see `names`).

Content and database rows are stored consistently, even if a step fails. An upload reserves its size in the quota
(`StorageHold`) and stores the content under a new key. One transaction then checks the name and the quota and points
the row to the new content. After the commit, the previous content is removed; downloads that are already reading it can
finish. A process that dies in between leaves content without a row: it stays reserved until `sweep` removes it, based
on the age in its key. The reservation and the final transaction lock the workspace's row, so that concurrent uploads
cannot exceed the quota together.

Deleted files count towards the quota. If an upload needs their space, the oldest are removed permanently.
"""

from __future__ import annotations

import csv
import errno
import fcntl
import hashlib
import io
import json
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from mimetypes import guess_type
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import quote

from flask import current_app
from sqlalchemy import delete as delete_from
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from webapp import clock, document_process, ids, limits, pagination, storage
from webapp.access import tenancy
from webapp.access.actors import ROLE_RANKS, Actor, require_scope
from webapp.access.models import Workspace
from webapp.audit.services import audit_log
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db, read_session, write_session
from webapp.files import names
from webapp.files.models import CompatObject, KeyMapEntry, StorageHold, WorkspaceFile
from webapp.files.names import OUTPUTS_FOLDER, parent_folders
from webapp.files.workbooks import cell_text, shorten
from webapp.net import clamd
from webapp.storage import MissingError
from webapp.work import batch_delete
from webapp.work.models import MODELS

log = logging.getLogger(__name__)

ROOT: Final = "files"
"""The folder of workspace files in the storage: `files/<workspace id>/<an id that contains the time>`."""

BeforeSave = Callable[[WorkspaceFile | None], None]
_DISK_FULL: Final = tuple(f"os error {number}" for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG))


@dataclass(frozen=True, slots=True)
class StoredContent:
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
class PurgedFile:
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
    purged: list[PurgedFile] | None = None,
) -> StoredContent:
    """Store a stream of at most `size` bytes. The stream is scanned for viruses if a scanner is configured.

    The bytes are reserved in the quota first. If they do not fit, the oldest deleted files of the workspace are removed
    permanently and added to `purged`. `replaces` is the size of the file that the content will replace.

    Raise quota_exceeded; `unavailable_error` if the storage fails or the scanner does not respond; validation_error if
    the scanner finds something; and any error of the stream itself.
    """
    key = f"{ROOT}/{actor.workspace_id}/{ids.new('fil')}"
    lock(actor.workspace_id)
    removed = free_space(actor, size, replaces=replaces)
    db.session.add(_new_hold(actor.workspace_id, key, size))
    db.session.commit()
    for _, old in removed:
        delete_content(old)
    if purged is not None:
        purged += [item for item, _ in removed]
    digest = hashlib.sha256()
    try:
        with _virus_scan() as scan:

            def passing() -> Iterator[bytes]:
                for chunk in chunks:
                    digest.update(chunk)
                    scan(chunk)
                    yield chunk

            with translated_errors():
                stored = storage.get_storage(current_app).put(key, passing())
    except BaseException:
        release_content(key)
        raise
    return StoredContent(key, stored, digest.hexdigest())


def _new_hold(workspace_id: str, key: str, size: int) -> StorageHold:
    return StorageHold(key=key, workspace_id=workspace_id, area=ROOT, bytes=size, updated_at=clock.now())


def release_content(key: str) -> None:
    """Remove stored content that no row references, and its reservation."""
    delete_content(key)
    with suppress(SQLAlchemyError), write_session() as session:
        session.execute(delete_from(StorageHold).where(StorageHold.key == key))


@contextmanager
def _virus_scan() -> Iterator[Callable[[bytes], None]]:
    """Scan a file in pieces. The verdict is available at the end. Raise validation_error or unavailable."""
    address = current_app.config["SETTINGS"].scanner
    if address is None:
        yield lambda _piece: None
        return
    try:
        with clamd.open_scan(address) as scan:
            yield scan.feed
            found = scan.verdict()
    except clamd.ScannerError as error:
        log.error("the virus scanner at SCANNER_URL did not return a result: %s", error)
        text = "The virus scanner, which checks every file, is not responding. Nothing was stored. Try again."
        raise ApiError("unavailable", text, {"reason": "scanner"}, headers={"Retry-After": "60"}) from None
    if found is not None:
        log.warning("the virus scanner found %s in an uploaded file", found)
        text = f"The virus scanner found {found} in the file, so it was not stored."
        raise validation_error([Fault("", "malware", text)])


def read_chunks(key: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """Return stored bytes, as `Storage.get` does. Raise storage.MissingError or `unavailable_error` immediately, not
    during iteration."""
    with translated_errors():
        return storage.get_storage(current_app).get(key, start, end)


@contextmanager
def translated_errors() -> Iterator[None]:
    """Translate errors of the storage or the disk into `unavailable_error` with a message."""
    try:
        yield
    except OSError as error:
        log.error("the storage failed: %s", str(error).partition("\n")[0])
        raise unavailable_error(error) from error


def unavailable_error(error: Exception) -> ApiError:
    """Return the API error for a failure of the storage or the disk."""
    message = str(error)
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    if full or any(word in message for word in _DISK_FULL):
        text = "The server's disk is full. Nothing was stored, and existing data is unchanged."
        return ApiError("unavailable", text, {"reason": "disk_full"}, headers={"Retry-After": "60"})
    text = "The file storage is not responding correctly. Nothing was changed. Try again."
    return ApiError("unavailable", text, {"reason": "storage"}, headers={"Retry-After": "5"})


def delete_content(key: str) -> None:
    """Remove content that no row references. Content that cannot be removed now is swept later."""
    with suppress(OSError):
        storage.get_storage(current_app).delete(key)


def live_condition(workspace_id: str) -> Any:
    """Return the condition for files of a workspace that are not deleted."""
    return (WorkspaceFile.workspace_id == workspace_id) & WorkspaceFile.deleted_at.is_(None)


def visible_to(workspace_id: str, project_id: str | None) -> Any:
    """Return the condition for files visible to a project: its own and those shared with the whole workspace."""
    shared = WorkspaceFile.project_id.is_(None)
    return live_condition(workspace_id) & (
        shared if project_id is None else shared | (WorkspaceFile.project_id == project_id)
    )


def name_conflict_scope(workspace_id: str, project_id: str | None) -> Any:
    """Return the condition for files whose names a file of a project must not have. Without a project, the file is
    shared and therefore visible to every project."""
    return live_condition(workspace_id) if project_id is None else visible_to(workspace_id, project_id)


def require_shared(actor: Actor) -> None:
    """Raise `forbidden` unless the actor may change files that are shared with the whole workspace. Editors of a single
    team may not."""
    require_scope(actor, "write")
    if not can_change_shared(actor):
        text = "Files shared with the whole workspace can be changed only by editors of the workspace."
        raise ApiError("forbidden", text, {"needs": "write", "role": "editor"})


def can_change_shared(actor: Actor) -> bool:
    """Return whether the actor is an editor of the workspace itself."""
    return actor.workspace_role is not None and ROLE_RANKS[actor.workspace_role] >= ROLE_RANKS["editor"]


def usage(workspace_id: str) -> Usage:
    """Return the storage used by a workspace's files: live files, deleted files and uploads in progress."""
    deleted = WorkspaceFile.deleted_at.is_not(None)
    sums = select(deleted, func.coalesce(func.sum(WorkspaceFile.size), 0), func.count())
    statement = sums.where(WorkspaceFile.workspace_id == workspace_id).group_by(deleted)
    found = {bool(row[0]): (int(row[1]), int(row[2])) for row in db.session.execute(statement)}
    holds = select(func.coalesce(func.sum(StorageHold.bytes), 0)).where(
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
        *found.get(False, (0, 0)), *found.get(True, (0, 0)), int(db.session.scalar(holds) or 0), compat
    )


def save_file(
    actor: Actor,
    name: str,
    content: StoredContent,
    *,
    content_type: str,
    run_id: str | None = None,
    created_by: str | None = None,
    check: BeforeSave | None = None,
    shared: bool = False,
) -> tuple[WorkspaceFile, bool]:
    """Point a file name to the content of `content` and commit. Return the file and whether it existed before.

    The file belongs to the actor's project, or, with `shared`, to the whole workspace. `check` is called with the
    locked file that currently has the name, and may raise an error. The content is removed on failure.
    Raise conflict (a folder and a file have the same name), forbidden, quota_exceeded, or an error of `check`.
    """
    before = None
    project_id, team_id = (None, None) if shared else (actor.project_id, actor.team_id)
    try:
        lock(actor.workspace_id)
        file = find_replaced(actor, name, shared=shared, lock=True)
        if check is not None:
            check(file)
        replaced = file is not None
        db.session.execute(delete_from(StorageHold).where(StorageHold.key == content.key))
        if file is None:
            check_name_conflict(actor.workspace_id, name, project_id)
            removed = free_space(actor, content.size)
            file = WorkspaceFile(id=ids.new("fil"), workspace_id=actor.workspace_id, name=name)
            file.project_id, file.team_id = project_id, team_id
            db.session.add(file)
        else:
            removed = free_space(actor, content.size, replaces=file.size)
            if (
                batch_delete.is_suspended()
            ):  # a backup may still need the old bytes: they count until they are swept
                db.session.add(_new_hold(actor.workspace_id, file.storage_key, file.size))
            else:
                before = file.storage_key
        file.size, file.sha256, file.storage_key = content.size, content.sha256, content.key
        file.content_type, file.run_id, file.created_by = content_type, run_id, created_by
        file.updated_at = clock.now()
        db.session.flush()
        audit_log.record(
            actor,
            "workspace_file.upload",
            file,
            join=True,
            name=name,
            size=content.size,
            sha256=content.sha256,
            replaced=replaced,
        )
        db.session.flush()
    except BaseException:
        db.session.rollback()
        release_content(content.key)
        raise
    # If this fails, the commit may still have taken place, so keep the content and let the sweep decide.
    db.session.commit()
    for key in [*([before] if before is not None else []), *(old for _, old in removed)]:
        delete_content(key)
    return file, replaced


def find_replaced(
    actor: Actor, name: str, *, shared: bool = False, lock: bool = False
) -> WorkspaceFile | None:
    """Return the live file that an upload with this name replaces, or None for a new file.

    Raise forbidden for a shared file that the actor may not change, and conflict if a new shared file would have the
    name of a project's file.
    """
    project_id = None if shared else actor.project_id
    statement = select(WorkspaceFile).where(
        name_conflict_scope(actor.workspace_id, project_id), WorkspaceFile.name == name
    )
    statement = statement.order_by(WorkspaceFile.project_id.is_(None).desc()).limit(1)
    if lock:
        statement = statement.with_for_update().execution_options(populate_existing=True)
    file = db.session.scalar(statement)
    if shared or (file is not None and file.project_id is None and actor.project_id is not None):
        require_shared(actor)
    if file is not None and shared and file.project_id is not None:
        text = f"A project already has a file named `{name}`. Delete or move that file first, or choose another name."
        raise ApiError("conflict", text, {"name": name, "project_id": file.project_id})
    return file


def lock(workspace_id: str) -> None:
    """Lock the workspace's files until the end of the transaction, so that names and quota do not change."""
    statement = select(Workspace.id).where(Workspace.id == workspace_id)
    db.session.execute(
        statement.with_for_update(key_share=True)
    )  # rows that refer to it can still be inserted


def check_name_conflict(workspace_id: str, name: str, project_id: str | None = None) -> None:
    """Raise `conflict` if a folder in the name is a file or the name is a folder: no file system could hold both."""
    conflicting = name_conflict_scope(workspace_id, project_id)
    folders = parent_folders(name)
    parents = select(WorkspaceFile.name).where(conflicting, WorkspaceFile.name.in_(folders)).limit(1)
    found = db.session.scalar(parents) if folders else None
    if found is not None:
        raise ApiError("conflict", f"`{found}` is a file, so it cannot contain other files.", {"name": found})
    prefix = f"{name}/"
    children = select(WorkspaceFile.name).where(conflicting, name_starts_with(prefix)).limit(1)
    found = db.session.scalar(children)
    if found is not None:
        raise ApiError("conflict", f"`{name}` is a folder that contains `{found}`.", {"name": found})


def name_starts_with(prefix: str) -> Any:
    """Return whether a file's name begins with a text. LIKE ignores case on SQLite."""
    return func.substr(WorkspaceFile.name, 1, len(prefix)) == prefix


def check_quota(
    workspace_id: str, size: int, *, replaces: int | None = None, what: str = "this file has"
) -> Usage:
    """Raise `quota_exceeded` if a file of `size` bytes does not fit even when all deleted files are removed. `replaces`
    is the size of the file that it replaces, and `what` describes the bytes in the message. Return the bytes used now.
    """
    now = usage(workspace_id)
    limit = limits.MAX_WORKSPACE_FILES_BYTES
    used = now.bytes + now.compat_bytes
    free = limit - used - now.held_bytes + (replaces or 0)
    details: Mapping[str, int] = {
        "limit_bytes": limit,
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
            f"The workspace's files can use at most {limit:,} bytes. {used:,} are used, and {what} {size:,}: "
            "delete some files first."
        )
        if now.held_bytes:
            text = (
                text.removesuffix(".") + f", or wait for other uploads ({now.held_bytes:,} bytes) to finish."
            )
        raise ApiError("quota_exceeded", text, details)
    if replaces is None and now.files >= limits.MAX_WORKSPACE_FILES:
        text = f"A workspace can have at most {limits.MAX_WORKSPACE_FILES:,} files and has {now.files:,}. "
        text += "Delete some files first."
        raise ApiError("quota_exceeded", text, {**details, "limit_files": limits.MAX_WORKSPACE_FILES})
    return now


def free_space(
    actor: Actor, size: int, *, replaces: int | None = None, what: str = "this file has"
) -> list[tuple[PurgedFile, str]]:
    """Delete the rows of the oldest deleted files until `size` more bytes fit into the quota, each with an audit entry.
    Return the files with their storage keys; the caller drops their content after its commit. The files must be locked.

    Raise quota_exceeded, also during a backup, which may still need the content of deleted files.
    """
    current = check_quota(actor.workspace_id, size, replaces=replaces, what=what)
    missing = (
        current.bytes
        + current.compat_bytes
        + current.trash_bytes
        + current.held_bytes
        + size
        - (replaces or 0)
        - limits.MAX_WORKSPACE_FILES_BYTES
    )
    excess_files = current.trash_files - limits.MAX_WORKSPACE_FILES
    if missing <= 0 and excess_files < 0:
        return []
    if batch_delete.is_suspended():
        text = "A backup is running, so deleted files cannot be removed to free space. Try again in a few minutes."
        raise ApiError("quota_exceeded", text, {"reason": "backup"}, headers={"Retry-After": "60"})
    statement = select(WorkspaceFile).where(
        WorkspaceFile.workspace_id == actor.workspace_id, WorkspaceFile.deleted_at.is_not(None)
    )
    removed = []
    for file in db.session.scalars(statement.order_by(WorkspaceFile.deleted_at, WorkspaceFile.id)):
        if missing <= 0 and excess_files < 0:
            break
        missing, excess_files = missing - file.size, excess_files - 1
        removed.append((PurgedFile(file.id, file.name, file.size, file.team_id), file.storage_key))
        audit_log.record(
            actor, "workspace_file.purge", file, join=True, name=file.name, size=file.size, reason="quota"
        )
        db.session.delete(file)
    db.session.flush()
    return removed


def sweep(now: datetime) -> int:
    """Remove content that no row references and that no running upload can still use. Return the number of files."""
    store = storage.get_storage(current_app)
    try:
        found = [
            item.key
            for item in store.listing(ROOT)
            if _age_seconds(item.key, now) > limits.FILE_ORPHAN_SECONDS
        ]
    except storage.StorageError as error:
        log.warning("could not clean up the storage: %s", str(error).partition("\n")[0])
        return 0
    with write_session() as session:  # From interrupted uploads
        cutoff = now - timedelta(seconds=limits.FILE_ORPHAN_SECONDS)
        expired = (StorageHold.area.in_(("files", "exports")), StorageHold.updated_at < cutoff)
        session.execute(delete_from(StorageHold).where(*expired))
    removed = 0
    for start in range(0, len(found), _BATCH):
        batch = found[start : start + _BATCH]
        with read_session() as session:
            referenced = set(
                session.scalars(select(WorkspaceFile.storage_key).where(WorkspaceFile.storage_key.in_(batch)))
            )
        for key in batch:
            if key not in referenced:
                delete_content(key)
                removed += 1
    return removed


_BATCH: Final = 500


def _age_seconds(key: str, now: datetime) -> float:
    """Return the seconds since a key was created, derived from its id, or 0 if the key was not created here."""
    text = key.rpartition("/")[2].removeprefix("fil_")
    try:
        milliseconds = sum(
            ids.ALPHABET.index(char) << (5 * index) for index, char in enumerate(reversed(text[:10]))
        )
    except ValueError:
        return 0.0
    return now.timestamp() - milliseconds / 1000 if len(text) == 26 else 0.0


# --- Files of projects --------------------------------------------------------------------------------------

_MEDIA_TYPE: Final = re.compile(
    rf"[a-z0-9][a-z0-9!#$&^_.+-]{{0,{limits.FILE_TYPE_CHARS - 1}}}/[a-z0-9][a-z0-9!#$&^_.+-]{{0,70}}"
)
_DEFAULT_TYPE: Final = "application/octet-stream"
# Media types that `mimetypes` does not know, or reports differently, on some machines.
_TYPES_BY_EXTENSION: Final = {
    "csv": "text/csv",
    "json": "application/json",
    "ndjson": "application/x-ndjson",
    "jsonl": "application/x-ndjson",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "parquet": "application/vnd.apache.parquet",
    "sql": "application/sql",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "md": "text/markdown",
    "py": "text/x-python",
    "txt": "text/plain",
    "log": "text/plain",
}
SORTS: Final = {"name": WorkspaceFile.name, "size": WorkspaceFile.size, "updated": WorkspaceFile.updated_at}


@dataclass(frozen=True, slots=True)
class Folder:
    """A subfolder: its full name, and the contents at any depth below it."""

    name: str
    files: int
    bytes: int

    @property
    def base_name(self) -> str:
        """The name of the folder without its parents."""
        return names.base_name(self.name)


def as_json(file: WorkspaceFile) -> dict[str, Any]:
    """Return a file as the API shows it; `download_url` is a path in this function."""
    return {
        "id": file.id,
        "name": file.name,
        "size": file.size,
        "content_type": file.content_type,
        "sha256": file.sha256,
        "run_id": file.run_id,
        "project_id": file.project_id,
        "team_id": file.team_id,
        "download_url": f"/workspace/files/{quote(file.name, safe='/')}",
        "created_by": file.created_by,
        "created_at": clock.to_text(file.created_at),
        "updated_at": clock.to_text(file.updated_at),
        "deleted_at": clock.to_text(file.deleted_at),
    }


def etag(file: WorkspaceFile) -> str:
    """Return the ETag of a file: the SHA-256 of its content, independent of its name."""
    return f'"{file.sha256}"'


def listing(
    actor: Actor,
    *,
    cursor: str | None = None,
    limit: int = limits.PAGE_LIMIT_DEFAULT,
    q: str | None = None,
    folder: str | None = None,
    sort: str | None = None,
    flat: bool = True,
    run_id: str | None = None,
) -> pagination.Page[WorkspaceFile]:
    """Return a page of the live files of the project and the shared files: newest first, or ordered by `name`, `size`
    or `updated` (with `-` for descending order).

    `folder` returns files at any depth below it; with `flat=False`, only direct children ("": files outside of any
    folder).
    `run_id` returns the files of a run: those outside of `outputs/`, which it reads, and those that it stored.
    Raise not_found for a run that the actor may not read.
    """
    statement = select(WorkspaceFile).where(visible_to(actor.workspace_id, actor.project_id))
    prefix = prefix_of(folder)
    if prefix:
        statement = statement.where(name_starts_with(prefix))
    if not flat:
        statement = statement.where(~_name_after(prefix).contains("/", autoescape=True))
    if run_id is not None:
        runs: Any = MODELS["run"]  # A model with this mixin, which its type does not declare
        tenancy.get(actor, runs, run_id)
        of_run = WorkspaceFile.run_id == run_id
        statement = statement.where(of_run | ~name_starts_with(f"{names.OUTPUTS_FOLDER}/"))
    key = (sort or "").removeprefix("-")
    return pagination.paginate(
        statement,
        name="workspace_files",
        id_column=WorkspaceFile.id,
        cursor=cursor,
        limit=limit,
        search=(names.normalize(q) if q else None, WorkspaceFile.name),
        order_column=SORTS.get(key),
        descending=sort is None or sort.startswith("-"),
        context=f"{actor.workspace_id} {actor.project_id} {prefix} {flat} {run_id or ''}",
    )


def prefix_of(folder: str | None) -> str:
    """Return the prefix of all file names in a folder, "" for the root of the workspace."""
    text = names.normalize(folder or "").strip("/")
    return f"{text}/" if text else ""


def folders(actor: Actor, folder: str | None = None) -> list[Folder]:
    """Return the direct subfolders of a folder (None: of the root of the workspace), by name."""
    prefix = prefix_of(folder)
    statement = select(WorkspaceFile.name, WorkspaceFile.size).where(
        visible_to(actor.workspace_id, actor.project_id)
    )
    statement = statement.where(_name_after(prefix).contains("/", autoescape=True))
    if prefix:
        statement = statement.where(name_starts_with(prefix))
    found: dict[str, tuple[int, int]] = {}
    for name, size in db.session.execute(statement):
        first = name[len(prefix) :].partition("/")[0]
        files, total = found.get(first, (0, 0))
        found[first] = files + 1, total + size
    return [
        Folder(prefix + name, *totals)
        for name, totals in sorted(found.items(), key=lambda item: item[0].casefold())
    ]


def _name_after(prefix: str) -> Any:
    from sqlalchemy import func

    return func.substr(WorkspaceFile.name, len(prefix) + 1)


def find(
    actor: Actor,
    key: str,
    scope: str = "read",
    *,
    lock: bool = False,
    deleted: bool = False,
    project_id: str | None = None,
) -> WorkspaceFile:
    """Find a file by name or id, and check that the actor has the right `scope`. `deleted` also finds deleted files, by
    id.

    Names are those of `project_id` (default: the actor's own project) and of shared files.
    Raise not_found or forbidden.
    """
    statement = select(WorkspaceFile)
    if names.is_id(key):
        statement = statement.where(WorkspaceFile.workspace_id == actor.workspace_id, WorkspaceFile.id == key)
        if not deleted:
            statement = statement.where(WorkspaceFile.deleted_at.is_(None))
    elif names.faults(key):
        raise not_found_error(key)
    else:
        visible = visible_to(actor.workspace_id, project_id or actor.project_id)
        statement = statement.where(visible, WorkspaceFile.name == names.normalize(key))
    if lock:
        statement = statement.with_for_update().execution_options(populate_existing=True)
    file = db.session.scalar(statement)
    if file is None or (file.team_id is not None and actor.role_in(file.team_id) is None):
        raise not_found_error(key)
    if file.project_id is None and scope == "write":
        require_shared(actor)
    require_scope(actor, scope, file.team_id)
    return file


def not_found_error(key: str) -> ApiError:
    """Return the 404 error for a file that does not exist for the actor."""
    kind = "id" if names.is_id(key) else "name"
    return ApiError("not_found", "There is no such file.", {kind: key[: limits.MAX_FILE_NAME_CHARS]})


def upload(
    actor: Actor,
    name: str,
    content: IO[bytes],
    *,
    content_type: str | None = None,
    check: BeforeSave | None = None,
    shared: bool = False,
    purged: list[PurgedFile] | None = None,
) -> tuple[WorkspaceFile, bool]:
    """Store a file under a name, replacing any file with that name, and commit. Return the file and whether it replaced
    another. A file that a run uploads is recorded as an output of the run.

    A new file belongs to the actor's project, or, with `shared`, to the whole workspace. `content` is read in pieces
    from its beginning. No transaction is open while the content is transferred to the storage. Deleted files that were
    removed permanently to free space are added to `purged` if the actor may see them.
    Raise validation_error, forbidden, payload_too_large, quota_exceeded, conflict, unavailable, or an error of `check`.
    """
    require_scope(actor, "write")
    name = names.validated(name)
    size = content.seek(0, 2)
    content.seek(0)
    if size > limits.MAX_UPLOAD_BYTES:
        raise too_large_error(size)
    present = find_replaced(actor, name, shared=shared)
    if check is not None:
        check(present)  # Fail early, before the transfer
    if present is None:
        check_name_conflict(actor.workspace_id, name, None if shared else actor.project_id)
    replaces = present.size if present else None
    check_quota(actor.workspace_id, size, replaces=replaces)
    db.session.rollback()
    removed: list[PurgedFile] = []
    stored = put(actor, size, _iterate_chunks(content), replaces=replaces, purged=removed)
    if purged is not None:
        purged += [
            item for item in removed if item.team_id is None or actor.role_in(item.team_id) is not None
        ]
    media_type = media_type_of(name, content_type)
    return save_file(
        actor,
        name,
        stored,
        content_type=media_type,
        run_id=actor.run_id,
        created_by=actor.user_id,
        check=check,
        shared=shared,
    )


def _iterate_chunks(content: IO[bytes]) -> Iterator[bytes]:
    while chunk := content.read(limits.STORAGE_CHUNK_BYTES):
        yield chunk


def too_large_error(size: int | None = None) -> ApiError:
    """Return `payload_too_large` with the limit and the size. `size` is None if the limit was exceeded and the total is
    unknown."""
    limit = limits.MAX_UPLOAD_BYTES
    has = f"this one has {size:,}" if size is not None else "this one has more"
    details = {"max_bytes": limit, **({"bytes": size} if size is not None else {})}
    return ApiError("payload_too_large", f"A file can have at most {limit:,} bytes (50 MB); {has}.", details)


def media_type_of(name: str, claimed: str | None = None) -> str:
    """Return a file's media type: the one that the uploader declared, else one based on the file extension."""
    media_type = (claimed or "").partition(";")[0].strip().casefold()
    if media_type != _DEFAULT_TYPE and _MEDIA_TYPE.fullmatch(media_type):
        return media_type
    extension = names.base_name(name).rpartition(".")[2].casefold()
    return _TYPES_BY_EXTENSION.get(extension) or guess_type(f"x.{extension}")[0] or _DEFAULT_TYPE


def delete(actor: Actor, file: WorkspaceFile) -> WorkspaceFile:
    """Soft-delete a locked file and commit. Its name is free immediately. Its bytes count towards the quota until it is
    removed permanently: after 30 days, or as soon as an upload needs the space."""
    if file.deleted_at is None:
        file.deleted_at = clock.now()
        audit_log.record(actor, "workspace_file.delete", file, join=True, name=file.name)
    db.session.commit()
    return file


def restore(actor: Actor, file_id: str) -> WorkspaceFile:
    """Restore a file within 30 days of its deletion and commit.

    Raise not_found, quota_exceeded, or conflict if another file or folder has the name in the meantime.
    """
    require_scope(actor, "write")
    if not names.is_id(file_id):  # Several deleted files can have the same name
        raise not_found_error(file_id)
    lock(actor.workspace_id)
    file = find(actor, file_id, "write", lock=True, deleted=True)
    if file.deleted_at is None:
        db.session.commit()
        return file
    if clock.now() - file.deleted_at > timedelta(days=limits.RESTORE_DAYS):
        raise not_found_error(file_id)
    clashing = name_conflict_scope(actor.workspace_id, file.project_id)
    existing_id = db.session.scalar(select(WorkspaceFile.id).where(clashing, WorkspaceFile.name == file.name))
    if existing_id is not None:
        text = f"A file named `{file.name}` already exists. Delete or rename it first."
        raise ApiError("conflict", text, {"name": file.name, "id": existing_id})
    check_name_conflict(actor.workspace_id, file.name, file.project_id)
    check_quota(actor.workspace_id, file.size)
    file.deleted_at = None
    audit_log.record(actor, "workspace_file.restore", file, join=True, name=file.name)
    db.session.commit()
    return file


def open_file(actor: Actor, file: WorkspaceFile, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """Return the content of a file as read from the database. Raise storage.MissingError (the file was replaced in the
    meantime) or unavailable, both immediately."""
    require_scope(actor, "read", file.team_id)
    return read_chunks(file.storage_key, start, end)


MissingContentError = storage.MissingError


_XLSX: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_BINARY_TYPES: Final = ("image/", "audio/", "video/", "font/")
_DELIMITERS: Final = ",;\t|"


@dataclass(frozen=True, slots=True)
class Preview:
    """A file preview: a table (`columns`, `rows` of texts), or `text`, or only a `note` with the reason why there is no
    preview."""

    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    text: str = ""
    note: str = ""
    is_truncated: bool = field(default=False)


def preview(file: WorkspaceFile) -> Preview:
    """Return the preview of a file. Invalid content and storage failures never raise an error."""
    if file.size == 0:
        return Preview(note="The file is empty.")
    kind, ending = file.content_type, file.name.rpartition(".")[2].casefold()
    try:
        if kind == _XLSX or ending == "xlsx":
            return _preview_workbook(file)
        if kind.startswith(_BINARY_TYPES):
            return Preview(note="There is no preview for this kind of file.")
        raw = b"".join(read_chunks(file.storage_key, 0, limits.FILE_PREVIEW_BYTES))
    except (ApiError, MissingError):
        return Preview(note="The file storage is currently unavailable.")
    text = _decode(raw)
    if text is None:
        return Preview(note="There is no preview for this kind of file.")
    cut = file.size > len(raw)
    if cut:
        text = text.rpartition("\n")[0] or text
    if kind == "text/csv" or ending in ("csv", "tsv"):
        return _preview_csv(text, cut) or _preview_text(text, cut)
    if kind in ("application/json", "application/x-ndjson") or ending in ("json", "ndjson", "jsonl"):
        return _preview_json(text, cut) or _preview_text(text, cut)
    return _preview_text(text, cut)


def _decode(raw: bytes) -> str | None:
    """Decode bytes by their byte order mark, else as UTF-8, else as Windows-1252. Return None for binary data."""
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig")):
        if raw.startswith(mark):
            return raw.decode(encoding, "replace")
    if b"\0" in raw:
        return None
    for dropped in range(4):  # The preview may end in the middle of a character
        try:
            return raw[: len(raw) - dropped].decode()
        except UnicodeDecodeError:
            continue
    return raw.decode("cp1252", "replace")


def _preview_text(text: str, cut: bool) -> Preview:
    lines = text.splitlines()
    visible = [shorten(line) for line in lines[: limits.FILE_PREVIEW_LINES]]
    return Preview(text="\n".join(visible), is_truncated=cut or len(lines) > len(visible))


def _preview_csv(text: str, cut: bool) -> Preview | None:
    first = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first.count)
    rows = []
    try:
        for row in csv.reader(io.StringIO(text), delimiter=delimiter):
            if row:
                rows.append(row)
            if len(rows) > limits.FILE_PREVIEW_ROWS + 1:
                break
    except csv.Error:
        return None
    return _build_table_preview(rows[0], rows[1:], cut) if rows else None


def _preview_json(text: str, cut: bool) -> Preview | None:
    """Show the first elements of an array, or of a sequence of values; None if the text is not JSON."""
    text = text.lstrip("\ufeff \t\r\n")
    decoder, array = json.JSONDecoder(), text.startswith("[")
    found: list[Any] = []
    position = 1 if array else 0
    while len(found) <= limits.FILE_PREVIEW_ROWS:
        while position < len(text) and text[position] in " \t\r\n,":
            position += 1
        if position >= len(text) or (array and text[position] == "]"):
            break
        try:
            value, position = decoder.raw_decode(text, position)
        except RecursionError:
            return None
        except ValueError:  # the preview ends within this element, or the rest is not JSON
            break
        found.append(value)
    if len(found) == 1 and isinstance(found[0], list):
        found = found[0]
    if not found:
        return None
    more = len(found) > limits.FILE_PREVIEW_ROWS
    found = found[: limits.FILE_PREVIEW_ROWS]
    if not all(isinstance(item, Mapping) for item in found):
        return _build_table_preview(["value"], [[cell_text(item)] for item in found], cut or more)
    columns = list(dict.fromkeys(str(key) for item in found for key in item))
    return _build_table_preview(
        columns, [[cell_text(item.get(key)) for key in columns] for item in found], cut or more
    )


def _preview_workbook(file: WorkspaceFile) -> Preview:
    with tempfile.TemporaryFile() as copy:
        for piece in read_chunks(file.storage_key):
            copy.write(piece)
        try:
            found = document_process.run("webapp.files.workbooks:first_rows", copy)
        except document_process.DocumentError as error:
            return Preview(note=f"There is no preview. {error.message}")
    if "note" in found:
        return Preview(note=found["note"])
    rows = found["rows"]
    return (
        _build_table_preview(rows[0], rows[1:], False) if rows else Preview(note="The first sheet is empty.")
    )


def _build_table_preview(columns: Sequence[str], rows: Sequence[Sequence[str]], more: bool) -> Preview:
    limit = limits.FILE_PREVIEW_COLUMNS
    note = f"The first {limit} columns are shown." if max(map(len, [columns, *rows])) > limit else ""
    visible = [[shorten(cell) for cell in row[:limit]] for row in rows[: limits.FILE_PREVIEW_ROWS]]
    width = min(limit, max(map(len, [columns, *rows])))
    heads = [shorten(cell) for cell in columns[:limit]]
    return Preview(
        columns=[*heads, *[""] * (width - len(heads))],
        rows=[[*row, *[""] * (width - len(row))] for row in visible],
        note=note,
        is_truncated=more or len(rows) > len(visible),
    )


_READ_ONLY: Final = 0o444
_COPY_ERRORS: Final = frozenset(
    {errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS}
)
_ABANDONED_SECONDS: Final = limits.FILE_ORPHAN_SECONDS


@dataclass(frozen=True, slots=True)
class _RequestedFile:
    id: str
    name: str
    size: int
    sha256: str
    storage_key: str


def sync(workspace_id: str, project_id: str | None, folder: Path, *, link: bool = True) -> None:
    """Write every live file of a project, and those shared with the workspace, to a folder under its name, except files
    under `outputs/`.

    Files are read-only and may be hard links into the cache. `link=False` creates copies, for programs that can write
    to read-only files. A file that is replaced during the call has either its old or its new content, never a mixture;
    a file that is deleted during the call may be missing. Raise `unavailable_error` if the storage does not respond or
    the disk is full.
    """
    files = _list_files(workspace_id, project_id)
    cache = Path(current_app.config["SETTINGS"].data_dir) / "cache" / "files"
    with translated_errors():
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        for item in files:
            target = folder / item.name
            target.parent.mkdir(parents=True, exist_ok=True)
            _link_from_cache(cache, item, target, link=link)
        _evict(cache)


def _list_files(workspace_id: str, project_id: str | None) -> list[_RequestedFile]:
    table = WorkspaceFile
    columns = table.id, table.name, table.size, table.sha256, table.storage_key
    with read_session() as session:
        statement = select(*columns).where(
            visible_to(workspace_id, project_id), ~name_starts_with(f"{OUTPUTS_FOLDER}/")
        )
        return [_RequestedFile(*row) for row in session.execute(statement.order_by(table.name))]


def _link_from_cache(cache: Path, file: _RequestedFile, target: Path, *, link: bool) -> None:
    """Place one file into the folder. If it was replaced or evicted in the meantime, read it again."""
    current = file
    for _ in range(limits.FILE_CACHE_ATTEMPTS):
        try:
            _link_or_copy(_cached_file(cache, current), target, link=link)
            return
        except storage.MissingError:
            found = _reload_requested_file(current)
            if found is None:
                return
            current = found
        except FileNotFoundError:
            continue  # Evicted between the lookup and the link
    raise ApiError("unavailable", f"`{file.name}` changes too often to be read.", {"reason": "storage"})


def _reload_requested_file(file: _RequestedFile) -> _RequestedFile | None:
    """Return the current version of a file, or None if it was deleted or renamed. Raise `unavailable_error` if its
    content is missing although the row is unchanged."""
    table = WorkspaceFile
    columns = table.id, table.name, table.size, table.sha256, table.storage_key
    with read_session() as session:
        statement = select(*columns).where(
            table.id == file.id, table.deleted_at.is_(None), table.name == file.name
        )
        row = session.execute(statement).one_or_none()
    if row is None:
        return None
    now = _RequestedFile(*row)
    if now.storage_key == file.storage_key:
        raise ApiError(
            "unavailable", f"The content of `{file.name}` is missing from the storage.", {"reason": "storage"}
        )
    return now


def _cached_file(cache: Path, requested: _RequestedFile) -> Path:
    """Return the file in the cache, fetching it if necessary. Raise storage.MissingError, unavailable or OSError."""
    path = cache / requested.sha256[:2] / requested.sha256
    with suppress(FileNotFoundError):
        status = path.stat()
        if status.st_size == requested.size:
            # Update the access time only: programs may rely on the modification time.
            os.utime(path, ns=(int(clock.epoch() * 1e9), status.st_mtime_ns))
            return path
        path.unlink(missing_ok=True)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    content = read_chunks(requested.storage_key)
    digest = hashlib.sha256()
    handle, name = tempfile.mkstemp(prefix=".new-", dir=cache)
    try:
        with os.fdopen(handle, "wb") as file:
            for piece in content:
                digest.update(piece)
                file.write(piece)
            os.fchmod(file.fileno(), _READ_ONLY)
        if digest.hexdigest() != requested.sha256:
            raise ApiError(
                "unavailable", f"The content of `{requested.name}` is damaged.", {"reason": "storage"}
            )
        os.replace(name, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise
    return path


def _link_or_copy(path: Path, target: Path, *, link: bool) -> None:
    """Place the cached file into the folder under its name, replacing any existing file."""
    target.unlink(missing_ok=True)
    if link:
        try:
            os.link(path, target)
            return
        except OSError as error:
            if error.errno not in _COPY_ERRORS:
                raise
    shutil.copyfile(path, target)
    target.chmod(_READ_ONLY)


def _evict(cache: Path) -> None:
    """Evict the least recently used files until the cache is small enough. Return immediately if another process is
    doing this."""
    with (cache / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        now = clock.epoch()
        for leftover in cache.glob(".new-*"):
            with suppress(FileNotFoundError):
                if now - leftover.stat().st_mtime > _ABANDONED_SECONDS:
                    leftover.unlink()
        entries = []
        for path in cache.glob("??/*"):
            with suppress(FileNotFoundError):
                status = path.stat()
                entries.append((status.st_atime_ns, status.st_size, path))
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= limits.FILE_CACHE_BYTES:
                return
            path.unlink(missing_ok=True)
            total -= size
