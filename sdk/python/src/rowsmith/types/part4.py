"""Shapes of the API from MoveIn to RateOut, made from its OpenAPI document: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired

    from rowsmith.types.part1 import BadCell, Counts
    from rowsmith.types.part2 import ExportPins
    from rowsmith.types.part3 import Invalid, LeakReport, MisfitOut
    from rowsmith.types.part5 import SourceSpec
    from rowsmith.types.part6 import WaitingOut


class MoveIn(TypedDict):
    """Objects for a project, by their ids. `related`: what else hangs together with them makes a refusal that names it"""

    objects: list[str]
    related: NotRequired[Literal["refuse", "take", "leave"]]


class MovedOut(TypedDict):
    """One object that lies in the project now."""

    type: str
    id: str
    name: str


class MovesOut(TypedDict):
    """What moved."""

    items: list[MovedOut]
    total: int


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
    last_used_address: str | None
    unused: bool
    revoked_at: str | None
    key: str


class NewInvitationOut(TypedDict):
    """The answer to an invitation: the only one that holds its link, to be passed on by the inviter. `mailed`: the"""

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
    """The only answer that holds the secret that signs."""

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
    now: NotRequired[str | Literal["present"] | None]
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
    """What of a project can change; another `team_id` puts it, with all that lies in it, into that team."""

    name: NotRequired[str | None]
    description: NotRequired[str | None]
    team_id: NotRequired[str | None]


class PurgedOut(TypedDict):
    """A deleted file that was removed for good, because an upload needed its space."""

    id: str
    name: str
    size: int


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


class QueueOut(TypedDict):
    """Work of one queue, of all workspaces together. `oldest_seconds`: how long the oldest has waited."""

    waiting: int
    running: int
    oldest_seconds: float | None


class RateOut(TypedDict):
    """A limit and what is used of it. `next_at`: when the first part of it comes free; `resets_at`: when all of it has,"""

    limit: int
    used: int
    left: int
    window_seconds: int
    next_at: str | None
    resets_at: str | None
