"""Bytes and rows of workspace files together: nothing is half there, whatever fails when.

Bytes are put first, under a key of their own; then one transaction checks the name and the quota, switches the row to
them and is committed; then the bytes it named before are removed. Whoever reads those goes on reading. A process that
dies in between leaves bytes that no row names: `sweep` removes them, whose age stands in their keys. The workspace's
row is locked for the switch, so that two uploads at once cannot both take the last of the quota.
"""

from __future__ import annotations

import errno
import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from flask import current_app
from sqlalchemy import func, select

from webapp import clock, ids, limits, storage
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db, reading
from webapp.models import Workspace, WorkspaceFile
from webapp.net import clamd
from webapp.services import audit, holding
from webapp.services.actors import Actor
from webapp.services.workspace_files_names import folders_of

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
    """What a workspace's live files take, and how many they are."""

    bytes: int
    files: int


def put(workspace_id: str, chunks: Iterable[bytes]) -> Put:
    """Store a stream, and show it to the virus scanner on its way, where there is one.

    Errors: `unavailable` when the storage does not take it or the scanner says nothing, validation_error when it finds
    something; whatever the stream itself raises.
    """
    key = f"{ROOT}/{workspace_id}/{ids.new('fil')}"
    digest = hashlib.sha256()
    try:
        with _scanned() as look:

            def passing() -> Iterator[bytes]:
                for chunk in chunks:
                    digest.update(chunk)
                    look(chunk)
                    yield chunk

            with reachable():
                size = storage.of(current_app).put(key, passing())
    except ApiError:
        drop(key)
        raise
    return Put(key, size, digest.hexdigest())


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


def usage(workspace_id: str) -> Usage:
    """What the live files of a workspace take."""
    statement = select(func.coalesce(func.sum(WorkspaceFile.size), 0), func.count()).where(live(workspace_id))
    row = db.session.execute(statement).one()
    return Usage(int(row[0]), int(row[1]))


def keep(
    actor: Actor,
    name: str,
    held: Put,
    *,
    content_type: str,
    run_id: str | None = None,
    created_by: str | None = None,
    check: Check | None = None,
) -> tuple[WorkspaceFile, bool]:
    """Let a name mean the bytes of `held`; commits. Returns the file, and whether it was there before.

    `check` sees the file that the name means now, locked, and may refuse. When this fails, the bytes are removed.
    Errors: conflict (a folder and a file of one name), quota_exceeded, those of `check`.
    """
    before = None
    try:
        lock(actor.workspace_id)
        here = live(actor.workspace_id) & (WorkspaceFile.name == name)
        file = db.session.scalar(
            select(WorkspaceFile).where(here).with_for_update().execution_options(populate_existing=True)
        )
        if check is not None:
            check(file)
        replaced = file is not None
        if file is None:
            refuse_clash(actor.workspace_id, name)
            refuse_over(actor.workspace_id, held.size)
            file = WorkspaceFile(id=ids.new("fil"), workspace_id=actor.workspace_id, name=name)
            db.session.add(file)
        else:
            refuse_over(actor.workspace_id, held.size, replaces=file.size)
            before = file.storage_key
        file.size, file.sha256, file.storage_key = held.size, held.sha256, held.key
        file.content_type, file.run_id, file.created_by = content_type, run_id, created_by
        file.updated_at = clock.now()
        db.session.flush()
        told = {"name": name, "size": held.size, "sha256": held.sha256, "replaced": replaced}
        audit.record(actor, "workspace_file.upload", file, join=True, **told)
        db.session.flush()
    except BaseException:
        db.session.rollback()
        drop(held.key)
        raise
    # When this fails it is not known whether it was done: the bytes stay, and the sweep looks at them.
    db.session.commit()
    if before is not None and not holding.held():
        drop(before)
    return file, replaced


def lock(workspace_id: str) -> None:
    """Hold the workspace's files until the transaction ends: names and quota stay as they are seen from here on."""
    statement = select(Workspace.id).where(Workspace.id == workspace_id)
    db.session.execute(
        statement.with_for_update(key_share=True)
    )  # rows that refer to it can still be inserted


def refuse_clash(workspace_id: str, name: str) -> None:
    """`conflict` when a folder of the name is a file, or the name is a folder: no file system could hold both."""
    folders = folders_of(name)
    over = select(WorkspaceFile.name).where(live(workspace_id), WorkspaceFile.name.in_(folders)).limit(1)
    found = db.session.scalar(over) if folders else None
    if found is not None:
        raise ApiError("conflict", f"`{found}` is a file: nothing can lie under it.", {"name": found})
    prefix = f"{name}/"
    under = select(WorkspaceFile.name).where(live(workspace_id), begins(prefix)).limit(1)
    found = db.session.scalar(under)
    if found is not None:
        raise ApiError("conflict", f"`{name}` is a folder: `{found}` lies in it.", {"name": found})


def begins(prefix: str) -> Any:
    """Whether a file's name begins with a text; LIKE would not tell its case apart on SQLite."""
    return func.substr(WorkspaceFile.name, 1, len(prefix)) == prefix


def refuse_over(workspace_id: str, size: int, *, replaces: int | None = None) -> None:
    """`quota_exceeded` when a file of `size` bytes does not fit beside the others. `replaces`: the size of the one in
    whose place it comes."""
    now = usage(workspace_id)
    free = limits.MAX_WORKSPACE_FILES_BYTES - now.bytes + (replaces or 0)
    details: Mapping[str, int] = {
        "limit_bytes": limits.MAX_WORKSPACE_FILES_BYTES,
        "used_bytes": now.bytes,
        "free_bytes": max(0, free),
        "file_bytes": size,
        "files": now.files,
    }
    if size > free:
        text = (
            f"The workspace's files may take {limits.MAX_WORKSPACE_FILES_BYTES:,} bytes. {now.bytes:,} are used, and "
            f"this file has {size:,}: delete some files first."
        )
        raise ApiError("quota_exceeded", text, details)
    if replaces is None and now.files >= limits.MAX_WORKSPACE_FILES:
        text = f"A workspace may have {limits.MAX_WORKSPACE_FILES:,} files, and has {now.files:,}: delete some first."
        raise ApiError("quota_exceeded", text, {**details, "limit_files": limits.MAX_WORKSPACE_FILES})


def sweep(now: datetime) -> int:
    """Remove bytes that no row names and that no upload can still be about to name. Returns how many files."""
    from obstore.exceptions import BaseError

    store = storage.of(current_app)
    try:
        found = [one.key for one in store.listing(ROOT) if _age(one.key, now) > limits.FILE_ORPHAN_SECONDS]
    except BaseError as error:
        log.warning("the storage could not be swept: %s", str(error).partition("\n")[0])
        return 0
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
