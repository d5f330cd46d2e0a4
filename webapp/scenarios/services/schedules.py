"""Calculate schedules of scenarios and start due runs.

A schedule is a cron expression with five fields and a time zone. Times are local times in that zone: a time
that is skipped in spring is due at the moment of the change, and a time that occurs twice in autumn is due only
the first time. If the hour is `*` or `*/n`, hours are counted in elapsed time instead, so that the interval
stays constant across the change.
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
from webapp.access.models import Project
from webapp.accounts.services import identity
from webapp.errors import ApiError, Fault, did_you_mean
from webapp.extensions import affected_row_count, db, read_session
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
# Names for which the system's time zone folder may have a local copy. They mean a different zone, or none, on other
# machines.
_LOCAL_ZONES: Final = frozenset({"localtime", "posixrules", "Factory"})
_SHIFT: Final = timedelta(hours=3)  # No zone's clock changes by more, except at the date line


def faults(schedule: dict[str, Any], taken: set[str]) -> list[Fault]:
    """Return the faults of a schedule `{cron, timezone, enabled, params}`. `taken` is the same as for `env_faults`."""
    found = env_faults(schedule["params"], "schedule.params", taken)
    zone = zone_fault(schedule["timezone"])
    cron = cron_fault(schedule["cron"], UTC if zone else ZoneInfo(schedule["timezone"]))
    return [fault for fault in (cron, zone) if fault] + found


def zone_fault(name: str) -> Fault | None:
    """Return the fault of a time zone."""
    known = available_timezones() - _LOCAL_ZONES
    if name in known:
        return None
    hint = did_you_mean(name, known) or "Use a name such as Europe/Berlin or UTC."
    return Fault("schedule.timezone", "unknown_timezone", f'There is no time zone "{name[:60]}".', hint)


def cron_fault(cron: str, zone: Any = UTC) -> Fault | None:
    """Return the fault of a cron expression."""
    path = "schedule.cron"
    fields = cron.split()
    if cron.strip().lower() in _ALIASES:
        return Fault(
            path, "invalid", "A schedule must have five fields.", f"Write `{_ALIASES[cron.strip().lower()]}`."
        )
    if len(fields) != len(FIELDS):
        text = f"A schedule must have five fields ({', '.join(FIELDS)}); this one has {len(fields)}."
        return Fault(path, "invalid", text, "For example, `30 6 * * 1-5` means 06:30 from Monday to Friday.")
    for name, text in zip(FIELDS, fields, strict=True):
        words = re.findall(r"[A-Za-z]+", text)
        if not _FIELD.fullmatch(text) or not _NAMES.issuperset(word.lower() for word in words):
            return Fault(path, "invalid", f'"{text[:40]}" is not a valid {name}.')
    try:
        next_due(cron, zone, datetime(2000, 1, 1, tzinfo=UTC))
    except CroniterBadDateError:
        return Fault(path, "never", "This schedule never matches a date.")
    except (CroniterBadCronError, CroniterError, ValueError, KeyError) as error:
        return Fault(path, "invalid", f"This schedule cannot be read: {str(error)[:200].rstrip('.')}.")
    return None


def next_run(schedule: dict[str, Any] | None, after: datetime) -> datetime | None:
    """Return the next due time after a moment, in aware UTC, or None if the schedule is disabled or never due."""
    if not schedule or not schedule["enabled"]:
        return None
    try:
        return next_due(schedule["cron"], ZoneInfo(schedule["timezone"]), after)
    except (CroniterError, ValueError, KeyError):
        return None  # A zone or a format that this release no longer supports


def next_due(cron: str, zone: Any, after: datetime) -> datetime:
    """Return the first due time of a cron expression after a moment (both aware). Raises croniter's errors."""
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
        later = [moment for moment in _utc_times(wall, zone, twice=hourly) if moment > after]
        found = min([*later, found]) if later and found else min(later) if later else found
        # Near a clock change, a later local time may be an earlier moment.
        if found is not None and (not shifting or not hourly or wall > local + _SHIFT):
            return found


def _offset(zone: Any, moment: datetime) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta()


def _utc_times(wall: datetime, zone: Any, *, twice: bool) -> list[datetime]:
    """Return the moments of a local time: usually one; the moment of the change if the time is skipped; both if it
    occurs twice and `twice` is set."""
    first = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    second = wall.replace(tzinfo=zone, fold=1).astimezone(UTC)
    if first == second:
        return [first]
    if first.astimezone(zone).replace(tzinfo=None) != wall:
        return [_clock_change(zone, second, first)]
    return [first, second] if twice else [first]


def _clock_change(zone: Any, before: datetime, after: datetime) -> datetime:
    """Return the moment between two others at which the clock of a zone is set forward, to the second."""
    old = _offset(zone, before)
    while after - before > timedelta(seconds=1):
        middle = before + (after - before) / 2
        before, after = (middle, after) if _offset(zone, middle) == old else (before, middle)
    return after.replace(microsecond=0)


# --- Starting what is due -----------------------------------------------------------------------------------


def warnings(scenario: Scenario) -> list[dict[str, Any]]:
    """Return the reasons why a scenario's schedule cannot start runs."""
    problem = scenario.schedule_problem
    if not problem or not scenario.schedule:
        return []
    text = f"The last run that was due did not start: {problem['message']}"
    return [Fault("schedule", problem["code"], text).as_dict()]


def due_scenarios(now: datetime) -> list[tuple[str, datetime]]:
    """Return the scenarios that are due, longest due first, each with that time. Missed times count as one."""
    statement = (
        select(Scenario.id, Scenario.next_run_at)
        .join(Project, Project.id == Scenario.project_id)
        .where(Scenario.next_run_at <= now, Scenario.deleted_at.is_(None), Project.deleted_at.is_(None))
        .order_by(Scenario.next_run_at, Scenario.id)
        .limit(limits.SCHEDULE_BATCH)
    )
    with read_session() as session:
        return [(row[0], row[1]) for row in session.execute(statement) if row[1] is not None]


def run_due(now: datetime) -> int:
    """Queue a run of each due scenario and return their number. Safe to call in several sweepers: each due
    time starts one run."""
    started = 0
    for scenario_id, due_at in due_scenarios(now):
        try:
            started += _start(scenario_id, due_at, now)
        except ApiError as error:
            db.session.rollback()
            _record_problem(scenario_id, due_at, now, error.code, error.message)
        except SQLAlchemyError:
            raise  # The database is unavailable: retry everything
        except Exception:  # One scenario must not prevent the others from running
            log.exception("could not start scheduled scenario %s", scenario_id)
            db.session.rollback()
            _record_problem(scenario_id, due_at, now, "internal_error", "Something went wrong on our side.")
        finally:
            db.session.rollback()
    return started


def _start(scenario_id: str, due_at: datetime, now: datetime) -> bool:
    """Claim one due time and queue its run in the same transaction. Return False if another process was
    faster."""
    scenario = db.session.get(Scenario, scenario_id, populate_existing=True)
    if scenario is None or not _claim(scenario, due_at, now, None):
        return False
    # Runs as the user who last saved the program, with their present role, so that no user can run code with another
    # user's rights.
    user_id = db.session.scalar(
        select(ScenarioVersion.created_by).where(
            ScenarioVersion.scenario_id == scenario.id, ScenarioVersion.number == scenario.version
        )
    )
    actor = identity.actor_of_user(user_id, scenario.project_id) if user_id else None
    if actor is None or not actor.can("run", scenario.team_id):
        text = "the user who last saved the scenario may no longer run it. A user who may run it can save it again."
        raise ApiError("forbidden", text)
    runs.queue(actor, scenario, (scenario.schedule or {}).get("params"), trigger="schedule")
    return True


def _claim(scenario: Scenario, due_at: datetime, now: datetime, problem: dict[str, Any] | None) -> bool:
    statement = (
        update(Scenario)
        .where(Scenario.id == scenario.id, Scenario.next_run_at == due_at, Scenario.deleted_at.is_(None))
        .values(next_run_at=next_run(scenario.schedule, now), schedule_problem=problem)
        .execution_options(synchronize_session=False)
    )
    return bool(affected_row_count(db.session.execute(statement)))


def _record_problem(scenario_id: str, due_at: datetime, now: datetime, code: str, message: str) -> None:
    """Record why a due scenario was not started. The next due time tries again."""
    scenario = db.session.get(Scenario, scenario_id, populate_existing=True)
    if scenario is None:
        return
    log.warning("scheduled scenario %s did not start: %s", scenario_id, code)
    _claim(scenario, due_at, now, {"code": code, "message": message, "at": clock.to_text(now)})
    db.session.commit()
