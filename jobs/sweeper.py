"""The sweeper finds lost work. `python -m jobs.sweeper` starts one.

Every SWEEP_SECONDS it queries the database for work that is queued without a job in Redis, or whose worker
sends no heartbeats. It enqueues the work again, or ends it with an error if it may not be retried. Any number
of sweepers can run: a key in Redis lets one of them sweep at a time. If Redis is unavailable or was emptied,
two may sweep at the same time. That costs a few queries and is safe, because every UPDATE states the expected
row in its WHERE.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from queue import Empty, SimpleQueue
from typing import Any, Final

import redis
from flask import Flask
from sqlalchemy import and_, or_, select, update
from sqlalchemy.exc import SQLAlchemyError

from jobs.process import create_application, import_function
from webapp import clock, limits
from webapp.audit.services import seals
from webapp.extensions import read_session, redis_client, write_session
from webapp.mail import services as mail
from webapp.metering import hourly
from webapp.monitoring import health, metrics
from webapp.monitoring.health import process_name
from webapp.notifications.models import Delivery
from webapp.notifications.services import notifications, webhooks
from webapp.operations import retention
from webapp.operations.purge import purge
from webapp.scenarios.services import schedules as scenario_schedules
from webapp.schedules import services as schedules
from webapp.work import batch_delete, jobs_queue
from webapp.work.batch_delete import TimeBudget
from webapp.work.jobs_queue import KINDS

log = logging.getLogger(__name__)

# The notifier: detects finished work, and sends webhook deliveries and e-mails that are due.


class NotificationSender:
    """Sends notifications until `stop` is called."""

    def __init__(self, app: Flask, now: Callable[[], datetime] = clock.now) -> None:
        self.app, self.now = app, now
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._busy: Counter[str] = Counter()
        """Deliveries in progress, by webhook."""
        self._threads: list[threading.Thread] = []
        self._mailer: threading.Thread | None = None
        self._loop: threading.Thread | None = None

    def start(self) -> NotificationSender:
        """Start the notifier's thread."""
        self._loop = threading.Thread(target=self.run, name="courier", daemon=True)
        self._loop.start()
        return self

    def stop(self) -> None:
        """Stop and wait briefly for deliveries in progress. Interrupted deliveries are sent again later."""
        self._stopping.set()
        until = time.monotonic() + limits.NOTIFIER_STOP_SECONDS
        for thread in (self._loop, self._mailer, *self._threads):
            if thread is not None:
                thread.join(max(0.0, until - time.monotonic()))

    def run(self) -> None:
        """Process due notifications in a loop."""
        while True:
            try:
                self.run_once()
            except SQLAlchemyError as error:
                log.warning("the database does not respond: %s", type(error).__name__)
            except Exception:  # the next iteration tries again
                log.exception("the notifier failed and will try again")
            if self._stopping.wait(limits.NOTIFIER_POLL_SECONDS):
                break

    def run_once(self) -> None:
        """Create events for finished work and start due deliveries, up to the concurrency limit. Does not
        wait for them."""
        with self.app.app_context():
            count = notifications.notify_finished(self.now) + notifications.send_limit_warnings(self.now)
            if count:
                log.info("created %d events", count)
            while not self._stopping.is_set():
                with self._lock:
                    if self._busy.total() >= limits.WEBHOOK_PARALLEL:
                        break
                    full = [
                        hook for hook, number in self._busy.items() if number >= limits.WEBHOOK_PARALLEL_EACH
                    ]
                delivery = webhooks.claim(self.now(), full)
                if delivery is None:
                    break
                with self._lock:
                    self._busy[delivery.webhook_id] += 1
                thread = threading.Thread(
                    target=self._deliver, args=(delivery,), name="delivery", daemon=True
                )
                self._threads = [item for item in self._threads if item.is_alive()] + [thread]
                thread.start()
        if self._mailer is None or not self._mailer.is_alive():
            self._mailer = threading.Thread(target=self._mail, name="mail", daemon=True)
            self._mailer.start()

    def _deliver(self, delivery: Delivery) -> None:
        try:
            with self.app.app_context():
                webhooks.deliver(delivery, self.now)
        except Exception:  # its claim expires, and it is sent again
            log.exception("delivery %s: the result could not be saved", delivery.id)
        finally:
            with self._lock:
                self._busy[delivery.webhook_id] -= 1

    def _mail(self) -> None:
        try:
            with self.app.app_context():
                mail.send_due(self.now, self._stopping)
        except Exception:  # its claim expires, and it is sent again
            log.exception("the result of an e-mail could not be saved")


LEASE_KEY: Final = "rowsmith:sweeper"
# Acquire the key if it is free, or extend it if we hold it. KEYS[1] is the key; ARGV: owner, milliseconds.
_ACQUIRE_SCRIPT: Final = """
local holder = redis.call("get", KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call("set", KEYS[1], ARGV[1], "px", ARGV[2])
return 1
"""
_RELEASE_SCRIPT: Final = 'if redis.call("get", KEYS[1]) == ARGV[1] then redis.call("del", KEYS[1]) end'


def sweep(client: redis.Redis, now: datetime) -> dict[str, int]:
    """Check every kind of work once. Return how many rows were enqueued (`rung`), `failed` and `cancelled`."""
    done = {"rung": 0, "failed": 0, "cancelled": 0}
    for kind in KINDS:
        with write_session() as session:
            cancelled = session.scalars(_cancel_statement(kind, now)).all()
            failed = session.scalars(_fail_statement(kind, now)).all()
        done["cancelled"] += len(cancelled)
        done["failed"] += len(failed)
        for status, found in (("cancelled", cancelled), ("failed", failed)):
            metrics.count("work_ended", len(found), kind=kind, status=status)
        ended = [*cancelled, *failed]
        if find := KINDS[kind].find_unfinished:
            # Work that ended without its follow-up, because the process that ended it died.
            ended += [work_id for work_id in import_function(find)() if work_id not in ended]
        for work_id in ended:
            try:
                import_function(KINDS[kind].on_end)(work_id)
            except Exception:  # the row has ended in any case, and other rows must be swept too
                log.exception("%s %s has ended, but its follow-up failed", kind, work_id)
        done["rung"] += _enqueue_waiting(client, kind, now)
    return done


def _has_no_worker(model: Any, now: datetime) -> Any:
    """Select running work without a live worker: released, or with an expired lease."""
    return and_(model.status == "running", or_(model.lease_until.is_(None), model.lease_until < now))


def _end_statement(kind: str, now: datetime, status: str) -> Any:
    model = KINDS[kind].model
    return (
        update(model)
        # The epoch changes, so that the worker cannot write if it resumes.
        .values(status=status, finished_at=now, epoch=model.epoch + 1, lease_owner=None, lease_until=None)
        .returning(model.id)
        .execution_options(synchronize_session=False)
    )


def _cancel_statement(kind: str, now: datetime) -> Any:
    """Cancel work that has a cancel request and no worker."""
    model = KINDS[kind].model
    return _end_statement(kind, now, "cancelled").where(
        model.cancel_requested_at.is_not(None), or_(model.status == "queued", _has_no_worker(model, now))
    )


def _fail_statement(kind: str, now: datetime) -> Any:
    """Fail work whose workers were lost in every allowed attempt."""
    model, attempts = KINDS[kind].model, KINDS[kind].attempts
    times = "once" if attempts == 1 else f"{attempts} times"
    error = {
        "code": "worker_lost",
        "message": f"The worker of this {kind} was lost {times}. It will not be retried.",
        "details": {"attempts": attempts},
    }
    return (
        _end_statement(kind, now, "failed")
        .values(error=error)
        .where(model.status == "running", model.lease_until < now, model.attempt >= attempts)
    )


def _enqueue_waiting(client: redis.Redis, kind: str, now: datetime) -> int:
    """Enqueue waiting work that has no job in its queue."""
    model = KINDS[kind].model
    recent = now - timedelta(seconds=limits.QUEUED_AGE_SECONDS)
    waiting = or_(and_(model.status == "queued", model.created_at < recent), _has_no_worker(model, now))
    with read_session() as session:
        statement = select(model.id).where(waiting)
        if turns := KINDS[kind].select_startable:
            statement = import_function(turns)(statement)
        found = session.scalars(statement.order_by(model.created_at).limit(limits.SWEEP_BATCH)).all()
    if not found:
        return 0
    try:
        enqueued = jobs_queue.queued_ids(client, kind)
    except redis.RedisError as error:
        log.warning("Redis is unavailable, %d %s(s) are waiting: %s", len(found), kind, error)
        return 0
    missing = [work_id for work_id in found if work_id not in enqueued]
    metrics.count("rung_again", len(missing), kind=kind)
    return sum(jobs_queue.enqueue(client, kind, work_id) for work_id in missing)


def is_active(client: redis.Redis, owner: str) -> bool:
    """Whether this sweeper is the active one. If Redis is unavailable, every sweeper is."""
    try:
        return bool(
            client.eval(_ACQUIRE_SCRIPT, 1, LEASE_KEY, owner, round(limits.SWEEPER_LEASE_SECONDS * 1000))
        )
    except redis.RedisError:
        return True


class Scheduler:
    """Starts due exports and pushes in threads, so that a target that does not answer delays neither the sweeper nor
    the schedules of other workspaces: each workspace has one thread at a time, and the one that had its turn longest
    ago is next."""

    def __init__(self, app: Flask, now: Callable[[], datetime] = clock.now) -> None:
        self.app = app
        self.now = now
        self._running: dict[str, threading.Thread] = {}
        self._last_turns: dict[str, float] = {}
        self._lock = threading.Lock()

    def run_once(self) -> int:
        """Give a turn to the workspaces that have due schedules, as far as threads are free. Return their number."""
        due = schedules.workspaces_due(self.now())
        with self._lock:
            self._last_turns = {key: at for key, at in self._last_turns.items() if key in due}
            waiting = [item for item in due if item not in self._running]
            waiting.sort(key=lambda item: self._last_turns.get(item, 0.0))
            started = waiting[: max(0, limits.SCHEDULE_THREADS - len(self._running))]
            for workspace_id in started:
                self._last_turns[workspace_id] = time.monotonic()
                thread = threading.Thread(target=self._run_due, args=(workspace_id,), daemon=True)
                self._running[workspace_id] = thread
        for workspace_id in started:
            self._running[workspace_id].start()
        return len(started)

    def _run_due(self, workspace_id: str) -> None:
        try:
            with self.app.app_context():
                schedules.run_due(self.now(), workspace_id, limits.SCHEDULE_TURN_SECONDS)
        except SQLAlchemyError as error:
            log.warning("schedules were not started: %s", type(error).__name__)
        except Exception:  # the workspace gets its next turn in any case
            log.exception("schedules were not started")
        finally:
            with self._lock:
                del self._running[workspace_id]


class Sweeper:
    """Sweeps in a loop until it is stopped.

    `pause(seconds)` waits, and returns True as soon as the sweeper must stop.
    """

    def __init__(
        self, app: Flask, pause: Callable[[float], bool], now: Callable[[], datetime] = clock.now
    ) -> None:
        self.app = app
        self.pause = pause
        self.now = now
        self.owner = process_name()
        self.scheduler = Scheduler(app, now)
        self.since = now().timestamp()
        self.purged_at: datetime | None = None
        self.sealed_at: datetime | None = None
        self.usage_saved_at: datetime | None = None
        self.has_more_to_purge = False
        """Whether the last purge has more to remove in the next sweep."""

    def run_once(self) -> None:
        """Run one iteration: send a heartbeat, and sweep if this sweeper is the active one. Failed parts are
        retried in the next iteration."""
        with self.app.app_context():
            client = redis_client()
            try:
                health.record_heartbeat(client, health.SWEEPER, self.owner, self.now().timestamp())
                health.report_activity(client, health.SWEEPER, self.owner, {"since": self.since})
            except redis.RedisError as error:
                log.warning("Redis is unavailable: %s", error)
            if not is_active(client, self.owner):
                return
            metrics.flush()
            try:
                done = {**sweep(client, self.now())}
                done["scheduled"] = scenario_schedules.run_due(self.now()) + self.scheduler.run_once()
                done["purged"] = self._purge()
                done["sealed"] = self._seal_audit_log()
            except SQLAlchemyError as error:
                log.warning("the database does not respond: %s", type(error).__name__)
                return
            if any(done.values()):
                log.info(
                    "swept: %s", ", ".join(f"{number} {what}" for what, number in done.items() if number)
                )

    def _purge(self) -> int:
        """Remove expired data from time to time. Return the number of rows."""
        now = self.now()
        if batch_delete.is_suspended():  # a backup in progress may still have to copy what would be removed
            return 0
        if self.purged_at is not None and now - self.purged_at < timedelta(seconds=limits.PURGE_SECONDS):
            return 0
        budget = TimeBudget(limits.RETENTION_TURN_SECONDS)
        try:
            done = purge(now, budget, remove_files=not self.has_more_to_purge) + retention.sweep(now, budget)
        except SQLAlchemyError:
            raise
        except Exception:  # for example a full disk or unavailable storage: lost work must still be found
            log.exception(
                "expired data could not be removed; the next attempt is in %d s", limits.PURGE_SECONDS
            )
            self.purged_at, self.has_more_to_purge = now, False
            return 0
        self.has_more_to_purge = budget.was_cut_short
        if not budget.was_cut_short:  # otherwise the next sweep continues, after it has looked for lost work
            self.purged_at = now
        return done

    def _seal_audit_log(self) -> int:
        """From time to time, seal the audit log, remove its old entries and add request counts to the usage.
        Return the number of seals created and emptied. If there is more to do, the next sweep continues."""
        now = self.now()
        if self.usage_saved_at is None or now - self.usage_saved_at >= timedelta(
            seconds=limits.USAGE_FLUSH_SECONDS
        ):
            self.usage_saved_at = now
            try:
                hourly.flush_requests()
                with write_session() as session:
                    hourly.purge(session, now)
            except redis.RedisError as error:
                log.warning("Redis is unavailable, request counts are saved later: %s", error)
        if self.sealed_at is not None and now - self.sealed_at < timedelta(seconds=limits.AUDIT_SEAL_SECONDS):
            return 0
        sealed, removed = seals.seal_all(now), seals.remove_expired(now)
        if sealed < limits.AUDIT_SEALS_PER_TURN and removed < limits.AUDIT_REMOVED_PER_TURN:
            self.sealed_at = now
        return sealed + removed

    def run(self) -> None:
        """Sweep in a loop. When it ends, another sweeper can take over immediately."""
        while True:
            self.run_once()
            if self.pause(limits.SWEEP_SECONDS):
                break
        with self.app.app_context():
            try:
                redis_client().eval(_RELEASE_SCRIPT, 1, LEASE_KEY, self.owner)
                health.record_end(redis_client(), health.SWEEPER, self.owner)
            except redis.RedisError as error:
                log.warning("could not deregister: %s", error)


def main(_argv: Sequence[str] = ()) -> None:
    """Sweep until SIGTERM or SIGINT."""
    signals: SimpleQueue[int] = (
        SimpleQueue()
    )  # unlike an Event, its put() is safe to call in a signal handler
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: signals.put(number))

    def pause(seconds: float) -> bool:
        try:
            signals.get(timeout=seconds)
        except Empty:
            return False
        return True

    app = create_application()
    notifier = NotificationSender(app).start()
    try:
        Sweeper(app, pause).run()
    finally:
        notifier.stop()


if __name__ == "__main__":
    main()
