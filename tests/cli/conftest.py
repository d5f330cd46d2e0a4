"""`./rowsmith up` as a person starts it, and what can be seen of it from outside."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.jobs.waiting import eventually
from webapp.cli.__main__ import main

ROOT = Path(__file__).resolve().parents[2]


def clean_environment(**more: str) -> dict[str, str]:
    """What a person's shell holds, without settings of the service or a test runner's."""
    stored = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return {**stored, "UV_OFFLINE": "1", **more}  # runners would fetch what programs have in common


def rowsmith(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A command of the installed program, run to its end."""
    return subprocess.run(
        [sys.executable, "-m", "webapp.cli", *words],
        cwd=ROOT,
        env=clean_environment(**more),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """A command in this process, as `rowsmith` runs it: a process for each would import the application each time."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        for name in os.environ.keys() - clean_environment().keys():
            monkeypatch.delenv(name)
        capsys.readouterr()
        status = main(words)
        return subprocess.CompletedProcess(words, status, *capsys.readouterr())

    return run


def processes() -> dict[int, tuple[int, str]]:
    """Every live process: pid -> (parent, command line). Zombies are gone already."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[:2]
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if state not in "ZX":
            found[int(folder.name)] = (int(parent), command)
    return found


def descendants(pid: int) -> set[int]:
    """All processes below one."""
    table = processes()
    below: set[int] = set()
    grown = {pid}
    while grown:
        grown = {child for child, (parent, _) in table.items() if parent in grown} - below
        below |= grown
    return below


def part_of(up: int, name: str) -> set[int]:
    """Return the processes below `up` (a process) whose name is this, such as web or worker-1."""
    found = set()
    for pid, (parent, _) in processes().items():
        with suppress(FileNotFoundError, ProcessLookupError):
            if parent == up and Path(f"/proc/{pid}/comm").read_text().strip() == name:
                found.add(pid)
    return found


@dataclass
class Up:
    """A running `up`: its process, its data folder, what it printed."""

    process: subprocess.Popen[str]
    data: Path
    output: Path

    @property
    def text(self) -> str:
        return self.output.read_text()

    @property
    def url(self) -> str:
        return json.loads((self.data / "up.json").read_text())["url"]

    def printed(self, pattern: str) -> str:
        found = re.search(pattern, self.text)
        assert found, self.text
        return found[1]

    def part(self, name: str) -> set[int]:
        """Return the processes of a part that `up` itself started."""
        return part_of(self.process.pid, name)


@pytest.fixture(scope="module")
def start_up() -> Iterator[Callable[..., Up]]:
    """Starts `up` on a fresh data folder (or the one given) and a free port; ready when it returns."""
    started: list[Up] = []
    folders: list[Path] = []

    def start(data: Path | None = None) -> Up:
        if data is None:
            folders.append(Path(tempfile.mkdtemp(prefix="rowsmith-test-")))
            data = folders[-1] / "data"
        output = data.parent / "output"
        with output.open("w") as file:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "webapp.cli",
                    "up",
                    "--port",
                    "0",
                    "--workers",
                    "1",
                    "--runners",
                    "1",
                    "--data-dir",
                    str(data),
                ],
                cwd=ROOT,
                env=clean_environment(),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                text=True,
            )
        up = Up(process, data, output)
        started.append(up)
        eventually(
            lambda: "Ctrl-C" in up.text or process.poll() is not None, within=240
        )  # longer on a busy machine
        assert process.poll() is None, up.text
        return up

    yield start
    for up in started:
        if up.process.poll() is None:
            up.process.send_signal(signal.SIGKILL)
            up.process.wait()
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def up(start_up: Callable[..., Up]) -> Up:
    """One `up` for the tests that leave it as it was."""
    return start_up()
