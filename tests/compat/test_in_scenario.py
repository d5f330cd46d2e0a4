"""A program of the published client, run unchanged as a scenario: the client comes from the package index, its address
and key from the run, and its calls go through the sandbox's network."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.jobs.waiting import eventually
from webapp.paths import ROOT

sys.path.insert(0, str(ROOT / "sdk" / "python" / "src"))

import rowsmith
from rowsmith.error import ServiceError

PROGRAM = """# requirements: datamaker-py
import json, os
from pathlib import Path

import datamaker
from datamaker import DataMaker, Template
from datamaker.error import DataMakerAPIError

dm = DataMaker()
print("client from", Path(datamaker.__file__).parts[-3])
print("calls", os.environ["DATAMAKER_API_URL"].rpartition("/")[2])
rows = dm.generate(Template(name="People", quantity=5, fields=[{"name": "first", "type": "First Name"}]))
print("rows", len(rows), list(rows[0]))
print("template", os.environ["NAME"] in [one["name"] for one in dm.get_templates()])
try:
    dm.get_template("tpl_none")
except DataMakerAPIError as error:
    print("refused", error.status_code)
print("read", dm.read_file_by_path_as_text("in/greeting.txt"))
outputs = Path(os.environ["DATAMAKER_WORKSPACE_OUTPUTS"])
(outputs / "rows.json").write_text(json.dumps(rows))
dm.create_scenario_file("sent.json", json.dumps(rows))
"""
WAIT_SECONDS = 420
"""Its packages are fetched and installed first."""


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[rowsmith.Api]:
    """The application as `./rowsmith up` starts it, with a runner that may fetch packages."""
    folder = tmp_path_factory.mktemp("up")
    output = folder / "output"
    stored = ("PATH", "HOME", "LANG", "TMPDIR")
    env = {
        name: value
        for name, value in os.environ.items()
        if name in stored or name.startswith(("UV_", "PIP_"))
    }
    words = f"up --port 0 --workers 1 --runners 1 --data-dir {folder / 'data'}".split()
    with output.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "webapp.cli", *words], cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=file,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        eventually(lambda: "Ctrl-C" in output.read_text() or process.poll() is not None, within=180)
        text = output.read_text()
        found = re.search(r"running at (\S+)", text), re.search(r"API key   (rws_\S+)", text)
        assert process.poll() is None, text
        assert all(found), text
        with rowsmith.Api(found[1][1], found[0][1]) as result:
            yield result
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def test_a_program_that_requires_the_published_client_imports_it_and_works(api: rowsmith.Api):
    try:
        scenario = api.scenarios.create(name="Of the published client", code=PROGRAM, network="api")
    except ServiceError as error:
        if error.details.get("fields", [{}])[0].get("code") == "not_resolved":
            pytest.skip(f"no package index: {error}")
        raise
    assert scenario["requirements"] == ["datamaker-py"]
    api.files.upload(b"good day", "in/greeting.txt")
    name = api.templates.create(
        {"name": "Seen by the client", "fields": [{"name": "id", "type": "row_number"}]}
    )["name"]
    started = api.runs.start(scenario["id"], {"NAME": name})
    run = api.runs.wait(scenario["id"], started["id"], timeout=WAIT_SECONDS)
    log = api.runs.log(scenario["id"], run["id"])
    assert (run["status"], run["exit_code"], run["error"]) == ("completed", 0, None), log
    assert [line for line in log.splitlines() if not line.startswith("rowsmith: ")] == [
        "client from site-packages",
        "calls compat",
        "rows 5 ['first']",
        "template True",
        "refused 404",
        "read good day",
    ]
    assert run["rows_generated"] == 5
    stored = {output["name"] for output in run["outputs"]}
    assert f"outputs/{run['id']}/rows.json" in stored
    rows = json.loads(api.files.read(f"outputs/{run['id']}/rows.json"))
    assert [list(row) for row in rows] == [["first"]] * 5
    assert json.loads(api.files.read("sent.json")) == rows
