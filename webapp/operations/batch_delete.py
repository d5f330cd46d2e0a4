"""Removing much, a little at a time: no transaction holds the database for long, and none removes more than a few
thousand rows. What is cut short goes on at the next sweep."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from flask import current_app
from sqlalchemy import delete, exists, select
from sqlalchemy.orm import Session, aliased

from webapp import limits, storage
from webapp.extensions import reading, writing
from webapp.generation.models import ExportPart
from webapp.model_base import Base
from webapp.pushes.models import Push, PushLine, PushRange, PushRow
from webapp.scenarios.models import Run, RunChunk


class Turn:
    """How long one may go on removing, counted from the first time that is asked. `cut` says afterwards that something
    was left for the next turn."""

    def __init__(self, seconds: float = float("inf"), clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._seconds = clock, seconds
        self._until: float | None = None
        self.cut = False

    @property
    def over(self) -> bool:
        """Whether it is over; asked where there may be something left to do."""
        if self._until is None:
            self._until = self._clock() + self._seconds
        self.cut = self.cut or self._clock() >= self._until
        return self.cut


def rows(model: type[Base], condition: Any, turn: Turn, batch: int = limits.DRAIN_ROWS) -> int:
    """Remove rows in batches, each a transaction of its own, until none is left or the turn is over. Between two of
    them others may write: whoever waits for SQLite's lock asks again now and then, and stands in no queue."""
    key = model.__table__.primary_key.columns
    done = 0
    while not turn.over:
        with writing() as session:
            gone = _remove(session, model, list(key), condition, batch)
        done += gone
        if gone < batch:
            return done
        time.sleep(limits.DRAIN_PAUSE_SECONDS)
    return done


def _remove(session: Session, model: type[Base], key: list[Any], condition: Any, batch: int) -> int:
    if len(key) == 1:
        chosen = select(key[0]).where(condition).limit(batch)
        statement = delete(model).where(key[0].in_(chosen))
    else:  # (push, table, number): rows are told by the last part, within one of the first
        found = session.execute(select(*key).where(condition).order_by(*key).limit(batch)).all()
        if not found:
            return 0
        same = found[0][:-1]
        last = [one[-1] for one in found if one[:-1] == same]
        fixed = [column == value for column, value in zip(key[:-1], same, strict=True)]
        statement = delete(model).where(*fixed, key[-1].between(last[0], last[-1]), condition)
        gone = session.execute(statement, execution_options={"synchronize_session": False}).rowcount
        # Fewer than a batch because another push or table begins: there is more.
        return batch if len(found) == batch or len(last) < len(found) else int(gone)
    return int(session.execute(statement, execution_options={"synchronize_session": False}).rowcount)


def pushes(found: Sequence[tuple[str, str]], turn: Turn) -> int:
    """Remove pushes (workspace, id) with their ledgers, logs and captured keys. Returns how many are gone."""
    store = storage.of(current_app)
    done = 0
    for workspace_id, push_id in found:
        for model in (PushRow, PushRange, PushLine):
            rows(model, model.push_id == push_id, turn)
        if turn.over:
            return done
        for stored in store.listing(f"pushes/{workspace_id}/{push_id}"):
            store.delete(stored.key)
        done += _one(Push, push_id)
    return done


def runs(found: Sequence[str], turn: Turn) -> int:
    """Remove runs with their logs. Returns how many are gone."""
    done = 0
    for run_id in found:
        rows(RunChunk, RunChunk.run_id == run_id, turn, limits.DRAIN_CHUNKS)
        if turn.over:
            return done
        done += _one(Run, run_id)
    return done


def _one(model: Any, row_id: str) -> int:
    with writing() as session:
        statement = delete(model).where(model.id == row_id)
        return int(session.execute(statement, execution_options={"synchronize_session": False}).rowcount)


def part_files(export_ids: Sequence[str]) -> list[str]:
    """Files of the parts of some exports, less those that a part of another export names too."""
    mine = select(ExportPart.storage_key).where(
        ExportPart.storage_key.is_not(None), ExportPart.export_id.in_(export_ids)
    )
    other = aliased(ExportPart)
    shared = exists().where(other.storage_key == ExportPart.storage_key, other.export_id.not_in(export_ids))
    with reading() as session:
        return list(session.scalars(mine.where(~shared).distinct()))
