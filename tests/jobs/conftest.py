"""An application with a new database file, a clock that tests control, and exports to run."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import redis
import sqlalchemy as sa
from flask import Flask

from tests.conftest import SECRET_KEY, shared_app
from tests.jobs.pushing import Pushing, connect
from webapp import limits
from webapp.access.models import Project, Team, Workspace
from webapp.config import Settings
from webapp.exports.models import Export
from webapp.extensions import db, redis_client, write_session


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


def worker_environment(redis_url: str, folder: Path) -> dict[str, str]:
    """The environment of a worker process on the SQLite database of a data folder."""
    return {
        "PATH": os.environ["PATH"],
        "SECRET_KEY": SECRET_KEY,
        "REDIS_URL": redis_url,
        "ROWSMITH_DATA_DIR": str(folder),
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
    }


@pytest.fixture
def environment(shared_redis: str, data_dir: Path) -> dict[str, str]:
    """The environment of a worker process on the test's database."""
    return worker_environment(shared_redis, data_dir)


@pytest.fixture
def app(
    environment: dict[str, str], applications: dict[Settings, Flask], empty_database: Path
) -> Iterator[Flask]:
    settings = Settings.from_env(environment)
    if settings.is_sqlite:
        shutil.copyfile(empty_database, settings.data_dir / "rowsmith.db")
    with shared_app(settings, applications) as application, application.app_context():
        if not settings.is_sqlite:
            db.create_all()
        yield application
        db.session.remove()


@pytest.fixture
def client(app: Flask) -> redis.Redis:
    return redis_client()


@pytest.fixture
def new_export(app: Flask, clock: FakeClock) -> Callable[..., str]:
    """Makes a queued export (or one with the columns given) and returns its id."""

    with write_session() as session:
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
        with write_session() as session:
            stored = {"quota": {"rows": 10, "second": 0}}
            export = Export(
                **{"format": "csv", "count": 10, "created_at": clock(), "request": stored, **place, **columns}
            )
            session.add(export)
            session.flush()
            return export.id

    return make


@pytest.fixture
def row(app: Flask) -> Callable[[str], Export]:
    """The row of an export as it is now."""

    def read(export_id: str) -> Export:
        with write_session() as session:
            return session.get_one(Export, export_id)

    return read


# --- Pushes ---------------------------------------------------------------------------------------------------

TABLES = """
CREATE TABLE people (id bigint PRIMARY KEY, name varchar(60) NOT NULL, age int CHECK (age < 90));
CREATE TABLE staff (id {identity}, name varchar(60) CHECK (name <> 'bad'), boss bigint REFERENCES staff (id))
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request, tmp_path):
    """The address of an empty target with two tables."""
    if request.param == "sqlite":
        plain = f"sqlite:///{tmp_path}/target/data.db"
        (tmp_path / "target").mkdir()
        engine, identity = sa.create_engine(plain), "integer PRIMARY KEY"
    else:
        url = request.getfixturevalue("postgres_url")
        plain = sa.make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        engine = sa.create_engine(sa.make_url(url).set(drivername="postgresql+psycopg"))
        identity = "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
    with engine.begin() as connection:
        for statement in TABLES.format(identity=identity).split(";"):
            connection.exec_driver_sql(statement)
    yield plain, engine
    engine.dispose()


@pytest.fixture
def pushing(app, target, monkeypatch):
    result = Pushing(app, monkeypatch)
    result.connect = lambda: connect(target[0])
    return result


@pytest.fixture
def ask(target):
    """What a query at the target answers."""

    def query(statement: str) -> list[tuple]:
        with target[1].begin() as connection:
            return [tuple(row) for row in connection.exec_driver_sql(statement)]

    return query


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(limits, "PUSH_CHUNK_ROWS", 100)
    monkeypatch.setattr(limits, "PUSH_FIRST_ROWS", 50)
