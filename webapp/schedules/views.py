"""Pages of schedules: exports and pushes by their own table, runs by the settings of their scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated, Any, Final

from flask import Blueprint, Response, flash, request, url_for
from pydantic import Field

from webapp import limits
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.connections.models import Connection
from webapp.errors import ApiError
from webapp.exports.models import Export
from webapp.extensions import db
from webapp.pushes.models import Push
from webapp.scenarios.models import Run, Scenario
from webapp.scenarios.services import scenarios
from webapp.schedules import repeats, services
from webapp.schedules.models import Schedule
from webapp.schedules.repeats import Every, Repeat
from webapp.web.forms.page_form import Control, FormSpec
from webapp.web.inputs import Input, Query
from webapp.web.responses import render_block, reply, see_other
from webapp.web.routing import route

bp = Blueprint("schedules", __name__)
_CHOICES: Final = 12  # recent jobs that a new schedule can repeat
_EDIT: Final = "schedules/edit.html"


class ScheduleForm(Input):
    """When a job is repeated, and how."""

    name: Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS)] = "Schedule"
    every: Every = "day"
    at: Annotated[str, Field(pattern=r"^([01]\d|2[0-3]):[0-5]\d$")] = "02:00"
    weekday: Annotated[int, Field(ge=0, le=6)] = 1
    day: Annotated[int, Field(ge=1, le=31)] = 1
    cron: Annotated[str, Field(max_length=limits.MAX_CRON_CHARS)] = ""
    timezone: Annotated[str, Field(min_length=1, max_length=limits.MAX_TIMEZONE_CHARS)] = "UTC"
    new_seed: bool = False
    enabled: bool = False

    @property
    def expression(self) -> str:
        """The cron expression of the repetition."""
        return repeats.to_cron(Repeat(self.every, self.at, self.weekday, self.day, self.cron))


FORM: Final = FormSpec(
    ScheduleForm,
    {
        "name": Control("Name", required=True),
        "every": Control("Repeat", choices=repeats.EVERY),
        "at": Control(
            "At", hint="Hours and minutes, for example 02:00.", attributes={"inputmode": "numeric"}
        ),
        "weekday": Control(
            "Day of the week", choices=[(str(at), name) for at, name in enumerate(repeats.DAYS)]
        ),
        "day": Control("Day of the month"),
        "cron": Control(
            "Cron expression",
            hint="Minute, hour, day of month, month, day of week. `30 6 * * 1-5` is 06:30 from Monday to Friday.",
            placeholder="30 6 * * 1-5",
        ),
        "timezone": Control("Time zone", hint="For example Europe/Berlin.", attributes={"list": "zones"}),
        "new_seed": Control("Use a new seed each time", type="switch"),
        "enabled": Control("On", type="switch"),
    },
)


class NewQuery(Query):
    """What a new schedule repeats: the id of an export, a push or a scenario."""

    of: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A schedule in the list. `of` is the object whose page the name leads to."""

    id: str
    kind: str
    name: str
    what: str
    cron: str
    timezone: str
    enabled: bool
    next: datetime | None
    last: Any
    problem: Mapping[str, Any] | None


@route(bp, "/schedules", scope="read", hidden=True, programs=False)
def index(actor: Actor) -> Response:
    """List the schedules of exports, pushes and scenarios of the project."""
    found = [*(_entry(one) for one in services.listing(actor)), *_of_scenarios(actor)]
    return reply(
        {"items": sorted(found, key=lambda one: one.name.casefold())},
        template="schedules/list.html",
        in_words=repeats.in_words,
    )


@route(bp, "/schedules/new", scope="generate", query=NewQuery, hidden=True, programs=False)
def new(actor: Actor, query: NewQuery) -> Response:
    """Choose what to repeat, or, with `of`, when to repeat it."""
    if not query.of:
        return reply({"items": _repeatable(actor)}, template="schedules/choose.html")
    found = _subject(actor, query.of)
    return _form(actor, found, _values_of(found))


@route(bp, "/schedules/new", ["POST"], scope="generate", body=ScheduleForm, query=NewQuery, hidden=True,
       programs=False, on_fault=lambda actor, error: _again(actor, error, request.args.get("of", "")))  # fmt: skip
def create(actor: Actor, query: NewQuery, body: ScheduleForm) -> Response:
    """Create a schedule."""
    found = _subject(actor, query.of)
    if isinstance(found, Scenario):
        return save(schedule_id=found.id)  # type: ignore[no-any-return]  # a route
    schedule = services.create_from(actor, found, _changes(body))
    flash(f"Schedule {schedule.name} created")
    return see_other(url_for("schedules.index"))


@route(bp, "/schedules/times", ["POST"], scope="read", reads=True, hidden=True, programs=False)
def preview() -> Response:
    """Show when a schedule that is being written would be due next."""
    given = {key: request.form[key] for key in ScheduleForm.model_fields if request.form.get(key)}
    try:
        body = ScheduleForm.model_validate(given, strict=False)
        moments = services.next_times(body.expression, body.timezone)
        cron = body.expression
    except ValueError:
        moments, cron = [], ""
    return Response(render_block(_EDIT, "times", moments=moments, cron=cron, in_words=repeats.in_words))


@route(bp, "/schedules/<schedule_id>", scope="read", hidden=True, programs=False)
def show(actor: Actor, schedule_id: str) -> Response:
    """Show and change one schedule."""
    found = _found(actor, schedule_id)
    return _form(actor, found, _values_of(found), saved=True)


@route(bp, "/schedules/<schedule_id>", ["POST"], scope="generate", body=ScheduleForm, hidden=True, programs=False,
       on_fault=lambda actor, error, schedule_id: _again(actor, error, schedule_id))  # fmt: skip
def save(actor: Actor, schedule_id: str, body: ScheduleForm) -> Response:
    """Save a schedule."""
    if schedule_id.startswith("scn_"):
        scenario = scenarios.get(actor, schedule_id, "write", lock=True)
        held = scenario.schedule or {"params": {}}
        said = {"cron": body.expression, "timezone": body.timezone, "enabled": body.enabled}
        scenarios.change(actor, scenario, {"schedule": {**held, **said}})
    else:
        services.change(actor, _locked(actor, schedule_id), _changes(body))
    flash("Schedule saved")
    return see_other(url_for("schedules.index"))


@route(bp, "/schedules/<schedule_id>/switch", ["POST"], scope="generate", hidden=True, programs=False)
def switch(actor: Actor, schedule_id: str) -> Response:
    """Turn a schedule on or off."""
    if schedule_id.startswith("scn_"):
        scenario = scenarios.get(actor, schedule_id, "write", lock=True)
        if scenario.schedule:
            on = not scenario.schedule["enabled"]
            scenarios.change(actor, scenario, {"schedule": {**scenario.schedule, "enabled": on}})
    else:
        schedule = _locked(actor, schedule_id)
        services.change(actor, schedule, {"enabled": not schedule.enabled})
    return see_other(url_for("schedules.index"))


@route(bp, "/schedules/<schedule_id>/start", ["POST"], scope="generate", hidden=True, programs=False)
def start(actor: Actor, schedule_id: str) -> Response:
    """Start a job of a schedule now, in addition to those that are due."""
    schedule = services.get(actor, schedule_id, "generate")
    services.get(actor, schedule_id, services.SCOPES[schedule.kind])
    job = services.start_now(actor, schedule)
    return see_other(_job_page(job))


@route(bp, "/schedules/<schedule_id>", ["DELETE"], scope="generate", hidden=True, programs=False)
def delete(actor: Actor, schedule_id: str) -> Response:
    """Delete a schedule; its jobs stay."""
    if schedule_id.startswith("scn_"):
        scenarios.change(actor, scenarios.get(actor, schedule_id, "write", lock=True), {"schedule": None})
    else:
        services.delete(actor, _locked(actor, schedule_id))
    flash("Schedule deleted")
    return see_other(url_for("schedules.index"))


def _again(actor: Actor, error: ApiError, subject: str) -> Response:
    """The form with its errors."""
    found = _found(actor, subject) if subject.startswith(("sch_", "scn_")) else _subject(actor, subject)
    return _form(actor, found, _values_of(found), saved=subject.startswith("sch_"), error=error)


def _form(
    actor: Actor, found: Any, values: dict[str, Any], *, saved: bool = False, error: ApiError | None = None
) -> Response:
    of_scenario = isinstance(found, Scenario)
    drawn = FORM.draw(
        values,
        sent=request.form if error else None,
        error=error,
        without=("name", "new_seed") if of_scenario else (),
    )
    cron, zone = values["expression"], values["timezone"]
    saved = saved and not (of_scenario and not found.schedule)
    if saved or of_scenario:
        action = url_for("schedules.save", schedule_id=found.id)
    else:
        action = url_for("schedules.create", of=found.id)
    return reply(
        {"id": found.id, "name": values["name"]},
        template=_EDIT,
        form=drawn,
        what=_what(found),
        action=action,
        saved=saved,
        can_start=saved and not of_scenario,
        may=actor.can("write" if of_scenario else services.SCOPES[_kind(found)]),
        moments=services.next_times(cron, zone),
        cron=cron,
        in_words=repeats.in_words,
        problem=None if of_scenario or not saved else found.problem,
        scenario=found if of_scenario else None,
    )


def _values_of(found: Any) -> dict[str, Any]:
    """Return the values of the form for a schedule, or for a new one of a job or a scenario."""
    if isinstance(found, Scenario):
        held = found.schedule or {"cron": "0 2 * * *", "timezone": "UTC", "enabled": True}
        cron, zone, on, name = held["cron"], held["timezone"], held["enabled"], found.name
        seed = False
    elif isinstance(found, Schedule):
        cron, zone, on, name = found.cron, found.timezone, found.enabled, found.name
        seed = found.new_seed
    else:
        cron, zone, on, name, seed = "0 2 * * *", "UTC", True, _what(found), False
    repeat = repeats.from_cron(cron)
    own = {**asdict(repeat), "weekday": str(repeat.weekday), "cron": cron if repeat.every == "cron" else ""}
    return {
        **own,
        "name": name[: limits.MAX_NAME_CHARS],
        "timezone": zone,
        "enabled": on,
        "new_seed": seed,
        "expression": cron,
    }


def _changes(body: ScheduleForm) -> dict[str, Any]:
    return {
        "name": body.name,
        "cron": body.expression,
        "timezone": body.timezone,
        "enabled": body.enabled,
        "new_seed": body.new_seed,
    }


def _found(actor: Actor, schedule_id: str) -> Schedule | Scenario:
    if schedule_id.startswith("scn_"):
        return scenarios.get(actor, schedule_id)
    return services.get(actor, schedule_id)


def _locked(actor: Actor, schedule_id: str) -> Schedule:
    """Return a schedule to change: the scope follows from what it starts."""
    kind = services.get(actor, schedule_id).kind
    return services.get(actor, schedule_id, services.SCOPES[kind], lock=True)


def _subject(actor: Actor, object_id: str) -> Export | Push | Scenario:
    """Return what a new schedule repeats. Error: not_found."""
    model: Any = {"exp": Export, "psh": Push, "scn": Scenario}.get(object_id.partition("_")[0])
    if model is None:
        raise tenancy.not_found("job", object_id)
    return tenancy.get(actor, model, object_id)  # type: ignore[no-any-return]


def _kind(found: Any) -> str:
    return str(found.kind if isinstance(found, Schedule) else found.work_kind)


def _what(found: Any) -> str:
    """Return what a schedule starts, in words."""
    if isinstance(found, Scenario):
        return f"Run {found.name}"
    if isinstance(found, Schedule):
        if found.kind == "export":
            return f"Export as {str(found.request.get('format', '')).upper()}"
        return _to(found.request.get("connection_id"), found.request.get("target"))
    if isinstance(found, Export):
        return f"Export {found.file_name}"
    return _to(found.connection_id, found.target)


def _to(connection_id: str | None, target: str | None) -> str:
    connection = db.session.get(Connection, connection_id) if connection_id else None
    place = connection.name if connection else "an endpoint"
    return f"Push {target} to {place}" if target else f"Push to {place}"


def _entry(schedule: Schedule) -> Entry:
    model: Any = Export if schedule.kind == "export" else Push
    last = db.session.get(model, schedule.last_job_id) if schedule.last_job_id else None
    return Entry(
        schedule.id, schedule.kind, schedule.name, _what(schedule), schedule.cron, schedule.timezone,
        schedule.enabled, schedule.next_run_at, _result(last), schedule.problem,
    )  # fmt: skip


def _of_scenarios(actor: Actor) -> list[Entry]:
    statement = tenancy.listing(actor, Scenario).where(Scenario.schedule.isnot(None))
    found = [one for one in db.session.scalars(statement) if one.schedule]
    entries = []
    for one in found:
        held = one.schedule or {}
        latest = tenancy.listing(actor, Run).where(Run.scenario_id == one.id, Run.trigger == "schedule")
        last = db.session.scalar(latest.order_by(Run.id.desc()).limit(1))
        entries.append(
            Entry(
                one.id,
                "run",
                one.name,
                "Run",
                held["cron"],
                held["timezone"],
                held["enabled"],
                one.next_run_at,
                _result(last),
                one.schedule_problem,
            )
        )
    return entries


def _result(job: Any) -> dict[str, Any] | None:
    if job is None:
        return None
    lost = job.failed + job.unknown if isinstance(job, Push) else 0
    return {"status": job.status, "failures": lost, "href": _job_page(job)}


def _job_page(job: Any) -> str:
    if isinstance(job, Export):
        return url_for("exports.show", export_id=job.id)
    if isinstance(job, Push):
        return url_for("pushes.show", push_id=job.id)
    return url_for("runs.show", scenario_id=job.scenario_id, run_id=job.id)


def _repeatable(actor: Actor) -> list[dict[str, Any]]:
    """Return recent exports and pushes that can be repeated, one for each template or dataset and target, and the
    scenarios without a schedule."""
    found: dict[Any, dict[str, Any]] = {}
    for model, icon in ((Push, "send"), (Export, "download")):
        table: Any = model
        statement = tenancy.listing(actor, table).where(
            table.template_id.isnot(None) | table.dataset_id.isnot(None)
        )
        if model is Push:
            statement = statement.where(Push.kind == "push")
        for job in db.session.scalars(statement.order_by(table.id.desc()).limit(4 * _CHOICES)):
            key = (icon, job.template_id, job.dataset_id, _what(job))
            found.setdefault(key, {"id": job.id, "icon": icon, "name": _what(job), "at": job.created_at})
    recent = sorted(found.values(), key=lambda one: one["at"], reverse=True)[:_CHOICES]
    free = db.session.scalars(tenancy.listing(actor, Scenario).order_by(Scenario.name)).all()
    runs = [
        {"id": one.id, "icon": "scenario", "name": f"Run {one.name}", "at": one.created_at}
        for one in free
        if not one.schedule
    ]
    return [*recent, *runs[:_CHOICES]]
