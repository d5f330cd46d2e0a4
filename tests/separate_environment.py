"""Environments of servers whose packages conflict with ours: each is created once by uv from a lock file, in a folder
outside of the repository. If that is not possible, the tests are skipped with the reason."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

INSTALL_SECONDS = 600


def installed(name: str, lock_file: Path) -> Path:
    """The folder of an environment; made when it is missing or its lock file changed."""
    uv = Path(sys.executable).parent / "uv"
    if not uv.is_file():
        pytest.skip(f"uv is not installed: it makes the environment of {name}")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    expected = hashlib.sha256(lock_file.read_bytes() + version.encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rowsmith-tests"
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"{name}-{expected}"
    with (cache / f"{name}-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes may start at the same time
        if not (folder / "installed").exists():
            shutil.rmtree(folder, ignore_errors=True)
            for command in (
                ["venv", "--python", sys.executable, str(folder)],
                [
                    "pip",
                    "sync",
                    "--python",
                    str(folder / "bin" / "python"),
                    "--require-hashes",
                    str(lock_file),
                ],
            ):
                done = subprocess.run(
                    [str(uv), "--quiet", *command], capture_output=True, text=True, check=False,
                    timeout=INSTALL_SECONDS,
                )  # fmt: skip
                if done.returncode != 0:
                    last = (done.stderr.strip().splitlines() or ["no reason was given"])[-1]
                    pytest.skip(f"uv could not install {name}: {last}")
            (folder / "installed").touch()
    return folder
