"""The workspace's epoch: how every process learns at once that somebody's rights changed.

A process remembers what it read about a key together with the epoch it read it under, and asks Redis for the
epoch in the same round trip that counts the request. So remembering costs nothing, and forgetting is immediate.

A change announces itself before its commit (the epoch becomes `pending`, which nobody remembers anything under)
and again after it (a fresh epoch). If the changing process dies in between, `pending` runs out and whoever asks
next makes a fresh epoch. Redis emptied: the epoch is gone, everything is read again.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import Final

import redis
from sqlalchemy import event
from sqlalchemy.orm import Session

from webapp import limits
from webapp.extensions import redis_client

_PENDING: Final = "pending:"
_INFO: Final = "rowsmith.rights"


def epoch_key(workspace_id: str) -> str:
    """Where a workspace's epoch lies in Redis."""
    return f"rowsmith:{{{workspace_id}}}:epoch"


def changing(session: Session, workspace_id: str) -> None:
    """Call before a change to keys, roles, members, projects or plan in `session` is committed.

    Fails with RedisError when Redis is away: a change that cannot be announced is not made.
    """
    redis_client().set(
        epoch_key(workspace_id), _PENDING + secrets.token_hex(8), ex=limits.EPOCH_PENDING_SECONDS
    )
    waiting: set[str] = session.info.setdefault(_INFO, set())
    if not event.contains(session, "after_commit", _changed):
        # Not `once`: SQLAlchemy takes a second such listener of the same session for the first, which is spent.
        event.listen(session, "after_commit", _changed)
        event.listen(session, "after_rollback", _changed)
    waiting.add(workspace_id)


def current(workspace_id: str) -> str:
    """The present epoch, made when there is none."""
    client, key = redis_client(), epoch_key(workspace_id)
    for _ in range(limits.EPOCH_TRIES):
        found = client.get(key)
        if found is not None:
            return found.decode()
        fresh = secrets.token_hex(8)
        if client.set(key, fresh, nx=True, ex=limits.EPOCH_SECONDS):
            return fresh
    raise redis.ConnectionError("the epoch does not hold still")


def may_be_remembered(epoch: str) -> bool:
    """Whether what is read under this epoch may be kept: not while a change is under way."""
    return not epoch.startswith(_PENDING)


def _changed(session: Session) -> None:
    """After commit or rollback: a fresh epoch for every workspace announced."""
    for workspace_id in session.info.pop(_INFO, set()):
        # If Redis is away just now, `pending` runs out by itself.
        with suppress(redis.RedisError):
            redis_client().set(epoch_key(workspace_id), secrets.token_hex(8), ex=limits.EPOCH_SECONDS)
