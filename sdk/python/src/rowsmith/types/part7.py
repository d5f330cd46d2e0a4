"""Shapes of the API from WebhookOut to WorkspacePatch, made from its OpenAPI document: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired

    from rowsmith.types.part3 import LimitsIn, LimitsOut
    from rowsmith.types.part5 import SettingsIn


class WebhookOut(TypedDict):
    """A webhook, without its secret. `off_reason`: why the service turned it off, `gone` or `failing`. `failures`:"""

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
    """What of a webhook can change. Turned on again (`active`), its failures are forgotten."""

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
    """Whether real values of the column stand in any row. `kind` is none where that cannot be by design and one would"""

    kind: str
    distinct: int
    share: float
    found: int
    expected: float | None


class WorkspaceDeletion(TypedDict):
    """The workspace's name, typed to say that it is meant."""

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
    """What of a workspace can change; plan and limits by its owner."""

    name: NotRequired[str | None]
    plan: NotRequired[Literal["free", "pro", "enterprise"] | None]
    limits: NotRequired[LimitsIn | None]
    settings: NotRequired[SettingsIn | None]
