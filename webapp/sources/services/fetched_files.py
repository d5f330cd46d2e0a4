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
from webapp.extensions import write_session
from webapp.files.models import StorageHold

FOLDER: Final = "fetched"
"""Storage folder of response files: by workspace and SHA-256."""


def fetched_row(
    workspace_id: str, connection_id: str, question: str, snapshot: str, rows: int
) -> dict[str, Any]:
    """Return the columns of a new row of stored responses."""
    now = clock.now()
    return {
        "workspace_id": workspace_id,
        "connection_id": connection_id,
        "question": question,
        "snapshot": snapshot,
        "rows": rows,
        "fetched_at": now,
        "expires_at": now + timedelta(days=limits.FETCHED_DAYS),
    }


def insert_rows(rows: list[dict[str, Any]]) -> list[str]:
    """Add rows of one connection in one transaction, replacing expired ones. Return the questions of rows
    that were not added, because another row exists or the connection was deleted."""
    columns = Fetched.__table__.c
    conditions = (
        columns.workspace_id == rows[0]["workspace_id"],
        columns.connection_id == rows[0]["connection_id"],
        columns.question.in_([row["question"] for row in rows]),
    )
    try:
        with write_session() as session:
            for expired in session.scalars(
                select(Fetched).where(*conditions, columns.expires_at <= rows[0]["fetched_at"])
            ):
                expired.question = retired_question(expired)
            session.flush()
            existing = set(session.scalars(select(columns.question).where(*conditions)))
            new_rows = [row for row in rows if row["question"] not in existing]
            if new_rows:
                session.execute(insert(Fetched), new_rows)
    except IntegrityError:
        pass
    else:
        return [row["question"] for row in rows if row["question"] in existing]
    # Another process was faster, between the check and the commit. Each question finds out separately.
    return (
        [rows[0]["question"]]
        if len(rows) == 1
        else [question for row in rows for question in insert_rows([row])]
    )


def track_file(
    workspace_id: str, connection_id: str, name: str, storage_key: str, expires_at: datetime
) -> None:
    """Track a file in the storage until it expires and no work pins it."""
    row = fetched_row(workspace_id, connection_id, name, name, 0)
    row |= {"storage_key": storage_key, "expires_at": expires_at}
    if insert_rows([row]):
        columns = Fetched.__table__.c
        with write_session() as session:
            session.execute(
                update(Fetched)
                .where(columns.workspace_id == workspace_id, columns.connection_id == connection_id)
                .where(columns.question == name)
                .values(expires_at=expires_at)
            )


def put_file(workspace_id: str, key: str, size: int, pieces: Iterable[bytes]) -> None:
    """Put external content into the storage. Its bytes count toward FETCHED_FILES_BYTES until it is purged.
    Raises quota_exceeded."""
    with write_session() as session:
        session.execute(
            select(Workspace.id).where(Workspace.id == workspace_id).with_for_update(key_share=True)
        )
        conditions = (
            StorageHold.workspace_id == workspace_id,
            StorageHold.area == FOLDER,
            StorageHold.key != key,
        )
        used = int(
            session.scalar(select(func.coalesce(func.sum(StorageHold.bytes), 0)).where(*conditions)) or 0
        )
        limit = limits.FETCHED_FILES_BYTES
        if used + size > limit:
            text = (
                f"Cached rows and values from connections can use at most {limit:,} bytes. {used:,} are used, and "
                f"{size:,} more are needed. Read fewer rows, or try again later: rows are kept for "
                f"{limits.SOURCE_RETENTION_HOURS} hours, and longer for exports and pushes that need them."
            )
            raise ApiError(
                "quota_exceeded", text, {"limit_bytes": limit, "used_bytes": used, "file_bytes": size}
            )
        session.merge(
            StorageHold(key=key, workspace_id=workspace_id, area=FOLDER, bytes=size, updated_at=clock.now())
        )
    try:
        storage.get_storage(current_app).put(key, pieces)
    except BaseException:
        with write_session() as session:
            session.execute(delete(StorageHold).where(StorageHold.key == key))
        raise


def retired_question(row: Fetched) -> str:
    """Return a question that is never asked: the response stays for work that pins it."""
    return hashlib.sha256(f"forgotten {row.id} {row.question}".encode()).hexdigest()
