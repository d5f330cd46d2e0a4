"""Ringing for a worker. The only user of RQ in the application.

A row in the database is the work; the ring only wakes somebody up. It is made after the row is committed, so
none exists for a row that was rolled back, and it may be lost: the sweeper rings again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from secrets import token_hex
from types import MappingProxyType
from typing import Any, Final

import redis
from rq import Queue
from rq.serializers import JSONSerializer
from sqlalchemy import event
from sqlalchemy.orm import Session, scoped_session

from webapp import limits
from webapp.generation.models import Export, ExportPart
from webapp.operations.models import Work
from webapp.pushes.models import Push
from webapp.scenarios.models import Run

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of work: its table, the functions that know it (named, never imported here), its queue.

    `job` does it; `ended` is told when it ended without its job: both take the id of the row. `attempts`: how often
    it may be taken up before a lost worker ends it as failed; 1 for what must not be repeated. `turns` names the
    function that says which of the queued rows may be taken now, where not all may; `untold` the one that finds rows
    whose end nobody was told of.
    """

    model: type[Work]
    job: str
    ended: str
    queue: str
    attempts: int
    turns: str = ""
    untold: str = ""


# Every kind of work.
KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "export": Kind(
            model=Export,
            job="jobs.exports.run",
            ended="webapp.generation.services.exports.settle",
            queue="exports",
            attempts=limits.MAX_ATTEMPTS,
            turns="webapp.generation.services.export_parts.in_one",
        ),
        "push": Kind(
            model=Push,
            job="jobs.pushes.push.run",
            ended="webapp.pushes.services.completion.settle",
            queue="pushes",
            attempts=limits.MAX_ATTEMPTS,
            turns="webapp.pushes.services.completion.due",
        ),
        "part": Kind(
            model=ExportPart,
            job="jobs.exports.run_part",
            ended="webapp.generation.services.exports.settle_part",
            queue="parts",  # behind the others: a thousand parts must not keep a small export waiting
            attempts=limits.MAX_ATTEMPTS,
            untold="webapp.generation.services.export_parts.untold",
        ),
        "run": Kind(
            model=Run,
            job="jobs.scenarios.run.run",
            ended="webapp.scenarios.services.run_completion.settle",
            queue="runs",
            attempts=1,  # its program may have acted
            turns="webapp.scenarios.services.run_queue.startable",
            untold="webapp.scenarios.services.run_completion.untold",
        ),
    }
)

# What the doorbell calls: the worker looks the kind up in the table above. Anything else on a queue is dropped.
ANSWER: Final = "jobs.worker.answer"


def queue_of(client: redis.Redis, kind: str) -> Queue:
    """The queue of a kind. Jobs are JSON: what lies in Redis is never unpickled."""
    return Queue(KINDS[kind].queue, connection=client, serializer=JSONSerializer)


def ring(client: redis.Redis, kind: str, work_id: str) -> bool:
    """Wake a worker for one piece of work. Returns False when Redis cannot be reached: the sweeper rings later."""
    try:
        queue_of(client, kind).enqueue_call(
            ANSWER,
            args=(kind, work_id),
            # A name of its own: a ring made while an older one is being answered must outlive it.
            job_id=f"{work_id}-{token_hex(4)}",
            description=f"{kind} {work_id}",
            timeout=-1,  # each kind of work ends itself; the lease shows whether it still lives
            result_ttl=0,
            failure_ttl=limits.DOORBELL_SECONDS,
        )
    except redis.RedisError as error:
        log.warning("no ring for %s %s, the sweeper will: %s", kind, work_id, error)
        return False
    return True


def waiting(client: redis.Redis, kind: str) -> set[str]:
    """The ids of the work whose ring waits in the kind's queue."""
    return {name.rpartition("-")[0] for name in queue_of(client, kind).get_job_ids()}


def after_commit(
    session: Session | scoped_session[Any], client: redis.Redis, kind: str, work_id: str
) -> None:
    """Ring once `session` has committed what it holds now; never if that is rolled back."""
    real = session() if isinstance(session, scoped_session) else session
    if _RINGS not in real.info:
        real.info[_RINGS] = []
        event.listen(real, "after_commit", _ring_all)
        event.listen(real, "after_rollback", _ring_none)
    real.info[_RINGS].append((client, kind, work_id))


_RINGS: Final = "rowsmith.rings"


def _ring_all(session: Session) -> None:
    if session.in_nested_transaction():
        return  # a savepoint was released; nothing is committed yet
    rings, session.info[_RINGS] = session.info[_RINGS], []
    for client, kind, work_id in rings:
        ring(client, kind, work_id)


def _ring_none(session: Session) -> None:
    if session.in_nested_transaction():
        return  # a ring for a row of that savepoint finds no row, which is harmless
    session.info[_RINGS] = []
