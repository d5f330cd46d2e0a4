"""The sweeper: what was lost is found here. `python -m jobs.sweeper` runs one.

Every SWEEP_SECONDS it looks, in the database, for work that is queued without a ring or held by a worker that no
longer beats. It rings again, or ends what may not be tried again with a line that says why. Any number may run: a
key in Redis lets one of them sweep at a time. When Redis is down or emptied two may sweep at once, which costs a
few queries and no more, because every change says in its WHERE what it expects to find.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable
from datetime import datetime, timedelta
from queue import Empty, SimpleQueue
from typing import Any, Final

import redis
from flask import Flask
from sqlalchemy import and_, or_, select, update
from sqlalchemy.exc import SQLAlchemyError

from jobs.notifications import Courier
from jobs.process import application, named
from webapp import clock, limits
from webapp.audit.services import seals
from webapp.extensions import reading, redis_client, writing
from webapp.operations import deferred_deletion, health, jobs_queue, metrics, retention
from webapp.operations.batch_delete import Turn
from webapp.operations.health import process_name
from webapp.operations.jobs_queue import KINDS
from webapp.operations.purge import purge
from webapp.scenarios.services import schedules
from webapp.usage.services import hourly

log = logging.getLogger(__name__)

LEASE_KEY: Final = "rowsmith:sweeper"
# Take the key if nobody has it, prolong it if we have it. KEYS[1] the key, ARGV: owner, milliseconds.
_HOLD: Final = """
local holder = redis.call("get", KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call("set", KEYS[1], ARGV[1], "px", ARGV[2])
return 1
"""
_RELEASE: Final = 'if redis.call("get", KEYS[1]) == ARGV[1] then redis.call("del", KEYS[1]) end'


def sweep(client: redis.Redis, now: datetime) -> dict[str, int]:
    """One look at every kind of work. Returns how many rows were `rung`, `failed` and `cancelled`."""
    done = {"rung": 0, "failed": 0, "cancelled": 0}
    for kind in KINDS:
        with writing() as session:
            cancelled = session.scalars(_cancel(kind, now)).all()
            failed = session.scalars(_give_up(kind, now)).all()
        done["cancelled"] += len(cancelled)
        done["failed"] += len(failed)
        for status, found in (("cancelled", cancelled), ("failed", failed)):
            metrics.count("work_ended", len(found), kind=kind, status=status)
        for work_id in (*cancelled, *failed, *_untold(kind, {*cancelled, *failed})):
            _tell(kind, work_id)
        done["rung"] += _ring(client, kind, now)
    return done


def _untold(kind: str, told: set[str]) -> list[str]:
    """Others whose end nobody was told of: whoever ended them died over it."""
    find = KINDS[kind].untold
    return [work_id for work_id in named(find)() if work_id not in told] if find else []


def _tell(kind: str, work_id: str) -> None:
    """Tell the service of a kind that a piece of its work has ended here."""
    try:
        named(KINDS[kind].ended)(work_id)
    except Exception:  # the row has ended whatever its service makes of it; the others must be swept too
        log.exception("%s %s has ended, and its service stumbled over that", kind, work_id)


def _unheld(model: Any, now: datetime) -> Any:
    """Running, with nobody who beats: handed back, or its lease ran out."""
    return and_(model.status == "running", or_(model.lease_until.is_(None), model.lease_until < now))


def _end(kind: str, now: datetime, status: str) -> Any:
    model = KINDS[kind].model
    return (
        update(model)
        # The epoch moves on, so that the worker, should it wake up, can no longer write.
        .values(status=status, finished_at=now, epoch=model.epoch + 1, lease_owner=None, lease_until=None)
        .returning(model.id)
        .execution_options(synchronize_session=False)
    )


def _cancel(kind: str, now: datetime) -> Any:
    """A cancel that no worker is there to obey."""
    model = KINDS[kind].model
    return _end(kind, now, "cancelled").where(
        model.cancel_requested_at.is_not(None), or_(model.status == "queued", _unheld(model, now))
    )


def _give_up(kind: str, now: datetime) -> Any:
    """Work whose workers were lost as often as it may be tried."""
    model, attempts = KINDS[kind].model, KINDS[kind].attempts
    times = "once" if attempts == 1 else f"{attempts} times"
    error = {
        "code": "worker_lost",
        "message": f"The worker that did this {kind} was lost {times}; it is not tried again.",
        "details": {"attempts": attempts},
    }
    return (
        _end(kind, now, "failed")
        .values(error=error)
        .where(model.status == "running", model.lease_until < now, model.attempt >= attempts)
    )


def _ring(client: redis.Redis, kind: str, now: datetime) -> int:
    """Ring for work that waits for nobody in particular and has no ring in its queue."""
    model = KINDS[kind].model
    young = now - timedelta(seconds=limits.RING_AGE_SECONDS)
    waiting = or_(and_(model.status == "queued", model.created_at < young), _unheld(model, now))
    with reading() as session:
        statement = select(model.id).where(waiting)
        if turns := KINDS[kind].turns:
            statement = named(turns)(statement)
        found = session.scalars(statement.order_by(model.created_at).limit(limits.SWEEP_BATCH)).all()
    if not found:
        return 0
    try:
        rings = jobs_queue.waiting(client, kind)
    except redis.RedisError as error:
        log.warning("Redis does not answer, %d %s(s) wait: %s", len(found), kind, error)
        return 0
    missing = [work_id for work_id in found if work_id not in rings]
    metrics.count("rung_again", len(missing), kind=kind)
    return sum(jobs_queue.ring(client, kind, work_id) for work_id in missing)


def mine(client: redis.Redis, owner: str) -> bool:
    """Whether this sweeper is the one that sweeps now. With Redis out of reach everyone does."""
    try:
        return bool(client.eval(_HOLD, 1, LEASE_KEY, owner, round(limits.SWEEPER_LEASE_SECONDS * 1000)))
    except redis.RedisError:
        return True


class Sweeper:
    """Sweeps until told to stop.

    `pause(seconds)` waits so long, and returns True as soon as the sweeper shall end.
    """

    def __init__(
        self, app: Flask, pause: Callable[[float], bool], now: Callable[[], datetime] = clock.now
    ) -> None:
        self.app = app
        self.pause = pause
        self.now = now
        self.owner = process_name()
        self.since = now().timestamp()
        self.purged: datetime | None = None
        self.sealed: datetime | None = None
        self.folded: datetime | None = None
        self.cut = False
        """Whether the last purge left something for the next sweep."""

    def turn(self) -> None:
        """One turn: say that we are there, and sweep if it is ours to do. A part that fails is tried next turn."""
        with self.app.app_context():
            client = redis_client()
            try:
                health.beat(client, health.SWEEPER, self.owner, self.now().timestamp())
                health.describe(client, health.SWEEPER, self.owner, {"since": self.since})
            except redis.RedisError as error:
                log.warning("Redis does not answer: %s", error)
            if not mine(client, self.owner):
                return
            metrics.hand_over_now()
            try:
                done = {**sweep(client, self.now()), "scheduled": schedules.run_due(self.now())}
                done["purged"] = self._purge()
                done["sealed"] = self._keep_trail()
            except SQLAlchemyError as error:
                log.warning("the database does not answer: %s", type(error).__name__)
                return
            if any(done.values()):
                log.info(
                    "swept: %s", ", ".join(f"{number} {what}" for what, number in done.items() if number)
                )

    def _purge(self) -> int:
        """Now and then, remove what has run out. Returns the number of rows."""
        now = self.now()
        if deferred_deletion.held():  # a backup may still have to copy what would be removed
            return 0
        if self.purged is not None and now - self.purged < timedelta(seconds=limits.PURGE_SECONDS):
            return 0
        turn = Turn(limits.DRAIN_SECONDS)
        try:
            done = purge(now, turn, bytes_too=not self.cut) + retention.sweep(now, turn)
        except SQLAlchemyError:
            raise
        except Exception:  # a full disk, a store that is away: lost work must be found all the same
            log.exception("what has run out is not removed; it is tried again in %d s", limits.PURGE_SECONDS)
            self.purged, self.cut = now, False
            return 0
        self.cut = turn.cut
        if not turn.cut:  # else it goes on at the next sweep, after lost work was looked for
            self.purged = now
        return done

    def _keep_trail(self) -> int:
        """Now and then: seal the audit trail, remove what of it is old, take requests over into the usage. Returns the
        number of seals made and emptied. Where that was as much as one turn does, it goes on at the next."""
        now = self.now()
        if self.folded is None or now - self.folded >= timedelta(seconds=limits.USAGE_FOLD_SECONDS):
            self.folded = now
            try:
                hourly.fold_all()
                with writing() as session:
                    hourly.purge(session, now)
            except redis.RedisError as error:
                log.warning("Redis does not answer, requests are taken over later: %s", error)
        if self.sealed is not None and now - self.sealed < timedelta(seconds=limits.AUDIT_SEAL_SECONDS):
            return 0
        made, removed = seals.seal_all(now), seals.remove_old(now)
        if made < limits.AUDIT_SEALS_PER_TURN and removed < limits.AUDIT_REMOVED_PER_TURN:
            self.sealed = now
        return made + removed

    def run(self) -> None:
        """Turn after turn; at the end another sweeper may begin at once."""
        while True:
            self.turn()
            if self.pause(limits.SWEEP_SECONDS):
                break
        with self.app.app_context():
            try:
                redis_client().eval(_RELEASE, 1, LEASE_KEY, self.owner)
                health.gone(redis_client(), health.SWEEPER, self.owner)
            except redis.RedisError as error:
                log.warning("no farewell: %s", error)


def main() -> None:
    """Sweep until SIGTERM or SIGINT."""
    asked: SimpleQueue[int] = SimpleQueue()  # unlike an Event, its put() may be called by a signal handler
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: asked.put(number))

    def pause(seconds: float) -> bool:
        try:
            asked.get(timeout=seconds)
        except Empty:
            return False
        return True

    app = application()
    courier = Courier(app).start()
    try:
        Sweeper(app, pause).run()
    finally:
        courier.stop()


if __name__ == "__main__":
    main()
