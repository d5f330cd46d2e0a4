"""Files in the storage with content from external sources, and the rows that track them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from flask import current_app
from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from webapp import clock, limits, storage
from webapp.access.models import Workspace
from webapp.connections.models import Fetched
from webapp.errors import ApiError
from webapp.extensions import writing
from webapp.files.models import StorageHold

FOLDER: Final = "fetched"
"""Storage folder of response files: by workspace and SHA-256."""


def _row(workspace_id: str, connection_id: str, question: str, snapshot: str, rows: int) -> dict[str, Any]:
    moment = clock.now()
    return {
        "workspace_id": workspace_id,
        "connection_id": connection_id,
        "question": question,
        "snapshot": snapshot,
        "rows": rows,
        "fetched_at": moment,
        "expires_at": moment + timedelta(days=limits.FETCHED_DAYS),
    }


def _insert(rows: list[dict[str, Any]]) -> list[str]:
    """Add rows of one connection in one transaction, replacing expired ones. Return the questions of rows
    that were not added, because another row exists or the connection was deleted."""
    known = Fetched.__table__.c
    mine = (
        known.workspace_id == rows[0]["workspace_id"],
        known.connection_id == rows[0]["connection_id"],
        known.question.in_([row["question"] for row in rows]),
    )
    try:
        with writing() as session:
            for gone in session.scalars(
                select(Fetched).where(*mine, known.expires_at <= rows[0]["fetched_at"])
            ):
                gone.question = _forgotten(gone)
            session.flush()
            there = set(session.scalars(select(known.question).where(*mine)))
            fresh = [row for row in rows if row["question"] not in there]
            if fresh:
                session.execute(insert(Fetched), fresh)
    except IntegrityError:
        pass
    else:
        return [row["question"] for row in rows if row["question"] in there]
    # Another process was faster, between the check and the commit. Each question finds out separately.
    return [rows[0]["question"]] if len(rows) == 1 else [lost for row in rows for lost in _insert([row])]


def keep_file(workspace_id: str, connection_id: str, name: str, storage_key: str, ends: datetime) -> None:
    """Track a file in the storage until it expires and no work pins it."""
    row = _row(workspace_id, connection_id, name, name, 0)
    row |= {"storage_key": storage_key, "expires_at": ends}
    if _insert([row]):
        again = Fetched.__table__.c
        with writing() as session:
            session.execute(
                update(Fetched)
                .where(again.workspace_id == workspace_id, again.connection_id == connection_id)
                .where(again.question == name)
                .values(expires_at=ends)
            )


def put_file(workspace_id: str, key: str, size: int, pieces: Iterable[bytes]) -> None:
    """Put external content into the storage. Its bytes count toward FETCHED_FILES_BYTES until it is purged.
    Raises quota_exceeded."""
    with writing() as session:
        session.execute(
            select(Workspace.id).where(Workspace.id == workspace_id).with_for_update(key_share=True)
        )
        mine = (StorageHold.workspace_id == workspace_id, StorageHold.area == FOLDER, StorageHold.key != key)
        used = int(session.scalar(select(func.coalesce(func.sum(StorageHold.bytes), 0)).where(*mine)) or 0)
        most = limits.FETCHED_FILES_BYTES
        if used + size > most:
            text = (
                f"Cached rows and values from connections may use {most:,} bytes. {used:,} are used, and "
                f"{size:,} more are needed. Read fewer rows, or try again later: rows are kept for "
                f"{limits.SOURCE_KEPT_HOURS} hours, and longer for exports and pushes that need them."
            )
            raise ApiError(
                "quota_exceeded", text, {"limit_bytes": most, "used_bytes": used, "file_bytes": size}
            )
        session.merge(
            StorageHold(key=key, workspace_id=workspace_id, area=FOLDER, bytes=size, updated_at=clock.now())
        )
    try:
        storage.of(current_app).put(key, pieces)
    except BaseException:
        with writing() as session:
            session.execute(delete(StorageHold).where(StorageHold.key == key))
        raise


def _forgotten(row: Fetched) -> str:
    """Return a question that is never asked: the response stays for work that pins it."""
    return hashlib.sha256(f"forgotten {row.id} {row.question}".encode()).hexdigest()
