"""The pages of a scenario: its program in an editor, how it is run, its versions. For people only; programs use
/scenarios. Its runs: see run_pages.

The editor is a textarea in a form, so all of it works without a script. A script that saves gets the part beside the
text (`told`), and the text stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

from flask import Blueprint, Response, current_app, flash, redirect, render_template, request, url_for
from pydantic import Field

from webapp import limits
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.forms import scenario as forms
from webapp.models import Run, Scenario
from webapp.services import demo_scenarios, runs, scenario_diff, scenarios, schedules
from webapp.services.actors import Actor
from webapp.services.scenario_requests import ScenarioInput, ScenarioPatch
from webapp.views import scenarios_shown as shown
from webapp.views import sdk_names
from webapp.views.inputs import Query, form_values, parse
from webapp.views.reply import json_reply, render_block, reply
from webapp.views.routes import route

bp = Blueprint("scenario_pages", __name__)
PAGE: Final = "scenarios/show.html"
SETTINGS: Final = "scenarios/settings.html"
_RECENT: Final = 6  # chosen: runs beside the program


class NewQuery(Query):
    """Which worked example the program begins with."""

    example: Annotated[str, Field(max_length=limits.MAX_NAME_CHARS)] = ""


def page(
    actor: Actor,
    scenario: Scenario | None,
    given: dict[str, str] | None = None,
    *,
    status: int = 200,
    found: Sequence[Fault] = (),
    clash: bool = False,
) -> Response:
    """The page of a saved scenario, of a new one (`scenario` None), or of what its form holds (`given`)."""
    data = scenarios.show(scenario) if scenario is not None else None
    draft = {"name": "", "code": "", **(data or {}), **(given or {})}
    told = shown.placed([one.as_dict() for one in found], draft["code"])
    context: dict[str, Any] = {
        "data": data,
        "draft": draft,
        "faults": told,
        "bad": {one["path"]: one for one in told},
        "clash": shown.diff_lines(scenario_diff.unified(data["code"], draft["code"], "saved", "yours"))
        if clash and data
        else None,
        "loaded": (request.form.get("version", "") if given else "") or (data["version"] if data else ""),
        "action": url_for("scenario_pages.save", scenario_id=data["id"])
        if data
        else url_for("scenario_pages.make"),
        "can_write": actor.can("write"),
        "can_run": actor.can("run"),
        "params": forms.padded(_last_params(scenario)),
        **_beside(data, draft["code"] if given else None),
    }
    if "HX-Request" in request.headers:
        return Response(render_block(PAGE, "told", **context), status)
    if scenario is not None and data is not None:
        context |= {
            "recent": runs.listing(actor, scenario_id=scenario.id, limit=_RECENT).items,
            "use": shown.code(data),
        }
    context["examples"] = demo_scenarios.EXAMPLES if data is None else ()
    context["names"] = url_for("scenario_pages.names", v=sdk_names.mark())
    context["variables"] = [*sdk_names.INJECTED, *((*data["env"], *data["secrets"]) if data else ())]
    return Response(render_template(PAGE, **context), status, mimetype="text/html")


def _beside(data: dict[str, Any] | None, code: str | None) -> dict[str, Any]:
    """What is said of a program: of the one that is saved, or of `code`, which is not."""
    if code is None:
        said = shown.placed(data["warnings"], data["code"]) if data else []
        return {"warnings": said, "required": shown.required(data) if data else None, "unsaved": False}
    told = scenarios.check(code)
    plain = {"requirements": told["requirements"], "lock": None}
    same = data is not None and data["requirements"] == told["requirements"]
    return {
        "warnings": shown.placed([*told["faults"], *told["warnings"]], code),
        "required": shown.required(data if same and data else plain),
        "unsaved": not same and bool(told["requirements"]),
    }


def _last_params(scenario: Scenario | None) -> forms.Rows:
    """The parameters of its last run: who runs it again mostly wants the same."""
    if scenario is None:
        return []
    last = db.session.scalar(
        db.select(Run.params).where(Run.scenario_id == scenario.id).order_by(Run.id.desc()).limit(1)
    )
    return forms.rows_of(last or {})


# --- Making and saving ------------------------------------------------------------------------------------------


@route(bp, "/scenarios/new", scope="write", query=NewQuery, hidden=True, programs=False)
def new(actor: Actor, query: NewQuery) -> Response:
    """A program that is not saved, begun with a worked example where one is named."""
    one = demo_scenarios.example(query.example)
    given = {"name": one.name if query.example else "", "code": one.code}
    return page(actor, None, given)


@route(bp, "/scenarios/new", ["POST"], scope="write", hidden=True, programs=False)
def make(actor: Actor) -> Response:
    """Save a new scenario; with `do=run` run it too."""
    given = forms.program(form_values(request.form))
    try:
        body = parse(ScenarioInput, given, strict=False)
        made = scenarios.create(actor, name=body.name, code=body.code)
    except ApiError as error:
        return _refused(actor, None, given, error)
    if request.form.get("do") == "run":
        return _run(actor, scenarios.get(actor, made["id"], "run"))
    return _see(url_for("scenarios.show", scenario_id=made["id"]))


@route(bp, "/scenarios/<scenario_id>/edit", ["POST"], scope="write", hidden=True, programs=False)
def save(actor: Actor, scenario_id: str) -> Response:
    """Save a program as the next version, unless another one was saved since it was loaded; with `do=run` run it."""
    given = forms.program(form_values(request.form))
    word, _, over = request.form.get("do", "save").partition(":")
    told = over or request.form.get("version", "")
    scenario = scenarios.get(actor, scenario_id, "write")
    data = scenarios.show(scenario)
    changes = {key: value for key, value in given.items() if value != data[key]}
    try:
        if changes and told != str(scenario.version):
            return _clash(actor, scenario_id, given)
        if changes:
            parse(ScenarioPatch, changes, strict=False)
            # Requirements are resolved beforehand: nobody shall wait for the index with the scenario locked.
            program = scenarios.prepared(actor, scenario, changes)
            scenario = scenarios.get(actor, scenario_id, "write", lock=True)
            if told != str(scenario.version):
                return _clash(actor, scenario_id, given)
            data = scenarios.change(actor, scenario, changes, program)
        scenario = scenarios.get(actor, scenario_id)
        if word == "run":
            return _run(actor, scenarios.get(actor, scenario_id, "run"))
    except ApiError as error:
        return _refused(actor, scenario_id, given, error)
    if "HX-Request" in request.headers:
        response = page(actor, scenario)
        response.headers["HX-Trigger"] = "saved"
        return response
    flash(f"Saved as version {data['version']}" if changes else "Nothing has changed", "")
    return _see(url_for("scenarios.show", scenario_id=scenario_id))


def _clash(actor: Actor, scenario_id: str, given: dict[str, str]) -> Response:
    """Another version was saved meanwhile: both are shown, and nothing is lost."""
    db.session.rollback()
    return page(actor, scenarios.get(actor, scenario_id), given, status=412, clash=True)


def _refused(actor: Actor, scenario_id: str | None, given: dict[str, str], error: ApiError) -> Response:
    if error.code not in ("validation_error", "unavailable", "quota_exceeded"):
        raise error
    db.session.rollback()
    told = error.details.get("fields") or [{"path": "", "code": error.code, "message": error.message}]
    found = [
        Fault(one["path"], one["code"], one["message"], one.get("hint"), one.get("position")) for one in told
    ]
    back = scenarios.get(actor, scenario_id) if scenario_id is not None else None
    return page(actor, back, given, status=error.status, found=found)


def _run(actor: Actor, scenario: Scenario) -> Response:
    """Queue a run with the parameters of the form, and go to its page."""
    params, faults = forms.variables(forms.rows(form_values(request.form), "params"), "params")
    if faults:
        raise validation_error(faults)
    run = runs.queue(actor, scenario, params)
    return _see(url_for("runs.show", scenario_id=run.scenario_id, run_id=run.id))


def _see(where: str) -> Response:
    if "HX-Request" in request.headers:
        return Response(status=204, headers={"HX-Redirect": where})
    return redirect(where, 303)  # type: ignore[return-value]


@route(bp, "/scenarios/said", ["POST"], scope="write", reads=True, hidden=True, programs=False)
def said(actor: Actor) -> Response:
    """What is said of a program that is not saved: its faults at their lines, and what it requires."""
    code = forms.program(form_values(request.form)).get("code", "")
    scenario_id = request.form.get("scenario_id", "")
    data = scenarios.show(scenarios.get(actor, scenario_id)) if scenario_id else None
    return Response(render_block(PAGE, "said", data=data, can_write=True, **_beside(data, code)))


@route(bp, "/scenarios/names", scope="read", hidden=True, programs=False)
def names() -> Response:
    """Names that the editor completes, as JSON: of the SDK, from its source."""
    answer = json_reply(sdk_names.found())
    answer.headers["Cache-Control"] = f"private, max-age={limits.ASSET_SECONDS}"
    return answer


# --- How it is run ----------------------------------------------------------------------------------------------


def _settings(
    actor: Actor, scenario: Scenario, given: dict[str, Any] | None = None, *, error: ApiError | None = None
) -> Response:
    data = scenarios.show(scenario)
    draft = {**data, **(given or {})}
    schedule = draft["schedule"] or {"cron": "", "timezone": "UTC", "enabled": True, "params": {}}
    values = form_values(request.form) if given is not None else {}
    fields = error.details.get("fields", []) if error else []
    context = {
        "data": data,
        "draft": draft,
        "schedule": schedule,
        "env": forms.padded(forms.rows(values, "env") if values else forms.rows_of(draft["env"])),
        "params": forms.padded(forms.rows(values, "params") if values else forms.rows_of(schedule["params"])),
        "times": shown.next_times(schedule),
        "secrets": shown.secret_names(actor, scenario),
        "zones": shown.ZONES,
        "networks": current_app.config["SETTINGS"].program_networks,
        "error": error,
        "bad": {one["path"]: one["message"] for one in fields},
        "can_write": actor.can("write"),
        "can_secrets": actor.can("secrets"),
    }
    return Response(
        render_template(SETTINGS, **context), error.status if error else 200, mimetype="text/html"
    )


@route(bp, "/scenarios/<scenario_id>/settings", scope="read", hidden=True, programs=False)
def settings(actor: Actor, scenario_id: str) -> Response:
    """How a scenario is run: time limit, network, variables, secrets, schedule."""
    return _settings(actor, scenarios.get(actor, scenario_id))


@route(bp, "/scenarios/<scenario_id>/settings", ["POST"], scope="write", hidden=True, programs=False)
def save_settings(actor: Actor, scenario_id: str) -> Response:
    """Keep how a scenario is run."""
    given, faults = forms.settings(form_values(request.form))
    try:
        body = parse(ScenarioPatch, given, strict=False)
        changes = body.model_dump(exclude_unset=True)
        scenario = scenarios.get(actor, scenario_id, "write")
        if faults:
            raise validation_error(faults)
        scenarios.prepared(actor, scenario, changes)
        scenarios.change(actor, scenarios.get(actor, scenario_id, "write", lock=True), changes)
    except ApiError as error:
        if error.code not in ("validation_error", "forbidden"):
            raise
        db.session.rollback()
        return _settings(actor, scenarios.get(actor, scenario_id, "write"), given, error=error)
    flash("Settings kept", "")
    return _see(url_for("scenario_pages.settings", scenario_id=scenario_id))


@route(bp, "/scenarios/times", ["POST"], scope="read", reads=True, hidden=True, programs=False)
def times(actor: Actor) -> Response:
    """When a schedule that is being written would be due."""
    given, _ = forms.settings(form_values(request.form))
    schedule = given["schedule"]
    faults = schedules.faults(schedule, set()) if schedule else []
    said_of = {"schedule": schedule or {}, "times": shown.next_times(schedule)}
    return Response(render_block(SETTINGS, "times", **said_of, bad={one.path: one.message for one in faults}))


# --- Versions ---------------------------------------------------------------------------------------------------


@route(bp, "/scenarios/<scenario_id>/history", scope="read", hidden=True, programs=False)
def history(actor: Actor, scenario_id: str) -> Response:
    """The versions of a scenario, with who saved them."""
    scenario = scenarios.get(actor, scenario_id)
    listed = [
        {
            "number": version.number,
            "at": version.created_at,
            "who": who,
            "lines": version.spec["code"].count("\n") + 1,
            "packages": version.pins.get("requirements", []),
        }
        for version, who in scenarios.KIND.history(scenario)
    ]
    return reply(scenarios.show(scenario), template="scenarios/versions.html", versions=listed)
