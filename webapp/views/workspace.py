"""The workspace: plan and limits, members, invitations, usage."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from flask import Blueprint, Response, current_app, g, request, url_for
from pydantic import Field
from sqlalchemy import func, select

from webapp import limits
from webapp.errors import Fault, validation_error
from webapp.extensions import db
from webapp.models import Invitation, Membership, User, Workspace
from webapp.services import paging, people, quotas, tenancy
from webapp.services import usage as recent
from webapp.services.actors import Actor
from webapp.views.inputs import Input, ListQuery
from webapp.views.outputs import Listed, Output, Time
from webapp.views.reply import matching, reply
from webapp.views.routes import route

bp = Blueprint("workspace", __name__)

Role = Literal["viewer", "editor", "admin", "owner"]
Name = Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS, pattern=r"\S")]
EMAIL = r"^[^@\s\x00-\x1f]{1,64}@[^@\s\x00-\x1f]{1,255}$"  # what services.people takes; said here for the document
_MOST = limits.ENTERPRISE_MAX


class LimitsIn(Input):
    """An Enterprise workspace's own numbers; null: the plan's."""

    requests_per_minute: Annotated[int, Field(ge=1, le=_MOST.requests_per_minute)] | None = None
    rows_per_hour: Annotated[int, Field(ge=1, le=_MOST.rows_per_hour)] | None = None
    rows_per_generation: Annotated[int, Field(ge=1, le=_MOST.rows_per_generation)] | None = None


class SettingsIn(Input):
    """Switches of a workspace."""

    redact_run_logs: bool | None = None


class WorkspacePatch(Input):
    """What of a workspace can change; plan and limits by its owner."""

    name: Name | None = None
    plan: Literal["free", "pro", "enterprise"] | None = None
    limits: LimitsIn | None = None
    settings: SettingsIn | None = None


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


class MemberOut(Output):
    """A person's role in the workspace, or in one team of it."""

    id: str
    user_id: str
    email: str
    name: str
    role: Role
    team_id: str | None
    created_at: Time


class MemberPatch(Input):
    """Another role."""

    role: Role


class InvitationIn(Input):
    """Whom to invite, into the workspace or one team of it."""

    email: Annotated[str, Field(max_length=320, pattern=EMAIL)]
    role: Role = "editor"
    team_id: str | None = None


class InvitationOut(Output):
    """An invitation that can still be accepted."""

    id: str
    email: str
    role: Role
    team_id: str | None
    created_by: str | None
    created_at: Time
    expires_at: Time


class NewInvitationOut(InvitationOut):
    """The answer to an invitation: the only one that holds its link, to be passed on by the inviter."""

    url: str


class RateOut(Output):
    """A limit and what is used of it."""

    limit: int
    used: int
    window_seconds: int


class UsageOut(Output):
    """What the workspace has used of its limits just now."""

    plan: str
    requests: RateOut
    rows: RateOut
    rows_per_generation: int


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


def _changes(row: Workspace, body: WorkspacePatch) -> dict[str, Any]:
    sent = body.model_dump(exclude_unset=True)
    changes = {key: sent[key] for key in ("name", "plan") if sent.get(key) is not None}
    if sent.get("settings"):
        merged = {**row.settings, **sent["settings"]}
        changes["settings"] = {key: value for key, value in merged.items() if value is not None}
    if sent.get("limits") is not None:
        plan = changes.get("plan", row.plan)
        if plan != "enterprise":
            message = "Only an Enterprise workspace has numbers of its own."
            raise validation_error([Fault("limits", "not_allowed", message)])
        merged = {**row.own_limits, **sent["limits"]}
        changes["own_limits"] = {key: value for key, value in merged.items() if value is not None}
    return changes


def _member(member: Membership) -> dict[str, Any]:
    user = db.session.get_one(User, member.user_id)
    return MemberOut.of(member, email=user.email, name=user.name)


@route(bp, "/members", scope="member", query=ListQuery, returns=Listed(MemberOut))
def members(actor: Actor, query: ListQuery) -> Response:
    """List who belongs to the workspace or to a team of it, and with which role."""
    statement = tenancy.listing(actor, Membership).join(User, User.id == Membership.user_id)
    found = paging.page(
        statement,
        name="members",
        identity=Membership.id,
        cursor=query.cursor,
        limit=query.limit,
        search=(query.q, User.email),
        context=f"{actor.workspace_id} {actor.user_id}",
    )
    return reply(found.as_dict(_member), template="members.html")


@route(bp, "/members/<member_id>", scope="member", returns=MemberOut)
def member(actor: Actor, member_id: str) -> Response:
    """Read one membership."""
    return reply(_member(tenancy.get(actor, Membership, member_id, "member")), tag=True)


@route(
    bp,
    "/members/<member_id>",
    ["PATCH"],
    scope="admin",
    body=MemberPatch,
    returns=MemberOut,
    errors=["version_conflict", "conflict"],
)
def change_member(actor: Actor, member_id: str, body: MemberPatch) -> Response:
    """Give a member another role. It holds from their next request on, for their keys too."""
    row = tenancy.get(actor, Membership, member_id, "admin", lock=True)
    matching(_member(row))
    people.change_role(actor, row, body.role)
    return reply(_member(row), see=url_for("workspace.members"), tag=True)


@route(
    bp,
    "/members/<member_id>",
    ["DELETE"],
    scope="admin",
    returns=MemberOut,
    errors=["version_conflict", "conflict"],
)
def remove_member(actor: Actor, member_id: str) -> Response:
    """Take a membership away. What the person made stays; their keys may do nothing here any more."""
    row = tenancy.get(actor, Membership, member_id, "admin", lock=True)
    data = _member(row)
    matching(data)
    people.remove_member(actor, row)
    return reply(data, see=url_for("workspace.members"), flashed=f"{data['email']} is no longer a member.")


@route(bp, "/invitations", scope="admin", query=ListQuery, returns=Listed(InvitationOut))
def invitations(actor: Actor, query: ListQuery) -> Response:
    """List the invitations that can still be accepted."""
    found = paging.page(
        people.open_invitations(actor.workspace_id),
        name="invitations",
        identity=Invitation.id,
        cursor=query.cursor,
        limit=query.limit,
        search=(query.q, Invitation.email),
        context=actor.workspace_id,
    )
    return reply(found.as_dict(InvitationOut.of), template="invitations.html")


@route(
    bp,
    "/invitations",
    ["POST"],
    scope="admin",
    body=InvitationIn,
    returns=NewInvitationOut,
    status=201,
    idempotent=True,
    errors=["conflict"],
)
def invite(actor: Actor, body: InvitationIn) -> Response:
    """Invite an address. The answer holds the link; the service sends no mail."""
    row, token = people.invite(actor, body.email, body.role, team_id=body.team_id)
    origin = current_app.config["SETTINGS"].public_url or request.host_url.rstrip("/")
    url = origin + url_for("session.invitation", token=token)
    data = {**InvitationOut.of(row), "url": url}
    if g.face == "program":
        return reply(data, status=201)
    return reply(data, template="invitation_made.html", status=201)


@route(bp, "/invitations/<invitation_id>", ["DELETE"], scope="admin", returns=InvitationOut)
def revoke_invitation(actor: Actor, invitation_id: str) -> Response:
    """Close an open invitation."""
    row = tenancy.get(actor, Invitation, invitation_id, "admin", lock=True)
    people.revoke_invitation(actor, row)
    return reply(InvitationOut.of(row), see=url_for("workspace.invitations"))


@route(bp, "/usage", scope="member", returns=UsageOut)
def usage(actor: Actor) -> Response:
    """Read what is used of the limits: requests of this minute, rows of this hour."""
    held = actor.limits
    rows = quotas.rows_used(actor.workspace_id, held.rows_per_hour)
    data = {
        "plan": actor.plan,
        "requests": {
            "limit": held.requests_per_minute,
            "used": held.requests_per_minute - g.passage.remaining,
            "window_seconds": limits.RATE_WINDOW_SECONDS,
        },
        "rows": {"limit": held.rows_per_hour, "used": rows, "window_seconds": limits.ROWS_WINDOW_SECONDS},
        "rows_per_generation": held.rows_per_generation,
    }
    members = db.session.scalar(select(func.count()).where(Membership.workspace_id == actor.workspace_id))
    shown = {"history": _history(actor)} if g.face == "person" else {}
    return reply(data, template="usage.html", members=members, **shown)


def _history(actor: Actor) -> dict[str, Any]:
    """Rows a day for the chart: heights of 0 to 80, a day with any rows at least 2."""
    days = recent.rows_by_day(actor)
    most = max(rows for _, rows in days)
    shown = [
        {"date": date, "rows": rows, "height": max(2, round(80 * rows / most)) if rows else 0}
        for date, rows in days
    ]
    return {"days": shown, "most": most, "total": sum(rows for _, rows in days)}
