"""Save schedules of exports and pushes, and start the jobs that are due, each due time exactly once."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal
from zoneinfo import ZoneInfo

from sqlalchemy import func, select, update
from sqlalchemy.exc import SQLAlchemyError

from webapp import clock, ids, limits, pagination, quotas
from webapp.access import tenancy
from webapp.access.actors import Actor, require_scope
from webapp.access.models import Project, Workspace
from webapp.accounts.services import identity
from webapp.audit.services import audit_log
from webapp.datasets.models import Dataset
from webapp.datasets.schemas import DatasetExportInput
from webapp.errors import ApiError, Fault, validation_error
from webapp.exports import services as exports
from webapp.exports.models import Export
from webapp.extensions import affected_row_count, db, read_session
from webapp.metering import stored_json
from webapp.pushes.models import Push
from webapp.pushes.schemas import DatasetPushInput, PushInput, UndoInput
from webapp.pushes.services import preparation, pushes, retries
from webapp.row_templates.models import Template
from webapp.row_templates.schemas import TemplateExportInput
from webapp.scenarios.services import schedules
from webapp.schedules.models import Schedule

log = logging.getLogger(__name__)

# Repetitions in words: `every day at 02:00` as a cron expression, and back.

Every = Literal["hour", "day", "weekdays", "week", "month", "last_day", "cron"]
REPETITIONS: Final[tuple[tuple[Every, str], ...]] = (
    ("hour", "Every hour"),
    ("day", "Every day"),
    ("weekdays", "Monday to Friday"),
    ("week", "Every week"),
    ("month", "Every month"),
    ("last_day", "Last day of the month"),
    ("cron", "Cron expression"),
)
DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_NUMBER: Final = re.compile(r"\d{1,2}")


@dataclass(frozen=True, slots=True)
class Repetition:
    """A repetition. `at` is a time of day, `HH:MM` (of an hour, only its minutes count); `weekday` counts from Sunday,
    0; `day` is that of the month; `cron` is set for `cron` only."""

    every: Every = "day"
    at: str = "02:00"
    weekday: int = 1
    day: int = 1
    cron: str = ""


def to_cron(repeat: Repetition) -> str:
    """Return the cron expression of a repetition."""
    if repeat.every == "cron":
        return " ".join(repeat.cron.split())
    hour, minute = (int(part) for part in repeat.at.split(":"))
    return {
        "hour": f"{minute} * * * *",
        "day": f"{minute} {hour} * * *",
        "weekdays": f"{minute} {hour} * * 1-5",
        "week": f"{minute} {hour} * * {repeat.weekday}",
        "month": f"{minute} {hour} {repeat.day} * *",
        "last_day": f"{minute} {hour} L * *",
    }[repeat.every]


def from_cron(cron: str) -> Repetition:
    """Return the repetition that produces a cron expression; `cron` if none does."""
    parts = cron.split()
    if len(parts) != 5 or not _NUMBER.fullmatch(parts[0]):
        return Repetition("cron", cron=cron)
    minute, hour, day, month, weekday = parts
    if hour == "*" and (day, month, weekday) == ("*", "*", "*"):
        return Repetition("hour", f"00:{int(minute):02}")
    if not _NUMBER.fullmatch(hour) or month != "*":
        return Repetition("cron", cron=cron)
    at = f"{int(hour):02}:{int(minute):02}"
    if (day, weekday) == ("*", "*"):
        return Repetition("day", at)
    if (day, weekday) == ("*", "1-5"):
        return Repetition("weekdays", at)
    if day == "*" and weekday in tuple("0123456"):
        return Repetition("week", at, weekday=int(weekday))
    if weekday == "*" and day.upper() == "L":
        return Repetition("last_day", at)
    if weekday == "*" and _NUMBER.fullmatch(day):
        return Repetition("month", at, day=int(day))
    return Repetition("cron", cron=cron)


def describe_cron(cron: str) -> str:
    """Return a cron expression in words, such as `Every day at 02:00`."""
    repeat = from_cron(cron)
    if repeat.every == "hour":
        minute = repeat.at.removeprefix("00")
        return "Every hour" if minute == ":00" else f"Every hour at {minute}"
    return {
        "day": f"Every day at {repeat.at}",
        "weekdays": f"Weekdays at {repeat.at}",
        "week": f"{DAYS[repeat.weekday]}s at {repeat.at}",
        "month": f"Day {repeat.day} of the month at {repeat.at}",
        "last_day": f"Last day of the month at {repeat.at}",
        "cron": f"Cron {cron}",
    }[repeat.every]


SCOPES: Final = {"export": "generate", "push": "push"}


class AlreadyStarted(Exception):
    """Another process has started the job of this due time."""


class UndoPending(Exception):
    """The previous push is being undone. The job of this due time starts when that has ended."""


def get(actor: Actor, schedule_id: str, scope: str = "read", *, lock: bool = False) -> Schedule:
    """Return a schedule. Errors: not_found, forbidden."""
    return tenancy.get(actor, Schedule, schedule_id, scope, lock=lock)


def list_page(
    actor: Actor, *, cursor: str | None = None, limit: int = limits.PAGE_LIMIT_DEFAULT, q: str | None = None
) -> pagination.Page[Schedule]:
    """Return a page of the schedules of the project, newest first; `q` searches names."""
    return pagination.paginate(
        tenancy.listing(actor, Schedule),
        name=Schedule.__tablename__,
        id_column=Schedule.id,
        cursor=cursor,
        limit=limit,
        search=(q, Schedule.name),
        context=actor.project_id or "",
    )


def as_json(schedule: Schedule) -> dict[str, Any]:
    """Return a schedule as the API shows it."""
    return {
        "id": schedule.id,
        "name": schedule.name,
        "kind": schedule.kind,
        "template_id": schedule.template_id,
        "dataset_id": schedule.dataset_id,
        "request": schedule.request,
        "cron": schedule.cron,
        "timezone": schedule.timezone,
        "enabled": schedule.enabled,
        "new_seed": schedule.new_seed,
        "undo_previous": schedule.undo_previous,
        "next_run_at": clock.to_text(schedule.next_run_at),
        "last_run_at": clock.to_text(schedule.last_run_at),
        "last_job_id": schedule.last_job_id,
        "problem": schedule.problem,
        "project_id": schedule.project_id,
        "team_id": schedule.team_id,
        "saved_by": schedule.saved_by,
        "created_at": clock.to_text(schedule.created_at),
        "updated_at": clock.to_text(schedule.updated_at),
    }


def listing(actor: Actor) -> list[Schedule]:
    """Return the schedules of the project, by name."""
    return list(db.session.scalars(tenancy.listing(actor, Schedule).order_by(Schedule.name, Schedule.id)))


def time_faults(cron: str, timezone: str) -> list[Fault]:
    """Return what is wrong with a time, as faults of `cron` and `timezone`."""
    found = schedules.faults({"cron": cron, "timezone": timezone, "enabled": True, "params": {}}, set())
    return [
        Fault(fault.path.removeprefix("schedule."), fault.code, fault.message, fault.hint) for fault in found
    ]


def next_times(cron: str, timezone: str, count: int = 3) -> list[datetime]:
    """Return the next due times in the schedule's time zone, as far as there are any in the next years; none for one
    that is invalid."""
    if time_faults(cron, timezone):
        return []
    schedule = {"cron": cron, "timezone": timezone, "enabled": True}
    found: list[datetime] = []
    at: datetime | None = clock.now()
    while at is not None and len(found) < count:
        at = schedules.next_run(schedule, at)
        if at is not None:
            found.append(at.astimezone(ZoneInfo(timezone)))
    return found


def create_from(actor: Actor, job: Export | Push, values: Mapping[str, Any]) -> Schedule:
    """Create a schedule that repeats an export or a push: `values` are `name`, `cron`, `timezone`, `enabled`,
    `new_seed` and `undo_previous`; commits. Errors: forbidden, validation_error, quota_exceeded, conflict if
    the job cannot be repeated."""
    kind = job.work_kind
    tenancy.get(actor, type(job), job.id, SCOPES[kind])
    if not (job.template_id or job.dataset_id) or (isinstance(job, Push) and job.kind != "push"):
        raise ApiError(
            "conflict", "Only exports and pushes of a template or a dataset can be repeated.", {"id": job.id}
        )
    request = {key: value for key, value in job.request["ask"].items() if key != "dry_run"}
    if request.get("seed") is None:
        request["seed"] = job.pins["seed"]
    if isinstance(job, Export):
        request["format"] = job.format
        if job.part_rows:
            request["part_rows"] = job.part_rows
    return _create(actor, job, kind, job.template_id, job.dataset_id, request, values)


def create(
    actor: Actor,
    kind: str,
    template_id: str | None,
    dataset_id: str | None,
    request: Mapping[str, Any],
    values: Mapping[str, Any],
) -> Schedule:
    """Create a schedule of an `export` or a `push` of a template or a dataset: `request` is the valid body of the
    request, without defaults; `values` are those of `create_from`; commits. Errors: not_found, forbidden,
    validation_error."""
    subject: Any = (
        tenancy.get(actor, Template, template_id, SCOPES[kind])
        if template_id
        else tenancy.get(actor, Dataset, str(dataset_id), SCOPES[kind])
    )
    return _create(actor, subject, kind, template_id, dataset_id, dict(request), values)


def _create(
    actor: Actor,
    owner: Any,
    kind: str,
    template_id: str | None,
    dataset_id: str | None,
    request: dict[str, Any],
    values: Mapping[str, Any],
) -> Schedule:
    """Save a new schedule in the project of `owner`; commits."""
    schedule = Schedule(
        id=ids.new("sch"),
        workspace_id=owner.workspace_id,
        project_id=owner.project_id,
        team_id=owner.team_id,
        kind=kind,
        template_id=template_id,
        dataset_id=dataset_id,
        request=request,
    )
    _apply(actor, schedule, values)
    _check_counts(actor, request)
    stored_json.reserve(actor, request)
    # Lock the workspace's row, so that the number of schedules cannot change.
    workspace_id = owner.workspace_id
    db.session.get_one(Workspace, workspace_id, with_for_update={"key_share": True}, populate_existing=True)
    number = db.session.scalar(select(func.count()).where(Schedule.workspace_id == workspace_id)) or 0
    if number >= limits.MAX_SCHEDULES:
        text = f"A workspace can have at most {limits.MAX_SCHEDULES} schedules. Delete one that is no longer needed."
        raise ApiError("quota_exceeded", text, {"limit": limits.MAX_SCHEDULES, "used": number})
    db.session.add(schedule)
    db.session.flush()
    audit_log.record(actor, "schedule.create", schedule, join=True, kind=kind, cron=schedule.cron)
    db.session.commit()
    return schedule


def _check_counts(actor: Actor, request: Mapping[str, Any]) -> None:
    """Raise row_limit_exceeded for a request with more rows than the plan allows, which could never start."""
    for rows in (request.get("count"), *(request.get("rows") or {}).values()):
        if rows is not None:
            quotas.check_rows(actor, rows)


def change(actor: Actor, schedule: Schedule, values: Mapping[str, Any]) -> Schedule:
    """Change a locked schedule: any of the values of `create_from`, or its `request`; commits. Errors: forbidden,
    validation_error, quota_exceeded."""
    if "request" in values:
        _check_counts(actor, values["request"])
        stored_json.reserve(actor, values["request"])
    before = {key: getattr(schedule, key) for key in values}
    _apply(actor, schedule, values)
    after = {key: getattr(schedule, key) for key in values}
    if before != after:
        audit_log.record(
            actor, "schedule.update", schedule, join=True, cron=schedule.cron, enabled=schedule.enabled
        )
    db.session.commit()
    return schedule


def delete(actor: Actor, schedule: Schedule) -> None:
    """Delete a locked schedule; commits. Its jobs stay."""
    audit_log.record(actor, "schedule.delete", schedule, join=True)
    db.session.delete(schedule)
    db.session.commit()


def start_now(actor: Actor, schedule: Schedule) -> Export | Push:
    """Start a job of a schedule in addition to those that are due. Errors: those of exports and pushes."""

    def record_start(job: Export | Push) -> None:
        values = {"last_job_id": job.id, "last_run_at": clock.now()}
        statement = update(Schedule).where(Schedule.id == schedule.id).values(**values)
        db.session.execute(statement.execution_options(synchronize_session=False))

    return _start_job(actor, schedule, record_start)


def _check_saver(actor: Actor, schedule: Schedule) -> None:
    """Check that a schedule gives a user no additional permissions: its jobs start with all permissions of the
    user who saves it, also after an API key was revoked or a run has ended. Error: forbidden."""
    if actor.run_id is not None:
        text = "The program of a run can't save schedules, because their jobs would outlive the run."
        raise ApiError("forbidden", text, {"needs": "person"})
    if schedule.request.get("before_sql") or schedule.request.get("after_sql"):
        require_scope(actor, "admin")


def _apply(actor: Actor, schedule: Schedule, values: Mapping[str, Any]) -> None:
    _check_saver(actor, schedule)
    for key, value in values.items():
        setattr(schedule, key, value)
    _check_saver(actor, schedule)
    found = time_faults(schedule.cron, schedule.timezone)
    if schedule.undo_previous and schedule.kind != "push":
        text = "Only a push can be undone. Leave this out for an export."
        found.append(Fault("undo_previous", "not_allowed", text))
    elif schedule.undo_previous and schedule.request.get("mode", "insert") != "insert":
        text = "Only inserted rows can be deleted again. Use mode insert, or leave this out."
        found.append(Fault("undo_previous", "not_allowed", text))
    if found:
        raise validation_error(found)
    schedule.saved_by = actor.user_id
    schedule.problem = None
    when = {"cron": schedule.cron, "timezone": schedule.timezone, "enabled": schedule.enabled}
    schedule.next_run_at = schedules.next_run(when, clock.now())


# --- Starting what is due -----------------------------------------------------------------------------------


def workspaces_due(now: datetime) -> list[str]:
    """Return the workspaces that have due schedules, the one that has waited longest first."""
    statement = (
        select(Schedule.workspace_id)
        .join(Project, Project.id == Schedule.project_id)
        .where(Schedule.next_run_at <= now, Project.deleted_at.is_(None))
        .group_by(Schedule.workspace_id)
        .order_by(func.min(Schedule.next_run_at), Schedule.workspace_id)
    )
    with read_session() as session:
        return list(session.scalars(statement))


def run_due(now: datetime, workspace_id: str | None = None, seconds: float = float("inf")) -> int:
    """Start a job of each due schedule, or of each of one workspace, and return their number. None is started after
    `seconds`. Safe to call in several sweepers: the due time is claimed in the transaction that saves the job, so each
    starts one job. Missed times count as one.

    Starting a push asks its target, which may take as long as connections may take to answer."""
    started, end = 0, time.monotonic() + seconds
    statement = (
        select(Schedule.id, Schedule.next_run_at)
        .join(Project, Project.id == Schedule.project_id)
        .where(Schedule.next_run_at <= now, Project.deleted_at.is_(None))
        .order_by(Schedule.next_run_at, Schedule.id)
        .limit(limits.SCHEDULE_BATCH)
    )
    if workspace_id is not None:
        statement = statement.where(Schedule.workspace_id == workspace_id)
    with read_session() as session:
        due = [(row[0], row[1]) for row in session.execute(statement) if row[1] is not None]
    for schedule_id, due_at in due:
        if time.monotonic() > end:
            break
        try:
            _start_due(schedule_id, due_at, now)
            started += 1
        except (AlreadyStarted, UndoPending):
            pass
        except ApiError as error:
            _record_problem(schedule_id, due_at, now, error.code, error.message)
        except SQLAlchemyError:
            raise  # The database is unavailable: retry everything
        except Exception:  # One schedule must not prevent the others from running
            log.exception("could not start the job of schedule %s", schedule_id)
            _record_problem(schedule_id, due_at, now, "internal_error", "Something went wrong on our side.")
        finally:
            db.session.rollback()
    return started


def _start_due(schedule_id: str, due_at: datetime, now: datetime) -> None:
    schedule = db.session.get(Schedule, schedule_id, populate_existing=True)
    if schedule is None or schedule.next_run_at != due_at:
        raise AlreadyStarted
    user, project = schedule.saved_by, schedule.project_id
    actor = identity.actor_of_user(user, project) if user else None
    if actor is None or not actor.can(SCOPES[schedule.kind], schedule.team_id):
        text = (
            "The user who last saved the schedule no longer has permission to start it. A user who has "
            "it can save the schedule again."
        )
        raise ApiError("forbidden", text)

    if schedule.undo_previous and schedule.last_job_id:
        _undo_previous(actor, schedule, due_at)

    def claim(job: Export | Push) -> None:
        if not _claim(schedule_id, due_at, now, last_job_id=job.id, last_run_at=now, problem=None):
            raise AlreadyStarted
        job.request = {**job.request, "schedule": schedule_id}

    # A target may take long to respond. An open transaction would block all writers on SQLite in the meantime.
    db.session.expunge(schedule)
    db.session.rollback()
    _start_job(actor, schedule, claim)


def _undo_previous(actor: Actor, schedule: Schedule, due_at: datetime) -> None:
    """Return if no row of the previous push of a schedule is at the target; otherwise start to undo it, once for the
    due time `due_at`, and raise `UndoPending` until that has ended. Errors: conflict, those of `retries.undo`."""
    db.session.refresh(schedule, with_for_update=True)
    if schedule.next_run_at != due_at:
        raise AlreadyStarted
    last = db.session.get(Push, schedule.last_job_id, populate_existing=True)
    if last is None or (last.has_ended and not last.delivered):
        return
    if not last.has_ended:
        raise ApiError(
            "conflict", "The previous push has not ended, so it cannot be undone.", {"id": last.id}
        )
    statement = (
        select(Push).where(Push.of_id == last.id, Push.kind == "undo").order_by(Push.id.desc()).limit(1)
    )
    latest = db.session.scalar(statement)
    if latest is not None and not latest.has_ended:
        raise UndoPending
    if latest is not None and latest.created_at >= due_at:
        text = f"{last.delivered:,} rows of the previous push could not be deleted. See the log of its undo."
        raise ApiError("conflict", text, {"id": latest.id})
    confirm = schedule.request.get("confirm")
    retries.undo(actor, pushes.get(actor, last.id, "push"), UndoInput(confirm=confirm))
    raise UndoPending


def _start_job(actor: Actor, schedule: Schedule, claim: Callable[[Any], None]) -> Export | Push:
    """Queue the job of a schedule; `claim` is called in the transaction that saves it."""
    body = dict(schedule.request)
    if schedule.new_seed:
        body["seed"] = None
    template_id, dataset_id = schedule.template_id, schedule.dataset_id
    if schedule.kind == "export":
        if template_id:
            return exports.create(
                actor, template_id, TemplateExportInput.model_validate(body, strict=False), claim=claim
            )
        return exports.create_of_dataset(
            actor, str(dataset_id), DatasetExportInput.model_validate(body, strict=False), claim=claim
        )
    if template_id:
        prepared = preparation.prepare_template(
            actor, template_id, PushInput.model_validate(body, strict=False)
        )
        return pushes.queue(actor, prepared, "template.push", claim=claim)
    prepared = preparation.prepare_dataset(
        actor, str(dataset_id), DatasetPushInput.model_validate(body, strict=False)
    )
    return pushes.queue(actor, prepared, "dataset.push", claim=claim)


def _claim(schedule_id: str, due_at: datetime, now: datetime, **values: Any) -> bool:
    """Move a schedule to its next time if it still has the time `due_at`. Return whether it had."""
    row = db.session.execute(
        select(Schedule.cron, Schedule.timezone, Schedule.enabled).where(Schedule.id == schedule_id)
    ).first()
    if row is None:
        return False
    following = schedules.next_run({"cron": row.cron, "timezone": row.timezone, "enabled": row.enabled}, now)
    statement = (
        update(Schedule)
        .where(Schedule.id == schedule_id, Schedule.next_run_at == due_at)
        .values(next_run_at=following, **values)
        .execution_options(synchronize_session=False)
    )
    return bool(affected_row_count(db.session.execute(statement)))


def _record_problem(schedule_id: str, due_at: datetime, now: datetime, code: str, message: str) -> None:
    """Record why a due time did not start a job. The next due time tries again."""
    db.session.rollback()
    log.warning("schedule %s did not start a job: %s", schedule_id, code)
    problem = {"code": code, "message": message, "at": clock.to_text(now)}
    _claim(schedule_id, due_at, now, problem=problem)
    db.session.commit()
