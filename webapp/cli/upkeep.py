"""Shared by backup, restore and upgrade: the application for a data folder whose service is not running, and
messages."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import redis

from webapp import clock, create_app, limits
from webapp.backup.errors import UpkeepError
from webapp.cli.datadir import CliError, DataDir
from webapp.config import Settings
from webapp.extensions import db
from webapp.monitoring import health


def from_caller(name: str) -> Path:
    """Return the path of a file argument, relative to the current folder of the user."""
    return Path(os.environ.get("ROWSMITH_CALLER_DIR") or Path.cwd(), Path(name).expanduser()).absolute()


@contextmanager
def sentences() -> Iterator[None]:
    """Turns `UpkeepError` into `CliError`."""
    try:
        yield
    except UpkeepError as error:
        raise CliError(str(error)) from error


def installed(data: DataDir, env: Mapping[str, str]) -> None:
    """Raise CliError if nothing was ever started there: a mistyped name must not create an installation."""
    if "SECRET_KEY" not in env:
        raise CliError(
            f"There is no installation in {data.path}: name its data folder with --data-dir, or set DATABASE_URL, "
            "SECRET_KEY and VAULT_KEYS to its own."
        )


@contextmanager
def application(env: Mapping[str, str]) -> Iterator[Settings]:
    """The application's context for an environment. Refusals become one sentence."""
    settings = Settings.from_env(env)
    with create_app(settings, routes=False).app_context(), sentences():
        try:
            yield settings
        finally:
            db.session.remove()
            db.engine.dispose()


@contextmanager
def stopped(data: DataDir, env: Mapping[str, str]) -> Iterator[None]:
    """Ensure that the service is not running: lock the data folder against `up`, and check that Redis, if it is
    running, has had no worker heartbeat for a while. Raises CliError otherwise."""
    data.prepare()
    data.hold("then try again")
    try:
        if url := env.get("REDIS_URL"):
            _unheard(url)
        yield
    finally:
        data.release()


def _unheard(url: str) -> None:
    client = redis.Redis.from_url(
        url, socket_timeout=limits.PROBE_SECONDS, socket_connect_timeout=limits.PROBE_SECONDS
    )
    since = clock.epoch() - limits.LEASE_SECONDS
    try:
        parts = (health.WORKER, health.RUNNER, health.SWEEPER)
        alive = [part for part in parts if health.alive(client, part, since)]
    except redis.RedisError:
        return  # required for all work
    finally:
        client.close()
    if alive:
        raise CliError(
            f"The service runs: a {alive[0]} was heard of in the last {limits.LEASE_SECONDS} seconds. Stop web, "
            "workers, runners and sweeper on every host, wait for that long, then try again."
        )


def megabytes(size: int) -> str:
    """A size for people."""
    return f"{size / limits.MB:,.1f} MB"
