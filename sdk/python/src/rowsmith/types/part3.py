"""Shapes of the API from LimitsOut to PushOut, made from its OpenAPI document: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired

    from rowsmith.types.part1 import Counts
    from rowsmith.types.part2 import ExportPins
    from rowsmith.types.part4 import PushTable


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


class MemberOut(TypedDict):
    """A person's role in the workspace, or in one team of it."""

    id: str
    user_id: str
    email: str
    name: str
    role: Literal["viewer", "editor", "admin", "owner"]
    team_id: str | None
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


class NewApiKeyOut(TypedDict):
    """The answer to a creation: the only one that holds the key itself."""

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
    revoked_at: str | None
    key: str


class NewInvitationOut(TypedDict):
    """The answer to an invitation: the only one that holds its link, to be passed on by the inviter."""

    id: str
    email: str
    role: Literal["viewer", "editor", "admin", "owner"]
    team_id: str | None
    created_by: str | None
    created_at: str
    expires_at: str
    url: str


class OutputFile(TypedDict):
    """A file that a run left behind."""

    name: str
    size: int
    file_id: str


class PartOut(TypedDict):
    """One part: `rows` rows from row `offset` of the template on, and the file of them once it is made."""

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
    """What a push would write where. `needs_confirmation` is what `confirm` must say."""

    connection_id: str
    needs_confirmation: str | None
    modes: list[str]
    create_table: bool
    statements: bool
    total: int
    tables: list[PlannedTable]


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
    fetch: NotRequired[bool | None]


class PreviewOut(TypedDict):
    """The first three rows, and the seed that makes them again."""

    rows: list[dict[str, Any]]
    seed: str
    warnings: list[dict[str, str]]


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
    error: dict[str, Any] | None
    project_id: str
    team_id: str
    created_by: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None
    cancel_requested_at: str | None
