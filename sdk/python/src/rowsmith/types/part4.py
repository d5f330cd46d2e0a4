"""Shapes of the API from PlannedColumn to ScenarioInput, made from its OpenAPI document: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired

    from rowsmith.types.part1 import BadCell, Counts
    from rowsmith.types.part2 import ExportPins
    from rowsmith.types.part3 import Invalid, LeakReport, MisfitOut, OutputFile
    from rowsmith.types.part5 import ScheduleInput, SourceSpec


class PlannedColumn(TypedDict):
    """What one column gets: `state` is field, skipped or missing."""

    column: str
    state: str
    field: str | None
    formula: str | None
    how: str | None
    skipped: str | None
    type: str
    declared: str
    nullable: bool
    key: bool
    unique: bool
    max_length: int | None
    generated: str
    default: str | None
    from_parent: int | None
    misfits: list[MisfitOut]


class PlannedField(TypedDict):
    """A field that may be sent."""

    name: str
    type: str
    label: str
    sensitive: bool


class PlannedTable(TypedDict):
    """The mapping of one table, with its faults."""

    name: str
    target: str
    create: bool
    mode: str
    count: int
    key_columns: list[str]
    capture: list[str]
    later: list[str]
    columns: list[PlannedColumn]
    fields: list[PlannedField]
    unused: list[str]
    faults: list[dict[str, Any]]


class PreviewIn(TypedDict):
    """Three rows of a template or, with `fields`, of an unsaved draft of it."""

    seed: NotRequired[str | None]
    overrides: NotRequired[dict[str, Any]]
    now: NotRequired[str | None]
    locale: NotRequired[str | None]
    rows: NotRequired[dict[str, int]]
    fields: NotRequired[list[dict[str, Any]] | None]
    source: NotRequired[SourceSpec | None]
    invalid: NotRequired[Invalid | None]
    fetch: NotRequired[bool | None]


class PreviewOut(TypedDict):
    """The first three rows, and the seed that makes them again; of a template with bad values also which cells are"""

    rows: list[dict[str, Any]]
    seed: str
    warnings: list[dict[str, str]]
    bad: NotRequired[list[BadCell] | None]


class ProjectIn(TypedDict):
    """A new project; `team_id` left out: the team of the present project."""

    name: str
    description: NotRequired[str]
    team_id: NotRequired[str | None]


class ProjectOut(TypedDict):
    """A project."""

    id: str
    name: str
    description: str
    team_id: str
    created_at: str
    updated_at: str
    deleted_at: str | None


class ProjectPatch(TypedDict):
    """What of a project can change."""

    name: NotRequired[str | None]
    description: NotRequired[str | None]


class PushColumn(TypedDict):
    """What is sent to one column: a field, or a formula; neither for a key of ours."""

    column: str
    field: str | None
    formula: str | None


class PushInput(TypedDict):
    """Rows of a template into a table."""

    connection_id: NotRequired[str | None]
    endpoint_id: NotRequired[str | None]
    mode: NotRequired[Literal["insert", "upsert", "update"]]
    on_error: NotRequired[Literal["continue", "stop"]]
    dry_run: NotRequired[bool]
    canary: NotRequired[int | bool | None]
    confirm: NotRequired[str | None]
    create_table: NotRequired[bool]
    before_sql: NotRequired[list[str]]
    after_sql: NotRequired[list[str]]
    push_mode: NotRequired[Literal["per_row", "batch"] | None]
    wrapper_key: NotRequired[str | None]
    batch_size: NotRequired[int | None]
    retry: NotRequired[dict[str, Any] | None]
    request_template: NotRequired[dict[str, Any] | None]
    parallel: NotRequired[int | None]
    rate_per_second: NotRequired[float | None]
    target: NotRequired[str | None]
    mapping: NotRequired[dict[str, str | None]]
    computed: NotRequired[dict[str, str]]
    key_columns: NotRequired[list[str]]
    count: NotRequired[int | None]
    seed: NotRequired[str | None]
    now: NotRequired[str | None]
    offset: NotRequired[int]
    locale: NotRequired[str | None]
    overrides: NotRequired[dict[str, Any]]
    rows: NotRequired[dict[str, int]]


class PushOut(TypedDict):
    """Rows sent to a connection, or to be sent."""

    id: str
    kind: str
    of_id: str | None
    status: str
    counts: Counts
    connection_id: str | None
    endpoint_id: str | None
    template_id: str | None
    template_version: int | None
    dataset_id: str | None
    dataset_version: int | None
    target: str
    mode: str
    tables: list[PushTable]
    seed: str
    now: str | None
    offset: int
    attempt: int
    progress: list[list[float]]
    pins: ExportPins
    request: dict[str, Any]
    leaks: list[LeakReport] | None
    error: dict[str, Any] | None
    project_id: str
    team_id: str
    created_by: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None
    cancel_requested_at: str | None


class PushTable(TypedDict):
    """One table of a push. `from_parent` names columns that take the key of a row of another table of the push, by"""

    name: str
    template_id: str | None
    template_version: int | None
    target: str
    count: int
    offset: int
    mode: str
    key_columns: list[str]
    columns: list[PushColumn]
    from_parent: dict[str, int]
    create: bool


class RateOut(TypedDict):
    """A limit and what is used of it."""

    limit: int
    used: int
    window_seconds: int


class ReadyOut(TypedDict):
    """`sandbox`: how the runners keep programs apart: bubblewrap, landlock, plain or none, in one text where they"""

    status: str
    database: bool
    redis: bool
    storage: bool
    worker: bool
    runner: bool
    sandbox: str


class ReferencePin(TypedDict):
    """A template that relations reach: which version of it, and how many rows they reckon with."""

    template_id: str
    version: int
    rows: int


class RefreshedOut(TypedDict):
    """How many answers are not used any more."""

    forgotten: int


class RerunIn(TypedDict):
    """How to run it again: which version, with which parameters (none: those of the run)."""

    version: NotRequired[Literal["same", "newest"]]
    params: NotRequired[dict[str, str] | None]
    wait: NotRequired[Literal[True, False, "true", "false"]]


class RetryInput(TypedDict):
    """Rows of a push that did not arrive, sent once more; a mapping and overrides may repair them."""

    states: NotRequired[list[Literal["failed", "unknown", "pending"]]]
    rows: NotRequired[list[int] | None]
    table: NotRequired[str | None]
    mapping: NotRequired[dict[str, str | None]]
    computed: NotRequired[dict[str, str]]
    overrides: NotRequired[dict[str, Any]]
    on_error: NotRequired[Literal["continue", "stop"]]
    confirm: NotRequired[str | None]


class RowOut(TypedDict):
    """What became of one row. `values` only where they were asked for."""

    table: str
    row: int
    state: str
    attempts: int
    status_code: int | None
    code: str
    native: str
    column: str | None
    message: str
    key: dict[str, Any] | None
    ms: int | None
    values: NotRequired[dict[str, Any] | None]


class RunIn(TypedDict):
    """How to run a scenario. `params` become environment variables of its program. `wait`: answer when it has ended, or"""

    params: NotRequired[dict[str, str]]
    wait: NotRequired[Literal[True, False, "true", "false"]]


class RunOut(TypedDict):
    """A run. `error` has a code of docs/reference/runs.md; `usage` are [seconds, bytes of memory, processor time in"""

    id: str
    run_id: str
    scenario_id: str
    scenario_version: int
    of_id: str | None
    status: str
    params: dict[str, str]
    trigger: str
    exit_code: int | None
    error: dict[str, Any] | None
    created_at: str
    started_at: str | None
    finished_at: str | None
    cancel_requested_at: str | None
    duration_ms: int | None
    max_rss_bytes: int | None
    cpu_ms: int | None
    rows_generated: int
    line_count: int
    log_bytes: int
    usage: list[list[float]]
    outputs: list[OutputFile]
    timeout_seconds: int
    network: str
    project_id: str
    team_id: str
    created_by: str | None


ScenarioDiffOut = TypedDict(
    "ScenarioDiffOut",
    {
        "scenario_id": "str",
        "from": "int",
        "to": "int",
        "scenario": "dict[str, Any]",
        "requirements": "dict[str, list[str]]",
        "packages": "dict[str, dict[str, Any]]",
        "code": "str",
    },
)
"""What changed from one version to another; `code` in unified form."""


class ScenarioInput(TypedDict):
    """A new scenario."""

    description: NotRequired[str]
    timeout_seconds: NotRequired[int]
    env: NotRequired[dict[str, str]]
    secrets: NotRequired[list[str]]
    writable_secrets: NotRequired[list[str]]
    network: NotRequired[Literal["full", "api", "none"]]
    schedule: NotRequired[ScheduleInput | None]
    name: str
    code: str
