"""An application on a database file of its own, a clock that tests move, and exports to be done."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import redis
from flask import Flask

from tests.conftest import SECRET_KEY
from webapp import create_app
from webapp.config import Settings
from webapp.extensions import db, redis_client, writing
from webapp.models import Export, Project, Team, Workspace


class FakeClock:
    """A present that tests move."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 11, 21, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.moment

    def forward(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def environment(shared_redis: str, tmp_path: Path) -> dict[str, str]:
    """The environment of a worker process on the test's database."""
    return {
        "PATH": os.environ["PATH"],
        "SECRET_KEY": SECRET_KEY,
        "REDIS_URL": shared_redis,
        "ROWSMITH_DATA_DIR": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
    }


@pytest.fixture
def app(environment: dict[str, str]) -> Iterator[Flask]:
    application = create_app(Settings.from_env(environment))
    with application.app_context():
        db.create_all()
        yield application
        db.session.remove()
        db.engine.dispose()
        redis_client().flushall()
        redis_client().close()


@pytest.fixture
def client(app: Flask) -> redis.Redis:
    return redis_client()


@pytest.fixture
def new_export(app: Flask, clock: FakeClock) -> Callable[..., str]:
    """Makes a queued export (or one with the columns given) and returns its id."""

    with writing() as session:
        workspace = Workspace(name="Acme")
        session.add(workspace)
        session.flush()
        team = Team(name="Team", workspace_id=workspace.id)
        session.add(team)
        session.flush()
        project = Project(name="Project", workspace_id=workspace.id, team_id=team.id)
        session.add(project)
        session.flush()
        place = {"workspace_id": workspace.id, "team_id": team.id, "project_id": project.id}

    def make(**columns: object) -> str:
        with writing() as session:
            held = {"quota": {"rows": 10, "second": 0}}
            export = Export(
                **{"format": "csv", "count": 10, "created_at": clock(), "request": held, **place, **columns}
            )
            session.add(export)
            session.flush()
            return export.id

    return make


@pytest.fixture
def row(app: Flask) -> Callable[[str], Export]:
    """The row of an export as it is now."""

    def read(export_id: str) -> Export:
        with writing() as session:
            return session.get_one(Export, export_id)

    return read
