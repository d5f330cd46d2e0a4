"""Scenarios: programs and how they are run; their versions and their checks. Their runs: see runs.py."""

from __future__ import annotations

from typing import Annotated, Any

from flask import Blueprint, Response, g, url_for
from pydantic import Field

from webapp.accounts.actors import Actor
from webapp.scenarios.schemas import CheckInput, CodeInput, Network, ScenarioInput, ScenarioPatch
from webapp.scenarios.services import scenarios
from webapp.scenarios.views import presentation
from webapp.web import versioned_routes
from webapp.web.responses import Output, matching, reply
from webapp.web.routing import route
from webapp.web.versioned_routes import OtherQuery

bp = Blueprint("scenarios", __name__)
ONE = "/scenarios/<scenario_id>"


class ScheduleOut(Output):
    """When a scenario runs by itself."""

    cron: str
    timezone: str
    enabled: bool
    params: dict[str, str]


class LockOut(Output):
    """What the requirements of a version came to when it was saved: the packages of every run of it."""

    environment: str
    packages: dict[str, str]


class WarningOut(Output):
    """What will surprise, and is no reason to refuse."""

    path: str
    code: str
    message: str
    hint: str | None = None
    position: int | None = None


class ScenarioOut(Output):
    """A scenario as of one version; how it is run is always as it is now."""

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
    """What changed from one version to another; `code` in unified form."""

    scenario_id: str
    from_: Annotated[int, Field(alias="from")]
    to: int
    scenario: dict[str, Any]
    requirements: dict[str, list[str]]
    packages: dict[str, dict[str, Any]]
    code: str


class CheckOut(Output):
    """What saving a program would say. Faults would keep it from being saved, warnings would not."""

    requirements: list[str]
    packages: dict[str, str] | None
    faults: list[WarningOut]
    warnings: list[WarningOut]


versioned_routes.declare_list(bp, scenarios.KIND, ScenarioOut, presentation.last_runs)
versioned_routes.declare_deletion(bp, scenarios.KIND, ScenarioOut)
versioned_routes.declare_versions(
    bp, scenarios.KIND, ScenarioOut,
    restores="Make an earlier version the newest: a new version with its name, description, code and packages.",
)  # fmt: skip


@route(
    bp, "/scenarios", ["POST"], scope="write", body=ScenarioInput, returns=ScenarioOut, status=201,
    idempotent=True, errors=("unavailable",),
)  # fmt: skip
def create(actor: Actor, body: ScenarioInput) -> Response:
    """Make a scenario. What its program requires is resolved now, and the same in every run of this version."""
    made = scenarios.create(actor, **body.model_dump())
    where = url_for("scenarios.show", scenario_id=made["id"])
    return reply(made, status=201, see=where, tag=True, headers={"Location": where})


@route(bp, ONE, scope="read", returns=ScenarioOut)
def show(actor: Actor, scenario_id: str) -> Response:
    """Read a scenario."""
    scenario = scenarios.get(actor, scenario_id)
    if g.face == "person":
        from webapp.scenarios.views import pages  # which knows the addresses of this module

        return pages.page(actor, scenario)
    return reply(scenarios.show(scenario), tag=True)


@route(
    bp, ONE, ["PUT"], scope="write", body=CodeInput, returns=ScenarioOut,
    errors=(*versioned_routes.CONFLICTS, "unavailable"),
)  # fmt: skip
def replace(actor: Actor, scenario_id: str, body: CodeInput) -> Response:
    """Replace the code, which makes the next version; with it anything else that is sent."""
    return _changed(actor, scenario_id, body.model_dump(include=body.model_fields_set))


@route(
    bp, ONE, ["PATCH"], scope="write", body=ScenarioPatch, returns=ScenarioOut,
    errors=(*versioned_routes.CONFLICTS, "unavailable"),
)  # fmt: skip
def change(actor: Actor, scenario_id: str, body: ScenarioPatch) -> Response:
    """Change any part of a scenario.

    Another code, name or description makes the next version; how it is run does not.
    """
    return _changed(actor, scenario_id, body.model_dump(include=body.model_fields_set))


def _changed(actor: Actor, scenario_id: str, changes: dict[str, Any], *, anew: bool = False) -> Response:
    # Requirements are resolved beforehand: nobody shall wait for the package index with the scenario locked.
    scenario = scenarios.get(actor, scenario_id, "write")
    matching(scenarios.show(scenario))
    program = scenarios.prepared(actor, scenario, changes, anew=anew)
    scenario = versioned_routes.matched(actor, scenarios.KIND, scenario_id)
    changed = scenarios.change(actor, scenario, changes, program)
    return reply(changed, see=url_for("scenarios.show", scenario_id=scenario_id), tag=True)


@route(
    bp, f"{ONE}/refresh-requirements", ["POST"], scope="write", returns=ScenarioOut,
    errors=(*versioned_routes.CONFLICTS, "validation_error", "unavailable"),
)  # fmt: skip
def refresh_requirements(actor: Actor, scenario_id: str) -> Response:
    """Resolve the program's requirements anew, to the newest versions that fit, which makes the next version."""
    return _changed(actor, scenario_id, {}, anew=True)


@route(bp, f"{ONE}@v<int:number>", scope="read", returns=ScenarioOut)
def show_version(actor: Actor, scenario_id: str, number: int) -> Response:
    """Read one version of a scenario."""
    scenario = scenarios.get(actor, scenario_id)
    found = scenarios.show(scenario, number)
    return reply(found, template="scenarios/version.html", tag=True, newest=scenario.version)


@route(bp, f"{ONE}@v<int:number>/diff", scope="read", query=OtherQuery, returns=ScenarioDiffOut)
def diff(actor: Actor, scenario_id: str, number: int, query: OtherQuery) -> Response:
    """What changed from one version to another (default: the newest)."""
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
    """Look through a program without saving it: its requirements, its faults and its warnings."""
    return reply(scenarios.check(body.code, resolve=body.resolve))
