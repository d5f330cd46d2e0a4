"""The examples of the CLI guide run unchanged, in one shell, with the demo workspace."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

from jobs.pushes import push as push_job
from tests.jobs.running import Running, running  # noqa: F401
from tests.jobs.waiting import eventually
from tests.sdk.commands import SOURCE
from webapp.extensions import db
from webapp.operations import demo_workspace
from webapp.paths import ROOT
from webapp.scenarios import examples as scenarios_examples

GUIDE = ROOT / "docs" / "guide" / "cli.md"
SCENARIO = "Nightly CSV"


def test_the_examples_run_one_after_the_other(shell, sdk, app, demo_shop, tmp_path, running: Running):
    api = sdk()
    api.templates.create(demo_workspace.CUSTOMERS)
    api.scenarios.create(name=SCENARIO, code="import os\nprint('rows', os.environ['ROWS'])")

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
    result = subprocess.run(
        ["sh", "-e", "-c", "\n".join(examples)], env=env, capture_output=True, timeout=115
    )
    assert result.returncode == 0, result.stderr.decode()
    worker.join(60)
    output = result.stdout.decode()
    assert "~ quantity: 100 -> 500" in output
    assert output.count('"city":"Rome"') == output.count('"company":"Acme"') == 2
    assert "completed: 20 delivered" in output
    assert "rows 3" in output
    with closing(sqlite3.connect(demo_shop)) as stored:
        assert stored.execute("SELECT count(*) FROM customers").fetchone() == (20,)


def test_the_scenario_of_the_examples_is_the_demos():
    (nightly,) = (example for example in scenarios_examples.EXAMPLES if example.name == SCENARIO)
    assert '"ROWS"' in nightly.code
