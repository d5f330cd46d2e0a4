"""The workspace: name, plan and limits, settings, usage, and deletion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from flask import Blueprint, Response, g, request, url_for
from pydantic import Field

from webapp import limits
from webapp.access.actors import Actor
from webapp.access.models import Workspace
from webapp.accounts.services import workspaces
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.web.forms.page_form import Control, FormSpec, PageForm
from webapp.web.inputs import Input
from webapp.web.responses import OptionalTime, Output, Time, check_if_match, reply
from webapp.web.routing import route

bp = Blueprint("workspace", __name__)

Name = Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS, pattern=r"\S")]
_MAX_LIMITS = limits.ENTERPRISE_MAX


class LimitsIn(Input):
    """Custom limits of an Enterprise workspace; null: the limits of the plan."""

    requests_per_minute: Annotated[int, Field(ge=1, le=_MAX_LIMITS.requests_per_minute)] | None = None
    rows_per_hour: Annotated[int, Field(ge=1, le=_MAX_LIMITS.rows_per_hour)] | None = None
    rows_per_generation: Annotated[int, Field(ge=1, le=_MAX_LIMITS.rows_per_generation)] | None = None


class SettingsIn(Input):
    """Settings of a workspace."""

    redact_run_logs: bool | None = None
    require_two_factor: bool | None = None
    audit_retention_days: Annotated[int, Field(ge=1, le=limits.AUDIT_DAYS["enterprise"][1])] | None = None


class WorkspacePatch(Input):
    """The properties of a workspace that can be changed; plan and limits only by its owner."""

    name: Name | None = None
    plan: Literal["free", "pro", "enterprise"] | None = None
    limits: LimitsIn | None = None
    settings: SettingsIn | None = None


class WorkspaceDeletion(Input):
    """The workspace's name, as confirmation."""

    confirm: Annotated[str, Field(max_length=limits.MAX_NAME_CHARS)]


FORMS: Final = {
    "name": FormSpec(WorkspacePatch, {"name": Control("Name", required=True, autocomplete="off")}),
    "plan": FormSpec(
        WorkspacePatch,
        {"plan": Control("Plan", hint="Takes effect immediately.", required=True)},
        codes={"forbidden": "plan"},
    ),
    "limits": FormSpec(
        WorkspacePatch,
        {
            f"limits.{name}": Control(text, attributes={"inputmode": "numeric"})
            for name, text in (
                ("requests_per_minute", "Requests per minute"),
                ("rows_per_hour", "Rows per hour"),
                ("rows_per_generation", "Max rows per job"),
            )
        },
    ),
    "logs": FormSpec(
        WorkspacePatch,
        {
            "settings.redact_run_logs": Control(
                "Redact secrets in logs",
                hint="On: a stored secret that a program prints is replaced by ******** from the next run on.",
                choices=[("false", "Off"), ("true", "On")],
            )
        },
    ),
    "two_factor": FormSpec(
        WorkspacePatch,
        {
            "settings.require_two_factor": Control(
                "Two-factor sign-in",
                hint="Required: members must set it up at next sign-in, you too. API keys keep working.",
                choices=[("false", "Optional"), ("true", "Required")],
            )
        },
    ),
    "retention": FormSpec(
        WorkspacePatch,
        {
            "settings.audit_retention_days": Control(
                "Audit log retention (days)",
                hint="From 30 days up to 90 on Free, 365 on Pro, 3,650 on Enterprise. Leave empty for the plan's "
                "default.",
                placeholder="Plan default",
                attributes={"inputmode": "numeric"},
            )
        },
    ),
}
"""The forms that change the workspace."""
DELETION: Final = FormSpec(
    WorkspaceDeletion, {"confirm": Control("Name of the workspace", autocomplete="off")}
)


class LimitsOut(Output):
    """The current limits."""

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
    """Get the workspace: plan, limits, settings."""
    return _page(actor)


def _page(actor: Actor, error: ApiError | None = None) -> Response:
    """Return the workspace; for browsers with its forms, and with the error of the submitted one."""
    data = WorkspaceOut.from_row(db.session.get_one(Workspace, actor.workspace_id))
    if g.face == "program":
        return reply(data, send_etag=True)

    def form(spec: FormSpec) -> PageForm:
        wrong = error is not None and spec.matches_submission(request.form)
        return spec.render(data, sent=request.form if wrong else None, error=error if wrong else None)

    return reply(
        data,
        template="workspace.html",
        forms={name: form(spec) for name, spec in FORMS.items()},
        deletion=form(DELETION),
    )


def _page_with_error(actor: Actor, error: ApiError) -> Response:
    if error.code == "forbidden":
        raise error
    return _page(actor, error)


@route(
    bp,
    "/workspace",
    ["PATCH"],
    scope="admin",
    body=WorkspacePatch,
    returns=WorkspaceOut,
    errors=["version_conflict"],
    on_fault=_page_with_error,
)
def change(actor: Actor, body: WorkspacePatch) -> Response:
    """Change name and settings (admins), plan and custom limits of an Enterprise workspace (owners)."""
    row = db.session.get_one(Workspace, actor.workspace_id, with_for_update=True)
    check_if_match(WorkspaceOut.from_row(row))
    values = body.model_dump(exclude_unset=True)
    if g.face == "person":
        # An empty field is an error if it is required. An empty number means the value of the plan.
        for spec in FORMS.values():
            if spec.matches_submission(request.form):
                spec.check(request.form)
        for path in ("settings.audit_retention_days", *FORMS["limits"].controls):
            if request.form.get(path) == "":
                group, _, key = path.partition(".")
                values[group] = {**(values.get(group) or {}), key: None}
    changes = _changed_columns(row, values)
    if changes:
        row = workspaces.change_workspace(actor, changes)
    return reply(WorkspaceOut.from_row(row), redirect_to=url_for("workspace.show"), send_etag=True)


@route(
    bp, "/workspace", ["DELETE"], scope="owner", body=WorkspaceDeletion, returns=WorkspaceOut,
    errors=["version_conflict"], on_fault=_page_with_error,
)  # fmt: skip
def delete(actor: Actor, body: WorkspaceDeletion) -> Response:
    """Delete the workspace with all its contents.

    Keys and sessions end immediately. The operator can restore it for 30 days.
    """
    check_if_match(
        WorkspaceOut.from_row(db.session.get_one(Workspace, actor.workspace_id, with_for_update=True))
    )
    row = workspaces.delete_workspace(actor, body.confirm)
    return reply(WorkspaceOut.from_row(row), redirect_to=url_for("session.login"))


def _changed_columns(row: Workspace, values: Mapping[str, Any]) -> dict[str, Any]:
    changes = {key: values[key] for key in ("name", "plan") if values.get(key) is not None}
    plan = changes.get("plan", row.plan)
    if values.get("settings"):
        merged = {**row.settings, **values["settings"]}
        changes["settings"] = {key: value for key, value in merged.items() if value is not None}
        days = values["settings"].get("audit_retention_days")
        minimum, maximum = limits.AUDIT_DAYS[plan]
        if days is not None and not minimum <= days <= maximum:
            message = f"The {plan} plan keeps the audit log for {minimum:,} to {maximum:,} days."
            hint = f"Send a number from {minimum} to {maximum}, or null for {maximum}."
            raise validation_error([Fault("settings.audit_retention_days", "out_of_range", message, hint)])
    if values.get("limits") is not None:
        if plan != "enterprise":
            message = "Only Enterprise workspaces can change their limits."
            raise validation_error([Fault("limits", "not_allowed", message)])
        merged = {**row.own_limits, **values["limits"]}
        changes["own_limits"] = {key: value for key, value in merged.items() if value is not None}
    return changes
