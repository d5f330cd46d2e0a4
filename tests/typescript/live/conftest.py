"""A running service (`./rowsmith up` with a new data folder), and the package installed by its lock file."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.conftest import Up, start_up  # noqa: F401 - a fixture
from tests.typescript.conftest import PACKAGE
from webapp.paths import ROOT

INSTALL_SECONDS = 300
TEST_SECONDS = 900
SOURCES = (
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "README.md",
    "LICENSE",
    "src",
    "test",
    "tools",
)


@dataclass
class Package:
    """A copy of the package, installed."""

    folder: Path
    env: dict[str, str]

    def npm(self, *words: str) -> subprocess.CompletedProcess[str]:
        npm = shutil.which("npm") or "npm"
        return subprocess.run(
            [npm, *words], cwd=self.folder, env=self.env, capture_output=True, text=True, check=False,
            timeout=TEST_SECONDS, stdin=subprocess.DEVNULL,
        )  # fmt: skip


def installed(source: Path = PACKAGE, called: str = "typescript") -> Path:
    """The folder of the packages of a lock file, made once; skips where npm cannot."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    expected = hashlib.sha256((source / "package-lock.json").read_bytes()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rowsmith-tests"
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"{called}-{expected}"
    with (cache / f"{called}-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes may start at the same time
        if not (folder / "installed").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for name in ("package.json", "package-lock.json"):
                shutil.copy(source / name, folder)
            done = subprocess.run(
                [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder, capture_output=True,
                text=True, check=False, timeout=INSTALL_SECONDS,
            )  # fmt: skip
            if done.returncode != 0:
                last = (done.stderr.strip().splitlines() or ["no reason was given"])[-1]
                pytest.skip(f"npm could not install by the lock file: {last}")
            (folder / "installed").touch()
    return folder


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory, start_up: Callable[..., Up]) -> Package:
    """The current package in a new folder, with the URL and an API key of a running service."""
    packages = installed()
    home = tmp_path_factory.mktemp("home")
    folder = home / "sdk"
    folder.mkdir()
    for name in SOURCES:
        source = PACKAGE / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)
    (folder / "node_modules").symlink_to(packages / "node_modules")
    up = start_up()
    key = up.printed(r"API key   (rws_\S+)")
    assert re.fullmatch(r"rws_\S+", key)
    return Package(
        folder,
        {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(home),
            "SERVICE_API_URL": up.url,
            "SERVICE_API_KEY": key,
            "ROWSMITH_GUIDE": str(ROOT / "docs" / "guide" / "typescript.md"),
        },
    )
