"""Shapes of the API from TemplateReference to WorkspacePatch, made from its OpenAPI document: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired

    from rowsmith.types.part2 import LimitsIn, LimitsOut
    from rowsmith.types.part3 import RateOut
    from rowsmith.types.part4 import SettingsIn, StageOut


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
