"""Shapes of the API from WarningOut to WorkspacePatch, made from its OpenAPI document: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired

    from rowsmith.types.part3 import LimitsIn, LimitsOut
    from rowsmith.types.part5 import SettingsIn


class WarningOut(TypedDict):
    """What will surprise, and is no reason to refuse."""

    path: str
    code: str
    message: str
    hint: NotRequired[str | None]
    position: NotRequired[int | None]


class WholeColumn(TypedDict):
    """Whether real values of the column stand in any row. `kind` is none where that cannot be by design and one would"""

    kind: str
    distinct: int
    share: float
    found: int
    expected: float | None


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
