"""Delete large numbers of rows in small transactions, so that none holds the database for long. What is left
is deleted in the next sweep. Also: postpone the deletion of files while a backup runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import redis
from sqlalchemy import Table, delete, select
from sqlalchemy.orm import Session

from webapp import limits
from webapp.extensions import affected_row_count, redis_client, write_session
from webapp.model_base import Base


class TimeBudget:
    """A time budget for deletions. It starts with the first check. `was_cut_short` is set if something was left for the
    next sweep."""

    def __init__(self, seconds: float = float("inf"), clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._seconds = clock, seconds
        self._until: float | None = None
        self.was_cut_short = False

    @property
    def is_used_up(self) -> bool:
        """Whether the time budget is used up. Call it when there may be more to delete."""
        if self._until is None:
            self._until = self._clock() + self._seconds
        self.was_cut_short = self.was_cut_short or self._clock() >= self._until
        return self.was_cut_short


def delete_rows(
    model: type[Base], condition: Any, budget: TimeBudget, batch: int = limits.RETENTION_BATCH_ROWS
) -> int:
    """Delete rows in batches, each in a separate transaction, until none is left or the time budget is used
    up. Other connections can write between the batches; there is no queue for SQLite's lock, and waiting
    connections poll it."""
    table = model.__table__
    assert isinstance(table, Table)
    key = table.primary_key.columns
    total = 0
    while not budget.is_used_up:
        with write_session() as session:
            deleted = _delete_batch(session, model, list(key), condition, batch)
        total += deleted
        if deleted < batch:
            return total
        time.sleep(limits.RETENTION_PAUSE_SECONDS)
    return total


def _delete_batch(session: Session, model: type[Base], key: list[Any], condition: Any, batch: int) -> int:
    if len(key) == 1:
        chosen = select(key[0]).where(condition).limit(batch)
        statement = delete(model).where(key[0].in_(chosen))
    else:  # (push, table, number): rows are identified by the last column, within one of the first two
        found = session.execute(select(*key).where(condition).order_by(*key).limit(batch)).all()
        if not found:
            return 0
        prefix = found[0][:-1]
        numbers = [item[-1] for item in found if item[:-1] == prefix]
        conditions = [column == value for column, value in zip(key[:-1], prefix, strict=True)]
        statement = delete(model).where(*conditions, key[-1].between(numbers[0], numbers[-1]), condition)
        deleted = affected_row_count(
            session.execute(statement, execution_options={"synchronize_session": False})
        )
        # Fewer than a full batch because another push or table begins: there is more.
        return batch if len(found) == batch or len(numbers) < len(found) else deleted
    return affected_row_count(session.execute(statement, execution_options={"synchronize_session": False}))


log = logging.getLogger(__name__)

_KEY: Final = "rowsmith:backup"


@contextmanager
def suspend_deletion() -> Iterator[None]:
    """Request the hold until the block ends, and at most for BACKUP_HOLD_SECONDS."""
    try:
        redis_client().set(_KEY, b"1", ex=limits.BACKUP_HOLD_SECONDS)
    except redis.RedisError as error:
        log.info("could not announce the backup: %s", error)
    try:
        yield
    finally:
        try:
            redis_client().delete(_KEY)
        except redis.RedisError:
            pass  # it expires


def is_suspended() -> bool:
    """Return whether unreferenced files must be kept for now."""
    try:
        return bool(redis_client().exists(_KEY))
    except redis.RedisError:
        return False
