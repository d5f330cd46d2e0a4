"""Users, members, API keys, and whether a key is valid; projects and teams."""

from __future__ import annotations

from typing import Any, Final

from flask import Response, current_app, g, request, url_for
from sqlalchemy import Select, select

from webapp import clock, limits
from webapp.access import tenancy
from webapp.access.actors import KEY_SCOPES, Actor
from webapp.access.models import ApiKey, Membership, Project, Team, User
from webapp.accounts.services import api_keys, people, workspaces
from webapp.accounts.views import api_keys as api_key_routes
from webapp.accounts.views import workspace
from webapp.accounts.views.projects import ProjectIn, ProjectOut, ProjectPatch, TeamIn, TeamOut
from webapp.compat.views.routing import ROOT, PassThroughInput, call, camelize_keys, parse_native
from webapp.errors import ApiError, Fault, did_you_mean, validation_error
from webapp.extensions import db
from webapp.web.inputs import Input
from webapp.web.responses import check_if_match, reply

MEMBER = f"{ROOT}/teamMembers/<member_id>"
KEY = f"{ROOT}/apiKeys/<key_id>"
_WORK_SCOPES: Final = ["read", "write", "generate", "push", "run"]
# The clients' names of scopes. The last ones also name the level, which is determined by the key's project here.
_SCOPES: Final[dict[str, list[str] | None]] = {
    "read": ["read"], "read_write": _WORK_SCOPES, "scenario": _WORK_SCOPES,
    "user": None, "team": None, "project": None, "workspace": None,
}  # fmt: skip
_ROLES: Final = {
    "MEMBER": "editor",
    "VIEWER": "viewer",
    "EDITOR": "editor",
    "ADMIN": "admin",
    "OWNER": "owner",
}


class _KeyName(Input):
    name: workspace.Name


# --- Users --------------------------------------------------------------------------------------------------


def user_out(user: User) -> dict[str, Any]:
    """Return a user in the compatible format."""
    first, _, last = user.name.partition(" ")
    return {
        "id": user.id,
        "email": user.email,
        "name": user.name,
        "firstName": first,
        "lastName": last,
        "avatar": None,
        "picture": None,
        "autoSave": None,
        "creationPurpose": "",
        "createdAt": clock.to_text(user.created_at),
        "lastLogin": "",
    }


def _current_user(actor: Actor) -> User:
    if actor.user_id is None:
        raise tenancy.not_found("user", "me")
    return db.session.get_one(User, actor.user_id)


@call(f"{ROOT}/users", scope="member")
def users_list(actor: Actor) -> Response:
    """List the people of the workspace."""
    members = tenancy.listing(actor, Membership).with_only_columns(Membership.user_id)
    found = db.session.scalars(
        select(User).where(User.id.in_(members)).order_by(User.id).limit(limits.COMPAT_LIST_ROWS)
    )
    return reply([user_out(user) for user in found])


@call(f"{ROOT}/users/me", scope="self")
def user_me(actor: Actor) -> Response:
    """The authenticated user."""
    context = {"teamId": actor.team_id, "projectId": actor.project_id, "role": actor.role}
    return reply({**user_out(_current_user(actor)), **context})


@call(f"{ROOT}/users/<user_id>", ["PUT", "PATCH"], scope="self", body=PassThroughInput)
def user_change(actor: Actor, user_id: str, body: PassThroughInput) -> Response:
    """Change your own name. You can't change the name of others."""
    if user_id not in (actor.user_id, "me"):
        raise tenancy.not_found("user", user_id)
    if actor.scopes is not None and "admin" not in actor.scopes:
        message = "This key is missing the `admin` scope, which changing an account requires."
        raise ApiError("forbidden", message, {"needs": "admin", "scope": "admin"})
    user, values = _current_user(actor), body.native_values()
    current = user_out(user)
    first, last = values.get("first_name", current["firstName"]), values.get("last_name", current["lastName"])
    name = values.get("name", f"{first} {last}")
    people.rename_self(actor, parse_native(_KeyName, {"name": name}).name)
    return reply(user_out(_current_user(actor)))


# --- Members ------------------------------------------------------------------------------------------------


def member_out(actor: Actor, member: Membership, team_id: str | None = None) -> dict[str, Any]:
    """Return a membership in the compatible format. One of the whole workspace is shown with a team: the given one, or
    the caller's."""
    role = "MEMBER" if member.role == "editor" else member.role.upper()
    team = member.team_id or team_id or actor.team_id or ""
    return {"id": member.id, "userId": member.user_id, "teamId": team, "role": role}


def _requested_role(values: dict[str, Any]) -> str:
    name = str(values.get("role") or "MEMBER").upper()
    if name not in _ROLES:
        hint = did_you_mean(name, _ROLES) or f"There are {', '.join(_ROLES)}."
        raise validation_error([Fault("role", "not_allowed", "There is no such role.", hint)])
    return _ROLES[name]


@call(f"{ROOT}/teamMembers", scope="member")
def members_list(actor: Actor) -> Response:
    """List the members of the workspace or of a team."""
    statement = (
        tenancy.listing(actor, Membership).order_by(Membership.id.desc()).limit(limits.COMPAT_LIST_ROWS)
    )
    return reply([member_out(actor, membership) for membership in db.session.scalars(statement)])


@call(f"{ROOT}/teamMembers", ["POST"], scope="admin", body=PassThroughInput)
def member_add(actor: Actor, body: PassThroughInput) -> Response:
    """Give a user of the workspace a role in a team."""
    # The user id is the subject of this call, not a reference sent back by the client.
    user_id, values = str((body.model_extra or {}).get("userId") or ""), body.native_values()
    statement = tenancy.listing(actor, Membership).where(Membership.user_id == user_id)
    if db.session.scalars(statement).first() is None:
        raise tenancy.not_found("user", user_id)
    team = _requested_team(actor, values)
    member = people.add_member(
        actor, db.session.get_one(User, user_id), _requested_role(values), team_id=team
    )
    return reply(member_out(actor, member))


def _requested_team(actor: Actor, values: dict[str, Any]) -> str | None:
    team_id = values.get("team_id")
    return tenancy.get(actor, Team, str(team_id), "admin").id if team_id else None


@call(
    f"{ROOT}/teamMembers/invite", ["POST"], scope="admin", body=PassThroughInput, status=201, idempotent=True
)
def member_invite(actor: Actor, body: PassThroughInput) -> Response:
    """Invite an address. The service sends no mail: the response contains the link to share."""
    values = body.native_values()
    email = values.get("email")
    if not isinstance(email, str):
        raise validation_error([Fault("email", "missing", "This field is required.")])
    row, token = people.invite(actor, email, _requested_role(values), team_id=_requested_team(actor, values))
    role = "MEMBER" if row.role == "editor" else row.role.upper()
    # Not accepted yet: there is no user, and so no name.
    pending = {
        "id": row.id, "userId": "", "teamId": row.team_id or actor.team_id or "", "role": role, "email": row.email,
        "firstName": None, "lastName": None,
    }  # fmt: skip
    origin = current_app.config["SETTINGS"].public_url or request.host_url.rstrip("/")
    link = str(origin) + url_for("session.invitation", token=token)
    return reply({"success": True, "newMember": pending, "url": link}, status=201)


@call(MEMBER, ["PUT"], scope="admin", body=PassThroughInput)
def member_change(actor: Actor, member_id: str, body: PassThroughInput) -> Response:
    """Give a member another role."""
    row = tenancy.get(actor, Membership, member_id, "admin", lock=True)
    people.change_role(actor, row, _requested_role(body.native_values()))
    return reply(member_out(actor, row))


@call(MEMBER, ["DELETE"], scope="admin")
def member_remove(actor: Actor, member_id: str) -> Response:
    """Take a membership away."""
    people.remove(actor, tenancy.get(actor, Membership, member_id, "admin", lock=True))
    return reply({"message": "Member removed"})


# --- Keys ---------------------------------------------------------------------------------------------------


def key_out(key: ApiKey, text: str | None = None) -> dict[str, Any]:
    """Return a key in the form of the clients; its secret is shown once, when it is created."""
    data = api_key_routes.as_dict(key)
    scopes = set(data["scopes"] or _WORK_SCOPES)
    role = "READ" if scopes == {"read"} else "READ_WRITE"
    return {
        **camelize_keys(data),
        "key": text or data["prefix"],
        "role": role,
        "teamId": key.team_id,
        "userId": key.created_by,
        "updatedAt": data["created_at"],
    }


@call(f"{ROOT}/apiKeys", scope="self")
def keys_list(actor: Actor) -> Response:
    """List the valid keys: the caller's own, or all of the workspace for admins."""
    statement = api_keys.listing(actor).where(ApiKey.revoked_at.is_(None)).order_by(ApiKey.id.desc())
    return reply([key_out(key) for key in db.session.scalars(statement.limit(limits.COMPAT_LIST_ROWS))])


@call(f"{ROOT}/apiKeys", ["POST"], scope="self", body=PassThroughInput, idempotent=True)
def key_create(actor: Actor, body: PassThroughInput) -> Response:
    """Create a key. A proposed secret is ignored; the generated one is only in this response."""
    values = body.native_values()
    parsed = parse_native(_KeyName, {"name": values.get("name") or "API key"})
    key, text = api_keys.create(
        actor,
        parsed.name,
        api_version=g.api_version,
        scopes=_parse_scopes(values.get("scope")),
        project_id=values.get("project_id") if isinstance(values.get("project_id"), str) else None,
    )
    return reply(key_out(key, text))


def _parse_scopes(value: Any) -> list[str] | None:
    if value is None or value == "":
        return None
    plain = str(value).strip().lower()
    if plain in _SCOPES:
        return _SCOPES[plain]
    if plain in KEY_SCOPES:
        return [plain]
    choices = [*KEY_SCOPES, *(name.upper() for name in _SCOPES)]
    hint = did_you_mean(plain, choices) or f"There are {', '.join(choices)}."
    raise validation_error([Fault("scope", "not_allowed", "There is no such scope.", hint)])


@call(KEY, ["PUT"], scope="self", body=PassThroughInput)
def key_change(actor: Actor, key_id: str, body: PassThroughInput) -> Response:
    """Rename a key. The key itself cannot be changed: create a new one."""
    key = api_keys.get(actor, key_id, lock=True)
    name = body.native_values().get("name")
    if name is not None:
        workspaces.update_attributes(actor, key, {"name": parse_native(_KeyName, {"name": name}).name})
    return reply(key_out(key))


@call(KEY, ["DELETE"], scope="self")
def key_delete(actor: Actor, key_id: str) -> Response:
    """Revoke a key."""
    key = api_keys.get(actor, key_id, lock=True)
    api_keys.revoke(actor, key)
    return reply({"message": f"Key {key.name} revoked"})


@call(f"{ROOT}/validate/apiKey", scope="self")
def validate(actor: Actor) -> Response:
    """Return that the key is valid: other requests get 401."""
    context = {"projectId": actor.project_id, "teamId": actor.team_id, "role": actor.role}
    return reply({"message": "API key is valid", "valid": True, **context})


# --- Projects and teams -------------------------------------------------------------------------------------

PROJECT = f"{ROOT}/projects/<project_id>"
TEAM = f"{ROOT}/teams/<team_id>"


def project_out(project: Project) -> dict[str, Any]:
    """Return a project in the compatible format."""
    return {**camelize_keys(ProjectOut.from_row(project)), "avatar": None, "createdBy": ""}


def team_out(team: Team) -> dict[str, Any]:
    """Return a team in the compatible format."""
    return {**camelize_keys(TeamOut.from_row(team)), "avatar": None}


def _newest_rows(statement: Select[Any], column: Any) -> list[Any]:
    return list(db.session.scalars(statement.order_by(column.desc()).limit(limits.COMPAT_LIST_ROWS)))


@call(f"{ROOT}/projects", scope="member")
def projects_list(actor: Actor) -> Response:
    """List the projects that one reaches."""
    found = _newest_rows(tenancy.listing(actor, Project, project=False), Project.id)
    return reply([project_out(item) for item in found])


@call(f"{ROOT}/projects", ["POST"], scope="admin", body=PassThroughInput, idempotent=True)
def project_create(actor: Actor, body: PassThroughInput) -> Response:
    """Create a project."""
    parsed = parse_native(ProjectIn, body.native_values())
    project = workspaces.create_project(
        actor, parsed.name, team_id=parsed.team_id or None, description=parsed.description
    )
    return reply(project_out(project))


@call(PROJECT, scope="member")
def project_show(actor: Actor, project_id: str) -> Response:
    """Get a project."""
    return reply(project_out(tenancy.get(actor, Project, project_id, "member")), send_etag=True)


@call(PROJECT, ["PUT"], scope="admin", body=PassThroughInput)
def project_change(actor: Actor, project_id: str, body: PassThroughInput) -> Response:
    """Change a project's name or description."""
    row = tenancy.get(actor, Project, project_id, "admin", lock=True)
    check_if_match(project_out(row))
    values = body.native_values()
    if values.pop("team_id", row.team_id) not in (row.team_id, ""):
        raise validation_error([Fault("teamId", "not_allowed", "A project cannot be moved to another team.")])
    changes = parse_native(ProjectPatch, values).model_dump(exclude_unset=True)
    if changes:
        workspaces.update_attributes(actor, row, changes)
    return reply(project_out(row))


@call(PROJECT, ["DELETE"], scope="admin")
def project_delete(actor: Actor, project_id: str) -> Response:
    """Move a project with all its contents to the trash."""
    row = tenancy.get(actor, Project, project_id, "admin", lock=True)
    workspaces.delete_project(actor, row)
    return reply({"message": f"Project {row.name} deleted"})


@call(f"{ROOT}/teams", scope="member")
def teams_list(actor: Actor) -> Response:
    """List the teams of the caller."""
    return reply(
        [team_out(row) for row in _newest_rows(tenancy.listing(actor, Team, project=False), Team.id)]
    )


@call(f"{ROOT}/teams", ["POST"], scope="admin", body=PassThroughInput, idempotent=True)
def team_create(actor: Actor, body: PassThroughInput) -> Response:
    """Create a team."""
    return reply(team_out(workspaces.create_team(actor, parse_native(TeamIn, body.native_values()).name)))


@call(TEAM, ["PUT"], scope="admin", body=PassThroughInput)
def team_change(actor: Actor, team_id: str, body: PassThroughInput) -> Response:
    """Rename a team."""
    row = tenancy.get(actor, Team, team_id, "admin", lock=True)
    check_if_match(team_out(row))
    workspaces.update_attributes(actor, row, {"name": parse_native(TeamIn, body.native_values()).name})
    return reply(team_out(row))


@call(f"{ROOT}/setup/teams", ["POST"], scope="admin", body=PassThroughInput)
def team_setup(actor: Actor, body: PassThroughInput) -> Response:
    """Create a team with its first project. The caller belongs to it through their role in the workspace."""
    values = body.native_values()
    project = values.pop("project_name", None) or "Default"
    team = workspaces.create_team(actor, parse_native(TeamIn, values).name)
    created = workspaces.create_project(
        actor, parse_native(ProjectIn, {"name": project}).name, team_id=team.id
    )
    membership = db.session.scalars(
        tenancy.listing(actor, Membership).where(
            Membership.user_id == actor.user_id, Membership.team_id.is_(None)
        )
    ).first()
    return reply(
        {
            "team": team_out(team),
            "project": project_out(created),
            "teamMember": member_out(actor, membership, team.id) if membership else None,
        }
    )
