"""Warnings before a limit of a plan is reached: recorded by the request that crosses the threshold (80 %), and sent by
`notifications.services.limit_notifications`.

A warning is a field of a hash in Redis until it is sent. Only the request that crosses the threshold pays for it. If
Redis loses it, the warning is not sent.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import Final, Literal

import redis

from webapp import clock, limits
from webapp.access.actors import Actor
from webapp.extensions import redis_client
from webapp.rate_limiting import RateLimitResult

log = logging.getLogger(__name__)

Limit = Literal["requests", "rows"]
KEY: Final = "rowsmith:near"


@dataclass(frozen=True, slots=True)
class LimitWarning:
    """A limit of a workspace, and its usage at `at` (seconds since 1970) when the threshold was crossed."""

    workspace_id: str
    limit: Limit
    used: int
    maximum: int
    at: float


def warning_threshold(maximum: int) -> int:
    """Return the usage of a limit at which a warning is sent."""
    return max(1, math.ceil(limits.USAGE_WARN_SHARE * maximum))


def check_requests(actor: Actor, rate_limit: RateLimitResult) -> None:
    """Record a warning if this request crossed the threshold of the rate limit."""
    if rate_limit.accepted and rate_limit.limit - rate_limit.remaining == warning_threshold(rate_limit.limit):
        _record(actor, "requests", rate_limit.limit - rate_limit.remaining, rate_limit.limit)


def check_rows(actor: Actor, rows: int, used: int) -> None:
    """Record a warning if reserving `rows` crossed the threshold of the row quota; `used` includes them."""
    maximum = actor.limits.rows_per_hour
    if used - rows < warning_threshold(maximum) <= used:
        _record(actor, "rows", used, maximum)


def _record(actor: Actor, limit: Limit, used: int, maximum: int) -> None:
    value = f"{used} {maximum} {clock.epoch():.3f}"
    try:
        redis_client().hsetnx(KEY, f"{actor.workspace_id} {limit}", value)
    except redis.RedisError as error:  # the request itself does not need it
        log.warning(
            "limit warning lost: workspace %s used %d of %d %s: %s",
            actor.workspace_id,
            used,
            maximum,
            limit,
            error,
        )


def pending() -> list[LimitWarning]:
    """Return the warnings to be sent; none if Redis is unavailable."""
    try:
        fields = redis_client().hgetall(KEY)
    except redis.RedisError:
        return []
    warnings = []
    for field, value in fields.items():
        assert isinstance(field, bytes)
        assert isinstance(value, bytes)
        workspace_id, limit = field.decode().split(" ")
        used, maximum, at = value.decode().split(" ")
        warnings.append(LimitWarning(workspace_id, limit, int(used), int(maximum), float(at)))  # type: ignore[arg-type]  # see `_record`
    return warnings


def delete(warning: LimitWarning) -> None:
    """Delete a warning that was sent."""
    redis_client().hdel(KEY, f"{warning.workspace_id} {warning.limit}")
