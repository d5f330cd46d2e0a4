"""The examples of the guide to the command run as they stand, one after the other, in one shell."""

from __future__ import annotations

import re
import subprocess
import sys
import threading

from jobs import push as push_job
from tests.jobs.running import Running, running  # noqa: F401
from tests.jobs.waiting import eventually
from tests.sdk.commands import SOURCE
from tests.views.targets import sqlite_target
from webapp import ROOT
from webapp.extensions import db

GUIDE = ROOT / "docs" / "guide" / "cli.md"
FIELDS = [
    {"name": "id", "type": "row_number"},
    {"name": "email", "type": "email", "unique": True},
    {"name": "age", "type": "number", "options": {"min": 18, "max": 99}},
    {"name": "tier", "type": "first_name"},
]
TABLE = "CREATE TABLE customers (id INTEGER PRIMARY KEY, email VARCHAR(90), age INTEGER, tier VARCHAR(40))"


def test_the_examples_run_one_after_the_other(shell, sdk, app, cast, tmp_path, running: Running):  # noqa: F811
    api = sdk()
    api.templates.create({"name": "Customers", "fields": FIELDS})
    api.scenarios.create(name="Nightly", code="import os\nprint('rows', os.environ['COUNT'])")
    shop = sqlite_target(app, cast, TABLE)

    def work() -> None:
        found = eventually(lambda: sdk().pushes.list(status="queued").first(), within=110)
        with app.app_context():
            push_job.run(found["id"])
            db.session.remove()
        running.do(eventually(lambda: sdk().runs.list(status="queued").first(), within=110)["id"])

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    program = f'#!/bin/sh\nexec {sys.executable} -m rowsmith "$@"\n'
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "rowsmith").write_text(program)
    (tmp_path / "bin" / "rowsmith").chmod(0o755)
    examples = re.findall(r"^```sh\n(.*?)^```", GUIDE.read_text("utf-8"), re.M | re.S)
    assert len(examples) >= 7
    env = {**shell.environment, "PATH": f"{tmp_path}/bin:/usr/bin:/bin", "PYTHONPATH": str(SOURCE)}
    made = subprocess.run(["sh", "-e", "-c", "\n".join(examples)], env=env, capture_output=True, timeout=115)
    assert made.returncode == 0, made.stderr.decode()
    worker.join(60)
    told = made.stdout.decode()
    assert "~ quantity: 10 -> 500" in told
    assert "completed: 20 delivered" in told
    assert "rows 3" in told
    assert shop.count("customers") == 20
