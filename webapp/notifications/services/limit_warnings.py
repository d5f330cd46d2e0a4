"""Limits of a plan that are nearly used up: noted by whoever uses the last of four fifths, told of by `limit_notices`.

The note is one field of a hash in Redis, which holds until it was told of: it costs the request that crosses the mark
one question, and no other request anything. A note that is lost with Redis is a warning that nobody gets, no more.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import Final, Literal

import redis

from webapp import clock, limits
from webapp.accounts.actors import Actor
from webapp.extensions import redis_client
from webapp.rate_limiting import Passage

log = logging.getLogger(__name__)

Limit = Literal["requests", "rows"]
KEY: Final = "rowsmith:near"


@dataclass(frozen=True, slots=True)
class Near:
    """A limit of a workspace, and how much of it was used at `at` (seconds since 1970) when the mark was crossed."""

    workspace_id: str
    limit: Limit
    used: int
    most: int
    at: float


def mark(most: int) -> int:
    """So much of a limit is used when people are warned."""
    return max(1, math.ceil(limits.USAGE_WARN_SHARE * most))


def entered(actor: Actor, passage: Passage) -> None:
    """Call with the answer to a request's question: it took one place."""
    if passage.accepted and passage.limit - passage.remaining == mark(passage.limit):
        _note(actor, "requests", passage.limit - passage.remaining, passage.limit)


def took(actor: Actor, rows: int, used: int) -> None:
    """Call when `rows` were taken from the hour, of which `used` are used now."""
    most = actor.limits.rows_per_hour
    if used - rows < mark(most) <= used:
        _note(actor, "rows", used, most)


def _note(actor: Actor, limit: Limit, used: int, most: int) -> None:
    told = f"{used} {most} {clock.epoch():.3f}"
    try:
        redis_client().hsetnx(KEY, f"{actor.workspace_id} {limit}", told)
    except redis.RedisError as error:  # whoever asks has their answer; this was for others
        log.warning(
            "nobody is told that %s has used %d of %d %s: %s", actor.workspace_id, used, most, limit, error
        )


def noted() -> list[Near]:
    """What is still to be told of; nothing where Redis does not answer."""
    try:
        found = redis_client().hgetall(KEY)
    except redis.RedisError:
        return []
    made = []
    for field, value in found.items():
        workspace_id, limit = field.decode().split(" ")
        used, most, at = value.decode().split(" ")
        made.append(Near(workspace_id, limit, int(used), int(most), float(at)))  # type: ignore[arg-type]
    return made


def forget(near: Near) -> None:
    """Call when it was told of."""
    redis_client().hdel(KEY, f"{near.workspace_id} {near.limit}")
