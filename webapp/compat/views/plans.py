"""Plans: descriptions of work to be done, which are written, reviewed and stored. Plans are not executed."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from flask import Response
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from webapp import limits
from webapp.access.actors import Actor
from webapp.accounts.views.projects import Description, Name
from webapp.compat import services
from webapp.compat.views.objects import ObjectPatch, common_out
from webapp.compat.views.routing import ROOT, CamelCaseInput, ProjectQuery, actor_in_project, call
from webapp.files.models import CompatObject
from webapp.web.responses import reply

PLAN: Final = f"{ROOT}/plans/<plan_id>"

Count = Annotated[int, Field(ge=0)]
Status = Literal["draft", "approved", "running", "completed", "failed"]
Texts = list[str]


class PlanPart(CamelCaseInput):
    """A part of a plan. Keys beyond those that the clients' document describes are kept."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel, populate_by_name=False)
    read_only = frozenset()


class Scaffold(PlanPart):
    """The data that would have to be built."""

    entity: str
    ops: Texts
    fields: Texts


class Entity(PlanPart):
    """Rows of a template, and how many."""

    name: str
    template: str
    volume: Count
    key: str
    note: str = ""
    template_id: str | None = None
    endpoint_id: str | None = None


class Gap(PlanPart):
    """The missing data."""

    type: Literal["connect", "custom", "input", "blocker", "gap", "stale"]
    title: str
    note: str = ""
    action: str | None = None
    iface: str | None = None
    scaffold: Scaffold | None = None


class Integration(PlanPart):
    """A system that the plan reads or writes."""

    system: str
    via: str
    access: Literal["read", "write"]
    detail: str = ""


class Capability(PlanPart):
    """The coverage of the plan's rows."""

    key: str
    name: str
    source: Literal["derived", "manual"] = "derived"
    hidden: bool = False
    note: str = ""
    group: str | None = None
    template: str | None = None
    template_id: str | None = None
    set_id: str | None = None
    sum_field: str | None = None
    expected_count: Count | None = None
    expected_sum_cents: int | None = None


class Coverage(PlanPart):
    """The coverage of a family."""

    family: str
    count: Count
    items: Texts


class CoverageConfig(PlanPart):
    """The criteria for coverage."""

    mode: Literal["release", "migration"] = "release"
    freshness_days: Annotated[int, Field(ge=1)] = 14
    sum_tolerance_cents: Count = 0
    source_system: str | None = None
    target_system: str | None = None


class Step(PlanPart):
    """A message from one system to another."""

    from_: str = Field(alias="from")
    to: str
    msg: str
    iface: str
    kind: str
    status: Literal["mapped", "likely", "custom", "unknown"]
    fields: Texts | None = None
    reachable: bool | None = None
    scaffold: Scaffold | None = None
    why: str | None = None


class Phase(PlanPart):
    """Steps of a flow."""

    phase: str
    steps: list[Step]
    loop: str | None = None


class FieldMapping(PlanPart):
    """The source of a field of the target."""

    target_field: str
    transform: str = ""
    generate: bool = False
    status: Literal["mapped", "open", "needs-review"] = "open"
    note: str = ""
    source_field: str | None = None
    key_map_name: str | None = None
    masking_policy_id: str | None = None


class Task(PlanPart):
    """Something to do."""

    title: str
    deps: Texts = Field(default_factory=list)
    detail: str = ""
    key: str | None = None
    priority: Literal["P0", "P1", "P2", "P3"] | None = None


class TaskPhase(PlanPart):
    """Tasks of a phase."""

    phase: str
    tasks: list[Task]
    note: str | None = None


class Approval(PlanPart):
    """The approvals that the plan needs."""

    role: str
    reason: str


class Lifecycle(PlanPart):
    """The maintenance of the plan's data."""

    mode: str
    refresh: str
    replenish: str


class MappingConfig(PlanPart):
    """The mappings of a mapping plan."""

    key_map_name: str | None = None
    masking_policy_id: str | None = None
    masking_policy_name: str | None = None
    source_object: str | None = None
    source_system: str | None = None
    target_object: str | None = None
    target_system: str | None = None


class Version(PlanPart):
    """Which version of the plan this is."""

    n: Count
    by: str
    when: str


class Spec(PlanPart):
    """The steps of a plan."""

    kind: Literal["entity", "flow", "task", "mapping"] | None = None
    lanes: Texts = Field(default_factory=list)
    entities: list[Entity] = Field(default_factory=list)
    gaps: list[Gap] = Field(default_factory=list)
    integrations: list[Integration] = Field(default_factory=list)
    constraints: Texts = Field(default_factory=list)
    steps: Texts = Field(default_factory=list)
    expectations: Texts = Field(default_factory=list)
    approval: Approval | None = None
    capabilities: list[Capability] | None = None
    coverage: list[Coverage] | None = None
    coverage_config: CoverageConfig | None = None
    flow: list[Phase] | None = None
    lifecycle: Lifecycle | None = None
    mapping_config: MappingConfig | None = None
    mappings: list[FieldMapping] | None = None
    tasks: list[TaskPhase] | None = None
    version: Version | None = None


class Event(PlanPart):
    """A status that the plan had."""

    status: Status
    when: str
    by: str | None = None
    note: str = ""


class PlanPatch(ObjectPatch):
    """Changes to a plan; missing attributes are unchanged. `rows` is counted by the service."""

    read_only = ObjectPatch.read_only | {"rows"}

    title: Name | None = None
    summary: Description | None = None
    status: Status | None = None
    origin: Literal["chat", "blueprint", "intake", "gap analysis"] | None = None
    created_from: Annotated[str, Field(max_length=limits.MAX_NAME_CHARS)] | None = None
    owner: Annotated[str, Field(max_length=limits.MAX_NAME_CHARS)] | None = None
    env: Annotated[str, Field(max_length=limits.MAX_NAME_CHARS)] | None = None
    write: bool | None = None
    targets: Texts | None = None
    spec: Spec | None = None
    history: list[Event] | None = None


class PlanIn(PlanPatch):
    """A new plan."""

    read_only = PlanPatch.read_only - {"projectId", "teamId"}

    title: Name
    project_id: str | None = None
    team_id: str | None = None


_DEFAULTS: Final[dict[str, Any]] = {
    "summary": None,
    "status": "draft",
    "origin": None,
    "createdFrom": None,
    "owner": None,
    "env": None,
    "write": False,
    "targets": [],
    "history": [],
}
_NULLABLE: Final = frozenset({"summary", "origin", "createdFrom", "owner", "env"})


def plan_out(row: CompatObject) -> dict[str, Any]:
    """Return a plan in the form of the clients. Plans are not run here, so none has generated rows."""
    values = {key: value for key, value in common_out(row).items() if key != "name"}
    return {**values, "title": row.name, "rows": 0, **row.document}


def _document(body: PlanPatch) -> dict[str, Any]:
    """Return the input in the stored format: the parts of a plan without nulls, which the document does not allow."""
    values = body.model_dump(by_alias=True, exclude_unset=True, exclude={"title", "project_id", "team_id"})
    document = {key: value for key, value in values.items() if value is not None or key in _NULLABLE}
    if body.spec is not None:
        document["spec"] = body.spec.model_dump(by_alias=True, exclude_none=True)
    if body.history is not None:
        document["history"] = [event.model_dump(by_alias=True, exclude_none=True) for event in body.history]
    return document


@call(f"{ROOT}/plans", scope="read")
def plans_list(actor: Actor, query: ProjectQuery) -> Response:
    """List the plans of the project, newest first."""
    project_actor = actor_in_project(actor, "read", query.projectId, query.teamId)
    return reply([plan_out(row) for row in services.listing(project_actor, "plan")])


@call(f"{ROOT}/plans/save", ["POST"], scope="write", body=PlanIn, idempotent=True)
def plan_create(actor: Actor, body: PlanIn) -> Response:
    """Create a plan."""
    project_actor = actor_in_project(actor, "write", body.project_id, body.team_id)
    empty = Spec().model_dump(by_alias=True, exclude_none=True)
    document = {**_DEFAULTS, "spec": empty, **_document(body)}
    return reply(plan_out(services.create(project_actor, "plan", body.title, document)))


@call(PLAN, scope="read")
def plan_show(actor: Actor, plan_id: str) -> Response:
    """Read a plan."""
    return reply(plan_out(services.get(actor, "plan", plan_id)), send_etag=True)


@call(PLAN, ["PATCH"], scope="write", body=PlanPatch)
def plan_change(actor: Actor, plan_id: str, body: PlanPatch) -> Response:
    """Change a plan. A `spec` or `history` that is sent replaces the one that there is."""
    row = services.get(actor, "plan", plan_id, "write", lock=True)
    return reply(plan_out(services.change(actor, row, name=body.title, document=_document(body))))


@call(PLAN, ["DELETE"], scope="write")
def plan_delete(actor: Actor, plan_id: str) -> Response:
    """Delete a plan."""
    services.delete_object(actor, services.get(actor, "plan", plan_id, "write", lock=True))
    return reply({"success": True})
