"""Shapes of the API from AgainIn to DatasetPushInput, made from its OpenAPI document: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired

    from rowsmith.types.part2 import DatasetTable, DatasetTableOut
    from rowsmith.types.part3 import FieldTypeOut, FunctionOut, Masking
    from rowsmith.types.part5 import ScheduleInput, SqlScriptOptions
    from rowsmith.types.part6 import TablePreview, TemplateOut, VerificationOut, WarningOut


class AgainIn(TypedDict):
    """A schema beside a template. `table`: which one of several; `accept`: the columns that are taken over, by their"""

    format: NotRequired[
        Literal[
            "auto",
            "csv",
            "json",
            "ndjson",
            "xlsx",
            "sql",
            "json_schema",
            "openapi",
            "avro",
            "protobuf",
            "mockaroo",
        ]
    ]
    content: NotRequired[str | None]
    file: NotRequired[str | None]
    name: NotRequired[str | None]
    table: NotRequired[str | None]
    accept: NotRequired[list[str] | None]


class AgainOut(TypedDict):
    """The template, how the schema differs from it, and which columns were taken over (null: none were asked for)."""

    template: TemplateOut
    table: str
    format: str
    columns: list[ColumnChange]
    report: list[ColumnReport]
    accepted: list[str] | None


class ApiKeyIn(TypedDict):
    """A new key. `scopes` left out: all that the maker's role allows. `project_id` left out: the present one."""

    name: str
    scopes: NotRequired[list[Literal["read", "write", "generate", "push", "run", "secrets", "admin"]] | None]
    expires_at: NotRequired[str | None]
    project_id: NotRequired[str | None]


class ApiKeyOut(TypedDict):
    """A key without its secret. `prefix` is what can be shown of it; `last_used_address` is where the last call came"""

    id: str
    name: str
    prefix: str
    project_id: str
    scopes: list[str] | None
    api_version: str
    created_by: str
    created_at: str
    expires_at: str | None
    last_used_at: str | None
    last_used_address: str | None
    unused: bool
    revoked_at: str | None


class AuditOut(TypedDict):
    """One action."""

    id: str
    at: str
    action: str
    object_type: str
    object_id: str
    project_id: str | None
    user_id: str | None
    key_id: str | None
    address: str
    request_id: str
    rows: int | None
    details: dict[str, Any]


class BadCell(TypedDict):
    """A cell that is bad on purpose: its row, counted from 1, field, kind, and the good value behind it."""

    row: int
    field: str
    kind: str
    good: Any


class BadRowsOut(TypedDict):
    """What became of the rows of a push that were bad on purpose: `bad` of those that have their end, which the target"""

    bad: int
    refused: int
    taken: int
    unknown: int
    good_refused: int


class CatalogueOut(TypedDict):
    """The field types, and beside them the functions of formulas that fit `q`."""

    items: list[FieldTypeOut]
    next_cursor: str | None
    total: int
    functions: list[FunctionOut]


class CheckInput(TypedDict):
    """A program that is not saved."""

    code: str
    resolve: NotRequired[bool]


class CheckOut(TypedDict):
    """What saving a program would say. Faults would keep it from being saved, warnings would not."""

    requirements: list[str]
    packages: dict[str, str] | None
    faults: list[WarningOut]
    warnings: list[WarningOut]


class ClassifiedOut(TypedDict):
    """One column. `kind`: of what it tells, null where nothing shows a person. `confidence`: 0 to 1, in the kind, or in"""

    name: str
    kind: str | None
    sensitive: bool
    confidence: float
    reason: str
    type: str | None
    masking: Masking | None


class ClassifyIn(TypedDict):
    """A sample: `rows`, or a workspace `file` (`sheet` of a workbook), or the `table` of a connection. Of a file the"""

    rows: NotRequired[list[dict[str, Any]] | None]
    file: NotRequired[str | None]
    sheet: NotRequired[str | None]
    connection_id: NotRequired[str | None]
    table: NotRequired[str | None]


class ClassifyOut(TypedDict):
    """The columns, in the sample's order."""

    columns: list[ClassifiedOut]


class CodeInput(TypedDict):
    """A scenario's code, and whatever else of it is to change; what is left out stays."""

    description: NotRequired[str]
    timeout_seconds: NotRequired[int]
    env: NotRequired[dict[str, str]]
    secrets: NotRequired[list[str]]
    writable_secrets: NotRequired[list[str]]
    network: NotRequired[Literal["full", "api", "none"]]
    schedule: NotRequired[ScheduleInput | None]
    code: str
    name: NotRequired[str]


ColumnChange = TypedDict(
    "ColumnChange",
    {
        "column": "str",
        "change": "Literal['added', 'removed', 'changed']",
        "from": "dict[str, Any] | None",
        "to": "dict[str, Any] | None",
        "state": "Literal['green', 'yellow', 'red']",
        "reason": "str",
    },
)
"""A column that differs: the template's field, and the one that the schema leads to now."""


class ColumnReport(TypedDict):
    """What one column came to. `state`: green, every value fits; yellow, look at it; red, the column needs a value"""

    table: str
    column: str
    type: str | None
    state: Literal["green", "yellow", "red"]
    reason: str


class ConnectionChange(TypedDict):
    """What changes. `settings` are given whole; a secret that comes back as `********` is kept."""

    name: NotRequired[str | None]
    settings: NotRequired[dict[str, Any] | None]
    connection_string: NotRequired[str | None]
    environment: NotRequired[Literal["dev", "test", "prod"] | None]
    read_only: NotRequired[bool | None]


class ConnectionIn(TypedDict):
    """A new connection. `type` may be called `connection_type`, and a connection string may stand beside it."""

    name: str
    type: NotRequired[str | None]
    connection_type: NotRequired[str | None]
    settings: NotRequired[dict[str, Any]]
    connection_string: NotRequired[str | None]
    environment: NotRequired[Literal["dev", "test", "prod"]]
    read_only: NotRequired[bool]
    project_id: NotRequired[str | None]
    team_id: NotRequired[str | None]


class ConnectionOut(TypedDict):
    """A connection. Secret parts of its settings are `********`."""

    id: str
    name: str
    type: str
    connection_type: str
    settings: dict[str, Any]
    environment: str
    read_only: bool
    verification: VerificationOut | None
    metadata_at: str | None
    metadata_document: bool
    project_id: str
    team_id: str
    created_by: str | None
    created_at: str
    updated_at: str
    deleted_at: str | None


class Counts(TypedDict):
    """Rows of a push by what became of them; the total is the sum of the others. `undone` were delivered, and taken"""

    total: int
    delivered: int
    failed: int
    unknown: int
    pending: int
    undone: int


class CsvOptions(TypedDict):
    """``quote``: ``minimal`` quotes what must be, ``all`` every value that is not NULL. ``escape_formulas`` puts a"""

    delimiter: NotRequired[Literal[",", ";", "\t", "|", "^", "~"]]
    header: NotRequired[bool]
    quote: NotRequired[Literal["minimal", "all"]]
    escape_formulas: NotRequired[bool]


DatasetDiffOut = TypedDict(
    "DatasetDiffOut",
    {
        "dataset_id": "str",
        "from": "int",
        "to": "int",
        "dataset": "dict[str, Any]",
        "templates": "dict[str, list[dict[str, Any]]]",
        "order": "dict[str, list[str]] | None",
    },
)
"""What changed from one version to another."""


class DatasetExportInput(TypedDict):
    """All tables of a dataset in one file: XLSX one workbook, SQL one script, every other format a ZIP archive."""

    seed: NotRequired[str | None]
    now: NotRequired[str | Literal["present"] | None]
    format: NotRequired[Literal["json", "csv", "sql", "xlsx", "ndjson", "parquet"]]
    csv: NotRequired[CsvOptions | None]
    sql: NotRequired[SqlScriptOptions | None]
    arrays: NotRequired[Literal["json", "columns"] | None]


class DatasetIn(TypedDict):
    """A new dataset."""

    name: str
    templates: list[DatasetTable]
    description: NotRequired[str]
    seed: NotRequired[str | None]
    anchor: NotRequired[str | None]


class DatasetOut(TypedDict):
    """A dataset as of one version."""

    id: str
    name: str
    description: str
    templates: list[DatasetTableOut]
    seed: str
    version: int
    anchor: str | None
    project_id: str
    team_id: str
    created_by: str | None
    created_at: str
    updated_at: str
    deleted_at: str | None
    warnings: list[dict[str, str]]


class DatasetPatch(TypedDict):
    """What of a dataset can change; what is left out stays."""

    name: NotRequired[str]
    templates: NotRequired[list[DatasetTable]]
    description: NotRequired[str]
    seed: NotRequired[str | None]
    anchor: NotRequired[str | None]


class DatasetPreviewInput(TypedDict):
    """Three rows of each table."""

    seed: NotRequired[str | None]
    now: NotRequired[str | Literal["present"] | None]


class DatasetPreviewOut(TypedDict):
    """The first three rows of each table, and the seed that makes them again."""

    tables: list[TablePreview]
    seed: str
    warnings: list[dict[str, str]]


class DatasetPushInput(TypedDict):
    """All tables of a dataset, parents before their children."""

    connection_id: NotRequired[str | None]
    endpoint_id: NotRequired[str | None]
    mode: NotRequired[Literal["insert", "upsert", "update"]]
    on_error: NotRequired[Literal["continue", "stop", "stop_when_all_fail"]]
    target_wait_seconds: NotRequired[int | None]
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
    targets: NotRequired[dict[str, str | None]]
    mappings: NotRequired[dict[str, dict[str, str | None]]]
    computed: NotRequired[dict[str, dict[str, str]]]
    key_columns: NotRequired[dict[str, list[str]]]
    seed: NotRequired[str | None]
    now: NotRequired[str | Literal["present"] | None]
