"""Doing one piece of work while nobody else does: lease, beat, fence, cancel, hand back.

    with leased("export", export_id) as work:
        for block in blocks:
            work.check()                 # raises when cancelled, fenced off or asked to stop
            work.save(rows_done=done)    # writes only while this worker still holds the lease
        work.finish(bytes=size, sha256=digest)

The row in the database decides. Taking the lease raises the row's `epoch`; every write says `WHERE epoch = ` the one
it took, so a worker that was thought dead and wakes up changes nothing. While the block runs, a thread beats every
BEAT_SECONDS and looks for a cancel twice a second. What the block raises becomes the row's end; the statement after
the block is reached in every case but one: `NotFree` when there was nothing to take.

Leases are compared by the clocks of the machines that run workers, which must agree within a few seconds.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Final

from flask import current_app
from sqlalchemy import CursorResult, Row, Update, and_, case, or_, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from webapp import clock, limits
from webapp.errors import ApiError
from webapp.extensions import reading, redis_client, writing
from webapp.operations import metrics, process_log
from webapp.operations.health import process_name
from webapp.operations.jobs_queue import KINDS, ring
from webapp.operations.models import END_STATES

log = logging.getLogger(__name__)

HALF_LEASE: Final = timedelta(seconds=limits.LEASE_SECONDS / 2)

# Set by the signal that asks this process to stop; a process does one piece of work at a time.
stopping = threading.Event()


class Interrupted(Exception):
    """The work must not go on here; the row says why."""


class NotFree(Interrupted):
    """There is nothing to take: ended, cancelled, gone, or another worker has it."""


class Cancelled(Interrupted):
    """Somebody asked for the end of this work."""


class Fenced(Interrupted):
    """Another worker has taken the work over; nothing more may be written or sent."""


class HandBack(Interrupted):
    """This worker is stopping; another one goes on."""


class Postponed(HandBack):
    """The work cannot continue now: it is released, and `values` of its row say when it can be taken again."""

    def __init__(self, work_id: str, **values: Any) -> None:
        super().__init__(work_id)
        self.values = values


class Lease:
    """One piece of work, held. Made by `leased`."""

    def __init__(
        self, kind: str, work_id: str, taken: Row[int, int], until: datetime, now: Callable[[], datetime]
    ) -> None:
        self.kind = kind
        self.id = work_id
        self.epoch: int = taken.epoch
        self.attempt: int = taken.attempt
        self.ended = False
        self.closing: Callable[[Session], None] | None = None
        """Writes what belongs to the end of the work, in the same transaction."""
        self._model = KINDS[kind].model
        self._now = now
        self._began = now()
        self._until = until
        self._cancelled = False
        self._fenced = False

    @property
    def cancelled(self) -> bool:
        """Whether a cancel was seen. Never raises, as `check` does."""
        return self._cancelled

    @property
    def fenced(self) -> bool:
        """Whether another worker was seen to have taken over."""
        return self._fenced

    def check(self) -> None:
        """Raise if the work must not go on: `Cancelled`, `Fenced`, `HandBack`. Cheap enough for every block.

        A process that was frozen finds its lease old here and asks the database before it goes on.
        """
        if self._fenced:
            raise Fenced(self.id)
        if self._cancelled:
            raise Cancelled(self.id)
        if stopping.is_set():
            raise HandBack(self.id)
        if self._now() >= self._until - HALF_LEASE:
            self.beat()
            if self._fenced:
                raise Fenced(self.id)

    def save(self, **values: Any) -> None:
        """Write columns of the row, committed at once. `Fenced` if another worker holds it now."""
        with self.transaction() as session:
            session.execute(self._mine().values(**values))

    @contextmanager
    def transaction(self, **values: Any) -> Iterator[Session]:
        """A transaction of other tables that holds only while the lease does: the row is locked by its epoch first, and
        gets `values`."""
        with writing() as session:
            held = session.execute(self._mine().values(epoch=self.epoch, **values))
            assert isinstance(held, CursorResult)  # what an update gives
            if held.rowcount != 1:
                self._fenced = True
                raise Fenced(self.id)
            yield session

    def finish(self, status: str = "completed", **values: Any) -> None:
        """End the work with a final state and what else its row shall hold. `Fenced` as in `save`."""
        if status not in END_STATES:
            raise ValueError(f"{status!r} is not an end state")
        ended = {"status": status, "finished_at": self._now(), "lease_owner": None, "lease_until": None}
        with self.transaction() as session:
            session.execute(self._mine().values(**ended, **values))
            if self.closing is not None:
                self.closing(session)
        self.ended = True
        metrics.ended(self.kind, status, (self._now() - self._began).total_seconds())

    def beat(self) -> None:
        """Prolong the lease, or learn that it is lost."""
        until = self._now() + timedelta(seconds=limits.LEASE_SECONDS)
        with writing() as session:
            renewed = session.execute(self._mine().values(lease_until=until))
            assert isinstance(renewed, CursorResult)  # what an update gives
            kept = renewed.rowcount == 1
        if kept:
            self._until = until
        else:
            self._fenced = True

    def look(self) -> None:
        """Read whether a cancel was asked for or another worker has taken over."""
        model = self._model
        with reading() as session:
            row = session.execute(
                select(model.epoch, model.status, model.cancel_requested_at).where(model.id == self.id)
            ).first()
        if row is None or row.epoch != self.epoch or row.status != "running":
            self._fenced = True
        elif row.cancel_requested_at is not None:
            self._cancelled = True

    def hand_back(self) -> None:
        """Free the row for another worker; the attempt does not count as lost. Then ring for that worker."""
        self.save(lease_owner=None, lease_until=None)
        ring(redis_client(), self.kind, self.id)

    def postpone(self, **values: Any) -> None:
        """Free the row, writing `values` into it, without waking a worker; the attempt does not count as lost."""
        self.save(lease_owner=None, lease_until=None, **values)

    def _mine(self) -> Update:
        model = self._model
        return update(model).where(model.id == self.id, model.epoch == self.epoch, model.status == "running")


@contextmanager
def leased(
    kind: str,
    work_id: str,
    now: Callable[[], datetime] = clock.now,
    may: Callable[[Session], bool] | None = None,
) -> Iterator[Lease]:
    """Take one piece of work and hold it while the block runs; then write how it ended. Needs an app context.

    A block that returns must have called `finish`. What it raises ends the work: `Cancelled` as cancelled, an
    ApiError as failed with its code, anything else as failed with `internal_error` (the log has the trace, the row
    has not: it could hold a secret). `HandBack` frees the row, `Fenced` leaves it to its new holder. `may`: as in
    `take`.
    """
    work = take(kind, work_id, now, may)
    ended = threading.Event()
    app = current_app._get_current_object()  # type: ignore[attr-defined]
    beats = threading.Thread(target=_keep, args=(app, work, ended), name=f"beat-{work_id}", daemon=True)
    beats.start()
    process_log.begin_work(kind, work_id)
    log.info("%s %s: attempt %d, epoch %d", kind, work_id, work.attempt, work.epoch)
    try:
        yield work
        if not work.ended:
            raise RuntimeError(f"the job for {kind} returned without finish()")
    except Interrupted as reason:
        _interrupted(work, reason)
    except Exception as error:
        log.exception("%s %s failed", kind, work_id)
        if not work.ended:
            _failed(work, error)
    finally:
        ended.set()
        beats.join()
        process_log.end_work()


def take(
    kind: str, work_id: str, now: Callable[[], datetime], may: Callable[[Session], bool] | None = None
) -> Lease:
    """Take the row if it is free, in one statement. `NotFree` otherwise, or where `may`, asked in the same transaction,
    says no."""
    model = KINDS[kind].model
    moment = now()
    until = moment + timedelta(seconds=limits.LEASE_SECONDS)
    handed_back = and_(model.status == "running", model.lease_owner.is_(None))
    lost = and_(model.status == "running", model.lease_until < moment, model.attempt < KINDS[kind].attempts)
    statement = (
        update(model)
        .where(model.id == work_id, model.cancel_requested_at.is_(None))
        .where(or_(model.status == "queued", handed_back, lost))
        .values(
            status="running",
            epoch=model.epoch + 1,
            attempt=case((handed_back, model.attempt), else_=model.attempt + 1),
            lease_owner=process_name(),
            lease_until=until,
            started_at=case((model.started_at.is_(None), moment), else_=model.started_at),
        )
        .returning(model.epoch, model.attempt)
        .execution_options(synchronize_session=False)
    )
    with writing() as session:
        taken = session.execute(statement).first() if may is None or may(session) else None
    if taken is None:
        raise NotFree(work_id)
    return Lease(kind, work_id, taken, until, now)


def _keep(app: Any, work: Lease, ended: threading.Event) -> None:
    """Beat and look until the work has ended. A database that does not answer is asked again."""
    turns = 0
    every = round(limits.BEAT_SECONDS / limits.CANCEL_POLL_SECONDS)
    while not ended.wait(limits.CANCEL_POLL_SECONDS):
        turns += 1
        try:
            with app.app_context():
                if turns % every == 0:
                    work.beat()
                else:
                    work.look()
        except SQLAlchemyError as error:
            log.warning("%s %s: no beat: %s", work.kind, work.id, type(error).__name__)


def _interrupted(work: Lease, reason: Interrupted) -> None:
    """Write what an interruption means for the row."""
    log.info("%s %s: %s", work.kind, work.id, type(reason).__name__)
    try:
        if isinstance(reason, Cancelled):
            work.finish("cancelled")
        elif isinstance(reason, Postponed):
            work.postpone(**reason.values)
        elif isinstance(reason, HandBack):
            work.hand_back()
    except Fenced:
        log.info("%s %s: taken over meanwhile", work.kind, work.id)


def _failed(work: Lease, error: Exception) -> None:
    """Write a failure into the row, if it is still ours."""
    known = error if isinstance(error, ApiError) else ApiError("internal_error")
    try:
        work.finish("failed", error=known.as_dict()["error"])
    except Fenced:
        log.info("%s %s: taken over meanwhile", work.kind, work.id)
    except SQLAlchemyError:
        log.warning("%s %s: the failure could not be written; the lease will run out", work.kind, work.id)
