"""The MCP server against the application as `./rowsmith up` starts it, over both transports.

The package `mcp` is in a separate environment, created once by uv from requirements.lock (compiled from requirements.in
by `uv pip compile --universal --generate-hashes --no-header --no-annotate --no-emit-index-url`). The inspector and its
Node are installed once by npm from inspector/package-lock.json. Both are outside of the repository. If one is not
available, the tests are skipped with the reason.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.waiting import eventually
from webapp.paths import ROOT

sys.path.insert(0, str(ROOT / "sdk" / "python" / "src"))

import rowsmith

HERE = Path(__file__).parent
INSTALL_SECONDS = 900
ANSWER_SECONDS = 180
PACKAGES = os.pathsep.join(str(ROOT / "sdk" / name / "src") for name in ("python", "mcp"))


@contextmanager
def _made_once(name: str, *inputs: Path) -> Iterator[tuple[Path, bool]]:
    """A folder outside of the tree for these inputs, and whether it is there. Several test processes may come."""
    text = b"".join(path.read_bytes() for path in inputs) + f"{sys.version_info[:2]}".encode()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rowsmith-tests"
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"{name}-{hashlib.sha256(text).hexdigest()[:16]}"
    with (cache / f"{name}-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        there = (folder / "installed").exists()
        if not there:
            shutil.rmtree(folder, ignore_errors=True)
        yield folder, there
        (folder / "installed").touch()


def _install(command: list[str], what: str, cwd: Path | None = None) -> None:
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no reason was given"])[-1]
        pytest.skip(f"{what} could not be installed: {last}")


@pytest.fixture(scope="session")
def python() -> Path:
    """The Python that has the package `mcp`."""
    uv, lock = Path(sys.executable).parent / "uv", HERE / "requirements.lock"
    if not uv.is_file():
        pytest.skip("uv is not installed: it makes the environment of the MCP server of the tests")
    with _made_once("mcp", lock) as (folder, there):
        at = folder / "bin" / "python"
        if not there:
            _install([str(uv), "--quiet", "venv", "--python", sys.executable, str(folder)], "the environment")
            words = ["--quiet", "pip", "sync", "--python", str(at), "--require-hashes", str(lock)]
            _install([str(uv), *words], "the package mcp")
    return at


@pytest.fixture(scope="session")
def inspector() -> list[str]:
    """The command of the inspector's command line."""
    npm, source = shutil.which("npm"), HERE / "inspector"
    if npm is None:
        pytest.skip("npm is not installed: the inspector is a package of it")
    with _made_once("inspector", source / "package-lock.json") as (folder, there):
        if not there:
            folder.mkdir()
            for name in ("package.json", "package-lock.json"):
                shutil.copy(source / name, folder)
            _install([npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"], "the inspector", folder)
    nodes = sorted((folder / "node_modules").glob("node-linux-*/bin/node"))
    if not nodes:
        pytest.skip("npm brings no Node for this machine that the inspector runs on")
    return [str(nodes[0]), str(folder / "node_modules" / ".bin" / "mcp-inspector"), "--cli"]


class Live:
    """A running application: its address, the demo's key, and a way in."""

    def __init__(self, url: str, key: str) -> None:
        self.url, self.key = url, key
        self.api = rowsmith.Api(key, url)

    def key_with(self, *scopes: str) -> str:
        """Another key of the same person."""
        return self.api.api_keys.create(name="agent", **({"scopes": list(scopes)} if scopes else {}))["key"]

    def template(self, name: str) -> str:
        """The id of one of the demo's templates."""
        return next(item["id"] for item in self.api.templates.list(q=name) if item["name"] == name)

    def connection(self) -> str:
        """The id of the demo's database."""
        return self.api.connections.list(q="Shop database").first()["id"]


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """The application, with a worker and a runner."""
    folder = tmp_path_factory.mktemp("live")
    output = folder / "output"
    names = ("PATH", "HOME", "LANG", "TMPDIR")
    words = "up --port 0 --workers 1 --runners 1 --data-dir".split()
    with output.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "webapp.cli", *words, str(folder / "data")], cwd=ROOT, stdout=file,
            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            env={name: os.environ[name] for name in names if name in os.environ},
        )  # fmt: skip
    try:
        eventually(lambda: "Ctrl-C" in output.read_text() or process.poll() is not None, within=180)
        text = output.read_text()
        assert process.poll() is None, text
        found = re.search(r"running at (\S+)", text), re.search(r"API key   (rws_\S+)", text)
        assert all(found), text
        result = Live(found[0][1], found[1][1])
        yield result
        result.api.close()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


@pytest.fixture(scope="session")
def command(python: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The server as a program without arguments, as clients start it."""
    path = tmp_path_factory.mktemp("bin") / "rowsmith-mcp"
    path.write_text(f'#!/bin/sh\nPYTHONPATH={PACKAGES} exec {python} -m rowsmith_mcp "$@"\n')
    path.chmod(0o755)
    return str(path)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture(scope="session")
def serve(command: str, live: Live) -> Iterator[Callable[..., str]]:
    """`serve("--read-only")`: the URL of a server over HTTP without an API key."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(*more: str) -> str:
        port = free_port()
        words = [command, "--http", "--port", str(port), "--url", live.url, *more]
        processes.append(subprocess.Popen(words, env={"PATH": os.environ["PATH"]}, stderr=subprocess.DEVNULL))
        eventually(lambda: _listens(port) or processes[-1].poll() is not None, within=60)
        assert processes[-1].poll() is None, words
        return f"http://127.0.0.1:{port}/mcp"

    yield start
    for process in processes:
        process.terminate()
        process.wait(30)


def _listens(port: int) -> bool:
    with socket.socket() as result:
        return result.connect_ex(("127.0.0.1", port)) == 0


class Agent:
    """A client of the protocol (speaker.py), and the names of the tools it called."""

    def __init__(self, python: Path, where: dict[str, Any]) -> None:
        self.called: set[str] = set()
        self._process = subprocess.Popen(
            [str(python), str(HERE / "speaker.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, "PYTHONPATH": PACKAGES},
        )  # fmt: skip
        self.ready = self._say(where)

    def do(self, operation: str, *arguments: Any) -> dict[str, Any]:
        """Return the protocol's result, or {"error": ...}."""
        result = self._say({"do": operation, "with": arguments})
        return result.get("result", result)

    def raw(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The whole result of a call."""
        self.called.add(tool)
        return self.do("call_tool", tool, arguments)

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured answer, which is also the text."""
        result = self.raw(tool, **arguments)
        assert not result.get("isError"), result
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        return result["structuredContent"]

    def refused(self, tool: str, **arguments: Any) -> str:
        """The text of a refusal."""
        result = self.raw(tool, **arguments)
        assert result.get("isError"), result
        return result["content"][0]["text"]

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def _say(self, asked: dict[str, Any]) -> dict[str, Any]:
        timer = threading.Timer(ANSWER_SECONDS, self._process.kill)
        timer.start()
        try:
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        finally:
            timer.cancel()
        assert line, f"no answer to {asked}"
        return json.loads(line)


@pytest.fixture(scope="module")
def connect(
    python: Path, command: str, live: Live, serve: Callable[..., str]
) -> Iterator[Callable[..., Agent]]:
    """`connect("http", key=..., options=[...])`: an agent, by default with the demo's key."""
    agents: list[Agent] = []

    def made(transport: str, *, key: str = "", options: tuple[str, ...] = (), url: str = "") -> Agent:
        if transport == "stdio":
            env = {"SERVICE_API_URL": live.url, "SERVICE_API_KEY": key or live.key}
            agents.append(Agent(python, {"command": [command, *options], "env": env}))
        else:
            headers = {"Authorization": f"Bearer {key or live.key}"}
            agents.append(Agent(python, {"url": url or serve(*options), "headers": headers}))
        return agents[-1]

    yield made
    for agent in agents:
        agent.close()
