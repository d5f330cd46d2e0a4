"""What tests share: a Redis for the session, a database for each test with everybody in it, ways to speak.

Redis is TEST_REDIS_URL or an embedded server; PostgreSQL is TEST_DATABASE_URL or the one on 127.0.0.1:5432, and
tests that need it are skipped with the reason where there is none. TEST_ON=postgresql runs all others on it too.
"""

from __future__ import annotations

import gc
import os
import shutil
import socket
import sqlite3
import subprocess
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import sqlalchemy as sa
from argon2 import PasswordHasher
from flask import Flask
from jinja2.bccache import Bucket, BytecodeCache

from tests.cast import Browser, Cast, Person, Program, gather
from tests.shared_routes import SharedMap
from webapp import create_app, limits
from webapp.config import Settings
from webapp.engine.data import vocabulary
from webapp.extensions import db, make_redis, redis_client
from webapp.security import passwords
from webapp.services import audit, vocabularies

SECRET_KEY = "0123456789abcdefghijklmnopqrstuvwxyzABCDEF"
VAULT_KEY = "MDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1ub3BxcnN0dXY="
ON_POSTGRES = os.environ.get("TEST_ON") == "postgresql"
# Files of few tests that take long, the longest first: begun last, one of them would keep a single processor busy.
SLOW = (
    "tests/security/test_matrix.py",
    "tests/jobs/test_push.py",
    "tests/cli/test_script.py",
    "tests/cli/test_up.py",
    "tests/jobs/test_push_going_on.py",
    "tests/jobs/test_push_crash.py",
    "tests/security/test_connection_secrets.py",
    "tests/jobs/test_push_http_waits.py",
    "tests/jobs/test_worker.py",
    "tests/views/test_real_tables.py",
    "tests/services/test_audit_seals.py",
    "tests/sdk/test_docs_samples.py",
    "tests/models/test_schema.py",
    "tests/views/test_docs.py",
    "tests/upkeep/test_doctor.py",
)


def pytest_configure(config: pytest.Config) -> None:
    """Each process of a parallel run begins to collect at another file, so that what one has compiled the next reads:
    side by side they would each compile all of it. The order of the tests is made below."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None or config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    left_out = {config.invocation_params.dir / one for one in config.getoption("ignore") or ()}
    files = [
        path
        for path in sorted(Path(__file__).parent.rglob("test_*.py"))
        if left_out.isdisjoint((path, *path.parents))
    ]
    begin = len(files) * int(worker.removeprefix("gw")) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    config.args = [str(path) for path in (*files[begin:], *files[:begin])]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In a parallel run the slow files come first, then those with most tests; each file's tests stay together."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    files = [item.nodeid.split("::")[0] for item in items]
    many, place = Counter(files), {name: at for at, name in enumerate(SLOW)}
    rank = {name: (place.get(name, len(SLOW)), -count, name) for name, count in many.items()}
    items.sort(key=lambda item: rank[item.nodeid.split("::")[0]])


def pytest_collection_finish() -> None:
    """What was collected stays until the end: the collector of garbage need not walk it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def shared_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis of this test process alone."""
    given = os.environ.get("TEST_REDIS_URL")
    if given:
        # Tests empty it, so each process of a parallel run has a database of its own.
        worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
        yield urlsplit(given)._replace(path=f"/{worker}").geturl()
        return
    from tests.jobs.waiting import eventually
    from webapp.cli import probe, valkey

    server = valkey.prepare(tmp_path_factory.mktemp("valkey"))
    # PostgreSQL goes with Redis, as in production; it reads the same file of settings.
    program = (ON_POSTGRES and shutil.which("redis-server")) or server.command[0]
    process = subprocess.Popen([program, *server.command[1:]], stdout=subprocess.DEVNULL)
    try:
        eventually(probe.redis_answers(server.url))
        yield server.url
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="session", autouse=True)
def quick_passwords() -> Iterator[None]:
    """Passwords of the tests are hashed and refused quickly; `test_passwords` looks at the real parameters."""
    real, refusal = passwords._hasher, limits.LOGIN_REFUSAL_SECONDS
    limits.LOGIN_REFUSAL_SECONDS = 0.0
    passwords._hasher = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    yield
    passwords._hasher, limits.LOGIN_REFUSAL_SECONDS = real, refusal


@pytest.fixture(scope="session", autouse=True)
def quick_routes() -> Iterator[None]:
    """See `SharedMap`."""
    real = Flask.url_map_class
    Flask.url_map_class = SharedMap
    yield
    Flask.url_map_class = real


@pytest.fixture(scope="session", autouse=True)
def hurry() -> Iterator[Callable[[object, object], None]]:
    """SQLite in this process leaves it to the system when its files reach the disk: no test cuts the power."""

    def unsynchronised(dbapi: object, _record: object) -> None:
        if isinstance(dbapi, sqlite3.Connection):
            dbapi.execute("PRAGMA synchronous=OFF").close()

    sa.event.listen(sa.Engine, "connect", unsynchronised)
    yield unsynchronised
    sa.event.remove(sa.Engine, "connect", unsynchronised)


class Drawn(BytecodeCache):
    """Pages, compiled once a process: each test's application has a page's environment of its own."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self.pages:
            bucket.bytecode_from_string(self.pages[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self.pages[bucket.key] = bucket.bytecode_to_string()


@pytest.fixture(scope="session", autouse=True)
def quick_pages() -> Iterator[None]:
    """See `Drawn`."""
    real = Flask.jinja_options
    Flask.jinja_options = {**real, "bytecode_cache": Drawn()}
    yield
    Flask.jinja_options = real


def settings_for(database_url: str, redis_url: str, folder: Path, **more: object) -> Settings:
    """Settings of a test."""
    own = {"secret_key": SECRET_KEY, "vault_keys": (VAULT_KEY,), "data_dir": folder}
    return Settings(database_url=database_url, redis_url=redis_url, **{**own, **more})


@pytest.fixture(scope="session")
def peopled(
    tmp_path_factory: pytest.TempPathFactory, shared_redis: str, quick_passwords: None
) -> tuple[Path, Cast]:
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
    redis = make_redis(shared_redis)
    redis.flushdb()
    redis.close()
    return path, cast


@pytest.fixture(scope="session")
def peopled_postgres(
    tmp_path_factory: pytest.TempPathFactory, shared_redis: str, quick_passwords: None
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


@pytest.fixture
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database of this test's own, with everybody in it: SQLite, or with TEST_ON=postgresql PostgreSQL."""
    if ON_POSTGRES:
        with _database(request.getfixturevalue("peopled_postgres")[0]) as url:
            yield url
        return
    path = tmp_path / "rowsmith.db"
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
def settings(database_url: str, shared_redis: str, tmp_path: Path) -> Settings:
    """The settings of `app`; a test module overrides this fixture for others."""
    return settings_for(database_url, shared_redis, tmp_path)


@pytest.fixture
def app(settings: Settings) -> Iterator[Flask]:
    """The application on this test's database and an empty Redis."""
    made = create_app(settings)
    with made.app_context():
        redis_client().flushdb()
        vocabularies.assume_kept(vocabulary.locked().id)  # 14 MB for each test would be slow
    yield made
    close_app(made)


def close_app(app: Flask) -> None:
    """Let go of all an application holds."""
    audit.close(app)
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
    """`browser(cast.edith)`: Edith, signed in; `browser()`: nobody yet."""
    return lambda person=None: Browser(app, person)


def _postgres_url() -> str | None:
    given = os.environ.get("TEST_DATABASE_URL")
    if given:
        return given
    try:
        socket.create_connection(("127.0.0.1", 5432), timeout=1).close()
    except OSError:
        return None
    return f"postgresql://{os.environ.get('PGUSER', 'postgres')}@127.0.0.1:5432/postgres"


@contextmanager
def _database(template: str | None = None) -> Iterator[str]:
    """A database on the PostgreSQL of the tests, empty or a copy of another; dropped at the end."""
    given = _postgres_url()
    if given is None:
        pytest.skip("no PostgreSQL: set TEST_DATABASE_URL, or run one on 127.0.0.1:5432")
    server = sa.make_url(given).set(drivername="postgresql+psycopg")
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


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """An empty PostgreSQL database of this test's own."""
    with _database() as url:
        yield url
