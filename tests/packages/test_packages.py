"""`./rowsmith build`: each package, installed from its file in an empty environment, does its main job."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.conftest import clean_environment, descendants, processes
from tests.jobs.waiting import eventually
from webapp.paths import ROOT

UV = Path(sys.executable).with_name("uv")
FIELDS = [{"name": "id", "type": "row_number"}, {"name": "mail", "type": "email"}]

pytestmark = [
    pytest.mark.skipif(not shutil.which("npm"), reason="npm is not on the PATH"),
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="packages are built from a commit"),
]


def run(*command: object, **more: str) -> str:
    """Run a command that may fetch packages, and return its output."""
    env = {**os.environ, **more}
    done = subprocess.run(
        list(map(str, command)), env=env, capture_output=True, text=True, timeout=900, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def packages(tmp_path_factory) -> Path:
    """The folder with all packages, built once."""
    out = tmp_path_factory.mktemp("packages") / "dist"
    run(sys.executable, "-m", "webapp.cli", "build", "--out", out)
    return out


@dataclass
class Server:
    """The installed server: its command, and what it printed when it was ready."""

    command: Path
    url: str
    key: str


@pytest.fixture(scope="module")
def server(packages, tmp_path_factory) -> Iterator[Server]:
    """The server's wheel in an empty environment, started without a clone."""
    folder = tmp_path_factory.mktemp("server")
    (wheel,) = packages.glob("rowsmith_server-*.whl")
    run(UV, "venv", "--quiet", folder / "venv")
    run(UV, "pip", "install", "--quiet", "--python", folder / "venv" / "bin" / "python", wheel)
    command, output = folder / "venv" / "bin" / "rowsmith-server", folder / "output"
    env = {**clean_environment(), "XDG_DATA_HOME": str(folder / "share")}
    with output.open("w") as file:
        process = subprocess.Popen(
            [command, "up", "--port", "0", "--workers", "1", "--runners", "1"],
            env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        eventually(lambda: "Ctrl-C" in output.read_text() or process.poll() is not None, within=240)
        text = output.read_text()
        assert process.poll() is None, text
        assert (folder / "share" / "rowsmith" / "rowsmith.db").exists()
        yield Server(command, re.search(r"running at (\S+)", text)[1], re.search(r"(rws_\S+)", text)[1])
    finally:
        below = descendants(process.pid)
        process.send_signal(signal.SIGINT)
        process.wait(60)
    assert not below & processes().keys()


def client_environment(server: Server) -> dict[str, str]:
    return {"ROWSMITH_URL": server.url, "ROWSMITH_API_KEY": server.key, "SERVICE_API_URL": server.url,
            "SERVICE_API_KEY": server.key}  # fmt: skip


def environment_with(folder: Path, *wheels: Path) -> Path:
    """Install wheels in an empty environment and return its programs' folder."""
    run(UV, "venv", "--quiet", folder / "venv")
    run(UV, "pip", "install", "--quiet", "--python", folder / "venv" / "bin" / "python", *wheels)
    return folder / "venv" / "bin"


def test_every_package_has_its_checksum(packages):
    lines = [line.split("  ") for line in (packages / "SHA256SUMS").read_text().splitlines()]
    assert {name for _, name in lines} == {file.name for file in packages.iterdir()} - {"SHA256SUMS"}
    assert all(hashlib.sha256((packages / name).read_bytes()).hexdigest() == digest for digest, name in lines)
    assert len(lines) == 9, "a wheel and a source of four Python packages, and one for npm"


def test_a_second_build_of_the_same_commit_has_the_same_bytes(packages, tmp_path):
    run(sys.executable, "-m", "webapp.cli", "build", "--out", tmp_path / "again")
    assert (tmp_path / "again" / "SHA256SUMS").read_text() == (packages / "SHA256SUMS").read_text()


def test_packages_contain_no_tests_and_no_environment(packages):
    names = []
    for file in packages.glob("*.whl"):
        names += zipfile.ZipFile(file).namelist()
    for file in [*packages.glob("*.tar.gz"), *packages.glob("*.tgz")]:
        with tarfile.open(file) as archive:
            names += [name.partition("/")[2] for name in archive.getnames()]
    assert len(names) > 500
    assert not [
        name for name in names if name.startswith("tests/") or ".venv" in name or "node_modules" in name
    ]


def test_the_server_generates_rows_and_serves_the_browser_code(server):
    body = json.dumps({"fields": FIELDS, "count": 3, "format": "csv"})
    rows = run("curl", "-sS", f"{server.url}/generate", "-H", f"X-API-Key: {server.key}",
               "-H", "Content-Type: application/json", "-d", body)  # fmt: skip
    assert len(rows.splitlines()) == 4
    assert "htmx" in run("curl", "-sSf", f"{server.url}/static/vendor/htmx.min.js")
    assert "Get started" in run("curl", "-sSf", f"{server.url}/docs/guide/start")


def test_commands_that_need_a_clone_say_so(server):
    done = subprocess.run([server.command, "test"], capture_output=True, text=True, env=clean_environment())
    assert (done.returncode, done.stderr) == (
        1,
        "rowsmith: test requires a clone of the repository: it is not part of the package.\n",
    )


def test_the_python_package_generates_rows(packages, server, tmp_path):
    (wheel,) = packages.glob("rowsmith-*.whl")
    programs = environment_with(tmp_path, wheel)
    template = {"quantity": 4, "fields": FIELDS}
    program = f"import rowsmith; print(len(rowsmith.Client().generate({template!r})))"
    assert run(programs / "python", "-c", program, **client_environment(server)) == "4\n"
    assert "generate" in run(programs / "rowsmith", "--help")


def test_the_mcp_server_lists_its_tools(packages, server, tmp_path):
    wheels = [*packages.glob("rowsmith-*.whl"), *packages.glob("rowsmith_mcp-*.whl")]
    programs = environment_with(tmp_path, *wheels)
    client = {"name": "test", "version": "1"}
    messages = [
        {"id": 1, "method": "initialize",
         "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]  # fmt: skip
    env = {**clean_environment(), **client_environment(server)}
    process = subprocess.Popen(
        [programs / "rowsmith-mcp"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        for message in messages:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
    finally:
        process.kill()
        process.communicate()
    assert len(answers[1]["result"]["tools"]) > 5


def test_the_spark_source_is_importable_without_the_server(packages, tmp_path):
    (wheel,) = packages.glob("rowsmith_spark-*.whl")
    run(UV, "venv", "--quiet", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    client = next(packages.glob("rowsmith-*.whl"))
    run(UV, "pip", "install", "--quiet", "--python", python, "--no-deps", wheel, client)
    run(
        python,
        "-c",
        "import importlib.util as u; assert u.find_spec('rowsmith_spark') and u.find_spec('rowsmith')",
    )


def test_the_npm_package_generates_rows(packages, server, tmp_path):
    (file,) = packages.glob("rowsmith-sdk-*.tgz")
    (tmp_path / "package.json").write_text('{"private": true, "type": "module"}')
    program = f"""
import {{ Rowsmith }} from "@rowsmith/sdk";
const client = new Rowsmith();
const template = await client.templates.create({{ name: "npm", fields: {json.dumps(FIELDS)} }});
console.log((await client.templates.generate(template.id, {{ count: 4 }})).length);
"""
    (tmp_path / "program.mjs").write_text(program)
    env = {**os.environ, **client_environment(server), "npm_config_cache": str(tmp_path / "cache")}
    installed = subprocess.run(["npm", "install", "--no-audit", "--no-fund", file], cwd=tmp_path, env=env,
                               capture_output=True, text=True, timeout=300)  # fmt: skip
    assert installed.returncode == 0, installed.stderr
    done = subprocess.run(
        ["node", "program.mjs"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "4\n", done.stderr
    assert os.listdir(tmp_path / "node_modules" / "@rowsmith") == ["sdk"]
