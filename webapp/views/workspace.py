"""The workspace: name, plan and limits, settings, usage, and its end."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from flask import Blueprint, Response, url_for
from pydantic import Field

from webapp import limits
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.models import Workspace
from webapp.services import tenancy, workspace_end
from webapp.services.actors import Actor
from webapp.views.inputs import Input
from webapp.views.outputs import OptionalTime, Output, Time
from webapp.views.reply import matching, reply
from webapp.views.routes import route

bp = Blueprint("workspace", __name__)

Name = Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS, pattern=r"\S")]
_MOST = limits.ENTERPRISE_MAX


class LimitsIn(Input):
    """An Enterprise workspace's own numbers; null: the plan's."""

    requests_per_minute: Annotated[int, Field(ge=1, le=_MOST.requests_per_minute)] | None = None
    rows_per_hour: Annotated[int, Field(ge=1, le=_MOST.rows_per_hour)] | None = None
    rows_per_generation: Annotated[int, Field(ge=1, le=_MOST.rows_per_generation)] | None = None


class SettingsIn(Input):
    """Switches of a workspace."""

    redact_run_logs: bool | None = None
    require_two_factor: bool | None = None
    audit_retention_days: Annotated[int, Field(ge=1, le=limits.AUDIT_DAYS["enterprise"][1])] | None = None


class WorkspacePatch(Input):
    """What of a workspace can change; plan and limits by its owner."""

    name: Name | None = None
    plan: Literal["free", "pro", "enterprise"] | None = None
    limits: LimitsIn | None = None
    settings: SettingsIn | None = None


class WorkspaceDeletion(Input):
    """The workspace's name, typed to say that it is meant."""

    confirm: Annotated[str, Field(max_length=limits.MAX_NAME_CHARS)]


class LimitsOut(Output):
    """The limits that hold now."""

    requests_per_minute: int
    rows_per_hour: int
    rows_per_generation: int


class WorkspaceOut(Output):
    """The workspace."""

    id: str
    name: str
    plan: str
    limits: LimitsOut
    settings: dict[str, Any]
    created_at: Time
    updated_at: Time
    deleted_at: OptionalTime


@route(bp, "/workspace", scope="member", returns=WorkspaceOut)
def show(actor: Actor) -> Response:
    """Read the workspace: plan, limits, settings."""
    row = db.session.get_one(Workspace, actor.workspace_id)
    return reply(WorkspaceOut.of(row), template="workspace.html", tag=True)


@route(
    bp,
    "/workspace",
    ["PATCH"],
    scope="admin",
    body=WorkspacePatch,
    returns=WorkspaceOut,
    errors=["version_conflict"],
)
def change(actor: Actor, body: WorkspacePatch) -> Response:
    """Change name and settings (admins), plan and an Enterprise workspace's own limits (owners)."""
    row = db.session.get_one(Workspace, actor.workspace_id, with_for_update=True)
    matching(WorkspaceOut.of(row))
    changes = _changes(row, body)
    if changes:
        row = tenancy.change_workspace(actor, changes)
    return reply(WorkspaceOut.of(row), see=url_for("workspace.show"), tag=True)


def _not_deleted(actor: Actor, error: ApiError) -> Response:
    if error.code == "forbidden":
        raise error
    row = db.session.get_one(Workspace, actor.workspace_id)
    return reply(WorkspaceOut.of(row), template="workspace.html", refused=error)


@route(
    bp, "/workspace", ["DELETE"], scope="owner", body=WorkspaceDeletion, returns=WorkspaceOut,
    errors=["version_conflict"], on_fault=_not_deleted,
)  # fmt: skip
def delete(actor: Actor, body: WorkspaceDeletion) -> Response:
    """Delete the workspace with all that is in it: keys and sessions end at once. The operator can restore it for 30
    days."""
    matching(WorkspaceOut.of(db.session.get_one(Workspace, actor.workspace_id, with_for_update=True)))
    row = workspace_end.delete(actor, body.confirm)
    return reply(WorkspaceOut.of(row), see=url_for("session.login"))


def _check_retention(days: int | None, plan: str) -> None:
    least, most = limits.AUDIT_DAYS[plan]
    if days is not None and not least <= days <= most:
        message = f"The plan {plan} keeps the audit trail for {least:,} to {most:,} days."
        hint = f"Send a number from {least} to {most}, or null for {most}."
        raise validation_error([Fault("settings.audit_retention_days", "out_of_range", message, hint)])


def _changes(row: Workspace, body: WorkspacePatch) -> dict[str, Any]:
    sent = body.model_dump(exclude_unset=True)
    changes = {key: sent[key] for key in ("name", "plan") if sent.get(key) is not None}
    if sent.get("settings"):
        merged = {**row.settings, **sent["settings"]}
        changes["settings"] = {key: value for key, value in merged.items() if value is not None}
        _check_retention(sent["settings"].get("audit_retention_days"), changes.get("plan", row.plan))
    if sent.get("limits") is not None:
        plan = changes.get("plan", row.plan)
        if plan != "enterprise":
            message = "Only an Enterprise workspace has numbers of its own."
            raise validation_error([Fault("limits", "not_allowed", message)])
        merged = {**row.own_limits, **sent["limits"]}
        changes["own_limits"] = {key: value for key, value in merged.items() if value is not None}
    return changes
