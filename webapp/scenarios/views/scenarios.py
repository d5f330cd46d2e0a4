"""Scenarios: programs and how they are run; their versions and their checks. See runs.py and run_pages.py for runs.

The page shows the program in an editor, how it is run, and its versions. The editor is a textarea in a form, so it
works without JavaScript. When a script saves it, only the part next to the text (`save_result`) is replaced.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import keyword
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final

from flask import Blueprint, Response, current_app, flash, g, render_template, request, url_for
from pydantic import Field

from webapp import limits
from webapp.access.actors import Actor
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.paths import ROOT
from webapp.scenarios import examples, forms
from webapp.scenarios.models import Run, Scenario
from webapp.scenarios.schemas import CheckInput, CodeInput, Network, ScenarioInput, ScenarioPatch
from webapp.scenarios.services import runs, scenarios, schedules
from webapp.scenarios.views import run_pages
from webapp.versioning import views as versioned_routes
from webapp.versioning.views import OtherQuery
from webapp.web.inputs import Query, form_values, merge_faults, parse
from webapp.web.responses import Output, check_if_match, json_reply, render_block, reply, see_other
from webapp.web.routing import route

SDK_SOURCE: Final = ROOT / "sdk" / "python" / "src" / "rowsmith"
INJECTED_VARIABLES: Final = (
    "SERVICE_API_KEY",
    "SERVICE_API_URL",
    "SERVICE_PROJECT_ID",
    "SERVICE_TEAM_ID",
    "SERVICE_SCENARIO_ID",
    "SERVICE_WORKSPACE_UPLOADS",
    "SERVICE_WORKSPACE_OUTPUTS",
)
"""Specification, Scenario runtime: variables of every run."""
_CLIENT: Final = "Client"
_PUBLIC_MODULES: Final = frozenset({"api", "client", "error", "fields", "template"})
"""Modules of the package that programs use directly; all others are nested in them."""
_HIDDEN_ARGUMENTS: Final = frozenset({"self", "cls", "common"})


@lru_cache(maxsize=1)
def completion_names() -> dict[str, Any]:
    """Return `{client, names, words}`: the client's methods and the package's classes, each `{name, args, doc}`, and
    Python's keywords. Empty if the SDK is not installed next to the service."""
    client: list[dict[str, str]] = []
    names: list[dict[str, str]] = []
    for path in sorted(SDK_SOURCE.rglob("*.py")):
        if path.relative_to(SDK_SOURCE).parts[0].removesuffix(".py") not in _PUBLIC_MODULES:
            continue
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                if node.name == _CLIENT:
                    client = [
                        {"name": item.name, "args": _arguments(item), "doc": _summary(item)}
                        for item in node.body
                        if isinstance(item, ast.FunctionDef) and not item.name.startswith("_")
                    ]
                names.append(_class_entry(node, path))
    ordered = sorted({name["name"]: name for name in names}.values(), key=lambda item: item["name"])
    plain = [item for item in dir(builtins) if not item.startswith("_")]
    return {"client": client, "names": ordered, "words": sorted({*keyword.kwlist, *plain})}


def completion_version() -> str:
    """Return a hash of these names, for a URL that changes with each release."""
    return _names_hash()


@lru_cache(maxsize=1)
def _names_hash() -> str:
    return hashlib.blake2b(json_reply(completion_names()).get_data(), digest_size=5).hexdigest()


def _class_entry(node: ast.ClassDef, path: Path) -> dict[str, str]:
    constructor = next(
        (item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"), None
    )
    module = ".".join(("rowsmith", *path.relative_to(SDK_SOURCE).with_suffix("").parts))
    module_path = module.removesuffix(".__init__")
    if module_path.startswith("rowsmith.fields"):
        module_path = "rowsmith.fields"
    return {
        "name": node.name,
        "args": _arguments(constructor) if constructor else "",
        "doc": _summary(node),
        "from": module_path,
    }


def _arguments(node: ast.FunctionDef) -> str:
    """Return the arguments that a caller passes, without their types: `template, quantity=…`."""
    arguments = node.args
    names = [posonlyarg.arg for posonlyarg in (*arguments.posonlyargs, *arguments.args)]
    required_count = len(names) - len(arguments.defaults)
    parts = [name if index < required_count else f"{name}=…" for index, name in enumerate(names)]
    parts += [
        kwonlyarg.arg if default is None else f"{kwonlyarg.arg}=…"
        for kwonlyarg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    return ", ".join(part for part in parts if part.removesuffix("=…") not in _HIDDEN_ARGUMENTS)


def _summary(node: ast.ClassDef | ast.FunctionDef) -> str:
    """Return the beginning of the documentation."""
    message = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
    return message[:160]


pages_bp = Blueprint("scenario_pages", __name__)
PAGE: Final = "scenarios/show.html"
SETTINGS: Final = "scenarios/settings.html"
_RECENT_RUNS: Final = 6  # runs listed next to the program


class NewQuery(Query):
    """Which worked example the program begins with."""

    example: Annotated[str, Field(max_length=limits.MAX_NAME_CHARS)] = ""


def page(
    actor: Actor,
    scenario: Scenario | None,
    submitted: dict[str, str] | None = None,
    *,
    status: int = 200,
    found: Sequence[Fault] = (),
    clash: bool = False,
) -> Response:
    """Render the page of a saved scenario, of a new one (`scenario` None), or of a submitted form."""
    data = scenarios.show(scenario) if scenario is not None else None
    draft = {"name": "", "code": "", **(data or {}), **(submitted or {})}
    faults = run_pages.add_source_lines([fault.as_dict() for fault in found], draft["code"])
    context: dict[str, Any] = {
        "data": data,
        "draft": draft,
        "faults": faults,
        "bad": {fault["path"]: fault for fault in faults},
        "clash": run_pages.parse_diff(scenarios.unified_diff(data["code"], draft["code"], "saved", "yours"))
        if clash and data
        else None,
        "loaded": (request.form.get("version", "") if submitted else "") or (data["version"] if data else ""),
        "action": url_for("scenario_pages.save", scenario_id=data["id"])
        if data
        else url_for("scenario_pages.make"),
        "can_write": actor.can("write"),
        "can_run": actor.can("run"),
        "params": forms.pad_rows(_last_params(scenario)),
        **_check_context(data, draft["code"] if submitted else None),
    }
    if "HX-Request" in request.headers:
        return Response(render_block(PAGE, "save_result", **context), status)
    if scenario is not None and data is not None:
        context |= {
            "recent": runs.listing(actor, scenario_id=scenario.id, limit=_RECENT_RUNS).items,
            "use": run_pages.scenario_snippets(data),
        }
    context["examples"] = examples.EXAMPLES if data is None else ()
    context["names"] = url_for("scenario_pages.names", v=completion_version())
    context["variables"] = [*INJECTED_VARIABLES, *((*data["env"], *data["secrets"]) if data else ())]
    return Response(render_template(PAGE, **context), status, mimetype="text/html")


def _check_context(data: dict[str, Any] | None, code: str | None) -> dict[str, Any]:
    """Return the check results of a program: the saved one, or the unsaved `code`."""
    if code is None:
        results = run_pages.add_source_lines(data["warnings"], data["code"]) if data else []
        return {
            "warnings": results,
            "required": run_pages.package_table(data) if data else None,
            "unsaved": False,
        }
    check = scenarios.check(code)
    plain = {"requirements": check["requirements"], "lock": None}
    is_unchanged = data is not None and data["requirements"] == check["requirements"]
    return {
        "warnings": run_pages.add_source_lines([*check["faults"], *check["warnings"]], code),
        "required": run_pages.package_table(data if is_unchanged and data else plain),
        "unsaved": not is_unchanged and bool(check["requirements"]),
    }


def _last_params(scenario: Scenario | None) -> forms.Rows:
    """Return the parameters of the last run, which are a good default for the next."""
    if scenario is None:
        return []
    last = db.session.scalar(
        db.select(Run.params).where(Run.scenario_id == scenario.id).order_by(Run.id.desc()).limit(1)
    )
    return forms.variables_to_rows(last or {})


# --- Creating and saving ----------------------------------------------------------------------------------------


@route(pages_bp, "/scenarios/new", scope="write", query=NewQuery, hidden=True, allows_api_keys=False)
def new(actor: Actor, query: NewQuery) -> Response:
    """An unsaved program, which starts with an example if one is named."""
    one = examples.example(query.example)
    values = {"name": one.name if query.example else "", "code": one.code}
    return page(actor, None, values)


@route(pages_bp, "/scenarios/new", ["POST"], scope="write", hidden=True, allows_api_keys=False)
def make(actor: Actor) -> Response:
    """Save a new scenario; with `do=run` run it too."""
    submitted = forms.parse_program(form_values(request.form))
    try:
        body = parse(ScenarioInput, submitted, strict=False)
        created = scenarios.create(actor, name=body.name, code=body.code)
    except ApiError as error:
        return _show_with_error(actor, None, submitted, error)
    if request.form.get("do") == "run":
        return _queue_run(actor, scenarios.get(actor, created["id"], "run"))
    return _redirect(url_for("scenarios.show", scenario_id=created["id"]))


@route(pages_bp, "/scenarios/<scenario_id>/edit", ["POST"], scope="write", hidden=True, allows_api_keys=False)
def save(actor: Actor, scenario_id: str) -> Response:
    """Save a program as the next version, unless another one was saved since it was loaded; with `do=run` run it."""
    submitted = forms.parse_program(form_values(request.form))
    action, _, overwritten = request.form.get("do", "save").partition(":")
    loaded_version = overwritten or request.form.get("version", "")
    scenario = scenarios.get(actor, scenario_id, "write")
    data = scenarios.show(scenario)
    changes = {key: value for key, value in submitted.items() if value != data[key]}
    try:
        if changes and loaded_version != str(scenario.version):
            return _show_conflict(actor, scenario_id, submitted)
        if changes:
            parse(ScenarioPatch, changes, strict=False)
            # Resolve the requirements before locking the scenario, because the package index can be slow.
            program = scenarios.prepare_change(actor, scenario, changes)
            scenario = scenarios.get(actor, scenario_id, "write", lock=True)
            if loaded_version != str(scenario.version):
                return _show_conflict(actor, scenario_id, submitted)
            data = scenarios.change(actor, scenario, changes, program)
        scenario = scenarios.get(actor, scenario_id)
        if action == "run":
            return _queue_run(actor, scenarios.get(actor, scenario_id, "run"))
    except ApiError as error:
        return _show_with_error(actor, scenario_id, submitted, error)
    if "HX-Request" in request.headers:
        response = page(actor, scenario)
        response.headers["HX-Trigger"] = "saved"
        return response
    flash(f"Saved as version {data['version']}" if changes else "Nothing has changed", "")
    return _redirect(url_for("scenarios.show", scenario_id=scenario_id))


def _show_conflict(actor: Actor, scenario_id: str, submitted: dict[str, str]) -> Response:
    """Show both versions if another one was saved in the meantime, so that nothing is lost."""
    db.session.rollback()
    return page(actor, scenarios.get(actor, scenario_id), submitted, status=412, clash=True)


def _show_with_error(
    actor: Actor, scenario_id: str | None, submitted: dict[str, str], error: ApiError
) -> Response:
    if error.code not in ("validation_error", "unavailable", "quota_exceeded"):
        raise error
    db.session.rollback()
    reported = error.details.get("fields") or [{"path": "", "code": error.code, "message": error.message}]
    found = [
        Fault(item["path"], item["code"], item["message"], item.get("hint"), item.get("position"))
        for item in reported
    ]
    scenario = scenarios.get(actor, scenario_id) if scenario_id is not None else None
    return page(actor, scenario, submitted, status=error.status, found=found)


def _queue_run(actor: Actor, scenario: Scenario) -> Response:
    """Queue a run with the parameters of the form, and go to its page."""
    run = runs.queue(actor, scenario, run_pages.submitted_params(scenario))
    return _redirect(url_for("runs.show", scenario_id=run.scenario_id, run_id=run.id))


def _redirect(url: str) -> Response:
    if "HX-Request" in request.headers:
        return Response(status=204, headers={"HX-Redirect": url})
    return see_other(url)


@route(pages_bp, "/scenarios/said", ["POST"], scope="write", reads=True, hidden=True, allows_api_keys=False)
def findings(actor: Actor) -> Response:
    """Render the check results of an unsaved program: errors with their lines, and requirements."""
    code = forms.parse_program(form_values(request.form)).get("code", "")
    scenario_id = request.form.get("scenario_id", "")
    data = scenarios.show(scenarios.get(actor, scenario_id)) if scenario_id else None
    return Response(render_block(PAGE, "findings", data=data, can_write=True, **_check_context(data, code)))


@route(pages_bp, "/scenarios/names", scope="read", hidden=True, allows_api_keys=False)
def names() -> Response:
    """Names that the editor completes, as JSON: of the SDK, from its source."""
    answer = json_reply(completion_names())
    answer.headers["Cache-Control"] = f"private, max-age={limits.ASSET_SECONDS}"
    return answer


# --- Run settings -----------------------------------------------------------------------------------------------


def _render_settings(
    actor: Actor,
    scenario: Scenario,
    submitted: dict[str, Any] | None = None,
    *,
    error: ApiError | None = None,
) -> Response:
    data = scenarios.show(scenario)
    draft = {**data, **(submitted or {})}
    schedule = draft["schedule"] or {"cron": "", "timezone": "UTC", "enabled": True, "params": {}}
    values = form_values(request.form) if submitted is not None else {}
    fields = error.details.get("fields", []) if error else []
    context = {
        "data": data,
        "draft": draft,
        "schedule": schedule,
        "env": forms.pad_rows(
            forms.submitted_rows(values, "env") if values else forms.variables_to_rows(draft["env"])
        ),
        "params": forms.pad_rows(
            forms.submitted_rows(values, "params") if values else forms.variables_to_rows(schedule["params"])
        ),
        "times": run_pages.next_times(schedule),
        "secrets": run_pages.secret_names(actor, scenario),
        "zones": run_pages.ZONES,
        "networks": current_app.config["SETTINGS"].program_networks,
        "error": error,
        "bad": {field["path"]: field["message"] for field in fields},
        "can_write": actor.can("write"),
        "can_secrets": actor.can("secrets"),
    }
    return Response(
        render_template(SETTINGS, **context), error.status if error else 200, mimetype="text/html"
    )


@route(pages_bp, "/scenarios/<scenario_id>/settings", scope="read", hidden=True, allows_api_keys=False)
def settings(actor: Actor, scenario_id: str) -> Response:
    """The settings of a scenario's runs: time limit, network, variables, secrets, schedule."""
    return _render_settings(actor, scenarios.get(actor, scenario_id))


@route(
    pages_bp, "/scenarios/<scenario_id>/settings", ["POST"], scope="write", hidden=True, allows_api_keys=False
)
def save_settings(actor: Actor, scenario_id: str) -> Response:
    """Save the settings of a scenario's runs."""
    submitted, faults = forms.parse_settings(form_values(request.form))
    try:
        body = parse(ScenarioPatch, submitted, strict=False)
        changes = body.model_dump(exclude_unset=True)
        scenario = scenarios.get(actor, scenario_id, "write")
        if faults:
            raise validation_error(faults)
        scenarios.prepare_change(actor, scenario, changes)
        scenarios.change(actor, scenarios.get(actor, scenario_id, "write", lock=True), changes)
    except ApiError as error:
        if error.code not in ("validation_error", "forbidden"):
            raise
        db.session.rollback()
        return _render_settings(actor, scenarios.get(actor, scenario_id, "write"), submitted, error=error)
    flash("Settings saved", "")
    return _redirect(url_for("scenario_pages.settings", scenario_id=scenario_id))


@route(pages_bp, "/scenarios/times", ["POST"], scope="read", reads=True, hidden=True, allows_api_keys=False)
def times(actor: Actor) -> Response:
    """Show when a schedule that is being edited would be due."""
    submitted, _ = forms.parse_settings(form_values(request.form))
    schedule = submitted["schedule"]
    faults = schedules.faults(schedule, set()) if schedule else []
    context = {"schedule": schedule or {}, "times": run_pages.next_times(schedule)}
    return Response(
        render_block(SETTINGS, "times", **context, bad={fault.path: fault.message for fault in faults})
    )


# --- Versions ---------------------------------------------------------------------------------------------------


@route(pages_bp, "/scenarios/<scenario_id>/history", scope="read", hidden=True, allows_api_keys=False)
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


bp = Blueprint("scenarios", __name__)
# --- Routes -------------------------------------------------------------------------------------------------

ONE = "/scenarios/<scenario_id>"


class ScheduleOut(Output):
    """When a scenario runs automatically."""

    cron: str
    timezone: str
    enabled: bool
    params: dict[str, str]


class LockOut(Output):
    """The resolved requirements of a version: the packages of every run of it."""

    environment: str
    packages: dict[str, str]


class WarningOut(Output):
    """A problem that does not prevent saving."""

    path: str
    code: str
    message: str
    hint: str | None = None
    position: int | None = None


class ScenarioOut(Output):
    """A version of a scenario. The run settings are always the current ones."""

    id: str
    name: str
    description: str
    code: str
    version: int
    timeout_seconds: int
    env: dict[str, str]
    secrets: list[str]
    writable_secrets: list[str]
    network: Network
    schedule: ScheduleOut | None
    next_run_at: str | None
    requirements: list[str]
    lock: LockOut | None
    project_id: str
    team_id: str
    created_by: str | None
    created_at: str
    updated_at: str
    deleted_at: str | None
    warnings: list[WarningOut]


class ScenarioDiffOut(Output):
    """The changes from one version to another; `code` is a unified diff."""

    scenario_id: str
    from_: Annotated[int, Field(alias="from")]
    to: int
    scenario: dict[str, Any]
    requirements: dict[str, list[str]]
    packages: dict[str, dict[str, Any]]
    code: str


class CheckOut(Output):
    """The result of checking a program. Errors prevent saving, warnings do not."""

    requirements: list[str]
    packages: dict[str, str] | None
    faults: list[WarningOut]
    warnings: list[WarningOut]


versioned_routes.declare_list(bp, scenarios.KIND, ScenarioOut, run_pages.last_runs)
versioned_routes.declare_deletion(bp, scenarios.KIND, ScenarioOut)
versioned_routes.declare_versions(
    bp, scenarios.KIND, ScenarioOut,
    summary=("Make an earlier version the newest: creates a version with its name, description, code "
             "and packages."),
)  # fmt: skip


def _more_faults(actor: Actor, error: ApiError, submitted: Any, scenario_id: str = "") -> ApiError:
    found = scenarios.get(actor, scenario_id, "write") if scenario_id else None

    def check(body: ScenarioPatch) -> None:
        scenarios.check_changes(actor, body.model_dump(include=body.model_fields_set), found)

    return merge_faults(error, submitted, ScenarioPatch, check)


@route(
    bp, "/scenarios", ["POST"], scope="write", body=ScenarioInput, returns=ScenarioOut, status=201,
    idempotent=True, errors=(*versioned_routes.SAVE_ERRORS, "unavailable"), more_faults=_more_faults,
)  # fmt: skip
def create(actor: Actor, body: ScenarioInput) -> Response:
    """Create a scenario.

    The program's requirements are resolved immediately and stay the same for every run of this version.
    """
    created = scenarios.create(actor, **body.model_dump())
    where = url_for("scenarios.show", scenario_id=created["id"])
    return reply(created, status=201, redirect_to=where, send_etag=True, headers={"Location": where})


@route(bp, ONE, scope="read", returns=ScenarioOut)
def show(actor: Actor, scenario_id: str) -> Response:
    """Get a scenario."""
    scenario = scenarios.get(actor, scenario_id)
    if g.face == "person":
        return page(actor, scenario)
    return reply(scenarios.show(scenario), send_etag=True)


@route(
    bp, ONE, ["PUT"], scope="write", body=CodeInput, returns=ScenarioOut,
    errors=(*versioned_routes.CHANGE_ERRORS, "unavailable"), more_faults=_more_faults,
)  # fmt: skip
def replace(actor: Actor, scenario_id: str, body: CodeInput) -> Response:
    """Replace the code and any other given keys, which creates a new version."""
    return _change(actor, scenario_id, body.model_dump(include=body.model_fields_set))


@route(
    bp, ONE, ["PATCH"], scope="write", body=ScenarioPatch, returns=ScenarioOut,
    errors=(*versioned_routes.CHANGE_ERRORS, "unavailable"), more_faults=_more_faults,
)  # fmt: skip
def change(actor: Actor, scenario_id: str, body: ScenarioPatch) -> Response:
    """Change a scenario.

    A new code, name or description creates a new version; run settings do not.
    """
    return _change(actor, scenario_id, body.model_dump(include=body.model_fields_set))


def _change(actor: Actor, scenario_id: str, changes: dict[str, Any], *, refresh: bool = False) -> Response:
    # Resolve the requirements before locking the scenario, because the package index can be slow.
    scenario = scenarios.get(actor, scenario_id, "write")
    check_if_match(scenarios.show(scenario))
    program = scenarios.prepare_change(actor, scenario, changes, refresh=refresh)
    scenario = versioned_routes.get_matching_head(actor, scenarios.KIND, scenario_id)
    changed = scenarios.change(actor, scenario, changes, program)
    return reply(changed, redirect_to=url_for("scenarios.show", scenario_id=scenario_id), send_etag=True)


@route(
    bp, f"{ONE}/refresh-requirements", ["POST"], scope="write", returns=ScenarioOut,
    errors=(*versioned_routes.CHANGE_ERRORS, "validation_error", "unavailable"),
)  # fmt: skip
def refresh_requirements(actor: Actor, scenario_id: str) -> Response:
    """Resolve the program's requirements again, to the newest matching versions, which creates a new version."""
    return _change(actor, scenario_id, {}, refresh=True)


@route(bp, f"{ONE}@v<int:number>", scope="read", returns=ScenarioOut)
def show_version(actor: Actor, scenario_id: str, number: int) -> Response:
    """Get a version of a scenario."""
    scenario = scenarios.get(actor, scenario_id)
    found = scenarios.show(scenario, number)
    return reply(found, template="scenarios/version.html", send_etag=True, newest=scenario.version)


@route(bp, f"{ONE}@v<int:number>/diff", scope="read", query=OtherQuery, returns=ScenarioDiffOut)
def diff(actor: Actor, scenario_id: str, number: int, query: OtherQuery) -> Response:
    """Get the changes from one version to another (default: the newest)."""
    scenario = scenarios.get(actor, scenario_id)
    other = scenario.version if query.to is None else query.to
    found = scenarios.diff_versions(scenario, number, other)
    context = run_pages.difference_context(scenario.name, found) if g.face == "person" else {}
    return reply(found, template="scenarios/diff.html", block="diff", **context)


@route(
    bp, "/scenarios/check", ["POST"], scope="write", body=CheckInput, returns=CheckOut, reads=True,
    errors=("unavailable",),
)  # fmt: skip
def check(actor: Actor, body: CheckInput) -> Response:
    """Check a program without saving it: its requirements, errors and warnings."""
    return reply(scenarios.check(body.code, resolve=body.resolve))
