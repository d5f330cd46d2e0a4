"""The published packages, installed as a user installs them, and the application on a real socket.

They are installed from the package registries configured on this machine, with lock files and hashes; without a
registry, the tests are skipped with the reason.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import uv
from flask import Flask

from jobs.pushes import push as job
from tests.cast import Cast, Person
from tests.served import served
from webapp import limits
from webapp.extensions import db, redis_client
from webapp.work.jobs_queue import queued_ids

HERE = Path(__file__).parent
Run = Callable[..., str]


def _called(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        pytest.skip(f"the published package cannot be had: {done.stderr.strip()[-300:]}")


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has the published package."""
    folder = tmp_path_factory.mktemp("pypi")
    found = uv.find_uv_bin()
    _called([found, "venv", "--quiet", "--python", sys.executable, "venv"], folder)
    result = folder / "venv" / "bin" / "python"
    lock = str(HERE / "requirements.lock")
    _called(
        [found, "pip", "install", "--quiet", "--require-hashes", "--python", str(result), "-r", lock], folder
    )
    return result


@pytest.fixture(scope="session")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose programs may import the published package of npm."""
    folder = tmp_path_factory.mktemp("npm")
    if shutil.which("npm") is None:
        pytest.skip("there is no npm")
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(HERE / name, folder / name)
    _called(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], folder)
    return folder


@pytest.fixture
def origin(app: Flask) -> Iterator[str]:
    """The address of a server that runs `app`."""
    with served(app) as address:
        yield address


@pytest.fixture
def worker(app: Flask) -> Iterator[None]:
    """Runs enqueued pushes. If a push does not finish, the test fails with a traceback."""
    over, done = threading.Event(), set()

    def run() -> None:
        with app.app_context():
            while not over.wait(0.02):
                for push_id in set(queued_ids(redis_client(), "push")) - done:
                    done.add(push_id)
                    job.run(push_id)
                    db.session.remove()

    thread = threading.Thread(target=run, name="worker", daemon=True)
    thread.start()
    yield
    over.set()
    thread.join(limits.EXPORT_DB_WAIT_SECONDS)
    if thread.is_alive():
        stack = traceback.format_stack(sys._current_frames()[thread.ident])
        pytest.fail(f"the worker still does {done}:\n{''.join(stack)}")


@pytest.fixture
def environment(origin: str, cast: Cast) -> Callable[[Person], dict[str, str]]:
    """Return the environment of a program: the URL and the key, and for a scenario its folders."""

    def told(person: Person) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "DATAMAKER_API_URL": f"{origin}/compat",
            "DATAMAKER_API_KEY": person.key,
            "DATAMAKER_PROJECT_ID": cast.main,
            "DATAMAKER_TEAM_ID": cast.blue,
        }

    return told


@pytest.fixture
def run(python: Path, environment: Callable[[Person], dict[str, str]], cast: Cast, tmp_path: Path) -> Run:
    """`run(text)`: what a Python program prints that has `dm`, a client made without arguments."""

    def go(text: str, person: Person | None = None, **more: str) -> str:
        program = tmp_path / "program.py"
        program.write_text(
            f"import json, os\nfrom datamaker import DataMaker, Template\ndm = DataMaker()\n{text}"
        )
        env = {**environment(person or cast.edith), **more}
        done = subprocess.run(
            [python, program], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    return go
