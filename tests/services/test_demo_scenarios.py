"""The example scenarios are saved with the demo without the package index, and run unchanged against the service."""

from __future__ import annotations

import ast
import csv
import json
import os
import sqlite3
import subprocess
import sys
import threading

import pytest
import sqlalchemy as sa
from werkzeug.serving import make_server

from jobs.pushes import push as job
from tests.services.test_demo import empty  # noqa: F401
from webapp.access import actors
from webapp.accounts.services import api_keys, people
from webapp.extensions import db
from webapp.operations import demo_workspace
from webapp.paths import ROOT
from webapp.pushes.models import Push
from webapp.scenarios import examples
from webapp.scenarios.services import requirements, scenarios


@pytest.fixture
def seeded(empty, monkeypatch):
    """The demo, on a machine that reaches no package index."""

    def refuse(*_, **__):
        raise AssertionError("the package index was queried")

    monkeypatch.setattr(requirements, "run_uv", refuse)
    return demo_workspace.ensure_demo()


@pytest.fixture
def saved(seeded):
    """The demo's scenarios as the API shows them, by name."""
    actor = actors.system_actor(seeded.workspace_id, seeded.project_id)
    return {item["name"]: item for item in scenarios.listing(actor).items}


def test_three_examples_are_saved_without_querying_the_package_index(saved):
    assert list(saved) == [example.name for example in reversed(examples.EXAMPLES)]
    assert [item["warnings"] for item in saved.values()] == [[], [], []]
    for example in examples.EXAMPLES:
        assert saved[example.name]["code"] == example.code
        assert saved[example.name]["description"]


def test_the_one_with_retries_is_a_second_version_with_its_package_locked(saved):
    one = saved["Fetch, join, post"]
    assert (one["version"], one["requirements"]) == (2, ["tenacity"])
    packages = one["lock"]["packages"]
    assert packages["tenacity"]
    common = requirements.packages_in(requirements.common_lock())
    assert {name: version for name, version in packages.items() if name != "tenacity"} == common


def test_the_nightly_one_has_a_schedule_that_is_off(saved):
    one = saved["Nightly CSV"]
    assert (one["schedule"]["cron"], one["schedule"]["enabled"], one["next_run_at"]) == (
        "0 2 * * *",
        False,
        None,
    )
    assert [other["schedule"] for name, other in saved.items() if name != one["name"]] == [None, None]


def test_examples_read_only_what_a_run_gives_them():
    for path in sorted(examples.FOLDER.glob("*.py")):
        code = path.read_text("utf-8")
        assert ast.get_docstring(ast.parse(code)), path.name
        assert "import webapp" not in code


class Around:
    """The environment of a run: the API, a key, folders, and a worker for the pushes that it starts."""

    def __init__(self, app, info, tmp_path) -> None:
        self.app, self.tmp = app, tmp_path
        owner = people.find_user(info.email)
        acting = actors.system_actor(info.workspace_id, info.project_id)
        _, self.key = api_keys.create(
            acting, "run", api_version="2026-11-21", project_id=info.project_id, user_id=owner.id
        )
        self.project = info.project_id
        self.server = make_server("127.0.0.1", 0, app, threaded=True)
        self.stop = threading.Event()
        self.threads = [
            threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}),
            threading.Thread(target=self._push),
        ]

    def _push(self) -> None:
        while not self.stop.wait(0.05):
            with self.app.app_context():
                queued = db.session.scalars(sa.select(Push.id).where(Push.status == "queued")).all()
                db.session.remove()
                for push_id in queued:
                    job.run(push_id)
                db.session.remove()

    def run(self, key: str, **params: str) -> str:
        """What the example prints."""
        folders = {name: self.tmp / name.lower() for name in ("UPLOADS", "OUTPUTS")}
        for folder in folders.values():
            folder.mkdir(exist_ok=True)
        env = {
            "PATH": os.defpath,
            "PYTHONPATH": str(ROOT / "sdk" / "python" / "src"),
            "SERVICE_API_URL": f"http://127.0.0.1:{self.server.server_port}",
            "SERVICE_API_KEY": self.key,
            "SERVICE_PROJECT_ID": self.project,
            **{f"SERVICE_WORKSPACE_{name}": str(folder) for name, folder in folders.items()},
            **params,
        }
        program = self.tmp / "main.py"
        program.write_text(examples.example(key).code)
        done = subprocess.run(
            [sys.executable, str(program)], env=env, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def around(empty, seeded, tmp_path):
    result = Around(empty, seeded, tmp_path)
    for thread in result.threads:
        thread.start()
    yield result
    result.stop.set()
    result.server.shutdown()
    for thread in result.threads:
        thread.join(20)
    result.server.server_close()


def test_referential_integrity_holds_in_the_database_after_every_run(around, tmp_path, data_dir):
    for _ in range(2):
        result = around.run("referential_integrity", CUSTOMERS="5", ORDERS="12")
        assert "every order has its customer" in result
    assert json.loads((tmp_path / "outputs" / "report.json").read_text())["orders"] == 12
    (path,) = data_dir.rglob("shop.db")
    database = sqlite3.connect(path)
    counted = [
        database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("customers", "orders")
    ]
    lost = database.execute("SELECT count(*) FROM orders WHERE customer_id NOT IN (SELECT id FROM customers)")
    assert (counted, lost.fetchone()) == ([10, 24], (0,))
    database.close()


def test_the_nightly_file_is_in_the_outputs(around, tmp_path):
    result = around.run("nightly_csv", ROWS="7")
    (path,) = (tmp_path / "outputs").glob("customers-*.csv")
    assert path.name in result
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert (len(rows), rows[0]["country"]) == (7, "United States")
