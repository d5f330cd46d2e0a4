"""Scenarios: programs and how they are run; their versions and their checks. Their runs: see runs.py."""

from __future__ import annotations

from typing import Annotated, Any

from flask import Blueprint, Response, g, url_for
from pydantic import Field

from webapp.access.actors import Actor
from webapp.errors import ApiError
from webapp.scenarios.schemas import CheckInput, CodeInput, Network, ScenarioInput, ScenarioPatch
from webapp.scenarios.services import scenarios
from webapp.scenarios.views import pages, presentation
from webapp.versioning import views as versioned_routes
from webapp.versioning.views import OtherQuery
from webapp.web.inputs import with_more
from webapp.web.responses import Output, matching, reply
from webapp.web.routing import route

bp = Blueprint("scenarios", __name__)
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


versioned_routes.declare_list(bp, scenarios.KIND, ScenarioOut, presentation.last_runs)
versioned_routes.declare_deletion(bp, scenarios.KIND, ScenarioOut)
versioned_routes.declare_versions(
    bp, scenarios.KIND, ScenarioOut,
    restores=("Make an earlier version the newest: creates a version with its name, description, code "
             "and packages."),
)  # fmt: skip


def _more(actor: Actor, error: ApiError, said: Any, scenario_id: str = "") -> ApiError:
    found = scenarios.get(actor, scenario_id, "write") if scenario_id else None

    def check(body: ScenarioPatch) -> None:
        scenarios.check_changes(actor, body.model_dump(include=body.model_fields_set), found)

    return with_more(error, said, ScenarioPatch, check)


@route(
    bp, "/scenarios", ["POST"], scope="write", body=ScenarioInput, returns=ScenarioOut, status=201,
    idempotent=True, errors=(*versioned_routes.SAVES, "unavailable"), more_faults=_more,
)  # fmt: skip
def create(actor: Actor, body: ScenarioInput) -> Response:
    """Create a scenario.

    The program's requirements are resolved immediately and stay the same for every run of this version.
    """
    made = scenarios.create(actor, **body.model_dump())
    where = url_for("scenarios.show", scenario_id=made["id"])
    return reply(made, status=201, see=where, tag=True, headers={"Location": where})


@route(bp, ONE, scope="read", returns=ScenarioOut)
def show(actor: Actor, scenario_id: str) -> Response:
    """Get a scenario."""
    scenario = scenarios.get(actor, scenario_id)
    if g.face == "person":
        return pages.page(actor, scenario)
    return reply(scenarios.show(scenario), tag=True)


@route(
    bp, ONE, ["PUT"], scope="write", body=CodeInput, returns=ScenarioOut,
    errors=(*versioned_routes.CHANGES, "unavailable"), more_faults=_more,
)  # fmt: skip
def replace(actor: Actor, scenario_id: str, body: CodeInput) -> Response:
    """Replace the code and any other given keys, which creates a new version."""
    return _changed(actor, scenario_id, body.model_dump(include=body.model_fields_set))


@route(
    bp, ONE, ["PATCH"], scope="write", body=ScenarioPatch, returns=ScenarioOut,
    errors=(*versioned_routes.CHANGES, "unavailable"), more_faults=_more,
)  # fmt: skip
def change(actor: Actor, scenario_id: str, body: ScenarioPatch) -> Response:
    """Change a scenario.

    A new code, name or description creates a new version; run settings do not.
    """
    return _changed(actor, scenario_id, body.model_dump(include=body.model_fields_set))


def _changed(actor: Actor, scenario_id: str, changes: dict[str, Any], *, anew: bool = False) -> Response:
    # Resolve the requirements before locking the scenario, because the package index can be slow.
    scenario = scenarios.get(actor, scenario_id, "write")
    matching(scenarios.show(scenario))
    program = scenarios.prepared(actor, scenario, changes, anew=anew)
    scenario = versioned_routes.matched(actor, scenarios.KIND, scenario_id)
    changed = scenarios.change(actor, scenario, changes, program)
    return reply(changed, see=url_for("scenarios.show", scenario_id=scenario_id), tag=True)


@route(
    bp, f"{ONE}/refresh-requirements", ["POST"], scope="write", returns=ScenarioOut,
    errors=(*versioned_routes.CHANGES, "validation_error", "unavailable"),
)  # fmt: skip
def refresh_requirements(actor: Actor, scenario_id: str) -> Response:
    """Resolve the program's requirements again, to the newest matching versions, which creates a new version."""
    return _changed(actor, scenario_id, {}, anew=True)


@route(bp, f"{ONE}@v<int:number>", scope="read", returns=ScenarioOut)
def show_version(actor: Actor, scenario_id: str, number: int) -> Response:
    """Get a version of a scenario."""
    scenario = scenarios.get(actor, scenario_id)
    found = scenarios.show(scenario, number)
    return reply(found, template="scenarios/version.html", tag=True, newest=scenario.version)


@route(bp, f"{ONE}@v<int:number>/diff", scope="read", query=OtherQuery, returns=ScenarioDiffOut)
def diff(actor: Actor, scenario_id: str, number: int, query: OtherQuery) -> Response:
    """Get the changes from one version to another (default: the newest)."""
    scenario = scenarios.get(actor, scenario_id)
    other = scenario.version if query.to is None else query.to
    found = scenarios.between(scenario, number, other)
    shown = presentation.of_difference(scenario.name, found) if g.face == "person" else {}
    return reply(found, template="scenarios/diff.html", block="diff", **shown)


@route(
    bp, "/scenarios/check", ["POST"], scope="write", body=CheckInput, returns=CheckOut, reads=True,
    errors=("unavailable",),
)  # fmt: skip
def check(actor: Actor, body: CheckInput) -> Response:
    """Check a program without saving it: its requirements, errors and warnings."""
    return reply(scenarios.check(body.code, resolve=body.resolve))
