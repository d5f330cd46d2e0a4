"""Inputs and outputs of the API, generated from its OpenAPI document: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired

__all__ = [
    "AgainIn",
    "AgainOut",
    "ApiKeyIn",
    "ApiKeyOut",
    "AuditOut",
    "BadCell",
    "BadRowsOut",
    "CatalogueOut",
    "CheckInput",
    "CheckOut",
    "ClassifiedOut",
    "ClassifyIn",
    "ClassifyOut",
    "CodeInput",
    "ColumnChange",
    "ColumnReport",
    "ConnectionChange",
    "ConnectionIn",
    "ConnectionOut",
    "Counts",
    "CsvOptions",
    "DatasetDiffOut",
    "DatasetExportInput",
    "DatasetIn",
    "DatasetOut",
    "DatasetPatch",
    "DatasetPreviewInput",
    "DatasetPreviewOut",
    "DatasetPushInput",
    "DatasetTable",
    "DatasetTableOut",
    "DeliveryOut",
    "DescribeIn",
    "DescribedField",
    "DescribedOut",
    "DiffOut",
    "DocumentOut",
    "DraftIn",
    "DraftPreviewIn",
    "DryRunOut",
    "DryTable",
    "EndedOut",
    "EndpointChange",
    "EndpointIn",
    "EndpointOut",
    "ExportDbInput",
    "ExportOut",
    "ExportPins",
    "ExportRestInput",
    "ExportsUsedOut",
    "FieldTypeOut",
    "FileOut",
    "FilesUsedOut",
    "FillInput",
    "FillOut",
    "FilledTable",
    "FunctionOut",
    "GenerateInput",
    "ImportIn",
    "ImportJobOut",
    "ImportOut",
    "ImportedTemplate",
    "Invalid",
    "InvitationIn",
    "InvitationOut",
    "JobScheduleIn",
    "JobScheduleOut",
    "JobSchedulePatch",
    "LeakColumn",
    "LeakReport",
    "LimitsIn",
    "LimitsOut",
    "Live",
    "LockOut",
    "ManifestOut",
    "Masking",
    "MaskingKeyOut",
    "MaskingKeysOut",
    "MeOut",
    "MemberIn",
    "MemberOut",
    "MemberPatch",
    "MisfitOut",
    "MoveIn",
    "MovedOut",
    "MovesOut",
    "NewApiKeyOut",
    "NewInvitationOut",
    "NewWebhookOut",
    "OutputFile",
    "PartOut",
    "PlanOut",
    "PlannedColumn",
    "PlannedField",
    "PlannedTable",
    "PreviewIn",
    "PreviewOut",
    "ProjectIn",
    "ProjectOut",
    "ProjectPatch",
    "PurgedOut",
    "PushColumn",
    "PushInput",
    "PushOut",
    "PushTable",
    "QueueOut",
    "RateOut",
    "ReadyOut",
    "ReadyPart",
    "ReferencePin",
    "RefreshedOut",
    "RerunIn",
    "RetryInput",
    "RevokedOut",
    "RowOut",
    "RunIn",
    "RunOut",
    "ScenarioDiffOut",
    "ScenarioInput",
    "ScenarioOut",
    "ScenarioPatch",
    "ScheduleInput",
    "ScheduleOut",
    "SealOut",
    "SecretIn",
    "SecretOut",
    "SessionOut",
    "SettingsIn",
    "ShareOut",
    "SkippedEntity",
    "SkippedTable",
    "SourceSpec",
    "SqlOptions",
    "SqlScriptOptions",
    "SqliteUsedOut",
    "StageOut",
    "StartedOut",
    "StepOut",
    "StorageOut",
    "SubsetIn",
    "SubsetOut",
    "SubsetTable",
    "SuggestIn",
    "SuggestOut",
    "Suggestion",
    "TablePins",
    "TablePreview",
    "TablesIn",
    "TablesOut",
    "TeamIn",
    "TeamOut",
    "TemplateExportInput",
    "TemplateIn",
    "TemplateOut",
    "TemplatePatch",
    "TemplateReference",
    "TrashedOut",
    "TryOut",
    "UndoInput",
    "UploadedOut",
    "UsageHistoryOut",
    "UsageOut",
    "UseOut",
    "UsesOut",
    "VerificationOut",
    "WaitingOut",
    "WarningOut",
    "WebhookIn",
    "WebhookOut",
    "WebhookPatch",
    "WholeColumn",
    "WorkspaceDeletion",
    "WorkspaceOut",
    "WorkspacePatch",
]


class AgainIn(TypedDict):
    """A schema to compare with a template."""

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
    """The template, its differences from the schema, and the applied columns (null: none were requested)."""

    template: TemplateOut
    table: str
    format: str
    columns: list[ColumnChange]
    report: list[ColumnReport]
    accepted: list[str] | None


class ApiKeyIn(TypedDict):
    """A new key."""

    name: str
    scopes: NotRequired[list[Literal["read", "write", "generate", "push", "run", "secrets", "admin"]] | None]
    expires_at: NotRequired[str | None]
    project_id: NotRequired[str | None]


class ApiKeyOut(TypedDict):
    """A key without its secret."""

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
    """An audit entry."""

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
    """An injected invalid cell: its row, counted from 1, field, kind, and the original value."""

    row: int
    field: str
    kind: str
    good: Any


class BadRowsOut(TypedDict):
    """The outcome of injected invalid rows."""

    bad: int
    refused: int
    taken: int
    unknown: int
    good_refused: int


class CatalogueOut(TypedDict):
    """The field types, and the functions of formulas that match `q`."""

    items: list[FieldTypeOut]
    next_cursor: str | None
    total: int
    functions: list[FunctionOut]


class CheckInput(TypedDict):
    """An unsaved program."""

    code: str
    resolve: NotRequired[bool]


class CheckOut(TypedDict):
    """The result of checking a program. Errors prevent saving, warnings do not."""

    requirements: list[str]
    packages: dict[str, str] | None
    faults: list[WarningOut]
    warnings: list[WarningOut]


class ClassifiedOut(TypedDict):
    """One column."""

    name: str
    kind: str | None
    sensitive: bool
    confidence: float
    reason: str
    type: str | None
    masking: Masking | None
    options: dict[str, Any] | None


class ClassifyIn(TypedDict):
    """A sample: `rows`, a workspace `file` (`sheet` of a workbook), or the `table` of a connection."""

    rows: NotRequired[list[dict[str, Any]] | None]
    file: NotRequired[str | None]
    sheet: NotRequired[str | None]
    connection_id: NotRequired[str | None]
    table: NotRequired[str | None]


class ClassifyOut(TypedDict):
    """The columns, in the sample's order."""

    columns: list[ClassifiedOut]


class CodeInput(TypedDict):
    """A scenario's code, and optional further changes; keys that are left out keep their values."""

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
"""A column that differs: the template's field, and the field that results from the schema."""


class ColumnReport(TypedDict):
    """The result for one column."""

    table: str
    column: str
    type: str | None
    state: Literal["green", "yellow", "red"]
    confidence: NotRequired[Literal["high", "check", "unknown"]]
    reason: str


class ConnectionChange(TypedDict):
    """The changes. `settings` must be complete; a secret sent back as `********` is kept."""

    name: NotRequired[str | None]
    settings: NotRequired[dict[str, Any] | None]
    connection_string: NotRequired[str | None]
    environment: NotRequired[Literal["dev", "test", "prod"] | None]
    read_only: NotRequired[bool | None]


class ConnectionIn(TypedDict):
    """A new connection."""

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
    """Rows of a push by outcome; the total is the sum of the others."""

    total: int
    delivered: int
    failed: int
    unknown: int
    pending: int
    undone: int


class CsvOptions(TypedDict):
    """``quote``: ``minimal`` quotes only values that need it, ``all`` every value that is not NULL."""

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
"""The changes from one version to another."""


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
    """A version of a dataset."""

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
    """The properties of a dataset that can be changed; keys that are left out keep their values."""

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
    """The first three rows of each table, and the seed that reproduces them."""

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
    skip_faulty_tables: NotRequired[bool]


class DatasetTable(TypedDict):
    """One table of a dataset: a template and its number of rows."""

    template_id: str
    count: NotRequired[int | None]
    name: NotRequired[str | None]


class DatasetTableOut(TypedDict):
    """One table of a dataset, and the version of its template."""

    template_id: str
    count: int | None
    name: str | None
    version: int


class DeliveryOut(TypedDict):
    """A delivery of an event to a webhook."""

    id: str
    webhook_id: str
    event: str
    object_id: str | None
    status: Literal["pending", "delivered", "failed"]
    attempts: int
    response_status: int | None
    response_head: str
    ms: int | None
    reason: str
    tries: list[TryOut]
    next_attempt_at: str | None
    created_at: str
    ended_at: str | None


class DescribeIn(TypedDict):
    """A description of the rows in any words."""

    description: str
    connection_id: NotRequired[str | None]
    quantity: NotRequired[int]
    save: NotRequired[bool]


class DescribedField(TypedDict):
    """The result for one field."""

    field: str
    type: str
    state: Literal["green", "yellow", "red"]
    reason: str


class DescribedOut(TypedDict):
    """A draft of a template, and the template if it was saved."""

    name: str
    quantity: int
    fields: list[dict[str, Any]]
    report: list[DescribedField]
    template: TemplateOut | None


DiffOut = TypedDict(
    "DiffOut",
    {
        "template_id": "str",
        "from": "int",
        "to": "int",
        "template": "dict[str, Any]",
        "fields": "dict[str, list[dict[str, Any]]]",
        "preview": "dict[str, Any] | None",
    },
)
"""The changes from one version to another."""


class DocumentOut(TypedDict):
    """The imported document."""

    bytes: int
    sha256: str
    entities: int


class DraftIn(TypedDict):
    """Rows of an unsaved template: its definition, in addition to the keys of generate."""

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
    name: NotRequired[str]
    description: NotRequired[str]
    fields: list[dict[str, Any]]
    quantity: NotRequired[int | None]
    anchor: NotRequired[str | None]
    source: NotRequired[SourceSpec | None]
    invalid: NotRequired[Invalid | None]


class DraftPreviewIn(TypedDict):
    """Three rows of an unsaved template: its definition, in addition to the keys of preview."""

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
    name: NotRequired[str]
    description: NotRequired[str]
    fields: list[dict[str, Any]]
    quantity: NotRequired[int | None]
    anchor: NotRequired[str | None]
    source: NotRequired[SourceSpec | None]
    invalid: NotRequired[Invalid | None]
    fetch: NotRequired[bool]


class DryRunOut(TypedDict):
    """What would be sent: the statements or HTTP requests of three rows per table, and values that do not fit."""

    statements: NotRequired[list[str] | None]
    requests: NotRequired[list[str] | None]
    misfits: list[MisfitOut]
    checked_rows: int
    tables: list[DryTable]


class DryTable(TypedDict):
    """The statements for the first rows of a table, or their HTTP requests."""

    name: str
    target: str
    statements: NotRequired[list[str] | None]
    requests: NotRequired[list[str] | None]


class EndedOut(TypedDict):
    """Number of ended sessions."""

    ended: int


class EndpointChange(TypedDict):
    """The definition of an endpoint. `{{field}}` in url, path, headers, query and body is a value of the row."""

    name: NotRequired[str | None]
    method: NotRequired[Literal["POST", "PUT", "PATCH", "DELETE", "GET"] | None]
    url: NotRequired[str | None]
    connection_id: NotRequired[str | None]
    path: NotRequired[str | None]
    headers: NotRequired[dict[str, Any] | None]
    header_encoding: NotRequired[str | None]
    query_params: NotRequired[dict[str, Any] | None]
    body: NotRequired[dict[str, Any] | list[Any] | None]
    auth: NotRequired[dict[str, Any] | None]
    environment: NotRequired[Literal["dev", "test", "prod"] | None]
    push_mode: NotRequired[str | None]
    wrapper_key: NotRequired[str | None]
    batch_size: NotRequired[int | None]
    retry: NotRequired[dict[str, Any] | None]
    parallel: NotRequired[int | None]
    rate_per_second: NotRequired[float | None]
    capture: NotRequired[dict[str, Any] | None]
    delete_path: NotRequired[str | None]
    idempotent: NotRequired[bool | None]


class EndpointIn(TypedDict):
    """A new endpoint."""

    name: str
    method: NotRequired[Literal["POST", "PUT", "PATCH", "DELETE", "GET"] | None]
    url: NotRequired[str | None]
    connection_id: NotRequired[str | None]
    path: NotRequired[str | None]
    headers: NotRequired[dict[str, Any] | None]
    header_encoding: NotRequired[str | None]
    query_params: NotRequired[dict[str, Any] | None]
    body: NotRequired[dict[str, Any] | list[Any] | None]
    auth: NotRequired[dict[str, Any] | None]
    environment: NotRequired[Literal["dev", "test", "prod"] | None]
    push_mode: NotRequired[str | None]
    wrapper_key: NotRequired[str | None]
    batch_size: NotRequired[int | None]
    retry: NotRequired[dict[str, Any] | None]
    parallel: NotRequired[int | None]
    rate_per_second: NotRequired[float | None]
    capture: NotRequired[dict[str, Any] | None]
    delete_path: NotRequired[str | None]
    idempotent: NotRequired[bool | None]


class EndpointOut(TypedDict):
    """An endpoint. Secret parts are `********`."""

    id: str
    name: str
    method: str
    url: str | None
    connection_id: str | None
    path: str | None
    headers: dict[str, Any]
    header_encoding: Literal["none", "rfc8187", "percent"]
    query_params: dict[str, Any]
    body: Any
    auth: dict[str, Any] | None
    push_mode: str | None
    wrapper_key: str | None
    batch_size: int | None
    retry: dict[str, Any] | None
    parallel: int | None
    rate_per_second: float | None
    capture: dict[str, Any] | None
    delete_path: str | None
    idempotent: bool | None
    environment: str
    project_id: str
    team_id: str
    created_by: str | None
    created_at: str
    updated_at: str
    deleted_at: str | None


class ExportDbInput(TypedDict):
    """Rows for a table of a database."""

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
    target: NotRequired[str | None]
    mapping: NotRequired[dict[str, str | None]]
    computed: NotRequired[dict[str, str]]
    key_columns: NotRequired[list[str]]
    rows: NotRequired[list[dict[str, Any]] | None]
    template_id: NotRequired[str | None]
    count: NotRequired[int | None]
    seed: NotRequired[str | None]
    now: NotRequired[str | Literal["present"] | None]
    offset: NotRequired[int]
    locale: NotRequired[str | None]
    overrides: NotRequired[dict[str, Any]]
    table: NotRequired[str | None]


class ExportOut(TypedDict):
    """An export: one file, or `parts` files of `part_rows` rows each."""

    id: str
    status: str
    template_id: str | None
    template_version: int | None
    dataset_id: str | None
    dataset_version: int | None
    format: str
    count: int
    offset: int
    rows_done: int
    bytes: int | None
    sha256: str | None
    file_name: str | None
    download_url: str | None
    manifest_url: str
    answers_url: str | None
    part_rows: int | None
    parts: int | None
    parts_done: int | None
    of_id: str | None
    attempt: int
    seed: str
    now: str | None
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


class ExportPins(TypedDict):
    """The values with which a file was generated. The same values and the same request produce the same bytes."""

    engine: int
    seed: str
    now: str | None
    vocabulary: str | None
    template_version: int | None
    dataset_version: int | None
    locale: str | None
    references: list[ReferencePin]
    tables: list[TablePins]


class ExportRestInput(TypedDict):
    """Rows for an endpoint or an HTTP connection."""

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
    target: NotRequired[str | None]
    mapping: NotRequired[dict[str, str | None]]
    computed: NotRequired[dict[str, str]]
    key_columns: NotRequired[list[str]]
    rows: NotRequired[list[dict[str, Any]] | None]
    template_id: NotRequired[str | None]
    count: NotRequired[int | None]
    seed: NotRequired[str | None]
    now: NotRequired[str | Literal["present"] | None]
    offset: NotRequired[int]
    locale: NotRequired[str | None]
    overrides: NotRequired[dict[str, Any]]


class ExportsUsedOut(TypedDict):
    """The files of exports, including those in progress. The oldest are removed when a new one needs space."""

    limit_bytes: int
    used_bytes: int


class FieldTypeOut(TypedDict):
    """A field type. `capacity`: number of distinct values with default options; null if it is unlimited or unknown."""

    name: str
    label: str
    category: str
    description: str
    aliases: list[str]
    options_schema: dict[str, Any]
    example: Any
    capacity: int | None
    lacks: str | None


class FileOut(TypedDict):
    """A workspace file. Without a `project_id` it is shared with the whole workspace."""

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


class FilesUsedOut(TypedDict):
    """The file quota."""

    limit_bytes: int
    used_bytes: int
    trash_bytes: int
    uploading_bytes: int
    compat_bytes: int
    files: int
    trash_files: int


class FillInput(TypedDict):
    """Which tables to fill, and with how many rows."""

    tables: NotRequired[list[str] | None]
    rows: NotRequired[int]
    row_counts: NotRequired[Literal["equal", "proportional", "existing"]]
    existing: NotRequired[Literal["add", "use"]]
    seed: NotRequired[str | None]
    on_error: NotRequired[Literal["continue", "stop", "stop_when_all_fail"]]
    target_wait_seconds: NotRequired[int | None]
    confirm: NotRequired[str | None]
    dry_run: NotRequired[bool]


class FillOut(TypedDict):
    """A fill: its dataset, its tables, and the push that sends their rows (a dry run has a plan instead)."""

    dataset_id: str
    seed: str
    tables: list[FilledTable]
    skipped: list[SkippedEntity]
    report: list[ColumnReport]
    push: PushOut | None
    plan: PlanOut | None


class FilledTable(TypedDict):
    """A table that is filled: its template, its number of rows, and why that is fewer than requested, or ""."""

    table: str
    template_id: str
    rows: int
    note: str


class FunctionOut(TypedDict):
    """A function of the formula language. `result` is the result of `example` in row 1."""

    name: str
    family: str
    signature: str
    description: str
    example: str
    result: Any
    aliases: list[str]


class GenerateInput(TypedDict):
    """Rows of a template, in a format."""

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


class ImportIn(TypedDict):
    """What to create templates from. With `save` false nothing is saved; `quantity` is that of each template."""

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
    save: NotRequired[bool]
    wait: NotRequired[bool]
    import_id: NotRequired[str | None]
    types: NotRequired[list[str]]
    quantity: NotRequired[int]


class ImportJobOut(TypedDict):
    """An import that a worker does."""

    id: str
    status: Literal["queued", "running", "completed", "failed", "cancelled", "timed_out"]
    name: str
    save: bool
    tables: int
    tables_done: int
    error: dict[str, Any] | None
    created_at: str
    started_at: str | None
    finished_at: str | None
    result: ImportOut | None


class ImportOut(TypedDict):
    """The templates, the result for each column, and the dataset if there are several."""

    format: str
    templates: list[ImportedTemplate]
    dataset: DatasetOut | None
    report: list[ColumnReport]


class ImportedTemplate(TypedDict):
    """A template of an import; without an ID if it was not saved."""

    id: str | None
    name: str
    quantity: int
    version: int | None
    fields: list[dict[str, Any]]


class Invalid(TypedDict):
    """Invalid data: on a field a share of its cells, on a template a share of its rows, each with one invalid cell."""

    rate: float | str
    kinds: NotRequired[
        list[
            Literal[
                "wrong_type",
                "too_long",
                "bad_checksum",
                "out_of_range",
                "bad_format",
                "missing",
                "duplicate",
                "orphan",
                "injection",
                "unicode_edge",
            ]
        ]
        | None
    ]


class InvitationIn(TypedDict):
    """The user to invite to the workspace or to a team."""

    email: str
    role: NotRequired[Literal["viewer", "editor", "admin", "owner"]]
    team_id: NotRequired[str | None]


class InvitationOut(TypedDict):
    """An invitation that can still be accepted."""

    id: str
    email: str
    role: Literal["viewer", "editor", "admin", "owner"]
    team_id: str | None
    created_by: str | None
    created_at: str
    expires_at: str


class JobScheduleIn(TypedDict):
    """A new schedule: what it repeats, and when."""

    name: str
    cron: str
    timezone: NotRequired[str]
    enabled: NotRequired[bool]
    new_seed: NotRequired[bool]
    undo_previous: NotRequired[bool]
    kind: NotRequired[Literal["export", "push"] | None]
    template_id: NotRequired[str | None]
    dataset_id: NotRequired[str | None]
    request: NotRequired[dict[str, Any]]
    repeats: NotRequired[str | None]


class JobScheduleOut(TypedDict):
    """A schedule of an export or a push."""

    id: str
    name: str
    kind: Literal["export", "push"]
    template_id: str | None
    dataset_id: str | None
    request: dict[str, Any]
    cron: str
    timezone: str
    enabled: bool
    new_seed: bool
    undo_previous: bool
    next_run_at: str | None
    last_run_at: str | None
    last_job_id: str | None
    problem: dict[str, Any] | None
    project_id: str
    team_id: str
    saved_by: str | None
    created_at: str
    updated_at: str


class JobSchedulePatch(TypedDict):
    """The properties of a schedule that can be changed. Its jobs then start with your permissions."""

    name: NotRequired[str | None]
    cron: NotRequired[str | None]
    timezone: NotRequired[str | None]
    enabled: NotRequired[bool | None]
    new_seed: NotRequired[bool | None]
    undo_previous: NotRequired[bool | None]
    request: NotRequired[dict[str, Any] | None]


class LeakColumn(TypedDict):
    """One sensitive column."""

    column: str
    source_column: str
    strategy: str
    key_version: int
    values: int
    survivors: int
    whole_column: WholeColumn


class LeakReport(TypedDict):
    """The result of the leak check for one table. `unmasked`: the columns that have the values of the source."""

    table: str
    columns: list[LeakColumn]
    unmasked: NotRequired[list[str]]


class LimitsIn(TypedDict):
    """Custom limits of an Enterprise workspace; null: the limits of the plan."""

    requests_per_minute: NotRequired[int | None]
    rows_per_hour: NotRequired[int | None]
    rows_per_generation: NotRequired[int | None]


class LimitsOut(TypedDict):
    """The current limits."""

    requests_per_minute: int
    rows_per_hour: int
    rows_per_generation: int


class Live(TypedDict):
    """The process responds."""

    status: str


class LockOut(TypedDict):
    """The resolved requirements of a version: the packages of every run of it."""

    environment: str
    packages: dict[str, str]


class ManifestOut(TypedDict):
    """The contents of an export: its rows and parts. An export without parts has one part."""

    export_id: str
    status: str
    template_id: str | None
    template_version: int | None
    dataset_id: str | None
    dataset_version: int | None
    seed: str
    now: str | None
    engine: int
    vocabulary: str | None
    locale: str | None
    format: str
    file_name: str
    concatenates: bool
    offset: int
    rows: int
    part_rows: int | None
    bytes: int | None
    sha256: str | None
    download_url: str | None
    parts: list[PartOut]


class Masking(TypedDict):
    """How source values of a field are masked."""

    strategy: Literal["replace", "format_preserve", "tokenize", "hash", "shift", "redact", "null"]
    consistent: NotRequired[bool]
    domain: NotRequired[str | None]
    key_version: NotRequired[int | None]
    person: NotRequired[str | None]


class MaskingKeyOut(TypedDict):
    """A version of the masking key, without the key."""

    version: int
    created_by: str | None
    created_at: str


class MaskingKeysOut(TypedDict):
    """The versions, newest first. The newest is used unless a field sets `key_version`."""

    items: list[MaskingKeyOut]


class MeOut(TypedDict):
    """The caller: user, workspace, project and permissions."""

    kind: str
    user_id: str | None
    user_name: str
    email: str
    workspace_id: str
    project_id: str | None
    team_id: str | None
    role: str | None
    workspace_role: str | None
    scopes: list[str] | None
    key_id: str | None
    plan: str
    limits: LimitsOut


class MemberIn(TypedDict):
    """An existing member, and a new role in a team, or without `team_id` in the whole workspace."""

    user_id: str
    role: NotRequired[Literal["viewer", "editor", "admin", "owner"]]
    team_id: NotRequired[str | None]


class MemberOut(TypedDict):
    """A user's role in the workspace or in a team."""

    id: str
    user_id: str
    email: str
    name: str
    role: Literal["viewer", "editor", "admin", "owner"]
    team_id: str | None
    two_factor: bool | None
    created_at: str


class MemberPatch(TypedDict):
    """The new role."""

    role: Literal["viewer", "editor", "admin", "owner"]


class MisfitOut(TypedDict):
    """A value that does not fit its column, or (`row` null) a reason why values may not fit."""

    table: str
    column: str
    field: str | None
    row: int | None
    value: Any
    reason: str
    message: str
    hint: str


class MoveIn(TypedDict):
    """IDs of objects to move to a project."""

    objects: list[str]
    related: NotRequired[Literal["refuse", "take", "leave"]]


class MovedOut(TypedDict):
    """An object that is now in the project."""

    type: str
    id: str
    name: str


class MovesOut(TypedDict):
    """The moved objects."""

    items: list[MovedOut]
    total: int


class NewApiKeyOut(TypedDict):
    """The response to the creation, the only one that contains the key."""

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
    key: str


class NewInvitationOut(TypedDict):
    """The response to an invitation, the only one that contains its link, which the inviter passes on."""

    id: str
    email: str
    role: Literal["viewer", "editor", "admin", "owner"]
    team_id: str | None
    created_by: str | None
    created_at: str
    expires_at: str
    url: str
    mailed: bool


class NewWebhookOut(TypedDict):
    """The only response that contains the signing secret."""

    id: str
    scope: Literal["project", "workspace"]
    project_id: str | None
    team_id: str | None
    description: str
    url: str
    events: list[str]
    active: bool
    off_reason: str | None
    failures: int
    failing_since: str | None
    old_secret_until: str | None
    created_by: str | None
    created_at: str
    updated_at: str
    secret: str


class OutputFile(TypedDict):
    """A file that a run stored."""

    name: str
    size: int
    file_id: str


class PartOut(TypedDict):
    """One part: `rows` rows from row `offset` of the template on, and its file once it exists."""

    number: int
    offset: int
    rows: int
    status: str
    attempt: int
    rows_done: int
    bytes: int | None
    sha256: str | None
    download_url: str | None
    error: dict[str, Any] | None


class PlanOut(TypedDict):
    """What a push would write, and where. `needs_confirmation` is the required value of `confirm`."""

    connection_id: str
    needs_confirmation: str | None
    modes: list[str]
    create_table: bool
    statements: bool
    total: int
    tables: list[PlannedTable]
    skipped: list[SkippedTable]


class PlannedColumn(TypedDict):
    """The content of a column: `state` is field, skipped or missing."""

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
    """A field that can be sent."""

    name: str
    type: str
    label: str
    sensitive: bool


class PlannedTable(TypedDict):
    """The mapping of a table, with its errors."""

    name: str
    target: str
    create: bool
    mode: str
    count: int
    note: str
    key_columns: list[str]
    capture: list[str]
    later: list[str]
    unchecked: list[str]
    columns: list[PlannedColumn]
    fields: list[PlannedField]
    unused: list[str]
    faults: list[dict[str, Any]]


class PreviewIn(TypedDict):
    """Three rows of a template or, with `fields`, of an unsaved draft of it."""

    seed: NotRequired[str | None]
    overrides: NotRequired[dict[str, Any]]
    now: NotRequired[str | Literal["present"] | None]
    locale: NotRequired[str | None]
    rows: NotRequired[dict[str, int]]
    fields: NotRequired[list[dict[str, Any]] | None]
    source: NotRequired[SourceSpec | None]
    invalid: NotRequired[Invalid | None]
    fetch: NotRequired[bool | None]


class PreviewOut(TypedDict):
    """The first three rows, the seed that reproduces them, and the injected invalid cells, if any."""

    rows: list[dict[str, Any]]
    seed: str
    warnings: list[dict[str, str]]
    bad: NotRequired[list[BadCell] | None]


class ProjectIn(TypedDict):
    """A new project. Without `team_id`: the team of the current project."""

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
    """The properties of a project that can be changed."""

    name: NotRequired[str | None]
    description: NotRequired[str | None]
    team_id: NotRequired[str | None]


class PurgedOut(TypedDict):
    """A deleted file that was removed permanently because an upload needed its space."""

    id: str
    name: str
    size: int


class PushColumn(TypedDict):
    """The content of a column: a field, or a formula; neither for a generated key."""

    column: str
    field: str | None
    formula: str | None


class PushInput(TypedDict):
    """Rows of a template for a table."""

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
    target: NotRequired[str | None]
    mapping: NotRequired[dict[str, str | None]]
    computed: NotRequired[dict[str, str]]
    key_columns: NotRequired[list[str]]
    count: NotRequired[int | None]
    seed: NotRequired[str | None]
    now: NotRequired[str | Literal["present"] | None]
    offset: NotRequired[int]
    locale: NotRequired[str | None]
    overrides: NotRequired[dict[str, Any]]
    rows: NotRequired[dict[str, int]]


class PushOut(TypedDict):
    """Rows that are sent, or were sent, to a connection."""

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
    skipped: list[SkippedTable]
    seed: str
    now: str | None
    offset: int
    attempt: int
    progress: list[list[float]]
    pins: ExportPins
    request: dict[str, Any]
    leaks: list[LeakReport] | None
    waiting: WaitingOut | None
    error: dict[str, Any] | None
    project_id: str
    team_id: str
    created_by: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None
    cancel_requested_at: str | None


class PushTable(TypedDict):
    """One table of a push."""

    name: str
    template_id: str | None
    template_version: int | None
    target: str
    count: int
    note: str
    offset: int
    mode: str
    key_columns: list[str]
    columns: list[PushColumn]
    from_parent: dict[str, int]
    create: bool


class QueueOut(TypedDict):
    """Work in a queue, all workspaces. `oldest_seconds`: how long the oldest entry has waited."""

    waiting: int
    running: int
    oldest_seconds: float | None


class RateOut(TypedDict):
    """A limit and its current use."""

    limit: int
    used: int
    left: int
    window_seconds: int
    next_at: str | None
    resets_at: str | None


class ReadyOut(TypedDict):
    """The sandbox and the oldest lease."""

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
    """A component."""

    state: str
    ms: int
    kind: NotRequired[str | None]
    version: NotRequired[str | None]
    revision: NotRequired[str | None]
    count: NotRequired[int | None]


class ReferencePin(TypedDict):
    """A template that is reached through relations: its version, and the number of rows used in calculations."""

    template_id: str
    version: int
    rows: int


class RefreshedOut(TypedDict):
    """Number of values that were removed from the cache."""

    forgotten: int


class RerunIn(TypedDict):
    """How to run it again: the version, and the parameters (default: those of the run)."""

    version: NotRequired[Literal["same", "newest"]]
    params: NotRequired[dict[str, str] | None]
    wait: NotRequired[Literal[True, False, "true", "false"]]


class RetryInput(TypedDict):
    """Rows of a push that were not delivered and are sent again. A mapping and overrides can correct them."""

    states: NotRequired[list[Literal["failed", "unknown", "pending"]]]
    rows: NotRequired[list[int] | None]
    table: NotRequired[str | None]
    mapping: NotRequired[dict[str, str | None]]
    computed: NotRequired[dict[str, str]]
    overrides: NotRequired[dict[str, Any]]
    on_error: NotRequired[Literal["continue", "stop", "stop_when_all_fail"]]
    confirm: NotRequired[str | None]


class RevokedOut(TypedDict):
    """The revoked keys."""

    items: list[ApiKeyOut]
    total: int


class RowOut(TypedDict):
    """The outcome of a row. `values` only if they were requested."""

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
    """How to run a scenario."""

    params: NotRequired[dict[str, str]]
    wait: NotRequired[Literal[True, False, "true", "false"]]


class RunOut(TypedDict):
    """A run."""

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
"""The changes from one version to another; `code` is a unified diff."""


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
    """The properties of a scenario that can be changed; keys that are left out keep their values."""

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
    """When a scenario runs automatically."""

    cron: str
    timezone: NotRequired[str]
    enabled: NotRequired[bool]
    params: NotRequired[dict[str, str]]


class ScheduleOut(TypedDict):
    """When a scenario runs automatically."""

    cron: str
    timezone: str
    enabled: bool
    params: dict[str, str]


class SealOut(TypedDict):
    """A seal. `hash` is the start of the next seal; if `removed_at` is set, its entries have been removed."""

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
    """A secret's value, and who may use it. Keys that are left out keep their values; a new secret needs a value."""

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
    """A browser session."""

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
    """Settings of a workspace."""

    redact_run_logs: NotRequired[bool | None]
    require_two_factor: NotRequired[bool | None]
    audit_retention_days: NotRequired[int | None]


class ShareOut(TypedDict):
    """The usage of a project, template, key or user."""

    id: str
    name: str
    rows: int
    requests: int
    steps: list[StepOut]


class SkippedEntity(TypedDict):
    """A table that is left out, and the reason."""

    table: str
    code: str
    message: str
    hint: str


class SkippedTable(TypedDict):
    """A table that is left out of the push, with the reason."""

    name: str
    code: str
    message: str
    hint: str


class SourceSpec(TypedDict):
    """Source of the rows of a template: a workspace file, or a table or query of a connection."""

    file: NotRequired[str | None]
    sheet: NotRequired[str | None]
    connection_id: NotRequired[str | None]
    table: NotRequired[str | None]
    where: NotRequired[str | None]
    query: NotRequired[str | None]
    limit: NotRequired[int | None]


class SqlOptions(TypedDict):
    """``table`` can have a schema before a dot. Default: derived from the template's name."""

    table: NotRequired[str | None]
    dialect: NotRequired[Literal["ansi", "postgresql", "mysql", "mssql", "oracle", "db2"]]
    create_table: NotRequired[bool]
    rows_per_statement: NotRequired[int | None]


class SqlScriptOptions(TypedDict):
    """``table`` can have a schema before a dot. Default: derived from the template's name."""

    dialect: NotRequired[Literal["ansi", "postgresql", "mysql", "mssql", "oracle", "db2"]]
    create_table: NotRequired[bool]
    rows_per_statement: NotRequired[int | None]


class SqliteUsedOut(TypedDict):
    """The files of SQLite connections, including their journals."""

    limit_bytes: int
    used_bytes: int
    limit_files: int
    files: int


class StageOut(TypedDict):
    """The result of one stage of a verification."""

    name: str
    ok: bool
    code: str
    message: str
    hint: str
    ms: int


class StartedOut(TypedDict):
    """The export or push that a schedule has started."""

    kind: Literal["export", "push"]
    job_id: str


class StepOut(TypedDict):
    """An hour or a day, identified by its start."""

    start: str
    rows: int
    requests: int


class StorageOut(TypedDict):
    """The used and the maximum storage of the workspace."""

    files: FilesUsedOut
    sqlite: SqliteUsedOut
    exports: ExportsUsedOut


class SubsetIn(TypedDict):
    """The start rows and the depth of a subset."""

    table: str
    where: NotRequired[str]
    limit: NotRequired[int | None]
    children: NotRequired[list[str] | None]
    depth: NotRequired[int]
    name: NotRequired[str | None]


class SubsetOut(TypedDict):
    """The created dataset, its templates, and the contents of each table."""

    dataset: DatasetOut
    templates: list[TemplateOut]
    report: list[SubsetTable]


class SubsetTable(TypedDict):
    """The rows of one table in the subset, the relations they were found by, and its masked columns."""

    table: str
    template_id: str
    rows: int
    ways: list[str]
    sensitive: list[str]


class SuggestIn(TypedDict):
    """A field and what is known about it. `sample`: some of its values, which a model gets to see if one is used."""

    name: str
    description: NotRequired[str]
    sample: NotRequired[list[Any]]
    connection_id: NotRequired[str | None]


class SuggestOut(TypedDict):
    """Types, best match first; at least one."""

    suggestions: list[Suggestion]


class Suggestion(TypedDict):
    """A type with suggested options. `source` says what the suggestion is based on."""

    type: str
    options: dict[str, Any]
    reason: str
    source: Literal["name", "sample", "ai"]


class TablePins(TypedDict):
    """The values with which one table of a dataset's file was generated. `note` says why it has fewer rows than"""

    name: str
    template_id: str
    template_version: int
    rows: int
    note: str
    now: str
    vocabulary: str
    locale: str | None
    references: list[ReferencePin]


class TablePreview(TypedDict):
    """The first rows of a table, and its number of rows."""

    name: str
    template_id: str
    rows: list[dict[str, Any]]
    count: int


class TablesIn(TypedDict):
    """Names of tables in the connection's metadata."""

    entities: list[str]
    quantity: NotRequired[int]


class TablesOut(TypedDict):
    """The created templates, the result for each column, and for operations of an API their endpoints."""

    templates: list[TemplateOut]
    report: list[ColumnReport]
    endpoints: list[EndpointOut]
    skipped: list[SkippedEntity]


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
    """Rows of a template in a file that is created in the background."""

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
    """A version of a template."""

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
    """The properties of a template that can be changed; keys that are left out keep their values."""

    name: NotRequired[str]
    fields: NotRequired[list[dict[str, Any]]]
    description: NotRequired[str]
    quantity: NotRequired[int]
    locale: NotRequired[str | None]
    anchor: NotRequired[str | None]
    source: NotRequired[SourceSpec | None]
    invalid: NotRequired[Invalid | None]


class TemplateReference(TypedDict):
    """A template that fields refer to, directly or indirectly, as it was when the version was saved."""

    template_id: str
    version: int
    rows: int


class TrashedOut(TypedDict):
    """A deleted object. It is removed permanently at `gone_at`; `restorable`: the caller can restore it until then."""

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
    """Parameters of an undo, which deletes the rows that a push delivered."""

    confirm: NotRequired[str | None]


class UploadedOut(TypedDict):
    """An uploaded file. `purged` are deleted files that were permanently removed to free space for it."""

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
    """The usage. Rows are counted rows minus returned ones; requests are accepted requests."""

    by: str | None
    step: Literal["hour", "day"]
    start: str
    end: str
    rows: int
    requests: int
    steps: list[StepOut]
    shares: list[ShareOut]


class UsageOut(TypedDict):
    """The limits, their current use, and the past usage."""

    plan: str
    requests: RateOut
    rows: RateOut
    rows_per_generation: int
    near: list[Literal["requests", "rows"]]
    storage: StorageOut
    history: UsageHistoryOut


class UseOut(TypedDict):
    """An object that uses another one, and how."""

    type: str
    id: str | None
    name: str | None
    how: str
    blocks: bool


class UsesOut(TypedDict):
    """The objects that use an object."""

    items: list[UseOut]
    total: int
    blocked: bool


class VerificationOut(TypedDict):
    """The result of a verification: `verified` or `failed`, stage by stage."""

    status: str
    stages: list[StageOut]
    response: dict[str, Any] | None
    checked_at: str


class WaitingOut(TypedDict):
    """The target is unreachable: since when, the number of attempts, and the time of the next attempt."""

    since: str
    tries: int
    reason: str
    message: str
    next_try_at: str
    next_try_in_seconds: int


class WarningOut(TypedDict):
    """A problem that does not prevent saving."""

    path: str
    code: str
    message: str
    hint: NotRequired[str | None]
    position: NotRequired[int | None]


class WebhookIn(TypedDict):
    """A new webhook."""

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


class WebhookOut(TypedDict):
    """A webhook, without its secret."""

    id: str
    scope: Literal["project", "workspace"]
    project_id: str | None
    team_id: str | None
    description: str
    url: str
    events: list[str]
    active: bool
    off_reason: str | None
    failures: int
    failing_since: str | None
    old_secret_until: str | None
    created_by: str | None
    created_at: str
    updated_at: str


class WebhookPatch(TypedDict):
    """The properties of a webhook that can be changed. Turning it on again (`active`) resets its failures."""

    url: NotRequired[str | None]
    events: NotRequired[
        list[
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
        | None
    ]
    description: NotRequired[str | None]
    active: NotRequired[bool | None]


class WholeColumn(TypedDict):
    """Whether real values of the column occur in any row."""

    kind: str
    distinct: int
    share: float
    found: int
    expected: float | None


class WorkspaceDeletion(TypedDict):
    """The workspace's name, as confirmation."""

    confirm: str


class WorkspaceOut(TypedDict):
    """The workspace."""

    id: str
    name: str
    plan: str
    limits: LimitsOut
    settings: dict[str, Any]
    created_at: str
    updated_at: str
    deleted_at: str | None


class WorkspacePatch(TypedDict):
    """The properties of a workspace that can be changed; plan and limits only by its owner."""

    name: NotRequired[str | None]
    plan: NotRequired[Literal["free", "pro", "enterprise"] | None]
    limits: NotRequired[LimitsIn | None]
    settings: NotRequired[SettingsIn | None]
