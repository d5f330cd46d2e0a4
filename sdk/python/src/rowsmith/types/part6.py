"""Shapes of the API from StorageOut to WebhookIn, made from its OpenAPI document: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired

    from rowsmith.types.part1 import ColumnReport, CsvOptions, DatasetOut
    from rowsmith.types.part2 import EndpointOut
    from rowsmith.types.part3 import ExportsUsedOut, FilesUsedOut, Invalid
    from rowsmith.types.part4 import PurgedOut, RateOut
    from rowsmith.types.part5 import (
        ReferencePin,
        ShareOut,
        SourceSpec,
        SqliteUsedOut,
        SqlOptions,
        StageOut,
        StepOut,
    )


class StorageOut(TypedDict):
    """How much the workspace stores, and how much it may store."""

    files: FilesUsedOut
    sqlite: SqliteUsedOut
    exports: ExportsUsedOut


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
    now: NotRequired[str | Literal["present"] | None]
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


class TrashedOut(TypedDict):
    """Something deleted. It is gone for good at `gone_at`; `restorable`: the caller may have it back until then."""

    type: str
    id: str
    name: str
    project_id: str | None
    deleted_at: str
    deleted_by: str | None
    deleted_by_name: str | None
    gone_at: str
    days_left: int
    restorable: bool


class TryOut(TypedDict):
    """One attempt at a delivery."""

    at: str
    response_status: int | None
    ms: int | None
    reason: str


class UndoInput(TypedDict):
    """Rows of a push, deleted again."""

    confirm: NotRequired[str | None]


class UploadedOut(TypedDict):
    """An uploaded file. `purged` are the deleted files that were removed for good to make room for it."""

    id: str
    name: str
    size: int
    content_type: str
    sha256: str
    run_id: str | None
    project_id: str | None
    team_id: str | None
    download_url: str
    created_by: str | None
    created_at: str
    updated_at: str
    deleted_at: str | None
    purged: list[PurgedOut]


class UsageHistoryOut(TypedDict):
    """What was used. Rows are those taken of the hour less those given back; requests those that were let in."""

    by: str | None
    step: Literal["hour", "day"]
    start: str
    end: str
    rows: int
    requests: int
    steps: list[StepOut]
    shares: list[ShareOut]


class UsageOut(TypedDict):
    """The limits, what is used of them just now, and what was used before."""

    plan: str
    requests: RateOut
    rows: RateOut
    rows_per_generation: int
    near: list[Literal["requests", "rows"]]
    storage: StorageOut
    history: UsageHistoryOut


class UseOut(TypedDict):
    """One object that uses another, and how. What `blocks` must be gone before that other can be deleted. `id` and"""

    type: str
    id: str | None
    name: str | None
    how: str
    blocks: bool


class UsesOut(TypedDict):
    """What uses an object."""

    items: list[UseOut]
    total: int
    blocked: bool


class VerificationOut(TypedDict):
    """How a verification went: `verified` or `failed`, stage by stage."""

    status: str
    stages: list[StageOut]
    response: dict[str, Any] | None
    checked_at: str


class WaitingOut(TypedDict):
    """The target cannot be reached or answers no request: since when, how often it was tried, when it is tried next."""

    since: str
    tries: int
    reason: str
    message: str
    next_try_at: str
    next_try_in_seconds: int


class WarningOut(TypedDict):
    """What will surprise, and is no reason to refuse."""

    path: str
    code: str
    message: str
    hint: NotRequired[str | None]
    position: NotRequired[int | None]


class WebhookIn(TypedDict):
    """A new webhook. `events`: names such as `push.failed`, all of a kind (`push.*`), or `*`. `scope` workspace: of"""

    url: str
    events: list[
        Literal[
            "*",
            "export.*",
            "push.*",
            "run.*",
            "export.completed",
            "export.failed",
            "export.cancelled",
            "push.completed",
            "push.failed",
            "push.cancelled",
            "run.completed",
            "run.failed",
            "run.cancelled",
            "run.timed_out",
            "limit.warning",
        ]
    ]
    description: NotRequired[str]
    scope: NotRequired[Literal["project", "workspace"]]
