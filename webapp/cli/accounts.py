"""`./rowsmith setup | sign-in | key | plan | workspace`: workspaces and the ways into them, for the operator.

    setup --email E --workspace NAME      create a workspace and its owner, without the demo, and print a one-time link;
                                          for a new production service, after `./rowsmith migrate`
    sign-in [email]                       print a new one-time sign-in link, also for users without their second factor
    key new | list | revoke               API keys
    plan [workspace] [free|pro|enterprise]  the limits of a workspace
    workspace list | restore              deleted workspaces, which only operators can restore

Links and new keys are the only text on standard output, so that scripts can use them.
"""

from __future__ import annotations

import argparse
import sys
from datetime import timedelta
from typing import Final

from sqlalchemy import select

from webapp import clock, limits
from webapp.access import actors
from webapp.access.models import NEWEST_VERSION, ApiKey, Membership, User, Workspace
from webapp.accounts.services import api_keys, people, sign_in, two_factor, workspaces
from webapp.cli import operator
from webapp.cli.datadir import CliError
from webapp.config import Settings
from webapp.extensions import db


def run_sign_in(arguments: argparse.Namespace) -> int:
    """Print only the link to standard output, for scripts, and messages to standard error."""
    if arguments.reset_two_factor and not arguments.email:
        raise CliError(
            "Specify the user whose second factor to remove: ./rowsmith sign-in <email> --reset-two-factor."
        )
    with operator.application_context(arguments.data_dir) as settings:
        user = operator.find_owner(arguments.email).user
        link = create_sign_in_link(settings, user)
        if arguments.reset_two_factor:
            removed = two_factor.reset(user)
            outcome = "The second factor was removed" if removed else "There was no second factor"
            print(f"{user.email}: {outcome}. The sessions of the user have ended.", file=sys.stderr)
        print(link)
    return 0


def create_sign_in_link(settings: Settings, user: User) -> str:
    """Return a new one-time sign-in link for a user; commits. CliError if the address of the service is unknown."""
    if not settings.public_url:
        raise CliError("Set PUBLIC_URL: links need the address of this service.")
    return f"{settings.public_url}/sign-in/{sign_in.create_link(user)}"


# --- plan ---------------------------------------------------------------------------------------------------

_OWN_LIMITS: Final = ("requests_per_minute", "rows_per_hour", "rows_per_generation")


def run_plan(arguments: argparse.Namespace) -> int:
    """Show the plan, after changing it if requested. New limits apply from the next request on."""
    own_limits = {name: value for name in _OWN_LIMITS if (value := getattr(arguments, name)) is not None}
    if own_limits and arguments.plan != "enterprise":
        raise CliError(
            "Limits can only be set for the enterprise plan: ./rowsmith plan WORKSPACE enterprise ..."
        )
    for name, value in own_limits.items():
        if value > (maximum := getattr(limits.ENTERPRISE_MAX, name)):
            raise CliError(
                f"{value:,} is more than this service supports: --{name.replace('_', '-')} must be at most {maximum:,}."
            )
    with operator.application_context(arguments.data_dir):
        if arguments.workspace is None:
            listed = list(db.session.scalars(select(Workspace).order_by(Workspace.id)))
        else:
            listed = [operator.find_workspace(arguments.workspace)]
        if arguments.plan:
            change_plan(listed[0], arguments.plan, own_limits)
        for workspace in listed:
            now = workspace.limits
            print(
                f"{workspace.id}  {workspace.name}  {workspace.plan}: {now.requests_per_minute:,} requests a minute, "
                f"{now.rows_per_hour:,} rows per hour, {now.rows_per_generation:,} rows per job"
            )
    return 0


def change_plan(workspace: Workspace, plan: str, own_limits: dict[str, int]) -> None:
    """Change the plan and the limits of a workspace, and commit."""
    workspaces.change_workspace(actors.system_actor(workspace.id), {"plan": plan, "own_limits": own_limits})


# --- key ----------------------------------------------------------------------------------------------------


def run_key(arguments: argparse.Namespace) -> int:
    """Run the action. Only the new key is printed to standard output, so that `$(./rowsmith key new)` works."""
    with operator.application_context(arguments.data_dir):
        {"new": _new_key, "list": _list_keys, "revoke": _revoke_key}[arguments.action](arguments)
    return 0


def create_key(owner: operator.Owner, name: str) -> str:
    """Return the text of a new key with all permissions of its user; commits."""
    _, text = api_keys.create(owner.actor, name, api_version=NEWEST_VERSION, user_id=owner.user.id)
    return text


def _new_key(arguments: argparse.Namespace) -> None:
    owner = operator.find_owner(arguments.email, arguments.project)
    expires = clock.now() + timedelta(days=arguments.days) if arguments.days else None
    scopes = [scope.strip() for scope in arguments.scopes.split(",")] if arguments.scopes else None
    key, text = api_keys.create(
        owner.actor,
        arguments.name,
        api_version=NEWEST_VERSION,
        scopes=scopes,
        expires_at=expires,
        user_id=owner.user.id,
    )
    print(text)
    print(f"rowsmith: key {key.handle} of {owner.user.email}; it is shown only once", file=sys.stderr)


def _list_keys(_arguments: argparse.Namespace) -> None:
    statement = select(ApiKey, User).join(User, User.id == ApiKey.created_by)
    statement = statement.where(ApiKey.run_id.is_(None)).order_by(
        ApiKey.id
    )  # the key of a run expires with the run
    for key, user in db.session.execute(statement):
        state = "active"
        if key.revoked_at:
            state = "revoked"
        elif key.expires_at and key.expires_at <= clock.now():
            state = "expired"
        used = clock.to_text(key.last_used_at) or "never used"
        print(f"{key.handle}  {state:<8}  {user.email}  {key.name}  ({used})")


def _revoke_key(arguments: argparse.Namespace) -> None:
    if not arguments.handle:
        raise CliError("Specify the key to revoke. To list the keys, run ./rowsmith key list.")
    handle = arguments.handle.removeprefix("rws_").partition("_")[0]
    key = db.session.scalar(select(ApiKey).where(ApiKey.handle == handle))
    if key is None:
        raise CliError(f"There is no key {handle}.")
    api_keys.revoke(actors.system_actor(key.workspace_id, key.project_id, key.team_id), key)
    print(f"{handle} was revoked")


# --- workspace ----------------------------------------------------------------------------------------------


def run_workspace(arguments: argparse.Namespace) -> int:
    """List all workspaces, deleted ones marked; or restore a deleted one."""
    # The list is also needed without a running service, such as after a restoration.
    with operator.application_context(arguments.data_dir, running=arguments.action != "list"):
        if arguments.action == "list":
            for workspace in db.session.scalars(select(Workspace).order_by(Workspace.id)):
                print(_workspace_line(workspace))
            return 0
        if arguments.workspace is None:
            raise CliError("Specify the workspace to restore: ./rowsmith workspace restore WORKSPACE")
        found = operator.find_workspace(arguments.workspace)
        if found.deleted_at is None:
            raise CliError(f"The workspace {found.name} is not deleted: there is nothing to restore.")
        workspaces.restore_workspace(actors.system_actor(found.id), found)
        print(_workspace_line(found))
    return 0


def _workspace_line(workspace: Workspace) -> str:
    """Return a workspace as one line."""
    state = f"deleted {workspace.deleted_at:%Y-%m-%d %H:%M} UTC" if workspace.deleted_at else workspace.plan
    return f"{workspace.id}  {workspace.name}  {state}"


# --- setup --------------------------------------------------------------------------------------------------


def run_setup(arguments: argparse.Namespace) -> int:
    """Create it, and print only the link to standard output, for scripts."""
    with operator.application_context(arguments.data_dir) as settings:
        print(
            create_workspace(
                settings, arguments.email, arguments.workspace, arguments.plan, arguments.project
            )
        )
    return 0


def create_workspace(settings: Settings, email: str, name: str, plan: str, project: str) -> str:
    """Create a workspace on a plan with a team, a project and its owner, who may have an account already. Return the
    owner's one-time sign-in link. Raise CliError if they own a workspace with this name, or PUBLIC_URL is not set."""
    if not settings.public_url:
        raise CliError("Set PUBLIC_URL: links need the address of this service.")
    name, project = _check_name(name, "--workspace"), _check_name(project, "--project")
    email = people.normalize_email(email)
    user = people.find_user(email)
    if user is None:
        user = people.create_user(actors.system_actor(), email)
    else:  # repeating the command does not create a second workspace
        owned_workspaces = select(Membership.workspace_id).where(
            Membership.user_id == user.id, Membership.role == "owner"
        )
        same = select(Workspace.id).where(Workspace.id.in_(owned_workspaces), Workspace.name == name).limit(1)
        if (found := db.session.scalar(same)) is not None:
            raise CliError(
                f"{user.email} already owns a workspace {name} ({found}): ./rowsmith sign-in {user.email} prints a "
                "link."
            )
    workspace = workspaces.create_workspace(actors.system_actor(), name, plan=plan, owner=user)
    team = workspaces.create_team(actors.system_actor(workspace.id), "Everybody")
    workspaces.create_project(actors.system_actor(workspace.id, team_id=team.id), project, team_id=team.id)
    return create_sign_in_link(settings, user)


def _check_name(text: str, option: str) -> str:
    text = text.strip()
    if not 1 <= len(text) <= limits.MAX_NAME_CHARS or not text.isprintable():
        raise CliError(f"{option} must be a name of 1 to {limits.MAX_NAME_CHARS} characters.")
    return text
