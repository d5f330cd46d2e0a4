"""The storage quota of a workspace's export files.

Space is reserved while a file is created, so the quota is never exceeded. If a new file needs space, the files of the
exports that ended first are removed. The exports remain: the same body, seed and now produce the same bytes again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Final

from flask import Flask, current_app
from sqlalchemy import delete, exists, func, or_, select, update
from sqlalchemy.orm import Session, aliased

from webapp import clock, ids, limits, storage
from webapp.access.models import Workspace
from webapp.audit.models import AuditEntry
from webapp.engine.formats import Piece
from webapp.errors import ApiError
from webapp.exports.models import Export, ExportPart
from webapp.extensions import read_session, write_session
from webapp.files.models import StorageHold
from webapp.work.models import END_STATES

AREA: Final = "exports"


def used_bytes(session: Session, workspace_id: str) -> int:
    """Return the bytes of a workspace's export files, including those in progress. A file shared by parts of
    several exports counts once."""
    single_files = select(Export.storage_key, Export.bytes).where(
        Export.workspace_id == workspace_id, Export.storage_key.is_not(None)
    )
    parts = (
        select(ExportPart.storage_key, ExportPart.bytes)
        .join(Export, Export.id == ExportPart.export_id)
        .where(Export.workspace_id == workspace_id, ExportPart.storage_key.is_not(None))
    )
    files = single_files.union(parts).subquery()
    holds = select(func.coalesce(func.sum(StorageHold.bytes), 0)).where(
        StorageHold.workspace_id == workspace_id, StorageHold.area == AREA
    )
    stored = session.scalar(select(func.coalesce(func.sum(files.c.bytes), 0))) or 0
    return int(stored) + int(session.scalar(holds) or 0)


def reserve_pieces(app: Flask, workspace_id: str, key: str, pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Yield the pieces of a file after their bytes are reserved. Raises quota_exceeded if they do not fit and
    no other file can be removed. Call `release` when the file is saved or discarded."""
    total = reserved_bytes = 0
    for piece in pieces:
        total += len(piece)
        if total > reserved_bytes:
            # The storage may read pieces in its own thread, which cannot remove files.
            with ThreadPoolExecutor(1) as thread:
                reserved_bytes = thread.submit(_reserve, app, workspace_id, key, total).result()
        yield piece


def _reserve(app: Flask, workspace_id: str, key: str, total: int) -> int:
    """Reserve `total` bytes for a file, and some more. Return the number of reserved bytes."""
    with app.app_context():
        while True:
            with write_session() as session:
                locked = (
                    select(Workspace.plan).where(Workspace.id == workspace_id).with_for_update(key_share=True)
                )
                limit = limits.EXPORT_FILES_BYTES[session.scalar(locked) or "free"]
                hold = session.get(StorageHold, key) or StorageHold(
                    key=key, workspace_id=workspace_id, area=AREA, bytes=0
                )
                free = limit - used_bytes(session, workspace_id) + hold.bytes
                if free >= total:
                    hold.bytes, hold.updated_at = min(free, total + limits.EXPORT_HOLD_BYTES), clock.now()
                    session.add(hold)
                    return hold.bytes
            if not _remove_oldest(workspace_id):
                text = (
                    f"The export files of this workspace can use at most {limit:,} bytes, and this "
                    "file exceeds that limit. "
                    "Export fewer rows, or wait until other exports have finished."
                )
                raise ApiError("quota_exceeded", text, {"limit_bytes": limit, "file_bytes": total})


def _remove_oldest(workspace_id: str) -> bool:
    """Remove the file, or the files of the parts, of the export that ended first. Return False if there is no
    file."""
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
    with read_session() as session:
        export_id = session.scalar(ended)
    if export_id is None:
        return False
    remove_files(export_id, clock.now())
    with write_session() as session:
        session.add(
            AuditEntry(
                id=ids.new("aud"), at=clock.now(), workspace_id=workspace_id, action="export.purge",
                object_type="export", object_id=export_id, details={"reason": "quota"},
            )
        )  # fmt: skip
    return True


def release(key: str) -> None:
    """Release the reservation of a file."""
    with write_session() as session:
        session.execute(delete(StorageHold).where(StorageHold.key == key))


def unshared_part_files(export_ids: Sequence[str]) -> list[str]:
    """Return the files of some exports' parts that no part of another export uses."""
    own_files = select(ExportPart.storage_key).where(
        ExportPart.storage_key.is_not(None), ExportPart.export_id.in_(export_ids)
    )
    other = aliased(ExportPart)
    shared = exists().where(other.storage_key == ExportPart.storage_key, other.export_id.not_in(export_ids))
    with read_session() as session:
        return list(session.scalars(own_files.where(~shared).distinct()))


def remove_files(export_id: str, now: datetime) -> None:
    """Remove the files of an export: mark it, delete the files, then clear their names.

    A backup ignores the names of a marked export. If the removal is interrupted, names remain for the next
    sweep, but never an unreferenced file.
    """
    store = storage.get_storage(current_app)
    statement = update(Export).where(Export.id == export_id)
    with write_session() as session:
        session.execute(
            statement.values(file_removed_at=now), execution_options={"synchronize_session": False}
        )
    with read_session() as session:
        key_of_file = session.scalar(select(Export.storage_key).where(Export.id == export_id))
    for key in [*([key_of_file] if key_of_file else []), *unshared_part_files([export_id])]:
        store.delete(key)
    with write_session() as session:
        parts = update(ExportPart).where(ExportPart.export_id == export_id).values(storage_key=None)
        session.execute(parts, execution_options={"synchronize_session": False})
        session.execute(statement.values(storage_key=None), execution_options={"synchronize_session": False})
