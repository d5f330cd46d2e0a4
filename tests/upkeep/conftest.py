"""Installations: a data folder with its keys, a database of either kind at a revision, a storage."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.conftest import SECRET_KEY, VAULT_KEY, _database
from webapp import create_app, storage
from webapp.backup import database
from webapp.backup.backup import create_engine
from webapp.backup.restore import checkpoint_wal, with_driver
from webapp.cli import accounts, audit, backup, doctor
from webapp.cli.arguments import parse
from webapp.config import Settings


@dataclass
class Place:
    """One installation: its environment, as a process would have it, and ways to look into it."""

    env: dict[str, str]
    data: Path
    patch: pytest.MonkeyPatch

    @property
    def settings(self) -> Settings:
        return Settings.from_env({"SECRET_KEY": SECRET_KEY, "VAULT_KEYS": VAULT_KEY, **self.env})

    def put_keys(self) -> None:
        self.data.mkdir(exist_ok=True)
        (self.data / "keys.env").write_text(f"SECRET_KEY={SECRET_KEY}\nVAULT_KEYS={VAULT_KEY}\n")

    def bring(self, revision: str = "head") -> None:
        """Its database at a revision, and its keys."""
        self.put_keys()
        database.migrate_to(self.settings, revision)

    def connect(self) -> Any:
        """A transaction on its database."""
        return _Opened(create_engine(with_driver(self.settings.database_url)))

    @property
    def store(self) -> storage.Storage:
        return storage.from_url(self.settings.storage_url, self.settings.s3_options)

    def run(self, *words: str) -> int:
        """A command of ours in this process, in this installation's environment."""
        arguments, _ = parse([*words, "--data-dir", str(self.data)])
        with self.patch.context() as patch:
            for name in ("SECRET_KEY", "VAULT_KEYS", "DATABASE_URL", "REDIS_URL", "STORAGE_URL"):
                patch.delenv(name, raising=False)
            for name, value in self.env.items():
                patch.setenv(name, value)
            return _commands()[arguments.command](arguments)

    def app(self) -> Any:
        return create_app(self.settings, routes=False)


class _Opened:
    def __init__(self, made: sa.Engine) -> None:
        self._made = made

    def __enter__(self) -> sa.Connection:
        self._held = self._made.begin()
        return self._held.__enter__()

    def __exit__(self, *raised: Any) -> None:
        self._held.__exit__(*raised)
        self._made.dispose()


def _commands() -> dict[str, Callable[[argparse.Namespace], int]]:
    return {
        "audit": audit.run,
        "backup": backup.run_backup,
        "doctor": doctor.run,
        "restore": backup.run_restore,
        "upgrade": backup.run_upgrade,
        "workspace": accounts.run_workspace,
    }


@pytest.fixture
def new_place(
    tmp_path: Path, shared_redis: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Place]]:
    """`new_place("sqlite")`: an empty installation, without keys."""
    opened, number = [], 0

    def make(kind: str, **env: str) -> Place:
        nonlocal number
        number += 1
        data = tmp_path / f"place{number}"
        data.mkdir()
        own = {"ROWSMITH_DATA_DIR": str(data), "REDIS_URL": shared_redis}
        if kind == "postgresql":
            database = _database()
            own["DATABASE_URL"] = database.__enter__()
            opened.append(database)
        return Place({**own, **env}, data, monkeypatch)

    yield make
    for item in opened:
        item.__exit__(None, None, None)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a backup goes."""
    return tmp_path / "backup.zip"


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory, shared_redis: str) -> Path:
    """A database file at this release's revision, made once; tests work on copies."""
    folder = tmp_path_factory.mktemp("migrated")
    env = {"SECRET_KEY": SECRET_KEY, "VAULT_KEYS": VAULT_KEY, "ROWSMITH_DATA_DIR": str(folder)}
    database.migrate_to(Settings.from_env({**env, "REDIS_URL": shared_redis}))
    checkpoint_wal(folder / "rowsmith.db")
    return folder / "rowsmith.db"


@pytest.fixture
def place(new_place: Callable[..., Place], migrated: Path) -> Place:
    """An installation on SQLite, with its keys and no rows."""
    result = new_place("sqlite")
    result.put_keys()
    shutil.copyfile(migrated, result.data / "rowsmith.db")
    return result
