"""Schedules: when a scenario runs by itself, and starting what is due.

A schedule is a cron expression of five fields, read in a time zone. Times are those that a clock on the wall of that
zone shows: one that is skipped in spring comes at the moment of the change, one that comes twice in autumn counts
once, the first time. Only where the hour is `*` or `*/n` the hours go by as they are, so that such a schedule neither
pauses nor hurries.
"""

from __future__ import annotations

import logging
import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo, available_timezones

from croniter import CroniterBadCronError, CroniterBadDateError, CroniterError, croniter
from sqlalchemy import select, update
from sqlalchemy.exc import SQLAlchemyError

from webapp import clock, limits
from webapp.accounts.actors import Actor
from webapp.accounts.models import Project
from webapp.accounts.services import identity
from webapp.errors import ApiError, Fault, did_you_mean
from webapp.extensions import db, reading
from webapp.scenarios.models import Scenario, ScenarioVersion
from webapp.scenarios.services import runs
from webapp.scenarios.services.environment_variables import env_faults

log = logging.getLogger(__name__)

FIELDS: Final = ("minute", "hour", "day of month", "month", "day of week")
_FIELD: Final = re.compile(r"[0-9A-Za-z*?,/#-]+")
_NAMES: Final = frozenset(
    "jan feb mar apr may jun jul aug sep oct nov dec sun mon tue wed thu fri sat l".split()
)
_ALIASES: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_SHIFT: Final = timedelta(hours=3)  # no zone's clock is put forward or back by more, but at the date line


def faults(schedule: dict[str, Any], taken: set[str]) -> list[Fault]:
    """What is wrong with a schedule `{cron, timezone, enabled, params}`; `taken` as `env_faults` has it."""
    found = env_faults(schedule["params"], "schedule.params", taken)
    zone = zone_fault(schedule["timezone"])
    cron = cron_fault(schedule["cron"], UTC if zone else ZoneInfo(schedule["timezone"]))
    return [fault for fault in (cron, zone) if fault] + found


def zone_fault(name: str) -> Fault | None:
    """What is wrong with a time zone."""
    known = available_timezones()
    if name in known:
        return None
    hint = did_you_mean(name, known) or "Write a name such as Europe/Berlin, or UTC."
    return Fault("schedule.timezone", "unknown_timezone", f'There is no time zone "{name[:60]}".', hint)


def cron_fault(cron: str, zone: Any = UTC) -> Fault | None:
    """What is wrong with a cron expression."""
    path = "schedule.cron"
    fields = cron.split()
    if cron.strip().lower() in _ALIASES:
        return Fault(
            path, "invalid", "A schedule has five fields.", f"Write `{_ALIASES[cron.strip().lower()]}`."
        )
    if len(fields) != len(FIELDS):
        text = f"A schedule has five fields ({', '.join(FIELDS)}); this has {len(fields)}."
        return Fault(path, "invalid", text, "`30 6 * * 1-5` is half past six from Monday to Friday.")
    for name, text in zip(FIELDS, fields, strict=True):
        words = re.findall(r"[A-Za-z]+", text)
        if not _FIELD.fullmatch(text) or not _NAMES.issuperset(word.lower() for word in words):
            return Fault(path, "invalid", f'"{text[:40]}" is no {name}.')
    try:
        following(cron, zone, datetime(2000, 1, 1, tzinfo=UTC))
    except CroniterBadDateError:
        return Fault(path, "never", "There is no day on which this is due.")
    except (CroniterBadCronError, CroniterError, ValueError, KeyError) as error:
        return Fault(path, "invalid", f"This schedule cannot be read: {str(error)[:200].rstrip('.')}.")
    return None


def next_run(schedule: dict[str, Any] | None, after: datetime) -> datetime | None:
    """When a schedule is due next after a moment, aware UTC; None where it is off, or never."""
    if not schedule or not schedule["enabled"]:
        return None
    try:
        return following(schedule["cron"], ZoneInfo(schedule["timezone"]), after)
    except (CroniterError, ValueError, KeyError):
        return None  # a zone or a form that this release no longer knows


def following(cron: str, zone: Any, after: datetime) -> datetime:
    """The first moment after another (both aware) at which a cron expression is due. Errors: croniter's."""
    local = after.astimezone(zone).replace(tzinfo=None)
    hourly = cron.split()[1].startswith("*")
    shifting = _offset(zone, after - _SHIFT) != _offset(zone, after + _SHIFT)
    walls = croniter(
        cron,
        local - _SHIFT if shifting else local,
        ret_type=datetime,
        max_years_between_matches=limits.SCHEDULE_YEARS,
    )
    found: datetime | None = None
    while True:
        wall = walls.get_next()
        later = [moment for moment in _moments(wall, zone, twice=hourly) if moment > after]
        found = min([*later, found]) if later and found else min(later) if later else found
        # Near a change of the clock a later wall time may be an earlier moment.
        if found is not None and (not shifting or not hourly or wall > local + _SHIFT):
            return found


def _offset(zone: Any, moment: datetime) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta()


def _moments(wall: datetime, zone: Any, *, twice: bool) -> list[datetime]:
    """When a clock shows a time: once; at the moment of the change where it skips it; with `twice`, both times."""
    first = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    second = wall.replace(tzinfo=zone, fold=1).astimezone(UTC)
    if first == second:
        return [first]
    if first.astimezone(zone).replace(tzinfo=None) != wall:
        return [_change(zone, second, first)]
    return [first, second] if twice else [first]


def _change(zone: Any, before: datetime, after: datetime) -> datetime:
    """The moment between two at which the clock of a zone is put forward, to the second."""
    old = _offset(zone, before)
    while after - before > timedelta(seconds=1):
        middle = before + (after - before) / 2
        before, after = (middle, after) if _offset(zone, middle) == old else (before, middle)
    return after.replace(microsecond=0)


# --- Starting what is due -----------------------------------------------------------------------------------


def warnings(scenario: Scenario) -> list[dict[str, Any]]:
    """What keeps a scenario's schedule from bringing runs, if anything does."""
    problem = scenario.schedule_problem
    if not problem or not scenario.schedule:
        return []
    text = f"The last run that was due did not start: {problem['message']}"
    return [Fault("schedule", problem["code"], text).as_dict()]


def due(now: datetime) -> list[tuple[str, datetime]]:
    """The scenarios whose time has come, longest due first, each with that time. However often it came since anybody
    looked, it is one."""
    statement = (
        select(Scenario.id, Scenario.next_run_at)
        .join(Project, Project.id == Scenario.project_id)
        .where(Scenario.next_run_at <= now, Scenario.deleted_at.is_(None), Project.deleted_at.is_(None))
        .order_by(Scenario.next_run_at, Scenario.id)
        .limit(limits.SCHEDULE_BATCH)
    )
    with reading() as session:
        return [(row[0], row[1]) for row in session.execute(statement)]


def run_due(now: datetime) -> int:
    """Queue a run of each scenario whose time has come; returns how many. Any number of sweepers may do this at once:
    each time is one run, and is gone once the run is there."""
    started = 0
    for scenario_id, was in due(now):
        try:
            started += _start(scenario_id, was, now)
        except ApiError as error:
            db.session.rollback()
            _missed(scenario_id, was, now, error.code, error.message)
        except SQLAlchemyError:
            raise  # the database is away: all of it is tried again
        except Exception:  # one scenario must not keep the others from running
            log.exception("scenario %s was due and could not be started", scenario_id)
            db.session.rollback()
            _missed(scenario_id, was, now, "internal_error", "Something went wrong on our side.")
        finally:
            db.session.rollback()
    return started


def _start(scenario_id: str, was: datetime, now: datetime) -> bool:
    """Take one due time, and queue its run in the same transaction. False where somebody else was quicker."""
    scenario = db.session.get(Scenario, scenario_id, populate_existing=True)
    if scenario is None or not _taken(scenario, was, now, None):
        return False
    actor = _acting(scenario)
    if actor is None:
        text = "whoever saved the program last may not run it any more. Somebody who may can save it again."
        raise ApiError("forbidden", text)
    runs.queue(actor, scenario, (scenario.schedule or {}).get("params"), trigger="schedule")
    return True


def _taken(scenario: Scenario, was: datetime, now: datetime, problem: dict[str, Any] | None) -> bool:
    statement = (
        update(Scenario)
        .where(Scenario.id == scenario.id, Scenario.next_run_at == was, Scenario.deleted_at.is_(None))
        .values(next_run_at=next_run(scenario.schedule, now), schedule_problem=problem)
        .execution_options(synchronize_session=False)
    )
    return bool(db.session.execute(statement).rowcount)  # type: ignore[attr-defined]


def _acting(scenario: Scenario) -> Actor | None:
    """For whom a scheduled run acts: whoever saved the program as it is now. Their role of now counts, so that nobody
    makes a program run with more rights than they have by writing into somebody else's."""
    maker = db.session.scalar(
        select(ScenarioVersion.created_by).where(
            ScenarioVersion.scenario_id == scenario.id, ScenarioVersion.number == scenario.version
        )
    )
    actor = identity.by_user(maker, scenario.project_id) if maker else None
    return actor if actor is not None and actor.can("run", scenario.team_id) else None


def _missed(scenario_id: str, was: datetime, now: datetime, code: str, message: str) -> None:
    """Note on a scenario why its due time brought no run; the next one is another try."""
    scenario = db.session.get(Scenario, scenario_id, populate_existing=True)
    if scenario is None:
        return
    log.warning("scenario %s was due and did not start: %s", scenario_id, code)
    _taken(scenario, was, now, {"code": code, "message": message, "at": clock.to_text(now)})
    db.session.commit()
