"""Shapes of the API from ExportRestInput to MisfitOut, made from its OpenAPI document: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired

    from rowsmith.types.part1 import ColumnReport, CsvOptions, DatasetOut
    from rowsmith.types.part4 import PartOut
    from rowsmith.types.part5 import SqlOptions
    from rowsmith.types.part7 import WholeColumn


class ExportRestInput(TypedDict):
    """Rows to an endpoint, or to a connection that speaks HTTP."""

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
    """The files of exports, those in progress included. The oldest are removed when a new one needs space."""

    limit_bytes: int
    used_bytes: int


class FieldTypeOut(TypedDict):
    """One field type. `capacity`: distinct values with default options; null where there is no bound or count."""

    name: str
    label: str
    category: str
    description: str
    aliases: list[str]
    options_schema: dict[str, Any]
    example: Any
    capacity: int | None


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
    """The file quota. `used_bytes`: live files; `trash_bytes`: deleted files that can still be restored, the oldest of"""

    limit_bytes: int
    used_bytes: int
    trash_bytes: int
    uploading_bytes: int
    compat_bytes: int
    files: int
    trash_files: int


class FunctionOut(TypedDict):
    """One function of the formula language. `result` is what `example` gives in row 1."""

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
    """What templates are made from. Nothing is saved where `save` is false; `quantity` is that of each template."""

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
    quantity: NotRequired[int]


class ImportOut(TypedDict):
    """The templates, what each column came to, and the dataset of several. A report without a column tells of a"""

    format: str
    templates: list[ImportedTemplate]
    dataset: DatasetOut | None
    report: list[ColumnReport]


class ImportedTemplate(TypedDict):
    """A template of an import; without an id where it was not saved."""

    id: str | None
    name: str
    quantity: int
    version: int | None
    fields: list[dict[str, Any]]


class Invalid(TypedDict):
    """Bad values on purpose: on a field a share of its cells, on a template a share of its rows, each of which then"""

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
    """Whom to invite, into the workspace or one team of it."""

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


class LeakColumn(TypedDict):
    """One sensitive column: how many values were looked at, and how many stood unmasked in their own row (0: one would"""

    column: str
    source_column: str
    strategy: str
    key_version: int
    values: int
    survivors: int
    whole_column: WholeColumn


class LeakReport(TypedDict):
    """What the leak check saw of one table."""

    table: str
    columns: list[LeakColumn]


class LimitsIn(TypedDict):
    """An Enterprise workspace's own numbers; null: the plan's."""

    requests_per_minute: NotRequired[int | None]
    rows_per_hour: NotRequired[int | None]
    rows_per_generation: NotRequired[int | None]


class LimitsOut(TypedDict):
    """The limits that hold now."""

    requests_per_minute: int
    rows_per_hour: int
    rows_per_generation: int


class Live(TypedDict):
    """The process answers."""

    status: str


class LockOut(TypedDict):
    """What the requirements of a version came to when it was saved: the packages of every run of it."""

    environment: str
    packages: dict[str, str]


class ManifestOut(TypedDict):
    """What an export is made of, and of which rows. One that was not made in parts has one part."""

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
    """How real values of a field are masked."""

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
    """The versions, newest first. The newest masks, where a field does not say `key_version`."""

    items: list[MaskingKeyOut]


class MeOut(TypedDict):
    """Who is asking, where, and what they may do."""

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
    """Somebody who belongs to the workspace already, and the role they get in a team; without `team_id` in the whole"""

    user_id: str
    role: NotRequired[Literal["viewer", "editor", "admin", "owner"]]
    team_id: NotRequired[str | None]


class MemberOut(TypedDict):
    """A person's role in the workspace, or in one team of it. `two_factor`: whether they have a second factor, which"""

    id: str
    user_id: str
    email: str
    name: str
    role: Literal["viewer", "editor", "admin", "owner"]
    team_id: str | None
    two_factor: bool | None
    created_at: str


class MemberPatch(TypedDict):
    """Another role."""

    role: Literal["viewer", "editor", "admin", "owner"]


class MisfitOut(TypedDict):
    """A value that will not fit its column, or (`row` null) what may bring one."""

    table: str
    column: str
    field: str | None
    row: int | None
    value: Any
    reason: str
    message: str
    hint: str
