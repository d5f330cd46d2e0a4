"""Enqueue work and notify workers. The only module of the application that uses RQ.

A row in the database is the work. The RQ job only wakes a worker. It is enqueued after the row is committed,
so there is none for a row that was rolled back. It may be lost: the sweeper enqueues the work again.
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
from webapp.work.models import MODELS, Work

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of work: its name, its functions (as dotted names, never imported here) and its queue.

    `job` executes it; `ended` is called if it ended without its job; both take the id of the row. `attempts`:
    how many times it may be started before it fails because its worker was lost; 1 for work that must not be
    repeated. `turns` names the function that selects the queued rows that may start now, if there is a limit;
    `pending` the function that finds ended rows whose follow-up did not run.
    """

    name: str
    job: str
    ended: str
    queue: str
    attempts: int
    turns: str = ""
    pending: str = ""

    @property
    def model(self) -> type[Work]:
        """The table of this kind."""
        return MODELS[self.name]


# The registry of all kinds of work.
KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "export": Kind(
            name="export",
            job="jobs.exports.run",
            ended="webapp.exports.services.settle",
            queue="exports",
            attempts=limits.MAX_ATTEMPTS,
            turns="webapp.exports.services.in_one",
        ),
        "import": Kind(
            name="import",
            job="jobs.imports.run",
            ended="webapp.imports.services.background.settle",
            queue="imports",
            attempts=limits.MAX_ATTEMPTS,
        ),
        "push": Kind(
            name="push",
            job="jobs.pushes.push.run",
            ended="webapp.pushes.services.completion.settle",
            queue="pushes",
            attempts=limits.MAX_ATTEMPTS,
            turns="webapp.pushes.services.completion.due",
        ),
        "part": Kind(
            name="part",
            job="jobs.exports.run_part",
            ended="webapp.exports.services.settle_part",
            queue="parts",  # after the others: a thousand parts must not delay a small export
            attempts=limits.MAX_ATTEMPTS,
            pending="webapp.exports.services.stalled_parts",
        ),
        "run": Kind(
            name="run",
            job="jobs.scenarios.run.run",
            ended="webapp.scenarios.services.run_completion.settle",
            queue="runs",
            attempts=1,  # the program may have made changes
            turns="webapp.scenarios.services.run_completion.startable",
            pending="webapp.scenarios.services.run_completion.pending",
        ),
    }
)

# The function of every RQ job: the worker looks up the kind in the table above. Other jobs are rejected.
ANSWER: Final = "jobs.worker.answer"


def queue_of(client: redis.Redis, kind: str) -> Queue:
    """Return the queue of a kind. Jobs are JSON, so nothing from Redis is unpickled."""
    return Queue(KINDS[kind].queue, connection=client, serializer=JSONSerializer)


def ring(client: redis.Redis, kind: str, work_id: str) -> bool:
    """Enqueue one piece of work. Return False if Redis is unavailable; the sweeper enqueues the work later."""
    try:
        queue_of(client, kind).enqueue_call(
            ANSWER,
            args=(kind, work_id),
            # A unique id: a job enqueued while an older one is being processed must outlive it.
            job_id=f"{work_id}-{token_hex(4)}",
            description=f"{kind} {work_id}",
            timeout=-1,  # work ends itself; its lease shows whether its worker is alive
            result_ttl=0,
            failure_ttl=limits.DOORBELL_SECONDS,
        )
    except redis.RedisError as error:
        log.warning("could not enqueue %s %s, the sweeper will: %s", kind, work_id, error)
        return False
    return True


def waiting(client: redis.Redis, kind: str) -> set[str]:
    """Return the ids of the work that has a job in the kind's queue."""
    return {name.rpartition("-")[0] for name in queue_of(client, kind).get_job_ids()}


def after_commit(
    session: Session | scoped_session[Any], client: redis.Redis, kind: str, work_id: str
) -> None:
    """Enqueue the work after `session` commits, and not if it is rolled back."""
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
        return  # a job for a row of that savepoint finds no row, which is harmless
    session.info[_RINGS] = []
