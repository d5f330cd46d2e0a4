"""Shared by the operator's commands: the application for a data folder or the environment, and the selected workspace
and user."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import redis
from sqlalchemy import select
from sqlalchemy.exc import OperationalError, ProgrammingError

from webapp import clock, create_app, limits
from webapp.access import actors
from webapp.access.actors import Actor
from webapp.access.models import Membership, Project, User, Workspace
from webapp.accounts.services import people
from webapp.backup import backup, database
from webapp.backup.archive import BackupError
from webapp.cli.datadir import CliError, DataDir, resolve
from webapp.config import Settings
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.monitoring import health

# Shared by backup, restore and upgrade: the application for a data folder whose service is not running, and messages.


def resolve_path(name: str) -> Path:
    """Return the path of a file argument, relative to the current folder of the user."""
    return Path(os.environ.get("ROWSMITH_CALLER_DIR") or Path.cwd(), Path(name).expanduser()).absolute()


@contextmanager
def as_cli_errors() -> Iterator[None]:
    """Convert `BackupError` to `CliError`."""
    try:
        yield
    except BackupError as error:
        raise CliError(str(error)) from error


def require_installed(data: DataDir, env: Mapping[str, str]) -> None:
    """Raise CliError if nothing was ever started there: a mistyped name must not create an installation."""
    if "SECRET_KEY" not in env:
        raise CliError(
            f"There is no installation in {data.path}: specify its data folder with --data-dir, or set DATABASE_URL, "
            "SECRET_KEY and VAULT_KEYS to its values."
        )


@contextmanager
def environment_context(env: Mapping[str, str]) -> Iterator[Settings]:
    """Enter the application's context for an environment. Errors of a backup become a `CliError`."""
    settings = Settings.from_env(env)
    with create_app(settings, routes=False).app_context(), as_cli_errors():
        try:
            yield settings
        finally:
            db.session.remove()
            db.engine.dispose()


@contextmanager
def ensure_stopped(data: DataDir, env: Mapping[str, str]) -> Iterator[None]:
    """Ensure that the service is not running: lock the data folder against `up`, and check that Redis, if it is
    running, has had no worker heartbeat for a while. Raises CliError otherwise."""
    data.prepare()
    data.lock("then try again")
    try:
        if url := env.get("REDIS_URL"):
            _check_no_heartbeat(url)
        yield
    finally:
        data.release()


def _check_no_heartbeat(url: str) -> None:
    client = redis.Redis.from_url(
        url, socket_timeout=limits.PROBE_SECONDS, socket_connect_timeout=limits.PROBE_SECONDS
    )
    since = clock.epoch() - limits.LEASE_SECONDS
    try:
        parts = (health.WORKER, health.RUNNER, health.SWEEPER)
        alive = [part for part in parts if health.count_alive(client, part, since)]
    except redis.RedisError:
        return  # required for all work
    finally:
        client.close()
    if alive:
        raise CliError(
            f"The service is running: a {alive[0]} sent a heartbeat in the last "
            f"{limits.LEASE_SECONDS} seconds. Stop web, "
            "workers, runners and sweeper on every host, wait for that long, then try again."
        )


def megabytes(size: int) -> str:
    """Return a size in MB as text."""
    return f"{size / limits.MB:,.1f} MB"


@contextmanager
def application_context(data_dir: str | None, *, running: bool = True) -> Iterator[Settings]:
    """Enter the application's context. `running`: require a Redis address. Errors of the services become a
    `CliError`."""
    data = DataDir(resolve(data_dir, os.environ))
    env = data.environment(os.environ)
    if running and "REDIS_URL" not in env:
        raise CliError(
            f"Rowsmith is not running on the data folder {data.path}: start it with ./rowsmith up, specify another "
            "folder with --data-dir, or set DATABASE_URL, REDIS_URL and SECRET_KEY."
        )
    require_installed(data, env)
    settings = Settings.from_env(env)
    try:
        with create_app(settings, routes=False).app_context():
            yield settings
    except ApiError as error:
        faults = error.details.get("fields") or []
        raise CliError(" ".join(fault["message"] for fault in faults) or error.message) from error
    except redis.RedisError as error:
        raise CliError("Redis does not respond: start it (./rowsmith up), then try again.") from error
    except (OperationalError, ProgrammingError) as error:
        if "locked" in str(error.orig):  # SQLite, after it has waited
            raise CliError("The database is locked by another process. Try again.") from error
        revision = None
        with suppress(BackupError):
            revision = backup.current_revision(settings)
        if revision is not None and revision != database.newest_revision():
            raise CliError(
                f"The database is at revision {revision}, but this release needs {database.newest_revision()}: "
                "run ./rowsmith upgrade."
            ) from error
        raise CliError(
            "The database does not respond or has no tables yet: see ./rowsmith migrate."
        ) from error


@dataclass(frozen=True, slots=True)
class Owner:
    """A user, with the workspace, team and project for new objects."""

    user: User
    actor: Actor  # the service itself, in that workspace and project


def find_owner(email: str | None = None, project_id: str | None = None) -> Owner:
    """Return a user by address, or the owner of the oldest workspace, in the given project or the oldest one."""
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
        raise CliError(
            f"{email} is not a member of any workspace." if email else "There is no workspace yet."
        )
    projects = select(Project).where(
        Project.workspace_id == member.workspace_id, Project.deleted_at.is_(None)
    )
    chosen = projects.where(Project.id == project_id) if project_id else projects.order_by(Project.id)
    project = db.session.scalars(chosen.limit(1)).first()
    if project is None:
        raise CliError(
            f"There is no project {project_id} in that workspace." if project_id else "There is no project."
        )
    actor = actors.system_actor(member.workspace_id, project.id, project.team_id)
    return Owner(db.session.get_one(User, member.user_id), actor)


def find_workspace(id_or_name: str) -> Workspace:
    """Return a workspace by its id or its name."""
    statement = (
        select(Workspace).where((Workspace.id == id_or_name) | (Workspace.name == id_or_name)).limit(2)
    )
    found = db.session.scalars(statement).all()
    if len(found) != 1:
        raise CliError(
            f"More than one workspace is named {id_or_name}: use the id."
            if found
            else f"There is no workspace {id_or_name}."
        )
    return found[0]
