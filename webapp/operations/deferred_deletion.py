"""While a backup copies files, those that are replaced stay a little longer: the sweep of orphans removes them later.

A backup says so in Redis before it takes its snapshot of the database, so whoever replaces a file that the snapshot
names sees it. Without Redis nobody is told, and a backup takes another snapshot where a file went meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import redis

from webapp import limits
from webapp.extensions import redis_client

log = logging.getLogger(__name__)

_KEY: Final = "rowsmith:backup"


@contextmanager
def holding() -> Iterator[None]:
    """Ask for it until the block ends, and no longer than HOLD_SECONDS."""
    try:
        redis_client().set(_KEY, b"1", ex=limits.HOLD_SECONDS)
    except redis.RedisError as error:
        log.info("nobody is told of the backup: %s", error)
    try:
        yield
    finally:
        try:
            redis_client().delete(_KEY)
        except redis.RedisError:
            pass  # it ends by itself


def held() -> bool:
    """Whether bytes that nothing names any more are to stay for now."""
    try:
        return bool(redis_client().exists(_KEY))
    except redis.RedisError:
        return False
