"""Shapes of the API from ReadyOut to StepOut, made from its OpenAPI document: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired

    from rowsmith.types.part1 import ApiKeyOut
    from rowsmith.types.part3 import LockOut
    from rowsmith.types.part4 import OutputFile, QueueOut
    from rowsmith.types.part6 import WarningOut


class ReadyOut(TypedDict):
    """`sandbox`: how the runners keep programs apart: bubblewrap, landlock, plain or none, in one text where they"""

    status: str
    database: NotRequired[bool]
    redis: NotRequired[bool]
    storage: NotRequired[bool]
    worker: NotRequired[bool]
    runner: NotRequired[bool]
    sandbox: NotRequired[str]
    version: NotRequired[str]
    engine: NotRequired[int]
    parts: NotRequired[dict[str, ReadyPart]]
    queues: NotRequired[dict[str, QueueOut]]
    oldest_lease_seconds: NotRequired[float | None]


class ReadyPart(TypedDict):
    """One part. `state`: ok, missing, slow (no answer in time), behind (the database's schema is older than the"""

    state: str
    ms: int
    kind: NotRequired[str | None]
    version: NotRequired[str | None]
    revision: NotRequired[str | None]
    count: NotRequired[int | None]


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
    on_error: NotRequired[Literal["continue", "stop", "stop_when_all_fail"]]
    confirm: NotRequired[str | None]


class RevokedOut(TypedDict):
    """The keys that were revoked."""

    items: list[ApiKeyOut]
    total: int


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


class ScenarioOut(TypedDict):
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
    network: Literal["full", "api", "none"]
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


class ScenarioPatch(TypedDict):
    """What of a scenario can change; what is left out stays."""

    description: NotRequired[str]
    timeout_seconds: NotRequired[int]
    env: NotRequired[dict[str, str]]
    secrets: NotRequired[list[str]]
    writable_secrets: NotRequired[list[str]]
    network: NotRequired[Literal["full", "api", "none"]]
    schedule: NotRequired[ScheduleInput | None]
    name: NotRequired[str]
    code: NotRequired[str]


class ScheduleInput(TypedDict):
    """When a scenario runs by itself."""

    cron: str
    timezone: NotRequired[str]
    enabled: NotRequired[bool]
    params: NotRequired[dict[str, str]]


class ScheduleOut(TypedDict):
    """When a scenario runs by itself."""

    cron: str
    timezone: str
    enabled: bool
    params: dict[str, str]


class SealOut(TypedDict):
    """A seal: `hash` is what the next one goes on from; its entries are gone where `removed_at` says when."""

    number: int
    count: int
    first_id: str
    last_id: str
    last_at: str
    previous: str
    hash: str
    sealed_at: str
    removed_at: str | None


class SecretIn(TypedDict):
    """A secret's new value, and who may use it. What is left out stays as it is; a new secret needs a value."""

    value: NotRequired[str | None]
    allowed_hosts: NotRequired[list[str] | None]
    project_id: NotRequired[str | None]


class SecretOut(TypedDict):
    """A secret, without its value. `allowed_hosts`: the hosts that connections may send it to; null for any host."""

    id: str
    name: str
    allowed_hosts: list[str] | None
    project_id: str | None
    created_by: str | None
    created_at: str
    updated_at: str


class SessionOut(TypedDict):
    """One signed-in browser. `how` is how it came: password, link, invitation or oidc; `two_factor`: with a second"""

    id: str
    address: str
    user_agent: str
    how: str
    two_factor: bool
    created_at: str
    last_seen_at: str
    expires_at: str
    current: bool


class SettingsIn(TypedDict):
    """Switches of a workspace."""

    redact_run_logs: NotRequired[bool | None]
    require_two_factor: NotRequired[bool | None]
    audit_retention_days: NotRequired[int | None]


class ShareOut(TypedDict):
    """What one project, template, key or person used; `steps` are those in which it was anything. `id` is empty for"""

    id: str
    name: str
    rows: int
    requests: int
    steps: list[StepOut]


class SourceSpec(TypedDict):
    """Where the rows of a template come from: a file of the workspace, or a table or query of a connection."""

    file: NotRequired[str | None]
    sheet: NotRequired[str | None]
    connection_id: NotRequired[str | None]
    table: NotRequired[str | None]
    where: NotRequired[str | None]
    query: NotRequired[str | None]
    limit: NotRequired[int | None]


class SqlOptions(TypedDict):
    """``table`` may name a schema before a dot; without one it is made from the template's name."""

    table: NotRequired[str | None]
    dialect: NotRequired[Literal["ansi", "postgresql", "mysql", "mssql", "oracle", "db2"]]
    create_table: NotRequired[bool]
    rows_per_statement: NotRequired[int | None]


class SqlScriptOptions(TypedDict):
    """``table`` may name a schema before a dot; without one it is made from the template's name."""

    dialect: NotRequired[Literal["ansi", "postgresql", "mysql", "mssql", "oracle", "db2"]]
    create_table: NotRequired[bool]
    rows_per_statement: NotRequired[int | None]


class SqliteUsedOut(TypedDict):
    """The files of SQLite connections, their journals included."""

    limit_bytes: int
    used_bytes: int
    limit_files: int
    files: int


class StageOut(TypedDict):
    """How one stage of a verification went."""

    name: str
    ok: bool
    code: str
    message: str
    hint: str
    ms: int


class StepOut(TypedDict):
    """An hour or a day, by its beginning."""

    start: str
    rows: int
    requests: int
