"""Shapes of the API from ScenarioOut to VerificationOut, made from its OpenAPI document: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired

    from rowsmith.types.part1 import ColumnReport, CsvOptions, DatasetOut
    from rowsmith.types.part2 import EndpointOut
    from rowsmith.types.part3 import Invalid, LockOut
    from rowsmith.types.part4 import RateOut, ReferencePin
    from rowsmith.types.part6 import WarningOut


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


class SecretIn(TypedDict):
    """A secret's new value."""

    value: str


class SecretOut(TypedDict):
    """A secret, without its value."""

    id: str
    name: str
    created_by: str | None
    created_at: str
    updated_at: str


class SettingsIn(TypedDict):
    """Switches of a workspace."""

    redact_run_logs: NotRequired[bool | None]


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


class StageOut(TypedDict):
    """How one stage of a verification went."""

    name: str
    ok: bool
    code: str
    message: str
    hint: str
    ms: int


class SubsetIn(TypedDict):
    """From which rows of which table, and how far."""

    table: str
    where: NotRequired[str]
    limit: NotRequired[int | None]
    children: NotRequired[list[str] | None]
    depth: NotRequired[int]
    name: NotRequired[str | None]


class SubsetOut(TypedDict):
    """The dataset that was made, its templates, and what each table holds."""

    dataset: DatasetOut
    templates: list[TemplateOut]
    report: list[SubsetTable]


class SubsetTable(TypedDict):
    """What one table holds of the subset, over which ways, and which of its columns are masked."""

    table: str
    template_id: str
    rows: int
    ways: list[str]
    sensitive: list[str]


class SuggestIn(TypedDict):
    """A field, and what is known of it. `sample`: some of its values, which a model is shown where one is asked."""

    name: str
    description: NotRequired[str]
    sample: NotRequired[list[Any]]
    connection_id: NotRequired[str | None]


class SuggestOut(TypedDict):
    """Types, the likeliest first; at least one."""

    suggestions: list[Suggestion]


class Suggestion(TypedDict):
    """A type with options to begin with. `source` says what it follows from."""

    type: str
    options: dict[str, Any]
    reason: str
    source: Literal["name", "sample", "ai"]


class TablePins(TypedDict):
    """What one table of a dataset's file was made with."""

    name: str
    template_id: str
    template_version: int
    rows: int
    now: str
    vocabulary: str
    locale: str | None
    references: list[ReferencePin]


class TablePreview(TypedDict):
    """The first rows of one table, and how many it has."""

    name: str
    template_id: str
    rows: list[dict[str, Any]]
    count: int


class TablesIn(TypedDict):
    """Which tables, by the names that the connection's metadata has."""

    entities: list[str]
    quantity: NotRequired[int]


class TablesOut(TypedDict):
    """The templates that were made, what each column came to, and for operations of an API their endpoints."""

    templates: list[TemplateOut]
    report: list[ColumnReport]
    endpoints: list[EndpointOut]


class TeamIn(TypedDict):
    """A team."""

    name: str


class TeamOut(TypedDict):
    """A team."""

    id: str
    name: str
    created_at: str
    updated_at: str
    deleted_at: str | None


class TemplateExportInput(TypedDict):
    """Rows of a template in a file that workers make."""

    count: NotRequired[int | None]
    format: NotRequired[Literal["json", "csv", "sql", "xlsx", "ndjson", "parquet"]]
    seed: NotRequired[str | None]
    overrides: NotRequired[dict[str, Any]]
    offset: NotRequired[int]
    locale: NotRequired[str | None]
    now: NotRequired[str | None]
    rows: NotRequired[dict[str, int]]
    csv: NotRequired[CsvOptions | None]
    sql: NotRequired[SqlOptions | None]
    arrays: NotRequired[Literal["json", "columns"] | None]
    part_rows: NotRequired[int | None]


class TemplateIn(TypedDict):
    """A new template."""

    name: str
    fields: list[dict[str, Any]]
    description: NotRequired[str]
    quantity: NotRequired[int]
    locale: NotRequired[str | None]
    anchor: NotRequired[str | None]
    source: NotRequired[SourceSpec | None]
    invalid: NotRequired[Invalid | None]


class TemplateOut(TypedDict):
    """A template as of one version."""

    id: str
    name: str
    description: str
    quantity: int
    fields: list[dict[str, Any]]
    version: int
    locale: str | None
    anchor: str | None
    source: dict[str, Any] | None
    invalid: dict[str, Any] | None
    project_id: str
    team_id: str
    created_by: str | None
    created_at: str
    updated_at: str
    deleted_at: str | None
    warnings: list[dict[str, str]]
    references: list[TemplateReference]


class TemplatePatch(TypedDict):
    """What of a template can change; what is left out stays."""

    name: NotRequired[str]
    fields: NotRequired[list[dict[str, Any]]]
    description: NotRequired[str]
    quantity: NotRequired[int]
    locale: NotRequired[str | None]
    anchor: NotRequired[str | None]
    source: NotRequired[SourceSpec | None]
    invalid: NotRequired[Invalid | None]


class TemplateReference(TypedDict):
    """A template that fields reach, directly or through others, as it was when the version was saved."""

    template_id: str
    version: int
    rows: int


class UndoInput(TypedDict):
    """Rows of a push, deleted again."""

    confirm: NotRequired[str | None]


class UsageOut(TypedDict):
    """What the workspace has used of its limits just now."""

    plan: str
    requests: RateOut
    rows: RateOut
    rows_per_generation: int


class VerificationOut(TypedDict):
    """How a verification went: `verified` or `failed`, stage by stage."""

    status: str
    stages: list[StageOut]
    response: dict[str, Any] | None
    checked_at: str
