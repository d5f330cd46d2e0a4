"""`./rowsmith format [--check]`: Python by ruff; pages, style sheets and scripts by the packages of tools/format.

The packages are installed by their lock file into the virtual environment, once for each version of the lock file.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from webapp.cli import assets
from webapp.cli.datadir import CliError
from webapp.paths import ROOT

TOOLS: Final = ROOT / "tools" / "format"
FILES: Final = ("package.json", "package-lock.json", "format.js")


def run(arguments: argparse.Namespace) -> int:
    """Format the files, or with --check list those that are not formatted. Returns 1 if there are any."""
    check = ["--check"] if arguments.check else []
    python = subprocess.run([sys.executable, "-m", "ruff", "format", *check, "."], cwd=ROOT, check=False)
    folder = ensure()
    files = "\n".join(
        str(path)
        for folder_name in ("static", "templates")
        for path in sorted((ROOT / folder_name).rglob("*"))
        if path.suffix in (".css", ".js", ".html") and "vendor" not in path.parts
    )
    script = [assets.node_of(folder), str(folder / "format.js"), *check]
    pages = subprocess.run(script, input=files, text=True, cwd=folder, check=False)
    return int(python.returncode != 0 or pages.returncode != 0)


def ensure() -> Path:
    """Return the folder with the installed packages. CliError if they cannot be installed."""
    digest = hashlib.sha256(b"".join((TOOLS / name).read_bytes() for name in FILES)).hexdigest()[:16]
    place = Path(sys.prefix) / f"format-{digest}"
    if place.exists():
        return place
    with tempfile.TemporaryDirectory(prefix=".format-", dir=sys.prefix) as name:
        fresh = Path(name) / "format"
        fresh.mkdir()
        for file in FILES:
            shutil.copy(TOOLS / file, fresh)
        if problem := assets.npm_ci(fresh):
            raise CliError(f"The formatters could not be installed: {problem}")
        try:
            fresh.rename(place)
        except OSError:
            if not place.exists():  # otherwise another process has just done the same
                raise
    return place
