"""Whose turn it is: a workspace has so many runs going on at once as its plan allows, the others wait, queued.

The bound is exact: the workspace's row is locked while its running runs are counted and one more is taken.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

import redis
from sqlalchemy import Select, case, func, or_, select
from sqlalchemy.orm import Session

from webapp import limits
from webapp.accounts.models import Workspace
from webapp.extensions import reading
from webapp.operations import jobs_queue
from webapp.scenarios.models import Run

log = logging.getLogger(__name__)

KIND: Final = "run"
_MOST: Final = case(
    *((Workspace.plan == plan, most) for plan, most in limits.RUNS_AT_ONCE.items()),
    else_=1,
)


def may_start(run_id: str) -> Callable[[Session], bool]:
    """What a worker asks in the transaction that takes a run: whether its workspace has a place for it."""

    def ask(session: Session) -> bool:
        run = session.execute(select(Run.workspace_id, Run.status).where(Run.id == run_id)).one_or_none()
        if run is None or run.status != "queued":
            return True  # one that was handed back has its place; of all others `take` decides
        most = session.scalar(
            select(_MOST).where(Workspace.id == run.workspace_id).with_for_update(key_share=True)
        )
        running = session.scalar(
            select(func.count())
            .select_from(Run)
            .where(Run.workspace_id == run.workspace_id, Run.status == "running")
        )
        return (running or 0) < (most or 0)

    return ask


def startable(statement: Select[Any]) -> Select[Any]:
    """A select of runs, less those that are queued and whose turn has not come: the sweeper rings for the others."""
    place = func.row_number().over(partition_by=Run.workspace_id, order_by=(Run.created_at, Run.id))
    queued = (
        select(Run.id, Run.workspace_id, place.label("place"))
        .where(Run.status == "queued", Run.cancel_requested_at.is_(None))
        .subquery()
    )
    running = (
        select(Run.workspace_id, func.count().label("runs"))
        .where(Run.status == "running")
        .group_by(Run.workspace_id)
        .subquery()
    )
    first = (
        select(queued.c.id)
        .join(Workspace, Workspace.id == queued.c.workspace_id)
        .outerjoin(running, running.c.workspace_id == queued.c.workspace_id)
        .where(queued.c.place <= _MOST - func.coalesce(running.c.runs, 0))
    )
    return statement.where(or_(Run.status != "queued", Run.id.in_(first)))


def ring_next(client: redis.Redis, workspace_id: str) -> None:
    """Ring for the workspace's runs whose turn has come and that have no ring yet. Without Redis the sweeper will."""
    queued = select(Run.id).where(Run.workspace_id == workspace_id, Run.status == "queued")
    with reading() as session:
        found = session.scalars(startable(queued).order_by(Run.created_at, Run.id)).all()
    if not found:
        return
    try:
        rings = jobs_queue.waiting(client, KIND)
    except redis.RedisError as error:
        log.warning("Redis does not answer, %d run(s) wait: %s", len(found), error)
        return
    for run_id in found:
        if run_id not in rings:
            jobs_queue.ring(client, KIND, run_id)
