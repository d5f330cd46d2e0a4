"""Members, their roles, and invitations."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from flask import Blueprint, Response, current_app, flash, g, request, url_for
from pydantic import Field

from webapp import pagination
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.access.models import Invitation, Membership, Team, User
from webapp.accounts.services import people
from webapp.accounts.services import two_factor as accounts_two_factor
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.mail import services as mail
from webapp.web.forms.page_form import Control, FormSpec, PageForm
from webapp.web.inputs import Input, ListQuery, Query
from webapp.web.responses import ListOf, Output, Time, check_if_match, reply
from webapp.web.routing import route

bp = Blueprint("members", __name__)

Role = Literal["viewer", "editor", "admin", "owner"]
EMAIL = r"^[^@\s\x00-\x1f]{1,64}@[^@\s\x00-\x1f]{1,255}$"  # see services.people; repeated for OpenAPI
ONE = "/members/<member_id>"
INVITATION = "/invitations/<invitation_id>"


class MemberQuery(ListQuery):
    """`q` searches names and addresses. `sort`: `email`, `name` or `since`, descending with `-`; newest first
    without. `team_id` and `user_id` narrow the list to one team, and to one person's memberships."""

    sort: Literal["email", "-email", "name", "-name", "since", "-since"] | None = None
    team_id: str | None = None
    user_id: str | None = None


class MemberOut(Output):
    """A user's role in the workspace or in a team.

    `two_factor`: whether the user has a second factor; only shown to admins, null for others.
    """

    id: str
    user_id: str
    email: str
    name: str
    role: Role
    team_id: str | None
    two_factor: bool | None
    created_at: Time


class MemberIn(Input):
    """An existing member, and a new role in a team, or without `team_id` in the whole workspace."""

    user_id: str
    role: Role = "editor"
    team_id: str | None = None


class MemberPatch(Input):
    """The new role."""

    role: Role


ADD: Final = FormSpec(
    MemberIn,
    {"user_id": Control(type="hidden"), "team_id": Control("Access to"), "role": Control("Role")},
    codes={"not_found": "team_id"},
)
ROLE: Final = FormSpec(
    MemberPatch, {"role": Control("Role")}, codes={"forbidden": "role", "conflict": "role"}
)


class RemoveQuery(Query):
    """`everywhere`: remove the user from the workspace and all of its teams. `revoke_keys`: also revoke the user's
    keys, so that they do not work again if the user returns."""

    everywhere: bool = False
    revoke_keys: bool = False


class InvitationIn(Input):
    """The user to invite to the workspace or to a team."""

    email: Annotated[str, Field(max_length=320, pattern=EMAIL)]
    role: Role = "editor"
    team_id: str | None = None


INVITE: Final = FormSpec(
    InvitationIn,
    {
        "email": Control(
            "E-mail address",
            type="email",
            autocomplete="off",
            invalid="Enter an e-mail address, such as name@example.org.",
        ),
        "role": Control("Role"),
        "team_id": Control("Access to"),
    },
)


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
    """The response to an invitation, the only one that contains its link, which the inviter passes on.

    `mailed`: Rowsmith also sends it by e-mail.
    """

    url: str
    mailed: bool


def _member_json(member: Membership) -> dict[str, Any]:
    user = db.session.get_one(User, member.user_id)
    has_two_factor = (
        bool(accounts_two_factor.users_with_second_factor([user.id])) if g.actor.can("admin") else None
    )
    return MemberOut.from_row(member, email=user.email, name=user.name, two_factor=has_two_factor)


def _teams(actor: Actor) -> list[Team]:
    return list(db.session.scalars(tenancy.listing(actor, Team).order_by(Team.name)))


@route(bp, "/members", scope="member", query=MemberQuery, returns=ListOf(MemberOut))
def index(actor: Actor, query: MemberQuery) -> Response:
    """List the members of the workspace or of a team, with their roles."""
    if g.face == "person":
        return _page(actor, query)
    statement = people.listing(actor).where(people.name_matches(query.q))
    if query.team_id is not None:
        statement = statement.where(Membership.team_id == query.team_id)
    if query.user_id is not None:
        statement = statement.where(Membership.user_id == query.user_id)
    key = (query.sort or "").removeprefix("-")
    order = {"email": User.email, "name": User.name}.get(key)
    narrowed = f"{query.team_id} {query.user_id} {query.q}"
    found = pagination.paginate(
        statement,
        name="members",
        id_column=Membership.id,
        cursor=query.cursor,
        limit=query.limit,
        order_column=order,
        order_value=None
        if order is None
        else lambda membership: getattr(db.session.get_one(User, membership.user_id), key),
        descending=query.sort is None or query.sort.startswith("-"),
        context=f"{actor.workspace_id} {actor.user_id} {narrowed}",
    )
    return reply(found.as_dict(_member_json))


def _page(actor: Actor, query: MemberQuery, **more: Any) -> Response:
    sort = query.sort or "email"
    found = people.list_people(
        actor, q=query.q, sort=sort, team_id=query.team_id, cursor=query.cursor, limit=query.limit
    )
    data = {"items": found.items, "next_cursor": found.next_cursor, "total": found.total}
    # Who has a second factor is for admins to see.
    with_two_factor = (
        accounts_two_factor.users_with_second_factor([item.user.id for item in found.items])
        if actor.can("admin")
        else set()
    )
    context = {
        "teams": _teams(actor),
        "query": query,
        "sort": sort,
        "second": with_two_factor,
        "role_form": lambda member: ROLE.render({"role": member.role}, id=f"{member.id}-")["role"],
        "add_form": _add_form,
        **more,
    }
    return reply(data, template="members.html", block="list", **context)


def _add_form(user_id: str, places: list[tuple[str, str]], error: ApiError | None = None) -> PageForm:
    """Return the form that gives a user a role in one more of `places`."""
    return ADD.render(
        {"user_id": user_id, "role": "editor"},
        sent=request.form if error else None,
        error=error,
        id="new-" if error else f"{user_id}-",
        choices={"team_id": places},
    )


def _page_with_error(actor: Actor, error: ApiError, member_id: str = "") -> Response:
    """Render the page of the members with the rejected form above the list, for users who may see it."""
    if error.code == "forbidden" and not actor.can("admin"):
        raise error
    if error.code == "not_found" and member_id:
        raise error
    if request.method == "DELETE":
        return _page(actor, MemberQuery(), error=error)
    if member_id:
        member = tenancy.get(actor, Membership, member_id, "admin")
        user, form = member.user_id, ROLE.render(sent=request.form, error=error, id="new-")
        title, action = "Change role", url_for(".change", member_id=member_id) + "?_method=PATCH"
    else:
        user = request.form.get("user_id", "")
        places = [("", "Workspace"), *((team.id, f"Team {team.name}") for team in _teams(actor))]
        title, action, form = "Add role", url_for(".add"), _add_form(user, places, error)
    statement = people.listing(actor).where(Membership.user_id == user).limit(1)
    member_row = None if "\0" in user else db.session.scalar(statement)
    if member_row is None:
        raise error
    email = db.session.get_one(User, member_row.user_id).email
    return _page(
        actor, MemberQuery(), failed={"title": title, "action": action, "form": form, "email": email}
    )


@route(
    bp, "/members", ["POST"], scope="admin", body=MemberIn, returns=MemberOut, status=201, idempotent=True,
    errors=["conflict", "not_found"], on_fault=_page_with_error,
)  # fmt: skip
def add(actor: Actor, body: MemberIn) -> Response:
    """Give a member of the workspace a role in a team, or a member of a team a role in the whole workspace."""
    row = people.add(actor, body.user_id, body.role, body.team_id or None)
    location = url_for(".show", member_id=row.id)
    return reply(_member_json(row), status=201, redirect_to=url_for(".index"), headers={"Location": location})


@route(bp, ONE, scope="member", returns=MemberOut)
def show(actor: Actor, member_id: str) -> Response:
    """Get a membership."""
    return reply(_member_json(tenancy.get(actor, Membership, member_id, "member")), send_etag=True)


@route(
    bp, ONE, ["PATCH"], scope="admin", body=MemberPatch, returns=MemberOut, errors=["version_conflict", "conflict"],
    on_fault=_page_with_error,
)  # fmt: skip
def change(actor: Actor, member_id: str, body: MemberPatch) -> Response:
    """Change a member's role. It takes effect with their next request, also for their keys."""
    row = tenancy.get(actor, Membership, member_id, "admin", lock=True)
    check_if_match(_member_json(row))
    people.change_role(actor, row, body.role)
    return reply(
        _member_json(row),
        redirect_to=url_for(".index"),
        send_etag=True,
        flash_message=f"The role was changed to {body.role}.",
    )


@route(
    bp, ONE, ["DELETE"], scope="admin", query=RemoveQuery, returns=MemberOut,
    errors=["version_conflict", "conflict"], on_fault=_page_with_error,
)  # fmt: skip
def remove(actor: Actor, member_id: str, query: RemoveQuery) -> Response:
    """Remove a membership. Objects created by the user stay; their keys lose access."""
    row = tenancy.get(actor, Membership, member_id, "admin", lock=True)
    data = _member_json(row)
    check_if_match(data)
    keys = people.remove(actor, row, everywhere=query.everywhere, revoke_keys=query.revoke_keys)
    place = "this team" if row.team_id is not None and not query.everywhere else "this workspace"
    message = f"{data['email']} is no longer a member of {place}." + (
        f" Keys revoked: {keys}." if keys else ""
    )
    return reply(data, redirect_to=url_for(".index"), flash_message=message)


# --- Invitations --------------------------------------------------------------------------------------------


@route(bp, "/invitations", scope="admin", query=ListQuery, returns=ListOf(InvitationOut))
def invitations(actor: Actor, query: ListQuery) -> Response:
    """List invitations that can still be accepted."""
    found = pagination.paginate(
        people.open_invitations(actor.workspace_id),
        name="invitations",
        id_column=Invitation.id,
        cursor=query.cursor,
        limit=query.limit,
        search=(query.q, Invitation.email),
        context=actor.workspace_id,
    )
    return _invitations_page(actor, found.as_dict(InvitationOut.from_row), query=query)


def _invitations_page(
    actor: Actor, data: dict[str, Any], error: ApiError | None = None, **more: Any
) -> Response:
    if g.face == "program":
        return reply(data)
    teams = _teams(actor)
    about_form = error is not None and "email" in request.form  # and not about an invitation of the list
    form = INVITE.render(
        {"role": "editor"},
        sent=request.form if about_form else None,
        error=error if about_form else None,
        choices={"team_id": [("", "Workspace"), *((team.id, f"Team {team.name}") for team in teams)]},
    )
    mails = {item["id"]: mail.latest(item["id"]) for item in data["items"]}
    context = {"teams": teams, "mails": mails, "mail_is_set_up": mail.is_configured(), **more}
    return reply(data, template="invitations.html", form=form, error=None if about_form else error, **context)


def _invitations_page_with_error(actor: Actor, error: ApiError, **_address: str) -> Response:
    """Render the page of invitations with an error, for users who may see it."""
    if error.code == "forbidden" and not actor.can("admin"):
        raise error
    query = ListQuery()
    found = pagination.paginate(
        people.open_invitations(actor.workspace_id),
        name="invitations",
        id_column=Invitation.id,
        context=actor.workspace_id,
    )
    return _invitations_page(actor, found.as_dict(InvitationOut.from_row), query=query, error=error)


@route(
    bp, "/invitations", ["POST"], scope="admin", body=InvitationIn, returns=NewInvitationOut, status=201,
    idempotent=True, errors=["conflict"], on_fault=_invitations_page_with_error,
)  # fmt: skip
def invite(actor: Actor, body: InvitationIn) -> Response:
    """Invite an address. The response contains the link; if e-mail is configured, Rowsmith also sends it."""
    row, token = people.invite(actor, body.email, body.role, team_id=body.team_id or None)
    return _invitation_response(row, token, 201)


def _invitation_response(row: Invitation, token: str, status: int) -> Response:
    origin = current_app.config["SETTINGS"].public_url or request.host_url.rstrip("/")
    is_mailed = mail.is_configured() and mail.is_valid_address(row.email)
    data = {
        **InvitationOut.from_row(row),
        "url": origin + url_for("session.invitation", token=token),
        "mailed": is_mailed,
    }
    if g.face == "program":
        return reply(data, status=status)
    return reply(data, template="invitation_made.html", status=status)


@route(
    bp, f"{INVITATION}/resend", ["POST"], scope="admin", returns=NewInvitationOut, errors=["conflict"],
    on_fault=_invitations_page_with_error,
)  # fmt: skip
def resend(actor: Actor, invitation_id: str) -> Response:
    """Create a new link for an open invitation.

    The previous link becomes invalid. If e-mail is configured, Rowsmith sends it again.
    """
    row = tenancy.get(actor, Invitation, invitation_id, "admin", lock=True)
    return _invitation_response(row, people.resend(actor, row), 200)


@route(bp, INVITATION, ["DELETE"], scope="admin", returns=InvitationOut)
def revoke_invitation(actor: Actor, invitation_id: str) -> Response:
    """Withdraw an open invitation."""
    row = tenancy.get(actor, Invitation, invitation_id, "admin", lock=True)
    people.revoke_invitation(actor, row)
    if g.face == "person":
        flash(f"The invitation of {row.email} was withdrawn.")
    return reply(InvitationOut.from_row(row), redirect_to=url_for(".invitations"))
