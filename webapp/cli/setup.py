"""`./rowsmith setup --email E --workspace NAME`: a workspace and its owner, without the demo.

The way into a new production service: schema first (`./rowsmith migrate`), then this, which prints a one-time link.
"""

from __future__ import annotations

import argparse

from sqlalchemy import select

from webapp import limits
from webapp.access import actors
from webapp.access.models import Membership, User, Workspace
from webapp.accounts.services import people, workspaces
from webapp.cli import operator, sign_in
from webapp.cli.datadir import CliError
from webapp.config import Settings
from webapp.extensions import db


def run(arguments: argparse.Namespace) -> int:
    """Create it, and print only the link to standard output, for scripts."""
    with operator.application(arguments.data_dir) as settings:
        print(make(settings, arguments.email, arguments.workspace, arguments.plan, arguments.project))
    return 0


def make(settings: Settings, email: str, name: str, plan: str, project: str) -> str:
    """Create a workspace on a plan with a team, a project and its owner, who may have an account already. Return the
    owner's one-time sign-in link. Raise CliError if they own a workspace with this name, or PUBLIC_URL is not set."""
    if not settings.public_url:
        raise CliError("Set PUBLIC_URL, so that links have an address.")
    name, project = _named(name, "--workspace"), _named(project, "--project")
    email = people.clean_email(email)
    user = people.find_user(email)
    if user is not None:
        _refuse_twice(user, name)
    if user is None:
        user = people.create_user(actors.system(), email)
    workspace = workspaces.create_workspace(actors.system(), name, plan=plan, owner=user)
    team = workspaces.create_team(actors.system(workspace.id), "Everybody")
    workspaces.create_project(actors.system(workspace.id, team_id=team.id), project, team_id=team.id)
    return sign_in.link(settings, user)


def _named(text: str, option: str) -> str:
    text = text.strip()
    if not 1 <= len(text) <= limits.MAX_NAME_CHARS or not text.isprintable():
        raise CliError(f"{option} is a name of 1 to {limits.MAX_NAME_CHARS} characters.")
    return text


def _refuse_twice(user: User, name: str) -> None:
    """Repeating the command does not create a second workspace."""
    mine = select(Membership.workspace_id).where(Membership.user_id == user.id, Membership.role == "owner")
    same = select(Workspace.id).where(Workspace.id.in_(mine), Workspace.name == name).limit(1)
    if (found := db.session.scalar(same)) is not None:
        raise CliError(
            f"{user.email} owns a workspace {name} already ({found}): ./rowsmith sign-in {user.email} prints a link."
        )
