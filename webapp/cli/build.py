"""`./rowsmith build`: the packages of a release, in dist/ of the clone.

The server as a wheel that needs neither a clone nor npm, the packages of `sdk/` for Python, and the npm package; each
Python package also as its source. They are built from the last commit, with its time, by the tools of
requirements-build.lock: the same commit results in the same bytes. Needs git and npm on the PATH.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from webapp.cli import assets
from webapp.cli.datadir import CliError
from webapp.cli.lock import tool
from webapp.engine.data import vocabulary
from webapp.engine.data.vocab_lock import locked
from webapp.paths import ROOT, static_folder

PYTHON_PACKAGES: Final = (".", "sdk/python", "sdk/mcp", "sdk/spark")
SUMS: Final = "SHA256SUMS"


def run(arguments: argparse.Namespace) -> int:
    """Build all packages into a folder, and write their checksums next to them."""
    git, npm, uv = tool("git"), tool("npm"), str(Path(sys.executable).with_name("uv"))
    out = (
        Path(os.environ.get("ROWSMITH_CALLER_DIR") or ".") / arguments.out if arguments.out else ROOT / "dist"
    )
    out = out.resolve()
    if out.exists() and any(out.iterdir()):
        raise CliError(f"{out} is not empty: remove it, or name another folder with --out.")
    out.mkdir(parents=True, exist_ok=True)
    assets.ensure()
    vocabulary.default()
    when = _checked([git, "log", "-1", "--format=%ct"], ROOT, os.environ).strip()
    env = {**os.environ, "SOURCE_DATE_EPOCH": when, "npm_config_update_notifier": "false"}
    with tempfile.TemporaryDirectory(prefix="rowsmith-build-") as scratch:
        source = Path(scratch) / "source"
        _copy_commit(git, source)
        shutil.copytree(static_folder() / "vendor", source / "static" / "vendor")
        words = Path("var", "vocab", f"{locked().id}.arrow")
        (source / words.parent).mkdir(parents=True)
        shutil.copy(ROOT / words, source / words)
        lock = ROOT / "requirements-build.lock"
        for package in PYTHON_PACKAGES:
            print(f"rowsmith: building {package}", file=sys.stderr, flush=True)
            build = [uv, "build", "--quiet", "--build-constraints", str(lock), "--require-hashes"]
            _checked([*build, "--out-dir", str(out), str(source / package)], source, env)
        print("rowsmith: building sdk/typescript", file=sys.stderr, flush=True)
        typescript = source / "sdk" / "typescript"
        _checked([npm, "ci", "--no-audit", "--no-fund", "--loglevel=error"], typescript, env)
        _checked([npm, "pack", "--silent", "--pack-destination", str(out)], typescript, env)
    (out / ".gitignore").unlink(missing_ok=True)  # uv writes one
    files = sorted(out.iterdir())
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (out / SUMS).write_text("".join(sums))
    print("".join(sums), end="")
    return 0


def _copy_commit(git: str, folder: Path) -> None:
    """Copy the files of the last commit into a new folder."""
    folder.mkdir()
    archive = subprocess.Popen([git, "archive", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE)
    with tarfile.open(fileobj=archive.stdout, mode="r|") as files:
        files.extractall(folder, filter="data")
    if archive.wait() != 0:
        raise CliError(f"{ROOT} has no commit to build from.")


def _checked(command: list[str], folder: Path, env: Mapping[str, str]) -> str:
    """Run a command and return its output. CliError with the end of its error output if it fails."""
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode != 0:
        reason = "\n".join((done.stderr or done.stdout).strip().splitlines()[-12:])
        raise CliError(f"{' '.join(command[:3])} failed in {folder.name}:\n{reason}")
    return done.stdout
