"""Schedules of exports and pushes, for the API and as pages. The pages also show the schedules of scenarios, which are
among the settings of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from flask import Blueprint, Response, flash, g, request, url_for
from pydantic import BaseModel, Field

from webapp import limits
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.connections.models import Connection
from webapp.datasets.models import Dataset
from webapp.datasets.schemas import DatasetExportInput
from webapp.datasets.services import datasets
from webapp.errors import ApiError, Fault, validation_error
from webapp.exports.models import Export
from webapp.extensions import db
from webapp.pushes.models import Push
from webapp.pushes.schemas import DatasetPushInput, PushInput
from webapp.row_templates.schemas import TemplateExportInput
from webapp.scenarios.models import Run, Scenario
from webapp.scenarios.services import scenarios
from webapp.schedules import services
from webapp.schedules.models import Schedule
from webapp.schedules.services import Every, Repetition
from webapp.web.forms.page_form import Control, FormSpec
from webapp.web.inputs import Input, ListQuery, Query, parse
from webapp.web.responses import ListOf, Output, check_if_match, render_block, reply, see_other
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
    undo_previous: bool = False
    enabled: bool = False

    @property
    def expression(self) -> str:
        """The cron expression of the repetition."""
        return services.to_cron(Repetition(self.every, self.at, self.weekday, self.day, self.cron))


FORM: Final = FormSpec(
    ScheduleForm,
    {
        "name": Control("Name", required=True),
        "every": Control("Repeat", choices=services.REPETITIONS),
        "at": Control(
            "At", hint="Hours and minutes, for example 02:00.", attributes={"inputmode": "numeric"}
        ),
        "weekday": Control(
            "Day of the week", choices=[(str(at), name) for at, name in enumerate(services.DAYS)]
        ),
        "day": Control("Day of the month"),
        "cron": Control(
            "Cron expression",
            hint="Minute, hour, day of month, month, day of week. `30 6 * * 1-5` is 06:30 from Monday to Friday.",
            placeholder="30 6 * * 1-5",
        ),
        "timezone": Control("Time zone", hint="For example Europe/Berlin.", attributes={"list": "zones"}),
        "new_seed": Control("Use a new seed each time", type="switch"),
        "undo_previous": Control(
            "Undo the previous push",
            type="switch",
            hint="Deletes the rows of the previous push, by their keys, before new rows are sent.",
        ),
        "enabled": Control("On", type="switch"),
    },
)


READ_ONLY: Final = frozenset(
    "id next_run_at last_run_at last_job_id problem project_id team_id saved_by created_at updated_at".split()
)
Cron = Annotated[
    str,
    Field(
        min_length=1,
        max_length=limits.MAX_CRON_CHARS,
        description="Minute, hour, day of month, month, day of week: `30 6 * * 1-5` is 06:30 from Monday to Friday.",
    ),
]
Zone = Annotated[
    str,
    Field(
        min_length=1,
        max_length=limits.MAX_TIMEZONE_CHARS,
        description="IANA name, for example Europe/Berlin.",
    ),
]
ScheduleName = Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS)]
_NEW_SEED: Final = (
    "Whether each job uses a new seed, and so has different rows. Otherwise all jobs use the seed of the "
    "request."
)
_UNDO: Final = "Of a push: whether the rows of the previous push are deleted first, by their keys."


class JobScheduleIn(Input):
    """A new schedule: what it repeats, and when.

    It repeats a `request` of a `kind` for a template or a dataset, or, with `repeats`, an earlier export or push.
    """

    read_only = READ_ONLY

    name: ScheduleName
    cron: Cron
    timezone: Zone = "UTC"
    enabled: bool = True
    new_seed: bool = Field(False, description=_NEW_SEED)
    undo_previous: bool = Field(False, description=_UNDO)
    kind: Literal["export", "push"] | None = None
    template_id: ScheduleName | None = None
    dataset_id: ScheduleName | None = None
    request: dict[str, Any] = Field(
        default_factory=dict,
        description=(
            "The body of `POST /templates/{id}/exports` or `POST /templates/{id}/push`, or of the same "
            "routes of a dataset."
        ),
    )
    repeats: ScheduleName | None = Field(
        None,
        description="ID of an export or a push, instead of `kind`, `template_id`, `dataset_id` and `request`.",
    )

    @classmethod
    def more_faults(cls, body: Mapping[str, Any]) -> list[Fault]:
        """Return what is wrong with the subject and the time."""
        found = []
        subject = [key for key in ("template_id", "dataset_id") if body.get(key) is not None]
        if body.get("repeats") is not None:
            others = [key for key in ("kind", "template_id", "dataset_id", "request") if body.get(key)]
            found = [Fault(key, "not_allowed", "Leave this out if `repeats` is given.") for key in others]
        else:
            if body.get("kind") is None:
                found.append(Fault("kind", "required", "Specify `export` or `push`, or `repeats`."))
            if len(subject) != 1:
                text = "Specify either `template_id` or `dataset_id`."
                found.append(Fault("template_id", "required", text))
        return found + _time_faults(body)


class JobSchedulePatch(Input):
    """The properties of a schedule that can be changed. Its jobs then start with your permissions."""

    read_only = READ_ONLY | {"kind", "template_id", "dataset_id"}

    name: ScheduleName | None = None
    cron: Cron | None = None
    timezone: Zone | None = None
    enabled: bool | None = None
    new_seed: bool | None = Field(None, description=_NEW_SEED)
    undo_previous: bool | None = Field(None, description=_UNDO)
    request: dict[str, Any] | None = None

    @classmethod
    def more_faults(cls, body: Mapping[str, Any]) -> list[Fault]:
        """Return what is wrong with the time."""
        return _time_faults(body)


def _time_faults(body: Mapping[str, Any]) -> list[Fault]:
    cron, zone = body.get("cron"), body.get("timezone", "UTC")
    valid_cron = cron if isinstance(cron, str) and cron else "0 0 * * *"
    found = services.time_faults(valid_cron, zone if isinstance(zone, str) else "UTC")
    long = {"cron": limits.MAX_CRON_CHARS, "timezone": limits.MAX_TIMEZONE_CHARS}
    return [fault for fault in found if len(str(body.get(fault.path, ""))) <= long.get(fault.path, 0)]


class JobScheduleOut(Output):
    """A schedule of an export or a push.

    `problem`: why the last due time did not start a job. `last_job_id`: the export or push that was started last.
    """

    id: str
    name: str
    kind: Literal["export", "push"]
    template_id: str | None
    dataset_id: str | None
    request: dict[str, Any]
    cron: str
    timezone: str
    enabled: bool
    new_seed: bool
    undo_previous: bool
    next_run_at: str | None
    last_run_at: str | None
    last_job_id: str | None
    problem: dict[str, Any] | None
    project_id: str
    team_id: str
    saved_by: str | None
    created_at: str
    updated_at: str


class StartedOut(Output):
    """The export or push that a schedule has started."""

    kind: Literal["export", "push"]
    job_id: str


_REQUESTS: Final[Mapping[tuple[str, bool], type[BaseModel]]] = {
    ("export", True): TemplateExportInput,
    ("export", False): DatasetExportInput,
    ("push", True): PushInput,
    ("push", False): DatasetPushInput,
}
"""The model of a request, by kind, and by whether it is of a template."""


def _parse_request(kind: str, of_template: bool, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request in its stored form, without defaults. Error: validation_error with paths below `request`."""
    try:
        body = parse(_REQUESTS[kind, of_template], dict(request), strict=False)
    except ApiError as error:
        for fault in error.details.get("fields", ()):
            fault["path"] = f"request.{fault['path']}".rstrip(".")
        raise
    stored: dict[str, Any] = body.model_dump(mode="json", exclude_unset=True)
    if stored.pop("dry_run", False):
        text = "A dry run cannot be repeated. Leave out `dry_run`."
        raise validation_error([Fault("request.dry_run", "not_allowed", text)])
    return stored


class NewQuery(Query):
    """What a new schedule repeats: the id of an export, a push or a scenario, or of a dataset for its newest job."""

    of: str = ""


@dataclass(frozen=True, slots=True)
class ScheduleEntry:
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


@route(bp, "/schedules", scope="read", query=ListQuery, returns=ListOf(JobScheduleOut))
def index(actor: Actor, query: ListQuery) -> Response:
    """List the schedules of exports and pushes of the project, newest first. `q` searches names."""
    if g.face == "program":
        page = services.list_page(actor, cursor=query.cursor, limit=query.limit, q=query.q)
        return reply(page.as_dict(services.as_json))
    found = [*(_entry(schedule) for schedule in services.listing(actor)), *_scenario_entries(actor)]
    return reply(
        {"items": sorted(found, key=lambda entry: entry.name.casefold())},
        template="schedules/list.html",
        in_words=services.describe_cron,
    )


@route(
    bp, "/schedules", ["POST"], scope="generate", body=JobScheduleIn, returns=JobScheduleOut, status=201,
    allows_browsers=False,
    idempotent=True, errors=("conflict", "quota_exceeded"),
)  # fmt: skip
def create_by_request(actor: Actor, body: JobScheduleIn) -> Response:
    """Create a schedule of an export or a push. A push also needs the `push` scope.

    Jobs start with the permissions of the user who last saved the schedule. A scenario has its schedule among its own
    settings: see `PATCH /scenarios/{id}`.
    """
    if found := JobScheduleIn.more_faults(body.model_dump(exclude_unset=True)):
        raise validation_error(found)
    values = body.model_dump(include={"name", "cron", "timezone", "enabled", "new_seed", "undo_previous"})
    if body.repeats:
        job = _subject(actor, body.repeats)
        if isinstance(job, Scenario):
            raise tenancy.not_found("job", body.repeats)
        schedule = services.create_from(actor, job, values)
    else:
        kept = _parse_request(str(body.kind), body.template_id is not None, body.request)
        schedule = services.create(actor, str(body.kind), body.template_id, body.dataset_id, kept, values)
    where = url_for("schedules.show", schedule_id=schedule.id)
    return reply(services.as_json(schedule), status=201, send_etag=True, headers={"Location": where})


@route(bp, "/schedules/new", scope="generate", query=NewQuery, hidden=True, allows_api_keys=False)
def new(actor: Actor, query: NewQuery) -> Response:
    """Choose what to repeat, or, with `of`, when to repeat it."""
    if not query.of:
        return reply({"items": _repeatable(actor)}, template="schedules/choose.html", dataset=None)
    if query.of.startswith("dst_"):
        dataset = datasets.get(actor, query.of)
        job = _newest_job(actor, dataset)
        if job is None:
            return reply({"items": []}, template="schedules/choose.html", dataset=dataset)
        return _render_form(actor, job, _form_values(job))
    found = _subject(actor, query.of)
    return _render_form(actor, found, _form_values(found))


@route(bp, "/schedules/new", ["POST"], scope="generate", body=ScheduleForm, query=NewQuery, hidden=True,
       allows_api_keys=False, on_fault=lambda actor,
       error: _show_error(actor, error, request.args.get("of", "")))  # fmt: skip
def create(actor: Actor, query: NewQuery, body: ScheduleForm) -> Response:
    """Create a schedule."""
    found = _subject(actor, query.of)
    if isinstance(found, Scenario):
        return save(schedule_id=found.id)  # type: ignore[no-any-return]  # a route
    schedule = services.create_from(actor, found, _changes(body))
    flash(f"Schedule {schedule.name} created")
    return see_other(url_for("schedules.index"))


@route(bp, "/schedules/times", ["POST"], scope="read", reads=True, hidden=True, allows_api_keys=False)
def preview() -> Response:
    """Show when a schedule that is being edited would be due next."""
    submitted = {key: request.form[key] for key in ScheduleForm.model_fields if request.form.get(key)}
    try:
        body = ScheduleForm.model_validate(submitted, strict=False)
        moments = services.next_times(body.expression, body.timezone)
        cron = body.expression
    except ValueError:
        moments, cron = [], ""
    return Response(render_block(_EDIT, "times", moments=moments, cron=cron, in_words=services.describe_cron))


@route(bp, "/schedules/<schedule_id>", scope="read", returns=JobScheduleOut)
def show(actor: Actor, schedule_id: str) -> Response:
    """Get a schedule."""
    if g.face == "program":
        return reply(services.as_json(services.get(actor, schedule_id)), send_etag=True)
    found = _schedule_or_scenario(actor, schedule_id)
    return _render_form(actor, found, _form_values(found), saved=True)


@route(
    bp, "/schedules/<schedule_id>", ["PATCH"], scope="generate", body=JobSchedulePatch, returns=JobScheduleOut,
    allows_browsers=False, errors=("version_conflict", "quota_exceeded"),
)  # fmt: skip
def change(actor: Actor, schedule_id: str, body: JobSchedulePatch) -> Response:
    """Change a schedule, or turn it on or off (`enabled`). A schedule of a push also needs the `push` scope."""
    schedule = _lock_schedule(actor, schedule_id)
    check_if_match(services.as_json(schedule))
    changes = {key: value for key, value in body.model_dump(exclude_unset=True).items() if value is not None}
    if "request" in changes:
        changes["request"] = _parse_request(
            schedule.kind, schedule.template_id is not None, changes["request"]
        )
    return reply(services.as_json(services.change(actor, schedule, changes)), send_etag=True)


@route(bp, "/schedules/<schedule_id>", ["POST"], scope="generate", body=ScheduleForm, hidden=True,
       allows_api_keys=False,
       on_fault=lambda actor, error, schedule_id: _show_error(actor, error, schedule_id))  # fmt: skip
def save(actor: Actor, schedule_id: str, body: ScheduleForm) -> Response:
    """Save a schedule."""
    if schedule_id.startswith("scn_"):
        scenario = scenarios.get(actor, schedule_id, "write", lock=True)
        current = scenario.schedule or {"params": {}}
        changes = {"cron": body.expression, "timezone": body.timezone, "enabled": body.enabled}
        scenarios.change(actor, scenario, {"schedule": {**current, **changes}})
    else:
        services.change(actor, _lock_schedule(actor, schedule_id), _changes(body))
    flash("Schedule saved")
    return see_other(url_for("schedules.index"))


@route(bp, "/schedules/<schedule_id>/switch", ["POST"], scope="generate", hidden=True, allows_api_keys=False)
def switch(actor: Actor, schedule_id: str) -> Response:
    """Turn a schedule on or off."""
    if schedule_id.startswith("scn_"):
        scenario = scenarios.get(actor, schedule_id, "write", lock=True)
        if scenario.schedule:
            on = not scenario.schedule["enabled"]
            scenarios.change(actor, scenario, {"schedule": {**scenario.schedule, "enabled": on}})
    else:
        schedule = _lock_schedule(actor, schedule_id)
        services.change(actor, schedule, {"enabled": not schedule.enabled})
    return see_other(url_for("schedules.index"))


@route(
    bp, "/schedules/<schedule_id>/start", ["POST"], scope="generate", returns=StartedOut, status=201,
    idempotent=True, errors=("validation_error", "conflict", "row_limit_exceeded", "quota_exceeded"),
)  # fmt: skip
def start(actor: Actor, schedule_id: str) -> Response:
    """Start a job of a schedule now, in addition to those that are due."""
    schedule = services.get(actor, schedule_id, "generate")
    kind = schedule.kind
    services.get(actor, schedule_id, services.SCOPES[kind])
    job = services.start_now(actor, schedule)
    return reply({"kind": kind, "job_id": job.id}, status=201, redirect_to=_job_page(job))


@route(bp, "/schedules/<schedule_id>", ["DELETE"], scope="generate", returns=JobScheduleOut,
       errors=("version_conflict",))  # fmt: skip
def delete(actor: Actor, schedule_id: str) -> Response:
    """Delete a schedule. Its jobs stay."""
    if g.face == "program":
        schedule = _lock_schedule(actor, schedule_id)
        deleted = services.as_json(schedule)
        check_if_match(deleted)
        services.delete(actor, schedule)
        return reply(deleted)
    if schedule_id.startswith("scn_"):
        scenarios.change(actor, scenarios.get(actor, schedule_id, "write", lock=True), {"schedule": None})
    else:
        services.delete(actor, _lock_schedule(actor, schedule_id))
    flash("Schedule deleted")
    return see_other(url_for("schedules.index"))


def _show_error(actor: Actor, error: ApiError, subject: str) -> Response:
    """Render the form with its errors."""
    found = (
        _schedule_or_scenario(actor, subject)
        if subject.startswith(("sch_", "scn_"))
        else _subject(actor, subject)
    )
    return _render_form(actor, found, _form_values(found), saved=subject.startswith("sch_"), error=error)


def _render_form(
    actor: Actor, subject: Any, values: dict[str, Any], *, saved: bool = False, error: ApiError | None = None
) -> Response:
    is_scenario = isinstance(subject, Scenario)
    form = FORM.render(
        values,
        sent=request.form if error else None,
        error=error,
        without=_hidden_inputs(subject),
    )
    cron, zone = values["expression"], values["timezone"]
    saved = saved and not (is_scenario and not subject.schedule)
    if saved or is_scenario:
        action = url_for("schedules.save", schedule_id=subject.id)
    else:
        action = url_for("schedules.create", of=subject.id)
    return reply(
        {"id": subject.id, "name": values["name"]},
        template=_EDIT,
        form=form,
        what=_description(subject),
        action=action,
        saved=saved,
        can_start=saved and not is_scenario,
        may=actor.can("write" if is_scenario else services.SCOPES[_kind(subject)]),
        moments=services.next_times(cron, zone),
        cron=cron,
        in_words=services.describe_cron,
        problem=None if is_scenario or not saved else subject.problem,
        scenario=subject if is_scenario else None,
    )


def _form_values(subject: Any) -> dict[str, Any]:
    """Return the values of the form for a schedule, or for a new one of a job or a scenario."""
    if isinstance(subject, Scenario):
        schedule = subject.schedule or {"cron": "0 2 * * *", "timezone": "UTC", "enabled": True}
        cron, zone, on, name = schedule["cron"], schedule["timezone"], schedule["enabled"], subject.name
        seed = undo = False
    elif isinstance(subject, Schedule):
        cron, zone, on, name = subject.cron, subject.timezone, subject.enabled, subject.name
        seed, undo = subject.new_seed, subject.undo_previous
    else:
        cron, zone, on, name = "0 2 * * *", "UTC", True, _description(subject)
        seed = undo = False
    repeat = services.from_cron(cron)
    own = {**asdict(repeat), "weekday": str(repeat.weekday), "cron": cron if repeat.every == "cron" else ""}
    return {
        **own,
        "name": name[: limits.MAX_NAME_CHARS],
        "timezone": zone,
        "enabled": on,
        "new_seed": seed,
        "undo_previous": undo,
        "expression": cron,
    }


def _changes(body: ScheduleForm) -> dict[str, Any]:
    return {
        "name": body.name,
        "cron": body.expression,
        "timezone": body.timezone,
        "enabled": body.enabled,
        "new_seed": body.new_seed,
        "undo_previous": body.undo_previous,
    }


def _schedule_or_scenario(actor: Actor, schedule_id: str) -> Schedule | Scenario:
    if schedule_id.startswith("scn_"):
        return scenarios.get(actor, schedule_id)
    return services.get(actor, schedule_id)


def _lock_schedule(actor: Actor, schedule_id: str) -> Schedule:
    """Return a schedule to change: the scope follows from what it starts."""
    kind = services.get(actor, schedule_id, "generate").kind
    return services.get(actor, schedule_id, services.SCOPES[kind], lock=True)


def _subject(actor: Actor, object_id: str) -> Export | Push | Scenario:
    """Return what a new schedule repeats. Error: not_found."""
    model: Any = {"exp": Export, "psh": Push, "scn": Scenario}.get(object_id.partition("_")[0])
    if model is None:
        raise tenancy.not_found("job", object_id)
    return tenancy.get(actor, model, object_id)  # type: ignore[no-any-return]


def _newest_job(actor: Actor, dataset: Dataset) -> Export | Push | None:
    """Return the newest export or push of a dataset that a schedule may repeat."""
    export = db.session.scalar(
        tenancy.listing(actor, Export)
        .where(Export.dataset_id == dataset.id)
        .order_by(Export.id.desc())
        .limit(1)
    )
    push = db.session.scalar(
        tenancy.listing(actor, Push)
        .where(Push.dataset_id == dataset.id, Push.kind == "push")
        .order_by(Push.id.desc())
        .limit(1)
    )
    return max(
        (job for job in (export, push) if job is not None), key=lambda job: job.created_at, default=None
    )


def _hidden_inputs(subject: Any) -> tuple[str, ...]:
    """Return the inputs that the form of a schedule does not have."""
    if isinstance(subject, Scenario):
        return ("name", "new_seed", "undo_previous")
    return () if _kind(subject) == "push" else ("undo_previous",)


def _kind(subject: Any) -> str:
    return str(subject.kind if isinstance(subject, Schedule) else subject.work_kind)


def _description(subject: Any) -> str:
    """Return what a schedule starts, in words."""
    if isinstance(subject, Scenario):
        return f"Run {subject.name}"
    if isinstance(subject, Schedule):
        if subject.kind == "export":
            return f"Export as {str(subject.request.get('format', '')).upper()}"
        return _push_description(subject.request.get("connection_id"), subject.request.get("target"))
    if isinstance(subject, Export):
        return f"Export {subject.file_name}"
    return _push_description(subject.connection_id, subject.target)


def _push_description(connection_id: str | None, target: str | None) -> str:
    connection = db.session.get(Connection, connection_id) if connection_id else None
    destination = connection.name if connection else "an endpoint"
    return f"Push {target} to {destination}" if target else f"Push to {destination}"


def _entry(schedule: Schedule) -> ScheduleEntry:
    model: Any = Export if schedule.kind == "export" else Push
    last = db.session.get(model, schedule.last_job_id) if schedule.last_job_id else None
    return ScheduleEntry(
        schedule.id, schedule.kind, schedule.name, _description(schedule), schedule.cron, schedule.timezone,
        schedule.enabled, schedule.next_run_at, _result(last), schedule.problem,
    )  # fmt: skip


def _scenario_entries(actor: Actor) -> list[ScheduleEntry]:
    statement = tenancy.listing(actor, Scenario).where(Scenario.schedule.isnot(None))
    found = [scenario for scenario in db.session.scalars(statement) if scenario.schedule]
    entries = []
    for scenario in found:
        schedule = scenario.schedule or {}
        latest = tenancy.listing(actor, Run).where(Run.scenario_id == scenario.id, Run.trigger == "schedule")
        last = db.session.scalar(latest.order_by(Run.id.desc()).limit(1))
        entries.append(
            ScheduleEntry(
                scenario.id,
                "run",
                scenario.name,
                "Run",
                schedule["cron"],
                schedule["timezone"],
                schedule["enabled"],
                scenario.next_run_at,
                _result(last),
                scenario.schedule_problem,
            )
        )
    return entries


def _result(job: Any) -> dict[str, Any] | None:
    if job is None:
        return None
    failures = job.failed + job.unknown if isinstance(job, Push) else 0
    return {"status": job.status, "failures": failures, "href": _job_page(job)}


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
            key = (icon, job.template_id, job.dataset_id, _description(job))
            found.setdefault(
                key, {"id": job.id, "icon": icon, "name": _description(job), "at": job.created_at}
            )
    recent = sorted(found.values(), key=lambda item: item["at"], reverse=True)[:_CHOICES]
    free = db.session.scalars(tenancy.listing(actor, Scenario).order_by(Scenario.name)).all()
    runs = [
        {"id": scenario.id, "icon": "scenario", "name": f"Run {scenario.name}", "at": scenario.created_at}
        for scenario in free
        if not scenario.schedule
    ]
    return [*recent, *runs[:_CHOICES]]
