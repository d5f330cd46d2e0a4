"""`./rowsmith lock`: resolve the dependencies and write every lock file. Needs uv and npm on the PATH."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Final

from webapp.cli.datadir import CliError
from webapp.paths import ROOT
from webapp.scenarios.services.requirements import COMMON

COMPILE: Final = (
    "pip compile --quiet --universal --upgrade --python-version 3.11 --generate-hashes --no-emit-index-url"
).split()


def run(_arguments: argparse.Namespace) -> int:
    """Write the lock files: requirements.lock, those for development, assets, building and scenarios, and
    package-lock.json of the browser code and of the formatters."""
    uv, npm = tool("uv"), tool("npm")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    _compile(uv, "requirements.lock", "--extra", "drivers", "pyproject.toml")
    # The same versions: what is tested is what runs.
    development = ["--extra", "drivers", "--group", "dev", "--constraints", "requirements.lock"]
    _compile(uv, "requirements-dev.lock", *development, "pyproject.toml")
    assets = "\n".join(project["optional-dependencies"]["assets"])
    _compile(uv, "requirements-assets.lock", "-", text=assets)
    # What builds the packages of a release.
    _compile(uv, "requirements-build.lock", "-", text="hatchling")
    # Programs of scenarios run by the service's own Python, and nothing is built for them.
    _compile(uv, "requirements-scenarios.lock", "--only-binary", ":all:", "-", text="\n".join(COMMON))
    for folder in (ROOT, ROOT / "tools" / "format"):
        _npm(npm, folder)
    return 0


def tool(name: str) -> str:
    """Return the path of a program. CliError if it is not on the PATH."""
    found = shutil.which(name)
    if not found:
        raise CliError(f"{name} is needed and is not on the PATH.")
    return found


def _compile(uv: str, output: str, *arguments: str, text: str | None = None) -> None:
    command = [
        uv,
        *COMPILE,
        "--custom-compile-command",
        "./rowsmith lock",
        "--output-file",
        output,
        *arguments,
    ]
    if subprocess.run(command, cwd=ROOT, input=text, text=True, check=False).returncode != 0:
        raise CliError(f"{output} could not be resolved; the lines above say why.")


def _npm(npm: str, folder: Path) -> None:
    """Newest versions that package.json allows, and no registry's address in the lock."""
    (folder / "package-lock.json").unlink(missing_ok=True)
    command = [npm, "install", "--package-lock-only", "--ignore-scripts", "--omit-lockfile-registry-resolved"]
    if subprocess.run([*command, "--no-audit", "--no-fund"], cwd=folder, check=False).returncode != 0:
        raise CliError(f"{folder / 'package-lock.json'} could not be resolved; the lines above say why.")
