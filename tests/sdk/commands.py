"""Run the command `rowsmith` in tests: in this process, or in a separate one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cast import Cast
from webapp.paths import ROOT

SOURCE = ROOT / "sdk" / "python" / "src"


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        return self.raw.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.raw)


def _hears_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Shell:
    """`shell("whoami")` runs in this process, `shell.begin("whoami")` in a separate process."""

    def __init__(self, environment: dict[str, str], capture: Any) -> None:
        self.environment, self.capture = environment, capture
        self.begun: list[subprocess.Popen[bytes]] = []

    def __call__(self, *words: str) -> Ended:
        from rowsmith.cli import main

        self.capture.readouterr()
        status = main(words)
        out, err = self.capture.readouterr()
        return Ended(status, out, err.decode())

    def good(self, *words: str) -> Ended:
        """One that has to end well."""
        ended = self(*words)
        assert ended.status == 0, ended.err
        return ended

    def begin(self, *words: str, folder: Path | None = None, **how: Any) -> subprocess.Popen[bytes]:
        env = {name: value for name, value in os.environ.items() if not name.startswith(("SERVICE_", "RWS_"))}
        path = {"PYTHONPATH": str(SOURCE), "PYTHONUNBUFFERED": ""}
        command = [sys.executable, "-m", "rowsmith", *words]
        pipe = subprocess.PIPE
        streams = {"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe, **how}
        env = {**env, **path, **self.environment}
        # Tests that run in the background ignore Ctrl-C, and what they start would inherit that.
        self.begun.append(subprocess.Popen(command, env=env, cwd=folder, preexec_fn=_hears_ctrl_c, **streams))
        return self.begun[-1]

    def close(self) -> None:
        """Stop all processes that are still running."""
        for process in self.begun:
            if process.poll() is None:
                process.kill()
            with process:  # closes its pipes
                process.wait()


@pytest.fixture
def shell(origin: str, cast: Cast, tmp_path, monkeypatch, capsysbinary) -> Iterator[Shell]:
    """A shell of Edith's, in an empty folder, with her key in the environment."""
    for name in ("RWS_PROFILE", "RWS_SERVER", "SERVICE_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)
    environment = {
        "SERVICE_API_URL": origin,
        "SERVICE_API_KEY": cast.edith.key,
        "RWS_CONFIG": str(tmp_path / "config" / "rowsmith.json"),
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    result = Shell(environment, capsysbinary)
    yield result
    result.close()
