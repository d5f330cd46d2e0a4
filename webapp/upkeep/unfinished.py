"""What becomes of work that a backup was taken in the middle of.

Between the backup and its restoration the service of then went on. Files that were being made are made again: nobody
saw them. Whether a program ran or rows were sent since nobody here can know, so neither is done again by itself: the
run or push ends, its error says why, and rows of the chunk in hand are `unknown`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from webapp import clock
from webapp.extensions import writing
from webapp.models import Export, ExportPart, Mail, Push, Run, Scenario
from webapp.services import push_end, schedules

_OPEN: Final = ("queued", "running")
_WHY: Final = {
    Run: (
        "The service was restored from a backup that was taken while this run was going on or waiting. Its program may "
        "have run since; it is not repeated."
    ),
    Push: (
        "The service was restored from a backup that was taken while this push was going on or waiting. Rows that were "
        "not sent by then may have been sent since: look at the target before you retry those that are pending."
    ),
}


def settle(made_at: str) -> dict[str, list[str]]:
    """End, or release, the work that was open in a backup made at `made_at`.

    Return descriptions such as `psh_01J… to customers` of the `runs` and `pushes` that were ended and of the `exports`
    that workers start again. Needs the context of an application on the restored database.
    """
    now = clock.now()
    with writing() as session:
        open_exports = select(Export.id, Export.file_name, Export.format).where(Export.status.in_(_OPEN))
        exports = [f"{row.id} {row.file_name or row.format}" for row in session.execute(open_exports)]
        for model in (Export, ExportPart):
            _free(session, model)
        runs = _end(session, Run, now, made_at)
        pushes = _end(session, Push, now, made_at)
        for push in session.scalars(select(Push).where(Push.id.in_(pushes))):
            # Rows of the hour are counted in Redis, which no backup has: there is nothing to give back.
            push.request = {name: value for name, value in push.request.items() if name != "quota"}
        of_runs = select(Run.id, Scenario.name).join(Scenario, Scenario.id == Run.scenario_id).where(Run.id.in_(runs))
        of_pushes = select(Push.id, Push.target).where(Push.id.in_(pushes))
        ended = {
            "runs": [f"{row.id} of {row.name}" for row in session.execute(of_runs)],
            "pushes": [f"{row.id} to {row.target}" for row in session.execute(of_pushes)],
            "exports": exports,
        }
        _schedules(session, now)
        _mails(session, now)
    for push_id in pushes:
        push_end.settle(push_id)
    return ended


def _free(session: Session, model: Any) -> None:
    """Release running work, so that any worker can take it and the one that held it can no longer write."""
    held = update(model).where(model.status == "running")
    held = held.values(epoch=model.epoch + 1, lease_owner=None, lease_until=None)
    session.execute(held.execution_options(synchronize_session=False))


def _end(session: Session, model: Any, now: datetime, made_at: str) -> list[str]:
    """Work that must not be done twice has its end. The sweeper sees to the rest of a run's."""
    error = {"code": "worker_lost", "message": _WHY[model], "details": {"backup": made_at}}
    ended = (
        update(model)
        .where(model.status.in_(_OPEN))
        .values(
            status="failed",
            error=error,
            finished_at=now,
            epoch=model.epoch + 1,
            lease_owner=None,
            lease_until=None,
        )
        .returning(model.id)
        .execution_options(synchronize_session=False)
    )
    return list(session.scalars(ended))


def _mails(session: Session, now: datetime) -> None:
    """Mails that were on their way have arrived since, or say what is long past. (A webhook's deliveries are sent
    again: their receivers know each by its id.)"""
    why = "The service was restored from a backup: whether it was sent nobody knows."
    ended = {"status": "failed", "ended_at": now, "claimed_until": None, "sealed": None, "reason": why}
    session.execute(
        update(Mail)
        .where(Mail.status == "queued")
        .values(**ended)
        .execution_options(synchronize_session=False)
    )


def _schedules(session: Session, now: datetime) -> None:
    """Times that came between the backup and now had their run then, or are over: the next one counts."""
    due = select(Scenario).where(Scenario.next_run_at <= now)
    for scenario in session.scalars(due):
        scenario.next_run_at = schedules.next_run(scenario.schedule, now)
