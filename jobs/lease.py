"""Hold a lease on one piece of work: acquire it, renew it with heartbeats, lose it, release it, cancel the
work.

    with leased("export", export_id) as work:
        for block in blocks:
            work.check()                 # raises if the work was cancelled, the lease lost or the worker stopped
            work.save(rows_done=done)    # writes only while this worker holds the lease
        work.finish(bytes=size, sha256=digest)

The database row decides. Acquiring the lease increments the row's `epoch`, and every write has `WHERE epoch =
` with the acquired value, so a worker that was considered dead and resumes cannot change anything. While the
block runs, a thread sends a heartbeat every LEASE_RENEWAL_SECONDS and checks for a cancel request twice a second. An
exception in the block becomes the final state of the row. The statement after the block is always reached,
unless there was nothing to acquire (`NotAvailable`).

Leases are compared by the clocks of the machines that run workers, which must agree within a few seconds.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Row, Update, and_, case, or_, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from webapp import clock, limits
from webapp.errors import ApiError
from webapp.extensions import affected_row_count, application, read_session, redis_client, write_session
from webapp.monitoring import metrics, process_log
from webapp.monitoring.health import process_name
from webapp.work.jobs_queue import KINDS, enqueue
from webapp.work.models import END_STATES

log = logging.getLogger(__name__)

HALF_LEASE: Final = timedelta(seconds=limits.LEASE_SECONDS / 2)

# Set by the signal handler that stops this process. A process does one piece of work at a time.
stopping = threading.Event()


class Interrupted(Exception):
    """This worker must stop the work. The type says why."""


class NotAvailable(Interrupted):
    """There is no work to acquire: it has ended, was cancelled or deleted, or another worker has its lease."""


class Cancelled(Interrupted):
    """A user cancelled the work."""


class LeaseLost(Interrupted):
    """Another worker has the lease. Nothing more may be written or sent."""


class Released(Interrupted):
    """This worker is stopping. Another worker continues."""


class Postponed(Released):
    """The work cannot continue now: it is released, and `values` of its row say when it can be taken again."""

    def __init__(self, work_id: str, **values: Any) -> None:
        super().__init__(work_id)
        self.values = values


class Lease:
    """A lease on one piece of work. Created by `leased`."""

    def __init__(
        self, kind: str, work_id: str, acquired: Row[int, int], until: datetime, now: Callable[[], datetime]
    ) -> None:
        self.kind = kind
        self.id = work_id
        self.epoch: int = acquired.epoch
        self.attempt: int = acquired.attempt
        self.is_finished = False
        self.on_finish: Callable[[Session], None] | None = None
        """Called with the session of the transaction that ends the work."""
        self._model = KINDS[kind].model
        self._now = now
        self._began = now()
        self._until = until
        self._cancelled = False
        self._lost = False

    @property
    def is_cancelled(self) -> bool:
        """Whether the work was cancelled. Unlike `check`, this never raises."""
        return self._cancelled

    @property
    def is_lost(self) -> bool:
        """Whether another worker has the lease now."""
        return self._lost

    def check(self) -> None:
        """Raise `Cancelled`, `LeaseLost` or `Released` if the work must stop. Cheap enough to call for every
        block.

        A process that was suspended finds its lease expired here and checks the database before it continues.
        """
        if self._lost:
            raise LeaseLost(self.id)
        if self._cancelled:
            raise Cancelled(self.id)
        if stopping.is_set():
            raise Released(self.id)
        if self._now() >= self._until - HALF_LEASE:
            self.renew()
            if self._lost:
                raise LeaseLost(self.id)

    def save(self, **values: Any) -> None:
        """Update columns of the row and commit. Raise `LeaseLost` if another worker has the lease."""
        with self.transaction(**values):
            pass

    @contextmanager
    def transaction(self, **values: Any) -> Iterator[Session]:
        """Run a transaction that commits only while the lease is held: `values` are written to the row first,
        with its epoch as the condition.

        One UPDATE does both: PostgreSQL checks the foreign keys of a row that a transaction changes twice,
        and would then wait for the holder of the parent row.
        """
        with write_session() as session:
            result = session.execute(self._held_row().values(epoch=self.epoch, **values))
            if affected_row_count(result) != 1:
                self._lost = True
                raise LeaseLost(self.id)
            yield session

    def finish(self, status: str = "completed", **values: Any) -> None:
        """End the work with a final status and write `values` to its row. Raise `LeaseLost` as `save` does."""
        if status not in END_STATES:
            raise ValueError(f"{status!r} is not an end state")
        ended = {"status": status, "finished_at": self._now(), "lease_owner": None, "lease_until": None}
        with self.transaction(**ended, **values) as session:
            if self.on_finish is not None:
                self.on_finish(session)
        self.is_finished = True
        metrics.count_finished_job(self.kind, status, (self._now() - self._began).total_seconds())

    def renew(self) -> None:
        """Send a lease heartbeat: extend the lease, or note that it is lost."""
        until = self._now() + timedelta(seconds=limits.LEASE_SECONDS)
        with write_session() as session:
            is_held = affected_row_count(session.execute(self._held_row().values(lease_until=until))) == 1
        if is_held:
            self._until = until
        else:
            self._lost = True

    def refresh(self) -> None:
        """Read from the database whether the work was cancelled or the lease is lost."""
        model = self._model
        with read_session() as session:
            row = session.execute(
                select(model.epoch, model.status, model.cancel_requested_at).where(model.id == self.id)
            ).first()
        if row is None or row.epoch != self.epoch or row.status != "running":
            self._lost = True
        elif row.cancel_requested_at is not None:
            self._cancelled = True

    def release(self) -> None:
        """Release the lease for another worker and notify one. The attempt does not count as lost."""
        self.save(lease_owner=None, lease_until=None)
        enqueue(redis_client(), self.kind, self.id)

    def postpone(self, **values: Any) -> None:
        """Release the lease and write `values` to the row, without notifying a worker. The attempt does not
        count as lost."""
        self.save(lease_owner=None, lease_until=None, **values)

    def _held_row(self) -> Update:
        model = self._model
        return update(model).where(model.id == self.id, model.epoch == self.epoch, model.status == "running")


@contextmanager
def leased(
    kind: str,
    work_id: str,
    now: Callable[[], datetime] = clock.now,
    condition: Callable[[Session], bool] | None = None,
) -> Iterator[Lease]:
    """Acquire a lease, hold it while the block runs, then write the final state. Needs an application
    context.

    A block that returns must have called `finish`. An exception ends the work: `Cancelled` as cancelled, an
    ApiError as failed with its code, any other as failed with `internal_error` (the traceback is in the log
    only, because it could contain a secret). `Released` releases the lease, `LeaseLost` writes nothing.
    `condition`: see `acquire`.
    """
    work = acquire(kind, work_id, now, condition)
    finished = threading.Event()
    app = application()
    renewals = threading.Thread(
        target=_keep_renewed, args=(app, work, finished), name=f"beat-{work_id}", daemon=True
    )
    renewals.start()
    process_log.begin_work(kind, work_id)
    log.info("%s %s: attempt %d, epoch %d", kind, work_id, work.attempt, work.epoch)
    try:
        yield work
        if not work.is_finished:
            raise RuntimeError(f"the job for {kind} returned without finish()")
    except Interrupted as reason:
        log.info("%s %s: %s", kind, work_id, type(reason).__name__)
        try:
            if isinstance(reason, Cancelled):
                work.finish("cancelled")
            elif isinstance(reason, Postponed):
                work.postpone(**reason.values)
            elif isinstance(reason, Released):
                work.release()
        except LeaseLost:
            log.info("%s %s: another worker has the lease", kind, work_id)
    except Exception as error:
        log.exception("%s %s failed", kind, work_id)
        if not work.is_finished:
            failure = error if isinstance(error, ApiError) else ApiError("internal_error")
            try:
                work.finish("failed", error=failure.as_dict()["error"])
            except LeaseLost:
                log.info("%s %s: another worker has the lease", kind, work_id)
            except SQLAlchemyError:
                log.warning("%s %s: the failure could not be written; the lease will expire", kind, work_id)
    finally:
        finished.set()
        renewals.join()
        process_log.end_work()


def acquire(
    kind: str, work_id: str, now: Callable[[], datetime], condition: Callable[[Session], bool] | None = None
) -> Lease:
    """Acquire the lease in one statement. Raise `NotAvailable` if it is not free or if `condition`, called in the
    same transaction, returns False."""
    model = KINDS[kind].model
    moment = now()
    until = moment + timedelta(seconds=limits.LEASE_SECONDS)
    released = and_(model.status == "running", model.lease_owner.is_(None))
    lost = and_(model.status == "running", model.lease_until < moment, model.attempt < KINDS[kind].attempts)
    statement = (
        update(model)
        .where(model.id == work_id, model.cancel_requested_at.is_(None))
        .where(or_(model.status == "queued", released, lost))
        .values(
            status="running",
            epoch=model.epoch + 1,
            attempt=case((released, model.attempt), else_=model.attempt + 1),
            lease_owner=process_name(),
            lease_until=until,
            started_at=case((model.started_at.is_(None), moment), else_=model.started_at),
        )
        .returning(model.epoch, model.attempt)
        .execution_options(synchronize_session=False)
    )
    with write_session() as session:
        acquired = session.execute(statement).first() if condition is None or condition(session) else None
    if acquired is None:
        raise NotAvailable(work_id)
    return Lease(kind, work_id, acquired, until, now)


def _keep_renewed(app: Any, work: Lease, finished: threading.Event) -> None:
    """Send heartbeats and check for a cancel request until the work has ended. Database errors are retried."""
    turns = 0
    every = round(limits.LEASE_RENEWAL_SECONDS / limits.CANCEL_POLL_SECONDS)
    while not finished.wait(limits.CANCEL_POLL_SECONDS):
        turns += 1
        try:
            with app.app_context():
                if turns % every == 0:
                    work.renew()
                else:
                    work.refresh()
        except SQLAlchemyError as error:
            log.warning("%s %s: heartbeat failed: %s", work.kind, work.id, type(error).__name__)
