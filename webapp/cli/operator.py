"""Shared by the operator's commands: the application for a data folder or the environment, and the selected workspace
and user."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import redis
from sqlalchemy import select
from sqlalchemy.exc import OperationalError, ProgrammingError

from webapp import create_app
from webapp.access import actors
from webapp.access.actors import Actor
from webapp.access.models import Membership, Project, User, Workspace
from webapp.accounts.services import people
from webapp.backup import revisions, upgrade
from webapp.backup.errors import UpkeepError
from webapp.cli import upkeep
from webapp.cli.datadir import CliError, DataDir, resolve
from webapp.config import Settings
from webapp.errors import ApiError
from webapp.extensions import db


@contextmanager
def application(data_dir: str | None, *, running: bool = True) -> Iterator[Settings]:
    """The application's context; `running`: only where Redis is known. Refusals of the services become one sentence
    (`CliError`)."""
    data = DataDir(resolve(data_dir, os.environ))
    env = data.environment(os.environ)
    if running and "REDIS_URL" not in env:
        raise CliError(
            f"Rowsmith is not running on the data folder {data.path}: start it with ./rowsmith up, name another "
            "folder with --data-dir, or set DATABASE_URL, REDIS_URL and SECRET_KEY."
        )
    upkeep.installed(data, env)
    settings = Settings.from_env(env)
    try:
        with create_app(settings, routes=False).app_context():
            yield settings
    except ApiError as error:
        raise CliError(_sentence(error)) from error
    except redis.RedisError as error:
        raise CliError("Redis does not answer: start it (./rowsmith up), then try again.") from error
    except (OperationalError, ProgrammingError) as error:
        if "locked" in str(error.orig):  # SQLite, after it has waited
            raise CliError("The database is locked by another process. Try again.") from error
        if (was := _other_revision(settings)) is not None:
            raise CliError(
                f"The database is at revision {was}, this release is of {revisions.head()}: ./rowsmith upgrade."
            ) from error
        raise CliError(
            "The database does not answer or has no tables yet: see ./rowsmith migrate."
        ) from error


def _other_revision(settings: Settings) -> str | None:
    """Return the revision of the database if it is not this release's."""
    try:
        was = upgrade.found(settings)
    except UpkeepError:
        return None
    return was if was != revisions.head() else None


def _sentence(error: ApiError) -> str:
    faults = error.details.get("fields") or []
    return " ".join(fault["message"] for fault in faults) or error.message


@dataclass(frozen=True, slots=True)
class Owner:
    """A user and the workspace, team and project their things go to."""

    user: User
    actor: Actor  # the service itself, in that workspace and project


def owner(email: str | None = None, project_id: str | None = None) -> Owner:
    """A user by their address, or the owner of the oldest workspace; in the project named, or the oldest."""
    statement = select(Membership).order_by(Membership.workspace_id, Membership.id).limit(1)
    if email:
        user = people.find_user(email)
        if user is None:
            raise CliError(f"There is no user with the address {email}.")
        statement = statement.where(Membership.user_id == user.id)
    else:
        statement = statement.where(Membership.role == "owner")
    member = db.session.scalars(statement).first()
    if member is None:
        raise CliError(f"{email} is a member of no workspace." if email else "There is no workspace yet.")
    projects = select(Project).where(
        Project.workspace_id == member.workspace_id, Project.deleted_at.is_(None)
    )
    chosen = projects.where(Project.id == project_id) if project_id else projects.order_by(Project.id)
    project = db.session.scalars(chosen.limit(1)).first()
    if project is None:
        raise CliError(
            f"There is no project {project_id} in that workspace." if project_id else "There is no project."
        )
    actor = actors.system(member.workspace_id, project.id, project.team_id)
    return Owner(db.session.get_one(User, member.user_id), actor)


def workspace(named: str) -> Workspace:
    """A workspace by its id or its name."""
    statement = select(Workspace).where((Workspace.id == named) | (Workspace.name == named)).limit(2)
    found = db.session.scalars(statement).all()
    if len(found) != 1:
        raise CliError(
            f"More than one workspace is called {named}: use its id."
            if found
            else f"There is no workspace {named}."
        )
    return found[0]
