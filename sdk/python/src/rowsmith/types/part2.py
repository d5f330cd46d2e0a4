"""Shapes of the API from DatasetTable to ExportPins, made from its OpenAPI document: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired

    from rowsmith.types.part1 import CsvOptions
    from rowsmith.types.part3 import Invalid, LeakReport, MisfitOut
    from rowsmith.types.part5 import ReferencePin, SourceSpec, SqlOptions
    from rowsmith.types.part6 import TablePins, TemplateOut, TryOut


class DatasetTable(TypedDict):
    """One table of a dataset: a template, and how many rows of it."""

    template_id: str
    count: NotRequired[int | None]
    name: NotRequired[str | None]


class DatasetTableOut(TypedDict):
    """One table of a dataset, and the version of its template that is pinned."""

    template_id: str
    count: int | None
    name: str | None
    version: int


class DeliveryOut(TypedDict):
    """One event on its way to a webhook. `id` is its `webhook-id`. `response_head`: how the last answer began."""

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
    """What rows are to be like, in any words. `connection_id`: the model; the project's only one, if not said. Nothing"""

    description: str
    connection_id: NotRequired[str | None]
    quantity: NotRequired[int]
    save: NotRequired[bool]


class DescribedField(TypedDict):
    """What one field came to. `state`: green, as the model had it; yellow, without options that did not fit; red,"""

    field: str
    type: str
    state: Literal["green", "yellow", "red"]
    reason: str


class DescribedOut(TypedDict):
    """A draft of a template, and the template where it was saved."""

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
"""What changed from one version to another."""


class DocumentOut(TypedDict):
    """What was taken over."""

    bytes: int
    sha256: str
    entities: int


class DraftIn(TypedDict):
    """Rows of a template that is not saved: its definition, and generate's own keys beside it."""

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
    """Three rows of a template that is not saved: its definition, and preview's own keys beside it."""

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
    """What would be sent: the statements of three rows of each table (over HTTP their requests), and every value that"""

    statements: NotRequired[list[str] | None]
    requests: NotRequired[list[str] | None]
    misfits: list[MisfitOut]
    checked_rows: int
    tables: list[DryTable]


class DryTable(TypedDict):
    """The statements of the first rows of one table, or their requests over HTTP."""

    name: str
    target: str
    statements: NotRequired[list[str] | None]
    requests: NotRequired[list[str] | None]


class EndedOut(TypedDict):
    """How many sessions ended."""

    ended: int


class EndpointChange(TypedDict):
    """What an endpoint is made of. `{{field}}` in url, path, headers, query and body is a value of the row."""

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
    """Rows into a table of a database."""

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
    """An export: one file, made or to be made, or `parts` files of `part_rows` rows each. `leaks` is what the leak"""

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
    """What a file was made with. The same pins and the same request give the same bytes."""

    engine: int
    seed: str
    now: str | None
    vocabulary: str | None
    template_version: int | None
    dataset_version: int | None
    locale: str | None
    references: list[ReferencePin]
    tables: list[TablePins]
