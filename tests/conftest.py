"""Shared fixtures: a Redis for the session, a database with the cast of users for each test, and clients.

Redis is TEST_REDIS_URL or an embedded server; PostgreSQL is TEST_DATABASE_URL or the one on 127.0.0.1:5432, and
tests that need it are skipped without one. TEST_ON=postgresql runs all others on it too.
"""

from __future__ import annotations

import gc
import os
import shutil
import socket
import sqlite3
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
import sqlalchemy as sa
from flask import Flask

from tests.cast import Browser, Cast, Person, Program, gather
from webapp import create_app, limits
from webapp.audit.services import audit_log
from webapp.config import Settings
from webapp.engine.data import vocab_lock
from webapp.extensions import create_redis_client, db, redis_client
from webapp.paths import ROOT
from webapp.row_templates.services import vocabularies
from webapp.web import events

SECRET_KEY = "0123456789abcdefghijklmnopqrstuvwxyzABCDEF"
VAULT_KEY = "MDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1ub3BxcnN0dXY="
CHROMIUM_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--headless",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
ON_POSTGRES = os.environ.get("TEST_ON") == "postgresql"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Collect tests without garbage collection, and exclude them from it later: they exist until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture(scope="session")
def shared_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis for this test process only."""
    value = os.environ.get("TEST_REDIS_URL")
    if value:
        # Tests empty it, so each process of a parallel run uses a separate database.
        worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
        yield urlsplit(value)._replace(path=f"/{worker}").geturl()
        return
    from tests.jobs.waiting import eventually
    from webapp.cli import probe, valkey

    server = valkey.prepare(tmp_path_factory.mktemp("valkey"))
    # PostgreSQL goes with Redis, as in production; it reads the same file of settings.
    program = (ON_POSTGRES and shutil.which("redis-server")) or server.command[0]
    process = subprocess.Popen([program, *server.command[1:]], stdout=subprocess.DEVNULL)
    try:
        eventually(probe.redis_check(server.url))
        yield server.url
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="session", autouse=True)
def immediate_refusals() -> Iterator[None]:
    """A refused sign-in does not wait; `tests/soak/test_login_time.py` measures the real delay."""
    usual, limits.LOGIN_REFUSAL_SECONDS = limits.LOGIN_REFUSAL_SECONDS, 0.0
    yield
    limits.LOGIN_REFUSAL_SECONDS = usual


@pytest.fixture(scope="session", autouse=True)
def hurry() -> Iterator[Callable[[object, object], None]]:
    """SQLite in this process leaves it to the system when its files reach the disk: no test cuts the power."""

    def unsynchronised(dbapi: object, _record: object) -> None:
        if isinstance(dbapi, sqlite3.Connection):
            dbapi.execute("PRAGMA synchronous=OFF").close()

    sa.event.listen(sa.Engine, "connect", unsynchronised)
    yield unsynchronised
    sa.event.remove(sa.Engine, "connect", unsynchronised)


def settings_for(database_url: str, redis_url: str, folder: Path, **more: object) -> Settings:
    """Settings of a test."""
    own = {"secret_key": SECRET_KEY, "vault_keys": (VAULT_KEY,), "data_dir": folder}
    return Settings(database_url=database_url, redis_url=redis_url, **{**own, **more})


@pytest.fixture(scope="session")
def peopled(tmp_path_factory: pytest.TempPathFactory, shared_redis: str) -> tuple[Path, Cast]:
    """A database file with everybody in it, made once; tests work on copies."""
    folder = tmp_path_factory.mktemp("peopled")
    path = folder / "peopled.db"
    app = create_app(settings_for(f"sqlite:///{path}", shared_redis, folder))
    with app.app_context():
        db.create_all()
        cast = gather()
        with db.engine.connect() as connection:
            connection.exec_driver_sql("COMMIT")
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        db.session.remove()
        db.engine.dispose()
    redis = create_redis_client(shared_redis)
    redis.flushdb()
    redis.close()
    return path, cast


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory, shared_redis: str) -> Path:
    """A database file with all tables and no rows, made once; tests work on copies."""
    folder = tmp_path_factory.mktemp("empty")
    path = folder / "empty.db"
    app = create_app(settings_for(f"sqlite:///{path}", shared_redis, folder))
    with app.app_context():
        db.create_all()
        db.engine.dispose()  # the last connection empties the write-ahead log
    return path


@pytest.fixture(scope="session")
def peopled_postgres(
    tmp_path_factory: pytest.TempPathFactory, shared_redis: str
) -> Iterator[tuple[str, Cast]]:
    """The same on PostgreSQL: a database that tests copy."""
    with _database() as url:
        app = create_app(settings_for(url, shared_redis, tmp_path_factory.mktemp("peopled")))
        with app.app_context():
            db.create_all()
            cast = gather()
            db.session.remove()
            db.engine.dispose()
        yield url, cast


@pytest.fixture
def cast(request: pytest.FixtureRequest) -> Cast:
    """Everybody."""
    return request.getfixturevalue("peopled_postgres" if ON_POSTGRES else "peopled")[1]


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Path of the data folder that the tests of this process use one after the other; see `data_dir`."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def data_dir(data_folder: Path) -> Path:
    """An empty data folder. Its path is the same for each test, so that tests can share an application."""
    for path in data_folder.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    return data_folder


@pytest.fixture
def database_url(request: pytest.FixtureRequest, data_dir: Path) -> Iterator[str]:
    """A database of this test's own, with everybody in it: SQLite, or with TEST_ON=postgresql PostgreSQL."""
    if ON_POSTGRES:
        with _database(request.getfixturevalue("peopled_postgres")[0]) as url:
            yield url
        return
    path = data_dir / "rowsmith.db"
    shutil.copyfile(request.getfixturevalue("peopled")[0], path)
    yield f"sqlite:///{path}"


@pytest.fixture
def database_bytes(database_url: str) -> Callable[[], bytes]:
    """All bytes of the database's files."""
    if ON_POSTGRES:
        pytest.skip("looks into the file of SQLite")
    path = database_url.removeprefix("sqlite:///")
    return lambda: b"".join(Path(path + suffix).read_bytes() for suffix in ("", "-wal"))


@pytest.fixture
def settings(database_url: str, shared_redis: str, data_dir: Path) -> Settings:
    """The settings of `app`; a test module overrides this fixture for others."""
    return settings_for(database_url, shared_redis, data_dir)


@pytest.fixture(scope="session")
def applications() -> dict[Settings, Flask]:
    """The applications of this process by their settings: to create one takes longer than most tests."""
    return {}


@pytest.fixture
def app(settings: Settings, applications: dict[Settings, Flask]) -> Iterator[Flask]:
    """The application on this test's database and an empty Redis; see `shared_app`."""
    with shared_app(settings, applications) as result:
        yield result


@contextmanager
def shared_app(settings: Settings, applications: dict[Settings, Flask]) -> Iterator[Flask]:
    """The application with these settings, on an empty Redis. Tests with the same settings share it; what a test
    changes in its configuration, or has it keep in its extensions, is gone with the test."""
    created = applications.get(settings)
    if created is None:
        created = applications[settings] = create_app(settings)
    config, extensions = dict(created.config), dict(created.extensions)
    with created.app_context():
        # A thread of the test before may have connected to the database file that was replaced since.
        db.engine.dispose()
        redis_client().flushdb()
        vocabularies.record_stored(vocab_lock.current_entry().id)  # 14 MB for each test would be slow
    yield created
    close_app(created)
    for stored, before in ((created.config, config), (created.extensions, extensions)):
        stored.clear()
        stored.update(before)


def close_app(app: Flask) -> None:
    """Let go of all an application holds."""
    audit_log.close(app)
    events.close(app)  # its thread could open the database file while the next test replaces it
    with app.app_context():
        db.session.remove()
        db.engine.dispose()
        redis_client().close()


@pytest.fixture
def api(app: Flask) -> Callable[..., Program]:
    """`api(cast.edith)`: a program with Edith's key; `api()`: one without; `api("rws_...")`: with that one."""

    def make(who: Person | str = "", **headers: str) -> Program:
        return Program(app, who if isinstance(who, str) else who.key, **headers)

    return make


@pytest.fixture
def browser(app: Flask) -> Callable[..., Browser]:
    """`browser(cast.edith)`: a browser with Edith signed in; `browser()`: an anonymous browser."""
    return lambda person=None: Browser(app, person)


def _postgres_url() -> str | None:
    value = os.environ.get("TEST_DATABASE_URL")
    if value:
        return value
    try:
        socket.create_connection(("127.0.0.1", 5432), timeout=1).close()
    except OSError:
        return None
    return f"postgresql://{os.environ.get('PGUSER', 'postgres')}@127.0.0.1:5432/postgres"


@contextmanager
def _database(template: str | None = None) -> Iterator[str]:
    """A database on the PostgreSQL of the tests, empty or a copy of another; dropped at the end."""
    value = _postgres_url()
    if value is None:
        pytest.skip("no PostgreSQL: set TEST_DATABASE_URL, or run one on 127.0.0.1:5432")
    server = sa.make_url(value).set(drivername="postgresql+psycopg")
    name = f"rowsmith_test_{uuid.uuid4().hex[:12]}"
    engine = sa.create_engine(server, isolation_level="AUTOCOMMIT")
    source = f" TEMPLATE {sa.make_url(template).database}" if template else ""
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}{source}")
    except sa.exc.OperationalError as error:
        engine.dispose()
        pytest.skip(f"PostgreSQL does not let us in: {error.orig}")
    try:
        yield server.set(drivername="postgresql", database=name).render_as_string(hide_password=False)
    finally:
        with engine.connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
        engine.dispose()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Chromium, driven by Playwright, which can be started only once in a process. TEST_CHROMIUM names another browser
    than the one on the PATH."""
    from playwright.sync_api import sync_playwright

    path = os.environ.get("TEST_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no Chromium: put one on the PATH, or name it in TEST_CHROMIUM")
    if not (ROOT / "static" / "vendor" / "htmx.min.js").is_file():
        pytest.skip("static/vendor is empty: ./rowsmith test fetches it")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=[*CHROMIUM_ARGUMENTS])
        yield running
        running.close()


@pytest.fixture(scope="session")
def shared_postgres() -> Iterator[str]:
    """The database that the tests of this process use one after the other: to create and drop one takes long."""
    with _database() as url:
        yield url


@pytest.fixture
def postgres_url(shared_postgres: str) -> str:
    """An empty PostgreSQL database."""
    with psycopg.connect(shared_postgres, autocommit=True) as connection:
        connection.execute(_EMPTY)
        for (schema,) in connection.execute(_SCHEMAS).fetchall():
            connection.execute(f"DROP SCHEMA {schema} CASCADE")
        connection.execute(_PUBLIC)
    return shared_postgres


_EMPTY = """
DO $$
DECLARE one record;
BEGIN
    PERFORM pg_terminate_backend(pid, 5000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid();
    EXECUTE format('ALTER DATABASE %I CONNECTION LIMIT -1', current_database());
    EXECUTE format('ALTER DATABASE %I RESET ALL', current_database());
    EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database());  -- no test cuts the power
    FOR one IN SELECT evtname FROM pg_event_trigger LOOP EXECUTE format('DROP EVENT TRIGGER %I', one.evtname); END LOOP;
    FOR one IN SELECT extname FROM pg_extension WHERE extname <> 'plpgsql' LOOP
        EXECUTE format('DROP EXTENSION %I CASCADE', one.extname);
    END LOOP;
END $$
"""
_SCHEMAS = r"""
SELECT quote_ident(nspname) FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
"""
_PUBLIC = "CREATE SCHEMA public AUTHORIZATION pg_database_owner; GRANT USAGE ON SCHEMA public TO PUBLIC"
