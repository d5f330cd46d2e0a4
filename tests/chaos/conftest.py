"""Pushes, the program that carries them out, and targets that can be struck."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy import update

from tests.conftest import ON_POSTGRES, _database
from tests.jobs.conftest import app, client, clock, worker_environment  # noqa: F401
from tests.jobs.pushing import Pushing, connect, rows, table_spec
from webapp import clock as present
from webapp.extensions import write_session
from webapp.pushes.models import Push

COUNT = 10_000


@pytest.fixture
def environment(shared_redis: str, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a worker process on the test's database: SQLite, or with TEST_ON=postgresql PostgreSQL."""
    result = worker_environment(shared_redis, tmp_path)
    if not ON_POSTGRES:
        yield result
        return
    with _database() as url:
        yield {**result, "DATABASE_URL": url}


class Nursery:
    """The program of `tests.chaos.nursery`."""

    program = "tests.chaos.nursery"

    def __init__(self, settings: dict[str, str], log: Path, *arguments: str, **more: object) -> None:
        self.log = log
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", self.program, *arguments],
                env={**settings, **{name: str(value) for name, value in more.items()}},
                cwd=Path(__file__).parents[2],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=out,
                text=True,
            )

    def answer(self) -> str:
        """Its next line."""
        line = self.process.stdout.readline().strip()
        assert line, self.log.read_text()[-3000:]
        return line

    def start(self, push_id: str) -> int:
        """Start a push in a new process and return its pid. `over()` waits for its end."""
        self.process.stdin.write(f"{push_id}\n")
        self.process.stdin.flush()
        return int(self.answer())

    def over(self) -> None:
        """Wait for the end of what was started."""
        assert self.answer() == "over"

    def do(self, push_id: str) -> None:
        """Run a push to its end."""
        self.start(push_id)
        self.over()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def target(postgres_url: str) -> str:
    """A PostgreSQL database with the table `people`."""
    plain = sa.make_url(postgres_url).set(drivername="postgresql").render_as_string(hide_password=False)
    make_table(plain)
    return plain


def make_table(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE people (id bigint PRIMARY KEY, name text NOT NULL)")
        # Without a key, so that a row that comes twice is seen twice.
        connection.execute("CREATE TABLE heap (id bigint, name text)")


@pytest.fixture
def nursery(
    environment: dict[str, str],
    target: str,
    tmp_path: Path,
) -> Iterator[Callable[..., Nursery]]:
    """Starts the program; `more` goes into its environment."""
    started: list[Nursery] = []

    def begin(*arguments: str, **more: object) -> Nursery:
        settings = {"TARGET": target, "CHUNK_ROWS": 500, "FIRST_ROWS": 100, **more}
        result = Nursery(environment, tmp_path / "nursery.log", *arguments, **settings)
        started.append(result)
        if not arguments:
            assert result.answer() == "ready"
        return result

    yield begin
    for item in started:
        item.close()


@pytest.fixture
def pushing(app: Any, target: str, monkeypatch: pytest.MonkeyPatch) -> Pushing:
    result = Pushing(app, monkeypatch)
    result.connect = lambda: connect(target)
    return result


@pytest.fixture
def new_push(pushing: Pushing) -> Callable[..., str]:
    """A queued push of COUNT rows."""

    def make(table: str = "people", count: int = COUNT, **more: Any) -> str:
        value = rows(count)
        return pushing.push([(table_spec(table, value, **more.pop("spec", {})), value)], **more)

    return make


def lose(push_id: str) -> None:
    """Take the worker of a push for dead now, not when its lease runs out."""
    with write_session() as session:
        past = present.now() - timedelta(seconds=1)
        session.execute(
            update(Push).where(Push.id == push_id, Push.status == "running").values(lease_until=past)
        )


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def ids(url: str, table: str = "people") -> list[int]:
    """The ids in the target's table."""
    with psycopg.connect(url) as connection:
        return [row[0] for row in connection.execute(f"SELECT id FROM {table} ORDER BY id")]


def slow_down(url: str, table: str, seconds: float) -> None:
    """Make inserting each row of a table take this many seconds."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$BEGIN PERFORM pg_sleep({seconds}); RETURN NEW; END$$"
        )
        connection.execute(
            f"CREATE TRIGGER slowly BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION slowly()"
        )


def cancel(push_id: str) -> None:
    """Ask for the end of a push."""
    with write_session() as session:
        session.execute(update(Push).where(Push.id == push_id).values(cancel_requested_at=present.now()))
