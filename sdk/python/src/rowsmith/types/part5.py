"""Shapes of the API from TemplateExportInput to WorkspacePatch, made from its OpenAPI document: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired

    from rowsmith.types.part1 import CsvOptions
    from rowsmith.types.part2 import LimitsIn
    from rowsmith.types.part3 import LimitsOut
    from rowsmith.types.part4 import RateOut, SettingsIn, SqlOptions, StageOut


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


class WarningOut(TypedDict):
    """What will surprise, and is no reason to refuse."""

    path: str
    code: str
    message: str
    hint: NotRequired[str | None]
    position: NotRequired[int | None]


class WorkspaceOut(TypedDict):
    """The workspace."""

    id: str
    name: str
    plan: str
    limits: LimitsOut
    settings: dict[str, Any]
    created_at: str
    updated_at: str


class WorkspacePatch(TypedDict):
    """What of a workspace can change; plan and limits by its owner."""

    name: NotRequired[str | None]
    plan: NotRequired[Literal["free", "pro", "enterprise"] | None]
    limits: NotRequired[LimitsIn | None]
    settings: NotRequired[SettingsIn | None]
