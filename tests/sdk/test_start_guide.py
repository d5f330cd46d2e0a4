"""The commands of the ten-minute start guide run unchanged, in order, against the application."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from jobs.pushes import push as push_job
from tests.jobs.waiting import eventually
from webapp.extensions import db
from webapp.paths import ROOT

GUIDE = ROOT / "docs" / "guide" / "start.md"
START = "./rowsmith up"


def test_the_commands_lead_to_a_file_a_template_and_a_push(sdk, origin, app, cast, tmp_path):
    def work() -> None:
        found = eventually(lambda: sdk().pushes.list(status="queued").first(), within=60)
        with app.app_context():
            push_job.run(found["id"])
            db.session.remove()

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    start, keep, *steps = re.findall(r"^```sh\n(.*?)^```", GUIDE.read_text("utf-8"), re.M | re.S)
    assert start.strip() == START
    assert re.findall(r"^export (\w+)=", keep, re.M) == ["ROWSMITH_URL", "ROWSMITH_KEY"]
    assert len(steps) >= 5
    (tmp_path / "python3").symlink_to(sys.executable)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "ROWSMITH_URL": origin, "ROWSMITH_KEY": cast.edith.key}
    result = subprocess.run(
        ["sh", "-e", "-c", "\n".join(steps)],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        timeout=100,
        check=False,
    )
    assert result.returncode == 0, result.stderr.decode()
    worker.join(60)
    output = result.stdout.decode()
    assert lines(tmp_path / "people.csv") == 1001
    assert output.count("id,name,email,city") == 2
    assert "CREATE TABLE" in output  # the dry run
    assert '"delivered":5000' in output.replace(" ", "")


@pytest.mark.parametrize("word", ["templates", "activity", "connections"])
def test_elements_named_in_the_guide_exist_in_the_browser(browser, cast, word):
    assert browser(cast.edith).get(f"/{word}").status_code == 200


def lines(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())
