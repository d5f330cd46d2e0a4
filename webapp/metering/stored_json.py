"""Limit the JSON that a workspace stores in the database: the versions of its templates, datasets and scenarios, the
revisions of drafts, the variables of scenarios and of their runs, the requests of its exports, pushes and schedules,
and for a day the responses to requests with an Idempotency-Key. Each can have up to 10 MB, and every change of a
template creates a version.

The total is read from the database once a day, and updated in Redis in between. Deleted objects count until they are
permanently removed.
"""

from __future__ import annotations

from typing import Any

import orjson
from sqlalchemy import LargeBinary, Table, Text, cast, func, select

from webapp import limits
from webapp.access.actors import Actor
from webapp.errors import ApiError
from webapp.extensions import read_session, redis_client
from webapp.model_base import Base


def reserve(actor: Actor, *documents: Any) -> None:
    """Count documents that are about to be stored. Error: quota_exceeded if the workspace stores too much."""
    size = sum(len(orjson.dumps(document, default=str)) for document in documents)
    check(actor, size)
    add(actor.workspace_id, size)


def check(actor: Actor, size: int = 0) -> None:
    """Check the quota. Error: quota_exceeded if the workspace cannot store `size` more bytes."""
    limit = limits.STORED_JSON_BYTES[actor.plan]
    redis, name = redis_client(), _redis_key(actor.workspace_id)
    cached = redis.get(name)
    used = int(cached) if cached is not None else None
    retry_seconds = limits.STORED_JSON_FULL_SECONDS
    if used is None or (used + size > limit and redis.set(f"{name}:read", 1, nx=True, ex=retry_seconds)):
        used = stored_bytes(actor.workspace_id)
        redis.set(name, used, ex=limits.STORED_JSON_SECONDS)
    if used + size > limit:
        text = (
            f"The templates, datasets and scenarios of the workspace, with all their versions and drafts, and the "
            f"requests of its exports, pushes, runs and schedules can take at most {limit // limits.MB:,} MB. Delete "
            "some that you no longer need; they count until they are removed from the trash."
        )
        raise ApiError("quota_exceeded", text, {"limit_bytes": limit, "used_bytes": used})


def add(workspace_id: str, size: int) -> None:
    """Count what has been stored."""
    redis, name = redis_client(), _redis_key(workspace_id)
    if (
        redis.incrby(name, size) == size
    ):  # there was no cached number to add to: the next check reads the database
        redis.delete(name)


def _redis_key(workspace_id: str) -> str:
    return f"rowsmith:stored-json:{{{workspace_id}}}"


def stored_bytes(workspace_id: str) -> int:
    """Return the bytes that a workspace stores, read from the database."""

    def length(*columns: Any) -> Any:
        texts = [item if isinstance(item.type, LargeBinary) else cast(item, Text) for item in columns]
        sizes = [func.coalesce(func.length(text), 0) for text in texts]
        return func.coalesce(func.sum(sum(sizes)), 0)

    total = 0
    with read_session() as session:
        for mapper in Base.registry.mappers:
            table, names = mapper.local_table, getattr(mapper.class_, "quota_columns", ())
            if not names or not isinstance(table, Table):
                continue
            statement = select(length(*(table.c[name] for name in names)))
            if "workspace_id" in table.c:
                statement = statement.where(table.c.workspace_id == workspace_id)
            else:
                # Versions belong to the workspace of the row that they reference.
                references = [key for column in table.c for key in column.foreign_keys]
                found = next(
                    reference for reference in references if "workspace_id" in reference.column.table.c
                )
                head = found.column.table
                statement = statement.join(head, head.c.id == found.parent)
                statement = statement.where(head.c.workspace_id == workspace_id)
            total += int(session.scalar(statement) or 0)
    return total
