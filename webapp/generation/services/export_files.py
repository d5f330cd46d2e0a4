"""The quota of a workspace's export files: reserved while a file is made, so that none is exceeded at any moment.

Where a new file needs space, the files of the exports that ended longest ago are removed. The exports stay: the same
body, seed and now make the same bytes again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from flask import Flask
from sqlalchemy import delete, func, or_, select
from sqlalchemy.orm import Session

from webapp import clock, ids, limits
from webapp.accounts.models import Workspace
from webapp.audit.models import AuditEntry
from webapp.errors import ApiError
from webapp.extensions import reading, writing
from webapp.files.models import StorageHold
from webapp.generation.models import Export, ExportPart
from webapp.operations import retention
from webapp.operations.models import END_STATES

AREA: Final = "exports"


def used(session: Session, workspace_id: str) -> int:
    """The bytes of a workspace's export files, those that are being made included. A file that parts of several exports
    share counts once."""
    whole = select(Export.storage_key, Export.bytes).where(
        Export.workspace_id == workspace_id, Export.storage_key.is_not(None)
    )
    parts = (
        select(ExportPart.storage_key, ExportPart.bytes)
        .join(Export, Export.id == ExportPart.export_id)
        .where(Export.workspace_id == workspace_id, ExportPart.storage_key.is_not(None))
    )
    files = whole.union(parts).subquery()
    held = select(func.coalesce(func.sum(StorageHold.bytes), 0)).where(
        StorageHold.workspace_id == workspace_id, StorageHold.area == AREA
    )
    made = session.scalar(select(func.coalesce(func.sum(files.c.bytes), 0))) or 0
    return int(made) + int(session.scalar(held) or 0)


def reserved(app: Flask, workspace_id: str, key: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces of a file, each once its bytes are reserved. Error: quota_exceeded, when they do not fit although no
    other file is left to remove. Call `release` when the file has its row, or was given up."""
    total = held = 0
    for piece in pieces:
        total += len(piece)
        if total > held:
            # The storage asks for pieces from a thread of its own, in which it cannot remove files.
            with ThreadPoolExecutor(1) as thread:
                held = thread.submit(_reserve, app, workspace_id, key, total).result()
        yield piece


def _reserve(app: Flask, workspace_id: str, key: str, total: int) -> int:
    """Reserve `total` bytes for a file and some more. Returns how many are reserved."""
    with app.app_context():
        return _held(workspace_id, key, total)


def _held(workspace_id: str, key: str, total: int) -> int:
    while True:
        with writing() as session:
            locked = (
                select(Workspace.plan).where(Workspace.id == workspace_id).with_for_update(key_share=True)
            )
            most = limits.EXPORT_FILES_BYTES[session.scalar(locked) or "free"]
            hold = session.get(StorageHold, key) or StorageHold(
                key=key, workspace_id=workspace_id, area=AREA, bytes=0
            )
            free = most - used(session, workspace_id) + hold.bytes
            if free >= total:
                hold.bytes, hold.updated_at = min(free, total + limits.EXPORT_HOLD_BYTES), clock.now()
                session.add(hold)
                return hold.bytes
        if not _remove_oldest(workspace_id):
            text = (
                f"The export files of this workspace may take {most:,} bytes, and this file does not fit. Export fewer "
                "rows, or wait until other exports have ended."
            )
            raise ApiError("quota_exceeded", text, {"limit_bytes": most, "file_bytes": total})


def _remove_oldest(workspace_id: str) -> bool:
    """Remove the file, or the files of the parts, of the export that ended longest ago. False where there is none."""
    parts = select(ExportPart.export_id).where(ExportPart.storage_key.is_not(None))
    ended = (
        select(Export.id)
        .where(
            Export.workspace_id == workspace_id,
            Export.status.in_(END_STATES),
            Export.file_removed_at.is_(None),
        )
        .where(or_(Export.storage_key.is_not(None), Export.id.in_(parts)))
        .order_by(Export.finished_at, Export.id)
        .limit(1)
    )
    with reading() as session:
        export_id = session.scalar(ended)
    if export_id is None:
        return False
    retention.remove_files(export_id, clock.now())
    with writing() as session:
        session.add(
            AuditEntry(
                id=ids.new("aud"), at=clock.now(), workspace_id=workspace_id, action="export.purge",
                object_type="export", object_id=export_id, details={"reason": "quota"},
            )
        )  # fmt: skip
    return True


def release(key: str) -> None:
    """End the reservation of a file."""
    with writing() as session:
        session.execute(delete(StorageHold).where(StorageHold.key == key))
