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
class WorkKind:
    """One kind of work: its name, its functions (as dotted names, never imported here) and its queue.

    `job` executes it; `on_end` is called if it ended without its job; both take the id of the row. `attempts`:
    how many times it may be started before it fails because its worker was lost; 1 for work that must not be
    repeated. `select_startable` names the function that selects the queued rows that may start now, if there is a
    limit; `find_unfinished` the function that finds ended rows whose follow-up did not run.
    """

    name: str
    job: str
    on_end: str
    queue: str
    attempts: int
    select_startable: str = ""
    find_unfinished: str = ""

    @property
    def model(self) -> type[Work]:
        """The table of this kind."""
        return MODELS[self.name]


# The registry of all kinds of work.
KINDS: Final[Mapping[str, WorkKind]] = MappingProxyType(
    {
        "export": WorkKind(
            name="export",
            job="jobs.exports.run",
            on_end="webapp.exports.services.return_unused_quota",
            queue="exports",
            attempts=limits.MAX_ATTEMPTS,
            select_startable="webapp.exports.services.select_single_files",
        ),
        "import": WorkKind(
            name="import",
            job="jobs.imports.run",
            on_end="webapp.imports.services.background.settle",
            queue="imports",
            attempts=limits.MAX_ATTEMPTS,
        ),
        "push": WorkKind(
            name="push",
            job="jobs.pushes.push.run",
            on_end="webapp.pushes.services.completion.settle",
            queue="pushes",
            attempts=limits.MAX_ATTEMPTS,
            select_startable="webapp.pushes.services.completion.due",
        ),
        "part": WorkKind(
            name="part",
            job="jobs.exports.run_part",
            on_end="webapp.exports.services.update_after_part",
            queue="parts",  # after the others: a thousand parts must not delay a small export
            attempts=limits.MAX_ATTEMPTS,
            find_unfinished="webapp.exports.services.stalled_parts",
        ),
        "run": WorkKind(
            name="run",
            job="jobs.scenarios.run.run",
            on_end="webapp.scenarios.services.run_completion.settle",
            queue="runs",
            attempts=1,  # the program may have made changes
            select_startable="webapp.scenarios.services.run_completion.startable",
            find_unfinished="webapp.scenarios.services.run_completion.pending",
        ),
    }
)

# The function of every RQ job: the worker looks up the kind in the table above. Other jobs are rejected.
JOB_FUNCTION: Final = "jobs.worker.answer"


def queue_of(client: redis.Redis, kind: str) -> Queue:
    """Return the queue of a kind. Jobs are JSON, so nothing from Redis is unpickled."""
    return Queue(KINDS[kind].queue, connection=client, serializer=JSONSerializer)


def enqueue(client: redis.Redis, kind: str, work_id: str) -> bool:
    """Enqueue one piece of work. Return False if Redis is unavailable; the sweeper enqueues the work later."""
    try:
        queue_of(client, kind).enqueue_call(
            JOB_FUNCTION,
            args=(kind, work_id),
            # A unique id: a job enqueued while an older one is being processed must outlive it.
            job_id=f"{work_id}-{token_hex(4)}",
            description=f"{kind} {work_id}",
            timeout=-1,  # work ends itself; its lease shows whether its worker is alive
            result_ttl=0,
            failure_ttl=limits.FAILED_JOB_SECONDS,
        )
    except redis.RedisError as error:
        log.warning("could not enqueue %s %s, the sweeper will: %s", kind, work_id, error)
        return False
    return True


def queued_ids(client: redis.Redis, kind: str) -> set[str]:
    """Return the ids of the work that has a job in the kind's queue."""
    return {name.rpartition("-")[0] for name in queue_of(client, kind).get_job_ids()}


def enqueue_after_commit(
    session: Session | scoped_session[Any], client: redis.Redis, kind: str, work_id: str
) -> None:
    """Enqueue the work after `session` commits, and not if it is rolled back."""
    real = session() if isinstance(session, scoped_session) else session
    if _PENDING_JOBS not in real.info:
        real.info[_PENDING_JOBS] = []
        event.listen(real, "after_commit", _enqueue_pending_jobs)
        event.listen(real, "after_rollback", _discard_pending_jobs)
    real.info[_PENDING_JOBS].append((client, kind, work_id))


_PENDING_JOBS: Final = "rowsmith.rings"


def _enqueue_pending_jobs(session: Session) -> None:
    if session.in_nested_transaction():
        return  # a savepoint was released; nothing is committed yet
    pending_jobs, session.info[_PENDING_JOBS] = session.info[_PENDING_JOBS], []
    for client, kind, work_id in pending_jobs:
        enqueue(client, kind, work_id)


def _discard_pending_jobs(session: Session) -> None:
    if session.in_nested_transaction():
        return  # a job for a row of that savepoint finds no row, which is harmless
    session.info[_PENDING_JOBS] = []
